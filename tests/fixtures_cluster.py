"""Fixture ``redis_cluster``: a real Redis Cluster of three primaries, started by the suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.crawl.chaos import RedisServer
from tests.crawl.harness import until

SLOTS = 16384


class RedisClusterServers:
    """Three redis-servers in cluster mode, a third of the slots each."""

    def __init__(self, folder: Path) -> None:
        self.nodes: list[RedisServer] = []
        try:
            for n in range(3):
                self.nodes.append(
                    RedisServer(
                        folder / f"node-{n}", cluster_enabled="yes", cluster_node_timeout=2000
                    )
                )
            self._join()
        except BaseException:
            self.stop()
            raise

    def _join(self) -> None:
        clients = [redis.Redis(port=node.port, socket_timeout=5) for node in self.nodes]
        for number, client in enumerate(clients):
            first, after = number * SLOTS // 3, (number + 1) * SLOTS // 3
            client.execute_command("CLUSTER", "ADDSLOTS", *range(first, after))
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)

        def agree() -> bool:
            infos = [client.execute_command("CLUSTER", "INFO") for client in clients]
            return all(
                b"cluster_state:ok" in info and b"cluster_known_nodes:3" in info for info in infos
            )

        until(agree, "three nodes that know of one another", 30)
        for client in clients:
            client.close()

    @property
    def url(self) -> str:
        """Two of the three are named: the third is found through them."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:2])

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


@pytest.fixture(scope="module")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisClusterServers]:
    servers = RedisClusterServers(tmp_path_factory.mktemp("cluster"))
    yield servers
    servers.stop()
