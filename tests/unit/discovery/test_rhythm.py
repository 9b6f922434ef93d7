"""How long leads wait by the hours at which their site has published."""

from __future__ import annotations

import pytest

from newscrawler.discovery.list_revisits import (
    LEAD_LONGEST_S,
    QUIET_LONGEST_S,
    ListVisit,
    Memory,
    plan,
    unchanged,
)
from newscrawler.discovery.rhythm import Rhythm, rhythm_of
from newscrawler.discovery.seeds import SHORTEST_S
from newscrawler.items import Kind

MIDNIGHT_H = 24 * 20_000
#: Nothing from 0 to 5, six an hour from 6 to 9, two an hour until 22, one then.
DAY = Rhythm((*[0.0] * 6, *[6.0] * 4, *[2.0] * 12, *[1.0] * 2))


@pytest.mark.parametrize(
    ("hour", "seconds"),
    [
        (1.0, QUIET_LONGEST_S),
        (5.0, QUIET_LONGEST_S),
        (5.87, 468 + 100),  # not over the begin of the rush
        (5.95, 300),
        (7.0, SHORTEST_S),
        (12.0, SHORTEST_S),
        (22.2, 600),
    ],
)
def test_a_lead_waits_for_the_same_part_of_an_article_at_any_hour(
    hour: float, seconds: float
) -> None:
    now_s = MIDNIGHT_H * 3600 + hour * 3600
    assert DAY.wait_s(now_s, SHORTEST_S, QUIET_LONGEST_S) == pytest.approx(seconds, abs=2)


def known(days: float, per_hour: list[int]) -> dict[int, int]:
    first = MIDNIGHT_H - round(24 * days)
    return {hour: per_hour[hour % 24] for hour in range(first, MIDNIGHT_H)}


def test_hours_are_learned_from_whole_days_in_which_the_fleet_worked() -> None:
    day = [0] * 6 + [4] * 18
    since = MIDNIGHT_H - 72
    found = rhythm_of(known(3, day), since, MIDNIGHT_H, lambda hour: True)
    assert found is not None and found.rates[2] == 0 and found.rates[12] == 4
    assert found.rates[5] == 1 and found.rates[6] == 3, "a little of the hours beside it"
    # A day on which the fleet stood still is no day without news.
    stood = range(MIDNIGHT_H - 24, MIDNIGHT_H)
    counts = {hour: n for hour, n in known(4, day).items() if hour not in stood}
    again = rhythm_of(counts, MIDNIGHT_H - 96, MIDNIGHT_H, lambda hour: hour not in stood)
    assert again is not None and again.rates[12] == 4


@pytest.mark.parametrize("days", [0, 1, 2])
def test_of_less_than_two_whole_days_nothing_is_said(days: int) -> None:
    since = MIDNIGHT_H - 24 * days
    assert rhythm_of(known(days, [4] * 24), since, MIDNIGHT_H, lambda hour: True) is None
    assert rhythm_of({}, None, MIDNIGHT_H, lambda hour: True) is None


def lead(hour: float, **more: object) -> ListVisit:
    now = round((MIDNIGHT_H + hour) * 3600)
    return ListVisit(Kind.FEED, now, now - 600, is_lead=True, **more)  # type: ignore[arg-type]


def remembered(visit: ListVisit, quiet_s: float = 3600, interval: int = 600) -> Memory:
    memory = plan(
        ListVisit(Kind.FEED, visit.now_s - 600, 0, ids=[b"a" * 16], is_lead=True), Memory()
    )
    memory.interval_s, memory.missed_s = interval, visit.now_s - 60
    memory.fresh_s = round(visit.now_s - quiet_s)
    return memory


def waits(hour: float, rhythm: Rhythm | None, **more: float) -> int:
    visit = lead(hour, rhythm=rhythm)
    return unchanged(visit, remembered(visit, **more)).interval_s  # type: ignore[arg-type]


def test_nights_ask_less_and_mornings_more() -> None:
    assert waits(2, None) == LEAD_LONGEST_S
    assert waits(2, DAY, interval=1800) == QUIET_LONGEST_S
    assert waits(7, None) == LEAD_LONGEST_S
    assert waits(7, DAY) == SHORTEST_S
    # After a silent night the rush is not slept through, as a twentieth of the silence would.
    assert waits(6, None, quiet_s=10 * 3600, interval=1800) == 1800
    assert waits(6, DAY, quiet_s=10 * 3600, interval=1800) == SHORTEST_S


def test_a_site_that_fell_asleep_is_asked_as_seldom_as_before() -> None:
    asleep = Rhythm((0.0,) * 24)
    month = 30 * 86_400
    assert waits(12, asleep, quiet_s=month, interval=86_400) == 86_400
    assert waits(12, None, quiet_s=month, interval=86_400) == 86_400
