"""Raw pages in WARC files: written once, read back by reference, walked by `scrapy reparse`."""

from newscrawler.rawstore.errors import RawNotFound, RawStoreUnavailable
from newscrawler.rawstore.raw_store import READER, RawStore
from newscrawler.rawstore.record import RawPage
from newscrawler.rawstore.writer import WarcWriter

__all__ = ["READER", "RawNotFound", "RawPage", "RawStore", "RawStoreUnavailable", "WarcWriter"]
