"""A page to its fields: selector set, then witnesses, then the generic chain. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import trafilatura

from newscrawler.extraction import bylines, published, title
from newscrawler.extraction import selectors as selectors_
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

__all__ = ["Extraction", "PageContext", "extract"]


def _none() -> FieldValue:
    return FieldValue(None)


@dataclass(slots=True)
class Extraction:
    """Every field with its origin; ``value`` None (authors: []) where the page does not have it.

    ``published`` and ``modified`` are aware datetimes; ``published_day_only`` says that the hour is not
    known, ``published_zone_assumed`` that the page names no zone. ``reason`` says why a page is not an
    article: "listing", "stub", "challenge", "video", "no title", "no content"; "" when it is one.
    """

    title: FieldValue = field(default_factory=_none)
    content: FieldValue = field(default_factory=_none)
    published: FieldValue = field(default_factory=_none)
    modified: FieldValue = field(default_factory=_none)
    authors: FieldValue = field(default_factory=lambda: FieldValue([]))
    summary: FieldValue = field(default_factory=_none)
    section: FieldValue = field(default_factory=_none)
    image: FieldValue = field(default_factory=_none)
    language: FieldValue = field(default_factory=_none)
    canonical_url: FieldValue = field(default_factory=_none)
    is_article: bool = False
    reason: str = ""
    selector_version: str | None = None
    published_day_only: bool = False
    published_zone_assumed: bool = False


FIELD_NAMES = ("title", "content", "published", "modified", "authors", "summary", "section", "image", "language",
               "canonical_url")


def extract(doc: Document, context: PageContext, selectors: selectors_.SelectorSet | None = None) -> Extraction:
    out = Extraction()
    if selectors is not None:
        for name, value in selectors_.apply(doc, selectors, context).items():
            setattr(out, name, value)
            out.selector_version = selectors.label
    if out.title.value is None:
        out.title = title.find(doc, context.site_name)
    if out.published.value is None or out.modified.value is None:
        _fill_times(out, published.find(doc, context))
    if not out.authors.value:
        out.authors = bylines.find(doc, context)
    if out.content.value is None and doc.lxml is not None:
        text = trafilatura.extract(doc.lxml, include_comments=False, output_format="txt")
        if text:
            out.content = FieldValue(text, "generic:trafilatura", 0.6)
    out.canonical_url = FieldValue(doc.canonical, "link", 0.9) if doc.canonical else FieldValue(None)
    out.is_article = bool(out.title.value and out.content.value)
    out.reason = "" if out.is_article else "no title" if not out.title.value else "no content"
    return out


def _fill_times(out: Extraction, times: published.Times) -> None:
    first, last = times.published, times.modified
    if first is not None and out.published.value is None:
        out.published = FieldValue(first.when.value, first.origin, round(first.trust, 2))
        out.published_day_only = not first.when.has_time
        out.published_zone_assumed = not first.when.has_zone
    if last is not None and out.modified.value is None:
        out.modified = FieldValue(last.when.value, last.origin, round(last.trust, 2))


def prediction(found: Extraction) -> dict[str, Any]:
    """The fields that are scored, as plain values; a time without a known zone is printed without one."""
    when = found.published.value
    text = None
    if when is not None:
        if found.published_day_only:
            text = when.date().isoformat()
        else:
            text = (when.replace(tzinfo=None) if found.published_zone_assumed else when).isoformat()
    return {"title": found.title.value, "content": found.content.value, "authors": found.authors.value,
            "published": text}
