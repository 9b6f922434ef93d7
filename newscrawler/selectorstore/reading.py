"""Runs single candidates as the executor would, so that what is judged is what will run. Pure."""

from __future__ import annotations

from typing import Any

from newscrawler.extraction.selectors import Candidate, SelectorSet, Variant, apply, content_text
from newscrawler.items import FieldValue
from newscrawler.selectorstore.samples import Sample


def read_field(sample: Sample, name: str, candidate: Candidate) -> Any:
    """The value of one field by one candidate, None (authors: []) without one."""
    variant = Variant("article", None, {name: (candidate,)}, (), ())
    found = apply(sample.doc, SelectorSet("candidate", 1, "candidate", (variant,)), sample.context)
    empty: Any = [] if name == "authors" else None
    return found[name].value if name in found else empty


def read_content(sample: Sample, root: str, exclude: tuple[str, ...]) -> str:
    return content_text(sample.doc, root, exclude, sample.labels.title, sample.context.site_name) or ""


def read_all(sample: Sample, selectors: SelectorSet) -> dict[str, FieldValue]:
    return apply(sample.doc, selectors, sample.context)
