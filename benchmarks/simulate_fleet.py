"""Fleets that no desk has: 1 to 1,000 workers, 1,000 to 1,000,000 domains, up to a billion URLs.

    python -m benchmarks.simulate_fleet               three to four minutes on two quiet cores: where it
                                                      bends, and what CC-NEWS takes
    python -m benchmarks.simulate_fleet --full        the whole curve, four times as many calls a point
    python -m benchmarks.simulate_fleet --quick       a fleet of four in seconds
    python -m benchmarks.simulate_fleet --check       beside what benchmarks.bench_workers measured
    python -m benchmarks.simulate_fleet --full --picture docs/fleet-scale.svg --json curve.json

The frontier and its scripts are the real ones, on a Redis of their own; workers, fetches and time
are simulated (benchmarks/fleet_model.py says how, and how one shard stands for all). What a call
costs Redis is measured first, on each shard as it was filled; ``page_ms`` is what bench_crawl
measured (fleet/sizing.py keeps the figure). A run with the same seed and the same service times
gives the same result; ``--times`` takes those of an earlier run from its JSON.

Told of each fleet: pages a second, and what bounds them; calls and Redis' CPU a page; how long
domains waited behind the moment from which they might have been fetched (median, largest,
unserved ones included); the least gap between two fetches of a domain, judged at each lease; bytes
in Redis a queued URL.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.fleet_model import Cpu, Fleet, Shard, Simulation, Times, calibrate, server_cpu
from newscrawler.fleet import sizing
from newscrawler.frontier import connect, redis_server

#: CPU of a page as `scrapy plan` reckons it, half of the sites with a selector set.
PAGE_MS = (sizing.CPU_MS_WITH_SET + sizing.CPU_MS_GENERIC) / 2
#: URLs with which a shard is filled at most, but for --whole-shards: more of them cost minutes, and
#: a call costs the same (performance.md).
MOST_RECORDS = 60_000
#: Calls of each simulated shard: by default, and for --full.
CALLS, CALLS_FULL = 3_000, 12_000
#: What the two parts of a run cost, relative to each other: a record that is filled in, a call.
FILL_WORK, CALL_WORK = 1.0, 25.0
#: Calls that a run lasts for each simulated worker where there are more of them than domains can
#: keep busy.
CALLS_A_WORKER = 60
#: There and back between a worker and Redis, without Redis' work: machines of one data centre.
NETWORK_US = 300.0
#: News of all the world: articles a day of CC-NEWS, and sites with as many.
CC_NEWS_ARTICLES, CC_NEWS_SITES = 1_000_000, 20_000


@dataclass(frozen=True, slots=True)
class Row:
    """Of one fleet, all shards and workers. ``bound``: what keeps it from being faster."""

    fleet: Fleet
    sampled: int  # workers that were simulated
    filled: int  # records that lay in the simulated shard
    pages_per_s: float
    bound: str
    calls_per_page: float
    redis_ms_per_page: float
    redis_busy: float  # share of each shard's processor
    model_over_measured: float  # the model's Redis time beside that of the run's own calls
    wait_median_s: float
    wait_largest_s: float
    round_median_ms: float
    leases_checked: int
    least_gap_s: float
    too_soon: int
    bytes_per_record: float
    times: Times


async def filled(client: Any, cpu: Cpu, fleet: Fleet, most_records: int) -> Shard:
    """A shard as the fleet has them, or with as many URLs as one has patience for."""
    held = held_records(fleet, most_records)
    shard = Shard(client, replace(fleet, records=held * fleet.shards), cpu)
    await shard.fill()
    return shard


async def simulate(
    shard: Shard, fleet: Fleet, *, calls: int, seconds: float,
    times: Times | None = None, rounds: int = 150,
) -> Row:  # fmt: skip
    """Measures what calls cost on this shard, unless that is given, and runs the fleet.

    :param calls: of the simulated shard, or ``seconds`` of simulated time: what comes first
    :raises RuntimeError: a domain was leased too soon, or twice at a time
    """
    shard.fleet = fleet
    if times is None:
        times = await calibrate(shard, rounds, random.Random(fleet.seed), NETWORK_US)
    found = await Simulation(shard, times, calls=calls, seconds=seconds).run()
    if found.too_soon or found.twice:
        raise RuntimeError(
            f"{found.too_soon} leases came before their domain's delay, {found.twice} while"
            f" another was under way: {fleet}"
        )
    pages_s = found.pages / found.seconds * fleet.workers / fleet.own_workers
    busy = found.redis_busy_s / found.seconds
    bounds = fleet.bounds() | {"Redis": pages_s / busy if busy else 0.0}
    waits = found.waits_s or [0.0]
    return Row(
        fleet=fleet,
        sampled=fleet.own_workers,
        filled=shard.made_at_first,
        pages_per_s=pages_s,
        bound=min(bounds, key=bounds.__getitem__),
        calls_per_page=found.calls / max(1, found.pages),
        redis_ms_per_page=1000 * found.redis_busy_s / max(1, found.pages),
        redis_busy=busy,
        model_over_measured=found.redis_busy_s / max(1e-9, found.redis_measured_s),
        wait_median_s=statistics.median(waits),
        wait_largest_s=max(waits),
        round_median_ms=1000 * statistics.median(found.round_s or [0.0]),
        leases_checked=found.leases_checked,
        least_gap_s=found.least_gap_s,
        too_soon=found.too_soon,
        bytes_per_record=shard.bytes_per_record,
        times=times,
    )


def short_curve() -> list[tuple[str, Fleet]]:
    """The points between which it bends, on shards that are filled in seconds."""
    base = Fleet(workers=1, domains=20_000, records=2_000_000, page_ms=PAGE_MS)
    rows = [("1 shard", replace(base, workers=n)) for n in (1, 10, 30, 100, 400)]
    rows += [("4 shards", replace(base, workers=n, shards=4)) for n in (100, 400)]
    rows += [("16 shards", replace(base, workers=n, shards=16)) for n in (100, 400)]
    rows.append(("domains", replace(base, workers=100, domains=1_000, records=100_000)))
    rows.append(("idle", replace(base, workers=400, domains=1_000, records=100_000)))
    many = replace(base, workers=1000, domains=100_000, records=10**9, shards=1000)
    return [*rows, ("records", many)]


def curve(quick: bool) -> list[tuple[str, Fleet]]:
    """What is simulated: (name of the series, fleet)."""
    base = Fleet(workers=1, domains=100_000, records=10_000_000, page_ms=PAGE_MS)
    if quick:
        small = replace(base, domains=400, records=2_000)
        return [("1 shard", replace(small, workers=n)) for n in (1, 4)] + [
            ("4 shards", replace(small, workers=4, shards=4))
        ]
    rows = [
        ("1 shard", replace(base, workers=n)) for n in (1, 3, 10, 30, 100, 200, 400, 1000)
    ]  # fmt: skip
    for shards, workers in ((4, (30, 100, 300, 1000)), (16, (100, 300, 1000))):
        name = f"{shards} shards"
        rows += [(name, replace(base, workers=n, shards=shards)) for n in workers]
    rows += [
        ("16 shards, all asked", replace(base, workers=n, shards=16, call_all=True))
        for n in (100, 300, 1000)
    ]
    for domains in (1_000, 10_000, 1_000_000):
        shards = 16 if domains > 100_000 else 1
        fleet = replace(base, workers=100, domains=domains, records=domains * 100, shards=shards)
        rows.append(("domains", fleet))
    rows.append(("idle", replace(base, workers=1000, domains=1_000, records=100_000)))
    for records in (10**8, 10**9):
        shards = records // 1_000_000
        rows.append(("records", replace(base, workers=1000, records=records, shards=shards)))
    return rows


HEAD = (
    "| series | workers | domains | URLs | shards | simulated: workers, URLs of one shard | pages/s |"
    " bound by | calls/page | Redis ms/page | each shard busy | wait median / largest, s |"
    " least gap, s | leases judged | B/URL |"
)  # fmt: skip


def table(rows: list[tuple[str, Row]]) -> str:
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    for name, row in rows:
        f = row.fleet
        gap = f"{row.least_gap_s:.3f}" if row.least_gap_s < math.inf else "-"
        lines.append(
            f"| {name} | {f.workers:,} | {f.domains:,} | {f.records:,} | {f.shards:,} |"
            f" {row.sampled:,}, {row.filled:,} | {row.pages_per_s:,.0f} | {row.bound} | {row.calls_per_page:.2f} |"
            f" {row.redis_ms_per_page:.3f} | {row.redis_busy:.0%} |"
            f" {row.wait_median_s:.2f} / {row.wait_largest_s:.1f} | {gap} |"
            f" {row.leases_checked:,} | {row.bytes_per_record:.0f} |"
        )
    return "\n".join(lines)


def news_of_the_world(redis_ms: float, record_b: float) -> str:
    """What CC-NEWS takes: by `scrapy plan`, and by what was simulated.

    :param redis_ms: of a page; ``record_b`` of a queued URL
    """
    plan = sizing.Plan(sites=CC_NEWS_SITES, articles=CC_NEWS_ARTICLES, delay_s=2.0)
    size = sizing.size(plan)
    per_s = size.requests_a_second / sizing.BUSY
    queued_gb = plan.articles * 7 * record_b / 1e9
    cores = per_s * redis_ms / 1000
    lines = [
        f"{plan.articles:,} articles a day of {plan.sites:,} sites:"
        f" {size.requests_a_second:,.0f} requests a second in the mean, {per_s:,.0f} at the busiest",
        f"workers: {size.workers} ({size.worker_cpus:.0f} processors), by `scrapy plan`",
        f"Redis: {size.redis_cpus:.2f} processors by `scrapy plan`, {cores:.2f} as simulated"
        f" ({redis_ms:.3f} ms a page)",
        f"shards: {max(1, -(-int(cores * 100) // 50))} at half of a processor each",
        f"Redis' memory after a year: {size.redis_bytes / 1e9:.0f} GB by `scrapy plan`, of it what is"
        f" queued {plan.articles * 7 * sizing.QUEUED_B / 1e9:.2f} GB ({queued_gb:.2f} as simulated)",
        f"disk after a year: {size.store_bytes_a_year / 1e12:.1f} TB of articles,"
        f" {size.raw_bytes / 1e12:.1f} TB of raw pages",
    ]
    return "\n".join(lines)


class Remaining:
    """A line for each fleet that was simulated, with how long the rest will take."""

    def __init__(
        self, fleets: list[tuple[str, Fleet]], calls: int, most_records: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._clock, self._began = clock, clock()
        self._work: list[float] = []
        last: Fleet | None = None
        for _, fleet in fleets:
            work = most_calls(fleet, calls) * CALL_WORK
            if last is None or not fleet.is_alike(last):
                work += held_records(fleet, most_records) * FILL_WORK
            self._work.append(work)
            last = fleet

    def text(self, done: int, name: str, row: Row) -> str:
        """:param done: fleets that were simulated, this one included"""
        spent_s = self._clock() - self._began
        share = sum(self._work[:done]) / sum(self._work)
        left_s = spent_s / share - spent_s
        return (
            f"{done} of {len(self._work)}: {name}, {row.fleet.workers:,} workers:"
            f" {row.pages_per_s:,.0f} pages/s, bound by {row.bound};"
            f" {spent_s:.0f} s so far, about {left_s:.0f} s left"
        )


def held_records(fleet: Fleet, most_records: int) -> int:
    """With which its shard is filled."""
    return min(fleet.own_records, max(fleet.own_domains * 2, most_records))


def most_calls(fleet: Fleet, calls: int) -> int:
    """Where there are more workers than domains can keep busy most calls bring nothing: with few of
    them nothing would be seen."""
    if fleet.domains < fleet.workers * fleet.concurrency:
        return max(calls, CALLS_A_WORKER * fleet.own_workers)
    return calls


async def run(
    fleets: list[tuple[str, Fleet]], *, calls: int, seconds: float, most_records: int,
    times: Times | None = None, say: Callable[[str], None] = print,
) -> list[tuple[str, Row]]:  # fmt: skip
    """On a Redis of their own, which is gone afterwards. ``say`` is told each row as it comes."""
    rows: list[tuple[str, Row]] = []
    remaining = Remaining(fleets, calls, most_records)
    with tempfile.TemporaryDirectory(prefix="nc-bench-", ignore_cleanup_errors=True) as folder:
        url = redis_server.ensure(Path(folder))
        client: Any = connect(url)
        try:
            await client.config_set("appendonly", "no")  # its rewrites are no part of a call
            pid = (await client.info("server"))["process_id"]
            shard = None
            with server_cpu(pid) as cpu:
                for name, fleet in fleets:
                    if shard is None or not fleet.is_alike(shard.fleet):
                        shard = await filled(client, cpu, fleet, most_records)
                    most = most_calls(fleet, calls)
                    row = await simulate(shard, fleet, calls=most, seconds=seconds, times=times)
                    rows.append((name, row))
                    say(remaining.text(len(rows), name, row))
        finally:
            await client.aclose()
            redis_server.stop(Path(folder))
    return rows


def check_fleets(hosts: int, delay: float, latency: float) -> list[tuple[str, Fleet]]:
    """What benchmarks.bench_workers runs for real: hosts of each worker, their delay."""
    return [
        (
            "check",
            Fleet(
                workers=n, domains=n * hosts, records=n * hosts * 50, delay_s=delay,
                latency_s=latency, page_ms=PAGE_MS, of_newsweb=True,
            ),
        )
        for n in (1, 2, 4, 8)
    ]  # fmt: skip


def calls_of(args: argparse.Namespace) -> int:
    """Of each simulated shard. The check is small, and compared with what was measured."""
    if args.quick:
        return 600
    return CALLS_FULL if args.full or args.check else CALLS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a small fleet in seconds")
    parser.add_argument(
        "--full", action="store_true", help="the whole curve: a quarter of an hour on quiet cores"
    )
    parser.add_argument(
        "--whole-shards", action="store_true", help="shards as full as they are said to be: hours"
    )
    parser.add_argument("--check", action="store_true", help="what bench_workers runs for real")
    parser.add_argument("--hosts", type=int, default=10, help="--check: of each worker")
    parser.add_argument("--delay", type=float, default=2.0, help="--check: of the sites, seconds")
    parser.add_argument("--latency", type=float, default=0.4, help="--check: of the web, seconds")
    parser.add_argument(
        "--calls", type=int, help="of each simulated shard (default: 3000; --full: 12000)"
    )
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--times", type=Path, help="JSON of an earlier run with its service times")
    parser.add_argument("--json", type=Path, help="where the rows go as JSON")
    parser.add_argument("--picture", type=Path, help="where the curve goes as SVG")
    args = parser.parse_args()
    fleets = curve(args.quick) if args.quick or args.full else short_curve()
    if args.check:
        fleets = check_fleets(args.hosts, args.delay, args.latency)
    fleets = [(name, replace(fleet, seed=args.seed)) for name, fleet in fleets]
    times = Times(**json.loads(args.times.read_text())["times"]) if args.times else None
    rows = asyncio.run(
        run(
            fleets,
            calls=args.calls or calls_of(args),
            seconds=8 if args.quick else 60,
            most_records=10**9 if args.whole_shards else MOST_RECORDS,
            times=times,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
    )
    print(table(rows))
    if not (args.quick or args.check):
        alike = next(row for name, row in rows if name == "1 shard" and row.pages_per_s > 400)
        print(news_of_the_world(alike.redis_ms_per_page, rows[0][1].bytes_per_record))
    if args.json:
        found = [{"series": name, **asdict(row)} for name, row in rows]
        data = {"rows": found, "times": asdict(rows[0][1].times)}
        args.json.write_text(json.dumps(data, indent=1))
    if args.picture:
        from benchmarks.fleet_plot import draw

        args.picture.write_text(draw(rows))


if __name__ == "__main__":
    main()
