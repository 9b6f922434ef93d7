"""A pipeline that brings its worker down: what a parser's fault, or a page of more memory than
there is, would do."""

from __future__ import annotations

import os
import signal
from typing import Any

from scrapy.crawler import Crawler

#: For the crawl's settings, beside the spider's own pipelines; KILLER_PATH is the path of the page.
PIPELINES = {"tests.crawl.killer.Killer": 150}


class Killer:
    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Killer:
        return cls(crawler.settings["KILLER_PATH"])

    def process_item(self, item: Any) -> Any:
        if item.url.endswith(self.path):
            os.kill(os.getpid(), signal.SIGKILL)
        return item
