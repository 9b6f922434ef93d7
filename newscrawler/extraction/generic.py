"""Content of a page that nobody wrote selectors for: own block scorer and trafilatura vote. Pure.

General rules only: no name of a publisher may stand here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lxml import etree
from selectolax.lexbor import LexborNode

from newscrawler.extraction import regions, text, title, witnesses
from newscrawler.extraction.blocks import BLOCK_TAGS, Block, walk
from newscrawler.extraction.document import Document, words
from newscrawler.items import FieldValue

# Words of class and id that name what is not the article. Whole words or parts cut by - and _ or camelCase.
_CLUTTER = re.compile(
    r"(?:^|[\s_-])(?:comments?|kommentare?|disqus|respond|replies|relate[ds]?|related\w*|\w*related|recommend\w*|empfehl\w*"
    r"|share|sharing|shares|social\w*|"
    r"news-?letter\w*|promo\w*|sidebar|side-bar|rail|footer|foot|nav|navi|navigation|navbar|menu\w*|breadcrumbs?"
    r"|cookies?|consent|banner|"
    r"ad|ads|adv|advert\w*|anzeige\w*|werbung|sponsor\w*|popup|modal|overlay|login|signin|signup|register"
    r"|registration|subscribe|subscription|abo|"
    r"tags?|taglist|keywords|topics|caption|captions|bildunterschrift|credit|credits|copyright|byline|dateline"
    r"|timestamp|teaser\w*|"
    r"widget\w*|most-?read|popular|trending|latest|more-?news|more-?stories|read-?more|readmore|readnext"
    r"|next-?prev|outbrain|taboola|"
    r"disclaimer|hidden|hide|visually-?hidden|sr-only|screen-reader-text|print-only|skip-?link|tooltip|ticker"
    r"|pagination|pager|paging|"
    r"rating|poll|quiz|vote|survey|toolbar|tools|buttons?|btn|icons?|carousel|slider|slideshow|gallery"
    r"|video-?player|audio-?player|player|"
    r"author-?(?:box|bio|info|card|about)|box-?author\w*|box-?tac-?gia|about-?author|bio|biography|meta|metadata|post-?meta|entry-?meta"
    r"|article-?meta|info-?box|"
    r"binh-?luan|lien-?quan|tin-?lien-?quan|tin-?khac|quang-?cao|relatednews\w*|box-?tin\w*|note-?box|box-?(?:game|note|news|quiz)|insert-?neww?s?|chi-?so-?chung-?khoan|chu-?thich\w*|ad(?:m|s|v)?-?zone\w*|toc|table-of-contents"
    r"|feedback|"
    r"search|suche|app-?download|donate|donation|spenden|paywall|legal|impressum|jump-?to|figcaption|sticky"
    r"|jp-relatedposts|sharedaddy|"
    r"wp-caption-text|nextpost|prevpost|post-nav\w*|similar|further|also-?read|see-?also|inline-?related|embed"
    r"|disclosures?|reviewed|vcard"
    r"|aside|supplement\w*|"
    r"list-?item-?link|follow-?us|follow|whatsapp|facebook|twitter|telegram|contact-?form|form"
    r"|language-?switch\w*|notification\w*)(?:$|[\s_-])",
    re.I,
)
_CLUTTER_PARAGRAPH = re.compile(
    r"(?:^|[\s_-])(?:\w*caption\w*|credits?|byline|dateline|timestamp|copyright|comments?|share|sharing|social|tags?"
    r"|autor(?:in)?|autorname|tac-?gia|chu-?thich\w*|date|disclaimer|newsletter\w*|promo\w*|"
    r"read-?more|readmore|related\w*|advert\w*|author|bio|hidden|sr-only|screen-reader-text|nav|menu|breadcrumbs?"
    r"|follow|subscribe|also-?read|"
    r"source|teaser-?(?:title|text)|postdate|post-?meta(?:data)?|ads?|wp-caption-text)(?:$|[\s_-])",
    re.I,
)
_TEXT_TAGS = words("p h2 h3 h4 blockquote tr td th")
_LEAD = re.compile(
    r"lead|lede|standfirst|sapo|sub-?title|subtitle|sub-?head|dek|deck|excerpt|summary|abstract|intro|chapo"
    r"|chapeau|vorspann|teaser|description|perex|ingress"
    r"|bajada|entradilla|sumario|kicker-text|first-paragraph|tagline|sommario|occhiello|anons|spoiler|manchet"
    r"|preamble",
    re.I,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What a build tool made of a name ("n1AuAdJlVL", "kfEGwZ"): pieces of one or two characters among three or more.
_TOKEN = re.compile(r"(?<!\w)[A-Za-z0-9]{5,12}(?!\w)")
_HASH_PIECES = re.compile(r"[a-z0-9]*(?:[A-Z][a-z0-9]*){2,}")
_SHORT_PIECE = re.compile(r"[A-Z][a-z0-9]?(?![a-z0-9])")
# Boxes that an article is built of.
_PART_OF_TEXT = re.compile(
    r"(?<!\S)(?:article|content|story|text|body)[-_]?widgets?(?:[-_](?:text|content|body)\w*)?(?!\S)", re.I
)
_OWN_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,20}(?:-[a-zA-Z0-9]{1,20}){1,4})[\s>/]")
_MAX_OWN = 20
# Boxes about who wrote it; what they say is no summary.
_ABOUT_AUTHOR = re.compile(r"author|autor(?!en?text)|\bbio\b|vcard|tac-?gia", re.I)
_SKIPPED_TAGS = words("nav footer aside form figure figcaption header dialog menu")
_HIDDEN_STYLE = re.compile(r"display:\s*none|visibility:\s*hidden", re.I)
_SENTENCE = re.compile(r"[.!?…。！？»”\"]['”\"’)\]]?$")
# A cell that is longer is text, not a value.
_CELL_CHARS = 60
# A noscript of fewer characters is a notice.
_NOSCRIPT_CHARS = 1000


@dataclass(slots=True)
class Reading:
    """Every block of a page with what the own scorer thinks of it. ``own``: in the article's root, no clutter."""

    blocks: list[Block]
    own: list[bool]
    cluttered: list[bool]
    weights: list[float]
    root: LexborNode | None = None

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
    if not _SENTENCE.search(block.text[-3:]) and length < 100:
        weight *= 0.4
    return weight


def clutter(doc: Document) -> set[int]:
    """``mem_id`` of the elements that are not article by tag, name or style; one that holds most text is kept."""
    body = doc.tree.body
    if body is None:
        return set()
    cache: dict[tuple[re.Pattern[str], str], bool] = {}
    suspects: list[LexborNode] = []
    for node in body.css(
        "[class],[id],div[type],nav,footer,aside,form,figure,figcaption,header,dialog,menu,[hidden],[style]"
    ):
        tag = node.tag
        if tag in ("body", "main", "article", "html"):
            continue
        if tag in _SKIPPED_TAGS:
            suspects.append(node)
            continue
        attributes = node.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''} {attributes.get('type') or ''}"
        # A paragraph is text unless its name says caption, credit ...; "teaser" or "widget" on it is styling.
        pattern = _CLUTTER_PARAGRAPH if tag in _TEXT_TAGS else _CLUTTER
        bad = cache.get((pattern, names))
        if bad is None:
            bad = cache[pattern, names] = len(names) < 300 and _is_clutter(pattern, names)
        if bad or "hidden" in attributes or ("style" in attributes and _HIDDEN_STYLE.search(attributes["style"] or "")):
            suspects.append(node)
    # <amp-ad>, <x-inline-teaser>: elements that a site has made and named.
    own = [tag for tag in dict.fromkeys(m[1].lower() for m in _OWN_TAG.finditer(doc.text_html)) if _CLUTTER.search(tag)]
    if own:
        suspects.extend(body.css(",".join(own[:_MAX_OWN])))
    total = _text_weight(body)
    skip: set[int] = set()
    for node in suspects:
        if node.tag in ("figure", "figcaption", "nav", "menu", "dialog") or _text_weight(node) < 0.35 * total:
            skip.add(node.mem_id)
    return skip


def _is_clutter(pattern: re.Pattern[str], names: str) -> bool:
    if not names.islower():
        names = _CAMEL.sub("-", _TOKEN.sub(_without_hash, names))
    return bool(pattern.search(_PART_OF_TEXT.sub("", names)))


def _without_hash(token: re.Match[str]) -> str:
    name = token[0]
    return "" if _HASH_PIECES.fullmatch(name) and _SHORT_PIECE.search(name) else name


def _text_weight(node: LexborNode) -> int:
    return sum(len(t) for p in node.css("p") if len(t := p.text(deep=True)) > 60)


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
    skip = clutter(doc)
    blocks = _with_rows(walk(body))
    cluttered = _below(skip, {body.mem_id})
    bad = [cluttered(b.node) or regions.is_caption(b) for b in blocks]
    weights = [0.0 if c else paragraph_weight(b) for b, c in zip(blocks, bad, strict=True)]
    total = sum(weights)
    if total < 80:
        return Reading(blocks, [False] * len(blocks), bad, weights)
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
    return Reading(blocks, own, bad, weights, root)


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
    tokens = title.tokens(words_of)
    if len(tokens) < 3:
        return {tuple(tokens)} if tokens else set()
    return set(zip(tokens, tokens[1:], tokens[2:], strict=False))


def _leads(reading: Reading, first: int, headline: str | None, description: str | None) -> set[int]:
    """Blocks between headline and first paragraph that are the article's summary (sapo, standfirst)."""
    head = text.key(headline) if headline else ""
    if not head or first <= 0:
        return set()
    start = next((i for i in range(first, max(-1, first - 40), -1) if text.key(reading.blocks[i].text) == head), None)
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
        described = len(said) > 30 and text.key(block.text)[:60].startswith(said[:50])
        if described or (
            start is not None
            and (
                _LEAD.search(names)
                or (block.tag in ("p", "h2") and not reading.cluttered[i] and _SENTENCE.search(block.text[-3:]))
            )
        ):
            found.add(i)
        if len(found) > 3 or (start is None and first - i > 12):
            break
    return found


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
    theirs = [c >= 0.6 for c in covered]
    both = sum(n for n, o, t in zip(size, reading.own, theirs, strict=True) if o and t)
    mine, yours = (sum(n for n, f in zip(size, flags, strict=True) if f) for flags in (reading.own, theirs))
    agreement = 2 * both / (mine + yours) if mine + yours else 0.0
    if agreement < 0.3:
        found = [(b, c) for b, t, c in zip(reading.blocks, theirs, reading.cluttered, strict=True) if t]
        clean = [b for b, cluttered in found if not cluttered]
        enough = 2 * sum(len(b.text) for b in clean) > sum(len(b.text) for b, _ in found)
        return clean if enough else [b for b, _ in found], agreement
    agreed = [i for i, (o, t) in enumerate(zip(reading.own, theirs, strict=True)) if o and t and size[i] > 40]
    first, last = (agreed[0], agreed[-1]) if agreed else (0, -1)
    leads = _leads(reading, first, headline, description)
    shapes = {_shape(reading.blocks[i]) for i in agreed}
    kept = []
    for i, block in enumerate(reading.blocks):
        running = size[i] > 60 and block.link_chars < 0.4 * size[i] and bool(_SENTENCE.search(block.text[-3:]))
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
    """A noscript that is not closed in order swallows the page, which browsers show: then its content counts."""
    inside = [node for node in body.css("noscript") if node.css_first("p") is not None]
    if inside:
        most = 0.5 * len(body.text(deep=True))
        for node in inside:
            if len(node.text(deep=True)) > max(most, _NOSCRIPT_CHARS):
                node.unwrap()


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
        return FieldValue(None)
    origin = "generic:vote" if other and agreement >= 0.3 else "generic:trafilatura" if other else "generic:blocks"
    return FieldValue(found, origin, round(0.4 + 0.5 * agreement, 2))
