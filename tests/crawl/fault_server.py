"""A web server with one fault per path, on raw sockets: a real framework would not
let us send these."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache

import brotli

PAGE = (
    b"<!doctype html><html><head><title>Tin</title></head><body><h1>Tin</h1>"
    + b"<p>Noi dung.</p>" * 200
    + b"</body></html>"
)
MEGA = 1024 * 1024


def head(
    status: str = "200 OK", *lines: str, length: int | None = None, kind: str = "text/html"
) -> bytes:
    all_lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *lines]
    if length is not None:
        all_lines.append(f"Content-Length: {length}")
    return ("\r\n".join(all_lines) + "\r\n\r\n").encode("latin-1")


def whole(body: bytes, *lines: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    return head(status, *lines, length=len(body), kind=kind) + body


@cache
def simple_answers() -> dict[str, bytes]:
    """Path -> everything that is sent; the connection stays open afterwards."""
    bomb = gzip.compress(bytes(200 * MEGA))
    return {
        "/ok": whole(PAGE),
        "/gzip": whole(gzip.compress(PAGE), "Content-Encoding: gzip"),
        "/empty": whole(b""),
        "/announced-50mb": head(length=50 * MEGA) + PAGE,
        "/binary": whole(bytes(range(256)) * 64, kind="text/html"),
        "/bomb": whole(bomb, "Content-Encoding: gzip"),
        # some dozens of bytes on the wire, 100,000 empty gzip members below
        "/members": whole(
            brotli.compress(gzip.compress(b"") * 100_000, quality=5), "Content-Encoding: gzip, br"
        ),
        "/lying-gzip": whole(PAGE, "Content-Encoding: gzip"),
        "/cut-gzip": whole(gzip.compress(PAGE)[:-20], "Content-Encoding: gzip"),
        "/odd-coding": whole(PAGE, "Content-Encoding: compress"),
        "/to-private": whole(
            b"", "Location: http://169.254.169.254/latest/meta-data/", status="302 Found"
        ),
        "/long-headers": whole(PAGE, "Content-Security-Policy: " + "x" * 20_000),
        "/odd-headers": whole(PAGE, "X-Odd: caf\xe9 \xff", "Set-Cookie: visit=1"),
        "/huge-header": whole(PAGE, "X-Huge: " + "x" * 100_000),
        "/many-headers": whole(PAGE, *(f"X-{n}: 1" for n in range(400))),
        "/garbage": b"\x00\x01SSH-2.0-OpenSSH_9.7\r\n\r\n",
        "/page/1": whole(PAGE, "Set-Cookie: id=7; Path=/"),
        "/page/2": whole(PAGE),
        "/page/3": whole(PAGE),
        "/robots.txt": whole(b"User-agent: *\nAllow: /\n", kind="text/plain"),
    }


async def _chunked_50mb() -> AsyncIterator[bytes]:
    yield head("200 OK", "Transfer-Encoding: chunked")
    for _ in range(50):
        yield b"100000\r\n" + b"<p>x</p>" * (MEGA // 8) + b"\r\n"
    yield b"0\r\n\r\n"


async def _drip() -> AsyncIterator[bytes]:
    yield head(length=10_000)
    for _ in range(10_000):
        yield b"a"
        await asyncio.sleep(0.1)


async def _silent() -> AsyncIterator[bytes]:
    await asyncio.sleep(600)
    yield b""


async def _cut_length() -> AsyncIterator[bytes]:
    yield head(length=len(PAGE) + 500) + PAGE


async def _cut_chunked() -> AsyncIterator[bytes]:
    yield head("200 OK", "Transfer-Encoding: chunked") + b"10000\r\n" + PAGE


async def _drop() -> AsyncIterator[bytes]:
    for part in ():
        yield part


#: Answers after which (or in the middle of which) the connection is closed.
CLOSING: dict[str, Callable[[], AsyncIterator[bytes]]] = {
    "/chunked-50mb": _chunked_50mb,
    "/drip": _drip,
    "/silent": _silent,
    "/cut-length": _cut_length,
    "/cut-chunked": _cut_chunked,
    "/drop": _drop,
}


@dataclass
class FaultServer:
    """Runs in a thread of its own. ``hits``: (path, Host header, all request headers);
    ``connections`` opened;
    ``times``: (path, monotonic seconds) of each hit; ``sent``: bytes by path, of the long answers.
    """

    hits: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    times: list[tuple[str, float]] = field(default_factory=list)
    connections: int = 0
    ports: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)

    def start(self, listeners: dict[str, tuple[str, ssl.SSLContext | None]]) -> None:
        """Listeners by name: address, and a TLS context or None. The ports are free ones."""
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(
            lambda loop, context: None
        )  # clients that hang up are what we are here for
        self._answers = dict(simple_answers())
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listeners, started), daemon=True)
        self._thread.start()
        assert started.wait(20), "fault server did not start"

    def _run(
        self, listeners: dict[str, tuple[str, ssl.SSLContext | None]], started: threading.Event
    ) -> None:
        asyncio.set_event_loop(self._loop)

        async def listen() -> None:
            self._servers = []
            for name, (address, context) in listeners.items():
                server = await asyncio.start_server(self._serve, address, 0, ssl=context)
                self._servers.append(server)
                self.ports[name] = server.sockets[0].getsockname()[1]
            started.set()

        self._loop.run_until_complete(listen())
        self._loop.run_forever()

    def stop(self) -> None:
        async def close() -> None:
            for server in self._servers:
                server.close()
            tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.readexactly(1)
        if first == b"\x16":  # a TLS greeting on the plain port
            writer.write(whole(b"", status="400 Bad Request"))
            await writer.drain()
            return False
        request = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = request[0].split(" ")[1]
        headers = {
            k.lower(): v.strip()
            for k, _, v in (line.partition(":") for line in request[1:] if line)
        }
        self.times.append((path, time.monotonic()))
        self.hits.append((path, headers.get("host", ""), headers))
        if path in CLOSING:
            async for part in CLOSING[path]():
                writer.write(part)
                await writer.drain()
                self.sent[path] = self.sent.get(path, 0) + len(part)
            writer.close()
            return False
        writer.write(self._answers.get(path) or whole(b"no", status="404 Not Found"))
        await writer.drain()
        return True
