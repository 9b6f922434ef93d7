"""All that this project keeps in Redis, as of one moment, in a file; and from a file into a Redis.

A Redis hands its data to whoever says that it is a replica (SYNC): one snapshot, made beside the
work, of an embedded server, a server elsewhere or each primary of a cluster. It is put back through
a server of our own that reads the file, key by key, so that it may go into another kind of Redis.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import redis

from newscrawler.frontier import connect_blocking, redis_cluster
from newscrawler.frontier.redis_server import find_binary
from newscrawler.frontier.types import FrontierUnavailable

#: Beginnings of the names of our keys: a Redis may be shared with other programs.
OURS = (
    b"{f",
    b"{selectors}",
    b"{fleet}",
    b"{crawls}",
    b"{links}",
    b"{render}",
    b"{reparse}",
    b"{newscrawler:",
    b"newscrawler:",
)
#: Seconds without a byte: a server that makes its snapshot sends an empty line each ten seconds.
SILENCE_S = 60
#: Seconds that a server of our own may read a file.
LOAD_S = 600
_PIECE = 1 << 20
_KEYS = 200
_END_MARK = 40


class SnapshotRefused(FrontierUnavailable):
    """Redis, or the file, does not allow it. One clear line."""


def save(redis_url: str, folder: Path) -> list[Path]:
    """Writes ``redis-0.rdb`` and so on, one of each primary.

    :raises FrontierUnavailable: Redis does not answer, or refuses to be replicated
    """
    try:
        with connect_blocking(redis_url, socket_connect_timeout=10, socket_timeout=30) as client:
            made = []
            for number, one in enumerate(_primaries(client, redis_url)):
                path = folder / f"redis-{number}.rdb"
                _receive(one, path)
                made.append(path)
            return made
    except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as exc:
        raise FrontierUnavailable(f"Redis cannot be backed up: {exc}") from exc


def _primaries(client: Any, redis_url: str) -> list[Any]:
    if not redis_cluster.is_cluster(redis_url):
        return [client]
    return [client.get_redis_connection(node) for node in client.get_primaries()]


def _receive(client: Any, path: Path) -> None:
    connection = client.connection_pool.make_connection()
    connection.connect()
    try:
        sock = connection._sock  # after TLS and AUTH; what follows is no answer redis-py can read
        sock.settimeout(SILENCE_S)
        sock.sendall(b"SYNC\r\n")
        with sock.makefile("rb") as stream, path.open("wb") as out:
            head = _head(stream)
            if head.startswith(b"$EOF:"):
                _until_mark(stream, out, head[5:])
            elif head.startswith(b"$"):
                _exactly(stream, out, int(head[1:]))
            else:
                text = head.decode("utf-8", "replace").lstrip("-")
                raise SnapshotRefused(f"Redis refuses to be backed up (SYNC): {text}")
    finally:
        connection.disconnect()


def _head(stream: Any) -> bytes:
    """The first line with something in it."""
    while True:
        line: bytes = stream.readline(1024)
        if not line:
            raise SnapshotRefused("Redis closed the connection before its snapshot")
        if line.strip():
            return line.strip()


def _exactly(stream: Any, out: Any, size: int) -> None:
    while size:
        piece = stream.read(min(_PIECE, size))
        if not piece:
            raise SnapshotRefused("Redis closed the connection within its snapshot")
        out.write(piece)
        size -= len(piece)


def _until_mark(stream: Any, out: Any, mark: bytes) -> None:
    held = b""
    while True:
        piece = stream.read1(_PIECE)
        if not piece:
            raise SnapshotRefused("Redis closed the connection within its snapshot")
        held += piece
        if held.endswith(mark):  # the stream of commands begins after it, and we never ask for it
            out.write(held[: -len(mark)])
            return
        out.write(held[:-_END_MARK])
        held = held[-_END_MARK:]


def is_empty(redis_url: str) -> bool:
    """Whether there is nothing of ours."""
    with _Target(redis_url) as client:
        return next(_ours(client), None) is None


def clear(redis_url: str) -> int:
    """Deletes all of ours; what others keep there stays. How many keys."""
    done = 0
    with _Target(redis_url) as client:
        for names in _in_batches(_ours(client), _KEYS):
            for name in names:
                client.unlink(name)
            done += len(names)
    return done


def load(
    paths: Iterable[Path],
    redis_url: str,
    binary: str = "",
    say: Callable[[int], None] = lambda keys: None,
) -> int:
    """Puts the keys of files back. ``say`` is told how many are done, now and then.

    :param binary: the redis-server that reads the files; empty = find one
    :raises FrontierUnavailable: no server can read a file, or the target does not take it
    """
    done = 0
    with _Target(redis_url) as target:
        for path in paths:
            with _SnapshotServer(path, find_binary(binary)) as source:
                for names in _in_batches(_ours(source), _KEYS):
                    _copy(source, target, names)
                    done += len(names)
                    say(done)
    return done


def _copy(source: Any, target: Any, names: list[bytes]) -> None:
    asked = source.pipeline(transaction=False)
    for name in names:
        asked.dump(name)
        asked.pttl(name)
    answers = asked.execute()
    put = target.pipeline(transaction=False)
    for name, data, left_ms in zip(names, answers[::2], answers[1::2], strict=True):
        if data is not None and left_ms != 0:
            put.restore(name, max(0, left_ms), data)
    try:
        put.execute()
    except (redis.RedisError, redis.exceptions.RedisClusterException) as exc:
        raise SnapshotRefused(f"Redis does not take what is put back: {exc}") from exc


class _SnapshotServer:
    """A server of our own that has read a file."""

    def __init__(self, path: Path, program: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="newscrawler-restore-"))
        shutil.copyfile(path, self._folder / "dump.rdb")
        options = {
            "port": "0", "unixsocket": "s", "dir": str(self._folder), "dbfilename": "dump.rdb",
            "appendonly": "no", "save": "", "logfile": "log", "daemonize": "no",
        }  # fmt: skip
        args = [part for name, value in options.items() for part in (f"--{name}", value)]
        self._process = subprocess.Popen(
            [program, *args],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._path = path

    def __enter__(self) -> Any:
        client = redis.Redis(unix_socket_path=str(self._folder / "s"), socket_timeout=LOAD_S)
        until = time.monotonic() + LOAD_S
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                client.ping()
                return client
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                time.sleep(0.05)
        log = self._folder / "log"
        said = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
        why = next((line for line in reversed(said) if "RDB" in line), said[-1] if said else "")
        self.__exit__()
        raise SnapshotRefused(f"{self._path} cannot be read by this redis-server: {why}")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Target:
    """A client whose errors leave as ours."""

    def __init__(self, redis_url: str) -> None:
        self._url = redis_url

    def __enter__(self) -> Any:
        self._client = connect_blocking(self._url, socket_connect_timeout=10, socket_timeout=60)
        return self._client

    def __exit__(self, kind: Any, exc: Any, _: Any) -> None:
        self._client.close()
        known = (redis.RedisError, redis.exceptions.RedisClusterException)
        if isinstance(exc, known):
            raise FrontierUnavailable(f"Redis does not answer: {exc}") from exc


def _ours(client: Any) -> Iterator[bytes]:
    return (name for name in client.scan_iter(count=1000) if name.startswith(OURS))


def _in_batches(names: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Each name once: a scan may tell one twice."""
    seen: set[bytes] = set()
    batch: list[bytes] = []
    for name in names:
        if name in seen:
            continue
        seen.add(name)
        batch.append(name)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
