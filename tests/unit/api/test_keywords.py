"""Keywords in the API, on the pages for people and in an export, over a real server."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from newscrawler.api.access import Access
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.store import open_store
from newscrawler.store.export import export
from tests.contract.articles import article, article_id

ARTICLES = [
    article("a", "Bão số 5", "Mưa lớn ở Huế.", keywords=["Thời tiết", '<b>"Bão" & gió</b>']),
    article("b", "Nắng nóng", "Trời nắng.", keywords=["thời tiết"]),
    article("c", "Giá vàng", "Vàng tăng."),
]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    async def fill() -> None:
        store = open_store("", tmp_path)
        await store.put(ARTICLES)
        for format_ in ("csv", "jsonl"):
            await export(store.scan(), format_, tmp_path / f"out.{format_}")
        await store.close()

    asyncio.run(fill())
    deps = Deps(store=open_store("", tmp_path), access=Access(), sites={}, redis_error="no Redis")
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url) as client:
        yield client
    running.stop()


def titles(client: httpx.Client, *keywords: str, q: str = "") -> set[str]:
    answer = client.get("/api/search", params={"q": q, "keyword": list(keywords)})
    assert answer.status_code == 200, answer.text
    return {hit["title"] for hit in answer.json()["hits"]}


def test_the_api_filters_counts_and_names_them(client: httpx.Client) -> None:
    assert titles(client) == {"Bão số 5", "Nắng nóng", "Giá vàng"}
    assert titles(client, "thoi tiet") == {"Bão số 5", "Nắng nóng"}
    assert titles(client, "Thời tiết", "bão gió") == set()
    assert titles(client, q='keyword:"thời tiết" nắng') == {"Nắng nóng"}
    answer = client.get("/api/search", params={"keyword": "Thời tiết", "sort": "date"}).json()
    assert answer["facets"]["keyword"]["Thời tiết"] == 2
    assert {tuple(hit["keywords"]) for hit in answer["hits"]} == {
        tuple(ARTICLES[0].keywords), tuple(ARTICLES[1].keywords),
    }  # fmt: skip
    one = client.get(f"/api/articles/{article_id('b')}").json()
    assert one["keywords"] == ["thời tiết"]
    named = client.get("/openapi.json").json()["paths"]["/api/search"]["get"]["parameters"]
    assert "keyword" in {p["name"] for p in named}
    assert client.get("/api/search", params={"keyword": "x" * 201}).status_code == 422


def test_pages_show_and_link_them_as_text(client: httpx.Client) -> None:
    page = client.get(f"/article/{article_id('a')}", headers={"Accept": "text/html"}).text
    assert ">Thời tiết</a>" in page and "keyword=Th%E1%BB%9Di+ti%E1%BA%BFt" in page
    assert "<b>&#34;" not in page and "&lt;b&gt;" in page
    assert "Keywords" in page
    found = client.get("/?keyword=thoi+tiet", headers={"Accept": "text/html"}).text
    assert "2 articles" in found and "Giá vàng" not in found
    assert 'name="keyword" value="thoi tiet"' in found
    assert "<h3>Keywords</h3>" in found


def test_exports_have_them(client: httpx.Client, tmp_path: Path) -> None:
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["title"]: row["keywords"] for row in rows}["Nắng nóng"] == "thời tiết"
    said = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    lines = [json.loads(line) for line in said]
    assert {one["title"]: one.get("keywords") for one in lines}["Nắng nóng"] == ["thời tiết"]
