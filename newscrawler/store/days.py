"""Days as people write them, in the zone of the person who writes them. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from newscrawler.store.base import QueryError

_YEAR_FIRST = re.compile(r"(?P<year>\d{4})(?:[-/](?P<month>\d{1,2}))?(?:[-/](?P<day>\d{1,2}))?")
_DAY_FIRST = re.compile(r"(?:(?P<day>\d{1,2})[-/.])?(?P<month>\d{1,2})[-/.](?P<year>\d{4})")
#: What a hint says can be written.
FORMS = "31/8/2026, 31-8-2026, 2026-08-31, 8/2026 or 2026"


def day(name: str, text: str, zone: tzinfo = UTC) -> datetime:
    """First moment of a day, a month or a year: ``31/8/2026``, ``31-8-2026``, ``2026-08-31``,
    ``8/2026``, ``2026-08``, ``2026``. Raises QueryError naming ``name``."""
    match = _YEAR_FIRST.fullmatch(text) or _DAY_FIRST.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        parts = match.groupdict()
        year, month, of_month = (int(parts[part] or 1) for part in ("year", "month", "day"))
        return datetime(year, month, of_month, tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        raise QueryError(f"{name}:{text}: not a day; write {FORMS}") from None


def moment(name: str, text: str, zone: tzinfo = UTC) -> datetime:
    """The value of a parameter: a day as in :func:`day`, or an ISO time, which is of ``zone``
    where it has no offset. Raises QueryError."""
    text = text.strip()
    with suppress(QueryError):
        return day(name, text, zone)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise QueryError(f"{name}={text}: not a day; write {FORMS}, or an ISO time") from None
    return when if when.tzinfo else when.replace(tzinfo=zone)


def zone_of(name: str) -> tzinfo:
    """ "Asia/Ho_Chi_Minh" -> that zone. Raises QueryError."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # also a folder of zones, or a path
        raise QueryError(f"zone={name}: not a time zone; write one as Asia/Ho_Chi_Minh") from None
