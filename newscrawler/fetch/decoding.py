"""Undoes an answer's content coding while it arrives, and never makes more than it may. Pure.

Scrapy's HttpCompressionMiddleware has a limit too, but it works on the whole body, keeps a cut-off
gzip as if it were whole, and says neither what was wrong nor why in a word that we can count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import brotli
from backports import zstd
from isal import igzip_lib, isal_zlib

#: What we ask for. zstd's window is bounded by RFC 9659 (8 MB), so a hostile one
#: cannot take memory.
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_ZSTD_WINDOW_LOG = 23
# Codings that may be stacked ("gzip, gzip" is seen, more is an attack).
_MAX_CODINGS = 2
#: gzip members or zstd frames in one coding of a body. Each costs some microseconds even when it is
#: empty, and two layers turn a kilobyte into a million of them. Files that were put together from
#: parts have some dozens.
MAX_MEMBERS = 4096
# Bytes that a decoder is given, and may make, in one call: the longest time for which
# nothing else runs.
_SLICE, _SLICE_OF_MANY, _OUT = 16_384, 2_048, 65_536
# Labels that mean "none"; the last ones are character sets that found their way into
# the wrong header.
_NO_CODING = frozenset({"", "identity", "none", "utf-8", "utf8"})


class DecodeError(ValueError):
    """``reason``: size (or dearer than any honest body), truncated or bad_encoding."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Stage(Protocol):
    @property
    def done(self) -> bool: ...
    def pieces(self, data: bytes, most: int) -> Iterator[bytes]:
        """Decoded bytes, at most ``_OUT`` of them for each call of the decoder, also
        where it made none.

        More than ``most`` of them in all mean that the limit is passed and nothing else."""


class _Members:
    """Counts what follows one another in one body: each needs a decoder of its own."""

    def __init__(self) -> None:
        self.count = 1

    def next(self) -> None:
        self.count += 1
        if self.count > MAX_MEMBERS:
            raise DecodeError("size", f"more than {MAX_MEMBERS} members or frames in one body")

    @property
    def slice_bytes(self) -> int:
        """A decoder that ends in the middle of what it was given copies the rest for the next one.
        Small pieces from the second member on keep that copying in proportion to the body."""
        return _SLICE if self.count == 1 else _SLICE_OF_MANY


class _Inflate:
    """gzip (several members may follow one another) and deflate."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inflater: Any = None
        self._head = b""  # of a member whose second byte has not come yet
        self._members = _Members()
        self._in_padding = False
        self.done = False

    def pieces(self, data: bytes, most: int) -> Iterator[bytes]:
        data, self._head = self._head + data, b""
        place = size = 0
        while place < len(data) and size <= most and not self._in_padding:
            if (self._inflater is None or self.done) and len(data) - place < 2:
                self._head = data[place:]
                return
            if self._inflater is None or self.done:
                self._start(data[place : place + 2])
                continue
            rest = data[place : place + self._members.slice_bytes]
            place += len(rest)
            while rest and size <= most:
                part = self._inflater.decompress(rest, min(_OUT, most + 1 - size))
                size += len(part)
                yield part
                if self._inflater.eof:
                    self.done = True
                    place -= len(self._inflater.unused_data)
                    break
                rest = self._inflater.unconsumed_tail

    def _start(self, head: bytes) -> None:
        """Makes the inflater when the first two bytes are there: only they tell
        zlib from raw deflate."""
        wbits = self._wbits
        if self.done:
            if head != b"\x1f\x8b":
                self._in_padding = True  # behind the end; browsers ignore it as well
                return
            self._members.next()
        elif wbits == 15 and (head[0] & 15 != 8 or int.from_bytes(head) % 31):
            wbits = -15  # without zlib's header, as some servers send it (RFC 9110 8.4.1.2, note)
        self._inflater, self.done = isal_zlib.decompressobj(wbits), False


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    @property
    def done(self) -> bool:
        return bool(self._decoder.is_finished())

    def pieces(self, data: bytes, most: int) -> Iterator[bytes]:
        size = 0
        for start in range(0, len(data), _SLICE):
            rest = data[start : start + _SLICE]
            while size <= most and not self.done:
                part = self._decoder.process(rest, output_buffer_limit=min(_OUT, most + 1 - size))
                size += len(part)
                yield part
                rest = b""
                # It may have more to give although it says that it can take more.
                if not part and self._decoder.can_accept_more_data():
                    break


class _Zstd:
    def __init__(self) -> None:
        self._decoder = self._new()
        self._members = _Members()
        self.done = False

    @staticmethod
    def _new() -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        )

    def pieces(self, data: bytes, most: int) -> Iterator[bytes]:
        place = size = 0
        while place < len(data) and size <= most:
            if self._decoder.eof:  # several frames may follow one another
                self._members.next()
                self._decoder, self.done = self._new(), False
            rest = data[place : place + self._members.slice_bytes]
            place += len(rest)
            while size <= most:
                part = self._decoder.decompress(rest, min(_OUT, most + 1 - size))
                size += len(part)
                yield part
                if self._decoder.eof:
                    self.done = True
                    place -= len(self._decoder.unused_data)
                    break
                if self._decoder.needs_input:
                    break
                rest = b""  # what it has taken already makes more than one piece


def _stage(coding: str) -> _Stage:
    if coding in ("gzip", "x-gzip"):
        return _Inflate(31)
    if coding == "deflate":
        return _Inflate(15)
    if coding == "br":
        return _Brotli()
    if coding == "zstd":
        return _Zstd()
    raise DecodeError(
        "bad_encoding", f"content coding {coding[:40]!r} is not one that was asked for"
    )


_ERRORS: Any = (  # isal's are declared as instances, and brotli's not at all
    isal_zlib.error,
    igzip_lib.error,
    brotli.error,
    zstd.ZstdError,
)


class BodyDecoder:
    """Takes a body chunk by chunk, gives it back decoded. ``max_bytes`` holds before
    and after decoding.

    :param content_encoding: the header's value, None when there is none
    :raises DecodeError: unknown coding (here), too large, damaged (``feed``), cut off (``finish``)
    """

    def __init__(self, content_encoding: str | None, max_bytes: int) -> None:
        codings = [c.strip().lower() for c in (content_encoding or "").split(",")]
        codings = [c for c in codings if c not in _NO_CODING]
        if len(codings) > _MAX_CODINGS:
            raise DecodeError(
                "bad_encoding", f"{len(codings)} content codings on top of one another"
            )
        self._stages = [
            _stage(c) for c in reversed(codings)
        ]  # listed in the order they were applied
        self._max_bytes = max_bytes
        self._received = 0
        self._sizes = [0] * len(self._stages)
        self._out: list[bytes] = []

    def feed(self, data: bytes) -> None:
        for _ in self.steps(data):
            pass

    def steps(self, data: bytes) -> Iterator[None]:
        """As ``feed``, in steps of well under a millisecond for an ordinary body: whoever
        drives them decides where and for how long (``fetch.client.PacedDecoder``). They
        must be driven to the end.

        :raises DecodeError: as ``feed``
        """
        self._received += len(data)
        if self._received > self._max_bytes:
            raise DecodeError("size", f"more than {self._max_bytes} bytes received")
        yield from self._through(0, data)

    def _through(self, number: int, data: bytes) -> Iterator[None]:
        """Takes ``data`` through the stages from ``number`` on."""
        if number == len(self._stages):
            if data:
                self._out.append(data)
            return
        pieces = self._stages[number].pieces(data, self._max_bytes - self._sizes[number])
        while True:
            try:
                piece = next(pieces, None)
            except _ERRORS as exc:
                raise DecodeError(
                    "bad_encoding", f"body is not in the coding it is labelled with ({exc})"
                ) from exc
            if piece is None:
                return
            self._sizes[number] += len(piece)
            if self._sizes[number] > self._max_bytes:
                raise DecodeError("size", f"more than {self._max_bytes} bytes when decoded")
            yield
            if piece:
                yield from self._through(number + 1, piece)

    def finish(self) -> bytes:
        """:raises DecodeError: "truncated": the compressed body ends before its end"""
        if self._received and not all(stage.done for stage in self._stages):
            raise DecodeError("truncated", "compressed body ends before its end")
        return b"".join(self._out) if len(self._out) != 1 else self._out[0]
