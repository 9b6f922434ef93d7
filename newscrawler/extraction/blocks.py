"""A part of a page as blocks of text: paragraphs, list items, sub-headings, in page order. Pure.

One walk without recursion serves the selector path and the block scorer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from newscrawler.extraction.document import words

#: Elements that end the paragraph before them and the one inside them.
BLOCK_TAGS = words(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table tbody td "
    "tfoot th thead tr ul"
)
#: Never text of an article.
SKIP_TAGS = words(
    "script style noscript template svg math iframe object embed video audio canvas select button input textarea "
    "option head map progress meter datalist"
)
_TEXT = "-text"


@dataclass(slots=True)
class Block:
    """``text`` with white space collapsed; ``tag`` of the nearest block element; ``node`` that element."""

    text: str
    tag: str
    node: LexborNode
    link_chars: int = 0
    bold_chars: int = 0
    ancestors: tuple[int, ...] = field(default=())  # mem_ids, nearest first; filled on request


def collapse(text: str) -> str:
    return " ".join(text.split())


def walk(root: LexborNode, skip: frozenset[int] | set[int] = frozenset()) -> Iterator[Block]:
    """Blocks below ``root`` in page order; elements whose ``mem_id`` is in ``skip`` are left out whole.

    One ``<br>`` keeps a line break inside a block, two end it.
    """
    parts: list[str] = []
    link_chars = bold_chars = link_depth = bold_depth = 0
    owner = root
    breaks = 0
    node: LexborNode | None = root
    top_id = root.mem_id
    while node is not None:
        tag = node.tag
        descend = False
        if tag == _TEXT:
            text = node.text_content or ""
            if text and not text.isspace():
                parts.append(text)
                breaks = 0
                if link_depth:
                    link_chars += len(text)
                if bold_depth:
                    bold_chars += len(text)
            elif text and parts:
                parts.append(" ")
        elif tag == "br":
            breaks += 1
            if breaks < 2:
                parts.append("\n")
            elif parts:
                block = _finish(parts, owner, link_chars, bold_chars)
                if block:
                    yield block
                parts, link_chars, bold_chars = [], 0, 0
        elif tag is not None and tag[0] != "-" and tag not in SKIP_TAGS and node.mem_id not in skip:
            descend = True
            if tag in BLOCK_TAGS:
                if parts:
                    block = _finish(parts, owner, link_chars, bold_chars)
                    if block:
                        yield block
                    parts, link_chars, bold_chars = [], 0, 0
                owner = node
                breaks = 0
            elif tag == "a":
                link_depth += 1
            elif tag in ("b", "strong"):
                bold_depth += 1
        child = node.first_child if descend else None
        if child is not None:
            node = child
            continue
        if descend and tag in BLOCK_TAGS and node.mem_id != top_id:
            owner = _owner(node)
        # close this element and those that end here
        closing: LexborNode | None = node if descend else None
        while True:
            if closing is not None:
                ctag = closing.tag or ""
                if ctag == "a":
                    link_depth -= 1
                elif ctag in ("b", "strong"):
                    bold_depth -= 1
                elif ctag in BLOCK_TAGS:
                    if parts:
                        block = _finish(parts, owner, link_chars, bold_chars)
                        if block:
                            yield block
                        parts, link_chars, bold_chars = [], 0, 0
                    breaks = 0
                    if closing.mem_id != top_id:
                        owner = _owner(closing)
                if closing.mem_id == top_id:
                    return
            if node.mem_id == top_id:
                return
            following = node.next
            if following is not None:
                node = following
                break
            parent = node.parent
            if parent is None:
                return
            node = closing = parent


def _owner(node: LexborNode) -> LexborNode:
    """The nearest block element above."""
    parent = node.parent
    while parent is not None and parent.tag not in BLOCK_TAGS and parent.parent is not None:
        parent = parent.parent
    return parent or node


def _finish(parts: list[str], owner: LexborNode, link_chars: int, bold_chars: int) -> Block | None:
    raw = "".join(parts)
    if "\n" in raw or "\r" in raw:
        # Only a <br> made a part that is exactly "\n"; line ends inside text nodes are white space.
        lines = [" ".join(line.split()) for line in _lines(parts)]
        text = "\n".join(line for line in lines if line)
    else:
        text = " ".join(raw.split())
    if not text:
        return None
    return Block(text, owner.tag or "", owner, link_chars, bold_chars)


def _lines(parts: list[str]) -> list[str]:
    lines: list[list[str]] = [[]]
    for part in parts:
        if part == "\n":
            lines.append([])
        else:
            lines[-1].append(part)
    return ["".join(line) for line in lines]
