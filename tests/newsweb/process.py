"""A running news web as a Python object: start it, ask it, stop it. Used by tests,
demo and benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from tests.patience import patient

ROOT = Path(__file__).resolve().parents[2]
#: Seconds until the process must have said that it is ready.
START_S = 60.0


def _execute(arguments: list[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.newsweb", *arguments], cwd=ROOT, **options
    )


#: What starts the process; tests fork it instead (tests/fixtures_newsweb.py).
start_process: Callable[..., subprocess.Popen[str]] = _execute


class NewswebProcess:
    """``NewswebProcess("ip", folder, articles=20)``: options are those of ``python -m
    tests.newsweb``, with underscores. sites.json, selectors/, hits.jsonl and ca.pem
    are in ``folder``."""

    def __init__(self, layout: str, folder: Path, **options: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.layout, self.folder = layout, folder
        self.sites_file, self.selectors_dir = folder / "sites.json", folder / "selectors"
        self.hits_file, self.ca_file = folder / "hits.jsonl", folder / "ca.pem"
        command = [
            "--layout",
            layout,
            "--hits",
            str(self.hits_file),
            "--exit-with-parent",
        ]
        if layout == "names":
            command += ["--ca-file", str(self.ca_file)]
        else:
            command += [
                "--sites-file",
                str(self.sites_file),
                "--selectors-dir",
                str(self.selectors_dir),
            ]
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            command += (
                [flag]
                if value is True
                else []
                if value is False or value is None
                else [flag, str(value)]
            )
        self.log = (folder / "newsweb.log").open("ab")
        self.process = start_process(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        try:
            self.about: dict[str, Any] = self._ready()
        except BaseException:
            self.stop()
            raise
        self.control: str = self.about["control"]
        self.port: int = self.about["port"]

    def _ready(self) -> dict[str, Any]:
        lines: Queue[str] = Queue()

        def read() -> None:
            assert self.process.stdout
            for line in self.process.stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        try:
            line = lines.get(timeout=patient(START_S))
        except Empty:
            line = ""
        if not line.startswith("{"):
            self.log.flush()
            tail = (self.folder / "newsweb.log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the news web did not start within {START_S:g} s: {line or tail}")
        return dict(json.loads(line))

    # ------------------------------------------------------------ addresses
    def homes(self) -> list[str]:
        """The home page of every site."""
        if "homes" in self.about:
            return list(self.about["homes"])
        return [str(site["home"]) for site in self.about["sites"].values()]

    def home(self, template: str) -> str:
        """The home page of the (first) site of a template, by domain: ``vnexpress.net``."""
        return next(
            str(s["home"]) for s in self.about["sites"].values() if s["template"] == template
        )

    # ------------------------------------------------------------ control
    def _ask(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.control + path, data=data, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())

    def truth(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._ask("/_truth").splitlines()]

    def articles(self, **equal: Any) -> list[dict[str, Any]]:
        """Articles of the truth whose fields have these values."""
        return [
            row
            for row in self.truth()
            if row["type"] == "article" and all(row.get(k) == v for k, v in equal.items())
        ]

    def hits(self, start: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._ask(f"/_hits?from={start}").splitlines()]

    def stats(self) -> dict[str, Any]:
        return dict(json.loads(self._ask("/_stats")))

    def clock(self, **change: float) -> dict[str, Any]:
        """The clock; with ``factor``, ``now``, ``advance_s`` or ``offset_s`` it is set first."""
        return dict(json.loads(self._ask("/_clock", dict(change) if change else None)))

    def publish(self, site: str | None = None, count: int = 1, **more: Any) -> list[dict[str, Any]]:
        return list(
            json.loads(
                self._ask("/_publish", {"count": count, **({"site": site} if site else {}), **more})
            )
        )

    def edit(self, url: str, kind: str = "digit") -> dict[str, Any]:
        return dict(json.loads(self._ask("/_edit", {"url": url, "kind": kind})))

    def relayout(self, site: str, **more: Any) -> dict[str, Any]:
        return dict(json.loads(self._ask("/_layout", {"site": site, **more})))

    def redirect(self, site: str, path: str, to: str) -> dict[str, Any]:
        return dict(json.loads(self._ask("/_redirect", {"site": site, "path": path, "to": to})))

    # ------------------------------------------------------------ end
    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.log.close()

    def __enter__(self) -> NewswebProcess:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def wait_for_hits(self, count: int, deadline_s: float = 10.0) -> list[dict[str, Any]]:
        """At least ``count`` hits. :raises TimeoutError:"""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            found = self.hits()
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise TimeoutError(f"{len(self.hits())} of {count} hits within {deadline_s:g} s")
