"""The outbox of a SQLite file: events are rows, written in the transaction of the article's change
and numbered by it (write.py); how far each sink has been told is a row of the same file.

A file that is put back from a backup brings its cursors along, so what was told since is told
again. The one process that delivers is told by a lock that the kernel lets go of when it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import apsw

from newscrawler.store import codec
from newscrawler.store.base import StoreUnavailable
from newscrawler.store.events import Batch, DeadLetter, Event, Kind
from newscrawler.store.fulltext.lock import Lock
from newscrawler.store.sqlite import schema
from newscrawler.store.transaction import immediate

T = TypeVar("T")
#: A sink that nobody serves is waited for so long; then its events may be dropped.
KEPT_MS = 30 * 86_400_000
_END = "SELECT coalesce(max(change), 0) FROM history"
#: Of one event: the article's data as it was in that version. As bytes: a text would be decoded on
#: the way, and encoded again by the reader of its JSON.
_DATA = (
    "CASE WHEN a.version = e.version THEN CAST(a.data AS BLOB) ELSE "
    "(SELECT v.data FROM version v WHERE v.n = e.n AND v.version = e.version) END"
)
_AFTER = (
    f"SELECT e.change, e.kind, e.version, e.at_ms, {_DATA} FROM event e JOIN article a ON a.n = e.n"
    " WHERE e.change > ? ORDER BY e.change LIMIT ?"
)
_ONE = (
    f"SELECT {_DATA} FROM article a JOIN (SELECT n, ? AS version FROM article WHERE id = ?) e"
    " ON a.n = e.n"
)


class SqliteOutbox:
    """See store.events.Outbox. Its connection is used in a thread of its own."""

    def __init__(self, path: Path, now_ms: Callable[[], int] | None = None) -> None:
        self._path = path
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._lock = Lock(path.with_suffix(".events.lock"))
        self._thread = ThreadPoolExecutor(1, "articles-events")
        self._db: apsw.Connection | None = None
        self._closed = False

    async def begin(self, sinks: Sequence[str]) -> None:
        def write(db: apsw.Connection) -> None:
            with immediate(db):
                db.executemany(
                    f"INSERT OR IGNORE INTO sink(name, position, served_ms) SELECT ?, ({_END}), ?",
                    [(name, self._now_ms()) for name in sinks],
                )

        await self._run(write)

    async def cursors(self) -> dict[str, str]:
        rows: list[Any] = await self._run(
            lambda db: db.execute("SELECT name, position FROM sink").fetchall()
        )
        return {name: str(position) for name, position in rows}

    async def after(self, position: str, limit: int) -> Batch:
        rows: list[Any] = await self._run(
            lambda db: db.execute(_AFTER, (int(position), limit)).fetchall()
        )
        events = [
            _event(kind, version, at_ms, data)
            for _, kind, version, at_ms, data in rows
            if data is not None  # a sink that began later than the version was pruned
        ]
        return Batch(events, str(rows[-1][0]) if rows else position)

    async def move(self, sink: str, position: str) -> None:
        await self._run(
            lambda db: db.execute(
                "UPDATE sink SET position = max(position, ?) WHERE name = ?", (int(position), sink)
            ).fetchall()
        )

    async def hold(self) -> bool:
        def take(_: apsw.Connection) -> bool:
            try:
                return self._lock.take()
            except OSError as exc:
                raise StoreUnavailable(f"{self._lock.path}: {exc.strerror or exc}") from exc

        return await self._run(take)

    async def keep(self, letters: Sequence[DeadLetter]) -> None:
        rows = [
            (x.sink, x.article_id, x.version, x.kind, x.at_ms, x.reason, x.refused_ms)
            for x in letters
        ]

        def write(db: apsw.Connection) -> None:
            with immediate(db):
                db.executemany("INSERT OR REPLACE INTO letter VALUES(?,?,?,?,?,?,?)", rows)

        await self._run(write)

    async def dead_letters(self) -> list[DeadLetter]:
        rows: list[Any] = await self._run(
            lambda db: db.execute("SELECT * FROM letter ORDER BY refused_ms, at_ms").fetchall()
        )
        return [DeadLetter(*row) for row in rows]

    async def read(self, letter: DeadLetter) -> Event | None:
        data: bytes | None = await self._run(
            lambda db: db.execute(_ONE, (letter.version, letter.article_id)).get
        )
        return None if data is None else _event(letter.kind, letter.version, letter.at_ms, data)

    async def forget(self, letters: Sequence[DeadLetter]) -> None:
        keys = [(x.sink, x.article_id, x.version, x.kind) for x in letters]

        def write(db: apsw.Connection) -> None:
            with immediate(db):
                db.executemany(
                    "DELETE FROM letter WHERE sink = ? AND id = ? AND version = ? AND kind = ?",
                    keys,
                )

        await self._run(write)

    async def tidy(self, sinks: Sequence[str]) -> None:
        now = self._now_ms()

        def write(db: apsw.Connection) -> None:
            with immediate(db):
                db.executemany(
                    "UPDATE sink SET served_ms = ? WHERE name = ?", [(now, name) for name in sinks]
                )
                db.execute(
                    "DELETE FROM event WHERE change <= "
                    "(SELECT min(position) FROM sink WHERE served_ms > ?)",
                    (now - KEPT_MS,),
                )

        await self._run(write)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._thread.shutdown()
        self._lock.release()
        if self._db is not None:
            self._db.close()

    async def _run(self, work: Callable[[apsw.Connection], T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"article store {self._path}: is closed")

        def run() -> T:
            with schema.translated(self._path):
                if self._db is None:
                    self._db = schema.connect(self._path, create=True)
                    # A cursor that a power failure takes back only tells something twice; so
                    # moving it waits for no disk, and holds up no article.
                    self._db.execute("PRAGMA synchronous = NORMAL")
                return work(self._db)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)


def _event(kind: Kind, version: int, at_ms: int, data: bytes) -> Event:
    article = codec.unpack(data, version=version, cluster=None, gone=kind == "gone")
    return Event(kind, version, datetime.fromtimestamp(at_ms / 1000, UTC), article)
