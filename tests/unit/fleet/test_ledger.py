"""Who leads, and what one that led no longer may write. In a real Redis."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newscrawler.fleet.ledger import (
    JOBS,
    Batch,
    Ended,
    Job,
    JobState,
    Ledger,
    NodeState,
    Wanted,
)
from newscrawler.fleet.registry import DRAIN, REPLACED, Beat, Registry, RegistryUnavailable
from newscrawler.frontier import connect

JOB = Job("11111111-fleet", "a", "v1", 0, 5, JobState.STARTING, 5)


def put(job: Job = JOB) -> Batch:
    batch = Batch()
    batch.put(job)
    return batch


async def test_one_leads_and_the_next_takes_over(r: Any) -> None:
    one, two = Ledger(r, "one"), Ledger(r, "two")
    assert await one.lead() == "one" and one.leads
    assert await two.lead() == "one" and not two.leads
    assert await one.lead() == "one", "renewed"
    await one.resign()
    assert await two.lead() == "two" and two.leads
    assert await one.lead() == "two" and not one.leads
    assert await two.keep() and not await one.keep()
    await r.delete("{fleet}:leader")
    assert not await two.keep(), "another may have led meanwhile: it looks anew first"
    assert await one.lead() == "one"


async def test_a_lead_runs_out_and_its_holder_writes_nothing_more(r: Any) -> None:
    old, new = Ledger(r, "old"), Ledger(r, "new")
    await old.lead()
    assert await old.write(put())
    await old.lead(lasts_ms=20)
    for _ in range(3000):  # a watch that stands by asks each round
        if await new.lead() == "new":
            break
        await asyncio.sleep(0.01)
    assert new.leads
    late = Job("22222222-fleet", "a", "v1", 0, 5)
    assert old.leads, "it was stopped and does not know yet"
    assert not await old.write(put(late))
    assert not old.leads
    assert list((await new.read()).jobs) == [JOB.id]
    assert await new.write(put(late))


async def test_a_redis_that_forgot_the_lead_does_not_give_its_number_again(r: Any) -> None:
    """Killed, it comes back a second older: neither lock nor counter are there."""
    old, new = Ledger(r, "old"), Ledger(r, "new")
    await old.lead()
    await r.delete("{fleet}:leader", "{fleet}:leader:token")
    assert await new.lead() == "new"
    assert not await old.write(put())


async def test_what_was_written_is_read(r: Any) -> None:
    ledger = Ledger(r, "one")
    await ledger.lead()
    batch = put()
    batch.node(NodeState("a", "host", 2.0, crashes=3, last_error="Lỗi"))
    batch.say(7, 4, ["text"])
    assert await ledger.write(batch)
    await ledger.drain("b", True)
    await ledger.want(Wanted(2, 4, "v1", args=[["setting", "A=b=c"]]), 99)
    state = await ledger.read()
    assert state.jobs == {JOB.id: JOB} and state.jobs[JOB.id].state is JobState.STARTING
    assert state.nodes["a"].last_error == "Lỗi" and state.nodes["a"].crashes == 3
    assert state.drained == {"b"} and state.leader == "one"
    assert (state.wanted.least, state.wanted.args) == (2, [["setting", "A=b=c"]])
    assert state.wanted.asked_ms == 99
    assert state.said["target"] == 4 and state.said["messages"] == ["text"]
    assert state.now_ms > 1_700_000_000_000


async def test_what_a_newer_program_wrote_is_read(r: Any) -> None:
    await r.hset(JOBS, "x", '{"id": "x", "node": "a", "version": "v", "generation": 0,'
                            ' "started_ms": 1, "colour": "red"}')  # fmt: skip
    assert (await Ledger(r, "one").read()).jobs["x"].node == "a"


async def test_a_job_that_is_over_is_told_so_and_is_no_worker_any_more(r: Any) -> None:
    ledger, registry = Ledger(r, "one"), Registry(r)
    worker = "host-1-11111111"
    beat = Beat(worker, "host", 1, job=JOB.id, beat_ms=1)
    registry.clock = lambda: 0.001
    await ledger.lead()
    await ledger.write(put())
    assert await registry.beat(beat) == ""
    batch = Batch()
    batch.end(Ended(JOB.id, "a", "v1", 1, 1, "died", "why", worker))
    assert await ledger.write(batch)
    state = await ledger.read()
    assert not state.jobs and state.ended[0].why == "why"
    assert await registry.workers() == []
    assert await registry.beat(beat) == REPLACED, "it was only stuck, and hears of it"
    assert await ledger.orders([JOB.id, "other"]) == {JOB.id: REPLACED}


async def test_an_order_reaches_a_worker_that_is_no_job(r: Any) -> None:
    registry = Registry(r)
    beat = Beat("host-1-abc", "host", 1, beat_ms=1)
    await registry.order("host-1-abc", DRAIN)
    assert await registry.beat(beat) == DRAIN
    await registry.order("host-1-abc", "")
    assert await registry.beat(beat) == ""


async def test_one_deploy_at_a_time(r: Any) -> None:
    one, two = Ledger(r, "one"), Ledger(r, "two")
    assert await one.begin_deploy() and not await two.begin_deploy()
    await one.end_deploy()
    assert await two.begin_deploy()


async def test_a_redis_that_is_away_is_said() -> None:
    client: Any = connect("redis://127.0.0.1:1/0", single=False)
    ledger = Ledger(client, "one")
    for ask in (ledger.lead(), ledger.read(), ledger.up_s(), ledger.orders(["x"])):
        with pytest.raises(RegistryUnavailable):
            await ask
    await client.aclose()
