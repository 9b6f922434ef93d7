"""Vectors in Elasticsearch: made in the background, replaced, removed, of one model each, and the
graph finds what an exact comparison finds."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from newscrawler.api.data import DataReader
from newscrawler.api.deps import Deps
from newscrawler.api.parts import parts
from newscrawler.store.base import Query
from newscrawler.store.elasticsearch import vectors
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.elasticsearch.connection import Server
from newscrawler.store.elasticsearch.vectors import Vectors
from newscrawler.store.semantic.embedder import Model
from newscrawler.store.semantic.matrix import centred
from tests.semantic.small import Refuses, Thesaurus, Waits, article, caught_up

TITLES = ["Gold price rises", "Storm hits the coast", "Club wins again", "Bank lowers interest"]
Open = Callable[[Thesaurus], ElasticStore]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PERIOD_S", "BUSY_S", "RETRY_S"):
        monkeypatch.setattr(vectors, name, 0.05)


@pytest.fixture
def open_one(elasticsearch_server: str) -> Open:
    """Stores over one index, each with its embedder."""
    index = f"t{uuid.uuid4().hex[:12]}"
    return lambda made: ElasticStore(elasticsearch_server, index=index, embedder=made, query_s=30.0)


async def found(store: ElasticStore, text: str) -> list[str]:
    result = await store.search(Query(text, mode="semantic"))
    return [hit.article.title for hit in result.hits]


async def test_vectors_follow_the_articles_and_a_second_day_makes_none_twice(
    open_one: Open,
) -> None:
    made = Thesaurus()
    store = open_one(made)
    await store.put([article(i, title) for i, title in enumerate(TITLES)])
    await store.follow()
    await caught_up(store, len(TITLES))
    assert (await found(store, "bullion cost"))[0] == TITLES[0]
    # A change replaces, "gone" removes, what is not in the text costs none.
    await store.put(
        [article(0, "Typhoon and flood"), replace(article(2, TITLES[2]), authors=["A"])]
    )
    await store.mark_gone([article(1, "").id])
    await caught_up(store, len(TITLES) - 1)
    await store.refresh()
    assert len(made.passages) == len(TITLES) + 1
    assert (await found(store, "storm water"))[0] == "Typhoon and flood"
    assert TITLES[1] not in await found(store, "storm")
    await store.close()
    # Another day, another process.
    again = Thesaurus()
    store = open_one(again)
    try:
        await store.put([article(0, "Typhoon and flood"), article(7, "Loan"), article(8, "Rain")])
        await store.follow()
        await caught_up(store, len(TITLES) + 1)
        assert sorted(text.split("\n")[0] for text in again.passages) == ["Loan", "Rain"]
        await store.refresh()
        assert "Loan" in (await found(store, "bank"))[:2]
    finally:
        await store.close()


async def test_another_model_is_never_compared_and_the_old_one_is_forgotten(
    open_one: Open,
) -> None:
    store = open_one(Thesaurus())
    await store.put([article(i, title) for i, title in enumerate(TITLES)])
    await store.follow()
    await caught_up(store, len(TITLES))
    await store.close()
    new = Thesaurus(version="2")
    store = open_one(new)
    try:
        await store.refresh()
        result = await store.search(Query("typhoon"))
        assert result.mode == "keyword" and result.meaning is not None
        assert "no article has a vector of this model" in result.meaning.why_not
        await store.follow()
        await caught_up(store, len(TITLES))
        await store.refresh()
        assert len(new.passages) == len(TITLES)
        assert (await found(store, "typhoon"))[0] == TITLES[1]
        old = vectors.index_of(store._server, Thesaurus().model)
        end = time.monotonic() + 60
        while await store._server.ask(lambda es: es.indices.exists_alias(name=old)):
            assert time.monotonic() < end, "the vectors of the old model are still there"
            await asyncio.sleep(0.05)
    finally:
        await store.close()


async def test_a_vector_that_is_made_while_its_article_is_purged_does_not_stay(
    open_one: Open,
) -> None:
    made = Waits()
    store = open_one(made)
    try:
        await store.put([article(i, title) for i, title in enumerate(TITLES)])
        await store.follow()
        await made.asked.wait()
        assert await store.purge([article(0, "").id]) == 1
        made.go.set()
        await caught_up(store, len(TITLES) - 1)
    finally:
        await store.close()


async def test_an_embedder_that_is_away_delays_vectors_only(open_one: Open) -> None:
    made = Refuses()
    store = open_one(made)
    try:
        await store.follow()
        await store.put([article(i, title) for i, title in enumerate(TITLES)])
        end = time.monotonic() + 60
        while (await store.stats())["vectors_problem"] != "the server is away":
            assert time.monotonic() < end
            await asyncio.sleep(0.05)
        rows = await parts(DataReader(Deps(store=store)))
        assert [r["problem"] for r in rows if r["part"] == "meaning"] == ["the server is away"]
        await store.refresh()
        assert (await store.search(Query("gold"))).total == 1
        made.__class__ = Thesaurus  # it comes back
        stats = await caught_up(store, len(TITLES))
        assert stats["vectors_problem"] == "" or (await store.stats())["vectors_problem"] == ""
    finally:
        made.__class__ = Refuses
        await store.close()


async def test_the_graph_finds_what_an_exact_comparison_finds(elasticsearch_server: str) -> None:
    rng = np.random.default_rng(5)
    dimension, many = 64, 2_000
    subjects = rng.standard_normal((40, dimension))
    rows = rng.standard_normal(dimension) * 2 + subjects[rng.integers(40, size=many)]
    rows = rows + 0.8 * rng.standard_normal((many, dimension))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    server = Server(elasticsearch_server, f"t{uuid.uuid4().hex[:12]}", None)
    try:
        made = Vectors(server, Model("random", "1", dimension))
        await made.make()
        await made.put({str(i): made.document(row, "") for i, row in enumerate(rows)}, [])
        assert await made.count() == many
        mean = await made.mean()
        exact_rows = centred(rows, mean)
        right = 0
        for asked in rows[:20]:
            exact = np.argsort(-(exact_rows @ centred(asked[None, :], mean)[0]))[:50]
            right += len({str(i) for i in exact} & {n for n, _ in await made.nearest(asked, 50)})
        assert right / (20 * 50) >= 0.95
    finally:
        await server.close()
