"""`scrapy selectors` as a user runs it, on an embedded Redis of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from evaluation import selector_bench
from newscrawler.crawl import selector_admin
from newscrawler.extraction.context import PageContext
from tests.crawl.harness import Finished, Scrapy
from tests.fixtures_llm import ScriptedLLM, dumps
from tests.fixtures_selectors import made_pages
from tests.unit.selectorsets.test_store import a_set, write

pytestmark = pytest.mark.slow


@pytest.fixture
def scrapy(tmp_path: Path, selector_redis_url: str, selector_redis: Any) -> Scrapy:
    (tmp_path / "selectors").mkdir()
    return Scrapy(
        tmp_path, {"SELECTORS_DIR": str(tmp_path / "selectors"), "REDIS_URL": selector_redis_url}
    )


def ok(done: Finished) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def test_life_of_a_set_by_commands(scrapy: Scrapy, tmp_path: Path) -> None:
    folder = tmp_path / "selectors"
    write(folder, "a.vn", a_set())
    write(folder, "b.vn", a_set("b.vn", state="probation"))
    write(folder, "c.vn", "{")
    loaded = scrapy.run("selectors", "load", "--json")
    assert loaded.returncode == 1 and "c.vn.json: (the whole file): not JSON" in loaded.stderr
    assert json.loads(loaded.stdout)["new"] == ["a.vn", "b.vn"]
    (folder / "c.vn.json").unlink()

    listed = {row["domain"]: row for row in ok(scrapy.run("selectors", "list", "--json"))}
    assert (listed["a.vn"]["state"], listed["a.vn"]["active"]) == ("active", "1")
    assert (listed["b.vn"]["state"], listed["b.vn"]["probation"], listed["b.vn"]["active"]) == (
        "probation",
        "1",
        None,
    )
    assert (
        ok(scrapy.run("selectors", "show", "b.vn", "--json"))[0]["provenance"]["made_by"]
        == "person"
    )

    assert ok(scrapy.run("selectors", "approve", "b.vn", "--json"))[0]["version"] == "1"
    ok(scrapy.run("selectors", "pin", "b.vn", "--json"))
    write(folder, "b.vn", a_set("b.vn", css="h1.changed"))
    ok(scrapy.run("selectors", "load", "--json"))
    (row,) = [r for r in ok(scrapy.run("selectors", "list", "--json")) if r["domain"] == "b.vn"]
    assert (row["active"], row["versions"], row["pinned"]) == ("1", 2, True)
    assert (
        ok(scrapy.run("selectors", "approve", "b.vn", "--version", "2", "--json"))[0]["version"]
        == "2"
    )
    assert ok(scrapy.run("selectors", "rollback", "b.vn", "--json"))[0]["version"] == "1"
    ok(scrapy.run("selectors", "disable", "b.vn", "--json"))
    events = [e["what"] for e in ok(scrapy.run("selectors", "history", "b.vn", "--json"))]
    assert events[:3] == ["disabled", "active", "active"] and events[-1] == "added"


async def test_a_set_is_tried_on_page_files(scrapy: Scrapy, tmp_path: Path) -> None:
    fields = {
        "title": [{"css": "h1.title-detail"}],
        "content": {
            "root": ["p.description, article.fck_detail"],
            "exclude": ["figcaption", "div[data-component-type]", "article article"],
        },
    }
    doc = a_set("vnexpress.net", variants=[{"template": "article", "fields": fields}])
    write(tmp_path / "selectors", "vnexpress.net", doc)
    pages = made_pages("vnexpress.net", 9)
    files = []
    for number, page in enumerate(pages):
        files.append(str(tmp_path / f"{number}.html"))
        Path(files[-1]).write_bytes(page.body)
    *tried, judged = ok(scrapy.run("selectors", "test", "vnexpress.net", *files, "--json"))
    assert [row["title"] for row in tried] == [p.story.first.title for p in pages]
    assert judged["passed"] is True and judged["gate"]["pages"] >= 8
    broken = a_set("vnexpress.net", css="h1.no-such-class")
    write(tmp_path / "selectors", "vnexpress.net", broken)
    failed = scrapy.run("selectors", "test", "vnexpress.net", *files)
    assert failed.returncode == 1 and "NOT passed" in failed.stdout


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ((), 2, "an action is missing"),
        (("destroy",), 2, "unknown action 'destroy'"),
        (("show",), 2, "selectors show DOMAIN"),
        (("show", "a.vn", "b.vn"), 2, "selectors show DOMAIN"),
        (("show", "x.vn"), 1, "no selector set for x.vn"),
        (("rollback", "x.vn"), 1, "no selector set for x.vn"),
        (("history", "x.vn"), 1, "nothing is known of x.vn"),
        (("disable", "x.vn"), 1, "no selector set"),
        (("test", "x.vn", "no-such-file.html"), 1, "x.vn"),
        (("bench",), 2, "--base-url"),
        (("edit", "x.vn", "no-such-file.json"), 1, "no-such-file.json"),
        (("repair", "x.vn"), 1, "nothing of x.vn waits for a repair"),
    ],
)
async def test_wrong_use_is_one_clear_line(
    scrapy: Scrapy, args: tuple[str, ...], code: int, says: str
) -> None:
    done = scrapy.run("selectors", *args)
    assert (done.returncode, says in done.stdout + done.stderr) == (code, True), (
        done.stdout + done.stderr
    )
    assert "Traceback" not in done.stderr


def test_redis_that_is_away_is_one_clear_line(tmp_path: Path) -> None:
    done = Scrapy(tmp_path, {"REDIS_URL": "redis://127.0.0.1:1/0"}).run("selectors", "list")
    assert done.returncode == 1 and "Redis does not answer" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


async def test_edit_makes_a_version_that_is_not_used_yet(scrapy: Scrapy, tmp_path: Path) -> None:
    write(tmp_path / "selectors", "a.vn", a_set())
    ok(scrapy.run("selectors", "load", "--json"))
    (doc,) = ok(scrapy.run("selectors", "show", "a.vn", "--json"))
    wrong = tmp_path / "wrong.json"
    wrong.write_text(
        json.dumps({**doc, "variants": [{"template": "t", "fields": {"title": [{"css": "//h1"}]}}]})
    )
    refused = scrapy.run("selectors", "edit", "a.vn", str(wrong))
    assert refused.returncode == 1 and "a.vn: variants[0]" in refused.stderr, refused.stderr
    doc["variants"][0]["fields"]["title"] = [{"css": "h1.other"}]
    right = tmp_path / "right.json"
    right.write_text(json.dumps(doc))
    done = scrapy.run("selectors", "edit", "a.vn", str(right), "--json")
    assert ok(done)[0] == {"domain": "a.vn", "did": "added", "version": "2"}
    assert "Validation needs 6 distinct article pages; these are 0" in done.stderr
    (row,) = ok(scrapy.run("selectors", "list", "--json"))
    assert (row["active"], row["versions"]) == ("1", 2)
    (edited,) = ok(scrapy.run("selectors", "show", "a.vn", "--version", "2", "--json"))
    assert (edited["provenance"]["made_by"], edited["provenance"]["parent"]) == ("person", 1)
    assert edited["provenance"]["source"] == "edited from version 1"


@pytest.mark.long
async def test_bench_counts_what_the_model_gave_and_names_a_scripted_one(
    selector_redis: Any, scripted_llm: ScriptedLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {
        "title": ["h1.title-detail"],
        "published": [],
        "authors": [],
        "content_root": ["p.description, article.fck_detail"],
        "content_exclude": [
            "p.Image",
            "figure",
            "div[data-component-type]",
            ".width_common",
            "table",
        ],
    }
    scripted_llm.script = [dumps(answer)]
    pages = [
        selector_admin.Stored(p.url, p.body, p.fetched) for p in made_pages("vnexpress.net", 20)
    ]
    settings = Settings()
    settings.setmodule("newscrawler.settings")
    settings.set("LLM_PRICE_IN", 2.0)

    def context_of(url: str, fetched: Any) -> PageContext:
        return PageContext(language="vi", zone="Asia/Ho_Chi_Minh", fetched=fetched)

    server = (scripted_llm.base_url, "scripted")
    row = await selector_bench.measure(
        settings, selector_redis, "vnexpress.net", pages, context_of, *server
    )
    assert row is not None and row["passed"], row
    assert (row["pages_unseen"], row["calls"]) == (8, len(scripted_llm.requests))
    assert (row["tokens_in"], row["cost"]) == (1000 * row["calls"], round(0.002 * row["calls"], 6))
    assert row["fields"]["title"] == {"right": 8, "of": 8}
    selector_bench.show([row], *server, as_json=False)
    assert "NOT figures of any model" in capsys.readouterr().out
    again = await selector_bench.measure(
        settings, selector_redis, "vnexpress.net", pages, context_of, *server
    )
    assert again is not None and again["calls"] > 0, (
        "a measurement is never answered from the cache"
    )
    assert (
        await selector_bench.measure(
            settings, selector_redis, "x.vn", pages[:10], context_of, *server
        )
        is None
    )


async def test_lint_names_what_is_brittle(scrapy: Scrapy, tmp_path: Path) -> None:
    write(tmp_path / "selectors", "a.vn", a_set(css="h1.sc-bdvvtL"))
    done = scrapy.run("selectors", "lint", "--json")
    assert done.returncode == 1 and "1 sets" in done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {("a.vn", "article.title", "generated", "h1.sc-bdvvtL")} <= {
        (r["domain"], r["where"], r["rule"], r["selector"]) for r in rows
    }
