"""What an operator types for a fleet that runs, on two real scrapyds: scale, drain, logs, version,
restart; and what refuses two versions on one queue."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import connect
from newscrawler.frontier.queue import Frontier, FrontierConfig
from tests.crawl.harness import until
from tests.crawl.small import QUIET
from tests.crawl.test_scrapyd import (
    Cluster,
    bad_egg_of,
    check_rows,
    deployed,  # noqa: F401  # a fixture
    egg_of,
    of_web,
)
from tests.fixtures_scrapyd import BIN

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def cluster(deployed: Cluster) -> Iterator[Cluster]:  # noqa: F811  # a fixture
    deployed.clear()
    yield deployed
    deployed.clear()


@pytest.fixture
def options(newsweb: Any, tmp_path: Path) -> list[str]:
    """Of workers whose queue lasts longer than the test."""
    web = newsweb("ip", **{**QUIET, "sites": 3, "articles": 200, "delay": 0.5})
    return of_web(web, tmp_path / "data", DOWNLOAD_DELAY=0.5)


def done(cluster: Cluster, *args: str) -> dict[str, Any]:
    """What a verb printed as JSON; it was reached."""
    ended = cluster.scrapy(*args, "--wait=600", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr + cluster.texts()
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def refused(cluster: Cluster, *args: str) -> str:
    """What was said of a verb that was not done."""
    ended = cluster.scrapy(*args, "--wait=600")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def jobs(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Of the workers that run, when their processes are as many: those that end sign off a moment
    before, and what takes the place of a drained one starts after the command."""

    def both() -> dict[str, dict[str, Any]] | None:
        rows = {row["job"]: row for row in cluster.running()}
        there = set(cluster.processes().values())
        return (
            rows if set(rows) == there and len(rows) == cluster.look().state.wanted.most else None
        )

    found: dict[str, dict[str, Any]] = until(
        lambda: both(),
        f"rows and processes to agree: {cluster.processes()}",
        timeout=90,
        every_s=0.5,
    )
    return found


def test_an_operator_scales_reads_logs_drains_and_restarts(
    cluster: Cluster, options: list[str]
) -> None:
    done(cluster, "start", "1", *options)
    [first] = jobs(cluster)
    assert done(cluster, "scale", "3")["running"] == 3
    three = jobs(cluster)
    assert len(three) == 3 and first in three, "two more, and the one that ran goes on"
    assert {row["node"] for row in three.values()} == {"a", "b"}
    said = done(cluster, "scale", "2")
    assert (said["running"], said["least"], said["most"]) == (2, 2, 2)
    two = jobs(cluster)
    assert len(two) == 2 and set(two) < set(three), "one has ended, nobody was started"

    for job, row in two.items():
        read_logs(cluster, row["node"], job)

    done(cluster, "drain", "a")
    moved = jobs(cluster)
    assert {row["node"] for row in moved.values()} == {"b"} and len(moved) == 2
    states = {row["node"]: row["state"] for row in cluster.status()["nodes"]}
    assert states == {"a": "drained", "b": "up"}
    assert done(cluster, "scale", "3")["running"] == 3
    assert {row["node"] for row in jobs(cluster).values()} == {"b"}, "a drained node gets none"
    done(cluster, "drain", "a", "--undo")
    assert {row["state"] for row in cluster.status()["nodes"]} == {"up"}

    before = jobs(cluster)
    said = done(cluster, "restart")
    after = jobs(cluster)
    assert len(after) == 3 == said["running"] and not set(before) & set(after)
    assert {row["version"] for row in after.values()} == {said["version"]}
    assert "a" in {row["node"] for row in after.values()}, "it takes part again"
    assert "no egg of version never" in refused(cluster, "restart", "--version", "never")
    assert jobs(cluster).keys() == after.keys()
    assert done(cluster, "stop")["running"] == 0
    until(lambda: not cluster.processes(), "the last processes to end", timeout=60)


def read_logs(cluster: Cluster, node: str, job: str) -> None:
    """The end of the log that scrapyd has, by the beginning of the job's id; and as it grows."""
    ended = cluster.scrapy("logs", node, job[:-6], "--lines", "4")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert len(lines) == 4 and set(lines) <= set(cluster.nodes[node].job_log(job).splitlines())
    with subprocess.Popen(
        [str(BIN / "scrapy"), "fleet", "logs", node, job, "--lines", "1", "--follow"],
        cwd=cluster.folder, env=cluster.env, stdout=subprocess.PIPE, text=True,
    ) as follower:  # fmt: skip
        try:
            assert follower.stdout is not None
            shown = [follower.stdout.readline().rstrip("\n") for _ in range(3)]
            follower.send_signal(signal.SIGINT)
            follower.wait(60)
        finally:
            follower.kill()
    log = cluster.nodes[node].job_log(job).splitlines()
    assert shown == log[log.index(shown[0]) :][:3], "line by line, none twice"


@pytest.mark.chaos
def test_two_versions_on_one_queue_are_refused_and_a_bad_one_is_rolled_back(
    cluster: Cluster, options: list[str], tmp_path: Path
) -> None:
    versions = {row["node"]: row["versions"] for row in cluster.status()["nodes"]}
    [[old]] = {tuple(one) for one in versions.values()}
    done(cluster, "start", "1", *options)
    egg = tmp_path / "new.egg"
    egg.write_bytes(egg_of(cluster).read_bytes())
    assert done(cluster, "deploy", "--egg", str(egg), "--version", "new")["nodes"] == ["a", "b"]
    rows = done(cluster, "scale", "2")
    assert (rows["version"], rows["deployed"], rows["versions"]) == (old, "new", {old: 2})
    assert {row["version"] for row in jobs(cluster).values()} == {old}, "as its fellows"
    done(cluster, "restart")
    assert {row["version"] for row in jobs(cluster).values()} == {"new"}

    # By hand, past the fleet: the old version on the same queue.
    settings = dict(text.split("=", 1) for text in [*options[1::2], "CRAWL_FOREVER=True"])
    strange = cluster.nodes["b"].schedule("by-hand", settings, _version=old)
    until(lambda: "by-hand" in jobs_seen(cluster), "the worker by hand to beat", timeout=120)
    assert "two versions on one queue are refused" in refused(cluster, "start", "1")
    mixed = cluster.scrapy("version", "--json")
    assert mixed.returncode == 1
    assert f"runs version {old} and is not of the fleet: end it" in mixed.stderr
    runs = {row["runs"] for row in map(json.loads, mixed.stdout.splitlines())}
    assert runs <= {"new", None} and "new" in runs
    pid = next(pid for pid, job in cluster.processes().items() if job == strange)
    os.kill(pid, signal.SIGTERM)
    until(lambda: pid not in cluster.processes(), "it to end", timeout=120)
    until(lambda: "by-hand" not in jobs_seen(cluster), "it to be gone", timeout=30)
    assert cluster.scrapy("version").returncode == 0

    bad = bad_egg_of(egg)
    said = refused(cluster, "deploy", "--egg", str(bad), "--version", "bad", "--restart")
    assert "the fleet is back at new" in said
    assert cluster.look().state.wanted.version == "new"
    assert {row["version"] for row in jobs(cluster).values()} == {"new"}
    done(cluster, "stop")


def jobs_seen(cluster: Cluster) -> set[str]:
    return {row["job"] for row in cluster.status()["workers"] if row["alive"]}


def leased(cluster: Cluster) -> int:
    """URLs that are in somebody's hand, by the queue."""

    async def count() -> int:
        client: Any = connect(cluster.redis.url, single=False)
        frontier = Frontier(client, FrontierConfig(loopback_only=True), "test")
        counts = await frontier.counts()
        await client.aclose()
        return counts.leased

    return asyncio.run(count())


def row_at_work(cluster: Cluster) -> dict[str, Any]:
    """Of the one worker, when it has as much in hand as the queue says: the two are looked at one
    after the other."""
    [row] = cluster.running()
    is_at_work = row["pages"] and row["leases"] and row["pages_per_s"] and row["cpu_percent"]
    return row if is_at_work and row["leases"] == leased(cluster) else {}


def test_status_tells_of_a_worker_what_is_so(
    cluster: Cluster, newsweb: Any, tmp_path: Path
) -> None:
    web = newsweb("ip", **{**QUIET, "sites": 2, "articles": 200, "delay": 0.2})
    options = of_web(web, tmp_path / "data", DOWNLOAD_DELAY=0.2, BACKOFF_START_S=1)
    began = time.time()
    done(cluster, "start", "1", *options)
    row = until(lambda: row_at_work(cluster), "a worker at work", timeout=60)
    check_rows(cluster, [row])
    assert 0 < row["pages"] <= len(web.hits())
    assert row["last_error"] != "RETRY(connect)"
    assert 0 < row["up_s"] <= time.time() - began
    web.stop()  # robots.txt is known, and the queue is full
    until(
        lambda: [row["last_error"] for row in cluster.running()] == ["RETRY(connect)"],
        f"its last error: {cluster.running()}",
        timeout=60,
    )
    table = cluster.scrapy("status").stdout
    assert "RETRY(connect)" in table and str(row["pid"]) in table
