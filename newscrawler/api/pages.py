"""The pages for people: rendered here, complete without JavaScript, nothing loaded
from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from newscrawler.api import article_page, article_picture, language, search_page, text
from newscrawler.api.access import COOKIE, TokenError
from newscrawler.api.asked import Asked
from newscrawler.api.data import DataReader
from newscrawler.api.rendering import read_static, render
from newscrawler.store.base import Query

#: How our own files are called: no path, no hidden file, no sign that a file system takes amiss.
_STATIC_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
MEDIA = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
#: Seconds that a choice of language or theme is remembered.
_REMEMBERED_S = 365 * 86_400


def wants_page(request: Request) -> bool:
    path = request.url.path
    return not path.startswith(
        ("/api/", "/metrics", "/healthz", "/openapi")
    ) and "text/html" in request.headers.get("accept", "")


# ---------------------------------------------------------------- routes


def add_pages(app: FastAPI, reader: DataReader, build_query: Callable[..., Query]) -> None:
    search_page.add_search(app, reader, build_query)
    article_page.add_article(app, reader)
    article_picture.add_picture(app, reader)
    _add_crawl_pages(app, reader)
    _add_static(app)
    _add_login(app, reader)
    _add_looks(app)


def _add_crawl_pages(app: FastAPI, reader: DataReader) -> None:
    @app.get("/sites", include_in_schema=False)
    async def sites_page() -> Response:
        now = reader.now()
        rows = await reader.sites()
        for row in rows:
            for name in ("last_fetch", "last_new"):
                when = datetime.fromisoformat(row[name]) if row[name] else None
                row[f"{name}_text"] = text.ago(when, now)
            fresh = row["freshness"]
            row["fresh_text"] = (
                f"{text.span_text(fresh['p50_s'])} / {text.span_text(fresh['p95_s'])}"
                if fresh["articles"]
                else ""
            )
        return render("sites.html", rows=rows, status=await reader.status(), asked=Asked())

    @app.get("/frontier", include_in_schema=False)
    async def frontier_page() -> Response:
        report, problem = await reader.frontier()
        workers, _ = await reader.workers()
        for worker in workers:
            started = text.from_ms(worker.get("started_ms", 0))
            worker["started_text"] = text.ago(started, reader.now())
        domains = sorted(
            report.get("domains", []),
            key=lambda row: (-row.get("queued", 0), row.get("domain", "")),
        )
        return render(
            "frontier.html",
            report=report,
            counts=report.get("counts", {}),
            domains=domains,
            problem=problem,
            workers=workers,
            status=await reader.status(),
            asked=Asked(),
        )

    @app.get("/docs", include_in_schema=False)
    async def docs_page() -> Response:
        routes = [
            {
                "path": path,
                "method": method.upper(),
                "summary": route.get("summary", ""),
                "parameters": _parameters(route),
            }
            for path, methods in app.openapi()["paths"].items()
            for method, route in methods.items()
        ]
        return render("docs.html", routes=routes, asked=Asked())


def _parameters(route: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters of an OpenAPI operation as /docs shows them."""
    rows = []
    for parameter in route.get("parameters", []):
        schema = parameter["schema"]
        values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
        rows.append(
            {
                "name": parameter["name"],
                "required": parameter.get("required", False),
                "description": parameter.get("description", ""),
                "choices": " | ".join(str(value) for value in values),
                "default": schema.get("default"),
            }
        )
    return rows


def _add_static(app: FastAPI) -> None:
    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        media = MEDIA.get(name.rpartition(".")[2])
        if media is None or not _STATIC_NAME.fullmatch(name):
            raise HTTPException(404, "there is no such file")
        try:
            body = read_static(name)
        except (FileNotFoundError, IsADirectoryError):
            raise HTTPException(404, "there is no such file") from None
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(body, media_type=media, headers=headers)

    @app.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> Response:
        return Response(read_static("favicon.svg"), media_type=MEDIA["svg"])


def _safe_next(target: str) -> str:
    """Where to go after the login: a path of this server, never another host
    ("//evil", "https:")."""
    parts = urlsplit(target)
    is_ours = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc
    return quote(target, safe="/?&=%+-._~:,") if is_ours else "/"


def _add_login(app: FastAPI, reader: DataReader) -> None:
    access = reader.deps.access

    def form(message: str = "", target: str = "/", status: int = 200) -> Response:
        return render(
            "login.html", status, message=message, target=_safe_next(target), asked=Asked()
        )

    @app.get("/login", include_in_schema=False)
    async def login_page(next: str = "/") -> Response:
        return form(target=next) if access.secret else RedirectResponse("/", 303)

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        if not access.secret:
            return RedirectResponse("/", 303)
        # Read by hand: a form would need python-multipart for one field.
        fields = form_fields((await request.body()).decode("utf-8", "replace"))
        token, target = fields.get("token", "").strip(), fields.get("next", "/")
        try:
            access.principal(token, clock=reader.deps.clock)
        except TokenError as exc:
            return form(f"Not accepted: {exc}.", target, 401)
        answer = RedirectResponse(_safe_next(target), 303)
        answer.set_cookie(
            COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
        return answer


def _add_looks(app: FastAPI) -> None:
    @app.post("/look", include_in_schema=False)
    async def look(request: Request) -> Response:
        fields = form_fields((await request.body()).decode("utf-8", "replace"))
        answer = RedirectResponse(_safe_next(fields.get("next", "/")), 303)
        chosen = (
            (language.LANGUAGE_COOKIE, fields.get("language"), language.LANGUAGES),
            (language.THEME_COOKIE, fields.get("theme"), language.THEMES),
        )
        for cookie, value, values in chosen:
            if value in values:
                answer.set_cookie(
                    cookie, str(value), max_age=_REMEMBERED_S, httponly=True, samesite="lax",
                    secure=request.url.scheme == "https",
                )  # fmt: skip
        return answer


def form_fields(body: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=10))
    except ValueError:  # more fields than our form has
        return {}


__all__ = ["add_pages", "wants_page"]
