"""The verbs of `scrapy monitor`. Apart from its command, whose module is imported at the start of
every other one."""

from __future__ import annotations

import argparse
import asyncio
import signal
from datetime import UTC, datetime
from typing import Any

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.crawl import alert_ways, monitoring, opening
from newscrawler.crawl.monitoring import MonitorReport
from newscrawler.utils.display import number_of

COLUMNS = ("since", "severity", "kind", "subject", "reason")

NO_FLEET = (
    "REDIS_URL is not set, so the Redis of {folder} was looked at, and no crawl has ever used it:"
    " nothing is watched like this"
)


async def look(settings: BaseSettings, opts: argparse.Namespace) -> int:
    async with monitoring.open_monitor(settings) as monitor:
        if opts.every is None:
            report = await monitor.round()
            show(report, opts.as_json)
            if report.is_unused and not settings.get("REDIS_URL"):
                # A cron job that lost its variables would be content for ever.
                cli.note(NO_FLEET.format(folder=opening.data_dir(settings)))
                return 1
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
    rows: list[dict[str, Any]] = [
        {
            "since": moment(one.since_ms),
            "severity": monitoring.KINDS[one.kind].severity if one.kind in monitoring.KINDS else "",
            "kind": one.kind,
            "subject": one.subject,
            "reason": one.reason if not one.well_ms else f"well again; it was: {one.reason}",
            "explain": alert_ways.explain_of(one.kind, one.subject),
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


async def preload(settings: BaseSettings, opts: argparse.Namespace) -> int:
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


async def test(settings: BaseSettings, opts: argparse.Namespace) -> int:
    async with monitoring.open_monitor(settings) as monitor:
        if not monitor.ways:
            cli.fail("no way is set: ALERT_WEBHOOK_URL, ALERT_MAIL_TO, ALERT_SLACK_URL, ...")
        answers = await monitor.test()
    rows = [{"way": name, "result": why or "sent"} for name, why in answers.items()]
    cli.print_rows(rows, ("way", "result"), opts.as_json)
    return 1 if any(answers.values()) else 0
