"""Articles in Elasticsearch 9, for a fleet. store.elasticsearch.connection has the connection,
store.elasticsearch.query the JSON.

Documents carry external versions made from the article's version: a write that comes late
or twice is refused by the server and is no error. A gone article stays as a document
without words. The cluster of a document is a label taken from its nearest earlier copy;
alone it is a label of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from newscrawler.items import Article
from newscrawler.store import canonical_duplicates, codec, highlight, near_duplicates, newest
from newscrawler.store import cursor as cursors
from newscrawler.store.base import (
    COUNT_CAP,
    LEAST_RELATED,
    MOST_COPIES,
    RELATED_LOOKED_AT,
    Headline,
    Hit,
    Kept,
    Portion,
    PutResult,
    PutStatus,
    Query,
    QueryError,
    SearchResult,
    SearchTimeout,
    StoreRefused,
    StoreUnavailable,
    VersionState,
)
from newscrawler.store.elasticsearch import query as dsl
from newscrawler.store.elasticsearch import whole
from newscrawler.store.elasticsearch.connection import Server
from newscrawler.store.elasticsearch.outbox import ElasticOutbox, brought_along
from newscrawler.store.elasticsearch.reindex import Reindexed, Reindexing
from newscrawler.store.labels import matched_values
from newscrawler.store.ladder import Ask, Count, Counts, Frequencies, Near, Scores, ladder
from newscrawler.store.query_language import Plan, parse
from newscrawler.web.urls import canonicalize

if TYPE_CHECKING:
    from newscrawler.store.elasticsearch.vectors import Meaning
    from newscrawler.store.semantic.embedder import Embedder

_VERIFIED = 4
_SCAN = 200
#: In a cursor; how long the server keeps what a cursor names.
_KIND, _KEEP_ALIVE = "elasticsearch", "5m"
_FIELDS = ["data", "version", "gone", "cluster"]


@dataclass(slots=True)
class _Stored:
    """What is known of a stored article before it is written."""

    version: int
    gone: bool
    digest: str
    events: dict[str, Any]  # what its next state tells of them


@dataclass(slots=True)
class _Write:
    article: Article
    digest: bytes
    doc: dict[str, Any]
    shingles: np.ndarray
    bands: list[int]
    status: PutStatus
    version: int
    old: _Stored | None = None


@dataclass(slots=True)
class _Outcome:
    results: dict[str, PutResult] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    conflicts: list[Article] = field(default_factory=list)


class ElasticStore:
    """An ArticleStore."""

    def __init__(
        self,
        uri: str,
        *,
        index: str = "articles",
        api_key: str | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        embedder: Embedder | str = "no model is given",
        query_s: float = 0.15,
        ca_file: str = "",
    ) -> None:
        """``embedder``: for the search by meaning, or why there is none; a search waits
        ``query_s`` for it. ``ca_file``: PEM file of the authorities that are trusted, "" =
        certifi's; raises ValueError where it is none."""
        self._server = Server(uri, index, api_key, ca_file)
        self._no_meaning = embedder if isinstance(embedder, str) else ""
        self._meaning: Meaning | None = None
        if not isinstance(embedder, str):
            from newscrawler.store.elasticsearch.vectors import Meaning

            self._meaning = Meaning(self._server, embedder, now_ms, query_s)
        self._index, self._old_versions = self._server.index, self._server.old_versions
        self._now_ms = now_ms
        self._outbox: ElasticOutbox | None = None

    @property
    def outbox(self) -> ElasticOutbox:
        """Its events, for the process that tells them."""
        if self._outbox is None:
            self._outbox = ElasticOutbox(self._server, self._now_ms)
        return self._outbox

    async def open(self) -> None:
        await self._server.open()

    async def close(self) -> None:
        if self._meaning is not None:
            await self._meaning.close()
        await self._server.close()

    async def follow(self, *, for_queries: bool = False) -> None:
        """See LocalStore.follow."""
        if self._meaning is not None:
            await self._meaning.follow(for_queries=for_queries)

    async def refresh(self) -> None:
        await self._server.refresh()
        if self._meaning is not None:
            await self._meaning.vectors.make()
            await self._server.refresh(self._meaning.vectors.index)

    async def reindex(self, say: Callable[[str], None] = lambda _: None) -> Reindexed:
        """A new index of this program's schema behind the alias, while others read and write.
        The old one stays beside it. See store.elasticsearch.reindex."""
        return await Reindexing(self._server, self._now_ms, say).run()

    # ------------------------------------------------------------------ put
    async def put(self, articles: Sequence[Article]) -> list[PutResult]:
        """:raises StoreRefused: articles that the server takes never; the others are stored
        :raises StoreUnavailable: the server is away, or others write the same articles all the time
        """
        outcome = _Outcome()
        batch = []
        for article in map(codec.cleaned, articles):
            why = codec.refusal(article)
            if why:
                outcome.refused[article.id] = why
            else:
                batch.append(article)
        order = [a.id for a in batch]
        # An article that is twice in a batch is written in two rounds; so is one that another
        # worker wrote between our look and our write.
        for _ in range(4):
            now, later = _first_of_each(batch)
            await self._put_round(now, outcome)
            batch = outcome.conflicts + later
            outcome.conflicts = []
            if not batch:
                break
        else:
            raise StoreUnavailable(
                f"{self._server.name}: others write the same articles all the time, e.g."
                f" {batch[0].url}"
            )
        results = [outcome.results[i] for i in order if i in outcome.results]
        if outcome.refused:
            raise StoreRefused(list(outcome.refused), next(iter(outcome.refused.values())), results)
        return results

    async def _put_round(self, articles: list[Article], outcome: _Outcome) -> None:
        stored = await self._look([a.id for a in articles])
        writes = []
        for article in articles:
            old, digest = stored.get(article.id), codec.digest(article)
            if old is not None and old.digest == digest.hex() and not old.gone:
                outcome.results.setdefault(
                    article.id, PutResult(article.id, "unchanged", old.version)
                )
                continue
            hashes = near_duplicates.shingles_of(article.content)
            bands = near_duplicates.candidate_keys(hashes)
            version = old.version + 1 if old else 1
            doc = dsl.document(
                article, digest=digest, version=version, bands=bands, now_ms=self._now_ms()
            )
            if old is not None:
                doc |= old.events
            writes.append(
                _Write(
                    article, digest, doc, hashes, bands, "updated" if old else "new", version, old
                )
            )
        writes = await self._without_duplicates(writes, outcome)
        if not writes:
            return
        await self._label(writes)
        await self._keep_old([w for w in writes if w.old is not None])
        operations: list[dict[str, Any]] = []
        for w in writes:
            number = dsl.external_version(w.version, gone=False)
            operations += [
                {"index": {"_id": w.article.id, "version": number, "version_type": "external"}},
                w.doc,
            ]
        answers = await self._server.bulk(self._index, operations)
        for w, (status, reason) in zip(writes, answers, strict=True):
            if status < 300:
                outcome.results[w.article.id] = PutResult(w.article.id, w.status, w.version)
            elif status == 409:
                outcome.conflicts.append(w.article)
            else:
                outcome.refused[w.article.id] = reason

    async def _look(self, ids: list[str]) -> dict[str, _Stored]:
        fields = ["version", "gone", "digest", "stored", "before"]
        found = await self._server.look(self._index, ids, fields)
        return {
            d["_id"]: _Stored(
                d["_source"]["version"],
                d["_source"]["gone"],
                d["_source"]["digest"],
                brought_along(d),
            )
            for d in found
        }

    async def _without_duplicates(self, writes: list[_Write], outcome: _Outcome) -> list[_Write]:
        """Those that are no other address of an article that is stored (and to be
        found) or in this batch."""
        new = [w.article for w in writes if w.old is None]
        hits = (await self._server.search(dsl.named(new)))["hits"]["hits"] if new else []
        kept: list[_Write] = []
        for w in writes:
            duplicate = (
                None
                if w.old
                else self._duplicate(
                    w, [*hits, *({"_id": k.article.id, "_source": k.doc} for k in kept)]
                )
            )
            if duplicate is None:
                kept.append(w)
            else:
                outcome.results[w.article.id] = duplicate
        return kept

    @staticmethod
    def _duplicate(new: _Write, stored: Sequence[dict[str, Any]]) -> PutResult | None:
        own, other = new.article.url, new.doc.get("canonical")
        for hit in stored:
            source = hit["_source"]
            is_named = source.get("canonical") in {own, other or own} or source["url"] == other
            if (
                not is_named
                or hit["_id"] == new.article.id
                or source["data"]["site"] != new.article.site
            ):
                continue
            if canonical_duplicates.is_alike(new.article.content, new.shingles, _content(source)):
                return PutResult(new.article.id, "duplicate", source["version"], hit["_id"])
        return None

    async def _keep_old(self, writes: list[_Write]) -> None:
        """The versions that are about to be replaced, into their own index. Doing it
        twice changes nothing."""
        operations: list[dict[str, Any]] = []
        for doc in await self._server.look(
            self._index, [w.article.id for w in writes], ["data", "version"]
        ):
            old = doc["_source"]
            operations += [
                {"index": {"_id": f"{doc['_id']}@{old['version']}"}},
                {"id": doc["_id"], **old},
            ]
        await self._server.bulk(self._old_versions, operations)

    async def _label(self, writes: list[_Write]) -> None:
        """Sets the cluster of each document: the label of a near-duplicate that is
        stored or in this batch."""
        asked = [w for w in writes if w.bands]
        lines: list[dict[str, Any]] = []
        for w in asked:
            lines += [{}, dsl.near_duplicates(w.bands, w.article.id, _VERIFIED)]
        answers: dict[str, list[Any]] = {}
        if lines:
            got = await self._server.ask(lambda es: es.msearch(index=self._index, searches=lines))
            for w, answer in zip(asked, got["responses"], strict=True):
                answers[w.article.id] = answer["hits"]["hits"] if "hits" in answer else []
        stories = [near_duplicates.Story.of(w.article.content, w.shingles) for w in writes]
        for i, w in enumerate(writes):
            stored = [
                (h["_source"]["cluster"], near_duplicates.Story.of(_content(h["_source"])))
                for h in answers.get(w.article.id, ())
            ]
            here = [
                (b.doc["cluster"], story)
                for b, story in zip(writes[:i], stories, strict=False)
                if not set(w.bands).isdisjoint(b.bands)
            ]
            same = (c for c, other in stored + here if near_duplicates.is_same(stories[i], other))
            label = next(same, f"{w.article.id}@{w.version}")
            w.doc["cluster"] = label

    async def mark_gone(self, ids: Sequence[str]) -> int:
        operations: list[dict[str, Any]] = []
        for doc in await self._server.look(self._index, list(dict.fromkeys(ids))):
            if not doc["_source"]["gone"]:
                body = dsl.readable(doc["_source"]) | {
                    "gone": True,
                    "stored": self._now_ms(),
                    **brought_along(doc),
                }
                number = dsl.external_version(body["version"], gone=True)
                operations += [
                    {"index": {"_id": doc["_id"], "version": number, "version_type": "external"}},
                    body,
                ]
        answers = await self._server.bulk(self._index, operations)
        return sum(status < 300 for status, _ in answers)

    # ------------------------------------------------------------------ single articles
    async def get(self, article_id: str) -> Article | None:
        docs = await self._server.look(self._index, [article_id], _FIELDS)
        return (await self._articles(docs))[0][0] if docs else None

    async def find_url(self, url: str) -> Article | None:
        urls = list(dict.fromkeys(u for u in (url, canonicalize(url)) if u))
        wanted = [
            {"constant_score": {"filter": {"term": {name: u}}, "boost": 10.0 - i}}
            for i, (u, name) in enumerate((u, name) for name in ("url", "canonical") for u in urls)
        ]
        order = ["_score", {"gone": "asc"}, {"stored": "desc"}]
        found = await self._server.search(
            {
                "size": 1,
                "_source": _FIELDS,
                "query": {"dis_max": {"queries": wanted}},
                "sort": order,
            }
        )
        hits = found["hits"]["hits"]
        return (await self._articles(hits))[0][0] if hits else None

    async def versions(self, article_id: str) -> list[Article]:
        current = await self.get(article_id)
        if current is None:
            return []
        await self._server.ask(lambda es: es.indices.refresh(index=self._old_versions))
        body = {"size": 1_000, "query": {"term": {"id": article_id}}, "sort": [{"version": "asc"}]}
        found = await self._server.ask(lambda es: es.search(index=self._old_versions, body=body))
        older = [h["_source"] for h in found["hits"]["hits"]]
        return [
            codec.from_dict(o["data"], version=o["version"], cluster=current.cluster, gone=False)
            for o in older
            if o["version"] < current.version
        ] + [current]

    async def cluster(self, cluster_id: str) -> list[Article]:
        found = await self._server.look(self._index, [cluster_id], ["cluster"])
        if not found:
            return []
        label = found[0]["_source"]["cluster"]
        body = {"size": 100, "_source": _FIELDS, "query": {"term": {"cluster": label}}}
        hits = (await self._server.search(body | {"sort": [{"at": "asc"}, {"stored": "asc"}]}))[
            "hits"
        ]["hits"]
        return [article for article, _ in await self._articles(hits)] if len(hits) > 1 else []

    async def _articles(self, docs: Sequence[dict[str, Any]]) -> list[tuple[Article, int]]:
        """Articles of hits, each with how many others are in its cluster."""
        labels = list({d["_source"]["cluster"] for d in docs})
        found = await self._server.search(dsl.clusters_body(labels)) if labels else None
        many = {b["key"]: b for b in found["aggregations"]["of"]["buckets"]} if found else {}
        made = []
        for doc in docs:
            source = doc["_source"]
            bucket = many.get(source["cluster"])
            canonical = bucket["first"]["hits"]["hits"][0]["_id"] if bucket else None
            fields = source.get("data") or {}
            article = codec.from_dict(
                fields, version=source["version"], cluster=canonical, gone=source["gone"]
            )
            made.append((article, bucket["doc_count"] - 1 if bucket else 0))
        return made

    # ------------------------------------------------------------------ search
    async def related(self, article_id: str, size: int = 6) -> list[Article]:
        from newscrawler.store.semantic.meaning import NoVectors

        if self._meaning is None:
            return []
        try:
            near = await self._meaning.near(article_id, RELATED_LOOKED_AT)
        except NoVectors:
            return []
        clusters = await self.clusters([article_id, *(one for one, _ in near)])
        seen = {clusters.get(article_id)}
        chosen: list[str] = []
        for one, score in near:
            if score < LEAST_RELATED or len(chosen) == size:
                break
            if one in clusters and clusters[one] not in seen:
                seen.add(clusters[one])
                chosen.append(one)
        docs = {d["_id"]: d for d in await self._server.look(self._index, chosen, _FIELDS)}
        found = await self._articles([docs[one] for one in chosen if one in docs])
        return [article for article, _ in found]

    async def search(self, query: Query) -> SearchResult:
        """:raises QueryError: a query that cannot be asked
        :raises SearchTimeout: it took longer than ``limit_s``
        """
        first = parse(query)
        if query.mode == "semantic" and self._meaning is None:
            raise QueryError(f"mode=semantic: there is no search by meaning: {self._no_meaning}")
        if query.limit_s is None:
            return await self._search(first, query)
        try:
            # The server stops by itself, see ``Server.search``; this is for one that
            # does not answer.
            async with asyncio.timeout(query.limit_s):
                return await self._search(first, query)
        except TimeoutError as exc:
            raise SearchTimeout(query.limit_s) from exc

    async def _search(self, first: Plan, query: Query) -> SearchResult:
        from newscrawler.store.elasticsearch.hybrid import Hybrid
        from newscrawler.store.semantic.meaning import NoVectors

        started = time.perf_counter()
        plan = first if query.strict else await self._settle(first, query.limit_s)
        if self._meaning is None or query.mode == "keyword":
            result = await self.page(plan, query, first)
        else:
            words = _ByWords(self, first)
            try:
                result = await Hybrid(words, self._meaning, query, first).page(plan)
            except NoVectors as exc:  # only of a search by meaning alone
                raise StoreUnavailable(f"search by meaning: {exc}") from exc
        result.took_ms = (time.perf_counter() - started) * 1000
        return result

    async def page(self, plan: Plan, query: Query, first: Plan) -> SearchResult:
        """Of a search by words. ``first``: the plan as typed, of which ``plan`` was made."""
        typed = _typed(plan, first)
        by_date = query.sort == "date" or plan.is_filter_only
        new_gains = query.sort == "best" and not by_date
        body = dsl.search_body(plan, typed, query) | {"_source": _FIELDS}
        moved: dict[int, str] = {}
        if new_gains and not (typed or query.collapse) and newest.is_about_a_subject(plan):
            moved = await self._moved(plan)
            dsl.around(body, moved, query)
        found = await self._server.search(body, query.limit_s)
        total = found["hits"]["total"]
        result = SearchResult(
            [],
            total["value"] + len(moved),
            total["relation"] == "gte",
            relaxed=plan.relaxed,
            corrections=dict(plan.corrections),
            read_as=plan.read_as,
            notes=plan.notes,
        )
        if query.collapse and not result.total_is_capped:
            result.total = min(COUNT_CAP, found["aggregations"]["clusters"]["value"])
        if plan.row is not None and not query.collapse:
            result.in_a_row = found["aggregations"]["row"]["doc_count"]
        hits = await self._with_moved(found["hits"]["hits"], moved, query)
        result.hits = await self._hits([_first_published(hit) for hit in hits], plan)
        for hit in result.hits if by_date else ():
            hit.score = 0.0
        if query.facets:
            result.facets = dsl.facets_of(found["aggregations"], query.zone)
        return result

    async def _hits(self, groups: Sequence[list[dict[str, Any]]], plan: Plan) -> list[Hit]:
        """Of documents, each with its copies behind it."""
        copies = [await self._articles(group[1:]) for group in groups]
        firsts = [group[0] for group in groups]
        made = []
        for doc, (article, others), below in zip(
            firsts, await self._articles(firsts), copies, strict=True
        ):
            text, marks = highlight.snippet(article.content, plan)
            made.append(
                Hit(
                    article,
                    round(doc.get("_score") or 0.0, 4),
                    text,
                    marks,
                    highlight.title_marks(article.title, plan),
                    others,
                    copies=[copy for copy, _ in below],
                )
            )
        return made

    # ------------------------------------------------------------------ for the search by meaning
    async def first_ids(self, plan: Plan, query: Query, first: Plan, many: int) -> list[str]:
        """Of the first so many hits by words."""
        body = dsl.search_body(plan, _typed(plan, first), replace(query, page=0, facets=False))
        body |= {"from": 0, "size": many, "_source": False, "aggs": {}}
        found = await self._server.search(body, query.limit_s)
        return [hit["_id"] for hit in found["hits"]["hits"]]

    async def among(self, plan: Plan, ids: Sequence[str]) -> set[str]:
        """Those that match."""
        if not ids:
            return set()
        found = await self._server.search(dsl.among_body(plan, ids))
        return {hit["_id"] for hit in found["hits"]["hits"]}

    async def clusters(self, ids: Sequence[str]) -> dict[str, str]:
        """Label of the near-duplicates of each of these articles that is not gone."""
        docs = await self._server.look(self._index, list(ids), ["cluster", "gone"])
        return {d["_id"]: d["_source"]["cluster"] for d in docs if not d["_source"].get("gone")}

    async def members(self, plan: Plan, labels: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """Of each cluster the articles that match, the first published first."""
        if not labels:
            return {}
        body = dsl.members_body(plan, labels, min(COUNT_CAP, 2 * MOST_COPIES * len(labels)))
        found: dict[str, list[dict[str, Any]]] = {}
        for hit in (await self._server.search(body))["hits"]["hits"]:
            found.setdefault(hit["_source"]["cluster"], []).append(hit)
        return found

    async def hits_of(
        self,
        scored: Sequence[tuple[str, float]],
        plan: Plan,
        only_near: set[str],
        collapse: bool,
    ) -> list[Hit]:
        """Articles by their ids, as hits. One that went meanwhile is left out."""
        looked = await self._server.look(self._index, [one for one, _ in scored], _FIELDS)
        docs = {d["_id"]: d for d in looked if not d["_source"]["gone"]}
        labels = {d["_source"]["cluster"] for d in docs.values()}
        members = await self.members(plan, sorted(labels)) if collapse else {}
        groups, scores, near = [], [], []
        for one, score in scored:
            if one in docs:
                group = members.get(docs[one]["_source"]["cluster"]) or [docs[one]]
                groups.append(group)
                scores.append(score)
                near.append(one in only_near)
        hits = await self._hits(groups, plan)
        for hit, score, is_near in zip(hits, scores, near, strict=True):
            hit.score, hit.by_meaning = round(score, 4), is_near
        return hits

    async def frequencies(self, plan: Plan) -> dict[str, int]:
        """Of the words of a plan: how many articles have each, see dsl.word_frequencies_body."""
        words = sorted({word for term in plan.terms for word in term.folded})
        if not words or any(term.has_diacritics for term in plan.terms):
            return {}
        found = await self._server.search(dsl.word_frequencies_body(words))
        return {
            key: of["doc_count"] for key, of in found["aggregations"]["with"]["buckets"].items()
        }

    async def coverage(self, words: Sequence[str], ids: Sequence[str]) -> dict[str, float]:
        """See fulltext.search.Search.coverage."""
        if not words or not ids:
            return {}
        found = await self._server.search(dsl.coverage_body(words, list(dict.fromkeys(ids))))
        return dsl.coverage_of(words, found)

    async def _moved(self, plan: Plan) -> dict[int, str]:
        """Place -> id of the newest articles about a subject that stand further down."""
        best, latest = (
            [hit["_id"] for hit in found["hits"]["hits"]]
            for found in await self._searches(dsl.first_bodies(plan))
        )
        return newest.moved(best, latest) if len(best) == newest.FIRST_PAGE else {}

    async def _with_moved(
        self, hits: list[dict[str, Any]], moved: dict[int, str], query: Query
    ) -> list[dict[str, Any]]:
        """The hits of a page with those that stand at fixed places."""
        start = query.page * query.size
        here = {place: one for place, one in moved.items() if start <= place < start + query.size}
        if not here:
            return hits[: query.size]
        docs = await self._server.look(self._index, list(here.values()), _FIELDS)
        by_id = {doc["_id"]: doc for doc in docs}
        page = list(hits)
        for place, one in sorted(here.items()):
            if one in by_id:
                at = min(place - start, len(page))
                score = page[at - 1].get("_score") if at else None
                page.insert(at, by_id[one] | {"_score": score})
        return page[: query.size]

    async def facets(self, query: Query) -> dict[str, dict[str, int]]:
        plan = await self._settle(parse(query))
        found = await self._server.search(
            {"size": 0, "query": dsl.matching(plan), "aggs": dsl.facets(query.zone)}
        )
        return dsl.facets_of(found["aggregations"], query.zone)

    async def _settle(self, plan: Plan, limit_s: float | None = None) -> Plan:
        steps = ladder(plan)
        answer: object = None
        try:
            while True:
                answer = await self._answer(steps.send(answer), limit_s)
        except StopIteration as done:
            settled: Plan = done.value
            return settled

    async def _answer(self, ask: Ask, limit_s: float | None) -> object:
        if isinstance(ask, Count):
            body = dsl.count_body(ask.plan, ask.enough)
            return (await self._server.search(body, limit_s))["hits"]["total"]["value"]
        if isinstance(ask, Frequencies):
            found = await self._server.search(dsl.frequencies_body(ask.terms), limit_s)
            every = max(1, found["hits"]["total"]["value"])
            counts = found["aggregations"]["with"]["buckets"]
            return {t: counts[str(i)]["doc_count"] / every for i, t in enumerate(ask.terms)}
        if isinstance(ask, Near):
            found = await self._server.search(dsl.near_body(ask.words, ask.most), limit_s)
            return dsl.near_of(ask.words, found["suggest"], ask.most)
        if isinstance(ask, Counts):
            bodies = [dsl.count_body(plan, COUNT_CAP) for plan in ask.plans]
            return [found["hits"]["total"]["value"] for found in await self._searches(bodies)]
        assert isinstance(ask, Scores)
        bodies = [dsl.best_body(plan) for plan in ask.plans]
        return [found["hits"]["max_score"] or 0.0 for found in await self._searches(bodies)]

    async def _searches(self, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Several in one request."""
        lines: list[dict[str, Any]] = [part for body in bodies for part in ({}, body)]
        got = await self._server.ask(lambda es: es.msearch(index=self._index, searches=lines))
        for answer in got["responses"]:
            if "error" in answer:
                raise StoreUnavailable(
                    f"{self._server.name}: a search failed: {answer['error'].get('reason')}"
                )
        return list(got["responses"])

    async def stats(self) -> dict[str, int | str | None]:
        found = await self._server.search(
            {
                "size": 0,
                "track_total_hits": True,
                "aggs": {
                    "gone": {"filter": {"term": {"gone": True}}},
                    "newest": {
                        "filter": {"term": {"gone": False}},
                        "aggs": {"at": {"max": {"field": "at"}}},
                    },
                    "clusters": {"terms": {"field": "cluster", "min_doc_count": 2, "size": 10_000}},
                },
            }
        )
        every, sums = found["hits"]["total"]["value"], found["aggregations"]
        old = await self._server.ask(lambda es: es.count(index=self._old_versions))
        both = [self._index, self._old_versions]
        size = await self._server.ask(lambda es: es.indices.stats(index=both, metric="store"))
        newest = sums["newest"]["at"]["value"]
        meaning = {} if self._meaning is None else await self._meaning.state()
        return {
            "kind": "elasticsearch",
            "articles": every - sums["gone"]["doc_count"],
            "gone": sums["gone"]["doc_count"],
            "versions": every + old["count"],
            "clusters": len(sums["clusters"]["buckets"]),
            "bytes": size["_all"]["primaries"]["store"]["size_in_bytes"],
            "newest": (
                None if newest is None else datetime.fromtimestamp(newest / 1000, UTC).isoformat()
            ),
            **meaning,
        }

    async def nodes(self) -> list[dict[str, Any]]:
        """A row for each node of the cluster: name, version, and its load as texts of numbers."""
        load = "heap.percent,cpu,load_1m,disk.used_percent"
        found: Any = await self._server.ask(
            lambda es: es.cat.nodes(format="json", h=f"name,version,{load}")
        )
        return [dict(row) for row in found]

    async def portion(self, query: Query, cursor: str = "", size: int = 100) -> Portion:
        """Of a view of the index that the server keeps for some minutes after each portion.

        :raises QueryError: the cursor is not one of this search
        """
        if cursor:
            plan, place, total = cursors.read(_KIND, cursor)
            if len(place) != 2 or not isinstance(place[0], str):
                raise QueryError("cursor: not one of this search; begin again without it")
        else:
            first = parse(query)
            _refuse_meaning(query)
            plan = await self._settle(first, query.limit_s)
            view = await self._server.ask(
                lambda es: es.open_point_in_time(index=self._index, keep_alive=_KEEP_ALIVE)
            )
            place, total = [view["id"], None], -1
        body: dict[str, Any] = {
            "size": size,
            "_source": _FIELDS,
            "query": dsl.matching(plan),
            "sort": [{"_shard_doc": "asc"}],
            "pit": {"id": place[0], "keep_alive": _KEEP_ALIVE},
            "track_total_hits": COUNT_CAP if total < 0 else False,
        }
        if place[1] is not None:
            body["search_after"] = place[1]
        found = await self._of_view(body)
        hits = found["hits"]["hits"]
        if total < 0:
            total = found["hits"]["total"]["value"]
        more = ""
        if len(hits) == size:
            more = cursors.written(_KIND, plan, [found["pit_id"], hits[-1]["sort"]], total)
        else:
            with suppress(StoreUnavailable):  # it ends by itself
                await self._server.ask(lambda es: es.close_point_in_time(id=found["pit_id"]))
        articles = [article for article, _ in await self._articles(hits)]
        return Portion(articles, more, total, plan.relaxed, plan.read_as)

    async def _of_view(self, body: dict[str, Any]) -> Any:
        try:
            return await self._server.found(body)
        except StoreUnavailable as exc:
            if getattr(exc.__cause__, "status_code", 0) in (400, 404):
                raise QueryError(
                    "cursor: the server does not know it any more; begin again without it"
                ) from exc
            raise

    async def values(self, query: Query, key: str, within: str = "") -> dict[str, int]:
        first = parse(query)
        _refuse_meaning(query)
        plan = await self._settle(first, query.limit_s)
        found = await self._server.search(dsl.values_body(plan, key), query.limit_s)
        buckets = found["aggregations"][key]["buckets"]
        return matched_values(((b["key"], b["doc_count"]) for b in buckets), within)

    async def days(self, query: Query) -> dict[str, dict[str, int]]:
        first = parse(query)
        _refuse_meaning(query)
        plan = await self._settle(first, query.limit_s)
        by_day = dsl.facets(query.zone)["day"] | {"aggs": {"site": dsl.facets(query.zone)["site"]}}
        found = await self._server.search(
            {"size": 0, "query": dsl.matching(plan), "aggs": {"day": by_day}}, query.limit_s
        )
        days = {
            datetime.fromtimestamp(day["key"] / 1000, query.zone).date().isoformat(): {
                of["key"]: of["doc_count"] for of in day["site"]["buckets"]
            }
            for day in found["aggregations"]["day"]["buckets"]
        }
        return dict(sorted(days.items()))

    def walk(self) -> AsyncIterator[Kept]:
        return whole.walk(self._server)

    async def purge(self, ids: Sequence[str]) -> int:
        letters = [x for x in await self.outbox.dead_letters() if x.article_id in set(ids)]
        await self.outbox.forget(letters)
        return await whole.purge(self._server, ids)

    async def prune_versions(self, before: datetime, *, dry_run: bool = False) -> int:
        return await whole.prune_versions(self._server, before, dry_run)

    async def scrub(self, *, rewrite: bool = False) -> list[str]:
        """``rewrite`` changes nothing: the server's files are not looked into."""
        return await whole.scrub(self._server)

    async def states(self, ids: Sequence[str]) -> dict[str, VersionState]:
        return await whole.states(self._server, ids)

    async def headlines(self, after: datetime, before: datetime) -> list[Headline]:
        return await whole.headlines(self._server, after, before)

    async def inspect(self) -> list[str]:
        lines = await whole.inspect(self._server)
        if self._meaning is not None:
            await self.refresh()
            state = await self.stats()
            stored, made = int(state["articles"] or 0), int(state["vectors"] or 0)
            if made < stored:
                lines.append(f"{stored - made:,} of {stored:,} articles have no vector yet")
            elif made > stored:
                lines.append(f"{made - stored:,} vectors belong to no article")
        return lines

    async def scan(self, since: datetime | None = None) -> AsyncIterator[Article]:
        await self.refresh()
        view = await self._server.ask(
            lambda es: es.open_point_in_time(index=self._index, keep_alive="5m")
        )
        conditions: list[dict[str, Any]] = [{"term": {"gone": False}}]
        if since is not None:
            conditions.append({"range": {"stored": {"gte": codec.ms(since)}}})
        body: dict[str, Any] = {
            "size": _SCAN,
            "_source": _FIELDS,
            "query": {"bool": {"filter": conditions}},
            "sort": [{"_shard_doc": "asc"}],
            "pit": {"id": view["id"], "keep_alive": "5m"},
        }
        try:
            while True:
                hits = await self._server.hits(body)
                if not hits:
                    return
                for article, _ in await self._articles(hits):
                    yield article
                body["search_after"] = hits[-1]["sort"]
        finally:
            await self._server.ask(lambda es: es.close_point_in_time(id=view["id"]))


class _ByWords:
    """See hybrid.Words. ``first``: the query as typed."""

    def __init__(self, store: ElasticStore, first: Plan) -> None:
        self._store, self._first = store, first
        self.among, self.clusters = store.among, store.clusters
        self.hits, self.coverage = store.hits_of, store.coverage

    async def page(self, plan: Plan, query: Query) -> SearchResult:
        return await self._store.page(plan, query, self._first)

    async def ids(self, plan: Plan, query: Query, many: int) -> list[str]:
        return await self._store.first_ids(plan, query, self._first, many)

    async def matching_clusters(self, plan: Plan, labels: set[str]) -> set[str]:
        return set(await self._store.members(plan, sorted(labels)))

    async def frequency(self, plan: Plan) -> Callable[[str, bool], int]:
        found = await self._store.frequencies(plan)
        return lambda word, exact: found.get(("e" if exact else "f") + word, 0)


def _typed(plan: Plan, first: Plan) -> Plan | None:
    """The plan as typed, where its matches come before those of ``plan``."""
    return first if first.is_exact and not plan.is_exact and not plan.relaxed else None


def _refuse_meaning(query: Query) -> None:
    if query.mode == "semantic":
        raise QueryError("mode=semantic: everything is near in meaning; all matches are of words")


def _content(source: dict[str, Any]) -> str:
    content: str = dsl.with_data({"data": {}, **source})["data"].get("content", "")
    return content


def _first_of_each(articles: list[Article]) -> tuple[list[Article], list[Article]]:
    first: dict[str, Article] = {}
    later = []
    for article in articles:
        if article.id in first:
            later.append(article)
        else:
            first[article.id] = article
    return list(first.values()), later


def _first_published(hit: dict[str, Any]) -> list[dict[str, Any]]:
    """A hit, or where copies are collapsed the matches of its cluster, first published first."""
    if "inner_hits" not in hit:
        return [hit]
    group = hit["inner_hits"]["copies"]["hits"]["hits"]
    return [
        {**one, "_source": dsl.with_data(one["_source"]), "_score": hit.get("_score")}
        for one in group
    ]
