"""article.new, article.updated and article.gone on a real Redis stream."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from newscrawler.items import Article
from newscrawler.store.base import PutResult
from newscrawler.store.events import EventStream


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


async def events(client: Any, stream: str) -> list[dict[str, str]]:
    return [
        {text(k): text(v) for k, v in fields.items()} for _, fields in await client.xrange(stream)
    ]


async def test_what_changed_is_told_once(r: Any) -> None:
    one = Article(
        id="a",
        url="https://a.vn/1",
        site="a.vn",
        title="Tin",
        content="x",
        published=datetime(2026, 8, 1, tzinfo=UTC),
    )
    other = Article(id="b", url="https://a.vn/2", site="a.vn", title="", content="x")
    stream = EventStream(r, "test:events")
    told = await stream.announce(
        [
            (one, PutResult("a", "new", 1)),
            (other, PutResult("b", "unchanged", 3)),
            (other, PutResult("b", "updated", 4)),
        ]
    )
    assert told == 2
    assert await stream.gone(["a"]) == 1
    first, second, third = await events(r, "test:events")
    assert first == {
        "type": "article.new", "id": "a", "url": "https://a.vn/1", "site": "a.vn", "version": "1", "title": "Tin",
        "published": "2026-08-01T00:00:00+00:00",
    }  # fmt: skip
    assert (second["type"], second["version"], second["published"]) == ("article.updated", "4", "")
    assert third == {"type": "article.gone", "id": "a"}


async def test_the_stream_does_not_grow_for_ever(r: Any) -> None:
    stream = EventStream(r, "test:events", kept=200)
    await stream.gone([str(i) for i in range(2_000)])
    assert 200 <= await r.xlen("test:events") < 500


async def test_without_redis_nobody_is_told() -> None:
    assert await EventStream(None).gone(["a"]) == 0
