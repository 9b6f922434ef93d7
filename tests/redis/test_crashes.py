"""A URL is given up for killing workers only when there is reason to believe that it does.
tests/crawl/test_killer.py has the crawl."""

from __future__ import annotations

import asyncio
from typing import Any

from newscrawler.frontier import keys
from newscrawler.frontier.outlook import resting
from newscrawler.frontier.queue import Frontier, Lease, RobotsAnswer
from newscrawler.items import Kind
from tests.patience import Deadline
from tests.redis.helpers import advance, check, done, ended, frontier, links, run_out


async def die_holding(f: Frontier, lease: Lease, *, retried_alone: bool) -> None:
    assert f.is_poison_candidate(lease) or not retried_alone
    assert not retried_alone or await f.begin_isolated_retry(lease)
    await run_out(f.client, lease)
    assert (await f.step(0)).leased == 0


async def test_what_kills_its_worker_each_time_ends_in_quarantine_after_seven_deaths(
    r: Any,
) -> None:
    f = await frontier(r)
    await f.add(links(1))
    for _ in range(3):  # at once
        (lease,) = (await f.step(1)).leases
        await die_holding(f, lease, retried_alone=False)
    for rest_ms in (60_000, 240_000, 960_000, 3_840_000):  # leases: 1, 4, 16, 64
        await advance(r, rest_ms - 1000)
        assert (await f.step(1)).leases == [], "a poison candidate rests"
        await check(r)
        await advance(r, 1000)
        (lease,) = (await f.step(1)).leases
        await die_holding(f, lease, retried_alone=True)
        await check(r)
    await advance(r, 86_400_000)
    assert (await f.step(1)).leases == []
    (listed,) = await f.operator.quarantined()
    assert (listed.reason, listed.url) == ("crashes", lease.url)
    await f.operator.replay([listed])
    (lease,) = (await f.step(1)).leases
    assert lease.crashes == 0, "a replay begins anew"


async def test_a_url_that_was_only_held_by_a_hundred_dead_workers_is_not_given_up(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    for _ in range(100):
        (lease,) = (await f.step(1)).leases
        await die_holding(f, lease, retried_alone=False)
        await advance(r, 60_000)
    assert lease.crashes == 3
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease)])
    assert (await f.counts()).quarantined == 0
    await check(r)


async def test_an_isolated_retry_that_ends_well_or_is_not_begun_acquits(r: Any) -> None:
    f = await frontier(r, poison_candidate_after=1)
    await f.add(links(1, kind=Kind.SECTION))
    (lease,) = (await f.step(1)).leases
    await die_holding(f, lease, retried_alone=False)
    await advance(r, 60_000)
    (lease,) = (await f.step(1)).leases
    assert await f.begin_isolated_retry(lease)
    await f.give_back([lease])  # a stop in order
    (lease,) = (await f.step(1)).leases
    await die_holding(f, lease, retried_alone=False)  # the mark was the old lease's
    assert (await f.record(lease.url_id, "a.vn")).crashes == 1  # type: ignore[union-attr]
    await advance(r, 60_000)
    (lease,) = (await f.step(1)).leases
    assert await f.begin_isolated_retry(lease)
    await f.step(0, [done(lease)], [ended(lease)])
    assert (await f.record(lease.url_id, "a.vn")).crashes == 0  # type: ignore[union-attr]
    assert not await f.begin_isolated_retry(lease), "it is no longer ours"


async def test_why_tells_of_a_poison_candidate_where_it_stands(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases

    async def why() -> str:
        return str((await f.operator.why(lease.url_id, "a.vn"))["text"])

    assert await why() == "being fetched by w1"
    for _ in range(2):
        await die_holding(f, lease, retried_alone=False)
        assert "suspected" not in await why()
        (lease,) = (await f.step(1)).leases
    await die_holding(f, lease, retried_alone=False)
    assert "comes again in " in await why() and "; suspected to kill workers (3 died" in await why()
    assert (await why()).endswith("among others): rests, then is tried by itself")
    found = await resting(f.operator)
    assert found.urls == 1
    now = await f.operator.now_ms()
    assert now < found.until_ms <= now + 60_000
    await advance(r, 60_000)
    (lease,) = (await f.step(1)).leases
    assert "held by w1; suspected" in await why()
    assert "waits in its worker to be tried by itself" in await why()
    assert await f.begin_isolated_retry(lease)
    assert (await why()).endswith("retried by itself")
    await run_out(r, lease)
    await f.step(0)
    assert "and 1 while it was tried by itself; 4 such are its end, in quarantine" in await why()
    assert (await resting(f.operator)).urls == 1
    await advance(r, 240_000)
    assert (await resting(f.operator)).urls == 0, "its time has come"
    (lease,) = (await f.step(1)).leases
    assert await f.begin_isolated_retry(lease)
    await f.step(0, [done(lease)], [ended(lease)])
    assert "suspected" not in await why()


async def test_a_list_page_that_kills_its_workers_is_tried_every_six_hours(r: Any) -> None:
    f = await frontier(r, poison_candidate_after=1, max_isolated_retries=1)
    await f.add(links(1, kind=Kind.HOME))
    (lease,) = (await f.step(1)).leases
    await die_holding(f, lease, retried_alone=False)
    for rest_ms in (60_000, 6 * 3_600_000, 6 * 3_600_000):
        await advance(r, rest_ms - 1000)
        assert (await f.step(1)).leases == []
        await advance(r, 1000)
        (lease,) = (await f.step(1)).leases
        await die_holding(f, lease, retried_alone=True)
        await check(r)
    assert (await f.counts()).quarantined == 0


async def test_a_robots_txt_that_kills_its_workers_is_asked_for_ever_more_rarely(r: Any) -> None:
    f = await frontier(r, obey_robots=True, backoff_start_ms=60_000)
    await f.add(links(1))
    for _ in range(4):
        (lease,) = (await f.step(1)).leases
        assert lease.kind is Kind.ROBOTS
        await die_holding(f, lease, retried_alone=False)
    await advance(r, 119_000)
    assert (await f.step(1)).leases == [], "it waits for two minutes, then for four"
    await advance(r, 1000)
    (lease,) = (await f.step(1)).leases
    await die_holding(f, lease, retried_alone=False)
    await advance(r, 239_000)
    assert (await f.step(1)).leases == []
    await advance(r, 1000)
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, robots=RobotsAnswer(404))])
    assert [x.kind for x in (await f.step(1)).leases] == [Kind.ARTICLE]
    await check(r)


async def test_after_a_restart_of_redis_living_workers_have_a_lease_to_come_back(r: Any) -> None:
    """While it was away no lease could be renewed."""
    f = await frontier(r, lease_ms=4000)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    await run_out(r, lease)
    await f.scripts.run("restarted", keys.prefix(0), "another process")
    step = await (await frontier(r, "w2", lease_ms=4000)).step(1)
    assert (step.leases, step.leased) == ([], 1)
    assert 0 < step.wait_ms <= 4000
    assert await f.renew([lease]) == []
    await run_out(r, lease)
    deadline = Deadline(10)
    while not (step := await f.step(1)).leases:
        assert not deadline.is_over()
        await asyncio.sleep(0.02)
    assert (await f.record(lease.url_id, "a.vn")).crashes == 1  # type: ignore[union-attr]
