"""A site with a hundred thousand URLs takes nothing from a hundred sites with ten: each
finishes in its own time.

The small sites need (URLs - 1) delays and no more than that, whatever the big one has waiting, in
which class it is, and however few URLs the fleet can fetch at once.
"""

from __future__ import annotations

import heapq
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier.queue import DomainPolicy, Frontier, Lease
from tests.crawl.harness import until
from tests.crawl.small import QUIET, Queue, crawler
from tests.fixtures_newsweb import StartNewsweb
from tests.redis.helpers import advance, done, ended, freeze, frontier, links

BIG, BIG_URLS = "big.vn", 100_000
SMALL = [f"small-{n}.vn" for n in range(100)]
SMALL_URLS = 10
TICK_MS = 5


async def flooded(r: Any, floor_ms: int, **classes: str) -> Frontier:
    """The big domain's URLs first, then those of the small ones: in the order of
    arrival it would take all."""
    f = await frontier(r, "w1", (), queue_limit=BIG_URLS + 1, local_capacity=BIG_URLS * 2)
    big, small = classes.get("big", "mid"), classes.get("small", "mid")
    rows = [
        DomainPolicy(BIG, BIG, big, floor_ms),
        *(DomainPolicy(d, d, small, floor_ms) for d in SMALL),
    ]
    await f.put_domains(rows)
    added = await f.add(links(BIG_URLS, BIG))
    assert added.added == BIG_URLS
    for domain in SMALL:
        assert (await f.add(links(SMALL_URLS, domain))).added == SMALL_URLS
    return f


async def work(
    r: Any, f: Frontier, *, slots: int, fetch_ms: int, until_ms: int
) -> tuple[dict[str, int], Counter[str]]:
    """A scripted worker with so many fetches at once, each of ``fetch_ms``, in steps of 5 ms by a
    clock of the test's own, so that nothing depends on the machine. Returns when each small
    domain's last URL was done, in ms since the first lease, and how many URLs of each domain were.
    """
    await freeze(r)
    count: Counter[str] = Counter()
    ends: dict[str, int] = {}
    open_: list[tuple[int, int, Lease]] = []
    now = 0
    while len(ends) < len(SMALL) and now < until_ms:
        over = []
        while open_ and open_[0][0] <= now:
            over.append(heapq.heappop(open_)[2])
        for lease in over:
            count[lease.domain] += 1
            if lease.domain != BIG and count[lease.domain] == SMALL_URLS:
                ends[lease.domain] = now
        step = await f.step(slots - len(open_), [done(x) for x in over], [ended(x) for x in over])
        for lease in step.leases:
            heapq.heappush(open_, (now + fetch_ms, lease.fence, lease))
        await advance(r, TICK_MS)
        now += TICK_MS
    await f.give_back([lease for _, _, lease in open_])
    return ends, count


@pytest.mark.long
@pytest.mark.parametrize(("big", "small"), [("mid", "mid"), ("high", "low")])
async def test_a_hundred_small_sites_finish_in_the_time_of_their_delay(
    r: Any, big: str, small: str
) -> None:
    delay_ms, fetch_ms = 400, 20
    f = await flooded(r, delay_ms, big=big, small=small)
    ends, count = await work(r, f, slots=64, fetch_ms=fetch_ms, until_ms=30_000)
    assert len(ends) == len(SMALL), f"not finished: {sorted(set(SMALL) - set(ends))[:5]}"
    needed_ms = SMALL_URLS * fetch_ms + (SMALL_URLS - 1) * delay_ms
    # 64 of the 101 are fetched first, the others as soon as those are there; each
    # round may lose a tick
    assert max(ends.values()) <= needed_ms + fetch_ms + SMALL_URLS * 2 * TICK_MS, max(ends.values())
    assert min(ends.values()) >= needed_ms, "the delay was kept, or the test says nothing"
    assert count[BIG] >= 5, "the big one is served as well"
    assert count[BIG] <= max(ends.values()) / delay_ms + 2, "and not more often than it allows"


@pytest.mark.long
async def test_a_fleet_that_can_fetch_little_shares_it_evenly(r: Any) -> None:
    """Four fetches at once of 10 ms, 101 domains that may all be asked at any time: the
    slots are what is short."""
    f = await flooded(r, 0)
    ends, count = await work(r, f, slots=4, fetch_ms=10, until_ms=60_000)
    assert len(ends) == len(SMALL)
    assert count[BIG] <= 2 * SMALL_URLS, (
        f"the big one took {count[BIG]} turns while the small ones had {SMALL_URLS} each"
    )
    late, early = max(ends.values()), min(ends.values())
    assert late <= 1.5 * early, "all of them finish together, as each has its turn in every round"


@pytest.mark.long
@pytest.mark.slow
def test_small_sites_of_a_real_crawl_are_done_while_a_big_one_goes_on(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    delay_s = 0.2
    web = newsweb("ip", sites=5, articles=8, **{**QUIET, "delay": delay_s})
    sites = [row["site"] for row in web.truth() if row["type"] == "site"]
    big = sites[0]
    web.publish(big, 600)
    small = {
        row["url"]
        for row in web.articles(should_be_found=True)
        if row["site"] != big and not row["optional"]
    }
    assert len(small) > 20
    scrapy = crawler(tmp_path, web, DOWNLOAD_DELAY=delay_s, REDIS_URL=queue.url)
    running = scrapy.start("crawl", "news")
    try:
        until(
            lambda: all(f"url={url} " in running.text() for url in small),
            "the articles of the small sites",
            120,
        )
        running.interrupt()
        assert running.wait(150).returncode == 0
    finally:
        if running.process.poll() is None:
            running.kill()
    hits: dict[str, list[float]] = {}
    for hit in web.hits():
        hits.setdefault(hit["host"], []).append(hit["time"])
    for site in sites[1:]:
        if not any(url.split("/", 3)[2] == site for url in small):
            continue  # its pages are all behind a challenge
        times = sorted(hits[site])
        # Crawl-delay sites have half as much again to wait: while a small site was fetched the big
        # one had no more turns
        meanwhile = sum(times[0] <= at <= times[-1] for at in hits[big])
        assert meanwhile <= 2 * len(times) + 10, (
            f"{site}: {len(times)} requests, the big one {meanwhile} meanwhile"
        )
    assert len(hits[big]) < 600, (
        "the big site was not finished, so that it was in the way all the time"
    )
