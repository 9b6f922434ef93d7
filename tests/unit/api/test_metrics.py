"""/metrics as Prometheus reads it: names, types and labels by its own rules."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from dataclasses import asdict

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from newscrawler import metrics
from newscrawler.api.exposition import (
    MOST_SITES,
    _Families,
    fleet_counters,
    fleet_histograms,
    frontier_families,
    site_families,
    worker_families,
)
from newscrawler.fleet.registry import SiteSums
from newscrawler.frontier.types import Counts

TOTALS = {
    "page/outcome/DONE": 7,
    "page/fetched": 9,
    "article/origin/title/json-ld": 3,
    "raw/bytes": 12345,
    **{"fetch/time/0": 4, "fetch/time/3": 2, "fetch/time/11": 1, "fetch/time/ms": 70_500},
    **{"article/lag/total/2": 3, "article/lag/total/ms": 120_000},
}
SITES = {
    'a"\\\n.vn': SiteSums(
        'a"\\\n.vn', 9, 3, 1, {"DONE": 7, "RETRY(dns)": 2}, 1_700_000_000_000, 1, lags={"t:3": 5}
    )
}
WORKERS = [
    {
        **{"id": "w1", "alive": True, "cpu_s": 12.5, "memory_bytes": 1, "pages_per_s": 0.5},
        **{"leases": 2, "in_flight": 1},
        # Each gauge that a worker may tell: a family must not come twice (see exposition()).
        "gauges": {s.name: 9.0 for s in metrics.STATS.values() if s.kind == "gauge"},
    },
    {"id": "w2", "alive": False},
]


@pytest.fixture(scope="module")
def text() -> str:
    registry = CollectorRegistry()
    made = [
        *frontier_families(asdict(Counts(queued=5, leased=1, waiting=7))),
        *fleet_counters(TOTALS),
        *fleet_histograms(TOTALS),
        *site_families(SITES),
        *worker_families(WORKERS),
    ]
    registry.register(_Families(made))  # type: ignore[arg-type]
    return generate_latest(registry).decode()


@pytest.fixture(scope="module")
def families(text: str) -> dict[str, Metric]:
    found = list(text_string_to_metric_families(text))
    assert not [n for n, count in Counter(f.name for f in found).items() if count > 1]
    return {family.name: family for family in found}


def test_every_declared_counter_is_a_counter(families: dict[str, Metric]) -> None:
    for stat in metrics.STATS.values():
        if stat.kind == "counter":
            name = "newscrawler_" + stat.name.replace("/", "_")
            assert families[name].type == "counter", name
            assert all(s.name == f"{name}_total" for s in families[name].samples)


def test_names_types_and_labels_keep_the_rules(families: dict[str, Metric]) -> None:
    for family in families.values():
        assert family.type in ("counter", "gauge", "histogram"), family.name
        assert family.documentation, family.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
            continue
        for sample in family.samples:
            # "le" and "quantile" are those of histograms and summaries
            assert not {"le", "quantile", "job", "instance"} & set(sample.labels), sample
            assert sample.name.endswith("_total") == (family.type == "counter")


def test_what_only_grows_is_a_counter_and_what_falls_is_none(families: dict[str, Metric]) -> None:
    def only(name: str) -> float:
        (sample,) = families[name].samples
        return sample.value

    assert families["newscrawler_worker_cpu_seconds"].type == "counter"
    assert only("newscrawler_worker_cpu_seconds") == 12.5
    for name in ("site_freshness_p50_seconds", "site_freshness_p95_seconds"):
        assert families[f"newscrawler_{name}"].type == "gauge"
        assert only(f"newscrawler_{name}") > 0
    for name in ("worker_memory_bytes", "worker_pages_per_s", "site_last_fetch_seconds", "workers"):
        assert families[f"newscrawler_{name}"].type == "gauge"
    assert only("newscrawler_raw_bytes") == 12345


def test_buckets_of_a_histogram_hold_all_that_took_no_longer(families: dict[str, Metric]) -> None:
    fetch = families["newscrawler_fetch_time_seconds"]
    values = {s.labels.get("le", s.name.rpartition("_")[2]): s.value for s in fetch.samples}
    assert values["0.025"] == values["0.1"] == 4 and values["0.25"] == 6 == values["60"]
    assert values["+Inf"] == values["count"] == 7 and values["sum"] == 70.5
    lag = families["newscrawler_article_lag_seconds"].samples
    of = {s.labels["stage"]: s.value for s in lag if s.name.endswith("_count")}
    assert of == {"total": 3, "discovered": 0, "fetched": 0, "searchable": 0}
    parse = families["newscrawler_page_parse_time_seconds"].samples
    assert {s.value for s in parse} == {0.0} and len(parse) > 10


def test_a_value_is_counted_in_its_bucket() -> None:
    class Stats(dict[str, int]):
        def inc_value(self, name: str, count: int = 1) -> None:
            self[name] = self.get(name, 0) + count

    stats = Stats()
    for seconds in (0.01, 0.025, 0.03, 59.0, 61.0):
        metrics.observe(stats, metrics.FETCH_TIME, seconds)
    assert stats == {
        **{"fetch/time/0": 2, "fetch/time/1": 1, "fetch/time/10": 1, "fetch/time/11": 1},
        "fetch/time/ms": 120_065,
    }
    assert {metrics.stat_of(name) for name in stats} == {metrics.STATS[metrics.FETCH_TIME]}


def test_what_is_to_be_watched_is_told_before_it_happens(families: dict[str, Metric]) -> None:
    alarms = families["newscrawler_selector_alarms"].samples
    assert {s.labels["label"]: s.value for s in alarms}["drift"] == 0
    done = families["newscrawler_page_outcome"].samples
    assert {s.labels["outcome"]: s.value for s in done}["DONE"] == 7


def test_sites_beyond_a_bound_are_one_series() -> None:
    sums = {
        f"s{i}.vn": SiteSums(f"s{i}.vn", i, 2, 1, {"DONE": i, "RETRY(dns)": 1}, i, lags={"t:3": 1})
        for i in range(MOST_SITES + 50)
    }
    families = {family.name: family for family in site_families(sums)}
    new = {s.labels["site"]: s.value for s in families["newscrawler_site_articles_new"].samples}
    assert len(new) == MOST_SITES + 1
    assert new["other"] == 100 and "s49.vn" not in new and new["s50.vn"] == 2
    visits = families["newscrawler_site_visits"].samples
    rest = {s.labels["outcome"]: s.value for s in visits if s.labels["site"] == "other"}
    assert rest == {"DONE": sum(range(50)), "RETRY(dns)": 50}


def test_duplicates_and_timeouts_are_told_by_site_and_of_the_rest_in_sum() -> None:
    """Prometheus makes shares of them: with all visits and with the new articles of the site."""
    late = {"DONE": 6, "RETRY(timeout)": 3, "FAILED(timeout)": 1, "RETRY(dns)": 2}
    sums = {"late.vn": SiteSums("late.vn", 12, 4, outcomes=late, duplicates=2)}
    few = {"RETRY(timeout)": 1}
    for number in range(MOST_SITES + 4):
        name = f"s{number}.vn"
        sums[name] = SiteSums(name, 1, outcomes=few, duplicates=number % 2)
    families = {family.name: family for family in site_families(sums)}
    for name, own, rest in (
        ("newscrawler_site_timeouts", 4, 5),
        ("newscrawler_site_articles_duplicate", 2, 3),
    ):
        of = {s.labels["site"]: s.value for s in families[name].samples}
        assert (of["late.vn"], of["other"], len(of)) == (own, rest, MOST_SITES + 1), name


def test_labels_of_any_text_come_back(families: dict[str, Metric]) -> None:
    labels = [s.labels for s in families["newscrawler_site_visits"].samples]
    assert {"site": 'a"\\\n.vn', "outcome": "RETRY(dns)"} in labels


@pytest.mark.skipif(  # CI has it: there it fails
    shutil.which("promtool") is None and not os.environ.get("CI"),
    reason="needs promtool (Debian: prometheus)",
)
def test_promtool_finds_nothing_but_short_names(text: str) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60
    )
    said = (done.stdout + done.stderr).splitlines()
    assert not [line for line in said if "abbreviated units" not in line]
