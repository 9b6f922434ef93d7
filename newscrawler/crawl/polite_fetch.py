"""One page for a command, as politely as the crawl: robots.txt, the fleet's gate, the
same guard and limits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from newscrawler.crawl import opening, site_choice
from newscrawler.fetch import address_guard
from newscrawler.fetch.client import (
    Answer,
    FetchError,
    FetchFailed,
    FetchRefused,
    FetchRules,
    Headers,
    HttpClient,
    header_of,
)
from newscrawler.fetch.decoding import ACCEPT_ENCODING
from newscrawler.fetch.robots import read_robots
from newscrawler.fleet import identity
from newscrawler.frontier import connect
from newscrawler.frontier.queue import (
    Ack,
    DomainPolicy,
    Fetched,
    Frontier,
    FrontierRefused,
    Lease,
    RobotsAnswer,
)
from newscrawler.items import Kind, Outcome
from newscrawler.web import urls
from newscrawler.web.outcomes import retry_after_s
from newscrawler.web.robots import RobotsRules

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

log = logging.getLogger(__name__)

#: Hops that are followed, each through robots.txt and gate of its own host.
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Reasons of a FetchError: the site has not heard of the fetch; the site did answer, so it
# needs no back-off.
_NOT_ASKED = frozenset({"ssrf", "scheme"})
_ANSWERED = frozenset({"size", "bad_encoding"})
# Of a robots.txt that failed: another try within the patience of a person would end the same.
_AWAY = frozenset({"connect", "dns", "tls"})
#: Seconds of a wait from which on it is told of: more than the delay of most sites.
_TOLD_WAIT_S = 3.0


@dataclass(slots=True)
class FetchedPage:
    """What a site answered. ``url`` is the last one, after redirects; ``body`` is decoded."""

    status: int
    headers: Headers
    body: bytes
    url: str
    hops: list[tuple[int, str]] = field(default_factory=list)  # (status, from where) of redirects

    def header(self, name: str) -> str | None:
        """The first value of a header, by its name in any case."""
        return header_of(self.headers, name)


async def fetch_polite(
    url: str,
    settings: BaseSettings,
    *,
    patience_s: float = 180.0,
    say: Callable[[str], object] | None = None,
) -> FetchedPage:
    """Fetches one page now, or as soon as the whole fleet's gate of its host lets it.

    :param patience_s: how long to wait for turns, in all
    :param say: is told of a wait that a person would notice, and of its length
    :raises ValueError: not an http(s) URL, or a setting that no crawl would start with
    :raises FetchError: refused (``reason`` robots, ssrf, size …) or failed
    :raises newscrawler.frontier.queue.FrontierError: the queue is away, or its
        operator has closed the host
    """
    _check(url)  # before anything is started for it
    async with PoliteFetcher(settings, say) as fetcher:
        return await fetcher.get(url, patience_s=patience_s)


def _check(url: str) -> None:
    if not urls.is_http(url) or not urls.domain_of(url):
        raise ValueError(f"not an http(s) URL: {url}")


class PoliteFetcher:
    """Any number of pages, also at once: each waits for its own host's turn. ``async with``.

    :raises ValueError: a setting that no crawl would start with
    """

    def __init__(self, settings: BaseSettings, say: Callable[[str], object] | None = None) -> None:
        if not (settings.get("USER_AGENT") or "").strip():
            raise ValueError(
                "USER_AGENT is empty: a site that is annoyed must be able to reach you; put a"
                " contact in"
            )
        self._settings = settings
        self._say = say
        self._rules = rules = FetchRules.from_settings(settings)
        self._client = HttpClient(rules)
        self.frontier = Frontier(
            connect(opening.redis_url(settings)),
            opening.frontier_config(settings, loopback_only=rules.loopback_only),
            # Another one each time: open() frees what the same name still holds.
            identity.worker_id(),
        )
        self._alone = asyncio.Lock()  # the frontier's client serves one call at a time

    async def get(self, url: str, *, patience_s: float = 180.0) -> FetchedPage:
        """:raises ValueError, FetchError, newscrawler.frontier.queue.FrontierError: as
        :func:`fetch_polite`"""
        _check(url)
        deadline = time.monotonic() + patience_s
        hops: list[tuple[int, str]] = []
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._page(url, deadline)
            location = answer.header("location") if answer.status in _REDIRECTS else None
            target = urls.join(urls.Base(url), location) if location else None
            if target is None or not urls.is_http(target):
                return FetchedPage(answer.status, answer.headers, answer.body, url, hops)
            hops.append((answer.status, url))
            if any(target == earlier for _, earlier in hops):
                raise FetchFailed(url, f"redirects in a circle, to {target}", "redirects")
            url = target
        raise FetchFailed(url, f"more than {MAX_REDIRECTS} redirects", "redirects")

    async def __aenter__(self) -> PoliteFetcher:
        try:
            await self.frontier.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._client.close()
        await self.frontier.close()
        opening.stop_embedded(self._settings)

    async def _page(self, url: str, deadline: float) -> Answer:
        """Through robots.txt and the gate of its host; redirects are not followed."""
        domain = urls.domain_of(url) or ""
        # Said at once: a robots.txt that cannot be asked for would be waited for in vain.
        await self._client.look_up(url)
        await self._make_known(domain)
        lease = await self._turn(domain, url, deadline)
        fetched = Fetched(lease, 0.0, 0)
        asked = False
        started = time.monotonic()
        try:
            await self._ask_robots(domain, url)
            asked = True
            answer = await self._fetch(url)
            fetched.status, fetched.retry_after_s = answer.status, _retry_after(answer)
            return answer
        except FetchError as exc:
            asked = asked and exc.reason not in _NOT_ASKED
            fetched.status = 200 if exc.reason in _ANSWERED else 0
            raise
        finally:
            fetched.latency_ms = (time.monotonic() - started) * 1000
            async with self._alone:
                if asked:
                    await self.frontier.release(lease, fetched)
                else:
                    await self.frontier.give_back([lease])

    async def _make_known(self, domain: str) -> None:
        """A host that no site lists is gated too; not enabled, so that the crawl
        admits nothing of it."""
        async with self._alone:
            if await self.frontier.operator.state(domain) is not None:
                return
        delay_s = self._settings.getfloat("DOWNLOAD_DELAY")
        site = site_choice.load_sites(self._settings).by_host(domain)
        floor_ms = round(max(delay_s, site.delay_s if site else 0) * 1000)
        if delay_s == 0 and not address_guard.is_loopback_host(domain, self._rules.overrides):
            raise FrontierRefused("DOWNLOAD_DELAY is 0, which is accepted on 127.0.0.0/8 only")
        if site is not None:
            policy = DomainPolicy(domain, site.id, site.cls, floor_ms)
        else:
            policy = DomainPolicy(domain, domain, "low", floor_ms, enabled=False)
        async with self._alone:
            await self.frontier.put_domains([policy])

    async def _turn(self, domain: str, url: str, deadline: float) -> Lease:
        """Waits for the domain's gate; fetches robots.txt on the way when its
        rules are not known.

        :raises FetchFailed: the site cannot be reached, or its turn comes too late
        """
        cause = ""
        while True:
            got = await self._reserve(domain, url)
            if isinstance(got, int):
                wait_s = got / 1000
                if time.monotonic() + wait_s > deadline:
                    text = f"the next turn of {domain} is {wait_s:.0f} s away, gave up waiting"
                    raise FetchFailed(url, f"{cause}{text}", "gate")
                if self._say is not None and wait_s >= _TOLD_WAIT_S:
                    self._say(
                        f"{cause}waiting {wait_s:.0f} s for the next turn of {domain}: delay and"
                        " back-off hold for the whole fleet"
                    )
                await asyncio.sleep(wait_s)
            elif got.kind is Kind.ROBOTS:
                failure = await self._fetch_robots(got, url)
                if failure is None:
                    cause = ""
                    continue
                why = str(failure).removesuffix(f" url={failure.url}")
                cause = f"robots.txt of {domain} could not be fetched ({why}); "
                if failure.reason in _AWAY:
                    raise FetchFailed(url, cause.removesuffix("; "), failure.reason) from failure
            else:
                return got

    async def _reserve(self, domain: str, url: str) -> Lease | int:
        """A turn that is granted while this is cancelled is known to the frontier, which
        gives it back at the end."""
        async with self._alone:
            asked = asyncio.ensure_future(self.frontier.reserve(domain, url))
            try:
                return await asyncio.shield(asked)
            except asyncio.CancelledError:
                await asyncio.wait([asked])
                raise

    async def _fetch_robots(self, lease: Lease, page_url: str) -> FetchError | None:
        """Returns why no answer came, None = one came."""
        scheme = page_url.partition(":")[0]
        url = f"{scheme}://{lease.domain}/robots.txt"
        started = time.monotonic()

        async def pause() -> None:
            await asyncio.sleep(await self._delay_s(lease.domain))
            async with self._alone:
                await self.frontier.renew([lease])  # five delays may be longer than a lease

        told, outcome, failure = RobotsAnswer(status=0), Outcome.RETRY, None
        try:
            found = await read_robots(
                await self._fetch(url),
                self._fetch,
                pause,
                user_agent=self._agent,
                now_ms=round(time.time() * 1000),
            )
            crawl_delay_s = found.rules.crawl_delay
            told = RobotsAnswer(found.status, found.body, crawl_delay_s, found.retry_after_s)
            outcome = Outcome.DONE
        except FetchError as exc:
            failure = exc
            log.info("robots.txt could not be fetched url=%s reason=%s", url, exc.reason)
        latency_ms = (time.monotonic() - started) * 1000
        fetched = Fetched(lease, latency_ms, told.status, told.retry_after_s)
        ack = Ack(lease, outcome, status=told.status, robots=told)
        async with self._alone:
            await self.frontier.step(0, [ack], [fetched])
        return failure

    async def _delay_s(self, domain: str) -> float:
        """The delay that the fleet keeps between two fetches of the domain."""
        async with self._alone:
            delay_s = await self.frontier.operator.delay_s(domain)
        return self._settings.getfloat("DOWNLOAD_DELAY") if delay_s is None else delay_s

    async def _ask_robots(self, domain: str, url: str) -> None:
        if not self._settings.getbool("ROBOTSTXT_OBEY"):
            return
        found = await self.robots(domain)
        if found is None:
            raise FetchFailed(url, f"robots.txt of {domain} is not known", "robots_unknown")
        if not found[1].allowed(url):
            raise FetchRefused(url, "robots.txt forbids it", "robots")

    async def robots(self, domain: str) -> tuple[int, RobotsRules] | None:
        """Status and rules of a host's robots.txt; None where the frontier has none (yet)."""
        async with self._alone:
            entry = await self.frontier.robots(domain)
        if entry is None:
            return None
        return entry.status, RobotsRules.parse_answer(entry.status, entry.body, self._agent)

    @property
    def _agent(self) -> str:
        return str(self._settings["ROBOTSTXT_USER_AGENT"])

    async def _fetch(self, url: str) -> Answer:
        headers: dict[str, Any] = {
            **self._settings.getdict("DEFAULT_REQUEST_HEADERS"),
            "User-Agent": self._settings["USER_AGENT"],
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        return await self._client.fetch(url, [(k, str(v)) for k, v in headers.items() if v])


def _retry_after(answer: Answer) -> float | None:
    return retry_after_s(answer.header("retry-after"), round(time.time() * 1000))
