"""What the `scrapy <command>` modules share: tables, JSON lines, exit codes, the option --json."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from scrapy.commands import ScrapyHelpFormatter
from scrapy.exceptions import UsageError

__all__ = ["UsageError", "add_json_option", "fail", "note", "print_object", "print_rows", "run_apart"]

T = TypeVar("T")


class VerbsHelp(ScrapyHelpFormatter):
    """Keeps the lines of the table of verbs."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON object a line instead of a table")


def fail(message: str) -> NoReturn:
    """One clear line on stderr, exit code 1. Wrong usage is ``raise UsageError`` (exit code 2) instead."""
    print(message, file=sys.stderr)
    raise SystemExit(1)


def note(message: str) -> None:
    """A line for the person at the terminal; stdout is for data."""
    print(message, file=sys.stderr)


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine before or after a crawl. ``asyncio.run`` would leave the thread without an event loop, and the
    crawl that starts afterwards fails on it."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


def print_object(obj: Mapping[str, Any]) -> None:
    print(json.dumps(obj, ensure_ascii=False, default=_plain))


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    """Rows as an aligned table, or as JSON lines. ``None`` shows as "-" in a table."""
    rows = list(rows)
    if as_json:
        for row in rows:
            print_object(row)
        return
    cells = [[("-" if row.get(c) is None else str(row.get(c))) for c in columns] for row in rows]
    widths = [max([len(c), *(len(r[i]) for r in cells)]) for i, c in enumerate(columns)]
    print("  ".join(c.upper().replace("_", " ").ljust(w) for c, w in zip(columns, widths, strict=True)).rstrip())
    for r in cells:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip())
