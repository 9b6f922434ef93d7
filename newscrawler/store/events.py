"""article.new, article.updated, article.gone on one Redis stream, for whoever follows the news.

Told after the article is durable, so a crash between the two leaves an event untold: who needs
every article scans the store (``scrapy export --since``). Read with ``XREAD BLOCK 0 STREAMS
newscrawler:events $``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from newscrawler.items import Article
from newscrawler.store.base import PutResult

STREAM = "newscrawler:events"
#: About so many of the last events are kept (MAXLEN ~): 200 B each.
KEPT = 100_000


class EventSink(Protocol):
    """Is told after a batch is durable, of one batch at a time. What it raises is logged and
    costs nothing but its own event."""

    async def announce(self, stored: Sequence[tuple[Article, PutResult]]) -> object:
        """Articles with what became of them, in the order of the batch: ``status`` "new" or
        "updated"."""
        ...

    async def gone(self, ids: Sequence[str]) -> object:
        """Their sites no longer have them."""
        ...

    async def close(self) -> None:
        """The crawl or command has ended; nothing is told after it."""
        ...


class EventStream:
    """``client`` is a redis.asyncio client; None tells nobody."""

    def __init__(self, client: Any, stream: str = STREAM, kept: int = KEPT) -> None:
        self._client = client
        self._stream = stream
        self._kept = kept

    async def announce(self, stored: Sequence[tuple[Article, PutResult]]) -> int:
        """Tell of what a put has changed; unchanged ones are left out. Returns the number of
        events. One round trip; raises redis' own errors."""
        events = [
            {
                "type": f"article.{result.status}",
                "id": article.id,
                "url": article.url,
                "site": article.site,
                "version": str(result.version),
                "title": article.title,
                "published": article.published.isoformat() if article.published else "",
            }
            for article, result in stored
            if result.status in ("new", "updated")
        ]
        return await self._add(events)

    async def gone(self, ids: Sequence[str]) -> int:
        return await self._add([{"type": "article.gone", "id": i} for i in ids])

    async def close(self) -> None:
        """The client is its owner's."""

    async def _add(self, events: list[dict[str, str]]) -> int:
        if self._client is None or not events:
            return 0
        pipeline = self._client.pipeline(transaction=False)
        for event in events:
            pipeline.xadd(self._stream, event, maxlen=self._kept, approximate=True)
        await pipeline.execute()
        return len(events)
