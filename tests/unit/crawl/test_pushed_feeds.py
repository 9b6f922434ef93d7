"""A feed that its hub has sent, in a worker: which one reads it, and what it says of its hub."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from newscrawler.crawl.page import Page, unanswered
from newscrawler.crawl.page_parser import PageParser
from newscrawler.discovery.feeds import parse_feed
from newscrawler.discovery.sites import Site, Sites
from newscrawler.items import Kind, Outcome
from newscrawler.spiders.news import NewsSpider, unfenced_lease

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
