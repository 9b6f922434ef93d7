"""Heartbeats and summed counters in a real Redis."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from newscrawler.fleet.registry import (
    BEAT_TTL_S,
    SILENT_S,
    Beat,
    ProcessMeter,
    Registry,
    RegistryUnavailable,
    SiteDelta,
    site_key,
    worker_key,
)
from newscrawler.frontier import connect

START = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    @property
    def ms(self) -> int:
        return int(self.now * 1000)


def beat(worker: str, at_ms: int, **values: Any) -> Beat:
    return Beat(id=worker, host="h", pid=1, started_ms=at_ms, beat_ms=at_ms, **values)


async def test_a_worker_is_listed_until_it_leaves(r: Any) -> None:
    clock = Clock()
    registry = Registry(r, clock)
    await registry.beat(beat("a", clock.ms, pages=7, gauges={"frontier/queued": 3.0}))
    clock.now += 2
    [row] = await registry.workers()
    assert (row["id"], row["alive"], row["age_s"], row["pages"]) == ("a", True, 2.0, 7)
    assert row["gauges"] == {"frontier/queued": 3.0}
    await registry.leave("a")
    assert await registry.workers() == []


async def test_a_killed_worker_is_shown_as_silent_and_then_forgotten(r: Any) -> None:
    clock = Clock()
    registry = Registry(r, clock)
    await registry.beat(beat("killed", clock.ms))
    assert 0 < await r.ttl(worker_key("killed")) <= BEAT_TTL_S
    await r.delete(worker_key("killed"))  # what the expiry does
    clock.now += BEAT_TTL_S
    [row] = await registry.workers()
    assert (row["id"], row["alive"], row["age_s"]) == ("killed", False, float(BEAT_TTL_S))
    clock.now += SILENT_S
    assert await registry.workers() == []


async def test_counters_of_two_workers_are_summed_and_stay(r: Any) -> None:
    one, two = Registry(r), Registry(r)
    for registry, pages in ((one, 3), (two, 4)):
        await registry.beat(beat(f"w{pages}", registry._now_ms()))
        await registry.add(
            {"page/fetched": pages, "article/new": 0}, {"a.vn": SiteDelta(pages=pages, new=1)}
        )
        await registry.leave(f"w{pages}")
    assert await one.totals() == {"page/fetched": 7}
    assert (await one.sites())["a.vn"].pages == 7
    assert (await one.sites())["a.vn"].new == 2


async def test_a_site_keeps_sums_by_outcome_and_its_newest_times(r: Any) -> None:
    registry = Registry(r)
    outcomes = Counter({"DONE": 2, "RETRY(timeout)": 1})
    await registry.add({}, {"a.vn": SiteDelta(3, 2, 1, outcomes, 500, 400, "RETRY(timeout)", 450)})
    await registry.add({}, {"a.vn": SiteDelta(1, outcomes=Counter({"DONE": 1}), last_fetch_ms=900)})
    await registry.add({}, {"a.vn": SiteDelta(duplicates=2)})
    await registry.add({}, {"a.vn": SiteDelta(duplicates=1)})
    row = (await registry.sites())["a.vn"]
    assert (row.duplicates, row.timeouts) == (3, 1)
    assert row.outcomes == {"DONE": 3, "RETRY(timeout)": 1}
    assert (row.pages, row.new, row.updated) == (4, 2, 1)
    assert (row.last_fetch_ms, row.last_new_ms, row.last_error, row.last_error_ms) == (
        900,
        400,
        "RETRY(timeout)",
        450,
    )


async def test_it_reads_alike_from_a_client_that_answers_text(r: Any, redis_server: str) -> None:
    await Registry(r).beat(beat("a", Registry(r)._now_ms()))
    await Registry(r).add({"page/fetched": 1}, {"báo.vn": SiteDelta(pages=1)})
    text: Any = connect(redis_server, single=False, decode_responses=True)
    registry = Registry(text)
    assert [row["id"] for row in await registry.workers()] == ["a"]
    assert await registry.totals() == {"page/fetched": 1}
    assert list(await registry.sites()) == ["báo.vn"]
    await text.aclose()


async def test_all_keys_lie_on_one_node_of_a_cluster(r: Any) -> None:
    registry = Registry(r)
    await registry.beat(beat("a", registry._now_ms()))
    await registry.add({"page/fetched": 1}, {"a.vn": SiteDelta(pages=1)})
    names = await r.keys("*")
    assert site_key("a.vn").encode() in names
    assert all(name.startswith(b"{fleet}:") for name in names)


async def test_nothing_to_add_asks_nothing(r: Any) -> None:
    before = (await r.info("stats"))["total_commands_processed"]
    await Registry(r).add({"page/fetched": 0}, {})
    assert (await r.info("stats"))["total_commands_processed"] - before == 1  # the INFO itself


async def test_a_redis_that_is_away_is_named(tmp_path: Any) -> None:
    client: Any = connect(f"unix://{tmp_path}/none.sock", single=False)
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        await Registry(client).add({"page/fetched": 1}, {})
    await client.aclose()


def test_the_meter_measures_this_process() -> None:
    now = [0.0]
    meter = ProcessMeter(lambda: now[0])
    spent = meter.cpu_s()
    while meter.cpu_s() - spent < 0.05:
        sum(range(1000))
    now[0] = 0.1
    assert 40 <= meter.cpu_percent() <= 150
    assert 10_000_000 < meter.memory_bytes() < 4_000_000_000


def test_the_meter_adds_the_processes_that_work_for_this_one() -> None:
    code = "print(sum(range(5_000_000)), flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    alone, both = ProcessMeter(), ProcessMeter(children=lambda: [child.pid, 2**22 - 7])
    try:
        assert both.memory_bytes() - alone.memory_bytes() > 3_000_000
        assert both.cpu_s() - alone.cpu_s() > 0.02
    finally:
        child.communicate(b"\n")
    assert both.cpu_percent() == 0, "a child that ended takes its seconds along"
