"""Sites of which a crawl is told nothing but the home page: what they announce is found,
and lists are no articles."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from newscrawler.crawl.link_learning import LinkLearning, split
from newscrawler.frontier.found import FoundSeeds
from newscrawler.items import Kind
from tests.crawl.harness import Scrapy
from tests.crawl.small import QUIET, Queue, crawler, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge

#: Forms of sites are drawn by it; another one finds what this one does not.
SEED = int(os.environ.get("NEWSWEB_SEED", "1"))
SITES = 6
#: Simulated seconds in one of ours: a page that failed is asked for again after a minute.
FACTOR = 60
#: Answers of a page that is there, or that nobody has.
OK = (200, 301, 304, 404, 410)


def place(url: str) -> tuple[str, str]:
    """Host, and path with query, as in the hits."""
    parts = urlsplit(url)
    return parts.netloc, parts.path + (f"?{parts.query}" if parts.query else "")


def wrong_classes(
    queue: Queue, truth: list[dict[str, Any]], hits: list[dict[str, Any]]
) -> list[str]:
    """Of the pages that were asked for: those of which the fleet now knows something else than they
    are."""

    async def learned(frontier: Any, client: Any) -> LinkLearning:
        learning = LinkLearning(client)
        for site in (row for row in truth if row["type"] == "site"):
            found = await FoundSeeds(client, lambda: frontier.layout).of(site["host"])
            sections = [seed.url for seed in found if seed.kind is Kind.SECTION]
            learning.note_menu(site["site"], sections)
            await learning.load([site["site"]])
        return learning

    learning, wrong = queue._ask(learned), []
    articles = {
        place(url): row
        for row in truth
        if row["type"] == "article"
        for url in (row["url"], *row["twins"])
    }
    for site in (row for row in truth if row["type"] == "site"):
        paths = {hit["path"] for hit in hits if hit["host"] == site["host"]}
        own = {path for host, path in articles if host == site["host"]}
        for path in sorted(paths - {"/"}):
            verdict = learning.of(site["site"]).judge(*split(path))
            row = articles.get((site["host"], path))
            if (
                verdict is None
                or path.startswith(("/rss", "/sitemap"))
                or (row and row["optional"])
            ):
                continue
            if verdict.class_ != judge.link_class(site, own, path):
                wrong.append(f"{path}: {verdict}")
    return wrong


def report(scrapy: Scrapy) -> list[dict[str, Any]]:
    done = scrapy.run("seeds", "report", "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
@pytest.mark.slow
def test_everything_that_a_home_page_announces_is_crawled(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb(
        "ip", sites=0, unknown=SITES, seed=SEED, articles=8, **{**QUIET, "delay": 2}, factor=FACTOR
    )
    queue.set_clock(web.about["clock"])
    scrapy = crawler(tmp_path, web, REDIS_URL=queue.url)
    done = scrapy.run("crawl", "news", timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    truth, hits = web.truth(), web.hits()
    sites = [row for row in truth if row["type"] == "site"]
    assert sum(row["unknown"] is not None for row in sites) == SITES
    failing = {row["host"] for row in sites if row["unknown"]["fails"]}
    assert failing and {hit["host"] for hit in hits if hit["status"] not in OK} == failing
    assert judge.discovery(hits, truth) == []
    assert judge.politeness(hits, truth) == []
    articles = stored(tmp_path / "data")
    ran_s = time.time() * FACTOR + web.about["clock"]["offset_s"] - truth[0]["started"]
    found = judge.coverage(truth, articles, grace_s=ran_s, age_limit=False)
    assert found.missed == [] and found.unexpected == [] and len(found.found) > 4 * SITES
    rows = report(scrapy)
    for site in sites:
        base = site["home"].rstrip("/")
        wanted = {base + path for path in [*site["feeds"], *site["unknown"]["sections"]]}
        mine = {row["url"]: row for row in rows if row["site"] == site["site"]}
        assert wanted <= set(mine), "the report shows what was found"
        assert all(mine[url]["state"] != "new" for url in wanted), mine
        assert max(row["covers"] or 0 for row in mine.values()) > 0.3
        assert sum(row["visits"] > 0 for row in mine.values()) >= len(wanted) - 1
        assert sum(row["articles"] or 0 for row in mine.values()) > 0
    assert wrong_classes(queue, truth, hits) == []
    named = f"{sites[0]['home'].rstrip('/')}{sites[0]['unknown']['sections'][0]}"
    why = json.loads(scrapy.run("frontier", "why", named, "--json").stdout)
    assert why["link_class"].startswith("list: ")
    # a second worker, or a start after a stop, knows them from Redis
    again = scrapy.run("seeds", "refresh", "--json")
    offered = [json.loads(line)["offered"] for line in again.stdout.splitlines()]
    assert len(offered) == SITES and min(offered) >= 6


@pytest.mark.long
@pytest.mark.slow
def test_second_addresses_that_wait_are_left_once_the_rule_is_known(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    """All of them are queued with the first page of a list, before any was read."""
    web = newsweb(
        "ip", sites=0, unknown=3, seed=5, articles=40, **{**QUIET, "delay": 2}, factor=FACTOR
    )
    queue.set_clock(web.about["clock"])
    done = crawler(tmp_path, web, REDIS_URL=queue.url).run("crawl", "news", timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    truth, hits = web.truth(), web.hits()
    found = judge.coverage(truth, stored(tmp_path / "data"), grace_s=0, age_limit=False)
    assert found.missed == [] and found.unexpected == [] and len(found.found) > 100
    assert judge.politeness(hits, truth) == []
    # 14 here, of 35; 34 before what waits was left, and before a worker's own duplicates taught.
    assert done.stat("page/reason/REDIRECTED(canonical)") <= 22
    assert done.stat("page/outcome/REDIRECTED") >= 30
