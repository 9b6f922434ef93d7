"""Articles: stored, versioned, searched. ``base`` is the contract, ``local`` and ``elastic`` keep it."""

from newscrawler.store.base import (
    ArticleStore,
    Hit,
    PutResult,
    Query,
    QueryError,
    SearchResult,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    open_store,
)

__all__ = [
    "ArticleStore",
    "Hit",
    "PutResult",
    "Query",
    "QueryError",
    "SearchResult",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "open_store",
]
