"""Pages of other origins that may read the API from a browser (the Fetch standard's CORS).

Off unless API_CORS_ORIGINS names them. Cookies are never let through: a script of another origin
shows a bearer token of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders

#: What scripts of other origins may ask for; pages and forms are not among it.
PATHS = ("/api/", "/feed.", "/openapi.json")
METHODS = "GET, HEAD, POST, DELETE"
ASKED_HEADERS = "Authorization, Content-Type, If-None-Match"
SHOWN_HEADERS = "ETag, Location, Retry-After, Link, Content-Disposition"
_ORIGIN = re.compile(r"https?://[\w.\-\[\]:]+")


@dataclass(frozen=True, slots=True)
class Cors:
    origins: frozenset[str] = frozenset()  # lower case; "*" = all

    @classmethod
    def parse(cls, text: str) -> Cors:
        """``"https://a.example, https://b.example:8443"`` or ``"*"``.

        :raises ValueError: something that no browser would send
        """
        names = [part.strip().lower().rstrip("/") for part in text.split(",") if part.strip()]
        for name in names:
            if name != "*" and not _ORIGIN.fullmatch(name):
                raise ValueError(
                    f"API_CORS_ORIGINS: {name!r} is no origin like https://news.example:8443, nor *"
                )
        return cls(frozenset(names))

    def allows(self, path: str, headers: Headers) -> bool:
        """Whether the request comes from another origin that may make it."""
        origin = headers.get("origin", "").lower()
        if not origin or not path.startswith(PATHS):
            return False
        return "*" in self.origins or origin in self.origins

    def mark(self, headers: MutableHeaders, origin: str) -> None:
        """On the answer to a request that is allowed."""
        headers["Access-Control-Allow-Origin"] = "*" if "*" in self.origins else origin
        headers["Access-Control-Expose-Headers"] = SHOWN_HEADERS
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"

    def preflight(self, headers: MutableHeaders, origin: str) -> None:
        self.mark(headers, origin)
        headers["Access-Control-Allow-Methods"] = METHODS
        headers["Access-Control-Allow-Headers"] = ASKED_HEADERS
        headers["Access-Control-Max-Age"] = "600"
