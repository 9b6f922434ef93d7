"""Export, cursor and citation over HTTP, on a real server."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.store import export, open_store
from newscrawler.store.days import zone_of
from tests.fixtures_browser import NOW, SITES, article_id, corpus


@pytest.fixture(scope="module")
def client(filled_folder: Path) -> Iterator[httpx.Client]:
    deps = Deps(
        store=open_store("", filled_folder),
        sites=SITES,
        redis_error="no Redis in this test",
        clock=lambda: NOW.timestamp(),
        zone=zone_of("Asia/Ho_Chi_Minh"),
    )
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url, timeout=60) as one:
        yield one
    running.stop()


def test_a_search_is_exported_as_csv(client: httpx.Client) -> None:
    answer = client.get("/api/export", params={"q": '"giá xăng"', "format": "csv"})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="news-2026-11-21.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    found = client.get("/api/search", params={"q": '"giá xăng"'}).json()
    assert len(rows) == found["total"] == 10
    assert all(row["title"].startswith("Giá xăng") for row in rows)


def test_filters_hold_for_an_export(client: httpx.Client) -> None:
    asked = {"site": "tuoitre.vn", "after": "2026-11-15"}
    answer = client.get("/api/export", params=asked | {"format": "jsonl"})
    articles = [json.loads(line) for line in answer.text.splitlines()]
    assert articles and {a["site"] for a in articles} == {"tuoitre.vn"}
    assert len(articles) == client.get("/api/search", params=asked | {"size": 1}).json()["total"]


def test_everything_is_exported_in_more_than_one_portion(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newscrawler.api.bulk.PORTION", 7)
    lines = client.get("/api/export", params={"format": "jsonl"}).text.splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(ids) == len(set(ids)) == len(corpus())


def test_formulas_are_quoted(client: httpx.Client) -> None:
    text = client.get("/api/export", params={"q": "title:tấn"}).text
    assert "Tấn công" in text and "\n=" not in text


def test_parquet_is_read_by_pyarrow(client: httpx.Client) -> None:
    answer = client.get("/api/export", params={"format": "parquet", "site": "tuoitre.vn"})
    table = pq.read_table(io.BytesIO(answer.content))
    assert table.num_rows == client.get("/api/search?site=tuoitre.vn").json()["total"]
    assert "Giá xăng" in "".join(table.column("title").to_pylist())


def test_without_pyarrow_it_says_what_is_missing(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(format_: str, file: Any) -> Any:
        raise export.ExportError("parquet needs pyarrow, which is not installed: pip install it")

    monkeypatch.setattr(export, "_sink", missing)
    answer = client.get("/api/export", params={"format": "parquet"})
    assert answer.status_code == 400 and "needs pyarrow" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/export?q=-site:x", 400, ""),
        ("/api/export?format=xml", 422, "format"),
        ("/api/export?after=someday", 400, "after"),
        ("/api/export?zone=Nowhere", 400, "zone"),
        ("/api/articles?cursor=abc", 400, "cursor"),
        ("/api/articles?size=501", 422, "size"),
        ("/api/articles/00000000/cite", 404, "no article"),
        ("/api/articles/00000000/cite?style=mla", 422, "style"),
    ],
)
def test_what_cannot_be_answered_is_said(
    client: httpx.Client, path: str, status: int, said: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == status and said in answer.text


def test_a_cursor_goes_to_the_end(client: httpx.Client) -> None:
    answer = client.get("/api/articles", params={"size": 9, "site": "vnexpress.net"}).json()
    found, total = answer["articles"], answer["total"]
    while answer["cursor"]:
        answer = client.get("/api/articles", params={"size": 9, "cursor": answer["cursor"]}).json()
        found += answer["articles"]
    ids = [a["id"] for a in found]
    assert len(ids) == len(set(ids)) == total > 9
    assert {a["site"] for a in found} == {"vnexpress.net"} and found[0]["content"]


@pytest.mark.parametrize(
    ("style", "media", "begins"),
    [
        ("apa", "text/plain", "Lê Hoàng Anh. (2026, November 21)."),
        ("bibtex", "application/x-bibtex", "@online{le2026ha"),
        ("ris", "application/x-research-info-systems", "TY  - NEWS"),
        ("csl-json", "application/vnd.citationstyles.csl+json", "["),
    ],
)
def test_an_article_is_cited(client: httpx.Client, style: str, media: str, begins: str) -> None:
    answer = client.get(f"/api/articles/{article_id('tin-2')}/cite", params={"style": style})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith(media)
    assert answer.text.startswith(begins) and "VnExpress" in answer.text


def test_pages_offer_both(client: httpx.Client) -> None:
    page = client.get("/?q=giá xăng&site=tuoitre.vn").text
    assert "/api/export?q=gi%C3%A1+x%C4%83ng&amp;site=tuoitre.vn&amp;format=csv" in page
    article = client.get(f"/article/{article_id('tin-2')}").text
    assert "Lê Hoàng Anh. (2026, November 21)." in article and "style=bibtex" in article
