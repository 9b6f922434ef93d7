"""/follow: the addresses of a search for a reader of feeds.

Where tokens are asked for, a reader of feeds needs one in the address, of the role "feed"
(api.guard). Whoever is logged in is given one here; it ends with their own token, and is refused
as soon as that is revoked.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi import Query as Parameter
from fastapi.responses import RedirectResponse, Response

from newscrawler.api import guard
from newscrawler.api.access import FEED_ROLE, LOCAL, Access, Principal, make_token
from newscrawler.api.asked import Asked, chosen_labels
from newscrawler.api.data import DataReader
from newscrawler.api.rendering import render
from newscrawler.api.tokens import Issued, TokenFileError
from newscrawler.store.base import Query

FORMS = {"rss": "RSS", "atom": "Atom", "json": "JSON Feed"}
#: Seconds in which a reader gets the same token again: each new one is a line of the audit log,
#: which keeps the last ones.
_LEAST_AGE_S = 60
Words = Annotated[str, Parameter(max_length=2_000)]
Sites = Annotated[list[str] | None, Parameter()]
Labels = Annotated[tuple[tuple[str, str], ...], Depends(chosen_labels)]


def add_follow(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    access, clock = reader.deps.access, reader.deps.clock

    def asked_of(q: Words = "", site: Sites = None, labels: Labels = ()) -> Asked:
        query = build_query(q, site=site, labels=labels, zone=reader.deps.zone)
        return Asked(query.text, sites=query.sites, labels=labels)

    @app.get("/follow", include_in_schema=False)
    async def follow_page(
        request: Request,
        asked: Asked = Depends(asked_of),  # noqa: B008  # a name of this function is no annotation
    ) -> Response:
        who = guard.principal_of(request, "reader")
        kept = _kept(access, who, clock())
        token = "" if kept is None else _token_of(access, kept)
        page = render(
            "follow.html",
            asked=asked,
            addresses=_addresses(reader.deps.base_url(request), asked, token),
            command=_command(asked),
            is_asked_for=bool(access.secret),
            is_offered=_may_have(access, who),
            until=None if kept is None else datetime.fromtimestamp(kept.expires, UTC),
        )
        page.headers["Cache-Control"] = "no-store"  # the token stands in it
        return page

    @app.post("/follow", include_in_schema=False)
    async def make_addresses(
        request: Request,
        asked: Asked = Depends(asked_of),  # noqa: B008  # as above
    ) -> Response:
        """New addresses; those of before end. Those of the last minute are shown again."""
        who = guard.principal_of(request, "reader")
        if not _may_have(access, who) or access.book is None:
            raise HTTPException(409, "This server hands out no tokens for feeds.")
        now = int(clock())
        own, before = access.book.known(who.id), _kept(access, who, now)
        is_new = before is None or now - before.created >= _LEAST_AGE_S
        if own is not None and is_new:
            reader.deps.audit.note(who, "token.feed", who.id)
            try:
                access.book.renew(
                    own, FEED_ROLE, now, "feeds of this reader", least_age=_LEAST_AGE_S
                )
            except TokenFileError as exc:
                raise HTTPException(503, str(exc)) from exc
        return RedirectResponse(asked.at("/follow"), 303)


def _may_have(access: Access, who: Principal) -> bool:
    """Whether there is a token that one for feeds can end with."""
    return bool(access.secret) and access.book is not None and access.book.known(who.id) is not None


def _kept(access: Access, who: Principal, now: float) -> Issued | None:
    """The token for feeds that was made for this reader, while it is good."""
    if not access.secret or access.book is None or who == LOCAL:
        return None
    made = [one for one in access.book.made_by(who.id) if one.state(now) == "active"]
    return made[-1] if made else None


def _token_of(access: Access, issued: Issued) -> str:
    """The same each time: nothing but its entry is kept."""
    return make_token(
        access.secret,
        days=(issued.expires - issued.created) / 86_400,
        role=issued.role,
        token_id=issued.id,
        clock=lambda: float(issued.created),
    )


def _command(asked: Asked) -> str:
    """Follows the same articles by mail, for a shell: the words may be somebody else's."""
    labels = [f'{key}:"{value.replace(chr(34), " ")}"' for key, value in asked.labels]
    words = ["scrapy", "follow", "add", "NAME", " ".join([asked.q, *labels]).strip() or "…"]
    if asked.sites:
        words += ["--site", ",".join(asked.sites)]
    return shlex.join([*words, "--mail", "ADDRESS"])


def _addresses(base: str, asked: Asked, token: str) -> list[dict[str, Any]]:
    rows = []
    for form, name in FORMS.items():
        path = asked.feed(form).lstrip("/")
        if token:
            path += ("&" if "?" in path else "?") + urlencode({"token": token})
        rows.append({"name": name, "address": f"{base}{path}"})
    return rows
