"""What the gate's options cost the server: worked-out classes, quotas, caps, groups, budgets of
shapes. Half a minute.

    python -m benchmarks.bench_gate

A redis-server of its own; CPU is the server's, so other jobs beside only make it a little dearer.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from newscrawler.frontier import connect, redis_server
from newscrawler.frontier.queue import Ack, DomainPolicy, Fetched, Frontier, FrontierConfig
from newscrawler.items import Kind, Link, Outcome
from newscrawler.web.urls import url_id

DOMAINS = 500
URLS = 16 * DOMAINS
BASE = FrontierConfig(
    loopback_only=True, obey_robots=False, autothrottle=False, local_capacity=1000
)


@dataclass
class Option:
    name: str
    config: FrontierConfig = BASE
    policy: dict[str, Any] = field(default_factory=dict)
    group_of: int = 0  # domains a group
    kind: Kind = Kind.ARTICLE


OPTIONS = [
    Option("nothing of it"),
    Option("class worked out", policy={"cls": "auto"}),
    Option("a quota on every domain", policy={"pages_per_day": 10**6}),
    Option(
        "caps of requests and bytes",
        replace(BASE, requests_per_minute=10**8, bytes_per_minute=10**13),
    ),
    Option("groups of five domains", group_of=5),
    Option("pages without a budget", kind=Kind.PAGE),
    Option("pages with a budget", replace(BASE, pattern_budget=10**6), kind=Kind.PAGE),
]


def link(i: int, kind: Kind) -> Link:
    domain = f"site{i % DOMAINS}.vn"
    url = f"https://{domain}/muc/bai-viet-{i}.html"
    return Link(
        url=url,
        url_id=url_id(url),
        domain=domain,
        kind=kind,
        depth=1,
        parent=bytes(16),
        score=float(i),
    )


async def server_cpu(client: Any) -> float:
    info = await client.info("cpu")
    return float(info["used_cpu_sys"] + info["used_cpu_user"])


async def measure(client: Any, option: Option) -> tuple[float, float]:
    """Microseconds of the server a link added, and a URL leased, fetched and
    acked in batches of 16."""
    await client.flushall()
    frontier = Frontier(client, option.config, "bench")
    await frontier.open()
    groups = [f"g{i // option.group_of}" if option.group_of else None for i in range(DOMAINS)]
    await frontier.put_domains(
        [
            DomainPolicy(f"site{i}.vn", "x", floor_ms=0, group=group, **option.policy)
            for i, group in enumerate(groups)
        ]
    )
    links = [link(i, option.kind) for i in range(URLS)]
    start = await server_cpu(client)
    for at in range(0, URLS, 100):
        await frontier.add(links[at : at + 100])
    filled = await server_cpu(client)
    done = await drain(frontier, URLS * 4 // 5)
    return 1e6 * (filled - start) / URLS, 1e6 * (await server_cpu(client) - filled) / done


async def drain(frontier: Frontier, urls: int) -> int:
    done = 0
    acks: Sequence[Ack] = ()
    fetched: Sequence[Fetched] = ()
    while done < urls:
        step = await frontier.step(16, acks, fetched)
        acks = [Ack(lease, Outcome.DONE, status=200) for lease in step.leases]
        fetched = [Fetched(lease, 50.0, 200, None, 50_000) for lease in step.leases]
        done += len(step.leases)
        if not step.leases:
            await asyncio.sleep(0.001)
    return done


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="nc-bench-") as folder:
        client: Any = connect(redis_server.ensure(Path(folder)))
        try:
            print(f"{'':28}{'us a link':>12}{'us a URL':>12}   least of three")
            for option in OPTIONS:
                runs = [await measure(client, option) for _ in range(3)]
                added, leased = (min(column) for column in zip(*runs, strict=True))
                print(f"{option.name:28}{added:12.1f}{leased:12.1f}", flush=True)
        finally:
            await client.aclose()
            redis_server.stop(Path(folder))


if __name__ == "__main__":
    asyncio.run(main())
