"""Appends records to one WARC file at a time; the disk may refuse at any moment."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from newscrawler.rawstore import files, record
from newscrawler.rawstore.errors import RawStoreGone, RawStoreUnavailable

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_SOFTWARE = "newscrawler"


def explain(exc: OSError, folder: Path) -> RawStoreUnavailable:
    """The one line that tells a person what is wrong with the folder and what to do."""
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        try:
            free = f" ({shutil.disk_usage(folder).free // 1_000_000} MB free)"
        except OSError:
            free = ""
        advice = f"the disk is full{free}: free some space or set RAW_STORE to another place"
    elif exc.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        advice = (
            "the folder cannot be written to: check its rights or set RAW_STORE to another place"
        )
    elif exc.errno == errno.EFBIG:
        advice = (
            "the file is larger than allowed here: lower RAW_ROTATE_BYTES or raise the limit"
            " (ulimit -f)"
        )
    else:
        advice = "check the disk or set RAW_STORE to another place"
    return RawStoreUnavailable(
        f"raw pages cannot be written to {folder}: {exc.strerror or exc}; {advice}"
    )


class WarcWriter:
    """The file of one worker in a folder: ``<worker>-<utc>-<serial>.warc.gz``, with ``.open``
    behind the name while it is written to. Every call may come from any thread.

    :param rotate_bytes: a new file is begun when this one has at least so many bytes
    :param rotate_s: or is so many seconds old
    :param on_closed: told the path of each file that is complete
    :param seal: encrypts a record; None: pages are readable by everybody
    """

    def __init__(
        self,
        folder: Path,
        worker: str,
        *,
        rotate_bytes: int,
        rotate_s: float,
        now: Callable[[], datetime],
        on_closed: Callable[[Path], None] | None = None,
        seal: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.folder = folder
        self.worker = _UNSAFE.sub("_", worker) or "worker"
        self.records = 0
        self.bytes = 0
        self._rotate_bytes = rotate_bytes
        self._rotate_s = rotate_s
        self._now = now
        self._on_closed = on_closed
        self._seal = seal
        self._lock = threading.RLock()
        self._serial = 0
        self._fd = -1
        self._path = folder  # of the open file, when _fd is not -1
        self._name = ""
        self._began: datetime | None = None
        self._end = 0  # bytes of whole records
        self._synced = 0
        self._lost = False  # records were given up after write() had returned for them
        self._warcinfo_id = ""

    def write(
        self,
        url: str,
        body: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        status: int,
        fetched: datetime,
        digest: bytes = b"",
    ) -> str:
        """Appends a page and returns its reference; durable only after :meth:`flush`.

        :raises RawStoreUnavailable: nothing of the record is left in the file
        """
        with self._lock:
            self._rotate_if_due()
            try:
                if self._fd < 0:
                    self._begin()
                member = record.encode_response(
                    url, body, headers, status, fetched, digest, self._warcinfo_id
                )
                if self._seal is not None:
                    member = self._seal(member)
                offset = self._append(member)
            except OSError as exc:
                raise explain(exc, self.folder) from exc
            self.records += 1
            self.bytes += len(member)
            return f"{self._name}:{offset}:{len(member)}"

    def flush(self) -> None:
        """Returns when all that was written survives a loss of power.

        :raises RawStoreUnavailable: nothing written since the last flush may be taken as stored
        """
        with self._lock:
            if self._lost:
                self._lost = False
                raise RawStoreUnavailable(
                    f"raw pages written to {self.folder} since the last flush may be lost: the file"
                    " had to be given up"
                )
            if self._fd < 0 or self._synced == self._end:
                return
            if not self._path.exists():
                self._synced = self._end
                self._abandon()
                raise RawStoreGone(
                    f"raw pages: {self._path} was deleted while it was written to; what it held is"
                    " lost"
                )
            end = self._end
            fd = os.dup(self._fd)  # so that a write may go on, and a rotation close it, meanwhile
        try:
            os.fdatasync(fd)
        except OSError as exc:
            # The kernel has dropped what it could not write and would say "done" the next time
            # (fsyncgate): this file is not written to again.
            with self._lock:
                self._synced = max(self._synced, end)  # this caller is told now
                self._abandon()
            raise explain(exc, self.folder) from exc
        finally:
            os.close(fd)
        with self._lock:
            self._synced = max(self._synced, end)

    def close(self) -> None:
        """Flushes and gives the file its final name. May be called twice."""
        with self._lock:
            self._finish()

    def _append(self, member: bytes) -> int:
        """Writes all of it or leaves the file as it was. Raises OSError."""
        offset = self._end
        view = memoryview(member)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            try:
                os.ftruncate(self._fd, offset)
                os.lseek(self._fd, offset, os.SEEK_SET)
            except OSError:
                # Mended at the next start; no later record stands behind the torn one.
                self._abandon()
            raise
        self._end = offset + len(member)
        return offset

    def _begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        while True:
            self._serial += 1
            self._began = self._now()
            stamp = f"{self._began:%Y%m%d%H%M%S}{self._began.microsecond // 1000:03d}"
            name = f"{self.worker}-{stamp}-{self._serial:05d}{files.SUFFIX}"
            path = self.folder / (name + ".open")
            try:
                fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
            except FileExistsError:
                continue
            fcntl.flock(
                fd, fcntl.LOCK_EX
            )  # tells others, for as long as this process lives, not to mend it
            if not path.exists():  # another worker mended it away between the two calls
                os.close(fd)
            elif (
                self.folder / name
            ).exists():  # complete, of a process of the same name in the same millisecond
                path.unlink()
                os.close(fd)
            else:
                break
        self._fd, self._path, self._name, self._end, self._synced = fd, path, name, 0, 0
        member, self._warcinfo_id = record.encode_warcinfo(
            name,
            self._began,
            {"software": _SOFTWARE, "format": "WARC File Format 1.1", "host": self.worker},
        )
        try:
            self._append(member)
            files.sync_folder(self.folder)
        except OSError:
            self._synced = self._end  # no page was in it
            self._abandon()
            path.unlink(missing_ok=True)
            raise

    def _rotate_if_due(self) -> None:
        if self._fd < 0 or self._began is None:
            return
        age_s = (self._now() - self._began).total_seconds()
        if self._end >= self._rotate_bytes or age_s >= self._rotate_s:
            self._finish()

    def _finish(self) -> None:
        if self._fd < 0:
            return
        final = self._path.with_name(self._name)
        try:
            os.fdatasync(self._fd)
            self._path.rename(final)
            files.sync_folder(self.folder)
        except OSError as exc:
            self._abandon()
            raise explain(exc, self.folder) from exc
        self._synced = self._end
        self._abandon()
        if self._on_closed is not None:
            self._on_closed(final)

    def _abandon(self) -> None:
        """Stops writing to the file as it is; the next flush fails when part of it
        was not yet durable."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._lost |= self._synced < self._end
            self._fd = -1
