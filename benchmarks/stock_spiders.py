"""The reference of `make bench`: what a careful user of stock Scrapy writes for the same web.

CSS selectors, LinkExtractor, items kept in memory, no store. A process of its own, started by
bench_crawl.py: ``python -m benchmarks.stock_spiders memory|redis|broad SEEDS_FILE REDIS_URL
WORKERS``; none of the project's settings apply. Prints Scrapy's stats as one JSON object, with the
time of the last answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DontCloseSpider
from scrapy.linkextractors import LinkExtractor


class StockSpider(scrapy.Spider):
    """``seeds``: a file with one URL a line."""

    name = "stock"
    custom_settings = {
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 32,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
    }

    def __init__(self, seeds: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with Path(seeds).open() as lines:
            self.seed_urls = [line.strip() for line in lines if line.strip()]
        # with the port: LinkExtractor compares with the whole network location
        self.links = LinkExtractor(allow_domains=[urlsplit(u).netloc for u in self.seed_urls])
        self.kept: list[dict[str, Any]] = []

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.answered, signals.response_received)
        return spider

    def answered(self) -> None:
        self.crawler.stats.set_value("last_answer_at", time.time())

    async def start(self) -> Any:
        for url in self.seed_urls:
            yield scrapy.Request(url, callback=self.parse)

    def parse(self, response: Any) -> Any:
        if not hasattr(response, "css"):
            return
        title = response.css("h1::text").get()
        if title:
            item = {
                "url": response.url,
                "title": title.strip(),
                "published": response.css("time::attr(datetime)").get(),
                "author": response.css(".author::text").getall(),
                "content": "\n\n".join(
                    "".join(p.css("::text").getall()).strip()
                    for p in response.css("article p, .article-body p")
                ),
            }
            self.kept.append(item)
            yield item
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url, callback=self.parse)


class StockRedisSpider(StockSpider):
    """The same with stock scrapy-redis as scheduler and dupe filter (REDIS_URL
    on the command line)."""

    name = "stock-redis"
    custom_settings = {
        **StockSpider.custom_settings,
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        # The worker that ends first would throw away the queue of the other; the bench
        # empties Redis itself.
        "SCHEDULER_PERSIST": True,
    }

    def __init__(self, workers: int = 1, redis_url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.workers = workers
        self.redis = redis.Redis.from_url(redis_url)

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    def answered(self) -> None:
        super().answered()
        if self.workers > 1:
            self.redis.srem("idle", os.getpid())

    def idle(self) -> None:
        """One of several stays until all have nothing to do: what another is reading may
        hold links for it."""
        if self.workers == 1:
            return
        self.redis.sadd("idle", os.getpid())
        if self.redis.scard("idle") < self.workers or self.redis.exists(f"{self.name}:requests"):
            raise DontCloseSpider


class BroadRedisSpider(StockRedisSpider):
    """With what Scrapy's page on broad crawls advises (docs.scrapy.org, "Broad Crawls")."""

    name = "stock-broad"
    custom_settings = {
        **StockRedisSpider.custom_settings,
        "CONCURRENT_REQUESTS": 100,
        "REACTOR_THREADPOOL_MAXSIZE": 20,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "DOWNLOAD_TIMEOUT": 15,
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue",
    }


def main() -> None:
    kind, seeds, redis_url, workers = sys.argv[1:5]
    if kind == "memory":
        process = CrawlerProcess()
        crawler = process.create_crawler(StockSpider)
        process.crawl(crawler, seeds=seeds)
    else:
        process = CrawlerProcess({"REDIS_URL": redis_url})
        crawler = process.create_crawler(StockRedisSpider if kind == "redis" else BroadRedisSpider)
        process.crawl(crawler, seeds=seeds, workers=int(workers), redis_url=redis_url)
    process.start()
    print(json.dumps(crawler.stats.get_stats(), default=str))


if __name__ == "__main__":
    main()
