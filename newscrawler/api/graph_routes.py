"""The graph of links: /api/graph, /api/links, and the page /graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Response
from fastapi import Query as Parameter

from newscrawler.api import models
from newscrawler.api.data import DataReader
from newscrawler.api.operator_routes import frontier_of, sites_of
from newscrawler.api.rendering import render
from newscrawler.crawl import link_graph
from newscrawler.crawl.link_graph import Graph, PageLinks
from newscrawler.discovery.sites import Sites
from newscrawler.items import Link
from newscrawler.store.base import Query
from newscrawler.web import urls

#: Hits of a search that a topic's graph begins with.
TOPIC_HITS = 100
SiteId = Annotated[str, Parameter(max_length=253, description="a site's id")]
Words = Annotated[str, Parameter(max_length=2_000, description="a topic: articles of this search")]
Depth = Annotated[int, Parameter(ge=0, le=10, description="links from the home or the hits")]
Limit = Annotated[int, Parameter(ge=1, le=2_000, description="nodes, those with most in-links")]


def add_graph(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    async def looked(site: str, q: str, depth: int, limit: int) -> Graph:
        client = (await frontier_of(reader)).client
        if q.strip():
            query = build_query(q, size=TOPIC_HITS, site=[site] if site else None, mode="keyword")
            hits = (await reader.search(query)).hits
            pages: dict[bytes, PageLinks] = {}
            for name in sorted({hit.article.site for hit in hits}):
                pages |= await link_graph.pages_of(client, name)
            roots = []
            for article in (hit.article for hit in hits):
                page_id = link_graph.short(bytes.fromhex(article.id))
                roots.append(page_id)
                # Stored, but its links are remembered no longer: others may link to it.
                pages.setdefault(page_id, PageLinks(page_id, article.url, article.title, 0))
        else:
            pages = await link_graph.pages_of(client, site)
            roots = _home(sites_of(reader, enabled_only=False), site, pages)
        return await asyncio.to_thread(link_graph.graph, pages, roots, depth, limit)

    @app.get(
        "/api/graph",
        summary="Pages of a site or a topic, and the links between them",
        tags=["crawl"],
        response_model=models.GraphAnswer,
        responses=models.errors(400, 422, 503),
    )
    async def graph(
        site: SiteId = "", q: Words = "", depth: Depth = 2, limit: Limit = 300
    ) -> dict[str, Any]:
        if not site and not q.strip():
            raise HTTPException(422, "name a site or a topic: ?site=example.vn or ?q=words")
        return asdict(await looked(site, q, depth, limit))

    @app.get(
        "/api/links",
        summary="Who links to a page, as far as pages are remembered (LINK_GRAPH_PAGES)",
        tags=["crawl"],
        response_model=list[models.LinkRow],
        responses=models.errors(422, 503),
    )
    async def links(
        url: Annotated[str, Parameter(max_length=2_000, pattern=r"^https?://")],
        size: Annotated[int, Parameter(ge=1, le=1_000)] = 100,
    ) -> list[dict[str, Any]]:
        client = (await frontier_of(reader)).client
        return await _linking(reader, client, url, size)

    @app.get("/graph", include_in_schema=False)
    async def page(
        site: SiteId = "", q: Words = "", depth: Depth = 2, limit: Limit = 300, url: str = ""
    ) -> Response:
        client = (await frontier_of(reader)).client
        is_asked = bool(site or q.strip())
        found = await looked(site, q, depth, limit) if is_asked else Graph([], [], 0)
        linking = await _linking(reader, client, url, 100) if urls.is_http(url) else None
        reach = max([max(abs(n.x), abs(n.y)) for n in found.nodes], default=0) + 40
        return render(
            "graph.html",
            found=found,
            reach=round(reach, 1),
            sites=await link_graph.sites_of(client),
            site=site,
            q=q,
            depth=depth,
            limit=limit,
            url=url[:2_000],
            linking=linking,
            is_asked=is_asked,
        )


def _home(sites: Sites, site: str, pages: dict[bytes, PageLinks]) -> list[bytes]:
    """The site's home; where that was not read, the page with most links."""
    known = sites.get(site)
    found = sites.for_urls([known.home]).identify(known.home) if known is not None else None
    if isinstance(found, Link) and link_graph.short(found.url_id) in pages:
        return [link_graph.short(found.url_id)]
    return [max(pages.values(), key=lambda page: len(page.to)).id] if pages else []


async def _linking(reader: DataReader, client: Any, url: str, size: int) -> list[dict[str, Any]]:
    found = sites_of(reader, enabled_only=False).for_urls([url]).identify(url)
    if not isinstance(found, Link):
        raise HTTPException(422, f"{url} is no page that could be crawled")
    pages = await link_graph.linking_to(client, found.url_id, size)
    return [
        {
            "url": page.url,
            "title": page.title,
            "seen": datetime.fromtimestamp(page.when_s, UTC).isoformat(),
        }
        for page in pages
    ]
