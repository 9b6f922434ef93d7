"""robots.txt by RFC 9309, for the token newscrawler."""

from __future__ import annotations

from pathlib import Path

import pytest

from newscrawler.web.robots import MAX_BYTES, RobotsRules, within_limit

AGENT = "newscrawler"


def allowed(text: str, path: str, agent: str = AGENT) -> bool:
    return RobotsRules.parse(text.encode(), agent).allowed(f"https://bao.vn{path}")


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("User-agent: *\nDisallow: /tim-kiem", "/tim-kiem?q=a", False),
        ("User-agent: *\nDisallow: /tim-kiem", "/thoi-su", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),  # the longest match wins
        ("User-agent: *\nAllow: /a\nDisallow: /a/b", "/a/b/c", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),  # a tie: the least restrictive
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?a", True),
        ("User-agent: *\nDisallow: /*/print", "/a/b/print", False),
        ("User-agent: *\nDisallow: /b%C3%A0i", "/bài", False),
        ("user-AGENT: *\ndisallow: /a # comment", "/a", False),
        ("User-agent: *\r\nDisallow: /a\r\n", "/a", False),
        ("\ufeffUser-agent: *\nDisallow: /a", "/a", False),
        ("Disallow: /a", "/a", True),  # a rule of no group
        ("nonsense\n\x00\nUser-agent: *\nDisallow: /a", "/a", False),
    ],
)
def test_rules(text: str, path: str, expected: bool) -> None:
    assert allowed(text, path) is expected


@pytest.mark.parametrize(
    "name", ["newscrawler", "NewsCrawler", "newscrawler/0.1", "newscrawler (+https://x)"]
)
def test_our_own_group_counts_instead_of_the_one_for_all(name: str) -> None:
    text = f"User-agent: *\nDisallow: /a\n\nUser-agent: {name}\nDisallow: /b\nCrawl-delay: 7"
    assert allowed(text, "/a")
    assert not allowed(text, "/b")
    assert RobotsRules.parse(text.encode(), AGENT).crawl_delay == 7


@pytest.mark.parametrize(
    "name", ["news", "crawler", "newscrawler-images", "newscrawlerbot", "Googlebot-News"]
)
def test_a_group_of_another_token_is_not_ours(name: str) -> None:
    text = f"User-agent: {name}\nDisallow: /\n\nUser-agent: *\nDisallow: /a"
    assert allowed(text, "/b")
    assert not allowed(text, "/a")


def test_two_groups_for_us_are_one() -> None:
    text = "User-agent: newscrawler\nDisallow: /a\n\nUser-agent: x\nUser-agent: newscrawler\nDisallow: /b"
    assert not allowed(text, "/a")
    assert not allowed(text, "/b")
    assert allowed(text, "/c")


def test_the_whole_user_agent_string_may_be_given() -> None:
    text = "User-agent: newscrawler\nDisallow: /a"
    assert not allowed(text, "/a", "newscrawler/0.1 (+https://bao.example; bot@bao.example)")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("kept", range(1, len("Disallow: /private-area/")))
def test_half_a_megabyte_is_read_and_no_half_line(end: bytes, kept: int) -> None:
    """``kept``: bytes of the last line that lie within the limit. Eleven of
    them are "Disallow: /"."""
    head, last = b"User-agent: *" + end + b"Disallow: /a" + end, b"Disallow: /private-area/"
    filler = b"#" * (MAX_BYTES - len(head) - len(end) - kept) + end
    body = head + filler + last + end
    assert body[:MAX_BYTES].endswith(end + last[:kept]), "the limit lies within the last line"
    for read in (RobotsRules.parse(body, AGENT), RobotsRules.parse(within_limit(body), AGENT)):
        assert not read.allowed("https://bao.vn/a")
        assert read.allowed("https://bao.vn/private-area/")
        assert read.allowed("https://bao.vn/other")
    assert within_limit(body) == head + filler


def test_up_to_the_limit_every_byte_is_kept() -> None:
    last = b"Disallow: /private-area/"
    body = b"User-agent: *\n#".ljust(MAX_BYTES - len(last) - 1, b"#") + b"\n" + last
    assert len(body) == MAX_BYTES and within_limit(body) == body
    assert not RobotsRules.parse(body, AGENT).allowed("https://bao.vn/private-area/")
    assert within_limit(b"x" * (MAX_BYTES + 1)) == b"", "no whole line at all"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, False),
        (206, False),
        (404, True),
        (403, True),
        (410, True),
        (500, False),
        (503, False),
        (0, False),
    ],
)
def test_the_status_decides_where_there_are_no_rules(status: int, expected: bool) -> None:
    body = b"User-agent: *\nDisallow: /" if status < 300 else b""
    assert RobotsRules.parse_answer(status, body, AGENT).allowed("https://bao.vn/a") is expected


def test_a_page_instead_of_rules_forbids_nothing() -> None:
    assert allowed("<!DOCTYPE html><html>Disallow: /</html>", "/a")


@pytest.mark.parametrize(
    ("written", "delay"), [("10", 10.0), ("0.5", 0.5), ("x", None), ("-1", None), ("100000", None)]
)
def test_crawl_delay(written: str, delay: float | None) -> None:
    assert (
        RobotsRules.parse(f"User-agent: *\nCrawl-delay: {written}".encode(), AGENT).crawl_delay
        == delay
    )


def test_sitemaps_are_of_the_whole_file() -> None:
    text = b"Sitemap: https://bao.vn/a.xml\nUser-agent: x\nDisallow: /\nSitemap: https://bao.vn/b.xml\nSitemap: /relative.xml"
    assert RobotsRules.parse(text, AGENT).sitemaps == [
        "https://bao.vn/a.xml",
        "https://bao.vn/b.xml",
    ]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00", b"\x00" * 1000, b"User-agent:" * 10_000, b"Disallow: " + b"*" * 5_000],
)
def test_any_bytes_are_read_without_an_error(body: bytes) -> None:
    assert RobotsRules.parse(body, AGENT).allowed("https://bao.vn/a")


def test_real_files_are_read_and_say_something(shared_pages: Path) -> None:
    files = sorted((shared_pages / "robots").glob("*.txt"))
    assert len(files) > 100
    parsed = [RobotsRules.parse(path.read_bytes(), AGENT) for path in files]
    assert sum(bool(rules.sitemaps) for rules in parsed) > 50
    homes = [
        rules.allowed(f"https://{path.stem}/") for rules, path in zip(parsed, files, strict=True)
    ]
    assert sum(homes) > 100
    searches = [
        rules.allowed(f"https://{path.stem}/search?q=a")
        for rules, path in zip(parsed, files, strict=True)
    ]
    assert searches.count(False) > 15
