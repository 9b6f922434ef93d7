"""The log as JSON lines (LOG_JSON): one for each ended visit, one for every other record.

Each process writes files of its own, ``<worker>-0001.jsonl``, ``-0002`` ... : nothing is renamed
while somebody reads it, and no two processes turn over one file. A file that is written holds a
lock on itself; whoever begins a new one removes the oldest of the folder that nobody holds.
"""

from __future__ import annotations

import fcntl
import json
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from newscrawler.items import Outcome, Visit
from newscrawler.utils.display import shown
from newscrawler.web.urls import domain_of

logger = logging.getLogger(__name__)

SUFFIX = ".jsonl"
#: What a line of the log names as ``key=%s`` and a JSON line has as a field.
_NAMED = ("url", "site", "domain", "outcome", "reason", "error")
_PLACE = re.compile(r"(?:(\w+)=)?%(?:\((\w+)\))?[#0\- +]*[\d.]*([a-zA-Z%])")
#: The line of the terminal about an ended visit, which is a JSON line by itself.
_ENDED = "Visit ended url="


class JsonLogHandler(logging.Handler):
    """
    :param max_bytes: after which a new file is begun
    :param keep: files that the folder holds, those of other processes among them
    :param request_of: URL -> id of its visit that is under way, "" = none is
    """

    def __init__(
        self,
        folder: Path,
        worker: str,
        *,
        max_bytes: int,
        keep: int,
        request_of: Callable[[str], str] = lambda url: "",
    ) -> None:
        super().__init__()
        self.folder = folder
        self.worker = worker
        self.max_bytes = max_bytes
        self.keep = keep
        self._request_of = request_of
        self._file: BinaryIO | None = None
        self._size = 0
        self._serial = 0
        self._lost = 0  # lines since the file could be written last

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, str) and record.msg.startswith(_ENDED):
            return
        try:
            line = self._line_of(record)
        except Exception:  # arguments that do not fit their text: a fault of the caller that logs
            self.handleError(record)
            return
        self._write(line)

    def visit(self, visit: Visit, outcome: Outcome, reason: str) -> None:
        """A visit has ended."""
        lease = visit.lease
        values = {
            "@timestamp": _now(),
            "level": "INFO",
            "event": "visit",
            "worker": self.worker,
            "request": lease.request_id,
            "url": shown(visit.url),
            "site": visit.site,
            "domain": visit.domain,
            "kind": visit.kind,
            "outcome": outcome,
            "reason": shown(reason),
            "status": visit.status,
            "bytes": visit.size,
            "fetch_ms": visit.fetch_ms,
            "parse_ms": visit.parse_ms,
            "store_ms": visit.store_ms,
            "tries": lease.tries,
            "stored": visit.stored,
            "raw": visit.raw_ref or (visit.article.raw_ref if visit.article else "") or "",
        }
        with self.lock or _NoLock():
            self._write(_packed(values))

    def close(self) -> None:
        with self.lock or _NoLock():
            if self._file is not None:
                self._file.close()
                self._file = None
        super().close()

    # ------------------------------------------------------------ a line
    def _line_of(self, record: logging.LogRecord) -> bytes:
        values: dict[str, Any] = {
            "@timestamp": _time(record.created),
            "level": record.levelname,
            "event": "log",
            "worker": self.worker,
            "logger": record.name,
            "message": record.getMessage(),
        }
        named = _named(record)
        if url := named.get("url"):
            values["request"] = getattr(record, "request_id", "") or self._request_of(url)
            named.setdefault("domain", domain_of(url) or "")
        values |= {name: shown(text) for name, text in named.items()}
        if record.exc_info and record.exc_info[0] is not None:
            formatter = logging.Formatter()
            values["exception"] = record.exc_text or formatter.formatException(record.exc_info)
        return _packed(values)

    # ------------------------------------------------------------ the file
    def _write(self, line: bytes) -> None:
        """A disk that is full costs lines, not the crawl."""
        try:
            file = self._opened(len(line))
            if self._lost:
                # What was half written ends here, and is a bad line to a reader.
                told = _packed(
                    {
                        "@timestamp": _now(),
                        "level": "WARNING",
                        "event": "log",
                        "worker": self.worker,
                        "logger": __name__,
                        "message": f"Lines of the log were lost lines={self._lost}",
                    }
                )
                self._size += file.write(b"\n" + told)
                self._lost = 0
            self._size += file.write(line)
        except OSError as exc:
            self._lost += 1
            if self._lost == 1:
                # To the other handlers; this one is entered again and counts one more line.
                logger.error("Log file cannot be written folder=%s error=%s", self.folder, exc)

    def _opened(self, size: int) -> BinaryIO:
        if self._file is not None and self._size and self._size + size > self.max_bytes:
            self._file.close()
            self._file = None
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = self._begun()
            _remove_oldest(self.folder, self.keep)
        return self._file

    def _begun(self) -> BinaryIO:
        self._serial += 1
        path = self.folder / f"{self.worker}-{self._serial:04d}{SUFFIX}"
        # Unbuffered: a line is in the file when the next one is written, also of a killed process.
        file = path.open("ab", buffering=0)
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        self._size = file.tell()
        return file


class _NoLock:
    """Of a handler without one."""

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None: ...


def _remove_oldest(folder: Path, keep: int) -> None:
    """Files beyond ``keep`` that no process writes; another process may do the same just now."""
    found = []
    for path in folder.glob(f"*{SUFFIX}*"):
        try:
            found.append((path.stat().st_mtime_ns, path))
        except FileNotFoundError:
            continue
    for _, path in sorted(found)[: max(0, len(found) - keep)]:
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        except OSError:  # it is written, or gone
            continue


def _packed(values: dict[str, Any]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _time(created: float) -> str:
    return datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")


def _named(record: logging.LogRecord) -> dict[str, str]:
    """Fields that the text of a record names; of Scrapy's own also the address of its request."""
    args, template = record.args, record.msg
    if not args or not isinstance(template, str):
        return {}
    if isinstance(args, dict):
        found = {name: str(args[name]) for name in _NAMED if name in args}
        address = getattr(args.get("request"), "url", None)
        return found if address is None else {"url": str(address), **found}
    return {
        name: str(args[place])
        for name, place in _places(template)
        if isinstance(args, tuple) and place < len(args)
    }


@lru_cache(maxsize=1024)
def _places(template: str) -> list[tuple[str, int]]:
    """ "Article dropped url=%s reason=%s" -> [("url", 0), ("reason", 1)]."""
    found, place = [], 0
    for match in _PLACE.finditer(template):
        name, _, kind = match.groups()
        if kind == "%":
            continue
        if name in _NAMED:
            found.append((name, place))
        place += 1
    return found
