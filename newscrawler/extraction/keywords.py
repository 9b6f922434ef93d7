"""What an article is about in the words of its publisher: metadata, else the tags shown
under the text. Pure.

Left out: the site's own name, its sections, the authors, the headline, and lists that a
program has cut out of the headline. A site that states the same list on every page cannot
be told from one page.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborNode

from newscrawler.extraction import lexicon, page_metadata, text, title
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.result import Extraction
from newscrawler.items import FIELDS, FieldValue

#: Keywords of an article, and characters and words of one, at most.
MOST, LONGEST, MOST_WORDS = 20, 60, 8
#: Values of one statement that are looked at.
_MOST_RAW = 100
_DECLARED = next(f for f in FIELDS if f.name == "keywords")
#: How sure a list is that is stated there; other places have 0.6.
_TRUST = {"article:tag": 0.8, "json-ld": 0.8, "shown": 0.8, "news_keywords": 0.7, "keywords": 0.5}
_SEPARATOR = re.compile(r"[,;|、，；\n]")
_PREFIX = re.compile(r"(?:tag|keyword|topic|subject)s?\s*[:=]\s*", re.I)
_MACHINE = re.compile(
    r"^[\w.-]+[:=]\S|^(?:category|type|section|channel|author|source)\s*[:=_]|://|^www\.|[<>{}]",
    re.I,
)
_EDGES = " \t#\"'“”„‘’«».,:;-–—*•[]()"
#: A box of tags by the names of its classes.
_BOX = re.compile(
    r"(?:^|\s)(?:[a-z]+[-_]{1,2})*"
    r"(?:tags|taglist|tag[-_]{1,2}(?:list|links?|box|wrap(?:per)?|container))"
    r"(?:[-_]{1,2}(?:list|links?|box|wrap(?:per)?|container|items?|block|section))*(?:\s|$)"
)
_CLOUD = lexicon.Pattern(r"<class.keywords_elsewhere>", flags=0)
_ELSEWHERE = frozenset({"nav", "aside", "footer", "header"})
_REL_TAG = 'a[href][rel~="tag" i]'
_LEVELS = 12
_MOST_LINKS, _MOST_BOXES = 25, 60


def find(doc: Document, context: PageContext, found: Extraction) -> FieldValue:
    """Of the first place that has any; [] where nothing is stated. Asked of articles only."""
    without: set[str] | None = None  # folding all of it is for pages that state any
    for origin, values in statements(doc):
        if without is None:
            without = _not_keywords(doc, context, found)
        kept = [v for v in values if _fold(v) not in without]
        if kept and not _is_cut_from(kept, found.title.value or ""):
            trust = _TRUST.get(origin.rpartition("meta:")[2], 0.6)
            return FieldValue(kept[:MOST], origin, trust)
    return FieldValue([])


def statements(doc: Document) -> Iterator[tuple[str, list[str]]]:
    """``(origin, values)`` of every place that states some, best first: cleaned, each once."""
    for origin, raw in _raw(doc):
        if values := _clean(raw):
            yield origin, values


def _raw(doc: Document) -> Iterator[tuple[str, Iterable[str]]]:
    # The order is by agreement with the tags shown: article:tag and JSON-LD share four of five with
    # them, the meta elements that are written for search engines hardly more than half.
    first = _DECLARED.meta[0]
    yield f"meta:{first}", _split(doc.meta.get(first, []))
    main = page_metadata.of(doc).main
    for key in _DECLARED.json_ld:
        yield "json-ld", _split(_texts(main.get(key)))
    yield "shown", _shown(doc)
    for name in _DECLARED.meta[1:]:
        yield f"meta:{name}", _split(doc.meta.get(name, []))


def _texts(value: Any) -> list[str]:
    """The texts of a JSON-LD value: one, a list, terms with names."""
    items = value if isinstance(value, list) else [value]
    names = [i.get("name") if isinstance(i, dict) else i for i in items[:_MOST_RAW]]
    return [name for name in names if isinstance(name, str)]


def _split(values: list[str]) -> Iterable[str]:
    """A single value is a list of its own; of several each is one, whatever signs it has."""
    unescaped = [html.unescape(html.unescape(v)) for v in values[:_MOST_RAW]]
    return _SEPARATOR.split(unescaped[0], _MOST_RAW) if len(unescaped) == 1 else unescaped


def _clean(raw: Iterable[str]) -> list[str]:
    found: dict[str, str] = {}
    for value in raw:
        value = text.one_line(value)
        value = value[match.end() :] if (match := _PREFIX.match(value)) else value
        value = value.strip(_EDGES)
        if not 2 <= len(value) <= LONGEST or len(value.split()) > MOST_WORDS:
            continue
        if not any(map(str.isalpha, value)) or _MACHINE.search(value):
            continue
        found.setdefault(_fold(value), value)
    return list(found.values())


def _fold(value: str) -> str:
    """What two spellings share: no case, signs or diacritics ("thoi-su" of an
    address is "Thời sự")."""
    bare = unicodedata.normalize("NFKD", value.casefold().replace("đ", "d"))
    return text.key("".join(c for c in bare if not unicodedata.combining(c)))


def _not_keywords(doc: Document, context: PageContext, found: Extraction) -> set[str]:
    """Names of the site, its sections, the writers, the headline."""
    names = [*title.site_names(doc, context.site_name), found.title.value or ""]
    names += [*found.authors.value, *found.credits.value]
    main = page_metadata.of(doc).main
    sections = [found.section.value or "", *_texts(main.get("articleSection"))]
    for section in sections:
        names += [section, *re.split(r"[/,>|]", section)]
    try:
        folders = urlsplit(doc.url).path.split("/")[:-1]
    except ValueError:
        folders = []
    names += map(unquote, folders)
    return {folded for name in names if (folded := _fold(name))}


def _is_cut_from(values: list[str], headline: str) -> bool:
    """Five words or more, nearly all of them the headline's: no editor has chosen them."""
    if len(values) < 5 or any(" " in value for value in values):
        return False
    said = {_fold(word) for word in headline.split()}
    return sum(_fold(value) in said for value in values) >= 0.8 * len(values)


# ---------------------------------------------------------------- tags under the text
def _shown(doc: Document) -> list[str]:
    """Texts of the links in the page's first list of tags."""
    return _first_group(doc) or _first_box(doc)


def _first_group(doc: Document) -> list[str]:
    """Links with rel=tag that stand in one list; a list of other articles has tags of
    its own further down."""
    names: list[str] = []
    holder: int | None = None
    for node in doc.tree.css(_REL_TAG):
        if "category" in (node.attributes.get("rel") or "").lower().split() or _is_elsewhere(node):
            continue
        own = _list_of(node)
        if holder is not None and own.mem_id != holder:
            break
        holder = own.mem_id
        names.append(node.text(deep=True))
    return names[:_MOST_LINKS]


def _list_of(node: LexborNode) -> LexborNode:
    """What holds the link and its neighbours: its parent, or that one's where it holds
    nothing but this link."""
    parent = node.parent or node
    is_alone = parent.tag in ("li", "span", "div") and len(parent.css("a")) == 1
    return (parent.parent or parent) if is_alone else parent


def _first_box(doc: Document) -> list[str]:
    for node in doc.tree.css("[class*=tag]")[:_MOST_BOXES]:
        names = (node.attributes.get("class") or "").lower()
        if len(names) > 200 or not _BOX.search(names) or _CLOUD.search(names) or node.tag == "a":
            continue
        links = node.css("a[href]")
        if 1 <= len(links) <= _MOST_LINKS and not _is_elsewhere(node):
            return [link.text(deep=True) for link in links]
    return []


def _is_elsewhere(node: LexborNode) -> bool:
    """In a menu, a margin, a foot: what the site is about, not the article."""
    one: LexborNode | None = node
    for _ in range(_LEVELS):
        if one is None or one.tag in ("article", "main", "body"):
            return False
        names = one.attributes.get("class") or ""
        if one.tag in _ELSEWHERE or (len(names) < 200 and _CLOUD.search(names.lower())):
            return True
        one = one.parent
    return False
