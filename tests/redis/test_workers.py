"""A worker that was killed: the next one on its machine frees its leases at once, and never
those of the living."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fleet import identity
from newscrawler.frontier.queue import Frontier
from tests.redis.helpers import FAST, check, ended, frontier, links

ROOT = Path(__file__).resolve().parents[2]
#: Leases one URL under its own worker id, says so, and waits to be killed.
HOLD = """
import asyncio, sys
from newscrawler.crawl import services
from newscrawler.frontier import connect
from newscrawler.frontier.queue import Frontier
from tests.redis.helpers import FAST

async def main():
    f = Frontier(connect(sys.argv[1]), FAST, services.worker_id())
    await f.open()
    step = await f.step(1)
    print(f.worker, step.leases[0].url, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def hold(redis_url: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, redis_url],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout as out:
        return process, out.readline().split()[0]


async def test_leases_of_a_killed_worker_are_freed_at_the_next_start(
    r: Any, redis_server: str
) -> None:
    f = await frontier(r, domains=("a.vn", "b.vn"))
    await f.add(links(2) + links(2, "b.vn"))
    dead, dead_id = hold(redis_server)
    alive, alive_id = hold(redis_server)
    try:
        assert not identity.is_dead_worker(dead_id) and not identity.is_dead_worker(alive_id)
        os.kill(dead.pid, signal.SIGKILL)
        dead.wait(10)
        assert identity.is_dead_worker(dead_id) and not identity.is_dead_worker(alive_id)
        heir = Frontier(r, FAST, identity.worker_id(), is_dead=identity.is_dead_worker)
        await heir.open()
        assert set((await heir.report())["workers"]) == {alive_id}
        await check(r)
        (lease,) = (await heir.step(4)).leases
        await heir.step(0, (), [ended(lease)])
        assert (await heir.counts()).leased == 2
    finally:
        for process in (dead, alive):
            process.kill()
            process.wait(10)


@pytest.mark.parametrize(
    "worker",
    [
        "w1",
        "",
        f"{identity.machine()}-{os.getpid()}-abc",  # this process
        f"elsewhere-{2**22 - 3}-abc",
        f"{identity.machine()}-5-{2**22 - 3}-abc",  # a host whose name is longer by "-5"
        f"{identity.machine()}x-{2**22 - 3}-abc",
        f"{identity.machine()}-1-abc",  # another user's
    ],
    ids=[
        "a name",
        "none",
        "this one",
        "another machine",
        "a longer name",
        "another name",
        "another user's",
    ],
)
def test_where_it_cannot_be_known_nobody_is_dead(worker: str) -> None:
    assert not identity.is_dead_worker(worker)


def test_a_pid_without_a_process_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(10)
    assert identity.is_dead_worker(f"{identity.machine()}-{child.pid}-abc")
    assert identity.worker_id("job-123456").startswith(f"{identity.machine()}-{os.getpid()}-")
