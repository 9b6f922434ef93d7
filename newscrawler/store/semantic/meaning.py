"""The search by meaning of one store: its embedder, its vectors in memory, and the task
that makes them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from newscrawler.store.fulltext.lock import noted
from newscrawler.store.semantic.embedder import Embedder, EmbedderError, checked, cleaned
from newscrawler.store.semantic.follower import Feed, Follower
from newscrawler.store.semantic.matrix import Matrix
from newscrawler.store.semantic.vectors import Known, VectorFile

#: The mean is made anew when there are so many times the vectors that it was made of.
_GROWN = 1.5


class NoVectors(Exception):
    """Meaning cannot be asked now; the text says why."""


class Meaning:
    """Used by any number of threads. ``deadline_s``: how long a search waits for the
    vector of its query."""

    def __init__(
        self,
        embedder: Embedder,
        articles: Path,
        open_feed: Callable[[], Feed],
        *,
        deadline_s: float = 0.15,
    ) -> None:
        self.embedder = embedder
        self.path = articles.with_suffix(".vectors")
        self._articles, self._open_feed, self._deadline_s = articles, open_feed, deadline_s
        self._follower: Follower | None = None
        self._guard = threading.Lock()
        self._file: VectorFile | None = None
        self._file_of: tuple[int, int] | None = None
        self._known: Known | None = None
        self._place = 0
        self._matrix: Matrix | None = None

    # ------------------------------------------------------------------ life
    async def follow(self, *, for_queries: bool) -> None:
        """Makes missing vectors from now on; ``for_queries``: gets ready for those as well."""
        if self._follower is None:
            self._follower = Follower(self._articles, self.path, self._open_feed, self.embedder)
            self._follower.start()
        if for_queries:
            await self.embedder.start()

    async def close(self) -> None:
        if self._follower is not None:
            await self._follower.close()
        await self.embedder.close()
        with self._guard:
            self._forget()

    # ------------------------------------------------------------------ queries
    def ask(self, text: str, loop: asyncio.AbstractEventLoop) -> Any:
        """The vector of a query, from a thread beside the loop. Raises NoVectors."""
        asked = asyncio.run_coroutine_threadsafe(self.embedder.query(cleaned(text)), loop)
        try:
            return checked(asked.result(self._deadline_s), self.embedder.model)
        except TimeoutError as exc:
            asked.cancel()
            raise NoVectors(
                f"the vector of the query was not there within {self._deadline_s * 1000:.0f} ms"
            ) from exc
        except EmbedderError as exc:
            raise NoVectors(str(exc)) from exc

    def matrix(self) -> Matrix:
        """The vectors that can be compared now. Raises NoVectors."""
        try:
            with self._guard:
                matrix = self._refreshed()
        except (apsw.Error, OSError) as exc:
            with self._guard:
                self._forget()
            raise NoVectors(f"vectors {self.path}: {exc}") from exc
        if matrix is None or not len(matrix):
            raise NoVectors("no article has a vector of this model yet")
        return matrix

    def near(self, n: int, limit: int) -> list[tuple[int, float]]:
        """The articles nearest to an article. Raises NoVectors."""
        matrix = self.matrix()
        try:
            with self._guard:
                known, file = self._known, self._file
                vector = None if known is None or file is None else file.vector(known, n)
        except apsw.Error as exc:
            raise NoVectors(f"vectors {self.path}: {exc}") from exc
        if vector is None:
            raise NoVectors("this article has no vector yet")
        return [(other, score) for other, score in matrix.nearest(vector, limit + 1) if other != n]

    def state(self, feed: Feed) -> dict[str, int | str | None]:
        """For the statistics of the store."""
        done = count = 0
        with contextlib.suppress(NoVectors):
            count = len(self.matrix())
        with self._guard:
            if self._known is not None:
                done = self._known.mark.done
        return {
            "vectors": count,
            "vectors_behind": max(0, feed.last() - done),
            "vectors_model": str(self.embedder.model),
            "vectors_problem": noted(self.path.with_name(self.path.name + ".lock")),
        }

    # ------------------------------------------------------------------ the matrix
    def _refreshed(self) -> Matrix | None:
        if not self.path.is_file():
            self._forget()
            return None
        stat = self.path.stat()
        if self._file is None or self._file_of != (stat.st_dev, stat.st_ino):
            self._forget()
            self._file = VectorFile(self.path, self.embedder.model, create=False)
            self._file_of = (stat.st_dev, stat.st_ino)
        known = self._file.known()
        if known is None:
            self._matrix = self._known = None
            return None
        is_other = self._known is None or known.epoch != self._known.epoch
        self._known = known
        if is_other or self._matrix is None:
            self._load(self._file, known)
        else:
            self._take(self._file, known, self._matrix)
            if len(self._matrix) > _GROWN * max(self._matrix.made_of, 20):
                self._load(self._file, known)
        return self._matrix

    def _load(self, file: VectorFile, known: Known) -> None:
        numbers: list[int] = []
        vectors: list[Any] = []
        last = 0
        for place, rows in file.after(known, 0):
            last = place
            for n, vector in rows:
                if vector is not None:
                    numbers.append(n)
                    vectors.append(vector.astype(np.float16))
        self._place = last
        empty = np.zeros((0, self.embedder.model.dimension), np.float16)
        self._matrix = Matrix.of(numbers, np.stack(vectors) if vectors else empty)

    def _take(self, file: VectorFile, known: Known, matrix: Matrix) -> None:
        for place, rows in file.after(known, self._place):
            for n, _ in rows:
                matrix.drop(n)
            new = [(n, vector) for n, vector in rows if vector is not None]
            if new:
                matrix.put([n for n, _ in new], np.stack([vector for _, vector in new]))
            self._place = place

    def _forget(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._file_of = self._known = self._matrix = None
        self._place = 0
