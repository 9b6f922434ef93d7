"""The one generic spider: a response in, exactly one :class:`~newscrawler.items.Page` out.

Everything site-specific is data (sites.json, selectors/). What a page is worth is decided in the
packages; here it is put together: status -> outcome, body -> unchanged?, document -> article, links.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import xxhash
from scrapy import Spider
from scrapy.http import Request, Response
from twisted.python.failure import Failure

from newscrawler import answers, metrics
from newscrawler.discovery import revisits
from newscrawler.discovery.feeds import Feed
from newscrawler.discovery.links import FoundLinks, LinkFinder
from newscrawler.discovery.seeds import seed_links
from newscrawler.discovery.sitemaps import Sitemap
from newscrawler.discovery.sites import Refusal, Sites
from newscrawler.discovery.watch import Watch
from newscrawler.extraction.extract import Extraction
from newscrawler.frontier.queue import RobotsAnswer
from newscrawler.items import LIST_KINDS, Kind, Link, Outcome, Page
from newscrawler.reading import Html, Task, Unreadable
from newscrawler.web import urls
from newscrawler.web.outcomes import judge_error, judge_status, retry_after_s
from newscrawler.web.robots import RobotsRules
from newscrawler.wiring import Services, split_urls

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from newscrawler.frontier.queue import Lease

logger = logging.getLogger(__name__)

#: Redirects that may follow one another before a URL is given up (RFC 9110 15.4 leaves it to the client).
MAX_REDIRECTS = 5


class NewsSpider(Spider):
    """``scrapy crawl news [-a sites=a.vn,b.vn] [-a urls=https://…] [-a since=2026-11-01 | 3d]``

    sites   ids of sites.json, comma-separated; default: all that are enabled
    urls    crawl these addresses and what they link to on the same hosts, whether their site is known or not
    since   only articles published at or after this day (or this many days ago: 3d); default: ARTICLE_MAX_AGE_DAYS
    """

    name = "news"

    def __init__(
        self, sites: str | None = None, urls: str | None = None, since: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.sites, self.urls, self.since = sites, urls, since
        self.stop_reason = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> NewsSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        settings = crawler.settings
        spider.max_depth = settings.getint("FRONTIER_MAX_DEPTH")
        spider.max_age_s = revisits.max_age_s(spider.since, settings.getfloat("ARTICLE_MAX_AGE_DAYS"))
        spider.learns = settings["SELECTOR_GENERATION"] != "off"
        spider.list_sample = settings.getfloat("RAW_LIST_SAMPLE")
        spider.lists = Watch(settings.getfloat("LIST_INTERVAL_FIXED_S"))
        spider.max_tries = settings.getint("FRONTIER_MAX_TRIES")
        spider.store_is_local = not str(settings.get("ARTICLE_STORE") or "").startswith("http")
        return spider

    max_depth: int
    learns: bool
    max_age_s: float | None
    list_sample: float
    lists: Watch
    max_tries: int
    store_is_local: bool

    async def start(self) -> AsyncIterator[Any]:
        """Puts the seeds that are due into the frontier; the requests come from there."""
        services = Services.of(self.crawler)
        await services.reader.start()
        children = self.settings.getint("FRONTIER_MAX_CHILDREN")
        self.finder = LinkFinder(services.sites, services.frontier, self.max_age_s, max_children=children)
        scheduler: Any = self.crawler.engine.scheduler  # type: ignore[union-attr]
        if self.urls:
            seeds = asked_links(services.sites, split_urls(self.urls))
        else:
            seeds = [
                link
                for site in map(services.sites.get, services.chosen)
                if site
                for link in seed_links(site, scheduler.now_ms)
            ]
        added = await scheduler.add(seeds)
        await services.selectors.refresh()
        for error in services.sites.errors:
            logger.warning("Site left out error=%s", error)
        for message in services.selectors.shipped_errors:
            logger.warning("Selector set left out error=%s", message)
        logger.info("Seeds offered sites=%d seeds=%d due=%d", len(services.chosen), len(seeds), added)
        for _ in ():
            yield _

    def stop_with(self, reason: str, message: str) -> None:
        """Ends the crawl; what is in flight finishes or goes back."""
        if not self.stop_reason:
            self.stop_reason = f"{reason}: {message}"
            logger.critical("Crawl stops reason=%s error=%s", reason, message)
            from scrapy.utils.defer import _schedule_coro

            _schedule_coro(self.crawler.engine.close_spider_async(reason=reason))  # type: ignore[union-attr]

    # ------------------------------------------------------------------ responses
    async def parse(self, response: Response) -> AsyncIterator[Page]:
        lease: Lease = response.meta["lease"]
        page = self._page(response, lease)
        outcome, reason = judge_status(response.status)
        if challenge := answers.challenge_of(response):
            page.outcome, page.reason = Outcome.CHALLENGE, challenge
        elif outcome is Outcome.REDIRECTED:
            self._redirect(response, lease, page)
        elif outcome is Outcome.UNCHANGED:
            self._unchanged(lease, page)
        elif outcome is Outcome.DONE:
            await self._read(response, lease, page)
        else:
            page.outcome, page.reason = outcome, reason
            if outcome is Outcome.GONE and page.kind in LIST_KINDS:
                self.lists.missing(page, self._now_ms(), str(response.status))
        yield page

    def failed(self, failure: Failure) -> Iterator[Page]:
        """No usable answer: refused by a middleware, or the fetch failed."""
        request: Request = failure.request  # type: ignore[attr-defined]
        lease: Lease = request.meta["lease"]
        page = self._blank(lease)
        page.outcome, page.reason = judge_error(failure.value or RuntimeError("no reason given"))
        if page.reason == "type" and page.kind in (Kind.FEED, Kind.SITEMAP):
            self.lists.missing(page, self._now_ms(), "no feed or sitemap, but something else")
        if lease.kind == Kind.ROBOTS:
            page.robots = RobotsAnswer(status=0, body=b"")
        yield page

    def parse_robots(self, response: Response) -> Any:
        return self._robots(response)

    async def _robots(self, response: Response) -> AsyncIterator[Page]:
        """robots.txt, redirects followed here (RFC 9309 2.3.1.2: at least five, also to other hosts)."""
        lease: Lease = response.meta["lease"]
        page = self._page(response, lease)
        answer, hops = response, 0
        while hops < MAX_REDIRECTS:
            location = answer.headers.get(b"Location")
            target = urls.join(urls.Base(answer.url), location.decode("latin-1")) if location else None
            if not 300 <= answer.status < 400 or target is None:
                break
            # The gate counts the first answer only, and hands out nothing of the domain until this lease is
            # acked: the hops keep the distance by themselves, in real seconds whatever the simulated clock.
            await asyncio.sleep(self._floor_s(lease))
            try:
                answer = await self.crawler.engine.download_async(  # type: ignore[union-attr]
                    Request(
                        target, meta={"robots_hop": True, "lease": lease, "download_slot": "frontier"}, dont_filter=True
                    )
                )
            except Exception as exc:
                page.outcome, page.reason = judge_error(exc)
                page.robots = RobotsAnswer(status=0, body=b"")
                yield page
                return
            hops += 1
        if hops:
            await asyncio.sleep(self._floor_s(lease))
        # still a redirect after five: as if there were none (RFC 9309 2.3.1.2)
        status = 404 if 300 <= answer.status < 400 else answer.status
        page.outcome, page.reason, page.status = Outcome.DONE, "", status
        body = answer.body if status == 200 else b""
        rules = RobotsRules.parse_answer(status, body, self.settings["ROBOTSTXT_USER_AGENT"])
        after_s = retry_after_s(answer.headers.get(b"Retry-After"), self._now_ms())
        page.robots = RobotsAnswer(status, body, rules.crawl_delay, after_s)
        page.links = self._announced_sitemaps(rules, lease)
        yield page

    def _floor_s(self, lease: Lease) -> float:
        site = Services.of(self.crawler).site_of(lease)
        return max(self.settings.getfloat("DOWNLOAD_DELAY"), site.delay_s)

    def _announced_sitemaps(self, rules: RobotsRules, lease: Lease) -> list[Link]:
        sites = Services.of(self.crawler).sites
        found = [sites.identify(url, kind=Kind.SITEMAP, parent=lease.url_id, depth=1) for url in rules.sitemaps[:20]]
        return [link for link in found if isinstance(link, Link)]

    # ------------------------------------------------------------------ parts
    def _blank(self, lease: Lease) -> Page:
        now = datetime.fromtimestamp(self.crawler.engine.scheduler.now_ms / 1000, UTC)  # type: ignore[union-attr]
        return Page(
            url=lease.url,
            outcome=Outcome.FAILED,
            kind=Kind(lease.kind),
            site=lease.site,
            domain=lease.domain,
            fetched=now,
            etag=lease.etag,
            last_modified=lease.last_modified,
            digest=lease.digest,
            links_digest=lease.links_digest,
            lease=lease,
        )

    def _page(self, response: Response, lease: Lease) -> Page:
        page = self._blank(lease)
        page.status = response.status
        page.retry_after_s = retry_after_s(response.headers.get(b"Retry-After"), self._now_ms())
        stats = self.crawler.stats
        stats.inc_value(metrics.PAGES)
        stats.inc_value(metrics.PAGE_BYTES, len(response.body))
        stats.inc_value(metrics.labelled(metrics.PAGE_STATUS, str(response.status)))
        return page

    def _unchanged(self, lease: Lease, page: Page) -> None:
        page.outcome = Outcome.UNCHANGED
        if page.kind in LIST_KINDS:
            self.lists.same(page, Services.of(self.crawler).site_of(lease), self._now_ms())
        elif lease.links_digest:  # it was an article
            page.next_visit_ms = revisits.article_visit_ms(self._now_ms(), lease.discovered_ms)

    def _redirect(self, response: Response, lease: Lease, page: Page) -> None:
        """The target is a URL of its own in the frontier; the same page under another spelling is fetched next."""
        location = response.headers.get(b"Location")
        target = urls.join(urls.Base(response.url), location.decode("utf-8", "replace")) if location else None
        if target is None:
            if location:  # file:, ftp:, javascript:
                page.outcome, page.reason = Outcome.REFUSED, "scheme"
            else:
                page.outcome, page.reason = Outcome.FAILED, "redirect without a target"
            return
        hops = int((lease.hint or {}).get("hops", 0)) + 1
        found = Services.of(self.crawler).sites.identify(
            target, parent=lease.url_id, depth=lease.depth, hint=lease.hint
        )
        if isinstance(found, Refusal):
            page.outcome, page.reason = Outcome.REFUSED, found.reason
            if page.kind in LIST_KINDS:  # the site's own list sends us where we may not go: an operator should know
                self.lists.moved(page, self._now_ms(), target)
        elif hops > MAX_REDIRECTS:
            page.outcome, page.reason = Outcome.FAILED, "redirect loop"
        elif found.url_id == lease.url_id:
            # the same page under another spelling: one try of the URL, so that a circle of them ends
            page.outcome, page.reason, page.moved_to = Outcome.RETRY, "moved", target
        else:
            found.hint = {**(lease.hint or {}), "hops": hops}
            if Kind(lease.kind) is not Kind.PAGE and found.kind is Kind.PAGE:
                found.kind = Kind(lease.kind)
            page.outcome, page.links = Outcome.REDIRECTED, [found]
            if page.kind in LIST_KINDS:
                site = Services.of(self.crawler).site_of(lease)
                found.hint["lead"] = self.lists.is_lead(site, page.kind, lease.url, lease.hint)
                self.lists.moved(page, self._now_ms(), target)

    async def _read(self, response: Response, lease: Lease, page: Page) -> None:
        page.etag = answers.header(response, b"ETag")
        page.last_modified = answers.header(response, b"Last-Modified")
        digest = xxhash.xxh3_128_digest(response.body)
        if digest == lease.digest:
            self._unchanged(lease, page)
            return
        page.digest = digest
        page.body = response.body
        page.response_headers = response.meta.get("raw_headers") or []
        services = Services.of(self.crawler)
        site = services.site_of(lease)
        task = Task(
            body=response.body,
            url=response.url,
            kind=page.kind,
            content_type=answers.header(response, b"Content-Type"),
            language=site.language,
            robots=answers.robots_of(response),
        )
        if page.kind not in LIST_KINDS and (
            page.kind is not Kind.PAGE or answers.is_asked_for(lease) or answers.claims_article(task.body)
        ):
            task.context = answers.context_of(lease, page, site)
            selectors = services.selectors.active(lease.site)
            task.selectors = services.reader.packed(selectors) if selectors else None
        try:
            found = await services.reader.read(task)
        except Unreadable as exc:
            self.crawler.stats.inc_value(metrics.PAGES_UNREADABLE)
            page.outcome, page.reason, page.digest = Outcome.RETRY, f"unreadable: {exc}", lease.digest
            return
        if isinstance(found, Feed):
            self._read_feed(found, lease, page)
        elif isinstance(found, Sitemap):
            self._read_sitemap(found, lease, page)
        else:
            self._read_html(found, lease, page)

    def _read_feed(self, feed: Feed, lease: Lease, page: Page) -> None:
        if feed.error and not feed.entries:
            self._unreadable(lease, page, f"feed: {feed.error}")
            return
        self._list_page(lease, page, self._entries(feed.entries, lease), feed.entries)

    def _read_sitemap(self, sitemap: Sitemap, lease: Lease, page: Page) -> None:
        if sitemap.error and not (sitemap.entries or sitemap.children):
            self._unreadable(lease, page, f"sitemap: {sitemap.error}")
            return
        found = self._entries(sitemap.entries, lease)
        sites = Services.of(self.crawler).sites
        is_deep = lease.depth >= self.max_depth  # an index of indexes of indexes has no end
        if is_deep and sitemap.children:
            found.refused["depth"] = len(sitemap.children)
        for child in () if is_deep else sitemap.children:
            link = sites.identify(child.url, kind=Kind.SITEMAP, parent=lease.url_id, depth=lease.depth + 1)
            if isinstance(link, Link):
                link.revisit = True
                found.links.append(link)
                found.ids.add(link.url_id)
        self._list_page(lease, page, found, sitemap.entries or sitemap.children)

    def _entries(self, entries: Any, lease: Lease) -> FoundLinks:
        return self.finder.entry_links(entries, parent=lease.url_id, depth=lease.depth, now_ms=self._now_ms())

    def _read_html(self, read: Html, lease: Lease, page: Page) -> None:
        page.keep_raw = "noarchive" not in read.robots
        found = self.finder.find(
            read.hrefs,
            read.base_url,
            parent=lease.url_id,
            depth=lease.depth,
            now_ms=self._now_ms(),
            max_depth=self.max_depth,
            nofollow=read.nofollow,
        )
        if page.kind in LIST_KINDS:
            self._list_page(lease, page, found)
            return
        self._count_links(found)
        page.links = found.links
        if "noindex" in read.robots:
            page.outcome, page.reason, page.keep_raw = Outcome.REFUSED, "noindex", False
        elif read.extraction is None:
            page.outcome, page.reason, page.keep_raw = Outcome.NOT_ARTICLE, "page", False
        else:
            self._read_article(read.extraction, lease, page)

    def _read_article(self, extraction: Extraction, lease: Lease, page: Page) -> None:
        if not extraction.is_article:
            page.outcome, page.reason = Outcome.NOT_ARTICLE, extraction.reason
            page.keep_raw = page.kind is Kind.ARTICLE  # expected one: kept, so that it can be looked at again
            return
        published = extraction.published.value
        if published is not None and self.max_age_s and page.fetched and not lease.digest:
            if (page.fetched - published).total_seconds() > self.max_age_s:
                page.outcome, page.reason, page.keep_raw = Outcome.REFUSED, "age", False
                return
        fields_digest = answers.fields_digest(extraction)
        page.next_visit_ms = revisits.article_visit_ms(self._now_ms(), lease.discovered_ms)
        if fields_digest == lease.links_digest:
            page.outcome, page.keep_raw = Outcome.UNCHANGED, False  # only what surrounds the article changed
            return
        page.links_digest = fields_digest
        page.outcome, page.article = Outcome.DONE, answers.article_of(extraction, lease, page)
        for name in extraction.disagreements:
            self.crawler.stats.inc_value(metrics.labelled(metrics.ARTICLE_CONTESTED, name))
        selectors = Services.of(self.crawler).selectors
        if self.learns and selectors.is_missing(lease.site):
            page.keep_raw = True  # a site without a selector set: pages to learn from
            self.crawler.stats.inc_value(metrics.SELECTOR_MISSING)
        elif self.learns and not extraction.content.origin.startswith("selector:") and selectors.active(lease.site):
            page.keep_raw = True  # its set did not fit: a page to learn the new layout from

    def _list_page(self, lease: Lease, page: Page, found: FoundLinks, entries: Any = ()) -> None:
        """Home, section, feed, sitemap: unchanged when its set of links is; one new link is a change."""
        self._count_links(found)
        page.links = found.links
        site = Services.of(self.crawler).site_of(lease)
        unchanged = self.lists.read(page, site, self._now_ms(), found.ids, entries)
        page.outcome = Outcome.UNCHANGED if unchanged else Outcome.DONE
        # a sample by digest, the same on every worker
        page.keep_raw = page.keep_raw and not unchanged and page.digest[0] < 256 * self.list_sample

    def _unreadable(self, lease: Lease, page: Page, reason: str) -> None:
        """No feed or sitemap in the answer: tried again, and when it stays so, gone."""
        page.outcome, page.reason, page.digest = Outcome.RETRY, reason, lease.digest
        if lease.tries + 1 >= self.max_tries:
            page.outcome = Outcome.GONE
            self.lists.missing(page, self._now_ms(), reason)

    def _count_links(self, found: FoundLinks) -> None:
        stats = self.crawler.stats
        stats.inc_value(metrics.LINKS_FOUND, found.total)
        stats.inc_value(metrics.LINKS_OFFERED, len(found.links))
        stats.inc_value(metrics.LINKS_KNOWN, found.known)
        for reason, count in found.refused.items():
            stats.inc_value(metrics.labelled(metrics.LINKS_REFUSED, reason), count)

    def _now_ms(self) -> int:
        return int(self.crawler.engine.scheduler.now_ms)  # type: ignore[union-attr]


def asked_links(sites: Sites, asked: list[str]) -> list[Link]:
    """The addresses that a person asked for: read as articles whatever they look like, also a second time."""
    found = [sites.identify(url, kind=Kind.ARTICLE, hint={"asked": True}) for url in asked]
    links = [link for link in found if isinstance(link, Link)]
    for link in links:
        link.revisit, link.band = True, 0
    return links
