"""Leads in any element, the paper's name before them, teasers and lines that lead to other
pages; made-up pages."""

from __future__ import annotations

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.extraction.vietnamese import without_paper_name

LEAD = "Sáng 15/8, cây cầu nối hai bờ sông Hồng chính thức thông xe, rút ngắn quãng đường đi lại của hàng chục nghìn người dân."
OTHER = "Người dân phố cổ kể chuyện giữ nghề làm đèn lồng qua bốn thế hệ"
ITS_LEAD = (
    "Bốn đời nhà ông Hùng làm đèn lồng, nay chỉ còn một người cháu theo nghề của tổ tiên để lại."
)


def told(first: int, last: int) -> list[str]:
    return [
        f"Đoạn {n} kể lại việc thi công cây cầu, số vốn đã bỏ ra và những người dân hai bên bờ sông đã chờ đợi ra sao."
        for n in range(first, last)
    ]


def bridge(above: str, inside: str = "") -> list[str]:
    """Paragraphs of a page with ``above`` its text, and ``inside`` it behind the fourth."""
    title = "Hà Nội thông xe cầu mới qua sông Hồng sau ba năm thi công"
    body = (
        "".join(f"<p>{p}</p>" for p in told(0, 4))
        + inside
        + "".join(f"<p>{p}</p>" for p in told(4, 9))
    )
    html = f"<html lang=vi><head><title>{title}</title></head><body><div class=a><h1>{title}</h1><div>Thứ bảy, 15/08/2026, 07:30</div>{above}<div class=b>{body}</div></div></body></html>"
    page = Document(html.encode(), "https://www.vidu.vn/thoi-su/cau-moi-185260815.htm")
    return (extract(page, PageContext(language="vi")).content.value or "").split("\n\n")


@pytest.mark.parametrize(
    "prefix",
    ["Kinhtedothi - ", "LĐO | ", "QĐND Online - ", "VietTimes -- ", "baodautu.vn - ", "NDO -", "Báo Giao thông - ", "(Vietnam+) - "],
)  # fmt: skip
def test_the_papers_name_before_a_lead_is_off(prefix: str) -> None:
    assert without_paper_name(prefix + LEAD) == LEAD


@pytest.mark.parametrize(
    "line",
    [
        "NATO-Nga đối đầu trong vùng biển mà cả hai bên đều coi là của mình.",
        "Microsoft - Hãng phần mềm lớn nhất thế giới - sẽ mở văn phòng tại Hà Nội.",
    ],
)
def test_a_lead_that_begins_with_a_name_keeps_it(line: str) -> None:
    assert without_paper_name(line) == line


@pytest.mark.parametrize(
    "lead",
    [
        "<div class=x1>{}</div>",
        "<ul class=x2><li>{}</li></ul>",
        "<h2 class=x3>{}</h2>",
        "<p><strong>(NLĐO) - {}</strong></p>",
    ],
)
def test_a_lead_is_one_whatever_element_it_stands_in(lead: str) -> None:
    assert bridge(lead.format(LEAD)) == [LEAD, *told(0, 9)]


def test_a_lead_that_the_text_says_again_with_the_papers_name_stands_once() -> None:
    assert bridge(f"<h2 class=sapo>{LEAD}</h2><p><strong>(Dân trí) - {LEAD}</strong></p>") == [
        LEAD,
        *told(0, 9),
    ]


@pytest.mark.parametrize(
    "box",
    [
        f"<div class=x1><a href=/a><img src=a.jpg></a><h4><a href=/a>{OTHER}</a></h4><p>{ITS_LEAD}</p></div>",
        f"<div class=x2><div>Chuyện khác</div><div><a href=/a>{OTHER}</a><p>{ITS_LEAD}</p></div><div><a href=/b>{OTHER}?</a><p>{ITS_LEAD} Còn nữa.</p></div></div>",
        f"<p><strong><a href=/a>{OTHER}.</a></strong></p>",
        "<p>Sự kiện: <a href=/e>Hạ tầng giao thông Hà Nội</a></p>",
        "<p><strong>Đăng ký kênh YouTube của báo <a href=/y>tại đây</a> để xem video mới nhất.</strong></p>",
        "<p>Tải ứng dụng của báo <a href=/app>tại đây</a> để đọc tin nhanh hơn.</p>",
        "<div><p>Bài viết có hữu ích với bạn không?</p><p>Đánh giá: 4.5/5 (12 lượt)</p></div>",
        "<div type=minigame><p>Dự đoán đúng để nhận quà mỗi ngày cùng chúng tôi trong suốt tháng này nhé các bạn!</p></div>",
    ],
)  # fmt: skip
def test_what_leads_to_another_page_is_off_without_a_name(box: str) -> None:
    assert [p for p in bridge(f"<p class=sapo>{LEAD}</p>", box) if p != "Chuyện khác"] == [
        LEAD,
        *told(0, 9),
    ]


def test_a_list_of_things_each_with_its_link_is_text() -> None:
    items = "".join(
        f"<div><h3><a href=//shop{n}.vn>Chiếc máy ảnh thứ {n} đáng mua của năm nay</a></h3><p>Chiếc thứ {n} chụp rõ cả khi trời tối, nhẹ và bền, giá lại vừa túi tiền của người mới chơi ảnh lần đầu.</p></div>"
        for n in range(6)
    )
    assert sum(p.startswith("Chiếc thứ") for p in bridge(f"<p class=sapo>{LEAD}</p>", items)) == 6
