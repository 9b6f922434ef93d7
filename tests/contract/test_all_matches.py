"""Everything that a query finds: in portions, and counted by day and site."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import orjson
import pytest

from newscrawler.items import Article
from newscrawler.store.base import DEEPEST, Query, QueryError, WholeStore
from newscrawler.store.export import export, matches
from tests.contract.articles import CORPUS, START, article, article_id, filler
from tests.contract.conftest import StoreOf

GOLD = [article(f"g{n}", f"Giá vàng phiên {n}", filler(n)) for n in range(25)]
OTHER = [article(f"o{n}", f"Thời tiết ngày {n}", filler(100 + n)) for n in range(10)]


async def every(store: WholeStore, query: Query, size: int) -> list[Article]:
    found: list[Article] = []
    cursor = ""
    while True:
        portion = await store.portion(query, cursor, size)
        found += portion.articles
        cursor = portion.cursor
        if not cursor:
            return found


@pytest.fixture
async def filled(store: WholeStore) -> WholeStore:
    await store.put([*GOLD, *OTHER])
    await store.refresh()
    return store


@pytest.fixture
async def kept(store_of: StoreOf) -> WholeStore:
    """The same articles, for tests that only read."""
    return cast(WholeStore, await store_of([*GOLD, *OTHER]))


@pytest.mark.parametrize("size", [1, 5, 24, 25, 26, 100])
async def test_portions_have_every_match_once(kept: WholeStore, size: int) -> None:
    found = await every(kept, Query('"giá vàng"'), size)
    assert Counter(a.id for a in found) == Counter(a.id for a in GOLD)


async def test_the_first_portion_says_how_many_there_are(kept: WholeStore) -> None:
    portion = await kept.portion(Query('"giá vàng" site:vnexpress.net'), size=3)
    assert (portion.total, len(portion.articles)) == (25, 3) and portion.cursor
    again = await kept.portion(Query(), portion.cursor, 3)  # the query is that of the cursor
    assert again.total == 25 and all(a.title.startswith("Giá vàng") for a in again.articles)
    nothing = await kept.portion(Query("title:khôngcó"), size=3)
    assert (nothing.total, nothing.articles, nothing.cursor) == (0, [], "")


async def test_everything_is_found_by_an_empty_query(kept: WholeStore) -> None:
    assert {a.id for a in await every(kept, Query(), 10)} == {a.id for a in [*GOLD, *OTHER]}


async def test_portions_are_consistent_while_articles_are_written(filled: WholeStore) -> None:
    portion = await filled.portion(Query('"giá vàng"'), size=10)
    found = [a.id for a in portion.articles]
    new = [article(f"n{n}", f"Giá vàng mới {n}", filler(200 + n)) for n in range(10)]
    moved = [replace(a, content=f"{a.content} Cập nhật.", published=START) for a in GOLD]
    await filled.put([*new, *moved])
    await filled.refresh()
    while portion.cursor:
        portion = await filled.portion(Query(), portion.cursor, 4)
        found += [a.id for a in portion.articles]
    assert Counter(found) == Counter(a.id for a in GOLD)


async def test_a_relaxed_query_stays_as_it_was_settled(filled: WholeStore) -> None:
    """Typed with a mistake; the corrected word is the one of the first portion to the end."""
    portion = await filled.portion(Query("thoiw tiết ngày"), size=4)
    found = [a.id for a in portion.articles]
    await filled.put([article("t", "Thoiw tiết ngày", filler(300))])
    await filled.refresh()
    while portion.cursor:
        portion = await filled.portion(Query(), portion.cursor, 4)
        found += [a.id for a in portion.articles]
    assert portion.relaxed and set(found) >= {a.id for a in OTHER}
    assert article("t").id not in found


@pytest.mark.parametrize("cursor", ["x", "A" * 40, "é", "eJw=", "A" * 20_000, "ADS" * 4_000])
async def test_a_cursor_of_nobody_is_refused(kept: WholeStore, cursor: str) -> None:
    with pytest.raises(QueryError, match="cursor"):
        await kept.portion(Query(), cursor, 5)


async def test_a_changed_cursor_is_refused_or_answered(kept: WholeStore) -> None:
    portion = await kept.portion(Query('"giá vàng"'), size=3)
    assert portion.cursor
    for at in range(0, len(portion.cursor), 7):
        broken = portion.cursor[:at] + "_" + portion.cursor[at + 1 :]
        if broken != portion.cursor:
            try:
                await kept.portion(Query(), broken, 3)
            except QueryError:
                continue


async def test_meaning_has_no_end(kept: WholeStore) -> None:
    with pytest.raises(QueryError, match="semantic"):
        await kept.portion(Query("vàng", mode="semantic"))


# ---------------------------------------------------------------- by day
async def test_matches_are_counted_by_day_and_site(store: WholeStore) -> None:
    await store.put(CORPUS)
    await store.refresh()
    assert await store.days(Query("site:tuoitre.vn OR author:an")) == {
        "2026-08-02": {"vnexpress.net": 1},
        "2026-08-03": {"tuoitre.vn": 1},
        "2026-08-04": {"tuoitre.vn": 1},
        "2026-08-06": {"tuoitre.vn": 1},
    }
    days = await store.days(Query())
    assert sum(sum(sites.values()) for sites in days.values()) == len(CORPUS)
    assert list(days) == sorted(days)
    assert await store.days(Query("title:khôngcó")) == {}


async def test_days_are_those_of_the_reader(store: WholeStore) -> None:
    await store.put(
        [article(f"h{n}", f"Tin {n}", filler(n), published=START + timedelta(hours=9 + n)) for n in range(2)]
    )  # fmt: skip
    await store.refresh()
    assert await store.days(Query()) == {"2026-08-01": {"vnexpress.net": 2}}
    there = await store.days(Query(zone=ZoneInfo("Asia/Ho_Chi_Minh")))
    assert there == {"2026-08-01": {"vnexpress.net": 1}, "2026-08-02": {"vnexpress.net": 1}}


async def test_headlines_are_those_of_a_span(store: WholeStore) -> None:
    await store.put(CORPUS)
    left = article("links", "Đã gỡ", filler(7), published=START + timedelta(days=2))
    await store.put([left])
    await store.mark_gone([left.id])
    await store.refresh()
    found = await store.headlines(START + timedelta(days=1), START + timedelta(days=3))
    assert [(h.title, h.site, h.at) for h in found] == [
        ("Bão số 5 đổ bộ Hà Nội", "vnexpress.net", START + timedelta(days=1)),
        ("Giá vàng tăng mạnh", "tuoitre.vn", START + timedelta(days=2)),
    ]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "elasticsearch"], indirect=True)
async def test_neither_cursor_nor_export_ends_at_ten_thousand(
    store: WholeStore, tmp_path: Path
) -> None:
    """A page of hits does: no search goes deeper."""
    many = DEEPEST + 250
    for first in range(0, many, 500):
        made = range(first, min(many, first + 500))
        await store.put([article(f"m{n}", f"Tin số {n}", "nhanh") for n in made])
    await store.refresh()
    with pytest.raises(QueryError, match="10,000"):
        await store.search(Query("tin nhanh", page=DEEPEST // 100, size=100))
    wanted = {article_id(f"m{n}") for n in range(many)}
    found = await every(store, Query("tin nhanh"), 500)
    assert len(found) == many and {a.id for a in found} == wanted
    out = tmp_path / "out.jsonl"
    assert await export(matches(store, Query("tin nhanh")), "jsonl", out) == many
    assert {orjson.loads(line)["id"] for line in out.read_bytes().splitlines()} == wanted
