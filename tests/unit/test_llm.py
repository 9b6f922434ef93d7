"""The model client against a scripted server on loopback: real SDK, real HTTP."""

from __future__ import annotations

import pytest

from newscrawler.llm import (
    BREAKER_FAILURES,
    LEAST_CHARS,
    LLM,
    LLMError,
    Usage,
    estimate_tokens,
    first_json_object,
)
from tests.fixtures_llm import ScriptedLLM

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def llm(scripted_llm: ScriptedLLM, clock: Clock):
    client = LLM(scripted_llm.base_url, "key", "m", timeout_s=3, clock=clock, sleep=clock.sleep)
    yield client
    await client.close()


async def test_answer_is_parsed_and_tokens_counted(llm: LLM, scripted_llm: ScriptedLLM) -> None:
    answer = await llm.ask("system", "user JSON", SCHEMA)
    assert answer.data == {"ok": True}
    assert (answer.usage.attempts, answer.usage.tokens_in, answer.usage.tokens_out) == (1, 1000, 50)
    sent = scripted_llm.requests[0]
    assert sent["response_format"]["type"] == "json_schema"
    assert set(sent) == {"model", "messages", "temperature", "max_tokens", "response_format"}
    assert scripted_llm.headers[0]["Authorization"] == "Bearer key"


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"ok": true}\n```',
        'Sure! Here it is: {"ok": true} Hope it helps.',
        '{"ok": true}{"ok": false}',
        'The set {a} is: {"ok": true}',
    ],
)
async def test_prose_and_fences_are_read_through(
    llm: LLM, scripted_llm: ScriptedLLM, text: str
) -> None:
    scripted_llm.script = [text]
    assert (await llm.ask("s", "u", SCHEMA)).data == {"ok": True}


@pytest.mark.parametrize(
    ("step", "kind", "attempts"),
    [
        ("truncated", "unusable", 1),
        ("refusal", "refused", 1),
        ("empty", "unusable", 1),
        ("no json here", "unusable", 1),
        ('{"ok": "yes"}', "unusable", 1),
        ('{"ok": true, "extra": 1}', "unusable", 1),
        ('{"ok": null}', "unusable", 1),
        ("garbage", "unusable", 1),
        ("status:401", "auth", 1),
        ("status:403", "auth", 1),
        ("status:400", "request", 1),
        ("status:500", "server", 3),
        ("status:429", "busy", 3),
        ("slow", "network", 3),
        ("drip", "network", 3),
        ("reset", "network", 3),
        ("status:429:3600", "busy", 1),
    ],
)
async def test_bad_answers_become_one_kind_of_error(
    llm: LLM, scripted_llm: ScriptedLLM, step: str, kind: str, attempts: int
) -> None:
    scripted_llm.script = [step]
    usage = Usage()
    with pytest.raises(LLMError) as caught:
        await llm.ask("s", "u", SCHEMA, usage=usage)
    assert caught.value.kind == kind
    assert usage.attempts == attempts == len(scripted_llm.requests)


async def test_retry_after_is_obeyed(llm: LLM, scripted_llm: ScriptedLLM, clock: Clock) -> None:
    scripted_llm.script = ["status:429:7", '{"ok": true}']
    assert (await llm.ask("s", "u", SCHEMA)).usage.attempts == 2
    assert clock.slept == [7.0]


@pytest.mark.parametrize(
    ("refused", "mode"),
    [({"json_schema"}, "json_object"), ({"json_schema", "json_object"}, "plain")],
)
async def test_ladder_goes_down_and_is_remembered(
    llm: LLM, scripted_llm: ScriptedLLM, refused: set[str], mode: str
) -> None:
    scripted_llm.refused_forms = refused
    assert (await llm.ask("s", "u", SCHEMA)).mode == mode
    before = len(scripted_llm.requests)
    assert (await llm.ask("s", "u", SCHEMA)).mode == mode
    assert len(scripted_llm.requests) == before + 1


async def test_every_attempt_is_reserved_before_it_is_made(
    llm: LLM, scripted_llm: ScriptedLLM
) -> None:
    scripted_llm.script = ["status:500"]
    reserved: list[int] = []

    async def reserve(tokens_in: int, tokens_out: int) -> None:
        assert tokens_out == 1200, "the longest answer is reserved too"
        if len(reserved) == 2:
            raise LLMError("budget", "spent")
        reserved.append(tokens_in)

    with pytest.raises(LLMError, match="spent"):
        await llm.ask("s" * 2500, "u", SCHEMA, reserve=reserve)
    assert len(scripted_llm.requests) == len(reserved) == 2
    assert reserved[0] > 1000


async def test_breaker_leaves_a_dead_server_alone(
    llm: LLM, scripted_llm: ScriptedLLM, clock: Clock
) -> None:
    scripted_llm.script = ["status:500"]
    for _ in range(2):
        with pytest.raises(LLMError):
            await llm.ask("s", "u", SCHEMA)
    asked = len(scripted_llm.requests)
    assert asked >= BREAKER_FAILURES
    with pytest.raises(LLMError, match="left alone"):
        await llm.ask("s", "u", SCHEMA)
    assert len(scripted_llm.requests) == asked
    clock.now += 601
    scripted_llm.script = ['{"ok": true}']
    assert (await llm.ask("s", "u", SCHEMA)).data == {"ok": True}


@pytest.mark.parametrize(
    ("url", "key", "model", "names"),
    [
        ("", "k", "m", "LLM_BASE_URL"),
        ("https://llm.example/v1", "k", "", "LLM_MODEL"),
        ("https://llm.example/v1", "", "m", "LLM_API_KEY"),
    ],
)
async def test_missing_configuration_names_the_variable(
    url: str, key: str, model: str, names: str
) -> None:
    with pytest.raises(LLMError, match=names) as caught:
        await LLM(url, key, model).ask("s", "u", SCHEMA)
    assert caught.value.kind == "config"


def test_first_json_object_is_bounded() -> None:
    with pytest.raises(ValueError):
        first_json_object("{" * 5000)
    assert estimate_tokens("tiếng Việt" * 100) > 300


@pytest.mark.parametrize(
    "said",
    [
        "request ({asked} tokens) exceeds the available context size ({limit} tokens), try"
        " increasing it",  # llama.cpp
        "This model's maximum context length is {limit} tokens. However, your messages resulted in"
        " {asked} tokens.",  # OpenAI
        "This model's maximum context length is {limit} tokens. However, you requested {asked}"
        " tokens",  # vLLM
        "The input token count ({asked}) exceeds the maximum number of tokens allowed ({limit}).",
        "prompt is too long",  # no figures: half of it is tried next
    ],
)
async def test_too_long_a_question_says_what_fits(
    llm: LLM, scripted_llm: ScriptedLLM, said: str, clock: Clock
) -> None:
    scripted_llm.context_chars, scripted_llm.too_long = 9_000, said
    usage = Usage()
    with pytest.raises(LLMError) as caught:
        await llm.ask("s" * 100, "u" * 20_000, SCHEMA, max_tokens=600, usage=usage)
    assert (caught.value.kind, usage.attempts, usage.unread) == ("too_long", 1, 1)
    assert llm.most_chars is not None
    most = 7_200 if "{limit}" in said else 10_050  # a chars/3 tokens, 600 of them for the answer
    assert most * 0.85 < llm.most_chars <= most
    assert llm.mode == "json_schema", "a long question is no refused form"
    clock.now += 86_401
    assert llm.most_chars is None, "the server may have another model by then"


async def test_no_length_is_learnt_below_which_nothing_can_be_asked(
    llm: LLM, scripted_llm: ScriptedLLM
) -> None:
    """A proxy that refuses every body."""
    scripted_llm.script = ["status:413"]
    chars = 20_000
    for _ in range(8):
        with pytest.raises(LLMError, match="so long"):
            await llm.ask("s" * 2_000, "u" * (chars - 2_000), SCHEMA)
        assert llm.most_chars is not None
        chars = llm.most_chars
    assert chars == 2_000 + LEAST_CHARS
