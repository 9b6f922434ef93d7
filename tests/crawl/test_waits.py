"""What goes away in the middle of a crawl is waited for, or started again; what is gone for good
ends it by its name."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import connect, redis_server
from tests.crawl.harness import Finished, Running, Scrapy, until
from tests.crawl.small import (
    QUIET,
    Queue,
    complaints,
    crawler,
    expected,
    redis_servers,
    stored,
)
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow

#: A crawl of about ten seconds, so that there is a middle.
SLOWER = {**QUIET, "delay": 0.1}


@pytest.fixture
def web(newsweb: StartNewsweb) -> NewswebProcess:
    return newsweb("ip", sites=3, articles=8, **SLOWER)


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    """Apart from the data folder: not the program's own server."""
    (tmp_path / "queue").mkdir()
    kept = Queue(tmp_path / "queue")
    yield kept
    kept.close()


def slower(folder: Path, web: NewswebProcess, **settings: Any) -> Scrapy:
    return crawler(folder, web, DOWNLOAD_DELAY=0.1, **settings)


def in_the_middle(running: Running, pages: int = 12) -> None:
    until(
        lambda: running.text().count("Visit ended") >= pages or running.process.poll() is not None,
        f"{pages} pages",
    )
    assert running.process.poll() is None, running.text()[-3000:]


def is_complete(done: Finished, web: NewswebProcess, scrapy: Scrapy) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr, done.stderr[-4000:]
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    assert {a.version for a in articles} == {1}
    assert len(articles) == len(expected(web))


def waits_told(done: Finished, what: str) -> int:
    return len(re.findall(rf"[Ww]aiting for {what} ", done.stderr))


def child(running: Running, target: str) -> int:
    """The process of the crawl that runs ``target``; it is started with the first
    call that needs it."""
    return until(lambda: find_child(running, target), f"{target} runs")


def find_child(running: Running, target: str) -> int | None:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if target.encode() in command and parent == running.process.pid:
            return int(process.name)
    return None


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_the_programs_own_redis_is_started_again(
    tmp_path: Path, web: NewswebProcess, how: signal.Signals
) -> None:
    scrapy = slower(tmp_path, web, SELECTOR_GENERATION="rules")
    running = scrapy.start("crawl", "news")
    in_the_middle(running)
    (pid,) = redis_servers(scrapy.data)
    os.kill(pid, how)
    done = running.wait(120)
    is_complete(done, web, scrapy)
    assert waits_told(done, "Redis") <= 1
    assert done.stderr.count("Embedded Redis started") == 2, "by its start, and after its death"
    assert redis_servers(scrapy.data) == []


def test_a_killed_store_process_is_started_again(tmp_path: Path, web: NewswebProcess) -> None:
    scrapy = slower(tmp_path, web)
    running = scrapy.start("crawl", "news")
    for pages in (8, 20):
        in_the_middle(running, pages)
        os.kill(child(running, "newscrawler.store.sqlite.job:work"), signal.SIGKILL)
    is_complete(running.wait(120), web, scrapy)


@pytest.mark.long
def test_a_store_that_hangs_is_named_in_the_terminal(tmp_path: Path, web: NewswebProcess) -> None:
    scrapy = slower(tmp_path, web, PROGRESS="plain")
    running = scrapy.start("crawl", "news")
    in_the_middle(running, 8)
    pid = child(running, "newscrawler.store.sqlite.job:work")
    os.kill(pid, signal.SIGSTOP)
    try:
        line = r"^\d\d:\d\d:\d\d pages=.*waiting for the article store \(\d+ s\)"
        until(lambda: re.search(line, running.text(), re.MULTILINE), "the store is named", 60)
    finally:
        os.kill(pid, signal.SIGCONT)
    is_complete(running.wait(120), web, scrapy)


def config(url: str, **values: Any) -> None:
    async def run() -> None:
        client: Any = connect(url)
        for name, value in values.items():
            await client.config_set(name.replace("_", "-"), value)
        await client.aclose()

    asyncio.run(run())


@pytest.mark.long
@pytest.mark.parametrize("when", ["at the start", "in the middle"])
def test_a_full_redis_is_waited_for(
    tmp_path: Path, web: NewswebProcess, queue: Queue, when: str
) -> None:
    scrapy = slower(tmp_path, web, REDIS_URL=queue.url)
    if when == "at the start":
        config(queue.url, maxmemory=1)
    running = scrapy.start("crawl", "news")
    if when == "in the middle":
        in_the_middle(running)
        config(queue.url, maxmemory=1)
    until(lambda: "Waiting for Redis" in running.text(), "it says so", 60)
    assert "Redis is full" in running.text()
    assert running.process.poll() is None
    config(queue.url, maxmemory=0)
    done = running.wait(120)
    is_complete(done, web, scrapy)
    assert waits_told(done, "Redis") == 1
    assert "Redis is back, goes on" in done.stderr


@pytest.mark.long
def test_a_crawl_that_waits_for_redis_at_its_start_can_be_stopped(
    tmp_path: Path, web: NewswebProcess, queue: Queue
) -> None:
    scrapy = slower(tmp_path, web, REDIS_URL=queue.url)
    config(queue.url, maxmemory=1)
    running = scrapy.start("crawl", "news")
    until(lambda: "Waiting for Redis" in running.text(), "it says so", 60)
    until(lambda: "Counters are kept until Redis" in running.text(), "a second later", 60)
    running.interrupt()
    done = running.wait(60)
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert done.stat("finish_reason") == "shutdown"
    assert web.hits() == []
    config(queue.url, maxmemory=0)
    is_complete(scrapy.run("crawl", "news"), web, scrapy)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
@pytest.mark.parametrize(
    "command", [("crawl", "news"), ("run", "--no-serve")], ids=["crawl", "run"]
)
def test_a_redis_that_evicts_is_refused(
    tmp_path: Path, web: NewswebProcess, queue: Queue, policy: str, command: tuple[str, ...]
) -> None:
    config(queue.url, maxmemory_policy=policy)
    try:
        done = slower(tmp_path, web, REDIS_URL=queue.url).run(*command, timeout=60)
    finally:
        config(queue.url, maxmemory_policy="noeviction")
    assert done.returncode == 1
    (line,) = [x for x in done.stderr.splitlines() if "evicts" in x]
    assert policy in line and "noeviction" in line
    assert "Traceback" not in done.stderr and web.hits() == []


@pytest.mark.parametrize("own", [True, False], ids=["own Redis", "another Redis"])
def test_data_that_was_deleted_ends_the_crawl_as_a_failure(
    tmp_path: Path, web: NewswebProcess, queue: Queue, own: bool
) -> None:
    place = {} if own else {"REDIS_URL": queue.url}
    scrapy = slower(tmp_path, web, PROGRESS="plain", **place)
    running = scrapy.start("crawl", "news")
    in_the_middle(running)
    shutil.rmtree(scrapy.data, ignore_errors=True)
    done = running.wait(60)
    assert done.returncode == 1, done.stderr[-3000:]
    (line,) = [x for x in done.stderr.splitlines() if x.startswith("Crawl stopped: ")]
    assert "deleted while it was" in line, line
    assert done.stat("finish_reason") in ("store_gone", "queue_gone")
    assert "Traceback" not in done.stderr, done.stderr[-4000:]
    promise = "URLs are queued; the next run goes on with them"
    assert (promise in done.stderr) is (done.stat("finish_reason") == "store_gone")
    if not own:
        assert queue.counts().leased == 0
        assert queue.counts().queued > 0, "what was not stored comes again"
    until(lambda: not redis_servers(scrapy.data), "no server is left", 20)
    redis_server.stop(scrapy.data)
