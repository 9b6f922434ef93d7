"""The suite runs on versions of Redis that it names, not on whichever the machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from newscrawler.frontier import redis_server
from tests.fixtures_redis import RedisServers, binary_of, missing

REDIS_VERSIONS = ("6.2", "7")


def test_what_the_program_starts_by_itself_is_of_the_named_version(redis_version: str) -> None:
    found = redis_server.version_of(redis_server.find_binary())
    assert found is not None and ".".join(map(str, found)).startswith(f"{redis_version}.")


def test_a_binary_is_chosen_by_its_version_not_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("6.2.14", "7.0.15", "7.4.1", "6.20.1", "8.0.0"):
        folder = tmp_path / version
        folder.mkdir()
        program = folder / "redis-server"
        program.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0'\n")
        program.chmod(0o755)
    monkeypatch.setattr(redis_server, "_candidates", lambda: iter(()))
    monkeypatch.delenv("REDIS_7_BIN", raising=False)
    monkeypatch.delenv("REDIS_6_2_BIN", raising=False)

    def found(version: str, *on_path: str) -> str | None:
        monkeypatch.setenv("PATH", ":".join(str(tmp_path / name) for name in on_path))
        binary = binary_of(version)
        return Path(binary).parent.name if binary else None

    assert found("6.2", "8.0.0", "6.20.1", "7.0.15", "6.2.14") == "6.2.14"
    assert found("7", "8.0.0", "6.2.14", "7.4.1", "7.0.15") == "7.4.1"
    assert found("7", "8.0.0", "6.2.14") is None
    monkeypatch.setenv("REDIS_7_BIN", str(tmp_path / "7.0.15" / "redis-server"))
    assert found("7", "7.4.1") == "7.0.15"
    assert RedisServers(tmp_path).on_path("9") is None


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_missing_version_is_a_failure_in_ci_and_a_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    expected = pytest.fail.Exception if ci else pytest.skip.Exception
    with pytest.raises(expected, match="no redis-server 7 on this machine"):
        missing("7")
