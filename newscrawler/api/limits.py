"""What one request may cost: bytes of its body, seconds of its search, searches at
work at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newscrawler.api.guard import refuse
from newscrawler.utils.numbers import is_digits, whole_number

#: After "too large" so much of the body is still taken, for so long: a connection that is closed
#: with unread bytes is reset, and the client would see that instead of the answer.
_LINGER_BYTES, _LINGER_S = 16_000_000, 2.0


@dataclass(frozen=True, slots=True)
class RequestLimits:
    body_bytes: int = 1_000_000  # the largest form is a selector set in an editor
    login_bytes: int = 8_192  # open to everybody: a token and an address
    search_s: float = 5.0  # of one search, and of waiting for one's turn
    searches: int = 2  # at work at once; the store has threads left for articles then
    searches_waiting: int = 8
    listeners: int = 32  # of /api/events at once
    per_minute: int = 0  # requests of one token; 0 = any number

    def is_told(self, path: str) -> bool:
        """Whether the route is to learn of a body that is announced as too large: a push, of which
        the operator is told."""
        return path.startswith("/websub/")

    def body_of(self, path: str) -> int:
        return self.login_bytes if path == "/login" else self.body_bytes


class TooManySearches(Exception):
    """Others search already, and others wait: come again in a second."""


class Turns:
    """Lets so many work at once; some more may wait."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._turns = asyncio.Semaphore(limits.searches)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """:raises TooManySearches: too many wait already, or the wait is over"""
        if self._turns.locked() and self._waiting >= self._limits.searches_waiting:
            raise TooManySearches("too many searches at work: try again in a second")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.search_s):
                await self._turns.acquire()
        except TimeoutError:
            raise TooManySearches("too many searches at work: try again in a second") from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()


class BodyTooLarge(HTTPException):
    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(413, f"the body of this request may have {most:,} bytes")


class BodyLimit:
    """Counts the bytes of a body while they are read, whatever was announced, and
    stops at the limit."""

    def __init__(self, app: ASGIApp, limits: RequestLimits) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.limits.body_of(scope["path"])
        received = 0
        is_refused = False

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise BodyTooLarge(most)
            return message

        async def closing(message: Message) -> None:
            """Sends; after "too large" the connection is closed, when the
            client had time to read why."""
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] == 413:
                is_refused = True
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            if not is_refused or message["type"] != "http.response.body":
                await send(message)
                return
            await send({**message, "more_body": True})
            if not message.get("more_body", False):
                await _linger(receive)
                await send({"type": "http.response.body", "body": b""})

        announced = Headers(scope=scope).get("content-length", "")
        # The HTTP parser let only ASCII digits through.
        is_early = not self.limits.is_told(scope["path"]) and is_digits(announced)
        if is_early and whole_number(announced, most) is None:
            await refuse(closing, 413, BodyTooLarge(most).detail)
            return
        await self.app(scope, counted, closing)


async def _linger(receive: Receive) -> None:
    taken = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while taken < _LINGER_BYTES:
                message = await receive()
                taken += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
