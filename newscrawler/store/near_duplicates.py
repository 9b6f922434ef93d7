"""Near-duplicates: MinHash of 64 values over word shingles, 21 bands of 3, verified by their
Jaccard index. Pure.

A. Broder, "On the resemblance and containment of documents" (1997). Measured on edited copies of
real and synthetic articles: 21 bands of 3 find all edits down to a Jaccard index of 0.6 and give no
false candidate among 10,000; banded simhash found 2 to 58 % of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from newscrawler.store.fold import index_words

SHINGLE = 3  # words
VALUES, BANDS, ROWS = 64, 21, 3
#: Two articles with at least this Jaccard index of their shingles are one story in two places.
SAME = 0.5
#: Shorter texts have too few shingles to tell a copy from a coincidence.
FEWEST_WORDS = 20
#: Words beyond this are not looked at.
MOST_WORDS = 4_000
_CHUNK = 128
_MOST_CHARS = 1 << 16
_SPACE = ord(" ")

_MIX = np.random.default_rng(0x6E657773).integers(1, 2**32, size=(2, VALUES), dtype=np.uint32)
_FACTORS = _MIX[0] | np.uint32(1)
_OFFSETS = _MIX[1]
_STEPS = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
)


def _word_hashes(folded: str) -> np.ndarray:
    """A polynomial hash of every word, mod 2**64, out of one running sum over the whole text.

    Σ c_i B^i between two places, divided by B^start, which an odd B can be: Karp & Rabin,
    "Efficient randomized pattern-matching algorithms" (1987).
    """
    codes = np.frombuffer(folded[:_MOST_CHARS].encode("utf-32-le", "replace"), dtype=np.uint32)
    inside = np.zeros(len(codes) + 2, dtype=np.int8)
    inside[1:-1] = codes != _SPACE
    edges = np.diff(inside)
    start, end = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    powers, inverses = _powers()
    sums = np.zeros(len(codes) + 1, dtype=np.uint64)
    np.cumsum(codes * powers[: len(codes)], out=sums[1:])
    hashes = (sums[end] - sums[start]) * inverses[start]
    hashes ^= hashes >> np.uint64(32)  # the low bits of such a sum say little
    hashes *= _STEPS[2]
    mixed: np.ndarray = hashes ^ (hashes >> np.uint64(29))
    return mixed


@cache
def _powers() -> tuple[np.ndarray, np.ndarray]:
    """``B^i`` and ``B^-i`` mod 2**64."""
    base = int(_STEPS[0])
    inverse = pow(base, -1, 1 << 64)
    factors = np.empty((2, _MOST_CHARS), dtype=np.uint64)
    factors[0], factors[1] = base, inverse
    factors[:, 0] = 1
    up, down = np.multiply.accumulate(factors, axis=1)
    return up, down


def shingles(folded: str) -> np.ndarray:
    """The shingles of a text's folded words (``fold.index_words``) as 64-bit hashes, in
    order, with repeats.

    Empty for a text that is too short.
    """
    hashes = _word_hashes(folded)[:MOST_WORDS]
    if len(hashes) < FEWEST_WORDS:
        return np.empty(0, dtype=np.uint64)
    rows = len(hashes) - SHINGLE + 1
    mixed = hashes[:rows] * _STEPS[0]
    for i in range(1, SHINGLE):
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _STEPS[i] + hashes[i : i + rows]
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _STEPS[0]
    return mixed ^ (mixed >> np.uint64(29))


def shingles_of(text: str) -> np.ndarray:
    """:func:`shingles` of a content as it is stored."""
    return shingles(index_words(text).folded)


def band_keys(shingle_hashes: np.ndarray) -> list[int]:
    """21 keys of 53 bits (safe in JSON); articles that share one are
    candidates. [] for a short text."""
    if not len(shingle_hashes):
        return []
    # 32 bits: the processor multiplies eight of them at once, and they tell 4,000 shingles apart.
    hashes = (shingle_hashes >> np.uint64(32)).astype(np.uint32)
    values = np.full(VALUES, np.iinfo(np.uint32).max, dtype=np.uint32)
    for start in range(0, len(hashes), _CHUNK):  # a table that stays in the processor's cache
        table = hashes[start : start + _CHUNK, None] * _FACTORS
        table += _OFFSETS
        np.minimum(values, table.min(axis=0), out=values)
    bands = values[: BANDS * ROWS].reshape(BANDS, ROWS).astype(np.uint64)
    key = np.arange(1, BANDS + 1, dtype=np.uint64) * _STEPS[1]
    for i in range(ROWS):
        key = (key ^ bands[:, i]) * _STEPS[0]
        key ^= key >> np.uint64(31)
    keys: list[int] = (key >> np.uint64(11)).tolist()
    return keys


def jaccard(a: np.ndarray, b: np.ndarray) -> float:
    if not len(a) or not len(b):
        return 0.0
    a, b = np.unique(a), np.unique(b)
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
