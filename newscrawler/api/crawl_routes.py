"""Bounded crawls by API: /api/crawls. What fetches is a worker of the fleet, never this server."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Path, Request, Response
from fastapi import Query as Parameter
from pydantic import Field

from newscrawler.api import guard, models
from newscrawler.api.data import DataReader
from newscrawler.api.operator_routes import Body, Url, frontier_of, settings_of, sites_of
from newscrawler.crawl import bounded_crawls
from newscrawler.crawl.bounded_crawls import Crawl, CrawlBook, CrawlRefused
from newscrawler.frontier.queue import Frontier

#: Seconds that the answer to a new crawl waits for a worker to learn what robots.txt says of its
#: start, and between two looks.
START_S, LOOK_S = 5.0, 0.1

CrawlId = Annotated[str, Path(pattern=r"^[0-9a-f]{8}$")]


class CrawlBody(Body):
    url: Url
    levels: Annotated[
        int, Field(ge=1, description="links from the start: 1 = the page and what it links to")
    ] = 1
    max_pages: Annotated[int, Field(ge=1, description="URLs of the site, the start among them")] = (
        100
    )

    model_config = {
        "json_schema_extra": {
            "examples": [{"url": "https://example.vn/", "levels": 2, "max_pages": 200}]
        }
    }


def add_crawl_routes(app: FastAPI, reader: DataReader) -> None:
    _add_changes(app, reader)
    _add_views(app, reader)


def _add_changes(app: FastAPI, reader: DataReader) -> None:
    @app.post(
        "/api/crawls",
        summary="Crawl one site, so many links deep and so many pages (role operator)",
        tags=["crawl"],
        status_code=201,
        response_model=models.CrawlAnswer,
        responses=models.errors(400, 409, 422, 503),
    )
    async def begin(request: Request, response: Response, body: CrawlBody) -> dict[str, Any]:
        who = guard.principal_of(request, "operator")
        settings, frontier = settings_of(reader), await frontier_of(reader)
        detail = f"levels={body.levels} max_pages={body.max_pages}"
        reader.deps.audit.note(who, "crawl.start", body.url, detail)
        try:
            crawl, is_allowed = await bounded_crawls.begin(
                settings,
                frontier,
                sites_of(reader, enabled_only=False),
                url=body.url,
                levels=body.levels,
                max_pages=body.max_pages,
                by=who.id,
            )
        except CrawlRefused as exc:
            raise HTTPException(exc.status, str(exc)) from exc
        if not is_allowed:
            await _wait_for_robots(reader, frontier, crawl)
        response.headers["Location"] = f"/api/crawls/{crawl.id}"
        return await _told(reader, frontier, await CrawlBook(frontier.client).get(crawl.id))

    @app.delete(
        "/api/crawls/{crawl_id}",
        summary="Cancel a crawl; one that has ended stays as it is (role operator)",
        tags=["crawl"],
        response_model=models.CrawlAnswer,
        responses=models.errors(404, 422, 503),
    )
    async def cancel(request: Request, crawl_id: CrawlId) -> dict[str, Any]:
        who = guard.principal_of(request, "operator")
        frontier = await frontier_of(reader)
        if await CrawlBook(frontier.client).get(crawl_id) is None:
            raise _unknown(crawl_id)
        reader.deps.audit.note(who, "crawl.cancel", crawl_id)
        return await _told(
            reader, frontier, await bounded_crawls.cancel(frontier, crawl_id, who.id)
        )


async def _wait_for_robots(reader: DataReader, frontier: Frontier, crawl: Crawl) -> None:
    """A robots.txt that nobody has fetched yet is fetched by a worker. Where one is there, its word
    is waited for, so that a start that is forbidden is refused here and not found out later."""
    workers, problem = await reader.workers()
    if problem or not any(row["alive"] for row in workers):
        return
    book = CrawlBook(frontier.client)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        now = await book.get(crawl.id)
        if now is not None and now.state == "refused":
            raise HTTPException(422, f"crawl {crawl.id} has ended: {now.why}")
        if now is None or not now.is_running or now.fetched:
            return
        await asyncio.sleep(LOOK_S)


def _add_views(app: FastAPI, reader: DataReader) -> None:
    @app.get(
        "/api/crawls",
        summary="Bounded crawls, the newest first; kept for a week after their end",
        tags=["crawl"],
        response_model=list[models.CrawlAnswer],
        responses=models.errors(422, 503),
    )
    async def crawls(
        size: Annotated[int, Parameter(ge=1, le=1_000)] = 100,
    ) -> list[dict[str, Any]]:
        frontier = await frontier_of(reader)
        found = await CrawlBook(frontier.client).newest(size)
        return [await _told(reader, frontier, crawl) for crawl in found]

    @app.get(
        "/api/crawls/{crawl_id}",
        summary="How far a crawl is: pages, articles, state, what it waits for, why it ended",
        tags=["crawl"],
        response_model=models.CrawlAnswer,
        responses=models.errors(404, 422, 503),
    )
    async def crawl(crawl_id: CrawlId) -> dict[str, Any]:
        frontier = await frontier_of(reader)
        found = await CrawlBook(frontier.client).get(crawl_id)
        if found is None:
            raise _unknown(crawl_id)
        return await _told(reader, frontier, found)

    @app.get(
        "/api/crawls/{crawl_id}/pages",
        summary="The URLs of a crawl: level, kind, how the visit ended",
        tags=["crawl"],
        response_model=list[models.CrawlPage],
        responses=models.errors(404, 422, 503),
    )
    async def pages(
        crawl_id: CrawlId, size: Annotated[int, Parameter(ge=1, le=10_000)] = 1_000
    ) -> list[dict[str, Any]]:
        book = CrawlBook((await frontier_of(reader)).client)
        if await book.get(crawl_id) is None:
            raise _unknown(crawl_id)
        return [
            {
                "url": one.link.url,
                "level": one.level,
                "kind": str(one.link.kind),
                "outcome": one.outcome or None,
            }
            for one in await book.pages(crawl_id, size)
        ]


def _unknown(crawl_id: str) -> HTTPException:
    return HTTPException(404, f"no crawl has the id {crawl_id}; see /api/crawls")


async def _told(reader: DataReader, frontier: Frontier, crawl: Crawl | None) -> dict[str, Any]:
    if crawl is None:
        raise HTTPException(404, "the crawl is kept no longer")
    workers, problem = await reader.workers()
    alive = None if problem else sum(1 for row in workers if row["alive"])
    return await bounded_crawls.status(frontier, crawl, alive)
