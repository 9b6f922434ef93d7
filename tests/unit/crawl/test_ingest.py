"""The one way into the store, with a real store and sinks that note what they are told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from newscrawler.api.data import copies_of, moved_to
from newscrawler.crawl.announce import Direct
from newscrawler.crawl.ingest import Ingest
from newscrawler.items import Article, Kind, Link, Outcome, Visit
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


TEXT = " ".join(
    f"Đoạn {n} kể về cây cầu thứ {n * n} của thành phố và người dân ở đó." for n in range(40)
)
OTHER = " ".join(
    f"Trận đấu {n} kết thúc với {n * 7} khán giả trên sân vận động." for n in range(40)
)


@pytest.mark.parametrize(
    ("status", "text", "site", "is_merged"),
    [
        (301, TEXT, "a.vn", True),
        (308, TEXT + " Thêm một câu sau khi đổi tên.", "a.vn", True),
        (302, TEXT, "a.vn", False),
        (301, OTHER, "a.vn", False),
        (301, TEXT, "b.vn", False),
        (301, "", "a.vn", False),  # the target is not stored: a home page, or not yet
    ],
)
async def test_a_renamed_article_has_one_address_by_its_text(
    tmp_path: Path, status: int, text: str, site: str, is_merged: bool
) -> None:
    store, notes = open_store("", tmp_path), Notes()
    ingest = Ingest(store, announcer=Direct(store, {"notes": notes}))
    old, new = ("https://a.vn/cu", b"1" * 16), ("https://a.vn/moi", b"2" * 16)
    stored = [Article(id=old[1].hex(), url=old[0], site="a.vn", title="Tin", content=TEXT)]
    if text:
        stored.append(Article(id=new[1].hex(), url=new[0], site=site, title="Tin", content=text))
    lease: Any = SimpleNamespace(url_id=old[1], digest=b"d" * 16)
    visit = Visit(old[0], Outcome.REDIRECTED, status=status, lease=lease, next_visit_ms=5)
    visit.links = [Link(*new, "a.vn", Kind.ARTICLE)]
    try:
        await ingest.put_all(stored)
        told = len(notes.told)
        await ingest.note_moved(visit)
        await ingest.note_moved(visit)  # again, as after a crash
        current = {article.id async for article in store.scan()}
        assert current == {a.id for a in stored} - ({old[1].hex()} if is_merged else set())
        assert (visit.next_visit_ms, len(notes.told) - told) == ((None, 1) if is_merged else (5, 0))
        found = await store.get(old[1].hex())
        assert found is not None
        where = moved_to(found, await copies_of(found, store))
        assert (where.url if where else "") == (new[0] if is_merged else "")
    finally:
        await store.close()
