"""Every place of a page that may name an author, as a list of candidates: nothing is refused for
its shape. Pure.

What a place is worth is not decided here: features.py describes each candidate, model.py weighs.
Each place is asked whether it can hold a name before anything else is computed from it: elements
are found by selectors, lines by their length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from newscrawler.extraction import (
    agreement,
    authors,
    byline_text,
    bylines,
    lexicon,
    page_metadata,
    personal,
    regions,
    title,
)
from newscrawler.extraction.blocks import Block, block_list
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document

#: Of a page, at most: a page with more has lists of other stories.
MOST_CANDIDATES = 60
_MOST_MARKED = 40
_MOST_BLOCKS = 1500
_MOST_NEAR = 24
# A text that is longer names nobody alone.
_MARKED_CHARS = 160
_LINE_CHARS = 140
_NAME_CHARS = 60
_NEAR_CHARS = 80
_NEAR_WORDS, _NEAR_EAST_CHARS = 9, 20
_SIGNED_CHARS = 160
_TEXT_CHARS = 120
_SENTENCE_CHARS = 60
# Lines are read from so many blocks before the headline to so many behind the text.
_BEFORE_HEADLINE, _BEHIND_TEXT = 12, 40
# So many blocks without running text end the article.
_GAP = 14
_AFTER_HEADLINE, _BEFORE_TEXT, _AFTER_TEXT, _BESIDE_DATE = 7, 3, 4, 2
_YEAR = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d\d\b")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_BRACKETS = re.compile(r"\(([^()\n]{2,40})\)[\W_]*$")
_SENTENCE = re.compile(r"[.!?…:;]$|[?!]|\d{3}")
_META_KINDS = {
    "author": "author", "article:author": "article", "article:author_name": "article",
    "dc.creator": "library", "dcterms.creator": "library", "dc.author": "library",
    "citation_author": "library", "creator": "library",
}  # fmt: skip
_LINKS = 'a[href*="/author"],a[href*="/autor"],a[href*="/tac-gia"],a[href*="/auteur"]'


@dataclass(slots=True)
class Place:
    """Where a candidate stands. ``kind``: "ld:person", "meta:author", "mark:class", "line:lead",
    "near:date" …; ``group``: equal for places of the same markup; ``position``: number of the
    block, None where no reader sees it; ``piece``: number of the name in its text; ``foreign``: in
    a box that is not the article's; ``chars``: of the whole text."""

    kind: str
    group: str = ""
    position: int | None = None
    piece: int = 0
    foreign: bool = False
    chars: int = 0


@dataclass(slots=True)
class Candidate:
    """One name with all places that state it, spelled as the first of them does. ``ruled``: the
    rules named it."""

    name: str
    key: str
    ruled: bool = False
    places: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class Candidates:
    """The candidates in the order they were found, and the blocks that positions count from:
    ``headline``, ``start`` and ``end`` of the text, ``date``; None where the page has none."""

    found: dict[str, Candidate] = field(default_factory=dict)
    headline: int | None = None
    start: int | None = None
    end: int | None = None
    date: int | None = None
    headline_words: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    language: str = ""


def find(doc: Document, context: PageContext, rules: Iterable[str] = ()) -> Candidates:
    """Never raises; empty for a page that names nobody. ``rules``: names that the rules found; they
    are candidates wherever they stand."""
    search = _Search(doc, context)
    page = search.run()
    for name in rules:
        key = authors.key(name)
        one = page.found.setdefault(key, Candidate(name, key))
        one.name, one.ruled = name, True
    return page


class _Search:
    def __init__(self, doc: Document, context: PageContext) -> None:
        self.doc = doc
        self.page = Candidates()
        sites = title.site_names(doc, context.site_name)
        self.page.own = frozenset(map(authors.key, filter(None, (context.site_name, *sites))))
        self.page.language = (doc.lang or context.language or "")[:2].lower()
        self.vietnamese = agreement.is_vietnamese(doc, context)
        self.known = agreement.names(doc)
        self.parts = regions.of(doc)
        self.blocks: list[Block] = block_list(doc)[:_MOST_BLOCKS]
        self.owners: dict[int, int] = {}
        self.elsewhere: dict[int, bool] = {}

    def run(self) -> Candidates:
        self._stated()
        self._anchors()
        self._marked()
        self._lines()
        return self.page

    # ------------------------------------------------------------ one text
    def _add(self, text: str, place: Place) -> bool:
        """The names of a text as candidates; whether it has any."""
        place.chars = len(text)
        added = False
        for piece, raw in enumerate(self._pieces(text, place.kind)[: authors.MAX_NAMES]):
            name = authors.trimmed(raw)
            key = authors.key(name)
            if not key or len(name) > _NAME_CHARS or "@" in name or not _LETTER.search(name):
                continue
            one = self.page.found.get(key)
            if one is None:
                if len(self.page.found) >= MOST_CANDIDATES:
                    continue
                one = self.page.found[key] = Candidate(name, key)
            one.places.append(
                Place(place.kind, place.group, place.position, piece, place.foreign, place.chars)
            )
            added = True
        return added

    def _pieces(self, text: str, kind: str) -> tuple[str, ...]:
        """The names of a text. What the site calls itself is one name, whatever stands in it:
        "Education & Times" is no two people. Stated as people, two owners of a blog are two."""
        if kind != "ld:person" and authors.key(authors.trimmed(text)) in self.page.own:
            return (text,)
        return authors.parts(text, self.known, self.vietnamese)

    # ------------------------------------------------------------ machine places
    def _stated(self) -> None:
        for person in page_metadata.of(self.doc).persons[:20]:
            kind = "person" if person.kind else "text"
            if "organi" in person.kind:
                kind = "body"
            self._add(person.name, Place(f"ld:{kind}", f"ld:{kind}"))
        for name in page_metadata.AUTHOR_META:
            for value in bylines.stated_in(self.doc, name)[:4]:
                if not value.startswith(("http://", "https://")):
                    kind = f"meta:{_META_KINDS.get(name, 'other')}"
                    self._add(value, Place(kind, f"meta:{name}"))

    # ------------------------------------------------------------ blocks
    def _anchors(self) -> None:
        """Where headline, text and date stand, in one pass over the blocks."""
        page, first = self.page, self.parts.first
        last_text: int | None = None
        for number, block in enumerate(self.blocks):
            ident = block.node.mem_id
            self.owners.setdefault(ident, number)
            if page.headline is None and first is not None and self._is_in(block.node, first):
                page.headline = number
                page.headline_words = frozenset(authors.key(block.text).split())
            length = len(block.text)
            if length < _SENTENCE_CHARS:
                continue
            is_text = length > _TEXT_CHARS or (block.text[-1] in '.!?…”"»' and not block.link_chars)
            if not is_text or 2 * block.link_chars > length:
                continue
            if page.headline is None and first is not None:
                continue
            if last_text is None:
                page.start = last_text = number
            elif number - last_text <= _GAP:
                last_text = number
        page.end = last_text
        self._find_date()

    def _is_in(self, node: LexborNode, ident: int) -> bool:
        one: LexborNode | None = node
        for _ in range(3):
            if one is None:
                return False
            if one.mem_id == ident:
                return True
            one = one.parent
        return False

    def _find_date(self) -> None:
        page = self.page
        begin = max(0, (page.headline or 0) - 4)
        stop = (page.start or begin + 12) + 3
        for number in range(begin, min(stop, len(self.blocks))):
            text = self.blocks[number].text
            if len(text) <= 120 and _YEAR.search(text):
                page.date = number
                return

    def _position(self, node: LexborNode) -> int | None:
        """The block that an element stands in, or the first one within it."""
        one: LexborNode | None = node
        for _ in range(4):
            if one is None:
                return None
            if (number := self.owners.get(one.mem_id)) is not None:
                return number
            one = one.parent
        return None

    def _foreign(self, node: LexborNode) -> bool:
        ident = node.mem_id
        if ident not in self.elsewhere:
            self.elsewhere[ident] = regions.foreign(
                node, byline_text.FOREIGN, self.parts, bylines.MARKED_FOREIGN_TAGS, byline_text.OWN
            )
        return self.elsewhere[ident]

    # ------------------------------------------------------------ elements
    def _marked(self) -> None:
        for mark, node in self._marks():
            text = bylines.visible(node)
            if not 2 <= len(text) <= _MARKED_CHARS:
                continue
            attributes = node.attributes
            group = f"{mark}:{attributes.get('class') or ''}:{node.tag}"
            place = Place(f"mark:{mark}", group, self._position(node))
            place.foreign = self._foreign(node)
            self._add(text, place)

    def _marks(self) -> Iterator[tuple[str, LexborNode]]:
        """``(mark, element)``: marked as an author's by itemprop, rel, address, class or id."""
        tree = self.doc.tree
        for mark, nodes in (
            ("itemprop", bylines.marked_nodes(self.doc, bylines.ITEMPROP)),
            ("rel", bylines.marked_nodes(self.doc, bylines.REL)),
            ("link", tree.css(_LINKS)[:_MOST_MARKED]),
        ):
            for node in nodes:
                if node.tag not in ("meta", "link"):
                    yield mark, node
        for node in bylines.classed(self.doc)[: 2 * _MOST_MARKED]:
            if node.tag not in bylines.NO_BYLINE_TAGS and node.tag != "h1":
                yield "class", node
        for node in tree.css('[class~="name"]')[:12]:
            yield "name", node

    # ------------------------------------------------------------ lines
    def _lines(self) -> None:
        near = 0
        label = False
        page = self.page
        first = max(0, (page.headline or 0) - _BEFORE_HEADLINE)
        last = len(self.blocks) if page.end is None else page.end + _BEHIND_TEXT
        for number in range(first, min(last, len(self.blocks))):
            block = self.blocks[number]
            text = block.text
            length = len(text)
            if length > _LINE_CHARS + 60:
                label = False
                if length > _TEXT_CHARS:
                    self._signed(number, block)
                continue
            was_label, label = label, length <= 20 and byline_text.is_label(text)
            if was_label and length <= _NEAR_CHARS:
                self._add(text, self._place("line:label", number, block))
            if self._said(number, block):
                continue
            spot = self._spot(number, block) if length <= _NEAR_CHARS else ""
            if spot and near < _MOST_NEAR and self._may_name(block):
                near += self._add(text, self._place(f"near:{spot}", number, block))

    def _said(self, number: int, block: Block) -> bool:
        """A line with a word that a byline begins with, or with a date before the name."""
        said = False
        for line in block.text.split("\n")[:6]:
            if len(line) > _LINE_CHARS:
                continue
            if byline_text.begins(line):
                said |= self._add(line, self._place("line:lead", number, block))
            elif not _DIGIT.search(line):
                continue
            elif dated := byline_text.dated(line):
                said |= self._add(dated["name"], self._place("line:dated", number, block))
            if account := byline_text.account(line):
                said |= self._add(account, self._place("line:account", number, block))
        return said

    def _signed(self, number: int, block: Block) -> None:
        tail = block.text[-_SIGNED_CHARS:]
        if tail.rstrip()[-1:] != ")" and "(" not in tail[-60:]:
            return
        if match := byline_text.SIGNED.search(tail):
            self._add(match[1], self._place("line:signed", number, block))
        elif number == self.page.end and (match := _BRACKETS.search(tail)):
            self._add(match[1], self._place("line:bracket", number, block))

    def _place(self, kind: str, number: int, block: Block) -> Place:
        group = f"{kind}:{block.tag}:{block.node.attributes.get('class') or ''}"
        return Place(kind, group, number, foreign=self._foreign(block.node))

    def _spot(self, number: int, block: Block) -> str:
        """What the block stands beside; "" where it is none of the places where people are
        named."""
        page = self.page
        if page.end is not None and 0 < number - page.end <= _AFTER_TEXT:
            return "end"
        if page.date is not None and abs(number - page.date) <= _BESIDE_DATE:
            return "date"
        if page.headline is not None and 0 < number - page.headline <= _AFTER_HEADLINE:
            return "headline"
        if page.start is not None and 0 <= page.start - number <= _BEFORE_TEXT:
            return "start"
        if page.start is not None and page.end is not None and page.start < number <= page.end:
            # A name alone between two parts of a text: who has written the first one.
            return "text" if block.tag[0] != "h" and personal.has_shape(block.text) else ""
        return ""

    def _may_name(self, block: Block) -> bool:
        text = block.text
        if block.tag in ("h1", "h2") or _SENTENCE.search(text) or text.islower():
            return False
        first = text.lstrip("(|–—-•* ")[:1]
        if first.isupper():
            return len(text.split()) <= _NEAR_WORDS
        return bool(first) and not first.isascii() and len(text) <= _NEAR_EAST_CHARS


def is_body(one: Candidate, own: frozenset[str]) -> bool:
    """The site, an agency, a desk, an organisation or a place: whom a page may credit and who is
    no person. What the rules named was looked at by them."""
    return not one.ruled and names_body(one.name, own)


def names_body(name: str, own: frozenset[str]) -> bool:
    """The same of a name alone."""
    if authors.is_own(name, own) or authors.key(name) in lexicon.words("place.name"):
        return True
    if authors.is_no_person(name):
        return not personal.is_vietnamese_name(name)
    word = name.replace(".", "")
    return " " not in name and word.isupper() and word.isascii() and 2 <= len(word) <= 5
