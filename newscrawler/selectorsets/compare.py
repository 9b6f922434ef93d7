"""A new set against the one in use and against the generic chain, on the same stored pages. Pure.

Compared is what would be stored: each page is read as the crawler reads it, with the new
set, the old one and none. The labels are the page's metadata, and for content the blocks
that all pages together say are the article's. ``cover`` is the share of pages whose title
and content the set finds by itself: a set that finds nothing is served by the generic chain
and must not look good for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from newscrawler.extraction.extract import extract
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets.bylines import label_bylines
from newscrawler.selectorsets.content import boilerplate, content_label
from newscrawler.selectorsets.samples import Sample, f1, words
from newscrawler.selectorsets.validation import JUDGED_FIELDS, value_agrees
from newscrawler.utils.numbers import share

#: How much worse than the generic chain a set may be in one field: labels are noisy.
TOLERANCE = 0.02
#: What a new set must gain over the old one, in cover or in the mean of the fields.
LEAST_GAIN = 0.02


@dataclass
class Standing:
    """Shares 0..1 over the pages that have a label; content: mean word F1."""

    cover: float
    fields: dict[str, float]

    @property
    def mean(self) -> float:
        return share(sum(self.fields.values()), len(self.fields))


@dataclass
class Comparison:
    better: bool
    reason: str
    new: Standing
    old: Standing
    generic: Standing
    pages: int

    def metrics(self) -> dict[str, Any]:
        """For provenance: rounded and plain."""
        rows = {name: asdict(getattr(self, name)) for name in ("new", "old", "generic")}
        for row in rows.values():
            row["cover"] = round(row["cover"], 3)
            row["fields"] = {k: round(v, 3) for k, v in row["fields"].items()}
        return {"pages": self.pages, "better": self.better, "reason": self.reason, **rows}


def compare(new: SelectorSet, old: SelectorSet | None, samples: list[Sample]) -> Comparison:
    """Better = gains on the old set, and in no field worse than the generic chain."""
    samples = label_bylines(samples)
    common = boilerplate(samples)
    pages = [
        replace(s, labels=replace(s.labels, content=content_label(s, common))) for s in samples
    ]
    fresh, worn, generic = (_standing(selectors, pages) for selectors in (new, old, None))
    fault = _fault(fresh, worn, generic)
    gain = (
        f"cover {worn.cover:.0%} -> {fresh.cover:.0%}, fields {worn.mean:.1%} -> {fresh.mean:.1%}"
    )
    return Comparison(not fault, fault or gain, fresh, worn, generic, len(pages))


def _fault(fresh: Standing, worn: Standing, generic: Standing) -> str:
    """Why the new set is no better than the one in use, '' when it is."""
    worse = [n for n in fresh.fields if fresh.fields[n] < generic.fields.get(n, 0.0) - TOLERANCE]
    if worse:
        return f"worse than the generic chain in {', '.join(worse)}"
    if fresh.cover < worn.cover - TOLERANCE or fresh.mean < worn.mean - TOLERANCE:
        return "worse than the set in use"
    if max(fresh.cover - worn.cover, fresh.mean - worn.mean) < LEAST_GAIN:
        return "no better than the set in use"
    return ""


def _standing(selectors: SelectorSet | None, pages: list[Sample]) -> Standing:
    covered = 0
    scores: dict[str, list[float]] = {name: [] for name in JUDGED_FIELDS}
    for page in pages:
        found = extract(page.doc, page.context, selectors)
        own = [getattr(found, name).origin.startswith("selector:") for name in ("title", "content")]
        covered += all(own) and "title" not in found.disagreements
        for name in JUDGED_FIELDS:
            label = getattr(page.labels, name)
            if label:
                scores[name].append(_score(name, getattr(found, name).value, label))
    fields = {name: sum(of) / len(of) for name, of in scores.items() if of}
    return Standing(share(covered, len(pages)), fields)


def _score(name: str, value: Any, label: Any) -> float:
    if name == "content":
        return f1(Counter(words(str(value or ""))), Counter(words(label)))
    return float(value_agrees(name, value, label))
