"""More shards than one: on one Redis, and on a real Redis Cluster of three servers."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis as redis_py

from newscrawler.fleet.minutes import Minutes
from newscrawler.fleet.registry import Beat, Registry
from newscrawler.frontier import connect, keys, scripts
from newscrawler.frontier import redis_cluster as redis_cluster_module
from newscrawler.frontier.queue import DomainPolicy, Frontier, FrontierUnavailable, RobotsAnswer
from newscrawler.items import Outcome
from tests.crawl import chaos
from tests.crawl.harness import Scrapy
from tests.crawl.small import QUICK, QUIET, complaints, page_hits, stored
from tests.fixtures_cluster import RedisClusterServers
from tests.fixtures_newsweb import StartNewsweb
from tests.patience import Deadline
from tests.redis.helpers import check, done, drain, ended, frontier, link, links
from tests.redis.test_reshard import crawled_meanwhile

# On a busy machine redis-py reads the topology again and drops nodes that are still connected.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed ClusterNode:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed Connection:ResourceWarning"),
]
SHARDS = 7
DOMAINS = tuple(f"d{i}.vn" for i in range(30))


@pytest.fixture(autouse=True)
def dropped_nodes_are_gone() -> Iterator[None]:
    """Here, and not under the filters of a test that comes later."""
    yield
    gc.collect()


@pytest_asyncio.fixture(params=["one server", "cluster"])
async def client(request: pytest.FixtureRequest, redis_server: str) -> AsyncIterator[Any]:
    """A client of either, emptied."""
    if request.param == "cluster":
        servers: RedisClusterServers = request.getfixturevalue("redis_cluster")
        found: Any = connect(servers.url)
        await found.flushall(target_nodes=redis_py.asyncio.RedisCluster.PRIMARIES)
        await found.script_flush()
    else:
        found = connect(redis_server)
        await found.flushall()
    yield found
    await found.aclose()


# ---------------------------------------------------------------- the address
@pytest.mark.parametrize(
    ("url", "first", "others"),
    [
        ("redis+cluster://a:7000", "redis://a:7000", []),
        ("redis+cluster://a:7000,b:7001/0", "redis://a:7000/0", [("b", 7001)]),
        ("rediss+cluster://me:p%40s@a:1,b:2,c:3", "rediss://me:p%40s@a:1", [("b", 2), ("c", 3)]),
    ],
)
def test_the_address_of_a_cluster_names_any_of_its_nodes(
    url: str, first: str, others: list[Any]
) -> None:
    assert redis_cluster_module.is_cluster(url) and not redis_cluster_module.is_cluster(first)
    assert redis_cluster_module.split_url(url) == (first, others)


def test_a_wrong_address_says_which_part() -> None:
    with pytest.raises(ValueError, match="'b' is not host:port"):
        redis_cluster_module.split_url("redis+cluster://a:7000,b")


async def test_a_cluster_that_is_away_is_one_clear_line() -> None:
    away: Any = connect(f"redis+cluster://127.0.0.1:{chaos.free_port()}")
    with pytest.raises(FrontierUnavailable, match="Redis") as caught:
        await frontier(away)
    assert len(str(caught.value)) < 300
    await away.aclose()


# ---------------------------------------------------------------- the frontier over several shards
async def test_urls_of_all_shards_are_handed_out_once_and_counters_stay_true(client: Any) -> None:
    f = await frontier(client, domains=DOMAINS, shards=SHARDS)
    assert len({keys.shard_of(d, SHARDS) for d in DOMAINS}) == SHARDS
    wanted = [one for d in DOMAINS for one in links(5, d)]
    assert (await f.add(wanted)).added == len(wanted)
    assert (await f.add(wanted)).seen == len(wanted)
    await check(client, SHARDS)
    assert sorted(await drain(f)) == sorted(one.url for one in wanted)
    places = await check(client, SHARDS)
    assert len(places) == len(wanted) and set(places.values()) == {"finished"}
    counts = await f.counts()
    assert (counts.queued, counts.leased, counts.domains) == (0, 0, len(DOMAINS))


async def test_links_to_domains_of_other_shards_arrive_before_their_page_is_done(
    client: Any,
) -> None:
    f = await frontier(client, domains=DOMAINS, shards=SHARDS)
    await f.add([link("/start", DOMAINS[0])])
    (lease,) = (await f.step(1)).leases
    step = await f.step(0, [done(lease, links=[link("/x", d) for d in DOMAINS])], [ended(lease)])
    assert step.added.added == len(DOMAINS)
    assert len(await drain(f)) == len(DOMAINS)
    await check(client, SHARDS)


async def test_every_script_keeps_to_one_slot(client: Any) -> None:
    """Each of them is run for real: a cluster refuses a script that touches a
    key of another slot."""
    f = await frontier(client, domains=DOMAINS, shards=SHARDS, obey_robots=True, max_tries=1)
    other = await frontier(client, "w2", domains=(), shards=SHARDS, obey_robots=True)
    ran: set[str] = set()
    for one in (f.scripts, other.scripts, f.operator.scripts):
        real = one.run

        async def run(name: str, *args: Any, real: Any = real) -> Any:
            ran.add(name)
            return await real(name, *args)

        one.run = run  # type: ignore[method-assign]
    await f.put_domains([DomainPolicy(d, d, "mid", 0) for d in DOMAINS])
    await f.add([one for d in DOMAINS for one in links(4, d)])
    robots = (await f.step(64)).leases
    assert len(robots) == len(DOMAINS)
    answers = [
        done(lease, robots=RobotsAnswer(200, b"User-agent: *\nAllow: /", None)) for lease in robots
    ]
    leases = (await f.step(64, answers, [ended(lease) for lease in robots])).leases
    assert len(leases) == len(DOMAINS)
    assert await f.renew(leases) == []
    assert await f.begin_isolated_retry(leases[0])
    assert await f.give_back(leases[:10]) == 10
    failed = [done(lease, Outcome.RETRY, status=500) for lease in leases[10:]]
    await f.step(0, failed, [ended(lease, 500) for lease in leases[10:]])
    entries = await f.operator.quarantined()
    assert len(entries) == len(DOMAINS) - 10
    assert await f.operator.replay(entries[:3]) == 3
    assert await f.operator.drop(entries[3:]) == len(entries) - 3
    await f.operator.pause(DOMAINS[1])
    assert await f.operator.purge(DOMAINS[1]) >= 3
    report = await f.report()
    assert report["totals"]["domains"] == len(DOMAINS)
    assert sum(row["queued"] for row in report["domains"]) == report["totals"]["queued"]
    await check(client, SHARDS)
    await other.close()
    assert ran >= {
        "add",
        "step",
        "renew",
        "isolated_retry",
        "give_back",
        "put_domains",
        "quarantine",
        "purge",
        "domain",
    }

    assert await f.reserve(DOMAINS[2], link("/asked", DOMAINS[2]).url) is not None
    for shard in range(SHARDS):  # what is left to run touches only the clock
        await scripts.Scripts(client).run("free", keys.prefix(shard))
        await scripts.Scripts(client).run("set_clock", keys.prefix(shard), "1.0", "0")


@pytest.mark.long
async def test_shards_change_while_workers_are_at_work(
    redis_cluster: RedisClusterServers,
) -> None:
    """1 -> 3 -> 2 shards on three servers; on one server: test_reshard.py."""
    clients = [connect(redis_cluster.url) for _ in range(4)]
    try:
        await clients[0].flushall(target_nodes=redis_py.asyncio.RedisCluster.PRIMARIES)
        await crawled_meanwhile(clients, 15)
        assert set((await check(clients[0], 2)).values()) == {"finished"}
    finally:
        for one in clients:
            await one.aclose()


async def test_random_interleavings_of_workers_over_shards_keep_the_invariants(client: Any) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    workers: list[Frontier] = [
        await frontier(client, f"w{n}", DOMAINS, shards=SHARDS) for n in range(3)
    ]
    held: list[Any] = []
    offered: set[str] = set()
    for _ in range(60):
        f = chance.choice(workers)
        if chance.random() < 0.5:
            batch = [link(f"/{chance.randrange(40)}", chance.choice(DOMAINS)) for _ in range(8)]
            offered |= {one.url for one in batch}
            await f.add(batch)
        mine = [lease for owner, lease in held if owner is f]
        acks = [lease for lease in mine if chance.random() < 0.6]
        step = await f.step(
            chance.randrange(6), [done(lease) for lease in acks], [ended(lease) for lease in acks]
        )
        assert step.rejected == []
        held = [(owner, lease) for owner, lease in held if lease not in acks] + [
            (f, lease) for lease in step.leases
        ]
    await check(client, SHARDS)
    for owner, lease in held:
        await owner.give_back([lease])
    await drain(workers[0])
    assert len(await check(client, SHARDS)) == len(offered)


async def test_the_fleet_is_looked_at_minute_by_minute(client: Any) -> None:
    """Its script reads heartbeats beside its keys: all of them lie in one slot."""
    registry, minutes, at = Registry(client), Minutes(client), 1_800_000_000_000
    await registry.beat(Beat(id="w", host="h", pid=1, beat_ms=registry._now_ms(), in_flight=2))
    assert await minutes.look({"q": 3}, at_ms=at)
    await registry.add({"page/fetched": 5}, {})
    assert await minutes.look({"q": 2}, at_ms=at + 10_000)
    _, [point] = await minutes.read(60, at + 10_000)
    assert (point.pages, point.workers, point.in_flight, point.queued) == (5, 1, 2, 2)


async def test_a_restarted_node_is_noticed_and_its_scripts_are_sent_again(
    redis_cluster: RedisClusterServers,
) -> None:
    found: Any = connect(redis_cluster.url)
    await found.flushall(target_nodes=redis_py.asyncio.RedisCluster.PRIMARIES)
    f = await frontier(found, domains=DOMAINS, shards=SHARDS)
    await f.add([one for d in DOMAINS for one in links(3, d)])
    before = (await f.step(0)).server_id
    slot = found.keyslot(keys.prefix(0))
    number = next(n for n in range(3) if slot < (n + 1) * 16384 // 3)
    redis_cluster.nodes[number].kill()
    with pytest.raises(FrontierUnavailable):
        for _ in range(SHARDS):
            await f.step(1)
    redis_cluster.nodes[number].start()
    deadline = Deadline(30)
    while True:
        try:
            step = await f.step(0)
            break
        except FrontierUnavailable:
            assert not deadline.is_over()
            await asyncio.sleep(0.05)
    step = await f.step(0)
    assert step.server_id != before
    await f.give_back(list(f._held.values()))
    assert len(await drain(f)) == 3 * len(DOMAINS)
    await check(found, SHARDS)
    await f.close()


# ---------------------------------------------------------------- a whole crawl
@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("one server", marks=pytest.mark.long), "cluster"])
def test_a_crawl_over_shards_finishes(
    kind: str, tmp_path: Path, newsweb: StartNewsweb, request: pytest.FixtureRequest
) -> None:
    servers: Any = (
        request.getfixturevalue("redis_cluster")
        if kind == "cluster"
        else chaos.RedisServer(tmp_path / "r")
    )
    try:
        web = newsweb("ip", sites=4, articles=6, **QUIET)
        places = {
            "SITES_FILE": web.sites_file,
            "SELECTORS_DIR": web.selectors_dir,
            "REDIS_URL": servers.url,
        }
        scrapy = Scrapy(tmp_path, {**QUICK, **places, "FRONTIER_SHARDS": 3})
        first, second = scrapy.start("crawl", "news"), scrapy.start("crawl", "news")
        for run in (first, second):
            finished = run.wait(90)
            assert finished.returncode == 0, finished.stderr[-3000:]
            assert " ERROR: " not in finished.stderr, finished.stderr[-3000:]
        articles = stored(scrapy.data)
        assert complaints(web, articles) == []
        assert {url: n for url, n in page_hits(web).items() if n > 1} == {}
        report = scrapy.run("frontier", "report")
        assert report.returncode == 0, report.stderr[-2000:]
    finally:
        if kind != "cluster":
            servers.stop()
