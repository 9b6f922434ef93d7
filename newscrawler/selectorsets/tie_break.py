"""A set on probation that reads pages otherwise than they were stored: is it the set that is wrong,
or the generic chain? Pure.

One page cannot tell. All shadow pages together can: their labels lose what stands on most of them,
gain what stands beside labelled text, and a name that files everything is no author (content.py,
bylines.py). Validation judges by these.

Pages in which the set finds no text are of another template than it knows. They prove
nothing against it, as the generic chain serves them, unless it takes another field from
them that is not theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import FieldValue
from newscrawler.selectorsets import validation
from newscrawler.selectorsets.bylines import label_bylines
from newscrawler.selectorsets.candidate_runs import read_all
from newscrawler.selectorsets.propose import split
from newscrawler.selectorsets.samples import AGREE, Sample

#: Distinct article pages, at least: a site's first set was made from fewer.
LEAST_JUDGED = 20
#: Of them such as the set reads, at least, where it does not read all.
LEAST_READ = 12


@dataclass(frozen=True)
class Opinion:
    """``fault``: why the set is not to be believed, '' when it is. ``unread``: pages
    of other templates."""

    fault: str
    read: int
    unread: int


def opinion(selectors: SelectorSet, samples: list[Sample]) -> Opinion:
    fault = fault_of(selectors, samples)
    if not fault or len(samples) < LEAST_JUDGED:
        return Opinion(fault, len(samples), 0)
    samples = label_bylines(samples)
    read, others = [], []
    for sample in samples:
        values = read_all(sample, selectors)
        if "content" in values:
            read.append(sample)
        else:
            others.append((sample, values))
    if len(read) < LEAST_READ or not others:
        return Opinion(fault, len(read), len(others))
    if _takes_what_is_not_theirs(others):
        fault = f"of {len(others)} pages of other templates it takes what is not theirs"
    else:
        fault = _fault(selectors, read)
    return Opinion(fault, len(read), len(others))


def _takes_what_is_not_theirs(pages: list[tuple[Sample, dict[str, FieldValue]]]) -> bool:
    """Whether values differ from the pages' labels, where there are labels."""
    taken = [
        validation.value_agrees(name, value.value, label)
        for sample, values in pages
        for name, value in values.items()
        if (label := getattr(sample.labels, name, None))
    ]
    return sum(taken) < AGREE * len(taken)


def fault_of(selectors: SelectorSet, samples: list[Sample]) -> str:
    """Why the set is not to be believed against what was stored; '' when every field that
    it gives passes validation."""
    if len(samples) < LEAST_JUDGED:
        return f"only {len(samples)} distinct stored pages to judge it by"
    return _fault(selectors, label_bylines(samples))


def _fault(selectors: SelectorSet, samples: list[Sample]) -> str:
    report = validation.judge(selectors, *split(samples))
    wrong = {
        name: why
        for name, why in report.failed.items()
        if name in validation.REQUIRED or why != validation.NOT_GIVEN
    }
    return "; ".join(f"{name}: {why}" for name, why in wrong.items())
