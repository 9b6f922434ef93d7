"""`scrapy frontier` as a user meets it: output, exit codes, an embedded server that is started and stopped for it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import connect, server
from newscrawler.items import Outcome
from tests.redis.helpers import done, frontier, link, links

ROOT = Path(__file__).resolve().parents[2]


def scrapy(data: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scrapy", "frontier", *args, "-s", f"DATA_DIR={data}", "-s", "REDIS_URL="],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A frontier with two domains, a failed URL and a lease of a dead worker; its server is stopped."""
    folder = tmp_path_factory.mktemp("frontier")

    async def fill() -> None:
        client: Any = connect(server.ensure(folder))
        f = await frontier(client, domains=("a.vn", "b.vn"), floor_ms=1000)
        await f.add([*links(4), link("/bad", "b.vn", band=0), link("/2", "b.vn")])
        step = await f.step(2)
        await f.step(0, [done(x, Outcome.FAILED, reason="redirect loop") for x in step.leases if x.domain == "b.vn"])
        await client.aclose()

    asyncio.run(fill())
    assert server.stop_if_last(folder)
    yield folder
    server.stop(folder)


def test_report_counts_and_names(data: Path) -> None:
    table = scrapy(data, "report")
    assert table.returncode == 0, table.stderr
    assert table.stdout.splitlines()[0].split()[:4] == ["DOMAIN", "CLASS", "QUEUED", "WAITING"]
    assert "4 queued, 0 wait for their next visit, 1 leased, 1 in quarantine, 2 domains" in table.stderr
    rows = [json.loads(line) for line in scrapy(data, "report", "a.vn", "--json").stdout.splitlines()]
    assert [(row["domain"], row["queued"], row["leased"]) for row in rows] == [("a.vn", 3, 1)]
    assert not (data / "redis" / "redis.sock").exists(), "the command stops the server that it started"


def test_verbs_act_and_show_the_result(data: Path) -> None:
    assert "paused" in scrapy(data, "pause", "b.vn").stdout
    assert "paused" not in scrapy(data, "resume", "b.vn").stdout
    assert scrapy(data, "delay", "b.vn", "--seconds", "12").stdout.splitlines()[1].split()[5] == "12.0"
    listed = scrapy(data, "quarantine", "list", "--json")
    assert json.loads(listed.stdout)["url"] == "https://b.vn/bad"
    asked = scrapy(data, "purge", "a.vn")
    assert (asked.returncode, asked.stdout) == (1, "") and "3 URLs would be thrown away" in asked.stderr
    assert scrapy(data, "purge", "a.vn", "--yes").stdout == "a.vn: 3 URLs thrown away\n"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["nonsense"], 2, "unknown verb 'nonsense'"),
        (["pause"], 2, "which domain?"),
        (["block", "a.vn"], 2, "until when?"),
        (["block", "a.vn", "--until", "soon"], 2, "a time like 2h"),
        (["report", "nope.vn"], 1, "the frontier does not know nope.vn"),
    ],
)
def test_wrong_use_is_one_clear_line(data: Path, args: list[str], code: int, message: str) -> None:
    result = scrapy(data, *args)
    assert result.returncode == code
    assert message in result.stderr and "Traceback" not in result.stderr


def test_without_a_frontier_it_says_so(tmp_path: Path) -> None:
    result = scrapy(tmp_path / "none", "report")
    assert result.returncode == 1 and "there is no frontier in" in result.stderr
    assert not (tmp_path / "none").exists(), "looking must not create one"
