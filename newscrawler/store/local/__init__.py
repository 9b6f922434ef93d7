"""Articles in one SQLite file (WAL), for one machine and any number of its processes. See docs/search.md."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from newscrawler.items import Article
from newscrawler.store.base import PutResult, Query, SearchResult, StoreRefused, StoreUnavailable
from newscrawler.web.urls import canonicalize

# SQLite, numpy and the query language are imported when they are first needed: a crawl whose articles are written
# elsewhere needs none of them.
if TYPE_CHECKING:
    import apsw

    from newscrawler.store.local.job import Elsewhere, Verb
    from newscrawler.store.local.query import Reader
    from newscrawler.store.local.write import Writer

__all__ = ["LocalStore"]
T = TypeVar("T")
_READERS = 2
_SCAN = 200


class LocalStore:
    """An ArticleStore. SQLite runs in threads of its own: one writes, two read.

    ``elsewhere``: the one that writes is another process instead, whose clock is the machine's.
    """

    def __init__(
        self,
        path: Path,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._path = path
        self._now_ms = now_ms
        self._elsewhere = elsewhere
        self._writes = ThreadPoolExecutor(1, "articles-write")
        self._reads = ThreadPoolExecutor(_READERS, "articles-read")
        self._writer: Writer | None = None
        self._connections: list[apsw.Connection] = []
        self._idle: queue.SimpleQueue[Reader] = queue.SimpleQueue()
        self._closed = False

    async def open(self) -> None:
        await self._write("open", None)

    async def put(self, articles: Sequence[Article]) -> list[PutResult]:
        results, refused = await self._write("put", list(articles))
        if refused:
            raise StoreRefused(list(refused), next(iter(refused.values())), results)
        return results  # type: ignore[no-any-return]

    async def mark_gone(self, ids: Sequence[str]) -> int:
        return await self._write("mark_gone", list(ids))  # type: ignore[no-any-return]

    async def get(self, article_id: str) -> Article | None:
        return await self._read(lambda reader: reader.get(article_id))

    async def find_url(self, url: str) -> Article | None:
        def find(reader: Reader) -> Article | None:
            return reader.find_url(url) or reader.find_url(canonicalize(url) or url)

        return await self._read(find)

    async def versions(self, article_id: str) -> list[Article]:
        return await self._read(lambda reader: reader.versions(article_id))

    async def search(self, query: Query) -> SearchResult:
        return await self._read(lambda reader: reader.search(query))

    async def facets(self, query: Query) -> dict[str, dict[str, int]]:
        from newscrawler.store.search import parse

        return await self._read(lambda reader: reader.facets(reader.settle(parse(query))))

    async def cluster(self, cluster_id: str) -> list[Article]:
        return await self._read(lambda reader: reader.cluster(cluster_id))

    async def refresh(self) -> None:
        """Everything that was put can be found at once."""

    async def stats(self) -> dict[str, int | str | None]:
        return await self._read(lambda reader: reader.stats())

    async def scan(self, since: datetime | None = None) -> AsyncIterator[Article]:
        from newscrawler.store import codec

        since_ms = codec.ms(since) or 0
        place = 0
        while True:
            at = place
            articles, place = await self._read(lambda reader: reader.batch(at, since_ms, _SCAN))  # noqa: B023
            if not articles:
                return
            for article in articles:
                yield article

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._elsewhere is not None:
            await self._elsewhere.close()
        await asyncio.to_thread(self._shut)

    # ------------------------------------------------------------------ threads and connections
    def _shut(self) -> None:
        self._writes.shutdown()
        self._reads.shutdown()
        for connection in self._connections:
            connection.close()

    async def _write(self, verb: Verb, argument: Any) -> Any:
        if self._elsewhere is not None:
            if self._closed:
                raise StoreUnavailable(f"article store {self._path}: is closed")
            outcome, value = await self._elsewhere((verb, str(self._path), argument))
            if outcome != "done":
                raise StoreUnavailable(value)
            return value

        from newscrawler.store.local import job, schema
        from newscrawler.store.local.write import Writer

        def run() -> Any:
            with schema.translated(self._path):
                if self._writer is None:
                    self._writer = Writer(self._connect(create=True), self._now_ms)
                return job.run(self._writer, verb, argument)

        return await self._run(self._writes, run)

    async def _read(self, work: Callable[[Reader], T]) -> T:
        from newscrawler.store.local import schema

        def run() -> T:
            with schema.translated(self._path), self._reader() as reader:
                return work(reader)

        return await self._run(self._reads, run)

    async def _run(self, pool: ThreadPoolExecutor, run: Callable[[], T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"article store {self._path}: is closed")
        return await asyncio.get_running_loop().run_in_executor(pool, run)

    @contextmanager
    def _reader(self) -> Iterator[Reader]:
        try:
            reader = self._idle.get_nowait()
        except queue.Empty:
            if not self._path.is_file():
                self._connect(create=True)  # an empty store answers "nothing" instead of failing
            from newscrawler.store.local.query import Reader

            reader = Reader(self._connect(create=False))
        try:
            yield reader
        finally:
            self._idle.put(reader)

    def _connect(self, *, create: bool) -> apsw.Connection:
        from newscrawler.store.local import schema

        connection = schema.connect(self._path, create=create)
        self._connections.append(connection)
        return connection
