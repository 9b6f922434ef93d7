"""What /openapi.json says beyond the routes themselves: how to sign in, the form of errors, an
example of an answer of each route."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from newscrawler.api import known_parameters
from newscrawler.api.access import COOKIE
from newscrawler.api.examples import EXAMPLES, TEXTS
from newscrawler.api.guard import FEED_PATHS, OPEN_PATHS
from newscrawler.api.models import Error, errors

_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "made by `scrapy token create`; only where API_TOKEN_SECRET is set",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "the same token, set by /login",
    },
    "feed": {
        "type": "apiKey",
        "in": "query",
        "name": "token",
        "description": "a token of the role feed, for readers of feeds that know no headers",
    },
}


def describe(app: FastAPI) -> None:
    """Replaces ``app.openapi``."""
    original = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        document = original()
        components = document.setdefault("components", {})
        components["securitySchemes"] = _SCHEMES
        components["schemas"][Error.__name__] = Error.model_json_schema()
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                operation["security"] = _security(path)
                if path.startswith(known_parameters.PATHS):
                    operation["responses"].setdefault("422", errors(422)[422])
                _with_example(operation["responses"], f"{method.upper()} {path}")
        return document

    app.openapi = described  # type: ignore[method-assign]  # as FastAPI's documentation does it


def _security(path: str) -> list[dict[str, list[str]]]:
    """Any of these. Without a secret none is asked for, which the empty one says."""
    if path.startswith(OPEN_PATHS):
        return []
    names = ["bearer", "cookie", *(["feed"] if path.startswith(FEED_PATHS) else [])]
    found: list[dict[str, list[str]]] = [{}]
    return found + [{name: []} for name in names]


def _with_example(responses: dict[str, Any], name: str) -> None:
    examples: dict[str, Any] = dict(TEXTS.get(name, {}))
    if name in EXAMPLES:
        examples["application/json"] = EXAMPLES[name]
    for status in ("200", "201", "202"):
        for media, content in responses.get(status, {}).get("content", {}).items():
            if media.partition(";")[0] in examples:
                content["example"] = examples[media.partition(";")[0]]
