"""Politeness: the gate, its delays, back-off, robots.txt, and the clock that all of it runs on."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from newscrawler.frontier import keys, records
from newscrawler.frontier.queue import DomainPolicy, FrontierRefused, RobotsAnswer
from newscrawler.items import Kind, Outcome
from tests.redis.helpers import (
    FAST,
    advance,
    check,
    done,
    drain,
    ended,
    freeze,
    frontier,
    link,
    links,
    opens_in,
    run_out,
)

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


async def gate_after(r: Any, f: Any) -> int:
    """Ms until the domain's next URL is handed out; the clock stands still."""
    await freeze(r)
    assert (await f.step(1)).leases == []
    return round(await opens_in(f))


async def test_the_gate_never_opens_early_by_the_servers_time(r: Any) -> None:
    workers = [await frontier(r, f"w{i}", floor_ms=80) for i in range(3)]
    await workers[0].add(links(6))
    ends: list[float] = []
    starts: list[float] = []

    async def server_ms() -> float:
        seconds, micros = await r.time()
        return seconds * 1000 + micros / 1000

    deadline = time.monotonic() + 20
    while len(starts) < 6:
        for f in workers:
            step = await f.step(4)
            if not step.leases:
                continue
            (lease,) = step.leases
            starts.append(await server_ms())
            ends.append(await server_ms())
            await f.step(0, [done(lease)], [ended(lease)])
        assert time.monotonic() < deadline
        await asyncio.sleep(0.002)
    gaps = [start - end for end, start in zip(ends, starts[1:], strict=False)]
    assert min(gaps) >= 80, gaps


async def test_a_burst_of_steps_from_many_workers_hands_out_one(r: Any) -> None:
    workers = [await frontier(r, f"w{i}", floor_ms=60_000) for i in range(8)]
    await workers[0].add(links(50))
    steps = [await f.step(8) for f in workers for _ in range(5)]
    assert sum(len(s.leases) for s in steps) == 1


@pytest.mark.parametrize(
    ("floor", "crawl_delay_s", "operator", "expected"),
    [
        (2000, None, None, 2000),
        (2000, 5, None, 5000),
        (2000, 1, None, 2000),
        (2000, 5, 9000, 9000),
        (2000, None, 500, 2000),
    ],
)
async def test_the_delay_is_the_largest_that_anyone_asks(
    r: Any, floor: int, crawl_delay_s: float | None, operator: int | None, expected: int
) -> None:
    f = await frontier(r, floor_ms=floor, obey_robots=True)
    await freeze(r)
    await f.add(links(3))
    (robots,) = (await f.step(1)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(200, b"x", crawl_delay_s))], [ended(robots)])
    if operator:
        await f.operator.set_delay("a.vn", operator)
    await advance(r, 10 * SECOND)
    (lease,) = (await f.step(1)).leases
    await f.step(0, (), [ended(lease)])
    assert expected <= await gate_after(r, f) <= expected + 1
    await advance(r, expected - 200)
    assert (await f.step(1)).leases == []
    await advance(r, 201)
    assert len((await f.step(1)).leases) == 1


async def test_a_crawl_delay_holds_before_the_first_page(r: Any) -> None:
    f = await frontier(r, floor_ms=100, obey_robots=True)
    await freeze(r)
    await f.add(links(1))
    (robots,) = (await f.step(1)).leases
    await f.step(0, (), [ended(robots)])
    await advance(r, 5 * SECOND)
    assert (await f.step(1)).leases == [], "the rules are not known before the ack"
    await f.step(0, [done(robots, robots=RobotsAnswer(200, b"x", crawl_delay_s=30.0))])
    assert 25 * SECOND <= await gate_after(r, f) <= 25 * SECOND + 1


async def test_autothrottle_follows_the_latency_of_the_fleet(r: Any) -> None:
    f = await frontier(r, floor_ms=100, autothrottle=True, autothrottle_start_ms=1000, autothrottle_max_ms=4000)
    g = await frontier(r, "w2", floor_ms=100, autothrottle=True, autothrottle_start_ms=1000, autothrottle_max_ms=4000)
    await f.add(links(9))

    async def delay_after(worker: Any, status: int, latency_ms: float) -> int:
        await advance(r, HOUR)
        (lease,) = (await worker.step(1)).leases
        await worker.step(0, [done(lease)], [ended(lease, status, latency_ms)])
        return int((await worker.report())["domains"][0]["delay_ms"])

    assert await delay_after(f, 200, 3000) == 3000  # max(3000, (1000 + 3000) / 2)
    assert await delay_after(g, 200, 1000) == 2000  # (3000 + 1000) / 2
    assert await delay_after(f, 500, 10) == 2000  # a quick error does not speed up
    assert await delay_after(g, 404, 3000) == 3000  # but a slow one slows down
    assert await delay_after(f, 200, 90_000) == 4000  # ceiling
    for _ in range(3):
        last = await delay_after(g, 200, 0)
    assert last == 500  # halves towards the floor


@pytest.mark.parametrize("status", [429, 503, 0])
async def test_back_off_doubles_and_is_forgiven(r: Any, status: int) -> None:
    f = await frontier(r, backoff_start_ms=60 * SECOND, backoff_max_ms=300 * SECOND)
    await freeze(r)
    await f.add(links(9))

    async def fail() -> int:
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease)], [ended(lease, status)])
        return await gate_after(r, f)

    for expected in (60, 120, 240, 300, 300):
        wait = await fail()
        assert expected * SECOND - 200 <= wait <= expected * 1.1 * SECOND
        await advance(r, wait)
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease)], [ended(lease, 200)])
    assert await fail() >= 300 * SECOND - 200, "one good answer forgives nothing"
    await advance(r, 330 * SECOND + 30 * MINUTE)
    assert await fail() <= 66 * SECOND, "half an hour without one does"


@pytest.mark.parametrize("status", [200, 301, 404, 403, 500, 502])
async def test_other_answers_do_not_back_off(r: Any, status: int) -> None:
    f = await frontier(r)
    await f.add(links(2))
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease)], [ended(lease, status)])
    assert len((await f.step(1)).leases) == 1


async def test_retry_after_is_obeyed_up_to_a_day(r: Any) -> None:
    f = await frontier(r)
    await freeze(r)
    await f.add(links(3))
    (lease,) = (await f.step(1)).leases
    await f.step(0, (), [ended(lease, 429, retry_after_s=600)])
    row = (await f.report())["domains"][0]
    assert 599 * SECOND <= row["wait_ms"] <= 660 * SECOND and row["note"] == "back-off"
    await advance(r, 661 * SECOND)
    (lease,) = (await f.step(1)).leases
    await f.step(0, (), [ended(lease, 503, retry_after_s=10**9)])
    assert (await f.report())["domains"][0]["wait_ms"] <= 1.1 * 24 * HOUR


async def test_a_lease_that_ran_out_closes_the_gate_from_then_on(r: Any) -> None:
    f = await frontier(r, floor_ms=10 * SECOND)
    await freeze(r)
    await f.add(links(2))
    (lease,) = (await f.step(1)).leases
    await advance(r, HOUR)
    await run_out(r, lease)
    assert 9 * SECOND < await gate_after(r, f) <= 10 * SECOND + 1, "the silent worker may have fetched just now"


async def test_a_reload_of_the_policy_opens_no_gate_and_changes_nothing(r: Any) -> None:
    f = await frontier(r, floor_ms=60 * SECOND)
    await freeze(r)
    await f.add(links(3))
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease)], [ended(lease)])
    before = await r.hgetall(keys.domains(0))
    await f.put_domains([DomainPolicy("a.vn", "a.vn", "mid", 60 * SECOND)])
    assert await r.hgetall(keys.domains(0)) == before
    await f.put_domains([DomainPolicy("a.vn", "a.vn", "high", 1 * SECOND)])
    assert await gate_after(r, f) > 59 * SECOND, "a smaller delay counts from the next fetch"
    await f.put_domains([DomainPolicy("a.vn", "a.vn", "high", 90 * SECOND)])
    assert await gate_after(r, f) > 88 * SECOND, "a larger one at once"
    await check(r)


@pytest.mark.parametrize("loopback_only", [True, False])
async def test_a_delay_of_zero_needs_loopback(r: Any, loopback_only: bool) -> None:
    f = await frontier(r, domains=(), loopback_only=loopback_only)
    policy = DomainPolicy("a.vn", "a.vn", "mid", 0)
    if loopback_only:
        await f.put_domains([policy])
    else:
        with pytest.raises(FrontierRefused, match=r"the delay of a\.vn is 0"):
            await f.put_domains([policy])
        assert (await f.counts()).domains == 0


# ---------------------------------------------------------------- robots.txt
async def test_robots_is_leased_first_once_for_the_fleet(r: Any) -> None:
    f, g = await frontier(r, obey_robots=True), await frontier(r, "w2", obey_robots=True)
    await f.add([link("/1"), link("/2")])
    (robots,) = (await f.step(4)).leases
    assert (robots.kind, robots.url, robots.url_id) == (
        Kind.ROBOTS,
        "https://a.vn/robots.txt",
        records.robots_id("a.vn"),
    )
    assert (await g.step(4)).leases == []
    body = b"User-agent: *\nDisallow: /x\n"
    await f.step(0, [done(robots, robots=RobotsAnswer(200, body))])
    (page,) = (await g.step(4)).leases
    assert page.kind == Kind.ARTICLE and page.robots_version == 1
    entry = await g.robots("a.vn")
    assert entry is not None and (entry.status, entry.body, entry.version) == (200, body, 1)
    await check(r)


async def test_robots_follows_the_scheme_of_the_links(r: Any) -> None:
    f = await frontier(r, domains=("127.0.1.1:8080",), obey_robots=True)
    one = link("/1", "127.0.1.1:8080")
    one.url = one.url.replace("https", "http")
    await f.add([one])
    assert (await f.step(1)).leases[0].url == "http://127.0.1.1:8080/robots.txt"


async def test_robots_is_read_again_after_a_day_and_its_version_tells_changes(r: Any) -> None:
    f = await frontier(r, obey_robots=True)
    await f.add(links(4))

    async def answer(body: bytes) -> int:
        (robots,) = (await f.step(1)).leases
        assert robots.kind == Kind.ROBOTS
        await f.step(0, [done(robots, robots=RobotsAnswer(200, body))])
        (page,) = (await f.step(1)).leases
        await f.step(0, [done(page)])
        return page.robots_version

    assert await answer(b"one") == 1
    await advance(r, 24 * HOUR - MINUTE)
    (page,) = (await f.step(1)).leases
    assert page.kind == Kind.ARTICLE
    await f.step(0, [done(page)])
    await advance(r, MINUTE + SECOND)
    assert await answer(b"one") == 1, "unchanged: cached rules stay valid"
    await advance(r, 24 * HOUR + SECOND)
    assert await answer(b"two") == 2


@pytest.mark.parametrize("status", [0, 500, 503, 429, 302])
async def test_nothing_is_fetched_until_robots_answers(r: Any, status: int) -> None:
    f = await frontier(r, obey_robots=True, backoff_start_ms=60 * SECOND)
    await f.add(links(2))
    (robots,) = (await f.step(1)).leases
    step = await f.step(4, [done(robots, Outcome.RETRY, status=status, robots=RobotsAnswer(status))])
    assert step.leases == []
    assert (await f.report())["domains"][0]["note"] == "robots.txt does not answer"
    await advance(r, 59 * SECOND)
    assert (await f.step(4)).leases == []
    await advance(r, 8 * SECOND)
    (robots,) = (await f.step(4)).leases
    assert robots.kind == Kind.ROBOTS
    await f.step(0, [done(robots, robots=RobotsAnswer(status))])
    await advance(r, 115 * SECOND)
    assert (await f.step(4)).leases == [], "the second wait is twice as long"
    await advance(r, 20 * SECOND)
    (robots,) = (await f.step(4)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(404))])
    assert [x.kind for x in (await f.step(4)).leases] == [Kind.ARTICLE]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_a_missing_robots_is_free(r: Any, status: int) -> None:
    f = await frontier(r, obey_robots=True)
    await f.add(links(1))
    (robots,) = (await f.step(1)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(status, b"<html>not found"))])
    assert len((await f.step(1)).leases) == 1
    entry = await f.robots("a.vn")
    assert entry is not None and (entry.status, entry.body) == (status, b"")


async def test_a_worker_that_dies_with_robots_leaves_it_to_the_next(r: Any) -> None:
    f, g = await frontier(r, obey_robots=True), await frontier(r, "w2", obey_robots=True)
    await f.add(links(1))
    (robots,) = (await f.step(1)).leases
    await f.step(0, (), [ended(robots)])
    await run_out(r, robots)
    (again,) = (await g.step(1)).leases
    assert again.kind == Kind.ROBOTS and again.fence > robots.fence
    assert await g.give_back([again]) == 1
    assert [x.kind for x in (await g.step(1)).leases] == [Kind.ROBOTS]
    await check(r)


async def test_a_huge_robots_is_cut(r: Any) -> None:
    f = await frontier(r, obey_robots=True)
    await f.add(links(1))
    (robots,) = (await f.step(1)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(200, b"x" * 2_000_000))])
    entry = await f.robots("a.vn")
    assert entry is not None and len(entry.body) == 500 * 1024


# ---------------------------------------------------------------- clock and verbs
async def test_a_simulated_day_passes_in_no_time(r: Any) -> None:
    f = await frontier(r, floor_ms=HOUR)
    await f.set_clock(5000.0)
    await f.add(links(3))
    (lease,) = (await f.step(1)).leases
    step = await f.step(1, [done(lease)], [ended(lease)])
    assert step.leases == [] and 0 < step.wait_ms <= HOUR / 5000 + 1, "waits are told in real time"
    assert abs(lease.deadline_ms - step.server_ms - FAST.lease_ms) < 2000, "a lease runs in real time"
    deadline = time.monotonic() + 10
    while not (step := await f.step(1)).leases:
        assert time.monotonic() < deadline
        await asyncio.sleep(step.wait_ms / 1000)


async def test_the_clock_is_refused_on_a_frontier_in_use(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    with pytest.raises(FrontierRefused, match="1 URLs queued"):
        await f.set_clock(10)
    (lease,) = (await f.step(1)).leases
    with pytest.raises(FrontierRefused, match="1 leased"):
        await f.set_clock(10)
    await f.step(0, [done(lease)])
    await f.set_clock(10, 5)
    assert await r.hgetall(keys.clock(0)) == {b"factor": b"10.0", b"offset": b"5"}
    await f.set_clock(1, 0)
    assert not await r.exists(keys.clock(0))


async def test_the_clock_is_refused_off_loopback_and_public_sites_under_it(r: Any) -> None:
    f = await frontier(r, domains=("a.vn",), floor_ms=1000, loopback_only=False)
    with pytest.raises(FrontierRefused, match="1 domains elsewhere"):
        await f.set_clock(10)
    await r.flushall()
    f = await frontier(r, domains=("127.0.0.9:80", "localhost"), floor_ms=1000, loopback_only=False)
    await f.set_clock(10)
    with pytest.raises(FrontierRefused, match=r"b\.vn is not on 127\.0\.0\.0/8"):
        await f.put_domains([DomainPolicy("b.vn", "b.vn", "mid", 1000)])
    with pytest.raises(FrontierRefused, match="above 0"):
        await f.set_clock(0)


async def test_pause_resume_and_block(r: Any) -> None:
    f = await frontier(r, domains=("a.vn", "b.vn"))
    await f.add(links(2) + links(2, "b.vn"))
    await f.operator.pause("a.vn")
    await f.add(links(3))
    assert {x.domain for x in (await f.step(4)).leases} == {"b.vn"}
    await check(r)
    await f.operator.resume("a.vn")
    (lease,) = (await f.step(4)).leases
    now = await f.operator.now_ms()
    await f.operator.block("a.vn", now + HOUR)
    await f.step(0, [done(lease)])
    assert (await f.step(4)).leases == []
    await advance(r, HOUR)
    assert len((await f.step(4)).leases) == 1
    with pytest.raises(FrontierRefused, match=r"does not know the domain c\.vn"):
        await f.operator.pause("c.vn")


async def test_an_operators_class_outlives_the_policy(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(2))
    await f.operator.set_class("a.vn", "high")
    await f.put_domains([DomainPolicy("a.vn", "a.vn", "low", 0)])
    assert (await f.report())["domains"][0]["class"] == "high"
    await check(r)
    await f.operator.set_class("a.vn", None)
    assert (await f.report())["domains"][0]["class"] == "low"
    assert len(await drain(f)) == 2


async def test_purge_says_how_much_and_leaves_leases(r: Any) -> None:
    f = await frontier(r)
    now = (await f.step(0)).now_ms
    await f.add([*links(1200), link("/later", due_ms=now + HOUR)])
    (lease,) = (await f.step(1)).leases
    assert await f.operator.purge("a.vn") == 1200
    counts = await f.counts()
    assert (counts.queued, counts.leased) == (0, 1)
    await check(r)
    assert not (await f.step(0, [done(lease)])).rejected
    assert (await f.add(links(3))).added == 2, "a purged URL may come again, a fetched one not"


async def test_why_explains(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(2))
    one, two = links(2)
    assert "2 of this domain are queued" in (await f.operator.why(one.url_id, "a.vn"))["text"]
    (lease,) = (await f.step(1)).leases
    assert "being fetched by w1" in (await f.operator.why(one.url_id, "a.vn"))["text"]
    await f.step(0, [done(lease, Outcome.REFUSED, reason="noindex")])
    assert "REFUSED(noindex)" in (await f.operator.why(one.url_id, "a.vn"))["text"]
    await f.operator.pause("a.vn")
    assert "paused" in (await f.operator.why(two.url_id, "a.vn"))["text"]
    assert "does not know this URL" in (await f.operator.why(link("/new").url_id, "a.vn"))["text"]
    assert "not one of the frontier's" in (await f.operator.why(one.url_id, "b.vn"))["text"]


async def test_the_fetch_log_proves_the_delay(r: Any) -> None:
    f = await frontier(r, floor_ms=2 * SECOND, log_entries=50)
    await f.add(links(200))
    for _ in range(130):
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease)], [ended(lease)])
        await advance(r, 2 * SECOND + 1)
    audit = await f.operator.audit("a.vn")
    assert 50 <= audit.fetches <= 114 and audit.violations == []
    assert audit.least_gap_ms is not None and 2 * SECOND <= audit.least_gap_ms < 3 * SECOND
    entry = records.LOG.unpack_from(await r.lindex(keys.log(0, "a.vn"), -1))
    await r.rpush(keys.log(0, "a.vn"), records.LOG.pack(entry[1] + 500, entry[1] + 600, 2000, 200))
    (violation,) = (await f.operator.audit("a.vn")).violations
    assert (violation["gap_ms"], violation["delay_ms"]) == (500, 2000)
