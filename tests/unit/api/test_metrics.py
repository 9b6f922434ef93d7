"""/metrics as Prometheus reads it: names, types and labels by its own rules."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from newscrawler import metrics
from newscrawler.api.exposition import _Families, fleet_counters, site_families, worker_families
from newscrawler.fleet.registry import SiteSums

TOTALS = {
    "page/outcome/DONE": 7,
    "page/fetched": 9,
    "article/origin/title/json-ld": 3,
    "raw/bytes": 12345,
}
SITES = {
    'a"\\\n.vn': SiteSums(
        'a"\\\n.vn', 9, 3, 1, {"DONE": 7, "RETRY(dns)": 2}, 1_700_000_000_000, 1, lags={"t:3": 5}
    )
}
WORKERS = [
    {
        **{"id": "w1", "alive": True, "cpu_s": 12.5, "memory_bytes": 1, "pages_per_s": 0.5},
        **{"leases": 2, "in_flight": 1, "gauges": {metrics.CHILDREN_PEAK: 9.0}},
    },
    {"id": "w2", "alive": False},
]


@pytest.fixture(scope="module")
def text() -> str:
    registry = CollectorRegistry()
    made = [*fleet_counters(TOTALS), *site_families(SITES), *worker_families(WORKERS)]
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
        assert family.type in ("counter", "gauge"), family.name
        assert family.documentation, family.name
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


def test_labels_of_any_text_come_back(families: dict[str, Metric]) -> None:
    labels = [s.labels for s in families["newscrawler_site_visits"].samples]
    assert {"site": 'a"\\\n.vn', "outcome": "RETRY(dns)"} in labels


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_promtool_finds_nothing_but_short_names(text: str) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60
    )
    said = (done.stdout + done.stderr).splitlines()
    assert not [line for line in said if "abbreviated units" not in line]
