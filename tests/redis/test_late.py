"""A script call that lasts too long ends early, and nothing is lost by it. On a real Redis."""

from __future__ import annotations

from typing import Any

import msgpack

from newscrawler.frontier.queue import FrontierConfig
from newscrawler.store.finished import LocalFinished
from tests.redis.helpers import check, done, frontier, links


class Sizes:
    """How many links each call of add.lua was given and answered."""

    def __init__(self, f: Any) -> None:
        self.calls: list[tuple[int, int]] = []
        run = f.scripts.run

        async def noted(name: str, prefix: str, *args: Any) -> Any:
            answer = await run(name, prefix, *args)
            if name == "add":
                given = sum(len(group[1]) for group in msgpack.unpackb(args[0], raw=True))
                self.calls.append((given, len(answer)))
            return answer

        f.scripts.run = noted


async def test_a_late_offer_goes_on_with_the_next_call(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(20))
    f = await frontier(r, domains=names, call_ms=0)
    sizes = Sizes(f)
    of_one = links(30, names[0])
    result = await f.add(of_one)
    assert (result.added, result.seen) == (30, 0)
    assert sizes.calls[0] == (30, 7), "it ends at the eighth link"
    assert sum(answered for _, answered in sizes.calls) == 30
    of_many = [x for name in names[1:] for x in links(2, name)]
    result = await f.add([*of_many, *of_one[:5]])
    assert (result.added, result.seen) == (38, 5)
    assert any(0 < answered < given for given, answered in sizes.calls[-3:])
    assert sorted((await check(r)).values()) == ["queued"] * 68


async def test_a_late_offer_still_asks_the_archive(r: Any, tmp_path: Any) -> None:
    archive = LocalFinished(tmp_path / "finished.db")
    f = await frontier(r, domains=("a.vn",), archive=archive, call_ms=0, finished_limit=4096 * 2)
    try:
        many = links(40, "a.vn")
        assert (await f.add(many)).added == 40
        acks: list[Any] = []
        for _ in range(60):
            step = await f.step(16, acks)
            acks = [done(x) for x in step.leases]
            if not acks:
                break
        await f.step(0, acks)
        f.local.clear()
        fresh = links(50, "a.vn")
        result = await f.add(fresh)
        assert (result.added, result.seen) == (10, 40)
    finally:
        await archive.close()


async def test_a_late_step_leases_fewer_and_says_that_there_is_more(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(24))
    f = await frontier(r, domains=names, call_ms=0)
    for name in names:
        await f.add(links(1, name))
    found, rounds, acks = set[str](), 0, list[Any]()
    while True:
        step = await f.step(16, acks)
        if not step.leases:
            break
        rounds += 1
        assert len(step.leases) == 4 and (len(found) == 20 or step.wait_ms == 0)
        found |= {x.url for x in step.leases}
        acks = [done(x) for x in step.leases]
    assert (rounds, len(found)) == (6, 24)
    assert set((await check(r)).values()) == {"finished"}


async def test_a_call_in_time_is_not_cut(r: Any) -> None:
    names = tuple(f"d{i}.vn" for i in range(40))
    f = await frontier(r, domains=names, call_ms=60_000)
    sizes = Sizes(f)
    await f.add([x for name in names for x in links(1, name)])
    assert sizes.calls == [(40, 40)]
    assert len((await f.step(40)).leases) == 40
    assert FrontierConfig().call_ms < 10
