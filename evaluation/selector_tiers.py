"""`scrapy evaluate --tier rules|llm`: selector sets made of a folder's other pages, as a
crawl would have them.

A site's pages are dealt into folds; the pages of one fold are read with the set that rules (or a
model) made of the others, so that no page is read with a set it took part in. A site with too few
pages, or whose set does not pass the gate, is left to the generic chain, as in a crawl.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation import score_tables
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets.propose import LEAST_PAGES, Proposer
from newscrawler.selectorsets.samples import distinct, make_sample

FOLDS = 3
ReadPage = Callable[[Mapping[str, Any]], bytes]


@dataclass
class Sets:
    """``of_page``: page id -> the set to read it with. ``notes``: one line per site
    that had pages enough."""

    of_page: dict[str, SelectorSet] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


async def make_sets(
    gold: Sequence[Mapping[str, Any]], read_page: ReadPage, proposer: Proposer
) -> Sets:
    """Sets for the pages of every site that has more than LEAST_PAGES of them."""
    of_site: dict[str, list[Mapping[str, Any]]] = {}
    for record in gold:
        of_site.setdefault(str(record.get("site") or "?"), []).append(record)
    out = Sets()
    for site, records in sorted(of_site.items()):
        if len(records) <= LEAST_PAGES:
            continue
        passed = 0
        reason = ""
        for fold in range(FOLDS):
            others = [record for i, record in enumerate(records) if i % FOLDS != fold]
            selectors, why_not = await _made_from(others, site, read_page, proposer)
            if selectors is None:
                reason = why_not
                continue
            passed += 1
            out.of_page.update((str(record["id"]), selectors) for record in records[fold::FOLDS])
        note = f"{site}: {len(records)} pages, a set for {passed} of {FOLDS} folds"
        out.notes.append(note + (f" ({reason})" if reason else ""))
    return out


async def _made_from(
    records: list[Mapping[str, Any]], site: str, read_page: ReadPage, proposer: Proposer
) -> tuple[SelectorSet | None, str]:
    """A set that was made from these pages, or why there is none."""
    made = [make_sample(str(r["url"]), read_page(r), PageContext()) for r in records]
    samples = distinct([s for s in made if s is not None])
    if len(samples) < LEAST_PAGES:
        return None, f"only {len(samples)} of {len(records)} other pages are articles that differ"
    result = await proposer.propose(site, samples)
    if result.doc is None:
        return None, result.reason
    return SelectorSet.from_dict(result.doc), ""


def predict(record: Mapping[str, Any], body: bytes, sets: Sets) -> dict[str, Any]:
    """A prediction line; the generic chain where the page has no set."""
    return score_tables.predict(
        str(record["id"]), body, str(record["url"]), sets.of_page.get(str(record["id"]))
    )
