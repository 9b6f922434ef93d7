"""The hours at which the sites of a crawl publish (newscrawler.discovery.rhythm), from what the
fleet has counted (newscrawler.fleet.history). Nothing more is kept in Redis for it.

A worker asks for the sites whose lists it visits, once an hour each.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from newscrawler.discovery.rhythm import Rhythm, rhythm_of
from newscrawler.fleet.history import HOUR_MS, WHOLE, History

if TYPE_CHECKING:
    from redis.asyncio import Redis

#: Sites that are remembered, 24 numbers each, and asked for at once, some kilobytes each.
MOST_SITES, AT_ONCE = 20_000, 100


class Rhythms:
    def __init__(self, client: Redis) -> None:
        self._history = History(client)
        self._known: OrderedDict[str, tuple[int, Rhythm | None]] = OrderedDict()
        self._wanted: dict[str, None] = {}

    def of(self, site: str, now_ms: int) -> Rhythm | None:
        """As it was known last; what is of an earlier hour is read again soon."""
        hour, found = self._known.get(site, (-1, None))
        if hour != now_ms // HOUR_MS and len(self._wanted) < MOST_SITES:
            self._wanted[site] = None
        return found

    async def refresh(self, now_ms: int) -> None:
        """:raises newscrawler.fleet.history.HistoryUnavailable: Redis does not answer"""
        sites = list(self._wanted)[:AT_ONCE]
        if not sites:
            return
        hours = await self._history.hours([*sites, WHOLE], now_ms)
        since = await self._history.first_hours(sites)
        now, whole = now_ms // HOUR_MS, hours[WHOLE]
        for site in sites:
            found = rhythm_of(
                hours[site], since.get(site), now, lambda hour: whole.get(hour, 0) > 0
            )
            self._known[site] = now, found
            self._known.move_to_end(site)
            self._wanted.pop(site, None)
        while len(self._known) > MOST_SITES:
            self._known.popitem(last=False)
