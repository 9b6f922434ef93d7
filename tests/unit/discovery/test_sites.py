"""sites.json as a person gets it wrong, names that are looked up, and what a link on a site is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from newscrawler.discovery import overlay
from newscrawler.discovery.sites import Refusal, Sites, SitesError
from newscrawler.items import Kind, Link

NOW_MS = 1_793_000_000_000  # 2026-10-26T14:33:20+07:00
NOW_S = NOW_MS / 1000
GOOD: dict[str, Any] = {
    "id": "bao.vn",
    "home": "https://bao.vn/",
    "hosts": ["bao.vn", "xe.bao.vn"],
    "aliases": {"bao.com.vn": "bao.vn"},
    "sections": ["https://bao.vn/thoi-su"],
    "feeds": [
        {"url": "https://bao.vn/rss/home.rss", "status": "live"},
        {"url": "https://bao.com.vn/a.rss", "status": "dead"},
    ],
    "sitemaps": [{"url": "https://bao.vn/news.xml", "kind": "news"}, "https://bao.vn/sitemap.xml"],
    "article_pattern": r"-(\d{17})\.htm$",
    "id_group": 1,
    "id_time": "stamp",
    "zone": "Asia/Ho_Chi_Minh",
}


def written(folder: Path, *entries: Any) -> Path:
    path = folder / "sites.json"
    path.write_text(json.dumps({"sites": list(entries)}), encoding="utf-8")
    return path


@pytest.fixture
def sites(tmp_path: Path) -> Sites:
    loaded = Sites.load(written(tmp_path, GOOD))
    assert loaded.errors == []
    return loaded


def link(sites: Sites, url: str, **more: Any) -> Link:
    found = sites.identify(url, now_ms=NOW_MS, **more)
    assert isinstance(found, Link), f"{url}: {found}"
    return found


# ---------------------------------------------------------------- a file that cannot be used
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"sites": [,]}', "no JSON at line 1 column 12"),
        ("[]", 'field sites: must be an object with a list "sites"'),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_list_of_sites_is_named_with_the_place(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "sites.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SitesError) as caught:
        Sites.load(path)
    assert str(path) in str(caught.value) and said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SitesError, match=r"absent\.json: cannot be read"):
        Sites.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"id": ""}, "id", "must be a text"),
        ({"home": "ftp://bao.vn/"}, "home", "not a usable http(s) URL"),
        ({"hosts": ["Bao.vn"]}, "hosts", "not a lower-case host[:port]"),
        ({"hosts": ["bao.vn", "bao.vn"]}, "hosts", "names a host twice"),
        ({"aliases": {"x.vn": "y.vn"}}, "aliases", "the target must be one of hosts"),
        ({"class": "urgent"}, "class", "'urgent' is not one of high, mid, low"),
        ({"delay_s": -0.1}, "delay_s", "must be seconds between 0 and 3600"),
        ({"delay_s": 3600.1}, "delay_s", "must be seconds between 0 and 3600"),
        ({"delay_s": True}, "delay_s", "must be seconds between 0 and 3600"),
        ({"pages_per_day": -1}, "pages_per_day", "must be a whole number"),
        ({"pages_per_day": 1.5}, "pages_per_day", "must be a whole number"),
        ({"group": 3}, "group", ""),
        ({"class": "middle"}, "class", "is not one of high, mid, low, auto"),
        ({"article_pattern": "(\\d+"}, "article_pattern", "missing ), unterminated subpattern"),
        ({"id_group": 2}, "id_group", "2, but article_pattern has 1 groups"),
        ({"id_time": "unix"}, "id_time", "'unix' is not one of empty, stamp, prefix3"),
        ({"zone": "Asia/Saigon City"}, "zone", "neither +hh:mm nor a known zone"),
        ({"sections": "https://bao.vn/x"}, "sections", "must be a list of texts"),
        ({"sections": ["https://other.vn/x"]}, "sections", "is on no host of the site"),
        (
            {"feeds": [{"url": "https://bao.vn/a.rss", "status": "maybe"}]},
            "status",
            "'maybe' is not one of",
        ),
        (
            {"feeds": [{"url": "https://bao.vn/a.rss", "every": 5}]},
            "feeds.every",
            "is not a known field",
        ),
        ({"sitemaps": ["https://bao.vn/{week}.xml"]}, "sitemaps", "unknown placeholder 'week'"),
        ({"confidence": {"feeds": "sure"}}, "confidence", "must be an object"),
        ({"path_rewrites": [["(", ""]]}, "path_rewrites", "missing )"),
        ({"enabled": "yes"}, "enabled", "must be true or false"),
        ({"rss": []}, "rss", "is not a known field"),
    ],
)
def test_a_wrong_field_leaves_its_site_out_and_names_it(
    tmp_path: Path, change: dict[str, Any], field: str, reason: str
) -> None:
    other = {"id": "good.vn", "home": "https://good.vn/"}
    path = written(tmp_path, {**GOOD, **change}, other)
    loaded = Sites.load(path)
    assert [s.id for s in loaded] == ["good.vn"]
    (error,) = loaded.errors
    assert str(path) in str(error)
    assert error.site == (change.get("id", "bao.vn") or "#1")
    assert error.field == field and reason in error.reason


def test_the_second_of_two_sites_with_one_id_or_host_is_left_out(tmp_path: Path) -> None:
    twice = {"id": "bao.vn", "home": "https://elsewhere.vn/"}
    shared = {"id": "thief.vn", "home": "https://bao.com.vn/"}
    loaded = Sites.load(written(tmp_path, GOOD, twice, shared))
    assert [s.home for s in loaded] == ["https://bao.vn/"]
    assert [(e.site, e.field) for e in loaded.errors] == [("bao.vn", "id"), ("thief.vn", "hosts")]
    assert "bao.com.vn belongs to site bao.vn already" in str(loaded.errors[1])


# ---------------------------------------------------------------- looking up
@pytest.mark.parametrize(
    "name", ["bao.vn", "BAO.vn ", "xe.bao.vn", "bao.com.vn", "m.bao.vn", "www.bao.vn"]
)
def test_a_site_is_found_by_id_host_alias_and_twin(sites: Sites, name: str) -> None:
    found = sites.find(name)
    assert found is not None and found.id == "bao.vn"


def test_an_unknown_name_gets_near_ones() -> None:
    shipped = Sites.load(Path(__file__).resolve().parents[3] / "sites.json")
    assert shipped.find("vnexpres.net") is None
    assert shipped.near("vnexpres.net")[0] == "vnexpress.net"
    assert "tuoitre.vn" in shipped.near("tuoitre")
    assert shipped.near("Tuổi Tre")[0] == "tuoitre.vn"
    assert shipped.near("ba0mo1.vn") == shipped.near("qqqqqqqqqq") == []


@pytest.mark.parametrize(
    "name", ["nope.vn", "foo.vn", "example.vn", "xyz.com.vn", "cnn.com", "unknown.vn", "bbc.com"]
)
def test_a_name_that_is_not_alike_gets_none(name: str) -> None:
    assert Sites.load(Path(__file__).resolve().parents[3] / "sites.json").near(name) == []


def test_only_keeps_the_named_sites_and_enables_them(tmp_path: Path) -> None:
    loaded = Sites.load(
        written(tmp_path, {**GOOD, "enabled": False}, {"id": "b.vn", "home": "https://b.vn/"})
    )
    assert loaded.by_host("bao.vn") is None  # nothing of a site that is off is admitted
    chosen = loaded.only(["bao.com.vn"])
    assert [s.id for s in chosen] == ["bao.vn"] and chosen.by_host("bao.vn") is not None
    with pytest.raises(KeyError, match="nope"):
        loaded.only(["bao.vn", "nope"])


def test_for_urls_takes_the_known_site_and_makes_one_for_another_host(tmp_path: Path) -> None:
    loaded = Sites.load(written(tmp_path, {**GOOD, "enabled": False}))
    asked = loaded.for_urls(["https://bao.vn/x", "http://new.org:8080/a", "mailto:a@b.vn", ""])
    assert [s.id for s in asked.enabled()] == ["bao.vn", "new.org:8080"]
    assert (
        link(asked, "http://new.org:8080/a").url == "http://new.org:8080/a"
    )  # http is not made https
    assert asked.identify("https://third.org/") == Refusal("offsite")


# ---------------------------------------------------------------- what a link is
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://other.vn/a-b-c-20261025080000001.htm", "offsite"),
        ("https://evil-bao.vn/", "offsite"),
        ("mailto:toa-soan@bao.vn", "scheme"),
        ("https://bao.vn/anh/bia.JPG", "type"),
        ("https://bao.vn/video/tran-dau", "type"),
        ("https://bao.vn/dang-nhap", "type"),
        ("https://bao.vn/tim-kiem?q=lu", "type"),
        ("https://bao.vn/a/b/a/b/", "trap"),
        ("https://bao.vn/x/x/x/", "trap"),
        ("https://bao.vn/lich/2031/04/17", "trap"),
        ("https://bao.vn/thoi-su?page=21", "trap"),
        ("https://bao.vn/thoi-su?tu-ngay=1", "trap"),
        ("https://bao.vn/thoi-su?a=1&b=2&c=3&d=4&e=5&f=6&g=7", "trap"),
        ("https://bao.vn/" + "/".join(f"s{i}" for i in range(13)), "trap"),
        ("https://bao.vn/" + "a" * 3000, "trap"),
    ],
)
def test_a_link_that_is_not_offered_says_why(sites: Sites, url: str, reason: str) -> None:
    assert sites.identify(url, now_ms=NOW_MS) == Refusal(reason)


def test_bounds_are_inclusive(sites: Sites) -> None:
    assert link(sites, "https://bao.vn/thoi-su?page=20").kind is Kind.PAGE
    assert link(sites, "https://bao.vn/thoi-su?a=1&b=2&c=3&d=4&e=5&f=6").kind is Kind.PAGE
    assert link(sites, "https://bao.vn/" + "/".join(f"s{i}" for i in range(12))).kind is Kind.PAGE


@pytest.mark.parametrize(
    ("url", "kind", "band"),
    [
        ("http://m.bao.vn", Kind.HOME, 0),
        ("https://bao.vn/rss/home.rss", Kind.FEED, 0),
        ("https://bao.vn/news.xml", Kind.SITEMAP, 0),
        ("https://bao.vn/sitemap.xml", Kind.SITEMAP, 2),
        ("https://bao.vn/thoi-su/", Kind.SECTION, 1),
        ("https://xe.bao.vn/", Kind.SECTION, 1),
        ("https://bao.vn/other.rss", Kind.FEED, 1),
        ("https://bao.vn/lien-he", Kind.PAGE, 2),
        ("https://bao.vn/a-b-20261026080000001.htm", Kind.ARTICLE, 0),
    ],
)
def test_kind_and_band_of_an_address(sites: Sites, url: str, kind: Kind, band: int) -> None:
    found = link(sites, url)
    assert (found.kind, found.band) == (kind, band)
    assert found.domain in ("bao.vn", "xe.bao.vn")


def test_twins_of_an_article_are_one_and_are_fetched_from_the_site(sites: Sites) -> None:
    spellings = [
        "https://bao.vn/mot-20261025080000001.htm",
        "http://www.bao.vn/hai-20261025080000001.htm?utm_source=fb#top",
        "https://m.bao.vn/ba-20261025080000001.htm",
        "https://bao.com.vn/bon-20261025080000001.htm?x=1",
    ]
    links = [link(sites, url) for url in spellings]
    assert len({found.url_id for found in links}) == 1
    assert links[3].url == "https://bao.vn/bon-20261025080000001.htm"
    assert link(sites, "https://bao.vn/mot-20261025080000002.htm").url_id != links[0].url_id


@pytest.mark.parametrize(
    ("age_s", "band", "taken"),
    [
        (3600, 0, True),
        (86_399, 0, True),
        (86_400, 2, True),
        (3 * 86_400, 2, True),
        (3 * 86_400 + 1, 2, False),
    ],
)
def test_age_by_what_the_feed_said(sites: Sites, age_s: int, band: int, taken: bool) -> None:
    hint = {"published": datetime.fromtimestamp(NOW_S - age_s, UTC).isoformat()}
    found = sites.identify(
        "https://bao.vn/tin", kind=Kind.ARTICLE, hint=hint, max_age=3 * 86_400, now_ms=NOW_MS
    )
    if not taken:
        assert found == Refusal("age")
        return
    assert isinstance(found, Link)
    assert (found.band, found.score, found.hint) == (band, -(NOW_S - age_s), hint)


def test_a_feed_date_without_a_zone_is_of_the_site(sites: Sites) -> None:
    hint = {"published": "2026-10-26T14:00:00"}
    assert link(sites, "https://bao.vn/tin", kind=Kind.ARTICLE, hint=hint).score == -(NOW_S - 2000)
    garbage = link(sites, "https://bao.vn/tin", kind=Kind.ARTICLE, hint={"published": "yesterday"})
    assert garbage.band == 1  # undated


def test_age_by_the_id_leaves_two_days_for_a_piece_in_the_drawer(sites: Sites) -> None:
    # written 2026-10-23T14:33:20: three days before now
    url = "https://bao.vn/a-20261023143320001.htm"
    assert isinstance(sites.identify(url, max_age=86_400, now_ms=NOW_MS), Link)
    assert sites.identify(url, max_age=86_400 - 1, now_ms=NOW_MS) == Refusal("age")
    hint = {"published": "2026-10-26T14:00:00+07:00"}  # the feed knows better than the id
    assert isinstance(sites.identify(url, max_age=3600, hint=hint, now_ms=NOW_MS), Link)


def test_an_undated_article_far_from_a_list_waits_longer(sites: Sites) -> None:
    near = link(sites, "https://bao.vn/mot-bai-viet-kha-dai-1.htm", kind=Kind.ARTICLE, depth=1)
    far = link(sites, "https://bao.vn/mot-bai-viet-kha-dai-1.htm", kind=Kind.ARTICLE, depth=3)
    assert near.band == 1 and far.band == 2 and far.score > near.score


# ---------------------------------------------------------------- the operator's changes
def test_what_an_operator_changed_is_applied(tmp_path: Path, sites: Sites) -> None:
    state = overlay.read(tmp_path / "data")
    state.enabled["bao.vn"] = False
    state.add_seed("bao.vn", "https://bao.vn/moi.rss", Kind.FEED)
    state.add_seed("bao.vn", "https://bao.vn/the-thao", Kind.SECTION)
    state.remove_seed("bao.vn", "https://bao.vn/rss/home.rss")
    overlay.write(tmp_path / "data", state)
    changed = overlay.applied(sites, tmp_path / "data").get("bao.vn")
    assert changed is not None and not changed.enabled
    assert [f.url for f in changed.feeds] == ["https://bao.com.vn/a.rss", "https://bao.vn/moi.rss"]
    assert changed.sections == ("https://bao.vn/thoi-su", "https://bao.vn/the-thao")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"enabled": {"bao.vn": "no"}}', '{"seeds": {"bao.vn": []}}', '{"sites": {}}'],
)
def test_a_broken_state_file_is_an_error_not_a_forgotten_switch(
    tmp_path: Path, sites: Sites, text: str
) -> None:
    (tmp_path / overlay.STATE_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(SitesError, match=overlay.STATE_FILE):
        overlay.applied(sites, tmp_path)
