"""Crawls of sites whose pages are empty frames, with a real Chromium."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from newscrawler.fetch.browser import _command, _tree
from tests.crawl.harness import until
from tests.crawl.small import QUIET, Queue, crawler, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb.process import NewswebProcess

DELAY_S = 0.3


@pytest.fixture(autouse=True)
def chromium() -> None:
    if shutil.which("chromium") is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: make browser-deps")
        pytest.skip("no Chromium: make browser-deps")


def scripted(newsweb: StartNewsweb, **options: Any) -> NewswebProcess:
    return newsweb("ip", **{**QUIET, "articles": 3, "sites": 2, "scripted": 2, **options})


def site_of(web: NewswebProcess) -> dict[str, Any]:
    """The second: the first one's pages say noarchive."""
    found: dict[str, Any] = json.loads(web.sites_file.read_text())["sites"][1]
    return found


def with_render(web: NewswebProcess, value: bool) -> None:
    """Sets it in sites.json."""
    data = json.loads(web.sites_file.read_text())
    for site in data["sites"]:
        site["render"] = value
    web.sites_file.write_text(json.dumps(data))


def lessons(queue: Queue) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = queue._ask(lambda _, client: client.hgetall("{render}:lessons"))
    return found


@pytest.mark.long
def test_a_site_of_empty_frames_is_learnt_kept_to_and_unlearnt(
    newsweb: StartNewsweb, tmp_path: Path, queue: Queue
):
    web = scripted(newsweb)
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=DELAY_S, CLOSESPIDER_ITEMCOUNT=2)
    host = site_of(web)["hosts"][0]
    done = scrapy.run("crawl", "news", "-a", f"sites={host}", timeout=240)

    articles = stored(tmp_path / "data")
    truth = {row["url"]: row for row in web.articles()}
    assert len(articles) >= 2, done.stderr[-3000:]
    assert all(article.title == truth[article.url]["title"] for article in articles)
    assert done.stat("render/pages/trial") >= 1
    assert done.stat("link/found") > 20  # lists are frames, too
    assert done.stat("render/cpu_ms") > 0 and done.stat("render/requests") > 0
    assert json.loads(lessons(queue)[host.encode()])["state"] == "render"

    # seen from the site's side: nothing but pages, their data and one script, at the site's pace
    hits = [hit for hit in web.hits() if hit["host"] == host]
    paths = [hit["path"].partition("?")[0] for hit in hits]
    assert [p for p in paths if p.startswith("/static/")] == ["/static/app.js"]
    gaps = [b["time"] - a["done"] for a, b in itertools.pairwise(hits)]
    assert min(gaps) > DELAY_S - 0.02
    # what is kept says that it is not as the site sent it
    raw = b"".join(gzip.decompress(f.read_bytes()) for f in (tmp_path / "data/warc").glob("*.gz"))
    assert raw.count(b"X-Crawler-Rendered: Chromium/") >= 2

    why = scrapy.run("frontier", "why", articles[0].url).stdout
    assert "browser: learnt " in why and "scrapy sites render" in why
    assert f"{host}: learnt " in scrapy.run("sites", "show", site_of(web)["id"]).stdout
    alone = scrapy.run("extract", articles[0].url)
    assert "Read without its scripts" in alone.stderr
    forgot = scrapy.run("sites", "render", site_of(web)["id"], "auto")
    assert "forgotten" in forgot.stderr and lessons(queue) == {}
    scrapy.run("sites", "render", site_of(web)["id"], "off")
    assert "render:          False" in scrapy.run("sites", "show", site_of(web)["id"]).stdout


@pytest.mark.long
def test_a_site_that_is_set_to_render_is_stored_as_its_scripts_fill_it(
    newsweb: StartNewsweb, tmp_path: Path, queue: Queue
):
    """`"render": true` in sites.json: from the first page on, without a trial."""
    web = scripted(newsweb)
    with_render(web, True)
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=DELAY_S, CLOSESPIDER_ITEMCOUNT=2)
    done = scrapy.run("crawl", "news", "-a", f"sites={site_of(web)['hosts'][0]}", timeout=240)

    articles = stored(tmp_path / "data")
    assert len(articles) >= 2, done.stderr[-3000:]
    truth = {row["url"]: row for row in web.articles()}
    for article in articles:
        sent = httpx.get(article.url).text
        assert article.title not in sent and article.content[:40] not in sent, "an empty frame"
        assert article.title == truth[article.url]["title"] and len(article.content) > 200
        page = scrapy.run("article", article.id, "--html")
        assert article.title in page.stdout, "what is kept is what was read"
    assert done.stat("render/pages/site") >= 2 and done.stat("render/pages/trial") == 0
    assert lessons(queue) == {}, "nothing is learnt where it is set"


@pytest.mark.long
def test_no_browser_is_left_when_a_worker_is_killed(
    newsweb: StartNewsweb, tmp_path: Path, queue: Queue
):
    web = scripted(newsweb)
    with_render(web, True)
    running = crawler(tmp_path, web).start("crawl", "news")

    def browsers() -> list[int]:
        found = [p for p in _tree(running.process.pid) if b"run-driver" in _command(p)]
        found += [p for p in _tree(running.process.pid) if b"host-resolver-rules" in _command(p)]
        return _tree(found[0]) if len(found) > 3 else []

    pids = until(browsers, "Chromium at work")
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait(10)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "its end")


def test_without_a_browser_one_line_says_so_and_the_crawl_goes_on(
    newsweb: StartNewsweb, tmp_path: Path, queue: Queue
):
    web = scripted(newsweb, scripted=0, articles=2)
    with_render(web, True)
    scrapy = crawler(tmp_path, web, RENDER_BROWSER="/nowhere/chromium", CLOSESPIDER_ITEMCOUNT=1)
    done = scrapy.run("crawl", "news")
    told = [line for line in done.stderr.splitlines() if "RENDER_BROWSER=/nowhere" in line]
    assert done.stat("article/new") >= 1
    assert len(told) == 2 and "read without their scripts" in told[0], told
    doctor = scrapy.run("doctor").stdout
    assert "read without scripts: RENDER_BROWSER=/nowhere/chromium is no program" in doctor


def test_a_wrong_setting_ends_the_start_with_one_line(newsweb: StartNewsweb, tmp_path: Path):
    web = scripted(newsweb, scripted=0, articles=1)
    for name, value, word in (
        ("RENDER_SANDBOX", "maybe", "must be auto, on or off"),
        ("RENDER_TIMEOUT_S", "0", "RENDER_TIMEOUT_S"),
    ):
        done = crawler(tmp_path, web, **{name: value}).run("crawl", "news")
        assert done.returncode == 2
        assert word in done.stderr and "Traceback" not in done.stderr


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_twenty_frames_of_one_site_keep_its_delay(
    newsweb: StartNewsweb, tmp_path: Path, queue: Queue
):
    """All of them are asked for by their addresses; four may be at work at once, and the gate of
    the site hands out one."""
    web = scripted(newsweb, articles=22, sites=1)
    urls = ",".join(row["url"] for row in web.articles() if row["should_be_found"])
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=0.2, RENDER_PAGES=4, CLOSESPIDER_ITEMCOUNT=20)
    scrapy.run("crawl", "news", "-a", f"urls={urls}", timeout=240)
    hits = web.hits()
    assert len([hit for hit in hits if hit["path"].startswith("/api/trang")]) >= 20
    gaps = [b["time"] - a["done"] for a, b in itertools.pairwise(hits)]
    assert min(gaps) > 0.18


def test_lessons_end_and_begin_anew():
    from newscrawler.crawl.render_lessons import FAILURES, REST_S, TRIALS, RenderLessons

    class Hash(dict[str, bytes]):
        async def hget(self, _: str, name: str) -> bytes | None:
            return self.get(name)

        async def hset(self, _: str, name: str, value: str) -> None:
            self[name] = value.encode()

    now = 1_000_000.0
    kept = Hash()
    known = RenderLessons(kept, lambda: now)

    async def miss() -> Any:
        return await known.note("a.vn", "https://a.vn/1", brought_article=False)

    async def life() -> None:
        nonlocal now
        for _ in range(TRIALS - 1):
            lesson = await miss()
        assert lesson is None or lesson.state == "tried"
        assert (await miss()).state == "rest"
        now += REST_S + 1
        assert (await miss()).state == "tried"
        hit = await known.note("a.vn", "https://a.vn/2", brought_article=True)
        assert hit.state == "render"
        for _ in range(FAILURES - 1):
            assert await miss() is None
        assert (await miss()).state == "rest"

    asyncio.run(life())
