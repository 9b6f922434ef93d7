"""Where the oldest finished records go, so that those in Redis stay bounded, and how
they are found again.

Redis keeps about ``FrontierConfig.finished_limit`` of them. A script that finds a bucket over its
share names it in ``{f}:full``; the next :meth:`Mover.move` of any worker writes the bucket's oldest
records to the archive, and only then takes them out of Redis: a crash between leaves them in both,
which changes nothing. When a link is offered that the seen filter knows and no record in Redis
does, the archive is asked, and the record that it has is kept in Redis again for a while
(_offer.lua). What it does not have either was a false positive: such a link is admitted.

The archive is handed in: the frontier does not know what it is made of (store/finished.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Protocol

import msgpack

from newscrawler.frontier import keys, records
from newscrawler.frontier.errors import translated
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.types import FrontierUnavailable

logger = logging.getLogger(__name__)

#: Buckets that one round moves. With a share of 90 records they hold about 3,000, of which 350 go.
BUCKETS = 32
#: Records that one script takes out: Redis answers nobody while it does, half a millisecond.
AT_ONCE = 128
#: Seconds between two rounds, and after one that failed.
EVERY_S = 1.0
AGAIN_S = 30.0
#: A bucket that was over its share is brought this far below it, so that it is not over again with
#: the next record.
KEPT = 7 / 8


class Archive(Protocol):
    """Finished records by url id, shared by the whole fleet. Any exception = it is away;
    nothing was half-written."""

    async def put(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        """(url id, record): durable when it returns. A record that is there already is replaced."""

    async def get(self, url_ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those that it has."""


class Mover:
    """One worker's hand on the archive.

    :param share: finished records that a bucket may hold, see :func:`packing.finished_per_bucket`
    """

    def __init__(
        self,
        client: Any,
        scripts: Scripts,
        archive: Archive,
        share: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client, self.scripts, self.archive = client, scripts, archive
        self.share, self.clock = share, clock
        self.moved = 0
        self.asked = 0
        self._due = 0.0
        self._shards: set[int] = set()

    def note(self, shard: int) -> None:
        """A bucket of this shard is over its share."""
        self._shards.add(shard)

    async def look(self, url_ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """:raises FrontierUnavailable: without the archive nobody knows whether these
        were fetched; wait"""
        self.asked += len(url_ids)
        try:
            return await self.archive.get(url_ids)
        except Exception as exc:
            raise FrontierUnavailable(
                f"the archive of finished records does not answer: {exc}"
            ) from exc

    async def move(self) -> int:
        """One round, if one is due and anything is to be moved. How many records went. An archive
        that is away is only logged: the records stay in Redis."""
        if not self._shards or self.clock() < self._due:
            return 0
        shard = self._shards.pop()
        self._due = self.clock() + EVERY_S
        with translated():
            buckets = await self.client.spop(keys.full(shard), BUCKETS)
        if not buckets:
            return 0
        self._shards.add(shard)  # there may be more of them
        try:
            return await self._move(shard, [int(bucket) for bucket in buckets])
        except Exception as exc:
            with translated():
                await self.client.sadd(keys.full(shard), *buckets)
            self._due = self.clock() + AGAIN_S
            logger.warning(
                "Finished records stay in Redis, the archive does not take them error=%s", exc
            )
            return 0

    async def _move(self, shard: int, buckets: list[int]) -> int:
        with translated():
            pipe = self.client.pipeline(transaction=False)
            for bucket in buckets:
                pipe.hgetall(keys.bucket(shard, bucket))
            contents = await pipe.execute()
        old: list[tuple[int, bytes, bytes]] = []
        for bucket, held in zip(buckets, contents, strict=True):
            old += [(bucket, field, held[field]) for field in self._oldest(held)]
        if not old:
            return 0
        await self.archive.put(
            [(keys.finished_id(bucket, field), data) for bucket, field, data in old]
        )
        moved = 0
        for start in range(0, len(old), AT_ONCE):
            rows = old[start : start + AT_ONCE]
            flat = msgpack.packb(list(chain.from_iterable(rows)), use_bin_type=False)
            with translated():
                moved += int(await self.scripts.run("forget", keys.prefix(shard), flat))
        self.moved += moved
        return moved

    def _oldest(self, held: dict[bytes, bytes]) -> list[bytes]:
        """Fields of a bucket that is over its share: those that go."""
        if len(held) <= self.share:
            return []
        ages = {field: records.finished_age(packed) for field, packed in held.items()}
        return sorted(held, key=ages.__getitem__)[: len(held) - int(self.share * KEPT)]
