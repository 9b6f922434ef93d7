"""A page to its fields: selector set, then what the page says of itself, then the
generic chain. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

from newscrawler.extraction import (
    agreement,
    authors,
    calibration,
    credits,
    dates,
    field_conflicts,
    generic,
    keywords,
    language,
    metadata_rules,
    page_metadata,
    pictures,
    published,
    subheadings,
    title,
)
from newscrawler.extraction import selectors as selectors_
from newscrawler.extraction.author_choice import find as author_find
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.kinds import STUB_CHARS, why_not
from newscrawler.extraction.result import Extraction
from newscrawler.extraction.text import clean_line
from newscrawler.extraction.vietnamese import without_paper_name
from newscrawler.items import FIELDS, READ, Field, FieldValue

__all__ = [
    "STUB_CHARS",
    "Extraction",
    "PageContext",
    "article_values",
    "extract",
    "prediction",
    "statements",
    "why_not",
]

_LISTS = tuple(f.name for f in FIELDS if f.read and f.type == "texts")
#: One line of text or one address, which pages state in their metadata.
_STATED = tuple(f for f in FIELDS if f.type in ("text", "code") and (f.meta or f.json_ld))


#: Origins of a title that is not compared with the text.
_GIVEN = ("selector:", metadata_rules.ORIGIN)
#: Origins whose confidence stays as it is: calibration is measured on what rules read on pages.
_NOT_MEASURED = (*_GIVEN, "feed", "llm")

#: Fields of several values have rules of their own for what the places of a page state.
_LISTS_STATED: dict[str, Callable[[Document], Iterable[tuple[str, Any]]]] = {
    "keywords": keywords.statements
}


def statements(doc: Document, field: Field) -> list[tuple[str, Any]]:
    """``(origin, value)`` of the places of a page that state a field, best first: for
    scores without gold."""
    if rule := _LISTS_STATED.get(field.name):
        return list(rule(doc))
    return list(page_metadata.stated(doc, field))


def article_values(found: Extraction) -> dict[str, Any]:
    """What an :class:`~newscrawler.items.Article` takes of an extraction: its fields, where each
    came from, how sure it is."""
    fields = {name: getattr(found, name) for name in READ}
    return {
        **{name: f.value for name, f in fields.items()},
        **{name: fields[name].value or [] for name in _LISTS},
        "origins": {name: f.origin for name, f in fields.items() if f.value},
        "confidence": {name: round(f.confidence, 3) for name, f in fields.items() if f.value},
        "selector_version": found.selector_version,
    }


def extract(
    doc: Document,
    context: PageContext,
    selectors: selectors_.SelectorSet | None = None,
    *,
    calibrated: bool = True,
) -> Extraction:
    """Never raises for any page. With a set that gives the content no generic chain runs:
    it costs ten times more.

    ``calibrated=False``: title, publication and text keep the confidence of the rules, which only
        orders their answers.
    """
    out = Extraction()
    defined = set() if selectors is None else _apply_set(out, doc, context, selectors)
    _apply_rules(out, doc, context)
    by_set = out.content.value is not None
    if not by_set:
        doc = doc.composed()
    if out.title.value is None:
        out.title = title.find(doc, context.site_name, context.title_hint)
    _times(out, doc, context)
    if not out.authors.value:
        knows_names = by_set and "authors" in defined  # where they stand: only JSON-LD may add one
        out.authors = _stated(doc, context) if knows_names else author_find.find(doc, context)
    if not by_set:
        _find_content(out, doc, context)
    out.credits = credits.find(doc, context, out.authors.value, out.content.value)
    _rest(out, doc, context)
    if by_set:
        _compare(out, doc, context)
    out.reason = why_not(out, doc, context)
    out.is_article = not out.reason
    if out.is_article:  # what is not stored needs no language of its text
        out.language = language.find(out.title.value, out.content.value, out.language)
        out.keywords = keywords.find(doc, context, out)
        out.subheadings = subheadings.find(doc, out.content.value or "")
        out.pictures = pictures.find(doc, out.content, selectors)
        if not by_set:
            _doubt(out, doc, context)
    if calibrated:
        calibrate(out)
    return out


def calibrate(out: Extraction) -> None:
    """Once, behind everything that asks how sure the rules are."""
    for name in calibration.CALIBRATED:
        value = getattr(out, name)
        if name == "credits" and out.authors.value:
            continue  # nobody has noted which bodies a page credits beside people
        if value.value and not value.origin.startswith(_NOT_MEASURED):
            setattr(out, name, calibration.calibrated(name, value, out.disagreements))


def _apply_set(
    out: Extraction, doc: Document, context: PageContext, selectors: selectors_.SelectorSet
) -> set[str]:
    """Fills in what the set finds; the fields that it has selectors for on such a page."""
    found = selectors_.apply(doc, selectors, context)
    for name, value in found.items():
        setattr(out, name, value)
    if found:
        out.selector_version = selectors.label
    return selectors_.given(selectors, found)


def _find_content(out: Extraction, doc: Document, context: PageContext) -> None:
    """Fills in the content, and the title that only its place tells."""
    out.content = _without_byline(generic.content(doc, out.title.value), out.authors.value)
    if out.content.value and not out.title.origin.startswith(_GIVEN):
        out.title = title.above_text(doc, out.content.value, out.title, context.site_name)


def _apply_rules(out: Extraction, doc: Document, context: PageContext) -> None:
    for name, value in metadata_rules.stated(context.rules, doc).items():
        if not getattr(out, name).value:
            setattr(out, name, value)


def _stated(doc: Document, context: PageContext) -> FieldValue:
    """The authors that JSON-LD names."""
    names = agreement.clean(doc, context, page_metadata.of(doc).authors_raw, title.site_names(doc))
    return FieldValue(names, "json-ld", 0.8) if names else FieldValue(names)


def _without_byline(content: FieldValue, names: list[str]) -> FieldValue:
    """Who wrote it is a field of its own: a first paragraph that is nothing but an
    author's name is off."""
    first, blank, rest = (content.value or "").partition("\n\n")
    if not blank or len(first) > 60 or authors.key(first) not in map(authors.key, names):
        return content
    lead, blank, text = rest.partition("\n\n")
    return FieldValue(without_paper_name(lead) + blank + text, content.origin, content.confidence)


def _times(out: Extraction, doc: Document, context: PageContext) -> None:
    if out.published.value is not None:
        out.published_day_only = out.published.origin.endswith(selectors_.DAY_ONLY)
        if out.published_day_only:
            _with_clock(out, doc, context)
        raw = published.modified_of(doc, context)
        if out.modified.value is None and raw is not None:
            out.modified = FieldValue(raw.when.value, raw.origin, round(raw.trust, 2))
        return
    times = published.find(doc, context)
    if times.published is not None:
        when = times.published.when
        out.published = FieldValue(
            when.value, times.published.origin, round(times.published.trust, 2)
        )
        out.published_day_only = not when.has_time
        out.published_zone_assumed = not when.has_zone
    if times.modified is not None and out.modified.value is None:
        out.modified = FieldValue(
            times.modified.when.value, times.modified.origin, round(times.modified.trust, 2)
        )


def _with_clock(out: Extraction, doc: Document, context: PageContext) -> None:
    """A day that a set has read never replaces a minute: what the page states is better, or the set
    reads another date, such as the clock in a site's header."""
    stated = next((s for s in published.good_sources(doc, context) if s.when.has_time), None)
    if stated is not None:
        out.published = FieldValue(stated.when.value, stated.origin, round(stated.trust, 2))
        out.published_day_only = False
        out.published_zone_assumed = not stated.when.has_zone


def _rest(out: Extraction, doc: Document, context: PageContext) -> None:
    """Summary, section, image, language, canonical address: from the page's own statements only."""
    for field in _STATED:
        if getattr(out, field.name).value is not None:
            continue
        origin, raw = next(page_metadata.stated(doc, field), ("", ""))
        value = clean_line(" ".join(raw.split()))
        if field.name == "summary":
            value = without_paper_name(value)
        elif field.name == "image" and value:
            value = _absolute(doc, value)
        if value:
            setattr(out, field.name, FieldValue(value, origin, 0.8))
    image = out.image
    if isinstance(image.value, str) and not image.value.startswith("http"):
        absolute = _absolute(doc, image.value)
        sure = image.confidence if absolute else 0.0
        out.image = FieldValue(absolute or None, image.origin, sure)
    out.language = language.stated(doc, context)
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
    seen = page_metadata.of(doc)
    said = [v for v in (seen.headline, doc.meta_first("og:title")) if v]
    if out.title.value and said:
        if max(title.agreement(out.title.value, title.clean(v)) for v in said) < 0.5:
            _disagrees(out, "title")
    when = out.published.value
    if isinstance(when, datetime) and out.published.origin.startswith("selector:"):
        how = published.rules_for(doc, context)
        stated = dates.parse(seen.published_raw[0], how) if seen.published_raw else None
        if stated and abs((stated.value - when).total_seconds()) > 36 * 3600:
            _disagrees(out, "published")


def _disagrees(out: Extraction, name: str) -> None:
    out.disagreements.append(name)
    value = getattr(out, name)
    setattr(out, name, FieldValue(value.value, value.origin, min(value.confidence, 0.5)))


def _doubt(out: Extraction, doc: Document, context: PageContext) -> None:
    """What rules found against the page's other good sources; behind everything that asks
    how sure a field is."""
    headline, when = out.title, out.published
    if headline.value and not headline.origin.startswith("selector:"):
        if field_conflicts.title_conflicts(doc, headline.value, context.site_name):
            _note_conflict(out, "title")
    if isinstance(when.value, datetime) and not when.origin.startswith("selector:"):
        if field_conflicts.date_conflicts(doc, context, when, out.published_day_only):
            _note_conflict(out, "published")


def _note_conflict(out: Extraction, name: str) -> None:
    out.disagreements.append(name)
    value = getattr(out, name)
    setattr(out, name, FieldValue(value.value, value.origin, value.confidence / 2))


def prediction(found: Extraction) -> dict[str, Any]:
    """The fields that are scored, as plain values; a time without a known zone is printed without
    one, a day without an hour as midnight on the site's clock, which is what is stored.

    ``authors``: whom the page credits, people first, as gold data count them; ``people`` and
        ``credits`` apart as stored.
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
