"""A page to its fields: selector set, then what the page says of itself, then the generic chain. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

from newscrawler.extraction import authors, bylines, credits, dates, doubts, generic, published, title, witnesses
from newscrawler.extraction import selectors as selectors_
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.kinds import STUB_CHARS, why_not
from newscrawler.extraction.text import clean_line
from newscrawler.extraction.vietnamese import strip_sapo_prefix
from newscrawler.items import FieldValue
from newscrawler.pickling import by_fields

__all__ = [
    "FIELD_NAMES",
    "STUB_CHARS",
    "Extraction",
    "PageContext",
    "article_values",
    "extract",
    "prediction",
    "why_not",
]

FIELD_NAMES = (
    "title",
    "content",
    "published",
    "modified",
    "authors",
    "credits",
    "summary",
    "section",
    "image",
    "language",
    "canonical_url",
)


def article_values(found: Extraction) -> dict[str, Any]:
    """What an :class:`~newscrawler.items.Article` takes of an extraction: its fields, where each came from, how sure it is."""
    fields = {name: getattr(found, name) for name in FIELD_NAMES}
    values = {name: f.value for name, f in fields.items()}
    values["authors"] = values["authors"] or []
    values["credits"] = values["credits"] or []
    return {
        **values,
        "origins": {name: f.origin for name, f in fields.items() if f.value},
        "confidence": {name: round(f.confidence, 3) for name, f in fields.items() if f.value},
        "selector_version": found.selector_version,
    }


def _none() -> FieldValue:
    return FieldValue(None)


@by_fields
@dataclass(slots=True)
class Extraction:
    """Every field with its origin; ``value`` None (authors: []) where the page does not have it.

    ``published`` and ``modified`` are aware datetimes; ``published_day_only`` says that the hour is not
    known, ``published_zone_assumed`` that neither page nor site tells the zone. ``reason`` says why a page
    is not an article (:mod:`kinds`); "" when it is one.
    ``disagreements``: fields whose selector and witness say different things (their confidence is at most 0.5), or
    that rules found and another good witness of the page contradicts (their confidence is halved).
    """

    title: FieldValue = field(default_factory=_none)
    content: FieldValue = field(default_factory=_none)
    published: FieldValue = field(default_factory=_none)
    modified: FieldValue = field(default_factory=_none)
    authors: FieldValue = field(default_factory=lambda: FieldValue([]))
    credits: FieldValue = field(default_factory=lambda: FieldValue([]))
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
    disagreements: list[str] = field(default_factory=list)


def extract(doc: Document, context: PageContext, selectors: selectors_.SelectorSet | None = None) -> Extraction:
    """Never raises for any page. With a set that gives the content no generic chain runs: it costs ten times more."""
    out = Extraction()
    defined: set[str] = set()
    if selectors is not None:
        found = selectors_.apply(doc, selectors, context)
        for name, value in found.items():
            setattr(out, name, value)
        if found:
            out.selector_version = selectors.label
        defined = selectors_.given(selectors, found)
    by_set = out.content.value is not None
    if not by_set:
        doc = doc.composed()
    if out.title.value is None:
        out.title = title.find(doc, context.site_name, context.title_hint)
    _times(out, doc, context)
    if not out.authors.value:
        if by_set and "authors" in defined:  # the set knows where names stand; only JSON-LD may add one
            names = authors.clean(witnesses.of(doc).authors_raw, context.site_name, title.site_names(doc))
            out.authors = FieldValue(names, "json-ld" if names else "", 0.8 if names else 0.0)
        else:
            out.authors = bylines.find(doc, context)
    if not by_set:
        out.content = _without_byline(generic.content(doc, out.title.value), out.authors.value)
        if out.content.value and not out.title.origin.startswith("selector:"):
            out.title = title.above_text(doc, out.content.value, out.title, context.site_name)
    out.credits = credits.find(doc, context, out.authors.value, out.content.value)
    _rest(out, doc, context)
    if by_set:
        _compare(out, doc, context)
    out.reason = why_not(out, doc, context)
    out.is_article = not out.reason
    if out.is_article and not by_set:
        _doubt(out, doc, context)
    return out


def _without_byline(content: FieldValue, names: list[str]) -> FieldValue:
    """Who wrote it is a field of its own: a first paragraph that is nothing but an author's name is off."""
    first, blank, rest = (content.value or "").partition("\n\n")
    if not blank or len(first) > 60 or authors.key(first) not in map(authors.key, names):
        return content
    lead, blank, text = rest.partition("\n\n")
    return FieldValue(strip_sapo_prefix(lead) + blank + text, content.origin, content.confidence)


def _times(out: Extraction, doc: Document, context: PageContext) -> None:
    if out.published.value is not None:
        out.published_day_only = out.published.origin.endswith(selectors_.DAY_ONLY)
        raw = published.modified_of(doc, context)
        if out.modified.value is None and raw is not None:
            out.modified = FieldValue(raw.when.value, raw.origin, round(raw.trust, 2))
        return
    times = published.find(doc, context)
    if times.published is not None:
        when = times.published.when
        out.published = FieldValue(when.value, times.published.origin, round(times.published.trust, 2))
        out.published_day_only = not when.has_time
        out.published_zone_assumed = not when.has_zone
    if times.modified is not None and out.modified.value is None:
        out.modified = FieldValue(times.modified.when.value, times.modified.origin, round(times.modified.trust, 2))


def _rest(out: Extraction, doc: Document, context: PageContext) -> None:
    """Summary, section, image, language, canonical address: from the page's own statements only."""
    seen = witnesses.of(doc)
    for name, from_ld, metas in (
        ("summary", seen.description, ("og:description", "description", "twitter:description")),
        ("section", seen.section, ("article:section", "og:article:section", "parsely-section", "sailthru.section")),
        ("image", seen.image, ("og:image", "og:image:url", "twitter:image", "twitter:image:src")),
    ):
        if getattr(out, name).value is not None:
            continue
        meta = doc.meta_first(*metas)
        raw, origin = (meta, "meta") if meta else (from_ld, "json-ld")
        value = clean_line(" ".join((raw or "").split()))
        if name == "summary":
            value = strip_sapo_prefix(value)
        if value and name == "image":
            value = _absolute(doc, value)
        if value:
            setattr(out, name, FieldValue(value, origin, 0.8))
    image = out.image.value
    if isinstance(image, str) and not image.startswith("http"):
        absolute = _absolute(doc, image)
        out.image = FieldValue(absolute or None, out.image.origin, out.image.confidence if absolute else 0.0)
    if doc.lang or context.language:
        out.language = FieldValue(doc.lang or context.language, "html" if doc.lang else "site", 0.8)
    if doc.canonical:
        out.canonical_url = FieldValue(doc.canonical, "link", 0.9)


def _absolute(doc: Document, address: str) -> str:
    try:
        joined = urljoin(doc.base_url, address)
    except ValueError:
        return ""
    return joined if joined.startswith(("http://", "https://")) else ""


def _compare(out: Extraction, doc: Document, context: PageContext) -> None:
    """A set's title and date against the page's own statements."""
    seen = witnesses.of(doc)
    said = [v for v in (seen.headline, doc.meta_first("og:title")) if v]
    if out.title.value and said and max(title.agreement(out.title.value, title.clean(v)) for v in said) < 0.5:
        _disagrees(out, "title")
    if isinstance(out.published.value, datetime) and out.published.origin.startswith("selector:"):
        how = published.rules_for(doc, context)
        stated = [w for raw in seen.published_raw[:1] if (w := dates.parse(raw, how))]
        if stated and abs((stated[0].value - out.published.value).total_seconds()) > 36 * 3600:
            _disagrees(out, "published")


def _disagrees(out: Extraction, name: str) -> None:
    out.disagreements.append(name)
    value = getattr(out, name)
    setattr(out, name, FieldValue(value.value, value.origin, min(value.confidence, 0.5)))


def _doubt(out: Extraction, doc: Document, context: PageContext) -> None:
    """What rules found against the page's other good witnesses; behind everything that asks how sure a field is."""
    if out.title.value and not out.title.origin.startswith("selector:"):
        if doubts.title_contested(doc, out.title.value, context.site_name):
            _contested(out, "title")
    if isinstance(out.published.value, datetime) and not out.published.origin.startswith("selector:"):
        if doubts.date_contested(doc, context, out.published, out.published_day_only):
            _contested(out, "published")


def _contested(out: Extraction, name: str) -> None:
    out.disagreements.append(name)
    value = getattr(out, name)
    setattr(out, name, FieldValue(value.value, value.origin, value.confidence / 2))


def prediction(found: Extraction) -> dict[str, Any]:
    """The fields that are scored, as plain values; a time without a known zone is printed without one, a day without
    an hour as midnight on the site's clock, which is what is stored.

    ``authors``: whom the page credits, people first, as gold data count them; ``people`` and ``credits`` apart as stored.
    """
    when = found.published.value
    text = None
    if when is not None:
        text = (when.replace(tzinfo=None) if found.published_zone_assumed else when).isoformat()
    return {
        "title": found.title.value,
        "content": found.content.value,
        "authors": [*found.authors.value, *found.credits.value],
        "people": found.authors.value,
        "credits": found.credits.value,
        "published": text,
    }
