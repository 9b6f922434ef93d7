"""The graph of links: what is noted of pages, what is answered, and the page in a real browser."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis.asyncio
from playwright.sync_api import sync_playwright

from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.crawl import link_graph
from newscrawler.crawl.link_graph import LinkNotes, PageLinks
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.frontier.taken import DOMAIN, URL, Entry, Taken
from newscrawler.items import Kind, Link
from newscrawler.store import open_store
from newscrawler.web.urls import url_id
from tests.fixtures_browser import SITES
from tests.unit.api.test_schema import crawl_settings

SITE = "vnexpress.net"
HOME = "https://vnexpress.net/"
ATTACK = "</title><script>window.stolen=1</script>"


def link(url: str) -> Link:
    return Link(url, url_id(url), url.split("/")[2], Kind.ARTICLE)


def article(number: int) -> str:
    return f"https://vnexpress.net/trang/{number}"  # no id in it: its url id is the address's


async def note(client: Any, pages: int = 2_000, articles: int = 40) -> None:
    """A home that links to all articles; each of these to the next one and to the first."""
    notes = LinkNotes(client, pages)
    every = [link(article(i)) for i in range(articles)]
    notes.note(SITE, url_id(HOME), HOME, "Trang chủ", every, 1_790_000_000)
    for i in range(articles):
        url = article(i)
        found = [link(HOME), every[0], every[(i + 1) % articles]]
        notes.note(SITE, url_id(url), url, f"Bài {i} {ATTACK}", found, 1_790_000_000 + i)
    await notes.flush(is_last=True)


@pytest.fixture(scope="module")
def server(
    filled_folder: Path, selector_redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    async def fill() -> None:
        async with redis.asyncio.Redis.from_url(selector_redis_url) as client:
            await client.flushall()
            await note(client)

    asyncio.run(fill())
    folder = tmp_path_factory.mktemp("graph")
    settings = crawl_settings(folder, selector_redis_url)
    client = redis.asyncio.Redis.from_url(selector_redis_url)
    frontier = Frontier(client, FrontierConfig(shards=1), "search-page")
    app = create_app(
        Deps(store=open_store("", filled_folder), sites=SITES, settings=settings, frontier=frontier)
    )
    running = start_in_thread(app)
    yield running.url
    running.stop()


# ---------------------------------------------------------------- what is kept
def test_a_page_is_a_few_bytes_a_link() -> None:
    links = [link(article(i)) for i in range(60)]
    data = link_graph.pack(1_790_000_000, HOME, "Trang chủ", links)
    assert len(data) < 60 * 5 + len(HOME) + 20
    page = link_graph.unpack(b"12345", data)
    assert (page.url, page.title, page.when_s) == (HOME, "Trang chủ", 1_790_000_000)
    assert page.to == [one.url_id[:5] for one in links]
    long = link_graph.pack(
        1, HOME + "x" * 9_000, "ữ" * 9_000, [link(article(i)) for i in range(999)]
    )
    assert len(link_graph.unpack(b"12345", long).to) == link_graph.MOST_LINKS
    late = link_graph.pack(9_000_000_000, "http://a.vn/\ud800", "\ud800", links)
    assert link_graph.unpack(b"12345", late).when_s == 2**32 - 1
    assert len(long) < 2_500


async def test_a_site_keeps_so_many_pages_and_the_newest_visit(selector_redis: Any) -> None:
    client = selector_redis
    await note(client, pages=20, articles=60)
    pages = await link_graph.pages_of(client, SITE)
    assert len(pages) == 20
    notes = LinkNotes(client, 20)
    notes.note(SITE, url_id(HOME), HOME, "", [link(article(3))], 1_800_000_000)
    await notes.flush(is_last=True)
    assert (await link_graph.pages_of(client, SITE))[url_id(HOME)[:5]].to == [
        link(article(3)).url_id[:5]
    ]
    off = LinkNotes(client, 0)
    off.note("b.vn", url_id(HOME), HOME, "", [], 1)
    await off.flush(is_last=True)
    assert await link_graph.sites_of(client) == [SITE]


async def test_what_was_taken_down_meanwhile_is_not_noted(selector_redis: Any) -> None:
    client = selector_redis
    taken = Taken(client, 1)
    await taken.put(
        {
            f"{URL}{url_id(article(0)).hex()}": Entry(article(0), "", "", ""),
            f"{DOMAIN}b.vn": Entry("b.vn", "", "", ""),
        }
    )
    notes = LinkNotes(client, 100, taken)
    for site, url in [(SITE, article(0)), (SITE, article(1)), ("b.vn", "https://m.b.vn/1")]:
        notes.note(site, url_id(url), url, "Tiêu đề", [], 1_800_000_000)
    await notes.flush(is_last=True)
    assert await link_graph.sites_of(client) == [SITE]
    assert [one.url for one in (await link_graph.pages_of(client, SITE)).values()] == [article(1)]


def test_noting_a_page_costs_next_to_nothing() -> None:
    """A page takes some 10 ms of a worker's CPU: a hundredth of it is the bound."""
    notes = LinkNotes(None, 2_000)  # type: ignore[arg-type]  # nothing is written
    links = [link(article(i)) for i in range(60)]
    best = 1.0
    for _ in range(5):
        begun = time.process_time()
        for number in range(200):
            notes.note(SITE, number.to_bytes(16, "big"), HOME, "Tiêu đề", links, 1)
        best = min(best, (time.process_time() - begun) / 200)
    assert best < 100e-6, f"{best * 1e6:.0f} us a page"


def test_a_graph_is_bounded_and_lies_apart() -> None:
    pages = {
        i.to_bytes(5, "big"): PageLinks(i.to_bytes(5, "big"), f"https://a.vn/{i}", "", 1)
        for i in range(3_000)
    }
    for i, page in enumerate(pages.values()):
        page.to = [((7 * i + step) % 3_000).to_bytes(5, "big") for step in range(20)]
    made = link_graph.graph(pages, [(0).to_bytes(5, "big")], 10, 500)
    assert len(made.nodes) == 500 and made.left_out > 0 and made.nodes[0].depth == 0
    assert all(0 <= one < 500 and 0 <= to < 500 and one != to for one, to in made.edges)
    assert len({(node.x, node.y) for node in made.nodes}) == 500
    assert link_graph.graph(pages, [b"nobod"], 3, 10).nodes == []
    assert len(link_graph.graph(pages, [(0).to_bytes(5, "big")], 0, 10).nodes) == 1


# ---------------------------------------------------------------- what is answered
def test_the_graph_of_a_site(server: str) -> None:
    found = httpx.get(f"{server}/api/graph?site={SITE}&depth=1&limit=30").json()
    assert len(found["nodes"]) == 30 and found["left_out"] == 11
    home = found["nodes"][0]
    assert home["url"] == HOME and home["depth"] == 0 and home["links_in"] == 40
    first = next(node for node in found["nodes"] if node["url"] == article(0))
    assert first["links_in"] == 40 and found["edges"]
    alone = httpx.get(f"{server}/api/graph?site={SITE}&depth=0").json()
    assert [node["url"] for node in alone["nodes"]] == [HOME]
    assert httpx.get(f"{server}/api/graph?site=la.vn").json() == {
        "nodes": [], "edges": [], "left_out": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "query", ["", "site=a.vn&depth=-1", "site=a.vn&limit=99999999", "site=a.vn&depth=x"]
)
def test_a_graph_that_cannot_be_is_refused(server: str, query: str) -> None:
    assert httpx.get(f"{server}/api/graph?{query}").status_code == 422


def test_the_graph_of_a_topic(server: str, selector_redis_url: str) -> None:
    """Its roots are the hits, those too whose own links are not remembered."""
    hits = httpx.get(f"{server}/api/search", params={"q": "bóng đá", "mode": "keyword"}).json()
    first, second, *others = [hit for hit in hits["hits"] if hit["site"] == SITE]
    assert others
    unread = "https://vnexpress.net/chua-doc-bao-gio"

    async def noted() -> None:
        async with redis.asyncio.Redis.from_url(selector_redis_url) as client:
            notes = LinkNotes(client, 2_000)
            to_second = Link(second["url"], bytes.fromhex(second["id"]), SITE, Kind.ARTICLE)
            found = [to_second, link(article(5)), link(unread)]
            notes.note(SITE, bytes.fromhex(first["id"]), first["url"], "Bài", found, 1_790_000_500)
            await notes.flush(is_last=True)

    asyncio.run(noted())
    asked = {"q": "bóng đá", "site": SITE, "depth": 1}
    made = httpx.get(f"{server}/api/graph", params=asked).json()
    places = {node["url"]: place for place, node in enumerate(made["nodes"])}
    roots = {node["url"] for node in made["nodes"] if node["depth"] == 0}
    assert roots == {hit["url"] for hit in (first, second, *others)}
    assert [places[first["url"]], places[second["url"]]] in made["edges"]
    assert made["nodes"][places[second["url"]]]["links_in"] == 1
    assert made["nodes"][places[second["url"]]]["title"] == second["title"]
    assert made["nodes"][places[article(5)]]["depth"] == 1 and unread not in places
    shown = httpx.get(f"{server}/graph", params=asked, headers={"Accept": "text/html"})
    assert shown.status_code == 200 and "<circle" in shown.text
    linking = httpx.get(f"{server}/api/links", params={"url": unread}).json()
    assert [row["url"] for row in linking] == [first["url"]], "of a page that nobody has read"


def test_who_links_to_a_page(server: str) -> None:
    rows = httpx.get(f"{server}/api/links", params={"url": article(7)}).json()
    assert {row["url"] for row in rows} == {HOME, article(6)}
    assert all(row["seen"].startswith("2026-") for row in rows)
    many = httpx.get(f"{server}/api/links", params={"url": article(0), "size": 5}).json()
    assert len(many) == 5
    assert httpx.get(f"{server}/api/links", params={"url": HOME + "khong-co"}).json() == []
    assert httpx.get(f"{server}/api/links", params={"url": "ftp://a.vn"}).status_code == 422
    assert httpx.get(f"{server}/graph", params={"url": "http://a.vn/x.png"}).status_code in (
        200,
        422,
    )


# ---------------------------------------------------------------- in a browser
@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1200, 860), (390, 844)])
def test_the_page_in_a_real_browser(server: str, width: int, height: int) -> None:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed")
        pytest.skip("Chromium is not installed (Debian: make browser-deps)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": width, "height": height}).new_page()
        complaints: list[str] = []
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{server}/graph?site={SITE}&depth=2")
        assert page.locator("#graph circle").count() == 41
        before = page.locator("#graph").evaluate("s => s.viewBox.baseVal.width")
        page.locator("[data-zoom]").first.click()
        assert page.locator("#graph").evaluate("s => s.viewBox.baseVal.width") < before
        page.locator("#graph a").nth(1).focus()
        assert page.locator("#graph line.on").count() > 0
        assert "Bài" in page.locator("#graph-name").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if shot := os.environ.get("GRAPH_PICTURES"):
            page.screenshot(path=f"{shot}/graph-{width}.png", full_page=True)
        page.goto(f"{server}/graph?url={article(7)}")
        assert page.locator(".linking li").count() == 2
        assert page.evaluate("window.stolen") is None and complaints == []
        browser.close()
