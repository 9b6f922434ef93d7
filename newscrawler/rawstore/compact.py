"""WARC files of which some records went, under the references that they always had.

A reference names file, offset and length, and stands in articles, their versions, the frontier and
the samples of selector sets: none of these is touched. The file ``x.warc.gz`` becomes
``x.compact.warc.gz``, whose first record says where each record of ``x.warc.gz`` stands now. It is
written beside the old file, made durable, named, and only then the old file goes; while both are
there the old one is read. So a crash at any point loses nothing, and the next run ends the work.
"""

from __future__ import annotations

import os
import shutil
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from newscrawler.rawstore import files, record
from newscrawler.rawstore.record import HEAD_BYTES, RawPage, RecordError
from newscrawler.rawstore.sealing import Keys

SUFFIX = ".compact" + files.SUFFIX
PART, BODY = ".part", ".body.part"
#: Offset in the old file, offset behind the map, length in the old file, length now.
_PLACE = struct.Struct("<QQII")
_TYPE = b"application/vnd.newscrawler.places"

#: ``(reference, page)`` -> whether it stays.
Keep = Callable[[str, RawPage], bool]
#: A record in another form.
Change = Callable[[bytes], bytes]


@dataclass(slots=True)
class Compacted:
    """Of one file; ``path`` is None where nothing of it is left."""

    path: Path | None
    kept: int = 0
    dropped: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


def is_compact(name: str) -> bool:
    return name.endswith(SUFFIX)


def original_of(name: str) -> str:
    """The name that references have."""
    return name.removesuffix(SUFFIX) + files.SUFFIX if is_compact(name) else name


def compact_of(name: str) -> str:
    return original_of(name).removesuffix(files.SUFFIX) + SUFFIX


class Places:
    """Where the records of an old file stand in its compacted one."""

    def __init__(self, rows: list[tuple[int, int, int, int]], base: int) -> None:
        self._rows = rows  # in the order of the old offsets
        self.base = base  # bytes of the map

    def of(self, offset: int, length: int) -> tuple[int, int] | None:
        """Offset and length now; None: the record went."""
        at = bisect_left(self._rows, (offset, 0, 0, 0))
        if at < len(self._rows) and self._rows[at][0] == offset and self._rows[at][2] == length:
            return self.base + self._rows[at][1], self._rows[at][3]
        return None

    def inverse(self) -> dict[int, tuple[int, int]]:
        """Offset now -> offset and length in the old file."""
        return {self.base + new: (old, length) for old, new, length, _ in self._rows}


def places_in(member: bytes) -> Places:
    """:raises RecordError: it is no map"""
    kind, content = record.metadata(member)
    if kind != _TYPE or len(content) % _PLACE.size:
        raise RecordError("a compacted file does not begin with its map")
    return Places(list(_PLACE.iter_unpack(content)), len(member))


def read_places(file: BinaryIO) -> Places:
    """:raises RecordError:"""
    file.seek(0)
    length = record.member_length(file.read(HEAD_BYTES))
    if length is None:
        raise RecordError("a compacted file does not begin with its map")
    file.seek(0)
    return places_in(file.read(length))


def members(file: BinaryIO, size: int, name: str) -> Iterator[tuple[str, int, int]]:
    """``(reference, offset, length)`` of each record; the reference as articles have it.

    :raises RecordError: at the first place where no whole record stands
    """
    if not is_compact(name):
        for offset, length in files.members(file, size):
            yield f"{name}:{offset}:{length}", offset, length
        return
    old = read_places(file).inverse()
    for offset, length in files.members(file, size):
        if offset in old:
            old_offset, old_length = old[offset]
            yield f"{original_of(name)}:{old_offset}:{old_length}", offset, length


def without_shadows(paths: list[Path]) -> list[Path]:
    """Files that are read: not a compacted one whose old file is still there."""
    names = {path.name for path in paths}
    return [
        path for path in paths if not is_compact(path.name) or original_of(path.name) not in names
    ]


def drop_parts(folder: Path) -> None:
    """Removes what a run that was killed was still writing; the files themselves are there."""
    for left in folder.glob("*" + PART):
        left.unlink(missing_ok=True)


def compact(path: Path, keep: Keep, keys: Keys, *, dry_run: bool = False) -> Compacted | None:
    """Writes a complete file anew without the pages that go. None: all of them stay.

    A page that is damaged stays as it is.

    :raises RawLocked: a page is sealed with a key that is not here
    :raises RecordError: where one page ends and the next begins cannot be told; nothing was changed
    """
    name = path.name
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        staying: list[tuple[str, int, int]] = []  # reference, offset and length now
        done = Compacted(None, bytes_before=size)
        for ref, offset, length in members(file, size, name):
            file.seek(offset)
            if _stays(file.read(length), ref, keep, keys, done):
                staying.append((ref, offset, length))
        if not done.dropped:
            return None
        if not done.kept:
            if not dry_run:
                # First what a killed run left beside it, which would be read in its place.
                path.with_name(compact_of(name)).unlink(missing_ok=True)
                path.unlink(missing_ok=True)
                files.sync_folder(path.parent)
            return done
        done.bytes_after = sum(length for _, _, length in staying)
        if not dry_run:
            done.path = _write(file, path, staying, lambda member: member)
            done.bytes_after = done.path.stat().st_size
    return done


def rekey(path: Path, keys: Keys) -> Path | None:
    """Seals every page of a complete file with the first key. None: all of them are.

    :raises RawLocked: one is sealed with a key that is not here; the file is as before
    :raises RecordError: where one page ends and the next begins cannot be told; so it is then too
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        staying = list(members(file, size, path.name))
        is_due = False
        for _, offset, length in staying:
            file.seek(offset)
            is_due |= _resealed(file.read(length), keys)[1]
        if not is_due:
            return None
        return _write(file, path, staying, lambda member: _resealed(member, keys)[0])


def _resealed(member: bytes, keys: Keys) -> tuple[bytes, bool]:
    """Seals a member with the present key, and whether that changed it. A damaged one stays."""
    try:
        made = keys.resealed(member)
    except RecordError:
        return member, False
    return made, made is not member


def _stays(member: bytes, ref: str, keep: Keep, keys: Keys, done: Compacted) -> bool:
    try:
        inner = keys.opened(member)
        page = record.decode(inner)
    except RecordError:
        done.kept += 1
        return True
    if page is None:  # the head of the file, or the place of a record that was taken out
        return record.kind_of(inner) == b"warcinfo"
    if keep(ref, page):
        done.kept += 1
        return True
    done.dropped += 1
    return False


def _write(file: BinaryIO, path: Path, staying: list[tuple[str, int, int]], change: Change) -> Path:
    target = path.with_name(compact_of(path.name))
    partial = target.with_name(target.name + PART)
    body = target.with_name(target.name + BODY)
    rows, at = [], 0
    with body.open("w+b") as changed, partial.open("wb") as out:
        for ref, offset, length in sorted(staying, key=lambda row: _place_of(row[0])):
            file.seek(offset)
            member = change(file.read(length))
            changed.write(member)
            rows.append(_PLACE.pack(_place_of(ref)[0], at, _place_of(ref)[1], len(member)))
            at += len(member)
        out.write(record.encode_metadata(_TYPE, b"".join(rows)))
        changed.seek(0)
        shutil.copyfileobj(changed, out)
        out.flush()
        os.fsync(out.fileno())
    body.unlink()
    partial.replace(target)
    files.sync_folder(path.parent)
    if path != target:
        path.unlink()
        files.sync_folder(path.parent)
    return target


def _place_of(ref: str) -> tuple[int, int]:
    _, offset, length = ref.rsplit(":", 2)
    return int(offset), int(length)
