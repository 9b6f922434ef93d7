"""A crawl whose raw pages are sealed: read by who has the key, one line for who has not."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.crawl.small import QUIET, complaints, crawler, page_hits, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.unit.rawstore.test_sealing import inflated_text

pytestmark = pytest.mark.slow

OLD, NEW = (base64.b64encode(bytes([n]) * 32).decode() for n in (7, 8))


@pytest.mark.long
def test_sealed_pages_through_all_their_readers(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=2, articles=6, **QUIET)
    scrapy = crawler(tmp_path, web)
    scrapy.env["RAW_KEY"] = OLD
    assert scrapy.run("crawl", "news").returncode == 0
    articles = stored(scrapy.data)
    assert complaints(web, articles) == []
    kept = [a for a in articles if a.raw_ref]
    assert kept
    warc = scrapy.data / "warc"
    assert not any(a.title in inflated_text(warc) or a.url in inflated_text(warc) for a in kept)
    checked = scrapy.run("store", "check")
    assert checked.returncode == 0, checked.stdout

    hits = page_hits(web)
    del scrapy.env["RAW_KEY"]
    for command in (("crawl", "news"), ("reparse",), ("store", "check"), ("store", "rekey")):
        refused = scrapy.run(*command)
        assert refused.returncode == 1, refused.stderr
        assert "RAW_KEY" in refused.stderr.splitlines()[-1] and "Traceback" not in refused.stderr
    scrapy.env["RAW_KEY"] = "not a key"
    wrong = scrapy.run("crawl", "news")
    assert wrong.returncode == 1 and "32 bytes in base64" in wrong.stderr.splitlines()[-1]
    assert "not a key" not in wrong.stderr
    assert page_hits(web) == hits

    scrapy.env["RAW_KEY"] = f"{NEW},{OLD}"
    done = scrapy.run("store", "rekey", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["written_anew"] >= 1, done.stderr
    (scrapy.folder / "key").write_text(NEW + "\n")
    del scrapy.env["RAW_KEY"]
    scrapy.env["RAW_KEY_FILE"] = str(scrapy.folder / "key")
    assert scrapy.run("store", "check").returncode == 0
    again = scrapy.run("reparse", "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["pages"] >= len(kept)
    gone = scrapy.run("takedown", kept[0].url, "--reason", "asked", "--yes")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert {a.id for a in stored(scrapy.data)} == {a.id for a in articles} - {kept[0].id}
    assert scrapy.run("store", "check").returncode == 0
