"""Stored pages that many workers read again: each chunk once, whoever dies, whatever the crawl
stores meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection as Connection

from newscrawler.crawl import parse_queue
from newscrawler.crawl.ingest import Ingest
from newscrawler.crawl.parse_queue import JobAtWork, ParseQueue, ParseWorker
from newscrawler.crawl.reparse import Choice, Reparser, ReparseReport, newest
from newscrawler.frontier.types import FrontierUnavailable
from newscrawler.rawstore import READER, RawStore
from newscrawler.selectorsets.store import SelectorStore, SelectorsUnavailable
from newscrawler.store import open_store
from newscrawler.store.base import StoreUnavailable
from tests.crawl.harness import Running, Scrapy, until
from tests.crawl.small import QUIET, Queue, crawler, stored
from tests.crawl.test_reparse import NOON, Bench, page, url
from tests.fixtures_newsweb import StartNewsweb
from tests.fixtures_redis import until as soon

LEASE_MS = 300


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = open_store("", tmp_path)
    await store.open()
    yield Bench(tmp_path, store)
    await store.close()


def refs_of(bench: Bench, **choice: Any) -> list[str]:
    return newest(raw_of(bench), bench.sites, Choice(**choice))


def raw_of(bench: Bench) -> RawStore:
    return RawStore.open(str(bench.folder / "warc"), READER)


def worker(bench: Bench, queue: ParseQueue, name: str = "w1") -> ParseWorker:
    selectors = SelectorStore(None, bench.sets)

    async def refresh() -> None:
        return None

    def make() -> Reparser:
        return Reparser(raw_of(bench), Ingest(bench.store), selectors, bench.sites)

    return ParseWorker(queue, name, make, refresh, until_done=True)


async def test_chunks_are_done_and_counted(bench: Bench, r: Any) -> None:
    for number in range(1, 8):
        bench.write(number, page(number))
    queue = ParseQueue(r)
    assert await queue.fill(refs_of(bench), Choice(), 2) == 4
    with pytest.raises(JobAtWork, match="4 chunks"):
        await queue.fill(refs_of(bench), Choice(), 2)
    await asyncio.gather(*[worker(bench, queue, f"w{i}").run() for i in range(3)])
    found = await queue.progress()
    assert found.is_done and found.chunks == 4 and found.pages == 7
    assert (found.sums["pages"], found.sums["new"], found.sums["chunks"]) == (7, 7, 4)
    assert set(found.workers) == {"w0", "w1", "w2"}
    assert len(await bench.titles()) == 7
    assert await queue.fill([], Choice()) == 0  # the job before is over


@pytest.mark.parametrize("sent", [1, 2, 3])
async def test_worker_that_dies_while_it_counts_loses_no_count(
    r: Any, redis_server: str, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    """Killed before it sends the first, second, third command: the chunk is taken away with its
    counts, or it is left with none."""
    queue = ParseQueue(r)
    await queue.fill(["a:0:1"], Choice(), 1)
    chunk = await queue.take("w1")
    assert chunk is not None
    client = redis.asyncio.Redis.from_url(redis_server)
    await client.ping()
    await client.script_load(parse_queue._DONE)
    send, left = Connection.send_packed_command, [sent]

    async def dies(self: Any, *args: Any, **more: Any) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise KilledError
        await send(self, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "send_packed_command", dies)
        try:
            await ParseQueue(client).done(chunk, ReparseReport(pages=3, new=1))
        except KilledError:
            await client.connection_pool.disconnect()
    await client.aclose()
    found = await queue.progress()
    assert (found.chunks_left, found.sums) in [
        (1, {}),
        (0, {"pages": 3, "new": 1, "chunks": 1}),
    ]
    assert (found.chunks_left == 1) == (sent == 1)


class KilledError(BaseException):
    pass


async def test_chunk_of_a_silent_worker_goes_to_another_and_counts_once(
    bench: Bench, r: Any
) -> None:
    bench.write(1, page(1))
    queue = ParseQueue(r, LEASE_MS)
    await queue.fill(refs_of(bench), Choice())
    first = await queue.take("dead")
    assert first is not None and await queue.take("other") is None
    assert await queue.renew("dead", first)
    second = await soon(lambda: queue.take("other"), "the chunk of the silent worker")
    assert second == first
    assert not await queue.renew("dead", first)
    assert await queue.done(second, ReparseReport(pages=1, new=1))
    assert not await queue.done(first, ReparseReport(pages=1, new=1))
    assert (await queue.progress()).sums["pages"] == 1


async def test_chunk_at_which_workers_die_is_put_aside(r: Any) -> None:
    queue = ParseQueue(r, 1)
    await queue.fill(["a.warc.gz:0:1", "b.warc.gz:0:1"], Choice(), 1)
    given = 0
    for number in range(40):
        given += await queue.take(f"w{number}") is not None
        await asyncio.sleep(0.01)
        if (await queue.progress()).set_aside == 2:
            break
    assert given <= 2 * parse_queue.MOST_TRIES
    assert (await queue.progress()).is_done


async def test_what_a_crawl_read_from_a_newer_page_stays(bench: Bench, r: Any) -> None:
    bench.write(1, page(1, "Bản cũ"))
    queue = ParseQueue(r)
    await queue.fill(refs_of(bench), Choice())
    await worker(bench, queue).run()
    (article,) = [one async for one in bench.store.scan()]
    newer = replace(article, title="Bản mới 1", fetched=NOON + timedelta(hours=1))
    await bench.store.put([newer])
    await queue.fill(refs_of(bench), Choice())
    await worker(bench, queue).run()
    assert (await queue.progress()).sums["older"] == 1
    assert list((await bench.titles()).values()) == ["Bản mới 1"]


async def test_a_crawl_that_stores_between_reading_and_putting_wins(bench: Bench) -> None:
    bench.write(1, page(1, "Bản cũ"))
    reparser = worker(bench, ParseQueue(None))._reparser()
    real = reparser._not_older

    async def crawl_comes_first(batch: list[Any]) -> list[Any]:
        newer = replace(batch[0], title="Bản mới 1", fetched=NOON + timedelta(hours=1))
        await bench.store.put([newer])
        return await real(batch)

    reparser._not_older = crawl_comes_first  # type: ignore[method-assign]
    report = await reparser.run(Choice())
    assert report.older == 1
    assert list((await bench.titles()).values()) == ["Bản mới 1"]


async def test_pages_that_are_gone_are_counted_and_until_is_a_bound(bench: Bench, r: Any) -> None:
    bench.write(1, page(1))
    bench.write(2, page(2), fetched=NOON + timedelta(days=1))
    assert len(refs_of(bench)) == 2
    (ref,) = refs_of(bench, until=NOON + timedelta(hours=1))
    queue = ParseQueue(r)
    await queue.fill([ref, "gone-1-20260101-000001.warc.gz:0:10"], Choice())
    await worker(bench, queue).run()
    found = await queue.progress()
    assert (found.sums["new"], found.sums["missing"]) == (1, 1)
    assert list(await bench.titles()) == [url(1)]


async def test_a_fill_that_was_killed_begins_anew(r: Any) -> None:
    queue = ParseQueue(r)
    await queue.fill(["a:0:1"] * 4, Choice(), 2)
    await r.hset(parse_queue.JOB, "state", "filling")
    assert await queue.fill(["b:0:1"], Choice(), 2) == 1
    assert (await queue.progress()).chunks_left == 1
    assert await queue.cancel() == 1 and (await queue.progress()).chunks == 0
    assert await queue.take("w") is None


async def test_worker_waits_for_a_redis_that_is_away(
    bench: Bench, r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_queue, "AGAIN_S", 0.01)
    bench.write(1, page(1))
    queue = ParseQueue(r)
    await queue.fill(refs_of(bench), Choice())
    real, left = queue.take, [2]

    async def take(name: str) -> Any:
        if left[0]:
            left[0] -= 1
            raise FrontierUnavailable("Redis does not answer")
        return await real(name)

    monkeypatch.setattr(queue, "take", take)
    await worker(bench, queue).run()
    assert len(await bench.titles()) == 1


async def test_a_chunk_stays_in_hand_while_the_store_is_away(
    bench: Bench, r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_queue, "AGAIN_S", 0.2)
    bench.write(1, page(1))
    queue = ParseQueue(r, 5 * LEASE_MS)
    await queue.fill(refs_of(bench), Choice())
    first, second = worker(bench, queue), worker(bench, queue, "w2")
    gone = bench.folder / "articles.db"
    is_away, calls = [True], list[int]()
    real = bench.store.find_url

    async def find_url(url: str) -> Any:
        calls.append(1)
        if is_away[0]:
            raise StoreUnavailable(f"{gone}: disk full")
        return await real(url)

    async def sets_are_away() -> None:
        if len(calls) == 2:
            calls.append(1)
            raise SelectorsUnavailable("Redis does not answer")

    monkeypatch.setattr(bench.store, "find_url", find_url)
    first._refresh = sets_are_away
    running = [asyncio.ensure_future(one.run()) for one in (first, second)]
    # More tries than workers may die at a chunk, for longer than a lease.
    for _ in range(600):
        if len(calls) > 4 * parse_queue.MOST_TRIES:
            break
        await asyncio.sleep(0.1)
    is_away[0] = False
    await asyncio.gather(*running)
    assert len(calls) > 4 * parse_queue.MOST_TRIES
    assert first.set_aside == second.set_aside == 0 and first.chunks + second.chunks == 1
    assert len(await bench.titles()) == 1


async def test_a_worker_that_waits_with_a_chunk_can_be_ended(
    bench: Bench, r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write(1, page(1))
    queue = ParseQueue(r)
    await queue.fill(refs_of(bench), Choice())
    waits = worker(bench, queue)

    async def sets_are_away() -> None:
        waits.stop()
        raise redis.ConnectionError("no route")

    waits._refresh = sets_are_away
    await waits.run()
    assert waits.chunks == 0 and (await queue.progress()).chunks_left == 1


async def test_what_is_acknowledged_is_deleted_at_once(r: Any) -> None:
    queue = ParseQueue(r)
    await queue.fill(["a:0:1"], Choice())
    chunk = await queue.take("w")
    assert chunk is not None
    await r.config_resetstat()
    assert await queue.done(chunk, ReparseReport(pages=1))
    calls = await r.info("commandstats")
    assert calls["cmdstat_xack"]["calls"] == calls["cmdstat_xdel"]["calls"] == 1
    assert calls["cmdstat_eval"]["calls"] == 1, "with its counts, in one step"
    assert "cmdstat_multi" not in calls and calls["cmdstat_hincrby"]["calls"] == 2


# ---------------------------------------------------------------- real processes
@pytest.mark.long
def test_three_workers_beside_a_crawl_one_killed_give_what_one_reparse_gives(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=3, articles=12, **QUIET)
    scrapy = crawler(tmp_path, web, REDIS_URL=queue.url)
    first = scrapy.run("crawl", "news")
    assert first.returncode == 0, first.stderr[-2000:]

    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copytree(scrapy.data / "warc", alone / "data" / "warc")
    one = Scrapy(alone, {**scrapy.settings, "DATA_DIR": alone / "data"}).run("reparse")
    assert one.returncode == 0, one.stderr[-2000:]
    wanted = contents(alone / "data")
    assert len(wanted) > 10

    for path in [*scrapy.data.glob("articles*"), *scrapy.data.glob("index*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not stored(scrapy.data), "the articles are to come from the raw pages alone"
    filled = scrapy.run("reparse", "--queue", "--chunk", "1")
    assert filled.returncode == 0, filled.stderr[-2000:]
    beside = scrapy.start("crawl", "news", "-s", "CRAWL_FOREVER=True")
    workers: list[Running] = [
        scrapy.start("parse_worker", "--until-done", "--lease", "2") for _ in range(3)
    ]

    def some_done() -> bool:
        return bool(queue._ask(lambda frontier, client: client.hget(parse_queue.SUMS, "chunks")))

    until(some_done, "a chunk is done", 90)
    workers[0].kill()
    for running in workers[1:]:
        ended = running.wait(180)
        assert ended.returncode == 0, ended.stderr[-2000:]
    beside.kill()
    told = json.loads(scrapy.run("reparse", "--status", "--json").stdout)
    assert told["is_done"] and told["set_aside"] == 0
    assert told["sums"]["chunks"] <= told["chunks"]
    assert told["sums"]["pages"] <= told["pages"]
    found = contents(scrapy.data)
    assert found == wanted


def contents(data: Path) -> dict[str, Any]:
    return {
        one.id: (one.url, one.title, one.content, one.authors, one.published, one.keywords)
        for one in stored(data)
    }


@pytest.mark.slow
def test_wrong_words_are_wrong_usage(tmp_path: Path, newsweb: StartNewsweb) -> None:
    scrapy = crawler(tmp_path, newsweb("ip", sites=1, articles=1, **QUIET))
    for words in (
        ["reparse", "--queue", "--dry-run"],
        ["reparse", "--queue", "--chunk", "0"],
        ["parse_worker", "x"],
        ["parse_worker", "--lease", "0"],
    ):
        ended = scrapy.run(*words)
        assert ended.returncode == 2 and "Traceback" not in ended.stderr, words


@pytest.mark.slow
def test_chunks_set_aside_and_a_redis_that_is_away_are_told_by_the_exit_code(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    scrapy = crawler(tmp_path, newsweb("ip", sites=1, articles=1, **QUIET), REDIS_URL=queue.url)
    queue._ask(lambda frontier, client: client.rpush(parse_queue.ASIDE, b"refs"))
    ended = scrapy.run("parse_worker", "--until-done")
    assert ended.returncode == 1 and "1 chunks were set aside" in ended.stderr
    away = Scrapy(tmp_path, {**scrapy.settings, "REDIS_URL": "redis://127.0.0.1:1/0"})
    ended = away.run("parse_worker", "--until-done")
    assert ended.returncode == 1 and "Traceback" not in ended.stderr, ended.stderr
    assert "parse worker failed: Redis does not answer" in ended.stderr
