"""Searches as feeds: read by a feed reader, asked for again, escaped."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import feedparser
import httpx
import pytest
from scrapy.settings import Settings

from newscrawler.api.access import COOKIE, Access, make_token
from newscrawler.api.app import create_app
from newscrawler.api.audit import FILE as AUDIT_FILE
from newscrawler.api.audit import AuditLog
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.api.tokens import TokenBook
from newscrawler.store import open_store
from tests.fixtures_browser import ATTACK, NOW, SITES, article_id

FORMS = ("rss", "atom", "json")


@pytest.fixture
def client(search_page: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=search_page) as http:
        yield http


def parsed(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    feed = feedparser.parse(answer.content, response_headers=dict(answer.headers))
    assert not feed.bozo, feed.get("bozo_exception")
    return feed


@pytest.mark.parametrize(("form", "version"), [("rss", "rss20"), ("atom", "atom10")])
def test_a_reader_finds_what_the_search_finds_newest_first(
    client: httpx.Client, form: str, version: str
) -> None:
    asked = {"q": "bóng đá", "sort": "date", "mode": "keyword", "size": 50}
    hits = client.get("/api/search", params=asked).json()["hits"]
    feed = parsed(client.get(f"/feed.{form}", params={"q": "bóng đá"}))
    assert feed.version == version
    assert [entry.title for entry in feed.entries] == [hit["title"] for hit in hits]
    assert [entry.link for entry in feed.entries] == [hit["url"] for hit in hits]
    assert feed.entries[0].id == f"urn:newscrawler:article:{hits[0]['id']}"
    assert feed.entries[0].published_parsed and feed.entries[0].summary
    written = [[a.get("name") for a in entry.get("authors", [])] for entry in feed.entries]
    assert any(written) and written == [hit["authors"] for hit in hits]
    assert feed.feed.title == "bóng đá – newscrawler"
    assert httpx.URL(feed.feed.link).params["q"] == "bóng đá"


def test_json_feed(client: httpx.Client) -> None:
    answer = client.get("/feed.json", params={"q": "bóng đá", "site": "vnexpress.net"})
    assert answer.headers["content-type"].startswith("application/feed+json")
    feed = answer.json()
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert feed["feed_url"] == str(answer.url)
    items = feed["items"]
    assert items and len({item["id"] for item in items}) == len(items)
    for item in items:
        assert {"id", "url", "title", "content_text", "date_published"} <= set(item)


def test_a_reader_that_has_it_is_told_so(client: httpx.Client) -> None:
    for form in FORMS:
        first = client.get(f"/feed.{form}", params={"q": "bóng"})
        tag, changed = first.headers["etag"], first.headers["last-modified"]
        assert parsedate_to_datetime(changed).year == 2026
        for headers in (
            {"If-None-Match": tag},
            {"If-None-Match": f'"other", W/{tag}'},
            {"If-Modified-Since": changed},
        ):
            again = client.get(f"/feed.{form}", params={"q": "bóng"}, headers=headers)
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
        for headers in (
            {"If-None-Match": '"other"', "If-Modified-Since": changed},
            {"If-Modified-Since": "Sat, 01 Aug 2020 00:00:00 GMT"},
            {"If-Modified-Since": "yesterday"},
        ):
            again = client.get(f"/feed.{form}", params={"q": "bóng"}, headers=headers)
            assert again.content == first.content


@pytest.mark.parametrize("form", FORMS)
def test_what_a_site_wrote_stays_text(client: httpx.Client, form: str) -> None:
    answer = client.get(f"/feed.{form}", params={"q": "tấn công"})
    assert b"<script" not in answer.content.lower() or form == "json"
    urn = f"urn:newscrawler:article:{article_id('attack')}"
    if form == "json":
        (item,) = [i for i in json.loads(answer.content)["items"] if i["id"] == urn]
        assert item["title"] == f"Tấn công {ATTACK}"
        assert "url" not in item, "no javascript: address"
        return
    feed = parsed(answer)
    (entry,) = [e for e in feed.entries if e.id == urn]
    assert "javascript:" not in entry.get("link", "")
    assert "<script" not in entry.summary or form == "atom"


def test_in_rss_markup_of_a_site_is_escaped_as_html(client: httpx.Client) -> None:
    root = ET.fromstring(client.get("/feed.rss", params={"q": "tấn công"}).content)
    texts = [e.text or "" for e in root.iter() if e.tag in ("title", "description")]
    assert any("&lt;script&gt;" in t for t in texts)
    assert not any("<script" in t for t in texts[3:])


def test_nothing_is_corrected_for_a_feed(client: httpx.Client) -> None:
    found = client.get("/api/search", params={"q": "bongs da"}).json()
    assert found["hits"] and found["relaxed"], "a person is shown what is near"
    feed = parsed(client.get("/feed.rss", params={"q": "bongs da"}))
    assert feed.entries == []


def test_the_page_names_the_feeds_of_its_search(client: httpx.Client) -> None:
    page = client.get("/", params={"q": 'a "b" <c>', "site": "vnexpress.net"}).text
    links = [line for line in page.splitlines() if 'rel="alternate"' in line]
    assert len(links) == 3
    assert "q=a+%22b%22+%3Cc%3E&amp;site=vnexpress.net" in links[0]
    assert 'type="application/atom+xml"' in links[1]
    assert "<c>" not in links[0]


def test_a_wrong_query_is_an_error_and_no_feed(client: httpx.Client) -> None:
    assert client.get("/feed.rss", params={"q": "x" * 3000}).status_code == 422
    assert client.get("/feed.xml").status_code == 404


# ---------------------------------------------------------------- where tokens are asked for
SECRET = "0123456789abcdef" * 2


class Clock:
    """The time of the server, in seconds after NOW."""

    later = 0.0

    def __call__(self) -> float:
        return NOW.timestamp() + self.later


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guarded(filled_folder: Path, tmp_path: Path, clock: Clock) -> Iterator[tuple[str, TokenBook]]:
    """The address of a server that asks for tokens, and those that it knows."""
    book = TokenBook(tmp_path)
    access = Access(SECRET, host="0.0.0.0", book=book)
    audit = AuditLog(tmp_path, clock)
    deps = Deps(
        store=open_store("", filled_folder), access=access, sites=SITES, audit=audit, clock=clock,
    )  # fmt: skip
    running = start_in_thread(create_app(deps))
    yield running.url, book
    running.stop()


@contextmanager
def logged_in(
    url: str, book: TokenBook, role: str = "reader"
) -> Iterator[tuple[httpx.Client, str]]:
    now = int(NOW.timestamp())
    issued = book.add(role, now, now + 86_400)
    token = make_token(SECRET, days=1, role=role, token_id=issued.id, clock=NOW.timestamp)
    page = {"Accept": "text/html", "Accept-Language": "en"}
    cookies = {COOKIE: token}
    with httpx.Client(base_url=url, headers=page, cookies=cookies, follow_redirects=True) as client:
        yield client, issued.id


def shown(page: httpx.Response) -> list[str]:
    assert page.status_code == 200, page.text
    return [html.unescape(one) for one in re.findall(r'href="(http[^"]+/feed\.[^"]+)"', page.text)]


def test_who_is_logged_in_is_given_addresses_that_a_feed_reader_can_use(
    guarded: tuple[str, TokenBook], clock: Clock
) -> None:
    url, book = guarded
    with logged_in(url, book) as (client, token_id):
        asked = {"q": "bóng đá", "site": "vnexpress.net"}
        assert "/follow?q=b%C3%B3ng" in client.get("/", params=asked).text
        before = client.get("/follow", params=asked)
        assert shown(before) == [] and "Make addresses" in before.text
        assert book.made_by(token_id) == [], "who looks makes nothing"
        made = client.post("/follow", params=asked)
        addresses = shown(made)
        assert len(addresses) == 3 and made.headers["cache-control"] == "no-store"
        for address in addresses:
            assert httpx.get(address).status_code == 200, "without a cookie"
            assert {k: httpx.URL(address).params[k] for k in asked} == asked
            elsewhere = httpx.URL(url).copy_with(path="/api/search", query=httpx.URL(address).query)
            assert httpx.get(elsewhere).status_code == 401, "it reads feeds and nothing else"
        assert shown(client.get("/follow", params=asked)) == addresses, "as long as they are good"
        clock.later = 60
        again = shown(client.post("/follow", params=asked))
        assert httpx.get(addresses[0]).status_code == 401 and httpx.get(again[0]).status_code == 200
        (entry,) = [one for one in book.made_by(token_id) if not one.revoked]
        own = book.known(token_id)
        assert own is not None and entry.expires == own.expires
        book.revoke(token_id, int(NOW.timestamp()))
        assert httpx.get(again[0]).status_code == 401, "it ends with the token of its reader"


def test_a_reader_fills_neither_the_tokens_nor_the_audit_log(
    guarded: tuple[str, TokenBook], clock: Clock
) -> None:
    url, book = guarded
    asked = {"q": "bóng đá"}
    with logged_in(url, book) as (client, token_id):
        pages = []
        for clock.later in range(0, 120, 10):
            pages.append(shown(client.post("/follow", params=asked)))
    assert len({page[0] for page in pages}) == 2, "one a minute"
    assert len(book.entries()) == 2 and len(book.made_by(token_id)) == 1
    log = (book.path.parent / AUDIT_FILE).read_text().splitlines()
    assert len(log) == 2, log


def test_a_token_for_feeds_makes_no_others(guarded: tuple[str, TokenBook]) -> None:
    url, book = guarded
    with logged_in(url, book, "feed") as (client, token_id):
        assert "/login" in str(client.post("/follow", params={"q": "bóng"}).url)
        assert book.made_by(token_id) == []
    other = {"Origin": "https://elsewhere.example"}
    with logged_in(url, book) as (reader, reader_id):
        assert reader.post("/follow", params={"q": "bóng"}, headers=other).status_code == 403
        assert book.made_by(reader_id) == []


def test_where_no_tokens_are_asked_for_the_addresses_are_as_they_stand(
    client: httpx.Client,
) -> None:
    page = client.get("/follow", params={"q": "bóng đá"}, headers={"Accept": "text/html"})
    assert len(shown(page)) == 3 and "token=" not in page.text
    assert client.post("/follow", params={"q": "bóng đá"}).status_code == 409


def test_behind_a_proxy_with_tls_the_addresses_are_those_of_the_proxy(
    guarded: tuple[str, TokenBook],
) -> None:
    """The token in them is not sent in clear."""
    url, book = guarded
    with logged_in(url, book) as (client, _):
        client.post("/follow", params={"q": "bóng"})
        proxy = {"X-Forwarded-Proto": "https"}
        addresses = shown(client.get("/follow", params={"q": "bóng"}, headers=proxy))
    assert len(addresses) == 3
    base = url.replace("http://", "https://")
    assert all(one.startswith(f"{base}/feed.") for one in addresses), addresses


def test_public_url_is_what_addresses_begin_with(filled_folder: Path) -> None:
    found = Settings({"PUBLIC_URL": "https://news.example.org/tin/"})
    deps = Deps(store=open_store("", filled_folder), sites=SITES, settings=found)
    running = start_in_thread(create_app(deps))
    try:
        with httpx.Client(base_url=running.url) as client:
            page = client.get("/follow", params={"q": "bóng đá"}, headers={"Accept": "text/html"})
            feed = client.get("/feed.atom", params={"q": "bóng đá"})
    finally:
        running.stop()
    assert all(one.startswith("https://news.example.org/tin/feed.") for one in shown(page))
    assert 'href="https://news.example.org/tin/feed.atom?q=b%C3%B3ng' in feed.text


def test_the_command_follows_the_search_and_runs_nothing_else(client: httpx.Client) -> None:
    asked = {"q": '"giá vàng" $(id)', "site": ["vnexpress.net", "dantri.com.vn"], "author": "Lan"}
    page = client.get("/follow", params=asked, headers={"Accept": "text/html"})
    command = re.search(r"scrapy follow add[^<]+", page.text)
    assert command is not None
    assert shlex.split(html.unescape(command[0])) == [
        "scrapy", "follow", "add", "NAME", '"giá vàng" $(id) author:"Lan"',
        "--site", "vnexpress.net,dantri.com.vn", "--mail", "ADDRESS",
    ]  # fmt: skip
    assert "$(id) author" in html.unescape(command[0]).split("'")[1], "in single quotes"
