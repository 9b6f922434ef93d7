"""Why a field has its value: every candidate, where it came from, which one won and on what grounds. Pure; for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from newscrawler.extraction import authors, bylines, dates, generic, published, text, title, witnesses
from newscrawler.extraction import selectors as selectors_
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import FIELD_NAMES, Extraction, extract

_SHOWN_CHARS = 160
#: The fields that have several candidates; of the others the value that was taken is shown.
_BEST = "(best of the page)"
_EXPLAINED = ("title", "published", "authors", "credits", "content")


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate. ``read``: the value after cleaning, None when it was refused; ``won``: the field's value is from it.

    ``note``: what speaks for or against it; trusts are 0 to 1.
    """

    field: str
    origin: str
    raw: str
    read: Any
    won: bool
    note: str = ""


def explain(doc: Document, context: PageContext, selectors: selectors_.SelectorSet | None = None) -> list[Row]:
    """The candidates of each field in the order in which they are asked; the last row says what the page was taken for."""
    found = extract(doc, context, selectors)
    doc = doc.composed()
    rows: list[Row] = []
    if selectors is not None:
        rows += _of_set(doc, context, selectors, found)
    for source in (_titles, _dates, _authors):
        rows += source(doc, context, found)
    rows += _contents(doc, found)
    rows += [
        Row(name, value.origin, str(value.value), value.value, False, f"sure {value.confidence:.2f}")
        for name in FIELD_NAMES
        if name not in _EXPLAINED and (value := getattr(found, name)).value
    ]
    rows = list(_marked(rows, found))
    verdict = "article" if found.is_article else f"not an article: {found.reason}"
    who = "the set contradicts the page" if found.content.origin.startswith("selector:") else "good witnesses differ"
    wrong = f"; {who} in {', '.join(found.disagreements)}" if found.disagreements else ""
    return [*rows, Row("page", found.selector_version or "no set", doc.url, verdict, False, verdict + wrong)]


def _marked(rows: list[Row], found: Extraction) -> Iterator[Row]:
    """One winner a field: the first candidate with the field's value and origin, else the row of the rules' choice."""
    winners: set[str] = set()
    last = {row.field: order for order, row in enumerate(rows)}
    for order, row in enumerate(rows):
        value = getattr(found, row.field)
        same = row.read is not None and row.read == value.value
        is_from = f"{row.origin}:".startswith(f"{value.origin}:")
        won = same and row.field not in winners and (is_from or order == last[row.field])
        if won:
            winners.add(row.field)
        note = row.note or (f"sure {value.confidence:.2f}" if won else "")
        if same and not won and row.raw != _BEST:
            note = f"{note}, the same value" if note else "the same value"
        yield replace(row, raw=_short(row.raw), won=won, note=note)


def _short(value: Any) -> str:
    line = " ".join(str(value).split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"


def _of_set(doc: Document, context: PageContext, selectors: selectors_.SelectorSet, found: Extraction) -> list[Row]:
    rows = []
    for variant in selectors.variants:
        fits = not variant.when or doc.tree.css_first(variant.when) is not None
        note = f"variant {variant.template}" + ("" if fits else f", not for this page: no {variant.when}")
        for name, candidates in variant.fields.items():
            for candidate in candidates:
                raw, read = selectors_.read(doc, name, candidate, context)
                rows.append(Row(name, candidate.origin, " | ".join(raw[:3]), read, False, note))
        for css in variant.content_root:
            headline = found.title.value
            read = selectors_.content_text(doc, css, variant, headline, context.site_name)
            rows.append(Row("content", f"selector:{css}", f"{len(doc.tree.css(css))} nodes", read, False, note))
    return rows


def _titles(doc: Document, context: PageContext, found: Extraction) -> list[Row]:
    hint = context.title_hint
    names = title.site_names(doc, context.site_name) + title.home_links(doc)
    said = title.statements(doc, names, hint)
    rows = []
    for value, what in title.headings(doc, names)[:8]:
        agreed = max(((title.agreement(value, o) * trust, origin) for o, origin, trust in said), default=(0.0, ""))
        note = f"agrees {agreed[0]:.2f} with {agreed[1]}" if agreed[0] > 0 else "no statement agrees"
        rows.append(Row("title", f"generic:{what}", value, value, False, note))
    for value, origin, trust in said:
        others = sum(title.agreement(value, o) > 0.8 for o, _, _ in said) - 1
        rows.append(Row("title", origin, value, value, False, f"trust {trust:.2f}, {others} others say the same"))
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
        parts = [f"trust {stamp.trust:.2f}"]
        parts += ["day only"] if not stamp.when.has_time else [] if stamp.when.has_zone else ["no zone"]
        rows.append(Row("published", stamp.origin, stamp.raw, stamp.when.value, False, ", ".join(parts)))
    stated = [("json-ld", raw) for raw in witnesses.of(doc).published_raw]
    stated += [(f"meta:{name}", raw) for name, raw in witnesses.meta_values(doc, witnesses.PUBLISHED_META)]
    rows += [Row("published", o, raw, None, False, "not a date") for o, raw in stated if dates.parse(raw, how) is None]
    best = published.find(doc, context).published
    value, origin, trust = (best.when.value, best.origin, best.trust) if best else (None, "", 0.0)
    return [*rows, _best("published", origin, value, trust, found)]


def _authors(doc: Document, context: PageContext, found: Extraction) -> Iterator[Row]:
    sites = title.site_names(doc, context.site_name)

    def read(raw: str) -> tuple[list[str] | None, str]:
        names = authors.clean([raw], context.site_name, sites, nicknames=True)
        return (names, "") if names else (None, "no person's name")

    for person in witnesses.of(doc).persons:
        value, note = read(person.name)
        yield Row("authors", f"json-ld:{person.kind or 'text'}", person.name, value, False, note)
    for name, raw in witnesses.meta_values(doc, witnesses.AUTHOR_META):
        value, note = read(raw)
        yield Row("authors", f"meta:{name}", raw, value, False, note)
    seen: set[str] = set()
    for names, origin, trust in bylines.visible_names(doc, context):
        yield Row("authors", origin, ", ".join(names), names, False, f"trust {trust:.2f}")
        seen.update(names)
    for raw in dict.fromkeys(witnesses.of(doc).bylines):
        value, note = read(raw)
        if not seen.intersection(value or ()):
            yield Row("authors", "byline", raw, None, False, note or "not taken: a place of less weight")
    hint = (context.hint or {}).get("authors")
    if isinstance(hint, list):
        value = authors.clean([str(h) for h in hint], context.site_name, sites)
        yield Row("authors", "feed", ", ".join(map(str, hint)), value or None, False, "asked last")
    best = bylines.find(doc, context)
    yield _best("authors", best.origin, best.value, best.confidence, found)
    if found.credits.value:
        yield Row("credits", found.credits.origin, ", ".join(found.credits.value), found.credits.value, False)


def _contents(doc: Document, found: Extraction) -> list[Row]:
    reading = generic.read(doc)
    own = text.content_of(reading.chosen(), found.title.value)
    other = generic.library_text(doc)
    stated = witnesses.of(doc).body
    voted = generic.content(doc, found.title.value)
    rows = [
        Row("content", "generic:blocks", f"{len(own or '')} characters", own, False, "own scoring"),
        Row("content", "generic:trafilatura", f"{len(other or '')} characters", other, False, "the library"),
    ]
    if stated:
        rows.append(Row("content", "json-ld", f"{len(stated)} characters", stated, False, "articleBody"))
    voted_sure = f"{len(voted.value or '')} characters"
    return [*rows, replace(_best("content", voted.origin, voted.value, voted.confidence, found), raw=voted_sure)]
