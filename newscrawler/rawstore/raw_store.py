"""The raw store: every changed article page as a site sent it, in a folder or under
any fsspec URL."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from newscrawler.rawstore import compact, files, record
from newscrawler.rawstore.errors import RawNotFound, RawStoreUnavailable
from newscrawler.rawstore.record import RawPage
from newscrawler.rawstore.sealing import MARKER, Keys
from newscrawler.rawstore.writer import WarcWriter, explain
from newscrawler.utils.numbers import whole_number
from newscrawler.utils.optional import missing

log = logging.getLogger(__name__)

#: A store opened under this worker name only reads: it writes, mends and uploads nothing.
READER = "reader"
#: Written at each start under a remote RAW_STORE, always under this name: deleting it would need
#: one more right.
PROBE = "newscrawler-can-write-here"
#: fsspec's file systems whose first part of the path is a bucket. It is made by the owner
#: of the account, never by us: their makedirs() would make one of each mistyped name. They
#: have no folders.
_WITH_BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
_ROTATE_BYTES = 256 * 1024 * 1024
_ROTATE_S = 3600.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


def parse_ref(ref: str) -> tuple[str, int, int]:
    """``file:offset:length``.

    :raises RawNotFound: it is not one; a file name with a path in it is not
    """
    name, _, rest = ref.partition(":")
    offset, length = map(whole_number, rest.partition(":")[::2])
    is_name = name.endswith(files.SUFFIX) and "/" not in name
    if not is_name or offset is None or length is None:
        raise RawNotFound(f"not a raw page reference (file:offset:length): {ref!r}")
    return name, offset, length


def _record(member: bytes, ref: str, keys: Keys) -> RawPage:
    try:
        page = record.decode(keys.opened(member))
    except record.RecordError as exc:
        raise RawNotFound(f"no raw page at {ref}: {exc}") from exc
    if page is None:
        raise RawNotFound(f"no raw page at {ref}: a record of another type")
    return page


class RawStore:
    """Made by :meth:`open`. Calls are quick and blocking; each may come from any thread."""

    def __init__(self, folder: Path, writer: WarcWriter | None, keys: Keys | None = None) -> None:
        self.folder = folder
        self.keys = keys or Keys([])
        self._writer = writer

    @classmethod
    def open(
        cls,
        uri: str,
        worker: str,
        *,
        rotate_bytes: int = _ROTATE_BYTES,
        rotate_s: float = _ROTATE_S,
        spool: Path | None = None,
        keys: Keys | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> RawStore:
        """A folder (path or file://…) or any other fsspec URL.

        :param worker: name of the writing process, one per process; READER for a
            store that only reads
        :param spool: where the files of a remote store are written until they are uploaded
        :param keys: what pages are sealed with and opened by
        :raises RawStoreUnavailable: it cannot be written to (unless READER) or
            is of an unknown kind
        """
        local = uri.removeprefix("file://")
        remote = RemoteFolder(local) if "://" in local else None
        folder = Path(local) if remote is None else (spool or Path("data") / "warc-spool")
        writer = None
        if worker != READER:
            _prepare(folder)
            if remote is not None:
                remote.prove()
            _prove_key(folder if remote is None else remote, keys)
            seal = keys.seal if keys else None
            writer = WarcWriter(
                folder, worker, rotate_bytes=rotate_bytes, rotate_s=rotate_s, now=now, seal=seal
            )
        if remote is None:
            return cls(folder, writer, keys)
        return RemoteRawStore(folder, writer, remote, keys)

    @property
    def records(self) -> int:
        return self._writer.records if self._writer else 0

    @property
    def written_bytes(self) -> int:
        """Compressed bytes written by this process."""
        return self._writer.bytes if self._writer else 0

    def write(
        self,
        url: str,
        body: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        status: int,
        fetched: datetime,
        digest: bytes = b"",
    ) -> str:
        """Stores an answer; returns its reference ``file:offset:length``. Durable
        after :meth:`flush`.

        :raises RawStoreUnavailable: disk full, read-only …; nothing of it is left in the file
        """
        if self._writer is None:
            raise RawStoreUnavailable(f"raw pages in {self.folder} were opened for reading only")
        return self._writer.write(url, body, headers, status, fetched, digest)

    def flush(self) -> None:
        """Returns when all that was written is on the disk (of the spool, for a remote store)."""
        if self._writer is not None:
            self._writer.flush()

    def read(self, ref: str) -> RawPage:
        """:raises RawNotFound: there is no such page (any more)"""
        name, offset, length = parse_ref(ref)
        return _record(self._member(name, offset, length), ref, self.keys)

    def scan(self, since: datetime | None = None) -> Iterator[tuple[str, RawPage]]:
        """Every page with its reference, file by file; with ``since`` those fetched
        at or after it."""
        for path in self.local_files():
            yield from _scan_file(path, since, self.keys)

    def verify(self) -> Iterator[tuple[str, str]]:
        """Reference and fault of every record, "" where it is as it was written; for a file that is
        damaged its name instead. What workers write meanwhile may be missing.

        :raises RawStoreUnavailable: a page is sealed with a key that is not here
        """
        for path in self.local_files():
            yield from _verify_file(path, self.keys)

    def close(self) -> None:
        """Flushes and completes the file. May be called twice."""
        if self._writer is not None:
            self._writer.close()

    def local_files(self, *, shadows: bool = False) -> list[Path]:
        """Those that are complete, and those that are being written to, by name.

        :param shadows: also compacted files whose old one is still there, and is read
        """
        if not self.folder.is_dir():
            return []
        names = {path.name for path in self.folder.iterdir()}
        found = sorted(
            self.folder / name
            for name in names
            if name.endswith(files.SUFFIX)
            # one that was completed while the folder was listed may be there under both names
            or (name.endswith(files.OPEN_SUFFIX) and name.removesuffix(".open") not in names)
        )
        return found if shadows else compact.without_shadows(found)

    def _member(self, name: str, offset: int, length: int) -> bytes:
        # Final, open, final again: the file may be renamed between the first two looks.
        for candidate in (name, name + ".open", name):
            try:
                with (self.folder / candidate).open("rb") as file:
                    return os.pread(file.fileno(), length, offset)
            except FileNotFoundError:
                continue
            except OSError as exc:
                raise RawStoreUnavailable(
                    f"raw pages cannot be read from {self.folder}: {exc}"
                ) from exc
        try:
            with (self.folder / compact.compact_of(name)).open("rb") as file:
                place = compact.read_places(file).of(offset, length)
                if place is None:
                    raise RawNotFound(f"the raw page {name}:{offset}:{length} was pruned")
                return os.pread(file.fileno(), place[1], place[0])
        except FileNotFoundError:
            raise RawNotFound(f"no raw file {name} in {self.folder}") from None
        except record.RecordError as exc:
            raise RawNotFound(f"no raw file {name} in {self.folder}: {exc}") from exc


def _prepare(folder: Path) -> None:
    """Makes the folder, proves that it can be written to, and mends what dead
    workers left there."""
    try:
        _probe(folder)
        files.mend_folder(folder)
    except OSError as exc:
        raise explain(exc, folder) from exc


def _probe(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"\0" * 4096)
        probe.flush()


def prove(uri: str) -> None:
    """Writes and removes a file there (under a remote store the file stays); mends
    and uploads nothing.

    :raises RawStoreUnavailable: it cannot be written to, or is of an unknown kind
    """
    local = uri.removeprefix("file://")
    if "://" in local:
        RemoteFolder(local).prove()
        return
    try:
        _probe(Path(local))
    except OSError as exc:
        raise explain(exc, Path(local)) from exc


def _opened(path: Path) -> tuple[BinaryIO, str] | None:
    """A file that was listed, and its name now: completed or compacted since. None: it went."""
    name = path.name.removesuffix(".open")
    for now in dict.fromkeys((path.name, name, compact.compact_of(name))):
        try:
            return path.with_name(now).open("rb"), now
        except FileNotFoundError:
            continue
    return None


def _scan_file(path: Path, since: datetime | None, keys: Keys) -> Iterator[tuple[str, RawPage]]:
    opened = _opened(path)
    if opened is None:  # mended away, uploaded or pruned
        return
    file, now = opened
    name = now.removesuffix(".open")
    with file:
        stat = os.fstat(file.fileno())
        if since is not None and stat.st_mtime < since.timestamp():
            return
        is_open = now != name
        for ref, offset, length in _whole_members(file, stat.st_size, name, is_open):
            file.seek(offset)
            try:
                page = record.decode(keys.opened(file.read(length)))
            except record.RecordError as exc:
                log.warning("raw record is damaged ref=%s reason=%s", ref, exc)
                continue
            if page is not None and (since is None or page.fetched >= since):
                yield ref, page


def _verify_file(path: Path, keys: Keys) -> Iterator[tuple[str, str]]:
    opened = _opened(path)
    if opened is None:  # mended away, uploaded or pruned
        return
    file, now = opened
    name = now.removesuffix(".open")
    is_open = now != name
    with file:
        size = os.fstat(file.fileno()).st_size
        try:
            for ref, offset, length in compact.members(file, size, name):
                file.seek(offset)
                yield ref, _fault_of(file.read(length), keys)
        except record.RecordError as exc:
            if not is_open:  # an open one may well end in half a record
                yield name, f"{exc}; what follows cannot be read"


def _fault_of(member: bytes, keys: Keys) -> str:
    """A sealed record is whole when what is in it is. Raises RawLocked."""
    try:
        return record.fault_of(member) or record.fault_of(keys.opened(member))
    except record.RecordError as exc:
        return str(exc)


def _prove_key(where: Path | RemoteFolder, keys: Keys | None) -> None:
    """Notes that pages are sealed there.

    :raises RawStoreUnavailable: they are, and there is no key: the next ones would not be
    """
    there = (where / MARKER).exists() if isinstance(where, Path) else where.exists(MARKER)
    if there and not keys:
        raise RawStoreUnavailable(
            f"raw pages in {where if isinstance(where, Path) else where.uri} are sealed and there"
            " is no key for the next ones: set RAW_KEY or RAW_KEY_FILE"
        )
    if keys and not there:
        text = b"Pages here are sealed; nothing is written without a key.\n"
        if isinstance(where, Path):
            (where / MARKER).write_bytes(text)
        else:
            where.call("pipe_file", where.at(MARKER), text)


def _whole_members(
    file: BinaryIO, size: int, name: str, is_open: bool
) -> Iterator[tuple[str, int, int]]:
    """Reference, offset and length of its records, up to where the file is damaged. An open one may
    well end in half a record."""
    try:
        yield from compact.members(file, size, name)
    except record.RecordError as exc:
        if not is_open:
            log.warning(
                "raw file is damaged, the rest of it is left out file=%s reason=%s", name, exc
            )


def uri_scheme(uri: str) -> str:
    return uri.partition("://")[0].lower()


def _one_line(exc: Exception) -> str:
    return " ".join(str(exc).split()) or type(exc).__name__


class RemoteFolder:
    """A folder in an object store, through fsspec."""

    def __init__(self, uri: str) -> None:
        from fsspec.core import url_to_fs

        self.uri = uri
        try:
            # A cached listing would hide what other workers upload from a process that lives long.
            self.fs, self.path = url_to_fs(uri, use_listings_cache=False)
        except (ImportError, ValueError) as exc:
            command = missing("s3") if uri.startswith(("s3://", "s3a://")) else None
            why = f"s3:// needs s3fs: {command}" if command else str(exc)
            raise RawStoreUnavailable(f"RAW_STORE={uri} cannot be opened: {why}") from exc

    def at(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """An fsspec call; what a vendor's client raises leaves as one of our errors."""
        try:
            return getattr(self.fs, method)(*args, **kwargs)
        except FileNotFoundError as exc:
            raise RawNotFound(f"not in {self.uri}: {exc}") from exc
        except Exception as exc:
            raise RawStoreUnavailable(
                f"raw pages in {self.uri} cannot be reached: {_one_line(exc)}"
            ) from exc

    @property
    def bucket(self) -> str | None:
        """None where the file system has none."""
        return self.path.split("/", 1)[0] if uri_scheme(self.uri) in _WITH_BUCKETS else None

    def _no_bucket(self, exc: Exception) -> RawStoreUnavailable:
        there_is_no = f"bucket {self.bucket}" if self.bucket else f"folder {self.path}"
        return RawStoreUnavailable(
            f"RAW_STORE={self.uri}: there is no {there_is_no} ({_one_line(exc)}); make it or"
            " correct RAW_STORE"
        )

    def _make_folder(self) -> None:
        if self.bucket is None:
            self.call("makedirs", self.path, exist_ok=True)

    def prove(self) -> None:
        """Writes one small file, so that a wrong bucket, key or address is found
        before the first page.

        :raises RawStoreUnavailable: with what is wrong, in one line
        """
        self._make_folder()
        try:
            self.call("pipe_file", self.at(PROBE), b"written at each start of a worker\n")
        except RawNotFound as exc:
            raise self._no_bucket(exc) from exc

    def names(self, *, shadows: bool = False) -> list[str]:
        """As :meth:`RawStore.local_files`.

        :raises RawStoreUnavailable: also when there is no such bucket, which is
            not the same as no pages
        """
        try:
            found = self.call("ls", self.path, detail=False)
        except RawNotFound as exc:
            if self.bucket is not None and not self.call("exists", self.bucket):
                raise self._no_bucket(exc) from exc
            return []
        paths = sorted(Path(n.rsplit("/", 1)[-1]) for n in found if n.endswith(files.SUFFIX))
        return [path.name for path in (paths if shadows else compact.without_shadows(paths))]

    def upload(self, path: Path) -> None:
        """:raises RawNotFound: the local file is gone"""
        target = self.at(path.name)
        self._make_folder()
        try:
            self.call("put_file", str(path), target)
            stored = self.call("info", target)["size"]
        except RawNotFound as exc:
            if path.exists():
                raise self._no_bucket(exc) from exc
            raise
        if stored != path.stat().st_size:
            raise RawStoreUnavailable(
                f"{target} has {stored} bytes after the upload, not {path.stat().st_size}"
            )

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        data: bytes = self.call("cat_file", self.at(name), start=offset, end=offset + length)
        return data

    def read_compacted(self, name: str, offset: int, length: int) -> bytes:
        """As :meth:`read_range` of a file of which some records went.

        :raises RawNotFound: the record was pruned, or the table of the file cannot be read
        """
        packed = compact.compact_of(name)
        size = record.member_length(self.read_range(packed, 0, record.HEAD_BYTES))
        try:
            places = compact.places_in(self.read_range(packed, 0, size or 0))
        except record.RecordError as exc:
            raise RawNotFound(f"no raw page at {name}:{offset}:{length}: {exc}") from exc
        place = places.of(offset, length)
        if place is None:
            raise RawNotFound(f"the raw page {name}:{offset}:{length} was pruned")
        return self.read_range(packed, *place)

    def has_all_of(self, path: Path) -> bool:
        """Whether a file of the spool was uploaded before. What stands here may have lost pages
        since (taken down, pruned), which the file of the spool still has."""
        try:
            stored = self.call("info", self.at(path.name))["size"]
        except RawNotFound:
            stored = None
        return stored == path.stat().st_size or self.exists(compact.compact_of(path.name))

    def exists(self, name: str) -> bool:
        return bool(self.call("exists", self.at(name)))

    def remove(self, name: str) -> None:
        self.call("rm_file", self.at(name))

    def download(self, name: str, target: Path) -> None:
        self.call("get_file", self.at(name), str(target))

    def modified(self, name: str) -> datetime | None:
        try:
            moment: datetime = self.call("modified", self.at(name))
        except RawNotFound:
            return None
        except RawStoreUnavailable as exc:
            if isinstance(exc.__cause__, NotImplementedError | KeyError):  # it keeps no such time
                return None
            raise
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class RemoteRawStore(RawStore):
    """Files are written to a local spool and uploaded when complete, by one
    thread beside the crawl."""

    def __init__(
        self,
        folder: Path,
        writer: WarcWriter | None,
        remote: RemoteFolder,
        keys: Keys | None = None,
    ) -> None:
        super().__init__(folder, writer, keys)
        self.remote = remote
        self._uploads = ThreadPoolExecutor(1, thread_name_prefix="raw-upload")
        if writer is not None:
            writer._on_closed = self._schedule
            self._schedule(folder)

    def _schedule(self, _: Path) -> None:
        self._uploads.submit(self._upload_complete)

    def _upload_complete(self) -> None:
        """All complete files of the spool, also what earlier runs could not upload. Only
        this thread runs it."""
        for path in sorted(self.folder.glob("*" + files.SUFFIX)):
            try:
                if not self.remote.has_all_of(path):
                    self.remote.upload(path)
                path.unlink()
            except (FileNotFoundError, RawNotFound):
                continue  # another worker on this machine shares the spool and was first
            except (RawStoreUnavailable, OSError) as exc:
                log.warning(
                    "raw file stays in the spool, tried again later file=%s reason=%s",
                    path.name,
                    exc,
                )
                return

    def _member(self, name: str, offset: int, length: int) -> bytes:
        try:
            return super()._member(name, offset, length)
        except RawNotFound:
            pass
        try:
            return self.remote.read_range(name, offset, length)
        except RawNotFound:
            return self.remote.read_compacted(name, offset, length)

    def scan(self, since: datetime | None = None) -> Iterator[tuple[str, RawPage]]:
        names = self.remote.names()
        local = {p.name.removesuffix(".open") for p in self.local_files()}
        yield from super().scan(since)
        for name in names:
            modified = self.remote.modified(name) if since is not None else None
            if name in local or (since is not None and modified is not None and modified < since):
                continue
            with tempfile.TemporaryDirectory() as folder:
                copy = self._fetched(name, Path(folder))
                if since is not None:
                    os.utime(
                        copy
                    )  # the copy is younger than what it holds; records are judged one by one
                yield from _scan_file(copy, since, self.keys)

    def verify(self) -> Iterator[tuple[str, str]]:
        names = self.remote.names()
        local = {p.name.removesuffix(".open") for p in self.local_files()}
        yield from super().verify()
        for name in names:
            if name not in local:
                with tempfile.TemporaryDirectory() as folder:
                    yield from _verify_file(self._fetched(name, Path(folder)), self.keys)

    def _fetched(self, name: str, folder: Path) -> Path:
        """A local copy; of the compacted file where it has taken the place of this one since."""
        try:
            self.remote.download(name, folder / name)
        except RawNotFound:
            name = compact.compact_of(name)
            self.remote.download(name, folder / name)
        return folder / name

    def close(self) -> None:
        """Completes the file and waits until the spool is uploaded, or the upload failed."""
        super().close()
        self._uploads.shutdown(wait=True)


def free_bytes(folder: Path) -> int:
    """Free space where raw pages go, for reports and `scrapy doctor`."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
