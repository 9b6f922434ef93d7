"""Item and pipeline of another spider in this project (test_scrapy_ways)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from itemadapter import ItemAdapter


@dataclass
class Headline:
    url: str
    title: str


class Upper:
    def process_item(self, item: Any) -> Any:
        seen = ItemAdapter(item)
        seen["title"] = seen["title"].upper()
        return item
