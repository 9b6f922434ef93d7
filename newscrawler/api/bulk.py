"""What is taken along: all matches of a query by cursor or as a file, citations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException
from fastapi import Query as Parameter
from fastapi.responses import Response, StreamingResponse

from newscrawler.api import data, models, text
from newscrawler.api.asked import ArticleId, chosen_labels
from newscrawler.api.data import DataReader, whole_store
from newscrawler.api.limits import TooManySearches
from newscrawler.items import Article
from newscrawler.store import citation
from newscrawler.store.base import Portion, Query, QueryError
from newscrawler.store.cursor import MOST as CURSOR_MOST
from newscrawler.store.days import FORMS, zone_of
from newscrawler.store.export import MEDIA, PORTION, ExportError, stream

#: Seconds that a running export waits for its turn, then it is cut off.
_PATIENCE_S = 60


def asked_query(reader: DataReader, build_query: Callable[..., Query]) -> Callable[..., Query]:
    """A dependency of routes: the query of their parameters, without a page."""

    def asked(
        q: Annotated[str, Parameter(max_length=2_000, description="as in /api/search")] = "",
        site: Annotated[list[str] | None, Parameter(description="site ids, any of them")] = None,
        after: Annotated[str | None, Parameter(description=f"at or after: {FORMS}")] = None,
        before: Annotated[str | None, Parameter(description=f"before: {FORMS}")] = None,
        zone: Annotated[
            str, Parameter(max_length=64, description="whose days are meant: Asia/Ho_Chi_Minh")
        ] = "",
        labels: Annotated[tuple[tuple[str, str], ...], Depends(chosen_labels)] = (),
    ) -> Query:
        whose = zone_of(zone) if zone else reader.deps.zone
        query = build_query(
            q, site=site, after=after, before=before, labels=labels, zone=whose, mode="keyword"
        )
        return replace(query, facets=False, limit_s=reader.deps.limits.search_s)

    return asked


async def _portions(
    reader: DataReader, query: Query, first: Portion
) -> AsyncIterator[list[Article]]:
    """Each takes its turn among the searches, so that a long export holds up nobody."""
    store, portion = whole_store(reader), first
    yield portion.articles
    while portion.cursor:
        for waited in range(_PATIENCE_S):
            try:
                async with reader.turn():
                    portion = await store.portion(query, portion.cursor, PORTION)
                break
            except TooManySearches:
                if waited == _PATIENCE_S - 1:
                    raise
                await asyncio.sleep(1)
        yield portion.articles


def add_bulk(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    asked = asked_query(reader, build_query)
    _add_export(app, reader, asked)

    @app.get(
        "/api/articles",
        summary="All matches of a query, page by page without an end",
        tags=["articles"],
        response_model=models.PortionAnswer,
        responses=models.errors(400, 422, 429, 503),
    )
    async def articles(
        query: Query = Depends(asked),  # noqa: B008  # a name of this function is no annotation
        cursor: Annotated[
            str,
            Parameter(
                max_length=CURSOR_MOST,
                pattern="^[A-Za-z0-9_-]*$",
                description="that of the answer before; the query is kept in it",
            ),
        ] = "",
        size: Annotated[int, Parameter(ge=1, le=500)] = 100,
    ) -> dict[str, Any]:
        store = whole_store(reader)
        async with reader.turn():
            portion = await store.portion(query, cursor, size)
        return {
            "articles": [data.article_json(article) for article in portion.articles],
            "cursor": portion.cursor,
            "total": portion.total,
            "relaxed": portion.relaxed,
            "read_as": portion.read_as,
        }

    @app.get(
        "/api/articles/{article_id}/cite",
        summary="The citation of an article",
        tags=["articles"],
        response_class=Response,
        responses={
            **models.errors(404, 422, 503),
            200: models.files(
                {
                    media: models.CSL_ITEMS if style == "csl-json" else models.TEXT
                    for style, media in citation.MEDIA.items()
                }
            ),
        },
    )
    async def cite(
        article_id: ArticleId, style: Literal["apa", "bibtex", "ris", "csl-json"] = "apa"
    ) -> Response:
        article = await reader.deps.store.get(article_id.lower())
        if article is None:
            raise HTTPException(404, f"no article with the id {article_id}")
        facts = reader.deps.sites.get(article.site)
        zone = text.zone_of(facts.zone) if facts else reader.deps.zone
        name = facts.name if facts else article.site
        said = citation.cite(article, style, name, zone)
        headers = {}
        if style != "apa":  # a reference manager takes it as a file
            file = f"{article.id[:12]}.{citation.SUFFIX[style]}"
            headers["Content-Disposition"] = f'attachment; filename="{file}"'
        return Response(said.encode(), media_type=citation.MEDIA[style], headers=headers)


def _add_export(app: FastAPI, reader: DataReader, asked: Callable[..., Query]) -> None:
    @app.get(
        "/api/export",
        summary="All matches of a query as a file",
        tags=["articles"],
        response_class=Response,
        responses={
            **models.errors(400, 422, 429, 503),
            200: models.files(
                {
                    media: models.BINARY if form == "parquet" else models.TEXT
                    for form, media in MEDIA.items()
                }
            ),
        },
    )
    async def export(
        query: Query = Depends(asked),  # noqa: B008  # as FastAPI has it
        format: Literal["csv", "jsonl", "parquet"] = "csv",
    ) -> Response:
        store = whole_store(reader)
        async with reader.turn():  # what is wrong is said by a status, before anything is sent
            first = await store.portion(query, "", PORTION)
        try:
            pieces = stream(_portions(reader, query, first), format)
        except ExportError as exc:
            raise QueryError(str(exc)) from exc
        name = f"news-{reader.now():%Y-%m-%d}.{format}"
        return StreamingResponse(
            pieces,
            media_type=MEDIA[format],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
