"""URLs that were in the hands of workers that died: which of them rest, and until when. See docs/frontier.md."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from newscrawler.frontier import keys, records
from newscrawler.frontier.errors import translated
from newscrawler.frontier.explain import is_suspect
from newscrawler.frontier.types import FrontierConfig

if TYPE_CHECKING:
    from newscrawler.frontier.operator import Operator

#: The longest rest there is.
LONGEST_MS = FrontierConfig().retry_max_ms
#: Most URLs with a due time that are looked at, for one line at the end of a crawl.
MOST = 50_000
BATCH = 500


@dataclass(frozen=True, slots=True)
class Resting:
    """Suspects that are queued again and not yet due. ``until_ms``: of the first of them, by the frontier's clock."""

    urls: int = 0
    until_ms: int = 0


async def resting(operator: Operator) -> Resting:
    """Looks at everything that has a due time within the longest rest."""
    now = await operator.now_ms()
    found: list[int] = []
    looked = 0
    async for state in operator.states():
        if not state.due or state.next_due > now + LONGEST_MS or looked >= MOST:
            continue
        shard = keys.shard_of(state.domain, operator.shards)
        with translated():
            due = await operator.client.zrangebyscore(
                keys.due(shard, state.domain),
                f"({now}",
                now + LONGEST_MS,
                start=0,
                num=MOST - looked,
                withscores=True,
            )
            looked += len(due)
            for part in [due[at : at + BATCH] for at in range(0, len(due), BATCH)]:
                held = await operator.client.hmget(keys.records(shard, state.domain), [url_id for url_id, _ in part])
                for (url_id, due_ms), data in zip(part, held, strict=True):
                    with suppress(records.BadRecord):
                        if data is not None and is_suspect(records.unpack_queued(url_id, state.domain, data)):
                            found.append(int(due_ms))
    return Resting(len(found), min(found, default=0))
