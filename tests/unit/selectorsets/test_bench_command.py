"""`scrapy selectors bench` as somebody with a model runs it: a store that a crawl has filled, a
server on loopback.

The server is scripted: its figures are nobody's accuracy, and the command has to say so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.selector_bench import PatientJobs
from newscrawler.rawstore import RawStore
from newscrawler.selectorsets.jobs import BudgetSpent, ModelBudget
from tests.crawl.harness import Scrapy
from tests.fixtures_llm import ScriptedLLM, dumps
from tests.fixtures_selectors import made_pages

pytestmark = pytest.mark.slow

RIGHT = {
    "title": ["h1.title-detail"],
    "published": [],
    "authors": [],
    "content_root": ["p.description, article.fck_detail"],
    "content_exclude": ["p.Image", "figure", "div[data-component-type]", ".width_common", "table"],
}
WRONG = {
    "title": ["nav a"],
    "published": [],
    "authors": [],
    "content_root": ["footer"],
    "content_exclude": [],
}


@pytest.fixture
def scrapy(tmp_path: Path, selector_redis_url: str, selector_redis: Any) -> Scrapy:
    """Two sites with pages enough, one without; the third has none at all."""
    raw = RawStore.open(str(tmp_path / "data" / "warc"), "w1")
    for domain, count in (("vnexpress.net", 24), ("tuoitre.vn", 20), ("dantri.com.vn", 8)):
        for page in made_pages(domain, count):
            raw.write(page.url, page.body, page.headers, 200, page.fetched)
    raw.close()
    env = {
        "REDIS_URL": selector_redis_url,
        "DATA_DIR": str(tmp_path / "data"),
        "LLM_PRICE_IN": "2",
        "LLM_PRICE_OUT": "8",
    }
    return Scrapy(tmp_path, env)


def by_site(body: dict[str, Any]) -> str:
    return dumps(RIGHT if "title-detail" in body["messages"][-1]["content"] else WRONG)


async def test_its_table_says_what_each_site_got_and_what_it_cost(
    scrapy: Scrapy, scripted_llm_thread: ScriptedLLM
) -> None:
    scripted_llm_thread.script = [by_site]
    url = scripted_llm_thread.base_url
    sites = ("vnexpress.net", "tuoitre.vn", "dantri.com.vn", "thanhnien.vn")
    done = scrapy.run("selectors", "bench", "--base-url", url, "--model", "scripted-1", *sites)
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert out.startswith("The model is scripted") and "NOT figures of any model" in out
    rows = {
        line.split()[0]: line
        for line in out.splitlines()
        if line.startswith(("vnexpress.net", "tuoitre.vn"))
    }
    assert rows["vnexpress.net"].split()[1:3] == ["True", "12/12"], rows
    assert rows["tuoitre.vn"].split()[1:3] == ["False", "0/8"] and "title" in rows["tuoitre.vn"], (
        rows
    )
    assert "2 sites" in out and "sets that passed the gate: 1 of 2" in out
    assert "title       60.0%  of 20 pages" in out, out
    assert "dantri.com.vn: 8 stored article pages that differ, 18 are needed" in done.stderr
    assert "vnexpress.net: asking scripted-1 about 12 pages, 12 more" in done.stderr
    assert "without a stored page: thanhnien.vn" in done.stderr
    calls = len(scripted_llm_thread.requests)
    assert (
        calls >= 2
        and f"{1050 * calls:,} tokens, cost {calls * (1000 * 2 + 50 * 8) / 1e6:.4f}" in out
    ), out


async def test_its_lines_are_for_machines_too(
    scrapy: Scrapy, scripted_llm_thread: ScriptedLLM
) -> None:
    scripted_llm_thread.script = [by_site]
    args = ("--base-url", scripted_llm_thread.base_url, "--model", "a-model", "--json")
    done = scrapy.run("selectors", "bench", *args, "vnexpress.net")
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["domain"], row["model"], row["is_model"], row["passed"]) == (
        "vnexpress.net",
        "a-model",
        True,
        True,
    )
    assert row["fields"]["content"]["of"] == 12 and row["calls"] == len(
        scripted_llm_thread.requests
    )


@pytest.mark.long
async def test_a_server_that_is_away_is_a_reason_and_no_figure(scrapy: Scrapy) -> None:
    done = scrapy.run(
        "selectors", "bench", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "vnexpress.net"
    )
    assert done.returncode == 1 and done.stdout == "", done.stdout
    assert (
        "m gave no answer" in done.stderr and "127.0.0.1:9/v1 cannot be reached" in done.stderr
    ), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
async def test_a_site_that_the_budget_forbade_is_in_no_figure(
    scrapy: Scrapy, scripted_llm_thread: ScriptedLLM
) -> None:
    scripted_llm_thread.script = [by_site]
    scrapy.settings["LLM_CALLS_PER_DAY"] = "1"
    args = (
        "--base-url",
        scripted_llm_thread.base_url,
        "--model",
        "scripted-1",
        "vnexpress.net",
        "tuoitre.vn",
    )
    done = scrapy.run("selectors", "bench", *args)
    assert done.returncode == 0, done.stderr
    assert len(scripted_llm_thread.requests) == 1
    assert "in no figure below: tuoitre.vn" in done.stdout and "1 site;" in done.stdout, done.stdout
    assert "LLM_CALLS_PER_DAY" in done.stdout and "of 12 pages" in done.stdout


async def test_it_waits_for_the_next_minute_and_not_for_the_next_day(selector_redis: Any) -> None:
    now = [1_000_000.0 * 60 + 50]
    waits = []

    class Hurried(PatientJobs):
        async def wait(self, seconds: float) -> None:
            waits.append(seconds)
            now[0] += seconds

    jobs = Hurried(
        selector_redis, ModelBudget(calls_per_minute=2, calls_per_day=5), clock=lambda: now[0]
    )
    for _ in range(5):
        await jobs.reserve("a.vn", 10)
    assert len(waits) == 2 and all(0 < w <= 61 for w in waits)
    with pytest.raises(BudgetSpent, match="LLM_CALLS_PER_DAY"):
        await jobs.reserve("a.vn", 10)
    with pytest.raises(BudgetSpent, match="LLM_CALLS_PER_MINUTE"):
        await Hurried(
            selector_redis, ModelBudget(calls_per_minute=0), clock=lambda: now[0]
        ).reserve("a.vn", 10)
    assert len(waits) == 2
