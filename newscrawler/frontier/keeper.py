"""The process beside one embedded redis-server: its parent, which ends it when
nobody uses it any more.

Each user of the server holds a shared lock (flock) on ``users.lock``. The kernel takes the
lock away when its process ends, whatever ended it: an exit, Ctrl-C, SIGTERM, SIGKILL, a
crash. Twice a second the keeper tries to take the lock for itself; where it gets it, nobody
is left, and the server is told to end. It ends, too, where its folder was deleted, and the
kernel ends it where the keeper dies.

redis_server.py runs the text of this file with ``python -I -S``: it needs nothing but the standard
library and takes 8 MB. It must not import anything of this package.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: Seconds between two looks: this long a server outlives its last user.
LOOK_S = 0.5
#: Seconds that the server has to write its last data when it is told to end.
END_S = 60.0
PR_SET_PDEATHSIG = 1


def keep(job: dict[str, Any]) -> None:
    """Starts ``job["command"]`` and stays until it has ended. Never returns.

    :param job: command, folder, socket, start_lock, users_lock, environment (added to ours),
        lock_fd (an open file whose lock the server keeps)
    """
    if os.fork():
        os._exit(0)  # who started us goes on
    os.setsid()
    folder = Path(job["folder"])
    known = folder.stat()
    tie = tied()
    server = subprocess.Popen(
        job["command"],
        stdin=subprocess.DEVNULL,
        pass_fds=[job["lock_fd"]],
        env={**os.environ, **job["environment"]},
        preexec_fn=tie,
    )
    os.close(job["lock_fd"])  # from here on it is locked for as long as the server lives
    os.chdir("/")
    while server.poll() is None:
        time.sleep(LOOK_S)
        if not _is_same(folder, known):
            # Its own end removes the socket's path, which may be that of a server of
            # a new folder by now.
            if Path(job["socket"]).exists():
                server.kill()
            _end(server)
        else:
            with _nobody(job["start_lock"], job["users_lock"]) as is_unused:
                if is_unused:
                    _end(server)
    os._exit(0)


def tied() -> Callable[[], None]:
    """What makes a child die with this process; run between fork and exec."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    keeper = os.getpid()

    def tie() -> None:
        if library is not None:
            library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != keeper:
                os._exit(1)

    return tie


def _is_same(folder: Path, known: os.stat_result) -> bool:
    try:
        return os.path.samestat(folder.stat(), known)
    except OSError:
        return False


@contextlib.contextmanager
def _nobody(start_lock: str, users_lock: str) -> Iterator[bool]:
    """Whether nobody uses the server. As long as the context lasts nobody can begin to."""
    with contextlib.ExitStack() as files:
        try:
            for path in (start_lock, users_lock):  # in this order, as redis_server.py takes them
                file = files.enter_context(Path(path).open("a"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # held, or the folder is just being deleted
            yield False
            return
        yield True


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(END_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
