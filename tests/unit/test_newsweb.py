"""The simulated news web is a measuring instrument: these tests check the instrument."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import ssl
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser

from newscrawler.discovery import sitefile
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets.schema import read_folder
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import dates, judge, sitesfile
from tests.newsweb.faults import FAULTS, gzip_bomb, to_cp1258
from tests.newsweb.language import BYLINES, Language, fold, rng_for, slugify
from tests.newsweb.markups import MARKUPS
from tests.newsweb.render import Frame, article_page
from tests.newsweb.templates import IP_SITES, TEMPLATES
from tests.newsweb.world import SimClock, Story, WebSite, World

START = "2026-11-20T08:00:00+07:00"


def fetch(
    url: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body); redirects are not followed."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=15)
    try:
        connection.request(
            method, parts.path + (f"?{parts.query}" if parts.query else ""), headers=headers or {}
        )
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


# ---------------------------------------------------------------- language
@pytest.fixture(scope="module")
def language() -> Language:
    return Language(3)


def test_vocabulary_is_large_and_has_all_vietnamese_letters(language: Language) -> None:
    assert len(set(language.forms)) >= 100_000
    letters = set("".join(language.forms[:20_000]))
    assert set("ăâđêôơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ") - letters <= set("ỳỵỷỹ")


def test_words_are_drawn_by_zipfs_law(language: Language) -> None:
    counts = Counter(language.words(rng_for("zipf"), 200_000))
    # rank r is drawn in proportion to 1 / (r + 2)
    tenth, hundredth = counts[language.forms[9]], counts[language.forms[99]]
    assert 6.5 < tenth / hundredth < 11
    assert len(counts) > 20_000


def test_slug_has_no_diacritics() -> None:
    assert slugify("Hà Nội: Đường sắt 'mới' tăng 7,5%") == "ha-noi-duong-sat-moi-tang-7-5"
    assert fold("Đắk Lắk") == "Dak Lak"


def test_every_byline_form_names_people_only(language: Language) -> None:
    for form in BYLINES:
        byline = language.byline(rng_for(form), form)
        for name in byline.authors:
            assert name in byline.text
            assert not re.search(r"\d|/|\(|Theo|Ảnh|PV", name)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("vnexpress", "Thứ tư, 22/10/2025, 19:25 (GMT+7)"),
        ("vietnamnet", "Thứ Tư, 22/10/2025 - 19:25"),
        ("vov", "Thứ Tư, 19:25, 22/10/2025"),
        ("nhandan", "Thứ Tư, ngày 22/10/2025 - 19:25"),
        ("qdnd", "Thứ tư, 22/10/2025"),
        ("cafef", "22-10-2025 - 19:25 PM"),
        ("dash", "- 22/10/2025 19:25"),
    ],
)
def test_visible_dates_are_as_the_sites_write_them(form: str, expected: str) -> None:
    assert dates.visible(form, 1761135900.0) == expected


def test_feed_dates_have_the_odd_forms() -> None:
    at = 1789528620.0  # 2026-09-16 10:17 in Hanoi
    assert dates.feed("us-nnbsp", at) == "9/16/2026 10:17:00\u202fAM"
    assert dates.feed("two-digit-year", at) == "Wed, 16 Sep 26 10:17:00 +0700"
    assert dates.feed("short-zone", at).endswith(" +07")


# ---------------------------------------------------------------- pages
def made(key: str) -> tuple[WebSite, list[Story], Frame]:
    world = World(5, SimClock())
    site = world.add_site(
        WebSite(world, key, key, TEMPLATES[key], "http", key, TEMPLATES[key].sections())
    )
    stories = [world.new_story(site, world.started - 3600.0 * n) for n in range(1, 9)]
    return site, stories, Frame(site)


@pytest.mark.parametrize("key", sorted(TEMPLATES))
def test_markup_of_every_site_is_found_by_its_selectors(key: str) -> None:
    site, stories, frame = made(key)
    story, m = stories[3], MARKUPS[key]
    html = article_page(story, story.first, frame, site.world.started, stories)
    tree = LexborHTMLParser(html)

    def texts(path: str) -> list[str]:
        return [" ".join(n.text().split()) for n in tree.css(sitesfile.css(path))]

    assert texts(m.title) == [" ".join(story.title.split())]
    assert len(texts(m.body)) == 1
    body = texts(m.body)[0]
    for _, paragraph in story.first.blocks:
        assert " ".join(paragraph.split()) in body
    assert dates.visible(m.date_form, story.published) in texts(m.date)[0]
    assert any(story.first.sapo in text for text in texts(m.sapo))
    if story.byline.text and (m.author or m.tail_author):
        assert any(
            " ".join(story.byline.text.split()) in text for text in texts(m.author or m.tail_author)
        )
    assert TEMPLATES[key].path_regex.search(story.path)
    assert 40_000 < len(html.encode()) < 160_000


@pytest.mark.parametrize("key", sorted(TEMPLATES))
def test_selector_sets_are_valid_and_leave_only_the_text(key: str) -> None:
    site, stories, frame = made(key)
    story = stories[2]
    document = sitesfile.selector_set("example.vn", MARKUPS[key])
    SelectorSet.from_dict(document)  # raises on anything that the program would refuse
    tree = LexborHTMLParser(article_page(story, story.first, frame, site.world.started, stories))
    content = document["variants"][0]["fields"]["content"]
    for css in content["exclude"]:
        for node in tree.css(content["root"][0]):
            for inner in node.css(css):
                if inner.mem_id != node.mem_id:
                    inner.decompose()
    got = " ".join(node.text(separator=" ") for node in tree.css(content["root"][0]))
    assert judge.token_f1(story.first.content, got) > 0.95


def test_bylines_of_every_form_occur_in_a_web(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", articles=10, rate=0, faults="none")
    lines = " | ".join(a["byline"] for a in web.articles())
    for piece in (
        "/VOV",
        "/TTXVN",
        "/Bnews/vnanet.vn",
        "(thực hiện)",
        "tổng hợp",
        "Tác giả: ",
        "- Ảnh: ",
        "(Theo Bloomberg)",
        "Theo Nhịp",
        "Nhóm PV",
    ):
        assert piece in lines


# ---------------------------------------------------------------- the running web
def test_each_site_has_home_sections_feeds_sitemaps_robots(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", articles=8, rate=0, faults="none")
    sites = json.loads(web.sites_file.read_text())["sites"]
    assert len(sites) == len(IP_SITES) >= 12
    for site in sites:
        challenged = "laodong" in site["notes"][0]
        for url in [site["home"], *site["sections"], *site["sitemaps"], *site["feeds"]]:
            status, _, body = fetch(url)
            if challenged:
                assert b"document.cookie" in body
            elif not ("/rss/" in url and status in (404, 302)):
                assert status == 200, url
                assert body, url
        assert fetch(site["home"] + "khong-co")[0] in (404, 200)
        status, _, body = fetch(site["home"] + "robots.txt")
        assert status in (200, 301, 404, 503)


def test_generated_files_are_taken_by_the_program(newsweb: StartNewsweb) -> None:
    for web in (newsweb("ip", articles=2, rate=0), newsweb("bench", hosts=2, pages=3)):
        sites, errors = sitefile.parse(web.sites_file.read_text(), "sites.json")
        assert errors == []
        assert [s.home for s in sites] == web.homes()
        sets = list(read_folder(web.selectors_dir))
        assert sets
        assert all(isinstance(document, dict) for _, document in sets), sets


def test_articles_are_of_real_size_and_all_match_the_pattern(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", articles=8, rate=0, faults="none")
    patterns = {
        s["id"]: s["article_pattern"] for s in json.loads(web.sites_file.read_text())["sites"]
    }
    sizes = []
    for row in web.articles(should_be_found=True):
        assert re.search(patterns[row["site"]], urlsplit(row["url"]).path), row["url"]
        if row["first_visible"] > time.time() - 5:  # a copy of another site's story that is to come
            continue
        status, _, body = fetch(row["url"])
        assert status == 200
        sizes.append(len(body))
    assert len(sizes) > 80
    sizes.sort()
    assert 50_000 < sizes[len(sizes) // 10] <= sizes[len(sizes) * 9 // 10] < 150_000


def links_of(body: str) -> set[str]:
    """Targets in list pages, feeds and sitemaps; what says nofollow is left out."""
    if re.search(r'name="robots" content="[^"]*nofollow', body):
        return set()
    anchors = [a for a in re.findall(r"<(?:a|link)\b[^>]*>", body) if 'rel="nofollow' not in a]
    found = {m[1] for a in anchors if (m := re.search(r'href="([^"]*)"', a))}
    return found | set(re.findall(r"<(?:loc|link)>([^<]*)<", body))


def text_of(url: str) -> str:
    _, headers, body = fetch(url)
    return (gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body).decode()


def reachable(site: dict[str, Any], rules: dict[str, Any]) -> set[str]:
    """Addresses on the lists of a site, three steps deep, as a polite crawler meets them."""
    base = site["home"].rstrip("/")
    article = re.compile(site["article_pattern"])
    seen = {u for name in ("sections", "feeds", "sitemaps") for u in site[name]} | {site["home"]}
    todo = list(seen)
    lists = {urlsplit(u).path.split(".")[0] for u in site["sections"]} | {
        "/tin-moi",
        "/hop-tac",
        "/sitemaps/",
        "/rss/",
    }
    for _ in range(4):
        found: set[str] = set()
        for url in todo:
            if any(urlsplit(url).path.startswith(rule) for rule in rules["disallow"]):
                continue
            found |= {u if u.startswith("http") else base + u for u in links_of(text_of(url))}
        found -= seen
        seen |= found
        todo = [u for u in found if u.startswith(base) and any(urlsplit(u).path.startswith(p) for p in lists)
                and (not article.match(urlsplit(u).path) or u in site["sections"])]  # fmt: skip
    return seen


def test_all_that_should_be_found_is_listed_and_the_hidden_is_not(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", articles=26, rate=0, faults="none")
    rows, rules = web.articles(), {r["site"]: r for r in web.truth() if r["type"] == "site"}
    index = judge._Index(list(rules.values()), rows)
    hidden = 0
    for site in json.loads(web.sites_file.read_text())["sites"]:
        if rules[site["id"]]["challenge"]:
            continue
        listed = {
            row["url"] for url in reachable(site, rules[site["id"]]) if (row := index.find(url))
        }
        mine = [r for r in rows if r["site"] == site["id"] and r["first_visible"] < time.time() - 5]
        assert {r["url"] for r in mine if r["should_be_found"]} <= listed, site["notes"]
        assert not [r["url"] for r in mine if r["why_not"] == "nofollow" and r["url"] in listed]
        hidden += sum(r["why_not"] == "nofollow" for r in mine)
    assert hidden > 5


def test_conditional_get_answers_304_until_the_story_is_edited(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=6, rate=0, duration=0.001, faults="none")
    url = next(a["url"] for a in web.articles(should_be_found=True) if not a["edits"])
    _, headers, before = fetch(url)
    assert fetch(url, {"If-None-Match": headers["etag"]})[0] == 304
    assert fetch(url, {"If-Modified-Since": headers["last-modified"]})[0] == 304
    row = web.edit(url, "digit")
    status, _, after = fetch(url, {"If-None-Match": headers["etag"]})
    assert status == 200
    assert after != before
    old, new = row["content"], row["edits"][-1]["content"]
    assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


def test_published_stories_appear_and_are_logged_with_agent_and_time(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=2, articles=3, rate=0, faults="none")
    home = web.home("vnexpress.net")
    story = web.publish("vnexpress.net")[0]
    before = time.time()
    for url in (home, home + "rss/home.rss", home + "sitemap.xml"):
        body = fetch(url, {"User-Agent": "tester/1"})[2].decode()
        assert url.endswith("sitemap.xml") or urlsplit(story["url"]).path in body
    hits = web.wait_for_hits(3)
    assert [h["ua"] for h in hits] == ["tester/1"] * 3
    assert [h["path"] for h in hits] == ["/", "/rss/home.rss", "/sitemap.xml"]
    assert all(before - 1 < h["time"] < time.time() + 1 and h["bytes"] > 100 for h in hits)
    end = time.monotonic() + 5
    while web.hits_file.read_text().count("\n") < 3:
        assert time.monotonic() < end, "the hits never reached the file"
        time.sleep(0.02)


def test_stories_of_the_future_come_out_by_the_clock(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=3, rate=3, duration=10, faults="none", start=START)
    now = web.clock()["now"]
    late = max(web.articles(), key=lambda a: float(a["first_visible"]))
    assert late["first_visible"] > now
    assert fetch(late["url"])[0] == 404
    web.clock(now=late["first_visible"] + 1)
    assert fetch(late["url"])[0] == 200


def test_same_seed_and_start_give_the_same_truth(newsweb: StartNewsweb) -> None:
    options: dict[str, Any] = {"sites": 3, "articles": 4, "start": START, "faults": "none"}
    one, two = newsweb("ip", **options), newsweb("ip", **options)
    first, second = ({urlsplit(a["url"]).path: a for a in web.articles()} for web in (one, two))
    assert list(first) == list(second)
    same = [
        path for path in first if first[path]["edits"] == second[path]["edits"]
    ]  # the two are asked one by one
    assert len(same) > len(first) / 2
    fields = ("title", "content", "published", "authors")
    assert [[first[path][f] for f in fields] for path in same] == [
        [second[path][f] for f in fields] for path in same
    ]
    other = newsweb("ip", seed=2, **options)
    assert {a["title"] for a in other.articles()}.isdisjoint(a["title"] for a in one.articles())


def test_a_redesign_changes_the_markup(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=4, rate=0, faults="none")
    url = web.articles(should_be_found=True)[0]["url"]
    assert b"title-detail" in fetch(url)[2]
    web.relayout("vnexpress.net")
    page = fetch(url)[2]
    assert b"nx-headline" in page
    assert b'class="title-detail"' not in page


def test_twins_serve_or_lead_to_the_story(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", articles=12, rate=0, faults="none")
    kinds = Counter()
    rows = [
        a
        for a in web.articles(special=None, should_be_found=True)
        if a["first_visible"] < time.time() - 5
    ]
    for row in rows[::7]:
        for twin in row["twins"]:
            status, headers, body = fetch(twin)
            kinds[status] += 1
            if status == 301:
                assert (
                    urlsplit(headers["location"]).path == urlsplit(row["url"]).path
                    or ".amp" in twin
                )
            else:
                assert status == 200, twin
                assert f'<link rel="canonical" href="{row["url"]}">' in body.decode()
    assert kinds[200] > 10


def test_pages_are_compressed_only_when_asked(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=2, rate=0, faults="none")
    plain = fetch(web.homes()[0])
    packed = fetch(web.homes()[0], {"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain[1]
    assert packed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain[2]


def test_requests_can_be_pipelined_and_head_has_no_body(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=2, rate=0, faults="none")
    host = urlsplit(web.homes()[0]).netloc
    address, port = host.split(":")
    with socket.create_connection((address, int(port)), timeout=10) as sock:
        one = f"GET /status/404 HTTP/1.1\r\nHost: {host}\r\n\r\n"
        last = f"HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        sock.sendall((one + one + last).encode())
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    assert answer.count(b"HTTP/1.1 404") == 2
    assert answer.endswith(b"Connection: close\r\n\r\n")
    assert fetch(web.homes()[0], method="POST")[0] == 405


# ---------------------------------------------------------------- faults
def test_every_fault_is_served_and_declared(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=2, rate=0)
    rows = {r["fault"]: r for r in web.truth() if r["type"] == "fault"}
    assert set(rows) == set(FAULTS)
    seen: dict[str, tuple[int, dict[str, str], bytes]] = {}
    for name, row in rows.items():
        if name in ("drop", "drop-once"):
            with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
                fetch(row["url"])
        elif name == "short-body":
            with pytest.raises(http.client.IncompleteRead):
                fetch(row["url"])
        else:
            seen[name] = fetch(row["url"])
    assert seen["429-once"][0] == 429 and seen["429-once"][1]["retry-after"] == "2"
    assert fetch(rows["429-once"]["url"])[0] == 200
    assert "retry-after" not in seen["429-bare"][1]
    assert [fetch(rows["429-always"]["url"])[0] for _ in range(2)] == [429, 429]
    assert fetch(rows["drop-once"]["url"])[0] == 200
    assert len(seen["big"][2]) >= 50_000_000
    assert len(seen["gzip-bomb"][2]) < 200_000
    assert len(gzip.decompress(seen["gzip-bomb"][2])) > 60_000_000
    with pytest.raises((EOFError, OSError, gzip.BadGzipFile)):
        gzip.decompress(seen["bad-gzip"][2])
    assert seen["nested"][2].count(b"<div>") == 100_000
    assert seen["redirect-metadata"][1]["location"].startswith("http://169.254.")
    assert b"document.cookie" in seen["challenge"][2]
    assert seen["lie-latin1"][1]["content-type"].endswith("iso-8859-1")
    title = next(a["title"] for a in web.articles() if a["url"] == rows["utf16"]["url"])
    assert title.replace("&", "&amp;") in seen["utf16"][2].decode("utf-16")


def test_windows_1258_can_be_read_back() -> None:
    import unicodedata

    text = "Đường sắt Hà Nội: ngượng nghịu, ấn tượng, quyển sổ, kỹ thuật, ữ ợ ẩ ẵ"
    assert unicodedata.normalize("NFC", to_cp1258(text).decode("cp1258")) == text


def test_feeds_that_attack_are_there(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=2, rate=0)
    home = next(h for h in web.homes() if ".200:" in h)
    assert fetch(home + "rss/bomb.rss")[2].count(b"<!ENTITY") == 10
    assert b'SYSTEM "http' in fetch(home + "rss/xxe.rss")[2]
    assert not fetch(home + "rss/cut.rss")[2].rstrip().endswith(b"</rss>")
    assert fetch(home + "sitemap-bomb.xml.gz")[2] == gzip_bomb(60)


def test_traps_have_no_end(newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=2, rate=0)
    home = next(h for h in web.homes() if ".200:" in h)
    page = fetch(home)[2].decode()
    for trap in ("/lich-mo/2026/11/1/", "/lap/tin/", "/phien?sid=1"):
        assert f'href="{trap}"' in page
    path = "lich-mo/2026/12/28/"
    assert b"/lich-mo/2027/1/1/" in fetch(home + path)[2]
    assert b'href="tin/"' in fetch(home + "lap/" + "tin/" * 30)[2]


# ---------------------------------------------------------------- names, bench
def ask_tls(port: int, host: str, path: str, context: ssl.SSLContext) -> bytes:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname=host) as sock,
    ):
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    return answer


SITES = [
    {
        "id": "vnexpress.net", "name": "VnExpress", "hosts": ["vnexpress.net"], "aliases": ["www.vnexpress.net"], "home": "https://vnexpress.net/",
        "sections": ["https://vnexpress.net/the-thao", "https://vnexpress.net/tin-tuc-24h"], "feeds": ["https://vnexpress.net/rss/tin-moi-nhat.rss"],
        "sitemaps": ["https://vnexpress.net/google-news-sitemap.xml"],
        "article_pattern": r"^/(?:[\w-]+/)*[\w-]+-(\d{6,8})\.html$", "delay_s": 3.0,
    },
    {"id": "off.example.vn", "name": "Off", "hosts": ["off.example.vn"], "home": "https://off.example.vn/", "enabled": False},
    {
        "id": "la.example.vn", "name": "Báo Lạ", "hosts": ["la.example.vn"], "home": "https://la.example.vn/", "sections": [], "feeds": [],
        "sitemaps": [], "article_pattern": r"^/[\w-]+-ar(\d+)\.html$",
    },
]  # fmt: skip


def test_names_layout_serves_configured_sites_over_https(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    file = tmp_path / "sites.json"
    file.write_text(json.dumps({"sites": SITES}))
    web = newsweb("names", sites=file, articles=6, rate=0)
    context = ssl.create_default_context(cafile=str(web.ca_file))
    assert set(web.about["sites"]) == {"vnexpress.net", "la.example.vn"}
    for path in (
        "/",
        "/the-thao",
        "/tin-tuc-24h",
        "/rss/tin-moi-nhat.rss",
        "/google-news-sitemap.xml",
    ):
        assert ask_tls(web.port, "vnexpress.net", path, context).startswith(b"HTTP/1.1 200"), path
    moved = ask_tls(web.port, "www.vnexpress.net", "/the-thao", context)
    assert b" 301 " in moved[:20]
    assert b"Location: https://vnexpress.net/the-thao" in moved
    assert b" 421 " in ask_tls_any(web.port, "example.org")[:20]
    for row in web.articles():
        pattern = next(str(s["article_pattern"]) for s in SITES if s["id"] == row["site"])
        assert re.search(pattern, urlsplit(row["url"]).path)
    assert {
        r["delay_s"] for r in web.truth() if r["type"] == "site" and r["site"] == "vnexpress.net"
    } == {3.0}
    for host in ("expired.newsweb.test", "wrong.newsweb.test"):
        with pytest.raises(ssl.SSLCertVerificationError):
            ask_tls(web.port, host, "/", context)
    status, headers, _ = fetch(f"http://127.0.0.1:{web.port}/the-thao", {"Host": "vnexpress.net"})
    assert (status, headers["location"]) == (301, "https://vnexpress.net/the-thao")


def ask_tls_any(port: int, host: str) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return ask_tls(port, host, "/", context)


def test_bench_links_reach_every_page(newsweb: StartNewsweb) -> None:
    web = newsweb("bench", hosts=1)
    home = web.homes()[0]
    seen, todo = {"/"}, ["/"]
    while todo:
        path = todo.pop()
        _, _, body = fetch(home.rstrip("/") + path)
        links = re.findall(r'href="(/[^"]*)"', body.decode())
        assert 60_000 < len(body) < 66_000
        assert len(links) == 100
        assert 45 <= len(set(links)) <= 50
        for link in set(links) - seen:
            seen.add(link)
            todo.append(link)
    assert len(seen) == 161
    row = next(a for a in web.articles() if a["url"].startswith(home))
    tree = LexborHTMLParser(fetch(row["url"])[2].decode())
    assert tree.css_first("h1.title").text() == row["title"]
    assert judge.token_f1(row["content"], tree.css_first("div.content").text(separator=" ")) == 1.0


def test_a_taken_port_is_an_error_with_its_number(newsweb: StartNewsweb) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.5.1", 0))
        taken.listen()
        with pytest.raises(RuntimeError, match="did not start"):
            newsweb("ip", port=taken.getsockname()[1])


# ---------------------------------------------------------------- the judge
SITE = {
    "type": "site",
    "site": "a",
    "host": "a",
    "hosts": ["a"],
    "delay_s": 10.0,
    "robots": "plain",
    "disallow": ["/cam"],
    "path_regex": r"^/[\w-]+-(\d+)\.html$",
}
WORLD = {"type": "world", "factor": 10.0, "now": 5000.0}


def hits(*rows: tuple[float, str], status: int = 200) -> list[dict[str, Any]]:
    return [
        {"time": at, "host": "a", "path": path, "status": status, "ua": "x", "bytes": 1}
        for at, path in rows
    ]


@pytest.mark.parametrize(("gap", "bad"), [(0.97, 1), (0.99, 0), (1.0, 0), (1.5, 0)])
def test_politeness_knows_the_delay_in_simulated_seconds(gap: float, bad: int) -> None:
    found = judge.politeness(hits((1.0, "/robots.txt"), (1.0 + gap, "/x")), [WORLD, SITE])
    assert len(found) == bad
    assert all("host=a" in line for line in found)


def test_politeness_sees_robots_being_skipped_or_broken() -> None:
    assert "before robots.txt" in judge.politeness(hits((1.0, "/x")), [WORLD, SITE])[0]
    assert (
        "before robots.txt"
        in judge.politeness(
            hits((1.0, "/robots.txt"), status=503) + hits((9.0, "/x")), [WORLD, SITE]
        )[0]
    )
    found = judge.politeness(hits((1.0, "/robots.txt"), (5.0, "/cam-1.html")), [WORLD, SITE])
    assert found == ["host=a path=/cam-1.html forbidden by robots.txt"]
    assert (
        "not a site"
        in judge.politeness([{**hits((1.0, "/"))[0], "host": "example.org"}], [WORLD, SITE])[0]
    )


def row(number: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "article", "url": f"http://a/tin-{number}.html", "site": "a", "id": str(number), "title": f"Tin số {number}", "content": f"một hai {number} " * 60,
        "authors": ["Lê An"], "published": "2026-11-20T08:15:30+07:00", "precision": "minute", "first_visible": 0.0, "edits": [], "should_be_found": True,
        "why_not": None, "optional": False, "special": None, "channels": ["list"], "twins": [f"http://m.a/tin-{number}.html"], **more,
    }  # fmt: skip


def stored(truth: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {k: truth[k] for k in ("url", "title", "content", "authors", "published")} | more


def test_coverage_counts_found_missed_and_unexpected() -> None:
    truth = [
        WORLD,
        SITE,
        row(1),
        row(2),
        row(3, should_be_found=False, why_not="robots"),
        row(4, first_visible=4900.0),
        row(5, optional=True),
    ]
    result = judge.coverage(
        truth,
        [
            stored(row(1)),
            stored(row(3)),
            {**stored(row(1)), "url": "http://a/ban-doc-1.html"},
            {**stored(row(1)), "url": "http://a/x"},
        ],
    )
    assert result.found == ["http://a/tin-1.html"]
    assert [m["url"] for m in result.missed] == ["http://a/tin-2.html"]
    assert [u["reason"].split(",")[0] for u in result.unexpected] == [
        "robots",
        "stored twice",
        "no such article",
    ]
    assert result.shares() == dict.fromkeys(judge.FIELDS, 1.0)


def test_nothing_stored_is_nothing_right() -> None:
    result = judge.coverage([WORLD, SITE, row(1)], [])
    assert result.shares() == dict.fromkeys(judge.FIELDS, 0.0)
    assert len(result.missed) == 1


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("title", "Tin số 1 ", True),
        ("title", "Tin số 2", False),
        ("content", "một hai 1 " * 59, True),
        ("content", "một hai 1 " * 56, False),
        ("published", "2026-11-20T01:15:00+00:00", True),
        ("published", "2026-11-20T08:16:00+07:00", False),
        ("published", None, False),
        ("authors", ["LÊ AN"], True),
        ("authors", [], False),
    ],
)
def test_fields_are_compared_one_by_one(name: str, value: Any, right: bool) -> None:
    result = judge.coverage([WORLD, SITE, row(1)], [stored(row(1), **{name: value})])
    assert len(result.wrong[name]) == (0 if right else 1)
    assert sum(len(w) for w in result.wrong.values()) == (0 if right else 1)


def test_an_old_wording_is_right_but_stale() -> None:
    old = row(1)
    new = old["content"][:-4] + "9 zz"
    edited = row(
        1,
        edits=[
            {"at": 4000.0, "title": old["title"], "content": new},
            {"at": 6000.0, "title": "x", "content": "y"},
        ],
    )
    assert judge.coverage([WORLD, SITE, edited], [stored(old)]).stale == ["http://a/tin-1.html"]
    result = judge.coverage([WORLD, SITE, edited], [stored(old, content=new)])
    assert (result.stale, result.shares()["content"]) == ([], 1.0)


def test_old_articles_are_expected_without_an_age_limit() -> None:
    truth = [WORLD, SITE, row(1, should_be_found=False, why_not="too old")]
    assert judge.coverage(truth, []).missed == []
    assert len(judge.coverage(truth, [], age_limit=False).missed) == 1
    assert judge.coverage(truth, [stored(row(1))], age_limit=False).unexpected == []


@pytest.mark.parametrize(("hours", "missed"), [(1, 0), (7, 1)])
def test_a_host_that_makes_crawlers_wait_gets_time(hours: float, missed: int) -> None:
    world = {**WORLD, "started": 0.0, "now": hours * 3600.0}
    assert len(judge.coverage([world, {**SITE, "busy": True}, row(1)], []).missed) == missed
