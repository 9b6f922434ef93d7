"""A take-down takes vectors along: they say what a text was about when its words are gone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import redis
from scrapy.settings import Settings

from newscrawler import settings as project
from newscrawler.crawl import takedown
from newscrawler.items import Article
from newscrawler.store.base import Query
from newscrawler.store.semantic import follower
from newscrawler.store.semantic.embedder import checked, passage_text
from newscrawler.store.semantic.vectors import VectorFile
from newscrawler.store.sqlite import LocalStore
from tests.semantic.small import Thesaurus, Waits, article, caught_up, open_with

TITLES = ["Gold gold gold storm storm bank", "Storm hits the coast", "Club wins again"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("period_s", "retry_s"):
        monkeypatch.setitem(follower.Follower.__init__.__kwdefaults__, name, 0.02)


async def put_all(store: LocalStore) -> list[Article]:
    """Stores an article for each title, and begins to make their vectors."""
    articles = [article(i, title) for i, title in enumerate(TITLES)]
    await store.put(articles)
    await store.refresh()
    await store.follow()
    return articles


def vectors_with(folder: Path, embedder: Thesaurus, one: Article) -> list[str]:
    """Files in which the bytes of its vector are, be they of a row or of what a row was."""
    vector = checked(embedder.vector(passage_text(one)), embedder.model)
    data = vector.astype(np.float16).tobytes()
    return [p.name for p in sorted(folder.glob("articles.vectors*")) if data in p.read_bytes()]


async def test_vectors_go_with_their_article(tmp_path: Path, redis_server: str) -> None:
    """While a page with the search is open, and its matrix knows the article."""
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()
    settings = Settings()
    settings.setmodule(project, priority="project")
    values = {"DATA_DIR": str(tmp_path), "REDIS_URL": redis_server, "SEMANTIC": "off"}
    settings.update(values, priority="cmdline")
    made = Thesaurus()
    serving = open_with(tmp_path / "articles.db", made)
    try:
        articles = await put_all(serving)
        await caught_up(serving, len(TITLES))
        query = Query("bullion cost", mode="semantic")
        assert (await serving.search(query)).hits[0].article.id == articles[0].id
        assert vectors_with(tmp_path, made, articles[0])

        async with takedown.opened(settings, lambda text: None) as work:
            plan = await work.plan(articles[0].url, "asked", "me", with_copies=False)
            report = await work.carry_out(plan)
        assert report.left == []
        assert vectors_with(tmp_path, made, articles[0]) == []
        for other in articles[1:]:
            assert vectors_with(tmp_path, made, other), "the others' stay"
        await caught_up(serving, len(TITLES) - 1)
        hits = (await serving.search(query)).hits
        assert articles[0].id not in [hit.article.id for hit in hits]
        assert made.passages.count(made.passages[0]) == 1, "it was not embedded again"
    finally:
        await serving.close()


async def test_a_vector_that_is_made_meanwhile_does_not_stay(tmp_path: Path) -> None:
    made = Waits()
    store = open_with(tmp_path / "articles.db", made)
    try:
        articles = await put_all(store)
        await made.asked.wait()
        assert await store.purge([articles[0].id]) == 1
        made.go.set()
        await caught_up(store, len(TITLES) - 1)
        file = VectorFile(tmp_path / "articles.vectors", made.model, create=False)
        try:
            known = file.known()
            assert known is not None and file.count(known) == len(TITLES) - 1
        finally:
            file.close()
        assert vectors_with(tmp_path, made, articles[0]) == []
    finally:
        await store.close()
