"""`scrapy ...`, and a simulated web, in a process that has its imports behind it: what a
test of a command mostly waits for.

A server that has imported Scrapy and this package forks a child for each command. The child has a
working folder, environment, standard streams and, if wanted, session of its own, runs the module's
own entry point and ends as an interpreter ends. What it is not: executed anew. Tests of the start
itself (scrapyd, `make run`, the egg, kill -9 in a loop) start real processes, and
tests/unit/test_warm.py holds both ways against each other.

The server is started with the first command of a test process and ends with it; in a run of many
processes it is one for all of them, which the one that reports starts (tests/once.py).

A test that needs a process in which pages are parsed or articles are written, not a whole command,
has :func:`start_process`.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import importlib.util
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
#: Imported by the package only when first needed, and needed by most crawls.
_ALSO = (
    "numpy.ma",
    "scrapy.cmdline",
    "scrapy.core.engine",
    "scrapy.extensions.closespider",
    "scrapy.extensions.corestats",
    "scrapy.extensions.logcount",
    "scrapy.extensions.logstats",
    "scrapy.extensions.memdebug",
    "scrapy.extensions.memusage",
    "scrapy.extensions.remote_control",
    "scrapy.extensions.spiderstate",
    "scrapy.extensions.telnet",
    "scrapy.extensions.throttle",
    "scrapy.statscollectors",
    "scrapy.utils.reactor",
    "spidermon.contrib.scrapy.extensions",
    "twisted.internet.asyncioreactor",
    "tests.newsweb.server",
    "trafilatura",
    "uvloop",
)
#: Those of which all modules are.
_PACKAGES = ("scrapy.commands", "scrapy.downloadermiddlewares", "scrapy.spidermiddlewares")
#: Chooses the event loop when imported: that is the child's.
_NEVER = "twisted.internet.reactor"
#: Reads the environment when imported: done again in the child.
_SETTINGS = "newscrawler.settings"
#: Heeded in the child; what a module warns of when it is imported was said before.
_WARNINGS = "PYTHONWARNINGS"
_ENDED = struct.Struct("=id")
_HEAD = struct.Struct("=I")
#: The exit code of a Python whose output could not be written at its end.
_NOT_FLUSHED = 120
#: Names the server of the whole run to the processes that run its tests.
_SHARED = "NEWSCRAWLER_TEST_WARM"
#: What a process of :func:`start_process` may be asked for.
_TARGETS = ("newscrawler.crawl.parse_process", "newscrawler.store.sqlite.job")

_cpu_s = 0.0


def cpu_s() -> float:
    """CPU seconds of the commands that ended, which are not this process's children."""
    return _cpu_s


def popen(
    arguments: Sequence[str], *, module: str = "scrapy", **options: Any
) -> subprocess.Popen[Any]:
    """``Popen(["python", "-m", module, *arguments], cwd=ROOT, ...)``, warm where that
    makes no difference. ``module`` is one of MAINS."""
    command = [sys.executable, "-m", module, *arguments]
    kind = Process if _is_alike(options.get("env")) else subprocess.Popen
    return kind(command, cwd=ROOT, **options)


def run(
    arguments: Sequence[str], *, timeout: float, input: Any = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """``subprocess.run(["python", "-m", "scrapy", *arguments], cwd=ROOT,
    capture_output=True, ...)``."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        pipes["stdin"] = subprocess.PIPE
    with popen(arguments, **pipes, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _is_alike(env: Mapping[str, str] | None) -> bool:
    """Whether what is read when a program is executed is the same for the
    server and for the command."""

    def early(variables: Mapping[str, str]) -> dict[str, str]:
        prefixes = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LC_", "LANG", "SSL_CERT_")
        return {
            name: value
            for name, value in variables.items()
            if name.startswith(prefixes) and name != _WARNINGS
        }

    return env is None or early(env) == early(os.environ)


class Process(subprocess.Popen[Any]):
    """A command that the server forks; its pipes, time-outs and signals are Popen's own."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        super().__init__(command, **options)

    def _execute_child(  # type: ignore[override]
        self, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any,
        cwd: Any, env: Any, startupinfo: Any, creationflags: Any, shell: Any,
        p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int, errread: int, errwrite: int,
        restore_signals: Any, gid: Any, gids: Any, uid: Any, umask: Any,
        start_new_session: bool, *_: Any,
    ) -> None:  # fmt: skip
        streams = [
            theirs if theirs != -1 else ours
            for theirs, ours in ((p2cread, 0), (c2pwrite, 1), (errwrite, 2))
        ]
        order = {
            "module": args[2],
            "args": [str(part) for part in args[3:]],
            "env": dict(os.environ if env is None else env),
            "session": bool(start_new_session),
        }
        body = json.dumps(order).encode()
        self._connection.connect(_server())
        rights = array.array("i", streams)
        self._connection.sendmsg(
            [_HEAD.pack(len(body))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        )
        self._connection.sendall(body)
        (self.pid,) = _HEAD.unpack(_exactly(self._connection, _HEAD.size))
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        global _cpu_s
        if self.returncode is not None:
            return self.pid, 0
        self._connection.setblocking(not wait_flags & os.WNOHANG)
        try:
            status, took = _ENDED.unpack(_exactly(self._connection, _ENDED.size))
        except BlockingIOError:
            return 0, 0
        self._connection.close()
        _cpu_s += took
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._child_created:  # type: ignore[has-type]
            pid, status = self._try_wait(os.WNOHANG)
            if pid == self.pid:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def _exactly(connection: socket.socket, count: int) -> bytes:
    """A message of this size was sent whole, so that a first byte means that all are
    there or on their way."""
    data = b""
    while len(data) < count:
        try:
            more = connection.recv(count - len(data))
        except BlockingIOError:
            if not data:
                raise
            connection.setblocking(True)
            continue
        if not more:
            raise RuntimeError("the server of warm processes has ended")
        data += more
    return data


@functools.cache
def _server() -> str:
    """The address of the run's server, or of this test process's, which is started now."""
    if shared := os.environ.get(_SHARED):
        return f"\0{shared}"
    name, stop = _start_server()
    atexit.register(stop)
    return f"\0{name}"


def share() -> Callable[[], None]:
    """Starts a server for the processes that are started from here on; gives what ends it."""
    os.environ[_SHARED], stop = _start_server()
    return stop


def _start_server() -> tuple[str, Callable[[], None]]:
    """Its address, which can be connected to at once, and what ends it."""
    name = f"newscrawler-warm-{os.getpid()}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", name], cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None

    def stop() -> None:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(10)

    with process.stdout:
        assert process.stdout.readline() == b"bound\n", "the server of warm processes did not start"
    return name, stop


def start_process(fd: int, target: str, memory_bytes: int) -> subprocess.Popen[bytes]:
    """In the place of crawl.processes.start_process in a test: the process is forked by one that
    has the imports behind it, and is a child of this one all the same."""
    helpers = _helpers()
    with orphans_adopted():
        return helpers.start_process(fd, target, memory_bytes)


@functools.cache
def _helpers() -> Helpers:
    """Those of this test process, started now."""
    helpers = Helpers()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", "--helpers", str(helpers.theirs.fileno())],
        cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[helpers.theirs.fileno()],
    )  # fmt: skip
    helpers.theirs.close()

    def stop() -> None:
        helpers.ours.close()
        process.wait(30)

    atexit.register(stop)
    return helpers


# ---------------------------------------------------------------- the server


@dataclass
class Order:
    """One command, in the child that runs it."""

    module: str
    args: list[str]
    env: dict[str, str]
    session: bool
    streams: list[int]

    def put_on(self) -> None:
        """Makes this process look as if it had been executed for the command."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.session:
            os.setsid()
        for target, stream in enumerate(self.streams):
            os.dup2(stream, target)
        os.closerange(3, max(self.streams) + 64)
        os.environ.clear()
        os.environ.update(self.env)
        for name, target, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            kept = getattr(sys, f"__{name}__")
            buffering = 1 if name == "stderr" else -1
            # Not closed here: they live as long as the process.
            stream = open(target, mode, buffering, kept.encoding, kept.errors, closefd=False)  # noqa: SIM115  # it stays open
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        if wanted := self.env.get(_WARNINGS):
            warnings._processoptions(wanted.split(","))  # type: ignore[attr-defined]
        spec = importlib.util.find_spec(f"{self.module}.__main__")
        assert spec is not None and spec.origin is not None
        sys.argv = [spec.origin, *self.args]


def preload() -> None:
    for name in _ALSO:
        importlib.import_module(name)
    for package in ("newscrawler", *_PACKAGES):
        where = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(where, f"{package}."):
            importlib.import_module(module.name)
    if _NEVER in sys.modules or threading.active_count() > 1:
        threads = [thread.name for thread in threading.enumerate()]
        raise SystemExit(
            f"not fit to be forked: {_NEVER} imported, or more than {threads[0]} of {threads}"
        )
    fill_caches()
    # What is here now is not looked at, and so not copied, by a child's garbage collector.
    gc.collect()
    gc.freeze()


def fill_caches() -> None:
    """What each command, reader or web would make again: the frontier's scripts, the system's
    authorities, what a reader makes with its first pages (the model of languages, the patterns of
    the lexicon: half a second of CPU), the vocabulary of the webs' usual seed."""
    scripts = importlib.import_module("newscrawler.frontier.scripts")
    for name in scripts.NAMES:
        scripts.load(name)
    importlib.import_module("newscrawler.fetch.client")._ssl_context("", True)
    importlib.import_module("tests.newsweb.language").language(1)
    importlib.import_module("newscrawler.extraction.language")._model()
    read_pages()


def read_pages() -> None:
    from newscrawler.crawl.parse_process import Task, read
    from newscrawler.extraction.context import PageContext
    from newscrawler.items import Kind
    from newscrawler.store import fold
    from tests.fixtures_selectors import made_pages

    for template in ("vnexpress.net", "tuoitre.vn"):
        (page,) = made_pages(template, 1)
        found = read(Task(page.body, page.url, Kind.ARTICLE, context=PageContext()))
        fold.index_words(found.extraction.content.value)  # type: ignore[union-attr]


class Server:
    def __init__(self, address: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind("\0" + address)
        self.listener.listen(64)
        self.connections: dict[int, socket.socket] = {}

    def is_wanted(self) -> bool:
        """Waits for the first command; False where the tests ended without any: imports would have
        cost 5 s of CPU."""
        ready, _, _ = select.select([self.listener, sys.stdin], [], [])
        return self.listener in ready

    def begin(self) -> None:
        """When what was imported has left the signals alone."""
        self.woken, wake = socket.socketpair()
        self.woken.setblocking(False)
        wake.setblocking(False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno())
        self.selector = selectors.DefaultSelector()
        for source in (self.listener, self.woken, sys.stdin):
            self.selector.register(source, selectors.EVENT_READ)

    def serve(self) -> Order | None:
        """Returns in every child with its order, and in the server with None
        when the tests have ended."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is self.woken:
                    self.reap()
                elif order := self.take():
                    return order

    def take(self) -> Order | None:
        connection, _ = self.listener.accept()
        head, rights, _, _ = connection.recvmsg(_HEAD.size, socket.CMSG_SPACE(3 * 4))
        streams = array.array("i")
        streams.frombytes(rights[0][2])
        body = _exactly(connection, _HEAD.unpack(head)[0])
        child = os.fork()
        if not child:
            connection.close()
            self.close()
            return Order(**json.loads(body), streams=list(streams))
        for stream in streams:
            os.close(stream)
        self.connections[child] = connection
        connection.sendall(_HEAD.pack(child))
        return None

    def close(self) -> None:
        """In a child. Sockets that only lost their numbers would, collected later, close
        what has them then."""
        signal.set_wakeup_fd(-1)
        self.selector.close()
        for source in (self.listener, self.woken, self._wake, *self.connections.values()):
            source.close()

    def reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.woken.recv(4096)
        while self.connections:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            with self.connections.pop(pid) as connection, contextlib.suppress(OSError):
                connection.sendall(_ENDED.pack(status, usage.ru_utime + usage.ru_stime))


# ---------------------------------------------------------------- processes of a command


class Helpers:
    """Starts the processes in which a command parses and stores (crawl/processes.py).

    They are forked as well, by a process that the command forks before it has threads. A
    child of that process's child becomes the command's own when that one ends, as the
    command adopts its orphans (PR_SET_CHILD_SUBREAPER): it waits for them and kills them as
    for those that it starts by itself.
    """

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def start(self) -> HelperOrder | None:
        """None in the command, and an order in every process that it asks for."""
        adopt_orphans()
        if os.fork():
            self.theirs.close()
            return None
        self.ours.close()
        return self.serve()

    def serve(self) -> HelperOrder:
        """Returns in every child with its order; the process that forks them ends here."""
        # The command decides when its processes end.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            order = self._take()
            if order is None:
                os._exit(0)
            if not (between := os.fork()):
                if pid := os.fork():
                    self.theirs.sendall(_HEAD.pack(pid))
                    os._exit(0)
                self.theirs.close()
                return order
            os.close(order.fd)
            os.waitpid(between, 0)
            self.theirs.sendall(b"\0")  # now it is the command's child

    def _take(self) -> HelperOrder | None:
        head, rights, _, _ = self.theirs.recvmsg(_HEAD.size, socket.CMSG_SPACE(4))
        if not head:
            return None
        fds = array.array("i")
        fds.frombytes(rights[0][2])
        body = _exactly(self.theirs, _HEAD.unpack(head)[0])
        return HelperOrder(**json.loads(body), fd=fds[0])

    def start_process(self, fd: int, target: str, memory_bytes: int) -> subprocess.Popen[bytes]:
        """In the place of crawl.processes.start_process."""
        order = {"target": target, "memory_bytes": memory_bytes, "env": dict(os.environ)}
        body = json.dumps(order).encode()
        rights = array.array("i", [fd])
        self.ours.sendmsg([_HEAD.pack(len(body))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        self.ours.sendall(body)
        (pid,) = _HEAD.unpack(_exactly(self.ours, _HEAD.size))
        _exactly(self.ours, 1)
        return Adopted(pid)


class Adopted(subprocess.Popen[bytes]):
    """A child of this process that another one forked."""

    def __init__(self, pid: int) -> None:
        self._forked = pid
        super().__init__([str(pid)])

    def _execute_child(self, *_: Any) -> None:  # type: ignore[override]
        self.pid = self._forked
        self._child_created = True


@dataclass
class HelperOrder:
    target: str
    memory_bytes: int
    env: dict[str, str]
    fd: int

    def run(self) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        fd = os.dup2(self.fd, 3)
        os.closerange(4, 64)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.environ.clear()
        os.environ.update(self.env)
        rename(self.target)
        from newscrawler.crawl.processes import serve

        serve(fd, self.target, self.memory_bytes)


def adopt_orphans(is_on: bool = True) -> None:
    if ctypes.CDLL(None).prctl(36, int(is_on), 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
        raise SystemExit("the kernel does not let a process adopt orphans")


@contextlib.contextmanager
def orphans_adopted() -> Iterator[None]:
    """Not for longer: servers that a test leaves behind would become zombies, which nobody waits
    for."""
    adopt_orphans()
    try:
        yield
    finally:
        adopt_orphans(False)


def rename(name: str) -> None:
    """What ``ps`` shows of this process, written over the arguments of the server."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, see proc(5)
    text = name.encode()[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))


def main() -> None:
    if sys.argv[1] == "--helpers":
        run_helper(int(sys.argv[2]))
        return
    server = Server(sys.argv[1])
    print("bound", flush=True)
    if not server.is_wanted():
        return
    preload()
    server.begin()
    order = server.serve()
    if order is None:
        return
    order.put_on()
    end(MAINS[order.module])


def run_helper(fd: int) -> None:
    for name in _TARGETS:
        importlib.import_module(name)
    read_pages()
    gc.collect()
    gc.freeze()
    helpers = Helpers()
    helpers.ours.close()
    helpers.theirs.close()
    helpers.theirs = socket.socket(fileno=fd)
    helpers.serve().run()
    os._exit(0)


def end(work: Callable[[], None]) -> NoReturn:
    """Runs ``work`` and ends as an interpreter ends, with the same exit code, exit functions and
    flushed streams, but without taking its objects apart: to write into 300 MB of them, page by
    page, takes twice the CPU of a short command."""
    code = 0
    try:
        work()
    except SystemExit as ended:
        code = _exit_code(ended)
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        code = -signal.SIGINT
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = code or _NOT_FLUSHED
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _exit_code(ended: SystemExit) -> int:
    if ended.code is None:
        return 0
    if isinstance(ended.code, int):
        return ended.code & 0xFF
    print(ended.code, file=sys.stderr)
    return 1


def run_scrapy() -> None:
    importlib.reload(sys.modules[_SETTINGS])
    helpers = Helpers()
    helper = helpers.start()
    if helper is not None:
        helper.run()
        return
    from newscrawler.crawl import processes

    processes.start_process = helpers.start_process  # type: ignore[assignment]
    from scrapy.cmdline import execute

    execute()


def run_newsweb() -> None:
    from tests.newsweb.server import main as newsweb

    sys.exit(newsweb())


#: What ``python -m MODULE`` does, with the imports behind it.
MAINS = {"scrapy": run_scrapy, "tests.newsweb": run_newsweb}


if __name__ == "__main__":
    main()
