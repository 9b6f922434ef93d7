"""The folder of an index as its readers see it: opened, followed from commit to commit, its
mark."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from newscrawler.store.fulltext import schema
from newscrawler.store.fulltext.engine import is_engine_error, one_line, tantivy
from newscrawler.store.fulltext.schema import Mark, time_key, time_of

#: Names inside the folder: the engine's, and a note of a reader that the index is damaged.
META, DAMAGED = "meta.json", "damaged"


class Outdated(ValueError):
    """The index was made by another program: it has other fields."""


class Unreadable(Exception):
    """The engine failed while it read: a file of the index is damaged, or the disk fails."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(one_line(cause))
        self.cause = cause


@contextmanager
def reading() -> Iterator[None]:
    """Around what reads in the index; queries are made outside, where an error is one of this
    program.

    :raises Unreadable: the index is damaged
    """
    try:
        yield
    except BaseException as exc:
        if not is_engine_error(exc):
            raise
        raise Unreadable(exc) from exc


@dataclass(frozen=True)
class View:
    """One state of an index: that of a commit. All that reads raises Unreadable."""

    searcher: Any
    mark: Mark
    _times: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def count(self, query: Any) -> int:
        with reading():
            found: int = self.searcher.search(query, limit=1).count
        return found

    def best(self, query: Any, limit: int, by: str | None = None) -> list[tuple[float, Any]]:
        """(score or value of ``by``, place), the highest first."""
        with reading():
            found: list[tuple[float, Any]] = self.searcher.search(
                query, limit=limit, count=False, order_by_field=by
            ).hits
        return found

    def best_and_count(
        self, query: Any, limit: int, by: str | None = None
    ) -> tuple[list[tuple[float, Any]], int]:
        """As ``best``, and how many match: in one walk, which sees all of them."""
        with reading():
            found = self.searcher.search(query, limit=limit, count=True, order_by_field=by)
        return found.hits, found.count

    def values(self, field: str, places: list[Any]) -> list[int]:
        with reading():
            found: list[int] = self.searcher.fast_field_values(field, places) if places else []
        return found

    def aggregate(self, query: Any, asked: dict[str, Any]) -> dict[str, Any]:
        with reading():
            found: dict[str, Any] = self.searcher.aggregate(query, asked)
        return found

    def frequency(self, word: str, exact: bool = False) -> int:
        """Of articles with a word, folded or as it stands."""
        with reading():
            found: int = self.searcher.doc_freq("ea" if exact else "fa", word)
        return found

    def is_in_names(self, word: str) -> bool:
        """Whether a folded word is part of the name of an author or of a person who is credited."""
        with reading():
            found: int = self.searcher.doc_freq("m", word)
        return found > 0

    def words(self) -> list[tuple[str, int]]:
        """Every folded word and in how many articles it is."""
        with reading():
            found: list[tuple[str, int]] = self.searcher.terms_with_prefix("fa", "")
        return found

    def spelling(self, key: str, value: str) -> str:
        """How most articles write a value of a facet, which is folded."""
        with reading():
            found: list[tuple[str, int]] = self.searcher.terms_with_prefix(
                f"spelt_{key}", f"{value}\t"
            )
        first = min(found, key=lambda one: (-one[1], one[0]), default=(f"{value}\t{value}", 0))
        return first[0].partition("\t")[2]

    def time_of_latest(self, many: int) -> int:
        """Value of ``newest`` of the last of so many newest articles; 0: there are fewer."""
        if many not in self._times:
            query = tantivy().Query.term_query(schema.schema(), "kind", schema.ARTICLE)
            with reading():
                hits = self.searcher.search(
                    query, limit=1, count=False, order_by_field="newest", offset=many - 1
                ).hits
            self._times[many] = int(hits[0][0]) if hits else 0
        return self._times[many]

    @cached_property
    def articles(self) -> int:
        found: int = self.searcher.num_docs
        return max(0, found - 1)  # the mark

    @cached_property
    def newest_ms(self) -> int:
        """Time of the newest article that is not dated in the future."""
        now = time_key(time.time_ns() // 1_000_000)
        query = tantivy().Query.range_query(
            schema.schema(), "at", tantivy().FieldType.Unsigned, lower_bound=0, upper_bound=now
        )
        hits = self.best(query, 1, by="at")
        return time_of(int(hits[0][0])) if hits else 0


class Folder:
    """Any number of threads read through one. Never writes to the index."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._index: Any = None
        self._state: tuple[int, ...] = ()
        self._view: View | None = None

    def view(self) -> View | None:
        """The last commit; None when there is no index. Raises what the engine raises."""
        with self._lock:
            state = self._look()
            if state is None:
                self._forget()
                return None
            if self._view is None or state != self._state:
                if self._index is None or state[:2] != self._state[:2]:
                    self._index = open_index(self.path)
                else:
                    self._index.reload()
                searcher = self._index.searcher()
                self._view, self._state = View(searcher, mark_of(searcher)), state
            return self._view

    def forget(self) -> None:
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._index, self._view, self._state = None, None, ()

    def mark_damaged(self, why: str = "it is damaged") -> None:
        """Tells the indexer, which may be another process, that the index is to be made anew."""
        self.forget()
        if self.path.is_dir():
            (self.path / DAMAGED).touch()
            with contextlib.suppress(OSError):  # a full disk: the mark alone says enough
                (self.path / DAMAGED).write_text(why, "utf-8")

    def _look(self) -> tuple[int, ...] | None:
        """Device and inode of the folder, then what a commit changes."""
        try:
            folder, meta = self.path.stat(), (self.path / META).stat()
        except OSError:
            return None
        return folder.st_dev, folder.st_ino, meta.st_ino, meta.st_mtime_ns, meta.st_size


def open_index(path: Path) -> Any:
    """:raises Outdated: it has other fields than this program's"""
    if not schema.is_current(json.loads((path / META).read_text(encoding="utf-8"))):
        raise Outdated(f"{path}: of another version of this program")
    index = tantivy().Index.open(str(path))
    index.config_reader("manual", 0)
    index.reload()
    return index


def make_index(path: Path) -> Any:
    """A new index in the place of what is there."""
    clear(path)
    path.mkdir(parents=True, exist_ok=True)
    index = tantivy().Index(schema.schema(), str(path))
    index.config_reader("manual", 0)
    return index


def clear(path: Path) -> None:
    """Empties the folder, which may be a link to another disk; ``META`` first, without which there
    is no index."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    (path / META).unlink(missing_ok=True)
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def mark_of(searcher: Any) -> Mark:
    """How far the state that this searcher sees has come."""
    query = tantivy().Query.term_query(schema.schema(), "kind", schema.MARK)
    places = [place for _, place in searcher.search(query, limit=1, count=False).hits]
    if not places:
        return Mark()
    return Mark(
        *(searcher.fast_field_values(name, places)[0] for name in ("done", "boundary", "token"))
    )


def greatest_number(searcher: Any) -> int:
    """Of the articles that are in the index."""
    query = tantivy().Query.term_query(schema.schema(), "kind", schema.ARTICLE)
    hits = searcher.search(query, limit=1, count=False, order_by_field="n").hits
    return int(hits[0][0]) if hits else 0
