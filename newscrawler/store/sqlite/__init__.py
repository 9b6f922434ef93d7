"""Articles in one SQLite file (WAL), for one machine and any number of its processes.
See docs/search.md."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from newscrawler.items import Article
from newscrawler.store.base import (
    Headline,
    Kept,
    Portion,
    PutResult,
    Query,
    QueryError,
    SearchResult,
    StoreGone,
    StoreRefused,
    StoreUnavailable,
    VersionState,
)
from newscrawler.web.urls import canonicalize

# SQLite, numpy and the query language are imported when they are first needed: a crawl whose
# articles are written elsewhere needs none of them.
if TYPE_CHECKING:
    import apsw

    from newscrawler.store.events import Outbox
    from newscrawler.store.fulltext.index import FullText
    from newscrawler.store.semantic.meaning import Meaning
    from newscrawler.store.sqlite.job import Elsewhere, Verb
    from newscrawler.store.sqlite.outbox import SqliteOutbox
    from newscrawler.store.sqlite.read import StoreReader
    from newscrawler.store.sqlite.write import Writer

__all__ = ["LocalStore"]
T = TypeVar("T")
#: Twice the searches that the API lets work at once: an article is read while they run.
_READERS = 4
_SCAN = 200


class LocalStore:
    """An ArticleStore. SQLite runs in threads of its own: one writes, four read.

    ``elsewhere``: the one that writes is another process instead, whose clock is the machine's.
    ``meaning``: what makes the search by meaning of this file, or why there is none.
    """

    def __init__(
        self,
        path: Path,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        elsewhere: Elsewhere | None = None,
        meaning: Callable[[Path], Meaning] | str = "no model is given",
    ) -> None:
        self._path = path
        self._now_ms = now_ms
        self._elsewhere = elsewhere
        self._no_meaning = meaning if isinstance(meaning, str) else ""
        self._meaning = None if isinstance(meaning, str) else meaning(path)
        self._writes = ThreadPoolExecutor(1, "articles-write")
        self._reads = ThreadPoolExecutor(_READERS, "articles-read")
        self._writer: Writer | None = None
        self._connections: list[apsw.Connection] = []
        self._idle: queue.SimpleQueue[StoreReader] = queue.SimpleQueue()
        self._index: FullText | None = None
        self._outbox: SqliteOutbox | None = None
        self._opening = threading.Lock()
        self._closed = False

    async def open(self) -> None:
        await self._write("open", None)

    @property
    def outbox(self) -> Outbox:
        """Its events, for the process that tells them."""
        if self._outbox is None:
            from newscrawler.store.sqlite.outbox import SqliteOutbox

            self._outbox = SqliteOutbox(self._path, self._now_ms)
        return self._outbox

    async def put(self, articles: Sequence[Article]) -> list[PutResult]:
        """:raises StoreRefused: articles that can never be stored; the others are"""
        results: list[PutResult]
        results, refused = await self._write("put", list(articles))
        if refused:
            raise StoreRefused(list(refused), next(iter(refused.values())), results)
        return results

    async def mark_gone(self, ids: Sequence[str]) -> int:
        marked: int = await self._write("mark_gone", list(ids))
        return marked

    async def purge(self, ids: Sequence[str]) -> int:
        purged: int = await self._write("purge", list(ids))
        return purged

    async def prune_versions(self, before: datetime, *, dry_run: bool = False) -> int:
        from newscrawler.store import codec

        pruned: int = await self._write("prune", (codec.ms(before), dry_run))
        return pruned

    async def scrub(self, *, rewrite: bool = False) -> list[str]:
        is_done = await self._write("scrub", rewrite)
        return [] if is_done else [f"{self._path}-wal could not be emptied: it is being read"]

    async def get(self, article_id: str) -> Article | None:
        return await self._read(lambda reader: reader.get(article_id))

    async def find_url(self, url: str) -> Article | None:
        def find(reader: StoreReader) -> Article | None:
            return reader.find_url(url) or reader.find_url(canonicalize(url) or url)

        return await self._read(find)

    async def versions(self, article_id: str) -> list[Article]:
        return await self._read(lambda reader: reader.versions(article_id))

    async def search(self, query: Query) -> SearchResult:
        """:raises QueryError: a query that cannot be asked
        :raises StoreUnavailable: the vectors cannot be read
        """
        meaning = self._meaning
        if meaning is None:
            if query.mode == "semantic":
                raise QueryError(
                    f"mode=semantic: there is no search by meaning: {self._no_meaning}"
                )
            return await self._read(lambda reader: reader.search(query))
        from newscrawler.store.semantic.meaning import NoVectors

        loop = asyncio.get_running_loop()
        try:
            return await self._read(
                lambda reader: reader.search(query, meaning, lambda text: meaning.ask(text, loop))
            )
        except NoVectors as exc:  # only of a search by meaning alone
            raise StoreUnavailable(f"search by meaning: {exc}") from exc

    async def related(self, article_id: str, size: int = 6) -> list[Article]:
        meaning = self._meaning
        if meaning is None:
            return []
        return await self._read(lambda reader: reader.related(article_id, size, meaning))

    async def follow(self, *, for_queries: bool = False) -> None:
        """Makes missing vectors in the background until the store is closed: for a process that
        stays. ``for_queries``: one that answers searches."""
        if self._meaning is not None and not self._closed:
            await self._meaning.follow(for_queries=for_queries)

    async def facets(self, query: Query) -> dict[str, dict[str, int]]:
        return await self._read(lambda reader: reader.facets(query))

    async def cluster(self, cluster_id: str) -> list[Article]:
        return await self._read(lambda reader: reader.cluster(cluster_id))

    async def refresh(self) -> None:
        if self._elsewhere is not None:
            await self._write("refresh", None)
        await self._read(lambda reader: reader.refresh())

    async def stats(self) -> dict[str, int | str | None]:
        return await self._read(lambda reader: reader.stats(self._meaning))

    async def scan(self, since: datetime | None = None) -> AsyncIterator[Article]:
        from newscrawler.store import codec

        since_ms = codec.ms(since) or 0
        place = 0
        while True:
            at = place
            articles, place = await self._read(
                # Called before the loop goes on.
                lambda reader: reader.batch(at, since_ms, _SCAN)  # noqa: B023
            )
            if not articles:
                return
            for article in articles:
                yield article

    async def walk(self) -> AsyncIterator[Kept]:
        from newscrawler.store.sqlite import whole

        place = 0
        while True:
            at = place
            found, place = await self._read(
                # Called before the loop goes on.
                lambda reader: whole.walk(reader.connection, at, _SCAN)  # noqa: B023
            )
            if not found:
                return
            for kept in found:
                yield kept

    async def states(self, ids: Sequence[str]) -> dict[str, VersionState]:
        from newscrawler.store.sqlite import whole

        return await self._read(lambda reader: whole.states(reader.connection, ids))

    async def portion(self, query: Query, cursor: str = "", size: int = 100) -> Portion:
        _refuse_meaning(query)
        return await self._read(lambda reader: reader.portion(query, cursor, size))

    async def values(self, query: Query, key: str, within: str = "") -> dict[str, int]:
        _refuse_meaning(query)
        return await self._read(lambda reader: reader.values(query, key, within))

    async def days(self, query: Query) -> dict[str, dict[str, int]]:
        _refuse_meaning(query)
        return await self._read(lambda reader: reader.days(query))

    async def headlines(self, after: datetime, before: datetime) -> list[Headline]:
        from newscrawler.store import codec
        from newscrawler.store.sqlite import whole

        span = codec.ms(after) or 0, codec.ms(before) or 0
        return await self._read(lambda reader: whole.headlines(reader.connection, *span))

    async def inspect(self) -> list[str]:
        return await self._read(lambda reader: reader.inspect(self._meaning))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._outbox is not None:
            await self._outbox.close()
        if self._meaning is not None:
            await self._meaning.close()
        if self._elsewhere is not None:
            await self._elsewhere.close()
        await asyncio.to_thread(self._shut)

    # ------------------------------------------------------------------ threads and connections
    def _shut(self) -> None:
        self._writes.shutdown()
        if self._index is not None:
            self._index.close()
        self._reads.shutdown()
        for connection in self._connections:
            connection.close()

    async def _write(self, verb: Verb, argument: Any) -> Any:
        if self._elsewhere is not None:
            if self._closed:
                raise StoreUnavailable(f"article store {self._path}: is closed")
            outcome, value = await self._elsewhere((verb, str(self._path), argument))
            if outcome != "done":
                raise StoreGone(value) if outcome == "gone" else StoreUnavailable(value)
            return value

        from newscrawler.store.sqlite import job, schema
        from newscrawler.store.sqlite.write import Writer

        def run() -> Any:
            with schema.translated(self._path):
                if self._writer is None:
                    self._writer = Writer(self._connect(create=True), self._now_ms)
                    self._of_index().follow()
                return job.run(self._writer, self._of_index(), verb, argument)

        return await self._run(self._writes, run)

    async def _read(self, work: Callable[[StoreReader], T]) -> T:
        from newscrawler.store.sqlite import schema

        def run() -> T:
            with schema.translated(self._path), self._reader() as reader:
                return work(reader)

        return await self._run(self._reads, run)

    async def _run(self, pool: ThreadPoolExecutor, run: Callable[[], T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"article store {self._path}: is closed")
        return await asyncio.get_running_loop().run_in_executor(pool, run)

    @contextmanager
    def _reader(self) -> Iterator[StoreReader]:
        try:
            reader = self._idle.get_nowait()
        except queue.Empty:
            from newscrawler.store.sqlite import schema
            from newscrawler.store.sqlite.read import StoreReader

            # An empty store answers "nothing" instead of failing; an old one has no index yet.
            create = not self._path.is_file() or schema.is_older(self._path)
            reader = StoreReader(self._connect(create=create), self._of_index())
        try:
            yield reader
        finally:
            self._idle.put(reader)

    def _of_index(self) -> FullText:
        from newscrawler.store.sqlite import job

        with self._opening:
            if self._index is None:
                self._index = job.index_of(self._path)
            return self._index

    def _connect(self, *, create: bool) -> apsw.Connection:
        from newscrawler.store.sqlite import schema

        connection = schema.connect(self._path, create=create)
        self._connections.append(connection)
        return connection


def _refuse_meaning(query: Query) -> None:
    if query.mode == "semantic":
        raise QueryError("mode=semantic: everything is near in meaning; all matches are of words")
