"""The full-text index of one store, as the store uses it: followed, searched, waited for,
mended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from newscrawler.store.base import StoreUnavailable
from newscrawler.store.fulltext import folder as folders
from newscrawler.store.fulltext.correct import Dictionary
from newscrawler.store.fulltext.engine import (
    is_engine_error,
    is_of_the_machine,
    one_line,
)
from newscrawler.store.fulltext.folder import Folder, Outdated, View
from newscrawler.store.fulltext.indexer import Feed, Indexer
from newscrawler.store.fulltext.lock import noted

log = logging.getLogger(__name__)

#: Seconds until an index that could not be opened is opened once more.
_MOMENT_S = 0.05
#: Seconds until a reader looks again whether the index that is behind has nobody who writes it.
_LOOK_AGAIN_S = 1.0
#: Seconds that ``wait_for`` waits for another process, without any progress of it.
_NO_PROGRESS_S, _WITH_A_PROBLEM_S = 30.0, 3.0
#: The dictionary is read again when so much has come, relative to what it was read from, or it is
#: so old.
_GROWN, _OLD_S = 1.1, 600.0


@dataclass(frozen=True, slots=True)
class IndexState:
    """``behind``: changes that a search does not find yet. ``problem``: what keeps them from it, ""
    = nothing."""

    behind: int
    problem: str


class FullText:
    """``follow`` it in a process that writes articles. Used by any number of threads."""

    def __init__(self, path: Path, open_feed: Callable[[], Feed]) -> None:
        self.path = path
        self._folder = Folder(path)
        self._open_feed = open_feed
        self._guard = threading.Lock()
        self._indexer: Indexer | None = None  # of a process that writes
        self._helper: tuple[Indexer, threading.Thread] | None = None  # of one that only reads
        self._helped_at, self._was_busy = float("-inf"), False
        self._suspected_at = float("-inf")
        self._dictionary: tuple[int, float, Dictionary] | None = None

    # ------------------------------------------------------------------ who writes
    def follow(self) -> None:
        with self._guard:
            if self._indexer is None:
                self._indexer = Indexer(self.path, self._open_feed)
                self._indexer.start()

    def poke(self) -> None:
        if self._indexer is not None:
            self._indexer.poke()

    def remake(self) -> None:
        """Throws its files away and makes it anew: the engine keeps the words of what was deleted
        until it happens to merge them away. A search finds what has been read again so far."""
        self._folder.mark_damaged("what was deleted is taken out of it")
        self.poke()

    def close(self) -> None:
        with self._guard:
            indexer, self._indexer = self._indexer, None
            helper, self._helper = self._helper, None
        if indexer is not None:
            indexer.stop()
        if helper is not None:
            helper[0].stop()
            helper[1].join()

    # ------------------------------------------------------------------ who reads
    def view(self, feed: Feed, wait_s: float | None = None) -> View | None:
        """A view of what can be searched now. Where it is behind and nobody writes it, this process
        does, for which is waited at most ``wait_s``; None: until it is done.

        :raises StoreUnavailable: there is no index yet, and something keeps it from being made
        """
        view = self._look()
        if self._is_current(view, feed):
            return view
        if self._indexer is None:
            self._help(wait_s)
            view = self._look()
        if view is None and (problem := self.problem()):
            raise StoreUnavailable(f"full-text index {self.path}: {problem}")
        return view

    def wait_for(self, change: int, feed: Feed) -> None:
        """Until a search finds everything up to this change. Raises StoreUnavailable."""
        done, since = -1, time.monotonic()
        pause_s = 0.005
        while True:
            self.poke()
            view = self.view(feed)
            found = view.mark.done if view is not None and feed.knows(view.mark) else 0
            if found >= change:
                return
            if found != done:
                done, since = found, time.monotonic()
            problem = self.problem()
            if time.monotonic() - since > (_WITH_A_PROBLEM_S if problem else _NO_PROGRESS_S):
                raise StoreUnavailable(
                    f"full-text index {self.path}: {change - found} changes behind"
                    f"{': ' * bool(problem)}{problem}"
                )
            time.sleep(pause_s)
            pause_s = min(0.1, pause_s * 1.5)

    def state(self, feed: Feed) -> IndexState:
        last = feed.last()
        try:
            view = self._look()
        except StoreUnavailable as exc:
            return IndexState(last, str(exc))
        done = view.mark.done if view is not None and feed.knows(view.mark) else 0
        return IndexState(last - done, self.problem() if done < last else "")

    def problem(self) -> str:
        """The indexer's last problem, also that of another process."""
        helper = self._helper and self._helper[0]
        for own in (self._indexer, helper):
            if own is not None and own.problem:
                return own.problem
        return noted(self.path.with_name(self.path.name + ".lock"))

    def mark_damaged(self, exc: BaseException) -> None:
        """A search failed in the engine: the index is made anew, by this process or the one that
        writes it.

        :raises StoreUnavailable: the mark cannot be written
        """
        now = time.monotonic()
        if now - self._suspected_at < 60:
            raise StoreUnavailable(
                f"full-text index {self.path}: {one_line(exc)}; delete that folder, it is made anew"
            ) from exc
        self._suspected_at = now
        log.warning("full-text index %s: cannot be read: %s", self.path, one_line(exc))
        self._folder.mark_damaged()

    def dictionary(self, view: View) -> Dictionary:
        """Its words, some minutes old at most."""
        now = time.monotonic()
        with self._guard:
            kept = self._dictionary
            if kept is not None:
                many, at, words = kept
                if view.articles <= many * _GROWN and now - at < _OLD_S:
                    return words
            words = Dictionary(view.words())
            self._dictionary = (view.articles, now, words)
            return words

    def _look(self) -> View | None:
        """None where there is none, or one that is being made anew."""
        if (self.path / folders.DAMAGED).exists():
            return None
        for is_last in (False, True):
            try:
                return self._folder.view()
            except Outdated:
                return None
            except BaseException as exc:
                if not is_engine_error(exc):
                    raise
                self._folder.forget()
                if is_of_the_machine(exc) and not isinstance(exc, FileNotFoundError):
                    raise StoreUnavailable(f"full-text index {self.path}: {one_line(exc)}") from exc
                if is_last and (self.path / folders.META).exists():
                    self.mark_damaged(exc)
            time.sleep(_MOMENT_S)  # it may have been made anew between two looks
        return None

    def _is_current(self, view: View | None, feed: Feed) -> bool:
        last = feed.last()
        if view is None:
            return not last
        return view.mark.done == last and feed.knows(view.mark)

    def _help(self, wait_s: float | None) -> None:
        """Takes over what is missing, in a thread of this process that reads, unless another is at
        it."""
        with self._guard:
            running = self._helper is not None and self._helper[1].is_alive()
            if not running:
                if time.monotonic() - self._helped_at < _LOOK_AGAIN_S and self._was_busy:
                    return
                indexer = Indexer(self.path, self._open_feed)
                thread = threading.Thread(target=indexer.once, name="articles-index", daemon=True)
                self._helper = (indexer, thread)
                thread.start()
            assert self._helper is not None
            indexer, thread = self._helper
        thread.join(wait_s)
        self._helped_at = time.monotonic()
        self._was_busy = indexer.was_busy or bool(indexer.problem)
