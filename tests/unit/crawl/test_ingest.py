"""The one way into the store, with a real store and sinks that note what they are told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from newscrawler.crawl.ingest import Ingest
from newscrawler.items import Article
from newscrawler.store import PutResult, open_store


class Notes:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    async def announce(self, stored: Sequence[tuple[Article, PutResult]]) -> None:
        self.told += [(article.id, result.status) for article, result in stored]

    async def gone(self, ids: Sequence[str]) -> None:
        self.told += [(article_id, "gone") for article_id in ids]

    async def close(self) -> None: ...


class Fails(Notes):
    async def announce(self, stored: Sequence[tuple[Article, PutResult]]) -> None:
        raise OSError("the broker is away")


async def test_every_sink_is_told_of_what_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, notes = open_store("", tmp_path), Notes()
    ingest = Ingest(store, sinks=[Fails(), notes])
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
    assert notes.told == [(article.id, "new"), (article.id, "updated")]
    assert "sink=Fails articles=1 error=the broker is away" in caplog.text
