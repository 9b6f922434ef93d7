"""`scrapy frontier` as a user meets it: output, exit codes, an embedded server that is
started and stopped for it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import connect, keys, redis_server
from newscrawler.items import Article, Kind, Outcome
from newscrawler.store import open_store
from newscrawler.store.finished import open_finished
from tests import warm
from tests.redis.helpers import done, ended, frontier, link, links

HOUR = 3_600_000
ROOT = Path(__file__).resolve().parents[2]


def scrapy(data: Path, *args: str) -> subprocess.CompletedProcess[str]:
    own = ("-s", f"DATA_DIR={data}", "-s", "REDIS_URL=")
    return warm.run(["frontier", *args, *own], text=True, timeout=60)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A frontier with two domains, a failed URL and a lease of a dead worker; its
    server is stopped."""
    folder = tmp_path_factory.mktemp("frontier")

    async def fill() -> None:
        client: Any = connect(redis_server.ensure(folder))
        f = await frontier(client, domains=("a.vn", "b.vn"), floor_ms=1000)
        await f.add([*links(4), link("/bad", "b.vn", band=0), link("/2", "b.vn")])
        step = await f.step(2)
        await f.step(
            0,
            [
                done(x, Outcome.FAILED, reason="redirect loop")
                for x in step.leases
                if x.domain == "b.vn"
            ],
        )
        await fill_c(client)
        await client.aclose()

    async def fill_c(client: Any) -> None:
        """c.vn: a home page that led to an article, to a page that is queued, one that
        failed, one that is refused."""
        f = await frontier(client, "w2", domains=("c.vn",), pattern_budget=1000, retry_ms=HOUR)
        home = link("/", "c.vn", kind=Kind.HOME)
        await f.add([home])
        (lease,) = [x for x in (await f.step(9)).leases if x.domain == "c.vn"]
        names = {
            "/bai-1.html": Kind.ARTICLE,
            "/loi.html": Kind.ARTICLE,
            "/an.html": Kind.ARTICLE,
            "/muc/2": Kind.PAGE,
        }
        found = [
            link(path, "c.vn", kind=kind, parent=home.url_id, depth=1, band=i)
            for i, (path, kind) in enumerate([*names.items()][:3])
        ]
        late = link("/muc/2", "c.vn", kind=Kind.PAGE, parent=home.url_id, depth=1, score=9.0)
        await f.step(0, [done(lease, links=[*found, late])], [ended(lease)])
        ends: dict[str, dict[str, Any]] = {
            "/bai-1.html": {"outcome": Outcome.DONE, "raw_ref": "w.warc.gz:10:20"},
            "/loi.html": {"outcome": Outcome.RETRY, "reason": "status 500", "status": 500},
            "/an.html": {"outcome": Outcome.REFUSED, "reason": "noindex"},
        }
        for _ in range(3):
            (lease,) = [x for x in (await f.step(1)).leases if x.domain == "c.vn"]
            await f.step(0, [done(lease, **ends[lease.url[len("https://c.vn") :]])], [ended(lease)])
        store = open_store("", folder)
        await store.open()
        await store.put(
            [
                Article(
                    id=found[0].url_id.hex(), url=found[0].url, site="c.vn", title="Bài một", content="Nội dung.",
                    selector_version="c.vn@3", raw_ref="w.warc.gz:10:20",
                )
            ]
        )  # fmt: skip
        await store.close()
        bucket, field = keys.finished(0, found[2].url_id)  # /an.html has gone to the archive
        finished = open_finished("", folder, index="articles")
        await finished.put([(found[2].url_id, await client.hget(bucket, field))])
        await finished.close()
        await client.hdel(bucket, field)

    asyncio.run(fill())
    assert redis_server.stop_if_last(folder)
    yield folder
    redis_server.stop(folder)


def test_report_counts_and_names(data: Path) -> None:
    table = scrapy(data, "report")
    assert table.returncode == 0, table.stderr
    assert table.stdout.splitlines()[0].split()[:4] == ["DOMAIN", "CLASS", "QUEUED", "WAITING"]
    assert (
        "6 queued, 1 wait for their next visit, 1 leased, 1 in quarantine, 3 domains"
        in table.stderr
    )
    rows = [
        json.loads(line) for line in scrapy(data, "report", "a.vn", "--json").stdout.splitlines()
    ]
    assert [(row["domain"], row["queued"], row["leased"]) for row in rows] == [("a.vn", 3, 1)]
    assert not (data / "redis" / "redis.sock").exists(), (
        "the command stops the server that it started"
    )


def test_verbs_act_and_show_the_result(data: Path) -> None:
    assert "paused" in scrapy(data, "pause", "b.vn").stdout
    assert "paused" not in scrapy(data, "resume", "b.vn").stdout
    assert (
        scrapy(data, "delay", "b.vn", "--seconds", "12").stdout.splitlines()[1].split()[5] == "12s"
    )
    listed = scrapy(data, "quarantine", "list", "--json")
    assert json.loads(listed.stdout)["url"] == "https://b.vn/bad"
    asked = scrapy(data, "purge", "a.vn")
    assert (asked.returncode, asked.stdout) == (
        1,
        "",
    ) and "3 URLs would be thrown away" in asked.stderr
    assert scrapy(data, "purge", "a.vn", "--yes").stdout == "a.vn: 3 URLs thrown away\n"


def test_the_help_alone_names_every_verb_and_its_options() -> None:
    from newscrawler.commands.frontier import VERBS

    done = warm.run(["frontier", "--help"], text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    for verb, (usage, _) in VERBS.items():
        assert f"\n  {verb} {usage}" in shown, verb
        for option in re.findall(r"--[a-z]+", usage):
            assert re.search(rf"^  {option} ", shown, re.M), f"{option} of {verb} is not explained"


def test_quota_class_and_block_say_what_they_did(data: Path) -> None:
    shown = scrapy(data, "quota", "b.vn", "--pages", "1", "--per", "2h").stdout
    assert "quota: 0 of 1 in 2h" in shown
    assert (
        "quota: 0 of 7 in this crawl"
        in scrapy(data, "quota", "B.vn", "--pages", "7", "--per", "crawl").stdout
    )
    assert "quota: 0 of 7 in this crawl" in scrapy(data, "quota", "b.vn").stdout
    assert "quota: none" in scrapy(data, "quota", "https://b.vn/x", "--pages", "policy").stdout
    assert "class: low, set by the operator" in scrapy(data, "class", "b.vn", "--to", "low").stdout
    assert (
        "class: mid, chosen in the sites file"
        in scrapy(data, "class", "b.vn", "--to", "policy").stdout
    )
    blocked = scrapy(data, "block", "b.vn", "--until", "2h").stdout.splitlines()[1].split()
    assert blocked[6] == "2h" and blocked[-1] == "blocked"
    assert "delay: 1 s, by floor" in scrapy(data, "delay", "b.vn", "--seconds", "0").stdout
    assert scrapy(data, "resume", "b.vn").returncode == 0


def test_audit_by_its_exit_code(data: Path) -> None:
    audit = scrapy(data, "audit", "b.vn", "--last", "7d")
    assert audit.returncode == 0 and "fetches in the log since" in audit.stdout
    assert json.loads(scrapy(data, "audit", "b.vn", "--json").stdout)["violations"] == []


def test_why_answers_for_any_url(data: Path) -> None:
    def why(url: str) -> str:
        shown = scrapy(data, "why", url)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    article = why("https://c.vn/bai-1.html")
    assert "finished as DONE, visited" in article
    assert "found on: https://c.vn/" in article, "the page that linked to it"
    assert (
        "article selector version: c.vn@3" in article
        and "article raw ref: w.warc.gz:10:20" in article
    )
    assert "article store: " in article and "robots: not read yet" in article
    home = why("https://c.vn/")
    assert (
        "comes again in" in home and "found on: a seed" in home and "article: none stored" in home
    )
    queued = why("https://c.vn/muc/2")
    assert (
        "in the queue" in queued
        and "found on: https://c.vn/" in queued
        and "1 of 1000 of this shape today" in queued
    )
    loi = why("https://c.vn/loi.html")
    assert (
        len(re.findall(r"^  fetched: 20\d\d-\S+, status 200 after [\d.]+ s$", loi, re.MULTILINE))
        == 1
    )
    assert "tries: 1" in loi and "after RETRY" in loi
    failed = why("https://b.vn/bad")
    assert "quarantined as FAILED(redirect loop)" in failed and "taken again in 7d" in failed
    assert "being fetched by w1" in why("https://a.vn/tin/000000") or "being fetched by w1" in why(
        "https://a.vn/1"
    )
    archived = why("https://c.vn/an.html")
    assert "finished as REFUSED(noindex)" in archived and "found on: https://c.vn/" in archived
    assert "does not know this URL" in why("https://c.vn/never-seen")
    assert "no enabled site has its host" in why("https://nowhere.vn/x")
    assert "refused (trap)" in why("https://c.vn/lich/2026/11/21")
    record = json.loads(scrapy(data, "why", "https://c.vn/bai-1.html", "--json").stdout)
    assert (
        record["article"]["selector_version"] == "c.vn@3" and record["record"]["outcome"] == "DONE"
    )


def test_quarantine_is_replayed_and_dropped(data: Path) -> None:
    asked = scrapy(data, "quarantine", "drop", "b.vn")
    assert asked.returncode == 1 and "1 URLs would be forgotten" in asked.stderr
    assert "1 of 1 URLs queued again" in scrapy(data, "quarantine", "replay", "b.vn").stdout
    assert "nothing is in quarantine of b.vn" in scrapy(data, "quarantine", "list", "b.vn").stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["why", "bai-viet"], 2, "is no URL"),
        (["quota", "a.vn", "--pages", "many"], 2, "a number or policy is needed"),
        (["quota", "a.vn", "--pages", "5", "--per", "week"], 2, "a span of time like"),
        (["quota", "nope.vn", "--pages", "5"], 1, "lists its domains"),
        (["audit", "nope.vn"], 1, "the frontier does not know nope.vn"),
        (["nonsense"], 2, "unknown verb 'nonsense'"),
        (["pause"], 2, "which domain?"),
        (["block", "a.vn"], 2, "until when?"),
        (["block", "a.vn", "--until", "soon"], 2, "a time like 2h"),
        (["report", "nope.vn"], 1, "the frontier does not know nope.vn"),
        (["report", "--top", "-1"], 2, "0 or more is needed"),
        (["pause", "a.vn", "--until", "2h"], 2, "--until is an option of block, not of pause"),
        (["quarantine", "list", "nope.vn"], 1, "the frontier does not know nope.vn"),
    ],
)
def test_wrong_use_is_one_clear_line(data: Path, args: list[str], code: int, message: str) -> None:
    result = scrapy(data, *args)
    assert result.returncode == code
    assert message in result.stderr and "Traceback" not in result.stderr


def test_a_slip_in_one_name_changes_none_of_the_domains(data: Path) -> None:
    result = scrapy(data, "pause", "a.vn", "nope.vn", "nada.vn")
    assert result.returncode == 1 and "does not know nope.vn, nada.vn" in result.stderr
    (row,) = [
        json.loads(line) for line in scrapy(data, "report", "a.vn", "--json").stdout.splitlines()
    ]
    assert row["note"] != "paused"


def test_without_a_frontier_it_says_so(tmp_path: Path) -> None:
    result = scrapy(tmp_path / "none", "report")
    assert result.returncode == 1 and "there is no frontier in" in result.stderr
    assert not (tmp_path / "none").exists(), "looking must not create one"
