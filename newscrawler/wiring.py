"""Joins the services to a crawler's settings: one place that makes each of them, once per crawler.

Services do not import one another and never see settings; adapters and commands ask here.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from scrapy.settings import default_settings

from newscrawler import settings as defaults
from newscrawler.discovery import overlay, revisits
from newscrawler.discovery.sites import Site, Sites, SitesError
from newscrawler.fleet.identity import is_dead_worker as is_dead_worker
from newscrawler.fleet.identity import worker_id as worker_id
from newscrawler.frontier import connect_blocking, groups
from newscrawler.frontier import server as embedded
from newscrawler.frontier.queue import DomainPolicy, Frontier, FrontierConfig, FrontierUnavailable
from newscrawler.httpclient import FetchRules
from newscrawler.web import network
from newscrawler.web import urls as weburls

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from newscrawler.frontier.queue import Lease
    from newscrawler.rawstore import RawStore
    from newscrawler.reading import Reader
    from newscrawler.selectorstore.store import SelectorStore
    from newscrawler.store.base import ArticleStore
    from newscrawler.store.finished import FinishedStore
    from newscrawler.storing import StoreProcess


#: What `scrapy crawl news` takes after -a; scrapyd adds _job.
SPIDER_ARGS = ("sites", "urls", "since")


class StartRefused(ValueError):
    """The crawl must not start like this; the text says why and what to do."""


def data_dir(settings: BaseSettings) -> Path:
    return Path(settings["DATA_DIR"]).resolve()


def is_scrapyd_job() -> bool:
    """scrapyd names the project in the environment of its jobs; nothing else does."""
    return bool(os.environ.get("SCRAPY_PROJECT"))


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
            "REDIS_URL is not set: a worker started by scrapyd would crawl from a queue of its own, beside the fleet's. "
            "Set REDIS_URL in scrapyd's environment or schedule with -d setting=REDIS_URL=redis://host:6379/0"
        )
    url = embedded.ensure(data_dir(settings), settings.get("REDIS_SERVER_BIN") or "")
    atexit.register(embedded.stop_if_last, data_dir(settings))  # whatever way this process ends in order
    return url


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
    return [u.strip() for u in (urls.split(",") if isinstance(urls, str) else urls) if u.strip()]


def all_sites(settings: BaseSettings) -> Sites:
    """Every site of SITES_FILE, with the operator's changes.

    :raises newscrawler.discovery.sites.SitesError: the file or the overlay cannot be read
    """
    return overlay.applied(Sites.load(settings.get("SITES_FILE") or ""), data_dir(settings))


def load_sites(settings: BaseSettings, *, only: str | None = None, urls: str | Iterable[str] | None = None) -> Sites:
    """The sites that a crawl is for: those of SITES_FILE that are enabled, those named in ``only`` (comma-separated
    ids, hosts or aliases), or those of ``urls``, made for the purpose where no file knows the host.

    :raises newscrawler.discovery.sites.SitesError: the file cannot be read, or a name or address is wrong
    """
    if urls:
        asked = split_urls(urls)
        for url in asked:
            if weburls.canonicalize(url) is None:
                raise SitesError("urls", "", "", f"{url!r} is not an http(s) address")
        sites = all_sites(settings).for_urls(asked)
        hosts = {weburls.domain_of(weburls.canonicalize(url) or "") for url in asked}
        return sites.only(sorted({site.id for host in hosts if (site := sites.by_host(host)) is not None}))
    sites = all_sites(settings)
    if only:
        names = [name.strip() for name in only.split(",") if name.strip()]
        try:
            sites = sites.only(names)
        except KeyError as exc:
            near = ", ".join(sites.near(exc.args[0]))
            hint = f"; did you mean {near}?" if near else "; see `scrapy sites list`"
            raise SitesError("sites", exc.args[0], "", f"unknown site{hint}") from exc
    return sites


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

    def group(site: Site) -> str | None:
        """None: :func:`with_addresses` says it."""
        if group_by == "site" and len(site.hosts) > 1:
            return site.group or site.id
        return site.group or (None if group_by == "ip" else "")

    return [
        DomainPolicy(
            domain=host,
            site=site.id,
            cls=site.cls,
            floor_ms=round(max(floor, site.delay_s) * 1000),
            enabled=site.enabled and (chosen is None or site.id in chosen),
            pages_per_day=site.pages_per_day or settings.getint("FRONTIER_PAGES_PER_DAY"),
            group=group(site),
        )
        for site in sites
        for host in site.hosts
    ]


async def with_addresses(policies: list[DomainPolicy], settings: BaseSettings) -> list[DomainPolicy]:
    """With FRONTIER_GROUP_BY=ip: hosts that lead to one address share one gate."""
    if settings.get("FRONTIER_GROUP_BY") != "ip":
        return policies
    return await groups.looked_up(policies, network.parse_overrides(settings.get("RESOLVE_OVERRIDE") or ""))


def all_loopback(sites: Sites, settings: BaseSettings) -> bool:
    """Whether every admitted host is on this machine: by its address, by RESOLVE_OVERRIDE, or as
    stored pages answer instead of the network (REPLAY_DIR)."""
    if settings.get("REPLAY_DIR"):
        return True
    override = network.parse_overrides(settings.get("RESOLVE_OVERRIDE") or "")
    hosts = [host for site in sites.enabled() for host in site.hosts]
    return bool(hosts) and all(network.is_loopback_host(host, override) for host in hosts)


async def try_stores(settings: BaseSettings) -> None:
    """Opens and closes what articles and pages are written to.

    :raises newscrawler.store.base.StoreUnavailable, newscrawler.rawstore.RawStoreUnavailable: with the reason
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


def refuse_to_flush(settings: BaseSettings) -> None:
    """:raises StartRefused: scrapy-redis' settings that empty the queue"""
    if not settings.getbool("SCHEDULER_PERSIST") or settings.getbool("SCHEDULER_FLUSH_ON_START"):
        raise StartRefused(
            "SCHEDULER_PERSIST=False and SCHEDULER_FLUSH_ON_START=True would empty the queue of the whole fleet; "
            "use `scrapy frontier purge DOMAIN` instead"
        )


def preflight(settings: BaseSettings, spider_args: dict[str, Any]) -> Sites:
    """Everything that would make a crawl fail at once, looked at before the reactor starts.

    :raises newscrawler.discovery.sites.SitesError, ValueError: an argument or a file is wrong
    :raises newscrawler.frontier.queue.FrontierUnavailable: Redis cannot be had
    """
    if not str(settings.get("USER_AGENT") or "").strip():
        raise StartRefused("USER_AGENT is empty: a crawler says who it is; set it with a contact of yours")
    refuse_to_flush(settings)
    if settings.get("ROBOTSTXT_PARSER") not in (None, "", default_settings.ROBOTSTXT_PARSER):
        raise StartRefused(
            f"ROBOTSTXT_PARSER is {settings.get('ROBOTSTXT_PARSER')}: robots.txt is read by RFC 9309 with Protego, for "
            "the whole fleet alike, and no other parser would be asked; take the setting out"
        )
    check_numbers(settings)
    unknown = sorted(name for name in spider_args if name not in SPIDER_ARGS and not name.startswith("_"))
    if unknown:
        raise ValueError(f"unknown argument -a {unknown[0]}=; the spider takes {', '.join(SPIDER_ARGS)}")
    revisits.max_age_s(spider_args.get("since"), settings.getfloat("ARTICLE_MAX_AGE_DAYS"))
    FetchRules.from_settings(settings)  # a wrong setting of the guard is named here, before anything runs
    sites = load_sites(settings, only=spider_args.get("sites"), urls=spider_args.get("urls"))
    if not sites.enabled():
        raise StartRefused("no site is enabled; see `scrapy sites list`, then `scrapy sites enable SITE`")
    if settings.getfloat("DOWNLOAD_DELAY") <= 0 and not all_loopback(sites, settings):
        raise StartRefused(
            f"DOWNLOAD_DELAY is {settings.getfloat('DOWNLOAD_DELAY'):g}, which is accepted only where every admitted "
            "host is in 127.0.0.0/8; set it to 1 or more seconds"
        )
    url = redis_url(settings)
    try:
        with connect_blocking(url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
    except (redis.RedisError, redis.exceptions.RedisClusterException) as exc:
        raise FrontierUnavailable(f"Redis does not answer at {url}: {exc}") from exc
    return sites


@dataclass
class Services:
    """What the adapters of one crawler share. Made by :meth:`of`; parts are opened on first use."""

    settings: BaseSettings
    worker: str
    sites: Sites  # all that may come out of the frontier
    chosen: list[str]  # ids of those that this crawl is for
    redis_url: str
    loopback_only: bool
    _parts: dict[str, Any] = field(default_factory=dict)
    _store_process: StoreProcess | None = None

    @classmethod
    def of(cls, crawler: Crawler) -> Services:
        existing = getattr(crawler, "_newscrawler_services", None)
        if existing is not None:
            return existing  # type: ignore[no-any-return]
        settings = crawler.settings
        spider = crawler.spider
        chosen = load_sites(settings, only=getattr(spider, "sites", None), urls=getattr(spider, "urls", None))
        services = cls(
            settings=settings,
            worker=worker_id(getattr(spider, "_job", None)),
            sites=all_sites(settings).replaced(chosen),
            chosen=[site.id for site in chosen.enabled()],
            redis_url=redis_url(settings),
            loopback_only=all_loopback(chosen, settings),
        )
        crawler._newscrawler_services = services  # type: ignore[attr-defined]
        return services

    def policies(self) -> list[DomainPolicy]:
        """For the frontier. In a queue of our own the sites that this crawl is not for rest until a crawl is for them;
        in a shared one they are other workers' business, and this worker helps with what it is handed."""
        own_queue = not self.settings.get("REDIS_URL")
        return domain_policies(self.sites, self.settings, chosen=set(self.chosen) if own_queue else None)

    def site_of(self, lease: Lease) -> Site:
        """The site of a lease; of a host that another worker was asked to crawl, one made for it."""
        site = self.sites.get(lease.site)
        if site is None:
            self.sites = self.sites.for_urls([lease.url])
            site = self.sites.by_host(lease.domain)
        assert site is not None, lease.domain
        return site

    @property
    def frontier(self) -> Frontier:
        if "frontier" not in self._parts:
            from newscrawler.frontier import connect

            self._parts["frontier"] = Frontier(
                connect(self.redis_url),
                frontier_config(self.settings, loopback_only=self.loopback_only),
                self.worker,
                self.finished,
                is_dead_worker,
            )
        return self._parts["frontier"]  # type: ignore[no-any-return]

    @property
    def finished(self) -> FinishedStore | None:
        if "finished" not in self._parts:
            self._parts["finished"] = open_finished_store(self.settings)
        return self._parts["finished"]  # type: ignore[no-any-return]

    @property
    def redis(self) -> Redis:
        """A second client for what is not the frontier's pump: registry, selector sets, events."""
        if "redis" not in self._parts:
            from newscrawler.frontier import connect

            self._parts["redis"] = connect(self.redis_url, single=False)
        return self._parts["redis"]  # type: ignore[no-any-return]

    @property
    def store(self) -> ArticleStore:
        if "store" not in self._parts:
            elsewhere = None
            if self.settings.getbool("STORE_PROCESS"):
                from newscrawler.storing import StoreProcess

                elsewhere = self._store_process = StoreProcess()
            self._parts["store"] = open_article_store(self.settings, elsewhere)
        return self._parts["store"]  # type: ignore[no-any-return]

    @property
    def raw(self) -> RawStore:
        if "raw" not in self._parts:
            self._parts["raw"] = open_raw_store(self.settings, self.worker)
        return self._parts["raw"]  # type: ignore[no-any-return]

    @property
    def selectors(self) -> SelectorStore:
        if "selectors" not in self._parts:
            self._parts["selectors"] = open_selector_store(self.settings, self.redis)
        return self._parts["selectors"]  # type: ignore[no-any-return]

    @property
    def reader(self) -> Reader:
        if "reader" not in self._parts:
            from newscrawler.reading import Reader

            self._parts["reader"] = Reader(self.settings.getint("READ_PROCESSES"))
        return self._parts["reader"]  # type: ignore[no-any-return]

    @property
    def child_pids(self) -> list[int]:
        """Of the processes that read pages and write articles."""
        reader: Reader | None = self._parts.get("reader")
        pids = [*(reader.pids if reader else ()), self._store_process.pid if self._store_process else None]
        return [pid for pid in pids if pid is not None]

    @property
    def children_peak_kb(self) -> int:
        """Kilobytes that the processes of this worker had together at most; known when all is closed."""
        return sum(part.peak_kb for part in (self._parts.get("reader"), self._store_process) if part is not None)

    async def close(self) -> None:
        """Closes what was opened, the frontier's client last, as the others may still report."""
        for name in ("raw", "store", "finished", "redis"):
            part = self._parts.pop(name, None)
            if part is None:
                continue
            closing = part.aclose() if name == "redis" else part.close()
            if asyncio.iscoroutine(closing):
                await closing


def open_article_store(settings: BaseSettings, elsewhere: StoreProcess | None = None) -> ArticleStore:
    """``elsewhere``: what a file is written by, when it is not to be this process."""
    from newscrawler.store.base import open_store

    uri, index = settings.get("ARTICLE_STORE") or "", settings.get("ARTICLE_INDEX")
    return open_store(uri, data_dir(settings), index=index, elsewhere=elsewhere)


def open_finished_store(settings: BaseSettings) -> FinishedStore | None:
    """Where the frontier's oldest finished records go; None = nowhere, they stay in Redis. It must be one place for all
    that share a Redis: a fleet over local stores has none."""
    from newscrawler.store.finished import open_finished

    uri = settings.get("ARTICLE_STORE") or ""
    is_shared = uri.startswith(("http://", "https://"))
    if settings.getint("FRONTIER_FINISHED_LIMIT") <= 0 or (settings.get("REDIS_URL") and not is_shared):
        return None
    return open_finished(uri, data_dir(settings), index=settings.get("ARTICLE_INDEX"))


def open_raw_store(settings: BaseSettings, worker: str = "reader") -> RawStore:
    from newscrawler.rawstore import RawStore

    return RawStore.open(
        settings.get("RAW_STORE") or str(data_dir(settings) / "warc"),
        worker,
        rotate_bytes=settings.getint("RAW_ROTATE_BYTES"),
        rotate_s=settings.getfloat("RAW_ROTATE_S"),
        spool=data_dir(settings) / "warc-spool",
    )


def open_selector_store(settings: BaseSettings, client: Any | None) -> SelectorStore:
    from newscrawler.selectorstore.store import SelectorStore, default_folder

    return SelectorStore(client, default_folder(settings.get("SELECTORS_DIR") or ""))
