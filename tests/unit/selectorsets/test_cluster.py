"""Sites with several templates: pages are told apart by their shape, and each
template gets a variant."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.selectors import SelectorSet, apply
from newscrawler.selectorsets import templates
from newscrawler.selectorsets.compare import compare
from newscrawler.selectorsets.generate import keep_what_fits
from newscrawler.selectorsets.propose import Proposer, Result
from newscrawler.selectorsets.samples import Sample, distinct, f1, make_sample, norm, words
from tests.fixtures_selectors import MadePage, made_pages

CONTEXT = PageContext(language="vi", zone="Asia/Ho_Chi_Minh", url_is_article=True)


def samples_of(pages: list[MadePage]) -> list[Sample]:
    made = [make_sample(p.url, p.body, replace(CONTEXT, fetched=p.fetched)) for p in pages]
    return distinct([s for s in made if s])


async def proposed(samples: list[Sample]) -> Result:
    proposer = Proposer(None, None, "rules", 1)  # type: ignore[arg-type]  # rules ask nobody and spend nothing
    return await proposer.propose("a.vn", samples)


@pytest.fixture(scope="module")
def news() -> list[MadePage]:
    return made_pages("vnexpress.net", 20)


@pytest.fixture(scope="module")
def magazine() -> list[MadePage]:
    return made_pages("vneconomy.vn", 20)


def test_pages_fall_into_their_templates(news: list[MadePage], magazine: list[MadePage]) -> None:
    mixed = samples_of([p for pair in zip(news[:8], magazine[:8], strict=True) for p in pair])
    parts = templates.groups(mixed)
    assert sorted(len(p) for p in parts) == [8, 8]
    urls = {p.url for p in news[:8]}
    assert {s.url for s in parts[0]} in (urls, {s.url for s in mixed} - urls)
    mark = templates.mark_of(parts[0], parts[1], [])
    assert mark
    assert all(s.doc.tree.css_first(mark) for s in parts[0])
    assert not any(s.doc.tree.css_first(mark) for s in parts[1])
    assert templates.mark_of(parts[0], parts[1], ["h1", mark]) == mark, (
        "what both have marks none of them"
    )


@pytest.mark.parametrize("key", ["vnexpress.net", "tuoitre.vn", "cafef.vn", "dantri.com.vn"])
def test_one_template_stays_whole(key: str) -> None:
    assert len(templates.groups(samples_of(made_pages(key, 12)))) == 1


async def test_two_templates_get_two_variants(
    news: list[MadePage], magazine: list[MadePage]
) -> None:
    result = await proposed(samples_of([*news[:8], *magazine[:8]]))
    assert result.doc is not None, result.reason
    assert [v["template"] for v in result.doc["variants"]] == ["article", "article-2"]
    selectors = SelectorSet.from_dict(result.doc)
    right: Counter[str] = Counter()
    unseen = [*news[8:], *magazine[8:]]
    for page, sample in zip(unseen, samples_of(unseen), strict=True):
        found = apply(sample.doc, selectors, sample.context)
        text = found["content"].value if "content" in found else ""
        right["title"] += "title" in found and norm(found["title"].value) == norm(
            page.story.first.title
        )
        right["content"] += (
            f1(Counter(words(text)), Counter(words(page.story.first.content))) >= 0.97
        )
    assert right["title"] == len(unseen)
    assert right["content"] >= 0.99 * len(unseen), right


async def test_too_few_pages_of_each_template_ask_for_more(
    news: list[MadePage], magazine: list[MadePage]
) -> None:
    samples = samples_of([*news[:5], *magazine[:5]])
    proposer = Proposer(None, None, "rules", 1)  # type: ignore[arg-type]
    result = await proposer._by_template("a.vn", templates.groups(samples), samples)
    assert result.doc is None
    assert result.more >= 20 and "2 templates" in result.reason


@pytest.mark.long
async def test_new_set_beats_the_old_one_and_an_equal_one_does_not(news: list[MadePage]) -> None:
    old = await proposed(samples_of(news[:12]))
    changed = samples_of(made_pages("vnexpress.net", 12, markup_at=0))
    new = await proposed(changed)
    assert old.doc and new.doc
    before, after = SelectorSet.from_dict(old.doc), SelectorSet.from_dict(new.doc)
    verdict = compare(after, before, changed)
    assert verdict.better, verdict.reason
    assert (verdict.old.cover, verdict.new.cover) == (0.0, 1.0)
    assert not compare(after, after, changed).better
    backwards = compare(before, after, changed)
    assert not backwards.better and backwards.reason.startswith("worse")


async def test_set_that_is_worse_than_the_generic_chain_is_not_better(news: list[MadePage]) -> None:
    samples = samples_of(news[:12])
    wrong = {
        "title": [{"css": "h1.title-detail"}],
        "content": {"root": ["article.fck_detail p.Normal:first-of-type"]},
    }
    doc = {"domain": "a.vn", "variants": [{"fields": wrong}], "provenance": {"made_by": "rule"}}
    verdict = compare(SelectorSet.from_dict(doc), None, samples)
    assert not verdict.better and "generic chain in" in verdict.reason


@pytest.mark.long
async def test_old_template_that_pages_still_have_stays(news: list[MadePage]) -> None:
    """The new layout comes to one part of the site first."""
    old = await proposed(samples_of(news[:12]))
    changed = samples_of(made_pages("vnexpress.net", 10, seed=8, markup_at=0))
    new = await proposed(changed)
    assert old.doc and new.doc
    keep_what_fits(new.doc, SelectorSet.from_dict(old.doc), [*changed, *samples_of(news[12:16])])
    assert len(new.doc["variants"]) == 2
    both = SelectorSet.from_dict(new.doc)
    for sample in [*changed, *samples_of(news[12:16])]:
        assert {"title", "content"} <= apply(sample.doc, both, sample.context).keys()
