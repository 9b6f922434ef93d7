"""The one way out: an aiohttp session that resolves, guards and limits every fetch. No Scrapy here.

Used by the crawl (handlers.GuardedHandler) and by commands that fetch one page
(crawl.polite_fetch). What it refuses or fails at leaves as a :class:`FetchError` whose ``reason``
is one word, counted as it is.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from newscrawler.fetch import address_guard
from newscrawler.fetch.decoding import BodyDecoder, DecodeError
from newscrawler.fetch.proxies import Proxies, Proxy, from_environment, name_refusal
from newscrawler.utils.numbers import is_digits, whole_number

Headers = list[tuple[bytes, bytes]]

# Cut-off for a connection alone, seconds: a host that does not answer the handshake
# in this time is away.
_CONNECT_S = 10.0
# Idle connections are kept this long, seconds: longer than the delay of an ordinary site, so that
# its next page needs no new TLS handshake; servers close theirs after 5 to 75.
_KEEPALIVE_S = 30.0
# CPU seconds of decoding: 10 MB of gzip take 0.03, of brotli 0.05, so what takes so much longer is
# made to. What takes longer than the second figure for one chunk is done beside the event loop.
_DECODE_CPU_S, _ON_LOOP_CPU_S = 2.0, 0.003
# News sites send Content-Security-Policy and Set-Cookie lines of 10-20 kB; aiohttp's
# default is 8190.
_MAX_HEADER_BYTES = 65_536
_MAX_HEADERS = 256
# X509_V_ERR_* of OpenSSL
_CERTIFICATE_PROBLEMS = {
    9: "not yet valid",
    10: "expired",
    18: "untrusted",
    19: "untrusted",
    20: "untrusted",
    21: "untrusted",
    62: "wrong name",
    64: "wrong name",
}


class FetchError(Exception):
    """A fetch that gave no answer. ``reason``: ssrf, size, timeout, dns, tls, connect, truncated,
    bad_encoding, scheme or protocol (what answered does not speak HTTP)."""

    reason = "error"

    def __init__(self, url: str, message: str, reason: str = "") -> None:
        super().__init__(f"{message} url={url}")
        self.url = url
        if reason:
            self.reason = reason


class FetchRefused(FetchError):
    """We say no to the URL itself (ssrf, size, scheme): another try would end the same."""


class AddressRefused(FetchRefused):
    """The host leads to an address that is not to be fetched."""

    reason = "ssrf"


class TooLarge(FetchRefused):
    reason = "size"


class FetchFailed(FetchError):
    """It did not work this time."""


class CertificateRefused(FetchFailed):
    """``problem``: expired, not yet valid, wrong name, untrusted or other."""

    reason = "tls"

    def __init__(self, url: str, error: BaseException) -> None:
        code = getattr(error, "verify_code", 0)
        self.problem = _CERTIFICATE_PROBLEMS.get(code, "other")
        super().__init__(
            url,
            f"certificate refused ({self.problem}):"
            f" {getattr(error, 'verify_message', '') or error}",
        )


@dataclass(frozen=True)
class FetchRules:
    """What every fetch keeps to."""

    max_bytes: int = 10 * 1024 * 1024  # before and after decompression
    timeout_s: float = 30.0  # from the look-up of the name to the last byte
    connections: int = 32
    connections_per_host: int = 1
    dns_ttl_s: float = 300.0
    verify_certificates: bool = True
    ca_file: str = ""  # trusted beside the system's authorities
    allowed: tuple[address_guard.Network, ...] = ()  # private ranges that may be fetched
    overrides: address_guard.Overrides = field(default_factory=address_guard.Overrides)
    loopback_only: bool = False  # with a delay of 0: nothing but this machine may be reached
    proxies: Proxies = field(default_factory=Proxies)  # of the environment

    @classmethod
    def from_settings(cls, get: Mapping[str, Any]) -> FetchRules:
        """From the names of settings.py. ``get`` is anything with ``[name]``, e.g.
        Scrapy's Settings.

        :raises ValueError: a setting is wrong; the text names it
        """
        rules = cls(
            max_bytes=int(get["DOWNLOAD_MAXSIZE"]),
            timeout_s=float(get["DOWNLOAD_TIMEOUT"]),
            connections=int(get["CONCURRENT_REQUESTS"]),
            connections_per_host=int(get["CONCURRENT_REQUESTS_PER_DOMAIN"]),
            dns_ttl_s=float(get["DNS_TTL_S"]),
            verify_certificates=str(get["DOWNLOAD_VERIFY_CERTIFICATES"]).lower()
            not in ("false", "0", "no", "off"),
            ca_file=get["EXTRA_CA_FILE"] or "",
            allowed=address_guard.parse_networks(get["ALLOWED_PRIVATE_NETWORKS"] or ""),
            overrides=address_guard.parse_overrides(get["RESOLVE_OVERRIDE"] or ""),
            loopback_only=float(get["DOWNLOAD_DELAY"]) <= 0,
            proxies=_proxies_of(get),
        )
        if rules.max_bytes <= 0 or rules.timeout_s <= 0:
            raise ValueError(
                "DOWNLOAD_MAXSIZE and DOWNLOAD_TIMEOUT must be above 0: a fetch needs its limits"
            )
        address_guard.check_overrides_open(rules.overrides, rules.allowed)
        for proxy in rules.proxies.by_scheme.values():
            rules.check_proxy(proxy)
        rules.ssl_context()
        return rules

    def ssl_context(self) -> ssl.SSLContext:
        """:raises ValueError: EXTRA_CA_FILE cannot be read"""
        return _ssl_context(self.ca_file, self.verify_certificates)

    def check_proxy(self, proxy: Proxy) -> None:
        """:raises ValueError: the proxy is an address that may not be connected to"""
        why = self.refusal(proxy.host) if address_guard.is_literal(proxy.host) else None
        if why is not None:
            raise ValueError(
                f"the proxy {proxy.url} is refused ({why}); name its address in"
                " ALLOWED_PRIVATE_NETWORKS"
            )

    def proxy_for(self, url: str) -> Proxy | None:
        """Of the environment's, the one that a URL is fetched through; None = directly. What is
        looked up on this machine is fetched here."""
        host = urlsplit(url).hostname or ""
        is_here = self.loopback_only or self.overrides.lookup(host.rstrip("."), 0) is not None
        return None if is_here else self.proxies.of(url)

    def refusal(self, ip: str) -> str | None:
        """Why this address may not be connected to; None when it may."""
        why = address_guard.refusal(ip, self.allowed)
        if (
            why is None
            and self.loopback_only
            and not ipaddress.ip_address(ip.partition("%")[0]).is_loopback
        ):
            return "not loopback, and the delay is 0"
        return why

    def way_in(self, ip: str) -> str:
        """Behind what a refused address is: the setting that would let it through, "" = none."""
        is_private = address_guard.refusal(ip, self.allowed) is not None
        return "; ALLOWED_PRIVATE_NETWORKS does not name it" if is_private else ""


def _proxies_of(get: Mapping[str, Any]) -> Proxies:
    """Scrapy's HTTPPROXY_ENABLED=False switches them off."""
    is_on = str(get.get("HTTPPROXY_ENABLED", True)).lower() not in ("false", "0", "no", "off")
    return from_environment(os.environ) if is_on else Proxies()


@lru_cache(maxsize=2)  # 30 ms: the system's authorities are read
def _ssl_context(ca_file: str, verify_certificates: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=_fallback_authorities())
    context.set_alpn_protocols(["http/1.1"])
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as exc:
            raise ValueError(f"EXTRA_CA_FILE={ca_file} is not a readable PEM file: {exc}") from exc
    if not verify_certificates:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class GuardedResolver(AbstractResolver):
    """Overrides first, then DNS; what it answers may be connected to. aiohttp caches it."""

    def __init__(self, rules: FetchRules) -> None:
        self._rules = rules

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """:raises AddressRefused: every address of the name is refused
        :raises OSError: the name is not known"""
        target = self._rules.overrides.lookup(host.rstrip(".").lower(), port)
        if target is not None:
            found = [target]
        else:
            infos = await asyncio.get_running_loop().getaddrinfo(
                host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
            )
            found = [(str(sockaddr[0]), port) for *_, sockaddr in infos]
        allowed = [place for place in found if self._rules.refusal(place[0]) is None]
        if found and not allowed:
            raise AddressRefused(
                host,
                f"{host} leads to {found[0][0]} ({self._rules.refusal(found[0][0])} address)"
                f"{self._rules.way_in(found[0][0])}",
            )
        return [
            ResolveResult(
                hostname=host,
                host=ip,
                port=to_port,
                family=socket.AF_INET6 if ":" in ip else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for ip, to_port in allowed
        ]

    async def close(self) -> None:
        pass


class PacedDecoder:
    """A BodyDecoder on an event loop: what takes longer than a moment goes on in a thread,
    what takes longer than any honest body is given up. Times are of the CPU, so that a busy
    machine refuses nothing.

    :param cpu_s: seconds of the CPU that the whole body may take
    """

    def __init__(
        self, content_encoding: str | None, max_bytes: int, *, cpu_s: float = _DECODE_CPU_S
    ) -> None:
        self._decoder = BodyDecoder(content_encoding, max_bytes)
        self._cpu_s = cpu_s
        self._spent_s = 0.0

    async def feed(self, data: bytes) -> None:
        """:raises DecodeError: see BodyDecoder; ``size`` also where the time is spent"""
        steps = self._decoder.steps(data)
        if not self._run(steps, _ON_LOOP_CPU_S):
            await asyncio.to_thread(self._run, steps, self._cpu_s)

    def finish(self) -> bytes:
        return self._decoder.finish()

    def _run(self, steps: Iterator[None], pause_s: float) -> bool:
        """Whether all steps are done; it stops when ``pause_s`` are spent."""
        before, start = self._spent_s, time.thread_time()
        for _ in steps:
            took = time.thread_time() - start
            self._spent_s = before + took
            if self._spent_s > self._cpu_s:
                raise DecodeError("size", f"decoding takes more than {self._cpu_s:g} s of the CPU")
            if took > pause_s:
                return False
        return True


def header_of(headers: Headers, name: str) -> str | None:
    """The first value of a header, by its name in any case."""
    wanted = name.lower().encode()
    value = next((value for key, value in headers if key.lower() == wanted), None)
    return None if value is None else value.decode("latin-1")


@dataclass(slots=True)
class Answer:
    """What a site sent. ``headers`` as received, also the content coding; ``body`` without it."""

    url: str
    status: int
    headers: Headers
    body: bytes
    latency_s: float  # from the request to the head of the answer

    def header(self, name: str) -> str | None:
        """The first value of a header, by its name in any case."""
        return header_of(self.headers, name)


class HttpClient:
    """Made and closed inside a running event loop. One request, one answer: no cookies, redirects,
    retries of its own (but an idle connection that the server has closed meanwhile is replaced)."""

    def __init__(self, rules: FetchRules) -> None:
        self.rules = rules
        self._timeout = aiohttp.ClientTimeout(
            total=rules.timeout_s, sock_connect=min(_CONNECT_S, rules.timeout_s)
        )
        self._resolver = GuardedResolver(rules)
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            ttl_dns_cache=max(1, round(rules.dns_ttl_s)),
            limit=rules.connections,
            limit_per_host=rules.connections_per_host,
            ssl=rules.ssl_context(),
            socket_factory=self._socket,
            keepalive_timeout=_KEEPALIVE_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
            max_headers=_MAX_HEADERS,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        # aiohttp asks a second time by itself when a kept connection was dropped: a fetch that the
        # gate knows nothing of. A test sees it from the site's side; there is no public switch.
        self._session._retry_connection = False

    def _socket(self, addr_info: Any) -> socket.socket:
        """The last door: every connection passes here with its real address, literal ones
        for the first time."""
        family, kind, proto, _, address = addr_info
        why = self.rules.refusal(address[0])
        if why is not None:
            raise AddressRefused(address[0], f"address is refused ({why})")
        return socket.socket(family, kind, proto)

    async def fetch(
        self,
        url: str,
        headers: Iterable[tuple[str, str]],
        *,
        method: str = "GET",
        body: bytes | None = None,
        proxy: Proxy | None = None,
        is_direct: bool = False,
    ) -> Answer:
        """
        :param proxy: to be asked instead of the environment's; its address passes the guard, the
            URL must be of a public name, as the proxy resolves it
        :param is_direct: no proxy at all
        :raises FetchError: no whole answer; see its ``reason``
        """
        reading = False
        start = time.monotonic()
        proxy = None if is_direct else proxy or self.rules.proxy_for(url)
        through = self._through(url, proxy) if proxy is not None else {}
        if proxy is not None and proxy.authorization and url.startswith("http:"):
            # the proxy reads it and passes it on to nobody; with https it stands in CONNECT alone
            headers = [*headers, ("Proxy-Authorization", proxy.authorization)]
        try:
            # encoded: the URL is sent as the frontier knows it, yarl would respell %7E and the like
            target = yarl.URL(url, encoded=True)
            async with self._session.request(
                method,
                target,
                headers=headers,
                data=body,
                timeout=self._timeout,
                allow_redirects=False,
                **through,
            ) as response:
                latency_s = time.monotonic() - start
                reading = True
                content = await self._content(response)
                return Answer(url, response.status, list(response.raw_headers), content, latency_s)
        except (FetchError, DecodeError, aiohttp.ClientError, OSError, ValueError) as exc:
            error = _proxy_error(url, proxy, exc) if proxy is not None else None
            error = error or translate(url, exc, reading, self.rules.timeout_s)
            if error is exc:
                raise
            raise error from exc

    async def _content(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            return await self._read(response)
        except (DecodeError, aiohttp.ClientError, OSError):
            if 200 <= response.status < 300:
                raise
            # A 429 or 503 must reach the gate, a redirect its target: their head says it all.
            return b""

    async def look_up(self, url: str) -> None:
        """Whether a fetch could begin: the host has an address, and one that may be
        connected to. Nothing is sent.

        :raises FetchError: ``dns`` or ``ssrf``
        """
        proxy = self.rules.proxy_for(url)
        if proxy is not None:  # which resolves the name itself
            self._through(url, proxy)
            return
        parts = yarl.URL(url, encoded=True)
        host = parts.host or ""
        try:
            if address_guard.is_literal(host):
                why = self.rules.refusal(host)
                if why is not None:
                    raise AddressRefused(
                        url, f"{host} is not fetched: {why} address{self.rules.way_in(host)}"
                    )
            else:
                await self._resolver.resolve(host, parts.port or 0)
        except AddressRefused as exc:
            exc.url = url
            raise
        except OSError as exc:
            raise FetchFailed(url, f"name not found: {host}", "dns") from exc

    def _through(self, url: str, proxy: Proxy) -> dict[str, Any]:
        """:raises AddressRefused: the proxy must not be asked for this host
        :raises FetchFailed: the proxy itself must not be asked"""
        host = urlsplit(url).hostname or ""
        why = name_refusal(host, self.rules.allowed)
        if why is None and self.rules.loopback_only:
            why = "through a proxy, and the delay is 0"
        if why is not None:
            raise AddressRefused(url, f"{host} is not asked for through a proxy ({why})")
        try:
            self.rules.check_proxy(proxy)
        except ValueError as exc:
            raise FetchFailed(url, str(exc), "connect") from exc
        own = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else None
        return {"proxy": yarl.URL(proxy.url), "proxy_headers": own}

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        declared, allowed = response.headers.get("Content-Length", ""), self.rules.max_bytes
        if is_digits(declared) and whole_number(declared, allowed) is None:
            raise DecodeError("size", f"{declared[:20]} bytes announced, {allowed} are allowed")
        decoder = PacedDecoder(response.headers.get("Content-Encoding"), self.rules.max_bytes)
        async for chunk in response.content.iter_any():
            await decoder.feed(chunk)
        return decoder.finish()

    async def close(self) -> None:
        await self._session.close()


def _proxy_failed(url: str, proxy: Proxy | None, why: str) -> FetchFailed:
    """The site was not asked; its URL comes again like one whose connection failed."""
    return FetchFailed(url, f"proxy {proxy.url if proxy else ''} failed: {why}", "connect")


def _fallback_authorities() -> str | None:
    """None = the system's. Bare containers and some Python builds have none: then
    certifi's, if it is there."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())):
        return None
    try:
        import certifi
    except ImportError:
        return None
    return certifi.where()


def _proxy_error(url: str, proxy: Proxy, exc: Exception) -> FetchError | None:
    """The error that a proxy is to blame for; None: it is not the proxy's."""
    if isinstance(exc, AddressRefused):  # the target's name was looked at before
        return _proxy_failed(url, proxy, f"its address is refused: {exc}")
    if isinstance(exc, (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)):
        said = getattr(exc, "status", None) or getattr(exc, "os_error", "")
        return _proxy_failed(url, proxy, f"it answered {said}")
    if isinstance(exc, aiohttp.ClientConnectorDNSError):
        return _proxy_failed(url, proxy, "its name is not known")
    return None


def translate(url: str, exc: Exception, reading: bool, timeout_s: float) -> FetchError:
    """An error of a fetch in our words; one that is said in them already gets its URL.

    :param reading: whether the head of the answer had come already
    """
    if isinstance(exc, FetchError):
        exc.url = url
        return exc
    if isinstance(exc, DecodeError):
        kind = TooLarge if exc.reason == "size" else FetchFailed
        return kind(url, str(exc), exc.reason)
    if isinstance(exc, TimeoutError):
        return FetchFailed(url, f"no whole answer in {timeout_s:g} s", "timeout")
    if isinstance(exc, aiohttp.ClientConnectorDNSError):
        return FetchFailed(url, f"name is not known: {exc.os_error}", "dns")
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        return CertificateRefused(url, exc.certificate_error)
    if isinstance(exc, aiohttp.ClientSSLError):
        return FetchFailed(url, f"TLS failed: {exc}", "tls")
    if isinstance(exc, aiohttp.NonHttpUrlClientError):
        return FetchRefused(url, f"not a URL that can be fetched: {exc}", "scheme")
    if isinstance(exc, (aiohttp.InvalidURL, ValueError)):
        host = url.partition("//")[2].partition("/")[0]
        # 2130706433 and 127.1 are ways of writing 127.0.0.1 that only attackers use
        numeric = is_digits(host.partition(":")[0].replace(".", ""))
        return FetchRefused(
            url, f"not a URL that can be fetched: {exc}", "ssrf" if numeric else "scheme"
        )
    if isinstance(exc, aiohttp.ClientConnectorError):
        return FetchFailed(url, f"connection failed: {exc.os_error}", "connect")
    if reading:
        return FetchFailed(url, f"answer broke off: {exc}", "truncated")
    if isinstance(exc, aiohttp.ClientResponseError):
        return FetchFailed(url, f"answer is not HTTP: {exc.message}", "protocol")
    return FetchFailed(
        url, f"connection broke off before an answer: {exc or type(exc).__name__}", "connect"
    )
