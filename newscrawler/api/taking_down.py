"""A take-down with its two entries in the audit log: what the command and the API do alike."""

from __future__ import annotations

from newscrawler.api.access import Principal
from newscrawler.api.audit import AuditLog
from newscrawler.crawl.takedown import Plan, TakeDown, TakeDownReport


async def carried_out(
    work: TakeDown, plan: Plan, who: Principal, log: AuditLog
) -> tuple[TakeDownReport, str]:
    """What was found at the end, and what was removed, in words.

    :raises AuditUnavailable: it cannot be noted, and nothing was changed
    """
    log.note(who, "takedown", plan.target, plan.reason)
    report = await work.carry_out(plan)
    removed = ", ".join(f"{number:,} {what}" for what, number in plan.removed.items())
    log.note(who, "takedown.done", plan.target, removed or "nothing was stored")
    return report, removed
