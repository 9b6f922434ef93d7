"""Spidermon suites: at close and, on the live stats, every few minutes. A failed one posts an alert.

A monitor fails when its number is missing: silence is an alarm. The same checks serve both suites;
the periodic one leaves out what only an ended crawl can say, and adds "nothing came since last time".
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import socket
import time
import urllib.request
import warnings
from threading import Thread
from typing import Any

from spidermon import Monitor, MonitorSuite, monitors
from spidermon.core.actions import Action

from newscrawler import metrics

# Spidermon 1.27 still calls Spider.log(); harmless, and not the user's to mend
warnings.filterwarnings("ignore", r"Spider\.log\(\) is deprecated")

logger = logging.getLogger(__name__)

#: The header that carries "sha256=<hex>" of the body under ALERT_WEBHOOK_SECRET.
SIGNATURE_HEADER = "X-Newscrawler-Signature"
_POST_TIMEOUT_S = 10.0

#: Outcomes that are a site's or our fault; the others are ordinary ends of a visit.
_BAD_OUTCOMES = ("RETRY", "FAILED", "CHALLENGE")
_FIELDS = ("title", "content", "published", "authors")


class _NewsMonitor(Monitor):
    """Shared reading of the crawl's stats."""

    @property
    def numbers(self) -> dict[str, Any]:
        return dict(self.data.stats)

    def setting(self, name: str) -> float:
        return float(self.data.crawler.settings.getfloat(name))

    def pages(self) -> int:
        """Visits that ended, by outcome."""
        prefix = f"{metrics.PAGE_OUTCOME}/"
        return sum(v for k, v in self.numbers.items() if k.startswith(prefix))

    def outcome(self, *names: str) -> int:
        return sum(self.numbers.get(metrics.labelled(metrics.PAGE_OUTCOME, n), 0) for n in names)

    def articles(self) -> int:
        """Articles that went through the store, changed or not."""
        names = (metrics.ARTICLES_NEW, metrics.ARTICLES_UPDATED, metrics.ARTICLES_UNCHANGED)
        return sum(self.numbers.get(n, 0) for n in names)

    def stored(self) -> int:
        return sum(self.numbers.get(n, 0) for n in (metrics.ARTICLES_NEW, metrics.ARTICLES_UPDATED))

    @property
    def _is_second_look(self) -> bool:
        """A crawl that found everything known before has no new articles, and is well."""
        return self.outcome("UNCHANGED") > 0


@monitors.name("Items")
class ItemsMonitor(_NewsMonitor):
    @monitors.name("pages were fetched")
    def test_pages(self) -> None:
        self.assertGreater(self.pages(), 0, msg="no visit ended: nothing was fetched, or nothing was counted")

    @monitors.name("articles were stored")
    def test_articles(self) -> None:
        least = self.setting("MONITOR_MIN_ARTICLES")
        if self._is_second_look and not self.articles():
            return
        self.assertGreaterEqual(self.articles(), least, msg=f"{self.articles()} articles of at least {least:g}")


@monitors.name("Errors")
class ErrorsMonitor(_NewsMonitor):
    @monitors.name("share of visits that failed")
    def test_share(self) -> None:
        pages = self.pages()
        self.assertGreater(pages, 0, msg="no visits were counted")
        bad, most = self.outcome(*_BAD_OUTCOMES), self.setting("MONITOR_MAX_ERROR_SHARE")
        reasons = {
            k.partition("/")[2].partition("/")[2]: v
            for k, v in self.numbers.items()
            if k.startswith(f"{metrics.PAGE_REASON}/")
        }
        worst = ", ".join(f"{k} {v}" for k, v in sorted(reasons.items(), key=lambda r: -r[1])[:3])
        self.assertLessEqual(bad / pages, most, msg=f"{bad} of {pages} visits failed (at most {most:.0%}): {worst}")

    @monitors.name("errors in the log")
    def test_log(self) -> None:
        most = self.setting("MONITOR_MAX_LOG_ERRORS")
        found = self.numbers.get("log_count/ERROR", 0) + self.numbers.get("log_count/CRITICAL", 0)
        found -= self.numbers.get(metrics.MONITOR_FAILED, 0)  # Spidermon logs each failed check as an error itself
        self.assertLessEqual(found, most, msg=f"{found} error lines in the log (at most {most:g})")


@monitors.name("Field coverage")
class FieldCoverageMonitor(_NewsMonitor):
    """Share of stored articles that have each field; only with enough of them to tell."""

    def _check(self, name: str) -> None:
        stored = self.stored()
        if stored < self.setting("MONITOR_COVERAGE_FROM"):
            return
        have = self.numbers.get(metrics.labelled(metrics.ARTICLE_FIELD, name), 0)
        least = self.setting(f"MONITOR_MIN_{name.upper()}")
        self.assertGreaterEqual(have / stored, least, msg=f"{name}: {have} of {stored} articles (at least {least:.0%})")

    @monitors.name("title")
    def test_title(self) -> None:
        self._check("title")

    @monitors.name("content")
    def test_content(self) -> None:
        self._check("content")

    @monitors.name("published")
    def test_published(self) -> None:
        self._check("published")

    @monitors.name("authors")
    def test_authors(self) -> None:
        self._check("authors")


@monitors.name("Finish reason")
class FinishReasonMonitor(_NewsMonitor):
    @monitors.name("the crawl ended as it should")
    def test_reason(self) -> None:
        reason = self.numbers.get("finish_reason")  # of CoreStats, which hears spider_closed before Spidermon
        expected = self.data.crawler.settings.getlist("MONITOR_FINISH_REASONS")
        self.assertIn(reason, expected, msg=f"finish reason {reason!r}; expected one of {', '.join(expected)}")


@monitors.name("Silence")
class SilenceMonitor(_NewsMonitor):
    """Periodic: visits must have ended since the last look, unless everything is waiting for its time."""

    @monitors.name("visits ended since the last look")
    def test_progress(self) -> None:
        crawler = self.data.crawler
        before = getattr(crawler, "_monitor_pages", 0)
        now = self.pages()
        crawler._monitor_pages = now
        waiting = self.numbers.get(metrics.FRONTIER_LEASED, 0)
        queued = self.numbers.get(metrics.FRONTIER_QUEUED)
        if queued == 0 and waiting == 0:
            return  # all done, waiting for new seeds: that is no silence
        self.assertGreater(now, before, msg=f"no visit ended since the last look; {queued} URLs are queued")


class Webhook(Action):
    """Posts what failed to ALERT_WEBHOOK_URL as JSON, signed with ALERT_WEBHOOK_SECRET. Without a URL: a log line."""

    def __init__(self, url: str, secret: str) -> None:
        super().__init__()
        self.url = url
        self.secret = secret

    @classmethod
    def from_crawler_kwargs(cls, crawler: Any) -> dict[str, Any]:
        settings = crawler.settings
        return {
            "url": settings.get("ALERT_WEBHOOK_URL") or "",
            "secret": os.environ.get(settings["ALERT_WEBHOOK_SECRET_ENV"], ""),
        }

    def run_action(self) -> None:
        payload = self.payload()
        crawler = self.data.crawler
        crawler.stats.inc_value(metrics.MONITOR_FAILED, len(payload["failures"]))
        failing = {f["monitor"] for f in payload["failures"]}
        known: set[str] = getattr(crawler, "_monitor_incident", set())
        crawler._monitor_incident = failing
        if not failing - known:
            return  # one alert per incident: what still fails was told, what passes again is told by silence
        for failure in payload["failures"]:
            logger.warning("Monitor failed monitor=%s reason=%s", failure["monitor"], failure["reason"])
        if self.url:
            body = json.dumps(payload, ensure_ascii=False).encode()
            # In a thread: a webhook that does not answer must not hold the reactor. It is joined at exit.
            Thread(target=post, args=(self.url, body, self.secret), name="alert-webhook").start()

    def payload(self) -> dict[str, Any]:
        """What the receiver gets: one incident with all monitors that failed."""
        stats = self.data.stats
        failures = [
            {"monitor": r.monitor.full_name, "reason": _reason(r.error or r.reason or r.status)}
            for r in self.result.monitors_failed_results
        ]
        return {
            "event": "monitor.failed", "at_ms": round(time.time() * 1000), "host": socket.gethostname(),
            "pid": os.getpid(), "spider": self.data.spider.name, "job": getattr(self.data.spider, "_job", None),
            "failures": failures,
            "stats": {k: v for k, v in stats.items() if isinstance(v, (int, float, str)) and "/" in k},
        }  # fmt: skip


def _reason(text: str) -> str:
    """The assertion's message without its traceback; unittest puts its own "x != y : " in front."""
    last = text.strip().splitlines()[-1] if text.strip() else text
    return last.split(" : ", 1)[-1].removeprefix("AssertionError: ")


def sign(body: bytes, secret: str) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def post(url: str, body: bytes, secret: str) -> bool:
    """One POST; a failure is a log line: alerts must not stop a crawl."""
    headers = {"Content-Type": "application/json", "User-Agent": "newscrawler"}
    if secret:
        headers[SIGNATURE_HEADER] = sign(body, secret)
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_POST_TIMEOUT_S) as answer:
            answer.read(64)
        return True
    except (OSError, ValueError) as exc:
        logger.error("Alert not delivered url=%s reason=%s", url, exc)
        return False


class CloseSuite(MonitorSuite):
    """When the crawl has ended."""

    monitors = [ItemsMonitor, ErrorsMonitor, FieldCoverageMonitor, FinishReasonMonitor]
    monitors_failed_actions = [Webhook]


class PeriodicSuite(MonitorSuite):
    """On the live stats of a running crawl."""

    monitors = [ErrorsMonitor, FieldCoverageMonitor, SilenceMonitor]
    monitors_finished_actions = [Webhook]  # also after a good run: it ends the incident
