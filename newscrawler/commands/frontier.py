"""`scrapy frontier VERB`: see what is queued, waiting and leased, and steer single domains."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import bounded_crawls, opening, site_choice
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier import connect, state_text
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.operator import Audit, Operator, Quarantined, layout_of
from newscrawler.frontier.queue import FrontierError
from newscrawler.frontier.records import FOR_GOOD
from newscrawler.frontier.reshard import STEP_URLS, Resharder
from newscrawler.frontier.types import CLASSES, FrontierConfig
from newscrawler.utils.display import iso_of, number_of
from newscrawler.utils.numbers import whole_number
from newscrawler.web import urls

VERBS = {
    "report": (
        "[DOMAIN|SITE ...]",
        "what is queued, waiting and leased; a row per domain, everything of those named",
    ),
    "why": (
        "URL",
        "where it was found, what happened to it, what happens next, where its article is",
    ),
    "audit": (
        "DOMAIN [--last 24h]",
        (
            "prove from the log of fetches and the sums of hours that the delay was kept (exit 1 if"
            " not)"
        ),
    ),
    "pause": ("DOMAIN ...", "fetch nothing of it until `resume`"),
    "resume": ("DOMAIN ...", "end a pause or a block"),
    "block": (
        "DOMAIN ... --until 2h",
        "fetch nothing for that long (s, m, h, d) or before that time (ISO)",
    ),
    "delay": ("DOMAIN ... --seconds 10", "least seconds between two fetches; 0 takes that back"),
    "class": (
        "DOMAIN ... --to high",
        "its share of the turns: high, mid, low; policy = as the sites file says",
    ),
    "quota": (
        "DOMAIN ... --pages 500",
        "fetches it may have --per 24h or --per crawl; over it, URLs stay queued",
    ),
    "purge": (
        "DOMAIN ... [--yes]",
        "throw away what is queued; says how much, then asks for --yes",
    ),
    "reshard": (
        "N [--urls 20000]",
        "spread the domains over N shards while the crawl goes on; one that was killed goes on",
    ),
    "quarantine": (
        "list|replay|drop [DOMAIN]",
        "URLs whose tries are spent, that killed workers, or that could not be read",
    ),
}
#: Options that one verb has: with another they would be silently of no effect.
OWN_OPTIONS = {
    "until": ("block",),
    "seconds": ("delay",),
    "to": ("class",),
    "pages": ("quota",),
    "yes": ("purge", "quarantine"),
    "urls": ("reshard",),
}
COLUMNS = (
    "domain",
    "class",
    "queued",
    "waiting",
    "leased",
    "delay",
    "opens_in",
    "robots",
    "fetched",
    "errors",
    "note",
)
EXAMPLES = """\
  scrapy frontier report --top 10
  scrapy frontier why https://example.vn/bai-viet-123.html
  scrapy frontier quota example.vn --pages 2000 --per 24h
  scrapy frontier quota example.vn --pages policy
  scrapy frontier reshard 4
  scrapy frontier quarantine replay example.vn"""


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "VERB [options]"

    def short_desc(self) -> str:
        return (
            "Report on the queue; pause, block, slow down or purge a domain; look after the"
            " quarantine"
        )

    def long_desc(self) -> str:
        verbs = [f"  {f'{verb} {usage}':<38} {text}" for verb, (usage, text) in VERBS.items()]
        head = [
            f"{self.short_desc()}.",
            "Without a verb: report. A domain is a host as in the report's first column.",
        ]
        return "\n".join([*head, "", *verbs, "", "Examples:", EXAMPLES])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument(
            "--until", metavar="TIME", help="block: 30m, 2h, 3d or 2026-11-22T08:00+07:00"
        )
        parser.add_argument(
            "--seconds", type=float, metavar="S", help="delay: least seconds between two fetches"
        )
        parser.add_argument("--to", choices=(*CLASSES, "policy"), help="class: the new one")
        parser.add_argument(
            "--pages",
            metavar="N",
            help="quota: so many fetches; 0 = none at all; policy = the settings'",
        )
        parser.add_argument(
            "--per",
            type=lambda text: text if text == "crawl" else cli.span_s(text),
            default="24h",
            metavar="TIME",
            help="quota: in that long (default 24h); crawl = from now on, in all",
        )
        parser.add_argument(
            "--last",
            type=cli.span_s,
            default="24h",
            metavar="TIME",
            help=(
                "audit: how far back (default 24h); the last 2,000 fetches one by one, before them"
                " sums of hours, for 48"
            ),
        )
        parser.add_argument(
            "--top",
            type=int,
            default=40,
            metavar="N",
            help="report: most rows, 0 = all (default 40)",
        )
        parser.add_argument(
            "--urls",
            type=int,
            metavar="N",
            help=f"reshard: URLs moved at a time, while nobody works (default {STEP_URLS:,})",
        )
        parser.add_argument(
            "--yes", action="store_true", help="purge, quarantine drop: do it without asking"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        verb, rest = (args[0], args[1:]) if args else ("report", [])
        if verb not in VERBS:
            raise cli.UsageError(
                f"unknown verb {verb!r}; there are: {', '.join(VERBS)}", print_help=False
            )
        work = _prepare(verb, rest, opts, self.settings)
        code = with_operator(self.settings, work)
        if code:
            self.exitcode = code


Work = Callable[[Operator], Awaitable[int]]


def _prepare_reshard(rest: list[str], opts: argparse.Namespace) -> Work:
    shards = whole_number(rest[0], 1024) if len(rest) == 1 else None
    if not shards:
        raise cli.UsageError("reshard needs one number of shards, 1 to 1024", print_help=False)

    if opts.urls is not None and opts.urls < 1:
        raise cli.UsageError(f"--urls {opts.urls}: must be 1 or more", print_help=False)
    step_urls = opts.urls or STEP_URLS

    async def work(operator: Operator) -> int:
        run = Resharder(operator.client, step_urls=step_urls, say=cli.note)
        done = await run.run(shards)
        if opts.as_json:
            cli.print_object(asdict(done))
        else:
            cli.show(
                f"{number_of(done.shards, 'shard')}: {number_of(done.domains, 'domain')} with"
                f" {number_of(done.urls, 'URL')} moved"
                f" in {done.steps} steps, the longest of which closed the frontier for"
                f" {done.closed_s:.1f} s"
            )
            for when, counts in (("before", done.before), ("after", done.after)):
                cli.show(
                    f"{when}: {counts.domains:,} domains, {counts.queued:,} queued,"
                    f" {counts.waiting:,} waiting, {counts.leased:,} leased,"
                    f" {counts.quarantined:,} in quarantine"
                )
        return 0

    return work


def with_operator(settings: BaseSettings, work: Work) -> int:
    """Runs ``work`` on the frontier of these settings; an embedded server is started for it
    and stopped after."""
    is_embedded = not settings.get("REDIS_URL")
    if is_embedded and not (opening.data_dir(settings) / "redis").is_dir():
        cli.fail(
            f"there is no frontier in {settings['DATA_DIR']}/ yet: nothing was crawled here, and"
            " REDIS_URL is not set"
        )

    async def run() -> int:
        client: Any = connect(opening.redis_url(settings), single=False)
        try:
            return await work(Operator(client, await layout_of(client)))
        finally:
            await client.aclose()

    try:
        return asyncio.run(run())
    except (FrontierError, opening.StartRefused) as exc:
        cli.fail(str(exc))
    finally:
        if is_embedded:
            embedded.stop_if_last(opening.data_dir(settings))


def _prepare(verb: str, rest: list[str], opts: argparse.Namespace, settings: BaseSettings) -> Work:
    """Checks the arguments before anything is started.

    :raises UsageError: wrong or missing arguments
    """
    _refuse_options_of_others(verb, opts)
    if verb == "report":
        if opts.top < 0:
            raise cli.UsageError(
                f"--top {opts.top}: 0 or more is needed, 0 = all", print_help=False
            )
        return lambda operator: report(operator, rest, opts)
    if verb == "reshard":
        return _prepare_reshard(rest, opts)
    if verb == "quarantine":
        return _prepare_quarantine(rest, opts)
    if verb == "why":
        return _prepare_why(_one(verb, rest), opts, settings)
    if verb == "audit":
        domain, last_ms = _domain(_one(verb, rest)), round(1000 * opts.last)
        return lambda operator: audit(operator, domain, last_ms, opts.as_json)
    if not rest:
        raise cli.UsageError(
            f"which domain? scrapy frontier {verb} {VERBS[verb][0]}", print_help=False
        )
    domains = [_domain(name) for name in rest]
    if verb == "purge":
        return lambda operator: purge(operator, domains, opts)
    if verb == "quota":
        return _prepare_quota(domains, opts, settings)
    return _prepare_change(verb, domains, opts)


def _refuse_options_of_others(verb: str, opts: argparse.Namespace) -> None:
    for name, owners in OWN_OPTIONS.items():
        if verb not in owners and getattr(opts, name) not in (None, False):
            raise cli.UsageError(
                f"--{name} is an option of {' and '.join(owners)}, not of {verb}", print_help=False
            )


def _prepare_quota(domains: list[str], opts: argparse.Namespace, settings: BaseSettings) -> Work:
    """Without --pages it only shows."""
    if opts.pages is None:
        return lambda operator: report(operator, domains, opts)
    window_s = 0 if opts.per == "crawl" else int(opts.per)
    if not window_s and opts.per != "crawl":
        raise cli.UsageError(
            "--per: a span of a second or more is needed, or crawl", print_help=False
        )
    if opts.pages != "policy" and whole_number(opts.pages, 2**32 - 1) is None:
        raise cli.UsageError(
            f"--pages {opts.pages!r}: a number or policy is needed", print_help=False
        )
    by_host = {
        row.domain: row.pages_per_day
        for row in site_choice.domain_policies(site_choice.all_sites(settings), settings)
    }

    async def change(operator: Operator) -> int:
        await _check_known(operator, domains)
        for domain in domains:
            if opts.pages == "policy":
                pages = by_host.get(domain, settings.getint("FRONTIER_PAGES_PER_DAY"))
                await operator.set_quota(domain, None, policy_pages=pages)
            else:
                await operator.set_quota(domain, int(opts.pages), window_s)
        return await report(operator, domains, opts)

    return change


async def _check_known(operator: Operator, domains: list[str]) -> None:
    """Before anything is changed: a slip in the third name must not leave two domains changed."""
    if unknown := [name for name in domains if await operator.state(name) is None]:
        cli.fail(_unknown(*unknown))


def _domain(name: str) -> str:
    """A host as the report has it; a pasted URL's is taken."""
    return (urls.domain_of(name) or name) if urls.is_http(name) else name.lower()


def _one(verb: str, rest: list[str]) -> str:
    if len(rest) != 1:
        what = "URL" if verb == "why" else "domain"
        raise cli.UsageError(
            f"one {what} is needed: scrapy frontier {verb} {what.upper()}", print_help=False
        )
    return rest[0]


def _prepare_change(verb: str, domains: list[str], opts: argparse.Namespace) -> Work:
    change_one = _CHANGES[verb](opts)

    async def change(operator: Operator) -> int:
        await _check_known(operator, domains)
        for domain in domains:
            await change_one(operator, domain)
        return await report(operator, domains, opts)

    return change


ChangeOne = Callable[[Operator, str], Awaitable[object]]


def _pause(opts: argparse.Namespace) -> ChangeOne:
    return lambda operator, domain: operator.pause(domain)


def _resume(opts: argparse.Namespace) -> ChangeOne:
    return lambda operator, domain: operator.resume(domain)


def _block(opts: argparse.Namespace) -> ChangeOne:
    if not opts.until:
        raise cli.UsageError(
            "until when? --until 2h or --until 2026-11-22T08:00+07:00", print_help=False
        )
    until = _until(opts.until)

    async def block(operator: Operator, domain: str) -> None:
        await operator.block(domain, until(await operator.now_ms()))

    return block


def _delay(opts: argparse.Namespace) -> ChangeOne:
    if opts.seconds is None or not 0 <= opts.seconds <= 86_400:
        raise cli.UsageError(
            "--seconds is needed, 0 to 86400 (0 takes an earlier one back)", print_help=False
        )
    delay_ms = round(opts.seconds * 1000)
    return lambda operator, domain: operator.set_delay(domain, delay_ms)


def _class(opts: argparse.Namespace) -> ChangeOne:
    if not opts.to:
        raise cli.UsageError("--to high, mid, low or policy is needed", print_help=False)
    cls = None if opts.to == "policy" else opts.to
    return lambda operator, domain: operator.set_class(domain, cls)


#: What a verb does to one domain, its options checked.
_CHANGES: dict[str, Callable[[argparse.Namespace], ChangeOne]] = {
    "pause": _pause,
    "resume": _resume,
    "block": _block,
    "delay": _delay,
    "class": _class,
}


def _until(text: str) -> Callable[[int], int]:
    """The time meant, as a function of the frontier's clock."""
    if (span_s := cli.span_with_units_s(text)) is not None:
        return lambda now_ms: now_ms + round(1000 * span_s)
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise cli.UsageError(
            f"--until {text!r}: a time like 2h, 3d or 2026-11-22T08:00+07:00 is needed"
        ) from None
    at = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if at < time.time():
        raise cli.UsageError(
            f"--until {text} is in the past; `scrapy frontier resume` ends a block"
        )
    return lambda now_ms: round(at * 1000)


# ---------------------------------------------------------------- the verbs
async def report(operator: Operator, domains: list[str], opts: argparse.Namespace) -> int:
    found = await operator.report()
    rows = _rows_of(found["domains"], domains) if domains else found["domains"]
    if opts.as_json:
        cli.print_rows(rows, COLUMNS, True)
        return 0
    shown = rows[: opts.top] if opts.top and not domains else rows
    cli.print_rows([_table_row(row) for row in shown], COLUMNS, False)
    if len(shown) < len(rows):
        cli.note(f"... and {len(rows) - len(shown)} more domains (--top 0 shows all)")
    if domains:
        for row in shown[:20]:
            cli.show(state_text.details(row))
    else:
        cli.note(state_text.summary(found))
    return 0


def _rows_of(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Of the named domains and sites."""
    wanted = {_domain(name) for name in names}
    rows = [row for row in rows if row["domain"] in wanted or row["site"] in wanted]
    missing = wanted - {row["domain"] for row in rows} - {row["site"] for row in rows}
    if missing:
        cli.fail(_unknown(*sorted(missing)))
    return rows


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    opens = "now"
    if row["wait_ms"] > FOR_GOOD / 2:
        opens = "never"
    elif row["wait_ms"]:
        opens = state_text.span(row["wait_ms"] / 1000)
    return {**row, "delay": state_text.span(row["delay_ms"] / 1000), "opens_in": opens}


def _unknown(*names: str) -> str:
    return (
        f"the frontier does not know {', '.join(names)}; `scrapy frontier report --top 0` lists its"
        " domains"
    )


async def audit(operator: Operator, domain: str, last_ms: int, as_json: bool) -> int:
    await _check_known(operator, [domain])
    found = await operator.audit(domain, last_ms)
    if as_json:
        cli.print_object(asdict(found))
    else:
        if found.hours:
            hours = [{**hour, "hour": iso_of(hour["from_ms"])} for hour in found.hours]
            columns = ("hour", "fetches", "least_gap_ms", "delay_ms", "too_soon")
            cli.print_rows(hours, columns, False)
        if found.violations:
            rows = [{**row, "at": iso_of(row["at_ms"])} for row in found.violations]
            cli.print_rows(rows, ("at", "gap_ms", "delay_ms"), False)
        _show_audit(found)
    return 1 if found.too_soon else 0


def _show_audit(found: Audit) -> None:
    least = "-" if found.least_gap_ms is None else f"{found.least_gap_ms / 1000:.3f} s"
    if found.hours:
        what = (
            f"{found.fetches:,} fetches since {iso_of(found.since_ms)}"
            f" ({found.log_fetches:,} in the log since {iso_of(found.log_since_ms)},"
            f" before that sums of {len(found.hours)} hours)"
        )
    else:
        what = f"{found.fetches} fetches in the log since {iso_of(found.since_ms)}"
    cli.show(
        f"{found.domain}: {what}, least gap between two {least}, sooner than the delay:"
        f" {found.too_soon}"
    )
    if not found.is_whole:
        cli.note(
            f"the log keeps the last {FrontierConfig().log_entries:,} fetches of a domain, and the"
            " hours before them are kept as sums for 48 hours: what came before"
            f" {iso_of(found.since_ms)} was not looked at"
        )


def _prepare_why(url: str, opts: argparse.Namespace, settings: BaseSettings) -> Work:
    if not urls.is_http(url):
        raise cli.UsageError(f"{url!r} is no URL; http:// or https:// is needed", print_help=False)

    async def explain_url(operator: Operator) -> int:
        from newscrawler.crawl.url_explain import trace  # extraction, for this verb alone

        try:
            found = await trace(url, operator, settings)
        except SitesError as exc:
            cli.fail(str(exc))
        record = found.pop("record", None)
        facts = {} if record is None else {k: v for k, v in asdict(record).items() if v}
        if opts.as_json:
            cli.print_object({**found, "record": facts or None})
            return 0
        cli.show(f"{found['url']}\n  {found['text']}")
        for name, value in _trace_lines(found, facts):
            cli.show(f"  {name}: {value}")
        return 0

    return explain_url


def _trace_lines(found: dict[str, Any], facts: dict[str, Any]) -> list[tuple[str, Any]]:
    """In the order of a URL's life: found, queued, fetched, read, stored."""
    lines = [("found on", found.get("found_on"))]
    for name, value in facts.items():
        if name not in _NOT_TRACED:
            lines.append((name.removesuffix("_ms").replace("_", " "), _fact(name, value)))
    lines += [("fetched", _fetch(entry)) for entry in found.get("fetches") or ()]
    lines += [("offers refused by a full queue", found.get("refused_full") or None)]
    for name in ("robots", "shape", "link_class", "browser", "selector_set"):
        lines.append((name.replace("_", " "), found.get(name)))
    article = found.get("article")
    if isinstance(article, dict):
        told = {k: v for k, v in article.items() if v is not False}
        lines += [(f"article {k.replace('_', ' ')}", v) for k, v in told.items()]
    elif found.get("id"):
        lines.append(("article", article or "none stored"))
    return [(name, value) for name, value in lines if value is not None]


#: Facts of a record that tell people nothing.
_NOT_TRACED = ("url", "domain", "parent", "parent_start", "digest", "content_state")


def _fetch(entry: dict[str, Any]) -> str:
    took_s = (entry["ended_ms"] - entry["granted_ms"]) / 1000
    answer = {None: "the worker that had it was lost", 0: "no answer"}.get(
        entry["status"], f"status {entry['status']}"
    )
    return f"{iso_of(entry['granted_ms'])}, {answer} after {took_s:.3g} s"


def _fact(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return iso_of(value) if name.endswith("_ms") else value


async def purge(operator: Operator, domains: list[str], opts: argparse.Namespace) -> int:
    await _check_known(operator, domains)
    for domain in domains:
        state = await operator.state(domain)
        assert state is not None
        if not opts.yes:
            cli.note(
                f"{domain}: {state.queued + state.due} URLs would be thrown away; repeat with --yes"
            )
            continue
        removed, ended = await bounded_crawls.purge(operator, domain)
        crawls = [crawl.id for crawl in ended]
        if opts.as_json:
            cli.print_object({"domain": domain, "purged": removed, "crawls_ended": crawls})
        else:
            also = f"; bounded crawls ended: {', '.join(crawls)}" if crawls else ""
            cli.show(f"{domain}: {number_of(removed, 'URL')} thrown away{also}")
    return 0 if opts.yes else 1


def _prepare_quarantine(rest: list[str], opts: argparse.Namespace) -> Work:
    what, domains = (rest[0], rest[1:]) if rest else ("list", [])
    if what not in ("list", "replay", "drop") or len(domains) > 1:
        raise cli.UsageError(
            "scrapy frontier quarantine list|replay|drop [DOMAIN]", print_help=False
        )
    domains = [_domain(name) for name in domains]
    domain = domains[0] if domains else None

    async def work(operator: Operator) -> int:
        await _check_known(operator, domains)
        entries = await operator.quarantined(domain, limit=1_000_000)
        if what == "list":
            return _list_quarantine(entries, domain, opts.as_json)
        if what == "drop" and entries and not opts.yes:
            cli.note(f"{len(entries)} URLs would be forgotten; repeat with --yes")
            return 1
        if what == "replay":
            done, word = await operator.replay(entries), "queued again"
        else:
            done, word = await operator.drop(entries), "dropped"
        if opts.as_json:
            cli.print_object({word.replace(" ", "_"): done})
        else:
            cli.show(f"{done} of {len(entries)} URLs {word}")
        return 0 if done == len(entries) else 1

    return work


def _list_quarantine(entries: list[Quarantined], domain: str | None, as_json: bool) -> int:
    rows = [
        {
            "domain": e.domain,
            "reason": e.reason,
            "since": iso_of(e.since_ms),
            "url": e.url or e.url_id.hex(),
        }
        for e in entries
    ]
    cli.print_rows(rows, ("domain", "reason", "since", "url"), as_json)
    if not rows:
        cli.note("nothing is in quarantine" + (f" of {domain}" if domain else ""))
    return 0
