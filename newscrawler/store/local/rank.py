"""The order of hits in the SQLite store: an FTS5 function over a bounded number of matches.

FTS5's own bm25 costs up to 2 s at a million articles, as it scores every match and counts each phrase over
the whole table. Here at most ``BOUND`` matches are scored, with frequencies from a sample.

score = sum over terms of  idf * (TITLE [in title] + tf' + EXACT [also with diacritics as typed])
      + sum over neighbouring terms that stand next to one another of  PAIR * (1 + mean idf), twice in the title
      + WHOLE * sum of idf                                      where all words stand in a row
tf'   = tf / (tf + K * (1 - B + B * length / USUAL_WORDS)), length in words (BM25, Robertson and Zaragoza 2009)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import apsw
import numpy as np

#: Matches that are scored: the newest ones, and as many again of those in titles.
BOUND = 2_000
#: Matches of all words in a row that are scored beside them.
IN_A_ROW = 200
NAME = "news_rank"
TITLE, EXACT, PAIR, WHOLE = 2.0, 0.15, 0.5, 1.5
K, B, USUAL_WORDS = 1.2, 0.6, 400.0
#: The newest article counts this much more than an old one of the same score; halves every so many days.
RECENT, HALF_LIFE_DAYS = 0.25, 3.0
_BODY = 1  # column b


def idf(share: float) -> float:
    """Of a word in ``share`` (0..1) of the articles."""
    share = min(max(share, 1e-5), 1.0)
    return max(0.05, math.log1p((1 - share) / share))


def recency(rows: np.ndarray, newest: int) -> np.ndarray:
    """Factors 1 .. 1 + RECENT by the distance of rowids (minutes << 8) to the newest."""
    days = np.maximum(0, newest - rows) / (256 * 1440)
    return 1 + RECENT * np.exp2(-days / HALF_LIFE_DAYS)


class Rank:
    """The registered function. ``weigh`` before each statement: idf and words of the first phrases of its
    expression; further phrases (filters) are not scored. For a connection that one thread uses at a time."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._idf: list[float] = []
        self._words: list[int] = []
        connection.register_fts5_function(NAME, self._score)

    def weigh(self, idfs: Sequence[float], words: Sequence[int]) -> None:
        self._idf, self._words = list(idfs), list(words)

    def _score(self, api: apsw.FTS5ExtensionApi, *_: object) -> float:
        # Runs thousands of times in a query: local names, no helpers inside the loop.
        score = 0.0
        norm = K * (1 - B + B * api.column_size(_BODY) / USUAL_WORDS)
        locations = api.phrase_locations
        last_title: list[int] | None = None
        last_body: list[int] = []
        last_idf, width = 0.0, 0
        for i, weight in enumerate(self._idf):
            exact_title, exact_body, title, body, _m = locations(i)
            part = 0.0
            if exact_title or exact_body:
                part = EXACT
                title, body = title or exact_title, body or exact_body
            if title:
                part += TITLE
            elif not body:
                last_title = None
                continue
            tf = len(body)
            score += weight * (part + tf / (tf + norm))
            if last_title is not None:
                gain = PAIR * (1 + (weight + last_idf) / 2)
                if title and last_title and _follows(last_title, title, width):
                    score += 2 * gain
                if body and last_body and _follows(last_body, body, width):
                    score += gain
            last_title, last_body, last_idf, width = title, body, weight, self._words[i]
        return score


def _follows(first: list[int], second: list[int], width: int) -> bool:
    if len(second) > 16:
        return not {place + width for place in first}.isdisjoint(second)
    for place in first:  # noqa: SIM110  any() with a generator costs three times as much
        if place + width in second:
            return True
    return False
