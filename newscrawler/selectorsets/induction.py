"""Selectors from stored pages without a model: label nodes, compare pages, name
them lastingly. Pure.

1. The page's metadata label nodes: the heading that reads as JSON-LD's headline, the element that
   holds the author's name, the blocks that the content label has.
2. Blocks whose text stands on half of the pages are boilerplate and lose their label.
3. The root is the deepest node around the labelled blocks; parts of it that no page labels are
   excluded, one class at a time, as long as all pages together gain.
4. Of the ways to name a node, those that agree on 90 % of the pages and hit once are kept (css.py).

Labels are noisy (a fifth to a half may be wrong: Furche et al. 2016): agreement over pages is
maximised, never demanded whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from selectolax.lexbor import LexborNode

from newscrawler.extraction.blocks import collapse
from newscrawler.extraction.selectors import Candidate
from newscrawler.selectorsets import css
from newscrawler.selectorsets.candidate_runs import read_field
from newscrawler.selectorsets.content import content_of, valid
from newscrawler.selectorsets.samples import (
    AGREE,
    WHOLE,
    Sample,
    authors_agree,
    date_read,
    is_clock,
    norm,
    title_agrees,
)

#: Named selectors per field and nodes per page that are tried: bounds of the work, not of quality.
_TRIED = 40
_KEPT = 3

_DATE_METAS = (
    "article:published_time",
    "datepublished",
    "pubdate",
    "publishdate",
    "date",
    "dc.date.issued",
)
_AUTHOR_METAS = ("author", "article:author", "dc.creator")
_DATE_NODES = (
    "time, [itemprop=datePublished], [datetime], [class*=date], [class*=time], [class*=publish]"
)
_AUTHOR_NODES = (
    "[itemprop*=author], [rel~=author], a, span, p, strong, b, em, i, cite, address, li, div, h3,"
    " h4, h5"
)
_DIGIT = re.compile(r"\d.*\d")
_TITLE_NODES = "h1, [itemprop=headline], h2, [class*=title]"


@dataclass
class Induced:
    """``fields`` in the form of a set's variant; ``failed``: field -> why rules
    found nothing for it."""

    fields: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def induce(
    samples: list[Sample], only: Iterable[str] = ("title", "published", "authors", "content")
) -> Induced:
    """Candidates of each field over ``samples`` (8 is a good number, 4 the
    least that tells anything)."""
    out = Induced()
    finders: dict[str, Callable[[list[Sample]], Any]] = {
        "title": _title,
        "published": _published,
        "authors": _authors,
        "content": content_of,
    }
    for name in only:
        found = finders[name](samples)
        if found:
            out.fields[name] = found
        else:
            out.failed[name] = "no node agreed with the page metadata on enough pages"
    return out


# ---------------------------------------------------------------- fields of one node
def _title(samples: list[Sample]) -> list[dict[str, Any]]:
    labelled = [s for s in samples if s.labels.title]
    chosen = _choose("title", labelled, _title_nodes, [], _title_agrees, _title_is)
    is_sure = sum(s.labels.title_sure for s in labelled) >= AGREE * len(labelled)
    if chosen and is_sure:
        candidates = tuple(Candidate(c["css"], c.get("attr"), c.get("kind", "css")) for c in chosen)
        whole = sum(_title_is(s, read_field(s, "title", *candidates)) for s in labelled)
        if whole < WHOLE * len(labelled):
            # Part of it, or more: as the page's headings and statements have it.
            return [{"css": "", "kind": "page"}]
    return chosen


def _title_agrees(sample: Sample, value: Any) -> bool:
    return title_agrees(value, sample.labels.title or "")


def _title_is(sample: Sample, value: Any) -> bool:
    return norm(str(value or "")) == norm(sample.labels.title or "")


def _title_nodes(sample: Sample) -> list[LexborNode]:
    """The two nodes that say the headline best."""
    title = sample.labels.title or ""
    label = norm(title)
    found: list[LexborNode] = []
    for node in css.hits(sample.doc.tree, _TITLE_NODES)[:200]:
        text = node.text(deep=True, separator=" ").strip()
        if len(text) < 300 and title_agrees(text, title):
            found.append(node)
            # A kicker beside it, in the same heading: the piece that is the headline alone.
            pieces = node.css("span, strong, b, em, div, p, a")[:12]
            found += [piece for piece in pieces if norm(piece.text(deep=True)) == label]

    def order(node: LexborNode) -> tuple[bool, bool]:
        return norm(node.text(deep=True, separator=" ")) != label, node.tag != "h1"

    return sorted(found, key=order)[:2]


def _published(samples: list[Sample]) -> list[dict[str, Any]]:
    labelled = [s for s in samples if s.labels.published]
    machine = [Candidate("", None, "ld"), *(Candidate(m, None, "meta") for m in _DATE_METAS)]
    return _choose("published", labelled, _date_nodes, machine, _date_agrees)


def _date_agrees(sample: Sample, value: Any) -> bool:
    return sample.labels.published is not None and date_read(value, sample.labels.published)


def _date_nodes(sample: Sample) -> list[LexborNode]:
    """The first three that are read as the label's date: named after dates, else whatever is short
    and has digits."""
    named = css.hits(sample.doc.tree, _DATE_NODES)[:400]
    short = (node for node in named if len(node.text(deep=True)) < 120)
    found = list(islice((node for node in short if _is_date(sample, node)), 3))
    if found:
        return found
    texts = css.hits(sample.doc.tree, "span, p, div, small, em, i, li, b, strong")[:400]
    short = (node for node in texts if _is_short_number(node.text(deep=True)))
    return list(islice((node for node in short if _is_date(sample, node)), 3))


def _is_short_number(text: str) -> bool:
    return len(text) < 60 and _DIGIT.search(text) is not None


def _is_date(sample: Sample, node: LexborNode) -> bool:
    candidates = _as_candidates("published", node, "x", by_node=True)
    return any(_date_agrees(sample, read_field(sample, "published", c)) for c in candidates)


def _authors(samples: list[Sample]) -> list[dict[str, Any]]:
    labelled = [s for s in samples if s.labels.authors]

    def agrees(sample: Sample, value: Any) -> bool:
        return authors_agree(value, sample.labels.authors)

    machine = [Candidate("", None, "ld"), *(Candidate(m, None, "meta") for m in _AUTHOR_METAS)]
    return _choose("authors", labelled, _author_nodes, machine, agrees)


def _author_nodes(sample: Sample) -> list[LexborNode]:
    """The four shortest that hold all names; being named after authors counts for 30 characters."""
    names = [norm(n) for n in sample.labels.authors]
    most = sum(len(n) for n in names) + 60
    found: list[tuple[int, int, LexborNode]] = []
    for index, node in enumerate(css.hits(sample.doc.tree, _AUTHOR_NODES)[:6000]):
        text = norm(node.text(deep=True, separator=" "))
        if len(text) <= most and all(n in text for n in names):
            found.append((len(text) - 30 * _is_named_byline(node), index, node))
    return [node for _, _, node in sorted(found, key=lambda f: f[:2])[:4]]


def _is_named_byline(node: LexborNode) -> bool:
    named = (node.attributes.get("class") or "", node.attributes.get("itemprop") or "")
    return any(word in name for name in named for word in ("author", "byline", "tac"))


def _as_candidates(
    name: str, node: LexborNode, selector: str, by_node: bool = False
) -> list[Candidate]:
    """A node's text, and for dates the attributes that machines read, those first."""
    attributes = node.attributes
    machine = ("datetime", "content", "data-time", "title") if name == "published" else ()
    attrs = [a for a in machine if attributes.get(a)]
    if by_node:  # tried on the node itself: any selector of it will do
        own = [s for s in css.selectors_for(node)[:1] if valid(s)]
        return [Candidate(s, a) for s in own for a in [*attrs, None]]
    return [Candidate(selector, a) for a in [*attrs, None]]


def _choose(
    name: str,
    samples: list[Sample],
    nodes: Callable[[Sample], list[LexborNode]],
    machine: list[Candidate],
    agrees: Callable[[Sample, Any], bool],
    exact: Callable[[Sample, Any], bool] | None = None,
) -> list[dict[str, Any]]:
    """The candidates that agree on AGREE of the labelled pages, best first, with different anchors.

    ``exact``: where agreement forgives something, such as a headline cut short for search
        engines, who is nearer."""
    if len(samples) < 3:
        return []
    found = [(s, nodes(s)) for s in samples]
    plain = _proposed(name, found, lambda node, _: _by_name(name, node))
    chosen = _best(name, samples, [*machine, *plain], agrees, exact)
    if chosen or exact is not None:
        return chosen
    placed = _proposed(name, found, lambda node, sample: _by_place(name, node, sample))
    return _best(name, samples, placed, agrees, None)


def _proposed(
    name: str,
    found: list[tuple[Sample, list[LexborNode]]],
    candidates: Callable[[LexborNode, Sample], Iterable[Candidate]],
) -> list[Candidate]:
    """What most pages propose, first; the executor's grammar allows all of it."""
    proposed: Counter[Candidate] = Counter()
    for sample, nodes in found:
        proposed.update({c for node in nodes for c in candidates(node, sample) if valid(c.css)})
    return sorted(proposed, key=lambda c: (-proposed[c], -css.rank(c.css), c.css, c.label))[:_TRIED]


def _by_name(name: str, node: LexborNode) -> Iterator[Candidate]:
    for selector in css.selectors_for(node):
        yield from _as_candidates(name, node, selector)


def _by_place(name: str, node: LexborNode, sample: Sample) -> Iterator[Candidate]:
    """Where no name of a node will do: what its line begins with, and for a byline the
    beginning of the text."""
    text = collapse(node.text(deep=True, separator=" "))
    if name == "published":
        digit = _DIGIT.search(text)
        label = css.label_before(text, text[digit.start() :]) if digit else ""
    else:
        label = css.label_before(text, sample.labels.authors[0])
        yield from (Candidate(s) for s in css.first_child(node))
    if label:
        yield from (Candidate(s, label=label) for s in css.selectors_for(node))


def _best(
    name: str,
    samples: list[Sample],
    candidates: list[Candidate],
    agrees: Callable[[Sample, Any], bool],
    exact: Callable[[Sample, Any], bool] | None,
) -> list[dict[str, Any]]:
    scored: list[tuple[float, Candidate]] = []
    for candidate in candidates:
        values = [read_field(s, name, candidate) for s in samples]
        read = list(zip(samples, values, strict=True))
        right = sum(agrees(s, v) for s, v in read)
        if right / len(samples) < AGREE or (name == "published" and is_clock(samples, values)):
            continue
        near = sum(exact(s, v) for s, v in read) if exact else 0
        once = _uniqueness(samples, candidate) if candidate.kind == "css" else 1.0
        if name == "authors" or once >= AGREE:  # several authors are several hits of one selector
            share = (right + 0.2 * near) / len(samples)
            scored.append((share + 0.1 * _standing(name, candidate) + 0.05 * once, candidate))
    scored.sort(key=lambda s: -s[0])
    return [_as_dict(candidate) for candidate in _unlike(c for _, c in scored)]


def _unlike(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """The first ones that end in different names: one change of a page must not break them all."""
    anchors: set[str] = set()
    kept = 0
    for candidate in candidates:
        anchor = candidate.css.split(" ")[-1]
        if candidate.kind == "css" and anchor in anchors:
            continue
        if candidate.kind == "css":
            anchors.add(anchor)
        yield candidate
        kept += 1
        if kept == _KEPT:
            return


def _standing(name: str, candidate: Candidate) -> float:
    """A headline is what readers see; dates and authors are best where machines read them."""
    if candidate.kind == "css":
        return css.rank(candidate.css)
    if name == "title":
        return 0.5
    return 1.5 if candidate.kind == "ld" else 1.2


def _uniqueness(samples: list[Sample], candidate: Candidate) -> float:
    """Share of pages with one hit, or hits of one text (a headline repeated for phones)."""
    single = 0
    for sample in samples:
        found = css.hits(sample.doc.tree, candidate.css)
        if candidate.label:
            found = [
                n
                for n in found
                if collapse(n.text(deep=True, separator=" ")).startswith(candidate.label)
            ]
        texts = {norm(n.text(deep=True)) for n in found[:12]}
        single += len(texts) == 1
    return single / len(samples)


def _as_dict(candidate: Candidate) -> dict[str, Any]:
    out: dict[str, Any] = {"css": candidate.css}
    if candidate.attr:
        out["attr"] = candidate.attr
    if candidate.label:
        out["label"] = candidate.label
    if candidate.kind != "css":
        out["kind"] = candidate.kind
    return out
