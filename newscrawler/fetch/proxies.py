"""Which proxy a fetch goes through, and which names it may be asked for. Pure.

The variables are those that curl and Scrapy read: HTTP_PROXY, HTTPS_PROXY, NO_PROXY. A proxy
resolves names itself, so the address guard cannot look at where a name leads: it is asked for
public names only.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from newscrawler.fetch import address_guard

#: Ends of names that are no public ones: RFC 6761, RFC 6762, RFC 8375, and what
#: networks use inside.
_PRIVATE_ENDS = frozenset(
    (
        "localhost",
        "local",
        "internal",
        "intranet",
        "lan",
        "home",
        "corp",
        "private",
        "localdomain",
        "arpa",
        "onion",
    )
)
# 127.1, 0x7f000001, 2130706433: ways of writing an address that a resolver may understand
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.ASCII)
# 10.0.0.1.nip.io, 10-0-0-1.sslip.io: public names that lead where they say
_ADDRESS_INSIDE = re.compile(
    r"(?<![0-9])([0-9]{1,3})[.-]([0-9]{1,3})[.-]([0-9]{1,3})[.-]([0-9]{1,3})(?![0-9])", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy. Its password stands in no text that is made of it."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def authorization(self) -> str:
        """Apart from the URL, so that no error or log line repeats it; "" = none."""
        if not self.user:
            return ""
        return "Basic " + b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")


@dataclass(frozen=True, slots=True)
class Proxies:
    """``by_scheme``: http and https -> proxy; ``bypass``: entries of NO_PROXY, lower case."""

    by_scheme: Mapping[str, Proxy] = field(default_factory=dict)
    bypass: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.by_scheme)

    def of(self, url: str) -> Proxy | None:
        """The proxy that a URL is fetched through; None = directly. This machine is never asked
        for through a proxy."""
        if not self.by_scheme:
            return None
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        if host == "localhost" or (address_guard.is_literal(host) and ip_address(host).is_loopback):
            return None
        if any(_is_bypassed(host, parts.port, entry) for entry in self.bypass):
            return None
        return self.by_scheme.get(parts.scheme.lower())


def parse_proxy(url: str, name: str = "proxy") -> Proxy:
    """``http://user:password@host:3128``; without a scheme it is http.

    :param name: of the variable, for the error, which does not repeat the value: it
        may hold a password
    :raises ValueError: another scheme, or no host
    """
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
        parts = urlsplit("http://")
    if parts.scheme != "http" or not host:
        raise ValueError(f"{name} must be like http://host:3128 or http://user:password@host:3128")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Proxy(host, port or 80, user, password)


def from_environment(environment: Mapping[str, str]) -> Proxies:
    """:raises ValueError: a variable is wrong; the text names it, not its value"""

    def value(name: str) -> str:
        return (environment.get(name.lower()) or environment.get(name) or "").strip()

    found = {
        scheme: parse_proxy(text, name)
        for scheme, name in (("http", "HTTP_PROXY"), ("https", "HTTPS_PROXY"))
        if (text := value(name))
    }
    bypass = tuple(part.strip().lower() for part in value("NO_PROXY").split(",") if part.strip())
    return Proxies(found, bypass)


def _is_bypassed(host: str, port: int | None, entry: str) -> bool:
    """One entry of NO_PROXY: *, a host and all below it, an address or range, each
    perhaps with a port."""
    if entry == "*":
        return True
    name, wanted = address_guard.split_host(entry)
    if wanted is not None and wanted != port:
        return False
    if address_guard.is_literal(host):
        try:
            return ip_address(host) in ip_network(name, strict=False)
        except (ValueError, TypeError):
            return False
    name = name.removeprefix("*").lstrip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def name_refusal(host: str, allowed: tuple[address_guard.Network, ...] = ()) -> str | None:
    """Why a proxy must not be asked for a host, in a word or two; None when it may.

    :param allowed: private ranges that may be fetched, for hosts that are addresses
    """
    host = host.strip("[]").rstrip(".").lower()
    if address_guard.is_literal(host):
        return address_guard.refusal(host, allowed)
    last = host.rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        return "an address in disguise"
    if "." not in host or last in _PRIVATE_ENDS:
        return "not a public name"
    for match in _ADDRESS_INSIDE.finditer(host):
        inside = ".".join(match.groups())
        if address_guard.is_literal(inside) and address_guard.refusal(inside, allowed) is not None:
            return f"a name of {inside}"
    return None
