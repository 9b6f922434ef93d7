"""Who tells events, as settings name it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest
from scrapy.settings import Settings

from newscrawler.crawl import plugins
from newscrawler.crawl.announce import Dispatcher
from newscrawler.store.events import Outbox


class SinkOfOld:
    async def announce(self, stored: object) -> None: ...


def test_a_sink_without_deliver_is_said_before_the_crawl() -> None:
    settings = Settings({"EVENT_SINKS": f"{__name__}.SinkOfOld"})
    with pytest.raises(ValueError, match=r"EVENT_SINKS: .*SinkOfOld has no method deliver"):
        plugins.check(settings)


class Hangs:
    """An outbox whose server takes requests and answers none."""

    async def begin(self, sinks: Sequence[str]) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        await asyncio.Event().wait()


async def test_a_store_that_hangs_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("newscrawler.crawl.announce.CLOSE_S", 0.05)
    dispatcher = Dispatcher(cast(Outbox, Hangs()), {})
    dispatcher.start()
    async with asyncio.timeout(60):
        await dispatcher.drain(0.05)
        await dispatcher.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing hangs on"
