"""The oldest finished records of the frontier: out of Redis, still known. Small, keyed by
url id, never searched.

``open_finished`` picks what fits the article store: one SQLite file beside the local one, for all
processes of a machine; an index beside the articles in Elasticsearch, for a fleet. Both keep the
bytes as the frontier packed them.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import apsw

from newscrawler.store.base import StoreUnavailable

T = TypeVar("T")
IsOld = Callable[[bytes], bool]
FILE = "finished.db"
#: Ids of one question; SQLite allows 32,766 values.
_ASK = 500
_BUSY_MS = 5000
#: A finished record: nothing of it is searched, so nothing is indexed.
MAPPING = {"dynamic": False, "properties": {}, "_meta": {"schema": 1}}


class FinishedStore(Protocol):
    """What the frontier is handed (frontier/archive.py). Raises :class:`StoreUnavailable`."""

    async def put(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        """(url id, record): durable when it returns; a record that is there already is replaced."""

    async def get(self, url_ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those that it has."""

    async def prune(self, is_old: IsOld, *, dry_run: bool = False) -> int:
        """Forgets the records of which this is true; how many there are."""

    async def close(self) -> None: ...


class LocalFinished:
    """One SQLite file, opened at the first use. SQLite runs in a thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "finished")
        self._db: apsw.Connection | None = None

    async def put(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        def write(db: apsw.Connection) -> None:
            with db:
                db.executemany("INSERT OR REPLACE INTO finished (id, record) VALUES (?, ?)", found)

        await self._run(write)

    async def get(self, url_ids: Sequence[bytes]) -> dict[bytes, bytes]:
        def read(db: apsw.Connection) -> dict[bytes, bytes]:
            rows: dict[bytes, bytes] = {}
            for at in range(0, len(url_ids), _ASK):
                part = url_ids[at : at + _ASK]
                marks = ",".join("?" * len(part))
                rows.update(
                    db.execute(
                        f"SELECT id, record FROM finished WHERE id IN ({marks})", tuple(part)
                    )
                )
            return rows

        return await self._run(read)

    async def prune(self, is_old: IsOld, *, dry_run: bool = False) -> int:
        done, place = 0, b""
        while True:
            # Called before the loop goes on.
            rows = await self._run(lambda db: _batch(db, place))  # noqa: B023
            if not rows:
                return done
            place = rows[-1][0]
            going = [(one,) for one, data in rows if is_old(data)]
            done += len(going)
            if going and not dry_run:
                # Called before the loop goes on.
                await self._run(lambda db: _forget(db, going))  # noqa: B023

    async def count(self) -> int:
        return await self._run(lambda db: int(db.execute("SELECT count(*) FROM finished").get))

    async def close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, db.close)
        self._thread.shutdown()

    async def _run(self, work: Callable[[apsw.Connection], T]) -> T:
        def in_thread() -> T:
            with self._translated():
                if self._db is None:
                    self._db = self._open()
                return work(self._db)

        return await asyncio.get_running_loop().run_in_executor(self._thread, in_thread)

    def _open(self) -> apsw.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = apsw.Connection(str(self._path))
        db.set_busy_timeout(_BUSY_MS)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")  # what is here is nowhere else
        db.execute(
            "CREATE TABLE IF NOT EXISTS finished (id BLOB PRIMARY KEY, record BLOB NOT NULL)"
            " WITHOUT ROWID"
        )
        return db

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, OSError) as exc:
            raise StoreUnavailable(f"{self._path}: {exc}") from exc


def _batch(db: apsw.Connection, after: bytes) -> list[tuple[bytes, bytes]]:
    query = "SELECT id, record FROM finished WHERE id > ? ORDER BY id LIMIT ?"
    return [(bytes(one), bytes(data)) for one, data in db.execute(query, (after, 10 * _ASK))]


def _forget(db: apsw.Connection, ids: Sequence[tuple[bytes]]) -> None:
    with db:
        db.executemany("DELETE FROM finished WHERE id = ?", ids)


class ElasticFinished:
    """An index of its own beside the articles'. Documents are read by id, so they are found
    as soon as they are put."""

    def __init__(
        self, uri: str, *, index: str = "articles", api_key: str | None = None, ca_file: str = ""
    ) -> None:
        from newscrawler.store.elasticsearch.connection import Server

        self._server = Server(uri, index, api_key, ca_file)
        self._index = f"{index}-finished"
        self._is_made = False

    async def put(self, found: Sequence[tuple[bytes, bytes]]) -> None:
        """:raises StoreUnavailable: a record is refused"""
        if not found:
            return
        await self._make()
        operations: list[dict[str, object]] = []
        for url_id, record in found:
            operations += [
                {"index": {"_id": url_id.hex()}},
                {"data": base64.b64encode(record).decode()},
            ]
        for status, reason in await self._server.bulk(self._index, operations):
            if status >= 300:
                raise StoreUnavailable(
                    f"{self._server.name}: a finished record is refused: {reason}"
                )

    async def get(self, url_ids: Sequence[bytes]) -> dict[bytes, bytes]:
        await self._make()
        found = await self._server.look(self._index, [url_id.hex() for url_id in url_ids], ["data"])
        return {bytes.fromhex(d["_id"]): base64.b64decode(d["_source"]["data"]) for d in found}

    async def prune(self, is_old: IsOld, *, dry_run: bool = False) -> int:
        from newscrawler.store.elasticsearch import whole

        await self._make()
        going = []
        body = {"size": 10 * _ASK, "_source": ["data"], "query": {"match_all": {}}}
        async for hits in whole.view(self._server, self._index, body):
            going += [h["_id"] for h in hits if is_old(base64.b64decode(h["_source"]["data"]))]
        if not dry_run:
            await whole.delete(self._server, self._index, going)
        return len(going)

    async def close(self) -> None:
        await self._server.close()

    async def _make(self) -> None:
        if not self._is_made:
            await self._server.make(self._index, MAPPING)
            self._is_made = True


def open_finished(
    uri: str, data_dir: Path, *, index: str | None = None, ca_file: str = ""
) -> FinishedStore:
    """:param uri: that of the article store; "" = SQLite in ``data_dir``
    :param ca_file: ARTICLE_STORE_CA_FILE"""
    if uri.startswith(("http://", "https://")):
        return ElasticFinished(
            uri,
            index=index or "articles",
            api_key=os.environ.get("ARTICLE_STORE_API_KEY"),
            ca_file=ca_file,
        )
    return LocalFinished(data_dir / FILE)
