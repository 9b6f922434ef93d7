"""`scrapy selectors` as a user runs it, on an embedded Redis of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import Finished, Scrapy
from tests.fixtures_selectors import made_pages
from tests.unit.selectorstore.test_store import a_set, write

pytestmark = pytest.mark.slow


@pytest.fixture
def scrapy(tmp_path: Path, selector_redis_url: str, selector_redis: Any) -> Scrapy:
    (tmp_path / "selectors").mkdir()
    return Scrapy(tmp_path, {"SELECTORS_DIR": str(tmp_path / "selectors"), "REDIS_URL": selector_redis_url})


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
    assert (listed["b.vn"]["state"], listed["b.vn"]["probation"], listed["b.vn"]["active"]) == ("probation", "1", None)
    assert ok(scrapy.run("selectors", "show", "b.vn", "--json"))[0]["provenance"]["made_by"] == "person"

    assert ok(scrapy.run("selectors", "approve", "b.vn", "--json"))[0]["version"] == "1"
    ok(scrapy.run("selectors", "pin", "b.vn", "--json"))
    write(folder, "b.vn", a_set("b.vn", css="h1.changed"))
    ok(scrapy.run("selectors", "load", "--json"))
    (row,) = [r for r in ok(scrapy.run("selectors", "list", "--json")) if r["domain"] == "b.vn"]
    assert (row["active"], row["versions"], row["pinned"]) == ("1", 2, True)
    assert ok(scrapy.run("selectors", "approve", "b.vn", "--version", "2", "--json"))[0]["version"] == "2"
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
        ((), 2, "unknown action"),
        (("destroy",), 2, "unknown action 'destroy'"),
        (("show",), 2, "selectors show DOMAIN"),
        (("show", "a.vn", "b.vn"), 2, "selectors show DOMAIN"),
        (("show", "x.vn"), 1, "no selector set for x.vn"),
        (("rollback", "x.vn"), 1, "no selector set for x.vn"),
        (("history", "x.vn"), 1, "nothing is known of x.vn"),
        (("disable", "x.vn"), 1, "no selector set"),
        (("test", "x.vn", "no-such-file.html"), 1, "x.vn"),
    ],
)
async def test_wrong_use_is_one_clear_line(scrapy: Scrapy, args: tuple[str, ...], code: int, says: str) -> None:
    done = scrapy.run("selectors", *args)
    assert (done.returncode, says in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_redis_that_is_away_is_one_clear_line(tmp_path: Path) -> None:
    done = Scrapy(tmp_path, {"REDIS_URL": "redis://127.0.0.1:1/0"}).run("selectors", "list")
    assert done.returncode == 1 and "Redis does not answer" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
