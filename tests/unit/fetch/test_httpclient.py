"""Rules of the HTTP client that need no network; what the network does is in
tests/crawl/test_fetch_faults.py."""

from __future__ import annotations

import asyncio
import gzip
import random
import ssl
import threading
from types import SimpleNamespace
from typing import Any

import aiohttp
import certifi
import pytest

from newscrawler.fetch import address_guard, client
from newscrawler.fetch.client import FetchRefused, FetchRules, PacedDecoder, translate
from newscrawler.fetch.decoding import MAX_MEMBERS, DecodeError


def test_a_system_without_authorities_gets_certifis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ssl, "get_default_verify_paths", lambda: SimpleNamespace(cafile=None, capath=None)
    )
    assert client._fallback_authorities() == certifi.where()
    assert len(FetchRules().ssl_context().get_ca_certs()) > 50


def test_certificates_are_checked_by_default() -> None:
    context = FetchRules().ssl_context()
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_with_a_delay_of_0_only_loopback_is_reached() -> None:
    everything = address_guard.parse_networks("127.0.0.0/8,10.0.0.0/8")
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
    ("text", "checked"),
    [("False", False), ("0", False), ("true", True), (True, True), (False, False)],
)
def test_settings_of_a_command_line_are_strings(text: Any, checked: bool) -> None:
    rules = FetchRules.from_settings(settings(DOWNLOAD_VERIFY_CERTIFICATES=text))
    assert (rules.max_bytes, rules.verify_certificates, rules.loopback_only) == (
        1000,
        checked,
        False,
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://127.1/x", "ssrf"), ("http://2130706433:80/", "ssrf"), ("http://a b/", "scheme")],
)
def test_odd_addresses_are_told_from_odd_urls(url: str, reason: str) -> None:
    error = translate(url, aiohttp.InvalidUrlClientError(url), False, 30)
    assert isinstance(error, FetchRefused)
    assert error.reason == reason


# ---------------------------------------------------------------- decoding beside the loop
async def turns_while(work: Any) -> int:
    """How often the event loop came round to something else meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.ensure_future(count())
    await asyncio.sleep(0)
    turns = 0
    try:
        await work
    finally:
        counter.cancel()
    return turns


async def test_a_dear_body_is_decoded_beside_the_event_loop() -> None:
    decoder = PacedDecoder("gzip", 10**7)
    turns = await turns_while(decoder.feed(gzip.compress(b"x" * 1000) * MAX_MEMBERS))
    assert turns > 1, "nothing else ran while the body was decoded"
    assert decoder.finish() == b"x" * 1000 * MAX_MEMBERS


async def test_an_ordinary_page_needs_no_thread() -> None:
    page = random.Random(1).randbytes(30_000)
    before = threading.active_count()
    decoder = PacedDecoder("gzip", 10**7)
    assert await turns_while(decoder.feed(gzip.compress(page))) == 0
    assert (decoder.finish(), threading.active_count()) == (page, before)


@pytest.mark.parametrize("cpu_s", [0.0, 0.005])
async def test_a_body_that_takes_too_much_of_the_cpu_is_given_up(cpu_s: float) -> None:
    decoder = PacedDecoder("gzip, gzip", 10**7, cpu_s=cpu_s)
    body = gzip.compress(gzip.compress(random.Random(2).randbytes(1000)) * (MAX_MEMBERS - 1))
    with pytest.raises(DecodeError, match="of the CPU") as caught:
        await decoder.feed(body)
    assert caught.value.reason == "size"
