"""What a list (home, section, feed, sitemap) is worth to its site, from what the frontier remembers
of it: what it found first and alone, what it repeats, what it costs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from newscrawler.discovery.list_revisits import PRINT_BYTES, Memory

#: Visits before anything is proposed; fewer say little.
LEAST_VISITS = 20
#: Visits for one article that was heard of here first, above which it is asked too often.
MANY_VISITS = 12


@dataclass(frozen=True, slots=True)
class Worth:
    """``shows``: of the site's stored articles those that the list shows now; ``only``: of them
    those that no other list of the site shows; ``covers``: their share of all. None: not known, as
    the list is long, or was never read. ``cost``: visits for an article that it found first."""

    shows: int | None
    only: int | None
    covers: float | None
    cost: float | None
    advice: str  # drop | ask less | keep | "" (nothing can be said yet)


def judged(memories: Mapping[str, Memory], articles: Collection[bytes]) -> dict[str, Worth]:
    """Per list of one site.

    :param memories: address -> what its record carries
    :param articles: url ids of the site's stored articles of the last days
    """
    known = {url_id[:PRINT_BYTES] for url_id in articles}
    shown = {url: memory.shown() & known for url, memory in memories.items() if memory.prints}
    lists_of = Counter(one for some in shown.values() for one in some)
    found = {}
    for url, memory in memories.items():
        mine = shown.get(url)
        only = None if mine is None else sum(lists_of[one] == 1 for one in mine)
        found[url] = Worth(
            shows=None if mine is None else len(mine),
            only=only,
            covers=len(mine) / len(known) if mine is not None and known else None,
            cost=memory.visits / memory.articles if memory.articles else None,
            advice=_advice(memory, only),
        )
    return found


def _advice(memory: Memory, only: int | None) -> str:
    if memory.is_dead:
        return "drop"
    if memory.visits < LEAST_VISITS:
        return ""
    if only:
        return "keep"
    if not memory.articles:
        return "drop" if only == 0 else "ask less"
    return "ask less" if memory.visits > MANY_VISITS * memory.articles else "keep"
