"""``store``: an empty store of each kind, open; ``twin`` makes a second one over the same data, as
another worker would."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from newscrawler.crawl.processes import StoreProcess
from newscrawler.store.base import ArticleStore
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.sqlite import LocalStore

Twin = Callable[[], ArticleStore]


@pytest.fixture(params=["sqlite", "sqlite elsewhere", "elasticsearch"])
def open_one(request: pytest.FixtureRequest, tmp_path: Path) -> Twin:
    if request.param == "sqlite":
        return lambda: LocalStore(tmp_path / "articles.db")
    if request.param == "sqlite elsewhere":
        return lambda: LocalStore(tmp_path / "articles.db", elsewhere=StoreProcess())
    url = request.getfixturevalue("elasticsearch_server")
    index = f"t{uuid.uuid4().hex[:12]}"
    return lambda: ElasticStore(url, index=index)


@pytest.fixture
async def store(open_one: Twin) -> AsyncIterator[ArticleStore]:
    store = open_one()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def twin(open_one: Twin, store: ArticleStore) -> AsyncIterator[ArticleStore]:
    other = open_one()
    yield other
    await other.close()
