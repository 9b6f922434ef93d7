"""Redis keys of the selector store. One hash tag, so that its scripts stay on one
Redis Cluster node."""

from __future__ import annotations

TAG = "{selectors}"
#: zset domain -> change number: what a worker has to read again is what lies above the last
#: number that it saw.
CHANGED = f"{TAG}:changed"
#: zset domain -> ms since the epoch (server's clock) from which its generation may run
JOBS = f"{TAG}:jobs"
#: string, only grows: fencing numbers of generations
FENCE = f"{TAG}:fence"
#: hash domain -> JSON {since_ms, version, reason}: articles of that time are to be parsed again
REPAIRS = f"{TAG}:repairs"
#: hash url -> JSON {url, domain, ref, tries} of pages whose fields a model may be asked for
DIRECT = f"{TAG}:direct"
#: zset url of those -> ms since the epoch from which it may be asked
DIRECT_DUE = f"{TAG}:direct:due"


def domain(name: str) -> str:
    """hash: active, probation (version numbers), next, pinned, disabled, state, reason, shipped
    (digest), fence, attempts, shadow:<version> ("agreed/seen")"""
    return f"{TAG}:d:{name}"


def versions(name: str) -> str:
    """hash: version -> JSON of the set"""
    return f"{TAG}:v:{name}"


def history(name: str) -> str:
    """list of JSON events, newest first, the last HISTORY_LENGTH"""
    return f"{TAG}:h:{name}"


def samples(name: str) -> str:
    """hash: url -> JSON {ref, at_ms}: pages that a set is to be made from; while one is on
    probation, its shadow pages"""
    return f"{TAG}:s:{name}"


def watch(name: str) -> str:
    """hash: v (version that is watched), c (JSON of the counters), alarm (JSON),
    ready; see lua/observe.lua"""
    return f"{TAG}:w:{name}"


def watched_pages(name: str) -> str:
    """hash: url -> JSON {ref, fp, ms, t} of pages that failed, "ok:<slot>" -> JSON {url, ref, ms}
    of some that did not"""
    return f"{TAG}:wp:{name}"


def repairs(name: str) -> str:
    """list of JSON reports of what was parsed again, newest first"""
    return f"{TAG}:r:{name}"


def lock(name: str) -> str:
    return f"{TAG}:lock:{name}"


def budget(day: str) -> str:
    """hash: calls, tokens, micro (millionths of the prices' currency), direct (pages), each also as
    <name>:<domain>; day as YYYYMMDD"""
    return f"{TAG}:budget:{day}"


def answer(digest: str) -> str:
    """string: cached answer of a model, or the error it ended in"""
    return f"{TAG}:answer:{digest}"


def answer_mode(base_url: str, model: str) -> str:
    """string: the form of answer that this server is known to take"""
    return f"{TAG}:mode:{base_url}|{model}"


def text(raw: bytes | str) -> str:
    """What Redis answered, whether its client decodes or not."""
    return raw.decode() if isinstance(raw, bytes) else raw
