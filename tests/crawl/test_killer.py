"""A page that kills its worker each time ends in quarantine after few workers; a reader process
that dies is no death."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fleet.identity import is_dead_worker
from newscrawler.frontier.queue import Frontier, FrontierConfig
from tests.crawl.harness import until
from tests.crawl.killer import PIPELINES
from tests.crawl.small import QUIET, Queue, complaints, crawler, expected, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.redis.helpers import check, leap

pytestmark = pytest.mark.slow

RULE = FrontierConfig()
MOST_DEATHS = RULE.poison_candidate_after + RULE.max_isolated_retries


async def rest(frontier: Frontier, client: Any) -> None:
    """The death is noticed, as by the next worker that starts, and two hours go by."""
    frontier.is_dead = is_dead_worker
    await frontier.open()
    await leap(client, 120 * 60_000)


@pytest.mark.long
def test_a_page_that_kills_its_worker_each_time_ends_in_quarantine(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=1, articles=12, **QUIET)
    killer = sorted(expected(web))[5]
    path = "/" + killer.split("/", 3)[3]
    scrapy = crawler(tmp_path, web, ITEM_PIPELINES=json.dumps(PIPELINES), KILLER_PATH=path)
    deaths, tried_alone = 0, 0
    for _ in range(2 * MOST_DEATHS):
        end = scrapy.start("crawl", "news").wait(150)
        tried_alone += f"tried by itself url={killer}" in end.stderr
        if end.returncode == 0:
            break
        assert end.returncode == -signal.SIGKILL, end.stderr[-2000:]
        deaths += 1
        if (
            deaths >= RULE.poison_candidate_after
        ):  # it rests, for longer than a crawl of this test waits
            queue._ask(rest)
    assert deaths == MOST_DEATHS
    assert tried_alone == RULE.max_isolated_retries
    listed = queue._ask(lambda frontier, client: frontier.operator.quarantined())
    assert [(row.url, row.reason) for row in listed] == [(killer, "crashes")], (
        "nothing else is suspected"
    )
    assert [line.split()[:2] for line in complaints(web, stored(scrapy.data))] == [
        ["missed", killer]
    ]
    queue._ask(lambda frontier, client: check(client))


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def readers(pid: int) -> list[int]:
    found = []
    for child in children(pid):
        with contextlib.suppress(OSError):
            if (
                b"newscrawler.crawl.parse_process:read"
                in Path(f"/proc/{child}/cmdline").read_bytes()
            ):
                found.append(child)
    return found


@pytest.mark.long
def test_a_reader_process_that_dies_alone_counts_against_no_page(
    tmp_path: Path, newsweb: StartNewsweb, queue: Queue
) -> None:
    web = newsweb("ip", sites=3, articles=10, **{**QUIET, "delay": 0.15})
    worker = crawler(tmp_path, web, DOWNLOAD_DELAY=0.15).start("crawl", "news")
    killed: set[int] = set()
    try:
        for _ in range(5):
            fresh = until(
                lambda killed=killed: set(readers(worker.process.pid)) - killed, "a reader"
            )
            # what the one before left is read by then: a page of which two readers die one after
            # the other is given up
            goal = worker.text().count("Visit ended") + 15
            until(
                lambda goal=goal: worker.text().count("Visit ended") >= goal, f"{goal} visits", 120
            )
            for pid in fresh:
                os.kill(pid, signal.SIGKILL)
            killed |= fresh
        end = worker.wait(150)
    finally:
        if worker.process.poll() is None:
            worker.kill()
    assert end.returncode == 0, end.stderr[-2000:]
    assert len(killed) >= 5
    assert complaints(web, stored(tmp_path / "data")) == []

    async def stats(frontier: Any, client: Any) -> dict[str, int]:
        await check(client)
        return await frontier.operator.stats()

    found = queue._ask(stats)
    assert (found.get("expired", 0), queue.counts().quarantined) == (0, 0)
