"""What is known is found out by its ids alone, where many are: the same answers as without."""

from __future__ import annotations

from typing import Any

import pytest

from newscrawler.frontier.queue import Frontier
from newscrawler.items import Link, Outcome
from tests.redis.helpers import check, done, frontier, link, links
from tests.redis.test_archive import Archive, archive, move_all, opened  # noqa: F401  (a fixture)

NAMES = ("a.vn", "b.vn")


class Sent:
    """Which scripts a frontier called, and how many bytes with each."""

    def __init__(self, f: Frontier) -> None:
        self.calls: list[tuple[str, int]] = []
        run = f.scripts.run

        async def noted(name: str, prefix: str, *args: Any) -> Any:
            self.calls.append((name, sum(len(x) for x in args if isinstance(x, bytes))))
            return await run(name, prefix, *args)

        f.scripts.run = noted  # type: ignore[method-assign]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


async def test_known_links_are_asked_for_by_their_ids(r: Any) -> None:
    f = await frontier(r, domains=NAMES)
    await f.add(links(60) + links(30, "b.vn"))
    f.known_share = 0.9
    sent = Sent(f)
    result = await f.add(links(60) + links(30, "b.vn"))
    assert (result.added, result.seen) == (0, 90)
    assert sent.names == ["look"] and sent.calls[0][1] < 90 * 16 + 100
    result = await f.add(links(70) + links(30, "b.vn"))
    assert (result.added, result.seen) == (10, 90)
    assert sent.names == ["look", "look", "add"] and sent.calls[2][1] < 10 * 100
    assert len(await check(r)) == 100
    assert all(f.seen_local(x.url) for x in links(70) + links(30, "b.vn")), (
        "confirmed ones are remembered"
    )


async def test_whether_it_pays_is_learned(r: Any) -> None:
    f = await frontier(r)
    sent = Sent(f)
    for start in range(0, 1000, 100):
        await f.add(links(100, start=start))
    assert sent.names[-3:] == ["add"] * 3, "nothing was known"
    for start in range(0, 1000, 100):
        await f.add(links(100, start=start))
    assert sent.names[-3:] == ["look"] * 3, "all was known"
    await f.add(links(10))
    assert sent.names[-1] == "add", "a few links are not worth a call"


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.FAILED])
async def test_a_finished_url_comes_back_as_without_the_look(r: Any, outcome: Outcome) -> None:
    f = await frontier(r, failed_due_ms=-1000)
    f.look_from = 0
    await f.add([link()])
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease, outcome)])
    result = await f.add([link()])
    assert (result.added, result.seen) == ((1, 0) if outcome is Outcome.FAILED else (0, 1))
    await check(r)


async def test_a_revisit_is_decided_by_the_frontier(r: Any) -> None:
    f = await frontier(r)
    f.look_from = 0
    await f.add([link()])
    (lease,) = (await f.step(1)).leases
    await f.step(0, [done(lease)])
    # an article may be looked at again after a day
    await r.hset("{f0}:clock", mapping={"factor": "1", "offset": str(2 * 86_400_000)})
    assert (await f.add([link()])).seen == 1
    assert (await f.add([link(revisit=True)])).added == 1


async def test_links_of_unknown_and_disabled_domains_are_refused(r: Any) -> None:
    f = await frontier(r)
    f.look_from = 0
    result = await f.add([link(domain="off.vn"), link()])
    assert result.refused == {"offsite": 1} and result.added == 1


async def test_the_archive_is_asked_once_and_keeps_its_word(r: Any, archive: Archive) -> None:  # noqa: F811  # a fixture
    f = await opened(r, archive)
    for start in (0, 100):
        await f.add(links(100, start=start))
    for _ in range(300):
        step = await f.step(16)
        await f.step(0, [done(x) for x in step.leases])
        if not step.queued:
            break
    assert await move_all(f) == 200
    f.look_from = 0
    sent = Sent(f)
    assert f.mover is not None
    asked = f.mover.asked
    result = await f.add(links(50) + links(5, start=1000))
    assert (result.added, result.seen) == (5, 50)
    assert f.mover.asked - asked == 50 and sent.names == ["look", "add"]


async def test_links_of_acks_that_are_known_are_not_sent(r: Any) -> None:
    f = await frontier(r, domains=NAMES)
    await f.add([link("/page", "b.vn"), *links(100)])
    lease = next(x for x in (await f.step(2)).leases if x.domain == "b.vn")
    f.known_share = 0.9
    sent = Sent(f)
    found: list[Link] = links(103)
    step = await f.step(0, [done(lease, links=found)])
    assert (step.added.added, step.added.seen, step.rejected) == (3, 100, [])
    assert sent.names == ["look", "step"] and sent.calls[1][1] < 1000
    await check(r)
