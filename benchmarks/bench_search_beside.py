"""The search of this program beside plain engines, in one run: SQLite's FTS5 ordered by bm25, and
Elasticsearch's ``match``, each with the words of a query as they were typed and nothing else.

    python -m benchmarks.bench_search_beside --articles 10000 --queries 100     or make bench-search

The articles and queries are those of benchmarks.bench_search. Of each kind of query: MRR@10 of
the article that was meant, then milliseconds p50 / p95. Of what runs in this process they are CPU;
of Elasticsearch they are wall, as its server is another process. Elasticsearch is started by the
program where a JDK and Maven are (as the tests do), or is the one of ``--elasticsearch``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import apsw
from elasticsearch import AsyncElasticsearch

from benchmarks.bench_search import Language, is_known_item, kinds_of_query
from newscrawler import cli
from newscrawler.items import Article
from newscrawler.store.base import ArticleStore, Query
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.fold import exact_words, folded_words, nfc
from newscrawler.store.sqlite import LocalStore
from tests import fixtures_elasticsearch

BATCH, SAMPLES = 500, 500
#: Kinds of benchmarks.bench_search that a plain engine can be asked as well: nothing but words.
KINDS = (
    "title", "title, folded", "title, one edit", "title, one edit, folded", "title, two edits",
    "title, a word too many", "half the title", "sentence of a text", "sentence, folded",
    "sentence, one edit", "one word, folded", "three common words", '"phrase of 3"',
)  # fmt: skip


class Engine(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def clock(self) -> Callable[[], float]: ...

    async def put(self, articles: Sequence[Article]) -> None: ...
    async def refresh(self) -> None: ...
    async def search(self, query: Query) -> list[str]:
        """Ids of the first hits."""
        ...

    async def close(self) -> None: ...


@dataclass
class Ours:
    name: str
    store: ArticleStore
    clock: Callable[[], float]

    async def put(self, articles: Sequence[Article]) -> None:
        await self.store.put(articles)

    async def refresh(self) -> None:
        await self.store.refresh()

    async def search(self, query: Query) -> list[str]:
        return [hit.article.id for hit in (await self.store.search(query)).hits]

    async def close(self) -> None:
        await self.store.close()


class Fts5:
    """Words by AND, diacritics removed by SQLite's own tokenizer, ordered by its bm25."""

    name, clock = "plain FTS5 bm25", staticmethod(time.process_time)

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path))
        self._db.execute(
            "CREATE TABLE article(n INTEGER PRIMARY KEY, id TEXT, title TEXT, content TEXT);"
            "CREATE VIRTUAL TABLE words USING fts5(title, content, content='article',"
            " content_rowid='n', tokenize='unicode61 remove_diacritics 2')"
        )

    async def put(self, articles: Sequence[Article]) -> None:
        with self._db:
            for article in articles:
                values = (article.id, nfc(article.title), nfc(article.content))
                self._db.execute("INSERT INTO article(id, title, content) VALUES(?,?,?)", values)
                row = (self._db.last_insert_rowid(), *values[1:])
                self._db.execute("INSERT INTO words(rowid, title, content) VALUES(?,?,?)", row)

    async def refresh(self) -> None:
        pass

    async def search(self, query: Query) -> list[str]:
        words = exact_words(query.text)
        quoted = [" ".join(words)] if query.text.startswith('"') else words
        asked = " ".join(f'"{part}"' for part in quoted)
        found = self._db.execute(
            "SELECT a.id, a.title, a.content FROM words JOIN article a ON a.n = words.rowid"
            " WHERE words MATCH ? ORDER BY rank LIMIT 20",
            (asked,),
        )
        return [str(row[0]) for row in found]

    async def close(self) -> None:
        self._db.close()


class Match:
    """``match`` over title and text as Elasticsearch analyses them by default."""

    name, clock = "plain Elasticsearch match", staticmethod(time.perf_counter)

    def __init__(self, url: str) -> None:
        self._es, self._index = AsyncElasticsearch(url), f"match-{uuid.uuid4().hex[:8]}"

    async def put(self, articles: Sequence[Article]) -> None:
        lines: list[dict[str, object]] = []
        for article in articles:
            lines.append({"index": {"_index": self._index, "_id": article.id}})
            lines.append({"title": nfc(article.title), "content": nfc(article.content)})
        answer = await self._es.bulk(operations=lines)
        assert not answer["errors"], answer["items"][0]

    async def refresh(self) -> None:
        await self._es.indices.refresh(index=self._index)

    async def search(self, query: Query) -> list[str]:
        match = {"query": nfc(query.text), "fields": ["title", "content"]}
        found = await self._es.search(index=self._index, query={"multi_match": match}, size=20)
        return [hit["_id"] for hit in found["hits"]["hits"]]

    async def close(self) -> None:
        await self._es.indices.delete(index=self._index, ignore_unavailable=True)
        await self._es.close()


@dataclass
class Figures:
    ranks: list[float] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)

    def cell(self, is_known: bool) -> str:
        took = sorted(self.took_ms)
        middle, late = (took[min(len(took) - 1, int(len(took) * share))] for share in (0.5, 0.95))
        quality = f"{sum(self.ranks) / len(self.ranks):.3f}" if is_known else "    -"
        return f"{quality}  {middle:6.1f} /{late:6.1f}"


async def fill(engine: Engine, options: argparse.Namespace) -> list[Article]:
    """Samples of what is stored, the same of each engine."""
    language = Language(options.seed)
    made = (language.article(i, options.articles) for i in range(options.articles))
    every, number, samples = max(1, options.articles // SAMPLES), 0, []
    took = 0.0
    while batch := list(itertools.islice(made, BATCH)):
        started = engine.clock()
        await engine.put(batch)
        took += engine.clock() - started
        samples += [article for i, article in enumerate(batch, number) if i % every == 0]
        number += len(batch)
    started = engine.clock()
    await engine.refresh()
    took += engine.clock() - started
    print(f"{engine.name}: {number:,} articles stored, {number / took:,.0f}/s", flush=True)
    return samples


async def measure(engine: Engine, options: argparse.Namespace) -> dict[str, Figures]:
    samples = await fill(engine, options)
    language = Language(options.seed)
    common = [folded_words(str(word))[0] for word in language.words[:20]]
    kinds = kinds_of_query(common, language.syllables)
    await engine.search(Query("khởi động"))
    figures = {}
    for name in KINDS:
        rng, found = random.Random(options.query_seed), Figures()
        for _ in range(options.queries):
            wanted = rng.choice(samples)
            query = kinds[name](rng, wanted)
            started = engine.clock()
            ids = (await engine.search(query))[:10]
            found.took_ms.append((engine.clock() - started) * 1000)
            found.ranks.append(1 / (ids.index(wanted.id) + 1) if wanted.id in ids else 0.0)
        figures[name] = found
    return figures


@asynccontextmanager
async def elasticsearch(url: str) -> AsyncIterator[str]:
    """The server that is named or a new one; "" where none can be started, which is said."""
    if url:
        yield url
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-es-"))
    try:
        try:
            server = await asyncio.to_thread(fixtures_elasticsearch.start, folder, None, 1_024)
        except fixtures_elasticsearch.Missing as exc:
            print(f"Elasticsearch is left out: it needs {exc}")
            yield ""
            return
        try:
            yield server.url
        finally:
            await asyncio.to_thread(fixtures_elasticsearch.stop, server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def main(options: argparse.Namespace) -> None:
    table: dict[str, dict[str, Figures]] = {}

    async def run(engine: Engine) -> None:
        try:
            table[engine.name] = await measure(engine, options)
        finally:
            await engine.close()

    with tempfile.TemporaryDirectory(prefix="bench-search-") as scratch:
        local = LocalStore(Path(scratch) / "articles.db")
        await run(Ours("newscrawler, SQLite", local, time.process_time))
        await run(Fts5(Path(scratch) / "fts5.db"))
        async with elasticsearch(options.elasticsearch) as url:
            if url:
                there = ElasticStore(url, index=f"bench-{uuid.uuid4().hex[:8]}")
                await run(Ours("newscrawler, Elasticsearch", there, time.perf_counter))
                await run(Match(url))
    print(
        f"\n{options.articles:,} articles, {options.queries} queries of each kind: MRR@10, ms p50 /"
        " p95 (SQLite: CPU; Elasticsearch: wall)\n"
    )
    print(" " * 25 + "".join(f"{name:>28}" for name in table))
    for kind in KINDS:
        cells = "".join(f"{of[kind].cell(is_known_item(kind)):>28}" for of in table.values())
        print(f"{kind:25}{cells}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=5_000)
    parser.add_argument("--queries", type=int, default=100, help="of each kind")
    parser.add_argument("--elasticsearch", default="", help="http://host:9200 of one that runs")
    parser.add_argument("--seed", type=int, default=11, help="of the articles")
    parser.add_argument("--query-seed", type=int, default=4042, help="of the queries")
    with cli.interruptible("Stopped; nothing is told of a part."):
        asyncio.run(main(parser.parse_args()))
