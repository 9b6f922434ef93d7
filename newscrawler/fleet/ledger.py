"""What the fleet is meant to be and what was started for it, in Redis beside the registry.

Workers say of themselves that they are there (registry.py); here stands which of them the fleet
started, on which node, and how many there should be. Only the watch that leads writes the jobs:
each write carries the token of its lead, and one that lost it changes nothing. All keys carry one
hash tag, as the registry's do:

    {fleet}:leader   text  "<token> <name>" of the watch that leads; expires LEAD_MS after renewal
    {fleet}:wanted   JSON  Wanted; written by the commands, and by a restart that is rolled back
    {fleet}:jobs     hash  job id -> JSON of Job: those that are not over
    {fleet}:nodes    hash  node -> JSON of NodeState
    {fleet}:drained  set   nodes that get no workers
    {fleet}:ended    list  JSON of Ended, the newest first, ENDED_KEPT of them
    {fleet}:deploying text the name of the process that deploys just now
    {fleet}:watch    JSON  what the watch said in its last round; expires SAID_S after it
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from redis.exceptions import RedisError, ResponseError

from newscrawler.fleet import scripts
from newscrawler.fleet.answers import answered, text_of
from newscrawler.fleet.registry import (
    ORDER_S,
    REPLACED,
    TAG,
    WORKERS,
    RegistryUnavailable,
    order_key,
    worker_key,
)

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")

LEADER = f"{TAG}:leader"
TOKEN = f"{TAG}:leader:token"
WANTED = f"{TAG}:wanted"
JOBS = f"{TAG}:jobs"
NODES = f"{TAG}:nodes"
DRAINED = f"{TAG}:drained"
ENDED = f"{TAG}:ended"
SAID = f"{TAG}:watch"
DEPLOYING = f"{TAG}:deploying"

#: Ms that a lead lasts without renewal. With a round each second and a half, one that stands by
#: takes over within ten seconds.
LEAD_MS = 7_000
#: Seconds that the words of the last round are shown.
SAID_S = 15
ENDED_KEPT = 100
#: Seconds after which a deploy that was killed is no longer waited for.
DEPLOY_S = 600


class JobState(StrEnum):
    STARTING = "starting"  # scheduled, no heartbeat yet
    RUNNING = "running"
    DRAINING = "draining"  # asked to end


@dataclass(slots=True)
class Wanted:
    """What the operator asked for. ``least`` = ``most``: that many workers, else by the queue."""

    least: int = 0
    most: int = 0
    version: str = ""  # that workers run
    deployed: str = ""  # the newest that all nodes have; workers run it from the next restart on
    previous: str = ""  # what a restart goes back to when no worker of ``version`` comes up
    failed: int = 0  # starts of ``version`` that failed since, while ``previous`` is set
    generation: int = 0  # jobs of an older one are replaced, one after the other
    args: list[list[str]] = field(default_factory=list)  # ["setting", "NAME=value"], ["sites", ..]
    asked_ms: int = 0  # when the operator last said something


@dataclass(slots=True)
class Job:
    """A worker that the fleet started. Times are ms since the epoch, by Redis' clock."""

    id: str
    node: str
    version: str
    generation: int
    started_ms: int
    state: JobState = JobState.STARTING
    since_ms: int = 0  # when this state began
    worker: str = ""  # its id in leases and heartbeats, once it beat
    why: str = ""  # it was asked to end
    is_stuck: bool = False  # as it does nothing: what it holds is freed when it has ended


@dataclass(slots=True)
class Ended:
    """A job that is over. ``how``: "ended", "died", "stuck" or "not started"."""

    id: str
    node: str
    version: str
    at_ms: int
    lived_s: int
    how: str
    why: str
    worker: str = ""

    @property
    def is_lost(self) -> bool:
        return self.how != "ended"

    @property
    def is_failed_start(self) -> bool:
        """It was never heard: nothing is lost with it, its node is at fault."""
        return self.how == "not started"


@dataclass(slots=True)
class NodeState:
    """What is remembered of a node. ``host`` and what it has are of the newest heartbeat there."""

    name: str
    host: str = ""
    cores: float = 0.0  # 0 = it never ran a worker of the fleet
    free_cores: float = 0.0
    memory_bytes: int = 0
    free_memory_bytes: int = 0
    seen_ms: int = 0
    crashes: int = 0  # workers in a row that ended soon after their start
    crashed_ms: int = 0  # when the last of them did
    until_ms: int = 0  # no start before
    last_error: str = ""  # of the last worker there that ended unasked; "" = one stayed up since
    error_ms: int = 0  # when that was
    places: int = 0  # workers that it ran when it was found to be full, 0 = it never was
    places_ms: int = 0  # when
    away: str = ""  # why its scrapyd does not answer the watch, "" = it does


@dataclass(slots=True)
class FleetState:
    """All of the above as it was at ``now_ms``, by Redis' clock."""

    now_ms: int
    leader: str  # its name; "" = nobody
    wanted: Wanted
    jobs: dict[str, Job]
    nodes: dict[str, NodeState]
    drained: set[str]
    ended: list[Ended]
    said: dict[str, Any]  # {"at_ms", "target", "messages"} of the last round

    def node(self, name: str) -> NodeState:
        return self.nodes.setdefault(name, NodeState(name))


def _made(kind: type[T], text: bytes | str) -> T:
    """Of JSON; what a newer program added is left out."""
    known = {one.name for one in fields(cast(Any, kind))}
    return kind(**{name: value for name, value in json.loads(text).items() if name in known})


def replaced(ended: Iterable[Ended], jobs: Iterable[Job], target: int | None = None) -> set[str]:
    """Ids of jobs that were lost and in whose place another one works, or did, or none is wanted.

    :param ended: what is over; the place of one that ended as it was asked to is not looked for
    :param jobs: what is not over
    :param target: workers that are wanted now: where as many run, nobody's place is free, whatever
        was lost before a `stop` or a `scale`; None = not known
    """
    over, jobs = list(ended), list(jobs)
    run = sum(bool(job.worker) and job.state is not JobState.DRAINING for job in jobs)
    if target is not None and run >= target:
        return {one.id for one in over if one.is_lost}
    came = [job.started_ms for job in jobs if job.worker]
    came += [one.at_ms - 1000 * one.lived_s for one in over if one.worker]
    came.sort()
    found = set()
    gone = (one for one in over if one.is_lost and not one.is_failed_start)
    for lost in sorted(gone, key=lambda one: one.at_ms):
        # A second more: how long one lived is known in whole seconds.
        at = next((at for at, began in enumerate(came) if began + 1000 > lost.at_ms), None)
        if at is not None:
            found.add(lost.id)
            del came[at]
    return found


class Batch:
    """Changes that are made together, by the watch that leads."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, list[str]]] = []  # (key, [command, arguments ...])

    def add(self, command: str, key: str, *args: Any) -> None:
        self.commands.append((key, [command, *map(str, args)]))

    def put(self, job: Job) -> None:
        self.add("HSET", JOBS, job.id, json.dumps(asdict(job)))

    def node(self, state: NodeState) -> None:
        self.add("HSET", NODES, state.name, json.dumps(asdict(state)))

    def wanted(self, wanted: Wanted) -> None:
        self.add("SET", WANTED, json.dumps(asdict(wanted)))

    def order(self, job: str, order: str) -> None:
        self.add("SET", order_key(job), order, "EX", ORDER_S)

    def end(self, ended: Ended) -> None:
        """The job is over: a process that is still there, or starts late, is told so."""
        self.add("HDEL", JOBS, ended.id)
        self.add("LPUSH", ENDED, json.dumps(asdict(ended)))
        self.add("LTRIM", ENDED, 0, ENDED_KEPT - 1)
        self.order(ended.id, REPLACED)
        if ended.worker:
            self.add("ZREM", WORKERS, ended.worker)
            self.add("DEL", worker_key(ended.worker))

    def say(self, now_ms: int, target: int, messages: list[str]) -> None:
        text = json.dumps({"at_ms": now_ms, "target": target, "messages": messages})
        self.add("SET", SAID, text, "EX", SAID_S)


class Ledger:
    """Reads and writes the keys above. Every coroutine may raise RegistryUnavailable."""

    def __init__(self, client: Redis, name: str) -> None:
        """:param name: of this process among all that may lead"""
        self.client: Any = client
        self.name = name
        self._lead = ""  # "<token> <name>" while this process leads, as far as it knows

    # ------------------------------------------------------------ the lead
    async def lead(self, lasts_ms: int = LEAD_MS) -> str:
        """Leads, or goes on leading, if no other does.

        :returns: the name of the leader now
        """
        answer = await self._run(
            scripts.run(self.client, "lead", [LEADER, TOKEN], [self._lead, self.name, lasts_ms])
        )
        held = text_of(answer)
        self._lead = held if held.partition(" ")[2] == self.name else ""
        return held.partition(" ")[2]

    async def keep(self) -> bool:
        """Goes on leading, if it still does: after a while in which another may have led, what is
        known here is out of date."""
        answer = await self._run(
            scripts.run(self.client, "lead", [LEADER, TOKEN], [self._lead, "", LEAD_MS])
        )
        if not self._lead or text_of(answer) != self._lead:
            self._lead = ""
        return self.leads

    @property
    def leads(self) -> bool:
        return bool(self._lead)

    async def resign(self) -> None:
        if self._lead:
            await self.lead(0)
            self._lead = ""

    async def write(self, batch: Batch) -> bool:
        """False: another process leads, and nothing was written."""
        if not batch.commands:
            return True
        keys = [LEADER, *(key for key, _ in batch.commands)]
        commands = json.dumps([command for _, command in batch.commands])
        done = await self._run(scripts.run(self.client, "fenced", keys, [self._lead, commands]))
        if not done:
            self._lead = ""
        return bool(done)

    # ------------------------------------------------------------ reading
    async def read(self) -> FleetState:
        pipe = self.client.pipeline(transaction=True)
        pipe.get(LEADER)
        pipe.get(WANTED)
        pipe.hgetall(JOBS)
        pipe.hgetall(NODES)
        pipe.smembers(DRAINED)
        pipe.lrange(ENDED, 0, ENDED_KEPT - 1)
        pipe.get(SAID)
        leader, wanted, jobs, nodes, drained, ended, said = await self._run(pipe.execute())
        seconds, micros = await self._run(self.client.time())
        made = [_made(Job, text) for text in jobs.values()]
        for job in made:
            job.state = JobState(job.state)
        return FleetState(
            now_ms=int(seconds) * 1000 + int(micros) // 1000,
            leader=text_of(leader or "").partition(" ")[2],
            wanted=_made(Wanted, wanted) if wanted else Wanted(),
            jobs={job.id: job for job in sorted(made, key=lambda job: (job.started_ms, job.id))},
            nodes={(node := _made(NodeState, text)).name: node for text in nodes.values()},
            drained={text_of(name) for name in drained},
            ended=[_made(Ended, text) for text in ended],
            said=json.loads(said) if said else {},
        )

    async def orders(self, jobs: Iterable[str]) -> dict[str, str]:
        """Of jobs that have one."""
        names = list(jobs)
        if not names:
            return {}
        found = await self._run(self.client.mget([order_key(name) for name in names]))
        return {name: text_of(order) for name, order in zip(names, found, strict=True) if order}

    async def up_s(self) -> float:
        """Seconds since this Redis began; infinite where it does not tell.

        :raises RegistryUnavailable: Redis does not answer
        """
        try:
            info = await self.client.info("server")
        except ResponseError:  # not allowed to this user
            return float("inf")
        except (RedisError, OSError) as exc:
            raise RegistryUnavailable(f"Redis does not answer: {exc}") from exc
        return float(info.get("uptime_in_seconds", float("inf")))

    # ------------------------------------------------------------ the operator's wishes
    async def want(self, wanted: Wanted, now_ms: int) -> None:
        """:param now_ms: by Redis' clock, see FleetState"""
        wanted.asked_ms = now_ms
        await self._run(self.client.set(WANTED, json.dumps(asdict(wanted))))

    async def begin_deploy(self) -> bool:
        """One deploy at a time; False: another one is at it."""
        lasts_s = DEPLOY_S
        return bool(await self._run(self.client.set(DEPLOYING, self.name, nx=True, ex=lasts_s)))

    async def end_deploy(self) -> None:
        await self._run(self.client.delete(DEPLOYING))

    async def drain(self, node: str, is_drained: bool) -> None:
        if is_drained:
            await self._run(self.client.sadd(DRAINED, node))
        else:
            await self._run(self.client.srem(DRAINED, node))

    async def _run(self, answer: Any) -> Any:
        return await answered(answer, RegistryUnavailable)
