"""The watch: makes the fleet what the operator asked for, and keeps it so.

One process leads (ledger.py); any number may stand by. Each round looks at the nodes, the
heartbeats and the ledger, and then acts: what is over is noted, its leases are freed and its
process is ended; what is missing is started where there is most room; what is too much, too large
or out of date is asked to end. `scrapy fleet watch` is this in a loop; `scrapy fleet start` and its
kin do the rounds themselves where nobody watches.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from newscrawler.fleet import placement, scaling
from newscrawler.fleet.judgement import Fate, Patience, Verdict, judge, row_of, stuck
from newscrawler.fleet.ledger import Batch, Ended, FleetState, Job, JobState, Ledger, NodeState
from newscrawler.fleet.nodes import Node, NodeError, NodeView
from newscrawler.fleet.registry import DRAIN, REPLACED, Registry, RegistryUnavailable

logger = logging.getLogger(__name__)

#: Seconds between two rounds.
ROUND_S = 1.5
#: How long a round waits for nodes that do not answer; what they said last is used meanwhile.
LOOK_S = 1.5
#: When Redis can be written again workers get so long to be heard, seconds: their heartbeats
#: expired while it was away, or refused writes as it was full, could not save, or was a replica.
GRACE_S = 12.0
#: A worker that ended sooner than this after its start is a crash of its node, seconds.
YOUNG_S = 60.0
#: The first crash costs no wait: a worker that was killed by hand is started again at once. From
#: the second in a row on, seconds, doubling.
BACKOFF_S = 5.0
LONGEST_BACKOFF_S = 300.0
#: Starts of a new version that may fail before a restart is rolled back.
MOST_FAILED = 2
#: Rounds in a row in which a worker is over its memory limit before it is recycled.
OVER_ROUNDS = 3
#: Looks in a row in which a worker that beats does nothing before it is given up: one that was held
#: up by a busy machine tells so in its next heartbeat.
STUCK_LOOKS = 2
#: The same of one that waits for a store or a scanner that others have. Where it was away for all,
#: one worker tries it again before the others do: these pause for 10 s at most (crawl/waits.py),
#: and a try that meets a lock lasts as long. Heartbeats come each two seconds: half a minute.
WAITING_LOOKS = 15
#: A node whose worker could not go on for a reason of the node gets none for so long, seconds.
AVOID_S = 300.0
#: Most jobs that a node has and has not begun yet: scrapyd does not tell how many it runs at once
#: (max_proc), and keeps what is beyond in its queue.
MOST_PENDING = 4
#: A node that was full is believed to take no more than it had then for so long, seconds.
FULL_S = 300.0
#: In the message that the nodes are full.
FULL_MARK = "workers cannot be placed"
#: Seconds between two looks at the queue, and how long fewer workers must be enough before some
#: are ended.
DEMAND_S = 15.0
CALM_S = 60.0
#: A worker that runs for less has not reached its load yet, ms: what it will need is taken off
#: what its node has free.
SETTLED_MS = 30_000
#: Begins the record in the log of a worker that refused to start; what follows is the reason.
REFUSED = "Start refused reason="
#: The end of a job that the fleet started: a job of that name which the ledger has lost is taken
#: over, any other belongs to somebody else.
JOB_MARK = "-fleet"


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """By the settings FLEET_*."""

    start_s: float = 180.0
    drain_s: float = 120.0
    worker_memory_bytes: int = 0  # over it a worker is recycled; 0 = no limit
    need_bytes: int = 500 * 1024**2  # that a node must have free for one more
    stuck: Patience = field(default_factory=Patience)


@dataclass(slots=True)
class Look:
    """One look at everything."""

    state: FleetState
    views: dict[str, NodeView]
    rows: dict[str, dict[str, Any]]  # of the registry, by the worker's id
    leads: bool = False
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # by job
    messages: list[str] = field(default_factory=list)
    target: int = 0
    unplaced: str = ""  # why workers are missing though no start failed: the nodes are full
    withdrawn: list[Job] = field(default_factory=list)  # to be taken out of scrapyd's queues


class Watch:
    """
    :param free_leases: returns the leases of workers that are dead to the queue
    :param demand: what the frontier has to do
    """

    def __init__(
        self,
        ledger: Ledger,
        registry: Registry,
        nodes: Mapping[str, Node],
        free_leases: Callable[[Collection[str]], Awaitable[int]],
        demand: Callable[[], Awaitable[scaling.Demand]],
        limits: WatchLimits | None = None,
    ) -> None:
        self.ledger = ledger
        self.registry = registry
        self.nodes = nodes
        self.limits = limits or WatchLimits()
        self._free_leases = free_leases
        self._demand = demand
        self._views: dict[str, NodeView] = {}
        self._asking: dict[str, asyncio.Task[NodeView]] = {}
        self._freed: set[str] = set()  # silent workers that the fleet did not start
        self._over: dict[str, int] = {}  # job -> rounds over its memory limit
        self._standing: dict[str, tuple[int, int]] = {}  # job -> (looks, heartbeat of the last), ms
        self._known_demand = scaling.Demand()
        self._demand_at = float("-inf")
        self._calm_since: float | None = None
        self._began_at: float | None = None
        self._refused_at = float("-inf")  # when Redis last did not answer, or refused a write
        self._to_free: set[str] = set()  # dead workers whose leases could not be freed yet

    # ------------------------------------------------------------ a round
    async def round(self) -> Look:
        """Looks, and acts if it leads.

        :raises RegistryUnavailable: nothing can be done without Redis
        """
        try:
            await self.ledger.lead()
            look = await self.look()
            look.leads = self.ledger.leads
            if look.leads:
                await self._act(look)
        except RegistryUnavailable:
            self._refused_at = asyncio.get_running_loop().time()
            raise
        return look

    async def look(self, patience_s: float = LOOK_S) -> Look:
        """:param patience_s: how long nodes that do not answer are waited for"""
        await self._ask_nodes(patience_s)  # before the heartbeats, see judgement.judge
        rows = {row["id"]: row for row in await self.registry.workers()}
        state = await self.ledger.read()
        is_grace = await self.ledger.up_s() < GRACE_S or self._is_grace(rows)
        look = Look(state, dict(self._views), rows)
        for job in state.jobs.values():
            look.verdicts[job.id] = judge(
                job,
                row_of(job, rows),
                self._view(job.node),
                state.now_ms,
                start_ms=round(self.limits.start_s * 1000),
                is_grace=is_grace,
            )
            if job.state is JobState.RUNNING and not is_grace:
                self._judge_progress(look, job)
        return look

    def _is_grace(self, rows: Mapping[str, Mapping[str, Any]]) -> bool:
        """Redis took no writes a moment ago, so that silence proves nothing. A process that has
        just begun cannot know that: where it hears nobody at all, it waits as long."""
        now = asyncio.get_running_loop().time()
        if self._began_at is None:
            self._began_at = now
        is_deaf = bool(rows) and not any(row["alive"] for row in rows.values())
        return now - self._refused_at < GRACE_S or (is_deaf and now - self._began_at < GRACE_S)

    def _judge_progress(self, look: Look, job: Job) -> None:
        row = row_of(job, look.rows)
        if look.verdicts[job.id].fate is not Fate.RUNNING or row is None:
            return
        verdict = stuck(row, look.rows.values(), self.limits.stuck)
        looks, beat_ms = self._standing.pop(job.id, (0, 0))
        if verdict is None:
            return
        self._standing[job.id] = looks + (row["beat_ms"] != beat_ms), row["beat_ms"]
        enough = WAITING_LOOKS if verdict.is_of_waiting else STUCK_LOOKS
        if self._standing[job.id][0] >= enough:
            look.verdicts[job.id] = verdict

    async def close(self) -> None:
        """The lead goes to one that stands by, at once."""
        for task in self._asking.values():
            task.cancel()
        try:
            await self.ledger.resign()
        except RegistryUnavailable:
            pass  # it runs out by itself

    def _view(self, node: str) -> NodeView:
        if node not in self.nodes:
            return NodeView(node, f"node {node} is not in scrapy.cfg any more")
        return self._views.get(node) or NodeView(node, f"node {node} did not answer yet")

    async def _ask_nodes(self, patience_s: float) -> None:
        """All at once. One that hangs is waited for in the next rounds, and holds up none."""
        for name, node in self.nodes.items():
            if name not in self._asking:
                self._asking[name] = asyncio.ensure_future(asyncio.to_thread(node.view))
        if not self._asking:
            return
        done, _ = await asyncio.wait(self._asking.values(), timeout=patience_s)
        for name, task in list(self._asking.items()):
            if task in done:
                self._views[name] = self._asking.pop(name).result()
            elif name not in self._views or not self._views[name].error:
                where = f"node {name} ({self.nodes[name].target.url})"
                self._views[name] = NodeView(name, f"{where} does not answer in time")

    async def _act(self, look: Look) -> None:
        batch = Batch()
        self._note_nodes(look)
        await self._adopt(look, batch)
        if not await self._bury(look, batch):
            return
        self._note_running(look, batch)
        await self._set_target(look)
        self._end_some(look, batch)
        for node in look.state.nodes.values():
            batch.node(node)
        if not await self.ledger.write(batch):
            return
        for job in look.withdrawn:
            await self._kill(job.id, job.node, "INT")
        await self._start_missing(look)
        self._tell_nodes(look)
        said = Batch()
        said.say(look.state.now_ms, look.target, look.messages)
        await self.ledger.write(said)

    # ------------------------------------------------------------ what is there
    def _note_nodes(self, look: Look) -> None:
        """Whether each answers. Each heartbeat says what its host has free, which holds for all
        nodes of that host."""
        state = look.state
        for name in self.nodes.keys() | state.nodes.keys():
            # One that is not in scrapy.cfg any more is nobody's loss.
            state.node(name).away = self._view(name).error if name in self.nodes else ""
        machines: dict[str, Any] = {}
        for row in sorted(look.rows.values(), key=lambda row: row.get("beat_ms", 0)):
            if row["alive"] and row.get("machine"):
                machines[row["host"]] = row["machine"]
                if row.get("node") in self.nodes:
                    state.node(row["node"]).host = row["host"]
        for node in state.nodes.values():
            if machine := machines.get(node.host):
                node.cores, node.free_cores = machine["cores"], machine["free_cores"]
                node.memory_bytes = int(machine["memory_bytes"])
                node.free_memory_bytes = int(machine["free_memory_bytes"])
                node.seen_ms = state.now_ms

    async def _adopt(self, look: Look, batch: Batch) -> None:
        """Jobs that the fleet started and the ledger does not know: a Redis that was killed forgets
        its last second."""
        state = look.state
        found = {
            job: name
            for name, view in look.views.items()
            for job in view.jobs
            if job.endswith(JOB_MARK) and job not in state.jobs
        }
        for row in look.rows.values():
            job = row.get("job", "")
            if row["alive"] and row.get("node") and job.endswith(JOB_MARK):
                if job not in state.jobs:
                    found[job] = row["node"]
        given_up = await self.ledger.orders(found)
        for name, node in found.items():
            if given_up.get(name) == REPLACED:
                await self._end_again(look, name, node)
                continue
            row = next((row for row in look.rows.values() if row.get("job") == name), {})
            job = Job(
                id=name,
                node=node,
                version=row.get("version") or state.wanted.version,
                generation=state.wanted.generation,
                started_ms=state.now_ms,
                since_ms=state.now_ms,
            )
            state.jobs[name] = job
            look.verdicts[name] = Verdict(Fate.RUNNING if row else Fate.STARTING)
            batch.put(job)
            logger.warning(
                "A job that the ledger had lost is taken over job=%s node=%s", name, node
            )

    # ------------------------------------------------------------ what is over
    async def _bury(self, look: Look, batch: Batch) -> bool:
        """What is over is noted before its process is killed: a Redis that refuses the note has
        refused the heartbeats as well. False: another one leads, and nothing was done."""
        for job in look.state.jobs.values():
            self._avoid_place(look, job)
            self._ask_stuck(look, batch, job)
        over = [job for job in look.state.jobs.values() if look.verdicts[job.id].is_over]
        late = [job for job in look.state.jobs.values() if self._ends_too_slowly(look, job)]
        for job in late:
            waited = f"it did not end within {self.limits.drain_s:.0f} s after it was asked to"
            look.verdicts[job.id] = Verdict(Fate.STUCK, waited)
        noted = Batch()
        to_kill = []
        for job in [*over, *late]:
            verdict = look.verdicts[job.id]
            row = row_of(job, look.rows)
            job.worker = job.worker or (row["id"] if row else "")
            if verdict.fate is not Fate.ENDED:
                to_kill.append(job)
            await self._note_end(look, noted, job, verdict)
        if not await self.ledger.write(noted):
            return False
        for job in to_kill:
            await self._kill(job.id, job.node)
        self._to_free |= {job.worker for job in to_kill} | self._strangers(look)
        self._to_free.discard("")
        if self._to_free:
            freed = await self._free_leases(self._to_free)
            logger.info(
                "Leases of dead workers are freed leases=%d workers=%s", freed, self._to_free
            )
            self._to_free = set()
        return True

    def _avoid_place(self, look: Look, job: Job) -> None:
        verdict = look.verdicts[job.id]
        if verdict.is_of_place:
            node = look.state.node(job.node)
            node.last_error, node.crashed_ms = verdict.why, look.state.now_ms
            node.error_ms = look.state.now_ms
            node.until_ms = look.state.now_ms + round(AVOID_S * 1000)

    def _ask_stuck(self, look: Look, batch: Batch, job: Job) -> None:
        """A worker that beats and does nothing, and that its node cannot end: it ends by itself
        when it hears of it (MetricsExtension), and nothing takes its place before."""
        row = row_of(job, look.rows)
        verdict = look.verdicts[job.id]
        is_beating = row is not None and row["alive"]
        if verdict.fate is not Fate.STUCK or not is_beating or job.id in self._view(job.node).jobs:
            return
        job.is_stuck = True
        look.verdicts[job.id] = Verdict(Fate.RUNNING)
        self._ask_to_end(look, batch, job, verdict.why, REPLACED)

    def _ends_too_slowly(self, look: Look, job: Job) -> bool:
        """Only where its node can end it: of any other there would be two."""
        waited_s = (look.state.now_ms - job.since_ms) / 1000
        return (
            job.state is JobState.DRAINING
            and look.verdicts[job.id].fate is Fate.RUNNING
            and waited_s > self.limits.drain_s
            and job.id in self._view(job.node).jobs
        )

    def _strangers(self, look: Look) -> set[str]:
        """Silent workers that the fleet did not start: nobody replaces them, but their leases
        are freed, once."""
        known = {job.worker for job in look.state.jobs.values()}
        silent = {name for name, row in look.rows.items() if not row["alive"]}
        is_judged = all(v.fate is not Fate.UNKNOWN for v in look.verdicts.values())
        fresh = silent - known - self._freed if is_judged else set()
        self._freed = (self._freed & silent) | fresh
        return fresh

    async def _kill(self, job: str, name: str, signal: str = "KILL") -> None:
        """Its process, if scrapyd still knows it: two for one would share the sites' leases. Of one
        that is pending its place in scrapyd's queue."""
        node = self.nodes.get(name)
        if node is None or self._view(name).error:
            return
        try:
            if was := await asyncio.to_thread(node.cancel, job, signal):
                logger.info("Job is cancelled job=%s node=%s was=%s", job, name, was)
        except NodeError as exc:
            logger.warning("Job cannot be killed, tried again job=%s error=%s", job, exc)

    async def _end_again(self, look: Look, name: str, node: str) -> None:
        """A job that was given up and whose process is there still: its node did not answer when it
        was to be killed. One that signed off, or hears of it by its heartbeat, gets time to end."""
        if name in self._view(node).pending:  # it would start only to hear that it was given up
            await self._kill(name, node)
            return
        ended = next((ended for ended in look.state.ended if ended.id == name), None)
        if ended is None:
            return
        is_heard = any(row["alive"] and row.get("job") == name for row in look.rows.values())
        is_ending = is_heard or ended.how == Fate.ENDED
        waited_s = (look.state.now_ms - ended.at_ms) / 1000
        if not is_ending or waited_s > self.limits.drain_s:
            await self._kill(name, node)

    async def _note_end(self, look: Look, batch: Batch, job: Job, verdict: Verdict) -> None:
        state = look.state
        lived_s = (state.now_ms - job.started_ms) / 1000
        why = job.why if verdict.fate is Fate.ENDED and job.why else verdict.why
        is_asked = job.state is JobState.DRAINING
        how = str(Fate.ENDED if verdict.is_full else verdict.fate)
        if not is_asked and not verdict.is_full:
            why = await self._with_log(job, why or "it ended by itself")
        ended = Ended(
            id=job.id,
            node=job.node,
            version=job.version,
            at_ms=state.now_ms,
            lived_s=round(lived_s),
            how=how,
            why=why,
            worker=job.worker,
        )
        batch.end(ended)
        state.ended.insert(0, ended)
        del state.jobs[job.id]
        self._over.pop(job.id, None)
        self._standing.pop(job.id, None)
        logger.log(
            logging.INFO if is_asked or verdict.is_full else logging.WARNING,
            "Worker is over job=%s node=%s how=%s lived_s=%d why=%s",
            job.id,
            job.node,
            ended.how,
            ended.lived_s,
            why,
        )
        if verdict.is_full:
            node = state.node(job.node)
            node.places, node.places_ms = len(self._view(job.node).running), state.now_ms
        elif not is_asked and not verdict.is_of_place:
            # One that was waited for in vain was never up, however long that took.
            up_s = 0.0 if verdict.fate is Fate.NOT_STARTED else lived_s
            self._note_crash(look, batch, job, up_s, why)

    def _note_crash(self, look: Look, batch: Batch, job: Job, lived_s: float, why: str) -> None:
        """:param lived_s: after it was started, 0 = it was never heard"""
        node = look.state.node(job.node)
        node.last_error, node.error_ms = why, look.state.now_ms
        is_forgiven = node.crashed_ms < look.state.wanted.asked_ms
        if lived_s >= YOUNG_S or is_forgiven:
            node.crashes, node.until_ms = 0, 0
        if lived_s >= YOUNG_S:
            return
        node.crashes += 1
        node.crashed_ms = look.state.now_ms
        node.until_ms = look.state.now_ms + round(backoff_s(node.crashes) * 1000)
        wanted = look.state.wanted
        if wanted.previous and job.version == wanted.version:
            wanted.failed += 1
            batch.wanted(wanted)

    async def _with_log(self, job: Job, why: str) -> str:
        """With the last error of its log, if it has one."""
        node = self.nodes.get(job.node)
        if node is None or self._view(job.node).error:
            return why
        try:
            text, _ = await asyncio.to_thread(node.log, job.id, 16_384)
        except NodeError:
            return f"{why}; it left no log, see scrapyd's own on node {job.node}"
        error = last_error(text.decode("utf-8", "replace"))
        if error.startswith(REFUSED):
            return f"{why}: {error.removeprefix(REFUSED)}"
        return f"{why}; its last error: {error}" if error else why

    # ------------------------------------------------------------ what runs
    def _note_running(self, look: Look, batch: Batch) -> None:
        state, wanted = look.state, look.state.wanted
        for job in state.jobs.values():
            row = row_of(job, look.rows)
            if look.verdicts[job.id].fate is not Fate.RUNNING or row is None:
                continue
            if job.state is JobState.STARTING:
                job.state, job.since_ms, job.worker = JobState.RUNNING, state.now_ms, row["id"]
                batch.put(job)
            if wanted.previous and job.version == wanted.version:
                wanted.previous, wanted.failed = "", 0  # it comes up: nothing to go back to
                batch.wanted(wanted)
            self._note_up(look, job)
        if wanted.previous and wanted.failed >= MOST_FAILED:
            self._roll_back(look, batch)

    def _note_up(self, look: Look, job: Job) -> None:
        """A worker that stayed up says that its node is well; one that was there before the last
        crash only where no more are wanted: the next start may fail as the last one did."""
        state, node = look.state, look.state.node(job.node)
        is_later = job.started_ms >= node.crashed_ms or len(state.jobs) >= state.wanted.least
        up_ms = state.now_ms - max(job.started_ms, node.crashed_ms)
        if node.crashes and is_later and up_ms > YOUNG_S * 1000:
            node.crashes, node.until_ms = 0, 0
        up_ms = state.now_ms - max(job.started_ms, node.error_ms)
        if not node.crashes and not waits(node, state) and up_ms > YOUNG_S * 1000:
            node.last_error, node.error_ms = "", 0

    def _roll_back(self, look: Look, batch: Batch) -> None:
        wanted = look.state.wanted
        logger.error(
            "No worker of the new version comes up, back to the one before new=%s before=%s",
            wanted.version,
            wanted.previous,
        )
        for node in look.state.nodes.values():
            node.crashes, node.until_ms = 0, 0  # of the version that is given up
        wanted.version, wanted.previous, wanted.failed = wanted.previous, "", 0
        batch.wanted(wanted)
        for job in look.state.jobs.values():
            if job.version == wanted.version:  # it was not replaced yet, and need not be
                job.generation = wanted.generation
                batch.put(job)

    # ------------------------------------------------------------ how many
    async def _set_target(self, look: Look) -> None:
        wanted, running = look.state.wanted, len(look.state.jobs)
        if wanted.most:
            await self._read_demand()
        if wanted.least == wanted.most:
            look.target = wanted.most
        else:
            look.target = self._by_demand(look, running)
        if text := scaling.waste(min(look.target, running), self._known_demand):
            look.messages.append(text)

    def _by_demand(self, look: Look, running: int) -> int:
        wanted = look.state.wanted
        useful = scaling.useful(self._known_demand, _pages_per_s(look.rows.values()))
        target = scaling.within(useful.workers, wanted.least, wanted.most)
        now = asyncio.get_running_loop().time()
        if target >= running:
            self._calm_since = None
        else:
            self._calm_since = self._calm_since or now
            if now - self._calm_since < CALM_S:
                target = scaling.within(running, wanted.least, wanted.most)
        look.messages.append(
            f"{target} of {wanted.least} to {wanted.most} workers: {useful.workers} would do"
            f" ({useful.why})"
        )
        return target

    async def _read_demand(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._demand_at >= DEMAND_S:
            self._known_demand = await self._demand()
            self._demand_at = now

    # ------------------------------------------------------------ too many, too large, too old
    def _end_some(self, look: Look, batch: Batch) -> None:
        state = look.state
        here = [job for job in state.jobs.values() if job.state is not JobState.DRAINING]
        for job in here:
            if job.node in state.drained:
                self._ask_to_end(look, batch, job, f"node {job.node} is drained")
        here = [job for job in here if job.state is not JobState.DRAINING]
        for job in sorted(here, key=lambda job: -job.started_ms)[: max(0, len(here) - look.target)]:
            self._ask_to_end(look, batch, job, f"{look.target} workers are wanted")
        self._recycle(look, batch)
        self._renew(look, batch)

    def _ask_to_end(self, look: Look, batch: Batch, job: Job, why: str, order: str = DRAIN) -> None:
        job.state, job.since_ms, job.why = JobState.DRAINING, look.state.now_ms, why
        batch.put(job)
        batch.order(job.id, order)
        if not job.worker and job.id not in self._view(job.node).running:
            look.withdrawn.append(job)
        logger.info("Worker is asked to end job=%s node=%s why=%s", job.id, job.node, why)

    def _recycle(self, look: Look, batch: Batch) -> None:
        """One at a time: a fleet whose workers all grow is not stopped at once."""
        limit = self.limits.worker_memory_bytes
        for job in look.state.jobs.values():
            row = row_of(job, look.rows)
            size = row.get("memory_bytes", 0) if row else 0
            is_over = bool(limit) and size > limit and job.state is JobState.RUNNING
            self._over[job.id] = self._over.get(job.id, 0) + 1 if is_over else 0
        if any(job.state is JobState.DRAINING for job in look.state.jobs.values()):
            return
        for job in look.state.jobs.values():
            if self._over[job.id] >= OVER_ROUNDS:
                row = row_of(job, look.rows) or {}
                used = f"{row.get('memory_bytes', 0) / 1024**2:,.0f} MiB"
                why = f"memory: {used}, over the limit of {limit / 1024**2:,.0f} MiB"
                self._ask_to_end(look, batch, job, why)
                return

    def _renew(self, look: Look, batch: Batch) -> None:
        """A restart: one worker after the other, each when the one before runs."""
        jobs = list(look.state.jobs.values())
        wanted = look.state.wanted
        old = [
            job
            for job in jobs
            if (job.generation, job.version) != (wanted.generation, wanted.version)
        ]
        if not old:
            return
        look.messages.append(
            f"restart to version {wanted.version}: {len(jobs) - len(old)} of {look.target} done"
        )
        is_calm = all(job.state is JobState.RUNNING for job in jobs) and len(jobs) >= look.target
        if is_calm:
            self._ask_to_end(look, batch, old[0], "restart")

    # ------------------------------------------------------------ starting
    async def _start_missing(self, look: Look) -> None:
        """Jobs that are asked to end count until they have ended: never two for one."""
        state = look.state
        missing = look.target - len(state.jobs)
        if missing <= 0:
            return
        need = self._need(look)
        rooms = self._rooms(look, need)
        if not rooms:
            look.messages.append(f"{missing} workers are missing: no node can take one now")
        places = {room.name: self._places(look, room.name) for room in rooms}
        for left in range(missing if rooms else 0, 0, -1):
            full = [name for name, free in places.items() if free <= 0]
            rooms = [room for room in rooms if room.name not in full]
            if not rooms:
                self._tell_full(look, left, full)
                return
            node = placement.place(rooms, need)
            if node is None:
                need_mib = f"{need.memory_bytes / 1024**2:,.0f} MiB"
                free = ", ".join(
                    f"{room.name} {room.free_memory_bytes / 1024**2:,.0f} MiB" for room in rooms
                )
                look.messages.append(
                    f"no node has {need_mib} of memory for another worker; free: {free}"
                )
                return
            rooms = placement.taken(rooms, node, need)
            places[node] -= 1
            if not await self._start(look, node):
                rooms = [room for room in rooms if room.name != node]
            if not rooms or not self.ledger.leads:
                return

    def _places(self, look: Look, name: str) -> int:
        """How many more jobs a node is handed now."""
        state, view, node = look.state, self._view(name), look.state.node(name)
        unstarted = sum(
            job.node == name and job.state is JobState.STARTING and job.id not in view.running
            for job in state.jobs.values()
        )
        if not self._is_known_full(look, node):
            return MOST_PENDING - unstarted
        return node.places - len(view.running) - unstarted

    def _is_known_full(self, look: Look, node: NodeState) -> bool:
        """What was found before the operator's last word does not count: he may have given it a
        larger max_proc."""
        state, is_more = look.state, len(self._view(node.name).running) > node.places
        is_fresh = state.now_ms - node.places_ms < FULL_S * 1000
        return is_fresh and node.places_ms >= state.wanted.asked_ms and not is_more

    def _tell_full(self, look: Look, left: int, names: list[str]) -> None:
        full = [look.state.node(name) for name in names]
        if all(self._is_known_full(look, node) for node in full):  # else they have just got some
            said = ", ".join(f"{node.name} {node.places}" for node in full)
            look.unplaced = (
                f"{left} of {look.target} {FULL_MARK}: the nodes run as many as the"
                f" max_proc of their scrapyd allows ({said})"
            )
            look.messages.append(look.unplaced)

    def _need(self, look: Look) -> placement.Need:
        """Of one worker: what those that run have, or what the settings say."""
        sizes = [row["memory_bytes"] for row in look.rows.values() if row.get("memory_bytes")]
        measured = sum(sizes) // len(sizes) if sizes else 0
        return placement.Need(1.0, min(max(1, self.limits.need_bytes), measured or 1 << 62))

    def _rooms(self, look: Look, need: placement.Need) -> list[placement.NodeRoom]:
        state = look.state
        rooms = []
        for name in self.nodes:
            view, node = self._view(name), state.node(name)
            jobs = [job for job in state.jobs.values() if job.node == name]
            is_usable = not view.error and name not in state.drained
            if not is_usable or waits(node, state):
                continue
            if state.wanted.version not in view.versions:
                continue
            room = placement.NodeRoom(name, workers=len(jobs))
            if node.cores:
                room = placement.NodeRoom(
                    name, node.host, node.free_cores, node.free_memory_bytes, len(jobs)
                )
            rooms.append(room)
        for job in state.jobs.values():
            if state.now_ms - job.started_ms < SETTLED_MS:
                rooms = placement.taken(rooms, job.node, need)
                rooms = [_with_workers(room, job.node, -1) for room in rooms]  # counted above
        return rooms

    async def _start(self, look: Look, name: str) -> bool:
        """Noted first and then scheduled: whoever leads next knows of it. False: nothing more is to
        be started there in this round."""
        state, wanted = look.state, look.state.wanted
        if not await self.ledger.keep():  # a node may take seconds to answer
            return False
        job = Job(
            id=f"{secrets.token_hex(4)}{JOB_MARK}",
            node=name,
            version=wanted.version,
            generation=wanted.generation,
            started_ms=state.now_ms,
            since_ms=state.now_ms,
        )
        batch = Batch()
        batch.put(job)
        if not await self.ledger.write(batch):
            return False
        state.jobs[job.id] = job
        look.verdicts[job.id] = Verdict(Fate.STARTING)
        args = [("setting", f"FLEET_NODE={name}"), *((a, b) for a, b in wanted.args)]
        try:
            await asyncio.to_thread(self.nodes[name].schedule, job.id, wanted.version, args)
        except NodeError as exc:
            if exc.is_late:  # it may start yet, and is judged as any that is starting
                return False
            over = Batch()
            await self._note_end(look, over, job, Verdict(Fate.NOT_STARTED, str(exc)))
            over.node(state.node(name))
            await self.ledger.write(over)
            return False
        logger.info("Worker is started job=%s node=%s version=%s", job.id, name, wanted.version)
        return True

    # ------------------------------------------------------------ what people are told
    def _tell_nodes(self, look: Look) -> None:
        state = look.state
        for name in self.nodes:
            view, node = self._view(name), state.node(name)
            if view.error:
                look.messages.append(view.error)
            elif state.wanted.most and state.wanted.version not in view.versions:
                has = f"it has {view.versions[-1]}" if view.versions else "it has none"
                look.messages.append(
                    f"node {name} has no egg of version {state.wanted.version} ({has}) and gets no"
                    " workers: `scrapy fleet deploy`"
                )
            if waits(node, state):
                look.messages.append(crash_text(node, state.now_ms))


def _with_workers(room: placement.NodeRoom, name: str, more: int) -> placement.NodeRoom:
    if room.name != name:
        return room
    return placement.NodeRoom(
        room.name, room.host, room.free_cores, room.free_memory_bytes, room.workers + more
    )


def backoff_s(crashes: int) -> float:
    """Until the next start on a node whose last ``crashes`` workers ended soon after theirs."""
    if crashes <= 1:
        return 0.0
    return float(min(LONGEST_BACKOFF_S, BACKOFF_S * 2 ** min(crashes - 2, 20)))


def waits(node: NodeState, state: FleetState) -> bool:
    """Nothing is started there for a while. What crashed before the operator's last word does not
    count: he may have mended it."""
    return node.until_ms > state.now_ms and node.crashed_ms >= state.wanted.asked_ms


def failing_text(node: NodeState) -> str:
    """Why no worker stays up there; "" = they do. One that ended soon is started again at once, and
    a worker that was lost is told by itself."""
    if node.crashes < 2:
        return ""
    return (
        f"{node.crashes} workers in a row ended within {YOUNG_S:.0f} s of their start, or did not"
        f" start; the last: {node.last_error}"
    )


def crash_text(node: NodeState, now_ms: int) -> str:
    wait_s = (node.until_ms - now_ms) / 1000
    if not node.crashes:
        return f"node {node.name} gets no workers for {wait_s:.0f} s: {node.last_error}"
    return (
        f"node {node.name}: {node.crashes} workers in a row ended within {YOUNG_S:.0f} s of their"
        f" start; the next start is in {wait_s:.0f} s. The last: {node.last_error}"
    )


_RECORD = re.compile(r"\d{4}-\d\d-\d\d \S+ \[[^]]+\] (\w+): (.*)")


def last_error(log: str) -> str:
    """The text of the last record of level ERROR or CRITICAL in a log of Scrapy, with the last line
    of the traceback below it; "" = none."""
    below = ""  # the last line before the next record
    for line in reversed(log.splitlines()):
        record = _RECORD.match(line)
        if record is None:
            below = below or line.strip()
        elif record[1] in ("ERROR", "CRITICAL"):
            return f"{record[2].strip()}{f': {below}' if below else ''}"[:300]
        else:
            below = ""
    return ""


def _pages_per_s(rows: Collection[Mapping[str, Any]]) -> float:
    """Of a worker with a whole core, by those that are at work; the assumed figure without any."""
    pages = sum(row.get("pages_per_s", 0) for row in rows if row["alive"])
    cores = sum(row.get("cpu_percent", 0) for row in rows if row["alive"]) / 100
    if cores < 0.2 or pages <= 0:
        return scaling.PAGES_PER_S
    return max(1.0, float(pages / cores))
