"""A piece of work from end to end, over HTTP, on a real server: ask, narrow, chart, follow, export,
cite. Every step goes on by a link of the page before it, as a person would."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from newscrawler.api.access import Access
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.store import open_store
from newscrawler.store.days import zone_of
from tests.fixtures_browser import NOW, SITES, fill, make_article, own_text


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[httpx.Client]:
    """A reader at a server over a store of its own, as another process fills it."""
    asyncio.run(fill(tmp_path))
    deps = Deps(
        store=open_store("", tmp_path), access=Access(), sites=SITES,
        redis_error="no Redis in this test", clock=lambda: NOW.timestamp(),
        zone=zone_of("Asia/Ho_Chi_Minh"),
    )  # fmt: skip
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url, timeout=60) as client:
        yield client
    running.stop()


class Page:
    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self.tree = LexborHTMLParser(answer.text)

    def text(self, selector: str) -> str:
        return " ".join(" ".join(n.text() for n in self.tree.css(selector)).split())

    def link(self, selector: str, says: Callable[[str], object] = bool) -> str:
        """The address of the first link there whose text is ``says``."""
        found = [(n.text().strip(), n.attributes["href"]) for n in self.tree.css(f"{selector} a")]
        return next(str(address) for text, address in found if says(text))


async def stored_later(folder: Path) -> None:
    store = open_store("", folder)
    news = make_article(
        "moi", "Giá xăng tăng trở lại", f"Giá xăng tăng 300 đồng. {own_text(7)}", site="tuoitre.vn",
        url="https://tuoitre.vn/moi.html", published=NOW - timedelta(minutes=5),
    )  # fmt: skip
    await store.put([news])
    await store.refresh()
    await store.close()


def test_a_journalist_asks_narrows_charts_follows_exports_and_cites(
    desk: httpx.Client, tmp_path: Path
) -> None:
    # Ask, with a slip: it is said how the words were understood.
    asked = Page(desk.get("/", params={"q": "giá xăngg"}))
    assert "xangg → xang" in asked.text(".notice"), asked.text(".notice")
    asked = Page(desk.get("/", params={"q": '"giá xăng"'}))
    assert asked.text("h1").startswith("10 articles")

    # Narrow: a site, then the days, by the page's own filters.
    narrow = asked.link(".facets", lambda name: name.startswith("Tuổi Trẻ"))
    page = Page(desk.get(narrow))
    count = int(re.match(r"\d+", page.text("h1"))[0])  # type: ignore[index]
    assert 0 < count < 10 and "Tuổi Trẻ" in page.text(".chips")
    assert {n.text() for n in page.tree.css(".hits .site")} == {"Tuổi Trẻ"}
    newest = Page(desk.get(page.link(".sorts", lambda name: name == "Newest")))
    times = [n.attributes["datetime"] for n in newest.tree.css(".hits time")]
    assert len(times) == count and times == sorted(times, key=str, reverse=True)

    # Chart: the same articles over time; a bar leads to its own.
    chart = Page(desk.get(newest.link("main", lambda name: name == "Over time")))
    data = desk.get(chart.link(".take", lambda name: name == "JSON")).json()
    assert data["total"] == count == sum(step["articles"] for step in data["steps"])
    table = list(
        csv.DictReader(io.StringIO(desk.get(chart.link(".take", lambda n: n == "CSV")).text))
    )
    assert [int(row["articles"]) for row in table] == [s["articles"] for s in data["steps"]]
    bar = Page(desk.get(chart.link("svg")))
    assert 0 < len(bar.tree.css(".hits > li")) <= count

    # Follow: what comes later is in the feed, and who has it already is told so.
    feed = newest.link(".take", lambda name: name == "RSS")
    first = desk.get(feed)
    titles = [item.findtext("title") for item in ET.fromstring(first.content).iter("item")]
    assert len(titles) == count
    known = {"If-None-Match": first.headers["etag"]}
    assert desk.get(feed, headers=known).status_code == 304
    asyncio.run(stored_later(tmp_path))
    later = desk.get(feed, headers=known)
    titles = [item.findtext("title") for item in ET.fromstring(later.content).iter("item")]
    assert len(titles) == count + 1 and titles[0] == "Giá xăng tăng trở lại"

    # Export: a row for each article of the search, also as JSON.
    rows = list(
        csv.DictReader(io.StringIO(desk.get(newest.link(".take", lambda n: n == "CSV")).text))
    )
    lines = desk.get(newest.link(".take", lambda name: name == "JSON lines")).text.splitlines()
    assert len(rows) == count + 1 and {row["site"] for row in rows} == {"tuoitre.vn"}
    assert {row["id"] for row in rows} == {json.loads(line)["id"] for line in lines}

    # Cite: the first of them, in two forms.
    article = Page(desk.get(Page(desk.get(narrow)).link(".hits h2")))
    address = article.link(".meta", lambda text: text.startswith("Read the original"))
    for name in ("BibTeX", "RIS"):
        said = desk.get(article.link("main .more", lambda text, name=name: text == name))
        assert said.status_code == 200 and address in said.text and "Tuổi Trẻ" in said.text
