"""What a page says of itself in machine places: JSON-LD, OpenGraph, meta, itemprop, time. Pure.

Only collects and orders; reading a value (dates, names) is the business of dates.py and authors.py.
"""

from __future__ import annotations

import html
import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import Any

from newscrawler.extraction.document import Document
from newscrawler.items import Field

#: schema.org types of an article.
ARTICLE_TYPES = frozenset(
    {
        "newsarticle",
        "reportagenewsarticle",
        "analysisnewsarticle",
        "opinionnewsarticle",
        "backgroundnewsarticle",
        "reviewnewsarticle",
        "askpublicnewsarticle",
        "article",
        "liveblogposting",
        "blogposting",
        "report",
        "scholarlyarticle",
        "techarticle",
        "satiricalarticle",
        "socialmediaposting",
        "review",
        "advertisercontentarticle",
    }
)
_LISTS = frozenset({"itemlist", "collectionpage", "searchresultspage"})
# What may describe the page beside or in place of its article.
_PAGE_TYPES = ARTICLE_TYPES | {"webpage", "itempage", "videoobject", "newsmediaorganization"}
# Of several articles on a page these are of readers more often than of the paper.
_OPINIONS = frozenset({"review", "socialmediaposting"})
_NOT_FREE = ("false", "0", "no", "http://schema.org/false")
_MAX_BYTES = 2_000_000
_MAX_NODES = 5_000
# What is read out of JSON that no mending makes valid.
_SALVAGE = re.compile(
    r"""(?m)^[ \t]*"(headline|datePublished|dateModified)" ?: ?"""
    r"""(?:"(.{1,300}?)"|'(.{1,300}?)'),?[ \t]*$"""
)

_VALUE = re.compile(
    r"""(:\s?")(.{0,1000}?)("\s?)(?=\s{0,20}(?:,\s{0,40}"[@\w]{1,40}"\s?:|[}\]]))""", re.S
)
# The costly mending is for scripts of ordinary size only.
_MEND_CHARS = 60_000

PUBLISHED_META = (
    "article:published_time",
    "article:published:time",
    "article:published",
    "og:published_time",
    "og:article:published_time",
    "datepublished",
    "parsely-pub-date",
    "sailthru.date",
    "cxenseparse:recs:publishtime",
    "cxenseparse:publishtime",
    "pubdate",
    "publishdate",
    "publish_date",
    "publish-date",
    "publication_date",
    "published_time",
    "published-date",
    "published",
    "dc.date.issued",
    "dcterms.issued",
    "dcterms.date",
    "dc.date.created",
    "dcterms.created",
    "dc.date",
    "article.published",
    "article:post_date",
    "datecreated",
    "article_date_original",
    "originalpublicationdate",
    "rnews:datepublished",
    "vr:published_time",
    "shareaholic:article_published_time",
    "citation_publication_date",
    "citation_date",
    "displaydate",
    "ptime",
    "article.created",
    "article:created",
    "article:date",
    "bt:pubdate",
    "dateposted",
    "analyticsattributes.articledate",
    "date",
    "pub_date",
    "created",
    "releasedate",
    "release_date",
    "timestamp",
    "time",
    "og:pubdate",
    "dc.created",
    "iso-8601-publish-date",
    "gen-date",
    "post_date",
    "cre",
    "cms-date",
    "og:article:published",
    "buildtime",
    "weibo:article:create_at",
    "article:create_at",
)
MODIFIED_META = (
    "article:modified_time",
    "article:modified",
    "og:updated_time",
    "datemodified",
    "og:modified_time",
    "last-modified",
    "lastmod",
    "dcterms.modified",
    "dc.date.modified",
    "revised",
    "article:updated_time",
    "modified_time",
    "vr:updated_time",
)
AUTHOR_META = (
    "article:author_name",
    "parsely-author",
    "sailthru.author",
    "cxenseparse:author",
    "byl",
    "author",
    "dc.creator",
    "dcterms.creator",
    "dc.author",
    "article:author",
    "og:article:author",
    "citation_author",
    "authors",
    "creator",
    "article.author",
    "og:author",
    "vr:author",
    "dcsext.author",
    "twitter:data1",
    "byline",
    "shareaholic:article_author_name",
    "bt:author",
    "analyticsattributes.author",
    "rbauthors",
)


@dataclass(slots=True)
class Person:
    """A name as given. ``kind``: lower-case schema.org type, "" when only a string was given."""

    name: str
    kind: str = ""


@dataclass(slots=True)
class PageMetadata:
    """Raw values, best first. Nothing is cleaned but HTML entities."""

    headline: str | None = None
    ld_alternative: str | None = None
    published_raw: list[str] = field(default_factory=list)  # of the JSON-LD article
    page_published_raw: list[str] = field(
        default_factory=list
    )  # of other JSON-LD nodes (WebPage, video)
    modified_raw: list[str] = field(default_factory=list)
    persons: list[Person] = field(default_factory=list)
    publisher: str | None = None
    main: dict[str, Any] = field(default_factory=dict)  # the JSON-LD article itself
    description: str | None = None
    body: str | None = None
    language: str | None = None
    types: frozenset[str] = frozenset()  # every @type of the page, lower case
    has_article: bool = False
    is_free: bool | None = None  # isAccessibleForFree
    parts: Any = None  # filled by extraction.regions.of()
    bylines: list[str] = field(
        default_factory=list
    )  # visible texts that the search for authors has read
    other_days: set[Any] = field(default_factory=set)  # days of comments and teasers
    source: str | None = (
        None  # what the line behind the text names as its source, read in the same search
    )

    classed: Any = None  # filled by extraction.bylines.classed()
    marked: dict[str, Any] = field(default_factory=dict)  # filled by bylines.marked_nodes()
    agreed: frozenset[str] | None = None  # filled by extraction.agreement.names()

    @property
    def authors_raw(self) -> list[str]:
        """Names that are not said to be an organisation's."""
        return [
            p.name
            for p in self.persons
            if "organi" not in p.kind and p.kind != "newsmediaorganization"
        ]


def of(doc: Document) -> PageMetadata:
    """The page's statements in JSON-LD, read once per document."""
    if doc.page_metadata is None:
        doc.page_metadata = _read(doc)
    found: PageMetadata = doc.page_metadata
    return found


def meta_values(doc: Document, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """``(name, value)`` of the meta elements that are there, in the order of ``names``."""
    return [(name, html.unescape(value)) for name in names for value in doc.meta.get(name, ())]


def stated(doc: Document, field: Field) -> Iterator[tuple[str, str]]:
    """``(origin, value)`` of a field of one value: the first meta element that is there,
    then the JSON-LD article."""
    meta = doc.meta_first(*field.meta)
    if meta:
        yield "meta", meta
    read = _text if field.type == "text" else _address
    main = of(doc).main
    if value := next((v for key in field.json_ld if (v := read(main.get(key)))), None):
        yield "json-ld", value


# ---------------------------------------------------------------- JSON-LD
def json_ld(doc: Document) -> list[dict[str, Any]]:
    """Every object of the page's JSON-LD, flattened, outer before inner, main entities first."""
    todo: deque[tuple[Any, int]] = deque()
    for node in doc.named("script"):
        if "ld+json" in (node.attributes.get("type") or "").lower():
            todo.extend((root, 0) for root in load_mended(node.text(deep=True)))
    out: list[dict[str, Any]] = []
    while todo and len(out) < _MAX_NODES:
        item, depth = todo.popleft()
        if isinstance(item, list):
            todo.extend((x, depth) for x in item)
        elif isinstance(item, dict):
            item["__depth"] = depth
            out.append(item)
            todo.extend(_inner(item, depth))
    return out


def _inner(item: dict[str, Any], depth: int) -> Iterator[tuple[Any, int]]:
    if depth < 6:
        for key, value in item.items():
            if isinstance(value, (dict, list)):
                yield value, depth + (key != "@graph")


def load_mended(text: str) -> list[Any]:
    """The JSON values in a script; what is broken in the usual ways is mended, the
    rest is skipped."""
    text = text.strip()
    if not text or len(text) > _MAX_BYTES:
        return []
    for attempt in _mendings(text):
        try:
            return [json.loads(attempt, strict=False)]
        except (ValueError, RecursionError):
            pass
        values = _concatenated(attempt)
        if values:
            return values
    salvaged = {m[1]: m[2] or m[3] for m in _SALVAGE.finditer(text)}
    return (
        [{"@type": "Article", **salvaged}]
        if salvaged and re.search(r'"@type"\s*:\s*"\w*Article', text)
        else []
    )


def _mendings(text: str) -> Iterator[str]:
    yield text
    text = re.sub(r"^\s*(?:<!--|//\s*<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/|<!\[CDATA\[)", "", text)
    text = (
        re.sub(r"(?:-->|//\s*\]\]>|/\*\s*\]\]>\s*\*/|\]\]>)[\s;]*$", "", text).strip().rstrip(";")
    )
    yield text
    if "&quot;" in text:
        text = html.unescape(text)
        yield text
    text = re.sub(r"(?m)^[ \t]*//[^\n]*$", "", text)
    text = re.sub(r",\s*(?=[}\]])", "", text)  # a comma before the end
    text = re.sub(
        r"(?<=[}\]\"])[ \t]*\n\s*(?=\"[\w@]+\"\s*:)", ",\n", text
    )  # a comma that was forgotten
    text = re.sub(
        r"\\(?![\"\\/bfnrtu])", r"\\\\", text
    )  # \' and other escapes that JSON does not know
    yield text
    # Quotes inside a value: a value ends at the quote before the next key or the end of the object.
    if len(text) <= _MEND_CHARS:
        yield _VALUE.sub(lambda m: m[1] + re.sub(r'(?<!\\)"', r'\\"', m[2]) + m[3], text)


def _concatenated(text: str) -> list[Any]:
    decoder = json.JSONDecoder(strict=False)
    values: list[Any] = []
    position = 0
    while position < len(text) and len(values) < 50:
        start = re.compile(r"[\[{]").search(text, position)
        if not start:
            break
        try:
            value, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            break
        values.append(value)
    return values


def _types(node: dict[str, Any]) -> list[str]:
    raw = node.get("@type") or node.get("type")
    return [str(t).rpartition("/")[2].lower() for t in as_list(raw) if t]


def _text(value: Any) -> str | None:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("@value") or value.get("name") or value.get("url")
    if isinstance(value, (str, int, float)) and str(value).strip():
        return html.unescape(html.unescape(str(value))).strip()
    return None


def _address(value: Any) -> str | None:
    """Of a file: its address, not its name."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("url") or value.get("contentUrl")
    return _text(value)


def _read(doc: Document) -> PageMetadata:
    found = PageMetadata()
    nodes = json_ld(doc)
    types = [_types(node) for node in nodes]
    found.types = frozenset(chain.from_iterable(types))
    by_id = {n["@id"]: n for n in nodes if isinstance(n.get("@id"), str) and len(n) > 3}
    is_article = (not ARTICLE_TYPES.isdisjoint(names) for names in types)
    main = _main_article(list(compress(nodes, is_article)), doc)
    if main is not None:
        found.has_article = True
        _fill(found, main, by_id)
    for node, names in zip(nodes, types, strict=True):
        if node is main or node["__depth"] > 1 or not _LISTS.isdisjoint(names):
            continue
        if not _PAGE_TYPES.isdisjoint(names):
            _fill_from_page(found, node, "webpage" in names, by_id)
    return found


def _fill_from_page(
    found: PageMetadata, node: dict[str, Any], is_webpage: bool, by_id: dict[str, dict[str, Any]]
) -> None:
    """What the description of the page states, beside or in place of an article's."""
    published = _text(node.get("datePublished")) or _text(node.get("uploadDate"))
    if published and (is_webpage or not found.has_article):
        found.page_published_raw.append(published)
    if found.has_article:
        return
    if is_webpage and not found.persons:  # how a plugin states a page's writer
        found.persons = list(_persons(node.get("author"), by_id))
    if not found.headline and not found.ld_alternative:
        found.ld_alternative = _text(node.get("headline")) or _text(node.get("name"))


def _main_article(articles: list[dict[str, Any]], doc: Document) -> dict[str, Any] | None:
    """The article that the page is about: the only one, or the one that names this
    page or its title."""
    candidates = [
        a for a in articles if a.get("headline") or a.get("datePublished") or a.get("name")
    ]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    addresses = {u.rstrip("/") for u in (doc.url, doc.canonical) if u}
    said = " ".join(filter(None, (doc.meta_first("og:title"), _text_of(doc, "title")))).casefold()
    return max(candidates, key=lambda node: _points(node, addresses, said))


def _points(node: dict[str, Any], addresses: set[str], said: str) -> float:
    """How much speaks for it that the page is about this article."""
    score: float = 1.0 / (1 + node["__depth"])
    entity = node.get("mainEntityOfPage")
    if isinstance(entity, dict):
        entity = entity.get("@id") or entity.get("url")
    stated = filter(None, map(_text, (node.get("url"), node.get("@id"), entity)))
    if any(address.partition("#")[0].rstrip("/") in addresses for address in stated):
        score += 2
    headline = (_text(node.get("headline")) or "").casefold()
    if headline and headline[:40] in said:
        score += 2
    score += 0.5 * bool(node.get("datePublished")) + 0.3 * bool(node.get("author"))
    if not _OPINIONS.isdisjoint(_types(node)):
        score -= 1
    return score


def _text_of(doc: Document, css: str) -> str:
    node = doc.tree.css_first(css)
    return node.text(deep=True).strip() if node is not None else ""


def _fill(found: PageMetadata, node: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> None:
    found.main = node
    found.headline = _text(node.get("headline")) or _text(node.get("name"))
    found.ld_alternative = _text(node.get("alternativeHeadline")) or _text(node.get("name"))
    created = (_text(node.get("datePublished")), _text(node.get("dateCreated")))
    found.published_raw.extend(filter(None, created))
    found.modified_raw.extend(filter(None, [_text(node.get("dateModified"))]))
    found.persons = list(_persons(node.get("author"), by_id))
    if not found.persons:
        found.persons = list(_persons(node.get("creator"), by_id))
    found.publisher = _publisher(node.get("publisher"), by_id)
    found.description = _text(node.get("description"))
    found.language = _text(node.get("inLanguage"))
    body = node.get("articleBody")
    found.body = html.unescape(body) if isinstance(body, str) and len(body) > 100 else None
    free = node.get("isAccessibleForFree")
    if free is not None:
        found.is_free = str(free).strip().lower() not in _NOT_FREE


def _publisher(stated: Any, by_id: dict[str, dict[str, Any]]) -> str | None:
    if not isinstance(stated, dict):
        return _text(stated)
    if set(stated) - {"__depth"} == {"@id"}:
        stated = by_id.get(str(stated["@id"]), stated)
    if "person" in _types(stated):
        return None  # a blog: its writer's name is no site name
    return _text(stated.get("name"))


def _persons(value: Any, by_id: dict[str, dict[str, Any]]) -> Iterator[Person]:
    for item in as_list(value)[:40]:
        if isinstance(item, str) and item.strip():
            yield Person(html.unescape(item).strip())
        elif isinstance(item, list):
            yield from _persons(item, by_id)
        elif isinstance(item, dict):
            yield from _person(item, by_id)


def _person(item: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> Iterator[Person]:
    """The names of one object; several where a template puts a list there."""
    if "name" not in item and isinstance(item.get("@id"), str):
        item = by_id.get(item["@id"], item)
    kind = (_types(item) or [""])[0]
    name = item.get("name")
    if isinstance(name, dict):
        name = name.get("name") or name.get("@value")
    for one in as_list(name):
        if isinstance(one, str) and one.strip():
            yield Person(html.unescape(html.unescape(one)).strip(), kind)
    if name is None:
        parts = filter(None, (item.get("givenName"), item.get("familyName")))
        if whole := " ".join(map(str, parts)):
            yield Person(whole.strip(), kind)


def as_list(value: Any) -> list[Any]:
    """JSON-LD states one value, or a list of them."""
    return value if isinstance(value, list) else [value]
