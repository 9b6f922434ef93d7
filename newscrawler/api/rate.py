"""How many requests a caller may make in a minute: a bucket of tokens for each."""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import struct
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

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
        left, wait = self._after(self._left.pop(caller, (float(self.per_minute), now)), now)
        self._left[caller] = (left, now)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        return wait

    def _after(self, before: tuple[float, float], now: float) -> tuple[float, int]:
        """What is left after a request, and the seconds to wait where it was one too many."""
        left, at = before
        left = min(float(self.per_minute), left + (now - at) * self.per_minute / 60)
        wait = 0 if left >= 1 else math.ceil((1 - left) * 60 / self.per_minute)
        return (left if wait else left - 1), wait


class SharedRate(Rate):
    """The same counted over a process and those that are forked from it later. A caller has a place
    among four; where these are taken, who was longest silent is forgotten."""

    _PLACES, _AMONG = 16_384, 4
    _ENTRY = struct.Struct("<Qdd")  # the caller's hash, left, at; all zero = nobody

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(per_minute, clock)
        size = self._PLACES * self._ENTRY.size
        # Of a file, as the kernel takes its lock back from a process that is killed.
        self._file = os.memfd_create("rates")
        os.ftruncate(self._file, size)
        self._table = mmap.mmap(self._file, size)

    def take(self, caller: str) -> int:
        if not self.per_minute:
            return 0
        name = int.from_bytes(blake2b(caller.encode(), digest_size=8).digest(), "little") | 1
        first = name % (self._PLACES // self._AMONG) * self._AMONG
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            now = self._clock()
            known = [
                self._ENTRY.unpack_from(self._table, (first + i) * self._ENTRY.size)
                for i in range(self._AMONG)
            ]
            place = next((i for i, one in enumerate(known) if one[0] == name), None)
            if place is None:
                place = min(range(self._AMONG), key=lambda i: known[i][2])
                known[place] = (name, float(self.per_minute), now)
            left, wait = self._after(known[place][1:], now)
            offset = (first + place) * self._ENTRY.size
            self._ENTRY.pack_into(self._table, offset, name, left, now)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        return wait
