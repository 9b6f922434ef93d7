"""A set on probation that reads pages otherwise than they were stored: all shadow pages together
say who is right. Real Redis."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import article_values, extract
from newscrawler.extraction.selectors import apply
from newscrawler.items import Article
from newscrawler.selectorsets import keys
from newscrawler.selectorsets.generate import Generator, Result
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.store import SHADOW_PAGES, SelectorStore
from newscrawler.selectorsets.validation import agrees_with
from tests.unit.selectorsets.test_bylines import CONTEXT, NOW, Made, page

DOMAIN = "a.example"


class Stored:
    """A page as the raw store gives it back."""

    headers: tuple[()] = ()

    def __init__(self, made: Made) -> None:
        self.url, self.body, self.fetched = made.url, made.body, NOW


class Site:
    """Pages of one kind, stored under their number, and the sets that grow on them."""

    def __init__(self, client: Any, folder: Path, kind: str) -> None:
        self.kind = kind
        self.store = SelectorStore(client, folder)
        self.generator = Generator(
            self.store, Jobs(client, ModelBudget()), self.load, lambda url: CONTEXT, mode="rules"
        )

    async def load(self, ref: str) -> Stored:
        return Stored(page(int(ref), self.kind))

    async def probation(self) -> Result:
        refs = [(page(n, self.kind).url, str(n)) for n in range(12)]
        return await self.generator.run(DOMAIN, forced=True, refs=refs)

    async def shadow(self, numbers: range, *, stored: bool = True) -> int:
        """As the crawl does it: read by the generic chain, compared; how many agreed."""
        agreed = 0
        for number in numbers:
            on_probation = self.store.probation(DOMAIN)
            if on_probation is None:
                break
            made = page(number, self.kind)
            doc = Document(made.body, made.url)
            found = extract(doc, CONTEXT)
            article = Article(
                id="x",
                url=made.url,
                site=DOMAIN,
                discovered=NOW,
                fetched=datetime.now(NOW.tzinfo),
                **article_values(found),
            )
            good = agrees_with(article, apply(doc, on_probation, CONTEXT))
            where = (made.url, str(number)) if stored else None
            await self.store.note_shadow(DOMAIN, on_probation.version, good, where)
            agreed += good
        return agreed


@pytest.fixture
def site(selector_redis: Any, tmp_path: Path) -> Site:
    return Site(selector_redis, tmp_path / "none", "account")


async def test_set_that_is_right_where_the_generic_chain_is_wrong_becomes_active(
    site: Site,
) -> None:
    """Metadata name who files every article; the set reads who wrote it. Not one page agrees."""
    assert (await site.probation()).state == "probation"
    assert await site.generator.run_due() is None, "a job before there is a doubt"
    assert await site.shadow(range(100, 100 + SHADOW_PAGES)) < SHADOW_PAGES / 2
    result = await site.generator.run_due()
    assert result is not None and result.state == "active", result
    active = site.store.active(DOMAIN)
    assert active is not None and site.store.probation(DOMAIN) is None
    event = (await site.store.history(DOMAIN))[0]
    assert event["what"] == "active" and "of 30 pages agreed" in event["reason"], event
    assert await site.store.samples(DOMAIN) == [] and await site.generator.run_due() is None
    made = page(300, "account")
    assert extract(Document(made.body, made.url), CONTEXT, active).authors.value == [made.author]


@pytest.mark.long
async def test_wrong_set_is_not_believed_and_a_person_is_asked(
    site: Site, selector_redis: Any
) -> None:
    """The photographer's line in the place of the author's: pages together say so too."""
    result = await site.probation()
    doc = await site.store.document(DOMAIN)
    doc["variants"][0]["fields"]["title"] = [{"css": "div.more a"}]
    version = await site.store.add_version(DOMAIN, doc, who="generator")
    assert version != result.version
    await site.store.put_on_probation(DOMAIN, version, who="generator", reason="test")
    await site.shadow(range(100, 100 + SHADOW_PAGES))
    first = await site.generator.run_due()
    assert first is not None and first.state == "probation" and "title" in first.reason, first
    assert site.store.active(DOMAIN) is None and site.store.probation(DOMAIN) is not None, (
        "30 pages more, then a person"
    )
    assert await site.generator.run_due() is None
    await site.shadow(range(200, 200 + SHADOW_PAGES))
    last = await site.generator.run_due()
    assert last is not None and last.state == "approval", last
    described = await site.store.describe(DOMAIN)
    assert (
        described.state == "await_admin"
        and "of 60 pages agreed" in described.reason
        and "title" in described.reason
    )
    assert site.store.active(DOMAIN) is None and site.store.probation(DOMAIN) is None
    assert await selector_redis.zcard(keys.JOBS) == 0


async def test_pages_that_are_not_stored_prove_nothing(site: Site) -> None:
    await site.probation()
    await site.shadow(range(100, 100 + 2 * SHADOW_PAGES), stored=False)
    assert await site.generator.run_due() is None
    assert (await site.store.describe(DOMAIN)).state == "await_admin"


async def test_set_that_agrees_needs_no_second_opinion(selector_redis: Any, tmp_path: Path) -> None:
    site = Site(selector_redis, tmp_path / "none", "rows")
    await site.probation()
    doc = await site.store.document(DOMAIN)
    del doc["variants"][0]["fields"]["authors"]  # left to the pages, which name nobody
    version = await site.store.add_version(DOMAIN, doc, who="generator")
    await site.store.put_on_probation(DOMAIN, version, who="generator", reason="test")
    assert await site.shadow(range(100, 100 + SHADOW_PAGES)) == SHADOW_PAGES
    assert site.store.active(DOMAIN) is not None
    assert await site.generator.run_due() is None
    assert await site.store.samples(DOMAIN) == [], "shadow pages are left behind"
