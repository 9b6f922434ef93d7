"""Answers searches from one state of the index: numbers of articles with scores, totals, facets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import combinations
from typing import Any

from newscrawler.store import newest
from newscrawler.store.base import Query, QueryTooLarge
from newscrawler.store.fulltext import local_days
from newscrawler.store.fulltext.correct import Dictionary
from newscrawler.store.fulltext.folder import View
from newscrawler.store.fulltext.queries import Queries, Scale
from newscrawler.store.fulltext.schema import day_of
from newscrawler.store.labels import KEYS, MOST, counted, matched_values
from newscrawler.store.ladder import Ask, Count, Counts, Frequencies, Near, Scores, ladder
from newscrawler.store.query_language import QUOTATION, Plan, Term

FACET_DAYS = 31
#: Values of a facet that are looked at, in each segment; clusters that are counted exactly.
_VALUES, _CLUSTERS = 10_000, 50_000
#: Matches up to which each value of a facet is looked at at once; of more, so many candidates of
#: each segment come first, and the best of them are counted.
_FEW_MATCHES = 5_000
_CANDIDATES = {"size": 200, "segment_size": 1_000}
#: Candidates beyond those that are shown.
_SPARE = 10
#: The best matches of a plan with phrases that are kept when it is counted: to walk over all its
#: matches costs the same whatever is asked about them, and to ask again about so few next to
#: nothing.
_KEPT = 300
#: Newest articles among which the newest matches of a plan are looked for first.
_LATEST = (2_000, 20_000)
#: Phrases of one query that are looked for whatever they cost; places of their words that are
#: looked at for more of them, about half a second of CPU.
_PHRASES, MOST_POSITIONS = 8, 2_000_000
#: A score, or the value that is sorted by, and where the article is in the index.
_Place = tuple[float, Any]
#: The best so many matches of a plan.
_Best = Callable[[Plan, int], list[_Place]]


@dataclass(slots=True)
class RankedPage:
    """``hits``: numbers of articles and their scores."""

    hits: list[tuple[int, float]]
    total: int
    total_is_capped: bool = False


@dataclass(frozen=True, slots=True)
class _Walk:
    """``best``: the first ``_KEPT`` matches, ``numbers``: theirs."""

    best: list[_Place]
    numbers: list[int]
    count: int

    @property
    def is_complete(self) -> bool:
        return self.count == len(self.best)


class Search:
    """One search. ``check_time`` raises when its time is over; the engine itself cannot be
    interrupted. ``new_gains``: see Sort."""

    def __init__(
        self,
        view: View,
        dictionary: Callable[[], Dictionary],
        check_time: Callable[[], None],
        *,
        new_gains: bool = True,
    ) -> None:
        self._view, self._new_gains = view, new_gains
        self._articles = view.articles
        self._dictionary, self._check_time = dictionary, check_time
        self._known: dict[str, int] = {}
        self._counts: dict[Plan, int] = {}
        self._walks: dict[Plan, _Walk] = {}
        scale = Scale(view.articles, day_of(view.newest_ms) if new_gains else None)
        self._queries = Queries(scale, self._frequency, view.is_in_names)

    # ------------------------------------------------------------------ the ladder
    def settle(self, plan: Plan) -> Plan:
        """Walk the ladder until something is found. Raises QueryTooLarge."""
        self._refuse_dear(plan)
        steps = ladder(plan)
        answer: object = None
        try:
            while True:
                self._check_time()
                answer = self._answer(steps.send(answer))
        except StopIteration as done:
            settled: Plan = done.value
            return settled

    def _refuse_dear(self, plan: Plan) -> None:
        """The engine cannot be interrupted, and OR and NOT look for each phrase in all articles."""
        phrases = self._queries.phrases(plan)
        looked_at = sum(min(map(self._frequency, words)) for words in phrases)
        if len(phrases) > _PHRASES and looked_at > MOST_POSITIONS:
            raise QueryTooLarge(
                f"{len(phrases)} phrases of words that are in most articles: ask for fewer of them,"
                " or for rarer words"
            )

    def _answer(self, ask: Ask) -> object:
        if isinstance(ask, Count):
            return self.count(ask.plan)
        if isinstance(ask, Frequencies):
            return {t: self._found(t) / max(1, self._articles) for t in ask.terms}
        if isinstance(ask, Near):
            return {word: self._dictionary().near(word, ask.most) for word in ask.words}
        if isinstance(ask, Counts):
            return [self.count(plan) for plan in ask.plans]
        assert isinstance(ask, Scores)
        return [self._top_score(plan) for plan in ask.plans]

    def count(self, plan: Plan) -> int:
        """Each is counted once in a search: it is a walk over all matches."""
        if plan not in self._counts:
            self._check_time()
            self._counts[plan] = self._counted(plan)
        return self._counts[plan]

    def _counted(self, plan: Plan) -> int:
        if walk := self._walk(plan):
            return walk.count
        parts = _apart(plan)
        if len(parts) == 1:
            return self._view.count(self._queries.matching(plan))
        others, alone = parts
        twice = self._count_both(others, alone.instead) if self.count(others) else 0
        return self.count(others) + self.count(alone) - twice

    def _count_both(self, plan: Plan, phrases: Sequence[Term]) -> int:
        """Matches of a plan that have any of the phrases, by inclusion and exclusion: in an OR the
        engine looks for each of them in every article."""
        found = 0
        for many in range(1, len(phrases) + 1):
            for some in combinations(phrases, many):
                count = self._view.count(self._queries.with_phrases(plan, some))
                found += count if many % 2 else -count
        return found

    def _walk(self, plan: Plan) -> _Walk | None:
        """The one walk over the matches of a plan that looks for phrases in one way."""
        if plan not in self._walks and self._queries.is_one_walk(plan):
            self._check_time()
            (query,) = self._queries.ranked(plan, None, 0)
            best, count = self._view.best_and_count(query, _KEPT)
            numbers = self._view.values("n", [place for _, place in best])
            self._walks[plan] = _Walk(best, numbers, count)
        return self._walks.get(plan)

    def in_a_row(self, plan: Plan) -> int | None:
        """As SearchResult.in_a_row."""
        return None if plan.row is None else self.count(plan.row)

    def _found(self, term: Term) -> int:
        if len(term.folded) == 1:
            return self._frequency(term.folded[0])
        return self.count(Plan(terms=(term,)))

    def _frequency(self, word: str) -> int:
        if word not in self._known:
            self._known[word] = self._view.frequency(word)
        return self._known[word]

    # ------------------------------------------------------------------ for the search by meaning
    def frequency_of(self, word: str, exact: bool) -> int:
        return self._view.frequency(word, exact)

    def numbers(self, plan: Plan, most: int) -> list[int] | None:
        """Of all articles that match; None: there are more than ``most``."""
        found = self.count(plan)
        if found > most:
            return None
        query = self._queries.matching(plan)
        places = [place for _, place in self._view.best(query, max(1, found), by="at")]
        return self._view.values("n", places)

    def among(self, plan: Plan, numbers: Sequence[int]) -> set[int]:
        """Those of these articles that match."""
        self._check_time()
        if not numbers:
            return set()
        hits = self._view.best(self._queries.among(plan, numbers), len(numbers))
        return set(self._view.values("n", [place for _, place in hits]))

    def coverage(self, words: Sequence[str], numbers: Sequence[int]) -> dict[int, float]:
        """Of these articles the share (0..1) of the words, folded, that each has, a word weighing
        as much as it is rare; one that no article has as the rarest."""
        self._check_time()
        if not words or not numbers:
            return {}
        query = self._queries.coverage(words, list(dict.fromkeys(numbers)))
        hits = self._view.best(query, len(numbers))
        there = self._view.values("n", [place for _, place in hits])
        return dict(zip(there, (float(score) for score, _ in hits), strict=True))

    def _top_score(self, plan: Plan) -> float:
        self._check_time()
        hits = self._ranked(plan, None, 0, 1)
        return float(hits[0][0]) if hits else 0.0

    # ------------------------------------------------------------------ hits
    def page(self, plan: Plan, query: Query, first: Plan) -> RankedPage:
        """The page asked for. ``first``: the plan as typed, of which ``plan`` was made."""
        end = (query.page + 1) * query.size
        total = self.count(plan)
        if not total:
            return RankedPage([], 0)
        typed = first if first.is_exact and not plan.is_exact and not plan.relaxed else None
        by_date = query.sort == "date" or plan.is_filter_only

        def top(limit: int) -> list[_Place]:
            self._check_time()
            if by_date:
                return self._in_tiers(plan, limit, self._newest_of, self._newest_of)
            if typed is None and is_short(plan):
                return self._in_tiers(plan, limit, self._best_of, self._ranked_of)
            if typed is None:
                return self._best_of(plan, limit)
            return self._ranked(plan, typed, total, limit)

        if query.collapse:
            found = self._collapsed(top, end, total)
            total, capped = self._clusters(plan)
        else:
            found, capped = top(min(end, total)), False
        shown = found[query.page * query.size : end]
        numbers = self._view.values("n", [place for _, place in shown])
        scores = [0.0 if by_date else score for score, _ in shown]
        return RankedPage(list(zip(numbers, scores, strict=True)), total, capped)

    def _in_tiers(self, plan: Plan, limit: int, best_of: _Best, others_of: _Best) -> list[_Place]:
        """Those that have all words in a row, then the others."""
        rows = plan.row
        first = [] if rows is None else best_of(rows, limit)
        if not first or len(first) >= limit:
            return first or best_of(plan, limit)
        seen = set(map(_key, first))
        first += [hit for hit in others_of(plan, limit) if _key(hit) not in seen]
        return first[:limit]

    def _ranked_of(self, plan: Plan, limit: int) -> list[_Place]:
        return self._ranked(plan, None, self._counts.get(plan, 0), limit)

    def _newest_of(self, plan: Plan, limit: int) -> list[_Place]:
        if plan in self._counts or self._walk(plan):
            return self._newest(plan, limit)
        query = self._queries.matching(plan)
        found, self._counts[plan] = self._view.best_and_count(query, limit, by="newest")
        return found

    def _best_of(self, plan: Plan, limit: int) -> list[_Place]:
        is_subject = self._new_gains and newest.is_about_a_subject(plan)
        many = self._counts.get(plan, 0)  # rows are counted while they are looked for
        found = self._ranked(
            plan, None, many, max(limit, newest.FIRST_PAGE) if is_subject else limit
        )
        if not is_subject or self.count(plan) <= newest.FIRST_PAGE:
            return found[:limit]
        latest = self._newest(plan, len(newest.PLACES))
        by_key = {_key(hit): hit for hit in [*latest, *found]}
        order = newest.with_newest(list(map(_key, found)), list(map(_key, latest)))
        scored = [hit[0] for hit in found]
        return [(scored[min(at, len(scored) - 1)], by_key[key][1]) for at, key in enumerate(order)][
            :limit
        ]

    def _newest(self, plan: Plan, limit: int) -> list[_Place]:
        """Among the newest articles, as long as these have enough of them: all of those are newer
        than any other match."""
        query = self._queries.matching(plan)
        count = self.count(plan)
        walk = self._walk(plan)
        if walk is not None and walk.is_complete:
            places = [place for _, place in walk.best]
            times: list[_Place] = list(
                zip(self._view.values("newest", places), places, strict=True)
            )
            return sorted(times, key=lambda hit: (-hit[0], _key(hit)))[:limit]
        for many in _LATEST if walk is not None else ():
            if count * many > 4 * limit * self._articles:
                latest = self._queries.not_before(query, self._view.time_of_latest(many))
                found = self._view.best(latest, limit, by="newest")
                if len(found) == limit:
                    return found
        return self._view.best(query, limit, by="newest")

    def _ranked(self, plan: Plan, typed: Plan | None, many: int, limit: int) -> list[_Place]:
        """The best of each way of matching, each article once."""
        best: dict[tuple[int, int], _Place] = {}
        for part in _apart(plan):
            for hit in self._best_of_part(part, typed, many, limit):
                key = _key(hit)
                if key not in best or best[key][0] < hit[0]:
                    best[key] = hit
        # The engine's own order among equals: a page more shows the same ones before it.
        order = sorted(best, key=lambda key: (-best[key][0], key))
        return [best[key] for key in order[:limit]]

    def _best_of_part(self, plan: Plan, typed: Plan | None, many: int, limit: int) -> list[_Place]:
        self._check_time()
        if walk := self._walk(plan):
            return self._scored_again(walk, plan, typed, limit)
        queries = self._queries.ranked(plan, typed, many)
        if len(queries) == 1 and plan not in self._counts:
            hits, self._counts[plan] = self._view.best_and_count(queries[0], limit)
            return hits
        return [hit for query in queries for hit in self._view.best(query, limit)]

    def _scored_again(
        self, walk: _Walk, plan: Plan, typed: Plan | None, limit: int
    ) -> list[_Place]:
        """The best of a walk with what else they score; what follows below them stays as it is."""
        hits = list(walk.best)
        if typed is not None:
            hits += self._missing(walk, plan, typed)
        gained: dict[tuple[int, int], float] = {}
        numbers = self._view.values("n", [place for _, place in hits])
        for query, gain in self._queries.gains(plan, typed, numbers):
            for _, place in self._view.best(query, max(1, len(numbers))):
                key = (place.segment_ord, place.doc)
                gained[key] = gained.get(key, 0.0) + gain
        hits = [(hit[0] + gained.get(_key(hit), 0.0), hit[1]) for hit in hits]
        hits.sort(key=lambda hit: (-hit[0], _key(hit)))
        if limit <= len(hits) or walk.is_complete:
            return hits[:limit]
        (query,) = self._queries.ranked(plan, None, 0)
        seen, lowest = set(map(_key, hits)), hits[-1][0]
        below = [hit for hit in self._view.best(query, limit) if _key(hit) not in seen]
        return [*hits, *((min(score, lowest), place) for score, place in below)][:limit]

    def _missing(self, walk: _Walk, plan: Plan, typed: Plan) -> list[_Place]:
        """What the plan as typed finds and is not among the best of the walk."""
        exact = self.numbers(typed, _KEPT) or []
        missing = sorted(set(exact) - set(walk.numbers))
        if not missing:
            return []
        (query,) = self._queries.ranked(plan, None, 0, missing)
        return self._view.best(query, len(missing))

    def _collapsed(self, top: Callable[[int], list[_Place]], end: int, total: int) -> list[_Place]:
        """The first of each cluster, until there are enough."""
        limit = 2 * end
        while True:
            found = top(min(limit, total))
            seen: set[int] = set()
            kept = []
            clusters = self._view.values("cluster", [place for _, place in found])
            for hit, cluster in zip(found, clusters, strict=True):
                if cluster and cluster in seen:
                    continue
                seen.add(cluster)
                kept.append(hit)
            if len(kept) >= end or limit >= total:
                return kept
            limit *= 4

    def _clusters(self, plan: Plan) -> tuple[int, bool]:
        """How many hits there are when each cluster is one, and whether there are more."""
        self._check_time()
        terms = {"field": "cluster", "size": _CLUSTERS, "segment_size": _CLUSTERS}
        found = self._view.aggregate(self._queries.matching(plan), {"of": {"terms": terms}})
        buckets = found["of"]["buckets"]
        alone = sum(b["doc_count"] for b in buckets if not b["key"])
        together = sum(1 for b in buckets if b["key"])
        return alone + together, found["of"]["sum_other_doc_count"] > 0

    # ------------------------------------------------------------------ all of them
    def portion(self, plan: Plan, before: int, size: int) -> list[int]:
        """Numbers of the next matches that were stored before this one, the newest first."""
        self._check_time()
        hits = self._view.best(self._queries.below(plan, before), size, by="n")
        return [int(number) for number, _ in hits]

    def days(self, plan: Plan, zone: tzinfo) -> dict[str, dict[str, int]]:
        """All matches by day of ``zone`` and site."""
        self._check_time()
        asked = local_days.asked(zone)
        of_site = {"terms": {"field": "site", "size": _VALUES, "segment_size": _VALUES}}
        for histogram in asked.values():
            histogram["aggs"] = {"site": of_site}
        found = self._view.aggregate(self._queries.matching(plan), asked)
        return local_days.by_site(found, zone)

    # ------------------------------------------------------------------ facets
    def values(self, plan: Plan, key: str, within: str) -> dict[str, int]:
        """See WholeStore.values."""
        self._check_time()
        field = key if key == "site" else f"spelt_{key}"
        terms = {"field": field, "size": _CLUSTERS, "segment_size": _CLUSTERS}
        found = self._view.aggregate(self._queries.matching(plan), {key: {"terms": terms}})
        return matched_values(((b["key"], b["doc_count"]) for b in found[key]["buckets"]), within)

    def facets(self, plan: Plan, zone: tzinfo) -> dict[str, dict[str, int]]:
        """Over all matches; days are those of ``zone``."""
        self._check_time()
        many = self.count(plan) > _FEW_MATCHES
        asked: dict[str, Any] = {
            "site": {"terms": {"field": "site", "size": _VALUES, "segment_size": _VALUES}},
            **local_days.asked(zone),
        }
        for key in KEYS:
            asked[key] = {"terms": _CANDIDATES | {"field": f"label_{key}"}} if many else _spelt(key)
        query = self._queries.matching(plan)
        found = self._view.aggregate(query, asked)
        sites = sorted(
            ((b["key"], b["doc_count"]) for b in found["site"]["buckets"]),
            key=lambda site: (-site[1], site[0]),
        )
        labels = (
            self._best_labels(query, found) if many else {key: _rows(found, key) for key in KEYS}
        )
        return {
            "site": dict(sites),
            "day": local_days.newest(found, zone, FACET_DAYS),
            **{key: counted(rows) for key, rows in labels.items()},
        }

    def _best_labels(
        self, query: Any, found: dict[str, Any]
    ) -> dict[str, list[tuple[str, str, int]]]:
        """The values that most matches have. Of many matches the engine would hand over thousands
        of values a facet, of which fifty are shown; and a value is counted in all its spellings,
        the rarest too, where it is one of few. It is shown as most articles of the index have it.
        """
        self._check_time()
        asked: dict[str, Any] = {}
        for key in KEYS:
            names = [bucket["key"] for bucket in found[key]["buckets"]][: MOST + _SPARE]
            if names:
                values = {"field": f"label_{key}", "include": names}
                asked[key] = {"terms": {**values, "size": len(names), "segment_size": len(names)}}
        again = self._view.aggregate(query, asked) if asked else {}
        return {
            key: [
                (value["key"], self._view.spelling(key, value["key"]), value["doc_count"])
                for value in again.get(key, {"buckets": []})["buckets"][:MOST]
            ]
            for key in KEYS
        }


def _spelt(key: str) -> dict[str, Any]:
    return {"terms": {"field": f"spelt_{key}", "size": _VALUES, "segment_size": _VALUES}}


def _rows(found: dict[str, Any], key: str) -> list[tuple[str, str, int]]:
    """Folded value, spelling, articles."""
    rows = []
    for bucket in found[key]["buckets"]:
        value, _, text = bucket["key"].partition("\t")
        rows.append((value, text, bucket["doc_count"]))
    return rows


def _apart(plan: Plan) -> list[Plan]:
    """The plan without its parts as they stand, and with these alone."""
    if not plan.instead or not (plan.by_all or plan.title_misses):
        return [plan]
    return [replace(plan, instead=()), replace(plan, by_all=False, title_misses=0)]


def is_short(plan: Plan) -> bool:
    """Whether its words may be one compound; a longer row counts as a quotation in the order."""
    return plan.whole is not None and len(plan.whole.folded) < QUOTATION


def _key(hit: _Place) -> tuple[int, int]:
    return hit[1].segment_ord, hit[1].doc
