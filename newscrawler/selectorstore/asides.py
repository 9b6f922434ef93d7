"""Which blocks of a page are not the article's, though the labels hold them: boxes, captions, bylines, lists of other stories. Pure."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

from newscrawler.extraction.blocks import Block
from newscrawler.selectorstore import css
from newscrawler.selectorstore.samples import Sample, norm

NAMED = re.compile(
    r"caption|related|relate|lien-?quan|tin-?khac|tinlienquan|baiviet|share|social|tags?\b|-ads?\b|advert|banner|author|byline|"
    r"tac-?gia|source|nguon|comment|vote|rating|avatar|photo|image|figure|newsletter|subscribe|readmore|xem-?_?them|"
    r"most-?_?(?:read|viewed|popular)|popular|trending|recommend",
    re.I,
)
TAGS = frozenset({"figure", "figcaption", "aside", "nav", "footer"})
#: What of_other_stories gives: needs no proof by numbers, as lists of an article's own have no headings.
STORY = re.compile(r"li > h[2-5]")
#: How far up a name such as "related" is looked for: above, it may name the page's part that holds everything.
_ABOVE = 4
#: A box so named holds less text than this, or less than this part of the article's: else it is the article's own.
_CHARS, _SHARE = 1500, 0.6


def is_aside(block: Block, text: str, sample: Sample) -> bool:
    """What labels often hold though it is not the article's text: link lists, captions, bylines.

    The generic chain that labels come from is about 0.95 right; what it wrongly keeps would keep the very
    boxes in that excludes are for.
    """
    if block.link_chars >= 0.8 * len(block.text):
        return True
    if len(text) < 80 and any(norm(name) in text for name in sample.labels.authors):
        return True
    if len(text) > 600:
        return False
    most = max(_CHARS, _SHARE * len(sample.labels.content or ""))
    for node in (block.node, *css.ancestors(block.node, _ABOVE)):
        if node.tag in TAGS or (node.tag == "li" and _heads_elsewhere(node)):
            return True
        named = (v or "" for k, v in node.attributes.items() if k in ("class", "id", "type") or k.startswith("data-"))
        names = " ".join(named)
        if NAMED.search(names) and len(node.text(deep=True)) < most:
            return True
    return False


def of_other_stories(node: LexborNode) -> list[str]:
    """Selectors of a heading or of what follows it in an item of a list that has no name: by the list's own form."""
    item = node.parent
    if item is None or item.tag != "li" or not _heads_elsewhere(item):
        return []
    heading = next((n.tag for n in item.iter() if n.tag in ("h2", "h3", "h4", "h5")), None)
    if heading is None:
        return []
    return [f"li > {heading}"] if node.tag == heading else [f"li > {heading} ~ {node.tag}"]


def _heads_elsewhere(item: LexborNode) -> bool:
    """An item of a list whose heading is a link: another story, and the line of text below it is that story's."""
    for heading in item.css("h2, h3, h4, h5")[:1]:
        linked = sum(len(a.text(deep=True).strip()) for a in heading.css("a[href]"))
        return linked >= 0.8 * max(1, len(heading.text(deep=True).strip()))
    return False
