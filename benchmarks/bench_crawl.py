"""`make bench`: this project's whole pipeline beside stock Scrapy and stock scrapy-redis, in one run.

The web is tests/newsweb's bench layout in a process of its own: 30 hosts x 334 pages of about 65 kB
with about 100 links, each host on its own loopback address, politeness delay 0 (accepted on
loopback only). The stock spiders extract with CSS and LinkExtractor and store nothing; ours does
links, extraction by an active set, normalisation, WARC, SQLite store and ack.

CPU is user + system time of the worker process with its threads and children, start-up and imports
included; Redis' own beside it. Wall times of one run compare with each other only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

from newscrawler.frontier import server as embedded
from tests.newsweb.process import NewswebProcess

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Result:
    name: str
    pages: int
    wall_s: float
    cpu_s: float
    redis_cpu_s: float | None
    peak_mb: float
    articles: int | None = None

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.wall_s

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / max(1, self.pages)


def environment(**more: str) -> dict[str, str]:
    """Compiled modules are kept, as on a user's machine, whatever this one says: else each start compiles again."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def measure(command: list[str], env: dict[str, str], log: Path) -> tuple[float, resource.struct_rusage, str]:
    """Wall seconds, resource usage of the process and the children it waited for, and its stdout."""
    with log.open("wb") as err, tempfile.TemporaryFile() as out:
        started = time.monotonic()
        process = subprocess.Popen(command, env=env, stdout=out, stderr=err, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if process.returncode:
        raise SystemExit(f"{command[2]} failed with {process.returncode}, see {log}:\n{log.read_text()[-2000:]}")
    return wall, usage, text


def redis_cpu(url: str) -> float:
    with redis.Redis.from_url(url) as client:
        info = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def stock(kind: str, web: NewswebProcess, folder: Path, redis_url: str) -> Result:
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(web.homes()) + "\n")
    before = redis_cpu(redis_url)
    command = [sys.executable, "-m", "benchmarks.stock_spiders", kind, str(seeds), redis_url]
    wall, usage, out = measure(command, environment(), folder / f"stock-{kind}.log")
    stats = json.loads(out.strip().splitlines()[-1])
    return Result(
        name="stock Scrapy, in memory" if kind == "memory" else "stock scrapy-redis",
        pages=int(stats["response_received_count"]),
        wall_s=wall,
        cpu_s=usage.ru_utime + usage.ru_stime,
        redis_cpu_s=redis_cpu(redis_url) - before if kind == "redis" else None,
        peak_mb=usage.ru_maxrss / 1024,
        articles=int(stats.get("item_scraped_count", 0)),
    )


def ours(
    web: NewswebProcess, folder: Path, redis_url: str, trace: str | None = None, more: Sequence[str] = ()
) -> Result:
    data = folder / "data"
    stats_file = folder / "stats.json"
    settings = {
        "DATA_DIR": str(data),
        "REDIS_URL": redis_url,
        "SITES_FILE": str(web.sites_file),
        "SELECTORS_DIR": str(web.selectors_dir),
        "ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",
        "DOWNLOAD_DELAY": "0",
        "AUTOTHROTTLE_ENABLED": "False",
        "ARTICLE_MAX_AGE_DAYS": "0",
        "SELECTOR_GENERATION": "off",
        "PROGRESS": "off",
        "LOG_LEVEL": "WARNING",
    }
    stated = [*(f"{name}={value}" for name, value in settings.items()), *more]
    options = [part for setting in stated for part in ("-s", setting)]
    subprocess.run(
        [sys.executable, "-m", "scrapy", "selectors", "load", *options],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env=environment(),
    )
    before = redis_cpu(redis_url)
    runner = ["-m", "cProfile", "-o", trace] if trace else []
    command = [sys.executable, *runner, "-m", "scrapy", "crawl", "news", *options]
    env = environment(NEWSCRAWLER_STATS_FILE=str(stats_file))
    wall, usage, _ = measure([*command, "-s", f"STATS_FILE={stats_file}"], env, folder / "ours.log")
    stats = json.loads(stats_file.read_text())
    return Result(
        name="newscrawler, whole pipeline",
        pages=int(stats["page/fetched"]),
        wall_s=wall,
        cpu_s=usage.ru_utime + usage.ru_stime,
        redis_cpu_s=redis_cpu(redis_url) - before,
        # the worker, and the processes in which it reads pages and writes articles
        peak_mb=(usage.ru_maxrss + int(stats.get("process/children_peak_kb", 0))) / 1024,
        articles=int(stats.get("article/new", 0)),
    )


def table(results: list[Result]) -> str:
    """Markdown, ready for docs/performance.md; ratios to stock scrapy-redis."""
    base = next((r for r in results if r.name == "stock scrapy-redis"), results[0])
    lines = [
        "| variant | pages | articles | pages/s | CPU ms/page | Redis CPU ms/page | peak MB | pages/s ratio | CPU ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        redis_ms = "-" if r.redis_cpu_s is None else f"{1000 * r.redis_cpu_s / max(1, r.pages):.2f}"
        lines.append(
            f"| {r.name} | {r.pages} | {r.articles} | {r.pages_per_s:.1f} | {r.cpu_ms:.2f} | {redis_ms} | "
            f"{r.peak_mb:.0f} | {r.pages_per_s / base.pages_per_s:.2f} | {r.cpu_ms / base.cpu_ms:.3f} |"
        )
    return "\n".join(lines)


def one(
    name: str, web: NewswebProcess, folder: Path, redis_url: str, trace: str | None, more: Sequence[str] = ()
) -> Result:
    print(f"running {name} ... (load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)
    result = ours(web, folder, redis_url, trace, more) if name == "ours" else stock(name, web, folder, redis_url)
    print(
        f"  {result.pages} pages in {result.wall_s:.1f} s, {result.cpu_ms:.2f} ms CPU per page",
        file=sys.stderr,
        flush=True,
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--pages-per-host", type=int, default=334)
    parser.add_argument("--only", choices=("memory", "redis", "ours"), help="one variant")
    parser.add_argument(
        "--profile", metavar="FILE", help="write a cProfile of our worker (its time is then not the bench's)"
    )
    parser.add_argument("-s", "--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of ours")
    parser.add_argument("--keep", metavar="FOLDER", help="keep logs and data here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newscrawler-bench-") as tmp:
        folder = Path(args.keep or tmp).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        url = embedded.ensure(folder / "redis")
        results = []
        try:
            with NewswebProcess("bench", folder / "web", hosts=args.hosts, pages=args.pages_per_host) as web:
                for name in ("memory", "redis", "ours"):
                    if args.only in (None, name):
                        results.append(one(name, web, folder, url, args.profile, args.set))
        finally:
            embedded.stop(folder / "redis")
    print(table(results))


if __name__ == "__main__":
    main()
