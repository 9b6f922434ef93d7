"""A task that is cancelled while it talks to Redis ends, at whatever moment that is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newscrawler.frontier import connect


@pytest.mark.parametrize("single", [True, False])
async def test_a_cancellation_is_never_lost(r: Any, redis_server: str, single: bool) -> None:
    client = connect(redis_server, single=single)

    async def for_ever() -> None:
        while True:
            await client.set("cancelled", "x" * 10_000)

    try:
        for turns in range(200):
            task = asyncio.ensure_future(for_ever())
            for _ in range(turns % 40):  # another moment of a command each time
                await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=60)
            assert done and task.cancelled(), f"after {turns} turns of the loop it went on"
            assert await client.get("cancelled") in (None, b"x" * 10_000), "no answer of another"
    finally:
        await client.aclose()
