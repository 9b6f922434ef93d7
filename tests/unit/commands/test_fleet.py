"""`scrapy fleet`: what is wrong in the command line or the environment is one line and exit code 2,
and `scrapy serve` watches as well."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from newscrawler.commands.fleet import _note
from newscrawler.fleet.ledger import LEADER
from newscrawler.fleet.watch import REFUSED, last_error
from tests import warm


def env(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REDIS_URL")}
    return {**kept, **more}


def scrapy(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return warm.run(list(args), env=env(**variables), text=True, timeout=120)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "a verb is needed: deploy, start"),
        (("begin",), "unknown verb 'begin'"),
        (("start",), "fleet start takes N"),
        (("start", "x"), "'x': a number of workers"),
        (("start", "0"), "'0': a number of workers"),
        (("start", "2", "-a", "colour=red"), "-a colour=red: the spider takes sites, urls, since"),
        (("start", "2", "-a", "sites=nope.example"), "nope.example: unknown site"),
        (("start", "2", "-a", "urls=ftp://a.vn/"), "'ftp://a.vn/' is not an http(s) address"),
        (("start", "2", "-a", "since=soon"), "soon"),
        (("scale", "5-2"), "the least number is larger"),
        (("scale", "many"), "'many' is no number of workers"),
        (("drain",), "fleet drain takes NODE"),
        (("drain", "nowhere"), "scrapy.cfg has no node 'nowhere'; there are: default"),
        (("logs", "default"), "fleet logs takes NODE JOB"),
        (("status", "--undo"), "--undo is an option of drain, not of status"),
        (("deploy", "--version", "a/b"), "only letters, digits, - and _"),
        (("status", "now"), "fleet status takes nothing"),
        (("status",), "REDIS_URL is not set"),
    ],
)
def test_a_wrong_command_line_is_said(args: tuple[str, ...], said: str) -> None:
    done = scrapy("fleet", *args)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr


def test_a_worker_of_scrapyd_leaves_in_its_log_why_it_did_not_start(tmp_path: Path) -> None:
    """Its stderr is in scrapyd's own log: the watch and `fleet logs` read the job's."""
    log = tmp_path / "job.log"
    args = ("crawl", "news", "-a", "sites=nope.example", "-s", f"LOG_FILE={log}")
    done = scrapy(*args, SCRAPY_PROJECT="default", DATA_DIR=str(tmp_path))
    assert done.returncode == 2, done.stderr
    assert REFUSED in last_error(log.read_text())
    assert last_error(log.read_text()).endswith("unknown site; see `scrapy sites list`")


def test_times_of_the_watch_are_those_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    _note("leads")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d leads\n", capsys.readouterr().err)


def test_a_redis_that_is_away_is_said() -> None:
    done = scrapy("fleet", "status", REDIS_URL="redis://:secret@127.0.0.1:1/0")
    assert done.returncode == 1 and "Redis does not answer" in done.stderr
    assert "secret" not in done.stderr and "Traceback" not in done.stderr


def test_serve_says_what_a_watch_needs(tmp_path: Path) -> None:
    done = scrapy("serve", "--port", "0", FLEET_WATCH="1", DATA_DIR=str(tmp_path))
    assert done.returncode == 2 and "FLEET_WATCH: REDIS_URL is not set" in done.stderr


async def test_serve_leads_the_watch_until_it_ends(
    r: Any, redis_servers: Any, tmp_path: Path
) -> None:
    url = redis_servers.url("6.2")
    with warm.popen(
        ["serve", "--port", "0"],
        env=env(FLEET_WATCH="1", REDIS_URL=url, DATA_DIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            for _ in range(600):
                if leader := await r.get(LEADER):
                    break
                await asyncio.sleep(0.1)
            assert leader and f"-{server.pid}-".encode() in leader
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0
        finally:
            server.kill()
    assert await r.get(LEADER) is None, "another one may lead at once"
