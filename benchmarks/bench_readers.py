"""Searches a second by one reader and by many of one process, and what holds them back.

    python -m benchmarks.bench_readers FOLDER --queries 200        FOLDER: of bench_search --keep

Throughput of threads that search one SQLite store without a pause, beside the cores that they could
use: the same number of processes with an endless loop each. ``held``: seconds of CPU a search that
run under the interpreter's lock (all but the engine's), of which only one thread can spend at once.
Then processes with one reader each.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import threading
import time
from pathlib import Path

from benchmarks.bench_search import Language, kinds_of_query
from newscrawler.items import Article
from newscrawler.store.base import Query
from newscrawler.store.fold import folded_words
from newscrawler.store.fulltext.folder import View
from newscrawler.store.sqlite import LocalStore
from newscrawler.store.sqlite.job import index_of
from newscrawler.store.sqlite.read import StoreReader
from newscrawler.store.sqlite.schema import connect

KINDS = (
    "title, facets",
    "title, one edit",
    "half the title",
    "sentence of a text",
    "common word, facets",
)


async def queries_of(path: Path, seed: int, many: int) -> list[Query]:
    language = Language(seed)
    store = LocalStore(path)
    samples: list[Article] = []
    try:
        async for article in store.scan():
            samples.append(article)
            if len(samples) == 500:
                break
    finally:
        await store.close()
    common = [folded_words(str(word))[0] for word in language.words[:20]]
    kinds, rng = kinds_of_query(common, language.syllables), random.Random(seed)
    return [kinds[KINDS[i % len(KINDS)]](rng, rng.choice(samples)) for i in range(many)]


def in_engine() -> list[float]:
    """Seconds of CPU inside of the engine from now on, of all threads, which hold no lock."""
    spent = [0.0]
    guard = threading.Lock()
    for name in ("count", "best", "best_and_count", "aggregate"):

        def counted(
            view: View, *arguments: object, of: object = getattr(View, name), **named: object
        ) -> object:
            started = time.thread_time()
            found = of(view, *arguments, **named)  # type: ignore[operator]
            with guard:
                spent[0] += time.thread_time() - started
            return found

        setattr(View, name, counted)
    return spent


def searches(path: Path, queries: list[Query], readers: int) -> tuple[float, float]:
    """Searches a second and seconds of CPU each."""
    index = index_of(path)
    made = [StoreReader(connect(path, create=False), index) for _ in range(readers)]
    started, used = time.perf_counter(), time.process_time()

    def work(place: int) -> None:
        for query in queries[place::readers]:
            made[place].search(query)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - started, time.process_time() - used
    index.close()
    return len(queries) / wall, cpu / len(queries)


def _in_process(job: tuple[Path, list[Query], int, float]) -> tuple[float, float]:
    """When it was done, and the seconds of CPU that it took."""
    path, queries, rounds, start = job
    searches(path, queries[:5], 1)
    time.sleep(max(0.0, start - time.time()))
    used = time.process_time()
    for _ in range(rounds):
        searches(path, queries, 1)
    return time.time(), time.process_time() - used


def in_processes(path: Path, queries: list[Query], processes: int) -> tuple[float, float]:
    """As ``searches``, by so many processes with one reader each (`scrapy serve --processes`)."""
    start = time.time() + 3.0  # until all of them have opened the store
    jobs = [(path, queries, 1, start) for _ in range(processes)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        done = pool.map(_in_process, jobs, chunksize=1)
    wall = max(at for at, _ in done) - start
    many = len(queries) * processes
    return many / wall, sum(used for _, used in done) / many


def spin(until: float) -> float:
    while time.time() < until:
        pass
    return time.process_time()


def cores(processes: int, seconds: float = 3.0) -> float:
    with multiprocessing.Pool(processes) as pool:
        until = time.time() + seconds
        return sum(pool.map(spin, [until] * processes, chunksize=1)) / seconds


def main(options: argparse.Namespace) -> None:
    path = Path(options.folder) / "articles.db"
    queries = asyncio.run(queries_of(path, options.seed, options.queries))
    searches(path, queries[:20], 1)
    spent = in_engine()
    base = 0.0
    for readers in options.readers:
        spent[0] = 0.0
        rate, cpu = searches(path, queries, readers)
        held = cpu - spent[0] / len(queries)
        base = base or rate
        print(
            f"{readers:3} readers: {rate:6.1f}/s, {rate / base:.2f} x one; {cpu * 1000:.1f} ms CPU a"
            f" search, {held * 1000:.1f} of them held; {cores(min(readers, 16)):.2f} cores to be had",
            flush=True,
        )
    for processes in options.processes:
        rate, cpu = in_processes(path, queries, processes)
        print(
            f"{processes:3} processes: {rate:6.1f}/s; {cpu * 1000:.1f} ms CPU a search;"
            f" {cores(min(processes, 16)):.2f} cores to be had",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 2, 4, 16])
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--seed", type=int, default=11)
    main(parser.parse_args())
