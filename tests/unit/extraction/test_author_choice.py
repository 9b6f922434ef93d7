"""Authors by candidates and weights: what is a candidate, what is chosen, how sure it is."""

from __future__ import annotations

import json

import pytest

from newscrawler.extraction import bylines
from newscrawler.extraction.author_choice import candidates, find, model
from newscrawler.extraction.author_choice.candidates import Candidate, Place
from newscrawler.extraction.author_choice.features import RULES, Rules, describe
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.explain import explain

HEADLINE = "Council approves the new bridge across the river"
TEXT = "".join(
    f"<p>Paragraph {i} tells what the council has said about the bridge, who will pay for it and when"
    " it is to open.</p>"
    for i in range(6)
)


def page(byline: str = "", head: str = "", behind: str = "", lang: str = "en") -> Document:
    body = f"<h1>{HEADLINE}</h1>{byline}{TEXT}{behind}"
    markup = f"<html lang={lang}><head><title>{HEADLINE}</title>{head}</head><body>{body}</body>"
    return Document(markup.encode(), "https://www.example.org/a-1.html")


def kinds(doc: Document) -> dict[str, set[str]]:
    found = candidates.find(doc, PageContext()).found.values()
    return {one.name: {place.kind for place in one.places} for one in found}


def test_every_place_gives_its_candidate() -> None:
    data = {
        "@type": "NewsArticle",
        "headline": HEADLINE,
        "author": {"@type": "Person", "name": "A One"},
    }
    head = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    head += '<meta name="author" content="B Two">'
    byline = (
        '<span itemprop="author">C Three</span><p class="byline">D Four</p><p>By E Five</p>'
        "<p>Author:</p><p>F Six</p><p>G Seven</p>"
    )
    found = kinds(page(byline, head, "<p><b>H Eight</b></p>"))
    assert found["A One"] == {"ld:person"}
    assert found["B Two"] == {"meta:author"}
    assert "mark:itemprop" in found["C Three"]
    assert "mark:class" in found["D Four"]
    assert "line:lead" in found["E Five"]
    assert "line:label" in found["F Six"]
    assert "near:headline" in found["G Seven"]
    assert "near:end" in found["H Eight"]


def test_nothing_is_refused_for_its_shape() -> None:
    found = kinds(page('<p class="author">staff writer</p><p class="author">AB12</p>'))
    assert {"staff writer", "AB12"} <= found.keys()


def test_a_place_in_a_foreign_box_says_so() -> None:
    doc = page(behind='<div class="comments"><span class="author">Jane Roe</span></div>')
    places = candidates.find(doc, PageContext()).found["jane roe"].places
    assert places and all(place.foreign for place in places)


def test_a_page_of_a_thousand_names_has_few_candidates() -> None:
    rows = "".join(f'<p class="author">Name {chr(65 + i % 26)}{i} Roe</p>' for i in range(1000))
    assert len(candidates.find(page(rows), PageContext()).found) <= candidates.MOST_CANDIDATES


@pytest.mark.parametrize("body", [b"", b"<html>", b"<p>" * 3000, b'<p class="author">' * 300])
def test_pages_without_anything_give_nothing(body: bytes) -> None:
    doc = Document(body, "https://example.org/")
    assert candidates.find(doc, PageContext()).found == {}
    assert find.find(doc, PageContext()).value == []


def test_one_model_does_not_see_the_rules() -> None:
    weights = model.shipped()
    assert not any(name.startswith(RULES) for name in weights.plain)
    assert any(name.startswith(RULES) for name in weights.seeing)


def test_the_answer_of_the_rules_is_all_that_rules_features_tell() -> None:
    found = candidates.find(page("<p>By Jane Roe</p>"), PageContext())
    (_, without), *_ = describe(found, Rules())
    (_, with_it), *_ = describe(found, Rules(frozenset({"jane roe"}), 0.7))

    def others(names: list[str]) -> list[str]:
        return [name for name in names if not name.startswith(RULES)]

    assert others(without) == others(with_it)
    assert f"{RULES}named" in with_it and f"{RULES}silent" in without


def rated(*pairs: tuple[str, float], ruled: str = "") -> list[tuple[Candidate, float]]:
    return [
        (Candidate(n, n.lower(), n == ruled or ruled == "all", [Place("near:date", "g")]), p)
        for n, p in pairs
    ]


BARS = model.Bars(alone=0.5, ruled=0.2, more=0.6, beside=0.3)


def names(chosen: model.Chosen) -> list[str]:
    return [one.name for one in chosen.candidates]


def test_bars() -> None:
    """A name below the bar is nobody; the rules' word lowers it; a second name of the same markup
    needs less than one of another."""
    assert names(model.select([], BARS)) == []
    assert names(model.select(rated(("A B", 0.49)), BARS)) == []
    assert names(model.select(rated(("A B", 0.49), ruled="A B"), BARS)) == ["A B"]
    assert names(model.select(rated(("A B", 0.9), ("C D", 0.3)), BARS)) == ["A B", "C D"]
    apart = rated(("A B", 0.9), ("C D", 0.55))
    apart[1][0].places[0].group = "other"
    assert names(model.select(apart, BARS)) == ["A B"]


def test_a_list_of_the_rules_is_decided_as_one() -> None:
    some = rated(("A B", 0.25), ("C D", 0.05), ruled="all")
    assert names(model.select(some, BARS)) == ["A B", "C D"]


def test_of_two_spellings_one_is_chosen() -> None:
    assert names(model.select(rated(("Jane Roe", 0.9), ("Roe", 0.8)), BARS)) == ["Jane Roe"]
    longer = rated(("Jane Roe", 0.9), ("More stories by Jane Roe", 0.35))
    assert names(model.select(longer, BARS)) == ["Jane Roe"]
    assert names(model.select(rated(("Jane Roe", 0.7), ("Roe Jane", 0.8)), BARS)) == ["Roe Jane"]


def test_confidence_rises_with_probability() -> None:
    weights = model.shipped()
    sure = [weights.sure(x / 50) for x in range(51)]
    assert sure == sorted(sure) and sure[0] >= 0 and sure[-1] < 1
    rules = [weights.sure_of_rules(x / 50) for x in range(51)]
    assert rules == sorted(rules) and rules[-1] < 1


def test_names_that_two_places_state_are_not_weighed() -> None:
    doc = page('<p class="author">Jane Roe</p>', '<meta name="author" content="Jane Roe">')
    answer = bylines.by_rules(doc, PageContext())
    assert find.is_settled(doc, answer)
    assert find.find(doc, PageContext()).value == ["Jane Roe"]


def test_what_a_feed_says_is_asked_last_and_kept() -> None:
    doc = page()
    hint = PageContext(hint={"authors": ["Jane Roe"]})
    assert find.find(doc, hint) == bylines.by_rules(doc, hint)
    assert find.find(doc, hint).value == ["Jane Roe"]


def test_explain_shows_the_candidates_with_their_probabilities() -> None:
    rows = [
        r for r in explain(page("<p>By Jane Roe</p>"), PageContext()) if r.origin == "candidate"
    ]
    assert rows[0].read == ["Jane Roe"]
    assert rows[0].note.startswith("probability 0.")


@pytest.mark.parametrize(("kind", "names"), [
    ("Organization", {"Giáo dục & Thời đại"}),
    ("Person", {"Giáo dục & Thời đại", "Giáo dục", "Thời đại"}),
])  # fmt: skip
def test_a_paper_with_two_words_in_its_name_is_no_two_people(kind: str, names: set[str]) -> None:
    """Found by `make demo`: nobody signed, and the paper stood as two authors. Who is stated as a
    person may be two owners of a blog."""
    paper = "Giáo dục & Thời đại"
    author = {"@type": kind, "name": paper}
    data = {"@type": "NewsArticle", "headline": HEADLINE, "author": author}
    head = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    escaped = paper.replace("&", "&amp;")
    head += f'<meta property="og:site_name" content="{escaped}"><meta name="author" content="{escaped}">'
    assert set(kinds(page(head=head, lang="vi"))) == names
