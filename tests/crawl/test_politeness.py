"""However many workers run and whatever dies: by the sites' own log no delay is ever undercut."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crawl import chaos
from tests.crawl.chaos import Fleet, RedisServer, Webs
from tests.crawl.harness import until
from tests.crawl.small import QUICK, QUIET
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge

pytestmark = pytest.mark.slow

#: In make test, and in make chaos.
WORKERS, MANY_WORKERS = 5, 8
#: Seconds of back-off where a site names none; shorter than in life, longer than any delay here.
BACKOFF_S = 1.2
SETTINGS: dict[str, Any] = {
    **QUICK,
    "CRAWL_FOREVER": True,
    "BACKOFF_START_S": BACKOFF_S,
    # a killed worker's domain is out of reach until its lease runs out
    "FRONTIER_LEASE_S": 2,
}
Crawl = Callable[..., "Crawled"]


class Crawled:
    """A fleet that has gathered before closed gates, and is let go."""

    def __init__(self, tmp_path: Path, webs: Webs, delay_s: float, workers: int) -> None:
        self.webs = webs
        self.redis = RedisServer(tmp_path / "redis")
        (tmp_path / "data").mkdir()
        places = {
            "SITES_FILE": webs.sites_file,
            "SELECTORS_DIR": webs.selectors_dir,
            "REDIS_URL": self.redis.url,
        }
        scrapy = chaos.Scrapy(tmp_path, {**SETTINGS, **places, "DOWNLOAD_DELAY": delay_s})
        self.domains = chaos.hold(self.redis.url, webs.sites, delay_s)
        self.fleet = Fleet(scrapy, self.redis, workers)

    def go(self) -> None:
        until(
            lambda: all("Seeds offered" in run.text() for run in self.fleet.running),
            "all workers ready",
            120,
        )
        chaos.let_go(self.redis.url, self.domains)

    def progress(self, share: float, of: int, timeout: float = 90) -> None:
        until(lambda: self.webs.hit_count() >= share * of, f"{share * of:.0f} requests", timeout)

    def is_done(self) -> bool:
        counts = self.redis.counts()
        return counts.queued == 0 and counts.leased == 0

    def kill_redis(self, outage_s: float) -> None:
        self.redis.kill()
        time.sleep(outage_s)  # the outage itself, not a wait for something
        self.redis.start()
        self.fleet.redis_kills += 1

    def at_work(self) -> int:
        """Workers that have ended a visit, the living ones."""
        return sum("Visit ended" in run.text() for run in self.fleet.running)

    def close(self) -> None:
        self.fleet.close()
        self.redis.stop()


@pytest.fixture
def crawl(tmp_path: Path, newsweb: StartNewsweb) -> Iterator[Crawl]:
    made: list[Crawled] = []

    def start(*webs: dict[str, Any], workers: int = WORKERS) -> Crawled:
        running = [newsweb("ip", **{**QUIET, **options}) for options in webs]
        made.append(Crawled(tmp_path, Webs(tmp_path / "webs", running), webs[0]["delay"], workers))
        return made[-1]

    yield start
    for one in made:
        one.close()


def assert_polite(crawled: Crawled, at_least: int) -> None:
    hits, truth = crawled.webs.hits(), crawled.webs.truth()
    assert len(hits) >= at_least, f"only {len(hits)} requests"
    gaps = judge.least_gaps(hits)
    print(f"requests {len(hits)}, hosts {len(gaps)}, least gap {min(gaps.values()):.4f} s")
    assert chaos.too_soon(hits, truth, BACKOFF_S) == []
    assert judge.politeness(hits, truth) == []


@pytest.mark.long
def test_workers_on_one_slow_domain_across_kill_9_and_redis_restarts(crawl: Crawl) -> None:
    """Crawl-delay (0.45 s) over the floor (0.3 s); a worker and Redis are killed, Redis is
    restarted in order."""
    crawled = crawl({"sites": 1, "articles": 4, "delay": 0.3})
    crawled.go()
    moments = random.Random(1)
    crawled.progress(1, 6)
    crawled.fleet.kill_one(moments)
    crawled.progress(1, 12)
    crawled.kill_redis(0.2)
    crawled.progress(1, 18)
    crawled.redis.stop()
    crawled.redis.start()
    crawled.progress(1, 24)
    until(crawled.is_done, "the crawl is done", 120)
    assert crawled.at_work() >= 2, "one worker did it all: nothing was proved"
    assert_polite(crawled, 24)
    crawled.fleet.interrupt()


def test_workers_on_sixteen_domains_with_back_off_and_kill_9(crawl: Crawl) -> None:
    """Floor, Crawl-delay, robots.txt that answers 503 first, 429 and 503 with and
    without Retry-After."""
    busy = "429-once,503-once,429-bare,drop-once"
    crawled = crawl(
        {"sites": 8, "articles": 2, "delay": 0.5, "subnet": 20, "faults": busy},
        {"sites": 8, "articles": 2, "delay": 0.5, "subnet": 21},
    )
    crawled.go()
    crawled.progress(1, 60)
    crawled.fleet.kill_one(random.Random(1))
    crawled.progress(1, 120)
    crawled.kill_redis(0.1)
    assert len(judge.least_gaps(crawled.webs.hits())) >= 16, (
        "sixteen domains were to be asked more than once"
    )
    until(
        lambda: chaos.backed_off(crawled.webs.hits()) >= 4,
        "four times asked again after 429, 503 or a drop",
        120,
    )
    crawled.progress(1, 150)
    assert crawled.at_work() >= 3, "few workers did it all: nothing was proved"
    assert_polite(crawled, 150)
    crawled.fleet.interrupt()


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["one", "thirty"])
def test_long_eight_workers_with_a_kill_every_few_seconds(crawl: Crawl, kind: str) -> None:
    one = kind == "one"
    webs: list[dict[str, Any]] = [{"sites": 1, "articles": 150, "delay": 0.3}] if one else [
        {"sites": 15, "articles": 40, "delay": 0.5, "subnet": 20, "faults": "429-once,503-once,429-bare,drop-once,429-always"},
        {"sites": 15, "articles": 40, "delay": 0.5, "subnet": 21},
    ]  # fmt: skip
    crawled = crawl(*webs, workers=MANY_WORKERS)
    crawled.go()
    seed = random.randrange(1_000_000)
    print(f"seed of the moments: {seed}")
    moments = random.Random(seed)
    pages, rounds = (150, 12) if one else (1500, 24)
    for number in range(rounds):
        crawled.progress((number + 1) / (rounds + 2), pages, 120)
        time.sleep(moments.uniform(0, 0.5))  # the moment itself
        if number % 4 == 3:
            crawled.kill_redis(moments.uniform(0, 1))
        crawled.fleet.kill_one(moments)
        crawled.fleet.replace_ended()
        crawled.fleet.start_one()
    until(
        crawled.is_done if one else lambda: crawled.webs.hit_count() > pages,
        "the crawl is done",
        300,
    )
    assert_polite(crawled, pages // 2)
    crawled.fleet.interrupt()
