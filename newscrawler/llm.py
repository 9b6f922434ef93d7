"""A model behind any OpenAI-compatible server: one question in, checked JSON and token counts out.

The openai SDK does the protocol; retries are ours, as the SDK's would spend calls that no budget
has seen. "Accepted" is not "enforced" (Ollama's cloud takes a schema and ignores it), so the answer
is always parsed and validated here, whatever form the server promised.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from newscrawler.utils.display import url_shown

#: How the answer's form is asked for, strictest first. A server that refuses one (400, 404, 422
#: naming response_format) is asked by the next from then on.
MODES = ("json_schema", "json_object", "plain")

#: How servers say that a question is longer than their model takes: llama.cpp, OpenAI and vLLM,
#: Gemini, others.
_TOO_LONG = re.compile(
    r"""exceed_context_size | context_length_exceeded | exceeds\ the\ (?:available\ )?context
    | maximum\ context\ length | exceeds\ the\ maximum\ number\ of\ tokens
    | (?:prompt|input)\ is\ too\ long""",
    re.VERBOSE | re.IGNORECASE,
)
#: The same error's figures, where it has them: what the model takes, what it was asked.
_LIMIT = re.compile(
    r"(?:n_ctx\W+|context size \(|maximum context length (?:is|of) |tokens allowed \()(\d+)"
)
_ASKED = re.compile(r"(?:n_prompt_tokens\W+|request \(|resulted in |requested |count \()(\d+)")
#: Left free when a question is cut to a limit: the shorter text may have more tokens a character.
_CUT = 0.9

#: Full jitter below these many seconds before attempt 2 and 3.
BACKOFF_S = (1.0, 4.0, 15.0)
#: A server that asks for a longer pause is left alone: the job's cool-down is the
#: better waiting room.
LONGEST_WAIT_S = 60.0
BREAKER_FAILURES = 5
BREAKER_OPEN_S = 600.0


class LLMError(Exception):
    """No usable answer. ``kind``: config | auth | busy | server | network | refused |
    unusable | too_long (LLM.most_chars says what fits) | request."""

    def __init__(self, kind: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s


#: How long a length that a server refused is kept.
LENGTH_KEPT_S = 86_400.0
#: Characters beside the system prompt below which no length is learnt: a server that refuses so
#: short a question refuses for another reason, and nothing could be asked with less.
LEAST_CHARS = 1_000


@dataclass
class Usage:
    """What one question cost: every HTTP attempt counts, answered or not. ``unread``: attempts
    that the server refused for their form or length, before a model read a token."""

    attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    unread: int = 0


@dataclass
class ModelAnswer:
    data: dict[str, Any]
    text: str
    mode: str  # of MODES: the form that was answered in
    model: str
    usage: Usage = field(default_factory=Usage)


#: Called before each HTTP attempt with the estimated tokens in and out; raises to forbid
#: the call (budget).
Reserve = Callable[[int, int], Awaitable[None]]


def estimate_tokens(text: str) -> int:
    """Safe upper estimate: trimmed HTML measured 3.21 characters a token, CJK down to 1.78;
    bytes / 2.5 covers both."""
    return int(len(text.encode("utf-8", "replace")) / 2.5) + 8


def first_json_object(text: str) -> dict[str, Any]:
    """The first balanced ``{...}`` of an answer; fences and prose around it are ignored.

    :raises ValueError: there is none
    """
    decoder = json.JSONDecoder(strict=False)
    for match in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise ValueError("no JSON object in the answer")


class LLM:
    """One model. ``timeout_s`` is for the whole of one attempt: a slow drip of bytes ends too."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        model: str,
        timeout_s: float = 45.0,
        *,
        backoff_s: tuple[float, ...] = BACKOFF_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.shown_url = url_shown(self.base_url)  # for messages
        self.model = model
        self.timeout_s = timeout_s
        self.mode = MODES[0]  # the strictest; only goes down
        #: Characters of a question, system prompt included, that this server took no more of; None
        #: until it refused one.
        self._most_chars: int | None = None
        self._learned_at = 0.0
        self._api_key = api_key
        self._backoff_s = backoff_s
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()
        self._failures = 0
        self._open_until = 0.0
        self._client: Any = None

    @property
    def most_chars(self) -> int | None:
        """Forgotten after a day: the server may have another model by then."""
        if self._clock() - self._learned_at > LENGTH_KEPT_S:
            self._most_chars = None
        return self._most_chars

    @property
    def configured(self) -> bool:
        return bool(self.base_url and self.model)

    def start_from(self, mode: str) -> None:
        """Another worker found out that this server takes no stricter form."""
        if mode in MODES and MODES.index(mode) > MODES.index(self.mode):
            self.mode = mode

    def _connect(self) -> Any:
        if not self.base_url:
            raise LLMError(
                "config", "no model is configured: set LLM_BASE_URL (and LLM_MODEL, LLM_API_KEY)"
            )
        if not self.model:
            raise LLMError(
                "config",
                f"LLM_BASE_URL is {self.shown_url} but LLM_MODEL is empty: set it to a model there",
            )
        if not self._api_key and not _is_local(self.base_url):
            raise LLMError(
                "config", f"{self.shown_url} needs a key: set the environment variable LLM_API_KEY"
            )
        if self._client is None:
            from openai import (
                AsyncOpenAI,
                Timeout,
            )  # 0.5 s of import that a worker without a model need not pay

            self._client = AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._api_key or "none",  # local servers take any; the SDK insists on one
                timeout=Timeout(self.timeout_s, connect=5.0),
                max_retries=0,
            )
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def ask(
        self,
        system: str,
        user: str,
        schema: dict[str, Any],
        *,
        max_tokens: int = 1200,
        reserve: Reserve | None = None,
        usage: Usage | None = None,
    ) -> ModelAnswer:
        """The answer as an object that satisfies ``schema``. Raises LLMError; ``usage`` is
        filled in either case."""
        usage = usage if usage is not None else Usage()
        client = self._connect()
        if self._clock() < self._open_until:
            raise LLMError(
                "server",
                f"{self.shown_url} failed {BREAKER_FAILURES} times in a row: left alone for "
                f"{self._open_until - self._clock():.0f} s",
                self._open_until - self._clock(),
            )
        estimate = estimate_tokens(system + user)
        tries = 0
        while True:
            if reserve is not None:
                await reserve(estimate, max_tokens)
            usage.attempts += 1
            try:
                reply = await self._attempt(client, system, user, schema, max_tokens)
                self._failures = 0
                return self._read(reply, schema, usage)
            except LLMError as exc:
                if exc.kind in ("step", "too_long"):
                    usage.unread += 1
                if exc.kind == "too_long":
                    least = len(system) + LEAST_CHARS
                    chars = len(system + user)
                    self._learn_length(_said(exc.__cause__), chars, max_tokens, least)
                if (
                    exc.kind == "step"
                ):  # the server does not know this form: the next form is no retry
                    continue
                tries += 1
                if exc.kind in ("busy", "server", "network"):
                    self._note_failure()
                await self._wait_or_raise(exc, tries)

    async def _wait_or_raise(self, exc: LLMError, tries: int) -> None:
        if exc.kind not in ("busy", "server", "network") or tries >= len(self._backoff_s):
            raise exc
        if exc.retry_after_s is not None:
            if exc.retry_after_s > LONGEST_WAIT_S:
                raise exc
            await self._sleep(exc.retry_after_s)
            return
        await self._sleep(self._rng.uniform(0, self._backoff_s[tries - 1]))

    def _learn_length(self, said: str, chars: int, max_tokens: int, least: int) -> None:
        """``said``: the server's error about a question of ``chars`` characters. Without figures in
        it half of the question is tried next, but never less than ``least``."""
        limit, asked = _LIMIT.search(said), _ASKED.search(said)
        fits = chars // 2
        if limit and asked and int(asked[1]) > 0:
            tokens = max(int(limit[1]) - max_tokens, int(limit[1]) // 2)
            fits = min(int(_CUT * chars * tokens / int(asked[1])), int(_CUT * chars))
        fits = max(fits, least)
        self._most_chars = min(fits, self.most_chars or fits)
        self._learned_at = self._clock()

    def _note_failure(self) -> None:
        self._failures += 1
        if self._failures >= BREAKER_FAILURES:
            self._open_until = self._clock() + BREAKER_OPEN_S
            self._failures = 0

    async def _attempt(
        self, client: Any, system: str, user: str, schema: dict[str, Any], max_tokens: int
    ) -> Any:
        """One HTTP request. Errors come out as LLMError; a refused form as kind "step",
        after the next form was chosen."""
        import openai

        # Minimal: Gemini's strict front end answers 400 to fields that it does not know.
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        if self.mode != "plain":
            body["response_format"] = {"type": self.mode}
        if self.mode == "json_schema":
            form = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"]["json_schema"] = form
        try:
            async with asyncio.timeout(self.timeout_s):
                return await client.chat.completions.create(**body)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as exc:
            raise LLMError(
                "auth", f"{self.shown_url} refused the key ({exc.status_code}): check LLM_API_KEY"
            ) from exc
        except openai.RateLimitError as exc:
            raise LLMError("busy", f"{self.shown_url} answered 429", _retry_after(exc)) from exc
        except openai.APIStatusError as exc:
            raise self._status_error(exc) from exc
        except openai.APITimeoutError as exc:  # a connection error to the SDK
            raise LLMError(
                "network", f"no answer from {self.shown_url} in {self.timeout_s:g} s"
            ) from exc
        except openai.APIConnectionError as exc:
            cause = exc.__cause__ or exc
            raise LLMError("network", f"{self.shown_url} cannot be reached: {cause}") from exc
        except TimeoutError as exc:
            raise LLMError(
                "network", f"no answer from {self.shown_url} in {self.timeout_s:g} s: {exc!r}"
            ) from exc
        except (openai.OpenAIError, ValueError) as exc:  # ValueError: a body that is not JSON
            raise LLMError(
                "unusable", f"{self.shown_url} sent what is no completion: {exc!r}"
            ) from exc

    def _status_error(self, exc: Any) -> LLMError:
        status, text = exc.status_code, str(exc)[:300]
        if status in (400, 413, 422) and (status == 413 or _TOO_LONG.search(_said(exc))):
            return LLMError("too_long", f"{self.shown_url} takes no question so long: {text}")
        if (
            status in (400, 404, 422)
            and self.mode != "plain"
            and re.search(r"response_format|json_schema|json_object|grammar|schema", text)
        ):
            self.mode = MODES[MODES.index(self.mode) + 1]
            return LLMError("step", text)
        if status >= 500 or status in (408, 409):
            return LLMError("server", f"{self.shown_url} answered {status}", _retry_after(exc))
        return LLMError("request", f"{self.shown_url} refused the request ({status}): {text}")

    def _read(self, reply: Any, schema: dict[str, Any], usage: Usage) -> ModelAnswer:
        spent = getattr(reply, "usage", None)
        usage.tokens_in += int(getattr(spent, "prompt_tokens", 0) or 0)
        usage.tokens_out += int(getattr(spent, "completion_tokens", 0) or 0)
        choices = getattr(reply, "choices", None)
        if not choices or choices[0].message is None:
            raise LLMError("unusable", "the answer has no choices")
        choice = choices[0]
        if getattr(choice.message, "refusal", None):
            raise LLMError("refused", f"the model refused: {str(choice.message.refusal)[:200]}")
        text = choice.message.content or ""
        import jsonschema  # 0.09 s that only a process with a question pays

        try:
            data = first_json_object(text)
            jsonschema.validate(data, schema)
        except (ValueError, jsonschema.ValidationError) as exc:
            cut = " (cut off at max_tokens)" if choice.finish_reason == "length" else ""
            reason = exc.message if isinstance(exc, jsonschema.ValidationError) else str(exc)
            raise LLMError(
                "unusable", f"the answer is not the JSON that was asked for{cut}: {reason[:200]}"
            ) from exc
        return ModelAnswer(
            data=data, text=text[:8000], mode=self.mode, model=self.model, usage=usage
        )


def _said(exc: Any) -> str:
    """What a server said of an error: the SDK's text has its message alone, the figures may stand
    in fields beside it."""
    return f"{exc} {getattr(exc, 'body', None) or ''}"


def _is_local(base_url: str) -> bool:
    return bool(re.match(r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/]|$)", base_url))


def _retry_after(exc: Any) -> float | None:
    """Seconds; a date or nonsense counts as not said."""
    try:
        return max(0.0, float(exc.response.headers.get("retry-after", "")))
    except ValueError:
        return None
