"""Makes the index follow the store: the one writer of a folder, in a thread of its own.

Whichever process gets the lock is the indexer; the others wait for the lock, so that one of them
goes on when it is killed. Every change after the mark of the index is taken over: the article is
deleted by its number and added again, so that doing it twice changes nothing. The mark is a
document of the same commit.

An index that is lost, damaged, of another program or of another history is deleted and made anew
from the store. What goes wrong here (a full disk, no right to write) delays what can be found,
never what is stored.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from newscrawler.store.base import StoreUnavailable
from newscrawler.store.fulltext import folder as folders
from newscrawler.store.fulltext import schema
from newscrawler.store.fulltext.engine import (
    is_engine_error,
    is_of_the_machine,
    one_line,
    tantivy,
)
from newscrawler.store.fulltext.lock import SAY_S, Lock, Problem
from newscrawler.store.fulltext.schema import Change, Mark

log = logging.getLogger(__name__)

#: Seconds between two looks at the store.
PERIOD_S = 0.4
#: Seconds between two commits while articles come in, unless somebody waits for what is new: each
#: commit makes a segment that is merged later, which costs more than all else the indexer does
#: (6,600 articles in 130 s: 5.5 s of CPU with a commit each 0.4 s). The first article after a
#: pause is committed at once.
COMMIT_S = 3.0
#: The same while many changes are waiting.
BACKLOG_S = 5.0
#: Seconds until what failed is tried again, and until the lock is tried again.
RETRY_S = 2.0
#: Changes that are read at once.
BATCH = 250
#: Bytes that the engine gathers before it writes a segment, and its threads: a laptop has other
#: things to do.
HEAP_BYTES, THREADS = 50_000_000, 1
#: Bytes that are written to see whether anything can be.
PROBE_BYTES = 1 << 16
#: Failures in a row after which an index is made anew that was not said to be damaged.
_PATIENCE = 3


class Feed(Protocol):
    """The store, as the indexer sees it."""

    def last(self) -> int: ...
    def after(self, change: int, limit: int) -> tuple[list[Change], Mark]: ...
    def knows(self, mark: Mark) -> bool: ...
    def close(self) -> None: ...


class Indexer:
    """``start`` it in a process that writes articles; ``once`` is for one that only reads."""

    def __init__(
        self,
        path: Path,
        open_feed: Callable[[], Feed],
        *,
        period_s: float = PERIOD_S,
        commit_s: float = COMMIT_S,
    ) -> None:
        self.path = path
        self.was_busy = False  # another process had the lock when it was asked for last
        self._open_feed = open_feed
        self._period_s, self._commit_s = period_s, commit_s
        self._lock = Lock(path.with_name(path.name + ".lock"))
        self._problem = Problem(
            self._lock,
            log,
            f"full-text index {path}",
            "articles are stored, but new ones are not found until this is mended",
        )
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._stop_by = 0.0
        self._thread: threading.Thread | None = None
        self._feed: Feed | None = None
        self._writer: Any = None
        self._mark = Mark()
        self._greatest = 0  # number of an article in the index
        self._waiting = False  # whether something is added that is not committed
        self._committed_at = float("-inf")
        self._failures = 0

    @property
    def problem(self) -> str:
        """The problem that keeps it from its work; "" = none."""
        return self._problem.text

    # ------------------------------------------------------------------ life
    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="articles-index", daemon=True)
            self._thread.start()

    def poke(self) -> None:
        """Somebody waits for what was stored: look now, and commit."""
        self._wake.set()

    def stop(self, wait_s: float = 30.0) -> None:
        """Takes over what is stored, then lets go. The next one goes on where it stopped, so it may
        be cut short."""
        self._stop_by = time.monotonic() + wait_s / 2
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(wait_s)
            self._thread = None

    def once(self) -> None:
        """Takes over what is stored now and lets go; nothing where another process is at it."""
        try:
            self._try()
        finally:
            self._end()

    # ------------------------------------------------------------------ the thread
    def _run(self) -> None:
        is_last, is_awaited = False, True
        while not is_last:
            is_last = self._stopping.is_set()  # what was stored before is looked for once more
            pause_s = self._period_s if self._try(is_awaited or is_last) else RETRY_S
            is_awaited = not is_last and self._wake.wait(pause_s)
            if is_awaited:
                self._wake.clear()
                if pause_s == RETRY_S:
                    self._stopping.wait(0.05)  # poked all the time, it would not rest
        self._end()

    def _try(self, is_awaited: bool = True) -> bool:
        """Takes over what is stored now. False where another process is at it, or it failed."""
        try:
            if not self._begin():
                return False
            self._follow(is_awaited)
        except BaseException as exc:
            # A panic of the engine is no Exception.
            if not isinstance(exc, Exception) and not is_engine_error(exc):
                raise
            self._failed(exc)
            return False
        return True

    def _follow(self, is_awaited: bool) -> None:
        """Takes over what is new, and commits when somebody waits for it or it is time."""
        while self._step() and not self._is_over():
            if time.monotonic() - self._committed_at >= BACKLOG_S:
                self._commit()
        if is_awaited or time.monotonic() - self._committed_at >= self._commit_s:
            self._commit()
        self._well()

    def _is_over(self) -> bool:
        return self._stopping.is_set() and time.monotonic() > self._stop_by

    def _begin(self) -> bool:
        """Takes the lock and opens what is needed. False when another process has the lock."""
        if self._writer is not None:
            if (self.path / folders.META).is_file() and not (self.path / folders.DAMAGED).exists():
                return True
            if not (self.path / folders.DAMAGED).exists():
                log.warning("full-text index %s: is gone", self.path)
            self._drop_writer()
        self.was_busy = not self._lock.take()
        if self.was_busy:
            return False
        if self._feed is None:
            self._feed = self._open_feed()
        index = self._open()
        self._writer = index.writer(HEAP_BYTES, THREADS)
        searcher = index.searcher()
        self._mark = folders.mark_of(searcher)
        self._greatest = folders.greatest_number(searcher)
        self._committed_at = float("-inf")
        return True

    def _open(self) -> Any:
        """The index in its folder, or a new one where that is of no use."""
        assert self._feed is not None
        why = "there is none"
        if self._failures >= _PATIENCE:
            why = f"it failed {self._failures} times"
            self._failures = 0
        elif (self.path / folders.DAMAGED).exists():
            why = (self.path / folders.DAMAGED).read_text("utf-8", "replace") or "it is damaged"
        elif (self.path / folders.META).exists():
            try:
                index = folders.open_index(self.path)
                mark = folders.mark_of(index.searcher())
                if self._feed.knows(mark):
                    return index
                why = "it belongs to another file of articles, or to a newer state of this one"
            except BaseException as exc:
                if not is_engine_error(exc) or is_of_the_machine(exc):
                    raise
                why = one_line(exc)
        last = self._feed.last()
        if last:
            log.warning(
                "full-text index %s: made anew (%s): %d changes are read", self.path, why, last
            )
        return folders.make_index(self.path)

    def _step(self) -> int:
        """Adds the next changes; how many."""
        assert self._feed is not None
        changes, mark = self._feed.after(self._mark.done, BATCH)
        for change in changes:
            if change.n <= self._greatest:
                self._delete("n", change.n)
            if change.article is not None:
                self._writer.add_document(schema.document(change))
                self._greatest = max(self._greatest, change.n)
        if mark != self._mark:  # also where what came last was purged
            self._mark, self._waiting = mark, True
        if changes:
            self._say_progress(len(changes))
        return len(changes)

    def _commit(self) -> None:
        if not self._waiting:
            return
        self._delete("kind", schema.MARK)
        self._writer.add_document(schema.mark_document(self._mark))
        self._writer.commit()
        self._waiting = False
        self._committed_at = time.monotonic()

    def _delete(self, field: str, number: int) -> None:
        # By a query: ``delete_documents_by_term`` takes a number for a signed one and finds
        # nothing.
        term = tantivy().Query.term_query(schema.schema(), field, number)
        self._writer.delete_documents_by_query(term)

    def _say_progress(self, many: int) -> None:
        if many < BATCH or not self._problem.may_say(SAY_S / 6):
            return
        assert self._feed is not None
        last = self._feed.last()
        if last - self._mark.done > 10 * BATCH:
            log.warning(
                "full-text index %s: %d of %d changes read; a search finds these",
                self.path,
                self._mark.done,
                last,
            )

    # ------------------------------------------------------------------ when it fails
    def _well(self) -> None:
        self._failures = 0
        self._problem.ended()

    def _failed(self, exc: BaseException) -> None:
        exc = self._probed(exc)
        self._drop_writer()
        if not is_of_the_machine(exc) and not isinstance(exc, StoreUnavailable):
            self._failures += 1
        self._problem.occurred(str(exc) if isinstance(exc, StoreUnavailable) else one_line(exc))

    def _probed(self, exc: BaseException) -> BaseException:
        """What keeps anything from being written to the folder, else what was raised: the engine
        does not always say why one of its threads has stopped."""
        if is_of_the_machine(exc) or not self.path.is_dir():
            return exc
        probe = self.path / ".probe"
        try:
            probe.write_bytes(b"x" * PROBE_BYTES)
        except OSError as wrong:
            return wrong
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
        return exc

    def _drop_writer(self) -> None:
        """Forgets what was not committed; it is read again from the mark on."""
        self._writer = None
        self._waiting = False

    def _end(self) -> None:
        self._drop_writer()
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        self._lock.release()
