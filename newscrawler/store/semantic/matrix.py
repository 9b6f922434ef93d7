"""Vectors in memory, and the nearest of them: every one is compared, of more than 300,000 by its
signs first (docs/search.md has the cost).

The vectors of a model share a large common part (mean cosine 0.74 of multilingual-e5), which says
nothing: the mean is subtracted, of the query as well, and what is left is kept in 8 bits with a
scale of its own, 384 bytes an article; 48 more are the signs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

#: Rows that are compared at once: their 32-bit copy stays in the processor's cache, and OpenBLAS
#: starts no threads for so few, which spin while they wait (2,048 rows at once cost 25 times the
#: CPU on two cores).
_BLOCK = 256
#: Vectors up to which each is compared (34 ms at 300,000; docs/search.md). Of more, a bit a number
#: is compared first: the signs, whose differences are counted; these many of the nearest by them
#: are then compared as they are.
EXACT, CANDIDATES, CANDIDATES_A_HIT = 300_000, 16_000, 20
#: Rows of bits that are compared at once.
_BIT_BLOCK = 16_384
#: With few vectors their mean is what they are about, not what all texts share: it counts
#: by n / (n + this).
_FEW = 50


def mean_of(vectors: Any) -> Any:
    """The mean of vectors, one a row, drawn to nothing where they are few."""
    mean = vectors.mean(axis=0, dtype=np.float32)
    return mean * np.float32(len(vectors) / (len(vectors) + _FEW))


def centred(vectors: Any, mean: Any) -> Any:
    """Directions without the mean, of length 1."""
    rows = np.asarray(vectors, np.float32) - mean
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


class Matrix:
    """Used by one thread at a time where it is changed; ``nearest`` by any number meanwhile."""

    def __init__(self, dimension: int) -> None:
        self.mean = np.zeros(dimension, np.float32)
        self.made_of = 0  # vectors that the mean was made of
        self._rows = np.zeros((0, dimension), np.int8)
        self._bits = np.zeros((0, -(-dimension // 64)), np.uint64)
        self._scales = np.zeros(0, np.float32)
        self._numbers = np.zeros(0, np.int64)
        self._used = 0
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, n: int) -> bool:
        return n in self._place

    @classmethod
    def of(cls, numbers: Sequence[int], vectors: Any) -> Matrix:
        """With the mean of these vectors, one a row."""
        made = cls(vectors.shape[1])
        made.made_of = len(vectors)
        if len(vectors):
            made.mean = mean_of(vectors)
        made.put(numbers, vectors)
        return made

    def put(self, numbers: Sequence[int], vectors: Any) -> None:
        """Adds vectors, or replaces those of the same numbers."""
        rows = centred(vectors, self.mean)
        most = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-9)
        small = np.round(rows * (127.0 / most)[:, None]).astype(np.int8)
        bits = _signs(small)
        self._reserve(len(numbers))
        for n, row, scale, signs in zip(numbers, small, most / 127.0, bits, strict=True):
            self.drop(n)
            at = self._used
            self._rows[at], self._scales[at], self._numbers[at] = row, scale, n
            self._bits[at] = signs
            self._place[n] = at
            self._used = at + 1

    def drop(self, n: int) -> None:
        at = self._place.pop(n, None)
        if at is not None:
            self._numbers[at] = -1  # the row stays until the next matrix is made

    def nearest(
        self, vector: Any, limit: int, among: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """(number, cosine of what is left without the mean), the nearest first."""
        used, numbers = self._used, self._numbers
        asked = centred(np.asarray(vector, np.float32)[None, :], self.mean)[0]
        if among is not None:
            places = np.array(
                sorted(p for n in among if (p := self._place.get(n)) is not None), int
            )
        elif used > EXACT:
            places = self._near_by_signs(asked, used, max(CANDIDATES, CANDIDATES_A_HIT * limit))
        else:
            places = None
        scores = self._scores(asked, used, places)
        alive = numbers[:used] if places is None else numbers[places]
        scores[alive < 0] = -np.inf
        limit = min(limit, len(scores))
        if limit <= 0:
            return []
        best = np.argpartition(-scores, limit - 1)[:limit]
        best = best[np.lexsort((alive[best], -scores[best]))]
        return [(int(alive[i]), float(scores[i])) for i in best if scores[i] > -np.inf]

    def _near_by_signs(self, asked: Any, used: int, many: int) -> Any:
        signs, bits = _signs(asked[None, :])[0], self._bits
        differ = np.empty(used, np.uint16)
        for start in range(0, used, _BIT_BLOCK):
            end = min(start + _BIT_BLOCK, used)
            counted = np.bitwise_count(bits[start:end] ^ signs)
            np.sum(counted, axis=1, dtype=np.uint16, out=differ[start:end])
        if many >= used:
            return np.arange(used)
        return np.sort(np.argpartition(differ, many)[:many])

    def _scores(self, asked: Any, used: int, places: Any) -> Any:
        rows, scales = self._rows, self._scales
        if places is not None:
            found = rows[places].astype(np.float32) @ asked
            return found * scales[places]
        scores = np.empty(used, np.float32)
        block = np.empty((min(_BLOCK, used), rows.shape[1]), np.float32)
        for start in range(0, used, _BLOCK):
            end = min(start + _BLOCK, used)
            part = block[: end - start]
            np.copyto(part, rows[start:end])
            np.dot(part, asked, out=scores[start:end])
        scores *= scales[:used]
        return scores

    def _reserve(self, more: int) -> None:
        needed = self._used + more
        if needed <= len(self._rows):
            return
        size = max(needed, 2 * len(self._rows), 1_024)
        # New arrays, not resized ones: a thread may be reading the old.
        rows = np.zeros((size, self._rows.shape[1]), np.int8)
        scales, numbers = np.zeros(size, np.float32), np.full(size, -1, np.int64)
        bits = np.zeros((size, self._bits.shape[1]), np.uint64)
        bits[: self._used] = self._bits[: self._used]
        rows[: self._used] = self._rows[: self._used]
        scales[: self._used] = self._scales[: self._used]
        numbers[: self._used] = self._numbers[: self._used]
        self._rows, self._scales, self._numbers, self._bits = rows, scales, numbers, bits


def _signs(rows: Any) -> Any:
    """A bit a number, in words of 64."""
    packed = np.packbits(rows > 0, axis=1)
    missing = -packed.shape[1] % 8
    return np.pad(packed, ((0, 0), (0, missing))).view(np.uint64)
