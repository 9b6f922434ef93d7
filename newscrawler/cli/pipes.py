"""Standard output and error whose reader may go away: `scrapy search ... | head` is no error."""

from __future__ import annotations

import atexit
import os
import stat
import sys
from pathlib import Path
from typing import Any


class OpenPipe:
    """A stream that ends the command quietly, or goes silent, when nobody reads it any more.

    :param ends: whether the command has nothing left to do then (standard output), else it
        goes on (standard error)
    """

    def __init__(self, stream: Any, *, ends: bool) -> None:
        self._stream = stream
        self._ends = ends

    def write(self, data: Any) -> int:
        try:
            return int(self._stream.write(data))
        except BrokenPipeError:
            self._closed()
            return len(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._closed()

    @property
    def buffer(self) -> OpenPipe:
        return OpenPipe(self._stream.buffer, ends=self._ends)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def silence(self) -> None:
        """Drops what is still held back, so that the interpreter's own flush
        finds no fault."""
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), self._stream.fileno())

    def last(self) -> None:
        """At the end of the process."""
        try:
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            self.silence()

    def _closed(self) -> None:
        self.silence()
        if self._ends:
            raise SystemExit(0)


def watch() -> None:
    """Where standard output and error are pipes."""
    for name, ends in (("stdout", True), ("stderr", False)):
        stream = getattr(sys, name)
        try:
            is_pipe = stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
        except (AttributeError, OSError, ValueError):
            continue
        if is_pipe and not isinstance(stream, OpenPipe):
            watched = OpenPipe(stream, ends=ends)
            atexit.register(watched.last)
            setattr(sys, name, watched)
