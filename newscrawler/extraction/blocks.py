"""A part of a page as blocks of text: paragraphs, list items, sub-headings, in page order. Pure.

One walk without recursion serves the selector path and the block scorer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from newscrawler.extraction.document import Document, words

#: Elements that end the paragraph before them and the one inside them.
BLOCK_TAGS = words(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset"
    " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav"
    " ol p pre section summary table tbody td tfoot th thead tr ul"
)
#: Never text of an article.
SKIP_TAGS = words(
    "script style noscript template svg math iframe object embed video audio canvas select button"
    " input textarea option head map progress meter datalist rt"
)
_TEXT = "-text"
_SENTENCE_END = re.compile(r"[.!?…。！？»”\"]['”\"’)\]]?$")
_BOLD = ("b", "strong")


@dataclass(slots=True)
class Block:
    """``text`` with white space collapsed; ``tag`` of the nearest block element;
    ``node`` that element."""

    text: str
    tag: str
    node: LexborNode
    link_chars: int = 0
    bold_chars: int = 0
    ancestors: tuple[int, ...] = field(default=())  # mem_ids, nearest first; filled on request

    @property
    def holder(self) -> int:
        """``mem_id`` of the element above its own; 0 at the top."""
        parent = self.node.parent
        return 0 if parent is None else parent.mem_id


def ends_a_sentence(text: str) -> bool:
    """Whether it ends as running text does: a heading or a caption seldom ends with a full stop."""
    return bool(_SENTENCE_END.search(text[-3:]))


def collapse(text: str) -> str:
    return " ".join(text.split())


class _Open:
    """The block that is being read."""

    __slots__ = ("bold", "bold_chars", "breaks", "link", "link_chars", "owner", "parts")

    def __init__(self, owner: LexborNode) -> None:
        self.owner = owner
        self.parts: list[str] = []
        self.link = self.bold = self.breaks = (
            0  # open links, open bold elements, line breaks in a row
        )
        self.link_chars = self.bold_chars = 0

    def add(self, text: str) -> None:
        if not text.isspace():
            self.parts.append(text)
            self.breaks = 0
            if self.link:
                self.link_chars += len(text)
            if self.bold:
                self.bold_chars += len(text)
        elif self.parts:
            self.parts.append(" ")

    def line_break(self) -> bool:
        """True when the second in a row ends the block."""
        self.breaks += 1
        if self.breaks < 2:
            self.parts.append("\n")
        return self.breaks >= 2

    def take(self) -> Block | None:
        """Returns what was read so far as a block, and begins the next one."""
        if not self.parts:
            return None
        block = _finish(self.parts, self.owner, self.link_chars, self.bold_chars)
        self.parts, self.link_chars, self.bold_chars = [], 0, 0
        return block


def block_list(doc: Document) -> list[Block]:
    """The blocks of a page's body, read once per document."""
    if doc.blocks is None:
        body = doc.tree.body
        doc.blocks = [] if body is None else list(walk(body))
    found: list[Block] = doc.blocks
    return found


def walk(  # noqa: C901, PLR0912 - a call per node costs a tenth of an extraction
    root: LexborNode, skip: frozenset[int] | set[int] = frozenset()
) -> Iterator[Block]:
    """Blocks below ``root`` in page order; elements whose ``mem_id`` is in ``skip``
    are left out whole.

    One ``<br>`` keeps a line break inside a block, two end it.
    """
    here = _Open(root)
    top_id = root.mem_id
    node: LexborNode | None = root
    while node is not None:
        tag = node.tag
        child = None
        entered = False
        if tag == _TEXT:
            here.add(node.text_content or "")
        elif tag == "br":
            if here.line_break() and (block := here.take()):
                yield block
        elif (
            tag is not None
            and tag[0] != "-"
            and (tag not in SKIP_TAGS or _is_in_brackets(node))
            and node.mem_id not in skip
        ):
            entered = True
            child = node.first_child
            if tag in BLOCK_TAGS:
                if block := here.take():
                    yield block
                here.owner, here.breaks = node, 0
            elif tag == "a":
                here.link += 1
            elif tag in _BOLD:
                here.bold += 1
        if child is not None:
            node = child
            continue
        closing = node if entered else None
        while node is not None:  # close what ends here, up to the next sibling
            if closing is not None:
                if (ended := closing.tag) in BLOCK_TAGS:
                    if block := here.take():
                        yield block
                    here.breaks = 0
                    if closing.mem_id != top_id:
                        here.owner = _owner(closing)
                elif ended == "a":
                    here.link -= 1
                elif ended in _BOLD:
                    here.bold -= 1
            if node.mem_id == top_id:
                if block := here.take():  # the root may be an inline element
                    yield block
                return
            if (following := node.next) is not None:
                node = following
                break
            node = closing = node.parent


def _is_in_brackets(node: LexborNode) -> bool:
    """How a word is read, with brackets for those who see no ruby: a part of the line. Without them
    it would be read twice."""
    before = node.prev
    return node.tag == "rt" and before is not None and before.tag == "rp"


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
