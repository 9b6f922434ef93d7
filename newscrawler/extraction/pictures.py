"""The pictures of an article with their captions and credits, beside its plain text. Pure.

A picture is listed where its page says something of it: a caption or a credit that stands with it
in one box. Pictures without a word are not, as nothing tells them from ornaments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from urllib.parse import urljoin

from selectolax.lexbor import LexborNode

from newscrawler.extraction import byline_text, lexicon, regions, text
from newscrawler.extraction import selectors as selectors_
from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

#: Pictures of an article, and characters of a caption and of a credit, at most: what is longer is
#: a text.
MOST, LONGEST, LONGEST_CREDIT = 60, 1_000, 160
# Names are written in small letters or with a capital.
_CAPTIONS = 'figcaption,[class*="aption"]'
_CREDITS = (
    '[class*="redit"],[class*="opyright"],[class*="hotographer"],[class*="source"],'
    '[class*="author"],[itemprop=copyrightHolder],[itemprop=author],cite,small'
)
# A source by itself may be a film or a sound.
_IMAGES = "img,amp-img,picture source"
# Where lazy pages keep the address; a placeholder stands in src then.
_ADDRESSES = ("data-src", "data-original", "data-lazy-src", "data-srcset", "src", "srcset")
_PICTURE_FILE = re.compile(r"\.(?:jpe?g|png|webp|gif|avif)\b", re.I)
# Sites write "/a.jpg 480w,/b.jpg 800w" as well; an address may have commas.
_SRCSET_COMMA = re.compile(r"(?<=\d[wx]),\s*|,\s+")
_DESCRIPTOR = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)[wx]")
_LEVELS = 4
_MOST_CAPTIONS = 150
# Of a box, so many are looked at.
_MOST_IMAGES, _MOST_CREDITS = 8, 4
_TOP_TAGS = ("body", "html", "main", "article")
# "(Photo: Jane Doe)", "Ảnh: TTXVN", "© dpa": the sign or word before who made it.
_LABEL = lexicon.Pattern(
    r"^[\s(\[|/–-]*(?:(?:(?:<credit.picture>|<credit.caption_end>)\s*[:：©/]|©|\(c\)\s)\s*)+"
)
_LABEL_WORDS = lexicon.Pattern(r"^(?:<credit.picture>|<credit.caption_end>)$")
_LABEL_SIGN = re.compile(r"[:：©]")
_MOST_LABEL_WORDS = 3
_EDGES = " \t|/–-,;"


def find(
    doc: Document, content: FieldValue, selectors: selectors_.SelectorSet | None = None
) -> FieldValue:
    """A list of ``{"url", "caption", "credit"}`` in page order, absolute addresses, each once;
    texts may be "". ``content`` is the article's text with its origin: where a selector set found
    it, pictures are looked for in the elements of ``selectors``, the set."""
    page = _PictureBoxes(doc)
    found: dict[str, dict[str, str]] = {}
    for node in _captions(doc, content, selectors):
        picture = _picture(page, node)
        if picture is not None:
            known = found.setdefault(picture["url"], picture)
            if len(picture["caption"]) > len(known["caption"]):
                known["caption"] = picture["caption"]
            known["credit"] = known["credit"] or picture["credit"]
        if len(found) >= MOST:
            break
    listed = [one for one in found.values() if one["caption"] or one["credit"]]
    return FieldValue(listed, "caption", 0.8) if listed else FieldValue([])


def _captions(
    doc: Document, content: FieldValue, selectors: selectors_.SelectorSet | None
) -> Iterator[LexborNode]:
    """Elements that hold the words of a picture of the article."""
    by_set = content.origin.removeprefix("selector:")
    if by_set != content.origin:
        yield from _captions_of_set(doc, by_set, selectors)
        return
    parts = regions.of(doc)
    elsewhere: dict[int, bool] = {}  # what stands in one element is asked once
    for node in _innermost(doc.tree.css(_CAPTIONS)[:_MOST_CAPTIONS]):
        box = node if node.tag != "figcaption" or node.parent is None else node.parent
        above = 0 if box.parent is None else box.parent.mem_id
        if above not in elsewhere:
            elsewhere[above] = regions.foreign(box, byline_text.FOREIGN, parts, allow=_PICTURE_BOX)
        if not elsewhere[above]:
            yield node


def _captions_of_set(
    doc: Document, root: str, selectors: selectors_.SelectorSet | None
) -> Iterator[LexborNode]:
    """Those below what ``root`` finds, the lead beside the text, outside of the boxes of other
    stories that the set excludes. What else it excludes may be the pictures' own boxes."""
    roots = selectors_.outermost(doc.tree.css(selectors_.cheap(root)))
    every = (node for one in roots for node in one.css(_CAPTIONS))
    nodes = list(_innermost(list(islice(every, _MOST_CAPTIONS))))
    if not nodes:
        return
    variants = selectors.variants if selectors is not None else ()
    used = (variant for variant in variants if root in variant.content_root)
    others = {
        css
        for variant in used
        for css in variant.content_exclude
        if byline_text.FOREIGN.search(css) and not _PICTURE_BOX.search(css)
    }
    left_out = {n.mem_id for css in others for n in doc.tree.css(selectors_.cheap(css))}
    yield from (node for node in nodes if not left_out or not _is_below(node, left_out))


def _is_below(node: LexborNode | None, tops: set[int]) -> bool:
    """Whether the node is one of ``tops`` or stands in one."""
    while node is not None and node.mem_id not in tops:
        node = node.parent
    return node is not None


def _innermost(nodes: list[LexborNode]) -> Iterator[LexborNode]:
    """Without boxes that hold another caption: their words are those of several pictures. What is
    marked as a caption by its tag may have a part that is named so."""
    tags = {node.mem_id: node.tag for node in nodes}
    holders: set[int] = set()
    for node in nodes:
        one = node.parent
        while one is not None and one.mem_id not in holders:
            of_tag = tags.get(one.mem_id)
            if of_tag and (of_tag != "figcaption" or node.tag == "figcaption"):
                holders.add(one.mem_id)
            one = one.parent
    return (node for node in nodes if node.mem_id not in holders)


# Names of a picture's own box, whatever else they are.
_PICTURE_BOX = lexicon.Pattern(r"<class.picture_box>")


class _PictureBoxes:
    """What the boxes of one page hold, read once for all captions: they share boxes, and a box may
    have a hundred thousand elements."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self._urls: dict[int, str] = {}
        self._said: dict[int, str] = {}

    def images(self, box: LexborNode) -> list[LexborNode]:
        """The first of them in ``box``."""
        return self._images.get(box.mem_id, [])

    def credits(self, box: LexborNode) -> list[LexborNode]:
        """The first elements in ``box``, or it itself, that are named as a credit's."""
        return self._credits.get(box.mem_id, [])

    @cached_property
    def _images(self) -> dict[int, list[LexborNode]]:
        return _first_below(self.doc.tree.css(_IMAGES), _MOST_IMAGES)

    @cached_property
    def _credits(self) -> dict[int, list[LexborNode]]:
        return _first_below(self.doc.tree.css(_CREDITS), _MOST_CREDITS)

    def address(self, image: LexborNode) -> str:
        ident = image.mem_id
        if ident not in self._urls:
            self._urls[ident] = _address(self.doc, image)
        return self._urls[ident]

    def written(self, node: LexborNode) -> str:
        """The text of a credit's element, which may hold the whole page."""
        ident = node.mem_id
        if ident not in self._said:
            self._said[ident] = _written(node)
        return self._said[ident]


def _first_below(nodes: list[LexborNode], most: int) -> dict[int, list[LexborNode]]:
    """``mem_id`` -> the first ``most`` of ``nodes``, which are in page order, that the element is
    or holds. An element with as many needs no more, and none above it does: each element is passed
    ``most`` times at most."""
    first: dict[int, list[LexborNode]] = {}
    for node in nodes:
        one: LexborNode | None = node
        while one is not None:
            held = first.setdefault(one.mem_id, [])
            if len(held) >= most:
                break
            held.append(node)
            one = one.parent
    return first


def _picture(page: _PictureBoxes, caption: LexborNode) -> dict[str, str] | None:
    """The picture that a caption stands with; None where there is none, or where it announces
    another page."""
    if len(_written(caption)) > LONGEST + LONGEST_CREDIT:
        return None
    for box in _boxes(caption):
        for node in page.images(box):
            url = page.address(node)
            if url and not _announces(node, box):
                said, credit = _words(page, caption, box)
                if len(said) > LONGEST:
                    return None
                return {"url": url, "caption": said, "credit": credit}
    return None


def _boxes(caption: LexborNode) -> Iterator[LexborNode]:
    """The caption's element and those above it that may hold its picture."""
    node: LexborNode | None = caption
    for _ in range(_LEVELS):
        if node is None or node.tag in _TOP_TAGS:
            return
        yield node
        if node.tag == "figure":
            return
        node = node.parent


def _address(doc: Document, node: LexborNode) -> str:
    """Of what is shown, absolute; "" for placeholders and signs."""
    attributes = node.attributes
    for name in _ADDRESSES:
        value = (attributes.get(name) or "").strip() if name in attributes else ""
        if name.endswith("srcset"):
            value = _largest(value)
        if not value or value.startswith(("data:", "blob:")) or value.endswith(".svg"):
            continue
        try:
            joined = urljoin(doc.base_url, value)
        except ValueError:
            continue
        if joined.startswith(("http://", "https://")):
            return joined
    return ""


def _largest(srcset: str) -> str:
    """The widest of a list of addresses by what stands behind each; of equal ones the last."""
    widest, found = -1.0, ""
    for part in map(str.split, _SRCSET_COMMA.split(srcset)):
        if part and (width := _width(part[-1])) >= widest:
            widest, found = width, part[0].rstrip(",")
    return found


def _width(descriptor: str) -> float:
    """ "800w" or "2x" as a number; of another text 0."""
    match = _DESCRIPTOR.fullmatch(descriptor.rstrip(","))
    return float(match[1]) if match else 0.0


def _announces(node: LexborNode, box: LexborNode) -> bool:
    """Whether the picture is a link to another page than to itself, larger."""
    one: LexborNode | None = node.parent
    while one is not None and one.mem_id != box.mem_id:
        if one.tag == "a":
            href = one.attributes.get("href") or ""
            return bool(href) and href[0] != "#" and not _PICTURE_FILE.search(href)
        one = one.parent
    return False


def _words(page: _PictureBoxes, caption: LexborNode, box: LexborNode) -> tuple[str, str]:
    """``(caption, credit)``: who made a picture stands in an element of its own, or at the end."""
    said = _written(caption)
    for node in page.credits(box):
        credit = page.written(node)
        if credit and len(credit) <= LONGEST_CREDIT:
            if credit == said and not _LABEL.match(said):
                continue
            return _without(caption, said, node, credit).rstrip(_EDGES), _unlabelled(credit)
    for sign in _LABEL_SIGN.finditer(said, max(0, len(said) - LONGEST_CREDIT)):
        if len(said) - sign.end() > 1 and (begin := _begin_of_label(said, sign)) is not None:
            return said[:begin].rstrip(_EDGES + "(["), _unlabelled(said[begin:])
    return said, ""


def _without(caption: LexborNode, said: str, node: LexborNode, credit: str) -> str:
    """``said``, the caption's text, without the credit: by its element, or at the end. Its letters
    elsewhere are of other words."""
    if node.mem_id != caption.mem_id and _is_below(node, {caption.mem_id}):
        texts = (one for one in caption.traverse(include_text=True) if one.tag == "-text")
        own = (one.text_content or "" for one in texts if not _is_below(one, {node.mem_id}))
        return text.one_line(" ".join(own))
    rest = said.removesuffix(credit)
    return said if rest[-1:].isalnum() else collapse(rest)


def _begin_of_label(said: str, sign: re.Match[str]) -> int | None:
    """Where the words before a sign begin that say who made a picture; None where they do not.
    Words are looked at from the sign back: a pattern tried at every letter costs ten times that."""
    words = said[: sign.start()].rsplit(None, _MOST_LABEL_WORDS)[-_MOST_LABEL_WORDS:]
    for first in range(len(words)):
        label = " ".join(words[first:]).lstrip("([|/–-")
        if label and _LABEL_WORDS.match(label):
            return said.rindex(label, 0, sign.start())
    return sign.start() if sign[0] == "©" else None


def _unlabelled(credit: str) -> str:
    short = _LABEL.sub("", credit).strip(" .|/")
    if short.endswith((")", "]")) and not re.search(r"[(\[]", short):
        short = short[:-1]
    return short or credit


def _written(node: LexborNode) -> str:
    return text.one_line(node.text(deep=True, separator=" "))
