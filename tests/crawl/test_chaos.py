"""kill -9 of workers and of Redis, over and over: nothing is lost, nothing is stored twice,
little is fetched again.

The long form: ``make chaos``, or ``pytest -m chaos tests/crawl/test_chaos.py -s``;
docs/chaos.md has its figures.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from newscrawler.items import Article, Link
from tests.crawl import chaos
from tests.crawl.chaos import Fleet, RedisServer, Webs
from tests.crawl.harness import Scrapy, until
from tests.crawl.small import QUICK, QUIET, complaints, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge
from tests.redis.helpers import check

pytestmark = pytest.mark.slow


@dataclass
class Storm:
    """How hard it blows. ``pages``: requests that are expected; the kills are spread evenly over
    them, or come each ``every_s`` seconds as long as a worker is at work."""

    webs: int  # each of so many sites, on a subnet of its own
    sites: int
    articles: int  # per site; a feed lists the newest 50, and what is in the feed only must still be found
    pages: int
    rounds: int
    redis_every: int  # one round in so many kills Redis as well
    workers: int
    delay_s: float
    lease_s: int
    every_s: float = 0.0


SHORT = Storm(
    webs=1,
    sites=4,
    articles=45,
    pages=240,
    rounds=6,
    redis_every=5,
    workers=3,
    delay_s=0.1,
    lease_s=3,
)
LONG = Storm(
    webs=4,
    sites=15,
    articles=50,
    pages=3700,
    rounds=100,
    redis_every=10,
    workers=4,
    delay_s=3.0,
    lease_s=15,
)
#: Workers hardly live: each URL at the head of its queue is held by one dead worker after another.
GALE = Storm(
    webs=2,
    sites=15,
    articles=50,
    pages=1800,
    rounds=100,
    redis_every=10,
    workers=4,
    delay_s=1.0,
    lease_s=10,
    every_s=1.0,
)


@dataclass
class Toll:
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    refetched: int = 0
    unexplained: dict[str, int] = field(default_factory=dict)
    articles: int = 0
    fetched: int = 0
    quarantined: int = 0
    dropped: int = 0

    def __str__(self) -> str:
        return (
            f"articles {self.articles}, lost {len(self.lost)}, duplicated {len(self.duplicated)}, "
            f"article pages fetched {self.fetched}, re-fetched {self.refetched}, of these not explained by a kill "
            f"{sum(self.unexplained.values())}, quarantined {self.quarantined}, dropped {self.dropped}"
        )


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    one = RedisServer(tmp_path / "redis")
    yield one
    one.stop()


def blow(storm: Storm, fleet: Fleet, webs: Webs, moments: random.Random) -> None:
    """The rounds: wait for progress, kill one worker, now and then Redis, start another worker."""
    for number in range(storm.rounds):
        if storm.every_s:
            time.sleep(storm.every_s)  # the storm itself
            until(fleet.at_work, f"a worker is at work in round {number}", 180)
        else:
            goal = (number + 1) * storm.pages / (storm.rounds + 2)
            until(
                lambda goal=goal: webs.hit_count() >= goal,
                f"{goal:.0f} requests in round {number}",
                180,
            )
            time.sleep(moments.uniform(0, 0.4))  # the moment itself, not a wait for something
        if number % storm.redis_every == storm.redis_every - 1:
            fleet.kill_redis(moments.uniform(0, 1.5), webs, storm.delay_s)
        fleet.kill_one(moments)
        fleet.replace_ended()
        fleet.start_one()


def run_out(storm: Storm, fleet: Fleet, redis: RedisServer) -> int:
    """The workers end by themselves, every one of them; what a last retry left is fetched by one
    more. How many more.

    On a busy machine the storm lasts for more than the 15 minutes after which articles are
    looked at again, and each of these visits takes the delay of its domain: the deadlines
    leave room for a round of them."""
    fleet.wait(900)
    more, deadline = 0, time.monotonic() + 1800
    while left := redis.to_do():
        assert time.monotonic() < deadline, f"never done, {left} URLs left"
        time.sleep(storm.lease_s)  # a lease of a worker that was killed last, or a suspect's rest
        fleet.start_one()
        fleet.wait(900)
        more += 1
    return more


def judged(webs: Webs, fleet: Fleet, redis: RedisServer, data: Path) -> Toll:
    articles = stored(data)
    found = Toll(articles=len(articles))
    for line in complaints(webs, articles):  # type: ignore[arg-type]
        (
            found.duplicated if line.startswith("twice") or "stored twice" in line else found.lost
        ).append(line)
    found.duplicated += [f"{a.url} version {a.version}" for a in articles if a.version != 1]
    fetched = webs.articles_fetched()
    found.fetched = sum(fetched.values())
    found.refetched = sum(n - 1 for n in fetched.values())
    found.unexplained = {
        url_id.hex(): n - 1 - fleet.toll[url_id]
        for url_id, n in fetched.items()
        if n - 1 > fleet.toll[url_id]
    }
    counts = redis.counts()
    found.quarantined = counts.quarantined
    stats = redis.ask(lambda frontier, client: frontier.operator.stats())
    found.dropped = sum(n for name, n in stats.items() if name.startswith("dropped"))
    return found


def assert_frontier_is_whole(
    articles: list[Article], webs: Webs, redis: RedisServer, delay_s: float
) -> None:
    """Each URL in one place, counters equal contents, nothing leased, and each
    stored article known."""

    async def look(frontier: Any, client: Any) -> dict[str, str]:
        places = await check(client)
        assert "leased" not in places.values()
        assert await client.zcard("{f0}:deadlines") == 0
        return {url_id.hex(): place for url_id, place in places.items()}

    places = redis.ask(look)
    unknown = [
        article.url
        for article in articles
        if isinstance(link := webs.sites.identify(article.url), Link)
        and places.get(link.url_id.hex()) is None
    ]
    assert unknown == [], "stored articles that the frontier does not know"
    assert chaos.too_soon(webs.hits(), webs.truth(), delay_s) == []
    assert judge.traps(webs.hits()) == []


def run(storm: Storm, tmp_path: Path, newsweb: StartNewsweb, redis: RedisServer) -> None:
    options = {**QUIET, "sites": storm.sites, "articles": storm.articles, "delay": storm.delay_s}
    webs = Webs(
        tmp_path / "webs", [newsweb("ip", subnet=20 + n, **options) for n in range(storm.webs)]
    )
    (tmp_path / "data").mkdir()
    places = {
        "SITES_FILE": webs.sites_file,
        "SELECTORS_DIR": webs.selectors_dir,
        "REDIS_URL": redis.url,
    }
    scrapy = Scrapy(
        tmp_path,
        {**QUICK, **places, "DOWNLOAD_DELAY": storm.delay_s, "FRONTIER_LEASE_S": storm.lease_s},
    )
    seed = random.randrange(1_000_000)
    print(f"seed of the moments: {seed}")
    began = time.monotonic()
    fleet = Fleet(scrapy, redis, storm.workers)
    try:
        blow(storm, fleet, webs, random.Random(seed))
        blown_s = time.monotonic() - began
        in_the_middle = redis.to_do()
        more = run_out(storm, fleet, redis)
    finally:
        fleet.close()
    outcome = judged(webs, fleet, redis, tmp_path / "data")
    print(
        f"kills {fleet.kills}, of Redis {fleet.redis_kills}, in {blown_s:.0f} s, whole crawl {time.monotonic() - began:.0f} s, "
        f"requests {webs.hit_count()}, runs after the last {more}; {outcome}; "
        f"held by a killed worker {statistics.mean(fleet.held):.1f}, at most {max(fleet.held)}, fetched of these {statistics.mean(fleet.held_fetched):.1f}; "
        f"fetches that Redis forgot {fleet.forgotten}"
    )
    assert fleet.kills == storm.rounds
    assert fleet.redis_kills == storm.rounds // storm.redis_every
    assert in_the_middle > 0, "the crawl was over before the last kill: nothing was proved"
    assert webs.hit_count() >= storm.pages * 0.9, "fewer pages than meant"
    assert outcome.articles >= storm.webs * storm.sites * storm.articles * 0.7
    assert (outcome.lost, outcome.duplicated) == ([], [])
    assert (outcome.quarantined, outcome.dropped) == (0, 0)
    assert outcome.unexplained == {}, "fetched more often than kills explain"
    articles = stored(tmp_path / "data")
    kept = [article for article in articles if article.raw_ref]
    assert len(kept) > outcome.articles / 2
    assert chaos.unreadable(kept, tmp_path / "data") == []
    assert_frontier_is_whole(articles, webs, redis, storm.delay_s)


@pytest.mark.long
def test_kill_9_of_workers_and_of_redis_loses_nothing(
    tmp_path: Path, newsweb: StartNewsweb, redis: RedisServer
) -> None:
    run(SHORT, tmp_path, newsweb, redis)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("storm", [LONG, GALE], ids=["over the crawl", "a kill each second"])
def test_long_hundred_kills_of_workers_and_ten_of_redis(
    tmp_path: Path, newsweb: StartNewsweb, redis: RedisServer, storm: Storm
) -> None:
    run(storm, tmp_path, newsweb, redis)
