"""Processes of our own: they answer in order, and what ends one of them ends nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from newscrawler.crawl.processes import Child, ChildDied, ChildError
from tests.patience import Deadline

HERE = "tests.unit.crawl.test_children"


def work(what: tuple[str, object]) -> object:
    """What the child does."""
    verb, value = what
    if verb == "raise":
        raise ValueError(f"no {value}")
    if verb == "spin":
        while True:
            pass
    if verb == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if verb == "sleep":
        time.sleep(float(str(value)))
    if verb == "fill":
        return len(bytearray(int(str(value))))
    if verb == "pid":
        return os.getpid()
    if verb == "work":
        end = time.process_time() + float(str(value))
        while time.process_time() < end:
            pass
        return os.getpid()
    return value


@pytest.fixture
async def child() -> AsyncIterator[Child]:
    child = Child(f"{HERE}:work", cpu_s=20)
    yield child
    await child.close()


async def test_answers_come_to_their_calls_whatever_their_size(child: Child) -> None:
    values = [os.urandom(n) for n in (0, 1, 70_000, 3_000_000, 10)] * 5
    assert await asyncio.gather(*(child.call(("echo", v)) for v in values)) == values


async def test_it_is_another_process_and_stays_the_same(child: Child) -> None:
    await child.start()
    pids = {await child.call(("pid", 0)) for _ in range(3)}
    assert pids == {child.pid}
    assert os.getpid() not in pids


async def test_what_the_work_raises_is_told_and_the_process_lives(child: Child) -> None:
    before = await child.call(("pid", 0))
    with pytest.raises(ChildError, match=r"ValueError: no bread[\s\S]*"):
        await child.call(("raise", "bread"))
    assert await child.call(("pid", 0)) == before


async def test_a_crash_fails_one_call_and_the_others_go_to_a_new_process(child: Child) -> None:
    before = await child.call(("pid", 0))
    calls = [
        child.call(("echo", 1)),
        child.call(("die", 0)),
        child.call(("echo", 2)),
        child.call(("pid", 0)),
    ]
    first, crash, second, pid = await asyncio.gather(*calls, return_exceptions=True)
    assert (first, second) == (1, 2)
    assert isinstance(crash, ChildDied)
    assert "SIGSEGV" in str(crash)
    assert pid != before


async def test_the_kernel_ends_a_call_that_takes_too_much_cpu(child: Child) -> None:
    with pytest.raises(ChildDied, match="SIGPROF"):
        await child.call(("spin", 0), cpu_s=0.2)
    assert await child.call(("echo", "still here")) == "still here"


async def test_a_call_that_needs_more_memory_than_allowed_ends_and_the_next_is_answered() -> None:
    child = Child(f"{HERE}:work", cpu_s=20, memory_bytes=300_000_000)
    try:
        assert await child.call(("fill", 50_000_000)) == 50_000_000
        with pytest.raises(ChildDied, match="more memory than its 300 MB"):
            await child.call(("fill", 400_000_000))
        assert await child.call(("echo", "still here")) == "still here"
    finally:
        await child.close()


async def test_a_wait_is_not_cpu_time(child: Child) -> None:
    assert await child.call(("sleep", 0.5), cpu_s=0.3) == 0.5


async def test_a_target_that_cannot_be_started_fails_its_calls() -> None:
    child = Child(f"{HERE}:nothing_of_that_name", cpu_s=20)
    with pytest.raises(ChildDied):
        await asyncio.wait_for(child.call(("echo", 1)), 60)
    await child.close()


async def test_closing_waits_for_what_was_asked_and_leaves_no_process() -> None:
    child = Child(f"{HERE}:work", cpu_s=20)
    pid = await child.call(("pid", 0))
    last = asyncio.ensure_future(child.call(("echo", "last")))
    await asyncio.sleep(0)
    await child.close()
    assert child.peak_kb > 1_000
    assert await last == "last"
    with pytest.raises(ProcessLookupError):
        os.kill(int(str(pid)), 0)
    with pytest.raises(ChildDied):
        await child.call(("echo", 1))


async def test_interrupt_and_terminate_leave_the_decision_to_the_crawl(child: Child) -> None:
    pid = int(str(await child.call(("pid", 0))))
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    assert await child.call(("pid", 0)) == pid


async def test_the_process_ends_with_the_one_that_made_it(tmp_path: object) -> None:
    code = (
        "import asyncio, sys\n"
        "from newscrawler.crawl.processes import Child\n"
        "async def main():\n"
        f"    child = Child('{HERE}:work', cpu_s=20)\n"
        "    print(await child.call(('pid', 0)), flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    import sys

    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 60))
    parent.kill()
    await parent.wait()
    deadline = Deadline(30)
    while not deadline.is_over():
        try:
            with Path(f"/proc/{pid}/stat").open() as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        await asyncio.sleep(0.05)
    pytest.fail(f"process {pid} outlived the crawl that made it")


async def test_one_that_hangs_is_ended_and_the_calls_behind_it_are_answered() -> None:
    """Stopped, it takes no CPU: the kernel's limit would never end it."""
    child = Child(f"{HERE}:work", cpu_s=20, hung_s=0.5)
    try:
        pid = await child.call(("pid", 0))
        os.kill(pid, signal.SIGSTOP)
        hangs, behind = child.call(("echo", 1)), child.call(("pid", 0))
        async with asyncio.timeout(20):
            crash, fresh = await asyncio.gather(hangs, behind, return_exceptions=True)
        assert isinstance(crash, ChildDied) and "SIGKILL" in str(crash)
        assert isinstance(fresh, int) and fresh != pid
    finally:
        await child.close()


async def test_one_that_is_busy_or_idle_is_not_taken_for_one_that_hangs() -> None:
    child = Child(f"{HERE}:work", cpu_s=20, hung_s=0.3)
    try:
        pid = await child.call(("pid", 0))
        assert await child.call(("work", 1.5)) == pid, "it takes five times as long, of CPU"
        await asyncio.sleep(0.6)
        assert await child.call(("pid", 0)) == pid, "without a call it sleeps, as it should"
    finally:
        await child.close()
