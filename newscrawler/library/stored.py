"""``open_store``: what is stored, searched and read by blocking calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import Any

from newscrawler.crawl import opening
from newscrawler.items import Article
from newscrawler.library.background import Background
from newscrawler.library.settings import project_settings
from newscrawler.store.base import DEEPEST, ArticleStore, Hit, Query, SearchResult, Sort
from newscrawler.store.days import day, zone_of

_PAGE = 100  # hits asked for at once, the most that a query may
_SCANNED = 200  # articles that a scan hands over at once
_ID = re.compile(r"[0-9a-f]{32}")


def open_store(uri: str | None = None, *, settings: Mapping[str, Any] | None = None) -> Store:
    """The articles that crawls have stored, for reading. Close it, or use it in ``with``.

    :param uri: a file ``articles.db``, or http(s)://host:9200; None = ARTICLE_STORE, else
        the one in DATA_DIR
    :param settings: changes to ``newscrawler/settings.py``, e.g. ``{"DATA_DIR": "/srv/news"}``
    :raises newscrawler.store.base.StoreUnavailable: nothing is stored there yet, or
        it does not answer
    """
    own = project_settings(settings)
    if uri is not None:
        own.set("ARTICLE_STORE", uri, priority="cmdline")
    zone = zone_of(own["READER_ZONE"])
    return Store(opening.open_article_store(own, must_exist=True), zone)


class Hits(Iterable[Hit]):
    """What a search found, best first. Hits are asked for page by page while they are read."""

    def __init__(self, ask: Callable[[int], SearchResult], limit: int | None) -> None:
        self._ask = ask
        self._limit = DEEPEST if limit is None else min(limit, DEEPEST)
        self._first = ask(0)

    @property
    def total(self) -> int:
        """How many articles match; counted up to 10,000."""
        return self._first.total

    @property
    def relaxed(self) -> str:
        """How the query was widened to find something, see
        ``store.base.SearchResult``; "" = it was not."""
        return self._first.relaxed

    def __iter__(self) -> Iterator[Hit]:
        return islice(self._all(), self._limit)

    def _all(self) -> Iterator[Hit]:
        result = self._first
        for page in range(1, DEEPEST // _PAGE + 1):
            yield from result.hits
            if len(result.hits) < _PAGE or page * _PAGE >= min(self._limit, DEEPEST):
                return
            result = self._ask(page)


class Store:
    """Made by :func:`open_store`. May be used while a crawl writes to the same store."""

    def __init__(self, store: ArticleStore, zone: tzinfo = UTC) -> None:
        self._store = store
        self._zone = zone  # whose days are meant by a text
        self._background = Background("newscrawler-store")
        try:
            self._background.run(store.open())
        except BaseException:
            self._background.close()
            raise

    def search(
        self,
        text: str = "",
        *,
        limit: int | None = None,
        sites: Iterable[str] = (),
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        sort: Sort = "best",
        collapse: bool = False,
    ) -> Hits:
        """
        :param text: words, "a phrase", OR, AND, NOT, -word, parentheses, title: author: site:
            section: lang: keyword: after: before: (docs/search.md); "" finds all
        :param limit: most hits; None = all, at most 10,000
        :param after: published at or after; a text is a day, month or year of READER_ZONE:
            "2026-11-01", "1/11/2026"
        :param collapse: one hit per group of near-duplicates
        :raises newscrawler.store.base.QueryError: the query cannot be answered as written
        """
        names = (sites,) if isinstance(sites, str) else tuple(sites)
        first = Query(
            text=text,
            sites=names,
            after=_moment("after", after, self._zone),
            before=_moment("before", before, self._zone),
            zone=self._zone,
            sort=sort,
            collapse=collapse,
            size=_PAGE,
        )

        def ask(page: int) -> SearchResult:
            return self._background.run(self._store.search(replace(first, page=page)))

        return Hits(ask, limit)

    def get(self, name: str) -> Article | None:
        """One article by its id or its URL, with the text."""
        is_id = _ID.fullmatch(name) is not None
        return self._background.run(self._store.get(name) if is_id else self._store.find_url(name))

    def versions(self, article: Article | str) -> list[Article]:
        """Every version of an article (or of an article's id), oldest first."""
        ident = article.id if isinstance(article, Article) else article
        return self._background.run(self._store.versions(ident))

    def __iter__(self) -> Iterator[Article]:
        """Every article that is not gone."""
        scan = self._store.scan()

        async def some() -> list[Article]:
            found: list[Article] = []
            async for article in scan:
                found.append(article)
                if len(found) >= _SCANNED:
                    break
            return found

        while articles := self._background.run(some()):
            yield from articles
            if len(articles) < _SCANNED:
                return

    def __len__(self) -> int:
        return int(self._background.run(self._store.stats())["articles"] or 0)

    def __bool__(self) -> bool:
        return True  # an empty store is a store

    def close(self) -> None:
        try:
            self._background.run(self._store.close())
        finally:
            self._background.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def _moment(key: str, when: datetime | str | None, zone: tzinfo) -> datetime | None:
    return day(key, when, zone) if isinstance(when, str) else when
