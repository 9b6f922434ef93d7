"""Prune, rekey and take-down: one at a time on a store, whichever machines they run on."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapy.settings import Settings

from newscrawler import settings as project
from newscrawler.crawl import keeping, retention
from newscrawler.crawl.keeping import alone_in_fleet
from newscrawler.rawstore import RawStoreUnavailable
from tests.patience import Deadline


@pytest.fixture
def machine(tmp_path: Path, redis_server: str, r: Any) -> Any:
    """Settings of a machine: a data folder of its own, the fleet's Redis and stores."""

    def make(name: str, **more: str) -> Settings:
        found = Settings()
        found.setmodule(project, priority="project")
        (tmp_path / name).mkdir(exist_ok=True)
        values = {
            "DATA_DIR": str(tmp_path / name),
            "REDIS_URL": redis_server,
            "RAW_STORE": "s3://bucket/raw",
            "ARTICLE_STORE": "https://es.example:9200",
        }
        found.update(values | more, priority="cmdline")
        return found

    return make


def nothing(text: str) -> None:
    raise AssertionError(text)


def refused(settings: Settings, match: str) -> None:
    with pytest.raises(RawStoreUnavailable, match=match), alone_in_fleet(settings, nothing):
        pytest.fail("two at once")


def test_two_machines_never_work_on_one_store(machine: Any) -> None:
    with alone_in_fleet(machine("a"), nothing) as held:
        held.still()
        for shared in (
            {},
            {"ARTICLE_STORE": ""},
            {"RAW_STORE": "s3://bucket/raw/", "ARTICLE_STORE": "https://other:9200"},
            {"RAW_STORE": ""},
        ):
            refused(machine("b", **shared), "on the same store: ")
        with pytest.raises(RawStoreUnavailable, match="at work on the same store"):
            retention.rekey(machine("b"), nothing)
        other = {"RAW_STORE": "s3://bucket/other", "ARTICLE_INDEX": "other"}
        with alone_in_fleet(machine("b", **other), nothing) as beside:
            beside.still()
        held.still()
    with alone_in_fleet(machine("b"), nothing) as held:
        held.still()


def test_folders_are_each_machines_own(machine: Any, r: Any, redis_server: str) -> None:
    local = {"RAW_STORE": "", "ARTICLE_STORE": "/srv/articles.db"}
    with (
        alone_in_fleet(machine("a", **local), nothing),
        alone_in_fleet(machine("b", **local), nothing),
        redis.Redis.from_url(redis_server) as client,
    ):
        assert list(client.scan_iter("{fleet}:keeping:*")) == []
    with alone_in_fleet(machine("a"), nothing):
        refused(machine("a", REDIS_URL=""), "is at work here")


def locks(client: Any) -> list[bytes]:
    return [key for key in client.scan_iter("{fleet}:keeping:*") if not key.endswith(b":token")]


def test_who_slept_too_long_changes_nothing_more(
    machine: Any, redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "RENEW_S", 60.0)  # stopped: nobody renews
    with (
        redis.Redis.from_url(redis_server) as client,
        alone_in_fleet(machine("a"), nothing) as sleeper,
    ):
        sleeper.still()
        assert len(locks(client)) == 2
        assert all(0 < client.pttl(key) <= keeping.LASTS_MS for key in locks(client)), "run out"
        client.delete(*locks(client))  # as when their time is over
        with alone_in_fleet(machine("b"), nothing) as other:
            with pytest.raises(RawStoreUnavailable, match="another one is at work"):
                sleeper.still()
            other.still()
        with pytest.raises(RawStoreUnavailable, match="lost"):
            sleeper.still()  # also after the other has ended: what it read is of before


def test_a_lock_is_renewed_and_that_of_a_killed_one_runs_out(
    machine: Any, redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "RENEW_S", 0.05)
    half = keeping.LASTS_MS // 2
    with redis.Redis.from_url(redis_server) as client:
        with alone_in_fleet(machine("a"), nothing):
            for key in locks(client):
                assert client.pexpire(key, half)
            deadline = Deadline(30)
            while min(client.pttl(key) for key in locks(client)) <= half:
                assert not deadline.is_over(), "nobody renews"
                time.sleep(0.02)
            refused(machine("b"), "on the same store")
            assert len(list(client.scan_iter("{fleet}:keeping:*"))) == 4
        killed = keeping._shared_stores(machine("a"))[0]
        client.set(killed, "7 of-a-dead-one", px=keeping.LASTS_MS)
        refused(machine("b"), "of-a-dead-one")
        client.pexpire(killed, 0)
        with alone_in_fleet(machine("b"), nothing):
            pass


def test_an_error_between_two_locks_leaves_neither(machine: Any, redis_server: str) -> None:
    said: list[str] = []
    with redis.Redis.from_url(redis_server) as client:
        first, second = keeping._shared_stores(machine("a"))
        client.rpush(second, "what no lock can be")
        with alone_in_fleet(machine("a"), said.append):
            assert len(said) == 1 and "only this machine is locked" in said[0]
            assert client.get(first) is None, "nobody would renew it"
            client.delete(second)
            with alone_in_fleet(machine("b"), nothing):
                pass


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
def test_without_redis_the_machine_is_locked_and_that_is_said(machine: Any, scheme: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        nobody = f"{scheme}://127.0.0.1:{free.getsockname()[1]}"
    said: list[str] = []
    with alone_in_fleet(machine("a", REDIS_URL=nobody), said.append) as held:
        held.still()
        refused(machine("a"), "at work here")
    assert len(said) == 1 and "only this machine is locked" in said[0]
