"""A page cut down for a model, so that a selector written for the cut page still fits
the whole one. Pure.

Tags, ids and classes stay as they are; nodes are never unwrapped or merged, text is shortened,
never the markup. What must not get lost is handed in as ``protect``: those nodes and all their
ancestors stay, whatever the size. Selectors are always executed on the whole page, never on this.
"""

from __future__ import annotations

import html
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from newscrawler.extraction import lexicon
from newscrawler.web.hostile import hides, without_unsafe

_DROP = frozenset(
    {"script", "style", "svg", "iframe", "noscript", "template", "form", "link", "object", "embed",
     "canvas", "select",
     "button", "input", "video", "audio", "source", "picture", "map", "head", "base"}
)  # fmt: skip
_CHROME_TAGS = frozenset({"nav", "footer", "aside", "menu", "dialog"})
_CHROME = lexicon.Pattern(r"<class.cut>")
_KEPT = frozenset(
    {
        "id",
        "class",
        "type",
        "itemprop",
        "itemtype",
        "rel",
        "role",
        "datetime",
        "property",
        "name",
        "content",
    }
)
_BYLINE = lexicon.Pattern(r"<class.writer>")
_VOID = frozenset({"meta", "img", "br", "hr", "wbr", "col", "area", "track", "param"})
_MAX_DEPTH = 120
_TEXT_CHARS = 60
_RUN_ENDS = 2


@dataclass
class Trimmed:
    html: str
    dropped: int  # nodes left out
    over_budget: bool  # the protected part alone is larger than was asked


@dataclass
class _Out:
    """An element on its way out: start tag, children (elements and text), whether it must stay."""

    start: str
    tag: str
    label: str
    kept: bool
    parts: list[_Out | str] = field(default_factory=list)
    size: int = 0

    def measure(self) -> int:
        inner = sum(p.measure() if isinstance(p, _Out) else len(p) for p in self.parts)
        self.size = len(self.start) + inner + len(self.tag) + 3
        return self.size

    def write(self, into: list[str]) -> None:
        into.append(self.start)
        for part in self.parts:
            if isinstance(part, _Out):
                part.write(into)
            else:
                into.append(part)
        if self.tag not in _VOID:
            into.append(f"</{self.tag}>")


def natural_protect(tree: LexborHTMLParser) -> list[LexborNode]:
    """Nodes that are worth keeping on any page: headings, times, itemprops, bylines."""
    nodes = list(tree.css("h1, time, [itemprop], [rel~=author], address"))
    nodes += [
        n
        for n in tree.css("[class]")
        if _BYLINE.search(n.attributes.get("class") or "") and _text_len(n) < 200
    ]
    return nodes


def trim(
    tree: LexborHTMLParser, protect: Iterable[LexborNode] = (), *, max_chars: int = 40_000
) -> Trimmed:
    """The body of ``tree`` as short HTML of at most ``max_chars`` where the
    protected nodes allow it."""
    body = tree.body
    if body is None:
        return Trimmed("", 0, False)
    keep: set[int] = set()
    targets: set[int] = set()
    for node in protect:
        targets.add(node.mem_id)
        current: LexborNode | None = node
        while current is not None and current.mem_id not in keep:
            keep.add(current.mem_id)
            current = current.parent
    walker = _Walker(keep, targets)
    root = walker.element(body, 0)
    assert root is not None
    root.kept = True
    over = _shrink(root, max_chars, walker)
    into: list[str] = []
    root.write(into)
    return Trimmed("".join(into), walker.dropped, over)


class _Walker:
    def __init__(self, keep: set[int], targets: set[int]) -> None:
        self.keep = keep
        self.targets = targets
        self.dropped = 0

    def element(self, node: LexborNode, depth: int) -> _Out | None:
        tag = node.tag or "div"
        kept = node.mem_id in self.keep
        attributes = node.attributes
        if not kept and (depth > _MAX_DEPTH or self._is_chrome(node, tag, attributes)):
            self.dropped += 1
            return None
        if depth > _MAX_DEPTH * 2:  # a protected node that deep is no byline; recursion must end
            return None
        out = _Out(_start_tag(tag, attributes, kept), tag, _label(tag, attributes), kept)
        children = list(node.iter(include_text=True))
        self._children(out, children, depth, kept)
        return out

    def _children(self, out: _Out, children: list[LexborNode], depth: int, kept: bool) -> None:
        for run in _runs(children):
            if run[0].is_text_node:
                for child in run:
                    parent = child.parent
                    full = kept and parent is not None and parent.mem_id in self.targets
                    if text := _short(child.text_content or "", full=full):
                        out.parts.append(text)
            else:
                self._elements(out, run, depth)

    def _elements(self, out: _Out, run: list[LexborNode], depth: int) -> None:
        """Neighbours that are alike: the first and the last ones, and what must stay."""
        middle = range(_RUN_ENDS, len(run) - _RUN_ENDS)
        skipped = 0
        for index, child in enumerate(run):
            if index in middle and child.mem_id not in self.keep:
                skipped += 1
                self.dropped += 1
                continue
            skipped = self._flush(out, skipped, child)
            inner = self.element(child, depth + 1)
            if inner is not None:
                out.parts.append(inner)
        self._flush(out, skipped, run[-1])

    @staticmethod
    def _flush(out: _Out, skipped: int, like: LexborNode) -> int:
        if skipped:
            out.parts.append(f"<!--x{skipped} {_label(like.tag or '', like.attributes)}-->")
        return 0

    @staticmethod
    def _is_chrome(node: LexborNode, tag: str, attributes: dict[str, Any]) -> bool:
        if tag in _DROP or "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if hides(attributes.get("style") or ""):
            return True
        if tag in _CHROME_TAGS:
            return True
        words = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        return bool(_CHROME.search(words)) and _text_len(node) < 600


def _runs(children: list[LexborNode]) -> Iterator[list[LexborNode]]:
    """Neighbours of the same tag and class together; text nodes of only white space between
    them do not part them."""
    shown = (child for child in children if _is_shown(child))
    for _, run in groupby(shown, key=_likeness):
        yield list(run)


def _is_shown(node: LexborNode) -> bool:
    if node.is_text_node:
        return bool((node.text_content or "").strip())
    return node.is_element_node


def _likeness(node: LexborNode) -> tuple[str, str]:
    if node.is_text_node:
        return "#text", ""
    return node.tag or "", node.attributes.get("class") or ""


_CUT = "<!--cut-->"


def _shrink(root: _Out, max_chars: int, walker: _Walker) -> bool:
    """Leaves out the largest unprotected subtrees until it fits. True: it does not."""
    while root.measure() > max_chars:
        before = walker.dropped
        _shrink_once(root, root.size - max_chars, walker)
        if walker.dropped == before:
            return True
    return False


def _shrink_once(root: _Out, excess: int, walker: _Walker) -> None:
    """One round over sizes that were measured before it: what was cut inside a node makes
    its size too large."""
    candidates = sorted(
        ((p, c) for p, c in _pairs(root) if not c.kept), key=lambda pair: pair[1].size
    )
    gone: set[int] = set()
    while excess > 0:
        while candidates and id(candidates[-1][1]) in gone:
            candidates.pop()
        if not candidates:
            break
        # The smallest that is enough alone, else the largest: a page's one enormous
        # container is the last to go.
        at = bisect_left(candidates, excess + len(_CUT), key=lambda pair: pair[1].size)
        while at < len(candidates) and id(candidates[at][1]) in gone:
            at += 1
        parent, child = candidates.pop(at if at < len(candidates) else -1)
        gone.update(id(inner) for _, inner in _pairs(child))
        excess -= _leave_out(parent, child)
        walker.dropped += 1


def _leave_out(parent: _Out, child: _Out) -> int:
    """Puts one mark in the place of neighbours that are left out; returns the
    characters that it saves."""
    at = next(i for i, part in enumerate(parent.parts) if part is child)
    marked = [i for i in (at - 1, at + 1) if 0 <= i < len(parent.parts) and parent.parts[i] == _CUT]
    if not marked:
        parent.parts[at] = _CUT
        return child.size - len(_CUT)
    del parent.parts[at]
    if len(marked) == 2:
        del parent.parts[at]
        return child.size + len(_CUT)
    return child.size


def _pairs(root: _Out) -> Iterator[tuple[_Out, _Out]]:
    stack = [root]
    while stack:
        current = stack.pop()
        for part in current.parts:
            if isinstance(part, _Out):
                yield current, part
                stack.append(part)


def _start_tag(tag: str, attributes: dict[str, Any], kept: bool) -> str:
    stays = ((name, value or "") for name, value in attributes.items())
    pairs = [
        f'{name}="{html.escape(value, quote=True)}"'
        for name, value in stays
        if _is_telling(name, value, kept)
    ]
    return f"<{tag} {' '.join(pairs)}>" if pairs else f"<{tag}>"


def _is_telling(name: str, value: str, kept: bool) -> bool:
    """An attribute that a selector may be made of, or that a kept node shows."""
    if name == "content" and len(value) > 120:
        return False
    if name in _KEPT or (name.startswith("data-") and len(value) < 40):
        return True
    return kept and name in ("href", "title") and len(value) < 80


def _label(tag: str, attributes: dict[str, Any]) -> str:
    classes = ".".join((attributes.get("class") or "").split()[:3])
    return (f"{tag}.{classes}" if classes else tag).replace("--", "")


def _short(text: str, full: bool) -> str:
    text = without_unsafe(" ".join(text.split()))
    if not text:
        return ""
    if not full and len(text) > _TEXT_CHARS + 10:
        text = f"{text[:_TEXT_CHARS]}…[{len(text)}]"
    elif len(text) > 300:
        text = f"{text[:260]}…{text[-40:]}"
    return html.escape(text, quote=False)


def _text_len(node: LexborNode) -> int:
    return len(node.text(deep=True, strip=True))
