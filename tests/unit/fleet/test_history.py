"""What a fleet did lately and when its sites publish, in a real Redis."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from newscrawler.fleet.freshness import Lag
from newscrawler.fleet.history import (
    DAY_MS,
    HOUR_MS,
    SLOT_MS,
    SLOTS_KEPT,
    WHOLE,
    History,
    HistoryUnavailable,
    day_key,
    hour_of,
    hours_key,
    slot_key,
    week_of,
)
from newscrawler.fleet.registry import Registry, SiteDelta
from newscrawler.fleet.rows import EndedVisit, Rows
from newscrawler.frontier import connect

#: A Wednesday, ten minutes past 8.
NOW = round(datetime(2026, 11, 18, 8, 10, tzinfo=UTC).timestamp() * 1000)


def test_weeks_begin_on_monday() -> None:
    monday = round(datetime(2026, 11, 16, tzinfo=UTC).timestamp() * 1000) // HOUR_MS
    week, of_week = week_of(monday)
    assert of_week == 0 and week_of(monday - 1) == (week - 1, 167)
    assert week_of(NOW // HOUR_MS) == (week, 2 * 24 + 8)
    assert all(hour_of(*week_of(hour)) == hour for hour in range(monday - 200, monday + 200))


async def test_sums_of_a_quarter_of_an_hour_and_of_a_day(r: Any) -> None:
    registry, history = Registry(r), History(r)
    totals = {
        "page/outcome/DONE": 3, "fetch/time/2": 2, "fetch/time/4": 1, "fetch/time/ms": 900,
        "page/parse_time/1": 1, "page/parse_time/ms": 40,
    }  # fmt: skip
    delta = SiteDelta(pages=3, new=2, articles=2, fields=Counter(title=2, authors=1), errors=1)
    delta.lags.update(Lag(10, 5, 2).steps())
    delta.lags.update(Lag(3000, 5, 2).steps())
    delta.outcomes["RETRY(dns)"] = 1
    for at in (NOW - 90 * 60_000, NOW - SLOT_MS, NOW):
        await registry.add(totals, {"a.vn": delta}, at, "one")
    half, two_hours = await history.windows(NOW, 15, 120)
    assert half.stats["page/outcome/DONE"] == 6 and two_hours.stats["page/outcome/DONE"] == 9
    site = half.sites["a.vn"]
    assert (site["pages"], site["timed"], site["late"], site["f:authors"]) == (6, 4, 2, 2)
    assert half.nodes["one"] == {"fetches": 6, "fetch_ms": 1800, "parses": 2, "parse_ms": 80}
    assert half.labelled("page/outcome") == {"DONE": 6}
    of_day = (await history.site_days(["a.vn", "b.vn"], [NOW // DAY_MS]))["a.vn"]
    assert (of_day["o:RETRY(dns)"], of_day["l:t:3"], of_day["new"]) == (3, 3, 6)
    assert (await history.day(NOW // DAY_MS))["page/outcome/DONE"] == 9
    assert 0 < await r.ttl(slot_key(NOW // SLOT_MS)) <= SLOTS_KEPT * SLOT_MS // 1000
    assert 0 < await r.ttl(day_key(NOW // DAY_MS, "a.vn")) <= 35 * 86_400


async def test_a_worker_that_did_nothing_writes_nothing(r: Any) -> None:
    await Registry(r).add({"page/fetched": 0}, {})
    assert await r.keys("*") == []


async def test_hours_of_four_weeks(r: Any) -> None:
    registry, history = Registry(r), History(r)
    hour = NOW // HOUR_MS
    for back in (0, 168, 4 * 168):
        delta = SiteDelta(pages=5, hours=Counter({hour - back: 2}))
        await registry.add({"page/fetched": 5}, {"a.vn": delta}, NOW - back * HOUR_MS)
    found = await history.hours(["a.vn", "b.vn", WHOLE], NOW)
    assert found["a.vn"] == {hour: 2, hour - 168: 2, hour - 4 * 168: 2}
    assert found["b.vn"] == {} and found[WHOLE][hour - 168] == 5
    assert (await history.since())["a.vn"] == hour
    assert await r.ttl(hours_key(week_of(hour)[0], "a.vn")) > 4 * 7 * 86_400


async def test_what_was_counted_stays_over_what_is_preloaded(r: Any) -> None:
    registry, history = Registry(r), History(r)
    hour = NOW // HOUR_MS
    await registry.add({}, {"a.vn": SiteDelta(pages=1, hours=Counter({hour: 3}))}, NOW)
    past = {"a.vn": {hour - 200: 7, hour: 9}}
    assert await history.preload(past) == 1
    assert (await history.hours(["a.vn"], NOW))["a.vn"] == {hour - 200: 7, hour: 3}
    assert (await history.since())["a.vn"] == hour - 200
    assert await history.preload(past) == 0
    assert await history.preload({"b.vn": {}}) == 0


async def test_the_first_gauge_of_a_slot_is_kept(r: Any) -> None:
    history = History(r)
    for at, value in ((NOW - SLOT_MS, 5), (NOW - SLOT_MS + 1, 6), (NOW, 9)):
        await history.gauge("quarantined", value, at)
    [window] = await history.windows(NOW, 15)
    assert window.gauges == {"quarantined": 5}


def test_hours_count_what_came_out_since_the_site_is_known() -> None:
    rows = Rows()
    rows.known_since({"a.vn": NOW})
    rows.note_hour("a.vn", NOW - 1, NOW + HOUR_MS)  # older than the first visit
    rows.note_hour("a.vn", 0, NOW + HOUR_MS)  # tells no time, on the first day
    assert "a.vn" not in rows.take_deltas()
    rows.note_hour("a.vn", NOW + 1, NOW + HOUR_MS)
    rows.note_hour("a.vn", 0, NOW + DAY_MS)
    hours = rows.take_deltas()["a.vn"].hours
    assert hours == {NOW // HOUR_MS + 1: 1, NOW // HOUR_MS + 24: 1}


def test_what_could_not_be_written_is_given_back_whole() -> None:
    rows = Rows()
    visit = EndedVisit("a.vn", "DONE", stored="new", fields=("title", "content"))
    rows.note(visit, 1)
    rows.note(EndedVisit("a.vn", "RETRY", "dns"), 2)
    rows.note(EndedVisit("a.vn", "CHALLENGE", "cloudflare"), 3)
    rows.note(EndedVisit("a.vn", "DONE", stored="duplicate"), 4)
    taken = rows.take_deltas()
    rows.note(visit, 5)
    rows.give_back(taken)
    counts = rows.take_deltas()["a.vn"].counts()
    assert (counts["errors"], counts["challenges"], counts["duplicates"]) == (1, 1, 1)
    assert (counts["articles"], counts["f:title"], counts["pages"]) == (2, 2, 5)


async def test_a_redis_that_is_away_is_said() -> None:
    client: Any = connect("redis://127.0.0.1:1/0", single=False)
    with pytest.raises(HistoryUnavailable, match="does not answer"):
        await History(client).since()
