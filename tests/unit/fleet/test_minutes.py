"""The fleet minute by minute, in a real Redis: what is counted, once, and what is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newscrawler.fleet.minutes import BASE, KEPT, REASONS, RING, Minutes, Point, steps
from newscrawler.fleet.registry import TOTALS, Beat, Registry, RegistryUnavailable
from newscrawler.frontier import connect
from newscrawler.frontier import redis_server as servers

START = 1_800_000_000_000  # ms; a whole minute
MINUTE = 60_000


async def worked(r: Any, **counts: int) -> None:
    """What a worker adds to the sums; page__fetched stands for page/fetched."""
    await Registry(r).add({name.replace("__", "/"): n for name, n in counts.items()}, {})


async def points(r: Any, at_ms: int, minutes: int = 60) -> list[Point]:
    return (await Minutes(r).read(minutes, at_ms))[1]


async def test_nothing_is_there_before_a_worker_looks(r: Any) -> None:
    now, found = await Minutes(r).read(60, START)
    assert (now, found) == (START // MINUTE, [])
    assert steps(found, now, 60, 1) == [None] * 60


async def test_a_first_look_counts_nothing_that_was_before(r: Any) -> None:
    """An operator who takes a new version has sums of months already."""
    await worked(r, page__fetched=1_000_000)
    assert await Minutes(r).look({"q": 7}, at_ms=START)
    [point] = await points(r, START)
    assert (point.pages, point.queued, point.waiting, point.covered_s) == (0, 7, None, 0)
    assert point.per_minute(point.pages) is None, "nothing is covered, which is not a zero"


async def test_a_minute_is_counted_from_all_workers_once(r: Any) -> None:
    minutes = Minutes(r)
    for worker in ("a", "b"):
        beat = Beat(id=worker, host="h", pid=1, beat_ms=Registry(r)._now_ms(), in_flight=3)
        await Registry(r).beat(beat)
    assert await minutes.look({}, at_ms=START)
    await worked(r, page__fetched=40, article__new=5)
    await r.hset(TOTALS, "page/reason/RETRY(timeout)", 2)
    await r.hset(TOTALS, "page/reason/REFUSED(robots)", 9)
    await r.hset(TOTALS, "page/reason/RETRY(robots_unknown)", 4)
    await r.hset(TOTALS, "article/lag/total/3", 5)
    await r.hset(TOTALS, "article/lag/total/ms", 12345)
    looks = [minutes.look({"q": 11}, at_ms=START + 20_000) for _ in range(20)]
    assert sum(await asyncio.gather(*looks)) == 1, "one of twenty workers looked"
    [point] = await points(r, START + 20_000)
    assert (point.pages, point.new, point.workers, point.in_flight) == (40, 5, 2, 6)
    assert point.errors == {"RETRY(timeout)": 2}, "what is no error, and a step on the way, is not"
    assert point.covered_s == 20 and point.per_minute(point.pages) == 120
    assert point.lags == {3: 5} and 60 < (point.lag_s(0.5) or 0) < 120


async def test_all_that_is_counted_is_the_sum_of_the_points(r: Any) -> None:
    minutes, at = Minutes(r), START
    await minutes.look({}, at_ms=at)
    for n in range(40):
        await worked(r, page__fetched=n)
        at += 7_000
        await minutes.look({}, at_ms=at)
    await minutes.look({}, at_ms=at, is_last=True)
    found = await points(r, at)
    assert sum(one.pages for one in found) == sum(range(40))
    assert abs(sum(one.covered_s for one in found) - (at - START) / 1000) < 0.01


async def test_a_gap_is_no_zero_and_no_peak(r: Any) -> None:
    minutes = Minutes(r)
    await minutes.look({"q": 5}, at_ms=START)
    await worked(r, page__fetched=10)
    await minutes.look({"q": 4}, at_ms=START + 10_000)
    await worked(r, page__fetched=6)  # the last second of a worker that was killed
    later = START + 180 * MINUTE
    await minutes.look({"q": 4}, at_ms=later)
    await worked(r, page__fetched=30)
    await minutes.look({"q": 3}, at_ms=later + 20_000)
    now, found = await minutes.read(360, later + 20_000)
    assert [(one.pages, one.covered_s) for one in found] == [(10, 10), (36, 80)]
    drawn = steps(found, now, 360, 5)
    assert len(drawn) == 72 and sum(one is None for one in drawn) == 70
    assert drawn[-1] is None or drawn[-1].minute <= now


async def test_counters_that_begin_anew_are_counted_from_zero(r: Any) -> None:
    """A worker that starts anew adds to the same sums; sums that somebody deleted begin at 0."""
    minutes = Minutes(r)
    await worked(r, page__fetched=100)
    await minutes.look({}, at_ms=START)
    await worked(r, page__fetched=5)  # of the worker after
    await minutes.look({}, at_ms=START + 10_000)
    await r.delete(TOTALS)
    await worked(r, page__fetched=3)
    await minutes.look({}, at_ms=START + 20_000)
    [point] = await points(r, START + 20_000)
    assert point.pages == 8


@pytest.mark.parametrize("back_ms", [2 * MINUTE, 400 * 86_400_000])
async def test_a_clock_that_was_set_back_stops_nothing(r: Any, back_ms: int) -> None:
    minutes = Minutes(r)
    await minutes.look({}, at_ms=START + back_ms)
    await worked(r, page__fetched=9)
    assert await minutes.look({}, at_ms=START)
    await worked(r, page__fetched=4)
    assert await minutes.look({}, at_ms=START + 10_000)
    [point] = await points(r, START + 10_000)
    assert point.pages == 4


async def test_the_ring_keeps_a_day_in_less_than_a_megabyte(r: Any) -> None:
    """At its worst: every minute with all reasons, long ones, and all buckets."""
    minutes = Minutes(r)
    reasons = [f"RETRY({n:02d}-a-reason-that-is-rather-long)" for n in range(30)]
    buckets = [f"article/lag/total/{n}" for n in range(17)]
    for n in range(KEPT + 200):
        pipe = r.pipeline(transaction=False)
        for reason in reasons:
            pipe.hincrby(TOTALS, f"page/reason/{reason}", 123)
        for name in ("page/fetched", "article/new", "article/updated", *buckets):
            pipe.hincrby(TOTALS, name, 12_345)
        await pipe.execute()
        await minutes.look({"q": 10**9, "w": 10**9}, at_ms=START + n * MINUTE)
    end = START + (KEPT + 199) * MINUTE
    assert await r.hlen(RING) == KEPT
    used = await r.memory_usage(RING, samples=0) + await r.memory_usage(BASE)
    assert used < 1_000_000, used  # bytes
    found = await points(r, end, KEPT)
    assert [one.minute for one in found] == list(range(end // MINUTE - KEPT + 1, end // MINUTE + 1))
    assert len(found[-1].errors) == REASONS + 1
    assert found[-1].errors.total() == 30 * 123, "the rest is summed"
    assert len(await points(r, end, 60)) == 60


async def test_what_is_a_day_old_is_shown_no_more(r: Any) -> None:
    await Minutes(r).look({}, at_ms=START)
    assert await points(r, START + (KEPT - 1) * MINUTE, KEPT)
    assert await points(r, START + KEPT * MINUTE, KEPT) == []


async def test_steps_begin_where_the_clock_is_round() -> None:
    found = steps([Point(29_999_998, pages=1), Point(30_000_001, pages=2)], 30_000_001, 60, 5)
    assert found[-1] is not None and found[-1].minute == 30_000_000
    assert found[-2] is not None and found[-2].minute == 29_999_995
    assert [one.pages for one in found if one] == [1, 2]


async def test_a_redis_that_started_anew_goes_on(tmp_path: Any) -> None:
    """Its scripts are forgotten, what it keeps is not."""
    url = servers.ensure(tmp_path)
    client: Any = connect(url, single=False)
    try:
        minutes = Minutes(client)
        await minutes.look({"q": 1}, at_ms=START)
        await worked(client, page__fetched=6)
        await minutes.look({"q": 2}, at_ms=START + 10_000)
        await client.execute_command("BGREWRITEAOF")
        await client.aclose()
        servers.stop(tmp_path)
        assert servers.ensure(tmp_path) == url
        client = connect(url, single=False)
        minutes = Minutes(client)
        await worked(client, page__fetched=4)
        assert await minutes.look({"q": 3}, at_ms=START + 20_000)
        [point] = await points(client, START + 20_000)
        assert (point.pages, point.queued, point.covered_s) == (10, 3, 20)
    finally:
        await client.aclose()
        servers.stop(tmp_path)


async def test_a_redis_that_is_away_is_named(tmp_path: Any) -> None:
    client: Any = connect(f"unix://{tmp_path}/none.sock", single=False)
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        await Minutes(client).look({})
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        await Minutes(client).read(60)
    await client.aclose()
