"""The visits at work in one worker: their leases, how they end, and what waits while an
article is in the pipelines.

The article is the item. The rest of its visit (outcome, links, digests, body, lease) waits here
under the article's id, and goes to the frontier as an ack when the request has left Scrapy.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from newscrawler.frontier.queue import Ack, Lease
from newscrawler.items import Outcome, Visit

logger = logging.getLogger(__name__)

#: ``(visit, outcome, reason)`` of a visit that has ended. The outcome is not the visit's own where
#: a pipeline failed.
Listener = Callable[[Visit, Outcome, str], None]


class InFlight:
    """A lease between its hand-out and its ack."""

    __slots__ = (
        "fetched",
        "latency_s",
        "lease",
        "left",
        "reason",
        "size",
        "started",
        "verdict",
        "visit",
    )

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.started = time.monotonic()
        self.fetched = False  # an answer came and was told
        # When the downloader let it go without an answer; 0 = it did not, or was never asked.
        self.left = 0.0
        self.latency_s = 0.0  # to the head of the answer
        self.size = 0  # bytes of it
        self.visit: Visit | None = None
        self.verdict: Outcome | None = None  # a bad end, wins over the visit's own outcome
        self.reason = ""

    def known(self) -> Visit:
        """What is known of the visit; of one whose callback said nothing that is its lease."""
        if self.visit is not None:
            return self.visit
        lease = self.lease
        return Visit(
            url=lease.url,
            outcome=Outcome.RETRY,
            kind=lease.kind,
            site=lease.site,
            domain=lease.domain,
            lease=lease,
        )

    def ack(self) -> Ack:
        visit, lease = self.visit, self.lease
        if visit is None:
            # A callback that noted no visit fires no signal at all: only here is it seen.
            return Ack(
                lease=lease, outcome=self.verdict or Outcome.RETRY, reason=self.reason or "nothing"
            )
        if self.verdict is not None:
            # What was found on a page is followed also where its article was dropped; a page that
            # is tried again says it again.
            links = visit.links if self.verdict is Outcome.REFUSED else []
            return Ack(
                lease=lease,
                outcome=self.verdict,
                reason=self.reason,
                status=visit.status,
                links=links,
            )
        return Ack(
            lease=lease,
            outcome=visit.outcome,
            reason=visit.reason,
            status=visit.status,
            next_visit_ms=visit.next_visit_ms,
            retry_after_s=visit.retry_after_s,
            moved_to=visit.moved_to,
            etag=visit.etag,
            last_modified=visit.last_modified,
            digest=visit.digest,
            content_state=visit.content_state,
            raw_ref=visit.article.raw_ref if visit.article else None,
            links=visit.links,
            robots=visit.robots,
        )


class Visits:
    """The visits whose article is in the pipelines, and who is told when one of them has ended."""

    def __init__(self) -> None:
        self._by_article: dict[str, Visit] = {}
        self._listeners: list[Listener] = []
        #: Whether a pipeline of this crawl stores articles, and whether one keeps raw pages.
        self.stores_articles = False
        self.keeps_pages = False

    def begin(self, visit: Visit) -> None:
        """The visit has an article, which is about to go through the pipelines."""
        if visit.article is not None:
            self._by_article[visit.article.id] = visit

    def of_article(self, article_id: str) -> Visit | None:
        """None for an article that is not of a visit: it was stored before, or a
        person asked for it."""
        return self._by_article.get(article_id)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def end(self, visit: Visit, outcome: Outcome, reason: str) -> None:
        """What a listener raises is logged, and the others are called all the
        same, as with signals."""
        self._by_article.pop(visit.lease.url_id.hex(), None)
        for listener in self._listeners:
            try:
                listener(visit, outcome, reason)
            except Exception:
                logger.exception(
                    "End of a visit could not be noted by=%s",
                    getattr(listener, "__qualname__", listener),
                )
