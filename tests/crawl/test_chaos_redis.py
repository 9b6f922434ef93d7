"""A Redis that is slow, full, read-only or cannot save: the worker waits, says why, and loses
nothing. So with its clock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

from newscrawler.frontier import keys
from tests.crawl import chaos
from tests.crawl.chaos import RedisServer
from tests.crawl.harness import Running, Scrapy, until
from tests.crawl.small import QUICK, QUIET, complaints, page_hits, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge
from tests.newsweb.process import NewswebProcess
from tests.redis.helpers import check

pytestmark = pytest.mark.slow


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    one = RedisServer(tmp_path / "redis")
    yield one
    one.stop()


def scrapy_of(folder: Path, web: NewswebProcess, redis: RedisServer, **more: Any) -> Scrapy:
    folder.mkdir(parents=True, exist_ok=True)
    places = {
        "SITES_FILE": web.sites_file,
        "SELECTORS_DIR": web.selectors_dir,
        "REDIS_URL": redis.url,
    }
    env = more.pop("env", None)
    return Scrapy(folder, {**QUICK, **places, **more}, env)


@contextmanager
def full(client: Any) -> Iterator[None]:
    client.config_set("maxmemory", 1)
    yield
    client.config_set("maxmemory", 0)


@contextmanager
def replica(client: Any) -> Iterator[None]:
    """Of a primary that is not there: it keeps what it has and is read-only."""
    client.replicaof("127.0.0.1", 1)
    yield
    client.replicaof("NO", "ONE")


@contextmanager
def cannot_save(client: Any) -> Iterator[None]:
    """A snapshot cannot take its name, as a folder has it: redis-server then
    refuses writes (MISCONF)."""
    folder = Path(client.config_get("dir")["dir"]) / "dump.rdb" / "in-the-way"
    folder.mkdir(parents=True)
    client.config_set("save", "3600 1")
    client.bgsave()
    until(
        lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err",
        "a snapshot that failed",
    )
    yield
    client.config_set("save", "")


@contextmanager
def slow(client: Any) -> Iterator[None]:
    began = time.monotonic()
    client.execute_command("CLIENT", "PAUSE", 3000, "ALL")
    yield
    client.ping()
    assert time.monotonic() - began >= 2.9, "it was to answer nobody for three seconds"


FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "full": (full, "Redis is full"),
    "replica": (replica, "read-only replica"),
    "cannot save": (cannot_save, "cannot write its append-only file"),
    "slow": (slow, ""),  # under the time-out: nothing to say
}


@pytest.mark.long
def test_a_redis_that_is_full_read_only_cannot_save_or_is_slow_costs_time_only(
    tmp_path: Path, newsweb: StartNewsweb, redis: RedisServer
) -> None:
    web = newsweb("ip", sites=4, articles=14, **{**QUIET, "delay": 0.15})
    worker = scrapy_of(tmp_path, web, redis, DOWNLOAD_DELAY=0.15).start("crawl", "news")
    client = redis_py.Redis(port=redis.port, decode_responses=True)
    try:
        for number, (fault, message) in enumerate(FAULTS.values()):
            goal = 25 + 30 * number
            until(
                lambda goal=goal: int(web.stats()["hits"]) >= goal,
                f"{goal} requests before {message}",
                120,
            )
            said, asked = worker.text().count("does not answer"), int(web.stats()["hits"])
            with fault(client):
                assert worker.process.poll() is None, worker.text()[-2000:]
                if message:
                    until(
                        lambda message=message: message in worker.text(),
                        f"the worker says: {message}",
                        120,
                    )
            if not message:
                assert worker.text().count("does not answer") == said, (
                    "under the time-out there is nothing to say"
                )
                assert int(web.stats()["hits"]) - asked < 16, (
                    "without Redis only what was leased may be asked for"
                )
        done = worker.wait(150)
    finally:
        client.close()
        if worker.process.poll() is None:
            worker.kill()
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Lease loop failed" not in done.stderr, "an error that is not told as what it is"
    assert_whole(tmp_path / "data", web, redis)
    repeated = sum(n - 1 for n in page_hits(web).values())
    assert repeated <= 4 * len(FAULTS), "a fault may cost the fetch of a site that was under way"


@pytest.mark.long
def test_a_redis_that_stays_away_is_waited_for_and_a_stop_is_obeyed(
    tmp_path: Path, newsweb: StartNewsweb, redis: RedisServer
) -> None:
    web = newsweb("ip", sites=2, articles=8, **{**QUIET, "delay": 0.15})
    scrapy = scrapy_of(tmp_path, web, redis, DOWNLOAD_DELAY=0.15, FRONTIER_LEASE_S=3)
    worker = scrapy.start("crawl", "news")
    until(lambda: int(web.stats()["hits"]) >= 12, "12 requests", 120)
    redis.kill()
    until(
        lambda: "Waiting for Redis" in worker.text(),
        "the worker says that it waits",
        120,
    )
    assert worker.process.poll() is None
    worker.interrupt()
    stopped = worker.wait(150)
    assert stopped.returncode == 0, stopped.stderr[-2000:]
    assert "run out by themselves" in stopped.stderr, "what could not be given back is said"
    redis.start()
    last = scrapy.start("crawl", "news").wait(150)
    assert last.returncode == 0, last.stderr[-2000:]
    assert_whole(tmp_path / "data", web, redis)


#: Returns what the hash has of all its fields, and leaves a byte in each.
BREAK = """local held = redis.call("HGETALL", KEYS[1])
for i = 1, #held, 2 do redis.call("HSET", KEYS[1], held[i], "x") end
return held"""


@pytest.mark.long
def test_a_frontier_that_waiting_does_not_mend_stops_the_crawl_and_says_so(
    tmp_path: Path, newsweb: StartNewsweb, redis: RedisServer
) -> None:
    web = newsweb("ip", sites=2, articles=8, **{**QUIET, "delay": 0.15})
    scrapy = scrapy_of(tmp_path, web, redis, DOWNLOAD_DELAY=0.15, FRONTIER_LEASE_S=3)
    worker = scrapy.start("crawl", "news")
    with redis_py.Redis(port=redis.port) as client:
        until(lambda: int(web.stats()["hits"]) >= 12, "12 requests", 120)
        held = client.eval(BREAK, 1, keys.domains(0))
        done = worker.wait(150)
        assert done.returncode == 1, done.stderr[-2000:]
        last = done.stderr.splitlines()[-1]
        assert last.startswith("Crawl stopped: frontier_broken"), last
        assert done.stderr.count("Lease loop failed") == 1, (
            "an error that repeats itself is told once"
        )
        client.hset(keys.domains(0), mapping=dict(zip(held[::2], held[1::2], strict=True)))
    last_run = scrapy.start("crawl", "news").wait(150)
    assert last_run.returncode == 0, last_run.stderr[-2000:]
    assert_whole(tmp_path / "data", web, redis)


SKEW = """
# A worker whose clock is wrong by SKEW_S from the start, and jumps by as much again after three seconds. datetime.now()
# is not bent: a class of our own in its place would not be a datetime to compiled code.
import os, time
_real, _began, _skew = time.time, time.monotonic(), float(os.environ["SKEW_S"])
time.time = lambda: _real() + _skew * (2 if time.monotonic() - _began > 3 else 1)
time.time_ns = lambda: int(time.time() * 1e9)
"""


@pytest.mark.long
def test_workers_whose_clocks_jump_by_days_change_nothing(
    tmp_path: Path, newsweb: StartNewsweb, redis: RedisServer
) -> None:
    """Leases, gates and due times are the server's: one worker lives two days ahead,
    one two days behind."""
    (tmp_path / "skew").mkdir()
    (tmp_path / "skew" / "sitecustomize.py").write_text(SKEW)
    web = newsweb("ip", sites=4, articles=10, **{**QUIET, "delay": 0.2})
    data = tmp_path / "data"
    data.mkdir()
    workers: list[Running] = []
    for name, skew_s in (("ahead", 86_400), ("behind", -86_400)):
        env = {"PYTHONPATH": str(tmp_path / "skew"), "SKEW_S": str(skew_s)}
        shown = subprocess.run(
            [sys.executable, "-c", "import time; print(time.time())"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert abs(float(shown.stdout) - time.time() - skew_s) < 60, "the clock was to be wrong"
        scrapy = scrapy_of(
            tmp_path / name,
            web,
            redis,
            env=env,
            DATA_DIR=data,
            DOWNLOAD_DELAY=0.2,
            FRONTIER_LEASE_S=20,
        )
        workers.append(scrapy.start("crawl", "news"))
    try:
        for worker in workers:
            done = worker.wait(150)
            assert done.returncode == 0, done.stderr[-2000:]
            assert "Visit ended" in done.stderr, "both had something to do"
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.kill()
    assert_whole(data, web, redis)
    assert {url: n for url, n in page_hits(web).items() if n > 1} == {}
    fetched = [article.fetched.timestamp() for article in stored(data)]
    assert max(abs(at - time.time()) for at in fetched) < 300, "articles carry the frontier's time"


def assert_whole(data: Path, web: NewswebProcess, redis: RedisServer) -> None:
    counts = redis.counts()
    assert (counts.queued, counts.leased, counts.quarantined) == (0, 0, 0)
    redis.ask(lambda frontier, client: check(client))
    articles = stored(data)
    assert complaints(web, articles) == []
    assert [a.url for a in articles if a.version != 1] == []
    hits, truth = web.hits(), web.truth()
    assert chaos.too_soon(hits, truth, 0) == []
    assert judge.politeness(hits, truth) == []
