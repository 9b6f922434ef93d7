"""Selectors from stored pages without a model: label nodes, compare pages, name them lastingly. Pure.

1. The page's witnesses label nodes: the heading that reads as JSON-LD's headline, the element that holds
   the author's name, the blocks that the content label has.
2. Blocks whose text stands on half of the pages are boilerplate and lose their label.
3. The root is the deepest node around the labelled blocks; parts of it that no page labels are excluded,
   one class at a time, as long as all pages together gain.
4. Of the ways to name a node, those that agree on 90 % of the pages and hit once are kept (css.py).

Labels are noisy (a fifth to a half may be wrong: Furche et al. 2016): agreement over pages is maximised,
never demanded whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from selectolax.lexbor import LexborNode

from newscrawler.extraction.blocks import Block, walk
from newscrawler.extraction.selectors import Candidate, SelectorError, check_css
from newscrawler.extraction.text import clean_line
from newscrawler.selectorstore import css
from newscrawler.selectorstore.reading import read_field
from newscrawler.selectorstore.samples import Sample, authors_agree, dates_agree, f1, norm, title_agrees, words

AGREE = 0.9
#: Named selectors per field and nodes per page that are tried: bounds of the work, not of quality.
_TRIED = 40
_KEPT = 3
_ROOTS = 24
_MOST_EXCLUDES = 12
#: An exclude must raise the mean F1 over all pages by this: gains on one page are overfit.
_LEAST_GAIN = 0.004

_DATE_METAS = ("article:published_time", "datepublished", "pubdate", "publishdate", "date", "dc.date.issued")
_AUTHOR_METAS = ("author", "article:author", "dc.creator")
_DATE_NODES = "time, [itemprop=datePublished], [datetime], [class*=date], [class*=time], [class*=publish]"
_AUTHOR_NODES = "[itemprop*=author], [rel~=author], a, span, p, strong, b, em, i, cite, address, li, div, h3, h4, h5"
_TITLE_NODES = "h1, [itemprop=headline], h2, [class*=title]"


@dataclass
class Induced:
    """``fields`` in the form of a set's variant; ``failed``: field -> why rules found nothing for it."""

    fields: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def induce(samples: list[Sample], only: Iterable[str] = ("title", "published", "authors", "content")) -> Induced:
    """Candidates of each field over ``samples`` (8 is a good number, 4 the least that tells anything)."""
    out = Induced()
    finders: dict[str, Callable[[list[Sample]], Any]] = {
        "title": _title,
        "published": _published,
        "authors": _authors,
        "content": _content,
    }
    for name in only:
        found = finders[name](samples)
        if found:
            out.fields[name] = found
        else:
            out.failed[name] = "no node agreed with the witnesses on enough pages"
    return out


# ---------------------------------------------------------------- fields of one node
def _title(samples: list[Sample]) -> list[dict[str, Any]]:
    labelled = [s for s in samples if s.labels.title]

    def nodes(sample: Sample) -> list[LexborNode]:
        found = []
        for node in css.hits(sample.doc.tree, _TITLE_NODES)[:200]:
            text = node.text(deep=True, separator=" ").strip()
            if len(text) < 300 and title_agrees(text, sample.labels.title or ""):
                found.append(node)
        return sorted(found, key=lambda n: n.tag != "h1")[:1]

    def agrees(sample: Sample, value: Any) -> bool:
        return title_agrees(value, sample.labels.title or "")

    return _choose("title", labelled, nodes, [], agrees)


def _published(samples: list[Sample]) -> list[dict[str, Any]]:
    labelled = [s for s in samples if s.labels.published]

    def nodes(sample: Sample) -> list[LexborNode]:
        found = []
        for node in css.hits(sample.doc.tree, _DATE_NODES)[:150]:
            if len(node.text(deep=True)) < 120 and any(
                agrees(sample, read_field(sample, "published", c))
                for c in _as_candidates("published", node, "x", by_node=True)
            ):
                found.append(node)
        return found[:3]

    def agrees(sample: Sample, value: Any) -> bool:
        return sample.labels.published is not None and dates_agree(value, sample.labels.published)

    machine = [Candidate("", None, "ld"), *(Candidate(m, None, "meta") for m in _DATE_METAS)]
    return _choose("published", labelled, nodes, machine, agrees)


def _authors(samples: list[Sample]) -> list[dict[str, Any]]:
    labelled = [s for s in samples if s.labels.authors]

    def nodes(sample: Sample) -> list[LexborNode]:
        names = [norm(n) for n in sample.labels.authors]
        most = sum(len(n) for n in names) + 60
        found: list[tuple[int, int, LexborNode]] = []
        for index, node in enumerate(css.hits(sample.doc.tree, _AUTHOR_NODES)[:6000]):
            text = norm(node.text(deep=True, separator=" "))
            if len(text) <= most and all(n in text for n in names):
                byline = any(
                    "author" in (a or "") or "byline" in (a or "") or "tac" in (a or "")
                    for a in (node.attributes.get("class"), node.attributes.get("itemprop"))
                )
                found.append((len(text) - 30 * byline, index, node))
        return [node for _, _, node in sorted(found, key=lambda f: f[:2])[:4]]

    def agrees(sample: Sample, value: Any) -> bool:
        return authors_agree(value, sample.labels.authors)

    machine = [Candidate("", None, "ld"), *(Candidate(m, None, "meta") for m in _AUTHOR_METAS)]
    return _choose("authors", labelled, nodes, machine, agrees)


def _as_candidates(name: str, node: LexborNode, selector: str, by_node: bool = False) -> list[Candidate]:
    """A node's text, and for dates the attributes that machines read, those first."""
    attributes = node.attributes
    machine = ("datetime", "content", "data-time", "title") if name == "published" else ()
    attrs = [a for a in machine if attributes.get(a)]
    if by_node:  # tried on the node itself: any selector of it will do
        own = [s for s in css.selectors_for(node)[:1] if _valid(s)]
        return [Candidate(s, a) for s in own for a in [*attrs, None]]
    return [Candidate(selector, a) for a in [*attrs, None]]


def _choose(
    name: str,
    samples: list[Sample],
    nodes: Callable[[Sample], list[LexborNode]],
    machine: list[Candidate],
    agrees: Callable[[Sample, Any], bool],
) -> list[dict[str, Any]]:
    """The candidates that agree on AGREE of the labelled pages, best first, with different anchors."""
    if len(samples) < 3:
        return []
    proposed: Counter[Candidate] = Counter()
    for sample in samples:
        mine: set[Candidate] = set()
        for node in nodes(sample):
            for selector in css.selectors_for(node):
                if _valid(selector):
                    mine.update(_as_candidates(name, node, selector))
        proposed.update(mine)
    by_page = sorted(proposed, key=lambda c: (-proposed[c], -css.rank(c.css), c.css))[:_TRIED]
    scored: list[tuple[float, Candidate]] = []
    for candidate in [*machine, *by_page]:
        right = sum(agrees(s, read_field(s, name, candidate)) for s in samples)
        if right / len(samples) < AGREE:
            continue
        once = _uniqueness(samples, candidate) if candidate.kind == "css" else 1.0
        if name == "authors" or once >= AGREE:  # several authors are several hits of one selector
            scored.append((right / len(samples) + 0.1 * _standing(name, candidate) + 0.05 * once, candidate))
    scored.sort(key=lambda s: -s[0])
    kept: list[Candidate] = []
    for _, candidate in scored:
        anchor = candidate.css.split(" ")[-1]
        if candidate.kind != "css" or all(anchor != k.css.split(" ")[-1] for k in kept if k.kind == "css"):
            kept.append(candidate)
        if len(kept) == _KEPT:
            break
    return [_as_dict(c) for c in kept]


def _standing(name: str, candidate: Candidate) -> float:
    """A headline is what readers see; dates and authors are best where machines read them."""
    if candidate.kind == "css":
        return css.rank(candidate.css)
    return 0.5 if name == "title" else 1.5 if candidate.kind == "ld" else 1.2


def _uniqueness(samples: list[Sample], candidate: Candidate) -> float:
    """Share of pages with one hit, or hits of one text (a headline repeated for phones)."""
    single = 0
    for sample in samples:
        texts = {norm(n.text(deep=True)) for n in css.hits(sample.doc.tree, candidate.css)[:12]}
        single += len(texts) == 1
    return single / len(samples)


def _as_dict(candidate: Candidate) -> dict[str, Any]:
    out: dict[str, Any] = {"css": candidate.css}
    if candidate.attr:
        out["attr"] = candidate.attr
    if candidate.kind != "css":
        out["kind"] = candidate.kind
    return out


def _valid(selector: str) -> bool:
    try:
        check_css(selector, "rule")
    except SelectorError:
        return False
    return True


# ---------------------------------------------------------------- content
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
    """Normalised texts of blocks that stand on half of the pages and on three at least."""
    seen: Counter[str] = Counter()
    for sample in samples:
        body = sample.doc.tree.body
        if body is not None:
            seen.update({norm(clean_line(b.text)) for b in walk(body)})
    return {text for text, pages in seen.items() if pages >= max(3, len(samples) / 2)}


def _content(samples: list[Sample]) -> dict[str, Any] | None:
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
                proposed.update({s for node in near for s in css.selectors_for(node, 20) if _valid(s)})
    roots = sorted(proposed, key=lambda s: (-proposed[s], -css.rank(s), s))[:_ROOTS]
    scored = sorted(((_mean_f1(bodies, r, ()) + 0.01 * css.rank(r), r) for r in roots), reverse=True)
    best: tuple[float, str, tuple[str, ...]] | None = None
    for _, root_css in scored[:4]:  # a wide root with excludes may end above a narrow one without
        widened = _widen(bodies, root_css)
        exclude = _excludes(bodies, widened)
        score = _mean_f1(bodies, widened, exclude)
        if best is None or score > best[0] + 0.002:
            best = (score, widened, exclude)
    if best is None or best[0] < 0.6:
        return None
    others = [r for _, r in scored if r != best[1] and r not in best[1]][:1]
    return {"root": [best[1], *others], "exclude": list(best[2])}


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
    labelled = []
    for block in blocks:
        text = norm(clean_line(block.text))
        # The lead often stands in the description; on the page a desk's sign may come before it ("TPO - ").
        is_lead = len(lead) > 40 and lead in text and len(text) <= len(lead) + 25
        known = text in paragraphs or (len(text) > 40 and text in whole) or is_lead
        if known and text not in common and not _is_aside(block, text, sample):
            labelled.append(block)
    if not labelled:
        return None
    labelled = _with_siblings(blocks, labelled, common, sample)
    counts = [Counter(words(b.text)) for b in blocks]
    chains = [frozenset(n.mem_id for n in (b.node, *css.ancestors(b.node, 400))) for b in blocks]
    return _Body(sample, blocks, labelled, Counter(w for b in labelled for w in words(b.text)), chains, counts)


def _with_siblings(blocks: list[Block], labelled: list[Block], common: set[str], sample: Sample) -> list[Block]:
    """Paragraphs beside two labelled ones, of the same parent, tag and class, are the article's too: labels are often
    cut short or miss one."""

    def kind(block: Block) -> tuple[int, str, str]:
        parent = block.node.parent
        return (parent.mem_id if parent else 0, block.tag, block.node.attributes.get("class") or "")

    kinds = Counter(kind(b) for b in labelled if b.tag == "p")
    known = {id(b) for b in labelled}
    out = []
    for block in blocks:
        text = norm(clean_line(block.text))
        alike = kinds[kind(block)] >= 2 and len(text) > 60 and block.link_chars < 0.3 * len(block.text)
        if id(block) in known or (alike and text not in common and not _is_aside(block, text, sample)):
            out.append(block)
    return out


_ASIDE = re.compile(
    r"caption|related|relate|lien-?quan|tin-?khac|tinlienquan|baiviet|share|social|tags?\b|-ads?\b|advert|banner|author|byline|"
    r"tac-?gia|source|nguon|comment|vote|rating|avatar|photo|image|figure|newsletter|subscribe|readmore|xem-?_?them",
    re.I,
)
_ASIDE_TAGS = frozenset({"figure", "figcaption", "aside", "nav", "footer"})
#: How far up a name such as "related" is looked for: above, it may name the page's part that holds everything.
_ASIDE_ABOVE = 4


def _is_aside(block: Block, text: str, sample: Sample) -> bool:
    """What labels often hold though it is not the article's text: link lists, captions, bylines.

    The generic chain that labels come from is about 0.95 right; what it wrongly keeps would keep the very
    boxes in that excludes are for.
    """
    if block.link_chars >= 0.8 * len(block.text):
        return True
    if len(text) < 80 and any(norm(name) in text for name in sample.labels.authors):
        return True
    if len(text) > 600:
        return False
    for node in (block.node, *css.ancestors(block.node, _ASIDE_ABOVE)):
        if node.tag in _ASIDE_TAGS:
            return True
        named = (v or "" for k, v in node.attributes.items() if k in ("class", "id", "type") or k.startswith("data-"))
        names = " ".join(named)
        if _ASIDE.search(names) and len(node.text(deep=True)) < 1500:
            return True
    return False


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
                mine.update(s for s in css.selectors_for(block.node, 12) if _valid(s))
        outside.update(mine)
    base = _mean_f1(bodies, root, ())
    for selector, pages in outside.most_common(12):
        both = f"{selector}, {root}"
        if pages >= len(bodies) / 2 and len(both) <= 200 and _valid(both) and _mean_f1(bodies, both, ()) > base + 0.01:
            return both
    return root


def _excludes(bodies: list[_Body], root: str) -> tuple[str, ...]:
    """Greedy: each class group that is never labelled, taken out while the mean over all pages gains."""
    weight: Counter[str] = Counter()
    harmful: set[str] = set()
    for body in bodies:
        keep = {n.mem_id for b in body.labelled for n in (b.node, *css.ancestors(b.node, 40))}
        tops = css.hits(body.sample.doc.tree, root)
        inside = {n.mem_id for n in tops}
        labelled = {id(b) for b in body.labelled}
        mine: dict[str, int] = {}
        for block in body.blocks:
            above = [block.node, *css.ancestors(block.node, 40)]
            if id(block) in labelled or not any(n.mem_id in inside for n in above):
                continue
            for node in above:
                if node.mem_id in keep or node.mem_id in inside:
                    break
                bare = [node.tag] if node.tag in _ASIDE_TAGS else []
                for selector in (*css.own_selectors(node), *bare):
                    mine[selector] = mine.get(selector, 0) + len(block.text)
        for selector, chars in mine.items():
            weight[selector] += chars
            if any(h.mem_id in keep for t in tops for h in css.hits(t, selector)):
                harmful.add(selector)
    candidates = [s for s, _ in weight.most_common(60) if s not in harmful and _valid(s)]
    chosen: tuple[str, ...] = ()
    score = _mean_f1(bodies, root, ())
    for selector in candidates[:30]:
        if len(chosen) == _MOST_EXCLUDES:
            break
        gained = _mean_f1(bodies, root, (*chosen, selector))
        # What is named like an aside and never labelled needs no proof by numbers: a caption is a few words a page.
        least = 0.0 if _ASIDE.search(selector) or selector in _ASIDE_TAGS else _LEAST_GAIN
        if gained > score + least:
            chosen, score = (*chosen, selector), gained
    return chosen
