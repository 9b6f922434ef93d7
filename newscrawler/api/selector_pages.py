"""/selectors: the sets of all sites, and one set with its versions, figures and an
example; edit and approve.

A stored page is never sent to the browser as HTML: its blocks are printed as escaped text, in a
frame without scripts, marked by what the set takes them for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request
from fastapi import Path as PathParameter
from fastapi import Query as Parameter
from fastapi.responses import RedirectResponse, Response
from redis.exceptions import RedisError
from selectolax.lexbor import LexborNode

from newscrawler.api import guard, text
from newscrawler.api.asked import Asked
from newscrawler.api.data import DataReader
from newscrawler.api.pages import form_fields
from newscrawler.api.rendering import error_page, render
from newscrawler.crawl import selector_admin
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.selectors import SelectorSet, Variant, apply
from newscrawler.extraction.text import clean_line
from newscrawler.items import FieldValue
from newscrawler.selectorsets import schema
from newscrawler.selectorsets.drift import Drift
from newscrawler.selectorsets.samples import norm
from newscrawler.selectorsets.store import SelectorStore, UnknownSet
from newscrawler.utils.numbers import whole_number
from newscrawler.web import urls

#: Characters of an edited document; a set of eight variants has some 10,000.
MOST_CHARS = 100_000
MOST_BLOCKS = 400
#: No site has so many versions of its set.
MOST_VERSION = 999_999
_EXAMPLES = 12
_CSS_FIELDS = ("title", "published", "authors")
#: The frame of the example: no script whatever a page says, and only this server may show it.
_EXAMPLE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-same-origin"
    ),
    "X-Frame-Options": "SAMEORIGIN",
}
_PAGE_HEADERS = {"Content-Security-Policy": guard.CONTENT_SECURITY_POLICY + "; frame-src 'self'"}

Domain = Annotated[str, PathParameter(pattern=r"^[a-z0-9.\-]{1,253}(:\d{1,5})?$")]


def add_selector_pages(app: FastAPI, reader: DataReader) -> None:
    _add_views(app, reader)
    _add_changes(app, reader)


def _add_views(app: FastAPI, reader: DataReader) -> None:
    @app.get("/selectors", include_in_schema=False)
    async def selectors_page() -> Response:
        try:
            rows = await _store(reader).known()
        except RedisError as exc:
            return error_page(503, f"Redis does not answer: {exc}")
        return render("selectors.html", rows=rows, asked=Asked(), status=await reader.status())

    @app.get("/selectors/{domain}", include_in_schema=False)
    async def selector_page(
        domain: Domain, version: Annotated[int | None, Parameter(ge=1, le=MOST_VERSION)] = None
    ) -> Response:
        return await _set_page(reader, domain, version)

    @app.get("/selectors/{domain}/example", include_in_schema=False)
    async def example(
        domain: Domain,
        version: Annotated[int | None, Parameter(ge=1, le=MOST_VERSION)] = None,
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
            found = await asyncio.to_thread(
                marked, chosen, selectors, _context_of(reader)(chosen.url, chosen.fetched)
            )
        answer = render(
            "selector_example.html",
            found=found,
            number=page,
            count=min(len(pages), _EXAMPLES),
            version=selectors.version,
        )
        answer.headers.update(_EXAMPLE_HEADERS)
        return answer


def _add_changes(app: FastAPI, reader: DataReader) -> None:
    @app.post("/selectors/{domain}/approve", include_in_schema=False)
    async def approve(request: Request, domain: Domain) -> Response:
        fields = await _fields(request, reader)
        version = whole_number(fields.get("version", ""), MOST_VERSION)
        if not version:
            raise HTTPException(422, f"version: must be a number, at most {MOST_VERSION}")
        pages = await _pages(reader, domain)
        who = guard.principal_of(request, "operator")
        reader.deps.audit.note(who, "selectors.approve", domain, f"version {version}")
        try:
            await selector_admin.approve(
                _store(reader), domain, version, pages, _context_of(reader), who="web"
            )
        except selector_admin.ValidationRefused as exc:
            return await _set_page(
                reader, domain, version, problem=str(exc), judged=exc.judged, status=409
            )
        except UnknownSet as exc:
            raise HTTPException(404, str(exc)) from None
        return RedirectResponse(f"/selectors/{domain}", 303)

    @app.post("/selectors/{domain}/edit", include_in_schema=False)
    async def edit(request: Request, domain: Domain) -> Response:
        written = (await _fields(request, reader)).get("document", "")
        pages = await _pages(reader, domain)
        who = guard.principal_of(request, "operator")
        reader.deps.audit.note(who, "selectors.edit", domain)
        try:
            number, _ = await selector_admin.save_edit(
                _store(reader), domain, written, pages, _context_of(reader), who="web"
            )
        except schema.SetError as exc:
            return await _set_page(
                reader, domain, None, problem=str(exc), written=written, status=422
            )
        except selector_admin.ValidationRefused as exc:
            return await _set_page(
                reader,
                domain,
                None,
                problem=str(exc),
                judged=exc.judged,
                written=written,
                status=409,
            )
        return RedirectResponse(f"/selectors/{domain}?version={number}", 303)


async def _fields(request: Request, reader: DataReader) -> dict[str, str]:
    """The form's fields, from one who may change sets. Origin is checked by the guard."""
    guard.principal_of(request, "operator")
    fields = form_fields((await request.body()).decode("utf-8", "replace"))
    if len(fields.get("document", "")) > MOST_CHARS:
        raise HTTPException(413, f"the document may have {MOST_CHARS:,} characters")
    return fields


def _store(reader: DataReader) -> SelectorStore:
    store = reader.deps.selectors
    if store is None or store.client is None:
        raise HTTPException(
            503, reader.deps.redis_error or "selector sets are not known to this server"
        )
    return store


def _context_of(reader: DataReader) -> selector_admin.ContextOf:
    by_host = {host: facts for facts in reader.deps.sites.values() for host in facts.hosts}

    def context(url: str, fetched: datetime | None) -> PageContext:
        facts = by_host.get(urls.domain_of(url))
        if facts is None:
            return PageContext(fetched=fetched)
        return PageContext(
            site_name=facts.name, language=facts.language or None, zone=facts.zone, fetched=fetched
        )

    return context


async def _pages(reader: DataReader, domain: str) -> list[selector_admin.Stored]:
    if reader.deps.raw is None:
        return []
    return await selector_admin.newest_pages(reader.deps.store, reader.deps.raw, domain)


async def _set_page(
    reader: DataReader,
    domain: str,
    version: int | None,
    *,
    problem: str = "",
    judged: selector_admin.Judged | None = None,
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
        provenance={k: selector_admin.provenance_told(k, v) for k, v in provenance.items()},
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
    """A set as JSON to be edited; the fields that people change first stand first."""
    first = {name: doc[name] for name in ("domain", "version", "state", "variants") if name in doc}
    return json.dumps({**first, **doc}, ensure_ascii=False, indent=2)


# ---------------------------------------------------------------- the example
def marked(
    page: selector_admin.Stored, selectors: SelectorSet, context: PageContext
) -> dict[str, Any]:
    """``{url, fields: [{name, value, origin}], blocks: [{text, kind}]}``; kind: title, published,
    authors, content, excluded or other. All of it is text."""
    doc = Document(page.body, page.url, page.content_type)
    values = apply(doc, selectors, context)
    content = values.get("content", FieldValue(None))
    variant = _variant_of(doc, selectors, content.origin)
    named = {
        name: _nodes_of(doc, variant, name, values.get(name, FieldValue(None)).origin)
        for name in _CSS_FIELDS
    }
    named["content"] = _ids(doc, content.origin.removeprefix("selector:"))
    excluded = set[int]().union(*(_ids(doc, css) for css in variant.content_exclude))
    excluded -= named["content"]
    kept = norm(content.value or "")
    blocks = []
    body = doc.tree.body
    for block in islice(walk(body), MOST_BLOCKS) if body is not None else ():
        kind = _kind(block.node, named, excluded)
        if kind == "content" and norm(clean_line(block.text)) not in kept:
            kind = "excluded"  # a date, a share line: below the root, and cleaned away
        blocks.append({"text": block.text[:1500], "kind": kind})
    fields = [
        {"name": n, "value": str(f.value)[:600], "origin": f.origin} for n, f in values.items()
    ]
    return {"url": page.url, "template": variant.template, "fields": fields, "blocks": blocks}


def _ids(doc: Document, css: str, most: int | None = None) -> set[int]:
    return {node.mem_id for node in doc.tree.css(css)[:most]} if css else set()


def _nodes_of(doc: Document, variant: Variant, name: str, origin: str) -> set[int]:
    """The first dozen nodes that the candidate which gave the field found."""
    for candidate in variant.fields.get(name, ()):
        if candidate.kind == "css" and origin.startswith(f"selector:{candidate.css}"):
            return _ids(doc, candidate.css, 12)
    return set()


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
    kinds: set[str] = set()
    current: LexborNode | None = node
    while current is not None:
        kinds.update(name for name, ids in named.items() if current.mem_id in ids)
        if current.mem_id in out:
            # A headline below the root is no text, and the title all the same.
            return _first_of(kinds, _CSS_FIELDS, "excluded")
        current = current.parent
    return _first_of(kinds, (*_CSS_FIELDS, "content"), "other")


def _first_of(kinds: set[str], order: Iterable[str], otherwise: str) -> str:
    return next((kind for kind in order if kind in kinds), otherwise)
