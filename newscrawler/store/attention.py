"""How much was published about something: matches per day, week or month and site, counted or as a
share of everything that was published then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal

from newscrawler.store.base import Query, QueryError, WholeStore

Per = Literal["day", "week", "month"]
PERS: tuple[Per, ...] = ("day", "week", "month")
#: Steps of one answer; and up to how many a step is chosen that nobody has asked for.
MOST, READABLE = 2_000, 100
_DAYS = {"day": 1, "week": 7, "month": 30}


@dataclass(frozen=True, slots=True)
class Step:
    """``day``: its first. ``published``: everything of that time, of the sites that are asked."""

    day: date
    articles: int
    published: int
    sites: dict[str, int]

    @property
    def share(self) -> float:
        return self.articles / self.published if self.published else 0.0


async def attention(store: WholeStore, query: Query, per: Per | None) -> tuple[Per, list[Step]]:
    """Steps without a gap from the first match (or the query's day) to the last. ``per`` None: as
    fine as can be looked at. Raises QueryError."""
    found = await store.days(query)
    everything = await store.days(replace(query, text="", labels=()))
    return steps(found, everything, per)


def steps(
    found: dict[str, dict[str, int]], everything: dict[str, dict[str, int]], per: Per | None
) -> tuple[Per, list[Step]]:
    """:raises QueryError: more steps than are counted"""
    if not found:
        return per or "day", []
    first, last = date.fromisoformat(min(found)), date.fromisoformat(max(found))
    chosen: Per = per or _readable((last - first).days)
    if (last - first).days / _DAYS[chosen] > MOST:
        raise QueryError(
            f"per={chosen}: more than {MOST:,} steps from {first} to {last}; take a longer step, or"
            " after and before"
        )
    sites: dict[date, Counter[str]] = {}
    published: Counter[date] = Counter()
    for day, counts in found.items():
        sites.setdefault(begin(date.fromisoformat(day), chosen), Counter()).update(counts)
    for day, counts in everything.items():
        published[begin(date.fromisoformat(day), chosen)] += sum(counts.values())
    made = []
    for day_ in _between(begin(first, chosen), last, chosen):
        of = sites.get(day_, Counter())
        made.append(
            Step(day_, of.total(), max(published[day_], of.total()), dict(of.most_common()))
        )
    return chosen, made


def _readable(days: int) -> Per:
    for per in PERS:
        if days / _DAYS[per] < READABLE:
            return per
    return "month"


def begin(day: date, per: Per) -> date:
    """First day of the day, week (Monday) or month that ``day`` is in."""
    if per == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if per == "month" else day


def after(day: date, per: Per) -> date:
    """First day of the next one."""
    if per == "month":
        return (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    return day + timedelta(days=_DAYS[per])


def _between(first: date, last: date, per: Per) -> Iterator[date]:
    day = first
    while day <= last:
        yield day
        day = after(day, per)
