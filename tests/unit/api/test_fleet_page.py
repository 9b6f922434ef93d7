"""The page "Fleet" and its JSON over a real Redis: hours of work, a gap, one point, nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.fleet_page import SPANS
from newscrawler.api.plots import layered, nice, nice_span
from newscrawler.api.server import start_in_thread
from newscrawler.fleet.alarms import Verdict
from newscrawler.fleet.incidents import Incidents
from newscrawler.fleet.minutes import Minutes
from newscrawler.fleet.registry import Registry
from newscrawler.frontier import connect
from newscrawler.store import open_store
from newscrawler.store.days import zone_of
from tests.fixtures_browser import SITES
from tests.fixtures_fleet import GAP, fill_minutes

PAGE = {"Accept": "text/html"}


@pytest.fixture
def client(r: Any, redis_server: str, filled_folder: Path) -> Iterator[httpx.Client]:
    deps = Deps(
        store=open_store("", filled_folder),
        sites=SITES,
        registry=Registry(connect(redis_server, single=False)),
        zone=zone_of("Asia/Ho_Chi_Minh"),
    )
    running = start_in_thread(create_app(deps))
    with httpx.Client(base_url=running.url, timeout=60) as one:
        yield one
    running.stop()


def page_of(client: httpx.Client, hours: int, language: str = "en") -> str:
    headers = PAGE | {"Accept-Language": language}
    return client.get("/fleet", params={"hours": hours}, headers=headers).text


def steps_of(client: httpx.Client, hours: int) -> list[dict[str, Any]]:
    answer = client.get("/api/fleet/history", params={"hours": hours})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["steps"]
    assert len(found) == 60 * hours // SPANS[hours] == 60 * hours // answer.json()["step_minutes"]
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    return found


async def test_hours_of_work_are_shown_with_their_gap(r: Any, client: httpx.Client) -> None:
    done = await fill_minutes(r, minutes=300)
    day = steps_of(client, 24)
    assert sum(one["pages"] or 0 for one in day) == done["page/fetched"]
    assert sum(one["articles_new"] or 0 for one in day) == done["article/new"]
    errors = sum((one["errors"] or {}).get("RETRY(timeout)", 0) for one in day)
    assert errors == done["page/reason/RETRY(timeout)"]
    known = [one for one in day if one["pages"] is not None]
    assert 19 <= len(known) <= 22, "five hours by quarters of an hour"
    six = steps_of(client, 6)
    gaps = [at for at, one in enumerate(six) if one["pages"] is None and 12 < at < 70]
    assert GAP // 5 - 2 <= len(gaps) <= GAP // 5 + 1 and gaps == list(range(gaps[0], gaps[-1] + 1))
    rates = [one["pages_per_minute"] for one in six if one["pages_per_minute"] is not None]
    assert max(rates) < 350, "what a gap hid is no peak"
    assert any(one["freshness_p95_s"] for one in six)
    for one in six:
        if one["freshness_p95_s"] is not None:
            assert one["freshness_p50_s"] <= one["freshness_p95_s"]


@pytest.mark.parametrize("language", ["en", "vi"])
@pytest.mark.parametrize("hours", SPANS)
async def test_the_page_is_drawn_without_script(
    r: Any, client: httpx.Client, hours: int, language: str
) -> None:
    await fill_minutes(r, minutes=300)
    page = page_of(client, hours, language)
    count = len(steps_of(client, hours))
    assert page.count('<figure class="plot"') == 7
    assert len(re.findall(r'<rect class="(?:hit|gap)"', page)) == 7 * count
    assert "<script" not in page.split("</head>")[1] and "style=" not in page
    highs = re.findall(r'<rect class="c\d" x="[^"]+" y="([^"]+)" width="9" height="([^"]+)"', page)
    assert highs and all(float(y) >= 0 and float(y) + float(high) <= 100.01 for y, high in highs)
    gaps, rest = divmod(page.count('class="gap"'), 7)
    assert rest == 0 and 0 <= count_of_gaps(client, hours) - gaps <= 2, "a minute may have begun"
    assert gaps == 0 if hours == 1 else gaps > 0
    assert ("Trang mỗi phút" if language == "vi" else "Pages per minute") in page
    assert "RETRY(timeout)" in page


def count_of_gaps(client: httpx.Client, hours: int) -> int:
    return sum(one["pages"] is None for one in steps_of(client, hours))


async def test_one_point_is_shown(r: Any, client: httpx.Client) -> None:
    await Minutes(r).look({"q": 1234})
    [row] = [one for one in steps_of(client, 1) if one["queued"] is not None]
    assert (row["queued"], row["pages"], row["pages_per_minute"]) == (1234, 0, None)
    page = page_of(client, 1)
    assert page.count('<figure class="plot"') == 7 and "1,234" in page


def test_a_fleet_that_never_worked_has_no_plots(client: httpx.Client) -> None:
    assert all(list(one.values())[1:] == [None] * 13 for one in steps_of(client, 1))
    page = client.get("/fleet", headers=PAGE).text
    assert "No worker was running within the last 1 hour" in page and "<figure" not in page


def test_a_redis_that_is_away_is_said(search_page: str) -> None:
    with httpx.Client(base_url=search_page) as away:
        answer = away.get("/api/fleet/history")
        assert answer.status_code == 503 and answer.json()["error"] == "no Redis in this test"
        page = away.get("/fleet", headers=PAGE)
        assert page.status_code == 200 and "no Redis in this test" in page.text
        assert "No worker was running" not in page.text


@pytest.mark.parametrize("hours", ["0", "2", "-1", "x", "24.0", "1e9"])
def test_other_spans_are_refused(client: httpx.Client, hours: str) -> None:
    assert client.get("/api/fleet/history", params={"hours": hours}).status_code == 422
    assert client.get("/fleet", params={"hours": hours}, headers=PAGE).status_code == 422


def test_layers_stand_upon_one_another() -> None:
    def drawn(add: bool) -> dict[str, Any]:
        layers: list[tuple[str, list[float | None]]] = [("a", [30, None]), ("b", [40, None])]
        gaps = [False, True]
        return layered("x", layers, ["1", "2"], gaps, top=nice, show=str, add=add)

    added, reached = drawn(True), drawn(False)
    assert (added["most"], reached["most"]) == ("70", "40")
    assert [part["high"] for part in added["bars"][0]["parts"]] == [37.5, 50]
    assert [part["high"] for part in reached["bars"][0]["parts"]] == [75, 25]
    assert added["bars"][1]["is_gap"] and "no data" in added["bars"][1]["title"]
    assert [nice_span(s) for s in (1, 61, 90_000, 10**7)] == [10, 120, 172_800, 10**7]


def incidents_of(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/incidents").json()["incidents"]
    return found


async def test_without_incidents_nothing_is_said(r: Any, client: httpx.Client) -> None:
    assert incidents_of(client) == []
    assert "What is wrong now" not in page_of(client, 1)


async def test_what_the_monitor_has_told_of_is_shown_until_it_is_over(
    r: Any, client: httpx.Client
) -> None:
    now_ms = round(time.time() * 1000)
    book = Incidents(r)
    seen = [Verdict("away", "article store", "it does not <answer>")]
    await book.note(now_ms - 600_000, seen, ["away"])
    await book.note(now_ms, seen, ["away"])
    [one] = incidents_of(client)
    assert (one["kind"], one["subject"], one["severity"]) == ("away", "article store", "critical")
    assert one["since"] and one["well_since"] is None and "scrapy doctor" in one["explain"]
    english, vietnamese = page_of(client, 1), page_of(client, 1, "vi")
    assert "What is wrong now" in english and "it does not &lt;answer&gt;" in english
    assert "Đang có sự cố" in vietnamese
