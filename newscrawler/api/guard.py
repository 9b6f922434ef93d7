"""The gate in front of every route: Host, token, methods; and the headers that
every answer carries."""

from __future__ import annotations

from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newscrawler.api import cors, problem
from newscrawler.api.access import COOKIE, Access, Principal, TokenError, host_name
from newscrawler.api.cors import Cors
from newscrawler.api.rate import Rate

#: Nothing from elsewhere, no inline script or style, no framing: text of a page cannot become code.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src"
    " 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer browsers send "Origin: null" with a form, and every form would be
    # refused as another site's.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Answered without a token: the probe of a container, the form that takes one, what its page needs,
#: and the callbacks of hubs, whose addresses hold a token of their own (api.websub_routes).
OPEN_PATHS = ("/healthz", "/login", "/static/", "/websub/")
#: Their answers have no end that HEAD could wait for.
ENDLESS_PATHS = ("/api/events",)


#: Paths whose token may stand in the address: readers of feeds know no headers. Only a token of
#: the role "feed" is taken from there, as addresses are kept in histories and logs.
FEED_PATHS = ("/feed.",)


class Guard:
    """:param per_minute: requests that one token may make; 0 = no limit. Where tokens are asked
    for, an address without a good one is counted alike; where none is, nobody is.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        clock: Callable[[], float],
        per_minute: int = 0,
        cors: Cors | None = None,
        rate: Rate | None = None,
    ) -> None:
        self.app = app
        self.access = access
        self.clock = clock
        self.rate = rate or Rate(per_minute)
        self.cors = cors or Cors()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        from_allowed = self.cors.allows(scope["path"], headers)
        if scope["method"] == "HEAD" and scope["path"] not in ENDLESS_PATHS:
            # Answered as GET: the server leaves the body out, as its own copy of the scope says.
            scope = {**scope, "method": "GET"}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-cache")
                if self.cors.origins and scope["path"].startswith(cors.PATHS):
                    headers.add_vary_header("Origin")
                if from_allowed:
                    self.cors.mark(headers, origin)
            await send(message)

        origin = headers.get("origin", "")
        if not self.access.host_is_allowed(headers.get("host", "")):
            text = (
                "This name is not one of this server. Add it to API_ALLOWED_HOSTS if it should be."
            )
            await refuse(send_with_headers, 421, text)
        elif from_allowed and is_preflight(scope, headers):
            await self._preflight(send_with_headers, origin)
        elif not self._may_change(scope, headers, from_allowed):
            await refuse(send_with_headers, 403, "This request comes from another site.")
        elif scope["path"].startswith(OPEN_PATHS) or await self._is_let_in(
            scope, headers, send_with_headers
        ):
            await self.app(scope, receive, send_with_headers)

    def _may_change(self, scope: Scope, headers: Headers, from_allowed: bool) -> bool:
        """Whether a request of its origin may change anything; reading is open to every origin."""
        if scope["method"] in ("GET", "HEAD"):
            return True
        # A form of another origin could bring the cookie along; a header only its script can.
        return (from_allowed and bool(bearer_of(headers))) or self._same_origin(headers)

    async def _is_let_in(self, scope: Scope, headers: Headers, send: Send) -> bool:
        """False: it was answered here."""
        try:
            who = self._principal(scope, headers)
        except TokenError as exc:
            if not await self._is_too_often(send, address_of(scope)):
                await self._ask_for_token(scope, send, str(exc))
            return False
        scope["newscrawler.principal"] = who
        return not (self.access.secret and await self._is_too_often(send, who.id))

    def _principal(self, scope: Scope, headers: Headers) -> Principal:
        """:raises TokenError: no token, or none that is good here"""
        token = token_of(headers)
        if not scope["path"].startswith(FEED_PATHS):
            return self.access.principal(token, clock=self.clock)
        in_address = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])
        if token or not in_address[0]:
            return self.access.principal(token, role="feed", clock=self.clock)
        found = self.access.principal(in_address[0], role="feed", clock=self.clock)
        if found.role != "feed" and self.access.secret:
            raise TokenError(
                "only a token of the role feed may stand in an address: addresses are kept in"
                " histories and logs; make one with `scrapy token create --role feed`"
            )
        return found

    async def _is_too_often(self, send: Send, caller: str) -> bool:
        wait_s = self.rate.take(caller)
        if not wait_s:
            return False
        text = f"more than {self.rate.per_minute} requests in a minute: try again in {wait_s} s"
        await refuse(send, 429, text, {"Retry-After": str(wait_s)})
        return True

    async def _preflight(self, send: Send, origin: str) -> None:
        start: Message = {"type": "http.response.start", "status": 204, "headers": []}
        self.cors.preflight(MutableHeaders(raw=start["headers"]), origin)
        await send(start)
        await send({"type": "http.response.body", "body": b""})

    def _same_origin(self, headers: Headers) -> bool:
        """Browsers send Origin with a form; programs do not."""
        origin = headers.get("origin")
        if origin is None:
            return True
        return origin.partition("://")[2].lower() == headers.get("host", "").lower() and bool(
            host_name(origin)
        )

    async def _ask_for_token(self, scope: Scope, send: Send, reason: str) -> None:
        headers = Headers(scope=scope)
        wants_page = "text/html" in headers.get("accept", "") and not scope["path"].startswith(
            "/api/"
        )
        if wants_page:
            query = scope.get("query_string", b"").decode("latin-1")
            after = quote(scope["path"] + ("?" + query if query else ""), safe="/")
            await refuse(send, 303, "", {"Location": f"/login?next={after}"})
            return
        await refuse(
            send, 401, f"A bearer token is needed: {reason}", {"WWW-Authenticate": "Bearer"}
        )


def principal_of(request: Request, role: str) -> Principal:
    """Who asks. Raises HTTPException (403) unless it has this role or a higher one."""
    found: Principal | None = request.scope.get("newscrawler.principal")
    if found is None or not found.has(role):
        have = "nobody" if found is None else found.role
        raise HTTPException(403, f"This needs the role {role}; the token's role is {have}.")
    return found


def is_preflight(scope: Scope, headers: Headers) -> bool:
    return scope["method"] == "OPTIONS" and "access-control-request-method" in headers


def address_of(scope: Scope) -> str:
    """Of who has no good token: all of them at one address are one caller."""
    client = scope.get("client")
    return f"address {client[0]}" if client else "address unknown"


def bearer_of(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def token_of(headers: Headers) -> str:
    if token := bearer_of(headers):
        return token
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None else ""


async def refuse(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    body = problem.packed(status, text)
    fields = {
        "Content-Type": problem.MEDIA,
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
