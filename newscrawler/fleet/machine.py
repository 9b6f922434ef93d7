"""What the host of a worker has and has free: by this the fleet chooses where the next one runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from newscrawler.utils.numbers import is_digits

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Machine:
    """Of a container what its cgroup (version 2) allows, of any other host all that there is."""

    cores: float
    free_cores: float  # that nobody used since the last look
    memory_bytes: int
    free_memory_bytes: int  # that a new program can have without swapping


class MachineMeter:
    """:param proc, cgroup: where the kernel shows them"""

    def __init__(self, proc: Path = PROC, cgroup: Path = CGROUP) -> None:
        self._proc = proc
        self._cgroup = cgroup
        self._ticks = self._cpu_ticks()

    def look(self) -> Machine | None:
        """None where the kernel does not tell it (not Linux)."""
        memory = self._memory()
        before, self._ticks = self._ticks, self._cpu_ticks()
        if memory is None or before is None or self._ticks is None:
            return None
        idle, total = self._ticks[0] - before[0], self._ticks[1] - before[1]
        cores = self._cores()
        idle_cores = (os.cpu_count() or 1) * idle / total if total > 0 else cores
        size, free = memory
        return Machine(cores, round(min(cores, max(0.0, idle_cores)), 2), size, free)

    def _cores(self) -> float:
        cores = float(len(os.sched_getaffinity(0)))
        quota, _, period = self._limit("cpu.max").partition(" ")
        if is_digits(quota) and is_digits(period) and int(period):
            cores = min(cores, int(quota) / int(period))
        return round(cores, 2)

    def _cpu_ticks(self) -> tuple[int, int] | None:
        """(idle, all) since the host began."""
        try:
            line = (self._proc / "stat").read_text(encoding="ascii").partition("\n")[0]
            # user nice system idle iowait irq softirq steal; guests are in user already
            ticks = [int(word) for word in line.split()[1:9]]
            return ticks[3] + ticks[4], sum(ticks)
        except (OSError, ValueError, IndexError):
            return None

    def _memory(self) -> tuple[int, int] | None:
        """(all, free) bytes."""
        try:
            lines = (self._proc / "meminfo").read_text(encoding="ascii").splitlines()
            found = {
                name: int(rest.split()[0]) * 1024
                for name, _, rest in (line.partition(":") for line in lines)
                if name in ("MemTotal", "MemAvailable")
            }
            size, free = found["MemTotal"], found["MemAvailable"]
        except (OSError, ValueError, KeyError, IndexError):
            return None
        limit, used = self._limit("memory.max"), self._limit("memory.current")
        if is_digits(limit) and is_digits(used):
            size = min(size, int(limit))
            free = min(free, max(0, int(limit) - int(used)))
        return size, free

    def _limit(self, name: str) -> str:
        try:
            return (self._cgroup / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""
