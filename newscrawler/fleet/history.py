"""What the fleet did lately, day by day, and when each site publishes: sums in Redis beside the
registry, for the monitor and the report of a day.

Workers write them with their counters (registry.Registry.add), by the frontier's clock. Hours are
of UTC and a week begins on Monday; days are those of READER_ZONE.

    {fleet}:slot:<n>            hash  sums of ten minutes: stat of metrics.py -> sum,
                                      "s|<site>|<what>", "n|<node>|<what>"; kept SLOTS_KEPT
    {fleet}:day:<n>             hash  stat -> sum of a day; kept DAYS_KEPT
    {fleet}:day:<n>:<site>      hash  what -> sum of a site on that day
    {fleet}:hours:<week>:<site> hash  hour of the week, 0 to 167 -> new articles; kept WEEKS_KEPT.
                                      Site "" has the visits of the whole fleet
    {fleet}:hours:since         hash  site -> first hour (since the epoch) that is known of it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from newscrawler import metrics
from newscrawler.fleet.answers import answered, text_of

if TYPE_CHECKING:
    from redis.asyncio import Redis

_TAG = "{fleet}"
SLOT_MS = 600_000
#: Slots that are kept: two hours and the one that is being filled.
SLOTS_KEPT = 13
DAYS_KEPT = 35
HOUR_MS = 3_600_000
DAY_MS = 86_400_000
WEEK_HOURS = 168
#: Weeks that the usual number of an hour is taken over.
WEEKS = 4
WEEKS_KEPT = WEEKS + 1
#: The hour 0 since the epoch was a Thursday's; from here on weeks begin on Monday.
_TO_MONDAY = 3 * 24
SINCE = f"{_TAG}:hours:since"
#: The "site" of all visits of the fleet: hours in which it did nothing are no site's silence.
WHOLE = ""
#: What only a site's sums of a day have: outcomes, steps of freshness.
_OF_DAYS = ("o:", "l:")
#: Of sites' sums: the old name, as Redis has it from before -> the name.
_RENAMED = {"twins": "duplicates"}
#: Commands that are sent at once.
_AT_ONCE = 2_000


class HistoryUnavailable(Exception):
    """Redis does not answer."""


@dataclass(slots=True)
class Notes:
    """What a worker adds: by site, and of its node."""

    sites: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    hours: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # site -> hour -> articles
    node: str = ""
    zone: tzinfo = UTC  # whose days are counted


def day_of(now_ms: int, zone: tzinfo) -> int:
    """The day in that zone, as days since 1970-01-01."""
    return datetime.fromtimestamp(now_ms / 1000, zone).toordinal() - date(1970, 1, 1).toordinal()


def slot_key(slot: int) -> str:
    return f"{_TAG}:slot:{slot}"


def day_key(day: int, site: str = "") -> str:
    return f"{_TAG}:day:{day}:{site}" if site else f"{_TAG}:day:{day}"


def hours_key(week: int, site: str) -> str:
    return f"{_TAG}:hours:{week}:{site}"


def week_of(hour: int) -> tuple[int, int]:
    """Hour since the epoch -> (number of its week, hour of the week)."""
    return divmod(hour + _TO_MONDAY, WEEK_HOURS)


def hour_of(week: int, of_week: int) -> int:
    return week * WEEK_HOURS + of_week - _TO_MONDAY


def note(pipe: Any, totals: Mapping[str, int], notes: Notes, now_ms: int) -> None:
    """Puts the commands that add these sums into a pipeline.

    :param totals: stat of metrics.py -> how many more
    """
    if not any(totals.values()) and not notes.sites:
        return
    today = day_of(now_ms, notes.zone)
    slot, day = slot_key(now_ms // SLOT_MS), day_key(today)
    for name, count in totals.items():
        if count:
            pipe.hincrby(slot, name, count)
            pipe.hincrby(day, name, count)
    for name, count in _of_node(totals, notes.node).items():
        pipe.hincrby(slot, name, count)
    pages = 0
    for site, counts in notes.sites.items():
        of_site = day_key(today, site)
        pages += counts.get("pages", 0)
        for what, count in counts.items():
            if count:
                pipe.hincrby(of_site, what, count)
            if count and not what.startswith(_OF_DAYS):
                pipe.hincrby(slot, f"s|{site}|{what}", count)
        pipe.expire(of_site, DAYS_KEPT * 86_400)
    hours = dict(notes.hours)
    if pages:
        hours[WHOLE] = {now_ms // HOUR_MS: pages}
    for site, by_hour in hours.items():
        for hour, count in by_hour.items():
            week, of_week = week_of(hour)
            pipe.hincrby(hours_key(week, site), str(of_week), count)
            pipe.expire(hours_key(week, site), WEEKS_KEPT * 7 * 86_400)
            pipe.hsetnx(SINCE, site, hour)
    pipe.expire(slot, SLOTS_KEPT * SLOT_MS // 1000)
    pipe.expire(day, DAYS_KEPT * 86_400)


#: Sums of a node -> the stats that they are made of; histograms count their values by buckets.
_NODE_SUMS = {"fetch_ms": "fetch/time/ms", "parse_ms": "page/parse_time/ms"}
_NODE_COUNTS = {"fetches": "fetch/time/", "parses": "page/parse_time/"}


def _of_node(totals: Mapping[str, int], node: str) -> Counter[str]:
    found: Counter[str] = Counter()
    if not node:
        return found
    for what, stat in _NODE_SUMS.items():
        if count := totals.get(stat):
            found[f"n|{node}|{what}"] = count
    for what, prefix in _NODE_COUNTS.items():
        count = sum(n for name, n in totals.items() if name.startswith(prefix) and name[-1] != "s")
        if count:
            found[f"n|{node}|{what}"] = count
    return found


@dataclass(slots=True)
class Window:
    """Sums of some slots that follow one another."""

    stats: Counter[str] = field(default_factory=Counter)
    sites: dict[str, Counter[str]] = field(default_factory=dict)
    nodes: dict[str, Counter[str]] = field(default_factory=dict)
    gauges: dict[str, int] = field(default_factory=dict)  # as they were when the window began

    def labelled(self, stat: str) -> dict[str, int]:
        """ "page/outcome" -> {"DONE": 12, ...}."""
        prefix = f"{stat}/"
        return {
            name[len(prefix) :]: count
            for name, count in self.stats.items()
            if name.startswith(prefix)
        }

    def add(self, row: Mapping[str, int]) -> None:
        for name, count in row.items():
            kind, bar, rest = name.partition("|")
            if not bar:
                self.stats[metrics.renamed(name)] += count
            elif kind == "g":
                self.gauges.setdefault(rest, count)
            else:
                owner, _, what = rest.rpartition("|")
                place = self.sites if kind == "s" else self.nodes
                place.setdefault(owner, Counter())[_RENAMED.get(what, what)] += count


class History:
    """Every coroutine may raise HistoryUnavailable. ``client`` may answer bytes or text."""

    def __init__(self, client: Redis) -> None:
        self.client: Any = client

    async def windows(self, now_ms: int, *minutes: int) -> list[Window]:
        """Of the slots that the last ``minutes`` touch, for each number of minutes."""
        newest = now_ms // SLOT_MS
        rows = await self._rows([slot_key(newest - back) for back in range(SLOTS_KEPT)])
        made = []
        for length in minutes:
            oldest = (now_ms - length * 60_000) // SLOT_MS
            window = Window()
            for back in range(min(newest - oldest, SLOTS_KEPT - 1), -1, -1):
                window.add(rows[back])
            made.append(window)
        return made

    async def gauge(self, name: str, value: int, now_ms: int) -> None:
        """The first value within a slot is kept: what a later one has grown from."""
        key = slot_key(now_ms // SLOT_MS)
        pipe = self.client.pipeline(transaction=True)
        pipe.hsetnx(key, f"g|{name}", value)
        pipe.expire(key, SLOTS_KEPT * SLOT_MS // 1000)
        await self._run(pipe.execute())

    async def day(self, day: int) -> dict[str, int]:
        """stat -> sum. ``day``: as of :func:`day_of`."""
        sums: Counter[str] = Counter()
        for name, count in (await self._rows([day_key(day)]))[0].items():
            sums[metrics.renamed(name)] += count
        return dict(sums)

    async def site_days(self, sites: Iterable[str], days: Iterable[int]) -> dict[str, Counter[str]]:
        """site -> what -> sum over these days."""
        names, numbers = list(sites), list(days)
        rows = await self._rows([day_key(day, site) for site in names for day in numbers])
        found: dict[str, Counter[str]] = {}
        for at, site in enumerate(names):
            found[site] = Counter()
            for row in rows[at * len(numbers) : (at + 1) * len(numbers)]:
                for what, count in row.items():
                    found[site][_RENAMED.get(what, what)] += count
        return found

    async def hours(self, sites: Iterable[str], now_ms: int) -> dict[str, dict[int, int]]:
        """site -> hour since the epoch -> new articles, of this week and WEEKS before."""
        names = list(sites)
        this_week, _ = week_of(now_ms // HOUR_MS)
        weeks = range(this_week - WEEKS, this_week + 1)
        rows = await self._rows([hours_key(week, site) for site in names for week in weeks])
        found: dict[str, dict[int, int]] = {site: {} for site in names}
        for at, row in enumerate(rows):
            site, week = names[at // len(weeks)], weeks[at % len(weeks)]
            for of_week, count in row.items():
                found[site][hour_of(week, int(of_week))] = count
        return found

    async def since(self) -> dict[str, int]:
        """site -> the first hour that is known of it."""
        return (await self._rows([SINCE]))[0]

    async def first_hours(self, sites: Sequence[str]) -> dict[str, int]:
        """The same of these sites; those of which nothing is known are left out."""
        answer = await self._run(self.client.hmget(SINCE, list(sites))) if sites else []
        return {site: int(one) for site, one in zip(sites, answer, strict=True) if one is not None}

    async def preload(self, counts: Mapping[str, Mapping[int, int]]) -> int:
        """Hours of the past, of what the article store has; an hour that was counted stays as it
        was.

        :param counts: site -> hour since the epoch -> articles
        :returns: how many hours were not known
        """
        since = await self.since()
        added = 0
        for site, by_hour in counts.items():
            pipe = self.client.pipeline(transaction=True)
            for hour, count in by_hour.items():
                week, of_week = week_of(hour)
                pipe.hsetnx(hours_key(week, site), str(of_week), count)
            for week in {week_of(hour)[0] for hour in by_hour}:
                pipe.expire(hours_key(week, site), WEEKS_KEPT * 7 * 86_400)
            first = min(by_hour, default=0)
            if by_hour and first < since.get(site, first + 1):
                pipe.hset(SINCE, site, first)
            if by_hour:
                answers = await self._run(pipe.execute())
                added += sum(int(answer) for answer in answers[: len(by_hour)])
        return added

    async def _rows(self, keys: list[str]) -> list[dict[str, int]]:
        rows: list[dict[str, int]] = []
        for at in range(0, len(keys), _AT_ONCE):
            pipe = self.client.pipeline(transaction=False)
            for key in keys[at : at + _AT_ONCE]:
                pipe.hgetall(key)
            rows += [
                {text_of(name): int(value) for name, value in answer.items()}
                for answer in await self._run(pipe.execute())
            ]
        return rows

    async def _run(self, answer: Any) -> Any:
        return await answered(answer, HistoryUnavailable)
