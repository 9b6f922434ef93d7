"""The one generic spider: a response in, its :class:`~newscrawler.items.Article` out, if it is one.

A page has one way: ``page_of`` (what response, lease and site say) -> ``PageParser.parse`` (what
stands in its body) -> ``decide`` (how the visit ends: pure) -> the visit to the scheduler, which
acks it when the article is stored, and the article, which is the item, to the pipelines.

Everything site-specific is data (sites.json, selectors/).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from redis import RedisError
from scrapy import Spider
from scrapy.http import Request, Response
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings
from scrapy.utils.python import global_object_name

from newscrawler import metrics
from newscrawler.crawl import rendering
from newscrawler.crawl.decision import (
    HtmlRead,
    ListRead,
    NoAnswer,
    Redirect,
    Result,
    RobotsRead,
    Unparsed,
    VisitRules,
    decide,
)
from newscrawler.crawl.page import Page, page_of, unanswered
from newscrawler.crawl.page_parser import PageParser
from newscrawler.crawl.services import Services
from newscrawler.crawl.site_choice import split_urls
from newscrawler.discovery import article_revisits
from newscrawler.discovery.links import LinkFinder
from newscrawler.discovery.list_revisits import Leads
from newscrawler.discovery.seeds import seed_links
from newscrawler.discovery.sites import Refusal, Sites
from newscrawler.fetch.client import Answer
from newscrawler.fetch.robots import read_robots
from newscrawler.frontier.queue import RobotsAnswer
from newscrawler.items import LIST_KINDS, Article, Kind, Link, Outcome, Visit
from newscrawler.web.outcomes import judge_error

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from newscrawler.frontier.queue import Lease
    from newscrawler.scheduler import Scheduler

logger = logging.getLogger(__name__)


class NewsSpider(Spider):
    """``scrapy crawl news [-a sites=a.vn,b.vn] [-a urls=https://…] [-a since=2026-11-01 | 3d]``

    :param sites: ids of sites.json, comma-separated; default: all that are enabled
    :param urls: crawl these addresses and what they link to on the same hosts, whether their site
        is known or not
    :param since: only articles published at or after this day (or this many days ago: 3d);
        default: ARTICLE_MAX_AGE_DAYS
    """

    name = "news"

    def __init__(
        self,
        sites: str | None = None,
        urls: str | None = None,
        since: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sites, self.urls, self.since = sites, urls, since
        self.stop_reason = ""

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """What makes this spider a worker of the fleet: settings.NEWS_SPIDER, under what
        was set on purpose."""
        super().update_settings(settings)
        name = "NEWS_SPIDER" if settings.getbool("FRONTIER_ENABLED") else "NEWS_SPIDER_ALONE"
        apply_own(settings, settings.getdict(name))

    @classmethod
    def handles_request(cls, request: Request) -> bool:
        """Never asked for by an address alone: by its name Scrapy would take it for
        every host under .news."""
        return False

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> NewsSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        settings = crawler.settings
        spider.services = Services.for_crawl(crawler, spider, spider.sites, spider.urls)
        spider.has_frontier = settings.getbool("FRONTIER_ENABLED")
        spider.rules = visit_rules(settings, spider.since)
        spider.leads = Leads()
        return spider

    #: What the components of this crawl share; they take it by crawl.services.services_of(crawler).
    services: Services
    has_frontier: bool
    rules: VisitRules
    leads: Leads

    async def start(self) -> AsyncIterator[Any]:
        """Puts the seeds that are due into the frontier; the requests come from there."""
        services = self.services
        await services.reader.start()
        if not self.services.visits.stores_articles:
            logger.warning(
                "Articles are not stored, though their pages count as visited: "
                "ITEM_PIPELINES switches newscrawler.pipelines.IndexPipeline off"
            )
        if missing := rendering.missing_for(self.settings, services.sites, services.chosen):
            logger.warning("%s", missing)
        scheduler: Any = self.crawler.engine.scheduler
        if self.urls:
            seeds = asked_links(services.sites, split_urls(self.urls))
        else:
            seeds = []
            for site in filter(None, map(services.sites.get, services.chosen)):
                seeds += seed_links(site, scheduler.now_ms)
                announced = await services.announced.links(services.sites, site)
                sections = [link.url for link in announced if link.kind is Kind.SECTION]
                services.link_learning.note_known(site, sections)
                seeds += announced
            await services.link_learning.load(services.chosen)
        added = await scheduler.add(seeds)
        try:
            await services.selectors.refresh()
        except RedisError as exc:  # they are read again every SELECTOR_REFRESH_S
            logger.warning("Selector sets are read later error=%s", exc)
        for error in services.sites.errors:
            logger.warning("Site left out error=%s", error)
        for message in services.selectors.shipped_errors:
            logger.warning("Selector set left out error=%s", message)
        logger.info(
            "Seeds offered sites=%d seeds=%d due=%d", len(services.chosen), len(seeds), added
        )
        for _ in ():
            yield _

    def stop_with(self, reason: str, message: str) -> None:
        """Ends the crawl; what is in flight finishes or goes back."""
        if not self.stop_reason:
            self.stop_reason = f"{reason}: {message}"
            logger.critical("Crawl stops reason=%s error=%s", reason, message)
            from scrapy.utils.defer import _schedule_coro

            _schedule_coro(self.crawler.engine.close_spider_async(reason=reason))

    @cached_property
    def parser(self) -> PageParser:
        services = self.services
        finder = LinkFinder(
            services.sites,
            services.frontier if self.has_frontier else NothingSeen(),
            self.rules.max_age_s,
            max_children=self.settings.getint("FRONTIER_MAX_CHILDREN"),
            classes=services.link_learning,
        )
        return PageParser(services, finder, self.settings.getint("FRONTIER_MAX_DEPTH"))

    # ------------------------------------------------------------------ responses
    async def parse(self, response: Response) -> AsyncIterator[Article | Request]:
        """Of a page: its visit to the scheduler, its article to the pipelines."""
        lease = response.meta.get("lease")
        if lease is None:
            async for found in self._unleased(response):
                yield found
            return
        visit = await self._visit(response, lease)
        await self._scheduler.visited(response.request, visit)
        if visit.article is not None:
            yield visit.article

    async def _visit(self, response: Response, lease: Lease) -> Visit:
        page = self._page(response, lease)
        started = time.monotonic()
        result = await self.parser.parse(page)
        visit = decide(page, result, self.rules)
        if result is not None:
            spent_s = time.monotonic() - started
            visit.parse_ms = round(spent_s * 1000, 1)
            metrics.observe(self.crawler.stats, metrics.PARSE_TIME, spent_s)
        self._count(result, visit)
        if "rendered" in response.meta:
            brought = visit.article is not None or visit.outcome is Outcome.UNCHANGED
            if not (
                isinstance(result, ListRead) and result.found.total
            ):  # says nothing of articles
                await rendering.note(
                    self.services, response.meta, lease.domain, lease.url, brought_article=brought
                )
        if self.has_frontier and isinstance(result, (HtmlRead, ListRead)):
            self._note_links(page, result)
        if lease.wanted:
            links = result.found.admitted if isinstance(result, (HtmlRead, ListRead)) else ()
            self.services.bounded.note(page, links, visit)
        return visit

    def _note_links(self, page: Page, result: HtmlRead | ListRead) -> None:
        """For the link graph. Entries of feeds and sitemaps are no links of a page."""
        if page.kind in (Kind.FEED, Kind.SITEMAP):
            return
        extraction = result.extraction if isinstance(result, HtmlRead) else None
        title = extraction.title.value if extraction is not None else None
        lease = page.lease
        self.services.link_notes.note(
            lease.site, lease.url_id, lease.url, title or "", result.found.admitted,
            page.now_ms // 1000,
        )  # fmt: skip

    async def read_pushed(self, site_id: str, url: str, body: bytes) -> list[Link] | None:
        """Links of a feed that its hub has sent, read as a fetched one. What is new there is
        fetched before all that waits: an entry without a time, too. None: the site is crawled no
        more, or it is no feed."""
        services = self.services
        site = services.sites.get(site_id)
        link = services.sites.identify(url, kind=Kind.FEED)
        if site is None or not site.enabled or not isinstance(link, Link):
            return None
        page = unanswered(unfenced_lease(link, site_id), site, self._now_ms())
        page.status, page.outcome, page.body, page.is_pushed = 200, Outcome.DONE, body, True
        result = await self.parser.parse(page)
        if not isinstance(result, ListRead):
            return None
        for found in result.found.links:
            if found.kind is Kind.ARTICLE and "published" not in (found.hint or {}):
                found.band, found.score = 0, -page.now_ms // 1000
        return result.found.links

    async def _unleased(self, response: Response) -> AsyncIterator[Article | Request]:
        """A page that a person asked for (`scrapy parse --spider=news`): its article and its links.
        Nothing is queued."""
        services = self.services
        services.sites = services.sites.for_urls([response.url])
        link = services.sites.identify(response.url)
        if isinstance(link, Refusal):
            logger.warning("Page is not read url=%s reason=%s", response.url, link.reason)
            return
        if link.kind not in LIST_KINDS:
            link.kind, link.hint = Kind.ARTICLE, {"asked": True}
        site = services.sites.by_host(link.domain)
        lease = unfenced_lease(link, site.id if site else link.domain)
        visit = await self._visit(response, lease)
        logger.info(
            "Page read url=%s kind=%s outcome=%s reason=%s links=%d",
            visit.url, visit.kind, visit.outcome, visit.reason, len(visit.links),
        )  # fmt: skip
        if visit.article is not None:
            yield visit.article
        for found in visit.links:
            yield Request(found.url, self.parse)

    def failed(self, failure: Any) -> None:
        """No usable answer: refused by a middleware, or the fetch failed.

        :param failure: Twisted's Failure, on which Scrapy notes its request
        """
        request: Request = failure.request
        lease: Lease = request.meta["lease"]
        page = unanswered(lease, self.services.site_of(lease), self._now_ms())
        error = failure.value or RuntimeError("no reason given")
        result: Result = NoAnswer(*judge_error(error))
        if (original := getattr(error, "original", None)) is not None:
            found = self.services.sites.identify(
                original, parent=lease.url_id, depth=lease.depth, hint=lease.hint
            )
            result = Redirect(original, found)
        visit = decide(page, result, self.rules)
        self._scheduler.failed(request, visit)

    async def parse_robots(self, response: Response) -> None:
        page = self._page(response, response.meta["lease"])
        result = await self._robots(response, page)
        await self._scheduler.visited(response.request, decide(page, result, self.rules))

    async def _robots(self, response: Response, page: Page) -> RobotsRead | NoAnswer:
        """robots.txt: its redirects are followed while the lease is held."""
        lease = page.lease

        async def ask(url: str) -> Answer:
            meta = {"robots_hop": True, "lease": lease, "download_slot": "frontier"}
            request = Request(url, meta=meta, dont_filter=True)
            return _answer(await self.crawler.engine.download_async(request))

        # The gate counts the first answer only, and grants nothing of the domain until this
        # lease is acked: the hops keep the distance by themselves, in real seconds whatever the
        # simulated clock.
        async def pause() -> None:
            await asyncio.sleep(await self._delay_s(lease))

        agent = self.settings["ROBOTSTXT_USER_AGENT"]
        try:
            found = await read_robots(
                _answer(response), ask, pause, user_agent=agent, now_ms=page.now_ms
            )
        except Exception as exc:
            return NoAnswer(*judge_error(exc))
        if found.hops:
            await pause()
        result = RobotsRead(
            RobotsAnswer(found.status, found.body, found.rules.crawl_delay, found.retry_after_s)
        )
        services = self.services
        if await services.bounded.is_for_crawls(lease):
            return result  # its sitemaps lead beyond the bounds of the crawl
        if 200 <= found.status < 500 and found.status != 429:
            result.links = await services.announced.of_robots(
                services.sites, page.site, lease, found.rules.sitemaps[:20], self._now_ms()
            )
        return result

    async def _delay_s(self, lease: Lease) -> float:
        """The delay that the fleet keeps between two fetches of the domain."""
        delay_s = await self.services.frontier.operator.delay_s(lease.domain)
        return self.settings.getfloat("DOWNLOAD_DELAY") if delay_s is None else delay_s

    # ------------------------------------------------------------------ parts
    def _page(self, response: Response, lease: Lease) -> Page:
        count = self.crawler.stats.inc_value  # to find it costs as much as to call it
        count(metrics.PAGES)
        count(metrics.PAGE_BYTES, len(response.body))
        count(metrics.labelled(metrics.PAGE_STATUS, str(response.status)))
        services, now_ms, kind = self.services, self._now_ms(), Kind(lease.kind)
        site = services.site_of(lease)
        kind = services.link_learning.kind_now(site, lease.url, kind)
        is_planned = kind in LIST_KINDS and self.has_frontier
        rhythm = services.rhythms.of(site.id, now_ms) if is_planned else None
        return page_of(response, lease, site, self.leads, now_ms, kind=kind, rhythm=rhythm)

    def _count(self, result: Result, visit: Visit) -> None:
        count = self.crawler.stats.inc_value
        if isinstance(result, Unparsed):
            count(metrics.PAGES_UNREADABLE)
        if not isinstance(result, (HtmlRead, ListRead)):
            return
        found = result.found
        count(metrics.LINKS_FOUND, found.total)
        count(metrics.LINKS_OFFERED, len(found.links))
        count(metrics.LINKS_KNOWN, found.known)
        for reason, number in found.refused.items():
            count(metrics.labelled(metrics.LINKS_REFUSED, reason), number)
        if visit.article is not None and isinstance(result, HtmlRead) and result.extraction:
            for name in result.extraction.disagreements:
                count(metrics.labelled(metrics.ARTICLE_FIELD_CONFLICTS, name))

    @property
    def _scheduler(self) -> Scheduler:
        engine: Any = self.crawler.engine
        scheduler: Scheduler = engine.scheduler
        return scheduler

    def _now_ms(self) -> int:
        """The frontier's clock, ms since the epoch."""
        if not self.has_frontier:
            return int(time.time() * 1000)
        return self._scheduler.now_ms


def visit_rules(settings: BaseSettings, since: str | None) -> VisitRules:
    """:raises ValueError: ``since`` is neither a day nor a number of them, or a setting is wrong"""
    return VisitRules(
        max_tries=settings.getint("FRONTIER_MAX_TRIES"),
        max_age_s=article_revisits.max_age_s(since, settings.getfloat("ARTICLE_MAX_AGE_DAYS")),
        list_sample=settings.getfloat("RAW_LIST_SAMPLE"),
        list_fixed_s=settings.getfloat("LIST_INTERVAL_FIXED_S"),
    )


def _answer(response: Response) -> Answer:
    headers = [(name, value) for name, values in response.headers.items() for value in values]
    return Answer(response.url, response.status, headers, response.body, 0.0)


class NothingSeen:
    """Stands in for the frontier where there is none: every link is new."""

    def seen_local(
        self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0
    ) -> bool:
        return False

    def unseen_local(
        self, links: Sequence[Link], parent: bytes, depth: int, *, verify: bool
    ) -> list[Link]:
        return list(links)


def unfenced_lease(link: Link, site: str) -> Lease:
    """What the reading of a page takes from its lease, for a page that the
    frontier did not grant."""
    from newscrawler.frontier.queue import Lease

    now_ms = int(time.time() * 1000)
    return Lease(
        link.url, link.url_id, link.domain, link.kind, link.depth, None, 0, 0, now_ms,
        hint=link.hint, discovered_ms=now_ms, site=site,
    )  # fmt: skip


def apply_own(settings: BaseSettings, own: Mapping[str, Any]) -> None:
    """Sets a spider's own settings where nobody set them on purpose: in settings.py, in a
    subclass, by ``-s``.

    Dictionaries of components are joined: what is set elsewhere is added and comes first,
    ``None`` switches one off.
    """
    for name, value in own.items():
        priority = settings.getpriority(name) or 0
        if isinstance(settings.get(name), BaseSettings) and isinstance(value, dict):
            said = settings.getdict(name)
            named = {_path_of(component) for component in said}
            ours = {c: order for c, order in value.items() if c not in named}
            # One above: a process that is handed a crawler sets its own settings once more, at
            # their priority (scrapy.crawler.CrawlerRunnerBase.create_crawler), and ``-s`` would
            # leave nothing but itself.
            settings.set(name, {**ours, **said}, max(priority, SETTINGS_PRIORITIES["spider"]) + 1)
        elif priority < SETTINGS_PRIORITIES["project"] or settings.get(name) == getattr(
            default_settings, name, None
        ):
            settings.set(name, value, "spider")


def _path_of(component: Any) -> str:
    return component if isinstance(component, str) else global_object_name(component)


def asked_links(sites: Sites, asked: list[str]) -> list[Link]:
    """The addresses that a person asked for: read as articles whatever they look
    like, also a second time."""
    found = [sites.identify(url, kind=Kind.ARTICLE, hint={"asked": True}) for url in asked]
    links = [link for link in found if isinstance(link, Link)]
    for link in links:
        link.revisit, link.band = True, 0
    return links
