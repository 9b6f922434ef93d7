"""A new set against the one in use and against the generic chain, on the same stored pages. Pure.

Compared is what would be stored: each page is read as the crawler reads it, with the new set, the old one
and none. The labels are the page's witnesses, and for content the blocks that all pages together say are
the article's. ``cover`` is the share of pages whose title and content the set finds by itself: a set that
finds nothing is served by the generic chain and must not look good for it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from newscrawler.extraction.extract import extract
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorstore.bylines import label_bylines
from newscrawler.selectorstore.content import boilerplate, content_label
from newscrawler.selectorstore.gate import FIELDS, value_agrees
from newscrawler.selectorstore.samples import Sample, f1, words

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
        return sum(self.fields.values()) / len(self.fields) if self.fields else 0.0


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
    pages = [replace(s, labels=replace(s.labels, content=content_label(s, common))) for s in samples]
    stood = [_standing(selectors, pages) for selectors in (new, old, None)]
    fresh, worn, generic = stood
    worse = [n for n in fresh.fields if fresh.fields[n] < generic.fields.get(n, 0.0) - TOLERANCE]
    gain = max(fresh.cover - worn.cover, fresh.mean - worn.mean)
    if worse:
        reason = f"worse than the generic chain in {', '.join(worse)}"
    elif fresh.cover < worn.cover - TOLERANCE or fresh.mean < worn.mean - TOLERANCE:
        reason = "worse than the set in use"
    elif gain < LEAST_GAIN:
        reason = "no better than the set in use"
    else:
        reason = f"cover {worn.cover:.0%} -> {fresh.cover:.0%}, fields {worn.mean:.1%} -> {fresh.mean:.1%}"
    better = not worse and gain >= LEAST_GAIN and not reason.startswith("worse")
    return Comparison(better, reason, fresh, worn, generic, len(pages))


def _standing(selectors: SelectorSet | None, pages: list[Sample]) -> Standing:
    covered = 0
    sums: dict[str, list[float]] = {name: [] for name in FIELDS}
    for page in pages:
        found = extract(page.doc, page.context, selectors)
        own = [getattr(found, name).origin.startswith("selector:") for name in ("title", "content")]
        covered += all(own) and "title" not in found.disagreements
        for name in FIELDS:
            label = getattr(page.labels, name)
            if not label:
                continue
            value = getattr(found, name).value
            if name == "content":
                sums[name].append(f1(Counter(words(str(value or ""))), Counter(words(label))))
            else:
                sums[name].append(float(value_agrees(name, value, label)))
    fields = {name: sum(v) / len(v) for name, v in sums.items() if v}
    return Standing(covered / len(pages) if pages else 0.0, fields)
