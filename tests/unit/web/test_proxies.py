"""Which proxy a URL goes through, and which hosts a proxy may be asked for."""

from __future__ import annotations

from base64 import b64encode

import pytest
from scrapy import Request

from newscrawler.fetch import address_guard
from newscrawler.fetch.proxies import Proxy, from_environment, name_refusal, parse_proxy
from newscrawler.handlers import _proxy_of

PROXY = "http://p.example.com:3128"
BOTH = {"HTTP_PROXY": PROXY, "https_proxy": "http://s.example.com:3129"}


@pytest.mark.parametrize(
    ("environment", "url", "through"),
    [
        ({}, "http://a.vn/", None),
        (BOTH, "http://a.vn/", PROXY),
        (BOTH, "https://a.vn/", "http://s.example.com:3129"),
        ({"HTTP_PROXY": PROXY}, "https://a.vn/", None),
        ({"HTTP_PROXY": "p.example.com:3128"}, "http://a.vn/", PROXY),
        ({"HTTP_PROXY": "http://x.example.com", "http_proxy": PROXY}, "http://a.vn/", PROXY),
        ({"HTTP_PROXY": "http://x.example.com"}, "http://a.vn/", "http://x.example.com:80"),
        ({**BOTH, "NO_PROXY": "a.vn"}, "http://a.vn/", None),
        ({**BOTH, "NO_PROXY": "a.vn"}, "http://tin.a.vn/", None),
        ({**BOTH, "no_proxy": ".a.vn, b.vn"}, "http://tin.b.vn/", None),
        ({**BOTH, "NO_PROXY": "*.a.vn"}, "http://tin.a.vn/", None),
        ({**BOTH, "NO_PROXY": "a.vn"}, "http://xa.vn/", PROXY),
        ({**BOTH, "NO_PROXY": "a.vn:8080"}, "http://a.vn/", PROXY),
        ({**BOTH, "NO_PROXY": "a.vn:8080"}, "http://a.vn:8080/", None),
        ({**BOTH, "NO_PROXY": "93.184.0.0/16"}, "http://93.184.216.34/", None),
        ({**BOTH, "NO_PROXY": "93.184.0.0/16"}, "http://93.185.216.34/", PROXY),
        ({**BOTH, "NO_PROXY": "*"}, "http://a.vn/", None),
        (BOTH, "http://127.0.2.1/", None),
        (BOTH, "http://[::1]/", None),
        (BOTH, "http://localhost/", None),
    ],
)
def test_the_environment_decides(
    environment: dict[str, str], url: str, through: str | None
) -> None:
    proxy = from_environment(environment).of(url)
    assert (proxy.url if proxy else None) == through


def test_a_password_is_in_no_text_and_a_wrong_value_is_not_repeated() -> None:
    proxy = parse_proxy("http://ai:m%40t-khau@p.example.com:3128")
    assert (proxy.user, proxy.password) == ("ai", "m@t-khau")
    shown = f"{proxy} {proxy!r} {proxy.url} {from_environment({'HTTP_PROXY': 'http://a:m%40t-khau@b.vn'})!r}"
    assert "khau" not in shown
    for wrong in (
        "socks5://a:bimat@b.vn",
        "https://a:bimat@b.vn",
        "http://",
        "http://a:bimat@b:port",
    ):
        with pytest.raises(ValueError, match="HTTPS_PROXY must be like") as caught:
            from_environment({"HTTPS_PROXY": wrong})
        assert "bimat" not in str(caught.value)
    assert parse_proxy("http://[2001:4860::1]:3128") == Proxy("2001:4860::1", 3128)
    assert parse_proxy("http://[2001:4860::1]:3128").url == "http://[2001:4860::1]:3128"


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST.", "intranet", "router.local", "db.internal", "metadata.google.internal", "nas.lan",
        "printer.home.arpa", "127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "[fd00::1]", "::ffff:10.0.0.1",
        "2130706433", "127.1", "0x7f000001", "0x7f.1", "010.0.0.1", "10.0.0.1.nip.io", "a.10-0-0-1.sslip.io",
        "169.254.169.254.nip.io", "",
    ],
)  # fmt: skip
def test_hosts_that_no_proxy_is_asked_for(host: str) -> None:
    assert name_refusal(host)


@pytest.mark.parametrize(
    "host", ["vnexpress.net", "www.24h.com.vn", "a.xn--p1ai", "1.1.1.1", "1-1-1-1.example.com", "tin-2026-11-20.vn"]
)  # fmt: skip
def test_hosts_that_a_proxy_may_be_asked_for(host: str) -> None:
    assert name_refusal(host) is None


def test_a_private_address_may_be_opened_by_name_only() -> None:
    opened = address_guard.parse_networks("10.1.2.3/32")
    assert name_refusal("10.1.2.3", opened) is None
    assert name_refusal("10.1.2.4", opened) and name_refusal("localhost", opened)


def test_a_requests_own_proxy_comes_with_the_user_that_scrapy_set_apart() -> None:
    assert _proxy_of(Request("http://a.vn/")) is None
    plain = Request("http://a.vn/", meta={"proxy": PROXY})
    assert _proxy_of(plain) == Proxy("p.example.com", 3128)
    credentials = b"Basic " + b64encode(b"ai:mat-khau")
    with_user = plain.replace(headers={"Proxy-Authorization": credentials})
    assert _proxy_of(with_user) == Proxy("p.example.com", 3128, "ai", "mat-khau")
    with pytest.raises(ValueError, match="must be like"):
        _proxy_of(Request("http://a.vn/", meta={"proxy": "socks5://p.example.com"}))
