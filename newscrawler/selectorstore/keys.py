"""Redis keys of the selector store. One hash tag, so that its scripts stay on one Redis Cluster node."""

from __future__ import annotations

TAG = "{selectors}"
#: zset domain -> change number: what a worker has to read again is what lies above the last number that it saw.
CHANGED = f"{TAG}:changed"
#: zset domain -> ms since the epoch (server's clock) from which its generation may run
JOBS = f"{TAG}:jobs"
#: string, only grows: fencing numbers of generations
FENCE = f"{TAG}:fence"


def domain(name: str) -> str:
    """hash: active, probation (version numbers), next, pinned, disabled, state, reason, shipped (digest),
    fence, attempts, shadow:<version> ("agreed/seen")"""
    return f"{TAG}:d:{name}"


def versions(name: str) -> str:
    """hash: version -> JSON of the set"""
    return f"{TAG}:v:{name}"


def history(name: str) -> str:
    """list of JSON events, newest first, the last HISTORY_LENGTH"""
    return f"{TAG}:h:{name}"


def samples(name: str) -> str:
    """hash: url -> JSON {ref, at_ms}"""
    return f"{TAG}:s:{name}"


def lock(name: str) -> str:
    return f"{TAG}:lock:{name}"


def budget(day: str) -> str:
    """hash: calls, tokens, calls:<domain>; day as YYYYMMDD"""
    return f"{TAG}:budget:{day}"


def answer(digest: str) -> str:
    """string: cached answer of a model, or the error it ended in"""
    return f"{TAG}:answer:{digest}"
