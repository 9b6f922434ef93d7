"""Rules of the HTTP client that need no network; what the network does is in tests/crawl/test_fetch_faults.py."""

from __future__ import annotations

import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import certifi
import pytest

from newscrawler import httpclient
from newscrawler.httpclient import FetchRefused, FetchRules, translate
from newscrawler.web import network


def test_a_system_without_authorities_gets_certifis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: SimpleNamespace(cafile=None, capath=None))
    assert httpclient._fallback_authorities() == certifi.where()
    assert len(FetchRules().ssl_context().get_ca_certs()) > 50


def test_certificates_are_checked_by_default() -> None:
    context = FetchRules().ssl_context()
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_with_a_delay_of_0_only_loopback_is_reached() -> None:
    everything = network.parse_networks("127.0.0.0/8,10.0.0.0/8")
    rude = FetchRules(allowed=everything, loopback_only=True)
    assert rude.refusal("127.0.0.9") is None
    assert rude.refusal("10.0.0.1") == rude.refusal("1.1.1.1") == "not loopback, and the delay is 0"
    assert FetchRules(allowed=everything).refusal("10.0.0.1") is None


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "DOWNLOAD_MAXSIZE": "1000",
        "DOWNLOAD_TIMEOUT": "30",
        "CONCURRENT_REQUESTS": 32,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DNS_TTL_S": 300,
        "DOWNLOAD_VERIFY_CERTIFICATES": True,
        "EXTRA_CA_FILE": "",
        "ALLOWED_PRIVATE_NETWORKS": "",
        "RESOLVE_OVERRIDE": "",
        "DOWNLOAD_DELAY": "2.0",
        **changes,
    }


@pytest.mark.parametrize(
    ("text", "checked"), [("False", False), ("0", False), ("true", True), (True, True), (False, False)]
)
def test_settings_of_a_command_line_are_strings(text: Any, checked: bool) -> None:
    rules = FetchRules.from_settings(settings(DOWNLOAD_VERIFY_CERTIFICATES=text))
    assert (rules.max_bytes, rules.verify_certificates, rules.loopback_only) == (1000, checked, False)


@pytest.mark.parametrize(
    ("url", "reason"), [("http://127.1/x", "ssrf"), ("http://2130706433:80/", "ssrf"), ("http://a b/", "scheme")]
)
def test_odd_addresses_are_told_from_odd_urls(url: str, reason: str) -> None:
    error = translate(url, aiohttp.InvalidUrlClientError(url), False, 30)
    assert isinstance(error, FetchRefused)
    assert error.reason == reason
