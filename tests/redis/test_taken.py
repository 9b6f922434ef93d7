"""URLs that were taken down: no offer brings them back, what was queued is gone, others stay."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from newscrawler.frontier import keys
from newscrawler.frontier.queue import DomainPolicy, FrontierRefused
from newscrawler.frontier.taken import DOMAIN, URL, Entry, Taken
from newscrawler.items import Outcome
from tests.redis.helpers import check, done, ended, frontier, link, links, run_out

HOW = Entry("https://a.vn/x", "2026-11-22", "me", "asked")


async def test_a_blocked_url_leaves_the_queue_and_is_never_taken_again(r: Any) -> None:
    f = await frontier(r)
    offered = links(5, "a.vn")
    await f.add(offered)
    before = (await f.counts()).queued
    assert await f.taken.block([offered[0].url_id], ["a.vn", "b.vn"]) == 1
    assert (await f.counts()).queued == before - 1
    other = await frontier(r, worker="w2")  # it remembers no link
    assert (await other.add([offered[0]])).refused == {"disabled": 1}
    assert (await f.add([replace(offered[0], revisit=True)])).refused == {"disabled": 1}
    await check(r)
    assert await f.record(offered[0].url_id, "a.vn") is None
    assert await f.taken.block([offered[0].url_id], ["a.vn"]) == 0
    await f.taken.lift([URL + offered[0].url_id.hex()])
    assert (await f.add([replace(offered[0], revisit=True)])).added


async def test_a_leased_url_is_finished_when_its_visit_ends(r: Any) -> None:
    f = await frontier(r)
    (one,) = links(1, "a.vn")
    await f.add([one])
    (lease,) = (await f.step(1)).leases
    assert lease.url_id == one.url_id
    assert await f.taken.block([one.url_id], ["a.vn"]) == 0
    await f.step(0, [done(lease, Outcome.REFUSED, reason="takedown")], [ended(lease)])
    counts = await f.counts()
    assert (counts.queued, counts.waiting, counts.leased) == (0, 0, 0)
    assert (await f.add([replace(one, revisit=True)])).refused == {"disabled": 1}
    await check(r)


@pytest.mark.parametrize("outcome", [Outcome.RETRY, Outcome.UNCHANGED, Outcome.DONE])
async def test_a_leased_url_never_comes_back_whatever_its_visit_says(
    r: Any, outcome: Outcome
) -> None:
    f = await frontier(r)
    one, other = links(2, "a.vn")
    await f.add([one, other])
    leases = (await f.step(1)).leases
    await f.taken.block([leases[0].url_id], ["a.vn"])
    again = done(leases[0], outcome, next_visit_ms=int(time.time() * 1000) + 600_000)
    await f.step(0, [again], [ended(leases[0])])
    counts = await f.counts()
    assert (counts.queued, counts.waiting, counts.leased) == (1, 0, 0)
    (rest,) = (await f.step(1)).leases
    assert rest.url_id != leases[0].url_id
    await f.step(0, [done(rest, Outcome.RETRY)], [ended(rest)])
    assert (await f.counts()).queued == 1, "another one comes again"
    await check(r)


@pytest.mark.parametrize("end", ["given back", "its worker is dead", "it ran out"])
async def test_a_leased_url_never_comes_back_when_its_visit_came_to_nothing(
    r: Any, end: str
) -> None:
    f = await frontier(r)
    one, other = links(2, "a.vn")
    await f.add([one, other])
    (lease,) = (await f.step(1)).leases
    await f.taken.block([lease.url_id], ["a.vn"])
    survivor = await frontier(r, worker="w2")
    if end == "given back":
        assert await f.give_back([lease]) == 1
    elif end == "its worker is dead":
        assert await survivor.free_dead(lambda worker: worker == "w1") == 1
    else:
        await run_out(r, lease)
    (rest,) = (await survivor.step(2)).leases
    assert rest.url_id != lease.url_id
    counts = await f.counts()
    assert (counts.queued, counts.waiting, counts.leased) == (0, 0, 1)
    assert await f.record(lease.url_id, "a.vn") is not None, "its end is on record"
    assert await r.hlen(keys.records(0, "a.vn")) == 1, "and its address is not queued"
    await survivor.step(0, [done(rest, Outcome.DONE)], [ended(rest)])
    blocked = one if lease.url_id == one.url_id else other
    assert (await survivor.add([replace(blocked, revisit=True)])).refused == {"disabled": 1}
    await check(r)


async def test_a_domain_and_what_is_below_it_is_switched_off(r: Any) -> None:
    f = await frontier(r)
    await f.taken.put({DOMAIN + "a.vn": HOW})
    await f.put_domains([DomainPolicy(name, "s") for name in ("a.vn", "m.a.vn", "ba.vn")])
    for domain, refused in (("a.vn", 1), ("m.a.vn", 1), ("ba.vn", 0)):
        assert (await f.add([link("/y", domain)])).refused == ({"disabled": 1} if refused else {})
    with pytest.raises(FrontierRefused, match="taken down"):
        await f.reserve("m.a.vn", "https://m.a.vn/y")
    taken = Taken(r, 1)
    asked = [("u:00", "ba.vn"), ("u:00", "x.a.vn:8080"), ("t:site:1", "c.vn")]
    assert await taken.which(asked) == {1}
    await taken.put({"t:site:1": HOW})
    assert await taken.which(asked) == {1, 2}
    await taken.lift(["t:site:1", DOMAIN + "a.vn"])
    assert await taken.which(asked) == set() and await taken.all() == {}
