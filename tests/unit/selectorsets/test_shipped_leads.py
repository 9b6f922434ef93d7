"""The lead of a shipped set is the article's: no teaser of a list, no box around it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from newscrawler.extraction.document import Document
from newscrawler.extraction.selectors import SelectorSet, apply
from tests.unit.extraction.story import HEAD, paragraphs

SETS = Path(__file__).parents[3] / "selectors"
LEAD = "The lead says in one long sentence what the story of the bridge is about."
TEASER = "Another story of the same day, of which the list says a sentence or two here."


def read(domain: str, lead: str, body: str, title: str = "<h1 class=title>", more: str = ""):
    selectors = SelectorSet.from_dict(json.loads((SETS / f"{domain}.json").read_text()))
    page = f"<html><body>{title}{HEAD}</h1>{lead}<div {body}>{paragraphs(6)}</div>{more}</body>"
    return apply(Document(page.encode(), f"https://{domain}/a-1.html"), selectors)


@pytest.mark.parametrize(
    ("domain", "lead", "body", "teaser"),
    [
        ("cafef.vn", "p class=sapo itemprop=description", "class=detail-content", "p class=sapo"),
        ("cafef.vn", "h2 class=sapo itemprop=description", "class=detail-content", "h2 class=sapo"),
        ("vtv.vn", "h2 class=sapo", "class=detail-content", "p class=sapo"),
        ("danviet.vn", "div data-role=sapo", "id=explus-editor", "p data-role=sapo"),
        ("vneconomy.vn", "div class=news-sapo", "data-field=body", "p class=news-sapo"),
    ],
)
def test_teasers_of_other_stories_are_no_text(
    domain: str, lead: str, body: str, teaser: str
) -> None:
    more = f"<ul>{f'<li><{teaser}>{TEASER}</{teaser[:2].strip()}></li>' * 3}</ul>"
    found = read(domain, f"<{lead}>{LEAD}</{lead.split()[0]}>", body, more=more)
    assert found["content"].value.startswith(LEAD)
    assert TEASER not in found["content"].value


def test_a_subheading_that_is_called_description_is_no_lead_of_vnexpress() -> None:
    body = f"<article class=fck_detail>{paragraphs(6)}</article>"
    page = (
        f"<h1 class=title-detail>{HEAD}</h1><p class=description>{LEAD}</p>{body}"
        f"<h2 class=description>{TEASER}</h2>"
    )
    selectors = SelectorSet.from_dict(json.loads((SETS / "vnexpress.net.json").read_text()))
    found = apply(Document(page.encode(), "https://vnexpress.net/a-1.html"), selectors)
    assert found["content"].value.startswith(LEAD) and TEASER not in found["content"].value


@pytest.mark.parametrize("inner", ["<div class=col><h2><div>{}</div></h2></div>",
                                   "<div class=col-lg-8><div>{}</div></div>"])  # fmt: skip
def test_the_lead_of_vov_is_not_its_row(inner: str) -> None:
    row = (
        f'<div class="row article-summary">{inner.format(LEAD)}<div class=col-lg-4>{TEASER}</div>'
        "</div><div class=article-date><div class=col-md-4>Thứ Năm, 10:00, 30/07/2026</div>"
        "<div class=col-md-8>Cập nhật 31/07/2026</div></div>"
    )
    found = read("vov.vn", row, "class=article-content", "<h1 class=article-title>")
    assert found["summary"].value == LEAD
    assert found["content"].value.startswith(LEAD) and TEASER not in found["content"].value
    assert found["published"].value.day == 30
    assert found["published"].origin.startswith("selector:.article-date .col-md-4")
