"""Events and digests by POST to an address of the operator's, signed as alerts are.

An answer of 2xx says that the receiver has them. What says that it is away or not ready (no
connection, 3xx, 401, 403, 404, 408, 425, 429, 502, 503, 504) is raised: the events are offered
again. Another 4xx is a refusal of an event; another 5xx is one when it was given to the same event
several times. The address may hold a secret, so it is in no message.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from newscrawler.crawl.signature import SIGNATURE_HEADER, sign
from newscrawler.store.events import Event, EventsRefused
from newscrawler.utils.display import shown

if TYPE_CHECKING:
    import aiohttp
    from scrapy.settings import BaseSettings

_AWAY = frozenset({401, 403, 404, 408, 425, 429, 502, 503, 504})
#: Bytes of an answer that are read, for its reason.
_READ = 500


class ReceiverAway(Exception):
    """The text says what it answered, and names its host."""


def checked_url(name: str, url: str) -> str:
    """:raises ValueError: no http(s) address; ``name`` is where it comes from"""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or not url.isprintable() or " " in url:
        raise ValueError(f"{name}: must be an http(s) address")
    return url


class Post:
    """POSTs of JSON to one address."""

    def __init__(self, url: str, secret: str, timeout_s: float = 10.0) -> None:
        self._url = url
        self._secret = secret
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None
        self.host = urlsplit(url).hostname or "?"

    async def send(self, message: dict[str, Any], headers: dict[str, str]) -> tuple[int, str]:
        """Status and begin of the answer. :raises ReceiverAway: there is none"""
        import aiohttp  # what only looks at sinks and ways of telling does without it

        body = json.dumps(message, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "newscrawler", **headers}
        if self._secret:
            headers[SIGNATURE_HEADER] = sign(body, self._secret)
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._timeout_s)
            self._session = aiohttp.ClientSession(timeout=timeout)
        try:
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                text = await answer.content.read(_READ)
                return answer.status, shown(text.decode(errors="replace")).strip()
        except TimeoutError as exc:
            raise ReceiverAway(f"{self.host} does not answer in time") from exc
        except aiohttp.ClientConnectorError as exc:
            reason = exc.os_error.strerror or type(exc).__name__
            raise ReceiverAway(f"{self.host} cannot be reached: {reason}") from exc
        except aiohttp.ClientError as exc:
            raise ReceiverAway(f"{self.host}: {type(exc).__name__}") from exc

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class WebhookSink:
    """``{"events": [...]}`` with up to ``batch`` events, see Event.plain. A batch that is refused
    is sent event by event, to find out which."""

    def __init__(self, post: Post, batch: int, tries: int) -> None:
        self.batch = batch
        self._post = post
        self._tries = tries
        self._singly = False
        # Of the delivery that is at work, over its repetitions:
        self._told: set[str] = set()
        self._refused: dict[str, str] = {}
        self._failures: dict[str, int] = {}

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        url = checked_url("EVENT_WEBHOOK_URL", settings.get("EVENT_WEBHOOK_URL"))
        secret = os.environ.get(settings["EVENT_WEBHOOK_SECRET_ENV"], "")
        post = Post(url, secret, settings.getfloat("EVENT_WEBHOOK_TIMEOUT_S"))
        return cls(
            post,
            max(1, settings.getint("EVENT_WEBHOOK_BATCH")),
            max(1, settings.getint("EVENT_WEBHOOK_TRIES")),
        )

    async def deliver(self, events: Sequence[Event]) -> None:
        """:raises EventsRefused: these were refused, or were answered 5xx too often; the receiver
            has all the others
        :raises ReceiverAway: it does not answer, or with 5xx
        """
        left = [e for e in events if e.id not in self._told and e.id not in self._refused]
        if len(left) > 1 and not self._singly:
            status, _ = await self._send(left)
            if status < 300:
                left = []
            else:
                self._singly = True  # one of them is the reason
        for event in left:
            await self._deliver_one(event)
        refused = self._refused
        self._told, self._refused, self._failures, self._singly = set(), {}, {}, False
        if refused:
            raise EventsRefused(refused)

    async def _deliver_one(self, event: Event) -> None:
        status, reason = await self._send([event])
        if status < 300:
            self._told.add(event.id)
            return
        if status >= 500:
            self._failures[event.id] = self._failures.get(event.id, 0) + 1
            if self._failures[event.id] < self._tries:
                raise ReceiverAway(f"{self._post.host} answers {status}")
        self._refused[event.id] = f"{status} {reason}".strip()

    async def _send(self, events: Sequence[Event]) -> tuple[int, str]:
        """A status that says yes or no. :raises ReceiverAway: neither"""
        status, reason = await self._post.send({"events": [e.plain() for e in events]}, {})
        if status < 200 or 300 <= status < 400 or status in _AWAY:
            raise ReceiverAway(f"{self._post.host} answers {status}")
        return status, reason

    async def close(self) -> None:
        await self._post.close()
