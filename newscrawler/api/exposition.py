"""/metrics: the fleet's counters in Prometheus' text format. Names come from metrics.py.

``page/outcome/DONE`` is ``newscrawler_page_outcome_total{outcome="DONE"}``. The sums are
those of the registry, so they go on when a worker ends; what is away is missing, and
``newscrawler_up`` says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from newscrawler import metrics
from newscrawler.api.data import DataReader
from newscrawler.fleet.freshness import DAYS, STAGES, figures
from newscrawler.fleet.registry import SiteSums
from newscrawler.items import Outcome

PREFIX = "newscrawler_"
#: What the labels of a stat are called where "label" would say too little.
LABELS = {
    metrics.PAGE_OUTCOME: ("outcome",),
    metrics.PAGE_REASON: ("reason",),
    metrics.PAGE_STATUS: ("status",),
    metrics.ARTICLE_FIELD: ("field",),
    metrics.ARTICLE_ORIGIN: ("field", "origin"),
    metrics.ARTICLE_FIELD_CONFLICTS: ("field",),
    metrics.LINKS_REFUSED: ("reason",),
    metrics.LINKS_LOCAL_HIT: ("filter",),
    metrics.ARTICLE_LAG: ("stage",),
}
#: Labels that are known beforehand are told from the start, as 0: Prometheus takes the first value
#: of a series that appears later for its beginning, and the first alarm would be seen by nobody.
KNOWN: dict[str, tuple[str, ...]] = {
    metrics.PAGE_OUTCOME: tuple(Outcome),
    metrics.SELECTOR_ALARMS: ("drift", "ready", "blocked", "open"),
    metrics.LLM_TOKENS: ("in", "out"),
    metrics.ARTICLE_LAG: tuple(STAGES),
}
#: Sites with series of their own, those with the most visits; the rest is summed as "other".
MOST_SITES = 200
OTHER = "other"


class _Families:
    """prometheus_client wants a collector; this one holds what was read before
    (reading is asynchronous)."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self.families = list(families)

    def collect(self) -> Iterator[Metric]:
        return iter(self.families)


def name_of(stat: str) -> str:
    return PREFIX + stat.replace("/", "_")


def _help(stat: metrics.Stat) -> str:
    return f"{stat.meaning.partition('; label:')[0]} ({stat.unit})"


def fleet_counters(totals: dict[str, int]) -> Iterator[Metric]:
    """One family per declared counter, also while it is 0 and has no label."""
    by_stat: dict[str, list[tuple[str, int]]] = {}
    for name, value in totals.items():
        stat = metrics.stat_of(name)
        if stat is not None:
            by_stat.setdefault(stat.name, []).append((name[len(stat.name) + 1 :], value))
    for stat in metrics.STATS.values():
        if stat.kind != "counter":
            continue
        counted = dict(by_stat.get(stat.name, ()))
        samples = list((dict.fromkeys(KNOWN.get(stat.name, ()), 0) | counted).items())
        is_labelled = "label:" in stat.meaning or any(label for label, _ in samples)
        names = LABELS.get(stat.name, ("label",)) if is_labelled else ()
        for told_as in (
            stat.name,
            *(old for old, new in metrics.RENAMED.items() if new == stat.name),
        ):
            family = CounterMetricFamily(name_of(told_as), _help(stat), labels=names)
            for label, value in samples or ([] if names else [("", 0)]):
                values = label.split("/", len(names) - 1) if names else []
                family.add_metric([*values, *[""] * (len(names) - len(values))], value)
            yield family


def fleet_histograms(totals: dict[str, int]) -> Iterator[Metric]:
    """One family per declared histogram, also while it is empty and has no label."""
    for stat in metrics.STATS.values():
        if stat.kind != "histogram":
            continue
        counts: dict[str, dict[str, int]] = {label: {} for label in KNOWN.get(stat.name, ())}
        for name, value in totals.items():
            if name.startswith(f"{stat.name}/"):
                label, _, step = name[len(stat.name) + 1 :].rpartition("/")
                counts.setdefault(label, {})[step] = value
        names = LABELS.get(stat.name, ())
        family = HistogramMetricFamily(f"{name_of(stat.name)}_seconds", _help(stat), labels=names)
        for label, steps in counts.items() or ([] if names else [("", {})]):
            buckets, before = [], 0
            for number, bound in enumerate((*map(str, stat.bounds), "+Inf")):
                before += steps.get(str(number), 0)
                buckets.append((bound, float(before)))
            family.add_metric([label] if names else [], buckets, steps.get("ms", 0) / 1000)
        yield family


def bounded(sums: dict[str, SiteSums]) -> dict[str, SiteSums]:
    """The sites with the most visits, and the sum of all others as a site "other": a fleet with
    10,000 sites must not make 100,000 series."""
    if len(sums) <= MOST_SITES:
        return sums
    ranked = sorted(sums, key=lambda site: -sums[site].pages)
    rest = SiteSums(OTHER)
    for site in ranked[MOST_SITES:]:
        row = sums[site]
        rest.pages += row.pages
        rest.new += row.new
        rest.updated += row.updated
        rest.duplicates += row.duplicates
        rest.outcomes = dict(Counter(rest.outcomes) + Counter(row.outcomes))
        rest.lags = dict(Counter(rest.lags) + Counter(row.lags))
        rest.last_fetch_ms = max(rest.last_fetch_ms, row.last_fetch_ms)
        rest.last_new_ms = max(rest.last_new_ms, row.last_new_ms)
    return {site: sums[site] for site in ranked[:MOST_SITES]} | {OTHER: rest}


def site_families(sums: dict[str, SiteSums]) -> Iterator[Metric]:
    sums = bounded(sums)
    visits = CounterMetricFamily(
        f"{PREFIX}site_visits", "ended visits by site and outcome", labels=("site", "outcome")
    )
    new = CounterMetricFamily(
        f"{PREFIX}site_articles_new", "articles stored first", labels=("site",)
    )
    updated = CounterMetricFamily(
        f"{PREFIX}site_articles_updated", "new versions stored", labels=("site",)
    )
    duplicates = CounterMetricFamily(
        f"{PREFIX}site_articles_duplicate",
        "articles that are stored under another address",
        labels=("site",),
    )
    timeouts = CounterMetricFamily(
        f"{PREFIX}site_timeouts", "visits to which no answer came in time", labels=("site",)
    )
    fetched = GaugeMetricFamily(
        f"{PREFIX}site_last_fetch_seconds", "time of the last answer", labels=("site",)
    )
    newest = GaugeMetricFamily(
        f"{PREFIX}site_last_new_seconds", "time of the last new article", labels=("site",)
    )
    # Gauges: percentiles of a window of days, which fall again. The label
    # "quantile" is a summary's.
    lags = {
        share: GaugeMetricFamily(
            f"{PREFIX}site_freshness_{share}_seconds",
            f"from publication to the search, {share} of the new articles of {DAYS} days",
            labels=("site",),
        )
        for share in ("p50", "p95")
    }
    for site, row in sums.items():
        for outcome, count in row.outcomes.items():
            visits.add_metric([site, outcome], count)
        new.add_metric([site], row.new)
        updated.add_metric([site], row.updated)
        duplicates.add_metric([site], row.duplicates)
        timeouts.add_metric([site], row.timeouts)
        if row.last_fetch_ms:
            fetched.add_metric([site], row.last_fetch_ms / 1000)
        if row.last_new_ms:
            newest.add_metric([site], row.last_new_ms / 1000)
        if (fresh := figures(row.lags)).articles:
            lags["p50"].add_metric([site], fresh.p50_s or 0.0)
            lags["p95"].add_metric([site], fresh.p95_s or 0.0)
    return iter([visits, new, updated, duplicates, timeouts, fetched, newest, *lags.values()])


def frontier_families(counts: dict[str, int]) -> Iterator[Metric]:
    """:param counts: of frontier.types.Counts; none where Redis is away"""
    for name, value in counts.items():
        yield _gauge(f"frontier_{name}", f"{name} in the whole frontier", value)


def worker_families(workers: list[dict[str, Any]]) -> Iterator[Metric]:
    alive = [w for w in workers if w["alive"]]
    yield _gauge("workers", "workers that sent a heartbeat lately", len(alive))
    yield _gauge(
        "workers_silent", "workers that fell silent within the last hour", len(workers) - len(alive)
    )
    for key, text in (
        ("memory_bytes", "resident memory of a worker"),
        ("pages_per_s", "pages per second, over ten seconds"),
        ("leases", "URLs in hand"),
        ("in_flight", "fetches open"),
    ):
        family = GaugeMetricFamily(f"{PREFIX}worker_{key}", text, labels=("worker",))
        for worker in alive:
            family.add_metric([worker["id"]], worker[key])
        yield family
    cpu = CounterMetricFamily(
        f"{PREFIX}worker_cpu_seconds",
        "CPU of a worker and its processes, user and system",
        labels=("worker",),
    )
    for worker in alive:
        cpu.add_metric([worker["id"]], worker["cpu_s"])
    yield cpu
    families: dict[str, GaugeMetricFamily] = {}
    for worker in alive:
        for stat, value in worker["gauges"].items():
            if stat not in families:
                text = _help(metrics.STATS[stat])
                families[stat] = GaugeMetricFamily(name_of(stat), text, labels=("worker",))
            families[stat].add_metric([worker["id"]], value)
    # The same for all workers: asked of the frontier itself.
    of_fleet = (metrics.FRONTIER_QUEUED, metrics.FRONTIER_LEASED, metrics.FRONTIER_WAITING)
    yield from (family for stat, family in families.items() if stat not in of_fleet)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)


async def exposition(reader: DataReader) -> bytes:
    """The text of /metrics."""
    stored, store_error = await reader.store_stats()
    counts, frontier_error = await reader.counts()
    workers, _ = await reader.workers()
    up = GaugeMetricFamily(f"{PREFIX}up", "1 when the part answers", labels=("part",))
    up.add_metric(["store"], not store_error)
    up.add_metric(["redis"], not frontier_error)
    families: list[Metric] = [up]
    for name, text in (
        ("articles", "articles stored"),
        ("gone", "articles that their sites took down"),
    ):
        if isinstance(stored.get(name), int):
            families.append(_gauge(f"store_{name}", text, stored[name]))
    families += frontier_families(counts)
    totals = await reader.totals()
    families += fleet_counters(totals)
    families += fleet_histograms(totals)
    families += site_families(await reader.sums())
    families += worker_families(workers)
    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry)
