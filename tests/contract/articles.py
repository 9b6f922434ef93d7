"""Articles made up for the contract suite."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from newscrawler.items import Article

START = datetime(2026, 8, 1, 7, 0, tzinfo=UTC)
#: Vietnamese syllables without a meaning in their order; no test asks for one of them.
FILLER = [
    "người",
    "trong",
    "những",
    "được",
    "không",
    "đã",
    "với",
    "cho",
    "một",
    "các",
    "này",
    "khi",
    "đến",
    "về",
    "ra",
    "vào",
    "cũng",
    "như",
    "đang",
    "sẽ",
    "theo",
    "từ",
    "đó",
    "làm",
    "phải",
    "còn",
    "nhiều",
    "hơn",
    "sau",
    "trước",
    "trên",
    "dưới",
    "giữa",
    "ngày",
    "tháng",
    "năm",
    "giờ",
    "phút",
    "công",
    "việc",
    "cuộc",
    "sống",
    "gia",
    "đình",
    "bạn",
    "bè",
    "đường",
    "phố",
]


def article_id(name: str) -> str:
    return hashlib.md5(name.encode()).hexdigest()


def article(name: str, title: str = "", content: str = "", **fields: Any) -> Article:
    """``name`` gives id and URL; published an hour after START unless said."""
    site = fields.pop("site", "vnexpress.net")
    fields.setdefault("published", START + timedelta(hours=1))
    return Article(
        id=article_id(name),
        url=f"https://{site}/{name}.html",
        site=site,
        title=title,
        content=content,
        **fields,
    )


def filler(seed: int, words: int = 120) -> str:
    rng = random.Random(seed)
    return " ".join(
        rng.choice(FILLER) + rng.choice(["", "", f"{rng.randrange(10_000)}"]) for _ in range(words)
    )


CORPUS = [
    article("bao", "Bão số 5 đổ bộ Hà Nội", "Mưa lớn gây ngập nhiều tuyến đường ở thủ đô Hà Nội.",
            authors=["Nguyễn Văn An", "Trần Thị Bình"], published=START + timedelta(days=1), section="Xã hội"),
    article("vang", "Giá vàng tăng mạnh", "Sáng nay giá vàng trong nước vượt 120 triệu đồng một lượng tại TP.HCM.",
            site="tuoitre.vn", authors=["Lê An"], published=START + timedelta(days=2), section="Thể thao",
            keywords=["SJC"]),
    article("ma", "Ngôi nhà ma", "Chuyện kể về con ma trong ngôi nhà cũ.", site="tuoitre.vn",
            published=START + timedelta(days=3)),
    article("ma-mới", "Má tôi", "Má nấu cơm, má kể chuyện ngày xưa.", published=START + timedelta(days=4)),
    article("covid", "Vaccine COVID-19 mới", "The new vaccine was approved; it isn't expensive at 3.5 dollars.",
            site="tuoitre.vn", published=START + timedelta(days=5), language="en-GB"),
    article("zh", "中国经济增长", "国家统计局今天公布的数据显示，中国经济第三季度增长百分之四点八，高于市场预期。", site="news.cn"),
    article("ja", "日本の天気予報", "気象庁によると、あすは関東地方で激しい雨が降るおそれがあるということです。", site="nhk.or.jp"),
    article("th", "ข่าววันนี้", "กรมอุตุนิยมวิทยาเตือนฝนตกหนักในภาคใต้ของประเทศไทยวันนี้", site="thairath.co.th"),
    article("ko", "오늘의 날씨", "서울에서 오늘 오후부터 비가 내리겠습니다.", site="yna.co.kr"),
    article("de", "Größe der Straßen", "Müller über die Ölpreise in München.", site="tagesschau.de", language="de"),
]  # fmt: skip
