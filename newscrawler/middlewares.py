"""Every middleware. Downloader: politeness before a fetch, conditional GET, checks on what came
back. Spider: articles that selector sets can be learnt from.

The downloader middlewares refuse with :class:`Refused`, whose ``reason`` is the word that outcome,
stats and logs use (web.outcomes says which reasons end a URL and which are tried again).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import IgnoreRequest, NotConfigured

from newscrawler import metrics
from newscrawler.crawl.services import Services, services_of
from newscrawler.crawl.virus_scan import VirusScan
from newscrawler.fetch.client import FetchRules, PacedDecoder
from newscrawler.fetch.decoding import DecodeError
from newscrawler.items import Article, Kind
from newscrawler.web.challenge import challenge_reason
from newscrawler.web.sniff import sniff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

#: Answers whose body is read. What other codes mean is the spider's to say.
_READ = frozenset({200, 203, 206})
_XML_KINDS = frozenset({Kind.FEED, Kind.SITEMAP})


class Refused(IgnoreRequest):
    """A request or an answer that goes no further. ``reason``: robots, robots_unknown, type, size,
    bad_encoding, truncated, unasked_304, malware or unscanned."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def _kind(request: Request) -> Kind | None:
    """The kind that the frontier expects; None for a request that did not come from it."""
    lease = request.meta.get("lease")
    return None if lease is None else Kind(lease.kind)


class PolitenessMiddleware:
    """Lets a request through only when robots.txt is known and allows it. Refuses to start a crawl
    that would be rude: no user agent, no delay on the open web, or a wrong setting of the guard, as
    Scrapy would only log those."""

    def __init__(self, *, obey: bool) -> None:
        self._obey = obey

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PolitenessMiddleware:
        """:raises ValueError: the crawl must not start like this"""
        settings = crawler.settings
        if not (settings.get("USER_AGENT") or "").strip():
            raise ValueError(
                "USER_AGENT is empty: a site that is annoyed must be able to reach you; put a"
                " contact in"
            )
        rules = FetchRules.from_settings(settings)
        delay_s = settings.getfloat("DOWNLOAD_DELAY")
        if delay_s < 0:
            raise ValueError(f"DOWNLOAD_DELAY is {delay_s:g}; it must be 0 or more")
        no_stranger = bool(settings.get("REPLAY_DIR")) or rules.overrides.all_names
        if delay_s == 0 and not no_stranger and not services_of(crawler).loopback_only:
            raise ValueError(
                "DOWNLOAD_DELAY is 0, which is accepted only where every admitted host is in"
                " 127.0.0.0/8; set it to 1 or more seconds"
            )
        return cls(obey=settings.getbool("ROBOTSTXT_OBEY"))

    def process_request(self, request: Request) -> None:
        """:raises Refused: robots.txt forbids it, or is not known yet"""
        if not self._obey or _kind(request) is Kind.ROBOTS:
            return
        rules = request.meta.get("robots")
        if (
            rules is None
        ):  # fail closed: the frontier fetches robots.txt first, so this is no ordinary request
            raise Refused(
                "robots_unknown", f"robots.txt of the host is not known yet url={request.url}"
            )
        if not rules.allowed(request.url):
            raise Refused("robots", f"robots.txt forbids it url={request.url}")


class SecondAddress(Refused):
    """``original``: the article's own address."""

    def __init__(self, url: str, original: str) -> None:
        super().__init__("second address", f"a second address, by a rule of the site url={url}")
        self.original = original


class SecondAddressMiddleware:
    """Leaves what was queued before its site had shown by which rule second addresses lead to an
    article's own: that one is offered instead (NewsSpider.failed)."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SecondAddressMiddleware:
        return cls(services_of(crawler))

    def process_request(self, request: Request) -> None:
        """:raises SecondAddress: the article has another address of its own"""
        lease = request.meta.get("lease")
        if lease is None or lease.kind not in (Kind.ARTICLE, Kind.PAGE):
            return
        if lease.last_visit_ms or lease.wanted or (lease.hint or {}).get("asked"):
            return
        site = self._services.site_of(lease)
        original = self._services.link_learning.original(site, lease.url)
        if original is not None:
            raise SecondAddress(lease.url, original)


class ConditionalGetMiddleware:
    """Asks for a page only if it changed since the visit whose digest the frontier holds."""

    def process_request(self, request: Request) -> None:
        lease = request.meta.get("lease")
        if lease is None or not lease.digest or "robots_hop" in request.meta:
            return
        if lease.wants_links:  # an answer without a body has none
            return
        if lease.etag:
            request.headers[b"If-None-Match"] = lease.etag.encode("latin-1", "ignore")
        if lease.last_modified:
            request.headers[b"If-Modified-Since"] = lease.last_modified.encode("latin-1", "ignore")

    def process_response(self, request: Request, response: Response) -> Response:
        """:raises Refused: 304 though no condition was sent"""
        if response.status == 304:
            if not (
                request.headers.get(b"If-None-Match") or request.headers.get(b"If-Modified-Since")
            ):
                # taken as "unchanged" it would hide a page that we have never seen
                raise Refused(
                    "unasked_304", f"304 although no condition was sent url={request.url}"
                )
            response.flags.append("not-modified")
        return response


def _is_expected(kind: Kind | None, found: str, declared: str, body: bytes) -> bool:
    """Whether the body is what a URL of this kind is to be: HTML, or what a list may be written
    in."""
    if kind not in _XML_KINDS:
        return found == "html"
    if found == "xml":
        return True
    if kind is Kind.SITEMAP:
        return found == "other" and declared.startswith("text/plain")
    return kind is Kind.FEED and "json" in declared and body.lstrip()[:1] == b"{"


class ResponseGuardMiddleware:
    """Names challenge pages (flag ``challenge:<reason>``) and refuses what is not of the
    type that was asked for."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ResponseGuardMiddleware:
        return cls(crawler.settings.getint("DOWNLOAD_MAXSIZE"))

    async def process_response(self, request: Request, response: Response) -> Response:
        """:raises Refused: the body is too large"""
        kind = _kind(request)
        if kind is Kind.ROBOTS:
            return response
        if reason := challenge_reason(response.status, response.body, _plain(request, response)):
            response.flags.append(f"challenge:{reason}")
            return response
        if response.status not in _READ:
            return response
        if len(response.body) > self._max_bytes:
            raise Refused("size", f"{len(response.body)} bytes url={response.url}")
        if not response.body or response.body.isspace():
            response.flags.append("empty")
            return response
        return await self._typed(kind, response)

    async def _typed(self, kind: Kind | None, response: Response) -> Response:
        declared = (response.headers.get(b"Content-Type") or b"").decode("latin-1")
        if kind in _XML_KINDS and response.body.startswith(b"\x1f\x8b"):
            # sitemap.xml.gz: compressed as a file, not for the way
            response = response.replace(body=await self._gunzip(response))
        found = sniff(response.body, declared)
        if _is_expected(kind, found, declared.lower(), response.body):
            return response
        raise Refused(
            "type",
            f"{found} where {kind or 'html'} was expected type={declared!r} url={response.url}",
        )

    async def _gunzip(self, response: Response) -> bytes:
        decoder = PacedDecoder("gzip", self._max_bytes)
        try:
            await decoder.feed(response.body)
            return decoder.finish()
        except DecodeError as exc:
            raise Refused(exc.reason, f"{exc} url={response.url}") from exc


def _plain(request: Request, response: Response) -> dict[str, Any]:
    """Headers as lower-case name -> value."""
    if received := request.meta.get("raw_headers"):  # a tenth of the price of Scrapy's headers
        plain: dict[str, Any] = {}
        for name, value in received:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            plain[key] = f"{plain[key]}, {text}" if key in plain else text
        return plain
    items = response.headers.items()
    return {
        name.decode("latin-1").lower(): b", ".join(values).decode("latin-1")
        for name, values in items
    }


class VirusScanMiddleware:
    """Shows every page to ClamAV before anything reads or stores it (CLAMAV; docs/fetching.md).
    Behind ResponseGuardMiddleware, so that only what is a page costs a scan."""

    def __init__(self, scan: VirusScan) -> None:
        self._scan = scan

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> VirusScanMiddleware:
        """:raises ValueError: a setting is wrong: the crawl must not start without its scanner"""
        if not crawler.settings.get("CLAMAV"):
            raise NotConfigured
        scan = services_of(crawler).virus_scan
        if scan is None:
            raise NotConfigured
        return cls(scan)

    async def process_response(self, request: Request, response: Response) -> Response:
        """:raises Refused: the scanner found something, or could not look"""
        kind = _kind(request)
        if kind is None or kind is Kind.ROBOTS or response.status not in _READ:
            return response
        if response.body and (why := await self._scan.refusal(response.url, response.body)):
            raise Refused(why[0], f"{why[1]} url={response.url}")
        return response


class SelectorGenerationMiddleware:
    """Sees every article of a site without an active selector set, and hands its page
    on to be learnt from.

    A site whose set is on probation is seen too: the set is tried on the page beside what was read.
    The page is taken when the article is stored, by the extension
    newscrawler.crawl.selector_jobs.SelectorGeneration; nothing here waits.
    """

    def __init__(self, services: Services, *, learns: bool) -> None:
        self._services = services
        self._learns = learns

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SelectorGenerationMiddleware:
        return cls(services_of(crawler), learns=crawler.settings["SELECTOR_GENERATION"] != "off")

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for found in result:
            if isinstance(found, Article):
                self._look(found, response)
            yield found

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterable[Any]:
        for found in result:
            if isinstance(found, Article):
                self._look(found, response)
            yield found

    def _look(self, article: Article, response: Response) -> None:
        visit = self._services.visits.of_article(article.id)
        if visit is None:
            return
        selectors = self._services.selectors
        if selectors.probation(article.site) is not None:
            visit.sample = response.body
        if not self._learns:
            return
        if selectors.is_missing(article.site):
            self._services.count(metrics.SELECTOR_MISSING, 1)
            visit.keep_raw, visit.sample = True, b""  # it is read from the raw store
        elif selectors.active(article.site) and not article.origins.get("content", "").startswith(
            "selector:"
        ):
            visit.keep_raw = True  # its set did not fit: a page to learn the new layout from
