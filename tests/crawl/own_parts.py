"""What a Scrapy engineer adds to the project: pipelines, a suite of Spidermon's stock monitors,
settings on top of ours.

As a settings module (SCRAPY_SETTINGS_MODULE) it is a settings.py that begins with this project's.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from spidermon import MonitorSuite
from spidermon.contrib.scrapy import monitors

from newscrawler.items import Article
from newscrawler.settings import *  # noqa: F403  # a project of a user writes it so

ITEM_PIPELINES = {
    "tests.crawl.own_parts.Early": 50,
    "tests.crawl.own_parts.Late": 900,
    "spidermon.contrib.scrapy.pipelines.ItemValidationPipeline": 950,
}
OWN_PIPELINE_FILE = ""
OWN_DROPS = OWN_RAISES = OWN_SPOILS = "x"  # first letters of ids; no id begins with an x
# A number, which Spidermon does not take from the command line.
SPIDERMON_ITEM_COUNT_INCREASE = int(os.environ.get("OWN_INCREASE", "1"))
SPIDERMON_SPIDER_CLOSE_MONITORS = ("tests.crawl.own_parts.StockSuite",)
SPIDERMON_PERIODIC_MONITORS: dict[str, int] = {}
SPIDERMON_ADD_FIELD_COVERAGE = True
SPIDERMON_VALIDATION_SCHEMAS = {
    Article: {
        "type": "object",
        "properties": {
            "url": {"type": "string", "pattern": "^http"},
            "title": {"type": "string", "minLength": 1},
            "content": {"type": "string", "minLength": 1},
            "authors": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id", "url", "title", "content", "authors"],
    }
}


class _Noting:
    """Notes what it sees of each item, by itemadapter, as any pipeline does that knows
    nothing of this project."""

    def __init__(self, path: str, drops: str, raises: str, spoils: str) -> None:
        self.path = Path(path)
        self.drops, self.raises, self.spoils = tuple(drops), tuple(raises), tuple(spoils)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> _Noting:
        names = ("OWN_PIPELINE_FILE", "OWN_DROPS", "OWN_RAISES", "OWN_SPOILS")
        return cls(*(crawler.settings[name] for name in names))

    def note(self, item: Any) -> ItemAdapter:
        seen = ItemAdapter(item)
        row = {
            "pipeline": type(self).__name__,
            "url": seen["url"],
            "raw_ref": seen["raw_ref"],
            "fields": sorted(seen),
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return seen


class Early(_Noting):
    """Before ours: drops articles whose id begins with one of OWN_DROPS, and signs the others."""

    def process_item(self, item: Any) -> Any:
        seen = self.note(item)
        if seen["id"].startswith(self.drops):
            raise DropItem("its id begins so")
        if seen["id"].startswith(self.raises):
            raise ValueError("a fault of an own pipeline")
        seen["section"] = "by an own pipeline"
        return item


class Late(_Noting):
    """Behind ours."""

    def process_item(self, item: Any) -> Any:
        seen = self.note(item)
        if seen["id"].startswith(self.spoils):
            seen["url"] = "none"  # against the schema
        return item


class StockSuite(MonitorSuite):
    monitors = [
        monitors.ItemCountMonitor,
        monitors.ErrorCountMonitor,
        monitors.FinishReasonMonitor,
        monitors.UnwantedHTTPCodesMonitor,
        monitors.DownloaderExceptionMonitor,
        monitors.RetryCountMonitor,
        monitors.SuccessfulRequestsMonitor,
        monitors.TotalRequestsMonitor,
        monitors.FieldCoverageMonitor,
        monitors.ItemValidationMonitor,
        monitors.PeriodicItemCountMonitor,
    ]


class FailingPipeline:
    """Raises for every second article."""

    def __init__(self) -> None:
        self.articles = 0

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Article):
            self.articles += 1
            if self.articles % 2 == 0:
                raise RuntimeError("this pipeline fails")
        return item
