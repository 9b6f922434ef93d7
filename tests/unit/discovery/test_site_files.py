"""The shipped data: sites.json and selectors/ say what they mean, and active sets are
proved on stored pages."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest

from evaluation import scorer
from newscrawler.discovery.seeds import seed_links
from newscrawler.discovery.sites import Site, Sites
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import PageContext, extract, prediction
from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import LIST_KINDS, Kind, Link
from newscrawler.selectorsets import schema

ROOT = Path(__file__).resolve().parents[3]
NOW_MS = 1_793_000_000_000  # 2026-10-26
SITES = Sites.load(ROOT / "sites.json")
IDS = [site.id for site in SITES]
EXAMPLES: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "example_urls.json").read_text(encoding="utf-8")
)
SETS = dict(schema.read_folder(ROOT / "selectors"))
#: Sites of which a stored page proves the set.
PROVED = {"dantri.com.vn", "vietnamnet.vn", "tuoitre.vn", "nld.com.vn"}


def site_of(site_id: str) -> Site:
    site = SITES.get(site_id)
    assert site is not None
    return site


def identify(url: str, kind: Kind | None = None) -> Link:
    found = SITES.identify(url, kind=kind, now_ms=NOW_MS)
    assert isinstance(found, Link), f"{url}: {found}"
    return found


# ---------------------------------------------------------------- sites.json
def test_sites_json_holds_33_sites_without_an_error() -> None:
    assert SITES.errors == []
    assert len(SITES) == 33
    assert set(EXAMPLES) == set(IDS)


def test_sites_json_is_what_the_schema_describes() -> None:
    described = json.loads(
        (ROOT / "newscrawler/discovery/sites.schema.json").read_text(encoding="utf-8")
    )
    data = json.loads((ROOT / "sites.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(described).validate(data)
    data["sites"][0]["delay_s"] = -1
    assert not jsonschema.Draft202012Validator(described).is_valid(data)


@pytest.mark.parametrize("site_id", IDS)
def test_each_site_says_why_it_has_its_class_and_is_polite(site_id: str) -> None:
    site = site_of(site_id)
    assert len(site.cls_reason) > 20
    assert site.delay_s >= 2.0
    assert site.zone == "Asia/Ho_Chi_Minh" and site.language == "vi"
    assert site.source and site.confidence.get("overall") in ("high", "medium", "low")


def test_all_three_classes_are_used_and_reasons_differ() -> None:
    assert {site.cls for site in SITES} == {"high", "mid", "low"}
    assert len({site.cls_reason for site in SITES}) == len(SITES)


@pytest.mark.parametrize("site_id", IDS)
def test_every_start_of_a_site_is_admitted_as_what_it_is(site_id: str) -> None:
    site = site_of(site_id)
    seeds = seed_links(site, NOW_MS)
    dead = sum(feed.status == "dead" for feed in site.feeds)
    assert len(seeds) >= 1 + len(site.feeds) - dead + len(site.sitemaps) + len(site.sections)
    for seed in seeds:
        assert seed.revisit and seed.domain in site.hosts
        assert seed.kind in LIST_KINDS
        # and when a page links to it, it is no article
        assert identify(seed.url).kind is not Kind.ARTICLE, seed.url


def test_each_site_has_a_way_in_beside_its_home_page() -> None:
    without = [
        s.id
        for s in SITES
        if not s.sections and all(f.status == "dead" for f in s.feeds) and not s.sitemaps
    ]
    assert without == []


def test_monthly_sitemaps_are_named_for_the_month_of_vietnam() -> None:
    last_evening_utc = 1_793_469_600_000  # 2026-10-31 18:00 UTC is 2026-11-01 01:00 in Vietnam
    urls = [s.url for s in seed_links(site_of("baodautu.vn"), last_evening_utc)]
    assert "https://baodautu.vn/sitemaps/news-2026-11.xml" in urls
    assert "https://baodautu.vn/sitemaps/news-2026-10.xml" in urls
    shards = [s.url for s in seed_links(site_of("cafef.vn"), NOW_MS) if "sitemaps-" in s.url]
    assert "https://cafef.vn/sitemaps/sitemaps-2026-10-26-31.xml" in shards


# ---------------------------------------------------------------- article addresses
@pytest.mark.parametrize("site_id", IDS)
def test_article_addresses_are_known_by_the_pattern(site_id: str) -> None:
    site = site_of(site_id)
    addresses = [*EXAMPLES[site_id]["articles"], *site.article_examples]
    assert len(addresses) >= 5
    ids = set()
    for url in addresses:
        link = identify(url)
        assert link.kind is Kind.ARTICLE, url
        assert re.search(site.article_pattern, urlsplit(link.url).path), (
            url
        )  # not by the heuristic alone
        ids.add(link.url_id)
        if site.id_group:
            # a free slug: only the pattern's id can make these two equal
            mark = url.rstrip("/").rpartition("/")[2].rpartition("-")[2]
            other = url.replace("/" + url.rstrip("/").rpartition("/")[2], "/khac-han-" + mark)
            assert identify(other).url_id == link.url_id, (url, other)
    assert len(ids) == len(set(addresses))


@pytest.mark.parametrize("site_id", IDS)
def test_lists_of_a_site_are_no_articles(site_id: str) -> None:
    site = site_of(site_id)
    for url in [site.home, *site.sections, *EXAMPLES[site_id]["lists"]]:
        found = SITES.identify(url, now_ms=NOW_MS)
        assert not isinstance(found, Link) or found.kind is not Kind.ARTICLE, url


@pytest.mark.parametrize("site_id", [s for s in IDS if EXAMPLES[s]["twins"]])
def test_twins_are_one_article(site_id: str) -> None:
    links = [identify(url) for url in EXAMPLES[site_id]["twins"]]
    assert len(links) > 1
    assert len({link.url_id for link in links}) == 1, [link.url for link in links]
    assert {link.domain for link in links} <= set(site_of(site_id).hosts)
    assert all(link.kind is Kind.ARTICLE for link in links)


@pytest.mark.parametrize(
    ("url", "seconds"),
    [
        ("https://nld.com.vn/a-b-196260307071308923.htm", 1772842388),  # 2026-03-07 07:13:08 +07:00
        ("https://tuoitre.vn/a-b-20260307075519174.htm", 1772844919),
    ],
)
def test_an_id_tells_when_the_article_was_written(url: str, seconds: int) -> None:
    just_after = SITES.identify(url, now_ms=(seconds + 3600) * 1000)
    month_later = SITES.identify(url, now_ms=(seconds + 30 * 86_400) * 1000)
    assert isinstance(just_after, Link) and just_after.band == 0 and just_after.score == -seconds
    assert isinstance(month_later, Link) and month_later.band == 2
    assert not isinstance(
        SITES.identify(url, now_ms=(seconds + 30 * 86_400) * 1000, max_age=86_400), Link
    )


# ---------------------------------------------------------------- selectors/
def test_every_selector_file_is_valid_and_belongs_to_a_site() -> None:
    assert len(SETS) == 32
    assert [str(doc) for doc in SETS.values() if isinstance(doc, schema.SetError)] == []
    assert {Path(name).stem for name in SETS} <= set(IDS)


def test_only_proved_sets_are_active() -> None:
    states = {
        Path(n).stem: doc["state"]
        for n, doc in SETS.items()
        if not isinstance(doc, schema.SetError)
    }
    assert {name for name, state in states.items() if state == "active"} == PROVED
    assert set(states.values()) == {"active", "probation"}


def _stored_pages(folder: Path) -> list[tuple[Site, dict[str, Any], bytes]]:
    pages = []
    for line in (folder / "gold.jsonl").read_text(encoding="utf-8").splitlines():
        gold = json.loads(line)
        site = SITES.by_host(gold["url"].split("/")[2])
        if site is not None and gold.get("content"):
            pages.append((site, gold, gzip.decompress((folder / gold["html"]).read_bytes())))
    return pages


def test_active_sets_give_every_field_of_their_stored_page(shared_pages: Path) -> None:
    pages = _stored_pages(shared_pages)
    assert {site.id for site, _, _ in pages} >= PROVED
    for site, gold, body in pages:
        doc = SETS[f"{site.id}.json"]
        assert not isinstance(doc, schema.SetError)
        context = PageContext(site_name=site.name, language=site.language, zone=site.zone)
        found = extract(Document(body, gold["url"]), context, SelectorSet.from_dict(doc))
        score = scorer.score_page(gold, prediction(found))
        assert score["title"] and score["day"] and score["minute"], (site.id, score)
        assert score["authors"]["exact"], (site.id, score)
        assert score["content"][2] >= 0.98, (site.id, score)
        for name in ("title", "published", "content", "authors"):
            assert getattr(found, name).origin.startswith("selector:"), (site.id, name)
