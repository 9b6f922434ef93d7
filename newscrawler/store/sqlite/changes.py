"""Change numbers of the articles in a SQLite file: given out by the writer, followed by the
full-text index.

Only one process writes at a time, so numbers become visible in their order: who has seen change 7
has seen every change before it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from newscrawler.store import codec
from newscrawler.store.fulltext.schema import Change, Mark
from newscrawler.store.sqlite.schema import CHANGES_SINCE, snapshot

#: Changes whose transactions are remembered; an index that is further behind is made anew.
_KEPT = 500_000
#: Numbers of a question.
_ASKED = 500
#: An article that was purged has left its number in the history: none is given out twice.
_LAST = (
    "SELECT max(coalesce((SELECT max(change) FROM article), 0),"
    " coalesce((SELECT max(change) FROM history), 0))"
)


class Numbers:
    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


@contextmanager
def numbered(db: apsw.Connection) -> Iterator[Numbers]:
    """The numbers of one write transaction, which is open."""
    before = db.execute(_LAST).get
    numbers = Numbers(before)
    yield numbers
    if numbers.last > before:
        db.execute(
            "INSERT INTO history(change, token) VALUES(?,?)", (numbers.last, secrets.randbits(62))
        )
        db.execute("DELETE FROM history WHERE change < ?", (numbers.last - _KEPT,))


class Feed:
    """What an index is made from. A connection of its own, for one thread at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._db = connection

    def close(self) -> None:
        self._db.close()

    def last(self) -> int:
        """The greatest change; 0 in a file that has no numbers yet."""
        if not self._is_made():
            return 0
        found: int = self._db.execute(_LAST).get
        return found

    def _is_made(self) -> bool:
        """The file is there before its first writer has made the tables, or converted those of an
        earlier program: who follows has nothing to read yet."""
        version: int = self._db.pragma("user_version")
        return version >= CHANGES_SINCE

    def after(self, change: int, limit: int) -> tuple[list[Change], Mark]:
        """The next changes, oldest first, and the mark of an index that has them all."""
        with snapshot(self._db):
            if not self._is_made():
                return [], Mark(change, 0, 0)
            # As bytes: a text would be decoded on the way, and encoded again to read its JSON.
            rows: list[Any] = self._db.execute(
                "SELECT change, n, gone, order_ms, cluster, version, CAST(data AS BLOB) "
                "FROM article WHERE change > ? ORDER BY change LIMIT ?",
                (change, limit),
            ).fetchall()
            # What was purged has no row: the end is that of the history.
            done = rows[-1][0] if len(rows) == limit else max(change, self.last())
            boundary, token = self._boundary(done)
        return [_change(*row) for row in rows], Mark(done, boundary, token)

    def knows(self, mark: Mark) -> bool:
        """Whether what an index with this mark has seen is the history of this file."""
        with snapshot(self._db):
            if mark.done > self.last():
                return False
            if not self._is_made():
                return mark.token == 0
            token = self._db.execute(
                "SELECT token FROM history WHERE change = ?", (mark.boundary,)
            ).get
        return mark.token == (token or 0)

    def present(self, numbers: Sequence[int]) -> set[int]:
        """Those of them that an article has: a purged one has none."""
        return present(self._db, numbers)

    def _boundary(self, done: int) -> tuple[int, int]:
        row: Any = self._db.execute(
            "SELECT change, token FROM history WHERE change <= ? ORDER BY change DESC LIMIT 1",
            (done,),
        ).fetchone()
        return (0, 0) if row is None else (row[0], row[1])


def present(db: apsw.Connection, numbers: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for at in range(0, len(numbers), _ASKED):
        some = numbers[at : at + _ASKED]
        marks = ",".join("?" * len(some))
        found.update(n for (n,) in db.execute(f"SELECT n FROM article WHERE n IN ({marks})", some))
    return found


def _change(
    change: int, n: int, gone: int, order_ms: int, cluster: int | None, version: int, data: bytes
) -> Change:
    if gone:
        return Change(change, n)
    article = codec.unpack(data, version=version, cluster=None, gone=False)
    return Change(change, n, article, order_ms, cluster or 0)
