"""A site of several templates, and pages that are not all alike: a set comes about all the same.
Real Redis, made pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, article_values, extract
from newscrawler.extraction.selectors import SelectorSet, apply
from newscrawler.items import Article
from newscrawler.selectorsets import tie_break, validation
from newscrawler.selectorsets.generate import Generator
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.samples import Sample, make_sample
from newscrawler.selectorsets.store import SAMPLE_PAGES, SHADOW_PAGES, SelectorStore
from newscrawler.selectorsets.validation import agrees_with
from tests.fixtures_selectors import MadePage, made_pages

DOMAIN = "a.example"
CONTEXT = PageContext(language="vi", zone="Asia/Ho_Chi_Minh", url_is_article=True)


class Site:
    """Pages in the order of a crawl; ``every``: each so many-th is of the second template."""

    def __init__(self, client: Any, folder: Path, every: int) -> None:
        first, other = made_pages("vnexpress.net", 90), made_pages("tuoitre.vn", 90)
        self.pages = [(other if n % every == every - 1 else first)[n] for n in range(90)]
        self.store = SelectorStore(client, folder)
        self.generator = Generator(
            self.store, Jobs(client, ModelBudget()), self.load, lambda url: CONTEXT, mode="rules"
        )

    async def load(self, ref: str) -> MadePage:
        return self.pages[int(ref)]

    async def crawl(self, numbers: range) -> None:
        """As the crawl does it: read without a set, noted as a sample or compared in
        shadow; jobs are run."""
        for number in numbers:
            made = self.pages[number]
            on_probation = self.store.probation(DOMAIN)
            if on_probation is None:
                await self.store.report_missing(DOMAIN, str(number), made.url)
            else:
                article = Article(
                    id="x", url=made.url, site=DOMAIN, discovered=made.fetched, fetched=made.fetched,
                    **article_values(read(made)),
                )  # fmt: skip
                good = agrees_with(
                    article, apply(Document(made.body, made.url), on_probation, CONTEXT)
                )
                await self.store.note_shadow(
                    DOMAIN, on_probation.version, good, (made.url, str(number))
                )
            await self.generator.run_due()


def read(made: MadePage, selectors: SelectorSet | None = None) -> Extraction:
    return extract(Document(made.body, made.url), replace(CONTEXT, fetched=made.fetched), selectors)


@pytest.mark.long
async def test_second_template_does_not_keep_a_set_in_shadow(
    selector_redis: Any, tmp_path: Path
) -> None:
    """Of every four pages one is of another template: three alone are no reason to
    wait for a person."""
    site = Site(selector_redis, tmp_path / "none", every=4)
    await site.crawl(range(SAMPLE_PAGES))
    assert site.store.probation(DOMAIN) is not None
    await site.crawl(range(SAMPLE_PAGES, SAMPLE_PAGES + SHADOW_PAGES))
    active = site.store.active(DOMAIN)
    assert active is not None, (await site.store.describe(DOMAIN)).reason
    assert len(active.variants) == 2, "seven pages of the other template are enough to learn it"
    for made in site.pages[60:72]:
        found = read(made, active)
        assert (
            found.content.origin.startswith("selector:")
            and found.title.value == made.story.first.title
        )
    happened = [e["what"] for e in await site.store.history(DOMAIN)]
    assert happened == ["active", "added", "probation", "added"]


def samples_of(pages: Sequence[MadePage]) -> list[Sample]:
    found = [make_sample(p.url, p.body, replace(CONTEXT, fetched=p.fetched)) for p in pages]
    return [s for s in found if s is not None]


def a_set(**fields: Any) -> SelectorSet:
    content = {
        "root": ["p.description, article.fck_detail"],
        "exclude": ["p.Image", "div[data-component-type]"],
    }
    given = {"title": [{"css": "h1.title-detail"}], "content": content, **fields}
    return SelectorSet.from_dict(
        {"domain": DOMAIN, "version": 1, "variants": [{"template": "article", "fields": given}]}
    )


@pytest.mark.long
def test_pages_of_other_templates_prove_nothing_against_a_set() -> None:
    pages = samples_of([*made_pages("vnexpress.net", 16), *made_pages("tuoitre.vn", 8)])
    assert "found on" in tie_break.fault_of(a_set(), pages)
    told = tie_break.opinion(a_set(), pages)
    assert (told.fault, told.read, told.unread) == ("", 16, 8)


def test_what_is_taken_from_other_templates_proves_it() -> None:
    """Its headline is some other link there: that would be stored."""
    pages = samples_of([*made_pages("vnexpress.net", 16), *made_pages("tuoitre.vn", 8)])
    wrong = a_set(title=[{"css": "h1.title-detail"}, {"css": "a[href]"}])
    assert "takes what is not theirs" in tie_break.opinion(wrong, pages).fault


@pytest.mark.long
def test_wrong_set_is_not_saved_by_pages_that_it_does_not_read() -> None:
    pages = samples_of([*made_pages("vnexpress.net", 16), *made_pages("tuoitre.vn", 8)])
    wrong = a_set(content={"root": ["p.description"]})
    assert "content" in tie_break.opinion(wrong, pages).fault


def test_short_article_among_the_held_out_pages_is_no_fault() -> None:
    """One of four: a brief whose label says no more than the set finds."""
    pages = made_pages("vnexpress.net", 12)
    brief = pages[2]
    paragraph = re.compile(r'(<p class="(?:Normal|description)"[^>]*>)([^<]{0,70}).*?</p>', re.S)
    left = iter([True, True])  # its lead and a paragraph, cut short
    text = paragraph.sub(
        lambda m: f"{m[1]}{m[2]}.</p>" if next(left, False) else "", brief.body.decode()
    )
    samples = samples_of([*pages[:2], replace(brief, body=text.encode()), *pages[3:]])
    short = [s for s in samples if s.labels.content and len(s.labels.content) < 200]
    assert len(samples) == 12 and len(short) == 1, [len(s.labels.content or "") for s in samples]
    report = validation.judge(
        a_set(), [s for s in samples if s not in short][:8], [*short, *samples[9:]]
    )
    assert report.fields["content"].passed, report.fields["content"]


def test_dates_of_three_days_are_no_constant() -> None:
    """A crawl's first pages are of the last days."""
    samples = samples_of(made_pages("vnexpress.net", 60)[::4])
    days = {s.labels.published.date() for s in samples if s.labels.published}
    assert len(samples) == 15 and 3 <= len(days) <= 4
    told = validation.judge(
        a_set(published=[{"css": "", "kind": "ld"}, {"css": "span.date"}]),
        samples[:10],
        samples[10:],
    )
    assert told.fields["published"].passed, told.fields["published"]
    constant = a_set(published=[{"css": ".no-such-node"}])
    assert not validation.judge(constant, samples[:10], samples[10:]).fields["published"].passed


async def test_why_no_set_came_about_is_told(selector_redis: Any, tmp_path: Path) -> None:
    """A generation that failed left nothing that a person could read."""
    site = Site(selector_redis, tmp_path / "none", every=100)
    bare = re.compile(rb'<h1.*?</h1>|<meta property="og:title"[^>]*>', re.S)
    for number, made in enumerate(site.pages[:12]):
        site.pages[number] = replace(made, body=bare.sub(b"", made.body))
    refs = [(p.url, str(n)) for n, p in enumerate(site.pages[:12])]
    result = await site.generator.run(DOMAIN, forced=True, refs=refs)
    assert result.state in ("failed", "waiting") and result.reason, result
    known = await site.store.describe(DOMAIN)
    assert (known.state, known.reason) == ("sampling", result.reason)
    if result.state == "failed":
        (event,) = await site.store.history(DOMAIN)
        assert (event["what"], event["reason"]) == ("failed", result.reason)
