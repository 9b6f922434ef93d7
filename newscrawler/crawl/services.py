"""Joins the services to a crawler's settings: one place that makes each of them, once per crawler.

Services do not import one another and never see settings; adapters and commands ask here.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from scrapy.settings import default_settings

from newscrawler import metrics
from newscrawler import settings as defaults
from newscrawler.crawl import gate_groups, ignored_settings, plugins, renamed_settings
from newscrawler.crawl.visits import Visits
from newscrawler.crawl.waits import Waits
from newscrawler.discovery import article_revisits, overlay
from newscrawler.discovery.sites import Site, Sites, SitesError
from newscrawler.fetch import address_guard
from newscrawler.fleet.history import HistoryUnavailable
from newscrawler.fleet.identity import is_dead_worker as is_dead_worker
from newscrawler.fleet.identity import worker_id as worker_id
from newscrawler.fleet.registry import WORKERS, RegistryUnavailable, order_key, worker_key
from newscrawler.frontier import connect_blocking
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.errors import translated
from newscrawler.frontier.queue import DomainPolicy, Frontier, FrontierConfig, FrontierUnavailable
from newscrawler.web import urls as weburls

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
    from newscrawler.rawstore.sealing import Keys
    from newscrawler.selectorsets.store import SelectorStore
    from newscrawler.store.base import ArticleStore
    from newscrawler.store.events import EventSink
    from newscrawler.store.finished import FinishedStore
    from newscrawler.store.semantic.embedder import Embedder


#: What `scrapy crawl news` takes after -a; scrapyd adds _job.
SPIDER_ARGS = ("sites", "urls", "since")


class StartRefused(ValueError):
    """The crawl must not start like this; the text says why and what to do."""


def data_dir(settings: BaseSettings) -> Path:
    return Path(settings["DATA_DIR"]).resolve()


def json_log_dir(settings: BaseSettings) -> Path:
    """Where workers write their log as JSON lines (LOG_JSON)."""
    return data_dir(settings) / "logs" / "json"


def is_scrapyd_job() -> bool:
    """scrapyd names the project in the environment of its jobs; nothing else does."""
    return bool(os.environ.get("SCRAPY_PROJECT"))


def job_of(spider: Any) -> str:
    """scrapyd's id of the job that this process is, "" = none. Since 1.3 scrapyd hands it over as
    the spider's argument ``_job`` and no longer in the environment (SCRAPY_JOB)."""
    return str(getattr(spider, "_job", "") or os.environ.get("SCRAPY_JOB", ""))


def redis_url(settings: BaseSettings) -> str:
    """REDIS_URL, or that of the embedded server, which is started when it is not running.

    :raises StartRefused: in a scrapyd job without REDIS_URL
    :raises newscrawler.frontier.queue.FrontierUnavailable: no server could be started
    """
    url = settings.get("REDIS_URL") or ""
    if url:
        return str(url)
    if is_scrapyd_job():
        raise StartRefused(
            "REDIS_URL is not set: a worker started by scrapyd would crawl from a queue of its own,"
            " beside the fleet's. Set REDIS_URL in scrapyd's environment or schedule with -d"
            " setting=REDIS_URL=redis://host:6379/0"
        )
    url = embedded.ensure(data_dir(settings), settings.get("REDIS_SERVER_BIN") or "")
    atexit.register(
        embedded.stop_if_last, data_dir(settings)
    )  # whatever way this process ends in order
    return url


def stop_embedded(settings: BaseSettings) -> None:
    """The embedded server, where it is used and nobody else uses it: a command that has done its
    work does not wait for its own end to say so. A server of REDIS_URL is its owner's."""
    if not settings.get("REDIS_URL"):
        embedded.stop_if_last(data_dir(settings))


def frontier_config(settings: BaseSettings, *, loopback_only: bool) -> FrontierConfig:
    def ms(name: str) -> int:
        return round(settings.getfloat(name) * 1000)

    return FrontierConfig(
        shards=settings.getint("FRONTIER_SHARDS"),
        lease_ms=ms("FRONTIER_LEASE_S"),
        max_tries=settings.getint("FRONTIER_MAX_TRIES"),
        local_links=settings.getint("FRONTIER_LOCAL_LINKS"),
        queue_limit=settings.getint("FRONTIER_QUEUE_LIMIT"),
        obey_robots=settings.getbool("ROBOTSTXT_OBEY"),
        robots_max_age_ms=ms("ROBOTS_MAX_AGE_S"),
        autothrottle=settings.getbool("AUTOTHROTTLE_ENABLED"),
        autothrottle_start_ms=ms("AUTOTHROTTLE_START_DELAY"),
        autothrottle_max_ms=ms("AUTOTHROTTLE_MAX_DELAY"),
        autothrottle_target=settings.getfloat("AUTOTHROTTLE_TARGET_CONCURRENCY"),
        robots_retry_ms=ms("ROBOTS_RETRY_S"),
        backoff_start_ms=ms("BACKOFF_START_S"),
        backoff_max_ms=ms("BACKOFF_MAX_S"),
        requests_per_minute=settings.getint("FRONTIER_REQUESTS_PER_MINUTE"),
        bytes_per_minute=settings.getint("FRONTIER_BYTES_PER_MINUTE"),
        pattern_budget=settings.getint("FRONTIER_PATTERN_BUDGET"),
        finished_limit=settings.getint("FRONTIER_FINISHED_LIMIT"),
        loopback_only=loopback_only,
    )


def split_urls(urls: str | Iterable[str]) -> list[str]:
    """``-a urls=`` is one comma-separated string; commands hand a list."""
    given = urls.split(",") if isinstance(urls, str) else urls
    return [url.strip() for url in given if url.strip()]


def all_sites(settings: BaseSettings) -> Sites:
    """Every site of SITES_FILE, with the operator's changes.

    :raises newscrawler.discovery.sites.SitesError: the file or the overlay cannot be read
    """
    return overlay.applied(Sites.load(settings.get("SITES_FILE") or ""), data_dir(settings))


def load_sites(
    settings: BaseSettings, *, only: str | None = None, urls: str | Iterable[str] | None = None
) -> Sites:
    """The sites that a crawl is for: those of SITES_FILE that are enabled, those named in ``only``
    (comma-separated ids, hosts or aliases), or those of ``urls``, made for the purpose where no
    file knows the host.

    :raises newscrawler.discovery.sites.SitesError: the file cannot be read, or a name
        or address is wrong
    """
    sites = all_sites(settings)
    if urls:
        return _sites_of_urls(sites, split_urls(urls))
    if not only:
        return sites
    try:
        return sites.only([name.strip() for name in only.split(",") if name.strip()])
    except KeyError as exc:
        near = ", ".join(sites.near(exc.args[0]))
        hint = f"; did you mean {near}?" if near else "; see `scrapy sites list`"
        raise SitesError("sites", exc.args[0], "", f"unknown site{hint}") from exc


def _sites_of_urls(sites: Sites, asked: list[str]) -> Sites:
    hosts = set()
    for url in asked:
        canonical = weburls.canonicalize(url)
        if canonical is None:
            raise SitesError("urls", "", "", f"{url!r} is not an http(s) address")
        hosts.add(weburls.domain_of(canonical))
    sites = sites.for_urls(asked)
    found = (sites.by_host(host) for host in hosts)
    return sites.only(sorted({site.id for site in found if site is not None}))


def domain_policies(
    sites: Sites, settings: BaseSettings, *, chosen: Collection[str] | None = None
) -> list[DomainPolicy]:
    """One per host of the sites. DOWNLOAD_DELAY is the floor under a site's own delay.

    :param chosen: ids of the only sites that are to be fetched; None = all that are enabled
    :raises ValueError: FRONTIER_GROUP_BY is no known way
    """
    floor = settings.getfloat("DOWNLOAD_DELAY")
    group_by = str(settings.get("FRONTIER_GROUP_BY") or "")
    if group_by not in ("", "site", "ip"):
        raise ValueError(f"FRONTIER_GROUP_BY is {group_by!r}; it must be site, ip or empty")

    return [
        DomainPolicy(
            domain=host,
            site=site.id,
            cls=site.cls,
            floor_ms=round(max(floor, site.delay_s) * 1000),
            enabled=site.enabled and (chosen is None or site.id in chosen),
            pages_per_day=site.pages_per_day or settings.getint("FRONTIER_PAGES_PER_DAY"),
            group=site.group or _group_of(site, group_by),
        )
        for site in sites
        for host in site.hosts
    ]


def _group_of(site: Site, group_by: str) -> str | None:
    """None: :func:`with_addresses` says it."""
    if group_by == "site" and len(site.hosts) > 1:
        return site.id
    return None if group_by == "ip" else ""


async def with_addresses(
    policies: list[DomainPolicy], settings: BaseSettings
) -> list[DomainPolicy]:
    """With FRONTIER_GROUP_BY=ip: hosts that lead to one address share one gate."""
    if settings.get("FRONTIER_GROUP_BY") != "ip":
        return policies
    return await gate_groups.looked_up(
        policies, address_guard.parse_overrides(settings.get("RESOLVE_OVERRIDE") or "")
    )


def all_loopback(sites: Sites, settings: BaseSettings) -> bool:
    """Whether every admitted host is on this machine: by its address, by RESOLVE_OVERRIDE, or as
    stored pages answer instead of the network (REPLAY_DIR)."""
    if settings.get("REPLAY_DIR"):
        return True
    override = address_guard.parse_overrides(settings.get("RESOLVE_OVERRIDE") or "")
    hosts = [host for site in sites.enabled() for host in site.hosts]
    return bool(hosts) and all(address_guard.is_loopback_host(host, override) for host in hosts)


async def try_stores(settings: BaseSettings) -> None:
    """Opens and closes what articles and pages are written to.

    :raises newscrawler.store.base.StoreUnavailable,
        newscrawler.rawstore.RawStoreUnavailable: with the reason
    """
    open_raw_store(settings, worker_id("start")).close()
    store = open_article_store(settings)
    try:
        await store.open()
    finally:
        await store.close()


def check_numbers(settings: BaseSettings) -> None:
    """:raises ValueError: a setting whose default is a number is none, by its name"""
    for name, default in vars(defaults).items():
        if name.isupper() and isinstance(default, (int, float)) and not isinstance(default, bool):
            try:
                float(settings.get(name))
            except (TypeError, ValueError):
                raise ValueError(f'{name}="{settings.get(name)}": must be a number') from None


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


def refuse_to_flush(settings: BaseSettings) -> None:
    """:raises StartRefused: scrapy-redis' settings that empty the queue"""
    if not settings.getbool("SCHEDULER_PERSIST") or settings.getbool("SCHEDULER_FLUSH_ON_START"):
        raise StartRefused(
            "SCHEDULER_PERSIST=False and SCHEDULER_FLUSH_ON_START=True would empty the queue of the"
            " whole fleet; use `scrapy frontier purge DOMAIN` instead"
        )


def refuse_eviction(client: Any, url: str) -> None:
    """:raises StartRefused: this Redis would drop parts of the queue when it is full"""
    try:
        info = client.info("memory")
    except redis.ResponseError:
        return  # INFO is not allowed to everyone
    nodes = [info] if "maxmemory_policy" in info else list(info.values())  # a cluster's, by node
    policies = [node.get("maxmemory_policy") for node in nodes if isinstance(node, dict)]
    policy = next((name for name in policies if name not in (None, "noeviction")), None)
    if policy is not None:
        raise StartRefused(
            f"Redis at {url} evicts keys when its memory is full (maxmemory-policy {policy}), which"
            " loses URLs without a word: CONFIG SET maxmemory-policy noeviction, and the same in"
            " its redis.conf"
        )


def _refuse_unknown(spider_args: dict[str, Any]) -> None:
    named = (name for name in spider_args if not name.startswith("_"))
    unknown = sorted(name for name in named if name not in SPIDER_ARGS)
    if unknown:
        raise ValueError(
            f"unknown argument -a {unknown[0]}=; the spider takes {', '.join(SPIDER_ARGS)}"
        )


def preflight(settings: BaseSettings, spider_args: dict[str, Any]) -> Sites:
    """Everything that would make a crawl fail at once, looked at before the reactor starts.

    :raises newscrawler.discovery.sites.SitesError, ValueError: an argument or a file is wrong
    :raises newscrawler.frontier.queue.FrontierUnavailable: Redis cannot be had
    """
    if not str(settings.get("USER_AGENT") or "").strip():
        raise StartRefused(
            "USER_AGENT is empty: a crawler says who it is; set it with a contact of yours"
        )
    refuse_to_flush(settings)
    ignored_settings.refuse(settings)
    renamed_settings.announce(settings)
    if settings.get("ROBOTSTXT_PARSER") not in (None, "", default_settings.ROBOTSTXT_PARSER):
        raise StartRefused(
            f"ROBOTSTXT_PARSER is {settings.get('ROBOTSTXT_PARSER')}: robots.txt is read by RFC"
            " 9309 with Protego, for the whole fleet alike, and no other parser would be asked;"
            " take the setting out"
        )
    check_numbers(settings)
    plugins.check(settings)
    _event_sinks_by_settings(settings)
    _refuse_unknown(spider_args)
    article_revisits.max_age_s(spider_args.get("since"), settings.getfloat("ARTICLE_MAX_AGE_DAYS"))
    from newscrawler.crawl.virus_scan import scanner_of
    from newscrawler.fetch.client import FetchRules  # aiohttp, which `scrapy search` does not need
    from newscrawler.fetch.render import RenderRules

    scanner_of(settings)
    RenderRules.from_settings(settings)
    FetchRules.from_settings(settings)  # a wrong setting of the guard is named before anything runs
    sites = load_sites(settings, only=spider_args.get("sites"), urls=spider_args.get("urls"))
    if not sites.enabled():
        raise StartRefused(
            "no site is enabled; see `scrapy sites list`, then `scrapy sites enable SITE`"
        )
    if settings.getfloat("DOWNLOAD_DELAY") <= 0 and not all_loopback(sites, settings):
        raise StartRefused(
            f"DOWNLOAD_DELAY is {settings.getfloat('DOWNLOAD_DELAY'):g}, which is accepted only"
            " where every admitted host is in 127.0.0.0/8; set it to 1 or more seconds"
        )
    _check_redis(redis_url(settings))
    refuse_replaced(redis_url(settings), str(spider_args.get("_job", "")))
    return sites


def refuse_replaced(url: str, job: str) -> None:
    """A job that waited in scrapyd's queue until the fleet gave it up must not begin beside the one
    that was started in its place.

    :raises StartRefused: the fleet has given this job up
    """
    if not job:
        return
    with connect_blocking(url, socket_connect_timeout=5, socket_timeout=5) as client:
        if client.get(order_key(job)) is not None:
            raise StartRefused(
                f"job {job} was given up by the fleet before it began; another one runs in its"
                " place, or none is wanted any more"
            )


def _check_redis(url: str) -> None:
    try:
        with connect_blocking(url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
            refuse_eviction(client, url)
    except (redis.RedisError, redis.exceptions.RedisClusterException) as exc:
        raise FrontierUnavailable(f"Redis does not answer at {url}: {exc}") from exc


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
        chosen = load_sites(settings, only=sites, urls=urls)
        return cls(
            settings=settings,
            worker=worker_id(job_of(spider)),
            sites=all_sites(settings).replaced(chosen),
            chosen=[site.id for site in chosen.enabled()],
            loopback_only=all_loopback(chosen, settings),
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
        return redis_url(self.settings)

    def policies(self) -> list[DomainPolicy]:
        """For the frontier. In a queue of our own the sites that this crawl is not for rest until a
        crawl is for them; in a shared one they are other workers' business, and this worker helps
        with what it is handed. So they are in our own while another worker is at it: a full crawl
        goes on beside one of a few sites."""
        own_queue = not self.settings.get("REDIS_URL") and not others_at_work(
            self.redis_url, self.worker
        )
        return domain_policies(
            self.sites, self.settings, chosen=set(self.chosen) if own_queue else None
        )

    def policies_of(self, sites: Sites) -> list[DomainPolicy]:
        """Of sites that are to be fetched, whether this crawl is for them or not."""
        return domain_policies(sites, self.settings)

    def restore_redis(self) -> None:
        """Starts the embedded server again where it has died. Blocking.

        :raises newscrawler.frontier.queue.FrontierGone: its folder was deleted
        :raises newscrawler.frontier.queue.FrontierUnavailable: it does not start
        """
        if not self.settings.get("REDIS_URL"):
            binary = self.settings.get("REDIS_SERVER_BIN") or ""
            embedded.restore(data_dir(self.settings), binary)

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
            frontier_config(self.settings, loopback_only=self.loopback_only),
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
        """What was learned of the links of each site."""
        from newscrawler.crawl.link_learning import LinkLearning

        return LinkLearning(self.frontier.client if self.has_frontier else None)

    @cached_property
    def finished(self) -> FinishedStore | None:
        return open_finished_store(self.settings)

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
        return open_article_store(self.settings, elsewhere)

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
        return open_announcer(self.settings, self.store, self.redis)

    @cached_property
    def metadata_rules(self) -> tuple[MetadataRule, ...]:
        return plugins.metadata_rules(self.settings)

    @cached_property
    def raw(self) -> RawStore:
        return open_raw_store(self.settings, self.worker)

    @cached_property
    def selectors(self) -> SelectorStore:
        client = self.redis if self.has_frontier else None
        return open_selector_store(self.settings, client)

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


def open_article_store(
    settings: BaseSettings,
    elsewhere: StoreProcess | None = None,
    *,
    must_exist: bool = False,
    query_s: float | None = None,
) -> ArticleStore:
    """The store of ARTICLE_STORE: one of ARTICLE_STORES, or one of ours.

    :param elsewhere: what a file is written by, when it is not to be this process
    :param must_exist: readers do not create an empty one
    :param query_s: seconds that a search waits for the vector of its query, other than
        SEMANTIC_QUERY_MS
    """
    from newscrawler.crawl import embedding
    from newscrawler.store import open_store

    embedder: Embedder | str
    try:
        embedder = embedding.open_embedder(settings)
    except embedding.Off as exc:
        embedder = str(exc)
    return plugins.article_store(settings) or open_store(
        settings.get("ARTICLE_STORE") or "",
        data_dir(settings),
        index=settings.get("ARTICLE_INDEX"),
        must_exist=must_exist,
        elsewhere=elsewhere,
        embedder=embedder,
        query_s=query_s or settings.getfloat("SEMANTIC_QUERY_MS") / 1000,
        ca_file=settings.get("ARTICLE_STORE_CA_FILE") or "",
    )


def open_event_sinks(settings: BaseSettings, client: Redis | None) -> dict[str, EventSink]:
    """The stream in Redis, those that settings name, and those of EVENT_SINKS, by the names of
    their cursors."""
    from newscrawler.store.events import EventStream

    stream = EventStream(client)
    return {
        "stream": stream, **_event_sinks_by_settings(settings), **plugins.event_sinks(settings)
    }  # fmt: skip


def _event_sinks_by_settings(settings: BaseSettings) -> dict[str, EventSink]:
    """:raises ValueError: a setting is wrong"""
    sinks: dict[str, EventSink] = {}
    if settings.get("EVENT_WEBHOOK_URL"):
        from newscrawler.crawl.webhook import WebhookSink

        sinks["webhook"] = WebhookSink.from_settings(settings)
    if settings.get("EVENT_KAFKA_SERVERS"):
        from newscrawler.crawl.kafka import KafkaSink

        sinks["kafka"] = KafkaSink.from_settings(settings)
    return sinks


def open_announcer(
    settings: BaseSettings, store: ArticleStore, client: Redis
) -> Dispatcher | Direct:
    """What tells the events of a store; :meth:`Dispatcher.start` sets it to work."""
    from newscrawler.crawl.announce import Direct, Dispatcher
    from newscrawler.store.events import outbox_of

    outbox, sinks = outbox_of(store), open_event_sinks(settings, client)
    return Direct(store, sinks) if outbox is None else Dispatcher(outbox, sinks)


def open_finished_store(settings: BaseSettings) -> FinishedStore | None:
    """Where the frontier's oldest finished records go; None = nowhere, they stay in Redis. It must
    be one place for all that share a Redis: a fleet over local stores has none."""
    from newscrawler.store.finished import open_finished

    uri = settings.get("ARTICLE_STORE") or ""
    is_shared = uri.startswith(("http://", "https://"))
    if settings.getint("FRONTIER_FINISHED_LIMIT") <= 0 or (
        settings.get("REDIS_URL") and not is_shared
    ):
        return None
    return open_finished(
        uri,
        data_dir(settings),
        index=settings.get("ARTICLE_INDEX"),
        ca_file=settings.get("ARTICLE_STORE_CA_FILE") or "",
    )


def open_raw_store(settings: BaseSettings, worker: str = "reader") -> RawStore:
    from newscrawler.rawstore import RawStore

    return RawStore.open(
        settings.get("RAW_STORE") or str(data_dir(settings) / "warc"),
        worker,
        rotate_bytes=settings.getint("RAW_ROTATE_BYTES"),
        rotate_s=settings.getfloat("RAW_ROTATE_S"),
        spool=data_dir(settings) / "warc-spool",
        keys=raw_keys(settings),
    )


def raw_keys(settings: BaseSettings) -> Keys:
    """What raw pages are sealed with.

    :raises RawStoreUnavailable: a key is none; one line, without it
    """
    from newscrawler.rawstore.sealing import keys_from

    return keys_from(os.environ, settings["RAW_KEY_ENV"], str(settings.get("RAW_KEY_FILE") or ""))


def open_selector_store(settings: BaseSettings, client: Any | None) -> SelectorStore:
    from newscrawler.selectorsets.store import SelectorStore, default_folder

    return SelectorStore(client, default_folder(settings.get("SELECTORS_DIR") or ""))
