"""``from newscrawler import extract, open_store, Crawler``: as a notebook uses them,
against the simulated web."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from newscrawler import Article, Crawler, CrawlFailed, NotAnArticle, extract, open_store
from newscrawler.fetch.client import FetchError
from newscrawler.library import crawling
from newscrawler.store.base import StoreUnavailable
from tests.crawl.harness import ROOT, TEST_SETTINGS, until
from tests.crawl.small import QUICK, QUIET
from tests.fixtures_newsweb import StartNewsweb
from tests.fixtures_scrapyd import clean_env
from tests.newsweb import judge
from tests.newsweb.process import NewswebProcess

_AS_SHIPPED = ("DATA_DIR", "RESOLVE_OVERRIDE", "EXTRA_CA_FILE", "ALLOWED_PRIVATE_NETWORKS")


def settings_of(web: NewswebProcess, folder: Path, **more: Any) -> dict[str, Any]:
    places = {
        "SITES_FILE": str(web.sites_file),
        "SELECTORS_DIR": str(web.selectors_dir),
        "DATA_DIR": str(folder / "data"),
    }
    return {**TEST_SETTINGS, **QUICK, **places, **more}


# ---------------------------------------------------------------- the import
@pytest.mark.parametrize("module", ["newscrawler", "newscrawler.settings"])
def test_the_import_alone_loads_nothing_else(module: str) -> None:
    code = f"import sys; before = set(sys.modules); import {module}; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    heavy = {"scrapy", "twisted", "lxml", "redis", "aiohttp", "newscrawler.library"}
    assert module in done.stdout.split(), done.stderr
    assert not heavy & {name.partition(".")[0] for name in done.stdout.split()}, done.stdout
    assert "newscrawler.library" not in done.stdout


def test_all_that_is_public_is_there_and_typed() -> None:
    import newscrawler

    for name in newscrawler.__all__:
        assert getattr(newscrawler, name).__doc__, name
    assert {"extract", "open_store", "Crawler"} <= set(dir(newscrawler))
    assert (Path(newscrawler.__file__).parent / "py.typed").is_file()
    assert "py.typed" in (ROOT / "setup.py").read_text()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        newscrawler.nothing  # noqa: B018  # to look it up is the test


# ---------------------------------------------------------------- the example
@pytest.mark.long
def test_the_example_runs_with_the_shipped_defaults(newsweb: StartNewsweb, tmp_path: Path) -> None:
    web = newsweb("names", articles=8)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SCRAPY_", "LLM_", "REDIS_"))}
    env = {
        **kept,
        "DATA_DIR": str(tmp_path / "data"),
        "RESOLVE_OVERRIDE": web.about["resolve_override"],
        "EXTRA_CA_FILE": str(web.ca_file),
        "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
    }
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-m", "examples.notebook"],  # as README says
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    crawled, count, rest = lines[:5], lines[5], lines[6:]
    titles = {a["title"] for a in web.articles(should_be_found=True)}
    for line in crawled:
        assert any(line.endswith(title) for title in titles), line
    assert int(count.split()[0]) >= 5
    first = next(t for t in titles if crawled[0].endswith(t))
    assert sum(first in line for line in rest) >= 2, rest  # found by the search, and extracted
    assert not judge.politeness(web.hits(), web.truth())


# ---------------------------------------------------------------- Crawler
def test_a_crawl_yields_what_it_stores_and_ends(newsweb: StartNewsweb, tmp_path: Path) -> None:
    web = newsweb("ip", articles=6, sites=2, **QUIET)
    crawler = Crawler(settings=settings_of(web, tmp_path))
    found = list(crawler)
    assert all(isinstance(article, Article) for article in found)
    coverage = judge.coverage(web.truth(), found, age_limit=False)
    assert not coverage.missed and not coverage.unexpected
    with open_store(settings=settings_of(web, tmp_path)) as store:
        assert {a.id for a in store} == {a.id for a in found}
        assert len(store) == len({a.id for a in found}) > 5
        kept = store.get(found[0].url)
        assert kept is not None and kept.content == found[0].content
        assert kept.published == found[0].published
        assert [v.version for v in store.versions(kept)] == [1]
    assert crawler.stats["finish_reason"] == "finished"
    # both halves of the worker's own filter answered: what was met the second time,
    # and what more often
    assert crawler.stats["link/local_hit/bloom"] > 20, crawler.stats
    assert crawler.stats["link/local_hit/lru"] > crawler.stats["link/local_hit/bloom"]


@pytest.mark.long
def test_leaving_the_loop_stops_the_crawl_and_a_second_one_goes_on(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    web = newsweb("ip", articles=25, sites=2, **QUIET)
    settings = settings_of(web, tmp_path)
    first = Crawler(settings=settings)
    met = []
    for article in first:
        met.append(article)
        if len(met) == 3:
            break
    assert first.stats["finish_reason"] == "shutdown"
    hits = len(web.hits())
    rest = list(Crawler(settings=settings))
    assert len(web.hits()) > hits
    with open_store(settings=settings) as store:
        stored = list(store)
    assert {a.id for a in rest} <= {a.id for a in stored}
    assert not judge.coverage(web.truth(), stored, age_limit=False).missed
    asked = [hit["path"] for hit in web.hits() if hit["path"].endswith(".html")]
    assert len(asked) > 20


@pytest.mark.long
def test_it_works_where_an_event_loop_is_running(newsweb: StartNewsweb, tmp_path: Path) -> None:
    web = newsweb("ip", articles=3, sites=1, **QUIET)
    settings = settings_of(web, tmp_path)

    async def cell() -> tuple[Article, Article, int]:
        """A cell of Jupyter: blocking calls while its loop runs."""
        crawled = next(iter(Crawler(settings=settings, limit=1)))
        with open_store(settings=settings) as store:
            hits = store.search(crawled.title, limit=1)
            return crawled, extract(crawled.url, settings=settings), len(list(hits))

    crawled, read, hits = asyncio.run(cell())
    assert hits == 1
    assert (read.id, read.title, read.content) == (crawled.id, crawled.title, crawled.content)
    assert read.published == crawled.published and read.site == crawled.site


def _script(settings: dict[str, Any]) -> str:
    return (
        "import json, sys\nfrom newscrawler import Crawler\n"
        f"for article in Crawler(settings=json.loads({json.dumps(json.dumps(settings))})):\n"
        "    print(article.id, flush=True)\n"
    )


def _crawls(folder: Path) -> list[int]:
    """Processes of ours that crawl into this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            order = command.split(b"newscrawler.library.worker\0")[1].strip(b"\0").decode()
            if str(folder) in Path(order).read_text():
                found.append(int(place.name))
        except (OSError, IndexError):
            continue
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "code"),
    [
        pytest.param(signal.SIGINT, -signal.SIGINT, id="ctrl-c"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="caller-is-killed"),
    ],
)
def test_the_crawl_ends_in_order_when_its_caller_ends(
    newsweb: StartNewsweb, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    # So many that the crawl is still at work when its caller ends, also on a busy machine.
    web = newsweb("ip", articles=300, sites=2, **QUIET)
    settings = settings_of(web, tmp_path, DOWNLOAD_DELAY=0.2)
    caller = subprocess.Popen(
        [sys.executable, "-c", _script(settings)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert caller.stdout is not None
        assert len(caller.stdout.readline().strip()) == 32
        assert _crawls(tmp_path)
        caller.send_signal(how)
        caller.communicate(timeout=90)
    finally:
        caller.kill()
    assert caller.returncode == code
    until(lambda: not _crawls(tmp_path), "the crawl is gone", 60)
    log = (tmp_path / "data" / "logs" / "crawl.log").read_text()
    assert "Spider closed (shutdown)" in log, log[-2000:]
    count = len(web.hits())
    time.sleep(0.5)  # three delays: a crawl that had gone on would have asked
    assert len(web.hits()) == count


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sites": "nowhere.example"}, "unknown site"),
        ({"urls": "ftp://a.example/"}, "not an http"),
        ({"settings": {"DOWNLOAD_DELAY": "quick"}}, "DOWNLOAD_DELAY"),
        ({"settings": {"USER_AGENT": ""}}, "USER_AGENT is empty"),
    ],
)
def test_what_cannot_start_says_why(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    settings = {"DATA_DIR": str(tmp_path / "data"), **arguments.pop("settings", {})}
    with pytest.raises(CrawlFailed, match=said) as caught:
        list(Crawler(**arguments, settings=settings))
    assert "Traceback" not in str(caught.value)


#: Every site is at an address where nobody listens; a crawl gives up as soon as it has to wait.
NOBODY = {
    "RESOLVE_OVERRIDE": "*=127.0.0.1:9",
    "CRAWL_LONGEST_WAIT_S": 1,
    "BACKOFF_START_S": 600,
    "ROBOTS_RETRY_S": 600,
}


def test_a_crawl_that_no_site_answers_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {**TEST_SETTINGS, **QUICK, **NOBODY, "DATA_DIR": str(tmp_path / "data")}
    monkeypatch.setattr(crawling, "_QUIET_S", 0.5)
    monkeypatch.setattr(crawling, "_STILL_QUIET_S", 0.5)
    with pytest.raises(
        CrawlFailed, match=r"Nothing at all could be fetched\. Is there a network\?"
    ):
        list(Crawler(sites="vnexpress.net", limit=20, minutes=0.1, settings=settings))
    log = str(tmp_path / "data/logs/crawl.log")
    told = [record.getMessage() for record in caplog.records]
    assert any("No article for" in line and log in line and "last line" in line for line in told)


@pytest.mark.long
def test_a_crawl_with_nothing_due_says_when_the_next_visit_is(
    newsweb: StartNewsweb, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    web = newsweb("ip", articles=2, sites=1, **QUIET)
    crawler = Crawler(settings=settings_of(web, tmp_path))
    assert list(crawler) and not crawler.reason
    assert not list(crawler)
    assert "Nothing is due now" in crawler.reason and "the first is due in" in crawler.reason
    assert crawler.reason in caplog.text


@pytest.mark.parametrize(
    ("ends", "printed"), [("return iter(())", ""), ("raise newscrawler.CrawlFailed('dns')", "dns")]
)
def test_the_example_says_that_nothing_is_stored(tmp_path: Path, ends: str, printed: str) -> None:
    code = (
        "import newscrawler\n"
        "class NothingCrawled:\n"
        "    reason = 'Nothing is due now.'\n"
        "    def __init__(self, **_): pass\n"
        f"    def __iter__(self): {ends}\n"
        "newscrawler.Crawler = NothingCrawled\n"
        "import examples.notebook\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60,
        env={**os.environ, "DATA_DIR": str(tmp_path / "data")},
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout.strip() == printed
    assert done.stderr.strip() == "No article is stored yet. Nothing is due now."


# ---------------------------------------------------------------- extract, open_store
@pytest.mark.parametrize(
    ("url", "overrides", "reason", "said"),
    [
        ("https://nobody.invalid/a-4954454.html", "", "dns", "nobody.invalid"),
        ("https://vnexpress.net/a-4954454.html", "*=127.0.0.1:9", "connect", "robots.txt of vnexpress.net could not be fetched (connection failed"),
    ],
)  # fmt: skip
def test_a_fetch_that_fails_is_the_error_that_is_exported(
    tmp_path: Path, url: str, overrides: str, reason: str, said: str
) -> None:
    settings = {**TEST_SETTINGS, **QUICK, **NOBODY, "DATA_DIR": str(tmp_path / "data")}
    with pytest.raises(FetchError) as caught:
        extract(url, settings={**settings, "RESOLVE_OVERRIDE": overrides})
    assert caught.value.reason == reason
    assert said in str(caught.value)


def test_html_is_read_without_a_network_or_a_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "tests" / "crawl" / "library_page.html").read_text(encoding="utf-8")
    # Without a setting, from another folder than the project's: sites.json is that of the checkout.
    url = "https://vnexpress.net/gia-vang-hom-nay-giam-manh-4954454.html"
    article = extract(page, url=url + "?utm_source=x")
    assert article.title == "Giá vàng hôm nay giảm mạnh sau ba phiên tăng"
    assert article.url == url and article.site == "vnexpress.net"
    assert (
        article.published is not None
        and article.published.isoformat() == "2026-11-20T08:15:00+07:00"
    )
    assert article.authors == ["Nguyễn Thị Minh"]
    assert article.content.count("\n\n") >= 3
    same = extract(page.encode(), url=url)
    assert (same.id, same.content) == (article.id, article.content) and len(same.id) == 32
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_a_crawl_from_another_folder_knows_the_shipped_sites(tmp_path: Path) -> None:
    code = (
        "from newscrawler import Crawler, CrawlFailed\n"
        f"nobody = { {**TEST_SETTINGS, **QUICK, **NOBODY}!r}\n"
        "try:\n"
        "    print(list(Crawler(sites=['vnexpress.net'], limit=1, settings=nobody)))\n"
        "except CrawlFailed as exc:\n"
        "    print('failed:', exc)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=clean_env(PYTHONPATH=str(ROOT), HOME=str(tmp_path)),
    )  # fmt: skip
    assert done.returncode == 0 and "failed: " in done.stdout, done.stdout + done.stderr[-2000:]
    assert "cannot connect" in done.stdout and "sites.json" not in done.stdout
    assert (tmp_path / "data").is_dir(), "what it writes is in the folder of the caller"


def test_a_page_that_is_no_article_says_so(tmp_path: Path) -> None:
    settings = {"SITES_FILE": str(ROOT / "sites.json"), "DATA_DIR": str(tmp_path)}
    with pytest.raises(NotAnArticle) as caught:
        extract("<html><body><h1>404</h1></body></html>", settings=settings)
    assert caught.value.reason


def test_an_address_is_fetched_behind_robots_and_gate(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    web = newsweb("ip", articles=6, sites=2, **QUIET)
    settings = settings_of(web, tmp_path)
    refused = [a["url"] for a in web.articles() if a["why_not"] == "robots"]
    assert refused
    with pytest.raises(FetchError) as caught:
        extract(refused[0], settings=settings)
    assert caught.value.reason == "robots"
    assert all(hit["path"].startswith("/robots") for hit in web.hits())


def test_an_address_that_answers_404_is_a_fetch_that_failed(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    web = newsweb("ip", articles=6, sites=1, **QUIET)
    home = urlsplit(web.articles()[0]["url"])
    with pytest.raises(FetchError) as caught:
        extract(f"{home.scheme}://{home.netloc}/status/404", settings=settings_of(web, tmp_path))
    error: Any = caught.value
    assert (error.reason, error.status) == ("status", 404) and isinstance(error, ValueError)
    assert "status 404 url=http" in str(error)


def test_a_search_goes_through_all_pages_of_hits(tmp_path: Path) -> None:
    from newscrawler.store import open_store as open_raw

    async def fill() -> None:
        store = open_raw("", tmp_path)
        await store.put(
            [
                Article(
                    f"{n:032x}",
                    f"https://a.example/{n}.html",
                    "a.example",
                    f"Tin {n}",
                    "giá vàng " * 9,
                )
                for n in range(230)
            ]
        )
        await store.close()

    settings = {"DATA_DIR": str(tmp_path)}
    with pytest.raises(StoreUnavailable, match="no articles stored yet"):
        open_store(settings=settings)
    asyncio.run(fill())
    look: Callable[..., Any]
    with open_store(settings=settings) as store:
        look = store.search
        hits = look("gia vang")
        assert hits.total == 230
        assert len({hit.article.id for hit in hits}) == 230
        assert len(list(look("giá vàng", limit=150))) == 150
        assert not list(look("không có gì như thế", sites="b.example"))
        assert len(store) == 230
    assert not [t for t in __import__("threading").enumerate() if t.name == "newscrawler-store"]


@pytest.mark.parametrize(
    ("page", "error", "said"),
    [
        ("vnexpress.net/tin-1.html", ValueError, "neither HTML nor an http"),
        ("/tmp/page.html", ValueError, r"extract\(Path\(NAME\)"),
        (None, TypeError, "HTML or an address, as str or bytes, not None"),
    ],
)
def test_what_is_no_page_is_said_so(page: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        extract(page)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": -1}, {"minutes": 0}])
def test_a_bound_that_is_none_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be more than 0"):
        Crawler(sites="vnexpress.net", **wrong)
