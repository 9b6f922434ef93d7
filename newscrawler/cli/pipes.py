"""Standard output and error that cannot be written: a reader that goes away (`scrapy search ... |
head`) is no error, a full disk is one line."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import Any


class OpenPipe:
    """A stream that ends the command quietly, or goes silent, when nobody reads it any more. What
    else it cannot be written for is told.

    :param ends: whether the command has nothing left to do then (standard output), else it
        goes on (standard error)
    """

    def __init__(self, stream: Any, *, ends: bool) -> None:
        self._stream = stream
        self._ends = ends

    def write(self, data: Any) -> int:
        try:
            return int(self._stream.write(data))
        except OSError as exc:
            self._closed(exc)
            return len(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as exc:
            self._closed(exc)

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
        except ValueError:  # it is closed already
            return
        except BrokenPipeError:
            self.silence()
        except OSError as exc:
            self.silence()
            if self._ends:
                _tell(exc)
                os._exit(1)  # an error of what runs at the exit changes no exit code

    def _closed(self, exc: OSError) -> None:
        self.silence()
        if not self._ends:
            return
        if isinstance(exc, BrokenPipeError):
            raise SystemExit(0)
        _tell(exc)
        raise SystemExit(1)


def _tell(exc: OSError) -> None:
    print(f"standard output cannot be written: {exc.strerror or exc}", file=sys.stderr, flush=True)


def watch() -> None:
    """Where standard output and error are pipes, files or devices, and no terminal."""
    for name, ends in (("stdout", True), ("stderr", False)):
        stream = getattr(sys, name)
        try:
            is_terminal = stream.isatty()
            stream.fileno()
        except (AttributeError, OSError, ValueError):
            continue
        if not is_terminal and not isinstance(stream, OpenPipe):
            watched = OpenPipe(stream, ends=ends)
            atexit.register(watched.last)
            setattr(sys, name, watched)
