"""SelectorGenerationMiddleware: which articles it sees, and what it hands on."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.http import HtmlResponse

from newscrawler import metrics
from newscrawler.crawl.visits import Visits
from newscrawler.items import Article, Outcome, Visit
from newscrawler.middlewares import SelectorGenerationMiddleware
from newscrawler.selectorsets.store import SelectorStore

SITE = "a.example"
URL = "https://a.example/tin-1.html"
BODY = b"<html><body><h1>Tin</h1></body></html>"


def shipped(folder: Path, state: str) -> None:
    """The set of SITE that a selector store finds."""
    fields = {"title": [{"css": "h1"}], "content": {"root": ["article"]}}
    doc = {
        "domain": SITE,
        "version": 1,
        "state": state,
        "variants": [{"template": "article", "fields": fields}],
        "provenance": {"made_by": "person", "source": "test"},
    }
    (folder / f"{SITE}.json").write_text(json.dumps(doc))


def seen(
    folder: Path, *, learns: bool = True, origin: str = "generic"
) -> tuple[Visit, Counter[str]]:
    """The visit of an article after the middleware saw it, and what was counted."""
    counted: Counter[str] = Counter()
    visits = Visits()
    article = Article(
        id="0" * 32, url=URL, site=SITE, title="Tin", content="Bài.", origins={"content": origin}
    )
    visit = Visit(URL, Outcome.DONE, site=SITE, article=article)
    visits.begin(visit)
    services: Any = SimpleNamespace(
        visits=visits,
        selectors=SelectorStore(None, folder),
        count=lambda name, number: counted.update({name: number}),
    )
    middleware = SelectorGenerationMiddleware(services, learns=learns)
    given = [article, {"not": "an article"}]
    response = HtmlResponse(URL, body=BODY)
    assert list(middleware.process_spider_output(response, given)) == given
    return visit, counted


def test_an_article_of_a_site_without_a_set_is_counted_and_handed_on(tmp_path: Path) -> None:
    visit, counted = seen(tmp_path)
    assert (
        counted == {metrics.SELECTOR_MISSING: 1} and metrics.SELECTOR_MISSING == "selector/missing"
    )
    assert visit.keep_raw and visit.sample == b"", "it is read from the raw store"


def test_an_active_set_that_fits_leaves_its_pages_alone(tmp_path: Path) -> None:
    shipped(tmp_path, "active")
    visit, counted = seen(tmp_path, origin="selector:article")
    assert not counted and not visit.keep_raw and visit.sample is None


def test_an_active_set_that_does_not_fit_has_its_page_kept(tmp_path: Path) -> None:
    shipped(tmp_path, "active")
    visit, counted = seen(tmp_path)
    assert not counted and visit.keep_raw and visit.sample is None


def test_a_set_on_probation_is_tried_on_the_page(tmp_path: Path) -> None:
    shipped(tmp_path, "probation")
    visit, counted = seen(tmp_path)
    assert visit.sample == BODY and not counted


@pytest.mark.parametrize("state", ["", "active"])
def test_nothing_is_learnt_where_that_is_off(tmp_path: Path, state: str) -> None:
    if state:
        shipped(tmp_path, state)
    visit, counted = seen(tmp_path, learns=False)
    assert not counted and not visit.keep_raw and visit.sample is None
