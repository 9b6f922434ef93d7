"""Papers on one host share one gate: by the sites' own log, whatever name was asked,
whichever worker asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from newscrawler.discovery.sites import Sites
from tests.crawl import chaos
from tests.crawl.harness import Scrapy, until
from tests.crawl.small import QUIET, Queue, complaints, crawler, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge

pytestmark = pytest.mark.slow

DELAY_S = 0.1


def is_done(queue: Queue) -> bool:
    counts = queue.counts()
    return counts.queued == 0 and counts.leased == 0


@pytest.mark.long
def test_a_group_is_asked_like_one_host_by_two_workers(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=3, articles=3, **{**QUIET, "delay": DELAY_S})
    sites = json.loads(Path(web.sites_file).read_text())
    for site in sites["sites"]:
        site["group"] = "one machine"
    (tmp_path / "sites.json").write_text(json.dumps(sites))
    scrapy: Scrapy = crawler(
        tmp_path,
        web,
        DOWNLOAD_DELAY=DELAY_S,
        SITES_FILE=tmp_path / "sites.json",
        REDIS_URL=queue.url,
        CRAWL_FOREVER=True,
    )
    # both are there before the first page, and neither leaves before the last: on a busy machine
    # one starts seconds after the other, and finds little left to do
    domains = chaos.hold(queue.url, Sites.load(str(tmp_path / "sites.json")), DELAY_S)
    workers = [scrapy.start("crawl", "news") for _ in range(2)]
    try:
        until(
            lambda: all("Seeds offered" in worker.text() for worker in workers),
            "both workers ready",
            90,
        )
        chaos.let_go(queue.url, domains)
        until(lambda: is_done(queue), "the crawl is done", 100)
        for worker in workers:
            worker.interrupt()
        ends = [worker.wait(150) for worker in workers]
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                worker.kill()
    assert [end.returncode for end in ends] == [0, 0], (
        ends[0].stderr[-2000:] + ends[1].stderr[-2000:]
    )
    assert complaints(web, stored(scrapy.data)) == [], "\n".join(end.stderr[-3500:] for end in ends)
    hits = web.hits()
    assert len({hit["host"] for hit in hits}) == 3 and len(hits) > 40
    (least,) = judge.least_gaps([{**hit, "host": "one machine"} for hit in hits]).values()
    assert least >= DELAY_S, f"two requests to the machine within {least:.3f} s"
    assert all(end.stat("page/fetched") > 0 for end in ends), (
        "one worker did it all: nothing was proved"
    )
