"""Short words for the frontier's tests, and the judge of its invariants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from newscrawler.frontier import keys, records
from newscrawler.frontier.queue import Ack, DomainPolicy, Fetched, Frontier, FrontierConfig, Lease
from newscrawler.items import Kind, Link, Outcome
from newscrawler.web.urls import url_id

#: Loopback, no delay, no robots: tests switch on what they are about.
FAST = FrontierConfig(
    loopback_only=True,
    obey_robots=False,
    autothrottle=False,
    lease_ms=60_000,
    local_capacity=10_000,
    local_links=1000,
    call_ms=60_000,  # a test counts what a call brings, also on a machine that was busy meanwhile
)


async def frontier(
    r: Any, worker: str = "w1", domains: tuple[str, ...] = ("a.vn",), **changes: Any
) -> Frontier:
    floor_ms = changes.pop("floor_ms", 0)
    cls = changes.pop("cls", "mid")
    archive = changes.pop("archive", None)
    f = Frontier(r, replace(FAST, **changes), worker, archive)
    await f.open()
    await f.put_domains([DomainPolicy(d, d, cls, floor_ms) for d in domains])
    return f


def link(path: str = "/1", domain: str = "a.vn", **fields: Any) -> Link:
    url = f"https://{domain}{path}"
    fields.setdefault("kind", Kind.ARTICLE)
    return Link(url=url, url_id=url_id(url), domain=domain, **fields)


def links(n: int, domain: str = "a.vn", start: int = 0, **fields: Any) -> list[Link]:
    return [link(f"/tin/{i:06d}", domain, **fields) for i in range(start, start + n)]


def done(lease: Lease, outcome: Outcome = Outcome.DONE, **fields: Any) -> Ack:
    fields.setdefault("status", 200)
    return Ack(lease, outcome, **fields)


def ended(
    lease: Lease, status: int = 200, latency_ms: float = 20.0, retry_after_s: float | None = None
) -> Fetched:
    return Fetched(lease, latency_ms, status, retry_after_s)


async def drain(f: Frontier, k: int = 16, rounds: int = 10_000) -> list[str]:
    """Fetches and acks until nothing more is handed out; the URLs in their order."""
    seen: list[str] = []
    acks: list[Ack] = []
    for _ in range(rounds):
        step = await f.step(k, acks)
        assert not step.rejected
        acks = [done(lease) for lease in step.leases]
        seen += [lease.url for lease in step.leases]
        if not step.leases:
            return seen
    raise AssertionError("never drained")


async def check(r: Any, shards: int = 1) -> dict[bytes, str]:
    """The invariants: each URL in exactly one place, the counters equal the contents.
    Returns url id -> place."""
    place: dict[bytes, str] = {}

    def put(url_id: bytes, where: str) -> None:
        assert url_id not in place, f"{url_id.hex()} is {place[url_id]} and {where}"
        place[url_id] = where

    for shard in range(shards):
        await _check_shard(r, shard, put, place)
    return place


async def _check_shard(r: Any, shard: int, put: Any, place: dict[bytes, str]) -> None:
    prefix = keys.prefix(shard)
    leases = {
        i: records.unpack_lease_entry(v) for i, v in (await r.hgetall(keys.leases(shard))).items()
    }
    assert set(await r.zrange(keys.deadlines(shard), 0, -1)) == set(leases), (
        "leases and deadlines differ"
    )
    queued = waiting = 0
    fronts: dict[str, list[bool]] = {}  # group -> which members are in a ready set
    for raw_name, data in (await r.hgetall(keys.domains(shard))).items():
        name = raw_name.decode()
        state = records.unpack_domain(name, data)
        in_queue = await r.zrange(keys.queue(shard, name), 0, -1)
        in_due = await r.zrange(keys.due(shard, name), 0, -1, withscores=True)
        stored = await r.hgetall(keys.records(shard, name))
        leased = {i for i, e in leases.items() if e.domain == name and not e.is_robots}
        assert state.queued == len(in_queue), (
            f"{name}: counts {state.queued} queued, holds {len(in_queue)}"
        )
        assert state.due == len(in_due), f"{name}: counts {state.due} due, holds {len(in_due)}"
        assert state.next_due == (in_due[0][1] if in_due else 0), f"{name}: next due"
        assert set(stored) == set(in_queue) | {i for i, _ in in_due} | leased, (
            f"{name}: records and places differ"
        )
        for i in in_queue:
            put(i, "queued")
        for i, _ in in_due:
            outcome = records.unpack_queued(i, name, stored[i]).outcome
            is_waiting = outcome not in (None, Outcome.RETRY, Outcome.CHALLENGE)
            waiting += is_waiting
            queued += not is_waiting
            put(i, "waiting" if is_waiting else "retry")
        for i in leased:
            put(i, "leased")
        queued += len(in_queue)
        if state.fetching is not None:
            assert state.fetching in leases and leases[state.fetching].domain == name, (
                f"{name}: fetches without a lease"
            )
        scores = [await r.zscore(f"{prefix}:ready:{c}", name) for c in range(3)]
        assert [s for s in scores if s is not None] == (
            [state.ready_at] if state.ready_at else []
        ), f"{name}: ready"
        if state.ready_at:
            assert state.fetching is None and not state.paused, (
                f"{name}: ready while fetched or paused"
            )
        elif (
            state.fetching is None and not state.paused and state.enabled and not state.extra.group
        ):
            assert not in_queue and not in_due, f"{name}: has URLs and is in no ready set"
        if state.extra.group:
            fronts.setdefault(state.extra.group, []).append(bool(state.ready_at))
            waits = await r.zscore(f"{prefix}:grp:{state.extra.group}", name)
            may_go = (
                bool(in_queue or in_due)
                and state.fetching is None
                and not state.paused
                and state.enabled
            )
            assert (waits is not None) == may_go, f"{name}: its place in the group"
    for group, ready in fronts.items():
        assert sum(ready) <= 1, f"group {group}: more than one member may be leased"
    async for key in r.scan_iter(f"{prefix}:f:*", count=1000):
        bucket = int(key.rsplit(b":", 1)[1])
        for field in await r.hkeys(key):
            high = [i for i in range(256) if (i * 256 + field[0]) // 4 == bucket]
            assert len(high) == 1
            put(bytes(high) + field, "finished")
    counted = await r.hmget(keys.state(shard), "queued", "waiting")
    assert [int(x or 0) for x in counted] == [queued, waiting], (
        f"counters {counted}, contents {[queued, waiting]}"
    )


async def freeze(r: Any, shard: int = 0) -> None:
    """The frontier's clock stands still, so that a busy machine lets no delay pass; waits
    (``Step.wait_ms``), which are told in real time, are of no use then: :func:`opens_in`."""
    if not await r.hexists(keys.clock(shard), "factor"):
        seconds, micros = await r.time()
        await r.hset(
            keys.clock(shard),
            mapping={"factor": "1e-15", "offset": seconds * 1000 + micros // 1000},
        )


async def advance(r: Any, ms: float, shard: int = 0) -> None:
    """The frontier's clock goes on by ``ms`` at once (set_clock itself refuses a frontier that is
    in use), and by nothing else from then on, unless it has a clock of its own."""
    await freeze(r, shard)
    await r.hincrbyfloat(keys.clock(shard), "offset", ms)


async def leap(r: Any, ms: float) -> None:
    """The same for a frontier that is at work: its clock is ahead, and goes on."""
    await r.hsetnx(keys.clock(0), "factor", "1")
    await r.hincrbyfloat(keys.clock(0), "offset", ms)


async def opens_in(f: Frontier, domain: str = "a.vn") -> float:
    """Ms until a URL of the domain may be leased, by the frontier's clock; of a
    frozen one exact."""
    scores = [await f.client.zscore(f"{keys.prefix(0)}:ready:{c}", domain) for c in range(3)]
    (at,) = [score for score in scores if score is not None]
    return float(at) - await f.operator.now_ms()


async def run_out(r: Any, *leases: Lease) -> None:
    """Their deadline has passed."""
    for lease in leases:
        await r.zadd(keys.deadlines(0), {lease.url_id: 1})
