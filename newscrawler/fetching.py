"""One page for a command, as politely as the crawl: robots.txt, the fleet's gate, the same guard and limits."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from newscrawler import wiring
from newscrawler.frontier import connect
from newscrawler.frontier import server as embedded
from newscrawler.frontier.queue import (
    Ack,
    DomainPolicy,
    Fetched,
    Frontier,
    FrontierRefused,
    Lease,
    RobotsAnswer,
)
from newscrawler.frontier.reserve import release, reserve
from newscrawler.httpclient import Answer, FetchError, FetchFailed, FetchRefused, FetchRules, Headers, HttpClient
from newscrawler.items import Kind, Outcome
from newscrawler.web import network, urls
from newscrawler.web.decoding import ACCEPT_ENCODING
from newscrawler.web.outcomes import retry_after_s
from newscrawler.web.robots import RobotsRules

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

log = logging.getLogger(__name__)

#: Hops that are followed, each through robots.txt and gate of its own host.
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Reasons of a FetchError: the site has not heard of the fetch; the site did answer, so it needs no back-off.
_NOT_ASKED = frozenset({"ssrf", "scheme"})
_ANSWERED = frozenset({"size", "truncated", "bad_encoding"})


@dataclass(slots=True)
class FetchedPage:
    """What a site answered. ``url`` is the last one, after redirects; ``body`` is decoded."""

    status: int
    headers: Headers
    body: bytes
    url: str

    def header(self, name: str) -> str | None:
        return _header(self.headers, name)


async def fetch_polite(url: str, settings: BaseSettings, *, patience_s: float = 180.0) -> FetchedPage:
    """Fetches one page now, or as soon as the whole fleet's gate of its host lets it.

    :param patience_s: how long to wait for turns, in all
    :raises ValueError: not an http(s) URL, or a setting that no crawl would start with
    :raises FetchError: refused (``reason`` robots, ssrf, size …) or failed
    :raises newscrawler.frontier.queue.FrontierError: the queue is away, or its operator has closed the host
    """
    if not urls.is_http(url) or not urls.domain_of(url):
        raise ValueError(f"not an http(s) URL: {url}")
    if not (settings.get("USER_AGENT") or "").strip():
        raise ValueError("USER_AGENT is empty: a site that is annoyed must be able to reach you; put a contact in")
    fetcher = _PoliteFetcher(settings, FetchRules.from_settings(settings), time.monotonic() + patience_s)
    try:
        await fetcher.frontier.open()
        for _ in range(MAX_REDIRECTS + 1):
            answer = await fetcher.page(url)
            location = _header(answer.headers, "location") if answer.status in _REDIRECTS else None
            target = urls.join(urls.Base(url), location) if location else None
            if target is None or not urls.is_http(target):
                return FetchedPage(answer.status, answer.headers, answer.body, url)
            url = target
        raise FetchFailed(url, f"more than {MAX_REDIRECTS} redirects", "redirects")
    finally:
        await fetcher.close()
        if not settings.get("REDIS_URL"):
            embedded.stop_if_last(wiring.data_dir(settings))


class _PoliteFetcher:
    def __init__(self, settings: BaseSettings, rules: FetchRules, deadline: float) -> None:
        self._settings = settings
        self._rules = rules
        self._deadline = deadline  # of time.monotonic()
        self._client = HttpClient(rules)
        self.frontier = Frontier(
            connect(wiring.redis_url(settings)),
            wiring.frontier_config(settings, loopback_only=rules.loopback_only),
            wiring.worker_id(),  # another one each time: open() frees what the same name still holds
        )

    async def page(self, url: str) -> Answer:
        """Through robots.txt and the gate of its host; redirects are not followed."""
        domain = urls.domain_of(url) or ""
        await self._make_known(domain)
        lease = await self._turn(domain, url)
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
            if asked:
                await release(self.frontier, lease, fetched)
            else:
                await self.frontier.give_back([lease])

    async def _make_known(self, domain: str) -> None:
        """A host that no site lists is gated too; not enabled, so that the crawl admits nothing of it."""
        if await self.frontier.operator.state(domain) is not None:
            return
        delay_s = self._settings.getfloat("DOWNLOAD_DELAY")
        site = wiring.load_sites(self._settings).by_host(domain)
        floor_ms = round(max(delay_s, site.delay_s if site else 0) * 1000)
        if delay_s == 0 and not network.is_loopback_host(domain, self._rules.overrides):
            raise FrontierRefused("DOWNLOAD_DELAY is 0, which is accepted on 127.0.0.0/8 only")
        if site is not None:
            policy = DomainPolicy(domain, site.id, site.cls, floor_ms)
        else:
            policy = DomainPolicy(domain, domain, "low", floor_ms, enabled=False)
        await self.frontier.put_domains([policy])

    async def _turn(self, domain: str, url: str) -> Lease:
        """Waits for the domain's gate; fetches robots.txt on the way when its rules are not known."""
        while True:
            got = await reserve(self.frontier, domain, url)
            if isinstance(got, int):
                wait_s = got / 1000
                if time.monotonic() + wait_s > self._deadline:
                    raise FetchFailed(url, f"the next turn of {domain} is {wait_s:.0f} s away, gave up waiting", "gate")
                await asyncio.sleep(wait_s)
            elif got.kind is Kind.ROBOTS:
                await self._fetch_robots(got, url)
            else:
                return got

    async def _fetch_robots(self, lease: Lease, page_url: str) -> None:
        scheme = page_url.partition(":")[0]
        url = f"{scheme}://{lease.domain}/robots.txt"
        started = time.monotonic()
        answer: Answer | None = None
        try:
            for _ in range(MAX_REDIRECTS + 1):  # RFC 9309 2.3.1.2
                answer = await self._fetch(url)
                location = _header(answer.headers, "location") if answer.status in _REDIRECTS else None
                target = urls.join(urls.Base(url), location) if location else None
                if target is None:
                    break
                url = target
        except FetchError as exc:
            log.info("robots.txt could not be fetched url=%s reason=%s", url, exc.reason)
            answer = None
        told = RobotsAnswer(status=0)
        if answer is not None:
            # still a redirect after five: as if there were none
            status = 404 if answer.status in _REDIRECTS else answer.status
            told = RobotsAnswer(status, answer.body if 200 <= status < 300 else b"", retry_after_s=_retry_after(answer))
            told.crawl_delay_s = RobotsRules.parse_answer(status, told.body, self._agent).crawl_delay
        latency_ms = (time.monotonic() - started) * 1000
        fetched = Fetched(lease, latency_ms, told.status, told.retry_after_s)
        ack = Ack(lease, Outcome.DONE if answer else Outcome.RETRY, status=told.status, robots=told)
        await self.frontier.step(0, [ack], [fetched])

    async def _ask_robots(self, domain: str, url: str) -> None:
        if not self._settings.getbool("ROBOTSTXT_OBEY"):
            return
        entry = await self.frontier.robots(domain)
        if entry is None:
            raise FetchFailed(url, f"robots.txt of {domain} is not known", "robots_unknown")
        if not RobotsRules.parse_answer(entry.status, entry.body, self._agent).allowed(url):
            raise FetchRefused(url, "robots.txt forbids it", "robots")

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

    async def close(self) -> None:
        await self._client.close()
        await self.frontier.close()


def _header(headers: Headers, name: str) -> str | None:
    wanted = name.lower().encode()
    return next((value.decode("latin-1") for key, value in headers if key.lower() == wanted), None)


def _retry_after(answer: Answer) -> float | None:
    value = next((v for k, v in answer.headers if k.lower() == b"retry-after"), None)
    return retry_after_s(value, round(time.time() * 1000))
