"""The reference of `make bench`: what a careful user of stock Scrapy writes for the same web.

CSS selectors, LinkExtractor, items kept in memory, no store. A process of its own, started by
bench_crawl.py: ``python -m benchmarks.stock_spiders memory|redis SEEDS_FILE [REDIS_URL]``; none of
the project's settings apply. Prints Scrapy's stats as one JSON object.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
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
        with open(seeds) as lines:  # noqa: PTH123
            self.seed_urls = [line.strip() for line in lines if line.strip()]
        # with the port: LinkExtractor compares with the whole network location
        self.links = LinkExtractor(allow_domains=[urlsplit(u).netloc for u in self.seed_urls])
        self.kept: list[dict[str, Any]] = []

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
                    "".join(p.css("::text").getall()).strip() for p in response.css("article p, .article-body p")
                ),
            }
            self.kept.append(item)
            yield item
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url, callback=self.parse)


class StockRedisSpider(StockSpider):
    """The same with stock scrapy-redis as scheduler and dupe filter (REDIS_URL on the command line)."""

    name = "stock-redis"
    custom_settings = {
        **StockSpider.custom_settings,
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": False,
    }


def main() -> None:
    kind, seeds = sys.argv[1:3]
    settings: dict[str, Any] = {}
    if kind == "redis":
        settings["REDIS_URL"] = sys.argv[3]
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(StockSpider if kind == "memory" else StockRedisSpider)
    process.crawl(crawler, seeds=seeds)
    process.start()
    print(json.dumps(crawler.stats.get_stats(), default=str))


if __name__ == "__main__":
    main()
