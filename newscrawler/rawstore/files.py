"""Walking WARC files and mending their torn tails. Local files only."""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from newscrawler.rawstore.record import HEAD_BYTES, RecordError, inflate, member_length

log = logging.getLogger(__name__)

SUFFIX = ".warc.gz"
#: What a file is called while a worker writes to it; references name it without this.
OPEN_SUFFIX = SUFFIX + ".open"
# After a loss of power any part that was not yet flushed may be a hole, not only the last record. A
# group commit flushes at most a few MB, so checking this much at the end is enough.
_VERIFY_BYTES = 32 * 1024 * 1024
_CHUNK = 1024 * 1024


def _length_by_inflating(file: BinaryIO, offset: int) -> int:
    """Length of a member whose header does not say it (a file that another program wrote)."""
    inflater = zlib.decompressobj(31)
    file.seek(offset)
    read = 0
    while not inflater.eof:
        chunk = file.read(_CHUNK)
        if not chunk:
            raise RecordError("gzip member is cut off")
        read += len(chunk)
        try:
            while chunk and not inflater.eof:
                inflater.decompress(chunk, _CHUNK)
                chunk = inflater.unconsumed_tail
        except zlib.error as exc:
            raise RecordError(f"damaged gzip member ({exc})") from exc
    return read - len(inflater.unused_data)


def members(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """``(offset, length)`` of each gzip member, in order; the content is not inflated.

    :raises RecordError: at the first place where no whole member stands
    """
    offset = 0
    while offset < size:
        file.seek(offset)
        length = member_length(file.read(HEAD_BYTES))
        if length is None:
            length = _length_by_inflating(file, offset)
        if length <= HEAD_BYTES or offset + length > size:
            raise RecordError(f"gzip member at {offset} is cut off")
        yield offset, length
        offset += length


def whole_length(file: BinaryIO, size: int) -> tuple[int, int]:
    """Bytes and number of the whole records at the start of a file; what follows is torn."""
    found: list[tuple[int, int]] = []
    try:
        for place in members(file, size):
            found.append(place)
    except RecordError:
        pass
    end = found[-1][0] + found[-1][1] if found else 0
    for number, (offset, length) in enumerate(found):
        if offset + length < end - _VERIFY_BYTES:
            continue
        file.seek(offset)
        try:
            inflate(file.read(length))
        except RecordError:
            return offset, number
    return end, len(found)


def sync_folder(folder: Path) -> None:
    """Makes a new or renamed file of a folder survive a loss of power."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def mend(path: Path) -> bool:
    """Closes a file whose writer is dead: cut to its last whole record and given its final name.

    A file that holds no page is removed. Returns False when a living writer still holds it.
    """
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        return False  # another worker that starts at the same time was first
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if not path.exists():
            return False
        size = os.fstat(file.fileno()).st_size
        good, records = whole_length(file, size)
        if records <= 1:  # nothing, or the warcinfo record alone
            path.unlink()
        else:
            file.truncate(good)
            os.fsync(file.fileno())
            path.rename(path.with_name(path.name.removesuffix(".open")))
        sync_folder(path.parent)
    log.info("raw file mended file=%s records=%d cut_bytes=%d", path.name, records, size - good)
    return True


def mend_folder(folder: Path) -> int:
    """Mends what dead writers of this machine left in a folder; returns how many
    files that were."""
    return sum(mend(path) for path in sorted(folder.glob("*" + OPEN_SUFFIX)))
