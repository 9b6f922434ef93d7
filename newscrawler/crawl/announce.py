"""Tells events of articles to sinks: from the outbox of the store, at least once and in order.

One process at a time delivers for a store; when it ends or is killed another one that runs, or the
next that starts, goes on where it was. Each sink has a durable cursor and a loop of its own: one
whose receiver is away is offered the same delivery again, at growing intervals, and holds up
neither the others nor the crawl.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from newscrawler.items import Article
from newscrawler.store.base import ArticleStore, StoreError
from newscrawler.store.events import DeadLetter, Event, EventSink, EventsRefused, Kind, Outbox

logger = logging.getLogger(__name__)

#: Seconds between two looks at an outbox that was empty; who writes in this process pokes.
LOOK_S = 1.0
#: Seconds between two claims of the right to deliver, and how long a claim holds.
CLAIM_S, HELD_S = 3.0, 10.0
#: Seconds until a delivery that failed is offered again: first, and at most.
BACKOFF_S, BACKOFF_MOST_S = 1.0, 60.0
#: A delivery that takes longer has failed.
DELIVERY_S = 120.0
#: Seconds between two looks for events that nobody waits for.
_TIDY_S = 300.0
#: What is waiting when a crawl ends is told for so long; the rest stays in the outbox.
DRAIN_S = 10.0
#: A store that hangs is not waited for longer, when a crawl ends.
CLOSE_S = 5.0
BATCH = 100


class Announcer(Protocol):
    """What :class:`newscrawler.crawl.ingest.Ingest` tells of its commits."""

    async def begin(self) -> None:
        """Before anything is stored."""
        ...

    async def stored(self, changed: Sequence[tuple[Article, Kind]]) -> None:
        """These are durable."""
        ...

    async def gone(self, article_id: str, url: str) -> None: ...


class Direct:
    """Tells at once, for a store that has no outbox: what fails is in the log and told no more."""

    def __init__(self, store: ArticleStore, sinks: Mapping[str, EventSink]) -> None:
        self._store = store
        self._sinks = sinks

    def start(self) -> None:
        """Nothing runs in the background."""

    async def begin(self) -> None:
        """Nothing to prepare."""

    async def drain(self) -> None:
        """Nothing waits."""

    async def stored(self, changed: Sequence[tuple[Article, Kind]]) -> None:
        now = datetime.now(UTC)
        await self._tell([Event(kind, article.version, now, article) for article, kind in changed])

    async def gone(self, article_id: str, url: str) -> None:
        article = await self._store.get(article_id)
        if article is None:  # this store deletes what is gone
            article = Article(id=article_id, url=url, site="", title="", content="")
        await self._tell([Event("gone", article.version, datetime.now(UTC), article)])

    async def _tell(self, events: list[Event]) -> None:
        for name, sink in self._sinks.items():
            try:
                await sink.deliver(events)
            except Exception as exc:
                logger.warning(
                    "Events were not told sink=%s events=%d error=%s", name, len(events), exc
                )

    async def close(self) -> None:
        for sink in self._sinks.values():
            await sink.close()


class Dispatcher:
    """Delivers the events of one store. ``sinks`` by the names of their cursors."""

    def __init__(self, outbox: Outbox, sinks: Mapping[str, EventSink]) -> None:
        self._outbox = outbox
        self._lines = [_Line(outbox, name, sink, self.may_deliver) for name, sink in sinks.items()]
        self._has_begun = False
        self._held_until = float("-inf")
        self._has_asked = asyncio.Event()  # whether it is ours to deliver
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._serving: list[asyncio.Task[None]] = []
        self._trouble = ""
        self._tidied = time.monotonic()

    # ------------------------------------------------------------------ told by Ingest
    async def begin(self) -> None:
        """From now on every event is told. :raises StoreUnavailable:"""
        if not self._has_begun:
            await self._outbox.begin([line.name for line in self._lines])
            self._has_begun = True

    async def stored(self, changed: Sequence[tuple[Article, Kind]]) -> None:
        self._poke()

    async def gone(self, article_id: str, url: str) -> None:
        self._poke()

    def _poke(self) -> None:
        for line in self._lines:
            line.look.set()

    # ------------------------------------------------------------------ life
    def start(self) -> None:
        """Works in the background until it is closed. Twice is once."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def drain(self, within_s: float = DRAIN_S) -> None:
        """Returns when all that is in the outbox has been told, or fails to be, or belongs to
        another process to tell; after ``within_s`` at the latest."""
        if self._task is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._has_asked.wait()
                if self._serving:
                    await asyncio.gather(*(line.drained() for line in self._lines))

    async def close(self) -> None:
        """Ends the delivery. What is not told stays in the outbox."""
        self._closing.set()
        if self._task is not None and not (await asyncio.wait([self._task], timeout=CLOSE_S))[0]:
            self._task.cancel()  # a store that hangs
            await asyncio.wait([self._task], timeout=CLOSE_S)
            await self._stop_serving()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._outbox.close()
        for line in self._lines:
            await line.sink.close()

    def may_deliver(self) -> bool:
        """Whether this process is the one."""
        return time.monotonic() < self._held_until

    # ------------------------------------------------------------------ the loop
    async def _run(self) -> None:
        while not self._closing.is_set():
            await self._claim()
            if self.may_deliver() and not self._serving:
                self._serve()
            elif not self.may_deliver() and self._serving:
                await self._stop_serving()
            self._has_asked.set()
            await _within(CLAIM_S, self._closing)
        await self._stop_serving()

    async def _claim(self) -> None:
        try:
            await self.begin()
            is_ours = await self._outbox.hold()
            if is_ours and time.monotonic() - self._tidied > _TIDY_S:
                await self._outbox.tidy([line.name for line in self._lines])
                self._tidied = time.monotonic()
        except StoreError as exc:
            if not self._trouble:
                logger.warning("Events wait, the outbox does not answer error=%s", exc)
            self._trouble = str(exc)
            return
        self._trouble = ""
        # Longer than the time between two claims, shorter than what a store waits before it lets
        # another process take over.
        self._held_until = time.monotonic() + HELD_S if is_ours else float("-inf")

    def _serve(self) -> None:
        for line in self._lines:
            line.ended = False
        self._serving = [asyncio.ensure_future(line.serve()) for line in self._lines]

    async def _stop_serving(self) -> None:
        for line in self._lines:
            line.ended = True
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        self._serving = []


class _Line:
    """The way to one sink.

    It is ended by a flag beside the cancellation: asyncio.wait_for of Python 3.11, with which
    redis-py sends, may lose a cancellation.
    """

    def __init__(
        self, outbox: Outbox, name: str, sink: EventSink, may_deliver: Callable[[], bool]
    ) -> None:
        self.name, self.sink = name, sink
        self.look = asyncio.Event()
        self.ended = False
        self._outbox = outbox
        self._may_deliver = may_deliver
        self._batch: int = getattr(sink, "batch", BATCH)
        self._every_s: float = getattr(sink, "every_s", 0.0)
        self._tick: Callable[[], Awaitable[object]] | None = getattr(sink, "tick", None)
        self._is_idle = asyncio.Event()
        self._must_drain = asyncio.Event()
        self._failing = ""
        self._position: str | None = None

    async def serve(self) -> None:
        """Until it is ended."""
        pause_s = BACKOFF_S
        self._position = None  # another process may have moved it
        while not self.ended:
            try:
                told = await self._turn()
                if self._tick is not None:
                    await self._tick()
            except Exception as exc:
                self._failed(exc)
                self._is_idle.set()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, BACKOFF_MOST_S)
                continue
            if self._failing:
                logger.warning("Events are told again sink=%s", self.name)
                self._failing = ""
            pause_s = BACKOFF_S
            if not told:
                self._is_idle.set()
                await _within(LOOK_S, self.look)
                self.look.clear()
            elif self._every_s:
                await _within(self._every_s, self._must_drain)

    async def drained(self) -> None:
        """Everything that was there when this was called has been told, or it fails."""
        self._must_drain.set()
        for _ in range(2):  # the first look may have begun before the last commit
            self._is_idle.clear()
            self.look.set()
            if self._failing:
                return
            await self._is_idle.wait()

    async def _turn(self) -> bool:
        """Tells the next events. False: there are none."""
        if self._position is None:
            self._position = (await self._outbox.cursors())[self.name]
        batch = await self._outbox.after(self._position, self._batch)
        if not self._may_deliver():
            return False
        if batch.events:
            await self._deliver(batch.events)
            await self._outbox.move(self.name, batch.position)
        self._position = batch.position
        return bool(batch.events)

    async def _deliver(self, events: list[Event]) -> None:
        try:
            async with asyncio.timeout(DELIVERY_S):
                await self.sink.deliver(events)
        except TimeoutError as exc:
            raise TimeoutError(f"no answer within {DELIVERY_S:.0f} s") from exc
        except EventsRefused as exc:
            now_ms = time.time_ns() // 1_000_000
            refused = [event for event in events if event.id in exc.reasons]
            await self._outbox.keep(
                [_dead_letter(self.name, event, exc.reasons[event.id], now_ms) for event in refused]
            )
            logger.error(
                "Events are refused and kept as dead letters sink=%s events=%d reason=%s",
                self.name,
                len(refused),
                next(iter(exc.reasons.values()), ""),
            )

    def _failed(self, exc: Exception) -> None:
        why = str(exc) or type(exc).__name__
        if not self._failing:
            logger.warning("Events wait for their sink sink=%s error=%s", self.name, why)
        self._failing = why


def _dead_letter(sink: str, event: Event, reason: str, now_ms: int) -> DeadLetter:
    at_ms = round(event.at.timestamp() * 1000)
    return DeadLetter(
        sink, event.article.id, event.version, event.kind, at_ms, reason[:500], now_ms
    )


async def _within(seconds: float, event: asyncio.Event) -> None:
    """Returns when the event is set, or the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
