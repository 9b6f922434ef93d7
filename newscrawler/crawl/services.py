"""What the components of one crawl share, opened on first use and once per crawler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import redis

from newscrawler import metrics
from newscrawler.crawl import opening, plugins, site_choice
from newscrawler.crawl.visits import Visits
from newscrawler.crawl.waits import Waits
from newscrawler.discovery.sites import Site, Sites
from newscrawler.fleet.history import HistoryUnavailable
from newscrawler.fleet.identity import is_dead_worker, worker_id
from newscrawler.fleet.registry import WORKERS, RegistryUnavailable, worker_key
from newscrawler.frontier import connect_blocking
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.errors import translated
from newscrawler.frontier.queue import DomainPolicy, Frontier, FrontierUnavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from newscrawler.crawl.announce import Direct, Dispatcher
    from newscrawler.crawl.announced_lists import Announced
    from newscrawler.crawl.bounded_crawls import BoundedCrawls
    from newscrawler.crawl.ingest import Ingest
    from newscrawler.crawl.link_graph import LinkNotes
    from newscrawler.crawl.link_learning import LinkLearning
    from newscrawler.crawl.parse_process import ParseProcesses
    from newscrawler.crawl.processes import StoreProcess
    from newscrawler.crawl.render_lessons import RenderLessons
    from newscrawler.crawl.rhythms import Rhythms
    from newscrawler.crawl.virus_scan import VirusScan
    from newscrawler.crawl.websub import Subscriptions
    from newscrawler.extraction.metadata_rules import MetadataRule
    from newscrawler.frontier.operator import Operator
    from newscrawler.frontier.queue import Lease
    from newscrawler.rawstore import RawStore
    from newscrawler.selectorsets.store import SelectorStore
    from newscrawler.store.base import ArticleStore
    from newscrawler.store.finished import FinishedStore


def others_at_work(url: str, worker: str) -> bool:
    """Whether another live worker is registered in this Redis. False where Redis does
    not answer. Blocking."""
    try:
        with connect_blocking(url, socket_connect_timeout=5, socket_timeout=5) as client:
            return any(
                client.exists(worker_key(other))
                for other in (name.decode() for name in client.zrange(WORKERS, 0, -1))
                if other != worker and not is_dead_worker(other)
            )
    except (redis.RedisError, redis.exceptions.RedisClusterException):
        return False


@dataclass
class Services:
    """What the components of one crawl share. Parts are opened on first use.

    ``NewsSpider.from_crawler`` makes the one of a crawl (:meth:`for_crawl`), as Scrapy makes the
    spider before every other component; they take it from there in their own ``from_crawler`` by
    :func:`services_of`.
    """

    settings: BaseSettings
    worker: str
    sites: Sites  # all that may come out of the frontier
    chosen: list[str]  # ids of those that this crawl is for
    loopback_only: bool
    visits: Visits = field(default_factory=Visits)
    waits: Waits = field(default_factory=Waits)
    count: Callable[[str, int], Any] = lambda name, number: None  # of the crawl's stats
    observe: Callable[[str, float], Any] = lambda name, seconds: None  # a histogram, likewise
    is_over: Callable[[], bool] = lambda: False  # the crawl was told to end: nothing is waited for
    _store_process: StoreProcess | None = None

    @classmethod
    def for_crawl(
        cls, crawler: Crawler, spider: Spider, sites: str | None, urls: str | None
    ) -> Services:
        """:param sites, urls: the spider's arguments, see :func:`load_sites`"""
        settings = crawler.settings
        chosen = site_choice.load_sites(settings, only=sites, urls=urls)
        return cls(
            settings=settings,
            worker=worker_id(opening.job_of(spider)),
            sites=site_choice.all_sites(settings).replaced(chosen),
            chosen=[site.id for site in chosen.enabled()],
            loopback_only=site_choice.all_loopback(chosen, settings),
            count=lambda name, number: crawler.stats.inc_value(name, number),
            observe=lambda name, seconds: metrics.observe(crawler.stats, name, seconds),
            is_over=lambda: is_closing(crawler),
        )

    @property
    def has_frontier(self) -> bool:
        """False where one page is read by itself (`scrapy parse --spider=news`): no
        Redis, nothing stored."""
        return self.settings.getbool("FRONTIER_ENABLED")

    @cached_property
    def redis_url(self) -> str:
        """The embedded server is started by the first part that asks for it."""
        return opening.redis_url(self.settings)

    def policies(self) -> list[DomainPolicy]:
        """For the frontier. In a queue of our own the sites that this crawl is not for rest until a
        crawl is for them; in a shared one they are other workers' business, and this worker helps
        with what it is handed. So they are in our own while another worker is at it: a full crawl
        goes on beside one of a few sites."""
        own_queue = not self.settings.get("REDIS_URL") and not others_at_work(
            self.redis_url, self.worker
        )
        return site_choice.domain_policies(
            self.sites, self.settings, chosen=set(self.chosen) if own_queue else None
        )

    def policies_of(self, sites: Sites) -> list[DomainPolicy]:
        """Of sites that are to be fetched, whether this crawl is for them or not."""
        return site_choice.domain_policies(sites, self.settings)

    def restore_redis(self) -> None:
        """Starts the embedded server again where it has died. Blocking.

        :raises newscrawler.frontier.queue.FrontierGone: its folder was deleted
        :raises newscrawler.frontier.queue.FrontierUnavailable: it does not start
        """
        if not self.settings.get("REDIS_URL"):
            binary = self.settings.get("REDIS_SERVER_BIN") or ""
            embedded.restore(opening.data_dir(self.settings), binary)

    def site_of(self, lease: Lease) -> Site:
        """The site of a lease; of a host that another worker was asked to
        crawl, one made for it."""
        site = self.sites.get(lease.site)
        if site is None:
            self.sites = self.sites.for_urls([lease.url])
            site = self.sites.by_host(lease.domain)
        assert site is not None, lease.domain
        return site

    @cached_property
    def frontier(self) -> Frontier:
        from newscrawler.frontier import connect

        return Frontier(
            connect(self.redis_url),
            opening.frontier_config(self.settings, loopback_only=self.loopback_only),
            self.worker,
            self.finished,
            is_dead_worker,
        )

    @cached_property
    def announced(self) -> Announced:
        from newscrawler.crawl.announced_lists import Announced
        from newscrawler.frontier.found import FoundSeeds

        return Announced(FoundSeeds(self.redis, lambda: self.frontier.layout))

    @cached_property
    def rhythms(self) -> Rhythms:
        """At which hours sites publish."""
        from newscrawler.crawl.rhythms import Rhythms

        return Rhythms(self.redis)

    @cached_property
    def websub(self) -> Subscriptions | None:
        """Where hubs of feeds are noted; None: nobody could tell us, PUBLIC_URL is not set."""
        from newscrawler.crawl.websub import Subscriptions, public_url

        is_on = self.has_frontier and public_url(self.settings)
        return Subscriptions(self.redis) if is_on else None

    @cached_property
    def virus_scan(self) -> VirusScan | None:
        """What every page and pushed feed is shown to before it is read; None: CLAMAV is empty, or
        a page is read for a person, which stores nothing.

        :raises ValueError: a setting is wrong
        """
        from newscrawler.crawl.virus_scan import VirusScan, scanner_of

        scanner = scanner_of(self.settings)
        if scanner is None or not self.has_frontier:
            return None
        passes = self.settings["CLAMAV_AWAY"] == "pass"
        return VirusScan(scanner, self.waits, self.count, self.observe, self.is_over, passes=passes)

    @cached_property
    def bounded(self) -> BoundedCrawls:
        from newscrawler.crawl.bounded_crawls import BoundedCrawls

        found = BoundedCrawls(self)
        self.visits.listen(found.ended)
        return found

    @cached_property
    def link_notes(self) -> LinkNotes:
        from newscrawler.crawl.link_graph import LinkNotes
        from newscrawler.frontier.taken import Taken

        client = self.frontier.client
        taken = Taken(client, self.settings.getint("FRONTIER_SHARDS"))
        return LinkNotes(client, self.settings.getint("LINK_GRAPH_PAGES"), taken)

    @cached_property
    def link_learning(self) -> LinkLearning:
        """The service that learns the classes of each site's links."""
        from newscrawler.crawl.link_learning import LinkLearning

        return LinkLearning(self.frontier.client if self.has_frontier else None)

    @cached_property
    def finished(self) -> FinishedStore | None:
        return opening.open_finished_store(self.settings)

    @cached_property
    def redis(self) -> Redis:
        """A second client for what is not the frontier's lease loop: registry,
        selector sets, events."""
        from newscrawler.frontier import connect

        return connect(self.redis_url, single=False)

    @cached_property
    def render_lessons(self) -> RenderLessons:
        from newscrawler.crawl.render_lessons import RenderLessons

        return RenderLessons(self.redis)

    @cached_property
    def render_operator(self) -> Operator:
        """For the delays and robots.txt of hosts that pages ask, beside the lease loop's client."""
        from newscrawler.frontier.operator import Operator

        return Operator(self.redis, self.settings.getint("FRONTIER_SHARDS"))

    @cached_property
    def store(self) -> ArticleStore:
        elsewhere = None
        if self.settings.getbool("STORE_PROCESS"):
            from newscrawler.crawl.processes import StoreProcess

            elsewhere = self._store_process = StoreProcess()
        return opening.open_article_store(self.settings, elsewhere)

    @cached_property
    def ingest(self) -> Ingest:
        """The one way into the store; its pages are kept and its articles announced."""
        from newscrawler.crawl.ingest import Block, Ingest, Patience
        from newscrawler.frontier.taken import Taken

        return Ingest(
            self.store,
            self.raw,
            self.announcer,
            self.count,
            patience=Patience(self.waits, self.is_over),
            block=Block(Taken(self.redis, self.settings.getint("FRONTIER_SHARDS"))),
            rows=self.settings.getint("STORE_BATCH_ROWS"),
            wait_s=self.settings.getfloat("STORE_BATCH_MS") / 1000,
        )

    @cached_property
    def announcer(self) -> Dispatcher | Direct:
        return opening.open_announcer(self.settings, self.store, self.redis)

    @cached_property
    def metadata_rules(self) -> tuple[MetadataRule, ...]:
        return plugins.metadata_rules(self.settings)

    @cached_property
    def raw(self) -> RawStore:
        return opening.open_raw_store(self.settings, self.worker)

    @cached_property
    def selectors(self) -> SelectorStore:
        client = self.redis if self.has_frontier else None
        return opening.open_selector_store(self.settings, client)

    @cached_property
    def reader(self) -> ParseProcesses:
        from newscrawler.crawl.parse_process import ParseProcesses

        return ParseProcesses(
            self.settings.getint("READ_PROCESSES"), self.settings.getint("READ_MEMORY_BYTES")
        )

    @property
    def child_pids(self) -> list[int]:
        """Of the processes that read pages and write articles."""
        pids: list[int | None] = []
        if (reader := self._opened("reader")) is not None:
            pids += reader.pids
        if self._store_process is not None:
            pids.append(self._store_process.pid)
        return [pid for pid in pids if pid is not None]

    @property
    def children_peak_kb(self) -> int:
        """Kilobytes that the processes of this worker had together at most; known
        when all is closed."""
        return sum(
            part.peak_kb
            for part in (self._opened("reader"), self._store_process)
            if part is not None
        )

    def _opened(self, name: str) -> Any:
        """A part of that name, where one was asked for; None: not yet."""
        return vars(self).get(name)

    async def close(self) -> None:
        """Closes what was opened, the frontier's client last, as the others may still report."""
        if (announcer := self._opened("announcer")) is not None:
            await announcer.close()
        for name in ("raw", "store", "finished", "redis"):
            part = vars(self).pop(name, None)
            if part is None:
                continue
            closing = part.aclose() if name == "redis" else part.close()
            if asyncio.iscoroutine(closing):
                await closing


def services_of(crawler: Crawler) -> Services:
    """The services of a crawl, for the ``from_crawler`` of its components: its spider holds them.

    :raises TypeError: the spider has none, so it is no NewsSpider
    """
    services: Services | None = getattr(crawler.spider, "services", None)
    if services is None:
        raise TypeError(
            f"the spider {getattr(crawler.spider, 'name', None)!r} has no services: newscrawler's"
            " components work for newscrawler.spiders.news.NewsSpider and what is derived from it"
        )
    return services


def is_redis_away(exc: Exception) -> bool:
    """Whether a call failed because Redis is away, full or loading, which is waited for;
    else the call is wrong."""
    if isinstance(exc, (RegistryUnavailable, HistoryUnavailable)):
        return True
    try:
        with translated():
            raise exc
    except FrontierUnavailable:
        return True
    except Exception:
        return False


def is_closing(crawler: Crawler) -> bool:
    """The crawl was told to end: what is in flight finishes or goes back."""
    engine = crawler.engine
    if engine is None or engine._slot is None:
        return True
    return engine._slot.closing is not None or not engine.running
