"""Who may write an index or the vectors: one process of the machine, told by a
lock file beside them.

Beside it, not inside: the folder is deleted and made anew under the lock. The kernel lets go of the
lock when the process ends, however it ends. The file holds what is wrong with the index, for others
to read.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from pathlib import Path

#: Seconds between two lines of the log about the same matter.
SAY_S = 60.0


class Lock:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._noted = ""

    @property
    def is_held(self) -> bool:
        return self._file is not None

    def take(self) -> bool:
        """False when another has it. Raises OSError."""
        if self._file is not None:
            return True
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        self._file = file
        self._noted = noted(self.path)  # by a process that was killed, perhaps
        return True

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def note(self, problem: str) -> None:
        """Notes what is wrong, "" when all is well. The holder's."""
        if self._file is None or problem == self._noted:
            return
        self._noted = problem
        with contextlib.suppress(OSError):  # a full disk: the log has it as well
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, problem.encode(), 0)


class Problem:
    """What keeps the holder of a lock from its work: noted in the lock's file for other processes,
    and told in the log at once and then each SAY_S.

    :param of: what the lines of the log are about, as "vectors /data/articles.vectors"
    :param meanwhile: what holds until it is mended
    """

    def __init__(self, lock: Lock, log: logging.Logger, of: str, meanwhile: str) -> None:
        self.text = ""
        self._lock, self._log = lock, log
        self._of, self._meanwhile = of, meanwhile
        self._said_at = float("-inf")

    def occurred(self, why: str) -> None:
        is_new = not self.text
        self.text = why
        self._lock.note(why)
        if self.may_say(0.0 if is_new else SAY_S):
            self._log.warning("%s: %s; %s", self._of, why, self._meanwhile)

    def ended(self) -> None:
        self._lock.note("")
        if self.text:
            self._log.warning("%s: works again", self._of)
            self.text = ""
            self._said_at = float("-inf")

    def may_say(self, every_s: float) -> bool:
        """Whether the last line, of progress as well, is so long ago; it is now then."""
        now = time.monotonic()
        if now - self._said_at < every_s:
            return False
        self._said_at = now
        return True


def noted(path: Path) -> str:
    """The last note of the holder of the lock."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
