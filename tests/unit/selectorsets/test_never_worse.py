"""A set that passed the gate and went live reads no field worse than no set at all: sites drawn by
seed (`python -m tests.semisynthetic.against`, which measures the same over many more).

`NEWSCRAWLER_TEST_SEED` draws others.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.semisynthetic.against import Row, judge, sites
from tests.semisynthetic.life import FIELDS

SEED = int(os.environ.get("NEWSCRAWLER_TEST_SEED", "20261123"))


@pytest.mark.parametrize(
    ("web", "fresh"), [(1, 6), pytest.param(4, 12, marks=pytest.mark.long)], ids=["one", "four"]
)
def test_a_set_of_an_unknown_template_is_no_worse_than_none(web: int, fresh: int) -> None:
    # The simulated web alone: no folder of real pages is read.
    rows = [judge(name, site, fresh) for name, site in sites(Path(), SEED, web, 0)]
    assert len(rows) == web
    assert [row.state for row in rows] == ["active"] * web, [row.reason for row in rows]
    assert_no_worse(rows, fresh)


@pytest.mark.long
def test_a_set_of_a_troubled_structure_is_no_worse_than_none(shared_pages: Path) -> None:
    rows = [judge(name, site, 8) for name, site in sites(shared_pages, SEED, 0, 1)]
    assert [row.state for row in rows] == ["active"]
    assert_no_worse(rows, 8)


def assert_no_worse(rows: list[Row], fresh: int) -> None:
    for row in rows:
        assert row.pages == fresh, row.site
        worse = [name for name in FIELDS if row.verdict(name) == "worse"]
        assert worse == [], f"seed={SEED} {row.site}: {row.examples}"
