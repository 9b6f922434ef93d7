"""A set on probation that reads pages otherwise than they were stored: is it the set that is wrong, or the generic chain? Pure.

One page cannot tell. All shadow pages together can: their labels lose what stands on most of them, gain what stands
beside labelled text, and a name that files everything is no author (content.py, bylines.py). The gate judges by these.
"""

from __future__ import annotations

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorstore import gate
from newscrawler.selectorstore.bylines import label_bylines
from newscrawler.selectorstore.propose import split
from newscrawler.selectorstore.samples import Sample

#: Distinct article pages, at least: a site's first set was made from fewer.
LEAST_JUDGED = 20


def fault_of(selectors: SelectorSet, samples: list[Sample]) -> str:
    """Why the set is not to be believed against what was stored; '' when every field that it gives passes the gate."""
    if len(samples) < LEAST_JUDGED:
        return f"only {len(samples)} distinct stored pages to judge it by"
    report = gate.judge(selectors, *split(label_bylines(samples)))
    wrong = {name: why for name, why in report.failed.items() if name in gate.REQUIRED or why != gate.NOT_GIVEN}
    return "; ".join(f"{name}: {why}" for name, why in wrong.items())
