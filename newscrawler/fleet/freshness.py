"""How long articles took from publication to the search, per site: counted in steps of
time, so that the fleet's sums are a few small numbers and p50 and p95 can be read from them
at any time. Pure.

Counted are new articles that came out after their site was first visited, as what a site had before
says nothing of the crawler; and of those only what tells a time of day.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

#: Upper bounds of the steps, seconds; a last step holds what took longer. A percentile is
#: right to within a step.
BOUNDS_S = (
    *(5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 210, 240, 270, 300, 360, 420, 480, 540, 600),
    *(720, 840, 960, 1080, 1200, 1500, 1800, 2400, 3000, 3600, 5400, 7200, 10_800, 14_400),
    *(21_600, 28_800, 43_200, 64_800, 86_400),
)  # fmt: skip
#: What is measured, and the letter it has in Redis: the whole way and its parts.
STAGES = {"total": "t", "discovered": "d", "fetched": "f", "searchable": "s"}
#: Days that the figures are taken over, and what is kept.
DAYS = 7
#: The last step that keeps the promise: searchable within 30 minutes.
PROMISE_S = 1800
LATE = BOUNDS_S.index(PROMISE_S)


@dataclass(frozen=True, slots=True)
class Lag:
    """One article's way, seconds: publication -> discovered -> fetched -> searchable."""

    discovered: float
    fetched: float
    searchable: float

    @property
    def total(self) -> float:
        return self.discovered + self.fetched + self.searchable

    def steps(self) -> Iterator[str]:
        """Names of the counters that it is counted in, "t:12"."""
        for stage, letter in STAGES.items():
            yield f"{letter}:{bisect_left(BOUNDS_S, getattr(self, stage))}"


def lag(
    published: datetime | None, discovered: datetime | None, fetched: datetime | None, now_ms: int
) -> Lag | None:
    """None where a time is missing, or the publication tells the day only
    (midnight of its zone)."""
    if published is None or discovered is None or fetched is None:
        return None
    if (published.hour, published.minute, published.second) == (0, 0, 0):
        return None
    # Pages tell minutes: a piece may be found in the very minute that it names.
    start, found, got = published.timestamp(), discovered.timestamp(), fetched.timestamp()
    return Lag(
        max(0.0, found - start), max(0.0, got - max(found, start)), max(0.0, now_ms / 1000 - got)
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one stage. Seconds; None of no article."""

    articles: int
    p50_s: float | None
    p95_s: float | None


def figures(counts: Mapping[str, int], stage: str = "total") -> Figures:
    """``counts``: counter name -> articles, as Lag.steps() names them."""
    letter = STAGES[stage] + ":"
    steps = sorted((int(name[2:]), n) for name, n in counts.items() if name.startswith(letter))
    total = sum(n for _, n in steps)
    p50_s, p95_s = (percentile(steps, BOUNDS_S, share) for share in (0.5, 0.95))
    return Figures(total, p50_s, p95_s)


def percentile(
    steps: Sequence[tuple[int, int]], bounds: Sequence[float], share: float
) -> float | None:
    """Inside a step as if its articles lay evenly; of the last, open step its lower bound.

    :param steps: (number of the step, articles), rising
    """
    rank, before = share * sum(n for _, n in steps), 0
    for step, n in steps:
        if before + n >= rank:
            low = float(bounds[step - 1]) if step else 0.0
            if step >= len(bounds):
                return low
            return round(low + (bounds[step] - low) * (rank - before) / n, 1)
        before += n
    return None


def span(seconds: float | None) -> str:
    """ "45 s", "3.4 min", "2.1 h"; empty for None."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
