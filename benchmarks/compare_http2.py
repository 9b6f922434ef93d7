"""HTTP/2 against what the crawler speaks, one request after the other as its gate lets them.

Needs a server (any; ``listen 443 ssl http2`` in nginx) with pages at URL/p0.html ... and, in an
environment of its own, the client that is measured: aiohttp, httpx[http2] or curl_cffi.

    python benchmarks/compare_http2.py https://localhost:8443 ca.pem 72 aiohttp|httpx1|httpx2|curl1|curl2
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

REQUESTS, FIRST = 150, 10
HEADERS = {
    "User-Agent": "newscrawler/0.1 (+https://newscrawler.example/bot)",
    "Accept": "text/html,application/xhtml+xml",
    "Accept-Language": "vi,en;q=0.8",
    "Accept-Encoding": "gzip, deflate",
}
#: Bytes of the body that URL has.
Get = Callable[[str], Awaitable[int]]


async def measured(base: str, pages: int, get: Get, name: str) -> None:
    for number in range(FIRST):
        await get(f"{base}/p{number % pages}.html")
    cpu, wall, size = time.process_time(), time.monotonic(), 0
    for number in range(REQUESTS):
        size += await get(f"{base}/p{number % pages}.html")
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    print(
        f"{name:8} {cpu / REQUESTS * 1000:.2f} ms of CPU, {wall / REQUESTS * 1000:.2f} ms a page of"
        f" {size // REQUESTS:,} bytes (n = {REQUESTS})"
    )


async def main(base: str, ca: str, pages: int, name: str) -> None:
    trusted = ssl.create_default_context(cafile=ca)
    if name == "aiohttp":
        import aiohttp

        connector = aiohttp.TCPConnector(ssl=trusted)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def by_aiohttp(url: str) -> int:
                async with session.get(url, headers=HEADERS) as answer:
                    return len(await answer.read())

            await measured(base, pages, by_aiohttp, name)
        return
    client = _httpx(name, trusted) if name.startswith("httpx") else _curl(name, ca)
    async with client:

        async def by_client(url: str) -> int:
            return len((await client.get(url, headers=HEADERS)).content)

        await measured(base, pages, by_client, name)


def _httpx(name: str, trusted: ssl.SSLContext) -> Any:
    import httpx

    return httpx.AsyncClient(http2=name == "httpx2", verify=trusted)


def _curl(name: str, ca: str) -> Any:
    from curl_cffi import CurlHttpVersion, requests

    version = CurlHttpVersion.V2TLS if name == "curl2" else CurlHttpVersion.V1_1
    return requests.AsyncSession(verify=ca, http_version=version)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
