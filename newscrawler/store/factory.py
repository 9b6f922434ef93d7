"""From a setting to the store that it names: the one place that knows every implementation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from newscrawler.store.base import ArticleStore, StoreUnavailable
from newscrawler.utils.display import url_shown

if TYPE_CHECKING:
    from newscrawler.store.semantic.embedder import Embedder
    from newscrawler.store.semantic.meaning import Meaning
    from newscrawler.store.sqlite.job import Elsewhere


def open_store(
    uri: str,
    data_dir: str | Path,
    *,
    index: str = "articles",
    must_exist: bool = False,
    elsewhere: Elsewhere | None = None,
    embedder: Embedder | str = "no model is given",
    query_s: float = 0.15,
    ca_file: str = "",
) -> ArticleStore:
    """The store of ``ARTICLE_STORE``: "" is ``<data_dir>/articles.db``,
    ``http(s)://…`` Elasticsearch (``index`` is its alias), ``sqlite:///path`` or a
    path that file. Nothing is opened yet.

    ``must_exist``: readers do not create an empty store. ``elsewhere``: what a file is written by,
    when it is not to be this process. ``embedder``: for the search by meaning, or why there
    is none; a search waits ``query_s`` for it. ``ca_file``: ARTICLE_STORE_CA_FILE. Raises
    ValueError for another scheme or a ``ca_file`` that is none, and StoreUnavailable when a store
    that must exist does not."""
    if uri.startswith(("http://", "https://")):
        from newscrawler.store.elasticsearch.article_store import ElasticStore

        # A secret, hence no setting. Only needed where the server asks for one.
        return ElasticStore(
            uri,
            index=index,
            api_key=os.environ.get("ARTICLE_STORE_API_KEY") or None,
            embedder=embedder,
            query_s=query_s,
            ca_file=ca_file,
        )
    if "://" in uri and not uri.startswith("sqlite:///"):
        raise ValueError(
            f'ARTICLE_STORE="{url_shown(uri)}": must be empty, a file, sqlite:///file or'
            " http(s)://host:9200"
        )
    from newscrawler.store.sqlite import LocalStore

    path = Path(uri.removeprefix("sqlite://")) if uri else Path(data_dir) / "articles.db"
    if must_exist and not path.is_file():
        raise StoreUnavailable(
            f"no articles stored yet: {path} does not exist (is DATA_DIR right? crawl first)"
        )
    if isinstance(embedder, str):
        return LocalStore(path, elsewhere=elsewhere, meaning=embedder)
    return LocalStore(path, elsewhere=elsewhere, meaning=_meaning(embedder, query_s))


def _meaning(embedder: Embedder, query_s: float) -> Callable[[Path], Meaning]:
    def of(path: Path) -> Meaning:
        from newscrawler.store.semantic.meaning import Meaning
        from newscrawler.store.sqlite.changes import Feed
        from newscrawler.store.sqlite.schema import connect

        def feed() -> Feed:
            return Feed(connect(path, create=False))

        return Meaning(embedder, path, feed, deadline_s=query_s)

    return of
