"""Makes the vectors that are missing, one article at a time, in the background of one
process of the machine.

It follows the articles by their change numbers, as the index of words does: the mark of
what is done is written with the vectors, so a process that is killed at any moment has lost
at most the batch it was at, which the next one makes again. What goes wrong here delays
vectors, never what is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

import apsw
import xxhash

from newscrawler.store.base import StoreError
from newscrawler.store.fulltext import indexer
from newscrawler.store.fulltext.lock import SAY_S, Lock, Problem
from newscrawler.store.fulltext.schema import Change, Mark
from newscrawler.store.semantic.embedder import (
    Embedder,
    EmbedderError,
    checked,
    passage_text,
)
from newscrawler.store.semantic.vectors import Known, Row, VectorFile

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Articles of one commit: some seconds of work that are lost when the process is killed.
BATCH = 20
#: Seconds between two looks when nothing is to be done, when another process is at it, and
#: after a failure.
PERIOD_S, BUSY_S, RETRY_S = 1.0, 5.0, 10.0
#: Changes behind from which on progress is worth a line.
_MANY = 200


class Feed(indexer.Feed, Protocol):
    """The store, as the follower sees it."""

    def present(self, numbers: Sequence[int]) -> set[int]: ...


class Follower:
    """``start`` it in a process that stays; any number of them wait for the lock of
    the one that works."""

    def __init__(
        self,
        articles: Path,
        vectors: Path,
        open_feed: Callable[[], Feed],
        embedder: Embedder,
        *,
        period_s: float = PERIOD_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._articles, self._path = articles, vectors
        self._open_feed, self._embedder = open_feed, embedder
        self._period_s, self._retry_s = period_s, retry_s
        self._lock = Lock(vectors.with_name(vectors.name + ".lock"))
        self._problem = Problem(
            self._lock,
            log,
            f"vectors {vectors}",
            "articles are stored and found by words until this is mended",
        )
        self._task: asyncio.Task[None] | None = None
        self._feed: Feed | None = None
        self._feed_of: tuple[int, int] | None = None
        self._file: VectorFile | None = None
        self._known: Known | None = None
        self._was_behind = False
        self._started: tuple[float, int] = (0.0, 0)
        self._pool = ThreadPoolExecutor(1, "vectors")

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await asyncio.to_thread(self._pool.shutdown)  # what it is at ends first
        self._release()

    async def _threaded(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    # ------------------------------------------------------------------ the task
    async def _run(self) -> None:
        while True:
            pause_s = self._period_s
            try:
                pause_s = await self.step()
                self._problem.ended()
            except EmbedderError as exc:
                self._problem.occurred(str(exc))
                pause_s = self._retry_s
            except (apsw.CorruptError, apsw.NotADBError):
                self._problem.occurred("the file is damaged; it is made anew")
                self._throw_away()
            except (apsw.Error, OSError, StoreError) as exc:
                self._problem.occurred(f"{exc.__class__.__name__}: {exc}")
                self._release()
                pause_s = self._retry_s
            except Exception as exc:  # a fault of an embedder must not end the search page
                self._problem.occurred(f"{exc.__class__.__name__}: {exc}")
                log.exception("vectors %s", self._path)
                pause_s = self._retry_s
            await asyncio.sleep(pause_s)

    async def step(self) -> float:
        """One batch; seconds until the next one."""
        if not await self._threaded(self._begin):
            return BUSY_S if not self._lock.is_held else self._period_s
        assert self._feed is not None and self._file is not None and self._known is not None
        known = self._known
        changes, mark = await self._threaded(self._feed.after, known.mark.done, BATCH)
        if not changes:
            if mark != known.mark:  # what came last was purged
                await self._threaded(self._put, [], mark)
            await self._threaded(self._caught_up)
            return self._period_s
        rows = [row for change in changes if (row := await self._row(change)) is not None]
        await self._threaded(self._put, rows, mark)
        return 0.0

    async def _row(self, change: Change) -> Row | None:
        """None: its text is the one whose vector is there."""
        assert self._file is not None and self._known is not None
        if change.article is None:
            return Row(change.n, b"")
        text = passage_text(change.article)
        digest = xxhash.xxh3_128_digest(text.encode())
        if self._file.digest(self._known, change.n) == digest:
            return None
        vector = await self._embedder.passage(text)
        return Row(change.n, digest, checked(vector, self._embedder.model))

    # ------------------------------------------------------------------ in a thread
    def _begin(self) -> bool:
        """Takes the lock and opens what is needed. False: another process is at it, or no
        article is stored."""
        if not self._articles.is_file() or not self._lock.take():
            return False
        stat = self._articles.stat()
        if self._feed is None or self._feed_of != (stat.st_dev, stat.st_ino):
            self._close_files()
            self._feed, self._feed_of = self._open_feed(), (stat.st_dev, stat.st_ino)
        if self._file is not None and not self._path.is_file():
            self._file.close()
            self._file = self._known = None
        if self._file is None or self._known is None:
            self._file = VectorFile(self._path, self._embedder.model, create=True)
            self._known = self._file.begin()
            if not self._feed.knows(self._known.mark):
                log.warning("vectors %s: belong to other articles; they are made anew", self._path)
                self._known = self._file.restart(self._known)
            self._started = (time.monotonic(), self._known.mark.done)
        return self._feed.last() > 0

    def _put(self, rows: list[Row], mark: Mark) -> None:
        assert self._file is not None and self._known is not None and self._feed is not None
        self._file.put(self._known, rows, mark, self._feed.present)
        self._known = self._file.begin()
        last = self._feed.last()
        if last - mark.done >= _MANY and self._problem.may_say(SAY_S):
            self._was_behind = True
            since, before = self._started
            rate = (mark.done - before) / max(time.monotonic() - since, 0.001)
            log.info(
                "vectors %s: %d of %d changes have theirs of %s; about %.0f minutes to go",
                self._path, mark.done, last, self._embedder.model,
                (last - mark.done) / max(rate, 0.001) / 60,
            )  # fmt: skip

    def _caught_up(self) -> None:
        assert self._file is not None and self._known is not None
        self._started = (time.monotonic(), self._known.mark.done)
        if gone := self._file.forget_others(self._known):
            log.info("vectors %s: %d of other models are forgotten", self._path, gone)
        if self._was_behind:
            self._was_behind = False
            log.info("vectors %s: every article has its own", self._path)

    # ------------------------------------------------------------------ when it fails
    def _throw_away(self) -> None:
        self._close_files()
        for name in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                Path(f"{self._path}{name}").unlink()

    def _close_files(self) -> None:
        for part in (self._feed, self._file):
            if part is not None:
                part.close()
        self._feed = self._file = self._known = None

    def _release(self) -> None:
        self._close_files()
        self._lock.release()
