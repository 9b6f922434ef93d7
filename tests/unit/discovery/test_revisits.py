"""When an article is looked at again, and how old an article may be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from newscrawler.discovery.article_revisits import ARTICLE_REVISITS_S, article_visit_ms, max_age_s

NOW = 1_793_000_000_000


def in_s(age: float) -> float | None:
    """Seconds from now to the next visit of an article that was discovered so long ago."""
    when = article_visit_ms(NOW, round(NOW - age * 1000))
    return None if when is None else (when - NOW) / 1000


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
    assert in_s(age) == pytest.approx(at - age)


@pytest.mark.parametrize("age", [ARTICLE_REVISITS_S[-1] - 60, 10**7])
def test_articles_come_to_rest(age: float) -> None:
    assert in_s(age) is None


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
