"""Undoes an answer's content coding while it arrives, and never makes more than it may. Pure.

Scrapy's HttpCompressionMiddleware has a limit too, but it works on the whole body, keeps a cut-off
gzip as if it were whole, and says neither what was wrong nor why in a word that we can count.
"""

from __future__ import annotations

from typing import Any, Protocol

import brotli
from backports import zstd
from isal import igzip_lib, isal_zlib

#: What we ask for. zstd's window is bounded by RFC 9659 (8 MB), so a hostile one cannot take memory.
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_ZSTD_WINDOW_LOG = 23
# Codings that may be stacked ("gzip, gzip" is seen, more is an attack).
_MAX_CODINGS = 2
# Labels that mean "none"; the last ones are character sets that found their way into the wrong header.
_NO_CODING = frozenset({"", "identity", "none", "utf-8", "utf8"})


class DecodeError(ValueError):
    """``reason``: size, truncated or bad_encoding."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Stage(Protocol):
    @property
    def done(self) -> bool: ...
    def feed(self, data: bytes, most: int) -> bytes:
        """Decoded bytes; more than ``most`` of them mean that the limit is passed and nothing else."""


class _Inflate:
    """gzip (several members may follow one another) and deflate."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inflater: Any = None
        self._pending = b""
        self.done = False

    def _start(self) -> bool:
        """Makes the inflater when the first two bytes are there: only they tell zlib from raw deflate."""
        if self._inflater is None:
            if len(self._pending) < 2:
                return False
            wbits = self._wbits
            if wbits == 15 and (self._pending[0] & 15 != 8 or int.from_bytes(self._pending[:2]) % 31):
                wbits = -15  # without zlib's header, as some servers send it (RFC 9110 8.4.1.2, note)
            self._inflater = isal_zlib.decompressobj(wbits)
        return True

    def feed(self, data: bytes, most: int) -> bytes:
        self._pending += data
        out: list[bytes] = []
        size = 0
        while self._pending and size <= most and self._start():
            if self.done:
                if not self._pending.startswith(b"\x1f\x8b"):
                    self._pending = b""  # padding behind the end, which browsers ignore as well
                    break
                self._inflater, self.done = None, False
                continue
            part = self._inflater.decompress(self._pending, most + 1 - size)
            self.done = self._inflater.eof
            self._pending = self._inflater.unused_data if self.done else self._inflater.unconsumed_tail
            out.append(part)
            size += len(part)
        return b"".join(out)


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    @property
    def done(self) -> bool:
        return bool(self._decoder.is_finished())

    def feed(self, data: bytes, most: int) -> bytes:
        if self.done:
            return b""
        out = [self._decoder.process(data, output_buffer_limit=most + 1)]
        size = len(out[0])
        while not self._decoder.can_accept_more_data() and size <= most:
            part = self._decoder.process(b"", output_buffer_limit=most + 1 - size)
            out.append(part)
            size += len(part)
        return b"".join(out)


class _Zstd:
    def __init__(self) -> None:
        self._decoder = self._new()
        self.done = False

    @staticmethod
    def _new() -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})

    def feed(self, data: bytes, most: int) -> bytes:
        out: list[bytes] = []
        size = 0
        while size <= most:
            if self._decoder.eof:  # several frames may follow one another
                if not data:
                    break
                self._decoder = self._new()
            part = self._decoder.decompress(data, most + 1 - size)
            out.append(part)
            size += len(part)
            self.done = self._decoder.eof
            data = self._decoder.unused_data if self.done else b""
            if not self.done and self._decoder.needs_input:
                break
        return b"".join(out)


def _stage(coding: str) -> _Stage:
    if coding in ("gzip", "x-gzip"):
        return _Inflate(31)
    if coding == "deflate":
        return _Inflate(15)
    if coding == "br":
        return _Brotli()
    if coding == "zstd":
        return _Zstd()
    raise DecodeError("bad_encoding", f"content coding {coding[:40]!r} is not one that was asked for")


_ERRORS = (isal_zlib.error, igzip_lib.error, brotli.error, zstd.ZstdError)


class BodyDecoder:
    """Takes a body chunk by chunk, gives it back decoded. ``max_bytes`` holds before and after decoding.

    :param content_encoding: the header's value, None when there is none
    :raises DecodeError: unknown coding (here), too large, damaged (``feed``), cut off (``finish``)
    """

    def __init__(self, content_encoding: str | None, max_bytes: int) -> None:
        codings = [c.strip().lower() for c in (content_encoding or "").split(",")]
        codings = [c for c in codings if c not in _NO_CODING]
        if len(codings) > _MAX_CODINGS:
            raise DecodeError("bad_encoding", f"{len(codings)} content codings on top of one another")
        self._stages = [_stage(c) for c in reversed(codings)]  # listed in the order they were applied
        self._max_bytes = max_bytes
        self._received = 0
        self._sizes = [0] * len(self._stages)
        self._out: list[bytes] = []

    def feed(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._max_bytes:
            raise DecodeError("size", f"more than {self._max_bytes} bytes received")
        for number, stage in enumerate(self._stages):
            most = self._max_bytes - self._sizes[number]
            try:
                data = stage.feed(data, most)
            except _ERRORS as exc:
                raise DecodeError("bad_encoding", f"body is not in the coding it is labelled with ({exc})") from exc
            if len(data) > most:
                raise DecodeError("size", f"more than {self._max_bytes} bytes when decoded")
            self._sizes[number] += len(data)
        self._out.append(data)

    def finish(self) -> bytes:
        if self._received and not all(stage.done for stage in self._stages):
            raise DecodeError("truncated", "compressed body ends before its end")
        return b"".join(self._out) if len(self._out) != 1 else self._out[0]
