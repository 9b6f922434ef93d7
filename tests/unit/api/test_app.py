"""The running server over a real store: JSON, pages, errors, the gate in front."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from newscrawler.api.access import Access, make_token
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.store import open_store
from tests.fixtures_browser import ATTACK, NOW, SITES, article_id

SECRET = "0123456789abcdef" * 2
PAGE = {"Accept": "text/html"}


@pytest.fixture
def client(search_page: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=search_page) as http:
        yield http


@pytest.fixture
def guarded(filled_folder: Path) -> Iterator[httpx.Client]:
    """The same server with a token secret, as if it were bound to all addresses."""
    access = Access(secret=SECRET, host="0.0.0.0", allowed_hosts=frozenset({"news.example.org"}))
    deps = Deps(
        store=open_store("", filled_folder),
        access=access,
        sites=SITES,
        clock=lambda: NOW.timestamp(),
    )
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url) as http:
        yield http
    running.stop()


def token(days: float = 1) -> str:
    return make_token(SECRET, days=days, clock=lambda: NOW.timestamp())


class Elements(HTMLParser):
    """Every start tag with its attributes, as a browser would see them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


# ---------------------------------------------------------------- JSON


@pytest.mark.parametrize("query", ["bóng đá", "bong da"])
def test_search_finds_with_and_without_diacritics(client: httpx.Client, query: str) -> None:
    answer = client.get("/api/search", params={"q": query, "size": 5}).json()
    assert answer["total"] == 10
    assert len(answer["hits"]) == 5
    for hit in answer["hits"]:
        assert "bóng đá" in hit["title"]
        start, end = hit["title_marks"][0]
        assert hit["title"][start:end] == "bóng đá"
    assert set(answer["facets"]) == {
        "site",
        "day",
        "author",
        "section",
        "keyword",
        "lang",
        "without",
    }


def test_the_answer_and_the_page_say_how_a_query_was_read(client: httpx.Client) -> None:
    asked = {"q": "bóng OR đá -<b>x</b> after:mai"}
    answer = client.get("/api/search", params=asked).json()
    assert answer["read_as"] == 'bóng OR (đá -<b>x</b> "after:mai")'
    assert "after:mai: not a day" in answer["notes"][0]
    page = client.get("/", params=asked, headers=PAGE).text
    assert (
        "Read as: <code>bóng OR (đá -&lt;b&gt;x&lt;/b&gt; &#34;after:mai&#34;)</code>" in page
        and "not a day" in page
    )
    assert "Read as" not in client.get("/", params={"q": "bóng  đá"}, headers=PAGE).text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("search?q=x&afer=2026-01-01", "afer: not a parameter of this address; did you mean after?"),
        ("search?q=x&Site=a.vn", "Site: not a parameter of this address; did you mean site?"),
        ("trends?dya=1&%C4%91%C3%A2u", "dya: not a parameter of this address; did you mean day?; đâu:"),
        ("search/semantic?q=x&zzzz=1", "zzzz: not a parameter of this address; it knows q, page, size"),
        ("status?fresh=1", "fresh: not a parameter of this address, which knows none"),
    ],
)  # fmt: skip
def test_an_unknown_parameter_is_refused_by_name(
    client: httpx.Client, asked: str, said: str
) -> None:
    answer = client.get(f"/api/{asked}")
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert said in answer.json()["detail"]
    assert len(client.get(f"/api/status?{'x' * 2_000}=1").json()["detail"]) < 200


def test_every_route_of_programs_refuses_what_it_does_not_know(client: httpx.Client) -> None:
    """Before it does anything, whatever its method; and says so in /openapi.json."""
    paths = client.get("/openapi.json").json()["paths"]
    asked = 0
    for path, methods in paths.items():
        for method, operation in methods.items():
            if not path.startswith("/api/"):
                continue
            asked += 1
            problems = operation["responses"]["422"]["content"]
            assert list(problems) == ["application/problem+json"], path
            address = re.sub(r"{\w+}", "aa11bb22cc33dd44", path)
            answer = client.request(method, address, params={"utm_sourse": "x"})
            assert answer.status_code == 422, (method, path, answer.text)
            assert "utm_sourse: not a parameter" in answer.json()["detail"]
    assert asked > 30


def test_pages_ignore_what_they_do_not_know(client: httpx.Client) -> None:
    for path in (
        "/",
        "/attention",
        "/trends",
        "/sites",
        "/fleet",
        f"/article/{article_id('edited')}",
    ):
        answer = client.get(path, params={"q": "bóng đá", "utm_source": "mail"}, headers=PAGE)
        assert answer.status_code == 200, path
    assert client.get("/healthz?probe=1").status_code == 200


def test_days_of_parameters_are_written_as_in_a_query_and_of_a_zone(client: httpx.Client) -> None:
    def total(**asked: str) -> int:
        found: int = client.get("/api/search", params={"size": 1, **asked}).json()["total"]
        return found

    day = total(after="2026-11-20", before="2026-11-21")
    assert 0 < day < 66
    assert day == total(after="20/11/2026", before="21-11-2026")
    assert day == total(after="2026-11-20T07:00+07:00", before="2026-11-21T00:00Z")
    moved = {"after": "2026-11-20T07:00", "before": "2026-11-21T07:00"}
    assert day == total(**moved, zone="Asia/Ho_Chi_Minh")


def test_search_pages_do_not_overlap(client: httpx.Client) -> None:
    ids = []
    for page in range(4):
        answer = client.get("/api/search", params={"page": page, "size": 20, "sort": "date"}).json()
        ids += [hit["id"] for hit in answer["hits"]]
    assert answer["total"] == 66
    assert len(ids) == 66 == len(set(ids))


def test_search_is_narrowed_by_site_and_day(client: httpx.Client) -> None:
    params = {"site": "tuoitre.vn", "after": "2026-11-20", "before": "2026-11-21"}
    hits = client.get("/api/search", params=params).json()["hits"]
    assert hits
    assert {hit["site"] for hit in hits} == {"tuoitre.vn"}
    assert {hit["published"][:10] for hit in hits} == {"2026-11-20"}


def test_an_article_and_its_versions(client: httpx.Client) -> None:
    article = client.get(f"/api/articles/{article_id('edited')}").json()
    versions = client.get(f"/api/articles/{article_id('edited')}/versions").json()
    assert article["version"] == 2
    assert article["title"].endswith("lên 13")
    assert [v["version"] for v in versions] == [1, 2]
    assert "12" in versions[0]["content"]


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/api/search?page=-1", 422, "page"),
        ("/api/search?size=101", 422, "size"),
        ("/api/search?mode=semantic", 400, "no search by meaning"),
        ("/api/search?mode=telepathy", 422, "mode"),
        ("/api/search?after=yesterday", 400, "after=yesterday"),
        ("/api/search?zone=Mars/Olympus", 400, "zone=Mars/Olympus"),
        ("/api/search?q=-b%C3%A3o", 400, "no word to look for"),
        ("/api/search?page=9999&size=100", 400, "deep"),
        ("/api/search?q=" + "x" * 2001, 422, "q:"),
        ("/api/articles/" + "0" * 32, 404, "no article"),
        ("/api/articles/..%2f..%2fetc", 404, "Not Found"),
        ("/api/articles/xyz", 422, "article_id"),
        ("/api/nothing", 404, "Not Found"),
        ("/api/frontier", 503, "no Redis in this test"),
    ],
)
def test_errors_say_what_is_wrong(client: httpx.Client, path: str, status: int, word: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert word in answer.json()["error"]


def test_only_reading_is_possible(client: httpx.Client) -> None:
    for path in ("/api/search", "/api/sites", "/"):
        refused = client.post(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/api/search", "/"])
def test_the_same_hits_are_not_sent_again_however_long_they_took(
    client: httpx.Client, path: str
) -> None:
    asked = {"params": {"q": "giá xăng"}, "headers": {"Accept": "text/html"}}
    answers = [client.get(path, **asked) for _ in range(5)]  # type: ignore[arg-type]
    tags = {answer.headers["etag"] for answer in answers}
    assert len(tags) == 1
    asked["headers"]["If-None-Match"] = tags.pop()
    assert client.get(path, **asked).status_code == 304  # type: ignore[arg-type]
    asked["params"]["q"] = "giá vàng"
    assert client.get(path, **asked).status_code == 200  # type: ignore[arg-type]


def test_status_and_probe_without_redis(client: httpx.Client) -> None:
    status = client.get("/api/status").json()
    assert status["articles"] == 66
    assert status["workers"] == 0 and status["queued"] is None
    assert status["problems"] == ["no Redis in this test"]
    probe = client.get("/healthz")
    assert probe.status_code == 200
    assert probe.json()["service"] == "newscrawler"


def test_openapi_names_every_route_and_docs_need_no_cdn(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {
        "/api/search",
        "/api/articles/{article_id}",
        "/api/sites",
        "/api/frontier",
        "/api/workers",
    } <= set(paths)
    html = client.get("/docs").text
    for path in paths:
        assert path in html
    assert "//cdn" not in html


def test_metrics_are_prometheus_text(client: httpx.Client) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "newscrawler_store_articles 66.0" in answer.text
    assert 'newscrawler_up{part="redis"} 0.0' in answer.text


# ---------------------------------------------------------------- pages

PAGES = [
    "/",
    "/?q=b%C3%B3ng+%C4%91%C3%A1",
    "/?q=khongcogi123",
    "/?q=ATTACK&site=x&after=2026-01-01",
    "/sites",
    "/frontier",
    "/docs",
]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_stands_alone(client: httpx.Client, path: str) -> None:
    answer = client.get(path, headers=PAGE)
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    elements = Elements(answer.text).found
    for tag, attributes in elements:
        source = attributes.get("src") or (attributes.get("href") if tag == "link" else "") or ""
        if attributes.get("rel") == "alternate":  # a feed: read by programs, not by the page
            assert source.startswith("/feed."), source
            continue
        assert not source or source.startswith("/static/"), (tag, source)
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (
            tag,
            attributes,
        )
        if source:
            assert client.get(source).status_code == 200
    assert ("title", {}) in elements


@pytest.mark.parametrize(
    "path", ["/?q=t%E1%BA%A5n+c%C3%B4ng", "/article/" + article_id("attack"), "/sites"]
)
def test_markup_in_an_article_stays_text(client: httpx.Client, path: str) -> None:
    html = client.get(path, headers=PAGE).text
    elements = Elements(html).found
    assert "<script>window" not in html
    assert not [tag for tag, _ in elements if tag == "img"]
    assert len([tag for tag, _ in elements if tag == "script"]) == 1
    assert not [a for _, a in elements if (a.get("href") or "").lower().startswith("javascript")]
    if path != "/sites":
        assert "&lt;script&gt;" in html  # it is shown, as text


@pytest.mark.parametrize(
    "value", [ATTACK, '"><svg onload=alert(1)>', "' autofocus onfocus=alert(1) '"]
)
@pytest.mark.parametrize("name", ["q", "site", "after", "before", "sort"])
def test_markup_in_the_address_stays_text(client: httpx.Client, name: str, value: str) -> None:
    html = client.get("/", params={name: value}, headers=PAGE).text
    for tag, attributes in Elements(html).found:
        assert tag != "img" and (tag != "svg" or "onload" not in attributes)
        assert "onfocus" not in attributes


def test_a_search_page_shows_highlights_facets_and_pages(client: httpx.Client) -> None:
    html = client.get("/", params={"q": "bản tin"}, headers=PAGE).text
    assert re.search(r"<mark>[Bb]ản tin</mark>", html), "a compound is one mark"
    assert "Tuổi Trẻ" in html and "site=tuoitre.vn" in html
    assert 'rel="next"' in html and 'rel="prev"' not in html
    second = client.get("/", params={"q": "bản tin", "page": 1}, headers=PAGE).text
    assert 'rel="prev"' in second


def test_the_article_page_shows_its_change_and_its_copies(client: httpx.Client) -> None:
    html = client.get(f"/article/{article_id('edited')}", headers=PAGE).text
    assert "<del>12</del><ins>13</ins>" in html
    assert "json-ld" in html
    copies = client.get(f"/article/{article_id('cap-b')}", headers=PAGE).text
    assert article_id("cap-a") in copies


def test_who_is_credited_stands_where_there_is_no_author(client: httpx.Client) -> None:
    assert client.get(f"/api/articles/{article_id('tin-0')}").json()["credits"] == ["TTXVN"]
    alone, signed = (
        client.get(f"/article/{article_id(n)}", headers=PAGE).text for n in ("tin-0", "tin-1")
    )
    assert '<span class="authors" lang="vi">TTXVN</span>' in alone and "TTXVN" not in signed
    found = client.get("/", params={"q": "author:ttxvn"}, headers=PAGE).text
    assert "<span>TTXVN</span>" in found
    assert client.get("/api/search", params={"q": "author:ttxvn"}).json()["hits"][0]["credits"] == [
        "TTXVN"
    ]


def test_an_unknown_article_is_a_page_that_says_so(client: httpx.Client) -> None:
    answer = client.get("/article/" + "0" * 32, headers=PAGE)
    assert answer.status_code == 404
    assert "no article with this id" in answer.text


def test_the_empty_state_says_what_the_crawl_does(tmp_path: Path) -> None:
    running = start_in_thread(create_app(Deps(store=open_store("", tmp_path), sites=SITES)))
    try:
        html = httpx.get(running.url, headers=PAGE).text
    finally:
        running.stop()
    assert "No articles yet" in html
    assert "No worker is running" in html
    assert 'data-live="queued"' in html


@pytest.mark.parametrize(
    "path",
    ["/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/.hidden", "/static/nothing.css"],
)
def test_static_files_are_only_those_of_the_package(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


# ---------------------------------------------------------------- the gate


def test_a_foreign_host_header_is_refused(client: httpx.Client) -> None:
    assert client.get("/api/status", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/api/status", headers={"Host": "localhost:1"}).status_code == 200


def test_a_secret_closes_everything_but_the_probe(guarded: httpx.Client) -> None:
    assert guarded.get("/healthz").status_code == 200
    for path in ("/api/search", "/api/status", "/metrics", "/openapi.json", "/docs"):
        answer = guarded.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (
        guarded.get("/api/search", headers={"Authorization": f"Bearer {token()}"}).status_code
        == 200
    )
    assert (
        guarded.get("/api/search", headers={"Authorization": f"Bearer {token(-1)}"}).status_code
        == 401
    )


def test_a_browser_is_asked_for_its_token_and_keeps_it(guarded: httpx.Client) -> None:
    asked = guarded.get("/sites?x=1", headers=PAGE)
    assert asked.status_code == 303
    assert asked.headers["location"] == "/login?next=/sites%3Fx%3D1"
    assert "A token is needed" in guarded.get(asked.headers["location"], headers=PAGE).text
    wrong = guarded.post("/login", data={"token": "nonsense", "next": "/sites"})
    assert wrong.status_code == 401
    right = guarded.post("/login", data={"token": token(), "next": "/sites"})
    assert right.status_code == 303 and right.headers["location"] == "/sites"
    assert (
        "HttpOnly" in right.headers["set-cookie"]
        and "SameSite=strict" in right.headers["set-cookie"]
    )
    assert guarded.get("/sites", headers=PAGE).status_code == 200


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_the_login_leads_nowhere_else(guarded: httpx.Client, target: str) -> None:
    answer = guarded.post("/login", data={"token": token(), "next": target})
    assert answer.headers["location"] == "/"


def test_a_form_from_another_site_is_refused(guarded: httpx.Client) -> None:
    answer = guarded.post(
        "/login", data={"token": token()}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403


def test_an_answer_does_not_wait_for_nagle(client: httpx.Client) -> None:
    """Headers and body are two packets: with Nagle's algorithm each answer takes 40 ms more."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        client.get("/static/favicon.svg")
        times.append(time.perf_counter() - start)
    assert sorted(times)[2] < 0.03


@pytest.mark.parametrize("path", ["/healthz", "/sites", "/api/search?q=tin", "/metrics"])
def test_head_answers_as_get_without_a_body(client: httpx.Client, path: str) -> None:
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-type"] == got.headers["content-type"]
    assert client.head("/nothing").status_code == 404


def test_copies_stand_below_who_published_first(client: httpx.Client) -> None:
    """Folded, in the page itself: no script is needed to open them."""
    html = client.get("/", params={"q": "cầu mới sông hương"}, headers=PAGE).text
    assert "1 story <small>in 2 articles</small>" in html
    assert len(re.findall('<li class="hit">', html)) == 1
    first, below = html.split('<details class="copies">')
    assert article_id("cap-a") in first and article_id("cap-b") not in first
    assert article_id("cap-b") in below and "1 copy <span>Dân trí</span>" in below
    apart = client.get("/", params={"q": "cầu mới sông hương", "copies": "apart"}, headers=PAGE)
    assert len(re.findall('<li class="hit">', apart.text)) == 2 and "2 articles" in apart.text
    assert "<details class=" not in apart.text.split("<aside")[0]


def test_the_search_pages_to_the_total_of_its_stories(client: httpx.Client) -> None:
    """66 articles, two of them copies: the choice is kept from page to page, none comes twice."""
    seen: list[str] = []
    page, html = 0, ""
    while True:
        html = client.get("/", params={"page": page}, headers=PAGE).text
        seen += re.findall(r'<h2 [^>]*><a href="/article/(\w+)"', html)
        if 'rel="next"' not in html:
            break
        page += 1
    assert page == 3 and len(seen) == len(set(seen)) == 65
    apart = client.get("/", params={"copies": "apart"}, headers=PAGE).text
    assert re.search(r'rel="next" href="/\?copies=apart&amp;page=1"', apart)


def links(html: str, inside: str) -> list[str]:
    part = html.split(inside, 1)[1]
    return [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]*)"', part)]


def test_filters_are_chosen_kept_and_taken_off_one_by_one(client: httpx.Client) -> None:
    html = client.get("/", params={"q": "tin"}, headers=PAGE).text
    facets = html.split("<aside")[1]
    for label in ("Site", "Authors", "Section", "Language", "Day"):
        assert f"<h3>{label}" in facets, label
    assert "Sat 21 Nov 2026" in facets and "Vietnamese" in facets
    by = next(one for one in links(html, "<h3>Authors") if "author=" in one)
    html = client.get(by, headers=PAGE).text
    both = next(one for one in links(html, "<h3>Site") if "site=tuoitre" in one)
    assert "author=" in both
    html = client.get(both, headers=PAGE).text
    chips = html.split('<p class="chips">')[1].split("</p>")[0]
    assert chips.count('class="chip"') == 2 and "Remove all" in chips
    assert "Site</span> Tuổi Trẻ" in chips and "Authors</span> " in chips
    without = links(html, '<p class="chips">')
    assert "author=" in without[0] and "site=" not in without[0]
    assert "author=" not in without[1] and "site=tuoitre.vn" in without[1]
    assert "author=" not in without[2] and "site=" not in without[2]


def test_all_values_of_a_facet_stand_on_a_page_of_their_own(client: httpx.Client) -> None:
    more = "/facet?key=day&q=tin"
    page = client.get(more, headers=PAGE)
    days = client.get("/api/attention", params={"q": "tin"}).json()["steps"]
    assert page.status_code == 200 and page.text.count("<li>") == len(days) >= 8
    some = client.get(more, params={"within": "17/11/2026", "q": "tin", "key": "day"}, headers=PAGE)
    assert "Tue 17 Nov 2026" in some.text and "18 Nov 2026" not in some.text
    found = client.get(
        "/facet", params={"key": "author", "within": "tran", "q": "tin"}, headers=PAGE
    )
    assert "Trần Quốc Đạt" in found.text and "Phạm Thu Hằng" not in found.text
    none = client.get("/facet", params={"key": "author", "within": ATTACK}, headers=PAGE)
    assert none.status_code == 200 and "<img" not in none.text
    sites = client.get("/facet", params={"key": "site", "within": "tuổi"}, headers=PAGE).text
    assert "Tuổi Trẻ" in sites and "VnExpress" not in sites.split("<main")[1]
    assert client.get("/facet", params={"key": "title"}, headers=PAGE).status_code == 422
    assert client.get("/facet", params={"key": "day", "q": "-a"}, headers=PAGE).status_code == 400


def test_a_small_chart_leads_to_its_days_and_to_the_whole_one(client: httpx.Client) -> None:
    html = client.get("/", params={"q": "central bank"}, headers=PAGE).text
    assert '<figure class="outline"' not in html  # too few to say anything
    html = client.get("/", params={"q": "giá xăng"}, headers=PAGE).text
    chart = html.split('<figure class="outline"')[1].split("</figure>")[0]
    bars = [one for one in links(chart, "<svg") if one.startswith("/?")]
    assert bars and all("q=gi%C3%A1+x%C4%83ng" in one and "after=2026-11-" in one for one in bars)
    total = client.get("/api/search", params={"q": "giá xăng"}).json()["total"]
    assert sum(int(n) for n in re.findall(r"<title>[^<]*: (\d+)</title>", chart)) == total >= 10
    assert links(chart, "<figcaption")[0].startswith("/attention?q=")
    assert "outline" not in client.get("/", headers=PAGE).text.split("<main")[1]


def test_what_would_be_an_empty_feed_is_not_offered(client: httpx.Client) -> None:
    html = client.get("/", params={"q": "giá xăng"}, headers=PAGE).text.split('<dl class="take">')[
        1
    ]
    assert 'href="/feed.rss?q=gi' in html
    found = client.get("/", params={"q": "xăng dầu zzqqzz"}, headers=PAGE).text
    assert "No article has all of these words" in found
    take = found.split('<dl class="take">')[1].split("</dl>")[0]
    assert "/feed." not in take and "all of the words as typed" in take
    assert "/api/export?" in take
