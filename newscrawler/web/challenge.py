"""Pages that ask for proof of a browser instead of showing news. Pure. They are
named, never answered."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: A cookie page is a script and nothing else; the largest seen has under 2 kB.
SMALL_BYTES = 2_500
_COOKIE_SCRIPT = re.compile(
    rb"document\s*\.\s*cookie\s*=|location\s*\.\s*(?:reload|href|replace)"
    rb"|window\s*\.\s*location\s*=",
    re.I,
)
#: What stands within one tag ends at the next "<" too: with [^>] alone a page of opened tags that
#: are never closed is read to its end from each of them.
_META_REFRESH = re.compile(rb"<meta[^<>]+http-equiv\s*=\s*[\"']?refresh", re.I)
_PARAGRAPH = re.compile(rb"<(?:p|article|h1)[\s>]", re.I)
_VENDOR = (
    (
        re.compile(rb"<title>\s*(?:just a moment|attention required|checking your browser)", re.I),
        "cloudflare",
    ),
    (re.compile(rb"cf-chl-|cdn-cgi/challenge-platform|__cf_chl", re.I), "cloudflare"),
    (re.compile(rb"_incapsula_resource|incapsula incident id", re.I), "incapsula"),
    (re.compile(rb"captcha-delivery\.com|geo\.captcha", re.I), "datadome"),
    (
        re.compile(
            rb"errors\.edgesuite\.net|sec-if-cpt-container|sec-bc-tile|[?&]bm-verify=", re.I
        ),
        "akamai",
    ),
    (re.compile(rb"px-captcha|window\._pxAppId", re.I), "perimeterx"),
    (re.compile(rb"AwsWafIntegration|window\.gokuProps", re.I), "aws-waf"),
    (re.compile(rb"sucuri_cloudproxy_js|sucuri website firewall", re.I), "sucuri"),
    (re.compile(rb"ddos-guard|anti-?ddos", re.I), "anti-ddos"),
)
_CAPTCHA = re.compile(
    rb"g-recaptcha|h-captcha|hcaptcha\.com|cf-turnstile|<input[^<>]+captcha", re.I
)
#: Bigger pages may carry a captcha in a comment form: that is no challenge.
_PAGE_BYTES = 40_000
#: Answers that lead elsewhere or say that there is nothing.
_NO_PAGE = (301, 302, 303, 304, 307, 308, 404, 410)


def challenge_reason(
    status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> str | None:
    """A word for the kind of challenge, None for an ordinary answer.

    ``cookie``: a small 200 answer without a paragraph whose script sets a cookie or reloads;
    ``captcha``; or the name of the protection where it names itself.
    """
    named = {name.lower(): value for name, value in (headers or {}).items()}
    if named.get("cf-mitigated", "").lower() == "challenge":
        return "cloudflare"
    if not body or len(body) > _PAGE_BYTES or status in _NO_PAGE:
        return None
    if len(_PARAGRAPH.findall(body)) <= 3:
        for pattern, name in _VENDOR:
            if pattern.search(body):
                return name
        if _CAPTCHA.search(body):
            return "captcha"
    if status != 200 or len(body) > SMALL_BYTES or _PARAGRAPH.search(body):
        return None
    return "cookie" if _reloads(body) else None


def _reloads(body: bytes) -> bool:
    """A script that sets a cookie or moves on, or a refresh beside a script."""
    if _COOKIE_SCRIPT.search(body):
        return True
    return b"<script" in body.lower() and _META_REFRESH.search(body) is not None
