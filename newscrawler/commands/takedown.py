"""`scrapy takedown URL|DOMAIN`: out of everything that the crawl has, and never fetched again."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from scrapy.settings import BaseSettings

from newscrawler import cli
from newscrawler.api.access import Principal
from newscrawler.api.audit import AuditLog, AuditUnavailable
from newscrawler.api.taking_down import carried_out
from newscrawler.crawl import opening, takedown
from newscrawler.discovery.sites import SitesError
from newscrawler.frontier.types import FrontierError
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.store.base import StoreError

T = TypeVar("T")
EXAMPLES = """\
  scrapy takedown https://example.vn/bai-viet-123.html --reason "court order 12/2026"
  scrapy takedown https://example.vn/bai-viet-123.html --reason "court order 12/2026" --yes
  scrapy takedown example.vn --reason "asked by its owner" --yes
  scrapy takedown --list
  scrapy takedown --undo example.vn"""


class Command(cli.PlainCommand):
    arguments = "URL|DOMAIN --reason TEXT"
    summary = "Remove an article or a domain everywhere, and block it for good"
    closing = ", while the crawl runs."
    text = (
        "Article, versions, index, vectors, events, link graph, remembered answers of",
        "models, exports in DATA_DIR and raw pages; then the data folder and Redis are",
        "searched for its title and text. Backups are not changed.",
    )
    examples = EXAMPLES
    own_settings = {"LOG_ENABLED": False, "SEMANTIC": "off"}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--reason", metavar="TEXT", help="why; kept in the audit log")
        parser.add_argument(
            "--copies", action="store_true", help="with its copies at other addresses of the site"
        )
        parser.add_argument("--yes", action="store_true", help="do it; without it only say what")
        parser.add_argument("--list", action="store_true", help="what was taken down")
        parser.add_argument(
            "--undo", metavar="TARGET", help="lift the block of a take-down; nothing comes back"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        others = [args, opts.reason, opts.yes, opts.copies]
        if opts.list or opts.undo:
            if any(others) or (opts.list and opts.undo):
                raise cli.UsageError("--list and --undo stand alone", print_help=False)
            if opts.list:
                _with(self.settings, lambda work: _list(work, opts.as_json))
            else:
                _with(self.settings, lambda work: _undo(work, opts.undo, opts.as_json))
            return
        if len(args) != 1:
            raise cli.UsageError("one URL or domain is needed", print_help=False)
        if not (opts.reason or "").strip():
            raise cli.UsageError(
                "--reason is needed: it is kept in the audit log", print_help=False
            )
        self.exitcode = _with(self.settings, lambda work: _take(work, args[0], opts))


def _with(settings: BaseSettings, work: Callable[[takedown.TakeDown], Awaitable[T]]) -> T:
    async def run() -> T:
        async with takedown.opened(settings, cli.note) as parts:
            return await work(parts)

    try:
        return asyncio.run(run())
    except (takedown.TakeDownRefused, SitesError) as exc:
        cli.refuse(str(exc))
    except (FrontierError, StoreError, RawStoreUnavailable, RawNotFound, AuditUnavailable) as exc:
        cli.fail(f"{exc}; run it again, it goes on where it stopped")
    except opening.StartRefused as exc:
        cli.fail(str(exc))
    except OSError as exc:
        cli.fail(f"{exc.filename or 'disk'}: {exc.strerror or exc}; run it again")
    finally:
        opening.stop_embedded(settings)


def _who() -> Principal:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return Principal(f"{user}@{socket.gethostname()}", "operator")


async def _take(work: takedown.TakeDown, target: str, opts: argparse.Namespace) -> int:
    who, log = _who(), AuditLog(work.data, time.time)
    plan = await work.plan(target, opts.reason.strip(), who.id, with_copies=opts.copies)
    if not opts.yes:
        if opts.as_json:
            report = takedown.TakeDownReport(plan)
            cli.print_object({**report.plain(), "done": False})
        else:
            _show_plan(plan)
            cli.note("nothing was changed; repeat with --yes")
        return 1
    report, removed = await carried_out(work, plan, who, log)
    if opts.as_json:
        cli.print_object({**report.plain(), "done": not report.left})
    else:
        _show(report, removed)
    return 1 if report.left else 0


def _show_plan(plan: takedown.Plan) -> None:
    cli.show(
        f"{plan.target}: {len(plan.articles):,} article(s), {plan.versions:,} older version(s)"
    )
    for url in list(plan.articles.values())[:20]:
        cli.show(f"  {url}")
    _show_copies(plan)


def _show_copies(plan: takedown.Plan) -> None:
    for url, site in plan.copies.items():
        cli.show(f"  stays: a copy at {url} ({site}); --copies takes those of the site along")


def _show(report: takedown.TakeDownReport, removed: str) -> None:
    plan = report.plan
    cli.show(
        f"{plan.target} is taken down and blocked. Removed: {removed or 'nothing was stored'}."
    )
    _show_copies(plan)
    looked = ", ".join(f"{number:,} {what}" for what, number in report.looked_at.items())
    if report.left:
        for line in report.left:
            cli.show(f"still there: {line}")
    else:
        cli.show(f"Looked for in all files, raw pages and Redis: nothing is left ({looked}).")
    if plan.quoted:
        cli.show(
            f"Quoted in the raw pages of {len(plan.quoted):,} other article(s), which stay:"
            f" {', '.join(plan.quoted[:3])}{', ...' * (len(plan.quoted) > 3)}"
        )
    for note in report.notes:
        cli.show(f"Note: {note}.")
    cli.show("Backups, and the exports and copies of others, are not changed.")


async def _list(work: takedown.TakeDown, as_json: bool) -> None:
    rows: list[dict[str, Any]] = takedown.listed(await work.taken.all())
    cli.print_rows(rows, ("target", "at", "who", "reason", "blocked"), as_json)
    if not rows and not as_json:
        cli.note("nothing was taken down")


async def _undo(work: takedown.TakeDown, target: str, as_json: bool) -> None:
    AuditLog(work.data, time.time).note(_who(), "takedown.undo", target)
    lifted = await work.lift(target)
    if as_json:
        cli.print_object({"target": target, "lifted": len(lifted)})
    else:
        cli.show(f"{target} may be fetched again; what was removed does not come back by that")
