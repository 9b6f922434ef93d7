"""What Scrapy itself writes of articles, named in the settings: its log lines about items, and CSV
for ``-o``."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from scrapy.exporters import CsvItemExporter
from scrapy.logformatter import LogFormatter

from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.store.base import StoreError
from newscrawler.utils.display import cell


class PageLogFormatter(LogFormatter):
    """Scrapy prints the item, which is a whole article, and a traceback with every error of a
    pipeline. A store that is away is no error of ours: the scheduler says it once, in one line."""

    def item_error(self, item: Any, exception: BaseException, response: Any, spider: Any) -> Any:
        known = isinstance(exception, (StoreError, RawStoreUnavailable))
        return {
            "level": logging.DEBUG if known else logging.ERROR,
            "msg": "Article not stored url=%(url)s error=%(error)s",
            "args": {"url": getattr(item, "url", "?"), "error": exception},
        }

    def dropped(self, item: Any, exception: Any, response: Any, spider: Any) -> Any:
        level = getattr(exception, "log_level", None) or logging.INFO
        return {
            "level": logging.getLevelNamesMapping()[level] if isinstance(level, str) else level,
            "msg": "Article dropped url=%(url)s reason=%(reason)s",
            "args": {"url": getattr(item, "url", "?"), "reason": exception},
        }

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        """Nothing: a visit's line comes from the reporter, when it has ended."""
        return None

    def crawled(self, request: Any, response: Any, spider: Any) -> Any:
        """Nothing, for the same reason."""
        return None


class ArticleCsvExporter(CsvItemExporter):
    """CSV whose cells are read again by other programs: names joined by "; ", dictionaries as JSON.
    No spreadsheet takes one for a formula."""

    def __init__(self, *args: Any, join_multivalued: str = "; ", **kwargs: Any) -> None:
        super().__init__(*args, join_multivalued=join_multivalued, **kwargs)

    def serialize_field(self, field: Mapping[str, Any] | Any, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return cell(json.dumps(value, ensure_ascii=False))
        serializer: Callable[[Any], Any] = field.get("serializer", self._join_if_needed)
        return cell(serializer(value))
