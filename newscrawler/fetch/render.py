"""A page that its scripts fill, read by a real browser under the rules of every other fetch.

The document was fetched like any page and is handed in. What its scripts then ask for comes here:
each request is judged (method, kind, robots.txt, number), waits for its host's turn, and is made by
:class:`fetch.client.HttpClient`, so that address guard, limits and proxies hold for it, each hop of
a redirect included. The browser itself can connect to nothing (``fetch.browser``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from newscrawler.fetch.browser import Browser
from newscrawler.fetch.client import Answer, FetchError, FetchFailed, HttpClient, TooLarge
from newscrawler.web import urls
from newscrawler.web.advertisers import is_advertiser

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Request, Route

log = logging.getLogger(__name__)

#: Hops of one request of a page that are followed.
_MOST_HOPS = 5
#: Times that a page may ask for one address: what counts visitors asks without end.
_MOST_OF_ONE = 3
#: How often it is asked how far it is, seconds.
_ASK_S = 0.1
#: Bytes of scripts that are kept for the next pages of their site.
_CACHE_BYTES = 32 * 1024 * 1024
_CACHE_S = 3600.0
#: What scripts send that a server may need to answer. No cookies, and nothing that says more of the
#: browser than our own User-Agent does.
_PASSED_ON = frozenset({"accept", "accept-language", "origin", "referer", "content-type"})
#: Kinds of requests that can bring text; all others are refused.
_FETCHED = frozenset({"script", "xhr", "fetch"})
_TRAVEL = frozenset(
    {"content-encoding", "transfer-encoding", "content-length", "connection", "keep-alive",
     "set-cookie", "set-cookie2", "alt-svc", "strict-transport-security", "report-to", "nel",
     "link", "speculation-rules", "clear-site-data", "refresh"}
)  # fmt: skip
_START_SCRIPT = """
delete window.RTCPeerConnection; delete window.webkitRTCPeerConnection;
delete window.SharedWorker; window.open = () => null; window.print = () => {};
"""
#: How far the page is: whether its document was read, its elements, its letters of markup where
#: they are many.
_STATE = """() => { const n = document.getElementsByTagName('*').length;
  return [document.readyState != 'loading', n,
          n > 20000 ? document.documentElement.outerHTML.length : 0]; }"""


@dataclass(frozen=True)
class RenderRules:
    """Bounds of every page. Seconds and bytes."""

    pages: int = 2  # at once
    timeout_s: float = 90.0  # all waits for turns included
    requests: int = 30  # of one page, its document not counted
    max_bytes: int = 10 * 1024 * 1024  # of all that it asks for, and of what comes out
    memory_bytes: int = 1024 * 1024 * 1024  # of the browser, all its processes
    sandbox: bool = True  # Chromium's own, between a page and this machine
    script_s: float = 10.0  # scripts may keep the page from answering
    quiet_s: float = 0.5  # without a request or a new element: it is done

    @classmethod
    def from_settings(cls, get: Mapping[str, Any]) -> RenderRules:
        """From the names of settings.py.

        :raises ValueError: a setting is wrong; the text names it
        """
        sandbox = str(get["RENDER_SANDBOX"] or "").lower()
        if sandbox not in ("auto", "on", "off"):
            raise ValueError(f"RENDER_SANDBOX is {sandbox!r}; it must be auto, on or off")
        return cls(
            pages=max(1, int(get["RENDER_PAGES"])),  # 0: none is read with a browser at all
            timeout_s=float(get["RENDER_TIMEOUT_S"]),
            requests=int(get["RENDER_REQUESTS"]),
            max_bytes=int(get["RENDER_BYTES"]),
            memory_bytes=int(get["RENDER_MEMORY_BYTES"]),
            sandbox=sandbox == "on" or (sandbox == "auto" and os.geteuid() != 0),
        )

    def __post_init__(self) -> None:
        if self.requests < 0 or min(self.timeout_s, self.max_bytes, self.memory_bytes) <= 0:
            raise ValueError(
                "RENDER_REQUESTS must be 0 or more, RENDER_TIMEOUT_S, RENDER_BYTES and"
                " RENDER_MEMORY_BYTES above 0"
            )


@dataclass(frozen=True, slots=True)
class Manners:
    """How a page's requests behave; made by the part that knows robots.txt and the fleet's gate.

    ``may_fetch(url)``: whether robots.txt allows it. ``turn(url)``: comes back when its host may be
    asked, ``told(url)`` is called when it has answered. ``headers``: those of every fetch.
    """

    may_fetch: Callable[[str], Awaitable[bool]]
    turn: Callable[[str], Awaitable[None]]
    told: Callable[[str], Awaitable[None]]
    headers: list[tuple[str, str]]


@dataclass(slots=True)
class Rendered:
    """``html``: the document as it stood when the page was done, UTF-8. ``refused``: its requests
    that were not made, by reason. ``cpu_s``: of all processes of the browser meanwhile; with
    several pages at once each counts its share."""

    html: bytes = b""
    requests: int = 0
    cached: int = 0
    received_bytes: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    is_whole: bool = True  # False: it was still at work when its time was over


class RenderFailed(FetchFailed):
    """The page could not be read with a browser this time. ``reason`` is "render"."""

    reason = "render"


class Renderer:
    """Any number of pages, a few at a time. Made and closed inside a running event loop."""

    def __init__(self, client: HttpClient, browser: Browser, rules: RenderRules) -> None:
        self.browser = browser
        self.rules = rules
        self._client = client
        self._room = asyncio.Semaphore(rules.pages)
        self._scripts = ScriptCache(_CACHE_BYTES, _CACHE_S)
        self._at_work = 0

    async def render(self, answer: Answer, manners: Manners) -> Rendered:
        """
        :param answer: the document, fetched; its URL is the page's
        :raises RenderFailed: the browser died, or the page did not answer any more
        :raises TooLarge: it grew above the limit
        :raises newscrawler.fetch.browser.BrowserUnavailable: there is no browser
        """
        async with self._room, self.browser.lent() as browser:
            self._at_work += 1
            before, start = self.browser.use().cpu_s, time.monotonic()
            visit = _PageVisit(answer, manners, self.rules, self._client, self._scripts)
            try:
                return await self._read(browser, visit)
            finally:
                found = visit.rendered
                found.wall_s = time.monotonic() - start
                found.cpu_s = max(0.0, self.browser.use().cpu_s - before) / self._at_work
                self._at_work -= 1

    async def _read(self, browser: Any, visit: _PageVisit) -> Rendered:
        from playwright.async_api import Error

        context: BrowserContext | None = None
        url = visit.answer.url
        try:
            opened: BrowserContext = await asyncio.wait_for(
                browser.new_context(
                    user_agent=dict(visit.manners.headers).get("User-Agent"),
                    service_workers="block",
                    accept_downloads=False,
                ),
                self.rules.script_s,
            )
            context = opened
            # A browser that is killed while it opens a page may leave calls without any answer.
            async with asyncio.timeout(self.rules.timeout_s + 2 * self.rules.script_s):
                return await visit.read(opened)
        except (Error, TimeoutError) as exc:
            why = self.browser.killed_for or (str(exc) or "it does not answer").splitlines()[0]
            raise RenderFailed(url, f"page could not be read with a browser: {why}") from exc
        finally:
            visit.is_over = True
            if context is not None:
                await self._close(context)

    async def _close(self, context: BrowserContext) -> None:
        """A page whose scripts have no end does not close itself."""
        try:
            await asyncio.wait_for(context.close(), self.rules.script_s)
        except TimeoutError:
            self.browser.kill("a page could not be closed")
        except Exception as exc:  # the browser is gone, and the page with it
            log.debug("Page could not be closed error=%s", exc)

    async def close(self) -> None:
        await self.browser.close()


class ScriptCache:
    """Scripts of the last pages, by URL: an application's bundle is asked for once, not for every
    page of its site."""

    def __init__(self, most_bytes: int, keep_s: float) -> None:
        self._kept: OrderedDict[str, tuple[float, Answer]] = OrderedDict()
        self._bytes = 0
        self._most_bytes, self._keep_s = most_bytes, keep_s

    def get(self, url: str) -> Answer | None:
        found = self._kept.get(url)
        if found is None or time.monotonic() - found[0] > self._keep_s:
            return None
        self._kept.move_to_end(url)
        return found[1]

    def put(self, url: str, answer: Answer) -> None:
        if answer.status != 200:
            return
        if (old := self._kept.pop(url, None)) is not None:
            self._bytes -= len(old[1].body)
        self._kept[url] = time.monotonic(), answer
        self._bytes += len(answer.body)
        while self._bytes > self._most_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._bytes -= len(dropped.body)


class _PageVisit:
    """One page from its document to its text."""

    def __init__(
        self,
        answer: Answer,
        manners: Manners,
        rules: RenderRules,
        client: HttpClient,
        scripts: ScriptCache,
    ) -> None:
        self.answer, self.manners = answer, manners
        self.rendered = Rendered()
        self.is_over = False
        self._rules, self._client, self._scripts = rules, client, scripts
        self._deadline = time.monotonic() + rules.timeout_s
        self._document_given = False
        self._asked: Counter[str] = Counter()
        self._closed: set[str] = set()  # hosts that asked to be left alone
        self._pending = 0
        self._active = time.monotonic()

    async def read(self, context: BrowserContext) -> Rendered:
        await context.add_init_script(_START_SCRIPT)
        await context.route("**/*", self._route)
        await context.route_web_socket("**/*", _close_socket)
        page = await context.new_page()
        context.on("page", lambda other: asyncio.ensure_future(_close_page(other)))
        page.on("dialog", lambda dialog: asyncio.ensure_future(_dismiss(dialog)))
        left_ms = max(1.0, self._deadline - time.monotonic()) * 1000
        await page.goto(self.answer.url, wait_until="commit", timeout=left_ms)
        await self._until_quiet(page)
        self.is_over = True  # what it asks for from here on is not fetched
        html = await asyncio.wait_for(page.content(), self._rules.script_s)
        self.rendered.html = html.encode("utf-8", "replace")
        if len(self.rendered.html) > self._rules.max_bytes:
            raise self._too_large(len(self.rendered.html))
        return self.rendered

    async def _until_quiet(self, page: Page) -> None:
        """Until nothing is fetched and nothing new appears, or the time is over."""
        elements = -1
        while True:
            if time.monotonic() >= self._deadline:
                self.rendered.is_whole = False
                return
            is_read, now, letters = await asyncio.wait_for(
                page.evaluate(_STATE), self._rules.script_s
            )
            if letters > self._rules.max_bytes:
                raise self._too_large(letters)
            if now != elements or self._pending or not is_read:
                elements, self._active = now, time.monotonic()
            elif time.monotonic() - self._active >= self._rules.quiet_s:
                return
            await asyncio.sleep(_ASK_S)

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge(
            self.answer.url, f"{size} bytes after its scripts, {self._rules.max_bytes} are allowed"
        )

    # ------------------------------------------------------------------ requests of the page
    async def _route(self, route: Route) -> None:
        try:
            await self._answer(route)
        except Exception as exc:  # the page was closed meanwhile
            log.debug("Request of a page was not answered error=%s", exc)

    async def _answer(self, route: Route) -> None:
        request = route.request
        if request.is_navigation_request() and not self._document_given:
            self._document_given = True
            await _fulfil(route, self.answer)
            return
        if request.resource_type == "stylesheet":
            # a loader that waits for the style of its part would give the part up
            await route.fulfill(status=200, content_type="text/css", body="")
            return
        why = self._refusal(request)
        if why is None:
            self._pending += 1
            try:
                why = await self._fetched(route, request)
            finally:
                self._pending -= 1
                self._active = time.monotonic()
        if why is None:
            return
        self.rendered.refused[why] += 1
        if why == "navigation":
            await route.fulfill(status=204)  # the page stays; an error would replace it
        else:
            await route.abort("blockedbyclient")

    def _refusal(self, request: Request) -> str | None:
        """Why it is not asked for, in a word."""
        parts = urlsplit(request.url)
        if self.is_over:
            return "late"
        if request.is_navigation_request():
            return "navigation"  # another page, or a frame: neither is this page's text
        if request.resource_type not in _FETCHED:
            return "kind"
        if request.method != "GET":
            return "method"
        if parts.scheme not in ("http", "https"):
            return "scheme"
        if is_advertiser(parts.hostname or ""):
            return "advertiser"
        self._asked[request.url] += 1
        return "again" if self._asked[request.url] > _MOST_OF_ONE else None

    async def _fetched(self, route: Route, request: Request) -> str | None:
        """None: the request has its answer."""
        url = request.url.partition("#")[0]
        is_script = request.resource_type == "script"
        if is_script and (kept := self._scripts.get(url)) is not None:
            self.rendered.cached += 1
            await _fulfil(route, kept)
            return None
        try:
            answer = await self._follow(url, _headers(request, self.manners.headers))
        except _NotMade as exc:
            return str(exc)
        except FetchError as exc:
            log.debug("Request of a page failed url=%s reason=%s", url, exc.reason)
            return exc.reason
        if is_script:
            self._scripts.put(url, answer)
        await _fulfil(route, answer)
        return None

    async def _follow(self, url: str, headers: list[tuple[str, str]]) -> Answer:
        """Redirects are followed here: the browser would follow them by itself, unasked.

        :raises _NotMade: we do not ask for it
        :raises FetchError: it was asked for, or looked up, and failed
        """
        for _ in range(_MOST_HOPS + 1):
            answer = await self._one(url, headers)
            location = answer.header("location") if 300 <= answer.status < 400 else None
            target = urls.join(urls.Base(url), location) if location else None
            if target is None:
                return answer
            if not urls.is_http(target):
                raise _NotMade("scheme")
            url = target
        raise _NotMade("redirects")

    async def _one(self, url: str, headers: list[tuple[str, str]]) -> Answer:
        await self._client.look_up(url)  # a refused address costs nobody a turn
        if not await self.manners.may_fetch(url):
            raise _NotMade("robots")
        if self.rendered.requests >= self._rules.requests:
            raise _NotMade("number")
        if urls.domain_of(url) in self._closed:
            raise _NotMade("busy")
        self.rendered.requests += 1
        left_s = self._deadline - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left_s)):
                await self.manners.turn(url)
        except TimeoutError:
            raise _NotMade("time") from None
        try:
            if self.is_over:
                raise _NotMade("late")
            answer = await self._client.fetch(url, headers)
        finally:
            await self.manners.told(url)
        if answer.status in (429, 503):
            self._closed.add(urls.domain_of(url))
        self.rendered.received_bytes += len(answer.body)
        if self.rendered.received_bytes > self._rules.max_bytes:
            raise _NotMade("bytes")
        return answer


class _NotMade(Exception):
    """A request of a page that is refused; the text is the word for it."""


def _headers(request: Request, ours: list[tuple[str, str]]) -> list[tuple[str, str]]:
    own = {
        name: value
        for name, value in request.headers.items()
        if name in _PASSED_ON or name.startswith("x-") or name == "authorization"
    }
    rest = [(name, value) for name, value in ours if name.lower() not in own]
    return [*rest, *own.items()]


async def _fulfil(route: Route, answer: Answer) -> None:
    headers: dict[str, str] = {}
    for raw_name, raw_value in answer.headers:
        name = raw_name.decode("latin-1").lower()
        if name not in _TRAVEL:
            headers[name] = raw_value.decode("latin-1")
    await route.fulfill(status=answer.status, headers=headers, body=answer.body)


async def _close_page(page: Page) -> None:
    with contextlib.suppress(Exception):
        await page.close()


async def _dismiss(dialog: Any) -> None:
    with contextlib.suppress(Exception):
        await dialog.dismiss()


def _close_socket(socket: Any) -> Any:
    return socket.close()
