"""What this worker knows to be in the frontier, so that a known link costs no call.
One process, no I/O.

Only what Redis confirmed gets in. A URL's first place is a pybloom-live filter (4 bytes, 1 us);
when it is met again the filter answers, and from then on an exact table does (200 bytes, 0.1 us):
half of all URLs are met once and never again. What the table has no room for is left to the filter.
Both are emptied every hour, so that a URL that failed can be offered again.

The filter may lie, once in 10^12 while it is not half full, which is what an ordinary crawl's hour
makes of it (``Strides.sure``). Beyond that a link that only the filter knows is dropped for now,
but kept, and offered to Redis with the next call that has time (``unverified``): a false hit delays
an article by seconds and never loses it.
"""

from __future__ import annotations

import math
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from struct import Struct

import xxhash
from pybloom_live import BloomFilter

from newscrawler.items import Link

#: Chance that the filter takes an unknown URL for a known one, whose link then waits
#: to be verified.
ERROR_RATE = 1e-6
#: Chance below which nobody asks for false positives: less than one in a thousand worker-years.
SURE = 1e-12
#: Links that may wait to be verified. With more of them the filter is not believed: they go
#: to Redis at once.
UNVERIFIED = 5_000
#: They are verified in batches, or after this many seconds.
VERIFY_S = 30.0

_FOUR = Struct("<4I").unpack


class Strides(BloomFilter):
    """pybloom-live's filter with other positions: each half of its bits gets an evenly spaced row
    of them, whose begin and distance are taken from the URL's hash (XXH3, with a seed of this
    process). bitarray sets or tests a row with one call, so a URL costs 1 us and not 5.

    The middle of a half is fuller than its ends, which makes rows lie six times as often as
    scattered bits: it is made for a tenth of the error rate (measured at capacity: 0.6 of the rate
    asked for, at 1e-6).
    """

    def __init__(self, capacity: int, error_rate: float) -> None:
        super().__init__(capacity, error_rate / 10)
        self._seed = random.getrandbits(64)  # no page can make addresses that hide those of others
        self._row = (self.num_slices + 1) // 2
        self._half = self.num_bits // 2
        self._widest = max(1, (self._half - 1) // self._row)
        #: URLs up to which its error is below SURE.
        self.sure = self._sure()

    def _sure(self) -> int:
        """By the share of set bits, for which rows lie ten times as often as scattered bits would
        (six were measured); and by rows that lie nearly where another URL's do, in both halves."""
        most_set = (SURE / 10) ** (1 / (2 * self._row))
        by_bits = -math.log1p(-most_set) * self.num_bits / (2 * self._row)
        near = (4 * self._row / (self._widest * self._half)) ** 2
        return int(min(by_bits, SURE / near, self.capacity))

    def _rows(self, url: str) -> tuple[slice, slice]:
        name = url.encode("utf-8", "surrogatepass")
        a, b, c, d = _FOUR(xxhash.xxh3_128_digest(name, self._seed))
        more, half = self._row - 1, self._half
        step = 1 + b % self._widest
        first = a % (half - more * step)
        step_2 = 1 + d % self._widest
        first_2 = half + c % (half - more * step_2)
        return slice(first, first + more * step + 1, step), slice(
            first_2, first_2 + more * step_2 + 1, step_2
        )

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
    :param links: URLs in the exact table, each of them met at least twice
    :param capacity: URLs in the filter; over it, it is emptied, as pybloom-live
        raises when it is full
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
        self.false_positives = (
            0  # links that the filter took for known ones, found when they were verified
        )
        self.unverified: OrderedDict[str, Link] = OrderedDict()
        self._verified = clock()
        self.clear()

    def clear(self) -> None:
        """Forgets what is known; what waits to be verified waits on."""
        self._exact: OrderedDict[str, None] = OrderedDict()
        self._bloom = Strides(self.capacity, self.error_rate)
        self._emptied = self.clock()

    def knows(
        self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0
    ) -> bool:
        """Whether the URL need not be offered.

        :param link: what would be offered, under ``parent`` and ``depth``. Without it the filter is
            asked only while it is sure, as nobody could find out a false positive
        """
        if self.clock() - self._emptied > self.reset_s:
            self.clear()
        if url in self._exact:
            self.lru_hits += 1
            return True
        bloom = self._bloom
        is_sure = bloom.count <= bloom.sure
        if not is_sure and (link is None or len(self.unverified) >= UNVERIFIED):
            return False
        if url not in bloom:
            return False
        self.bloom_hits += 1
        self._remember(url)
        if not is_sure:
            assert link is not None
            self.unverified[url] = replace(
                link, parent=parent or link.parent, depth=depth or link.depth
            )
        return True

    def unknown(
        self, links: Sequence[Link], parent: bytes | None, depth: int, *, verify: bool
    ) -> list[Link]:
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
        self.add_all((url,))

    def add_all(self, urls: Iterable[str]) -> None:
        """Redis confirmed them."""
        exact = self._exact
        for url in urls:
            if url not in exact and self._put(url):
                self._remember(url)

    def _put(self, url: str) -> bool:
        """Into the filter; whether it was there, which is not looked at while it is sure:
        :meth:`knows` did it."""
        bloom = self._bloom
        try:
            return bloom.add(url, skip_check=bloom.count <= bloom.sure)
        except IndexError:  # full
            self._bloom = Strides(self.capacity, self.error_rate)
            return self._bloom.add(url)

    def _remember(self, url: str) -> None:
        """Met again: the table answers from now on."""
        self._exact[url] = None
        if len(self._exact) > self.links:
            old = self._exact.popitem(last=False)[0]
            if old not in self.unverified:
                self._put(old)  # it is there, unless the filter was full meanwhile

    def to_verify(self, most: int, *, is_idle: bool = False) -> list[Link]:
        """Links to be offered now: a full batch, or what has waited long enough, or anything when
        there is nothing else to do. They are no longer kept here."""
        if not self.unverified:
            self._verified = self.clock()
            return []
        if not is_idle and len(self.unverified) < most and self.clock() - self._verified < VERIFY_S:
            return []
        self._verified = self.clock()
        links = [
            self.unverified.popitem(last=False)[1] for _ in range(min(most, len(self.unverified)))
        ]
        for link in links:
            self._exact.pop(link.url, None)  # known again when Redis says so
        return links

    def keep(self, links: list[Link]) -> None:
        """They could not be verified."""
        for link in links:
            self.unverified[link.url] = link
