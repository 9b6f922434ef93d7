"""docs/extending.md: the classes of the page are run as they stand there, by its own commands."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.crawl.harness import ROOT, TEST_SETTINGS
from tests.crawl.small import QUICK, QUIET
from tests.newsweb.process import NewswebProcess

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
CLASSES = "\n\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S))
COMMANDS = [shlex.split(line) for line in re.findall(r"^    (scrapy .*)$", PAGE, re.M)]


def settings_of(command: list[str]) -> list[str]:
    return command[command.index("-s") :]


#: Everything at once, as each command of the page has it.
OF_THE_PAGE = [
    part for command in COMMANDS if command[1] == "crawl" for part in settings_of(command)
]


@dataclass
class Project:
    """A folder with a scrapy.cfg and the page's ``mynews.py``, as a user has it."""

    folder: Path
    settings: list[str]

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SCRAPY_", "REDIS_URL"))}
        return subprocess.run(
            [sys.executable, "-m", "scrapy", *args, *self.settings],
            cwd=self.folder,
            env={**env, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
        )


def project(folder: Path, settings: dict[str, Any]) -> Project:
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = newscrawler.settings\n")
    (folder / "mynews.py").write_text(CLASSES, encoding="utf-8")
    settings = {**TEST_SETTINGS, "DATA_DIR": folder / "data", **settings}
    return Project(folder, [part for k, v in settings.items() for part in ("-s", f"{k}={v}")])


class MailServer:
    """Takes mail by SMTP and keeps it."""

    def __init__(self) -> None:
        self.mails: list[str] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        while line := (await reader.readline()).decode().strip():
            if line.upper() == "DATA":
                writer.write(b"354 go on\r\n")
                self.mails.append((await reader.readuntil(b"\r\n.\r\n")).decode())
            writer.write(b"221 bye\r\n" if line.upper() == "QUIT" else b"250 ok\r\n")
            await writer.drain()
        writer.close()


@dataclass
class Crawled:
    project: Project
    done: subprocess.CompletedProcess[str]
    mails: list[str]

    def articles(self) -> dict[str, dict[str, Any]]:
        files = (self.project.folder / "articles").glob("*.json")
        return {path.stem: json.loads(path.read_text("utf-8")) for path in files}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """One crawl with all classes of the page, of which a monitor fails."""
    folder = tmp_path_factory.mktemp("mynews")
    web = NewswebProcess("ip", tmp_path_factory.mktemp("web"), sites=4, articles=6, **QUIET)
    mail = MailServer()

    async def crawl() -> Crawled:
        server = await asyncio.start_server(mail.answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings = {
            **QUICK,
            "SITES_FILE": web.sites_file,
            "SELECTORS_DIR": web.selectors_dir,
            "SPIDERMON_ENABLED": True,
            "MONITOR_MIN_ARTICLES": 1_000,
        }
        made = project(folder, settings)
        own = [part.replace("127.0.0.1:25", f"127.0.0.1:{port}") for part in OF_THE_PAGE]
        made.settings += own
        done = await asyncio.to_thread(made.run, "crawl", "news")
        server.close()
        return Crawled(made, done, mail.mails)

    try:
        yield asyncio.run(crawl())
    finally:
        web.stop()


def test_the_page_has_a_command_for_each_class() -> None:
    named = re.findall(r"mynews\.(\w+)", " ".join(part for line in COMMANDS for part in line))
    assert set(named) == set(re.findall(r"^class (\w+)", CLASSES, re.M))
    assert len(set(named)) == 6


@pytest.mark.long
def test_articles_are_in_the_store_of_the_page(crawled: Crawled) -> None:
    assert crawled.done.returncode == 0, crawled.done.stderr[-3000:]
    articles = crawled.articles()
    assert len(articles) >= 10, crawled.done.stderr[-3000:]
    assert not (crawled.project.folder / "data" / "articles.db").exists()
    (search,) = (command for command in COMMANDS if command[1] == "search")
    word = search[2].casefold()
    wanted = [i for i, article in articles.items() if word in article["title"].casefold()]
    assert wanted, f"no title with {word}: {[a['title'] for a in articles.values()]}"
    found = crawled.project.run("search", search[2], "--json", "--limit", "100")
    assert found.returncode == 0, found.stderr
    assert sorted(json.loads(line)["id"] for line in found.stdout.splitlines()) == sorted(wanted)


def test_each_stored_article_is_an_event_of_the_sink(crawled: Crawled) -> None:
    lines = (crawled.project.folder / "events.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    new = {event["id"]: event["title"] for event in events if event["type"] == "article.new"}
    assert new == {i: article["title"] for i, article in crawled.articles().items()}


def test_the_rule_states_the_section(crawled: Crawled) -> None:
    by_rule = 0
    for article in crawled.articles().values():
        first, slash, _ = urlsplit(article["url"]).path.strip("/").partition("/")
        if slash and not article["origins"]["section"].startswith("selector:"):
            assert article["section"] == first.replace("-", " ").capitalize()
            assert article["origins"]["section"] == "rule:SectionOfAddress"
            by_rule += 1
    assert by_rule, "no article has its section in its address"


def test_the_failed_monitor_is_mailed_once(crawled: Crawled) -> None:
    assert crawled.mails, crawled.done.stderr[-4000:]
    (mail,) = crawled.mails
    assert "To: news@localhost" in mail and "1 monitors failed" in mail
    assert "of at least 1000" in mail


def test_the_suite_of_the_page_looks_at_the_fleet(crawled: Crawled) -> None:
    (monitor,) = (command for command in COMMANDS if command[1] == "monitor")
    least = [part.replace("MIN_ITEMS=0", "MIN_ITEMS=100000") for part in settings_of(monitor)]
    done = crawled.project.run("monitor", *least, "-s", "MONITOR_DISK_FREE_BYTES=1", "--json")
    assert done.returncode == 1, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["subject"] for row in rows if row["kind"] == "monitor"] == [
        "FleetSuite: Extracted Items Monitor/test_stat_monitor"
    ], done.stderr


def test_the_embedder_of_the_page_is_the_one_that_is_used(tmp_path: Path) -> None:
    (doctor,) = (command for command in COMMANDS if command[1] == "doctor")
    made = project(tmp_path, {"SITES_FILE": ROOT / "sites.json", "SEMANTIC": "auto"})
    made.settings += settings_of(doctor)
    done = made.run("doctor", "--json")
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    (found,) = [finding for finding in findings if finding["check"] == "search by meaning"]
    assert (found["state"], found["found"]) == ("ok", "on: hashed-words 1 (256)")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("EMBEDDER", "mynews.NoSuchEmbedder"),
        pytest.param("EVENT_SINKS", "mynews.Nothing", marks=pytest.mark.long),
        pytest.param("METADATA_RULES", "nowhere.Rule", marks=pytest.mark.long),
        ("ALERT_ACTIONS", "broken.Mail"),
        pytest.param("ARTICLE_STORES", '{"x": "mynews"}', marks=pytest.mark.long),
    ],
)
def test_a_class_that_cannot_be_imported_is_said_before_the_crawl(
    tmp_path: Path, setting: str, value: str
) -> None:
    made = project(tmp_path, {setting: value})
    (tmp_path / "broken.py").write_text("1 / 0\n")
    done = made.run("crawl", "news")
    assert done.returncode != 0
    assert f"{setting}: " in done.stderr and "cannot be imported" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()
