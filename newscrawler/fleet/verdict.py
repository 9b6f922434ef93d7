"""What to say of a crawl that ended without a page: nothing was due, or nothing
could be fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from newscrawler import metrics
from newscrawler.fleet.rows import UNREACHABLE
from newscrawler.utils.display import clock_text

NOTHING_FETCHED = (
    "Nothing at all could be fetched. Is there a network? `scrapy doctor` checks this machine."
)


def nothing_due(stats: Mapping[str, Any]) -> str:
    """What to say of a crawl that was handed nothing, as all that there is comes later."""
    queued = stats.get(metrics.CHOSEN_QUEUED, stats.get(metrics.FRONTIER_QUEUED, 0))
    waiting = stats.get(metrics.CHOSEN_WAITING, stats.get(metrics.FRONTIER_WAITING, 0))
    known = f"{waiting:,} visited addresses come again later"
    if queued:
        known += f", {queued:,} are queued and held back (`scrapy frontier report` says why)"
    next_s = stats.get(metrics.FRONTIER_NEXT, -1)
    first = f"; the first is due in {clock_text(next_s)}" if next_s >= 0 else ""
    return f"Nothing is due now: {known}{first}."


def nothing_fetched(stats: Mapping[str, Any]) -> str:
    """What to say of a crawl that no site answered, as no name was found or no connection made. ""
    = something answered, or nothing was tried."""
    prefix = f"{metrics.PAGE_REASON}/"
    counts = {name.removeprefix(prefix): n for name, n in stats.items() if name.startswith(prefix)}
    if stats.get(metrics.PAGES) or not counts:
        return ""
    for label in sorted(counts, key=lambda name: -counts[name]):
        reason = label[label.find("(") + 1 : -1]
        for known, text in UNREACHABLE.items():
            if reason.startswith(known) or reason.endswith(known):
                return f"{NOTHING_FETCHED} Visits ended with: {text.removeprefix('no network? ')}."
    return ""
