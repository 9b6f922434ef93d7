"""From publication to the search: what is counted, what p50 and p95 are read as, what the API and
the page say of it."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

from newscrawler.api.access import access_for
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.server import start_in_thread
from newscrawler.fleet.freshness import BOUNDS_S, DAYS, Lag, figures, lag, span
from newscrawler.fleet.registry import Registry, SiteDelta, lag_key
from newscrawler.fleet.rows import Rows
from newscrawler.store import open_store

HANOI = timezone(timedelta(hours=7))
T0 = datetime(2026, 11, 20, 8, 30, tzinfo=HANOI)
T0_MS = round(T0.timestamp() * 1000)


def after(seconds: float) -> datetime:
    return (T0 + timedelta(seconds=seconds)).astimezone(UTC)


def counted(*totals: float) -> Counter[str]:
    counts: Counter[str] = Counter()
    for total in totals:
        counts.update(Lag(total, 0, 0).steps())
    return counts


def test_the_way_of_an_article_has_three_parts() -> None:
    way = lag(T0, after(100), after(130), T0_MS + 131_500)
    assert way == Lag(100, 30, 1.5) and way.total == 131.5


@pytest.mark.parametrize(
    ("published", "discovered", "fetched"),
    [(None, after(9), after(9)), (T0, None, after(9)), (T0, after(9), None), (T0.replace(hour=0, minute=0), after(9), after(9))],
)  # fmt: skip
def test_an_article_without_its_times_tells_nothing(
    published: Any, discovered: Any, fetched: Any
) -> None:
    assert lag(published, discovered, fetched, T0_MS + 10_000) is None


def test_an_article_found_in_the_minute_that_it_names_took_no_time() -> None:
    way = lag(T0, after(-40), after(-20), T0_MS - 19_000)
    assert way is not None and way.discovered == 0 and way.fetched == 0 and way.total <= 1


@pytest.mark.parametrize("spread", [60, 3600, 90_000])
def test_percentiles_are_right_to_within_a_step(spread: float) -> None:
    rng = random.Random(7)
    totals = sorted(rng.uniform(0, spread) for _ in range(400))
    found = figures(counted(*totals))
    assert found.articles == 400
    for value, share in ((found.p50_s, 0.5), (found.p95_s, 0.95)):
        exact = totals[round(share * 400) - 1]
        step = next((i for i, bound in enumerate(BOUNDS_S) if bound >= exact), len(BOUNDS_S))
        low = BOUNDS_S[step - 1] if step else 0
        assert low <= (value or 0) <= BOUNDS_S[min(step, len(BOUNDS_S) - 1)]


def test_percentiles_of_few_and_of_none() -> None:
    assert figures({}).articles == 0 and figures({}).p50_s is None
    assert figures(counted(10**9)).p95_s == BOUNDS_S[-1]
    assert figures(counted(400), "fetched").p50_s is not None
    assert figures({"d:3": 5}).articles == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0, "0 s"), (59.4, "59 s"), (204, "3.4 min"), (5399, "90.0 min"), (7560, "2.1 h")],
)
def test_spans_as_people_read_them(seconds: float | None, text: str) -> None:
    assert span(seconds) == text


# ---------------------------------------------------------------- what is counted
def test_what_came_out_before_the_first_visit_is_not_counted() -> None:
    rows = Rows()
    assert not rows.note_lag("a.vn", Lag(9, 1, 1), T0_MS - 1, T0_MS)
    assert rows.note_lag("a.vn", Lag(9, 1, 1), T0_MS, T0_MS + 9000)
    rows.known_since({"a.vn": T0_MS - 5000, "b.vn": T0_MS - 5000, "c.vn": 0})
    assert rows.note_lag("a.vn", Lag(9, 1, 1), T0_MS - 1, T0_MS)  # another worker was there before
    assert rows.note_lag("b.vn", Lag(9, 1, 1), T0_MS - 1, T0_MS)
    assert not rows.note_lag("c.vn", Lag(9, 1, 1), T0_MS - 1, T0_MS)
    taken = rows.take_deltas()
    assert taken["a.vn"].first_ms == T0_MS and sum(taken["a.vn"].lags.values()) == 8
    rows.give_back(taken)
    rows.note_lag("a.vn", Lag(9, 1, 1), T0_MS, T0_MS)
    again = rows.take_deltas()["a.vn"]
    assert sum(again.lags.values()) == 12 and again.first_ms == T0_MS


# ---------------------------------------------------------------- the fleet's sums
class Clock:
    now = T0.timestamp()

    def __call__(self) -> float:
        return self.now


async def test_the_fleet_sums_the_last_days(r: Any) -> None:
    clock = Clock()
    registry = Registry(r, clock)
    await registry.add({}, {"a.vn": SiteDelta(pages=1, first_ms=5, lags=counted(100, 100))})
    clock.now += 86_400
    await registry.add(
        {}, {"a.vn": SiteDelta(first_ms=9, lags=counted(1000)), "b.vn": SiteDelta(pages=1)}
    )
    sums = await registry.sites()
    assert (
        figures(sums["a.vn"].lags).articles == 3
        and sums["a.vn"].first_ms == 5
        and sums["a.vn"].pages == 1
    )
    assert sums["b.vn"].lags == {}
    clock.now += (DAYS - 1) * 86_400
    assert figures((await registry.sites())["a.vn"].lags).articles == 1
    key = lag_key("a.vn", int(T0.timestamp() // 86_400))
    assert 0 < await r.ttl(key) <= (DAYS + 1) * 86_400


async def test_api_page_and_metrics_show_p50_and_p95_of_a_site(
    r: Any, redis_server: str, tmp_path: Path
) -> None:
    registry = Registry(r)
    await registry.add(
        {}, {"a.vn": SiteDelta(pages=1, new=20, first_ms=1, lags=counted(*[100] * 18, 3500, 3500))}
    )
    store = open_store("", tmp_path)
    await store.open()
    await store.close()
    from newscrawler.frontier import connect

    deps = Deps(store=open_store("", tmp_path), access=access_for("127.0.0.1", ""))
    deps.registry = Registry(connect(redis_server, single=False))
    running = start_in_thread(create_app(deps))
    try:
        async with httpx.AsyncClient(base_url=running.url) as http:
            (row,) = (await http.get("/api/sites")).json()
            page = (await http.get("/sites", headers={"Accept": "text/html"})).text
            exposed = (await http.get("/metrics")).text
    finally:
        running.stop()
    fresh = row["freshness"]
    assert fresh["articles"] == 20 and 90 <= fresh["p50_s"] <= 120 and 3000 < fresh["p95_s"] <= 3600
    assert set(fresh["stages"]) == {"discovered", "fetched", "searchable"}
    assert f"{span(fresh['p50_s'])} / {span(fresh['p95_s'])}" in page
    assert f'newscrawler_site_freshness_p95_seconds{{site="a.vn"}} {fresh["p95_s"]}' in exposed
