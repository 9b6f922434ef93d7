"""What is usual of a site, and how far from it is too far."""

from __future__ import annotations

import random

import pytest

from newscrawler.fleet.history import HOUR_MS, WEEK_HOURS
from newscrawler.fleet.usual import WINDOWS, Site, at_most

NOW_HOUR = 500_000
NOW = NOW_HOUR * HOUR_MS + HOUR_MS // 2  # half an hour has passed


def ALWAYS(hour: int) -> bool:
    return True


MONTH = NOW_HOUR - 4 * WEEK_HOURS - WEEK_HOURS


def evenly(per_hour: int, until: int = NOW_HOUR) -> dict[int, int]:
    return dict.fromkeys(range(MONTH, until), per_hour)


def site(counts: dict[int, int], since: int = MONTH, now: int = NOW) -> Site:
    return Site(counts, since, now, ALWAYS)


def test_the_probability_of_so_few() -> None:
    assert at_most(0, 12.5, 4) == pytest.approx(0.8**50)
    assert at_most(3, 16.7, 3) > 1e-4, "three weeks do not tell the mean as well as that"
    assert at_most(5, 5, 10_000) == pytest.approx(0.616, rel=0.01), "Poisson's in the limit"
    assert at_most(3, 0, 4) == 1 and at_most(1000, 10, 4) == pytest.approx(1)


@pytest.mark.parametrize(("per_hour", "hours"), [(10, 1), (2, 6), (1, 24)])
def test_silence_is_seen_as_soon_as_it_can_be_told(per_hour: int, hours: int) -> None:
    quiet = evenly(per_hour, until=NOW_HOUR - hours)
    found = site(quiet).silence()
    assert found.is_silent and found.hours == hours, found
    assert found.expected == (hours + 0.5) * per_hour if per_hour > 1 else True
    just_began = site(evenly(per_hour, until=NOW_HOUR - hours // 2)).silence()
    assert not just_began.is_silent


#: Parts of a day's articles by hour, as newsrooms write: few at night, a peak in the morning.
NEWSROOM = (1, 1, 1, 1, 2, 4, 7, 9, 9, 8, 7, 6, 5, 6, 8, 8, 7, 6, 5, 4, 3, 3, 2, 2)


def hours_until_told(per_day: int, fell: int, rng: random.Random) -> float:
    """Of a site that has so many articles a day, and none from the hour ``fell`` on. Looked at each
    quarter of an hour."""

    def by_chance(hour: int) -> int:
        mean = per_day * NEWSROOM[hour % 24] / sum(NEWSROOM)
        return sum(rng.random() < mean / 40 for _ in range(40))

    counts = {hour: by_chance(hour) for hour in range(fell - 4 * WEEK_HOURS - 200, fell)}
    for quarter in range(1, 4 * WEEK_HOURS):
        now = fell * HOUR_MS + quarter * HOUR_MS // 4
        if site(counts, since=min(counts), now=now).silence().is_silent:
            return quarter / 4
    return float("inf")


def test_a_site_of_twenty_articles_a_day_is_told_of_within_two_days() -> None:
    """Whenever it fell silent, as docs/operations.md says; one of 300 within an hour and a half by
    day."""
    rng = random.Random(11)
    print("seed 11")
    start = NOW_HOUR - NOW_HOUR % 24
    assert max(hours_until_told(20, start + hour, rng) for hour in range(48)) <= 48
    by_day = [
        hours_until_told(300, start + day * 24 + h, rng) for day in (0, 1) for h in range(6, 18)
    ]
    assert max(by_day) <= 1.5, by_day


def test_a_site_that_goes_on_is_not_silent() -> None:
    assert not site(evenly(3, until=NOW_HOUR + 1)).silence().is_silent


def test_half_dead_is_silence_too() -> None:
    counts = evenly(10)
    for hour in range(NOW_HOUR - 6, NOW_HOUR + 1):
        counts[hour] = 2
    assert site(counts).silence().is_silent


def test_a_night_is_no_silence() -> None:
    """The same hours of other weeks had nothing either."""
    counts = {hour: 20 if hour % 24 < 12 else 0 for hour in range(MONTH, NOW_HOUR)}
    for part in range(24):
        now = NOW_HOUR - 48 + part
        known = {hour: count for hour, count in counts.items() if hour < now}
        assert not site(known, now=now * HOUR_MS).silence().is_silent, part


def test_a_small_site_is_not_judged() -> None:
    counts = dict.fromkeys(range(MONTH, NOW_HOUR - 100, 30), 1)
    assert site(counts).silence().expected is None


def test_one_strange_week_does_not_count() -> None:
    """A holiday among the four: what is expected is not its nothing."""
    counts = evenly(5, until=NOW_HOUR - 3)
    for hour in range(NOW_HOUR - WEEK_HOURS - 10, NOW_HOUR - WEEK_HOURS + 1):
        counts.pop(hour)
    assert site(counts).silence().is_silent


def test_hours_in_which_the_fleet_stood_still_are_left_out() -> None:
    counts = evenly(10, until=NOW_HOUR - 5)
    assert site(counts).silence().is_silent
    stood = Site(counts, MONTH, NOW, lambda hour: hour < NOW_HOUR - 5)
    assert not stood.silence().is_silent


def test_days_before_count_where_no_week_is_known() -> None:
    counts = evenly(20, until=NOW_HOUR - 4)
    assert site(counts, since=NOW_HOUR - 4 * 24).silence().is_silent
    assert site(counts, since=NOW_HOUR - 24).silence().expected is None
    assert site(counts, since=NOW_HOUR - 24).most(1) is None


def test_the_usual_and_the_most() -> None:
    counts = evenly(2)
    counts[NOW_HOUR - WEEK_HOURS] = 40
    assert site(counts).most(1) == 2 + 20
    assert site(counts).usual(NOW_HOUR - 24, NOW_HOUR) == 48
    assert site(counts, since=NOW_HOUR - 100).usual(NOW_HOUR - 24, NOW_HOUR) is None


@pytest.mark.long
def test_chance_alone_raises_nothing() -> None:
    """A hundred sites with news by chance, each looked at in 48 hours."""
    rng = random.Random(7)
    print("seed 7")
    silent = 0
    for _ in range(100):
        mean = rng.choice([1, 3, 8, 15])
        counts = {
            hour: sum(rng.random() < mean / 40 for _ in range(40))
            for hour in range(MONTH, NOW_HOUR + 1)
        }
        for back in range(48):
            known = {h: n for h, n in counts.items() if h <= NOW_HOUR - back}
            silent += site(known, now=NOW - back * HOUR_MS).silence().is_silent
    assert silent == 0
    assert max(WINDOWS) < WEEK_HOURS
