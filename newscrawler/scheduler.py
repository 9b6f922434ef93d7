"""Scrapy's scheduler, queue and dupe filter over the frontier, behind scrapy-redis' classes.

scrapy-redis' Scheduler keeps its place: it reads its SCHEDULER_* settings, makes the queue
and the dupe filter, and its ``enqueue_request`` / ``next_request`` are the ones the engine
calls. What they call is ours: :class:`LeaseQueue` grants leases of the frontier,
:class:`LeaseLoop` is the one task that talks to Redis, and the hook on
``engine._slot.remove_request`` is where a page is finished.

Signals and the errback only *note* how a visit ended; the hook *acks* it. No Scrapy signal fires on
every path, but every path ends in ``remove_request`` (docs/frontier.md, tests/crawl/test_paths.py).
"""

from __future__ import annotations

import json
import logging
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import DropItem
from scrapy.settings import Settings
from scrapy.utils.defer import deferred_from_coro
from scrapy_redis.connection import get_redis_from_settings
from scrapy_redis.dupefilter import RFPDupeFilter
from scrapy_redis.queue import Base as RedisQueue
from scrapy_redis.scheduler import Scheduler as RedisScheduler
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from newscrawler import metrics
from newscrawler.crawl.lease_loop import LeaseLoop
from newscrawler.crawl.opening import StartRefused
from newscrawler.crawl.preflight import refuse_to_flush
from newscrawler.crawl.services import Services, services_of
from newscrawler.discovery.sites import Refusal
from newscrawler.frontier import connect_blocking, redis_cluster
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.items import Link, Outcome, Visit
from newscrawler.pipelines import VisitEnds
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import StoreRefused, StoreUnavailable
from newscrawler.utils.display import url_shown

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

# scrapy-redis 0.9.1 still hands the spider to the stats; harmless, and not the user's to mend
warnings.filterwarnings(
    "ignore", "Passing a 'spider' argument to StatsCollector", module="scrapy_redis"
)


class LeaseQueue(RedisQueue):
    """scrapy-redis' queue interface over the leases that the lease loop fetched. Does no I/O.

    Nothing is serialised here (records are packed by the frontier), so scrapy-redis' pickles never
    reach Redis.
    """

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        super().__init__(server, spider, key, serializer or json)
        self.buffer: deque[tuple[float, Request]] = deque()  # (when leased, request)
        self.outbox: list[
            Link
        ] = []  # requests that the spider or a middleware made: to the frontier
        self.identify: Callable[[str], Link | Refusal] = lambda url: Refusal("offsite")
        self.refused: Callable[[Request, str], None] = lambda request, reason: None
        self.pending: Callable[[], int] = lambda: 0

    def push(self, request: Request) -> None:
        """A request that did not come from the frontier goes there like any link."""
        found = self.identify(request.url)
        if isinstance(found, Link):
            self.outbox.append(found)
        else:
            self.refused(request, found.reason)

    def pop(self, timeout: int = 0) -> Request | None:
        return self.buffer.popleft()[1] if self.buffer else None

    def __len__(self) -> int:
        return self.pending()

    def clear(self) -> None:
        """:raises StartRefused: always, as the queue is the fleet's"""
        raise StartRefused(
            "one worker must not empty the fleet's queue; use `scrapy frontier purge`"
        )


class DupeFilter(RFPDupeFilter):
    """scrapy-redis' dupe filter interface over the frontier's seen filter.

    The answer that counts is given by the script that queues a URL, in the same step; here only
    what this worker knows for certain is dropped, without a call to Redis.
    """

    def __init__(self, server: Any, key: str = "", debug: bool = False) -> None:
        super().__init__(server, key, debug)
        self.seen: Callable[[str], bool] = lambda url: False

    @classmethod
    def from_settings(cls, settings: Any) -> DupeFilter:
        return cls(None, debug=settings.getbool("DUPEFILTER_DEBUG"))

    def request_seen(self, request: Request) -> bool:
        """Whether the worker knows the frontier to have the URL: by its exact table, or by the
        pybloom-live filter."""
        return self.seen(request.url)

    def close(self, reason: str = "") -> None:
        """scrapy-redis deletes its set here; the fleet's filter stays."""

    clear = close


class Scheduler(RedisScheduler):
    """scrapy-redis' Scheduler: opens the frontier, notes how visits end, closes by
    giving leases back."""

    queue: LeaseQueue
    df: DupeFilter
    spider: Spider
    lease_loop: LeaseLoop

    def __init__(self, *args: Any, crawler: Crawler, services: Services, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.crawler = crawler
        self.services = services

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        """:raises newscrawler.frontier.queue.FrontierUnavailable: Redis does not answer
        :raises newscrawler.crawl.opening.StartRefused: a setting would empty the queue
        """
        settings = crawler.settings
        refuse_to_flush(settings)
        services = services_of(crawler)
        try:
            if redis_cluster.is_cluster(
                services.redis_url
            ):  # scrapy-redis knows single servers only
                server = connect_blocking(services.redis_url)
            else:
                # a running crawler's settings are frozen, and the embedded server's
                # URL is not in them
                server = get_redis_from_settings(
                    Settings(
                        {
                            "REDIS_URL": services.redis_url,
                            "REDIS_PARAMS": settings.getdict("REDIS_PARAMS"),
                        }
                    )
                )
            server.ping()  # fails here, before anything is fetched, rather than in the lease loop
        except Exception as exc:
            raise FrontierUnavailable(
                f"Redis does not answer at {url_shown(services.redis_url)}: {exc}"
            ) from exc
        scheduler = cls(
            server=server,
            persist=True,
            queue_cls="newscrawler.scheduler.LeaseQueue",
            dupefilter=DupeFilter.from_settings(settings),
            idle_before_close=settings.getint("SCHEDULER_IDLE_BEFORE_CLOSE"),
            crawler=crawler,
            services=services,
        )
        scheduler.stats = crawler.stats
        return scheduler

    def open(self, spider: Spider) -> Deferred[None]:
        super().open(spider)
        services = self.services
        self.lease_loop = LeaseLoop(
            self.crawler, services, self.queue, idle_s=self.idle_before_close
        )
        self.queue.identify = lambda url: services.sites.identify(url)
        self.queue.refused = self._refused
        self.queue.pending = self.lease_loop.pending
        self.df.seen = self._is_known
        connect = self.crawler.signals.connect
        connect(self._item_error, signals.item_error)
        connect(self._item_dropped, signals.item_dropped)
        connect(self._spider_error, signals.spider_error)
        connect(self._downloaded, signals.response_downloaded)
        connect(self._left_downloader, signals.request_left_downloader)
        return deferred_from_coro(self.lease_loop.start(services.policies()))

    def _is_known(self, url: str) -> bool:
        """As links are judged. With the link in hand, so that the local filter is asked as well
        (LocalSeen.knows)."""
        services = self.services
        link = services.sites.identify(url, now_ms=self.now_ms)
        return isinstance(link, Link) and services.frontier.seen_local(link.url, link)

    def close(self, reason: str) -> Deferred[None]:
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        await self.lease_loop.stop()
        self.server.close()
        services = self.services
        await services.reader.close()
        await services.close()
        self.crawler.stats.set_value(metrics.CHILDREN_PEAK, services.children_peak_kb)

    async def add(self, links: Iterable[Link]) -> int:
        """Offers links from outside a page (seeds, ad-hoc URLs). Returns how many
        were new or due again."""
        return await self.lease_loop.add(list(links))

    @property
    def now_ms(self) -> int:
        """The frontier's clock, ms since the epoch."""
        return self.lease_loop.now_ms

    def enqueue_request(self, request: Request) -> bool:
        if "lease" in request.meta:
            # A middleware returned a new request for a leased page: it goes to the frontier as a
            # URL of its own, and the old lease ends as redirected.
            self.lease_loop.note_lease(request.meta["lease"], Outcome.REDIRECTED, "middleware")
            request = request.replace(
                meta={k: v for k, v in request.meta.items() if k not in ("lease", "robots")}
            )
        accepted: bool = super().enqueue_request(request)
        self.lease_loop.wake.set()
        return accepted

    def has_pending_requests(self) -> bool:
        return self.lease_loop.pending() > 0

    # -- what the spider says of a visit
    async def visited(self, request: Request | None, visit: Visit) -> None:
        """Before its article is yielded. A page without one is settled here, as no item takes it
        through pipelines."""
        assert request is not None
        self.lease_loop.note_visit(request, visit)
        if visit.article is not None:
            return
        try:
            await self._settle(visit)
        except (StoreUnavailable, RawStoreUnavailable) as exc:
            self.lease_loop.store_failed(request, exc)

    def failed(self, request: Request, visit: Visit) -> None:
        """A fetch without a usable answer: there is nothing to settle."""
        self.lease_loop.note_visit(request, visit)

    async def _settle(self, visit: Visit) -> None:
        visits = self.services.visits
        if visits.stores_articles:
            await self.services.ingest.note_gone(visit)
            await self.services.ingest.note_moved(visit)
        if visits.keeps_pages:
            await self.services.ingest.keep(visit)
        visit.body = None

    # -- how a visit ended; the worst word wins
    def _item_error(self, item: Any, response: Response | Failure, failure: Failure) -> None:
        request = getattr(response, "request", None)
        if request is None:
            return
        if failure.check(StoreUnavailable, RawStoreUnavailable):
            self.lease_loop.store_failed(request, failure.value)
        elif isinstance(failure.value, StoreRefused):
            logger.warning(
                "Article refused, comes again url=%s error=%s", request.url, failure.value.reason
            )
            self.lease_loop.note(request, Outcome.RETRY, "store refused")
        else:
            self.lease_loop.note(request, Outcome.RETRY, "pipeline")

    async def _item_dropped(
        self, item: Any, response: Response | Failure, exception: DropItem
    ) -> None:
        request = getattr(response, "request", None)
        if request is None:
            return
        if not isinstance(exception, VisitEnds):
            self.lease_loop.note(request, Outcome.REFUSED, "dropped")
            return
        visit = self.lease_loop.note_end(request, exception.outcome, exception.reason)
        if visit is None or exception.outcome is not Outcome.NOT_ARTICLE:
            return
        try:
            await self._settle(visit)  # looked at again when the site changes
        except (StoreUnavailable, RawStoreUnavailable) as exc:
            self.lease_loop.store_failed(request, exc)

    def _spider_error(self, failure: Failure, response: Response | Failure) -> None:
        request = getattr(response, "request", None)
        if request is not None:
            self.lease_loop.note(request, Outcome.RETRY, "parse")

    def _downloaded(self, response: Response, request: Request) -> None:
        self.lease_loop.fetched(
            request, response.status, response.headers.get(b"Retry-After"), len(response.body)
        )

    def _left_downloader(self, request: Request) -> None:
        self.lease_loop.left_downloader(
            request
        )  # before the errback; nothing happens after _downloaded

    def _refused(self, request: Request, reason: str) -> None:
        self.crawler.stats.inc_value(metrics.labelled(metrics.LINKS_REFUSED, reason))
        logger.info("Request refused url=%s reason=%s", request.url, reason)
