"""The whole path of a model against a real one, which is far too small to be right: protocol,
forms, counts, limits, faults. What it answers wrongly never goes live.

Only in `make chaos`, and only where its packages are (tests/real_model/server.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler import metrics
from newscrawler.llm import LLM, MODES, LLMError, Usage
from newscrawler.selectorsets import keys
from newscrawler.selectorsets.jobs import Jobs
from tests.fixtures_direct import story_page
from tests.real_model.bench import PRICE_IN, PRICE_OUT, TIMEOUT_S, SetBench, limits, small_pages
from tests.real_model.server import ABSENT, RealModel, interpreter
from tests.unit.crawl.test_direct import Bench as DirectBench

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(interpreter() is None, reason=ABSENT),
]

SCHEMA = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
    "required": ["names"],
    "additionalProperties": False,
}
SYSTEM = "You answer with one JSON object and nothing else."
USER = "Give the names of three rivers of France as {names: [...]}."


@pytest.fixture(scope="module")
def model() -> Iterator[RealModel]:
    served = RealModel()
    yield served
    served.kill()


def of(model: RealModel, timeout_s: float = TIMEOUT_S) -> LLM:
    return LLM(model.base_url, "", model.name, timeout_s, backoff_s=(0.0, 0.0, 0.0))


@pytest.mark.parametrize("form", MODES)
async def test_each_form_is_answered_and_counted_as_the_server_counts(
    model: RealModel, form: str
) -> None:
    llm, usage, before = of(model), Usage(), model.counted()
    llm.start_from(form)
    try:
        answer = await llm.ask(SYSTEM, USER, SCHEMA, max_tokens=80, usage=usage)
        assert answer.mode == form and set(answer.data) == {"names"}
    except LLMError as exc:
        assert exc.kind == "unusable", "it may answer something else, where nothing holds it back"
        assert form != "json_schema", "the server holds the model to a schema"
    after = model.counted()
    assert (usage.attempts, usage.unread) == (1, 0)
    assert usage.tokens_in == after["in"] - before["in"] > 0
    assert abs(usage.tokens_out - (after["out"] - before["out"])) <= 1  # the end sign
    await llm.close()


async def test_question_over_the_context_is_refused_and_what_fits_is_learned() -> None:
    small = RealModel(512)
    try:
        llm, usage = of(small), Usage()
        words = "The river and the bridge. " * 400
        with pytest.raises(LLMError) as caught:
            await llm.ask(SYSTEM, words, SCHEMA, max_tokens=40, usage=usage)
        assert (caught.value.kind, usage.unread, usage.tokens_in) == ("too_long", 1, 0)
        assert llm.most_chars is not None and llm.most_chars > 500
        cut = words[: llm.most_chars - len(SYSTEM)]
        await _answered(llm, cut, usage)
        assert usage.unread == 1 and 300 < usage.tokens_in <= 512 - 40
        await llm.close()
    finally:
        small.kill()


async def _answered(llm: LLM, user: str, usage: Usage) -> None:
    """What it says does not matter, that it was read does."""
    try:
        await llm.ask(SYSTEM, user, SCHEMA, max_tokens=40, usage=usage)
    except LLMError as exc:
        assert exc.kind == "unusable", exc


async def test_slow_first_token_ends_by_the_time_out() -> None:
    served = RealModel()  # its own: it goes on reading what nobody waits for any more
    try:
        llm, usage = of(served, timeout_s=0.5), Usage()
        with pytest.raises(LLMError) as caught:
            await llm.ask(SYSTEM, "One more river, " * 900, SCHEMA, max_tokens=400, usage=usage)
        assert (caught.value.kind, usage.attempts, usage.tokens_in) == ("network", 3, 0)
        await llm.close()
    finally:
        served.kill()


async def test_server_that_dies_in_mid_answer_leaves_the_reservation(selector_redis: Any) -> None:
    served = RealModel()
    jobs, llm, usage = Jobs(selector_redis, limits()), of(served), Usage()
    llm._backoff_s = (0.0,)

    async def reserve(tokens_in: int, tokens_out: int) -> None:
        await jobs.reserve("a.vn", tokens_in, tokens_out)

    asked = asyncio.create_task(
        llm.ask(SYSTEM, "Tell a long story. " * 30, SCHEMA, max_tokens=800,
                reserve=reserve, usage=usage)
    )  # fmt: skip
    await asyncio.sleep(3)
    assert not asked.done()
    served.kill()
    with pytest.raises(LLMError) as caught:
        await asked
    assert (caught.value.kind, usage.attempts, usage.tokens_in) == ("network", 1, 0)
    spent = await jobs.spent()
    assert spent["calls"] == 1 and spent["tokens"] > 800, "nobody knows what it cost: all of it"
    await llm.close()


async def test_no_wrong_set_goes_live_and_the_ledger_is_right(
    model: RealModel, selector_redis: Any, tmp_path: Path
) -> None:
    bench = SetBench(selector_redis, tmp_path, model, most_tokens=700)
    before = model.counted()
    asked = await bench.run("small.example", small_pages())
    spent, ledger, after = asked.result.spent, await bench.jobs.spent(), model.counted()
    assert spent.attempts >= 1 and not asked.in_use
    if asked.versions:  # by luck: then it passed the gate on pages that it never saw
        assert asked.result.state == "probation" and asked.result.report.passed  # type: ignore[union-attr]
    else:
        assert asked.result.state == "failed" and sum(asked.rules.values()) > 0
    assert ledger["calls"] == spent.attempts
    assert ledger["tokens"] == spent.tokens_in + spent.tokens_out
    assert ledger["micro"] == spent.tokens_in * PRICE_IN + spent.tokens_out * PRICE_OUT
    assert spent.tokens_in == after["in"] - before["in"]
    await bench.llm.close()


async def test_rules_are_not_harmed_by_a_model_that_is_wrong(
    model: RealModel, selector_redis: Any, tmp_path: Path
) -> None:
    bench = SetBench(selector_redis, tmp_path, model, most_tokens=700)
    asked = await bench.run("small.example", small_pages(), mode="rules_then_llm")
    assert (asked.result.state, asked.result.made_by) == ("probation", "rule"), asked.result.reason
    await bench.llm.close()


async def test_last_resort_stores_nothing_that_does_not_stand_on_the_page(
    model: RealModel, selector_redis: Any, tmp_path: Path
) -> None:
    bench = DirectBench(tmp_path, selector_redis, of(model))
    try:
        result = await bench.run(story_page())
        assert result in ("unusable", "not_grounded", "no_article", "grounded")
        shown = story_page().decode()
        for article in await bench.articles():
            assert all(line in shown for line in article.content.split("\n\n"))
        assert bench.stats[metrics.LLM_CALLS] == 1
        ledger = await Jobs(selector_redis, limits(), clock=lambda: bench.clock).spent()
        counted = sum(bench.stats[f"llm/tokens/{way}"] for way in ("in", "out"))
        assert ledger["tokens"] == counted > 0
        assert await selector_redis.hlen(keys.DIRECT) == 0, "it is not asked about again"
    finally:
        await bench.llm.close()
        await bench.services.store.close()
        bench.services.raw.close()
