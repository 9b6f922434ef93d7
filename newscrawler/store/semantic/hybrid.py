"""One page of a search by words and by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from newscrawler.store.base import MeaningUsed, Mode, Query, QueryError
from newscrawler.store.fulltext.search import RankedPage, Search
from newscrawler.store.query_language import Plan
from newscrawler.store.semantic import fusion
from newscrawler.store.semantic.fusion import DEPTH
from newscrawler.store.semantic.matrix import Matrix
from newscrawler.store.semantic.meaning import Meaning, NoVectors

#: Hits of a search by meaning alone: beyond them nothing is near.
MOST_NEAR = 200
#: Articles that filters leave, at most, for the vectors of just these to be compared; with more of
#: them the nearest ones are asked whether they pass.
_FILTERED, _CANDIDATES = 20_000, 1_000

#: Of articles by their numbers: those that are there, each with its cluster (None: alone).
Clusters = Callable[[Sequence[int]], dict[int, int | None]]
#: Of clusters: the numbers of their articles.
Members = Callable[[Iterable[int]], dict[int, list[int]]]


@dataclass(slots=True)
class Found:
    page: RankedPage
    mode: Mode
    used: MeaningUsed | None
    only_near: frozenset[int] = frozenset()  # numbers of hits that no word has found


@dataclass(slots=True)
class Hybrid:
    """One search. ``ask`` gives the vector of a text or raises NoVectors."""

    search: Search
    meaning: Meaning
    ask: Callable[[str], Any]
    clusters: Clusters
    members: Members
    query: Query
    first: Plan  # the query as typed

    def page(self, plan: Plan) -> Found:
        """``plan``: what was settled on."""
        if self.query.mode == "semantic":
            return self._by_meaning(plan)
        why = fusion.words_alone(self.query, self.first, self.search.frequency_of)
        page = self.search.page(plan, self.query, self.first)
        how = fusion.joined(plan, page.total)
        if why or how == "words":
            return Found(page, "keyword", self._used(why or "enough articles have the words"))
        try:
            near = self._near(plan, DEPTH)
        except NoVectors as exc:
            return Found(page, "keyword", self._used(str(exc)))
        if not plan.conditions and not fusion.is_any_near(near):
            return Found(page, "keyword", self._used("nothing stored is near in meaning"))
        return self._fused(plan, page, near) if how == "fused" else self._below(plan, page, near)

    # ------------------------------------------------------------------ ways to join
    def _by_meaning(self, plan: Plan) -> Found:
        if self.first.is_filter_only:
            raise QueryError("mode=semantic: words are needed whose meaning is looked for")
        near = self._alone(self._near(plan, MOST_NEAR))
        start = self.query.page * self.query.size
        shown = near[start : start + self.query.size]
        matching = self.search.among(plan, [n for n, _ in shown])
        return Found(
            RankedPage(shown, len(near), total_is_capped=len(near) == MOST_NEAR),
            "semantic",
            replace(self._used(""), words=0.0),
            frozenset(n for n, _ in shown if n not in matching),
        )

    def _below(self, plan: Plan, page: RankedPage, near: list[tuple[int, float]]) -> Found:
        """Those that only meaning finds follow after those that words find."""
        only = self._only_near(plan, near)
        start, end = self._range()
        rest = only[max(0, start - page.total) : max(0, end - page.total)]
        return self._found(RankedPage([*page.hits, *rest], page.total + len(only)), only)

    def _fused(self, plan: Plan, page: RankedPage, near: list[tuple[int, float]]) -> Found:
        start, end = self._range()
        most = max(DEPTH, end)
        top = self.search.page(plan, replace(self.query, page=0, size=most), self.first).hits
        only = self._only_near(plan, near)
        passed = {n for n, _ in only} | self.search.among(plan, [n for n, _ in near])
        first = [n for n, _ in top[:DEPTH]]
        near = [hit for hit in fusion.apart(near) if hit[0] in passed]
        words = fusion.words_of(plan, self.first)
        coverage = self.search.coverage(words, [*first, *(n for n, _ in near)])
        order = fusion.fused(first, near, coverage)
        seen = {n for n, _ in order}
        order += [hit for hit in top[DEPTH:] if hit[0] not in seen]
        if self.query.collapse:
            order = self._alone(order)
        return self._found(
            RankedPage(order[start:end], page.total + len(only), page.total_is_capped), only
        )

    def _found(self, page: RankedPage, only: list[tuple[int, float]]) -> Found:
        return Found(
            page, "hybrid", replace(self._used(""), found=len(only)), frozenset(n for n, _ in only)
        )

    def _range(self) -> tuple[int, int]:
        start = self.query.page * self.query.size
        return start, start + self.query.size

    # ------------------------------------------------------------------ vectors
    def _near(self, plan: Plan, limit: int) -> list[tuple[int, float]]:
        """The nearest articles that pass the filters of the query."""
        matrix = self.meaning.matrix()
        vector = self.ask(fusion.text_of(self.query, self.first))
        if not plan.conditions:
            return matrix.nearest(vector, limit)
        return self._filtered(matrix, vector, plan, limit)

    def _filtered(
        self, matrix: Matrix, vector: Any, plan: Plan, limit: int
    ) -> list[tuple[int, float]]:
        filters = replace(
            plan, terms=(), any_of=(), instead=(), title_misses=0, by_all=True, whole=None
        )  # fmt: skip
        passing = self.search.numbers(filters, _FILTERED)
        if passing is not None:
            return matrix.nearest(vector, limit, among=passing)
        near = matrix.nearest(vector, _CANDIDATES)
        kept = self.search.among(filters, [n for n, _ in near])
        return [hit for hit in near if hit[0] in kept][:limit]

    def _only_near(self, plan: Plan, near: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Those that the words do not find."""
        by_words = self.search.among(plan, [n for n, _ in near])
        rest = [hit for hit in near if hit[0] not in by_words]
        there = self.clusters([n for n, _ in rest])
        rest = [hit for hit in rest if hit[0] in there]
        if not self.query.collapse:
            return rest
        # A copy of what the words have found is no other hit: it would be counted twice.
        members = self.members({c for c in there.values() if c is not None})
        found = self.search.among(plan, [n for of_one in members.values() for n in of_one])
        taken = {c for c, of_one in members.items() if not found.isdisjoint(of_one)}
        return self._alone([hit for hit in rest if there[hit[0]] not in taken])

    def _alone(self, hits: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Without those that are gone; where copies are collapsed, the first of each cluster."""
        clusters = self.clusters([n for n, _ in hits])
        seen: set[int] = set()
        kept = []
        for n, score in hits:
            cluster = clusters.get(n)
            if n not in clusters or (self.query.collapse and cluster in seen):
                continue
            if cluster is not None:
                seen.add(cluster)
            kept.append((n, score))
        return kept

    def _used(self, why_not: str) -> MeaningUsed:
        return MeaningUsed(str(self.meaning.embedder.model), fusion.WORDS, fusion.VECTORS, why_not)
