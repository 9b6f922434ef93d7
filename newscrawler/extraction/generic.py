"""Content of a page that nobody wrote selectors for: own block scorer and trafilatura vote. Pure.

General rules only: no name of a publisher may stand here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lxml import etree
from selectolax.lexbor import LexborNode

from newscrawler.extraction import clutter, regions, scripted, text, title, witnesses
from newscrawler.extraction.blocks import BLOCK_TAGS, Block, ends_a_sentence, walk
from newscrawler.extraction.document import Document
from newscrawler.items import FieldValue

_LEAD = re.compile(
    r"lead|lede|standfirst|sapo|sub-?title|subtitle|sub-?head|dek|deck|excerpt|summary|abstract|intro|chapo"
    r"|chapeau|vorspann|teaser|description|perex|ingress"
    r"|bajada|entradilla|sumario|kicker-text|first-paragraph|tagline|sommario|occhiello|anons|spoiler|manchet"
    r"|preamble",
    re.I,
)
# Boxes about who wrote it; what they say is no summary.
_ABOUT_AUTHOR = re.compile(r"author|autor(?!en?text)|\bbio\b|vcard|tac-?gia", re.I)
# A cell that is longer is text, not a value.
_CELL_CHARS = 60
# A noscript of fewer characters is a notice.
_NOSCRIPT_CHARS = 1000
# Less than this is no second opinion; and so many blocks behind its headline a text begins.
_ENOUGH_CHARS = 200
_NEAR = 12
_NEAR_LEAD = 4
# A teaser's words are no longer.
_TEASER_CHARS = 300


@dataclass(slots=True)
class Reading:
    """Every block of a page with what the own scorer thinks of it. ``own``: in the article's root, no clutter."""

    blocks: list[Block]
    own: list[bool]
    cluttered: list[bool]
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
    """The blocks with the cells of a table's row as one: a score is read across. Tables that lay out a page stay."""
    out: list[Block] = []
    cells: list[Block] = []
    row: LexborNode | None = None

    def end_row() -> None:
        if row is not None and len(cells) > 1 and all(len(c.text) <= _CELL_CHARS for c in cells):
            linked = sum(c.link_chars for c in cells)
            out.append(Block(" ".join(c.text for c in cells), "tr", row, linked))
        else:
            out.extend(cells)
        cells.clear()

    for block in blocks:
        parent = block.node.parent if block.tag in ("td", "th") else None
        if parent is None or row is None or parent.mem_id != row.mem_id:
            end_row()
            row = parent
        if parent is None:
            out.append(block)
        else:
            cells.append(block)
    end_row()
    return out


def read(doc: Document) -> Reading:
    """The page's blocks, judged by own scoring; nothing is ``own`` when the page has no running text."""
    body = doc.tree.body
    if body is None:
        return Reading([], [], [], [])
    skip, apart, unseen = clutter.find(doc)
    blocks = _with_rows(walk(body, unseen))
    cluttered = _below(skip, {body.mem_id})
    elsewhere = _below(apart, {body.mem_id})
    foreign = frozenset(i for i, b in enumerate(blocks) if elsewhere(b.node)) if apart else frozenset()
    bad = [cluttered(b.node) or regions.is_caption(b) for b in blocks]
    weights = [0.0 if c else paragraph_weight(b) for b, c in zip(blocks, bad, strict=True)]
    for i in _teasers(blocks, weights):
        bad[i], weights[i] = True, 0.0
    total = sum(weights)
    if total < 80:
        return Reading(blocks, [False] * len(blocks), bad, weights, None, foreign)
    mass: dict[int, float] = {}
    nodes: dict[int, LexborNode] = {}
    for block, weight in zip(blocks, weights, strict=True):
        node: LexborNode | None = block.node if weight > 0 else None
        while node is not None and node.tag != "html":
            ident = node.mem_id
            mass[ident] = mass.get(ident, 0.0) + weight
            nodes[ident] = node
            node = node.parent
    root = _descend(body, mass, nodes, total)
    inside = _below({root.mem_id}, set())
    own = [not c and inside(b.node) for b, c in zip(blocks, bad, strict=True)]
    return Reading(blocks, own, bad, weights, root, foreign)


def _teasers(blocks: list[Block], weights: list[float]) -> list[int]:
    """Positions of short texts below the linked title of another page, nothing else with them in their element.

    None where such pairs are much of the text: a list of things that are told of, each with its link.
    """
    last: dict[int, int] = {}  # element -> position of its last block
    for i, block in enumerate(blocks):
        last[block.holder] = i
    found = []
    for i in range(1, len(blocks)):
        block, title_ = blocks[i], blocks[i - 1]
        if not weights[i] > 0 or len(block.text) > _TEASER_CHARS or block.link_chars:
            continue
        if not _is_linked_title(title_) or last[block.holder] != i:
            continue
        parent = block.node.parent
        above = 0 if parent is None else parent.mem_id
        inside = above in (title_.holder, title_.node.mem_id, _above(title_.node))
        if inside and (i < 2 or not _is_inside(blocks[i - 2], block)):
            found.append(i)
    return found if 4 * sum(weights[i] for i in found) < sum(weights) else []


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


def _descend(body: LexborNode, mass: dict[int, float], nodes: dict[int, LexborNode], total: float) -> LexborNode:
    """From the body down while one child holds nearly all of the running text."""
    children: dict[int, list[LexborNode]] = {}
    for node in nodes.values():
        parent = node.parent
        if parent is not None:
            children.setdefault(parent.mem_id, []).append(node)
    here, held = body, total
    while True:
        below = max(children.get(here.mem_id, ()), key=lambda n: mass[n.mem_id], default=None)
        if below is None or below.tag in ("p", "li", "blockquote", "td") or below.tag not in BLOCK_TAGS:
            return here
        share = mass[below.mem_id] / held
        if share < 0.75:
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
    return [sum(t in theirs for t in mine) / len(mine) if (mine := _triples(b.text)) else 0.0 for b in blocks]


def _triples(words_of: str) -> set[tuple[str, ...]]:
    tokens = title.tokens(words_of.replace("\xad", ""))  # a library leaves soft hyphens out
    if len(tokens) < 3:
        return {tuple(tokens)} if tokens else set()
    return set(zip(tokens, tokens[1:], tokens[2:], strict=False))


def _leads(reading: Reading, first: int, headline: str | None, description: str | None) -> set[int]:
    """Blocks between headline and first paragraph that are the article's summary (sapo, standfirst)."""
    head = text.key(headline) if headline else ""
    if not head or first <= 0:
        return set()
    same = [i for i in range(first, max(-1, first - 40), -1) if text.key(reading.blocks[i].text) == head]
    # A link that says the headline again below the lead is not where the article begins.
    start = next((i for i in same if not reading.blocks[i].link_chars), same[0] if same else None)
    said = text.key(description)[:60] if description else ""
    found: set[int] = set()
    for i in range(first - 1, -1 if start is None else start, -1):
        block = reading.blocks[i]
        length = len(block.text)
        if length < 35 or length > 900 or block.link_chars > 0.3 * length or text.leads_away(block):
            continue
        if reading.cluttered[i] and _is_about_author(block.node):
            continue
        names = " ".join(
            f"{n.attributes.get('class') or ''} {n.attributes.get('itemprop') or ''}"
            for n in (block.node, block.node.parent)
            if n
        )
        beside = block.holder == reading.blocks[first].holder
        described = len(said) > 30 and text.key(block.text)[:60].startswith(said[:50])
        if described or (
            start is not None
            and (
                _LEAD.search(names)
                or (i == start + 1 and block.tag == "h2" and length > 60 and head not in text.key(block.text))
                or (
                    ends_a_sentence(block.text)
                    and (block.tag in ("p", "h2") or beside or (i - start <= _NEAR_LEAD and not block.link_chars))
                    and (not reading.cluttered[i] or _is_in_heading(block.node))
                )
            )
        ):
            found.add(i)
        if len(found) > 3 or (start is None and first - i > 12):
            break
    return found


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
    """``(blocks, agreement)``: what both readings have, and of the rest what stands between or is running text."""
    if not other:
        return reading.chosen(), 0.0
    covered = coverage(reading.blocks, other)
    size = [len(b.text) for b in reading.blocks]
    theirs = [c >= 0.6 and i not in reading.foreign for i, c in enumerate(covered)]
    both = sum(n for n, o, t in zip(size, reading.own, theirs, strict=True) if o and t)
    mine, yours = (sum(n for n, f in zip(size, flags, strict=True) if f) for flags in (reading.own, theirs))
    agreement = 2 * both / (mine + yours) if mine + yours else 0.0
    if agreement < 0.3:
        return _one_of_two(reading, theirs, headline), agreement
    agreed = [i for i, (o, t) in enumerate(zip(reading.own, theirs, strict=True)) if o and t and size[i] > 40]
    first, last = (agreed[0], agreed[-1]) if agreed else (0, -1)
    leads = _leads(reading, first, headline, description)
    shapes = {_shape(reading.blocks[i]) for i in agreed}
    kept = []
    for i, block in enumerate(reading.blocks):
        running = size[i] > 60 and block.link_chars < 0.4 * size[i] and ends_a_sentence(block.text)
        between = first <= i <= last
        if reading.own[i] and theirs[i]:
            keep = True
        elif reading.own[i]:
            heading = block.tag in ("h2", "h3", "h4") and between and block.link_chars < 0.5 * size[i]
            near = between or abs(i - last) < 3 or abs(first - i) < 3
            keep = (
                heading
                or (near and (running or (between and block.tag in ("p", "li", "blockquote", "tr"))))
                or (i > last and running and block.tag == "p" and _shape(block) in shapes)
            )
        elif theirs[i]:
            keep = (between and not reading.cluttered[i]) or (running and not reading.cluttered[i])
        else:
            keep = False
        if keep or i in leads:
            kept.append(block)
    return _without_boxes_behind(kept, reading.blocks), agreement


def _one_of_two(reading: Reading, theirs: list[bool], headline: str | None) -> list[Block]:
    """Where the readings have nothing in common: theirs, but ours where it is much more or stands nearer to the headline."""
    blocks = reading.blocks
    found = [i for i, t in enumerate(theirs) if t]
    clean = [i for i in found if not reading.cluttered[i]]
    size = sum(len(blocks[i].text) for i in found)
    if 2 * sum(len(blocks[i].text) for i in clean) > size:
        found = clean
    mine = [i for i, own in enumerate(reading.own) if own]
    length = sum(len(blocks[i].text) for i in mine)
    few = size < _ENOUGH_CHARS and length > 4 * size
    if length >= _ENOUGH_CHARS and (few or _is_nearer(blocks, mine, found, headline)):
        return [blocks[i] for i in mine]
    return [blocks[i] for i in found]


def _is_nearer(blocks: list[Block], mine: list[int], theirs: list[int], headline: str | None) -> bool:
    """Whether the first of ``mine`` follows the headline, and before the first of ``theirs``."""
    head = text.key(headline) if headline else ""
    at = (
        next((i for i, b in enumerate(blocks) if b.tag[:1] == "h" and text.key(b.text) == head), None) if head else None
    )
    return at is not None and bool(mine and theirs) and at < mine[0] <= at + _NEAR and theirs[0] > mine[-1]


def _without_boxes_behind(kept: list[Block], every: list[Block]) -> list[Block]:
    """Without what follows the title of a box ("Related links") behind the element that holds most of the text."""
    held: dict[int, int] = {}
    for block in kept:
        held[block.holder] = held.get(block.holder, 0) + len(block.text)
    most = max(held, key=held.__getitem__, default=0)
    if len(held) < 2 or held[most] < 0.6 * sum(held.values()):
        return kept
    mine = {id(block) for block in kept}
    position = {id(block): i for i, block in enumerate(every)}
    last = max(i for i, block in enumerate(kept) if block.holder == most)
    for block in every[position[id(kept[last])] + 1 :]:
        if len(block.text) < 60 and text.is_box_title(block.text):
            return kept[: last + 1]
        if id(block) in mine:
            last += 1
    return kept


def _shape(block: Block) -> tuple[str, str, str, str]:
    """Tag and class of a block's element and of the one above: paragraphs of one text share them."""
    parent = block.node.parent
    if parent is None:
        return block.tag, "", "", ""
    return block.tag, block.node.attributes.get("class") or "", parent.tag or "", parent.attributes.get("class") or ""


# ---------------------------------------------------------------- the chain
def library_text(doc: Document) -> str | None:
    """trafilatura's reading; None when the page is refused (size, depth) or it finds nothing."""
    tree = doc.lxml
    if tree is None:
        return None
    try:
        import trafilatura  # 0.15 s that a worker whose sites all have sets never pays

        found: str | None = trafilatura.extract(tree, include_comments=False, include_tables=True, output_format="txt")
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError, etree.LxmlError):
        return None  # a library bug on one page must not cost the page: own reading stands alone
    return found


def _open_noscript(body: LexborNode) -> None:
    """What script puts in its place, or a noscript that is not closed in order: then its content is the page."""
    inside = [node for node in body.css("noscript") if len(node.text(deep=True)) > _NOSCRIPT_CHARS]
    if inside:
        most = 0.5 * len(body.text(deep=True))
        paragraphs = 0.5 * _paragraph_chars(body)
        for node in inside:
            held = _paragraph_chars(node)
            if held > paragraphs or (held and len(node.text(deep=True)) > most):
                node.unwrap()


def _paragraph_chars(node: LexborNode) -> int:
    return sum(len(p.text(deep=True)) for p in node.css("p"))


def content(doc: Document, headline: str | None = None) -> FieldValue:
    """The article's text by vote of own scorer and trafilatura; else JSON-LD's articleBody; value None without text."""
    if doc.tree.body is not None:
        _open_noscript(doc.tree.body)
    reading = read(doc)
    other = library_text(doc)
    seen = witnesses.of(doc)
    description = doc.meta_first("og:description", "description") or seen.description
    blocks, agreement = vote(reading, other, headline, description)
    found = text.content_of(blocks, headline)
    if found is None and other is not None:
        found = "\n\n".join(line for line in map(text.clean_line, other.split("\n")) if line)
        found = found if len(found) >= text.MIN_CONTENT_CHARS else None
    if seen.body and len(seen.body) > 3 * len(found or "") and len(seen.body) > 300:
        # The page's text is made by script; what it hands to search engines is there.
        whole = "\n\n".join(line for line in map(text.clean_line, seen.body.split("\n")) if line)
        return FieldValue(whole, "json-ld", 0.6)
    if not found:
        held = scripted.page(doc)
        found = text.content_of(read(held).chosen(), headline) if held is not None else None
        return FieldValue(found, "script:markup", 0.5) if found else FieldValue(None)
    origin = "generic:vote" if other and agreement >= 0.3 else "generic:trafilatura" if other else "generic:blocks"
    return FieldValue(found, origin, round(0.4 + 0.5 * agreement, 2))
