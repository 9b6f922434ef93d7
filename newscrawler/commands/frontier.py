"""`scrapy frontier VERB`: see what is queued, waiting and leased, and steer single domains."""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from scrapy.commands import ScrapyCommand
from scrapy.settings import BaseSettings

from newscrawler import cli, wiring
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier import connect
from newscrawler.frontier import server as embedded
from newscrawler.frontier.operator import Operator, shards_of
from newscrawler.frontier.queue import FrontierError
from newscrawler.frontier.types import CLASSES
from newscrawler.items import Link
from newscrawler.web.urls import domain_of

VERBS = {
    "report": "[DOMAIN ...]                   what is queued, waiting, leased; a row per domain",
    "why": "URL                            what is known of a URL and what happens to it next",
    "audit": "DOMAIN [--last 24h]            prove from the fetch log that the delay was kept (exit 1 if not)",
    "pause": "DOMAIN ...                     lease nothing of it until `resume`",
    "resume": "DOMAIN ...                     end a pause or block",
    "block": "DOMAIN ... --until 2h          lease nothing for that long (m, h, d) or before that time (ISO)",
    "delay": "DOMAIN ... --seconds 10        raise its delay; 0 takes that back",
    "class": "DOMAIN ... --to high|mid|low   its share of the turns; `--to policy` = that of sites.json again",
    "purge": "DOMAIN ... [--yes]             throw away what is queued; says how much, then asks for --yes",
    "quarantine": "list|replay|drop [DOMAIN]    URLs whose tries are spent, or that could not be read",
}
COLUMNS = ("domain", "class", "queued", "waiting", "leased", "delay_s", "wait_s", "robots", "fetched", "errors", "note")


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "VERB [options]"

    def short_desc(self) -> str:
        return "Report on the queue; pause, block, slow down or purge a domain; look after the quarantine"

    def long_desc(self) -> str:
        return "Verbs: " + "; ".join(f"{verb} {re.sub(' +', ' ', text)}" for verb, text in VERBS.items())

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        cli.add_json_option(parser)
        parser.add_argument("--until", metavar="TIME", help="block: 30m, 2h, 3d or 2026-11-22T08:00+07:00")
        parser.add_argument("--seconds", type=float, metavar="S", help="delay: least seconds between two fetches")
        parser.add_argument("--to", choices=(*CLASSES, "policy"), help="class: the new one")
        parser.add_argument("--last", default="24h", metavar="TIME", help="audit: how far back (default 24h)")
        parser.add_argument("--top", type=int, default=40, metavar="N", help="report: most rows, 0 = all (default 40)")
        parser.add_argument("--yes", action="store_true", help="purge, quarantine drop: do it without asking")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        verb, rest = (args[0], args[1:]) if args else ("report", [])
        if verb not in VERBS:
            raise cli.UsageError(f"unknown verb {verb!r}; there are: {', '.join(VERBS)}", print_help=False)
        work = _prepare(verb, rest, opts, self.settings)
        code = with_operator(self.settings, work)
        if code:
            self.exitcode = code


Work = Callable[[Operator], Awaitable[int]]


def with_operator(settings: BaseSettings, work: Work) -> int:
    """Runs ``work`` on the frontier of these settings; an embedded server is started for it and stopped after."""
    is_embedded = not settings.get("REDIS_URL")
    if is_embedded and not (wiring.data_dir(settings) / "redis").is_dir():
        cli.fail(
            f"there is no frontier in {settings['DATA_DIR']}/ yet: nothing was crawled here, and REDIS_URL is not set"
        )

    async def run() -> int:
        client: Any = connect(wiring.redis_url(settings), single=False)
        try:
            return await work(Operator(client, await shards_of(client)))
        finally:
            await client.aclose()

    try:
        return asyncio.run(run())
    except (FrontierError, wiring.StartRefused) as exc:
        cli.fail(str(exc))
    finally:
        if is_embedded:
            embedded.stop_if_last(wiring.data_dir(settings))


def _prepare(verb: str, rest: list[str], opts: argparse.Namespace, settings: BaseSettings) -> Work:
    """Checks the arguments before anything is started.

    :raises UsageError: wrong or missing arguments
    """
    if verb == "report":
        return lambda operator: report(operator, rest, opts)
    if verb == "quarantine":
        return _prepare_quarantine(rest, opts)
    if verb == "why":
        return _prepare_why(_one(verb, rest), opts, settings)
    if verb == "audit":
        domain, last_ms = _one(verb, rest), _span_ms("--last", opts.last)
        return lambda operator: audit(operator, domain, last_ms, opts.as_json)
    if not rest:
        raise cli.UsageError(
            f"which domain? scrapy frontier {verb} {' '.join(VERBS[verb].split('  ')[:1])}", print_help=False
        )
    domains = [domain.lower() for domain in rest]
    if verb == "purge":
        return lambda operator: purge(operator, domains, opts)
    return _prepare_change(verb, domains, opts)


def _one(verb: str, rest: list[str]) -> str:
    if len(rest) != 1:
        what = "URL" if verb == "why" else "domain"
        raise cli.UsageError(f"one {what} is needed: scrapy frontier {verb} {what.upper()}", print_help=False)
    return rest[0]


def _prepare_change(verb: str, domains: list[str], opts: argparse.Namespace) -> Work:
    if verb == "block" and not opts.until:
        raise cli.UsageError("until when? --until 2h or --until 2026-11-22T08:00+07:00", print_help=False)
    if verb == "delay" and (opts.seconds is None or not 0 <= opts.seconds <= 86_400):
        raise cli.UsageError("--seconds is needed, 0 to 86400 (0 takes an earlier one back)", print_help=False)
    if verb == "class" and not opts.to:
        raise cli.UsageError("--to high, mid, low or policy is needed", print_help=False)
    until = _until(opts.until) if verb == "block" else None

    async def change(operator: Operator) -> int:
        for domain in domains:
            if verb == "pause":
                await operator.pause(domain)
            elif verb == "resume":
                await operator.resume(domain)
            elif verb == "block" and until is not None:
                await operator.block(domain, until(await operator.now_ms()))
            elif verb == "delay":
                await operator.set_delay(domain, round(opts.seconds * 1000))
            elif verb == "class":
                await operator.set_class(domain, None if opts.to == "policy" else opts.to)
        return await report(operator, domains, opts)

    return change


def _until(text: str) -> Callable[[int], int]:
    """The time meant, as a function of the frontier's clock."""
    if re.fullmatch(r"\d+(\.\d+)?[smhd]", text):
        span = _span_ms("--until", text)
        return lambda now_ms: now_ms + span
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise cli.UsageError(f"--until {text!r}: a time like 2h, 3d or 2026-11-22T08:00+07:00 is needed") from None
    at = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if at < time.time():
        raise cli.UsageError(f"--until {text} is in the past; `scrapy frontier resume` ends a block")
    return lambda now_ms: round(at * 1000)


def _span_ms(option: str, text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if not found:
        raise cli.UsageError(f"{option} {text!r}: a span like 30m, 24h or 7d is needed")
    return round(float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]] * 1000)


# ---------------------------------------------------------------- the verbs
async def report(operator: Operator, domains: list[str], opts: argparse.Namespace) -> int:
    found = await operator.report()
    rows = found["domains"]
    if domains:
        wanted = {domain.lower() for domain in domains}
        rows = [row for row in rows if row["domain"] in wanted or row["site"] in wanted]
        missing = wanted - {row["domain"] for row in rows} - {row["site"] for row in rows}
        if missing:
            cli.fail(f"the frontier does not know {', '.join(sorted(missing))}")
    if opts.as_json:
        cli.print_rows(rows, COLUMNS, True)
        return 0
    shown = rows[: opts.top] if opts.top and not domains else rows
    for row in shown:
        row["delay_s"], row["wait_s"] = row["delay_ms"] / 1000, round(row["wait_ms"] / 1000, 1)
    cli.print_rows(shown, COLUMNS, False)
    if len(shown) < len(rows):
        cli.note(f"... and {len(rows) - len(shown)} more domains (--top 0 shows all)")
    if not domains:
        cli.note(_summary(found))
    return 0


def _summary(found: dict[str, Any]) -> str:
    totals, stats = found["totals"], found["stats"]
    outcomes = ", ".join(f"{name[8:]} {n}" for name, n in stats.items() if name.startswith("outcome/"))
    lines = [
        f"{totals['queued']} queued, {totals['waiting']} wait for their next visit, {totals['leased']} leased, "
        f"{totals['quarantined']} in quarantine, {totals['domains']} domains",
        "queued by class: " + ", ".join(f"{name} {sums['queued']}" for name, sums in found["classes"].items()),
    ]
    if found["workers"]:
        lines.append("leased by: " + ", ".join(f"{name} {n}" for name, n in sorted(found["workers"].items())))
    if outcomes:
        lines.append(f"visits so far: {outcomes}")
    drops = {
        name: stats[name] for name in ("dropped", "queue_full", "expired", "rejected", "filter_lied") if name in stats
    }
    if drops:
        lines.append(", ".join(f"{name.replace('_', ' ')} {n}" for name, n in drops.items()))
    return "\n".join(lines)


async def audit(operator: Operator, domain: str, last_ms: int, as_json: bool) -> int:
    if await operator.state(domain.lower()) is None:
        cli.fail(f"the frontier does not know {domain}")
    found = await operator.audit(domain.lower(), last_ms)
    if as_json:
        cli.print_object(asdict(found))
    else:
        cli.print_rows(found.violations, ("at_ms", "gap_ms", "delay_ms"), False) if found.violations else None
        least = "-" if found.least_gap_ms is None else f"{found.least_gap_ms / 1000:.3f} s"
        print(
            f"{found.domain}: {found.fetches} fetches in the log, least gap between two {least}, "
            f"sooner than the delay: {len(found.violations)}"
        )
    return 1 if found.violations else 0


def _prepare_why(url: str, opts: argparse.Namespace, settings: BaseSettings) -> Work:
    try:
        found = wiring.load_sites(settings).identify(url)
    except SitesError as exc:
        cli.fail(str(exc))
    if not isinstance(found, Link):
        reason = found.reason

        async def refused(operator: Operator) -> int:
            text = f"links to it are refused ({reason}) and never reach the frontier"
            cli.print_object({"url": url, "refused": reason}) if opts.as_json else print(f"{url}\n  {text}")
            return 0

        return refused

    async def explain(operator: Operator) -> int:
        domain = found.domain or domain_of(url)
        why = await operator.why(found.url_id, domain)
        record = why["record"]
        facts = {} if record is None else {k: v for k, v in asdict(record).items() if v not in (None, "", b"", 0)}
        if opts.as_json:
            cli.print_object({"url": found.url, "text": why["text"], "record": facts or None, "domain": why["domain"]})
            return 0
        print(f"{found.url}\n  {why['text']}")
        for name, value in facts.items():
            shown = value.hex() if isinstance(value, bytes) else _when(value) if name.endswith("_ms") else value
            print(f"  {name.removesuffix('_ms')}: {shown}")
        return 0

    return explain


def _when(ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


async def purge(operator: Operator, domains: list[str], opts: argparse.Namespace) -> int:
    for domain in domains:
        state = await operator.state(domain)
        if state is None:
            cli.fail(f"the frontier does not know {domain}")
        if not opts.yes:
            cli.note(f"{domain}: {state.queued + state.due} URLs would be thrown away; repeat with --yes")
            continue
        removed = await operator.purge(domain)
        if opts.as_json:
            cli.print_object({"domain": domain, "purged": removed})
        else:
            print(f"{domain}: {removed} URLs thrown away")
    return 0 if opts.yes else 1


def _prepare_quarantine(rest: list[str], opts: argparse.Namespace) -> Work:
    what, domains = (rest[0], rest[1:]) if rest else ("list", [])
    if what not in ("list", "replay", "drop") or len(domains) > 1:
        raise cli.UsageError("scrapy frontier quarantine list|replay|drop [DOMAIN]", print_help=False)
    domain = domains[0].lower() if domains else None

    async def work(operator: Operator) -> int:
        entries = await operator.quarantined(domain, limit=1_000_000)
        if what == "list":
            rows = [
                {"domain": e.domain, "reason": e.reason, "since": _when(e.since_ms), "url": e.url or e.url_id.hex()}
                for e in entries
            ]
            cli.print_rows(rows, ("domain", "reason", "since", "url"), opts.as_json)
            return 0
        if what == "drop" and not opts.yes:
            cli.note(f"{len(entries)} URLs would be forgotten; repeat with --yes")
            return 1
        done = await (operator.replay(entries) if what == "replay" else operator.drop(entries))
        word = "queued again" if what == "replay" else "dropped"
        cli.print_object({word.replace(" ", "_"): done}) if opts.as_json else print(
            f"{done} of {len(entries)} URLs {word}"
        )
        return 0 if done == len(entries) else 1

    return work
