"""Why a field has its value: every candidate, where it came from, which one won. Pure; for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from newscrawler.extraction import authors, bylines, dates, generic, published, text, title, witnesses
from newscrawler.extraction import selectors as selectors_
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract

_SHOWN_CHARS = 160


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate. ``read``: the value after cleaning, None when it was refused; ``won``: it is the field's value."""

    field: str
    origin: str
    raw: str
    read: Any
    won: bool


def explain(doc: Document, context: PageContext, selectors: selectors_.SelectorSet | None = None) -> list[Row]:
    """The candidates of title, published, authors and content in the order in which they are asked."""
    found = extract(doc, context, selectors)
    rows: list[Row] = []
    if selectors is not None:
        rows += _of_set(doc, context, selectors, found)
    rows += _titles(doc, context, found)
    rows += _dates(doc, context, found)
    rows += _authors(doc, context, found)
    rows += _contents(doc, found)
    return [_marked(row, found) for row in rows]


def _marked(row: Row, found: Extraction) -> Row:
    value = getattr(found, row.field)
    same = row.read is not None and row.read == value.value
    return Row(row.field, row.origin, _short(row.raw), row.read, same)


def _short(value: Any) -> str:
    line = " ".join(str(value).split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"


def _of_set(doc: Document, context: PageContext, selectors: selectors_.SelectorSet, found: Extraction) -> list[Row]:
    rows = []
    for variant in selectors.variants:
        for name, candidates in variant.fields.items():
            for candidate in candidates:
                raw, read = selectors_.read(doc, name, candidate, context)
                rows.append(Row(name, candidate.origin, " | ".join(raw[:3]), read, False))
        for css in variant.content_root:
            headline = found.title.value
            read = selectors_.content_text(doc, css, variant.content_exclude, headline, context.site_name)
            rows.append(Row("content", f"selector:{css}", f"{len(doc.tree.css(css))} nodes", read, False))
    return rows


def _titles(doc: Document, context: PageContext, found: Extraction) -> list[Row]:
    names = title.site_names(doc, context.site_name)
    names += title.home_links(doc)
    rows = [Row("title", f"generic:{what}", value, value, False) for value, what in title.headings(doc, names)[:8]]
    hint = (context.hint or {}).get("title")
    said = title.statements(doc, names, hint if isinstance(hint, str) else None)
    rows += [Row("title", origin, value, value, False) for value, origin, _ in said]
    best = title.find(doc, context.site_name, hint if isinstance(hint, str) else None)
    rows.append(Row("title", best.origin or "-", "(best of the page)", best.value, False))
    return rows


def _dates(doc: Document, context: PageContext, found: Extraction) -> list[Row]:
    how = published.rules_for(doc, context)
    rows = []
    raws = [("json-ld", raw) for raw in witnesses.of(doc).published_raw]
    raws += [(f"meta:{name}", raw) for name, raw in witnesses.meta_values(doc, witnesses.PUBLISHED_META)]
    for origin, raw in raws:
        when = dates.parse(raw, how)
        rows.append(Row("published", origin, raw, when.value if when else None, False))
    times = published.find(doc, context)
    if times.published is not None:
        rows.append(Row("published", times.published.origin, "(best of the page)", times.published.when.value, False))
    return rows


def _authors(doc: Document, context: PageContext, found: Extraction) -> list[Row]:
    sites = title.site_names(doc, context.site_name)
    rows = [
        Row(
            "authors",
            f"json-ld:{p.kind or 'text'}",
            p.name,
            authors.clean([p.name], context.site_name, sites) or None,
            False,
        )
        for p in witnesses.of(doc).persons
    ]
    for name, raw in witnesses.meta_values(doc, witnesses.AUTHOR_META):
        rows.append(Row("authors", f"meta:{name}", raw, authors.clean([raw], context.site_name, sites) or None, False))
    best = bylines.find(doc, context)
    rows.append(Row("authors", best.origin or "-", "(best of the page)", best.value or None, False))
    if found.credits.value:
        rows.append(Row("credits", found.credits.origin, ", ".join(found.credits.value), found.credits.value, False))
    return rows


def _contents(doc: Document, found: Extraction) -> list[Row]:
    reading = generic.read(doc)
    own = text.content_of(reading.chosen(), found.title.value)
    other = generic.library_text(doc)
    voted = generic.content(doc, found.title.value)
    return [
        Row("content", "generic:blocks", f"{len(own or '')} characters", own, False),
        Row("content", "generic:trafilatura", f"{len(other or '')} characters", other, False),
        Row("content", voted.origin or "-", f"{len(voted.value or '')} characters", voted.value, False),
    ]
