"""benchmarks.simulate_fleet in small: the frontier's own scripts under simulated fleets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.fleet_model import Fleet, Times, server_cpu
from benchmarks.fleet_plot import draw
from benchmarks.simulate_fleet import (
    CALLS,
    CALLS_FULL,
    MOST_RECORDS,
    Remaining,
    Row,
    curve,
    filled,
    held_records,
    most_calls,
    news_of_the_world,
    short_curve,
    simulate,
    table,
)

TIMES = Times()
SMALL = Fleet(workers=2, domains=60, records=300, delay_s=2.0, latency_s=0.4)


async def run(r: Any, fleet: Fleet, calls: int = 500, times: Times | None = TIMES) -> Row:
    with server_cpu((await r.info("server"))["process_id"]) as cpu:
        shard = await filled(r, cpu, fleet, 300)
        row = await simulate(shard, fleet, calls=calls, seconds=20, times=times)
    await r.flushall()
    return row


async def test_same_seed_and_service_times_give_the_same_fleet(r: Any) -> None:
    first, second = await run(r, SMALL), await run(r, SMALL)
    for name in ("pages_per_s", "calls_per_page", "wait_median_s", "least_gap_s", "redis_busy"):
        assert getattr(first, name) == getattr(second, name), name
    other = await run(r, replace(SMALL, seed=15))
    assert other.wait_median_s != first.wait_median_s


async def test_politeness_bounds_a_fleet_however_many_its_workers(r: Any) -> None:
    few, many = await run(r, SMALL), await run(r, replace(SMALL, workers=12), calls=2000)
    allowed = SMALL.domains / (SMALL.delay_s + SMALL.latency_s)
    for row in (few, many):
        assert row.bound == "politeness"
        assert 0.85 * allowed < row.pages_per_s <= 1.02 * allowed, row.pages_per_s
        assert row.least_gap_s >= SMALL.delay_s and row.leases_checked > 100
    assert many.calls_per_page > few.calls_per_page  # who has nothing to do asks all the same
    assert "politeness" in table([("few", few), ("many", many)])
    assert draw([("1 shard", few), ("1 shard", many)]).endswith("</svg>\n")


async def test_processors_of_the_workers_bound_a_fleet(r: Any) -> None:
    row = await run(r, replace(SMALL, domains=2000, records=4000, page_ms=100.0, workers=1))
    assert row.bound == "processors"
    assert 0.8 * 20 < row.pages_per_s < 1.1 * 20


async def test_one_shard_of_four_stands_for_all(r: Any) -> None:
    """The sampled fleet is as fast as the same fleet over one shard, where Redis is no bound."""
    whole = await run(r, replace(SMALL, workers=4, domains=240, records=1200), calls=1500)
    part = await run(r, replace(SMALL, workers=4, domains=240, records=1200, shards=4))
    assert part.sampled == 1
    assert part.pages_per_s == pytest.approx(whole.pages_per_s, rel=0.1)


async def test_slow_redis_is_named_as_the_bound_and_delays_are_kept(r: Any) -> None:
    slow = replace(TIMES, granted=4_000.0, acked=4_000.0)
    fleet = replace(SMALL, workers=8, domains=600, records=1200)
    row = await run(r, fleet, calls=1000, times=slow)
    assert row.bound == "Redis" and row.redis_busy > 0.9
    assert row.pages_per_s < 0.8 * min(fleet.bounds().values())
    assert row.least_gap_s >= fleet.delay_s


async def test_service_times_are_measured_on_the_shard(r: Any) -> None:
    row = await run(r, SMALL, times=None)
    assert min(row.times.call, row.times.idle, row.times.granted, row.times.acked) > 0
    assert row.redis_ms_per_page > 0 and row.model_over_measured > 0


def test_volume_of_cc_news_names_what_the_plan_says() -> None:
    text = news_of_the_world(0.2, 206.0)
    assert "1,000,000 articles a day of 20,000 sites" in text
    assert "197 requests a second in the mean, 394 at the busiest" in text


async def test_each_fleet_is_told_with_how_long_the_rest_takes(r: Any) -> None:
    fleets = [("1 shard", SMALL), ("1 shard", replace(SMALL, workers=4)), ("idle", SMALL)]
    now = [0.0]
    remaining = Remaining(fleets, 500, 300, clock=lambda: now[0])
    row = await run(r, SMALL)
    now[0] = 10.0
    first = remaining.text(1, "1 shard", row)
    assert first.startswith("1 of 3: 1 shard, 2 workers: ") and "10 s so far, about 2" in first
    now[0] = 30.0
    assert remaining.text(3, "idle", row).endswith("30 s so far, about 0 s left")


def test_the_short_curve_is_a_part_of_the_work_of_the_whole_one() -> None:
    short, whole = short_curve(), curve(quick=False)
    assert {name for name, _ in short} >= {"1 shard", "4 shards", "16 shards", "idle", "records"}
    work = [sum(most_calls(fleet, calls) for _, fleet in fleets)
            for fleets, calls in ((short, CALLS), (whole, CALLS_FULL))]  # fmt: skip
    assert work[0] < work[1] / 5
    assert max(held_records(fleet, MOST_RECORDS) for _, fleet in short) <= MOST_RECORDS
