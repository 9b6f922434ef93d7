"""Terms that stand in more titles of a day than their own past lets expect.

A term is one to four neighbouring words, compared folded, shown as it is written most. Of x titles
of today with it, where the days before let expect e, the score is

    x * ln(x / e) - (x - e)

the log-likelihood ratio of a Poisson distribution. What is always frequent has a large e: no list
of stop words is needed. A term must also have a larger share of its day than on every day before,
so that "chủ nhật" does not rise each Sunday.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from newscrawler.store.base import Headline, WholeStore
from newscrawler.store.fold import exact_words, folded_words

#: Days that a day is compared with.
PAST_DAYS = 28
LONGEST = 4
#: Titles of the day that a term must be in; its least score; how many times what is expected.
LEAST, LEAST_SCORE, LEAST_RATIO = 3, 6.0, 2.0
#: Of two terms one of which holds the other, in about the same titles, one is shown.
_SAME = 0.7
_ARTICLES = 5
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    text: str
    articles: int
    expected: float
    score: float
    headlines: list[Headline]  # some, the newest first
    sites: int = 1  # that have these titles
    before: int = 0  # titles of the days before that have it

    @property
    def reason(self) -> str:
        """Why it is shown."""
        sites = "1 site" if self.sites == 1 else f"{self.sites} sites"
        before = "1 title" if self.before == 1 else f"{self.before} titles"
        return (
            f"{self.articles} titles of {sites}; {self.expected:g} expected, as {before} of the"
            f" {PAST_DAYS} days before have it"
        )


@dataclass(slots=True)
class Trends:
    """``past``: titles of the days before; 0 = there is nothing to compare with."""

    day: date
    titles: int
    past: int
    terms: list[Term] = field(default_factory=list)


async def trends(
    store: WholeStore, day: date, zone: tzinfo, site: str = "", size: int = 20
) -> Trends:
    """Of a day of ``zone``; ``site``: of this one alone, against its own past."""
    start = datetime.combine(day, time(), zone)
    found = await store.headlines(
        (start - timedelta(days=PAST_DAYS)).astimezone(UTC),
        (start + timedelta(days=1)).astimezone(UTC),
    )
    if site:
        found = [one for one in found if one.site == site]
    return await asyncio.to_thread(rising, found, day, zone, size)


def rising(found: Sequence[Headline], day: date, zone: tzinfo, size: int = 20) -> Trends:
    """Of the last day of ``found``. Copies (one title) count once a day."""
    today: dict[Key, Headline] = {}
    sites: dict[Key, set[str]] = {}
    past: dict[date, set[Key]] = {}
    for one in found:
        words = tuple(folded_words(one.title))
        its_day = one.at.astimezone(zone).date()
        if its_day == day:
            today.setdefault(words, one)
            sites.setdefault(words, set()).add(one.site)
        else:
            past.setdefault(its_day, set()).add(words)
    made = Trends(day, len(today), sum(map(len, past.values())))
    if not made.past or not today:
        return made
    having: dict[Key, set[Key]] = {}
    for words in today:
        for term in set(_terms(words)):
            having.setdefault(term, set()).add(words)
    having = {term: titles for term, titles in having.items() if len(titles) >= LEAST}
    scored = _scored(having, past, made)
    for term in _apart(scored, having)[:size]:
        titles = having[term]
        expected, score, before = scored[term]
        of = sorted((today[t] for t in titles), key=lambda one: (one.at, one.id), reverse=True)
        made.terms.append(
            Term(
                _written(term, of),
                len(titles),
                round(expected, 2),
                round(score, 1),
                of[:_ARTICLES],
                sites=len(set().union(*(sites[t] for t in titles))),
                before=before,
            )
        )
    return made


def _terms(words: Key) -> Iterator[Key]:
    for length in range(1, LONGEST + 1):
        for at in range(len(words) - length + 1):
            yield words[at : at + length]


def _scored(
    having: dict[Key, set[Key]], past: dict[date, set[Key]], made: Trends
) -> dict[Key, tuple[float, float, int]]:
    """Of the terms that rise: how many were expected, the score, and how many there were before."""
    before: Counter[Key] = Counter()
    highest: dict[Key, float] = {}
    for titles in past.values():
        that_day: Counter[Key] = Counter()
        for words in titles:
            that_day.update({term for term in _terms(words) if term in having})
        before.update(that_day)
        for term, many in that_day.items():
            highest[term] = max(highest.get(term, 0.0), many / len(titles))
    scored = {}
    for term, titles in having.items():
        many = len(titles)
        # Half a title more: what never was is not infinitely surprising.
        expected = (before[term] + 0.5) / (made.past + 1) * made.titles
        score = many * math.log(many / expected) - (many - expected)
        share = many / made.titles
        if many / expected >= LEAST_RATIO and score >= LEAST_SCORE:
            # A day of three titles says little of the greatest share.
            if share > min(highest.get(term, 0.0), 0.5):
                scored[term] = (expected, score, before[term])
    return scored


def _apart(scored: dict[Key, tuple[float, float, int]], having: dict[Key, set[Key]]) -> list[Key]:
    """The best first, each story once: the longest term that nearly all of its titles have."""
    chosen: list[Key] = []
    for term in sorted(scored, key=lambda t: (-scored[t][1], -len(t), t)):
        titles = having[term]
        if any(len(titles & having[other]) >= _SAME * len(titles) for other in chosen):
            continue
        longer = [
            t for t in scored
            if len(t) > len(term) and _holds(t, term) and len(having[t]) >= _SAME * len(titles)
        ]  # fmt: skip
        chosen.append(max(longer, key=lambda t: (len(having[t]), len(t)), default=term))
    return chosen


def _holds(longer: Key, shorter: Key) -> bool:
    return any(
        longer[at : at + len(shorter)] == shorter for at in range(len(longer) - len(shorter) + 1)
    )


def _written(term: Key, headlines: Sequence[Headline]) -> str:
    """As most of these titles write it."""
    forms: Counter[str] = Counter()
    for one in headlines:
        exact, folded = exact_words(one.title), folded_words(one.title)
        if len(exact) != len(folded):
            continue
        for at in range(len(folded) - len(term) + 1):
            if tuple(folded[at : at + len(term)]) == term:
                forms[_as_in(one.title, " ".join(exact[at : at + len(term)]))] += 1
    return min(forms, key=lambda form: (-forms[form], form), default=" ".join(term))


def _as_in(title: str, words: str) -> str:
    at = title.lower().find(words)
    return title[at : at + len(words)] if at >= 0 else words
