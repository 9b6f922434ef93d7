"""`make pictures`: the pictures of README and docs/pictures, of a real server over simulated news.

    python -m tests.newsroom [--out docs/pictures] [--serve] [--articles 900]

Fills a store in a temporary folder with news that resemble those of the sites in sites.json
(invented names and numbers), serves it, and takes pictures with Chromium. --serve takes none and
leaves the server running.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from newscrawler.api.access import Access
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps, SiteFacts
from newscrawler.api.server import start_in_thread
from newscrawler.fleet.alarms import Verdict
from newscrawler.fleet.incidents import Incidents
from newscrawler.fleet.registry import Beat, Registry, worker_key
from newscrawler.frontier import connect, redis_server
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.items import Article
from newscrawler.store import open_store
from newscrawler.store.days import zone_of
from tests.crawl.fleet_day import START, Fleet
from tests.fixtures_fleet import fill_minutes

ROOT = Path(__file__).resolve().parents[1]
NOW = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
SITES = {
    "baoviet.example": "Báo Việt",
    "tinnhanh.example": "Tin Nhanh 24h",
    "nguoidan.example": "Người Dân",
    "thoidai.example": "Thời Đại",
    "daidoan.example": "Đại Đoàn",
    "kinhte.example": "Kinh Tế Ngày Nay",
}
PEOPLE = (
    "Nguyễn Minh Khuê", "Trần Quốc Đạt", "Lê Hoàng Anh", "Phạm Thu Hằng", "Võ Ngọc Lan", "Đỗ Gia Bảo",
    "Bùi Thanh Tâm", "Hoàng Yến Nhi", "Ngô Đức Trí", "Đặng Hải Yến", "Phan Tấn Phát", "Vũ Kim Chi",
    "Mai Xuân Hòa", "Lý Bảo Trân", "Trịnh Công Nam", "Hồ Diệu Linh",
)  # fmt: skip
PLACES = (
    "Hà Nội",
    "Huế",
    "Đà Nẵng",
    "Quảng Nam",
    "Cần Thơ",
    "Hải Phòng",
    "Nghệ An",
    "TP HCM",
    "Gia Lai",
)
#: Section, keywords, titles, sub-headings, sentences; and how much is written of it at which time
#: (days before now, how many days it lasts, weight).
TOPICS: tuple[dict[str, Any], ...] = (
    {
        "section": "Thời sự",
        "keywords": ["bão số 9", "mưa lũ", "miền Trung"],
        "titles": (
            "Bão số 9 đổi hướng, {p} sơ tán {n} nghìn dân",
            "Mưa lũ sau bão số 9: {p} ngập sâu {n} điểm",
            "{p} cho học sinh nghỉ học tránh bão số 9",
            "Hàng nghìn tàu cá ở {p} vào bờ tránh bão số 9",
            "Thiệt hại sau bão số 9 ở {p}: {n} nhà tốc mái",
        ),
        "subs": (
            "Gió giật cấp 11 ven biển",
            "Người dân được đưa đến nơi an toàn",
            "Đường sắt tạm dừng",
        ),
        "text": (
            "Đài khí tượng cho biết lúc {n} giờ, tâm bão cách bờ biển {p} khoảng {m} km về phía đông.",
            "Chính quyền {p} yêu cầu hoàn tất việc di dời các hộ ven biển trước khi trời tối.",
            "Lượng mưa phổ biến từ {m} đến 300 mm, có nơi hơn 400 mm trong hai ngày.",
            "Lực lượng cứu hộ chuẩn bị {n} ca nô và hàng chục xe tải ở các xã trũng thấp.",
            "Người dân {p} chằng chống nhà cửa, tích trữ gạo và nước uống cho ít nhất ba ngày.",
            "Các hồ thủy điện ở thượng nguồn được yêu cầu hạ mực nước để đón lũ.",
            "Nhiều chuyến bay đi và đến {p} bị hủy hoặc lùi giờ trong ngày.",
        ),
        "waves": ((3, 4, 14.0), (41, 5, 5.0)),
    },
    {
        "section": "Kinh doanh",
        "keywords": ["giá xăng", "năng lượng"],
        "titles": (
            "Giá xăng giảm phiên thứ {n} liên tiếp",
            "Giá xăng có thể tăng vào tuần tới",
            "Doanh nghiệp vận tải ở {p} giảm cước sau khi giá xăng hạ",
            "Giá xăng RON 95 xuống thấp nhất {n} tháng",
        ),
        "subs": ("Quỹ bình ổn không trích lập", "Cước vận tải bắt đầu giảm"),
        "text": (
            "Từ 15 giờ, mỗi lít xăng RON 95 giảm {m} đồng, dầu diesel giảm {n}0 đồng.",
            "Liên bộ cho biết giá thế giới biến động quanh mức {m} USD một thùng trong kỳ điều hành.",
            "Một hãng taxi tại {p} nói sẽ điều chỉnh cước trong vòng một tuần.",
            "Nhà bán lẻ nhận định nguồn cung trong nước ổn định đến cuối năm.",
            "Đây là lần điều chỉnh thứ {n} kể từ đầu quý, theo chu kỳ bảy ngày.",
        ),
        "waves": ((0, 130, 1.6), (16, 6, 3.0)),
    },
    {
        "section": "Thể thao",
        "keywords": ["bóng đá nữ", "đội tuyển Việt Nam"],
        "titles": (
            "Bóng đá nữ: đội tuyển Việt Nam thắng {n}-0 ở trận mở màn",
            "HLV đội tuyển bóng đá nữ chốt {m} cầu thủ",
            "Bóng đá nữ Việt Nam vào bán kết giải châu Á",
            "{a}: 'Chúng tôi đã chờ trận bán kết này {n} năm'",
        ),
        "subs": ("Hiệp hai bùng nổ", "Lịch thi đấu tiếp theo"),
        "text": (
            "Đội tuyển bóng đá nữ Việt Nam có chiến thắng đậm trước đội khách trên sân {p}.",
            "Bàn mở tỷ số đến ở phút {n} sau một pha phối hợp bên cánh trái.",
            "Huấn luyện viên nói các học trò đã tuân thủ chiến thuật và giữ được sự tập trung.",
            "Gần {m}00 khán giả đến sân, con số lớn nhất của một trận bóng đá nữ năm nay.",
            "Đối thủ ở vòng sau sẽ được xác định vào tối mai.",
        ),
        "waves": ((8, 12, 4.0), (70, 20, 2.0)),
    },
    {
        "section": "Đời sống",
        "keywords": ["xe buýt điện", "giao thông"],
        "titles": (
            "{p} mở thêm {n} tuyến xe buýt điện",
            "Xe buýt điện ở {p}: khách tăng {m} %",
            "Người {p} đi làm bằng xe buýt điện ra sao",
        ),
        "subs": ("Vé tháng rẻ hơn xe máy", "Thiếu trạm sạc"),
        "text": (
            "{n} tuyến xe buýt điện mới nối các khu đô thị phía tây với trung tâm {p}.",
            "Mỗi xe chở được {m} người, chạy khoảng 200 km sau một lần sạc.",
            "Nhiều hành khách mong có làn đường riêng để xe chạy đúng giờ.",
            "Sở Giao thông cho biết sẽ thay toàn bộ xe chạy dầu trong vòng {n} năm.",
        ),
        "waves": ((0, 140, 1.4),),
    },
    {
        "section": "Kinh doanh",
        "keywords": ["xuất khẩu", "cà phê"],
        "titles": (
            "Xuất khẩu cà phê lập kỷ lục {n} tỷ USD",
            "Giá cà phê ở {p} lên {m} nghìn đồng mỗi kg",
            "Nông dân {p} giữ lại cà phê chờ giá",
        ),
        "subs": ("Nguồn cung thế giới thiếu hụt",),
        "text": (
            "Kim ngạch xuất khẩu cà phê mười tháng vượt {n} tỷ USD, cao nhất từ trước đến nay.",
            "Tại {p}, thương lái thu mua với giá {m} nghìn đồng một kg, tăng mạnh so với đầu vụ.",
            "Hiệp hội khuyến cáo nông dân không mở rộng diện tích ồ ạt.",
            "Thị trường châu Âu chiếm gần một nửa lượng hàng xuất đi.",
        ),
        "waves": ((0, 140, 1.5),),
    },
    {
        "section": "Giáo dục",
        "keywords": ["tuyển sinh", "học phí"],
        "titles": (
            "{n} trường đại học công bố phương án tuyển sinh",
            "Học phí đại học ở {p} tăng {m} %",
            "{p} xây thêm {n} trường nội trú cho học sinh vùng cao",
        ),
        "subs": ("Thêm cách xét tuyển", "Học bổng cho sinh viên khó khăn"),
        "text": (
            "{n} trường đại học cho biết giữ ổn định chỉ tiêu và thêm một cách xét tuyển.",
            "Mức học phí mới cao hơn năm trước khoảng {m} phần trăm tùy ngành.",
            "Phụ huynh ở {p} mong các trường công bố sớm để con em chuẩn bị.",
            "Các trường nội trú mới sẽ đón hơn hai nghìn học sinh từ năm học tới.",
        ),
        "waves": ((0, 140, 1.2),),
    },
)
LINKS = (
    "Theo kế hoạch, công việc được chia làm {n} giai đoạn và có báo cáo hằng tuần.",
    "{a}, người dân {p}, nói bà đã theo dõi tin tức suốt mấy ngày qua.",
    "Ông {a} cho rằng cần thêm số liệu trước khi kết luận về tác động lâu dài.",
    "Một nhóm chuyên gia ở {p} sẽ đến khảo sát trong {n} ngày tới.",
    "Trước đó, {m} ý kiến đã được gửi đến cơ quan chức năng.",
    "Chi phí ước tính khoảng {m} tỷ đồng, lấy từ ngân sách địa phương.",
    "Cuộc họp ở {p} kéo dài đến {n} giờ và kết thúc với sự đồng thuận của các bên.",
    "So với cùng kỳ năm ngoái, con số này cao hơn {n} phần trăm.",
)


def _said(text: str, rng: random.Random) -> str:
    return text.format(
        p=rng.choice(PLACES), n=rng.randint(2, 19), m=rng.randint(20, 90), a=rng.choice(PEOPLE)
    )


def _story(topic: dict[str, Any], rng: random.Random) -> tuple[str, str, list[str], str]:
    """Title, text, sub-headings, summary."""
    title = _said(rng.choice(topic["titles"]), rng)
    lines = [_said(one, rng) for one in rng.sample(topic["text"], len(topic["text"]))]
    lines += [_said(one, rng) for one in rng.sample(LINKS, 5)]
    subs = list(rng.sample(topic["subs"], len(topic["subs"])))
    parts = [" ".join(lines[:2])]
    rest = [" ".join(lines[i : i + 2]) for i in range(2, len(lines), 2)]
    for i, paragraph in enumerate(rest):
        if i % 2 == 1 and i // 2 < len(subs):
            parts.append(subs[i // 2])
        parts.append(paragraph)
    return title, "\n\n".join(parts), subs, lines[-1]


def _article(number: int, site: str, when: datetime, **values: Any) -> Article:
    identity = hashlib.blake2b(f"{site}{number}".encode(), digest_size=16).hexdigest()
    found = when + timedelta(minutes=2, seconds=number % 60)
    given: dict[str, Any] = {
        "id": identity, "url": f"https://{site}/tin-{number}.html", "site": site, "published": when,
        "language": "vi", "discovered": found, "fetched": found + timedelta(seconds=40),
        "origins": {"title": "json-ld", "content": "generic", "published": "json-ld", "authors": "meta"},
        "confidence": {"title": 0.98, "content": 0.93, "published": 0.95, "authors": 0.9},
    }  # fmt: skip
    return Article(**(given | values))


def news(many: int, seed: int = 9) -> Iterator[Article]:
    """Articles of half a year, some of them copied by other sites within hours."""
    rng = random.Random(seed)
    waves = [(topic, wave) for topic in TOPICS for wave in topic["waves"]]
    weights = [wave[1] ** 0.6 * wave[2] for _, wave in waves]
    for number in range(many):
        topic, (ago, days, _) = rng.choices(waves, weights)[0]
        shape = rng.triangular(0, days, 0) if ago else rng.uniform(0, days)
        when = NOW - timedelta(
            days=ago + days - shape if ago else shape, minutes=rng.randint(5, 900)
        )
        title, content, subs, summary = _story(topic, rng)
        site = rng.choice(list(SITES))
        values: dict[str, Any] = {
            "title": title, "content": content, "section": topic["section"], "summary": summary,
            "keywords": topic["keywords"], "subheadings": subs,
            "authors": [rng.choice(PEOPLE)] if rng.random() < 0.8 else [],
            "credits": [] if rng.random() < 0.8 else ["TTXVN"],
        }  # fmt: skip
        yield _article(number, site, when, **values)
        if rng.random() < 0.16:
            others = [one for one in SITES if one != site]
            for later, other in enumerate(rng.sample(others, rng.randint(1, 4)), 1):
                at = min(when + timedelta(minutes=37 * later), NOW - timedelta(minutes=1))
                yield _article(number, other, at, **values)


async def fill(folder: Path, many: int) -> None:
    store = open_store("", folder)
    try:
        articles = list(news(many))
        for i in range(0, len(articles), 50):
            await store.put(articles[i : i + 50])
        edited = next(a for a in articles if "bão số 9" in a.title and a.authors)
        edited.title += " (cập nhật)"
        edited.content = (
            edited.content.replace("200 km", "240 km") + "\n\nĐến trưa nay đã có điện trở lại."
        )
        edited.fetched = NOW - timedelta(minutes=20)
        await store.put([edited])
        await store.refresh()
    finally:
        await store.close()


async def beat(redis_url: str) -> None:
    """Two workers at work, as the line above the hits shows them."""
    client = connect(redis_url, single=False)
    now_ms = int(NOW.timestamp() * 1000)
    for number, (pages, rate) in enumerate(((18_204, 9.4), (17_950, 8.8)), 1):
        worker = Beat(
            f"w{number}-1-abcd1234", f"w{number}", number, beat_ms=now_ms, started_ms=now_ms
        )
        worker.pages, worker.pages_per_s, worker.leases, worker.in_flight = pages, rate, 6, 5
        worker.memory_bytes, worker.cpu_percent = 470_000_000 + 900 * pages, 7.5 * rate
        await Registry(client, clock=NOW.timestamp).beat(worker)
        await client.persist(worker_key(worker.id))  # until the pictures are taken
    await fill_minutes(client, minutes=340, workers=0)
    await client.aclose()


def serve(folder: Path) -> Any:
    redis_url = redis_server.ensure(folder)
    asyncio.run(beat(redis_url))
    client = connect(redis_url, single=False)
    sites = {
        one: SiteFacts(id=one, name=name, hosts=(one,), language="vi")
        for one, name in SITES.items()
    }
    deps = Deps(
        store=open_store("", folder), access=Access(), sites=sites, clock=NOW.timestamp,
        registry=Registry(client, clock=NOW.timestamp), zone=zone_of("Asia/Ho_Chi_Minh"),
        frontier=Frontier(client, FrontierConfig(shards=1), "search-page"),
    )  # fmt: skip
    return start_in_thread(create_app(deps))


async def work_a_day(folder: Path, redis_url: str) -> None:
    """A fleet over these sites, of which one falls silent, one loses its authors and one answers
    with challenges for two hours."""
    client: Any = connect(redis_url, single=False)
    fleet = Fleet(client, folder, len(SITES), seed=3)
    fleet.sites = dict(zip(SITES, (420, 360, 300, 240, 160, 90), strict=True))
    await fleet.begin()
    names = [
        {"id": one, "home": f"https://{one}/", "name": name, "enabled": True}
        for one, name in SITES.items()
    ]
    (folder / "sites.json").write_text(json.dumps({"sites": names}), encoding="utf-8")
    silent, bare, challenged = list(SITES)[3], list(SITES)[1], list(SITES)[4]
    incidents = Incidents(client)
    for half_hour in range(48):
        hour = half_hour // 2
        fleet.faults.silent = {silent} if hour >= 3 else set()
        fleet.faults.without_authors = {bare}
        fleet.faults.challenged = {challenged} if hour in (10, 11) else set()
        fleet.faults.late = hour == 15
        if half_hour == 23:
            lost = Verdict("site_silent", silent, "no new article in 8 h, 76 are usual")
            for at in (fleet.now, fleet.now + 120_000):
                await incidents.note(at, [lost], ())
        await fleet.work(30)
    store = open_store("", folder)
    midnight = datetime.fromtimestamp(START / 1000, UTC)
    for site, sums in (await fleet.registry.sites()).items():
        times = [midnight + timedelta(seconds=86_400 * n // sums.new) for n in range(sums.new)]
        values = {"title": "Tin", "content": "Bài."}
        await store.put([_article(n, site, when, **values) for n, when in enumerate(times)])
    await store.close()
    tokens = {"llm/calls": 14, "llm/tokens/in": 212_000, "llm/tokens/out": 9_400}
    await fleet.registry.add(tokens, {}, fleet.now - 3_600_000)
    await client.aclose()


def report(folder: Path) -> Path:
    """The page of `scrapy report` of that day."""
    redis_url = redis_server.ensure(folder)
    try:
        asyncio.run(work_a_day(folder, redis_url))
        file = folder / "report.html"
        day = f"{datetime.fromtimestamp(START / 1000, UTC):%Y-%m-%d}"
        given = {
            "DATA_DIR": str(folder), "REDIS_URL": redis_url, "READER_ZONE": "UTC",
            "SITES_FILE": str(folder / "sites.json"), "LLM_PRICE_IN": "0.15", "LLM_PRICE_OUT": "0.6",
        }  # fmt: skip
        command = [sys.executable, "-m", "scrapy", "report", "--day", day, "-o", str(file)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, **given}, check=True, timeout=120)
        return file
    finally:
        redis_server.stop(folder)


#: File, address, language, theme, width, height, what is clicked before.
PICTURES = (
    ("search", "/?q=b%C3%A3o+s%E1%BB%91+9", "vi", "light", 1200, 900, ".copies summary"),
    ("search-narrow", "/?q=b%C3%A3o+s%E1%BB%91+9", "vi", "dark", 390, 844, ""),
    ("article", "ARTICLE", "vi", "light", 1200, 900, ""),
    ("fleet", "/fleet?hours=6", "en", "light", 1200, 900, ""),
    ("report", "REPORT", "en", "light", 1200, 1500, ""),
    ("attention", "/attention?q=b%C3%A3o+OR+%22gi%C3%A1+x%C4%83ng%22&per=day", "en", "light", 1200, 760, ""),
)  # fmt: skip


def take(url: str, report_url: str, out: Path) -> None:
    places = {"ARTICLE": f"{url}/?q=title%3A%22c%E1%BA%ADp+nh%E1%BA%ADt%22", "REPORT": report_url}
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        sys.exit("Chromium is not installed (Debian: make browser-deps)")
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        for name, address, language, theme, width, height, clicked in PICTURES:
            context = browser.new_context(
                viewport={"width": width, "height": height}, locale=language, color_scheme=theme
            )
            page = context.new_page()
            page.goto(places.get(address) or url + address)
            if address == "ARTICLE":
                page.locator(".hit h2 a").first.click()
                page.wait_for_load_state()
            if clicked:
                page.locator(clicked).first.click()
            page.evaluate("window.scrollTo(0, 0)")
            page.screenshot(path=str(out / f"{name}.png"))
            context.close()
        browser.close()
    compress(out)


def compress(folder: Path) -> None:
    """255 colours are enough for pages, and a third of the size."""
    from PIL import Image

    for name, *_ in PICTURES:
        file = folder / f"{name}.png"
        with Image.open(file) as picture:
            small = picture.convert("RGB").quantize(255, dither=Image.Dither.NONE)
        small.save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--serve", action="store_true", help="leave the server running")
    parser.add_argument("--articles", type=int, default=900)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(Path(folder), options.articles))
        running = serve(Path(folder))
        try:
            if options.serve:
                print(running.url, flush=True)
                while True:
                    time.sleep(3600)
            with tempfile.TemporaryDirectory() as apart:
                take(running.url, report(Path(apart)).as_uri(), options.out)
        finally:
            running.stop()
            redis_server.stop_if_last(Path(folder))


if __name__ == "__main__":
    main()
