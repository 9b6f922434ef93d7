"""``/api/events``: events of articles as they are told, as Server-Sent Events.

They come from the stream in Redis, whose ids are theirs: a listener that comes back with
``Last-Event-ID`` is told what happened meanwhile, as far as the stream reaches back.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import orjson
from fastapi import FastAPI, Header, Request
from fastapi import Query as Parameter
from fastapi.responses import Response, StreamingResponse
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException

from newscrawler.api import models
from newscrawler.api.data import DataReader
from newscrawler.store.events import STREAM

MEDIA = "text/event-stream"
#: Seconds between two looks at the stream, and between two signs of life.
LOOK_S, ALIVE_S = 1.0, 15.0
#: Milliseconds after which a listener whose connection broke comes back.
RETRY_MS = 3_000
_BATCH = 200
_ID = r"^[0-9]{1,19}-[0-9]{1,19}$"
EventType = Literal["article.new", "article.updated", "article.gone"]


def add_listening(app: FastAPI, reader: DataReader) -> None:
    limit = reader.deps.limits.listeners
    listening: set[object] = set()

    @app.get(
        "/api/events",
        summary="New, changed and gone articles as they happen (Server-Sent Events)",
        tags=["articles"],
        response_class=Response,
        responses={
            **models.errors(422, 429, 503),
            200: {"content": {MEDIA: {"schema": {"type": "string"}}}},
        },
    )
    async def events(
        request: Request,
        type: Annotated[list[EventType] | None, Parameter(description="only these")] = None,
        site: Annotated[list[str] | None, Parameter(description="site ids, any of them")] = None,
        last_event_id: Annotated[
            str | None, Header(pattern=_ID, description="the last that was received")
        ] = None,
        since: Annotated[
            str | None, Parameter(pattern=_ID, description="the same, for a first request")
        ] = None,
    ) -> Response:
        registry = reader.deps.registry
        if registry is None:
            raise HTTPException(503, reader.deps.redis_error or "no Redis")
        if len(listening) >= limit:
            text = f"{limit} listeners already: try again later"
            raise HTTPException(429, text, {"Retry-After": "30"})
        me = object()
        listening.add(me)  # before anything is awaited: no more than the limit come in
        try:
            listener = Listener(registry.client, set(type or ()), set(site or ()))
            await listener.start(last_event_id or since)
        except BaseException:
            listening.discard(me)
            raise

        async def told() -> AsyncIterator[str]:
            try:
                async for part in listener.parts(request, app.state.ending):
                    yield part
            finally:
                listening.discard(me)

        return StreamingResponse(
            told(),
            media_type=MEDIA,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )


class Listener:
    def __init__(self, client: Any, types: set[str], sites: set[str]) -> None:
        self._client = client
        self._types, self._sites = types, sites
        self._last = "0-0"
        self._has_gap = False

    async def start(self, last: str | None) -> None:
        """After the event ``last``; None: from now on. Raises redis' own errors."""
        if last is None:
            newest = await self._client.xrevrange(STREAM, count=1)
            self._last = _text(newest[0][0]) if newest else "0-0"
            return
        self._last = last
        oldest = await self._client.xrange(STREAM, count=1)
        if oldest and _order(_text(oldest[0][0])) > _order(last):
            self._has_gap = True

    async def parts(self, request: Request, ending: asyncio.Event) -> AsyncIterator[str]:
        """Until the listener goes, or the server is about to end."""
        yield f"retry: {RETRY_MS}\n\n"
        if self._has_gap:
            yield "event: gap\ndata: {}\n\n"
        said_at = time.monotonic()
        while not ending.is_set() and not await request.is_disconnected():
            try:
                found = await self._client.xread({STREAM: self._last}, count=_BATCH)
            except RedisError:
                return  # the listener comes back, and is told what Redis says then
            rows = found[0][1] if found else []
            for name, fields in rows:
                self._last = _text(name)
                event = {_text(key): _text(value) for key, value in fields.items()}
                if self._is_wanted(event):
                    yield f"id: {self._last}\nevent: {event['type']}\ndata: {_line(event)}\n\n"
                    said_at = time.monotonic()
            if time.monotonic() - said_at > ALIVE_S:
                yield f": {self._last}\n\n"
                said_at = time.monotonic()
            if len(rows) < _BATCH:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ending.wait(), LOOK_S)

    def _is_wanted(self, event: dict[str, str]) -> bool:
        return (not self._types or event.get("type") in self._types) and (
            not self._sites or event.get("site") in self._sites
        )


def _line(event: dict[str, str]) -> str:
    """JSON in one line: a line end in a title is written as an escape."""
    return orjson.dumps(event).decode()


def _order(name: str) -> tuple[int, int]:
    ms, _, number = name.partition("-")
    return int(ms), int(number)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
