"""A Redis Cluster behind the interface of one server: redis+cluster://host:port,host:port
(rediss+cluster: TLS).

Every script and pipeline of this project keeps to one slot, so nothing else has to know of it.
FRONTIER_SHARDS says over how many slots the domains are spread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis
from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode

from newscrawler.frontier import keys
from newscrawler.utils.numbers import whole_number

SCHEMES = ("redis+cluster://", "rediss+cluster://")


def is_cluster(redis_url: str) -> bool:
    return redis_url.startswith(SCHEMES)


def split_url(redis_url: str) -> tuple[str, list[tuple[str, int]]]:
    """The URL of the first node for redis-py, and (host, port) of the others: any that
    answers tells of all.

    :raises ValueError: not an address
    """
    scheme, _, rest = redis_url.partition("://")
    places, slash, path = rest.partition("/")
    login, at, hosts = places.rpartition("@")
    first, *others = hosts.split(",")
    found = []
    for other in others:
        host, _, port = other.strip().rpartition(":")
        number = whole_number(port, 65_535)
        if not host or not number:
            raise ValueError(f"REDIS_URL: {other.rpartition('@')[2]!r} is not host:port")
        found.append((host, number))
    return f"{scheme.removesuffix('+cluster')}://{login}{at}{first}{slash}{path}", found


def _without_keys(callback: Callable[..., Any]) -> Callable[..., Any]:
    def called(answer: Any, **options: Any) -> Any:
        options.pop("keys", None)
        return callback(answer, **options)

    return called


class Cluster(RedisCluster):
    """Answers TIME and INFO as one server would."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # redis-py 8.1 takes the option "keys" (of HGETALL and others) away before it calls what
        # reads an answer, but not in a transaction: there the call is a TypeError.
        callbacks = self.response_callbacks
        callbacks.update({name: _without_keys(one) for name, one in callbacks.items()})

    async def time(self, **options: Any) -> Any:
        """Of the node that keeps the first shard: all nodes' clocks are to agree, as those
        of workers need not."""
        await self.initialize()
        node = self.get_node_from_key(keys.prefix(0))
        return await super().time(target_nodes=node, **options)

    async def info(self, section: str | None = None, *more: str, **options: Any) -> Any:
        """The first primary's, with a run_id that changes when any primary was started anew."""
        sections = [section, *more] if section else []
        found = await super().info(*sections, target_nodes=RedisCluster.PRIMARIES, **options)
        answers = list(found.values()) if "run_id" not in found else [found]
        ids = sorted(str(answer.get("run_id", "")) for answer in answers)
        return {**answers[0], "run_id": "-".join(ids)}


def connect(redis_url: str, **options: Any) -> Any:
    """A client with the commands of redis.asyncio.Redis, which it is none of."""
    first, others = split_url(redis_url)
    nodes = [ClusterNode(host, port) for host, port in others]
    if nodes:
        options["startup_nodes"] = nodes
    return Cluster.from_url(first, **options)


def connect_blocking(redis_url: str, **options: Any) -> Any:
    """The same, with the commands of redis.Redis."""
    first, others = split_url(redis_url)
    nodes = [redis.cluster.ClusterNode(host, port) for host, port in others]
    if nodes:
        options["startup_nodes"] = nodes
    return redis.RedisCluster.from_url(first, **options)
