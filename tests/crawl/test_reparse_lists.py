"""Lists whose pages are kept (RAW_LIST_SAMPLE) do not become articles when pages are read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from newscrawler.rawstore import READER, RawStore
from tests.crawl.small import QUIET, complaints, crawler, stored
from tests.fixtures_newsweb import StartNewsweb


@pytest.mark.long
def test_lists_that_were_kept_stay_lists(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=2, articles=4, **QUIET)
    scrapy = crawler(tmp_path, web, RAW_LIST_SAMPLE=1.0)
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0, done.stderr[-3000:]
    kept = {a.url for a in stored(scrapy.data) if a.raw_ref}
    raw = RawStore.open(str(scrapy.data / "warc"), READER)
    pages = {page.url for _, page in raw.scan()}
    raw.close()
    assert len(pages - kept) > 8, "the lists were to be kept"

    for part in scrapy.data.glob("articles.*"):
        if part.is_file():
            part.unlink()
    again = scrapy.run("reparse", "--json")
    assert again.returncode == 0, again.stderr[-3000:]
    articles = stored(scrapy.data)
    assert {a.url for a in articles} == kept
    assert not [said for said in complaints(web, articles) if not said.startswith("missed")]
