"""What the tests of a whole crawl share: a small web, a crawler pointed at it, and
what it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from newscrawler.frontier import connect, redis_server
from newscrawler.frontier.queue import Counts, Frontier, FrontierConfig
from newscrawler.items import Article
from newscrawler.store import open_store
from newscrawler.store.base import ArticleStore
from newscrawler.web.urls import domain_of
from tests.crawl.harness import Scrapy
from tests.newsweb import judge
from tests.newsweb.process import NewswebProcess

#: A web that a crawl finishes in seconds: no story appears by itself, no fault, no delay worth a
#: wait. Its own edits are spread over the duration, so that none falls into a test.
QUIET: dict[str, Any] = {"rate": 0, "duration": 1000, "delay": 0.02, "faults": "none"}
#: Real delays of a few ms, no back-off of a minute, and an end as soon as only revisits are left.
QUICK: dict[str, Any] = {
    "DOWNLOAD_DELAY": 0.02,
    "AUTOTHROTTLE_ENABLED": False,
    "BACKOFF_START_S": 0.5,
    "ROBOTS_RETRY_S": 0.5,
    "CRAWL_LONGEST_WAIT_S": 5,
    "SPIDERMON_ENABLED": False,
}


def crawler(folder: Path, web: NewswebProcess, **settings: Any) -> Scrapy:
    places = {"SITES_FILE": web.sites_file, "SELECTORS_DIR": web.selectors_dir}
    return Scrapy(folder, {**QUICK, **places, **settings})


class Queue:
    """The embedded Redis of a data folder, kept alive and looked at by the test."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.url = redis_server.ensure(data)

    def close(self) -> None:
        redis_server.stop(self.data)

    def _ask(self, work: Any) -> Any:
        async def run() -> Any:
            client = connect(self.url, single=False)
            try:
                return await work(
                    Frontier(client, FrontierConfig(loopback_only=True), "test"), client
                )
            finally:
                await client.aclose()

        return asyncio.run(run())

    def counts(self) -> Counts:
        return self._ask(lambda frontier, client: frontier.counts())

    def records(self, urls: dict[str, bytes]) -> dict[str, Any]:
        """URL -> Record; None where the frontier has none."""

        async def look(frontier: Frontier, client: Any) -> dict[str, Any]:
            return {
                url: await frontier.record(ident, domain_of(url)) for url, ident in urls.items()
            }

        return self._ask(look)

    def set_clock(self, clock: dict[str, Any]) -> None:
        self._ask(lambda frontier, client: frontier.set_clock(clock["factor"], clock["offset_ms"]))

    def info(self, section: str = "everything") -> dict[str, Any]:
        return self._ask(lambda frontier, client: client.info(section))


def in_store(data: Path, work: Any, uri: str = "") -> Any:
    """Runs ``work(store)``, a coroutine function, on the opened article store."""

    async def run() -> Any:
        store: ArticleStore = open_store(uri, data)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def stored(data: Path, uri: str = "") -> list[Article]:
    async def scan(store: ArticleStore) -> list[Article]:
        return [article async for article in store.scan()]

    return in_store(data, scan, uri)


def versions(data: Path, article: Article) -> list[Article]:
    return in_store(data, lambda store: store.versions(article.id))


def expected(web: NewswebProcess) -> set[str]:
    """Addresses of all articles that a crawl without an age limit has to store."""
    rows = web.truth()
    return {
        row["url"] for row in rows
        if row["type"] == "article" and not row["optional"] and (row["should_be_found"] or row["why_not"] == "too old")
    }  # fmt: skip


def complaints(web: NewswebProcess, articles: list[Article]) -> list[str]:
    """What is wrong with the set of what is stored: missed, not to be there, or twice."""
    found = judge.coverage(web.truth(), articles, grace_s=0, age_limit=False)
    out = [
        f"missed {row['url']} channels={row['channels']} special={row['special']}"
        for row in found.missed
    ]
    out += [f"unexpected {row}" for row in found.unexpected]
    twice = [url for url, n in Counter(a.url for a in articles).items() if n > 1]
    return out + [f"twice {url}" for url in twice]


def page_hits(web: NewswebProcess) -> Counter[str]:
    """URL -> how often it was answered with a page; robots.txt left out."""
    return Counter(
        f"http://{hit['host']}{hit['path']}"
        for hit in web.hits()
        if hit["status"] == 200 and not hit["path"].startswith("/robots")
    )


def redis_servers(data: Path) -> list[int]:
    """Process ids of the servers of a data folder; each works in its folder, whatever
    its socket is called."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_redis = b"redis-server" in (process / "cmdline").read_bytes()
            if is_redis and (process / "cwd").resolve() == (data / "redis").resolve():
                found.append(int(process.name))
    return found


def sql(path: Path, statement: str) -> None:
    """What an operator would do with the sqlite3 shell."""
    connection = sqlite3.connect(path)
    try:
        connection.execute(statement)
        connection.commit()
    finally:
        connection.close()
