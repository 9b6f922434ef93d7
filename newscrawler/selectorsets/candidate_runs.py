"""Runs single candidates as the executor would, so that what is judged is what will run. Pure."""

from __future__ import annotations

from typing import Any

from selectolax.lexbor import LexborNode

from newscrawler.extraction.blocks import walk
from newscrawler.extraction.selectors import Candidate, SelectorSet, Variant, apply
from newscrawler.items import FieldValue
from newscrawler.selectorsets.samples import Sample


def read_field(sample: Sample, name: str, *candidates: Candidate) -> Any:
    """The value of one field by the first candidate that finds one, None (authors:
    []) without one."""
    variant = Variant("article", None, {name: candidates}, (), ())
    found = apply(sample.doc, SelectorSet("candidate", 1, "candidate", (variant,)), sample.context)
    empty: Any = [] if name == "authors" else None
    return found[name].value if name in found else empty


def read_all(sample: Sample, selectors: SelectorSet) -> dict[str, FieldValue]:
    return apply(sample.doc, selectors, sample.context)


def root_chars(sample: Sample, selectors: SelectorSet) -> int:
    """Characters of all text below the content root that a set's first fitting variant uses,
    excludes taken out.

    Cleaning takes most of a page's boilerplate away again, so that the text alone does not show
    a root that is too wide.
    """
    for variant in selectors.variants:
        for css in variant.content_root:
            tops = sample.doc.tree.css(css)
            if not tops:
                continue
            ids = {n.mem_id for n in tops}
            skip = {n.mem_id for e in variant.content_exclude for n in sample.doc.tree.css(e)} - ids
            return sum(
                len(b.text) for top in tops if not _inside(top, ids) for b in walk(top, skip)
            )
    return 0


def _inside(node: LexborNode, ids: set[int]) -> bool:
    above = node.parent
    while above is not None:
        if above.mem_id in ids:
            return True
        above = above.parent
    return False
