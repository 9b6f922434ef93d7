"""`scrapy sites check` over the 33 sites under their real names, some of which are
not as sites.json says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from newscrawler.discovery import contact, overlay
from tests.crawl.harness import ROOT, Finished, Scrapy, until
from tests.crawl.small import QUICK, QUIET
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb import judge
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow

DEAD_FEED = "https://tienphong.vn/rss/home.rss"
MOVED_FEED = "https://dantri.com.vn/rss/home.rss"
FEED_NOW = "https://dantri.com.vn/tin-moi-nhat.rss"
NEW_LAYOUT = "cafebiz.vn"
Entry = dict[str, Any]


def shipped() -> list[Entry]:
    return json.loads((ROOT / "sites.json").read_text(encoding="utf-8"))["sites"]


def quick(entries: list[Entry]) -> list[Entry]:
    """The same facts, at delays that a test has time for."""
    return [{**entry, "delay_s": 0.02} for entry in entries]


def without_feed(entry: Entry, url: str) -> None:
    before = len(entry["feeds"])
    entry["feeds"] = [feed for feed in entry["feeds"] if feed["url"] != url]
    assert len(entry["feeds"]) == before - 1, f"{url} is no feed of sites.json any more"


def moved(entry: Entry, host: str) -> None:
    """The site answers from another host; the one of before sends there."""
    old = urlsplit(entry["home"]).netloc

    def there(url: str) -> str:
        return url.replace(f"//{old}/", f"//{host}/")

    entry["home"] = f"https://{host}/"
    entry["hosts"] = [host]
    entry["aliases"] = {old: host}
    entry["sections"] = [there(url) for url in entry["sections"]]
    for name in ("feeds", "sitemaps"):
        entry[name] = [{**seed, "url": there(seed["url"])} for seed in entry[name]]


def as_they_are_now() -> tuple[list[Entry], dict[str, str]]:
    """What the web serves, and a section that is gone of each site that lost one."""
    entries = quick(shipped())
    by_id = {entry["id"]: entry for entry in entries}
    without_feed(by_id["tienphong.vn"], DEAD_FEED)
    for feed in by_id["dantri.com.vn"]["feeds"]:
        if feed["url"] == MOVED_FEED:
            feed["url"] = FEED_NOW
    gone = by_id["vtcnews.vn"]["sections"].pop(3)
    moved(by_id["plo.vn"], "www.plo.vn")  # the same owner
    moved(by_id["danviet.vn"], "bao-danviet.example")  # another domain, for ever, with its articles
    return entries, {"vtcnews.vn": gone}


class Checked:
    def __init__(self, newsweb: StartNewsweb, folder: Path) -> None:
        entries, self.gone = as_they_are_now()
        served, known = folder / "served.json", folder / "known.json"
        served.write_text(json.dumps({"sites": entries}))
        known.write_text(json.dumps({"sites": quick(shipped())}))
        self.web: NewswebProcess = newsweb("names", sites=served, articles=12, rate=0)
        self.web.redirect("dantri.com.vn", urlsplit(MOVED_FEED).path, urlsplit(FEED_NOW).path)
        self.web.relayout(NEW_LAYOUT)
        self.scrapy = Scrapy(
            folder,
            {
                **QUICK,
                "SITES_FILE": known,
                "RESOLVE_OVERRIDE": self.web.about["resolve_override"],
                "EXTRA_CA_FILE": self.web.ca_file,
            },
        )

    def check(self, *args: str) -> Finished:
        return self.scrapy.run("sites", "check", *args, timeout=200)

    def asked(self) -> Counter[tuple[str, str]]:
        return Counter((hit["host"], hit["path"]) for hit in self.web.hits())


def rows(done: Finished) -> dict[str, dict[str, Any]]:
    return {row["site"]: row for row in map(json.loads, done.stdout.splitlines())}


def seed(row: dict[str, Any], url: str) -> dict[str, Any]:
    return next(s for s in row["seeds"] if s["url"] == url)


def test_33_sites_are_asked_once_and_what_changed_is_told_and_kept(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    checked = Checked(newsweb, tmp_path)
    done = checked.check("--json", "--apply")
    assert done.returncode == 0, done.stderr[-3000:]
    told = rows(done)
    assert len(told) == 33 and "Traceback" not in done.stderr
    assert "[33/33]" in done.stderr, "a line for each site as it ends"
    # what is not as the file says
    assert seed(told["tienphong.vn"], DEAD_FEED)["state"] == "dead"
    feed = seed(told["dantri.com.vn"], MOVED_FEED)
    assert (feed["state"], feed["moved_to"]) == ("moved", FEED_NOW) and feed["articles"] > 0
    assert seed(told["vtcnews.vn"], checked.gone["vtcnews.vn"])["state"] == "dead"
    for site, home in (
        ("plo.vn", "https://www.plo.vn/"),
        ("danviet.vn", "https://bao-danviet.example/"),
    ):
        assert (told[site]["home"]["state"], told[site]["home"]["moved_to"]) == ("moved", home)
        assert not [s for s in told[site]["seeds"] if s["state"] in ("dead", "moved")], site
    # what robots.txt asks, and what the selector sets say beside the generic chain
    asks = {
        row["host"]: row["crawl_delay_s"] for row in checked.web.truth() if row["type"] == "site"
    }
    for row in told.values():
        if row["robots"] == "200" and not row["home"]["moved_to"]:
            wanted = asks[urlsplit(row["home"]["url"]).netloc]
            assert (row["crawl_delay_s"] or 0) == wanted, row["site"]
    verdicts = {site: row["set"] for site, row in told.items()}
    assert verdicts[NEW_LAYOUT].startswith("differs: "), verdicts
    assert verdicts["hanoimoi.vn"] == "no set"
    assert sum(v == "agrees" for v in verdicts.values()) >= 20, verdicts
    # asked once, and never too soon
    twice = {
        place: n
        for place, n in checked.asked().items()
        if n > 1 and place[1] not in ("/", "/robots.txt")
    }
    assert not twice
    assert not judge.politeness(checked.web.hits(), checked.web.truth())
    # kept, and used by every other command
    shown = checked.scrapy.run(
        "sites", "show", "tienphong.vn", "dantri.com.vn", "danviet.vn", "--json"
    )
    now = {row["site"]: row for row in map(json.loads, shown.stdout.splitlines())}
    status = {
        f["url"]: f["status"]
        for site in ("tienphong.vn", "dantri.com.vn")
        for f in now[site]["feeds"]
    }
    assert status[DEAD_FEED] == "dead" and status[FEED_NOW] == "live" and MOVED_FEED not in status
    assert now["danviet.vn"]["hosts"][0] == "bao-danviet.example"
    assert now["danviet.vn"]["aliases"]["danviet.vn"] == "bao-danviet.example"
    # a second look within hours asks nobody
    before = len(checked.web.hits())
    again = checked.check()
    assert again.returncode == 0 and len(checked.web.hits()) == before
    assert "tienphong.vn" in again.stdout and DEAD_FEED in again.stdout
    assert contact.told_when(checked.scrapy.data, []) != ""


def test_the_sites_that_are_named_are_asked_once_each_and_no_other(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    """By the other side's log: home, feeds and sections once, two articles of each site."""
    checked = Checked(newsweb, tmp_path)
    names = ("vietnamnet.vn", "tuoitre.vn")
    done = checked.check("--sites", ",".join(names), "--json")
    assert done.returncode == 0 and set(rows(done)) == set(names), done.stderr[-3000:]
    entries = {entry["id"]: entry for entry in quick(shipped())}
    asked = checked.asked()
    # what sections and articles share is in the pages; whose address it is, the web knows
    articles = {
        tuple(urlsplit(row["url"])[1:3]): row["site"]
        for row in checked.web.truth()
        if row["type"] == "article"
    }
    answered = [(h["host"], h["path"], h["status"]) for h in checked.web.hits()]
    read = [hit for hit in answered if hit[:2] in articles]
    by_site = Counter(articles[host, path] for host, path, status in read if status == 200)
    assert len(by_site) == 2 and set(by_site.values()) == {2}, read
    assert all(asked[place] == 1 for place in asked if place in articles)
    for name in names:
        entry = entries[name]
        lists = [feed["url"] for feed in entry["feeds"]] + entry["sections"]
        places = {tuple(urlsplit(url)[1:3]) for url in lists}
        assert len(places) > 5
        assert {place: asked[place] for place in places if asked[place] != 1} == {}, name
        home = urlsplit(entry["home"]).netloc
        assert (asked[home, "/"], asked[home, "/robots.txt"]) == (1, 1)
    hosts = {host for name in names for host in entries[name]["hosts"]}
    assert {host for host, _ in asked} <= hosts


@pytest.mark.long
def test_ctrl_c_keeps_what_is_learnt_and_the_next_check_goes_on(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    checked = Checked(newsweb, tmp_path)
    checked.scrapy.settings["DOWNLOAD_DELAY"] = 0.3
    names = "tienphong.vn,vtcnews.vn"
    running = checked.scrapy.start("sites", "check", "--sites", names)
    until(lambda: len(checked.web.hits()) > 12 or running.process.poll() is not None, "it asks")
    running.interrupt()
    stopped = running.wait(30)
    assert stopped.returncode == 1 and "Traceback" not in stopped.stdout, stopped.stdout[-3000:]
    assert "2 of 2 sites are not done" in stopped.stdout
    known = contact.read(checked.scrapy.data)
    half = {site: len(one.seeds) for site, one in known.items()}
    assert all(2 < n < 12 for n in half.values()), half
    asked = checked.asked()
    checked.scrapy.settings["DOWNLOAD_DELAY"] = 0.05
    rest = checked.check("--sites", names, "--json")
    assert rest.returncode == 0, rest.stderr[-2000:]
    assert all(row["complete"] for row in rows(rest).values()), rest.stderr
    assert all(len(row["seeds"]) > half[site] for site, row in rows(rest).items()), half
    learnt = {tuple(urlsplit(s.url)[1:3]) for one in known.values() for s in one.seeds}
    again = {place: (asked[place], n) for place, n in checked.asked().items() if place in learnt}
    assert learnt and not {place: n for place, n in again.items() if n[0] != n[1]}, half


#: No name is found: the one of .invalid never is. And: nobody listens where every name leads to.
NO_NETWORK = [("a.invalid", {}), ("a.vn", {"RESOLVE_OVERRIDE": "*=127.0.0.1:9"})]


@pytest.mark.parametrize(("host", "nobody"), NO_NETWORK, ids=["dns", "connect"])
def test_without_a_network_one_line_says_so_and_nothing_is_kept(
    tmp_path: Path, host: str, nobody: dict[str, str]
) -> None:
    known = tmp_path / "known.json"
    home = f"https://{host}/"
    entry = {"id": "a.vn", "home": home, "feeds": [{"url": f"{home}a.rss"}]}
    known.write_text(json.dumps({"sites": [entry, {"id": "b.vn", "home": f"https://b.{host}/"}]}))
    scrapy = Scrapy(
        tmp_path,
        {**QUICK, "SITES_FILE": known, "BACKOFF_START_S": 600, "ROBOTS_RETRY_S": 600, **nobody},
    )
    overlay.write(scrapy.data, overlay.OverlayState(learnt={"a.vn": {"dead": [f"{home}a.rss"]}}))
    done = scrapy.run("sites", "check", "--apply")
    assert done.returncode == 1 and not done.stdout, done.stdout
    lines = [line for line in done.stderr.splitlines() if "sites done; at work" not in line]
    assert lines[1:] == ["No site answered: is there a network? Nothing was kept."], lines
    assert not (scrapy.data / contact.CHECK_FILE).exists()
    assert overlay.read(scrapy.data).learnt == {"a.vn": {"dead": [f"{home}a.rss"]}}


def test_a_site_alone_that_does_not_answer_changes_nothing(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    web = newsweb("ip", articles=20, sites=1, **QUIET)
    served = json.loads(web.sites_file.read_text())["sites"]
    known = tmp_path / "known.json"
    known.write_text(
        json.dumps({"sites": [*quick(served), {"id": "gone.vn", "home": "https://gone.invalid/"}]})
    )
    scrapy = Scrapy(tmp_path, {**QUICK, "SITES_FILE": known})
    before = {"checked": "2026-01-02", "dead": ["https://gone.invalid/a.rss"]}
    overlay.write(scrapy.data, overlay.OverlayState(learnt={"gone.vn": before}))
    done = scrapy.run("sites", "check", "--apply")
    assert done.returncode == 0, done.stderr
    assert "gone.vn: robots no answer" in done.stderr, "the table says that it did not answer"
    assert served[0]["id"] in contact.read(scrapy.data)
    assert "gone.vn" not in contact.read(scrapy.data)
    learnt = overlay.read(scrapy.data).learnt
    assert learnt["gone.vn"] == before and served[0]["id"] in learnt
