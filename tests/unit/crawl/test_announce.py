"""Who tells events, as settings name it."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from newscrawler.crawl import plugins


class SinkOfOld:
    async def announce(self, stored: object) -> None: ...


def test_a_sink_without_deliver_is_said_before_the_crawl() -> None:
    settings = Settings({"EVENT_SINKS": f"{__name__}.SinkOfOld"})
    with pytest.raises(ValueError, match=r"EVENT_SINKS: .*SinkOfOld has no method deliver"):
        plugins.check(settings)
