"""What a worker does every second must not keep it from closing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newscrawler.extensions import Every
from newscrawler.fleet.registry import TOTALS, Registry
from newscrawler.frontier import connect

#: Above the few turns of the event loop that one round trip to Redis takes.
TURNS = 16


@pytest.mark.parametrize("turns", range(TURNS))
async def test_periodic_work_ends_when_stopped_at_any_turn_of_its_call(
    r: Any, redis_server: str, turns: int
) -> None:
    client = connect(redis_server, single=False)
    registry = Registry(client)
    began = asyncio.Event()

    async def work() -> None:
        began.set()
        await registry.add({"page/fetched": 1}, {})

    every = Every(0.001, work)
    await began.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    stopping = asyncio.ensure_future(every.stop())
    done, _ = await asyncio.wait(
        {stopping}, timeout=5
    )  # a timeout that cancels would end what it is to judge
    assert done, "still running 5 s after it was stopped"
    assert int(await r.hget(TOTALS, "page/fetched")) >= 1, "the call that was at work is finished"
    await client.aclose()


async def test_periodic_work_goes_on_after_an_error_and_ends_while_it_sleeps() -> None:
    calls = 0
    third = asyncio.Event()

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            third.set()
        raise ValueError("no matter")

    every = Every(0.001, work)
    async with asyncio.timeout(5):
        await third.wait()
        await every.stop()
        before = calls
        await Every(3600, work).stop()
    assert before >= 3 and calls == before, "no more work after the end, none before its time"
