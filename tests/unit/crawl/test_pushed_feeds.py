"""A feed that its hub has sent, in a worker: which one reads it, and what it says of its hub."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from newscrawler.crawl.page import Page, unanswered
from newscrawler.crawl.page_parser import PageParser
from newscrawler.crawl.services import Services
from newscrawler.crawl.waits import SCANNER
from newscrawler.crawl.websub import BACK_S, PUSHED, Pushed, Subscriptions, _packed_push
from newscrawler.discovery.feeds import parse_feed
from newscrawler.discovery.sites import Site, Sites
from newscrawler.extensions import PushedFeeds
from newscrawler.items import Kind, Outcome
from newscrawler.spiders.news import NewsSpider, unfenced_lease
from tests.fixtures_clamav import EICAR, MakeClamd
from tests.fixtures_redis import until

FEED = "https://bao.vn/rss"
RSS = b"<rss><channel><title>t</title><item><link>https://bao.vn/a-1.html</link></item></channel></rss>"


class Noted:
    """Stands where Redis keeps the subscriptions."""

    def __init__(self) -> None:
        self.hubs: list[str] = []

    async def note(self, site: str, feed: str, hub: str, topic: str) -> None:
        self.hubs.append(hub)


def parts() -> Any:
    """A spider's, without a crawl."""

    async def read(task: Any) -> Any:
        return parse_feed(RSS, FEED)

    sites = Sites([Site(id="bao.vn", name="Bao", home="https://bao.vn/", hosts=("bao.vn",))])
    learning = SimpleNamespace(note_list=lambda *_: None, wants_headlines=lambda _: False)
    learning.is_doubtful = lambda *_: False
    services: Any = SimpleNamespace(
        sites=sites, websub=Noted(), link_learning=learning, reader=SimpleNamespace(read=read)
    )
    found = SimpleNamespace(links=[])
    finder: Any = SimpleNamespace(use=lambda _: None, entry_links=lambda *_, **__: found)
    parser = PageParser(services, finder, 5)
    return SimpleNamespace(services=services, parser=parser, _now_ms=lambda: 1_800_000_000_000)


def fetched(spider: Any) -> Page:
    link = spider.services.sites.identify(FEED, kind=Kind.FEED)
    page = unanswered(unfenced_lease(link, "bao.vn"), spider.services.sites.get("bao.vn"), 1)
    page.status, page.outcome, page.body = 200, Outcome.DONE, RSS
    page.headers = [(b"Link", b'<https://hub.vn/>; rel="hub"')]
    return page


async def test_what_a_hub_sends_says_nothing_of_the_hub() -> None:
    """A feed may name it in the header Link alone, which the site sends and the hub need not."""
    spider = parts()
    await spider.parser.parse(fetched(spider))
    assert spider.services.websub.hubs == ["https://hub.vn/"]
    assert await NewsSpider.read_pushed(spider, "bao.vn", FEED, RSS) == []
    assert spider.services.websub.hubs == ["https://hub.vn/"], "its subscription stays"


class Worker:
    """What reads pushes, of a worker whose pages are shown to ClamAV at ``address``."""

    def __init__(self, r: Any, address: str) -> None:
        self.r, self.read, self.is_over = r, list[bytes](), False
        settings = Settings()
        settings.setmodule("newscrawler.settings")
        settings.set("CLAMAV", address, "cmdline")
        site = Site(id="bao.vn", name="Bao", home="https://bao.vn/", hosts=("bao.vn",))
        self.counts: Counter[str] = Counter()
        self.now_s = 1_800_000_000.0
        self.services = Services(
            settings, "w", Sites([site]), ["bao.vn"], loopback_only=True,
            count=lambda name, number: self.counts.update({name: number}),
            is_over=lambda: self.is_over,
        )  # fmt: skip
        self.services.websub = Subscriptions(r, lambda: self.now_s)
        self.feeds: Any = PushedFeeds.__new__(PushedFeeds)
        stats = SimpleNamespace(inc_value=lambda *_: None)
        engine = SimpleNamespace(scheduler=self)
        self.feeds.services = self.services
        self.feeds.crawler = SimpleNamespace(stats=stats, engine=engine, spider=self)

    async def read_pushed(self, site: str, url: str, body: bytes) -> list[Any]:
        self.read.append(body)
        return []

    async def add(self, links: list[Any]) -> int:
        return len(links)

    async def push(self, *bodies: bytes) -> None:
        for body in bodies:
            await self.r.rpush(PUSHED, _packed_push(Pushed("bao.vn", FEED, body, self.now_s)))


async def test_what_a_hub_sends_is_shown_to_the_virus_scanner(
    r: Any, clamd: MakeClamd, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(r, str(clamd().socket))
    await worker.push(RSS, RSS.replace(b"<title>t", b"<title>" + EICAR), RSS + b" ")
    await worker.feeds.look()
    assert worker.read == [RSS, RSS + b" "]
    assert worker.counts == {"scan/pages/clean": 2, "scan/pages/found": 1}
    assert f"A pushed feed is not read site=bao.vn url={FEED} reason=malware" in caplog.text
    assert await r.llen(PUSHED) == 0


async def test_what_a_hub_sends_waits_for_the_virus_scanner(
    r: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(r, str(tmp_path / "none"))
    await worker.push(RSS, RSS + b" ")
    looks = asyncio.ensure_future(worker.feeds.look())
    await until(lambda: worker.services.waits.is_failing(SCANNER), "it waits", 120)
    await asyncio.wait_for(worker.feeds.look(), 120)
    assert await r.llen(PUSHED) == 1, "what is not in hand stays in Redis"
    worker.is_over = True
    await asyncio.wait_for(looks, 120)
    assert worker.read == [] and await r.llen(PUSHED) == 2, "another worker may read it"
    worker.services.waits.works(SCANNER)
    worker.now_s += BACK_S
    await asyncio.wait_for(worker.feeds.look(), 120)
    assert await r.llen(PUSHED) == 0 and worker.read == []
    assert caplog.text.count("reason=unscanned") == 2, "not for ever"


def test_pages_and_pushed_feeds_are_shown_to_one_scanner_where_there_is_one() -> None:
    worker = Worker(None, "/run/clamd")
    assert worker.services.virus_scan is worker.services.virus_scan is not None
    assert Worker(None, "").services.virus_scan is None
    worker = Worker(None, "/run/clamd")
    worker.services.settings.set("FRONTIER_ENABLED", False, "cmdline")
    assert worker.services.virus_scan is None, "a page for a person"
