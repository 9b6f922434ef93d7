"""Whether a page costs the same in a fleet of four as alone: 1, 2 and 4 workers, 10 pages/s each.

    python -m benchmarks.bench_workers

The web's latency is the cap: each answer takes a second, and each worker has ten requests under way, so the workers
do not compete for the machine. Measured over a window in which all of them are at work, start-up left out: CPU of the
workers (user and system), scripts run by Redis (each is one round trip) and Redis' own CPU, per page that the web
was asked for. Two cores are enough; another load on them shows as CPU per page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.crawl.chaos import RedisServer, cpu_s
from tests.crawl.harness import Running, Scrapy, until
from tests.newsweb.process import NewswebProcess

#: What a page may cost more with several workers than with one, share. Less is no fault: on a busy machine
#: more pages end together, and one call takes them all.
TOLERANCE = 0.10
#: Pages per host: the same whatever the number of workers, as their links are part of the work.
PAGES = 15


@dataclass
class Row:
    workers: int
    pages_per_s: float  # of one worker
    cpu_ms: float
    calls: float
    redis_ms: float


def settings(web: NewswebProcess, server: RedisServer, concurrency: int) -> dict[str, Any]:
    return {
        "REDIS_URL": server.url,
        "SITES_FILE": web.sites_file,
        "SELECTORS_DIR": web.selectors_dir,
        "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False,
        "CONCURRENT_REQUESTS": concurrency,
        "CRAWL_FOREVER": True,
        "SPIDERMON_ENABLED": False,
        "LOG_LEVEL": "INFO",
    }


@dataclass
class Look:
    """The sums so far."""

    at: float
    pages: int
    cpu: float
    calls: int
    redis_cpu: float

    @classmethod
    def now(cls, web: NewswebProcess, client: Any, workers: list[Running]) -> Look:
        stats, cpu = client.info("commandstats"), client.info("cpu")
        return cls(
            at=time.monotonic(),
            pages=int(web.stats()["hits"]),
            cpu=sum(cpu_s(worker.process.pid) for worker in workers),
            calls=int(stats.get("cmdstat_evalsha", {"calls": 0})["calls"]),
            redis_cpu=float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"]),
        )


def measure(folder: Path, n: int, *, seconds: float, rate: int, latency: float, hosts: int) -> Row:
    server = RedisServer(folder / "redis")
    running: list[Running] = []
    try:
        with NewswebProcess("bench", folder / "web", hosts=hosts, pages=PAGES, latency=latency) as web:
            scrapy = Scrapy(folder, settings(web, server, round(rate * latency)))
            running += [scrapy.start("crawl", "news") for _ in range(n)]
            # robots.txt and home pages of all hosts come first, and are answered or read faster
            until(lambda: web.stats()["hits"] > 2 * hosts + 2 * rate * n, "the first pages", 180)
            until(lambda: all(run.text().count("Visit ended") > 2 * rate for run in running), "all at work", 120)
            with redis.Redis(port=server.port, decode_responses=True) as client:
                before = Look.now(web, client, running)
                time.sleep(seconds)  # the window
                after = Look.now(web, client, running)
                left = int(client.hget("{f0}:state", "queued") or 0)
            if not left:
                raise SystemExit(f"{n} workers ran out of pages within the window: raise --hosts")
    finally:
        for run in running:
            run.kill()
        server.stop()
    done = after.pages - before.pages
    return Row(
        workers=n,
        pages_per_s=done / (after.at - before.at) / n,
        cpu_ms=1000 * (after.cpu - before.cpu) / done,
        calls=(after.calls - before.calls) / done,
        redis_ms=1000 * (after.redis_cpu - before.redis_cpu) / done,
    )


def table(rows: list[Row]) -> str:
    first = rows[0]
    lines = [
        "| workers | pages/s each | CPU ms/page | beside one | Redis calls/page | beside one | Redis CPU ms/page |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.workers} | {row.pages_per_s:.1f} | {row.cpu_ms:.2f} | {row.cpu_ms / first.cpu_ms - 1:+.1%} | "
            f"{row.calls:.2f} | {row.calls / first.calls - 1:+.1%} | {row.redis_ms:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=30, help="of the window")
    parser.add_argument("--rate", type=int, default=10, help="pages/s of one worker")
    parser.add_argument("--latency", type=float, default=1.0, help="of the web, seconds")
    parser.add_argument("--hosts", type=int, default=240)
    args = parser.parse_args()
    rows = []
    for n in args.workers:
        with tempfile.TemporaryDirectory(prefix="newscrawler-bench-") as folder:
            print(f"{n} workers ...", file=sys.stderr, flush=True)
            rows.append(
                measure(Path(folder), n, seconds=args.seconds, rate=args.rate, latency=args.latency, hosts=args.hosts)
            )
    print(table(rows))
    off = [r.workers for r in rows if max(r.cpu_ms / rows[0].cpu_ms, r.calls / rows[0].calls) - 1 > TOLERANCE]
    if off:
        raise SystemExit(f"more than {TOLERANCE:.0%} above one worker: {', '.join(map(str, off))} workers")


if __name__ == "__main__":
    main()
