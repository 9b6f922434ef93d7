"""Sums and rules that a version wrote under words of before (sums_before_renaming.json: what
commit d662199 had in Redis after a registry's ``add`` and a flush of link learning)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from newscrawler import metrics
from newscrawler.api.exposition import fleet_counters
from newscrawler.crawl.link_learning import LinkLearning
from newscrawler.fleet.history import History
from newscrawler.fleet.registry import Registry, SiteDelta
from tests.redis.test_link_learning import sites

BEFORE = json.loads(
    Path(__file__).with_name("sums_before_renaming.json").read_text(encoding="utf-8")
)
#: When it was written, and the day of that.
NOW_MS = 1_800_000_000_000
DAY = NOW_MS // 86_400_000


async def restore(r: Any) -> None:
    for key, entry in BEFORE.items():
        if entry["type"] == "hash":
            await r.hset(key, mapping=entry["value"])
        else:
            await r.sadd(key, *entry["value"])


async def test_sums_under_old_names_go_on_under_the_new_ones(r: Any) -> None:
    await restore(r)
    registry, history = Registry(r, lambda: NOW_MS / 1000), History(r)
    new = {metrics.ARTICLES_DUPLICATE: 4, metrics.labelled(metrics.LLM_EXTRACTION, "grounded"): 1}
    await registry.add(new, {"a.vn": SiteDelta(duplicates=4)}, NOW_MS)
    whole = {"article/new": 5, "article/duplicate": 7}
    whole |= {"llm/extraction": 1, "llm/extraction/grounded": 3}
    assert await registry.totals() == whole
    assert await history.day(DAY) == whole
    (window,) = await history.windows(NOW_MS, 10)
    assert dict(window.stats) == whole
    assert window.sites["a.vn"]["duplicates"] == 7 and "twins" not in window.sites["a.vn"]
    of_site = (await history.site_days(["a.vn"], [DAY]))["a.vn"]
    assert of_site["duplicates"] == 7 and "twins" not in of_site


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("newscrawler_article_twin", "newscrawler_article_duplicate"),
        ("newscrawler_llm_direct", "newscrawler_llm_extraction"),
    ],
)
async def test_dashboards_find_the_old_name_of_a_metric(r: Any, old: str, new: str) -> None:
    await restore(r)
    totals = await Registry(r).totals()
    samples = {
        family.name: [(s.name.removeprefix(family.name), s.labels, s.value) for s in family.samples]
        for family in fleet_counters(totals)
    }
    assert samples[old] == samples[new] and sum(value for _, _, value in samples[old]) >= 3


async def test_rules_that_a_site_has_shown_before_are_known(r: Any) -> None:
    await restore(r)
    learning = LinkLearning(r)
    await learning.load(["a.vn"])
    assert learning.of("a.vn").second == {"query box": 3}
    _, site = sites()
    learning.of(site.id).renew({"twin query box": 3})
    found = {learning.original(site, f"https://a.vn/tin-{n}?box=moi") for n in range(20)}
    assert f"https://a.vn/tin-{7}" in found
