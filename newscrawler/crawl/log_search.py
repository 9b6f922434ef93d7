"""Finds lines in the JSON logs of a folder: those that are written, those that were turned over,
and those that somebody packed with gzip."""

from __future__ import annotations

import gzip
import heapq
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, cast

from newscrawler.crawl.log_files import SUFFIX

Line = dict[str, Any]
#: Seconds between two looks of :func:`follow`.
LOOK_S = 0.5


@dataclass(slots=True)
class Wanted:
    """What a line must have; empty = anything. ``domain`` stands for its subdomains too; ``reason``
    is a reason or an outcome: "timeout", "RETRY", "RETRY(timeout)"."""

    urls: frozenset[str] = frozenset()
    domain: str = ""
    since: datetime | None = None
    reason: str = ""
    request: str = ""

    def has(self, line: Line) -> bool:
        return (
            (not self.urls or line.get("url") in self.urls)
            and (not self.domain or self._is_of(str(line.get("domain") or "")))
            and (not self.request or line.get("request") == self.request)
            and (not self.reason or self.reason in _words(line))
            and (self.since is None or _time(line) >= self.since)
        )

    def _is_of(self, domain: str) -> bool:
        host = domain.partition(":")[0]
        return self.domain in (domain, host) or host.endswith(f".{self.domain}")


def _words(line: Line) -> tuple[str, str, str]:
    outcome, reason = str(line.get("outcome") or ""), str(line.get("reason") or "")
    return outcome, reason, f"{outcome}({reason})" if reason else outcome


def _time(line: Line) -> datetime:
    return datetime.fromisoformat(line["@timestamp"])


@dataclass(slots=True)
class Faults:
    """What could not be read: (file, why) -> how often."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(self, path: Path, why: str) -> None:
        self.counts[path.name, why] = self.counts.get((path.name, why), 0) + 1


def files(folder: Path, since: datetime | None = None) -> list[Path]:
    """Those that may hold lines from ``since`` on."""
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}*")):
        try:
            changed = path.stat().st_mtime
        except FileNotFoundError:
            continue
        if since is None or changed >= since.timestamp():
            found.append(path)
    return found


def search(folder: Path, wanted: Wanted, faults: Faults) -> Iterator[Line]:
    """The lines of all files in the order of their times."""
    found = [_matching(path, wanted, faults) for path in files(folder, wanted.since)]
    return heapq.merge(*found, key=itemgetter("@timestamp"))


def _matching(path: Path, wanted: Wanted, faults: Faults) -> Iterator[Line]:
    try:
        with _opened(path) as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    return  # it is being written
                if (line := _parsed(raw, path, faults)) is not None and wanted.has(line):
                    yield line
    except FileNotFoundError:  # removed by the process that began a new file
        return
    except (OSError, EOFError) as exc:  # a damaged or half packed file: what came before counts
        faults.note(path, str(exc) or type(exc).__name__)


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _parsed(raw: bytes, path: Path, faults: Faults) -> Line | None:
    """None of a bad line, which is counted. An empty one is what a full disk leaves."""
    if not raw.strip():
        return None
    try:
        line = json.loads(raw)
        if line == {}:  # of what was taken down
            return None
        _time(line)
    except (ValueError, KeyError, TypeError):
        faults.note(path, "not a line of the log")
        return None
    return cast(Line, line)


def follow(
    folder: Path, wanted: Wanted, faults: Faults, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Line]:
    """Yields the lines that are written from now on, in all files that are there or come. Never
    ends by itself."""
    places = {path: path.stat().st_size for path in files(folder) if path.suffix != ".gz"}
    while True:
        fresh: list[Line] = []
        for path in files(folder):
            if path.suffix != ".gz":
                places[path] = _read_on(path, places.get(path, 0), wanted, faults, fresh)
        yield from sorted(fresh, key=itemgetter("@timestamp"))
        sleep(LOOK_S)


def _read_on(path: Path, at: int, wanted: Wanted, faults: Faults, found: list[Line]) -> int:
    """:returns: where the next look begins: after the last whole line"""
    try:
        with path.open("rb") as file:
            file.seek(at)
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                at += len(raw)
                if (line := _parsed(raw, path, faults)) is not None and wanted.has(line):
                    found.append(line)
    except FileNotFoundError:
        return 0
    return at
