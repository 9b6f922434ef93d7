"""A site's seeds from its home page."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from newscrawler.discovery import proposal
from newscrawler.discovery.onboarding import (
    MAX_SECTIONS,
    Found,
    add_index,
    announced_feeds,
    examine,
    looks_like_feed,
    looks_like_sitemap,
    menu,
)
from newscrawler.extraction.document import Document

HOME = """<!DOCTYPE html><html lang="vi-VN"><head><title>Báo Mới - Tin hôm nay</title>
<link rel="alternate" type="application/rss+xml" href="/rss/home.rss"><link rel="alternate" hreflang="en" href="/en/">
<link rel="sitemap" type="application/xml" href="/sitemap.xml"></head><body>
<header><a href="/"><img src="/logo.png"></a><ul class="main-menu">
<li><a href="/thoi-su">Thời sự</a><li><a href="/the-gioi.htm?utm_source=menu">Thế giới</a><li><a href="/thoi-su/giao-thong">Giao thông</a>
<li><a href="https://www.bao.vn/kinh-te">Kinh tế</a><li><a href="https://quangcao.khac.vn/a">Đối tác</a>
<li><a href="/video">Video</a><li><a href="/dang-nhap">Đăng nhập</a><li><a href="/tim-kiem">Tìm</a><li><a href="/lien-he">Liên hệ</a>
<li><a href="/anh.jpg">Ảnh</a><li><a href="#top">Lên đầu</a><li><a href="/thoi-su?trang=2">Trang 2</a>
<li><a href="/gia-vang-hom-nay-tang-manh-phien-thu-tu-4954454.html">Giá vàng tăng</a><li><a href="/a/b/c">Sâu</a></ul></header>
<main><a href="/khong-trong-menu">Không phải mục</a><a href="/rss">RSS</a><a href="/rss/the-thao.rss">RSS thể thao</a></main>
<footer><a href="/sitemap-news.xml">Sơ đồ</a></footer></body></html>"""


def found(html: str = HOME, robots: list[str] | None = None) -> Found:
    return examine(Document(html.encode(), "https://bao.vn/"), robots)


def test_feeds_are_those_declared_and_those_linked() -> None:
    assert found().feeds == ["https://bao.vn/rss/home.rss", "https://bao.vn/rss/the-thao.rss"]


def test_a_page_of_feeds_and_a_site_map_are_read_for_what_they_list() -> None:
    home = HOME.replace("</footer>", '<a href="/so-do-trang.html">Sơ đồ trang</a></footer>')
    result = found(home)
    assert result.indexes == ["https://bao.vn/rss", "https://bao.vn/so-do-trang.html"]
    feeds = '<main><a href="/rss/kinh-te-89.rss">Kinh tế</a><a href="/rss/home.rss">Tất cả</a><a href="/dieu-nay">khác</a></main>'
    site_map = (
        '<main><a href="/phap-luat">Pháp luật</a><a href="/thoi-su">Thời sự</a><a href="/dang-nhap">Đăng nhập</a>'
        '<a href="/gia-vang-hom-nay-tang-manh-phien-thu-tu-4954454.html">Giá vàng tăng</a></main>'
    )
    for url, html in zip(result.indexes, (feeds, site_map), strict=True):
        add_index(result, Document(html.encode(), url))
    assert result.feeds == [
        f"https://bao.vn/rss/{name}.rss" for name in ("home", "the-thao", "kinh-te-89")
    ]
    assert result.sections[-1] == "https://bao.vn/phap-luat" and len(result.sections) == 6


def test_sitemaps_are_of_robots_and_page() -> None:
    listed = ["https://bao.vn/news.xml", "https://khac.vn/sitemap.xml", "nonsense"]
    assert found(robots=listed).sitemaps == [
        "https://bao.vn/news.xml",
        "https://bao.vn/sitemap.xml",
        "https://bao.vn/sitemap-news.xml",
    ]


def test_sections_are_the_menus_entries_without_service_pages_articles_and_other_hosts() -> None:
    assert found().sections == [
        "https://bao.vn/thoi-su",
        "https://bao.vn/the-gioi.htm",
        "https://www.bao.vn/kinh-te",
        "https://bao.vn/thoi-su/giao-thong",
        "https://bao.vn/a/b/c",
    ]


@pytest.mark.parametrize(
    ("path", "name", "is_section"),
    [
        ("/tin-tuc-giai-tri-hom-nay", "Giải trí", True),
        ("/tin-tuc-giai-tri-hom-nay.html", "Giải trí", True),
        ("/giai-tri-123456.htm", "Giải trí", True),
        ("/chuyen-muc/xa-hoi/giao-thong/", "Giao thông", True),
        ("/category/the-thao", "Thể thao", True),
        ("/?cat=37", "Thể thao", True),
        ("/danh-muc?id=12345", "Công nghệ", True),
        ("/c/120345", "Xe", True),
        ("/tag/gia-vang", "Giá vàng", False),
        ("/tags/gia-vang.html", "Giá vàng", False),
        ("/tu-khoa/gia-vang", "Giá vàng", False),
        ("/author/lan-anh", "Lan Anh", False),
        ("/tac-gia-77.html", "Lan Anh", False),
        ("/gia-vang-hom-nay-tang-manh-phien-thu-tu-4954454.html", "Giá vàng", False),
        ("/the-thao", "Đội tuyển thắng trận thứ ba liên tiếp ở vòng loại", False),
        ("/thoi-su?page=2", "Trang 2", False),
    ],
)
def test_a_link_of_the_menu_is_a_section_whatever_its_address_looks_like(
    path: str, name: str, is_section: bool
) -> None:
    html = f'<html><body><nav><a href="{path}">{name}</a></nav></body></html>'
    page = Document(html.encode(), "https://bao.vn/")
    assert menu(page)[0] == found(html).sections == [f"https://bao.vn{path}"] * is_section


def test_a_section_that_the_menu_shows_as_a_picture_has_the_name_of_its_title() -> None:
    html = '<nav><a href="/the-thao" title="Thể thao"><img src="/a.png"></a><a href="/x"><img></a></nav>'
    assert found(html).sections == ["https://bao.vn/the-thao"]


def test_a_page_s_head_announces_feeds_but_not_its_readers_comments() -> None:
    html = """<head><link rel="alternate" type="application/rss+xml" href="/feed/">
    <link rel="ALTERNATE" type="application/atom+xml; charset=utf-8" href="/atom.xml">
    <link rel="alternate" type="application/feed+json" href="/feed.json">
    <link rel="alternate" type="application/rss+xml" href="/comments/feed/">
    <link rel="alternate" type="application/json" href="/wp-json/x"><link rel="alternate" hreflang="en" href="/en">
    <link rel="stylesheet" type="application/rss+xml" href="/no.xml">
    <link rel="alternate" type="application/rss+xml" href="https://other.vn/feed"></head>"""
    names = ("feed/", "atom.xml", "feed.json")
    page = Document(html.encode(), "https://bao.vn/")
    assert announced_feeds(page) == [f"https://bao.vn/{name}" for name in names]


@pytest.mark.parametrize(
    ("url", "html", "zone"),
    [
        ("https://bao.vn/", "<html lang=vi>", "Asia/Ho_Chi_Minh"),
        ("https://bao.com/", "<html lang=vi>", "Asia/Ho_Chi_Minh"),
        ("https://zeitung.de/", "<html lang=de>", "Europe/Berlin"),
        ("https://paper.co.uk/", "<html lang=en>", "Europe/London"),
        ("https://news.com/", "<time datetime='2026-09-14T08:00:00-0500'>", "-05:00"),
        ("https://news.com/", "<time datetime='2026-09-14T08:00:00Z'>", "+00:00"),
        ("https://paper.us/", "<html lang=en>", "+00:00"),
        ("https://bao.vn/", "<html lang=vi><time datetime='2026-09-14T08:00+09:00'>", "+09:00"),
    ],
)
def test_the_zone_is_the_country_s_unless_the_page_s_times_say_another(
    url: str, html: str, zone: str
) -> None:
    page = Document(html.encode(), url)
    assert proposal.zone_of(page, examine(page).language) == zone


def test_name_and_language() -> None:
    assert (found().name, found().language) == ("Báo Mới", "vi")
    named = HOME.replace("<head>", '<head><meta property="og:site_name" content="Báo  Mới Nhất">')
    assert found(named).name == "Báo Mới Nhất"


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<html lang=EN_us>", "en"),
        ('<html><meta property="og:locale" content="de_DE">', "de"),
        ("<html lang='vietnamese'>", ""),
        ("<html>", ""),
        ("<html lang=''>", ""),
    ],
)
def test_language_is_two_letters_or_nothing(html: str, language: str) -> None:
    assert found(html).language == language


def test_a_menu_without_end_is_cut_and_top_level_sections_come_first() -> None:
    links = "".join(
        f'<a href="/muc-{chr(97 + n // 26)}{chr(97 + n % 26)}/phu">Phụ</a>' for n in range(200)
    )
    sections = found(f"<html><nav>{links}<a href='/chinh'>Chính</a></nav></html>").sections
    assert len(sections) == MAX_SECTIONS
    assert sections[0] == "https://bao.vn/chinh"


@pytest.mark.parametrize(
    "html", ["", "<", "<html><nav><a href='http://['>x y</a><a>no</a></nav>", "\x00" * 100]
)
def test_a_page_that_names_nothing_gives_nothing(html: str) -> None:
    assert found(html) == Found(name="", language="")


@pytest.mark.parametrize(
    "path", ["/rss", "/rss/home.rss", "/feed/", "/index.rss", "/atom.xml/../a.atom", "/feeds/all"]
)
def test_the_shape_of_a_feed(path: str) -> None:
    assert looks_like_feed(f"https://bao.vn{path}")
    assert not looks_like_sitemap(f"https://bao.vn{path}")


@pytest.mark.parametrize(
    "path",
    [
        "/sitemap.xml",
        "/sitemap-news.xml.gz",
        "/google-news-sitemap.xml",
        "/sitemaps/news-2026-9.xml",
        "/sitemap.txt",
    ],
)
def test_the_shape_of_a_sitemap(path: str) -> None:
    assert looks_like_sitemap(f"https://bao.vn{path}")


@pytest.mark.parametrize(
    "path", ["/thoi-su", "/rss-la-gi-4954454.html", "/feedback", "/so-do.html"]
)
def test_the_shape_of_neither(path: str) -> None:
    assert not looks_like_feed(f"https://bao.vn{path}")
    assert not looks_like_sitemap(f"https://bao.vn{path}")


@pytest.mark.parametrize(
    ("file", "url", "wanted"),
    [
        (
            "tuoitre_list.html.gz",
            "https://tuoitre.vn/",
            ["thoi-su.htm", "the-gioi.htm", "kinh-doanh.htm", "phap-luat.htm"],
        ),
        (
            "vietnamnet_list.html.gz",
            "https://vietnamnet.vn/",
            ["thoi-su", "kinh-doanh", "the-thao", "giao-duc", "suc-khoe"],
        ),
        (
            "nld_list.html.gz",
            "https://nld.com.vn/",
            ["thoi-su.htm", "quoc-te.htm", "kinh-te.htm", "phap-luat.htm"],
        ),
        (
            "dantri_list.html.gz",
            "https://dantri.com.vn/",
            ["the-gioi.htm", "kinh-doanh.htm", "suc-khoe.htm", "cong-nghe.htm"],
        ),
        ("cnn_home.html.gz", "https://www.cnn.com/", ["WORLD/", "US/", "TECH/"]),
    ],
)
def test_real_pages_give_their_sections(
    shared_pages: Path, file: str, url: str, wanted: list[str]
) -> None:
    result = examine(
        Document(gzip.decompress((shared_pages / "sections" / file).read_bytes()), url)
    )
    assert {url + path for path in wanted} <= set(result.sections)
    assert result.language == ("en" if "cnn" in file else "vi")
    assert result.feeds or result.indexes
