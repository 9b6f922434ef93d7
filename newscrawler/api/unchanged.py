"""ETag on answers, and 304 to a client that has them already."""

from __future__ import annotations

import hashlib
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: How long a search took: another figure each time, of an answer that is the same. Quotes and
#: brackets of articles are escaped, so that no text of theirs looks like it.
_TOOK = re.compile(rb'"took_ms":[0-9.eE+-]+|<p class="took">[^<]*</p>')


class Unchanged:
    """Only for answers that are sent as a whole: what is streamed has no end that a digest could
    wait for. The tag is weak, as the bytes may be compressed on the way."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        known = Headers(scope=scope).get("if-none-match")
        start: Message | None = None

        async def tagged(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                if message["status"] == 200 and "etag" not in headers:
                    start = message
                    return
            elif start is not None:
                begun, start = start, None
                if not message.get("more_body", False) and message.get("body"):
                    begun, message = _tagged(begun, message, known)
                await send(begun)
            await send(message)

        await self.app(scope, receive, tagged)


def _tagged(start: Message, body: Message, known: str | None) -> tuple[Message, Message]:
    start = {**start, "headers": list(start["headers"])}
    headers = MutableHeaders(raw=start["headers"])
    digest = hashlib.blake2b(_TOOK.sub(b"", body["body"]), digest_size=12).hexdigest()
    headers["ETag"] = f'W/"{digest}"'
    if not is_same(digest, known):
        return start, body
    for name in ("content-length", "content-type"):
        del headers[name]
    return {**start, "status": 304}, {**body, "body": b""}


def is_same(digest: str, known: str | None) -> bool:
    """RFC 9110 13.1.2: the weak comparison of If-None-Match."""
    if known is None:
        return False
    return known.strip() == "*" or f'"{digest}"' in re.findall(r'"[^"]*"', known)
