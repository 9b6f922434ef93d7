"""A page is parsed once; where a selector set gives the content, by one parser alone."""

from __future__ import annotations

from typing import Any

import pytest

from newscrawler.extraction import document
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from newscrawler.extraction.selectors import SelectorSet

TEXT = "".join(
    f"<p>Đoạn {n} kể lại việc thi công cây cầu mới và những người dân đã chờ đợi suốt nhiều năm.</p>"
    for n in range(8)
)
PAGE = (
    "<html lang=vi><head><title>Thông xe cầu mới qua sông Hồng</title></head><body><h1 class=t>Thông xe cầu mới qua sông Hồng</h1>"
    f"<span class=d>15/08/2026 07:30</span><div class=a>Minh Anh</div><div class=b>{TEXT}</div><a href=/tin-1.htm>Tin khác</a></body></html>"
)
SET = SelectorSet.from_dict(
    {"domain": "example.vn", "state": "active", "variants": [{"template": "article", "fields": {
        "title": [{"css": "h1.t"}], "published": [{"css": "span.d"}], "authors": [{"css": "div.a"}],
        "content": {"root": ["div.b"]},
    }}]}
)  # fmt: skip


def read_counting(
    monkeypatch: pytest.MonkeyPatch, selectors: SelectorSet | None
) -> tuple[Extraction, dict[str, int]]:
    """What is found, and how often each parser was asked for a document."""
    calls = {"lexbor": 0, "lxml": 0}
    lexbor, html = document.LexborHTMLParser, document.lxml.html.document_fromstring

    def by_lexbor(*args: Any, **named: Any) -> Any:
        calls["lexbor"] += 1
        return lexbor(*args, **named)

    def by_lxml(*args: Any, **named: Any) -> Any:
        calls["lxml"] += 1
        return html(*args, **named)

    monkeypatch.setattr(document, "LexborHTMLParser", by_lexbor)
    monkeypatch.setattr(document.lxml.html, "document_fromstring", by_lxml)
    doc = Document(PAGE.encode(), "https://www.example.vn/cau-moi-1.htm")
    assert doc.links() == [("/tin-1.htm", False)]
    return extract(doc, PageContext(language="vi"), selectors), calls


def test_with_an_active_set_links_and_fields_come_of_one_parse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, calls = read_counting(monkeypatch, SET)
    assert found.content.origin.startswith("selector:") and found.is_article
    assert calls == {"lexbor": 1, "lxml": 0}


def test_without_a_set_the_page_is_parsed_once_beside_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, calls = read_counting(monkeypatch, None)
    assert found.content.origin == "generic:vote" and found.is_article
    assert calls["lexbor"] == 1
    assert calls["lxml"]  # the library parses parts of the page again
