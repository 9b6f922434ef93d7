"""Attention and trends over HTTP and in a browser."""

from __future__ import annotations

import csv
import io
import re

import httpx
import pytest

from tests.unit.api.test_bulk import client as client


def test_attention_counts_what_a_search_finds(client: httpx.Client) -> None:
    asked = {"q": '"giá xăng"'}
    found = client.get("/api/attention", params=asked).json()
    assert found["total"] == client.get("/api/search", params=asked).json()["total"] == 10
    assert sum(step["articles"] for step in found["steps"]) == 10
    for step in found["steps"]:
        assert sum(step["sites"].values()) == step["articles"] <= step["published"]
        assert step["share"] == (step["articles"] / step["published"] if step["published"] else 0)
    weeks = client.get("/api/attention", params=asked | {"per": "week"}).json()
    assert weeks["total"] == 10 and 0 < len(weeks["steps"]) <= 3


def test_attention_of_one_site_is_a_share_of_this_site(client: httpx.Client) -> None:
    found = client.get("/api/attention", params={"q": "giá", "site": "tuoitre.vn"}).json()
    whole = client.get("/api/attention", params={"site": "tuoitre.vn"}).json()
    assert {site for step in found["steps"] for site in step["sites"]} == {"tuoitre.vn"}
    assert whole["steps"] and all(step["share"] in (0, 1) for step in whole["steps"])


def test_attention_as_csv(client: httpx.Client) -> None:
    answer = client.get("/api/attention", params={"q": '"giá xăng"', "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"].startswith("text/csv")
    assert sum(int(row["articles"]) for row in rows) == 10
    assert {"day", "published", "share", "vnexpress.net"} <= set(rows[0])


@pytest.mark.parametrize("path", ["/api/attention?per=hour", "/api/trends?day=2999-01-01", "/api/trends?day=x"])  # fmt: skip
def test_what_cannot_be_answered_is_said(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (400, 422) and answer.json()["error"]


def test_pages_are_complete_without_script(client: httpx.Client) -> None:
    page = client.get("/attention?q=giá").text
    assert page.count('<rect class="hit"') == len(
        client.get("/api/attention?q=giá").json()["steps"]
    )
    assert "<script" not in page.split("</head>")[1] and "style=" not in page
    bars = [float(high) for high in re.findall(r'<rect class="c\d" x="[^"]+" y="[^"]+" width="8" height="([^"]+)"', page)]  # fmt: skip
    assert bars and max(bars) <= 100
    assert client.get("/attention?q=giá&show=share&per=week").status_code == 200
    assert "Nothing found" in client.get("/attention?q=title:khôngcógì").text


def test_a_chart_says_how_its_query_was_read(client: httpx.Client) -> None:
    """A chart of corrected words would pass for one of those that were typed."""
    answer = client.get("/api/attention", params={"q": '"giá xăgn"'}).json()
    assert answer["total"] == 10
    assert (answer["relaxed"], answer["corrections"]) == ("corrected", {"xagn": "xang"})
    assert (
        "<del>xagn</del> → <b>xang</b>" in client.get("/attention", params={"q": "giá xăgn"}).text
    )
    page = client.get("/attention", params={"q": '"mở thêm Hà Nội"'}).text
    assert "Read as: <code>mở thêm Hà Nội</code>" in page and "quotation marks" in page
    assert "notice" not in client.get("/attention", params={"q": "giá xăng"}).text


def test_trends_of_the_corpus(client: httpx.Client) -> None:
    found = client.get("/api/trends").json()
    assert found["day"] == "2026-11-21" and found["titles"] > 0 and found["past"] > 0
    page = client.get("/trends?day=2026-11-20").text
    assert "Rising on 20 Nov 2026" in page and "Day after" in page
