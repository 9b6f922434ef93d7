"""Where a crawl starts, and how often it looks again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from newscrawler.discovery.seeds import LONGEST_S, SHORTEST_S, next_interval, seed_links
from newscrawler.discovery.sitefile import expand, site_from_dict
from newscrawler.items import Kind

NOW_MS = 1_793_000_000_000  # 2026-10-26


def site(**more: Any) -> Any:
    return site_from_dict({"id": "bao.vn", "home": "https://bao.vn/", "zone": "+07:00", **more})


@pytest.mark.parametrize(
    ("share", "current", "then"),
    [
        (0.0, 900, 600),
        (0.329, 900, 600),
        (0.33, 900, 900),
        (0.5, 900, 900),
        (0.67, 900, 900),
        (0.671, 900, 1350),
        (1.0, 900, 1350),
        (0.0, 300, SHORTEST_S),
        (0.0, 450, SHORTEST_S),
        (1.0, 57_600, LONGEST_S),
        (1.0, 57_599, 86_398.5),
        (1.0, 86_400, LONGEST_S),
    ],
)
def test_interval_follows_the_share_of_known_links(
    share: float, current: float, then: float
) -> None:
    assert next_interval(share, current) == pytest.approx(then)


def test_seeds_in_the_order_of_use_each_once() -> None:
    links = seed_links(
        site(
            aliases={"bao.com.vn": "bao.vn"},
            feeds=[
                "https://bao.vn/a.rss",
                {"url": "https://bao.vn/dead.rss", "status": "dead"},
                "https://bao.com.vn/a.rss",
            ],
            sitemaps=["https://bao.vn/sitemap.xml"],
            sections=["https://bao.vn/thoi-su", "https://bao.vn/thoi-su"],
        ),
        NOW_MS,
    )
    assert [(found.kind, found.url) for found in links] == [
        (Kind.HOME, "https://bao.vn/"),
        (Kind.FEED, "https://bao.vn/a.rss"),
        (Kind.SITEMAP, "https://bao.vn/sitemap.xml"),
        (Kind.SECTION, "https://bao.vn/thoi-su"),
    ]
    assert all(found.revisit and found.depth == 0 and found.domain == "bao.vn" for found in links)
    assert links[0].band == 0 and links[1].band == 0 and links[2].band == 2 and links[3].band == 1


def test_a_seed_that_the_file_calls_dead_is_asked_on_one_day_a_month() -> None:
    dead = [{"url": f"https://bao.vn/{n}.rss", "status": "dead"} for n in range(40)]
    made = site(feeds=dead)
    days = [[x.url for x in seed_links(made, NOW_MS + day * 86_400_000)[1:]] for day in range(60)]
    asked = [url for day in days for url in day]
    assert all(asked.count(seed["url"]) == 2 for seed in dead)
    assert max(len(day) for day in days) < 10  # not all of them on the same day
    busy = next(day for day, urls in enumerate(days) if urls)
    link = seed_links(made, NOW_MS + busy * 86_400_000)[1]
    assert link.kind is Kind.FEED and link.revisit


@pytest.mark.parametrize(
    ("utc", "months"),
    [
        ("2026-10-15T00:00", ["2026-10"]),
        ("2026-10-31T16:59", ["2026-10"]),  # 23:59 in Vietnam
        ("2026-10-31T17:00", ["2026-11", "2026-10"]),
        ("2026-11-02T16:59", ["2026-11", "2026-10"]),
        ("2026-11-02T17:00", ["2026-11"]),
        ("2026-12-31T17:00", ["2027-1", "2026-12"]),
    ],
)
def test_a_monthly_sitemap_and_in_the_first_days_the_one_before(
    utc: str, months: list[str]
) -> None:
    now_ms = round(datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp() * 1000)
    links = seed_links(site(sitemaps=["https://bao.vn/s-{year}-{month}.xml"]), now_ms)
    assert [found.url for found in links if found.kind is Kind.SITEMAP] == [
        f"https://bao.vn/s-{m}.xml" for m in months
    ]


@pytest.mark.parametrize(
    ("day", "shard"),
    [
        ("2026-10-01", "2026-10-1-5"),
        ("2026-10-05", "2026-10-1-5"),
        ("2026-10-06", "2026-10-6-10"),
        ("2026-10-25", "2026-10-21-25"),
        ("2026-10-26", "2026-10-26-31"),
        ("2026-10-31", "2026-10-26-31"),
        ("2026-02-28", "2026-2-26-28"),
        ("2028-02-29", "2028-2-26-29"),
    ],
)
def test_shards_of_five_days(day: str, shard: str) -> None:
    template = "https://a.vn/{year}-{month}-{day_from}-{day_to}"
    assert expand(template, datetime.fromisoformat(day)) == f"https://a.vn/{shard}"
    assert expand("https://a.vn/{month2}", datetime(2026, 2, 3)) == "https://a.vn/02"
