"""Selector sets: schema, safe CSS grammar, executor on the page parsed once. Pure.

A set is one JSON document per domain::

    {"domain": "example.vn", "version": 3, "state": "active",
     "variants": [{"template": "article", "when": "div.detail",
                   "fields": {"title": [{"css": "h1.title"}],
                              "published": [{"css": "time", "attr": "datetime"}, {"kind": "ld"}],
                              "authors": [{"css": ".author a"}],
                              "content": {"root": ["div.detail"], "exclude": [".related"]}}}],
     "provenance": {...}}

``when`` is optional CSS: the variant is for pages that have such a node.

``kind`` is

- ``css`` (the default): a selector;
- ``ld``: the page's JSON-LD;
- ``meta``: a meta element, whose name ``css`` gives;
- ``page``, for a title only: what the page's headings and statements agree on, where no selector
  of its own gives the whole headline.

``content`` may have ``repeats``: how paragraphs begin (60 characters) that stand on most pages and
are no article's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from selectolax.lexbor import LexborNode

from newscrawler.extraction import agreement, dates, lexicon, page_metadata, published, text, title
from newscrawler.extraction import authors as authors_
from newscrawler.extraction.blocks import Block, collapse, walk
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.safe_css import SelectorError, check_css
from newscrawler.items import FIELDS, FieldValue

MAX_CANDIDATES = 8
MAX_VARIANTS = 8
MAX_REPEATS = 20
#: A paragraph is one of the repeats by so many of its first characters: its end may hold a date or
#: a link that changes.
REPEAT_CHARS = 60
#: Characters of a label in front of a value, and hits that are searched for it: a line of an
#: article's text may have one.
MAX_LABEL = 40
_MOST_LINES, _MOST_NODES = 300, 12
#: A line that names who wrote it has few characters, and most of its letters are the names'.
_LINE_CHARS = 120
_LINE_NAMES = 0.6
#: How sure a value is that a set reads, and a day alone. Of sites that were drawn for it 0.99 to
#: 1.00 of the values are right (docs/selectors.md, "Never worse than no set"); real sites have more
#: sorts of pages than those.
_SURE, _SURE_OF_DAY = 0.98, 0.85
STATES = (
    "sampling",
    "candidate",
    "validated",
    "probation",
    "active",
    "drifting",
    "await_admin",
    "disabled",
)
KINDS = ("css", "ld", "meta", "page")
#: The fields that a set may have candidates for, beside the content.
SELECTOR_FIELDS = tuple(f.name for f in FIELDS if f.by_selector)
#: Ends the origin of a date whose hour is not known.
DAY_ONLY = " (day)"
#: Without these a set is of no use.
REQUIRED = ("title", "content")
_META_NAME = re.compile(r"[\w:.\-]{1,80}")
_ATTRIBUTE = re.compile(r"[a-zA-Z_][\w:.\-]{0,60}")
_ANY_BLOCK = re.compile(r"(?:^|[\s>+~,])(?:p|div|li|td|section|h[1-6])(?:\s*,|$)")
_OF_AUTHORS = lexicon.Pattern(r"<class.writer>")
_TYPE_FIRST = re.compile(r"([a-zA-Z][a-zA-Z0-9-]*)((?:[.#][a-zA-Z_][\w-]*)+)")


@dataclass(frozen=True, slots=True)
class Candidate:
    """``label``: of what ``css`` finds, only the text behind this beginning of
    a line ("Author:")."""

    css: str
    attr: str | None = None
    kind: str = "css"
    label: str = ""

    @property
    def origin(self) -> str:
        if self.kind != "css":
            return f"selector:{self.kind}" + (f":{self.css}" if self.css else "")
        parts = [f"selector:{self.css}"]
        if self.attr:
            parts.append(f"@{self.attr}")
        if self.label:
            parts.append(f" {self.label!r}")
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Variant:
    template: str
    when: str | None
    fields: Mapping[str, tuple[Candidate, ...]]
    content_root: tuple[str, ...]
    content_exclude: tuple[str, ...]
    content_repeats: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SelectorSet:
    """A checked set; made by :meth:`from_dict` only."""

    domain: str
    version: int
    state: str
    variants: tuple[Variant, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """``domain@version``, as stored with each article."""
        return f"{self.domain}@{self.version}"

    @classmethod
    def from_dict(cls, data: Any) -> SelectorSet:
        """Raises :class:`SelectorError` at the first thing that is wrong."""
        if not isinstance(data, Mapping):
            raise SelectorError("(document)", f"must be an object, is {type(data).__name__}")
        _only(
            data,
            "(document)",
            ("domain", "version", "state", "variants", "provenance", "notes", "$schema"),
        )
        domain = data.get("domain")
        if not isinstance(domain, str) or not re.fullmatch(
            r"[a-z0-9.\-]{1,253}(?::\d{1,5})?", domain
        ):
            raise SelectorError("domain", f"must be a lower-case host name, is {domain!r}")
        version = data.get("version", 1)
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise SelectorError("version", f"must be a whole number from 1, is {version!r}")
        state = data.get("state", "probation")
        if state not in STATES:
            raise SelectorError("state", f"must be one of {', '.join(STATES)}; is {state!r}")
        raw = data.get("variants")
        if not isinstance(raw, list) or not 1 <= len(raw) <= MAX_VARIANTS:
            raise SelectorError("variants", f"must be a list of 1 to {MAX_VARIANTS} variants")
        variants = tuple(_variant(v, f"variants[{i}]") for i, v in enumerate(raw))
        provenance = data.get("provenance", {})
        if not isinstance(provenance, Mapping):
            raise SelectorError("provenance", "must be an object")
        return cls(domain, version, state, variants, dict(provenance))

    def to_dict(self) -> dict[str, Any]:
        """The document again; ``from_dict(to_dict(s)) == s``."""
        variants = []
        for v in self.variants:
            fields: dict[str, Any] = {
                name: [_candidate_dict(c) for c in cs] for name, cs in v.fields.items()
            }
            fields["content"] = {"root": list(v.content_root), "exclude": list(v.content_exclude)}
            if v.content_repeats:
                fields["content"]["repeats"] = sorted(v.content_repeats)
            variants.append(
                {"template": v.template, **({"when": v.when} if v.when else {}), "fields": fields}
            )
        return {
            "domain": self.domain,
            "version": self.version,
            "state": self.state,
            "variants": variants,
            "provenance": dict(self.provenance),
        }


def _candidate_dict(c: Candidate) -> dict[str, Any]:
    more = {"attr": c.attr, "kind": c.kind if c.kind != "css" else None, "label": c.label}
    return {"css": c.css, **{name: value for name, value in more.items() if value}}


def _only(data: Mapping[str, Any], where: str, allowed: tuple[str, ...]) -> None:
    extra = sorted(set(map(str, data)) - set(allowed))
    if extra:
        raise SelectorError(where, f"unknown key {extra[0]!r}; known are {', '.join(allowed)}")


def _variant(raw: Any, where: str) -> Variant:
    raw = _object(raw, where, ("template", "when", "fields", "template_sig", "notes"))
    template = raw.get("template", "article")
    if not isinstance(template, str) or not 1 <= len(template) <= 100:
        raise SelectorError(f"{where}.template", "must be a name of 1 to 100 characters")
    when = raw.get("when")
    if when is not None:
        check_css(when, f"{where}.when")
    fields = _object(raw.get("fields"), f"{where}.fields", (*SELECTOR_FIELDS, "content"))
    for name in REQUIRED:
        if not fields.get(name):
            raise SelectorError(f"{where}.fields.{name}", "is missing")
    at = f"{where}.fields.content"
    if not isinstance(fields["content"], Mapping):
        raise SelectorError(at, 'must be {"root": [css], "exclude": [css]}')
    content = _object(fields["content"], at, ("root", "exclude", "repeats", "mode"))
    root = _css_list(content.get("root"), f"{at}.root", at_least=1)
    exclude = _css_list(content.get("exclude", []), f"{at}.exclude", at_least=0, at_most=40)
    repeats = _repeats(content.get("repeats", []), f"{at}.repeats")
    given = [name for name in SELECTOR_FIELDS if name in fields]
    parsed = {name: _candidates(fields[name], f"{where}.fields.{name}") for name in given}
    return Variant(template, when, parsed, root, exclude, repeats)


def _object(raw: Any, where: str, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise SelectorError(where, "must be an object")
    _only(raw, where, allowed)
    return raw


def _repeats(raw: Any, where: str) -> frozenset[str]:
    if not isinstance(raw, list) or len(raw) > MAX_REPEATS:
        raise SelectorError(where, f"must be a list of up to {MAX_REPEATS} paragraphs")
    for i, line in enumerate(raw):
        if not isinstance(line, str) or not line:
            raise SelectorError(f"{where}[{i}]", "must be the beginning of a paragraph")
    return frozenset(line[:REPEAT_CHARS] for line in raw)


def _css_list(
    raw: Any, where: str, at_least: int, at_most: int = MAX_CANDIDATES
) -> tuple[str, ...]:
    if isinstance(raw, str):
        raw = [raw]
    if not isinstance(raw, list) or not at_least <= len(raw) <= at_most:
        raise SelectorError(where, f"must be a list of {at_least} to {at_most} selectors")
    for i, css in enumerate(raw):
        check_css(css, f"{where}[{i}]")
    return tuple(raw)


def _candidates(raw: Any, where: str) -> tuple[Candidate, ...]:
    if not isinstance(raw, list) or len(raw) > MAX_CANDIDATES:
        raise SelectorError(where, f"must be a list of up to {MAX_CANDIDATES} candidates")
    return tuple(_candidate(item, f"{where}[{i}]", where) for i, item in enumerate(raw))


def _candidate(item: Any, at: str, where: str) -> Candidate:
    if isinstance(item, str):
        item = {"css": item}
    if not isinstance(item, Mapping):
        raise SelectorError(at, 'must be {"css": ..., "attr": ..., "kind": ...}')
    _only(item, at, ("css", "attr", "kind", "label", "score", "origin"))
    kind, css = item.get("kind") or "css", item.get("css") or ""
    _check_kind(kind, css, at, where)
    attr = item.get("attr")
    if attr is not None and not _is_word(attr, _ATTRIBUTE):
        raise SelectorError(f"{at}.attr", f"is not the name of an attribute: {attr!r}")
    label = item.get("label") or ""
    is_short = isinstance(label, str) and len(label) <= MAX_LABEL
    if not is_short or (label and (kind != "css" or attr)):
        raise SelectorError(
            f"{at}.label", f"must be up to {MAX_LABEL} characters that a text begins with"
        )
    return Candidate(css, attr, kind, label)


def _check_kind(kind: Any, css: Any, at: str, where: str) -> None:
    if kind not in KINDS:
        raise SelectorError(f"{at}.kind", f"must be one of {', '.join(KINDS)}; is {kind!r}")
    if kind == "css":
        check_css(css, f"{at}.css")
    elif kind == "page" and not where.endswith(".title"):
        raise SelectorError(f"{at}.kind", "page is for a title only")
    elif kind == "meta" and not _is_word(css, _META_NAME):
        raise SelectorError(f"{at}.css", "for kind meta must be the name of a meta element")


def _is_word(value: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


# ---------------------------------------------------------------- the executor
def apply(
    doc: Document, selectors: SelectorSet, context: PageContext | None = None
) -> dict[str, FieldValue]:
    """Every field that the set finds, by name; a field it does not find is absent.

    Of the variants whose ``when`` holds, the first that gives title and content wins, else the one
    that gives most. Times are aware.
    """
    context = context or PageContext()
    best: dict[str, FieldValue] = {}
    for variant in selectors.variants:
        if variant.when and doc.tree.css_first(variant.when) is None:
            continue
        found = _apply_variant(doc, variant, context)
        if all(name in found for name in REQUIRED):
            return found
        if len(found) > len(best):
            best = found
    return best


def given(selectors: SelectorSet, found: Mapping[str, FieldValue]) -> set[str]:
    """Fields that the variant which read a page has selectors for: other templates'
    variants say nothing about it.

    ``found``: what :func:`apply` gave. Of variants with the same root, the fields
        that all of them have.
    """
    used = selectors.variants
    if len(used) > 1 and "content" in found:
        origin = found["content"].origin
        used = tuple(v for v in used if any(f"selector:{css}" == origin for css in v.content_root))
    return set.intersection(*(set(v.fields) for v in used)) if used else set()


def _apply_variant(doc: Document, variant: Variant, context: PageContext) -> dict[str, FieldValue]:
    found: dict[str, FieldValue] = {}
    for name, candidates in variant.fields.items():
        for candidate in candidates:
            value = _READERS.get(name, _read_text)(doc, candidate, context)
            if isinstance(value, dates.When):
                # The origin says so when the page tells the day alone.
                origin = candidate.origin + ("" if value.has_time else DAY_ONLY)
                found[name] = FieldValue(
                    value.value, origin, _SURE if value.has_time else _SURE_OF_DAY
                )
                break
            if isinstance(value, FieldValue):  # kind page: as sure as the page itself lets one be
                found[name] = FieldValue(value.value, candidate.origin, value.confidence)
                break
            if value:
                found[name] = FieldValue(value, candidate.origin, _SURE)
                break
    headline = found.get("title", FieldValue(None)).value
    for css in variant.content_root:
        body = content_text(doc, css, variant, headline, context.site_name)
        if body:
            found["content"] = FieldValue(body, f"selector:{css}", _SURE)
            break
    return found


def read(
    doc: Document, name: str, candidate: Candidate, context: PageContext
) -> tuple[list[str], Any]:
    """What one candidate finds: ``(texts as they stand, value or None)``; for the
    gate and for --explain."""
    raw = [] if candidate.kind in ("ld", "page") else _texts(doc, candidate)
    value = _READERS.get(name, _read_text)(doc, candidate, context)
    return raw, (value.value if isinstance(value, (dates.When, FieldValue)) else value) or None


def content_text(
    doc: Document,
    root_css: str,
    variant: Variant,
    headline: str | None = None,
    site_name: str | None = None,
) -> str | None:
    """The cleaned paragraphs below the nodes that match ``root_css``, in page order;
    None when too short."""
    roots = outermost(doc.tree.css(cheap(root_css)))
    blocks: list[Block] = []
    for root in roots:
        skip: set[int] = set()
        for css in variant.content_exclude:
            skip.update(node.mem_id for node in root.css(cheap(css)))
        skip.discard(root.mem_id)
        blocks.extend(walk(root, skip))
    body = text.content_of(blocks, headline, site_name)
    if body and variant.content_repeats:
        body = "\n\n".join(
            p for p in body.split("\n\n") if p[:REPEAT_CHARS] not in variant.content_repeats
        )
    return body or None


def outermost(nodes: list[LexborNode]) -> list[LexborNode]:
    """Of the first 200 nodes those that stand in no other."""
    if len(nodes) < 2:
        return nodes
    ids = {n.mem_id for n in nodes}
    kept = []
    for node in nodes[:200]:
        parent = node.parent
        while parent is not None and parent.mem_id not in ids:
            parent = parent.parent
        if parent is None:
            kept.append(node)
    return kept


@lru_cache(maxsize=4096)
def cheap(css: str) -> str:
    """The same selector with the type behind the class: lexbor compares names of elements
    as text, of every one."""
    match = _TYPE_FIRST.fullmatch(css)
    return f"{match[2]}:is({match[1]})" if match else css


def _texts(doc: Document, candidate: Candidate) -> list[str]:
    if candidate.kind == "meta":
        return doc.meta.get(candidate.css.lower(), [])
    nodes = doc.tree.css(cheap(candidate.css))[: _MOST_LINES if candidate.label else _MOST_NODES]
    return [value for node in nodes if (value := _text_of(node, candidate))]


def _each_text(doc: Document, candidate: Candidate) -> Iterator[str]:
    """The same one after the other, for readers of one value: the first node costs a fraction of a
    walk over the page."""
    if candidate.kind != "meta" and not candidate.label:
        first = doc.tree.css_first(cheap(candidate.css))
        if first is None:
            return
        if value := _text_of(first, candidate):
            yield value
        for node in doc.tree.css(cheap(candidate.css))[1:_MOST_NODES]:
            if value := _text_of(node, candidate):
                yield value
    else:
        yield from _texts(doc, candidate)


def _text_of(node: LexborNode, candidate: Candidate) -> str:
    label = candidate.label
    if candidate.attr:
        value = node.attributes.get(candidate.attr) or ""
    else:
        value = node.text(deep=True, separator=" ") if node.first_child is not None else ""
    value = collapse(value)
    if label:
        return value[len(label) :].lstrip() if value.startswith(label) else ""
    return value


def _read_title(
    doc: Document, candidate: Candidate, context: PageContext
) -> str | FieldValue | None:
    if candidate.kind == "page":
        found = title.find(doc, context.site_name, context.title_hint)
        return found if found.value else None
    if candidate.kind == "ld":
        value = page_metadata.of(doc).headline
        return title.clean(value, context.site_name) if value else None
    for raw in _each_text(doc, candidate):
        value = title.clean(raw, context.site_name)
        if value and title.has_shape(value, context.site_name):
            return value
    return None


def _first_date(doc: Document, raw: Iterable[str], context: PageContext) -> dates.When | None:
    how = published.rules_for(doc, context)
    read = (dates.parse(value, how) for value in raw)
    return next((when for when in read if when and not dates.is_placeholder(when)), None)


def _read_date(doc: Document, candidate: Candidate, context: PageContext) -> dates.When | None:
    ld = candidate.kind == "ld"
    return _first_date(
        doc, page_metadata.of(doc).published_raw if ld else _each_text(doc, candidate), context
    )


def _read_modified(doc: Document, candidate: Candidate, context: PageContext) -> dates.When | None:
    ld = candidate.kind == "ld"
    return _first_date(
        doc, page_metadata.of(doc).modified_raw if ld else _each_text(doc, candidate), context
    )


def _read_authors(doc: Document, candidate: Candidate, context: PageContext) -> list[str]:
    if candidate.kind == "ld":
        return agreement.clean(doc, context, page_metadata.of(doc).authors_raw)
    raw = _texts(doc, candidate)
    if _is_by_place(candidate):  # that may hold a line of the text
        raw = [line for line in raw if is_line_of_names(line, context.site_name)]
    names = authors_.clean(raw, context.site_name)
    if (
        names != raw
    ):  # refused or changed: unless the page states it elsewhere as it is written here
        names = agreement.clean(doc, context, raw)
    if not names:
        page_metadata.of(doc).bylines += raw  # perhaps an agency: extraction.credits
    return names


def _is_by_place(candidate: Candidate) -> bool:
    """By a label, a position, or as any paragraph or box in something that is not named after
    authors ("article > div", "div.main p")."""
    if candidate.label or ":first-child" in candidate.css:
        return True
    if candidate.kind != "css" or _OF_AUTHORS.search(candidate.css):
        return False
    return _ANY_BLOCK.search(candidate.css) is not None


def is_line_of_names(line: str, site_name: str | None = None) -> bool:
    """Nothing but people's names, with a role at most; not a sentence that names somebody."""
    if len(line) > _LINE_CHARS:
        return False
    letters = sum(c.isalpha() for c in line)
    named = sum(c.isalpha() for name in authors_.clean([line], site_name) for c in name)
    return named > 0 and named >= _LINE_NAMES * letters


def _read_text(doc: Document, candidate: Candidate, context: PageContext) -> str | None:
    for value in _each_text(doc, candidate) if candidate.kind != "ld" else ():
        value = text.clean_line(value)
        if value:
            return value
    return None


#: The fields that are more than the first text found.
_READERS: dict[str, Callable[[Document, Candidate, PageContext], Any]] = {
    "title": _read_title,
    "published": _read_date,
    "modified": _read_modified,
    "authors": _read_authors,
}
