"""The newest articles about a subject among the best ones: on the first page, in both stores. Pure.

A bonus for being new cannot do it: of a word in every tenth article there are dozens of yesterday,
of another one of last month.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from newscrawler.store.query_language import Plan

K = TypeVar("K", bound=Hashable)
#: Where the newest articles about a subject stand among the hits, counted from 0, if not better.
PLACES, FIRST_PAGE = (2, 5, 8), 10
#: From so many words on a query is about one article, and being new says little.
KNOWN_ITEM = 4


def is_about_a_subject(plan: Plan) -> bool:
    """Whether it asks for the news of something: of one to three words, all of which are found."""
    words = [word for term in plan.terms for word in term.folded]
    return 0 < len(words) < KNOWN_ITEM and plan.relaxed in ("", "folded")


def with_newest(found: Sequence[K], newest: Sequence[K]) -> list[K]:
    """The newest ones at their places among the best, unless they stand before them already.
    Whatever number of hits is asked for, the first ones are the same."""
    order = list(found)
    for at, one in zip(PLACES, newest, strict=False):
        stands = order.index(one) if one in order else None
        if stands is not None and stands <= at:
            continue
        if stands is not None:
            del order[stands]
        order.insert(at, one)
    return order


def moved(found: Sequence[K], newest: Sequence[K]) -> dict[int, K]:
    """Place -> what ``with_newest`` puts there of those that do not stand so well by themselves;
    the others follow one another in the places between. ``found``: the first FIRST_PAGE."""
    order = with_newest(found, newest)
    by_themselves = set(found)
    return {
        place: one
        for place, one in enumerate(order)
        if one in newest[: len(PLACES)] and (one not in by_themselves or found.index(one) > place)
    }
