"""What is usual of a site at this hour of this weekday, and whether what came is far from it. Pure.

The same hours of the four weeks before are compared; where no whole week is known, those of the
days before. News come in bursts, so the expectation is taken low: the second lowest of the weeks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from newscrawler.fleet.history import HOUR_MS, WEEK_HOURS, WEEKS

#: Windows that are judged, hours before the one that has begun.
WINDOWS = (1, 2, 3, 6, 12, 24, 48, 96, WEEK_HOURS - 1)
#: A window is judged from so many expected articles on: of fewer none at all is no proof.
LEAST_EXPECTED = 12.5
#: Probability of so few below which they are too few, and the part of what is expected that must
#: be missing beside it.
_IMPROBABLE = 1e-5
_MISSING = 0.75
#: Days that must be known where no week is.
_LEAST_DAYS = 2
#: A flood is so many times what the highest week had.
FLOOD_TIMES = 4.0


@dataclass(frozen=True, slots=True)
class Silence:
    """``expected`` None: too few articles are usual to tell."""

    hours: int = 0
    counted: float = 0.0
    expected: float | None = None
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """The same hours of earlier times, each a sum of articles."""

    by_week: bool
    sums: tuple[float, ...]

    @property
    def low(self) -> float:
        """Of so many articles one may be sure."""
        ranked = sorted(self.sums)
        if not self.by_week or len(ranked) == 1:
            return sum(ranked) / len(ranked) / 2
        return ranked[1] if len(ranked) > 2 else ranked[0]


class Site:
    """New articles of a site by hour.

    :param counts: hour since the epoch -> articles
    :param since: the first hour that is known of it
    :param worked: whether the fleet did anything in an hour; others are left out
    """

    def __init__(
        self, counts: Mapping[int, int], since: int, now_ms: int, worked: Callable[[int], bool]
    ) -> None:
        self._counts = counts
        self._since = since
        self._now, part_ms = divmod(now_ms, HOUR_MS)
        self._part = part_ms / HOUR_MS
        self._worked = worked

    def silence(self) -> Silence:
        """The shortest window in which too little came; else the shortest that could tell."""
        judged = Silence()
        for hours in WINDOWS:
            past = self._past(hours)
            if past is None or past.low < LEAST_EXPECTED:
                continue
            counted = self._sum(self._now, hours, 1.0)
            is_silent = (
                counted < past.low * (1 - _MISSING)
                and at_most(round(counted), past.low, len(past.sums)) < _IMPROBABLE
            )
            if is_silent or judged.expected is None:
                judged = Silence(hours, counted, past.low, is_silent)
            if is_silent:
                break
        return judged

    def most(self, hours: int) -> float | None:
        """Of the highest week; None: nothing is known."""
        past = self._past(hours)
        return max(past.sums) if past is not None else None

    def usual(self, first: int, last: int) -> float | None:
        """Mean of the weeks before for the hours from ``first`` to before ``last``; None: no week
        is known."""
        sums = [
            sum(self._counts.get(hour - WEEK_HOURS * back, 0) for hour in range(first, last))
            for back in range(1, WEEKS + 1)
            if first - WEEK_HOURS * back >= self._since
        ]
        return sum(sums) / len(sums) if sums else None

    def _past(self, hours: int) -> Past | None:
        weeks = [
            self._sum(self._now - WEEK_HOURS * back, hours, self._part)
            for back in range(1, WEEKS + 1)
            if self._now - WEEK_HOURS * back - hours >= self._since
        ]
        if weeks:
            return Past(True, tuple(weeks))
        days = [
            self._sum(self._now - 24 * back, hours, self._part)
            for back in range(1, 7)
            if self._now - 24 * back - hours >= self._since
        ]
        return Past(False, tuple(days)) if len(days) >= _LEAST_DAYS and hours <= 24 else None

    def _sum(self, last: int, hours: int, part: float) -> float:
        """Of the hours before ``last`` and this part of it, without those in which the fleet did
        nothing now."""
        shift = self._now - last
        total = 0.0
        for hour in range(last - hours, last + 1):
            if self._worked(hour + shift):
                total += self._counts.get(hour, 0) * (part if hour == last else 1.0)
        return total


def at_most(counted: int, mean: float, periods: int) -> float:
    """Probability of so many or fewer where the mean is itself known from so many earlier periods
    only: a negative binomial distribution, wider than Poisson's."""
    if mean <= 0:
        return 1.0
    seen, keep = mean * periods, periods / (periods + 1)
    logs = [
        math.lgamma(k + seen)
        - math.lgamma(seen)
        - math.lgamma(k + 1)
        + seen * math.log(keep)
        + k * math.log(1 - keep)
        for k in range(counted + 1)
    ]
    return min(1.0, math.fsum(math.exp(one) for one in logs))


def above(share: float, of: int) -> float:
    """The share that chance may reach in so many: three standard deviations."""
    return share + 3 * math.sqrt(max(0.0, share * (1 - share)) / of)


def below(share: float, of: int, deviations: float = 3.0) -> float:
    return share - deviations * math.sqrt(max(0.0, share * (1 - share)) / of)
