"""A site takes another structure overnight: the alarm, the new set, and the repair from stored
pages. Real Redis, no site."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from newscrawler.crawl.ingest import Ingest
from newscrawler.crawl.reparse import Choice, Reparser
from newscrawler.discovery.sites import Sites
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import article_values, extract
from newscrawler.items import Article, Kind, Outcome, Visit
from newscrawler.rawstore import READER, RawStore
from newscrawler.selectorsets.drift import Drift, DriftWatch
from newscrawler.selectorsets.generate import Generator
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.repairs import Repairs
from newscrawler.selectorsets.store import SelectorStore
from newscrawler.store import open_store
from tests.semisynthetic.life import FIELDS, NOW, Site, live, wrong_fields
from tests.semisynthetic.structure import Truth

DOMAIN = "a.example"
MOST_PAGES = 45


@dataclass
class Changed:
    """Counts of pages of the new structure; 0 = it did not come to that. ``damaged``: wrong
    when they were stored."""

    ids: str
    reason: str = ""
    alarm_after: int = 0
    live_after: int = 0
    damaged: int = 0
    wrong: list[str] = field(default_factory=list)  # after the repair

    @property
    def good(self) -> bool:
        """Where the old set reads the new structure as well there is nothing to
        call an alarm for."""
        seen = 0 < self.alarm_after <= 8 and 0 < self.live_after <= 30
        return not self.wrong and (seen or not (self.alarm_after or self.damaged))


async def change(old: Site, new: Site, client: Any, folder: Path) -> Changed:
    """``old`` has to reach an active set by itself first."""
    told = Changed(f"{old.structure.id} -> {new.structure.id}")
    life = await asyncio.to_thread(live, old, 1)
    if life.state != "active" or life.doc is None:
        told.reason = f"no set to begin with: {life.reason}"
        return told
    raw, articles = RawStore.open(str(folder / "warc"), "w1"), open_store("", folder)
    await articles.open()
    sets = SelectorStore(client, folder / "none")
    version = await sets.add_version(DOMAIN, {**life.doc, "domain": DOMAIN}, who="generator")
    await sets.activate(DOMAIN, version, who="shadow", reason="test")
    await sets.refresh()
    crawl = _Crawl(new, client, sets, raw, articles)
    truths: dict[str, Truth] = {}
    for number in range(MOST_PAGES):
        url, truth, damaged = await crawl.page(number)
        truths[url] = truth
        told.damaged += damaged
        told.alarm_after, told.live_after = crawl.alarm_after, crawl.live_after
        if crawl.live_after and number >= crawl.live_after + 5:
            break
    told.reason = crawl.reason
    repair = await Repairs(client).take()
    raw.close()
    sites = Sites().for_urls(list(truths))
    if repair is not None:
        reader = RawStore.open(str(folder / "warc"), READER)
        await Reparser(reader, Ingest(articles), sets, sites).run(Choice(DOMAIN))
        reader.close()
    told.wrong = [
        f"{url}: {what}"
        for url, truth in truths.items()
        for what in await _wrong(articles, url, truth)
    ]
    await articles.close()
    return told


async def _wrong(articles: Any, url: str, truth: Truth) -> list[str]:
    from newscrawler.extraction.extract import Extraction
    from newscrawler.items import FieldValue

    article = await articles.find_url(url)
    if article is None:
        return ["not stored"]
    stored = Extraction(
        **{n: FieldValue(getattr(article, n), article.origins.get(n, "")) for n in FIELDS}
    )
    stored.published_day_only = "(day)" in stored.published.origin
    stored.published_zone_assumed = True
    return [f"{n}: {what}" for n, what in wrong_fields(stored, truth).items()]


class _Crawl:
    """One worker's way from page to alarm to generation, without Scrapy around it."""

    def __init__(
        self, site: Site, client: Any, sets: SelectorStore, raw: RawStore, articles: Any
    ) -> None:
        self.site, self.sets, self.raw, self.articles = site, sets, raw, articles
        self.drift, self.watch = Drift(client), DriftWatch()
        self.alarm_after = self.live_after = 0
        self.reason = ""
        self._failing = 0

        async def load(ref: str) -> Any:
            return await asyncio.to_thread(raw.read, ref)

        self.generator = Generator(
            sets, Jobs(client, ModelBudget()), load, lambda url: site.context(), mode="rules"
        )

    async def page(self, number: int) -> tuple[str, Truth, bool]:
        made = self.site.page()
        url = f"https://{DOMAIN}/bai-{number}.html"
        fetched = NOW + timedelta(minutes=number)
        ref = self.raw.write(
            url, made.body, [(b"Content-Type", b"text/html; charset=utf-8")], 200, fetched
        )
        self.raw.flush()
        active = self.sets.active(DOMAIN)
        assert active is not None
        found = extract(Document(made.body, url), self.site.context(), active)
        damaged = bool(wrong_fields(found, made.truth))
        article = Article(
            id=f"{number:032x}", url=url, site=DOMAIN, fetched=fetched, discovered=fetched, raw_ref=ref,
            **article_values(found),
        )  # fmt: skip
        await self.articles.put([article])
        self.watch.note(
            Visit(
                url, Outcome.DONE, kind=Kind.ARTICLE, site=DOMAIN, article=article, fetched=fetched
            ),
            active,
        )
        self._failing += not (
            article.origins.get("content", "").startswith("selector:")
            and "title" not in found.disagreements
        )
        for alarm in await self.drift.send(self.watch.take()):
            if alarm.what == "drift":
                self.alarm_after = self.alarm_after or number + 1
                await self.sets.adopt(DOMAIN)
                await self.sets.note_alarm(alarm)
            elif alarm.what == "ready":
                result = await self.generator.run(DOMAIN, forced=True)
                self.reason = f"{result.state}: {result.reason}"
                await self.sets.refresh()
                if result.state == "active":
                    self.live_after = number + 1
        return url, made.truth, damaged
