"""Names that two places of a page state alike: no list of words may refuse or change them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from selectolax.lexbor import LexborNode

from newscrawler.extraction import authors, page_metadata, personal
from newscrawler.extraction.blocks import block_list, collapse
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document

_MARKED = (
    '[itemprop~="author"],[rel~="author"],[class*="author"],[class*="Author"],[class*="byline"],'
    '[class*="autor"],[class*="tacgia"],[class*="tac-gia"],[class*="writer"]'
)
_MOST_MARKED = 30
_MOST_CHARS = 90
_MOST_BLOCKS = 600
# Labels that templates put into machine places too, and the language in which they are none of a
# name's words ("" = any).
_LABELS = {"by": "", "autor": "", "author": "", "text": "", "posted": "", "written": "",
           "von": "de", "par": "fr", "por": "es",
           "door": "nl"}  # fmt: skip


def clean(
    doc: Document,
    context: PageContext,
    raw: Iterable[str],
    sites: Iterable[str] = (),
    *,
    nicknames: bool = False,
) -> list[str]:
    """:func:`authors.clean` with what the page as a whole tells: names it states
    twice, and its language."""
    return authors.clean(
        raw,
        context.site_name,
        sites,
        nicknames=nicknames,
        known=names(doc),
        vietnamese=is_vietnamese(doc, context),
    )


def is_vietnamese(doc: Document, context: PageContext) -> bool | None:
    """None where neither page nor site tells the language."""
    stated = doc.lang or context.language
    return stated[:2].lower() == "vi" if stated else None


def names(doc: Document) -> frozenset[str]:
    """Keys of the names that two independent places state, read once per document."""
    found = page_metadata.of(doc)
    if found.agreed is None:
        found.agreed = frozenset(_agreed(doc, found))
    return found.agreed


def _agreed(doc: Document, found: page_metadata.PageMetadata) -> Iterator[str]:
    stated: dict[str, str] = {}  # key -> as it is written
    places: dict[str, set[str]] = {}
    for text, place in _stated(doc, found):
        for one in (text, authors.without_label(text)):
            name = collapse(one)
            if _may_be_name(name, doc.lang or ""):
                stated.setdefault(authors.key(name), name)
                places.setdefault(authors.key(name), set()).add(place)
    if any(len(where) < 2 and _is_changed(stated[k]) for k, where in places.items()):
        _in_lines(doc, places)
    yield from (k for k, where in places.items() if len(where) > 1)


def _stated(doc: Document, found: page_metadata.PageMetadata) -> Iterator[tuple[str, str]]:
    """``(text, place)`` of what JSON-LD, meta elements and marked elements state."""
    for raw in found.authors_raw:
        yield raw, "json-ld"
    for meta in page_metadata.AUTHOR_META:
        for value in doc.meta.get(meta, ())[:4]:
            yield value, "meta"
    for number, text in enumerate(_marked(doc)):
        yield text, f"mark:{number}"


def _may_be_name(name: str, language: str) -> bool:
    if not personal.has_shape(name):
        return False
    of = _LABELS.get(name.split()[0].lower())
    if of is not None and language.startswith(of):
        return False
    return not authors.is_no_person(name)


def _is_changed(name: str) -> bool:
    return authors.clean([name]) != [name]


def _marked(doc: Document) -> Iterator[str]:
    """Texts of the elements that are marked as an author's; one inside another
    is the same place."""
    taken: set[int] = set()
    for node in doc.tree.css(_MARKED)[:_MOST_MARKED]:
        if node.tag in ("meta", "link"):
            continue
        text = collapse(node.text(deep=True, separator=" "))
        if not 4 <= len(text) <= _MOST_CHARS:
            continue
        if not any(id_ in taken for id_ in _lineage(node)):
            yield text
        taken.add(node.mem_id)


def _lineage(node: LexborNode) -> Iterator[int]:
    one: LexborNode | None = node.parent
    for _ in range(6):
        if one is None:
            return
        yield one.mem_id
        one = one.parent


def _in_lines(doc: Document, places: dict[str, set[str]]) -> None:
    """Short lines of the page in which such a name stands: bylines without a mark, signatures."""
    for number, block in enumerate(block_list(doc)):
        if number > _MOST_BLOCKS:
            return
        if len(block.text) > _MOST_CHARS:
            continue
        line = f" {authors.key(block.text)} "
        for k, where in places.items():
            if f" {k} " in line and not any(place.startswith("mark") for place in where):
                where.add("line")
