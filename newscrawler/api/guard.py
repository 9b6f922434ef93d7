"""The gate in front of every route: Host, token, methods; and the headers that
every answer carries."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newscrawler.api.access import COOKIE, Access, Principal, TokenError, host_name

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
#: Answered without a token: the probe of a container, the form that takes one, what its page needs.
OPEN_PATHS = ("/healthz", "/login", "/static/")
#: Their answers have no end that HEAD could wait for.
ENDLESS_PATHS = ("/api/events",)


class Guard:
    def __init__(self, app: ASGIApp, access: Access, clock: Callable[[], float]) -> None:
        self.app = app
        self.access = access
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD" and scope["path"] not in ENDLESS_PATHS:
            # Answered as GET: the server leaves the body out, as its own copy of the scope says.
            scope = {**scope, "method": "GET"}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-cache")
            await send(message)

        headers = Headers(scope=scope)
        if not self.access.host_is_allowed(headers.get("host", "")):
            text = (
                "This name is not one of this server. Add it to API_ALLOWED_HOSTS if it should be."
            )
            await refuse(send_with_headers, 421, text)
            return
        if scope["method"] not in ("GET", "HEAD") and not self._same_origin(headers):
            await refuse(send_with_headers, 403, "This request comes from another site.")
            return
        if not scope["path"].startswith(OPEN_PATHS):
            try:
                who = self.access.principal(token_of(headers), clock=self.clock)
            except TokenError as exc:
                await self._ask_for_token(scope, send_with_headers, str(exc))
                return
            scope["newscrawler.principal"] = who
        await self.app(scope, receive, send_with_headers)

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


def token_of(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel is not None else ""


async def refuse(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    body = json.dumps({"error": text}).encode() + b"\n"
    fields = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
