"""Whether what is stored is whole: articles against their digests, what is kept beside them, raw
pages against theirs, and references from the one to the other. Reads only."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from newscrawler.rawstore import RawNotFound, RawStore
from newscrawler.store import codec
from newscrawler.store.base import Query, WholeStore

#: Seconds between two words of progress.
_SAY_S = 2.0
#: What is compared by counting is wrong when it is so in as many looks, seconds apart: workers that
#: write meanwhile change one count before the other, and their vectors and index come after them.
_LOOKS, _BETWEEN_S = 4, 0.5
_NUMBER = re.compile(r"[0-9,]+")
#: What a word has that differs between two faults of one kind: a file, an address, a number.
_OF_A_PLACE = re.compile(r"[0-9/]")


@dataclass(slots=True)
class Findings:
    """``counts``: what was looked at."""

    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    #: By what is wrong, without the places that it names: the faults of one kind.
    kinds: dict[str, list[str]] = field(default_factory=dict)

    def add(self, about: str, text: str) -> None:
        fault = f"{about}: {text}"
        self.faults.append(fault)
        kind = " ".join(word for word in text.split() if not _OF_A_PLACE.search(word))
        self.kinds.setdefault(kind, []).append(fault)

    def lines(self, most: int) -> list[str]:
        """For people: of each kind the first faults, then how many more there are."""
        lines = []
        for faults in self.kinds.values():
            lines += faults[:most]
            if len(faults) > most:
                lines.append(f"... and {len(faults) - most:,} more of this kind; --json has all")
        return lines


class Check:
    """``raw`` None: raw pages are left out. ``say`` is told how far it is."""

    def __init__(
        self,
        store: WholeStore,
        raw: RawStore | None,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._raw, self._say, self._clock = store, raw, say, clock
        self._said_at = clock()
        self._found = Findings()
        #: Reference -> URL of the article that has it.
        self._references: dict[str, str] = {}

    async def run(self) -> Findings:
        await self._articles()
        for look in (self._counts, self._store.inspect):
            for line in await _lasting(look):
                self._found.add("store", line)
        if self._raw is not None:
            self._pages(self._raw)
        return self._found

    async def _articles(self) -> None:
        articles = gone = 0
        async for kept in self._store.walk():
            article = kept.article
            articles, gone = articles + 1, gone + article.gone
            if codec.digest(article) != kept.digest:
                self._found.add(article.url, "was altered: its fields are not those of its digest")
            if article.raw_ref:
                self._references[article.raw_ref] = article.url
            self._progress(f"{articles:,} articles")
        self._found.counts = {"articles": articles - gone, "gone": gone}

    async def _counts(self) -> list[str]:
        """A crawl that goes on changes them between two looks: they are compared only where nothing
        was written meanwhile."""
        await self._store.refresh()
        before = await self._store.stats()
        found = await self._store.search(Query(size=1, mode="keyword"))
        after = await self._store.stats()
        if before["articles"] != after["articles"]:
            return []
        stored = int(after["articles"] or 0)
        if stored != self._found.counts["articles"]:
            self._say(
                f"{self._found.counts['articles']:,} articles were walked and {stored:,} are"
                " stored: they are written to"
            )
        elif found.total != stored and not found.total_is_capped:
            return [f"a search finds {found.total:,} of {stored:,} articles"]
        return []

    def _pages(self, raw: RawStore) -> None:
        pages = 0
        left = dict(self._references)
        for reference, fault in raw.verify():
            pages += 1
            url = left.pop(reference, "")
            if fault:
                self._found.add(f"raw page {reference}{f' of {url}' if url else ''}", fault)
            self._progress(f"{pages:,} raw records")
        for reference, url in left.items():
            try:
                raw.read(reference)  # written since, or in a file that breaks off
            except RawNotFound as exc:
                self._found.add(url, str(exc))
            self._progress(f"{pages:,} raw records, references")
        self._found.counts |= {"raw records": pages, "references": len(self._references)}

    def _progress(self, text: str) -> None:
        if self._clock() - self._said_at >= _SAY_S:
            self._said_at = self._clock()
            self._say(text)


async def _lasting(look: Callable[[], Awaitable[list[str]]]) -> list[str]:
    """The lines of the last look of which each look before had one as well, whatever its numbers
    were."""
    lines = await look()
    for _ in range(_LOOKS - 1):
        if not lines:
            break
        await asyncio.sleep(_BETWEEN_S)
        known = {_NUMBER.sub("", line) for line in lines}
        lines = [line for line in await look() if _NUMBER.sub("", line) in known]
    return lines
