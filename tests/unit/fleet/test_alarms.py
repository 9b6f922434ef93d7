"""A worker that was lost: told once, by one name, and over when another one works in its place."""

from __future__ import annotations

from typing import Any

from newscrawler.fleet.alarms import (
    AlarmThresholds,
    Facts,
    listed,
    no_start,
    node_gone,
    worker_gone,
)
from newscrawler.fleet.ledger import Ended, Job, JobState, NodeState, replaced
from newscrawler.fleet.watch import failing_text

NOW = 1_790_000_000_000
MINUTE = 60_000


def lost(
    name: str, at_ms: int, *, lived_s: int = 600, how: str = "died", beat: bool = True
) -> Ended:
    return Ended(name, "a", "v", at_ms, lived_s, how, "killed", f"host-{name}" if beat else "")


def job(name: str, started_ms: int, *, beat: bool = True) -> Job:
    return Job(name, "a", "v", 0, started_ms, worker=f"host-{name}" if beat else "")


def told(ended: list[Ended], jobs: list[Job], now_ms: int = NOW) -> list[str]:
    facts = Facts(now_ms, workers=[], ended=ended, replaced=replaced(ended, jobs))
    return [verdict.subject for verdict in worker_gone(facts, AlarmThresholds())]


def test_it_is_over_when_its_successor_works() -> None:
    gone = [lost("x", NOW - 3 * MINUTE)]
    assert told(gone, []) == ["host-x"]
    assert told(gone, [job("y", NOW - 2 * MINUTE, beat=False)]) == ["host-x"], "it did not beat yet"
    assert told(gone, [job("z", NOW - 9 * MINUTE)]) == ["host-x"], "one that was there before"
    assert told(gone, [job("y", NOW - 2 * MINUTE)]) == []


def test_one_whose_successor_works_at_once_is_told_by_the_next_look() -> None:
    gone, jobs = [lost("x", NOW)], [job("y", NOW)]
    assert told(gone, jobs) == told(gone, jobs, NOW + 2 * MINUTE - 1) == ["host-x"]
    assert told(gone, jobs, NOW + 2 * MINUTE) == []


def test_one_successor_is_for_one() -> None:
    gone = [lost("w", NOW - 5 * MINUTE), lost("x", NOW - 4 * MINUTE)]
    one, two = job("y", NOW - 3 * MINUTE), job("z", NOW - 2 * MINUTE)
    assert told(gone, [one]) == ["host-x"]
    assert told(gone, [two, one]) == []


def test_a_successor_that_was_lost_as_well_has_one_of_its_own() -> None:
    first = lost("w", NOW - 8 * MINUTE)
    second = lost("x", NOW - 4 * MINUTE, lived_s=200)
    assert told([second, first], []) == ["host-x"]
    assert told([second, first], [job("y", NOW - 3 * MINUTE)]) == []
    never = lost("x", NOW - 4 * MINUTE, lived_s=200, how="not started", beat=False)
    assert told([never, first], []) == ["host-w"], "none of both works; nothing was lost with x"
    assert told([never, first], [job("y", NOW - 3 * MINUTE)]) == [], "x takes nobody's successor"


def test_a_place_that_is_not_wanted_any_more_waits_for_nobody() -> None:
    """After a `stop` or a `scale` the successors of later losses were taken by earlier ones."""
    gone = [lost("w", NOW - 5 * MINUTE), lost("x", NOW - 4 * MINUTE)]
    one = job("y", NOW - 3 * MINUTE)
    one.state = JobState.RUNNING
    assert replaced(gone, [one], 2) == {"w"}
    assert replaced(gone, [one], 1) == {"w", "x"} == replaced(gone, [], 0)
    one.state = JobState.DRAINING
    assert replaced(gone, [one], 1) == {"w"}


def test_starts_that_fail_on_a_node_are_one_incident() -> None:
    """One after the other, each with another name."""
    loop = [lost(f"n{n}", NOW - n * 9000, lived_s=3, how="not started", beat=False)
            for n in range(41)]  # fmt: skip
    young = lost("y", NOW - 9000, lived_s=20)
    old = lost("o", NOW - 9000)
    node = NodeState("a", crashes=42, last_error="it ended: unknown site")
    why = failing_text(node)
    assert why.startswith("42 workers in a row ended") and why.endswith(
        "the last: " + node.last_error
    )

    def said(failing: dict[str, str], **more: Any) -> list[tuple[str, str]]:
        facts = Facts(NOW, workers=[], ended=[*loop, young, old], failing=failing, **more)
        found = [*worker_gone(facts, AlarmThresholds()), *no_start(facts, AlarmThresholds())]
        assert {"no_start", "worker_gone"} <= listed(facts)
        return [(verdict.kind, verdict.subject) for verdict in found if verdict.reason]

    assert said({"a": why, "b": ""}) == [("worker_gone", "host-o"), ("no_start", "a")]
    assert said({"a": "", "b": ""}) == [("worker_gone", "host-y"), ("worker_gone", "host-o")]
    assert ("no_start", "a") not in said({"a": why}, wanted=0), "the fleet was stopped"
    assert failing_text(NodeState("a", crashes=1, last_error="x")) == "", "started again at once"


def test_who_ended_as_asked_is_not_missed() -> None:
    gone = [lost("w", NOW - 5 * MINUTE, how="ended"), lost("x", NOW - 4 * MINUTE)]
    assert told(gone, []) == ["host-x"]
    assert told(gone, [job("y", NOW - 3 * MINUTE)]) == []


def test_without_a_successor_it_is_no_news_after_ten_minutes() -> None:
    gone = [lost("x", NOW - 10 * MINUTE)]
    assert told(gone, [], NOW - 1) == ["host-x"] and told(gone, []) == []


def test_a_node_that_does_not_answer_is_told_unless_the_fleet_was_stopped() -> None:
    nodes = {"a": "", "b": "node b (http://b:6800) cannot be reached: connection refused"}

    def told_nodes(**facts: Any) -> list[str]:
        return [v.subject for v in node_gone(Facts(NOW, **facts), AlarmThresholds()) if v.reason]

    assert told_nodes(nodes=nodes) == ["b"] == told_nodes(nodes=nodes, wanted=2)
    assert told_nodes(nodes=nodes, wanted=0) == [], "the operator may switch it off then"
    assert told_nodes(nodes=None) == [], "nobody watches"
