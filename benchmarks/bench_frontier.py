"""What the frontier costs: links offered, URLs leased and acked, bytes in Redis. Records, archive
and filter all on.

    python benchmarks/bench_frontier.py            100 k URLs over 1,000 domains, a minute
    python benchmarks/bench_frontier.py --full     1 M URLs over 10,000 domains, and lease()
    at 10 to 100,000 domains

Starts a redis-server of its own (unix socket, append-only file everysec) and removes it. A row:
operations a second by the clock; CPU of the server (its own user and system time) and of this
process for one operation, us; and how many a second that CPU allows where client and server do not
wait for anything else, as on an idle machine.

How long scripts take is told twice: by Redis' slow log, which is wall time, and counts the time in
which something else had the processor; and by the CPU that the server took for the call (Linux'
schedstat, the whole call: reading, script, writing the append-only file, and a fork where one fell
into it). A script that only counts for a millisecond shows what the slow log makes of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import uvloop

from newscrawler import cli
from newscrawler.frontier import allocator, connect, keys, redis_server
from newscrawler.frontier.queue import Ack, DomainPolicy, Fetched, Frontier, FrontierConfig
from newscrawler.items import Kind, Link, Outcome
from newscrawler.store.finished import LocalFinished
from newscrawler.web.urls import url_id

RAW = "worker-1-20261121-000001.warc.gz:{}:9113"
#: Which of the 100 links of a call are new.
NEW = (5, 15, 25, 35, 45, 55, 65, 96, 97, 98)
#: No script may be slower, ms.
SLOW_MS = 10
#: Does nothing for about a millisecond.
COUNTS = "local s = 0 for i = 1, 100000 do s = s + i end return s"


def config(urls: int) -> FrontierConfig:
    """Nine tenths of all URLs may stay in Redis as finished records, the older ones
    go to the archive."""
    limit = max(2 * keys.BUCKETS, urls * 9 // 10)
    return FrontierConfig(
        loopback_only=True, obey_robots=False, autothrottle=False, finished_limit=limit
    )


@dataclass
class Row:
    what: str
    count: int
    wall_s: float
    server_s: float
    client_s: float

    def show(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "per_s": round(self.count / self.wall_s),
            "server_us": round(self.server_s / self.count * 1e6, 1),
            "client_us": round(self.client_s / self.count * 1e6, 1),
            "cpu_allows_per_s": round(self.count / (self.server_s + self.client_s)),
            "count": self.count,
        }


class Calls:
    """CPU of the server's main thread for each script call of one frontier, ms. Empty where
    there is no Linux."""

    def __init__(self, frontier: Frontier, pid: int) -> None:
        self.ms: dict[str, list[float]] = {}
        self.long: list[
            tuple[str, float, float]
        ] = []  # calls that took over SLOW_MS by the clock: which, ms, CPU ms
        self._stat: Any = None
        with suppress(OSError):
            self._stat = Path(f"/proc/{pid}/schedstat").open("rb", buffering=0)  # noqa: SIM115  (read at each call)
            self._run = frontier.scripts.run
            frontier.scripts.run = self.run  # type: ignore[method-assign]

    def close(self) -> None:
        if self._stat is not None:
            self._stat.close()

    def _cpu_ms(self) -> float:
        self._stat.seek(0)
        return int(self._stat.read().split()[0]) / 1e6

    async def run(self, name: str, prefix: str, *args: Any) -> Any:
        before, began = self._cpu_ms(), time.perf_counter()
        answer = await self._run(name, prefix, *args)
        cpu_ms, ms = self._cpu_ms() - before, (time.perf_counter() - began) * 1000
        self.ms.setdefault(name, []).append(cpu_ms)
        if ms > SLOW_MS:
            self.long.append((name, round(ms, 1), round(cpu_ms, 1)))
        return answer

    def show(self) -> dict[str, Any]:
        """Per script: calls, half of them, 99 of 100 and all of them take up to so many ms,
        and how many are slow."""
        found: dict[str, Any] = {}
        for name, ms in self.ms.items():
            ms.sort()
            row = (
                len(ms),
                ms[len(ms) // 2],
                ms[len(ms) * 99 // 100],
                ms[-1],
                sum(x > SLOW_MS for x in ms),
            )
            names = ("calls", "p50", "p99", "max", f"over_{SLOW_MS}")
            found[name] = {key: round(value, 2) for key, value in zip(names, row, strict=True)}
        return found


class Bench:
    def __init__(
        self,
        client: Any,
        urls: int,
        domains: int,
        folder: Path | None = None,
        worker: str = "bench",
    ) -> None:
        self.client, self.urls, self.domains = client, urls, domains
        self.names = [f"site{i}.example.vn" for i in range(domains)]
        self.archive = LocalFinished(folder / "finished.db") if folder else None
        self.frontier = Frontier(client, config(urls), worker, self.archive)
        self.done: list[Link] = []  # fetched, oldest first; after move_oldest() by domain:
        self.lately: dict[str, list[Link]] = {}
        self.long_ago: dict[str, list[Link]] = {}  # in the archive
        self.sizes: dict[str, Any] = {}

    def link(self, i: int) -> Link:
        domain = self.names[i % self.domains]
        slug = f"bai-viet-so-{i:08d}-voi-mot-duong-dan-dai-nhu-that-tren-trang-bao-{i * 7919 % 10**9:09d}"
        url = f"https://{domain}/thoi-su/{slug}.html"
        return Link(url, url_id(url), domain, Kind.ARTICLE, 2, i.to_bytes(16, "little"), score=i)

    async def server_cpu(self) -> float:
        """Of the thread that runs the scripts; another one flushes the append-only file, of
        whatever was written before."""
        info = await self.client.info("cpu")
        return float(info["used_cpu_user_main_thread"]) + float(info["used_cpu_sys_main_thread"])

    async def memory(self) -> int:
        return int((await self.client.info("memory"))["used_memory"])

    async def timed(self, what: str, work: Coroutine[Any, Any, int]) -> Row:
        # A rewrite of the append-only file takes one of two processors for seconds,
        # wherever it falls.
        while (await self.client.info("persistence"))["aof_rewrite_in_progress"]:  # noqa: ASYNC110  # no event tells it
            await asyncio.sleep(0.2)
        cpu, own, start = await self.server_cpu(), time.process_time(), time.perf_counter()
        count = await work
        wall, own = time.perf_counter() - start, time.process_time() - own
        row = Row(what, count, wall, await self.server_cpu() - cpu, own)
        print(json.dumps(row.show()), flush=True)
        return row

    async def fill(self, first: int, n: int) -> int:
        for start in range(first, first + n, 100):
            result = await self.frontier.add([self.link(i) for i in range(start, start + 100)])
            assert result.added == 100, result
        return n

    def page(self, b: int, first: int, domains_a_call: int) -> list[Link]:
        """100 links of one call: 10 new, 59 queued (or fetched meanwhile), 30 fetched
        lately, 1 long ago and in the archive. 2 domains are what a page has: 95 links to
        its own, 5 to another (a fetched one may be of a third, where too few of its own
        were fetched); 100 are the worst case."""
        per_domain = self.urls // self.domains
        numbers = []
        for i in range(100):
            domain = (b * 100 + i if domains_a_call > 2 else b + (i >= 95)) * 7 % self.domains
            if i in NEW:
                number = per_domain + (first + b) * 10 + NEW.index(i)
            else:
                number = (b * 31 + i * 17) % per_domain
            numbers.append(domain + number * self.domains)
        links = [self.link(i) for i in numbers]
        known = [i for i in range(95) if i not in NEW]
        taken: dict[str, int] = {}
        for i in known[:30]:
            at = taken[links[i].domain] = taken.get(links[i].domain, -1) + 1
            links[i] = self.of_domain(self.lately, links[i].domain, at)
        links[known[30]] = self.of_domain(self.long_ago, links[known[30]].domain, 0)
        return links

    def of_domain(self, among: dict[str, list[Link]], domain: str, at: int) -> Link:
        """A fetched URL of the domain; of the next one where so many were not fetched."""
        first = self.names.index(domain) if at >= len(among.get(domain, ())) else 0
        while at >= len(among.get(domain, ())):
            at -= len(among.get(domain, ()))
            first = (first + 1) % self.domains
            domain = self.names[first]
        return among[domain][at]

    async def offers(self, what: str, batches: int, first: int, domains_a_call: int) -> None:
        """The links are made before, so that the client's part is packing and the call."""
        made = [self.page(b, first, domains_a_call) for b in range(batches)]
        added = []

        async def work() -> int:
            for batch in made:
                added.append((await self.frontier.add(batch)).added)
            return batches * 100

        asked = self.frontier.mover.asked if self.frontier.mover else 0
        await self.timed(what, work())
        self.sizes[f"new_of_100_{domains_a_call}_domains"] = round(sum(added) / batches, 1)
        if self.frontier.mover:
            self.sizes[f"asked_of_100_{domains_a_call}_domains"] = round(
                (self.frontier.mover.asked - asked) / batches, 2
            )

    async def lease_and_ack(self, k: int, rounds: int) -> int:
        acks: list[Ack] = []
        fetched: list[Fetched] = []
        n = 0
        for i in range(rounds):
            step = await self.frontier.step(k, acks, fetched)
            fetched = [Fetched(x, 20, 200) for x in step.leases]
            acks = [
                Ack(
                    x,
                    Outcome.DONE,
                    "",
                    200,
                    digest=bytes(range(16)),
                    raw_ref=RAW.format(i),
                    etag='"5f-62a"',
                )
                for x in step.leases
            ]
            self.done += [
                Link(x.url, x.url_id, x.domain, x.kind, x.depth, x.parent) for x in step.leases
            ]
            n += len(step.leases)
        await self.frontier.step(0, acks, fetched)
        return n

    async def eight(self, url: str, rounds: int) -> int:
        """Eight processes, k=16 each."""
        args = ["--client", url, "--urls", str(self.urls), "--rounds", str(rounds)]
        clients = [
            await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-m",
                    "benchmarks.bench_frontier",
                    *args,
                    "--worker",
                    f"client{i}",
                ),
                stdout=asyncio.subprocess.PIPE,
            )
            for i in range(8)
        ]
        return sum([int((await client.communicate())[0]) for client in clients])

    async def run(self, url: str, *, ks: tuple[int, ...], urls_a_k: int, batches: int) -> None:
        await self.frontier.open()
        empty = await self.memory()
        await self.frontier.put_domains(
            [DomainPolicy(n, n, ("high", "mid", "low")[i % 3], 0) for i, n in enumerate(self.names)]
        )
        with_domains = await self.memory()
        self.sizes["bytes_per_domain"] = round((with_domains - empty) / self.domains)
        await self.timed("fill, all new, 100 links a call", self.fill(0, self.urls))
        filled = await self.memory()
        seen = await self.bytes_of("{f0}:s:*", "scard")
        self.sizes["bytes_per_queued_url_all"] = round((filled - with_domains) / self.urls, 1)
        self.sizes["of_that_seen"] = round(seen[0] / self.urls, 1)
        for k in ks:
            await self.timed(
                f"lease + ack, k={k}",
                self.lease_and_ack(k, (urls_a_k if k > 1 else urls_a_k // 4) // k),
            )
        await self.move_oldest()
        await self.offers("offered, 90 % known, a page: 100 links of 2 domains", batches, 0, 2)
        await self.offers("offered, 90 % known, 100 links of 100 domains", batches, batches, 100)
        await self.timed(
            "lease + ack, k=16, eight clients, start-up included",
            self.eight(url, urls_a_k // 16 // 16),
        )
        await self.slow("")
        await self.timed("a script that does nothing", self.do_nothing())
        await self.slow("_doing_nothing")
        await self.finished_sizes()
        await self.slow("_at_the_end")

    async def do_nothing(self) -> int:
        for _ in range(3000):
            await self.client.eval(COUNTS, 0)
        return 3000

    async def slow(self, when: str) -> None:
        """What Redis' own slow log says of scripts since the last look."""
        ms, names = await slow_scripts(self.client, self.frontier)
        self.sizes[f"slowest_script{when}_ms"] = round(max(ms, default=0), 1)
        self.sizes[f"scripts_over_{SLOW_MS}_ms{when}"] = names

    async def move_oldest(self) -> None:
        """The oldest tenth of what was fetched goes to the archive, though the limit is not reached
        yet, so that some links have to be looked up there."""
        assert self.archive is not None
        old = len(self.done) // 10
        for found, links in ((self.long_ago, self.done[:old]), (self.lately, self.done[old:])):
            for link in links:
                found.setdefault(link.domain, []).append(link)
        for start in range(0, old, 128):
            places = [
                keys.finished(0, link.url_id) for link in self.done[start : min(old, start + 128)]
            ]
            pipe = self.client.pipeline(transaction=False)
            for key, field in places:
                pipe.hget(key, field)
            held = await pipe.execute()
            found_here = zip(places, held, strict=True)  # the others went by themselves
            rows = [
                (int(key.rpartition(":")[2]), field, data)
                for (key, field), data in found_here
                if data
            ]
            await self.archive.put(
                [(keys.finished_id(bucket, field), data) for bucket, field, data in rows]
            )
            flat = msgpack.packb([x for row in rows for x in row], use_bin_type=False)
            await self.frontier.scripts.run("forget", keys.prefix(0), flat)
        self.sizes["archived_before_the_offers"] = await self.archive.count()

    async def bytes_of(self, pattern: str, counted_by: str) -> tuple[float, float]:
        """(bytes of all such keys, members), from a sample of 500."""
        names = [key async for key in self.client.scan_iter(pattern, count=5000)]
        sample = names[:: max(1, len(names) // 500)]
        used = sum([await self.client.memory_usage(key, samples=0) for key in sample])
        members = sum([await self.client.execute_command(counted_by, key) for key in sample])
        return used * len(names) / len(sample), members * len(names) / len(sample)

    async def finished_sizes(self) -> None:
        """All that is queued is fetched, then only finished records and the filter are left."""
        while (await self.frontier.step(0)).queued:
            await self.lease_and_ack(64, 200)
            if self.frontier.mover:
                self.frontier.mover._due = (
                    0.0  # as fast as it goes: this is no crawl of a thousand pages a second
                )
        while self.frontier.mover and await self.client.scard(keys.full(0)):
            self.frontier.mover._due = 0.0
            await self.frontier.step(0)
        used, held = await self.bytes_of("{f0}:f:*", "hlen")
        self.sizes["bytes_per_finished_record"] = round(used / held, 1)
        self.sizes["finished_records_in_redis"] = round(held)
        if self.archive:
            self.sizes["finished_records_in_archive"] = await self.archive.count()
        stats = await self.frontier.operator.stats()
        await self.client.delete(*[keys.log(0, n) for n in self.names])
        self.sizes["urls_ever_added"] = stats["added"]
        self.sizes["bytes_of_all_redis_per_url_ever_added"] = round(
            await self.memory() / stats["added"], 1
        )


async def slow_scripts(client: Any, frontier: Frontier) -> tuple[list[float], dict[str, int]]:
    """What Redis' own slow log says of scripts since the last look: ms of each, and how
    many of which script."""
    known = {script.sha: name for name, script in frontier.scripts._made.items()}
    ms, names = [], dict[str, int]()
    for entry in await client.slowlog_get(1000):
        words = entry["command"].split()
        if words[0] in (b"EVALSHA", b"EVAL") and entry["duration"] > SLOW_MS * 1000:
            ms.append(entry["duration"] / 1000)
            name = known.get(words[1].decode("latin-1"), "nothing")
            names[name] = names.get(name, 0) + 1
    await client.slowlog_reset()
    return ms, names


async def one_client(url: str, worker: str, urls: int, rounds: int) -> None:
    """One of eight; prints how many URLs it fetched. Without the archive's hand: one worker
    moves at a time anyway."""
    client: Any = connect(url)
    bench = Bench(client, urls, 1, None, worker)
    await bench.frontier.open()
    print(await bench.lease_and_ack(16, rounds))
    await bench.frontier.close()


async def flat(client: Any, counts: tuple[int, ...]) -> None:
    """The server's CPU for lease + ack as the number of domains grows, three URLs each."""
    for n in counts:
        await client.flushall()
        bench = Bench(client, 0, n)
        await bench.frontier.open()
        await bench.frontier.put_domains([DomainPolicy(x, x, "mid", 0) for x in bench.names])
        share = 2000 if n < 100 else 3
        await bench.fill(0, max(100, n * share // 100 * 100))
        await bench.timed(
            f"lease + ack, k=8, {n} domains", bench.lease_and_ack(8, min(1200, n * share // 8))
        )
        await bench.timed(f"step with nothing due, {n} domains", idle(bench))
        await bench.slow(f"_{n}_domains")
        print(json.dumps(bench.sizes))


async def idle(bench: Bench) -> int:
    for _ in range(2000):
        await bench.frontier.step(0)
    return 2000


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="1 M URLs over 10,000 domains")
    parser.add_argument("--urls", type=int, help="instead of 100,000 or 1,000,000")
    parser.add_argument("--domains", type=int, help="instead of 1,000 or 10,000")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        await one_client(args.client, args.worker, args.urls, args.rounds)
        return
    urls = args.urls or (1_000_000 if args.full else 100_000)
    domains = args.domains or (10_000 if args.full else 1_000)
    with tempfile.TemporaryDirectory(prefix="nc-bench-") as folder:
        url = redis_server.ensure(Path(folder))
        client: Any = connect(url)
        try:
            info = await client.info("server")
            loaded = (
                allocator.in_use(info["process_id"])
                or (await client.info("memory"))["mem_allocator"]
            )
            print(
                json.dumps(
                    {
                        "redis": info["redis_version"],
                        "allocator": loaded,
                        "urls": urls,
                        "domains": domains,
                    }
                )
            )
            await client.config_set("slowlog-log-slower-than", SLOW_MS * 1000)
            await client.config_set("slowlog-max-len", 1000)
            bench = Bench(client, urls, domains, Path(folder))
            calls = Calls(bench.frontier, info["process_id"])
            try:
                await bench.run(
                    url,
                    ks=(1, 8, 16, 64),
                    urls_a_k=min(urls // 10, 100_000),
                    batches=max(200, urls // 1000),
                )
            finally:
                if bench.archive:
                    await bench.archive.close()
                calls.close()
            print(json.dumps(bench.sizes))
            print(json.dumps({"server_cpu_ms_a_call": calls.show()}))
            # From the client's side, way and waiting included: what has little CPU waited
            # for a processor.
            print(json.dumps({f"calls_over_{SLOW_MS}_ms_clock_and_cpu": calls.long[:50]}))
            await flat(client, (10, 1_000, 10_000, 100_000) if args.full else (10, 1_000, 10_000))
        finally:
            await client.aclose()
            redis_server.stop(Path(folder))


if __name__ == "__main__":
    with cli.interruptible("Stopped; nothing is told of a part."):
        gc.freeze()  # this and uvloop as the workers do, see commands/crawl.py
        gc.set_threshold(20_000, 20, 50)
        uvloop.run(main())
