"""Exit code 0 when this container does its work: HEALTH_URL answers, or with HEALTH_URL=worker a
worker of this host has sent a heartbeat of late."""

from __future__ import annotations

import os
import socket
import sys
import urllib.error
import urllib.request

TIMEOUT_S = 8


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            return bool(response.status < 500)
    except urllib.error.HTTPError as exc:
        return exc.code in (401, 403)  # it asks who we are: it works
    except OSError:
        return False


def beats() -> bool:
    """Heartbeats end by themselves some seconds after their worker."""
    from newscrawler.fleet.registry import WORKERS, worker_key
    from newscrawler.frontier import connect_blocking

    url = os.environ["REDIS_URL"]
    with connect_blocking(
        url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
    ) as client:
        names = [name.decode() for name in client.zrange(WORKERS, 0, -1)]
        own = [name for name in names if name.startswith(socket.gethostname())]
        return any(client.exists(worker_key(name)) for name in own)


if __name__ == "__main__":
    where = os.environ.get("HEALTH_URL", "")
    is_well = beats() if where == "worker" else answers(where)
    sys.exit(0 if is_well else 1)
