"""Whether a node belongs to the article or to something else on the page (comments, related, footer). Pure."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

from newscrawler.extraction.document import Document

_LEVELS = 14
# Classes that say what a box has or what a page builder made it with, not what it is.
_STYLING = re.compile(r"(?:^|(?<=\s))(?:has|no|with|show|hide|is|elementor|wp-block|js)-\S+", re.I)
# hAtom and the large blog systems: the post itself.
_POST = re.compile(r"\b(?:h-?entry|type-post|post-outer)\b")
_PART_OF_POST = re.compile(r"(?:post|entry|article|story)[-_]?(?:footer|meta|header)", re.I)


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
    node: LexborNode,
    names: re.Pattern[str],
    stop: frozenset[int],
    tags: tuple[str, ...] = ("footer", "aside", "nav"),
    allow: re.Pattern[str] | None = None,
) -> bool:
    """True when the node or an element above it, below the one that also holds the headline, is named so.

    A name that ``allow`` finds too does not count ("author-share").
    """
    one: LexborNode | None = node
    for level in range(_LEVELS):
        if one is None or one.mem_id in stop or one.tag in ("body", "html", "main"):
            return False
        if level and one.tag == "article":
            return False
        attributes = one.attributes
        words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        if level and _POST.search(words):
            return False
        allowed = allow is not None and bool(allow.search(words))
        if len(words) < 300 and not allowed and names.search(_STYLING.sub(" ", words)):
            return True
        if one.tag in tags and not allowed and not _PART_OF_POST.search(words) and not _in_article(one):
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
