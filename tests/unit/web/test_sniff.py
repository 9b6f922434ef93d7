"""What a body is: by its bytes where they say something, else by what was declared."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from newscrawler.web.sniff import sniff

PAGE = b"<!DOCTYPE html><html><head><title>Tin</title></head><body><p>a</p></body></html>"
FEED = b'<?xml version="1.0"?><rss version="2.0"><channel></channel></rss>'


@pytest.mark.parametrize(
    "declared",
    [
        None,
        "",
        "text/html; charset=utf-8",
        "application/xml",
        "image/png",
        "application/octet-stream",
    ],
)
def test_a_page_is_a_page_whatever_is_declared(declared: str | None) -> None:
    assert sniff(PAGE, declared) == "html"


@pytest.mark.parametrize("declared", [None, "application/rss+xml", "text/html", "text/plain"])
@pytest.mark.parametrize(
    "body",
    [
        FEED,
        b"\n  " + FEED,
        b"\xef\xbb\xbf" + FEED,
        b"<rss></rss>",
        b"<urlset/>",
        b'<?xml version="1.0"?><feed/>',
    ],
)
def test_a_feed_is_xml_whatever_is_declared(body: bytes, declared: str | None) -> None:
    assert sniff(body, declared) == "xml"


def test_xhtml_is_a_page() -> None:
    assert (
        sniff(
            b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x"><html xmlns="y"><body/></html>',
            "application/xhtml+xml",
        )
        == "html"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"\x89PNG\r\n\x1a\n" + PAGE, b"GIF89a", b"\xff\xd8\xff\xe0", b"%PDF-1.7 <html>", b"PK\x03\x04", b"\x00\x01\x02\x03" * 100, b"\x7fELF",
        bytes(range(256)) * 10,
    ],
)  # fmt: skip
def test_binary_is_neither_though_declared_as_a_page(body: bytes) -> None:
    assert sniff(body, "text/html") == "other"


def test_a_zero_that_a_database_left_in_a_page_does_not_make_it_binary() -> None:
    assert sniff(PAGE.replace(b"<body", b"\0<body") + b"\0" * 5, "text/html") == "html"
    assert sniff(b"no\0 tag at all", "text/html") == "other"
    assert sniff(b"\0" * 9 + PAGE, "text/html") == "other", "so many are no slip"


def test_a_packed_feed_is_not_a_page() -> None:
    assert sniff(gzip.compress(FEED), "text/html") != "html"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "windows-1258"])
def test_a_page_in_another_encoding_is_a_page(encoding: str) -> None:
    text = (
        PAGE.decode()
        if encoding == "windows-1258"
        else "<html><body><p>Thời sự hôm nay</p></body></html>"
    )
    assert sniff(text.encode(encoding), "text/html") == "html"


@pytest.mark.parametrize(
    ("declared", "found"),
    [(None, "html"), ("text/html", "html"), ("image/gif", "other"), ("application/json", "other")],
)
def test_an_empty_body_is_what_was_declared(declared: str | None, found: str) -> None:
    assert sniff(b"", declared) == found


@pytest.mark.parametrize(
    ("body", "declared", "found"),
    [
        (b'{"a": 1}', "application/json", "other"),
        (b"just words", "text/plain", "other"),
        (b"just words", "text/html", "html"),
    ],
)
def test_text_without_tags_is_judged_by_its_declaration(
    body: bytes, declared: str, found: str
) -> None:
    assert sniff(body, declared) == found


def test_stored_pages_and_feeds_are_told_apart(shared_pages: Path) -> None:
    pages = sorted((shared_pages / "html").glob("*.html.gz"))[::20]
    assert len(pages) > 30
    assert {
        path.name: sniff(gzip.decompress(path.read_bytes()))
        for path in pages
        if sniff(gzip.decompress(path.read_bytes())) != "html"
    } == {}
    feeds = sorted((shared_pages / "feeds").glob("*.xml"))
    assert len(feeds) > 10
    assert {
        path.name: sniff(path.read_bytes()) for path in feeds if sniff(path.read_bytes()) != "xml"
    } == {}
