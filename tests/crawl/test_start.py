"""What must not start says so in one line, by the right exit code, before anything is fetched; what
is malformed is named and left out, and the rest works."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import redis_server
from tests.crawl.harness import Finished, Running, Scrapy, until
from tests.crawl.small import QUICK, QUIET, crawler, redis_servers, stored
from tests.fixtures_newsweb import StartNewsweb
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow

WRONG_USAGE = [
    (
        ("crawl", "news", "-a", "sites=vnexpres.net"),
        "vnexpres.net: unknown site; did you mean vnexpress.net?",
    ),
    (("run", "--sites", "vnexpres.net"), "vnexpres.net: unknown site; did you mean vnexpress.net?"),
    (("crawl", "news", "-a", "since=yesterday"), 'since="yesterday": must be a day (2026-11-01)'),
    (("run", "--since", "2999-01-01"), 'since="2999-01-01" is in the future'),
    (
        ("crawl", "news", "-a", "urls=ftp://a.example/"),
        "'ftp://a.example/' is not an http(s) address",
    ),
    (
        ("crawl", "news", "-a", "site=vnexpress.net"),
        "unknown argument -a site=; the spider takes sites, urls, since",
    ),
    (("crawl", "news", "--fast"), "unknown option --fast"),
    (("run", "--fast"), "unknown option --fast"),
    (("run", "--pages", "many"), "--pages"),
    (("run", "vnexpress.net"), "sites are given as --sites vnexpress.net"),
    (("crawl", "nws"), "unknown spider nws; known: news"),
    (("crawl", "news", "-s", "FRONTIER_LEASE_S=abc"), 'FRONTIER_LEASE_S="abc": must be a number'),
    (
        ("crawl", "news", "-s", "RESOLVE_OVERRIDE=*=10.0.0.1:80"),
        "10.0.0.1, which is not a loopback address",
    ),
]


def refused(folder: Path, *args: str, **settings: Any) -> Finished:
    """A start that ends at once: no traceback, no queue left behind, nothing stored."""
    done = Scrapy(folder, settings).run(*args, timeout=40)
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.stats == {}, "a crawl was started"
    assert not (folder / "data" / "articles.db").exists()
    return done


@pytest.mark.parametrize(
    ("args", "said"), WRONG_USAGE, ids=lambda v: " ".join(v) if isinstance(v, tuple) else ""
)
def test_wrong_usage_is_named(tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    done = refused(tmp_path, *args)
    assert said in done.stderr
    assert done.returncode == 2
    assert not (tmp_path / "data" / "redis").exists()


@pytest.mark.parametrize(
    "command", [("crawl", "news"), ("run", "--no-serve")], ids=["crawl", "run"]
)
def test_unreachable_redis_is_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = refused(tmp_path, *command, REDIS_URL="redis://127.0.0.1:1/0")
    assert (
        len(
            re.findall(
                r"^Redis does not answer at redis://127.0.0.1:1/0: .+$", done.stderr, re.MULTILINE
            )
        )
        == 1
    )
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"USER_AGENT": " "}, "USER_AGENT is empty"),
        ({"SCHEDULER_PERSIST": "False"}, "would empty the queue of the whole fleet"),
        ({"SCHEDULER_FLUSH_ON_START": "True"}, "would empty the queue of the whole fleet"),
        ({"DOWNLOAD_DELAY": "0"}, "DOWNLOAD_DELAY is 0, which is accepted only where every admitted host is in 127.0.0.0/8"),
        ({"DOWNLOAD_DELAY": "-1"}, "DOWNLOAD_DELAY is -1"),
        ({"ARTICLE_STORE": "http://127.0.0.1:1"}, "article store http://127.0.0.1:1: cannot be reached"),
        ({"RAW_STORE": "foo://pages"}, "RAW_STORE=foo://pages cannot be opened"),
        ({"REDIS_SERVER_BIN": "/bin/true"}, "/bin/true is not a redis-server that can be run"),
    ],
    ids=lambda v: "=".join(*v.items()) if isinstance(v, dict) else "",
)  # fmt: skip
def test_start_is_refused(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    done = refused(tmp_path, "crawl", "news", "-a", "urls=https://newscrawler.example/", **settings)
    assert said in done.stderr
    assert done.returncode == 1


def test_redis_that_the_crawl_started_ends_with_it(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=1, articles=3, **QUIET)
    scrapy = crawler(tmp_path, web, CLOSESPIDER_PAGECOUNT=3)
    assert scrapy.run("crawl", "news").returncode == 0
    assert (scrapy.data / "redis" / "start.lock").exists(), "it had one"
    assert redis_servers(scrapy.data) == []


def test_a_limit_of_pages_does_not_count_robots_txt(tmp_path: Path, newsweb: StartNewsweb) -> None:
    web = newsweb("ip", sites=3, articles=3, **QUIET)
    done = crawler(tmp_path, web, CRAWL_PAGES=3).run("crawl", "news")
    assert done.returncode == 0, done.stderr[-2000:]
    pages = [hit for hit in web.hits() if "robots" not in hit["path"]]
    # More than three where others were being fetched when the third was answered.
    assert 3 <= len(pages) <= 6, [hit["path"] for hit in pages]
    assert "closespider_pagecount" in done.stderr


def changed_sites(web: NewswebProcess, folder: Path, **change: Any) -> Path:
    """The web's sites file with the first site's fields replaced."""
    doc = json.loads(web.sites_file.read_text())
    doc["sites"][0].update(change)
    path = folder / "changed.json"
    path.write_text(json.dumps(doc))
    return path


def test_bad_site_is_left_out_and_the_rest_is_crawled(
    tmp_path: Path, newsweb: StartNewsweb
) -> None:
    web = newsweb("ip", sites=2, articles=4, **QUIET)
    bad, good = (row["site"] for row in web.truth() if row["type"] == "site")
    path = changed_sites(web, tmp_path, delay_s="fast")
    scrapy = crawler(tmp_path, web, SITES_FILE=path)
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = re.findall(r"Site left out error=(.+)", done.stderr)
    assert str(path) in line and bad in line and "delay_s" in line
    assert {a.site for a in stored(scrapy.data)} == {good}
    assert {hit["host"] for hit in web.hits()} == {good}
    asked = scrapy.run("crawl", "news", "-a", f"sites={bad}")
    assert asked.returncode == 2 and "unknown site" in asked.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"sites": [', "no JSON at line 1"),
        ('["a"]', "must be an object"),
        (None, "cannot be read"),
    ],
    ids=["cut", "list", "absent"],
)
def test_unreadable_sites_file_is_named(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "sites.json"
    if text is not None:
        path.write_text(text)
    done = refused(tmp_path, "crawl", "news", SITES_FILE=path)
    assert str(path) in done.stderr and said in done.stderr, done.stderr[-500:]
    assert done.returncode == 2


def test_bad_selector_file_is_named_and_nothing_of_it_is_used(
    tmp_path: Path, newsweb: StartNewsweb
) -> None:
    web = newsweb("ip", sites=3, articles=4, **QUIET)
    files = sorted(web.selectors_dir.glob("*.json"))
    assert len(files) == 2, "two of the three sites have a set"
    doc = json.loads(files[0].read_text())
    bad_site = doc["domain"]
    fields = doc["variants"][0]["fields"] if "variants" in doc else doc["fields"]
    fields["title"] = [{"css": "h1["}]
    files[0].write_text(json.dumps(doc))
    scrapy = crawler(tmp_path, web)
    done = scrapy.run("crawl", "news")
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = re.findall(r"Selector set left out error=(.+)", done.stderr)
    assert files[0].name in line and "title" in line and "h1[" in line
    used = {(article.site, bool(article.selector_version)) for article in stored(scrapy.data)}
    good_site = json.loads(files[1].read_text())["domain"]
    assert (bad_site, False) in used and (bad_site, True) not in used, (
        "nothing of the bad set was used"
    )
    assert (good_site, True) in used


def test_a_crawl_that_no_site_answers_is_a_failure(tmp_path: Path) -> None:
    nobody = {
        "RESOLVE_OVERRIDE": "*=127.0.0.1:9",
        "CRAWL_LONGEST_WAIT_S": 1,
        "BACKOFF_START_S": 600,
    }
    scrapy = Scrapy(tmp_path, {**QUICK, **nobody, "CLOSESPIDER_TIMEOUT": 6})
    done = scrapy.run("crawl", "news", "-a", "sites=vnexpress.net", "-o", str(tmp_path / "x.jsonl"))
    assert done.returncode == 1, done.stderr[-2000:]
    assert "Nothing at all could be fetched. Is there a network?" in done.stderr
    assert "cannot connect (connect)" in done.stderr
    assert "Nothing is due now" not in done.stderr


def test_a_start_with_nothing_due_says_what_its_own_sites_wait_for(
    newsweb: StartNewsweb, tmp_path: Path
) -> None:
    web = newsweb("ip", articles=3, sites=2, **QUIET)
    scrapy = crawler(tmp_path, web, PROGRESS="plain")
    assert scrapy.run("crawl", "news").returncode == 0
    site = next(row["host"] for row in web.truth() if row["type"] == "site")
    running = scrapy.start("run", "--no-serve", "--sites", site)
    told = r"nothing is due now at these sites \(0 queued, (\d+) planned\): next (\S+) in \d"
    said = until(lambda: re.search(told, running.text()), "what the site waits for")
    own = len([a for a in stored(scrapy.data) if site in a.url])
    assert said[2] == site and int(said[1]) >= own > 0
    running.interrupt()
    done = running.wait()
    assert done.returncode == 0, done.stderr
    (line,) = re.findall(r"Nothing is due now: ([\d,]+) visited", done.stderr)
    assert line == said[1], "of the chosen site alone, at the end too"


# ---------------------------------------------------------------- Ctrl-C before the crawl
def ends_in_one_line(running: Running, data: Path, said: str) -> None:
    done = running.wait(30)
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip() == said, done.stderr
    until(lambda: not alive(data), "neither a Redis nor its keeper is left behind", timeout=30)


def alive(data: Path) -> list[int]:
    """Processes of a data folder: the server, what starts it, and its keeper."""
    found = set(redis_servers(data))
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(data).encode() in (process / "cmdline").read_bytes():
                found.add(int(process.name))
    return sorted(found)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("crawl", "news"), "Stopped before the crawl began."),
        (("run", "--no-serve"), "Stopped before the crawl began."),
        (("sites", "list"), "Stopped."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_ctrl_c_while_sites_are_read_is_one_line(
    tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    sites = tmp_path / "sites.json"
    os.mkfifo(sites)
    running = Scrapy(tmp_path, {"SITES_FILE": str(sites), "LOG_LEVEL": "WARNING"}).start(*command)
    with sites.open("w"):  # opens when the program has opened it, which then waits for the text
        running.interrupt()
        ends_in_one_line(running, tmp_path / "data", said)


@pytest.mark.parametrize("command", [("crawl", "news"), ("run", "--no-serve")], ids=" ".join)
def test_ctrl_c_while_redis_is_started_leaves_none_behind(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    begun, slow = tmp_path / "begun", tmp_path / "redis-server"
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] || {{ echo > {begun}; sleep 1; }}\nexec {redis_server.find_binary()} "$@"\n'
    )
    slow.chmod(0o755)
    scrapy = Scrapy(tmp_path, {"REDIS_SERVER_BIN": str(slow), "LOG_LEVEL": "WARNING"})
    running = scrapy.start(*command)
    until(begun.exists, "Redis is being started")
    running.interrupt()
    ends_in_one_line(running, scrapy.data, "Stopped before the crawl began.")
