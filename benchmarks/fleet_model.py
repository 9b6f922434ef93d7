"""A fleet as discrete events over the frontier's own scripts: what benchmarks.simulate_fleet runs.

Nothing of the frontier is modelled: :class:`Frontier` and its Lua run on a real Redis. Modelled are
the workers (as crawl/lease_loop.py drives them: a call 10 ms after something ended, else when the
last answer says, a second later at the latest), the fetches, the work on a page, the network and
Redis' one thread, each with a service time that was measured. Every script call is made at an
instant of the simulated clock, which the frontier reads instead of the server's: ``factor`` 0 and
the instant as ``offset``.

*Sampling.* A fleet of W workers over S shards is S times the same: a shard with 1/S of the domains
and of the records, which gets 1/S of the workers' requests. One of them is simulated, with W/S
workers. What the other shards' workers ask of it in vain, and what a worker asks of other shards,
is added as time: by symmetry as many calls as its own workers make elsewhere.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from newscrawler.crawl.lease_loop import ASK_S, COLLECT_S
from newscrawler.frontier import keys
from newscrawler.frontier.queue import Ack, DomainPolicy, Fetched, Frontier, FrontierConfig, Lease
from newscrawler.items import Kind, Link, Outcome
from newscrawler.web.urls import url_id
from tests.newsweb.bench import latency_factor

#: The simulated moment at which a shard is filled, ms since the epoch; each run on it begins an
#: hour after what was before, when all gates are open.
BEGIN_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
#: Nothing runs out while a fleet is simulated: leases end by the server's real time.
LEASE_MS = 6 * HOUR_MS
#: Links that each page tells Redis: a new one and some that are known, so that the queue keeps
#: its length.
LINKS = 3
RAW = "worker-1-20261122-000001.warc.gz:{}:9113"


@dataclass(frozen=True, slots=True)
class Times:
    """Service times, us. Of Redis: CPU of one call, and of what is in it; of a call with nothing
    to do."""

    call: float = 150.0
    granted: float = 20.0
    fetched: float = 8.0
    acked: float = 20.0
    link: float = 8.0
    idle: float = 60.0
    #: There and back between worker and Redis, without Redis' work: the same data centre.
    network: float = 300.0

    def cost(self, granted: int, fetched: int, acked: int, links: int) -> float:
        """Of one step."""
        if not granted + fetched + acked:
            return self.idle
        return (
            self.call
            + self.granted * granted
            + self.fetched * fetched
            + self.acked * acked
            + self.link * links
        )


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is simulated.

    :param domains: of all shards; ``records`` that are queued, of all shards
    :param latency_s: of a fetch, mean; lognormal, as the latencies of servers are
    :param page_ms: CPU of a page in its worker, which uses two processors
    :param store_ms: pages of a worker are committed together so long after the first of them, and
        acked then (STORE_BATCH_MS)
    :param of_newsweb: latencies spread as those of the simulated web (tests/newsweb/bench.py)
    :param call_all: each round asks every shard, also those for which it has nothing
    """

    workers: int
    domains: int
    records: int
    shards: int = 1
    delay_s: float = 2.0
    latency_s: float = 0.5
    page_ms: float = 9.5
    concurrency: int = 32
    store_ms: float = 400.0
    of_newsweb: bool = False
    call_all: bool = False
    seed: int = 14

    @property
    def own_workers(self) -> int:
        """Of the simulated shard."""
        return max(1, round(self.workers / self.shards))

    @property
    def own_domains(self) -> int:
        return max(1, self.domains // self.shards)

    @property
    def own_records(self) -> int:
        return max(self.own_domains, self.records // self.shards)

    def is_alike(self, other: Fleet) -> bool:
        """Whether a shard of the other one can be this one's."""
        return (self.own_domains, self.own_records, self.delay_s) == (
            other.own_domains, other.own_records, other.delay_s,
        )  # fmt: skip

    def bounds(self) -> dict[str, float]:
        """Pages a second that politeness, the connections and the processors of the workers
        allow, whatever Redis does."""
        return {
            "politeness": self.domains / (self.delay_s + self.latency_s),
            "connections": self.workers * self.concurrency / self.latency_s,
            "processors": self.workers * 2000 / self.page_ms,
        }


@dataclass(slots=True)
class Worker:
    number: int
    leased: list[Lease] = field(default_factory=list)  # not begun
    fetching: int = 0
    reading: int = 0
    fetched: list[Fetched] = field(default_factory=list)
    storing: list[Lease] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    cpu_free: float = 0.0
    is_calling: bool = False
    is_woken: bool = False
    round: int = 0  # number of the round that is planned; an older one is void


@dataclass(slots=True)
class Outcomes:
    """What a run gave, after its first quarter, in which the fleet starts."""

    seconds: float = 0.0
    pages: int = 0
    calls: int = 0
    idle_calls: int = 0
    granted: int = 0
    redis_busy_s: float = 0.0
    redis_measured_s: float = 0.0
    waits_s: list[float] = field(default_factory=list)
    round_s: list[float] = field(default_factory=list)
    leases_checked: int = 0
    least_gap_s: float = math.inf
    too_soon: int = 0
    twice: int = 0
    unserved: int = 0


class Cpu:
    """Seconds of processor time of the server's main thread."""

    def __init__(self, pid: int) -> None:
        self._stat: Any = Path(f"/proc/{pid}/schedstat").open("rb", buffering=0)  # noqa: SIM115  # it stays open

    def __call__(self) -> float:
        self._stat.seek(0)
        return int(self._stat.read().split()[0]) / 1e9

    def close(self) -> None:
        self._stat.close()


class Shard:
    """One shard of the fleet in a real Redis, whose clock stands where it is put."""

    def __init__(self, client: Any, fleet: Fleet, cpu: Cpu) -> None:
        self.client, self.fleet, self.cpu = client, fleet, cpu
        self.now_ms = BEGIN_MS
        self.bytes_per_record = 0.0
        self.cpu_s = 0.0
        self.names = [f"site{i}.news.localhost" for i in range(fleet.own_domains)]
        self.made = self.made_at_first = 0
        config = FrontierConfig(
            obey_robots=False, autothrottle=False, lease_ms=LEASE_MS, call_ms=60_000,
            queue_limit=10**7, loopback_only=True, local_capacity=1000, local_links=10,
        )  # fmt: skip
        self.frontier = Frontier(client, config, "simulated")
        self._scripts = self.frontier.scripts
        self._scripts.run = self._run  # type: ignore[method-assign]

    async def _run(self, name: str, prefix: str, *args: Any) -> Any:
        """As Scripts.run, with the clock put before it in the same write."""
        pipe = self.client.pipeline(transaction=False)
        pipe.hset(keys.clock(0), mapping={"factor": 0, "offset": self.now_ms})
        sha = self._scripts.script(name).sha
        pipe.execute_command("EVALSHA", sha, 1, prefix, *args, self._scripts.word)
        before = self.cpu()
        answers = await pipe.execute()
        self.cpu_s += self.cpu() - before
        return answers[1]

    def link(self, number: int, domain: int) -> Link:
        name = self.names[domain]
        slug = f"bai-viet-so-{number:09d}-voi-mot-duong-dan-dai-nhu-that-tren-trang-bao"
        url = f"https://{name}/thoi-su/{slug}.html"
        return Link(url, url_id(url), name, Kind.ARTICLE, 2, number.to_bytes(16, "little"), score=1)

    async def fill(self) -> None:
        """Domains and records. ``bytes_per_record``: in Redis, of all keys but the domains'."""
        await self.client.flushall()
        await self.frontier.open()
        delay_ms = int(self.fleet.delay_s * 1000)
        await self.frontier.put_domains([DomainPolicy(n, n, "mid", delay_ms) for n in self.names])
        empty = (await self.client.info("memory"))["used_memory"]
        per_domain = -(-self.fleet.own_records // len(self.names))
        batch: list[Link] = []
        for domain in range(len(self.names)):
            for number in range(per_domain):
                batch.append(self.link(number, domain))
            if len(batch) >= 1024 or domain == len(self.names) - 1:
                result = await self.frontier._add(0, batch)
                assert result.added == len(batch), result
                batch = []
        self.made = per_domain
        self.made_at_first = per_domain * len(self.names)
        filled = (await self.client.info("memory"))["used_memory"]
        self.bytes_per_record = float(filled - empty) / (per_domain * len(self.names))

    async def settle(self) -> None:
        """What a run left under way has ended, and an hour later all gates are open again: the
        next run finds the shard as full as this one did."""
        held = list(self.frontier._held.values())
        self.now_ms += 60_000
        acks = [_ack(lease, self) for lease in held]
        await self.frontier.step(0, acks, [Fetched(lease, 500, 200) for lease in held])
        self.now_ms += HOUR_MS

    def number_of(self, domain: str) -> int:
        return int(domain[4:].partition(".")[0])

    def links_of(self, lease: Lease) -> list[Link]:
        """What a page tells: one that is new, the others known."""
        domain = self.number_of(lease.domain)
        self.made += 1
        known = [self.link(i, domain) for i in range(LINKS - 1)]
        return [self.link(self.made + 10**8, domain), *known]

    async def opens_ms(self) -> float:
        """When the next domain may be fetched, as _wait.lua tells a worker; inf = none."""
        first = await self.client.zrange(keys.ready(0, 1), 0, 0, withscores=True)
        return float(first[0][1]) if first else math.inf


async def calibrate(shard: Shard, rounds: int, rng: random.Random, network_us: float) -> Times:
    """What calls of mixed content cost the server, by least squares over ``rounds`` of them."""
    rows, costs, idle = [], [], []
    pending: list[Lease] = []
    ended: list[Lease] = []
    for _ in range(rounds):
        acked, ended = ended[: rng.randrange(17)], ended
        ended = ended[len(acked) :]
        told = pending[: rng.randrange(17)]
        pending = pending[len(told) :]
        acks = [_ack(lease, shard) for lease in acked]
        before = shard.cpu_s
        wanted = rng.randrange(17) if len(pending) + len(ended) < 64 else 0
        step = await shard.frontier.step(wanted, acks, [Fetched(x, 500, 200) for x in told])
        costs.append((shard.cpu_s - before) * 1e6)
        rows.append([1.0, len(step.leases), len(told), len(acks), LINKS * len(acks)])
        ended += told
        pending += step.leases
        shard.now_ms += 25
    await shard.settle()
    for _ in range(rounds):
        before = shard.cpu_s
        await shard.frontier.step(0)
        idle.append((shard.cpu_s - before) * 1e6)
    full = np.array(rows)
    # Links and acks come together here: their sum is what is measured, and is halved.
    design = full[:, :4]
    limit = np.quantile(np.array(costs), 0.98)  # a fork, or the processor's caches after another's
    keep = np.array(costs) <= limit
    solved = np.linalg.lstsq(design[keep], np.array(costs)[keep], rcond=None)[0]
    call, granted, told_us, acked_us = (max(1.0, float(x)) for x in solved)
    return Times(
        call=call,
        granted=granted,
        fetched=told_us,
        acked=acked_us / 2,
        link=acked_us / 2 / LINKS,
        idle=float(np.median(idle)),
        network=network_us,
    )


def _ack(lease: Lease, shard: Shard) -> Ack:
    return Ack(
        lease, Outcome.DONE, "", 200, digest=bytes(range(16)), raw_ref=RAW.format(lease.fence),
        links=shard.links_of(lease),
    )  # fmt: skip


class Simulation:
    """One run over one shard."""

    def __init__(self, shard: Shard, times: Times, *, calls: int, seconds: float) -> None:
        self.shard, self.fleet, self.times = shard, shard.fleet, times
        self.most_calls, self.most_s = calls, seconds
        self.rng = random.Random(shard.fleet.seed)
        self.workers = [Worker(i) for i in range(shard.fleet.own_workers)]
        self.found = Outcomes()
        self._events: list[tuple[float, int, str, Worker, Any]] = []
        self._sequence = 0
        self._free_ms = 0.0  # from when Redis' thread has nothing to do
        self._begin_ms = shard.now_ms
        self._ended: dict[str, float] = {}  # domain -> when its last fetch ended, at its site
        self._opens: dict[str, float] = {}  # domain -> when its gate opens
        self._fetching: set[str] = set()
        self._total_calls = 0
        self._numbers: dict[str, int] = {}  # domain -> its fetches

    def _plan(self, at_ms: float, what: str, worker: Worker, value: Any = None) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (at_ms, self._sequence, what, worker, value))

    def _plan_round(self, worker: Worker, at_ms: float) -> None:
        worker.round += 1
        self._plan(at_ms, "round", worker, worker.round)

    async def run(self) -> Outcomes:
        for worker in self.workers:
            self._plan_round(worker, self.rng.uniform(0, 1000 * ASK_S))
        warm: Outcomes | None = None
        at_ms = 0.0
        while self._events:
            at_ms, _, what, worker, value = heapq.heappop(self._events)
            share = max(self._total_calls / self.most_calls, at_ms / 1000 / self.most_s)
            if share >= 1:
                break
            if warm is None and share >= 0.25:
                warm, self.found = self.found, Outcomes()
                warm.seconds = at_ms / 1000
            await self._event(at_ms, what, worker, value)
        begun_s = warm.seconds if warm else 0.0
        self.found.seconds = at_ms / 1000 - begun_s
        if warm is not None:  # politeness is judged over the whole run
            self.found.least_gap_s = min(self.found.least_gap_s, warm.least_gap_s)
            self.found.too_soon += warm.too_soon
            self.found.twice += warm.twice
            self.found.leases_checked += warm.leases_checked
        self._count_unserved(at_ms)
        await self.shard.settle()
        return self.found

    def _count_unserved(self, at_ms: float) -> None:
        """Domains that stood open to the end: their wait so far counts as well."""
        for name in self.shard.names:
            if name in self._fetching:
                continue
            wait_ms = at_ms - self._opens.get(name, 0.0)
            if wait_ms > 0:
                self.found.unserved += name not in self._opens
                self.found.waits_s.append(wait_ms / 1000)

    async def _event(self, at_ms: float, what: str, worker: Worker, value: Any) -> None:
        if what == "round":
            if value == worker.round and not worker.is_calling:
                await self._round(at_ms, worker)
        elif what == "answer":
            self._answer(at_ms, worker, *value)
        elif what == "fetched":
            self._fetched(at_ms, worker, value)
        elif what == "read":
            worker.reading -= 1
            if not worker.storing:
                self._plan(at_ms + self.fleet.store_ms, "stored", worker)
            worker.storing.append(value)
        else:
            self.found.pages += len(worker.storing)
            worker.acks += [_ack(lease, self.shard) for lease in worker.storing]
            worker.storing = []
            self._wake(at_ms, worker)

    def _wake(self, at_ms: float, worker: Worker) -> None:
        if worker.is_calling:
            worker.is_woken = True
        elif not worker.is_woken:
            worker.is_woken = True
            self._plan_round(worker, at_ms + 1000 * COLLECT_S)

    def _fetched(self, at_ms: float, worker: Worker, value: tuple[Lease, float]) -> None:
        lease, latency_ms = value
        worker.fetching -= 1
        self._ended[lease.domain] = at_ms
        self._fetching.discard(lease.domain)
        worker.fetched.append(Fetched(lease, latency_ms, 200))
        self._begin_fetches(at_ms, worker)
        # Two processors: a page is half its CPU's time at work.
        begin = max(at_ms, worker.cpu_free)
        worker.cpu_free = begin + self.fleet.page_ms / 2
        worker.reading += 1
        self._plan(worker.cpu_free, "read", worker, lease)
        self._wake(at_ms, worker)

    def _begin_fetches(self, at_ms: float, worker: Worker) -> None:
        while worker.leased and worker.fetching < self.fleet.concurrency:
            lease = worker.leased.pop(0)
            worker.fetching += 1
            latency_ms = 1000 * self.fleet.latency_s * self._latency(lease.domain)
            self._plan(at_ms + latency_ms, "fetched", worker, (lease, latency_ms))

    def _latency(self, domain: str) -> float:
        """Of a fetch, beside the mean."""
        if self.fleet.of_newsweb:
            number = self._numbers[domain] = self._numbers.get(domain, 0) + 1
            return latency_factor(self.shard.number_of(domain), number)
        return self.rng.lognormvariate(-0.125, 0.5)

    def _room(self, worker: Worker) -> int:
        """As LeaseLoop._room."""
        if worker.fetching + worker.reading >= self.fleet.concurrency:
            return 0
        return max(0, self.fleet.concurrency - len(worker.leased))

    async def _round(self, at_ms: float, worker: Worker) -> None:
        worker.is_calling, worker.is_woken = True, False
        k = self._room(worker)
        acks, worker.acks = worker.acks, []
        fetched, worker.fetched = worker.fetched, []
        half_ms = self.times.network / 2000
        start = max(at_ms + half_ms, self._free_ms)
        shard = self.shard
        shard.now_ms = math.ceil(self._begin_ms + start)
        measured = shard.cpu_s
        step = await self._step(worker, k, acks, fetched)
        measured = shard.cpu_s - measured
        # A large round is several calls; each is counted with its part.
        calls = max(1, -(-len(acks) // 16), -(-len(step.leases) // 16))
        links = LINKS * len(acks)
        cost_ms = self.times.cost(len(step.leases), len(fetched), len(acks), links) / 1000
        cost_ms += (calls - 1) * self.times.call / 1000
        apart, vain = self._elsewhere(k, len(step.leases), acks, fetched)
        cost_ms += apart * self.times.call / 1000
        self._free_ms = start + cost_ms + vain * self.times.idle / 1000
        self._note(step.leases, fetched, start)
        self.found.redis_busy_s += (self._free_ms - start) / 1000
        self.found.redis_measured_s += measured
        self.found.calls += calls
        self.found.idle_calls += not (step.leases or acks or fetched)
        self._total_calls += calls
        end = start + cost_ms + half_ms
        # The other shards are asked one after the other, and are as busy as this one.
        queue_ms = start - at_ms - half_ms
        end += (apart + vain) * (2 * half_ms + self.times.idle / 1000 + queue_ms)
        self.found.round_s.append((end - at_ms) / 1000)
        opens_ms = await shard.opens_ms() if len(step.leases) < k else -1.0
        self._plan(end, "answer", worker, (step.leases, k, opens_ms))

    def _elsewhere(
        self, k: int, granted: int, acks: list[Ack], fetched: list[Fetched]
    ) -> tuple[float, float]:
        """Of the calls of a round: how many more than one it takes as what has ended lies in
        several shards; and how many shards are asked in vain. Where a round finds what it wants it
        need not ask further, unless the program asks every shard anyway."""
        shards = self.fleet.shards
        if shards == 1:
            return 0.0, 0.0
        events = len({*(ack.lease.domain for ack in acks), *(one.lease.domain for one in fetched)})
        touched = shards * (1 - (1 - 1 / shards) ** events)
        touched = min(float(shards), max(1.0, touched + (1 - touched / shards) * (k > 0)))
        asks_all = self.fleet.call_all or granted < k or not (k or events)
        return touched - 1, shards - touched if asks_all else 0.0

    async def _step(self, worker: Worker, k: int, acks: list[Ack], fetched: list[Fetched]) -> Any:
        self.shard.frontier.worker = f"worker{worker.number}"
        return await self.shard.frontier.step(k, acks, fetched)

    def _note(self, leases: list[Lease], fetched: list[Fetched], start: float) -> None:
        """Every lease is judged: when its domain's last fetch ended at its site, and whether
        another is under way; and how long the domain had been open."""
        delay_ms = 1000 * self.fleet.delay_s
        for one in fetched:
            self._opens[one.lease.domain] = start + 1 + delay_ms
        for lease in leases:
            name = lease.domain
            self.found.leases_checked += 1
            self.found.twice += name in self._fetching
            self._fetching.add(name)
            if name in self._ended:
                gap_ms = start - self._ended[name]
                self.found.least_gap_s = min(self.found.least_gap_s, gap_ms / 1000)
                self.found.too_soon += gap_ms < delay_ms
            self.found.waits_s.append(max(0.0, start - self._opens.get(name, 0.0)) / 1000)
        self.found.granted += len(leases)

    def _answer(
        self, at_ms: float, worker: Worker, leases: list[Lease], k: int, opens_ms: float
    ) -> None:
        worker.is_calling = False
        worker.leased += leases
        self._begin_fetches(at_ms, worker)
        if worker.is_woken:
            worker.is_woken = False
            self._wake(at_ms, worker)
            return
        wait_ms = 1000 * ASK_S
        if k and opens_ms >= 0 and self._room(worker):
            # A millisecond later: at the very instant the script, whose clock has no speed here,
            # divides nothing by nothing.
            wait_ms = min(wait_ms, max(0.0, opens_ms + 1 - self._begin_ms - at_ms))
        self._plan_round(worker, at_ms + wait_ms + 1000 * COLLECT_S)


@contextmanager
def server_cpu(pid: int) -> Iterator[Cpu]:
    """:raises OSError: there is no Linux"""
    cpu = Cpu(pid)
    try:
        yield cpu
    finally:
        cpu.close()
