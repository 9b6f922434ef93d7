"""The crawl in the terminal: a live display, or plain lines where there is no
terminal; a table at the end."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from newscrawler.fleet.rows import Rows, SiteRow
from newscrawler.utils.display import clock_text, line_shown, number_of

Mode = Literal["live", "plain", "off"]
MODES: dict[str, Mode | None] = {"auto": None, "live": "live", "plain": "plain", "off": "off"}

#: Width of tables where the stream does not have one (a file, a pipe), characters.
PLAIN_WIDTH = 120


@dataclass(slots=True)
class Status:
    """What the head of the display shows, beside the rows."""

    elapsed_s: float = 0.0
    pages_per_s: float = 0.0
    queued: int | None = None  # in the whole frontier; None = not known yet
    in_flight: int = 0  # fetches of this worker
    note: str = ""  # "stopping ...", "Redis does not answer"


def choose_mode(setting: str, stream: TextIO, environment: dict[str, str]) -> Mode:
    """The mode for PROGRESS. ``auto``: live on a terminal, nothing in a job of scrapyd (its log has
    a line per page), else plain. Raises ValueError for another word."""
    word = setting.strip().lower() or "auto"
    if word not in MODES:
        raise ValueError(f'PROGRESS="{setting}": must be one of {", ".join(MODES)}')
    if mode := MODES[word]:
        return mode
    if environment.get("SCRAPY_PROJECT"):  # what scrapyd sets for its jobs
        return "off"
    is_terminal = stream.isatty() and environment.get("TERM", "") not in ("", "dumb")
    return "live" if is_terminal else "plain"


def problems_text(rows: Rows, most: int = 8) -> str:
    """ "RETRY(dns) 12, REFUSED(robots) 4, and 3 more kinds" """
    counted = rows.problems().most_common()
    text = ", ".join(f"{label} {n:,}" for label, n in counted[:most])
    return text + (f", and {len(counted) - most} more kinds" if len(counted) > most else "")


def pages_text(total: SiteRow) -> str:
    """ "12 pages", and "170 tries, 0 pages" where some tries got no answer at all."""
    pages = number_of(total.answered, "page")
    return pages if total.answered == total.pages else f"{total.pages:,} tries, {pages}"


class Display(Protocol):
    #: Seconds between two calls of ``update`` that make sense.
    every_s: float

    def start(self) -> None: ...
    def update(self, rows: Rows, status: Status) -> None: ...
    def stop(self) -> None: ...


class NoDisplay:
    every_s = 3600.0

    def start(self) -> None: ...
    def update(self, rows: Rows, status: Status) -> None: ...
    def stop(self) -> None: ...


class PlainDisplay:
    """A line every ten seconds, and one for each site as soon as it turns out that it
    cannot be reached."""

    every_s = 10.0

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._said: dict[str, str] = {}

    def start(self) -> None: ...

    def update(self, rows: Rows, status: Status) -> None:
        for row in rows.by_site.values():
            text = row.unreachable()
            if text and self._said.get(row.site) != text:
                self._say(f"{row.site}: {text}")
            self._said[row.site] = text
        self._say(plain_line(rows, status))

    def stop(self) -> None: ...

    def _say(self, line: str) -> None:
        try:
            print(line_shown(line), file=self.stream, flush=True)
        except OSError:
            pass  # the reader of the pipe has gone; the crawl goes on


def plain_line(rows: Rows, status: Status) -> str:
    total = rows.total
    parts = [
        f"{clock_text(status.elapsed_s)} pages={total.answered} pages/s={status.pages_per_s:.1f}",
        f"articles={total.articles} new={total.new} updated={total.updated}",
        f"queue={'?' if status.queued is None else status.queued} in_flight={status.in_flight}",
    ]
    if total.answered != total.pages:
        parts.append(f"tries={total.pages}")
    if problems := problems_text(rows):
        parts.append(f"not stored: {problems}")
    if status.note:
        parts.append(status.note)
    return "  ".join(parts)


class LiveDisplay:
    """Redrawn in place at the bottom of the terminal. Signals are left alone, so
    Ctrl-C is Scrapy's."""

    every_s = 0.5

    def __init__(self, stream: TextIO) -> None:
        self.console = Console(file=stream, force_terminal=True, highlight=False)
        # stdout and stderr stay as they are: prints of a dying process must not end
        # in a dead display.
        self.live = Live(
            console=self.console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )

    def start(self) -> None:
        atexit.register(self.live.stop)  # a second Ctrl-C skips close; the cursor must come back
        self.live.start()

    def update(self, rows: Rows, status: Status) -> None:
        self.live.update(
            render(rows, status, self.console.width, self.console.height), refresh=True
        )

    def stop(self) -> None:
        """Wipes the display: the table that follows says it all."""
        self.live.update(Text(""), refresh=True)
        self.live.stop()
        atexit.unregister(self.live.stop)


def make_display(mode: Mode, stream: TextIO) -> Display:
    if mode == "live":
        return LiveDisplay(stream)
    return PlainDisplay(stream) if mode == "plain" else NoDisplay()


# ---------------------------------------------------------------- what is drawn


def render(rows: Rows, status: Status, width: int, height: int) -> RenderableType:
    """Head, problems and as many sites as fit in ``height`` lines."""
    total = rows.total
    head = Text.assemble(
        ("newscrawler ", "bold"),
        (clock_text(status.elapsed_s), "dim"),
        "  ",
        (f"{status.pages_per_s:.1f}", "bold green"),
        " pages/s  ",
        (pages_text(total), "bold"),
        "  ",
        (f"{total.articles:,}", "bold"),
        f" articles ({total.new:,} new)  queue ",
        ("?" if status.queued is None else f"{status.queued:,}", "bold"),
        "  in flight ",
        (str(status.in_flight), "bold"),
        no_wrap=True,
        overflow="ellipsis",
    )
    lines: list[RenderableType] = [head]
    if problems := problems_text(rows, most=6):
        lines.append(
            Text.assemble(
                ("not stored  ", "dim"), (problems, "yellow"), no_wrap=True, overflow="ellipsis"
            )
        )
    room = max(3, height - len(lines) - 5)
    lines.append(site_table(in_order(rows)[:room], width))
    if (left := len(rows.by_site) - room) > 0:
        lines.append(Text(f"and {left} more sites", style="dim"))
    note = status.note or "Ctrl-C stops: what is being fetched is finished or given back"
    lines.append(Text(note, style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*lines)


def in_order(rows: Rows) -> list[SiteRow]:
    """The sites with the most articles first: the order hardly moves while one looks at it."""
    return sorted(rows.by_site.values(), key=lambda row: (-row.articles, -row.pages, row.site))


def site_table(sites: Sequence[SiteRow], width: int) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", width=min(width, 140)
    )
    table.add_column("site", no_wrap=True, overflow="ellipsis", min_width=12)
    names = ("pages", "articles", "new", "errors") if width >= 60 else ("pages", "new")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    if width >= 90:
        table.add_column("queue", justify="right", no_wrap=True)
        table.add_column("delay", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in sites:
        shown = {"pages": "answered"}
        cells = [row.site, *(f"{getattr(row, shown.get(name, name)):,}" for name in names)]
        if width >= 90:
            place = row.place
            cells += (
                ["-", "-"]
                if place is None
                else [f"{place.queued:,}", f"{place.delay_ms / 1000:.1f} s"]
            )
        table.add_row(*cells, row.state(), style="red" if row.unreachable() else "")
    return table


@dataclass(frozen=True)
class Stays:
    """What is queued at the end of a crawl: seconds until the first of it is due (-1 = not
    planned), and how much of it rests because workers died while they had it."""

    next_s: float
    poison_candidates: int

    def text(self) -> str:
        text = f"The first is due in {clock_text(self.next_s)}." if self.next_s >= 0 else ""
        if self.poison_candidates:
            text += (
                f" Pages that may kill workers are resting: {self.poison_candidates:,} of them;"
                " `scrapy"
                " frontier why URL` says until when, a run that is still going then tries each by"
                " itself."
            )
        return text


QUEUED = "are queued; the next run goes on with them"
#: Why a crawl ended, in words: Scrapy's reasons are names of settings. Others are told as they are.
ENDS = {
    "closespider_pagecount": "the limit of pages is reached",
    "closespider_itemcount": "the limit of articles is reached",
    "closespider_errorcount": "the limit of errors is reached",
    "closespider_timeout": "the time is over",
    "closespider_timeout_no_item": "no article for too long",
    "shutdown": "stopped",
}

#: Ends of visits that are told by the columns.
_ORDINARY = ("DONE", "UNCHANGED")


def summary(
    rows: Rows, elapsed_s: float, reason: str, queued: int | None, stays: Stays | None = None
) -> RenderableType:
    """The table at the end of a crawl."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    total = rows.total
    table.add_column("site", footer=number_of(len(rows.by_site), "site"), no_wrap=True)
    for name, number in (
        ("pages", total.answered),
        ("articles", total.articles),
        ("new", total.new),
        ("updated", total.updated),
        ("errors", total.errors),
    ):
        table.add_column(name, footer=f"{number:,}", justify="right", no_wrap=True)
    table.add_column("what else", footer="")
    for row in in_order(rows):
        numbers = (row.answered, row.articles, row.new, row.updated, row.errors)
        table.add_row(row.site, *(f"{n:,}" for n in numbers), _what_else(row))
    speed = total.answered / elapsed_s if elapsed_s > 0 else 0.0
    tail = [
        f"{pages_text(total)} in {clock_text(elapsed_s)} ({speed:.1f} pages/s),"
        f" ended: {ENDS.get(reason, reason)}."
    ]
    if queued:
        rest = "is queued; the next run goes on with it" if queued == 1 else QUEUED
        tail.append(f"{number_of(queued, 'URL')} {rest}.")
        if stays is not None:
            tail.append(stays.text())
    if total.pages and not total.answered and not total.robots:
        tail.append("No site sent any answer: is there a network?")
    return Group(table, Text(" ".join(tail)))


def _what_else(row: SiteRow) -> str:
    if told := row.unreachable():
        return told
    ends = ((label, n) for label, n in row.outcomes.most_common() if label not in _ORDINARY)
    told = ", ".join(f"{label} {n:,}" for label, n in ends)
    return told if told or row.pages or row.robots else "not started"


def print_summary(
    rows: Rows,
    elapsed_s: float,
    reason: str,
    queued: int | None,
    stream: TextIO,
    stays: Stays | None = None,
) -> None:
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    try:
        console.print(summary(rows, elapsed_s, reason, queued, stays))
    except OSError:
        pass  # nobody reads it
