"""What the watch does about heartbeats that it sees in a real Redis. The nodes are gone here, so it
starts nothing: tests/crawl/test_scrapyd.py has real ones."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

import pytest
from scrapy.settings import Settings as ScrapySettings

from newscrawler.commands.fleet import show_versions
from newscrawler.crawl.fleet import FrontierSide, limits_of
from newscrawler.crawl.fleet_control import Control, FleetRefused, Span, with_args
from newscrawler.fleet import watch as watch_module
from newscrawler.fleet.judgement import Patience
from newscrawler.fleet.ledger import Batch, Job, JobState, Ledger, NodeState, Wanted
from newscrawler.fleet.nodes import Node, Target
from newscrawler.fleet.registry import (
    BEAT_TTL_S,
    DRAIN,
    REPLACED,
    Beat,
    Registry,
    RegistryUnavailable,
    worker_key,
)
from newscrawler.fleet.scaling import Demand
from newscrawler.fleet.status import headline, shown_node, shown_worker, status_of
from newscrawler.fleet.watch import Look, Watch, WatchLimits, backoff_s, last_error
from tests.redis.helpers import frontier, links

MIB = 1024**2


def settings() -> ScrapySettings:
    found = ScrapySettings()
    found.setmodule("newscrawler.settings", priority="project")
    return found


class Fleet:
    """Workers that beat as they are told, and a watch over them."""

    def __init__(self, r: Any, nodes: dict[str, Node] | None = None, **limits: Any) -> None:
        self.r = r
        self.registry = Registry(r)
        self.ledger = Ledger(r, "watch")
        self.freed: list[set[str]] = []
        self.demand = Demand()
        self.watch = Watch(
            self.ledger, self.registry, nodes or {}, self.free, self.ask, WatchLimits(**limits)
        )  # fmt: skip

    async def free(self, workers: Collection[str]) -> int:
        self.freed.append(set(workers))
        return 0

    async def ask(self) -> Demand:
        return self.demand

    async def want(self, **values: Any) -> None:
        await self.ledger.want(Wanted(**values), 1)

    async def start(self, number: int, state: JobState = JobState.RUNNING, **values: Any) -> Job:
        """A job of the ledger, begun two minutes ago."""
        now_ms = (await self.ledger.read()).now_ms
        job = Job(f"{number:08x}-fleet", "a", "v1", 0, now_ms - 120_000 + number, state, now_ms)
        for name, value in values.items():
            setattr(job, name, value)
        job.worker = f"host-{number}-{number:08x}"
        batch = Batch()
        batch.put(job)
        await self.ledger.lead()
        assert await self.ledger.write(batch)
        return job

    async def beat(self, *jobs: Job, **values: Any) -> str:
        for job in jobs:
            given = {"version": job.version, "node": "a", "beat_ms": int(time.time() * 1000)}
            beat = Beat(job.worker, "host", 1, job=job.id, **{**given, **values})
            order = await self.registry.beat(beat)
        return order

    async def silence(self, job: Job) -> None:
        """What the expiry of its heartbeat does."""
        await self.r.delete(worker_key(job.worker))

    async def round(self) -> Look:
        look = await self.watch.round()
        assert look.leads
        return look


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Redis of the tests has only just begun."""
    monkeypatch.setattr(watch_module, "GRACE_S", 0)


def test_a_dead_worker_is_found_within_ten_seconds() -> None:
    """Its last heartbeat may come just before its death, and a round just before its expiry."""
    assert BEAT_TTL_S + watch_module.ROUND_S + 1 < 10


@pytest.mark.usefixtures("no_grace")
async def test_a_silent_worker_loses_its_leases_and_its_place(r: Any) -> None:
    fleet = Fleet(r)
    await fleet.want(least=2, most=2, version="v1")
    live, dead = await fleet.start(1), await fleet.start(2)
    await fleet.beat(live, dead)
    assert not (await fleet.round()).state.ended
    await fleet.silence(dead)
    await fleet.round()
    state = await fleet.ledger.read()
    assert list(state.jobs) == [live.id]
    assert (state.ended[0].id, state.ended[0].how) == (dead.id, "died")
    assert fleet.freed == [{dead.worker}]
    assert await fleet.beat(dead) == REPLACED, "should it only have been stuck"
    await fleet.round()
    assert fleet.freed == [{dead.worker}], "once"


async def test_silence_after_a_restart_of_redis_proves_nothing(
    r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "GRACE_S", 10**9)
    fleet = Fleet(r)
    await fleet.want(least=1, most=1, version="v1")
    job = await fleet.start(1)
    await fleet.beat(job)
    await fleet.silence(job)
    look = await fleet.round()
    assert list(look.state.jobs) == [job.id] and not fleet.freed
    assert status_of(look)["workers"][0]["state"] == "silent"


async def full(r: Any) -> None:
    """As `CONFIG SET maxmemory 1mb` makes a Redis that has more."""
    await r.config_set("maxmemory", "1")


@pytest.fixture
async def freed_again(r: Any) -> AsyncIterator[None]:
    yield
    await r.config_set("maxmemory", "0")


@pytest.mark.usefixtures("freed_again")
async def test_silence_while_redis_refused_writes_proves_nothing(
    r: Any, scrapyd_of_jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was full for longer than a heartbeat lasts, and then freed: it did not begin anew."""
    fleet = Fleet(r, {"a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))})
    monkeypatch.setattr(fleet.ledger, "up_s", always_up)
    await fleet.want(least=2, most=2, version="v1")
    jobs = [await fleet.start(1), await fleet.start(2)]
    scrapyd_of_jobs.jobs = [job.id for job in jobs]
    await fleet.beat(*jobs)
    await fleet.round()
    await full(r)
    for job in jobs:
        await fleet.silence(job)
    for _ in range(2):
        with pytest.raises(RegistryUnavailable, match="maxmemory"):
            await fleet.watch.round()
        with pytest.raises(RegistryUnavailable):
            await fleet.beat(jobs[0])
    await r.config_set("maxmemory", "0")
    for _ in range(3):  # its rounds come before the next heartbeats
        look = await fleet.round()
    assert sorted(look.state.jobs) == sorted(job.id for job in jobs)
    assert not scrapyd_of_jobs.asked and not fleet.freed, "nobody is killed for it"
    await fleet.beat(jobs[0])
    monkeypatch.setattr(watch_module, "GRACE_S", 0)  # its time is over
    await fleet.round()
    assert scrapyd_of_jobs.asked == [(jobs[1].id, "KILL")], "who says nothing after it is dead"


@pytest.mark.usefixtures("freed_again")
async def test_nobody_is_killed_of_whom_redis_takes_no_note(
    r: Any, scrapyd_of_jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes full between the look and the deed."""
    fleet = Fleet(r, {"a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))})
    monkeypatch.setattr(watch_module, "GRACE_S", 0)
    await fleet.want(least=2, most=2, version="v1")
    job, other = await fleet.start(1), await fleet.start(2)
    scrapyd_of_jobs.jobs = [job.id, other.id]
    await fleet.beat(job, other)
    await fleet.round()
    await fleet.silence(job)
    look = await fleet.watch.look()
    assert look.verdicts[job.id].is_over
    await full(r)
    with pytest.raises(RegistryUnavailable):
        await fleet.watch._bury(look, Batch())
    assert not scrapyd_of_jobs.asked and not fleet.freed


async def test_a_watch_that_has_just_begun_and_hears_nobody_waits(
    r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot know whether Redis took heartbeats before; where it hears one, it does."""
    fleet = Fleet(r)
    monkeypatch.setattr(fleet.ledger, "up_s", always_up)
    await fleet.want(least=2, most=2, version="v1")
    jobs = [await fleet.start(1), await fleet.start(2)]
    await fleet.beat(*jobs)
    for job in jobs:
        await fleet.silence(job)
    assert len((await fleet.round()).state.jobs) == 2
    await fleet.beat(jobs[0])
    assert list((await fleet.round()).state.jobs) == [jobs[0].id]


async def always_up() -> float:
    return float("inf")


@pytest.mark.usefixtures("no_grace")
async def test_leases_of_a_silent_stranger_are_freed_once(r: Any) -> None:
    fleet = Fleet(r)
    stranger = Job("x", "a", "v1", 0, 0, worker="host-9-x")
    await fleet.registry.beat(Beat("host-9-x", "host", 9, beat_ms=int(time.time() * 1000)))
    await fleet.round()
    await fleet.silence(stranger)
    await fleet.round()
    await fleet.round()
    assert fleet.freed == [{"host-9-x"}]


@pytest.mark.usefixtures("no_grace")
async def test_too_many_workers_are_asked_to_end_the_youngest_first(r: Any) -> None:
    fleet = Fleet(r)
    await fleet.want(least=1, most=1, version="v1")
    jobs = [await fleet.start(number) for number in (1, 2, 3)]
    await fleet.beat(*jobs)
    await fleet.round()
    assert [await fleet.beat(job) for job in jobs] == ["", DRAIN, DRAIN]
    look = await fleet.round()
    rows = status_of(look)["workers"]
    assert [row["state"] for row in rows] == ["running", "draining", "draining"]
    for job in jobs[1:]:
        await fleet.registry.leave(job.worker)
    state = (await fleet.round()).state
    assert list(state.jobs) == [jobs[0].id]
    assert {ended.how for ended in (await fleet.ledger.read()).ended} == {"ended"}
    assert not fleet.freed, "they gave back their leases themselves"


@pytest.mark.usefixtures("no_grace")
async def test_workers_of_a_drained_node_are_asked_to_end(r: Any) -> None:
    fleet = Fleet(r)
    await fleet.want(least=2, most=2, version="v1")
    here, there = await fleet.start(1), await fleet.start(2, node="b")
    await fleet.beat(here, there)
    await fleet.ledger.drain("b", True)
    await fleet.round()
    assert [await fleet.beat(job) for job in (here, there)] == ["", DRAIN]


@pytest.mark.usefixtures("no_grace")
async def test_a_worker_over_its_memory_is_recycled_one_at_a_time(r: Any) -> None:
    fleet = Fleet(r, worker_memory_bytes=100 * MIB)
    await fleet.want(least=2, most=2, version="v1")
    jobs = [await fleet.start(1), await fleet.start(2)]
    await fleet.beat(*jobs, memory_bytes=100 * MIB)
    for _ in range(watch_module.OVER_ROUNDS + 1):
        await fleet.round()
    assert await fleet.beat(*jobs, memory_bytes=101 * MIB) == "", "the limit itself is allowed"
    for _ in range(watch_module.OVER_ROUNDS - 1):
        await fleet.round()
    assert [await fleet.beat(job, memory_bytes=101 * MIB) for job in jobs] == ["", ""]
    await fleet.round()
    await fleet.round()
    assert [await fleet.beat(job, memory_bytes=101 * MIB) for job in jobs] == [DRAIN, ""]
    job = (await fleet.ledger.read()).jobs[jobs[0].id]
    assert "over the limit of 100 MiB" in job.why


class ScrapydOfJobs(http.server.BaseHTTPRequestHandler):
    """Answers as scrapyd does, of jobs without a process; notes what it is asked to end. It runs
    ``most`` at once, and has the others in its queue."""

    server: Any

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.path.startswith("/logs/"):
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.server.log)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(self.server.log)
            return
        rows = [{"id": job, "spider": "news", "pid": 1} for job in self.server.jobs]
        queue = [{"id": job, "spider": "news"} for job in self.server.pending]
        self._say(
            versions=["v1"],
            pending=queue,
            running=rows,
            finished=[{"id": job} for job in self.server.over],
        )

    def do_POST(self) -> None:
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if self.path == "/schedule.json":
            is_free = len(self.server.jobs) < self.server.most
            (self.server.jobs if is_free else self.server.pending).append(asked["jobid"][0])
            self._say(jobid=asked["jobid"][0])
            return
        [job] = asked["job"]
        self.server.asked.append((job, asked["signal"][0]))
        is_pending = job in self.server.pending
        if is_pending:
            self.server.pending.remove(job)
        self._say(prevstate="pending" if is_pending else "running")

    def _say(self, **answer: Any) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"status": "ok", "node_name": "a", **answer}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def scrapyd_of_jobs() -> Iterator[Any]:
    server: Any = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ScrapydOfJobs)
    server.jobs, server.pending, server.asked, server.most = [], [], [], 99
    server.log, server.over = b"", []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("no_grace")
async def test_a_worker_that_does_not_end_when_asked_is_killed_after_its_time(
    r: Any, scrapyd_of_jobs: Any
) -> None:
    """FLEET_DRAIN_S, and only by a node that can end it: of any other there would be two."""
    limits = limits_of(settings())
    assert limits.drain_s == 120, "docs/fleet.md says so"
    node = Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))
    fleet = Fleet(r, {"a": node}, drain_s=limits.drain_s)
    await fleet.want(least=0, most=0, version="v1")
    now_ms = (await fleet.ledger.read()).now_ms
    for number, ago_s in enumerate((110, 121, 121), 1):
        job = await fleet.start(number, JobState.DRAINING, since_ms=now_ms - 1000 * ago_s)
        await fleet.beat(job)
    scrapyd_of_jobs.jobs = [f"{number:08x}-fleet" for number in (1, 2)]  # not of the third
    await fleet.round()
    state = await fleet.ledger.read()
    assert scrapyd_of_jobs.asked == [("00000002-fleet", "KILL")]
    assert sorted(state.jobs) == ["00000001-fleet", "00000003-fleet"]
    assert fleet.freed == [{"host-2-00000002"}], "what it held is fetched again"
    assert state.ended[0].how == "stuck"
    assert state.ended[0].why == "it did not end within 120 s after it was asked to"


async def beat_all(fleet: Fleet, server: Any) -> None:
    """Of the processes of a node."""
    for job in (await fleet.ledger.read()).jobs.values():
        if job.id in server.jobs:
            job.worker = f"host-{job.id[:8]}"
            await fleet.beat(job)


async def older(fleet: Fleet, seconds: float) -> None:
    """As if all of it had begun so much earlier."""
    state = await fleet.ledger.read()
    batch = Batch()
    for job in state.jobs.values():
        job.started_ms -= round(1000 * seconds)
        batch.put(job)
    assert await fleet.ledger.write(batch)


@pytest.mark.usefixtures("no_grace")
async def test_a_full_node_is_handed_no_more_and_what_it_cannot_run_is_withdrawn(
    r: Any, scrapyd_of_jobs: Any
) -> None:
    scrapyd_of_jobs.most = 2
    fleet = Fleet(r, {"a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))})
    await fleet.want(least=30, most=30, version="v1")
    await fleet.round()
    assert len(scrapyd_of_jobs.jobs) == 2
    assert len(scrapyd_of_jobs.pending) == watch_module.MOST_PENDING - 2
    await beat_all(fleet, scrapyd_of_jobs)
    await fleet.round()
    assert len(scrapyd_of_jobs.pending) == watch_module.MOST_PENDING
    await older(fleet, 30)
    await beat_all(fleet, scrapyd_of_jobs)
    look = await fleet.round()
    assert not scrapyd_of_jobs.pending and len(scrapyd_of_jobs.jobs) == 2
    assert look.unplaced.startswith("28 of 30 workers cannot be placed") and "a 2" in look.unplaced
    assert {one.how for one in look.state.ended} == {"ended"}, "nobody is missed"
    assert not watch_module.waits(look.state.node("a"), look.state)
    await fleet.round()
    assert not scrapyd_of_jobs.pending, "it is known to be full"
    await beat_all(fleet, scrapyd_of_jobs)
    with pytest.raises(FleetRefused, match=r"28 of 30 workers cannot be placed.*scale 2"):
        await Control(fleet.watch, print, 60)._reach(lambda _: False, look.state)


@pytest.mark.usefixtures("no_grace")
async def test_why_a_worker_refused_to_start_is_shown(r: Any, scrapyd_of_jobs: Any) -> None:
    fleet = Fleet(r, {"a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))})
    await fleet.want(least=1, most=1, version="v1")
    await fleet.round()
    scrapyd_of_jobs.log = (
        b"2026-11-23 19:00:00 [newscrawler.commands.crawl] CRITICAL: Start refused reason=sites:"
        b" site nope.example: unknown site; see `scrapy sites list`\n"
    )
    scrapyd_of_jobs.over, scrapyd_of_jobs.jobs = scrapyd_of_jobs.jobs, []
    rows = status_of(await fleet.round())["nodes"]
    shown = str(shown_node(rows[0], "v1")["last_error"])
    reason = "it ended before its first heartbeat: sites: site nope.example: unknown site"
    assert shown.startswith(f"0 s ago: {reason}")


@pytest.mark.usefixtures("no_grace")
async def test_a_worker_that_stayed_up_since_ends_the_crashes_of_its_node(r: Any) -> None:
    """One that was there before says nothing of the next start while more are wanted."""
    fleet = Fleet(r)
    await fleet.want(least=2, most=2, version="v1")
    old = await fleet.start(1)
    await fleet.beat(old)
    now_ms = (await fleet.ledger.read()).now_ms
    node = NodeState("a", crashes=3, crashed_ms=now_ms - 90_000, last_error="no memory")
    await r.hset("{fleet}:nodes", "a", json.dumps(asdict(node)))
    assert (await fleet.round()).state.node("a").crashes == 3
    new = await fleet.start(2, started_ms=now_ms - 70_000)
    await fleet.beat(old, new)
    assert (await fleet.round()).state.node("a").crashes == 0


@pytest.mark.usefixtures("no_grace")
async def test_the_last_error_of_a_node_has_its_age_and_is_forgotten(
    r: Any, scrapyd_of_jobs: Any
) -> None:
    fleet = Fleet(r, {"a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))})
    await fleet.want(least=1, most=1, version="v1")
    old = await fleet.start(1)
    await fleet.beat(old)
    now_ms = (await fleet.ledger.read()).now_ms

    async def shown(ago_s: int, **values: Any) -> str | None:
        at_ms = now_ms - 1000 * ago_s
        node = NodeState("a", last_error="killed", error_ms=at_ms, crashed_ms=at_ms, **values)
        await r.hset("{fleet}:nodes", "a", json.dumps(asdict(node)))
        await fleet.beat(old)
        [row] = status_of(await fleet.round())["nodes"]
        found: str | None = shown_node(row, "v1")["last_error"]
        return found

    assert await shown(50) == "50 s ago: killed"
    assert await shown(90) is None, "a worker has stayed up there for a minute since"
    assert await shown(90, until_ms=now_ms + 60_000) == "2 min ago: killed", "it waits for that"
    assert await shown(50, crashes=2) == "50 s ago: killed"


async def test_a_start_says_anew_with_what_workers_start_and_a_stop_forgets_it(
    r: Any, scrapyd_of_jobs: Any
) -> None:
    fleet = Fleet(r, {"a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))})
    said: list[str] = []
    control = Control(fleet.watch, said.append, 0)

    async def args() -> list[list[str]]:
        return (await fleet.ledger.read()).wanted.args

    first, of_all = ["setting", "CRAWL_FOREVER=True"], ["setting", "X=1"]
    await control.start(1, with_args([["sites", "a.vn"], of_all]))
    await control.scale(Span(2, 2))
    assert await args() == [first, ["sites", "a.vn"], of_all], "scale keeps it"
    await control.start(1, with_args([]))
    assert await args() == [first]
    assert "workers are started without -a sites=a.vn -s X=1 from now on" in said
    await control.start(1, with_args([of_all]))
    await control.stop()
    assert await args() == []
    await control.scale(Span(1, 1))
    assert await args() == [first]


@pytest.mark.usefixtures("no_grace")
async def test_what_is_pending_is_taken_back_when_it_is_not_wanted_any_more(
    r: Any, scrapyd_of_jobs: Any
) -> None:
    scrapyd_of_jobs.most = 0
    fleet = Fleet(r, {"a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}"))})
    await fleet.want(least=3, most=3, version="v1")
    await fleet.round()
    assert len(scrapyd_of_jobs.pending) == 3
    await Control(fleet.watch, print, 60).scale(Span(0, 0))
    assert not scrapyd_of_jobs.pending and not (await fleet.ledger.read()).jobs
    scrapyd_of_jobs.pending = ["99999999-fleet"]  # given up while its node was away
    await fleet.registry.order("99999999-fleet", REPLACED)
    await fleet.round()
    assert not scrapyd_of_jobs.pending


async def test_a_node_whose_scrapyd_is_gone_is_noted_for_the_monitor(
    r: Any, scrapyd_of_jobs: Any
) -> None:
    nodes = {
        "a": Node(Target("a", f"http://127.0.0.1:{scrapyd_of_jobs.server_port}")),
        "b": Node(Target("b", "http://127.0.0.1:1")),
    }
    fleet = Fleet(r, nodes)
    await fleet.round()
    noted = (await fleet.ledger.read()).nodes
    assert noted["a"].away == "" and "connection refused" in noted["b"].away
    del fleet.watch.nodes["b"]  # type: ignore[attr-defined]
    await fleet.round()
    assert (await fleet.ledger.read()).nodes["b"].away == "", "it left scrapy.cfg"


@pytest.mark.usefixtures("no_grace")
async def test_a_restart_ends_one_worker_and_waits_for_the_next(r: Any) -> None:
    fleet = Fleet(r)
    jobs = [await fleet.start(number) for number in (1, 2)]
    await fleet.beat(*jobs)
    await fleet.want(least=2, most=2, version="v2", generation=1)
    look = await fleet.round()
    assert [await fleet.beat(job) for job in jobs] == [DRAIN, ""]
    assert any("0 of 2 done" in text for text in look.messages)
    await fleet.registry.leave(jobs[0].worker)
    for _ in range(3):
        await fleet.round()
    assert await fleet.beat(jobs[1]) == "", "the new one does not run yet"
    new = await fleet.start(3, JobState.STARTING, version="v2", generation=1)
    await fleet.beat(new)
    await fleet.round()
    await fleet.round()
    assert await fleet.beat(jobs[1]) == DRAIN


@pytest.mark.usefixtures("no_grace")
async def test_a_version_that_does_not_come_up_is_rolled_back(r: Any) -> None:
    fleet = Fleet(r)
    good = await fleet.start(1)
    await fleet.want(least=2, most=2, version="v2", previous="v1", generation=1)
    for number in range(2, 2 + watch_module.MOST_FAILED):
        await fleet.beat(good)
        now_ms = (await fleet.ledger.read()).now_ms
        bad = await fleet.start(number, version="v2", generation=1, started_ms=now_ms)
        await fleet.beat(bad)
        await fleet.silence(bad)
        await r.hset("{fleet}:nodes", "a", '{"name": "a"}')
        await fleet.round()
    wanted = (await fleet.ledger.read()).wanted
    assert (wanted.version, wanted.previous) == ("v1", "")
    await fleet.beat(good)
    await fleet.round()
    assert await fleet.beat(good) == "", "who was not replaced yet need not be"


@pytest.mark.usefixtures("no_grace")
async def test_a_job_that_redis_forgot_is_taken_over(r: Any) -> None:
    fleet = Fleet(r)
    await fleet.want(least=1, most=1, version="v1")
    job = await fleet.start(1)
    await r.hdel("{fleet}:jobs", job.id)
    await fleet.beat(job)
    await fleet.beat(Job("by-hand", "a", "v1", 0, 0, worker="host-5-by-hand"))
    look = await fleet.round()
    assert list((await fleet.ledger.read()).jobs) == [job.id], "what is not the fleet's stays so"
    rows = status_of(look)["workers"]
    assert [row["managed"] for row in rows] == [True, False]


@pytest.mark.usefixtures("no_grace")
async def test_more_workers_than_due_domains_is_said(r: Any) -> None:
    fleet = Fleet(r)
    fleet.demand = Demand(queued=9, due_domains=1, rate=0.5)
    await fleet.want(least=2, most=2, version="v1")
    jobs = [await fleet.start(1), await fleet.start(2)]
    await fleet.beat(*jobs)
    look = await fleet.round()
    assert any("2 workers for 1 due domain:" in text for text in look.messages)


@pytest.mark.usefixtures("no_grace")
async def test_between_least_and_most_the_queue_decides(
    r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "DEMAND_S", 0)
    fleet = Fleet(r)
    await fleet.want(least=1, most=4, version="v1")
    for demand, target in (
        (Demand(), 1),
        (Demand(100_000, 500, 110.0), 3),
        (Demand(100_000, 500, 500.0), 4),
        (Demand(100_000, 2, 500.0), 2),
    ):
        fleet.demand = demand
        assert (await fleet.round()).target == target
    jobs = [await fleet.start(number) for number in (1, 2, 3)]
    await fleet.beat(*jobs)
    fleet.demand = Demand()
    assert (await fleet.round()).target == 3, "fewer only when it was calm for a while"
    monkeypatch.setattr(watch_module, "CALM_S", 0)
    assert (await fleet.round()).target == 1


async def test_freed_leases_come_again_to_another_worker(r: Any) -> None:
    dead = await frontier(r, "host-1-dead")
    await dead.add(links(3))
    [lease] = (await dead.step(1)).leases
    assert (await dead.counts()).leased == 1
    side = FrontierSide(r, settings())
    assert await side.free({"host-2-other"}) == 0
    assert await side.free({"host-1-dead"}) == 1
    assert (await dead.counts()).leased == 0
    assert await dead.renew([lease]) == [lease.url_id], "should it wake up, it holds nothing"


async def test_the_demand_is_of_domains_that_may_be_fetched(r: Any) -> None:
    f = await frontier(r, "w", ("a.vn", "b.vn", "c.vn"), floor_ms=500)
    await f.add([*links(3, "a.vn"), *links(5, "b.vn")])
    side = FrontierSide(r, settings())
    assert (await side.demand()).due_domains == 2
    await f.operator.pause("b.vn")
    demand = await side.demand()
    assert (demand.due_domains, demand.rate, demand.queued) == (1, 2.0, 3)


@pytest.mark.parametrize(
    ("crashes", "seconds"), [(0, 0), (1, 0), (2, 5), (3, 10), (7, 160), (8, 300), (99, 300)]
)
def test_crashes_are_followed_by_longer_waits(crashes: int, seconds: float) -> None:
    assert backoff_s(crashes) == seconds


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", ""),
        ("nothing\n2026-11-22 20:07:25 [a] INFO: x\nERROR: in a text\n", ""),
        (
            "2026-11-22 20:07:25 [a] ERROR: first\n2026-11-22 20:07:25 [b] CRITICAL: second: y\n",
            "second: y",
        ),
        (
            "2026-11-22 20:07:25 [a] ERROR: Task failed\nTraceback (most recent call last):\n"
            '  File "x.py"\nRuntimeError: no reason\n2026-11-22 20:07:25 [a] INFO: ends\n{}\n',
            "Task failed: RuntimeError: no reason",
        ),
    ],
)
def test_the_last_error_of_a_log(log: str, said: str) -> None:
    assert last_error(log) == said


@pytest.mark.usefixtures("no_grace")
async def test_the_headline_says_who_watches_and_what_is_newer(r: Any) -> None:
    fleet = Fleet(r)
    await fleet.want(least=1, most=3, version="v1", deployed="v2")
    job = await fleet.start(1)
    await fleet.beat(job)
    await fleet.round()
    found = status_of(await fleet.watch.look())
    text = headline(found["fleet"])
    assert "1 of 1 (1 to 3) workers run version v1" in text and "v2 is deployed" in text
    assert text.endswith("watched by watch")
    assert found["fleet"]["versions"] == {"v1": 1}


@pytest.mark.usefixtures("no_grace")
async def test_a_mix_of_versions_is_told_with_what_ends_it(
    r: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = Fleet(r)
    await fleet.want(least=2, most=2, version="v1")
    one, two = await fleet.start(1), await fleet.start(2)
    await fleet.beat(one, two)
    await fleet.round()
    assert show_versions(await fleet.watch.look(), as_json=False) == 0
    await fleet.beat(two, version="v2")
    assert show_versions(await fleet.watch.look(), as_json=False) == 1
    assert "different versions: `scrapy fleet restart`" in capsys.readouterr().err
    await fleet.beat(two)
    now_ms = int(time.time() * 1000)
    await fleet.registry.beat(Beat("by-hand", "h", 7, job="x", beat_ms=now_ms, version="v0"))
    assert show_versions(await fleet.watch.look(), as_json=False) == 1
    said = capsys.readouterr().err
    assert "worker by-hand on h runs version v0 and is not of the fleet: end it" in said
    assert "restart" not in said, "which does not reach it"


async def test_back_off_ends_when_the_operator_speaks(r: Any) -> None:
    fleet = Fleet(r)
    await fleet.want(least=1, most=1, version="v1")
    state = await fleet.ledger.read()
    node = NodeState("a", crashes=4, crashed_ms=state.now_ms, until_ms=state.now_ms + 60_000)
    assert watch_module.waits(node, state)
    state.wanted.asked_ms = state.now_ms + 1
    assert not watch_module.waits(node, state)


@pytest.mark.usefixtures("no_grace")
async def test_a_worker_that_beats_and_does_nothing_is_asked_to_end_before_another_starts(
    r: Any,
) -> None:
    """Its node cannot end it (here it is gone): what it holds is freed when it has ended."""
    fleet = Fleet(r, stuck=Patience(turn_s=10, visit_s=100))
    await fleet.want(least=2, most=2, version="v1")
    live, hung = await fleet.start(1), await fleet.start(2)
    await fleet.beat(live, turn_s=0.5)
    now_ms = int(time.time() * 1000)
    assert await fleet.beat(hung, turn_s=11.0, beat_ms=now_ms) == ""
    for _ in range(3):
        await fleet.round()
    assert await fleet.beat(hung, turn_s=13.0, beat_ms=now_ms + 2000) == "", "one heartbeat says it"
    await fleet.round()
    assert await fleet.beat(hung, turn_s=15.0, beat_ms=now_ms + 4000) == REPLACED
    look = await fleet.round()
    assert len(look.state.jobs) == 2 and not fleet.freed, "its process is there still"
    assert [row["state"] for row in status_of(look)["workers"]] == ["running", "draining"]
    await fleet.registry.leave(hung.worker)
    await fleet.round()
    state = await fleet.ledger.read()
    assert list(state.jobs) == [live.id] and fleet.freed == [{hung.worker}]
    assert state.ended[0].how == "stuck"
    assert state.ended[0].why == "it beats, but its lease loop stands still for 13 s"


@pytest.mark.usefixtures("no_grace")
async def test_a_worker_whose_own_store_hangs_is_replaced_on_its_node(r: Any) -> None:
    fleet = Fleet(r, stuck=Patience(turn_s=10, visit_s=100))
    await fleet.want(least=2, most=2, version="v1")
    hung, live = await fleet.start(1), await fleet.start(2)
    now_ms = int(time.time() * 1000)
    for number in range(watch_module.WAITING_LOOKS):
        await fleet.beat(live, ended_s=1.0)
        waits = {"waits_s": 200.0, "waits_for": "waiting for the article store (200 s)"}
        await fleet.beat(hung, beat_ms=now_ms + number, **waits)
        await fleet.round()
    await fleet.registry.leave(hung.worker)
    await fleet.round()
    state = await fleet.ledger.read()
    assert list(state.jobs) == [live.id]
    assert "the article store (200 s), which 1 others need not" in state.ended[0].why
    assert not watch_module.waits(state.node("a"), state), "another one would fare better there"


@pytest.mark.usefixtures("no_grace")
async def test_a_node_whose_store_is_away_gets_no_workers_for_a_while(r: Any) -> None:
    fleet = Fleet(r, stuck=Patience(turn_s=10, visit_s=100))
    await fleet.want(least=2, most=2, version="v1")
    away, live = await fleet.start(1), await fleet.start(2, node="b")
    now_ms = int(time.time() * 1000)
    for number in range(watch_module.WAITING_LOOKS):
        await fleet.beat(live, node="b", ended_s=1.0)
        waits = {"waits_s": 200.0, "waits_for": "waiting for the article store (200 s): disk full"}
        await fleet.beat(away, beat_ms=now_ms + number, **waits)
        rows = [shown_worker(row) for row in status_of(await fleet.round())["workers"]]
        assert rows[0]["last_error"].startswith("waiting for the article store (200 s)")
    await fleet.registry.leave(away.worker)
    look = await fleet.round()
    state = await fleet.ledger.read()
    assert list(state.jobs) == [live.id]
    assert "disk full, which 1 others need not" in state.ended[0].why
    assert watch_module.waits(state.node("a"), state) and not watch_module.waits(
        state.node("b"), state
    )
    text = watch_module.crash_text(state.node("a"), look.state.now_ms)
    assert text.startswith("node a gets no workers for") and "disk full" in text


@pytest.mark.usefixtures("no_grace")
async def test_who_tries_a_store_that_is_back_later_than_a_fellow_is_let_alone(r: Any) -> None:
    """It was away for both; one of them waits for the rest of its pause, or for a lock."""
    fleet = Fleet(r, stuck=Patience(turn_s=10, visit_s=20))
    await fleet.want(least=2, most=2, version="v1")
    late, early = await fleet.start(1), await fleet.start(2, node="b")
    now_ms = int(time.time() * 1000)
    for second in range(0, 22, 2):  # a beat each two seconds: a pause of 10 s, a lock of 10 s
        await fleet.beat(early, node="b", ended_s=1.0)
        waits = {"waits_s": 50.0 + second, "waits_for": "waiting for the article store: locked"}
        order = await fleet.beat(late, beat_ms=now_ms + 1000 * second, **waits)
        assert order == "", f"given up after {second} s"
        await fleet.round()
    state = await fleet.ledger.read()
    assert sorted(state.jobs) == sorted([late.id, early.id]) and not state.ended
    assert not watch_module.waits(state.node("a"), state)
