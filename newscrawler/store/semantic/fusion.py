"""When meaning is asked beside words, and how the two orders become one. Pure.

An article that has the words of a query is what was asked for: such hits come first and stay as
they are. Where the words had to be given up (none has all of them, not even corrected or in part as
they stand) their order is weak, and reciprocal rank fusion joins it with the order of the vectors,
which counts twice (docs/search.md has the measurements).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal, TypeVar

from newscrawler.store.base import Query
from newscrawler.store.fold import exact_words
from newscrawler.store.query_language import AllOf, AnyOf, Condition, NoneOf, Plan, Words

K = TypeVar("K", bound=Hashable)
#: Hits of either order that are looked at.
DEPTH = 100
#: Weights of words and of vectors, and how soon a rank stops to count.
WORDS, VECTORS, RANK = 1.0, 2.0, 60
#: Share of all vectors that is near, and how many are near at least.
SHARE_NEAR, FEWEST_NEAR = 0.1, 3
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


def fused(words: Sequence[K], near: Sequence[K], articles: int) -> list[tuple[K, float]]:
    """(number or id, score), the best first; of equal ones the better by words.

    :param articles: that have a vector. A place among the first in both orders counts twice where
        it says something: of a store of fifty articles each is among the hundred nearest"""
    scores = {n: WORDS / (RANK + 1 + rank) for rank, n in enumerate(words)}
    for rank, n in enumerate(near):
        score, by_words = VECTORS / (RANK + 1 + rank), scores.get(n, 0.0)
        says_much = rank < max(FEWEST_NEAR, articles * SHARE_NEAR)
        scores[n] = by_words + score if says_much else max(by_words, score)
    return sorted(scores.items(), key=lambda found: -found[1])


def text_of(query: Query, plan: Plan) -> str:
    """The text of a query that is embedded: as it was typed, where it is nothing but words."""
    asked_for = (*plan.terms, *(one.term for one in plan.wanted))
    words = [word for term in asked_for for word in term.exact]
    if exact_words(query.text) == words:
        return query.text
    return " ".join(words)
