"""On which node the next worker runs: the one with the most room, by free CPU and free memory.

Not round robin: nodes differ in size, and other programs run on them. The room of a node is how
many more workers its free cores and its free memory hold, whichever is less. What a node has free
comes with the heartbeats of its workers (:mod:`newscrawler.fleet.machine`); workers that were
started and have not reached their load yet are taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

#: A node of which nothing is known yet: it never ran a worker of this fleet.
ASSUMED_CORES = 2.0
ASSUMED_MEMORY_BYTES = 4 * 1024**3
#: Rooms that differ by less than a part of so many of a worker are alike, as what is free wavers:
#: the node with fewer workers is taken.
ALIKE = 4


@dataclass(frozen=True, slots=True)
class Need:
    """What one worker takes."""

    cores: float = 1.0
    memory_bytes: int = 500 * 1024**2


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """``host``: nodes of one machine share its CPU and memory; "" = not known."""

    name: str
    host: str = ""
    free_cores: float = ASSUMED_CORES
    free_memory_bytes: int = ASSUMED_MEMORY_BYTES
    workers: int = 0  # there already, those that just start among them

    def room(self, need: Need) -> float:
        """Workers for which there is room; below 0 = it is overloaded."""
        return min(self.free_cores / need.cores, self.free_memory_bytes / need.memory_bytes)

    def has_memory(self, need: Need) -> bool:
        return self.free_memory_bytes >= need.memory_bytes


def taken(rooms: Iterable[NodeRoom], name: str, need: Need, workers: int = 1) -> list[NodeRoom]:
    """The rooms after ``workers`` more went to a node, and with it to its host."""
    rooms = list(rooms)
    host = next((room.host for room in rooms if room.name == name), "")
    return [_less(room, name, host, need, workers) for room in rooms]


def _less(room: NodeRoom, name: str, host: str, need: Need, workers: int) -> NodeRoom:
    is_same_host = bool(host) and room.host == host
    if room.name != name and not is_same_host:
        return room
    return replace(
        room,
        free_cores=room.free_cores - workers * need.cores,
        free_memory_bytes=room.free_memory_bytes - workers * need.memory_bytes,
        workers=room.workers + (workers if room.name == name else 0),
    )


def place(rooms: Sequence[NodeRoom], need: Need) -> str | None:
    """The node for the next worker; None: none has the memory for it. A node without a free core
    is taken when all others are as full: workers then share what there is."""
    fit = [room for room in rooms if room.has_memory(need)]
    if not fit:
        return None
    best = min(fit, key=lambda room: (-round(room.room(need) * ALIKE), room.workers, room.name))
    return best.name
