"""Reading in a process of its own: the same result as here, and hostile pages end nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from newscrawler.crawl.parse_process import Html, ParseProcesses, Task, Unreadable, read
from newscrawler.discovery.feeds import Feed
from newscrawler.discovery.sitemaps import Sitemap
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import Kind
from tests.patience import Deadline, patient

PAGE = (
    '<html><head><meta name="robots" content="noarchive"><base href="https://a.vn/x/">'
    '<title>Mưa lớn ở Huế</title></head><body><h1 class="t">Mưa lớn ở Huế</h1>'
    '<a href="1.html">một</a><a href="2.html" rel="nofollow">hai</a>'
    f'<div class="c">{"".join(f"<p>{n} Nước sông Hương dâng cao, người dân được đưa đến nơi an toàn.</p>" for n in range(9))}'
    "</div></body></html>"
).encode()
SET = SelectorSet.from_dict(
    {
        "domain": "a.vn",
        "version": 3,
        "state": "active",
        "variants": [
            {
                "template": "t",
                "fields": {"title": [{"css": "h1.t"}], "content": {"root": ["div.c"]}},
            }
        ],
        "provenance": {"made_by": "person"},
    }
)


def task(body: bytes, kind: Kind = Kind.ARTICLE, **more: object) -> Task:
    context = PageContext(
        site_name="A", language="vi", zone="+07:00", fetched=datetime(2026, 11, 21, tzinfo=UTC)
    )
    return Task(body, "https://a.vn/bai-1.html", kind, "text/html", "vi", context=context, **more)  # type: ignore[arg-type]


@pytest.fixture(params=[0, 1, 2], ids=["here", "one process", "two processes"])
async def reader(
    request: pytest.FixtureRequest, warm_processes: None
) -> AsyncIterator[ParseProcesses]:
    reader = ParseProcesses(request.param)
    await reader.start()
    yield reader
    await reader.close()


async def test_a_page_reads_alike_here_and_there(reader: ParseProcesses) -> None:
    found = await reader.read(task(PAGE, selectors=reader.packed(SET)))
    assert isinstance(found, Html)
    assert found == read(task(PAGE, selectors=reader.packed(SET)))
    assert found.robots == {"noarchive"}
    assert found.base_url == "https://a.vn/x/"
    assert (found.hrefs, found.nofollow) == (["1.html"], 1)
    assert found.extraction is not None
    assert found.extraction.selector_version == "a.vn@3"
    assert found.extraction.title.value == "Mưa lớn ở Huế"


async def test_only_what_is_asked_and_allowed_is_read(reader: ParseProcesses) -> None:
    links_only = task(PAGE)
    links_only.context = None
    found = await reader.read(links_only)
    assert isinstance(found, Html)
    assert found.extraction is None
    assert found.hrefs
    found = await reader.read(task(PAGE, robots=frozenset({"noindex", "nofollow"})))
    assert isinstance(found, Html)
    assert (found.extraction, list(found.hrefs), found.nofollow) == (None, [], 0)


async def test_feeds_and_sitemaps(reader: ParseProcesses) -> None:
    feed = await reader.read(
        task(b"<rss><channel><item><link>https://a.vn/1</link></item></channel></rss>", Kind.FEED)
    )
    assert isinstance(feed, Feed)
    assert [entry.url for entry in feed.entries] == ["https://a.vn/1"]
    sitemap = await reader.read(
        task(b"<urlset><url><loc>https://a.vn/2</loc></url></urlset>", Kind.SITEMAP)
    )
    assert isinstance(sitemap, Sitemap)
    assert [entry.url for entry in sitemap.entries] == ["https://a.vn/2"]


@pytest.mark.parametrize(
    "hostile",
    [
        b"<p>" + b"<div>" * 150_000 + b"x",
        b"<b " + b" ".join(b"a%d=''" % n for n in range(60_000)) + b">x",
        b"".join(b"<b id=%d><div>" % n for n in range(300)) + b"</b>" * 4_100,
    ],
    ids=["nesting", "attributes", "formatting"],
)
async def test_a_hostile_page_costs_a_process_at_most(warm_processes: None, hostile: bytes) -> None:
    reader = ParseProcesses(1)
    try:
        found = await reader.read(task(b"<html><body>" + hostile + PAGE))
        assert isinstance(found, Html)
        assert "1.html" in found.hrefs
        found = await reader.read(task(PAGE))
        assert isinstance(found, Html)
    finally:
        await reader.close()


@pytest.mark.long
async def test_a_page_that_needs_too_much_memory_is_unreadable_and_the_next_is_read() -> None:
    """What a page takes is bounded, so that one of them does not take the machine's
    memory from the crawl."""
    reader = ParseProcesses(1, memory_bytes=250_000_000)
    try:
        with pytest.raises(Unreadable, match="more memory than its 250 MB"):
            await reader.read(task(b"<html><body>" + b"nhieu chu " * 10_000_000))
        found = await reader.read(task(PAGE))
        assert isinstance(found, Html) and found.extraction is not None
    finally:
        await reader.close()


async def test_a_set_is_packed_once_and_again_when_it_is_another(reader: ParseProcesses) -> None:
    assert reader.packed(SET) is reader.packed(SET)
    other = SelectorSet.from_dict({**SET.to_dict(), "version": 4})
    assert reader.packed(other) != reader.packed(SET)


async def test_it_is_ready_by_itself_and_says_when_little_waits(reader: ParseProcesses) -> None:
    assert await asyncio.wait_for(_ready(reader), 30)
    assert reader.waiting == 0
    lows: list[int] = []
    reader.call_at(1, lambda: lows.append(reader.waiting))
    await asyncio.gather(*(reader.read(task(PAGE)) for _ in range(4)))
    is_elsewhere = bool(reader.pids)
    assert bool(lows) == is_elsewhere and max(lows, default=0) <= 1
    reader.call_at(-1, lambda: lows.append(99))
    await reader.read(task(PAGE))
    assert 99 not in lows


async def test_pages_behind_a_process_that_hangs_are_read_by_another(warm_processes: None) -> None:
    reader = ParseProcesses(2)
    await reader.start()
    assert await asyncio.wait_for(_ready(reader), patient(30))
    pids = list(reader.pids)
    hangs = pids[0]
    assert hangs is not None
    os.kill(hangs, signal.SIGSTOP)
    reads = [asyncio.ensure_future(reader.read(task(PAGE))) for _ in range(12)]
    try:
        limit = Deadline(12)
        while sum(read.done() for read in reads) < len(reads) - 1:
            assert not limit.is_over(), "pages wait behind the one that hangs"
            await asyncio.sleep(0.01)
        assert reader.pids == pids, "its process was ended first"
        assert reader.waiting == 1
    finally:
        os.kill(hangs, signal.SIGCONT)
    assert {type(found) for found in await asyncio.gather(*reads)} == {Html}
    assert reader.waiting == 0
    await reader.close()


async def _ready(reader: ParseProcesses) -> bool:
    while not reader.is_ready:  # noqa: ASYNC110 - a poll with a deadline
        await asyncio.sleep(0.01)
    return True
