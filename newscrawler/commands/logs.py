"""`scrapy logs`: how visits ended and what else was logged, from the JSON logs (LOG_JSON)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from newscrawler import cli
from newscrawler.crawl import opening
from newscrawler.crawl.log_search import Faults, Line, Wanted, files, follow, search
from newscrawler.web import urls

EXAMPLES = """\
  scrapy logs --url https://example.vn/tin-1.htm        every visit of it, and what went wrong in it
  scrapy logs --domain example.vn --since 6h --reason timeout
  scrapy logs --request 9f8c2d5e7a1b4c3d9f8c2d5e7a1b4c3d.17   one visit through fetch, parse, store
  scrapy logs --reason RETRY --follow --json"""


class Command(cli.Command):
    requires_project = True
    requires_crawler_process = False
    own_settings = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "[--url URL] [--domain D] [--reason R] [--since T] [--request ID] [--follow]"

    def short_desc(self) -> str:
        return "Find visits and messages in the JSON logs (LOG_JSON=1)"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}, of all workers of this machine, by time."
            " Packed files (.gz) are read too; what is no line of a log is counted and told.\n\n"
            f"Examples:\n{EXAMPLES}"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = cli.VerbsHelp
        cli.add_json_option(parser)
        parser.add_argument("--url", metavar="URL", help="of this address")
        parser.add_argument("--domain", metavar="D", help="of this host and those below it")
        parser.add_argument("--reason", metavar="R", help="timeout, RETRY or RETRY(timeout)")
        parser.add_argument("--since", metavar="T", help="3d, 12h, 2026-08-31, 2026-08-31T07:00Z")
        parser.add_argument("--request", metavar="ID", help="of this visit, as a line names it")
        parser.add_argument("--follow", action="store_true", help="go on with what is written")
        parser.add_argument("--dir", metavar="DIR", help="default: DATA_DIR/logs/json")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        if args:
            raise cli.UsageError(f"scrapy logs takes no {args[0]}", print_help=False)
        folder = Path(opts.dir) if opts.dir else opening.json_log_dir(self.settings)
        if not opts.follow and not (folder.is_dir() and files(folder)):
            cli.fail(f"{folder}: no JSON log is there; LOG_JSON=1 makes workers write one")
        wanted, faults, count = _wanted(opts), Faults(), 0
        read = follow if opts.follow else search
        with cli.interruptible("Stopped."):
            try:
                for line in read(folder, wanted, faults):
                    count += 1
                    _show(line, opts.as_json)
                    if opts.follow:
                        sys.stdout.flush()
            finally:
                for (name, why), number in faults.counts.items():
                    cli.note(f"{name}: {number} x {why}")
        if not count:
            cli.note("No line of the log has that.")


def _wanted(opts: argparse.Namespace) -> Wanted:
    address = (opts.url or "").strip()
    return Wanted(
        urls=frozenset(filter(None, (address, urls.canonicalize(address)))),
        domain=(opts.domain or "").strip().lower(),
        since=cli.since(opts.since) if opts.since else None,
        reason=(opts.reason or "").strip(),
        request=(opts.request or "").strip(),
    )


def _show(line: Line, as_json: bool) -> None:
    if as_json:
        cli.print_object(line)
        return
    if line.get("event") == "visit":
        cli.show(_visit_text(line))
        return
    cli.show(f"{_head(line)} {line.get('level', '?')} {line.get('message', '')}")
    if error := line.get("exception"):
        cli.show(error)


def _head(line: Line) -> str:
    return f"{line['@timestamp']} {line.get('worker', '?')}"


def _visit_text(line: Line) -> str:
    def of(name: str) -> Any:
        return line.get(name, "?")

    outcome = f"{of('outcome')}({line['reason']})" if line.get("reason") else of("outcome")
    times = f"fetch={of('fetch_ms')} parse={of('parse_ms')} store={of('store_ms')} ms"
    return (
        f"{_head(line)} {outcome} status={of('status')} bytes={of('bytes')} {times}"
        f" {of('url')} request={of('request')}"
    )
