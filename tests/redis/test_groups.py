"""Groups: many papers on one host or CDN share one gate, whoever fetches them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from newscrawler.frontier import keys
from newscrawler.frontier.queue import DomainPolicy, FrontierRefused, RobotsAnswer
from newscrawler.items import Kind
from tests.redis.helpers import (
    advance,
    check,
    done,
    ended,
    freeze,
    frontier,
    links,
    opens_in,
    run_out,
)

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
NAMES = ("a.vn", "b.vn", "c.vn")


async def grouped(r: Any, worker: str = "w1", floor_ms: int = 2 * SECOND, **changes: Any) -> Any:
    """a, b, c on one host, d by itself."""
    f = await frontier(r, worker, domains=(), **changes)
    await f.put_domains([DomainPolicy(d, d, "mid", floor_ms, group="host-1") for d in NAMES])
    await f.put_domains([DomainPolicy("d.vn", "d.vn", "mid", floor_ms)])
    return f


async def test_one_fetch_at_a_time_and_one_delay_for_the_group(r: Any) -> None:
    f, g = await grouped(r), await grouped(r, "w2")
    await freeze(r)
    await f.add([x for d in (*NAMES, "d.vn") for x in links(3, d)])
    step = await f.step(9)
    assert sorted(x.domain for x in step.leases) == ["a.vn", "d.vn"]
    assert (await g.step(9)).leases == []
    await check(r)
    await f.step(0, [done(x) for x in step.leases], [ended(x) for x in step.leases])
    step = await g.step(9)
    assert step.leases == [] and 2000 <= await opens_in(g, "b.vn") <= 2001
    order = []
    for _ in range(8):
        await advance(r, 2 * SECOND + 1)
        step = await g.step(9)
        (lease,) = [x for x in step.leases if x.domain != "d.vn"]
        order.append(lease.domain)
        await g.step(0, [done(x) for x in step.leases], [ended(x) for x in step.leases])
        await check(r)
    assert order == ["b.vn", "c.vn", "a.vn", "b.vn", "c.vn", "a.vn", "b.vn", "c.vn"], (
        "who waited longest"
    )


@pytest.mark.long
async def test_random_use_keeps_the_groups_gate(r: Any) -> None:
    """Workers that fetch, die, give back, and an operator who pauses: the host never sees
    two, nor one too early."""
    rng = random.Random(7)
    workers = [await grouped(r, f"w{i}", floor_ms=SECOND) for i in range(3)]
    await workers[0].add([x for d in (*NAMES, "d.vn") for x in links(200, d)])
    held: dict[bytes, Any] = {}
    free_from, granted = 0, 0
    for _ in range(500):
        f = rng.choice(workers)
        action = rng.random()
        if action < 0.5:
            step = await f.step(3)
            for lease in (x for x in step.leases if x.domain in NAMES):
                assert not held, "two of the group at once"
                assert step.now_ms >= free_from, "too early"
                held[lease.url_id] = lease
                granted += 1
            loose = [x for x in step.leases if x.domain == "d.vn"]
            await f.step(0, [done(x) for x in loose], [ended(x) for x in loose])
        elif held and action < 0.9:
            (lease,) = held.values()
            held.clear()
            now = (await f.step(0)).now_ms
            if action < 0.8:
                status = rng.choice([200, 404, 500])
                assert not (await f.step(0, [done(lease)], [ended(lease, status)])).rejected
                free_from = now + SECOND
            elif action < 0.85:
                assert await f.give_back([lease]) == 1
            else:
                await run_out(r, lease)
                await f.step(0)
                free_from = now + SECOND
        elif action < 0.95:
            domain = rng.choice(NAMES)
            await rng.choice([f.operator.pause, f.operator.resume])(domain)
        await advance(r, rng.choice([1, 300, 1001]))
        await check(r)
    assert granted > 60


async def test_a_busy_host_is_backed_off_for_all_and_a_dead_name_for_itself(r: Any) -> None:
    f = await grouped(r, backoff_start_ms=MINUTE)

    async def fetch(status: int) -> str:
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease)], [ended(lease, status)])
        await advance(r, 3 * SECOND)
        return str(lease.domain)

    await f.add(links(5, "a.vn"))
    assert [await fetch(0) for _ in range(3)] == ["a.vn"] * 3
    assert (await f.step(1)).leases == [], "three times no answer: the name is left alone"
    await f.add([x for d in NAMES for x in links(5, d)])
    assert await fetch(429) == "b.vn", "no answer from one name says nothing about the others"
    await advance(r, 50 * SECOND)
    assert (await f.step(1)).leases == [], "a host that is too busy is so for all of its papers"
    row = {x["domain"]: x for x in (await f.report())["domains"]}
    assert row["c.vn"]["note"] == "its group host-1 is held" and row["c.vn"]["wait_ms"] > 5 * SECOND
    await advance(r, 20 * SECOND)
    assert len((await f.step(1)).leases) == 1


async def test_robots_of_each_member_is_read_through_the_groups_gate(r: Any) -> None:
    f = await grouped(r, obey_robots=True)
    await f.add([x for d in NAMES for x in links(1, d)])
    kinds = []
    for _ in range(6):
        (lease,) = (await f.step(4)).leases
        kinds.append(lease.kind)
        robots = RobotsAnswer(404) if lease.kind == Kind.ROBOTS else None
        await f.step(0, [done(lease, robots=robots)], [ended(lease)])
        assert (await f.step(4)).leases == []
        await advance(r, 2 * SECOND + 1)
    assert sorted(kinds) == [Kind.ARTICLE] * 3 + [Kind.ROBOTS] * 3


async def test_a_persons_fetch_waits_for_the_group(r: Any) -> None:
    f = await grouped(r)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    assert await f.reserve("b.vn", "https://b.vn/x") == 100
    await f.step(0, [done(lease)], [ended(lease)])
    wait = await f.reserve("b.vn", "https://b.vn/x")
    assert isinstance(wait, int) and 1900 < wait <= 2001
    await advance(r, 2 * SECOND + 1)
    turn = await f.reserve("b.vn", "https://b.vn/x")
    assert not isinstance(turn, int)
    await f.add(links(3, start=5))
    assert (await f.step(1)).leases == []
    await f.release(turn, ended(turn))
    assert (await f.step(1)).leases == []
    await advance(r, 2 * SECOND + 1)
    assert len((await f.step(1)).leases) == 1
    await check(r)


async def test_a_domain_joins_and_leaves_its_group(r: Any) -> None:
    f = await grouped(r)
    await f.add([x for d in NAMES for x in links(9, d)])
    (lease,) = (await f.step(9)).leases
    await f.put_domains([DomainPolicy(lease.domain, "x", "high", 2 * SECOND, group="")])
    await check(r)
    step = await f.step(9)
    assert len(step.leases) == 1, "who left leaves the others their gate"
    await f.put_domains([DomainPolicy(lease.domain, "x", "low", 2 * SECOND, group="host-1")])
    await check(r)
    await f.step(0, [done(lease), done(step.leases[0])], [ended(lease), ended(step.leases[0])])
    await check(r)
    before = await r.hgetall(keys.domains(0)), await r.hgetall("{f0}:grp")
    for group in ("host-1", None):
        await f.put_domains([DomainPolicy(lease.domain, "x", "low", 2 * SECOND, group=group)])
    assert (await r.hgetall(keys.domains(0)), await r.hgetall("{f0}:grp")) == before, (
        "a reload changes nothing"
    )
    await advance(r, 2 * SECOND + 1)
    assert len((await f.step(9)).leases) == 1


async def test_a_closed_group_does_not_hide_other_domains(r: Any) -> None:
    """2,000 members whose gate is shut, and one domain behind them: one call finds it."""
    names = tuple(f"m{i}.vn" for i in range(2000))
    f = await frontier(r, domains=("z.vn",))
    await f.put_domains([DomainPolicy(n, n, "mid", HOUR, group="cdn") for n in names])
    await f.add([x for n in names for x in links(1, n)])
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease)], [ended(lease)])
    await f.add(links(1, "z.vn"))
    assert [x.domain for x in (await f.step(1)).leases] == ["z.vn"]
    await check(r)


async def test_a_group_over_several_shards_is_refused(r: Any) -> None:
    f = await frontier(r, domains=(), shards=4)
    with pytest.raises(FrontierRefused, match="groups need FRONTIER_SHARDS=1"):
        await f.put_domains(
            [DomainPolicy(f"d{i}.vn", "d", "mid", SECOND, group="cdn") for i in range(9)]
        )
    assert (await f.counts()).domains == 0
