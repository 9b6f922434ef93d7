"""Teasers of a page: the blocks that announce other pages, and how much of a text
stands in them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborNode

from newscrawler.extraction.document import Document
from newscrawler.utils.numbers import share

#: A link is a headline's from so many characters and words on.
_HEADLINE_CHARS, _HEADLINE_WORDS = 24, 4
#: Characters of a teaser with its lead, time and caption; what is longer is a text
#: with a link in it.
_TEASER_CHARS = 700
#: The line that a headline stands in is little else than its link.
_LINE_SHARE = 0.7
#: A list shows so many; a page with so much text in paragraphs of this length is none.
_LEAST_TEASERS, _OWN_CHARS, _PARAGRAPH_CHARS = 3, 400, 80
#: Some sites set paragraphs in these.
_PARAGRAPHS = "p,div,td,section"
#: Links that are looked at, and how far a teaser's block is sought above its link.
_MOST_LINKS = 1_000
_MOST_LEVELS = 12
_LINES = frozenset(
    [
        "p",
        "div",
        "li",
        "td",
        "dd",
        "dt",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "article",
        "section",
        "figcaption",
        "main",
        "body",
    ]
)


def teasers(doc: Document) -> list[str]:
    """The texts of the page's teasers, one for each page that is announced, spaces made one.

    A teaser is the largest block around a headline that leads to another page, with no
    other such headline in it.
    """
    above = [(target, _ancestors(node)) for target, node in _headlines(doc)]
    targets: dict[int, set[str]] = {}
    for target, parents in above:
        for parent in parents:
            targets.setdefault(parent.mem_id, set()).add(target)
    found: dict[str, str] = {}
    for target, parents in above:
        alone = takewhile(lambda parent: len(targets[parent.mem_id]) == 1, parents)
        text = _largest(alone)
        if len(text) > len(found.get(target, "")):
            found[target] = text
    return list(found.values())


def _largest(parents: Iterable[LexborNode]) -> str:
    """The text of the last element before one that is empty or too long for a teaser."""
    text = ""
    for parent in parents:
        wider = _text(parent)
        if not 0 < len(wider) <= _TEASER_CHARS:
            break
        text = wider
    return text


def headline_hrefs(doc: Document) -> list[str]:
    """The hrefs of the links that :func:`teasers` takes for headlines, each target once."""
    found: dict[str, str] = {}
    for target, node in _headlines(doc):
        found.setdefault(target, node.attributes.get("href") or "")
    return list(found.values())


def form(doc: Document) -> str:
    """What a page is by its teasers alone: "list", "text" (it has one of its own), or "" (neither:
    a form, a few words)."""
    blocks = teasers(doc)
    joined = "\n".join(blocks)
    own = 0
    for node in doc.tree.css(_PARAGRAPHS):
        if node.tag != "p" and any(child.tag in _LINES for child in node.iter()):
            continue  # it holds paragraphs
        text = _text(node)
        if len(text) >= _PARAGRAPH_CHARS and text not in joined:
            own += len(text)
    if own >= _OWN_CHARS:
        return "text"
    return "list" if len(blocks) >= _LEAST_TEASERS else ""


def share_in(content: str, blocks: Iterable[str]) -> float:
    """The share of a text, by its characters, whose paragraphs stand in one of these blocks."""
    joined = "\n".join(blocks)
    parts = [" ".join(part.split()) for part in content.split("\n\n")]
    return share(sum(len(part) for part in parts if part in joined), sum(map(len, parts)))


def _headlines(doc: Document) -> Iterator[tuple[str, LexborNode]]:
    """Links to other pages that are as long as a headline and fill their line: the
    address, and the link."""
    own = address(doc.base_url, doc.url)
    for node in doc.tree.css("a[href]")[:_MOST_LINKS]:
        target = address(doc.base_url, node.attributes.get("href") or "")
        if not target or target == own:
            continue
        text = _text(node)
        if len(text) < _HEADLINE_CHARS or text.count(" ") + 1 < _HEADLINE_WORDS:
            continue
        if len(text) >= _LINE_SHARE * len(_text(_line_of(node))):
            yield target, node


def _line_of(node: LexborNode) -> LexborNode:
    while node.parent is not None and node.tag not in _LINES:
        node = node.parent
    return node


def _ancestors(node: LexborNode) -> list[LexborNode]:
    found: list[LexborNode] = []
    at = node.parent
    while at is not None and at.tag not in ("body", "html") and len(found) < _MOST_LEVELS:
        found.append(at)
        at = at.parent
    return found


def address(base: str, href: str) -> str:
    """Host, path and query of a link, to tell one target from another; "" where
    it leads to no page."""
    try:
        parts = urlsplit(urljoin(base, href.strip()))
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https"):
        return ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.netloc.removeprefix('www.')}{parts.path}{query}".rstrip("/")


_SPACES = re.compile(r"\s+")


def _text(node: LexborNode) -> str:
    return _SPACES.sub(" ", node.text(deep=True, separator=" ")).strip()
