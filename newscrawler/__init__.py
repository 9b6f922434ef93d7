"""newscrawler: a distributed crawler for news sites.

    from newscrawler import extract, open_store, Crawler

Three things for a script or a notebook (docs/library.md): read one page, search what is stored,
crawl. They are imported at their first use: ``import newscrawler``, which every part and every
process does, costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newscrawler.fetch.client import FetchError
    from newscrawler.items import Article
    from newscrawler.library.crawling import Crawler, CrawlFailed
    from newscrawler.library.pages import NotAnArticle, extract
    from newscrawler.library.stored import Hits, Store, open_store
    from newscrawler.store.base import Hit

__version__ = "0.1.0"

__all__ = [
    "Article",
    "CrawlFailed",
    "Crawler",
    "FetchError",
    "Hit",
    "Hits",
    "NotAnArticle",
    "Store",
    "extract",
    "open_store",
]

_DEFINED_IN = {
    "Article": "newscrawler.items",
    "CrawlFailed": "newscrawler.library.crawling",
    "Crawler": "newscrawler.library.crawling",
    "FetchError": "newscrawler.fetch.client",
    "Hit": "newscrawler.store.base",
    "Hits": "newscrawler.library.stored",
    "NotAnArticle": "newscrawler.library.pages",
    "Store": "newscrawler.library.stored",
    "extract": "newscrawler.library.pages",
    "open_store": "newscrawler.library.stored",
}


def __getattr__(name: str) -> Any:
    module = _DEFINED_IN.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
