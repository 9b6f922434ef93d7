"""Which pages of a crawl are read with a browser, and how their requests keep to robots.txt and to
the fleet's gate. Joins ``fetch.render`` to sites, lessons, frontier and settings."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from newscrawler import metrics
from newscrawler.crawl import opening, site_choice
from newscrawler.discovery.sites import SitesError
from newscrawler.fetch.browser import Browser, BrowserUnavailable, find_browser
from newscrawler.fetch.client import Answer, FetchError, HttpClient
from newscrawler.fetch.decoding import ACCEPT_ENCODING
from newscrawler.fetch.render import Manners, Rendered, Renderer, RenderRules
from newscrawler.fetch.robots import read_robots
from newscrawler.fleet import identity
from newscrawler.frontier import connect
from newscrawler.frontier.queue import Fetched, Frontier, FrontierError
from newscrawler.frontier.types import Lease
from newscrawler.items import Kind
from newscrawler.utils import optional
from newscrawler.web.challenge import challenge_reason
from newscrawler.web.robots import RobotsRules
from newscrawler.web.script_shell import is_script_shell
from newscrawler.web.sniff import sniff
from newscrawler.web.urls import domain_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

    from newscrawler.crawl.services import Services
    from newscrawler.discovery.sites import Site, Sites

logger = logging.getLogger(__name__)

_KINDS = frozenset({Kind.HOME, Kind.SECTION, Kind.ARTICLE, Kind.PAGE})
#: Response header, and so the mark in the WARC record, of a page that is not as the site sent it.
MARK = b"X-Crawler-Rendered"
#: Of the site's document, not of what its scripts made of it: an unchanged frame says nothing of
#: the article in it.
_OF_THE_FRAME = frozenset(
    {b"etag", b"last-modified", b"content-type", b"content-encoding", b"content-length",
     b"transfer-encoding", b"content-md5", b"digest"}
)  # fmt: skip
#: Seconds before a browser that does not start, or a robots.txt that gave none, is tried again.
_REST_S = 60.0
#: Seconds that a request of a page waits for the turn of its host.
_TURN_S = 20.0
#: Hosts whose robots.txt and last fetch are kept by this worker.
_HOSTS = 500


def browser_of(settings: BaseSettings) -> str:
    """Chromium's executable.

    :raises BrowserUnavailable: no page can be read with a browser; the text says why and what to do
    """
    if settings.getint("RENDER_PAGES") <= 0:
        raise BrowserUnavailable("RENDER_PAGES is 0")
    install = optional.missing("render")
    if install is not None:
        raise BrowserUnavailable(f"the package playwright is not installed: {install}")
    named = str(settings.get("RENDER_BROWSER") or "")
    found = find_browser(named)
    if found is None and named:
        raise BrowserUnavailable(f"RENDER_BROWSER={named} is no program that can be started")
    if found is None:
        raise BrowserUnavailable(
            "no Chromium on PATH: `apt-get install chromium` or `make browser-deps`"
        )
    return found


def missing_for(settings: BaseSettings, sites: Sites, chosen: Collection[str]) -> str:
    """One line where sites that are crawled need a browser and there is none; "" = all is well."""
    wanting = [site.id for site in sites if site.render and site.id in chosen]
    if not wanting:
        return ""
    try:
        browser_of(settings)
    except BrowserUnavailable as exc:
        shown = ", ".join(wanting[:5]) + (" …" if len(wanting) > 5 else "")
        return f"Pages of {shown} are read without their scripts: {exc}"
    return ""


def unrendered(settings: BaseSettings, url: str, body: bytes) -> str:
    """One line where a command reads a page as it was sent and a crawl reads it with a browser, or
    would try to; "" = as a crawl does."""
    try:
        site = site_choice.all_sites(settings).by_host(domain_of(url))
    except SitesError:
        site = None
    if not needs_browser(site, body):
        return ""
    return f"Read without its scripts: a crawl reads {url} with a browser, a command does not"


def needs_browser(site: Site | None, body: bytes) -> bool:
    """Whether a crawl reads this page with a browser, or would try to."""
    wanted = site.render if site is not None else None
    return wanted is not False and (bool(wanted) or is_script_shell(body))


class Rendering:
    """Of one crawl. Made and closed inside a running event loop."""

    def __init__(self, services: Services, client: HttpClient) -> None:
        settings = services.settings
        self._services = services
        self._settings = settings
        self._client = client
        self._rules = RenderRules.from_settings(settings)
        self._learns = settings.getbool("RENDER_LEARN")
        self._renderer: Renderer | None = None
        self._off_until = 0.0
        self._hosts = _Hosts(services, client)
        headers = {
            "User-Agent": settings["USER_AGENT"],
            "Accept": "*/*",
            "Accept-Language": settings.getdict("DEFAULT_REQUEST_HEADERS").get("Accept-Language"),
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        self._headers = [(name, str(value)) for name, value in headers.items() if value]

    async def read(self, meta: dict[str, Any], answer: Answer) -> Answer:
        """The page as its scripts make it, where it is one of those; else the answer as it came.
        Sets ``meta["rendered"]`` to the reason: site, learnt or trial.

        :raises newscrawler.fetch.client.FetchError: ``render`` or ``size``
        """
        lease: Lease | None = meta.get("lease")
        if lease is None or "robots_hop" in meta or Kind(lease.kind) not in _KINDS:
            return answer
        why = await self._reason(lease, answer)
        if why is None or not self._is_on(why):
            return answer
        try:
            found = await self._rendered(lease, meta, answer)
        except BrowserUnavailable as exc:
            self._off_until = time.monotonic() + _REST_S
            logger.warning("Pages are read without their scripts reason=%s", exc)
            return answer
        except FetchError as exc:
            self._services.count(metrics.labelled(metrics.RENDER_FAILED, exc.reason), 1)
            meta["rendered"] = why
            if why != "trial":
                raise
            logger.info("Trial with a browser failed url=%s error=%s", lease.url, exc)
            return answer
        meta["rendered"] = why
        self._count(why, found)
        return self._answer(answer, why, found)

    async def close(self) -> None:
        if self._renderer is not None:
            await self._renderer.close()
        await self._hosts.close()

    # ------------------------------------------------------------------ which pages
    async def _reason(self, lease: Lease, answer: Answer) -> str | None:
        wanted = self._services.site_of(lease).render
        if wanted is False:
            return None
        if wanted:
            return "site" if _is_page(answer) else None
        # Whether there is a browser is asked first: without one no page is looked at. Nearly every
        # page ends at the next question, so what it is comes behind it.
        if not self._learns or not self._is_on("trial"):
            return None
        if not is_script_shell(answer.body) or not _is_page(answer):
            return None
        try:
            lesson = await self._services.render_lessons.of(lease.domain)
        except RedisError:
            return None  # the lease loop says that Redis is away
        if lesson is None or lesson.state == "tried":
            return "trial"
        return "learnt" if lesson.state == "render" else None

    def _is_on(self, why: str) -> bool:
        if time.monotonic() < self._off_until:
            return False
        if self._renderer is not None:
            return True
        try:
            executable = browser_of(self._settings)
        except BrowserUnavailable as exc:
            self._off_until = float("inf")
            if why != "trial":
                logger.warning("Pages are read without their scripts reason=%s", exc)
            return False
        rules = self._rules
        browser = Browser(executable, rules.memory_bytes, sandbox=rules.sandbox)
        self._renderer = Renderer(self._client, browser, self._rules)
        return True

    # ------------------------------------------------------------------ one page
    async def _rendered(self, lease: Lease, meta: Mapping[str, Any], answer: Answer) -> Rendered:
        assert self._renderer is not None
        own = lease.domain
        hosts = self._hosts
        hosts.asked(own)  # the document, a moment ago
        rules: RobotsRules | None = meta.get("robots")
        obeys = self._settings.getbool("ROBOTSTXT_OBEY")

        async def may_fetch(url: str) -> bool:
            if not obeys:
                return True
            try:
                is_own = domain_of(url) == own
                found = rules if is_own else await hosts.robots(url, self._headers)
            except FrontierError:
                return False
            return found is not None and found.allowed(url)

        async def turn(url: str) -> None:
            try:
                await hosts.turn(url, is_own=domain_of(url) == own)
            except FrontierError as exc:  # paused by its operator, or Redis is away
                raise FetchError(url, str(exc), "gate") from exc

        return await self._renderer.render(
            answer, Manners(may_fetch, turn, hosts.told, self._headers)
        )

    def _answer(self, answer: Answer, why: str, found: Rendered) -> Answer:
        assert self._renderer is not None
        kept = [
            (name, value) for name, value in answer.headers if name.lower() not in _OF_THE_FRAME
        ]
        mark = (
            f"Chromium/{self._renderer.browser.version}; reason={why}; requests={found.requests};"
            f" whole={'yes' if found.is_whole else 'no'}"
        )
        headers = [
            *kept,
            (b"Content-Type", b"text/html; charset=utf-8"),
            (MARK, mark.encode("ascii", "replace")),
        ]
        return Answer(answer.url, answer.status, headers, found.html, answer.latency_s)

    def _count(self, why: str, found: Rendered) -> None:
        count = self._services.count
        count(metrics.labelled(metrics.RENDERED, why), 1)
        count(metrics.RENDER_REQUESTS, found.requests)
        count(metrics.RENDER_CACHED, found.cached)
        count(metrics.RENDER_BYTES, found.received_bytes)
        count(metrics.RENDER_CPU, round(found.cpu_s * 1000))
        for reason, number in found.refused.items():
            count(metrics.labelled(metrics.RENDER_REFUSED, reason), number)
        if not found.is_whole:
            count(metrics.RENDER_PARTIAL, 1)
        self._services.observe(metrics.RENDER_TIME, found.wall_s)


def _is_page(answer: Answer) -> bool:
    if answer.status != 200 or not answer.body:
        return False
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers
    }
    if sniff(answer.body, headers.get("content-type", "")) != "html":
        return False
    # A frame may set a cookie or load itself again, which is all that the last of these says. No
    # challenge is answered: the browser keeps no cookie for the next fetch.
    return challenge_reason(answer.status, answer.body, headers) in (None, "cookie")


@dataclass(slots=True)
class _Host:
    """``users``: requests that wait for it or are under way."""

    last: float = -math.inf  # when it was asked last, monotonic
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)  # for its robots.txt
    users: int = 0
    robots: RobotsRules | None = None  # None: nothing may be fetched
    robots_until: float = -math.inf  # monotonic; after it the file is asked for again


class _Hosts:
    """Turns and robots.txt of the hosts that pages ask.

    The page's own host is leased to this worker while the page is read: its requests keep the
    domain's delay between one another, and the gate opens after the last one. Another host that the
    frontier knows is asked by its gate. Any other host is asked by this worker alone, with
    DOWNLOAD_DELAY between two requests, after its robots.txt, which is kept for ROBOTS_MAX_AGE_S.
    One that gave none is not asked for _REST_S, so that a host which hangs holds up one page and
    not each. The hosts that were asked last are known, _HOSTS of them.
    """

    def __init__(self, services: Services, client: HttpClient) -> None:
        self._services = services
        self._client = client
        self._delay_s = services.settings.getfloat("DOWNLOAD_DELAY")
        self._robots_s = services.settings.getfloat("ROBOTS_MAX_AGE_S")
        self._known: OrderedDict[str, _Host] = OrderedDict()
        self._held: dict[str, tuple[Lease, float]] = {}  # host -> turn of the fleet's gate
        self._gate: Frontier | None = None
        self._alone = asyncio.Lock()

    def _host(self, domain: str) -> _Host:
        host = self._known.setdefault(domain, _Host())
        self._known.move_to_end(domain)
        for name in list(itertools.islice(self._known, max(0, len(self._known) - _HOSTS))):
            if not self._known[name].users and name != domain:
                del self._known[name]
        return host

    def asked(self, domain: str) -> None:
        self._host(domain).last = time.monotonic()

    async def turn(self, url: str, *, is_own: bool) -> None:
        """Comes back with the host's lock held; :meth:`told` opens it."""
        domain = domain_of(url)
        host = self._host(domain)
        host.users += 1
        try:
            await host.lock.acquire()
        except BaseException:
            host.users -= 1
            raise
        try:
            state = await self._services.render_operator.state(domain)
            if state is not None and not is_own:
                await self._fleets_turn(domain, url)
                return
            delay_s = self._delay_s if state is None else state.delay / 1000
            wait_s = host.last + delay_s - time.monotonic()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
        except BaseException:
            host.users -= 1
            host.lock.release()
            raise

    async def told(self, url: str) -> None:
        domain = domain_of(url)
        self.asked(domain)
        host = self._host(domain)
        held = self._held.pop(domain, None)
        if host.lock.locked():
            host.users -= 1
            host.lock.release()
        if held is not None and self._gate is not None:
            lease, since = held
            took_ms = (time.monotonic() - since) * 1000
            async with self._alone:
                await self._gate.release(lease, Fetched(lease, took_ms, 200))

    async def _fleets_turn(self, domain: str, url: str) -> None:
        until = time.monotonic() + _TURN_S
        while True:
            async with self._alone:
                gate = await self._opened()
                asked = asyncio.ensure_future(gate.reserve(domain, url))
                try:
                    got = await asyncio.shield(asked)
                except asyncio.CancelledError:
                    await asyncio.wait([asked])
                    if not asked.exception() and isinstance(lease := asked.result(), Lease):
                        await gate.give_back([lease])
                    raise
                if isinstance(got, Lease) and got.kind is Kind.ROBOTS:
                    await gate.give_back([got])  # the crawl fetches it; till then nothing is known
                    raise FetchError(url, "robots.txt is not known", "robots_unknown")
            if isinstance(got, Lease):
                self._held[domain] = got, time.monotonic()
                return
            # A back-off of hours, or the gate of the group that the page itself holds.
            if time.monotonic() + got / 1000 > until:
                raise FetchError(url, "the turn of its host is far away", "gate")
            await asyncio.sleep(got / 1000)

    async def _opened(self) -> Frontier:
        if self._gate is None:
            settings = self._services.settings
            config = opening.frontier_config(settings, loopback_only=self._services.loopback_only)
            gate = Frontier(connect(self._services.redis_url), config, identity.worker_id())
            await gate.open()
            self._gate = gate
        return self._gate

    async def robots(self, url: str, headers: list[tuple[str, str]]) -> RobotsRules | None:
        """None: nothing may be fetched now."""
        domain = domain_of(url)
        agent = self._services.settings["ROBOTSTXT_USER_AGENT"]
        entry = await self._services.render_operator.robots(domain)
        if entry is not None:
            return RobotsRules.parse_answer(entry.status, entry.body, agent)
        if await self._services.render_operator.state(domain) is not None:
            return None  # a domain of the fleet whose robots.txt nobody has read yet
        host = self._host(domain)
        host.users += 1
        try:
            async with host.asking:  # of several scripts the first asks
                if time.monotonic() >= host.robots_until:
                    await self._ask_robots(host, url, headers)
                return host.robots
        finally:
            host.users -= 1

    async def _ask_robots(self, host: _Host, url: str, headers: list[tuple[str, str]]) -> None:
        async def ask(address: str) -> Answer:
            await self.turn(address, is_own=False)
            try:
                return await self._client.fetch(address, headers)
            finally:
                await self.told(address)

        async def pause() -> None:
            pass  # each ask waits for its turn

        now_ms = round(time.time() * 1000)
        try:
            first = await ask(f"{url.partition('://')[0]}://{domain_of(url)}/robots.txt")
            agent = self._services.settings["ROBOTSTXT_USER_AGENT"]
            found = await read_robots(first, ask, pause, user_agent=agent, now_ms=now_ms)
        except FetchError as exc:
            logger.info(
                "robots.txt of a page's host is not known url=%s reason=%s", url, exc.reason
            )
            host.robots, host.robots_until = None, time.monotonic() + _REST_S
            return
        is_known = found.status < 500 and found.status != 429
        host.robots = found.rules
        host.robots_until = time.monotonic() + (self._robots_s if is_known else _REST_S)

    async def close(self) -> None:
        if self._gate is None:
            return
        try:
            async with self._alone:
                await self._gate.close()
        except FrontierError as exc:
            logger.debug("Turns were not given back, they run out error=%s", exc)


async def note(services: Services, meta: Mapping[str, Any], domain: str, url: str, *,
               brought_article: bool) -> None:  # fmt: skip
    """What came of a page that was read with the browser because it was an empty frame."""
    if meta.get("rendered") not in ("trial", "learnt"):
        return
    try:
        lesson = await services.render_lessons.note(domain, url, brought_article=brought_article)
    except RedisError as exc:
        logger.info("Lesson is not kept domain=%s error=%s", domain, exc)
        return
    if lesson is not None and lesson.state != "tried":
        logger.info("Pages of a domain and the browser domain=%s lesson=%s", domain, lesson.text())
