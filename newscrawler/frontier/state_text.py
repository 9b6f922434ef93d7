"""What a domain's and a URL's state means, in words: rows of the report and answers
to "why". Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from newscrawler.frontier.records import FOR_GOOD, DomainState
from newscrawler.frontier.schema import GATE_GROUP
from newscrawler.frontier.types import CLASSES, FrontierConfig, Record
from newscrawler.items import LIST_KINDS

ROBOTS_STATES = ("unknown", "rules", "free", "unreachable")
#: Deaths from which on a URL is a poison candidate, and those during its isolated retries that
#: prove it; no setting changes them.
POISON_CANDIDATE_AFTER = FrontierConfig().poison_candidate_after
MAX_ISOLATED_RETRIES = FrontierConfig().max_isolated_retries


def group_gate(data: bytes) -> tuple[int, str]:
    """(ms from which the next member may be fetched, the member that is being fetched or "")."""
    row = GATE_GROUP.read(data)
    return int(row.gate), data[GATE_GROUP.size : GATE_GROUP.size + row.holder].decode()


def row(
    state: DomainState, leased: list[str], now: int, groups: dict[str, tuple[int, str]]
) -> dict[str, Any]:
    """One domain of the report. ``leased``: ids of the workers that hold a URL of it; ``groups``:
    :func:`group_gate`."""
    gate, holder = groups.get(state.extra.group, (0, ""))
    open_at = max(open_from(state), gate)
    return {
        "domain": state.domain,
        "site": state.site,
        "class": CLASSES[state.cls],
        "class_why": class_reason(state),
        "queued": state.queued,
        "waiting": state.due,  # not due yet: revisits and retries
        "leased": len(leased),
        "leased_by": ", ".join(leased) or None,
        "delay_ms": state.delay,
        "delay_why": delay_reason(state),
        "wait_ms": max(0, open_at - now),  # by the frontier's clock
        "next_ms": state.ready_at or None,
        "note": note(state, now, gate, holder),
        "quota": quota_text(state, now),
        "group": state.extra.group or None,
        "robots": ROBOTS_STATES[state.robots_state],
        "fetched": state.fetched,
        "errors": state.errors,
        "added": state.added,
        "dropped": state.dropped,
    }


def open_from(state: DomainState) -> int:
    """Ms since the epoch from which the domain may be fetched; FOR_GOOD = not
    without the operator."""
    open_at = max(state.gate, state.backoff_until, state.blocked_until, state.extra.held_until)
    return max(open_at, state.robots_due) if state.robots_state == 3 else open_at


def note(state: DomainState, now: int, group_gate_ms: int = 0, holder: str = "") -> str:
    """Why nothing is fetched, if so. What the operator did comes first, as only he can undo it."""
    reasons = (
        ("not in this run", not state.enabled),  # `--sites` left it out, or it is disabled
        ("paused", state.paused),
        ("blocked", state.blocked_until > now),
        ("quota spent", state.extra.held_until > now),
        ("robots.txt does not answer", state.robots_state == 3),
        ("back-off", state.backoff_until > now),
        (f"its group fetches {holder}", holder not in ("", state.domain)),
        (f"its group {state.extra.group} is held", group_gate_ms > max(now, open_from(state))),
    )
    return next((reason for reason, holds in reasons if holds), "")


def class_reason(state: DomainState) -> str:
    if state.operator_cls is not None:
        return "set by the operator"
    if state.extra.is_class_worked_out:
        return f"worked out: {state.extra.class_reason}"
    return "chosen in the sites file"


def delay_reason(state: DomainState) -> str:
    """Which of the delays is the one that counts."""
    named = {
        "operator": state.operator_delay,
        "Crawl-delay": state.crawl_delay,
        "AutoThrottle": state.autothrottle,
        "floor": state.floor,
    }
    return "floor" if state.delay == state.floor else max(named, key=lambda name: named[name])


def quota_text(state: DomainState, now: int) -> str | None:
    """``None``: no quota."""
    x = state.extra
    if not x.quota:
        return None
    used = f"{x.quota_used(state.fetched, now)} of {x.quota}"
    return f"{used} in {span(x.quota_window_s)}" if x.quota_window_s else f"{used} in this crawl"


def span(seconds: float) -> str:
    """A length of time as a person says it: 0.2s, 45s, 30m, 26h, 3d."""
    seconds = round(seconds) if seconds > 10 else seconds
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.3g}s" if seconds < 100 else f"{seconds:.0f}s"


def until(at: int, now: int) -> str:
    return (
        "until the operator ends it" if at >= FOR_GOOD else f"for another {span((at - now) / 1000)}"
    )


def why(record: Record | None, state: DomainState | None, now: int, waits: str = "") -> str:
    """One sentence on a URL. ``waits``: the note of its domain."""
    if state is None:
        return "the domain is not one of the frontier's: links to it are refused (offsite)"
    if record is None:
        return (
            "the frontier does not know this URL: no fetched page linked to it, or the link was"
            " refused by a rule"
        )
    doubt = suspicion_of(record)
    if record.state == "leased":
        by = record.worker
        return f"held by {by}; {doubt}" if doubt else f"being fetched by {by}"
    if record.state in ("queued", "waiting"):
        text = _why_queued(record, state, now)
        if waits:
            text += f"; the domain: {waits}"
            if (open_at := open_from(state)) > now:
                text += f" {until(open_at, now)}"
        return f"{text}; {doubt}" if doubt else text
    return _why_finished(record, now)


def _why_queued(record: Record, state: DomainState, now: int) -> str:
    if not record.due_ms:
        return f"in the queue, {state.queued} of this domain are queued"
    if record.due_ms <= now:
        return "its time has come, it joins the queue with the next turn of its domain"
    after = f" after {record.outcome}" if record.outcome else ""
    return f"comes again in {span((record.due_ms - now) / 1000)}{after}"


def _why_finished(record: Record, now: int) -> str:
    what = f"{record.outcome}({record.reason})" if record.reason else str(record.outcome)
    text = f"{record.state} as {what}, visited {span((now - record.last_visit_ms) / 1000)} ago"
    if record.next_visit_ms:
        text += f"; an offer of it is taken again {_from(record.next_visit_ms, now)}"
    elif record.reason == "robots":
        text += "; offered again when robots.txt has changed"
    return text


def is_poison_candidate(record: Record) -> bool:
    return record.crashes >= POISON_CANDIDATE_AFTER


def suspicion_of(record: Record) -> str:
    """The text about a poison candidate; empty for any other URL."""
    if not is_poison_candidate(record) or record.state not in ("queued", "waiting", "leased"):
        return ""
    text = (
        f"suspected to kill workers ({POISON_CANDIDATE_AFTER} died while they held it, among others"
    )
    deaths = record.crashes - POISON_CANDIDATE_AFTER
    if deaths:
        text += f", and {deaths} while it was tried by itself"
    if deaths and record.kind not in LIST_KINDS:
        text += f"; {MAX_ISOLATED_RETRIES} such are its end, in quarantine"
    if record.state != "leased":
        what_next = "rests, then is" if record.due_ms else "next it is"
        return f"{text}): {what_next} tried by itself"
    if record.on_trial:
        return f"{text}): retried by itself"
    return f"{text}): waits in its worker to be tried by itself"


def _from(at: int, now: int) -> str:
    return f"in {span((at - now) / 1000)}" if at > now else "from now on"


def details(row: dict[str, Any]) -> str:
    """What the report's table has no room for, of one of its rows."""
    facts = {
        "class": f"{row['class']}, {row['class_why']}",
        "delay": f"{row['delay_ms'] / 1000:g} s, by {row['delay_why']}",
        "quota": row["quota"] or "none",
        "group": row["group"],
        "leased by": row["leased_by"],
        "links added": row["added"],
        "links dropped": row["dropped"] or None,
    }
    return "\n".join(
        [
            f"{row['domain']}:",
            *(f"  {name}: {value}" for name, value in facts.items() if value is not None),
        ]
    )


def summary(found: dict[str, Any]) -> str:
    """The lines under the table, of the whole report."""
    totals, stats = found["totals"], found["stats"]
    lines = [
        (
            f"{totals['queued']} queued, {totals['waiting']} wait for their next visit,"
            f" {totals['leased']} leased, {totals['quarantined']} in quarantine,"
            f" {totals['domains']} domains"
        ),
        *_parts(found),
    ]
    if found["workers"]:
        lines.append("leased by: " + _listed(sorted(found["workers"].items())))
    lines += _caps(found["caps"])
    outcomes = {name[8:]: n for name, n in stats.items() if name.startswith("outcome/")}
    if outcomes:
        lines.append(f"visits so far: {_listed(outcomes.items())}")
    if drops := [(name.replace("_", " "), stats[name]) for name in _DROPS if name in stats]:
        lines.append(f"counted besides: {_listed(drops)}")
    return "\n".join(lines)


#: Stats that are told where they have counted anything.
_DROPS = (
    "queue_full",
    "dropped",
    "trap",
    "quarantined",
    "expired",
    "rejected",
    "filter_lied",
    "purged",
)


def _listed(counts: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts)


def _parts(found: dict[str, Any]) -> list[str]:
    """A line per class, and per shard where there are several."""
    sums = [(f"class {name}", part) for name, part in found["classes"].items()]
    if len(found["shards"]) > 1:
        sums += [(f"shard {name}", part) for name, part in found["shards"].items()]
    return [
        f"{name}: {part['queued']} queued, {part['leased']} leased, {part['domains']} domains "
        f"({part['ready']} may be fetched now, {part['held']} held)"
        for name, part in sums
        if part["domains"]
    ]


def _caps(caps: dict[str, Any]) -> list[str]:
    return [
        f"the fleet's cap: {caps[f'{kind}_now']:,} {kind} now,"
        f" {caps[f'{kind}_per_minute']:,} a minute"
        for kind in ("requests", "bytes")
        if f"{kind}_per_minute" in caps
    ]
