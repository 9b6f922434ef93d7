"""First contact: each address of a site is asked once, through the gate, robots.txt and
guard of the crawl.

`scrapy sites check` calls :func:`check`. How answers are judged, and what is believed of them, is
in discovery.contact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from newscrawler.crawl import opening
from newscrawler.crawl.page_context import context_of
from newscrawler.crawl.polite_fetch import PoliteFetcher
from newscrawler.crawl.rendering import needs_browser
from newscrawler.discovery import contact
from newscrawler.discovery.contact import ArticleSeen, Contact, SeedSeen, SiteAnswer
from newscrawler.discovery.seeds import seeds
from newscrawler.discovery.sites import Site, Sites
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from newscrawler.fetch.client import FetchError, FetchFailed
from newscrawler.frontier import connect
from newscrawler.frontier.queue import FrontierRefused
from newscrawler.items import Kind, Link
from newscrawler.selectorsets.validation import value_agrees
from newscrawler.web import urls

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from newscrawler.extraction.selectors import SelectorSet

#: How long to wait for one turn, seconds. A site that asks for more (back-off) is
#: left for another day.
PATIENCE_S = 90.0
#: Articles that are read per site, and how many are tried for them.
ARTICLES, TRIES = 2, 4
SHOWN_FIELDS = ("title", "published", "authors", "content")


class NoTurn(Exception):
    """The site does not want to be asked now; what is left of it is asked next time."""


async def check(
    settings: BaseSettings,
    sites: Sequence[Site],
    *,
    again: bool = False,
    told: Callable[[Contact], None] = lambda _contact: None,
) -> list[Contact]:
    """Asks all sites at once, each at its own pace. What is learnt is kept in DATA_DIR as it comes,
    also when this is cancelled; a site that was looked at lately is not asked again, one that was
    half done is gone on with. Of a site that did not answer at all nothing is kept: what was known
    stays, and the next check asks it again.

    :param again: ask everything, whatever is known
    :param told: called for each site as it ends
    :raises newscrawler.frontier.queue.FrontierUnavailable, ValueError,
        crawl.opening.StartRefused: cannot begin
    """
    folder = opening.data_dir(settings)
    known = contact.read(folder)
    now = datetime.now(UTC)
    usable = {} if again else known
    chosen = [_known_or_new(site.id, usable.get(site.id), now) for site in sites]

    def keep() -> None:
        known.update({one.site: one for one in chosen if one.is_heard})
        if known:
            contact.write(folder, known.values())

    client = connect(opening.redis_url(settings), single=False)
    try:
        async with PoliteFetcher(settings) as fetcher:
            sets = opening.open_selector_store(settings, client)
            await sets.refresh()

            async def one(site: Site, seen: Contact) -> None:
                if not seen.complete:
                    chosen_set = sets.active(site.id) or sets.probation(site.id)
                    visitor = _Visitor(fetcher, site, seen, chosen_set)
                    await visitor.visit()
                    keep()
                told(seen)

            async with asyncio.TaskGroup() as group:
                for site, seen in zip(sites, chosen, strict=True):
                    group.create_task(one(site, seen))
    except ExceptionGroup as failed:  # the same for all of them: the queue is away
        raise failed.exceptions[0] from failed
    finally:
        keep()
        await client.aclose()
    return chosen


def _known_or_new(site: str, known: Contact | None, now: datetime) -> Contact:
    if known is not None and known.is_heard and known.is_fresh(now):
        return known
    return Contact(site)


class _Visitor:
    """One site: home, seeds, articles, in this order."""

    def __init__(
        self,
        fetcher: PoliteFetcher,
        site: Site,
        seen: Contact,
        selectors: SelectorSet | None,
    ) -> None:
        self._fetcher, self.seen = fetcher, seen
        self._selectors = selectors
        seen.selectors = selectors.label if selectors is not None else ""
        self._candidates: dict[str, None] = {}
        # by the address that is fetched: a seed may stand under two hosts
        self._asked: dict[str, SeedSeen] = {}
        self._unknown: set[str] = set()  # hosts whose names were not found
        self._at(site)

    def _at(self, site: Site) -> None:
        self.site = site
        self._sites = Sites([replace(site, enabled=True)])

    async def visit(self) -> None:
        try:
            await self._home()
            for url, kind in self._wanted():
                if self.seen.seed(url) is None:
                    self.seen.seeds.append(await self._seed(url, kind))
            await self._articles()
            self.seen.complete = True
        except NoTurn as exc:
            self.seen.robots = self.seen.robots or str(exc)
        except FrontierRefused as exc:  # paused by its operator, or its quota is spent
            self.seen.robots = str(exc)
        finally:  # also when this is cancelled: the next check goes on from here
            self.seen.checked = datetime.now(UTC).isoformat(timespec="seconds")

    async def _home(self) -> None:
        seen = self.seen
        if seen.home is not None and seen.home.moved_to:
            self._at(contact.with_home(self.site, seen.home.moved_to))
        try:
            page = await self._get(self.site.home)
        except FetchError as exc:
            seen.home = _failed(self.site.home, Kind.HOME, exc)
        else:
            home, site = contact.judge_home(page, self.site)
            seen.home = seen.home if seen.home is not None and seen.home.moved_to else home
            self._at(site)
            self._offer(page)
        await self._robots()

    async def _robots(self) -> None:
        found = await self._fetcher.robots(urls.domain_of(self.site.home))
        self.seen.robots = str(found[0]) if found else "no answer"
        self.seen.crawl_delay_s = found[1].crawl_delay if found else None

    def _wanted(self) -> list[tuple[str, Kind]]:
        """Each seed as the file or the operator writes it, once; those that are
        known to be dead too."""
        now_ms = round(datetime.now(UTC).timestamp() * 1000)
        found: dict[str, Kind] = {}
        for seed in seeds(self.site, now_ms):
            if seed.kind is not Kind.HOME:
                found.setdefault(seed.url, seed.kind)
        return list(found.items())

    async def _seed(self, url: str, kind: Kind) -> SeedSeen:
        link = self._sites.identify(url, kind=kind)
        if not isinstance(link, Link):
            return SeedSeen(url, str(kind), "refused", link.reason)
        seen = self._asked.get(link.url)
        if seen is None:
            seen = self._asked[link.url] = await self._look(link.url, kind)
        return replace(seen, url=url)

    async def _look(self, url: str, kind: Kind) -> SeedSeen:
        try:
            page = await self._get(url)
        except FetchError as exc:
            return _failed(url, kind, exc)
        seen = contact.judge_seed(page, kind, self.site, self._sites)
        if kind is Kind.FEED and seen.is_good:
            self._offer(page)
        return seen

    def _offer(self, page: SiteAnswer) -> None:
        if page.status == 200:
            self._candidates.update(dict.fromkeys(contact.article_links(page, self._sites)))

    async def _articles(self) -> None:
        seen = self.seen
        tried = {article.url for article in seen.articles}
        for url in self._candidates:
            read = sum(article.state == "article" for article in seen.articles)
            if read >= ARTICLES or len(seen.articles) >= TRIES:
                return
            if url not in tried:
                seen.articles.append(await self._article(url))

    async def _article(self, url: str) -> ArticleSeen:
        try:
            page = await self._get(url)
        except FetchError as exc:
            failed = _failed(url, Kind.ARTICLE, exc)
            return ArticleSeen(url, failed.state, failed.detail)
        if page.status != 200:
            is_gone = page.status in (404, 410)
            return ArticleSeen(url, "dead" if is_gone else "failed", f"status {page.status}")
        return await asyncio.to_thread(read_article, page, self.site, self._selectors)

    async def _get(self, url: str) -> SiteAnswer:
        """:raises NoTurn: the gate stays closed for longer than PATIENCE_S"""
        host = urls.domain_of(url) or ""
        if host in self._unknown:  # without a network each look-up may take seconds
            raise FetchFailed(url, f"name not found: {host}", "dns")
        try:
            got = await self._fetcher.get(url, patience_s=PATIENCE_S)
        except FetchError as exc:
            if exc.reason == "gate":
                raise NoTurn(str(exc)) from exc
            if exc.reason == "dns":
                self._unknown.add(host)
            raise
        return SiteAnswer(url, got.url, got.status, got.body, got.header("content-type"), got.hops)


def _failed(url: str, kind: Kind, exc: FetchError) -> SeedSeen:
    is_refused = exc.reason in ("robots", "ssrf", "scheme")
    return SeedSeen(url, str(kind), "refused" if is_refused else "failed", exc.reason)


def read_article(page: SiteAnswer, site: Site, selectors: SelectorSet | None) -> ArticleSeen:
    """The page read twice: with the set, and by the generic chain. Nothing of it is stored."""
    context = context_of(site, fetched=datetime.now(UTC))
    generic = extract(Document(page.body, page.url, page.content_type), context)
    if not generic.is_article:
        shell = "read without its scripts; a crawl reads it with a browser"
        why = shell if needs_browser(site, page.body) else generic.reason
        return ArticleSeen(page.asked, "not article", why)
    seen = ArticleSeen(page.asked, "article", generic.title.value or "")
    if selectors is not None:
        by_set = extract(Document(page.body, page.url, page.content_type), context, selectors)
        seen.fields = compared(by_set, generic)
    return seen


def compared(by_set: Extraction, generic: Extraction) -> dict[str, str]:
    """Field -> agrees | differs | missing. What neither finds is agreed on; so is
    what the set alone finds."""
    words = {}
    for name in SHOWN_FIELDS:
        value = getattr(by_set, name)
        own = value.value if value.origin.startswith("selector:") else None
        other = getattr(generic, name).value
        if not own:
            words[name] = "missing" if other and name in ("title", "content") else "agrees"
        else:
            words[name] = "agrees" if not other or value_agrees(name, own, other) else "differs"
    return words
