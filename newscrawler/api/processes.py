"""`scrapy serve --processes N`: several processes answer at one address.

One process searches on some two processors at most, as half of a search needs the interpreter's
lock (docs/search.md). The address is bound once and inherited; whichever process is free takes the
next connection. This one only looks after the others, which end with it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any

logger = logging.getLogger(__name__)

#: A process for each processor is enough; more only share them.
MOST = 64
#: Seconds until one that died is started again, and that all have to end.
AGAIN_S, END_S = 1.0, 15.0
_LOOK_S = 0.05
#: Of Linux' prctl(2): the signal that the kernel sends when the parent has died.
_PR_SET_PDEATHSIG = 1


def supervise(count: int, work: Callable[[int], None]) -> int:
    """Runs ``work(0)`` to ``work(count - 1)`` in a process each until SIGINT or SIGTERM, or until
    one of them ends by itself: its exit code. One that is killed is started again. To be called
    before anything is opened that must not be inherited, from the main thread."""
    wanted: list[int] = []  # signals that came

    def stop(number: int, frame: FrameType | None) -> None:
        wanted.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    running: dict[int, int] = {}
    due = dict.fromkeys(range(count), 0.0)  # those that do not run, and when to start them
    code = 0
    try:
        while not wanted:
            for number in [one for one, at in due.items() if at <= time.monotonic()]:
                del due[number]
                running[_start(work, number, before)] = number
            time.sleep(_LOOK_S)
            for pid, status in _ended(running):
                number = running.pop(pid)
                if os.WIFEXITED(status):
                    code = os.WEXITSTATUS(status)
                    wanted.append(0)
                    continue
                logger.error(
                    "A process of the page was killed and is started again number=%d signal=%d",
                    number, os.WTERMSIG(status),
                )  # fmt: skip
                due[number] = time.monotonic() + AGAIN_S
    finally:
        _end(running)
        for number, handler in before.items():
            signal.signal(number, handler)
    return code


def _end(running: dict[int, int]) -> None:
    deadline = time.monotonic() + END_S
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    while running:
        for pid, _ in _ended(running):
            del running[pid]
        if time.monotonic() > deadline:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_S)


def _ended(running: Iterable[int]) -> list[tuple[int, int]]:
    """Process ids and statuses, as of waitpid."""
    found = [os.waitpid(pid, os.WNOHANG) for pid in running]
    return [(pid, status) for pid, status in found if pid]


def _start(work: Callable[[int], None], number: int, before: Mapping[signal.Signals, Any]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        for one, handler in before.items():
            signal.signal(one, handler)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == parent:  # else it died before that
            work(number)
        code = 0
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 1
    except BaseException:
        logger.exception("A process of the page failed number=%d", number)
    finally:
        logging.shutdown()
        os._exit(code)  # what the parent would do at its end is not for this one to do
