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
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

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


_FIELDS = frozenset(one.name for one in fields(Issued))


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
        with self._changing(created) as known:
            known[issued.id] = issued
        return issued

    def renew(self, parent: Issued, role: str, now: int, note: str, *, least_age: int) -> Issued:
        """The one token that ends with ``parent``: a new one, and those of before are gone, or the
        last one where it is younger than ``least_age`` seconds. Raises TokenFileError."""
        with self._changing(now) as known:
            before = [
                one
                for one in known.values()
                if one.made_by == parent.id and one.state(now) == "active"
            ]
            if before and now - before[-1].created < least_age:
                return before[-1]
            for one in before:
                known[one.id] = replace(one, revoked=now)
            issued = Issued(
                secrets.token_hex(6), role, now, parent.expires, note, made_by=parent.id
            )
            known[issued.id] = issued
        return issued

    def revoke(self, token_id: str, now: int) -> Issued | None:
        """Revokes a token and returns its entry; None: no token has this id. Raises
        TokenFileError."""
        with self._changing(now) as known:
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
            made_by = dict(data.get("made_by", {}))
            return {row["id"]: _issued(row, made_by) for row in data["tokens"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise TokenFileError(_fault(self.path, exc)) from exc

    @contextmanager
    def _changing(self, now: int) -> Iterator[dict[str, Issued]]:
        """The entries, to be changed: one process at a time, and in one step. Those that end with
        another one are let go of when they are over: a reader makes as many as they like."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                known = self._read()
                yield known
                self._write([one for one in known.values() if not _is_over(one, known, now)])
        except OSError as exc:
            raise TokenFileError(_fault(self.path, exc)) from exc

    def _write(self, known: list[Issued]) -> None:
        rows = [asdict(one) for one in known]
        # Beside the rows: a program of before refuses the whole file for a field it does not know.
        made_by = {row["id"]: parent for row in rows if (parent := row.pop("made_by"))}
        data = {"schema": _SCHEMA, "tokens": rows, "made_by": made_by}
        text = json.dumps(data, ensure_ascii=False, indent=1)
        # Ids are no secrets, but nobody else has to know who may do what.
        files.write_whole(self.path, f"{text}\n".encode(), mode=0o600)


def _issued(row: dict[str, Any], made_by: dict[str, str]) -> Issued:
    """Of a row, without what a later program has put into it. Before the map was written, the
    parent stood in the row."""
    values = {name: value for name, value in row.items() if name in _FIELDS}
    parent = made_by.get(row["id"])
    return Issued(**values | ({"made_by": parent} if parent else {}))


def _is_over(one: Issued, known: dict[str, Issued], now: int) -> bool:
    if not one.made_by:
        return False
    parent = known.get(one.made_by)
    return one.state(now) != "active" or (parent is not None and bool(parent.revoked))


def _fault(path: Path, exc: Exception) -> str:
    return f"no token is accepted, {path} cannot be read or written ({exc})"
