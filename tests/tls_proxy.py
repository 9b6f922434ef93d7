"""TLS and a password before a server of the tests that has neither, in a thread of its own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

USER, PASSWORD = "elastic", "b13-s3cret"
API_KEY = "bmV3czprZXktb2YtdGhlLXRlc3Rz"
#: As Elasticsearch answers who does not show the right one.
_REFUSED = b'{"error":{"type":"security_exception","reason":"unable to authenticate"},"status":401}'


class TlsProxy:
    """Passes connections on to ``target``, each after its first request had the right credentials.

    ``refuses``: from now on no credentials are right, and connections that are open are cut."""

    def __init__(self, target: str, context: ssl.SSLContext) -> None:
        self._target, self._context = urlsplit(target), context
        self.refused = 0
        self.refuses = False
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._in_loop(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context))
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.url = f"https://{self.address}"
        self.url_with_password = f"https://{USER}:{PASSWORD}@{self.address}"

    def _in_loop(self, work):  # type: ignore[no-untyped-def]
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def refuse(self, refuses: bool) -> None:
        async def change() -> None:
            self.refuses = refuses
            for writer in list(self._open):
                writer.transport.abort()

        self._in_loop(change())

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            for writer in list(self._open):
                writer.transport.abort()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._in_loop(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ssl.SSLError):
                await self._pass_on(reader, writer)
        finally:
            self._open.discard(writer)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if self.refuses or not _is_right(head):
            self.refused += 1
            lines = (
                b"HTTP/1.1 401 Unauthorized\r\nX-elastic-product: Elasticsearch\r\n"
                b"Content-Type: application/json\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n" % len(_REFUSED)
            )
            writer.write(lines if head.startswith(b"HEAD ") else lines + _REFUSED)
            await writer.drain()
            return
        to_server, at_server = self._target.hostname, self._target.port
        their_reader, their_writer = await asyncio.open_connection(to_server, at_server)
        self._open.add(their_writer)
        try:
            their_writer.write(head)
            await asyncio.gather(_copy(reader, their_writer), _copy(their_reader, writer))
        finally:
            self._open.discard(their_writer)
            their_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


def _is_right(head: bytes) -> bool:
    password = base64.b64encode(f"{USER}:{PASSWORD}".encode())
    shown = [
        line.partition(b":")[2].strip()
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"authorization:")
    ]
    return shown in ([b"Basic " + password], [b"ApiKey " + API_KEY.encode()])


@contextlib.contextmanager
def before(target: str, context: ssl.SSLContext) -> Iterator[TlsProxy]:
    proxy = TlsProxy(target, context)
    try:
        yield proxy
    finally:
        proxy.close()
