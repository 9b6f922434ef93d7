"""Incidents of the fleet and what is to be told of them, in Redis: one incident is one alert,
however many monitors look.

    {fleet}:incidents       hash  "<kind>/<subject>" -> JSON of Incident
    {fleet}:alerts          hash  id -> JSON {alert, tries, next_ms, done}: not told to all yet
    {fleet}:alerts:number   the last id
    {fleet}:alerts:log      list  JSON of the alerts, the newest first, LOGGED of them
    {fleet}:alerts:claim:<id>  text  who tells it just now; expires CLAIM_MS later
    {fleet}:monitor         JSON  when a monitor looked last, and which
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from newscrawler.fleet import scripts
from newscrawler.fleet.alarms import KINDS, Verdict
from newscrawler.fleet.answers import answered
from newscrawler.fleet.registry import TAG, RegistryUnavailable

if TYPE_CHECKING:
    from redis.asyncio import Redis

INCIDENTS = f"{TAG}:incidents"
ALERTS = f"{TAG}:alerts"
NUMBER = f"{TAG}:alerts:number"
LOG = f"{TAG}:alerts:log"
LOGGED = 1_000
LOOKED = f"{TAG}:monitor"
#: An incident of which nothing could be told for so long (its site is gone) is ended, ms.
FORGET_MS = 86_400_000
#: Who was killed while it told somebody holds that alert up for so long.
CLAIM_MS = 120_000
#: Between two attempts to tell: first, and at most; and when it is given up.
_AGAIN_MS, _AGAIN_MOST_MS = 30_000, 600_000
GIVEN_UP_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Incident:
    kind: str
    subject: str
    reason: str
    since_ms: int
    seen_ms: int
    told_ms: int = 0  # 0 = it is not so for long enough yet
    well_ms: int = 0  # since when it is well again, 0 = it is not


@dataclass(slots=True)
class Waiting:
    """An alert that somebody has still to be told."""

    alert: dict[str, Any]
    tries: int = 0
    next_ms: int = 0
    done: list[str] = field(default_factory=list)  # names of the ways that have it

    @property
    def id(self) -> str:
        return str(self.alert["id"])


class Incidents:
    """Every coroutine may raise RegistryUnavailable."""

    def __init__(self, client: Redis) -> None:
        self.client: Any = client

    async def note(self, now_ms: int, verdicts: Iterable[Verdict], listed: Iterable[str]) -> int:
        """A look's verdicts. :returns: how many alerts are to be told

        :param listed: kinds whose bad subjects are all among the verdicts
        """
        whole = set(listed)
        kinds = {
            name: {
                "for_ms": kind.for_s * 1000,
                "calm_ms": kind.calm_s * 1000,
                "listed": kind.is_listed and name in whole,
                "severity": kind.severity,
                "text": kind.text,
                "explain": kind.explain,
            }
            for name, kind in KINDS.items()
        }
        bad, well = [], []
        for verdict in verdicts:
            if verdict.reason:
                bad.append(
                    {"kind": verdict.kind, "subject": verdict.subject, "reason": verdict.reason}
                )
            else:
                well.append(f"{verdict.kind}/{verdict.subject}")
        args = [
            now_ms,
            json.dumps(kinds),
            json.dumps(bad) if bad else "",
            json.dumps(well) if well else "",
            FORGET_MS,
            LOGGED,
        ]
        keys = [INCIDENTS, ALERTS, NUMBER, LOG]
        return len(await self._run(scripts.run(self.client, "incidents", keys, args)))

    async def open(self) -> list[Incident]:
        """Those that were told, the oldest first."""
        rows = await self._run(self.client.hgetall(INCIDENTS))
        found = [Incident(**json.loads(row)) for row in rows.values()]
        return sorted((one for one in found if one.told_ms), key=lambda one: one.since_ms)

    async def log(self, after_ms: int, before_ms: int) -> list[dict[str, Any]]:
        """Alerts of that time, the oldest first."""
        rows = await self._run(self.client.lrange(LOG, 0, -1))
        alerts = [dict(json.loads(row)) for row in reversed(rows)]
        return [alert for alert in alerts if after_ms <= alert["at_ms"] < before_ms]

    async def waiting(self) -> list[Waiting]:
        rows = await self._run(self.client.hgetall(ALERTS))
        return sorted(
            (Waiting(**json.loads(row)) for row in rows.values()), key=lambda w: int(w.id)
        )

    async def claim(self, waiting: Waiting) -> Waiting | None:
        """As it is now, for one that nobody tells; None: somebody does, or has."""
        key = f"{ALERTS}:claim:{waiting.id}"
        if not await self._run(self.client.set(key, "1", nx=True, px=CLAIM_MS)):
            return None
        row = await self._run(self.client.hget(ALERTS, waiting.id))
        if row is not None:
            return Waiting(**json.loads(row))
        await self.release(waiting)
        return None

    async def release(self, waiting: Waiting) -> None:
        await self._run(self.client.delete(f"{ALERTS}:claim:{waiting.id}"))

    async def told(self, waiting: Waiting) -> None:
        """Everybody has it, or it is given up."""
        await self._run(self.client.hdel(ALERTS, waiting.id))

    async def later(self, waiting: Waiting, now_ms: int) -> None:
        """Some ways failed: they are tried again at growing intervals."""
        waiting.tries += 1
        pause_ms = min(_AGAIN_MS * 2 ** min(waiting.tries - 1, 10), _AGAIN_MOST_MS)
        kept = {
            "alert": waiting.alert,
            "tries": waiting.tries,
            "next_ms": now_ms + pause_ms,
            "done": waiting.done,
        }
        await self._run(self.client.hset(ALERTS, waiting.id, json.dumps(kept)))

    async def looked(self, now_ms: int, name: str) -> None:
        await self._run(self.client.set(LOOKED, json.dumps({"at_ms": now_ms, "by": name})))

    async def last_look(self) -> dict[str, Any]:
        """{"at_ms", "by"}; empty: nobody ever looked."""
        text = await self._run(self.client.get(LOOKED))
        return dict(json.loads(text)) if text else {}

    async def _run(self, answer: Any) -> Any:
        return await answered(answer, RegistryUnavailable)
