"""How many requests a caller may make in a minute: a bucket of tokens for each."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

#: Callers that are remembered; of those that were longest silent nothing is known.
MOST_CALLERS = 10_000


class Rate:
    """:param per_minute: that refill evenly; so many may come at once. 0 = no limit"""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # (left, at)

    def take(self, caller: str) -> int:
        """0, or the seconds after which to come again."""
        if not self.per_minute:
            return 0
        now = self._clock()
        left, at = self._left.pop(caller, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - at) * self.per_minute / 60)
        wait = 0 if left >= 1 else math.ceil((1 - left) * 60 / self.per_minute)
        self._left[caller] = (left if wait else left - 1, now)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        return wait
