"""A parameter that a route of the JSON API does not know is refused by name. ``afer=2026-01-01``
would otherwise be answered with articles of all years, as if it had been regarded.

Pages for people ignore what they do not know: links to them are passed on with marks of mailings
and networks (``utm_source``).
"""

from __future__ import annotations

from difflib import get_close_matches

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

#: What begins like this is asked by programs.
PATHS = "/api/"
#: How like a known name an unknown one must be to be meant as it, of 1.
_ALIKE = 0.5
#: Characters of an unknown name that are repeated to whoever sent it.
_SHOWN = 60


async def refuse_unknown(request: Request) -> None:
    """A dependency of every route.

    :raises HTTPException: 422, a parameter that the route does not know
    """
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not route.path.startswith(PATHS):
        return
    known = _known(route)
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise HTTPException(422, "; ".join(_refusal(name, known) for name in unknown[:5]))


def _known(route: APIRoute) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names(route.dependant)))


def _names(asked: Dependant) -> list[str]:
    """Of a route or of what it depends on."""
    own = [one.alias for one in asked.query_params]
    return own + [name for part in asked.dependencies for name in _names(part)]


def _refusal(name: str, known: tuple[str, ...]) -> str:
    text = f"{name[:_SHOWN]}: not a parameter of this address"
    if near := get_close_matches(name.lower()[:_SHOWN], known, 1, _ALIKE):
        return f"{text}; did you mean {near[0]}?"
    return f"{text}; it knows {', '.join(known)}" if known else f"{text}, which knows none"
