"""The picture of an article for a reader of the page (API_PICTURES): fetched when it is looked at,
as politely as a page of the crawl (crawl.polite_fetch: address guard, robots.txt, the fleet's gate
of its host), and kept in memory for a while. Nothing of it reaches the disk, so that taking an
article down leaves none behind.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from newscrawler.crawl.polite_fetch import PoliteFetcher
from newscrawler.fetch.client import FetchError, FetchRefused
from newscrawler.frontier.queue import FrontierError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

log = logging.getLogger(__name__)

WHERE = ("off", "article", "hits")
#: Seconds that one picture may wait for the turns of its host, robots.txt first. A page with twenty
#: hits of one host asks for more than fits in: those left come when the page is opened again.
_PATIENCE_S = 20.0
#: Seconds in which a picture that could not be had is not asked for again, and how many of them are
#: remembered.
_AGAIN_S, _REMEMBERED = 600.0, 10_000
#: Pictures that are fetched at once, waiting ones among them.
_MOST_AT_ONCE = 40
#: A server chooses by this which form of a picture it sends.
_ACCEPT = "image/avif,image/webp,image/png,image/jpeg,image/*;q=0.5"
#: First bytes of the only types that are passed on. No SVG: it is a document, with scripts.
_SIGNATURES = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypavis", "image/avif"),
)


class PictureUnavailable(Exception):
    """``reason``: one word, that of the fetch (ssrf, robots, size, timeout, ...), ``status``,
    ``type``, ``busy`` or ``frontier``. ``is_for_now``: it was not tried to the end."""

    def __init__(self, reason: str, *, is_for_now: bool = False) -> None:
        super().__init__(f"the picture could not be had ({reason})")
        self.reason = reason
        self.is_for_now = is_for_now


@dataclass(frozen=True, slots=True)
class Picture:
    body: bytes
    media: str


def media_of(body: bytes) -> str | None:
    """The type that the bytes themselves show, whatever the server calls them; None for another
    one than JPEG, PNG, GIF, WebP and AVIF."""
    return next(
        (media for at, sign, media in _SIGNATURES if body[at : at + len(sign)] == sign), None
    )


class ArticlePictures:
    """Used on one event loop.

    :param where: ``article``: on the page of an article; ``hits``: there and beside hits
    :param cache_bytes: pictures that are kept, least used go first
    """

    def __init__(
        self,
        settings: BaseSettings,
        where: str,
        *,
        max_bytes: int,
        cache_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.in_hits = where == "hits"
        self._settings = _own_settings(settings, max_bytes)
        self._cache_bytes = cache_bytes
        self._clock = clock
        self._kept: OrderedDict[str, Picture] = OrderedDict()
        self._size = 0
        self._failed: OrderedDict[str, tuple[float, str]] = OrderedDict()  # until, reason
        self._fetching: dict[str, asyncio.Task[Picture]] = {}
        self._fetcher: PoliteFetcher | None = None
        self._opening = asyncio.Lock()

    async def get(self, url: str) -> Picture:
        """:raises PictureUnavailable: now, or for a while"""
        kept = self._kept.get(url)
        if kept is not None:
            self._kept.move_to_end(url)
            return kept
        until, reason = self._failed.get(url, (0.0, ""))
        if self._clock() < until:
            raise PictureUnavailable(reason)
        task = self._fetching.get(url)
        if task is None:
            if len(self._fetching) >= _MOST_AT_ONCE:
                raise PictureUnavailable("busy", is_for_now=True)
            task = asyncio.ensure_future(self._fetch(url))
            self._fetching[url] = task
            task.add_done_callback(lambda done: self._ended(url, done))
        # Who asked may go: the site was asked already, and the next one finds the answer.
        return await asyncio.shield(task)

    def _ended(self, url: str, task: asyncio.Task[Picture]) -> None:
        del self._fetching[url]
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or (isinstance(error, PictureUnavailable) and error.is_for_now):
            return
        if error is None:
            self._keep(url, task.result())
        else:
            reason = getattr(error, "reason", "error")
            self._failed[url] = (self._clock() + _AGAIN_S, reason)
            if len(self._failed) > _REMEMBERED:
                self._failed.popitem(last=False)

    def _keep(self, url: str, picture: Picture) -> None:
        self._failed.pop(url, None)
        self._kept[url] = picture
        self._size += len(picture.body)
        while self._size > self._cache_bytes:
            _, gone = self._kept.popitem(last=False)
            self._size -= len(gone.body)

    async def _fetch(self, url: str) -> Picture:
        try:
            fetcher = await self._opened()
            page = await fetcher.get(url, patience_s=_PATIENCE_S)
        except FetchError as exc:
            log.info("A picture could not be fetched url=%s reason=%s", url, exc.reason)
            is_for_now = exc.reason == "gate" and not isinstance(exc, FetchRefused)
            raise PictureUnavailable(exc.reason, is_for_now=is_for_now) from exc
        except FrontierError as exc:
            log.info("A picture has no gate to wait at url=%s error=%s", url, exc)
            raise PictureUnavailable("frontier", is_for_now=True) from exc
        except ValueError as exc:  # not an http(s) URL
            raise PictureUnavailable("scheme") from exc
        if page.status != 200:
            raise PictureUnavailable("status")
        media = media_of(page.body)
        if media is None:
            raise PictureUnavailable("type")
        return Picture(page.body, media)

    async def _opened(self) -> PoliteFetcher:
        async with self._opening:
            if self._fetcher is None:
                fetcher = PoliteFetcher(self._settings)
                self._fetcher = await fetcher.__aenter__()
            return self._fetcher

    async def close(self) -> None:
        running = list(self._fetching.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._fetcher is not None:
            await self._fetcher.close()
            self._fetcher = None


def open_pictures(settings: BaseSettings) -> ArticlePictures | None:
    """None = API_PICTURES is off.

    :raises ValueError: a setting is wrong
    """
    where = str(settings.get("API_PICTURES") or "off")
    if where not in WHERE:
        raise ValueError(f"API_PICTURES ({where}) must be one of {', '.join(WHERE)}")
    max_bytes = settings.getint("API_PICTURE_MAX_BYTES")
    cache_bytes = settings.getint("API_PICTURES_CACHE_BYTES")
    if not 0 < max_bytes <= cache_bytes:
        raise ValueError(
            f"API_PICTURE_MAX_BYTES ({max_bytes}) must be above 0 and at most"
            f" API_PICTURES_CACHE_BYTES ({cache_bytes})"
        )
    if where == "off":
        return None
    return ArticlePictures(settings, where, max_bytes=max_bytes, cache_bytes=cache_bytes)


def _own_settings(settings: BaseSettings, max_bytes: int) -> BaseSettings:
    """Those of the crawl with a limit and a header for pictures."""
    from scrapy.settings import BaseSettings

    own = BaseSettings(settings.copy_to_dict(), priority="cmdline")
    headers = {**own.getdict("DEFAULT_REQUEST_HEADERS"), "Accept": _ACCEPT}
    own.set("DEFAULT_REQUEST_HEADERS", headers, priority="cmdline")
    own.set("DOWNLOAD_MAXSIZE", max_bytes, priority="cmdline")
    return own
