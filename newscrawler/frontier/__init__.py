"""The frontier: queue, politeness gate, leases and seen filter of the whole fleet, in Redis."""

from __future__ import annotations

from typing import Any

import redis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from newscrawler.frontier import redis_cluster
from newscrawler.frontier.cancelling import cancellable

__all__ = ["connect", "connect_blocking"]

#: Seconds without an answer after which Redis counts as away. Above the slowest script and an AOF
#: rewrite's stall, far below a lease.
TIMEOUT_S = 10.0


def connect(redis_url: str, single: bool = True, **params: Any) -> Redis:
    """The one place that makes a client. Nothing is sent yet.

    redis-py repeats every command ten times by default, scripts too: a lease repeated is a lease
    leaked. So there are no retries; who gets an error decides.

    :param single: one connection for one task that sends one command after the other (the
        lease loop: a third faster than the pool); False for a client that several tasks
        share. A cluster has pools only
    """
    options: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": TIMEOUT_S,
        "socket_connect_timeout": TIMEOUT_S,
        "protocol": 2,
        **params,
    }
    if redis_cluster.is_cluster(redis_url):
        cluster: Redis = redis_cluster.connect(redis_url, **options)
        return cluster
    client: Redis = Redis.from_url(redis_url, single_connection_client=single, **options)
    pool: Any = client.connection_pool
    pool.connection_class = cancellable(pool.connection_class)
    return client


def connect_blocking(redis_url: str, **params: Any) -> redis.Redis:
    """For a look before an event loop runs. A cluster is asked at once, one server
    with the first command."""
    if redis_cluster.is_cluster(redis_url):
        cluster: redis.Redis = redis_cluster.connect_blocking(redis_url, **params)
        return cluster
    return redis.Redis.from_url(redis_url, **params)
