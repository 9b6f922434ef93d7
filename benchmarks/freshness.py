"""A simulated day of the news web and the time from publication to the store: run one,
measure it, draw it.

The web and the frontier run on one clock, up to ``factor`` times as fast as ours (pace.py).
Everything else is the program as it is shipped: `scrapy crawl news` over HTTPS, real Redis, real
store. What is measured is in the worker's log (when a page was stored, what kind was visited) and
in the web's own truth (when an article came out) and hits.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.pace import Pace
from newscrawler.frontier import connect
from newscrawler.frontier import redis_server as embedded
from newscrawler.frontier.queue import Frontier, FrontierConfig
from newscrawler.web import urls
from tests.newsweb.process import ROOT, NewswebProcess

HOUR = 3600.0
_VISIT = re.compile(
    r"^(\S+) Visit ended url=(\S+) site=(\S+) kind=(\w+) outcome=(\S+) status=(\d+)", re.M
)


@dataclass(frozen=True)
class Plan:
    """One run. ``fixed_s``: every list at this interval (the baseline); 0 = as shipped."""

    name: str
    hours: float = 24.0
    factor: float = (
        60.0  # most simulated seconds per real one; less while the machine cannot follow
    )
    rate: float = 4.0  # articles per site and simulated hour
    articles: int = 10  # per site, out before the start
    fixed_s: float = 0.0
    layout: str = "names"
    sites: str = ""  # ip: their number; names: a sites file
    start: str = "2026-11-20T05:00:00+07:00"
    rhythm: bool = True
    home_only: bool = False  # ip: of each site the crawl is told nothing but the home page
    unknown: int = 0  # ip: so many further sites of that form, drawn by the seed (unknown.py)
    seed: int = 1  # of the web
    warm_up_s: float = HOUR  # not measured: the store fills with what was there before
    tail_s: float = HOUR / 2  # not measured: too late to be found before the end


@dataclass
class Result:
    """Lags in simulated seconds, one per article that came out in the measured
    time; inf = not stored."""

    name: str
    lags: list[float] = field(default_factory=list)
    by_site: dict[str, list[float]] = field(default_factory=dict)
    by_channel: dict[str, list[float]] = field(default_factory=dict)
    by_hour: dict[int, list[float]] = field(default_factory=dict)  # hour of the day in Hanoi
    new: int = 0  # articles of the measured time that were stored
    visits: dict[str, int] = field(default_factory=dict)  # kind -> visits in the measured time
    revisits: int = 0  # of them of articles that had been visited before
    real_s: float = 0.0
    busy: float = 0.0  # share of the run that the worker was computing
    mean_factor: float = 0.0  # simulated seconds per real one

    @property
    def lists(self) -> int:
        return sum(self.visits.get(kind, 0) for kind in ("home", "feed", "sitemap", "section"))

    def row(self) -> dict[str, Any]:
        return {
            "run": self.name,
            "articles": len(self.lags),
            "missed": sum(lag == float("inf") for lag in self.lags),
            "p50_min": round(percentile(self.lags, 50) / 60, 2),
            "p95_min": round(percentile(self.lags, 95) / 60, 2),
            "p99_min": round(percentile(self.lags, 99) / 60, 2),
            "list_requests_per_new": round(self.lists / max(1, self.new), 2),
            "requests_per_new": round(sum(self.visits.values()) / max(1, self.new), 2),
            "visits": dict(sorted(self.visits.items())),
            "revisits": self.revisits,
            "real_s": round(self.real_s),
            "busy": round(self.busy, 2),
            "mean_factor": self.mean_factor,
        }


def percentile(values: list[float], p: float) -> float:
    """The smallest value that at least p % do not exceed; nan of none."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * p // 100).__int__() - 1)] if ordered else float("nan")


def settings(web: NewswebProcess, data: Path, plan: Plan, redis_url: str) -> dict[str, str]:
    made = {
        "DATA_DIR": str(data),
        "REDIS_URL": redis_url,
        "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
        "CRAWL_FOREVER": "True",
        "SELECTOR_GENERATION": "off",
        "PROGRESS": "off",
        "SPIDERMON_ENABLED": "False",
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "%(created).3f %(message)s",
        "LIST_INTERVAL_FIXED_S": str(plan.fixed_s),
    }
    if plan.layout == "names":
        override = str(web.about["resolve_override"])
        return {
            **made,
            "RESOLVE_OVERRIDE": override,
            "EXTRA_CA_FILE": str(web.about["ca_file"]),
            **_file(plan),
        }
    return {**made, "SITES_FILE": str(web.sites_file), "SELECTORS_DIR": str(web.selectors_dir)}


def _file(plan: Plan) -> dict[str, str]:
    return {"SITES_FILE": plan.sites} if plan.sites else {}


async def _set_clock(redis_url: str, clock: dict[str, Any]) -> None:
    client = connect(redis_url, single=False)
    try:
        frontier = Frontier(client, FrontierConfig(loopback_only=True), "bench")
        await frontier.set_clock(clock["factor"], clock["offset_ms"])
    finally:
        await client.aclose()


def run(plan: Plan, folder: Path) -> Result:
    """Starts web, Redis and crawl in ``folder``, lets the simulated hours pass,
    stops all, measures."""
    data = folder / "data"
    data.mkdir(parents=True)
    redis_url = embedded.ensure(data)
    started = time.time()
    options: dict[str, Any] = {
        "sites": plan.sites or None,
        "rhythm": plan.rhythm,
        "home_only": plan.home_only,
        "unknown": plan.unknown or None,
        "seed": plan.seed,
    }
    try:
        with NewswebProcess(
            plan.layout, folder / "web", articles=plan.articles, rate=plan.rate, duration=plan.hours + 1,
            factor=plan.factor, start=plan.start, faults="none", **options,
        ) as web:  # fmt: skip
            asyncio.run(_set_clock(redis_url, web.about["clock"]))
            options_ = [
                x
                for n, v in settings(web, data, plan, redis_url).items()
                for x in ("-s", f"{n}={v}")
            ]
            with (folder / "crawl.log").open("wb") as log:
                command = [sys.executable, "-m", "scrapy", "crawl", "news", *options_]
                pace = Pace(web, redis_url, plan.factor)
                pace.set(1.0)  # a start takes seconds, which are no part of the simulated day
                crawl = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
                _wait_for_start(crawl, folder / "crawl.log")
                pace.set(plan.factor / 4)
                usage = _until(crawl, pace, _world(web.truth())["started"] + plan.hours * HOUR)
            truth = web.truth()
            speed = pace.close()
    finally:
        embedded.stop(data)
    result = measure(
        plan, truth, (folder / "crawl.log").read_text(errors="replace"), pace.simulated
    )
    result.real_s = time.time() - started
    result.busy = usage / result.real_s
    result.mean_factor = speed["mean_factor"]
    return result


def _wait_for_start(crawl: subprocess.Popen[bytes], log: Path) -> None:
    """Until the first page was read, two minutes at most."""
    deadline = time.monotonic() + 120
    while "Visit ended" not in log.read_text(errors="replace"):
        if crawl.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"the crawl did not start, it says: {log.read_text(errors='replace')[-800:]}"
            )
        time.sleep(0.1)


def _until(crawl: subprocess.Popen[bytes], pace: Pace, end: float) -> float:
    """Waits for the simulated second, then stops the crawl in order. Returns its CPU seconds."""
    while pace.simulated(time.time()) < end:
        if crawl.poll() is not None:
            raise RuntimeError(f"the crawl ended by itself with {crawl.returncode}")
        time.sleep(0.25)
        pace.look()
    crawl.send_signal(signal.SIGINT)
    _, status, usage = os.wait4(crawl.pid, 0)
    crawl.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def _world(truth: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in truth if row["type"] == "world")


def measure(
    plan: Plan, truth: list[dict[str, Any]], log: str, simulated: Callable[[float], float]
) -> Result:
    world = _world(truth)
    first = world["started"] + plan.warm_up_s
    last = world["started"] + plan.hours * HOUR - plan.tail_s
    stored: dict[str, float] = {}
    result, seen = Result(plan.name), Counter[str]()
    for real, url, _, kind, outcome, _ in _VISIT.findall(log):
        at = simulated(float(real))
        if outcome == "DONE" and kind in ("article", "page"):
            stored.setdefault(url, at)
        if first <= at <= last:
            result.visits[kind] = result.visits.get(kind, 0) + 1
            result.revisits += kind == "article" and seen[url] > 0
        seen[url] += 1
    hosts = {row["host"]: row for row in truth if row["type"] == "site"}
    found = {
        _key(url, hosts): at for url, at in sorted(stored.items(), key=lambda x: -x[1])
    }  # the earliest wins
    for row in truth:
        if row["type"] != "article" or not row["should_be_found"] or row["optional"]:
            continue
        if not first <= row["first_visible"] <= last:
            continue
        lag = found.get((row["site"], row["id"]), float("inf")) - row["first_visible"]
        hour = int(row["first_visible"] + 7 * HOUR) // 3600 % 24
        channel = "several lists" if len(row["channels"]) > 1 else f"{row['channels'][0]} only"
        result.lags.append(lag)
        result.by_site.setdefault(row["site"], []).append(lag)
        result.by_channel.setdefault(channel, []).append(lag)
        result.by_hour.setdefault(hour, []).append(lag)
        result.new += lag < float("inf")
    return result


def _key(url: str, hosts: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """Site and article id of an article's address, whatever its slug; the address
    itself where it is none."""
    row = hosts.get(urls.domain_of(url))
    match = (
        re.match(row["path_regex"], "/" + url.split("/", 3)[3].partition("?")[0]) if row else None
    )
    return (row["site"], match[1]) if row and match else ("", url)


def save(results: list[Result], plans: list[Plan], path: Path) -> None:
    rows = [
        {**r.row(), "plan": asdict(plan), "measured": asdict(r)}
        for r, plan in zip(results, plans, strict=True)
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
