"""The byte that nobody sends: "²" where a number is expected, at every place that
reads one from outside."""

from __future__ import annotations

import pytest

from newscrawler.discovery import articles
from newscrawler.extraction import dates
from newscrawler.extraction.document import Document
from newscrawler.extraction.title import above_text
from newscrawler.fetch import address_guard
from newscrawler.frontier.records import split_raw_ref
from newscrawler.frontier.redis_cluster import split_url
from newscrawler.items import FieldValue
from newscrawler.rawstore.errors import RawNotFound
from newscrawler.rawstore.raw_store import parse_ref

ODD = ["²", "①", "1²", "²²²²²²²²²²", "9" * 5000]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["page", "p", "trang"])
def test_a_link_with_an_odd_page_number_is_judged(name: str, odd: str) -> None:
    assert articles.refuse("/thoi-su", f"{name}={odd}") in (None, "trap")


def test_paging_is_refused_as_ever() -> None:
    assert articles.refuse("/thoi-su", "page=99999") == "trap"
    assert articles.refuse("/thoi-su", "page=2") is None
    assert articles.refuse("/", "p=4711") is None


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_date_is_none(odd: str) -> None:
    assert dates.parse(odd) is None


@pytest.mark.parametrize("tag", ["h²", "h①", "h1", "h"])
def test_an_odd_heading_breaks_no_title(tag: str) -> None:
    text = "Sáng nay đoàn công tác của thành phố đã đến thăm các hộ dân ở ven sông."
    doc = Document(
        f"<html><body><{tag}>Đoàn công tác</{tag}><p>{text}</p></body></html>".encode(),
        "https://bao.vn/1",
        "text/html; charset=utf-8",
    )
    found = above_text(doc, text, FieldValue(None))
    assert found.value in (None, "Đoàn công tác")


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_port_or_reference_is_none(odd: str) -> None:
    assert address_guard.split_host(f"bao.vn:{odd}") == (f"bao.vn:{odd}", None)
    assert address_guard.split_host(f"[::1]:{odd}") == ("::1", None)
    assert split_raw_ref(f"w.warc.gz:{odd}:1") == ("", 0, 0)
    with pytest.raises(ValueError, match="is not host:port"):
        split_url(f"redis+cluster://a:1,b:{odd}")
    with pytest.raises(RawNotFound):
        parse_ref(f"w.warc.gz:{odd}:1")
