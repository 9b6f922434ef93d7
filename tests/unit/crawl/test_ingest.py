"""The one way into the store, with a real store and sinks that note what they are told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from newscrawler.crawl.announce import Direct
from newscrawler.crawl.ingest import Ingest
from newscrawler.items import Article
from newscrawler.store import open_store
from newscrawler.store.events import Event


class Notes:
    def __init__(self) -> None:
        self.told: list[str] = []

    async def deliver(self, events: Sequence[Event]) -> None:
        self.told += [event.id for event in events]

    async def close(self) -> None: ...


class Fails(Notes):
    async def deliver(self, events: Sequence[Event]) -> None:
        raise OSError("the broker is away")


async def test_every_sink_is_told_of_what_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, notes = open_store("", tmp_path), Notes()
    # Of a store without an outbox: the dispatcher has tests of its own (tests/contract).
    ingest = Ingest(store, announcer=Direct(store, {"fails": Fails(), "notes": notes}))
    article = Article(
        id="a" * 32,
        url="https://a.vn/1",
        site="a.vn",
        title="Tin",
        content="Nội dung của bài",
        fetched=datetime(2026, 8, 1, tzinfo=UTC),
    )
    try:
        await ingest.put_all([article])
        await ingest.put_all([article])
        article.content = "Nội dung khác"
        await ingest.put_all([article])
    finally:
        await store.close()
    assert notes.told == [f"{article.id}.1", f"{article.id}.2"]
    assert "sink=fails events=1 error=the broker is away" in caplog.text
