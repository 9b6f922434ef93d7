"""Quotas of one domain and caps of the whole fleet: kept exactly, by all workers together,
and nothing is lost."""

from __future__ import annotations

import math
from typing import Any

import pytest

from newscrawler.frontier.queue import DomainPolicy, FrontierConfig, FrontierRefused
from newscrawler.frontier.records import FOR_GOOD
from tests.redis.helpers import advance, check, done, drain, ended, frontier, links

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
DAY_S = 86_400


async def fetch(f: Any, n: int, k: int = 4, size: int = 0) -> int:
    """Up to ``n`` URLs leased, fetched and done; how many there were."""
    got = 0
    while got < n:
        leases = (await f.step(min(k, n - got))).leases
        if not leases:
            break
        fetched = [ended(x) for x in leases]
        for end in fetched:
            end.size = size
        await f.step(0, [done(x) for x in leases], fetched)
        got += len(leases)
    return got


# ---------------------------------------------------------------- quotas
async def test_a_quota_holds_the_domain_until_its_window_opens(r: Any) -> None:
    f, g = await frontier(r), await frontier(r, "w2", domains=("b.vn",))
    await f.add(links(20) + links(20, "b.vn"))
    await f.operator.set_quota("a.vn", 5, window_s=3600)
    taken = [lease.domain for _ in range(20) for lease in await taken_by((f, g))]
    assert (taken.count("a.vn"), taken.count("b.vn")) == (5, 20)
    state = await f.operator.state("a.vn")
    assert state is not None and state.queued == 15, "held back, not refused: nothing is lost"
    row = next(row for row in (await f.report())["domains"] if row["domain"] == "a.vn")
    assert row["note"] == "quota spent" and 3500 * SECOND < row["wait_ms"] <= HOUR
    assert row["quota"] == "5 of 5 in 1h"
    assert HOUR - MINUTE < (await f.step(1)).wait_ms <= HOUR
    await check(r)
    await advance(r, HOUR - 10 * SECOND)
    assert await fetch(f, 9) == 0
    await advance(r, 11 * SECOND)
    assert await fetch(f, 9) == 5
    await check(r)


async def taken_by(workers: tuple[Any, ...]) -> list[Any]:
    """One lease by each of them, fetched and done."""
    leases = []
    for worker in workers:
        step = await worker.step(1)
        await worker.step(0, [done(x) for x in step.leases], [ended(x) for x in step.leases])
        leases += step.leases
    return leases


async def test_a_quota_without_a_window_holds_until_it_is_set_again(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(20))
    await f.operator.set_quota("a.vn", 3, window_s=0)
    assert await fetch(f, 20) == 3
    await advance(r, 400 * 24 * HOUR)
    assert await fetch(f, 20) == 0
    state = await f.operator.state("a.vn")
    assert state is not None and state.extra.held_until == FOR_GOOD
    await check(r)
    await f.operator.set_quota("a.vn", 3, window_s=0)
    assert await fetch(f, 20) == 3, "the same quota, set again, begins anew"
    await f.operator.set_quota("a.vn", 0)
    assert await fetch(f, 20) == 14
    await check(r)


async def test_robots_counts_and_what_was_given_back_does_not(r: Any) -> None:
    f = await frontier(r, obey_robots=True)
    from newscrawler.frontier.queue import RobotsAnswer

    await f.add(links(5))
    await f.operator.set_quota("a.vn", 2, window_s=DAY_S)
    (robots,) = (await f.step(1)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(404))], [ended(robots)])
    (page,) = (await f.step(1)).leases
    await f.give_back([page])
    assert await fetch(f, 5) == 1, "robots.txt was one fetch; the page that was given back was none"


async def test_the_policys_quota_and_the_operators(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(30))
    policy = DomainPolicy("a.vn", "a.vn", "mid", 0, pages_per_day=4)
    await f.put_domains([policy])
    assert await fetch(f, 30) == 4
    await f.put_domains([policy])
    assert await fetch(f, 30) == 0, "a reload does not begin it anew"
    await f.operator.set_quota("a.vn", 2, window_s=3600)
    assert await fetch(f, 30) == 2
    await f.put_domains([policy])
    assert await fetch(f, 30) == 0, "the operator's word stands"
    await f.operator.set_quota("a.vn", None, policy_pages=4)
    assert await fetch(f, 30) == 4
    await f.put_domains([DomainPolicy("a.vn", "a.vn", "mid", 0)])
    assert await fetch(f, 30) == 20
    await check(r)


async def test_a_persons_fetch_is_told_that_the_quota_is_spent(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(3))
    await f.operator.set_quota("a.vn", 1, window_s=3600)
    assert await fetch(f, 3) == 1
    with pytest.raises(FrontierRefused, match=r"the quota of a\.vn is spent"):
        await f.reserve("a.vn", "https://a.vn/asked")


@pytest.mark.parametrize("pages", [-1, 2**32])
async def test_a_wrong_quota_is_named(r: Any, pages: int) -> None:
    f = await frontier(r)
    with pytest.raises(FrontierRefused, match="pages"):
        await f.operator.set_quota("a.vn", pages)
    with pytest.raises(ValueError, match="pages a day"):
        DomainPolicy("a.vn", "a.vn", pages_per_day=pages)


# ---------------------------------------------------------------- the fleet's caps
@pytest.mark.parametrize("cap", [1, 7, 60, 600])
async def test_no_minute_sees_more_requests_than_the_cap(r: Any, cap: int) -> None:
    """Three workers that ask every 0.2 s (by the frontier's clock) for as much as they can
    get, for six minutes."""
    names = tuple(f"d{i}.vn" for i in range(70))
    workers = [await frontier(r, f"w{i}", domains=names, requests_per_minute=cap) for i in range(3)]
    await workers[0].add([x for name in names for x in links(math.ceil(cap * 6 / 70) + 9, name)])
    times: list[int] = []
    step_ms = 200 if cap > 60 else 1000
    for turn in range(6 * MINUTE // step_ms):
        worker = workers[turn % 3]
        step = await worker.step(64)
        times += [step.now_ms] * len(step.leases)
        await worker.step(0, [done(x) for x in step.leases], [ended(x) for x in step.leases])
        await advance(r, step_ms)
    most = max(sum(start <= t < start + MINUTE for t in times) for start in times)
    assert most <= cap
    assert len(times) >= 6 * cap * 0.85, "and the fleet uses what it may"
    await check(r)


async def test_the_wait_says_when_the_cap_opens(r: Any) -> None:
    f = await frontier(r, domains=tuple(f"d{i}.vn" for i in range(9)), requests_per_minute=6)
    await f.add([x for i in range(9) for x in links(2, f"d{i}.vn")])
    step = await f.step(9)
    assert len(step.leases) == 1, "a tenth of the cap may be taken at once, at least one"
    await f.step(0, [done(x) for x in step.leases], [ended(x) for x in step.leases])
    step = await f.step(9)
    assert step.leases == [] and SECOND < step.wait_ms <= 10 * SECOND
    await advance(r, step.wait_ms)
    assert len((await f.step(9)).leases) == 1


async def test_what_is_given_back_unfetched_is_not_counted(r: Any) -> None:
    f = await frontier(r, domains=tuple(f"d{i}.vn" for i in range(30)), requests_per_minute=100)
    await f.add([x for i in range(30) for x in links(2, f"d{i}.vn")])
    leases = (await f.step(30)).leases
    assert len(leases) == 10
    await f.give_back(leases)
    assert len((await f.step(30)).leases) == 10
    assert (await f.step(30)).leases == []


async def test_a_persons_fetch_counts_too(r: Any) -> None:
    f = await frontier(r, requests_per_minute=2)
    await f.add(links(3))
    assert await fetch(f, 3) == 1
    wait = await f.reserve("a.vn", "https://a.vn/asked")
    assert isinstance(wait, int) and 29 * SECOND < wait <= 30 * SECOND


async def test_no_minute_reads_more_bytes_than_the_cap(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(40))
    cap = 20_000_000
    workers = [await frontier(r, f"w{i}", domains=names, bytes_per_minute=cap) for i in range(2)]
    await workers[0].add([x for name in names for x in links(60, name)])
    read: list[tuple[int, int]] = []
    for turn in range(360):
        worker = workers[turn % 2]
        step = await worker.step(16)
        fetched = [ended(x) for x in step.leases]
        for i, end in enumerate(fetched):
            end.size = (40_000, 90_000, 160_000)[(turn + i) % 3]
            read.append((step.now_ms, end.size))
        await worker.step(0, [done(x) for x in step.leases], fetched)
        await advance(r, SECOND)
    most = max(sum(n for t, n in read if start <= t < start + MINUTE) for start, _ in read)
    assert most <= cap
    assert sum(n for _, n in read) >= 6 * cap * 0.8


async def test_caps_are_shown_and_off_by_default(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    await drain(f)
    assert (await f.report())["caps"] == {} and not await r.exists("{f0}:caps")
    g = await frontier(r, "w2", requests_per_minute=600, bytes_per_minute=10_000_000)
    await g.add(links(3, start=10))
    assert await fetch(g, 1, size=50_000) == 1
    caps = (await g.report())["caps"]
    assert caps["requests_per_minute"] == 600 and 58 <= caps["requests_now"] <= 60
    assert caps["bytes_per_minute"] == 10_000_000 and 940_000 <= caps["bytes_now"] <= 1_000_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"requests_per_minute": -1}, "FRONTIER_REQUESTS_PER_MINUTE is -1"),
        ({"bytes_per_minute": -1}, "FRONTIER_BYTES_PER_MINUTE is -1"),
        ({"requests_per_minute": 3, "shards": 4}, "each of the 4 shards gets an equal part"),
    ],
)
def test_a_wrong_cap_is_named(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FrontierConfig(**changes)  # type: ignore[arg-type]


async def test_shards_share_the_cap(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(80))
    f = await frontier(r, domains=names, shards=4, requests_per_minute=80)
    await f.add([x for name in names for x in links(20, name)])
    taken, began = 0, await f.operator.now_ms()
    for _ in range(60):
        step = await f.step(64)
        taken += len(step.leases)
        await f.step(0, [done(x) for x in step.leases], [ended(x) for x in step.leases])
        for shard in range(4):
            await advance(r, SECOND, shard)
    minutes = (await f.operator.now_ms() - began) / (
        60 * SECOND
    )  # what the machine takes passes as well
    assert 60 <= taken <= 80 * minutes + 4  # one that each shard has to begin with
