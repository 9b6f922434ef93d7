"""Layouts that rules once read wrongly and without a word: each is made here, learnt from twelve
pages, judged on others."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets import validation
from newscrawler.selectorsets.content import content_label, said_again
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.propose import Proposer, Result
from newscrawler.selectorsets.samples import Sample, make_sample
from tests.newsweb.language import language

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONTEXT = PageContext(language="vi", zone="Asia/Ho_Chi_Minh", fetched=NOW, url_is_article=True)
NOTE = "Bài viết được dịch tự động từ bản tiếng Anh và đã được biên tập viên kiểm tra"
REFRAIN = "Trước đó, hội đồng thành phố đã hoãn quyết định về cây cầu mới đến mùa thu."
ACCOUNT = "Nguyễn Văn Toản"
HEADING = "Hai bờ một con sông"


@dataclass
class Made:
    url: str
    body: bytes
    title: str
    paragraphs: list[str]
    lead: str


def page(number: int, **parts: bool) -> Made:
    """``parts``: seo (a short h1 for machines before the headline), note, dated (the note's end
    changes), refrain (a sentence that two articles of three say), lead, account."""
    rng = random.Random(number)
    words = language(5)
    title = words.title(rng)
    paragraphs = [
        " ".join(words.sentence(rng) for _ in range(3)) for _ in range(rng.randint(8, 14))
    ]
    lead = " ".join(words.sentence(rng) for _ in range(2))
    day = NOW - timedelta(days=number + 1)
    stated = {"@type": "NewsArticle", "headline": title, "datePublished": day.isoformat()}
    stated["author"] = {
        "@type": "Person",
        "name": ACCOUNT if parts.get("account") else words.person(rng),
    }
    heading = f'<h1 class="headline">{title}</h1>'
    if parts.get("seo"):
        short = " ".join(title.split()[:5])
        stated["headline"] = short
        crumbs = (
            f'<nav class="breadcrumbs"><a href="/a">Mục</a> <h1 class="seotitle">{short}</h1></nav>'
        )
        heading = f'{crumbs}<h2 class="head"><span class="kicker">Mục</span> <span class="whole">{title}</span></h2>'
    note = (
        f"<p>{NOTE}{f', ngày {day:%d/%m/%Y}' if parts.get('dated') else ''}.</p>"
        if parts.get("note")
        else ""
    )
    if parts.get("refrain") and number % 3:
        paragraphs.insert(rng.randrange(1, len(paragraphs)), REFRAIN)
    intro = f'<header><h2 class="epigraph">{lead}</h2></header>' if parts.get("lead") else ""
    text = "".join(f"<p>{p}</p>" for p in paragraphs)
    html = (
        f'<!doctype html><html lang="vi"><head><title>{title}</title><meta property="og:title" content="{title}">'
        f'<script type="application/ld+json">{json.dumps(stated, ensure_ascii=False)}</script></head><body>'
        f'<nav><a href="/a">Mục</a></nav><main>{heading}{intro}<div class="story-body">{text}{note}</div></main>'
        f'<div class="more">{"".join(f"<a href=/{n}>{words.title(rng)}</a>" for n in range(5))}</div></body></html>'
    )
    return Made(f"https://a.vn/bai-{number}.html", html.encode(), title, paragraphs, lead)


async def learnt(**parts: bool) -> Result:
    pages = [page(n, **parts) for n in range(12)]
    samples = [s for p in pages if (s := make_sample(p.url, p.body, CONTEXT)) is not None]
    assert len(samples) == 12
    return await Proposer(Jobs(None, ModelBudget()), None, "rules", 0).propose("a.vn", samples)


async def read(fresh: Made, result: Result) -> Any:
    assert result.doc is not None, result.reason
    return extract(Document(fresh.body, fresh.url), CONTEXT, SelectorSet.from_dict(result.doc))


@pytest.mark.parametrize("dated", [False, True])
async def test_paragraph_of_every_page_is_left_out(dated: bool) -> None:
    """It has no name of its own that could be excluded, only its words; their end may change."""
    result = await learnt(note=True, dated=dated)
    for number in range(50, 56):
        fresh = page(number, note=True, dated=dated)
        found = await read(fresh, result)
        assert found.content.origin.startswith("selector:")
        assert NOTE not in found.content.value
        assert [p for p in fresh.paragraphs if p not in found.content.value] == []


async def test_sentence_that_many_articles_say_is_their_text() -> None:
    """A running story: two articles of three say it, each somewhere else. It was left out as what
    stands on most pages."""
    result = await learnt(refrain=True)
    said = 0
    for number in range(50, 56):
        fresh = page(number, refrain=True)
        found = await read(fresh, result)
        assert found.content.origin.startswith("selector:")
        assert (REFRAIN in found.content.value) == (REFRAIN in fresh.paragraphs)
        said += REFRAIN in fresh.paragraphs
    assert said >= 3


@pytest.mark.parametrize(
    ("texts", "own"),
    [
        (["a.b.X.c", "d.X.e.f.g", "h.i.j.X.k.y.z", "l.m.n.o.p.X.q"], {"X"}),  # wanders
        (["a.X.c", "d.X.f.g", "h.X.k.l.m", "n.X.p.q.r.s"], set()),  # always the second one
        (["a.b.X", "d.e.f.X", "h.X", "l.m.n.o.X"], set()),  # always the last one
        (["a.b.X.Y.c", "d.X.Y.e.f", "g.h.i.Y.X.j", "k.l.m.n.X.Y.o"], set()),  # a list
        (["a.b.X.c", "d.X.e.f.g"], set()),  # too few
    ],
)
def test_place_tells_a_sentence_said_again_from_a_note(texts: list[str], own: set[str]) -> None:
    assert said_again([text.split(".") for text in texts], {"X", "Y"}) == own


async def test_whole_headline_is_taken_and_not_the_short_form_for_machines() -> None:
    result = await learnt(seo=True)
    for number in range(50, 56):
        fresh = page(number, seo=True)
        assert (await read(fresh, result)).title.value == fresh.title


async def test_set_with_half_headlines_does_not_pass_the_gate() -> None:
    """As a model may propose it: the short form is part of the headline on every page."""
    samples = [make_sample(p.url, p.body, CONTEXT) for p in (page(n, seo=True) for n in range(12))]
    fields = {
        "title": [{"css": "h1.seotitle"}],
        "content": {"root": ["div.story-body"], "exclude": []},
    }
    doc = {"domain": "a.vn", "version": 1, "variants": [{"template": "a", "fields": fields}]}
    report = validation.judge(
        SelectorSet.from_dict(doc), [s for s in samples if s][:8], [s for s in samples if s][8:]
    )
    assert not report.passed and set(report.failed) >= {"title"}
    assert "more or less than the headline" in report.failed["title"]


async def test_lead_in_a_box_of_its_own_is_text() -> None:
    result = await learnt(lead=True)
    for number in range(50, 56):
        fresh = page(number, lead=True)
        found = await read(fresh, result)
        assert found.content.origin.startswith("selector:")
        assert found.content.value.startswith(fresh.lead[:60])


async def test_account_that_files_every_article_is_no_field_of_the_set() -> None:
    result = await learnt(account=True)
    assert result.doc is not None and "authors" not in result.doc["variants"][0]["fields"]
    assert (
        result.report is not None
        and result.report.failed["authors"] == "the same name on every page"
    )
    other = await learnt()
    assert other.doc is not None and "authors" in other.doc["variants"][0]["fields"]


def with_short_label(number: int) -> Sample:
    """A page whose label has the first two paragraphs of the text alone, and what must not be
    taken in with them: a paragraph of another class, a short one, one of links."""
    made = page(number)
    body = made.body.decode()
    first = f"<p>{made.paragraphs[0]}</p>"
    body = body.replace(first, f"{first}<h3>{HEADING} {number}</h3>")
    other = "Một câu dài về chuyện khác hẳn, đặt cạnh bài viết nhưng không phải là của bài này."
    extra = (
        f'<p class="promo">{other}</p><p>Xem ngay</p>'
        f'<p><a href="/khac-{number}">{other} {number}</a></p>'
    )
    body = body.replace("</p></div></main>", f"</p>{extra}</div></main>")
    sample = make_sample(made.url, body.encode(), CONTEXT)
    assert sample is not None
    label = "\n\n".join(made.paragraphs[:2])
    return replace(sample, labels=replace(sample.labels, content=label))


def test_paragraphs_beside_labelled_ones_are_the_texts_too() -> None:
    """The generic chain's text is often cut short: what stands beside two of its paragraphs, in the
    same element and of the same class, counts as text, and so does a heading between them; a set
    that reads all of it is not refused."""
    samples = [with_short_label(number) for number in range(12)]
    for number, sample in enumerate(samples):
        made = page(number)
        text = [made.paragraphs[0], f"{HEADING} {number}", *made.paragraphs[1:]]
        assert content_label(sample, set()) == "\n\n".join(text)
    fields = {
        "title": [{"css": "h1.headline"}],
        "content": {"root": ["div.story-body"], "exclude": ["p.promo"]},
    }
    doc = {"domain": "a.vn", "version": 1, "variants": [{"template": "a", "fields": fields}]}
    report = validation.judge(SelectorSet.from_dict(doc), samples[:8], samples[8:])
    assert report.fields["content"].passed, report.fields["content"].reason
