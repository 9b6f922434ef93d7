"""An article whose page is gone: kept, no longer found, and told once on the event stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scrapy.crawler import AsyncCrawlerRunner
from scrapy.utils.project import get_project_settings

from newscrawler.crawl.services import services_of
from newscrawler.items import Article, Outcome, Visit
from newscrawler.pipelines import IndexPipeline
from newscrawler.spiders.news import NewsSpider
from newscrawler.store.events import STREAM
from tests.redis.helpers import done, frontier, link


async def test_gone_is_told_once_and_only_of_articles(
    r: Any, redis_server: str, tmp_path: Path
) -> None:
    f = await frontier(r)
    await f.add([link("/bai-viet")])
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, digest=b"d" * 16, next_visit_ms=1)])
    (lease,) = (await f.step(1)).leases
    assert lease.digest, "it was read before"

    places = {
        "DATA_DIR": str(tmp_path),
        "REDIS_URL": redis_server,
        "TWISTED_REACTOR_ENABLED": False,
    }
    settings = {**get_project_settings().copy_to_dict(), **places}
    crawler = AsyncCrawlerRunner(settings).create_crawler(NewsSpider)
    crawler.spider = NewsSpider.from_crawler(crawler)  # what Crawler.crawl does first
    services = services_of(crawler)
    pipeline = IndexPipeline.from_crawler(crawler)
    await pipeline.open_spider()
    try:
        store, ingest = services.store, services.ingest
        article = Article(
            id=lease.url_id.hex(),
            url=lease.url,
            site="a.vn",
            title="Tiêu đề",
            content="Nội dung bài.",
        )
        gone = Visit(url=lease.url, outcome=Outcome.GONE, lease=lease)
        await ingest.note_gone(gone)
        await services.announcer.drain(60)
        assert await r.xlen(STREAM) == 0, "it never was an article"
        await store.put([article])
        await ingest.note_gone(gone)
        await ingest.note_gone(gone)
        await services.announcer.drain(60)
        events = [event for _, event in await r.xrange(STREAM)]
        assert [event[b"type"] for event in events] == [b"article.new", b"article.gone"]
        assert {event[b"id"] for event in events} == {article.id.encode()}
        kept = await store.get(article.id)
        assert kept is not None and kept.gone
    finally:
        await pipeline.close_spider()
        await services.close()
