"""The monitor: looks at Redis, registry and store from outside the workers; tells what is wrong.

A look gathers facts (fleet.alarms.Facts), judges them, notes the verdicts as incidents in Redis and
tells what is to be told. Any number of monitors may look: an incident is told once. Without Redis
there is no place that they share, so that one incident is kept in a file of this machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import os
import shutil
import socket
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from redis.exceptions import RedisError, ResponseError
from scrapy.utils.misc import load_object
from spidermon import MonitorSuite
from spidermon.runners import MonitorRunner

from newscrawler import metrics
from newscrawler.crawl import opening, site_choice
from newscrawler.crawl.alert_ways import Way, explained, headline, tell, ways_of
from newscrawler.crawl.digests import NotSent
from newscrawler.crawl.fleet import SOON_MS
from newscrawler.crawl.monitors import reason_of
from newscrawler.crawl.selector_jobs import GenerationConfig
from newscrawler.fleet import alarms
from newscrawler.fleet.alarms import KINDS, AlarmThresholds, Facts, Room
from newscrawler.fleet.history import (
    HOUR_MS,
    WEEKS,
    WHOLE,
    History,
    HistoryUnavailable,
    Window,
    day_of,
)
from newscrawler.fleet.incidents import GIVEN_UP_MS, Incident, Incidents, Waiting
from newscrawler.fleet.ledger import Ledger, replaced
from newscrawler.fleet.registry import Registry, RegistryUnavailable
from newscrawler.fleet.watch import GRACE_S, failing_text
from newscrawler.frontier import connect
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.state_text import open_from
from newscrawler.frontier.types import FrontierError
from newscrawler.selectorsets.jobs import Jobs
from newscrawler.store.base import StoreError, WholeStore
from newscrawler.store.days import zone_of
from newscrawler.utils import files
from newscrawler.utils.display import shown

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from newscrawler.store.base import ArticleStore

logger = logging.getLogger(__name__)

#: Windows that are read, minutes.
_MINUTES = (10, 30, 60, 120)
#: What says that Redis cannot be asked.
_AWAY = (RedisError, FrontierError, RegistryUnavailable, HistoryUnavailable, OSError)
#: What the watch noted of the nodes is believed for so long, ms: it looks each two seconds.
_WATCHED_MS = 30_000
#: Tries of one look before Redis counts as away, and the pause between them, seconds.
_TRIES, _PAUSE_S = 3, 1.0


@dataclass(slots=True)
class MonitorReport:
    """What one look found."""

    at_ms: int
    open: list[Incident] = field(default_factory=list)
    undelivered: list[Waiting] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # headlines of what was told now
    is_unused: bool = False  # no worker has visited anything yet, so that little can be wrong

    @property
    def is_well(self) -> bool:
        return not self.open and not self.undelivered


def limits_of(settings: BaseSettings) -> AlarmThresholds:
    return AlarmThresholds(
        errors=settings.getfloat("MONITOR_MAX_ERROR_SHARE"),
        challenges=settings.getfloat("MONITOR_MAX_CHALLENGE_SHARE"),
        duplicates=settings.getfloat("MONITOR_MAX_DUPLICATE_SHARE"),
        coverage_from=settings.getint("MONITOR_COVERAGE_FROM"),
        coverage={
            name: settings.getfloat(f"MONITOR_MIN_{name.upper()}") for name in alarms.COVERED_FIELDS
        },
        quarantine=settings.getint("MONITOR_QUARANTINE_PER_HOUR"),
        budget=settings.getfloat("MONITOR_BUDGET_SHARE"),
        full=settings.getfloat("MONITOR_FULL_SHARE"),
        flood_from=settings.getint("MONITOR_FLOOD_FROM"),
        slow_times=settings.getfloat("MONITOR_SLOW_NODE_TIMES"),
    )


class Monitor:
    """
    :param client: of the fleet's Redis; the caller closes it
    :param ways: whom to tell, by name
    :param store: makes the article store; None: there is none on this machine (yet)
    """

    def __init__(
        self,
        settings: BaseSettings,
        client: Any,
        ways: Mapping[str, Way],
        store: Callable[[], ArticleStore | None],
    ) -> None:
        self.settings = settings
        self.client = client
        self.ways = ways
        self.limits = limits_of(settings)
        self.history = History(client)
        self.registry = Registry(client)
        self.incidents = Incidents(client)
        self.operator = Operator(client, settings.getint("FRONTIER_SHARDS"))
        self._ledger = Ledger(client, "monitor")
        self._open_store = store
        self._away = AwayFile(opening.data_dir(settings) / "monitor-redis.json")
        self._refused_at = float("-inf")  # when Redis last did not answer, or refused a write
        self._suites = [load_object(path) for path in settings.getlist("FLEET_MONITOR_SUITES")]

    # ------------------------------------------------------------ a look
    async def round(self) -> MonitorReport:
        """Looks, notes, tells. Redis being away is one of the things that are found."""
        for left in range(_TRIES - 1, -1, -1):
            try:
                return await self._round()
            except _AWAY as exc:
                self._refused_at = time.monotonic()
                logger.debug("Redis does not answer the monitor error=%s", exc)
                if not left:
                    return await self._without_redis(shown(str(exc)))
                await asyncio.sleep(_PAUSE_S)
        raise AssertionError("not reached")

    async def _round(self) -> MonitorReport:
        facts = await self.facts()
        verdicts = alarms.judge(facts, self.limits)
        await self.incidents.note(facts.now_ms, verdicts, alarms.listed(facts))
        await self._redis_is_back(facts.now_ms)
        told = await self._tell(facts.now_ms)
        await self.incidents.looked(facts.now_ms, f"{socket.gethostname()}-{os.getpid()}")
        undelivered = [one for one in await self.incidents.waiting() if self.ways or one.tries]
        is_unused = not any(sums.pages for sums in facts.sums.values())
        return MonitorReport(
            facts.now_ms, await self.incidents.open(), undelivered, told, is_unused
        )

    async def facts(self) -> Facts:
        """:raises RedisError, FrontierError, RegistryUnavailable, HistoryUnavailable: it is away"""
        now_ms = await self.operator.now_ms()
        facts = Facts(now_ms, away={"redis": ""})
        await self._look_at_redis(facts)
        await self._look_at_disk(facts)
        await self._look_at_store(facts)
        await self._look_at_workers(facts)
        sites = await self._look_at_frontier(facts)
        await self._look_at_history(facts, sites)
        await self._look_at_selectors(facts)
        facts.own = self._run_suites(facts)
        return facts

    # ------------------------------------------------------------ parts
    async def _look_at_redis(self, facts: Facts) -> None:
        try:
            info = await self.client.info()
        except ResponseError:  # not allowed to this user
            return
        servers = info if all(isinstance(v, dict) for v in info.values()) else {"redis": info}
        for name, one in servers.items():
            limit = int(one.get("maxmemory") or 0) or int(one.get("total_system_memory") or 0)
            facts.rooms.append(Room(f"memory of {name}", float(one.get("used_memory", 0)), limit))
            failed = [
                word
                for word in ("aof_last_write_status", "aof_last_bgrewrite_status")
                if one.get(word, "ok") != "ok"
            ]
            text = f"its append-only file cannot be written ({', '.join(failed)})"
            facts.away[f"file of {name}"] = text if failed else ""

    async def _look_at_disk(self, facts: Facts) -> None:
        folder = opening.data_dir(self.settings)
        least = self.settings.getint("MONITOR_DISK_FREE_BYTES")
        with suppress(OSError):  # there is none yet
            usage = shutil.disk_usage(folder)
            used = usage.total - usage.free
            facts.rooms.append(Room(f"disk of {folder}", used, usage.total, least_free=least))

    async def _look_at_store(self, facts: Facts) -> None:
        try:
            store = self._open_store()
        except StoreError as exc:
            facts.away["article store"] = shown(str(exc))
            return
        if store is None:
            return
        try:
            await store.stats()
            facts.away["article store"] = ""
            if hasattr(store, "nodes"):
                for row in await store.nodes():
                    used = float(row.get("disk.used_percent") or 0)
                    facts.rooms.append(Room(f"disk of Elasticsearch {row['name']}", used, 100, "%"))
        except StoreError as exc:
            facts.away["article store"] = shown(str(exc))
        finally:
            with suppress(StoreError):
                await store.close()

    async def _look_at_workers(self, facts: Facts) -> None:
        facts.workers = await self.registry.workers()
        state = await self._ledger.read()
        facts.wanted = state.wanted.least if state.wanted.asked_ms else None
        facts.is_watched = bool(state.leader) if state.wanted.most else None
        facts.ended = [one for one in state.ended if state.now_ms - one.at_ms < HOUR_MS]
        target = state.said.get("target", state.wanted.least)
        facts.replaced = replaced(facts.ended, state.jobs.values(), target)
        if state.now_ms - state.said.get("at_ms", 0) < _WATCHED_MS:
            facts.nodes = {name: node.away for name, node in state.nodes.items()}
            facts.failing = {name: failing_text(node) for name, node in state.nodes.items()}
        shift_ms = facts.now_ms - state.now_ms  # the frontier's clock may be a simulated one
        for one in facts.ended:
            one.at_ms += shift_ms
        least = self.settings.getint("MONITOR_DISK_FREE_BYTES")
        for row in facts.workers:
            machine = row.get("machine") or {}
            if row["alive"] and machine.get("disk_bytes"):
                size = machine["disk_bytes"]
                name = f"disk of node {row.get('node') or row['host']}"
                if name not in {known.name for known in facts.rooms}:
                    used = size - machine["free_disk_bytes"]
                    facts.rooms.append(Room(name, used, size, least_free=least))
        if time.monotonic() - self._refused_at < GRACE_S or await self._ledger.up_s() < GRACE_S:
            facts.workers = None  # their heartbeats were refused as well: silence proves nothing

    async def _look_at_frontier(self, facts: Facts) -> set[str]:
        """:returns: sites that are crawled"""
        facts.due, paused = 0, set()
        async for state in self.operator.states():
            if not state.enabled or state.paused:
                paused.add(state.site)
            elif state.queued and open_from(state) <= facts.now_ms + SOON_MS:
                facts.due += 1
        counts = await self.operator.counts()
        facts.quarantined = counts.quarantined
        await self.history.gauge("quarantined", counts.quarantined, facts.now_ms)
        try:
            known = {site.id for site in site_choice.load_sites(self.settings).enabled()}
        except Exception as exc:  # SitesError, or the file cannot be read: workers tell of it too
            facts.away["sites file"] = shown(str(exc))
            return set()
        facts.away["sites file"] = ""
        return known - paused

    async def _look_at_history(self, facts: Facts, sites: set[str]) -> None:
        now_ms = facts.now_ms
        windows = await self.history.windows(now_ms, *_MINUTES)
        facts.last, facts.half, facts.hour, facts.two_hours = windows
        facts.since = await self.history.since()
        facts.sites = sorted(sites & set(facts.since))
        facts.hours = await self.history.hours([*facts.sites, WHOLE], now_ms)
        facts.sums = await self.registry.sites()
        active = [site for site, counts in facts.two_hours.sites.items() if counts["articles"]]
        today = day_of(now_ms, zone_of(self.settings["READER_ZONE"]))
        facts.before = await self.history.site_days(active, range(today - 7, today))

    async def _look_at_selectors(self, facts: Facts) -> None:
        selectors = opening.open_selector_store(self.settings, self.client)
        facts.drifting = await selectors.drifting()
        limits = GenerationConfig.of(self.settings).limits
        jobs = Jobs(self.client, limits, clock=lambda: facts.now_ms / 1000)
        spent = await jobs.spent()
        facts.spent = {
            "calls": (spent.get("calls", 0), limits.calls_per_day),
            "tokens": (spent.get("tokens", 0), limits.tokens_per_day),
            "money": (
                spent.get("micro", 0) / 1e6,
                limits.money_per_day if limits.price_in or limits.price_out else 0.0,
            ),
        }

    def _run_suites(self, facts: Facts) -> dict[str, str]:
        """Failed monitors of the operator's own suites, over the fleet's numbers of an hour."""
        failed: dict[str, str] = {}
        if not self._suites or facts.hour is None:
            return failed
        crawler = SimpleNamespace(settings=self.settings, stats=None)
        spider = SimpleNamespace(name="fleet", crawler=crawler, settings=self.settings)
        for made in self._suites:
            suite: MonitorSuite = made()
            runner = MonitorRunner()
            data = {"stats": stats_of(facts.hour), "crawler": crawler, "spider": spider}
            result = runner.run(suite, **data)
            for one in result.monitors_failed_results:
                name = f"{made.__name__}: {one.monitor.full_name}"
                failed[name] = reason_of(one.error or one.reason or one.status)
        return failed

    # ------------------------------------------------------------ telling
    async def _tell(self, now_ms: int) -> list[str]:
        """Tells what waits to be told, by every way that has not told it yet."""
        if not self.ways:
            return await self._leave_to_others(now_ms)
        told = []
        for waiting in await self.incidents.waiting():
            if now_ms < waiting.next_ms:
                continue
            claimed = await self.incidents.claim(waiting)
            if claimed is None:
                continue
            try:
                if not claimed.tries:
                    told.append(headline(claimed.alert))
                    logger.warning("Alert: %s; see %s", told[-1], explained(claimed.alert))
                await self._tell_one(claimed, now_ms)
            finally:
                await self.incidents.release(claimed)
        return told

    async def _leave_to_others(self, now_ms: int) -> list[str]:
        """Without ways (a person's shell without the ALERT_* of the service): what waits is for a
        monitor that has some. This one logs what its own look has found."""
        told = []
        for waiting in await self.incidents.waiting():
            at_ms = waiting.alert["at_ms"]
            if now_ms - at_ms > GIVEN_UP_MS:
                await self.incidents.told(waiting)
            elif at_ms == now_ms:
                told.append(headline(waiting.alert))
                logger.warning("Alert: %s; see %s", told[-1], explained(waiting.alert))
        return told

    async def _tell_one(self, waiting: Waiting, now_ms: int) -> None:
        failed = await self._send(waiting.alert, waiting.done)
        if not failed or now_ms - waiting.alert["at_ms"] > GIVEN_UP_MS:
            await self.incidents.told(waiting)
        else:
            await self.incidents.later(waiting, now_ms)

    async def _send(self, alert: dict[str, Any], done: list[str]) -> bool:
        """By all ways that are not in ``done``; those that told are added. True: some failed."""
        names = [name for name in self.ways if name not in done]
        results = await asyncio.gather(
            *(tell(self.ways[name], alert) for name in names), return_exceptions=True
        )
        failed = False
        for name, result in zip(names, results, strict=True):
            if result is None:
                done.append(name)
                continue
            failed = True
            why = result if isinstance(result, NotSent) else type(result).__name__
            logger.error("Alert not delivered, is tried again way=%s error=%s", name, why)
        return failed

    async def test(self) -> dict[str, str]:
        """Sends one alert by every way. :returns: name -> why it failed, "" = it is sent"""
        incident = {"subject": "test", "reason": "nothing is wrong", "since_ms": _real_ms()}
        answers = {}
        for name, way in self.ways.items():
            try:
                await tell(way, _alert("raised", "monitor", [incident], "a test of the alerts"))
                answers[name] = ""
            except NotSent as exc:
                answers[name] = str(exc)
        return answers

    # ------------------------------------------------------------ without Redis
    async def _without_redis(self, why: str) -> MonitorReport:
        now_ms = _real_ms()
        row = self._away.read()
        if row is None or "over_ms" in row:  # it came back meanwhile: this is a new incident
            row = {"since_ms": now_ms, "done": []}
        incident = Incident("away", "redis", why, row["since_ms"], now_ms, row["since_ms"])
        alert = _alert("raised", "away", [_said(incident)])
        told = []
        if "told" not in row:
            told.append(headline(alert))
            logger.warning("Alert: %s; see %s", told[-1], explained(alert))
        row["told"] = True
        await self._send(alert, row["done"])
        self._away.write(row)
        return MonitorReport(now_ms, [incident], [], told)

    async def _redis_is_back(self, now_ms: int) -> None:
        row = self._away.read()
        if row is None:
            return
        if "over_ms" not in row:
            logger.warning("Redis answers again")
            row["over_ms"], row["over_done"] = _real_ms(), []
        incident = Incident("away", "redis", "it answers again", row["since_ms"], now_ms)
        failed = await self._send(_alert("recovered", "away", [_said(incident)]), row["over_done"])
        is_told = bool(self.ways) and not failed
        if is_told or _real_ms() - row["over_ms"] > GIVEN_UP_MS:
            self._away.forget()
        else:
            self._away.write(row)


class AwayFile:
    """That this machine told of a Redis that is away: {"since_ms", "done", "told"}; since it is
    back also {"over_ms", "over_done"}, until all ways have told that.

    A data folder that cannot be written (the same full disk that stopped Redis) must not make each
    look tell it again: then a file of the folder for temporary files has the row, and where there
    is none, this process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, Any] | None = None  # {}: nothing is to be told, of whatever is read

    def read(self) -> dict[str, Any] | None:
        if self._kept is not None:
            return dict(self._kept) or None
        for path, is_open_to_others in ((self._spare(), True), (self._path, False)):
            row = _row_of(path, is_open_to_others)
            if row is not None:
                return row or None
        return None

    def write(self, row: Mapping[str, Any]) -> None:
        self._kept = None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._path, row)
            self._drop_spare()
            return
        except OSError as exc:
            logger.info("Cannot note in the data folder what was told error=%s", exc)
        try:
            spare = self._spare()
            if spare is None:
                raise OSError("there is no folder for temporary files")
            _replace(spare, row)
        except OSError as exc:
            self._kept = dict(row)
            logger.error("Cannot note what was told, it may be told again error=%s", exc)

    def forget(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
            self._drop_spare()
        except OSError:  # it stays and is read again: what stands before it says otherwise
            self.write({})
            return
        self._kept = None

    def _drop_spare(self) -> None:
        if (spare := self._spare()) is not None:
            spare.unlink(missing_ok=True)

    def _spare(self) -> Path | None:
        try:
            folder = tempfile.gettempdir()
        except OSError:
            return None
        name = hashlib.blake2b(os.fsencode(self._path), digest_size=8).hexdigest()
        return Path(folder) / f"newscrawler-{os.getuid()}-{name}.json"


def _row_of(path: Path | None, is_open_to_others: bool) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        # Anyone may make files in /tmp: a stranger's must not keep an alert back.
        if is_open_to_others and path.lstat().st_uid != os.getuid():
            return None
        row = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return row if isinstance(row, dict) else None


def _replace(path: Path, row: Mapping[str, Any]) -> None:
    """The whole row or the one before, also on a disk that is full."""
    # Monitors of other users read it too.
    data = json.dumps(row).encode()
    files.write_whole(path, data, mode=0o644, is_durable=False, is_shared=True)


def _alert(
    event: str, kind: str, incidents: list[dict[str, Any]], text: str = ""
) -> dict[str, Any]:
    """As lua/incidents.lua makes them."""
    known = KINDS[kind]
    return {
        "id": f"local-{_real_ms()}",
        "event": f"fleet.{event}",
        "at_ms": _real_ms(),
        "kind": kind,
        "severity": known.severity,
        "text": text or known.text,
        "explain": known.explain,
        "incidents": incidents,
    }


def _said(incident: Incident) -> dict[str, Any]:
    row = asdict(incident)
    return {name: row[name] for name in ("subject", "reason", "since_ms")}


def _real_ms() -> int:
    return round(time.time() * 1000)


def stats_of(window: Window) -> dict[str, Any]:
    """The fleet's numbers as monitors of a crawl expect them: our stats, and Scrapy's names of
    some."""
    stats: dict[str, Any] = dict(window.stats)
    stored = (metrics.ARTICLES_NEW, metrics.ARTICLES_UPDATED, metrics.ARTICLES_UNCHANGED)
    stats["item_scraped_count"] = sum(stats.get(name, 0) for name in stored)
    statuses = window.labelled(metrics.PAGE_STATUS)
    stats["downloader/response_count"] = sum(statuses.values())
    for status, count in statuses.items():
        stats[f"downloader/response_status_count/{status}"] = count
    return stats


# ---------------------------------------------------------------- from settings
@asynccontextmanager
async def open_monitor(settings: BaseSettings) -> AsyncIterator[Monitor]:
    """:raises ValueError: a setting is wrong
    :raises FrontierUnavailable: the embedded server could not be started
    """
    ways = ways_of(settings)
    client: Any = connect(opening.redis_url(settings), single=False)
    was_there = bool(settings.get("ARTICLE_STORE"))

    def store() -> ArticleStore | None:
        nonlocal was_there
        was_there = was_there or (opening.data_dir(settings) / "articles.db").is_file()
        return opening.open_article_store(settings, must_exist=True) if was_there else None

    try:
        yield Monitor(settings, client, ways, store)
    finally:
        await client.aclose()


async def monitor_for_ever(
    monitor: Monitor, every_s: float, tell: Callable[[MonitorReport], None], end: asyncio.Event
) -> None:
    """Looks until ``end``; a fault of one look is logged and the next one tries again."""
    while not end.is_set():
        try:
            tell(await monitor.round())
        except Exception:
            logger.exception("A look of the monitor failed, goes on")
        with suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await end.wait()


def monitor_beside(settings: BaseSettings) -> Callable[[asyncio.Event], Any] | None:
    """What `scrapy serve` and `scrapy fleet watch` run beside their own work when FLEET_MONITOR_S
    says so, until the event; None: they do not.

    :raises ValueError: a setting is wrong
    """
    every_s = _interval_s(str(settings.get("FLEET_MONITOR_S") or 0))
    if every_s <= 0:
        return None
    ways_of(settings)

    async def run(end: asyncio.Event) -> None:
        async with open_monitor(settings) as monitor:
            await monitor_for_ever(monitor, every_s, lambda report: None, end)

    return run


def _interval_s(text: str) -> float:
    """:raises ValueError:"""
    try:
        every_s = float(text)
    except ValueError:
        every_s = math.nan
    if not math.isfinite(every_s):
        raise ValueError(
            f"FLEET_MONITOR_S is {text!r}: seconds between two looks of the monitor, 0 = none"
        )
    return every_s


async def preload(settings: BaseSettings, history: History, now_ms: int) -> tuple[int, int, int]:
    """The hours of the last weeks from the article store: when each site published.

    :returns: sites, articles, hours that were not known
    :raises StoreError:
    """
    end = datetime.fromtimestamp(now_ms // HOUR_MS * HOUR_MS / 1000, UTC)
    store = opening.open_article_store(settings, must_exist=True)
    counts: dict[str, Counter[int]] = {}
    try:
        if not hasattr(store, "headlines"):
            raise StoreError("this store does not know the times of its articles")
        for back in range(WEEKS * 7 + 1, 0, -1):
            after = end - timedelta(days=back)
            for one in await cast(WholeStore, store).headlines(after, after + timedelta(days=1)):
                hour = int(one.at.timestamp()) // 3600
                counts.setdefault(one.site, Counter())[hour] += 1
    finally:
        await store.close()
    added = await history.preload(counts)
    return len(counts), sum(by_hour.total() for by_hour in counts.values()), added
