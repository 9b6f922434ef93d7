"""The report of a day, over what a fleet wrote into a real Redis and a real store."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lxml import html as lxml_html

from newscrawler.api import day_report as shown
from newscrawler.crawl.day_report import NothingKnown, day_report
from newscrawler.crawl.opening import open_selector_store
from newscrawler.fleet.alarms import Verdict
from newscrawler.fleet.incidents import Incidents
from newscrawler.fleet.registry import Registry
from newscrawler.frontier import connect
from newscrawler.items import Article
from newscrawler.selectorsets.drift import Alarm
from newscrawler.store.sqlite import LocalStore
from tests import warm
from tests.crawl.fleet_day import START, Fleet
from tests.crawl.small import Queue

DAY = datetime.fromtimestamp(START / 1000, UTC).date()


@dataclass
class Made:
    """A day's report and where it came from."""

    report: dict[str, Any]
    folder: Path
    redis_url: str


async def make_day(redis_url: str, folder: Path) -> dict[str, Any]:
    client: Any = connect(redis_url, single=False)
    try:
        await client.flushall()
        fleet = Fleet(client, folder, 5, seed=3)
        await fleet.begin()
        store = LocalStore(folder / "articles.db")
        await store.put([_article(n, "site0.vn", hours=n) for n in (1, 5, 23, -1, 25)])
        await store.close()
        for hour in range(48):
            fleet.faults.silent = {"site4.vn"}
            fleet.faults.without_authors = {"site2.vn"}
            fleet.faults.challenged = {"site1.vn"} if hour in (20, 21) else set()
            fleet.faults.late = hour in (30, 31)
            await fleet.work(30)
        await _more(fleet)
        return await day_report(fleet.settings(LLM_PRICE_IN=2.0), client, DAY, UTC)
    finally:
        await client.aclose()


async def _more(fleet: Fleet) -> None:
    """What the day had beside its pages."""
    noon = START + 12 * 3_600_000
    incidents = Incidents(fleet.r)
    for at in (noon, noon + 120_000):
        await incidents.note(at, [Verdict("site_silent", "site4.vn", "0 <b>new</b> articles")], ())
    await incidents.note(START + 86_400_001, [Verdict("full", "disk", "of the next day")], ())
    selectors = open_selector_store(fleet.settings(), fleet.r)
    selectors._clock = lambda: noon / 1000
    await selectors.note_alarm(Alarm("site4.vn", "drift", "news", "content", noon, 12))
    tokens = {"llm/calls": 3, "llm/tokens/in": 40_000, "llm/tokens/out": 2_000}
    await Registry(fleet.r).add(tokens, {}, noon)


def _article(number: int, site: str, hours: int) -> Article:
    at = datetime.fromtimestamp(START / 1000, UTC) + timedelta(hours=hours)
    return Article(
        f"{number + 50:032x}", f"https://{site}/{number}", site, f"Tin số {number}", f"Bài {number}.", published=at
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A Redis of its own: other modules empty that of the session."""
    folder = tmp_path_factory.mktemp("report")
    queue = Queue(folder / "queue")
    try:
        yield Made(asyncio.run(make_day(queue.url, folder)), folder, queue.url)
    finally:
        queue.close()


def rows(made: Made) -> dict[str, dict[str, Any]]:
    return {row["site"]: row for row in made.report["sites"]}


def test_articles_stand_beside_what_is_usual(made: Made) -> None:
    report, sites = made.report, rows(made)
    assert (report["day"], report["is_over"]) == (DAY.isoformat(), True)
    silent, well = sites["site4.vn"], sites["site3.vn"]
    assert (silent["new"], silent["state"]) == (0, "far fewer") and 300 < silent["usual"] < 500
    assert well["state"] == "as usual" and well["new"] == well["came"]
    assert 0.7 < well["new"] / well["usual"] < 1.3
    assert report["sites"][0]["site"] == "site4.vn", "strange ones first"
    assert report["articles"]["new"] == sum(row["new"] for row in sites.values()) > 400
    assert len(report["hours"]) == 24
    assert sum(row["new"] for row in report["hours"]) == report["articles"]["came"]
    assert report["hours"][8]["usual"] > report["hours"][2]["usual"]


def test_the_store_is_asked_what_can_be_found(made: Made) -> None:
    assert made.report["articles"]["stored"] == 3 and rows(made)["site0.vn"]["stored"] == 3
    assert rows(made)["site3.vn"]["stored"] == 0


def test_quality_and_failures(made: Made) -> None:
    report, sites = made.report, rows(made)
    fields = {row["field"]: row for row in report["fields"]}
    assert fields["title"]["share"] == 1 and 0.75 < fields["authors"]["before"] < 0.85
    assert fields["authors"]["share"] < fields["authors"]["before"]
    assert sites["site2.vn"]["fields"]["authors"] == 0
    causes = {row["cause"]: row for row in report["failures"]}
    assert set(causes) == {"RETRY(http 503)", "CHALLENGE(cloudflare)"}
    assert list(causes["CHALLENGE(cloudflare)"]["sites"]) == ["site1.vn"]
    assert sites["site1.vn"]["challenges"] == causes["CHALLENGE(cloudflare)"]["visits"]
    total = report["freshness"]["stages"]["total"]
    assert total["p50_s"] < 700 and report["freshness"]["late"] > 10
    assert report["freshness"]["stages"]["discovered"]["articles"] == report["articles"]["new"]
    assert 0 < report["articles"]["duplicate_share"] < 0.1


def test_incidents_sets_and_models_of_the_day(made: Made) -> None:
    [incident] = made.report["incidents"]
    assert (incident["kind"], incident["subject"]) == ("site_silent", "site4.vn")
    [event] = made.report["selectors"]
    assert event["domain"] == "site4.vn" and event["what"] == "alarm: drift"
    models = made.report["models"]
    assert (models["calls"], models["tokens_in"], models["money"]) == (3, 40_000, 0.08)


def test_times_are_those_of_the_day_and_say_their_zone(made: Made) -> None:
    def at(zone: str) -> tuple[str, str, str]:
        done = run(made, "--day", str(DAY), "--json", READER_ZONE=zone)
        report = json.loads(done.stdout)
        return report["incidents"][0]["at"], report["made"], shown.text(report)

    utc, _, _ = at("UTC")
    local, built, text = at("Asia/Bangkok")
    assert datetime.fromisoformat(utc) == datetime.fromisoformat(local)
    assert local.endswith("+07:00") and built.endswith("+07:00")
    assert f"{local[11:16]} +07:00" in text and "UTC" not in text


def test_yesterday_is_a_day(made: Made) -> None:
    assert "nothing is known of" in run(made, "--day", "yesterday").stderr


def test_the_text_says_it(made: Made) -> None:
    text = shown.text(made.report)
    assert text.startswith(f"{DAY}: {made.report['articles']['new']:,} new articles")
    assert re.search(r"^site4\.vn +0 +\d+ .*far fewer", text, re.M), text
    for word in ("FRESHNESS", "FIELDS", "FAILURES", "INCIDENTS", "SELECTOR SETS", "42,000 tokens"):
        assert word in text, text
    assert re.search(r"^\d\d:\d\d UTC +site4\.vn +alarm: drift +template news", text, re.M), text


def test_the_page_is_one_file_without_scripts(made: Made) -> None:
    page = shown.html(made.report)
    tree = lxml_html.fromstring(page)
    assert not tree.xpath("//script | //link | //img | //iframe | //@onclick")
    assert not re.search(r"(src|href)=|@import|url\(", page)
    assert "0 &lt;b&gt;new&lt;/b&gt; articles" in page, "what sites wrote is text"
    assert len(tree.xpath("//figure//svg")) == 2
    bars = tree.xpath("//figure[1]//rect[@class='c0']")
    assert len(bars) == sum(row["new"] > 0 for row in made.report["hours"])
    made_at = made.report["made"]
    assert f"Made {made_at[:10]}, {made_at[11:16]} UTC by newscrawler." in page
    assert made_at not in page and "drift, drift" not in page
    listed = [" ".join(row.text_content().split()) for row in tree.xpath("//tbody/tr")]
    assert any(row.startswith("site4.vn 0 usual") and "far fewer" in row for row in listed), listed


# ---------------------------------------------------------------- the command
def run(made: Made, *args: str, **env: str) -> Any:
    more = {
        "DATA_DIR": str(made.folder), "SITES_FILE": str(made.folder / "sites.json"),
        "REDIS_URL": made.redis_url, "READER_ZONE": "UTC",
    }  # fmt: skip
    return warm.run(["report", *args], env={**os.environ, **more, **env}, text=True, timeout=120)


def test_the_command_prints_writes_and_refuses(made: Made, tmp_path: Path) -> None:
    plain = run(made, "--day", str(DAY))
    assert plain.returncode == 0 and "far fewer" in plain.stdout, plain.stderr
    told = json.loads(run(made, "--day", str(DAY), "--json").stdout)
    assert told["articles"] == made.report["articles"]
    page = tmp_path / "day.html"
    assert run(made, "--day", str(DAY), "-o", str(page)).stderr == f"{page} is written\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    for args, code, said in (
        (["--day", "1999-01-01"], 1, "nothing is known of 1999-01-01"),
        (["--day", "someday"], 2, "not a day"),
        (["-o", "day.pdf"], 2, "must end with .html, .json, .txt"),
        (["--mail", "desk"], 2, "--mail desk: must be an address"),
        (["now"], 2, "unknown argument"),
        (["--day", str(DAY), "-o", "/nowhere/x.html"], 1, "/nowhere/x.html: No such file"),
        (["--day", str(DAY), "--mail", "a@b.vn", "-s", "MAIL_PORT=1"], 1, "not sent: mail server"),
    ):  # fmt: skip
        done = run(made, *args)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert said in done.stderr, done.stderr


def test_a_store_that_is_away_costs_no_report(made: Made) -> None:
    done = run(made, "--day", str(DAY), ARTICLE_STORE="http://127.0.0.1:1")
    assert done.returncode == 0 and "The article store was not asked" in done.stdout


async def test_it_is_mailed_with_text_page_and_file(made: Made, mailbox: Any) -> None:
    args = ["--day", str(DAY), "--mail", "desk@a.vn", "-s", "MAIL_HOST=127.0.0.1"]
    done = await asyncio.to_thread(run, made, *args, "-s", f"MAIL_PORT={mailbox.port}")
    assert done.returncode == 0, done.stderr
    [mail] = mailbox.mails
    assert mail["To"] == "desk@a.vn" and f"{DAY}: " in mail["Subject"]
    parts = {part.get_content_type(): part for part in mail.walk()}
    assert "far fewer" in mail.get_body(("plain",)).get_content()
    assert "<svg" in mail.get_body(("html",)).get_content()
    [file] = list(mail.iter_attachments())
    assert file.get_filename() == f"newscrawler-{DAY}.html" and "text/html" in parts


async def test_a_day_without_workers_is_not_known(r: Any, tmp_path: Path) -> None:
    fleet = Fleet(r, tmp_path, 1, seed=1)
    with pytest.raises(NothingKnown, match="nothing is known of 2026-01-01"):
        await day_report(fleet.settings(), r, date(2026, 1, 1), UTC)
