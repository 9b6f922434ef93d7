"""Scrapy's scheduler, queue and dupe filter over the frontier, behind scrapy-redis' classes.

scrapy-redis' Scheduler keeps its place: it reads its SCHEDULER_* settings, makes the queue and the
dupe filter, and its ``enqueue_request`` / ``next_request`` are the ones the engine calls. What they
call is ours: :class:`LeaseQueue` hands out leases of the frontier, :class:`Pump` is the one task
that talks to Redis, and the hook on ``engine._slot.remove_request`` is where a page is finished.

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
from newscrawler.frontier import cluster, connect_blocking
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.items import Link, Outcome, Page
from newscrawler.pump import Pump
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.stats import PageEnds
from newscrawler.store.base import StoreRefused, StoreUnavailable
from newscrawler.wiring import Services, StartRefused, refuse_to_flush

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

# scrapy-redis 0.9.1 still hands the spider to the stats; harmless, and not the user's to mend
warnings.filterwarnings("ignore", "Passing a 'spider' argument to StatsCollector", module="scrapy_redis")


class LeaseQueue(RedisQueue):
    """scrapy-redis' queue interface over the leases that the pump fetched. Does no I/O.

    Nothing is serialised here (records are packed by the frontier), so scrapy-redis' pickles never
    reach Redis.
    """

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        super().__init__(server, spider, key, serializer or json)
        self.buffer: deque[tuple[float, Request]] = deque()  # (when leased, request)
        self.outbox: list[Link] = []  # requests that the spider or a middleware made: to the frontier
        self.refused: Callable[[Request, str], None] = lambda request, reason: None
        self.pending: Callable[[], int] = lambda: 0

    def push(self, request: Request) -> None:
        """A request that did not come from the frontier goes there like any link."""
        found = Services.of(self.spider.crawler).sites.identify(request.url)
        if isinstance(found, Link):
            self.outbox.append(found)
        else:
            self.refused(request, found.reason)

    def pop(self, timeout: int = 0) -> Request | None:
        return self.buffer.popleft()[1] if self.buffer else None

    def __len__(self) -> int:
        return self.pending()

    def clear(self) -> None:
        raise StartRefused("one worker must not empty the fleet's queue; use `scrapy frontier purge`")


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
        return self.seen(request.url)

    def close(self, reason: str = "") -> None:
        """scrapy-redis deletes its set here; the fleet's filter stays."""

    clear = close


class Scheduler(RedisScheduler):
    """scrapy-redis' Scheduler: opens the frontier, notes how visits end, closes by giving leases back."""

    queue: LeaseQueue
    df: DupeFilter
    spider: Spider
    pump: Pump

    def __init__(self, *args: Any, crawler: Crawler, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        settings = crawler.settings
        refuse_to_flush(settings)
        services = Services.of(crawler)
        try:
            if cluster.is_cluster(services.redis_url):  # scrapy-redis knows single servers only
                server = connect_blocking(services.redis_url)
            else:
                # a running crawler's settings are frozen, and the embedded server's URL is not in them
                server = get_redis_from_settings(
                    Settings({"REDIS_URL": services.redis_url, "REDIS_PARAMS": settings.getdict("REDIS_PARAMS")})
                )
            server.ping()  # fails here, before anything is fetched, rather than in the pump
        except Exception as exc:
            raise FrontierUnavailable(f"Redis does not answer at {services.redis_url}: {exc}") from exc
        scheduler = cls(
            server=server,
            persist=True,
            queue_cls="newscrawler.scheduler.LeaseQueue",
            dupefilter=DupeFilter.from_settings(settings),
            idle_before_close=settings.getint("SCHEDULER_IDLE_BEFORE_CLOSE"),
            crawler=crawler,
        )
        scheduler.stats = crawler.stats
        return scheduler

    def open(self, spider: Spider) -> Deferred[None]:  # type: ignore[override]
        super().open(spider)
        services = Services.of(self.crawler)
        self.pump = Pump(self.crawler, services, self.queue, idle_s=self.idle_before_close)
        self.queue.refused = self._refused
        self.queue.pending = self.pump.pending
        self.df.seen = services.frontier.seen_local
        connect = self.crawler.signals.connect
        PageEnds.of(self.crawler).listen(self._item_scraped)
        connect(self._item_error, signals.item_error)
        connect(self._item_dropped, signals.item_dropped)
        connect(self._spider_error, signals.spider_error)
        connect(self._downloaded, signals.response_downloaded)
        connect(self._left_downloader, signals.request_left_downloader)
        return deferred_from_coro(self.pump.start(services.policies()))

    def close(self, reason: str) -> Deferred[None]:  # type: ignore[override]
        return deferred_from_coro(self._close())

    async def _close(self) -> None:
        await self.pump.stop()
        self.server.close()
        services = Services.of(self.crawler)
        await services.reader.close()
        await services.close()
        self.crawler.stats.set_value(metrics.CHILDREN_PEAK, services.children_peak_kb)

    async def add(self, links: Iterable[Link]) -> int:
        """Offers links from outside a page (seeds, ad-hoc URLs). Returns how many were new or due again."""
        return await self.pump.add(list(links))

    @property
    def now_ms(self) -> int:
        """The frontier's clock, ms since the epoch."""
        return self.pump.now_ms

    def enqueue_request(self, request: Request) -> bool:
        if "lease" in request.meta:
            # A middleware returned a new request for a leased page: it goes to the frontier as a
            # URL of its own, and the old lease ends as redirected.
            self.pump.note_lease(request.meta["lease"], Outcome.REDIRECTED, "middleware")
            request = request.replace(meta={k: v for k, v in request.meta.items() if k not in ("lease", "robots")})
        accepted: bool = super().enqueue_request(request)
        self.pump.wake.set()
        return accepted

    def has_pending_requests(self) -> bool:
        return self.pump.pending() > 0

    # -- how a visit ended; the worst word wins
    def _item_scraped(self, item: Any, response: Response) -> None:
        request = response.request
        if isinstance(item, Page) and request is not None:
            self.pump.note_page(request, item)

    def _item_error(self, item: Any, response: Response | Failure, failure: Failure) -> None:
        request = getattr(response, "request", None)
        if request is None:
            return
        if failure.check(StoreUnavailable, RawStoreUnavailable):
            self.pump.store_failed(request, str(failure.value))
        elif isinstance(failure.value, StoreRefused):
            logger.warning("Article refused, comes again url=%s error=%s", request.url, failure.value.reason)
            self.pump.note(request, Outcome.RETRY, "store refused")
        else:
            self.pump.note(request, Outcome.RETRY, "pipeline")

    def _item_dropped(self, item: Any, response: Response | Failure, exception: DropItem) -> None:
        request = getattr(response, "request", None)
        if request is not None:
            self.pump.note(request, Outcome.REFUSED, "dropped")

    def _spider_error(self, failure: Failure, response: Response | Failure) -> None:
        request = getattr(response, "request", None)
        if request is not None:
            self.pump.note(request, Outcome.RETRY, "parse")

    def _downloaded(self, response: Response, request: Request) -> None:
        self.pump.fetched(request, response.status, response.headers.get(b"Retry-After"), len(response.body))

    def _left_downloader(self, request: Request) -> None:
        self.pump.left_downloader(request)  # before the errback; nothing happens after _downloaded

    def _refused(self, request: Request, reason: str) -> None:
        self.crawler.stats.inc_value(metrics.labelled(metrics.LINKS_REFUSED, reason))
        logger.info("Request refused url=%s reason=%s", request.url, reason)
