"""/selectors: the sets of all sites, and one set with its versions, figures and an example; edit and approve.

A stored page is never sent to the browser as HTML: its blocks are printed as escaped text, in a frame without
scripts, marked by what the set takes them for.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi import Query as Parameter
from fastapi.responses import RedirectResponse, Response
from redis.exceptions import RedisError
from selectolax.lexbor import LexborNode

from newscrawler import selecting
from newscrawler.api import guard, text
from newscrawler.api.access import TokenError, check_token
from newscrawler.api.data import Reader
from newscrawler.api.pages import Asked, error_page, form_fields, render
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.selectors import SelectorSet, Variant, apply
from newscrawler.extraction.text import clean_line
from newscrawler.selectorstore import schema
from newscrawler.selectorstore.drift import Drift
from newscrawler.selectorstore.samples import norm
from newscrawler.selectorstore.store import SelectorStore, UnknownSet

#: Characters of an edited document; a set of eight variants has some 10,000.
MOST_CHARS = 100_000
MOST_BLOCKS = 400
_EXAMPLES = 12
_CSS_FIELDS = ("title", "published", "authors")
#: The frame of the example: no script whatever a page says, and only this server may show it.
_EXAMPLE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}
_PAGE_HEADERS = {"Content-Security-Policy": guard.CONTENT_SECURITY_POLICY + "; frame-src 'self'"}

Domain = Annotated[str, PathParameter(pattern=r"^[a-z0-9.\-]{1,253}(:\d{1,5})?$")]


def add_selector_pages(app: FastAPI, reader: Reader) -> None:
    _add_views(app, reader)
    _add_changes(app, reader)


def _add_views(app: FastAPI, reader: Reader) -> None:
    @app.get("/selectors", include_in_schema=False)
    async def selectors_page() -> Response:
        try:
            rows = await _store(reader).known()
        except RedisError as exc:
            return error_page(503, f"Redis does not answer: {exc}")
        return render("selectors.html", rows=rows, asked=Asked(), status=await reader.status())

    @app.get("/selectors/{domain}", include_in_schema=False)
    async def selector_page(domain: Domain, version: Annotated[int | None, Parameter(ge=1)] = None) -> Response:
        return await _set_page(reader, domain, version)

    @app.get("/selectors/{domain}/example", include_in_schema=False)
    async def example(
        domain: Domain,
        version: Annotated[int | None, Parameter(ge=1)] = None,
        page: Annotated[int, Parameter(ge=0, lt=_EXAMPLES)] = 0,
    ) -> Response:
        try:
            selectors = schema.parse(await _store(reader).document(domain, version), domain)
        except UnknownSet as exc:
            raise HTTPException(404, str(exc)) from None
        pages = await _pages(reader, domain)
        found = None
        if pages:
            chosen = pages[-1 - page % len(pages)]
            found = await asyncio.to_thread(marked, chosen, selectors, _context_of(reader)(chosen.url, chosen.fetched))
        answer = render(
            "selector_example.html",
            found=found,
            number=page,
            count=min(len(pages), _EXAMPLES),
            version=selectors.version,
        )
        answer.headers.update(_EXAMPLE_HEADERS)
        return answer


def _add_changes(app: FastAPI, reader: Reader) -> None:
    @app.post("/selectors/{domain}/approve", include_in_schema=False)
    async def approve(request: Request, domain: Domain) -> Response:
        fields = await _fields(request, reader)
        version = fields.get("version", "")
        if not version.isdigit():
            raise HTTPException(422, "version: must be a number")
        pages = await _pages(reader, domain)
        try:
            await selecting.approve(_store(reader), domain, int(version), pages, _context_of(reader), who="web")
        except selecting.GateRefused as exc:
            return await _set_page(reader, domain, int(version), problem=str(exc), judged=exc.judged, status=409)
        except UnknownSet as exc:
            raise HTTPException(404, str(exc)) from None
        return RedirectResponse(f"/selectors/{domain}", 303)

    @app.post("/selectors/{domain}/edit", include_in_schema=False)
    async def edit(request: Request, domain: Domain) -> Response:
        written = (await _fields(request, reader)).get("document", "")
        pages = await _pages(reader, domain)
        try:
            number, _ = await selecting.save_edit(
                _store(reader), domain, written, pages, _context_of(reader), who="web"
            )
        except schema.SetError as exc:
            return await _set_page(reader, domain, None, problem=str(exc), written=written, status=422)
        except selecting.GateRefused as exc:
            return await _set_page(
                reader, domain, None, problem=str(exc), judged=exc.judged, written=written, status=409
            )
        return RedirectResponse(f"/selectors/{domain}?version={number}", 303)


async def _fields(request: Request, reader: Reader) -> dict[str, str]:
    """The form's fields, from one who may change sets. Origin is checked by the guard."""
    access = reader.deps.access
    if access.secret:
        try:
            check_token(access.secret, guard.token_of(request.headers), role="operator", clock=reader.deps.clock)
        except TokenError as exc:
            raise HTTPException(403, f"Only operators change sets: {exc}") from None
    body = await request.body()
    if len(body) > 4 * MOST_CHARS:
        raise HTTPException(413, "the document is too long")
    return form_fields(body.decode("utf-8", "replace"))


def _store(reader: Reader) -> SelectorStore:
    store = reader.deps.selectors
    if store is None or store.client is None:
        raise HTTPException(503, reader.deps.redis_error or "selector sets are not known to this server")
    return store


def _context_of(reader: Reader) -> selecting.ContextOf:
    by_host = {host: facts for facts in reader.deps.sites.values() for host in facts.hosts}

    def context(url: str, fetched: datetime | None) -> PageContext:
        facts = by_host.get(selecting.host_of(url))
        if facts is None:
            return PageContext(fetched=fetched)
        return PageContext(site_name=facts.name, language=facts.language or None, zone=facts.zone, fetched=fetched)

    return context


async def _pages(reader: Reader, domain: str) -> list[selecting.Stored]:
    if reader.deps.raw is None:
        return []
    return await selecting.newest_pages(reader.deps.store, reader.deps.raw, domain)


async def _set_page(
    reader: Reader,
    domain: str,
    version: int | None,
    *,
    problem: str = "",
    judged: selecting.Judged | None = None,
    written: str | None = None,
    status: int = 200,
) -> Response:
    store = _store(reader)
    try:
        doc = await store.document(domain, version)
    except UnknownSet as exc:
        return error_page(404, str(exc))
    known = await store.describe(domain)
    provenance = dict(doc["provenance"])
    figures = provenance.pop("metrics", {})
    compared = provenance.pop("compared", None)
    events = await store.history(domain)
    for event in events:
        event["at"] = text.moment(datetime.fromtimestamp(event["at_ms"] / 1000, UTC), UTC)
    answer = render(
        "selector.html",
        status,
        domain=domain,
        doc=doc,
        known=known,
        versions=await store.version_numbers(domain),
        provenance={k: selecting.provenance_told(k, v) for k, v in provenance.items()},
        figures=figures.get("fields", {}),
        compared=compared,
        watched=(await Drift(store.client).report(domain))["fields"],
        events=events,
        problem=problem,
        judged=judged.rows() if judged else [],
        written=written if written is not None else _to_edit(doc),
        asked=Asked(),
    )
    answer.headers.update(_PAGE_HEADERS)
    return answer


def _to_edit(doc: dict[str, Any]) -> str:
    """What people change first."""
    first = {name: doc[name] for name in ("domain", "version", "state", "variants") if name in doc}
    return json.dumps({**first, **doc}, ensure_ascii=False, indent=2)


# ---------------------------------------------------------------- the example
def marked(page: selecting.Stored, selectors: SelectorSet, context: PageContext) -> dict[str, Any]:
    """``{url, fields: [{name, value, origin}], blocks: [{text, kind}]}``; kind: title, published, authors, content,
    excluded or other. All of it is text."""
    doc = Document(page.body, page.url, page.content_type)
    values = apply(doc, selectors, context)
    variant = _variant_of(doc, selectors, values["content"].origin if "content" in values else "")
    named: dict[str, set[int]] = {}
    for name in _CSS_FIELDS:
        origin = values[name].origin if name in values else ""
        css = [
            c.css for c in variant.fields.get(name, ()) if c.kind == "css" and origin.startswith(f"selector:{c.css}")
        ]
        named[name] = {n.mem_id for one in css[:1] for n in doc.tree.css(one)[:12]}
    origin = values["content"].origin.removeprefix("selector:") if "content" in values else ""
    named["content"] = {n.mem_id for n in doc.tree.css(origin)} if origin else set()
    out = {n.mem_id for one in variant.content_exclude for n in doc.tree.css(one)} - named["content"]
    kept = norm(values["content"].value) if "content" in values else ""
    blocks = []
    body = doc.tree.body
    for block in list(walk(body))[:MOST_BLOCKS] if body is not None else []:
        kind = _kind(block.node, named, out)
        if kind == "content" and norm(clean_line(block.text)) not in kept:
            kind = "excluded"  # a date, a share line: below the root, and cleaned away
        blocks.append({"text": block.text[:1500], "kind": kind})
    fields = [{"name": n, "value": str(f.value)[:600], "origin": f.origin} for n, f in values.items()]
    return {"url": page.url, "template": variant.template, "fields": fields, "blocks": blocks}


def _variant_of(doc: Document, selectors: SelectorSet, content_by: str) -> Variant:
    """The one that read the text; where none did, the first that is meant for such pages."""
    for variant in selectors.variants:
        if any(f"selector:{css}" == content_by for css in variant.content_root):
            return variant
    for variant in selectors.variants:
        if not variant.when or doc.tree.css_first(variant.when) is not None:
            return variant
    return selectors.variants[0]


def _kind(node: LexborNode, named: dict[str, set[int]], out: set[int]) -> str:
    kinds: list[str] = []
    current: LexborNode | None = node
    while current is not None:
        if current.mem_id in out:  # a headline below the root is no text, and the title all the same
            kinds += [name for name in _CSS_FIELDS if current.mem_id in named[name]]
            return next((k for k in _CSS_FIELDS if k in kinds), "excluded")
        kinds += [name for name, ids in named.items() if current.mem_id in ids]
        current = current.parent
    return next((k for k in (*_CSS_FIELDS, "content") if k in kinds), "other")
