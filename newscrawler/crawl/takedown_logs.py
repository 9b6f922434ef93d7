"""Addresses of what was taken down, in the logs of DATA_DIR: masked where they stand.

A log is what workers append to meanwhile, so an address is overwritten by as many other bytes,
which keeps every line and its JSON as they are. Packed files that were put aside are written anew.
Audit log and the list of take-downs name what the operator named, and stay.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from newscrawler.utils.files import write_whole
from newscrawler.web.urls import canonicalize

_MASK = b"taken-down"
_BLOCK = 8 * 1024 * 1024
#: Bytes of an address at most; what is longer is masked up to there.
_LONGEST = 4096
#: No letter, digit or sign of an address follows, also no sign of a sentence that goes on with
#: them: "a-1.html5", "a-1.html.bak", "example.vn.other.com". A byte of a letter beyond ASCII is one
#: of an address as well; \xe2\x80 begins quotation marks, dashes and dots.
_END = rb"(?![\w/%-])(?![.:~=+@$!*(]+[\w/%-])(?!(?!\xe2\x80)[\x80-\xff])"
_SIGN = rb"[^\s\"'<>\\]"
#: An apostrophe that more of the address follows is one of it, and no quotation mark at its end.
_APOSTROPHE = rb"'+(?=[\w%/-]|[.&?=~+][\w%-])"
#: A letter as JSON writes it; not the signs that end an address, nor U+20xx (dashes, quotation
#: marks, dots), as _END has it.
_ESCAPED = rb"\\u(?!(?i:00(?:[01].|2[027]|3[ce]|5c|7f)|20))[0-9A-Fa-f]{4}"
#: Up to a list's next address.
_REST = rb"(?:(?![,;|]https?://)%b|%b|%b)*" % (_SIGN, _APOSTROPHE, _ESCAPED)
_SCHEME = rb"(?i:https?:)?//(?:[^\s\"'<>\\/@]*@)?"
#: A byte that is written by its number, but for what ends an address: "1.html%20x" is another one.
_CODED = re.compile(rb"%(?!(?i:[01].|2[027]|3[ce]|5c|7f))([0-9A-Fa-f]{2})")
#: An address in an address in an address.
_MOST_TIMES_CODED = 3
#: Bytes before a host that are looked at for its scheme, user and names of hosts below it.
_BEFORE = 600


class Addresses:
    """:param urls: they, with any fragment and with parameters that only tell where a reader came
        from; by any scheme, user and port, or by none; percent-encoded in part or as a whole
    :param domain: all addresses of it and of what is below it, "" = none"""

    def __init__(self, urls: Iterable[str], domain: str = "") -> None:
        known = set(urls)
        plain = {
            _decoded(url.encode("utf-8", "replace")).decode("utf-8", "replace") for url in known
        }
        self._looks = [_Exact(url) for url in sorted(known | plain)]
        self._domain = _Domain(domain) if domain else None

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        """In their order; none lies in another one."""
        found = set(self._written(data))
        for text, raw in _views(data):
            found |= {(raw(start), raw(end)) for start, end in self._written(text)}
        end = 0
        for start, stop in sorted(found, key=lambda place: (place[0], -place[1])):
            if start >= end:
                yield start, stop
                end = stop

    def _written(self, data: bytes) -> Iterator[tuple[int, int]]:
        looks: list[_Exact | _Domain] = [*self._looks]
        looks += [self._domain] if self._domain is not None else []
        for look in looks:
            yield from look.places(data)

    def masked(self, data: bytes) -> tuple[bytes, int]:
        """With every address masked, and how many there were."""
        out, done = bytearray(data), 0
        for start, end in self.places(data):
            out[start:end] = _mask(end - start)
            done += 1
        return bytes(out), done

    def is_in(self, data: bytes) -> bool:
        """A look of its own for the bare host and path, which knows nothing of what stands before
        and little of what follows: it finds also what :meth:`places` has overlooked."""
        looks: list[_Exact | _Domain] = [*self._looks]
        looks += [self._domain] if self._domain is not None else []
        texts = (data, *(text for text, _ in _views(data)))
        return any(look.is_in(text) for text in texts for look in looks)


def _decode_once(data: bytes) -> bytes:
    return _CODED.sub(lambda code: bytes([int(code[1], 16)]), data)


def _decoded(data: bytes) -> bytes:
    for _ in range(_MOST_TIMES_CODED):
        data = _decode_once(data)
    return data


def _views(data: bytes) -> Iterator[tuple[bytes, Callable[[int], int]]]:
    """What is written percent-encoded, decoded once, twice ...; with where a place of it lies in
    ``data``."""
    steps: list[list[int]] = []  # of each time: where its decoded bytes lie in what came of it

    def raw(place: int, known: tuple[list[int], ...]) -> int:
        for codes in reversed(known):
            place += 2 * bisect_left(codes, place)
        return place

    for _ in range(_MOST_TIMES_CODED):
        codes = [code.start() - 2 * at for at, code in enumerate(_CODED.finditer(data))]
        if not codes:
            return
        steps.append(codes)
        data = _decode_once(data)
        yield data, partial(raw, known=tuple(steps))


def _near(data: bytes, at: int) -> bytes:
    """What may belong to an address whose host begins there."""
    near = data[max(0, at - _BEFORE) : at]
    return near[max(near.rfind(one) for one in (b" ", b'"', b"\n", b"'")) + 1 :]


class _Exact:
    def __init__(self, url: str) -> None:
        self._canonical = canonicalize(url) or url
        parts = urlsplit(url)
        host, _, port = parts.netloc.rpartition("@")[2].partition(":")
        tail = url.partition("//")[2].partition("/")
        path = (tail[1] + tail[2]).encode("utf-8", "replace")
        self._site = f"{parts.scheme}://{parts.netloc}"
        name = rb"(?i:%b)%b" % (
            re.escape(host.encode("utf-8", "replace")),
            rb":" + port.encode() if port else rb"(?::\d+)?",
        )
        more = rb"(?!&)" if parts.query else b""
        at = rb"%b(?P<path>%b" % (name, re.escape(path))
        self._place = re.compile(rb"%b(?:[?#]%b)?)%b%b" % (at, _REST, more, _END))
        self._wide = re.compile(
            rb"(?<![\w.-])%b(?:[?#][^\s\"'<>\\`|]*)?)"
            rb"(?![\w/%%-]|[.:=+~@$]\w|(?!\xe2\x80)[\x80-\xff])%b" % (at, more)
        )
        self._before = re.compile(rb"(?:%b)\Z" % _SCHEME)

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        for found in self._place.finditer(data):
            at = found.start()
            before = self._before.search(_near(data, at))
            if before is not None:
                at -= len(before[0])
            elif re.match(rb"[\w.@-]", data[at - 1 : at] if at else b""):
                continue  # the end of another host, or of a name in a mail address
            if self._is_it(found["path"]):
                yield at, found.end()

    def is_in(self, data: bytes) -> bool:
        return any(self._is_it(found["path"]) for found in self._wide.finditer(data))

    def _is_it(self, path: bytes) -> bool:
        """Other parameters are another address."""
        text = path.decode("utf-8", "replace").rstrip(".,:;!)]}|`")
        return canonicalize(self._site + text) == self._canonical or b"?" not in path


class _Domain:
    def __init__(self, domain: str) -> None:
        self._host = domain.lower().encode("idna" if not domain.isascii() else "ascii")
        host = re.escape(self._host)
        ends = rb"(?:[/?#]%b)?%b" % (_REST, _END)
        self._place = re.compile(rb"(?i:%b)(?::\d+)?%b" % (host, ends))
        self._wide = re.compile(
            rb"(?i)(?://(?:[^\s\"'<>\\/@]*@)?|(?<![\w./@-]))(?:[\w-]+\.)*%b"
            rb"(?:(?::\d+)?/|(?<=//%b)(?![\w-]|[.@:]\w))" % (host, host)
        )
        below = rb"(?:[\w-]+\.)*\Z"
        self._before = re.compile(_SCHEME + below)
        self._bare = re.compile(rb"(?<![\w./@-])" + below)

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        for found in self._place.finditer(data):
            at = found.start()
            near = _near(data, at)
            before = self._before.search(near)
            if before is None and b"/" in found[0]:  # else a name, and no address
                before = self._bare.search(near)
            if before is not None:
                yield at - len(before[0]), found.end()

    def is_in(self, data: bytes) -> bool:
        return self._host in data.lower() and self._wide.search(data) is not None


def _mask(length: int) -> bytes:
    return _MASK[:length].ljust(length, b"-")


def mask(folder: Path, addresses: Addresses) -> int:
    """Masks them in every file below a folder; how many. A file that cannot be read or written
    stays as it is, and :func:`left` names it."""
    return sum(_mask_file(path, addresses) for path in _files(folder))


def left(folder: Path, addresses: Addresses) -> list[Path]:
    """Files that still have one, and those that cannot be read."""
    return [path for path in _files(folder) if _has(path, addresses)]


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def _mask_file(path: Path, addresses: Addresses) -> int:
    try:
        return (
            _mask_packed(path, addresses) if path.suffix == ".gz" else _mask_open(path, addresses)
        )
    except OSError:  # also: turned over meanwhile, and gone
        return 0


def _mask_open(path: Path, addresses: Addresses) -> int:
    done = 0
    with path.open("r+b") as file:
        for at, data in _blocks(file):
            for start, end in addresses.places(data):
                os.pwrite(file.fileno(), _mask(end - start), at + start)
                done += 1
        if done:
            os.fdatasync(file.fileno())
    return done


def _blocks(file: BinaryIO | gzip.GzipFile) -> Iterator[tuple[int, bytes]]:
    """Pieces that end with a line, so that no address is cut; a longer line is."""
    at, kept = 0, b""
    while block := file.read(_BLOCK):
        data = kept + block
        whole = data.rfind(b"\n") + 1 or max(0, len(data) - _LONGEST)
        yield at, data[:whole]
        at, kept = at + whole, data[whole:]
    yield at, kept


def _mask_packed(path: Path, addresses: Addresses) -> int:
    """Nobody appends to one: it is replaced in one step."""
    try:
        with gzip.open(path) as file:
            data, done = addresses.masked(file.read())
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return 0  # damaged: nobody can read an address in it, `scrapy logs` neither
    if done:
        write_whole(path, gzip.compress(data), mode=path.stat().st_mode & 0o777)
    return done


def _has(path: Path, addresses: Addresses) -> bool:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                return any(addresses.is_in(data) for _, data in _blocks(packed))
        with path.open("rb") as file:
            return any(addresses.is_in(data) for _, data in _blocks(file))
    except (FileNotFoundError, EOFError, zlib.error, gzip.BadGzipFile):
        return False
    except OSError:  # nobody can say that it has none
        return True
