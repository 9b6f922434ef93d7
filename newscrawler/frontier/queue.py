"""The frontier of the fleet: what to fetch next, for every worker, in Redis.

See docs/frontier.md for the states, the scripts and the table status -> outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from newscrawler.frontier.types import (
    Ack,
    AddResult,
    Counts,
    DomainPolicy,
    Fetched,
    FrontierConfig,
    FrontierError,
    FrontierRefused,
    FrontierUnavailable,
    Lease,
    Record,
    RobotsAnswer,
    RobotsEntry,
    Step,
)
from newscrawler.items import Link

__all__ = [
    "Ack",
    "AddResult",
    "Counts",
    "DomainPolicy",
    "Fetched",
    "Frontier",
    "FrontierConfig",
    "FrontierError",
    "FrontierRefused",
    "FrontierUnavailable",
    "Lease",
    "Record",
    "RobotsAnswer",
    "RobotsEntry",
    "Step",
]


class Frontier:
    """One worker's client of the shared frontier. Signatures first; being filled in."""

    def __init__(self, client: Any, config: FrontierConfig, worker: str) -> None:
        self.client = client
        self.config = config
        self.worker = worker

    async def open(self) -> None:
        """Load the scripts and free what this worker id still holds from before a crash."""
        raise NotImplementedError

    async def close(self) -> None:
        """Give back the leases that were not started. Does not close the client."""
        raise NotImplementedError

    async def put_domains(self, policies: Iterable[DomainPolicy]) -> None:
        raise NotImplementedError

    async def add(self, links: Sequence[Link]) -> AddResult:
        raise NotImplementedError

    async def step(self, k: int, acks: Sequence[Ack] = (), fetched: Sequence[Fetched] = ()) -> Step:
        raise NotImplementedError

    async def renew(self, leases: Sequence[Lease]) -> list[bytes]:
        raise NotImplementedError

    async def give_back(self, leases: Sequence[Lease]) -> int:
        raise NotImplementedError

    async def counts(self) -> Counts:
        raise NotImplementedError

    async def report(self) -> dict[str, Any]:
        raise NotImplementedError

    async def record(self, url_id: bytes, domain: str) -> Record | None:
        raise NotImplementedError

    async def robots(self, domain: str) -> RobotsEntry | None:
        raise NotImplementedError

    async def set_clock(self, factor: float, offset_ms: int | None = None) -> None:
        """now = TIME * factor + offset; ``None`` = the simulated clock starts at the real time."""
        raise NotImplementedError

    def seen_local(self, raw_url: str) -> bool:
        """True: this raw href (joined, not canonical) was confirmed by Redis lately: do not offer it."""
        raise NotImplementedError

    def seen_id(self, url_id: bytes) -> bool:
        """The same by url id, for another spelling of a known URL. Never ask for ``revisit`` links."""
        raise NotImplementedError

    def note_seen(self, raw_url: str, url_id: bytes | None = None) -> None:
        """Remember which URL a raw href is; it counts as seen once Redis confirmed the id. ``None``: it
        was refused by a rule and is never to be offered (counts at once)."""
        raise NotImplementedError
