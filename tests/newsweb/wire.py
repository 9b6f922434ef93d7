"""A small HTTP/1.1 server: GET and HEAD, keep-alive, pipelining, and answers
that go wrong on purpose.

Own code and not a framework, because it has to send broken answers, and because a benchmark beside
it on two cores needs a server that costs little (about 50 us a page of 65 KB).
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from tests.newsweb.dates import http_date

_REASONS = {
    200: "OK",
    206: "Partial Content",
    301: "Moved Permanently",
    302: "Found",
    304: "Not Modified",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    410: "Gone",
    421: "Misdirected Request",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
MAX_HEAD = 64 * 1024


@dataclass(slots=True)
class Wire:
    """An answer ready to be sent. ``head`` lacks Date and Connection and the empty line."""

    status: int
    head: bytes
    body: bytes = b""
    end: str = ""  # "" | drop | short
    delay_s: float = 0.0
    chunks: tuple[bytes, int] | None = None

    @property
    def size(self) -> int:
        return len(self.chunks[0]) * self.chunks[1] if self.chunks else len(self.body)


def head(
    status: int, length: int, content_type: str = "", headers: Mapping[str, str] | None = None
) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}",
        "Server: newsweb",
        f"Content-Length: {length}",
    ]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1", "replace")


class Hits:
    """Every request as it came in: the site's side of the story. Kept in memory and
    written to a file."""

    def __init__(self, path: Path | None = None) -> None:
        self.rows: list[tuple[float, str, str, str, int, int, float]] = []
        self._file: IO[str] | None = path.open("a", encoding="utf-8") if path else None
        self._written = 0

    def add(self, at: float, host: str, path: str, agent: str, status: int, size: int) -> None:
        self.rows.append((at, host, path, agent, status, size, time.time()))

    @staticmethod
    def line(row: tuple[float, str, str, str, int, int, float]) -> str:
        at, host, path, agent, status, size, done = row
        return json.dumps(
            {
                "time": round(at, 4),
                "host": host,
                "path": path,
                "ua": agent,
                "status": status,
                "bytes": size,
                "done": round(done, 4),
            },
            ensure_ascii=False,
        )

    def flush(self) -> None:
        if self._file and self._written < len(self.rows):
            rows = self.rows[self._written :]
            self._file.write("".join(self.line(r) + "\n" for r in rows))
            self._file.flush()
            self._written += len(rows)

    def close(self) -> None:
        self.flush()
        if self._file:
            self._file.close()


#: (host, target, headers with lower-case names, address the client connected to) -> answer
App = Callable[[str, str, dict[str, str], str], Wire]


class Connection(asyncio.Protocol):
    def __init__(self, app: App, hits: Hits) -> None:
        self.app, self.hits = app, hits
        self.buffer = b""
        self.transport: asyncio.Transport | None = None
        self.local = ""
        self.scheme = "http"
        self.busy = False
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        name = transport.get_extra_info("sockname")
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self.local = f"{name[0]}:{name[1]}" if name else ""

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.writable.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self._work()

    def _work(self) -> None:
        while not self.busy and self.transport is not None:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self.buffer) > MAX_HEAD:
                    self.transport.close()
                return
            raw, self.buffer = self.buffer[:end], self.buffer[end + 4 :]
            self._request(raw)

    def _request(self, raw: bytes) -> None:
        at = time.time()
        first, *lines = raw.decode("latin-1").split("\r\n")
        try:
            method, target, version = first.split(" ")
        except ValueError:
            self._send(Wire(400, head(400, 0)), close=True)
            return
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if target.startswith(("http://", "https://")):  # asked as a proxy: absolute form
            _, _, rest = target.partition("://")
            headers["host"], slash, path = rest.partition("/")
            target = slash + path or "/"
        host = headers.get("host", self.local).lower()
        headers["x-newsweb-scheme"] = self.scheme
        close = headers.get("connection", "").lower() == "close" or version == "HTTP/1.0"
        if method not in ("GET", "HEAD"):
            answer, close = Wire(405, head(405, 0)), True
        else:
            answer = self.app(host, target, headers, self.local)
        agent = headers.get("user-agent", "")
        if answer.delay_s or answer.chunks:
            self.busy = True
            task = asyncio.ensure_future(self._later(answer, close, at, host, target, agent))
            task.add_done_callback(lambda t: t.exception() if not t.cancelled() else None)
            return
        self._send(answer, close, body=method == "GET")
        self.hits.add(
            at, host, target, agent, 0 if answer.end == "drop" else answer.status, answer.size
        )

    async def _later(
        self, answer: Wire, close: bool, at: float, host: str, target: str, agent: str
    ) -> None:
        # Noted at once, as a client may give up waiting: the site has seen the request.
        self.hits.add(at, host, target, agent, answer.status, answer.size)
        await asyncio.sleep(answer.delay_s)
        if answer.chunks is None:
            self._send(answer, close)
        elif self.transport is not None:
            piece, times = answer.chunks
            self.transport.write(self._head(answer, close))
            for _ in range(times):
                await self.writable.wait()
                if self.transport is None or self.transport.is_closing():
                    return
                self.transport.write(piece)
            if close:
                self.transport.close()
        self.busy = False
        self._work()

    def _head(self, answer: Wire, close: bool) -> bytes:
        return (
            answer.head
            + _date_line(int(time.time()))
            + (b"Connection: close\r\n\r\n" if close else b"\r\n")
        )

    def _send(self, answer: Wire, close: bool, body: bool = True) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if answer.end == "drop":
            transport.abort()
        elif answer.end == "short":
            transport.write(self._head(answer, close) + answer.body[: len(answer.body) // 2])
            transport.close()
        else:
            transport.writelines([self._head(answer, close), answer.body if body else b""])
            if close:
                transport.close()


_date_cache: tuple[int, bytes] = (0, b"")


def _date_line(second: int) -> bytes:
    global _date_cache
    if _date_cache[0] != second:
        _date_cache = (second, f"Date: {http_date(second)}\r\n".encode())
    return _date_cache[1]


def bind(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    sock.listen(512)
    sock.setblocking(False)
    return sock


def bind_all(
    addresses: list[str], port: int = 0, tries: int = 40
) -> tuple[int, list[socket.socket]]:
    """One port that is free on every address. :raises OSError: when there is none (or
    ``port`` is taken)."""
    for attempt in range(tries):
        socks: list[socket.socket] = []
        try:
            socks.append(bind(addresses[0], port))
            chosen = socks[0].getsockname()[1]
            socks += [bind(address, chosen) for address in addresses[1:]]
        except OSError:
            for sock in socks:
                sock.close()
            if port or attempt == tries - 1:
                raise
            continue
        return chosen, socks
    raise OSError("no common free port")


async def serve_plain(
    factory: Callable[[], Connection], socks: list[socket.socket]
) -> list[asyncio.Server]:
    loop = asyncio.get_running_loop()
    return [await loop.create_server(factory, sock=sock) for sock in socks]


async def serve_both(
    factory: Callable[[], Connection], sock: socket.socket, context: ssl.SSLContext
) -> None:
    """TLS and plain HTTP on one port: the first byte of a TLS client is 0x16. Runs
    until cancelled."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    while True:
        client, _ = await loop.sock_accept(sock)
        task = loop.create_task(_welcome(factory, client, context))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _welcome(
    factory: Callable[[], Connection], client: socket.socket, context: ssl.SSLContext
) -> None:
    loop = asyncio.get_running_loop()
    client.setblocking(False)
    readable = asyncio.Event()
    loop.add_reader(client, readable.set)
    try:
        await asyncio.wait_for(readable.wait(), 30)
        first = client.recv(1, socket.MSG_PEEK)
    except (TimeoutError, OSError):
        first = b""
    finally:
        loop.remove_reader(client)
    if not first:
        client.close()
        return
    try:
        await loop.connect_accepted_socket(
            factory, client, ssl=context if first == b"\x16" else None
        )
    except (OSError, ssl.SSLError, ConnectionError):
        client.close()
