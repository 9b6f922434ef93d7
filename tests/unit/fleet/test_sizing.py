"""How large a fleet must be: the formulas, and what the command says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from newscrawler.commands.plan import bytes_text, cpus_text
from newscrawler.fleet.sizing import BUSY, CPU_MS_RENDERED, DAY_S, Plan, size
from tests import warm

PLAN = Plan(sites=33, articles=10_000, delay_s=2)


def test_requests_and_politeness() -> None:
    found = size(PLAN)
    assert found.requests_a_day == 170_000
    assert found.requests_a_second == pytest.approx(170_000 / DAY_S)
    assert found.site_needs_a_day == 5_152
    assert found.site_allows_a_day == 43_200
    assert found.is_polite
    assert not size(replace(PLAN, sites=7)).is_polite  # more than half of what the delay allows
    assert size(replace(PLAN, sites=1, delay_s=0)).is_polite


def test_twice_the_articles_take_twice_as_much() -> None:
    once, twice = size(PLAN), size(replace(PLAN, articles=20_000))
    for name in ("worker_cpus", "redis_cpus", "embed_cpus", "redis_bytes", "raw_bytes"):
        assert getattr(twice, name) == pytest.approx(2 * getattr(once, name), rel=1e-6), name
    assert twice.store_bytes_a_year == 2 * once.store_bytes_a_year


def test_a_set_saves_processors_and_days_take_disk() -> None:
    with_sets, without = (size(replace(PLAN, set_share=share)) for share in (1.0, 0.0))
    assert with_sets.worker_cpus < without.worker_cpus
    assert size(replace(PLAN, days=30)).raw_bytes == pytest.approx(
        size(PLAN).raw_bytes * 30 / 365, rel=1e-6
    )
    assert size(replace(PLAN, semantic=False)).embed_cpus == 0


@pytest.mark.parametrize(
    "wrong", [{"sites": 0}, {"articles": -1}, {"delay_s": -1}, {"lists": -1}, {"set_share": 1.5}]
)
def test_what_cannot_be_planned_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        replace(PLAN, **wrong)


def test_texts() -> None:
    assert [bytes_text(n) for n in (0, 999, 1000, 59_400_000_000, 123_456_789)] == [
        "0 B", "999 B", "1 kB", "59.4 GB", "123 MB",
    ]  # fmt: skip
    assert [cpus_text(n) for n in (0, 0.02, 2.14)] == [
        "none", "under 0.1 processors", "2.1 processors",
    ]  # fmt: skip


def test_the_command() -> None:
    args = ["plan", "--sites", "33", "--articles", "10000", "--delay", "2"]
    done = warm.run(args, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "170,000 a day" in done.stdout and "59.4 GB a year" in done.stdout
    done = warm.run([*args, "--json"], text=True, timeout=60)
    assert json.loads(done.stdout)["requests_a_day"] == 170_000
    done = warm.run(["plan", "--sites", "1", "--articles", "10000"], text=True, timeout=60)
    assert done.returncode == 1 and "Not polite" in done.stdout
    for wrong in (["--sites", "1"], ["--sites", "0", "--articles", "1"], ["more"]):
        done = warm.run(["plan", *wrong], text=True, timeout=60)
        assert done.returncode == 2 and "error" in done.stderr


def test_pages_that_a_browser_reads_cost_processors_and_turns() -> None:
    plain, by_script = Plan(33, 10_000), Plan(33, 10_000, rendered=10_000)
    more = size(by_script).worker_cpus - size(plain).worker_cpus
    assert more == pytest.approx(10_000 * CPU_MS_RENDERED / 1000 / 86_400 / BUSY)
    assert size(by_script).site_needs_a_day > size(plain).site_needs_a_day
