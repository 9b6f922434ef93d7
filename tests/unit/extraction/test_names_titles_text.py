"""Bylines to names, headlines without the site, text without what is not article."""

from __future__ import annotations

import pytest

from newscrawler.extraction import authors, generic, text, title
from newscrawler.extraction.blocks import walk
from newscrawler.extraction.document import Document


@pytest.mark.parametrize(
    ("byline", "names"),
    [
        ("Nguyễn Văn A", ["Nguyễn Văn A"]),
        ("NHẬT XUÂN - NGHI VŨ", ["NHẬT XUÂN", "NGHI VŨ"]),
        ("Minh Anh, Thu Hà và Lê Bình", ["Minh Anh", "Thu Hà", "Lê Bình"]),
        ("Phương Bình & Thu Trung", ["Phương Bình", "Thu Trung"]),
        ("Văn Giáp/Bnews/vnanet.vn", ["Văn Giáp"]),
        ("Tạ Ngọc Hải/VOV", ["Tạ Ngọc Hải"]),
        ("Đỗ Hương (thực hiện)", ["Đỗ Hương"]),
        ("Thạch Bắc tổng hợp", ["Thạch Bắc"]),
        ("Vũ Hữu Hòa (Theo Bloomberg)", ["Vũ Hữu Hòa"]),
        ("Tác giả: Trần Minh", ["Trần Minh"]),
        ("Bài và ảnh: Lê Thu", ["Lê Thu"]),
        ("H Hoàng Anh 10:20 14/08/2026", ["Hoàng Anh"]),
        ("Hoàng Anh -", ["Hoàng Anh"]),
        ("By Jane Doe and John Roe, Reuters", ["Jane Doe", "John Roe"]),
        ("By\nJane Doe\nStaff Writer", ["Jane Doe"]),
        ("Written by Jane Doe | Updated 3 May 2020", ["Jane Doe"]),
        ("Von Anna Müller, dpa", ["Anna Müller"]),
        ("Von Anna Müller und Jan van der Berg", ["Anna Müller", "Jan van der Berg"]),
        ("Zach Hanlon 12/05/2016", ["Zach Hanlon"]),
        ("Jane Doe (@janedoe)", ["Jane Doe"]),
        ("Theo Nhịp sống thị trường", []),
        ("Theo Reuters", []),
        ("Nguồn: TTXVN", []),
        ("Ảnh: Minh Khang", []),
        ("PV", []),
        ("Nhóm PV", []),
        ("BBT", []),
        ("Reuters", []),
        ("dpa", []),
        ("Redaktion", []),
        ("Báo Dân trí", []),
        ("https://www.facebook.com/someone", []),
        ("someone@example.com", []),
        ("12:30 14/08/2026", []),
        ("Click here to read more about the news of this day", []),
        ("", []),
    ],
)
def test_byline_becomes_names(byline: str, names: list[str]) -> None:
    assert authors.clean([byline]) == names


def test_the_site_is_not_an_author() -> None:
    assert authors.clean(
        ["Dân Trí", "VnExpress", "Nguyễn A"], "Dân trí", ["vnexpress.net", "VnExpress"]
    ) == ["Nguyễn A"]


def test_repeated_names_are_one() -> None:
    assert authors.clean(["Jane Doe", "JANE DOE", "By Jane Doe"]) == ["Jane Doe"]


@pytest.mark.parametrize(
    ("raw", "site", "expected"),
    [
        ("Giá vàng giảm mạnh | Báo Dân trí", "Dân trí", "Giá vàng giảm mạnh"),
        ("Giá vàng giảm mạnh - VnExpress Kinh doanh", "VnExpress", "Giá vàng giảm mạnh"),
        ("Hà Nội: Mưa lớn - ngập sâu", "Dân trí", "Hà Nội: Mưa lớn - ngập sâu"),
        ("A &amp;amp; B ký kết", None, "A & B ký kết"),
        ("Cafe\u0301  reopens\n in town", None, "Café reopens in town"),
        ("武汉的声音：有英雄的城-新华网", None, "武汉的声音：有英雄的城"),
    ],
)
def test_title_is_cleaned(raw: str, site: str | None, expected: str) -> None:
    assert title.clean(raw, site) == expected


def headline(html: str) -> str | None:
    found: str | None = title.find(Document(html.encode(), "https://www.example.vn/a-1.html")).value
    return found


def test_visible_headline_wins_over_what_search_engines_get() -> None:
    assert (
        headline(
            "<title>Giá vàng hôm nay giảm mạnh | Example</title><meta property='og:title' content='Giá vàng hôm nay giảm mạnh'>"
            "<h1>Example</h1><h1>Giá vàng hôm nay bất ngờ giảm mạnh</h1>"
        )
        == "Giá vàng hôm nay bất ngờ giảm mạnh"
    )


def test_kicker_is_set_off_and_ruby_is_left_out() -> None:
    assert (
        headline(
            "<title>Ausschuss zur Ahrtal-Flut: Zwei Rücktritte und Fragen</title>"
            "<h1><span class=topline>Ausschuss zur Ahrtal-Flut</span><span>Zwei Rücktritte und Fragen</span></h1>"
        )
        == "Ausschuss zur Ahrtal-Flut: Zwei Rücktritte und Fragen"
    )
    assert (
        headline(
            "<title>体罰を禁止する法律</title><h1>体罰<ruby>を<rt>wo</rt></ruby>禁止する法律</h1>"
        )
        == "体罰を禁止する法律"
    )


def test_without_a_heading_the_statements_decide() -> None:
    assert headline(
        "<title>Mưa lớn ở Huế chiều nay - Example</title><meta property='og:title' content='Mưa lớn ở Huế chiều nay'>"
    ) == ("Mưa lớn ở Huế chiều nay")
    assert headline("<p>nothing</p>") is None


def content(html: str, head: str | None = None) -> str | None:
    doc = Document(html.encode(), "https://example.vn/")
    assert doc.tree.body is not None
    return text.content_of(walk(doc.tree.body), head)


MORE = "Đoạn văn thứ hai cũng đủ dài để được coi là một phần của bài báo, và có dấu chấm."
LONG = "Đây là một câu đủ dài để được coi là một đoạn văn của bài báo, có dấu chấm ở cuối câu."


def test_article_text_keeps_order_lists_and_subheads() -> None:
    assert content(
        f"<h2>{MORE}</h2><p>{LONG} Một.</p><h3>Mục</h3><ul><li>Điểm một của danh sách</li></ul><p>{LONG} Hai.</p>"
    ) == (f"{MORE}\n\n{LONG} Một.\n\nMục\n\nĐiểm một của danh sách\n\n{LONG} Hai.")


@pytest.mark.parametrize(
    "clutter",
    [
        "<p>&gt;&gt; <a href=/x>Xem thêm: Một bài khác</a></p>",
        "<p>Tin liên quan</p>",
        "<p>Đọc thêm: <a href=/x>bài này</a></p>",
        "<p>Ảnh: Minh Khang</p>",
        "<p>Chia sẻ</p>",
        "<p>Lưu bài viết</p>",
        "<p>Read more: <a href=/x>another story</a></p>",
        "<p>Photo by Jane Doe / Getty Images</p>",
        "<p>Lesen Sie auch: <a href=/x>mehr</a></p>",
        "<ul><li><a href=/x>Một bài viết liên quan khác</a></li></ul>",
        "<!-- Sat Aug 15 2026 06:54:00 -->",
        "<script>var x = 'text'</script>",
        "<style>.a{}</style>",
        "<noscript>Bật JavaScript</noscript>",
    ],
)
def test_clutter_inside_the_text_is_off(clutter: str) -> None:
    assert (
        content(f"<p>{LONG} Một.</p>{clutter}<p>{LONG} Hai.</p>") == f"{LONG} Một.\n\n{LONG} Hai."
    )


def test_a_box_title_in_the_middle_does_not_end_the_article() -> None:
    paragraphs = "".join(f"<p>{LONG} {i}.</p>" for i in range(12))
    found = content(paragraphs + "<p>Tin liên quan</p>" + paragraphs.replace("Đây", "Kia"))
    assert found is not None and found.count("\n\n") == 23


def test_a_box_before_the_last_paragraph_does_not_end_the_article() -> None:
    links = "".join(
        f'<li><a href="/{i}">Một bài khác của hôm nay, số {i}, dài vừa phải</a></li>'
        for i in range(3)
    )
    box = f"<div class='tin'><h4>Tin liên quan</h4><p>{MORE} Ở bài khác.</p><ul>{links}</ul></div>"
    paragraphs = "".join(f"<p>{LONG} {i}.</p>" for i in range(12))
    found = content(f"<div>{paragraphs}{box}<p>{LONG} Hết.</p></div>")
    assert found is not None and found.count("\n\n") == 12 and found.endswith("Hết.")
    assert "Ở bài khác" not in found and "số 1" not in found


def test_comments_end_the_article() -> None:
    found = content(
        "".join(f"<p>{LONG} {i}.</p>" for i in range(8)) + "<p>Leave a comment</p><p>nice one</p>"
    )
    assert found is not None and "nice" not in found


def test_front_and_tail_lines_are_off() -> None:
    found = content(
        f"<h1>Mưa lớn ở Huế</h1><p>Thứ hai, 14/08/2026 10:20</p><p>(Dân trí) - {LONG}</p><p>{LONG} Hết./.</p>"
        "<p>Nguyễn Văn An</p><p>Theo Reuters</p>",
        "Mưa lớn ở Huế",
    )
    assert found == f"{LONG}\n\n{LONG} Hết."


def test_repeated_lead_is_written_once() -> None:
    assert content(f"<p>{LONG}</p><p>{LONG}</p><p>{MORE}</p>") == f"{LONG}\n\n{MORE}"
    assert content(f"<h2>{LONG}</h2><p>{LONG} {MORE}</p><p>Ba.</p>") == f"{LONG} {MORE}\n\nBa."


def test_line_breaks() -> None:
    assert content(f"<p>{LONG}<br><br>{MORE}<br>Ba.</p>") == f"{LONG}\n\n{MORE}\nBa."
    assert content(f"<p>{LONG.replace(' ', chr(10), 3)}</p>") == LONG


def test_text_is_nfc_without_invisible_signs() -> None:
    assert content(
        "<p>Tie\u0302\u0301ng Vie\u0323\u0302t\u200b\u00ad co\u0301 da\u0302\u0301u, một câu đủ dài cho bài viết này.</p>"
    ) == ("Tiếng Việt có dấu, một câu đủ dài cho bài viết này.")


@pytest.mark.parametrize(
    "line",
    [
        "Zuerst veröffentlicht am 15/04/2022 - 16:17",
        "Published on 12 March 2024",
        "Cập nhật lúc: 14:05, 21/11/2026",
        "Publié le 3 mars 2024",
    ],
)
def test_a_last_line_that_says_when_is_no_text(line: str):
    body = [
        "The council voted on the bridge on Monday, after a debate of five hours about its price.",
        "Its neighbours had asked for a tunnel, which would have cost three times as much and closed the harbour.",
        "Works are to begin in the spring of the next year, said the mayor, if the weather allows it.",
    ]
    html = "".join(f"<p>{p}</p>" for p in [*body, line])
    doc = Document(
        f"<html><body><article><h1>A bridge</h1>{html}</article></body></html>".encode(),
        "https://a.example/x",
    )
    found = generic.content(doc, "A bridge").value
    assert found is not None and "five hours" in found and "next year" in found
    assert line not in found


class _Blocks(list):
    """Counts what its slices copy."""

    copied = 0

    def __getitem__(self, index):
        found = super().__getitem__(index)
        if not isinstance(index, slice):
            return found
        _Blocks.copied += len(found)
        return _Blocks(found)


def test_a_tail_of_many_lines_is_cut_off_at_once():
    told = "<p>The council voted on the bridge on Monday, after a long debate.</p>" * 3
    doc = Document((told + "<p>Thu Hà</p>" * 500).encode(), "https://a.example/")
    blocks = _Blocks(walk(doc.tree.body))
    _Blocks.copied = 0
    assert len(blocks) == 503 and text._without_tail(blocks) == blocks[:3]
    assert _Blocks.copied <= 6
