"""Vietnamese pages: what stands in and around a text and is not the article, and forms that
readers write by hand."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from newscrawler.extraction import authors, dates
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract

HANOI = timezone(timedelta(hours=7))
FETCHED = datetime(2026, 11, 21, 10, 0, tzinfo=HANOI)
CONTEXT = PageContext(language="vi", zone="Asia/Ho_Chi_Minh", fetched=FETCHED)
RULES = dates.rules(CONTEXT)
TITLE = "Mưa lớn ở nhiều tuyến đường chiều nay"
LEAD = "Chiều nay mưa lớn làm nhiều tuyến đường ở thành phố ngập sâu, xe cộ phải đi vòng qua đường khác."
WHO = (
    "Người dân", "Ông Nam, tổ trưởng dân phố,", "Đại diện chính quyền phường", "Một tài xế xe buýt",
    "Các hộ kinh doanh ven đường", "Cảnh sát giao thông", "Theo lãnh đạo quận, công ty thoát nước", "Trạm bơm",
)  # fmt: skip
TEXT = [
    f"{who} cho biết sự việc bắt đầu từ lúc {i + 3} giờ chiều, nước dâng nhanh và kéo dài đến tối mới rút."
    for i, who in enumerate(WHO)
]
OTHER = "Đoạn dẫn của bài báo khác nói về việc người dân thành phố phải đi làm sớm hơn vì kẹt xe."


def page(middle: str = "", tail: str = "", behind: str = "", byline: str = "") -> Extraction:
    paragraphs = [f"<p>{line}</p>" for line in TEXT]
    body = "".join(paragraphs[:4]) + middle + "".join(paragraphs[4:]) + tail
    html = (
        f"<html lang=vi><head><title>{TITLE}</title></head><body><h1>{TITLE}</h1>{byline}<h2>{LEAD}</h2>"
        f"<div class=x1>{body}</div>{behind}</body></html>"
    )
    return extract(Document(html.encode(), "https://tin.example.vn/mua-lon-123456.html"), CONTEXT)


WHOLE = "\n\n".join([LEAD, *TEXT])
BOXES = (
    "Tin liên quan", "Bài viết liên quan", "Có thể bạn quan tâm", "Bạn có thể quan tâm", "Đừng bỏ lỡ", "Đọc nhiều nhất",
    "Cùng chuyên mục", "Bài cùng chuyên mục", "Cùng tác giả", "Tin mới nhất", "Các tin khác", "Tin nên đọc", "Xem nhiều",
)  # fmt: skip


@pytest.mark.parametrize("name", BOXES)
def test_a_box_of_other_articles_is_off_wherever_it_stands(name: str) -> None:
    links = "".join(
        f"<li><a href=/b{i}.html>Bài báo khác của hôm nay số {i}</a></li>" for i in range(3)
    )
    teasers = "".join(
        f"<div><h4><a href=/c{i}.html>Một bài báo khác về giao thông số {i}</a></h4><p>{OTHER} Số {i}.</p></div>"
        for i in range(4)
    )
    for box in (
        f"<div class=q><h4>{name}</h4><ul>{links}</ul></div>",
        f"<p><b>{name}:</b></p><ul>{links}</ul>",
    ):
        assert page(middle=box).content.value == WHOLE
        assert page(tail=box).content.value == WHOLE
    whole = f"<div class=q><h3>{name}</h3>{teasers}</div>"
    assert page(tail=whole).content.value == WHOLE
    assert page(behind=whole).content.value == WHOLE


def test_a_sentence_that_begins_like_a_box_stays() -> None:
    for line in (
        "Tin liên quan đến vụ việc lan nhanh trên mạng xã hội.",
        "Bình luận về trận đấu, huấn luyện viên nói đội nhà đã chơi tốt.",
        "Theo đó, mức phạt được nâng lên gấp đôi.",
        "Chia sẻ với phóng viên, bà Lan nói gia đình đã mất hết tài sản trong trận lũ đêm qua ở huyện.",
    ):
        assert line in page(middle=f"<p>{line}</p>").content.value


@pytest.mark.parametrize(
    "line",
    [
        "Nghe đọc bài", "Giọng nữ", "Copy link", "Link bài gốc", "Lấy link!", "Sao chép liên kết", "In bài viết",
        "Chia sẻ bài viết", "Trở về đầu trang", "Gửi bình luận", "Ý kiến bạn đọc (3)", "0 bình luận", "Từ khoá: mưa lớn",
        "Ảnh minh họa", "Ảnh cắt từ clip", "Tham gia nhóm Zalo của chúng tôi", "Quảng cáo",
        "Mời quý độc giả theo dõi các chương trình của Đài trên TV Online", "(*) Tít bài do tòa soạn đặt",
        "Ghi rõ nguồn Báo Ví Dụ khi phát hành lại thông tin từ website này", "Trở lại Thời sựTrở lại Thời sự",
        "Mọi ý kiến đóng góp xin gửi về toasoan@example.vn", "Bài viết thể hiện quan điểm riêng của tác giả.",
    ],
)  # fmt: skip
def test_a_button_a_label_or_a_notice_is_off_wherever_it_stands(line: str) -> None:
    assert page(middle=f"<p>{line}</p>").content.value == WHOLE
    assert page(tail=f"<p>{line}</p>").content.value == WHOLE


@pytest.mark.parametrize("line", ["Chủ đề: mưa lớn", "Hotline: 0912.345.678", "Trở lại Thời sự"])
def test_what_is_the_papers_behind_the_text_may_be_the_articles_before_it(line: str) -> None:
    assert page(tail=f"<p>{line}</p>").content.value == WHOLE
    assert line in page(middle=f"<p>{line}</p>").content.value


SEEN = "Đường ngập sâu gần nửa mét vào chiều nay"


@pytest.mark.parametrize(
    "caption",
    [
        f"<p>{SEEN} (Ảnh: Minh Khang).</p>",
        f"<p>{SEEN}. Ảnh: Minh Khang/TTXVN</p>",
        f"<p>{SEEN}. (Ảnh: TTXVN phát)</p>",
        f"<p>{SEEN} - Ảnh: M.KHANG</p>",
        f"<p><img src=a.jpg></p><p><em>{SEEN}.</em></p>",
        f"<p><img src=a.jpg><br><i>{SEEN}.</i></p>",
        f"<table align=center><tr><td><img src=a.jpg></td></tr><tr><td><em>{SEEN}. Ảnh: M.K</em></td></tr></table>",
        f"<p class=chu-thich>{SEEN}.</p>",
        f"<div id=admzone12><p>{OTHER}</p></div>",
    ],
)
def test_the_words_of_a_picture_are_off(caption: str) -> None:
    assert page(middle=caption).content.value == WHOLE
    assert page(tail=caption).content.value == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        f"<p>{SEEN}.</p><p><img src=a.jpg></p>",
        f"<p><img src=a.jpg></p><p>{SEEN}.</p>",
        "<p><img src=a.jpg></p><p><em>Ông nghĩ gì về việc đường ngập sâu gần nửa mét vào chiều nay?</em></p>",
        f"<p>{SEEN}: {OTHER} {OTHER} {OTHER} {OTHER} Ảnh: Minh Khang</p>",
    ],
)
def test_text_beside_a_picture_stays(text: str) -> None:
    assert SEEN.casefold() in page(middle=text).content.value.casefold()


def test_a_gallery_whose_text_is_its_captions_is_kept() -> None:
    pictures = "".join(
        f"<p><img src={i}.jpg></p><p>{line[:-1]}. Ảnh: Minh Khang</p>"
        for i, line in enumerate(TEXT)
    )
    html = f"<html lang=vi><body><h1>{TITLE}</h1><h2>{LEAD}</h2><div>{pictures}</div></body></html>"
    found = extract(
        Document(html.encode(), "https://tin.example.vn/anh-mua-lon-123456.html"), CONTEXT
    )
    assert found.content.value is not None and found.content.value.count("cho biết sự việc") == len(
        TEXT
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("14g05 ngày 20-11-2026", "2026-11-20T14:05:00+07:00"),
        ("14h:05 20/11/2026", "2026-11-20T14:05:00+07:00"),
        ("20 Th11, 2026 14:05", "2026-11-20T14:05:00+07:00"),
        ("Tháng Mười Một 20, 2026", "2026-11-20T00:00:00+07:00"),
        ("20 Tháng Mười 2026 14:05", "2026-10-20T14:05:00+07:00"),
        ("Thứ Sáu, 20 tháng mười một 2026", "2026-11-20T00:00:00+07:00"),
        ("4 tháng tư, 2026", "2026-04-04T00:00:00+07:00"),
        ("5 tháng năm năm 2026", "2026-05-05T00:00:00+07:00"),
        ("5 tháng 5 năm 2026", "2026-05-05T00:00:00+07:00"),
        ("20/11/2026, 02:05 CH", "2026-11-20T14:05:00+07:00"),
        ("20/11/2026, 02:05 SA", "2026-11-20T02:05:00+07:00"),
        ("20/11/2026 12:05 SA", "2026-11-20T00:05:00+07:00"),
        ("20/11/2026 12:05 CH", "2026-11-20T12:05:00+07:00"),
        ("2 giờ 05 phút chiều 20/11/2026", "2026-11-20T14:05:00+07:00"),
        ("14:05 chiều 20/11/2026", "2026-11-20T14:05:00+07:00"),
        ("11:05 trưa 20/11/2026", "2026-11-20T11:05:00+07:00"),
        ("10:05 đêm 20/11/2026", "2026-11-20T22:05:00+07:00"),
        ("1h trước", "2026-11-21T09:00:00+07:00"),
        ("15p trước", "2026-11-21T09:45:00+07:00"),
        ("15' trước", "2026-11-21T09:45:00+07:00"),
    ],
)
def test_date_in_words(line: str, expected: str) -> None:
    found = dates.parse(line, RULES)
    assert found is not None and found.value.isoformat() == expected


@pytest.mark.parametrize(
    "line",
    ["20 Th11", "tháng Mười Một", "Số 20, tháng 11", "trước 2 giờ", "Tỷ số 2-1", "31/02/2026"],
)
def test_what_is_no_date(line: str) -> None:
    assert dates.parse(line, RULES) is None


ONE = (
    "Nội dung: Thu Hà - Thiết kế: Hoàng Long", "Nội dung: Thu Hà; Ảnh: Minh Tú; Thiết kế: Hoàng Long", "Tổng hợp: Thu Hà",
    "Biên soạn: Thu Hà", "Thu Hà Theo Nhịp sống kinh tế", "Thu Hà theo Trí thức trẻ", "Thạc sĩ Thu Hà", "GS.TSKH. Thu Hà",
    "BS.CKII Thu Hà", "Nhà văn Thu Hà", "Đại tá, PGS.TS Thu Hà", "Tin, ảnh: Thu Hà", "Tin và ảnh: Thu Hà", "Bài, ảnh: Thu Hà",
    "Ảnh, bài: Thu Hà", "Tin: Thu Hà", "Đăng bởi: Thu Hà", "Bởi Thu Hà", "Được viết bởi Thu Hà", "PV. Thu Hà", "P.V Thu Hà",
    "Thu Hà lúc 14:05 20/11/2026", "Thu Hà Theo dõi", "Thu Hà Biên tập viên", "Bút ký của Thu Hà", "Bạn đọc Thu Hà",
    "Thực hiện: Thu Hà; Ảnh: Minh Tú; Đồ họa: Hoàng Long", "Thu Hà (P/v TTXVN tại Paris)", "Thu Hà (ghi)",
)  # fmt: skip


@pytest.mark.parametrize("byline", ONE)
def test_one_name_in_a_byline(byline: str) -> None:
    assert authors.clean([byline]) == ["Thu Hà"]


@pytest.mark.parametrize(
    "byline",
    ["Thu Hà -Minh Tú", "Thu Hà- Minh Tú", "Thu Hà + Minh Tú", "Nội dung: Thu Hà, Minh Tú"],
)
def test_two_names_in_a_byline(byline: str) -> None:
    assert authors.clean([byline]) == ["Thu Hà", "Minh Tú"]


@pytest.mark.parametrize(
    "byline",
    [
        "VTV Digital",
        "Hỏi:",
        "Trả lời:",
        "Tin",
        "Nội dung:",
        "Nguồn: Internet",
        "Tổng hợp: Internet",
    ],
)
def test_nobody_in_a_byline(byline: str) -> None:
    assert authors.clean([byline]) == []


def test_a_first_name_that_means_according_to_is_a_name_elsewhere() -> None:
    assert authors.clean(["Jan Theo Müller"]) == ["Jan Theo Müller"]


DATE = "<span class=time>20/11/2026 14:05</span>"
STATED = (
    "<meta property='og:site_name' content='vidu.vn'><script type='application/ld+json'>"
    '{"@type":"NewsArticle","headline":"x","author":{"@type":"Organization","name":"Báo điện tử Ví Dụ"}}</script>'
)


@pytest.mark.parametrize(
    ("byline", "tail"),
    [
        (f"<div>{DATE}</div><div><a href=/tac-gia/thu-ha-12.html>Thu Hà</a></div>", ""),
        (f"<div>{DATE} <a href=/author/thu-ha/>Thu Hà</a></div>", ""),
        ("<p>Đăng bởi: Thu Hà | 20/11/2026 14:05</p>", ""),
        ("<p>20/11/2026 14:05 bởi Thu Hà</p>", ""),
        (DATE, "<p>Tác giả bài viết: Thu Hà</p><p>Nguồn tin: Báo Ví Dụ</p>"),
        (DATE, "<p><strong>Bài, ảnh: Thu Hà</strong></p>"),
        (DATE, "<p>Nội dung: Thu Hà</p><p>Ảnh: Minh Tú</p><p>Thiết kế: Hoàng Long</p>"),
        (DATE, "<div>Nội dung: Thu Hà<br>Ảnh: Minh Tú<br>Thiết kế: Hoàng Long</div>"),
        (
            DATE,
            "<p style='text-align:right'><strong>Thu Hà</strong> (Theo <em>Reuters, AFP</em>)</p>",
        ),
        (STATED + DATE, "<p style='text-align:right'><strong>Thu Hà</strong></p>"),
        (
            DATE,
            f"<div class=box-author><a href=/tac-gia/thu-ha.html>Thu Hà</a><p>{OTHER}</p></div>",
        ),
    ],
)
def test_who_wrote_it_and_nothing_of_it_in_the_text(byline: str, tail: str) -> None:
    found = page(byline=byline, tail=tail)
    assert (found.authors.value, found.content.value) == (["Thu Hà"], WHOLE)
    assert (
        found.published.value is not None
        and found.published.value.isoformat() == "2026-11-20T14:05:00+07:00"
    )


@pytest.mark.parametrize(
    ("tail", "credits"),
    [
        ("<p>(TTXVN/Vietnam+)</p>", ["TTXVN/Vietnam+"]),
        ("<p class=source>Theo An Ninh Tiền Tệ</p>", ["An Ninh Tiền Tệ"]),
        ("<div class=source>Nguồn: <a href=//x>Lao Động</a></div>", ["Lao Động"]),
        ("<p>(cười)</p>", []),
    ],
)
def test_the_source_behind_a_text_that_nobody_signs(tail: str, credits: list[str]) -> None:
    found = page(byline=DATE, tail=tail)
    assert (found.authors.value, found.credits.value) == ([], credits)


def test_an_author_s_link_in_another_article_s_teaser_is_nobody() -> None:
    teasers = "".join(
        f"<div class=tin-lien-quan><a href=/b{i}.html>Bài khác số {i}</a> <a href=/tac-gia/le-binh-{i}.html>Lê Bình</a></div>"
        for i in range(3)
    )
    assert page(byline=DATE, behind=teasers).authors.value == []


def when(byline: str = "", head: str = "", behind: str = "", middle: str = "") -> str | None:
    found = page(byline=head + byline, behind=behind, middle=middle).published.value
    return found.isoformat() if found is not None else None


AT = "2026-11-20T14:05:00+07:00"


@pytest.mark.parametrize(
    "behind",
    [
        "<div class=comments><div class=item><b>Lê Bình</b><span class=time>19/11/2026 18:00</span><p>Tôi cũng nghĩ vậy.</p></div></div>",
        "<ul class=tin-lien-quan><li><a href=/x.html>Bài báo khác của hôm nay</a> <span class=date>19/11/2026</span></li></ul>",
        "<ul class=z9><li><a href=/x.html>Bài báo khác của hôm nay về mưa</a> <span class=time>3 giờ trước</span></li></ul>",
    ],
)
def test_another_text_s_date_is_not_the_article_s(behind: str) -> None:
    assert when(behind=behind) is None
    assert when(DATE, behind=behind) == AT


def test_a_day_in_a_sentence_is_not_the_publication() -> None:
    line = "<p>Ngày 15/10/2026, dự án chống ngập đã được khởi công với tổng vốn gần một nghìn tỷ đồng.</p>"
    assert when(middle=line) is None
    assert when("<p>Ngày 20/11/2026 14:05</p>", middle=line) == AT


def test_the_date_behind_a_relative_label() -> None:
    assert (
        when("<div class=meta><span class=time title='20/11/2026 14:05'>20 giờ trước</span></div>")
        == AT
    )
    assert (
        when("<div class=meta><span class=time>20 giờ trước</span></div>")
        == "2026-11-20T14:00:00+07:00"
    )


def test_today_s_clock_above_the_headline_comes_after_a_date_below_it() -> None:
    html = f"<div>Thứ Bảy, 21/11/2026 10:00</div><h1>{TITLE}</h1><p>20/11/2026 14:05</p><h2>{LEAD}</h2>"
    html = f"<html lang=vi><body>{html}<div>{''.join(f'<p>{line}</p>' for line in TEXT)}</div></body></html>"
    found = extract(
        Document(html.encode(), "https://tin.example.vn/mua-lon-123456.html"), CONTEXT
    ).published.value
    assert found is not None and found.isoformat() == AT


def test_a_clock_that_a_far_site_shows_and_states_as_utc_is_its_own() -> None:
    stated = '<script type="application/ld+json">{"@type":"NewsArticle","headline":"x","datePublished":"2026-11-20T14:05:00Z"}</script>'
    assert when(DATE, stated) == AT
    assert when("<span class=time>20/11/2026 21:05</span>", stated) == "2026-11-20T21:05:00+07:00"
    assert when("", stated) == "2026-11-20T21:05:00+07:00"
