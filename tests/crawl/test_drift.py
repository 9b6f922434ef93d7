"""A site changes its pages in the middle of a crawl: the alarm, the new set, and the
repair, seen from both sides."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from newscrawler.items import Article
from newscrawler.selectorsets.samples import f1, norm, words
from newscrawler.store.events import STREAM
from tests.crawl.harness import Scrapy, until
from tests.crawl.small import Queue, crawler, stored, versions
from tests.newsweb.judge import versions_until
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow


def rows(scrapy: Scrapy, *args: str) -> list[dict[str, Any]]:
    done = scrapy.run("selectors", *args, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def wrong_fields(article: Article, truth: dict[str, Any]) -> list[str]:
    """Fields that are not what the site knows of its own article, in one of the
    wordings that it has had."""
    wordings = versions_until(truth, float("inf"))
    wrong = []
    if norm(article.title) not in {norm(w["title"]) for w in wordings}:
        wrong.append("title")
    found = Counter(words(article.content))
    if max(f1(found, Counter(words(w["content"]))) for w in wordings) < 0.97:
        wrong.append("content")
    if {norm(a) for a in article.authors} != {norm(a) for a in truth["authors"]}:
        wrong.append("authors")
    told = datetime.fromisoformat(truth["published"])
    if article.published is None or abs((article.published - told).total_seconds()) > 60:
        wrong.append("published")
    return wrong


def site_of(web: NewswebProcess) -> str:
    (site,) = [row["site"] for row in web.truth() if row["type"] == "site"]
    return str(site)


def watched_crawl(folder: Path, web: NewswebProcess, **settings: Any) -> Scrapy:
    return crawler(
        folder,
        web,
        SELECTOR_GENERATION="rules",
        SELECTOR_REFRESH_S="0.3",
        SELECTOR_GENERATION_IDLE_S="30",
        DOWNLOAD_DELAY="0.3",
        **settings,
    )


def article_hits(web: NewswebProcess) -> Counter[str]:
    urls = {row["url"] for row in web.articles()}
    return Counter(
        url for hit in web.hits() if (url := f"http://{hit['host']}{hit['path']}") in urls
    )


def change_in_the_middle(
    folder: Path, web: NewswebProcess, **settings: Any
) -> tuple[Scrapy, datetime, Any]:
    """A crawl whose site gets another layout after 25 articles, and 50 new articles in it."""
    site = site_of(web)
    scrapy = watched_crawl(folder, web, **settings)
    running = scrapy.start("crawl", "news")
    try:
        until(lambda: article_hits(web).total() >= 25, "25 articles were fetched", 60)
        web.relayout(site)
        changed = datetime.now(UTC)
        web.publish(site, 50)
        done = running.wait(180)
    finally:
        if running.process.poll() is None:
            running.kill()
    assert done.returncode == 0, done.stderr[-3000:]
    return scrapy, changed, done


@pytest.mark.long
def test_layout_change_is_seen_mended_and_repaired(
    newsweb: Any, tmp_path: Path, queue: Queue
) -> None:
    web = newsweb("ip", sites=1, articles=50, rate=0, delay=0.3, faults="none", duration=100_000)
    site = site_of(web)
    scrapy, changed, done = change_in_the_middle(tmp_path, web)
    assert (done.stat("selector/alarms/drift"), done.stat("selector/jobs/active")) == (1, 1), (
        done.stderr[-3000:]
    )
    (alarm,) = [line for line in done.stderr.splitlines() if "what=drift" in line]
    assert int(alarm.split("failing=")[1]) <= 8, alarm

    truth = {row["url"]: row for row in web.articles()}
    articles = sorted(stored(scrapy.data), key=lambda a: a.fetched)
    late = [a for a in articles if a.fetched >= changed]
    assert len(late) >= 40, "too few articles after the change to say anything"
    first = {a.url: versions(scrapy.data, a)[0] for a in late}
    healed_at = next(i for i, a in enumerate(late) if first[a.url].selector_version == f"{site}@2")
    assert healed_at <= 40, f"{healed_at} pages before the new set was live"

    # Every field of every article after the change, those of the time without a set included.
    wrong = {a.url: w for a in late if (w := wrong_fields(a, truth[a.url]))}
    assert not wrong, wrong
    damaged = [a for a in late[:healed_at] if wrong_fields(first[a.url], truth[a.url])]
    assert damaged, "the change damaged nothing: the repair proves nothing"
    by_new = {a.url for a in late if a.selector_version == f"{site}@2"}
    assert {a.url for a in damaged} <= by_new, "pages of the window are read by the new set"
    assert done.stat("selector/repaired/changed") >= len(damaged)
    told = queue._ask(lambda frontier, client: client.xrange(STREAM))
    repaired = [e[b"url"].decode() for _, e in told if e[b"type"] == b"article.updated"]
    assert {a.url for a in damaged} <= set(repaired), (
        "who follows the news is not told of the repair"
    )
    twice = {url: n for url, n in article_hits(web).items() if n > 1}
    assert not twice, "the site was asked for a page again"

    events = [e["what"] for e in rows(scrapy, "history", site)]
    assert events == ["repaired", "active", "added", "alarm: drift", "active", "added"]
    (doc,) = rows(scrapy, "show", site)
    compared = doc["provenance"]["compared"]
    assert compared["new"]["cover"] > compared["old"]["cover"] and compared["better"] is True
    back = scrapy.run("selectors", "rollback", site, "--json")
    assert json.loads(back.stdout)["version"] == "1", back.stderr


@pytest.mark.long
def test_admin_is_asked_and_the_repair_waits_for_the_approval(newsweb: Any, tmp_path: Path) -> None:
    web = newsweb("ip", sites=1, articles=40, rate=0, delay=0.3, faults="none", duration=100_000)
    site = site_of(web)
    scrapy, changed, done = change_in_the_middle(tmp_path, web, SELECTOR_APPROVAL="admin")
    assert done.stat("selector/jobs/approval") == 1, done.stderr[-3000:]
    assert done.stat("selector/repaired/changed") == 0
    (row,) = rows(scrapy, "list")
    assert (row["state"], row["active"], row["versions"]) == ("await_admin", "1", 2)
    late = [a for a in stored(scrapy.data) if a.fetched >= changed]
    assert late and all(a.selector_version != f"{site}@2" for a in late)

    hits = article_hits(web)
    (approved,) = rows(scrapy, "approve", site)
    assert approved["version"] == "2"
    (repaired,) = rows(scrapy, "repair", site)
    assert repaired["changed"] >= 1
    by_new = {a.url for a in stored(scrapy.data) if a.selector_version == f"{site}@2"}
    assert set(repaired["articles"]) <= by_new and repaired["changed"] == len(repaired["articles"])
    assert article_hits(web) == hits, "a repair asked the site"
