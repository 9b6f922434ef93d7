"""The one way out: an aiohttp session that resolves, guards and limits every fetch. No Scrapy here.

Used by the crawl (handlers.GuardedHandler) and by commands that fetch one page (fetching). What it
refuses or fails at leaves as a :class:`FetchError` whose ``reason`` is one word, counted as it is.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import aiohttp
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from newscrawler.web import network
from newscrawler.web.decoding import BodyDecoder, DecodeError

Headers = list[tuple[bytes, bytes]]

# Cut-off for a connection alone, seconds: a host that does not answer the handshake in this time is away.
_CONNECT_S = 10.0
# Idle connections are kept this long, seconds: longer than the delay of an ordinary site, so that its
# next page needs no new TLS handshake; servers close theirs after 5 to 75.
_KEEPALIVE_S = 30.0
# News sites send Content-Security-Policy and Set-Cookie lines of 10-20 kB; aiohttp's default is 8190.
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
    """A fetch that gave no answer. ``reason``: ssrf, size, timeout, dns, tls, connect, truncated, bad_encoding,
    scheme or protocol (what answered does not speak HTTP)."""

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
        super().__init__(url, f"certificate refused ({self.problem}): {getattr(error, 'verify_message', '') or error}")


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
    allowed: tuple[network.Network, ...] = ()  # private ranges that may be fetched
    overrides: network.Overrides = field(default_factory=network.Overrides)
    loopback_only: bool = False  # with a delay of 0: nothing but this machine may be reached

    @classmethod
    def from_settings(cls, get: Mapping[str, Any]) -> FetchRules:
        """From the names of settings.py. ``get`` is anything with ``[name]``, e.g. Scrapy's Settings.

        :raises ValueError: a setting is wrong; the text names it
        """
        rules = cls(
            max_bytes=int(get["DOWNLOAD_MAXSIZE"]),
            timeout_s=float(get["DOWNLOAD_TIMEOUT"]),
            connections=int(get["CONCURRENT_REQUESTS"]),
            connections_per_host=int(get["CONCURRENT_REQUESTS_PER_DOMAIN"]),
            dns_ttl_s=float(get["DNS_TTL_S"]),
            verify_certificates=str(get["DOWNLOAD_VERIFY_CERTIFICATES"]).lower() not in ("false", "0", "no", "off"),
            ca_file=get["EXTRA_CA_FILE"] or "",
            allowed=network.parse_networks(get["ALLOWED_PRIVATE_NETWORKS"] or ""),
            overrides=network.parse_overrides(get["RESOLVE_OVERRIDE"] or ""),
            loopback_only=float(get["DOWNLOAD_DELAY"]) <= 0,
        )
        if rules.max_bytes <= 0 or rules.timeout_s <= 0:
            raise ValueError("DOWNLOAD_MAXSIZE and DOWNLOAD_TIMEOUT must be above 0: a fetch needs its limits")
        network.check_overrides_open(rules.overrides, rules.allowed)
        rules.ssl_context()
        return rules

    def ssl_context(self) -> ssl.SSLContext:
        """:raises ValueError: EXTRA_CA_FILE cannot be read"""
        return _ssl_context(self.ca_file, self.verify_certificates)

    def refusal(self, ip: str) -> str | None:
        """Why this address may not be connected to; None when it may."""
        why = network.refusal(ip, self.allowed)
        if why is None and self.loopback_only and not ipaddress.ip_address(ip.partition("%")[0]).is_loopback:
            return "not loopback, and the delay is 0"
        return why


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
            raise AddressRefused(host, f"{host} leads to {found[0][0]} ({self._rules.refusal(found[0][0])})")
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


@dataclass(slots=True)
class Answer:
    """What a site sent. ``headers`` as received, also the content coding; ``body`` without it."""

    url: str
    status: int
    headers: Headers
    body: bytes
    latency_s: float  # from the request to the head of the answer


class HttpClient:
    """Made and closed inside a running event loop. One request, one answer: no cookies, redirects, proxies, retries
    of its own (but an idle connection that the server has closed meanwhile is replaced)."""

    def __init__(self, rules: FetchRules) -> None:
        self.rules = rules
        self._timeout = aiohttp.ClientTimeout(total=rules.timeout_s, sock_connect=min(_CONNECT_S, rules.timeout_s))
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(rules),
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
        # aiohttp asks a second time by itself when a kept connection was dropped: a fetch that the gate knows
        # nothing of. A test sees it from the site's side; there is no public switch.
        self._session._retry_connection = False

    def _socket(self, addr_info: Any) -> socket.socket:
        """The last door: every connection passes here with its real address, literal ones for the first time."""
        family, kind, proto, _, address = addr_info
        why = self.rules.refusal(address[0])
        if why is not None:
            raise AddressRefused(address[0], f"address is refused ({why})")
        return socket.socket(family, kind, proto)

    async def fetch(
        self, url: str, headers: Iterable[tuple[str, str]], *, method: str = "GET", body: bytes | None = None
    ) -> Answer:
        """:raises FetchError: no whole answer; see its ``reason``"""
        reading = False
        start = time.monotonic()
        try:
            # encoded: the URL is sent as the frontier knows it, yarl would respell %7E and the like
            target = yarl.URL(url, encoded=True)
            async with self._session.request(
                method, target, headers=headers, data=body, timeout=self._timeout, allow_redirects=False
            ) as response:
                latency_s = time.monotonic() - start
                reading = True
                return Answer(url, response.status, list(response.raw_headers), await self._read(response), latency_s)
        except FetchError as exc:
            exc.url = url
            raise
        except DecodeError as exc:
            kind = TooLarge if exc.reason == "size" else FetchFailed
            raise kind(url, str(exc), exc.reason) from exc
        except (aiohttp.ClientError, OSError, ValueError) as exc:  # TimeoutError is an OSError
            raise translate(url, exc, reading, self.rules.timeout_s) from exc

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        declared = response.headers.get("Content-Length", "")
        if declared.isdigit() and int(declared) > self.rules.max_bytes:
            raise DecodeError("size", f"{declared} bytes announced, {self.rules.max_bytes} are allowed")
        decoder = BodyDecoder(response.headers.get("Content-Encoding"), self.rules.max_bytes)
        async for chunk in response.content.iter_any():
            decoder.feed(chunk)
        return decoder.finish()

    async def close(self) -> None:
        await self._session.close()


def _fallback_authorities() -> str | None:
    """None = the system's. Bare containers and some Python builds have none: then certifi's, if it is there."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())):
        return None
    try:
        import certifi
    except ImportError:
        return None
    return certifi.where()


def translate(url: str, exc: Exception, reading: bool, timeout_s: float) -> FetchError:
    """An error of aiohttp in our words.

    :param reading: whether the head of the answer had come already
    """
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
        numeric = host.partition(":")[0].replace(".", "").isdigit()
        return FetchRefused(url, f"not a URL that can be fetched: {exc}", "ssrf" if numeric else "scheme")
    if isinstance(exc, aiohttp.ClientConnectorError):
        return FetchFailed(url, f"connection failed: {exc.os_error}", "connect")
    if reading:
        return FetchFailed(url, f"answer broke off: {exc}", "truncated")
    if isinstance(exc, aiohttp.ClientResponseError):
        return FetchFailed(url, f"answer is not HTTP: {exc.message}", "protocol")
    return FetchFailed(url, f"connection broke off before an answer: {exc or type(exc).__name__}", "connect")
