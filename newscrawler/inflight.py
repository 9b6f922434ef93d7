"""A lease while its page is at work. See newscrawler/pump.py."""

from __future__ import annotations

import time

from newscrawler.frontier.queue import Ack, Lease
from newscrawler.items import Outcome, Page


class InFlight:
    """A lease between its hand-out and its ack."""

    __slots__ = ("fetched", "lease", "left", "page", "reason", "started", "verdict")

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.started = time.monotonic()
        self.fetched = False  # an answer came and was told
        self.left = 0.0  # when the downloader let it go without an answer; 0 = it did not, or was never asked
        self.page: Page | None = None
        self.verdict: Outcome | None = None  # a bad end, wins over the page's own outcome
        self.reason = ""

    def ack(self) -> Ack:
        page, lease = self.page, self.lease
        if self.verdict is not None or page is None:
            # A callback that yields nothing fires no signal at all: only here is it seen.
            return Ack(lease=lease, outcome=self.verdict or Outcome.RETRY, reason=self.reason or "nothing")
        return Ack(
            lease=lease,
            outcome=page.outcome,
            reason=page.reason,
            status=page.status,
            next_visit_ms=page.next_visit_ms,
            retry_after_s=page.retry_after_s,
            moved_to=page.moved_to,
            etag=page.etag,
            last_modified=page.last_modified,
            digest=page.digest,
            links_digest=page.links_digest,
            raw_ref=page.article.raw_ref if page.article else None,
            links=page.links,
            robots=page.robots,
        )
