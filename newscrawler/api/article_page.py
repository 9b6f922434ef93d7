"""The page of one article."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from newscrawler.api import text
from newscrawler.api.article_picture import picture_of
from newscrawler.api.asked import ArticleId, Asked
from newscrawler.api.byline import byline_of
from newscrawler.api.data import DataReader, copies_of, moved_to
from newscrawler.api.rendering import error_page, render
from newscrawler.items import FIELDS, Article, unsure
from newscrawler.rawstore import RawNotFound, RawStoreUnavailable
from newscrawler.rawstore.record import RecordError
from newscrawler.store import citation
from newscrawler.store.labels import labels_of
from newscrawler.web import charset

#: Stored articles whose whole text would make the diff of two versions slow are cut
#: here, characters.
DIFF_MOST = 60_000
#: Characters of a stored page that are shown.
SOURCE_MOST = 1_000_000

_LABELLED = tuple(f for f in FIELDS if f.label)
#: What the page of an article shows of a change: what makes a version, and the lists beside it; the
#: text comes last.
_CHANGES_SHOWN = tuple(
    f for f in _LABELLED if f.versioned or (f.compared and f.type == "texts") if f.name != "content"
)


def _labels(article: Article) -> list[dict[str, Any]]:
    """The values of an article by which others are found, each with that search."""
    return [
        {"name": label.text, "link": Asked(labels=((label.key, label.text),)).link()}
        for label in labels_of(article)
        if label.key in ("section", "keyword")
    ]


def _fields(article: Article) -> list[dict[str, Any]]:
    """Where each field came from, best known first."""
    rows: list[dict[str, Any]] = []
    for field in _LABELLED:
        name, label = field.name, field.label
        origin = article.origins.get(name, "")
        value = getattr(article, name)
        if not origin and not value:
            rows.append({"name": label, "origin": "", "has": False, "confidence": None})
            continue
        confidence = article.confidence.get(name)
        percent = None if confidence is None else round(100 * confidence)
        rows.append({"name": label, "origin": origin, "has": True, "confidence": percent})
    return rows


def _changes(versions: list[Article], zone: Any) -> list[dict[str, Any]]:
    """The changes of each version against the one before it, newest first."""
    rows = []
    for old, new in pairwise(versions):
        changes = []
        for field in _CHANGES_SHOWN:
            before, after = getattr(old, field.name), getattr(new, field.name)
            if before != after:
                words = text.changed_words(_line(before, zone), _line(after, zone))
                changes.append(text.Change(field.label, words))
        for part in text.changed_paragraphs(old.content[:DIFF_MOST], new.content[:DIFF_MOST]):
            changes.append(text.Change("Text", part))
        rows.append(
            {"version": new.version, "fetched": text.moment(new.fetched, zone), "changes": changes}
        )
    rows.reverse()
    return rows


def _line(value: Any, zone: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return value if isinstance(value, str) else text.moment(value, zone)


def add_article(app: FastAPI, reader: DataReader) -> None:
    @app.get("/article/{article_id}", include_in_schema=False)
    async def article_page(article_id: ArticleId) -> Response:
        return await _article_page(article_id, reader)

    @app.get("/article/{article_id}/source", include_in_schema=False)
    async def source_page(article_id: ArticleId) -> Response:
        return await _source_page(article_id, reader)


async def _article_page(article_id: str, reader: DataReader) -> Response:
    store = reader.deps.store
    article = await store.get(article_id.lower())
    if article is None:
        return error_page(404, "There is no article with this id.")
    byline = byline_of(article, reader)
    facts = reader.deps.sites.get(article.site)
    zone = text.zone_of(facts.zone) if facts else text.UTC
    versions = await store.versions(article.id) if article.version > 1 else [article]
    near = await copies_of(article, store)
    return render(
        "article.html",
        article=article,
        byline=byline,
        url=text.web_url(article.url),
        paragraphs=_paragraphs(article),
        image=text.web_url(article.image),
        picture=picture_of(article, reader),
        has_source=bool(article.raw_ref) and reader.deps.raw is not None,
        modified=text.moment(article.modified, zone),
        discovered=text.moment(article.discovered, zone),
        fetched=text.moment(article.fetched, zone),
        fields=_fields(article),
        # With the percentage of such values that are right.
        unsure={name: round(100 * article.confidence[name]) for name in unsure(article)},
        labels=_labels(article),
        people=[
            {"name": n, "link": Asked(labels=(("author", n),)).link()} for n in article.authors
        ],
        citation=citation.cite(article, "apa", byline["site_name"], zone),
        styles=citation.STYLES[1:],
        versions=_changes(versions, zone),
        near=[{"id": a.id, "title": a.title, **byline_of(a, reader)} for a in near],
        related=[
            {"id": a.id, "title": a.title, **byline_of(a, reader)}
            for a in await store.related(article.id)
        ],
        moved_to=moved_to(article, near),
        is_first=article.cluster == article.id,
        asked=Asked(),
    )


def _paragraphs(article: Article) -> list[dict[str, Any]]:
    subheadings = set(article.subheadings)
    return [
        {"text": one, "is_heading": one in subheadings}
        for one in article.content.split("\n\n")
        if one.strip()
    ]


async def _source_page(article_id: str, reader: DataReader) -> Response:
    """The page that the article was read from, as text: its markup is never rendered."""
    article = await reader.deps.store.get(article_id.lower())
    if article is None:
        return error_page(404, "There is no article with this id.")
    raw = reader.deps.raw
    if raw is None or not article.raw_ref:
        return error_page(404, "The page of this article is not kept.")
    try:
        found = await asyncio.to_thread(raw.read, article.raw_ref)
    except (RawNotFound, RecordError):
        return error_page(404, "The page of this article is not kept any more.")
    except RawStoreUnavailable as exc:
        return error_page(503, str(exc))
    source = await asyncio.to_thread(charset.decode, found.body, found.content_type)
    facts = reader.deps.sites.get(article.site)
    zone = text.zone_of(facts.zone) if facts else text.UTC
    return render(
        "source.html",
        article=article,
        url=found.url,
        status=found.status,
        fetched=text.moment(found.fetched, zone),
        size=len(found.body),
        source=source[:SOURCE_MOST],
        is_cut=len(source) > SOURCE_MOST,
    )
