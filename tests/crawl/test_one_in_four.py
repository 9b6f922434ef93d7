"""A site of which every fourth page fails once, in all the ways in which pages fail: all of
it is fetched, at its ordinary pace, with the back-off of the shipped settings. Sixty
simulated seconds are one of ours."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import keys, schema
from tests.crawl.harness import Scrapy
from tests.crawl.small import QUICK, Queue, stored

pytestmark = pytest.mark.slow

ARTICLES = 75
FACTOR = 60
#: Seconds between two fetches.
DELAY_S = 2
SENTENCE = (
    "Sáng {n} tháng 11, đoàn công tác số {n} của thành phố đã đến thăm {n} hộ dân ở ven sông."
)


def page(n: int) -> bytes:
    title = f"Đoàn công tác số {n} thăm các hộ dân ven sông"
    text = "".join(f"<p>{SENTENCE.format(n=n * 100 + i)}</p>" for i in range(8))
    return (
        f'<html lang="vi"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta property="og:type" content="article"></head>'
        f"<body><article><h1>{title}</h1>{text}</article></body></html>"
    ).encode()


PATHS = {f"/tin-so-{n}-48{n:05}.html": n for n in range(1, ARTICLES + 1)}
HOME = "".join(f'<p><a href="{path}">Đoàn công tác số {n}</a></p>' for path, n in PATHS.items())


class Site:
    """Every fourth page that is asked for the first time fails. ``failed``: path -> how."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: set[str] = set()
        self.failed: dict[str, str] = {}
        self._ways = cycle(["503", "reset", "truncated", "503", "hang"])
        self._closing = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def _way(self, path: str) -> str:
        """How this request fails; "" = it does not."""
        self.asked[path] += 1
        is_first = path in PATHS and self.asked[path] == 1
        if not is_first or sum(self.asked[p] > 0 for p in PATHS) % 4:
            return ""
        self.failed[path] = next(self._ways)
        return self.failed[path]

    def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                way = site._way(self.path)
                if way in ("reset", "hang"):
                    self.close_connection = True
                    if way == "hang":
                        site._closing.wait(30)
                    return
                body = HOME.encode() if self.path == "/" else page(PATHS.get(self.path, 0))
                is_robots = self.path == "/robots.txt"
                self.send_response(404 if is_robots else int(way) if way == "503" else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if way == "truncated":
                    self.close_connection = True
                    self.wfile.write(body[:100])
                    return
                self.wfile.write(body)
                if not way:
                    site.answered.add(self.path)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def close(self) -> None:
        self._closing.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


def planned_waits_s(queue: Queue, host: str) -> list[float]:
    """What the gate planned after each fetch, simulated seconds."""

    async def read(frontier: Any, client: Any) -> list[float]:
        entries = await client.lrange(keys.log(0, host), 0, -1)
        return [schema.LOG.unpack_from(entry)[2] / 1000 for entry in entries]

    return queue._ask(read)


@pytest.mark.long
def test_a_site_of_which_every_fourth_page_fails_is_fetched_whole_and_without_gaps(
    tmp_path: Path, site: Site, queue: Queue
) -> None:
    sites = [{"id": "bao.vn", "home": f"http://{site.host}/", "delay_s": DELAY_S}]
    (tmp_path / "sites.json").write_text(json.dumps({"sites": sites}), "utf-8")
    queue.set_clock({"factor": FACTOR, "offset_ms": 0})
    shipped = {k: v for k, v in QUICK.items() if k != "BACKOFF_START_S"}
    scrapy = Scrapy(
        tmp_path,
        {
            **shipped,
            "SITES_FILE": tmp_path / "sites.json",
            "REDIS_URL": queue.url,
            "AUTOTHROTTLE_ENABLED": True,
            "DOWNLOAD_TIMEOUT": 2,
        },
    )
    done = scrapy.run("crawl", "news", timeout=110)
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(PATHS) - site.answered == set(), "not fetched"
    assert Counter(site.failed.values()) == {"503": 7, "reset": 4, "truncated": 4, "hang": 3}
    assert len(stored(scrapy.data)) == ARTICLES
    waits = planned_waits_s(queue, site.host)
    assert len(waits) >= ARTICLES + len(site.failed)
    assert max(waits) < 30, "a failure of one page held the whole site"
