"""The tokens that were handed out: DATA_DIR/tokens.json, one entry each, without the tokens
themselves.

A server accepts the tokens that stand in this file and are not revoked there, and looks at the
file again when it has changed: a revoked token is refused with the next request. Without the
file, or when it cannot be read, no token is accepted.
"""

from __future__ import annotations

import fcntl
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from newscrawler.utils import files

FILE = "tokens.json"
_SCHEMA = 1


class TokenFileError(Exception):
    """The file cannot be read or written; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A token that was handed out. Times in seconds since 1970."""

    id: str
    role: str
    created: int
    expires: int
    note: str = ""  # whom it is for
    revoked: int = 0  # 0: it is not
    made_by: str = ""  # the token that it ends with (api.follow_page); "": it stands alone

    def state(self, now: float) -> str:
        """active | revoked | expired"""
        if self.revoked:
            return "revoked"
        return "active" if self.expires > now else "expired"


class TokenBook:
    """Reads and writes the file. Used by any number of threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._guard = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._known: dict[str, Issued] = {}

    def entries(self) -> list[Issued]:
        """Oldest first. Raises TokenFileError."""
        return list(self._read().values())

    def refusal(self, token_id: str) -> str:
        """Why a token of this id is not accepted; "" when it is."""
        try:
            found = self._current().get(token_id)
        except TokenFileError as exc:
            return str(exc)
        if found is None:
            return "this server has not handed out that token: make one with `scrapy token create`"
        if found.made_by and (why := self.refusal(found.made_by)):
            return f"it ends with the token that it was made by: {why}"
        return "the token was revoked" if found.revoked else ""

    def known(self, token_id: str) -> Issued | None:
        """None: no token has this id, or the file cannot be read."""
        try:
            return self._current().get(token_id)
        except TokenFileError:
            return None

    def made_by(self, token_id: str) -> list[Issued]:
        """The tokens that end with this one, oldest first."""
        try:
            return [one for one in self._current().values() if one.made_by == token_id]
        except TokenFileError:
            return []

    def add(
        self, role: str, created: int, expires: int, note: str = "", made_by: str = ""
    ) -> Issued:
        """Raises TokenFileError."""
        issued = Issued(secrets.token_hex(6), role, created, expires, note, made_by=made_by)
        with self._changing() as known:
            known[issued.id] = issued
        return issued

    def revoke(self, token_id: str, now: int) -> Issued | None:
        """What is known of it now; None: no token has this id. Raises TokenFileError."""
        with self._changing() as known:
            found = known.get(token_id)
            if found is not None and not found.revoked:
                found = known[token_id] = replace(found, revoked=now)
        return found

    # ------------------------------------------------------------------ the file
    def _current(self) -> dict[str, Issued]:
        """The entries, read again only when the file is another one than before."""
        with self._guard:
            try:
                stat = self.path.stat()
            except FileNotFoundError:
                return {}
            except OSError as exc:
                raise TokenFileError(_fault(self.path, exc)) from exc
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen != self._seen:
                self._known = self._read()
                self._seen = seen
            return self._known

    def _read(self) -> dict[str, Issued]:
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if data["schema"] != _SCHEMA:
                raise TokenFileError(
                    f"{self.path} is of schema {data['schema']}, this program reads {_SCHEMA}"
                )
            return {row["id"]: Issued(**row) for row in data["tokens"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise TokenFileError(_fault(self.path, exc)) from exc

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Issued]]:
        """The entries, to be changed: one process at a time, and in one step."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                known = self._read()
                yield known
                self._write(known)
        except OSError as exc:
            raise TokenFileError(_fault(self.path, exc)) from exc

    def _write(self, known: dict[str, Issued]) -> None:
        # Without what is empty: a program of before knows no tokens that end with others.
        rows = [_row(one) for one in known.values()]
        text = json.dumps({"schema": _SCHEMA, "tokens": rows}, ensure_ascii=False, indent=1)
        # Ids are no secrets, but nobody else has to know who may do what.
        files.write_whole(self.path, f"{text}\n".encode(), mode=0o600)


def _row(one: Issued) -> dict[str, object]:
    row = asdict(one)
    if not one.made_by:
        del row["made_by"]
    return row


def _fault(path: Path, exc: Exception) -> str:
    return f"no token is accepted, {path} cannot be read or written ({exc})"
