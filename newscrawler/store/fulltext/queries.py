"""Plans as queries of the index: what matches, and by what it is ordered.

score = sum over words of  BM25 [title and text] + TITLE * BM25 [title]
      + EXACT * BM25 [title] of words as typed
      + PAIR * BM25 of neighbouring words that stand next to one another in the title
      + QUOTED where all words stand in a row
      + PART where a part of a long query stands in a row, and PART_PAIR for each two neighbours
      + SAME_TITLE where the title is the query
      + QUOTED where the words are a name of its author
      + RECENT * mean idf * 2 ** (-days / HALF_LIFE_DAYS), counted from the newest article; not
        where Sort is "relevance"

Each way of matching (``Plan``: all words; all but some in the title; a part in a row) is asked
apart, which costs a third of one query with an OR of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from newscrawler.store.codec import ms
from newscrawler.store.fold import folded
from newscrawler.store.fulltext import schema
from newscrawler.store.fulltext.engine import tantivy
from newscrawler.store.fulltext.schema import FIRST, LAST, time_key
from newscrawler.store.newest import KNOWN_ITEM
from newscrawler.store.query_language import (
    QUOTATION,
    AllOf,
    AnyOf,
    Condition,
    NoneOf,
    Plan,
    Published,
    Term,
    Value,
    Words,
)
from newscrawler.store.spellings import ways

TITLE, EXACT, PAIR, WHOLE = 2.0, 0.5, 0.5, 1.5
#: Neighbouring words anywhere, where a part of the query stands in a row.
PART_PAIR = 4.0
#: Above what words alone can reach, in this order.
PART, QUOTED, AS_TYPED, SAME_TITLE = 300.0, 1_000.0, 10_000.0, 100_000.0
#: How much being new weighs, in words that are found in an article more, and how soon that halves.
RECENT, HALF_LIFE_DAYS, RECENT_DAYS = 1.0, 7.0, 10
#: The same of a query that is about one article.
RECENT_FOR_KNOWN = 0.3
#: Matches above which pairs of words do not count: looking for them costs more than the words.
MANY = 20_000


#: Words of the index that no text has, around a title.
_MARKS = frozenset((FIRST, LAST))


@dataclass(frozen=True, slots=True)
class Scale:
    """What the order needs to know of the index."""

    articles: int
    newest_day: int | None  # None: an article gains nothing by being new

    def idf(self, found: int) -> float:
        """Of a word that ``found`` articles have, as the engine computes it."""
        return math.log1p((max(0, self.articles - found) + 0.5) / (found + 0.5))


@dataclass(slots=True)
class _Way:
    """One way of matching: what must match, which is scored, and what is scored beside it."""

    must: list[Any]
    should: list[Any]


class Queries:
    """``frequency`` of a word in title and text, folded; ``is_name``: whether it is in names."""

    def __init__(
        self, scale: Scale, frequency: Callable[[str], int], is_name: Callable[[str], bool]
    ) -> None:
        engine = tantivy()
        self._q, self._occur, self._numeric = engine.Query, engine.Occur, engine.FieldType.Unsigned
        self._schema = schema.schema()
        self._scale, self._frequency, self._is_name = scale, frequency, is_name

    # ------------------------------------------------------------------ what matches
    def matching(self, plan: Plan) -> Any:
        """Every match once, without an order."""
        conditions, without = self._conditions(plan)
        ways = [self._all_of(way.must) for way in self._ways(plan) if way.must]
        found = [self._any_of(ways)] if ways else []
        return self._both([*found, *conditions], without)

    def among(self, plan: Plan, numbers: Sequence[int]) -> Any:
        """Those of some articles that match."""
        return self._both([self._silent(self.matching(plan)), self._numbered(numbers)], [])

    def below(self, plan: Plan, number: int) -> Any:
        """Matches that were stored before the article of this number."""
        before = self._q.range_query(
            self._schema,
            "n",
            self._numeric,
            lower_bound=0,
            upper_bound=min(max(number, 0), (1 << 63) - 1),
            include_upper=False,
        )
        return self._both([self._silent(self.matching(plan)), before], [])

    def with_phrases(self, plan: Plan, phrases: Sequence[Term]) -> Any:
        """Matches that have all of these phrases as well."""
        found = [self._anywhere(term, False) for term in phrases]
        return self._all_of([self.matching(plan), *found])

    def gains(
        self, plan: Plan, typed: Plan | None, among: Sequence[int]
    ) -> list[tuple[Any, float]]:
        """What some articles score beside ``ranked``: neighbouring words where a part of a long
        query stands in a row, being what was typed. One query each: as parts of one query the
        engine looks for all of them in every article."""
        asked = [(pair, PART_PAIR) for pair in (self._pairs("fa", plan) if plan.instead else ())]
        if typed is not None:
            asked.append((self.matching(typed), self._gain_of_typed(plan)))
        some = self._numbered(among)
        return [(self._all_of([some, query]), gain) for query, gain in asked]

    def coverage(self, words: Sequence[str], among: Sequence[int]) -> Any:
        """Some articles, whose score is the share of the words that each has, by weight."""
        weights = [self._idf_of(word) for word in words]
        found = [
            self._silent(self._in("fa", (word,)), weight / sum(weights))
            for word, weight in zip(words, weights, strict=True)
        ]
        return self._both([self._numbered(among)], [], found)

    def _numbered(self, numbers: Sequence[int]) -> Any:
        some = [self._q.term_query(self._schema, "n", n) for n in numbers]
        return self._silent(self._any_of(some)) if some else self._q.empty_query()

    def phrases(self, plan: Plan) -> list[tuple[str, ...]]:
        """Words, folded, that have to stand in a row, also those that must not."""
        terms = [*plan.terms, *plan.any_of, *_terms(plan.conditions)]
        return [term.folded for term in terms if len(term.folded) > 1]

    def not_before(self, query: Any, time: int) -> Any:
        """Matches at or before a place in the order of the newest (field ``newest``)."""
        since = self._q.range_query(self._schema, "newest", self._numeric, lower_bound=time)
        return self._both([self._silent(since), query], [])

    def is_one_walk(self, plan: Plan) -> bool:
        """Whether it looks for phrases, whose positions have to be read, and in one way."""
        terms = (*plan.terms, *plan.any_of, *plan.instead)
        is_dear = any(len(term.words(plan.is_exact)) > 1 for term in terms)
        ways = plan.by_all + bool(plan.title_misses) + bool(plan.instead)
        return is_dear and ways == 1 and not self._has_byline(plan)

    def ranked(
        self, plan: Plan, typed: Plan | None, many: int, among: Sequence[int] | None = None
    ) -> list[Any]:
        """A query per way of matching. ``typed``: the plan as typed, whose matches come first.
        ``many``: how many match, see MANY. ``among``: numbers of articles, no others are asked
        for. Of a plan with ``instead`` see ``gains`` as well."""
        conditions, without = self._conditions(plan)
        if among is not None:
            conditions.append(self._numbered(among))
        better = self._better(plan, typed, many)
        return [
            self._both([*way.must, *conditions], without, [*way.should, *better])
            for way in self._ways(plan)
        ]

    def _has_byline(self, plan: Plan) -> bool:
        name = plan.byline
        return name is not None and plan.by_all and all(map(self._is_name, name.folded))

    def _ways(self, plan: Plan) -> list[_Way]:
        exact = plan.is_exact
        terms = [t for t in dict.fromkeys(plan.terms) if t.words(exact)]
        anywhere = {t: self._anywhere(t, exact) for t in (*terms, *plan.any_of)}
        titles = {t: self._title(t, exact) for t in anywhere}
        quoted = [anywhere[t] for t in terms if t.quoted]
        if plan.any_of:
            quoted.append(self._any_of([anywhere[t] for t in plan.any_of]))
        loose = [anywhere[t] for t in terms if not t.quoted]
        by_title = list(titles.values())
        ways = [_Way([*quoted, *loose], by_title[:])] if plan.by_all else []
        ways += self._other_ways(plan, quoted, loose, by_title)
        wanted = [query for one in plan.wanted for query in self._scored(one, exact)]
        for way in ways:
            way.should += wanted
        return ways

    def _other_ways(
        self, plan: Plan, quoted: list[Any], loose: list[Any], titles: list[Any]
    ) -> list[_Way]:
        """Most of the words in the title, a name, parts of the words."""
        ways = []
        least = len(plan.loose) - plan.title_misses
        if plan.title_misses and least > 0:
            titled = [(self._occur.Should, self._title(t)) for t in plan.loose]
            most = self._q.boolean_query(titled, minimum_number_should_match=least)
            ways.append(_Way([*quoted, most], loose))
        if plan.byline and self._has_byline(plan):
            name = self._silent(self._in("m", plan.byline.folded), QUOTED)
            ways.append(_Way([name], titles[:]))
        if plan.instead:
            parts = [self._silent(self._anywhere(t, False), PART) for t in plan.instead]
            ways.append(_Way([*quoted, self._any_of(parts)], [*loose, *titles]))
        return ways

    def _conditions(self, plan: Plan) -> tuple[list[Any], list[Any]]:
        """What must hold and what must not, beside the words; nothing of it is scored."""
        must, without = [], []
        for one in plan.conditions:
            if isinstance(one, NoneOf):
                without.append(self._condition(one.part, None))
            else:
                must.append(self._silent(self._condition(one, plan.is_exact)))
        if not must and not plan.terms and not plan.any_of:
            must = [self._silent(self._every_article())]
        return must, without

    def _condition(self, one: Condition, exact: bool | None) -> Any:
        """``exact`` None: as each word was typed."""
        if isinstance(one, AllOf):
            return self._all_of([self._condition(part, exact) for part in one.parts])
        if isinstance(one, AnyOf):
            return self._any_of([self._condition(part, exact) for part in one.parts])
        if isinstance(one, NoneOf):
            return self._both([self._every_article()], [self._condition(one.part, None)])
        if isinstance(one, Value):
            field = "site" if one.key == "site" else f"label_{one.key}"
            return self._q.term_query(self._schema, field, one.value)
        if isinstance(one, Published):
            return self._between(ms(one.after), ms(one.before))
        if one.where == "author":
            return self._in("m", one.term.folded)
        is_exact = one.term.has_diacritics if exact is None else exact
        if one.where == "title":
            return self._in("et" if is_exact else "ft", one.term.words(is_exact))
        return self._anywhere(one.term, is_exact)

    def _scored(self, one: Words, exact: bool) -> list[Any]:
        title = self._title(one.term, exact)
        return [title] if one.where else [self._anywhere(one.term, exact), title]

    def _every_article(self) -> Any:
        return self._q.term_query(self._schema, "kind", schema.ARTICLE)

    # ------------------------------------------------------------------ what comes first
    def _better(self, plan: Plan, typed: Plan | None, many: int) -> list[Any]:
        words = [t for t in plan.shown_in_title if t.folded]
        if not words:
            return self._recent(RECENT)
        idfs = [self._idf(t) for t in words]
        better = self._recent(
            RECENT
            * (sum(idfs) / len(idfs))
            * (RECENT_FOR_KNOWN if len(words) >= KNOWN_ITEM else 1.0)
        )
        better += [
            self._q.boost_query(self._in("et", t.exact), EXACT) for t in words if t.has_diacritics
        ]
        if plan.whole is not None:
            better += self._in_a_row(plan, plan.whole, many, typed is not None)
        title = plan.whole or next(iter(plan.terms), None)
        if title is not None and title.folded:
            better.append(self._silent(self._in("ft", (FIRST, *title.folded, LAST)), SAME_TITLE))
        if typed is not None:
            better.append(self._silent(self.matching(typed), self._gain_of_typed(plan)))
        return better

    def _gain_of_typed(self, plan: Plan) -> float:
        """Of a long query few words must be wrong for chance to have all of them somewhere."""
        words = [t for t in plan.shown_in_title if t.folded]
        return AS_TYPED if len(words) < KNOWN_ITEM else WHOLE * sum(map(self._idf, words))

    def _in_a_row(self, plan: Plan, whole: Term, many: int, is_typed: bool) -> list[Any]:
        pairs = self._pairs("ft", plan) if many <= MANY else []
        found = [self._q.boost_query(pair, PAIR) for pair in pairs]
        words = whole.words(plan.is_exact)
        # Shorter rows are a tier of their own, see Search.page.
        if len(plan.terms) > 1 and (len(words) >= QUOTATION or is_typed):
            row = self._in("ea" if plan.is_exact else "fa", words)
            found.append(self._silent(row, QUOTED))
        return found

    def _pairs(self, field: str, plan: Plan) -> list[Any]:
        """Neighbouring words that stand next to one another."""
        words = [term.folded for term in plan.terms if term.folded]
        pairs = dict.fromkeys(first + second for first, second in pairwise(words))
        return [self._in(field, pair) for pair in pairs]

    def _recent(self, gain: float) -> list[Any]:
        """A clause per day."""
        newest = self._scale.newest_day
        if newest is None:
            return []
        return [
            self._silent(
                self._q.term_query(self._schema, "day", newest - age),
                gain * 2 ** (-age / HALF_LIFE_DAYS),
            )
            for age in range(min(RECENT_DAYS, newest + 1))
        ]

    def _idf(self, term: Term) -> float:
        return sum(map(self._idf_of, term.folded))

    # ------------------------------------------------------------------ parts of queries
    def _anywhere(self, term: Term, exact: bool) -> Any:
        return self._spelt("ea" if exact else "fa", "fa", term, exact)

    def _title(self, term: Term, exact: bool = False) -> Any:
        return self._q.boost_query(self._spelt("et" if exact else "ft", "ft", term, exact), TITLE)

    def _spelt(self, field: str, folded_field: str, term: Term, exact: bool) -> Any:
        """As typed, or in one of its other spellings, which are compared folded."""
        own = self._in(field, term.words(exact))
        known = [s for s in term.spellings if all(map(self._frequency, s))]
        return self._any_of([own, *(self._in(folded_field, s) for s in known)])

    def _in(self, field: str, words: Sequence[str]) -> Any:
        """In a row, also with i for y where both are written (spellings.ways)."""
        own = self._row(field, words)
        others = [way for way in ways(tuple(words))[1:] if all(map(self._is_known, way))]
        if not others:
            return own
        return self._any_of([own, *(self._other_way(field, words, way) for way in others)])

    def _other_way(self, field: str, words: Sequence[str], way: Sequence[str]) -> Any:
        """Scored as if it were as frequent as what it stands for, where it is rarer."""
        asked, found = (sum(map(self._idf_of, map(folded, some))) for some in (words, way))
        return self._q.boost_query(self._row(field, way), min(1.0, asked / max(found, 1e-9)))

    def _is_known(self, word: str) -> bool:
        return word in _MARKS or self._frequency(folded(word)) > 0

    def _idf_of(self, word: str) -> float:
        return self._scale.idf(self._frequency(word))

    def _row(self, field: str, words: Sequence[str]) -> Any:
        if not words:
            return self._q.empty_query()
        if len(words) == 1:
            return self._q.term_query(self._schema, field, words[0])
        return self._q.phrase_query(self._schema, field, list(words))

    def _between(self, after_ms: int | None, before_ms: int | None) -> Any:
        last = (1 << 63) - 1
        first = 0 if after_ms is None else time_key(after_ms)
        end = last if before_ms is None else time_key(before_ms)
        return self._q.range_query(
            self._schema,
            "at",
            self._numeric,
            lower_bound=min(max(first, 0), last),
            upper_bound=min(max(end, 0), last),
            include_upper=False,
        )

    def _silent(self, query: Any, score: float = 0.0) -> Any:
        """A filter scores as much as a word unless it is told not to."""
        return self._q.const_score_query(query, score)

    def _any_of(self, queries: Sequence[Any]) -> Any:
        if len(queries) == 1:
            return queries[0]
        return self._q.boolean_query([(self._occur.Should, query) for query in queries])

    def _all_of(self, queries: Sequence[Any]) -> Any:
        return self._silent(self._q.boolean_query([(self._occur.Must, query) for query in queries]))

    def _both(self, must: Iterable[Any], without: Iterable[Any], should: Iterable[Any] = ()) -> Any:
        clauses = [(self._occur.Must, query) for query in must]
        clauses += [(self._occur.MustNot, query) for query in without]
        clauses += [(self._occur.Should, query) for query in should]
        return self._q.boolean_query(clauses)


def _terms(conditions: Iterable[Condition]) -> Iterator[Term]:
    for one in conditions:
        if isinstance(one, (AllOf, AnyOf)):
            yield from _terms(one.parts)
        elif isinstance(one, NoneOf):
            yield from _terms([one.part])
        elif isinstance(one, Words):
            yield one.term
