"""The store does not take what it should: a full disk, a read-only one, one
article that it refuses.

Nothing may be acked that is not stored: whatever happens, a later crawl has every article.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from newscrawler.items import Article
from newscrawler.store.elasticsearch.article_store import ElasticStore
from tests import fixtures_elasticsearch as es
from tests import tls_proxy
from tests.crawl.harness import until
from tests.crawl.small import QUIET, Queue, complaints, crawler, expected, page_hits, sql, stored
from tests.fixtures_disk import Disk
from tests.fixtures_newsweb import StartNewsweb
from tests.fixtures_tls import TestCA

pytestmark = pytest.mark.slow


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    """The queue is on a disk of its own: what is tested is the store."""
    (tmp_path / "queue").mkdir()
    kept = Queue(tmp_path / "queue")
    yield kept
    kept.close()


def test_full_disk_is_waited_for_and_nothing_is_lost(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue, disk: Disk
) -> None:
    web = newsweb("ip", sites=4, articles=16, **QUIET)
    scrapy = crawler(tmp_path, web, DATA_DIR=disk.path, REDIS_URL=queue.url)
    disk.becomes("size=2m")
    running = scrapy.start("crawl", "news")
    until(lambda: "Waiting for" in running.text(), "it says so", 120)
    hits = len(web.hits())
    until(lambda: not queue.counts().queued or len(web.hits()) < hits + 100, "no more is asked")
    assert running.process.poll() is None, running.text()[-3000:]
    disk.becomes("size=300m")
    done = running.wait(180)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert "is back, goes on" in done.stderr
    assert 1 <= len(re.findall("aiting for the", done.stderr)) <= 6
    articles = stored(disk.path)
    assert complaints(web, articles) == []
    assert {a.version for a in articles} == {1}
    assert queue.counts().leased == 0


def redis_status(data: Path) -> str:
    """How the last write to the file of the queue's Redis ended."""
    with redis.Redis(unix_socket_path=str(data / "redis" / "redis.sock")) as client:
        return str(client.info("persistence")["aof_last_write_status"])


@pytest.mark.long
def test_one_disk_for_everything_that_becomes_full_is_waited_for(
    tmp_path: Path, newsweb: StartNewsweb, disk: Disk
) -> None:
    """As on a laptop: articles, their index, raw pages, logs, and the queue with its own Redis."""
    web = newsweb("ip", sites=4, articles=16, **QUIET)
    scrapy = crawler(tmp_path, web, DATA_DIR=disk.path)
    disk.becomes("size=300m")
    running = scrapy.start("crawl", "news")
    until(lambda: len(page_hits(web)) > 40, "the crawl to be at work", 90)
    disk.becomes(f"size={disk.used_bytes() + 64 * 1024}")
    began = time.monotonic()
    until(lambda: re.search("aiting for", running.text()), "it says so", 120)
    # the few bytes that are left go to the queue's log, which then cannot be written either
    with contextlib.suppress(OSError), (disk.path / "ballast").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    until(lambda: redis_status(disk.path) == "err", "Redis to find no room", 60)
    hits = len(web.hits())
    time.sleep(5)
    assert len(web.hits()) < hits + 40, "no more is asked"
    (disk.path / "ballast").unlink()
    assert running.process.poll() is None, running.text()[-3000:]
    disk.becomes("size=300m")
    full_s = time.monotonic() - began
    done = running.wait(180)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    lines = Counter(re.findall(r"[Ww]aiting for [a-z ]+", done.stderr))
    print(f"full for {full_s:.0f} s: {lines}")
    assert lines and max(lines.values()) <= 1 + full_s / 60
    articles = stored(disk.path)
    assert complaints(web, articles) == []
    assert {a.version for a in articles} == {1}
    queue = Queue(disk.path)
    try:
        assert queue.counts().leased == 0
    finally:
        queue.close()


@pytest.mark.long
def test_a_crawl_that_waits_for_the_disk_can_be_stopped(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue, disk: Disk
) -> None:
    web = newsweb("ip", sites=4, articles=16, **QUIET)
    scrapy = crawler(tmp_path, web, DATA_DIR=disk.path, REDIS_URL=queue.url)
    disk.becomes("size=2m")
    running = scrapy.start("crawl", "news")
    until(lambda: "Waiting for" in running.text(), "it says so", 120)
    running.interrupt()
    done = running.wait(60)
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert queue.counts().leased == 0, "what is not stored went back"
    disk.becomes("size=300m")
    assert scrapy.run("crawl", "news").returncode == 0
    assert complaints(web, stored(disk.path)) == []


@pytest.mark.long
def test_disk_that_becomes_read_only(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue, disk: Disk
) -> None:
    web = newsweb("ip", sites=2, articles=6, **QUIET)
    scrapy = crawler(
        tmp_path, web, REDIS_URL=queue.url, ARTICLE_STORE=f"sqlite:///{disk.path}/articles.db"
    )
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


def test_store_that_cannot_be_opened_stops_the_start(
    tmp_path: Path, newsweb: StartNewsweb, disk: Disk
) -> None:
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


@pytest.mark.long
def test_one_refused_article_comes_back_and_the_others_are_stored(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb(
        "ip", sites=2, articles=6, factor=20, **QUIET
    )  # the minute to the next try is 3 s
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


def test_elasticsearch_with_tls_whose_password_is_refused_under_way(
    tmp_path: Path,
    newsweb: StartNewsweb,
    queue: Queue,
    elasticsearch_server: str,
    tls_ca: TestCA,
) -> None:
    """A wrong authority ends the start, a password that is changed is waited for; one line each."""
    web = newsweb("ip", sites=2, articles=8, **QUIET)
    with tls_proxy.before(elasticsearch_server, tls_ca.server_context("127.0.0.1")) as proxy:
        scrapy = crawler(
            tmp_path, web, REDIS_URL=queue.url, ARTICLE_STORE=proxy.url_with_password,
            ARTICLE_INDEX="crawled-by-tls", STORE_BATCH_ROWS=4,
        )  # fmt: skip
        done = scrapy.run("crawl", "news")
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr[-2000:]
        assert "its certificate is not trusted" in last and "ARTICLE_STORE_CA_FILE" in last, last
        assert web.hits() == [], "nothing is fetched that could not be stored"

        scrapy.settings["ARTICLE_STORE_CA_FILE"] = str(tls_ca.ca_file)
        running = scrapy.start("crawl", "news")
        until(lambda: page_hits(web), "an article is asked for", 120)
        proxy.refuse(True)
        until(lambda: "Waiting for" in running.text(), "it says so", 120)
        proxy.refuse(False)
        done = running.wait(180)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-3000:]
        assert "is back, goes on" in done.stderr and proxy.refused
        assert 1 <= len(re.findall("aiting for the", done.stderr)) <= 3
        assert tls_proxy.PASSWORD not in done.stderr
    articles = asyncio.run(_all_of(ElasticStore(elasticsearch_server, index="crawled-by-tls")))
    assert complaints(web, articles) == []
    assert {a.version for a in articles} == {1}
    assert queue.counts().leased == 0


@pytest.mark.long
def test_elasticsearch_that_is_killed_is_waited_for_and_nothing_is_lost(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    """SIGKILL while batches are written: what was acked is on its disk, what was not is offered
    again when it is back."""
    web = newsweb("ip", sites=4, articles=40, **QUIET)
    with es.running() as server:
        scrapy = crawler(
            tmp_path, web, REDIS_URL=queue.url, ARTICLE_STORE=server.url, STORE_BATCH_ROWS=4
        )
        crawl = scrapy.start("crawl", "news")
        until(lambda: len(page_hits(web)) >= 40, "articles are asked for", 180)
        assert crawl.process.poll() is None, "it ended before the server was killed"
        es.kill(server)
        until(lambda: "Waiting for" in crawl.text(), "it says so", 120)
        es.start_again(server)
        done = crawl.wait(300)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-3000:]
        assert "is back, goes on" in done.stderr
        found = asyncio.run(_all_of(ElasticStore(server.url)))
    assert complaints(web, found) == []
    assert {a.version for a in found} == {1}, "what is offered again is no change"
    assert queue.counts().leased == 0


async def _all_of(store: ElasticStore) -> list[Article]:
    await store.refresh()
    found = [article async for article in store.scan()]
    await store.close()
    return found
