"""`scrapy report`: what happened on a day, as text, page, JSON or mail."""

from __future__ import annotations

import argparse
import asyncio
from datetime import date, datetime, timedelta, tzinfo
from email.utils import parseaddr
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from newscrawler import cli
from newscrawler.crawl import opening
from newscrawler.crawl.day_report import NothingKnown, day_report
from newscrawler.crawl.digests import MailServer, NotSent
from newscrawler.fleet.history import HistoryUnavailable
from newscrawler.fleet.registry import RegistryUnavailable
from newscrawler.frontier import connect
from newscrawler.frontier.types import FrontierError
from newscrawler.selectorsets.store import SelectorsUnavailable
from newscrawler.store.base import QueryError
from newscrawler.store.days import day as read_day
from newscrawler.store.days import zone_of

#: Ends of the names of files that can be written, and the function of api.day_report that does it.
FORMS = {".html": "html", ".json": "as_json", ".txt": "text"}


def _shown(form: str, report: dict[str, Any]) -> str:
    from newscrawler.api import day_report  # the web server's parts: not for each command

    text: str = getattr(day_report, form)(report)
    return text


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "What happened on a day: articles, freshness, fields, failures, incidents, costs"

    def long_desc(self) -> str:
        return (
            "Articles of each site against what is usual of it, freshness by stage, coverage of"
            " fields, failures by cause, duplicates, changes of selector sets, incidents and what"
            " models cost, from the sums that workers keep for 35 days. Text by default; a page"
            " with plots in one file by -o FILE.html, for a mail by --mail."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object")
        parser.add_argument(
            "--day",
            metavar="DAY",
            help="today, yesterday, 31/8/2026 or 2026-08-31, of READER_ZONE (default: yesterday)",
        )
        parser.add_argument(
            "-o", dest="file", metavar="FILE", help=f"written there: {', '.join(FORMS)}"
        )
        parser.add_argument(
            "--mail", metavar="TO", action="append", default=[], help="sent there; repeatable"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise cli.UsageError(f"unknown argument: {args[0]}", print_help=False)
        file = _file(opts.file)
        for address in opts.mail:
            if parseaddr(address)[1] != address or "@" not in address.strip("@"):
                raise cli.UsageError(f"--mail {address}: must be an address", print_help=False)
        try:
            zone = zone_of(self.settings["READER_ZONE"])
            day = _day(opts.day, zone)
        except QueryError as exc:
            raise cli.UsageError(str(exc), print_help=False) from exc
        report = self._report(day, zone)
        if file is not None:
            _write(file, _shown(FORMS[file.suffix], report))
        if opts.mail:
            self._mail(report, opts.mail)
        if opts.as_json:
            cli.show(_shown("as_json", report), end="")
        elif file is None and not opts.mail:
            cli.show(_shown("text", report), end="")

    def _report(self, day: date, zone: tzinfo) -> dict[str, Any]:
        settings = self.settings
        assert settings is not None

        async def run() -> dict[str, Any]:
            client: Any = connect(opening.redis_url(settings), single=False)
            try:
                return await day_report(settings, client, day, zone)
            finally:
                await client.aclose()

        try:
            return asyncio.run(run())
        except opening.StartRefused as exc:
            cli.refuse(str(exc))
        except (
            FrontierError,
            HistoryUnavailable,
            NothingKnown,
            RedisError,
            RegistryUnavailable,
            SelectorsUnavailable,
        ) as exc:
            cli.fail(str(exc))
        finally:
            opening.stop_embedded(settings)

    def _mail(self, report: dict[str, Any], receivers: list[str]) -> None:
        assert self.settings is not None
        server = MailServer.from_settings(self.settings)
        from newscrawler.api.day_report import mail

        try:
            server.send(mail(report, server.sender, receivers))
        except NotSent as exc:
            cli.fail(f"not sent: {exc}")
        cli.note(f"sent to {', '.join(receivers)}")


def _day(text: str | None, zone: tzinfo) -> date:
    """:raises QueryError: it is none"""
    today = datetime.now(zone).date()
    if not text:
        return today - timedelta(days=1)
    named = {"today": today, "yesterday": today - timedelta(days=1)}
    day = named.get(text) or read_day("--day", text, zone).astimezone(zone).date()
    if day > today:
        raise QueryError(f"--day {text}: has not begun yet; today is {today}")
    return day


def _file(text: str | None) -> Path | None:
    if text is None:
        return None
    file = Path(text)
    if file.suffix not in FORMS:
        raise cli.UsageError(
            f"-o {text}: the name must end with {', '.join(FORMS)}", print_help=False
        )
    return file


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as exc:
        cli.fail(f"{file}: {exc.strerror}")
    cli.note(f"{file} is written")
