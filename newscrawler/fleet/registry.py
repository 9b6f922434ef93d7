"""Who works in the fleet, and what the fleet has done so far: heartbeats and summed
counters in Redis.

Independent of scrapyd. A worker writes a heartbeat with an expiry and, each second, the
*difference* of its counters; so the sums stay when the worker ends, and the API, the exporter and
the alerts read one place. All keys carry one hash tag (a Redis Cluster keeps them on one node, so
that a batch is one MULTI):

    {fleet}:workers           zset  worker id -> ms of its last beat
    {fleet}:worker:<id>       JSON  the beat, expires BEAT_TTL_S after it was written
    {fleet}:order:<job or id> text  what the worker is asked to do: ORDERS
    {fleet}:totals            hash  stat of metrics.py (with its label) -> sum of all workers, ever
    {fleet}:sites             set   site ids with a hash of their own
    {fleet}:lag:<site>:<day>  hash  step of freshness.py -> articles; expires DAYS + 1 days after
    {fleet}:site:<site>       hash  pages, new, updated, duplicates, o:<OUTCOME(reason)>,
                                    last_fetch_ms, last_new_ms, last_error ...
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newscrawler import metrics
from newscrawler.fleet import history
from newscrawler.fleet.answers import answered, text_of
from newscrawler.fleet.freshness import DAYS, LATE, STAGES

if TYPE_CHECKING:
    from redis.asyncio import Redis

TAG = "{fleet}"
WORKERS = f"{TAG}:workers"
TOTALS = f"{TAG}:totals"
SITES = f"{TAG}:sites"

#: Seconds between two heartbeats, and how long one is believed: three may be missed. A worker that
#: died is found within ten seconds (docs/operations.md), so a beat is believed for less.
BEAT_S = 2.0
BEAT_TTL_S = 7
#: A worker that fell silent without saying goodbye is shown as such for this long, seconds.
SILENT_S = 3600
#: What a worker is asked to do, in the answer to its beat. DRAIN: take nothing more, finish what is
#: under way, give back the rest, end. REPLACED: the same, as the fleet has given up this worker and
#: started another one in its place; a job that was given up before it began must not begin.
DRAIN = "drain"
REPLACED = "replaced"
ORDERS = (DRAIN, REPLACED)
#: An order is kept for so long, seconds: a job may wait in scrapyd's queue meanwhile.
ORDER_S = 86_400

#: Fields of a site's hash that are counted up, beside its outcomes.
SUMMED = ("pages", "new", "updated", "duplicates")
#: Fields of a site's hash that are set to the newest value; the others are sums.
NEWEST = ("last_fetch_ms", "last_new_ms", "last_error", "last_error_ms")


def worker_key(worker: str) -> str:
    return f"{TAG}:worker:{worker}"


def order_key(job_or_worker: str) -> str:
    """Of a scrapyd job by its id; of a worker that is none by the worker's id."""
    return f"{TAG}:order:{job_or_worker}"


def site_key(site: str) -> str:
    return f"{TAG}:site:{site}"


def lag_key(site: str, day: int) -> str:
    """``day``: days since the epoch."""
    return f"{TAG}:lag:{site}:{day}"


class RegistryUnavailable(Exception):
    """Redis does not answer. Counters that were not taken stay with the caller."""


@dataclass(slots=True)
class Beat:
    """What a worker says of itself every BEAT_S seconds."""

    id: str
    host: str
    pid: int
    job: str = ""  # scrapyd's job id
    started_ms: int = 0
    beat_ms: int = 0
    cpu_s: float = 0.0  # user and system, since the process began
    cpu_percent: float = 0.0  # of one core, since the last beat
    memory_bytes: int = 0  # resident
    pages: int = 0  # that were answered, since the worker began
    pages_per_s: float = 0.0  # over the last ten seconds or so
    leases: int = 0  # URLs in hand
    in_flight: int = 0  # of these: being fetched
    gauges: dict[str, float] = field(default_factory=dict)  # stats of metrics.py that are gauges
    node: str = ""  # FLEET_NODE: its name in scrapy.cfg
    version: str = ""  # of the egg, or of the package
    last_error: str = ""  # the newest line of level ERROR, else the newest visit that failed
    machine: dict[str, float] = field(default_factory=dict)  # machine.Machine: what its host has
    turn_s: float = 0.0  # these four: crawl.lease_loop.Progress
    held_s: float = 0.0
    ended_s: float = -1.0
    waits_s: float = 0.0
    waits_for: str = ""  # what is waited for, in words


@dataclass(slots=True)
class SiteDelta:
    """What a worker adds to a site's sums since it last did."""

    pages: int = 0  # visits that ended, robots.txt and lists too
    new: int = 0  # articles
    updated: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)  # "DONE", "RETRY(dns)", ... -> visits
    last_fetch_ms: int = 0  # 0 = no answer came
    last_new_ms: int = 0
    last_error: str = ""  # the newest outcome that was an error, "RETRY(dns)"
    last_error_ms: int = 0
    first_ms: int = (
        0  # when the site was first seen to answer, by the frontier's clock; the oldest is kept
    )
    lags: Counter[str] = field(default_factory=Counter)  # steps of freshness.Lag -> articles
    errors: int = 0  # visits that failed and come again or not, challenges apart
    challenges: int = 0
    duplicates: int = 0  # articles that are stored under another address
    fields: Counter[str] = field(default_factory=Counter)  # of stored articles: those that have it
    articles: int = 0  # that ``fields`` were counted of
    hours: Counter[int] = field(default_factory=Counter)  # hour since the epoch -> new articles

    def counts(self) -> dict[str, int]:
        """For the sums of ten minutes and of a day (history.py)."""
        steps = {name: n for name, n in self.lags.items() if name[0] == STAGES["total"]}
        return {
            "pages": self.pages,
            "new": self.new,
            "updated": self.updated,
            "errors": self.errors,
            "challenges": self.challenges,
            "duplicates": self.duplicates,
            "articles": self.articles,
            "timed": sum(steps.values()),
            "late": sum(n for name, n in steps.items() if int(name[2:]) > LATE),
            **{f"f:{name}": count for name, count in self.fields.items()},
            **{f"o:{label}": n for label, n in self.outcomes.items()},
            **{f"l:{step}": n for step, n in self.lags.items()},
        }


@dataclass(slots=True)
class SiteSums:
    """A site's row, summed over the fleet. Times are ms since the epoch, 0 = never."""

    site: str
    pages: int = 0
    new: int = 0
    updated: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    last_fetch_ms: int = 0
    last_new_ms: int = 0
    last_error: str = ""
    last_error_ms: int = 0
    first_ms: int = 0
    lags: dict[str, int] = field(default_factory=dict)  # of the last freshness.DAYS days
    duplicates: int = 0  # articles that are stored under another address

    @property
    def timeouts(self) -> int:
        """Visits to which no answer came in time, whatever was made of them."""
        return sum(count for label, count in self.outcomes.items() if "timeout" in label)


class Registry:
    """Reads and writes the keys above. Every coroutine may raise RegistryUnavailable."""

    def __init__(self, client: Redis, clock: Callable[[], float] = time.time) -> None:
        """``client`` may answer bytes or text and stays the caller's; ``clock`` is in seconds."""
        self.client = client
        self.clock = clock

    # ------------------------------------------------------------ workers

    async def beat(self, beat: Beat) -> str:
        """:returns: the order for this worker, "" = none"""
        pipe = self.client.pipeline(transaction=True)
        pipe.set(worker_key(beat.id), json.dumps(asdict(beat), ensure_ascii=False), ex=BEAT_TTL_S)
        pipe.zadd(WORKERS, {beat.id: beat.beat_ms})
        pipe.zremrangebyscore(WORKERS, "-inf", self._now_ms() - SILENT_S * 1000)
        pipe.get(order_key(beat.job or beat.id))
        order = (await self._run(pipe.execute()))[-1]
        return text_of(order) if order else ""

    async def order(self, job_or_worker: str, order: str) -> None:
        """:param order: one of ORDERS; "" takes it back"""
        key = order_key(job_or_worker)
        if order:
            await self._run(self.client.set(key, order, ex=ORDER_S))
        else:
            await self._run(self.client.delete(key))

    async def leave(self, worker: str) -> None:
        """The worker ended in order: it is not shown as silent."""
        pipe = self.client.pipeline(transaction=True)
        pipe.delete(worker_key(worker))
        pipe.zrem(WORKERS, worker)
        await self._run(pipe.execute())

    async def workers(self) -> list[dict[str, Any]]:
        """The beats, oldest worker first, each with ``alive`` and ``age_s``. A worker that fell
        silent is listed for SILENT_S with ``alive`` False and what is known: id and age."""
        now = self._now_ms()
        raw = await self._run(self.client.zrange(WORKERS, 0, -1, withscores=True))
        beats = [(text_of(worker), float(at)) for worker, at in raw if at >= now - SILENT_S * 1000]
        if not beats:
            return []
        texts = await self._run(self.client.mget([worker_key(worker) for worker, _ in beats]))
        rows: list[dict[str, Any]] = []
        for (worker, at), text in zip(beats, texts, strict=True):
            row = json.loads(text) if text else {"id": worker, "beat_ms": int(at)}
            row["alive"] = text is not None
            row["age_s"] = round(max(0.0, (now - at) / 1000), 1)
            rows.append(row)
        rows.sort(key=lambda row: (not row["alive"], row.get("started_ms", 0), row["id"]))
        return rows

    # ------------------------------------------------------------ counters

    async def add(
        self,
        totals: Mapping[str, int],
        sites: Mapping[str, SiteDelta],
        now_ms: int = 0,
        node: str = "",
        zone: tzinfo = UTC,
    ) -> None:
        """Add what happened since the last call. All of it is taken or none; when an error
        hides which, the caller offers it again: a batch counted twice after a broken
        connection beats one that is missing.

        :param now_ms: by the frontier's clock; 0 = by this machine's
        :param node: where it happened
        :param zone: whose days are counted
        """
        pipe = self.client.pipeline(transaction=True)
        for name, count in totals.items():
            if count:
                pipe.hincrby(TOTALS, name, count)
        if sites:
            pipe.sadd(SITES, *sites)
        for site, delta in sites.items():
            self._add_site(pipe, site, delta)
        notes = history.Notes(
            {site: delta.counts() for site, delta in sites.items()},
            {site: delta.hours for site, delta in sites.items() if delta.hours},
            node,
            zone,
        )
        history.note(pipe, totals, notes, now_ms or self._now_ms())
        if len(pipe):
            await self._run(pipe.execute())

    def _add_site(self, pipe: Any, site: str, delta: SiteDelta) -> None:
        key = site_key(site)
        for name in SUMMED:
            if count := getattr(delta, name):
                pipe.hincrby(key, name, count)
        for outcome, count in delta.outcomes.items():
            pipe.hincrby(key, f"o:{outcome}", count)
        newest = {name: v for name in NEWEST if (v := getattr(delta, name))}
        if newest:
            pipe.hset(key, mapping=newest)
        if delta.first_ms:
            pipe.hsetnx(key, "first_ms", delta.first_ms)
        if delta.lags:
            day_key = lag_key(site, self._day())
            for step, count in delta.lags.items():
                pipe.hincrby(day_key, step, count)
            pipe.expire(day_key, (DAYS + 1) * 86_400)

    async def totals(self) -> dict[str, int]:
        """stat of metrics.py -> sum"""
        raw = await self._run(self.client.hgetall(TOTALS))
        sums: Counter[str] = Counter()
        for name, value in raw.items():
            sums[metrics.renamed(text_of(name))] += int(value)
        return dict(sums)

    async def sites(self) -> dict[str, SiteSums]:
        names = sorted(text_of(name) for name in await self._run(self.client.smembers(SITES)))
        pipe = self.client.pipeline(transaction=False)
        for name in names:
            pipe.hgetall(site_key(name))
        rows = await self._run(pipe.execute()) if names else []
        found = {name: _sums(name, row) for name, row in zip(names, rows, strict=True)}
        await self._add_lags([row for row in found.values() if row.first_ms])
        return found

    async def _add_lags(self, rows: Sequence[SiteSums]) -> None:
        """Only of sites that had a new article at all."""
        today = self._day()
        pipe = self.client.pipeline(transaction=False)
        for row in rows:
            for day in range(today - DAYS + 1, today + 1):
                pipe.hgetall(lag_key(row.site, day))
        answers = await self._run(pipe.execute()) if rows else []
        for at, row in enumerate(rows):
            lags: Counter[str] = Counter()
            for answer in answers[at * DAYS : (at + 1) * DAYS]:
                lags.update({text_of(step): int(count) for step, count in answer.items()})
            row.lags = dict(lags)

    # ------------------------------------------------------------ below

    def _day(self) -> int:
        return int(self.clock() // 86_400)

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)

    async def _run(self, answer: Any) -> Any:
        return await answered(answer, RegistryUnavailable, "the worker registry in Redis")


def _sums(site: str, raw: Mapping[bytes | str, bytes | str]) -> SiteSums:
    row = {text_of(name): text_of(value) for name, value in raw.items()}
    sums = SiteSums(site=site, last_error=row.get("last_error", ""))
    for name in (
        *SUMMED,
        "last_fetch_ms",
        "last_new_ms",
        "last_error_ms",
        "first_ms",
    ):
        setattr(sums, name, int(row.get(name, 0)))
    outcomes = {name[2:]: int(value) for name, value in row.items() if name.startswith("o:")}
    sums.outcomes = dict(sorted(outcomes.items(), key=lambda item: (-item[1], item[0])))
    return sums


# ---------------------------------------------------------------- this process


class ProcessMeter:
    """CPU and memory of this process and its children, and the share of a core since the last look.

    :param children: the pids of the processes that work for this one, at the moment
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        children: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self._clock = clock
        self._children = children
        self._at = clock()
        self._cpu_s = self.cpu_s()

    def cpu_s(self) -> float:
        """Seconds so far; less than before when a child has ended."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime + sum(map(_child_cpu_s, self._children()))

    def memory_bytes(self) -> int:
        own = _resident_bytes("self")
        if own is None:  # not Linux: the peak is what can be had
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return own + sum(_resident_bytes(str(pid)) or 0 for pid in self._children())

    def cpu_percent(self) -> float:
        now, cpu_s = self._clock(), self.cpu_s()
        wall_s = now - self._at
        percent = 100 * max(0.0, cpu_s - self._cpu_s) / wall_s if wall_s > 0 else 0.0
        self._at, self._cpu_s = now, cpu_s
        return round(percent, 1)


def _resident_bytes(process: str) -> int | None:
    """None when it cannot be known, or the process is gone."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _child_cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0
