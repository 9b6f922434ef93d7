"""Articles: stored, versioned, searched. ``base`` is the contract, ``sqlite`` and
``elasticsearch`` keep it."""

from newscrawler.store.base import (
    ArticleStore,
    Hit,
    PutResult,
    Query,
    QueryError,
    QueryTooLarge,
    SearchResult,
    SearchTimeout,
    StoreError,
    StoreGone,
    StoreRefused,
    StoreUnavailable,
)
from newscrawler.store.factory import open_store

__all__ = [
    "ArticleStore",
    "Hit",
    "PutResult",
    "Query",
    "QueryError",
    "QueryTooLarge",
    "SearchResult",
    "SearchTimeout",
    "StoreError",
    "StoreGone",
    "StoreRefused",
    "StoreUnavailable",
    "open_store",
]
