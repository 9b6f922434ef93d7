"""Every item pipeline. One item per page; what raises here is not acked, so the URL comes back.

clean -> raw store -> article store. A page without an article passes through to its ack untouched.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter

from newscrawler import metrics
from newscrawler.extraction import text as textrules
from newscrawler.items import Article, Outcome, Page
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import PutResult, StoreRefused, StoreUnavailable
from newscrawler.store.events import EventStream
from newscrawler.wiring import Services

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: Fields whose presence is counted, for the coverage figures of monitors and dashboards.
COUNTED_FIELDS = ("title", "content", "published", "authors", "summary", "section", "image", "language")


STORED_AS = {
    "new": metrics.ARTICLES_NEW,
    "updated": metrics.ARTICLES_UPDATED,
    "unchanged": metrics.ARTICLES_UNCHANGED,
    "twin": metrics.ARTICLES_TWIN,
}


@lru_cache(maxsize=64)
def _field_stat(field: str) -> str:
    return metrics.labelled(metrics.ARTICLE_FIELD, field)


@lru_cache(maxsize=4096)
def origin_stat(field: str, origin: str) -> str:
    return metrics.labelled(metrics.ARTICLE_ORIGIN, f"{field}/{origin.partition(':')[0]}")


class CleanPipeline:
    """Last checks on an article: what no store should have to see is corrected or taken out, and counted."""

    def __init__(self, crawler: Crawler) -> None:
        self.stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CleanPipeline:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, Page) or item.article is None:
            return item
        article = item.article
        article.title = textrules.one_line(article.title)
        if not textrules.is_clean(article.content):
            article.content = textrules.paragraphs(article.content)
        article.authors = list(dict.fromkeys(name for a in article.authors if (name := textrules.one_line(a))))
        if article.credits:
            article.credits = list(dict.fromkeys(name for a in article.credits if (name := textrules.one_line(a))))
        if not article.title or not article.content:
            item.outcome, item.reason, item.article = Outcome.NOT_ARTICLE, "empty after cleaning", None
            return item
        now = item.fetched or datetime.now(UTC)
        if article.published and article.published > now + timedelta(days=1):
            # a wrong date is worse than none: it would lead every list sorted by date
            article.published = None
            article.origins.pop("published", None)
            self.stats.inc_value(metrics.ARTICLE_DATE_DROPPED)
        return item


class RawStorePipeline:
    """Writes the page to WARC; the reference goes on with the article, the HTML does not."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RawStorePipeline:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, Page):
            return item
        if item.keep_raw and item.body:
            raw = Services.of(self.crawler).raw
            ref = raw.write(
                item.url, item.body, item.response_headers, item.status, item.fetched or datetime.now(UTC), item.digest
            )
            self.stats.inc_value(metrics.RAW_RECORDS)
            if item.article is not None:
                item.article.raw_ref = ref
            item.raw_ref = ref
        item.body = None
        return item


class ArticleStorePipeline:
    """Group commit: an article is handed on only when the batch that holds it is durable.

    A batch is closed at STORE_BATCH_ROWS rows or STORE_BATCH_MS after its first one. First the raw
    pages are flushed, then the articles are put: no article ever points to a page that is not there.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.stats = crawler.stats
        self.rows = crawler.settings.getint("STORE_BATCH_ROWS")
        self.wait_s = crawler.settings.getfloat("STORE_BATCH_MS") / 1000
        self._batch: list[tuple[Article, asyncio.Future[PutResult]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._commits: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self.events: EventStream | None = None
        self._counts: Counter[str] = Counter()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ArticleStorePipeline:
        return cls(crawler)

    async def open_spider(self) -> None:
        services = Services.of(self.crawler)
        await services.store.open()
        self.events = EventStream(services.redis)

    async def close_spider(self) -> None:
        self._close_batch()
        if self._commits:
            await asyncio.wait(self._commits)
        self._count()

    async def process_item(self, item: Any) -> Any:
        if not isinstance(item, Page):
            return item
        if item.outcome is Outcome.GONE and item.lease.digest:
            await self._mark_gone(item.lease.url_id.hex())
        if item.article is None:
            return item
        result = await self._put(item.article)
        self.stats.inc_value(STORED_AS[result.status])
        if result.status == "twin":
            item.outcome, item.reason, item.next_visit_ms = Outcome.REDIRECTED, "canonical", None
            item.article, item.stored = None, ""
            logger.debug("Article is stored under another address url=%s stored_as=%s", item.url, result.twin_of)
            return item
        item.article.version = result.version
        item.stored = result.status
        fields = ItemAdapter(item.article)
        self._counts.update([_field_stat(field) for field in COUNTED_FIELDS if fields.get(field)])
        self._counts.update([origin_stat(field, origin) for field, origin in item.article.origins.items()])
        return item

    def _count(self) -> None:
        """What articles had, told once a batch: a call for each field of each article costs more than its commit."""
        counts, self._counts = self._counts, Counter()
        for name, count in counts.items():
            self.stats.inc_value(name, count)

    async def _put(self, article: Article) -> PutResult:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[PutResult] = loop.create_future()
        self._batch.append((article, future))
        if len(self._batch) >= self.rows:
            self._close_batch()
        elif self._timer is None:
            self._timer = loop.call_later(self.wait_s, self._time_is_up)
        return await future

    def _time_is_up(self) -> None:
        self._timer = None
        if not self._one_at_a_time.locked():  # else the batch that is being written closes this one when it ends
            self._close_batch()

    def _close_batch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        task = asyncio.ensure_future(self._commit(batch))
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    async def _commit(self, batch: list[tuple[Article, asyncio.Future[PutResult]]]) -> None:
        services = Services.of(self.crawler)
        refused: dict[str, str] = {}
        try:
            async with self._one_at_a_time:
                try:
                    await asyncio.to_thread(services.raw.flush)  # waits for the disk
                    results = await services.store.put([article for article, _ in batch])
                except StoreRefused as exc:
                    refused = dict.fromkeys(exc.ids, exc.reason)
                    results = exc.results
                finally:
                    if self._timer is None:  # the next batch has waited its time meanwhile
                        self._close_batch()
        except Exception as exc:
            if not isinstance(exc, (StoreUnavailable, RawStoreUnavailable)):
                logger.exception("Store failed on a batch articles=%d", len(batch))
            for _, future in batch:
                if not future.done():
                    future.set_exception(exc)
            return
        by_id = {result.id: result for result in results}
        for article, future in batch:
            if future.done():
                continue
            if article.id in by_id:
                future.set_result(by_id[article.id])
            else:
                future.set_exception(StoreRefused([article.id], refused.get(article.id, "no answer for it")))
        self._count()
        await self._announce(batch, by_id)

    async def _mark_gone(self, article_id: str) -> None:
        """Told once, also where the page was asked for again; not told of what never was an article."""
        if not await Services.of(self.crawler).store.mark_gone([article_id]) or self.events is None:
            return
        try:
            await self.events.gone([article_id])
        except Exception as exc:
            logger.warning("Events were not told gone=%s error=%s", article_id, exc)

    async def _announce(self, batch: list[tuple[Article, Any]], by_id: dict[str, PutResult]) -> None:
        """Events are told after the commit; one that cannot be told is logged, the article is safe."""
        changed = [(a, by_id[a.id]) for a, _ in batch if a.id in by_id and by_id[a.id].status in ("new", "updated")]
        if not changed or self.events is None:
            return
        try:
            await self.events.announce(changed)
        except Exception as exc:
            logger.warning("Events were not told articles=%d error=%s", len(changed), exc)
