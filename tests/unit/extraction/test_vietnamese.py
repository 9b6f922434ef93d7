"""Vietnamese pages line by line: every form of date, byline, lead and tail that the sites
are known to write."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from newscrawler.extraction import authors, dates, vietnamese
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract

HANOI = timezone(timedelta(hours=7))
FETCHED = datetime(2026, 11, 21, 10, 0, tzinfo=HANOI)
SITE = dates.rules(PageContext(zone="Asia/Ho_Chi_Minh", language="vi", fetched=FETCHED))

WEEKDAYS = (
    "Thứ hai",
    "thứ ba",
    "Thứ Tư",
    "THỨ NĂM",
    "Thứ sáu",
    "Thứ Bảy",
    "Chủ nhật",
    "CHỦ NHẬT",
    "Thứ 2",
    "T7",
    "CN",
)


@pytest.mark.parametrize("weekday", WEEKDAYS)
def test_weekday_says_nothing_and_is_nobody(weekday: str) -> None:
    glued = "" if weekday[-1].isalpha() else " "  # some sites leave nothing between
    for line in (
        f"{weekday}, 22/10/2025 19:25 (GMT+7)",
        f"{weekday}{glued}22/10/2025 - 19:25",
        f"{weekday}, 19:25, 22/10/2025",
    ):
        found = dates.parse(line, SITE)
        assert found is not None and found.value.isoformat() == "2025-10-22T19:25:00+07:00", line
    assert authors.clean([weekday]) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Thứ …, 22/10/2025 19:25:07 (GMT+7)", "2025-10-22T19:25:07+07:00"),
        ("22/10/2025 19:25 GMT+7", "2025-10-22T19:25:00+07:00"),
        ("22/10/2025 19:25 (GMT +7)", "2025-10-22T19:25:00+07:00"),
        ("22/10/2025 | 19:25", "2025-10-22T19:25:00+07:00"),
        ("22/10/2025 19:25 |", "2025-10-22T19:25:00+07:00"),
        ("22-10-2025 - 19:25 PM", "2025-10-22T19:25:00+07:00"),
        ("22.10.2025 19:25", "2025-10-22T19:25:00+07:00"),
        ("Cập nhật: 22/10/2025 lúc 19:25", "2025-10-22T19:25:00+07:00"),
        ("Đăng vào lúc 19:25, 22/10/2025", "2025-10-22T19:25:00+07:00"),
        ("Đăng ngày 22/10/2025 lúc 19h25", "2025-10-22T19:25:00+07:00"),
        ("19 giờ 25 phút, ngày 22/10/2025", "2025-10-22T19:25:00+07:00"),
        ("22 tháng 10, 2025 19:25", "2025-10-22T19:25:00+07:00"),
        ("22 thg 10 2025, 19:25", "2025-10-22T19:25:00+07:00"),
        ("Thứ Tư, ngày 22 tháng 10 năm 2025 - 19:25", "2025-10-22T19:25:00+07:00"),
        ("10/22/2025 7:25:00\u202fPM", "2025-10-22T19:25:00+07:00"),
        ("Wed, 22 Oct 25 19:25:00 +0700", "2025-10-22T19:25:00+07:00"),
        ("Wed, 22 Oct 2025 19:25:00 +07:00", "2025-10-22T19:25:00+07:00"),
        ("2025-10-22T19:25:00", "2025-10-22T19:25:00+07:00"),
        ("2025-10-22T19:25:00.123+07:00", "2025-10-22T19:25:00+07:00"),
        ("1761135900", "2025-10-22T12:25:00+00:00"),
        ("Thư\u0301 tư\u0323, 22/10/2025 19:25", "2025-10-22T19:25:00+07:00"),
    ],
)
def test_date_form(line: str, expected: str) -> None:
    found = dates.parse(line, SITE)
    assert found is not None and found.value.isoformat() == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("30 giây trước", "2026-11-21T09:59:00+07:00"),
        ("5 phút trước", "2026-11-21T09:55:00+07:00"),
        ("2 tiếng trước", "2026-11-21T08:00:00+07:00"),
        ("cách đây 3 giờ", "2026-11-21T07:00:00+07:00"),
        ("4 ngày trước", "2026-11-17T00:00:00+07:00"),
        ("2 tuần trước", "2026-11-07T00:00:00+07:00"),
        ("1 tháng trước", "2026-10-22T00:00:00+07:00"),
        ("1 năm trước", "2025-11-21T00:00:00+07:00"),
        ("Hôm qua", "2026-11-20T00:00:00+07:00"),
        ("Hôm qua, 14:30", "2026-11-20T14:30:00+07:00"),
        ("Hôm nay 08:15", "2026-11-21T08:15:00+07:00"),
        ("Mới đây", "2026-11-21T10:00:00+07:00"),
        ("Vừa xong", "2026-11-21T10:00:00+07:00"),
    ],
)
def test_relative_form(line: str, expected: str) -> None:
    found = dates.parse(line, SITE)
    assert found is not None and found.value.isoformat() == expected


@pytest.mark.parametrize(
    ("byline", "names"),
    [
        ("theo vietnam+", []),
        ("Theo Trí Thức Trẻ", []),
        ("Theo HOSE", []),
        ("Nguồn: Bloomberg", []),
        ("Theo Nguyễn Văn A (Tiền Phong)", []),
        ("Video: Minh Khang", []),
        ("Hình: Minh Khang", []),
        ("Đồ họa: Minh Khang", []),
        ("Ảnh: Minh Khang - Video: Thu Hà", []),
        ("PV", []),
        ("CTV", []),
        ("Nhóm PV", []),
        ("Nhóm phóng viên", []),
        ("Ban biên tập", []),
        ("Tòa soạn", []),
        ("Biên tập viên", []),
        ("tổng hợp", []),
        ("Hà Nội, 22/10/2025", []),
        ("22/10/2025 19:25", []),
        ("Bài: Xuân Việt - Ảnh: Võ Hữu Việt", ["Xuân Việt"]),
        ("Bài và ảnh: Xuân Việt", ["Xuân Việt"]),
        ("Tác giả Trần Minh", ["Trần Minh"]),
        ("Thực hiện: Trần Minh", ["Trần Minh"]),
        ("Trần Minh (ghi)", ["Trần Minh"]),
        ("Trần Minh (t/h)", ["Trần Minh"]),
        ("Trần Minh (Theo Reuters)", ["Trần Minh"]),
        ("Trần Minh biên dịch", ["Trần Minh"]),
        ("Trần Minh/TTXVN", ["Trần Minh"]),
        ("Trần Minh/VOV.VN", ["Trần Minh"]),
        ("PV Trần Minh", ["Trần Minh"]),
        ("Trần Minh – Lê Bình", ["Trần Minh", "Lê Bình"]),
        ("Trần Minh-Lê Bình", ["Trần Minh", "Lê Bình"]),
        ("Trần Minh |", ["Trần Minh"]),
        ("T Trần Minh 10:20 14/08/2026", ["Trần Minh"]),
        ("TS Trần Minh", ["Trần Minh"]),
        ("PGS.TS Trần Minh", ["Trần Minh"]),
        ("ThS.BS Trần Minh", ["Trần Minh"]),
    ],
)
def test_byline_form(byline: str, names: list[str]) -> None:
    assert authors.clean([byline]) == names


LEAD = "Chiều nay mưa lớn làm nhiều tuyến đường ở thành phố ngập sâu, xe cộ phải đi vòng qua đường khác."


@pytest.mark.parametrize(
    "prefix",
    [
        "(Dân trí) - ", "(Chinhphu.vn) - ", "(VTC News) - ", "TTO - ", "(ĐTCK) ", "SKĐS - ", "BNEWS ", "BNEWS - ",
        "(NLĐO) - ", "(PLO)- ", "VTV.vn - ", "VOV.VN - ", "NDO - ", "TPO - ", "GD&TĐ - ", "(TBTCO) - ", "(VnMedia) - ",
        "(Dân trí) – ",
    ],
)  # fmt: skip
def test_the_sites_name_before_the_lead_is_off(prefix: str) -> None:
    assert vietnamese.without_paper_name(prefix + LEAD) == LEAD


@pytest.mark.parametrize(
    "line",
    [
        "Hà Nội: Mưa lớn làm nhiều tuyến đường ngập sâu, xe cộ phải đi vòng qua những con đường khác.",
        "VN-Index - chỉ số chính của thị trường chứng khoán - giảm mạnh trong phiên chiều, khối ngoại bán ròng.",
        "GDP - Tổng sản phẩm quốc nội - của cả nước tăng mạnh nhất trong nhiều năm qua, theo số liệu mới.",
        "(Ông Nam) là người đầu tiên đến hiện trường và gọi cho lực lượng cứu hỏa của thành phố trong đêm.",
    ],
)
def test_a_lead_that_only_looks_so_stays(line: str) -> None:
    assert vietnamese.without_paper_name(line) == line


def paragraphs(count: int) -> list[str]:
    return [
        f"Đoạn văn thứ {n} của bài báo kể rõ sự việc đã xảy ra, người dân nói gì và chính quyền làm gì."
        for n in range(count)
    ]


def page(
    tail: str = "",
    byline: str = "",
    head: str = "",
    url: str = "https://tin.example.vn/mua-lon-123456.html",
) -> Extraction:
    body = "".join(f"<p>{line}</p>" for line in paragraphs(8))
    markup = (
        f"<html lang=vi><head><title>Mưa lớn ở nhiều tuyến đường chiều nay</title>{head}</head><body>"
        f"<h1>Mưa lớn ở nhiều tuyến đường chiều nay</h1>{byline}<h2>{LEAD}</h2><div class=x1>{body}{tail}</div></body></html>"
    )
    return extract(
        Document(markup.encode(), url),
        PageContext(language="vi", zone="Asia/Ho_Chi_Minh", fetched=FETCHED),
    )


@pytest.mark.parametrize(
    "tail",
    [
        "<p>&gt;&gt; <a href=/b.html>Một bài khác của hôm nay về cơn mưa lớn này</a></p>",
        "<p>&gt;&gt;&gt; Đọc thêm: <a href=/b.html>Một bài khác của hôm nay</a></p>",
        "<p>-&gt; <a href=/b.html>Một bài khác của hôm nay về cơn mưa lớn này</a></p>",
        "<p>..&gt;&gt; <a href=/b.html>Một bài khác của hôm nay về cơn mưa lớn</a></p>",
        "<p>Tin liên quan</p><ul><li><a href=/b.html>Một bài khác của hôm nay</a></li></ul>",
        "<p>Tin cùng chuyên mục</p><ul><li><a href=/b.html>Một bài khác của hôm nay</a></li></ul>",
        "<p>Từ khóa: <a href=/t/mua>mưa lớn</a>, <a href=/t/duong>ngập đường</a></p>",
        "<p>Theo dõi Tin Example trên <a href=//news.example/x>Google News</a></p>",
        "<p>Mời bạn đọc xem thêm video: <a href=/v.html>Mưa lớn</a></p>",
        "<p>Mời quý độc giả xem thêm:</p>",
        "<p>Ý kiến của bạn</p>",
        "<p>Lưu bài viết</p><p>Chia sẻ</p>",
        "<p>(*) Không sao chép dưới mọi hình thức khi chưa có sự đồng ý bằng văn bản</p>",
        "<p>Nguồn: TTXVN</p>",
        "<p>Theo Reuters</p>",
        "<p>(Theo Reuters)</p>",
        "<p>Ảnh: Minh Khang</p>",
        "<!-- Sat Aug 15 2026 06:54:00 GMT+0700 (Indochina Time) -->",
    ],
)
def test_line_behind_the_text_is_off(tail: str) -> None:
    found = page(tail)
    assert found.content.value == "\n\n".join([LEAD, *paragraphs(8)])
    assert found.authors.value == []


SIGNED = [
    ("Trần Thu Hà", ["Trần Thu Hà"]),
    ("Thu Hà", ["Thu Hà"]),
    ("Thu Hà - Minh Anh", ["Thu Hà", "Minh Anh"]),
    ("Thu Hà (Theo Bloomberg)", ["Thu Hà"]),
    ("Thu Hà (tổng hợp)", ["Thu Hà"]),
    ("Thu Hà/TTXVN", ["Thu Hà"]),
    ("Tác giả: Thu Hà", ["Thu Hà"]),
    ("Bài và ảnh: Thu Hà", ["Thu Hà"]),
]
FORMS = [
    "<p style='text-align:right'><strong>{}</strong></p>",
    "<p align=right><b>{}</b></p>",
    "<p class=text-right>{}</p>",
    "<p><strong>{}</strong></p>",
    "<p><em>{}</em></p>",
    "<p>{}</p>",
    "<div>{}</div>",
    "</div><span class=q7>{}</span><div>",
]
BEHIND = [
    "",
    "<p>&gt;&gt; Xem thêm: <a href=/b.html>Một bài khác của hôm nay</a></p>",
    "<p>Từ khóa: <a href=/t/mua>mưa lớn</a></p><ul><li><a href=/b.html>Một bài khác</a></li></ul>",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "names"), SIGNED)
def test_who_signs_the_end_wrote_it(name: str, names: list[str], form: str) -> None:
    for behind in BEHIND:
        found = page(form.format(name) + behind)
        assert found.authors.value == names
        assert found.content.value == "\n\n".join([LEAD, *paragraphs(8)])


def test_a_box_of_links_may_stand_before_the_signature() -> None:
    box = "<div class=tin><h4>Tin liên quan</h4>" + "".join(
        f"<p><a href=/{n}.html>Một bài khác số {n}</a></p>" for n in range(4)
    )
    assert page(box + "</div><p>Trần Thu Hà</p>").authors.value == ["Trần Thu Hà"]


def test_a_template_that_names_the_site_as_author_does_not_hide_the_signature() -> None:
    head = (
        '<meta name=author content="Tin Example"><meta property="og:site_name" content="Tin Example">'
        '<script type="application/ld+json">{"@type":"NewsArticle","headline":"Mưa lớn ở nhiều tuyến đường chiều nay",'
        '"author":{"@type":"Organization","name":"Tin Example"},"publisher":{"@type":"Organization","name":"Tin Example"}}</script>'
    )
    assert page(
        "<p style='text-align:right'><strong>Thu Hà</strong></p>", head=head
    ).authors.value == ["Thu Hà"]
    named = head.replace(
        '"Organization","name":"Tin Example"},"pub', '"Person","name":"Lê Bình"},"pub'
    )
    assert page(
        "<p style='text-align:right'><strong>Thu Hà</strong></p>", head=named
    ).authors.value == ["Lê Bình"]


@pytest.mark.parametrize(
    "last",
    [
        "Hà Nội",
        "Việt Nam",
        "Thời sự",
        "Bình luận",
        "Ý kiến",
        "Video nổi bật",
        "Xem nhiều",
        "Quảng cáo",
        "Tags",
    ],
)
def test_a_word_behind_the_text_is_nobody(last: str) -> None:
    assert page(f"<p>{last}</p>").authors.value == []


@pytest.mark.parametrize(
    "byline",
    [
        "<div class=k3><span>Thứ Năm, 19/11/2026 07:06</span><span>Trần Thu Hà</span></div>",
        "<div class=k3><span>THỨ SÁU, 20/11/2026 00:39</span><span>Trần Thu Hà/TTXVN</span></div>",
        "<div class=k3>19/11/2026 07:06 (GMT+7) | Trần Thu Hà</div>",
        "<div class=k3>19/11/2026 - 07:06 Trần Thu Hà</div>",
        "<div class=author-name>Thứ Năm, 19/11/2026 - 07:06 Trần Thu Hà</div>",
        "<div class=author-box><span class=avatar>T</span><b class=name>Trần Thu Hà</b><span>07:06, 19/11/2026</span></div>",
        "<div class=tacgia>Tác giả: Trần Thu Hà</div>",
    ],
)
def test_name_in_the_line_of_the_date(byline: str) -> None:
    assert page(byline=byline).authors.value == ["Trần Thu Hà"]


def test_a_weekday_beside_the_date_is_nobody() -> None:
    for line in ("Thứ Năm, 19/11/2026 07:06", "Thứ Năm 19/11/2026", "07:06 Thứ Năm 19/11/2026"):
        for form in ("<div class=author-time>{}</div>", "<div class=author>{}</div>", "<p>{}</p>"):
            found = page(byline=form.format(line))
            assert found.authors.value == [] and found.credits.value == []
            assert (
                found.published.value is not None
                and found.published.value.date().isoformat() == "2026-11-19"
            )


def test_the_first_of_two_dates_is_the_publication() -> None:
    found = page(
        byline="<div class=meta><span>19/11/2026 07:06</span><span>Cập nhật: 20/11/2026 09:00</span></div>"
    )
    assert (
        found.published.value is not None
        and found.published.value.isoformat() == "2026-11-19T07:06:00+07:00"
    )
