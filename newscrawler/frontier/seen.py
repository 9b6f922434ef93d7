"""What this worker knows to be in the frontier, so that a known link costs no call. One process, no I/O.

Only what Redis confirmed gets in. First an exact table of recent URLs (0.1 us), then a pybloom-live filter
(2 us). Both are emptied every hour: a false hit is neither likely nor lasting, and a URL that failed can
be offered again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pybloom_live import BloomFilter

#: Chance that the filter takes an unknown URL for a known one. pybloom-live's real error is about
#: 2.5 times the asked one (measured), and a hit hides a new article for up to an hour.
ERROR_RATE = 4e-10


class LocalSeen:
    """
    :param links: URLs in the exact table
    :param capacity: URLs in the filter; over it, it is emptied, as pybloom-live raises when it is full
    :param reset_s: both are emptied after this
    """

    def __init__(self, links: int, capacity: int, reset_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.links, self.capacity, self.reset_s, self.clock = links, capacity, reset_s, clock
        self.lru_hits = 0
        self.bloom_hits = 0
        self.clear()

    def clear(self) -> None:
        self._exact: dict[str, None] = {}
        self._bloom = BloomFilter(self.capacity, ERROR_RATE)
        self._emptied = self.clock()

    def __contains__(self, url: str) -> bool:
        if self.clock() - self._emptied > self.reset_s:
            self.clear()
        if url in self._exact:
            self.lru_hits += 1
            return True
        if self._bloom.count and url in self._bloom:
            self.bloom_hits += 1
            self._remember(url)
            return True
        return False

    def add(self, url: str) -> None:
        if url in self._exact:
            return
        self._remember(url)
        try:
            self._bloom.add(url, skip_check=True)
        except IndexError:  # full
            self._bloom = BloomFilter(self.capacity, ERROR_RATE)
            self._bloom.add(url, skip_check=True)

    def _remember(self, url: str) -> None:
        if len(self._exact) >= self.links:
            # the older half goes: cheaper than keeping the order of use, and the menu comes back at once
            for old in list(self._exact)[: self.links // 2]:
                del self._exact[old]
        self._exact[url] = None
