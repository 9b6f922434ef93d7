"""What became of a worker, from what it says, what its node says, and how long it is silent. No
I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from newscrawler.fleet.ledger import Job, JobState
from newscrawler.fleet.nodes import NodeView

#: Ms after which scrapyd must know a job that it took: it was asked before and after.
KNOWN_MS = 8_000
#: A job that scrapyd keeps pending for so long while others run there meets a scrapyd that is full,
#: ms: it polls its queue each 5 s unless its configuration says otherwise.
FULL_MS = 20_000
#: A job that has no process yet, or of whose process nothing is known, gets so many times less time
#: until its first heartbeat than one that has.
ABSENT_PART = 3
#: Without fellows that get on it cannot be told whether a standstill is the worker's fault: it is
#: waited for so many times as long.
ALONE_TIMES = 3
#: Seconds that a worker none of whose visits ends gets to give back what it holds.
STUCK_END_S = 10.0


class Fate(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    UNKNOWN = "unknown"  # silent, but so would be a living one: Redis has just come back
    ENDED = "ended"  # it signed off
    DIED = "died"
    STUCK = "stuck"  # its process is there and says nothing, or does nothing
    NOT_STARTED = "not started"


OVER = (Fate.ENDED, Fate.DIED, Fate.STUCK, Fate.NOT_STARTED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``is_of_place``: another worker on the same node would fare no better."""

    fate: Fate
    why: str = ""
    is_of_place: bool = False
    #: It waits for what others have: one of them may only have tried it before.
    is_of_waiting: bool = False
    #: Its node runs as many as it may: the job is withdrawn, which is nobody's fault.
    is_full: bool = False

    @property
    def is_over(self) -> bool:
        return self.fate in OVER


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a worker that beats may do nothing, seconds; 0 = for ever.

    :param turn_s: its lease loop has not gone round
    :param visit_s: it holds URLs and no visit ended, or it waits for a store or the virus scanner
    """

    turn_s: float = 0.0
    visit_s: float = 0.0


def stuck(
    row: Mapping[str, Any], others: Iterable[Mapping[str, Any]], patience: Patience
) -> Verdict | None:
    """Whether a worker makes no progress though it beats. Not one that waits rightly: its loop goes
    round where nothing is due, sites are backed off from or Redis is away; and a store or a virus
    scanner that is away for all is nobody's fault. One that is away for all of a node and not
    elsewhere is the node's.

    :param row: of a live worker, registry.Beat; so are ``others``
    """
    fellows = [other for other in others if other["id"] != row["id"] and other["alive"]]
    if limit := patience.turn_s:
        turn_s = row.get("turn_s", 0)
        # 0: it has no loop to compare with, or waits for Redis itself.
        gets_on = any(0 < one.get("turn_s", 0) < limit / 2 for one in fellows)
        if turn_s >= limit * (1 if gets_on else ALONE_TIMES):
            return Verdict(
                Fate.STUCK, f"it beats, but its lease loop stands still for {turn_s:.0f} s"
            )
    if not (limit := patience.visit_s):
        return None
    busy = [one for one in fellows if 0 <= one.get("ended_s", -1) < limit / 2]
    held_s, waits_s = row.get("held_s", 0), row.get("waits_s", 0)
    if held_s >= limit * (1 if busy else ALONE_TIMES):
        text = (
            f"it beats and holds {row.get('leases', 0)} URLs, but no visit ended for {held_s:.0f} s"
        )
        return Verdict(Fate.STUCK, text)
    others = [one for one in busy if not one.get("waits_s")]
    if waits_s >= limit and others:
        text = f"{row.get('waits_for')}, which {len(others)} others need not"
        is_of_place = all(one.get("node") != row.get("node") for one in others)
        return Verdict(Fate.STUCK, text, is_of_place, is_of_waiting=True)
    return None


def end_s(row: Mapping[str, Any], patience: Patience, drain_s: float) -> float:
    """Seconds that a worker in whose place another one starts gets to end in order.

    :param row: what its own heartbeat would say now
    :param drain_s: of one that gets on, FLEET_DRAIN_S
    """
    if row.get("turn_s", 0) >= patience.turn_s > 0:
        return 0.0  # the end waits for its lease loop
    if row.get("held_s", 0) >= patience.visit_s > 0:
        return min(STUCK_END_S, drain_s)
    return drain_s


def row_of(job: Job, rows: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The registry's row of a job. A worker that fell silent before anybody noted its id is known
    by the end of it, which is the job's beginning (identity.worker_id).

    :param rows: of Registry.workers, by the worker's id
    """
    if job.worker:
        return rows.get(job.worker)
    tail = f"-{job.id[:8]}"
    return next(
        (row for name, row in rows.items() if row.get("job") == job.id or name.endswith(tail)), None
    )


def judge(
    job: Job,
    row: Mapping[str, Any] | None,
    view: NodeView,
    now_ms: int,
    *,
    start_ms: int,
    is_grace: bool,
) -> Verdict:
    """
    :param row: of the registry; it must have been read after ``view``
    :param start_ms: a process may take so long until its first heartbeat
    :param is_grace: Redis came back so lately that no heartbeat can be expected yet
    """
    is_finished = not view.error and job.id in view.finished
    if row is not None and row["alive"]:
        if is_finished:
            return Verdict(Fate.DIED, "its process ended without signing off")
        return Verdict(Fate.RUNNING)
    if row is not None:
        return _silent(job, row, view, is_finished, is_grace)
    if job.is_stuck:
        return Verdict(Fate.STUCK, job.why)
    if job.state is not JobState.STARTING:
        return Verdict(Fate.UNKNOWN) if is_grace and not is_finished else Verdict(Fate.ENDED)
    return _not_seen(job, view, is_finished, now_ms - job.started_ms, start_ms)


def _silent(
    job: Job, row: Mapping[str, Any], view: NodeView, is_finished: bool, is_grace: bool
) -> Verdict:
    if is_finished:
        return Verdict(Fate.DIED, "its process ended without signing off")
    if is_grace:
        return Verdict(Fate.UNKNOWN)
    silence = f"no heartbeat for {row['age_s']:.0f} s"
    if view.error:
        return Verdict(Fate.DIED, f"{silence}, and {view.error}")
    if job.id in view.running:
        return Verdict(Fate.STUCK, f"{silence} though its process {view.running[job.id]} is there")
    return Verdict(Fate.DIED, silence)


def _not_seen(job: Job, view: NodeView, is_finished: bool, age_ms: int, start_ms: int) -> Verdict:
    """Scheduled, and no heartbeat was ever seen."""
    if is_finished:
        return Verdict(Fate.NOT_STARTED, "it ended before its first heartbeat")
    if not view.error and job.id not in view.jobs and age_ms > KNOWN_MS:
        return Verdict(Fate.NOT_STARTED, "scrapyd does not know it; was it started anew?")
    if job.id in view.pending and view.running and age_ms > FULL_MS:
        why = f"scrapyd runs as many as max_proc allows ({len(view.running)})"
        return Verdict(Fate.NOT_STARTED, why, is_full=True)
    # A process that is there is only slow: it compiles its modules, on a machine that is busy.
    most_ms = start_ms if job.id in view.running else start_ms // ABSENT_PART
    if age_ms <= most_ms:
        return Verdict(Fate.STARTING)
    waited = f"no heartbeat within {most_ms / 1000:.0f} s of its start"
    if job.id in view.pending:
        return Verdict(Fate.NOT_STARTED, f"{waited}: scrapyd runs as many as max_proc allows")
    return Verdict(Fate.NOT_STARTED, f"{waited}{f', and {view.error}' if view.error else ''}")
