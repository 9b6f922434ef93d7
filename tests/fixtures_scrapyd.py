"""A real scrapyd on loopback with folders of its own, and the egg deployed to
it as a user would."""

from __future__ import annotations

import json
import os
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

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PROJECT = "newscrawler"


class Scrapyd:
    """``eggs``: those that another one was given; what is there when it starts is deployed."""

    def __init__(self, folder: Path, env: dict[str, str], eggs: Path | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        if eggs is not None:
            shutil.copytree(eggs, folder / "eggs")
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        (folder / "scrapyd.conf").write_text(
            f"[scrapyd]\nbind_address = 127.0.0.1\nhttp_port = {self.port}\npoll_interval = 0.2\nmax_proc = 4\n"
            "eggs_dir = eggs\nlogs_dir = logs\ndbs_dir = dbs\n"
        )
        # The virtual environment's programs, for scrapyd's children as well; nothing of this
        # machine's settings.
        keep = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("SCRAPY", "LLM_", "REDIS_URL", "PYTHONPATH"))
        }
        self.env = {**keep, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}", **env}
        self.log = (folder / "scrapyd.log").open("wb")
        self.process = subprocess.Popen(
            [str(BIN / "scrapyd"), "--pidfile=", "--logfile=-"],
            cwd=folder,
            env=self.env,
            stdout=self.log,
            stderr=self.log,
        )
        deadline = time.monotonic() + 30
        while True:
            try:
                self.get("daemonstatus.json")
                return
            except OSError as exc:
                assert self.process.poll() is None and time.monotonic() < deadline, (
                    f"{exc}\n{self.text()}"
                )
                time.sleep(0.05)

    def text(self) -> str:
        return (self.folder / "scrapyd.log").read_text(errors="replace")

    def get(self, path: str, **query: str) -> dict[str, Any]:
        with urllib.request.urlopen(
            f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=60
        ) as answer:
            return dict(json.loads(answer.read()))

    def post(self, path: str, fields: list[tuple[str, str]]) -> dict[str, Any]:
        body = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(self.url + path, data=body, timeout=30) as answer:
            return dict(json.loads(answer.read()))

    def deploy(self) -> subprocess.CompletedProcess[str]:
        """`scrapyd-deploy` from a copy of the repository: its build folders must not be
        shared with another test."""
        source = self.folder / "source"
        source.mkdir()
        shutil.copytree(
            ROOT / "newscrawler",
            source / "newscrawler",
            ignore=shutil.ignore_patterns("__pycache__", "_shipped"),
        )
        for folder in ("evaluation", "selectors"):
            shutil.copytree(ROOT / folder, source / folder)
        for name in ("setup.py", "requirements.txt", "sites.json"):
            if (ROOT / name).is_file():
                shutil.copy(ROOT / name, source / name)
        (source / "scrapy.cfg").write_text(
            f"[settings]\ndefault = newscrawler.settings\n[deploy]\nurl = {self.url}\nproject = {PROJECT}\n"
        )
        return subprocess.run(
            [str(BIN / "scrapyd-deploy")],
            cwd=source,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=120,
        )

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
