"""At which hours a site publishes, from its own history, and how long its leads may wait. Pure.

A lead that is asked every ten minutes finds an article after five in the morning's rush, and asks
for nothing most of the night. What is looked for is an interval within which about the same part of
an article is to be expected at any hour: short before the rush, long where little comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: Whole days of a site that must be known, and the last ones that are looked at.
LEAST_DAYS, MOST_DAYS = 2, 14
#: Articles that are to be expected while a lead waits: at two an hour five minutes, at one ten.
SHARE = 1 / 6
_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Rhythm:
    """``rates``: new articles to be expected in each hour of the day, from midnight UTC on."""

    rates: tuple[float, ...]

    def wait_s(self, now_s: float, shortest_s: float, longest_s: float) -> float:
        """Seconds until SHARE of an article is to be expected, between these two."""
        at, left = now_s, SHARE
        while at < now_s + longest_s:
            rate = self.rates[int(at // _HOUR_S) % 24] / _HOUR_S
            to_next = _HOUR_S - at % _HOUR_S
            if rate * to_next >= left:
                at += left / rate
                break
            left -= rate * to_next
            at += to_next
        return min(longest_s, max(shortest_s, at - now_s))


def rhythm_of(
    counts: Mapping[int, int], since: int | None, now_hour: int, worked: Callable[[int], bool]
) -> Rhythm | None:
    """None: too little is known.

    :param counts: hour since the epoch -> new articles
    :param since: the first hour that is known of the site
    :param worked: whether the fleet did anything in an hour; others say nothing
    """
    if since is None:
        return None
    first = max(since + 1, now_hour - 24 * MOST_DAYS)  # the site's first hour is not a whole one
    hours = [hour for hour in range(first, now_hour) if worked(hour)]
    if len(hours) < 24 * LEAST_DAYS:
        return None
    sums, days = [0.0] * 24, [0] * 24
    for hour in hours:
        sums[hour % 24] += counts.get(hour, 0)
        days[hour % 24] += 1
    if not all(days):
        return None
    means = [total / number for total, number in zip(sums, days, strict=True)]
    # A night of two days says little of a single hour: its neighbours say half as much.
    return Rhythm(tuple((means[h - 1] + 2 * means[h] + means[(h + 1) % 24]) / 4 for h in range(24)))
