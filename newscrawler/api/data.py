"""What the routes answer, gathered from the store, the frontier and the
registry. No HTML, no HTTP."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from newscrawler.api.deps import Deps, SiteFacts
from newscrawler.api.limits import Turns
from newscrawler.api.text import from_ms
from newscrawler.fleet.freshness import DAYS, STAGES, figures
from newscrawler.fleet.registry import RegistryUnavailable, SiteSums
from newscrawler.fleet.rows import ORDINARY, STEPS, UNREACHABLE
from newscrawler.items import FIELDS, Article, Outcome, unsure
from newscrawler.store.base import (
    ArticleStore,
    Hit,
    Query,
    QueryError,
    SearchResult,
    StoreUnavailable,
    WholeStore,
)

logger = logging.getLogger(__name__)

_IN_HIT = tuple(f.name for f in FIELDS if f.in_hit)
#: Seconds that the answer of a costly question is kept: many open pages ask the same.
KEEP_S = 2.0
#: A site that sent nothing new for this long although it is crawled is shown as quiet, seconds.
QUIET_S = 24 * 3600
#: A fetch within this many seconds: the site is being crawled now.
BUSY_S = 120
T = TypeVar("T")


class Kept:
    """Answers of the last KEEP_S seconds, by name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, tuple[float, Any]] = {}

    async def get(self, name: str, ask: Callable[[], Awaitable[T]]) -> T:
        found = self._answers.get(name)
        if found is not None and self._clock() - found[0] < KEEP_S:
            kept: T = found[1]
            return kept
        answer = await ask()
        self._answers[name] = (self._clock(), answer)
        return answer


def plain(value: Any) -> Any:
    """For JSON: times as ISO text, bytes as hex, dataclasses as objects."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    return value


def article_json(article: Article) -> dict[str, Any]:
    values: dict[str, Any] = plain(asdict(article))
    return values | {"unsure": unsure(article)}


async def copies_of(article: Article, store: ArticleStore) -> list[Article]:
    """The others of its group of near-duplicates, first published first."""
    found = await store.cluster(article.cluster) if article.cluster else []
    return [one for one in found if one.id != article.id]


def moved_to(article: Article, copies: Iterable[Article]) -> Article | None:
    """Of a gone article: the one that its site has of its text under another address."""
    own = (one for one in copies if one.site == article.site and not one.gone)
    return next(own, None) if article.gone else None


def listed_json(article: Article) -> dict[str, Any]:
    """An article as lists tell of it."""
    shown = {name: plain(getattr(article, name)) for name in _IN_HIT}
    return shown | {"unsure": unsure(article)}


def hit_json(hit: Hit) -> dict[str, Any]:
    article = hit.article
    return {
        **listed_json(article),
        "snippet": hit.snippet,
        "snippet_marks": hit.snippet_marks,
        "title_marks": hit.title_marks,
        "score": hit.score,
        "similar": hit.similar,
        "by_meaning": hit.by_meaning,
        "copies": [listed_json(copy) for copy in hit.copies],
    }


def only_by_meaning(result: SearchResult) -> bool:
    """Whether no word of the query found anything: a vector always finds something."""
    return bool(result.total and result.meaning and result.meaning.found >= result.total)


def result_json(query: Query, result: SearchResult) -> dict[str, Any]:
    return {
        "query": query.text,
        "mode": result.mode,
        "meaning": None if result.meaning is None else asdict(result.meaning),
        "page": query.page,
        "size": query.size,
        "sort": query.sort,
        "total": result.total,
        "total_is_capped": result.total_is_capped,
        "only_by_meaning": only_by_meaning(result),
        "in_a_row": result.in_a_row,
        "read_as": result.read_as,
        "notes": list(result.notes),
        "relaxed": result.relaxed,
        "corrections": result.corrections,
        "behind": result.behind,
        "took_ms": round(result.took_ms, 1),
        "hits": [hit_json(hit) for hit in result.hits],
        "facets": result.facets,
    }


def seed_json(query: Query, result: SearchResult) -> dict[str, Any]:
    content = [
        {**article_json(hit.article), "score": hit.score, "by_meaning": hit.by_meaning}
        for hit in result.hits
    ]
    return {
        "mode": result.mode,
        "meaning": None if result.meaning is None else asdict(result.meaning),
        "content": content,
        "page": query.page,
        "size": query.size,
        "total": result.total,
        "total_pages": -(-result.total // query.size),
    }


class DataReader:
    """Asks the services. What is away is said in ``problems``; nothing here raises
    for it but the store."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self.kept = Kept()
        self._searching = Turns(deps.limits)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.deps.clock(), UTC)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Of a question that costs as much as a search. Raises TooManySearches."""
        return self._searching.turn()

    async def search(self, query: Query) -> SearchResult:
        """Within the time and the number of searches that this server allows.

        :raises TooManySearches: come again in a second
        :raises SearchTimeout: narrow the query"""
        async with self._searching.turn():
            return await self.deps.store.search(replace(query, limit_s=self.deps.limits.search_s))

    async def workers(self) -> tuple[list[dict[str, Any]], str]:
        """Workers, and why they are not known ("" = they are)."""
        registry = self.deps.registry
        if registry is None:
            return [], self.deps.redis_error or "no Redis"
        try:
            return await self.kept.get("workers", registry.workers), ""
        except RegistryUnavailable as exc:
            return [], str(exc)

    async def frontier(self) -> tuple[dict[str, Any], str]:
        """Counts and the report over all domains, and why they are not known."""
        frontier = self.deps.frontier
        if frontier is None:
            return {}, self.deps.redis_error or "no Redis"

        async def ask() -> dict[str, Any]:
            counts = asdict(await frontier.counts())
            report = await frontier.report()
            return {**plain(report), "counts": counts}

        try:
            return await self.kept.get("frontier", ask), ""
        except Exception as exc:  # FrontierUnavailable, or a script that this Redis does not have
            return {}, _reason(exc)

    async def counts(self) -> tuple[dict[str, int], str]:
        frontier = self.deps.frontier
        if frontier is None:
            return {}, self.deps.redis_error or "no Redis"
        try:
            return asdict(await self.kept.get("counts", frontier.counts)), ""
        except Exception as exc:
            return {}, _reason(exc)

    async def sums(self) -> dict[str, SiteSums]:
        if self.deps.registry is None:
            return {}
        try:
            return await self.kept.get("sums", self.deps.registry.sites)
        except RegistryUnavailable:
            return {}

    async def totals(self) -> dict[str, int]:
        if self.deps.registry is None:
            return {}
        try:
            return await self.kept.get("totals", self.deps.registry.totals)
        except RegistryUnavailable:
            return {}

    async def store_stats(self) -> tuple[dict[str, Any], str]:
        try:
            return await self.kept.get("store", self.deps.store.stats), ""
        except StoreUnavailable as exc:
            return {}, str(exc)

    async def status(self) -> dict[str, Any]:
        """The crawl's present state, in one small object."""
        stored, store_error = await self.store_stats()
        counts, frontier_error = await self.counts()
        workers, workers_error = await self.workers()
        alive = [w for w in workers if w["alive"]]
        return {
            "articles": stored.get("articles"),
            "newest": stored.get("newest"),
            "workers": len(alive),
            "silent_workers": len(workers) - len(alive),
            "pages": sum(w["pages"] for w in alive),
            "pages_per_s": round(sum(w["pages_per_s"] for w in alive), 1),
            "in_flight": sum(w["in_flight"] for w in alive),
            "queued": counts.get("queued"),
            "leased": counts.get("leased"),
            "waiting": counts.get("waiting"),
            "problems": [p for p in (store_error, frontier_error or workers_error) if p],
        }

    async def sites(self) -> list[dict[str, Any]]:
        """A row per site that is configured or was crawled: those with articles first."""
        sums = await self.sums()
        report, _ = await self.frontier()
        places = _places(report.get("domains", []))
        try:
            stored = (await self.kept.get("facets", lambda: self.deps.store.facets(Query()))).get(
                "site", {}
            )
        except StoreUnavailable:
            stored = {}
        known = self.deps.sites
        now_ms = int(self.deps.clock() * 1000)
        rows = []
        for site in sorted({*known, *sums, *stored}):
            facts = known.get(site) or SiteFacts(id=site, name=site)
            rows.append(
                _site_row(
                    facts, sums.get(site) or SiteSums(site), stored.get(site, 0), places, now_ms
                )
            )
        rows.sort(key=lambda row: (-row["articles"], -row["pages"], row["id"]))
        return rows


def whole_store(reader: DataReader) -> WholeStore:
    """Raises QueryError where the store is one of another project that cannot do it."""
    if not hasattr(reader.deps.store, "portion"):
        raise QueryError("this store cannot give all matches of a query")
    return cast(WholeStore, reader.deps.store)


def _reason(exc: Exception) -> str:
    logger.warning("Frontier could not be read error=%s", exc)
    return f"the frontier does not answer: {exc or type(exc).__name__}"


def _places(domains: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The frontier's domains by site: sums, and the first note."""
    found: dict[str, dict[str, Any]] = {}
    for row in domains:
        place = found.setdefault(
            row.get("site") or row["domain"], {"queued": 0, "leased": 0, "delay_ms": 0, "note": ""}
        )
        place["queued"] += row.get("queued", 0)
        place["leased"] += row.get("leased", 0)
        place["delay_ms"] = max(place["delay_ms"], row.get("delay_ms", 0))
        place["note"] = place["note"] or row.get("note", "")
    return found


def _site_row(
    facts: SiteFacts, sums: SiteSums, stored: int, places: dict[str, dict[str, Any]], now_ms: int
) -> dict[str, Any]:
    place = places.get(facts.id)
    errors = {
        n: c
        for n, c in sums.outcomes.items()
        if n.partition("(")[0] not in ORDINARY and n not in STEPS
    }
    state, kind = _state(facts, sums, place, now_ms)
    return {
        "id": facts.id,
        "name": facts.name,
        "hosts": list(facts.hosts),
        "cls": facts.cls,
        "enabled": facts.enabled,
        # Facets look at the newest 10,000 articles only; the fleet's counters know
        # all it ever stored.
        "articles": max(stored, sums.new),
        "updated": sums.updated,
        "pages": sums.pages,
        "last_fetch": plain(from_ms(sums.last_fetch_ms)),
        "last_new": plain(from_ms(sums.last_new_ms)),
        "freshness": freshness_json(sums),
        "errors": errors,
        "error_count": sum(errors.values()),
        "outcomes": sums.outcomes,
        "last_error": sums.last_error,
        "queued": place["queued"] if place else None,
        "leased": place["leased"] if place else None,
        "delay_s": place["delay_ms"] / 1000 if place else None,
        "state": state,
        "state_kind": kind,
    }


def freshness_json(sums: SiteSums) -> dict[str, Any]:
    """From publication to the search over the last days, whole and by stage; seconds,
    None of no article."""
    stages = {stage: asdict(figures(sums.lags, stage)) for stage in STAGES}
    return {"days": DAYS, **stages.pop("total"), "stages": stages}


def _unreachable(last_error: str) -> str:
    reason = last_error.partition("(")[2].rstrip(")")
    return next((text for word, text in UNREACHABLE.items() if word in reason), "no answer")


def _state(
    facts: SiteFacts, sums: SiteSums, place: dict[str, Any] | None, now_ms: int
) -> tuple[str, str]:
    """A site's state in words, and whether it is good, idle or bad."""
    if not facts.enabled:
        return "disabled", "idle"
    if sums.pages and not sums.last_fetch_ms:
        return _unreachable(sums.last_error), "bad"
    if place and place["note"]:
        return place["note"], "bad"
    if sums.last_error.startswith(Outcome.CHALLENGE) and sums.last_error_ms >= sums.last_fetch_ms:
        return "challenge page", "bad"
    if not sums.pages:
        return "not crawled yet", "idle"
    if now_ms - sums.last_fetch_ms < BUSY_S * 1000:
        return "crawling", "good"
    if now_ms - max(sums.last_new_ms, 1) > QUIET_S * 1000:
        return "nothing new for a day", "idle"
    return "waiting for its next visit", "good"
