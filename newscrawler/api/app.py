"""The HTTP API and the search page over the stores: ``create_app(deps)``. It never fetches, but for
the pictures of articles where API_PICTURES asks for them (crawl.article_pictures); what it changes
goes through the functions of the commands (newscrawler.api.operator_routes).

JSON below /api, pages for people (newscrawler.api.pages) at /, probes at /healthz and /metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi import Query as Parameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException as AnyHTTPException

from newscrawler.api import (
    bulk,
    crawl_routes,
    data,
    feeds,
    fleet_page,
    follow_page,
    graph_routes,
    listen,
    models,
    operator_routes,
    over_time,
    pages,
    problem,
    search_page,
    selector_pages,
    takedown_routes,
    websub_routes,
)
from newscrawler.api.article_picture import CompressText
from newscrawler.api.asked import ArticleId, chosen_labels
from newscrawler.api.audit import AuditUnavailable
from newscrawler.api.data import DataReader
from newscrawler.api.deps import Deps
from newscrawler.api.exposition import exposition
from newscrawler.api.guard import HEADERS, Guard
from newscrawler.api.known_parameters import refuse_unknown
from newscrawler.api.language import Looks
from newscrawler.api.limits import BodyLimit, TooManySearches
from newscrawler.api.openapi import describe
from newscrawler.api.rendering import error_page
from newscrawler.api.unchanged import Unchanged
from newscrawler.frontier.queue import FrontierError
from newscrawler.items import Article
from newscrawler.store import query_tree
from newscrawler.store.base import (
    COUNT_CAP,
    DEEPEST,
    Mode,
    Query,
    QueryError,
    QueryTooLarge,
    Sort,
    StoreUnavailable,
)
from newscrawler.store.days import FORMS, moment, zone_of

MEDIA_METRICS = "text/plain; version=0.0.4; charset=utf-8"
#: Characters of a query; longer ones are somebody's pasted page.
QUERY_MOST = 2_000

Words = Annotated[str, Parameter(min_length=1, max_length=QUERY_MOST, description="query")]
PageNumber = Annotated[int, Parameter(ge=0, le=DEEPEST, description="from 0")]
PageSize = Annotated[int, Parameter(ge=1, le=100)]


def build_query(
    q: str,
    *,
    page: int = 0,
    size: int = 20,
    sort: Sort = "best",
    site: list[str] | None = None,
    after: str | None = None,
    before: str | None = None,
    collapse: bool = False,
    labels: tuple[tuple[str, str], ...] = (),
    mode: Mode = "hybrid",
    zone: tzinfo = UTC,
) -> Query:
    """Days are those of ``zone``. Raises QueryError."""
    return Query(
        text=q.strip(),
        page=page,
        size=size,
        sort=sort,
        sites=tuple(one for name in site or [] for one in name.split(",") if one),
        after=moment("after", after, zone) if after and after.strip() else None,
        before=moment("before", before, zone) if before and before.strip() else None,
        zone=zone,
        facets=True,
        collapse=collapse,
        labels=labels,
        mode=mode,
    )


def create_app(deps: Deps) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        follow = getattr(deps.store, "follow", None)  # stores of other projects have none
        if follow is not None:
            await follow(for_queries=True)
        end = asyncio.Event()
        beside = asyncio.ensure_future(deps.beside(end)) if deps.beside is not None else None
        yield
        end.set()
        await taking_down.close()
        if beside is not None:
            await beside
        await deps.close()

    # FastAPI's /docs loads its script from a CDN; ours is a page of the package (pages.py).
    app = FastAPI(
        title="newscrawler",
        version="0.1",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        dependencies=[Depends(refuse_unknown)],
    )
    app.state.ending = asyncio.Event()  # set by the server (server.PageServer)
    reader = DataReader(deps)
    _add_errors(app)
    _add_api(app, reader)
    bulk.add_bulk(app, reader, build_query)
    over_time.add_over_time(app, reader, build_query)
    search_page.add_facets(app, reader, bulk.asked_query(reader, build_query))
    _add_probes(app, reader)
    fleet_page.add_fleet(app, reader)
    pages.add_pages(app, reader, build_query)
    feeds.add_feeds(app, reader, build_query)
    follow_page.add_follow(app, reader, build_query)
    listen.add_listening(app, reader)
    selector_pages.add_selector_pages(app, reader)
    operator_routes.add_operator_routes(app, reader)
    crawl_routes.add_crawl_routes(app, reader)
    websub_routes.add_websub(app, reader)
    taking_down = takedown_routes.add_takedown(app, reader)
    graph_routes.add_graph(app, reader, build_query)
    describe(app)
    app.add_middleware(Unchanged)
    app.add_middleware(BodyLimit, limits=deps.limits)
    app.add_middleware(Looks)
    # Level 4 takes less than half the time of the default, 9.
    app.add_middleware(CompressText, minimum_size=1_000, compresslevel=4)
    app.add_middleware(
        Guard,
        access=deps.access,
        clock=deps.clock,
        per_minute=deps.limits.per_minute,
        cors=deps.cors,
        rate=deps.rate,
    )
    return app


def _invalid(request: Request, faults: list[str]) -> tuple[int, str]:
    """A reader who mistyped an article's address is told so; a program what form an id has."""
    if pages.wants_page(request) and "article_id" in request.path_params:
        return 404, "There is no article with this id."
    return 422, "; ".join(faults)


def _add_errors(app: FastAPI) -> None:
    """Every error in one shape, RFC 9457's; as a page where a page was asked for."""

    def answer(
        request: Request, status: int, text: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        if pages.wants_page(request):
            found: Response = error_page(status, text)
        else:
            found = Response(problem.packed(status, text), status, media_type=problem.MEDIA)
        found.headers.update(headers or {})
        return found

    @app.exception_handler(QueryError)
    async def query_error(request: Request, exc: QueryError) -> Response:
        return answer(request, 422 if isinstance(exc, QueryTooLarge) else 400, str(exc))

    @app.exception_handler(StoreUnavailable)
    async def store_unavailable(request: Request, exc: StoreUnavailable) -> Response:
        return answer(request, 503, str(exc))

    @app.exception_handler(TooManySearches)
    async def too_many(request: Request, exc: TooManySearches) -> Response:
        return answer(request, 429, str(exc), {"Retry-After": "1"})

    @app.exception_handler(AuditUnavailable)
    async def not_noted(request: Request, exc: AuditUnavailable) -> Response:
        return answer(request, 503, str(exc))

    @app.exception_handler(FrontierError)
    async def frontier_away(request: Request, exc: FrontierError) -> Response:
        return answer(request, 503, str(exc))

    @app.exception_handler(RedisError)
    async def redis_away(request: Request, exc: RedisError) -> Response:
        return answer(request, 503, f"Redis does not answer: {exc}")

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, exc: RequestValidationError) -> Response:
        faults = [
            f"{'.'.join(str(part) for part in e['loc'][1:])}: {e['msg']}" for e in exc.errors()
        ]
        status, text = _invalid(request, faults)
        return answer(request, status, text)

    @app.exception_handler(Exception)
    async def fault(request: Request, exc: Exception) -> Response:
        """A fault of this program, which is logged. This answer does not pass the gate."""
        headers = {**HEADERS, "Cache-Control": "no-store"}
        return answer(request, 500, "This server made a mistake; its log says which.", headers)

    @app.exception_handler(AnyHTTPException)
    async def http_error(request: Request, exc: AnyHTTPException) -> Response:
        return answer(request, exc.status_code, str(exc.detail), _with_head(exc.headers))


def _with_head(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The gate answers HEAD wherever there is a GET, of which the routes know nothing."""
    made = dict(headers or {})
    if made.get("Allow") == "GET":
        made["Allow"] = "GET, HEAD"
    return made


def _add_api(app: FastAPI, reader: DataReader) -> None:
    @app.get(
        "/api/search",
        summary="Search articles",
        tags=["articles"],
        response_model=models.SearchAnswer,
        responses=models.errors(400, 422, 429, 503),
    )
    async def search(
        q: Annotated[
            str,
            Parameter(
                max_length=QUERY_MOST,
                description='words, "phrase", OR, AND, NOT, -word, ( ), '
                + " ".join(f"{field}:" for field in query_tree.SEARCH_FIELDS),
            ),
        ] = "",
        mode: Annotated[
            Mode, Parameter(description="by words, by meaning, or by both where words are weak")
        ] = "hybrid",
        page: Annotated[int, Parameter(ge=0, le=DEEPEST, description="from 0")] = 0,
        size: Annotated[int, Parameter(ge=1, le=100)] = 20,
        sort: Sort = "best",
        site: Annotated[list[str] | None, Parameter(description="site ids, any of them")] = None,
        after: Annotated[
            str | None, Parameter(description=f"published at or after: {FORMS}, or an ISO time")
        ] = None,
        before: Annotated[
            str | None, Parameter(description=f"published before: {FORMS}, or an ISO time")
        ] = None,
        collapse: Annotated[
            bool, Parameter(description="one hit per group of near-duplicates")
        ] = False,
        zone: Annotated[
            str, Parameter(max_length=64, description="whose days are meant: Asia/Ho_Chi_Minh")
        ] = "",
        labels: Annotated[tuple[tuple[str, str], ...], Depends(chosen_labels)] = (),
    ) -> dict[str, Any]:
        query = build_query(
            q,
            page=page,
            size=size,
            sort=sort,
            site=site,
            after=after,
            before=before,
            collapse=collapse,
            labels=labels,
            mode=mode,
            zone=zone_of(zone) if zone else reader.deps.zone,
        )
        return data.result_json(query, await reader.search(query))

    _add_seed_routes(app, reader)
    _add_crawl(app, reader)
    _add_articles(app, reader)


def _add_seed_routes(app: FastAPI, reader: DataReader) -> None:
    """Search by words and search by meaning, each with a route of its own that answers articles
    with their text: what programs that know nothing of this project expect."""

    async def answer(q: str, page: int, size: int, mode: Mode) -> dict[str, Any]:
        query = build_query(q, page=page, size=size, mode=mode, zone=reader.deps.zone)
        return data.seed_json(query, await reader.search(query))

    @app.get(
        "/api/search/keyword",
        summary="Articles by words, with their text",
        tags=["articles"],
        response_model=models.SeedAnswer,
        responses=models.errors(400, 422, 429, 503),
    )
    async def keyword(q: Words, page: PageNumber = 0, size: PageSize = 10) -> dict[str, Any]:
        return await answer(q, page, size, "keyword")

    @app.get(
        "/api/search/semantic",
        summary="Articles by meaning, with their text",
        tags=["articles"],
        response_model=models.SeedAnswer,
        responses=models.errors(400, 422, 429, 503),
    )
    async def semantic(q: Words, page: PageNumber = 0, size: PageSize = 10) -> dict[str, Any]:
        return await answer(q, page, size, "semantic")


def _add_articles(app: FastAPI, reader: DataReader) -> None:
    store = reader.deps.store

    async def stored(article_id: str) -> Article:
        found = await store.get(article_id.lower())
        if found is None:
            raise not_found(article_id)
        return found

    def not_found(article_id: str) -> HTTPException:
        return HTTPException(404, f"no article with the id {article_id}")

    @app.get(
        "/api/articles/{article_id}",
        summary="One article, its current version",
        tags=["articles"],
        response_model=models.CurrentArticle,
        responses=models.errors(404, 422, 503),
    )
    async def article(article_id: ArticleId) -> dict[str, Any]:
        found = await stored(article_id)
        moved_to = data.moved_to(found, await data.copies_of(found, store))
        return data.article_json(found) | {"moved_to": moved_to.id if moved_to else None}

    @app.get(
        "/api/articles/{article_id}/versions",
        summary="All versions, oldest first",
        tags=["articles"],
        response_model=list[models.ArticleAnswer],
        responses=models.errors(404, 422, 503),
    )
    async def versions(article_id: ArticleId) -> list[dict[str, Any]]:
        found = await store.versions(article_id.lower())
        if not found:
            raise not_found(article_id)
        return [data.article_json(one) for one in found]

    @app.get(
        "/api/articles/{article_id}/related",
        summary="Articles that are near in meaning, the nearest first, without its copies",
        tags=["articles"],
        response_model=list[models.Related],
        responses=models.errors(404, 422, 503),
    )
    async def related(
        article_id: ArticleId, size: Annotated[int, Parameter(ge=1, le=20)] = 6
    ) -> list[dict[str, Any]]:
        found = await stored(article_id)
        return [data.listed_json(one) for one in await store.related(found.id, size)]


def _add_crawl(app: FastAPI, reader: DataReader) -> None:
    @app.get(
        "/api/sites",
        summary="Every site with its counters and state",
        tags=["crawl"],
        response_model=list[models.SiteRow],
        responses=models.errors(503),
    )
    async def sites() -> list[dict[str, Any]]:
        return await reader.sites()

    @app.get(
        "/api/frontier",
        summary="Queues, leases, delays",
        tags=["crawl"],
        response_model=models.FrontierAnswer,
        responses=models.errors(503),
    )
    async def frontier() -> dict[str, Any]:
        report, problem = await reader.frontier()
        if problem:
            raise HTTPException(503, problem)
        return report

    @app.get(
        "/api/workers",
        summary="Heartbeats",
        tags=["crawl"],
        response_model=models.WorkersAnswer,
        responses=models.errors(503),
    )
    async def workers() -> dict[str, Any]:
        rows, problem = await reader.workers()
        if problem:
            raise HTTPException(503, problem)
        alive = sum(1 for row in rows if row["alive"])
        return {"alive": alive, "message": "" if alive else "no worker is alive", "workers": rows}

    @app.get(
        "/api/status",
        summary="What the crawl is doing right now",
        tags=["crawl"],
        response_model=models.StatusAnswer,
        responses=models.errors(503),
    )
    async def status() -> dict[str, Any]:
        return await reader.status()


def _add_probes(app: FastAPI, reader: DataReader) -> None:
    @app.get(
        "/healthz",
        summary="200 when articles can be searched",
        tags=["probes"],
        response_model=models.HealthAnswer,
        responses={
            **models.errors(),
            503: {"model": models.HealthAnswer, "description": "articles cannot be searched"},
        },
    )
    async def healthz() -> Response:
        _, store_error = await reader.store_stats()
        _, redis_error = await reader.counts()
        body = {
            "service": "newscrawler",
            "status": "failing" if store_error else "ok",
            "store": store_error or "ok",
        }
        body["redis"] = redis_error or "ok"  # the search goes on without it
        body["data"] = reader.deps.mark
        return JSONResponse(body, status_code=503 if store_error else 200)

    @app.get(
        "/metrics",
        summary="Prometheus",
        tags=["probes"],
        response_class=Response,
        responses={
            **models.errors(),
            200: {"content": {MEDIA_METRICS: {"schema": {"type": "string"}}}},
        },
    )
    async def prometheus() -> Response:
        return Response(await exposition(reader), media_type=MEDIA_METRICS)


def day_after(day: str) -> str:
    """ "2026-11-21" -> "2026-11-22": a facet of one day as a range."""
    return (datetime.fromisoformat(day) + timedelta(days=1)).date().isoformat()


__all__ = ["COUNT_CAP", "create_app", "day_after"]
