"""newscrawler.stats: Scrapy's counters and the one receiver of a page's end, on a real Crawler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.extensions import corestats
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from newscrawler.stats import CoreStats, PageEnds, StatsCollector


@pytest.fixture
def crawler() -> Crawler:
    made = Crawler(Spider, Settings({"STATS_CLASS": "newscrawler.stats.StatsCollector"}))
    made.stats = StatsCollector(made)
    return made


def tell(crawler: Crawler, item: Any) -> None:
    crawler.signals.send_catch_log(signals.item_scraped, item=item, response=None, spider=None)


def test_counts_as_scrapys_own(crawler: Crawler) -> None:
    theirs = MemoryStatsCollector(crawler)
    for stats in (crawler.stats, theirs):
        assert stats is not None
        stats.inc_value("a")
        stats.inc_value("a", 4)
        stats.inc_value("b", start=7)
        stats.max_value("most", 3)
        stats.max_value("most", 2)
        stats.min_value("least", 3)
        stats.min_value("least", 2)
        stats.set_value("c", "word")
    assert crawler.stats is not None
    assert crawler.stats.get_stats() == theirs.get_stats() == {"a": 5, "b": 8, "most": 3, "least": 2, "c": "word"}
    assert crawler.stats.get_value("none", 9) == 9


def test_every_listener_is_called_in_order(crawler: Crawler, caplog: pytest.LogCaptureFixture) -> None:
    said: list[tuple[str, Any]] = []

    def note(name: str) -> Callable[[Any, Any], None]:
        return lambda item, response: said.append((name, item))

    def broken(item: Any, response: Any) -> None:
        raise RuntimeError("no")

    ends = PageEnds.of(crawler)
    for listener in (note("first"), broken, note("last")):
        ends.listen(listener)
    with caplog.at_level(logging.ERROR):
        tell(crawler, "page")
    assert said == [("first", "page"), ("last", "page")]
    assert "test_every_listener_is_called_in_order.<locals>.broken" in caplog.text


def test_one_receiver_for_all(crawler: Crawler) -> None:
    said: list[str] = []
    for name in ("a", "b"):
        PageEnds.of(crawler).listen(lambda item, response, name=name: said.append(name))
    tell(crawler, "page")
    assert said == ["a", "b"]  # each once, though two asked for the receiver


def test_core_stats_say_what_scrapys_say(crawler: Crawler) -> None:
    both = []
    for kind in (CoreStats, corestats.CoreStats):
        one = Crawler(Spider, Settings())
        one.stats = MemoryStatsCollector(one)
        core = kind.from_crawler(one)
        one.signals.send_catch_log(signals.spider_opened, spider=None)
        for item in range(3):
            tell(one, item)
        one.signals.send_catch_log(signals.response_received, spider=None)
        one.signals.send_catch_log(signals.item_dropped, item=1, spider=None, exception=ValueError())
        one.signals.send_catch_log(signals.spider_closed, spider=None, reason="finished")
        both.append({k: v for k, v in one.stats.get_stats().items() if "time" not in k})
        assert core.stats is one.stats
    assert both[0] == both[1]
    assert both[0]["item_scraped_count"] == 3
