"""What others see of an index: its fields by their names, its template, and a new index while
articles are written."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from newscrawler.store.base import Query
from newscrawler.store.elasticsearch.article_store import ElasticStore
from tests.contract.articles import START, article, filler
from tests.contract.test_facets import OLD

STORM = article(
    "bao",
    "Bão số 5 đổ bộ Hà Nội",
    "Mưa lớn ở thủ đô, nhiều tuyến phố ngập.",
    site="tuoitre.vn",
    authors=["Nguyễn Văn An", "Trần Thị Bình"],
    keywords=["Thời tiết"],
    section="Thời sự",
    language="vi",
    published=START,
)
GOLD = article(
    "vang",
    "Gold prices rise",
    "A tael of gold costs 120 million dong.",
    language="en",
    published=START + timedelta(days=3),
)
LEFT = article("ma", "Bão cũ", filler(2), language="vi")


def send(url: str, body: Any = None, method: str = "GET") -> Any:
    """As curl does, without our client."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url, data, {"Content-Type": "application/json"}, method=method if body is None else "POST"
    )
    if body is not None and method == "PUT":
        request.method = "PUT"
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture
def index() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def store(elasticsearch_server: str, index: str) -> AsyncIterator[ElasticStore]:
    store = ElasticStore(elasticsearch_server, index=index)
    await store.put([STORM, GOLD, LEFT])
    await store.mark_gone([LEFT.id])
    await store.refresh()
    yield store
    await store.close()


async def ids(url: str, query: dict[str, Any]) -> set[str]:
    found = await asyncio.to_thread(send, f"{url}/_search", {"query": query})
    return {hit["_id"] for hit in found["hits"]["hits"]}


async def test_queries_of_a_stranger_find_articles(
    elasticsearch_server: str, index: str, store: ElasticStore
) -> None:
    url = f"{elasticsearch_server}/{index}-news"
    for query in (
        {"match": {"title": "bão"}},
        {"match_phrase": {"content": "tuyến phố"}},
        {"match": {"authors": "bình"}},
        {"term": {"authors.keyword": "Trần Thị Bình"}},
        {"term": {"section": "Thời sự"}},
        {"term": {"keywords": "Thời tiết"}},
        {"match": {"keywords.text": "thời tiết"}},
        {"term": {"language": "vi"}},
        {"term": {"site": "tuoitre.vn"}},
        {"range": {"published": {"lt": "2026-08-02T00:00:00Z"}}},
        {"bool": {"must": {"match": {"title": "Hà Nội"}}, "filter": {"term": {"language": "vi"}}}},
        {"query_string": {"query": 'title:(bão AND "đổ bộ") AND NOT site:vnexpress.net'}},
    ):
        assert await ids(url, query) == {STORM.id}, query
    assert await ids(url, {"match_all": {}}) == {STORM.id, GOLD.id}
    gone = {"bool": {"filter": {"term": {"gone": True}}}}
    assert await ids(f"{elasticsearch_server}/{index}", gone) == {LEFT.id}


async def test_a_document_shows_the_article(
    elasticsearch_server: str, index: str, store: ElasticStore
) -> None:
    document = await asyncio.to_thread(send, f"{elasticsearch_server}/{index}/_doc/{STORM.id}")
    source = document["_source"]
    assert (source["title"], source["content"]) == (STORM.title, STORM.content)
    assert (source["authors"], source["keywords"]) == (STORM.authors, STORM.keywords)
    assert (source["section"], source["language"]) == ("Thời sự", "vi")
    assert "title" not in source["data"]  # every field once


async def test_fields_are_counted_as_a_dashboard_counts(
    elasticsearch_server: str, index: str, store: ElasticStore
) -> None:
    fields = ("site", "language", "section", "keywords", "authors.keyword", "title.keyword")
    body = {
        "size": 0,
        "aggs": {
            **{name: {"terms": {"field": name}} for name in fields},
            "day": {"date_histogram": {"field": "published", "calendar_interval": "day"}},
        },
    }
    url = f"{elasticsearch_server}/{index}-news/_search"
    found = (await asyncio.to_thread(send, url, body))["aggregations"]
    assert {b["key"] for b in found["authors.keyword"]["buckets"]} == set(STORM.authors)
    assert {b["key"] for b in found["title.keyword"]["buckets"]} == {STORM.title, GOLD.title}
    assert {b["key"] for b in found["section"]["buckets"]} == {"Thời sự"}
    assert sum(b["doc_count"] for b in found["day"]["buckets"]) == 2


# ---------------------------------------------------------------- template and new indices
async def test_settings_of_an_operator_are_used_for_a_new_index(
    elasticsearch_server: str, index: str, store: ElasticStore
) -> None:
    template = await asyncio.to_thread(send, f"{elasticsearch_server}/_index_template/{index}")
    made = template["index_templates"][0]["index_template"]
    assert made["composed_of"] == [f"{index}@newscrawler", f"{index}@custom"]
    custom = {"template": {"settings": {"refresh_interval": "7s"}}}
    url = f"{elasticsearch_server}/_component_template/{index}@custom"
    await asyncio.to_thread(send, url, custom, "PUT")
    done = await store.reindex()
    settings = await asyncio.to_thread(send, f"{elasticsearch_server}/{done.new}/_settings")
    assert settings[done.new]["settings"]["index"]["refresh_interval"] == "7s"


async def _old_index(server: str, index: str) -> None:
    """As a program of schema 1 has left it."""
    old = json.loads((OLD / "elasticsearch-1.json").read_text(encoding="utf-8"))
    for alias, mapping in ((index, old["articles"]), (f"{index}-versions", old["versions"])):
        body = {"settings": old["settings"], "mappings": mapping, "aliases": {alias: {}}}
        await asyncio.to_thread(send, f"{server}/{alias}-1", body, "PUT")
    for doc in old["documents"]:
        name = doc.pop("_id")
        url = f"{server}/{index}/_doc/{name}?refresh=true&version=2&version_type=external"
        await asyncio.to_thread(send, url, doc, "PUT")


async def test_an_index_of_an_earlier_schema_is_made_anew(
    elasticsearch_server: str, index: str
) -> None:
    await _old_index(elasticsearch_server, index)
    store = ElasticStore(elasticsearch_server, index=index)
    try:
        before = {a.id: a async for a in store.scan()}
        assert len(before) == 2
        done = await store.reindex()
        assert (done.old, done.new, done.documents) == (f"{index}-1", f"{index}-2", 2)
        assert {a.id: a async for a in store.scan()} == before
        named = {"match": {"title": next(iter(before.values())).title}}
        assert await ids(f"{elasticsearch_server}/{index}-news", named) <= set(
            before
        ) and await ids(f"{elasticsearch_server}/{index}-news", named)
        assert [r.status for r in await store.put(list(before.values()))] == ["unchanged"] * 2
    finally:
        await store.close()


async def test_nothing_is_lost_that_is_written_meanwhile(
    elasticsearch_server: str, index: str
) -> None:
    """Two workers write and search while the index is made anew twice."""
    first = ElasticStore(elasticsearch_server, index=index)
    second = ElasticStore(elasticsearch_server, index=index)
    written = [article(f"a{n}", f"Tin {n}", filler(n)) for n in range(150)]
    await first.put(written)
    await first.refresh()
    stop = asyncio.Event()
    states: dict[str, str] = {}

    async def work(store: ElasticStore, own: int) -> None:
        n = 0
        while not stop.is_set():
            new = article(f"w{own}-{n}", f"Tin của {own} {n}", filler(1_000 * own + n))
            changed = replace(written[(2 * n + own) % 150], title=f"Tin sửa {own} {n}")
            await store.put([new, changed])
            states.update({new.id: new.title, changed.id: changed.title})
            assert (await store.search(Query("tin"))).total >= 1
            n += 1

    workers = [asyncio.create_task(work(first, 1)), asyncio.create_task(work(second, 2))]
    try:
        done = [await second.reindex(), await second.reindex()]
        stop.set()
        await asyncio.gather(*workers)
        assert [d.new for d in done] == [f"{index}-2-1", f"{index}-2-2"]
        stored = {a.id: a async for a in first.scan()}
        assert set(stored) == {a.id for a in written} | set(states)
        assert {i: stored[i].title for i in states} == states
    finally:
        stop.set()
        await asyncio.gather(*workers, return_exceptions=True)
        await first.close()
        await second.close()


async def test_an_interrupted_run_is_completed(
    elasticsearch_server: str, index: str, store: ElasticStore
) -> None:
    class Interrupted(Exception):
        pass

    def stop_at_copying(text: str) -> None:
        if "looked at" in text:
            raise Interrupted

    with pytest.raises(Interrupted):
        await store.reindex(stop_at_copying)
    assert (await store.search(Query("bão"))).total == 1  # the alias stays where it is
    done = await store.reindex()
    assert done.new == f"{index}-2-1" and done.documents == 3
    got = await store.get(LEFT.id)
    assert got is not None and got.gone and got.title == LEFT.title


async def test_an_alias_of_two_indices_is_refused_by_name(
    elasticsearch_server: str, index: str, store: ElasticStore
) -> None:
    body = {"aliases": {index: {}}}
    await asyncio.to_thread(send, f"{elasticsearch_server}/{index}-mine", body, "PUT")
    with pytest.raises(Exception, match=f"names 2 indices.*{index}-mine"):
        await store.reindex()
