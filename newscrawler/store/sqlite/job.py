"""What is asked of the one that writes, in a thread of the store or in a process of its own."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

import apsw

from newscrawler.items import Article
from newscrawler.store import codec
from newscrawler.store.base import PutResult, StoreGone, StoreUnavailable
from newscrawler.store.fulltext.index import FullText
from newscrawler.store.sqlite import schema
from newscrawler.store.sqlite.changes import Feed
from newscrawler.store.sqlite.write import Writer

#: ``open`` and ``refresh`` take None, ``put`` articles, ``mark_gone`` and ``purge`` their ids, and
#: ``scrub`` whether the file is to be written anew, ``prune`` ms since the epoch and whether
#: nothing is to be changed.
Verb = Literal["open", "put", "mark_gone", "refresh", "purge", "scrub", "prune"]
#: What SQLite says of one row, not of the file.
_OF_A_ROW = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError)


class Elsewhere(Protocol):
    """Runs :func:`work` in another process, one job after another."""

    async def __call__(self, job: tuple[Verb, str, Any]) -> tuple[str, Any]: ...
    async def close(self) -> None: ...


def run(writer: Writer, index: FullText, verb: Verb, argument: Any) -> Any:
    """``put`` gives ``(results, {id: reason of a refusal})``, ``mark_gone`` a count. ``refresh``
    only wakes the indexer; whoever asks for it waits."""
    result: Any = None
    if verb == "put":
        result = _put_all(writer, argument)
    elif verb == "mark_gone":
        result = writer.mark_gone(argument)
    elif verb == "refresh":
        index.poke()
    elif verb == "purge":
        numbers = writer.purge(argument)
        _forget_vectors(Path(writer.place.name), writer.present)
        if numbers:
            index.remake()
        result = len(numbers)
    elif verb == "prune":
        result = writer.prune_versions(argument[0], dry_run=argument[1])
    elif verb == "scrub":
        result = writer.scrub(rewrite=argument)
    writer.place.check()  # what was written to a deleted file must not count as stored
    return result


def _forget_vectors(path: Path, present: Callable[[Sequence[int]], set[int]]) -> None:
    vectors = path.with_suffix(".vectors")
    if vectors.is_file():
        from newscrawler.store.semantic.vectors import forget_purged

        forget_purged(vectors, present)


def work(job: tuple[Verb, str, Any]) -> tuple[str, Any]:
    """``(verb, path, argument)`` -> ("done", result), ("unavailable", why) or ("gone", why): the
    target of a process of its own."""
    verb, path, argument = job
    try:
        with schema.translated(Path(path)):
            return "done", run(*_writer(path), verb, argument)
    except StoreGone as exc:
        return "gone", str(exc)
    except StoreUnavailable as exc:
        return "unavailable", str(exc)


@cache
def _writer(path: str) -> tuple[Writer, FullText]:
    connection = schema.connect(Path(path), create=True)
    atexit.register(connection.close)
    index = index_of(Path(path))
    index.follow()
    atexit.register(index.close)  # before the connection: the last one that is registered
    return Writer(connection, _now_ms), index


def index_of(path: Path) -> FullText:
    """The index of a file: a folder beside it."""
    return FullText(path.with_suffix(".index"), lambda: Feed(schema.connect(path, create=False)))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _put_all(writer: Writer, articles: Sequence[Article]) -> tuple[list[PutResult], dict[str, str]]:
    batch = [codec.cleaned(a) for a in articles]
    refused = {a.id: why for a in batch if (why := codec.refusal(a))}
    results, more = _put(writer, [a for a in batch if a.id not in refused])
    return results, refused | more


def _put(writer: Writer, articles: Sequence[Article]) -> tuple[list[PutResult], dict[str, str]]:
    """Results, and id -> reason of those refused. One bad row undoes its transaction: then
    each gets its own."""
    try:
        return writer.put(articles), {}
    except _OF_A_ROW as exc:
        if len(articles) == 1:
            return [], {articles[0].id: str(exc)}
    results: list[PutResult] = []
    refused: dict[str, str] = {}
    for article in articles:
        done, not_done = _put(writer, [article])
        results += done
        refused.update(not_done)
    return results, refused
