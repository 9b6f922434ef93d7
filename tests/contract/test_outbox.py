"""The outbox of both stores: what an article's change leaves there, for whom, and in which order."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from newscrawler.crawl.announce import Dispatcher
from newscrawler.store.base import ArticleStore
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.events import DeadLetter, Event, EventsRefused, Outbox
from tests.contract.articles import article, article_id
from tests.fixtures_redis import until


@pytest.fixture
def outbox(store: ArticleStore) -> Outbox:
    found: Outbox = store.outbox  # type: ignore[attr-defined]
    return found


async def told(outbox: Outbox, sink: str = "one", limit: int = 100) -> list[str]:
    """Reads on for a sink to the end, as the dispatcher does."""
    position = (await outbox.cursors())[sink]
    events: list[Event] = []
    while True:
        batch = await outbox.after(position, limit)
        position = batch.position
        if not batch.events:
            break
        events += batch.events
    await outbox.move(sink, position)
    return [f"{e.kind} {e.version} {e.article.title}" for e in events]


async def test_each_change_is_an_event_with_the_article_of_that_version(
    store: ArticleStore, outbox: Outbox
) -> None:
    await store.put([article("old", "Trước", "Chưa ai theo dõi.")])
    await outbox.begin(["one"])
    await store.put([article("a", "Một", "Bão vào bờ."), article("b", "Khác", "Giá vàng tăng.")])
    await store.put([article("a", "Hai", "Bão đã vào bờ.")])
    await store.put([article("a", "Hai", "Bão đã vào bờ.")])  # unchanged: no event
    await store.mark_gone([article_id("a")])
    await store.mark_gone([article_id("a")])  # is gone: no event
    await store.put([article("a", "Ba", "Bão tan.")])
    events = await told(outbox, limit=2)
    assert [e for e in events if "Khác" not in e] == [
        "new 1 Một", "updated 2 Hai", "gone 2 Hai", "updated 3 Ba",
    ]  # fmt: skip
    assert "new 1 Khác" in events and len(events) == 5
    assert await told(outbox) == [], "the cursor stands behind them"


async def test_ids_are_the_same_each_time(store: ArticleStore, outbox: Outbox) -> None:
    await outbox.begin(["one"])
    await store.put([article("a", "Một", "Bão vào bờ.")])
    await store.mark_gone([article_id("a")])
    start = (await outbox.cursors())["one"]
    first, again = await outbox.after(start, 10), await outbox.after(start, 10)
    ids = [e.id for e in first.events]
    assert ids == [f"{article_id('a')}.1.gone"] or ids == [
        f"{article_id('a')}.1",
        f"{article_id('a')}.1.gone",
    ]
    assert len(ids) == 2 and ids == [e.id for e in again.events]
    assert first.events[0].plain()["type"] == "article.new"
    assert first.events[0].plain()["url"].startswith("https://")


async def test_a_cursor_is_durable_and_a_new_sink_begins_now(
    store: ArticleStore, outbox: Outbox, twin: ArticleStore
) -> None:
    await outbox.begin(["one"])
    await store.put([article("a", "Một", "Bão vào bờ.")])
    other: Outbox = twin.outbox  # type: ignore[attr-defined]
    await other.begin(["one", "two"])
    assert await told(other, "two") == []
    assert await told(other, "one") == ["new 1 Một"]
    assert await told(outbox, "one") == []
    await store.put([article("b", "Hai", "Giá vàng tăng mạnh.")])
    assert await told(other, "two") == ["new 1 Hai"]


async def test_one_process_delivers_until_it_ends(
    store: ArticleStore, outbox: Outbox, twin: ArticleStore
) -> None:
    other: Outbox = twin.outbox  # type: ignore[attr-defined]
    assert await outbox.hold()
    assert await outbox.hold()
    assert not await other.hold()
    await outbox.close()
    assert await other.hold()


class Sink:
    """Keeps what it is told; refuses, or is away, as it is asked to."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.refuses: set[str] = set()
        self.away = 0

    async def deliver(self, events: Sequence[Event]) -> None:
        if self.away:
            self.away -= 1
            raise ConnectionError("away")
        bad = {e.id: "too odd" for e in events if e.article.title in self.refuses}
        self.titles += [e.article.title for e in events if e.id not in bad]
        if bad:
            raise EventsRefused(bad)

    async def close(self) -> None:
        self.titles.append("closed")


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    yield Sink()


async def test_what_a_sink_refuses_is_kept_as_a_dead_letter_and_can_be_read(
    store: ArticleStore, outbox: Outbox, sink: Sink
) -> None:
    sink.refuses = {"Hai"}
    dispatcher = Dispatcher(outbox, {"one": sink})
    await dispatcher.begin()
    dispatcher.start()
    await store.put([article("a", "Một", "Bão vào bờ."), article("b", "Hai", "Giá vàng tăng.")])
    await store.put([article("c", "Ba", "Đội tuyển thắng trận.")])
    await store.put([article("b", "Hai, sửa", "Giá vàng giảm.")])
    await dispatcher.drain(60)
    assert sorted(sink.titles) == ["Ba", "Hai, sửa", "Một"]
    (letter,) = await outbox.dead_letters()
    assert (letter.sink, letter.event_id, letter.reason) == (
        "one", f"{article_id('b')}.1", "too odd",
    )  # fmt: skip
    event = await outbox.read(letter)
    assert event is not None and event.article.title == "Hai", "as it was then"
    await outbox.forget([letter])
    assert await outbox.dead_letters() == []
    lost: Any = DeadLetter("one", "0" * 32, 1, "new", 1, "why", 1)
    assert await outbox.read(lost) is None
    await dispatcher.close()
    assert sink.titles[-1] == "closed"


async def test_a_sink_that_is_away_holds_up_nobody(
    store: ArticleStore, outbox: Outbox, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newscrawler.crawl.announce.BACKOFF_S", 0.01)
    other = Sink()
    sink.away = 3
    dispatcher = Dispatcher(outbox, {"one": sink, "two": other})
    await dispatcher.begin()
    await store.put([article("a", "Một", "Bão vào bờ.")])
    dispatcher.start()
    await until(lambda: sink.titles and other.titles, "both are told", 60)
    assert sink.titles == other.titles == ["Một"]
    await dispatcher.close()


async def test_a_copy_of_the_index_tells_nothing_that_is_old_and_loses_nothing(
    elasticsearch_server: str,
) -> None:
    """A new index has sequence numbers of its own."""
    old = datetime(2026, 8, 1, tzinfo=UTC)
    clock = {"ms": round(old.timestamp() * 1000)}
    store = ElasticStore(
        elasticsearch_server, index=f"t{uuid.uuid4().hex[:12]}", now_ms=lambda: clock["ms"]
    )
    outbox = store.outbox
    try:
        await outbox.begin(["one"])
        await store.put([article("a", "Một", "Bão vào bờ."), article("b", "Hai", "Giá vàng.")])
        assert len(await told(outbox)) == 2
        clock["ms"] += 3_600_000
        await store.put([article("c", "Ba", "Trận đấu tối nay.")])
        assert await told(outbox) == ["new 1 Ba"]
        clock["ms"] += 3_600_000
        await store.put([article("a", "Bốn", "Bão tan.")])
        await store.put([article("a", "Năm", "Bão tan rồi.")])
        await store.reindex()
        again = "new 1 Ba"  # within ten minutes of the last that was told
        assert await told(outbox, limit=1) == [again, "updated 2 Bốn", "updated 3 Năm"]
        await store.put([article("b", "Sáu", "Giá vàng giảm.")])
        await store.mark_gone([article_id("b")])
        assert await told(outbox) == ["updated 2 Sáu", "gone 2 Sáu"]
        assert await told(outbox) == []
    finally:
        await store.close()
