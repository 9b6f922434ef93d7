"""Typing errors: known words within one edit of an unknown one, from a dictionary in memory. Pure
but for rapidfuzz.

An edit is one deletion, insertion, replacement or swap of neighbours (optimal string alignment).
The words of an index, folded, are few (Vietnamese: some ten thousand); asking the index for every
possible edit of a word costs ten times as much as comparing it with all words of its length.
"""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import process
from rapidfuzz.distance import OSA

#: Shorter words and longer ones are not what is meant.
SHORTEST, LONGEST = 2, 33


class Dictionary:
    """:param words: each with the number of articles that have it"""

    def __init__(self, words: Iterable[tuple[str, int]]) -> None:
        self._frequencies = {
            word: found for word, found in words if SHORTEST <= len(word) <= LONGEST
        }
        self._by_length: dict[int, list[str]] = {}
        for word in self._frequencies:
            self._by_length.setdefault(len(word), []).append(word)

    def __len__(self) -> int:
        return len(self._frequencies)

    def near(self, word: str, most: int) -> list[str]:
        """Words one edit away, the ``most`` most frequent ones, most frequent first."""
        found: list[str] = []
        for length in (len(word) - 1, len(word), len(word) + 1):
            same = process.extract(
                word,
                self._by_length.get(length, ()),
                scorer=OSA.distance,
                score_cutoff=1,
                limit=None,
            )
            found += [candidate for candidate, distance, _ in same if distance == 1]
        found.sort(key=lambda candidate: (-self._frequencies[candidate], candidate))
        return found[:most]
