"""What a process that a hostile page took over may answer: values, nothing that runs."""

from __future__ import annotations

import asyncio
import os
import pickle
import pickletools
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from newscrawler.crawl import answers
from newscrawler.crawl.parse_process import Html, Task, read
from newscrawler.crawl.processes import Child, ChildDied
from newscrawler.discovery.feeds import parse_feed
from newscrawler.discovery.sitemaps import parse_sitemap
from newscrawler.extraction.context import PageContext
from newscrawler.items import Article, FieldValue, Kind, Outcome
from newscrawler.store.base import PutResult

HERE = "tests.unit.crawl.test_answers"
MOMENT = datetime(2026, 7, 1, 8, 30, tzinfo=UTC)
PAGE = b"""<html lang=vi><head><title>Gi\xc3\xa1 v\xc3\xa0ng t\xc4\x83ng</title>
<meta property="og:title" content="Gi\xc3\xa1 v\xc3\xa0ng t\xc4\x83ng"><meta name=author content="An">
<meta property="article:published_time" content="2026-07-01T08:30:00+07:00"></head>
<body><article><h1>Gi\xc3\xa1 v\xc3\xa0ng t\xc4\x83ng</h1><p>M\xe1\xbb\x97i l\xc6\xb0\xe1\xbb\xa3ng
t\xc4\x83ng m\xe1\xbb\x99t tri\xe1\xbb\x87u \xc4\x91\xe1\xbb\x93ng so v\xe1\xbb\x9bi h\xc3\xb4m
qua.</p><a href=/2>2</a></article></body></html>"""
FEED = b"""<rss version="2.0"><channel><item><title>x</title><link>https://a.vn/1</link>
<pubDate>Wed, 01 Jul 2026 08:30:00 +0700</pubDate></item></channel></rss>"""
SITEMAP = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>
<loc>https://a.vn/1</loc><lastmod>2026-07-01</lastmod></url></urlset>"""


class Call:
    """Pickles as a call of ``function``."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.what = function, args

    def __reduce__(self) -> Any:
        return self.what


def test_all_that_our_processes_answer_is_read() -> None:
    context = PageContext(fetched=MOMENT)
    page = read(Task(PAGE, "https://a.vn/1", Kind.ARTICLE, "text/html", context=context))
    assert isinstance(page, Html) and page.extraction is not None and page.extraction.title.value
    feed, sitemap = parse_feed(FEED, "https://a.vn/f"), parse_sitemap(SITEMAP, "https://a.vn/s")
    assert feed.entries and sitemap.entries
    article = Article("00" * 16, "https://a.vn/1", "a.vn", "Tên", "Nội dung", published=MOMENT)
    value = FieldValue(MOMENT, "time")
    for one in (
        page, feed, sitemap, article, value, ("ok", [PutResult("00" * 16, "new", 1)]),
        {"a": {1, 2}, "b": frozenset({"c"})}, Counter("aab"), Outcome.DONE, [b"\x00" * 9, 1.5, None],
    ):  # fmt: skip
        assert answers.loads(pickle.dumps((True, one), pickle.HIGHEST_PROTOCOL)) == (True, one)


@pytest.mark.parametrize(
    "stated", [b"2026-07-01T01:30:00Z", b"2026-07-01 08:30", b"2026-07-01T08:30:00+07:00"]
)
def test_a_time_on_the_clock_of_a_named_zone_is_an_answer(stated: bytes) -> None:
    """As all sites of sites.json have one, and pages that state UTC or no offset are shown on it."""
    body = PAGE.replace(b"2026-07-01T08:30:00+07:00", stated)
    context = PageContext(fetched=MOMENT, zone="Asia/Ho_Chi_Minh")
    page = read(Task(body, "https://a.vn/1", Kind.ARTICLE, "text/html", context=context))
    assert isinstance(page, Html) and page.extraction is not None
    moment = page.extraction.published.value
    assert isinstance(moment, datetime) and moment == datetime(2026, 7, 1, 1, 30, tzinfo=UTC)
    frame = pickle.dumps((True, page), pickle.HIGHEST_PROTOCOL)
    assert answers.loads(frame) == (True, page)


@pytest.mark.parametrize(
    "hostile",
    [
        Call(os.system, "true"),
        Call(eval, "__import__('os').system('true')"),
        Call(Path.touch, Path("x")),
        Call(pickle.loads, b""),
        Call(read, None),
        Path("/x"),
        print,
        Child,
        Call(__import__, "os"),
        Call(getattr, "x", "upper"),
        Call(getattr, ZoneInfo, "from_file"),
    ],
    ids=[
        "system",
        "eval",
        "touch",
        "loads",
        "read",
        "path",
        "print",
        "class",
        "import",
        "getattr",
        "zone",
    ],
)
def test_what_runs_is_refused(hostile: Any) -> None:
    frame = pickle.dumps((True, hostile), 4)
    assert any(op.name in ("STACK_GLOBAL", "GLOBAL") for op, _, _ in pickletools.genops(frame))
    with pytest.raises(pickle.UnpicklingError, match="is no part of an answer"):
        answers.loads(frame)


@pytest.mark.parametrize(
    "frame",
    [
        b"cnewscrawler.store.events\nos.system\n(S'true'\ntR.",  # by what a module imported
        b"\x80\x04\x8c\x19newscrawler.discovery.sites\x8c\x0bPath.unlink\x93.",
        b"cnewscrawler.discovery.sites\nPath\n.",
        b"cnewscrawler.discovery.feeds\nparse_feed\n(tR.",
        b"no pickle",
        b"",
    ],
)
def test_no_way_around_is_left(frame: bytes) -> None:
    with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, AttributeError)):
        answers.loads(frame)


def work(marker: str) -> Any:
    """What the child does: once it was taken over, what the page wants."""
    if marker == "pid":
        return os.getpid()
    return Call(os.system, f"touch '{marker}'")


@pytest.fixture
async def child() -> AsyncIterator[Child]:
    child = Child(f"{HERE}:work", cpu_s=20)
    yield child
    await child.close()


async def test_a_process_that_was_taken_over_is_ended_and_replaced(
    child: Child, tmp_path: Path
) -> None:
    marker = tmp_path / "taken over"
    await child.call("pid")
    hostile, innocent = (asyncio.ensure_future(child.call(c)) for c in (str(marker), "pid"))
    with pytest.raises(ChildDied, match=r"its answer was refused: \w+\.system is no part"):
        await hostile
    assert not marker.exists(), "nothing ran in the crawl's process"
    assert isinstance(await innocent, int), "the call behind it pays for nothing"
