"""Scrapy extensions: what the terminal, the log and the fleet's counters are told about a crawl.

They only translate: signals -> newscrawler.fleet.rows, rows ->
newscrawler.fleet.progress and .registry.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import logging.handlers
import os
import shutil
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.defer import _schedule_coro
from scrapy.utils.log import get_scrapy_root_handler

from newscrawler import __version__, metrics
from newscrawler.crawl import opening
from newscrawler.crawl import services as services_module
from newscrawler.crawl.ingest import COUNTED_FIELDS
from newscrawler.crawl.log_files import JsonLogHandler
from newscrawler.crawl.services import Services, services_of
from newscrawler.crawl.virus_scan import UNSCANNED
from newscrawler.crawl.waits import QUEUE_GONE, REDIS, SCANNER, Waits
from newscrawler.fleet import freshness, progress
from newscrawler.fleet.judgement import Patience, end_s
from newscrawler.fleet.machine import MachineMeter
from newscrawler.fleet.minutes import LOOK_S, Minutes
from newscrawler.fleet.registry import (
    BEAT_S,
    REPLACED,
    Beat,
    ProcessMeter,
    Registry,
    RegistryUnavailable,
    SiteDelta,
)
from newscrawler.fleet.rows import EndedVisit, QueueState, Rows
from newscrawler.frontier import connect
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.items import Kind, Outcome, Visit
from newscrawler.store.days import zone_of

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from newscrawler.crawl.lease_loop import LeaseLoop

logger = logging.getLogger(__name__)

#: Seconds between two looks at the whole frontier for the display, and the most
#: domains it is done for.
PLACES_S = 3.0
PLACES_MOST = 300


class Every:
    """Awaits ``work`` every ``seconds`` until stopped. An error is logged once per kind;
    the loop lives on.

    Ended by a flag, never by cancelling ``work``: asyncio.wait_for of Python 3.11, with which
    redis-py sends, loses a cancellation that arrives while the sending ends; the loop then lived
    on, and the crawl that awaited it never closed.
    """

    def __init__(
        self, seconds: float, work: Callable[[], Awaitable[None]], waits: Waits | None = None
    ) -> None:
        """:param waits: told of a Redis that is away, which is waited for and no
        error of the work"""
        self.seconds = seconds
        self.work = work
        self._waits = waits or Waits()
        self._told: set[str] = set()
        self._end = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while not await self._has_ended_within(self.seconds):
            try:
                await self.work()
            except Exception as exc:
                if services_module.is_redis_away(exc):
                    self._waits.failed(REDIS, str(exc))
                    continue
                kind = type(exc).__name__
                if kind not in self._told:
                    self._told.add(kind)
                    logger.exception(
                        "Periodic work failed, goes on work=%s", getattr(self.work, "__name__", "?")
                    )

    async def _has_ended_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._end.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Returns when the work that is just being done has ended."""
        self._end.set()
        await self._task


class PageLimit:
    """Closes the crawl when CRAWL_PAGES pages were answered.

    Scrapy's own CLOSESPIDER_PAGECOUNT counts every answer. Here each site's robots.txt is asked for
    first, so a limit of three pages would end a crawl of 33 sites before it has seen a page.
    """

    def __init__(self, crawler: Crawler, pages: int) -> None:
        self.crawler = crawler
        self.left = pages
        crawler.signals.connect(self.response_received, signals.response_received)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PageLimit:
        pages = crawler.settings.getint("CRAWL_PAGES")
        if pages <= 0:
            raise NotConfigured
        return cls(crawler, pages)

    def response_received(self, request: Request) -> None:
        lease = request.meta.get("lease")
        if lease is None or Kind(lease.kind) is Kind.ROBOTS:
            return
        self.left -= 1
        if self.left == 0 and self.crawler.engine is not None:
            _schedule_coro(self.crawler.engine.close_spider_async(reason="closespider_pagecount"))


class LogToFile:
    """While the display owns the terminal, what Scrapy would log there goes to a file."""

    MAX_BYTES = 50 * 1024 * 1024
    KEEP = 3

    def __init__(self, path: Path) -> None:
        self.path = path
        self._terminal: logging.Handler | None = None
        self._file: logging.Handler | None = None

    def start(self) -> None:
        terminal = get_scrapy_root_handler()
        if not isinstance(terminal, logging.StreamHandler) or isinstance(
            terminal, logging.FileHandler
        ):
            return  # LOG_FILE or LOG_ENABLED=False: the terminal is not written to
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = logging.handlers.RotatingFileHandler(
            self.path, maxBytes=self.MAX_BYTES, backupCount=self.KEEP, encoding="utf-8"
        )
        self._file.setFormatter(terminal.formatter)
        self._file.setLevel(terminal.level)
        for one in terminal.filters:
            self._file.addFilter(one)
        self._terminal = terminal
        logging.root.removeHandler(terminal)
        logging.root.addHandler(self._file)

    def stop(self) -> None:
        if self._file is None or self._terminal is None:
            return
        logging.root.removeHandler(self._file)
        logging.root.addHandler(self._terminal)
        self._file.close()
        self._file = self._terminal = None


class CrawlReporter:
    """Counts every ended visit per site, logs it in one line, shows the crawl in the terminal."""

    def __init__(self, crawler: Crawler, services: Services) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.services = services
        self.mode = progress.choose_mode(
            settings.get("PROGRESS") or "auto", sys.stderr, dict(os.environ)
        )
        self.rows = Rows()
        self.log_file = LogToFile(opening.data_dir(settings) / "logs" / "crawl.log")
        self.display = progress.make_display(self.mode, sys.stderr)
        self.worker = services.worker
        self.started = time.monotonic()
        self.elapsed_s = 0.0
        self.ended = ""  # the reason, once it has
        self._loops: list[Every] = []
        self._frontier: Frontier | None = None
        listen = crawler.signals.connect
        listen(self.spider_opened, signals.spider_opened)
        listen(self.spider_closed, signals.spider_closed)
        listen(self.engine_stopped, signals.engine_stopped)
        services.visits.listen(self.visit_ended)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CrawlReporter:
        return cls(crawler, services_of(crawler))

    # -- life
    def spider_opened(self, spider: Spider) -> None:
        services = self.services
        sites = services.chosen
        if len(sites) <= PLACES_MOST:
            for site in sites:
                self.rows.row(site)
        self.started = time.monotonic()
        if self.mode == "live":
            self.log_file.start()
            # A client of its own: the lease loop's is one connection, and a report
            # must not hold it up.
            client = connect(services.redis_url, single=False)
            config = FrontierConfig(shards=self.crawler.settings.getint("FRONTIER_SHARDS"))
            self._frontier = Frontier(client, config, f"{self.worker}-display")
            self._loops.append(Every(PLACES_S, self.read_places, services.waits))
        if self.mode != "off":
            self.display.start()
            self._loops.append(Every(self.display.every_s, self.show))
        self._loops.append(Every(1.0, self.mark))

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        for loop in self._loops:
            await loop.stop()
        if self._frontier is not None:
            await self._frontier.close()
        self.elapsed_s = time.monotonic() - self.started
        self.ended = reason
        if self.mode != "off":
            self.display.stop()

    def engine_stopped(self) -> None:
        """After Scrapy's own last words (it dumps the stats), so that the table is
        what stays in sight."""
        self.log_file.stop()
        if self.ended and self.mode != "off":
            progress.print_summary(
                self.rows,
                self.elapsed_s,
                self.ended,
                None if self.ended == QUEUE_GONE else self.status().queued,
                sys.stderr,
                self._what_stays(),
            )

    def _what_stays(self) -> progress.Stays | None:
        """Of what is still queued where the crawl ended by itself."""
        stats = self.crawler.stats
        next_s = stats.get_value(metrics.FRONTIER_NEXT) if stats else None
        if stats is None or next_s is None or self.ended != "finished":
            return None
        return progress.Stays(next_s, stats.get_value(metrics.FRONTIER_POISON_CANDIDATES, 0))

    async def mark(self) -> None:
        self.rows.mark(time.monotonic())

    async def show(self) -> None:
        self.display.update(self.rows, self.status())

    # -- ended visits
    def visit_ended(self, visit: Visit, outcome: Outcome, reason: str) -> None:
        fine = outcome is visit.outcome
        is_article = (
            fine and visit.article is not None and outcome in (Outcome.DONE, Outcome.UNCHANGED)
        )
        ended = EndedVisit(
            site=visit.site or visit.domain or "?",
            outcome=outcome,
            reason=reason,
            answered=visit.status > 0,
            is_robots=visit.kind is Kind.ROBOTS,
            is_article=is_article or (outcome is Outcome.UNCHANGED and visit.kind is Kind.ARTICLE),
            # A page whose article is stored under another address ends as REDIRECTED by that.
            stored=visit.stored if fine or outcome is Outcome.REDIRECTED else "",
            fields=_counted_fields(visit),
        )
        label = self.rows.note(ended, int(time.time() * 1000))
        if ended.stored == "new":
            self.note_lag(ended.site, visit)
        logger.info(
            "Visit ended url=%s site=%s kind=%s outcome=%s status=%s worker=%s tries=%s",
            visit.url,
            ended.site,
            visit.kind,
            label,
            visit.status,
            self.worker,
            getattr(visit.lease, "tries", 0),
        )

    def note_lag(self, site: str, visit: Visit) -> None:
        """How long a new article took from its publication until it can be found, by
        the frontier's clock."""
        article = visit.article
        if article is None or self.crawler.engine is None:
            return
        scheduler: Any = self.crawler.engine.scheduler
        now_ms: int = scheduler.now_ms
        lag = freshness.lag(article.published, article.discovered, article.fetched, now_ms)
        published_ms = round(article.published.timestamp() * 1000) if article.published else 0
        self.rows.note_hour(site, published_ms, now_ms)
        if self.rows.note_lag(site, lag, published_ms, now_ms) and lag is not None:
            for stage in freshness.STAGES:
                name = metrics.labelled(metrics.ARTICLE_LAG, stage)
                metrics.observe(self.crawler.stats, name, getattr(lag, stage))
            logger.debug("Article searchable url=%s site=%s lag_s=%.0f", visit.url, site, lag.total)

    # -- for the display
    def status(self) -> progress.Status:
        engine = self.crawler.engine
        return progress.Status(
            elapsed_s=time.monotonic() - self.started,
            pages_per_s=self.rows.rate(),
            queued=metrics.stats_of(self.crawler).get(metrics.FRONTIER_QUEUED),
            in_flight=len(engine.downloader.active) if engine is not None else 0,
            note=self._note(),
        )

    def _note(self) -> str:
        """The one thing that a person has to know now."""
        engine = self.crawler.engine
        slot = engine._slot if engine is not None else None
        is_stopping = engine is not None and not engine.running
        if is_stopping or (slot is not None and slot.closing):
            return "stopping: what is being fetched is finished (Ctrl-C again: at once)"
        if waits := self.services.waits.text():
            return waits
        errors = metrics.stats_of(self.crawler).get("log_count/ERROR", 0)
        if errors and self.mode == "live":
            return f"{errors} errors, see {self.log_file.path}"
        lease_loop = getattr(engine.scheduler, "lease_loop", None) if engine else None
        return str(getattr(lease_loop, "idle_text", ""))

    async def read_places(self) -> None:
        """Where each site stands in the frontier. Not done for hundreds of domains: it
        reads all of them."""
        if self._frontier is None or len(self.rows.by_site) > PLACES_MOST:
            return
        report = await self._frontier.report()
        for site, place in places(report).items():
            if site in self.rows.by_site:
                self.rows.by_site[site].place = place


def _counted_fields(visit: Visit) -> tuple[str, ...]:
    article = visit.article
    return tuple(f for f in COUNTED_FIELDS if getattr(article, f)) if article is not None else ()


def places(report: dict[str, Any]) -> dict[str, QueueState]:
    """The frontier's report by site: sums over a site's domains, the slowest delay, the
    soonest next fetch."""
    found: dict[str, QueueState] = {}
    for row in report.get("domains", []):
        place = found.setdefault(row.get("site") or row["domain"], QueueState(wait_ms=-1))
        place.queued += row.get("queued", 0)
        place.leased += row.get("leased", 0)
        place.delay_ms = max(place.delay_ms, row.get("delay_ms", 0))
        wait_ms = row.get("wait_ms", 0)
        place.wait_ms = wait_ms if place.wait_ms < 0 else min(place.wait_ms, wait_ms)
        place.note = place.note or row.get("note", "")
    return found


class JsonLog:
    """The log as JSON lines in files (LOG_JSON), beside what the terminal or scrapyd shows."""

    def __init__(self, crawler: Crawler, services: Services) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.handler = JsonLogHandler(
            opening.json_log_dir(settings),
            services.worker,
            max_bytes=settings.getint("LOG_JSON_BYTES"),
            keep=settings.getint("LOG_JSON_FILES"),
            request_of=self._request_of,
        )
        self.handler.setLevel(settings.get("LOG_LEVEL"))
        logging.root.addHandler(self.handler)
        services.visits.listen(self.handler.visit)
        crawler.signals.connect(self.engine_stopped, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> JsonLog:
        """:raises ValueError: a setting is wrong"""
        if not crawler.settings.getbool("LOG_JSON"):
            raise NotConfigured  # without a text: Scrapy would warn of it
        for name in ("LOG_JSON_BYTES", "LOG_JSON_FILES"):
            if crawler.settings.getint(name) < 1:
                raise ValueError(f"{name} is {crawler.settings.get(name)}; it must be 1 or more")
        return cls(crawler, services_of(crawler))

    def _request_of(self, url: str) -> str:
        engine = self.crawler.engine
        lease_loop = getattr(getattr(engine, "scheduler", None), "lease_loop", None)
        return lease_loop.request_of(url) if lease_loop is not None else ""

    def engine_stopped(self) -> None:
        logging.root.removeHandler(self.handler)
        self.handler.close()


class LastError(logging.Handler):
    """The newest line of level ERROR, for the fleet's table."""

    MOST = 300

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.text = record.getMessage().partition("\n")[0][: self.MOST]
        except Exception:
            self.handleError(record)


class MetricsExtension:
    """Heartbeats of this worker, and its counters as differences, to the fleet's
    registry in Redis. What the fleet asks of the worker comes with the answer to a heartbeat."""

    #: Seconds between two writes of differences, and between two looks at the sites' hours.
    EVERY_S = 1.0
    RHYTHMS_S = 5.0

    def __init__(self, crawler: Crawler, services: Services) -> None:
        self.crawler = crawler
        self.services = services
        self.patience = Patience(
            crawler.settings.getfloat("FLEET_STUCK_TURN_S"),
            crawler.settings.getfloat("FLEET_STUCK_S"),
        )
        self.drain_s = crawler.settings.getfloat("FLEET_DRAIN_S")
        self.registry: Registry | None = None
        self.meter = ProcessMeter()
        self.machine = MachineMeter()
        self.last_error = LastError()
        self.zone = zone_of(crawler.settings["READER_ZONE"])
        self._order = ""
        self.started_ms = int(time.time() * 1000)
        self._sent: dict[str, int] = {}
        self._beat_at = 0.0
        self._looked_at = 0.0
        self._is_away = False
        self._knows_sites = False
        self._loop: Every | None = None
        self._rhythms: Every | None = None
        self._end: asyncio.Task[None] | None = None
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MetricsExtension:
        return cls(crawler, services_of(crawler))

    @property
    def node(self) -> str:
        """FLEET_NODE; where nothing says it, the host."""
        return self.crawler.settings.get("FLEET_NODE") or socket.gethostname()

    def _now_ms(self) -> int:
        """By the frontier's clock; 0 = there is none."""
        lease_loop = self._lease_loop()
        return lease_loop.now_ms if lease_loop is not None else 0

    @property
    def reporter(self) -> CrawlReporter | None:
        return self.crawler.get_extension(CrawlReporter)

    def spider_opened(self, spider: Spider) -> None:
        # A client of its own: it must still work after the scheduler closed the shared ones.
        services = self.services
        self.registry = Registry(connect(services.redis_url, single=False))
        self.meter = ProcessMeter(children=lambda: services.child_pids)
        logging.root.addHandler(self.last_error)
        self._loop = Every(self.EVERY_S, self.send, services.waits)
        self._rhythms = Every(self.RHYTHMS_S, self.read_rhythms, services.waits)

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._loop is None or self.registry is None:
            return
        logging.root.removeHandler(self.last_error)
        if self._rhythms is not None:
            await self._rhythms.stop()
        await self._loop.stop()
        await self.send()
        try:
            await self._look(is_last=True)
            await self.registry.leave(self.services.worker)
        except RegistryUnavailable as exc:
            logger.warning(
                "Worker could not sign off, it is shown as silent for a while error=%s", exc
            )
        client: Any = self.registry.client
        await client.aclose()

    async def read_rhythms(self) -> None:
        """At which hours the sites publish whose lists were visited."""
        await self.services.rhythms.refresh(self._now_ms())

    async def send(self) -> None:
        """Differences since the last time that worked, and a heartbeat when it is time."""
        assert self.registry is not None
        counters = self.counters()
        totals = {name: value - self._sent.get(name, 0) for name, value in counters.items()}
        reporter = self.reporter
        if reporter is not None and not self._knows_sites:
            await self._learn_sites(reporter)
        deltas: dict[str, SiteDelta] = reporter.rows.take_deltas() if reporter is not None else {}
        try:
            if not self._looked_at:
                await self._look()  # before the first sums: what comes now is of this minute
            await self.registry.add(totals, deltas, self._now_ms(), self.node, self.zone)
            self._sent = counters
            deltas = {}
            if time.monotonic() - self._beat_at >= BEAT_S:
                self._obey(await self.registry.beat(self.beat()))
                self._beat_at = time.monotonic()
            if time.monotonic() - self._looked_at >= LOOK_S:
                await self._look()
            self._is_away = False
        except RegistryUnavailable as exc:
            if not self._is_away:
                logger.warning("Counters are kept until Redis answers error=%s", exc)
            self._is_away = True
        finally:
            if deltas and reporter is not None:
                reporter.rows.give_back(deltas)

    async def _look(self, *, is_last: bool = False) -> None:
        """For the page "Fleet"; what the other workers counted is part of it."""
        assert self.registry is not None
        stats = metrics.stats_of(self.crawler)
        known = (("q", metrics.FRONTIER_QUEUED), ("w", metrics.FRONTIER_WAITING))
        frontier = {short: int(stats[name]) for short, name in known if name in stats}
        await Minutes(self.registry.client).look(frontier, is_last=is_last)
        self._looked_at = time.monotonic()

    def _obey(self, order: str) -> None:
        """The worker takes nothing more, finishes what is under way, gives back the rest, ends."""
        engine = self.crawler.engine
        if not order or self._order or engine is None:
            return
        self._order = order
        if order == REPLACED:
            logger.error("The fleet gave this worker up and starts another one in its place, ends")
            self._end = asyncio.ensure_future(self._end_anyway())
        else:
            logger.info("The fleet asks this worker to end order=%s", order)
        reason = "replaced" if order == REPLACED else "drained"
        _schedule_coro(engine.close_spider_async(reason=reason))

    async def _end_anyway(self) -> None:
        """Its leases are another worker's now: what cannot be ended in order ends without it."""
        assert self.registry is not None
        lease_loop = self._lease_loop()
        row = asdict(lease_loop.progress()) if lease_loop is not None else {}
        await asyncio.sleep(end_s(row, self.patience, self.drain_s))
        logger.error("The crawl does not end in order, its process is ended")
        with contextlib.suppress(RegistryUnavailable):
            await self.registry.leave(self.services.worker)
        logging.shutdown()
        os._exit(1)

    def _lease_loop(self) -> LeaseLoop | None:
        """None: there is none (yet)."""
        found: LeaseLoop | None = getattr(
            getattr(self.crawler.engine, "scheduler", None), "lease_loop", None
        )
        return found

    async def _learn_sites(self, reporter: CrawlReporter) -> None:
        """Since when the fleet knows each site, once: an article from before says nothing
        of how quick we are."""
        assert self.registry is not None
        try:
            reporter.rows.known_since(
                {site: row.first_ms for site, row in (await self.registry.sites()).items()}
            )
        except RegistryUnavailable:
            return
        self._knows_sites = True

    def counters(self) -> dict[str, int]:
        """The declared counters of this worker, labelled ones and buckets of histograms
        included."""
        found: dict[str, int] = {}
        stats = metrics.stats_of(self.crawler)
        for name, value in stats.items():
            if (
                isinstance(value, int)
                and (stat := metrics.stat_of(name))
                and stat.kind in ("counter", "histogram")
            ):
                found[name] = value
        return found

    def gauges(self) -> dict[str, float]:
        stats = metrics.stats_of(self.crawler)
        return {
            name: value
            for name, value in stats.items()
            if isinstance(value, (int, float))
            and (stat := metrics.stat_of(name))
            and stat.kind == "gauge"
        }

    def beat(self) -> Beat:
        services = self.services
        reporter = self.reporter
        engine = self.crawler.engine
        lease_loop = self._lease_loop()
        machine = self.machine.look()
        progress = asdict(lease_loop.progress()) if lease_loop is not None else {}
        return Beat(
            id=services.worker,
            host=socket.gethostname(),
            pid=os.getpid(),
            job=opening.job_of(self.crawler.spider),
            started_ms=self.started_ms,
            beat_ms=int(time.time() * 1000),
            cpu_s=round(self.meter.cpu_s(), 2),
            cpu_percent=self.meter.cpu_percent(),
            memory_bytes=self.meter.memory_bytes(),
            pages=reporter.rows.total.answered if reporter else 0,
            pages_per_s=reporter.rows.rate() if reporter else 0.0,
            leases=len(lease_loop.inflight) if lease_loop is not None else 0,
            in_flight=len(engine.downloader.active) if engine is not None else 0,
            gauges=self.gauges(),
            node=self.crawler.settings.get("FLEET_NODE") or "",
            version=os.environ.get("SCRAPYD_EGG_VERSION") or __version__,
            last_error=self.last_error.text or (reporter.rows.total.last_error if reporter else ""),
            machine={**asdict(machine), **self._disk()} if machine is not None else {},
            waits_for=services.waits.text(),
            **progress,
        )

    def _disk(self) -> dict[str, float]:
        """Of the data folder."""
        try:
            usage = shutil.disk_usage(opening.data_dir(self.crawler.settings))
        except OSError:
            return {}
        return {"disk_bytes": usage.total, "free_disk_bytes": usage.free}


class PushedFeeds:
    """Reads feeds that hubs have sent as fetched ones are read, and offers what is new. Only where
    PUBLIC_URL is set; the fetches go through the frontier like all others."""

    EVERY_S = 1.0
    #: Feeds that are read before others have a turn.
    AT_ONCE = 10

    def __init__(self, crawler: Crawler, services: Services) -> None:
        self.crawler = crawler
        self.services = services
        self._loop: Every | None = None
        crawler.signals.connect(self.spider_opened, signals.spider_opened)
        crawler.signals.connect(self.spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PushedFeeds:
        services = services_of(crawler)
        if services.websub is None:
            raise NotConfigured  # without a text: Scrapy would warn of it
        return cls(crawler, services)

    def spider_opened(self, spider: Spider) -> None:
        self._loop = Every(self.EVERY_S, self.look, self.services.waits)

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._loop is not None:
            await self._loop.stop()

    def _crawls(self, site_id: str) -> bool:
        site = self.services.sites.get(site_id)
        return site is not None and site.enabled

    async def _refusal(self, url: str, body: bytes) -> tuple[str, str] | None:
        """As VirusScan's: what a hub sends does not pass the downloader middleware."""
        scan = self.services.virus_scan
        return await scan.refusal(url, body) if scan is not None else None

    async def look(self) -> None:
        if self.services.waits.is_failing(SCANNER):
            return  # Redis keeps them longer than this process does
        subscriptions = self.services.websub
        spider: Any = self.crawler.spider
        scheduler: Any = self.crawler.engine.scheduler
        for _ in range(self.AT_ONCE):
            pushed = await subscriptions.pop() if subscriptions is not None else None
            if subscriptions is None or pushed is None:
                return
            site, feed, body, _ = pushed
            if not self._crawls(site):
                if not await subscriptions.give_back(pushed):
                    logger.warning("A pushed feed is read by no worker site=%s url=%s", site, feed)
                return  # others have a turn first
            if (refused := await self._refusal(feed, body)) is not None:
                reason, text = refused
                if reason == UNSCANNED and await subscriptions.give_back(pushed):
                    return
                logger.warning(
                    "A pushed feed is not read site=%s url=%s reason=%s error=%s",
                    site, feed, reason, text,
                )  # fmt: skip
                continue
            links = await spider.read_pushed(site, feed, body)
            if links is None:
                logger.warning("A pushed feed is not read site=%s url=%s", site, feed)
                continue
            added = await scheduler.add(links)
            stats = self.crawler.stats
            stats.inc_value(metrics.FEEDS_PUSHED)
            stats.inc_value(metrics.FEEDS_PUSHED_LINKS, added)
            logger.info("Pushed feed read url=%s links=%d new=%d", feed, len(links), added)


class StatsFile:
    """Writes the final stats as one JSON object to STATS_FILE, for scripts that ran a crawl."""

    def __init__(self, crawler: Crawler, path: Path) -> None:
        self.crawler = crawler
        self.path = path
        # engine_stopped comes after every other component has counted its last
        crawler.signals.connect(self.write, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StatsFile:
        path = crawler.settings.get("STATS_FILE")
        if not path:
            raise NotConfigured  # without a text: Scrapy would warn of it
        return cls(crawler, Path(path))

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".part")
        partial.write_text(
            json.dumps(self.crawler.stats.get_stats(), default=str, ensure_ascii=False)
        )
        partial.replace(self.path)
