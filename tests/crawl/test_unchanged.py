"""What changed is never lost, and what did not change is not written: a link, a digit, a
304, an equal body.

The frontier's clock and the web's run sixty times as fast, so that a revisit after 15
minutes is one after 15 s.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import Scrapy, until
from tests.crawl.small import QUIET, Queue, crawler, expected, stored, versions
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow

FACTOR = 60


@pytest.fixture
def web(newsweb: StartNewsweb, queue: Queue) -> NewswebProcess:
    """Two sites with everything on them, and a queue that lives in their time."""
    made = newsweb("ip", sites=2, articles=6, factor=FACTOR, **{**QUIET, "delay": 1})
    queue.set_clock(made.about["clock"])
    return made


@pytest.fixture
def scrapy(tmp_path: Path, web: NewswebProcess, queue: Queue) -> Scrapy:
    return crawler(tmp_path, web, DOWNLOAD_DELAY=1, CRAWL_LONGEST_WAIT_S=1, REDIS_URL=queue.url)


def visits(log: str, url: str, outcome: str) -> int:
    return sum(
        1
        for line in log.splitlines()
        if "Visit ended" in line and f"url={url} " in line and f"outcome={outcome}" in line
    )


def raw_records(data: Path) -> int:
    """Answers in the WARC files, also in one that is still written."""
    total = 0
    for path in (data / "warc").glob("*.warc.gz*"):
        with gzip.open(path) as file:
            total += file.read().count(b"WARC-Type: response")
    return total


def statuses(web: NewswebProcess, start: int) -> Counter[int]:
    return Counter(hit["status"] for hit in web.hits()[start:])


@pytest.mark.long
def test_one_new_link_and_one_changed_digit(web: NewswebProcess, scrapy: Scrapy) -> None:
    assert scrapy.run("crawl", "news").returncode == 0
    articles = {a.url: a for a in stored(scrapy.data)}
    assert set(articles) == expected(web)
    site = web.truth()[1]["site"]
    (fresh,) = web.publish(
        site, channels=["list"]
    )  # linked on the section and the home page, nowhere else
    young = next(a for a in articles.values() if any(c.isdigit() for c in a.content))
    edited = web.edit(young.url, "digit")["edits"][-1]
    assert len(edited["content"]) == len(web.articles(url=young.url)[0]["content"])

    running = scrapy.start("crawl", "news", "-s", "CRAWL_FOREVER=True")
    try:
        until(lambda: fresh["url"] in {a.url for a in stored(scrapy.data)}, "the new article", 40)
        until(lambda: len(versions(scrapy.data, young)) == 2, "the changed digit as version 2", 40)
        running.interrupt()
        done = running.wait(30)
    finally:
        if running.process.poll() is None:
            running.kill()
    old, new = sorted(versions(scrapy.data, young), key=lambda a: a.version)
    assert (old.version, new.version) == (1, 2)
    differing = [(a, b) for a, b in zip(old.content, new.content, strict=True) if a != b]
    assert len(differing) == 1 and all(a.isdigit() and b.isdigit() for a, b in differing)
    assert done.stat("article/updated") == 1
    assert done.stat("article/new") == 1
    unchanged = {a.url: a.version for a in stored(scrapy.data) if a.url != young.url}
    assert set(unchanged.values()) == {1}


@pytest.mark.long
def test_what_did_not_change_is_not_written(web: NewswebProcess, scrapy: Scrapy) -> None:
    first = scrapy.run("crawl", "news")
    assert first.returncode == 0
    before = {a.url: (a.version, a.fetched) for a in stored(scrapy.data)}
    records = raw_records(scrapy.data)
    assert records == first.stat("raw/records") > 0
    asked = len(web.hits())

    running = scrapy.start("crawl", "news", "-s", "CRAWL_FOREVER=True")
    try:  # every article is looked at again 15 simulated minutes after it was found
        until(
            lambda: all(visits(running.text(), url, "UNCHANGED") for url in before),
            "all articles again",
            50,
        )
        running.interrupt()
        done = running.wait(30)
    finally:
        if running.process.poll() is None:
            running.kill()
    answers = statuses(web, asked)
    assert answers[304] > 0 and answers[200] > 0, f"both kinds of unchanged occurred: {answers}"
    written: dict[str, Any] = {
        name: done.stat(name)
        for name in ("raw/records", "article/new", "article/updated", "article/unchanged")
    }
    assert set(written.values()) == {0}, written
    assert raw_records(scrapy.data) == records
    assert {a.url: (a.version, a.fetched) for a in stored(scrapy.data)} == before
    assert done.stat("page/outcome/UNCHANGED") >= len(before)
