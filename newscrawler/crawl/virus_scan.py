"""Pages before they are read or stored, and ClamAV: what is found, and what is done while its
daemon is away (CLAMAV, CLAMAV_AWAY)."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from newscrawler import metrics
from newscrawler.crawl.waits import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    SCANNER,
    TELL_S,
    Waits,
)
from newscrawler.fetch.clamav import (
    ClamAV,
    ScanFailed,
    ScannerDropped,
    ScannerUnavailable,
    TooLargeToScan,
    parse_address,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger(__name__)

#: What a page is refused for, by word: see web.outcomes.
MALWARE, UNSCANNED, SIZE = "malware", "unscanned", "size"
#: A page on which the daemon went away so many times is not shown to it again until it is fetched
#: again. The first time may have been another page's doing, or the operator's.
_DROPS = 3


def scanner_of(settings: Mapping[str, Any]) -> ClamAV | None:
    """None: CLAMAV is empty, nothing is scanned.

    :raises ValueError: a setting is wrong; the text names it
    """
    away = str(settings["CLAMAV_AWAY"])
    if away not in ("wait", "pass"):
        raise ValueError(f"CLAMAV_AWAY is {away!r}; it must be wait or pass")
    timeout_s = float(settings["CLAMAV_TIMEOUT_S"])
    if timeout_s <= 0:
        raise ValueError(f"CLAMAV_TIMEOUT_S is {timeout_s:g}; it must be above 0")
    address = str(settings["CLAMAV"] or "").strip()
    return ClamAV(parse_address(address), timeout_s) if address else None


class _Never(Exception):
    """No daemon is gone for good."""


class VirusScan:
    """Of one crawl.

    :param passes: pages are let through unscanned while the daemon is away; else they wait
    """

    def __init__(
        self,
        scanner: ClamAV,
        waits: Waits,
        count: Callable[[str, int], Any],
        observe: Callable[[str, float], Any],
        is_over: Callable[[], bool],
        *,
        passes: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scanner, self._waits, self._passes = scanner, waits, passes
        self._count, self._observe, self._is_over = count, observe, is_over
        self._clock = clock
        self._away_until = self._told = -math.inf
        self._pause_s = FIRST_PAUSE_S
        self._one_by_one = asyncio.Lock()  # of pages that were dropped

    async def refusal(self, url: str, body: bytes) -> tuple[str, str] | None:
        """Word and text of why the page goes no further; None: it does."""
        began = self._clock()
        try:
            signature = await (self._or_pass(body) if self._passes else self._or_wait(body))
        except TooLargeToScan as exc:
            self._counted("failed")
            return SIZE, f"the virus scanner does not take {len(body)} bytes ({exc})"
        except (ScanFailed, ScannerUnavailable) as exc:
            self._counted("failed")
            return UNSCANNED, f"the virus scanner did not judge it: {exc}"
        if signature is None:
            self._counted("passed")
            return None
        self._observe(metrics.SCAN_TIME, self._clock() - began)
        self._counted("found" if signature else "clean")
        if not signature:
            return None
        logger.warning("A virus scanner refused a page url=%s signature=%s", url, signature)
        return MALWARE, f"the virus scanner found {signature}"

    async def _or_wait(self, body: bytes) -> str:
        drops = 0

        async def ask() -> str:
            nonlocal drops
            try:
                return await (self._alone(body) if drops else self._scanner.scan(body))
            except ScannerDropped as exc:
                drops += 1
                if drops >= _DROPS:
                    raise ScanFailed(f"{exc}, {drops} times") from exc
                raise

        return await self._waits.until_it_works(
            SCANNER, ask, ScannerUnavailable, _Never, self._is_over
        )

    async def _alone(self, body: bytes) -> str:
        """Of a page that was dropped before. A daemon that one page makes crash drops all that it
        is scanning, so they are shown to it one after the other; and a proxy before a daemon that
        is away drops every page, so only one that answers is asked."""
        async with self._one_by_one:
            await self._scanner.ping()
            return await self._scanner.scan(body)

    async def _or_pass(self, body: bytes) -> str | None:
        """None: the daemon is away. It is asked again after a pause that grows."""
        if self._clock() < self._away_until:
            return None
        try:
            found = await self._scanner.scan(body)
        except ScannerUnavailable as exc:
            now = self._clock()
            self._away_until = now + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            if now - self._told >= TELL_S:
                self._told = now
                logger.error("Pages are stored without a virus scan (CLAMAV_AWAY) error=%s", exc)
            return None
        if self._pause_s > FIRST_PAUSE_S:
            logger.info("The virus scanner is back, pages are scanned")
        self._pause_s, self._told = FIRST_PAUSE_S, -math.inf
        return found

    def _counted(self, how: str) -> None:
        self._count(metrics.labelled(metrics.SCANNED, how), 1)
