"""Where several pages of one template name their authors, though no single one of them can tell:
learnt, judged on others."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, extract
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.propose import Proposer, Result
from newscrawler.selectorsets.samples import make_sample
from tests.newsweb.language import language

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONTEXT = PageContext(language="en", zone="UTC", fetched=NOW, url_is_article=True)
FIRST = (
    "Anna",
    "Peter",
    "Clara",
    "Oliver",
    "Marta",
    "Ruben",
    "Julia",
    "Simon",
    "Edith",
    "Walter",
    "Greta",
    "Victor",
)
LAST = (
    "Holling",
    "Brisbane",
    "Kessler",
    "Murphy",
    "Altmann",
    "Fischer",
    "Norden",
    "Baxter",
    "Lindner",
    "Carver",
)


@dataclass
class Made:
    url: str
    body: bytes
    author: str
    day: datetime


def page(number: int, kind: str) -> Made:
    """``kind``: how the page names its author, see the tests."""
    rng = random.Random(number)
    words = language(5)
    title = words.title(rng)
    name = f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    if kind == "alone":
        name = "Anna Holling"
    day = (NOW - timedelta(days=3 * number + 1)).replace(hour=0)
    paragraphs = [
        " ".join(words.sentence(rng) for _ in range(3)) for _ in range(rng.randint(8, 14))
    ]
    ld = {"@type": "NewsArticle", "headline": title, "datePublished": day.isoformat()}
    lines = {"below": "", "first": "", "last": "", "side": ""}
    if kind in ("account", "alone"):
        account = "Anna Holling" if kind == "alone" else "Webb Desker"
        ld["author"] = {"@type": "Person", "name": account}
        lines["below"] = (
            f'<p class="meta">by <a rel="author" href="/author/admin">{account}</a></p>'
        )
        lines["first"] = f"<p><strong>{name}</strong></p>" if kind == "account" else ""
    elif kind == "source":
        lines["last"] = f"<p>Morning Paper / {name}</p>"
    elif kind == "rows":
        del ld["datePublished"]
        lines["side"] = (
            f'<ul class="small"><li><strong>Date</strong> {day:%d.%m.%Y}</li><li><strong>Writer</strong> {name}</li>'
            f"<li><strong>Subject</strong> {words.title(rng)}</li></ul>"
        )
    elif kind == "editor":
        author = "" if number % 5 == 0 else f'<div class="author-2">{name}</div>'
        name = name if author else ""
        lines["below"] = (
            f'<div class="info">{author}<span class="clock">{day:%d/%m/%Y}</span></div>'
        )
        lines["last"] = (
            '<div class="info-author">Editor : <a class="author" href="/author/7">Hedy Random</a></div>'
        )
    text = "".join(f"<p>{p}</p>" for p in paragraphs)
    html = (
        f'<!doctype html><html lang="en"><head><title>{title}</title><meta property="og:title" content="{title}">'
        f'<script type="application/ld+json">{json.dumps(ld)}</script></head><body><nav><a href="/a">News</a></nav>'
        f'<main class="category-news"><h1>{title}</h1>{lines["below"]}'
        f'<div class="story-body">{lines["first"]}{text}{lines["last"]}</div></main><div class="beside">{lines["side"]}</div>'
        f'<div class="more">{"".join(f"<a href=/{n}>{words.title(rng)}</a>" for n in range(5))}</div></body></html>'
    )
    return Made(f"https://a.example/news-{number}.html", html.encode(), name, day)


async def learnt(kind: str) -> Result:
    made = [page(n, kind) for n in range(12)]
    samples = [s for p in made if (s := make_sample(p.url, p.body, CONTEXT)) is not None]
    assert len(samples) == 12
    result = await Proposer(Jobs(None, ModelBudget()), None, "rules", 0).propose(
        "a.example", samples
    )
    assert result.doc is not None, result.reason
    return result


def read(fresh: Made, result: Result) -> Extraction:
    assert result.doc is not None
    return extract(Document(fresh.body, fresh.url), CONTEXT, SelectorSet.from_dict(result.doc))


@pytest.mark.parametrize("kind", ["account", "source", "rows", "editor"])
async def test_authors_are_where_the_pages_together_name_them(kind: str) -> None:
    """account: metadata and byline state who files everything, the text begins with who
    wrote it; source: the last line is the paper's name and a person's; rows: a list beside
    the text, "Writer Jane Doe"; editor: on the pages without an author the editor, who
    stands on all of them, looks like one."""
    result = await learnt(kind)
    for number in range(50, 62):
        fresh = page(number, kind)
        found = read(fresh, result)
        assert found.authors.value == ([fresh.author] if fresh.author else []), result.doc
        if fresh.author:
            assert found.authors.origin.startswith("selector:"), "found by the generic chain"


async def test_who_writes_alone_stays_the_author() -> None:
    """One name on every page and nobody else's beside it: no field of the set, but the
    page's own statement holds."""
    result = await learnt("alone")
    fresh = page(50, "alone")
    assert read(fresh, result).authors.value == ["Anna Holling"]


async def test_date_in_a_row_is_read_by_its_label() -> None:
    result = await learnt("rows")
    assert result.doc is not None
    (candidate, *_) = result.doc["variants"][0]["fields"]["published"]
    assert candidate["label"] == "Date"
    for number in range(50, 56):
        fresh = page(number, "rows")
        when = read(fresh, result).published.value
        assert when is not None and when.date() == fresh.day.date()


async def test_a_place_that_is_found_by_its_label_holds_a_line_of_names_or_nothing() -> None:
    """The site drops its signature one day: the last paragraph and the first one are text
    then, and no author."""
    for kind, line in (("source", "Morning Paper / "), ("account", "<strong>")):
        result = await learnt(kind)
        fresh = page(50, kind)
        start = fresh.body.index(line.encode())
        end = fresh.body.index(b"</p>", start)
        text = (
            line.encode()
            + b"reporters of Peter Baxter and Clara Murphy told us that the minister had not been asked at all"
        )
        fresh.body = fresh.body[:start] + text + fresh.body[end:]
        found = read(fresh, result)
        assert not found.authors.origin.startswith("selector:"), found.authors
