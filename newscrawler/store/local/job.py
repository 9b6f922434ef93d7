"""What is asked of the one that writes, in a thread of the store or in a process of its own."""

from __future__ import annotations

import atexit
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

import apsw

from newscrawler.items import Article
from newscrawler.store import codec
from newscrawler.store.base import PutResult, StoreUnavailable
from newscrawler.store.local import schema
from newscrawler.store.local.write import Writer

#: ``open`` takes None, ``put`` articles and ``mark_gone`` their ids.
Verb = Literal["open", "put", "mark_gone"]
#: What SQLite says of one row, not of the file.
_OF_A_ROW = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError)


class Elsewhere(Protocol):
    """Runs :func:`work` in another process, one job after another."""

    async def __call__(self, job: tuple[Verb, str, Any]) -> tuple[str, Any]: ...
    async def close(self) -> None: ...


def run(writer: Writer, verb: Verb, argument: Any) -> Any:
    """``put`` gives ``(results, {id: reason of a refusal})``, ``mark_gone`` a count."""
    if verb == "put":
        return _put_all(writer, argument)
    if verb == "mark_gone":
        return writer.mark_gone(argument)
    return None


def work(job: tuple[Verb, str, Any]) -> tuple[str, Any]:
    """``(verb, path, argument)`` -> ("done", result) or ("unavailable", why): the target of a process of its own."""
    verb, path, argument = job
    try:
        with schema.translated(Path(path)):
            return "done", run(_writer(path), verb, argument)
    except StoreUnavailable as exc:
        return "unavailable", str(exc)


@cache
def _writer(path: str) -> Writer:
    connection = schema.connect(Path(path), create=True)
    atexit.register(connection.close)
    return Writer(connection, _now_ms)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _put_all(writer: Writer, articles: Sequence[Article]) -> tuple[list[PutResult], dict[str, str]]:
    batch = [codec.cleaned(a) for a in articles]
    refused = {a.id: why for a in batch if (why := codec.refusal(a))}
    results, more = _put(writer, [a for a in batch if a.id not in refused])
    return results, refused | more


def _put(writer: Writer, articles: Sequence[Article]) -> tuple[list[PutResult], dict[str, str]]:
    """Results, and id -> reason of those refused. One bad row undoes its transaction: then each gets its own."""
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
