"""CPU per page of the guarded handler beside Scrapy's own aiohttp handler, in one run on loopback.

    python -m tests.crawl.measure_handlers [pages] [rounds]

Each crawl is a process of its own (uvloop, 30 hosts, pages of 65 kB, keep-alive, no middlewares but
decompression, no parsing); the server is a third. Rounds alternate. Prints ms of CPU per page.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HOSTS = 30
HANDLERS = {
    "stock": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler",
    "guarded": "newscrawler.handlers.GuardedHandler",
}


def page() -> bytes:
    rng = random.Random(5)
    words = [
        "".join(rng.choices("aăâbcdđeêghiklmnoôơpqrstuưvxy", k=rng.randint(2, 7)))
        for _ in range(4000)
    ]
    return ("<html><body><p>" + " ".join(rng.choices(words, k=11_000)))[:56_000].encode()[:65_536]


async def serve(coded: bool) -> None:
    body = gzip.compress(page(), 6) if coded else page()
    coding = b"Content-Encoding: gzip\r\n" if coded else b""
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%sContent-Length: %d\r\n\r\n"
        % (coding, len(body))
        + body
    )

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(client, "0.0.0.0", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def crawl(handler: str, port: int, pages: int) -> None:
    from scrapy import Request, Spider
    from scrapy.crawler import AsyncCrawlerProcess

    class Measured(Spider):
        name = "measured"
        seen = 0

        async def start(self) -> AsyncIterator[Any]:
            for n in range(pages):
                yield Request(
                    f"http://127.0.7.{n % HOSTS + 1}:{port}/{n}", self.parse, dont_filter=True
                )

        def parse(self, response: Any) -> None:
            assert len(response.body) > 60_000
            Measured.seen += 1

    from scrapy.settings import Settings

    settings = Settings()
    settings.setmodule("newscrawler.settings", priority="project")
    settings.update(
        {
            "SPIDER_MODULES": [],
            "LOG_LEVEL": "ERROR",
            "DOWNLOAD_DELAY": 0,
            "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
            "DOWNLOAD_HANDLERS": {
                **settings.getdict("DOWNLOAD_HANDLERS"),
                "http": HANDLERS[handler],
            },
        },
        priority="cmdline",
    )
    process = AsyncCrawlerProcess(settings)
    process.crawl(Measured)
    before, wall = time.process_time(), time.monotonic()
    process.start()
    spent, wall = time.process_time() - before, time.monotonic() - wall
    assert Measured.seen == pages, Measured.seen
    print(json.dumps({"cpu_ms": spent / pages * 1000, "pages_s": pages / wall}))


def main(pages: int, rounds: int) -> None:
    for coded in (False, True):
        server = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, "serve", str(int(coded))],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        figures: dict[str, list[float]] = {name: [] for name in HANDLERS}
        try:
            for number in range(rounds * 2):
                name = list(HANDLERS)[(number + number // 2) % 2]  # stock guarded guarded stock ...
                done = subprocess.run(
                    [sys.executable, "-m", __spec__.name, "crawl", name, port, str(pages)],
                    capture_output=True,
                    text=True,
                    cwd=ROOT,
                )
                assert done.returncode == 0, done.stderr
                figures[name].append(json.loads(done.stdout)["cpu_ms"])
        finally:
            server.kill()
            server.wait()
        for name, values in figures.items():
            runs = " ".join(f"{v:.3f}" for v in values)
            print(
                f"{'gzip' if coded else 'plain':5} {name:8} median {statistics.median(values):.3f} ms CPU a page  ({runs})"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(sys.argv[2] == "1"))
    elif sys.argv[1:2] == ["crawl"]:
        crawl(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 2000,
            int(sys.argv[2]) if len(sys.argv) > 2 else 3,
        )
