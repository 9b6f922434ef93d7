"""At which hours a site publishes, from what the fleet has counted in Redis."""

from __future__ import annotations

from typing import Any

from newscrawler.crawl.rhythms import AT_ONCE, Rhythms
from newscrawler.fleet import history
from newscrawler.fleet.history import HOUR_MS, Notes

NOW_H = 24 * 20_600 + 9


async def publish(r: Any, site: str, days: int) -> None:
    """So many days before now: four articles an hour from 6 to 21, none at night; the fleet reads
    pages at every hour."""
    pipe = r.pipeline(transaction=False)
    for hour in range(NOW_H - 24 * days, NOW_H):
        count = 4 if 6 <= hour % 24 < 22 else 0
        counts = {site: {"pages": 5}}
        hours = {site: {hour: count}}
        history.note(pipe, {}, Notes(counts, hours), hour * HOUR_MS + 60_000)
    await pipe.execute()


async def test_what_the_fleet_has_counted_tells_the_hours_of_a_site(r: Any) -> None:
    await publish(r, "bao.vn", 4)
    await publish(r, "moi.vn", 1)
    rhythms, now_ms = Rhythms(r), NOW_H * HOUR_MS + 5
    for site in ("bao.vn", "moi.vn", "nie.vn"):
        assert rhythms.of(site, now_ms) is None, "it is read first"
    await rhythms.refresh(now_ms)
    found = rhythms.of("bao.vn", now_ms)
    assert found is not None and (found.rates[12], found.rates[2]) == (4, 0)
    assert rhythms.of("moi.vn", now_ms) is None and rhythms.of("nie.vn", now_ms) is None
    later = now_ms + HOUR_MS
    assert rhythms.of("bao.vn", later) is found, "the old one until the new one is read"
    await publish(r, "bao.vn", 1)  # twice as many in the last day
    await rhythms.refresh(later)
    again = rhythms.of("bao.vn", later)
    assert again is not None and again.rates[12] > 4


async def test_many_sites_are_read_in_turns(r: Any) -> None:
    await publish(r, "bao.vn", 4)
    rhythms, now_ms = Rhythms(r), NOW_H * HOUR_MS
    for number in range(AT_ONCE + 5):
        rhythms.of(f"s{number}.vn", now_ms)
    rhythms.of("bao.vn", now_ms)
    await rhythms.refresh(now_ms)
    assert rhythms.of("bao.vn", now_ms) is None
    await rhythms.refresh(now_ms)
    assert rhythms.of("bao.vn", now_ms) is not None
