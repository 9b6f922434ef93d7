"""On which versions of Redis a module's tests run."""

from __future__ import annotations

import pytest

from tests.fixtures_redis import OLDEST


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``REDIS_VERSIONS`` of a module, where what it tests might differ between versions;
    else the oldest alone."""
    if "redis_version" in metafunc.fixturenames:
        versions = getattr(metafunc.module, "REDIS_VERSIONS", (OLDEST,))
        metafunc.parametrize("redis_version", versions, indirect=True)
