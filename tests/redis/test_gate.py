"""Politeness: the gate, its delays, back-off, robots.txt, and the clock that all of it runs on."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from newscrawler.commands import frontier as command
from newscrawler.frontier import keys, records, schema
from newscrawler.frontier.queue import DomainPolicy, FrontierRefused, RobotsAnswer
from newscrawler.items import Kind, Outcome
from newscrawler.web.robots import RobotsRules
from tests.patience import Deadline
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

#: Politeness.
REDIS_VERSIONS = ("6.2", "7")

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

    deadline = Deadline(20)
    while len(starts) < 6:
        for f in workers:
            step = await f.step(4)
            if not step.leases:
                continue
            (lease,) = step.leases
            starts.append(await server_ms())
            ends.append(await server_ms())
            await f.step(0, [done(lease)], [ended(lease)])
        assert not deadline.is_over()
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
    f = await frontier(
        r, floor_ms=100, autothrottle=True, autothrottle_start_ms=1000, autothrottle_max_ms=4000
    )
    g = await frontier(
        r,
        "w2",
        floor_ms=100,
        autothrottle=True,
        autothrottle_start_ms=1000,
        autothrottle_max_ms=4000,
    )
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


#: Waits that these tests expect, seconds; no two of them are within 10 %.
WAITS_S = (30, 60, 120, 240, 300, 600)


class Troubled:
    """One domain without a delay, whose fetches end as told; the clock stands
    still between them."""

    def __init__(self, r: Any, f: Any) -> None:
        self.r, self.f = r, f

    @classmethod
    async def make(cls, r: Any, **changes: Any) -> Troubled:
        f = await frontier(r, backoff_start_ms=60 * SECOND, **changes)
        await freeze(r)
        await f.add(links(60))
        return cls(r, f)

    async def fetch(self, status: int, retry_after_s: float | None = None) -> int:
        """Seconds that the domain is closed after such an answer, without the part at
        random; they pass at once."""
        (lease,) = (await self.f.step(1)).leases
        await self.f.step(0, [done(lease)], [ended(lease, status, retry_after_s=retry_after_s)])
        await check(self.r)
        wait = await opens_in(self.f)
        if wait <= 0:
            return 0
        await advance(self.r, wait)
        (whole_s,) = [s for s in WAITS_S if s * SECOND <= wait <= 1.1 * s * SECOND + 1]
        return whole_s

    async def all(self, *statuses: int) -> list[int]:
        return [await self.fetch(status) for status in statuses]


@pytest.mark.parametrize("status", [503, 0])
async def test_a_failure_is_its_urls_three_in_a_row_are_the_domains(r: Any, status: int) -> None:
    site = await Troubled.make(r, backoff_max_ms=300 * SECOND)
    assert await site.all(status, status, 200, status, status, 304) == [0] * 6
    assert await site.all(status, status, status) == [0, 0, 60]
    assert await site.all(status, status, status) == [120, 240, 300], "doubles, up to the ceiling"


async def test_all_kinds_of_failures_count_together(r: Any) -> None:
    site = await Troubled.make(r)
    assert await site.all(503, 0, 503) == [0, 0, 60]


async def test_every_fourth_page_that_fails_closes_nothing(r: Any) -> None:
    site = await Troubled.make(r)
    assert await site.all(*[200, 200, 200, 503] * 6, *[0, 404] * 6) == [0] * 36


@pytest.mark.parametrize("success", [200, 206, 301, 304, 404, 410])
async def test_a_success_halves_the_wait_and_the_second_in_a_row_ends_it(
    r: Any, success: int
) -> None:
    site = await Troubled.make(r)
    assert await site.all(503, 503, 503, 503, 503) == [0, 0, 60, 120, 240]
    await site.fetch(success)  # 120
    assert await site.all(503, 503, 503) == [0, 0, 240], "twice the half"
    await site.all(success, 503, success, 503, success)  # 30: no two in a row
    assert await site.all(503, 503, 503) == [0, 0, 60]
    await site.all(success, success)
    assert await site.all(503, 503, 503, 503) == [0, 0, 60, 120]


@pytest.mark.parametrize("status", [400, 401, 403, 451, 500, 502, 504, 65535])
async def test_answers_that_say_neither_forgive_nothing(r: Any, status: int) -> None:
    site = await Troubled.make(r)
    assert await site.all(503, status, 503, status, 503) == [0, 0, 0, 0, 60]
    assert await site.all(status, status, 503) == [0, 0, 120]


async def test_a_429_is_the_domains_at_once_and_doubles(r: Any) -> None:
    site = await Troubled.make(r, backoff_max_ms=300 * SECOND)
    assert await site.all(429, 429, 429, 429, 429) == [60, 120, 240, 300, 300]
    await site.fetch(200)
    assert await site.fetch(429) == 300, "one good answer makes the next wait no shorter"
    await advance(r, 30 * MINUTE)
    assert await site.fetch(429) == 60, "half an hour without one forgives"


async def test_two_good_answers_after_a_429_end_its_doubling(r: Any) -> None:
    site = await Troubled.make(r)
    assert await site.all(429, 429, 200, 200, 429) == [60, 120, 0, 0, 60]


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_holds_the_domain_at_the_first_time(r: Any, status: int) -> None:
    site = await Troubled.make(r)
    assert await site.fetch(status, 600) == 600
    assert await site.fetch(200) == 0
    assert await site.fetch(status, 600) == 600


async def test_a_success_opens_no_gate_that_the_site_asked_for(r: Any) -> None:
    """Two fetches at once are never granted, but one that a person asked for may end
    beside a 429's wait."""
    f = await frontier(r)
    await freeze(r)
    await f.add(links(2))
    (lease,) = (await f.step(1)).leases
    await f.step(0, [], [ended(lease, 429, retry_after_s=600)])
    before = await f.operator.state("a.vn")
    await f.step(0, [done(lease)])
    after = await f.operator.state("a.vn")
    assert after.backoff_until == before.backoff_until > await f.operator.now_ms() + 599 * SECOND


class Rule:
    """The rule of back-off in words of Python, without the part at random. Seconds."""

    def __init__(self, ceiling_s: int) -> None:
        self.ceiling_s, self.failures, self.wait_s = ceiling_s, 0, 0.0

    def after(self, status: int, retry_after_s: int | None) -> float:
        if 200 <= status < 400 or status in (404, 410):
            self.wait_s = self.wait_s / 2 if self.failures else 0
            self.failures = 0
        asks = status == 429 or (status == 503 and retry_after_s is not None)
        if not asks and status not in (0, 503):
            return 0
        self.failures += 1
        if not asks and self.failures < 3:
            return 0
        self.wait_s = min(max(60, 2 * self.wait_s), self.ceiling_s)
        return self.wait_s if retry_after_s is None else min(retry_after_s, self.ceiling_s)


@pytest.mark.parametrize("seed", range(4))
async def test_any_sequence_of_answers_waits_by_the_rule(r: Any, seed: int) -> None:
    rng, rule, long = random.Random(seed), Rule(960), 0
    f = await frontier(r, backoff_start_ms=60 * SECOND, backoff_max_ms=960 * SECOND)
    await freeze(r)
    await f.add(links(151))
    for _ in range(150):
        status = rng.choice([200, 200, 304, 404, 0, 0, 0, 503, 503, 503, 429, 500, 403])
        after_s = rng.choice([None, None, 0, 90, 5000]) if status in (429, 503) else None
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease)], [ended(lease, status, retry_after_s=after_s)])
        wait, expected = await opens_in(f), rule.after(status, after_s) * SECOND
        assert expected - 1 <= max(0, wait) <= expected * 1.1 + 1, (status, after_s)
        long += wait >= 240 * SECOND
        await advance(r, max(0, wait))
    assert long > 5 and rule.wait_s <= 960, "no long wait came about: nothing was tried"


async def test_no_answer_tells_autothrottle_nothing(r: Any) -> None:
    f = await frontier(r, floor_ms=100, autothrottle=True, autothrottle_start_ms=1000)
    await f.add(links(3))
    for status, expected in ((200, 520), (0, 520), (200, 280)):
        await advance(r, HOUR)
        (lease,) = (await f.step(1)).leases
        latency_ms = 30_000 if status == 0 else 40
        await f.step(0, [done(lease)], [ended(lease, status, latency_ms)])
        assert (await f.report())["domains"][0]["delay_ms"] == expected


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
    assert 9 * SECOND < await gate_after(r, f) <= 10 * SECOND + 1, (
        "the silent worker may have fetched just now"
    )


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


@pytest.mark.parametrize(
    ("status", "waits_s"),
    [
        (0, (5, 10, 20, 40, 80)),
        (500, (5, 10, 20, 40, 80)),
        (503, (5, 10, 20, 40, 80)),
        (302, (5, 10, 20, 40, 80)),
        (429, (60, 120, 240, 480, 960)),
    ],
)
async def test_nothing_is_fetched_until_robots_answers(
    r: Any, status: int, waits_s: tuple[int, ...]
) -> None:
    f = await frontier(r, obey_robots=True, backoff_start_ms=60 * SECOND)
    await freeze(r)
    await f.add(links(2))
    for wait_s in waits_s:
        (robots,) = (await f.step(4)).leases
        assert robots.kind == Kind.ROBOTS
        ack = done(robots, Outcome.RETRY, status=status, robots=RobotsAnswer(status))
        step = await f.step(4, [ack], [ended(robots, status)])
        assert step.leases == []
        assert (await f.report())["domains"][0]["note"] == "robots.txt does not answer"
        await advance(r, wait_s * SECOND - 1)
        assert (await f.step(4)).leases == [], f"asked again sooner than after {wait_s} s"
        await advance(r, 0.1 * wait_s * SECOND + 1)
        await check(r)
    (robots,) = (await f.step(4)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(404))], [ended(robots, 404)])
    assert [x.kind for x in (await f.step(4)).leases] == [Kind.ARTICLE]


@pytest.mark.parametrize(("after_s", "expected_s"), [(0, 5), (2, 5), (900, 900), (10**9, 86_400)])
async def test_robots_waits_for_retry_after_and_never_less_than_its_turn(
    r: Any, after_s: float, expected_s: int
) -> None:
    f = await frontier(r, obey_robots=True)
    await freeze(r)
    await f.add(links(1))
    (robots,) = (await f.step(1)).leases
    answer = RobotsAnswer(503, retry_after_s=after_s)
    await f.step(0, [done(robots, Outcome.RETRY, robots=answer)], [])
    assert expected_s * SECOND <= await gate_after(r, f) <= expected_s * 1.1 * SECOND + 1


async def test_a_robots_that_failed_does_not_count_against_the_pages(r: Any) -> None:
    f = await frontier(r, obey_robots=True)
    await freeze(r)
    await f.add(links(4))
    for _ in range(4):
        (robots,) = (await f.step(1)).leases
        await f.step(0, [done(robots, robots=RobotsAnswer(503))], [ended(robots, 503)])
        await advance(r, MINUTE)
    (robots,) = (await f.step(1)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(200, b"x"))], [ended(robots)])
    (page,) = (await f.step(1)).leases
    await f.step(0, [done(page)], [ended(page, 503)])
    assert len((await f.step(1)).leases) == 1


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


async def test_a_huge_robots_is_kept_up_to_its_last_whole_line(r: Any) -> None:
    f = await frontier(r, obey_robots=True)
    await f.add(links(1))
    (robots,) = (await f.step(1)).leases
    limit, half = 500 * 1024, b"Disallow: /"
    whole = b"User-agent: *\n#".ljust(limit - len(half) - 1, b"#") + b"\n"
    body = whole + half + b"private-area/\n" + b"# more\n" * 200_000
    await f.step(0, [done(robots, robots=RobotsAnswer(200, body))])
    entry = await f.robots("a.vn")
    assert entry is not None and entry.body == whole
    rules = RobotsRules.parse_answer(entry.status, entry.body, "newscrawler")
    assert rules.allowed("https://a.vn/1"), "half a rule forbade the whole site"


# ---------------------------------------------------------------- clock and verbs
async def test_a_simulated_day_passes_in_no_time(r: Any) -> None:
    f = await frontier(r, floor_ms=HOUR)
    await f.set_clock(5000.0)
    await f.add(links(3))
    (lease,) = (await f.step(1)).leases
    step = await f.step(1, [done(lease)], [ended(lease)])
    assert step.leases == [] and 0 < step.wait_ms <= HOUR / 5000 + 1, "waits are told in real time"
    assert abs(lease.deadline_ms - step.server_ms - FAST.lease_ms) < 2000, (
        "a lease runs in real time"
    )
    deadline = Deadline(10)
    while not (step := await f.step(1)).leases:
        assert not deadline.is_over()
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
    assert 50 <= audit.log_fetches <= 114 and audit.violations == []
    assert audit.fetches == 130, "what was cut off the log is in the sums of hours"
    assert audit.least_gap_ms is not None and 2 * SECOND <= audit.least_gap_ms < 3 * SECOND
    entry = schema.LOG.unpack_from(await r.lindex(keys.log(0, "a.vn"), -1))
    await r.rpush(keys.log(0, "a.vn"), schema.LOG.pack(entry[1] + 500, entry[1] + 600, 2000, 200))
    (violation,) = (await f.operator.audit("a.vn")).violations
    assert (violation["gap_ms"], violation["delay_ms"]) == (500, 2000)


@pytest.mark.parametrize(
    ("entries", "last_s", "fetches", "is_whole"),
    [(1999, 86_400, 1999, True), (2000, 86_400, 2000, False), (2000, 1000, 500, True)],
)
async def test_an_audit_says_how_far_its_log_reaches(
    r: Any, entries: int, last_s: int, fetches: int, is_whole: bool
) -> None:
    """A fetch every two seconds: 2,000 of them are 67 minutes, not the 24 hours of ``--last``."""
    f = await frontier(r)
    now = await f.operator.now_ms()
    log = [
        schema.LOG.pack(at - 10, at, 1000, 200) + b"12345678"
        for at in range(now - 2000 * entries + 1000, now, 2000)
    ]
    await r.rpush(keys.log(0, "a.vn"), *log)
    audit = await f.operator.audit("a.vn", last_s * 1000)
    assert (audit.fetches, audit.is_whole, audit.violations) == (fetches, is_whole, [])


async def fetch(r: Any, f: Any, times: int, every_ms: int) -> None:
    """So many fetches of a.vn, one each ``every_ms`` of a clock that nothing else moves."""
    for _ in range(times):
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease)], [ended(lease)])
        await advance(r, every_ms)


async def fetch_too_soon(r: Any, f: Any) -> None:
    """The last fetch began 500 ms after the one before it: the log is told so, as no
    gate lets that happen."""
    before, last = [
        schema.LOG.unpack_from(entry) for entry in await r.lrange(keys.log(0, "a.vn"), -2, -1)
    ]
    await r.lset(keys.log(0, "a.vn"), -1, schema.LOG.pack(before[1] + 500, *last[1:]) + b"12345678")


async def test_an_audit_finds_what_its_log_has_no_more(
    r: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """2,400 fetches in 20 hours, one of the first too soon: `--last 24h` finds it, counts each
    fetch once, and says where the sums end and the log begins. `--last 1h` reads the log alone."""
    f = await frontier(r, floor_ms=2 * SECOND, local_links=4000, local_capacity=10_000)
    await f.add(links(2500))
    await fetch(r, f, 200, 30 * SECOND)
    await fetch_too_soon(r, f)
    planted = schema.LOG.unpack_from(await r.lindex(keys.log(0, "a.vn"), -2))[1]
    await fetch(r, f, 2200, 30 * SECOND)

    audit = await f.operator.audit("a.vn")
    assert (audit.fetches, audit.is_whole, audit.violations) == (2400, True, [])
    assert 2000 <= audit.log_fetches <= 2064
    assert audit.log_fetches + sum(hour["fetches"] for hour in audit.hours) == 2400
    assert audit.since_ms < planted < audit.log_since_ms
    assert (audit.too_soon, audit.least_gap_ms) == (1, 500)
    (hour,) = [hour for hour in audit.hours if hour["too_soon"]]
    assert hour["from_ms"] <= planted < hour["from_ms"] + HOUR
    assert (hour["least_gap_ms"], hour["delay_ms"]) == (500, 2 * SECOND)
    others = [hour for hour in audit.hours if not hour["too_soon"]]
    assert others and {hour["least_gap_ms"] for hour in others} == {30 * SECOND}

    assert await command.audit(f.operator, "a.vn", 24 * HOUR, False) == 1
    table = capsys.readouterr().out
    assert "2,400 fetches since" in table and "sooner than the delay: 1" in table
    assert f"before that sums of {len(audit.hours)} hours" in table
    assert await command.audit(f.operator, "a.vn", 24 * HOUR, True) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["hours"], told["log_since_ms"]) == (audit.hours, audit.log_since_ms)

    last_hour = await f.operator.audit("a.vn", HOUR)
    assert (last_hour.hours, last_hour.too_soon, last_hour.is_whole) == ([], 0, True)
    assert not (await f.operator.audit("a.vn", 72 * HOUR)).is_whole
    await f.operator.purge("a.vn")
    assert not await r.exists(keys.hours(0, "a.vn"))
    purged = await f.operator.audit("a.vn")
    assert (purged.is_whole, purged.hours, purged.fetches) == (False, [], audit.log_fetches)


async def test_the_sums_of_hours_roll_off(r: Any) -> None:
    """A log of 2 entries, a fetch every six minutes for 60 hours: 49 hours are kept, in less than 2
    KB; what is older is neither told nor found, and the time before it is said to be unknown."""
    f = await frontier(r, floor_ms=2 * SECOND, log_entries=2)
    await f.add(links(700))
    await fetch(r, f, 2, 6 * MINUTE)
    await fetch_too_soon(r, f)
    await fetch(r, f, 100, 6 * MINUTE)
    assert (await f.operator.audit("a.vn")).too_soon == 1
    await fetch(r, f, 500, 6 * MINUTE)
    audit = await f.operator.audit("a.vn", 48 * HOUR)
    assert (audit.too_soon, audit.is_whole) == (0, True)
    assert await r.hlen(keys.hours(0, "a.vn")) == schema.HOURS_KEPT + 1
    assert await r.memory_usage(keys.hours(0, "a.vn")) < 2048
    now = await f.operator.now_ms()
    assert min(hour["from_ms"] for hour in audit.hours) == (now - 48 * HOUR) // HOUR * HOUR
    # Two hours without a fetch, or two weeks: nothing that is over 48 hours old is told.
    await advance(r, 2 * HOUR)
    later = await f.operator.audit("a.vn", 72 * HOUR)
    assert min(hour["from_ms"] for hour in later.hours) == (now - 46 * HOUR) // HOUR * HOUR
    assert not later.is_whole
    await advance(r, 336 * HOUR)
    assert (await f.operator.audit("a.vn", 72 * HOUR)).hours == []


async def test_sums_that_begin_late_say_so(r: Any) -> None:
    """The log lost entries before there were sums (an older version): the sums answer only
    for what came after."""
    f = await frontier(r, floor_ms=2 * SECOND, log_entries=5)
    await f.add(links(300))
    await fetch(r, f, 60, MINUTE)
    await r.ltrim(keys.log(0, "a.vn"), -5, -1)
    begin = schema.LOG.unpack_from(await r.lindex(keys.log(0, "a.vn"), 0))[1]
    await fetch(r, f, 100, MINUTE)
    now = await f.operator.now_ms()
    assert (await f.operator.audit("a.vn", now - int(begin))).is_whole
    longer = await f.operator.audit("a.vn", now - int(begin) + MINUTE)
    assert (longer.is_whole, longer.since_ms) == (False, int(begin))
