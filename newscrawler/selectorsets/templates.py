"""Which stored pages of a site share a template, and by what a page of each is known. Pure."""

from __future__ import annotations

from itertools import combinations, product, starmap

from selectolax.lexbor import LexborNode

from newscrawler.extraction import lexicon
from newscrawler.selectorsets import css
from newscrawler.selectorsets.samples import Sample
from newscrawler.utils.numbers import share

#: Pages of one template share this part of their paths (Jaccard).
ALIKE = 0.6
_DEPTH = 7
_MOST_NODES = 4000
_SKIPPED = frozenset({"script", "style", "noscript", "iframe", "link", "meta", "svg", "template"})
_TELLING = lexicon.Pattern(r"<class.telling>")


def shape(sample: Sample) -> frozenset[str]:
    """The paths of tags and lasting classes from the body down; text and generated
    names play no part."""
    body = sample.doc.tree.body
    if body is None:
        return frozenset()
    paths: set[str] = set()
    stack: list[tuple[LexborNode, str, int]] = [(body, "body" + _names(body), 0)]
    nodes = 0
    while stack and nodes < _MOST_NODES:
        node, path, depth = stack.pop()
        paths.add(path)
        nodes += 1
        if depth == _DEPTH:
            continue
        for child in node.iter(include_text=False):
            if child.tag and child.tag not in _SKIPPED:
                stack.append((child, f"{path}>{child.tag}{_names(child)}", depth + 1))
    return frozenset(paths)


def _names(node: LexborNode) -> str:
    return "".join("." + name for name in css.classes(node)[:3])


def groups(samples: list[Sample]) -> list[list[Sample]]:
    """Pages by template, the largest group first: average linkage of the Jaccard
    index of their shapes."""
    shapes = [shape(s) for s in samples]
    found: list[list[int]] = [[i] for i in range(len(samples))]

    def alike(left: int, right: int) -> tuple[float, int, int]:
        pairs = product(found[left], found[right])
        total = sum(_jaccard(shapes[i], shapes[j]) for i, j in pairs)
        return total / (len(found[left]) * len(found[right])), left, right

    while len(found) > 1:
        best, i, j = max(starmap(alike, combinations(range(len(found)), 2)))
        if best < ALIKE:
            break
        found[i] += found.pop(j)
    found.sort(key=lambda g: (-len(g), g[0]))
    return [[samples[i] for i in sorted(group)] for group in found]


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    return share(len(left & right), len(left | right), 1.0)


def mark_of(group: list[Sample], others: list[Sample], own: list[str]) -> str | None:
    """CSS that every page of the group has and no other page: what the group's
    variant is chosen by.

    ``own``: selectors that the variant needs in any case; a page without them is lost to it anyhow.
    Any other mark may be absent from pages that are not among these.
    """
    if not group or not others:
        return None
    for needed in own:
        if all(_has(s, needed) for s in group) and not any(_has(s, needed) for s in others):
            return needed
    shared = set.intersection(*map(_marks, group)).difference(*map(_marks, others))
    found = sorted(shared, key=lambda m: (not _TELLING.search(m), -css.rank(m), m))
    return next((mark for mark in found if not any(_has(s, mark) for s in others)), None)


def _has(sample: Sample, selector: str) -> bool:
    return bool(css.hits(sample.doc.tree, selector))


def _marks(sample: Sample) -> set[str]:
    body = sample.doc.tree.body
    if body is None:
        return set()
    found: set[str] = set()
    for node in css.hits(body, "[class], [id], body")[:_MOST_NODES]:
        identity = node.attributes.get("id") or ""
        if identity and css.stable(identity):
            found.add(f"#{identity}")
        found.update(f"{node.tag}.{name}" for name in css.classes(node))
    return found
