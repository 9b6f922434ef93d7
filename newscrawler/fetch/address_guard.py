"""Which addresses may be connected to, and where names are looked up instead of DNS. Pure.

The guard is asked with the address of the socket, after every way of writing or hiding it (names,
literals, IPv4 inside IPv6) has been resolved, so a page cannot lead the crawler to the inside of
the network that it runs in (SSRF).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from newscrawler.utils.numbers import whole_number

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Written out rather than taken from ipaddress.is_global: its answers differ between Python
# versions. Source: the IANA special-purpose address registries for IPv4 and IPv6, read in 2026.
_SPECIAL_V4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this host"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "carrier-grade NAT"),  # Alibaba's metadata service is 100.100.100.200
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),  # the metadata service of most clouds is 169.254.169.254
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),  # Oracle's metadata service is 192.0.0.192
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "reserved"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("168.63.129.16/32", "cloud metadata"),  # Azure's, in the middle of public space
)
_GLOBAL_V6 = ip_network("2000::/3")  # all that IANA has ever given out as global unicast
_SPECIAL_V6: tuple[tuple[str, str], ...] = (
    ("::1/128", "loopback"),
    ("::/128", "this host"),
    ("fc00::/7", "private"),  # AWS' metadata service is fd00:ec2::254
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private"),
    ("ff00::/8", "multicast"),
    ("2001::/23", "reserved"),  # Teredo among them: an IPv4 address of the sender's choice inside
    ("2001:db8::/32", "documentation"),
    ("3fff::/20", "documentation"),
)
_NETS_V4 = tuple((IPv4Network(net), why) for net, why in _SPECIAL_V4)
_NETS_V6 = tuple((IPv6Network(net), why) for net, why in _SPECIAL_V6)
# IPv6 ranges that carry an IPv4 address, and how far from the right end it stands, in bits.
_CARRIERS: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64: what DNS64 answers on an IPv6-only network
    (IPv6Network("2002::/16"), 80),  # 6to4
    (IPv6Network("::/96"), 0),  # IPv4-compatible, long dead
)


def parse_networks(text: str) -> tuple[Network, ...]:
    """``"127.0.0.0/8, fd00::/8"`` -> networks.

    :raises ValueError: an entry is not a CIDR range
    """
    networks = []
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
        try:
            networks.append(ip_network(part))
        except ValueError as exc:
            raise ValueError(
                f"ALLOWED_PRIVATE_NETWORKS: {part!r} is not a range like 127.0.0.0/8 ({exc})"
            ) from exc
    return tuple(networks)


def _unwrap(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, else itself."""
    if (
        isinstance(address, IPv6Address) and int(address) > 1
    ):  # :: and ::1 are not IPv4-compatible ones
        for net, shift in _CARRIERS:
            if address in net:
                return IPv4Address(int(address) >> shift & 0xFFFFFFFF)
    return address


def _special(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((why for net, why in _NETS_V4 if address in net), None)
    why = next((why for net, why in _NETS_V6 if address in net), None)
    return why or (None if address in _GLOBAL_V6 else "reserved")


@lru_cache(maxsize=4096)
def refusal(ip: str, allowed: tuple[Network, ...] = ()) -> str | None:
    """Why this address must not be connected to, in a word or two; None when it may be.

    :param ip: as in a socket address, perhaps with a zone (``fe80::1%eth0``)
    :param allowed: ranges that may be fetched although they are private
    """
    try:
        address = ip_address(ip.partition("%")[0])
    except ValueError:
        return "not an address"
    inner = _unwrap(address)
    if any(
        candidate in net
        for net in allowed
        for candidate in (address, inner)
        if net.version == candidate.version
    ):
        return None
    return _special(inner)


def is_literal(host: str) -> bool:
    """Whether a host is an IP address (brackets allowed), so that no name is looked up for it."""
    try:
        ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


def split_host(host: str) -> tuple[str, int | None]:
    """``"host:8080"`` or ``"[::1]:8080"`` -> host without brackets, and the port or None."""
    if host.startswith("["):
        inner, _, rest = host[1:].partition("]")
        return inner, whole_number(rest[1:])
    name, colon, port = host.rpartition(":")
    number = whole_number(port)
    if colon and number is not None and ":" not in name:
        return name, number
    return host, None


@dataclass(frozen=True, slots=True)
class Overrides:
    """Names that are looked up here instead of in DNS: host -> loopback
    address, and port or None."""

    targets: dict[str, tuple[str, int | None]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.targets)

    @property
    def all_names(self) -> bool:
        """Whether no name at all is looked up in DNS."""
        return "*" in self.targets

    def lookup(self, host: str, port: int) -> tuple[str, int] | None:
        """Address and port to connect to for a name; None = ask DNS. A literal
        address is not a name."""
        target = self.targets.get(host) or self.targets.get("*")
        if target is None:
            return None
        return target[0], target[1] or port


def parse_overrides(text: str) -> Overrides:
    """``"news.example=127.0.1.2:8443, *=127.0.0.1:9000"`` -> overrides; without a port it is kept.

    :raises ValueError: an entry is malformed, or its target is not on this machine
    """
    targets: dict[str, tuple[str, int | None]] = {}
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
        name, equals, target = part.partition("=")
        name = name.strip().lower()
        ip, port = split_host(target.strip())
        if (
            not equals
            or not name
            or not is_literal(ip)
            or (port is not None and not 0 < port < 65536)
        ):
            raise ValueError(
                f"RESOLVE_OVERRIDE: {part!r} is not host=ip:port (as in"
                " news.example=127.0.0.1:8443)"
            )
        if not ip_address(ip).is_loopback:
            raise ValueError(
                f"RESOLVE_OVERRIDE: {part!r} leads to {ip}, which is not a loopback address; "
                "the setting is for simulated webs on this machine only"
            )
        targets[name] = (ip, port)
    return Overrides(targets)


def check_overrides_open(overrides: Overrides, allowed: Sequence[Network]) -> None:
    """An override that the address guard would refuse on every fetch is a mistake of the set-up.

    :raises ValueError: a target is not inside ``allowed``
    """
    for name, (ip, _) in overrides.targets.items():
        if refusal(ip, tuple(allowed)) is not None:
            raise ValueError(
                f"RESOLVE_OVERRIDE sends {name} to {ip}, but ALLOWED_PRIVATE_NETWORKS does not open"
                f" {ip}; set ALLOWED_PRIVATE_NETWORKS=127.0.0.0/8"
            )


def is_loopback_host(host: str, overrides: Overrides) -> bool:
    """Whether fetching this host (perhaps with a port) can only reach this machine."""
    name = split_host(host.lower())[0]
    if is_literal(name):
        return _unwrap(ip_address(name.partition("%")[0])).is_loopback
    return overrides.lookup(name, 0) is not None
