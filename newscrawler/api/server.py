"""Runs the app: binds the address first, so that a taken port is one clear line; ends
cleanly on SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Generator
from types import FrameType
from typing import Any

import uvicorn

#: Open answers get this long when the server is stopped, seconds.
GRACE_S = 3


class CannotServe(OSError):
    """The address cannot be bound; the text says why and what to do."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Port 0 takes a free one. Raises CannotServe."""
    try:
        info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as exc:
        raise CannotServe(f"{host} is not an address of this machine: {exc.strerror}") from exc
    # With the protocol named: asyncio switches Nagle's algorithm off only then, 40 ms an answer.
    sock = socket.socket(info[0], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(info[4])
        sock.listen(128)
    except (OSError, OverflowError) as exc:
        sock.close()
        raise CannotServe(_why(host, port, exc)) from exc
    sock.setblocking(False)
    return sock


def _why(host: str, port: int, exc: Exception) -> str:
    number = getattr(exc, "errno", None)
    if number == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is taken by another program; choose one with --port or API_PORT"
        )
    if number == errno.EACCES:
        return (
            f"port {port} may not be bound by this user; choose one above 1023 with --port or"
            " API_PORT"
        )
    if number == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; see --host or API_HOST"
    return f"{host}:{port} cannot be bound: {exc}"


def address(sock: socket.socket) -> str:
    """ "http://127.0.0.1:8642" """
    host, port = sock.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class PageServer(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answers without an end are told to end: uvicorn would wait GRACE_S for them."""
        state = getattr(self.config.app, "state", None)
        if (ending := getattr(state, "ending", None)) is not None:
            ending.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """uvicorn raises the signal again after a clean end, and the process
        would end as killed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            self.should_exit = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def make_server(app: Any) -> PageServer:
    config = uvicorn.Config(
        app,
        log_config=None,  # Scrapy's logging is set up already
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the Host check must see what came
        timeout_graceful_shutdown=GRACE_S,
        lifespan="on",
        ws="none",
    )
    return PageServer(config)


def serve(app: Any, sock: socket.socket) -> None:
    """Blocks until SIGINT or SIGTERM."""
    asyncio.run(make_server(app).serve(sockets=[sock]))


class Running:
    """A server in a thread of its own, for tests and embedding."""

    def __init__(self, app: Any, sock: socket.socket) -> None:
        self.url = address(sock)
        self._server = make_server(app)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve(sockets=[sock])),
            name="search-page",
            daemon=True,
        )
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        self._server.should_exit = True
        self._thread.join(timeout_s)


def start_in_thread(app: Any, host: str = "127.0.0.1", port: int = 0) -> Running:
    """The socket listens when this returns: the first request waits until the app is up.
    Raises CannotServe."""
    return Running(app, bind(host, port))
