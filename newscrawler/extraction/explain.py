"""Why a field has its value: every candidate, where it came from, which one won and on what
grounds. Pure; for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from newscrawler.extraction import (
    agreement,
    authors,
    bylines,
    dates,
    generic,
    page_metadata,
    published,
    text,
    title,
)
from newscrawler.extraction import selectors as selectors_
from newscrawler.extraction.author_choice import find as author_find
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from newscrawler.items import READ

_SHOWN_CHARS = 160
#: The fields that have several candidates; of the others the value that was taken is shown.
_BEST = "(best of the page)"
_EXPLAINED = ("title", "published", "authors", "credits", "content")


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate. ``read``: the value after cleaning, None when it was refused; ``won``: the
    field's value is from it.

    ``note``: what speaks for or against it; trusts are 0 to 1.
    """

    field: str
    origin: str
    raw: str
    read: Any
    won: bool
    note: str = ""


def explain(
    doc: Document, context: PageContext, selectors: selectors_.SelectorSet | None = None
) -> list[Row]:
    """The candidates of each field in the order in which they are asked; the last row says what the
    page was taken for."""
    found = extract(doc, context, selectors)
    doc = doc.composed()
    rows: list[Row] = []
    if selectors is not None:
        rows += _of_set(doc, context, selectors, found)
    for source in (_titles, _dates, _authors):
        rows += source(doc, context, found)
    rows += _contents(doc, found)
    rows += [
        Row(
            name, value.origin, str(value.value), value.value, False, f"sure {value.confidence:.2f}"
        )
        for name in READ
        if name not in _EXPLAINED and (value := getattr(found, name)).value
    ]
    rows = list(_marked(rows, found))
    verdict = "article" if found.is_article else f"not an article: {found.reason}"
    who = (
        "the set contradicts the page"
        if found.content.origin.startswith("selector:")
        else "good sources of the page differ"
    )
    wrong = f"; {who} in {', '.join(found.disagreements)}" if found.disagreements else ""
    return [
        *rows,
        Row("page", found.selector_version or "no set", doc.url, verdict, False, verdict + wrong),
    ]


def _marked(rows: list[Row], found: Extraction) -> Iterator[Row]:
    """One winner a field: the first candidate with the field's value and origin, else the row of
    the rules' choice."""
    winners: set[str] = set()
    last = {row.field: order for order, row in enumerate(rows)}
    for order, row in enumerate(rows):
        value = getattr(found, row.field)
        same = row.read is not None and row.read == value.value
        is_from = f"{row.origin}:".startswith(f"{value.origin}:")
        won = same and row.field not in winners and (is_from or order == last[row.field])
        notes = [row.note]
        if won:
            winners.add(row.field)
            notes = [row.note or f"sure {value.confidence:.2f}"]
        elif same and row.raw != _BEST:
            notes.append("the same value")
        yield replace(row, raw=_short(row.raw), won=won, note=", ".join(filter(None, notes)))


def _short(value: Any) -> str:
    line = " ".join(str(value).split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"


def _of_set(
    doc: Document, context: PageContext, selectors: selectors_.SelectorSet, found: Extraction
) -> list[Row]:
    rows = []
    for variant in selectors.variants:
        note = f"variant {variant.template}"
        if variant.when and doc.tree.css_first(variant.when) is None:
            note += f", not for this page: no {variant.when}"
        for name, candidates in variant.fields.items():
            for candidate in candidates:
                raw, read = selectors_.read(doc, name, candidate, context)
                rows.append(Row(name, candidate.origin, " | ".join(raw[:3]), read, False, note))
        for css in variant.content_root:
            headline = found.title.value
            read = selectors_.content_text(doc, css, variant, headline, context.site_name)
            nodes = f"{len(doc.tree.css(css))} nodes"
            rows.append(Row("content", f"selector:{css}", nodes, read, False, note))
    return rows


def _titles(doc: Document, context: PageContext, found: Extraction) -> list[Row]:
    hint = context.title_hint
    names = title.site_names(doc, context.site_name) + title.home_links(doc)
    said = title.statements(doc, names, hint)
    rows = []
    for value, what in title.headings(doc, names)[:8]:
        agreed = [(title.agreement(value, other) * trust, origin) for other, origin, trust in said]
        most, whom = max(agreed, default=(0.0, ""))
        note = f"agrees {most:.2f} with {whom}" if most > 0 else "no statement agrees"
        rows.append(Row("title", f"generic:{what}", value, value, False, note))
    for value, origin, trust in said:
        others = sum(title.agreement(value, o) > 0.8 for o, _, _ in said) - 1
        note = f"trust {trust:.2f}, {others} others say the same"
        rows.append(Row("title", origin, value, value, False, note))
    best = title.find(doc, context.site_name, hint)
    return [*rows, _best("title", best.origin, best.value, best.confidence, found)]


def _best(name: str, origin: str, value: Any, sure: float, found: Extraction) -> Row:
    """What the page's rules come to; a set's value may stand instead."""
    note = f"sure {sure:.2f}" if value else "the page says nothing"
    if value and getattr(found, name).origin.startswith("selector:"):
        note += "; a selector set comes first"
    return Row(name, origin or "-", _BEST, value or None, False, note)


def _dates(doc: Document, context: PageContext, found: Extraction) -> list[Row]:
    how = published.rules_for(doc, context)
    rows = []
    for stamp in published.candidates(doc, context):
        note = f"trust {stamp.trust:.2f}{_lacks(stamp.when)}"
        rows.append(Row("published", stamp.origin, stamp.raw, stamp.when.value, False, note))
    stated = [("json-ld", raw) for raw in page_metadata.of(doc).published_raw]
    metas = page_metadata.meta_values(doc, page_metadata.PUBLISHED_META)
    stated += [(f"meta:{name}", raw) for name, raw in metas]
    for origin, raw in stated:
        if dates.parse(raw, how) is None:
            rows.append(Row("published", origin, raw, None, False, "not a date"))
    best = published.find(doc, context).published
    value, origin, trust = (best.when.value, best.origin, best.trust) if best else (None, "", 0.0)
    return [*rows, _best("published", origin, value, trust, found)]


def _lacks(when: dates.When) -> str:
    """The parts that a time does not say."""
    if not when.has_time:
        return ", day only"
    return "" if when.has_zone else ", no zone"


def _authors(doc: Document, context: PageContext, found: Extraction) -> Iterator[Row]:
    sites = title.site_names(doc, context.site_name)

    def read(origin: str, raw: str) -> Row:
        names = agreement.clean(doc, context, [raw], sites, nicknames=True)
        note = "" if names else "no person's name"
        return Row("authors", origin, raw, names or None, False, note)

    for person in page_metadata.of(doc).persons:
        yield read(f"json-ld:{person.kind or 'text'}", person.name)
    for name, raw in page_metadata.meta_values(doc, page_metadata.AUTHOR_META):
        yield read(f"meta:{name}", raw)
    seen: set[str] = set()
    for names, origin, trust in bylines.visible_names(doc, context):
        yield Row("authors", origin, ", ".join(names), names, False, f"trust {trust:.2f}")
        seen.update(names)
    for raw in dict.fromkeys(page_metadata.of(doc).bylines):
        row = read("byline", raw)
        if not seen.intersection(row.read or ()):
            yield replace(row, read=None, note=row.note or "not taken: a place of less weight")
    hint = (context.hint or {}).get("authors")
    if isinstance(hint, list):
        value = authors.clean([str(h) for h in hint], context.site_name, sites)
        yield Row("authors", "feed", ", ".join(map(str, hint)), value or None, False, "asked last")
    for one, probability in author_find.rated(doc, context):
        kinds = ", ".join(dict.fromkeys(place.kind for place in one.places))
        note = f"probability {probability:.2f}"
        yield Row("authors", "candidate", kinds, [one.name], False, note)
    best = author_find.find(doc, context)
    yield _best("authors", best.origin, best.value, best.confidence, found)
    credited = found.credits
    if credited.value:
        raw = ", ".join(credited.value)
        yield Row("credits", credited.origin, raw, credited.value, False)


def _contents(doc: Document, found: Extraction) -> list[Row]:
    def row(origin: str, value: str | None, note: str) -> Row:
        return Row("content", origin, f"{len(value or '')} characters", value, False, note)

    reading = generic.read(doc)
    own = text.content_of(reading.chosen(), found.title.value)
    other = generic.library_text(doc)
    stated = page_metadata.of(doc).body
    voted = generic.content(doc, found.title.value)
    rows = [
        row("generic:blocks", own, "own scoring"),
        row("generic:trafilatura", other, "the library"),
    ]
    if stated:
        rows.append(row("json-ld", stated, "articleBody"))
    best = _best("content", voted.origin, voted.value, voted.confidence, found)
    return [*rows, replace(best, raw=f"{len(voted.value or '')} characters")]
