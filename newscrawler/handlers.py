"""Scrapy's download handlers of this project: the guarded network, or a folder of stored pages.

``BaseDownloadHandler`` is Scrapy's public interface; its own aiohttp handler is private and
experimental, and resolver, limits, decoding and errors would all have to be replaced in it.
"""

from __future__ import annotations

import base64
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from newscrawler.crawl.rendering import Rendering
from newscrawler.fetch.client import FetchFailed, FetchRules, HttpClient
from newscrawler.fetch.proxies import Proxy, parse_proxy
from newscrawler.rawstore.replay import load_index

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

#: What Scrapy raises for the reasons of a FetchFailed; all others are a DownloadFailedError.
_SCRAPYS: dict[str, type[Exception]] = {
    "timeout": DownloadTimeoutError,
    "dns": CannotResolveHostError,
    "connect": DownloadConnectionRefusedError,
    "truncated": ResponseDataLossError,
}
# The body is handed on decoded and whole, so what told how it travelled would be a lie.
_TRAVEL_HEADERS = (b"Content-Encoding", b"Transfer-Encoding", b"Content-Length")


class GuardedHandler(BaseDownloadHandler):
    """Fetches over the network under the rules of ``fetch.client``; with REPLAY_DIR it is
    never made at all.

    Sets ``request.meta``: ``download_latency`` (s, to the head of the answer), ``raw_headers``
    (list of byte pairs as received), ``rendered`` where scripts of the page had to fill it
    (crawl.rendering). Raises ``fetch.client.FetchError``; where the frontier did not
    hand out the request, a fetch that failed is one of Scrapy's own errors.
    """

    lazy = True  # the session needs the running event loop

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._client = HttpClient(FetchRules.from_settings(crawler.settings))
        services = getattr(crawler.spider, "services", None)
        self._rendering: Rendering | None = None
        if services is not None and services.has_frontier:
            self._rendering = Rendering(services, self._client)

    @classmethod
    # The base class promises one of its own class; this may be a replay.
    def from_crawler(cls, crawler: Crawler) -> BaseDownloadHandler:  # type: ignore[override]
        if crawler.settings.get("REPLAY_DIR"):
            return ReplayHandler(crawler)
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        """:raises DownloadFailedError: or another of Scrapy's, with our reason as its text"""
        headers = [
            (k.decode("latin-1"), v.decode("latin-1"))
            for k, vs in request.headers.items()
            for v in vs
            if k != b"Proxy-Authorization"  # Scrapy's for the proxy: no site is to see it
        ]
        try:
            answer = await self._client.fetch(
                request.url,
                headers,
                method=request.method,
                body=request.body or None,
                proxy=_proxy_of(request),
                is_direct="proxy" in request.meta and not request.meta["proxy"],
            )
        except FetchFailed as exc:
            if "lease" in request.meta:
                raise
            # Another spider, or a person at the shell: RetryMiddleware and errbacks know
            # Scrapy's own errors.
            raise _SCRAPYS.get(exc.reason, DownloadFailedError)(str(exc)) from exc
        request.meta["download_latency"] = answer.latency_s
        if self._rendering is not None:
            answer = await self._rendering.read(request.meta, answer)
        request.meta["raw_headers"] = answer.headers
        return _response(request.url, answer.status, answer.headers, answer.body)

    async def close(self) -> None:
        if self._rendering is not None:
            await self._rendering.close()
        await self._client.close()


def _proxy_of(request: Request) -> Proxy | None:
    """Of ``request.meta["proxy"]``, with the user that Scrapy's HttpProxyMiddleware put into a
    header; None = there is none, so that the environment decides.

    :raises ValueError: it is no http proxy
    """
    url = request.meta.get("proxy")
    if not url:
        return None
    proxy = parse_proxy(url, 'request.meta["proxy"]')
    credentials = request.headers.get(b"Proxy-Authorization") or b""
    if not proxy.user and credentials[:6].lower() == b"basic ":
        user, _, password = (
            base64.b64decode(credentials[6:]).decode("utf-8", "replace").partition(":")
        )
        proxy = replace(proxy, user=user, password=password)
    return proxy


class ReplayHandler(BaseDownloadHandler):
    """Answers from the folder REPLAY_DIR (see rawstore.replay) under the pages' real
    addresses: no network."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._index = load_index(Path(crawler.settings["REPLAY_DIR"]))

    async def download_request(self, request: Request) -> Response:
        start = time.monotonic()
        parts = urlsplit(request.url)
        content_type, body = b"text/html", None  # without a charset: the page has to say it
        if parts.path == "/robots.txt":
            content_type, body = b"text/plain", self._index.robots(parts.netloc)
        if body is None:
            body = self._index.page(request.url)
        status = 404 if body is None else 200
        request.meta["download_latency"] = time.monotonic() - start
        request.meta["raw_headers"] = headers = [(b"Content-Type", content_type)]
        return _response(request.url, status, headers, body or b"")


def _response(
    url: str, status: int, raw_headers: list[tuple[bytes, bytes]], body: bytes
) -> Response:
    received: dict[bytes, list[bytes]] = {}
    for name, value in raw_headers:
        received.setdefault(name.title(), []).append(value)
    for name in _TRAVEL_HEADERS:
        received.pop(name, None)
    headers = Headers(received)
    cls = responsetypes.from_args(headers=headers, url=url, body=body)
    return cls(url=url, status=status, headers=headers, body=body)
