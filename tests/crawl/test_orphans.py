"""No redis-server outlives the commands that used it, however they ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl.days import Person, stop
from tests.crawl.fault_server import FaultServer, whole
from tests.crawl.harness import ROOT, until
from tests.crawl.small import QUIET, redis_servers
from tests.crawl.test_run import free_port
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow


@pytest.fixture
def person(tmp_path: Path, newsweb: StartNewsweb) -> Person:
    web = newsweb("ip", sites=2, articles=6, **QUIET)
    return Person(tmp_path, web, free_port())


@pytest.fixture
def slow_url() -> Iterator[str]:
    """An address whose answer never comes."""
    server = FaultServer()
    server.start({"bao": ("127.0.9.14", None)})
    server._answers["/robots.txt"] = whole(b"", status="404 Not Found")
    yield f"http://127.0.9.14:{server.ports['bao']}/silent"
    server.stop()


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        signal.SIGKILL,
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
    ],
)
def test_run_takes_its_redis_and_its_search_page_along(person: Person, how: signal.Signals) -> None:
    running = person.start("run")
    try:
        until(lambda: "Visit ended" in person.log(), "a first page")
        assert len(redis_servers(person.data)) == 1
        assert any("serve" in row for row in person.left_behind())
        stop(running, how)
    finally:
        if running.process.poll() is None:
            running.kill()
    person.is_left_alone()


def test_a_deleted_data_folder_leaves_no_server(person: Person) -> None:
    running = person.start("crawl", "news")
    try:
        until(lambda: "Visit ended" in running.text(), "a first page")
        (pid,) = redis_servers(person.data)
        shutil.rmtree(person.data)
        until(lambda: not Path(f"/proc/{pid}/exe").exists(), "the server has ended", 20)
    finally:
        running.kill()


def test_timeout_of_an_extract_leaves_no_server(person: Person, slow_url: str) -> None:
    command = ["timeout", "6", sys.executable, "-m", "scrapy", "extract", slow_url]
    process = subprocess.Popen(
        command, cwd=ROOT, env=person.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )  # fmt: skip
    until(lambda: redis_servers(person.data) or process.poll() is not None, "its server")
    assert process.wait(60) == 124, "it was ended by timeout"
    person.is_left_alone()


def test_a_killed_console_leaves_no_server(person: Person) -> None:
    """Whatever opened the queue: here three lines of Python, killed without a
    chance to clean up."""
    code = (
        "from scrapy.utils.project import get_project_settings as s; from newscrawler.crawl import opening;"
        "print(opening.redis_url(s()), flush=True); import time; time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=person.environment(), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"unix://")
    assert len(redis_servers(person.data)) == 1
    os.kill(process.pid, signal.SIGKILL)
    process.wait(20)
    process.stdout.close()
    person.is_left_alone()
