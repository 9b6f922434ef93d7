"""What the fleet learns of the links of each site: noted as pages are read, kept in Redis.

newscrawler.discovery.link_classes says what is counted and what follows from it. A worker uses its
own notes at once and those of the others when it writes its own.

    {links}:c:<site>  hash  source, class and shape -> count; "known", class and address -> 1;
                            "read" -> pages noted since the counts were made smaller last
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zlib import crc32

from redis.asyncio import Redis

from newscrawler.crawl.decision import HtmlRead, ListRead, class_of
from newscrawler.discovery import articles, second_addresses
from newscrawler.discovery.link_classes import (
    OWN,
    SECOND,
    LinkClass,
    SiteClasses,
    Source,
    bare,
    bounded,
    faded,
    field_of,
    known_field,
    shape_of,
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
MOST_OF = {"known": 300, SECOND: 50, OWN: 50}
MOST_SHAPES = MOST_FIELDS - sum(MOST_OF.values())
#: Days after the last note of a site's links that what it taught is kept.
KEEP_DAYS = 90
#: Shapes of all sites of which the first pages are read early.
MOST_EXPLORED = 10_000
#: Seconds between two writes of a worker.
FLUSH_S = 2.0
#: After so many notes of a site's pages its counts are made smaller, see link_classes.faded.
FADED_AFTER = 500
#: So many pages of a shape in a row that are of another class than it: the site has given it
#: another meaning, and what was counted before says nothing any more. Of a shape of which one page
#: in seven is of another class, so many in a row come once in five million.
CHANGED_AFTER = 8
#: The field that counts them.
READ = "read"
#: Headlines of lists are looked at until so many pages of the site were read: then its pages teach.
TAUGHT_PAGES = 50
#: Pages of a shape that is known are noted one in so many, with that weight, above these.
SAMPLE, SAMPLE_FROM = 8, 60
#: Addresses of one site whose look and whose place in a menu say two things; and sites that have
#: some. The oldest are forgotten: their pages were read long ago, or never will be.
MOST_DOUBTFUL, MOST_DOUBTFUL_SITES = 100, 5_000
#: Entries of feeds that a page had linked to before, under addresses that do not look like an
#: article's: what feeds say of them. Of all sites.
MOST_NAMED = 5_000
#: Pages of a shape of which nothing is known that are read early.
EXPLORED = 3


def key(site: str) -> str:
    return f"{{links}}:c:{site}"


def split(url: str) -> tuple[str, str]:
    """Path and query."""
    parts = urlsplit(url)
    return parts.path or "/", parts.query


class LinkLearning:
    """:param client: of the frontier; its answers are bytes. None: there is no frontier
    :attr version: another one where a link of some site may be of another class than before"""

    def __init__(self, client: Redis | None) -> None:
        self.client: Any = client
        self.version = 0
        self._versions: dict[str, int] = {}
        self._sites: dict[str, SiteClasses] = {}
        self._menus: dict[str, set[str]] = {}
        self._notes: dict[str, Counter[str]] = {}
        self._gone: dict[str, set[str]] = {}  # site -> fields that hold no more
        self._contrary: dict[tuple[str, str], int] = {}  # site and shape -> pages in a row
        self._doubtful: OrderedDict[str, dict[str, None]] = OrderedDict()
        self._explored: dict[tuple[str, str], set[str]] = {}
        self._named: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._next = 0.0

    # ------------------------------------------------------------------ asked
    def version_of(self, site: str) -> int:
        """Another number where a link of this site may be of another class than before."""
        return self._versions.get(site, 0)

    def _changed(self, site: str) -> None:
        self.version += 1
        self._versions[site] = self.version

    def of(self, site: str) -> SiteClasses:
        found = self._sites.get(site)
        if found is None:
            found = self._sites[site] = SiteClasses(menu=self._menus.get(site, ()))
        return found

    def kind_of(self, site: Site, link: Link, *, is_named: bool = False) -> Kind:
        """The kind that was learned of a link, else the one of its address. Where sites.json has a
        pattern of articles it decides. ``is_named``: a feed or news sitemap gives it with title and
        time, which is an article's unless its own page was read and is none, or a menu names it."""
        if site.article_pattern or link.kind not in (Kind.ARTICLE, Kind.PAGE):
            return link.kind
        verdict = self.of(site.id).judge(*split(link.url))
        if verdict is None or not verdict.is_of_page:
            if is_named and not self.names_section(site, link.url):
                return Kind.ARTICLE  # what is said of it is more than what others like it were
            if self.is_doubtful(site.id, link.url):
                return Kind.PAGE
        if verdict is None:
            return link.kind
        return Kind.ARTICLE if verdict.class_ is LinkClass.ARTICLE else Kind.PAGE

    def original(self, site: Site, url: str) -> str | None:
        """The article's own address, where this is a second one by a rule of the site."""
        classes = self.of(site.id)
        if not classes.second:
            return None
        return second_addresses.original(url, classes.second, classes.own)

    def note_second_address(self, site: str, url: str, original: str) -> None:
        """The page had the text of the article that is stored from its own address."""
        rule = second_addresses.rule_of(url, original)
        if rule is not None:
            self._count_address(site, SECOND, rule)

    def note_own(self, site: str, url: str) -> None:
        """The article of a page is at home there."""
        for rule in list(self.of(site).second):
            if second_addresses.applied(rule, url) is not None:
                self._count_address(site, OWN, rule)

    def _count_address(self, site: str, side: str, rule: str) -> None:
        classes = self.of(site)
        classes.count(f"{side} {rule}")
        self._notes.setdefault(site, Counter())[f"{side} {rule}"] += 1
        counts = classes.second if side == SECOND else classes.own
        if counts[rule] in (1, second_addresses.ENOUGH):
            self._changed(site)

    def explores(self, site: Site, link: Link) -> bool:
        """Whether the page is to be read soon, as nothing is known of others like it: so of each
        shape a few pages teach what the rest are."""
        if site.article_pattern or link.kind is not Kind.PAGE:
            return False
        path, query = split(link.url)
        if self.is_doubtful(site.id, link.url):
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

    def class_of(self, site: Site, url: str) -> LinkClass | None:
        """By its page, the menu or others of its shape. None: too little is known, or sites.json
        has a pattern of articles, which decides."""
        verdict = None if site.article_pattern else self.of(site.id).judge(*split(url))
        return verdict.class_ if verdict is not None else None

    def is_list(self, site: Site, url: str) -> bool:
        """Whether it is known to be one, by its page or by others of its shape."""
        verdict = self.of(site.id).judge(*split(url))
        return verdict is not None and verdict.class_ is LinkClass.LIST

    def named(self, url: str) -> dict[str, Any] | None:
        """Title and time that a feed gave an address which had been queued as another page before.
        Known to the worker that read the feed."""
        return self._named.get(url)

    def kind_now(self, site: Site, url: str, kind: Kind) -> Kind:
        """What a page that waits has turned out to be since it was queued."""
        if kind is not Kind.PAGE:
            return kind
        if self.names_section(site, url):
            return Kind.SECTION
        return Kind.ARTICLE if url in self._named else kind

    def wants_headlines(self, site: Site) -> bool:
        return not site.article_pattern and self.of(site.id).pages < TAUGHT_PAGES

    # ------------------------------------------------------------------ told
    def note_page(self, page: Page, result: HtmlRead) -> None:
        """Notes the class of a page that was read."""
        if page.site.article_pattern or page.lease.content_state or page.kind is Kind.HOME:
            return  # looked at again: it was noted when it was new
        label = class_of(result)
        if label is not None:
            self.note_read(page.site.id, page.lease.url, label)

    def note_read(self, site: str, url: str, label: LinkClass) -> None:
        path, query = split(url)
        classes, fine = self.of(site), shapes(path, query)[0]
        self._settle(site, url)
        before = classes.by_shape(path, query)
        self._forget_exception(site, path, query, label)
        self._look_for_change(
            site, fine, label, is_other=bool(before and before.class_ is not label)
        )
        count = 1
        if before is not None and before.class_ is label and before.weight >= SAMPLE_FROM:
            if crc32(url.encode()) % SAMPLE:
                return
            count = SAMPLE
        self._add(site, Source.PAGE, label, fine, count)
        self._notes[site][READ] += count
        if before is not None and before.class_ is label:
            return
        if label is not LinkClass.ARTICLE:
            self._know_exception(site, path, query, label)
        after = classes.by_shape(path, query)
        if (before and before.class_) != (after and after.class_):
            self._changed(site)

    def _look_for_change(self, site: str, fine: str, label: LinkClass, *, is_other: bool) -> None:
        name = (site, fine)
        if not is_other:
            self._contrary.pop(name, None)
            return
        if name not in self._contrary and len(self._contrary) >= MOST_EXPLORED:
            self._contrary.clear()
        self._contrary[name] = self._contrary.get(name, 0) + 1
        if self._contrary[name] < CHANGED_AFTER:
            return
        del self._contrary[name]
        gone = self.of(site).drop_others(fine, label)
        self._gone.setdefault(site, set()).update(gone)
        notes = self._notes.get(site, Counter())
        for one in gone:
            notes.pop(one, None)
        self._changed(site)

    def _settle(self, site: str, url: str) -> None:
        """The page was read: what it is is known by that."""
        urls = self._doubtful.get(site, {})
        if url in urls:
            del urls[url]
            self._changed(site)

    def _know_exception(self, site: str, path: str, query: str, label: LinkClass) -> None:
        """A page that is no article, where its shape does not say so."""
        found = self.of(site).by_shape(path, query)
        if found is None or found.class_ is not label:
            address = _address(path, query)
            self.of(site).know(label, address)
            self._notes.setdefault(site, Counter())[known_field(label, address)] += 1
            self._changed(site)

    def _forget_exception(self, site: str, path: str, query: str, label: LinkClass) -> None:
        """The page is something else now than when it was noted by its address."""
        address = _address(path, query)
        known = self.of(site).known_as(address)
        if known is not None and known is not label:
            self.of(site).forget(known, address)
            self._gone.setdefault(site, set()).add(known_field(known, address))
            self._notes.setdefault(site, Counter()).pop(known_field(known, address), None)
            self._changed(site)

    def note_list(self, page: Page, result: ListRead, headlines: Sequence[str]) -> None:
        """The links of a list that the fleet did not know. ``headlines``: addresses."""
        if page.site.article_pattern:
            return
        site = page.site.id
        if page.kind in (Kind.FEED, Kind.SITEMAP):
            # When a list is read first, its entries may be known from a page: they teach, too.
            is_first = not page.lease.content_state
            for link in result.found.admitted if is_first else result.found.links:
                if _is_named(link):
                    self._add(site, Source.NAMED, LinkClass.ARTICLE, shapes(*split(link.url))[0])
            self._note_named(result.found.admitted)
        else:
            for url in headlines:
                if not self.is_list(page.site, url):
                    self._add(site, Source.TEASER, LinkClass.ARTICLE, shapes(*split(url))[0])
        if (result.found.links or headlines) and self.of(site).pages < TAUGHT_PAGES:
            self._changed(site)

    def _note_named(self, links: Iterable[Link]) -> None:
        for link in links:
            path, query = split(link.url)
            if (
                link.kind is Kind.ARTICLE
                and _is_named(link)
                and articles.path_score(path, query) < articles.ARTICLE_SCORE
            ):
                self._named[link.url] = dict(link.hint or {})
                self._named.move_to_end(link.url)
        while len(self._named) > MOST_NAMED:
            self._named.popitem(last=False)

    def is_doubtful(self, site: str, url: str) -> bool:
        return url in self._doubtful.get(site, ())

    def names_section(self, site: Site, url: str) -> bool:
        """Whether a page that was queued as another kind is a section by now."""
        address = bare("?".join(filter(None, split(url))))
        return not site.article_pattern and address in self.of(site.id).menu

    def note_doubtful(self, site: Site, urls: Iterable[str]) -> None:
        """In a menu under a short name, though their addresses look like an article's: they are
        read soon, and what they turn out to be decides."""
        if site.article_pattern:
            return
        classes, known = self.of(site.id), self._doubtful.get(site.id, {})
        new = [url for url in urls if url not in known and not _is_read(classes, url)]
        if not new:
            return
        known = self._doubtful.setdefault(site.id, {})
        self._doubtful.move_to_end(site.id)
        known.update(dict.fromkeys(new))
        for url in list(known)[: max(0, len(known) - MOST_DOUBTFUL)]:
            del known[url]
        if len(self._doubtful) > MOST_DOUBTFUL_SITES:
            self._doubtful.popitem(last=False)
        self._changed(site.id)

    def note_known(self, site: Site, sections: Iterable[str]) -> None:
        """At a start: sections that sites.json names, or the fleet has found."""
        menu = self._menus.setdefault(site.id, set())
        for url in (*site.sections, *sections):
            address = _address(*split(url))
            menu.add(address)
            if site.id in self._sites:
                self._sites[site.id].add_menu(address)

    def note_menu(self, site: str, urls: Iterable[str]) -> None:
        """Sections, by their menus or by sites.json."""
        menu, classes = self._menus.setdefault(site, set()), self.of(site)
        for url in urls:
            path, query = split(url)
            address = _address(path, query)
            if address not in menu:
                menu.add(address)
                classes.add_menu(address)
                self._add(site, Source.MENU, LinkClass.LIST, shapes(path, query)[0])
                self._changed(site)

    def _add(self, site: str, source: Source, class_: LinkClass, fine: str, count: int = 1) -> None:
        self.of(site).add(source, class_, fine, count)
        self._notes.setdefault(site, Counter())[field_of(source, class_, fine)] += count

    # ------------------------------------------------------------------ Redis
    async def load(self, sites: Iterable[str]) -> None:
        """Reads what the fleet knows of these sites. :raises FrontierUnavailable:"""
        for site in sites:
            with translated():
                counts = await self.client.hgetall(key(site))
            self._take(site, {name.decode(): int(count) for name, count in counts.items()})

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
        """Adds what was noted. Counts are made smaller by what was read a moment ago: what another
        worker adds between is lost then, which is a page or two of hundreds."""
        named = {name.decode(): int(count) for name, count in known.items()}
        used = Counter(_sort(name) for name in named)
        written: set[str] = set()
        for name, count in counts.items():
            sort = _sort(name)
            if name not in named:
                if used[sort] >= MOST_OF.get(sort, MOST_SHAPES):
                    continue
                used[sort] += 1
            pipe.hincrby(key(site), name, count)
            named[name] = named.get(name, 0) + count
            written.add(name)
        smaller = dict.fromkeys(self._gone.pop(site, ()), 0)
        for shape in {shape for name in written if (shape := shape_of(name))}:
            smaller |= bounded({**named, **smaller}, shape)
        if named.get(READ, 0) >= FADED_AFTER:
            smaller |= faded({**named, **smaller}) | {READ: 0}
        _make_smaller(pipe, site, smaller)
        pipe.expire(key(site), KEEP_DAYS * 86_400)
        self._take(site, {**named, **smaller})

    def _take(self, site: str, counts: dict[str, int]) -> None:
        classes = self._sites.get(site)
        is_young = classes is None or classes.pages < TAUGHT_PAGES
        self.of(site).renew({name: count for name, count in counts.items() if count})
        if is_young:
            self._changed(site)


def _make_smaller(pipe: Any, site: str, counts: dict[str, int]) -> None:
    if gone := [name for name, count in counts.items() if not count]:
        pipe.hdel(key(site), *gone)
    if left := {name: count for name, count in counts.items() if count}:
        pipe.hset(key(site), mapping=left)


def _is_named(link: Link) -> bool:
    """With title and time, as a feed or news sitemap does."""
    hint = link.hint or {}
    return bool(hint.get("title") and hint.get("published"))


def _is_read(classes: SiteClasses, url: str) -> bool:
    """Whether it is known of the page itself what it is."""
    path, query = split(url)
    verdict = classes.judge(path, query)
    return verdict is not None and (
        verdict.is_of_page or bare(_address(path, query)) in classes.menu
    )


def _address(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path


def _sort(name: str) -> str:
    """Of a field: one of MOST_OF, or "" for a count of a shape."""
    first = name.partition(" ")[0]
    return first if first in MOST_OF else ""
