"""Events of articles: what is told, to whom, and the outbox from which it is told.

A store writes an event together with the article that it is about, so that no crash can separate
the two (docs/extending.md). ``crawl.announce.Dispatcher`` reads the outbox and delivers each event
to each sink at least once, in order for every article. The sink that is always there is a Redis
stream: ``XREAD BLOCK 0 STREAMS newscrawler:events $``, or with a consumer group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from newscrawler.items import Article

STREAM = "newscrawler:events"
#: About so many of the last events are kept (MAXLEN ~): 200 B each.
KEPT = 100_000

Kind = Literal["new", "updated", "gone"]


@dataclass(frozen=True, slots=True)
class Event:
    """``article`` is as that version was stored; of a gone one, as it was last."""

    kind: Kind
    version: int
    at: datetime  # stored or marked as gone; aware
    article: Article

    @property
    def id(self) -> str:
        """The same each time that the event is told: by it a receiver knows a second delivery."""
        return event_id(self.article.id, self.version, self.kind)

    @property
    def type(self) -> str:
        return f"article.{self.kind}"

    def plain(self) -> dict[str, Any]:
        """For JSON: what webhooks and Kafka are sent. The text of the article is not in it."""
        a = self.article
        return {
            "event": self.id,
            "type": self.type,
            "at": self.at.isoformat(),
            "id": a.id,
            "url": a.url,
            "site": a.site,
            "version": self.version,
            "title": a.title,
            "published": a.published.isoformat() if a.published else None,
            "authors": a.authors,
            "summary": a.summary,
            "section": a.section,
            "language": a.language,
            "keywords": a.keywords,
        }


def event_id(article_id: str, version: int, kind: Kind) -> str:
    return f"{article_id}.{version}" + (".gone" if kind == "gone" else "")


class EventsRefused(Exception):
    """The receiver will never take some events of a delivery; it has all the others. They are kept
    as dead letters (``scrapy events dead``).

    :param reasons: by the id of the event
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(f"{len(reasons)} event(s) refused: {next(iter(reasons.values()), '')}")
        self.reasons = dict(reasons)


class EventSink(Protocol):
    """Is told one delivery at a time, and the next only after it returned.

    What :meth:`deliver` raises says that the receiver is away: the same delivery is offered again,
    at growing intervals, until it passes; meanwhile other sinks and the crawl go on. Optional
    attributes: ``batch``, the most events of a delivery (100), ``every_s``, the seconds that
    must lie between two deliveries (0), and ``tick``, a coroutine function that is called between
    them, every second or so.
    """

    async def deliver(self, events: Sequence[Event]) -> object:
        """Returns when all of them are safe with the receiver. Raises EventsRefused for those that
        it will never take."""
        ...

    async def close(self) -> None:
        """The crawl or command has ended; nothing is told after it."""
        ...


# ---------------------------------------------------------------- the outbox of a store


@dataclass(frozen=True, slots=True)
class Batch:
    events: list[Event]
    position: str  # behind them


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a sink's receiver refused."""

    sink: str
    article_id: str
    version: int
    kind: Kind
    at_ms: int  # of the event
    reason: str
    refused_ms: int

    @property
    def event_id(self) -> str:
        return event_id(self.article_id, self.version, self.kind)


class Outbox(Protocol):
    """The events of a store, and how far each sink has been told. All raise StoreUnavailable.

    Positions are texts that only the outbox understands.
    """

    async def begin(self, sinks: Sequence[str]) -> None:
        """A sink that is not known yet is told what happens from now on."""
        ...

    async def cursors(self) -> dict[str, str]:
        """Positions of all sinks that ever began, by name."""
        ...

    async def after(self, position: str, limit: int) -> Batch:
        """About ``limit`` events at most; those of one article in the order they happened."""
        ...

    async def move(self, sink: str, position: str) -> None:
        """All before the position was delivered."""
        ...

    async def hold(self) -> bool:
        """Whether this process is the one that delivers. To be called again every few seconds; a
        process that ends or stops to call loses it to another."""
        ...

    async def keep(self, letters: Sequence[DeadLetter]) -> None: ...
    async def dead_letters(self) -> list[DeadLetter]:
        """Oldest first."""
        ...

    async def read(self, letter: DeadLetter) -> Event | None: ...
    async def forget(self, letters: Sequence[DeadLetter]) -> None: ...

    async def tidy(self, sinks: Sequence[str]) -> None:
        """Drops events that nobody waits for. ``sinks`` are in use; one that was not for a month
        is waited for no longer."""
        ...

    async def close(self) -> None:
        """Another process may deliver now."""
        ...


def outbox_of(store: object) -> Outbox | None:
    """None: a store of another project, of which each event is told at once or never."""
    found: Outbox | None = getattr(store, "outbox", None)
    return found


# ---------------------------------------------------------------- the stream in Redis


@dataclass
class EventStream:
    """``client`` is a redis.asyncio client; None tells nobody. Raises redis' own errors."""

    client: Any
    stream: str = STREAM
    kept: int = KEPT
    batch: int = field(default=500, kw_only=True)

    async def deliver(self, events: Sequence[Event]) -> int:
        """One round trip. Returns the number of events."""
        if self.client is None or not events:
            return 0
        pipeline = self.client.pipeline(transaction=False)
        for event in events:
            fields = _fields(event)
            pipeline.xadd(self.stream, fields, maxlen=self.kept, approximate=True)
        await pipeline.execute()
        return len(events)

    async def close(self) -> None:
        """The client is its owner's."""


def _fields(event: Event) -> dict[str, str]:
    a = event.article
    return {
        "event": event.id,
        "type": event.type,
        "at": event.at.isoformat(),
        "id": a.id,
        "url": a.url,
        "site": a.site,
        "version": str(event.version),
        "title": a.title,
        "published": a.published.isoformat() if a.published else "",
    }
