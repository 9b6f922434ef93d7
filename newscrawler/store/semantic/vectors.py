"""The file of vectors beside the articles: one writer (the follower), any number of readers.

Vectors are kept as the model made them, in 16 bits: what is compared is made from them when
they are read (matrix), so that a better way needs no model. Each write has a number that
rises, and a row without a vector says that its article is gone: a reader asks for what came
after the number that it knows.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from newscrawler.store.fulltext.schema import Mark
from newscrawler.store.semantic.embedder import Model
from newscrawler.store.transaction import immediate

_TABLES = """
CREATE TABLE IF NOT EXISTS model(
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, dimension INTEGER NOT NULL,
    epoch INTEGER NOT NULL,    -- another one: the vectors were made anew
    -- the mark, see fulltext.schema
    done INTEGER NOT NULL, boundary INTEGER NOT NULL, token INTEGER NOT NULL,
    UNIQUE(name, version, dimension)
);
CREATE TABLE IF NOT EXISTS vector(
    model INTEGER NOT NULL,
    n INTEGER NOT NULL,        -- number of the article
    place INTEGER NOT NULL,    -- rises with each write of this model
    digest BLOB NOT NULL,      -- of the text that was embedded
    data BLOB,                 -- float16; NULL: the article is gone
    PRIMARY KEY(model, n)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS vector_place ON vector(model, place);
"""
_MODEL = "name = ? AND version = ? AND dimension = ?"
_BUSY_MS = 5_000
#: What is replaced is gone from the file as well: a vector says what its text was about.
_OVERWRITE = "PRAGMA secure_delete = ON"
#: Rows that are read at once.
_ROWS = 5_000
#: Numbers -> those of them that are an article's.
Present = Callable[[Sequence[int]], set[int]]


@dataclass(frozen=True, slots=True)
class Row:
    """``vector`` is None when the article is gone."""

    n: int
    digest: bytes
    vector: Any = None


@dataclass(frozen=True, slots=True)
class Known:
    """What the file has of one model."""

    id: int
    epoch: int
    mark: Mark


class VectorFile:
    """A connection, for one thread at a time. Raises apsw.Error."""

    def __init__(self, path: Path, model: Model, *, create: bool) -> None:
        self.path, self.model = path, model
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        self._db = apsw.Connection(str(path), flags=flags)
        try:
            self._db.set_busy_timeout(_BUSY_MS)
            self._db.execute(_OVERWRITE)
            if create:
                # NORMAL: what a power failure takes away is made again.
                self._db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
                self._db.execute(_TABLES)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    # ------------------------------------------------------------------ reading
    def known(self) -> Known | None:
        row: Any = self._db.execute(
            f"SELECT id, epoch, done, boundary, token FROM model WHERE {_MODEL}", self._of_model()
        ).fetchone()
        return None if row is None else Known(row[0], row[1], Mark(*row[2:]))

    def after(self, known: Known, place: int) -> Iterator[tuple[int, list[tuple[int, Any]]]]:
        """Batches of (last place, [(number, vector or None)])."""
        while True:
            rows: list[Any] = self._db.execute(
                "SELECT place, n, data FROM vector WHERE model = ? AND place > ? ORDER BY place"
                " LIMIT ?",
                (known.id, place, _ROWS),
            ).fetchall()
            if not rows:
                return
            place = rows[-1][0]
            yield place, [(n, None if data is None else _read(data)) for _, n, data in rows]

    def last_place(self, known: Known) -> int:
        found: int = self._db.execute(
            "SELECT coalesce(max(place), 0) FROM vector WHERE model = ?", (known.id,)
        ).get
        return found

    def count(self, known: Known) -> int:
        found: int = self._db.execute(
            "SELECT count(*) FROM vector WHERE model = ? AND data IS NOT NULL", (known.id,)
        ).get
        return found

    def vector(self, known: Known, n: int) -> Any:
        data = self._db.execute(
            "SELECT data FROM vector WHERE model = ? AND n = ?", (known.id, n)
        ).get
        return None if data is None else _read(data)

    def digest(self, known: Known, n: int) -> bytes | None:
        """Of the text whose vector the article has."""
        found: bytes | None = self._db.execute(
            "SELECT digest FROM vector WHERE model = ? AND n = ? AND data IS NOT NULL",
            (known.id, n),
        ).get
        return found

    # ------------------------------------------------------------------ writing
    def begin(self) -> Known:
        """The model's own part, made where it is missing."""
        if (known := self.known()) is None:
            self._db.execute(
                "INSERT INTO model(name, version, dimension, epoch, done, boundary, token)"
                " VALUES(?,?,?,?,0,0,0)",
                (*self._of_model(), secrets.randbits(62)),
            )
            known = self.known()
        assert known is not None
        return known

    def restart(self, known: Known) -> Known:
        """Forgets the vectors of this model: they belong to other articles."""
        with self._db:
            self._db.execute("DELETE FROM vector WHERE model = ?", (known.id,))
            self._db.execute(
                "UPDATE model SET epoch = ?, done = 0, boundary = 0, token = 0 WHERE id = ?",
                (secrets.randbits(62), known.id),
            )
        return self.begin()

    def put(self, known: Known, rows: Sequence[Row], mark: Mark, present: Present) -> None:
        """All of it or nothing: the mark says which changes are in it."""
        with immediate(self._db):
            # An article may be purged while its vector is made. Asked under the lock that
            # :func:`forget_purged` waits for, so that one of the two sees it.
            there = present([row.n for row in rows if row.vector is not None])
            place = self.last_place(known)
            for row in rows:
                if row.vector is not None and row.n not in there:
                    continue
                place += 1
                data = None if row.vector is None else row.vector.astype(np.float16).tobytes()
                self._db.execute(
                    "INSERT OR REPLACE INTO vector(model, n, place, digest, data)"
                    " VALUES(?,?,?,?,?)",
                    (known.id, row.n, place, row.digest, data),
                )
            self._db.execute(
                "UPDATE model SET done = ?, boundary = ?, token = ? WHERE id = ?",
                (mark.done, mark.boundary, mark.token, known.id),
            )

    def forget_others(self, known: Known) -> int:
        """Vectors of other models, which nobody compares any more; how many there were."""
        with self._db:
            self._db.execute("DELETE FROM vector WHERE model <> ?", (known.id,))
            gone = self._db.changes()
            self._db.execute("DELETE FROM model WHERE id <> ?", (known.id,))
        return gone

    def _of_model(self) -> tuple[str, str, int]:
        return self.model.name, self.model.version, self.model.dimension


def forget_purged(path: Path, present: Present) -> None:
    """Vectors of articles that are no longer there, of every model: readers are told by rows
    without one. All are looked at: who purged may have been killed before this. Raises
    apsw.Error."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_timeout(_BUSY_MS)
        db.execute(_OVERWRITE)
        with immediate(db):
            kept: list[Any] = db.execute(
                "SELECT model, n FROM vector WHERE data IS NOT NULL"
            ).fetchall()
            there = present([n for _, n in kept])
            for model, n in kept:
                if n not in there:
                    db.execute(
                        "UPDATE vector SET data = NULL, digest = x'', place ="
                        " (SELECT max(place) + 1 FROM vector WHERE model = ?1)"
                        " WHERE model = ?1 AND n = ?2",
                        (model, n),
                    )
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()


def _read(data: bytes) -> Any:
    return np.frombuffer(data, dtype=np.float16).astype(np.float32)
