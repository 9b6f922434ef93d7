"""What a crawl that is handed nothing may conclude: a revisit that only a gate holds
back is no end of it."""

from __future__ import annotations

from typing import Any

import pytest

from newscrawler.frontier import keys
from newscrawler.frontier.outlook import outlook, waiting
from newscrawler.frontier.queue import DomainPolicy, Frontier
from newscrawler.frontier.scripts import Scripts
from tests.redis.helpers import done, ended, frontier, leap, link

DELAY_MS, PLANNED_MS, LONGEST_MS = 30_000, 600_000, 90_000


async def visited(r: Any, *domains: str, **changes: Any) -> Frontier:
    """One list of each domain was visited, and comes again in ten minutes."""
    f = await frontier(r, domains=domains, floor_ms=DELAY_MS, **changes)
    for domain in domains:
        await f.add([link("/", domain)])
        (lease,) = (await f.step(4)).leases
        again_ms = await f.operator.now_ms() + PLANNED_MS
        await f.step(0, [done(lease, next_visit_ms=again_ms)], [ended(lease)])
    return f


async def restart(r: Any) -> None:
    """Another process of redis-server answers."""
    assert await Scripts(r).run("restarted", keys.prefix(0), "another") == 1


@pytest.mark.parametrize("domains", [("a.vn",), tuple(f"a{n}.vn" for n in range(700))])
async def test_due_revisits_behind_a_restart_are_held_not_absent(
    r: Any, domains: tuple[str, ...]
) -> None:
    f = await visited(r, *domains)
    await leap(r, PLANNED_MS + 1)
    await restart(r)
    step = await f.step(4)
    assert (step.leases, step.queued, step.waiting) == ([], 0, len(domains)), "as it was misread"
    view = await outlook(f.operator, LONGEST_MS)
    assert view.is_held
    assert view.next_ms is not None
    await leap(r, DELAY_MS)
    assert len((await f.step(4)).leases) == min(4, len(domains))


async def test_planned_revisits_hold_nothing(r: Any) -> None:
    f = await visited(r, "a.vn", "b.vn")
    assert not (await outlook(f.operator, LONGEST_MS)).is_held
    await restart(r)
    await leap(r, PLANNED_MS - LONGEST_MS + 1_000)  # within what a crawl waits for, but not due
    view = await outlook(f.operator, LONGEST_MS)
    assert not view.is_held
    assert (await f.step(1)).leases == []
    await leap(r, LONGEST_MS)
    assert (await outlook(f.operator, LONGEST_MS)).is_held, "due, and the gate is open"


@pytest.mark.parametrize("how", ["pause", "block", "nothing"])
async def test_what_waits_longer_is_not_waited_for(r: Any, how: str) -> None:
    f = await visited(r, "a.vn")
    await leap(r, PLANNED_MS + 1)
    now = await f.operator.now_ms()
    if how == "pause":
        await f.operator.pause("a.vn")
    elif how == "block":
        await f.operator.block("a.vn", now + LONGEST_MS + 30_000)
    view = await outlook(f.operator, LONGEST_MS)
    assert view.is_held is (how == "nothing")
    assert (view.next_ms is None) is (how == "pause")


async def test_one_of_a_group_is_enough(r: Any) -> None:
    """The front of the group is planned; the other one is due and held back for
    longer than that."""
    f = await frontier(r, domains=("a.vn", "b.vn"), floor_ms=DELAY_MS)
    await f.put_domains([DomainPolicy(d, d, "mid", DELAY_MS, group="g") for d in ("a.vn", "b.vn")])
    began = await f.operator.now_ms()
    for domain, again_ms in (("a.vn", PLANNED_MS + 60_000), ("b.vn", PLANNED_MS)):
        await f.add([link("/", domain)])
        (lease,) = (await f.step(4)).leases
        await f.step(0, [done(lease, next_visit_ms=began + again_ms)], [ended(lease)])
        await leap(r, DELAY_MS + 1)
    await f.operator.block("b.vn", began + PLANNED_MS + 80_000)
    await leap(r, PLANNED_MS - 2 * DELAY_MS - 10_000)
    assert not (await outlook(f.operator, LONGEST_MS)).is_held, "neither is due"
    await leap(r, 15_000)
    assert (await outlook(f.operator, LONGEST_MS)).is_held
    await f.operator.pause("b.vn")
    assert not (await outlook(f.operator, LONGEST_MS)).is_held


async def test_what_chosen_domains_wait_for_is_told_of_them_alone(r: Any) -> None:
    f = await visited(r, "a.vn", "b.vn", "c.vn")
    await f.add([link("/1", "c.vn"), link("/2", "c.vn"), link("/1", "b.vn")])
    view = await waiting(f.operator, ["a.vn", "c.vn", "unknown.vn"])
    assert (view.queued, view.planned) == (2, 2)
    assert [(name, why) for name, _, why in view.next] == [("c.vn", "queued"), ("a.vn", "revisit")]
    gate_ms, visit_ms = (ms for _, ms, _ in view.next)
    assert 0 < gate_ms <= DELAY_MS + 1_000 < visit_ms <= PLANNED_MS + 1_000
    told = view.text()
    assert told.startswith("nothing is due now at these sites (2 queued, 2 planned): next c.vn in ")
    assert "b.vn" not in told
    await f.operator.pause("a.vn")
    assert "a.vn never (paused)" in (await waiting(f.operator, ["a.vn"])).text()
