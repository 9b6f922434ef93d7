"""``Crawler``: a crawl as an iterator of articles. It runs in a process of its
own (library.worker).

Not in the caller's process: Scrapy's reactor cannot be started twice in one, nor where an event
loop is running already, as in a notebook. The process writes each article to a file as soon as it
is stored; a reader that is slow, or stops, holds nothing up and loses nothing.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

from newscrawler import metrics
from newscrawler.fleet.verdict import nothing_due
from newscrawler.items import Article
from newscrawler.store import codec
from newscrawler.utils.display import shown

logger = logging.getLogger(__name__)

#: Seconds between two looks at what the crawl has written.
_LOOK_S = 0.1
#: A crawl that is told to stop lets its fetches end, at most DOWNLOAD_TIMEOUT, and gives
#: back the rest. Seconds.
_STOP_S = 60.0
_FORCED_S = 10.0
#: Seconds without an article after which a warning names the log of the crawl; then between two.
_QUIET_S = 30.0
_STILL_QUIET_S = 300.0


class CrawlFailed(RuntimeError):
    """The crawl could not start, had to end, or no site answered it. The text is what it said."""


class Crawler:
    """Crawls when it is iterated: ``for article in Crawler(sites="vnexpress.net"): ...``

    Yields each article that the crawl read, when it is stored. The crawl is the one of
    `scrapy crawl news`: as polite, with the same queue, and what an earlier crawl had is
    not fetched again before it is due. It ends when nothing is left to fetch, or at
    ``limit`` or ``minutes``, or when the loop is left: then it is stopped and gives back
    what it had not fetched. A second iteration is another crawl.

    :param sites: ids, hosts or aliases of sites.json
    :param urls: addresses to crawl, on a site that is known or not. Without sites and
        urls: all enabled sites
    :param since: only articles of the last days ("3d") or from a day on ("2026-11-01")
    :param limit: end after this many articles
    :param minutes: end after this time
    :param settings: changes to ``newscrawler/settings.py``, e.g. ``{"DATA_DIR":
        "/srv/news"}``; plain values
    """

    def __init__(
        self,
        sites: str | Iterable[str] = (),
        urls: str | Iterable[str] = (),
        *,
        since: str = "",
        limit: int | None = None,
        minutes: float | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        for name, most in (("limit", limit), ("minutes", minutes)):
            if most is not None and not most > 0:
                raise ValueError(f"{name} must be more than 0, not {most}")
        self.arguments = {"sites": _listed(sites), "urls": _listed(urls), "since": since}
        self.limit = limit
        self.settings = dict(settings or {})
        if minutes is not None:
            self.settings["CLOSESPIDER_TIMEOUT"] = max(1, round(minutes * 60))
        #: Scrapy's stats of the last crawl that ended.
        self.stats: dict[str, Any] = {}
        #: Why the last crawl fetched nothing, where nothing was due: when the next visit
        #: is. "" otherwise.
        self.reason = ""
        self._running: list[_Process] = []

    def __iter__(self) -> Iterator[Article]:
        """:raises CrawlFailed: it could not start, had to end, or no site answered"""
        given = {name: value for name, value in self.arguments.items() if value}
        self.reason = ""
        with tempfile.TemporaryDirectory(prefix="newscrawler-") as folder:
            process = _Process(Path(folder), given, self.settings)
            self._running.append(process)
            try:
                for count, article in enumerate(process.articles(), 1):
                    yield article
                    if self.limit is not None and count >= self.limit:
                        break
            finally:
                process.stop()
                self._running.remove(process)
                self.stats = process.stats()
            process.raise_if_failed()
            if metrics.nothing_was_due(self.stats):
                self.reason = nothing_due(self.stats)
                logger.warning("Nothing was fetched reason=%s", self.reason)

    def stop(self) -> None:
        """Ends the crawl that is running, from another thread; what it has
        stored is still yielded."""
        for process in self._running:
            process.let_go()


class _Process:
    """One crawl, and the end of a pipe by which it knows that we are still there."""

    def __init__(self, folder: Path, arguments: dict[str, str], settings: dict[str, Any]) -> None:
        self._spool = folder / "articles.jsonl"
        self._errors = folder / "errors.txt"
        self._stats = folder / "stats.json"
        self._log = folder / "log.txt"
        self._was_stopped = False
        self._spool.touch()
        order = folder / "order.json"
        own = {"PROGRESS": "off", **settings, "STATS_FILE": str(self._stats)}
        order.write_text(
            json.dumps(
                {
                    "arguments": arguments,
                    "settings": own,
                    "spool": str(self._spool),
                    "log": str(self._log),
                }
            )
        )
        path = os.pathsep.join(str(Path(p).absolute()) for p in sys.path)
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "newscrawler.library.worker", str(order)],
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is ours; we end it in order
            )

    def articles(self) -> Iterator[Article]:
        """As they are written; ends when the process has ended and all is read."""
        began = time.monotonic()
        tell_at = began + _QUIET_S
        with self._spool.open("rb") as spool:
            while True:
                # Asked first: then what follows is all.
                has_ended = self._process.poll() is not None
                for article in _whole_lines(spool):
                    yield article
                    began = time.monotonic()
                    tell_at = began + _QUIET_S
                if has_ended:
                    return
                if time.monotonic() >= tell_at:
                    self._tell_quiet(time.monotonic() - began)
                    tell_at = time.monotonic() + _STILL_QUIET_S
                time.sleep(_LOOK_S)

    def _tell_quiet(self, for_s: float) -> None:
        """A crawl without a network, or whose articles are all known, says nothing for minutes."""
        log = self._log.read_text() if self._log.exists() else ""
        last = _last_line(Path(log)) if log else ""
        logger.warning(
            "No article for %d s; the crawl goes on%s%s",
            for_s,
            f" log={log}" if log else "",
            f" last line: {last}" if last else "",
        )

    def let_go(self) -> None:
        """The crawl stops by itself when this end of its pipe is closed."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._was_stopped = self._process.poll() is None
            self._process.stdin.close()

    def stop(self) -> None:
        """In order; by force when that takes too long, or at a second Ctrl-C."""
        self.let_go()
        try:
            self._process.wait(_STOP_S)
            return
        except subprocess.TimeoutExpired:
            self._process.terminate()  # the second word of the same: Scrapy ends at once
        except BaseException:
            self._process.kill()
            raise
        try:
            self._process.wait(_FORCED_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def raise_if_failed(self) -> None:
        code = self._process.returncode
        if code and not self._was_stopped:
            said = self._errors.read_text(errors="replace").strip().splitlines()
            raise CrawlFailed("\n".join(said[-5:]) or f"the crawl ended with exit code {code}")

    def stats(self) -> dict[str, Any]:
        return json.loads(self._stats.read_bytes()) if self._stats.exists() else {}


def _last_line(log: Path) -> str:
    """Without terminal escapes, at most 200 characters; "" = there is none to be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4_000))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return shown(next((line for line in reversed(lines) if line.strip()), ""))[:200]


def _whole_lines(spool: IO[bytes]) -> Iterator[Article]:
    while True:
        start = spool.tell()
        line = spool.readline()
        if not line.endswith(b"\n"):  # half-written, or nothing: next time
            spool.seek(start)
            return
        row = orjson.loads(line)
        yield codec.from_dict(row["article"], version=row["version"], cluster=None, gone=False)


def _listed(names: str | Iterable[str]) -> str:
    """As `scrapy crawl news -a` takes them."""
    return names if isinstance(names, str) else ",".join(names)
