"""Stores as a whole: walked, inspected, copied into one another."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from newscrawler.items import Article
from newscrawler.store import codec
from newscrawler.store.base import Query, StoreUnavailable, WholeStore
from newscrawler.store.copying import Copied, copy
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.sqlite import LocalStore
from tests.contract.articles import CORPUS, article, article_id, filler
from tests.contract.conftest import Twin

FIRST = article("a", "Giá vàng", filler(1), keywords=["Vàng"])
SECOND = replace(FIRST, title="Giá vàng tăng", authors=["An"])
LEFT = article("b", "Ngôi nhà ma", filler(2))
BACK = article("c", "Trở lại", filler(3))


async def fill(store: WholeStore) -> None:
    """Articles with versions, one that is gone, one that was gone and came back as it was."""
    await store.put([*CORPUS, FIRST, LEFT, BACK])
    await store.put([SECOND])
    await store.mark_gone([LEFT.id, BACK.id])
    await store.put([BACK])
    await store.refresh()


async def everything(store: WholeStore) -> dict[str, tuple[list[Article], bool]]:
    """Id -> versions without what the store sets itself, whether it is gone."""
    found = {}
    async for kept in store.walk():
        one = kept.article
        versions = [replace(v, cluster=None, gone=False) for v in await store.versions(one.id)]
        found[one.id] = (versions, one.gone)
    return found


async def test_a_walk_gives_every_article_with_its_digest(store: WholeStore) -> None:
    await fill(store)
    kept = {k.article.id: k async for k in store.walk()}
    assert set(kept) == {a.id for a in [*CORPUS, FIRST, LEFT, BACK]}
    assert all(codec.digest(k.article) == k.digest for k in kept.values())
    assert kept[FIRST.id].article.title == SECOND.title
    assert [i for i, k in kept.items() if k.article.gone] == [LEFT.id]
    states = await store.states([FIRST.id, LEFT.id, "0" * 32])
    assert {i: (s.version, s.gone) for i, s in states.items()} == {
        FIRST.id: (2, False),
        LEFT.id: (1, True),
    }


async def test_a_store_that_is_whole_has_no_faults(store: WholeStore) -> None:
    await fill(store)
    assert await store.inspect() == []


# ---------------------------------------------------------------- copies
@pytest.fixture(params=["sqlite", "elasticsearch"])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[WholeStore]:
    other: WholeStore
    if request.param == "sqlite":
        other = LocalStore(tmp_path / "copy.db")
    else:
        url = request.getfixturevalue("elasticsearch_server")
        other = ElasticStore(url, index=f"t{uuid.uuid4().hex[:12]}")
    yield other
    await other.close()


@pytest.fixture(params=["sqlite", "elasticsearch"])
def open_one(request: pytest.FixtureRequest, tmp_path: Path) -> Twin:
    """Without the third way of the contract, which stores as the first does."""
    if request.param == "sqlite":
        return lambda: LocalStore(tmp_path / "articles.db")
    url = request.getfixturevalue("elasticsearch_server")
    index = f"t{uuid.uuid4().hex[:12]}"
    return lambda: ElasticStore(url, index=index)


async def test_a_copy_has_every_version_and_what_is_gone(
    store: WholeStore, target: WholeStore
) -> None:
    await fill(store)
    done = await copy(store, target)
    assert done.is_whole and done.written == len(CORPUS) + 3, done
    assert done.counts["versions"][0] == done.counts["versions"][1] == len(CORPUS) + 5
    assert await everything(target) == await everything(store)
    assert FIRST.id in {h.article.id for h in (await target.search(Query("vàng tăng"))).hits}
    again = await copy(store, target)
    assert again.is_whole and again.written == 0
    assert await everything(target) == await everything(store)


@pytest.mark.long
async def test_an_interrupted_copy_goes_on(store: WholeStore, target: WholeStore) -> None:
    many = [article(f"m{n}", f"Tin số {n}", filler(100 + n)) for n in range(230)]
    await store.put(many)
    await fill(store)

    class Interrupted(Exception):
        pass

    def stop(done: Copied) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        await copy(store, target, stop)
    await target.refresh()
    part = (await target.stats())["articles"]
    assert isinstance(part, int) and 0 < part < len(many)
    changed = replace(many[0], title="Tin đã sửa")  # while nobody copied
    await store.put([changed])
    await store.mark_gone([many[1].id])
    done = await copy(store, target)
    assert done.is_whole, done
    assert await everything(target) == await everything(store)


async def test_what_the_target_has_of_its_own_is_left_and_said(
    store: WholeStore, target: WholeStore
) -> None:
    await fill(store)
    await target.put([replace(FIRST, title="Bản khác")])
    done = await copy(store, target)
    assert done.different == [FIRST.id] and not done.is_whole
    got = await target.get(FIRST.id)
    assert got is not None and got.title == "Bản khác"


# ---------------------------------------------------------------- faults
def _statement(path: Path, sql: str) -> None:
    db = apsw.Connection(str(path))
    try:
        db.execute(sql)
    finally:
        db.close()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM version", "2 articles lack some of their older versions"),
        ("INSERT INTO version VALUES(999, 1, x'00')", "1 older versions belong to no article: 999"),
        (
            f"DELETE FROM article WHERE id = '{CORPUS[0].id}'",
            "the full-text index has 12 articles, the file 11",
        ),
        ("INSERT INTO band VALUES(5, 999)", "1 fingerprints of near-duplicates belong to no"),
    ],
)
async def test_a_file_that_lost_something_says_what(tmp_path: Path, sql: str, said: str) -> None:
    path = tmp_path / "articles.db"
    store = LocalStore(path)
    await fill(store)
    await store.close()
    _statement(path, sql)
    store = LocalStore(path)
    try:
        found = await store.inspect()
        assert any(line.startswith(said) for line in found), found
    finally:
        await store.close()


async def test_an_index_that_lost_versions_says_so(elasticsearch_server: str) -> None:
    store = ElasticStore(elasticsearch_server, index=f"t{uuid.uuid4().hex[:12]}")
    try:
        await fill(store)
        server = store._server
        await server.ask(
            lambda es: es.delete(index=server.old_versions, id=f"{FIRST.id}@1", refresh=True)
        )
        orphan = {"id": article_id("nobody"), "version": 1, "data": {}}
        await server.ask(
            lambda es: es.index(index=server.old_versions, document=orphan, refresh=True)
        )
        assert await store.inspect() == [
            f"1 older versions belong to no article: {article_id('nobody')}",
            f"1 articles lack some of their older versions: {FIRST.id}",
        ]
    finally:
        await store.close()


@pytest.mark.long
async def test_a_copy_from_a_server_that_is_away_says_so(tmp_path: Path) -> None:
    source = ElasticStore("http://127.0.0.1:9", index="x")
    target = LocalStore(tmp_path / "copy.db")
    try:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await copy(source, target)
    finally:
        await source.close()
        await target.close()
