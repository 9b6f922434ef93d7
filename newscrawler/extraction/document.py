"""A fetched page: decoded once, parsed once. Pure.

Hostile pages must not stop a worker. lexbor needs quadratic time for deep nesting (100,000 nested
``<div>``: 13 s), so the markup is flattened below MAX_DEPTH before it is parsed, as browsers do
(Chromium: 512). Nothing here recurses.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Any
from urllib.parse import urljoin

import lxml.html
from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from newscrawler.web import charset

#: Open elements that a page may have at once; deeper start tags are dropped, their text stays.
MAX_DEPTH = 400
#: Characters of markup that are parsed; what follows is cut off.
MAX_CHARS = 10 * 1024 * 1024
#: Tags that are parsed at all; a news page has 500 to 10,000.
MAX_TAGS = 200_000
#: lxml is only for the generic chain. Above these it is refused: its cost grows with both.
LXML_MAX_CHARS = 3 * 1024 * 1024
LXML_MAX_DEPTH = 250

# Below these counts the worst nesting costs lexbor about a second (39 open tags, then
# 5,000 of them deep).
_FEW_TAGS = 5_000
# No page of news has so many; looked at where nothing else is, and where the page is long
# enough to hold them.
_MANY_TAGS = 25_000
_TAG_BYTES = 3
_FEW_OPEN_FORMATTING = 40
_TAGS = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,30})[^>]*>?")
# A formatting tag that is not closed at once. `<b>12</b>` never piles up however often it comes;
# strict about attributes, so that a page cannot hide an open tag behind odd quotes. Over bytes:
# half the price of text.
_OPEN_FORMATTING = re.compile(
    rb"<(?=[bcefinstuBCEFINSTU])(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s>/])"
    rb"""(?!(?:\s++[\w-]++="[^"<>]*+")*+\s*+>[^<]*+</\1>)""",
    re.IGNORECASE,
)


def words(names: str) -> frozenset[str]:
    return frozenset(names.split())


_FORMATTING = words("b big code em font i nobr s small strike strong tt u")
# No end tag, or one that the next sibling implies: they do not nest by themselves.
_FLAT = words(
    "area base br col embed hr img input link meta param source track wbr p li dt dd option"
    " optgroup td th tr tbody thead tfoot caption colgroup html head body a"
)
_MAX_OPEN_FORMATTING = 16
# Shapes of a drawing end in themselves, where HTML would leave an unknown element open: they are
# closed in words, so that they end wherever they stand.
_DRAWN = words("path use circle rect line polyline polygon ellipse stop")
_SELF_CLOSED = re.compile(r"""<\w++(?:\s++[\w:-]++=(?:"[^"<>]*+"|'[^'<>]*+'))*+\s*+/>""")
_STATED_BY = {"a": "href", "base": "href", "link": "href", "meta": "content", "script": "type"}
# A start tag up to its end, quotes respected; possessive, so that no input makes it
# backtrack. A quote opens a value behind "=" only (a stray one belongs to a name): else
# half a page may look like one tag.
_START_TAG_PATTERN = rb"""<[a-zA-Z](?:[^>=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?)?+)*+"""
_START_TAG = re.compile(_START_TAG_PATTERN)
# The same beside what is no markup: comments, and elements whose content is text (scripts
# hold tags in strings).
_RAW = rb"script|style|textarea|title|xmp|iframe|noembed|noframes"
_MARKUP = re.compile(
    rb"<!--.*?(?:-->|\Z)|(?P<raw><(?P<name>"
    + _RAW
    + rb")\b[^>]*+)>.*?(?:</(?P=name)|\Z)|"
    + _START_TAG_PATTERN,
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(rb"""=\s*+(?:"[^"]*+"?|'[^']*+'?)""")
_BOM = b"\xef\xbb\xbf"
_LONG_TAG_BYTES = 4_000
# Above it the memory that the tree takes is bounded in every case.
_LARGE_BYTES = 2_000_000
_MAX_ATTRIBUTES = 300


class Document:
    """One page. ``body`` as received (decompressed), ``url`` the address it was fetched from.

    ``guarded=False``: markup of ordinary size is parsed as it is, in a process that is killed when
        it takes too long.
    """

    def __init__(
        self,
        body: bytes,
        url: str,
        content_type: str | None = None,
        language: str | None = None,
        *,
        guarded: bool = True,
    ) -> None:
        self.body = body
        self.url = url
        text, self.encoding = charset.decode_named(body, content_type, language)
        self.flattened = len(text) > MAX_CHARS
        text = text[:MAX_CHARS]
        # What is UTF-8 already is not written again.
        as_sent = (
            self.encoding == "utf-8"
            and not self.flattened
            and "\ufffd" not in text
            and body[:1] != _BOM[:1]
        )
        encoded = body if as_sent else text.encode("utf-8", "replace")
        size = len(encoded)
        many = size > _TAG_BYTES * _MANY_TAGS and encoded.count(b"<") > _MANY_TAGS
        if guarded or many or size > _LARGE_BYTES:
            text, encoded = self._bounded(text, encoded)
        self.text_html = text
        self.tree = LexborHTMLParser(encoded)
        self.page_metadata: Any = None  # filled by extraction.page_metadata.of()
        self.blocks: Any = None  # filled by extraction.blocks.block_list()
        self.date_rules: Any = None  # filled by extraction.published.rules_for()

    def _bounded(self, text: str, encoded: bytes) -> tuple[str, bytes]:
        """The markup without what would cost the parser quadratic time."""
        if (
            encoded.count(b"<") > _FEW_TAGS
            or len(_OPEN_FORMATTING.findall(encoded)) > _FEW_OPEN_FORMATTING
        ):
            text, changed = _flatten(text)
            self.flattened |= changed
            encoded = text.encode("utf-8", "replace")
        if _has_attribute_flood(encoded):
            encoded = _MARKUP.sub(_without_flood, encoded)
            text = encoded.decode("utf-8", "replace")
        return text, encoded

    def composed(self) -> Document:
        """The same page with composed letters (NFC); the page itself when it has them
        already (0.1 ms to see that).

        Rules and libraries compare words as they are written, and a page of "e" +
        accent has other words.
        """
        if self.text_html.isascii() or unicodedata.is_normalized("NFC", self.text_html):
            return self
        text = unicodedata.normalize("NFC", self.text_html)
        other = Document(text.encode("utf-8", "replace"), self.url, "text/html; charset=utf-8")
        other.encoding = self.encoding
        return other

    def links(self) -> list[tuple[str, bool]]:
        """``(href as written, stripped; rel=nofollow)`` of every ``a[href]``, in page
        order, with repeats."""
        out: list[tuple[str, bool]] = []
        for node in self.named("a"):
            attrs = node.attrs
            href = attrs.get("href")
            if (
                href
            ):  # to ask for what is not there costs four times as much as to look whether it is
                rel = attrs.get("rel") if "rel" in attrs else None
                out.append((href.strip(), rel is not None and "nofollow" in rel.lower()))
        return out

    def named(self, tag: str) -> list[LexborNode]:
        """``base`` and ``link`` with a href, ``meta`` with a content, ``script`` with a type, in
        page order; ``a`` with a href, and some without."""
        return self._stated.get(tag, [])

    @cached_property
    def _stated(self) -> dict[str, list[LexborNode]]:
        # One walk for all five: a query costs 0.1 ms on a page of 1,200 elements whatever it finds,
        # and half of that without a type in it (lexbor compares names as text).
        found: dict[str, list[LexborNode]] = {}
        for node in self.tree.css("[href],[content],[type]"):
            attribute = _STATED_BY.get(tag := node.tag or "")
            if tag == "a" or (
                attribute is not None and attribute in node.attrs
            ):  # links() asks each "a" itself
                found.setdefault(tag, []).append(node)
        return found

    @cached_property
    def base_url(self) -> str:
        """The address that relative links count from: ``<base href>`` when it is http(s), else
        the page's address."""
        nodes = self.named("base")
        href = (nodes[0].attributes.get("href") or "").strip() if nodes else ""
        if href:
            joined = self._join(href)
            if joined:
                return joined
        return self.url

    @cached_property
    def meta(self) -> dict[str, list[str]]:
        """``name``, ``property``, ``itemprop`` or ``http-equiv`` (lower case) ->
        contents in page order."""
        found: dict[str, list[str]] = {}
        for node in self.named("meta"):
            attrs = node.attrs
            content = attrs.get("content")
            if not content or not content.strip():
                continue
            for key in ("name", "property", "itemprop", "http-equiv"):
                name = attrs.get(key)
                if name:
                    found.setdefault(name.strip().lower(), []).append(content.strip())
        return found

    def meta_first(self, *names: str) -> str | None:
        for name in names:
            values = self.meta.get(name)
            if values:
                return values[0]
        return None

    @cached_property
    def meta_robots(self) -> frozenset[str]:
        """Directives of ``<meta name=robots>``, lower case: noindex, nofollow,
        noarchive, none ..."""
        words = ",".join(self.meta.get("robots", [])).lower().split(",")
        return frozenset(w.strip() for w in words if w.strip())

    @cached_property
    def canonical(self) -> str | None:
        """Absolute ``link[rel=canonical]``, else ``og:url``; None without one or when
        it is not http(s)."""
        for node in self.named("link"):
            if "canonical" in (node.attributes.get("rel") or "").lower().split():
                return self._join(node.attributes.get("href") or "")
        og = self.meta_first("og:url")
        return self._join(og) if og else None

    @cached_property
    def lang(self) -> str | None:
        """Two-letter language that the page states, lower case."""
        root = self.tree.root
        stated = (
            (root.attributes.get("lang") or root.attributes.get("xml:lang") or "") if root else ""
        )
        stated = stated or self.meta_first("content-language", "og:locale", "language") or ""
        match = re.match(r"[a-zA-Z]{2}(?![a-zA-Z])", stated.strip())
        return match[0].lower() if match else None

    @cached_property
    def lxml(self) -> lxml.html.HtmlElement | None:
        """The page in lxml for the generic chain; None when it is too large,
        too deep or not parsable."""
        if (
            len(self.text_html) > LXML_MAX_CHARS
            or self.flattened
            or max_depth(self.tree.root) > LXML_MAX_DEPTH
        ):
            return None
        parser = lxml.html.HTMLParser(
            encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False
        )
        try:
            tree = lxml.html.document_fromstring(
                self.text_html.encode("utf-8", "replace"), parser=parser
            )
        except (etree.ParserError, etree.XMLSyntaxError, ValueError):
            return None
        return tree

    def _join(self, href: str) -> str | None:
        try:
            joined = urljoin(self.url, href.strip())
        except ValueError:
            return None
        return joined if joined.startswith(("http://", "https://")) else None


def _has_attribute_flood(encoded: bytes) -> bool:
    """Parsers compare every attribute name with all before it: 100,000 of them cost 16 s."""
    tags = _START_TAG.findall(encoded)
    return len(max(tags, key=len, default=b"")) > _LONG_TAG_BYTES and any(map(_is_flood, tags))


def _without_flood(match: re.Match[bytes]) -> bytes:
    tag: bytes = match["raw"] or match[0]
    if tag.startswith(b"<!--") or not _is_flood(tag):
        return match[0]
    return b"<span " + match[0][len(tag) :]


def _is_flood(tag: bytes) -> bool:
    if len(tag) <= _LONG_TAG_BYTES:
        return False
    # Attributes may follow one another without a space: `a=""b=""`, `a/b`.
    return (
        len(_QUOTED.sub(b" ", tag).replace(b"/", b" ").split(None, _MAX_ATTRIBUTES))
        > _MAX_ATTRIBUTES
    )


def max_depth(root: LexborNode | None) -> int:
    """Elements above the deepest element."""
    deepest = depth = 0
    node = root
    while node is not None:
        child = node.first_child
        if child is not None:
            depth += 1
            deepest = max(deepest, depth)
            node = child
            continue
        while node is not None and node.next is None:
            node = node.parent
            depth -= 1
            if depth <= 0:
                return deepest
        node = node.next if node is not None else None
    return deepest


def _flatten(text: str) -> tuple[str, bool]:
    """``(text, whether tags are missing)``: start tags below MAX_DEPTH, and tags after
    MAX_TAGS, are taken out."""
    depth = formatting = tags = position = 0
    kept: list[str] = []
    dropped = 0
    for match in _TAGS.finditer(text):
        tags += 1
        name = match[2].lower()
        if tags > MAX_TAGS:
            kept.append(text[position : match.start()])
            return "".join(kept), True
        if name in _FLAT:
            continue
        if name in _DRAWN and _SELF_CLOSED.fullmatch(match[0]):
            kept.append(f"{text[position : match.end()]}</{name}>")
            position = match.end()
            tags += 1
            continue
        is_formatting = name in _FORMATTING
        if match[1]:
            depth = max(0, depth - 1)
            if is_formatting:
                formatting = max(0, formatting - 1)
            continue
        depth += 1
        if is_formatting:
            formatting += 1
        if depth > MAX_DEPTH or (is_formatting and formatting > _MAX_OPEN_FORMATTING):
            kept.append(text[position : match.start()])
            position = match.end()
            dropped += 1
    if not kept:
        return text, False
    kept.append(text[position:])
    return "".join(kept), dropped > 0
