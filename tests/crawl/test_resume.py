"""Stopped, killed, started beside another: no URL is lost, no article is stored twice."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.crawl.harness import Running, until
from tests.crawl.small import (
    QUIET,
    Queue,
    complaints,
    crawler,
    expected,
    page_hits,
    redis_servers,
    stored,
    versions,
)
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow

#: A crawl of about 15 s, so that there is a middle to stop it in.
SLOWER = {**QUIET, "delay": 0.15}
KILLS = 5


def ended(running: Running) -> int:
    return running.text().count("Visit ended")


def test_ctrl_c_ends_in_seconds_and_a_second_start_finishes(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=4, articles=8, **SLOWER)
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=0.15, PROGRESS="plain")
    running = scrapy.start(
        "run", "--no-serve", "--until-done", "-s", f"LOG_FILE={tmp_path / 'first.log'}"
    )
    log = tmp_path / "first.log"
    until(lambda: log.exists() and log.read_text().count("Visit ended") > 40, "40 pages")
    running.interrupt()
    pressed = time.monotonic()
    first = running.wait(150)
    assert time.monotonic() - pressed < 30, "what is being fetched is finished, and no more"
    assert first.returncode == 0, first.stderr[-2000:]
    assert "Traceback" not in first.stderr + log.read_text()
    table = re.search(
        r"ended: stopped.*?sites", first.stderr, re.DOTALL | re.IGNORECASE
    ) or re.search(r"what else.*", first.stderr, re.DOTALL)
    assert table, f"no summary:\n{first.stderr[-2000:]}"
    counts = queue.counts()
    assert counts.leased == 0, "leases were not given back"
    assert counts.queued > 0, "it was stopped in the middle"
    hits = len(web.hits())

    second = scrapy.run(
        "run", "--no-serve", "--until-done", "-s", f"LOG_FILE={tmp_path / 'second.log'}"
    )
    assert second.returncode == 0, second.stderr[-2000:]
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    assert (
        first.stat("article/new") + second.stat("article/new")
        == len(articles)
        == len(expected(web))
    )
    assert len(web.hits()) > hits
    again = {url: n for url, n in page_hits(web).items() if n > 1}
    assert not again, f"fetched again after an orderly stop: {again}"


@pytest.mark.long
def test_kill_9_at_any_moment_loses_nothing(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=4, articles=8, **QUIET)
    # A dead worker's leases come back when they run out: here after two seconds. What five
    # deaths made a suspect, and killed on trial again, rests for 2, 8 and 32 s: the last
    # start waits for that.
    scrapy = crawler(tmp_path, web, FRONTIER_LEASE_S=2, CRAWL_LONGEST_WAIT_S=45)
    seed = random.randrange(1_000_000)
    print(f"seed of the moments: {seed}")
    moments = random.Random(seed)
    held = 0
    for _ in range(KILLS):
        running = scrapy.start("crawl", "news")
        until(lambda run=running: ended(run) or run.process.poll() is not None, "a first page", 90)
        time.sleep(moments.uniform(0, 0.6))  # the moment itself, not a wait for something
        running.kill()
        held += queue.counts().leased
    last = scrapy.start("crawl", "news").wait(150)
    assert last.returncode == 0, last.stderr[-2000:]
    counts = queue.counts()
    assert (counts.queued, counts.leased) == (0, 0)
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    assert {a.url: a.version for a in articles if a.version != 1} == {}, "stored twice as versions"
    # each kill may cost what its worker had leased: in flight, being read, or in a batch that the
    # store had not written
    repeated = sum(n - 1 for n in page_hits(web).values())
    assert repeated <= held, page_hits(web).most_common(5)
    assert held <= KILLS * 64, "more than CONCURRENT_REQUESTS and FRONTIER_BUFFER let a worker have"


@pytest.mark.long
def test_second_run_beside_the_first_shares_redis(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=4, articles=8, **SLOWER)
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=0.15)
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    runs = [
        scrapy.start("run", "--no-serve", "--until-done", "-s", f"LOG_FILE={log}") for log in logs
    ]
    try:
        until(
            lambda: all(log.exists() and "Visit ended" in log.read_text() for log in logs),
            "both at work",
        )
        assert len(redis_servers(scrapy.data)) == 1
        done = [run.wait(150) for run in runs]
    finally:
        for run in runs:
            if run.process.poll() is None:
                run.kill()
    assert [d.returncode for d in done] == [0, 0], done[0].stderr[-1500:] + done[1].stderr[-1500:]
    assert all("Traceback" not in log.read_text() for log in logs)
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    assert sum(d.stat("article/new") for d in done) == len(articles) == len(expected(web))
    assert min(d.stat("page/fetched") for d in done) > 0, "both worked"
    assert Counter(page_hits(web).values()).keys() == {1}, "each page was fetched by one of them"
    assert redis_servers(scrapy.data) == [], "the last one stops the server"
    assert versions(scrapy.data, articles[0]), "the store can be read"
