"""What this worker knows to be in the frontier, so that a known link costs no call. One process, no I/O.

Only what Redis confirmed gets in. First an exact table of recent URLs (0.1 us); what it has no room for goes to a
pybloom-live filter (2 us). Both are emptied every hour, so that a URL that failed can be offered again.

The filter may lie. So a link that only the filter knows is dropped for now, but kept, and offered to Redis with the next
call that has time (``unverified``): a false hit delays an article by seconds and never loses it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from pybloom_live import BloomFilter

from newscrawler.items import Link

#: Chance that the filter takes an unknown URL for a known one, whose link then waits to be verified. Smaller would make
#: each URL dearer: 20 bits are set for one, at 0.1 us each.
ERROR_RATE = 1e-6
#: Links that may wait to be verified. With more of them the filter is not believed: they go to Redis at once.
UNVERIFIED = 5_000
#: They are verified in batches, or after this many seconds.
VERIFY_S = 30.0


class LocalSeen:
    """
    :param links: URLs in the exact table
    :param capacity: URLs in the filter; over it, it is emptied, as pybloom-live raises when it is full
    :param reset_s: both are emptied after this
    :param error_rate: of the filter
    """

    def __init__(
        self,
        links: int,
        capacity: int,
        reset_s: float,
        clock: Callable[[], float] = time.monotonic,
        error_rate: float = ERROR_RATE,
    ) -> None:
        self.links, self.capacity, self.reset_s, self.clock = links, capacity, reset_s, clock
        self.error_rate = error_rate
        self.lru_hits = 0
        self.bloom_hits = 0
        self.lies = 0  # links that the filter took for known ones, found when they were verified
        self.unverified: OrderedDict[str, Link] = OrderedDict()
        self._verified = clock()
        self.clear()

    def clear(self) -> None:
        """Forgets what is known; what waits to be verified waits on."""
        self._exact: OrderedDict[str, None] = OrderedDict()
        self._bloom = BloomFilter(self.capacity, self.error_rate)
        self._emptied = self.clock()

    def knows(self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0) -> bool:
        """Whether the URL need not be offered.

        :param link: what would be offered, under ``parent`` and ``depth``. Without it the filter is not asked, as
            nobody could find out whether it lied
        """
        if self.clock() - self._emptied > self.reset_s:
            self.clear()
        if url in self._exact:
            self.lru_hits += 1
            return True
        if link is None or not self._bloom.count or len(self.unverified) >= UNVERIFIED or url not in self._bloom:
            return False
        self.bloom_hits += 1
        self._remember(url)
        self.unverified[url] = replace(link, parent=parent or link.parent, depth=depth or link.depth)
        return True

    def __contains__(self, url: str) -> bool:
        """Known for certain."""
        return self.knows(url)

    def add(self, url: str) -> None:
        """Redis confirmed it."""
        if url not in self._exact:
            self._remember(url)

    def _remember(self, url: str) -> None:
        self._exact[url] = None
        if len(self._exact) > self.links:
            old = self._exact.popitem(last=False)[0]
            if old in self.unverified:
                return
            try:
                self._bloom.add(old, skip_check=True)
            except IndexError:  # full
                self._bloom = BloomFilter(self.capacity, self.error_rate)
                self._bloom.add(old, skip_check=True)

    def to_verify(self, most: int, *, is_idle: bool = False) -> list[Link]:
        """Links to be offered now: a full batch, or what has waited long enough, or anything when there is nothing else
        to do. They are no longer kept here."""
        if not self.unverified:
            self._verified = self.clock()
            return []
        if not is_idle and len(self.unverified) < most and self.clock() - self._verified < VERIFY_S:
            return []
        self._verified = self.clock()
        links = [self.unverified.popitem(last=False)[1] for _ in range(min(most, len(self.unverified)))]
        for link in links:
            self._exact.pop(link.url, None)  # known again when Redis says so
        return links

    def keep(self, links: list[Link]) -> None:
        """They could not be verified."""
        for link in links:
            self.unverified[link.url] = link
