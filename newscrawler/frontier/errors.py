"""Redis' errors as this package's: one clear line each, the cause kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from newscrawler.frontier.types import FrontierError, FrontierUnavailable

#: What a ResponseError contains -> what to tell. Waiting helps against all of them,
#: an operator too.
_WAITABLE = {
    "OOM ": (
        "Redis is full (maxmemory reached, noeviction); give it memory or purge a domain. Nothing"
        " is lost"
    ),
    "READONLY": "Redis is a read-only replica; point REDIS_URL at the primary",
    "MISCONF": "Redis cannot write its append-only file (disk full or read-only); see its log",
    "LOADING": "Redis is still loading its data",
    "BUSY ": "Redis is busy with a script",
    "NOAUTH": "Redis wants a password; put it into REDIS_URL",
    "WRONGPASS": "Redis refuses the password in REDIS_URL",
    "LAYOUT ": (
        "the frontier is being spread over other shards (`scrapy frontier reshard`); a killed"
        " one goes on when it is started again"
    ),
    "CLUSTERDOWN": "the Redis Cluster is down",
}


def _waitable(exc: redis.ResponseError) -> str | None:
    """What waiting mends; None: nothing of that kind. redis-py strips the code of some errors and
    makes classes of them."""
    kind = type(exc).__name__
    for sign, told in _WAITABLE.items():
        if sign in f"{kind} {exc} ":
            return told
    if "OutOfMemory" in kind:
        return _WAITABLE["OOM "]
    if isinstance(exc, redis.ReadOnlyError):
        return _WAITABLE["READONLY"]
    if isinstance(exc, redis.exceptions.ClusterError):  # also moving or waking slots
        return _WAITABLE["CLUSTERDOWN"]
    return None


@contextmanager
def translated() -> Iterator[None]:
    """:raises FrontierUnavailable: Redis cannot be reached, or cannot write now
    :raises FrontierError: an answer that waiting does not mend: a damaged record, a script
        of another version
    """
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as exc:
        text = next((told for sign, told in _WAITABLE.items() if sign.strip() in str(exc)), None)
        raise FrontierUnavailable(text or f"Redis does not answer: {exc}") from exc
    except redis.ResponseError as exc:
        text = _waitable(exc)
        if text is None:
            raise FrontierError(
                f"Redis answers a call of the frontier with an error: {exc}"
            ) from exc
        raise FrontierUnavailable(f"{text} ({exc})") from exc
    except redis.exceptions.RedisClusterException as exc:  # a slot without a node, no node at all
        raise FrontierUnavailable(f"the Redis Cluster does not answer: {exc}") from exc
    except OSError as exc:
        raise FrontierUnavailable(f"Redis does not answer: {exc}") from exc
