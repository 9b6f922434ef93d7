"""Attention in steps, and terms that rise."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

import pytest

from newscrawler.store.attention import after, begin, steps
from newscrawler.store.base import Headline, QueryError
from newscrawler.store.trends import PAST_DAYS, rising

DAY = date(2026, 11, 21)
#: Titles of every day: words that are always frequent.
USUAL = [
    "Giá vàng hôm nay",
    "Thời tiết hôm nay tại Hà Nội",
    "Kết quả bóng đá hôm nay",
    "Người dân Hà Nội nói về giao thông",
    "Giá xăng hôm nay",
    "Công an Hà Nội điều tra vụ cháy",
    "Học sinh Hà Nội nghỉ học",
    "Chứng khoán hôm nay",
]
STORM = [
    "Bão số 9 đổ bộ miền Trung",
    "Miền Trung oằn mình vì bão số 9",
    "Bao so 9 gây ngập nhiều nơi",  # typed without diacritics
    "Hà Nội họp khẩn vì bão số 9",
    "Bão số 9 suy yếu",
]


def headlines(day: date, titles: list[str], site: str = "a.vn") -> list[Headline]:
    start = datetime(day.year, day.month, day.day, 3, tzinfo=UTC)
    return [
        Headline(f"{day}{site}{n}", site, title, start + timedelta(minutes=n))
        for n, title in enumerate(titles)
    ]


def a_month(today: list[str]) -> list[Headline]:
    rng = random.Random(7)
    found = []
    for back in range(PAST_DAYS, 0, -1):
        day = DAY - timedelta(days=back)
        titles = [f"{title} {rng.randrange(1_000)}" for title in USUAL for _ in range(3)]
        if day.weekday() == DAY.weekday():
            titles += [f"Thể thao cuối tuần {rng.randrange(10_000)}" for _ in range(4)]
        found += headlines(day, titles)
    return found + headlines(DAY, today)


def usual(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{title} {rng.randrange(1_000)}" for title in USUAL for _ in range(3)]


def test_what_is_new_rises_and_what_is_frequent_does_not() -> None:
    weekend = [f"Thể thao cuối tuần {n}" for n in range(4)]
    found = rising(a_month([*usual(1), *STORM, *weekend]), DAY, UTC)
    (term,) = found.terms
    assert term.text == "Bão số 9" and term.articles == 5 and term.expected < 0.1
    assert {h.title for h in term.headlines} == set(STORM)
    assert term.headlines[0].title == STORM[-1]  # the newest first
    assert term.reason.startswith("5 titles of 1 site; 0.0") and term.before == 0
    assert term.reason.endswith(" expected, as 0 titles of the 28 days before have it")
    assert (found.titles, found.past > 600) == (24 + 5 + 4, True)


def test_a_term_says_of_how_many_sites_it_is() -> None:
    """Also those that only have a copy of a title."""
    elsewhere = [*headlines(DAY, STORM[:2], "b.vn"), *headlines(DAY, [STORM[0]], "c.vn")]
    (term,) = rising(a_month([*usual(1), *STORM]) + elsewhere, DAY, UTC).terms
    assert (term.articles, term.sites) == (5, 3) and "5 titles of 3 sites;" in term.reason


def test_a_usual_day_has_none() -> None:
    assert rising(a_month(usual(2)), DAY, UTC).terms == []


def test_copies_count_once() -> None:
    copies = [h for n in range(9) for h in headlines(DAY, [STORM[0]], f"s{n}.vn")]
    assert rising(a_month(usual(3)) + copies, DAY, UTC).terms == []


def test_without_a_past_or_a_day_nothing_is_said() -> None:
    assert rising(headlines(DAY, STORM), DAY, UTC).terms == []
    empty = rising([], DAY, UTC)
    assert (empty.titles, empty.past, empty.terms) == (0, 0, [])
    assert rising(headlines(DAY - timedelta(days=1), STORM), DAY, UTC).titles == 0


# ---------------------------------------------------------------- attention
def test_steps_have_no_gap_and_shares() -> None:
    found = {"2026-08-30": {"a": 1}, "2026-09-02": {"a": 1, "b": 2}}
    everything = {"2026-08-30": {"a": 4}, "2026-08-31": {"a": 9}, "2026-09-02": {"a": 3, "b": 3}}
    per, made = steps(found, everything, "day")
    assert [(s.day.day, s.articles, s.published) for s in made] == [
        (30, 1, 4), (31, 0, 9), (1, 0, 0), (2, 3, 6),
    ]  # fmt: skip
    assert [s.share for s in made] == [0.25, 0.0, 0.0, 0.5] and per == "day"
    assert list(made[-1].sites) == ["b", "a"]
    _, weeks = steps(found, everything, "week")
    assert [(s.day.isoformat(), s.articles) for s in weeks] == [
        ("2026-08-24", 1),
        ("2026-08-31", 3),
    ]
    _, months = steps(found, everything, "month")
    assert [(s.day.isoformat(), s.published) for s in months] == [
        ("2026-08-01", 13), ("2026-09-01", 6),
    ]  # fmt: skip


def test_a_step_is_chosen_that_can_be_looked_at() -> None:
    for last, per in (("2026-03-01", "day"), ("2026-12-31", "week"), ("2036-01-01", "month")):
        found = {"2026-01-01": {"a": 1}, last: {"a": 1}}
        assert steps(found, found, None)[0] == per
    long = {"1970-01-01": {"a": 1}, "2026-01-01": {"a": 1}}
    with pytest.raises(QueryError, match="longer step"):
        steps(long, long, "day")
    assert len(steps(long, long, "month")[1]) == 56 * 12 + 1
    assert steps({}, {}, None) == ("day", [])


def test_months_and_weeks_begin_and_end() -> None:
    assert begin(date(2026, 11, 22), "week") == date(2026, 11, 16)
    assert after(date(2026, 12, 1), "month") == date(2027, 1, 1)
    assert after(date(2026, 2, 23), "week") == date(2026, 3, 2)
