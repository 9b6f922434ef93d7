"""One page of a search by words and by meaning in Elasticsearch: what store.semantic.hybrid does
for the local store, by ids. When meaning is asked and how orders are joined is in
store.semantic.fusion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from newscrawler.store.base import Hit, MeaningUsed, Mode, Query, QueryError, SearchResult
from newscrawler.store.elasticsearch import query as dsl
from newscrawler.store.elasticsearch.vectors import Meaning
from newscrawler.store.query_language import Plan
from newscrawler.store.semantic import fusion
from newscrawler.store.semantic.fusion import DEPTH
from newscrawler.store.semantic.meaning import NoVectors

#: As in store.semantic.hybrid.
MOST_NEAR = 200
#: The nearest that are asked whether they pass what only the articles know (words to be without).
_LOOKED_AT = 500

Frequency = Callable[[str, bool], int]


class Words(Protocol):
    """The store's search by words."""

    async def page(self, plan: Plan, query: Query) -> SearchResult: ...
    async def ids(self, plan: Plan, query: Query, many: int) -> list[str]:
        """Of the first so many hits."""
        ...

    async def among(self, plan: Plan, ids: Sequence[str]) -> set[str]:
        """Those that match."""
        ...

    async def clusters(self, ids: Sequence[str]) -> dict[str, str]:
        """Label of the near-duplicates of each that is not gone."""
        ...

    async def matching_clusters(self, plan: Plan, labels: set[str]) -> set[str]:
        """Those of which an article matches."""
        ...

    async def hits(
        self, scored: Sequence[tuple[str, float]], plan: Plan, only_near: set[str], collapse: bool
    ) -> list[Hit]: ...
    async def frequency(self, plan: Plan) -> Frequency: ...
    async def coverage(self, words: Sequence[str], ids: Sequence[str]) -> dict[str, float]:
        """See fulltext.search.Search.coverage."""
        ...


@dataclass(slots=True)
class Hybrid:
    """One search."""

    words: Words
    meaning: Meaning
    query: Query
    first: Plan  # the query as typed

    async def page(self, plan: Plan) -> SearchResult:
        """``plan``: what was settled on."""
        if self.query.mode == "semantic":
            return await self._by_meaning(plan)
        frequency = await self.words.frequency(self.first)
        why = fusion.words_alone(self.query, self.first, frequency)
        result = await self.words.page(plan, self.query)
        how = fusion.joined(plan, result.total)
        if why or how == "words":
            return self._said(result, "keyword", why or "enough articles have the words")
        try:
            near = await self._near(plan, DEPTH)
        except NoVectors as exc:
            return self._said(result, "keyword", str(exc))
        only = await self._only_near(plan, near)
        if how == "fused":
            await self._fuse(plan, result, near, only)
        else:
            await self._put_below(plan, result, only)
        result.total += len(only)
        return self._said(result, "hybrid", "", len(only))

    # ------------------------------------------------------------------ ways to join
    async def _by_meaning(self, plan: Plan) -> SearchResult:
        if self.first.is_filter_only:
            raise QueryError("mode=semantic: words are needed whose meaning is looked for")
        near = await self._alone(await self._near(plan, MOST_NEAR))
        start, end = self._range()
        shown = near[start:end]
        by_words = await self.words.among(plan, [one for one, _ in shown])
        only = {one for one, _ in shown} - by_words
        found = await self.words.page(plan, replace(self.query, size=1, page=0))  # its facets
        hits = await self.words.hits(shown, plan, only, self.query.collapse)
        result = replace(found, hits=hits, total=len(near), in_a_row=None)
        result.total_is_capped = len(near) == MOST_NEAR
        result = self._said(result, "semantic", "")
        assert result.meaning is not None
        result.meaning = replace(result.meaning, words=0.0)
        return result

    async def _put_below(
        self, plan: Plan, result: SearchResult, only: list[tuple[str, float]]
    ) -> None:
        """Those that only meaning finds follow after those that words find."""
        start, end = self._range()
        rest = only[max(0, start - result.total) : max(0, end - result.total)]
        near = {one for one, _ in rest}
        result.hits += await self.words.hits(rest, plan, near, self.query.collapse)

    async def _fuse(
        self,
        plan: Plan,
        result: SearchResult,
        near: list[tuple[str, float]],
        only: list[tuple[str, float]],
    ) -> None:
        start, end = self._range()
        top = await self.words.ids(plan, self.query, max(DEPTH, end))
        passed = {one for one, _ in only}
        passed |= await self.words.among(plan, [one for one, _ in near])
        near = [hit for hit in fusion.apart(near) if hit[0] in passed]
        words = fusion.words_of(plan, self.first)
        coverage = await self.words.coverage(words, [*top[:DEPTH], *(one for one, _ in near)])
        order = fusion.fused(top[:DEPTH], near, coverage)
        seen = {one for one, _ in order}
        order += [(one, 0.0) for one in top[DEPTH:] if one not in seen]
        if self.query.collapse:
            order = await self._alone(order)
        near_only = {one for one, _ in only}
        result.hits = await self.words.hits(order[start:end], plan, near_only, self.query.collapse)

    def _said(self, result: SearchResult, mode: Mode, why_not: str, found: int = 0) -> SearchResult:
        model = str(self.meaning.embedder.model)
        result.mode = mode
        result.meaning = MeaningUsed(model, fusion.WORDS, fusion.VECTORS, why_not, found)
        return result

    def _range(self) -> tuple[int, int]:
        start = self.query.page * self.query.size
        return start, start + self.query.size

    # ------------------------------------------------------------------ vectors
    async def _near(self, plan: Plan, limit: int) -> list[tuple[str, float]]:
        """The nearest articles that pass the filters of the query."""
        vector = await self.meaning.ask(fusion.text_of(self.query, self.first))
        known = [one for one in plan.conditions if not fusion.has_words(one)]
        others = tuple(one for one in plan.conditions if fusion.has_words(one))
        asked = [dsl.condition(one) for one in known]
        near = await self.meaning.vectors.nearest(vector, _LOOKED_AT if others else limit, asked)
        if not others:
            return near
        filters = replace(
            plan, conditions=others, terms=(), any_of=(), instead=(), title_misses=0, by_all=True,
            whole=None,
        )  # fmt: skip
        kept = await self.words.among(filters, [one for one, _ in near])
        return [hit for hit in near if hit[0] in kept][:limit]

    async def _only_near(
        self, plan: Plan, near: list[tuple[str, float]]
    ) -> list[tuple[str, float]]:
        """Those that the words do not find."""
        by_words = await self.words.among(plan, [one for one, _ in near])
        rest = [hit for hit in near if hit[0] not in by_words]
        there = await self.words.clusters([one for one, _ in rest])
        rest = [hit for hit in rest if hit[0] in there]
        if not self.query.collapse:
            return rest
        # A copy of what the words have found is no other hit: it would be counted twice.
        taken = await self.words.matching_clusters(plan, set(there.values()))
        return await self._alone([hit for hit in rest if there[hit[0]] not in taken])

    async def _alone(self, hits: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """Without those that are gone; where copies are collapsed, the first of each cluster."""
        clusters = await self.words.clusters([one for one, _ in hits])
        seen: set[str] = set()
        kept = []
        for one, score in hits:
            if one not in clusters or (self.query.collapse and clusters[one] in seen):
                continue
            seen.add(clusters[one])
            kept.append((one, score))
        return kept
