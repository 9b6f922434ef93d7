"""Who changed what by way of the API and its pages: DATA_DIR/audit.jsonl, a line each.

A change is noted before it is made. When it cannot be noted it is not made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newscrawler.api.access import Principal

FILE = "audit.jsonl"
#: Bytes of the file after which it is put aside as audit.jsonl.1, whose predecessor goes.
MOST_BYTES = 10_000_000


class AuditUnavailable(Exception):
    """The change cannot be noted, so it is not made; the text says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    at: str  # ISO
    who: str  # id of the token; "local" where none is asked for
    role: str
    action: str  # as "domain.pause"
    target: str
    detail: str = ""


class AuditLog:
    """:param folder: None keeps nothing, for a server without a folder of its own"""

    def __init__(self, folder: Path | None, clock: Callable[[], float]) -> None:
        self.path = None if folder is None else folder / FILE
        self._clock = clock

    def note(self, who: Principal, action: str, target: str, detail: str = "") -> None:
        """Raises AuditUnavailable."""
        if self.path is None:
            return
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        entry = Entry(at, who.id, who.role, action, target[:2_000], detail[:2_000])
        line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._make_room()
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line.encode("utf-8", "replace"))
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as exc:
            raise AuditUnavailable(
                f"nothing was changed: {self.path} cannot be written ({exc})"
            ) from exc

    def last(self, count: int) -> list[dict[str, Any]]:
        """The newest entries, newest first; a damaged line is left out."""
        found: list[dict[str, Any]] = []
        for path in self._files():
            try:
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue
            for line in reversed(lines):
                if len(found) >= count:
                    return found
                try:
                    found.append(asdict(Entry(**json.loads(line))))
                except (ValueError, TypeError):
                    continue
        return found

    def _files(self) -> list[Path]:
        if self.path is None:
            return []
        return [self.path, self.path.with_name(f"{FILE}.1")]

    def _make_room(self) -> None:
        assert self.path is not None
        if self.path.exists() and self.path.stat().st_size > MOST_BYTES:
            self.path.replace(self.path.with_name(f"{FILE}.1"))
