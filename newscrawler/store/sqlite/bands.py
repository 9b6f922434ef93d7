"""Which articles have which keys of near-duplicates (``near_duplicates.candidate_keys``).

Keys are random numbers, some thirty an article: written at once, each dirties a page of a tree of
its own, which costs more the larger the tree is (of 100,000 articles half of all that storing one
costs). So the keys of a new article wait in one row first (table ``band_fresh``) and go into the
tree ``band`` in their order: after every ``GATHERED`` new articles those of the next segment of the
space of keys, all neighbours at once. After one round of ``ROUND`` articles everything that was
there at its beginning is in the tree, and its rows go. O'Neil et al., "The log-structured
merge-tree" (1996), without its second file.

Several processes write to one file. What goes into the tree is read from ``band_fresh`` and nowhere
else, in the transaction that moves the position, so nothing can be lost or be there twice. Memory
finds keys that wait: rows never change and their numbers never come again, so a process reads those
after the last that it knows. What it knows may be gone (its article has changed or was purged):
each row that is found is asked for in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import apsw
import numpy as np

#: Keys are of so many bits.
_BITS = 53
#: New articles until each segment was written once. Half of their keys are in memory: 8 MB.
ROUND = 1 << 15
#: New articles until the next segment is written, which reads all rows that wait.
GATHERED = 512
#: Entries of keys that are looked at.
_ROWS = 2_000
_SHARED = "SELECT key, n FROM band WHERE key IN ({}) LIMIT ?"
_INSERT = "INSERT OR IGNORE INTO band(key, n) VALUES(?,?)"
#: ``OR REPLACE``: whatever left a row of a purged article behind, its number may be given again.
_WAITS = "INSERT OR REPLACE INTO band_fresh(seq, n, keys) VALUES(?,?,?)"
_STILL = "SELECT seq, n FROM band_fresh WHERE seq IN (SELECT value FROM json_each(?))"


class Bands:
    """``begin`` and ``end`` stand around each write transaction, in it; ``undone`` after one that
    was rolled back or could not begin.

    :param round_: powers of two, as ``gathered``
    """

    def __init__(self, db: apsw.Connection, round_: int = ROUND, gathered: int = GATHERED) -> None:
        self._db = db
        self._gathered = gathered
        self._segments = round_ // gathered
        self._shift = _BITS - (self._segments.bit_length() - 1)
        self._committed = 0  # position before this transaction
        self._position = 0  # the last row that is known
        self._border = 0  # at which what was written has left memory
        self._keys, self._seqs = _unpacked([])  # in order of keys
        self._recent: dict[int, list[int]] = {}  # rows that are not among those, by key

    # ------------------------------------------------------------------ transactions
    def begin(self) -> None:
        position = self._db.execute("SELECT position FROM band_round").get
        if position < self._position:  # the file was put back from a backup
            self._forget_memory()
        if position > self._position:
            rows: list[Any] = self._db.execute(
                "SELECT seq, keys FROM band_fresh WHERE seq > ?", (self._position,)
            ).fetchall()
            if len(rows) > self._gathered:
                self._join(*_unpacked(rows))
            else:
                for seq, packed in rows:
                    self._remember(seq, np.frombuffer(packed, dtype="<i8").tolist())
        self._position = self._committed = position
        if position // self._gathered > self._border:
            self._gather()

    def end(self) -> None:
        """Writes the segments whose turn has come by the new articles."""
        if self._position == self._committed:
            return
        borders = self._committed // self._gathered, self._position // self._gathered
        for border in range(borders[0] + 1, borders[1] + 1):
            self._write_segment(border)
        self._db.execute("UPDATE band_round SET position = ?", (self._position,))

    def undone(self) -> None:
        """Rows after ``_committed`` are not there, or are read again."""
        self._position = min(self._position, self._committed)
        kept = (
            (key, [s for s in having if s <= self._position])
            for key, having in self._recent.items()
        )
        self._recent = {key: having for key, having in kept if having}

    # ------------------------------------------------------------------ in a transaction
    def holders(self, keys: Sequence[int]) -> dict[int, list[int]]:
        """The articles that have each key."""
        holders: dict[int, list[int]] = {key: [] for key in keys}
        if not keys:
            return holders
        waiting = self._waiting(keys)
        asked = json.dumps(list(set(chain.from_iterable(waiting.values()))))
        rows: list[Any] = self._db.execute(_STILL, (asked,)).fetchall() if waiting else []
        still: dict[int, int] = dict(rows)
        for key, having in waiting.items():
            holders[key] = list(dict.fromkeys(still[seq] for seq in having if seq in still))
        for key, n in self._db.execute(_SHARED.format(",".join("?" * len(keys))), (*keys, _ROWS)):
            if n not in holders[key]:  # it may wait in a row of which this key is written
                holders[key].append(n)
        return holders

    def add(self, n: int, keys: Iterable[int]) -> None:
        """Of a new article."""
        kept = list(keys)
        self._position += 1
        packed = np.array(kept, dtype="<i8").tobytes()
        self._db.execute(_WAITS, (self._position, n, packed))
        self._remember(self._position, kept)

    def write(self, n: int, keys: Iterable[int]) -> None:
        """Into the tree: of an article that has changed."""
        self._db.executemany(_INSERT, [(key, n) for key in sorted(keys)])

    def forget(self, n: int, keys: Iterable[int]) -> None:
        """The article has changed or goes; ``keys`` are those that it had."""
        self._db.executemany("DELETE FROM band WHERE key = ? AND n = ?", [(k, n) for k in keys])
        self._db.execute("DELETE FROM band_fresh WHERE n = ?", (n,))

    def _write_segment(self, border: int) -> None:
        """At the border after so many times ``gathered`` articles."""
        before = (border * self._gathered,)
        rows = self._db.execute("SELECT n, keys FROM band_fresh WHERE seq <= ?", before)
        keys, numbers = _unpacked(rows.fetchall())
        chosen = keys >> self._shift == border % self._segments
        keys, numbers = keys[chosen], numbers[chosen]
        order = np.argsort(keys, kind="stable")
        pairs = zip(keys[order].tolist(), numbers[order].tolist(), strict=True)
        self._db.executemany(_INSERT, list(pairs))
        # Each segment has had its turn since these rows came.
        through = (border - self._segments + 1) * self._gathered
        self._db.execute("DELETE FROM band_fresh WHERE seq <= ?", (through,))

    # ------------------------------------------------------------------ memory
    def _forget_memory(self) -> None:
        self._position = self._border = 0
        self._keys, self._seqs = _unpacked([])
        self._recent = {}

    def _remember(self, seq: int, keys: Iterable[int]) -> None:
        for key in keys:
            self._recent.setdefault(key, []).append(seq)

    def _waiting(self, keys: Sequence[int]) -> dict[int, list[int]]:
        """Rows that are known to have each of these keys, which may be gone."""
        waiting = {key: self._recent[key][:] for key in keys if key in self._recent}
        asked = np.array(keys, dtype=np.int64)
        first = np.searchsorted(self._keys, asked, "left")
        last = np.searchsorted(self._keys, asked, "right")
        for at in np.flatnonzero(last > first).tolist():
            found = self._seqs[first[at] : last[at]].tolist()
            waiting.setdefault(keys[at], []).extend(found)
        return waiting

    def _gather(self) -> None:
        """At a border: what is recent joins the sorted ones, what was written leaves memory."""
        self._border = self._position // self._gathered
        pairs = [(key, seq) for key, having in self._recent.items() for seq in having]
        both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self._recent = {}
        self._join(both[:, 0], both[:, 1])
        first = (self._seqs + self._gathered - 1) // self._gathered  # border after the row
        turn = first + ((self._keys >> self._shift) - first) % self._segments
        waits = turn > self._border
        self._keys, self._seqs = self._keys[waits], self._seqs[waits]

    def _join(self, keys: np.ndarray, seqs: np.ndarray) -> None:
        order = np.argsort(keys, kind="stable")
        keys, seqs = keys[order], seqs[order]
        places = np.searchsorted(self._keys, keys, "right")
        self._keys = np.insert(self._keys, places, keys)
        self._seqs = np.insert(self._seqs, places, seqs)


def _unpacked(rows: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Keys, and beside each the number that its row begins with."""
    keys = np.frombuffer(b"".join(packed for _, packed in rows), dtype="<i8").astype(np.int64)
    many = [len(packed) // 8 for _, packed in rows]
    return keys, np.repeat(np.array([number for number, _ in rows], dtype=np.int64), many)
