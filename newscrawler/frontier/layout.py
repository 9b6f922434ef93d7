"""Which shard a domain is in, also while `scrapy frontier reshard` moves domains.

``{frontier}:meta`` says it, for the whole fleet. ``shards``: how many there are (the larger number
while they change); ``before`` and ``after``: the numbers between which domains move; ``cursor``:
how far: a domain whose upper 16 bits of CRC32 are below it is where ``after`` shards put it,
another one where ``before`` did. ``epoch`` grows with each move. Each shard repeats it in
``{f}:state`` ``layout``: every script that changes a domain compares it with that of its caller and
refuses the call where they differ, so that no worker writes by an old map. While a step moves
domains, ``phase`` is not "open" and the shards' word is one that no caller has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

from newscrawler.frontier import keys

#: Values that the cursor goes through.
PLACES = 2**16
OPEN = "open"


@dataclass(frozen=True, slots=True)
class Layout:
    """
    :param changed_s: when shards were last changed; 0 = never. What a finished record says of its
        raw file holds for later visits only: each shard numbers the files for itself
    """

    shards: int
    before: int
    after: int
    cursor: int = PLACES
    epoch: int = 0
    phase: str = OPEN
    changed_s: int = 0

    @classmethod
    def of_count(cls, shards: int) -> Layout:
        """Of a frontier whose shards were never changed."""
        return cls(shards, shards, shards)

    @classmethod
    def of_meta(cls, meta: dict[bytes, bytes]) -> Layout:
        """:param meta: what keys.META holds"""
        shards = int(meta.get(b"shards") or 1)
        if b"epoch" not in meta:
            return cls.of_count(shards)
        return cls(
            shards,
            int(meta[b"before"]),
            int(meta[b"after"]),
            int(meta[b"cursor"]),
            int(meta[b"epoch"]),
            meta[b"phase"].decode(),
            int(meta[b"changed_s"]),
        )

    @property
    def is_open(self) -> bool:
        return self.phase == OPEN

    @property
    def is_whole(self) -> bool:
        """Nothing is left to be moved."""
        return self.is_open and self.before == self.after

    @property
    def word(self) -> str:
        """What a shard's ``layout`` is while callers that know this layout may change it."""
        return str(self.epoch)

    @property
    def closed_word(self) -> str:
        """The same while a step moves domains: no caller says it."""
        return f"closed {self.epoch}"

    def of(self, domain: str) -> int:
        """The shard of a domain."""
        if self.shards == 1:
            return 0
        number = crc32(domain.encode())
        count = self.after if number >> 16 < self.cursor else self.before
        return number % count


async def read(client: Any) -> Layout:
    """Of the frontier in this Redis; one shard where there is none yet."""
    return Layout.of_meta(await client.hgetall(keys.META))
