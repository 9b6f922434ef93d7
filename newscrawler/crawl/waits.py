"""What a crawl waits for just now: one line a minute in the log, and a word in the terminal.

A Redis that was killed, a full disk, a store that hangs: the crawl waits and goes on.
Who waits says so here, so that the log does not repeat itself and a person at the
terminal sees what is missing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

REDIS, ARTICLES, RAW_PAGES = "Redis", "the article store", "the store of raw pages"
SCANNER = "the virus scanner"
#: The reasons of a crawl that ended as waiting brings nothing back: its queue, or a
#: store, was deleted.
QUEUE_GONE, STORE_GONE = "queue_gone", "store_gone"
#: A wait for one thing is told at most this often, seconds.
TELL_S = 60.0
#: What takes longer than this is shown as waited for, seconds; a commit or a call takes less.
SLOW_S = 3.0
#: Seconds between two tries: the first, and the longest.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
#: How often a wait looks whether it is still wanted, seconds.
_LOOK_S = 0.2


@dataclass(slots=True)
class _Wait:
    since: float
    why: str = ""
    is_told: bool = False  # in the log


class Waits:
    """One per crawl. ``clock``: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failing: dict[str, _Wait] = {}
        self._told: dict[str, float] = {}  # what -> when the log was told last
        self._slow: dict[str, list[float]] = {}  # what -> since when; several at a time

    def failed(self, what: str, why: str) -> None:
        """``what`` does not work, and is waited for."""
        now = self._clock()
        wait = self._failing.setdefault(what, _Wait(now))
        wait.why = why
        if now - self._told.get(what, -math.inf) < TELL_S:
            return
        if wait.is_told:
            logger.warning(
                "Still waiting for %s since_s=%.0f error=%s", what, now - wait.since, why
            )
        else:
            logger.error("Waiting for %s error=%s", what, why)
        self._told[what], wait.is_told = now, True

    def works(self, what: str) -> None:
        """``what`` works (again)."""
        wait = self._failing.pop(what, None)
        if wait is not None and wait.is_told:
            logger.info("%s is back, goes on after_s=%.0f", what, self._clock() - wait.since)

    def is_failing(self, *names: str) -> bool:
        return any(name in self._failing for name in names)

    def lasts_s(self, *names: str) -> float:
        """How long one of ``names`` has been waited for, also by a call that hangs; 0 = none is."""
        now = self._clock()
        since = [wait.since for what, wait in self._failing.items() if what in names]
        since += [began[0] for what, began in self._slow.items() if began and what in names]
        lasts_s = now - min(since, default=now)
        return lasts_s if lasts_s >= SLOW_S or self.is_failing(*names) else 0.0

    @contextmanager
    def slow(self, what: str) -> Iterator[None]:
        """A call that may hang: after a while it is shown."""
        since = self._clock()
        running = self._slow.setdefault(what, [])
        running.append(since)
        try:
            yield
        finally:
            running.remove(since)

    def text(self) -> str:
        """For the terminal: "waiting for the article store (12 s): the disk is full".
        Empty = for nothing."""
        now = self._clock()
        since = {what: wait.since for what, wait in self._failing.items()}
        for what, running in self._slow.items():
            if running and now - running[0] >= SLOW_S:
                since.setdefault(what, running[0])
        parts = []
        for what, began in sorted(since.items()):
            wait = self._failing.get(what)
            why = f": {wait.why}" if wait and wait.why else ""
            parts.append(f"waiting for {what} ({now - began:.0f} s){why}")
        return ", ".join(parts)

    async def until_it_works(
        self,
        what: str,
        work: Callable[[], Awaitable[T]],
        error: type[Exception],
        lost: type[Exception],
        is_over: Callable[[], bool],
    ) -> T:
        """The result of ``work``, tried again while it raises ``error``, unless that is ``lost``
        (waiting brings nothing back) or the crawl is over. Whatever else is raised came from a
        ``what`` that answers: it is raised, and nothing is waited for any more."""
        pause = FIRST_PAUSE_S
        while True:
            try:
                with self.slow(what):
                    result = await work()
            except error as exc:
                if is_over() or isinstance(exc, lost):
                    raise
                self.failed(what, str(exc))
                if not await self._paused(pause, is_over):
                    raise
                pause = min(2 * pause, LONGEST_PAUSE_S)
            except Exception:
                # While ``what`` counts as failing the crawl takes no page (LeaseLoop), so no later
                # call could say that it works.
                self.works(what)
                raise
            else:
                self.works(what)
                return result

    async def _paused(self, seconds: float, is_over: Callable[[], bool]) -> bool:
        """False: it was over before."""
        until = self._clock() + seconds
        while self._clock() < until:
            if is_over():
                return False
            await asyncio.sleep(_LOOK_S)
        return not is_over()
