"""How many workers have something to do: by what is queued, and by what politeness allows.

A domain is fetched by one worker at a time, with its delay between two fetches. So a fleet cannot
fetch more than the sum of 1/delay over the domains that have something due, whatever its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from newscrawler.utils.display import number_of

#: Pages that one worker handles in a second when nothing is measured yet: a tenth of what the
#: benchmark of docs/performance.md gives, as real pages are larger and selector sets are made.
PAGES_PER_S = 40.0
#: The queue is to be worked off within so long, where politeness allows it, seconds.
WORK_OFF_S = 300.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What the frontier has to do. ``rate``: pages per second that the delays of the due domains
    allow together."""

    queued: int = 0
    due_domains: int = 0
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Useful:
    workers: int
    why: str


def useful(demand: Demand, pages_per_s: float = PAGES_PER_S) -> Useful:
    """The number of workers that have something to do.

    :param pages_per_s: of one busy worker
    """
    if not demand.queued or not demand.due_domains:
        return Useful(0, "nothing is due")
    wanted_rate = min(demand.rate, demand.queued / WORK_OFF_S)
    by_rate = max(1, math.ceil(wanted_rate / pages_per_s))
    workers = min(by_rate, demand.due_domains)
    why = (
        f"{demand.queued:,} URLs queued at {demand.due_domains:,} due domains, whose delays allow"
        f" {demand.rate:,.1f} pages/s together; one worker does {pages_per_s:,.0f} pages/s"
    )
    return Useful(workers, why)


def within(number: int, least: int, most: int) -> int:
    return max(least, min(most, number))


def waste(workers: int, demand: Demand) -> str:
    """A warning of more workers than domains; "" = each has something to do."""
    if not workers or not demand.queued or workers <= demand.due_domains:
        return ""
    idle = workers - demand.due_domains
    return (
        f"{number_of(workers, 'worker')} for {number_of(demand.due_domains, 'due domain')}:"
        f" a domain is fetched by one worker"
        f" at a time, so {idle} of them {'has' if idle == 1 else 'have'} nothing to fetch"
    )
