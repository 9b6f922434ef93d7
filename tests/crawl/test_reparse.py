"""Stored raw pages once more through extraction, into a real article store; no site is asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest_asyncio

from newscrawler.crawl.announce import Dispatcher
from newscrawler.crawl.ingest import Ingest
from newscrawler.crawl.reparse import Choice, Reparser, ReparseReport
from newscrawler.discovery.sites import Sites
from newscrawler.rawstore import READER, RawStore
from newscrawler.selectorsets.store import SelectorStore
from newscrawler.store import open_store
from newscrawler.store.base import ArticleStore
from newscrawler.store.events import STREAM, EventStream

NOON = datetime(2026, 3, 4, 5, 0, tzinfo=UTC)
SENTENCE = "Sáng nay đoàn công tác đã kiểm tra tiến độ thi công tuyến đường số {n} và ghi nhận nhiều chuyển biến tích cực. "


def page(
    number: int, headline: str = "Đoàn công tác kiểm tra tiến độ tuyến đường", shown: str = ""
) -> bytes:
    """An article; ``shown`` stands in a box that only a selector set would take
    for the headline."""
    text = "".join(
        f"<p>{SENTENCE.format(n=number + i)}Các đơn vị tiếp tục khẩn trương hoàn thành.</p>"
        for i in range(8)
    )
    return (
        f"<!doctype html><html lang=vi><head><title>{headline} {number}</title>"
        f'<meta property="og:title" content="{headline} {number}"><meta property="og:type" content="article">'
        f'<meta property="article:published_time" content="2026-03-04T10:0{number}:00+07:00"></head>'
        f'<body><h1>{headline} {number}</h1><div class="shown">{shown or headline} {number}</div>'
        f'<div class="body">{text}</div></body></html>'
    ).encode()


def url(number: int, host: str = "a.example") -> str:
    return f"https://{host}/tin-tuc/doan-cong-tac-{number}.html"


class Bench:
    def __init__(self, folder: Path, store: ArticleStore) -> None:
        self.folder, self.store = folder, store
        self.redis: Any = None  # who hears of what is stored; None: nobody
        self.telling: Dispatcher | None = None
        self.sites = Sites().for_urls([url(1), url(1, "b.example")])
        self.sets = folder / "selectors"
        self.sets.mkdir()

    def write(
        self,
        number: int,
        body: bytes,
        host: str = "a.example",
        fetched: datetime = NOON,
        worker: str = "w1",
    ) -> None:
        raw = RawStore.open(str(self.folder / "warc"), worker)
        raw.write(
            url(number, host), body, [(b"Content-Type", b"text/html; charset=utf-8")], 200, fetched
        )
        raw.close()

    def select_title(self, css: str) -> None:
        fields = {"title": [{"css": css}], "content": {"root": ["div.body"], "exclude": []}}
        document = {
            "domain": "a.example",
            "version": 1,
            "state": "active",
            "variants": [{"template": "article", "fields": fields}],
        }
        document["provenance"] = {"made_by": "person"}
        (self.sets / "a.example.json").write_text(json.dumps(document))

    async def reparse(self, dry_run: bool = False, **choice: Any) -> ReparseReport:
        raw = RawStore.open(str(self.folder / "warc"), READER)
        selectors = SelectorStore(None, self.sets)
        assert not selectors.shipped_errors
        announcer = self.announcer()
        ingest = Ingest(self.store, announcer=announcer)
        report = await Reparser(raw, ingest, selectors, self.sites, dry_run=dry_run).run(
            Choice(**choice)
        )
        await announcer.drain(60)
        return report

    def announcer(self) -> Dispatcher:
        if self.telling is None:
            self.telling = Dispatcher(
                self.store.outbox,  # type: ignore[attr-defined]
                {"stream": EventStream(self.redis)},
            )
            self.telling.start()
        return self.telling

    async def titles(self) -> dict[str, str]:
        return {article.url: article.title async for article in self.store.scan()}


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = open_store("", tmp_path)
    await store.open()
    bench = Bench(tmp_path, store)
    yield bench
    if bench.telling is not None:
        await bench.telling.close()
    await store.close()


async def test_raw_pages_become_articles_once(bench: Bench) -> None:
    for number in range(3):
        bench.write(number, page(number))
    first = await bench.reparse()
    assert (first.pages, first.new, first.changed, first.not_article) == (3, 3, 0, 0)
    article = await bench.store.find_url(url(1))
    assert article is not None and article.raw_ref
    assert article.title == "Đoàn công tác kiểm tra tiến độ tuyến đường 1"
    assert article.published is not None and article.published.minute == 1
    again = await bench.reparse()
    assert (again.pages, again.new, again.changed, again.unchanged) == (3, 0, 0, 3)
    assert len(await bench.store.versions(article.id)) == 1


async def test_what_makes_no_version_is_no_change(bench: Bench) -> None:
    """Stored before there were credits: the store has nothing to write, and the report does
    not say otherwise."""
    bench.write(0, page(0).replace(b"</h1>", b'</h1><span class="author">Reuters</span>'))
    await bench.reparse()
    (stored,) = [article async for article in bench.store.scan()]
    assert stored.credits == ["Reuters"]
    await bench.store.mark_gone([stored.id])
    await bench.store.put([replace(stored, credits=[])])  # comes back as it is given
    (stored,) = [article async for article in bench.store.scan()]
    assert stored.credits == []
    again = await bench.reparse()
    assert (again.changed, again.unchanged, dict(again.fields)) == (0, 1, {})
    await bench.store.put([replace(stored, content=stored.content + "\n\nThêm một đoạn.")])
    changed = await bench.reparse()
    assert (changed.changed, dict(changed.fields)) == (1, {"content": 1, "credits": 1})


async def test_a_new_selector_set_changes_exactly_its_field(bench: Bench) -> None:
    for number in range(2):
        bench.write(number, page(number, shown="Tiêu đề khác hẳn của bài báo"))
    bench.select_title("h1")
    await bench.reparse()
    bench.select_title("div.shown")
    dry = await bench.reparse(dry_run=True)
    assert (dry.changed, dict(dry.fields)) == (2, {"title": 2})
    assert "khác hẳn" not in str(await bench.titles())
    real = await bench.reparse()
    assert (real.changed, dict(real.fields)) == (2, {"title": 2})
    assert (await bench.titles())[url(0)] == "Tiêu đề khác hẳn của bài báo 0"
    article = await bench.store.find_url(url(0))
    assert article is not None
    assert [version.version for version in await bench.store.versions(article.id)] == [1, 2]


async def test_an_older_page_does_not_undo_a_newer_one(bench: Bench) -> None:
    bench.write(1, page(1, "Bản mới"), fetched=NOON + timedelta(hours=1), worker="a")
    bench.write(1, page(1, "Bản cũ"), fetched=NOON, worker="b")
    report = await bench.reparse()
    assert report.pages == 1
    assert await bench.titles() == {url(1): "Bản mới 1"}


async def test_an_article_that_extraction_no_longer_sees_stays(bench: Bench) -> None:
    bench.write(1, page(1))
    await bench.reparse()
    bench.write(
        1,
        b"<!doctype html><html><body><a href=/>Trang chu</a></body></html>",
        fetched=NOON + timedelta(hours=1),
        worker="w2",
    )
    report = await bench.reparse()
    assert (report.not_article, report.lost) == (1, 1)
    assert len(await bench.titles()) == 1


async def test_pages_are_chosen_by_site_time_and_number(bench: Bench) -> None:
    for number in range(3):
        bench.write(number, page(number), fetched=NOON + timedelta(hours=number))
    bench.write(1, page(1), host="b.example")
    bench.write(1, page(1), host="gone.example")
    assert (await bench.reparse(dry_run=True)).offsite == 1
    assert (await bench.reparse(dry_run=True, site="b.example")).pages == 1
    assert (
        await bench.reparse(dry_run=True, site="a.example", since=NOON + timedelta(hours=1))
    ).pages == 2
    assert (await bench.reparse(dry_run=True, limit=2)).pages == 2
    assert await bench.titles() == {}


async def test_what_is_read_again_is_announced(bench: Bench, r: Any) -> None:
    """Followers of the event stream hear of a repair as of the crawl: the articles are
    stored by the same way."""
    bench.redis = r
    for number in range(2):
        bench.write(number, page(number, shown="Tiêu đề khác hẳn của bài báo"))
    bench.select_title("h1")

    async def told() -> list[tuple[bytes, bytes, bytes]]:
        events = [event for _, event in await r.xrange(STREAM)]
        return sorted((e[b"type"], e[b"url"], e[b"version"]) for e in events)

    await bench.reparse(dry_run=True)
    assert await told() == [], "a dry run stores nothing"
    await bench.reparse()
    new = [(b"article.new", url(n).encode(), b"1") for n in range(2)]
    assert await told() == new
    await bench.reparse()
    assert await told() == new, "what is unchanged is no news"
    bench.select_title("div.shown")
    await bench.reparse()
    assert await told() == [*new, *[(b"article.updated", url(n).encode(), b"2") for n in range(2)]]
