"""Articles of a time in which a set did not fit: they are parsed again from stored pages.
The queue and the reports."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from newscrawler.selectorsets import keys

#: A repair reads a window of the raw store; a worker that died in it is followed by
#: another after this.
LOCK_MS = 10 * 60_000
_KEPT = 20


@dataclass(frozen=True)
class Repair:
    """Pages of ``domain`` fetched at or after ``since_ms``, for the set ``version``."""

    domain: str
    since_ms: int
    version: str
    token: str


class Repairs:
    """``client`` is a redis.asyncio client."""

    def __init__(self, client: Any, *, clock: Callable[[], float] = time.time) -> None:
        self.client = client
        self._clock = clock

    async def queue(self, domain: str, since_ms: int, version: int | str) -> None:
        known = await self.client.hget(keys.REPAIRS, domain)
        since = min(since_ms, json.loads(known)["since_ms"]) if known else since_ms
        await self.client.hset(
            keys.REPAIRS, domain, json.dumps({"since_ms": since, "version": str(version)})
        )

    async def waiting(self) -> bool:
        return bool(await self.client.hlen(keys.REPAIRS))

    async def take(self, domain: str | None = None) -> Repair | None:
        """One that nobody is at; None when there is none."""
        rows = await self.client.hgetall(keys.REPAIRS)
        for raw, value in rows.items():
            name = keys.text(raw)
            if domain not in (None, name):
                continue
            token = secrets.token_hex(8)
            if await self.client.set(_lock(name), token, nx=True, px=LOCK_MS):
                row = json.loads(value)
                return Repair(name, int(row["since_ms"]), row["version"], token)
        return None

    async def done(self, repair: Repair, report: dict[str, Any]) -> None:
        row = await self.client.hget(keys.REPAIRS, repair.domain)
        if (
            row and json.loads(row)["version"] == repair.version
        ):  # else another set was made meanwhile: once more
            await self.client.hdel(keys.REPAIRS, repair.domain)
        entry = {
            "at_ms": round(self._clock() * 1000),
            "since_ms": repair.since_ms,
            "version": repair.version,
            **report,
        }
        await self.client.lpush(keys.repairs(repair.domain), json.dumps(entry, ensure_ascii=False))
        await self.client.ltrim(keys.repairs(repair.domain), 0, _KEPT - 1)
        if await self.client.get(_lock(repair.domain)) == repair.token.encode():
            await self.client.delete(_lock(repair.domain))

    async def reports(self, domain: str) -> list[dict[str, Any]]:
        """Newest first."""
        return [json.loads(row) for row in await self.client.lrange(keys.repairs(domain), 0, -1)]


def _lock(domain: str) -> str:
    return keys.lock(f"repair:{domain}")
