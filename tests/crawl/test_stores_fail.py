"""The store does not take what it should: a full disk, a read-only one, one article that it refuses.

Nothing may be acked that is not stored: whatever happens, a later crawl has every article.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl.harness import Finished
from tests.crawl.small import QUIET, Queue, complaints, crawler, expected, page_hits, sql, stored
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow


class Disk:
    """A file system of its own, in memory."""

    def __init__(self, path: Path, size: str) -> None:
        self.path = path
        path.mkdir()
        self._mount("size=" + size)

    def _mount(self, options: str) -> None:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "newscrawler-test", self.path], check=True, capture_output=True
        )

    def becomes(self, options: str) -> None:
        self._mount("remount," + options)

    def close(self) -> None:
        subprocess.run(["umount", "-l", self.path], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """8 MB: some pages and articles, not all."""
    try:
        made = Disk(tmp_path / "disk", "8m")
    except (OSError, subprocess.CalledProcessError) as exc:
        if os.environ.get("CI"):
            pytest.fail(f"the tests of a full disk need to mount a tmpfs: {exc}")
        pytest.skip("skipped: a tmpfs cannot be mounted here (needs root)")
    yield made
    made.close()


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    """The queue is on a disk of its own: what is tested is the store."""
    (tmp_path / "queue").mkdir()
    kept = Queue(tmp_path / "queue")
    yield kept
    kept.close()


def stopped(done: Finished, *said: str) -> None:
    assert done.returncode == 1, done.stderr[-3000:]
    last = [line for line in done.stderr.splitlines() if line.startswith("Crawl stopped: ")]
    assert len(last) == 1, done.stderr[-3000:]
    for words in said:
        assert words in last[0], last[0]
    assert "Traceback" not in done.stderr, done.stderr[-3000:]


def test_full_disk_stops_the_crawl_and_nothing_is_lost(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue, disk: Disk
) -> None:
    web = newsweb("ip", sites=4, articles=16, **QUIET)
    scrapy = crawler(tmp_path, web, DATA_DIR=disk.path, REDIS_URL=queue.url)
    disk.becomes("size=2m")
    first = scrapy.run("crawl", "news")
    stopped(first, "store_unavailable")
    assert queue.counts().leased == 0
    disk.becomes("size=300m")
    kept = stored(disk.path)
    assert len(kept) < len(expected(web)), "the disk was large enough for all: the test shows nothing"
    assert len(kept) == first.stat("article/new")
    second = scrapy.run("crawl", "news")
    assert second.returncode == 0, second.stderr[-3000:]
    articles = stored(disk.path)
    assert complaints(web, articles) == []
    assert {a.version for a in articles} == {1}


def test_disk_that_becomes_read_only(tmp_path: Path, newsweb: StartNewsweb, queue: Queue, disk: Disk) -> None:
    web = newsweb("ip", sites=2, articles=6, **QUIET)
    scrapy = crawler(tmp_path, web, REDIS_URL=queue.url, ARTICLE_STORE=f"sqlite:///{disk.path}/articles.db")
    disk.becomes("size=300m")
    uri = scrapy.settings["ARTICLE_STORE"]
    assert scrapy.run("crawl", "news", "-s", "CLOSESPIDER_ITEMCOUNT=30").returncode == 0
    before = {a.url for a in stored(scrapy.data, uri)}
    disk.becomes("ro")
    done = scrapy.run("crawl", "news")
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-2000:]
    assert f"{disk.path}/articles.db" in done.stderr.splitlines()[-1], done.stderr[-2000:]
    assert queue.counts().leased == 0
    disk.becomes("rw")
    assert {a.url for a in stored(scrapy.data, uri)} == before
    assert scrapy.run("crawl", "news").returncode == 0
    assert complaints(web, stored(scrapy.data, uri)) == []


def test_store_that_cannot_be_opened_stops_the_start(tmp_path: Path, newsweb: StartNewsweb, disk: Disk) -> None:
    web = newsweb("ip", sites=1, articles=3, **QUIET)
    disk.becomes("ro")
    places = [
        {"ARTICLE_STORE": f"sqlite:///{disk.path}/articles.db"},
        {"RAW_STORE": disk.path},
        {"DATA_DIR": disk.path},
    ]
    for place in places:
        for command in (("crawl", "news"), ("run", "--no-serve")):
            done = crawler(tmp_path, web, **place).run(*command)
            assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-2000:]
            assert str(disk.path) in done.stderr.splitlines()[-1], done.stderr[-2000:]
    assert web.hits() == [], "nothing is fetched that could not be stored"


def test_one_refused_article_comes_back_and_the_others_are_stored(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=2, articles=6, factor=20, **QUIET)  # the minute to the next try is 3 s
    queue.set_clock(web.about["clock"])
    scrapy = crawler(tmp_path, web, REDIS_URL=queue.url, CRAWL_LONGEST_WAIT_S=1, STORE_BATCH_MS=300)
    scrapy.run("crawl", "news", "-s", "CLOSESPIDER_PAGECOUNT=1")  # makes the file
    refused = sorted(expected(web) - {a.url for a in stored(scrapy.data)})[0]
    database = scrapy.data / "articles.db"
    assert database.exists()
    sql(
        database,
        f"CREATE TRIGGER no BEFORE INSERT ON article WHEN new.url = '{refused}' BEGIN SELECT RAISE(ABORT, 'not this one'); END",
    )
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]
    assert {a.url for a in stored(scrapy.data)} == expected(web) - {refused}, done.stderr[-3000:]
    assert page_hits(web)[refused] >= 1
    assert "not this one" in done.stderr and refused in done.stderr
    assert queue.counts().queued == 1, "it waits for its next try"
    sql(database, "DROP TRIGGER no")
    scrapy.settings["CRAWL_LONGEST_WAIT_S"] = "8"
    assert scrapy.run("crawl", "news").returncode == 0
    assert complaints(web, stored(scrapy.data)) == []
