"""Addresses of what was taken down, in the logs of DATA_DIR: masked where they stand.

A log is what workers append to meanwhile, so an address is overwritten by as many other bytes,
which keeps every line and its JSON as they are. Packed files that were put aside are written anew.
Audit log and the list of take-downs name what the operator named, and stay.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

_MASK = b"taken-down"
_BLOCK = 8 * 1024 * 1024
#: Bytes of an address at most; what is longer is masked up to there.
_LONGEST = 4096
#: What ends an address in a line: text around it, or the end of a JSON string.
_END = rb"(?=[\s\"'<>\\,;)}\]]|$)"
_REST = rb"[^\s\"'<>\\]"


class Addresses:
    """:param urls: they, with any query or fragment
    :param domain: all addresses of it and of what is below it, "" = none"""

    def __init__(self, urls: Iterable[str], domain: str = "") -> None:
        exact = sorted({url.encode("utf-8", "replace") for url in urls}, key=len, reverse=True)
        ways = []
        if exact:
            every = b"|".join(map(re.escape, exact))
            ways.append(rb"(?:%b)(?:[?#]%b*)?%b" % (every, _REST, _END))
        if domain:
            host = re.escape(domain.encode("idna" if not domain.isascii() else "ascii"))
            ways.append(rb"https?://(?:[\w-]+\.)*%b(?::\d+)?(?:[/?#]%b*)?%b" % (host, _REST, _END))
        self._pattern = re.compile(b"|".join(ways)) if ways else None

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        if self._pattern is not None:
            for found in self._pattern.finditer(data):
                yield found.span()

    def masked(self, data: bytes) -> tuple[bytes, int]:
        """With every address masked, and how many there were."""
        if self._pattern is None:
            return data, 0
        return self._pattern.subn(lambda found: _mask(len(found[0])), data)


def _mask(length: int) -> bytes:
    return _MASK[:length].ljust(length, b"-")


def mask(folder: Path, addresses: Addresses) -> int:
    """Masks them in every file below a folder; how many.

    :raises OSError: a file cannot be read or written
    """
    return sum(_mask_file(path, addresses) for path in _files(folder))


def left(folder: Path, addresses: Addresses) -> list[Path]:
    """Files that still have one."""
    return [path for path in _files(folder) if _has(path, addresses)]


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def _mask_file(path: Path, addresses: Addresses) -> int:
    try:
        return (
            _mask_packed(path, addresses) if path.suffix == ".gz" else _mask_open(path, addresses)
        )
    except FileNotFoundError:  # turned over meanwhile, and gone
        return 0


def _mask_open(path: Path, addresses: Addresses) -> int:
    done = 0
    with path.open("r+b") as file:
        for at, data in _blocks(file):
            for start, end in addresses.places(data):
                os.pwrite(file.fileno(), _mask(end - start), at + start)
                done += 1
        if done:
            os.fdatasync(file.fileno())
    return done


def _blocks(file: BinaryIO | gzip.GzipFile) -> Iterator[tuple[int, bytes]]:
    """Pieces that end with a line, so that no address is cut; a longer line is."""
    at, kept = 0, b""
    while block := file.read(_BLOCK):
        data = kept + block
        whole = data.rfind(b"\n") + 1 or max(0, len(data) - _LONGEST)
        yield at, data[:whole]
        at, kept = at + whole, data[whole:]
    yield at, kept


def _mask_packed(path: Path, addresses: Addresses) -> int:
    """Nobody appends to one: it is replaced in one step."""
    try:
        with gzip.open(path) as file:
            data, done = addresses.masked(file.read())
    except (OSError, EOFError, zlib.error) as exc:
        if isinstance(exc, FileNotFoundError):
            raise
        return 0  # damaged: nobody can read an address in it, `scrapy logs` neither
    if done:
        partial = path.with_name(path.name + ".masked")
        with partial.open("wb") as out:
            out.write(gzip.compress(data))
            out.flush()
            os.fsync(out.fileno())
        partial.chmod(path.stat().st_mode & 0o777)
        partial.replace(path)
    return done


def _has(path: Path, addresses: Addresses) -> bool:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                return any(True for _, data in _blocks(packed) for _ in addresses.places(data))
        with path.open("rb") as file:
            return any(True for _, data in _blocks(file) for _ in addresses.places(data))
    except (FileNotFoundError, EOFError, zlib.error, gzip.BadGzipFile):
        return False
