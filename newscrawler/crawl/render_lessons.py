"""Which domains fill their pages by scripts, as the fleet has learnt it, in Redis.

A page that is an empty frame (web.script_shell) is tried with the browser. The first article that
comes of it is the lesson: the domain's empty frames are read so from then on. Tries that bring
nothing end it for a week. ``scrapy sites render SITE auto`` takes a lesson back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

KEY = "{render}:lessons"  # hash: domain -> Lesson as JSON

#: Tries without an article after which a domain is left alone, and failures in a row after which
#: a lesson is forgotten.
TRIALS, FAILURES = 5, 20
#: How long it is left alone, seconds.
REST_S = 7 * 86_400.0
#: Seconds that a worker goes on with what it has read: others' lessons are known then.
_FRESH_S = 30.0


@dataclass(frozen=True, slots=True)
class Lesson:
    """``state``: render (its empty frames are read with the browser), tried (not known yet) or rest
    (nothing came of it). ``at_s``: since when, of the Unix epoch. ``url``: the page that taught it.
    ``misses``: tries in a row that brought no article."""

    state: str
    at_s: int
    url: str
    misses: int = 0

    def text(self) -> str:
        """For people."""
        day = f"{datetime.fromtimestamp(self.at_s, UTC):%Y-%m-%d %H:%M} UTC"
        if self.state == "render":
            return f"learnt {day}: with a browser an article came of {self.url}"
        if self.state == "rest":
            end = datetime.fromtimestamp(self.at_s + REST_S, UTC)
            return (
                f"given up {day} after {self.misses} pages without an article, the last {self.url};"
                f" tried again from {end:%Y-%m-%d}"
            )
        return f"tried {self.misses} times without an article, the last {self.url}"


class RenderLessons:
    """:param client: an asyncio client of Redis that several tasks may share
    :param clock: seconds since the epoch"""

    def __init__(self, client: Any, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, Lesson] = {}
        self._read_at = -_FRESH_S

    async def of(self, domain: str) -> Lesson | None:
        """None: nothing was tried, or long enough ago.

        :raises redis.RedisError: it cannot be asked
        """
        if time.monotonic() - self._read_at >= _FRESH_S:
            self._read_at = time.monotonic()
            self._known = await self.all()
        return self._valid(self._known.get(domain))

    async def one(self, domain: str) -> Lesson | None:
        """As it stands now, for people."""
        data = await self._client.hget(KEY, domain)
        return None if data is None else Lesson(**json.loads(data))

    async def all(self) -> dict[str, Lesson]:
        found = await self._client.hgetall(KEY)
        return {domain.decode(): Lesson(**json.loads(data)) for domain, data in found.items()}

    async def note(self, domain: str, url: str, *, brought_article: bool) -> Lesson | None:
        """What came of one page; the new lesson where it changes anything."""
        before = self._valid(await self.one(domain))
        after = self._after(before, url, brought_article)
        if after is None or after == before:
            return None
        await self._client.hset(KEY, domain, json.dumps(asdict(after)))
        self._known[domain] = after
        return None if before is not None and after.state == before.state else after

    def _after(self, before: Lesson | None, url: str, brought_article: bool) -> Lesson | None:
        now_s = int(self._clock())
        is_learnt = before is not None and before.state == "render"
        if brought_article:
            if before is not None and is_learnt:
                return replace(before, misses=0)
            return Lesson("render", now_s, url)
        misses = 1 + (before.misses if before is not None else 0)
        if misses >= (FAILURES if is_learnt else TRIALS):
            return Lesson("rest", now_s, url, misses)
        if before is not None and is_learnt:
            return replace(before, misses=misses)
        return Lesson("tried", now_s, url, misses)

    async def forget(self, domain: str) -> bool:
        """Whether there was anything to forget."""
        self._known.pop(domain, None)
        return bool(await self._client.hdel(KEY, domain))

    def _valid(self, lesson: Lesson | None) -> Lesson | None:
        is_over = (
            lesson is not None and lesson.state == "rest" and self._clock() - lesson.at_s > REST_S
        )
        return None if is_over else lesson
