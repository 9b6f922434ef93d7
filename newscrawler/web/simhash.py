"""Simhash of a page's words, to see cheaply that only what surrounds an article changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xxhash

_BITS = np.arange(64, dtype=np.uint64)


def simhash(tokens: Iterable[str], shingle: int = 3) -> int:
    """64 bits over runs of ``shingle`` tokens; 0 for no tokens. Equal texts give equal values, similar texts near ones
    (Charikar 2002). It measures; nothing is dropped because of it: one digit is below what it can see."""
    words = list(tokens)
    if not words:
        return 0
    runs = [" ".join(words[i : i + shingle]) for i in range(max(1, len(words) - shingle + 1))]
    digests = (xxhash.xxh3_64_intdigest(run.encode("utf-8", "surrogatepass")) for run in runs)
    hashes = np.fromiter(digests, dtype=np.uint64, count=len(runs))
    ones = ((hashes[:, None] >> _BITS) & np.uint64(1)).sum(axis=0)
    bits = (ones * 2 > len(runs)).astype(np.uint64)
    return int((bits << _BITS).sum())


def distance(a: int, b: int) -> int:
    """Number of bits in which two values differ, 0..64."""
    return (a ^ b).bit_count()
