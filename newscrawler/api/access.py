"""Who may use the API: the address it binds, the Host header, bearer tokens and their roles.

Loopback needs nothing. Any other address needs ``API_TOKEN_SECRET`` in the environment;
with it every request but /healthz shows a token: a JWT (RFC 7519) signed with HS256, made
by ``scrapy token create`` and known to the server by its id (``api.tokens``).
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt

if TYPE_CHECKING:
    from newscrawler.api.tokens import TokenBook

SECRET_ENV = "API_TOKEN_SECRET"
#: The secret of before: tokens that were signed with it are accepted until they expire, so that
#: the secret can be changed without everybody needing a new token at that moment.
PREVIOUS_SECRET_ENV = "API_TOKEN_SECRET_PREVIOUS"
#: Characters of a secret, at least: 128 bits when it is random hex (RFC 7518 3.2 asks
#: for a real key).
SECRET_LEAST = 32
COOKIE = "newscrawler_token"
#: Roles by rank. A token of a higher role may do all that a lower one may; "feed" reads /feed.* and
#: nothing else, and may stand in their addresses (api.guard).
FEED_ROLE = "feed"
ROLES = (FEED_ROLE, "reader", "operator", "admin")
#: Ours to choose, never the token's ("alg": "none").
_ALGORITHM = "HS256"
#: Times are compared with the server's own clock.
_NO_TIMES: jwt.types.Options = {"verify_exp": False, "verify_iat": False}


class AccessRefused(ValueError):
    """The server must not start like this; the text says what to do."""


class TokenError(ValueError):
    """The token is not accepted; the text says why."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: the id of the token and its role."""

    id: str
    role: str

    def has(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


#: Whoever reaches a server that asks for no token: it can be reached from its own machine only.
LOCAL = Principal("local", "admin")


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one running server."""

    secret: str = ""  # empty = no tokens are asked for
    host: str = "127.0.0.1"  # the address that is bound
    allowed_hosts: frozenset[str] = frozenset()  # names beside localhost and addresses, lower case
    previous: str = ""  # the secret of before
    book: TokenBook | None = None  # tokens that were handed out; None: every signed one is good

    def principal(
        self, token: str, *, role: str = "reader", clock: Callable[[], float] = time.time
    ) -> Principal:
        """Whose token it is. Raises TokenError unless it is good for this role."""
        if not self.secret:
            return LOCAL
        claims = _claims(token, (self.secret, self.previous), role, clock)
        found = Principal(str(claims.get("jti", "")), claims["role"])
        if self.book is not None and (why := self.book.refusal(found.id)):
            raise TokenError(why)
        return found

    def host_is_allowed(self, header: str) -> bool:
        """Whether a Host header may be answered. A name that is not ours could be an attacker's
        that was rebound to this machine; an address cannot be rebound."""
        name = host_name(header)
        if not name:
            return False
        if name == "localhost" or name.endswith(".localhost") or name in self.allowed_hosts:
            return True
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        return is_address(name) or name == socket.gethostname().lower()


def host_name(header: str) -> str:
    """The name of ``name:port``, lower case; brackets of an IPv6 address off."""
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0] if header.count(":") == 1 else header


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def access_for(
    host: str,
    secret: str,
    allowed_hosts: str = "",
    *,
    previous: str = "",
    book: TokenBook | None = None,
) -> Access:
    """The rules for a server on ``host``. Raises AccessRefused."""
    names = frozenset(name.strip().lower() for name in allowed_hosts.split(",") if name.strip())
    if not secret and not is_loopback(host):
        raise AccessRefused(
            f"{host} can be reached from other machines: set {SECRET_ENV} in the environment to"
            f" {SECRET_LEAST} or more random characters (openssl rand -hex 32) and hand out tokens"
            " made by `scrapy token create`; or bind 127.0.0.1"
        )
    if secret and len(secret) < SECRET_LEAST:
        raise AccessRefused(
            f"{SECRET_ENV} has {len(secret)} characters; it must have {SECRET_LEAST} or more"
            " (openssl rand -hex 32)"
        )
    if previous and len(previous) < SECRET_LEAST:
        raise AccessRefused(
            f"{PREVIOUS_SECRET_ENV} has {len(previous)} characters; it must have {SECRET_LEAST} or"
            " more, or be unset"
        )
    return Access(
        secret=secret,
        host=host,
        allowed_hosts=names,
        previous=previous if secret else "",
        book=book,
    )


# ---------------------------------------------------------------- tokens


def make_token(
    secret: str,
    *,
    days: float,
    role: str = "reader",
    token_id: str = "",
    clock: Callable[[], float] = time.time,
) -> str:
    """:raises ValueError: there is no such role"""
    if role not in ROLES:
        raise ValueError(f"role {role!r} must be one of {', '.join(ROLES)}")
    now = int(clock())
    claims = {"role": role, "iat": now, "exp": now + int(days * 86_400)}
    if token_id:
        claims["jti"] = token_id
    return jwt.encode(claims, secret, algorithm=_ALGORITHM)


def _claims(
    token: str, keys: tuple[str, ...], role: str, clock: Callable[[], float]
) -> dict[str, Any]:
    claims = _signed_with_one_of(token, keys)
    expires = claims.get("exp")
    if not isinstance(expires, (int, float)) or expires <= clock():
        raise TokenError("the token has expired: make a new one with `scrapy token create`")
    have = claims.get("role")
    if have not in ROLES or ROLES.index(have) < ROLES.index(role):
        raise TokenError(f"the token's role is {have!r}; this needs {role!r}")
    return claims


def _signed_with_one_of(token: str, keys: tuple[str, ...]) -> dict[str, Any]:
    for key in filter(None, keys):
        try:
            claims: dict[str, Any] = jwt.decode(
                token, key, algorithms=[_ALGORITHM], options=_NO_TIMES
            )
            return claims
        except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError):
            continue
        except (jwt.InvalidTokenError, ValueError, RecursionError) as exc:
            raise TokenError("this is not a token of newscrawler") from exc
    raise TokenError("the token is not signed with this server's secret")
