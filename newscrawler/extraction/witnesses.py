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
from typing import Any

from newscrawler.extraction.document import Document

#: schema.org types of an article, best first.
ARTICLE_TYPES = (
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
)
_LISTS = ("itemlist", "collectionpage", "searchresultspage")
_VIDEO = ("videoobject",)
_MAX_BYTES = 2_000_000
_MAX_NODES = 5_000
# What is read out of JSON that no mending makes valid.
_SALVAGE = re.compile(
    r"""(?m)^[ \t]*"(headline|datePublished|dateModified)" ?: ?(?:"(.{1,300}?)"|'(.{1,300}?)'),?[ \t]*$"""
)

_VALUE = re.compile(r"""(:\s?")(.{0,1000}?)("\s?)(?=\s{0,20}(?:,\s{0,40}"[@\w]{1,40}"\s?:|[}\]]))""", re.S)
# The costly mending is for scripts of ordinary size only.
_MEND_CHARS = 60_000

PUBLISHED_META = (
    "article:published_time",
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
class Witnesses:
    """Raw values, best first. Nothing is cleaned but HTML entities."""

    headline: str | None = None
    ld_alternative: str | None = None
    published_raw: list[str] = field(default_factory=list)  # of the JSON-LD article
    page_published_raw: list[str] = field(default_factory=list)  # of other JSON-LD nodes (WebPage, video)
    modified_raw: list[str] = field(default_factory=list)
    persons: list[Person] = field(default_factory=list)
    publisher: str | None = None
    description: str | None = None
    section: str | None = None
    image: str | None = None
    body: str | None = None
    language: str | None = None
    types: frozenset[str] = frozenset()  # every @type of the page, lower case
    has_article: bool = False
    is_free: bool | None = None  # isAccessibleForFree
    parts: Any = None  # filled by extraction.regions.of()
    bylines: list[str] = field(default_factory=list)  # visible texts that the search for authors has read
    other_days: set[Any] = field(default_factory=set)  # days of comments and teasers
    source: str | None = None  # what the line behind the text names as its source, read in the same search

    @property
    def authors_raw(self) -> list[str]:
        """Names that are not said to be an organisation's."""
        return [p.name for p in self.persons if "organi" not in p.kind and p.kind != "newsmediaorganization"]


def of(doc: Document) -> Witnesses:
    """The page's JSON-LD witnesses, read once per document."""
    if doc.witnesses is None:
        doc.witnesses = _read(doc)
    found: Witnesses = doc.witnesses
    return found


def meta_values(doc: Document, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """``(name, value)`` of the meta elements that are there, in the order of ``names``."""
    return [(name, html.unescape(value)) for name in names for value in doc.meta.get(name, ())]


# ---------------------------------------------------------------- JSON-LD
def json_ld(doc: Document) -> list[dict[str, Any]]:
    """Every object of the page's JSON-LD, flattened, outer before inner, main entities first."""
    roots: list[Any] = []
    for node in doc.named("script"):
        kind = (node.attributes.get("type") or "").lower()
        if "ld+json" in kind:
            roots.extend(load_mended(node.text(deep=True)))
    out: list[dict[str, Any]] = []
    todo: deque[tuple[Any, int]] = deque((r, 0) for r in roots)
    while todo and len(out) < _MAX_NODES:
        item, depth = todo.popleft()
        if isinstance(item, list):
            todo.extend((x, depth) for x in item)
        elif isinstance(item, dict):
            item["__depth"] = depth
            out.append(item)
            if depth < 6:
                todo.extend((v, depth + (k != "@graph")) for k, v in item.items() if isinstance(v, (dict, list)))
    return out


def load_mended(text: str) -> list[Any]:
    """The JSON values in a script; what is broken in the usual ways is mended, the rest is skipped."""
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
    return [{"@type": "Article", **salvaged}] if salvaged and re.search(r'"@type"\s*:\s*"\w*Article', text) else []


def _mendings(text: str) -> Iterator[str]:
    yield text
    text = re.sub(r"^\s*(?:<!--|//\s*<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/|<!\[CDATA\[)", "", text)
    text = re.sub(r"(?:-->|//\s*\]\]>|/\*\s*\]\]>\s*\*/|\]\]>)[\s;]*$", "", text).strip().rstrip(";")
    yield text
    if "&quot;" in text:
        text = html.unescape(text)
        yield text
    text = re.sub(r"(?m)^[ \t]*//[^\n]*$", "", text)
    text = re.sub(r",\s*(?=[}\]])", "", text)  # a comma before the end
    text = re.sub(r"(?<=[}\]\"])[ \t]*\n\s*(?=\"[\w@]+\"\s*:)", ",\n", text)  # a comma that was forgotten
    text = re.sub(r"\\(?![\"\\/bfnrtu])", r"\\\\", text)  # \' and other escapes that JSON does not know
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
    return [str(t).rpartition("/")[2].lower() for t in (raw if isinstance(raw, list) else [raw]) if t]


def _text(value: Any) -> str | None:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        value = value.get("@value") or value.get("name") or value.get("url")
    if isinstance(value, (str, int, float)) and str(value).strip():
        return html.unescape(html.unescape(str(value))).strip()
    return None


def _read(doc: Document) -> Witnesses:
    found = Witnesses()
    nodes = json_ld(doc)
    types = [(node, _types(node)) for node in nodes]
    found.types = frozenset(t for _, ts in types for t in ts)
    articles = [node for node, ts in types if any(t in ARTICLE_TYPES for t in ts)]
    by_id = {n["@id"]: n for n in nodes if isinstance(n.get("@id"), str) and len(n) > 3}
    main = _main_article(articles, doc)
    if main is not None:
        found.has_article = True
        _fill(found, main, by_id)
    for node, ts in types:
        if node is main or any(t in _LISTS for t in ts) or node["__depth"] > 1:
            continue
        if any(t in ("webpage", "itempage", "videoobject", "newsmediaorganization", *ARTICLE_TYPES) for t in ts):
            published = _text(node.get("datePublished")) or _text(node.get("uploadDate"))
            if published and (main is None or "webpage" in ts):
                found.page_published_raw.append(published)
            if main is None and "webpage" in ts and not found.persons:
                found.persons = list(_persons(node.get("author"), by_id))  # how a plugin states a page's writer
            if main is None and not found.headline:
                found.ld_alternative = found.ld_alternative or _text(node.get("headline")) or _text(node.get("name"))
    return found


def _main_article(articles: list[dict[str, Any]], doc: Document) -> dict[str, Any] | None:
    """The article that the page is about: the only one, or the one that names this page or its title."""
    candidates = [a for a in articles if a.get("headline") or a.get("datePublished") or a.get("name")]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    addresses = {u.rstrip("/") for u in (doc.url, doc.canonical) if u}
    said = " ".join(filter(None, (doc.meta_first("og:title"), _text_of(doc, "title")))).casefold()

    def points(node: dict[str, Any]) -> float:
        score = 1.0 / (1 + node["__depth"])
        stated = [_text(node.get(k)) for k in ("url", "@id")]
        entity = node.get("mainEntityOfPage")
        stated.append(_text(entity.get("@id") or entity.get("url")) if isinstance(entity, dict) else _text(entity))
        if any(s and s.partition("#")[0].rstrip("/") in addresses for s in stated):
            score += 2
        headline = (_text(node.get("headline")) or "").casefold()
        if headline and headline[:40] in said:
            score += 2
        score += 0.5 * bool(node.get("datePublished")) + 0.3 * bool(node.get("author"))
        if any(t in ("review", "socialmediaposting") for t in _types(node)):
            score -= 1
        return score

    return max(candidates, key=points)


def _text_of(doc: Document, css: str) -> str:
    node = doc.tree.css_first(css)
    return node.text(deep=True).strip() if node is not None else ""


def _fill(found: Witnesses, node: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> None:
    found.headline = _text(node.get("headline")) or _text(node.get("name"))
    found.ld_alternative = _text(node.get("alternativeHeadline")) or _text(node.get("name"))
    for key, target in (
        ("datePublished", found.published_raw),
        ("dateCreated", found.published_raw),
        ("dateModified", found.modified_raw),
    ):
        value = _text(node.get(key))
        if value:
            target.append(value)
    for key in ("author", "creator"):
        if not found.persons:
            found.persons = list(_persons(node.get(key), by_id))
    publisher = node.get("publisher")
    if isinstance(publisher, dict) and set(publisher) - {"__depth"} == {"@id"}:
        publisher = by_id.get(str(publisher["@id"]), publisher)
    if isinstance(publisher, dict) and "person" in _types(publisher):
        publisher = None  # a blog: its writer's name is no site name
    found.publisher = _text(publisher.get("name")) if isinstance(publisher, dict) else _text(publisher)
    found.description = _text(node.get("description"))
    found.section = _text(node.get("articleSection"))
    found.language = _text(node.get("inLanguage"))
    image = node.get("image")
    if isinstance(image, list) and image:
        image = image[0]
    found.image = _text(image.get("url") or image.get("contentUrl")) if isinstance(image, dict) else _text(image)
    body = node.get("articleBody")
    found.body = html.unescape(body) if isinstance(body, str) and len(body) > 100 else None
    free = node.get("isAccessibleForFree")
    if free is not None:
        found.is_free = str(free).strip().lower() not in ("false", "0", "no", "http://schema.org/false")


def _persons(value: Any, by_id: dict[str, dict[str, Any]]) -> Iterator[Person]:
    for item in (value if isinstance(value, list) else [value])[:40]:
        if isinstance(item, str) and item.strip():
            yield Person(html.unescape(item).strip())
        elif isinstance(item, list):
            yield from _persons(item, by_id)
        elif isinstance(item, dict):
            if "name" not in item and isinstance(item.get("@id"), str):
                item = by_id.get(item["@id"], item)
            kind = (_types(item) or [""])[0]
            name = item.get("name")
            if isinstance(name, dict):
                name = name.get("name") or name.get("@value")
            for one in name if isinstance(name, list) else [name]:
                if isinstance(one, str) and one.strip():
                    yield Person(html.unescape(html.unescape(one)).strip(), kind)
            if name is None and (item.get("givenName") or item.get("familyName")):
                yield Person(f"{item.get('givenName') or ''} {item.get('familyName') or ''}".strip(), kind)
