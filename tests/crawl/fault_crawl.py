"""Run by test_fetch_faults in a process of its own: a real Scrapy crawl of the URLs on
stdin, one JSON line each.

Our settings, handlers and middlewares; only the frontier and the stores are left out. argv:
NAME=value settings.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

OFF: dict[str, Any] = {
    "SPIDER_MODULES": [],
    "ROBOTSTXT_OBEY": False,
    "LOG_LEVEL": "ERROR",
}


class FaultSpider(Spider):
    name = "faults"
    urls: list[tuple[str, str]] = []

    async def start(self) -> AsyncIterator[Any]:
        for url, kind in self.urls:
            lease = SimpleNamespace(kind=kind, digest=b"", etag=None, last_modified=None)
            yield Request(
                url, self.parse, errback=self.failed, dont_filter=True, meta={"lease": lease}
            )

    def parse(self, response: Any) -> None:
        say(
            response.request.url,
            status=response.status,
            bytes=len(response.body),
            flags=response.flags,
            headers={
                k.decode("latin-1"): v[0].decode("latin-1") for k, v in response.headers.items()
            },
            raw=[k.decode("latin-1") for k, _ in response.meta["raw_headers"]],
            latency=response.meta["download_latency"],
            type=type(response).__name__,
        )

    def failed(self, failure: Any) -> None:
        error = failure.value
        say(
            failure.request.url,
            reason=getattr(error, "reason", None),
            problem=getattr(error, "problem", None),
            error=f"{type(error).__name__}: {error}",
        )


def say(url: str, **values: Any) -> None:
    print(json.dumps({"url": url, **values}), flush=True)


def main() -> None:
    settings = Settings()
    settings.setmodule("newscrawler.settings", priority="project")
    for name in ("DOWNLOADER_MIDDLEWARES", "RETRY_ENABLED", "HTTPERROR_ALLOW_ALL"):
        settings.set(name, settings["NEWS_SPIDER"][name], priority="spider")
    settings["DOWNLOADER_MIDDLEWARES"].set(
        # asks what the frontier has learned of a site
        "newscrawler.middlewares.SecondAddressMiddleware",
        None,
        priority="cmdline",
    )
    settings.update(OFF, priority="cmdline")
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        settings.set(name, value, priority="cmdline")
    FaultSpider.urls = [tuple(line.split()) for line in sys.stdin]  # type: ignore[misc]
    process = AsyncCrawlerProcess(settings)
    process.crawl(FaultSpider)
    process.start()
    from twisted.internet import reactor

    loop = type(getattr(reactor, "_asyncioEventloop", None)).__module__
    print(json.dumps({"url": "", "loop": loop}))


if __name__ == "__main__":
    main()
