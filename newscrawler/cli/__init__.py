"""What the `scrapy <command>` modules share: tables, JSON lines, exit codes, the option --json."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import Any, ClassVar, NoReturn, TextIO, TypeVar
from urllib.parse import parse_qs, urlsplit

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from newscrawler import metrics
from newscrawler.cli import mistyped, pipes
from newscrawler.utils.display import json_shown, line_shown, shown, url_shown

__all__ = [
    "Command",
    "OneAnswer",
    "OnePage",
    "UsageError",
    "add_json_option",
    "begin",
    "download_errors",
    "fail",
    "install_interrupt",
    "interruptible",
    "note",
    "port",
    "print_object",
    "print_rows",
    "refuse",
    "run_apart",
    "set_own",
    "show",
]

T = TypeVar("T")

REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://")
LAST_PORT = 65_535
#: The exit code after Ctrl-C, as of a shell: 128 and the number of the signal.
INTERRUPTED = 128 + signal.SIGINT
NOT_BEGUN = "Stopped before the crawl began."


class KnownOptions(ScrapyCommand):
    """Before any command: an argument that begins with a dash and is no option of the command is
    refused, where Scrapy takes it for an argument (a backup was made in a folder ``--rwa``)."""

    #: The arguments are a query, in which a dash alone excludes a word.
    takes_query: ClassVar[bool] = False
    _options: argparse.ArgumentParser | None = None

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        self._options = parser

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        if self._options is not None:
            text = mistyped.unknown_option(args, self._options, is_query=self.takes_query)
            if text:
                raise UsageError(text, print_help=False)
        if "--" in args:  # argparse leaves the sign that no option follows among the words
            args.remove("--")
        super().process_options(args, opts)


class Command(KnownOptions):
    """The base class of every command of this project."""

    #: Settings of this command. Scrapy's own ``default_settings`` have the priority "command",
    #: which is lower than "project": for a setting that settings.py names they would say nothing.
    own_settings: ClassVar[dict[str, Any]] = {}

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        begin(self.settings)
        set_own(self.settings, self.own_settings)


class PlainCommand(Command):
    """A command without verbs: what its usage says is stated, and it has ``--json``."""

    requires_project = True
    requires_crawler_process = False
    own_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}
    #: Of the usage: what stands behind the name, one line, what stands below that line.
    arguments: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    #: How the first line of the long text ends.
    closing: ClassVar[str] = "."
    text: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[str] = ""

    def syntax(self) -> str:
        return f"{self.arguments} [options]"

    def short_desc(self) -> str:
        return self.summary

    def long_desc(self) -> str:
        first = f"{self.summary}{self.closing}"
        return "\n".join([first, *self.text, "", "Examples:", self.examples])

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = VerbsHelp
        add_json_option(parser)


def begin(settings: BaseSettings) -> None:
    """Does what every command does before its own work."""
    install_records()
    pipes.watch()
    _refuse_redis_url(str(settings.get("REDIS_URL") or ""))
    try:
        port(str(settings.get("API_PORT")))
    except argparse.ArgumentTypeError as exc:
        refuse(f"API_PORT={exc}")
    level = str(settings.get("LOG_LEVEL") or "").upper()
    if level and not level.isdigit() and level not in logging.getLevelNamesMapping():
        refuse(f"LOG_LEVEL={level}: must be DEBUG, INFO, WARNING, ERROR or CRITICAL")
    for text in mistyped.unknown_settings(settings):
        note(text)


def _refuse_redis_url(url: str) -> None:
    """Exit 2 for an address that redis-py would read otherwise than it was meant, or not at all."""
    if url and not url.startswith(REDIS_SCHEMES):
        scheme, _, rest = url.partition(
            "://"
        )  # of the rest nothing is said: it may hold a password
        refuse(
            f"REDIS_URL={f'{scheme}://' if rest else ''}... is no address of Redis; it is one of "
            "redis://host:6379/0, rediss://, unix:///path or redis+cluster://host:port,host:port"
        )
    if "+cluster:" in url:
        return
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # its text has what was taken for the port
        refuse(
            f"REDIS_URL={url_shown(url)}: what stands for the port is no number; a password with /"
            " # or ? is written with %2F %23 %3F"
        )
    path = "" if parts.scheme == "unix" else parts.path.strip("/")
    database = parse_qs(parts.query).get("db", [path])[0]
    if database and not re.fullmatch(r"[0-9]{1,5}", database):  # redis-py takes 0 then
        # A password may stand there as well, behind a / that should have been %2F.
        named = (
            database if re.fullmatch(r"[\w.-]{1,20}", database) else "what stands behind the host"
        )
        refuse(f"REDIS_URL: {named} is no number of a database; write redis://host:6379/0")


def since(text: str) -> datetime:
    """The value of ``--since``: an age (3d, 12h), a day or a time, UTC where no zone stands.

    :raises UsageError: it is none of these
    """
    text = text.strip()
    try:
        if (age_s := span_with_units_s(text)) is not None:
            return datetime.now(UTC) - timedelta(seconds=age_s)
        when = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {text}: not a time; write 3d, 12h, 2026-08-31 or 2026-08-31T07:00Z",
            print_help=False,
        ) from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


#: Seconds of the units in which options take a span of time, in the order in which they stand.
_UNIT_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER = r"\d{1,6}(?:\.\d{1,3})?"
_SPAN = re.compile("".join(rf"(?:({_NUMBER}){unit})?" for unit in _UNIT_S), re.ASCII)
_SECONDS = re.compile(_NUMBER, re.ASCII)


def span_with_units_s(text: str) -> float | None:
    """Seconds of "90s", "1.5h", "1h30m" or "7d"; None for what is no such span."""
    match = _SPAN.fullmatch(text.strip())
    if match is None or not match[0]:
        return None
    counted = zip(match.groups(), _UNIT_S.values(), strict=True)
    return sum(float(number) * unit_s for number, unit_s in counted if number)


def span_s(text: str) -> float:
    """Seconds of a span with units, or of a number alone. A type of argparse, the one of every
    option that takes a span of time.

    :raises argparse.ArgumentTypeError: it is neither
    """
    if _SECONDS.fullmatch(text.strip()):
        return float(text)
    span = span_with_units_s(text)
    if span is None:
        raise argparse.ArgumentTypeError(
            f"{text}: must be a span of time like 90s, 5m, 1h30m or 7d; a number alone is seconds"
        )
    return span


def port(text: str) -> int:
    """Of TCP; 0 = a free one. The type of an option.

    :raises argparse.ArgumentTypeError: no such number
    """
    if not re.fullmatch(r"[0-9]{1,5}", text.strip()) or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text}: must be a number from 0 to {LAST_PORT}")
    return int(text)


def verb_of(args: Sequence[str], verbs: Iterable[str], default: str) -> tuple[str, list[str]]:
    """The first argument, and the others.

    :raises UsageError: there is no such verb
    """
    verb, *rest = args or [default]
    if verb not in verbs:
        raise UsageError(f"unknown verb {verb!r}; there are: {', '.join(verbs)}", print_help=False)
    return verb, rest


def refuse(message: str) -> NoReturn:
    """One clear line on stderr for what was asked wrongly in the environment or a
    setting; exit code 2.

    :raises SystemExit: always
    """
    show(message, file=sys.stderr)
    raise SystemExit(2)


def set_own(settings: BaseSettings, own: Mapping[str, Any]) -> None:
    """Sets what a command runs with, over settings.py; what the user said (``-s NAME=``, the
    environment) stays."""
    for name, value in own.items():
        in_environment = os.environ.get(name, "").strip()
        is_said = (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["cmdline"] or (
            in_environment and str(settings.get(name)) == in_environment
        )
        if not is_said:
            settings.set(name, value, priority="cmdline")


class OnePage(KnownOptions):
    """Before a command of Scrapy's that fetches a page for a person: with ``--spider=news``
    it needs no queue."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        self.settings.set("FRONTIER_ENABLED", False, priority="cmdline")
        for name in _SAY_WHY:
            logging.getLogger(name).addFilter(_without_trace)


#: Loggers whose line names the error of a download, and then shows where it was raised.
_SAY_WHY = ("scrapy.core.scraper", "scrapy.downloadermiddlewares.robotstxt")


def download_errors() -> tuple[type[Exception], ...]:
    """The exceptions of a page that could not be had: a matter of the site or the network."""
    from scrapy import exceptions as scrapys

    from newscrawler.fetch.client import FetchError

    return (
        FetchError, scrapys.CannotResolveHostError, scrapys.DownloadConnectionRefusedError,
        scrapys.DownloadFailedError, scrapys.DownloadTimeoutError, scrapys.ResponseDataLossError,
    )  # fmt: skip


def _without_trace(record: logging.LogRecord) -> bool:
    """A filter. A site that is away is no fault of the program, in which a traceback would lead."""
    if record.exc_info and isinstance(record.exc_info[1], download_errors()):
        record.exc_info = None
    return True


class OneAnswer(OnePage):
    """Of these, those that are done when the page is there: one that could not be had is a line and
    exit code 1. Scrapy ends with 0 and leaves it to its log, which ``--nolog`` takes away."""

    crawler_process: Any
    exitcode: int

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        made: dict[int, Any] = {}  # by identity: a crawler that was made is handed in again
        create = self.crawler_process.create_crawler

        def remembered(kind: Any) -> Any:
            crawler = create(kind)
            made[id(crawler)] = crawler
            return crawler

        self.crawler_process.create_crawler = remembered
        # Scrapy's command comes after this class.
        super().run(args, opts)  # type: ignore[safe-super]
        for crawler in made.values():
            if text := _not_fetched(metrics.stats_of(crawler)):
                note(f"{args[0]} could not be fetched: {text}")
                self.exitcode = 1


#: Kinds of errors, by the names of their classes, as a person would say them.
_IN_WORDS = {
    "AddressRefused": "its address is private or of this machine, which no crawl fetches unless"
    " ALLOWED_PRIVATE_NETWORKS names it",
    "CannotResolveHostError": "its name was not found",
    "DownloadConnectionRefusedError": "the connection was refused",
    "DownloadTimeoutError": "it did not answer in time",
}


def _not_fetched(stats: Mapping[str, Any]) -> str:
    """By Scrapy's stats: the errors that there were instead of an answer; "" = the site answered,
    or its robots.txt forbids the page, which is no failure."""
    prefix = "downloader/exception_type_count/"
    kinds = [name.rpartition(".")[2] for name in stats if name.startswith(prefix)]
    answers = stats.get("downloader/response_count", 0) - stats.get("robotstxt/response_count", 0)
    is_refused = stats.get("robotstxt/forbidden", 0) > 0
    if answers > 0 or is_refused:
        return ""
    return ", ".join(_IN_WORDS.get(kind, kind) for kind in sorted(kinds))


class ShownRecord(logging.LogRecord):
    """A record of any logger of the process, also of a library: its text may hold a title or the
    address of a service."""

    def getMessage(self) -> str:
        if self.exc_info and not self.exc_text:
            # What a Formatter would make of it: it asks for the message first, and keeps a
            # text that is there.
            self.exc_text = shown("".join(traceback.format_exception(*self.exc_info))).rstrip("\n")
        return shown(super().getMessage())


def install_records() -> None:
    """From here on each line of the log is one that may be shown."""
    logging.setLogRecordFactory(ShownRecord)


class VerbsHelp(ScrapyHelpFormatter):
    """Keeps the lines of the table of verbs."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        action="store_true",
        dest="as_json",
        help="one JSON object a line instead of a table",
    )


def show(
    text: object = "", *, end: str = "\n", file: TextIO | None = None, flush: bool = False
) -> None:
    """Prints for people. Everything that a command says goes through here: a stored title may hold
    what a terminal obeys, and an error the password of a service."""
    print(shown(str(text)), end=end, file=file, flush=flush)


def fail(message: str) -> NoReturn:
    """One clear line on stderr, exit code 1. Wrong usage is ``raise UsageError``
    (exit code 2) instead."""
    show(message, file=sys.stderr)
    raise SystemExit(1)


def need_checkout(what: str) -> None:
    """Exit 1 where the package ``evaluation`` is not: it stands beside newscrawler/ in the
    repository, not in the egg."""
    if find_spec("evaluation") is None:
        fail(
            f"{what} needs a checkout of the repository: its package `evaluation` is not installed"
            " with newscrawler"
        )


def note(message: str) -> None:
    """A line for the person at the terminal; stdout is for data."""
    show(message, file=sys.stderr)


@contextmanager
def interruptible(text: str) -> Iterator[None]:
    """Ctrl-C where nothing else takes it: a line, and the exit code that shells give it.

    Python drops an interrupt that comes while a destructor runs; it counts at the end then.

    :raises SystemExit: it was interrupted
    """
    came = False

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        if callable(before):  # is_ours says so too, which a type checker cannot see
            before(number, frame)

    before = signal.getsignal(signal.SIGINT)
    is_ours = callable(before) and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, interrupted)
    try:
        yield
        if came:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        note(text)
        raise SystemExit(INTERRUPTED) from None
    finally:
        if is_ours and signal.getsignal(signal.SIGINT) is interrupted:
            signal.signal(signal.SIGINT, before)


def install_interrupt() -> None:
    """Ctrl-C outside of :func:`interruptible`, in any command, is no fault of the
    program: no traceback."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            before(kind, error, trace)
            return
        note("Stopped.")
        raise SystemExit(INTERRUPTED)

    sys.excepthook = hook


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine before or after a crawl. ``asyncio.run`` would leave the thread without an
    event loop, and the crawl that starts afterwards fails on it."""
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
    print(json_shown(json.dumps(obj, ensure_ascii=False, default=_plain)))


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    """Rows as an aligned table, or as JSON lines. ``None`` shows as "-" in a table."""
    rows = list(rows)
    if as_json:
        for row in rows:
            print_object(row)
        return
    head = [column.upper().replace("_", " ") for column in columns]
    lines = [head, *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for cells in lines:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        show("  ".join(padded).rstrip())


def _cell(value: Any) -> str:
    return "-" if value is None else line_shown(str(value))
