"""Papers on one host share one gate: by the sites' own log, whatever name was asked, whichever worker asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.crawl.harness import Scrapy
from tests.crawl.small import QUIET, Queue, complaints, crawler, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge

pytestmark = pytest.mark.slow

DELAY_S = 0.1


def test_a_group_is_asked_like_one_host_by_two_workers(tmp_path: Path, newsweb: StartNewsweb, queue: Queue) -> None:
    web = newsweb("ip", sites=3, articles=3, **{**QUIET, "delay": DELAY_S})
    sites = json.loads(Path(web.sites_file).read_text())
    for site in sites["sites"]:
        site["group"] = "one machine"
    (tmp_path / "sites.json").write_text(json.dumps(sites))
    scrapy: Scrapy = crawler(
        tmp_path, web, DOWNLOAD_DELAY=DELAY_S, SITES_FILE=tmp_path / "sites.json", REDIS_URL=queue.url
    )
    workers = [scrapy.start("crawl", "news") for _ in range(2)]
    ends = [worker.wait(110) for worker in workers]
    assert [end.returncode for end in ends] == [0, 0], ends[0].stderr[-2000:] + ends[1].stderr[-2000:]
    assert complaints(web, stored(scrapy.data)) == [], "\n".join(end.stderr[-3500:] for end in ends)
    hits = web.hits()
    assert len({hit["host"] for hit in hits}) == 3 and len(hits) > 40
    (least,) = judge.least_gaps([{**hit, "host": "one machine"} for hit in hits]).values()
    assert least >= DELAY_S, f"two requests to the machine within {least:.3f} s"
    assert all(end.stat("page/fetched") > 5 for end in ends), "one worker did it all: nothing was proved"
