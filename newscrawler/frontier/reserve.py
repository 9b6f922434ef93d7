"""A turn at one domain's gate, for a single fetch outside the queue (`scrapy extract URL`)."""

from __future__ import annotations

import secrets

from newscrawler.frontier import keys, packing
from newscrawler.frontier.errors import translated
from newscrawler.frontier.queue import Frontier
from newscrawler.frontier.types import Fetched, FrontierRefused, Lease
from newscrawler.items import Kind


async def reserve(frontier: Frontier, domain: str, url: str) -> Lease | int:
    """Asks once for the domain's turn.

    A lease of kind ROBOTS means: fetch robots.txt first and ack it by ``step`` like the crawl does. Any
    other lease is for ``url``: end it by :func:`release`.

    :returns: the lease, or the real milliseconds after which to ask again
    :raises FrontierRefused: the domain is unknown to the frontier, paused by its operator, or its quota is spent
    """
    turn_id = secrets.token_bytes(16)
    shard = keys.shard_of(domain, frontier.config.shards)
    with translated():
        granted, deadline_ms, wait_ms = await frontier.scripts.run(
            "reserve", keys.prefix(shard), frontier.worker, domain, turn_id
        )
    if wait_ms == -1:
        raise FrontierRefused(f"{domain} is not known to the frontier")
    if wait_ms == -2:
        raise FrontierRefused(f"{domain} is paused; `scrapy frontier resume {domain}` opens it")
    if wait_ms == -3:
        raise FrontierRefused(f"the quota of {domain} is spent; `scrapy frontier quota {domain}` shows and sets it")
    if not granted:
        return int(wait_ms)
    lease, _ = packing.lease(granted[0], deadline_ms)
    if lease.url_id == turn_id:
        lease.url, lease.kind = url, Kind.PAGE
    frontier._held[lease.fence] = lease
    return lease


async def release(frontier: Frontier, lease: Lease, fetched: Fetched) -> None:
    """The fetch ended: the gate opens after the domain's delay; nothing of it is kept in the queue."""
    await frontier.give_back([lease], [fetched])
