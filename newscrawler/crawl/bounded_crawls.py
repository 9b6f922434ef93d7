"""Bounded crawls at work: what a worker does for them beside its other pages, and how one is begun
and cancelled.

There is no second engine. A crawl's URLs are queued in the fleet's frontier (``Frontier.want``) and
leased, fetched, read and stored as all others; a lease says which crawls want its URL
(``Lease.wanted``). When the visit has ended, and before it is acked, :meth:`BoundedCrawls.settle`
counts the page and offers the links on it. :meth:`BoundedCrawls.look` finds what a process that
died, or an operator, left behind, so that a crawl always comes to its end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from newscrawler.discovery.sites import Refusal, Site, Sites
from newscrawler.fetch import address_guard
from newscrawler.frontier.bounded import (
    LOOK_MS,
    MOST_RUNNING,
    Crawl,
    CrawlBook,
    CrawlRefused,
    Ended,
    Entry,
)
from newscrawler.frontier.queue import Ack, Frontier, FrontierConfig
from newscrawler.frontier.types import Wanted
from newscrawler.items import LIST_KINDS, Kind, Link, Outcome
from newscrawler.utils.display import iso_of
from newscrawler.web.robots import RobotsRules

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from newscrawler.crawl.page import Page
    from newscrawler.frontier.operator import Operator
    from newscrawler.frontier.types import DomainPolicy, Lease
    from newscrawler.items import Visit

__all__ = ["MOST_RUNNING", "BoundedCrawls", "Crawl", "CrawlBook", "CrawlRefused"]

logger = logging.getLogger(__name__)

#: Visits of a page that a bounded crawl waits for: the second comes after a minute, the third after
#: four more. What fails twice has failed for the crawl; the frontier goes on trying by itself.
TRIES = 2
#: Seconds that the lookup of a name may take when a crawl is asked for.
ADDRESS_S = 5.0
#: Seconds between two looks of a worker.
LOOK_S = 1.0
#: URLs that one look is for; as many as one script call takes.
LOOK_URLS = 64
#: A URL that had to be queued so often has failed: its records go as soon as they come.
MOST_QUEUED = 5
#: After this a URL that is being fetched for others is looked at again, ms.
BUSY_MS = 5_000
#: Outcomes of a page that the site answered with something that could be used.
_FETCHED = (Outcome.DONE, Outcome.UNCHANGED, Outcome.NOT_ARTICLE, Outcome.REDIRECTED)
#: Refusals before anything was asked of the site.
_NOT_ASKED = ("robots", "robots_unknown", "ssrf", "scheme", "offsite")


class Worker(Protocol):
    """What of crawl.services.Services is used here."""

    settings: BaseSettings
    sites: Sites
    chosen: list[str]

    @property
    def frontier(self) -> Frontier: ...
    def policies_of(self, sites: Sites) -> list[DomainPolicy]: ...


class BoundedCrawls:
    """One worker's part. The lease loop calls :meth:`look` and :meth:`settle`, as it alone talks to
    the frontier."""

    def __init__(self, services: Worker) -> None:
        self._services = services
        self._frontier: Frontier = services.frontier
        self.book = CrawlBook(self._frontier.client, self._frontier.scripts)
        settings = services.settings
        self._fresh_s = settings.getint("BOUNDED_CRAWL_FRESH_S")
        self._max_tries = settings.getint("FRONTIER_MAX_TRIES")
        self._crawls: dict[str, Crawl] = {}  # what never changes of them
        self._next_look = 0.0

    # -- what the spider says of a page
    def is_only_wanted(self, lease: Lease) -> bool:
        """Whether nothing but bounded crawls asks for the page: it came into the queue by one, and
        this worker does not crawl its site. Then nothing that lies beyond their bounds is queued.
        """
        return not lease.was_known and lease.site not in self._services.chosen

    async def is_for_crawls(self, lease: Lease) -> bool:
        """The same of a robots.txt: its sitemaps lead beyond all bounds."""
        if lease.site in self._services.chosen:
            return False
        found = [await self.book.get(crawl_id) for crawl_id in await self.book.running()]
        crawls = [crawl for crawl in found if crawl is not None and crawl.site == lease.site]
        state = await self._frontier.operator.state(lease.domain)
        of_others = state.queued + state.due - sum(crawl.open for crawl in crawls) if state else 0
        return bool(crawls) and of_others <= 0

    def note(self, page: Page, links: Sequence[Link], visit: Visit) -> None:
        """The links that a page has, as far as they are of its site. Called for leases that a crawl
        wants."""
        sites = self._services.sites
        found = links if visit.outcome is not Outcome.REDIRECTED else visit.links
        children = [
            link for link in found if _is_page(link, page.kind) and _is_of(sites, link, page.site)
        ]
        # Where max_pages does not allow all of them: articles before the menu above them.
        children.sort(key=lambda link: link.kind is not Kind.ARTICLE)
        page.lease.children = children
        if self.is_only_wanted(page.lease):
            visit.links, visit.next_visit_ms = [], 0

    def ended(self, visit: Visit, outcome: Outcome, reason: str) -> None:
        """A listener of crawl.visits: what became of the article."""
        lease = visit.lease
        if lease is None or not lease.wanted:
            return
        if visit.article is not None and outcome is Outcome.DONE:
            lease.article = visit.stored or "unchanged"
        elif outcome is Outcome.UNCHANGED and lease.kind not in LIST_KINDS and lease.content_state:
            lease.article = "unchanged"

    # -- before visits are acked
    async def settle(self, acks: Sequence[Ack], now_ms: int) -> bool:
        """Counts the pages that have ended and offers the links on them. Whether there were any.
        May be repeated with the same acks.

        :raises FrontierUnavailable: Redis does not answer; the acks are to be kept
        """
        wanted = [ack for ack in acks if ack.lease.wanted and ack.lease.kind is not Kind.ROBOTS]
        for ack in wanted:
            await self._settle(ack, now_ms)
        return bool(wanted)

    async def _settle(self, ack: Ack, now_ms: int) -> None:
        lease = ack.lease
        if not self._is_final(ack):
            if ack.moved_to:
                await self._note_move(ack)
            return
        ended = _ended(ack)
        for one in lease.wanted:
            crawl = await self._crawl(one.crawl)
            if crawl is None:
                continue
            is_moved = ack.outcome is Outcome.REDIRECTED
            level = one.level if is_moved else one.level + 1
            links = (lease.children or []) if level <= one.levels else []
            taken = await self.book.page_ended(
                one.crawl, lease.url_id, ended, level=level, links=links, now_ms=_now_ms()
            )
            await self._want(crawl, level, [x for x in links if x.url_id in taken], now_ms)
        await self.book.unmark([_link(lease)], self._frontier.layout)
        if self.is_only_wanted(lease):
            self._end_for_good(ack)

    def _is_final(self, ack: Ack) -> bool:
        """Whether the crawl does not wait for another visit."""
        if ack.outcome not in (Outcome.RETRY, Outcome.CHALLENGE):
            return True
        tries = ack.lease.tries + 1
        return tries >= (self._max_tries if ack.moved_to else min(TRIES, self._max_tries))

    def _end_for_good(self, ack: Ack) -> None:
        """Nobody asks for the site when the crawl is over: its URLs do not come again."""
        ack.next_visit_ms, ack.links = 0, []
        if ack.outcome in (Outcome.RETRY, Outcome.CHALLENGE):
            ack.outcome = Outcome.FAILED

    async def _note_move(self, ack: Ack) -> None:
        lease = ack.lease
        for one in lease.wanted:
            link = replace(_link(lease), url=str(ack.moved_to))
            await self.book.rewrite(one.crawl, lease.url_id, Entry(link, one.level, 0, True))

    async def _crawl(self, crawl_id: str) -> Crawl | None:
        known = self._crawls.get(crawl_id)
        if known is None:
            known = await self.book.get(crawl_id)
            if known is not None and known.asked_s:
                self._crawls[crawl_id] = known
        return known

    async def _want(
        self, crawl: Crawl, level: int, links: Sequence[Link], now_ms: int
    ) -> dict[bytes, str]:
        """Queues them, and plans the next look at each."""
        if not links:
            return {}
        asked_s = crawl.asked_s or now_ms // 1000
        placed = [
            # As if it had been published when the crawl was asked for, level after level: what is
            # newer comes before it, what is older behind.
            replace(x, depth=level, band=0, score=level - asked_s, revisit=True)
            for x in links
        ]
        wanted = Wanted(crawl.id, level, crawl.levels)
        fresh_from_s = None
        if level >= crawl.levels and self._fresh_s:
            fresh_from_s = asked_s - self._fresh_s  # its links are not needed
        statuses = await self._frontier.want(placed, wanted, fresh_from_s)
        now = _now_ms()
        queued = [url_id for url_id, status in statuses.items() if status in "aqr"]
        await self.book.look_again(crawl.id, queued, now + LOOK_MS)
        busy = [url_id for url_id, status in statuses.items() if status == "l"]
        await self.book.look_again(crawl.id, busy, now + BUSY_MS)
        for link in placed:
            status = statuses[link.url_id]
            if status == "w":
                await self._end(crawl, link, Ended("FRESH", ("fresh",)))
            elif status == "s":
                await self._end(crawl, link, await self._why_not(link))
        return statuses

    async def _why_not(self, link: Link) -> Ended:
        """A finished URL that the frontier does not fetch again: robots.txt still forbids it, or
        its tries are spent."""
        record = await self._frontier.record(link.url_id, link.domain)
        if record is None or record.outcome is None:
            return Ended("FAILED(unknown)", ("failed",), is_free=True)
        text = f"{record.outcome}({record.reason})"
        name = "refused" if record.outcome is Outcome.REFUSED else "failed"
        return Ended(text, (name,), is_free=True)

    async def _end(self, crawl: Crawl, link: Link, ended: Ended) -> None:
        await self.book.page_ended(
            crawl.id, link.url_id, ended, level=0, links=(), now_ms=_now_ms()
        )

    # -- looking after
    async def look(self, now_ms: int) -> int:
        """Takes up crawls that were asked for, and what was left behind. How many URLs were queued;
        most often this is one call that finds nothing.

        :param now_ms: by the frontier's clock
        """
        if time.monotonic() < self._next_look:
            return 0
        self._next_look = time.monotonic() + LOOK_S
        queued = 0
        running = await self.book.running()
        for crawl_id in running:
            if await self.book.turn(crawl_id):
                queued += await self._look_after(crawl_id, now_ms)
        for crawl_id in set(self._crawls) - set(running):
            del self._crawls[crawl_id]
        return queued

    async def _look_after(self, crawl_id: str, now_ms: int) -> int:
        crawl = await self.book.get(crawl_id)
        if crawl is None:
            return 0
        if not crawl.is_running:
            await forget_urls(self.book, self._frontier, crawl, most=LOOK_URLS)
            return 0
        if not crawl.asked_s:
            await self._take_up(crawl)
            crawl.asked_s = await self.book.taken(crawl.id, now_ms // 1000)
        entries = await self.book.open_entries(crawl.id, LOOK_URLS, _now_ms())
        links = [one.link for one in entries]
        there = await self.book.queued(crawl.id, links, self._frontier.layout)
        await self.book.look_again(crawl.id, there, _now_ms() + LOOK_MS)
        missing = [one for one in entries if one.link.url_id not in there]
        for one in missing:
            await self._queue_again(crawl, one, now_ms)
        return len(missing)

    async def _take_up(self, crawl: Crawl) -> None:
        """The site's domains become known to the frontier, with their delays."""
        sites = self._services.sites.for_urls([crawl.url])
        self._services.sites = sites
        site = sites.get(crawl.site) or sites.by_host(_domain(crawl))
        if site is not None:
            await self._frontier.put_domains(self._services.policies_of(Sites([site])))
        logger.info(
            "Bounded crawl begins id=%s url=%s levels=%d max_pages=%d",
            crawl.id, crawl.url, crawl.levels, crawl.max_pages,
        )  # fmt: skip

    async def _queue_again(self, crawl: Crawl, entry: Entry, now_ms: int) -> None:
        entry.tries += 1
        if entry.tries > MOST_QUEUED:
            ended = Ended("FAILED(not queued)", ("failed",), is_free=True)
            await self._end(crawl, entry.link, ended)
            return
        await self.book.rewrite(crawl.id, entry.link.url_id, entry)
        await self.book.look_again(crawl.id, [entry.link.url_id], _now_ms() + BUSY_MS)
        await self._want(crawl, entry.level, [entry.link], now_ms)


async def forget_urls(
    book: CrawlBook, frontier: Frontier, crawl: Crawl, most: int = 1_000_000
) -> int:
    """Takes what is left of a cancelled crawl out of the queue, in portions."""
    done = 0
    while done < most:
        entries = await book.open_entries(crawl.id, LOOK_URLS)
        if not entries:
            break
        links = [one.link for one in entries]
        await frontier.unwant(crawl.id, links, drop_known=not crawl.is_configured)
        for one in entries:
            ended = Ended("CANCELLED", (), is_free=True)
            await book.page_ended(
                crawl.id, one.link.url_id, ended, level=0, links=(), now_ms=_now_ms()
            )
        done += len(entries)
    return done


# ---------------------------------------------------------------- beginning one
def start_of(sites: Sites, url: str) -> tuple[Site, Link]:
    """The site and the link of a crawl's start.

    :raises CrawlRefused: not of http(s), nothing that may be fetched, or of a site that is disabled
    """
    asked = sites.for_urls([url])
    link = asked.identify(url)
    if isinstance(link, Refusal):
        raise CrawlRefused(f"{url} is not crawled: {_REASONS.get(link.reason, link.reason)}")
    site = asked.by_host(link.domain)
    assert site is not None
    known = sites.get(site.id)
    if known is not None and not known.enabled:
        raise CrawlRefused(
            f"{site.id} is disabled: `scrapy sites enable {site.id}` allows its pages to be fetched"
        )
    return site, link


_REASONS = {
    "scheme": "it is no http(s) address",
    "trap": "addresses of this form have no end (a calendar, parameters, a path that repeats)",
    "type": "it is no page but an image, a script or a file",
    "age": "it is older than ARTICLE_MAX_AGE_DAYS",
}


async def check_address(settings: BaseSettings, domain: str) -> None:
    """:raises CrawlRefused: the host has no address, or none that may be connected to"""
    from newscrawler.fetch.client import AddressRefused, FetchRules, GuardedResolver

    rules = FetchRules.from_settings(settings)
    host, port = address_guard.split_host(domain)
    if address_guard.is_literal(host):
        if why := rules.refusal(host):
            raise CrawlRefused(f"{host} is not fetched: {why} address{rules.way_in(host)}")
        return
    if rules.proxy_for(f"https://{domain}/") is not None:
        return  # names are the proxy's to look up
    try:
        async with asyncio.timeout(ADDRESS_S):
            await GuardedResolver(rules).resolve(host, port or 0)
    except AddressRefused as exc:
        raise CrawlRefused(str(exc)) from exc
    except (OSError, UnicodeError, TimeoutError) as exc:
        raise CrawlRefused(f"{host} has no address: {exc or 'no answer'}") from exc


async def check_robots(frontier: Frontier, settings: BaseSettings, link: Link) -> bool:
    """False: robots.txt of the host is not known yet, so a worker will say.

    :raises CrawlRefused: it forbids the page
    """
    if not settings.getbool("ROBOTSTXT_OBEY"):
        return True
    entry = await frontier.robots(link.domain)
    if entry is None:
        return False
    rules = RobotsRules.parse_answer(entry.status, entry.body, settings["ROBOTSTXT_USER_AGENT"])
    if not rules.allowed(link.url):
        raise CrawlRefused(f"robots.txt of {link.domain} forbids {link.url}")
    return True


async def begin(
    settings: BaseSettings,
    frontier: Frontier,
    sites: Sites,
    *,
    url: str,
    levels: int,
    max_pages: int,
    by: str,
) -> tuple[Crawl, bool]:
    """Asks for a crawl; a worker of the fleet takes it up. The crawl, and whether its start is
    known to be allowed by robots.txt.

    :raises CrawlRefused: bounds, address, site or robots.txt do not allow it; nothing was changed
    """
    check_bounds(settings, levels, max_pages)
    site, link = start_of(sites, url)
    await check_address(settings, link.domain)
    is_allowed = await check_robots(frontier, settings, link)
    crawl = await CrawlBook(frontier.client, frontier.scripts).begin(
        link,
        site=site.id,
        levels=levels,
        max_pages=max_pages,
        by=by,
        is_configured=site.source != "ad hoc",
        now_ms=_now_ms(),
    )
    return crawl, is_allowed


def check_bounds(settings: BaseSettings, levels: int, max_pages: int) -> None:
    """:raises CrawlRefused: out of range"""
    for name, value, most in (
        ("levels", levels, settings.getint("BOUNDED_CRAWL_MAX_LEVELS")),
        ("max_pages", max_pages, settings.getint("BOUNDED_CRAWL_MAX_PAGES")),
    ):
        if not 1 <= value <= most:
            raise CrawlRefused(f"{name} is {value}; it must be 1 to {most}")


async def cancel(frontier: Frontier, crawl_id: str, by: str) -> Crawl | None:
    """Ends a crawl: what it brought into the queue leaves it, what is being fetched is finished.
    None: no crawl has this id; one that has ended stays as it is."""
    book = CrawlBook(frontier.client, frontier.scripts)
    await book.cancel(crawl_id, f"cancelled by {by}", _now_ms())
    crawl = await book.get(crawl_id)
    if crawl is not None and not crawl.is_running:
        await forget_urls(book, frontier, crawl)
    return await book.get(crawl_id)


async def purge(operator: Operator, domain: str) -> tuple[int, list[Crawl]]:
    """Throws away what is queued of a domain. Bounded crawls that began there or have pages of it
    to fetch end: a worker would queue their pages again. How many URLs went, and these crawls.

    :raises FrontierRefused: the frontier does not know the domain
    """
    frontier = Frontier(operator.client, FrontierConfig(shards=operator.shards), "purge")
    book = CrawlBook(frontier.client, frontier.scripts)
    ended = []
    if await operator.state(domain) is not None:
        for crawl_id in await book.running():
            crawl = await book.get(crawl_id)
            if crawl is None or not crawl.is_running or not await _asks(book, crawl, domain):
                continue
            if await book.cancel(crawl_id, f"{domain} was purged from the queue", _now_ms()):
                ended.append(crawl)
    removed = await operator.purge(domain)
    for crawl in ended:
        await forget_urls(book, frontier, crawl)
    return removed, ended


async def _asks(book: CrawlBook, crawl: Crawl, domain: str) -> bool:
    if _domain(crawl) == domain:
        return True
    return any(one.link.domain == domain for one in await book.open_entries(crawl.id, crawl.pages))


# ---------------------------------------------------------------- what is told of one
async def status(frontier: Frontier, crawl: Crawl, workers: int | None) -> dict[str, Any]:
    """As the API and `scrapy crawls` show it.

    :param workers: that are alive; None = not known
    """
    waits = await _waits_for(frontier, crawl, workers) if crawl.is_running else ""
    return {
        "id": crawl.id,
        "url": crawl.url,
        "site": crawl.site,
        "levels": crawl.levels,
        "max_pages": crawl.max_pages,
        "state": "waiting" if waits and not crawl.fetched else crawl.state,
        "waits_for": waits,
        "why": crawl.why,
        "fetched": crawl.fetched,
        "queued": crawl.open,
        "fresh": crawl.fresh,
        "refused": crawl.refused,
        "failed": crawl.failed,
        "articles": crawl.articles,
        "new_articles": crawl.new_articles,
        "left_out": crawl.left_out,
        "by": crawl.by,
        "created": iso_of(crawl.created_ms),
        "ended": iso_of(crawl.ended_ms) if crawl.ended_ms else None,
    }


async def _waits_for(frontier: Frontier, crawl: Crawl, workers: int | None) -> str:
    """The reason why a crawl that runs does not go on; "" = it does."""
    if workers == 0:
        return "a worker: none is running (`make run`, `scrapy crawl news`)"
    if not crawl.asked_s:
        return "a worker to take it up"
    operator = frontier.operator
    state = await operator.state(_domain(crawl))
    if state is None:
        return ""
    now = await operator.now_ms()
    for what, at in (
        (f"{state.domain} to be resumed: it is paused", state.paused),
        (f"the end of the back-off of {state.domain}", state.backoff_until > now),
        (f"the end of the block of {state.domain}", state.blocked_until > now),
        (f"the quota of {state.domain}", state.extra.held_until > now),
        (f"robots.txt of {state.domain}, which does not answer", state.robots_state == _WAITS),
    ):
        if at:
            return what
    return ""


#: schema.NUMBERS["ROBOTS"]["WAIT"]
_WAITS = 3


# ---------------------------------------------------------------- parts
def _is_page(link: Link, of: Kind) -> bool:
    """Feeds are no pages, and a sitemap is followed from a sitemap only."""
    return link.kind is not Kind.FEED and (link.kind is not Kind.SITEMAP or of is Kind.SITEMAP)


def _is_of(sites: Sites, link: Link, site: Site) -> bool:
    found = sites.by_host(link.domain)
    return found is not None and found.id == site.id


def _ended(ack: Ack) -> Ended:
    text = f"{ack.outcome}({ack.reason})" if ack.reason else str(ack.outcome)
    if ack.outcome in _FETCHED:
        counters = ["fetched"]
        if ack.lease.article:
            counters.append("articles")
        if ack.lease.article == "new":
            counters.append("new_articles")
        return Ended(text, counters)
    if ack.outcome is Outcome.REFUSED:
        return Ended(text, ("refused",), is_free=ack.reason in _NOT_ASKED)
    return Ended(text, ("failed",))


def _link(lease: Any) -> Link:
    return Link(lease.url, lease.url_id, lease.domain, lease.kind)


def _domain(crawl: Crawl) -> str:
    return crawl.url.split("/", 3)[2]


def _now_ms() -> int:
    """Of this machine, as the book's looks and days are."""
    return int(time.time() * 1000)
