"""One incident is one alert, in a real Redis."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from newscrawler.fleet.alarms import KINDS, Verdict
from newscrawler.fleet.incidents import FORGET_MS, Incidents
from newscrawler.fleet.registry import RegistryUnavailable
from newscrawler.frontier import connect

T0 = 1_795_000_000_000
MINUTE = 60_000


def bad(kind: str, subject: str, reason: str = "it is bad") -> Verdict:
    return Verdict(kind, subject, reason)


def well(kind: str, subject: str) -> Verdict:
    return Verdict(kind, subject, "")


async def alerts(incidents: Incidents) -> list[tuple[str, str, list[str]]]:
    return [
        (w.alert["event"], w.alert["kind"], [one["subject"] for one in w.alert["incidents"]])
        for w in await incidents.waiting()
    ]


async def test_an_incident_is_told_when_it_lasts_and_when_it_is_over(r: Any) -> None:
    kind = KINDS["site_silent"]
    assert (kind.for_s, kind.calm_s) == (60, 300)
    incidents = Incidents(r)
    steps = [
        (0, [bad("site_silent", "a.vn", "first")], 0),  # not for long enough
        (1, [bad("site_silent", "a.vn", "second")], 1),
        (2, [bad("site_silent", "a.vn", "third")], 0),
        (3, [well("site_silent", "a.vn")], 0),
        (4, [bad("site_silent", "a.vn")], 0),  # it was well for a minute: the same incident
        (5, [well("site_silent", "a.vn")], 0),
        (7, [], 0),  # cannot be told: stays
        (10, [well("site_silent", "a.vn")], 1),
        (11, [well("site_silent", "a.vn")], 0),
    ]
    for minute, verdicts, told in steps:
        assert await incidents.note(T0 + minute * MINUTE, verdicts, ()) == told, minute
    assert await alerts(incidents) == [
        ("fleet.raised", "site_silent", ["a.vn"]),
        ("fleet.recovered", "site_silent", ["a.vn"]),
    ]
    raised = (await incidents.waiting())[0].alert
    assert raised["incidents"][0] == {"subject": "a.vn", "reason": "second", "since_ms": T0}
    assert (raised["severity"], raised["at_ms"]) == ("warning", T0 + MINUTE)
    assert await incidents.open() == []


async def test_what_ends_before_it_is_told_is_never_told(r: Any) -> None:
    incidents = Incidents(r)
    await incidents.note(T0, [bad("site_silent", "a.vn")], ())
    assert await incidents.open() == []
    await incidents.note(T0 + 30_000, [well("site_silent", "a.vn")], ())
    await incidents.note(T0 + MINUTE, [bad("site_silent", "a.vn")], ())
    assert await incidents.waiting() == []


async def test_many_subjects_of_a_look_are_one_alert(r: Any) -> None:
    incidents = Incidents(r)
    verdicts = [bad("full", f"disk {n}") for n in range(5)] + [bad("away", "article store")]
    assert await incidents.note(T0, verdicts, ()) == 2
    assert await alerts(incidents) == [
        ("fleet.raised", "full", [f"disk {n}" for n in range(5)]),
        ("fleet.raised", "away", ["article store"]),
    ]
    assert len(await incidents.open()) == 6


async def test_what_is_listed_whole_is_over_when_it_is_missing(r: Any) -> None:
    incidents = Incidents(r)
    await incidents.note(T0, [bad("worker_gone", "w1")], {"worker_gone"})
    await incidents.note(T0 + 1, [], ())  # workers could not be asked
    assert len(await incidents.open()) == 1
    await incidents.note(T0 + 2, [], {"worker_gone"})
    assert await incidents.open() == [] and len(await incidents.waiting()) == 2


async def test_an_incident_of_which_nothing_is_known_any_more_ends(r: Any) -> None:
    incidents = Incidents(r)
    await incidents.note(T0, [bad("full", "disk of a node that left")], ())
    await incidents.note(T0 + FORGET_MS - 1, [], ())
    assert len(await incidents.open()) == 1
    assert await incidents.note(T0 + FORGET_MS, [], ()) == 1
    assert await incidents.open() == []


async def test_twenty_monitors_at_once_tell_once(r: Any, redis_server: str) -> None:
    clients = [connect(redis_server, single=False) for _ in range(20)]
    try:
        verdicts = [bad("full", "disk"), bad("away", "article store")]
        told = await asyncio.gather(*(Incidents(c).note(T0, verdicts, ()) for c in clients))
        assert sum(told) == 2
        [first, *_] = await Incidents(r).waiting()
        claims = await asyncio.gather(*(Incidents(c).claim(first) for c in clients))
        assert sum(claim is not None for claim in claims) == 1
    finally:
        for client in clients:
            await client.aclose()


async def test_an_alert_waits_until_everybody_has_it(r: Any) -> None:
    incidents = Incidents(r)
    await incidents.note(T0, [bad("full", "disk")], ())
    [waiting] = await incidents.waiting()
    claimed = await incidents.claim(waiting)
    assert claimed is not None and claimed.tries == 0
    assert await incidents.claim(waiting) is None, "one at a time"
    claimed.done.append("mail")
    await incidents.later(claimed, T0)
    await incidents.release(claimed)
    again = await incidents.claim(waiting)
    assert again is not None and (again.tries, again.done) == (1, ["mail"])
    assert again.next_ms == T0 + 30_000
    for _ in range(9):
        await incidents.later(again, T0)
    assert again.tries == 10
    assert (await incidents.waiting())[0].next_ms == T0 + 600_000
    await incidents.told(again)
    await incidents.release(again)
    assert await incidents.waiting() == [] and await incidents.claim(again) is None


async def test_a_redis_that_is_away_is_said() -> None:
    client: Any = connect("redis://127.0.0.1:1/0", single=False)
    with pytest.raises(RegistryUnavailable):
        await Incidents(client).note(T0, [], ())
