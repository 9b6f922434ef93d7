"""Events on a real Redis stream."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from redis.exceptions import RedisError

from newscrawler.crawl.announce import Dispatcher
from newscrawler.frontier import connect, redis_server
from newscrawler.items import Article
from newscrawler.store.events import STREAM, Event, EventStream
from newscrawler.store.sqlite import LocalStore
from tests.fixtures_redis import until

AT = datetime(2026, 8, 2, tzinfo=UTC)


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


async def events(client: Any, stream: str) -> list[dict[str, str]]:
    return [
        {text(k): text(v) for k, v in fields.items()} for _, fields in await client.xrange(stream)
    ]


def gone(name: str) -> Event:
    article = Article(id=name, url="https://a.vn/1", site="a.vn", title="Tin", content="x")
    return Event("gone", 2, AT, article)


async def test_an_event_says_what_it_is_about(r: Any) -> None:
    article = Article(
        id="a",
        url="https://a.vn/1",
        site="a.vn",
        title="Tin",
        content="x",
        published=datetime(2026, 8, 1, tzinfo=UTC),
    )
    stream = EventStream(r, "test:events")
    assert await stream.deliver([Event("new", 1, AT, article), gone("a")]) == 2
    first, second = await events(r, "test:events")
    assert first == {
        "event": "a.1", "type": "article.new", "at": "2026-08-02T00:00:00+00:00", "id": "a",
        "url": "https://a.vn/1", "site": "a.vn", "version": "1", "title": "Tin",
        "published": "2026-08-01T00:00:00+00:00",
    }  # fmt: skip
    assert (second["event"], second["type"], second["published"]) == (
        "a.2.gone",
        "article.gone",
        "",
    )


async def test_the_stream_is_read_by_a_consumer_group(r: Any) -> None:
    """What a consumer took and did not acknowledge is another one's to claim."""
    await r.xgroup_create("test:events", "papers", id="0", mkstream=True)
    await EventStream(r, "test:events").deliver([gone("a"), gone("b"), gone("c")])
    read = {"groupname": "papers", "streams": {"test:events": ">"}}
    ((_, one),) = await r.xreadgroup(consumername="one", count=2, **read)
    ((_, two),) = await r.xreadgroup(consumername="two", **read)
    assert [text(fields[b"id"]) for _, fields in one + two] == ["a", "b", "c"]
    await r.xack("test:events", "papers", one[0][0], two[0][0])
    claimed = (await r.xautoclaim("test:events", "papers", "two", 0))[1]
    assert [text(fields[b"id"]) for _, fields in claimed] == ["b"]


async def test_the_stream_does_not_grow_for_ever(r: Any) -> None:
    stream = EventStream(r, "test:events", kept=200)
    for _ in range(10):
        await stream.deliver([gone(str(i)) for i in range(200)])
    assert 200 <= await r.xlen("test:events") < 500


async def test_without_redis_nobody_is_told() -> None:
    assert await EventStream(None).deliver([gone("a")]) == 0


async def test_a_file_of_the_version_before_gets_its_outbox(tmp_path: Path) -> None:
    """What was stored before is no news; what changes from then on is."""
    path = tmp_path / "articles.db"
    store = LocalStore(path)
    article = Article(id="a", url="https://a.vn/1", site="a.vn", title="Tin", content="Một hai ba.")
    await store.put([article])
    await store.close()
    db = apsw.Connection(str(path))
    for table in ("event", "sink", "letter"):
        db.execute(f"DROP TABLE {table}")
    db.pragma("user_version", 6)
    db.close()

    store = LocalStore(path)
    try:
        await store.outbox.begin(["one"])
        await store.put([replace(article, title="Tin, sửa")])
        batch = await store.outbox.after((await store.outbox.cursors())["one"], 10)
        assert [event.id for event in batch.events] == ["a.2"]
        assert len(await store.versions("a")) == 2
    finally:
        await store.close()


async def test_events_that_everybody_was_told_are_dropped(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "articles.db")
    outbox = store.outbox
    try:
        await outbox.begin(["one", "two"])
        for title in ("Một", "Hai", "Ba"):
            await store.put(
                [Article(id="a", url="https://a.vn/1", site="a.vn", title=title, content="x")]
            )
        start = (await outbox.cursors())["one"]
        await outbox.move("one", (await outbox.after(start, 3)).position)
        await outbox.move("two", (await outbox.after(start, 2)).position)
        await outbox.tidy(["one", "two"])
        assert [e.id for e in (await outbox.after("0", 9)).events] == ["a.3"], "two waits for it"
        await outbox.move("two", (await outbox.after(start, 9)).position)
        await outbox.tidy(["one", "two"])
        assert (await outbox.after("0", 9)).events == []
    finally:
        await store.close()


async def test_a_redis_that_is_away_loses_nothing_and_blocks_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("newscrawler.crawl.announce.BACKOFF_S", 0.02)
    monkeypatch.setattr("newscrawler.crawl.announce.BACKOFF_MOST_S", 0.1)
    with tempfile.TemporaryDirectory(prefix="nc-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        client = connect(redis_server.ensure(place / "redis"), single=False)
        store = LocalStore(place / "articles.db")
        dispatcher = Dispatcher(store.outbox, {"stream": EventStream(client)})
        await dispatcher.begin()
        dispatcher.start()
        try:
            await store.put([article("a")])
            await dispatcher.drain(60)
            redis_server.stop(place / "redis")
            await store.put([article("b"), article("c")])
            await dispatcher.drain(60)
            redis_server.ensure(place / "redis")

            async def all_told() -> bool:
                with contextlib.suppress(RedisError):
                    return bool(await client.xlen(STREAM) >= 3)
                return False

            await until(all_told, "what happened meanwhile is told", 60)
            told = [fields[b"id"].decode() for _, fields in await client.xrange(STREAM)]
            assert list(dict.fromkeys(told)) == ["a", "b", "c"]
        finally:
            await dispatcher.close()
            await store.close()
            await client.aclose()
            redis_server.stop(place / "redis")


def article(name: str) -> Article:
    return Article(name, f"https://a.vn/{name}", "a.vn", f"Tin {name}", f"Nội dung {name}")
