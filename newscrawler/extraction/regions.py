"""Whether a node belongs to the article or to something else on the page (comments, related, footer). Pure."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

from newscrawler.extraction.document import Document

_LEVELS = 14


def headline_ancestors(doc: Document) -> frozenset[int]:
    """``mem_id`` of every element that holds a headline: above them nothing tells article and rest apart."""
    ids: set[int] = set()
    for node in doc.tree.css("h1")[:3]:
        parent = node.parent
        while parent is not None and parent.mem_id not in ids:
            ids.add(parent.mem_id)
            parent = parent.parent
    return frozenset(ids)


def foreign(
    node: LexborNode, names: re.Pattern[str], stop: frozenset[int], tags: tuple[str, ...] = ("footer", "aside", "nav")
) -> bool:
    """True when the node or an element above it, below the one that also holds the headline, is named so."""
    one: LexborNode | None = node
    for level in range(_LEVELS):
        if one is None or one.mem_id in stop or one.tag in ("body", "html", "main"):
            return False
        if level and one.tag == "article":
            return False
        attributes = one.attributes
        words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        if len(words) < 200 and names.search(words):
            return True
        if one.tag in tags and not _in_article(one):
            return True
        one = one.parent
    return False


def _in_article(node: LexborNode) -> bool:
    parent = node.parent
    for _ in range(6):
        if parent is None:
            return False
        if parent.tag == "article":
            return True
        parent = parent.parent
    return False
