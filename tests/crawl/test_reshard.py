"""`scrapy frontier reshard` beside a crawl: the shards change, the reshard is killed, and the site
and the store see nothing of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crawl.harness import until
from tests.crawl.small import QUIET, Queue, complaints, crawler, expected, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_shards_change_under_two_workers_and_a_killed_reshard_goes_on(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=5, articles=20, **{**QUIET, "delay": 0.2})
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=0.2, CRAWL_LONGEST_WAIT_S=20)
    workers = [scrapy.start("crawl", "news") for _ in range(2)]

    def visits() -> int:
        return sum(worker.text().count("Visit ended") for worker in workers)

    until(lambda: visits() > 25, "25 pages of two workers", 90)
    first = scrapy.start("frontier", "reshard", "3", "--urls", "1")
    until(lambda: first.text().count("moved domains=") >= 2, "two steps of the reshard", 60)
    first.kill()
    assert all(worker.process.poll() is None for worker in workers)
    second = scrapy.run("frontier", "reshard", "3", "--urls", "5", "--json")
    assert second.returncode == 0, second.stderr[-2000:]
    told = json.loads(second.stdout)
    assert told["shards"] == 3 and told["before"]["domains"] == told["after"]["domains"] > 3
    seen = visits()
    until(lambda: visits() > seen + 5, "pages after the change", 90)
    third = scrapy.run("frontier", "reshard", "2")
    assert third.returncode == 0, third.stderr[-2000:]
    assert "2 shards: " in third.stdout

    for worker in workers:
        ended = worker.wait(180)
        assert ended.returncode == 0, ended.stderr[-2000:]
        assert "Traceback" not in ended.stderr
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    assert len(articles) == len(expected(web))  # once each, under one of its addresses
    assert judge.politeness(web.hits(), web.truth()) == []
    report = json.loads(scrapy.run("frontier", "report", "--json").stdout.splitlines()[-1])
    assert report is not None
    counts = queue.counts()
    assert (counts.queued, counts.leased) == (0, 0)


def test_wrong_numbers_are_wrong_usage(tmp_path: Path, newsweb: StartNewsweb) -> None:
    scrapy = crawler(tmp_path, newsweb("ip", sites=1, articles=1, **QUIET))
    for words in (["reshard"], ["reshard", "0"], ["reshard", "x"], ["reshard", "2", "--urls", "0"]):
        ended = scrapy.run("frontier", *words)
        assert ended.returncode == 2, words
        assert "Traceback" not in ended.stderr
