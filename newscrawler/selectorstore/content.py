"""Where the text of an article stands: the content root and its excludes, from several pages of one template. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from selectolax.lexbor import LexborNode

from newscrawler.extraction import witnesses
from newscrawler.extraction.blocks import Block, walk
from newscrawler.extraction.safe_css import SelectorError, check_css
from newscrawler.extraction.selectors import MAX_REPEATS, REPEAT_CHARS, SelectorSet
from newscrawler.extraction.text import clean_line
from newscrawler.selectorstore import asides, css
from newscrawler.selectorstore.asides import is_aside
from newscrawler.selectorstore.reading import read_all
from newscrawler.selectorstore.samples import Sample, f1, norm, words

_ROOTS = 24
_MOST_EXCLUDES = 16
_TRIED_EXCLUDES = 80
#: An exclude must raise the mean F1 over all pages by this: gains on one page are overfit.
_LEAST_GAIN = 0.004
#: What each exclude counts against a root: two that are equal on the samples are not equal on other pages.
_EXCLUDE_COST = 0.003
#: A kind of child that holds less of the labelled text than this, over so many paragraphs, holds none of the article.
_STRAY = 0.08
_MANY_BLOCKS = 40
#: Of a text's length: more that is the same on most pages is a wrong root, and no note at its end.
_MOST_REPEATED = 0.25
_LEAST_REPEATED = 6
#: Above the first labelled block: what a page names so is the article's lead, which the labels often lack.
_LEAD = re.compile(
    r"\b(?:lead|lede|intro|introduction|standfirst|sapo|chapeau|excerpt|abstract|epigraph|deck|dek|vorspann|"
    r"(?:article|post|news)-{0,2}(?:lead|intro|description|summary))\b",
    re.I,
)
_LEAD_CHARS = (40, 800)
_HEADINGS = frozenset({"h2", "h3", "h4", "h5", "h6"})
_LONG_LINE = 60  # no two articles of a site share a line of this length by chance


def valid(selector: str) -> bool:
    try:
        check_css(selector, "rule")
    except SelectorError:
        return False
    return True


@dataclass
class _Body:
    """One page for the content rules. ``chains[i]``: mem_ids of block i's element and all above it."""

    sample: Sample
    blocks: list[Block]
    labelled: list[Block]
    words: Counter[str]
    chains: list[frozenset[int]]
    counts: list[Counter[str]]

    def f1(self, root: str, exclude: tuple[str, ...]) -> float:
        """Of all text below the root, not cleaned: a rule of cleaning that cuts a text short would hide what an
        exclude gains. The gate runs the real executor."""
        inside = {n.mem_id for n in css.hits(self.sample.doc.tree, root)}
        out = {n.mem_id for selector in exclude for n in css.hits(self.sample.doc.tree, selector)}
        found: Counter[str] = Counter()
        for chain, count in zip(self.chains, self.counts, strict=True):
            if not inside.isdisjoint(chain) and out.isdisjoint(chain):
                found.update(count)
        return f1(found, self.words)


def boilerplate(samples: list[Sample]) -> set[str]:
    """Normalised texts of blocks on three pages at least and on half of them; of long ones, which lists share, a fifth."""
    seen: Counter[str] = Counter()
    for sample in samples:
        body = sample.doc.tree.body
        if body is not None:
            seen.update({norm(clean_line(b.text)) for b in walk(body)})
    half, fifth = max(3, len(samples) / 2), max(3, len(samples) / 5)
    return {t for t, pages in seen.items() if pages >= (half if len(t) < _LONG_LINE else fifth)}


def content_of(samples: list[Sample]) -> dict[str, Any] | None:
    common = boilerplate(samples)
    bodies = [b for b in (_body(s, common) for s in samples if s.labels.content) if b is not None]
    if len(bodies) < 3:
        return None
    proposed: Counter[str] = Counter()
    for body in bodies:
        for share in (0.95, 0.6):
            root = _root(body.labelled, share)
            if root is not None:
                near = [root, *list(css.ancestors(root, 2))]
                proposed.update({s for node in near for s in css.selectors_for(node, 20) if valid(s)})
    roots = sorted(proposed, key=lambda s: (-proposed[s], -css.rank(s), s))[:_ROOTS]
    scored = sorted(((_mean_f1(bodies, r, ()) + 0.01 * css.rank(r), r) for r in roots), reverse=True)
    best: tuple[float, str, tuple[str, ...]] | None = None
    for _, root_css in scored[:4]:  # a wide root with excludes may end above a narrow one without
        widened = _widen(bodies, root_css)
        exclude = _excludes(bodies, widened, common)
        score = _mean_f1(bodies, widened, exclude) - _EXCLUDE_COST * len(exclude)
        if best is None or score > best[0] + 0.002:
            best = (score, widened, exclude)
    if best is None or best[0] < 0.6:
        return None
    best = (best[0], best[1], (*best[2], *_strange_children(bodies, best[1], best[2])))
    others = [r for _, r in scored if r != best[1] and r not in best[1]][:1]
    return {"root": [best[1], *others], "exclude": list(best[2])}


def repeats_of(selectors: SelectorSet, samples: list[Sample]) -> list[str]:
    """How paragraphs begin that the set takes in on half of the pages: a note on the translation, a call to subscribe.

    Where they are much of the text the root is wrong, which is the gate's to say: none then.
    """
    texts = [found["content"].value for s in samples if "content" in (found := read_all(s, selectors))]
    pages = [text.split("\n\n") for text in texts]
    seen = Counter(start for page in pages for start in {line[:REPEAT_CHARS] for line in page})
    often = max(3, len(pages) / 2)
    repeated = {start for start, count in seen.items() if count >= often and len(start) >= _LEAST_REPEATED}
    chars = sum(len(line) for page in pages for line in page if line[:REPEAT_CHARS] in repeated)
    share = chars / max(1, sum(map(len, texts)))
    return sorted(repeated) if len(repeated) <= MAX_REPEATS and share <= _MOST_REPEATED else []


def content_label(sample: Sample, common: set[str]) -> str | None:
    """The content that the page's labelled blocks and their siblings hold: what a set is judged by.

    More than the generic chain's text where that was cut short, less where it kept captions and link boxes.
    """
    body = _body(sample, common) if sample.labels.content else None
    return "\n\n".join(b.text for b in body.labelled) if body else sample.labels.content


def _body(sample: Sample, common: set[str]) -> _Body | None:
    top = sample.doc.tree.body
    if top is None:
        return None
    blocks = list(walk(top))
    label = sample.labels.content or ""
    whole = norm(label)
    paragraphs = {norm(line) for part in label.split("\n\n") for line in (part, *part.split("\n"))}
    lead = norm(sample.doc.meta_first("description", "og:description") or "")
    stated = norm(witnesses.of(sample.doc).body or "")
    if len(stated) < 0.8 * len(whole):
        stated = ""  # a teaser, or cut short
    labelled = []
    for block in blocks:
        text = norm(clean_line(block.text))
        # The lead often stands in the description; on the page a desk's sign may come before it ("TPO - ").
        is_lead = len(lead) > 40 and lead in text and len(text) <= len(lead) + 25
        known = text in paragraphs or (len(text) > 40 and (text in whole or text in stated)) or is_lead
        if known and text not in common and not is_aside(block, text, sample):
            labelled.append(block)
    if not labelled:
        return None
    labelled = [*_named_leads(blocks, labelled[0], common, sample), *labelled]
    labelled = _with_siblings(blocks, labelled, common, sample)
    counts = [Counter(words(b.text)) for b in blocks]
    chains = [frozenset(n.mem_id for n in (b.node, *css.ancestors(b.node, 400))) for b in blocks]
    return _Body(sample, blocks, labelled, Counter(w for b in labelled for w in words(b.text)), chains, counts)


def _named_leads(blocks: list[Block], first: Block, common: set[str], sample: Sample) -> list[Block]:
    """Between the headline and the first labelled block: what is named a lead, is running text and no other page's."""
    headline = norm(sample.labels.title or "-")
    above = blocks[: next(i for i, b in enumerate(blocks) if b is first)]
    start = next((i for i, b in enumerate(above) if b.tag == "h1" or headline in norm(clean_line(b.text))), None)
    found = []
    for block in above[start + 1 :] if start is not None else []:
        text = norm(clean_line(block.text))
        named = " ".join(n.attributes.get("class") or "" for n in (block.node, *css.ancestors(block.node, 1)))
        if (
            _LEAD_CHARS[0] < len(text) < _LEAD_CHARS[1]
            and _LEAD.search(named.replace("_", "-"))
            and block.link_chars < 0.3 * len(block.text)
            and text not in common
            and not is_aside(block, text, sample)
        ):
            found.append(block)
    return found


def _with_siblings(blocks: list[Block], labelled: list[Block], common: set[str], sample: Sample) -> list[Block]:
    """Paragraphs beside two labelled ones, of the same parent, tag and class, are the article's too, and headings between
    two labelled blocks of their own parent: labels are often cut short or miss one."""

    def kind(block: Block) -> tuple[int, str, str]:
        parent = block.node.parent
        return (parent.mem_id if parent else 0, block.tag, block.node.attributes.get("class") or "")

    kinds = Counter(kind(b) for b in labelled if b.tag == "p")
    known = {id(b) for b in labelled}
    places: dict[int, list[int]] = {}  # parent -> where its labelled blocks stand
    for position, block in enumerate(blocks):
        if id(block) in known:
            places.setdefault(kind(block)[0], []).append(position)
    out = []
    for position, block in enumerate(blocks):
        text = norm(clean_line(block.text))
        alike = kinds[kind(block)] >= 2 and len(text) > 60
        if block.tag in _HEADINGS:
            beside = places.get(kind(block)[0], [position])
            alike = beside[0] < position < beside[-1]
        alike = alike and block.link_chars < 0.3 * len(block.text)
        if id(block) in known or (alike and text not in common and not is_aside(block, text, sample)):
            out.append(block)
    return out


def _root(labelled: list[Block], share: float) -> LexborNode | None:
    """The deepest node that holds ``share`` of the labelled text."""
    weight: Counter[int] = Counter()
    nodes: dict[int, tuple[int, LexborNode]] = {}
    total = 0
    for block in labelled:
        total += len(block.text)
        chain = []
        node: LexborNode | None = block.node
        while node is not None and node.tag not in ("body", "html", None):
            chain.append(node)
            node = node.parent
        for depth, above in enumerate(reversed(chain)):
            weight[above.mem_id] += len(block.text)
            nodes[above.mem_id] = (depth, above)
    fitting = [nodes[i] for i, w in weight.items() if w >= share * total]
    return max(fitting, key=lambda f: f[0])[1] if fitting else None


def _mean_f1(bodies: list[_Body], root: str, exclude: tuple[str, ...]) -> float:
    return sum(body.f1(root, exclude) for body in bodies) / len(bodies)


def _widen(bodies: list[_Body], root: str) -> str:
    """The root together with what is labelled outside of it, such as a lead above the body."""
    outside: Counter[str] = Counter()
    for body in bodies:
        inside = {n.mem_id for n in css.hits(body.sample.doc.tree, root)}
        mine: set[str] = set()
        for block in body.labelled:
            above = [block.node, *css.ancestors(block.node, 30)]
            if len(block.text) > 30 and not any(n.mem_id in inside for n in above) and block.node.tag != "h1":
                mine.update(s for s in css.selectors_for(block.node, 12) if valid(s))
        outside.update(mine)
    base = _mean_f1(bodies, root, ())
    best = (base, root)
    for selector, pages in outside.most_common(12):
        both = f"{selector}, {root}"
        if pages >= len(bodies) / 2 and len(both) <= 200 and valid(both):
            # A lead is short beside a long text: where nearly every page has it, it need not weigh much.
            least = 0.002 if pages >= 0.75 * len(bodies) else 0.01
            gained = _mean_f1(bodies, both, ()) + 0.002 * css.rank(selector)
            if gained > max(best[0], base + least):
                best = (gained, both)
    return best[1]


def _strange_children(bodies: list[_Body], root: str, exclude: tuple[str, ...]) -> list[str]:
    """``body > div`` where the text stands in other children of the root on every page: boxes that come by too rarely
    to be among the samples are left out by their kind, as their names are not known yet."""
    found = []
    for part in root.split(","):
        for kind in ("div", "aside"):
            selector = f"{part.strip()} > {kind}"
            if not valid(selector):
                continue
            inside = strays = blocks = pages = 0
            for body in bodies:
                before = strays
                tree = body.sample.doc.tree
                tops = {n.mem_id for n in css.hits(tree, part)}
                boxes = {n.mem_id for n in css.hits(tree, selector)}
                gone = {n.mem_id for one in exclude for n in css.hits(tree, one)}
                for block in body.labelled:
                    chain = {n.mem_id for n in (block.node, *css.ancestors(block.node, 400))}
                    if tops.isdisjoint(chain) or not gone.isdisjoint(chain):
                        continue
                    blocks += 1
                    inside += len(block.text)
                    strays += 0 if boxes.isdisjoint(chain) else len(block.text)
                pages += strays > before
            # Some text there is labelled: the generic chain takes a box of running text for the article's.
            # A little on every page is a lead in a box of its own.
            if blocks >= _MANY_BLOCKS and strays <= _STRAY * inside and pages < len(bodies) / 2:
                found.append(selector)
    return found[:4]


@dataclass
class _Left:
    """What one page would keep: its blocks below the root that no exclude took yet, and their overlap with the label."""

    body: _Body
    live: set[int]
    found: Counter[str] = field(default_factory=Counter)
    shared: int = 0

    def __post_init__(self) -> None:
        for index in self.live:
            self.found.update(self.body.counts[index])
        self.shared = (self.found & self.body.words).total()

    def f1(self, without: frozenset[int] | set[int] = frozenset()) -> float:
        """As _Body.f1, in the time that the blocks taken out need."""
        shared, total, label = self.shared, self.found.total(), self.body.words
        gone: Counter[str] = Counter()
        for index in without & self.live:
            gone.update(self.body.counts[index])
        for word, count in gone.items():
            had, most = self.found[word], label[word]
            shared -= min(had, most) - min(had - count, most)
        total += label.total() - gone.total()
        return 2 * shared / total if total else 1.0

    def take(self, blocks: frozenset[int]) -> None:
        for index in blocks & self.live:
            self.found.subtract(self.body.counts[index])
        self.live -= blocks
        self.shared = (self.found & self.body.words).total()


@dataclass(frozen=True)
class _Exclude:
    """A selector and the unlabelled blocks that it takes out, by page."""

    css: str
    blocks: dict[int, frozenset[int]]
    chars: int
    #: Named like an aside, or all its texts stand on most pages: needs no proof by numbers. A caption is a few words.
    sure: bool


def _excludes(bodies: list[_Body], root: str, common: set[str]) -> tuple[str, ...]:
    """Greedy: each class group that is never labelled, taken out while the mean over all pages gains."""
    left = [_Left(body, _below(body, root)) for body in bodies]
    chosen: list[str] = []
    score = sum(one.f1() for one in left) / len(left)
    for candidate in _exclude_candidates(bodies, root, left, common):
        if len(chosen) == _MOST_EXCLUDES:
            break
        after = [one.f1(candidate.blocks.get(i, frozenset())) for i, one in enumerate(left)]
        gained = sum(after) / len(left)
        if gained > score + (0.0 if candidate.sure else _LEAST_GAIN):
            chosen.append(candidate.css)
            score = gained
            for i, blocks in candidate.blocks.items():
                left[i].take(blocks)
    return tuple(chosen)


def _below(body: _Body, root: str) -> set[int]:
    inside = {n.mem_id for n in css.hits(body.sample.doc.tree, root)}
    return {i for i, chain in enumerate(body.chains) if not inside.isdisjoint(chain)}


def _exclude_candidates(bodies: list[_Body], root: str, left: list[_Left], common: set[str]) -> list[_Exclude]:
    """Those that hit nothing labelled, heaviest first; of several that take the same blocks, the outermost one."""
    covered: dict[str, dict[int, set[int]]] = {}
    order: dict[str, int] = {}
    keeps = []
    for number, body in enumerate(bodies):
        keep = {n.mem_id for b in body.labelled for n in (b.node, *css.ancestors(b.node, 40))}
        keeps.append(keep)
        inside = {n.mem_id for n in css.hits(body.sample.doc.tree, root)}
        labelled = {id(b) for b in body.labelled}
        for index in sorted(left[number].live):
            block = body.blocks[index]
            if id(block) in labelled:
                continue
            for node in (block.node, *css.ancestors(block.node, 40)):
                if node.mem_id in keep or node.mem_id in inside:
                    break
                bare = [node.tag] if node.tag in asides.TAGS else []
                for selector in (*bare, *asides.of_other_stories(node), *css.own_selectors(node)):
                    covered.setdefault(selector, {}).setdefault(number, set()).add(index)
                    order[selector] = len(order)  # the last to be seen is the outermost
    by_blocks: dict[frozenset[tuple[int, int]], str] = {}
    for selector, pages in covered.items():
        blocks = frozenset((n, i) for n, found in pages.items() for i in found)
        known = by_blocks.get(blocks)
        if known is None or _better_name(selector, known, order):
            by_blocks[blocks] = selector
    found = []
    for selector in by_blocks.values():
        taken = {n: frozenset(indexes) for n, indexes in covered[selector].items()}
        blocks_of = [bodies[n].blocks[i] for n, indexes in taken.items() for i in indexes]
        named = (
            bool(asides.NAMED.search(selector)) or selector in asides.TAGS or asides.STORY.match(selector) is not None
        )
        sure = named or all(norm(clean_line(b.text)) in common for b in blocks_of)
        found.append(_Exclude(selector, taken, sum(len(b.text) for b in blocks_of), sure))
    found.sort(key=lambda e: (-e.chars, e.css))
    tops = [css.hits(body.sample.doc.tree, root) for body in bodies]
    fitting = (e for e in found if valid(e.css) and not _hits_labelled(e.css, tops, keeps))
    return list(islice(fitting, _TRIED_EXCLUDES))


def _better_name(selector: str, known: str, order: dict[str, int]) -> bool:
    def standing(css_text: str) -> tuple[bool, int]:
        return bool(asides.NAMED.search(css_text)) or css_text in asides.TAGS, order[css_text]

    return standing(selector) > standing(known)


def _hits_labelled(selector: str, tops: list[list[LexborNode]], keeps: list[set[int]]) -> bool:
    return any(
        hit.mem_id in keep
        for nodes, keep in zip(tops, keeps, strict=True)
        for top in nodes
        for hit in css.hits(top, selector)
    )
