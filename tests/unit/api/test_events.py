"""/api/events over a real Redis: live, resumed, filtered, and for so many listeners."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
import redis.asyncio

from newscrawler.api import listen
from newscrawler.api.app import create_app
from newscrawler.api.deps import Deps
from newscrawler.api.limits import RequestLimits
from newscrawler.api.server import GRACE_S, start_in_thread
from newscrawler.fleet.registry import Registry
from newscrawler.store import open_store
from newscrawler.store.events import STREAM

Tell = Callable[..., str]


@pytest.fixture
def tell(redis_server: str) -> Iterator[Tell]:
    """Puts an event on the stream, as the dispatcher does; its id there."""
    client = redis.Redis.from_url(redis_server)
    client.delete(STREAM)

    def one(name: str, kind: str = "article.new", site: str = "a.vn", **fields: str) -> str:
        event: dict[Any, Any] = {"event": f"{name}.1", "type": kind, "id": name, "site": site}
        return str(client.xadd(STREAM, event | fields).decode())  # type: ignore[union-attr]

    yield one
    client.delete(STREAM)
    client.close()


@pytest.fixture
def url(redis_server: str, filled_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(listen, "LOOK_S", 0.05)
    monkeypatch.setattr(listen, "ALIVE_S", 0.2)
    deps = Deps(
        store=open_store("", filled_folder),
        registry=Registry(redis.asyncio.Redis.from_url(redis_server)),
        limits=RequestLimits(listeners=2),
        clock=lambda: datetime(2026, 8, 1, tzinfo=UTC).timestamp(),
    )
    running = start_in_thread(create_app(deps))
    yield running.url
    running.stop()


class Stream:
    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()
        self.id = ""

    def next(self) -> tuple[str, dict[str, Any]]:
        """Type and data of the next event; comments and retry are passed over."""
        kind = ""
        for line in self._lines:
            if line.startswith("id: "):
                self.id = line[4:]
            elif line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                return kind, json.loads(line[6:])
        raise AssertionError("the stream ended")

    def comment(self) -> str:
        return next(line for line in self._lines if line.startswith(":"))


@contextmanager
def listening(url: str, last: str = "", **params: Any) -> Iterator[Stream]:
    headers = {"Last-Event-ID": last} if last else {}
    with httpx.stream(
        "GET", f"{url}/api/events", headers=headers, params=params, timeout=60
    ) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield Stream(answer)


def test_events_are_told_as_they_happen_and_a_listener_comes_back(url: str, tell: Tell) -> None:
    tell("before")
    with listening(url) as stream:
        stream.comment()
        tell("one", title="Tin\ncó xuống dòng: data: x")
        kind, event = stream.next()
        assert (kind, event["id"]) == ("article.new", "one")
        assert event["title"] == "Tin\ncó xuống dòng: data: x"
        last = stream.id
    tell("two", "article.updated")
    tell("three", "article.gone")
    with listening(url, last) as stream:
        assert [stream.next()[1]["id"] for _ in range(2)] == ["two", "three"]
        tell("four")
        assert stream.next()[1]["id"] == "four"


def test_types_and_sites_are_chosen(url: str, tell: Tell) -> None:
    first = tell("zero")
    tell("one", site="b.vn")
    tell("two", "article.gone", site="b.vn")
    tell("three", "article.gone")
    with listening(url, since=first, type="article.gone", site="b.vn") as stream:
        tell("four", "article.gone", site="b.vn")
        assert [stream.next()[1]["id"] for _ in range(2)] == ["two", "four"]


def test_who_was_away_for_too_long_is_told_of_the_gap(url: str, tell: Tell) -> None:
    tell("one")
    with listening(url, "1-1") as stream:
        assert stream.next() == ("gap", {})
        assert stream.next()[1]["id"] == "one"


def test_so_many_listeners_and_no_more(url: str, tell: Tell) -> None:
    with listening(url) as one, listening(url) as two:
        one.comment(), two.comment()
        refused = httpx.get(f"{url}/api/events")
        assert refused.status_code == 429
        assert "2 listeners already" in refused.json()["error"]
        assert refused.headers["retry-after"] == "30"
    end = time.monotonic() + 60
    while True:
        with httpx.stream("GET", f"{url}/api/events") as answer:
            if answer.status_code == 200:
                return
        assert time.monotonic() < end, "the place of one that left is free"
        time.sleep(0.05)


def test_a_server_ends_at_once_beside_a_listener(
    redis_server: str, filled_folder: Path, tell: Tell
) -> None:
    """Its look at the stream, once a second, is cut short as well."""
    deps = Deps(
        store=open_store("", filled_folder),
        registry=Registry(redis.asyncio.Redis.from_url(redis_server)),
    )
    running = start_in_thread(create_app(deps))
    with listening(running.url) as stream:
        tell("one")
        assert stream.next()[1]["id"] == "one"
        began = time.monotonic()
        running.stop()
        took_s = time.monotonic() - began
        assert not any(line.startswith("data") for line in stream._lines), "it ends in order"
    print(f"the server took {took_s:.2f} s to end")
    assert took_s < GRACE_S - 1, "it waited for the listener"


@pytest.mark.parametrize("last", ["x", "1", "1-1-1", "99999999999999999999999-0", "$"])
def test_a_wrong_id_is_refused(url: str, tell: Tell, last: str) -> None:
    answer = httpx.get(f"{url}/api/events", headers={"Last-Event-ID": last})
    assert answer.status_code == 422


def test_without_redis_it_says_so(search_page: str) -> None:
    answer = httpx.get(f"{search_page}/api/events")
    assert (answer.status_code, answer.json()["detail"]) == (503, "no Redis in this test")
