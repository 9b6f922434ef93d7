"""Sets that make themselves during a crawl of the simulated web: by rules, and by a scripted model.

What the scripted model gets right is made by rule: no figure here is a model's accuracy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from newscrawler.selectorsets.store import SAMPLE_PAGES
from tests.crawl.harness import Finished, Scrapy
from tests.fixtures_llm import ScriptedLLM, dumps

pytestmark = pytest.mark.slow


def crawl(folder: Path, web: Any, **settings: Any) -> tuple[Scrapy, Finished]:
    (folder / "no-sets").mkdir()
    scrapy = Scrapy(
        folder,
        {
            "SITES_FILE": str(web.sites_file),
            "SELECTORS_DIR": str(folder / "no-sets"),
            "DOWNLOAD_DELAY": "0.1",
            "AUTOTHROTTLE_ENABLED": "False",
            "SELECTOR_REFRESH_S": "0.5",
            "SELECTOR_GENERATION_IDLE_S": "30",
            **settings,
        },
    )
    done = scrapy.run("crawl", "news", timeout=150)
    assert done.returncode == 0, done.stderr[-3000:]
    return scrapy, done


def rows(scrapy: Scrapy, *args: str) -> list[dict[str, Any]]:
    done = scrapy.run("selectors", *args, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def wrong_answer(**fields: list[str]) -> str:
    parts = {
        "title": ["footer a"],
        "published": [],
        "authors": [],
        "content_root": ["header"],
        "content_exclude": [],
    }
    return dumps({**parts, **fields})


def test_rules_make_a_set_that_becomes_active(newsweb: Any, tmp_path: Path) -> None:
    web = newsweb("ip", sites=1, articles=90, rate=0, delay=0.1, faults="none")
    scrapy, done = crawl(tmp_path, web, SELECTOR_GENERATION="rules")
    assert done.stat("selector/samples") >= SAMPLE_PAGES
    # no page before the set is there is missed, and none after it is counted
    assert SAMPLE_PAGES <= done.stat("selector/missing") < done.stat("article/new")
    assert done.stat("selector/jobs/probation") == 1, done.stderr[-3000:]
    assert done.stat("llm/calls") == 0
    shadow = done.stat("selector/shadow/agreed") + done.stat("selector/shadow/differed")
    assert shadow >= 30, "not enough pages after the generation to prove the set"
    assert done.stat("selector/promoted") == 1, (
        f"{done.stat('selector/shadow/agreed')} of {shadow} agreed"
    )
    (site,) = rows(scrapy, "list")
    assert (site["state"], site["made_by"]) == ("active", "rule")
    (doc,) = rows(scrapy, "show", site["domain"])
    assert len(doc["provenance"]["samples"]) + len(doc["provenance"]["held_out"]) >= 10
    assert [e["what"] for e in rows(scrapy, "history", site["domain"])][-1] == "added"
    used = scrapy.run("selectors", "test", site["domain"], "--json")
    assert used.returncode == 0, used.stdout[-2000:] + used.stderr


@pytest.mark.long
def test_crawl_asks_the_model_and_never_waits_for_it(
    newsweb: Any, tmp_path: Path, scripted_llm_thread: ScriptedLLM
) -> None:
    web = newsweb("ip", sites=1, articles=30, rate=0, delay=0.05, faults="none")
    scripted_llm_thread.script = [
        dumps(
            {
                "title": ["h1.title-detail"],
                "published": [],
                "authors": [],
                "content_root": ["p.description, article.fck_detail"],
                "content_exclude": [
                    "figcaption",
                    "div[data-component-type]",
                    "p.Image",
                    "article article",
                ],
            }
        )
    ]
    scrapy, done = crawl(
        tmp_path,
        web,
        SELECTOR_GENERATION="llm",
        LLM_BASE_URL=scripted_llm_thread.base_url,
        LLM_MODEL="scripted",
    )
    assert scripted_llm_thread.requests, "the model was not asked"
    assert done.stat("llm/calls") == len(scripted_llm_thread.requests) <= 3
    assert done.stat("llm/tokens/in") == 1000 * done.stat("llm/calls")
    assert done.stat("selector/jobs/probation") == 1, done.stderr[-3000:]
    (site,) = rows(scrapy, "list")
    assert (site["state"], site["made_by"]) == ("probation", "llm")
    assert done.stat("article/new") >= 20, (
        "the crawl stored articles by the generic chain meanwhile"
    )


@pytest.mark.long
def test_rules_first_and_the_model_only_for_what_they_fail(
    newsweb: Any, tmp_path: Path, scripted_llm_thread: ScriptedLLM
) -> None:
    """rules_then_llm: what rules found is not asked for, and a wrong answer for the
    rest spoils nothing."""
    web = newsweb("ip", sites=1, articles=16, rate=0, delay=0.05, faults="none")
    scripted_llm_thread.script = [wrong_answer(published=["footer a"], authors=["footer a"])]
    scrapy, done = crawl(
        tmp_path,
        web,
        SELECTOR_GENERATION="rules_then_llm",
        LLM_BASE_URL=scripted_llm_thread.base_url,
        LLM_MODEL="scripted",
    )
    assert done.stat("selector/jobs/probation") == 1, done.stderr[-3000:]
    asked = [r["messages"][-1]["content"].splitlines()[0] for r in scripted_llm_thread.requests]
    assert asked, "the model was not asked"
    assert all("title" not in line and "content" not in line for line in asked), asked
    (doc,) = rows(scrapy, "show", rows(scrapy, "list")[0]["domain"])
    assert doc["provenance"]["made_by"] == "rule", "the model's wrong answer was taken"
    assert "footer a" not in json.dumps(doc["variants"])


@pytest.mark.long
def test_wrong_answer_is_judged_and_not_used(
    newsweb: Any, tmp_path: Path, scripted_llm_thread: ScriptedLLM
) -> None:
    web = newsweb("ip", sites=1, articles=16, rate=0, delay=0.05, faults="none")
    scripted_llm_thread.script = [wrong_answer()]
    scrapy, done = crawl(
        tmp_path,
        web,
        SELECTOR_GENERATION="llm",
        LLM_BASE_URL=scripted_llm_thread.base_url,
        LLM_MODEL="scripted",
    )
    assert done.stat("selector/jobs/failed") == 1
    assert len(scripted_llm_thread.requests) == 3, "one question, two refinements"
    assert [r["active"] or r["probation"] for r in rows(scrapy, "list")] == [None]


@pytest.mark.long
def test_dead_model_costs_the_crawl_nothing(
    newsweb: Any, tmp_path: Path, scripted_llm_thread: ScriptedLLM
) -> None:
    web = newsweb("ip", sites=1, articles=16, rate=0, delay=0.05, faults="none")
    scripted_llm_thread.script = ["status:401"]
    _, done = crawl(
        tmp_path,
        web,
        SELECTOR_GENERATION="rules_then_llm",
        LLM_BASE_URL=scripted_llm_thread.base_url,
        LLM_MODEL="scripted",
    )
    assert done.stat("finish_reason") == "finished"
    assert done.stat("article/new") >= 12
    assert done.stat("selector/jobs/probation") + done.stat("selector/jobs/failed") == 1
