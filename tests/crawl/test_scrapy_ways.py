"""What a Scrapy engineer tries first: feeds, own pipelines, stock monitors, shell, fetch, parse,
bench, an own spider."""

from __future__ import annotations

import ast
import csv
import html
import io
import json
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from scrapy import Request
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.settings import Settings

from newscrawler.crawl import ignored_settings
from newscrawler.crawl.output import ArticleCsvExporter
from newscrawler.items import Article
from newscrawler.pipelines import IndexPipeline
from newscrawler.spiders.news import NewsSpider
from tests.crawl.harness import Finished, Scrapy
from tests.crawl.small import QUIET, crawler, stored
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow

#: Thresholds of Spidermon's stock monitors: what a good crawl keeps to.
GOOD = {
    "SPIDERMON_MIN_ITEMS": 5,
    "SPIDERMON_MAX_ERRORS": 0,
    "SPIDERMON_MAX_DOWNLOADER_EXCEPTIONS": 0,
    "SPIDERMON_MAX_RETRIES": 0,
    "SPIDERMON_MIN_SUCCESSFUL_REQUESTS": 10,
    "SPIDERMON_MAX_REQUESTS_ALLOWED": 5_000,
    "SPIDERMON_MAX_ITEM_VALIDATION_ERRORS": 0,
    "SPIDERMON_FIELD_COVERAGE_RULES": json.dumps({"Article/title": 1.0, "Article/url": 1.0}),
}


@dataclass
class Crawled:
    folder: Path
    web: NewswebProcess
    done: Finished
    articles: list[Article]


def no_traceback(done: Finished) -> None:
    assert "Traceback" not in done.stderr, done.stderr[done.stderr.index("Traceback") - 500 :][
        :4000
    ]


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewswebProcess]:
    made = NewswebProcess("ip", tmp_path_factory.mktemp("web"), sites=1, articles=15, **QUIET)
    yield made
    made.stop()


# ---------------------------------------------------------------- feeds and stats of a crawl as shipped
@pytest.fixture(scope="module")
def feeds(web: NewswebProcess, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    folder = tmp_path_factory.mktemp("feeds")
    outputs = [part for kind in ("jsonl", "csv", "xml") for part in ("-o", f"{folder}/out.{kind}")]
    scrapy = crawler(folder, web, SPIDERMON_ENABLED=True)
    done = scrapy.run("crawl", "news", *outputs)
    assert done.returncode == 0, done.stderr[-3000:]
    return Crawled(folder, web, done, stored(scrapy.data))


def rows_of(crawled: Crawled, kind: str) -> list[dict[str, Any]]:
    path = crawled.folder / f"out.{kind}"
    if kind == "jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if kind == "csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    return [{cell.tag: cell.text for cell in row} for row in ElementTree.parse(path).getroot()]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "xml"])
def test_a_feed_has_exactly_the_stored_articles(feeds: Crawled, kind: str) -> None:
    articles = {article.url: article for article in feeds.articles}
    assert len(articles) >= 10, feeds.done.stderr[-3000:]
    rows = rows_of(feeds, kind)
    assert sorted(row["url"] for row in rows) == sorted(articles)
    for row in rows:
        article = articles[row["url"]]
        assert (row["id"], row["title"], row["content"]) == (
            article.id, article.title, article.content.replace("\r", ""),
        )  # fmt: skip
        assert article.published is not None
        assert datetime.fromisoformat(row["published"]) == article.published, "with its zone"
    no_traceback(feeds.done)


def test_columns_are_the_fields_of_an_article(feeds: Crawled) -> None:
    fields = list(Article.__dataclass_fields__)
    for kind in ("jsonl", "csv"):
        assert all(list(row) == fields for row in rows_of(feeds, kind)), kind
    several = [a for a in feeds.articles if len(a.authors) > 1]
    by_url = {row["url"]: row for row in rows_of(feeds, "csv")}
    assert several, "no article with two authors"
    assert by_url[several[0].url]["authors"] == "; ".join(several[0].authors)
    assert json.loads(by_url[several[0].url]["origins"])["title"]
    as_json = {row["url"]: row for row in rows_of(feeds, "jsonl")}
    assert as_json[several[0].url]["authors"] == several[0].authors


def test_no_cell_of_a_csv_feed_is_a_formula() -> None:
    file = io.BytesIO()
    exporter = ArticleCsvExporter(file)
    exporter.start_exporting()
    for title in ("=HYPERLINK(1)", "Giá vàng"):
        exporter.export_item(
            Article(id="1", url="http://a.vn/1", site="a.vn", title=title, content="x")
        )
    exporter.finish_exporting()
    dangerous, plain = csv.DictReader(io.StringIO(file.getvalue().decode()))
    assert dangerous["title"] == "'=HYPERLINK(1)" and plain["title"] == "Giá vàng"


def test_scrapys_usual_stats_are_counted(feeds: Crawled) -> None:
    stat = feeds.done.stat
    pages = stat("page/fetched")
    assert pages >= 20
    assert stat("downloader/request_count") == stat("downloader/response_count") == pages
    assert stat("downloader/request_method_count/GET") == pages
    assert stat("response_received_count") == pages
    assert stat("downloader/response_bytes") > stat("page/bytes") > 0
    by_status = {
        name.rpartition("/")[2]: count
        for name, count in feeds.done.stats.items()
        if name.startswith("downloader/response_status_count/")
    }
    assert by_status and sum(by_status.values()) == pages
    assert by_status["200"] == stat("page/status/200")
    assert stat("item_scraped_count") == len(feeds.articles) == stat("article/new")
    assert stat("finish_reason") == "finished"
    enabled = feeds.done.stderr[feeds.done.stderr.index("Enabled item pipelines") :]
    names = re.findall(r"newscrawler\.pipelines\.(\w+)", enabled[:600])
    assert names == ["CleanPipeline", "DeduplicatePipeline", "RawStorePipeline", "IndexPipeline"]


# ---------------------------------------------------------------- own pipelines and monitors
def own_crawl(
    folder: Path, web: NewswebProcess, env: dict[str, str] | None = None, **settings: Any
) -> tuple[Scrapy, Finished]:
    scrapy = crawler(
        folder,
        web,
        **{**GOOD, "SPIDERMON_ENABLED": True, "OWN_PIPELINE_FILE": folder / "seen", **settings},
    )
    scrapy.env.update({"SCRAPY_SETTINGS_MODULE": "tests.crawl.own_parts", **(env or {})})
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]
    return scrapy, done


def monitors_of(done: Finished) -> dict[str, str]:
    """Stock monitor -> OK, FAIL, or SKIPPED (what it looks at never happened), from
    Spidermon's lines in the log."""
    lines = re.findall(r"\[Spidermon\] ([\w ]+/.+)\.\.\. (\w+)", done.stderr)
    return dict(lines)


def test_own_pipelines_stand_beside_ours(web: NewswebProcess, tmp_path: Path) -> None:
    dropped_ids = "01234567"
    scrapy, done = own_crawl(tmp_path, web, OWN_DROPS=dropped_ids, SPIDERMON_MIN_ITEMS=1)
    no_traceback(done)
    seen = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    early = {row["url"]: row for row in seen if row["pipeline"] == "Early"}
    late = {row["url"]: row for row in seen if row["pipeline"] == "Late"}
    articles = {a.url: a for a in stored(scrapy.data)}
    dropped = set(early) - set(late)
    assert dropped and late, "both kinds are needed to say anything"
    assert set(late) == set(articles), "what the early one dropped is not stored, all else is"
    assert {a.section for a in articles.values()} == {"by an own pipeline"}
    assert {row["raw_ref"] for row in early.values()} == {None}
    kept = {url: row["raw_ref"] for url, row in late.items()}
    assert kept == {url: a.raw_ref for url, a in articles.items()}
    assert early[min(early)]["fields"] == sorted(Article.__dataclass_fields__)
    # finished, counted, and not tried again
    assert done.stat("page/outcome/REFUSED") >= len(dropped)
    assert done.stat("page/reason/REFUSED(dropped)") == len(dropped)
    assert done.stat("item_dropped_count") == len(dropped)
    assert done.stat("retry/count") == 0
    asked = [f"http://{hit['host']}{hit['path']}" for hit in web.hits()]
    again = scrapy.run("crawl", "news")
    assert again.stat("page/reason/REFUSED(dropped)") == 0
    now = [f"http://{hit['host']}{hit['path']}" for hit in web.hits()]
    assert not dropped & set(now[len(asked) :]), "a dropped article was fetched again"


def test_stock_monitors_pass_on_a_good_crawl(web: NewswebProcess, tmp_path: Path) -> None:
    _, done = own_crawl(tmp_path, web)
    no_traceback(done)
    ends = monitors_of(done)
    assert len(ends) == 11, done.stderr[-6000:]
    assert Counter(ends.values()) == {"OK": 8, "SKIPPED": 3}, ends
    assert done.stat("spidermon_field_coverage/Article/title") == 1.0
    assert done.stat("spidermon/validation/items") == done.stat("item_scraped_count") >= 10


def test_stock_monitors_fail_on_a_bad_crawl(tmp_path: Path) -> None:
    faults = {**QUIET, "faults": "status-404,drop"}
    web = NewswebProcess("ip", tmp_path / "web", sites=1, articles=15, **faults)
    try:
        _, done = own_crawl(
            tmp_path,
            web,
            {"OWN_INCREASE": "1000"},
            OWN_RAISES="01234567",
            OWN_SPOILS="89abcdef",
            FRONTIER_MAX_TRIES=1,
            SPIDERMON_MIN_ITEMS=1_000,
            SPIDERMON_EXPECTED_FINISH_REASONS="done",
            SPIDERMON_UNWANTED_HTTP_CODES="[404]",
            SPIDERMON_UNWANTED_HTTP_CODES_MAX_COUNT=0,
            SPIDERMON_MIN_SUCCESSFUL_REQUESTS=100_000,
            SPIDERMON_MAX_REQUESTS_ALLOWED=3,
            SPIDERMON_FIELD_COVERAGE_RULES=json.dumps({"Article/gone": 1.0}),
        )
    finally:
        web.stop()
    ends = monitors_of(done)
    assert len(ends) == 11, done.stderr[-6000:]
    assert set(ends.values()) == {"FAIL"}, ends
    for stat in ("downloader/exception_count", "retry/max_reached", "log_count/ERROR"):
        assert done.stat(stat) >= 1, stat


def test_a_switched_off_store_is_said(web: NewswebProcess, tmp_path: Path) -> None:
    off = {"newscrawler.pipelines.IndexPipeline": None}
    done = crawler(tmp_path, web, ITEM_PIPELINES=json.dumps(off)).run(
        "crawl", "news", "-o", f"{tmp_path}/out.jsonl"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Articles are not stored" in done.stderr
    no_traceback(done)
    assert done.stat("page/outcome/DONE") > 10 and done.stat("article/new") == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(lines) == done.stat("item_scraped_count") >= 10


# ---------------------------------------------------------------- Scrapy's own commands
@pytest.fixture(scope="module")
def person(web: NewswebProcess, tmp_path_factory: pytest.TempPathFactory) -> Scrapy:
    """What somebody types who has not read our pages: nothing is set but the way to the web."""
    return Scrapy(tmp_path_factory.mktemp("person"), {"SITES_FILE": web.sites_file})


def an_article(web: NewswebProcess) -> dict[str, Any]:
    return next(row for row in web.articles() if row["should_be_found"] and not row["optional"])


def nothing_was_left(scrapy: Scrapy, done: Finished) -> None:
    no_traceback(done)
    assert not scrapy.data.exists(), f"a Redis or a store was begun: {list(scrapy.data.rglob('*'))}"


def asked(web: NewswebProcess) -> list[str]:
    return [f"http://{hit['host']}{hit['path']}" for hit in web.hits()]


@pytest.mark.parametrize("spider", [(), ("--spider=news",)])
def test_shell(web: NewswebProcess, person: Scrapy, spider: tuple[str, ...]) -> None:
    article = an_article(web)
    code = "(response.status, response.css('h1::text').get().strip(), type(spider).__name__)"
    done = person.run("shell", article["url"], "-c", code, *spider, timeout=60)
    assert done.returncode == 0, done.stderr[-3000:]
    status, headline, name = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    assert (status, headline) == (200, article["title"])
    assert name == ("NewsSpider" if spider else "DefaultSpider")
    nothing_was_left(person, done)


def test_shell_reads_a_local_file(person: Scrapy, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1>Local</h1>")
    done = person.run("shell", str(page), "-c", "response.css('h1::text').get()", timeout=60)
    assert done.stdout.strip().splitlines()[-1] == "Local", done.stderr[-3000:]
    nothing_was_left(person, done)


def test_fetch_prints_the_page_and_follows_redirects(web: NewswebProcess, person: Scrapy) -> None:
    article = an_article(web)
    host = "/".join(article["url"].split("/")[:3])
    before = len(asked(web))
    done = person.run("fetch", f"{host}/redirect?to={article['url']}", timeout=60)
    assert article["title"] in html.unescape(done.stdout), done.stderr[-3000:]
    now = asked(web)[before:]
    assert f"{host}/robots.txt" in now and article["url"] in now, "robots.txt was asked for"
    nothing_was_left(person, done)


def test_the_guard_stands_before_fetch_at_each_hop(web: NewswebProcess, person: Scrapy) -> None:
    host = "/".join(an_article(web)["url"].split("/")[:3])
    for url in (
        "http://10.0.0.1/",
        f"{host}/redirect?to=http://169.254.169.254/latest/",
        f"{host}/redirect?to=file:///etc/passwd",
    ):
        done = person.run("fetch", url, timeout=60)
        assert not done.stdout.strip(), f"{url}: {done.stdout[:300]}"
        assert "root:" not in done.stdout + done.stderr
        if "file:" not in url:
            assert "address is refused" in done.stderr or "leads to" in done.stderr, url


def test_robots_txt_is_obeyed_by_fetch(web: NewswebProcess, person: Scrapy) -> None:
    host = "/".join(an_article(web)["url"].split("/")[:3])
    with urllib.request.urlopen(f"{host}/robots.txt", timeout=10) as answer:
        (path, *_) = re.findall(r"(?m)^Disallow: (/[\w/-]+)$", answer.read().decode())
    done = person.run("fetch", host + path, timeout=60)
    assert not done.stdout.strip()
    assert "'robotstxt/forbidden': 1" in done.stderr, done.stderr[-2000:]
    assert host + path not in asked(web)


@pytest.mark.long
@pytest.mark.parametrize("command", [("fetch",), ("parse", "--spider=news")], ids=" ".join)
def test_a_name_that_is_not_found_is_a_line_and_a_failure(
    person: Scrapy, command: tuple[str, ...]
) -> None:
    done = person.run(*command, "http://nobody.invalid/", "-s", "LOG_ENABLED=False", timeout=90)
    assert done.returncode == 1, done.stderr[-3000:]
    (line,) = done.stderr.splitlines()
    assert line.startswith("http://nobody.invalid/ could not be fetched: ")
    assert "its name was not found" in line


def test_a_page_that_cannot_be_had_is_told_without_a_traceback(person: Scrapy) -> None:
    """With the log on; the shell in code and at its prompt, where it ends as well."""
    dead = "http://192.0.2.1.invalid/"
    for command in (("fetch", dead), ("shell", dead), ("shell", dead, "-c", "1")):
        done = person.run(*command, "-s", "RETRY_ENABLED=False", timeout=90)
        assert done.returncode == 1, done.stderr[-3000:]
        assert f"{dead} could not be fetched: " in done.stderr.splitlines()[-1]
        assert "name is not known" in done.stderr
        nothing_was_left(person, done)
    done = person.run("shell", "http://10.0.0.1/", timeout=90)
    assert done.returncode == 1 and "address is refused" in done.stderr.splitlines()[-1]
    nothing_was_left(person, done)


def test_parse_shows_the_article_and_its_links(web: NewswebProcess, person: Scrapy) -> None:
    article = an_article(web)
    done = person.run("parse", "--spider=news", article["url"], "--nocolour", timeout=60)
    assert done.returncode == 0, done.stderr[-3000:]
    items, _, requests = done.stdout.partition("# Requests")
    assert repr(article["title"]) in items and "'content'" in items, done.stdout[:3000]
    assert requests.count("<GET http") > 5
    nothing_was_left(person, done)


def test_parse_of_a_home_page_shows_its_links(web: NewswebProcess, person: Scrapy) -> None:
    home = "/".join(an_article(web)["url"].split("/")[:3]) + "/"
    done = person.run("parse", "--spider=news", home, "--nocolour", "--pipelines", timeout=60)
    items, _, requests = done.stdout.partition("# Requests")
    assert "'title'" not in items
    assert an_article(web)["url"] in requests or requests.count("<GET http") > 10
    nothing_was_left(person, done)


def test_bench_runs(person: Scrapy) -> None:
    done = person.run("bench", "-s", "CLOSESPIDER_TIMEOUT=3", timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = re.search(r"'response_received_count': (\d+)", done.stderr)
    assert pages and int(pages[1]) > 50, done.stderr[-3000:]
    assert "'finish_reason': 'closespider_timeout'" in done.stderr
    nothing_was_left(person, done)


# ---------------------------------------------------------------- another spider of this project
OWN_SPIDER = """
import scrapy
from tests.crawl import own_items


class OwnSpider(scrapy.Spider):
    name = "own"
    start_urls = ["{home}"]
    custom_settings = {{
        "ITEM_PIPELINES": {{"tests.crawl.own_items.Upper": 100}},
        "DEPTH_LIMIT": 1,
    }}

    def parse(self, response):
        title = response.css("h1::text").get()
        if title:
            yield own_items.Headline(url=response.url, title=title.strip())
        for href in response.css("a::attr(href)").getall()[:40]:
            if href.startswith(("/", "{home}")):
                yield response.follow(href, self.parse)
"""


def test_a_spider_of_ones_own(web: NewswebProcess, tmp_path: Path) -> None:
    home = "/".join(an_article(web)["url"].split("/")[:3]) + "/"
    spiders = tmp_path / "own_spiders"
    spiders.mkdir()
    (spiders / "__init__.py").write_text("")
    scrapy = Scrapy(
        tmp_path,
        {
            "SPIDER_MODULES": "newscrawler.spiders,own_spiders",
            "NEWSPIDER_MODULE": "own_spiders",
            "DOWNLOAD_DELAY": "0.05",
            "AUTOTHROTTLE_ENABLED": "False",
        },
        {"PYTHONPATH": str(tmp_path)},
    )
    made = scrapy.run("genspider", "own", home.split("/")[2], timeout=60)
    assert made.returncode == 0, made.stderr
    assert (spiders / "own.py").exists(), made.stdout
    listed = scrapy.run("list", timeout=60)
    assert listed.stdout.split() == ["news", "own"], listed.stderr
    (spiders / "own.py").write_text(OWN_SPIDER.format(home=home))
    before = len(asked(web))
    done = scrapy.run("crawl", "own", "-o", f"{tmp_path}/own.jsonl")
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in (tmp_path / "own.jsonl").read_text().splitlines()]
    assert len(rows) >= 5, done.stderr[-3000:]
    assert all(
        row["title"] == row["title"].upper() and set(row) == {"url", "title"} for row in rows
    )
    now = asked(web)[before:]
    assert now[0] == f"{home}robots.txt", "robots.txt first"
    assert "'item_scraped_count'" in done.stderr and "'scheduler/enqueued/memory'" in done.stderr
    nothing_was_left(scrapy, done)


# ---------------------------------------------------------------- settings that would be ignored
IGNORED = (
    "RETRY_ENABLED=True", "RETRY_TIMES=5", "REDIRECT_ENABLED=1", "METAREFRESH_ENABLED=True", "HTTPCACHE_ENABLED=True",
    "COOKIES_ENABLED=True", "SCHEDULER=scrapy.core.scheduler.Scheduler", "DUPEFILTER_CLASS=scrapy.dupefilters.RFPDupeFilter",
    "CONCURRENT_REQUESTS_PER_DOMAIN=2", "CONCURRENT_REQUESTS_PER_DOMAIN=8", "AJAXCRAWL_ENABLED=True", "DEPTH_LIMIT=2", "JOBDIR=jobs/one",
    "DOWNLOAD_DELAY_JITTER=0.5", 'DOWNLOAD_SLOTS={"a.vn": {"delay": 9}}', "HTTPERROR_ALLOWED_CODES=404", "HTTPAUTH_USER=me",
    "DNS_TIMEOUT=5", "DOWNLOAD_BIND_ADDRESS=127.0.0.1", "DOWNLOAD_FAIL_ON_DATALOSS=False", "REFERER_ENABLED=True", "REDIS_HOST=redis.example",
    "SCHEDULER_QUEUE_CLASS=scrapy_redis.queue.FifoQueue", "FRONTIER_ENABLED=False", "URLLENGTH_LIMIT=100", "DOWNLOAD_TLS_MIN_VERSION=TLSv1.3",
    'ITEM_PIPELINES={"scrapy.pipelines.images.ImagesPipeline": 1}',
)  # fmt: skip


@pytest.mark.parametrize("setting", IGNORED)
def test_a_setting_that_would_be_ignored_is_refused_in_one_line(
    setting: str, tmp_path: Path
) -> None:
    name, _, value = setting.partition("=")
    done = Scrapy(tmp_path, {name: value}).run("crawl", "news", timeout=60)
    assert done.returncode == 2, done.stderr[-2000:]
    no_traceback(done)
    (line,) = [line for line in done.stderr.splitlines() if ": error: " in line]
    assert name in line and ("would be ignored" in line or "are refused" in line), line
    assert not (tmp_path / "data").exists(), "refused before anything was started"


@pytest.mark.parametrize(
    "setting",
    [
        "RETRY_ENABLED=False", "COOKIES_ENABLED=0", "CONCURRENT_REQUESTS_PER_DOMAIN=1", "HTTPCACHE_ENABLED=False",
        "SCHEDULER=newscrawler.scheduler.Scheduler", "CONCURRENT_REQUESTS=8", "DEPTH_STATS_VERBOSE=False",
    ],
)  # fmt: skip
def test_what_says_the_same_is_accepted(setting: str) -> None:
    name, _, value = setting.partition("=")
    settings = Settings()
    settings.setmodule("newscrawler.settings", priority="project")
    settings.set(name, value, priority="cmdline")
    ignored_settings.refuse(settings)
    assert settings.get(name) == value, "it is left as it was said"


def test_what_is_refused_in_a_crawl_works_in_the_shell(web: NewswebProcess, person: Scrapy) -> None:
    code = (
        "[m for m in settings.getlist('X')] or (settings.getbool('RETRY_ENABLED'), response.status)"
    )
    done = person.run(
        "shell",
        an_article(web)["url"],
        "-c",
        code,
        "-s",
        "RETRY_ENABLED=True",
        "-s",
        "COOKIES_ENABLED=True",
        timeout=60,
    )
    assert done.stdout.strip().splitlines()[-1] == "(True, 200)", done.stderr[-3000:]
    assert "retry.RetryMiddleware" in done.stderr and "cookies.CookiesMiddleware" in done.stderr


# ---------------------------------------------------------------- whose setting counts
def news_settings(project: dict[str, Any], cmdline: dict[str, Any]) -> Settings:
    settings = Settings()
    settings.setmodule("newscrawler.settings", priority="project")
    settings.setdict(project, priority="project")
    settings.setdict(cmdline, priority="cmdline")
    runner = AsyncCrawlerRunner(
        settings
    )  # as the commands do it: a crawler is made, then handed in
    return runner.create_crawler(runner.create_crawler(NewsSpider)).settings


def test_own_pipelines_are_added_wherever_they_are_set() -> None:
    ours = list(news_settings({}, {})["ITEM_PIPELINES"])
    assert len(ours) == 4
    for project, cmdline in (
        ({"a.B": 150}, None),
        (None, '{"a.B": 150}'),
        ({"x.Y": 1}, '{"a.B": 150}'),
    ):
        found = news_settings(
            {"ITEM_PIPELINES": project} if project else {},
            {"ITEM_PIPELINES": cmdline} if cmdline else {},
        )
        assert dict(found["ITEM_PIPELINES"])["a.B"] == 150
        assert set(ours) < set(found["ITEM_PIPELINES"])
    by_class = news_settings({"ITEM_PIPELINES": {IndexPipeline: None}}, {})["ITEM_PIPELINES"]
    assert by_class[IndexPipeline] is None
    assert "newscrawler.pipelines.IndexPipeline" not in by_class


def test_the_command_line_wins_over_the_spider_and_settings_py_over_its_defaults() -> None:
    found = news_settings(
        {"LOGSTATS_INTERVAL": 7}, {"CONCURRENT_ITEMS": "3", "STATS_CLASS": "a.Stats"}
    )
    assert (found["LOGSTATS_INTERVAL"], found.getint("CONCURRENT_ITEMS")) == (7, 3)
    assert found["STATS_CLASS"] == "a.Stats"
    assert found["SCHEDULER"] == "newscrawler.scheduler.Scheduler"
    plain = Settings()
    plain.setmodule("newscrawler.settings", priority="project")
    assert plain["SCHEDULER"] == "scrapy.core.scheduler.Scheduler", "other spiders have Scrapy's"
    assert not dict(plain["ITEM_PIPELINES"])


def test_no_address_asks_for_the_news_spider() -> None:
    """Scrapy takes a spider's name for a domain: every host under .news would be its own."""
    assert not NewsSpider.handles_request(Request("https://something.news/"))
