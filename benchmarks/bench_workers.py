"""Whether a page costs the same in a fleet of four as alone: 1, 2 and 4 workers, 10 pages/s each.

    python -m benchmarks.bench_workers
    python -m benchmarks.bench_workers --workers 1 2 4 8 --delay 2 --hosts 10 --latency 0.4 --rate 4

With ``--delay`` the sites' delay is the cap and not the web's latency, so that the workers wait
for gates; these are the runs that benchmarks.simulate_fleet is checked against.

The web's latency is the cap: an answer takes a second in the mean, and each worker has ten
requests under way. The fleets run at the same time, each with a Redis, hosts and a store of
its own: on a busy machine more pages end together and one call takes them all, so what was
measured one after the other would compare moments of the machine, and a worker alone with
four that wait for one another's CPU. The window begins when each worker knows the links of
all hosts: until then each of them offers every link once, which is a cost per worker and
not per page. Measured are CPU of the workers (user and system), scripts run by Redis (each
is one round trip) and Redis' own CPU, per page that the web was asked for.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.crawl.chaos import RedisServer, cpu_s
from tests.crawl.harness import Scrapy, until
from tests.newsweb.process import NewswebProcess

#: What a page may cost more or less in a larger fleet than with one worker, share.
TOLERANCE = 0.10
#: Pages per host; each links to most of the others.
PAGES = 60
#: Seconds at full rate before the window.
WARM_S = 25
#: Requests that a worker may have under way where the sites' delay is the cap.
CONCURRENCY = 32


@dataclass
class Row:
    workers: int
    pages_per_s: float  # of one worker
    cpu_ms: float
    calls: float
    redis_ms: float


def settings(
    web: NewswebProcess, sites_file: Path, server: RedisServer, concurrency: int, delay: float = 0
) -> dict[str, Any]:
    return {
        "REDIS_URL": server.url,
        "SITES_FILE": sites_file,
        "SELECTORS_DIR": web.selectors_dir,
        "DOWNLOAD_DELAY": delay,
        "AUTOTHROTTLE_ENABLED": False,
        "CONCURRENT_REQUESTS": concurrency,
        "CRAWL_FOREVER": True,
        "SPIDERMON_ENABLED": False,
        "LOG_LEVEL": "INFO",
    }


class Fleet:
    """``n`` workers with hosts, a Redis and a data folder of their own."""

    def __init__(
        self,
        folder: Path,
        n: int,
        web: NewswebProcess,
        sites: list[dict[str, Any]],
        concurrency: int,
        delay: float = 0,
    ) -> None:
        self.n = n
        self.server = RedisServer(folder / "redis")
        sites_file = folder / "sites.json"
        sites_file.write_text(json.dumps({"sites": sites}))
        self.hosts = {host for site in sites for host in site["hosts"]}
        scrapy = Scrapy(folder, settings(web, sites_file, self.server, concurrency, delay))
        self.running = [scrapy.start("crawl", "news") for _ in range(n)]

    def is_at_work(self, rate: int) -> bool:
        return all(run.text().count("Visit ended") >= WARM_S * rate for run in self.running)

    def close(self) -> None:
        for run in self.running:
            run.kill()
        self.server.stop()


@dataclass
class Look:
    """The sums of a fleet so far."""

    cpu: float
    calls: int
    redis_cpu: float
    left: int

    @classmethod
    def at(cls, fleet: Fleet) -> Look:
        with redis.Redis(port=fleet.server.port, decode_responses=True) as client:
            stats, cpu = client.info("commandstats"), client.info("cpu")
            left = int(client.hget("{f0}:state", "queued") or 0)
        return cls(
            cpu=sum(cpu_s(worker.process.pid) for worker in fleet.running),
            calls=int(stats.get("cmdstat_evalsha", {"calls": 0})["calls"]),
            redis_cpu=float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"]),
            left=left,
        )


def measure(
    folder: Path,
    sizes: list[int],
    *,
    seconds: float,
    rate: int,
    latency: float,
    hosts: int,
    delay: float = 0,
) -> list[Row]:
    """One row per fleet. ``hosts``: per worker. ``delay``: of each site; 0 = none, and each worker
    has no more requests under way than make its rate."""
    fleets: list[Fleet] = []
    concurrency = CONCURRENCY if delay else round(rate * latency)
    try:
        with NewswebProcess(
            "bench", folder / "web", hosts=hosts * sum(sizes), pages=PAGES, latency=latency
        ) as web:
            sites = json.loads(web.sites_file.read_text())["sites"]
            for n in sizes:
                share, sites = sites[: hosts * n], sites[hosts * n :]
                fleets.append(Fleet(folder / f"fleet-{n}", n, web, share, concurrency, delay))
            until(lambda: all(fleet.is_at_work(rate) for fleet in fleets), "all at work", 300)
            began = time.time()
            before = [Look.at(fleet) for fleet in fleets]
            time.sleep(seconds)  # the window
            after = [Look.at(fleet) for fleet in fleets]
            ended = time.time()
            hits = [hit["host"] for hit in web.hits() if began <= hit["time"] < ended]
    finally:
        for fleet in fleets:
            fleet.close()
    rows = []
    for fleet, first, last in zip(fleets, before, after, strict=True):
        if not last.left:
            raise SystemExit(
                f"the fleet of {fleet.n} ran out of pages within the window: raise --hosts"
            )
        done = sum(host in fleet.hosts for host in hits)
        rows.append(
            Row(
                workers=fleet.n,
                pages_per_s=done / (ended - began) / fleet.n,
                cpu_ms=1000 * (last.cpu - first.cpu) / done,
                calls=(last.calls - first.calls) / done,
                redis_ms=1000 * (last.redis_cpu - first.redis_cpu) / done,
            )
        )
    return rows


def table(rows: list[Row]) -> str:
    first = rows[0]
    lines = [
        (
            "| workers in a fleet | pages/s each | CPU ms/page | beside one | Redis calls/page |"
            " beside one | Redis CPU ms/page |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.workers} | {row.pages_per_s:.1f} | {row.cpu_ms:.2f} |"
            f" {row.cpu_ms / first.cpu_ms - 1:+.1%} | {row.calls:.2f} |"
            f" {row.calls / first.calls - 1:+.1%} | {row.redis_ms:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=30, help="of the window")
    parser.add_argument("--rate", type=int, default=10, help="pages/s of one worker")
    parser.add_argument("--latency", type=float, default=1.0, help="of the web, seconds")
    parser.add_argument("--hosts", type=int, default=15, help="per worker; 250 in all at most")
    parser.add_argument("--delay", type=float, default=0, help="of the sites, seconds")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newscrawler-bench-") as folder:
        rows = measure(
            Path(folder),
            args.workers,
            seconds=args.seconds,
            rate=args.rate,
            latency=args.latency,
            hosts=args.hosts,
            delay=args.delay,
        )
    print(table(rows))
    off = [
        row.workers
        for row in rows
        if max(abs(row.cpu_ms / rows[0].cpu_ms - 1), abs(row.calls / rows[0].calls - 1)) > TOLERANCE
    ]
    if off:
        raise SystemExit(
            f"more than {TOLERANCE:.0%} off one worker: fleets of {', '.join(map(str, off))}"
        )


if __name__ == "__main__":
    main()
