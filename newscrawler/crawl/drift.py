"""The watch over active sets during a crawl: pages in, alarms out, and the repair of what a
broken set stored.

Part of newscrawler.crawl.selector_jobs.SelectorGeneration, which hands it each stored page
and runs its loops. A page costs some microseconds here; Redis hears of all pages of half a
second in one call.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

from newscrawler import metrics
from newscrawler.crawl import opening
from newscrawler.crawl.reparse import Choice, Reparser
from newscrawler.crawl.services import Services
from newscrawler.items import Visit
from newscrawler.selectorsets.drift import Alarm, Drift, DriftWatch
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.repairs import Repair, Repairs

logger = logging.getLogger(__name__)

#: An alarm on a quiet site whose failing pages stay few is looked at after this, with what
#: there is by then.
_QUIET_SITE_MS = 30 * 60_000


class DriftService:
    """``note()`` on each page, ``flush()`` and ``repair_due()`` by loops."""

    def __init__(self, services: Services, *, regenerates: bool) -> None:
        self.services = services
        self.regenerates = regenerates
        self._watch = DriftWatch()
        self._drift: Drift | None = None
        self.repairing = False

    def note(self, visit: Visit) -> None:
        selectors = self.services.selectors.active(visit.site)
        if selectors is not None:
            self._watch.note(visit, selectors)

    @property
    def busy(self) -> bool:
        return self.repairing or self._watch.waiting > 0

    async def flush(self) -> None:
        """One script call for all that was noted; nothing when nothing was."""
        if not self._watch.waiting:
            return
        services = self.services
        if self._drift is None:
            self._drift = Drift(services.redis)
        for alarm in await self._drift.send(self._watch.take()):
            await self._alarm(services, alarm)

    async def _alarm(self, services: Services, alarm: Alarm) -> None:
        services.count(metrics.labelled(metrics.SELECTOR_ALARMS, alarm.what), 1)
        say = logger.info if alarm.what in ("open", "ready") else logger.warning
        say(
            "Selector alarm domain=%s what=%s template=%s field=%s failing=%d",
            alarm.domain, alarm.what, alarm.template, alarm.field, alarm.fails,
        )  # fmt: skip
        store = services.selectors
        if alarm.what == "drift":
            await store.adopt(alarm.domain)
        if alarm.what != "ready":
            await store.note_alarm(alarm)
        if self.regenerates and alarm.what in ("drift", "ready"):
            after = _QUIET_SITE_MS if alarm.what == "drift" else 0
            await Jobs(services.redis, ModelBudget()).queue_after(alarm.domain, after)

    # ------------------------------------------------------------ repair
    async def repair_due(self) -> None:
        """Parses the window of one failed set again; the worker goes on crawling beside it."""
        services = self.services
        repairs = Repairs(services.redis)
        repair = await repairs.take()
        if repair is None:
            return
        self.repairing = True
        try:
            await services.selectors.refresh()  # the new set, not the one that failed
            report = await repair_articles(services, repair)
        finally:
            self.repairing = False
        for name in ("changed", "unchanged", "new", "lost"):
            services.count(metrics.labelled(metrics.SELECTOR_REPAIRED, name), report[name])
        await repairs.done(repair, report)
        await services.selectors.note_repair(repair.domain, repair.version, report)
        logger.info(
            "Articles repaired domain=%s version=%s pages=%d changed=%d fields=%s",
            repair.domain, repair.version, report["pages"], report["changed"], report["fields"],
        )  # fmt: skip


async def repair_articles(services: Services, repair: Repair) -> dict[str, Any]:
    """Reads the stored pages since the drift began with today's sets into the article
    store. No site is asked."""
    raw = opening.open_raw_store(services.settings)
    try:
        await asyncio.to_thread(services.raw.flush)
        since = datetime.fromtimestamp(repair.since_ms / 1000, UTC)
        reparser = Reparser(
            raw, services.ingest, services.selectors, services.sites, services.metadata_rules
        )
        found = await reparser.run(Choice(repair.domain, since, None))
    finally:
        raw.close()
    names = ("pages", "new", "changed", "unchanged", "not_article", "lost", "refused")
    counts: dict[str, Any] = {name: getattr(found, name) for name in names}
    return {
        **counts,
        "fields": dict(found.fields),
        "articles": dict(list(found.changes.items())[:200]),
    }
