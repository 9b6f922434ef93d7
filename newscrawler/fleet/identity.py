"""Which process a worker is, and whether one of this machine is still there."""

from __future__ import annotations

import os
import re
import socket
import uuid
from pathlib import Path


def worker_id(job: str | None = None) -> str:
    """Names this process in leases: host, pid, and the job of scrapyd when there is one."""
    return f"{machine()}-{os.getpid()}-{(job or uuid.uuid4().hex)[:8]}"


#: The pid namespace of a machine that is no container (PROC_PID_INIT_INO in linux/proc_ns.h).
_OWN_PIDS = "pid:[4026531836]"


def machine() -> str:
    """Where a pid means one process: the host, and inside a container its pid namespace."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return socket.gethostname() + (
        "" if space == _OWN_PIDS else "." + (re.sub(r"\D", "", space) or "x")
    )


def is_dead_worker(worker: str) -> bool:
    """Whether a process of this machine that had this id has ended. False where it cannot be known:
    its leases then run out by themselves."""
    found = re.fullmatch(rf"{re.escape(machine())}-(\d+)-[^-]+", worker)
    if found is None:
        return False
    try:
        os.kill(int(found[1]), 0)  # asks only
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    return False
