"""What this worker knows to be in the frontier, so that a known link costs no call. One process, no I/O.

Only what Redis confirmed gets in. First an exact table of recent URLs (0.1 us); what it has no room for goes to a
pybloom-live filter (1 us). Both are emptied every hour, so that a URL that failed can be offered again.

The filter may lie. So a link that only the filter knows is dropped for now, but kept, and offered to Redis with the next
call that has time (``unverified``): a false hit delays an article by seconds and never loses it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from struct import Struct

from pybloom_live import BloomFilter

from newscrawler.items import Link

#: Chance that the filter takes an unknown URL for a known one, whose link then waits to be verified.
ERROR_RATE = 1e-6
#: Links that may wait to be verified. With more of them the filter is not believed: they go to Redis at once.
UNVERIFIED = 5_000
#: They are verified in batches, or after this many seconds.
VERIFY_S = 30.0

_FOUR = Struct("<4Q").unpack


class Strides(BloomFilter):  # type: ignore[misc]
    """pybloom-live's filter with other positions: each half of its bits gets an evenly spaced row of them, whose begin
    and distance are taken from the URL's hash. bitarray sets or tests a row with one call, so a URL costs 1 us and not 5.

    The middle of a half is fuller than its ends, which makes rows lie six times as often as scattered bits: it is made
    for a tenth of the error rate (measured at capacity: 0.6 of the rate asked for, at 1e-6).
    """

    def __init__(self, capacity: int, error_rate: float) -> None:
        super().__init__(capacity, error_rate / 10)
        self._row = (self.num_slices + 1) // 2
        self._half = self.num_bits // 2
        self._widest = max(1, (self._half - 1) // self._row)

    def _rows(self, url: str) -> tuple[slice, slice]:
        a, b, c, d = _FOUR(blake2b(url.encode("utf-8", "surrogatepass"), digest_size=32).digest())
        more, half = self._row - 1, self._half
        step = 1 + b % self._widest
        first = a % (half - more * step)
        step_2 = 1 + d % self._widest
        first_2 = half + c % (half - more * step_2)
        return slice(first, first + more * step + 1, step), slice(first_2, first_2 + more * step_2 + 1, step_2)

    def __contains__(self, url: str) -> bool:
        one, two = self._rows(url)
        bits = self.bitarray
        return bool(bits[one.start] and bits[one].all() and bits[two].all())

    def add(self, url: str, skip_check: bool = False) -> bool:
        """As pybloom-live's: whether it was there. :raises IndexError: full"""
        if self.count > self.capacity:
            raise IndexError("BloomFilter is at capacity")
        if not skip_check and url in self:
            return True
        one, two = self._rows(url)
        self.bitarray[one] = True
        self.bitarray[two] = True
        self.count += 1
        return False


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
        self._bloom = Strides(self.capacity, self.error_rate)
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

    def unknown(self, links: Sequence[Link], parent: bytes | None, depth: int, *, verify: bool) -> list[Link]:
        """Those for which :meth:`knows` is False, in order: the links of a page at once.

        :param verify: whether they would be offered, so that the filter may be asked
        """
        if self.clock() - self._emptied > self.reset_s:
            self.clear()
        exact = self._exact
        rest = [link for link in links if link.url not in exact]
        self.lru_hits += len(links) - len(rest)
        if not verify or not self._bloom.count:
            return rest
        return [link for link in rest if not self.knows(link.url, link, parent, depth)]

    def __contains__(self, url: str) -> bool:
        """Known for certain."""
        return self.knows(url)

    def add(self, url: str) -> None:
        """Redis confirmed it."""
        if url not in self._exact:
            self._remember(url)

    def add_all(self, urls: Iterable[str]) -> None:
        """Redis confirmed them."""
        exact = self._exact
        for url in urls:
            if url not in exact:
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
                self._bloom = Strides(self.capacity, self.error_rate)
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
