"""What the fleet learns of the links of each site: noted as pages are read, kept in Redis.

newscrawler.discovery.link_classes says what is counted and what follows from it. A worker uses its
own notes at once and those of the others when it writes its own.

    {links}:c:<site>  hash  source, class and shape -> count; "known", class and address -> 1
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zlib import crc32

from redis.asyncio import Redis

from newscrawler.crawl.decision import HtmlRead, ListRead
from newscrawler.discovery import twins
from newscrawler.discovery.link_classes import (
    LinkClass,
    SiteClasses,
    Source,
    bare,
    field_of,
    known_field,
    shapes,
)
from newscrawler.frontier.errors import translated
from newscrawler.items import Kind, Link

if TYPE_CHECKING:
    from newscrawler.crawl.page import Page
    from newscrawler.discovery.sitefile import Site

#: Fields of a site; what comes above them is not kept. A site has some dozens of shapes.
MOST_FIELDS = 1_000
#: Of these, single addresses and second addresses: what is learned last must find room, too.
MOST_OF = {"known": 300, "twin": 50, "own": 50}
MOST_SHAPES = MOST_FIELDS - sum(MOST_OF.values())
#: Days after the last note of a site's links that what it taught is kept.
KEEP_DAYS = 90
#: Shapes of all sites of which the first pages are read early.
MOST_EXPLORED = 10_000
#: Seconds between two writes of a worker.
FLUSH_S = 2.0
#: Headlines of lists are looked at until so many pages of the site were read: then its pages teach.
TAUGHT_PAGES = 50
#: Pages of a shape that is known are noted one in so many, with that weight, above these.
SAMPLE, SAMPLE_FROM = 16, 200
#: Pages of a shape of which nothing is known that are read early.
EXPLORED = 3
#: Reasons of a page that is no article which say what it is instead.
#: A stub may be an article's first minutes, or one that is paid for: it says nothing of others.
_LABELS = {"listing": LinkClass.LIST, "page": LinkClass.OTHER}
_FORMS = {"list": LinkClass.LIST, "": LinkClass.OTHER}


def key(site: str) -> str:
    return f"{{links}}:c:{site}"


def split(url: str) -> tuple[str, str]:
    """Path and query."""
    parts = urlsplit(url)
    return parts.path or "/", parts.query


class LinkLearning:
    """:param client: of the frontier; its answers are bytes. None: there is no frontier
    :attr version: another one where a link may be of another class than before"""

    def __init__(self, client: Redis | None) -> None:
        self.client: Any = client
        self.version = 0
        self._sites: dict[str, SiteClasses] = {}
        self._menus: dict[str, set[str]] = {}
        self._notes: dict[str, Counter[str]] = {}
        self._doubtful: set[str] = set()
        self._explored: dict[tuple[str, str], set[str]] = {}
        self._next = 0.0

    # ------------------------------------------------------------------ asked
    def of(self, site: str) -> SiteClasses:
        found = self._sites.get(site)
        if found is None:
            found = self._sites[site] = SiteClasses(menu=self._menus.get(site, ()))
        return found

    def kind_of(self, site: Site, link: Link, *, is_named: bool = False) -> Kind:
        """What was learned of a link, else what its address looks like. Where sites.json has a
        pattern of articles it decides. ``is_named``: a feed or news sitemap gives it with title and
        time, which is an article's unless its own page was read and is none, or a menu names it."""
        if site.article_pattern or link.kind not in (Kind.ARTICLE, Kind.PAGE):
            return link.kind
        verdict = self.of(site.id).judge(*split(link.url))
        if verdict is None or not verdict.is_of_page:
            if is_named and not self.names_section(site, link.url):
                return Kind.ARTICLE  # what is said of it is more than what others like it were
            if link.url in self._doubtful:
                return Kind.PAGE
        if verdict is None:
            return link.kind
        return Kind.ARTICLE if verdict.class_ is LinkClass.ARTICLE else Kind.PAGE

    def original(self, site: Site, url: str) -> str | None:
        """The article's own address, where this is a second one by a rule of the site."""
        classes = self.of(site.id)
        return twins.original(url, classes.twins, classes.own) if classes.twins else None

    def note_twin(self, site: str, url: str, original: str) -> None:
        """The page had the text of the article that is stored from its own address."""
        rule = twins.rule_of(url, original)
        if rule is not None:
            self._count_twin(site, "twin", rule)

    def note_own(self, site: str, url: str) -> None:
        """The article of a page is at home there."""
        for rule in list(self.of(site).twins):
            if twins.applied(rule, url) is not None:
                self._count_twin(site, "own", rule)

    def _count_twin(self, site: str, side: str, rule: str) -> None:
        counts = self.of(site).twins if side == "twin" else self.of(site).own
        counts[rule] = counts.get(rule, 0) + 1
        self._notes.setdefault(site, Counter())[f"{side} {rule}"] += 1
        self.version += counts[rule] in (1, twins.ENOUGH)

    def explores(self, site: Site, link: Link) -> bool:
        """Whether the page is to be read soon, as nothing is known of others like it: so of each
        shape a few pages teach what the rest are."""
        if site.article_pattern or link.kind is not Kind.PAGE:
            return False
        path, query = split(link.url)
        if link.url in self._doubtful:
            return True
        if self.of(site.id).judge(path, query) is not None:
            return False
        name = (site.id, shapes(path, query)[1])
        if name not in self._explored and len(self._explored) >= MOST_EXPLORED:
            return False
        chosen = self._explored.setdefault(name, set())
        if len(chosen) < EXPLORED:
            chosen.add(link.url)
        return link.url in chosen

    def is_list(self, site: Site, url: str) -> bool:
        """Whether it is known to be one, by its page or by others of its shape."""
        verdict = self.of(site.id).judge(*split(url))
        return verdict is not None and verdict.class_ is LinkClass.LIST

    def wants_headlines(self, site: Site) -> bool:
        return not site.article_pattern and self.of(site.id).pages < TAUGHT_PAGES

    # ------------------------------------------------------------------ told
    def note_page(self, page: Page, result: HtmlRead) -> None:
        """What a page that was read turned out to be."""
        if page.site.article_pattern or page.lease.content_state or page.kind is Kind.HOME:
            return  # looked at again: it was noted when it was new
        label = _label(result)
        if label is not None:
            self.note_read(page.site.id, page.lease.url, label)

    def note_read(self, site: str, url: str, label: LinkClass) -> None:
        path, query = split(url)
        classes, fine = self.of(site), shapes(path, query)[0]
        before = classes.by_shape(path, query)
        count = 1
        if before is not None and before.class_ is label and classes.pages >= SAMPLE_FROM:
            if crc32(url.encode()) % SAMPLE:
                return
            count = SAMPLE
        self._add(site, Source.PAGE, label, fine, count)
        if before is not None and before.class_ is label:
            return
        if label is not LinkClass.ARTICLE:
            self._know_exception(site, path, query, label)
        after = classes.by_shape(path, query)
        if (before and before.class_) != (after and after.class_):
            self.version += 1

    def _know_exception(self, site: str, path: str, query: str, label: LinkClass) -> None:
        """A page that is no article, where its shape does not say so."""
        found = self.of(site).by_shape(path, query)
        if found is None or found.class_ is not label:
            address = f"{path}?{query}" if query else path
            self.of(site).know(label, address)
            self._notes.setdefault(site, Counter())[known_field(label, address)] += 1
            self.version += 1

    def note_list(self, page: Page, result: ListRead, headlines: Sequence[str]) -> None:
        """The links of a list that the fleet did not know. ``headlines``: addresses."""
        if page.site.article_pattern:
            return
        site = page.site.id
        if page.kind in (Kind.FEED, Kind.SITEMAP):
            for link in result.found.links:
                if (link.hint or {}).get("title") and (link.hint or {}).get("published"):
                    self._add(site, Source.NAMED, LinkClass.ARTICLE, shapes(*split(link.url))[0])
        else:
            for url in headlines:
                if not self.is_list(page.site, url):
                    self._add(site, Source.TEASER, LinkClass.ARTICLE, shapes(*split(url))[0])
        if result.found.links or headlines:
            self.version += self.of(site).pages < TAUGHT_PAGES

    def is_doubtful(self, url: str) -> bool:
        return url in self._doubtful

    def names_section(self, site: Site, url: str) -> bool:
        """Whether a page that was queued as another kind is a section by now."""
        address = bare("?".join(filter(None, split(url))))
        return not site.article_pattern and address in self.of(site.id).menu

    def is_section(self, url: str, result: HtmlRead) -> bool:
        """Whether a menu names the page, and it is no article though its address looks like one."""
        return url in self._doubtful and _label(result) in (LinkClass.LIST, LinkClass.OTHER)

    def note_doubtful(self, site: Site, urls: Iterable[str]) -> None:
        """In a menu under a short name, though their addresses look like an article's: they are
        read soon, and what they turn out to be decides."""
        new = set(urls) - self._doubtful if not site.article_pattern else ()
        if new and len(self._doubtful) < MOST_FIELDS:
            self._doubtful.update(new)
            self.version += 1

    def note_known(self, site: Site, sections: Iterable[str]) -> None:
        """At a start: sections that sites.json names, or the fleet has found."""
        menu = self._menus.setdefault(site.id, set())
        for url in (*site.sections, *sections):
            path, query = split(url)
            menu.add(f"{path}?{query}" if query else path)

    def note_menu(self, site: str, urls: Iterable[str]) -> None:
        """Sections, by their menus or by sites.json."""
        menu, classes = self._menus.setdefault(site, set()), self.of(site)
        for url in urls:
            path, query = split(url)
            address = f"{path}?{query}" if query else path
            if address not in menu:
                menu.add(address)
                classes.add_menu(address)
                self._add(site, Source.MENU, LinkClass.LIST, shapes(path, query)[0])
                self.version += 1

    def _add(self, site: str, source: Source, class_: LinkClass, fine: str, count: int = 1) -> None:
        self.of(site).add(source, class_, fine, count)
        self._notes.setdefault(site, Counter())[field_of(source, class_, fine)] += count

    # ------------------------------------------------------------------ Redis
    async def load(self, sites: Iterable[str]) -> None:
        """What the fleet knows of these. :raises FrontierUnavailable:"""
        for site in sites:
            with translated():
                counts = await self.client.hgetall(key(site))
            self._take(site, counts)

    async def flush(self, *, is_last: bool = False) -> None:
        """Writes what is due and reads what the others wrote. What cannot be written now is
        dropped: further pages say the same.

        :raises FrontierUnavailable: Redis does not answer
        """
        if (
            self.client is None
            or not self._notes
            or (time.monotonic() < self._next and not is_last)
        ):
            return
        notes, self._notes = self._notes, {}
        self._next = time.monotonic() + FLUSH_S
        pipe = self.client.pipeline(transaction=False)
        for site in notes:
            pipe.hgetall(key(site))
        with translated():
            known = dict(zip(notes, await pipe.execute(), strict=True))
            pipe = self.client.pipeline(transaction=False)
            for site, counts in notes.items():
                self._write(pipe, site, counts, known[site])
            await pipe.execute()

    def _write(self, pipe: Any, site: str, counts: Counter[str], known: dict[bytes, bytes]) -> None:
        used = Counter(_sort(name.decode()) for name in known)
        for name, count in counts.items():
            field, sort = name.encode(), _sort(name)
            if field not in known:
                if used[sort] >= MOST_OF.get(sort, MOST_SHAPES):
                    continue
                used[sort] += 1
            pipe.hincrby(key(site), name, count)
            known[field] = str(int(known.get(field, 0)) + count).encode()
        pipe.expire(key(site), KEEP_DAYS * 86_400)
        self._take(site, known)

    def _take(self, site: str, counts: dict[bytes, bytes]) -> None:
        before = self._sites.get(site)
        named = {name.decode(): int(count) for name, count in counts.items()}
        self._sites[site] = SiteClasses(named, self._menus.get(site, ()))
        if before is None or before.pages < TAUGHT_PAGES:
            self.version += 1


def _sort(name: str) -> str:
    """Of a field: one of MOST_OF, or "" for a count of a shape."""
    first = name.partition(" ")[0]
    return first if first in MOST_OF else ""


def _label(result: HtmlRead) -> LinkClass | None:
    """None: the page does not say."""
    if result.extraction is None:
        return None if result.form is None else _FORMS.get(result.form)
    if result.extraction.is_article:
        return LinkClass.ARTICLE
    return _LABELS.get(result.extraction.reason)
