"""An embedder whose vectors are known: words that mean the same are one direction each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newscrawler.items import Article
from newscrawler.store.base import ArticleStore
from newscrawler.store.fold import exact_words
from newscrawler.store.semantic.embedder import EmbedderError, Model
from newscrawler.store.semantic.meaning import Meaning
from newscrawler.store.sqlite import LocalStore
from newscrawler.store.sqlite.changes import Feed
from newscrawler.store.sqlite.schema import connect

SAME = (
    {"gold", "vàng", "bullion"},
    {"price", "giá", "cost"},
    {"storm", "bão", "typhoon"},
    {"team", "club", "football"},
    {"bank", "interest", "loan"},
    {"rain", "flood", "water"},
)


class Thesaurus:
    """``delay_s``: how long a query takes; ``fails``: what every call raises, if anything."""

    def __init__(self, name: str = "thesaurus", version: str = "1") -> None:
        self.model = Model(name, version, len(SAME) + 1)
        self.passages: list[str] = []
        self.queries: list[str] = []
        self.delay_s = 0.0
        self.fails: Exception | None = None

    async def passage(self, text: str) -> Sequence[float]:
        if self.fails is not None:
            raise self.fails
        self.passages.append(text)
        return self.vector(text)

    async def query(self, text: str) -> Sequence[float]:
        self.queries.append(text)
        await asyncio.sleep(self.delay_s)
        if self.fails is not None:
            raise self.fails
        return self.vector(text)

    def vector(self, text: str) -> list[float]:
        words = exact_words(text)
        return [float(sum(word in same for word in words)) for same in SAME] + [0.1]

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass


def article(number: int, title: str, content: str = "", **more: Any) -> Article:
    values = {
        "id": f"{number:016x}",
        "url": f"https://www.a.vn/{number}",
        "site": "a.vn",
        "published": datetime(2026, 11, 1, number % 24, tzinfo=UTC),
        "content": content or f"Nothing else is said in number {number}.",
        **more,
    }
    return Article(title=title, **values)


def open_with(path: Path, embedder: Any, **more: Any) -> LocalStore:
    """A store at ``path`` whose meaning is this embedder's."""
    return LocalStore(path, meaning=meaning_of(embedder, **more))


def meaning_of(embedder: Any, **more: Any) -> Callable[[Path], Meaning]:
    def of(path: Path) -> Meaning:
        return Meaning(embedder, path, lambda: Feed(connect(path, create=False)), **more)

    return of


async def caught_up(store: ArticleStore, count: int, limit_s: float = 60) -> dict[str, Any]:
    """Waits until so many articles have vectors and none is missing."""
    end = time.monotonic() + limit_s
    while True:
        stats = await store.stats()
        if stats["vectors"] == count and not stats["vectors_behind"]:
            return stats
        assert time.monotonic() < end, stats
        await asyncio.sleep(0.02)


class Refuses(Thesaurus):
    async def passage(self, text: str) -> Sequence[float]:
        raise EmbedderError("the server is away")


class Waits(Thesaurus):
    """Says when it is ``asked`` and does not answer before it may ``go``."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def passage(self, text: str) -> Sequence[float]:
        self.asked.set()
        await self.go.wait()
        return await super().passage(text)
