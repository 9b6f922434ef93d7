"""What a killed Redis forgets of its last moment, and a killed worker never told: delays
and links must not suffer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import connect
from newscrawler.frontier.queue import FrontierUnavailable
from tests.crawl.chaos import RedisServer
from tests.redis.helpers import check, done, ended, frontier, links, run_out

DELAY_MS = 700


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    # each write at once, so that the test alone decides what is forgotten; with everysec it
    # happens by itself
    one = RedisServer(tmp_path / "redis", appendfsync="always")
    yield one
    one.stop()


def written(redis: RedisServer) -> tuple[Path, int]:
    """The append-only file that grows (Redis 7: in a folder), and its size."""
    found = [
        p for p in redis.folder.rglob("appendonly.aof*") if p.is_file() and p.suffix != ".manifest"
    ]
    file = next((p for p in found if "incr" in p.name), found[0])
    return file, file.stat().st_size


def forget(redis: RedisServer, file: Path, size: int) -> None:
    """kill -9 with what came after ``size`` not yet written, and a new start."""
    redis.kill()
    assert file.stat().st_size > size, "there was nothing to forget"
    with file.open("r+b") as aof:
        aof.truncate(size)
    redis.start()


@pytest.mark.parametrize(
    "told", [False, True], ids=["a grant is forgotten", "a fetch is forgotten"]
)
async def test_a_fetch_that_redis_forgot_keeps_its_distance(redis: RedisServer, told: bool) -> None:
    client: Any = connect(redis.url)
    f = await frontier(client, floor_ms=DELAY_MS)
    other = await frontier(connect(redis.url), "w2", domains=())
    await f.add(links(5))
    before = written(redis)
    (lease,) = (await f.step(1)).leases
    fetched = time.monotonic()  # the site is asked now
    if told:
        await f.step(0, [done(lease)], [ended(lease)])
    forget(redis, *before)
    while True:
        try:
            step = await other.step(1)
        except FrontierUnavailable:
            continue
        if step.leases:
            break
        assert step.wait_ms <= DELAY_MS + 100, "the gate opens in time"
        await asyncio.sleep(0.01)
    assert time.monotonic() - fetched >= DELAY_MS / 1000, "asked again before the delay was over"
    assert time.monotonic() - fetched < 10
    await check(other.client)
    await other.close()
    await client.aclose()


@pytest.mark.parametrize("call", ["renew", "add", "give_back", "robots"])
async def test_whatever_call_meets_the_restart_the_local_filter_is_emptied(
    redis: RedisServer, call: str
) -> None:
    """Links that the killed Redis forgot would otherwise never be offered again."""
    f = await frontier(connect(redis.url))
    await f.add(links(3))
    (lease,) = (await f.step(1)).leases
    server_id = (await f.step(0)).server_id
    before = written(redis)
    await f.add(links(5, start=100))
    assert f.seen_local(links(1, start=100)[0].url)
    forget(redis, *before)
    # another worker comes first and loads the scripts
    await (await frontier(connect(redis.url), "w2", domains=())).close()
    calls = {
        "renew": lambda: f.renew([lease]),
        "add": lambda: f.add(links(1, start=200)),
        "give_back": lambda: f.give_back([lease]),
        "robots": lambda: f.robots("a.vn"),
    }
    with pytest.raises(FrontierUnavailable):
        await calls[call]()
    step = await f.step(0)
    step = await f.step(0)
    assert step.server_id != server_id
    assert not f.seen_local(links(1, start=100)[0].url)
    assert (await f.add(links(5, start=100))).added == 5
    await f.close()


async def test_a_worker_that_dies_while_it_follows_redirects_of_robots_txt_leaves_the_gate_shut(
    r: Any,
) -> None:
    """Only the first answer is told; when the last hop was asked for, nobody knows."""
    f = await frontier(r, floor_ms=300, obey_robots=True)
    await f.add(links(2))
    (robots,) = (await f.step(1)).leases
    await f.step(0, [], [ended(robots, 301)])
    await asyncio.sleep(0.3)  # the distance that the worker keeps before its next hop
    await run_out(r, robots)
    died = time.monotonic()
    step = await f.step(1)
    assert step.leases == [] and step.wait_ms > 100, (
        "robots.txt is asked for at once, right after the hop"
    )
    while not (step := await f.step(1)).leases:
        assert time.monotonic() - died < 10
        await asyncio.sleep(0.005)
    assert time.monotonic() - died >= 0.3
