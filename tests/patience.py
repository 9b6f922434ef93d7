"""How long a test waits before it says that something does not happen.

A limit is meant for a machine with nothing else to do. Where several tests share the processors, or
where they are slow, the same work takes as many times longer as there is work that waits for a
processor, and the test is to say what the program does and not what the machine does.
"""

from __future__ import annotations

import os
import time

#: Times a limit, at most.
MOST = 4.0


def patient(limit_s: float) -> float:
    """The limit on the machine as it is loaded now."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return limit_s * min(MOST, max(1.0, waiting))


class Deadline:
    """``limit_s`` from now, and longer while the machine is loaded."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._begun = time.monotonic()

    def is_over(self) -> bool:
        return time.monotonic() - self._begun >= patient(self.limit_s)

    @property
    def left_s(self) -> float:
        return max(0.0, self._begun + patient(self.limit_s) - time.monotonic())
