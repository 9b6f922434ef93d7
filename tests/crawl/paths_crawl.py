"""A crawl whose pages end in every way that Scrapy knows; run by test_paths.py in a
process of its own.

Usage: python -m tests.crawl.paths_crawl FOLDER. Prints one JSON object: per path the acks that the
frontier got, and the counts that were left. Real engine, scheduler, frontier and Redis; the site is
a small server in a thread, the spider is the real one with a callback per path.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections import defaultdict
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.utils.project import get_project_settings

from newscrawler.frontier import connect
from newscrawler.frontier import queue as frontier_queue
from newscrawler.frontier import redis_server as embedded
from newscrawler.items import Article, Outcome, Visit
from newscrawler.spiders.news import NewsSpider

PATHS = (
    "ok", "generator", "async-generator", "slow-pipeline", "two-items", "returns-none", "yields-nothing",
    "raises", "raises-after-item", "raises-in-async", "mw-output-raises", "mw-output-drops", "pipeline-raises",
    "pipeline-drops", "pipeline-replaces", "no-article", "nothing-left", "same-text",
    "timeout", "reset", "short", "closed-port", "dl-mw-raises", "spider-mw-raises", "errback-raises",
    "ignored", "robots-refused", "status-404", "status-500", "redirect", "dl-mw-request", "empty", "type",
)  # fmt: skip


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.strip("/")
        if name == "robots.txt":
            return self.answer(200, b"User-agent: *\nDisallow: /robots-refused\n", "text/plain")
        if name == "reset":
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
            )
            self.connection.close()
            self.close_connection = True
            return None
        if name == "timeout":
            threading.Event().wait(4)
            self.close_connection = True
            return None
        if name == "short":
            self.send_response(200)
            self.send_header("Content-Length", "5000")
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p>short")
            self.close_connection = True
            return None
        if name.startswith("status-"):
            return self.answer(int(name[-3:]), b"<p>no</p>")
        if name == "redirect":
            return self.answer(302, b"", location="/target-of-redirect")
        if name == "empty":
            return self.answer(200, b"")
        if name == "type":
            return self.answer(200, b"\x89PNG\r\n\x1a\n" + b"\0" * 500, "image/png")
        return self.answer(
            200, b"<html><body><h1>Title</h1><p>" + b"text " * 100 + b"</p></body></html>"
        )

    def answer(self, status: int, body: bytes, kind: str = "text/html", location: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def robots_then_closed() -> int:
    """A port that answers one request, for robots.txt, and is closed from then on."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)

    def serve() -> None:
        connection, _ = listener.accept()
        listener.close()
        connection.recv(4096)
        connection.sendall(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


def path_of(url: str) -> str:
    return urlsplit(url).path.strip("/")


class PathSpider(NewsSpider):
    name = "paths"

    def parse(self, response: Any) -> Any:
        name = path_of(response.url)
        if name in ("status-404", "status-500", "redirect", "empty", "type"):
            return super().parse(response)
        article = self._article(response, name)
        ways = {
            "generator": lambda: (p for p in [article]),
            "async-generator": lambda: self._later(article),
            "two-items": lambda: [article, article],
            "returns-none": lambda: None,
            "yields-nothing": lambda: iter(()),
            "raises": lambda: 1 / 0,
            "raises-after-item": lambda: self._then_raise(article),
            "raises-in-async": lambda: self._later(article, raises=True),
            "no-article": lambda: None,
        }
        return ways[name]() if name in ways else [article]

    def _article(self, response: Any, name: str) -> Article:
        """Notes the visit, unless the path is one where the callback says nothing."""
        lease = response.meta["lease"]
        self._page(response, lease)
        article = Article(
            id=lease.url_id.hex(),
            url=lease.url,
            site=lease.site,
            title=" " if name == "nothing-left" else f"Title of {name}",
            content="The same text" if name == "same-text" else f"Text of {name}",
        )
        visit = Visit(
            url=lease.url,
            outcome=Outcome.DONE,
            kind=lease.kind,
            site=lease.site,
            domain=lease.domain,
            status=response.status,
            content_state=b"l" * 16,
            article=article,
            lease=lease,
        )
        if name == "same-text":
            # stored a moment ago under another address, which this page names as its canonical one
            other = replace(article, id="0" * 32, url=response.urljoin("/first"))
            self.services.ingest._recent.note(other)
            article.canonical_url = other.url
        if name == "no-article":
            visit.outcome, visit.article = Outcome.NOT_ARTICLE, None
        if name not in ("returns-none", "yields-nothing"):
            self._scheduler.lease_loop.note_visit(response.request, visit)
        return article

    async def _later(self, article: Article, raises: bool = False) -> Any:
        await asyncio.sleep(0.01)
        if raises:
            raise ValueError("in an async generator")
        yield article

    def _then_raise(self, article: Article) -> Any:
        yield article
        raise ValueError("after an item")

    def failed(self, failure: Any) -> Any:
        if path_of(failure.request.url) == "errback-raises":
            raise ValueError("in the errback")
        return super().failed(failure)


class FaultyDownloaderMiddleware:
    def process_request(self, request: Request) -> Any:
        name = path_of(request.url)
        if name in ("dl-mw-raises", "errback-raises"):
            raise ValueError("in a downloader middleware")
        if name == "ignored":
            raise IgnoreRequest("not today")
        if name == "dl-mw-request":
            return request.replace(url=request.url.replace("dl-mw-request", "made-by-a-middleware"))
        return None


class FaultySpiderMiddleware:
    def process_spider_input(self, response: Any) -> None:
        if path_of(response.url) == "spider-mw-raises":
            raise ValueError("in a spider middleware's input")

    async def process_spider_output_async(self, response: Any, result: Any) -> Any:
        async for one in result:
            if path_of(response.url) == "mw-output-raises":
                raise ValueError("in a spider middleware's output")
            if path_of(response.url) != "mw-output-drops":
                yield one

    def process_spider_output(self, response: Any, result: Any) -> Any:
        for one in result:
            if path_of(response.url) == "mw-output-raises":
                raise ValueError("in a spider middleware's output")
            if path_of(response.url) != "mw-output-drops":
                yield one


class FaultyPipeline:
    async def process_item(self, item: Any) -> Any:
        name = path_of(item.url)
        if name == "slow-pipeline":
            await asyncio.sleep(0.3)
        if name == "pipeline-raises":
            raise ValueError("in a pipeline")
        if name == "pipeline-drops":
            raise DropItem("not wanted")
        if name == "pipeline-replaces":
            return {"url": item.url}
        return item


def main() -> None:
    folder = Path(sys.argv[1])
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    dead_port = robots_then_closed()
    base = f"http://127.0.0.1:{site.server_port}"
    urls = [
        f"http://127.0.0.1:{dead_port}/closed-port" if p == "closed-port" else f"{base}/{p}"
        for p in PATHS
    ]

    acks: dict[str, list[list[str]]] = defaultdict(list)
    step = frontier_queue.Frontier.step

    async def recording_step(self: Any, k: int, sent: Any = (), fetched: Any = ()) -> Any:
        result = await step(self, k, sent, fetched)
        for ack in sent:
            accepted = "rejected" if ack.lease.url_id in result.rejected else "accepted"
            acks[path_of(ack.lease.url)].append([str(ack.outcome), ack.reason, accepted])
        return result

    frontier_queue.Frontier.step = recording_step  # type: ignore[method-assign]
    settings = get_project_settings()
    settings.setdict(
        {
            "DATA_DIR": str(folder / "data"), "REDIS_URL": "", "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
            "DOWNLOAD_DELAY": 0, "AUTOTHROTTLE_ENABLED": False, "DOWNLOAD_TIMEOUT": 2, "PROGRESS": "off",
            "FRONTIER_MAX_TRIES": 1, "BACKOFF_START_S": 1, "BACKOFF_MAX_S": 1, "SELECTOR_GENERATION": "off", "LOG_LEVEL": "ERROR",
            "ARTICLE_MAX_AGE_DAYS": 0, "RETRY_ENABLED": False,
        },
        priority="cmdline",
    )  # fmt: skip
    here = "tests.crawl.paths_crawl"
    settings["DOWNLOADER_MIDDLEWARES"][f"{here}.FaultyDownloaderMiddleware"] = 110
    settings["SPIDER_MIDDLEWARES"][f"{here}.FaultySpiderMiddleware"] = 500
    settings["ITEM_PIPELINES"][f"{here}.FaultyPipeline"] = 50
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(importable())
    process.crawl(crawler, urls=urls)
    process.start()
    left = asyncio.run(count(embedded.ensure(folder / "data")))
    embedded.stop(folder / "data")
    print(
        json.dumps(
            {
                "acks": acks,
                "left": left,
                "paths": PATHS,
                "reason": crawler.stats.get_value("finish_reason"),
            }
        )
    )


async def count(redis_url: str) -> dict[str, int]:
    client = connect(redis_url, single=False)
    try:
        counts = await frontier_queue.Frontier(
            client, frontier_queue.FrontierConfig(loopback_only=True), "count"
        ).counts()
        return {"queued": counts.queued, "leased": counts.leased}
    finally:
        await client.aclose()


def importable() -> type[PathSpider]:
    """The class under its real module name: run with -m it would otherwise be __main__'s."""
    import tests.crawl.paths_crawl as me

    return me.PathSpider


if __name__ == "__main__":
    main()
