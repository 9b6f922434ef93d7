"""When meaning is asked beside words, and how the two orders become one. Pure.

An article that has the words of a query is what was asked for: such hits come first and stay as
they are. Where the words had to be given up (none has all of them, not even corrected or in part as
they stand) an article has a few of them, often by chance. Then it counts what they weigh: the share
of the query that they make, each word by how rare it is, is added to how near the article is in
meaning. The places in the two orders say less: in a small store the first by words has one frequent
word, and everything is near (docs/search.md has the measurements).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from newscrawler.store.base import Query
from newscrawler.store.fold import exact_words
from newscrawler.store.query_language import (
    MOST_TERMS,
    AllOf,
    AnyOf,
    Condition,
    NoneOf,
    Plan,
    Words,
)

K = TypeVar("K", bound=Hashable)
#: Hits of either order that are looked at.
DEPTH = 100
#: What all words of a query are worth beside a cosine of 1: chosen among .2 to .6 on draws of 28,
#: 60 and 200 of 839 articles and on all of them, and tried on other draws (docs/search.md).
WORDS, VECTORS = 0.4, 1.0
#: How far the nearest article of a small store must stand out of it, of the way to a cosine of 1:
#: words without a meaning reach .07 to .19, descriptions .24 to .48, in 16 and in 43 articles.
STANDS_OUT = 0.2
#: Fewer articles with all words than this, and those that are near in meaning follow below them.
FEW = 10

Joined = Literal["words", "words first", "fused"]


def words_alone(query: Query, plan: Plan, frequency: Callable[[str, bool], int]) -> str:
    """Why meaning is not asked; "" = it may be. ``plan`` is the query as typed, ``frequency`` that
    of a word (as typed: True, folded: False)."""
    if plan.is_filter_only:
        return "no words are looked for"
    if query.sort == "date":
        return "sorted by date"
    if any(term.quoted for term in plan.terms):
        return "a phrase is looked for"
    if names_words(plan):
        return "a field or alternatives are looked for"
    if is_unaccented(plan, frequency):
        return "typed without diacritics"
    return ""


def names_words(plan: Plan) -> bool:
    """Whether words are asked for that no vector can stand for: of a field, or alternatives."""
    plain = [one for one in plan.conditions if not _is_plain_exclusion(one)]
    return any(has_words(one) for one in plain)


def _is_plain_exclusion(one: Condition) -> bool:
    return isinstance(one, NoneOf) and isinstance(one.part, Words) and not one.part.where


def has_words(one: Condition) -> bool:
    if isinstance(one, (AllOf, AnyOf)):
        return any(map(has_words, one.parts))
    return has_words(one.part) if isinstance(one, NoneOf) else isinstance(one, Words)


def is_unaccented(plan: Plan, frequency: Callable[[str, bool], int]) -> bool:
    """Whether most known words of a query without diacritics are written with them in the articles:
    a model reads ``gia vang`` as no Vietnamese at all."""
    if any(term.has_diacritics for term in plan.terms):
        return False
    words = {word for term in plan.terms for word in term.folded}
    folded = {word: found for word in words if (found := frequency(word, False))}
    foldings = [word for word, found in folded.items() if 2 * frequency(word, True) < found]
    return 2 * len(foldings) > len(folded)


def joined(plan: Plan, total: int) -> Joined:
    """How the hits of the plan that was settled on and those of the vectors are joined."""
    if plan.any_of:
        return "fused"
    if not total:
        return "fused"
    return "words first" if plan.relaxed or total < FEW else "words"


def fused(
    words: Iterable[K], near: Sequence[tuple[K, float]], coverage: Mapping[K, float]
) -> list[tuple[K, float]]:
    """(number or id, score), the best first; of equal ones the better by words.

    :param near: with cosines, the nearest first; what is not among them is no nearer than the last
    :param coverage: share of the words of the query that each has, by their weight"""
    cosines = dict(near)
    farthest = min(cosines.values(), default=0.0)
    scores = {
        n: WORDS * coverage.get(n, 0.0) + VECTORS * cosines.get(n, farthest)
        for n in dict.fromkeys((*words, *cosines))
    }
    return sorted(scores.items(), key=lambda found: -found[1])


def apart(near: Sequence[tuple[K, float]]) -> list[tuple[K, float]]:
    """Cosines of few articles without what all of them share. Of a small store that is still in the
    vectors (store.semantic.matrix), and without it a cosine means the same in every store."""
    if not near or len(near) >= DEPTH:
        return list(near)
    shared = sum(cosine for _, cosine in near) / len(near)
    return [(n, (cosine - shared) / max(1.0 - shared, 1e-6)) for n, cosine in near]


def is_any_near(near: Sequence[tuple[K, float]]) -> bool:
    """Whether anything in a store is near a query: ``near`` is the whole of a small store. Of less
    than FEW articles nothing can be told, of a large store the nearest DEPTH say nothing of how far
    the others are."""
    if not FEW <= len(near) < DEPTH:
        return True
    return max(score for _, score in apart(near)) >= STANDS_OUT


def words_of(plan: Plan, typed: Plan) -> tuple[str, ...]:
    """The words of a query, folded, as they were corrected in the plan that was settled on."""
    better = dict(plan.corrections)
    words = (better.get(word, word) for term in typed.terms for word in term.folded)
    return tuple(dict.fromkeys(words))[:MOST_TERMS]


def text_of(query: Query, plan: Plan) -> str:
    """The text of a query that is embedded: as it was typed, where it is nothing but words."""
    asked_for = (*plan.terms, *(one.term for one in plan.wanted))
    words = [word for term in asked_for for word in term.exact]
    if exact_words(query.text) == words:
        return query.text
    return " ".join(words)
