"""Workers that beat and do nothing, on real scrapyds: given up, and replaced once. Those that wait
rightly are not."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import until
from tests.crawl.small import QUIET, expected, stored
from tests.crawl.test_scrapyd import Cluster, Watched, deployed, finish, of_web  # noqa: F401  # fixtures
from tests.fixtures_scrapyd import checkout
from tests.patience import patient

pytestmark = pytest.mark.slow

DELAY_S = 0.5
#: What FLEET_STUCK_S is here, seconds: by the setting's own value a test would last for minutes.
STUCK_S = 12.0


@pytest.fixture
def cluster(deployed: Cluster, scrapyd: Any, tmp_path: Path) -> Iterator[Cluster]:  # noqa: F811  # a fixture
    """Two nodes whose workers can be made to hang, by a file in tmp_path/hangs."""
    deployed.clear()
    code = tmp_path / "code"
    for folder in (code, tmp_path / "hangs"):
        folder.mkdir()
    shutil.copy(Path(__file__).with_name("hangs.py"), code)
    eggs = deployed.nodes["a"].folder / "eggs"
    env = {
        "REDIS_URL": deployed.redis.url,
        "PYTHONPATH": str(code),
        "HANGS": str(tmp_path / "hangs"),
    }
    nodes = {name: scrapyd(eggs, **env) for name in ("a", "b")}
    source = checkout(tmp_path / "source", {name: node.url for name, node in nodes.items()})
    made = Cluster(deployed.redis, nodes, source)
    yield made
    made.clear()


def started(cluster: Cluster, options: list[str]) -> tuple[Watched, list[dict[str, Any]]]:
    cluster.watch(*options)
    done = cluster.scrapy("start", "2", "--wait=600", *options, "-s", 'ADDONS={"hangs.Hangs": 1}')
    assert done.returncode == 0, done.stdout + done.stderr + cluster.texts()
    seen = Watched(cluster, 2)
    return seen, seen.until_healed("two workers to run")


def hang(folder: Path, pid: int, what: str) -> float:
    """:returns: when it began to hang"""
    path = folder / "hangs" / str(pid)
    path.with_suffix(".part").write_text(what)
    path.with_suffix(".part").replace(path)
    until(path.with_suffix(".done").exists, f"worker {pid} to hang", timeout=30)
    return time.time()


def until_replaced(cluster: Cluster, seen: Watched, row: dict[str, Any], began: float) -> float:
    """Until the job is over and two others run. While the process is there it is one of the two.

    :returns: seconds until another one was started in its place
    """

    def replaced() -> list[dict[str, Any]]:
        rows = seen.running()
        there = cluster.processes()
        assert len(there) <= 2, f"two for one: {there}"
        jobs = {one["job"] for one in rows}
        return rows if len(rows) == 2 and row["job"] not in jobs else []

    rows = until(replaced, "the stuck worker to be replaced", timeout=300, every_s=0.3)
    ended = {one.id: one for one in cluster.look().state.ended}
    assert ended[row["job"]].how == "stuck", ended
    assert "it beats" in ended[row["job"]].why
    jobs = cluster.look().state.jobs
    first = min(jobs[one["job"]].started_ms for one in rows if one["pid"] != row["pid"])
    newest = max(jobs[one["job"]].started_ms for one in rows)
    assert first <= newest
    leases = {one["worker"] for one in rows}
    assert row["worker"] not in leases
    return newest / 1000 - began


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_worker_that_beats_and_does_nothing_is_replaced(
    cluster: Cluster, newsweb: Any, tmp_path: Path
) -> None:
    web = newsweb("ip", **{**QUIET, "sites": 4, "articles": 40, "delay": DELAY_S})
    options = of_web(
        web, tmp_path / "data", DOWNLOAD_DELAY=DELAY_S, FLEET_STUCK_S=STUCK_S, FLEET_START_S=900
    )
    seen, rows = started(cluster, options)

    began = hang(tmp_path, rows[0]["pid"], "visits")
    took_s = until_replaced(cluster, seen, rows[0], began)
    print(f"no visit of it ended for {STUCK_S:.0f} s: after {took_s:.1f} s")
    assert STUCK_S / 2 < took_s <= patient(STUCK_S + 10)

    rows = seen.until_healed("two workers to run")
    began = hang(tmp_path, rows[0]["pid"], "loop")
    took_s = until_replaced(cluster, seen, rows[0], began)
    print(f"its lease loop stood still: another one was started after {took_s:.1f} s")
    assert took_s <= patient(40)  # FLEET_STUCK_TURN_S, 30 s, is part of it

    # Its scrapyd was started anew and cannot end it: it ends when its heartbeat is answered.
    rows = seen.until_healed("two workers to run")
    node = cluster.nodes[rows[0]["node"]]
    node.kill()
    node.start()
    began = hang(tmp_path, rows[0]["pid"], "loop")
    took_s = until_replaced(cluster, seen, rows[0], began)
    print(f"and its scrapyd did not know it: after {took_s:.1f} s")
    assert took_s <= patient(45)

    finish(cluster, web, tmp_path / "data")


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_worker_that_waits_rightly_is_let_alone(
    cluster: Cluster, newsweb: Any, tmp_path: Path
) -> None:
    """The store is away for all; then nothing is due."""
    web = newsweb("ip", **{**QUIET, "sites": 4, "articles": 10, "delay": DELAY_S})
    data = tmp_path / "data"
    options = of_web(web, data, DOWNLOAD_DELAY=DELAY_S, FLEET_STUCK_S=20, FLEET_START_S=900)
    seen, rows = started(cluster, options)
    pids = {row["pid"] for row in rows}
    until(lambda: len(stored(data)) >= 3, "the first articles", timeout=120)
    with contextlib.closing(sqlite3.connect(data / "articles.db", timeout=60)) as store:
        store.execute("BEGIN EXCLUSIVE")

        def waits() -> bool:
            found = cluster.look().rows.values()
            return all(row.get("waits_s", 0) > 45 for row in found if row["alive"])

        until(waits, "all to wait for the store", timeout=200, every_s=1)
        store.rollback()
    until(lambda: len(stored(data)) == len(expected(web)), "all articles", timeout=300, every_s=1)
    quiet_until = time.monotonic() + 45  # twice FLEET_STUCK_S
    while time.monotonic() < quiet_until:
        there = {row["pid"] for row in seen.running()}
        assert there == pids, cluster.look().state.ended
        time.sleep(1)
    assert not cluster.look().state.ended, cluster.look().state.ended
    for pid in pids:
        os.kill(pid, 0)
    finish(cluster, web, data)
