"""Scrapy's own lines about items, in this project's words: a page is named by its address, never printed whole."""

from __future__ import annotations

import logging
from typing import Any

from scrapy.logformatter import LogFormatter

from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import StoreError


class PageLogFormatter(LogFormatter):
    """Scrapy prints the item, which is a whole page, and a traceback with every error of a pipeline. A store that
    is away is no error of ours: the scheduler says it once, in one line."""

    def item_error(self, item: Any, exception: BaseException, response: Any, spider: Any) -> Any:
        known = isinstance(exception, (StoreError, RawStoreUnavailable))
        return {
            "level": logging.DEBUG if known else logging.ERROR,
            "msg": "Page not stored url=%(url)s error=%(error)s",
            "args": {"url": getattr(item, "url", "?"), "error": exception},
        }

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        """Nothing: a visit's line comes from the reporter, when it has ended."""
        return None

    def crawled(self, request: Any, response: Any, spider: Any) -> Any:
        """Nothing, for the same reason."""
        return None
