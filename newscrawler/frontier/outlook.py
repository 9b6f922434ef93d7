"""What comes when nothing is granted just now: is it only the gates, or is nothing due?
See docs/frontier.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from newscrawler.frontier import keys, records, state_text
from newscrawler.frontier.errors import translated
from newscrawler.frontier.operator import Operator
from newscrawler.frontier.types import FrontierConfig

#: Domains or records that are read with one command.
BATCH = 500
#: The longest rest of a URL that was in the hands of a worker that died.
LONGEST_REST_MS = FrontierConfig().retry_max_ms
#: Most URLs with a due time that are looked at, for one line at the end of a crawl.
MOST_RESTING = 50_000
#: What is further away than this waits for the operator.
_FOR_GOOD_MS = 10 * 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class Outlook:
    """``is_held``: a revisit has come due and only its domain's gate holds it back, for no
    longer than was asked.
    ``next_ms``: real ms until the first domain may be fetched; None = nothing is planned."""

    is_held: bool
    next_ms: int | None


async def outlook(operator: Operator, within_ms: float) -> Outlook:
    """Reads the domains whose time comes within ``within_ms`` (real); for the end of a
    crawl, not for every call.

    The scripts count a revisit as waiting until its domain is leased: between two fetches of a
    domain, and after a restart of Redis that closes every gate for a moment, what is due already is
    counted like what is planned.
    """
    with translated():
        now = await operator.now_ms()
        factor = await operator.clock_factor()
        first: float | None = None
        for shard in range(operator.shards):
            for class_ in range(3):
                key = keys.ready(shard, class_)
                soonest = await operator.client.zrange(key, 0, 0, withscores=True)
                if soonest:
                    at = float(soonest[0][1])
                    first = at if first is None else min(first, at)
                if await _holds_due(operator, shard, key, now, now + within_ms * factor):
                    return Outlook(True, _real_ms(first, now, factor))
    return Outlook(False, _real_ms(first, now, factor))


@dataclass(frozen=True, slots=True)
class Waiting:
    """What some domains wait for. ``next``: (domain, real ms until it may be fetched, why), the
    soonest first; domains at which nothing is planned are left out."""

    queued: int
    planned: int
    next: list[tuple[str, int, str]]

    def text(self, most: int = 3) -> str:
        """ "nothing is due now at these sites (0 queued, 44 planned): next a.vn
        in 3m (revisit), ..."
        """
        head = (
            f"nothing is due now at these sites ({self.queued:,} queued, {self.planned:,} planned)"
        )
        if not self.next:
            return head
        told = [f"{name} {_when(ms)} ({why})" for name, ms, why in self.next[:most]]
        return f"{head}: next {', '.join(told)}"


def _when(ms: int) -> str:
    return f"in {state_text.span(ms / 1000)}" if ms < _FOR_GOOD_MS else "never"


async def waiting(operator: Operator, domains: Iterable[str]) -> Waiting:
    """Says what these domains wait for; for people, as it reads each of them."""
    now = await operator.now_ms()
    factor = await operator.clock_factor()
    queued, planned, found = 0, 0, []
    for domain in domains:
        state = await operator.state(domain)
        if state is None:
            continue
        queued, planned = queued + state.queued, planned + state.due
        if not state.queued and not state.due:
            continue
        open_at = state_text.open_from(state)
        why = state_text.note(state, now) or ("queued" if state.queued else "revisit")
        at = open_at if state.queued else max(open_at, state.next_due)
        at = state_text.FOR_GOOD if state.paused else at
        found.append((domain, max(0, round((at - now) / factor)), why))
    return Waiting(queued, planned, sorted(found, key=lambda one: one[1]))


def _real_ms(at: float | None, now: int, factor: float) -> int | None:
    return None if at is None else max(0, round((at - now) / factor))


async def _holds_due(operator: Operator, shard: int, key: str, now: int, until: float) -> bool:
    """Whether one of the domains of a ready set whose time comes before ``until`` has a
    revisit that is due."""
    start = 0
    while True:
        names = await operator.client.zrangebyscore(key, "-inf", until, start=start, num=BATCH)
        if not names:
            return False
        start += len(names)
        members: list[bytes] = []
        for state in await _states(operator, shard, names):
            if _is_due(state, now):
                return True
            if state.extra.group:  # of a group only one stands in the ready set
                group = keys.group_members(shard, state.extra.group)
                members += await operator.client.zrangebyscore(group, "-inf", until)
        if any(_is_due(state, now) for state in await _states(operator, shard, members)):
            return True


def _is_due(state: records.DomainState, now: int) -> bool:
    return state.due > 0 and state.next_due <= now


async def _states(operator: Operator, shard: int, names: list[bytes]) -> list[records.DomainState]:
    if not names:
        return []
    rows = await operator.client.hmget(keys.domains(shard), names)
    return [
        records.unpack_domain(name.decode(), data)
        for name, data in zip(names, rows, strict=True)
        if data is not None
    ]


@dataclass(frozen=True, slots=True)
class Resting:
    """URLs that were in the hands of workers that died: queued again and not yet due. ``until_ms``:
    of the first of them, by the frontier's clock."""

    urls: int = 0
    until_ms: int = 0


async def resting(operator: Operator) -> Resting:
    """Looks at everything that has a due time within the longest rest."""
    now = await operator.now_ms()
    found: list[int] = []
    looked = 0
    async for state in operator.states():
        if not state.due or state.next_due > now + LONGEST_REST_MS or looked >= MOST_RESTING:
            continue
        shard = operator.layout.of(state.domain)
        with translated():
            due = await operator.client.zrangebyscore(
                keys.due(shard, state.domain),
                f"({now}",
                now + LONGEST_REST_MS,
                start=0,
                num=MOST_RESTING - looked,
                withscores=True,
            )
            looked += len(due)
            for part in [due[at : at + BATCH] for at in range(0, len(due), BATCH)]:
                url_ids = [url_id for url_id, _ in part]
                held = await operator.client.hmget(keys.records(shard, state.domain), url_ids)
                for (url_id, due_ms), data in zip(part, held, strict=True):
                    if data is not None and _is_poison_candidate(url_id, state.domain, data):
                        found.append(int(due_ms))
    return Resting(len(found), min(found, default=0))


def _is_poison_candidate(url_id: bytes, domain: str, data: bytes) -> bool:
    try:
        return state_text.is_poison_candidate(records.unpack_queued(url_id, domain, data))
    except records.BadRecord:
        return False
