"""The page of an article: sub-headings, its source as text, citation and export in sight."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.rawstore import RawStore
from newscrawler.store import open_store
from tests.fixtures_browser import ATTACK, NOW, SITES, article_id, make_article

PAGE = {"Accept": "text/html"}
HTML = f"<html><body><h1>Tin bão</h1>{ATTACK}<p>Gió mạnh.</p></body></html>"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("articles")
    raw = RawStore.open(str(folder / "warc"), "w1")
    ref = raw.write("https://vnexpress.net/tin.html", HTML.encode(), [], 200, NOW)
    raw.flush()

    async def fill() -> None:
        store = open_store("", folder)
        content = "Mở đầu tin bão.\n\nGió <b>giật</b>\n\nGió mạnh ở ven biển."
        await store.put(
            [
                make_article("one", "Tin bão", content, raw_ref=ref, subheadings=["Gió <b>giật</b>"],
                             image="https://img.example/a.jpg"),
                make_article("lost", "Tin lũ", "Nước lên ở hạ lưu.", image="javascript:alert(1)"),
                make_article("none", "Tin nắng", "Trời nắng to ở Huế.", raw_ref=None),
                make_article("doubt", "Tin mưa", "Mưa to ở Vinh.", authors=["An Bình"],
                             confidence={"title": 0.5, "authors": 0.7499, "published": 0.75,
                                         "content": 0.6, "section": 0.1}),
            ]
        )  # fmt: skip
        await store.close()

    asyncio.run(fill())
    deps = Deps(store=open_store("", folder), sites=SITES, raw=raw, clock=NOW.timestamp)
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url, headers=PAGE) as http:
        yield http
    running.stop()
    raw.close()


def test_sub_headings_are_headings(client: httpx.Client) -> None:
    html = client.get(f"/article/{article_id('one')}").text
    assert "<h2>Gió &lt;b&gt;giật&lt;/b&gt;</h2>" in html and "<p>Mở đầu tin bão.</p>" in html


def test_what_is_unsure_is_marked_where_it_is_read(client: httpx.Client) -> None:
    html = client.get(f"/article/{article_id('doubt')}").text
    [headline], [authors] = (
        re.findall(rf"<{tag}[^>]*>(.*?)</{tag.split()[0]}>", html, re.DOTALL)
        for tag in ("h1", 'span class="authors"')
    )
    assert (
        headline.startswith("Tin mưa") and "Of 100 values as sure as this one, 50 are" in headline
    )
    assert "An Bình" in authors and ">unsure</a>" in authors and "75 are right" in authors
    assert ">unsure</a>" not in re.findall(r"<time.*?</time>", html, re.DOTALL)[0]
    assert "Whether the text is whole" in html and 'id="origins"' in html
    # What an article does not have is not marked, nor what nobody is unsure of.
    assert html.count('class="unsure"') == 3
    assert 'class="unsure"' not in client.get(f"/article/{article_id('one')}").text


def test_programs_are_told_what_is_unsure(client: httpx.Client) -> None:
    wanted = ["title", "content", "authors"]
    article = client.get(f"/api/articles/{article_id('doubt')}").json()
    assert article["unsure"] == wanted and article["confidence"]["section"] == 0.1
    assert client.get(f"/api/articles/{article_id('one')}").json()["unsure"] == []
    for path in ("/api/search", "/api/search/keyword"):
        answer = client.get(path, params={"q": "mưa Vinh"}).json()
        (hit,) = answer.get("hits") or answer["content"]
        assert (hit["unsure"], hit["by_meaning"]) == (wanted, False)
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert "check them" in schemas["ArticleAnswer"]["properties"]["unsure"]["description"]


def test_the_source_is_shown_as_text(client: httpx.Client) -> None:
    path = f"/article/{article_id('one')}"
    assert f'href="{path}/source"' in client.get(path).text
    answer = client.get(path + "/source")
    assert answer.status_code == 200 and "&lt;h1&gt;Tin bão&lt;/h1&gt;" in answer.text
    assert "<img" not in answer.text and "<script>window" not in answer.text
    assert "https://vnexpress.net/tin.html" in answer.text


def test_a_page_that_is_not_kept_is_said_so(client: httpx.Client) -> None:
    none = f"/article/{article_id('none')}"
    assert "/source" not in client.get(none).text
    assert client.get(none + "/source").status_code == 404
    lost = client.get(f"/article/{article_id('lost')}/source")
    assert lost.status_code == 404 and "not kept any more" in lost.text
    assert client.get("/article/ffffffffffffffff/source").status_code == 404


def test_a_mistyped_address_is_no_article_to_a_reader(client: httpx.Client) -> None:
    answer = client.get("/article/xyz")
    assert answer.status_code == 404 and "There is no article with this id" in answer.text
    told = client.get("/api/articles/xyz", headers={"Accept": "application/json"})
    assert told.status_code == 422 and "pattern" in told.text, "a program is told what an id is"


def test_a_picture_is_an_address_and_never_loaded(client: httpx.Client) -> None:
    html = client.get(f"/article/{article_id('one')}").text
    assert re.search(r'<a href="https://img.example/a.jpg" rel="noopener noreferrer', html)
    assert "<img" not in html
    assert "javascript:" not in client.get(f"/article/{article_id('lost')}").text


def test_citation_and_export_are_in_sight(client: httpx.Client) -> None:
    html = client.get(f"/article/{article_id('one')}").text
    for style in ("bibtex", "ris", "csl-json"):
        assert f"cite?style={style}" in html
    assert f'href="/api/articles/{article_id("one")}"' in html
