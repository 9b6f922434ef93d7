"""What a path says by itself."""

from __future__ import annotations

import pytest

from newscrawler.discovery import articles

UTC7 = 7 * 3600


@pytest.mark.parametrize(
    "url",
    [
        "https://a.vn/gia-xang-dau-hom-nay-giam-manh-4954454.html",
        "https://a.vn/kinh-te/gia-xang-giam-20261001172513622.htm",
        "https://a.vn/gia-xang-giam-post1806382.tpo",
        "https://a.org/2026/10/26/a-minister-resigns",
        "https://a.org/politics/minister-resigns-after-long-talks-about-budget",
        "https://a.org/?p=100",
        "https://a.de/wirtschaft/artikel/id/12345678/index.html",
        "https://a.vn/dien-dan/hoi-dap.aspx?newsid=12345",
    ],
)
def test_articles_score_as_such(url: str) -> None:
    assert articles.looks_like_article(url) >= articles.ARTICLE_SCORE


@pytest.mark.parametrize(
    "url",
    [
        "https://a.vn/",
        "https://a.vn/thoi-su",
        "https://a.vn/kinh-te/ngan-hang.htm",
        "https://a.vn/tag/gia-xang-dau-hom-nay-giam-manh-4954454.html",
        "https://a.vn/tac-gia/nguyen-van-a-123456.html",
        "https://a.vn/lien-he.html",
        "https://a.vn/dai-hoi-dang-lan-thu-xiv-event123456.html",
        "http://[::1",
        "",
    ],
)
def test_lists_and_service_pages_do_not(url: str) -> None:
    assert articles.looks_like_article(url) < articles.ARTICLE_SCORE


@pytest.mark.parametrize(
    ("path", "query", "reason"),
    [
        ("/a.jpg", "", "type"),
        ("/A.PDF", "", "type"),
        ("/a.html", "", None),
        ("/video/x", "", "type"),
        ("/tin/video", "", None),  # only at the top is it the video section
        ("/login", "", "type"),
        ("/login.aspx", "", "type"),
        ("/x", "print=1", "type"),
        ("/x", "print=", None),
        ("/x", "q=lu", "type"),
        ("/x", "sort=new", "trap"),
        ("/x", "date=2026", "trap"),
        ("/x", "page=20", None),
        ("/x", "page=21", "trap"),
        ("/x", "page=99999", "trap"),
        ("/x", "p=20", None),
        ("/x", "p=21", "trap"),
        ("/x", "p=99", "trap"),
        ("/x", "p=100", None),
        ("/x", "back=https://a.vn/", "trap"),
        ("/x", "&".join(f"k{i}=1" for i in range(6)), None),
        ("/x", "&".join(f"k{i}=1" for i in range(7)), "trap"),
        ("/" + "/".join(f"s{i}" for i in range(12)), "", None),
        ("/" + "/".join(f"s{i}" for i in range(13)), "", "trap"),
        ("/thoi-su/trang-20.htm", "", None),
        ("/thoi-su/trang-21.htm", "", "trap"),
        ("/thoi-su-p20", "", None),
        ("/thoi-su-p21", "", "trap"),
        ("/mot-bai-viet-rat-dai-p1234567.html", "", None),
        ("/2026/10/26", "", "trap"),
        ("/2026/10/26/minister-resigns", "", None),
        ("/archive/2026/10/list", "", "trap"),
        ("/a/b/a/c", "", None),
        ("/a/b/a/b", "", "trap"),
        ("/a/a/b", "", None),
        ("/a/a/a", "", "trap"),
    ],
)
def test_what_is_refused_and_why(path: str, query: str, reason: str | None) -> None:
    assert articles.refuse(path, query) == reason


@pytest.mark.parametrize(
    ("article_id", "rule", "seconds"),
    [
        ("20260307075519174", "stamp", 1772844919),
        ("20260307075519", "stamp", 1772844919),  # the shortest
        ("2026030707551", "stamp", None),
        ("196260307071308923", "prefix3", 1772842388),
        ("196260307071308", "prefix3", 1772842388),
        ("19626030707130", "prefix3", None),
        ("20261307075519174", "stamp", None),  # month 13
        ("20260332075519174", "stamp", None),  # day 32
        ("20260307245519174", "stamp", None),  # hour 24
        ("19990307075519174", "stamp", None),
        ("2026030707551x174", "stamp", None),
        ("٢٠٢٦٠٣٠٧٠٧٥٥١٩", "stamp", None),  # digits of another script
        ("20260307075519174", "", None),
        ("", "stamp", None),
    ],
)
def test_the_time_in_an_id(article_id: str, rule: str, seconds: int | None) -> None:
    assert articles.id_time(article_id, rule, UTC7) == seconds


@pytest.mark.parametrize(
    "path", ["/" + "a-" * 20_000, "/" + "-p" * 20_000, "/" + "1" * 40_000, "/" + "/2026" * 8_000]
)
def test_a_hostile_path_is_judged_quickly(path: str) -> None:
    import time

    started = time.perf_counter()
    articles.refuse.__wrapped__(path, "")
    articles.path_score.__wrapped__(path, "")
    assert time.perf_counter() - started < 1.0
