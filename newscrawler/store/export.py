"""Writing many articles to one file: JSON lines, CSV, Parquet. A file appears
whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import orjson

from newscrawler.items import FIELDS, Article
from newscrawler.store import codec
from newscrawler.store.base import Query, WholeStore
from newscrawler.utils.display import cell, json_shown
from newscrawler.utils.optional import missing

FORMATS = ("jsonl", "csv", "parquet")
EXPORTED = tuple(f for f in FIELDS if f.exported)
COLUMNS = tuple(f.name for f in EXPORTED)
MEDIA = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
#: Articles that a store is asked for at once.
PORTION = 200
_ROWS = 1_000  # of a Parquet row group


class ExportError(Exception):
    """The export cannot be written; the text says why."""


class _Sink(Protocol):
    def add(self, article: Article) -> None: ...
    def end(self) -> None: ...


async def export(articles: AsyncIterator[Article], format_: str, out: Path | None) -> int:
    """Write all to ``out`` (None: stdout, not for Parquet). Returns how many. Raises
    ExportError, OSError."""
    if format_ == "parquet" and out is None:
        raise ExportError("parquet is binary: name a file with --out FILE")
    count = 0
    with _target(out) as file:
        sink = _sink(format_, file)
        async for article in articles:
            sink.add(article)
            count += 1
        sink.end()
    return count


def stream(portions: AsyncIterator[list[Article]], format_: str) -> AsyncIterator[bytes]:
    """The same bytes piece by piece, one of each portion at least. Raises ExportError at once."""
    buffer = _Drained()
    sink = _sink(format_, buffer)  # type: ignore[arg-type]  # all that a sink calls is there

    async def pieces() -> AsyncIterator[bytes]:
        async for portion in portions:
            for article in portion:
                sink.add(article)
            yield buffer.taken()
        sink.end()
        yield buffer.taken()

    return pieces()


async def matches(store: WholeStore, query: Query) -> AsyncIterator[Article]:
    """Everything that the words of a query find."""
    cursor = ""
    while True:
        portion = await store.portion(query, cursor, PORTION)
        for article in portion.articles:
            yield article
        cursor = portion.cursor
        if not cursor:
            return


def _sink(format_: str, file: IO[bytes]) -> _Sink:
    make: dict[str, Callable[[IO[bytes]], _Sink]] = {
        "jsonl": _JsonLines,
        "csv": _Csv,
        "parquet": _Parquet,
    }
    return make[format_](file)


class _Drained(io.RawIOBase):
    """A file whose bytes are taken away while it is written."""

    def __init__(self) -> None:
        self._bytes, self._at = bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._bytes += data
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def taken(self) -> bytes:
        taken = bytes(self._bytes)
        self._bytes.clear()
        return taken


@contextmanager
def _target(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        if sys.stdout is None:  # >&-
            raise ExportError("standard output is closed; name a file with --out")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not out.parent.is_dir():
        raise ExportError(f"there is no folder {out.parent}")
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(out)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


class _JsonLines:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, article: Article) -> None:
        fields = codec.to_dict(article) | {"version": article.version, "cluster": article.cluster}
        self._file.write(json_shown(orjson.dumps(fields).decode()).encode() + b"\n")

    def end(self) -> None: ...


class _Csv:
    """UTF-8, one row an article, lists joined by "; ". What a spreadsheet would take for a formula
    has an apostrophe in front."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer = csv.writer(self)
        self._writer.writerow(COLUMNS)

    def write(self, text: str) -> int:
        return self._file.write(text.encode("utf-8", "replace"))

    def add(self, article: Article) -> None:
        self._writer.writerow(cell(_flat(getattr(article, name))) for name in COLUMNS)

    def end(self) -> None: ...


class _Parquet:
    def __init__(self, file: IO[bytes]) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as exc:
            raise ExportError(
                f"parquet needs pyarrow, which is not installed: {missing('parquet')}"
            ) from exc
        types: dict[str, Any] = {
            "time": pa.timestamp("ms", tz="UTC"),
            "texts": pa.list_(pa.string()),
            "number": pa.int32(),
        }
        columns = [(f.name, types.get(f.type, pa.string())) for f in EXPORTED]
        self._schema = pa.schema(columns)
        self._table = pa.Table
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, article: Article) -> None:
        self._rows.append({name: getattr(article, name) for name in COLUMNS})
        if len(self._rows) >= _ROWS:
            self._flush()

    def end(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._table.from_pylist(self._rows, schema=self._schema))
            self._rows.clear()


def _flat(value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
