"""Raw records that are taken out of files that others read and write meanwhile.

A record's bytes are overwritten by a member of the same length that says nothing, so every
reference to the other records of the file stays true. A file in an object store is fetched,
changed and put back, whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from newscrawler.rawstore import compact, record
from newscrawler.rawstore.errors import RawNotFound, RawStoreUnavailable
from newscrawler.rawstore.raw_store import RawStore, RemoteRawStore, parse_ref
from newscrawler.rawstore.record import RawPage
from newscrawler.rawstore.sealing import Keys
from newscrawler.rawstore.writer import explain

#: ``(reference, page)`` -> whether it is to go.
Judge = Callable[[str, RawPage], bool]


def erase(
    store: RawStore, judge: Judge, about_to: Callable[[list[str]], None], say: Callable[[str], None]
) -> list[str]:
    """Takes out every page that is judged so; their references. Reads every record.

    :param about_to: told the references of a file before it is changed: a process that is killed
        leaves at most these half done, see :func:`erase_named`
    :raises RawStoreUnavailable: what cannot be read or written
    """
    gone: dict[str, None] = {}  # one may stand in two files: see _files()
    compact.drop_parts(store.folder)
    for number, (path, put_back) in enumerate(_files(store), 1):
        name = path.name.removesuffix(".open")
        found = list(_judged(path, name, judge, store.keys))
        if found:
            about_to([ref for ref, _, _ in found])
            _overwrite(path, [(offset, length) for _, offset, length in found])
            put_back()
            gone |= dict.fromkeys(ref for ref, _, _ in found)
        say(f"{number:,} files of raw pages, {len(gone):,} pages taken out")
    return list(gone)


def erase_named(store: RawStore, refs: Iterable[str]) -> int:
    """Takes out the records of these references, whatever stands there. How many there are."""
    by_file: dict[str, list[tuple[int, int]]] = {}
    for ref in refs:
        name, offset, length = parse_ref(ref)
        by_file.setdefault(name, []).append((offset, length))
    done = 0
    for path, put_back in _files(store, set(by_file)):
        places = by_file[compact.original_of(path.name.removesuffix(".open"))]
        if compact.is_compact(path.name):
            with path.open("rb") as file:
                known = compact.read_places(file)
            moved = (known.of(offset, length) for offset, length in places)
            places = [place for place in moved if place is not None]
        _overwrite(path, places)
        put_back()
        done += len(places)
    return done


def _files(
    store: RawStore, names: set[str] | None = None
) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Every file as a local one, and what puts it back where it came from.

    Also those that are not read now: the copy in the object store of a file that is still in the
    spool, a compacted file whose old one is still there. A crash has left both, and what is read
    next may be the other one.
    """
    for path in store.local_files(shadows=True):
        name = path.name.removesuffix(".open")
        if names is None or compact.original_of(name) in names:
            yield path, lambda: None
    if not isinstance(store, RemoteRawStore):
        return
    for name in store.remote.names(shadows=True):
        if names is not None and compact.original_of(name) not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="newscrawler-raw-") as folder:
            copy = Path(folder) / name
            store.remote.download(name, copy)
            # Called before the loop goes on.
            yield copy, lambda: store.remote.upload(copy)  # noqa: B023


def _judged(path: Path, name: str, judge: Judge, keys: Keys) -> Iterator[tuple[str, int, int]]:
    try:
        file = path.open("rb")
    except FileNotFoundError:  # completed since the folder was listed
        file = path.with_name(name).open("rb")
    with file:
        try:
            size = os.fstat(file.fileno()).st_size
            for ref, offset, length in compact.members(file, size, name):
                file.seek(offset)
                try:
                    page = record.decode(keys.opened(file.read(length)))
                except record.RecordError:
                    continue  # `scrapy store check` names it
                if page is not None and judge(ref, page):
                    yield ref, offset, length
        except record.RecordError:
            return  # the end of a file that is being written to, or damaged from here on


def _overwrite(path: Path, places: Iterable[tuple[int, int]]) -> None:
    try:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:  # completed since
            fd = os.open(path.with_name(path.name.removesuffix(".open")), os.O_RDWR | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            for offset, length in places:
                if offset + length > size:
                    raise RawNotFound(f"no raw page at {path.name}:{offset}:{length}")
                os.pwrite(fd, record.padding(length), offset)
            os.fdatasync(fd)
        finally:
            os.close(fd)
    except record.RecordError as exc:
        raise RawStoreUnavailable(f"a record of {path} cannot be taken out: {exc}") from exc
    except OSError as exc:
        raise explain(exc, path.parent) from exc
