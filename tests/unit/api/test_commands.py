"""`scrapy serve` and `scrapy doctor` as a user starts them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
from scrapy.settings import Settings

from newscrawler.cli import UsageError
from newscrawler.commands.serve import Command
from newscrawler.frontier import redis_server as embedded
from tests.crawl.harness import Running, Scrapy, until

SECRET = "0123456789abcdef" * 2
SITE = {"id": "127.0.0.9", "name": "Loopback", "home": "http://127.0.0.9/", "hosts": ["127.0.0.9"]}


@pytest.fixture
def scrapy(tmp_path: Path) -> Scrapy:
    sites = tmp_path / "sites.json"
    sites.write_text(json.dumps({"sites": [SITE]}))
    (tmp_path / "selectors").mkdir()
    return Scrapy(
        tmp_path,
        {"SITES_FILE": str(sites), "SELECTORS_DIR": str(tmp_path / "selectors"), "API_PORT": "0"},
    )


@pytest.fixture
def serving(scrapy: Scrapy) -> Iterator[tuple[Running, str]]:
    running = scrapy.start("serve", "--port", "0")
    url = until(
        lambda: re.search(r"http://127\.0\.0\.1:\d+", running.text()), "the address is printed"
    )[0]
    yield running, url
    if running.process.poll() is None:
        running.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_answers_and_ends_with_0(
    serving: tuple[Running, str], number: signal.Signals
) -> None:
    running, url = serving
    with httpx.Client() as client:  # a kept-alive connection must not hold up the end
        assert client.get(f"{url}/healthz").json()["status"] == "ok"
        assert "No articles yet" in client.get(url, headers={"Accept": "text/html"}).text
        assert client.get(f"{url}/api/frontier").status_code == 200  # the embedded Redis
        running.process.send_signal(number)
        done = running.wait(15)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_serve_says_at_its_start_that_redis_is_away(scrapy: Scrapy) -> None:
    scrapy.settings["REDIS_URL"] = "redis://:hidden@127.0.0.1:1/0"
    running = scrapy.start("serve", "--port", "0")
    until(lambda: "Search page:" in running.text(), "the address is printed")
    running.process.send_signal(signal.SIGTERM)
    done = running.wait(15)
    (line,) = [line for line in done.stderr.splitlines() if "Redis does not answer" in line]
    assert "127.0.0.1:1" in line and "hidden" not in line and "Searching works" in line


def test_serve_stops_the_redis_that_only_it_used(
    serving: tuple[Running, str], scrapy: Scrapy
) -> None:
    running, url = serving
    httpx.get(f"{url}/api/frontier")
    pid_file = scrapy.data / "redis" / "redis.pid"
    assert pid_file.exists()
    running.process.send_signal(signal.SIGTERM)
    running.wait(15)
    assert not pid_file.exists()


def test_several_processes_answer_at_one_address(scrapy: Scrapy) -> None:
    scrapy.env["API_TOKEN_SECRET"] = SECRET
    token = {"Authorization": f"Bearer {scrapy.run('serve', '--token').stdout.strip()}"}
    running = scrapy.start(
        "serve", "--port", "0", "--processes", "2", "-s", "API_REQUESTS_PER_MINUTE=40"
    )
    try:
        until(lambda: "Search page: " in running.text(), "the address is printed")
        url = re.findall(r"Search page: (\S+)", running.text())[0]

        seen: set[int] = set()

        def answering() -> int:
            """Each request by a connection of its own."""
            rows = httpx.get(f"{url}/api/check", headers=token).json()
            seen.update(int(row["name"].split()[1]) for row in rows if row["part"] == "server")
            return len(seen)

        until(lambda: answering() == 2, "both answer", 20)
        assert running.process.pid not in seen
        os.kill(min(seen), signal.SIGKILL)
        until(lambda: "is started again" in running.text(), "its death is said", 20)
        assert httpx.get(f"{url}/healthz").status_code == 200
        statuses = [httpx.get(f"{url}/api/sites", headers=token).status_code for _ in range(45)]
        assert statuses.count(429) >= 4, "the limit of a token holds for all of them together"
    finally:
        running.process.send_signal(signal.SIGTERM)
        done = running.wait(30)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert "was killed and is started again" in done.stderr


def test_a_taken_port_is_one_clear_line(scrapy: Scrapy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = scrapy.run("serve", "--port", str(port))
    assert done.returncode == 1
    assert (
        done.stderr.strip()
        == f"port {port} on 127.0.0.1 is taken by another program; choose one with --port or API_PORT"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--host", "0.0.0.0"], 1, "set API_TOKEN_SECRET"),
        (["--host", "192.0.2.1", "--port", "0"], 1, "set API_TOKEN_SECRET"),
        (["--token"], 1, "API_TOKEN_SECRET"),
        (["nonsense"], 2, "takes no argument"),
        (["--port", "many"], 2, "must be a number from 0 to 65535"),
        (["--processes", "0"], 2, "must be 1 to"),
        (["--processes", "2", "-s", "ARTICLE_STORE=mongodb://x"], 1, "must be empty, a file"),
        (["-s", "ARTICLE_STORE=mongodb://x"], 1, "must be empty, a file"),
    ],
)
def test_wrong_use_of_serve(scrapy: Scrapy, arguments: list[str], code: int, text: str) -> None:
    done = scrapy.run("serve", *arguments)
    assert (done.returncode, text in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_several_processes_are_refused_where_the_system_cannot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = Command()
    command.settings = Settings({"DATA_DIR": str(tmp_path), "API_PORT": 0})
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    given = Namespace(token=False, host=None, port=0, processes=2)
    with pytest.raises(UsageError, match="on Linux only"):
        command.run([], given)


def test_a_token_of_the_command_opens_the_server(scrapy: Scrapy) -> None:
    scrapy.env["API_TOKEN_SECRET"] = SECRET
    token = scrapy.run("serve", "--token").stdout.strip()
    running = scrapy.start("serve", "--host", "0.0.0.0", "--port", "0")
    try:
        found = until(
            lambda: re.search(r"Search page: http://\S+:(\d+)", running.text()),
            "the address is printed",
        )
        url = f"http://127.0.0.1:{found[1]}/api/status"
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    finally:
        running.process.send_signal(signal.SIGTERM)
        running.wait(15)


# ---------------------------------------------------------------- doctor


def findings(scrapy: Scrapy, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    done = scrapy.run("doctor", "--json", *arguments)
    return done.returncode, {row["check"]: row for row in map(json.loads, done.stdout.splitlines())}


def test_a_fit_machine_has_no_failure(scrapy: Scrapy) -> None:
    code, found = findings(scrapy)
    assert code == 0, found
    assert {row["state"] for row in found.values()} <= {"ok", "warn"}
    assert {
        "python",
        "data folder",
        "redis",
        "redis append-only",
        "redis eviction",
        "clock",
        "sqlite",
        "sites",
    } <= set(found)
    assert found["redis eviction"]["found"].startswith("noeviction")
    assert found["sites"]["found"] == "1 enabled"
    assert not (scrapy.data / "redis" / "redis.pid").exists(), (
        "the server that was started for it runs on"
    )


def named(scrapy: Scrapy, *hosts: str) -> None:
    entries = [{"id": host, "home": f"https://{host}/", "hosts": [host]} for host in hosts]
    (scrapy.folder / "sites.json").write_text(json.dumps({"sites": entries}))


def test_names_that_are_not_found_are_told(scrapy: Scrapy) -> None:
    named(scrapy, "a.invalid", "b.invalid")
    _, found = findings(scrapy)
    assert found["names"]["state"] == "warn", found["names"]
    assert found["names"]["found"] == "not found: a.invalid, b.invalid"
    assert "is there a network" in found["names"]["todo"]


def test_one_name_that_is_found_is_enough(scrapy: Scrapy) -> None:
    named(scrapy, "a.invalid", "b.invalid")
    _, found = findings(scrapy, "-s", "RESOLVE_OVERRIDE=b.invalid=127.0.0.9")
    assert (found["names"]["state"], found["names"]["found"]) == ("ok", "found: b.invalid")


def test_people_get_a_table_with_what_to_do(scrapy: Scrapy) -> None:
    done = scrapy.run("doctor", "-s", "LLM_MODEL=some-model")
    assert done.returncode == 0
    assert re.search(
        r"^warn  model +LLM_BASE_URL not set\n +-> set all of them", done.stdout, re.MULTILINE
    )


@pytest.mark.parametrize(
    ("setting", "check", "text"),
    [
        ("REDIS_URL=redis://127.0.0.1:1/0", "redis", "127.0.0.1:1"),
        ("SITES_FILE={tmp}/none.json", "sites", "none.json"),
        ("SITES_FILE={tmp}/bad.json", "sites", "bad.json"),
        ("SELECTORS_DIR={tmp}/badsel", "selector sets", "a.vn.json"),
        ("ARTICLE_STORE=mongodb://x", "article store", "mongodb"),
        ("USER_AGENT= ", "user agent", "empty"),
        ("API_HOST=0.0.0.0", "search page", "API_TOKEN_SECRET"),
        ("DATA_DIR=/proc/none", "data folder", "/proc/none"),
    ],
)
def test_what_is_wrong_fails_and_says_what_to_do(
    scrapy: Scrapy, tmp_path: Path, setting: str, check: str, text: str
) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "badsel").mkdir()
    (tmp_path / "badsel" / "a.vn.json").write_text('{"domain": "a.vn"')
    name, value = setting.format(tmp=tmp_path).split("=", 1)
    scrapy.settings[name] = value
    code, found = findings(scrapy)
    assert code == 1
    assert found[check]["state"] == "fail"
    assert text in found[check]["found"]
    assert found[check]["todo"]
    assert len(found) >= 9, "one failure must not hide the other checks"


async def test_a_redis_that_evicts_or_forgets_is_noticed(r: object, redis_server: str) -> None:

    from newscrawler.cli import doctor

    client: object = r
    await client.config_set("maxmemory-policy", "allkeys-lru")  # type: ignore[attr-defined]
    await client.config_set("maxmemory", 10**9)  # type: ignore[attr-defined]
    await client.config_set("appendonly", "no")  # type: ignore[attr-defined]
    try:
        found = {
            f.check: f
            for f in await doctor.redis(
                Settings({"REDIS_URL": redis_server, "REDIS_SERVER_BIN": ""})
            )
        }
    finally:
        await client.config_set("maxmemory-policy", "noeviction")  # type: ignore[attr-defined]
        await client.config_set("maxmemory", 0)  # type: ignore[attr-defined]
        await client.config_set("appendonly", "yes")  # type: ignore[attr-defined]
    assert found["redis eviction"].state == "fail" and "noeviction" in found["redis eviction"].todo
    assert found["redis append-only"].state == "warn"


@pytest.mark.parametrize(
    ("user", "set_up", "todo"),
    [
        ("", ["CONFIG SET maxmemory 1"], "memory"),
        ("reader:pw@", ["ACL SETUSER reader on >pw ~* +@read +@connection +info +time"], "user"),
        ("", [], ""),
    ],
    ids=["full", "may read only", "well"],
)
async def test_a_redis_that_cannot_be_written_is_no_good_one(
    tmp_path: Path, user: str, set_up: list[str], todo: str
) -> None:

    from newscrawler.cli import doctor

    url = embedded.ensure(tmp_path)
    path = url.removeprefix("unix://")
    try:
        with redis.Redis.from_url(url) as client:
            client.execute_command("ACL", "SETUSER", "other", "on", ">pw", "allkeys", "+@all")
            for command in set_up:
                client.execute_command(*command.split())
        found = {
            f.check: f for f in await doctor.redis(Settings({"REDIS_URL": f"unix://{user}{path}"}))
        }
        assert found["redis"].state == "ok"
        assert found["redis writes"].state == ("fail" if todo else "ok")
        assert todo in found["redis writes"].todo
        wrong = Settings({"REDIS_URL": f"unix://other:wrong@{path}"})
        [refused] = await doctor.redis(wrong)
        assert "password" in refused.todo and "embedded" not in refused.todo
    finally:
        embedded.stop(tmp_path)


@pytest.mark.parametrize(
    ("free", "state"), [(499, "fail"), (500, "warn"), (4999, "warn"), (5000, "ok")]
)
async def test_the_disk_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    import shutil

    from newscrawler.cli import doctor

    usage = shutil.disk_usage(tmp_path)._replace(free=free * 1000**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    [found] = await doctor.disk(Settings({"DATA_DIR": str(tmp_path)}))
    assert found.state == state
