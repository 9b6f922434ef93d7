"""A crawl whose pages are shown to ClamAV's daemon: a real one, away when the crawl begins."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from newscrawler.rawstore import READER, RawStore
from tests.crawl.harness import until
from tests.crawl.small import QUIET, crawler, expected, stored
from tests.fixtures_clamav import MakeClamd
from tests.fixtures_newsweb import StartNewsweb

pytestmark = pytest.mark.slow


def own_bytes(url: str) -> bytes:
    """Of the page's text: some that no list and no other article has."""
    page = httpx.get(url, trust_env=False).text
    texts = re.findall(r"<p[^>]*>([^<]{60,})</p>", page)
    return max(texts[2:], key=len)[-40:].encode()  # what stands first is in lists as well


def test_a_page_with_a_signature_is_stored_nowhere_and_the_crawl_waits_for_its_scanner(
    tmp_path: Path, newsweb: StartNewsweb, clamd: MakeClamd
) -> None:
    web = newsweb("ip", sites=2, articles=4, **QUIET)
    victim = sorted(expected(web))[0]
    text = own_bytes(victim)
    carriers = {u for u in expected(web) if text in httpx.get(u, trust_env=False).content}
    assert victim in carriers and len(carriers) < 4, "a copy on another site has it as well"
    daemon = clamd({"Test.Page": text})
    daemon.kill()
    scrapy = crawler(tmp_path, web, CLAMAV=daemon.socket)
    running = scrapy.start("crawl", "news")
    until(lambda: "Waiting for the virus scanner" in running.text(), "it waits")
    read = re.findall(r"kind=(\w+) outcome=DONE", running.text())
    assert set(read) <= {"robots"}, "nothing was read unscanned"
    daemon.start()
    done = running.wait(120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "the virus scanner is back" in done.stderr
    assert f"refused a page url={victim} signature=Test.Page.UNOFFICIAL" in done.stderr
    assert {a.url for a in stored(scrapy.data)} == expected(web) - carriers
    assert done.stat("scan/pages/found") == len(carriers) and done.stat("scan/pages/clean") >= 8
    assert done.stat("page/reason/REFUSED(malware)") == len(carriers)
    raw = RawStore.open(str(scrapy.data / "warc"), READER)
    kept = {page.url for _, page in raw.scan()}
    raw.close()
    assert kept and not kept & carriers
    why = scrapy.run("frontier", "why", victim)
    assert "REFUSED" in why.stdout and "malware" in why.stdout
