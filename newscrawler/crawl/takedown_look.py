"""Where the text of an article still stands: in files of a folder, in keys of a Redis."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import os
import re
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from newscrawler.crawl.processes import Child
from newscrawler.frontier.errors import translated
from newscrawler.items import Article
from newscrawler.rawstore.files import OPEN_SUFFIX, SUFFIX
from newscrawler.utils import files

#: Characters of a piece of a text, and the most pieces of one article.
PIECE, PIECES = 48, 24
#: A title that is shorter says nothing: other texts have it as well.
SHORTEST_TITLE = 12
_BLOCK = 8 * 1024 * 1024
#: CPU seconds that a look through all files may take.
_CPU_S = 36_000.0
#: Keys without any text: packed numbers of the frontier.
_NO_TEXT = re.compile(rb"\{f\d+\}:(?:f:|s:|q:|due:|log:|hours:|pat:|o:)")
#: Who changed what: nobody rewrites it. It has names and addresses, no texts.
_AUDIT = "audit.jsonl"


def pieces_of(article: Article) -> list[str]:
    """Parts of the text by which it is known again, spread over all of it."""
    lines = [line.strip() for line in article.content.splitlines()]
    lines = [line for line in lines if len(line) >= PIECE // 2]
    found = []
    for line in lines:
        middle = max(0, (len(line) - PIECE) // 2)
        found += [line[:PIECE], line[middle : middle + PIECE], line[-PIECE:]]
    found = [piece.strip() for piece in dict.fromkeys(found)]
    step = max(1, -(-len(found) // PIECES))
    return found[::step]


class Needles:
    """Texts that are looked for, in every form in which files and keys may have them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)
        self._of: dict[bytes, str] = {}
        for text in self.texts:
            for form in _forms(text):
                self._of[form] = text
        self.longest = max(map(len, self._of), default=0)

    def in_bytes(self, data: bytes) -> set[str]:
        # One search each: they overlap, and a pattern of all of them is slower.
        return {text for form, text in self._of.items() if form in data}

    def in_stream(self, file: BinaryIO | gzip.GzipFile) -> set[str]:
        found: set[str] = set()
        kept = b""
        while block := file.read(_BLOCK):
            found |= self.in_bytes(kept + block)
            kept = block[-self.longest :] if self.longest else b""
        return found


def _forms(text: str) -> set[bytes]:
    texts = {text, html.escape(text), html.escape(text, quote=False), json.dumps(text)[1:-1]}
    texts.add(json.dumps(text, ensure_ascii=False)[1:-1])
    return {one.encode("utf-8", "replace") for one in texts}


# ---------------------------------------------------------------- files
async def search_files(
    folder: Path, texts: Iterable[str], besides: Iterable[Path] = (), more: Iterable[Path] = ()
) -> dict[Path, set[str]]:
    """Every file below a folder, and each of ``more``, that has one of the texts.

    In a process of its own: one that closes a file drops every lock that it holds on that file
    (https://www.sqlite.org/howtocorrupt.html, 2.2), and the article store may be open here. Without
    its locks another process that closes the store deletes the log that is written to here.

    :raises ChildDied, ChildError: it could not be looked through
    """
    child = Child(f"{__name__}:search", cpu_s=_CPU_S)
    asked = [str(folder), list(texts), [str(one) for one in besides], [str(one) for one in more]]
    try:
        found = await child.call(asked)
    finally:
        await child.close()
    return {Path(path): set(held) for path, held in found}


def search(asked: list[Any]) -> list[list[Any]]:
    """The target of that process: folder, texts, files that are left out, files elsewhere."""
    folder, texts, besides, more = asked
    needles = Needles(texts)
    found = search_folder(Path(folder), needles, map(Path, besides))
    for path in map(Path, more):
        with suppress(FileNotFoundError), path.open("rb") as file:
            if held := needles.in_stream(file):
                found[path] = held
    return [[str(path), sorted(held)] for path, held in found.items()]


def search_folder(
    folder: Path, needles: Needles, besides: Iterable[Path] = ()
) -> dict[Path, set[str]]:
    """Every file below a folder that has one of the texts. Raw pages are left to their store. Not
    for a process that has the article store open (:func:`search_files`).

    :raises OSError: a file cannot be read
    """
    found: dict[Path, set[str]] = {}
    left_out = {path.resolve() for path in besides}
    for path in _files(folder):
        if path.resolve() in left_out or path.name.endswith((SUFFIX, OPEN_SUFFIX)):
            continue
        try:
            with path.open("rb") as file:
                held = needles.in_stream(file)
                if path.suffix == ".gz":
                    file.seek(0)
                    held |= _in_gzip(file, needles)
        except FileNotFoundError:  # another process has just removed it
            continue
        if held:
            found[path] = held
    return found


def _in_gzip(file: BinaryIO, needles: Needles) -> set[str]:
    try:
        with gzip.open(file) as unpacked:
            return needles.in_stream(unpacked)
    except (OSError, EOFError, zlib.error):
        return set()


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path


def mend_export(path: Path, needles: Needles) -> int | None:
    """Takes the rows with one of the texts out of an export; how many. 0: it is of another form.
    None: it was written to meanwhile and is as it was.
    """
    if path.name == _AUDIT:
        return 0
    if path.suffix == ".jsonl":
        return _mend_lines(path, needles)
    return _mend_table(path, needles) if path.suffix == ".csv" else 0


def _mend_lines(path: Path, needles: Needles) -> int:
    """Each row becomes an empty object of the same length, as another process may be appending."""
    gone = 0
    with path.open("r+b") as file:
        offset = 0
        for line in file:
            row = line.rstrip(b"\r\n")
            if needles.in_bytes(row) and (len(row) < len(line) or _is_json(row)):
                os.pwrite(file.fileno(), b"{}".ljust(len(row)), offset)
                gone += 1
            offset += len(line)
        os.fdatasync(file.fileno())
    return gone


def _is_json(row: bytes) -> bool:
    """A last row without its end may be whole, or half of what another process writes."""
    try:
        json.loads(row)
    except ValueError:
        return False
    return True


def _mend_table(path: Path, needles: Needles) -> int | None:
    """The file is replaced in one step: a crash leaves the old or the new one."""
    as_it_is: dict[str, Any] = {"encoding": "utf-8", "newline": "", "errors": "surrogateescape"}
    with suppress(_Moved), path.open(**as_it_is) as file:
        before = _state(path)
        with files.replacing(path, mode=path.stat().st_mode & 0o777) as raw:
            out = io.TextIOWrapper(raw, **as_it_is)
            gone = _mend_csv(file, out, needles)
            out.detach()  # writes what it holds
            if _state(path) != before:
                raise _Moved
        return gone
    return None


class _Moved(Exception):
    """The table was written meanwhile."""


def _state(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _mend_csv(file: Any, out: Any, needles: Needles) -> int:
    gone = 0
    csv.field_size_limit(2**31 - 1)
    write = csv.writer(out)
    for row in csv.reader(file):
        if needles.in_bytes("\n".join(row).encode("utf-8", "surrogateescape")):
            gone += 1
        else:
            write.writerow(row)
    return gone


# ---------------------------------------------------------------- Redis
@dataclass(frozen=True, slots=True)
class RedisPlace:
    """Where in Redis a text stands. ``part``: field, member, entry or id; None = the whole key."""

    key: bytes
    kind: str
    part: bytes | None


async def search_redis(client: Any, needles: Needles) -> list[RedisPlace]:
    """:raises FrontierUnavailable:"""
    found: list[RedisPlace] = []
    with translated():
        async for key in client.scan_iter(count=1000):
            if _NO_TEXT.match(key):
                continue
            kind = (await client.type(key)).decode()
            async for part, data in _contents(client, key, kind):
                if needles.in_bytes(data):
                    found.append(RedisPlace(key, kind, part))
    return found


async def _contents(
    client: Any, key: bytes, kind: str
) -> AsyncIterator[tuple[bytes | None, bytes]]:
    if kind == "string":
        yield None, await client.get(key) or b""
    elif kind == "hash":
        async for name, value in client.hscan_iter(key, count=500):
            yield name, name + b"\n" + value
    elif kind == "list":
        for value in await client.lrange(key, 0, -1):
            yield value, value
    elif kind == "set":
        async for value in client.sscan_iter(key, count=500):
            yield value, value
    elif kind == "zset":
        async for value, _ in client.zscan_iter(key, count=500):
            yield value, value
    elif kind == "stream":
        async for one, fields in stream_entries(client, key):
            yield one, b"\n".join(fields.values())


async def stream_entries(
    client: Any, key: bytes | str
) -> AsyncIterator[tuple[bytes, dict[bytes, bytes]]]:
    """Every entry of a stream, oldest first."""
    start = "-"
    while True:
        entries = await client.xrange(key, min=start, count=1_000)
        for one, fields in entries:
            yield one, fields
        if len(entries) < 1_000:
            return
        start = "(" + entries[-1][0].decode()


async def remove(client: Any, place: RedisPlace) -> None:
    with translated():
        if place.part is None:
            await client.delete(place.key)
        elif place.kind == "hash":
            await client.hdel(place.key, place.part)
        elif place.kind == "list":
            await client.lrem(place.key, 0, place.part)
        elif place.kind == "set":
            await client.srem(place.key, place.part)
        elif place.kind == "zset":
            await client.zrem(place.key, place.part)
        else:
            await client.xdel(place.key, place.part)
