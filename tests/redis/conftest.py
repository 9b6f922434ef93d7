"""On which versions of Redis a module's tests run."""

from __future__ import annotations

import pytest

from tests.fixtures_redis import OLDEST, RedisServers

NEWEST = "7"
#: 6.2 at each change, and 7 with the longer proofs.
VERSIONS = (OLDEST, pytest.param(NEWEST, marks=pytest.mark.long))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``REDIS_VERSIONS`` of a module, where what it tests might differ between versions: all of
    them at each change."""
    if "redis_version" in metafunc.fixturenames:
        versions = getattr(metafunc.module, "REDIS_VERSIONS", VERSIONS)
        metafunc.parametrize("redis_version", versions, indirect=True)


@pytest.fixture
def redis_server(redis_servers: RedisServers, redis_version: str) -> str:
    """The address of the server that ``r`` speaks to."""
    return redis_servers.url(redis_version)
