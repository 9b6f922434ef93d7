"""Where the text of an article stands: the content root and its excludes, from several
pages of one template. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from selectolax.lexbor import LexborNode

from newscrawler.extraction import lexicon, page_metadata
from newscrawler.extraction.blocks import Block, walk
from newscrawler.extraction.safe_css import SelectorError, check_css
from newscrawler.extraction.selectors import MAX_REPEATS, REPEAT_CHARS, SelectorSet
from newscrawler.extraction.text import clean_line
from newscrawler.selectorsets import css, related_blocks
from newscrawler.selectorsets.candidate_runs import read_all
from newscrawler.selectorsets.related_blocks import is_related
from newscrawler.selectorsets.samples import Sample, f1, norm, words
from newscrawler.utils.numbers import share

_ROOTS = 24
_MOST_EXCLUDES = 16
_TRIED_EXCLUDES = 80
#: An exclude must raise the mean F1 over all pages by this: gains on one page are overfit.
_LEAST_GAIN = 0.004
#: What each exclude counts against a root: two that are equal on the samples are not equal
#: on other pages.
_EXCLUDE_COST = 0.003
#: A kind of child that holds less of the labelled text than this, over so many paragraphs, holds
#: none of the article.
_STRAY = 0.08
_MANY_BLOCKS = 40
#: Of a text's length: more that is the same on most pages is a wrong root, and no note at its end.
_MOST_REPEATED = 0.25
_LEAST_REPEATED = 6
#: Above the first labelled block: what a page names so is the article's lead, which the
#: labels often lack.
_STANDFIRST = lexicon.Pattern(r"\b(?:<class.standfirst_above>)\b")
_STANDFIRST_CHARS = (40, 800)
_HEADINGS = frozenset({"h2", "h3", "h4", "h5", "h6"})
#: A line that comes often is a note of the site where it stands in one place of the text on this
#: share of its pages, or beside another such line on more than that share.
_ONE_PLACE, _BESIDE = 0.6, 0.2
_LONG_LINE = 60  # no two articles of a site share a line of this length by chance


def valid(selector: str) -> bool:
    try:
        check_css(selector, "rule")
    except SelectorError:
        return False
    return True


@dataclass
class _Body:
    """One page for the content rules. ``chains[i]``: mem_ids of block i's
    element and all above it."""

    sample: Sample
    blocks: list[Block]
    labelled: list[Block]
    words: Counter[str]
    chains: list[frozenset[int]]
    counts: list[Counter[str]]

    def f1(self, root: str, exclude: tuple[str, ...]) -> float:
        """Of all text below the root, not cleaned: a rule of cleaning that cuts a text short would
        hide what an exclude gains. Validation runs the real executor."""
        inside = {n.mem_id for n in css.hits(self.sample.doc.tree, root)}
        out = {n.mem_id for selector in exclude for n in css.hits(self.sample.doc.tree, selector)}
        found: Counter[str] = Counter()
        for above, count in zip(self.chains, self.counts, strict=True):
            if not inside.isdisjoint(above) and out.isdisjoint(above):
                found.update(count)
        return f1(found, self.words)


def boilerplate(samples: list[Sample]) -> set[str]:
    """Normalised texts of blocks on three pages at least and on half of them; of long ones, which
    lists share, a fifth."""
    seen: Counter[str] = Counter()
    for sample in samples:
        body = sample.doc.tree.body
        if body is not None:
            seen.update({norm(clean_line(b.text)) for b in walk(body)})
    half, fifth = max(3, len(samples) / 2), max(3, len(samples) / 5)
    often = {t for t, pages in seen.items() if pages >= (half if len(t) < _LONG_LINE else fifth)}
    texts = ((sample.labels.content or "").split("\n\n") for sample in samples)
    return often - said_again([[norm(clean_line(p)) for p in text] for text in texts], often)


def said_again(texts: list[list[str]], often: set[str]) -> set[str]:
    """Of the lines that come ``often`` those that are the articles' own: a sentence of a running
    story.

    It stands somewhere else in each text, by itself. A note of the site stands where it always
    stands, counted from the beginning or from the end, or among others that come often.
    """
    places: dict[str, list[tuple[int, int]]] = {line: [] for line in often}
    beside: Counter[str] = Counter()
    for lines in texts:
        for index, line in enumerate(lines):
            if line not in often:
                continue
            places[line].append((index, len(lines) - index))
            around = lines[max(0, index - 1) : index] + lines[index + 1 : index + 2]
            beside[line] += len(around) < 2 or any(other in often for other in around)
    return {
        line
        for line, found in places.items()
        if len(found) >= 3 and beside[line] <= _BESIDE * len(found) and _wanders(found)
    }


def _wanders(places: list[tuple[int, int]]) -> bool:
    """Neither from the beginning nor from the end in one place on most pages."""
    return all(
        max(Counter(at).values()) < _ONE_PLACE * len(places) for at in zip(*places, strict=True)
    )


def content_of(samples: list[Sample]) -> dict[str, Any] | None:
    common = boilerplate(samples)
    labelled = (_body(sample, common) for sample in samples if sample.labels.content)
    bodies = [body for body in labelled if body is not None]
    if len(bodies) < 3:
        return None
    scored = sorted(
        ((_mean_f1(bodies, r, ()) + 0.01 * css.rank(r), r) for r in _roots(bodies)), reverse=True
    )
    best: tuple[float, str, tuple[str, ...]] = (0.0, "", ())
    for _, root_css in scored[:4]:  # a wide root with excludes may end above a narrow one without
        widened = _widen(bodies, root_css)
        exclude = _excludes(bodies, widened, common)
        score = _mean_f1(bodies, widened, exclude) - _EXCLUDE_COST * len(exclude)
        if not best[1] or score > best[0] + 0.002:
            best = (score, widened, exclude)
    if best[0] < 0.6:
        return None
    _, root, exclude = best
    others = [other for _, other in scored if other not in root][:1]
    return {
        "root": [root, *others],
        "exclude": [*exclude, *_strange_children(bodies, root, exclude)],
    }


def _roots(bodies: list[_Body]) -> list[str]:
    """Names of the nodes that hold most of the labelled text, those of most pages first."""
    proposed: Counter[str] = Counter()
    for body in bodies:
        for part in (0.95, 0.6):
            root = _root(body.labelled, part)
            if root is None:
                continue
            names = {s for n in (root, *css.ancestors(root, 2)) for s in css.selectors_for(n, 20)}
            proposed.update(filter(valid, names))
    return sorted(proposed, key=lambda s: (-proposed[s], -css.rank(s), s))[:_ROOTS]


def repeats_of(selectors: SelectorSet, samples: list[Sample]) -> list[str]:
    """How paragraphs begin that the set takes in on half of the pages: a note on the translation, a
    call to subscribe.

    Where they are much of the text the root is wrong, which is the validation's to say: none then.
    """
    read = (read_all(sample, selectors) for sample in samples)
    pages = [found["content"].value.split("\n\n") for found in read if "content" in found]
    seen = Counter(start for page in pages for start in {line[:REPEAT_CHARS] for line in page})
    often = max(3, len(pages) / 2)
    repeated = {start for start, count in seen.items() if count >= often}
    repeated = {start for start in repeated if len(start) >= _LEAST_REPEATED}
    repeated -= said_again([[line[:REPEAT_CHARS] for line in page] for page in pages], repeated)
    if len(repeated) > MAX_REPEATS or _share_of(repeated, pages) > _MOST_REPEATED:
        return []
    return sorted(repeated)


def _share_of(beginnings: set[str], pages: list[list[str]]) -> float:
    """How much of the pages' texts the paragraphs are that begin so."""
    lines = list(chain.from_iterable(pages))
    chars = sum(len(line) for line in lines if line[:REPEAT_CHARS] in beginnings)
    return share(chars, sum(len("\n\n".join(page)) for page in pages))


def content_label(sample: Sample, common: set[str]) -> str | None:
    """The content that the page's labelled blocks and their siblings hold: what a set is judged by.

    More than the generic chain's text where that was cut short, less where it kept
    captions and link boxes.
    """
    body = _body(sample, common) if sample.labels.content else None
    return "\n\n".join(b.text for b in body.labelled) if body else sample.labels.content


def _body(sample: Sample, common: set[str]) -> _Body | None:
    top = sample.doc.tree.body
    if top is None:
        return None
    blocks = list(walk(top))
    stated = _Stated(sample)
    labelled = []
    for block in blocks:
        text = norm(clean_line(block.text))
        if stated.has(text) and text not in common and not is_related(block, text, sample):
            labelled.append(block)
    if not labelled:
        return None
    labelled = [*_named_standfirsts(blocks, labelled[0], common, sample), *labelled]
    labelled = _with_siblings(blocks, labelled, common, sample)
    return _Body(
        sample,
        blocks,
        labelled,
        Counter(w for b in labelled for w in words(b.text)),
        [frozenset(_lineage(b.node, 400)) for b in blocks],
        [Counter(words(b.text)) for b in blocks],
    )


class _Stated:
    """What label, description and JSON-LD say that the text of a page is."""

    def __init__(self, sample: Sample) -> None:
        label = sample.labels.content or ""
        self._whole = norm(label)
        parts = label.split("\n\n")
        self._paragraphs = {norm(line) for part in parts for line in (part, *part.split("\n"))}
        self._lead = norm(sample.doc.meta_first("description", "og:description") or "")
        self._body = norm(page_metadata.of(sample.doc).body or "")
        if len(self._body) < 0.8 * len(self._whole):
            self._body = ""  # a teaser, or cut short

    def has(self, text: str) -> bool:
        if text in self._paragraphs:
            return True
        if len(text) > 40 and (text in self._whole or text in self._body):
            return True
        # The lead often stands in the description; on the page a desk's sign may come
        # before it ("TPO - ").
        lead = self._lead
        return len(lead) > 40 and len(text) <= len(lead) + 25 and lead in text


def _lineage(node: LexborNode, levels: int) -> set[int]:
    """``mem_id`` of a node and of the elements above it."""
    return {one.mem_id for one in (node, *css.ancestors(node, levels))}


def _named_standfirsts(
    blocks: list[Block], first: Block, common: set[str], sample: Sample
) -> list[Block]:
    """Between the headline and the first labelled block: what is named a lead, is running
    text and no other page's."""
    headline = norm(sample.labels.title or "-")
    above = blocks[: next(i for i, b in enumerate(blocks) if b is first)]
    for start, block in enumerate(above):
        if block.tag == "h1" or headline in norm(clean_line(block.text)):
            return [b for b in above[start + 1 :] if _is_named_standfirst(b, common, sample)]
    return []


def _is_named_standfirst(block: Block, common: set[str], sample: Sample) -> bool:
    text = norm(clean_line(block.text))
    if not _STANDFIRST_CHARS[0] < len(text) < _STANDFIRST_CHARS[1]:
        return False
    nodes = (block.node, *css.ancestors(block.node, 1))
    names = " ".join(node.attributes.get("class") or "" for node in nodes)
    if not _STANDFIRST.search(names.replace("_", "-")) or block.link_chars >= 0.3 * len(block.text):
        return False
    return text not in common and not is_related(block, text, sample)


def _with_siblings(
    blocks: list[Block], labelled: list[Block], common: set[str], sample: Sample
) -> list[Block]:
    """Paragraphs beside two labelled ones, of the same parent, tag and class, are the
    article's too, and headings between two labelled blocks of their own parent: labels are
    often cut short or miss one."""
    kinds = Counter(_kind(b) for b in labelled if b.tag == "p")
    known = {id(b) for b in labelled}
    places: dict[int, list[int]] = {}  # parent -> where its labelled blocks stand
    for position, block in enumerate(blocks):
        if id(block) in known:
            places.setdefault(block.holder, []).append(position)

    def is_sibling(position: int, block: Block) -> bool:
        if block.link_chars >= 0.3 * len(block.text):
            return False
        if block.tag in _HEADINGS:
            beside = places.get(block.holder, [position])
            return beside[0] < position < beside[-1]
        return kinds[_kind(block)] >= 2 and len(norm(clean_line(block.text))) > 60

    out = []
    for position, block in enumerate(blocks):
        if id(block) in known:
            out.append(block)
        elif is_sibling(position, block):
            text = norm(clean_line(block.text))
            if text not in common and not is_related(block, text, sample):
                out.append(block)
    return out


def _kind(block: Block) -> tuple[int, str, str]:
    return block.holder, block.tag, block.node.attributes.get("class") or ""


def _root(labelled: list[Block], part: float) -> LexborNode | None:
    """The deepest node that holds ``part`` of the labelled text."""
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
    fitting = [nodes[i] for i, w in weight.items() if w >= part * total]
    return max(fitting, key=lambda f: f[0])[1] if fitting else None


def _mean_f1(bodies: list[_Body], root: str, exclude: tuple[str, ...]) -> float:
    return sum(body.f1(root, exclude) for body in bodies) / len(bodies)


def _widen(bodies: list[_Body], root: str) -> str:
    """The root together with what is labelled outside of it, such as a lead above the body."""
    outside: Counter[str] = Counter()
    for body in bodies:
        outside.update(_names_outside(body, root))
    base = _mean_f1(bodies, root, ())
    best = (base, root)
    for selector, pages in outside.most_common(12):
        both = f"{selector}, {root}"
        if pages >= len(bodies) / 2 and len(both) <= 200 and valid(both):
            # A lead is short beside a long text: where nearly every page has it, it
            # need not weigh much.
            least = 0.002 if pages >= 0.75 * len(bodies) else 0.01
            gained = _mean_f1(bodies, both, ()) + 0.002 * css.rank(selector)
            if gained > max(best[0], base + least):
                best = (gained, both)
    return best[1]


def _names_outside(body: _Body, root: str) -> set[str]:
    """Selectors of the labelled blocks that do not stand below the root; short ones and the
    headline apart."""
    inside = {n.mem_id for n in css.hits(body.sample.doc.tree, root)}
    found: set[str] = set()
    for block in body.labelled:
        if len(block.text) <= 30 or block.node.tag == "h1":
            continue
        if inside.isdisjoint(_lineage(block.node, 30)):
            found.update(filter(valid, css.selectors_for(block.node, 12)))
    return found


def _strange_children(bodies: list[_Body], root: str, exclude: tuple[str, ...]) -> list[str]:
    """``body > div`` where the text stands in other children of the root on every page:
    boxes that come by too rarely to be among the samples are left out by their kind, as
    their names are not known yet."""
    found = []
    for part in root.split(","):
        for kind in ("div", "aside"):
            selector = f"{part.strip()} > {kind}"
            if valid(selector) and _is_strange(bodies, part, selector, exclude):
                found.append(selector)
    return found[:4]


def _is_strange(bodies: list[_Body], root: str, children: str, exclude: tuple[str, ...]) -> bool:
    """Whether hardly any labelled text below the root stands in those children of it."""
    inside = strays = blocks = pages = 0
    for body in bodies:
        before = strays
        tree = body.sample.doc.tree
        tops = {n.mem_id for n in css.hits(tree, root)}
        boxes = {n.mem_id for n in css.hits(tree, children)}
        gone = {n.mem_id for one in exclude for n in css.hits(tree, one)}
        for block in body.labelled:
            chain = _lineage(block.node, 400)
            if tops.isdisjoint(chain) or not gone.isdisjoint(chain):
                continue
            blocks += 1
            inside += len(block.text)
            if not boxes.isdisjoint(chain):
                strays += len(block.text)
        pages += strays > before
    # Some text there is labelled: the generic chain takes a box of running text for the
    # article's. A little on every page is a lead in a box of its own.
    return blocks >= _MANY_BLOCKS and strays <= _STRAY * inside and pages < len(bodies) / 2


@dataclass
class _Left:
    """What one page would keep: its blocks below the root that no exclude took yet, and their
    overlap with the label."""

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
        return share(2 * shared, total, 1.0)

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
    #: Named like an aside, or all its texts stand on most pages: needs no proof by numbers. A
    #: caption is a few words.
    sure: bool


def _excludes(bodies: list[_Body], root: str, common: set[str]) -> tuple[str, ...]:
    """Greedy: each class group that is never labelled, taken out while the mean
    over all pages gains."""
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


def _exclude_candidates(
    bodies: list[_Body], root: str, left: list[_Left], common: set[str]
) -> list[_Exclude]:
    """Those that hit nothing labelled, heaviest first; of several that take the same
    blocks, the outermost one."""
    covered: dict[str, dict[int, set[int]]] = {}  # selector -> page -> blocks
    order: dict[str, int] = {}
    keeps = []
    for number, body in enumerate(bodies):
        keep = {ident for block in body.labelled for ident in _lineage(block.node, 40)}
        keeps.append(keep)
        for index, selector in _names_of_unlabelled(body, root, left[number].live, keep):
            covered.setdefault(selector, {}).setdefault(number, set()).add(index)
            order[selector] = len(order)  # the last to be seen is the outermost
    by_blocks: dict[frozenset[tuple[int, int]], str] = {}
    for selector, pages in covered.items():
        blocks = frozenset((n, i) for n, found in pages.items() for i in found)
        known = by_blocks.get(blocks)
        if known is None or _better_name(selector, known, order):
            by_blocks[blocks] = selector
    found = [_exclude(s, covered[s], bodies, common) for s in by_blocks.values()]
    found.sort(key=lambda e: (-e.chars, e.css))
    tops = [css.hits(body.sample.doc.tree, root) for body in bodies]
    fitting = (e for e in found if valid(e.css) and not _hits_labelled(e.css, tops, keeps))
    return list(islice(fitting, _TRIED_EXCLUDES))


def _names_of_unlabelled(
    body: _Body, root: str, live: set[int], keep: set[int]
) -> Iterator[tuple[int, str]]:
    """``(block, selector)`` for the elements of blocks that are not labelled and hold nothing that
    is, from the inside outwards."""
    inside = {n.mem_id for n in css.hits(body.sample.doc.tree, root)}
    labelled = {id(block) for block in body.labelled}
    for index in sorted(live):
        block = body.blocks[index]
        if id(block) in labelled:
            continue
        for node in (block.node, *css.ancestors(block.node, 40)):
            if node.mem_id in keep or node.mem_id in inside:
                break
            if node.tag in related_blocks.TAGS:
                yield index, node.tag
            for selector in (*related_blocks.of_other_stories(node), *css.own_selectors(node)):
                yield index, selector


def _exclude(
    selector: str, pages: dict[int, set[int]], bodies: list[_Body], common: set[str]
) -> _Exclude:
    taken = {number: frozenset(indexes) for number, indexes in pages.items()}
    blocks = [bodies[number].blocks[i] for number, indexes in taken.items() for i in indexes]
    is_named = _names_a_box(selector) or related_blocks.STORY.match(selector) is not None
    sure = is_named or all(norm(clean_line(block.text)) in common for block in blocks)
    return _Exclude(selector, taken, sum(len(block.text) for block in blocks), sure)


def _names_a_box(selector: str) -> bool:
    return selector in related_blocks.TAGS or bool(related_blocks.NAMED.search(selector))


def _better_name(selector: str, known: str, order: dict[str, int]) -> bool:
    return (_names_a_box(selector), order[selector]) > (_names_a_box(known), order[known])


def _hits_labelled(selector: str, tops: list[list[LexborNode]], keeps: list[set[int]]) -> bool:
    return any(
        hit.mem_id in keep
        for nodes, keep in zip(tops, keeps, strict=True)
        for top in nodes
        for hit in css.hits(top, selector)
    )
