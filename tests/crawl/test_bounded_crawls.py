"""Bounded crawls: one site, so deep, so many pages, by the workers of the fleet."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy.settings import Settings

from newscrawler.crawl import bounded_crawls, link_graph, opening, site_choice
from newscrawler.crawl.bounded_crawls import Crawl, CrawlBook, CrawlRefused
from newscrawler.frontier import connect, keys
from newscrawler.frontier.queue import Frontier
from newscrawler.web.urls import url_id
from tests.crawl.chaos import RedisServer
from tests.crawl.harness import Running, Scrapy, until
from tests.crawl.small import QUIET, Queue, crawler, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow


class Fleet:
    """A news web, a queue, and what a person may ask of them."""

    def __init__(
        self, folder: Path, web: NewswebProcess, queue: Queue | RedisServer, **settings: Any
    ) -> None:
        self.web, self.queue = web, queue
        self.scrapy: Scrapy = crawler(folder, web, REDIS_URL=queue.url, **settings)
        self.sites = [row for row in web.truth() if row["type"] == "site"]

    @property
    def settings(self) -> Settings:
        found = Settings()
        found.setmodule("newscrawler.settings")
        found.setdict({**self.scrapy.settings, "REDIS_URL": self.queue.url})
        return found

    def ask(self, work: Any) -> Any:
        async def run() -> Any:
            client = connect(self.queue.url, single=False)
            config = opening.frontier_config(self.settings, loopback_only=True)
            try:
                return await work(Frontier(client, config, "asker"))
            finally:
                await client.aclose()

        return asyncio.run(run())

    def begin(self, url: str, levels: int, max_pages: int) -> Crawl:
        async def work(frontier: Frontier) -> Crawl:
            crawl, _ = await bounded_crawls.begin(
                self.settings, frontier, site_choice.all_sites(self.settings),
                url=url, levels=levels, max_pages=max_pages, by="test",
            )  # fmt: skip
            return crawl

        return self.ask(work)

    def get(self, crawl: Crawl) -> Crawl:
        return self.ask(lambda frontier: CrawlBook(frontier.client).get(crawl.id))

    def pages(self, crawl: Crawl) -> list[Any]:
        return self.ask(lambda frontier: CrawlBook(frontier.client).pages(crawl.id, 10_000))

    def ended(self, crawl: Crawl) -> Crawl:
        until(lambda: not self.get(crawl).is_running, "the end of the crawl", 180, 0.2)
        return self.get(crawl)

    def worker(self) -> Running:
        """A worker of the first site; what the tests crawl is of others."""
        return self.scrapy.start("crawl", "news", "-a", f"sites={self.sites[0]['site']}")

    def hits(self, site: dict[str, Any]) -> Counter[str]:
        return Counter(
            hit["path"] for hit in self.web.hits()
            if hit["host"] == host_of(site) and not hit["path"].startswith("/robots")
        )  # fmt: skip


def host_of(site: dict[str, Any]) -> str:
    return urlsplit(str(site["home"])).netloc


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """One web, one queue and one worker for all; each test crawls a site of its own."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "data").mkdir()
    web = NewswebProcess("ip", folder / "web", sites=9, articles=8, **QUIET)
    queue = Queue(folder / "data")
    made = Fleet(folder, web, queue, CRAWL_FOREVER=True)
    listed = json.loads(web.sites_file.read_text())
    kept = [one for one in listed["sites"] if one["id"] != made.sites[UNKNOWN]["site"]]
    web.sites_file.write_text(json.dumps({**listed, "sites": kept}))
    running = made.worker()
    yield made
    running.interrupt()
    done = running.wait(120)
    impolite = judge.politeness(web.hits(), web.truth())
    queue.close()
    web.stop()
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert impolite == []


#: Which site of the web each test has.
BOUNDS, FRESH, PAIR, ROBOTS, CANCEL, UNKNOWN, DEEP, PURGED = range(1, 9)


def test_bounds_hold_and_it_ends_by_itself(fleet: Fleet) -> None:
    site = fleet.sites[BOUNDS]
    crawl = fleet.begin(site["home"], levels=1, max_pages=7)
    done = fleet.ended(crawl)
    assert done.state == "finished" and "max_pages (7)" in done.why, done
    assert done.left_out > 0 and done.articles > 0 and done.new_articles > 0
    entries = fleet.pages(crawl)
    assert {entry.level for entry in entries} == {0, 1}
    assert {entry.link.domain for entry in entries} == {host_of(site)}
    asked = [entry for entry in entries if not entry.outcome.startswith("REFUSED(robots")]
    assert len(entries) == done.fetched + done.failed + done.refused
    assert sum(fleet.hits(site).values()) == len(asked) <= 7


def test_levels_are_links_from_the_start(fleet: Fleet) -> None:
    site = fleet.sites[DEEP]
    done = fleet.ended(crawl := fleet.begin(site["home"], levels=2, max_pages=500))
    assert done.why == "every page within 2 level(s) was fetched", done
    entries = fleet.pages(crawl)
    assert {entry.level for entry in entries} == {0, 1, 2} and not any(e.is_open for e in entries)
    assert done.articles >= 5
    # the same site again: it is read anew down to the last level, whose pages are fresh
    before = fleet.hits(site)
    again = fleet.ended(fleet.begin(site["home"], levels=1, max_pages=500))
    new = fleet.hits(site) - before
    assert again.state == "finished" and again.fresh > 0
    assert sum(new.values()) <= again.fetched + again.failed + again.refused
    assert new[urlsplit(site["home"]).path] == 1, "links are wanted, so the start is fetched"


def test_links_are_noted_as_pages_are_read(fleet: Fleet) -> None:
    """The last of the deep crawl's site; each page that was read is in its graph."""
    site = fleet.sites[DEEP]
    name = str(site["site"])
    home = link_graph.short(url_id(site["home"]))

    def read() -> Any:
        pages = fleet.ask(lambda frontier: link_graph.pages_of(frontier.client, name))
        return pages if len(pages) > 5 and home in pages else None

    pages = until(read, "pages of the site in the link graph", 60, 0.2)
    assert any(page.title for page in pages.values()), "articles have their titles"
    made = link_graph.graph(pages, [home], 2, 500)
    assert len(made.nodes) > 5 and made.edges and made.nodes[0].url == site["home"]
    shown = next(node for node in made.nodes if node.depth == 1)
    linking = fleet.ask(
        lambda frontier: link_graph.linking_to(frontier.client, bytes.fromhex(shown.id), 50)
    )
    assert site["home"] in {page.url for page in linking}


def test_two_crawls_of_one_site_share_its_pages(fleet: Fleet) -> None:
    site = fleet.sites[PAIR]
    both = [fleet.begin(site["home"], levels=1, max_pages=n) for n in (6, 9)]
    first, second = (fleet.ended(crawl) for crawl in both)
    assert first.state == second.state == "finished"
    assert len(fleet.pages(first)) <= 7 and len(fleet.pages(second)) <= 10
    articles = [e.link.url for e in fleet.pages(first) if "DONE" in e.outcome and e.level]
    assert articles
    hits = fleet.hits(site)
    assert max(hits[urlsplit(url).path] for url in articles) == 1


def test_a_start_that_robots_txt_forbids(fleet: Fleet) -> None:
    site = fleet.sites[ROBOTS]
    if not site["disallow"] or site["robots"] == "404":
        pytest.fail(f"a site with a robots.txt is wanted here: {site}")
    url = site["home"].rstrip("/") + site["disallow"][0] + "x.html"
    done = fleet.ended(fleet.begin(url, levels=1, max_pages=5))
    assert done.state == "refused" and "REFUSED(robots)" in done.why, done
    with pytest.raises(CrawlRefused, match=r"robots.txt of .* forbids"):
        fleet.begin(url, levels=1, max_pages=5)  # known by now
    assert not fleet.hits(site)


def test_an_unknown_site_is_left_when_its_crawl_has_ended(fleet: Fleet) -> None:
    site = fleet.sites[UNKNOWN]
    crawl = fleet.begin(site["home"], levels=1, max_pages=12)
    assert not crawl.is_configured
    done = fleet.ended(crawl)
    assert done.state == "finished" and done.fetched > 3, done
    asked = fleet.hits(site)
    assert sum(asked.values()) == done.fetched + done.failed + done.refused - sum(
        "robots" in entry.outcome for entry in fleet.pages(crawl)
    )
    state = fleet.ask(lambda frontier: frontier.operator.state(host_of(site)))
    assert state.queued == state.due == 0, "nothing comes again: no list, no feed, no sitemap"
    ids = {article.id for article in stored(fleet.scrapy.data) if article.site == host_of(site)}
    assert len(ids) >= done.new_articles


def test_cancelled_pages_leave_the_queue(fleet: Fleet) -> None:
    site = fleet.sites[CANCEL]
    fleet.ended(fleet.begin(site["home"], levels=1, max_pages=2))
    fleet.ask(lambda frontier: frontier.operator.pause(host_of(site)))
    crawl = fleet.begin(site["home"], levels=3, max_pages=500)

    def waits() -> Any:
        async def look(frontier: Frontier) -> Any:
            found = await CrawlBook(frontier.client).get(crawl.id)
            return (await bounded_crawls.status(frontier, found, 1))["waits_for"]

        return "paused" in fleet.ask(look)

    until(waits, "the status to name the pause", 60, 0.2)
    done = fleet.ask(lambda frontier: bounded_crawls.cancel(frontier, crawl.id, "test"))
    assert done.state == "cancelled" and done.why == "cancelled by test" and done.open == 0
    fleet.ask(lambda frontier: frontier.operator.resume(host_of(site)))
    wanted = fleet.ask(lambda frontier: frontier.client.hlen(keys.want(0)))
    running = fleet.ask(lambda frontier: CrawlBook(frontier.client).running())
    assert wanted == 0 and crawl.id not in running
    again = fleet.ask(lambda frontier: bounded_crawls.cancel(frontier, crawl.id, "another"))
    assert again.why == "cancelled by test", "what has ended stays as it is"


def test_a_purge_of_its_site_ends_it(fleet: Fleet) -> None:
    """A worker would queue the pages again, and the crawl would run until they are fetched."""
    site = fleet.sites[PURGED]
    host = host_of(site)
    fleet.ended(fleet.begin(site["home"], levels=1, max_pages=2))
    fleet.ask(lambda frontier: frontier.operator.pause(host))
    crawl = fleet.begin(site["home"], levels=3, max_pages=500)
    other = fleet.begin(fleet.sites[CANCEL]["home"], levels=1, max_pages=2)

    def is_taken_up() -> bool:
        return bool(fleet.get(crawl).asked_s and fleet.get(other).asked_s)

    until(is_taken_up, "a worker to take it up", 60, 0.2)
    asked = fleet.scrapy.run("frontier", "purge", host)
    assert asked.returncode == 1 and fleet.get(crawl).is_running, "nothing without --yes"
    purged = fleet.scrapy.run("frontier", "purge", host, "--yes")
    assert purged.returncode == 0 and f"bounded crawls ended: {crawl.id}" in purged.stdout
    done = fleet.get(crawl)
    assert done.state == "cancelled" and done.why == f"{host} was purged from the queue", done
    assert done.open == 0 and crawl.id not in fleet.ask(lambda f: CrawlBook(f.client).running())
    fleet.ask(lambda frontier: frontier.operator.resume(host))
    assert fleet.ended(other).state == "finished", "of another site"
    state = fleet.ask(lambda frontier: frontier.operator.state(host))
    assert state.queued == 0, "the worker has looked after its crawls meanwhile"


@pytest.mark.parametrize(
    ("url", "levels", "pages", "told"),
    [
        ("ftp://a.vn/", 1, 5, "no http"),
        ("http://169.254.169.254/latest/", 1, 5, "link-local"),
        ("http://10.1.2.3/", 1, 5, "private"),
        ("http://khong-co-ten-nay.invalid/", 1, 5, "has no address"),
        ("http://127.0.0.1:9/anh.jpg", 1, 5, "image"),
        ("http://127.0.0.1:9/", 0, 5, "levels is 0"),
        ("http://127.0.0.1:9/", 10**9, 5, "levels is"),
        ("http://127.0.0.1:9/", 1, 0, "max_pages is 0"),
        ("http://127.0.0.1:9/", 1, 10**9, "max_pages is"),
    ],
)
def test_what_cannot_be_crawled_is_said_at_the_start(
    fleet: Fleet, url: str, levels: int, pages: int, told: str
) -> None:
    with pytest.raises(CrawlRefused, match=told):
        fleet.begin(url, levels, pages)


@pytest.mark.long
def test_killed_workers_and_no_worker_at_all(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=2, articles=8, **{**QUIET, "delay": 0.1})
    fleet = Fleet(tmp_path, web, queue, CRAWL_FOREVER=True, FRONTIER_LEASE_S=2, DOWNLOAD_DELAY=0.1)
    crawl = fleet.begin(fleet.sites[1]["home"], levels=2, max_pages=30)

    async def told(frontier: Frontier) -> Any:
        found = await CrawlBook(frontier.client).get(crawl.id)
        return await bounded_crawls.status(frontier, found, 0)

    status = fleet.ask(told)
    assert status["state"] == "waiting" and "a worker: none is running" in status["waits_for"]
    for pages in (3, 10):
        running = fleet.worker()
        until(lambda: fleet.get(crawl).fetched >= pages, f"{pages} pages", 120, 0.1)  # noqa: B023  # called before the loop goes on
        running.kill()
    last = fleet.worker()
    done = fleet.ended(crawl)
    last.interrupt()
    last.wait(120)
    entries = fleet.pages(crawl)
    assert done.state == "finished" and not any(entry.is_open for entry in entries)
    assert done.fetched + done.failed + done.refused == len(entries) >= 10
    kept = {article.url for article in stored(tmp_path / "data")}
    assert {e.link.url for e in entries if e.outcome == "DONE" and "article" in e.link.kind} <= kept
    hits = sum(fleet.hits(fleet.sites[1]).values())
    assert hits <= len(entries) + 4, "what two deaths interrupted was fetched once more"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["embedded", "server"])
def test_a_redis_that_is_killed_and_comes_back_costs_time_only(
    tmp_path: Path, newsweb: StartNewsweb, kind: str
) -> None:
    web = newsweb("ip", sites=2, articles=8, **{**QUIET, "delay": 0.1})
    data = tmp_path / "queue"
    data.mkdir()
    queue = Queue(data) if kind == "embedded" else RedisServer(tmp_path / "redis")
    fleet = Fleet(tmp_path, web, queue, CRAWL_FOREVER=True, FRONTIER_LEASE_S=3, DOWNLOAD_DELAY=0.1)
    crawl = fleet.begin(fleet.sites[1]["home"], levels=2, max_pages=30)
    worker = fleet.worker()
    for pages in (3, 9):
        until(lambda: fleet.get(crawl).fetched >= pages, f"{pages} pages", 120, 0.1)  # noqa: B023  # called before the loop goes on
        if isinstance(queue, Queue):
            os.kill(queue.info("server")["process_id"], signal.SIGKILL)
        else:
            queue.kill()
        if isinstance(queue, Queue):
            queue = fleet.queue = Queue(data)
        else:
            queue.start()
    done = fleet.ended(crawl)
    worker.interrupt()
    assert worker.wait(120).returncode == 0
    entries = fleet.pages(crawl)
    assert done.state == "finished" and not any(entry.is_open for entry in entries), done
    assert done.fetched + done.failed + done.refused == len(entries) >= 10
    kept = {article.url for article in stored(tmp_path / "data")}
    assert {e.link.url for e in entries if e.outcome == "DONE" and "article" in e.link.kind} <= kept
    hits = sum(fleet.hits(fleet.sites[1]).values())
    assert hits <= len(entries) + 6, "what was not acked in its last second was fetched once more"
    queue.close() if isinstance(queue, Queue) else queue.stop()


def test_the_command_begins_shows_and_cancels(
    tmp_path: Path, queue: Queue, newsweb: StartNewsweb
) -> None:
    web = newsweb("ip", sites=1, articles=2, **QUIET)
    scrapy = crawler(tmp_path, web, REDIS_URL=queue.url)
    done = scrapy.run("crawls", "start", web.homes()[0], "--levels", "2", "--json")
    assert done.returncode == 0, done.stderr
    crawl = json.loads(done.stdout)
    assert crawl["state"] == "waiting" and crawl["levels"] == 2 and crawl["max_pages"] == 100
    shown = scrapy.run("crawls", "show", crawl["id"], "--pages")
    assert "none is running" in shown.stdout and web.homes()[0] in shown.stdout
    # a worker that ends when nothing is left takes it, beside its own site
    worker = scrapy.run("crawl", "news", timeout=240)
    assert worker.returncode == 0, worker.stderr[-2000:]
    (row,) = [json.loads(line) for line in scrapy.run("crawls", "--json").stdout.splitlines()]
    assert row["state"] == "finished" and row["articles"] > 0, row
    wrong = [
        (["crawls", "show", "nothing"], 2, "no id of a crawl"),
        (["crawls", "show", "00000000"], 1, "no crawl has the id"),
        (["crawls", "start"], 2, "scrapy crawls start URL"),
        (["crawls", "start", web.homes()[0], "--levels", "0"], 2, "levels is 0"),
        (["crawls", "nap"], 2, "unknown verb"),
    ]
    for args, code, told in wrong:
        refused = scrapy.run(*args)
        assert refused.returncode == code and told in refused.stderr, (args, refused.stderr)
        assert "Traceback" not in refused.stderr
