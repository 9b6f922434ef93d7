"""A lease of three seconds while fetch and store take seven: renewed, so that each
page is fetched once."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.crawl.harness import Scrapy
from tests.crawl.small import QUICK, Queue, stored

pytestmark = pytest.mark.slow

SLOW_S = 7
TEXT = "<p>" + "Một câu dài vừa đủ để là một đoạn của bài báo này. " * 12 + "</p>"
ARTICLE = (
    '<html><head><title>{0}</title><script type="application/ld+json">'
    '{{"@type": "NewsArticle", "headline": "{0}", "datePublished": "2026-11-20T10:00:00+07:00"}}'
    "</script></head><body><article><h1>{0}</h1>{1}</article></body></html>"
)


class Site:
    """Two articles, of which one takes SLOW_S to answer."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked[self.path] += 1
                body = (
                    "<html><body>"
                    + "".join(f'<p><a href="/{n}-1234567{n}.html">x</a></p>' for n in (1, 2))
                    + "</body></html>"
                )
                if self.path == "/robots.txt":
                    self.send_error(404)
                    return
                if self.path != "/":
                    if self.path.startswith("/1"):
                        time.sleep(SLOW_S)
                    body = ARTICLE.format(f"Tiêu đề của bài số {self.path[1]}", TEXT)
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.long
def test_work_that_outlasts_its_lease_is_renewed(tmp_path: Path, site: Site, queue: Queue) -> None:
    entry = {
        "id": "cham",
        "name": "Chậm",
        "home": f"http://{site.host}/",
        "hosts": [site.host],
        "delay_s": 0.02,
    }
    (tmp_path / "sites.json").write_text(
        json.dumps({"sites": [entry | {"article_pattern": r"-(\d{8})\.html"}]})
    )
    conf = {
        **QUICK,
        "SITES_FILE": tmp_path / "sites.json",
        "FRONTIER_LEASE_S": 3,
        "STORE_BATCH_MS": SLOW_S * 1000,
    }
    done = Scrapy(tmp_path, conf).run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]
    paths = (
        *("/robots.txt", "/", "/1-12345671.html", "/2-12345672.html"),
        *("/sitemap.xml", "/news-sitemap.xml"),  # robots.txt names none
    )
    assert site.asked == dict.fromkeys(paths, 1)
    assert done.stat("frontier/leases_lost") == 0
    assert {a.url[-15:] for a in stored(tmp_path / "data")} == {
        "1-12345671.html",
        "2-12345672.html",
    }
    assert queue.counts().leased == 0
    assert done.stats["elapsed_time_seconds"] > SLOW_S * 2, (
        "fetch and store really took longer than the lease"
    )
