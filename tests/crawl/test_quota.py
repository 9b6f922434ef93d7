"""Quotas and the fleet's cap in real crawls, by the sites' own log; and a crawl whose
quotas are spent ends."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.crawl.small import QUIET, Queue, crawler
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow

PAGES = 8
CAP = 60


@pytest.mark.long
def test_two_workers_keep_quota_and_cap_and_end(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=3, articles=8, **QUIET)
    scrapy = crawler(
        tmp_path,
        web,
        REDIS_URL=queue.url,
        FRONTIER_PAGES_PER_DAY=PAGES,
        FRONTIER_REQUESTS_PER_MINUTE=CAP,
    )
    workers = [scrapy.start("crawl", "news") for _ in range(2)]
    ends = [worker.wait(150) for worker in workers]
    assert [end.returncode for end in ends] == [0, 0], (
        ends[0].stderr[-2000:] + ends[1].stderr[-2000:]
    )
    hits = web.hits()
    # A redirected robots.txt is one fetch, whatever its hops.
    asked = Counter(hit["host"] for hit in hits if hit["path"] != "/robots-moi.txt")
    assert set(asked.values()) == {PAGES}, asked
    assert queue.counts().queued > 0, "what is over the quota stays queued"
    times = sorted(hit["time"] for hit in hits)
    # A tenth at once, then one each 60 / 55 s; the fetch follows its lease within
    # FRONTIER_BUFFER_S (2 s).
    for start in times:
        within = sum(start <= at < start + 10 for at in times)
        assert within <= CAP / 10 + (10 + 2) * 55 / 60 + 1, f"{within} requests in 10 s"
    assert "Nothing is due soon, what waits stays queued" in ends[0].stderr + ends[1].stderr
