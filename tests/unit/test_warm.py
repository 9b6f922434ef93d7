"""A command that runs warm against the same command as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from newscrawler.crawl import processes
from newscrawler.crawl.parse_process import Task
from newscrawler.items import Kind
from tests import warm
from tests.crawl.harness import until
from tests.fixtures_selectors import made_pages
from tests.newsweb import process
from tests.newsweb.process import NewswebProcess

READER = "newscrawler.crawl.parse_process:read"
ENV = {**os.environ, "PROGRESS": "off", "REDIS_URL": ""}


def cold(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments], cwd=warm.ROOT, capture_output=True, **options
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["sites", "list", "--json"],
        ["sites", "nonsense"],
        pytest.param(["search", "--help"], marks=pytest.mark.long),
        pytest.param(["settings", "--get", "DATA_DIR"], marks=pytest.mark.long),
        pytest.param(["version"], marks=pytest.mark.long),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_output_and_exit_code_are_those_of_a_process_of_its_own(
    arguments: list[str], tmp_path: Path
) -> None:
    env = {**ENV, "DATA_DIR": str(tmp_path)}
    ran = warm.run(arguments, env=env, timeout=60)
    own = cold(arguments, env=env, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (own.returncode, own.stdout, own.stderr)
    assert ran.stdout or ran.stderr


@pytest.mark.long
def test_the_environment_is_the_commands_own(tmp_path: Path) -> None:
    """settings.py reads it when it is imported, which the server has done before."""
    asked = ["settings", "--get", "DATA_DIR"]
    for name in ("one", "two"):
        env = {**ENV, "DATA_DIR": str(tmp_path / name)}
        assert warm.run(asked, env=env, timeout=60, text=True).stdout.strip() == env["DATA_DIR"]
    del env["DATA_DIR"]
    assert warm.run(asked, env=env, timeout=60, text=True).stdout.strip() == "data"


@pytest.mark.long
def test_filters_of_warnings_are_the_commands_own(tmp_path: Path) -> None:
    env = {**ENV, "DATA_DIR": str(tmp_path), "PYTHONWARNINGS": "default,nonsense"}
    for run in (warm.run, cold):
        done = run(["version"], env=env, timeout=60, text=True)
        assert "Invalid -W option ignored" in done.stderr and "nonsense" in done.stderr


def test_a_signal_reaches_the_command_and_its_exit_code_comes_back(tmp_path: Path) -> None:
    env = {**ENV, "DATA_DIR": str(tmp_path), "ARTICLE_STORE": ""}
    asked = ["serve", "--port", "0"]
    for number, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
        log = tmp_path / "log"
        with log.open("wb") as out:
            process = warm.popen(asked, env=env, stdout=out, stderr=out, start_new_session=True)
        assert isinstance(process, warm.Process)
        try:
            until(lambda log=log: "http://127.0.0.1" in log.read_text(), "the address is printed")
            assert os.getsid(process.pid) == process.pid
            of_the_run = os.getppid() if warm._SHARED in os.environ else os.getpid()
            assert parent_of(parent_of(process.pid)) == of_the_run, "one server for all processes"
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.01)
            process.send_signal(number)
            assert process.wait(20) == code, log.read_text()
        finally:
            process.kill()
            process.wait(20)


def test_what_a_new_interpreter_reads_is_not_run_warm(tmp_path: Path) -> None:
    """PYTHONPATH and LD_PRELOAD work when a program is executed, never on a fork."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.stderr.write('customized ')")
    env = {**ENV, "PYTHONPATH": str(tmp_path)}
    assert "customized" in warm.run(["version"], env=env, timeout=60, text=True).stderr


def test_the_cpu_of_a_command_is_counted() -> None:
    before = warm.cpu_s()
    warm.run(["version"], timeout=60)
    assert warm.cpu_s() > before


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def limits_of(pid: int) -> str:
    return Path(f"/proc/{pid}/limits").read_text()


async def test_a_forked_reader_is_the_one_that_is_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It answers alike, is a child of who asked for it, keeps to its memory and is replaced when
    it is killed."""
    page = Task(made_pages("tuoitre.vn", 1)[0].body, "https://a.vn/1", Kind.ARTICLE)
    answers = []
    for start in (processes.start_process, warm.start_process):
        monkeypatch.setattr(processes, "start_process", start)
        child = processes.Child(READER, cpu_s=60, memory_bytes=600_000_000)
        await child.start()
        pid = child.pid
        assert pid is not None and parent_of(pid) == os.getpid()
        answers.append(await child.call(page))
        assert re.search(r"Max data size +600000000 +600000000", limits_of(pid))
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(processes.ChildDied, match="SIGKILL"):
            await child.call(page)
        assert (await child.call(page)) == answers[-1] and child.pid != pid
        await child.close()
        assert not Path(f"/proc/{pid}").exists()
    assert answers[0] == answers[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_forked_web_is_the_one_that_is_executed(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the seed whose vocabulary the server has made, and of another one."""
    found = []
    for start in (process.start_process, process._execute):
        monkeypatch.setattr(process, "start_process", start)
        options = {"sites": 2, "articles": 2, "seed": seed, "start": "2026-11-01T08:00"}
        with NewswebProcess("ip", tmp_path / str(len(found)), duration=1, **options) as web:
            articles = json.dumps(web.articles(), sort_keys=True)
            found.append(articles.replace(f":{web.port}/", "/").replace(f":{web.port}", ""))
        assert web.process.returncode == 0
    assert found[0] == found[1] != "[]"
