"""Sites of which a crawl is told nothing but the home page: what they announce is found,
and lists are no articles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import Scrapy
from tests.crawl.small import QUIET, Queue, complaints, crawler, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge


def report(scrapy: Scrapy) -> list[dict[str, Any]]:
    done = scrapy.run("seeds", "report", "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_everything_that_a_home_page_announces_is_crawled(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=8, articles=8, home_only=True, **QUIET)
    scrapy = crawler(tmp_path, web, REDIS_URL=queue.url)
    done = scrapy.run("crawl", "news", timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    truth, hits = web.truth(), web.hits()
    assert sum(row["type"] == "site" and row["unknown"] is not None for row in truth) == 8
    assert judge.discovery(hits, truth) == []
    assert judge.politeness(hits, truth) == []
    assert complaints(web, stored(tmp_path / "data")) == []
    rows = report(scrapy)
    for site in (row for row in truth if row["type"] == "site"):
        base = site["home"].rstrip("/")
        wanted = {base + path for path in [*site["feeds"], *site["unknown"]["sections"]]}
        mine = {row["url"]: row for row in rows if row["site"] == site["site"]}
        assert wanted <= set(mine), "the report shows what was found"
        assert all(mine[url]["state"] == "live" for url in wanted), mine
        if site["feeds"]:
            assert mine[base + site["feeds"][0]]["articles"] + mine[site["home"]]["articles"] > 5
    # a second worker, or a start after a stop, knows them from Redis
    again = scrapy.run("seeds", "refresh", "--json")
    offered = [json.loads(line)["offered"] for line in again.stdout.splitlines()]
    assert len(offered) == 8 and min(offered) >= 6
