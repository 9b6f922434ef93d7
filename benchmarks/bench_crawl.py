"""`make bench`: this project's whole pipeline beside stock Scrapy and stock scrapy-redis, in turn.

The web is tests/newsweb's bench layout in a process of its own: 30 hosts x 334 pages of about 65 kB
with about 100 links, each host on its own loopback address, politeness delay 0 (accepted on
loopback only). The stock spiders extract with CSS and LinkExtractor and store nothing; ours does
links, extraction by an active set, normalisation, WARC, SQLite store and ack.

The rows, in each turn one after the other (benchmarks/stock_spiders.py has the settings):

- stock Scrapy, in memory
- stock scrapy-redis, one worker: what the ratios count from
- the same with the settings of Scrapy's page on broad crawls
- two such workers that share the queue
- newscrawler: one worker, which is three processes (crawl, reader, store)

A row is the median of the turns, figure by figure. CPU is user + system time of the worker
processes with their threads and children, start-up and imports included; Redis' own beside it. The
time of the stock spiders ends with their last answer, ours with the process. Wall times of one run
compare with each other only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import redis

from newscrawler import cli
from newscrawler.frontier import redis_server as embedded
from tests.newsweb.process import NewswebProcess

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Result:
    name: str
    processes: int
    pages: int
    wall_s: float
    cpu_s: float
    redis_cpu_s: float | None
    peak_mb: float
    articles: int

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.wall_s

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / max(1, self.pages)

    @property
    def redis_ms(self) -> float | None:
        return None if self.redis_cpu_s is None else 1000 * self.redis_cpu_s / max(1, self.pages)


@dataclass(frozen=True)
class Stock:
    name: str
    kind: str
    workers: int = 1


STOCK = {
    "memory": Stock("stock Scrapy, in memory", "memory"),
    "redis": Stock("stock scrapy-redis", "redis"),
    "broad": Stock("stock scrapy-redis, broad-crawl settings", "broad"),
    "two": Stock("stock scrapy-redis, broad-crawl settings, two workers", "broad", workers=2),
}
OURS = "newscrawler, whole pipeline"
VARIANTS = (*STOCK, "ours")


@dataclass(frozen=True)
class Measured:
    wall_s: float
    cpu_s: float
    peak_kb: int
    outputs: list[str]


def environment(**more: str) -> dict[str, str]:
    """Compiled modules are kept, as on a user's machine, whatever this one says: else each
    start compiles again."""
    return {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    } | more


def measure(commands: list[list[str]], env: dict[str, str], log: Path, limit_s: float) -> Measured:
    """Runs the commands beside each other. One that does not end is asked where it
    is, and ``log`` is kept."""
    started = time.monotonic()
    cpu_s, peak_kb = 0.0, 0
    with contextlib.ExitStack() as files:
        err = files.enter_context(log.open("wb"))
        outs = [files.enter_context(tempfile.TemporaryFile()) for _ in commands]
        running = {}
        for command, out in zip(commands, outs, strict=True):
            process = subprocess.Popen(command, env=env, stdout=out, stderr=err, cwd=ROOT)
            running[process.pid] = process
        while running:
            try:
                pid, status, usage = _ended(set(running), started + limit_s)
            except BaseException:  # Ctrl-C: they have it as well, and would end when they like
                _kill(list(running.values()))
                raise
            if not pid:
                raise SystemExit(_where_it_hangs(list(running.values()), log, limit_s))
            process = running.pop(pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu_s += usage.ru_utime + usage.ru_stime
            peak_kb += usage.ru_maxrss
            if process.returncode:
                _kill(list(running.values()))
                text = log.read_text(errors="replace")[-2000:]
                raise SystemExit(
                    f"{process.args!r} failed with {process.returncode}, see {log}:\n{text}"
                )
        wall_s = time.monotonic() - started
        for out in outs:
            out.seek(0)
        return Measured(wall_s, cpu_s, peak_kb, [out.read().decode() for out in outs])


def _ended(pids: set[int], deadline: float) -> tuple[int, int, resource.struct_rusage]:
    """The first that ends, as os.wait4 says it; 0 as the process at the deadline."""
    while True:
        for pid in pids:
            found = os.wait4(pid, os.WNOHANG)
            if found[0]:
                return found
        if time.monotonic() > deadline:
            return 0, 0, resource.getrusage(resource.RUSAGE_SELF)
        time.sleep(0.02)


def _where_it_hangs(running: list[subprocess.Popen[bytes]], log: Path, limit_s: float) -> str:
    """The dumps of the processes go to their log; its end and its place are told."""
    for process in running:
        dumps = isinstance(process.args, list) and "benchmarks.dumping" in process.args
        signals = (signal.SIGUSR2, signal.SIGUSR1) if dumps else ()
        for number in signals:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3)
    _kill(running)
    kept = Path(tempfile.gettempdir()) / f"{log.stem}-{os.getpid()}.log"
    shutil.copy(log, kept)
    tail = log.read_text(errors="replace")[-12_000:]
    return f"did not end within {limit_s:g} s, its log is kept in {kept}:\n{tail}"


def _kill(running: list[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.kill()
        process.wait(10)


def redis_cpu(url: str) -> float:
    with redis.Redis.from_url(url) as client:
        info = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def stock(
    variant: Stock, web: NewswebProcess, folder: Path, redis_url: str, limit_s: float
) -> Result:
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(web.homes()) + "\n")
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    before = redis_cpu(redis_url)
    command = [
        sys.executable,
        "-m",
        "benchmarks.stock_spiders",
        variant.kind,
        str(seeds),
        redis_url,
    ]
    began = time.time()
    measured = measure(
        [[*command, str(variant.workers)]] * variant.workers,
        environment(), folder / f"stock-{variant.kind}.log", limit_s,
    )  # fmt: skip
    # On a small web one of two may find nothing left to do.
    workers = [json.loads(out.strip().splitlines()[-1]) for out in measured.outputs]
    return Result(
        name=variant.name,
        processes=variant.workers,
        pages=sum(stats.get("response_received_count", 0) for stats in workers),
        wall_s=max(stats.get("last_answer_at", began) for stats in workers) - began,
        cpu_s=measured.cpu_s,
        redis_cpu_s=None if variant.kind == "memory" else redis_cpu(redis_url) - before,
        peak_mb=measured.peak_kb / 1024,
        articles=sum(stats.get("item_scraped_count", 0) for stats in workers),
    )


def ours(
    web: NewswebProcess,
    folder: Path,
    redis_url: str,
    limit_s: float,
    trace: str | None = None,
    more: Sequence[str] = (),
) -> Result:
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    data = Path(tempfile.mkdtemp(prefix="data-", dir=folder))
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
    options += ["-s", f"STATS_FILE={stats_file}"]
    command = [sys.executable, *runner, "-m", "benchmarks.dumping", "crawl", "news", *options]
    measured = measure([command], environment(), folder / "ours.log", limit_s)
    stats = json.loads(stats_file.read_text())
    return Result(
        name=OURS,
        processes=3,  # the crawl, one that reads pages, one that writes articles
        pages=int(stats["page/fetched"]),
        wall_s=measured.wall_s,
        cpu_s=measured.cpu_s,
        redis_cpu_s=redis_cpu(redis_url) - before,
        # the worker, and the processes in which it reads pages and writes articles
        peak_mb=(measured.peak_kb + int(stats.get("process/children_peak_kb", 0))) / 1024,
        articles=int(stats.get("article/new", 0)),
    )


def median(turns: list[Result]) -> Result:
    """The middle of each figure by itself: CPU and speed of one turn need not be
    those of another."""
    return replace(
        turns[0],
        pages=round(statistics.median(r.pages for r in turns)),
        articles=round(statistics.median(r.articles for r in turns)),
        wall_s=statistics.median(r.wall_s for r in turns),
        cpu_s=statistics.median(r.cpu_s for r in turns),
        redis_cpu_s=(
            None
            if turns[0].redis_cpu_s is None
            else statistics.median(r.redis_cpu_s or 0.0 for r in turns)
        ),
        peak_mb=statistics.median(r.peak_mb for r in turns),
    )


def table(results: list[Result]) -> str:
    """Markdown, ready for docs/performance.md; ratios to one worker of stock scrapy-redis."""
    base = next((r for r in results if r.name == STOCK["redis"].name), results[0])
    lines = [
        (
            "| variant | processes | pages | articles | pages/s | CPU ms/page | Redis CPU ms/page |"
            " peak MB | pages/s ratio | CPU ratio |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        redis_ms = "-" if r.redis_ms is None else f"{r.redis_ms:.2f}"
        lines.append(
            f"| {r.name} | {r.processes} | {r.pages} | {r.articles} | {r.pages_per_s:.1f} |"
            f" {r.cpu_ms:.2f} | {redis_ms} | {r.peak_mb:.0f} |"
            f" {r.pages_per_s / base.pages_per_s:.2f} | {r.cpu_ms / base.cpu_ms:.3f} |"
        )
    return "\n".join(lines)


def one(variant: str, web: NewswebProcess, folder: Path, redis_url: str, args: Any) -> Result:
    print(f"running {variant} ... (load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)
    if variant == "ours":
        result = ours(web, folder, redis_url, args.limit, args.profile, args.set)
    else:
        result = stock(STOCK[variant], web, folder, redis_url, args.limit)
    print(
        f"  {result.pages} pages in {result.wall_s:.1f} s, {result.cpu_ms:.2f} ms CPU per page",
        file=sys.stderr,
        flush=True,
    )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--pages-per-host", type=int, default=334)
    parser.add_argument("--only", choices=VARIANTS, nargs="+", help="these variants")
    parser.add_argument("--turns", type=int, default=3, help="a row is the median of so many")
    parser.add_argument(
        "--limit", type=float, default=1800, help="seconds after which a variant is said to hang"
    )
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="write a cProfile of our worker (its time is then not the bench's)",
    )
    parser.add_argument(
        "-s", "--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of ours"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="keep logs and data here")
    args = parser.parse_args()
    # The embedded Redis is ended by its keeper, perhaps after this folder goes.
    with tempfile.TemporaryDirectory(
        prefix="newscrawler-bench-", ignore_cleanup_errors=True
    ) as tmp:
        folder = Path(args.keep or tmp).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        url = embedded.ensure(folder / "redis")
        results: dict[str, list[Result]] = {v: [] for v in VARIANTS if v in (args.only or VARIANTS)}
        try:
            with NewswebProcess(
                "bench", folder / "web", hosts=args.hosts, pages=args.pages_per_host
            ) as web:
                for _ in range(args.turns):
                    for variant, turns in results.items():
                        turns.append(one(variant, web, folder, url, args))
        finally:
            embedded.stop(folder / "redis")
    print(table([median(turns) for turns in results.values()]))


if __name__ == "__main__":
    with cli.interruptible("Stopped; nothing is told of a part."):
        main()
