"""Which blocks of a page are not the article's, though the labels hold them: boxes, captions,
bylines, lists of other stories. Pure."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

from newscrawler.extraction import lexicon
from newscrawler.extraction.blocks import Block
from newscrawler.selectorsets import css
from newscrawler.selectorsets.samples import Sample, norm

NAMED = lexicon.Pattern(r"<class.related>")
TAGS = frozenset({"figure", "figcaption", "aside", "nav", "footer"})
#: What of_other_stories gives: needs no proof by numbers, as lists of an article's
#: own have no headings.
STORY = re.compile(r"li > h[2-5]")
#: How far up a name such as "related" is looked for: above, it may name the page's part
#: that holds everything.
_ABOVE = 4
#: A box so named holds less text than this, or less than this part of the article's: else
#: it is the article's own.
_CHARS, _SHARE = 1500, 0.6


def is_related(block: Block, text: str, sample: Sample) -> bool:
    """What labels often hold though it is not the article's text: link lists, captions, bylines.

    The generic chain that labels come from is about 0.95 right; what it wrongly keeps would keep
    the very boxes in that excludes are for.
    """
    if block.link_chars >= 0.8 * len(block.text):
        return True
    if len(text) < 80 and any(norm(name) in text for name in sample.labels.authors):
        return True
    if len(text) > 600:
        return False
    most = max(_CHARS, _SHARE * len(sample.labels.content or ""))
    return any(_is_box(node, most) for node in (block.node, *css.ancestors(block.node, _ABOVE)))


def _is_box(node: LexborNode, most: float) -> bool:
    """By its tag, as another story in a list, or by its name if it has fewer than ``most``
    characters."""
    if node.tag in TAGS or (node.tag == "li" and _heads_elsewhere(node)):
        return True
    attributes = node.attributes.items()
    names = " ".join(value or "" for name, value in attributes if _is_name(name))
    return bool(NAMED.search(names)) and len(node.text(deep=True)) < most


def _is_name(attribute: str) -> bool:
    return attribute in ("class", "id", "type") or attribute.startswith("data-")


def of_other_stories(node: LexborNode) -> list[str]:
    """Selectors of a heading or of what follows it in an item of a list that has no name:
    by the list's own form."""
    item = node.parent
    if item is None or item.tag != "li" or not _heads_elsewhere(item):
        return []
    heading = next((n.tag for n in item.iter() if n.tag in ("h2", "h3", "h4", "h5")), None)
    if heading is None:
        return []
    return [f"li > {heading}"] if node.tag == heading else [f"li > {heading} ~ {node.tag}"]


def _heads_elsewhere(item: LexborNode) -> bool:
    """An item of a list whose heading is a link: another story, and the line of text below
    it is that story's."""
    for heading in item.css("h2, h3, h4, h5")[:1]:
        linked = sum(len(a.text(deep=True).strip()) for a in heading.css("a[href]"))
        return linked >= 0.8 * max(1, len(heading.text(deep=True).strip()))
    return False
