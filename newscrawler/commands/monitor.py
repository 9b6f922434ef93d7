"""`scrapy monitor`: what is wrong with the fleet, seen from outside the workers; tells who is to be
told."""

from __future__ import annotations

import argparse
import asyncio
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError
from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import opening
from newscrawler.fleet.history import HistoryUnavailable
from newscrawler.frontier.types import FrontierError
from newscrawler.store.base import StoreError
from newscrawler.utils.display import number_of

if TYPE_CHECKING:
    from newscrawler.crawl.monitoring import MonitorReport

VERBS = {
    "look": "one look: a row per incident that is open; exit code 1 when there is any",
    "preload": "when each site publishes, of the last four weeks, from the article store",
    "test": "send a test alert by every way of the settings",
}
COLUMNS = ("since", "severity", "kind", "subject", "reason")


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "[look | preload | test] [options]"

    def short_desc(self) -> str:
        return "Look at the fleet from outside, and tell by mail, webhook and chat what is wrong"

    def long_desc(self) -> str:
        verbs = [f"  {verb:<8} {text}" for verb, text in VERBS.items()]
        return "\n".join(
            [
                f"{self.short_desc()}.",
                "Without a verb: look. For cron each minute, or with --every as a service. Any",
                "number may run: an incident is told once (docs/operations.md).",
                "",
                *verbs,
            ]
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument(
            "--every",
            type=cli.span_s,
            metavar="TIME",
            help="look: again every so often (30s, 5m, 1h; a number alone: seconds), until Ctrl-C",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        settings = self.settings
        verb, rest = cli.verb_of(args, VERBS, "look")
        if rest:
            raise cli.UsageError(f"scrapy monitor {verb} takes no {rest[0]}", print_help=False)
        if opts.every is not None and (verb != "look" or not 1 <= opts.every <= 86_400):
            raise cli.UsageError(
                "--every is an option of look, from 1 to 86400 seconds", print_help=False
            )
        work = {"look": _look, "preload": _preload, "test": _test}[verb]
        try:
            self.exitcode = asyncio.run(work(settings, opts))
        except (opening.StartRefused, ValueError) as exc:
            cli.refuse(str(exc))
        except (FrontierError, HistoryUnavailable, RedisError, StoreError) as exc:
            cli.fail(str(exc))
        finally:
            opening.stop_embedded(settings)


# Each verb imports the monitor itself: Spidermon and the work on selector sets, which no other
# command needs at its start.


async def _look(settings: BaseSettings, opts: argparse.Namespace) -> int:
    from newscrawler.crawl import monitoring

    async with monitoring.open_monitor(settings) as monitor:
        if opts.every is None:
            report = await monitor.round()
            show(report, opts.as_json)
            return 0 if report.is_well else 1
        end = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end.set)
        cli.note(f"looks every {opts.every:g} s; Ctrl-C ends it")
        await monitoring.monitor_for_ever(monitor, opts.every, _told, end)
        cli.note("ends")
        return 0


def _told(report: MonitorReport) -> None:
    """A service says what changes; what is open can be asked for by a look."""
    for headline in report.told:
        cli.show(f"{moment(report.at_ms)} {headline}", flush=True)


def show(report: MonitorReport, as_json: bool) -> None:
    from newscrawler.crawl import monitoring

    rows: list[dict[str, Any]] = [
        {
            "since": moment(one.since_ms),
            "severity": monitoring.KINDS[one.kind].severity if one.kind in monitoring.KINDS else "",
            "kind": one.kind,
            "subject": one.subject,
            "reason": one.reason if not one.well_ms else f"well again; it was: {one.reason}",
            "explain": monitoring.explain_of(one.kind, one.subject),
        }
        for one in report.open
    ]
    if rows:
        cli.print_rows(rows, COLUMNS, as_json)
    if not as_json:
        for row in {row["kind"]: row for row in rows}.values():
            cli.note(f"{row['kind']}: see {row['explain']}")
    cli.note(_verdict(report))
    for waiting in report.undelivered:
        cli.note(f"alert {waiting.id} was not delivered yet, {waiting.tries} attempts")


def _verdict(report: MonitorReport) -> str:
    if report.open:
        n = len(report.open)
        return f"{number_of(n, 'incident')} {'is' if n == 1 else 'are'} open"
    if report.is_unused:
        return "Nothing is wrong so far: no worker has visited a site yet."
    return "Nothing is wrong."


def moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


async def _preload(settings: BaseSettings, opts: argparse.Namespace) -> int:
    from newscrawler.crawl import monitoring

    async with monitoring.open_monitor(settings) as monitor:
        now_ms = await monitor.operator.now_ms()
        done = await monitoring.preload(settings, monitor.history, now_ms)
    if opts.as_json:
        cli.print_object({"sites": done[0], "articles": done[1], "hours": done[2]})
    else:
        cli.show(
            f"{number_of(done[1], 'article')} of {number_of(done[0], 'site')};"
            f" {number_of(done[2], 'hour')} not known."
        )
    return 0


async def _test(settings: BaseSettings, opts: argparse.Namespace) -> int:
    from newscrawler.crawl import monitoring

    async with monitoring.open_monitor(settings) as monitor:
        if not monitor.ways:
            cli.fail("no way is set: ALERT_WEBHOOK_URL, ALERT_MAIL_TO, ALERT_SLACK_URL, ...")
        answers = await monitor.test()
    rows = [{"way": name, "result": why or "sent"} for name, why in answers.items()]
    cli.print_rows(rows, ("way", "result"), opts.as_json)
    return 1 if any(answers.values()) else 0
