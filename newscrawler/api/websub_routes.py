"""The callback of WebSub: hubs ask whether a subscription is meant, and send what is new of a feed.

The address holds a token of 192 bits; what is sent must be signed with the subscription's secret.
Nothing of a body is read here: it is queued for a worker, which reads it as a fetched feed.
"""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import FastAPI, HTTPException, Path, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.datastructures import QueryParams

from newscrawler.api.data import DataReader
from newscrawler.api.limits import BodyTooLarge
from newscrawler.api.rate import Rate
from newscrawler.crawl.websub import Subscription, Subscriptions, is_signed, public_url
from newscrawler.utils.numbers import whole_number

logger = logging.getLogger(__name__)

#: Requests of one subscription in a minute.
PER_MINUTE = 60
_MOST_SECONDS = 10**10

Token = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{20,64}$")]


class Callback:
    """:param reader: of the server's parts; Redis may be away"""

    def __init__(self, reader: DataReader) -> None:
        self._deps = reader.deps
        self._rate = Rate(PER_MINUTE)

    async def known(self, token: str) -> tuple[Subscriptions, Subscription]:
        """:raises HTTPException: 503 without Redis, 410 for no address of ours, 429 for too many"""
        registry = self._deps.registry
        if registry is None:
            raise HTTPException(503, self._deps.redis_error or "no Redis")
        subscriptions = Subscriptions(registry.client)
        sub = await subscriptions.of_token(token)
        if sub is None:  # 410 tells a hub that it is over (WebSub 7)
            raise HTTPException(410, "no such subscription")
        if wait_s := self._rate.take(token):
            raise HTTPException(429, "too many requests", {"Retry-After": str(wait_s)})
        return subscriptions, sub

    async def verify(self, token: str, asked: QueryParams) -> str:
        """Answers a hub that asks, or that says no (WebSub 5.2, 5.3).

        :raises HTTPException: 404, this was not asked for
        """
        subscriptions, sub = await self.known(token)
        topic, mode = asked.get("hub.topic", ""), asked.get("hub.mode", "")
        if mode == "denied":
            if topic == sub.topic:
                await subscriptions.denied(sub, asked.get("hub.reason", ""))
            return ""
        challenge, lease = asked.get("hub.challenge", ""), asked.get("hub.lease_seconds", "")
        seconds = whole_number(lease, _MOST_SECONDS) or 0
        if not challenge or not await subscriptions.verified(sub, mode, topic, seconds):
            raise HTTPException(404, "this was not asked for")
        return challenge

    async def take(self, token: str, request: Request) -> None:
        """A wrong signature is answered like a right one (WebSub 7.1), and nothing is done.

        :raises HTTPException: 410, the subscription is over; 503, the feed cannot be kept just now
        """
        subscriptions, sub = await self.known(token)
        try:
            body = await request.body()
        except BodyTooLarge as exc:
            logger.warning("A push is too large feed=%s most=%d", sub.feed, exc.most)
            await subscriptions.too_large(sub, exc.most)
            raise
        if not sub.is_active(subscriptions.clock()):
            raise HTTPException(410, "the subscription is over")
        if not is_signed(body, sub.secret, request.headers.get("x-hub-signature", "")):
            logger.warning("A push with a wrong signature is dropped feed=%s", sub.feed)
        elif await subscriptions.push(sub, body) == "full":
            raise HTTPException(503, "come again", {"Retry-After": "60"})


def add_websub(app: FastAPI, reader: DataReader) -> None:
    """Nothing is there unless PUBLIC_URL is set."""
    settings = reader.deps.settings
    if settings is None or not public_url(settings):
        return
    callback = Callback(reader)

    @app.get("/websub/{token}", include_in_schema=False)
    async def verify(request: Request, token: Token) -> Response:
        told = await callback.verify(token, request.query_params)
        return PlainTextResponse(told, headers={"Cache-Control": "no-store"})

    @app.post("/websub/{token}", include_in_schema=False, status_code=202)
    async def pushed(request: Request, token: Token) -> Response:
        await callback.take(token, request)
        return Response(status_code=202)
