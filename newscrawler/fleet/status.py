"""The tables of `scrapy fleet status`: from one look at the fleet to rows. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from newscrawler.fleet.judgement import Fate, row_of
from newscrawler.fleet.ledger import Job, JobState
from newscrawler.fleet.nodes import NodeView
from newscrawler.fleet.watch import Look, waits

NODE_COLUMNS = ("node", "state", "workers", "cpu_free", "memory_free", "version", "last_error")
WORKER_COLUMNS = (
    "job",
    "node",
    "state",
    "pid",
    "up",
    "beat",
    "pages",
    "pages_per_s",
    "leases",
    "cpu",
    "memory",
    "version",
    "last_error",
)
#: Characters of an error in the table; --json has all.
ERROR_MOST = 60
#: The same of a node, where it is why no worker starts.
NODE_ERROR_MOST = 160

_WORDS = {
    Fate.STARTING: "starting",
    Fate.RUNNING: "running",
    Fate.UNKNOWN: "silent",
    Fate.ENDED: "ended",
    Fate.DIED: "dead",
    Fate.STUCK: "stuck",
    Fate.NOT_STARTED: "not started",
}


def status_of(look: Look) -> dict[str, Any]:
    """{"fleet": ..., "nodes": [...], "workers": [...], "problems": [...]}: what --json prints."""
    workers = worker_rows(look)
    nodes = node_rows(look, workers)
    running = sum(row["state"] == "running" for row in workers if row["managed"])
    wanted = look.state.wanted
    versions = Counter(row["version"] for row in workers if row["version"] and row["alive"])
    fleet = {
        "running": running,
        "wanted": look.state.said.get("target", wanted.least),
        "least": wanted.least,
        "most": wanted.most,
        "version": wanted.version or None,
        "deployed": wanted.deployed or None,
        "versions": dict(versions),
        "watched_by": look.state.leader or None,
    }
    return {
        "fleet": fleet,
        "nodes": nodes,
        "workers": workers,
        "problems": problems(look, fleet, nodes),
    }


def problems(look: Look, fleet: Mapping[str, Any], nodes: list[dict[str, Any]]) -> list[str]:
    """The problems that somebody has to look at; the exit code is 1 when there are any."""
    found = [f"node {row['node']}: {row['state']}" for row in nodes if row["state"] == "back-off"]
    found += [row["error"] for row in nodes if row["error"]]
    if fleet["running"] < fleet["wanted"]:
        found.append(f"{fleet['running']} of {fleet['wanted']} workers run")
    if len(fleet["versions"]) > 1:
        mix = ", ".join(f"{many} x {version}" for version, many in fleet["versions"].items())
        found.append(f"a mix of versions runs: {mix}; `scrapy fleet restart` ends it")
    if fleet["wanted"] and not fleet["watched_by"]:
        found.append(
            "nobody watches: a worker that dies is not replaced; start `scrapy fleet watch`"
        )
    for message in look.state.said.get("messages", []):
        if not any(message in known or known in message for known in found):
            found.append(message)
    return found


def worker_rows(look: Look) -> list[dict[str, Any]]:
    """The fleet's jobs first, then workers that somebody else started."""
    found = []
    seen = set()
    for job in look.state.jobs.values():
        row = row_of(job, look.rows) or {}
        seen.add(row.get("id"))
        found.append(_worker_row(look, row, job))
    for name, row in look.rows.items():
        if name not in seen:
            found.append(_worker_row(look, row, None))
    return found


def _worker_row(look: Look, row: Mapping[str, Any], job: Job | None) -> dict[str, Any]:
    is_alive = bool(row.get("alive"))
    started_ms = job.started_ms if job else row.get("started_ms", 0)
    return {
        "worker": row.get("id"),
        "job": job.id if job else row.get("job") or None,
        "node": job.node if job else row.get("node") or row.get("host"),
        "state": _state(look, row, job),
        "why": job.why or look.verdicts[job.id].why if job else "",
        "managed": job is not None,
        "alive": is_alive,
        "host": row.get("host"),
        "pid": row.get("pid"),
        "up_s": max(0, look.state.now_ms - started_ms) // 1000 if started_ms else None,
        "beat_s": row.get("age_s"),
        "pages": row.get("pages"),
        "pages_per_s": row.get("pages_per_s"),
        "leases": row.get("leases"),
        "cpu_percent": row.get("cpu_percent"),
        "memory_bytes": row.get("memory_bytes"),
        "version": row.get("version") or (job.version if job else None),
        "last_error": row.get("last_error") or None,
        "waits_for": row.get("waits_for") or None,
    }


def _state(look: Look, row: Mapping[str, Any], job: Job | None) -> str:
    if job is None:
        return "running" if row["alive"] else "silent"
    fate = look.verdicts[job.id].fate
    if fate is Fate.RUNNING and job.state is JobState.DRAINING:
        return "draining"
    return _WORDS[fate]


def node_rows(look: Look, workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for name, view in sorted(look.views.items()):
        state = look.state.node(name)
        is_known = state.cores > 0
        found.append(
            {
                "node": name,
                "state": _node_state(look, name, view),
                "error": view.error,
                "workers": sum(row["node"] == name and row["alive"] for row in workers),
                "pending": len(view.pending),
                "host": state.host or None,
                "cores": state.cores if is_known else None,
                "free_cores": state.free_cores if is_known else None,
                "memory_bytes": state.memory_bytes if is_known else None,
                "free_memory_bytes": state.free_memory_bytes if is_known else None,
                "versions": list(view.versions),
                "last_error": state.last_error or None,
                "last_error_s": _age_s(look, state.error_ms) if state.last_error else None,
            }
        )
    return found


def _age_s(look: Look, at_ms: int) -> int | None:
    return max(0, look.state.now_ms - at_ms) // 1000 if at_ms else None


def _node_state(look: Look, name: str, view: NodeView) -> str:
    if view.error:
        return "away"
    if name in look.state.drained:
        return "drained"
    return "back-off" if waits(look.state.node(name), look.state) else "up"


# ---------------------------------------------------------------- for people
def shown_node(row: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    has = row["versions"][-1] if row["versions"] else "none"
    return {
        **row,
        "cpu_free": _of(row["free_cores"], row["cores"], 1, ""),
        "memory_free": _of(row["free_memory_bytes"], row["memory_bytes"], 1024**3, " GiB"),
        "version": version if version in row["versions"] else has,
        "last_error": _cut(_with_age(row["last_error"], row["last_error_s"]), NODE_ERROR_MOST),
    }


def shown_worker(row: Mapping[str, Any]) -> dict[str, Any]:
    memory, cpu, beat = row["memory_bytes"], row["cpu_percent"], row["beat_s"]
    return {
        **row,
        "job": row["job"] or row["worker"],
        "state": row["state"] if row["managed"] else f"{row['state']} (not of the fleet)",
        "up": duration(row["up_s"]),
        "beat": None if beat is None else f"{beat:.0f} s ago",
        "cpu": None if cpu is None else f"{cpu:.0f} %",
        "memory": None if memory is None else f"{memory / 1024**2:,.0f} MiB",
        "last_error": _cut(row["waits_for"] or row["last_error"]),
    }


def headline(fleet: Mapping[str, Any]) -> str:
    wanted = str(fleet["wanted"])
    if fleet["least"] != fleet["most"]:
        wanted += f" ({fleet['least']} to {fleet['most']})"
    text = f"{fleet['running']} of {wanted} workers run"
    if fleet["version"]:
        text += f" version {fleet['version']}"
    if fleet["deployed"] and fleet["deployed"] != fleet["version"]:
        text += f" ({fleet['deployed']} is deployed: `scrapy fleet restart` changes to it)"
    return f"{text}; watched by {fleet['watched_by'] or 'nobody'}"


def duration(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _of(free: float | None, size: float | None, unit: float, word: str) -> str | None:
    if free is None or size is None:
        return None
    return f"{free / unit:.1f} of {size / unit:.1f}{word}"


def _with_age(text: str | None, age_s: float | None) -> str | None:
    return text if text is None or age_s is None else f"{duration(age_s)} ago: {text}"


def _cut(text: str | None, most: int = ERROR_MOST) -> str | None:
    if text is None or len(text) <= most:
        return text
    return text[: most - 3] + "..."
