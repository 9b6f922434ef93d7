"""`scrapy follow`, as an operator types it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from newscrawler.items import Article
from newscrawler.store.sqlite import LocalStore
from tests import warm
from tests.fixtures_webhook import Receiver

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def follow(tmp_path: Path, redis_server: str) -> Run:
    with redis.Redis.from_url(redis_server) as client:
        client.flushall()

    def run(*args: str) -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, "DATA_DIR": str(tmp_path), "REDIS_URL": redis_server}
        return warm.run(["follow", *args], env=env, timeout=120)

    return run


async def stored(folder: Path) -> None:
    store = LocalStore(folder / "articles.db")
    titles = ("Giá vàng tăng", "Giá bạc")
    await store.put(
        [Article(f"{n}" * 32, f"https://a.vn/{n}", "a.vn", t, "x") for n, t in enumerate(titles)]
    )
    await store.close()


def test_a_query_is_added_listed_tested_and_removed(
    follow: Run, webhook: Receiver, tmp_path: Path
) -> None:
    asyncio.run(stored(tmp_path))
    url = webhook.url + "?key=secret"
    done = follow("add", "gold", "giá vàng", "--webhook", url, "--every", "5m", "--mail", "a@b.vn")
    assert done.returncode == 0, done.stderr.decode()
    listed = follow("list", "--json")
    assert json.loads(listed.stdout) == {
        "name": "gold", "text": "giá vàng", "to": "a@b.vn, webhook", "every_s": 300, "waiting": 0,
    }  # fmt: skip
    assert follow("add", "gold", "giá vàng", "--webhook", url).returncode == 0, "replaced"
    tested = follow("test", "gold")
    assert b"gold finds 1 of the stored articles" in tested.stderr, tested.stderr
    assert tested.returncode == 0, tested.stderr.decode()
    assert webhook.alerts[0]["test"] is True
    for done in (listed, tested, follow("list")):
        assert b"secret" not in done.stdout + done.stderr
    assert follow("remove", "gold").returncode == 0
    gone = follow("remove", "gold")
    assert (gone.returncode, gone.stderr.strip()) == (1, b"no saved query is called gold")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["add", "gold"], b"takes NAME and QUERY"),
        (["add", "a b", "x", "--mail", "a@b.vn"], b"a name has up to 64"),
        (["add", "gold", "x"], b"name a receiver"),
        (["add", "gold", "x", "--mail", "nobody"], b"--mail nobody: must be an address"),
        (["add", "gold", "x", "--mail", "a@b.vn\r\nBcc: c@d.vn"], b"must be an address"),
        (["add", "gold", "x", "--webhook", "file:///etc/passwd"], b"must be an http(s) address"),
        (["add", "gold", "x", "--mail", "a@b.vn", "--every", "0m"], b"must be a second or more"),
        (["add", "gold", " ", "--mail", "a@b.vn"], b"an empty query"),
        (["remove"], b"takes one NAME"),
        (["forget"], b"unknown verb"),
    ],
)
def test_what_is_typed_wrongly_is_said_in_a_line(follow: Run, args: list[str], said: bytes) -> None:
    done = follow(*args)
    assert done.returncode == 2, done.stderr.decode()
    assert said in done.stderr and b"Traceback" not in done.stderr


def test_a_test_that_cannot_be_sent_says_so(follow: Run) -> None:
    assert follow("add", "gold", "vàng", "--webhook", "http://127.0.0.1:1/").returncode == 0
    done = follow("test", "gold")
    assert done.returncode == 1
    assert b"webhook: not sent: 127.0.0.1 cannot be reached" in done.stderr
