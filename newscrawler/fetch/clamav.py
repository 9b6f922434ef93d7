"""Asks ClamAV's daemon (clamd) whether a page has one of its signatures. Its protocol: INSTREAM.

One connection for each page, as clamd means it. Sockets instead of asyncio's streams: a daemon that
has enough of a page says so and closes, and its word must still be read after a write has failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from newscrawler.utils.numbers import whole_number

#: Bytes of an answer: a name of a signature and some words.
_ANSWER = 4096
#: Pages that are scanned at once by one worker; clamd has ten threads by default, for all.
_AT_ONCE = 4
#: Seconds that a daemon may take to answer PING.
_PING_S = 5.0


class ScannerUnavailable(Exception):
    """The daemon does not answer. Waiting may help."""


class ScannerDropped(ScannerUnavailable):
    """The daemon took a page and ended the connection without a word: it was stopped, or the page
    makes it crash."""


class ScanFailed(Exception):
    """The daemon is well and did not judge this page: it took too long, it dropped the connection,
    or it says ERROR."""


class TooLargeToScan(Exception):
    """More bytes than the daemon takes (StreamMaxLength in its clamd.conf)."""


def parse_address(text: str) -> str | tuple[str, int]:
    """Of CLAMAV: the path of a socket, or host and port.

    :raises ValueError: it is neither; the text names the setting
    """
    text = text.strip()
    path = text.removeprefix("unix://") if text.startswith("unix://") else text
    if path.startswith("/"):
        return path
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = whole_number(port, 65_535)
    if not host or not number:
        raise ValueError(
            f"CLAMAV={text}: it must be the path of clamd's socket (/run/clamav/clamd.ctl) or"
            " host:port"
        )
    return host, number


class ClamAV:
    """A daemon. Used inside one running event loop.

    :param address: see :func:`parse_address`
    :param timeout_s: for one page, from the connection to the answer
    """

    def __init__(self, address: str | tuple[str, int], timeout_s: float) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._room = asyncio.Semaphore(_AT_ONCE)

    @property
    def name(self) -> str:
        """For messages."""
        at = self._address
        return at if isinstance(at, str) else f"{at[0]}:{at[1]}"

    async def scan(self, body: bytes) -> str:
        """Name of the signature that was found, "" = none.

        :raises ScannerUnavailable, ScannerDropped, ScanFailed, TooLargeToScan:
        """
        stream = b"".join((b"zINSTREAM\0", struct.pack(">I", len(body)), body, bytes(4)))
        async with self._room:
            try:
                answer = await self._ask(stream if body else b"zPING\0", self._timeout_s)
            except TimeoutError:
                await self.ping()  # a page must not pass for a daemon that is away
                raise ScanFailed(f"no answer of {self.name} in {self._timeout_s:g} s") from None
            except ScannerDropped as exc:
                if await self._is_well():
                    raise ScanFailed(str(exc)) from exc
                raise
        return _signature_in(answer)

    async def ping(self) -> None:
        """:raises ScannerUnavailable: but no ScannerDropped, as no page had part in it"""
        try:
            answer = await self._ask(b"zPING\0", _PING_S)
        except TimeoutError:
            raise ScannerUnavailable(f"{self.name} does not answer in {_PING_S:g} s") from None
        except ScannerDropped as exc:
            raise ScannerUnavailable(str(exc)) from exc
        if answer != "PONG":
            raise ScannerUnavailable(f"{self.name} is no clamd: it answers {answer[:60]!r}")

    async def _is_well(self) -> bool:
        try:
            await self.ping()
        except ScannerUnavailable:
            return False
        return True

    async def version(self) -> str:
        """ "ClamAV 1.4.6/27600/Sun Nov 22 09:00:00 2026": program, its own signatures and their
        day. Raises ScannerUnavailable."""
        try:
            return await self._ask(b"zVERSION\0", _PING_S)
        except TimeoutError:
            raise ScannerUnavailable(f"{self.name} does not answer in {_PING_S:g} s") from None

    async def _ask(self, data: bytes, timeout_s: float) -> str:
        """:raises ScannerDropped: the connection stood, and no answer came
        :raises ScannerUnavailable, TimeoutError:
        """
        loop = asyncio.get_running_loop()
        error = ScannerUnavailable
        try:
            async with asyncio.timeout(timeout_s), self._connected() as sock:
                error = ScannerDropped
                with contextlib.suppress(ConnectionError):  # it has said why
                    await loop.sock_sendall(sock, data)
                answer = b""
                while len(answer) < _ANSWER and not answer.endswith(b"\0"):
                    part = await loop.sock_recv(sock, _ANSWER)
                    if not part:
                        break
                    answer += part
        except TimeoutError:
            raise
        except OSError as exc:
            raise error(f"{self.name}: {exc.strerror or exc}") from exc
        text = answer.rstrip(b"\0\n").decode("utf-8", "replace")
        if not text:
            raise ScannerDropped(f"{self.name} closed the connection without an answer")
        return text

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[socket.socket]:
        loop = asyncio.get_running_loop()
        at = self._address
        family: int
        address: Any  # a path, or what the family of the internet takes
        if isinstance(at, str):
            family, address = socket.AF_UNIX, at
        else:
            found = await loop.getaddrinfo(*at, type=socket.SOCK_STREAM)
            family, address = found[0][0], found[0][4]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
            yield sock
        finally:
            sock.close()


def _signature_in(answer: str) -> str:
    if answer in ("stream: OK", "PONG"):
        return ""
    if answer.endswith(" FOUND"):
        return answer.removeprefix("stream: ").removesuffix(" FOUND")
    if "size limit exceeded" in answer:
        raise TooLargeToScan(answer)
    raise ScanFailed(answer[:200])
