"""From the body of an answer to what stands in it: links, robots directives, fields, entries.

:func:`read` is pure and does all the work that a page costs beside fetching and storing it.
:class:`ParseProcesses` runs it in processes of its own (READ_PROCESSES), or here when there are
none.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from newscrawler.crawl.processes import Child, ChildDied
from newscrawler.discovery import onboarding
from newscrawler.discovery.feeds import Feed, parse_feed
from newscrawler.discovery.sitemaps import Sitemap, parse_sitemap
from newscrawler.extraction import teasers
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from newscrawler.extraction.kinds import claims_article
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import Kind

logger = logging.getLogger(__name__)

#: CPU seconds. An ordinary page takes 0.002, by the generic chain 0.04 and 0.3 for each megabyte:
#: what takes so much longer is hostile, and all that waits behind it is not to wait long. A
#: process's first page whose language has to be identified takes 0.7 more (extraction/language.py).
#: The second try has its markup bounded first.
_FIRST_TRY_CPU_S, _FIRST_TRY_CPU_S_PER_MB, _SECOND_TRY_CPU_S = 2.0, 2.0, 60.0
#: Reading is CPU alone: a process that sleeps for so long, seconds, while it is at a page waits for
#: nothing that will come (it was stopped; a lock of a library), and all pages behind it wait too.
HUNG_S = 15.0
#: Pages that a process has at a time: one that it reads, and the next, so that it need not wait for
#: the crawl between them.
_AHEAD = 2
#: Seconds between two looks for pages that stand behind a slow one.
_LOOK_S = 1.0


class ReadIf(StrEnum):
    """When a page is read as an article, which costs twenty times what its links cost.
    ``CLAIMED``: it says somewhere that it is one. ``TEXT``: it says so, or has a text of its own
    (teasers.form)."""

    ALWAYS = "always"
    CLAIMED = "claimed"
    TEXT = "text"


@dataclass(slots=True)
class Task:
    """``context`` None: links only. ``read_if``: of a page with a context. ``robots``: directives
    of the answer's header. ``selectors``: from :meth:`ParseProcesses.packed`.

    ``headlines``: of a home or section page, tell which links are those of headlines.
    ``may_be_section``: tell the feeds of a page of another kind, too.

    ``guarded``: bound the markup before it is parsed, which costs as much as the parsing; a process
    that can be killed does without until a page makes it necessary.
    """

    body: bytes
    url: str
    kind: Kind
    content_type: str | None = None
    language: str | None = None
    robots: frozenset[str] = frozenset()
    context: PageContext | None = None
    read_if: ReadIf = ReadIf.ALWAYS
    selectors: bytes | None = None
    headlines: bool = False
    may_be_section: bool = False
    guarded: bool = True


@dataclass(slots=True)
class Html:
    """What an HTML page holds, as far as it was asked for. Addresses are canonical.

    :ivar robots: directives of header and page
    :ivar hrefs: links that may be followed, see Document.links; none where ``robots`` has nofollow
    :ivar nofollow: how many links may not be followed, by their rel; 0 where ``robots`` has
        nofollow
    :ivar feeds: of a home or section page, what its head announces
    :ivar menu: of such a page, what its menus link to
    :ivar doubtful: in its menus too, but these addresses look like an article's
    :ivar headlines: links of headlines, where they were asked for
    :ivar form: what a page that says nowhere that it is an article is by its teasers
        (teasers.form); None = not looked at
    :ivar extraction: None: not asked for, no such page by ``read_if``, or noindex
    """

    robots: frozenset[str]
    base_url: str
    hrefs: Sequence[str] = field(default_factory=list)
    nofollow: int = 0
    feeds: Sequence[str] = ()
    menu: Sequence[str] = ()
    doubtful: Sequence[str] = ()
    headlines: Sequence[str] = ()
    form: str | None = None
    extraction: Extraction | None = None


class Unreadable(RuntimeError):
    """The page was too much for two processes."""


def read(task: Task) -> Html | Feed | Sitemap:
    """What ``task.kind`` says. Never raises for any body."""
    if task.kind is Kind.FEED:
        return parse_feed(task.body, task.url, task.content_type)
    if task.kind is Kind.SITEMAP:
        return parse_sitemap(task.body, task.url)
    doc = Document(
        task.body, task.url, task.content_type, language=task.language, guarded=task.guarded
    )
    robots = doc.meta_robots | task.robots
    found = Html(robots, doc.base_url)
    if "nofollow" not in robots:
        links = doc.links()
        found.hrefs = [href for href, is_nofollow in links if not is_nofollow]
        found.nofollow = len(links) - len(found.hrefs)
        if task.kind in (Kind.HOME, Kind.SECTION):
            found.feeds, (found.menu, found.doubtful) = (
                onboarding.announced_feeds(doc),
                onboarding.menu(doc),
            )
            if task.headlines:
                found.headlines = teasers.headline_hrefs(doc)
        if task.may_be_section:
            found.feeds = onboarding.announced_feeds(doc)
    is_to_be_read = _is_to_be_read(task, doc)
    if task.kind is Kind.PAGE and not is_to_be_read:
        found.form = teasers.form(doc)
        is_to_be_read = task.read_if is ReadIf.TEXT and found.form == "text"
    if task.context is not None and is_to_be_read and "noindex" not in robots:
        found.extraction = extract(
            doc, task.context, _unpacked(task.selectors) if task.selectors else None
        )
    return found


def _is_to_be_read(task: Task, doc: Document) -> bool:
    """As an article, as far as the page's words say."""
    if task.context is None:
        return False
    return task.read_if is ReadIf.ALWAYS or claims_article(doc)


@lru_cache(maxsize=512)
def _unpacked(data: bytes) -> SelectorSet:
    selectors: SelectorSet = pickle.loads(data)
    return selectors


@dataclass(slots=True, eq=False)
class _PendingTask:
    task: Task
    cpu_s: float
    answer: asyncio.Future[Html | Feed | Sitemap]
    is_dealt_again: bool = False


class ParseProcesses:
    """:param processes: 0 = read here, between the fetches
    :param memory_bytes: what each of them may allocate; 0 = no limit"""

    def __init__(self, processes: int, memory_bytes: int = 0) -> None:
        self._children = [
            Child(
                "newscrawler.crawl.parse_process:read",
                cpu_s=_SECOND_TRY_CPU_S,
                memory_bytes=memory_bytes,
                hung_s=HUNG_S,
            )
            for _ in range(processes)
        ]
        self._pages: deque[_PendingTask] = deque()  # that no process has yet
        self._at: dict[Child, list[_PendingTask]] = {child: [] for child in self._children}
        self._open = 0
        self._timer: asyncio.TimerHandle | None = None
        self._heads: list[_PendingTask] = []  # what was being read at the last look
        self._packed: dict[str, tuple[SelectorSet, bytes]] = {}
        self._starting: list[asyncio.Future[Any]] = []
        self._low, self._on_low = -1, lambda: None

    def packed(self, selectors: SelectorSet) -> bytes:
        """A set for :class:`Task`, without what the executor does not need."""
        known = self._packed.get(selectors.domain)
        if known is None or known[0] is not selectors:
            data = pickle.dumps(replace(selectors, provenance={}), pickle.HIGHEST_PROTOCOL)
            known = self._packed[selectors.domain] = selectors, data
        return known[1]

    async def start(self) -> None:
        """Starts the processes and lets them import what they need, without waiting for that."""
        await asyncio.gather(*(child.start() for child in self._children))
        nothing = Task(b"", "", Kind.PAGE)
        self._starting = [asyncio.ensure_future(child.call(nothing)) for child in self._children]
        for call in self._starting:
            call.add_done_callback(
                lambda call: call.cancelled() or call.exception()
            )  # the first page will say it

    @property
    def is_ready(self) -> bool:
        """Whether each process has answered once: its imports take a second."""
        return all(child.has_answered for child in self._children)

    @property
    def waiting(self) -> int:
        """Pages that are being read or wait for it."""
        return self._open

    def call_at(self, low: int, on_low: Callable[[], None]) -> None:
        """``on_low`` is called whenever a page was read and no more than ``low``
        still wait; -1 = never."""
        self._low, self._on_low = low, on_low

    async def read(self, task: Task) -> Html | Feed | Sitemap:
        """:raises Unreadable: the page cannot be read by any means that leaves the crawl alive"""
        if not self._children:
            return read(task)
        self._open += 1
        try:
            return await self._read(task)
        finally:
            self._open -= 1
            if self.waiting <= self._low:
                self._on_low()

    async def _read(self, task: Task) -> Html | Feed | Sitemap:
        task.guarded = False
        first_try_s = _FIRST_TRY_CPU_S + _FIRST_TRY_CPU_S_PER_MB * len(task.body) / 1e6
        try:
            return await self._called(task, first_try_s)
        except ChildDied as exc:
            logger.warning(
                "Reading a page ended its process, once more with bounded markup url=%s error=%s",
                task.url,
                exc,
            )
        task.guarded = True
        try:
            return await self._called(task, _SECOND_TRY_CPU_S)
        except ChildDied as exc:
            raise Unreadable(str(exc)) from exc

    async def _called(self, task: Task, cpu_s: float) -> Html | Feed | Sitemap:
        page = _PendingTask(task, cpu_s, asyncio.get_running_loop().create_future())
        self._pages.append(page)
        self._deal()
        return await page.answer

    def _deal(self) -> None:
        """Pages to whoever has the fewest, no more than is needed to keep them busy."""
        while self._pages:
            child = min(self._children, key=lambda c: len(self._at[c]))
            if len(self._at[child]) >= _AHEAD:
                return
            page = self._pages.popleft()
            if page.answer.done():
                continue
            self._at[child].append(page)
            call = asyncio.ensure_future(child.call(page.task, cpu_s=page.cpu_s))
            call.add_done_callback(partial(self._answered, child, page))
            if self._timer is None and len(self._children) > 1:
                self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _answered(self, child: Child, page: _PendingTask, call: asyncio.Task[Any]) -> None:
        self._at[child].remove(page)
        if not page.answer.done():
            if call.cancelled():
                page.answer.cancel()
            elif (exc := call.exception()) is not None:
                page.answer.set_exception(exc)
            else:
                page.answer.set_result(call.result())
        elif not call.cancelled():
            call.exception()  # another has read it, or its caller was cancelled
        self._deal()

    def _look(self) -> None:
        """What stands behind a page that is being read since the last look goes to another process
        as well: reading is pure, and the first answer counts."""
        self._timer = None
        for pages in self._at.values():
            if pages and pages[0] in self._heads:
                behind = [page for page in pages[1:] if not page.is_dealt_again]
                for page in behind:
                    page.is_dealt_again = True
                self._pages.extendleft(reversed(behind))
        self._heads = [pages[0] for pages in self._at.values() if pages]
        self._deal()
        if self._heads and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    async def close(self) -> None:
        """Ends the processes when their pages are read."""
        dealt = chain.from_iterable(self._at.values())
        if pending := [page.answer for page in (*self._pages, *dealt)]:
            await asyncio.wait(pending)
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*(child.close() for child in self._children))

    @property
    def pids(self) -> list[int | None]:
        return [child.pid for child in self._children]

    @property
    def peak_kb(self) -> int:
        """Kilobytes that the processes had together at most; known when they are closed."""
        return sum(child.peak_kb for child in self._children)
