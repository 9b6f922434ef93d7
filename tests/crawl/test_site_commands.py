"""`scrapy sites` and `scrapy seeds` as a user meets them: real processes, a real Redis, a
real site to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.discovery import overlay
from newscrawler.discovery.sites import Sites
from tests.crawl.fault_server import FaultServer, whole
from tests.crawl.harness import Finished, Scrapy, until

SITES = {
    "sites": [
        {
            "id": "bao.vn",
            "home": "http://127.0.9.1/",
            "aliases": {"bao.com.vn": "127.0.9.1"},
            "class": "high",
            "sections": ["http://127.0.9.1/thoi-su", "http://127.0.9.1/the-thao"],
            "feeds": [
                {"url": "http://127.0.9.1/a.rss"},
                {"url": "http://127.0.9.1/dead.rss", "status": "dead"},
            ],
        },
        {"id": "tin.vn", "home": "http://127.0.9.2/", "enabled": False},
    ]
}
HOME = """<!doctype html><html lang="vi"><head><title>Báo Mới - Tin tức</title>
<link rel="alternate" type="application/rss+xml" href="/rss/home.rss"></head><body>
<nav><a href="/">Trang chủ</a><a href="/thoi-su">Thời sự</a><a href="/the-thao">Thể thao</a>
<a href="/dang-nhap">Đăng nhập</a><a href="/video">Video</a></nav>
<a href="/gia-vang-hom-nay-giam-manh-4954454.html">Giá vàng hôm nay giảm mạnh</a>
<a href="https://elsewhere.vn/mot-bai-viet-cua-bao-khac-123456.html">khác</a></body></html>"""


def lines(done: Finished) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def scrapy(tmp_path: Path) -> Scrapy:
    """Without Redis: what only reads and writes files must not need one."""
    (tmp_path / "sites.json").write_text(json.dumps(SITES), encoding="utf-8")
    return Scrapy(tmp_path, {"SITES_FILE": str(tmp_path / "sites.json"), "DOWNLOAD_DELAY": "0"})


@pytest.fixture
def fleet(scrapy: Scrapy, redis_server: str, r: Any) -> Scrapy:
    """With the suite's server, emptied."""
    scrapy.settings["REDIS_URL"] = redis_server
    return scrapy


@pytest.fixture
def web() -> Iterator[FaultServer]:
    server = FaultServer()
    server.start({"new": ("127.0.9.9", None)})
    port = server.ports["new"]
    robots = f"User-agent: *\nAllow: /\nSitemap: http://127.0.9.9:{port}/sitemap-news.xml\n"
    server._answers["/robots.txt"] = whole(robots.encode(), kind="text/plain")
    server._answers["/"] = whole(HOME.encode())
    yield server
    server.stop()


# ---------------------------------------------------------------- sites
def test_sites_list_has_a_row_per_site(scrapy: Scrapy) -> None:
    rows = {row["site"]: row for row in lines(scrapy.run("sites", "list", "--json"))}
    assert set(rows) == {"bao.vn", "tin.vn"}
    assert (
        rows["bao.vn"]["class"] == "high"
        and rows["bao.vn"]["feeds"] == 1
        and rows["bao.vn"]["sections"] == 2
    )
    table = scrapy.run("sites", "list")
    assert table.returncode == 0 and table.stdout.splitlines()[0].startswith("SITE")


def test_a_site_that_is_switched_stays_so(scrapy: Scrapy) -> None:
    assert scrapy.run("sites", "enable", "tin.vn").returncode == 0
    assert scrapy.run("sites", "disable", "bao.com.vn").returncode == 0  # by an alias
    rows = {row["site"]: row["enabled"] for row in lines(scrapy.run("sites", "list", "--json"))}
    assert rows == {"bao.vn": False, "tin.vn": True}
    assert json.loads((scrapy.folder / "sites.json").read_text()) == SITES


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("sites", "show", "bao.v"), "did you mean bao.vn?"),
        (
            ("sites", "disable", "bao.vn", "qqqqqqq"),
            "unknown site 'qqqqqqq'; see `scrapy sites list`",
        ),
        (("sites", "enable"), "which site?"),
        (
            ("sites", "burn"),
            "unknown verb 'burn'; there are: list, show, enable, disable, render, check, freshness",
        ),
        (("seeds", "burn"), "unknown verb 'burn'"),
        (("seeds", "list", "ba0.vn"), "did you mean bao.vn?"),
        (("seeds", "add"), "one http(s) address is needed"),
        (("seeds", "add", "mailto:a@b.vn"), "one http(s) address is needed"),
        (("seeds", "add", "http://127.0.9.3/x.rss"), "unknown site '127.0.9.3'"),
        (("seeds", "remove", "http://unknown.vn/x.rss"), "unknown site 'unknown.vn'"),
        (("seeds", "refresh", "--site", "bao.vn,nope"), "unknown site 'nope'"),
        (
            ("seeds", "refresh", "--every", "5 minutes"),
            "5 minutes: must be a span of time like 90s, 5m",
        ),
    ],
)
def test_wrong_usage_is_exit_2_with_a_hint_and_changes_nothing(
    scrapy: Scrapy, args: tuple[str, ...], said: str
) -> None:
    done = scrapy.run(*args)
    assert done.returncode == 2 and said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (scrapy.data / overlay.STATE_FILE).exists()


def test_a_broken_file_is_exit_1_with_its_name(scrapy: Scrapy) -> None:
    (scrapy.folder / "sites.json").write_text("{")
    for verb in ("sites", "seeds"):
        done = scrapy.run(verb, "list")
        assert done.returncode == 1 and "sites.json: no JSON at line 1" in done.stderr


# ---------------------------------------------------------------- seeds
def urls_of(scrapy: Scrapy, site: str, kind: str) -> list[str]:
    return [
        row["url"]
        for row in lines(scrapy.run("seeds", "list", site, "--json"))
        if row["kind"] == kind
    ]


def test_seeds_are_added_and_removed(scrapy: Scrapy) -> None:
    feed, section = "http://127.0.9.1/b.rss", "http://127.0.9.1/kinh-te/ngan-hang"
    assert scrapy.run("seeds", "add", feed).returncode == 0  # by its look
    assert scrapy.run("seeds", "add", section).returncode == 0
    assert (
        scrapy.run("seeds", "add", "http://127.0.9.1/list.php", "--kind", "sitemap").returncode == 0
    )
    assert urls_of(scrapy, "bao.vn", "feed") == [
        "http://127.0.9.1/a.rss",
        "http://127.0.9.1/dead.rss",
        feed,
    ]
    assert urls_of(scrapy, "bao.vn", "sitemap") == ["http://127.0.9.1/list.php"]
    assert section in urls_of(scrapy, "bao.vn", "section")
    for url in (feed, "http://127.0.9.1/thoi-su"):
        assert scrapy.run("seeds", "remove", url).returncode == 0
    assert feed not in urls_of(scrapy, "bao.vn", "feed")
    assert "http://127.0.9.1/thoi-su" not in urls_of(scrapy, "bao.vn", "section")
    assert scrapy.run("seeds", "add", "http://127.0.9.1/thoi-su").returncode == 0  # and comes back
    assert "http://127.0.9.1/thoi-su" in urls_of(scrapy, "bao.vn", "section")


def test_an_address_that_is_not_there_is_no_seed_unless_told(
    fleet: Scrapy, web: FaultServer
) -> None:
    base = f"http://127.0.9.9:{web.ports['new']}"
    known = {"id": "moi.vn", "home": f"{base}/"}
    (fleet.folder / "sites.json").write_text(json.dumps({"sites": [known]}), encoding="utf-8")
    feed = b"<rss><channel><item><title>a</title><link>/a-1.html</link></item></channel></rss>"
    web._answers["/nope.xml"] = whole(b"gone", status="404 Not Found")
    web._answers["/tin-moi.xml"] = whole(feed, kind="text/xml")
    done = fleet.run("seeds", "add", f"{base}/nope.xml")
    assert done.returncode == 1 and "it answered 404; --yes takes it" in done.stderr, done.stderr
    assert not (fleet.data / overlay.STATE_FILE).exists()
    done = fleet.run("seeds", "add", f"{base}/tin-moi.xml")
    assert done.returncode == 0 and "1 seed added to moi.vn" in done.stderr, done.stderr
    assert urls_of(fleet, "moi.vn", "feed") == [f"{base}/tin-moi.xml"], "by what it holds"
    asked = len(web.times)
    assert fleet.run("seeds", "add", f"{base}/nope.xml", "--yes").returncode == 0
    assert len(web.times) == asked and urls_of(fleet, "moi.vn", "section") == [f"{base}/nope.xml"]
    done = fleet.run("seeds", "remove", f"{base}/nope.xml")
    assert "1 seed removed from moi.vn" in done.stderr


def test_a_private_address_of_a_seed_names_the_setting(fleet: Scrapy) -> None:
    fleet.settings["ALLOWED_PRIVATE_NETWORKS"] = "10.0.0.0/8"
    done = fleet.run("seeds", "add", "http://127.0.9.1/x.rss")
    assert done.returncode == 1 and "ALLOWED_PRIVATE_NETWORKS does not name it" in done.stderr


def test_what_is_no_seed_cannot_be_removed(scrapy: Scrapy) -> None:
    done = scrapy.run("seeds", "remove", "http://127.0.9.1/never")
    assert done.returncode == 1 and "is no feed, sitemap or section of bao.vn" in done.stderr


def test_a_picture_is_no_seed(scrapy: Scrapy) -> None:
    done = scrapy.run("seeds", "add", "http://127.0.9.1/a.jpg", "--kind", "section")
    assert done.returncode == 1 and "is not taken: type" in done.stderr


def test_refresh_offers_what_is_due_once(fleet: Scrapy) -> None:
    first = lines(fleet.run("seeds", "refresh", "--json"))
    assert first == [
        {"site": "bao.vn", "offered": 4, "due": 4, "refused": None}
    ]  # home, feed, two sections
    again = lines(fleet.run("seeds", "refresh", "--json"))
    assert again == [{"site": "bao.vn", "offered": 4, "due": 0, "refused": None}]
    other = lines(
        fleet.run("seeds", "refresh", "--site", "tin.vn", "--json")
    )  # named, though it is off
    assert other == [{"site": "tin.vn", "offered": 1, "due": 1, "refused": None}]


def test_refresh_again_and_again_takes_over_changes_and_ends_with_ctrl_c(fleet: Scrapy) -> None:
    running = fleet.start("seeds", "refresh", "--every", "1s", "--json")
    until(lambda: '"site": "bao.vn", "offered": 4, "due": 4' in running.text(), "the first offer")
    assert fleet.run("sites", "enable", "tin.vn").returncode == 0
    until(
        lambda: '"site": "tin.vn", "offered": 1, "due": 1' in running.text(),
        "an offer of the site that was enabled",
    )
    running.interrupt()
    done = running.wait(20)
    assert done.returncode == 0 and "Traceback" not in done.stdout


def test_refresh_without_redis_is_one_clear_line(scrapy: Scrapy) -> None:
    scrapy.settings["REDIS_URL"] = "redis://127.0.0.1:1/0"
    done = scrapy.run("seeds", "refresh")
    assert done.returncode == 1 and "Traceback" not in done.stderr and "127.0.0.1" in done.stderr


# ---------------------------------------------------------------- a new site
def test_the_home_page_of_a_new_site_gives_an_entry_that_can_be_used(
    fleet: Scrapy, web: FaultServer
) -> None:
    base = f"http://127.0.9.9:{web.ports['new']}"
    done = fleet.run("seeds", "add", f"{base}/", "--json")
    (entry,) = lines(done)
    assert entry["name"] == "Báo Mới" and entry["language"] == "vi"
    assert entry["feeds"] == [{"url": f"{base}/rss/home.rss", "status": "unchecked"}]
    assert entry["sitemaps"] == [
        {"url": f"{base}/sitemap-news.xml", "kind": "news"}
    ]  # of robots.txt
    assert entry["sections"] == [f"{base}/thoi-su", f"{base}/the-thao"]
    assert entry["article_examples"] == [f"{base}/gia-vang-hom-nay-giam-manh-4954454.html"]
    assert "Nothing was changed" in done.stderr and not (fleet.data / overlay.STATE_FILE).exists()
    (fleet.folder / "pasted.json").write_text(json.dumps({"sites": [entry]}), encoding="utf-8")
    pasted = Sites.load(fleet.folder / "pasted.json")
    assert pasted.errors == [] and len(pasted) == 1


def test_a_new_site_is_shown_as_a_table(fleet: Scrapy, web: FaultServer) -> None:
    base = f"http://127.0.9.9:{web.ports['new']}"
    done = fleet.run("seeds", "add", f"{base}/")
    rows = [line.split(None, 1) for line in done.stdout.splitlines()]
    assert rows[0] == ["WHAT", "VALUE"]
    assert ["language", "vi"] in rows and ["zone", "Asia/Ho_Chi_Minh"] in rows
    assert [value for what, value in rows if what == "section"] == [
        f"{base}/thoi-su",
        f"{base}/the-thao",
    ]
    assert ["feed", f"{base}/rss/home.rss"] in rows


def test_the_pages_of_feeds_and_sections_of_a_new_site_are_read(
    fleet: Scrapy, web: FaultServer
) -> None:
    base = f"http://127.0.9.9:{web.ports['new']}"
    links = '<a href="/rss">RSS</a><a href="/so-do-trang.html">Sơ đồ</a></body>'
    web._answers["/"] = whole(HOME.replace("</body>", links).encode())
    web._answers["/rss"] = whole(
        b'<html><body><a href="/rss/kinh-te-89.rss">Kinh te</a></body></html>'
    )
    web._answers["/so-do-trang.html"] = whole(
        b'<html><body><a href="/phap-luat">Phap luat</a></body></html>'
    )
    (entry,) = lines(fleet.run("seeds", "add", f"{base}/", "--json"))
    assert [feed["url"] for feed in entry["feeds"]] == [
        f"{base}/rss/home.rss",
        f"{base}/rss/kinh-te-89.rss",
    ]
    assert entry["sections"] == [f"{base}/thoi-su", f"{base}/the-thao", f"{base}/phap-luat"]


def test_the_address_that_was_asked_is_an_alias_of_the_one_that_answered(
    fleet: Scrapy, web: FaultServer
) -> None:
    old = FaultServer()
    old.start({"old": ("127.0.9.10", None)})
    target = f"http://127.0.9.9:{web.ports['new']}/"
    old._answers["/"] = whole(b"", f"Location: {target}", status="301 Moved Permanently")
    old_host = f"127.0.9.10:{old.ports['old']}"
    try:
        (entry,) = lines(fleet.run("seeds", "add", f"http://{old_host}/", "--json"))
        assert entry["home"] == target and entry["aliases"] == {
            old_host: f"127.0.9.9:{web.ports['new']}"
        }
        known = {"id": "cu.vn", "home": f"http://{old_host}/"}
        (fleet.folder / "sites.json").write_text(json.dumps({"sites": [known]}), encoding="utf-8")
        done = fleet.run("seeds", "add", f"http://{old_host}/")
        assert (
            f"cu.vn has moved: its home page is on 127.0.9.9:{web.ports['new']} now" in done.stderr
        )
    finally:
        old.stop()


def test_a_new_site_can_be_taken_at_once(fleet: Scrapy, web: FaultServer) -> None:
    base = f"http://127.0.9.9:{web.ports['new']}"
    assert fleet.run("seeds", "add", f"{base}/", "--yes").returncode == 0
    name = f"127.0.9.9:{web.ports['new']}"
    assert lines(fleet.run("seeds", "refresh", "--site", name, "--json"))[0]["due"] == 5


def test_a_home_page_that_does_not_answer_is_exit_1(fleet: Scrapy, web: FaultServer) -> None:
    web._answers["/"] = whole(b"gone", status="404 Not Found")
    done = fleet.run("seeds", "add", f"http://127.0.9.9:{web.ports['new']}/")
    assert done.returncode == 1 and "answered 404" in done.stderr


def test_the_home_page_of_a_known_site_gives_what_it_does_not_have(
    fleet: Scrapy, web: FaultServer
) -> None:
    base = f"http://127.0.9.9:{web.ports['new']}"
    known = {
        "id": "moi.vn",
        "home": f"{base}/",
        "sections": [f"{base}/thoi-su"],
        "feeds": [{"url": f"{base}/rss/home.rss", "status": "dead"}],
    }
    (fleet.folder / "sites.json").write_text(json.dumps({"sites": [known]}), encoding="utf-8")
    new = [
        {"site": "moi.vn", "kind": "sitemap", "url": f"{base}/sitemap-news.xml"},
        {"site": "moi.vn", "kind": "section", "url": f"{base}/the-thao"},
    ]  # the feed is known to be dead
    assert lines(fleet.run("seeds", "add", f"{base}/", "--json")) == new
    assert not (fleet.data / overlay.STATE_FILE).exists()
    assert lines(fleet.run("seeds", "add", f"{base}/", "--yes", "--json")) == new
    assert urls_of(fleet, "moi.vn", "sitemap") == [f"{base}/sitemap-news.xml"]
    assert lines(fleet.run("seeds", "add", f"{base}/", "--json")) == []
