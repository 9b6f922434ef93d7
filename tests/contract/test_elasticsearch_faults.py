"""The Elasticsearch store when the server is full, busy, refusing or away. Real servers,
started by the suite."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from newscrawler.items import Article
from newscrawler.store.base import Query, StoreRefused, StoreUnavailable
from newscrawler.store.elasticsearch.article_store import ElasticStore
from tests.contract.articles import article, filler
from tests.fixtures_elasticsearch import Server, running, shared, stop
from tests.patience import Deadline


@pytest.fixture
async def store(elasticsearch_server: str) -> AsyncIterator[ElasticStore]:
    store = ElasticStore(elasticsearch_server, index=f"f{uuid.uuid4().hex[:12]}")
    await store.open()
    yield store
    await store.close()


async def send(url: str, method: str, path: str, body: object = None) -> Any:
    async with httpx.AsyncClient(base_url=url) as client:
        return (await client.request(method, path, json=body)).raise_for_status().json()


async def test_a_nearly_full_disk_is_named_and_writing_goes_on_afterwards(
    store: ElasticStore, elasticsearch_server: str
) -> None:
    await store.put([article("a", "Một", "x")])
    # What the server sets by itself when its disk passes the flood stage.
    settings = f"/{store._index}/_settings"
    await send(elasticsearch_server, "PUT", settings, {"index.blocks.read_only_allow_delete": True})
    with pytest.raises(StoreUnavailable, match="read-only, its disk is nearly full"):
        await store.put([article("b", "Hai", "x")])
    with pytest.raises(StoreUnavailable, match="read-only"):
        await store.mark_gone([article("a").id])
    await store.refresh()
    assert (await store.search(Query("một"))).total == 1, "reading goes on"
    await send(elasticsearch_server, "PUT", settings, {"index.blocks.read_only_allow_delete": None})
    assert (await store.put([article("b", "Hai", "x")]))[0].status == "new"


async def test_a_document_that_the_server_refuses_does_not_hold_up_the_others(
    store: ElasticStore,
) -> None:
    bad = article("bad", "Tin", "x", site="s" * 40_000)  # longer than a keyword may be
    with pytest.raises(StoreRefused, match=r"failed to parse field .site.") as caught:
        await store.put([article("a", "Một", "x"), bad, article("b", "Hai", "x")])
    assert caught.value.ids == [bad.id]
    assert len(str(caught.value)) < 500, "the article itself is not in the message"
    assert [r.status for r in caught.value.results] == ["new", "new"]
    assert await store.get(article("b").id) is not None


async def test_an_index_of_a_newer_program_is_not_touched(
    store: ElasticStore, elasticsearch_server: str
) -> None:
    mapping = {"_meta": {"schema": 99}}
    await send(elasticsearch_server, "PUT", f"/{store._index}/_mapping", mapping)
    other = ElasticStore(elasticsearch_server, index=store._index)
    with pytest.raises(StoreUnavailable, match="newer version"):
        await other.put([article("a", "Một", "x")])
    await other.close()


async def test_a_server_that_is_away_is_named() -> None:
    store = ElasticStore("http://user:secret@127.0.0.1:9", index="x")
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        await store.put([article("a", "Một", "x")])
    assert "secret" not in str(caught.value)
    await store.close()


async def test_the_processes_of_a_run_share_one_server(
    elasticsearch_server: str, elasticsearch_folder: Path
) -> None:
    """Each costs half a minute of CPU; the last that leaves stops it, and this
    one is not the last."""
    with shared(elasticsearch_folder) as url:
        assert url == elasticsearch_server
    health = await send(elasticsearch_server, "GET", "/_cluster/health")
    assert health["status"] in ("green", "yellow")


async def test_workers_that_open_at_once_share_one_index(elasticsearch_server: str) -> None:
    index = f"f{uuid.uuid4().hex[:12]}"
    stores = [ElasticStore(elasticsearch_server, index=index) for _ in range(4)]
    results = await asyncio.gather(
        *(s.put([article(f"a{i}", "Tin", "x")]) for i, s in enumerate(stores))
    )
    assert [r[0].status for r in results] == ["new"] * 4
    await stores[0].refresh()
    assert (await stores[0].stats())["articles"] == 4
    for s in stores:
        await s.close()


@pytest.fixture(scope="module")
def tight_server() -> Iterator[Server]:
    """Two bulks may wait, and half a megabyte of documents may be at work."""
    with running(
        {"thread_pool.write.queue_size": "2", "indexing_pressure.memory.limit": "512kb"}
    ) as server:
        yield server


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_overload_sends_batches_back_and_loses_none(tight_server: Server) -> None:
    index = f"f{uuid.uuid4().hex[:12]}"
    store = ElasticStore(tight_server.url, index=index)
    await store.open()

    # One request that is too much by itself: 429 for the whole of it.
    with pytest.raises(StoreUnavailable, match=r"overloaded|no room"):
        await store.put([article("huge", "Tin", filler(1, 60_000))])

    # Many at once: 429 for single documents or for whole requests, as it falls.
    sent_back = 0

    async def until_stored(batch: list[Article]) -> None:
        nonlocal sent_back
        deadline = Deadline(90)
        while True:
            try:
                await store.put(batch)
                return
            except StoreUnavailable:
                sent_back += 1
                assert not deadline.is_over()
                await asyncio.sleep(0.05)

    batches = [
        [article(f"b{n}-{i}", f"Tin {n}", filler(n * 50 + i, 500)) for i in range(20)]
        for n in range(20)
    ]
    await asyncio.gather(*map(until_stored, batches))
    await store.refresh()
    stats = await store.stats()
    assert (stats["articles"], stats["versions"]) == (400, 400)
    rejected = await send(tight_server.url, "GET", "/_nodes/stats/thread_pool,indexing_pressure")
    node = next(iter(rejected["nodes"].values()))
    memory = node["indexing_pressure"]["memory"]["total"]
    refused = node["thread_pool"]["write"]["rejected"] + memory["coordinating_rejections"]
    assert refused > 1, "the server was never short of room: the test shows nothing"

    stop(tight_server)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await store.put([article("later", "Tin", "x")])
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await store.search(Query("tin"))
    await store.close()
