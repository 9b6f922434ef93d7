"""Stored pages for many machines to read again: chunks of raw references on a Redis stream.

`scrapy reparse --queue` fills it, `scrapy parse_worker` empties it, as many of them as one likes,
beside the crawl. A chunk belongs to the worker that took it while it gives a sign of life; one
whose worker was silent for ``LEASE_MS`` is given to another. What a chunk does can be repeated:
articles come by the one way into the store, where what is equal changes nothing, and a page never
replaces an article that was read from a newer one.

    {reparse}:chunks  stream of "refs" (msgpack); group "workers": who has which
    {reparse}:job     hash: state (filling, full), began_ms, pages, chunks, what was asked for
    {reparse}:sums    hash: what the workers did; field:<name>: articles in which that changed
    {reparse}:aside   list of refs (msgpack) of chunks at which workers died again and again
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import msgpack
import redis

from newscrawler.crawl.reparse import Choice, Reparser, ReparseReport
from newscrawler.frontier.errors import translated
from newscrawler.frontier.types import FrontierError, FrontierUnavailable
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.rawstore.errors import RawStoreGone
from newscrawler.selectorsets.store import SelectorsUnavailable
from newscrawler.store.base import StoreError, StoreGone, StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

PREFIX = "{reparse}"
CHUNKS, JOB, SUMS, ASIDE = (f"{PREFIX}:{name}" for name in ("chunks", "job", "sums", "aside"))
GROUP = "workers"
#: Pages of a chunk: some seconds of work.
CHUNK = 50
#: Milliseconds of silence after which a worker's chunk is given to another.
LEASE_MS = 30_000
#: Workers that may die at a chunk before it is put aside.
MOST_TRIES = 4
#: Seconds between two looks at an empty queue, and after a store that was away.
LOOK_S, AGAIN_S = 1.0, 3.0
#: What waiting mends, and what it does not although it is of their kind.
_AWAY = (FrontierUnavailable, StoreUnavailable, RawStoreUnavailable, SelectorsUnavailable)
_GONE = (StoreGone, RawStoreGone)
#: Counts of a report that are summed up.
_COUNTS = (
    "pages", "new", "changed", "unchanged", "not_article", "lost", "offsite", "refused", "older",
    "missing",
)  # fmt: skip

#: KEYS: chunks, sums. ARGV: group, id of the chunk, ms since the epoch, name, number, name ...
_DONE = """
if redis.call("XACK", KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call("XDEL", KEYS[1], ARGV[2])
for i = 4, #ARGV, 2 do redis.call("HINCRBY", KEYS[2], ARGV[i], ARGV[i + 1]) end
redis.call("HSET", KEYS[2], "last_ms", ARGV[3])
return 1
"""


class JobAtWork(ValueError):
    """What was queued before is not done yet."""


@dataclass(slots=True)
class Progress:
    """Of the job that was queued last. ``workers``: that hold a chunk or held one lately."""

    chunks: int = 0
    chunks_left: int = 0
    pages: int = 0
    began_ms: int = 0
    pages_per_s: float = 0.0
    set_aside: int = 0
    workers: dict[str, int] = field(default_factory=dict)  # name -> ms of silence
    sums: dict[str, int] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        return not self.chunks_left


@dataclass(frozen=True, slots=True)
class Chunk:
    id: bytes
    refs: list[str]


class ParseQueue:
    """:param client: asyncio; raises FrontierUnavailable where Redis does not answer"""

    def __init__(self, client: Any, lease_ms: int = LEASE_MS) -> None:
        self.client, self.lease_ms = client, lease_ms

    async def fill(self, refs: Sequence[str], choice: Choice, size: int = CHUNK) -> int:
        """Chunks of them; how many. One that was killed within is begun anew.

        :raises JobAtWork: chunks of an earlier job are left
        """
        with translated():
            state = await self.client.hget(JOB, "state")
            if state != b"filling" and (left := await self.client.xlen(CHUNKS)):
                raise JobAtWork(
                    f"{left} chunks of an earlier job are left; `scrapy parse_worker` does them,"
                    " `scrapy reparse --cancel` drops them"
                )
            await self.cancel()
            chunks = [refs[i : i + size] for i in range(0, len(refs), size)]
            asked = {k: str(v) for k, v in asdict(choice).items() if v is not None}
            await self.client.hset(JOB, mapping={"state": "filling", **asked})
            await self.client.xgroup_create(CHUNKS, GROUP, id="0", mkstream=True)
            for chunk in chunks:
                await self.client.xadd(CHUNKS, {"refs": msgpack.packb(list(chunk))})
            values = {
                "state": "full", "pages": len(refs), "chunks": len(chunks),
                "began_ms": int(time.time() * 1000),
            }  # fmt: skip
            await self.client.hset(JOB, mapping=values)
        return len(chunks)

    async def cancel(self) -> int:
        """Drops what is left; how many chunks. What workers have in hand they end."""
        with translated():
            left = int(await self.client.xlen(CHUNKS))
            for key in (CHUNKS, JOB, SUMS, ASIDE):
                await self.client.delete(key)
        return left

    async def take(self, worker: str) -> Chunk | None:
        """A chunk whose worker went silent, else the next one; None: there is none now."""
        try:
            with translated():
                return await self._abandoned(worker) or await self._next(worker)
        except FrontierError as exc:
            if "NOGROUP" in f"{exc} {type(exc.__cause__).__name__}":
                return None  # nothing was ever queued
            raise

    async def _abandoned(self, worker: str) -> Chunk | None:
        while True:
            found = await self.client.xautoclaim(CHUNKS, GROUP, worker, self.lease_ms, "0-0", 1)
            rows = [row for row in found[1] if row[0] is not None]
            if not rows:
                return None
            number, values = rows[0]
            pending = await self.client.xpending_range(CHUNKS, GROUP, number, number, 1)
            if not pending or pending[0]["times_delivered"] <= MOST_TRIES:
                return Chunk(number, msgpack.unpackb(values[b"refs"]))
            log.error(
                "Workers died or failed at this chunk again and again, put aside id=%s", number
            )
            await self._remove(number, aside=values[b"refs"])

    async def _next(self, worker: str) -> Chunk | None:
        found = await self.client.xreadgroup(GROUP, worker, {CHUNKS: ">"}, count=1)
        if not found:
            return None
        rows = found[0][1] if isinstance(found, list) else next(iter(found.values()))
        number, values = rows[0]
        return Chunk(number, msgpack.unpackb(values[b"refs"]))

    async def renew(self, worker: str, chunk: Chunk) -> bool:
        """A sign of life; False: the chunk is another's by now, or gone."""
        with translated():
            held = await self.client.xpending_range(CHUNKS, GROUP, chunk.id, chunk.id, 1)
            if not held or held[0]["consumer"] != worker.encode():
                return False
            await self.client.xclaim(CHUNKS, GROUP, worker, 0, [chunk.id], justid=True)
            return True

    async def done(self, chunk: Chunk, report: ReparseReport) -> bool:
        """Counts it and takes it away; False: another worker did before."""
        counts = {name: n for name in _COUNTS if (n := getattr(report, name))}
        counts |= {f"field:{name}": n for name, n in report.fields.items()}
        counts["chunks"] = 1
        told = [part for name, n in counts.items() for part in (name, n)]
        with translated():
            # In one script: a worker that is killed leaves the chunk with its counts, or neither.
            return bool(
                await self.client.eval(
                    _DONE, 2, CHUNKS, SUMS, GROUP, chunk.id, int(time.time() * 1000), *told
                )
            )

    async def _remove(self, number: bytes, aside: bytes | None = None) -> bool:
        # At once: a chunk that is acknowledged and not deleted is nobody's, and is left for ever.
        pipe = self.client.pipeline(transaction=True)
        pipe.xack(CHUNKS, GROUP, number)
        pipe.xdel(CHUNKS, number)
        if aside is not None:
            pipe.rpush(ASIDE, aside)
        return bool((await pipe.execute())[0])

    async def progress(self) -> Progress:
        with translated():
            job: dict[bytes, bytes] = await self.client.hgetall(JOB)
            sums: dict[bytes, bytes] = await self.client.hgetall(SUMS)
            left = int(await self.client.xlen(CHUNKS))
            aside = int(await self.client.llen(ASIDE))
            workers: dict[str, int] = {}
            with contextlib.suppress(redis.ResponseError):  # nothing was ever queued
                for row in await self.client.xinfo_consumers(CHUNKS, GROUP):
                    workers[row["name"].decode()] = int(row["idle"])
        counts = {name.decode(): int(value) for name, value in sums.items()}
        began_ms, last_ms = int(job.get(b"began_ms", 0)), counts.pop("last_ms", 0)
        found = Progress(
            chunks=int(job.get(b"chunks", 0)), chunks_left=left, pages=int(job.get(b"pages", 0)),
            began_ms=began_ms, set_aside=aside, workers=workers,
        )  # fmt: skip
        for name, n in counts.items():
            if name.startswith("field:"):
                found.fields[name[6:]] = n
            else:
                found.sums[name] = n
        if last_ms > began_ms:
            found.pages_per_s = counts.get("pages", 0) / (last_ms - began_ms) * 1000
        return found


class ParseWorker:
    """Takes chunks until :meth:`stop`, or until there are none with ``until_done``.

    :param refresh: is awaited before each chunk, for the selector sets of the moment
    :param say: is told a line a chunk
    """

    def __init__(
        self,
        queue: ParseQueue,
        name: str,
        reparser: Callable[[], Reparser],
        refresh: Callable[[], Any],
        *,
        until_done: bool = False,
        say: Callable[[str], None] = log.info,
    ) -> None:
        self.queue, self.name, self._reparser, self._refresh = queue, name, reparser, refresh
        self._until_done, self._say = until_done, say
        self._stopping = asyncio.Event()
        self.chunks = self.pages = 0
        self.set_aside = 0  # chunks, of all workers; known with ``until_done``

    def stop(self) -> None:
        """After the chunk in hand."""
        self._stopping.set()

    async def run(self) -> None:
        """:raises StoreGone, RawStoreGone: waiting does not help this process"""
        while not self._stopping.is_set():
            try:
                chunk = await self.queue.take(self.name)
                if chunk is not None:
                    await self._do(chunk)
                elif await self._is_over():
                    return
                else:
                    await self._sleep(LOOK_S)
            except _GONE:
                raise
            except (FrontierError, StoreError, *_AWAY) as exc:
                # The chunk comes again when its lease has run out, to this worker or another.
                log.warning("A chunk failed, or Redis is away error=%s", exc)
                await self._sleep(AGAIN_S)

    async def _is_over(self) -> bool:
        if not self._until_done:
            return False
        progress = await self.queue.progress()
        self.set_aside = progress.set_aside
        return progress.is_done

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _do(self, chunk: Chunk) -> None:
        began = time.monotonic()

        async def read() -> ReparseReport:
            with translated():
                await self._refresh()
            return await self._reparser().run_refs(chunk.refs)

        beat = asyncio.ensure_future(self._beat(chunk))
        try:
            report = await self._in_hand(beat, read)
            if report is None:
                return
            made = report
            is_ours = await self._in_hand(beat, lambda: self.queue.done(chunk, made))
        finally:
            beat.cancel()
        if is_ours:
            self.chunks += 1
            self.pages += report.pages
            self._say(
                f"Chunk done pages={report.pages} new={report.new} changed={report.changed}"
                f" s={time.monotonic() - began:.1f}"
            )

    async def _in_hand(
        self, beat: asyncio.Future[None], work: Callable[[], Awaitable[T]]
    ) -> T | None:
        """Again and again while something is away: a chunk that were given back each time would
        count as one at which workers die. None: it is another's by now, or this worker is to end.
        """
        while True:
            try:
                return await work()
            except _GONE:
                raise
            except _AWAY as exc:
                log.warning("A chunk waits for what is away error=%s", exc)
            await self._sleep(AGAIN_S)
            if beat.done() or self._stopping.is_set():
                return None

    async def _beat(self, chunk: Chunk) -> None:
        while True:
            await asyncio.sleep(self.queue.lease_ms / 3000)
            try:
                if not await self.queue.renew(self.name, chunk):
                    return
            except FrontierError as exc:
                log.warning("A sign of life did not reach Redis error=%s", exc)
