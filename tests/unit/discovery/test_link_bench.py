"""After its first 50 pages a crawl knows articles, lists and the rest of an unknown site apart
(`python -m benchmarks.bench_link_classes`, which measures the same over many more).

`NEWSCRAWLER_TEST_SEED` draws other sites.
"""

from __future__ import annotations

import argparse
import os

import pytest

from benchmarks.bench_link_classes import GOAL, measured

SEED = int(os.environ.get("NEWSCRAWLER_TEST_SEED", "20261123"))


@pytest.mark.parametrize(
    ("sites", "articles"), [(1, 24), pytest.param(3, 40, marks=pytest.mark.long)]
)
def test_links_of_unknown_sites_are_told_apart(sites: int, articles: int) -> None:
    args = argparse.Namespace(sites=sites, articles=articles, pages=50)
    scores, unseen, wrong = measured(SEED, args)
    assert len(scores) == sites and all(sum(x.pairs.values()) > articles for x in scores)
    assert sum(sum(x.pairs.values()) for x in unseen) > 0, "nothing was left to be judged"
    assert [x.site for x in scores if x.least() < GOAL] == [], wrong
