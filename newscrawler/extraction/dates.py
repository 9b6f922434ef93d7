"""Dates as news pages write them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from newscrawler.extraction.context import PageContext


@dataclass(frozen=True, slots=True)
class When:
    """``value`` is aware. ``has_time`` False: only the day is known. ``has_zone`` False: the zone is assumed."""

    value: datetime
    has_time: bool = True
    has_zone: bool = True


def parse(raw: str, context: PageContext | None = None) -> When | None:
    try:
        value = datetime.fromisoformat(raw.strip())
    except ValueError:
        return None
    return When(value if value.tzinfo else value.replace(tzinfo=UTC), len(raw) > 10, value.tzinfo is not None)
