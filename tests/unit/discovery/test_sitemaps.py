"""Sitemaps, indexes, news sitemaps and text lists; what attacks or breaks says why."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from newscrawler.discovery.sitemaps import MAX_CHILDREN, MAX_URLS, parse_sitemap

VN = timezone(timedelta(hours=7))
URL = "https://bao.vn/sitemap.xml"
NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"'


def urlset(*entries: str) -> bytes:
    return f'<?xml version="1.0"?><urlset {NS}>{"".join(f"<url>{e}</url>" for e in entries)}</urlset>'.encode()


def index(*entries: str) -> bytes:
    return f'<?xml version="1.0"?><sitemapindex {NS}>{"".join(f"<sitemap>{e}</sitemap>" for e in entries)}</sitemapindex>'.encode()


def test_entries_with_their_last_change() -> None:
    sitemap = parse_sitemap(
        urlset(
            "<loc> https://bao.vn/a </loc><lastmod>2026-09-14T08:00:00+07:00</lastmod>",
            "<loc>https://bao.vn/b</loc>",
        ),
        URL,
    )
    assert sitemap.error == ""
    assert [e.url for e in sitemap.entries] == ["https://bao.vn/a", "https://bao.vn/b"]
    assert sitemap.entries[0].lastmod == datetime(2026, 9, 14, 8, 0, tzinfo=VN)
    assert sitemap.entries[1].lastmod is None
    assert sitemap.entries[0].published is None, "the last change is no publication"


def test_a_news_sitemap_gives_title_and_publication() -> None:
    body = urlset(
        "<loc>https://bao.vn/a</loc><news:news><news:publication><news:name>Báo</news:name></news:publication>"
        "<news:publication_date>2026-09-14T01:00:00Z</news:publication_date><news:title>Giá vàng &amp; đô</news:title></news:news>"
    )
    (entry,) = parse_sitemap(body, URL).entries
    assert (entry.title, entry.published) == (
        "Giá vàng & đô",
        datetime(2026, 9, 14, 1, 0, tzinfo=UTC),
    )


def test_an_index_names_its_children_newest_first_and_no_more_than_the_limit() -> None:
    children = [
        f"<loc>https://bao.vn/s-{n}.xml</loc><lastmod>2026-09-{n % 28 + 1:02d}</lastmod>"
        for n in range(28)
    ]
    sitemap = parse_sitemap(index(*children, "<loc>https://bao.vn/undated.xml</loc>"), URL)
    assert sitemap.entries == []
    assert [c.url for c in sitemap.children][:2] == [
        "https://bao.vn/s-27.xml",
        "https://bao.vn/s-26.xml",
    ]
    assert sitemap.children[-1].url == "https://bao.vn/undated.xml"
    many = parse_sitemap(
        index(*(f"<loc>https://bao.vn/{n}.xml</loc>" for n in range(MAX_CHILDREN + 1))), URL
    )
    assert len(many.children) == MAX_CHILDREN


def test_no_more_than_the_limit_of_entries() -> None:
    sitemap = parse_sitemap(
        urlset(*(f"<loc>https://bao.vn/{n}</loc>" for n in range(MAX_URLS + 1))), URL
    )
    assert len(sitemap.entries) == MAX_URLS


@pytest.mark.parametrize(
    "loc",
    ["", "<loc></loc>", "<loc>/a</loc>", "<loc>javascript:x</loc>", "<loc>ftp://bao.vn/a</loc>"],
)
def test_an_entry_without_an_address_is_left_out(loc: str) -> None:
    assert [
        e.url for e in parse_sitemap(urlset(loc, "<loc>https://bao.vn/b</loc>"), URL).entries
    ] == ["https://bao.vn/b"]


def test_a_feed_may_stand_for_a_sitemap() -> None:
    body = b"<rss><channel><item><title>Tin</title><link>/a</link><pubDate>Mon, 14 Sep 2026 01:00:00 GMT</pubDate></item></channel></rss>"
    (entry,) = parse_sitemap(body, URL).entries
    assert (entry.url, entry.title, entry.published) == (
        "https://bao.vn/a",
        "Tin",
        datetime(2026, 9, 14, 1, 0, tzinfo=UTC),
    )


def test_a_text_list() -> None:
    body = "\ufeffhttps://bao.vn/a\r\n\nhttps://bao.vn/b\nnonsense\n".encode()
    assert [e.url for e in parse_sitemap(body, URL).entries] == [
        "https://bao.vn/a",
        "https://bao.vn/b",
    ]


def test_a_packed_sitemap_is_unpacked() -> None:
    assert [
        e.url
        for e in parse_sitemap(gzip.compress(urlset("<loc>https://bao.vn/a</loc>")), URL).entries
    ] == ["https://bao.vn/a"]


def test_a_packed_text_list_is_unpacked() -> None:
    assert [e.url for e in parse_sitemap(gzip.compress(b"https://bao.vn/a\n"), URL).entries] == [
        "https://bao.vn/a"
    ]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "page"),
        (b"<opml><body/></opml>", "no sitemap"),
        (b"nonsense", "not XML"),
        (lambda: gzip.compress(b"<urlset>" + b" " * 80_000_000, 1), "too large"),
        (lambda: gzip.compress(b"https://bao.vn/a\n" * 5_000_000, 1), "too large"),
        (
            f"<!DOCTYPE x [<!ENTITY a 'b'>]><urlset {NS}><url><loc>https://bao.vn/&a;</loc></url></urlset>".encode(),
            "entity",
        ),
        (
            f"<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><urlset {NS}><url><loc>https://bao.vn/&a;</loc></url></urlset>".encode(),
            "entity",
        ),
    ],
)
def test_what_is_no_sitemap_says_why(body: bytes | Callable[[], bytes], error: str) -> None:
    sitemap = parse_sitemap(body if isinstance(body, bytes) else body(), URL)
    assert error in sitemap.error
    assert sitemap.entries == [] and sitemap.children == []


def test_a_cut_off_sitemap_gives_what_came_before_and_says_so() -> None:
    whole = urlset(*(f"<loc>https://bao.vn/a-{n}</loc>" for n in range(100)))
    sitemap = parse_sitemap(whole[: len(whole) // 2], URL)
    assert sitemap.error == "cut off"
    assert 40 <= len(sitemap.entries) <= 50


#: Reads a sitemap that is small on the wire, and prints the entries read, the error and the most
#: memory it took, MB.
_READ_ALONE = r"""
import gzip, re, sys
from pathlib import Path
from newscrawler.discovery.sitemaps import parse_sitemap
head, flood, times = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
sitemap = parse_sitemap(gzip.compress(head.encode() + flood * times, 1), "https://bao.vn/sitemap.xml")
# Not ru_maxrss: a child begins with the peak of the process that started it.
peak_kb = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
print(len(sitemap.entries), sitemap.error, peak_kb // 1024, sep="|")
"""


@pytest.mark.parametrize("flood", ["<a/>", "<a>", "&a;", '<a b="" c="" d="" e="" f=""/>'])
def test_millions_of_nodes_do_not_take_gigabytes(flood: str) -> None:
    """46 kB of gzip were 12 million elements and 1.5 GB."""
    head = f"<urlset {NS}><url><loc>https://bao.vn/a</loc></url>"
    times = 48_000_000 // len(flood)
    done = subprocess.run(
        [sys.executable, "-c", _READ_ALONE, head, flood, str(times)],
        capture_output=True,
        text=True,
        check=True,
    )
    entries, error, peak_mb = done.stdout.strip().split("|")
    assert (entries, error) == ("1", "cut off"), "what stands before the flood is read"
    assert int(peak_mb) < 700


def test_a_sitemap_of_the_greatest_size_is_read_whole() -> None:
    """50,000 addresses with all that sitemaps.org knows and a picture each."""
    entry = (
        "<loc>https://bao.vn/a-{}?x=1&amp;y=2</loc><lastmod>2026-09-14</lastmod><changefreq>daily</changefreq>"
        "<priority>0.7</priority><news:image><news:loc>https://bao.vn/a.jpg</news:loc></news:image>"
    )
    sitemap = parse_sitemap(urlset(*(entry.format(n) for n in range(MAX_URLS))), URL)
    assert (len(sitemap.entries), sitemap.error) == (MAX_URLS, "")
