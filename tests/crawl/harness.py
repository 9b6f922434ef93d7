"""Crawls as a user starts them: `scrapy ...` in a process of its own, with a data
folder of its own.

The process is forked from one that has its imports behind it (tests/warm.py).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import warm
from tests.patience import Deadline, patient

ROOT = Path(__file__).resolve().parents[2]

#: What every crawl of a test has: loopback only, no live display, no waiting for the next minute.
TEST_SETTINGS = {
    "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
    "PROGRESS": "off",
    "LOG_LEVEL": "INFO",
    "SELECTOR_GENERATION": "off",
    "ARTICLE_MAX_AGE_DAYS": "0",
}


@dataclass
class Finished:
    returncode: int
    stdout: str
    stderr: str
    stats: dict[str, Any] = field(default_factory=dict)

    def stat(self, name: str) -> Any:
        return self.stats.get(name, 0)


class Scrapy:
    """`scrapy <args>` in ``folder``'s data. Settings are strings, as on a command line."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.settings = {**TEST_SETTINGS, "DATA_DIR": str(self.data), **(settings or {})}
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("SCRAPY_", "LLM_", "REDIS_URL"))
        }
        self.env.update(env or {})
        self._serial = 0

    def arguments(self, *args: str) -> tuple[list[str], Path]:
        self._serial += 1
        stats = self.folder / f"stats-{self._serial}.json"
        settings = {**self.settings, "STATS_FILE": str(stats)}
        options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        return [*args, *options], stats

    def command(self, *args: str) -> tuple[list[str], Path]:
        """For a test that executes it itself."""
        arguments, stats = self.arguments(*args)
        return [sys.executable, "-m", "scrapy", *arguments], stats

    def run(self, *args: str, timeout: float = 120) -> Finished:
        arguments, stats = self.arguments(*args)
        done = warm.run(arguments, env=self.env, text=True, timeout=patient(timeout))
        return Finished(done.returncode, done.stdout, done.stderr, read_stats(stats))

    def start(self, *args: str) -> Running:
        arguments, stats = self.arguments(*args)
        with (self.folder / f"run-{self._serial}.log").open("wb") as log:
            process = warm.popen(
                arguments, env=self.env, stdout=log, stderr=log, start_new_session=True
            )
        return Running(process, Path(log.name), stats)


class Running:
    def __init__(self, process: subprocess.Popen[bytes], log: Path, stats: Path) -> None:
        self.process = process
        self.log = log
        self.stats_file = stats

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def wait(self, timeout: float = 60) -> Finished:
        """:param timeout: seconds, of a machine with nothing else to do (:mod:`tests.patience`)"""
        deadline = Deadline(timeout)
        while (code := self._ended_within(deadline.left_s)) is None:
            if deadline.is_over():
                self.kill()
                raise AssertionError(f"still running after {timeout} s:\n{self.text()[-3000:]}")
        return Finished(code, self.text(), self.text(), read_stats(self.stats_file))

    def _ended_within(self, seconds: float) -> int | None:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def read_stats(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def until(
    condition: Callable[[], Any], what: str, timeout: float = 90, every_s: float = 0.05
) -> Any:
    """Polls until the condition is true and returns its value; fails with
    ``what`` at the deadline. ``every_s``: more where the look itself is work, as a command is.

    :param timeout: seconds, of a machine with nothing else to do (:mod:`tests.patience`)
    """
    deadline = Deadline(timeout)
    while not deadline.is_over():
        value = condition()
        if value:
            return value
        time.sleep(every_s)
    raise AssertionError(f"not within {timeout} s: {what}")
