"""A search as RSS 2.0, Atom (RFC 4287) and JSON Feed 1.1, newest first.

Only what has all the words as typed: a reader of feeds does not see that a word was corrected.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Annotated, Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import orjson
from fastapi import Depends, FastAPI, Request
from fastapi import Query as Parameter
from fastapi.responses import Response
from starlette.datastructures import URL

from newscrawler.api import models, text
from newscrawler.api.asked import chosen_labels
from newscrawler.api.data import DataReader
from newscrawler.items import Article
from newscrawler.store.base import Hit, Query

MEDIA = {
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "json": "application/feed+json",
}
_TYPES = {form: f"{media}; charset=utf-8" for form, media in MEDIA.items()}
_SCHEMAS = {"rss": "string", "atom": "string", "json": "object"}
SIZE = 50
_ATOM = "http://www.w3.org/2005/Atom"
_DC = "http://purl.org/dc/elements/1.1/"
#: What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ET.register_namespace("atom", _ATOM)
ET.register_namespace("dc", _DC)


@dataclass(frozen=True, slots=True)
class Channel:
    """What a feed says of itself."""

    title: str
    home: str  # the same search as a page
    own: str  # the feed's address
    updated: datetime


def add_feeds(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    for name in MEDIA:
        _add_feed(app, reader, build_query, name)


def _add_feed(
    app: FastAPI, reader: DataReader, build_query: Callable[..., Query], name: str
) -> None:
    @app.get(
        f"/feed.{name}",
        summary="A search as a feed, newest first",
        tags=["articles"],
        operation_id=f"feed_{name}",
        response_class=Response,
        responses={
            **models.errors(400, 422, 429, 503),
            200: {"content": {_TYPES[name]: {"schema": {"type": _SCHEMAS[name]}}}},
            304: {"description": "as before (If-None-Match, If-Modified-Since)"},
        },
    )
    async def feed(
        request: Request,
        q: Annotated[str, Parameter(max_length=2_000)] = "",
        site: Annotated[list[str] | None, Parameter(description="site ids, any of them")] = None,
        labels: Annotated[tuple[tuple[str, str], ...], Depends(chosen_labels)] = (),
    ) -> Response:
        query = build_query(
            q, size=SIZE, sort="date", site=site, labels=labels, mode="keyword",
            zone=reader.deps.zone,
        )  # fmt: skip
        result = await reader.search(replace(query, strict=True, facets=False))
        now, base = reader.now(), reader.deps.base_url(request)
        channel = Channel(
            f"{query.text} – newscrawler" if query.text else "newscrawler",
            _home(base, query),
            _own(base, request.url.remove_query_params("token")),
            max(
                (_changed(hit.article, now) for hit in result.hits),
                default=datetime.fromtimestamp(0, UTC),
            ),
        )
        body = _MADE[name](channel, result.hits)
        return conditional(request, body, _TYPES[name], channel.updated)


def conditional(request: Request, body: bytes, media: str, changed: datetime) -> Response:
    """304 where the reader has it already."""
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Last-Modified": format_datetime(changed, usegmt=True)}
    known = request.headers.get("if-none-match")
    if known is not None:
        same = known.strip() == "*" or tag in re.findall(r'"[^"]*"', known)
    else:
        same = _not_after(changed, request.headers.get("if-modified-since"))
    if same:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media, headers=headers)


def _not_after(changed: datetime, since: str | None) -> bool:
    if not since:
        return False
    try:
        when = parsedate_to_datetime(since)
    except (ValueError, OverflowError):
        return False
    return changed.replace(microsecond=0) <= when.replace(tzinfo=when.tzinfo or UTC)


def _own(base: str, asked: URL) -> str:
    rest = asked.path.lstrip("/") + (f"?{asked.query}" if asked.query else "")
    return f"{base}{rest}"


def _home(base: str, query: Query) -> str:
    values: dict[str, Any] = {"q": query.text, "sort": "date", "site": query.sites}
    for key, value in query.labels:
        values.setdefault(key, []).append(value)
    kept = {name: value for name, value in values.items() if value}
    return f"{base}?{urlencode(kept, doseq=True)}"


def _changed(article: Article, now: datetime) -> datetime:
    """The last that is known to have happened to it, in whole seconds."""
    times = [when for when in (article.fetched, article.published) if when is not None]
    return min(max(times, default=now), now).astimezone(UTC).replace(microsecond=0)


# ---------------------------------------------------------------- the three forms


def _rss(channel: Channel, hits: Sequence[Hit]) -> bytes:
    root = ET.Element("rss", version="2.0")
    top = ET.SubElement(root, "channel")
    _add(top, "title", channel.title)
    _add(top, "link", channel.home)
    _add(top, "description", channel.title)
    _add(top, "lastBuildDate", format_datetime(channel.updated, usegmt=True))
    ET.SubElement(top, f"{{{_ATOM}}}link", href=channel.own, rel="self", type=MEDIA["rss"])
    for hit in hits:
        a = hit.article
        item = ET.SubElement(top, "item")
        # Readers take these two for HTML: the first only where it looks like it.
        _add(item, "title", html.escape(a.title, quote=False) if "<" in a.title else a.title)
        if url := text.web_url(a.url):
            _add(item, "link", url)
        _add(item, "description", html.escape(_short(hit), quote=False))
        _add(item, "guid", _urn(a), isPermaLink="false")
        if a.published:
            _add(item, "pubDate", format_datetime(a.published))
        for author in a.authors:
            _add(item, f"{{{_DC}}}creator", author)
        for keyword in a.keywords:
            _add(item, "category", keyword)
    return _xml(root)


def _atom(channel: Channel, hits: Sequence[Hit]) -> bytes:
    def tag(name: str) -> str:
        return f"{{{_ATOM}}}{name}"

    root = ET.Element(tag("feed"))
    _add(root, tag("id"), channel.own)
    _add(root, tag("title"), channel.title)
    _add(root, tag("updated"), channel.updated.isoformat())
    ET.SubElement(root, tag("link"), href=channel.own, rel="self", type=MEDIA["atom"])
    ET.SubElement(root, tag("link"), href=channel.home, rel="alternate", type="text/html")
    _add(ET.SubElement(root, tag("author")), tag("name"), "newscrawler")
    for hit in hits:
        a = hit.article
        entry = ET.SubElement(root, tag("entry"))
        _add(entry, tag("id"), _urn(a))
        _add(entry, tag("title"), a.title)
        if url := text.web_url(a.url):
            ET.SubElement(entry, tag("link"), href=_clean(url), rel="alternate")
        _add(entry, tag("updated"), _changed(a, channel.updated).isoformat())
        if a.published:
            _add(entry, tag("published"), a.published.isoformat())
        for author in a.authors:
            _add(ET.SubElement(entry, tag("author")), tag("name"), author)
        for keyword in a.keywords:
            ET.SubElement(entry, tag("category"), term=_clean(keyword))
        _add(entry, tag("summary"), _short(hit), type="text")
    return _xml(root)


def _json(channel: Channel, hits: Sequence[Hit]) -> bytes:
    items = []
    for hit in hits:
        a = hit.article
        item: dict[str, Any] = {"id": _urn(a), "title": a.title, "content_text": _short(hit)}
        item |= {
            "url": text.web_url(a.url),
            "date_published": a.published.isoformat() if a.published else None,
            "authors": [{"name": author} for author in a.authors],
            "tags": a.keywords,
            "language": a.language,
        }
        items.append({name: value for name, value in item.items() if value})
    return orjson.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": channel.title,
            "home_page_url": channel.home,
            "feed_url": channel.own,
            "items": items,
        }
    )


_MADE = {"rss": _rss, "atom": _atom, "json": _json}


def _urn(article: Article) -> str:
    return f"urn:newscrawler:article:{article.id}"


def _short(hit: Hit) -> str:
    return hit.article.summary or hit.snippet or hit.article.title


def _add(parent: ET.Element, name: str, value: str, **attributes: str) -> None:
    ET.SubElement(parent, name, attributes).text = _clean(value)


def _clean(value: str) -> str:
    return _NOT_XML.sub("\ufffd", value)


def _xml(root: ET.Element) -> bytes:
    made: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return made
