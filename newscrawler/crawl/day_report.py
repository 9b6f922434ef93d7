"""What happened on a day: from the sums that workers keep in Redis (fleet.history), selector sets,
incidents and the article store to one object. newscrawler.api.day_report shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, cast

from newscrawler import metrics
from newscrawler.crawl import opening, site_choice
from newscrawler.fleet.alarms import COVERED_FIELDS
from newscrawler.fleet.freshness import LATE, STAGES, figures
from newscrawler.fleet.history import HOUR_MS, History, day_of
from newscrawler.fleet.incidents import Incidents
from newscrawler.fleet.registry import Registry
from newscrawler.fleet.rows import ORDINARY, STEPS
from newscrawler.fleet.usual import Site
from newscrawler.frontier.operator import Operator
from newscrawler.store.base import StoreError, WholeStore
from newscrawler.utils.display import shown

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: Of so few usual articles nothing is said.
_FEW = 5
_FAR_FEWER, _FAR_MORE = 0.25, 3.0


class NothingKnown(Exception):
    """No worker noted anything on that day, or it is too long ago."""


async def day_report(
    settings: BaseSettings, client: Any, day: date, zone: tzinfo
) -> dict[str, Any]:
    """All numbers of the day; times as ISO text in its zone, seconds as numbers, None = not known.

    :raises NothingKnown:
    :raises HistoryUnavailable, RegistryUnavailable, RedisError: Redis is away
    """
    history, now_ms = History(client), await Operator(client, 1).now_ms()
    start = datetime.combine(day, time(), zone)
    start_ms = round(start.timestamp() * 1000)
    end_ms = round((datetime.combine(day + timedelta(days=1), time(), zone)).timestamp() * 1000)
    number = day_of(start_ms, zone)
    stats = await history.day(number)
    if not stats:
        raise NothingKnown(
            f"nothing is known of {day}: no worker was at work, or it is more than 35 days ago;"
            " --day names another day, --day today the one that is not over"
        )
    names = sorted(await Registry(client).sites())
    of_day = await history.site_days(names, [number])
    before = await history.site_days(names, range(number - 7, number))
    until_ms = min(end_ms, now_ms)
    hours = await _Hours.read(history, names, start_ms, until_ms)
    titles = _titles(settings)
    rows = [_site_row(name, of_day[name], hours, titles.get(name, name)) for name in names]
    rows = [row for row in rows if row["visits"] or row["usual"]]
    rows.sort(key=lambda row: (row["state"] not in _STRANGE, -(row["usual"] or 0), -row["new"]))
    whole = _sum(of_day.values())
    return {
        "day": day.isoformat(),
        "zone": str(zone),
        "made": datetime.now(zone).isoformat(timespec="seconds"),
        "is_over": now_ms >= end_ms,
        "articles": await _articles(settings, whole, rows, start, until_ms),
        "visits": _visits(whole),
        "hours": hours.rows(),
        "sites": rows,
        "freshness": _freshness(whole),
        "fields": _fields(whole, _sum(before.values())),
        "failures": _failures(of_day),
        "selectors": await _selectors(settings, client, start_ms, end_ms, zone),
        "models": _models(settings, stats),
        "incidents": await _incidents(client, start_ms, end_ms, zone),
    }


# ---------------------------------------------------------------- articles
_STRANGE = ("far fewer", "far more")


class _Hours:
    """New articles by hour of the day and site, and what is usual."""

    def __init__(
        self, counts: Mapping[str, Mapping[int, int]], sites: Mapping[str, Site], hours: range
    ) -> None:
        self.counts = counts
        self.sites = sites
        self.hours = hours

    @classmethod
    async def read(cls, history: History, names: list[str], start_ms: int, until_ms: int) -> _Hours:
        counts = await history.hours(names, start_ms)
        since = await history.since()
        sites = {
            name: Site(counts[name], since[name], until_ms, lambda hour: True)
            for name in names
            if name in since
        }
        return cls(counts, sites, range(start_ms // HOUR_MS, -(-until_ms // HOUR_MS)))

    def came(self, name: str) -> int:
        return sum(self.counts[name].get(hour, 0) for hour in self.hours)

    def usual(self, name: str, hours: range | None = None) -> float | None:
        wanted = hours or self.hours
        site = self.sites.get(name)
        return site.usual(wanted.start, wanted.stop) if site is not None else None

    def rows(self) -> list[dict[str, Any]]:
        found = []
        for at, hour in enumerate(self.hours):
            usual = [self.usual(name, range(hour, hour + 1)) for name in self.counts]
            known = [value for value in usual if value is not None]
            found.append(
                {
                    "hour": at,
                    "new": sum(by_hour.get(hour, 0) for by_hour in self.counts.values()),
                    "usual": round(sum(known), 1) if known else None,
                }
            )
        return found


def _site_row(name: str, sums: Counter[str], hours: _Hours, title: str) -> dict[str, Any]:
    came, usual = hours.came(name), hours.usual(name)
    fresh = figures(_lags(sums))
    failures = _causes(sums)
    visits, articles = sums["pages"], sums["articles"]
    return {
        "site": name,
        "name": title,
        "new": sums["new"],
        "came": came,
        "usual": None if usual is None else round(usual, 1),
        "state": _state(came, usual),
        "updated": sums["updated"],
        "duplicates": sums["duplicates"],
        "twins": sums["duplicates"],  # the old name, for programs that read it
        "visits": visits,
        "failed": sums["errors"] + sums["challenges"],
        "challenges": sums["challenges"],
        "worst": failures.most_common(1)[0][0] if failures else "",
        "timed": sums["timed"],
        "late": sums["late"],
        "p50_s": fresh.p50_s,
        "p95_s": fresh.p95_s,
        "fields": {
            field: round(sums[f"f:{field}"] / articles, 3) if articles else None
            for field in COVERED_FIELDS
        },
    }


def _state(came: int, usual: float | None) -> str:
    if usual is None:
        return "not known"
    if usual < _FEW and came < _FEW * _FAR_MORE:
        return "as usual"
    if came < usual * _FAR_FEWER:
        return "far fewer"
    return "far more" if came > usual * _FAR_MORE else "as usual"


async def _articles(
    settings: BaseSettings,
    whole: Counter[str],
    rows: list[dict[str, Any]],
    start: datetime,
    until_ms: int,
) -> dict[str, Any]:
    usual = [row["usual"] for row in rows if row["usual"] is not None]
    look_new = whole["new"] + whole["duplicates"]
    stored, problem = await _stored(settings, start, until_ms)
    for row in rows:
        row["stored"] = None if stored is None else stored[row["site"]]
    return {
        "new": whole["new"],
        "came": sum(row["came"] for row in rows),
        "usual": round(sum(usual), 1) if usual else None,
        "updated": whole["updated"],
        "duplicates": whole["duplicates"],
        "twins": whole["duplicates"],  # the old name, for programs that read it
        "duplicate_share": round(whole["duplicates"] / look_new, 4) if look_new else None,
        "stored": None if stored is None else stored.total(),
        "store_problem": problem,
    }


async def _stored(
    settings: BaseSettings, start: datetime, until_ms: int
) -> tuple[Counter[str] | None, str]:
    """Articles of the day that can be found, by site; None and why where they are not known."""
    try:
        store = opening.open_article_store(settings, must_exist=True)
    except StoreError as exc:
        return None, shown(str(exc))
    try:
        if not hasattr(store, "headlines"):
            return None, "this store does not know the titles of a day"
        before = datetime.fromtimestamp(until_ms / 1000, UTC)
        found = await cast(WholeStore, store).headlines(start, before)
        return Counter(one.site for one in found), ""
    except StoreError as exc:
        return None, shown(str(exc))
    finally:
        await store.close()


def _titles(settings: BaseSettings) -> dict[str, str]:
    try:
        return {site.id: site.name for site in site_choice.load_sites(settings)}
    except Exception:  # a fault of sites.json is the workers' to tell; its ids are names enough
        return {}


# ---------------------------------------------------------------- visits
def _visits(whole: Counter[str]) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    for name, count in whole.items():
        if name.startswith("o:"):
            outcomes[name[2:].partition("(")[0]] += count
    return {
        "all": whole["pages"],
        "failed": whole["errors"],
        "challenges": whole["challenges"],
        "by_outcome": dict(outcomes.most_common()),
    }


def _causes(sums: Mapping[str, int]) -> Counter[str]:
    """Label of a visit that failed, "RETRY(timeout)" -> visits."""
    return Counter(
        {
            name[2:]: count
            for name, count in sums.items()
            if name.startswith("o:")
            and name[2:].partition("(")[0] not in ORDINARY
            and name[2:] not in STEPS
        }
    )


def _failures(of_day: Mapping[str, Counter[str]]) -> list[dict[str, Any]]:
    causes: Counter[str] = Counter()
    by_site: dict[str, Counter[str]] = {}
    for site, sums in of_day.items():
        for cause, count in _causes(sums).items():
            causes[cause] += count
            by_site.setdefault(cause, Counter())[site] += count
    return [
        {"cause": cause, "visits": count, "sites": dict(by_site[cause].most_common(3))}
        for cause, count in causes.most_common()
    ]


# ---------------------------------------------------------------- quality
def _lags(sums: Mapping[str, int]) -> dict[str, int]:
    return {name[2:]: count for name, count in sums.items() if name.startswith("l:")}


def _freshness(whole: Counter[str]) -> dict[str, Any]:
    lags = _lags(whole)
    steps = {int(name[2:]): count for name, count in lags.items() if name[0] == STAGES["total"]}
    late = sum(count for step, count in steps.items() if step > LATE)
    stages = {stage: asdict(figures(lags, stage)) for stage in STAGES}
    return {"stages": stages, "late": late, "steps": dict(sorted(steps.items()))}


def _fields(whole: Counter[str], before: Counter[str]) -> list[dict[str, Any]]:
    def share(sums: Counter[str], name: str) -> float | None:
        return round(sums[f"f:{name}"] / sums["articles"], 4) if sums["articles"] else None

    return [
        {
            "field": name,
            "have": whole[f"f:{name}"],
            "of": whole["articles"],
            "share": share(whole, name),
            "before": share(before, name),
        }
        for name in COVERED_FIELDS
    ]


# ---------------------------------------------------------------- the rest
async def _selectors(
    settings: BaseSettings, client: Any, start_ms: int, end_ms: int, zone: tzinfo
) -> list[dict[str, Any]]:
    store = opening.open_selector_store(settings, client)
    events = []
    for known in await store.known():
        for event in await store.history(known.domain):
            if start_ms <= event["at_ms"] < end_ms:
                events.append({"domain": known.domain, **event, "at": _at(event["at_ms"], zone)})
    events.sort(key=lambda event: event["at_ms"])
    return events


def _models(settings: BaseSettings, stats: Mapping[str, int]) -> dict[str, Any]:
    from newscrawler.crawl.selector_jobs import GenerationConfig  # all that makes sets

    limits = GenerationConfig.of(settings).limits
    read = stats.get(metrics.labelled(metrics.LLM_TOKENS, "in"), 0)
    written = stats.get(metrics.labelled(metrics.LLM_TOKENS, "out"), 0)
    has_prices = bool(limits.price_in or limits.price_out)
    return {
        "calls": stats.get(metrics.LLM_CALLS, 0),
        "tokens_in": read,
        "tokens_out": written,
        "money": limits.micro(read, written) / 1e6 if has_prices else None,
        "sets_made": sum(
            count for name, count in stats.items() if name.startswith(f"{metrics.SELECTOR_JOBS}/")
        ),
    }


async def _incidents(client: Any, start_ms: int, end_ms: int, zone: tzinfo) -> list[dict[str, Any]]:
    found = []
    for alert in await Incidents(client).log(start_ms, end_ms):
        for one in alert["incidents"]:
            found.append(
                {
                    "at": _at(alert["at_ms"], zone),
                    "event": alert["event"].removeprefix("fleet."),
                    "severity": alert["severity"],
                    "kind": alert["kind"],
                    "text": alert["text"],
                    "subject": one["subject"],
                    "reason": one["reason"],
                }
            )
    return found


def _at(ms: int, zone: tzinfo) -> str:
    """On the clock of the report, to the second."""
    return datetime.fromtimestamp(ms / 1000, zone).isoformat(timespec="seconds")


def _sum(rows: Iterable[Counter[str]]) -> Counter[str]:
    whole: Counter[str] = Counter()
    for row in rows:
        whole.update(row)
    return whole
