"""A day of a fleet over simulated sites, as Redis sees it: what workers write, through the code that
writes it, by a clock that the test sets. Articles come as those of newsrooms do: few at night, a
peak in the morning and one in the afternoon, less at the weekend, by chance.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from newscrawler import metrics
from newscrawler.crawl.monitoring import Monitor, MonitorReport
from newscrawler.crawl.opening import open_article_store
from newscrawler.fleet.freshness import STAGES, Lag
from newscrawler.fleet.history import HOUR_MS, WHOLE, History
from newscrawler.fleet.ledger import LEADER, SAID, Batch, Ledger, NodeState, Wanted
from newscrawler.fleet.registry import Beat, Registry, SiteDelta, worker_key
from newscrawler.fleet.rows import EndedVisit, Rows
from newscrawler.frontier import keys
from newscrawler.frontier.queue import Frontier
from tests.redis.helpers import frontier, links

MINUTE_MS = 60_000
#: A Wednesday, midnight.
START = round(datetime(2026, 11, 18, tzinfo=UTC).timestamp() * 1000)
#: Part of a day's articles by hour of the day.
PROFILE = (
    1, 1, 1, 1, 2, 4, 7, 9, 9, 8, 7, 6, 5, 6, 8, 8, 7, 6, 5, 4, 3, 3, 2, 2,
)  # fmt: skip
FIELDS = ("title", "content", "published", "authors")


def rate(per_day: float, at_ms: int) -> float:
    """Articles an hour of a site that has ``per_day`` on a working day."""
    when = datetime.fromtimestamp(at_ms / 1000, UTC)
    weekend = 0.5 if when.weekday() >= 5 else 1.0
    return per_day * weekend * PROFILE[when.hour] / sum(PROFILE)


def poisson(rng: random.Random, mean: float) -> int:
    """Knuth's, good for small means."""
    if mean > 30:
        return max(0, round(rng.gauss(mean, mean**0.5)))
    limit, count, product = 2.718281828 ** (-mean), 0, rng.random()
    while product > limit:
        count += 1
        product *= rng.random()
    return count


@dataclass
class Faults:
    """What is wrong just now; each is one way in which a crawl goes wrong."""

    silent: set[str] = field(default_factory=set)
    flooding: set[str] = field(default_factory=set)
    challenged: set[str] = field(default_factory=set)
    without_authors: set[str] = field(default_factory=set)
    late: bool = False
    failing: bool = False
    doubled: bool = False
    stopped: bool = False  # workers live and fetch nothing
    slow_node: bool = False
    dead: set[str] = field(default_factory=set)  # workers
    disk_free: float = 5e11  # of node a
    node_away: str = ""  # why node b does not answer the watch
    crashes: int = 0  # starts in a row that failed on node b
    is_unwatched: bool = False


class Stats(Counter[str]):
    def inc_value(self, name: str, count: int = 1) -> None:
        self[name] += count


class Fleet:
    """Two nodes with a worker each, over sites of 80 to 400 articles a day."""

    def __init__(self, r: Any, folder: Path, sites: int, seed: int) -> None:
        self.r = r
        self.folder = folder
        self.rng = random.Random(seed)
        self.now = START
        self.sites = {f"site{n}.vn": 80 + 320 * n // max(1, sites - 1) for n in range(sites)}
        self.workers = {"w-a": "a", "w-b": "b"}
        self.faults = Faults()
        self.registry = Registry(r, lambda: self.now / 1000)
        self.rows = {worker: Rows() for worker in self.workers}
        self.frontier: Frontier | None = None
        self.ledger = Ledger(r, "watch")

    # ------------------------------------------------------------ before
    async def begin(self) -> None:
        """Four weeks are known, every site has something queued."""
        await self.clock(START)
        self.frontier = await frontier(self.r, "w-a", tuple(self.sites))
        await self.ledger.want(Wanted(2, 2), START)
        for site in self.sites:
            await self.frontier.add(links(30, site))
        past: dict[str, dict[int, int]] = {WHOLE: {}}
        for site, per_day in self.sites.items():
            past[site] = {}
            for hour in range((START - 28 * 86_400_000) // HOUR_MS, START // HOUR_MS):
                past[site][hour] = poisson(self.rng, rate(per_day, hour * HOUR_MS))
        await History(self.r).preload(past)
        for back in range(1, 8):
            await self.registry.add({}, self._week_before(), START - back * 86_400_000)
        for rows in self.rows.values():
            rows.known_since(dict.fromkeys(self.sites, START - 28 * 86_400_000))
        sites = [
            {"id": site, "home": f"https://{site}/", "name": site, "enabled": True}
            for site in self.sites
        ]
        (self.folder / "sites.json").write_text(json.dumps({"sites": sites}), encoding="utf-8")
        store = open_article_store(self.settings())
        await store.open()
        await store.close()

    def _week_before(self) -> dict[str, SiteDelta]:
        """What fields the articles of a day had."""
        found = {}
        for site, per_day in self.sites.items():
            fields = Counter(title=per_day, content=per_day, published=per_day)
            fields["authors"] = round(0.8 * per_day)
            found[site] = SiteDelta(articles=round(per_day), fields=fields)
        return found

    def settings(self, **more: Any) -> Settings:
        made = Settings()
        made.setmodule("newscrawler.settings", priority="project")
        own = {
            "DATA_DIR": str(self.folder),
            "SITES_FILE": str(self.folder / "sites.json"),
            "SEMANTIC": "off",
            "READER_ZONE": "UTC",
            "MONITOR_QUARANTINE_PER_HOUR": 20,
            "MONITOR_DISK_FREE_BYTES": 1_000_000,  # of the machine that runs the test
            "REDIS_URL": "unix://of-the-test",
            "FRONTIER_SHARDS": 1,
        }
        for name, value in {**own, **more}.items():
            made.set(name, value, priority="cmdline")
        return made

    async def clock(self, now_ms: int) -> None:
        """The frontier's clock stands still at this moment."""
        self.now = now_ms
        await self.r.hset(keys.clock(0), mapping={"factor": "1e-9", "offset": repr(float(now_ms))})

    # ------------------------------------------------------------ the day
    async def work(self, minutes: int) -> None:
        """What the workers do and write in so many minutes."""
        await self.clock(self.now + minutes * MINUTE_MS)
        alive = [worker for worker in self.workers if worker not in self.faults.dead]
        stats = {worker: Stats() for worker in self.workers}
        for site, per_day in self.sites.items():
            if alive and not self.faults.stopped:
                self._visits(site, per_day, minutes, alive, stats)
        for worker in alive:
            await self._write(worker, stats[worker])
        await self._watch()

    async def _watch(self) -> None:
        """What a watch notes of its nodes."""
        if self.faults.is_unwatched:
            await self.r.delete(LEADER, SAID)  # they run out within seconds
            return
        batch = Batch()
        batch.node(NodeState("a"))
        faults = self.faults
        batch.node(
            NodeState("b", away=faults.node_away, crashes=faults.crashes, last_error="refused")
        )
        batch.say((await self.ledger.read()).now_ms, 2, [])
        await self.ledger.lead()
        assert await self.ledger.write(batch)

    def _visits(
        self, site: str, per_day: float, minutes: int, alive: list[str], stats: dict[str, Stats]
    ) -> None:
        faults, rng = self.faults, self.rng
        new = poisson(rng, rate(per_day, self.now) * minutes / 60)
        if site in faults.silent:
            new = 0
        if site in faults.flooding:
            new += 40 * minutes
        for _ in range(new):
            worker = rng.choice(alive)
            self._article(site, worker, stats[worker])
        for _ in range(2 * minutes):
            worker = rng.choice(alive)
            self._list(site, worker, stats[worker])

    def _article(self, site: str, worker: str, stats: Stats) -> None:
        if self.faults.failing and self.rng.random() < 0.6:
            self._end(EndedVisit(site, "RETRY", "timeout", answered=False), worker, stats)
            return
        if site in self.faults.challenged:
            self._end(EndedVisit(site, "CHALLENGE", "cloudflare"), worker, stats)
            return
        if self.faults.doubled or self.rng.random() < 0.02:
            for _ in range(3 if self.faults.doubled else 1):
                self._end(EndedVisit(site, "DONE", stored="duplicate"), worker, stats)
                stats.inc_value(metrics.ARTICLES_DUPLICATE)
        has = {"title", "content", "published"}
        if site not in self.faults.without_authors and self.rng.random() < 0.8:
            has.add("authors")
        visit = EndedVisit(site, "DONE", is_article=True, stored="new", fields=tuple(has))
        self._end(visit, worker, stats)
        stats.inc_value(metrics.ARTICLES_NEW)
        for name in has:
            stats.inc_value(metrics.labelled(metrics.ARTICLE_FIELD, name))
        waited = 3000.0 if self.faults.late else self.rng.uniform(30, 600)
        lag = Lag(waited, 4.0, 2.0)
        published_ms = self.now - round(lag.total * 1000)
        rows = self.rows[worker]
        rows.note_hour(site, published_ms, self.now)
        rows.note_lag(site, lag, published_ms, self.now)
        for stage in STAGES:
            metrics.observe(stats, f"{metrics.ARTICLE_LAG}/{stage}", getattr(lag, stage))

    def _list(self, site: str, worker: str, stats: Stats) -> None:
        if self.faults.failing and self.rng.random() < 0.6:
            self._end(EndedVisit(site, "RETRY", "timeout", answered=False), worker, stats)
        elif site in self.faults.challenged:
            self._end(EndedVisit(site, "CHALLENGE", "cloudflare"), worker, stats)
        elif self.rng.random() < 0.03:
            self._end(EndedVisit(site, "RETRY", "http 503"), worker, stats)
        else:
            self._end(EndedVisit(site, "UNCHANGED"), worker, stats)

    def _end(self, visit: EndedVisit, worker: str, stats: Stats) -> None:
        label = self.rows[worker].note(visit, self.now)
        stats.inc_value(metrics.labelled(metrics.PAGE_OUTCOME, visit.outcome))
        if label != "DONE":
            stats.inc_value(metrics.labelled(metrics.PAGE_REASON, label))
        if visit.answered:
            stats.inc_value(metrics.PAGES)
            is_slow = self.faults.slow_node and self.workers[worker] == "b"
            metrics.observe(stats, metrics.FETCH_TIME, 6.0 if is_slow else self.rng.uniform(0.1, 1))
            metrics.observe(stats, metrics.PARSE_TIME, 0.02)

    async def _write(self, worker: str, stats: Stats) -> None:
        node = self.workers[worker]
        await self.registry.add(stats, self.rows[worker].take_deltas(), self.now, node)
        free = self.faults.disk_free if node == "a" else 5e11
        disk = {"disk_bytes": 1e12, "free_disk_bytes": free}
        beat = Beat(worker, f"host-{node}", 1, started_ms=START, beat_ms=self.now, node=node)
        beat.machine = {"cores": 4, "memory_bytes": 8e9, "free_memory_bytes": 4e9, **disk}
        await self.registry.beat(beat)
        # A beat is believed for seconds, and the minutes of this day are shorter.
        await self.r.expire(worker_key(worker), 600)

    async def kill(self, worker: str) -> None:
        """Without a sign-off; its heartbeat has run out."""
        self.faults.dead.add(worker)
        await self.r.delete(worker_key(worker))


class Watched:
    """A fleet with a monitor that looks at it."""

    def __init__(self, fleet: Fleet, monitor: Monitor) -> None:
        self.fleet = fleet
        self.monitor = monitor
        monitor.registry.clock = fleet.registry.clock

    async def minutes(self, minutes: int, every: int) -> MonitorReport:
        for _ in range(0, minutes, every):
            await self.fleet.work(every)
            report = await self.monitor.round()
        return report
