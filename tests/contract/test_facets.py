"""Keywords in both stores: filtered, counted, and stores of an earlier program
(tests/contract/old) that get them.

The files in ``old`` were written by the program at commit 6f82c76, before articles had keywords.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import urllib.request
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from newscrawler.crawl.processes import StoreProcess
from newscrawler.items import Article
from newscrawler.store.base import ArticleStore, Query, QueryTooLarge
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.sqlite import LocalStore, schema
from tests.contract.articles import START, article, article_id

OLD = Path(__file__).parent / "old"
ARTICLES = [
    article("a", "Bão số 5", "Mưa lớn ở Huế.", keywords=["Thời tiết", "Bão Kalmaegi"]),
    article("b", "Nắng nóng", "Trời nắng.", keywords=["thời tiết"], authors=["Lê An"]),
    article("c", "Giá vàng", "Vàng tăng.", keywords=["Vàng", "Tỷ giá"], site="tuoitre.vn"),
    article("d", "Không có từ khóa", "Thời tiết là chữ của bài."),
]


async def found(store: ArticleStore, text: str = "", **asked: Any) -> set[str]:
    await store.refresh()
    names = {article_id(n): n for n in ("a", "b", "c", "d", "a1", "a2", "a3")}
    return {names[h.article.id] for h in (await store.search(Query(text, **asked))).hits}


async def test_a_keyword_is_found_as_a_whole_in_any_spelling(store: ArticleStore) -> None:
    await store.put(ARTICLES)
    assert await found(store, 'keyword:"thời tiết"') == {"a", "b"}
    assert await found(store, 'keyword:"THOI TIET"') == {"a", "b"}
    assert await found(store, "keyword:thời") == set()
    assert await found(store, "keyword:vàng") == {"c"}
    assert await found(store, 'keyword:"thời tiết" keyword:"bão kalmaegi"') == {"a"}
    assert await found(store, 'vàng OR chữ -keyword:"thời tiết"') == {"c", "d"}
    assert await found(store, 'nắng keyword:"thời tiết"') == {"b"}
    assert await found(store, labels=(("keyword", "Tỷ giá"),)) == {"c"}
    assert await found(store, 'author:"thời tiết"') == set()
    assert await found(store, "author:an") == {"b"}


async def test_keywords_are_counted_with_a_search(store: ArticleStore) -> None:
    await store.put(ARTICLES)
    await store.refresh()
    counts = (await store.search(Query("", facets=True))).facets["keyword"]
    assert {k.lower(): n for k, n in counts.items()} == {
        "thời tiết": 2, "bão kalmaegi": 1, "tỷ giá": 1, "vàng": 1,
    }  # fmt: skip
    assert next(iter(counts)).lower() == "thời tiết"
    assert (await store.facets(Query(sites=("tuoitre.vn",))))["keyword"] == {"Tỷ giá": 1, "Vàng": 1}
    assert (await store.facets(Query(sites=("nobody.vn",))))["keyword"] == {}


async def test_a_new_version_and_a_gone_article_take_their_keywords_along(
    store: ArticleStore,
) -> None:
    await store.put(ARTICLES)
    other = article("c", "Giá vàng", "Vàng giảm.", keywords=["Chứng khoán"], site="tuoitre.vn")
    await store.put([other])
    await store.mark_gone([article_id("b")])
    assert await found(store, "keyword:vàng") == set()
    assert await found(store, 'keyword:"chứng khoán"') == {"c"}
    assert await found(store, 'keyword:"thời tiết"') == {"a"}
    counts = (await store.facets(Query()))["keyword"]
    assert counts == {"Bão Kalmaegi": 1, "Chứng khoán": 1, "Thời tiết": 1}
    got = await store.get(article_id("c"))
    assert got is not None and got.keywords == ["Chứng khoán"]


async def test_other_keywords_alone_are_no_new_version(store: ArticleStore) -> None:
    await store.put(ARTICLES)
    same = await store.put([article("a", "Bão số 5", "Mưa lớn ở Huế.", keywords=["Khác"])])
    assert [r.status for r in same] == ["unchanged"]


async def test_a_value_without_end_is_refused(store: ArticleStore) -> None:
    with pytest.raises(QueryTooLarge, match="keyword:"):
        await store.search(Query(labels=(("keyword", "x" * 201),)))


# ---------------------------------------------------------------- data of an earlier program
NEW = article("a1", "Bão số 5 suy yếu", "Mưa đã tạnh ở thủ đô.", keywords=["Thời tiết"])


async def _is_whole(store: ArticleStore) -> None:
    """All that the earlier program has stored can be read and found, and new articles beside it."""
    assert await found(store, "vàng") == {"a2"}
    assert "a1" in await found(store, "author:an")
    got = await store.get(article_id("a1"))
    assert got is not None and (got.section, got.keywords) == ("Thời sự", [])
    assert (await store.facets(Query()))["keyword"] == {}
    assert await found(store, 'keyword:"thời tiết"') == set()
    assert [r.status for r in await store.put([got])] == ["unchanged"]
    assert [r.status for r in await store.put([NEW])] == ["updated"]
    assert await found(store, 'keyword:"thời tiết"') == {"a1"}
    assert (await store.facets(Query()))["keyword"] == {"Thời tiết": 1}
    assert await found(store, "vàng") == {"a2"}


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    path = tmp_path / "articles.db"
    path.write_bytes(gzip.decompress((OLD / "articles-v3.db.gz").read_bytes()))
    assert _version(path) == 3
    return path


def _version(path: Path) -> int:
    # By the library that the store uses: a second one in a process takes the
    # locks of the first away.
    db = apsw.Connection(str(path))
    try:
        version: int = db.pragma("user_version")
        return version
    finally:
        db.close()


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_file_of_an_earlier_program_opens_and_works(
    old_file: Path, elsewhere: bool
) -> None:
    store = LocalStore(old_file, elsewhere=StoreProcess() if elsewhere else None)
    try:
        await store.open()
        assert _version(old_file) == schema.VERSION
        assert (await store.stats())["articles"] == 3 and (await store.stats())["gone"] == 1
        assert [a.title for a in await store.versions(article_id("a2"))] == [
            "Giá vàng tăng",
            "Giá vàng giảm",
        ]
        await _is_whole(store)
    finally:
        await store.close()


async def test_a_reader_converts_a_file_that_no_writer_has_opened(old_file: Path) -> None:
    store = LocalStore(old_file)
    try:
        assert await found(store, "vàng") == {"a2"}
        result = await store.search(Query("keyword:x", facets=True))
        assert result.total == 0 and result.facets["keyword"] == {}
        assert (await store.facets(Query()))["site"] == {"tuoitre.vn": 2, "vnexpress.net": 1}
        assert _version(old_file) == schema.VERSION
    finally:
        await store.close()


def _send(url: str, method: str, path: str, body: Any) -> Any:
    data = json.dumps(body).encode() if not isinstance(body, str) else body.encode()
    kind = "application/x-ndjson" if isinstance(body, str) else "application/json"
    request = urllib.request.Request(url + path, data, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


async def test_an_index_of_an_earlier_program_is_extended(elasticsearch_server: str) -> None:
    old = json.loads((OLD / "elasticsearch-1.json").read_text(encoding="utf-8"))
    index = f"t{uuid.uuid4().hex[:12]}"
    for alias, mapping in ((index, old["articles"]), (f"{index}-versions", old["versions"])):
        body = {"settings": old["settings"], "mappings": mapping, "aliases": {alias: {}}}
        await asyncio.to_thread(_send, elasticsearch_server, "PUT", f"/{alias}-1", body)
    lines = []
    for doc in old["documents"]:
        lines += [json.dumps({"index": {"_id": doc.pop("_id"), "version": 2, "version_type": "external"}}), json.dumps(doc)]  # fmt: skip
    answer = await asyncio.to_thread(
        _send, elasticsearch_server, "POST", f"/{index}/_bulk?refresh=true", "\n".join(lines) + "\n"
    )
    assert not answer["errors"], answer
    store = ElasticStore(elasticsearch_server, index=index)
    try:
        await store.open()
        assert (await store.stats())["articles"] == 2
        await _is_whole(store)
    finally:
        await store.close()


def test_the_old_articles_have_no_keywords() -> None:
    documents = json.loads((OLD / "elasticsearch-1.json").read_text(encoding="utf-8"))["documents"]
    assert documents and not any("keywords" in d["data"] for d in documents)
    assert Article("1", "u", "s", "t", "c").keywords == []


async def test_an_author_is_filtered_by_as_a_whole_and_typed_by_words(store: ArticleStore) -> None:
    await store.put(
        [
            article("a", "Bão số 5", "Mưa lớn ở Huế.", authors=["Lê An", "Trần Bình"]),
            article("b", "Nắng nóng", "Trời nắng.", authors=["Lê An Khang"]),
            article("c", "Giá vàng", "Vàng tăng.", authors=["LE AN"], site="tuoitre.vn"),
        ]
    )
    assert await found(store, "author:an") == {"a", "b", "c"}
    assert await found(store, labels=(("author", "Lê An"),)) == {"a", "c"}
    assert await found(store, labels=(("author", "Lê An"), ("author", "trần bình"))) == {"a"}
    counts = (await store.search(Query("", facets=True))).facets["author"]
    assert sorted(counts.values()) == [1, 1, 2] and counts["Lê An Khang"] == 1


async def test_articles_without_a_date_are_told_apart_and_come_last(store: ArticleStore) -> None:
    """They have a place in time, when they were first seen, which no reader can see."""
    seen = START + timedelta(days=90)
    await store.put(
        [
            article("a", "Bão số 5", "Mưa lớn ở Huế.", published=None, discovered=seen),
            article("b", "Bão tan", "Trời nắng.", published=START),
            article("c", "Bão mới", "Trời mưa.", published=START + timedelta(days=9)),
        ]
    )
    await store.refresh()
    names = {article_id(n): n for n in "abc"}
    for asked in (Query("bão", sort="date", facets=True), Query("", facets=True)):
        result = await store.search(asked)
        assert [names[hit.article.id] for hit in result.hits] == ["c", "b", "a"]
        assert result.facets["without"] == {"date": 1}
    assert await found(store, "without:date") == {"a"}
    assert await found(store, "bão -without:date") == {"b", "c"}
    assert await found(store, labels=(("without", "date"),)) == {"a"}


async def test_all_values_of_a_facet_are_searched(store: ArticleStore) -> None:
    people = [f"Nguyễn Văn {chr(65 + n // 26)}{chr(97 + n % 26)}" for n in range(70)]
    await store.put(
        [
            article(f"m{n}", f"Tin {n}", "Mưa lớn.", authors=[one, "Đỗ Hòa"], site=f"s{n % 2}.vn")
            for n, one in enumerate(people)
        ]
    )
    await store.refresh()
    every = await store.values(Query("mưa"), "author")  # type: ignore[attr-defined]
    assert len(every) == 71 and next(iter(every)) == "Đỗ Hòa"
    shown = (await store.search(Query("mưa", facets=True))).facets["author"]
    assert len(shown) == 50  # beside a search

    async def values(key: str, within: str, **asked: Any) -> dict[str, int]:
        found: dict[str, int] = await store.values(  # type: ignore[attr-defined]
            Query("mưa", **asked), key, within
        )
        return found

    assert await values("author", "nguyen cr") == {"Nguyễn Văn Cr": 1}
    assert await values("author", "hoà") == {"Đỗ Hòa": 70}
    assert await values("author", "ho", sites=("s1.vn",)) == {"Đỗ Hòa": 35}
    assert await values("author", "ỗ") == {} == await values("author", "zz")
    assert await values("site", "s1") == {"s1.vn": 35}
    with pytest.raises(QueryTooLarge):
        await store.values(Query("x" * 2_000), "author")  # type: ignore[attr-defined]
