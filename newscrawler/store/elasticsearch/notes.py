"""Small documents of one index of their own: what is known of a task that one process of a fleet
does at a time, and who does it.

Written with external versions: of two that write at once, one is refused.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Any

from newscrawler.store.base import StoreUnavailable
from newscrawler.store.elasticsearch.connection import Server

#: Seconds that a claim which is not renewed stands, by the clock of the process that waits for it.
CLAIM_S = 20.0
_MOST = 10_000
MAPPING: dict[str, Any] = {
    "dynamic": "strict",
    "_meta": {"schema": 1},
    "properties": {
        "kind": {"type": "keyword"},
        "at": {"type": "date", "format": "epoch_millis"},
        "body": {"type": "object", "enabled": False},
    },
}


class Notes:
    """``index`` is made when it is first needed."""

    def __init__(
        self, server: Server, index: str, now_ms: Callable[[], int], claim_s: float = CLAIM_S
    ) -> None:
        self._server, self._index, self._now_ms = server, index, now_ms
        self._claim_s = claim_s
        self._is_made = False
        self._holder = f"{socket.gethostname()}-{os.getpid()}-{token_hex(4)}"
        self._seen: tuple[int, float] = (0, 0.0)  # version of another's claim, since when

    # ------------------------------------------------------------------ the claim
    async def hold(self) -> bool:
        """Takes or renews the claim. False: another process has it."""
        found = await self.get("claim")
        version = found["_version"] if found else 0
        is_ours = found is not None and found["_source"]["body"]["holder"] == self._holder
        if found is not None and not is_ours and found["_source"]["body"]["holder"]:
            now = time.monotonic()
            if self._seen[0] != version:
                self._seen = (version, now)
            if now - self._seen[1] < self._claim_s:
                return False
        return await self.write("claim", {"holder": self._holder}, "claim", version + 1)

    async def let_go(self) -> None:
        """So that nobody has to wait for the end of the claim."""
        with suppress(StoreUnavailable):  # it ends by itself
            found = await self.get("claim") if self._is_made else None
            if found is not None and found["_source"]["body"]["holder"] == self._holder:
                await self.write("claim", {"holder": ""}, "claim", found["_version"] + 1)

    # ------------------------------------------------------------------ documents
    async def get(self, name: str) -> dict[str, Any] | None:
        await self._make()
        found = await self._server.look(self._index, [name])
        return found[0] if found else None

    async def all(self, kind: str) -> list[dict[str, Any]]:
        await self._make()
        await self._server.ask(lambda es: es.indices.refresh(index=self._index))
        body = {"size": _MOST, "query": {"term": {"kind": kind}}, "sort": [{"at": "asc"}]}
        found = await self._server.ask(lambda es: es.search(index=self._index, body=body))
        hits: list[dict[str, Any]] = found["hits"]["hits"]
        return hits

    async def write(self, name: str, body: dict[str, Any], kind: str, version: int) -> bool:
        """False: another process was first.

        :raises StoreUnavailable: the note is refused
        """
        await self._make()
        operations: list[dict[str, Any]] = [
            {"index": {"_id": name, "version": version, "version_type": "external"}},
            {"kind": kind, "at": self._now_ms(), "body": body},
        ]
        ((status, reason),) = await self._server.bulk(self._index, operations)
        if status >= 300 and status != 409:
            raise StoreUnavailable(f"{self._server.name}: {name} is refused: {reason}")
        return status < 300

    async def write_all(
        self, bodies: Mapping[str, tuple[int, dict[str, Any]]], kind: str
    ) -> list[tuple[int, str]]:
        """Name -> time in ms and body, whatever was there before; status and reason of each."""
        await self._make()
        operations: list[dict[str, Any]] = []
        for name, (at, body) in bodies.items():
            operations += [{"index": {"_id": name}}, {"kind": kind, "at": at, "body": body}]
        return await self._server.bulk(self._index, operations)

    async def forget(self, names: Sequence[str]) -> None:
        operations = [{"delete": {"_id": name}} for name in names]
        if operations:
            await self._server.ask(lambda es: es.bulk(index=self._index, operations=operations))

    async def _make(self) -> None:
        if not self._is_made:
            await self._server.make(self._index, MAPPING)
            self._is_made = True
