"""When a page is looked at again, and how old an article may be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from newscrawler.discovery.revisits import ARTICLE_REVISITS_S, max_age_s, next_visit_ms
from newscrawler.items import Kind

NOW = 1_793_000_000_000


def in_s(
    kind: Kind, *, age: float = 0, since_visit: float = 0, known: int = 0, total: int = 0, same: bool = False
) -> float | None:
    """Seconds from now to the next visit; ``since_visit`` 0 = the first visit."""
    when = next_visit_ms(
        kind,
        now_ms=NOW,
        discovered_ms=round(NOW - age * 1000),
        last_visit_ms=round(NOW - since_visit * 1000) if since_visit else 0,
        known=known,
        total=total,
        unchanged=same,
    )
    return None if when is None else (when - NOW) / 1000


@pytest.mark.parametrize(
    ("kind", "seconds"), [(Kind.HOME, 300), (Kind.FEED, 300), (Kind.SITEMAP, 900), (Kind.SECTION, 900)]
)
def test_first_interval_of_a_list(kind: Kind, seconds: int) -> None:
    assert in_s(kind, known=0, total=100) == seconds
    assert in_s(kind, known=100, total=100) == seconds


@pytest.mark.parametrize(
    ("since", "known", "same", "seconds"),
    [
        (900, 66, False, 900),
        (900, 67, False, 900),
        (900, 68, False, 1350),
        (900, 100, False, 1350),
        (900, 33, False, 900),
        (900, 32, False, 600),
        (900, 0, True, 1350),  # unchanged: whatever the counts say
        (10, 50, False, 900),  # asked again at once: not a shorter interval
        (80_000, 100, False, 86_400),
        (500_000, 50, False, 86_400),  # after a long stop
    ],
)
def test_lists_adapt_their_interval(since: float, known: int, same: bool, seconds: float) -> None:
    assert in_s(Kind.SECTION, since_visit=since, known=known, total=100, same=same) == pytest.approx(seconds)


def test_an_empty_list_is_looked_at_less_often() -> None:
    assert in_s(Kind.FEED, since_visit=300, known=0, total=0) == 450


@pytest.mark.parametrize(
    ("age", "at"),
    [
        (0, 900),
        (839, 900),
        (840, 3600),  # a minute of grace: the step of 15 minutes counts as done
        (900, 3600),
        (3539, 3600),
        (3540, 21_600),
        (21_540, 86_400),
        (86_339, 86_400),
    ],
)
def test_articles_are_looked_at_again_for_edits(age: float, at: float) -> None:
    assert in_s(Kind.ARTICLE, age=age) == pytest.approx(at - age)


@pytest.mark.parametrize("age", [ARTICLE_REVISITS_S[-1] - 60, 10**7])
def test_articles_come_to_rest(age: float) -> None:
    assert in_s(Kind.ARTICLE, age=age) is None


@pytest.mark.parametrize("kind", [Kind.PAGE, Kind.ROBOTS])
def test_other_pages_are_not_visited_again(kind: Kind) -> None:
    assert in_s(kind) is None


@pytest.mark.parametrize(
    ("since", "days", "seconds"),
    [
        (None, 3, 259_200),
        (None, 0, None),
        ("", 1, 86_400),
        ("3d", 9, 259_200),
        ("12h", 9, 43_200),
        (" 1d ", 9, 86_400),
        ("0h", 9, 0),
    ],
)
def test_age_limit(since: str | None, days: float, seconds: float | None) -> None:
    assert max_age_s(since, days) == seconds


def test_age_limit_by_a_day_is_of_vietnam() -> None:
    day = (datetime.now(UTC) - timedelta(days=5)).date()
    limit = max_age_s(day.isoformat(), 1)
    midnight = datetime.fromisoformat(f"{day}T00:00+07:00")
    assert limit == pytest.approx((datetime.now(UTC) - midnight).total_seconds(), abs=5)
    assert max_age_s(f"{day}T00:00Z", 1) == pytest.approx((limit or 0) - 7 * 3600, abs=5)


@pytest.mark.parametrize("since", ["soon", "3w", "2026-13-01", "-3d", "9999-01-01"])
def test_a_wrong_age_limit_is_an_error_with_its_value(since: str) -> None:
    with pytest.raises(ValueError, match=f'since="{since}"'):
        max_age_s(since, 1)
