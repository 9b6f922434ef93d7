"""One generation per domain in the fleet, and what it may spend: on a real Redis."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newscrawler.selectorsets import keys
from newscrawler.selectorsets.jobs import BudgetSpent, Job, Jobs, ModelBudget
from tests.patience import Deadline


@pytest.fixture
def jobs(selector_redis: Any) -> Jobs:
    return Jobs(selector_redis, ModelBudget(), lock_ms=60_000)


async def test_twenty_workers_start_one_generation(selector_redis: Any) -> None:
    workers = [Jobs(selector_redis, ModelBudget()) for _ in range(20)]
    await workers[0].queue("a.vn")
    begun = await asyncio.gather(*(w.begin("a.vn") for w in workers))
    assert len([b for b in begun if isinstance(b, Job)]) == 1
    assert await workers[3].due() is None, "the others do not see the job while it is held"


async def test_dead_holder_is_taken_over_with_a_higher_number(selector_redis: Any) -> None:
    dead = await Jobs(selector_redis, ModelBudget(), lock_ms=150).begin(
        "a.vn"
    )  # and never again heard of
    assert isinstance(dead, Job)
    other = Jobs(selector_redis, ModelBudget())
    deadline = Deadline(10)
    while await other.due() is None:
        assert not deadline.is_over(), "the dead holder's job did not come back"
        await asyncio.sleep(0.02)
    job = await other.begin("a.vn")
    assert isinstance(job, Job)
    assert job.fence > dead.fence


async def test_holder_keeps_its_lock_by_renewal(selector_redis: Any) -> None:
    jobs = Jobs(selector_redis, ModelBudget(), lock_ms=200)
    job = await jobs.begin("a.vn")
    assert isinstance(job, Job)
    async with jobs.held(job):
        for _ in range(20):
            assert await selector_redis.get(keys.lock("a.vn")) == job.token.encode()
            await asyncio.sleep(0.03)
    assert await selector_redis.get(keys.lock("a.vn")) is None


async def test_cool_down_after_a_failure_and_none_after_success(jobs: Jobs) -> None:
    job = await jobs.begin("a.vn")
    assert isinstance(job, Job)
    async with jobs.held(job):
        job.again_in_ms = 900_000
    refused = await jobs.begin("a.vn")
    assert isinstance(refused, str) and "not before" in refused
    assert await jobs.due() is None
    forced = await jobs.begin("a.vn", forced=True)
    assert isinstance(forced, Job), "an operator does not wait"
    async with jobs.held(forced):
        pass
    assert isinstance(await jobs.begin("a.vn"), Job)


@pytest.mark.parametrize("state", [{"disabled": "1"}, {"pinned": "1"}, {"state": "await_admin"}])
async def test_what_an_operator_ruled_out_is_not_run(
    jobs: Jobs, selector_redis: Any, state: dict[str, str]
) -> None:
    await jobs.queue("a.vn")
    await selector_redis.hset(keys.domain("a.vn"), mapping=state)
    assert await jobs.due() == "a.vn"
    assert isinstance(await jobs.begin("a.vn"), str)
    assert await jobs.due() is None


@pytest.mark.parametrize(
    ("limits", "calls", "says"),
    [
        (ModelBudget(calls_per_domain_per_day=2), 2, "LLM_CALLS_PER_DOMAIN_PER_DAY"),
        (ModelBudget(calls_per_day=3), 3, "LLM_CALLS_PER_DAY"),
        (ModelBudget(tokens_per_day=2500), 2, "LLM_TOKENS_PER_DAY"),
        (ModelBudget(calls_per_minute=1), 1, "LLM_CALLS_PER_MINUTE"),
        (ModelBudget(calls_per_day=0), 0, "LLM_CALLS_PER_DAY"),
    ],
)
async def test_budget_forbids_the_call_over_the_limit(
    selector_redis: Any, limits: ModelBudget, calls: int, says: str
) -> None:
    jobs = Jobs(selector_redis, limits, clock=lambda: 1_700_000_000.0)
    for _ in range(calls):
        await jobs.reserve("a.vn", 1000)
    with pytest.raises(BudgetSpent, match=says):
        await jobs.reserve("a.vn", 1000)
    assert (await jobs.spent()).get("calls", 0) == calls
    assert (await jobs.spent()).get("tokens", 0) == 1000 * calls


async def test_settling_puts_the_true_count_in(jobs: Jobs) -> None:
    await jobs.reserve("a.vn", 5000)
    await jobs.settle("a.vn", (5000, 0), (1000, 234))
    assert (await jobs.spent())["tokens"] == 1234
    await jobs.settle("a.vn", (5000, 0), (0, 0))  # no answer: the reservation stays
    assert (await jobs.spent())["tokens"] == 1234


@pytest.mark.parametrize(
    ("limits", "calls", "says"),
    [
        (ModelBudget(money_per_day=0.025, price_in=10.0, price_out=40.0), 2, "LLM_MONEY_PER_DAY"),
        (
            ModelBudget(money_per_domain_per_day=0.01, price_in=10.0),
            1,
            "LLM_MONEY_PER_DOMAIN_PER_DAY",
        ),
        (ModelBudget(money_per_day=0), 0, "LLM_MONEY_PER_DAY"),
        (ModelBudget(tokens_per_domain_per_day=2_500), 2, "LLM_TOKENS_PER_DOMAIN_PER_DAY"),
    ],
)
async def test_money_and_tokens_of_one_site_are_limited(
    selector_redis: Any, limits: ModelBudget, calls: int, says: str
) -> None:
    """A call: 1,000 tokens in at 10 a million are 0.01; 50 out at 40 a million are 0.002."""
    jobs = Jobs(selector_redis, limits, clock=lambda: 1_700_000_000.0)
    for _ in range(calls):
        await jobs.reserve("a.vn", 1000, 50)
    with pytest.raises(BudgetSpent, match=says):
        await jobs.reserve("a.vn", 1000, 50)
    if "DOMAIN" in says:
        await jobs.reserve("b.vn", 1000, 50)  # another site has its own


async def test_money_is_settled_with_what_the_server_counted(selector_redis: Any) -> None:
    jobs = Jobs(selector_redis, ModelBudget(price_in=2.0, price_out=8.0))
    await jobs.reserve("a.vn", 10_000, 1_200)
    assert (await jobs.spent())["micro"] == 29_600
    await jobs.settle("a.vn", (10_000, 1_200), (4_000, 100))
    spent = await jobs.spent()
    assert (spent["micro"], spent["micro:a.vn"], spent["tokens"], spent["tokens:a.vn"]) == (
        8_800,
        8_800,
        4_100,
        4_100,
    )
