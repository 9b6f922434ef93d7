"""Routes for those who run the crawl: why a URL is where it is, what the parts are doing, and
the changes that the commands make too (pause a domain, fetch a page again, add a seed).

Every change needs the role operator, is noted in the audit log before it is made, and goes
through the functions that the commands use.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Path, Request
from fastapi import Query as Parameter
from pydantic import BaseModel, ConfigDict, Field

from newscrawler.api import guard, models, parts
from newscrawler.api.access import Principal
from newscrawler.api.data import DataReader, plain
from newscrawler.crawl import opening, site_choice
from newscrawler.crawl.url_explain import trace
from newscrawler.discovery import overlay
from newscrawler.discovery.sites import Site, Sites, SitesError
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.queue import Frontier, FrontierRefused
from newscrawler.items import Kind, Link
from newscrawler.web.urls import domain_of

Domain = Annotated[str, Path(max_length=253, pattern=r"^[a-z0-9.:_-]+$")]
Url = Annotated[str, Field(max_length=2_000, pattern=r"^https?://")]
SEED_KINDS = {"feed": Kind.FEED, "sitemap": Kind.SITEMAP, "section": Kind.SECTION}


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class UrlBody(Body):
    url: Url


class SeedBody(Body):
    url: Url
    kind: Literal["feed", "sitemap", "section"]


def add_operator_routes(app: FastAPI, reader: DataReader) -> None:
    _add_views(app, reader)
    _add_domain_changes(app, reader)
    _add_url_changes(app, reader)


def _add_views(app: FastAPI, reader: DataReader) -> None:
    @app.get(
        "/api/why",
        summary="Where a URL was found, what happened to it, what happens next",
        tags=["crawl"],
        response_model=models.WhyAnswer,
        responses=models.errors(422, 503),
    )
    async def why(
        url: Annotated[str, Parameter(max_length=2_000, pattern=r"^https?://")],
    ) -> dict[str, Any]:
        settings = settings_of(reader)
        try:
            found: dict[str, Any] = plain(await trace(url, _operator(reader), settings))
        except SitesError as exc:
            raise HTTPException(503, str(exc)) from exc
        return found

    @app.get(
        "/api/selectors",
        summary="Selector sets: state, version, where each comes from",
        tags=["crawl"],
        response_model=list[models.SelectorRow],
        responses=models.errors(503),
    )
    async def selectors() -> list[dict[str, Any]]:
        store = reader.deps.selectors
        if store is None or store.client is None:
            raise HTTPException(503, reader.deps.redis_error or "no selector sets are known")
        return [asdict(row) for row in await store.known()]

    @app.get(
        "/api/check",
        summary="Every node and part: whether it answers, its version, its load",
        tags=["probes"],
        response_model=list[models.PartRow],
        responses=models.errors(),
    )
    async def check() -> list[dict[str, Any]]:
        return await parts.parts(reader)

    @app.get(
        "/api/audit",
        summary="Who changed what, newest first (role admin)",
        tags=["crawl"],
        response_model=list[models.AuditRow],
        responses=models.errors(422),
    )
    async def audit(
        request: Request, size: Annotated[int, Parameter(ge=1, le=1_000)] = 100
    ) -> list[dict[str, Any]]:
        guard.principal_of(request, "admin")
        return await asyncio.to_thread(reader.deps.audit.last, size)


def _add_domain_changes(app: FastAPI, reader: DataReader) -> None:
    async def known(domain: str) -> Operator:
        operator = _operator(reader)
        if await operator.state(domain) is None:
            raise HTTPException(404, f"the frontier has no domain {domain}; see /api/frontier")
        return operator

    def add(verb: str, summary: str, said: str) -> None:
        """POST /api/domains/{domain}/VERB: the method of the same name of the operator."""

        @app.post(
            f"/api/domains/{{domain}}/{verb}",
            name=verb,
            summary=summary,
            tags=["crawl"],
            response_model=models.Done,
            responses=models.errors(404, 422, 503),
        )
        async def change(request: Request, domain: Domain) -> dict[str, str]:
            who = guard.principal_of(request, "operator")
            operator = await known(domain)
            reader.deps.audit.note(who, f"domain.{verb}", domain)
            await getattr(operator, verb)(domain)
            return {"done": f"{domain} {said}"}

    add("pause", "Fetch nothing of a domain until it is resumed (role operator)", "is paused")
    add(
        "resume",
        "End a pause or a block; the delay since the last fetch still holds (operator)",
        "goes on",
    )


def _add_url_changes(app: FastAPI, reader: DataReader) -> None:
    @app.post(
        "/api/recheck",
        summary="Fetch a page of a known site again, as soon as its domain may be asked (operator)",
        tags=["crawl"],
        response_model=models.Done,
        responses=models.errors(400, 422, 503),
    )
    async def recheck(request: Request, body: UrlBody) -> dict[str, str]:
        who = guard.principal_of(request, "operator")
        sites = sites_of(reader)
        link = _identified(sites, body.url, Kind.ARTICLE)
        link.revisit, link.band = True, 0
        frontier = await frontier_of(reader)
        reader.deps.audit.note(who, "url.recheck", link.url)
        await frontier.put_domains(site_choice.domain_policies(sites, settings_of(reader)))
        result = await frontier.add([link])
        if result.refused:
            reasons = ", ".join(result.refused)
            raise HTTPException(422, f"{link.url} was not taken: {reasons}")
        return {"done": f"{link.url} is fetched at the next turn of {link.domain}"}

    @app.post(
        "/api/seeds",
        summary="Add a feed, sitemap or section to a known site (operator)",
        tags=["crawl"],
        response_model=models.Done,
        responses=models.errors(400, 422, 503),
    )
    async def add_seed(request: Request, body: SeedBody) -> dict[str, str]:
        who = guard.principal_of(request, "operator")
        sites = sites_of(reader, enabled_only=False)
        kind = SEED_KINDS[body.kind]
        site = _site_of(sites, body.url)
        link = _identified(Sites([replace(site, enabled=True)]), body.url, kind)
        await asyncio.to_thread(_keep_seed, reader, who, site, link)
        return {"done": f"{link.url} is a {body.kind} of {site.id} from the next refresh on"}


def _keep_seed(reader: DataReader, who: Principal, site: Site, link: Link) -> None:
    folder = opening.data_dir(settings_of(reader))
    reader.deps.audit.note(who, "seed.add", link.url, site.id)
    try:
        state = overlay.read(folder)
        state.add_seed(site.id, link.url, link.kind)
        overlay.write(folder, state)
    except (SitesError, OSError) as exc:
        raise HTTPException(503, f"the seed cannot be kept: {exc}") from exc


# ---------------------------------------------------------------- what the routes work with
def settings_of(reader: DataReader) -> Any:
    """:raises HTTPException: 503, the server has no settings of a crawl"""
    if reader.deps.settings is None:
        raise HTTPException(503, "this server was started without the crawl's settings")
    return reader.deps.settings


def _operator(reader: DataReader) -> Operator:
    frontier = reader.deps.frontier
    if not isinstance(frontier, Frontier):
        raise HTTPException(503, reader.deps.redis_error or "no Redis")
    return frontier.operator


async def frontier_of(reader: DataReader) -> Frontier:
    """:raises HTTPException: 503, Redis is away"""
    frontier = reader.deps.frontier
    if not isinstance(frontier, Frontier):
        raise HTTPException(503, reader.deps.redis_error or "no Redis")
    try:
        await frontier.open()
    except FrontierRefused as exc:
        raise HTTPException(503, str(exc)) from exc
    return frontier


def sites_of(reader: DataReader, *, enabled_only: bool = True) -> Sites:
    """:raises HTTPException: 503, the file of sites cannot be read"""
    read = site_choice.load_sites if enabled_only else site_choice.all_sites
    try:
        return read(settings_of(reader))
    except SitesError as exc:
        raise HTTPException(503, str(exc)) from exc


def _site_of(sites: Sites, url: str) -> Site:
    site = sites.find(domain_of(url) or "")
    if site is None:
        raise HTTPException(422, f"no site has the host of {url}; see `scrapy seeds add`")
    return site


def _identified(sites: Sites, url: str, kind: Kind) -> Link:
    found = sites.identify(url, kind=kind, hint={"asked": True})
    if not isinstance(found, Link):
        raise HTTPException(422, f"{url} is not taken: {found.reason}")
    return found
