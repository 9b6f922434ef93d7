"""What is wrong with a fleet: from one look from outside the workers to verdicts. Pure.

A verdict names a kind and a subject, and why it is bad; an empty reason says that it is well. What
cannot be told (too few visits, a part that does not answer) has none, and an incident that is open
stays open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from newscrawler import metrics
from newscrawler.fleet.history import HOUR_MS, WHOLE, Window
from newscrawler.fleet.ledger import Ended
from newscrawler.fleet.registry import SiteSums
from newscrawler.fleet.usual import FLOOD_TIMES, Site, above, below

#: A job that was lost so long ago is no news, ms, also if no other works in its place.
_ENDED_MS = 600_000
#: A worker that lived shorter is a start that failed, ms (fleet/watch.py: YOUNG_S).
_YOUNG_MS = 60_000
#: Visits without one answer from which on it is said that nothing can be fetched: the first ones of
#: a crawl may meet a site that is away.
_FRUITLESS_VISITS = 3
#: Subject of what is said of the whole fleet.
ALL = "fleet"
COVERED_FIELDS = ("title", "content", "published", "authors")


@dataclass(frozen=True, slots=True)
class Kind:
    """:param for_s: how long it must be so before it is told
    :param calm_s: how long it must be well before that is told
    :param is_listed: what is bad is listed whole: a subject that is not among it is well
    :param within: what docs/operations.md promises, minutes
    :param explain: the command or page that explains it; {subject} is put in
    """

    severity: str
    text: str
    explain: str
    within: int
    for_s: int = 0
    calm_s: int = 300
    is_listed: bool = False


KINDS: dict[str, Kind] = {
    "away": Kind(
        "critical", "a part does not answer", "scrapy doctor; GET /api/check", 2, calm_s=60
    ),
    "full": Kind("critical", "nearly full", "scrapy doctor; scrapy plan", 2),
    "no_worker": Kind(
        "critical", "no worker is alive", "scrapy fleet status; page /frontier", 3, 60, 60
    ),
    "worker_gone": Kind(
        "warning", "a worker is gone", "scrapy fleet status; scrapy fleet logs NODE JOB", 2,
        calm_s=0, is_listed=True,
    ),
    "nobody_watches": Kind(
        "warning", "nobody watches the fleet", "scrapy fleet watch; docs/fleet.md", 3, 45, 0
    ),
    "no_start": Kind(
        "warning", "workers do not start on a node",
        "scrapy fleet status; scrapy fleet logs NODE JOB", 2, calm_s=0, is_listed=True,
    ),
    "node_gone": Kind(
        "warning", "a node's scrapyd does not answer", "scrapy fleet status; docs/fleet.md", 2,
        30, 30, is_listed=True,
    ),
    "no_data": Kind(
        "critical", "nothing comes in any more", "scrapy frontier report; page /frontier", 25, 120
    ),
    "no_answer": Kind(
        "critical", "no site has ever answered", "scrapy doctor; scrapy frontier report", 15,
        calm_s=0,
    ),
    "site_silent": Kind(
        "warning", "a site fell silent", "scrapy sites check --sites {subject}; page /sites",
        100, 60,
    ),
    "site_flood": Kind(
        "warning", "a site floods", "scrapy frontier report; page /sites", 20, 60
    ),
    "slow": Kind(
        "warning", "articles are searchable too late",
        "scrapy sites freshness {subject}; docs/freshness.md", 60, 300, 3600,
    ),
    "errors": Kind(
        "warning", "many visits fail", "scrapy frontier report; page /sites", 30, 60, 600
    ),
    "challenges": Kind(
        "warning", "sites answer with challenge pages",
        "scrapy frontier report; page /sites", 30, 60, 600,
    ),
    "duplicates": Kind(
        "warning", "most of what looks new is a second address", "scrapy frontier why URL", 90,
        120, 3600,
    ),
    "field_falls": Kind(
        "warning", "a field is missing in many articles",
        "scrapy selectors list; page /selectors", 90, 120, 3600,
    ),
    "drift": Kind(
        "warning", "a selector set no longer reads its site",
        "page /selectors; scrapy selectors history {subject}", 2, is_listed=True,
    ),
    "quarantine": Kind(
        "warning", "many URLs are given up", "scrapy frontier quarantine list", 70, calm_s=900
    ),
    "model_budget": Kind(
        "warning", "the model's budget of the day is nearly spent",
        "scrapy selectors list; settings LLM_TOKENS_PER_DAY, LLM_CALLS_PER_DAY, LLM_MONEY_PER_DAY",
        2,
    ),
    "slow_node": Kind(
        "warning", "a node is slower than its fellows", "scrapy fleet status", 70, 300, 900
    ),
    "monitor": Kind(
        "warning", "a monitor of FLEET_MONITOR_SUITES failed", "docs/extending.md", 2,
        is_listed=True,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: str
    subject: str
    reason: str  # "" = it is well


@dataclass(frozen=True, slots=True)
class Room:
    """A place that can become full; ``size`` 0 = it has no limit. ``least_free``: what must be
    left, where that is more to the point than a share."""

    name: str
    used: float
    size: float
    unit: str = "bytes"
    least_free: float = 0.0


@dataclass(frozen=True, slots=True)
class AlarmThresholds:
    """By the settings MONITOR_*."""

    errors: float = 0.2
    site_errors: float = 0.5
    challenges: float = 0.05
    duplicates: float = 0.5
    late: float = 0.05
    coverage_from: int = 20
    coverage: Mapping[str, float] = field(default_factory=dict)
    quarantine: int = 500
    budget: float = 0.8
    full: float = 0.9
    flood_from: int = 50
    slow_times: float = 3.0


@dataclass(slots=True)
class Facts:
    """One look. None: it could not be asked, and nothing is said of it."""

    now_ms: int
    away: dict[str, str] = field(
        default_factory=dict
    )  # part -> why it does not answer, "" = it does
    rooms: list[Room] = field(default_factory=list)
    workers: list[dict[str, Any]] | None = None
    wanted: int | None = None  # workers that the operator asked for; None = no fleet is kept
    is_watched: bool | None = None  # None = no fleet is kept, or it was stopped
    ended: list[Ended] = field(default_factory=list)
    #: Nodes of a fleet that is kept -> why they do not answer, "" = they do; None = nobody watches.
    nodes: Mapping[str, str] | None = None
    #: Nodes -> why the last workers there ended soon after their start, "" = they stay up.
    failing: Mapping[str, str] | None = None
    replaced: set[str] = field(default_factory=set)  # jobs that were lost, and another one works
    due: int | None = None  # domains that have something to fetch now
    quarantined: int | None = None
    last: Window | None = None  # ten minutes
    half: Window | None = None  # half an hour
    hour: Window | None = None
    two_hours: Window | None = None
    hours: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    sites: Iterable[str] = ()  # that are crawled: enabled and not paused
    sums: Mapping[str, SiteSums] = field(default_factory=dict)
    before: Mapping[str, Counter[str]] = field(default_factory=dict)  # sums of the week before
    drifting: Mapping[str, str] | None = None  # domain -> reason
    spent: Mapping[str, tuple[float, float]] | None = None  # what -> (spent today, limit)
    own: Mapping[str, str] | None = None  # failed monitors of other suites -> reason

    @property
    def is_stopped(self) -> bool:
        """The operator ended the fleet."""
        return self.wanted == 0

    def worked(self, hour: int) -> bool:
        """Whether the fleet did anything in an hour; what is not known of it counts as done."""
        first = self.since.get(WHOLE)
        return first is None or hour < first or self.hours[WHOLE].get(hour, 0) > 0

    def site(self, name: str) -> Site | None:
        first = self.since.get(name)
        return None if first is None else Site(self.hours[name], first, self.now_ms, self.worked)


Judge = Callable[[Facts, AlarmThresholds], Iterator[Verdict]]


def judge(facts: Facts, limits: AlarmThresholds) -> list[Verdict]:
    """All that can be told. Where nothing comes at all no site is blamed for it, and one whose
    visits fail is not told of as silent as well."""
    found = [verdict for one in _FIRST for verdict in one(facts, limits)]
    if facts.away.get("redis"):
        return found
    for one in _NUMBERS:
        found += one(facts, limits)
    if any(v.reason and v.kind == "no_answer" for v in found):
        found = [v for v in found if v.kind != "errors"]  # the same said twice
    nothing = any(v.reason and v.kind in ("no_worker", "no_data", "no_answer") for v in found)
    if not nothing and not facts.is_stopped:
        known = {v.subject for v in found if v.reason and v.kind in ("errors", "challenges")}
        found += (v for v in site_silent(facts, limits) if v.subject not in known)
    return found


def listed(facts: Facts) -> set[str]:
    """Kinds whose bad subjects are all known in this look."""
    asked = {
        "worker_gone": facts.workers,
        "node_gone": facts.nodes,
        "no_start": facts.failing,
        "drift": facts.drifting,
        "monitor": facts.own,
    }
    return {kind for kind, answer in asked.items() if answer is not None}


# ---------------------------------------------------------------- parts and workers
def away(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    for part, why in facts.away.items():
        yield Verdict("away", part, why)


def full(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    for room in facts.rooms:
        if not room.size:
            continue
        free, whole = room.size - room.used, size_text(room.size, room.unit)
        if room.least_free:
            bad = free < room.least_free
            text = f"{size_text(free, room.unit)} of {whole} are free"
        else:
            bad = room.used > limits.full * room.size
            text = f"{room.used / room.size:.0%} of {whole} are used"
        yield Verdict("full", room.name, text if bad else "")


def no_worker(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    if facts.workers is None or facts.is_stopped:
        return
    alive = sum(row["alive"] for row in facts.workers)
    is_needed = bool(facts.wanted) or bool(facts.due)
    reason = ""
    if not alive and is_needed:
        asked = f"{facts.wanted} are wanted" if facts.wanted else f"{facts.due} domains are due"
        reason = f"no worker is alive, {asked}"
    yield Verdict("no_worker", ALL, reason)


def worker_gone(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    for row in facts.workers or ():
        if not row["alive"]:
            yield Verdict(
                "worker_gone", row["id"],
                f"no heartbeat for {row['age_s']:.0f} s, and it did not sign off",
            )  # fmt: skip
    told_ms = 60_000 * KINDS["worker_gone"].within
    failing = {node for node, why in (facts.failing or {}).items() if why}
    for ended in facts.ended:
        if ended.is_failed_start or (ended.node in failing and 1000 * ended.lived_s < _YOUNG_MS):
            continue  # no_start tells of its node, once
        # One whose successor works already is told all the same, by the next look.
        lasts_ms = told_ms if ended.id in facts.replaced else _ENDED_MS
        if ended.is_lost and facts.now_ms - ended.at_ms < lasts_ms:
            where = f"job {ended.id} on node {ended.node}"
            # By the id that its silence was told with: one death is one incident.
            subject = ended.worker or ended.id
            yield Verdict("worker_gone", subject, f"{where}: {ended.how}: {ended.why}")


def nobody_watches(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    """The lock of the one that leads ran out, and nobody took it."""
    if facts.is_watched is not None:
        text = (
            "workers are wanted and no `scrapy fleet watch` runs: one that dies is not replaced,"
            " and a node that is gone is not noticed"
        )
        yield Verdict("nobody_watches", ALL, "" if facts.is_watched else text)


def no_start(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    """One fault of a node, however often a start is tried there."""
    for node, why in (facts.failing or {}).items():
        yield Verdict("no_start", node, "" if facts.is_stopped else why)


def node_gone(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    """By the watch: its workers may live on, but none can be started or ended there."""
    for node, why in (facts.nodes or {}).items():
        yield Verdict("node_gone", node, "" if facts.is_stopped else why)


def no_data(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    if facts.last is None or facts.due is None or facts.is_stopped:
        return
    pages = _summed(facts.last)["pages"]
    bad = facts.due > 0 and not pages
    text = f"{facts.due} domains are due and no visit ended for 10 minutes"
    yield Verdict("no_data", "pages", text if bad else "")
    together: Counter[int] = Counter()
    for site in facts.sites:
        together.update(facts.hours.get(site, {}))
    known = [facts.since[site] for site in facts.sites if site in facts.since]
    if not known:
        return
    silence = Site(together, min(known), facts.now_ms, facts.worked).silence()
    if silence.expected is not None:
        text = f"{silence.counted:.0f} new articles of all sites in {_hours(silence.hours)}"
        text += f", usual are {silence.expected:.0f} and more"
        yield Verdict("no_data", "articles", text if silence.is_silent else "")


def no_answer(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    """Since the fleet's first visit: no network, a proxy that refuses, a list of wrong names."""
    visits = sum(sums.pages for sums in facts.sums.values())
    if facts.is_stopped or visits < _FRUITLESS_VISITS:
        return
    bad = not any(sums.last_fetch_ms for sums in facts.sums.values())
    reasons: Counter[str] = Counter()
    for sums in facts.sums.values():
        reasons.update(sums.outcomes)
    most = ", ".join(f"{label} {count}" for label, count in reasons.most_common(3))
    text = f"{visits} visits of {len(facts.sums)} sites since the start, and no answer: {most}"
    yield Verdict("no_answer", ALL, text if bad else "")


# ---------------------------------------------------------------- sites
def site_silent(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    for name in facts.sites:
        site = facts.site(name)
        silence = site.silence() if site is not None else None
        if silence is None or silence.expected is None:
            continue
        reason = ""
        if silence.is_silent:
            reason = (
                f"{silence.counted:.0f} new articles in {_hours(silence.hours)}, usual at this"
                f" hour of this weekday are {silence.expected:.0f} and more"
            )
            sums = facts.sums.get(name)
            if sums is not None and sums.last_error_ms > sums.last_new_ms:
                reason += f"; its last visits: {sums.last_error}"
        yield Verdict("site_silent", name, reason)


def site_flood(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    """Not after a time in which the fleet stood still: what was missed then comes at once."""
    this_hour = facts.now_ms // HOUR_MS
    if facts.hour is None or not all(facts.worked(this_hour - back) for back in range(1, 25)):
        return
    for name in facts.sites:
        site = facts.site(name)
        most = site.most(1) if site is not None else None
        if most is None:
            continue
        new = facts.hour.sites.get(name, Counter())["new"]
        bad = new >= limits.flood_from and new > FLOOD_TIMES * most
        text = f"{new} new articles within an hour, never more than {most:.0f} in the weeks before"
        yield Verdict("site_flood", name, text if bad else "")


# ---------------------------------------------------------------- shares
def slow(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    window = facts.two_hours
    if window is None:
        return
    every = _summed(window)
    stage = _slowest_stage(window)
    bad = False
    if every["timed"] >= 20:
        share = every["late"] / every["timed"]
        bad = share > above(limits.late, every["timed"])
        yield Verdict("slow", ALL, _late(every, stage) if bad else "")
    if bad:
        return
    for site, counts in window.sites.items():
        if counts["timed"] >= 10:
            share = counts["late"] / counts["timed"]
            is_late = share > above(limits.late, counts["timed"])
            yield Verdict("slow", site, _late(counts, "") if is_late else "")


def _late(counts: Mapping[str, int], stage: str) -> str:
    text = (
        f"{counts['late']} of {counts['timed']} new articles were searchable more than 30 minutes"
        " after their publication"
    )
    return f"{text}; most of the time: {stage}" if stage else text


def _slowest_stage(window: Window) -> str:
    prefix = f"{metrics.ARTICLE_LAG}/"
    spent = {
        name.removeprefix(prefix).removesuffix("/ms"): ms
        for name, ms in window.stats.items()
        if name.startswith(prefix) and name.endswith("/ms") and "/total/" not in name
    }
    return max(spent, key=lambda stage: spent[stage]) if spent else ""


def errors(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    yield from _share_of(facts, "errors", limits.errors, limits.site_errors, 10)


def challenges(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    yield from _share_of(facts, "challenges", limits.challenges, 0.5, 3)


def _share_of(
    facts: Facts, what: str, most: float, site_most: float, least: int
) -> Iterator[Verdict]:
    """Of some sites' visits, or of the fleet's: without those sites, and without the worst one, as
    one site is not the fleet."""
    if facts.last is None or facts.half is None or facts.hour is None:
        return
    sites = [_site_share(facts, what, site, site_most, least) for site in facts.hour.sites]
    known = [verdict for verdict in sites if verdict is not None]
    few = {verdict.subject for verdict in known if verdict.reason}
    if len(few) > len(facts.hour.sites) / 3:
        few = set()
    fleet = [_fleet_share(window, what, most, few) for window in (facts.last, facts.half)]
    bad = [reason for reason in fleet if reason]
    if bad:
        yield Verdict(what, ALL, bad[0])
        return
    if fleet[-1] is not None:
        yield Verdict(what, ALL, "")
    yield from known


def _fleet_share(window: Window, what: str, most: float, few: set[str]) -> str | None:
    """Why it is too large; "" = it is not; None: there are too few visits to tell."""
    worst = _ranked(window, what)
    out = few | ({worst[0]} if len(worst) > 2 else set())
    every: Counter[str] = Counter()
    for site, counts in window.sites.items():
        if site not in out:
            every.update(counts)
    if every["pages"] < 50:
        return None
    if every[what] / every["pages"] <= above(most, every["pages"]):
        return ""
    whole = _summed(window)
    text = f"{whole[what]} of {whole['pages']} visits (at most {most:.0%})"
    return f"{text}: {_worst(window, what)}"


def _ranked(window: Window, what: str) -> list[str]:
    return sorted(window.sites, key=lambda site: -window.sites[site][what])


def _site_share(facts: Facts, what: str, site: str, most: float, least: int) -> Verdict | None:
    """Of its visits of ten minutes, if they are enough, and of an hour: well in both."""
    windows = [w.sites.get(site, Counter()) for w in (facts.last, facts.hour) if w is not None]
    enough = [counts for counts in windows if counts["pages"] >= least]
    if not enough:
        return None
    for counts in enough:
        if counts[what] >= least and counts[what] / counts["pages"] > most:
            reason = f"{counts[what]} of its last {counts['pages']} visits"
            sums = facts.sums.get(site)
            if sums is not None and sums.last_error:
                reason += f", the last one {sums.last_error}"
            return Verdict(what, site, reason)
    return Verdict(what, site, "")


def _worst(window: Window, what: str) -> str:
    ranked = _ranked(window, what)[:3]
    parts = [f"{site} {window.sites[site][what]}" for site in ranked if window.sites[site][what]]
    reasons = Counter(window.labelled(metrics.PAGE_REASON)).most_common(3)
    return ", ".join([*parts, *(f"{reason} {n}" for reason, n in reasons)])


def duplicates(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    window = facts.two_hours
    if window is None:
        return
    again, new = window.stats[metrics.ARTICLES_DUPLICATE], window.stats[metrics.ARTICLES_NEW]
    if again + new < 50:
        return
    bad = again / (again + new) > limits.duplicates
    text = f"{again} of {again + new} articles that look new are stored under another address"
    yield Verdict("duplicates", ALL, f"{text}: {_worst(window, 'duplicates')}" if bad else "")


def field_falls(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    """Against the floors of the settings for the fleet, against its own past for a site."""
    window = facts.two_hours
    if window is None:
        return
    every = _summed(window)
    of = every["articles"]
    for name in COVERED_FIELDS:
        have, least = every[f"f:{name}"], limits.coverage.get(name, 0.0)
        bad = False
        if of >= limits.coverage_from:
            bad = have / of < below(least, of)
            text = f"{name}: {have} of {of} articles of two hours (at least {least:.0%})"
            yield Verdict("field_falls", name, text if bad else "")
        for site, counts in window.sites.items():
            if not bad:
                yield from _falls_at(facts, limits, site, counts, name)


def _falls_at(
    facts: Facts, limits: AlarmThresholds, site: str, counts: Counter[str], name: str
) -> Iterator[Verdict]:
    before = facts.before.get(site, Counter())
    of, had = counts["articles"], before["articles"]
    if of < limits.coverage_from or had < 2 * limits.coverage_from:
        return
    have, usual = counts[f"f:{name}"], before[f"f:{name}"] / had
    # Five deviations: hundreds of sites with four fields are looked at all day.
    bad = have / of < min(below(usual, of, 5.0), usual - 0.2)
    text = f"{name}: {have} of {of} articles of two hours, {usual:.0%} of the week before"
    yield Verdict("field_falls", f"{site}/{name}", text if bad else "")


# ---------------------------------------------------------------- the rest
def drift(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    for domain, reason in (facts.drifting or {}).items():
        yield Verdict("drift", domain, reason)


def quarantine(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    before = facts.hour.gauges.get("quarantined") if facts.hour is not None else None
    if facts.quarantined is None or before is None:
        return
    grown = facts.quarantined - before
    text = f"{grown} URLs were given up within an hour, {facts.quarantined} in all"
    yield Verdict("quarantine", ALL, text if grown > limits.quarantine else "")


def model_budget(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    for what, (spent, limit) in (facts.spent or {}).items():
        if limit > 0:
            text = f"{spent:,g} of {limit:,g} {what} of today"
            yield Verdict("model_budget", what, text if spent >= limits.budget * limit else "")


def slow_node(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    """By the mean time of a fetch and of a parsed page, beside the median of the others."""
    if facts.hour is None:
        return
    reasons: dict[str, list[str]] = {}
    for many, spent, what, least_ms in (
        ("fetches", "fetch_ms", "fetch", 1000),
        ("parses", "parse_ms", "page to parse", 100),
    ):
        means = {
            node: sums[spent] / sums[many]
            for node, sums in facts.hour.nodes.items()
            if sums[many] >= 100
        }
        for node, mean in means.items():
            others = [value for name, value in means.items() if name != node]
            if not others:
                continue
            usual = median(others)
            reasons.setdefault(node, [])
            if mean > limits.slow_times * usual and mean > usual + least_ms:
                reasons[node].append(f"{mean:.0f} ms a {what}, {usual:.0f} ms on the others")
    for node, said in reasons.items():
        yield Verdict("slow_node", node, "; ".join(said))


def own(facts: Facts, limits: AlarmThresholds) -> Iterator[Verdict]:
    for name, reason in (facts.own or {}).items():
        yield Verdict("monitor", name, reason)


def _summed(window: Window) -> Counter[str]:
    every: Counter[str] = Counter()
    for counts in window.sites.values():
        every.update(counts)
    return every


def _hours(hours: int) -> str:
    return "an hour" if hours == 1 else f"{hours} hours"


def size_text(value: float, unit: str) -> str:
    if unit != "bytes":
        return f"{value:g} {unit}"
    return f"{value / 1000**3:.1f} GB" if value >= 1000**3 else f"{value / 1000**2:.0f} MB"


_FIRST: tuple[Judge, ...] = (away, full)
_NUMBERS: tuple[Judge, ...] = (
    no_worker, nobody_watches, worker_gone, no_start, node_gone, no_data, no_answer, site_flood,
    slow, errors, challenges, duplicates, field_falls, drift, quarantine, model_budget, slow_node,
    own,
)  # fmt: skip
