"""Who may read: addresses, Host headers, tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable

import pytest

from newscrawler.api.access import (
    Access,
    AccessRefused,
    TokenError,
    access_for,
    make_token,
)

SECRET = "0123456789abcdef" * 2
NOW = 1_800_000_000


def clock() -> float:
    return float(NOW)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_no_secret(host: str) -> None:
    assert access_for(host, "").secret == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "search.example.org"])
def test_another_address_without_a_secret_is_refused_with_what_to_do(host: str) -> None:
    with pytest.raises(AccessRefused, match="set API_TOKEN_SECRET"):
        access_for(host, "")


@pytest.mark.parametrize(("length", "is_refused"), [(31, True), (32, False)])
def test_a_short_secret_is_refused(length: int, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(AccessRefused, match="has 31 characters"):
            access_for("0.0.0.0", "x" * length)
    else:
        assert access_for("0.0.0.0", "x" * length).secret


@pytest.mark.parametrize(
    ("bound", "header", "is_allowed"),
    [
        ("127.0.0.1", "127.0.0.1:8642", True),
        ("127.0.0.1", "localhost:8642", True),
        ("127.0.0.1", "LOCALHOST", True),
        ("127.0.0.1", "[::1]:8642", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "192.168.1.5", False),
        ("127.0.0.1", "", False),
        ("0.0.0.0", "192.168.1.5:8642", True),
        ("0.0.0.0", "evil.example", False),
        ("0.0.0.0", "news.example.org:443", True),
    ],
)
def test_host_headers(bound: str, header: str, is_allowed: bool) -> None:
    rules = Access(secret=SECRET, host=bound, allowed_hosts=frozenset({"news.example.org"}))
    assert rules.host_is_allowed(header) is is_allowed


def test_a_token_is_good_until_it_expires() -> None:
    token = make_token(SECRET, days=1, clock=clock)
    check_token(SECRET, token, clock=lambda: NOW + 86_399)
    with pytest.raises(TokenError, match="expired"):
        check_token(SECRET, token, clock=lambda: NOW + 86_400)


def test_a_token_of_another_secret_is_refused() -> None:
    with pytest.raises(TokenError, match="not signed with this server's secret"):
        check_token("y" * 32, make_token(SECRET, days=1, clock=clock), clock=clock)


def test_a_role_may_do_what_lower_ones_may_and_no_more() -> None:
    check_token(
        SECRET, make_token(SECRET, days=1, role="admin", clock=clock), role="reader", clock=clock
    )
    with pytest.raises(TokenError, match="role is 'reader'"):
        check_token(SECRET, make_token(SECRET, days=1, clock=clock), role="operator", clock=clock)


def check_token(
    secret: str, token: str, *, role: str = "reader", clock: Callable[[], float]
) -> None:
    Access(secret).principal(token, role=role, clock=clock)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _forge(head: object, claims: object, secret: str = "") -> str:
    """A token by hand (RFC 7515), as a library would not make it."""
    signed = ".".join(_encode(json.dumps(part).encode()) for part in (head, claims))
    digest = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{_encode(digest) if secret else ''}"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "a.b.c",
        "....",
        "é.é.é",
        _forge({"alg": "none"}, {"role": "admin", "exp": NOW + 99}),
        _forge({"alg": "none"}, {"role": "admin", "exp": NOW + 99}, SECRET),
        _forge({"alg": "HS256"}, {"role": "reader"}, SECRET),
        _forge({"alg": "HS256"}, {"role": "reader", "exp": "never"}, SECRET),
        _forge({"alg": "HS256"}, {"role": "root", "exp": NOW + 99}, SECRET),
        _forge({"alg": "HS256"}, [], SECRET),
        _forge([], {"role": "reader", "exp": NOW + 99}, SECRET),
        _forge({"alg": "HS512"}, {"role": "reader", "exp": NOW + 99}, SECRET),
        _forge({"alg": "HS256", "crit": ["b64"]}, {"role": "reader", "exp": NOW + 99}, SECRET),
        _encode(b"[" * 100_000) + ".e30." + _encode(b"x"),
    ],
)
def test_forged_and_broken_tokens_are_refused(token: str) -> None:
    with pytest.raises(TokenError):
        check_token(SECRET, token, clock=clock)


def test_a_token_by_hand_is_one_by_the_standard() -> None:
    token = _forge({"alg": "HS256", "typ": "JWT"}, {"role": "reader", "exp": NOW + 99}, SECRET)
    check_token(SECRET, token, clock=clock)
    with pytest.raises(TokenError, match="not signed"):
        check_token(SECRET + "x", token, clock=clock)


def test_changed_claims_break_the_signature() -> None:
    head, claims, signature = make_token(SECRET, days=1, clock=clock).split(".")
    changed = json.loads(base64.urlsafe_b64decode(claims + "=="))
    changed["role"] = "admin"
    with pytest.raises(TokenError, match="not signed"):
        check_token(
            SECRET,
            f"{head}.{_encode(json.dumps(changed).encode())}.{signature}",
            clock=clock,
        )
