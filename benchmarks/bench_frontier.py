"""What the frontier costs: links offered, URLs leased and acked, bytes in Redis. One client, one Redis.

    python benchmarks/bench_frontier.py            100 k URLs over 1,000 domains, half a minute
    python benchmarks/bench_frontier.py --full     1 M URLs over 10,000 domains, and lease() at 10 to 100,000 domains

Starts a redis-server of its own (unix socket, append-only file everysec) and removes it. CPU of the
server is its own user and system time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newscrawler.frontier import connect, keys, server
from newscrawler.frontier.queue import Ack, DomainPolicy, Fetched, Frontier, FrontierConfig
from newscrawler.items import Kind, Link, Outcome
from newscrawler.web.urls import url_id

CONFIG = FrontierConfig(loopback_only=True, obey_robots=False, autothrottle=False, local_capacity=1000)
RAW = "worker-1-20261121-000001.warc.gz:{}:9113"


@dataclass
class Row:
    what: str
    count: int
    wall_s: float
    server_s: float

    def show(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "per_s": round(self.count / self.wall_s),
            "server_us": round(self.server_s / self.count * 1e6, 1),
            "count": self.count,
        }


class Bench:
    def __init__(self, client: Any, urls: int, domains: int) -> None:
        self.client, self.urls, self.domains = client, urls, domains
        self.names = [f"site{i}.example.vn" for i in range(domains)]
        self.frontier = Frontier(client, CONFIG, "bench")
        self.rows: list[Row] = []
        self.sizes: dict[str, Any] = {}

    def link(self, i: int) -> Link:
        domain = self.names[i % self.domains]
        slug = f"bai-viet-so-{i:08d}-voi-mot-duong-dan-dai-nhu-that-tren-trang-bao-{i * 7919 % 10**9:09d}"
        url = f"https://{domain}/thoi-su/{slug}.html"
        return Link(url=url, url_id=url_id(url), domain=domain, kind=Kind.ARTICLE, depth=2, parent=bytes(16), score=i)

    async def server_cpu(self) -> float:
        info = await self.client.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])

    async def memory(self) -> int:
        return int((await self.client.info("memory"))["used_memory"])

    async def timed(self, what: str, work: Any) -> None:
        cpu, start = await self.server_cpu(), time.perf_counter()
        count = await work
        row = Row(what, count, time.perf_counter() - start, await self.server_cpu() - cpu)
        self.rows.append(row)
        print(json.dumps(row.show()), flush=True)

    async def offer(self, first: int, batches: int, new_share: float) -> int:
        """Batches of 100 links, ``new_share`` of them new; of as many domains, which is worse than any real page."""
        fresh = int(100 * new_share)
        known = max(1, first)
        for b in range(batches):
            batch = [self.link(first + b * fresh + i) for i in range(fresh)]
            batch += [self.link((b * 9176 + i * 3571) % known) for i in range(100 - fresh)]
            result = await self.frontier.add(batch)
            assert result.added == fresh, result
        return batches * 100

    async def prepared_offers(self, first: int, batches: int, new_share: float) -> None:
        """The links are made before, so that the client's part is packing and the call."""
        fresh = int(100 * new_share)
        made = []
        for b in range(batches):
            batch = [self.link(first + b * fresh + i) for i in range(fresh)]
            made.append(batch + [self.link((b * 9176 + i * 3571) % first) for i in range(100 - fresh)])

        async def work() -> int:
            for batch in made:
                await self.frontier.add(batch)
            return batches * 100

        await self.timed(f"add, {100 - fresh} % seen, 100 links a call", work())

    async def lease_and_ack(self, k: int, rounds: int) -> int:
        acks: list[Ack] = []
        fetched: list[Fetched] = []
        n = 0
        for i in range(rounds):
            step = await self.frontier.step(k, acks, fetched)
            fetched = [Fetched(x, 20, 200) for x in step.leases]
            acks = [
                Ack(x, Outcome.DONE, "", 200, digest=bytes(range(16)), raw_ref=RAW.format(i), etag='"5f-62a"')
                for x in step.leases
            ]
            n += len(step.leases)
        await self.frontier.step(0, acks, fetched)
        return n

    async def run(self, *, ks: tuple[int, ...], rounds: int) -> None:
        await self.frontier.open()
        empty = await self.memory()
        await self.frontier.put_domains(
            [DomainPolicy(n, n, ("high", "mid", "low")[i % 3], 0) for i, n in enumerate(self.names)]
        )
        with_domains = await self.memory()
        self.sizes["bytes_per_domain"] = round((with_domains - empty) / self.domains)
        await self.timed("fill, all new, 100 links a call", self.offer(0, self.urls // 100, 1.0))
        filled = await self.memory()
        seen = await self.seen_bytes()
        self.sizes["bytes_per_queued_url_all"] = round((filled - with_domains) / self.urls, 1)
        self.sizes["of_that_seen"] = round(seen / self.urls, 1)
        await self.prepared_offers(self.urls, max(200, self.urls // 1000), 0.1)
        for k in ks:
            await self.timed(f"lease + ack, k={k}", self.lease_and_ack(k, rounds // k + 10))
        await self.finished_bytes()
        slow = await self.client.slowlog_get(10)
        self.sizes["slowest_script_ms"] = round(max((s["duration"] for s in slow), default=0) / 1000, 1)

    async def seen_bytes(self) -> int:
        total = 0
        names = [key async for key in self.client.scan_iter("{f0}:s:*", count=5000)]
        for key in names[:: max(1, len(names) // 500)]:
            total += await self.client.memory_usage(key, samples=0)
        return round(total * len(names) / len(names[:: max(1, len(names) // 500)]))

    async def finished_bytes(self) -> None:
        """All that is queued is fetched, then only finished records and the filter are left."""
        while (await self.frontier.step(0)).queued:
            await self.lease_and_ack(64, 200)
        names = [key async for key in self.client.scan_iter("{f0}:f:*", count=5000)]
        sample = names[:: max(1, len(names) // 500)]
        held = sum([await self.client.hlen(key) for key in sample])
        used = sum([await self.client.memory_usage(key, samples=0) for key in sample])
        self.sizes["bytes_per_finished_record"] = round(used / held, 1)
        stats = await self.frontier.operator.stats()
        await self.client.delete(*[keys.log(0, n) for n in self.names])
        self.sizes["bytes_of_all_redis_per_url_ever_added"] = round(await self.memory() / stats["added"], 1)


async def flat(client: Any, counts: tuple[int, ...]) -> list[dict[str, Any]]:
    """The server's CPU for one lease + ack at k=16 as the number of domains grows, three URLs each."""
    found = []
    for n in counts:
        await client.flushall()
        bench = Bench(client, 0, n)
        await bench.frontier.open()
        await bench.frontier.put_domains([DomainPolicy(x, x, "mid", 0) for x in bench.names])
        share = 2000 if n < 100 else 3
        for start in range(0, n * share, 500):
            await bench.frontier.add([bench.link(i) for i in range(start, min(start + 500, n * share))])
        await bench.timed(f"lease + ack, k=8, {n} domains", bench.lease_and_ack(8, min(1200, n * share // 8)))
        found.append(bench.rows[-1].show())
        gated = Bench(client, 0, n)
        await gated.timed(f"step with nothing due, {n} domains", idle(gated, n))
    return found


async def idle(bench: Bench, n: int) -> int:
    await bench.frontier.operator.pause(bench.names[0])
    for _ in range(2000):
        await bench.frontier.step(0)
    return 2000


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="1 M URLs over 10,000 domains")
    parser.add_argument("--urls", type=int, help="instead of 100,000 or 1,000,000")
    parser.add_argument("--domains", type=int, help="instead of 1,000 or 10,000")
    args = parser.parse_args()
    urls = args.urls or (1_000_000 if args.full else 100_000)
    domains = args.domains or (10_000 if args.full else 1_000)
    with tempfile.TemporaryDirectory(prefix="nc-bench-") as folder:
        client: Any = connect(server.ensure(Path(folder)))
        try:
            info = await client.info("server")
            print(json.dumps({"redis": info["redis_version"], "urls": urls, "domains": domains}))
            await client.config_set("slowlog-log-slower-than", 2000)
            bench = Bench(client, urls, domains)
            await bench.run(ks=(1, 8, 16, 64), rounds=min(urls // 8, 60_000))
            print(json.dumps(bench.sizes))
            await flat(client, (10, 1_000, 10_000, 100_000) if args.full else (10, 1_000, 10_000))
        finally:
            await client.aclose()
            server.stop(Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
