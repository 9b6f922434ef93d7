"""One step: its acks, the size of its calls, and what comes due, on a real Redis."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from newscrawler.frontier import keys, schema
from newscrawler.frontier.queue import Ack
from newscrawler.items import Kind, Outcome
from tests.redis.helpers import advance, check, done, ended, frontier, link, links

MINUTE = 60_000


class Calls:
    """What each script call was given, as the frontier sends it."""

    def __init__(self, f: Any) -> None:
        self.made: list[tuple[str, tuple[Any, ...]]] = []
        run = f.scripts.run

        async def noted(name: str, prefix: str, *args: Any) -> Any:
            self.made.append((name, args))
            return await run(name, prefix, *args)

        f.scripts.run = noted

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(ended fetches, acks) of each step call."""
        found = []
        for name, args in self.made:
            if name == "step":
                acks = msgpack.unpackb(args[3], raw=True) if args[3] else []
                found.append((len(args[2]) // schema.FETCHED.size, len(acks)))
        return found


async def test_a_large_step_is_several_short_calls(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(80))
    f = await frontier(r, domains=names)
    for name in names:
        await f.add(links(2, name))
    first = await f.step(40)
    assert len({x.domain for x in first.leases}) == 40
    calls = Calls(f)
    rest = await f.step(80, [done(x) for x in first.leases[:20]], [ended(x) for x in first.leases])
    assert (
        sum(fetched for fetched, _ in calls.sizes) == 40
        and sum(acks for _, acks in calls.sizes) == 20
    )
    assert (
        max(fetched for fetched, _ in calls.sizes) <= 32
        and max(acks for _, acks in calls.sizes) <= 16
    )
    assert not rest.rejected
    assert len({x.domain for x in rest.leases}) == 80, (
        "a domain whose fetch has ended is there again in the same step"
    )
    last = await f.step(100, [done(x) for x in [*first.leases[20:], *rest.leases]])
    assert not last.rejected and len(last.leases) == 40
    assert (await f.step(1, [done(x) for x in last.leases])).pending == 0
    assert set((await check(r)).values()) == {"finished"}


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.GONE, Outcome.FAILED, Outcome.RETRY])
@pytest.mark.parametrize("kind", [Kind.ARTICLE, Kind.SECTION])
async def test_an_ack_without_its_records_header_ends_alike(
    r: Any, outcome: Outcome, kind: Kind
) -> None:
    f = await frontier(r, domains=("a.vn", "b.vn"))
    parent, hint = bytes(range(16)), {"title": "Giá vàng"}
    await f.add(
        [
            link("/x", name, kind=kind, depth=3, parent=parent, hint=hint)
            for name in ("a.vn", "b.vn")
        ]
    )
    leases = (await f.step(2)).leases
    assert all(lease.header for lease in leases)
    leases[0].header = b""
    acks = [done(x, outcome, raw_ref="w-1.warc.gz:5:7", digest=bytes(range(16))) for x in leases]
    assert not (await f.step(0, acks)).rejected
    found = [await f.record(x.url_id, x.domain) for x in leases]
    assert found[0] is not None and found[0].kind is kind and found[0].depth == 3
    for record in found:
        assert record is not None
        record.url_id, record.domain = b"", ""
        record.url = record.url and record.url.replace("b.vn", "a.vn")
    assert found[0] == found[1]
    await check(r)


async def test_after_a_long_rest_what_is_due_comes_in_pieces(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(16))
    f = await frontier(r, domains=names, retry_ms=MINUTE)
    for name in names:
        await f.add(links(20, name))
    acks: list[Ack] = []
    for _ in range(40):
        step = await f.step(16, acks)
        acks = [done(x, Outcome.RETRY, reason="status", status=500) for x in step.leases]
        if not acks:
            break
    assert step.queued == 320 and not step.leases
    await advance(r, 2 * MINUTE)
    queues = [keys.queue(0, name) for name in names]
    step = await f.step(16)
    assert len(step.leases) == 16
    moved = 16 + sum([await r.zcard(key) for key in queues])
    assert 16 < moved <= 64 + 16, "one script moves no more than a few"
    await check(r)
    seen = {x.url for x in step.leases}
    acks = [done(x) for x in step.leases]
    for _ in range(40):
        step = await f.step(16, acks)
        acks = [done(x) for x in step.leases]
        seen |= {x.url for x in step.leases}
        if not acks:
            break
    assert len(seen) == 320 and set((await check(r)).values()) == {"finished"}
