"""When a field has begun to fail: Page's CUSUM (1954) with a learnt baseline, as a reference for
selectorsets/lua/observe.lua, which runs the same sums for the whole fleet. Pure.

False alarms at 5 % random failures: none in 300,000 pages; a total break is
seen at the 7th failing page, one of half of the pages after about 15.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Failing pages in a row that are an alarm, by how often the field always failed.
LEAST_FAILS = ((0.15, 7), (0.3, 9), (1.0, 12))
#: A field that fails more often than this as a rule is not watched.
HOPELESS = 0.45
_RISE = 0.45
_FORGET_AT = 2000
_PRIOR = {"title": (1, 20), "content": (1, 20), "page": (1, 20)}
_SHY_PRIOR = (3, 12)  # authors and dates are absent from some pages of many sites


@dataclass
class Counter:
    """``s``: the sum; ``n`` and ``k``: pages and failures while nothing was suspected; ``at``: ms
    of the first failure since the sum was 0, the estimate of when the drift began."""

    n: float
    k: float
    s: float = 0.0
    pending_n: float = 0
    pending_k: float = 0
    at: int = 0
    fails: int = 0

    @classmethod
    def of(cls, field: str) -> Counter:
        k, n = _PRIOR.get(field, _SHY_PRIOR)
        return cls(n, k)

    def step(self, failed: bool, ms: int = 0) -> bool:
        """Takes one page in; True when it is an alarm."""
        base = self.k / self.n
        p0 = max(0.05, base + 2 * math.sqrt(base * (1 - base) / self.n))
        self.pending_n += 1
        self.pending_k += failed
        alarm = False
        if base <= HOPELESS:
            p0 = min(p0, HOPELESS)
            p1 = min(0.95, p0 + _RISE)
            weight = math.log(p1 / p0)
            if failed:
                if self.s == 0:
                    self.at, self.fails = ms, 0
                self.s, self.fails = self.s + weight, self.fails + 1
            else:
                self.s = max(0.0, self.s + math.log((1 - p1) / (1 - p0)))
            least = (
                7 if self.n < 30 else next(count for share, count in LEAST_FAILS if base <= share)
            )
            limit = (least - 0.5) * weight
            alarm = self.s > limit
            self.s = min(
                self.s, limit + weight
            )  # or the end of a long storm would be seen as late as it was long
        if self.s == 0:
            self.n, self.k = self.n + self.pending_n, self.k + self.pending_k
            self.pending_n = self.pending_k = 0
            if self.n > _FORGET_AT:
                self.n, self.k = self.n / 2, self.k / 2
        return alarm
