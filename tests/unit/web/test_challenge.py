"""Challenge pages are named; pages are not called challenges."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from newscrawler.web.challenge import SMALL_BYTES, challenge_reason

COOKIE_PAGE = (
    b'<html><script>document.cookie="D1N=0a1b2c;path=/";window.location.reload();</script></html>'
)
ARTICLE = (
    b"<html><body><h1>Tin</h1>"
    + b"<p>M\xe1\xbb\x99t \xc4\x91o\xe1\xba\xa1n.</p>" * 20
    + b"</body></html>"
)


@pytest.mark.parametrize(
    "body",
    [
        COOKIE_PAGE,
        b"<html><body><script>location.href='/?d=1'</script></body></html>",
        b"<script>window.location = '/a?b'</script>",
        b"<html><head><meta http-equiv='refresh' content='0'><script>f()</script></head></html>",
    ],
)
def test_a_small_page_that_sets_a_cookie_or_reloads_is_a_challenge(body: bytes) -> None:
    assert challenge_reason(200, body) == "cookie"


@pytest.mark.parametrize("extra", [b"<p>Tin</p>", b"<h1>Tin</h1>", b"<article>"])
def test_a_small_page_with_text_is_none(extra: bytes) -> None:
    assert challenge_reason(200, COOKIE_PAGE.replace(b"</html>", extra + b"</html>")) is None


def test_the_size_limit_is_exact() -> None:
    page = COOKIE_PAGE + b" " * (SMALL_BYTES - len(COOKIE_PAGE))
    assert challenge_reason(200, page) == "cookie"
    assert challenge_reason(200, page + b" ") is None


@pytest.mark.parametrize("status", [301, 302, 404, 410])
def test_a_redirect_or_a_missing_page_is_none(status: int) -> None:
    assert challenge_reason(status, COOKIE_PAGE) is None


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (
            b"<html><title>Just a moment...</title><script src=/cdn-cgi/challenge-platform/x></script>",
            "cloudflare",
        ),
        (b"<iframe src='/_Incapsula_Resource?x'></iframe>", "incapsula"),
        (b"<html><script src=https://geo.captcha-delivery.com/c.js></script></html>", "datadome"),
        (b"<html><title>DDoS-Guard</title></html>", "anti-ddos"),
        (b"<H1>Access Denied</H1>https&#58;//errors.edgesuite.net/18.1", "akamai"),
        (b"<div id='sec-if-cpt-container'></div><script src=/x/y></script>", "akamai"),
        (b"<div id='px-captcha'></div><script>window._pxAppId='X'</script>", "perimeterx"),
        (
            b"<script>window.gokuProps={}</script><script>AwsWafIntegration.getToken()</script>",
            "aws-waf",
        ),
        (b"<script>var sucuri_cloudproxy_js='';</script>", "sucuri"),
        (b"<html><div class='g-recaptcha'></div></html>", "captcha"),
        (b"<form><input name='captcha'></form>", "captcha"),
    ],
)
@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_protection_that_names_itself_is_named(body: bytes, name: str, status: int) -> None:
    assert challenge_reason(status, body) == name


def test_the_header_is_enough() -> None:
    assert challenge_reason(403, b"x", {"CF-Mitigated": "challenge"}) == "cloudflare"


@pytest.mark.parametrize(
    "body", [b"", ARTICLE, ARTICLE.replace(b"</body>", b"<div class=g-recaptcha></div></body>")]
)
def test_an_ordinary_answer_is_none(body: bytes) -> None:
    assert challenge_reason(200, body) is None


def test_no_stored_page_is_called_a_challenge(shared_pages: Path) -> None:
    pages = sorted((shared_pages / "html").glob("*.html.gz"))[::5]
    assert len(pages) > 150
    named = {
        p.name: r for p in pages if (r := challenge_reason(200, gzip.decompress(p.read_bytes())))
    }
    assert named == {}
