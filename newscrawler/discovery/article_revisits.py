"""When an article is looked at again, and how old it may be. Lists: list_revisits.py. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

#: An article is looked at again for edits this long after it was discovered, seconds: most
#: corrections of news come within the first hours.
ARTICLE_REVISITS_S = (15 * 60, 3600, 6 * 3600, 86_400)
DAY_S = 86_400


def article_visit_ms(now_ms: int, discovered_ms: int) -> int | None:
    """Ms since the epoch of an article's next visit by ARTICLE_REVISITS_S, None = it rests."""
    # The first step that is still ahead, a minute of grace so that an early visit is not
    # repeated at once.
    age_s = (now_ms - discovered_ms) / 1000
    for step in ARTICLE_REVISITS_S:
        if step > age_s + 60:
            return discovered_ms + step * 1000
    return None


def max_age_s(since: str | None, default_days: float) -> float | None:
    """How old an article may be when it is first queued, seconds; None = any age.

    :param since: ``3d``, ``12h`` or an ISO day/time (no zone = +07:00); None = ``default_days``
    :raises ValueError: not readable, or in the future
    """
    if not since:
        return default_days * DAY_S or None
    if m := re.fullmatch(r"(\d+)([hd])", since.strip()):
        return int(m[1]) * (3600 if m[2] == "h" else DAY_S)
    try:
        when = datetime.fromisoformat(since.strip())
    except ValueError:
        raise ValueError(
            f'since="{since}": must be a day (2026-11-01), a time (2026-11-01T08:00+07:00), 3d'
            " or 12h"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.fromisoformat("2000-01-01T00:00+07:00").tzinfo)
    age = (datetime.now(UTC) - when).total_seconds()
    if age < 0:
        raise ValueError(f'since="{since}" is in the future')
    return age
