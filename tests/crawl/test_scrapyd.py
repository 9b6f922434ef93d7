"""A fleet on real scrapyds: deploy on all or none, workers on one queue that are replaced when they
die, and the refusal to crawl from a queue of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy.settings import Settings

from newscrawler.crawl import fleet, fleet_control
from newscrawler.crawl.fleet_control import Control, FleetRefused
from newscrawler.fleet import deploy, status
from newscrawler.fleet.ledger import LEADER, JobState
from newscrawler.fleet.nodes import Node, Target
from newscrawler.fleet.registry import BEAT_TTL_S
from newscrawler.fleet.watch import Look
from newscrawler.frontier import connect
from tests.crawl import chaos
from tests.crawl.harness import TEST_SETTINGS, until
from tests.crawl.small import QUICK, QUIET, complaints, expected, stored
from tests.fixtures_scrapyd import BIN, PROJECT, Scrapyd, checkout, clean_env
from tests.fixtures_webhook import Receiver
from tests.patience import patient

pytestmark = pytest.mark.slow

#: What README and docs/fleet.md promise, seconds: until a worker that died, or fell silent, is found
#: so; until another one works in its place; until another watch leads.
FOUND_S, REPLACED_S, LED_S = 10, 20, 10


@dataclass
class Cluster:
    """Nodes, their Redis, and a checkout from which they are commanded."""

    redis: chaos.RedisServer
    nodes: dict[str, Scrapyd]
    folder: Path
    watches: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return clean_env(REDIS_URL=self.redis.url)

    def scrapy(self, *args: str) -> subprocess.CompletedProcess[str]:
        """`scrapy fleet ...` in the checkout."""
        return subprocess.run(
            [str(BIN / "scrapy"), "fleet", *args],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=900,
        )

    def watch(self, *args: str) -> subprocess.Popen[bytes]:
        return self._serve("fleet", "watch", *args)

    def monitor(self, *args: str) -> subprocess.Popen[bytes]:
        """As a service that looks each second."""
        return self._serve("monitor", "--every", "1", *args)

    def _serve(self, *command: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"watch-{len(self.watches)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [str(BIN / "scrapy"), *command],
                cwd=self.folder,
                env=self.env,
                stdout=log,
                stderr=log,
            )
        self.watches.append(process)
        return process

    def texts(self) -> str:
        logs = sorted(self.folder.glob("watch-*.log"))
        parts = [f"{path.name}: {path.read_text(errors='replace')[-3000:]}" for path in logs]
        parts += [node.text()[-1500:] for node in self.nodes.values()]
        return "\n".join(parts)

    def settings(self, **more: Any) -> Settings:
        settings = Settings()
        settings.setmodule("newscrawler.settings", priority="project")
        settings.setdict({"REDIS_URL": self.redis.url, **more}, priority="cmdline")
        return settings

    def look(self) -> Look:
        """As `scrapy fleet status` looks."""

        async def run() -> Look:
            targets = {name: Node(Target(name, n.url[:-1])) for name, n in self.nodes.items()}
            async with fleet.open_watch(self.settings(), targets) as watch:
                return await watch.look()

        return asyncio.run(run())

    def status(self) -> dict[str, Any]:
        return status.status_of(self.look())

    def running(self) -> list[dict[str, Any]]:
        return [row for row in self.status()["workers"] if row["state"] == "running"]

    def processes(self) -> dict[int, str]:
        """Workers that are there, whoever knows of them: pids of their main processes -> jobs."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes().split(b"\0")
                environ = (path / "environ").read_bytes()
                mine = f"REDIS_URL={self.redis.url}".encode() in environ.split(b"\0")
                if mine and b"scrapyd.runner" in words and b"crawl" in words:
                    job = next((word[5:] for word in words if word.startswith(b"_job=")), b"")
                    found[int(path.name)] = job.decode()
        return found

    def kill_leader(self) -> float:
        """And waits until the one that stood by leads.

        :returns: seconds that it took
        """
        until(lambda: "stands by" in self.texts(), "a watch to stand by", timeout=120)
        leader = self.look().state.leader
        with redis.Redis.from_url(self.redis.url, decode_responses=True) as client:
            next(watch for watch in self.watches if f"-{watch.pid}-" in leader).kill()
            began = time.monotonic()

            def is_led() -> bool:
                return leader not in (client.get(LEADER) or leader)

            until(is_led, "the other watch to take over", timeout=240)
        took_s = time.monotonic() - began
        assert took_s <= patient(LED_S), f"another watch led after {took_s:.1f} s"
        return took_s

    def clear(self) -> None:
        for watch in self.watches:
            watch.kill()
            watch.wait(10)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.watches.clear()

        async def flush() -> None:
            client: Any = connect(self.redis.url, single=False)
            await client.flushall()
            await client.aclose()

        asyncio.run(flush())


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes that got the egg as an operator would give it: once, it takes seconds of CPU."""
    folder = tmp_path_factory.mktemp("fleet")
    redis = chaos.RedisServer(folder / "redis")
    nodes: dict[str, Scrapyd] = {}
    try:
        for name in ("a", "b"):
            nodes[name] = Scrapyd(folder / name, {"REDIS_URL": redis.url})
        source = checkout(folder / "source", {name: node.url for name, node in nodes.items()})
        cluster = Cluster(redis, nodes, source)
        done = cluster.scrapy("deploy", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout)["nodes"] == ["a", "b"]
        assert nodes["b"].get("listspiders.json", project=PROJECT)["spiders"] == ["news"]
        yield cluster
        cluster.clear()
    finally:
        for node in nodes.values():
            node.stop()
        redis.stop()


@pytest.fixture
def cluster(deployed: Cluster) -> Iterator[Cluster]:
    """With a queue of the test's own; the eggs stay."""
    deployed.clear()
    yield deployed
    deployed.clear()


def of_web(web: Any, data: Path, **more: Any) -> list[str]:
    """-s options of workers that crawl a simulated web."""
    settings = {
        **TEST_SETTINGS,
        **QUICK,
        "DATA_DIR": data,
        "SITES_FILE": web.sites_file,
        "SELECTORS_DIR": web.selectors_dir,
        **more,
    }
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


class Watched:
    """What is looked at while things are killed: no look may show a dead worker as running for more
    than 15 seconds, and there are never more processes than workers were asked for."""

    def __init__(self, cluster: Cluster, workers: int) -> None:
        self.cluster = cluster
        self.workers = workers
        self.killed: dict[int, float] = {}
        self.lost = 0  # how many were killed or stopped
        self.longest_s = 0.0  # that a dead worker was shown as running
        self.healed_s: dict[str, list[float]] = {}  # what was waited for -> how long it took

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        os.kill(pid, number)
        self.killed[pid] = time.time()
        self.lost += 1

    def wake(self, pid: int) -> None:
        """It was stopped and lives again, if its scrapyd has not ended it: until it has heard that
        another one works in its place there is one more."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        del self.killed[pid]

    def running(self) -> list[dict[str, Any]]:
        there = self.cluster.processes()  # first: what is given up now may still be there
        began = time.time()
        look = self.cluster.look()
        rows = [row for row in status.worker_rows(look) if row["state"] == "running"]
        for row in rows:
            dead_s = began - self.killed.get(row["pid"], began)
            self.longest_s = max(self.longest_s, dead_s)
            assert dead_s <= 15, f"shown as running {dead_s:.0f} s after its death: {row}"
        given_up = {ended.id for ended in look.state.ended}
        left = {job for pid, job in there.items() if pid not in self.killed} - given_up
        assert len(left) <= self.workers, f"{len(left)} workers: {left}"
        return rows

    def until_healed(self, what: str, every_s: float = 1) -> list[dict[str, Any]]:
        """As many run as are wanted, none of them one that was killed."""

        def healed() -> list[dict[str, Any]]:
            rows = self.running()
            fresh = [row for row in rows if row["pid"] not in self.killed]
            return rows if len(fresh) == len(rows) == self.workers else []

        began = time.monotonic()
        try:
            # A worker's start is seconds of CPU: minutes where ten others want each core.
            rows = list(until(healed, what, timeout=300, every_s=every_s))
            self.healed_s.setdefault(what, []).append(round(time.monotonic() - began, 1))
            return rows
        except AssertionError as exc:
            raise AssertionError(f"{exc}\n{self.cluster.texts()}") from None

    def in_time(self, lost: dict[str, Any], what: str) -> None:
        """After :meth:`until_healed`: the promised times, from the death of this worker until the
        watch noted it, and until it heard of another one that was started since."""
        death = self.killed[lost["pid"]]
        ended = self.cluster.look().state.ended
        over = next(one for one in ended if one.id == lost["job"])

        def ups() -> list[int]:
            jobs = self.cluster.look().state.jobs.values()
            fresh = [job for job in jobs if job.started_ms >= over.at_ms]
            return [job.since_ms for job in fresh if job.state is JobState.RUNNING]

        up_ms = min(until(ups, "the watch to note who works in its place", timeout=30))
        found_s, up_s = over.at_ms / 1000 - death, up_ms / 1000 - death
        self.healed_s.setdefault(f"{what}: found, replaced", []).extend(
            (round(found_s, 1), round(up_s, 1))
        )
        assert 0 <= found_s <= patient(FOUND_S), f"{what}: found after {found_s:.1f} s: {over}"
        assert found_s <= up_s <= patient(REPLACED_S), f"{what}: replaced after {up_s:.1f} s"

    def figures(self) -> str:
        lines = [f"{what}: {seconds} s" for what, seconds in self.healed_s.items()]
        most = f"a dead worker was shown as running for {self.longest_s:.1f} s at most"
        return "\n".join([*lines, f"{self.lost} workers killed or stopped; {most}"])


def resident_bytes(pid: int) -> int:
    """Of a worker and the processes that work for it, by the system."""
    family = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in family]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def check_rows(cluster: Cluster, rows: list[dict[str, Any]]) -> None:
    """What `status` says of workers that run, against what the system and scrapyd know of them."""
    there = cluster.processes()
    for row in rows:
        node = cluster.nodes[row["node"]]
        listed = node.get("listjobs.json", project=PROJECT)["running"]
        assert there[row["pid"]] == row["job"]
        assert {job["id"]: job["pid"] for job in listed}[row["job"]] == row["pid"]
        assert row["version"] in node.get("listversions.json", project=PROJECT)["versions"]
        assert row["host"] == socket.gethostname()
        assert 0.4 < row["memory_bytes"] / resident_bytes(row["pid"]) < 2.5, row
        assert 0 <= row["cpu_percent"] <= 110 * (os.cpu_count() or 1), row
        assert row["beat_s"] <= BEAT_TTL_S and row["leases"] >= 0
    assert any(row["cpu_percent"] > 0 for row in rows)


DELAY_S = 0.3


@pytest.mark.timeout(300)
def test_a_killed_worker_is_found_and_replaced_in_time(
    cluster: Cluster, newsweb: Any, tmp_path: Path
) -> None:
    """The short form of the fleet's proofs below."""
    web = newsweb("ip", **{**QUIET, "sites": 3, "articles": 12, "delay": 0.1})
    options = of_web(web, tmp_path / "data", DOWNLOAD_DELAY=0.1)
    cluster.watch(*options)
    done = cluster.scrapy("start", "2", *options)
    assert done.returncode == 0, done.stdout + done.stderr + cluster.texts()
    seen = Watched(cluster, 2)
    workers = seen.until_healed("two workers to run", every_s=0.2)
    check_rows(cluster, workers)
    seen.kill(workers[0]["pid"])
    seen.until_healed("a worker that was killed to be replaced", every_s=0.2)
    seen.in_time(workers[0], "a worker killed")
    print(seen.figures())
    finish(cluster, web, tmp_path / "data")


@pytest.mark.timeout(900)
@pytest.mark.long
def test_a_fleet_heals_and_stores_the_web_once(
    cluster: Cluster, newsweb: Any, tmp_path: Path
) -> None:
    """A worker, a scrapyd, Redis and the watch that leads are killed in turn, and a worker hangs."""
    web = newsweb("ip", **{**QUIET, "sites": 4, "articles": 12, "delay": DELAY_S})
    options = of_web(web, tmp_path / "data", DOWNLOAD_DELAY=DELAY_S)
    for _ in range(2):
        cluster.watch(*options)
    until(lambda: cluster.look().state.leader, "a watch to lead", timeout=60, every_s=0.3)
    done = cluster.scrapy("start", "2", *options)
    assert done.returncode == 0, done.stdout + done.stderr + cluster.texts()
    seen = Watched(cluster, 2)
    workers = seen.until_healed("two workers to run")
    assert all(row["job"].endswith("-fleet") and row["version"] for row in workers)

    victim = workers[0]
    seen.kill(victim["pid"])
    workers = seen.until_healed("a worker that was killed to be replaced")
    seen.in_time(victim, "a worker killed")

    victim = workers[0]
    node = cluster.nodes[victim["node"]]
    node.kill()
    node.start()
    workers = seen.until_healed("scrapyd to be back")
    ended = cluster.look().state.ended
    # Its workers live on, though it does not know them any more. On a machine that is very busy
    # one may be late with its heartbeat.
    assert all(one.why.startswith("no heartbeat") for one in ended[:-1]), ended
    if victim["pid"] in pids(workers):  # nobody tells of its death: its heartbeat runs out
        seen.kill(victim["pid"])
        workers = seen.until_healed("a worker that its scrapyd does not know to be replaced")
        seen.in_time(victim, "a worker killed that its scrapyd does not know")

    cluster.redis.kill()
    cluster.redis.start()
    workers = seen.until_healed("Redis to be back")

    print(f"another watch led after {cluster.kill_leader():.1f} s")
    seen.kill(workers[0]["pid"], signal.SIGSTOP)  # stuck: its process is there and says nothing
    seen.until_healed("a stuck worker to be replaced by the new leader")
    seen.in_time(workers[0], "a worker stopped")
    print(seen.figures())
    # Killed by its scrapyd; one that this does not know any more hears of it when it wakes up.
    with contextlib.suppress(ProcessLookupError):
        os.kill(workers[0]["pid"], signal.SIGCONT)
    gone = set(seen.killed)
    until(lambda: not gone & set(cluster.processes()), "the stuck process to end", timeout=90)
    finish(cluster, web, tmp_path / "data")


def pids(rows: list[dict[str, Any]]) -> set[int]:
    return {row["pid"] for row in rows}


def finish(cluster: Cluster, web: Any, data: Path) -> None:
    """The web is crawled to its end, the workers are stopped, and all is judged."""
    assert len(expected(web)) > 20
    until(
        # By the judge: a copy on another site may be due only tomorrow.
        lambda: complaints(web, stored(data)) == [],
        f"all articles to be stored\n{cluster.texts()}",
        timeout=300,
        every_s=1,
    )
    done = cluster.scrapy("stop")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not cluster.look().state.jobs
    until(lambda: not cluster.processes(), "the workers to end", timeout=60)
    assert complaints(web, stored(data)) == []
    assert chaos.too_soon(web.hits(), web.truth(), QUICK["BACKOFF_START_S"]) == [], (
        "politeness of the whole fleet"
    )


@pytest.mark.long
def test_a_worker_that_does_not_come_up_is_tried_ever_more_rarely(
    cluster: Cluster, scrapyd: Any, newsweb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a node that has the egg and no REDIS_URL: each worker would crawl from a queue of its own,
    so it refuses, and says why where the operator looks."""
    monkeypatch.setattr(fleet_control, "MOST_CRASHES", 2)  # each start is seconds of CPU
    web = newsweb("ip", sites=1, articles=3, rate=0, faults="none")
    node = scrapyd(cluster.nodes["a"].folder / "eggs")
    args = [["setting", text] for text in of_web(web, tmp_path / "data")[1::2]]
    said: list[str] = []

    async def run() -> Look:
        poor = {"poor": Node(Target("poor", node.url[:-1]))}
        async with fleet.open_watch(cluster.settings(), poor) as watch:
            with pytest.raises(FleetRefused, match="no worker stays up") as refused:
                await Control(watch, said.append, wait_s=150).start(1, args)
            assert "2 workers in a row ended within" in str(refused.value)
            return await watch.round()

    look = asyncio.run(run())
    told = [text for text in said if "not started" in text]
    assert len(told) == 2 and any("REDIS_URL is not set" in text for text in told), said
    assert any("2 workers in a row ended within" in text for text in look.messages)
    assert not look.state.jobs and look.state.ended[0].how == "not started"
    assert "REDIS_URL is not set" in node.text(), "in scrapyd's own log as well"
    assert not (tmp_path / "data" / "redis").exists(), "no queue of its own was made"
    assert not web.hits()


def test_a_deploy_is_on_all_nodes_or_on_none(
    cluster: Cluster, scrapyd: Any, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "selectolax.py").write_text("raise ImportError('selectolax is not installed')")
    poor = scrapyd(PYTHONPATH=str(broken), REDIS_URL=cluster.redis.url)
    nodes = [Node(Target("a", cluster.nodes["a"].url[:-1]))]
    third = Node(Target("poor", poor.url[:-1]))
    gone = Node(Target("gone", "http://127.0.0.1:1"))
    before = [node.versions() for node in nodes]
    egg = next((cluster.nodes["a"].folder / "eggs" / PROJECT).glob("*.egg")).read_bytes()
    said: list[str] = []
    with pytest.raises(deploy.DeployFailed, match="selectolax is not installed") as failed:
        deploy.deploy([*nodes, third], egg, "v2", (), said.append)
    assert "1 of 2 nodes" in str(failed.value) and not failed.value.left
    assert sum("has version v2" in text for text in said) == 1, "one had it already"
    assert [node.versions() for node in nodes] == before and third.versions() == []
    with pytest.raises(deploy.DeployFailed, match=r"gone .*Nothing was changed"):
        deploy.deploy([*nodes, gone], egg, "v2", (), said.append)
    with pytest.raises(deploy.DeployFailed, match="no egg"):
        deploy.version_of(b"PK", datetime.now(UTC))
    assert [node.versions() for node in nodes] == before
    version = deploy.version_of(egg, datetime.now(UTC))
    assert version.endswith(before[0][0][-9:]), "the same code has the same ending"


def test_a_node_without_the_version_is_refused(cluster: Cluster, scrapyd: Any) -> None:
    bare = scrapyd(REDIS_URL=cluster.redis.url)
    targets = {"a": cluster.nodes["a"].url[:-1], "bare": bare.url[:-1]}

    async def run() -> None:
        nodes = {name: Node(Target(name, url)) for name, url in targets.items()}
        async with fleet.open_watch(cluster.settings(), nodes) as watch:
            with pytest.raises(FleetRefused, match="node bare has no egg of version"):
                await Control(watch, print, wait_s=60).start(1, [])

    asyncio.run(run())
    assert not cluster.look().state.jobs
    assert not cluster.processes()


def test_egg_carries_what_is_read_at_run_time(deployed: Cluster) -> None:
    egg = next((deployed.nodes["a"].folder / "eggs" / PROJECT).glob("*.egg"))
    names = set(zipfile.ZipFile(egg).namelist())
    root = Path(__file__).resolve().parents[2]
    package = root / "newscrawler"
    for pattern in (
        "**/*.lua",
        "**/prompts/*",
        "**/templates/*.html",
        "**/reports/*.html",
        "**/static/*",
        "**/*.schema.json",
        "**/lexicon/*.json",
    ):
        for path in package.glob(pattern):
            if path.is_file():
                assert f"newscrawler/{path.relative_to(package).as_posix()}" in names, path.name
    shipped = {
        f"newscrawler/_shipped/selectors/{p.name}" for p in (root / "selectors").glob("*.json")
    }
    assert shipped <= names and "newscrawler/_shipped/sites.json" in names
    assert not [n for n in names if n.startswith(("tests/", "evaluation/"))]


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_three_nodes_and_six_workers_heal_again_and_again(
    cluster: Cluster, scrapyd: Any, newsweb: Any, webhook: Receiver, tmp_path: Path
) -> None:
    """The long form: in each round a worker, a scrapyd, the watch that leads and Redis are killed,
    and a worker hangs; then a version that does not run is rolled back, and one that does is changed
    to, while the crawl goes on. A monitor tells of the dead workers, of the scrapyd and of Redis, and
    when it is over; a watch that leads after another one is no trouble."""
    third = scrapyd(cluster.nodes["a"].folder / "eggs", REDIS_URL=cluster.redis.url)
    three = Cluster(cluster.redis, {**cluster.nodes, "c": third}, tmp_path / "source")
    checkout(three.folder, {name: node.url for name, node in three.nodes.items()})
    web = newsweb("ip", **{**QUIET, "sites": 8, "articles": 45, "delay": DELAY_S})
    # Six workers that start at once on a busy machine: minutes, and not what is judged here.
    options = of_web(web, tmp_path / "data", DOWNLOAD_DELAY=DELAY_S, FLEET_START_S=900)
    chance = random.Random(seed := random.randrange(1_000_000))
    print(f"seed of the victims: {seed}")
    try:
        three.watch(*options)
        three.monitor(*options, "-s", f"ALERT_WEBHOOK_URL={webhook.url}")
        egg = tmp_path / "good.egg"
        egg.write_bytes(egg_of(cluster).read_bytes())
        until(
            lambda: three.scrapy("deploy", "--egg", str(egg)).returncode == 0,
            "a deploy on three nodes, which may be slow to answer on a busy machine",
            timeout=240,
        )
        done = three.scrapy("start", "6", "--wait=600", *options)
        assert done.returncode == 0, done.stdout + done.stderr + three.texts()
        seen = Watched(three, 6)
        began, victims = time.monotonic(), list[str]()
        for number in range(2):
            victims += everything_dies(three, seen, webhook, chance, options)
            print(f"round {number + 1} healed after {time.monotonic() - began:.0f} s")
            print(seen.figures(), flush=True)
        change_version(three, egg)
        seen.until_healed("six workers after the restart")
        finish(three, web, tmp_path / "data")
        for victim in victims:
            until_told(webhook, "recovered", f"worker_gone/{victim}", timeout=180)
        print(f"{len(stored(tmp_path / 'data'))} articles; {seen.figures()}")
        print(f"alerts raised: {sorted(set(told(webhook, 'raised')))}")
    finally:
        three.clear()


def everything_dies(
    cluster: Cluster, seen: Watched, webhook: Receiver, chance: random.Random, options: list[str]
) -> list[str]:
    """A worker, a scrapyd, the watch that leads, a worker that hangs, Redis: one after the other is
    healed, and told.

    :returns: the ids of the workers that were lost
    """
    workers = seen.until_healed("six workers to run")
    victim = chance.choice(workers)
    seen.kill(victim["pid"])
    workers = seen.until_healed("a killed worker to be replaced")
    seen.in_time(victim, "a worker killed")
    until_told(webhook, "raised", f"worker_gone/{victim['worker']}")
    name = chance.choice(workers)["node"]
    times = told(webhook, "raised").count(f"node_gone/{name}")
    cluster.nodes[name].kill()
    until_told(webhook, "raised", f"node_gone/{name}", times + 1)
    cluster.nodes[name].start()
    cluster.watch(*options)  # as a service is started anew
    seen.until_healed("a scrapyd to be back")
    until_told(webhook, "recovered", f"node_gone/{name}", times + 1)
    led_s = cluster.kill_leader()
    seen.healed_s.setdefault("another watch to lead", []).append(round(led_s, 1))
    workers = seen.until_healed("six workers under another watch")
    hung = chance.choice(workers)
    seen.kill(hung["pid"], signal.SIGSTOP)
    seen.until_healed("a stuck worker to be replaced")
    seen.in_time(hung, "a worker stopped")
    until_told(webhook, "raised", f"worker_gone/{hung['worker']}")
    seen.wake(hung["pid"])  # just before Redis dies, which has to tell it that it is over
    times = told(webhook, "raised").count("away/redis")
    cluster.redis.kill()
    until_told(webhook, "raised", "away/redis", times + 1)
    cluster.redis.start()
    until_told(webhook, "recovered", "away/redis", times + 1)
    seen.until_healed("Redis to be back")
    return [victim["worker"], hung["worker"]]


def told(webhook: Receiver, event: str) -> list[str]:
    return [
        f"{alert['kind']}/{one['subject']}"
        for alert in list(webhook.alerts)
        if alert["event"] == f"fleet.{event}"
        for one in alert["incidents"]
    ]


def until_told(
    webhook: Receiver, event: str, what: str, times: int = 1, timeout: float = 90
) -> None:
    until(
        lambda: told(webhook, event).count(what) >= times,
        f"{what} to be told as {event}: {told(webhook, event)}",
        timeout=timeout,
    )


def egg_of(cluster: Cluster) -> Path:
    return next((cluster.nodes["a"].folder / "eggs" / PROJECT).glob("*.egg"))


def bad_egg_of(egg: Path) -> Path:
    """One that takes every deploy, as its spider can be listed, and ends at each start."""
    bad = egg.with_name("bad.egg")
    with zipfile.ZipFile(egg) as good, zipfile.ZipFile(bad, "w") as made:
        for name in good.namelist():
            body = good.read(name)
            if name == "newscrawler/scheduler.py":
                body = b"raise RuntimeError('this version crawls nothing')\n"
            if "scheduler" not in name or name.endswith(".py"):
                made.writestr(name, body)
    return bad


def change_version(cluster: Cluster, egg: Path) -> None:
    """One that refuses every start is rolled back; the one after it is changed to."""
    version = cluster.look().state.wanted.version
    bad = bad_egg_of(egg)
    done = cluster.scrapy(
        "deploy", "--egg", str(bad), "--version", "bad", "--restart", "--wait=600"
    )
    assert done.returncode == 1 and f"the fleet is back at {version}" in done.stderr, done.stderr
    assert cluster.look().state.wanted.version == version
    done = cluster.scrapy(
        "deploy", "--egg", str(egg), "--version", "good", "--restart", "--wait=600"
    )
    assert done.returncode == 0, done.stdout + done.stderr + cluster.texts()
    rows = cluster.running()
    assert {row["version"] for row in rows} == {"good"} and len(rows) == 6
