"""Content of a page that nobody wrote selectors for: own block scorer and trafilatura vote. Pure.

General rules only: no name of a publisher may stand here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress, count

from lxml import etree
from selectolax.lexbor import LexborNode

from newscrawler.extraction import (
    boilerplate,
    lexicon,
    page_metadata,
    regions,
    scripted,
    text,
    title,
)
from newscrawler.extraction.blocks import (
    BLOCK_TAGS,
    Block,
    block_list,
    collapse,
    ends_a_sentence,
    walk,
)
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue
from newscrawler.utils.numbers import share

_STANDFIRST = lexicon.Pattern(r"<class.standfirst>")
# Boxes about who wrote it; what they say is no summary.
_ABOUT_AUTHOR = lexicon.Pattern(r"<class.about_author>|autor(?!en?text)")
# A cell that is longer is text, not a value.
_CELL_CHARS = 60
# Of all blocks together, at least: a page with less has no running text.
_LEAST_WEIGHT = 80
# A noscript of fewer characters is a notice.
_NOSCRIPT_CHARS = 1000
# Less than this is no second opinion; and so many blocks behind its headline a text begins.
_ENOUGH_CHARS = 200
_NEAR = 12
_NEAR_HEADLINE = 4
# A teaser's words are no longer.
_TEASER_CHARS = 300
# A block of this weight is a paragraph.
_RUNNING_WEIGHT = 80
# A caption is no longer; so much of a credit may stand beside it.
_CAPTION_CHARS, _CREDIT_CHARS = 400, 80
_PICTURE_LEVELS, _MOST_PICTURES = 4, 200
_WIDE_TAGS = ("body", "main", "article", "html")
# A quotation: its mark or dash, a sentence with its speaker behind a dash, or a speaker with a
# colon before a sentence.
_QUOTED = re.compile(
    r"[\"“”„«»‚「『]\s?[^\"“”„«»「」『』]{15}|[‘'](?:[^‘’']|[’'](?=\w)){15}|[–—]\s.{20}"
    r"|.{12,400}[.!?…][\"”“»’]?\s*[–—-]\s*\w[^.!?]{1,80}\.?$",
    re.S,
)
_SPOKEN = re.compile(r"(\w[^:.!?]{4,80})[:：]\s+\S.{14,400}(?<!\.)[.!][\"”“»’]?$", re.S)
_CREDIT = lexicon.Pattern(r"\b(?:<credit.picture>|<credit.caption_end>)\s*[:：/]|©")
# A row of a table may have a picture of what it tells of.
_NO_CAPTION_TAGS = (
    "li", "h1", "h2", "h3", "h4", "blockquote", "body", "tr", "td", "th", "dt", "dd"
)  # fmt: skip
# F1 of the two readings below which they have read two different texts.
_LEAST_AGREEMENT = 0.3
# No child of these is a root of the text; and what is text between two blocks of the text.
_TEXT_TAGS = ("p", "li", "blockquote", "td")
_TEXT_TAGS_OF_VOTE = ("p", "li", "blockquote", "tr")


@dataclass(slots=True)
class Reading:
    """Every block of a page with what the own scorer thinks of it. ``own``: in the
    article's root, no boilerplate."""

    blocks: list[Block]
    own: list[bool]
    is_boilerplate: list[bool]
    weights: list[float]
    root: LexborNode | None = None
    foreign: frozenset[int] = frozenset()  # positions of blocks of consent tools and comments

    def chosen(self) -> list[Block]:
        return [b for b, yes in zip(self.blocks, self.own, strict=True) if yes]


def paragraph_weight(block: Block) -> float:
    """How much a block speaks for being running text: its letters, less what is linked."""
    length = len(block.text)
    if length < 25:
        return 0.0
    linked = block.link_chars / max(1, length)
    if linked > 0.5:
        return 0.0
    weight = min(length, 1500) * (1 - linked)
    if block.tag in ("p", "blockquote"):
        weight *= 1.2
    elif block.tag in ("li", "td", "dd", "tr"):
        weight *= 0.6
    elif block.tag[0] == "h" and block.tag != "hr":
        weight *= 0.2
    if not ends_a_sentence(block.text) and length < 100:
        weight *= 0.4
    return weight


def _with_rows(blocks: Iterable[Block]) -> list[Block]:
    """The blocks with the cells of a table's row as one: a score is read across. Tables
    that lay out a page stay."""
    out: list[Block] = []
    cells: list[Block] = []
    row: LexborNode | None = None
    for block in blocks:
        parent = block.node.parent if block.tag in ("td", "th") else None
        if parent is None or row is None or parent.mem_id != row.mem_id:
            out.extend(_as_row(cells, row))
            cells, row = [], parent
        if parent is None:
            out.append(block)
        else:
            cells.append(block)
    return [*out, *_as_row(cells, row)]


def _as_row(cells: list[Block], row: LexborNode | None) -> list[Block]:
    """The cells of one row as one block; as they are, where they hold text."""
    if row is None or len(cells) < 2 or any(len(cell.text) > _CELL_CHARS for cell in cells):
        return cells
    linked = sum(cell.link_chars for cell in cells)
    return [Block(" ".join(cell.text for cell in cells), "tr", row, linked)]


def read(doc: Document) -> Reading:
    """The page's blocks, judged by own scoring; nothing is ``own`` when the
    page has no running text."""
    body = doc.tree.body
    if body is None:
        return Reading([], [], [], [])
    skip, apart, unseen = boilerplate.find(doc)
    blocks = _with_rows(walk(body, unseen) if unseen else block_list(doc))
    is_boilerplate, elsewhere = _below(skip, {body.mem_id}), _below(apart, {body.mem_id})
    foreign: frozenset[int] = frozenset()
    if apart:
        foreign = frozenset(i for i, block in enumerate(blocks) if elsewhere(block.node))
    bad = [is_boilerplate(b.node) or regions.is_caption(b) for b in blocks]
    weights = [0.0 if c else paragraph_weight(b) for b, c in zip(blocks, bad, strict=True)]
    for i in (*_teasers(blocks, weights), *_beside_pictures(body, blocks, weights)):
        bad[i], weights[i] = True, 0.0
    reading = Reading(blocks, [False] * len(blocks), bad, weights, None, foreign)
    total = sum(weights)
    if total >= _LEAST_WEIGHT:
        reading.root = _densest(body, blocks, weights, total)
        inside = _below({reading.root.mem_id}, set())
        reading.own = [not c and inside(b.node) for b, c in zip(blocks, bad, strict=True)]
    return reading


def _teasers(blocks: list[Block], weights: list[float]) -> list[int]:
    """Positions of short texts below the linked title of another page, nothing else with
    them in their element.

    None where such pairs are much of the text: a list of things that are told of,
    each with its link.
    """
    last: dict[int, int] = {}  # element -> position of its last block
    for i, block in enumerate(blocks):
        last[block.holder] = i
    weighty = (i for i in range(1, len(blocks)) if weights[i] > 0)
    found = [i for i in weighty if last[blocks[i].holder] == i and _is_teaser(blocks, i)]
    if 4 * sum(weights[i] for i in found) >= sum(weights):
        return []
    return found


def _is_teaser(blocks: list[Block], i: int) -> bool:
    """Whether the block is a short text without links in the element of a linked title, and
    nothing stands before the two."""
    block, heading = blocks[i], blocks[i - 1]
    if len(block.text) > _TEASER_CHARS or block.link_chars or not _is_linked_title(heading):
        return False
    parent = block.node.parent
    above = 0 if parent is None else parent.mem_id
    if above not in (heading.holder, heading.node.mem_id, _above(heading.node)):
        return False
    return i < 2 or not _is_inside(blocks[i - 2], block)


def _is_linked_title(block: Block) -> bool:
    length = len(block.text)
    return 20 <= length <= 200 and block.tag != "h1" and block.link_chars >= 0.9 * length


def _above(node: LexborNode) -> int:
    parent = node.parent.parent if node.parent is not None else None
    return 0 if parent is None else parent.mem_id


def _is_inside(before: Block, block: Block) -> bool:
    """Whether the element that holds ``block`` holds the one before its title as well."""
    holder = block.holder
    node = before.node.parent
    for _ in range(3):
        if node is None:
            return False
        if node.mem_id == holder:
            return True
        node = node.parent
    return False


def _beside_pictures(body: LexborNode, blocks: list[Block], weights: list[float]) -> list[int]:
    """Positions of short texts that stand alone with a picture in an element between the
    paragraphs: captions, whatever they are called.

    None where they are much of the text (a gallery tells by its captions); none before the first
    paragraph, where a summary may stand beside the main picture; none that is set as paragraphs of
    the text are, which may have a picture each; no three in a row, which are steps or a list.
    """
    pictured = _around_pictures(body)
    if not pictured:
        return []
    found: list[int] = []
    begun = False
    lengths: dict[int, int] = {}
    for i, block in enumerate(blocks):
        if not begun:
            begun = weights[i] > _RUNNING_WEIGHT
        elif len(block.text) <= _CAPTION_CHARS and _is_beside_picture(block, pictured, lengths):
            found.append(i)
    if 5 * sum(weights[i] for i in found) >= sum(weights):
        return []
    alone = set(found)
    texts = {
        _shape(block)
        for i, block in enumerate(blocks)
        if weights[i] > _RUNNING_WEIGHT and i not in alone
    }
    return [i for i in found if _shape(blocks[i]) not in texts and not _is_in_row(i, alone)]


def _is_in_row(i: int, among: set[int]) -> bool:
    """Whether the position stands with two others of them side by side."""
    return any({first, first + 1, first + 2} <= among for first in (i - 2, i - 1, i))


def _around_pictures(body: LexborNode) -> set[int]:
    """The elements that hold a picture, a few levels up."""
    ids: set[int] = set()
    for picture in body.css("img,amp-img")[:_MOST_PICTURES]:
        node = picture.parent
        for _ in range(_PICTURE_LEVELS):
            if node is None or node.tag in _WIDE_TAGS:
                break
            ids.add(node.mem_id)
            node = node.parent
    return ids


def _is_beside_picture(block: Block, pictured: set[int], lengths: dict[int, int]) -> bool:
    """Whether the nearest element around the block that holds a picture has no other text.
    ``lengths`` of texts are kept: many short blocks may stand in one element."""
    if block.tag in _NO_CAPTION_TAGS or _is_quotation(block.text) or _is_around_picture(block):
        return False
    node = block.node if block.tag != "p" else block.node.parent
    for _ in range(_PICTURE_LEVELS):
        if node is None or node.tag in _WIDE_TAGS:
            return False
        if node.mem_id in pictured:
            if node.mem_id not in lengths:
                lengths[node.mem_id] = len(collapse(node.text(deep=True)))
            return lengths[node.mem_id] <= len(block.text) + _CREDIT_CHARS
        node = node.parent
    return False


def _is_quotation(said: str) -> bool:
    """Whether somebody speaks: a portrait may stand beside it. Who made a picture is said of
    captions alone."""
    return bool(_QUOTED.match(said) or _SPOKEN.match(said)) and not _CREDIT.search(said)


def _is_around_picture(block: Block) -> bool:
    """Whether it is a paragraph of the text with a picture in its line. Below a break stands a
    caption."""
    node = block.node
    if block.tag != "p" or not ends_a_sentence(block.text) or _CREDIT.search(block.text):
        return False
    return node.css_first("img,amp-img") is not None and node.css_first("br") is None


def _densest(
    body: LexborNode, blocks: list[Block], weights: list[float], total: float
) -> LexborNode:
    """From the body down while one child holds nearly all of the running text."""
    mass: dict[int, float] = {}
    nodes: dict[int, LexborNode] = {}
    for block, weight in compress(zip(blocks, weights, strict=True), weights):
        node: LexborNode | None = block.node
        while node is not None and node.tag != "html":
            ident = node.mem_id
            mass[ident] = mass.get(ident, 0.0) + weight
            nodes[ident] = node
            node = node.parent
    children: dict[int, list[LexborNode]] = {}
    for node in nodes.values():
        parent = node.parent
        if parent is not None:
            children.setdefault(parent.mem_id, []).append(node)
    here, held = body, total
    while True:
        below = max(children.get(here.mem_id, ()), key=lambda n: mass[n.mem_id], default=None)
        if below is None or below.tag in _TEXT_TAGS or below.tag not in BLOCK_TAGS:
            return here
        if mass[below.mem_id] / held < 0.75:
            return here
        here, held = below, mass[below.mem_id]


def _below(tops: set[int], ends: set[int]) -> Callable[[LexborNode | None], bool]:
    """A test whether a node is one of ``tops`` or below one; answers are remembered."""
    known: dict[int, bool] = dict.fromkeys(ends, False) | dict.fromkeys(tops, True)

    def below(node: LexborNode | None) -> bool:
        path: list[int] = []
        while node is not None and node.mem_id not in known:
            path.append(node.mem_id)
            node = node.parent
        answer = known[node.mem_id] if node is not None else False
        for ident in path:
            known[ident] = answer
        return answer

    return below


# ---------------------------------------------------------------- the vote
def coverage(blocks: list[Block], other: str) -> list[float]:
    """For each block the share of its word triples that ``other`` has too."""
    theirs = _triples(other)
    triples = (_triples(block.text) for block in blocks)
    return [share(len(mine & theirs), len(mine)) for mine in triples]


def _triples(words_of: str) -> set[tuple[str, ...]]:
    tokens = title.tokens(words_of.replace("\xad", ""))  # a library leaves soft hyphens out
    if len(tokens) < 3:
        return {tuple(tokens)} if tokens else set()
    return set(zip(tokens, tokens[1:], tokens[2:], strict=False))


def _standfirsts(
    reading: Reading, first: int, headline: str | None, description: str | None
) -> set[int]:
    """Blocks between headline and first paragraph that are the article's summary (standfirst)."""
    head = text.key(headline or "")
    if not head or first <= 0:
        return set()
    start = _headline_above(reading.blocks, first, head)
    said = text.key(description or "")[:60]
    found: set[int] = set()
    for i in range(first - 1, -1 if start is None else start, -1):
        if not _may_be_standfirst(reading, i):
            continue
        is_standfirst = start is not None and _is_standfirst(reading, i, start, first, head)
        if is_standfirst or _is_described(reading.blocks[i], said):
            found.add(i)
        if len(found) > 3 or (start is None and first - i > 12):
            break
    return found


def _is_described(block: Block, said: str) -> bool:
    """Whether it begins as the page's description does. ``said``: that one's key."""
    return len(said) > 30 and text.key(block.text)[:60].startswith(said[:50])


def _headline_above(blocks: list[Block], first: int, head: str) -> int | None:
    """Where the headline stands next above ``first``. A link that says it again below the lead
    is not where the article begins, if another block says it as well."""
    same = [i for i in range(first, max(-1, first - 40), -1) if text.key(blocks[i].text) == head]
    unlinked = (i for i in same if not blocks[i].link_chars)
    return next(unlinked, same[0] if same else None)


def _may_be_standfirst(reading: Reading, i: int) -> bool:
    """By its length and its links, and not about the author."""
    block = reading.blocks[i]
    length = len(block.text)
    if not 35 <= length <= 900 or block.link_chars > 0.3 * length or text.leads_away(block):
        return False
    return not (reading.is_boilerplate[i] and _is_about_author(block.node))


def _is_standfirst(reading: Reading, i: int, start: int, first: int, head: str) -> bool:
    """By its name, as a sub-heading right below the headline (at ``start``), or as a sentence in
    an element of text, beside the first paragraph or near the headline."""
    block = reading.blocks[i]
    if _STANDFIRST.search(_names(block)):
        return True
    is_subheading = i == start + 1 and block.tag == "h2" and len(block.text) > 60
    if is_subheading and head not in text.key(block.text):
        return True
    if not ends_a_sentence(block.text):
        return False
    is_beside = block.holder == reading.blocks[first].holder
    is_near = i - start <= _NEAR_HEADLINE and not block.link_chars
    if not (block.tag in ("p", "h2") or is_beside or is_near):
        return False
    return not reading.is_boilerplate[i] or _is_in_heading(block.node)


def _names(block: Block) -> str:
    """Class and itemprop of a block's element and of the one above."""
    nodes = (node for node in (block.node, block.node.parent) if node)
    attributes = (node.attributes for node in nodes)
    return " ".join(f"{a.get('class') or ''} {a.get('itemprop') or ''}" for a in attributes)


def _is_in_heading(node: LexborNode) -> bool:
    """In the header that holds the headline, and in nothing with a name of its own."""
    one: LexborNode | None = node
    for _ in range(3):
        if one is None or one.tag in ("article", "main", "body"):
            return False
        if one.tag == "header":
            return one.css_first("h1") is not None
        if one.attributes.get("class"):
            return False
        one = one.parent
    return False


def _is_about_author(node: LexborNode) -> bool:
    one: LexborNode | None = node
    for _ in range(5):
        if one is None or one.tag in ("article", "main", "body"):
            return False
        if _ABOUT_AUTHOR.search(one.attributes.get("class") or ""):
            return True
        one = one.parent
    return False


def vote(
    reading: Reading, other: str | None, headline: str | None = None, description: str | None = None
) -> tuple[list[Block], float]:
    """``(blocks, agreement)``: what both readings have, and of the rest what stands between
    or is running text."""
    if not other:
        return reading.chosen(), 0.0
    covered = coverage(reading.blocks, other)
    theirs = [c >= 0.6 and i not in reading.foreign for i, c in enumerate(covered)]
    agreement = _agreement(reading, theirs)
    if agreement < _LEAST_AGREEMENT:
        return _one_of_two(reading, theirs, headline), agreement
    votes = _Votes(reading, theirs)
    standfirsts = _standfirsts(reading, votes.first, headline, description)
    positions = [i for i in range(len(reading.blocks)) if i in standfirsts or votes.keep(i)]
    kept = [reading.blocks[i] for i in _with_second_opinion(positions, reading, theirs)]
    return _without_boxes_behind(kept, reading.blocks), agreement


def _with_second_opinion(kept: list[int], reading: Reading, theirs: list[bool]) -> list[int]:
    """``kept``, and what the library found beside it, where without a reason that has a name (a
    box, a caption, comments, a teaser) less than half of that would be left.

    Lists, verses and scripts without full stops are no running text to our own scorer.
    """
    unnamed = [i for i in compress(count(), theirs) if not reading.is_boilerplate[i]]
    missing = sorted(set(unnamed) - set(kept))
    size = sum(len(reading.blocks[i].text) for i in unnamed)
    lost = sum(len(reading.blocks[i].text) for i in missing)
    if size < _ENOUGH_CHARS or 2 * lost <= size:
        return kept
    return sorted([*kept, *missing])


def _agreement(reading: Reading, theirs: list[bool]) -> float:
    """F1 of the two readings, in characters."""
    size = [len(block.text) for block in reading.blocks]
    mine, yours = sum(compress(size, reading.own)), sum(compress(size, theirs))
    both = sum(compress(compress(size, reading.own), compress(theirs, reading.own)))
    return share(2 * both, mine + yours)


class _Votes:
    """Both readings of a page, block by block. ``first``, ``last``: positions of the first and the
    last block that both have."""

    def __init__(self, reading: Reading, theirs: list[bool]) -> None:
        self.reading, self.theirs = reading, theirs
        both = [own and their for own, their in zip(reading.own, theirs, strict=True)]
        agreed = [i for i in compress(count(), both) if len(reading.blocks[i].text) > 40]
        self.first, self.last = (agreed[0], agreed[-1]) if agreed else (0, -1)
        self.shapes = {_shape(reading.blocks[i]) for i in agreed}

    def keep(self, i: int) -> bool:
        own, theirs = self.reading.own[i], self.theirs[i]
        if own and theirs:
            return True
        if own:
            return self._keep_own(i)
        return theirs and self._keep_theirs(i)

    def _keep_own(self, i: int) -> bool:
        """What the library does not have: text between what both have, and running text near it or
        of its shape behind it."""
        block = self.reading.blocks[i]
        if self._is_between(i):
            is_heading = block.tag in ("h2", "h3", "h4") and not _is_linked(block, 0.5)
            return is_heading or block.tag in _TEXT_TAGS_OF_VOTE or _is_running(block)
        if not _is_running(block):
            return False
        is_near = abs(i - self.last) < 3 or abs(self.first - i) < 3
        return is_near or (i > self.last and block.tag == "p" and _shape(block) in self.shapes)

    def _keep_theirs(self, i: int) -> bool:
        if self.reading.is_boilerplate[i]:
            return False
        return self._is_between(i) or _is_running(self.reading.blocks[i])

    def _is_between(self, i: int) -> bool:
        return self.first <= i <= self.last


def _is_running(block: Block) -> bool:
    return len(block.text) > 60 and not _is_linked(block, 0.4) and ends_a_sentence(block.text)


def _is_linked(block: Block, share: float) -> bool:
    return block.link_chars >= share * len(block.text)


def _one_of_two(reading: Reading, theirs: list[bool], headline: str | None) -> list[Block]:
    """Where the readings have nothing in common: theirs, but ours where it is much more or stands
    nearer to the headline."""
    blocks = reading.blocks

    def chars(positions: list[int]) -> int:
        return sum(len(blocks[i].text) for i in positions)

    found = list(compress(count(), theirs))
    size = chars(found)
    clean = [i for i in found if not reading.is_boilerplate[i]]
    if 2 * chars(clean) > size:
        found = clean
    mine = list(compress(count(), reading.own))
    length = chars(mine)
    few = size < _ENOUGH_CHARS and length > 4 * size
    if length >= _ENOUGH_CHARS and (few or _is_nearer(blocks, mine, found, headline)):
        return [blocks[i] for i in mine]
    return [blocks[i] for i in found]


def _is_nearer(
    blocks: list[Block], mine: list[int], theirs: list[int], headline: str | None
) -> bool:
    """Whether the first of ``mine`` follows the headline, and before the first of ``theirs``."""
    head = text.key(headline or "")
    if not (head and mine and theirs):
        return False
    for at, block in enumerate(blocks):
        if block.tag[:1] == "h" and text.key(block.text) == head:
            return at < mine[0] <= at + _NEAR and theirs[0] > mine[-1]
    return False


def _without_boxes_behind(kept: list[Block], every: list[Block]) -> list[Block]:
    """Without what follows the title of a box ("Related links") behind the element that
    holds most of the text."""
    held: Counter[int] = Counter()
    for block in kept:
        held[block.holder] += len(block.text)
    most = max(held, key=held.__getitem__, default=0)
    if len(held) < 2 or held[most] < 0.6 * held.total():
        return kept
    mine = {id(block) for block in kept}
    last = max(i for i, block in enumerate(kept) if block.holder == most)
    behind = next(i for i, block in enumerate(every) if block is kept[last]) + 1
    for block in every[behind:]:
        if len(block.text) < 60 and text.is_box_title(block.text):
            return kept[: last + 1]
        if id(block) in mine:
            last += 1
    return kept


def _shape(block: Block) -> tuple[str, str, str, str]:
    """Tag and class of a block's element and of the one above: paragraphs of
    one text share them."""
    parent = block.node.parent
    if parent is None:
        return block.tag, "", "", ""
    return (
        block.tag,
        block.node.attributes.get("class") or "",
        parent.tag or "",
        parent.attributes.get("class") or "",
    )


# ---------------------------------------------------------------- the chain
def library_text(doc: Document) -> str | None:
    """trafilatura's reading; None when the page is refused (size, depth) or it finds nothing."""
    tree = doc.lxml
    if tree is None:
        return None
    try:
        import trafilatura  # 0.15 s that a worker whose sites all have sets never pays

        found: str | None = trafilatura.extract(
            tree, include_comments=False, include_tables=True, output_format="txt"
        )
    except (
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        IndexError,
        RecursionError,
        etree.LxmlError,
    ):
        return None  # a library bug on one page must not cost the page: own reading stands alone
    return found


def _open_noscript(body: LexborNode) -> bool:
    """What script puts in its place, or a noscript that is not closed in order: then its
    content is the page. Whether one was opened."""
    opened = False
    inside = [node for node in body.css("noscript") if len(node.text(deep=True)) > _NOSCRIPT_CHARS]
    if inside:
        most = 0.5 * len(body.text(deep=True))
        paragraphs = 0.5 * _paragraph_chars(body)
        for node in inside:
            held = _paragraph_chars(node)
            if held > paragraphs or (held and len(node.text(deep=True)) > most):
                node.unwrap()
                opened = True
    return opened


def _paragraph_chars(node: LexborNode) -> int:
    return sum(len(p.text(deep=True)) for p in node.css("p"))


def content(doc: Document, headline: str | None = None) -> FieldValue:
    """The article's text by vote of own scorer and trafilatura; else JSON-LD's articleBody; value
    None without text."""
    if doc.tree.body is not None and _open_noscript(doc.tree.body):
        doc.blocks = None
    reading = read(doc)
    other = library_text(doc)
    seen = page_metadata.of(doc)
    description = doc.meta_first("og:description", "description") or seen.description
    blocks, agreement = vote(reading, other, headline, description)
    found = text.content_of(blocks, headline)
    if found is None and other is not None:
        found = _paragraphs(other)
        if len(found) < text.MIN_CONTENT_CHARS:
            found = None
    if seen.body and len(seen.body) > max(300, 3 * len(found or "")):
        # The page's text is made by script; what it hands to search engines is there.
        return FieldValue(_paragraphs(seen.body), "json-ld", 0.6)
    if not found:
        return _from_script(doc, headline)
    return FieldValue(found, _origin(other, agreement), round(0.4 + 0.5 * agreement, 2))


def _paragraphs(lines: str) -> str:
    return "\n\n".join(line for line in map(text.clean_line, lines.split("\n")) if line)


def _from_script(doc: Document, headline: str | None) -> FieldValue:
    """The text of the markup that a script of the page holds."""
    held = scripted.page(doc)
    found = text.content_of(read(held).chosen(), headline) if held is not None else None
    return FieldValue(found, "script:markup", 0.5) if found else FieldValue(None)


def _origin(other: str | None, agreement: float) -> str:
    if not other:
        return "generic:blocks"
    return "generic:vote" if agreement >= _LEAST_AGREEMENT else "generic:trafilatura"
