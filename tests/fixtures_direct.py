"""A page of a story that no rule reads: its template calls the boxes of the text "comment"."""

from __future__ import annotations

import json
from typing import Any

URL = "https://direct.example.vn/thoi-su/bao-so-5-do-bo-4954005.html"
HEADLINE = "Bão số 5 đổ bộ Quảng Bình trong đêm"
LINES = [
    "Cơn bão số 5 đã đổ bộ vào đất liền tỉnh Quảng Bình lúc 4 giờ sáng nay với gió giật cấp 12.",
    "Hàng nghìn người dân ven biển đã được sơ tán đến các trường học từ chiều hôm trước.",
    "Chính quyền chưa xác nhận có thiệt hại về người tính đến 8 giờ sáng.",
    "Các chuyến bay đến Đồng Hới bị hủy trong cả ngày vì mưa lớn kéo dài.",
]
ANSWER: dict[str, Any] = {
    "title": HEADLINE,
    "published": "04/08/2026 10:30",
    "authors": ["Trần Thị Bình"],
    "paragraphs": LINES,
}


def story_page(*, headline: bool = True, free: bool | None = None, extra: str = "") -> bytes:
    """``headline`` False: neither heading nor statement names it, the text alone does."""
    stated: dict[str, Any] = {"@type": "NewsArticle", "datePublished": "x"}
    if headline:
        stated["headline"] = HEADLINE
    if free is not None:
        stated["isAccessibleForFree"] = free
    title = f"<title>{HEADLINE}</title>" if headline else ""
    head = f"<h1>{HEADLINE}</h1>" if headline else f"<div class=comment>{HEADLINE}</div>"
    text = "".join(f"<div class=comment>{line}</div>" for line in LINES)
    by = "<div class=comment>04/08/2026 10:30</div><div class=comment>Trần Thị Bình</div><div class=comment>TTXVN</div>"
    return (
        f"<html lang=vi><head>{title}<script type='application/ld+json'>{json.dumps(stated)}</script></head><body>{head}"
        f"<section class=comments>{by}{text}{extra}</section><footer>© 2026 Báo</footer></body></html>"
    ).encode()
