"""The fleet minute by minute, over the last day: what the page "Fleet" draws.

Each worker asks for a look with its heartbeats, and lua/minute.lua makes one every LOOK_S out of
what all of them added to the registry. So the points are those of the fleet, whoever wrote them,
and a worker that ends or starts changes nothing in them. Where nobody looked there is no point: a
gap, which is not a zero.

    {fleet}:minutes       hash  minute mod KEPT -> JSON of a point; a ring of some 300 bytes a point
    {fleet}:minutes:base  JSON  the counters at the last look
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from redis.exceptions import RedisError

from newscrawler import metrics
from newscrawler.fleet import scripts
from newscrawler.fleet.freshness import percentile
from newscrawler.fleet.registry import TAG, TOTALS, WORKERS, RegistryUnavailable
from newscrawler.fleet.rows import ORDINARY, STEPS

if TYPE_CHECKING:
    from redis.asyncio import Redis

RING = f"{TAG}:minutes"
BASE = f"{RING}:base"
#: Minutes that are kept: a day. At most 650 bytes each, so less than 1 MB in all.
KEPT = 1440
#: Seconds between two looks of the whole fleet, and of one worker.
LOOK_S = 10.0
#: Reasons of errors that one minute tells apart; the others are summed as OTHER.
REASONS, OTHER = 5, "other"
#: Heartbeats that a look reads.
WORKERS_MOST = 2_000

_COUNTED = {"p": metrics.PAGES, "n": metrics.ARTICLES_NEW, "u": metrics.ARTICLES_UPDATED}
_HARMLESS = dict.fromkeys([*map(str, ORDINARY), *STEPS], True)
_LAG = metrics.labelled(metrics.ARTICLE_LAG, "total")
_BOUNDS = metrics.STATS[metrics.ARTICLE_LAG].bounds


@dataclass(slots=True)
class Point:
    """One minute, or several that follow one another. ``covered_s`` is what the counts are of: a
    minute in which a worker started late is covered in part."""

    minute: int  # since the epoch: of the first one
    covered_s: float = 0.0
    pages: int = 0
    new: int = 0
    updated: int = 0
    errors: Counter[str] = field(default_factory=Counter)  # "RETRY(timeout)" -> visits
    lags: Counter[int] = field(default_factory=Counter)  # bucket of article/lag -> articles
    workers: int = 0  # the most at once
    in_flight: int = 0  # the same
    queued: int | None = None  # the newest; None = nobody knew
    waiting: int | None = None

    def per_minute(self, count: int) -> float | None:
        """None where nothing is covered: only a first look lies in it."""
        return round(60 * count / self.covered_s, 2) if self.covered_s else None

    def lag_s(self, share: float) -> float | None:
        """A percentile of the time from publication to the search; None without an article."""
        return percentile(sorted(self.lags.items()), _BOUNDS, share)

    def add(self, newer: Point) -> None:
        self.covered_s += newer.covered_s
        self.pages += newer.pages
        self.new += newer.new
        self.updated += newer.updated
        self.errors.update(newer.errors)
        self.lags.update(newer.lags)
        self.workers = max(self.workers, newer.workers)
        self.in_flight = max(self.in_flight, newer.in_flight)
        self.queued = self.queued if newer.queued is None else newer.queued
        self.waiting = self.waiting if newer.waiting is None else newer.waiting


class Minutes:
    """Every coroutine may raise RegistryUnavailable."""

    def __init__(self, client: Redis) -> None:
        self.client = client

    async def look(
        self, frontier: Mapping[str, int], *, at_ms: int | None = None, is_last: bool = False
    ) -> bool:
        """
        :param frontier: "q", "w": URLs that are queued and that wait, as far as they are known
        :param at_ms: now; None = by Redis' clock, which all workers share
        :param is_last: the caller ends, so that what it did is not left to the next one
        :returns: False where somebody has looked just now
        """
        keys = [RING, BASE, TOTALS, WORKERS]
        args = [
            "" if at_ms is None else at_ms,
            0 if is_last else round(LOOK_S * 1000),
            KEPT,
            json.dumps(dict(frontier)),
            json.dumps(_COUNTED),
            f"{metrics.PAGE_REASON}/",
            json.dumps(_HARMLESS),
            f"{_LAG}/",
            REASONS,
            WORKERS_MOST,
        ]
        return bool(await _answer(scripts.run(self.client, "minute", keys, args)))

    async def read(self, minutes: int, at_ms: int | None = None) -> tuple[int, list[Point]]:
        """The running minute, and the points of so many minutes up to it, the oldest first."""
        if at_ms is None:
            seconds, _ = await _answer(self.client.time())
            at_ms = int(seconds) * 1000
        now = at_ms // 60_000
        slots = [str(minute % KEPT) for minute in range(now - minutes + 1, now + 1)]
        texts = await _answer(self.client.hmget(RING, slots))
        found = [_point(json.loads(text)) for text in texts if text]
        return now, sorted(
            (one for one in found if now - minutes < one.minute <= now), key=lambda one: one.minute
        )


def steps(points: Iterable[Point], now: int, minutes: int, step: int) -> list[Point | None]:
    """The points put together by ``step`` minutes, which begin where the clock is a whole number
    of them; the last one holds ``now``. None = a gap."""
    first = (now // step + 1) * step - minutes
    found: list[Point | None] = [None] * (minutes // step)
    for point in points:
        at = (point.minute - first) // step
        if not 0 <= at < len(found):
            continue
        held = found[at]
        if held is None:
            held = found[at] = Point(first + at * step)
        held.add(point)
    return found


def _point(raw: dict[str, Any]) -> Point:
    return Point(
        minute=int(raw["m"]),
        covered_s=raw["s"] / 1000,
        pages=int(raw["p"]),
        new=int(raw["n"]),
        updated=int(raw["u"]),
        errors=Counter({label: int(count) for label, count in raw["e"].items()}),
        lags=Counter({int(bucket): int(count) for bucket, count in raw["l"].items()}),
        workers=int(raw["k"]),
        in_flight=int(raw["f"]),
        queued=_whole(raw.get("q")),
        waiting=_whole(raw.get("w")),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


async def _answer(asked: Any) -> Any:
    try:
        return await cast(Awaitable[Any], asked)
    except (RedisError, OSError) as exc:
        raise RegistryUnavailable(f"the worker registry in Redis does not answer: {exc}") from exc
