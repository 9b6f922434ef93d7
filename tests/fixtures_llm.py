"""A scripted model on loopback that speaks the OpenAI protocol, for the real SDK to talk to.

What it answers is set by ``ScriptedLLM.script``: a list of steps, each used once, the last for
ever. A step is a mode name or a callable that gets the request's JSON body and returns the answer's
text. It states no accuracy of any model: it is made by rule.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

Step = str | Callable[[dict[str, Any]], str]


class ScriptedLLM:
    def __init__(self) -> None:
        self.script: list[Step] = ['{"ok": true}']
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.refused_forms: set[str] = set()  # response_format types that are answered with 400
        #: A longer question (characters of all messages) is refused in the words of ``too_long``.
        self.context_chars: int | None = None
        self.too_long = (
            "request ({asked} tokens) exceeds the available context size ({limit} tokens), try"
            " increasing it"
        )
        self.base_url = ""
        self.slow_s = 30.0
        self.late = "{}"  # what "slow" answers after all
        self._release = threading.Event()

    def prompt(self, index: int = -1) -> str:
        """The user message of a request."""
        return str(self.requests[index]["messages"][-1]["content"])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        form = (body.get("response_format") or {}).get("type")
        if form in self.refused_forms:
            return _error(
                400, f"Invalid parameter: 'response_format' of type '{form}' is not supported"
            )
        chars = sum(len(message["content"]) for message in body["messages"])
        if self.context_chars is not None and chars > self.context_chars:
            return _error(
                400, self.too_long.format(asked=chars // 3, limit=self.context_chars // 3)
            )
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if callable(step):
            return _completion(step(body))
        return await self._mode(step, request)

    async def _mode(  # noqa: C901, PLR0912 - one branch a fault that can be scripted
        self, mode: str, request: web.Request
    ) -> web.StreamResponse:
        name, _, argument = mode.partition(":")
        if name == "status":
            code, _, retry_after = argument.partition(":")
            return _error(
                int(code), "scripted", {"Retry-After": retry_after} if retry_after else {}
            )
        if name == "slow":
            for _ in range(int(self.slow_s * 20)):
                if self._release.is_set():
                    break
                await asyncio.sleep(0.05)
            return _completion(self.late)
        if name == "drip":  # a byte now and then: no read ever times out by itself
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for _ in range(int(self.slow_s * 20)):
                if self._release.is_set():
                    break
                try:
                    await response.write(b" ")
                except ConnectionError:
                    break
                await asyncio.sleep(0.05)
            return response
        if name == "reset":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if name == "refusal":
            return _completion(None, refusal="I cannot help with that.")
        if name == "empty":
            return web.json_response(
                {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": []}
            )
        if name == "garbage":
            return web.Response(text="<html>not json</html>", content_type="application/json")
        if name == "truncated":
            return _completion('{"title": [{"css": "h1.ti', finish="length")
        return _completion(mode)

    def release(self) -> None:
        self._release.set()


def _completion(text: str | None, finish: str = "stop", refusal: str | None = None) -> web.Response:
    return web.json_response(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish,
                    "message": {"role": "assistant", "content": text, "refusal": refusal},
                }
            ],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050},
        }
    )


def _error(code: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "scripted", "code": code}},
        status=code,
        headers=headers or {},
    )


async def _serve(server: ScriptedLLM) -> web.AppRunner:
    app = web.Application(client_max_size=32 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.base_url = f"http://{host}:{port}/v1"
    return runner


@pytest.fixture
async def scripted_llm() -> AsyncIterator[ScriptedLLM]:
    """In the test's own loop: for tests that talk to it directly."""
    server = ScriptedLLM()
    runner = await _serve(server)
    yield server
    server.release()
    await runner.cleanup()


@pytest.fixture
def scripted_llm_thread() -> Iterator[ScriptedLLM]:
    """In a thread of its own: for tests whose client is another process (a crawl)."""
    server = ScriptedLLM()
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    holder: dict[str, web.AppRunner] = {}

    def run() -> None:
        asyncio.set_event_loop(loop)
        holder["runner"] = loop.run_until_complete(_serve(server))
        ready.set()
        loop.run_forever()
        loop.run_until_complete(holder["runner"].cleanup())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10), "the scripted model did not start"
    yield server
    server.release()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
