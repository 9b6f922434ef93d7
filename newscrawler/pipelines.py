"""Every item pipeline: clean -> deduplicate -> raw store -> index. The item is the article.

Each is an ordinary Scrapy pipeline that hands articles to newscrawler.crawl.ingest; items of other
types pass through. A pipeline of a project's own stands before, between or behind them by its
number. What raises here is not acked, so the URL comes back; what is dropped is finished and
counted (docs/fetching.md).
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Self

from scrapy.exceptions import DropItem

from newscrawler.crawl import ingest
from newscrawler.crawl.services import Services, services_of
from newscrawler.items import Article, Outcome
from newscrawler.store import canonical_duplicates

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class VisitEnds(DropItem):
    """The article goes no further for a reason of ours, with which its visit ends."""

    def __init__(self, outcome: Outcome, reason: str, message: str = "") -> None:
        super().__init__(message or reason, log_level="DEBUG")
        self.outcome = outcome
        self.reason = reason


class _ArticlePipeline:
    def __init__(self, services: Services) -> None:
        self.services = services
        self.visits = services.visits

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(services_of(crawler))

    def _learn_rule(self, article: Article) -> None:
        """The text is stored from another address: by which rule this one leads to it."""
        if other := canonical_duplicates.other_address(article):
            self.services.link_learning.note_second_address(article.site, article.url, other)


class CleanPipeline:
    """Corrects what no store should have to see; an article of which nothing is left is none."""

    def __init__(self, count: ingest.Count) -> None:
        self._count = count

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.stats.inc_value)

    def process_item(self, item: Any) -> Any:
        """:raises VisitEnds: nothing is left after cleaning"""
        if isinstance(item, Article) and not ingest.clean(item, self._count):
            raise VisitEnds(Outcome.NOT_ARTICLE, "empty after cleaning")
        return item


class DeduplicatePipeline(_ArticlePipeline):
    """Drops an article that this worker stored under another address of its site,
    before its page is kept.

    What it does not know the store finds out when the article is put: then IndexPipeline drops it.
    """

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, Article):
            return item
        visit = self.visits.of_article(item.id)
        if visit is None or visit.lease.digest:  # it may be stored under its own address
            return item
        stored_as = self.services.ingest.duplicate_of(item)
        if stored_as is not None:
            self._learn_rule(item)
            visit.stored = "duplicate"
            raise _duplicate(item, stored_as)
        return item


class RawStorePipeline(_ArticlePipeline):
    """Writes the article's page to WARC; the reference goes on with the
    article, the HTML does not."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.visits.keeps_pages = True

    async def process_item(self, item: Any) -> Any:
        if isinstance(item, Article) and (visit := self.visits.of_article(item.id)) is not None:
            await self.services.ingest.keep(visit)
            item.raw_ref = visit.raw_ref
        return item


class IndexPipeline(_ArticlePipeline):
    """Stores the article, searchable, in batches; hands it on when it is durable."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.visits.stores_articles = True

    async def open_spider(self) -> None:
        store = self.services.store
        await store.open()
        follow = getattr(store, "follow", None)  # stores of other projects have none
        if follow is not None:
            await follow()
        self.services.announcer.start()

    async def close_spider(self) -> None:
        await self.services.ingest.drain()
        await self.services.announcer.drain()

    async def process_item(self, item: Any) -> Any:
        """:raises VisitEnds: the store has it already, or refuses it"""
        if not isinstance(item, Article):
            return item
        started = time.monotonic()
        try:
            result = await self.services.ingest.put(item)
        except ingest.TakenDown as exc:
            raise VisitEnds(Outcome.REFUSED, exc.reason) from exc
        if result.status == "duplicate":
            self._learn_rule(item)
        elif result.status == "new" and canonical_duplicates.other_address(item) is None:
            self.services.link_learning.note_own(item.site, item.url)
        if (visit := self.visits.of_article(item.id)) is not None:
            visit.stored = result.status
            visit.store_ms = round((time.monotonic() - started) * 1000, 1)
        if result.status == "duplicate":
            raise _duplicate(item, result.duplicate_of)
        return item


def _duplicate(article: Article, stored_as: str) -> VisitEnds:
    message = f"Article is stored under another address url={article.url} stored_as={stored_as}"
    return VisitEnds(Outcome.REDIRECTED, "canonical", message)
