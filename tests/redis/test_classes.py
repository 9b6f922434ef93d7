"""Classes: their turns 5:3:1, and how the class of a domain is worked out where
its admin chose none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from newscrawler.frontier.queue import Ack, DomainPolicy
from newscrawler.items import Kind, Outcome
from tests.redis.helpers import advance, check, done, ended, frontier, links

HOUR = 3_600_000


async def test_five_three_one_over_ten_thousand_leases(r: Any) -> None:
    """All classes full, batches of every size: of 10,000 leases 5,556 : 3,333 : 1,111, to within
    one round of turns."""
    f = await frontier(r)
    cls_of = {}
    for cls in ("high", "mid", "low"):
        names = tuple(f"{cls}{i}.vn" for i in range(60))
        cls_of |= dict.fromkeys(names, cls)
        g = await frontier(r, domains=names, cls=cls)
        for name in names:
            await g.add(links(130, name))
    taken: Counter[str] = Counter()
    acks: list[Ack] = []
    turn = 0
    while taken.total() < 10_000:
        k = min((1, 7, 16, 33)[turn % 4], 10_000 - taken.total())
        turn += 1
        step = await f.step(k, acks)
        assert len(step.leases) == k
        acks = [done(x) for x in step.leases]
        taken.update(cls_of[x.domain] for x in step.leases)
    assert taken == {
        "high": pytest.approx(5556, abs=5),
        "mid": pytest.approx(3333, abs=5),
        "low": pytest.approx(1111, abs=5),
    }


class Site:
    """One domain without a chosen class, fetched a number of times with one kind of answer."""

    def __init__(self, r: Any, f: Any) -> None:
        self.r, self.f, self.n = r, f, 0

    @classmethod
    async def open(cls, r: Any) -> Site:
        f = await frontier(r, domains=())
        await f.put_domains([DomainPolicy("a.vn", "a.vn", "auto", 0)])
        return cls(r, f)

    async def fetch(
        self, times: int, *, new: int = 0, status: int = 200, latency_ms: float = 300
    ) -> None:
        """``new`` of ``times`` are new articles, the rest pages without one."""
        await self.f.add(links(times, start=self.n))
        self.n += times
        for i in range(times):
            (lease,) = (await self.f.step(1)).leases
            outcome = Outcome.DONE if i < new else Outcome.NOT_ARTICLE
            await self.f.step(
                0, [done(lease, outcome, status=status)], [ended(lease, status, latency_ms)]
            )

    async def row(self) -> dict[str, Any]:
        return dict((await self.f.report())["domains"][0])

    async def cls(self) -> str:
        return str((await self.row())["class"])


async def test_a_site_that_brings_news_rises_and_says_why(r: Any) -> None:
    site = await Site.open(r)
    assert await site.cls() == "mid"
    assert (await site.row())["class_why"] == "worked out: not judged yet"
    await site.fetch(64, new=40)
    assert await site.cls() == "high"
    assert (await site.row())["class_why"].startswith(
        "worked out: 62 % new articles, answers in 0.3 s, 0 % errors"
    )
    await check(r)


@pytest.mark.parametrize(
    "answers",
    [{"new": 1}, {"new": 10, "status": 500}, {"new": 10, "latency_ms": 9000}],
    ids=["brings nothing", "errors", "slow"],
)
async def test_a_site_that_brings_nothing_fails_or_is_slow_falls(
    r: Any, answers: dict[str, Any]
) -> None:
    site = await Site.open(r)
    await site.fetch(64, **answers)
    assert await site.cls() == "low"
    await check(r)


async def test_news_outweigh_slowness(r: Any) -> None:
    site = await Site.open(r)
    await site.fetch(64, new=40, latency_ms=9000)
    assert await site.cls() == "mid"


async def test_changes_are_bounded_one_step_an_hour(r: Any) -> None:
    site = await Site.open(r)
    await site.fetch(64, new=60)
    assert await site.cls() == "high"
    await site.fetch(128, new=0)
    assert await site.cls() == "high", "not within the hour"
    await advance(r, HOUR)
    await site.fetch(64, new=0)
    assert await site.cls() == "mid", "one step"
    await site.fetch(64, new=0)
    assert await site.cls() == "mid"
    await advance(r, HOUR)
    await site.fetch(64, new=0)
    assert await site.cls() == "low"


async def test_one_that_was_left_alone_for_a_day_rises_at_the_next_refresh(r: Any) -> None:
    site = await Site.open(r)
    await site.fetch(64, new=1)
    assert await site.cls() == "low"
    await site.f.add(links(5, start=900))
    await advance(r, 23 * HOUR)
    await site.f.put_domains([DomainPolicy("a.vn", "a.vn", "auto", 0)])
    assert await site.cls() == "low"
    await advance(r, 3 * HOUR)
    await site.f.put_domains([DomainPolicy("a.vn", "a.vn", "auto", 0)])
    assert await site.cls() == "mid"
    assert (await site.row())["class_why"].endswith("left alone for 26 h")
    await check(r)


async def test_the_admins_choice_wins(r: Any) -> None:
    site = await Site.open(r)
    await site.f.operator.set_class("a.vn", "low")
    await site.fetch(64, new=60)
    row = await site.row()
    assert (row["class"], row["class_why"]) == ("low", "set by the operator")
    await site.f.operator.set_class("a.vn", None)
    assert await site.cls() == "high", "what was worked out meanwhile"
    await site.f.put_domains([DomainPolicy("a.vn", "a.vn", "low", 0)])
    row = await site.row()
    assert (row["class"], row["class_why"]) == ("low", "chosen in the sites file")
    await advance(r, 2 * HOUR)
    await site.fetch(64, new=60)
    assert await site.cls() == "low"
    await check(r)


async def test_list_pages_and_second_visits_are_no_yield(r: Any) -> None:
    site = await Site.open(r)
    await site.f.add(links(30, kind=Kind.SECTION))
    for _ in range(3):
        for _ in range(30):
            (lease,) = (await site.f.step(1)).leases
            await site.f.step(0, [done(lease, Outcome.DONE)], [ended(lease)])
        await advance(r, HOUR)
    state = await site.f.operator.state("a.vn")
    assert state is not None and state.fetched == 90 and state.extra.articles == 0
    await site.f.operator.purge("a.vn")
    await site.f.add(links(1, start=500))
    for outcome in (Outcome.RETRY, Outcome.DONE, Outcome.DONE):
        (lease,) = (await site.f.step(1)).leases
        await site.f.step(0, [done(lease, outcome, next_visit_ms=1)], [ended(lease)])
        await advance(r, HOUR / 60 + 1)
    state = await site.f.operator.state("a.vn")
    assert state is not None and state.extra.articles == 1, (
        "a retry counts once, the second visit not at all"
    )
