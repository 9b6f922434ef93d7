"""From the body of an answer to what stands in it: links, robots directives, fields, entries.

:func:`read` is pure and does all the work that a page costs beside fetching and storing it.
:class:`ParseProcesses` runs it in processes of its own (READ_PROCESSES), or here when there are
none.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from newscrawler.crawl.processes import Child, ChildDied
from newscrawler.discovery import onboarding
from newscrawler.discovery.feeds import Feed, parse_feed
from newscrawler.discovery.sitemaps import Sitemap, parse_sitemap
from newscrawler.extraction import teasers
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
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


@dataclass(slots=True)
class Task:
    """``context`` None: links only. ``robots``: directives of the answer's header. ``selectors``:
    from :meth:`ParseProcesses.packed`.

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
    selectors: bytes | None = None
    headlines: bool = False
    may_be_section: bool = False
    guarded: bool = True


@dataclass(slots=True)
class Html:
    """``robots``: directives of header and page. ``hrefs``: those that may be
    followed, see Document.links;
    ``nofollow``: links that may not be, by rel; none of either where the page's robots
        directives say nofollow.

    ``feeds``, ``menu``: of a home or section page, what its head and its menus announce;
    canonical addresses. ``doubtful``: in its menus too, but they look like an article's.

    ``headlines``: hrefs, where they were asked for. ``form``: what a page that was not read as an
    article is by its teasers (teasers.form), None = not looked at.

    ``extraction`` None: not asked for, or noindex.
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
        elif task.kind is Kind.PAGE and task.context is None:
            found.form = teasers.form(doc)
        if task.may_be_section:
            found.feeds = onboarding.announced_feeds(doc)
    if task.context is not None and "noindex" not in robots:
        found.extraction = extract(
            doc, task.context, _unpacked(task.selectors) if task.selectors else None
        )
    return found


@lru_cache(maxsize=512)
def _unpacked(data: bytes) -> SelectorSet:
    selectors: SelectorSet = pickle.loads(data)
    return selectors


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
        return sum(child.waiting for child in self._children)

    def call_at(self, low: int, on_low: Callable[[], None]) -> None:
        """``on_low`` is called whenever a page was read and no more than ``low``
        still wait; -1 = never."""
        self._low, self._on_low = low, on_low

    async def read(self, task: Task) -> Html | Feed | Sitemap:
        """:raises Unreadable: the page cannot be read by any means that leaves the crawl alive"""
        if not self._children:
            return read(task)
        try:
            return await self._read(task)
        finally:
            if self.waiting <= self._low:
                self._on_low()

    async def _read(self, task: Task) -> Html | Feed | Sitemap:
        child = min(self._children, key=lambda c: c.waiting)
        task.guarded = False
        first_try_s = _FIRST_TRY_CPU_S + _FIRST_TRY_CPU_S_PER_MB * len(task.body) / 1e6
        try:
            return await self._called(child, task, first_try_s)
        except ChildDied as exc:
            logger.warning(
                "Reading a page ended its process, once more with bounded markup url=%s error=%s",
                task.url,
                exc,
            )
        task.guarded = True
        try:
            return await self._called(child, task, _SECOND_TRY_CPU_S)
        except ChildDied as exc:
            raise Unreadable(str(exc)) from exc

    async def _called(self, child: Child, task: Task, cpu_s: float) -> Html | Feed | Sitemap:
        found: Html | Feed | Sitemap = await child.call(task, cpu_s=cpu_s)
        return found

    async def close(self) -> None:
        await asyncio.gather(*(child.close() for child in self._children))

    @property
    def pids(self) -> list[int | None]:
        return [child.pid for child in self._children]

    @property
    def peak_kb(self) -> int:
        """Kilobytes that the processes had together at most; known when they are closed."""
        return sum(child.peak_kb for child in self._children)
