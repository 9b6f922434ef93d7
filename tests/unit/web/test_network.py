"""Address rules: what may be connected to, and overrides of name resolution."""

from __future__ import annotations

import pytest

from newscrawler.fetch import address_guard

LOOPBACK = address_guard.parse_networks("127.0.0.0/8")

REFUSED = [
    ("127.0.0.1", "loopback"),
    ("127.255.255.255", "loopback"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private"),
    ("172.16.0.0", "private"),
    ("172.31.255.255", "private"),
    ("192.168.0.1", "private"),
    ("169.254.169.254", "link-local"),
    ("100.64.0.0", "carrier-grade NAT"),
    ("100.127.255.255", "carrier-grade NAT"),
    ("100.100.100.200", "carrier-grade NAT"),
    ("192.0.0.192", "reserved"),
    ("168.63.129.16", "cloud metadata"),
    ("0.0.0.0", "this host"),
    ("0.1.2.3", "this host"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("255.255.255.255", "reserved"),
    ("240.0.0.1", "reserved"),
    ("198.18.0.1", "benchmarking"),
    ("::", "this host"),
    ("::1", "loopback"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:10.1.2.3", "private"),
    ("::ffff:0:127.0.0.1", "loopback"),
    ("::7f00:1", "loopback"),
    ("64:ff9b::a9fe:a9fe", "link-local"),
    ("64:ff9b:1::1", "reserved"),
    ("2002:7f00:1::", "loopback"),
    ("2002:c0a8:101::1", "private"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"),
    ("2001:db8::1", "documentation"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "private"),
    ("fe80::1%eth0", "link-local"),
    ("ff02::1", "multicast"),
    ("4000::1", "reserved"),
    ("news.example", "not an address"),
    ("", "not an address"),
]

PUBLIC = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "169.253.255.255",
    "223.255.255.255",
    "168.63.129.17",
    "2606:4700::1111",
    "2404:6800:4003::200e",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
]


@pytest.mark.parametrize(("ip", "why"), REFUSED)
def test_special_addresses_are_refused_with_their_reason(ip: str, why: str) -> None:
    assert address_guard.refusal(ip) == why


@pytest.mark.parametrize("ip", PUBLIC)
def test_public_addresses_may_be_fetched(ip: str) -> None:
    assert address_guard.refusal(ip) is None


@pytest.mark.parametrize(
    ("ip", "open_"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::ffff:127.0.0.1", True),
        ("::1", False),
        ("10.0.0.1", False),
    ],
)
def test_allowed_networks_open_exactly_their_range(ip: str, open_: bool) -> None:
    assert (address_guard.refusal(ip, LOOPBACK) is None) is open_


@pytest.mark.parametrize(
    "text", ["127.0.0.1/8", "loopback", "127.0.0.0/8;10.0.0.0/8", "300.0.0.0/8"]
)
def test_a_wrong_network_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="ALLOWED_PRIVATE_NETWORKS"):
        address_guard.parse_networks(text)


def test_override_finds_exact_names_before_the_star() -> None:
    overrides = address_guard.parse_overrides(
        "News.example=127.0.1.2:8443, *=127.0.0.1:9000, six.example=[::1]:81, keep.example=127.0.0.9"
    )
    assert overrides.lookup("news.example", 443) == ("127.0.1.2", 8443)
    assert overrides.lookup("other.example", 443) == ("127.0.0.1", 9000)
    assert overrides.lookup("six.example", 80) == ("::1", 81)
    assert overrides.lookup("keep.example", 443) == ("127.0.0.9", 443)
    assert overrides.all_names
    assert not address_guard.parse_overrides("")
    assert address_guard.parse_overrides("a.example=127.0.0.1").lookup("b.example", 80) is None


@pytest.mark.parametrize(
    "text",
    ["*=10.0.0.1:80", "a.example=8.8.8.8:53", "a.example=0.0.0.0:80", "a.example=[fe80::1]:80"],
)
def test_override_off_this_machine_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a loopback address"):
        address_guard.parse_overrides(text)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:80",
        "a.example=localhost:80",
        "=127.0.0.1:80",
        "a.example=127.0.0.1:0",
        "a=127.0.0.1:70000",
    ],
)
def test_malformed_override_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not host=ip:port"):
        address_guard.parse_overrides(text)


def test_override_must_be_open_to_the_guard() -> None:
    overrides = address_guard.parse_overrides("*=127.0.0.1:9000")
    address_guard.check_overrides_open(overrides, LOOPBACK)
    with pytest.raises(ValueError, match="ALLOWED_PRIVATE_NETWORKS=127"):
        address_guard.check_overrides_open(overrides, ())


@pytest.mark.parametrize(
    ("host", "text", "loopback"),
    [
        ("127.0.3.4:8080", "", True),
        ("127.0.3.4", "", True),
        ("[::1]:80", "", True),
        ("[::ffff:127.0.0.1]:80", "", True),
        ("vnexpress.net", "", False),
        ("vnexpress.net", "*=127.0.0.1:9000", True),
        ("vnexpress.net:443", "vnexpress.net=127.0.0.1", True),
        ("dantri.com.vn", "vnexpress.net=127.0.0.1", False),
        ("8.8.8.8", "*=127.0.0.1:9000", False),  # a literal address is never overridden
    ],
)
def test_loopback_hosts_are_known_without_asking_dns(host: str, text: str, loopback: bool) -> None:
    assert address_guard.is_loopback_host(host, address_guard.parse_overrides(text)) is loopback
