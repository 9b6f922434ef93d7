"""Which articles have which keys of near-duplicates (``near_duplicates.candidate_keys``).

Keys are random numbers, some thirty an article: written at once, each dirties a page of a tree of
its own, which costs more the larger the tree is (of 100,000 articles half of all that storing one
costs). So the keys of a new article are kept beside its number first (table ``band_fresh``) and in
memory, and go into the tree ``band`` in their order: a position moves through the space of keys, a
step for each new article, and what it passes is written, all neighbours at once. After one round
of ``ROUND`` articles everything that was there at its beginning is in the tree. O'Neil et al.,
"The log-structured merge-tree" (1996), without its second file.

The position is part of each transaction, so nothing here can be lost or be there twice. Memory
only repeats what ``band_fresh`` holds, and is read again where another process has written or a
transaction was undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import numpy as np

#: Keys are of 53 bits; the position counts their first 40, and goes on counting after a round.
_SHIFT, _SPACE = 13, 1 << 40
#: New articles until the position has come round. Half of their keys are in memory: 8 MB.
ROUND = 1 << 15
#: New articles until those in the dictionary join the sorted ones: at the borders of the space.
GATHERED = 512
#: Entries of keys that are looked at.
_ROWS = 2_000
_SHARED = "SELECT key, n FROM band WHERE key IN ({}) LIMIT ?"
_INSERT = "INSERT OR IGNORE INTO band(key, n) VALUES(?,?)"
_STATE = "SELECT position, forgotten, coalesce((SELECT max(n) FROM band_fresh), 0) FROM band_round"
_WRITTEN = (
    "DELETE FROM band_fresh WHERE n IN"
    " (SELECT n FROM (SELECT n, at FROM band_fresh ORDER BY n LIMIT ?) WHERE at <= ?)"
)


class Bands:
    """``begin`` and ``end`` stand around each write transaction, in it; ``undone`` after one that
    was rolled back.

    :param round_: powers of two, as ``gathered``
    """

    def __init__(self, db: apsw.Connection, round_: int = ROUND, gathered: int = GATHERED) -> None:
        self._db = db
        self._gathered = gathered
        self._step = _SPACE // round_
        self._border = gathered * self._step
        self._position = -1  # < 0: nothing is known
        self._forgotten = 0  # articles that left ``band_fresh`` before their round was over
        self._stored = (-1, 0)  # both as they stand in the file
        self._last = 0  # the greatest number that was taken from ``band_fresh``
        self._new = 0  # articles of this transaction
        self._cleaned = 0  # position up to which what was written has left memory
        self._keys = _no_numbers()  # in order, with the articles that have them
        self._numbers = _no_numbers()
        self._recent: dict[int, list[int]] = {}

    # ------------------------------------------------------------------ transactions
    def begin(self) -> None:
        position, forgotten, last = self._db.execute(_STATE).get
        if self._position < 0 or forgotten != self._forgotten:
            self._forget_memory()
        elif (position, last) == (self._position, self._last):
            return
        self._stored = self._position, self._forgotten = position, forgotten
        self._gather()
        rows = self._db.execute("SELECT n, at, keys FROM band_fresh WHERE n > ?", (self._last,))
        self._take(rows.fetchall())
        self._last = last

    def end(self) -> None:
        """Writes what the new articles have moved the position by."""
        while self._new:
            until = (self._position // self._border + 1) * self._border
            steps = min(self._new, (until - self._position) // self._step)
            self._write(steps * self._step)
            self._new -= steps
            if self._position == until:
                self._gather()
                # Those of the round before are all in the tree.
                self._db.execute(_WRITTEN, (4 * self._gathered, self._position - _SPACE))
        if self._stored != (self._position, self._forgotten):
            self._stored = self._position, self._forgotten
            self._db.execute("UPDATE band_round SET position = ?, forgotten = ?", self._stored)

    def undone(self) -> None:
        self._forget_memory()

    # ------------------------------------------------------------------ in a transaction
    def holders(self, keys: Sequence[int]) -> dict[int, list[int]]:
        """The articles that have each key."""
        holders: dict[int, list[int]] = {key: self._recent.get(key, [])[:] for key in keys}
        if not keys:
            return holders
        asked = np.array(keys, dtype=np.int64)
        first = np.searchsorted(self._keys, asked, "left")
        for at in np.flatnonzero(np.searchsorted(self._keys, asked, "right") > first):
            key, place = int(asked[at]), int(first[at])
            end = int(np.searchsorted(self._keys, key, "right"))
            holders[key] += self._numbers[place:end].tolist()
        for key, n in self._db.execute(_SHARED.format(",".join("?" * len(keys))), (*keys, _ROWS)):
            if n not in holders[key]:  # it may have just been written
                holders[key].append(n)
        return holders

    def add(self, n: int, keys: Iterable[int]) -> None:
        """Of a new article."""
        at = (self._position // self._border + 1) * self._border
        ahead = at - self._position
        soon: list[int] = []
        later: list[int] = []
        for key in keys:
            # What is passed before the article is among the sorted ones is written at once.
            is_soon = ((key >> _SHIFT) - self._position) % _SPACE < ahead
            (soon if is_soon else later).append(key)
        self.write(n, soon)
        packed = np.array(later, dtype="<i8").tobytes()
        self._db.execute("INSERT INTO band_fresh(n, at, keys) VALUES(?,?,?)", (n, at, packed))
        for key in later:
            self._recent.setdefault(key, []).append(n)
        self._last = max(self._last, n)
        self._new += 1

    def write(self, n: int, keys: Iterable[int]) -> None:
        """Into the tree: of an article that has changed."""
        self._db.executemany(_INSERT, [(key, n) for key in sorted(keys)])

    def forget(self, n: int, keys: Iterable[int]) -> None:
        """The article has changed or goes; ``keys`` are those that it had."""
        self._db.executemany("DELETE FROM band WHERE key = ? AND n = ?", [(k, n) for k in keys])
        if not self._db.execute("DELETE FROM band_fresh WHERE n = ? RETURNING n", (n,)).fetchall():
            return
        self._forgotten += 1
        kept = self._numbers != n
        self._keys, self._numbers = self._keys[kept], self._numbers[kept]
        for key in keys:
            having = self._recent.get(key, [])
            if n in having:
                having.remove(n)

    # ------------------------------------------------------------------ memory
    def _forget_memory(self) -> None:
        self._position, self._stored = -1, (-1, 0)
        self._last = self._new = self._cleaned = 0
        self._keys, self._numbers = _no_numbers(), _no_numbers()
        self._recent = {}

    def _take(self, rows: list[Any]) -> None:
        """Rows of ``band_fresh`` that are not in memory."""
        old = [row for row in rows if row[1] <= self._position]
        for n, at, packed in rows:
            if at > self._position:
                for key in np.frombuffer(packed, dtype="<i8").tolist():
                    self._recent.setdefault(key, []).append(n)
        if not old:
            return
        keys = np.frombuffer(b"".join(row[2] for row in old), dtype="<i8").astype(np.int64)
        many = [len(row[2]) // 8 for row in old]
        numbers = np.repeat(np.array([row[0] for row in old], dtype=np.int64), many)
        at = np.repeat(np.array([row[1] for row in old], dtype=np.int64), many)
        waits = ((keys >> _SHIFT) - at) % _SPACE >= self._position - at
        self._join(keys[waits], numbers[waits])

    def _gather(self) -> None:
        """At a border: what was written leaves memory, what is recent joins the sorted ones."""
        passed = self._position - self._cleaned
        if passed < self._border and self._position % self._border:
            return
        waits = ((self._keys >> _SHIFT) - self._cleaned) % _SPACE >= passed
        self._keys, self._numbers = self._keys[waits], self._numbers[waits]
        self._cleaned = self._position
        recent, self._recent = self._recent, {}
        if recent:
            pairs = [(key, n) for key, having in recent.items() for n in having]
            both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
            self._join(both[:, 0], both[:, 1])

    def _join(self, keys: np.ndarray, numbers: np.ndarray) -> None:
        order = np.argsort(keys, kind="stable")
        keys, numbers = keys[order], numbers[order]
        places = np.searchsorted(self._keys, keys, "right")
        self._keys = np.insert(self._keys, places, keys)
        self._numbers = np.insert(self._numbers, places, numbers)

    def _write(self, width: int) -> None:
        """Moves the position on, at most to the next border."""
        first = (self._position % _SPACE) << _SHIFT
        low, high = np.searchsorted(self._keys, [first, first + (width << _SHIFT)], "left")
        passed = zip(self._keys[low:high].tolist(), self._numbers[low:high].tolist(), strict=True)
        self._db.executemany(_INSERT, list(passed))
        self._position += width


def _no_numbers() -> np.ndarray:
    return np.empty(0, dtype=np.int64)
