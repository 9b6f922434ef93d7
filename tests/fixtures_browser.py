"""A small stored corpus in Vietnamese and English, and a running search page over it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from newscrawler.api.access import Access
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps, SiteFacts
from newscrawler.api.server import start_in_thread
from newscrawler.items import Article
from newscrawler.store import open_store

NOW = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
SITES = {
    site: SiteFacts(id=site, name=name, hosts=(site,), language=language)
    for site, name, language in (
        ("vnexpress.net", "VnExpress", "vi"),
        ("tuoitre.vn", "Tuổi Trẻ", "vi"),
        ("dantri.com.vn", "Dân trí", "vi"),
        ("vietnamnews.vn", "Viet Nam News", "en"),
        ("silent.example", "Báo Chưa Có Bài", "vi"),
    )
}

#: Nothing of Chromium itself may ask the network for anything.
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

#: (title, first sentence) of the stories that the numbered articles are made of.
STORIES = (
    (
        "Đội tuyển bóng đá nữ thắng đậm trận mở màn",
        "Đội tuyển bóng đá nữ Việt Nam giành chiến thắng 4-0 trước đội khách.",
    ),
    (
        "Giá xăng giảm phiên thứ ba liên tiếp",
        "Từ 15 giờ chiều nay, giá xăng RON 95 giảm 420 đồng mỗi lít.",
    ),
    (
        "Hà Nội mở thêm ba tuyến xe buýt điện",
        "Ba tuyến xe buýt điện mới nối các khu đô thị phía tây với trung tâm thành phố.",
    ),
    (
        "Mưa lớn, nhiều tuyến phố Huế ngập sâu",
        "Mưa lớn từ đêm qua khiến nhiều tuyến phố ở thành phố Huế ngập sâu nửa mét.",
    ),
    (
        "Xuất khẩu cà phê lập kỷ lục mới",
        "Kim ngạch xuất khẩu cà phê mười tháng đầu năm vượt bảy tỷ USD.",
    ),
    (
        "Học sinh miền núi có thêm bốn trường nội trú",
        "Bốn trường nội trú mới đón hơn hai nghìn học sinh các huyện vùng cao.",
    ),
)
AUTHORS = ("Nguyễn Thị Minh Khai", "Trần Quốc Đạt", "Lê Hoàng Anh", "Phạm Thu Hằng")
FILLER = (
    "Theo đại diện cơ quan chức năng, công việc được chuẩn bị từ đầu năm và đã lấy ý kiến người dân trong vùng.",
    "Nhiều người dân cho biết họ chờ đợi thay đổi này từ lâu, nhưng vẫn lo ngại về chi phí trong những tháng tới.",
    "Các chuyên gia nhận định xu hướng trên sẽ kéo dài đến hết quý, trước khi có thêm số liệu chính thức.",
    "Trước đó, kế hoạch từng hai lần bị lùi lại vì thời tiết xấu và thiếu nguồn vốn.",
)
WORDS = re.findall(
    r"\S+",
    "thành phố người dân công ty dự án nhà máy sản xuất tăng giảm tuần trước kế hoạch mới đầu tư giao thông đường cầu "
    "trường học bệnh viện mùa vụ lúa gạo thủy sản du lịch khách sạn chuyến bay tàu biển cảng hàng hóa thị trường giá cả "
    "ngân hàng lãi suất cổ phiếu vàng xăng dầu điện nước môi trường rừng biển đảo lễ hội văn hóa âm nhạc phim sách báo",
)
ATTACK = '<script>window.stolen=1</script><img src=x onerror="window.stolen=1">'


def article_id(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def make_article(name: str, title: str, content: str, **changes: Any) -> Article:
    values: dict[str, Any] = {
        "id": article_id(name),
        "url": f"https://vnexpress.net/{name}.html",
        "site": "vnexpress.net",
        "title": title,
        "content": content,
        "published": NOW - timedelta(hours=2),
        "authors": ["Nguyễn Thị Minh Khai"],
        "language": "vi",
        "discovered": NOW - timedelta(hours=1, minutes=50),
        "fetched": NOW - timedelta(hours=1, minutes=48),
        "origins": {
            "title": "selector:h1.title-detail",
            "content": "selector:article.fck_detail",
            "published": "json-ld",
        },
        "confidence": {"title": 0.98, "content": 0.95, "published": 0.9},
        "selector_version": "vnexpress.net@3",
        "raw_ref": "worker-1-00001.warc.gz:10240:38211",
    }
    return Article(**(values | changes))


def own_text(seed: int) -> str:
    """A paragraph that no other article shares enough of to be taken for a copy."""
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(60)).capitalize() + "."


def corpus() -> list[Article]:
    """66 articles on two pages and more: 60 in Vietnamese, one hostile, one with long
    words, the rest special."""
    articles = []
    sites = ("vnexpress.net", "tuoitre.vn", "dantri.com.vn")
    for n in range(60):
        title, first = STORIES[n % len(STORIES)]
        site = sites[(n // len(STORIES)) % len(sites)]
        paragraphs = [
            f"{first} Đây là bản tin số {n + 1}.",
            own_text(n),
            FILLER[n % len(FILLER)],
            own_text(n + 1000),
        ]
        articles.append(
            make_article(
                f"tin-{n}",
                f"{title} – bản tin {n + 1}",
                "\n\n".join(paragraphs),
                url=f"https://{site}/tin-{n}.html",
                site=site,
                published=NOW - timedelta(hours=3 * n + 1),
                authors=[AUTHORS[n % len(AUTHORS)]] if n % 5 else [],
                credits=[] if n % 5 else ["TTXVN"],
                section=("Thể thao", "Kinh doanh", "Thời sự")[n % 3],
                summary="Tóm tắt: " + first,
            )
        )
    articles.append(
        make_article(
            "attack", f"Tấn công {ATTACK}", f"Nội dung độc hại {ATTACK} ở giữa bài viết.", url="javascript:alert(1)",
            authors=[ATTACK], section=ATTACK, summary=ATTACK,
        )
    )  # fmt: skip
    articles.append(
        make_article(
            "wide", "W" * 180, "Từ dài: " + "x" * 400, url="https://vnexpress.net/" + "y" * 300
        )
    )
    articles.append(
        make_article(
            "english", "Central bank keeps key rate at 4.5 per cent",
            "The State Bank of Viet Nam on Friday kept its refinancing rate unchanged.\n\nAnalysts had expected the decision.",
            site="vietnamnews.vn", url="https://vietnamnews.vn/economy/rate.html", language="en", authors=["Thu Ha"],
        )
    )  # fmt: skip
    story = "\n\n".join(f"Đoạn {k}: {text}" for k, text in enumerate(FILLER * 2))
    for site, name, hours in (("tuoitre.vn", "cap-a", 9), ("dantri.com.vn", "cap-b", 8)):
        articles.append(
            make_article(name, "Cầu mới qua sông Hương thông xe", story, site=site, url=f"https://{site}/{name}.html",
                         published=NOW - timedelta(hours=hours))
        )  # fmt: skip
    articles.append(
        make_article(
            "edited",
            "Số người bị thương tăng",
            "Có 12 người bị thương.\n\nNguyên nhân đang được điều tra.",
        )
    )
    return articles


async def fill(folder: Path) -> None:
    store = open_store("", folder)
    try:
        await store.put(corpus())
        await store.put(
            [
                make_article(
                    "edited", "Số người bị thương tăng lên 13", "Có 13 người bị thương.\n\nNguyên nhân đang được điều tra.",
                    fetched=NOW - timedelta(minutes=30),
                )
            ]
        )  # fmt: skip
    finally:
        await store.close()


@pytest.fixture(scope="session")
def filled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def search_page(filled_folder: Path) -> Iterator[str]:
    """The address of a real server over the corpus, without Redis."""
    deps = Deps(
        store=open_store("", filled_folder), access=Access(), sites=SITES, redis_error="no Redis in this test",
        clock=lambda: NOW.timestamp(),
    )  # fmt: skip
    running = start_in_thread(create_app(deps))
    yield running.url
    running.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        text = "Chromium is not installed (Debian: make browser-deps)"
        if os.environ.get("CI"):
            pytest.fail(text)
        pytest.skip(f"skipped: {text}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
