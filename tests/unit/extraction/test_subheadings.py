"""Sub-headings: paragraphs of the text that the page has as headings."""

from __future__ import annotations

import pytest

from newscrawler.extraction import subheadings
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import article_values, extract

LONG = "Lực lượng cứu hộ đã đưa người dân các xã ven biển đến nơi an toàn trước khi trời tối. " * 4
PAGE = f"""<!doctype html><html lang="vi"><head><title>Bão số 9 vào bờ</title>
<meta property="og:type" content="article"></head><body>
<h1>Bão số 9 vào bờ</h1><article><p>{LONG}</p>
<h2>Gió  giật <i>cấp 11</i></h2><p>{LONG}Một.</p>
<p><strong>Người dân về nhà</strong></p><p>{LONG}Hai.</p>
<p><b>Ông An</b> nói</p><p>{LONG}Ba.</p><h3>Ai trả tiền?</h3><p>{LONG}Bốn.</p>
<h2>Dòng cuối</h2></article><aside><h2>Đọc nhiều</h2></aside></body></html>"""


def document(html: str) -> Document:
    return Document(html.encode(), "https://a.example/tin.html", "text/html; charset=utf-8")


def test_they_are_told_by_heading_and_by_bold_paragraphs() -> None:
    found = extract(document(PAGE), PageContext())
    values = article_values(found)
    assert values["subheadings"] == ["Gió giật cấp 11", "Người dân về nhà", "Ai trả tiền?"]
    assert set(values["subheadings"]) < set(values["content"].split("\n\n"))
    assert values["origins"]["subheadings"] == "generic"


@pytest.mark.parametrize(
    "content",
    [
        "Mở đầu\n\nĐoạn văn.\n\nĐoạn khác.",  # the first line is where the text begins
        "Một.\n\nĐây là một câu.\n\nHai.",
        f"Một.\n\n{'x' * 200}\n\nHai.",
        "Một.\n\nKhông có trên trang\n\nHai.",
        "Một.\n\nHai.\n\nDòng cuối",  # nothing stands below it
        "",
    ],
)
def test_what_is_none(content: str) -> None:
    html = f"<h2>Mở đầu</h2><h2>Đây là một câu.</h2><h2>{'x' * 200}</h2><h2>Dòng cuối</h2>"
    assert subheadings.find(document(html), content).value == []
