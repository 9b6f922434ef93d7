"""A real scrapyd on loopback with folders of its own, and the egg deployed to
it as a user would."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import Deadline

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PROJECT = "newscrawler"


def free_port() -> int:
    """Below the range that clients' ends of connections come from: still free after a restart."""
    while True:
        port = random.SystemRandom().randrange(22_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            return port


def clean_env(**more: str) -> dict[str, str]:
    """The virtual environment's programs, for scrapyd's children as well; nothing of this
    machine's settings."""
    keep = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("SCRAPY", "LLM_", "REDIS_URL", "PYTHONPATH"))
    }
    return {**keep, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}", **more}


def checkout(folder: Path, targets: dict[str, str]) -> Path:
    """A copy of the repository, as its build folders must not be shared with another test, with a
    scrapy.cfg of these nodes (name -> url)."""
    folder.mkdir()
    shutil.copytree(
        ROOT / "newscrawler",
        folder / "newscrawler",
        ignore=shutil.ignore_patterns("__pycache__", "_shipped"),
    )
    for part in ("evaluation", "selectors"):
        shutil.copytree(ROOT / part, folder / part)
    for name in ("setup.py", "requirements.txt", "sites.json"):
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, folder / name)
    sections = [f"[deploy:{name}]\nurl = {url}\n" for name, url in targets.items()]
    text = f"[settings]\ndefault = newscrawler.settings\n[deploy]\nproject = {PROJECT}\n"
    (folder / "scrapy.cfg").write_text(text + "".join(sections))
    return folder


class Scrapyd:
    """``eggs``: those that another one was given; what is there when it starts is deployed."""

    def __init__(self, folder: Path, env: dict[str, str], eggs: Path | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        if eggs is not None:
            shutil.copytree(eggs, folder / "eggs")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        (folder / "scrapyd.conf").write_text(
            f"[scrapyd]\nbind_address = 127.0.0.1\nhttp_port = {self.port}\npoll_interval = 0.2\nmax_proc = 4\n"
            "eggs_dir = eggs\nlogs_dir = logs\ndbs_dir = dbs\n"
        )
        self.env = clean_env(**env)
        self.start()

    def start(self) -> None:
        """Also again, on its old port and with what it has stored, after a kill."""
        self.log = (self.folder / "scrapyd.log").open("ab")
        self.process = subprocess.Popen(
            [str(BIN / "scrapyd"), "--pidfile=", "--logfile=-"],
            cwd=self.folder,
            env=self.env,
            stdout=self.log,
            stderr=self.log,
        )
        deadline = Deadline(60)
        while True:
            try:
                self.get("daemonstatus.json")
                return
            except OSError as exc:
                assert self.process.poll() is None and not deadline.is_over(), (
                    f"{exc}\n{self.text()}"
                )
                time.sleep(0.05)

    def kill(self) -> None:
        """kill -9: its jobs live on, and it will not know them when it comes back."""
        self.process.kill()
        self.process.wait(10)
        self.log.close()

    def text(self) -> str:
        return (self.folder / "scrapyd.log").read_text(errors="replace")

    def get(self, path: str, **query: str) -> dict[str, Any]:
        with urllib.request.urlopen(
            f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=180
        ) as answer:
            return dict(json.loads(answer.read()))

    def post(self, path: str, fields: list[tuple[str, str]]) -> dict[str, Any]:
        body = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(self.url + path, data=body, timeout=30) as answer:
            return dict(json.loads(answer.read()))

    def schedule(self, job: str, settings: dict[str, str], **args: str) -> str:
        fields = [("project", PROJECT), ("spider", "news"), ("jobid", job), *args.items()]
        fields += [("setting", f"{name}={value}") for name, value in settings.items()]
        answer = self.post("schedule.json", fields)
        assert answer["status"] == "ok", answer
        return str(answer["jobid"])

    def finished(self) -> set[str]:
        return {job["id"] for job in self.get("listjobs.json", project=PROJECT)["finished"]}

    def job_log(self, job: str) -> str:
        path = self.folder / "logs" / PROJECT / "news" / f"{job}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def stop(self) -> None:
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()


@pytest.fixture
def scrapyd(tmp_path: Path) -> Iterator[Any]:
    """``node = scrapyd(REDIS_URL=...)``; stopped when the test ends."""
    running: list[Scrapyd] = []

    def start(eggs: Path | None = None, **env: str) -> Scrapyd:
        node = Scrapyd(tmp_path / f"scrapyd-{len(running)}", env, eggs)
        running.append(node)
        return node

    yield start
    for node in running:
        node.stop()
