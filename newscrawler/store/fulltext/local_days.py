"""Counting articles by the days of a time zone, from their times in the index.

The engine cuts time into equal parts from an offset on. A zone with summer time has two offsets: it
is asked for both, and each day is taken from the offset that holds at its noon. The two days on
which the clock changes are an hour off.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice
from typing import Any

from newscrawler.store.fulltext.schema import time_key, time_of

_DAY_MS = 86_400_000
#: Years whose offsets are asked for: news of the web.
_YEARS = range(1995, 2040)


@lru_cache(maxsize=64)
def offsets_ms(zone: tzinfo) -> tuple[int, ...]:
    """Every offset from UTC that the zone has at some time."""
    starts = (
        datetime(year, month, 15, 12, tzinfo=zone) for year in _YEARS for month in (1, 4, 7, 10)
    )
    return tuple(sorted({_offset_ms(start) for start in starts}))


def asked(zone: tzinfo) -> dict[str, Any]:
    """Aggregations of one search."""
    return {
        f"day{offset}": {
            "histogram": {
                "field": "at",
                "interval": float(time_key(_DAY_MS)),
                "offset": float(time_key(-offset % _DAY_MS)),
                "min_doc_count": 1,
            }
        }
        for offset in offsets_ms(zone)
    }


def newest(found: dict[str, Any], zone: tzinfo, most: int) -> dict[str, int]:
    """``{"2026-08-31": articles}`` of the answers to :func:`asked`, the newest day first."""
    days: dict[str, int] = {}
    for offset in offsets_ms(zone):
        latest = islice(_buckets(found, zone, offset, newest_first=True), most)
        days |= {day: int(bucket["doc_count"]) for day, bucket in latest}
    return dict(sorted(days.items(), reverse=True)[:most])


def by_site(found: dict[str, Any], zone: tzinfo) -> dict[str, dict[str, int]]:
    """``{"2026-08-31": {site: articles}}``, where each part was counted by ``site`` as well."""
    days = {
        day: {of["key"]: int(of["doc_count"]) for of in bucket["site"]["buckets"]}
        for offset in offsets_ms(zone)
        for day, bucket in _buckets(found, zone, offset)
    }
    return dict(sorted(days.items()))


def _buckets(
    found: dict[str, Any], zone: tzinfo, offset: int, newest_first: bool = False
) -> Iterator[tuple[str, Any]]:
    """Days of ``zone`` that have this offset."""
    buckets = found[f"day{offset}"]["buckets"]  # by their key
    for bucket in reversed(buckets) if newest_first else buckets:
        start_ms = time_of(int(bucket["key"]))
        # Floating point has some 50 bits of the key: the noon of the day is safe from it.
        noon = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=start_ms + _DAY_MS // 2)
        local = noon.astimezone(zone)
        if _offset_ms(local) == offset:
            yield local.date().isoformat(), bucket


def _offset_ms(when: datetime) -> int:
    offset = when.utcoffset() or timedelta()
    return int(offset.total_seconds() * 1000)
