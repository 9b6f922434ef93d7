"""What a heartbeat tells of a lease loop: waiting rightly is no standstill."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from newscrawler.crawl.lease_loop import REDIS_TURN_S, LeaseLoop
from newscrawler.crawl.waits import ARTICLES, RAW_PAGES, REDIS, SCANNER, Waits


class Loop(LeaseLoop):
    """Waits and calls as long as a test says, seconds."""

    wait_s, call_s = 0.0, 0.0

    async def _wait(self, pause: float) -> None:
        await asyncio.sleep(self.wait_s)

    async def _exchange(self, k: int) -> None:
        await asyncio.sleep(self.call_s)

    def _room(self) -> int:
        return 0


@pytest.fixture
def loop() -> Loop:
    settings = Settings()
    settings.setmodule("newscrawler.settings")
    parts: Any = SimpleNamespace(frontier=None, reader=None, visits=None, waits=Waits())
    crawler: Any = SimpleNamespace(
        settings=settings, stats=None, engine=SimpleNamespace(paused=False)
    )
    made = Loop(crawler, parts, SimpleNamespace(), idle_s=1)
    made._opened.set()
    return made


@pytest.mark.parametrize("what", [ARTICLES, RAW_PAGES, SCANNER])
def test_a_worker_that_waits_for_what_takes_its_pages_holds_nothing_up(
    loop: Loop, what: str
) -> None:
    loop.inflight = {object(): object()}  # type: ignore[dict-item]
    loop._held_since = time.monotonic() - 400
    assert loop.progress().held_s >= 400
    loop.waits.failed(what, "connection refused")
    assert loop.progress().held_s == 0.0
    loop._held_since = time.monotonic() - 400
    loop.waits.works(what)
    assert loop.progress().held_s >= 400


async def test_the_pause_before_a_call_is_none_of_its_time(loop: Loop) -> None:
    loop.wait_s, loop.call_s = 0.5, 60.0
    loop._task = asyncio.ensure_future(loop._run())
    await asyncio.sleep(0.7)
    turn_s = loop.progress().turn_s
    loop._task.cancel()
    assert 0.1 <= turn_s <= 0.4


async def test_a_loop_that_waits_for_redis_does_not_stand_still(loop: Loop) -> None:
    loop._task = asyncio.ensure_future(asyncio.sleep(60))
    assert loop.progress().turn_s == 0.1, "0 would say that there is none"
    loop._turned -= 40
    assert loop.progress().turn_s >= 40
    loop.waits.failed(REDIS, "time-out")
    assert loop.progress().turn_s == 0.0
    loop._turned -= REDIS_TURN_S
    assert loop.progress().turn_s > REDIS_TURN_S, "each call to Redis has a time-out"
    loop._task.cancel()


def test_a_loop_is_given_more_time_than_two_calls_that_time_out(loop: Loop) -> None:
    from newscrawler.frontier import TIMEOUT_S

    assert loop.crawler.settings.getfloat("FLEET_STUCK_TURN_S") > 2 * TIMEOUT_S
