"""A real redis-server of the suite's own: never an existing one, never a mock."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from newscrawler.frontier import connect, server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The ``unix://`` URL of a server that lives as long as the session (one per xdist worker)."""
    with tempfile.TemporaryDirectory(prefix="nc-redis-") as folder:
        yield server.ensure(Path(folder))
        server.stop(Path(folder))


@pytest_asyncio.fixture
async def r(redis_server: str) -> AsyncIterator[Any]:
    """An asyncio client of the emptied server."""
    client: Any = connect(redis_server)
    await client.flushall()
    await client.script_flush()
    await client.config_set("maxmemory", 0)
    yield client
    await client.aclose()


async def until(predicate: Any, what: str, timeout_s: float = 10.0) -> Any:
    """Polls an async or plain predicate to a deadline; fails with ``what`` in the message."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while True:
        value = predicate()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        assert asyncio.get_running_loop().time() < deadline, f"not within {timeout_s} s: {what}"
        await asyncio.sleep(0.005)
