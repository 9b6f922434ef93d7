"""``store``: an empty store of each kind, open; ``twin`` makes a second one over the same data, as
another worker would. ``store_of``: a filled one, for tests that only read."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from newscrawler.crawl.processes import StoreProcess
from newscrawler.items import Article
from newscrawler.store.base import ArticleStore
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.sqlite import LocalStore

Twin = Callable[[], ArticleStore]
StoreOf = Callable[[Sequence[Article]], Awaitable[ArticleStore]]


@pytest.fixture(params=["sqlite", "sqlite elsewhere", "elasticsearch"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite elsewhere":
        request.getfixturevalue("warm_processes")
    return str(request.param)


def opener(kind: str, folder: Path, request: pytest.FixtureRequest) -> Twin:
    if kind == "sqlite":
        return lambda: LocalStore(folder / "articles.db")
    if kind == "sqlite elsewhere":
        return lambda: LocalStore(folder / "articles.db", elsewhere=StoreProcess())
    url = request.getfixturevalue("elasticsearch_server")
    index = f"t{uuid.uuid4().hex[:12]}"
    return lambda: ElasticStore(url, index=index)


@pytest.fixture
def open_one(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Twin:
    return opener(kind, tmp_path, request)


@pytest.fixture(scope="module")
def written() -> dict[tuple[str, ...], Twin]:
    """What :func:`store_of` has filled in this module, by kind and ids of the articles."""
    return {}


@pytest.fixture
async def store_of(
    kind: str,
    written: dict[tuple[str, ...], Twin],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[StoreOf]:
    """``await store_of(articles)``: a store of them, open. They are written once in a module for
    each kind, as an index of Elasticsearch costs half a second: for tests that only read."""
    opened: list[ArticleStore] = []

    async def give(articles: Sequence[Article]) -> ArticleStore:
        key = (kind, *(a.id for a in articles))
        if key not in written:
            make = opener(kind, tmp_path_factory.mktemp("store"), request)
            first = make()
            await first.open()
            await first.put(articles)
            await first.refresh()
            await first.close()
            written[key] = make
        store = written[key]()
        opened.append(store)
        await store.open()
        return store

    yield give
    for store in opened:
        await store.close()


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
