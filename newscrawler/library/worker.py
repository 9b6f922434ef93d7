"""The process of a ``Crawler``: one crawl from a script, as Scrapy's documentation does it.

Started with a file that says what to crawl and where articles are written. Its standard input is a
pipe whose other end the caller holds and never writes to: when that is closed, or the caller is
gone, the crawl stops in order.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import orjson
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import UsageError

from newscrawler import cli, metrics
from newscrawler.commands.crawl import check
from newscrawler.crawl import opening
from newscrawler.fleet.verdict import nothing_fetched
from newscrawler.items import Article
from newscrawler.library.settings import project_settings
from newscrawler.store import codec


class Spool:
    """A line for each article that is stored, written at once and whole."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def scraped(self, item: Any) -> None:
        article = item if isinstance(item, Article) else getattr(item, "article", None)
        if isinstance(article, Article):
            row = {"version": article.version, "article": codec.to_dict(article)}
            self._file.write(orjson.dumps(row) + b"\n")

    def close(self) -> None:
        self._file.close()


def main(order_file: str) -> int:
    """Exit code: 0 done, 1 failed, 2 an argument or a setting is wrong."""
    order = json.loads(Path(order_file).read_bytes())
    signal.signal(signal.SIGTERM, _end_now)  # until Scrapy's handlers are there
    threading.Thread(target=_stop_with_caller, daemon=True).start()
    settings = project_settings(order["settings"])
    if not settings.get("LOG_FILE"):
        log = opening.data_dir(settings) / "logs" / "crawl.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        settings.set("LOG_FILE", str(log), priority="command")
    Path(order["log"]).write_text(str(settings.get("LOG_FILE")))
    try:
        check(settings, order["arguments"])
    except UsageError as exc:
        cli.note(str(exc))
        return 2
    spool = Spool(Path(order["spool"]))
    gc.freeze()  # as `scrapy crawl news` does it
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler("news")
    crawler.signals.connect(spool.scraped, signals.item_scraped)
    process.crawl(crawler, **order["arguments"])
    process.start()
    spool.close()
    stop_reason = getattr(crawler.spider, "stop_reason", "") if crawler.spider else "no start"
    if stop_reason:
        cli.note(f"Crawl stopped: {stop_reason}")
        return 1
    if text := nothing_fetched(metrics.stats_of(crawler)):
        cli.note(text)
        return 1
    return 0


def _stop_with_caller() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _end_now(_number: int, _frame: Any) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
