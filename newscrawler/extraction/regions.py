"""Whether a node belongs to the article or to something else on the page (comments,
related, footer). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from selectolax.lexbor import LexborNode

from newscrawler.extraction import lexicon, page_metadata, title
from newscrawler.extraction.blocks import Block, collapse
from newscrawler.extraction.document import Document

_LEVELS = 14
_TOP_TAGS = ("body", "html", "main")
# Classes that say what a box has, how a page is laid out or what a page builder made it
# with, not what it is.
_STYLING = re.compile(
    r"(?:^|(?<=\s))(?:(?:has|no|with|show|hide|is|elementor|wp-block|js)-\S+"
    r"|\S*(?:layout|columns?\b)\S*|(?-i:[a-z]+Row)(?!\S))",
    re.I,
)
# From so many articles on a page, those under a heading that links away are teasers.
_TEASERS = 3
# A longer paragraph in italics is text: an interview's question, a quotation.
_CAPTION_CHARS = 160
# hAtom and the large blog systems: the post itself.
_POST = re.compile(r"\b(?:h-?entry|type-post|post-outer)\b|^post $")
_META = lexicon.Pattern(r"<class.meta_line>")
# HTML allows an article element for each comment; the large blog system writes them so.
_COMMENT = lexicon.Pattern(r"(?:^|\s)(?:<class.one_comment>)(?:-body|-\d+)?(?:\s|$)", flags=0)
_PART_OF_POST = lexicon.Pattern(r"(?:<class.post>)[-_]?(?:footer|meta|header)")


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the article and the rest of the page begin. Elements are given by their ``mem_id``.

    :ivar headline: every element that holds a headline; above them nothing tells article and rest
        apart
    :ivar teasers: article elements that announce another page
    :ivar first: the first headline
    :ivar by_class: the first headline is no h1 or h2: its class alone tells that it is one
    """

    headline: frozenset[int]
    teasers: frozenset[int]
    first: int | None
    by_class: bool = False


def of(doc: Document) -> Parts:
    """The parts of a page, found once per document."""
    seen = page_metadata.of(doc)
    if seen.parts is None:
        seen.parts = _parts(doc)
    found: Parts = seen.parts
    return found


def _parts(doc: Document) -> Parts:
    headings = _headlines(doc)
    first = headings[0] if headings else None
    ids: set[int] = set()
    for node in headings:
        parent = node.parent
        while parent is not None and parent.mem_id not in ids:
            ids.add(parent.mem_id)
            parent = parent.parent
    by_class = first is not None and first.tag not in ("h1", "h2")
    ident = first.mem_id if first is not None else None
    return Parts(frozenset(ids), frozenset(_teasers(doc, ids)), ident, by_class)


def _headlines(doc: Document) -> list[LexborNode]:
    """The h1 headings of the page's own; else the h2, or what a class names so, that a statement
    names."""
    own = (h for h in doc.tree.css("h1")[:6] if not _is_elsewhere(h, doc))
    if headings := list(islice(own, 3)):
        return headings
    said = title.statements(doc, [])
    second = doc.tree.css("h2")[:15]
    named = (h for h in doc.tree.css(title.HEADLINE_CSS)[:12] if h.tag != "a")
    return list(islice((h for h in chain(second, named) if _is_said(h, said)), 1))


def _is_elsewhere(heading: LexborNode, doc: Document) -> bool:
    return title.in_breadcrumb(heading) or title.leads_elsewhere(heading, doc)


def _teasers(doc: Document, headline: set[int]) -> Iterator[int]:
    """``mem_id`` of article elements under a heading that leads to another page."""
    articles = doc.tree.css("article")
    if len(articles) < _TEASERS:
        return
    for article in articles[:60]:
        if article.mem_id in headline:
            continue
        heading = article.css_first("h1,h2,h3,h4")
        if heading is not None and title.leads_elsewhere(heading, doc):
            yield article.mem_id


def _is_said(heading: LexborNode, said: list[tuple[str, str, float]]) -> bool:
    value = title.clean(title.heading_text(heading))
    return len(value) > 10 and any(title.agreement(value, other) > 0.8 for other, _, _ in said)


def foreign(
    node: LexborNode,
    names: re.Pattern[str] | lexicon.Pattern,
    parts: Parts,
    tags: tuple[str, ...] = ("footer", "aside", "nav"),
    allow: re.Pattern[str] | lexicon.Pattern | None = None,
) -> bool:
    """True when the node or an element above it, below the one that also holds the
    headline, is named so.

    A name that ``allow`` finds too does not count ("author-share").
    """
    for level, one in enumerate(islice(_below_headline(node, parts), _LEVELS)):
        attributes = one.attributes
        words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        if level and one.tag == "article":
            return one.mem_id in parts.teasers or bool(_COMMENT.search(words))
        if level and _POST.search(words):
            return False
        if allow is not None and allow.search(words):
            continue
        if len(words) < 300 and names.search(_STYLING.sub(" ", words)):
            return not _is_meta_line(one, words, parts)
        if one.tag in tags and not _is_part_of_article(one, words):
            return True
    return False


def _below_headline(node: LexborNode, parts: Parts) -> Iterator[LexborNode]:
    """The node and the elements above it, up to the one that also holds the headline."""
    one: LexborNode | None = node
    while one is not None and one.mem_id not in parts.headline and one.tag not in _TOP_TAGS:
        yield one
        one = one.parent


def _is_meta_line(node: LexborNode, words: str, parts: Parts) -> bool:
    """Date and byline of the article, whatever else the template calls the box."""
    return _META.search(words) is not None and _is_below_headline(node, parts)


def _is_part_of_article(node: LexborNode, words: str) -> bool:
    return _PART_OF_POST.search(words) is not None or _in_article(node)


def _is_below_headline(node: LexborNode, parts: Parts) -> bool:
    """The next element behind the headline: its own date and byline, whatever else the
    template calls the box."""
    before = node.prev
    while before is not None and before.tag in ("-text", "-comment"):
        before = before.prev
    return before is not None and before.mem_id == parts.first


def _in_article(node: LexborNode) -> bool:
    parent = node.parent
    for _ in range(6):
        if parent is None:
            return False
        if parent.tag == "article":
            return True
        parent = parent.parent
    return False


def is_caption(block: Block) -> bool:
    """Nothing but italics below a picture that has a paragraph of its own, or in the
    paragraph of the picture."""
    if block.tag not in ("p", "td") or block.link_chars or block.text[-1:] in "?:":
        return False
    if not 3 <= len(block.text) <= _CAPTION_CHARS:
        return False
    italic = block.node.css_first("em,i")
    if italic is None or len(collapse(italic.text(deep=True))) < 0.9 * len(block.text):
        return False
    return block.node.css_first("img") is not None or _is_below_picture(block.node)


def _is_below_picture(node: LexborNode) -> bool:
    """Whether the element before it holds a picture and no text."""
    before = node.prev
    while before is not None and before.tag == "-text" and not (before.text_content or "").strip():
        before = before.prev
    if before is None or before.tag not in ("p", "div", "img", "a", "picture"):
        return False
    has_picture = before.tag == "img" or before.css_first("img") is not None
    return has_picture and not before.text(deep=True).strip()
