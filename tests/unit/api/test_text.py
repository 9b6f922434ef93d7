"""Highlights, times and differences: escaped, and right at their bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newscrawler.api import text

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_marks_are_put_around_escaped_text() -> None:
    html = text.highlighted("<b>bóng đá</b> & thể thao", [(3, 7), (8, 10)])
    assert html == "&lt;b&gt;<mark>bóng</mark> <mark>đá</mark>&lt;/b&gt; &amp; thể thao"


@given(
    st.text(max_size=60), st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=6)
)
def test_no_marks_lose_text_or_let_markup_through(raw: str, marks: list[tuple[int, int]]) -> None:
    html = str(text.highlighted(raw, marks))
    plain = html.replace("<mark>", "").replace("</mark>", "")
    assert plain == str(text.escape(raw))
    assert "<" not in plain and ">" not in plain


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=60), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=1), "1 h ago"),
        (timedelta(hours=24), "1 day ago"),
        (timedelta(days=6, hours=23), "6 days ago"),
        (timedelta(days=7), "14 Nov 2026"),
        (timedelta(days=-2), "23 Nov 2026"),
    ],
)
def test_ages(age: timedelta, shown: str) -> None:
    assert text.ago(NOW - age, NOW) == shown


def test_a_moment_is_shown_in_its_zone() -> None:
    assert text.moment(NOW, text.zone_of("+07:00")) == "21 Nov 2026, 19:00 (+07:00)"
    if "Asia/Ho_Chi_Minh" in available_timezones():  # a machine may have no time zone database
        assert text.moment(NOW, text.zone_of("Asia/Ho_Chi_Minh")) == "21 Nov 2026, 19:00 (+07:00)"
    assert text.moment(NOW, text.zone_of("nonsense")) == "21 Nov 2026, 12:00 (UTC)"


@pytest.mark.parametrize(
    ("url", "is_linked"),
    [
        ("https://vnexpress.net/a.html", True),
        ("http://127.0.0.1:81/a", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//evil.example/", False),
        ("https://", False),
        ("http://[::1", False),
        ("", False),
        (None, False),
    ],
)
def test_only_web_addresses_become_links(url: str | None, is_linked: bool) -> None:
    assert bool(text.web_url(url)) is is_linked


def test_one_changed_digit_is_shown_as_one_changed_word() -> None:
    html = text.changed_words("Có 12 người <b>", "Có 13 người <b>")
    assert html == "Có <del>12</del><ins>13</ins> người &lt;b&gt;"


def test_only_changed_paragraphs_are_shown() -> None:
    assert text.changed_paragraphs("a\n\nb\n\nc", "a\n\nB\n\nc\n\nd") == [
        "<del>b</del><ins>B</ins>",
        "<ins>d</ins>",
    ]


@pytest.mark.parametrize(
    ("page", "last", "shown"),
    [
        (0, 0, [0]),
        (0, 2, [0, 1, 2]),
        (5, 10, [0, None, 3, 4, 5, 6, 7, None, 10]),
        (10, 10, [0, None, 8, 9, 10]),
    ],
)
def test_page_numbers(page: int, last: int, shown: list[int | None]) -> None:
    assert list(text.page_numbers(page, last)) == shown


def test_sizes() -> None:
    sizes = [text.size_text(n) for n in (0, 999, 1000, 99_900, 100_000, 183_000_000)]
    assert sizes == ["0 B", "999 B", "1.0 kB", "99.9 kB", "100 kB", "183 MB"]
