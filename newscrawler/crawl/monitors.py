"""Spidermon suites: at close and, on the live stats, every few minutes. A
failed one posts an alert.

A monitor fails when its number is missing: silence is an alarm. The same checks serve
both suites; the periodic one leaves out what only an ended crawl can say, and adds
"nothing came since last time".
"""

from __future__ import annotations

import json
import logging
import math
import os
import socket
import time
import urllib.request
import warnings
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from spidermon import Monitor, MonitorSuite, monitors
from spidermon.core.actions import Action

from newscrawler import metrics
from newscrawler.crawl import plugins
from newscrawler.crawl.opening import job_of
from newscrawler.crawl.plugins import AlertAction
from newscrawler.crawl.signature import SIGNATURE_HEADER, sign
from newscrawler.utils.display import url_shown

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# Spidermon 1.27 still calls Spider.log(); harmless, and not the user's to mend
warnings.filterwarnings("ignore", r"Spider\.log\(\) is deprecated")

logger = logging.getLogger(__name__)

_POST_TIMEOUT_S = 10.0

#: Outcomes that are a site's or our fault; the others are ordinary ends of a visit.
_BAD_OUTCOMES = ("RETRY", "FAILED", "CHALLENGE")
_FIELDS = ("title", "content", "published", "authors")
#: Standard deviations that a share may stay below its floor by chance: one healthy look in a
#: thousand goes further.
_DEVIATIONS = 3.0
#: Seconds below which a crawl that was stopped need not have stored an article: robots.txt, a seed
#: and an article are three delays of a site.
_SHORT_S = 60.0


@dataclass(frozen=True)
class Coverage:
    """How many articles were counted, and how many of them had each field."""

    articles: int
    fields: Mapping[str, int]

    @classmethod
    def of(cls, numbers: Mapping[str, Any]) -> Coverage:
        """Of one reading of the stats. Articles that were stored unchanged count
        their fields as well."""
        stored = (metrics.ARTICLES_NEW, metrics.ARTICLES_UPDATED, metrics.ARTICLES_UNCHANGED)
        return cls(
            sum(numbers.get(name, 0) for name in stored),
            {
                name: numbers.get(metrics.labelled(metrics.ARTICLE_FIELD, name), 0)
                for name in _FIELDS
            },
        )

    def since(self, before: Coverage) -> Coverage:
        fields = {name: have - before.fields.get(name, 0) for name, have in self.fields.items()}
        return Coverage(self.articles - before.articles, fields)

    def least(self, share: float) -> float:
        """Articles that must have a field of which ``share`` have it in the long run."""
        expected = self.articles * share
        return expected - _DEVIATIONS * math.sqrt(max(0.0, expected * (1 - share)))


class CoverageWindow:
    """The articles of a running crawl since the last look that saw enough of them.

    A look that sees too few leaves the window open and judges the one before again: a quiet hour
    neither raises an alarm nor ends one.
    """

    def __init__(self) -> None:
        self._start = Coverage(0, {})
        self._judged = self._start

    def at(self, now: Coverage, enough: float) -> Coverage:
        """What a look at this moment judges."""
        window = now.since(self._start)
        return window if window.articles >= enough else self._judged

    def close(self, now: Coverage, enough: float) -> None:
        """After a look: what it judged is not judged again with later articles."""
        judged = self.at(now, enough)
        if judged is not self._judged:
            self._judged, self._start = judged, now


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

    @property
    def nothing_was_due(self) -> bool:
        """A start between two visits has nothing to do, and is well."""
        return metrics.nothing_was_due(self.numbers)

    @property
    def was_cut_short(self) -> bool:
        """Stopped by a person or by a limit after seconds: it had no time to store anything."""
        reason, took_s = self.numbers.get("finish_reason"), self.numbers.get("elapsed_time_seconds")
        is_stop = reason in self.data.crawler.settings.getlist("MONITOR_FINISH_REASONS")
        return is_stop and reason != "finished" and took_s is not None and took_s < _SHORT_S

    @property
    def _is_second_look(self) -> bool:
        """A crawl that found everything known before has no new articles, and is well."""
        return self.outcome("UNCHANGED") > 0


@monitors.name("Items")
class ItemsMonitor(_NewsMonitor):
    @monitors.name("pages were fetched")
    def test_pages(self) -> None:
        if self.nothing_was_due or self.was_cut_short:
            return
        self.assertGreater(
            self.pages(), 0, msg="no visit ended: nothing was fetched, or nothing was counted"
        )

    @monitors.name("articles were stored")
    def test_articles(self) -> None:
        least = self.setting("MONITOR_MIN_ARTICLES")
        if self.nothing_was_due or (self._is_second_look and not self.articles()):
            return
        if self.was_cut_short and not self.articles():
            return
        self.assertGreaterEqual(
            self.articles(), least, msg=f"{self.articles()} articles of at least {least:g}"
        )


@monitors.name("Errors")
class ErrorsMonitor(_NewsMonitor):
    @monitors.name("share of visits that failed")
    def test_share(self) -> None:
        if self.nothing_was_due or (self.was_cut_short and not self.pages()):
            return
        pages = self.pages()
        self.assertGreater(pages, 0, msg="no visits were counted")
        bad, most = self.outcome(*_BAD_OUTCOMES), self.setting("MONITOR_MAX_ERROR_SHARE")
        reasons = {
            k.partition("/")[2].partition("/")[2]: v
            for k, v in self.numbers.items()
            if k.startswith(tuple(f"{metrics.PAGE_REASON}/{name}" for name in _BAD_OUTCOMES))
        }
        worst = ", ".join(f"{k} {v}" for k, v in sorted(reasons.items(), key=lambda r: -r[1])[:3])
        self.assertLessEqual(
            bad / pages, most, msg=f"{bad} of {pages} visits failed (at most {most:.0%}): {worst}"
        )

    @monitors.name("errors in the log")
    def test_log(self) -> None:
        most = self.setting("MONITOR_MAX_LOG_ERRORS")
        found = self.numbers.get("log_count/ERROR", 0) + self.numbers.get("log_count/CRITICAL", 0)
        found -= self.numbers.get(
            metrics.MONITOR_FAILED, 0
        )  # Spidermon logs each failed check as an error itself
        self.assertLessEqual(found, most, msg=f"{found} error lines in the log (at most {most:g})")


@monitors.name("Field coverage")
class FieldCoverageMonitor(_NewsMonitor):
    """Share of the crawl's articles that have each field; only with enough of them to tell."""

    def coverage(self) -> Coverage:
        return Coverage.of(self.numbers)

    def _check(self, name: str) -> None:
        seen = self.coverage()
        if seen.articles < self.setting("MONITOR_COVERAGE_FROM"):
            return
        have, share = seen.fields[name], self.setting(f"MONITOR_MIN_{name.upper()}")
        self.assertGreaterEqual(
            have,
            seen.least(share),
            msg=f"{name}: {have} of {seen.articles} articles (at least {share:.0%})",
        )

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


@monitors.name("Field coverage")
class RecentFieldCoverageMonitor(FieldCoverageMonitor):
    """The same of a running crawl's latest articles, so that what breaks on its tenth
    day is seen that day."""

    def coverage(self) -> Coverage:
        enough = self.setting("MONITOR_COVERAGE_FROM")
        return coverage_window(self.data.crawler).at(Coverage.of(self.numbers), enough)


def coverage_window(crawler: Any) -> CoverageWindow:
    """Kept with the crawl: Spidermon makes a new suite for every look."""
    if not hasattr(crawler, "_monitor_coverage"):
        crawler._monitor_coverage = CoverageWindow()
    window: CoverageWindow = crawler._monitor_coverage
    return window


@monitors.name("Finish reason")
class FinishReasonMonitor(_NewsMonitor):
    @monitors.name("the crawl ended as it should")
    def testreason_of(self) -> None:
        reason = self.numbers.get(
            "finish_reason"
        )  # of CoreStats, which hears spider_closed before Spidermon
        expected = self.data.crawler.settings.getlist("MONITOR_FINISH_REASONS")
        self.assertIn(
            reason, expected, msg=f"finish reason {reason!r}; expected one of {', '.join(expected)}"
        )


@monitors.name("Silence")
class SilenceMonitor(_NewsMonitor):
    """Periodic: visits must have ended since the last look, unless everything is
    waiting for its time."""

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
        self.assertGreater(
            now, before, msg=f"no visit ended since the last look; {queued} URLs are queued"
        )


class Webhook:
    """Posts an alert to ALERT_WEBHOOK_URL as JSON, signed with ALERT_WEBHOOK_SECRET."""

    def __init__(self, url: str, secret: str) -> None:
        self.url = url
        self.secret = secret

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Webhook | None:
        """None: no URL is set."""
        url = settings.get("ALERT_WEBHOOK_URL") or ""
        secret = os.environ.get(settings["ALERT_WEBHOOK_SECRET_ENV"], "")
        return cls(url, secret) if url else None

    def send(self, alert: Mapping[str, Any]) -> bool:
        body = json.dumps(alert, ensure_ascii=False).encode()
        return post(self.url, body, self.secret)


class Alert(Action):
    """What failed is told as one incident: in the log, to the webhook and to ALERT_ACTIONS."""

    def __init__(self, actions: Sequence[AlertAction]) -> None:
        super().__init__()
        self.actions = actions

    @classmethod
    def from_crawler_kwargs(cls, crawler: Any) -> dict[str, Any]:
        webhook = Webhook.from_settings(crawler.settings)
        own = plugins.alert_actions(crawler.settings)
        return {"actions": [webhook, *own] if webhook else own}

    def run_action(self) -> None:
        payload = self.payload()
        crawler = self.data.crawler
        crawler.stats.inc_value(metrics.MONITOR_FAILED, len(payload["failures"]))
        failing = {f["monitor"] for f in payload["failures"]}
        known: set[str] = getattr(crawler, "_monitor_incident", set())
        crawler._monitor_incident = failing
        if not failing - known:
            return  # what still fails was told; what passes again is told by silence
        for failure in payload["failures"]:
            logger.warning(
                "Monitor failed monitor=%s reason=%s", failure["monitor"], failure["reason"]
            )
        for action in self.actions:
            # In a thread: a receiver that does not answer must not hold the reactor.
            # It is joined at exit.
            name = f"alert-{type(action).__name__.lower()}"
            Thread(target=_send, args=(action, payload), name=name).start()

    def payload(self) -> dict[str, Any]:
        """What a receiver gets: one incident with all monitors that failed."""
        stats = self.data.stats
        failures = [
            {"monitor": r.monitor.full_name, "reason": reason_of(r.error or r.reason or r.status)}
            for r in self.result.monitors_failed_results
        ]
        return {
            "event": "monitor.failed",
            "at_ms": round(time.time() * 1000),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "spider": self.data.spider.name,
            "job": job_of(self.data.spider) or None,
            "failures": failures,
            "stats": {
                k: v for k, v in stats.items() if isinstance(v, (int, float, str)) and "/" in k
            },
        }


def _send(action: AlertAction, alert: Mapping[str, Any]) -> None:
    """An alert that cannot be told must not stop a crawl."""
    try:
        action.send(alert)
    except Exception:
        logger.exception("Alert not delivered action=%s", type(action).__name__)


def reason_of(text: str) -> str:
    """The assertion's message without its traceback; unittest puts its own "x != y : " in front."""
    last = text.strip().splitlines()[-1] if text.strip() else text
    return last.split(" : ", 1)[-1].removeprefix("AssertionError: ")


def post(url: str, body: bytes, secret: str) -> bool:
    """One POST; a failure is a log line: alerts must not stop a crawl."""
    headers = {"Content-Type": "application/json", "User-Agent": "newscrawler"}
    if secret:
        headers[SIGNATURE_HEADER] = sign(body, secret)
    parts = urlsplit(url)
    login, at, place = parts.netloc.rpartition("@")
    if at:  # urllib would take the password for a port
        headers["Authorization"] = "Basic " + b64encode(unquote(login).encode()).decode()
    address = urlunsplit(parts._replace(netloc=place))
    request = urllib.request.Request(address, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=_POST_TIMEOUT_S) as answer:
            answer.read(64)
        return True
    except (OSError, ValueError, HTTPException) as exc:
        # Of many services the path is the secret.
        logger.error("Alert not delivered to=%s reason=%s", url_shown(place), exc)
        return False


class CloseSuite(MonitorSuite):
    """When the crawl has ended."""

    monitors = [ItemsMonitor, ErrorsMonitor, FieldCoverageMonitor, FinishReasonMonitor]
    monitors_failed_actions = [Alert]


class PeriodicSuite(MonitorSuite):
    """On the live stats of a running crawl."""

    monitors = [ErrorsMonitor, RecentFieldCoverageMonitor, SilenceMonitor]
    monitors_finished_actions = [Alert]  # also after a good run: it ends the incident

    def init_data(self, data: Any) -> None:
        super().init_data(data)
        self._data = data

    def on_monitors_finished(self, result: Any) -> None:
        """The four fields were judged by one window, which ends here."""
        crawler = self._data.crawler
        enough = crawler.settings.getfloat("MONITOR_COVERAGE_FROM")
        coverage_window(crawler).close(Coverage.of(self._data.stats), enough)
