"""Makes a worker stand still while its event loop, and so its heartbeat, goes on: an add-on of Scrapy
(ADDONS) that a test puts on the PYTHONPATH of a node, beside the egg.

A file of the worker's pid in the folder HANGS says what is to hang: ``loop``, the lease loop in the
middle of a turn; ``visits``, the reading of pages, so that no visit ends.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings


class Hangs:
    def update_settings(self, settings: BaseSettings) -> None:
        settings["EXTENSIONS"].set("hangs.Extension", 900, "addon")


class Extension:
    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.path = Path(os.environ["HANGS"]) / str(os.getpid())
        self.task: asyncio.Task[None] | None = None
        # Held here: of tasks that wait for something which they alone refer to the garbage
        # collector makes an end, and the visits that hang were over whenever it came by.
        self.forever = asyncio.Event()
        crawler.signals.connect(self.opened, signals.spider_opened)
        crawler.signals.connect(self.closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Extension:
        return cls(crawler)

    def opened(self) -> None:
        self.task = asyncio.ensure_future(self._look())

    def closed(self) -> None:
        if self.task is not None:
            self.task.cancel()

    async def _look(self) -> None:
        while not self.path.exists():  # noqa: ASYNC110  # no event tells it
            await asyncio.sleep(0.1)
        what = self.path.read_text()
        engine: Any = self.crawler.engine
        lease_loop = engine.scheduler.lease_loop
        if what == "loop":
            lease_loop._exchange = self._never
        else:
            lease_loop.reader.read = self._never
        self.path.with_suffix(".done").write_text(what)

    async def _never(self, *args: Any) -> None:
        await self.forever.wait()
