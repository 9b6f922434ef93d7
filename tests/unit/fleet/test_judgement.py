"""What became of a worker: every combination of heartbeat, node and time that differs."""

from __future__ import annotations

from typing import Any

import pytest

from newscrawler.fleet.judgement import KNOWN_MS, Fate, Patience, end_s, judge, row_of, stuck
from newscrawler.fleet.ledger import Job, JobState
from newscrawler.fleet.nodes import NodeView

NOW = 1_000_000
START_MS = 60_000
ALIVE = {"id": "h-1-job", "alive": True, "age_s": 1.0}
SILENT = {"id": "h-1-job", "alive": False, "age_s": 9.0}
RUNS = NodeView("a", running={"job": 1})
QUEUED = NodeView("a", pending=frozenset({"job"}))
DONE = NodeView("a", finished=frozenset({"job"}))
FORGOT = NodeView("a")
AWAY = NodeView("a", "node a cannot be reached")


def job(state: JobState = JobState.RUNNING, age_ms: int = 30_000) -> Job:
    return Job("job", "a", "v1", 0, NOW - age_ms, state)


@pytest.mark.parametrize(
    ("row", "view", "fate"),
    [
        (ALIVE, RUNS, Fate.RUNNING),
        (ALIVE, FORGOT, Fate.RUNNING),  # scrapyd was started anew and knows nothing of it
        (ALIVE, AWAY, Fate.RUNNING),
        (ALIVE, DONE, Fate.DIED),  # kill -9: its last heartbeat has not run out yet
        (SILENT, RUNS, Fate.STUCK),
        (SILENT, DONE, Fate.DIED),
        (SILENT, FORGOT, Fate.DIED),
        (SILENT, AWAY, Fate.DIED),  # the machine is gone
        (None, DONE, Fate.ENDED),
        (None, RUNS, Fate.ENDED),  # it signed off and is about to end
    ],
)
def test_a_worker_that_ran(row: Any, view: NodeView, fate: Fate) -> None:
    for state in (JobState.RUNNING, JobState.DRAINING):
        verdict = judge(job(state), row, view, NOW, start_ms=START_MS, is_grace=False)
        assert verdict.fate is fate
        assert bool(verdict.why) == (fate in (Fate.DIED, Fate.STUCK))


@pytest.mark.parametrize(
    ("view", "age_ms", "fate"),
    [
        (QUEUED, 1000, Fate.STARTING),
        (RUNS, START_MS, Fate.STARTING),
        (FORGOT, KNOWN_MS, Fate.STARTING),  # the node was asked before it was scheduled
        (FORGOT, KNOWN_MS + 1, Fate.NOT_STARTED),
        (AWAY, START_MS // 3, Fate.STARTING),
        (AWAY, START_MS // 3 + 1, Fate.NOT_STARTED),
        (RUNS, START_MS + 1, Fate.NOT_STARTED),
        (QUEUED, START_MS // 3, Fate.STARTING),
        (QUEUED, START_MS // 3 + 1, Fate.NOT_STARTED),
        (DONE, 1000, Fate.NOT_STARTED),
    ],
)
def test_a_worker_that_was_never_heard(view: NodeView, age_ms: int, fate: Fate) -> None:
    started = job(JobState.STARTING, age_ms)
    verdict = judge(started, None, view, NOW, start_ms=START_MS, is_grace=False)
    assert verdict.fate is fate
    if fate is Fate.NOT_STARTED:
        assert verdict.why


def test_a_full_node_is_named_as_the_reason() -> None:
    late = job(JobState.STARTING, START_MS + 1)
    verdict = judge(late, None, QUEUED, NOW, start_ms=START_MS, is_grace=False)
    assert "max_proc" in verdict.why


def test_after_a_restart_of_redis_silence_proves_nothing() -> None:
    for row in (SILENT, None):
        verdict = judge(job(), row, RUNS, NOW, start_ms=START_MS, is_grace=True)
        assert verdict.fate is Fate.UNKNOWN
    ended = judge(job(), SILENT, DONE, NOW, start_ms=START_MS, is_grace=True)
    assert ended.fate is Fate.DIED, "its node says so, whatever Redis forgot"


def test_a_worker_is_known_by_its_job_before_its_id_was_noted() -> None:
    fresh = Job("12345678-fleet", "a", "v1", 0, NOW, JobState.STARTING)
    rows = {
        "h-7-00000000": {"id": "h-7-00000000", "alive": True, "job": ""},
        "h-8-12345678": {"id": "h-8-12345678", "alive": False},
    }
    assert row_of(fresh, rows) is rows["h-8-12345678"]
    fresh.worker = "h-9-12345678"
    assert row_of(fresh, rows) is None, "it was another process"


#: Of a worker that gets on, by its heartbeat.
BUSY = {
    "alive": True, "node": "b", "turn_s": 0.4, "held_s": 1.0, "ended_s": 0.5, "waits_s": 0.0,
    "waits_for": "",
}  # fmt: skip
IDLE = {**BUSY, "held_s": 0.0, "ended_s": 900.0}
AWAY_S = {**BUSY, "held_s": 0.0, "ended_s": 200.0, "waits_s": 200.0, "waits_for": "the store"}
SCANNED_S = {**AWAY_S, "waits_for": "the virus scanner"}
PATIENCE = Patience(turn_s=10, visit_s=100)


@pytest.mark.parametrize(
    ("said", "others", "why"),
    [
        ({"turn_s": 9.9}, [BUSY], ""),
        ({"turn_s": 10}, [BUSY], "its lease loop stands still"),
        ({"turn_s": 10}, [IDLE], "its lease loop stands still"),  # an idle one's loop goes round
        ({"turn_s": 29}, [], ""),  # alone: it may be Redis that is slow
        ({"turn_s": 29}, [{**BUSY, "turn_s": 29}], ""),
        ({"turn_s": 29}, [{**BUSY, "turn_s": 0.0}], ""),  # it waits for Redis, or has ended
        ({"turn_s": 30}, [], "its lease loop stands still"),
        ({"held_s": 99}, [BUSY], ""),
        ({"held_s": 100}, [BUSY], "no visit ended for 100 s"),
        ({"held_s": 299}, [IDLE], ""),  # nobody's visits end: it may be the network
        ({"held_s": 300}, [], "no visit ended"),
        ({**AWAY_S, "node": "a"}, [BUSY], "the store, which 1 others need not"),
        ({**AWAY_S, "node": "a", "waits_s": 99}, [BUSY], ""),
        ({**AWAY_S, "node": "a"}, [AWAY_S, IDLE], ""),  # away for all that store something
        ({**AWAY_S, "node": "b"}, [BUSY], "the store, which 1 others need not"),  # its own hangs
        ({**AWAY_S, "node": "b"}, [BUSY, {**BUSY, "node": "c"}], "which 2 others need not"),
        ({**AWAY_S, "node": "b"}, [AWAY_S, IDLE], ""),  # away for all of the only node
        ({**SCANNED_S, "node": "a"}, [BUSY], "the virus scanner, which 1 others need not"),
        ({**SCANNED_S, "node": "a"}, [SCANNED_S, IDLE], ""),
        (IDLE, [BUSY], ""),
        ({"held_s": 1000, "turn_s": 1000}, [{**BUSY, "alive": False}], "stands still for 1000 s"),
    ],
)
def test_a_worker_that_beats_is_judged_by_what_it_gets_done(
    said: dict[str, Any], others: list[dict[str, Any]], why: str
) -> None:
    row = {**BUSY, "node": "a", "id": "me", **said}
    fellows = [{**other, "id": f"w{number}"} for number, other in enumerate(others)]
    verdict = stuck(row, [row, *fellows], PATIENCE)
    assert (verdict is not None) == bool(why)
    if verdict is not None:
        assert verdict.fate is Fate.STUCK and why in verdict.why
        waits_alone_there = "others" in why and row["node"] not in [one["node"] for one in others]
        assert verdict.is_of_place == waits_alone_there


def test_a_worker_of_an_older_version_is_not_judged_by_what_it_does_not_say() -> None:
    row = {"id": "me", "alive": True, "node": "a"}
    assert stuck(row, [{**BUSY, "id": "w"}], PATIENCE) is None
    assert stuck({**row, "turn_s": 10**6, "held_s": 10**6}, [], Patience()) is None, "switched off"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (BUSY, 120.0),
        (AWAY_S, 120.0),
        ({}, 120.0),
        ({**BUSY, "held_s": 100.0}, 10.0),
        ({**BUSY, "turn_s": 10.0}, 0.0),
    ],
)
def test_a_replaced_worker_that_gets_on_ends_in_order(said: dict[str, Any], seconds: float) -> None:
    assert end_s(said, PATIENCE, 120.0) == seconds
    assert end_s(said, Patience(), 120.0) == 120.0, "switched off"
