"""The Spidermon suites on stats as crawls leave them; alerts go to a real HTTP receiver."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler
from spidermon.contrib.scrapy.runners import SpiderMonitorRunner

from newscrawler import metrics, settings
from newscrawler.crawl.monitors import SIGNATURE_HEADER, CloseSuite, PeriodicSuite, post, sign
from tests.fixtures_webhook import Receiver

# Spidermon 1.27 still logs through Spider.log, which Scrapy 2.19 deprecates.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:Spider\.log:scrapy.exceptions.ScrapyDeprecationWarning"
)

GOOD = {
    "page/outcome/DONE": 90,
    "page/outcome/NOT_ARTICLE": 10,
    "article/new": 60,
    "article/field/title": 60,
    "article/field/content": 60,
    "article/field/published": 59,
    "article/field/authors": 40,
    "finish_reason": "finished",
    "frontier/queued": 0,
}
NAMES = [n for n in vars(settings) if n.startswith(("MONITOR_", "ALERT_"))]


class Bench:
    def __init__(self, url: str, **changed: Any) -> None:
        own = {n: getattr(settings, n) for n in NAMES} | {"ALERT_WEBHOOK_URL": url} | changed
        self.crawler = get_crawler(Spider, own)
        self.spider = self.crawler._create_spider("news")
        self.crawler.spider = self.spider

    def run(self, suite: type, stats: dict[str, Any]) -> None:
        data = {"stats": stats, "crawler": self.crawler, "spider": self.spider}
        SpiderMonitorRunner(spider=self.spider).run(suite(crawler=self.crawler), **data)
        for thread in threading.enumerate():
            if thread.name == "alert-webhook":
                thread.join(10)


@pytest.fixture
def bench(webhook: Receiver, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("ALERT_WEBHOOK_SECRET", "s3cret")
    return Bench(webhook.url)


def test_good_crawl_raises_no_alert(bench: Bench, webhook: Receiver) -> None:
    bench.run(CloseSuite, GOOD)
    bench.run(PeriodicSuite, GOOD)
    assert webhook.alerts == []


@pytest.mark.parametrize(
    ("changed", "monitor", "says"),
    [
        ({"page/outcome/RETRY": 40}, "Errors", "40 of 140 visits failed"),
        (
            {
                "page/outcome/RETRY": 40,
                "page/reason/NOT_ARTICLE(listing)": 90,
                "page/reason/RETRY(dns)": 40,
            },
            "Errors",
            "(at most 20%): RETRY(dns) 40",
        ),
        ({"page/outcome/CHALLENGE": 26}, "Errors", "26 of 126"),
        ({"article/field/published": 40}, "Field coverage", "published: 40 of 60"),
        ({"article/field/authors": 0}, "Field coverage", "authors: 0 of 60"),
        ({"article/field/title": None}, "Field coverage", "title: 0 of 60"),
        ({"finish_reason": "store_away"}, "Finish reason", "'store_away'"),
        ({"finish_reason": None}, "Finish reason", "None"),
        ({"article/new": 0}, "Items", "0 articles of at least 1"),
        ({"log_count/ERROR": 11}, "Errors", "11 error lines"),
    ],
)
def test_each_fault_raises_a_signed_alert(
    bench: Bench, webhook: Receiver, changed: dict[str, Any], monitor: str, says: str
) -> None:
    bench.run(CloseSuite, {k: v for k, v in {**GOOD, **changed}.items() if v is not None})
    assert len(webhook.alerts) == 1
    alert = webhook.alerts[0]
    assert [
        f for f in alert["failures"] if f["monitor"].startswith(monitor) and says in f["reason"]
    ], alert["failures"]
    assert webhook.headers[0][SIGNATURE_HEADER] == sign(webhook.bodies[0], "s3cret")
    assert alert["stats"]["page/outcome/DONE"] == 90


@pytest.mark.parametrize(
    ("reason", "took_s", "alerts"),
    [
        ("closespider_timeout", 5.0, 0),
        ("shutdown", 3.0, 0),
        ("closespider_pagecount", 59.0, 0),
        ("closespider_timeout", 61.0, 1),
        ("finished", 5.0, 1),
        ("store_away", 5.0, 1),
    ],
)
@pytest.mark.parametrize("visits", [0, 2])
def test_a_crawl_that_was_stopped_after_seconds_need_not_have_stored_anything(
    bench: Bench, webhook: Receiver, reason: str, took_s: float, alerts: int, visits: int
) -> None:
    stats = {"finish_reason": reason, "elapsed_time_seconds": took_s, "page/outcome/DONE": visits}
    bench.run(CloseSuite, stats)
    assert len(webhook.alerts) == alerts, webhook.alerts


def test_silence_is_an_alarm(bench: Bench, webhook: Receiver) -> None:
    bench.run(CloseSuite, {"finish_reason": "finished"})
    assert "no visit ended" in str(webhook.alerts[0]["failures"])


def test_crawl_without_progress_is_told_once(bench: Bench, webhook: Receiver) -> None:
    busy = {**GOOD, "frontier/queued": 500}
    for _ in range(4):
        bench.run(PeriodicSuite, busy)
    assert len(webhook.alerts) == 1, "one alert per incident"
    assert "500 URLs are queued" in str(webhook.alerts[0]["failures"])
    bench.run(PeriodicSuite, {**busy, "page/outcome/DONE": 91})
    bench.run(PeriodicSuite, {**busy, "page/outcome/DONE": 91})
    assert len(webhook.alerts) == 2, "a second incident is told again"
    assert bench.crawler.stats is not None
    assert bench.crawler.stats.get_value(metrics.MONITOR_FAILED) == 4


def crawled(articles: int, published: int, stored_as: str = "new") -> dict[str, Any]:
    """The stats of a busy crawl of which so many articles have a date; all have the rest."""
    fields = {f"article/field/{name}": articles for name in ("title", "content", "authors")}
    return {
        **GOOD,
        **fields,
        "article/new": 0,
        f"article/{stored_as}": articles,
        "article/field/published": published,
        "page/outcome/DONE": articles,
    }


def test_what_breaks_on_the_tenth_day_is_told_that_day(bench: Bench, webhook: Receiver) -> None:
    bench.run(PeriodicSuite, crawled(10_000, 10_000))
    assert webhook.alerts == []
    bench.run(PeriodicSuite, crawled(10_040, 10_000))
    assert "published: 0 of 40 articles" in str(webhook.alerts[0]["failures"])


def test_a_quiet_hour_neither_ends_nor_repeats_an_incident(bench: Bench, webhook: Receiver) -> None:
    bench.run(PeriodicSuite, crawled(40, 0))
    for articles in (43, 50, 59):  # fewer than are judged
        bench.run(PeriodicSuite, crawled(articles, 0))
    assert len(webhook.alerts) == 1
    bench.run(PeriodicSuite, crawled(60, 20))  # the 20 since the last judgement all have a date
    bench.run(PeriodicSuite, crawled(80, 20))
    assert len(webhook.alerts) == 2, "it broke again"


@pytest.mark.parametrize(("published", "alarm"), [(16, False), (14, False), (13, True)])
def test_few_articles_are_allowed_what_chance_explains(
    bench: Bench, webhook: Receiver, published: int, alarm: bool
) -> None:
    """MONITOR_MIN_PUBLISHED is 0.9: of 20 articles 18 in the long run, 14 by three
    standard deviations."""
    bench.run(PeriodicSuite, crawled(20, published))
    assert bool(webhook.alerts) is alarm


def test_articles_that_are_stored_unchanged_count_as_their_fields_do(
    bench: Bench, webhook: Receiver
) -> None:
    bench.run(CloseSuite, crawled(100, 100, "unchanged") | {"article/new": 40})
    assert {f["monitor"] for f in webhook.alerts[0]["failures"]} == {
        f"Field coverage/{name}" for name in ("title", "content", "published")
    }, "100 of 140"


def test_unchanged_second_crawl_is_no_alarm(bench: Bench, webhook: Receiver) -> None:
    bench.run(CloseSuite, {"page/outcome/UNCHANGED": 100, "finish_reason": "finished"})
    assert webhook.alerts == []


def test_receiver_that_is_away_is_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    assert post("http://127.0.0.1:9/", b"{}", "") is False
    assert "Alert not delivered" in caplog.text


def test_without_a_url_the_log_says_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Bench("").run(CloseSuite, {})
    assert "Monitor failed" in caplog.text
