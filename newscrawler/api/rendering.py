"""Templates of the pages for people: complete without JavaScript, nothing loaded from elsewhere."""

from __future__ import annotations

import hashlib
import importlib.resources
from collections.abc import Callable
from functools import cache
from typing import Any

import jinja2
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from newscrawler.api import language, text

PACKAGE = importlib.resources.files("newscrawler.api")


def read_static(name: str) -> bytes:
    return PACKAGE.joinpath("static", name).read_bytes()  # also from inside an egg


@cache
def static_url(name: str) -> str:
    """With a digest of the content, so that a new version is never hidden by a browser's cache."""
    return f"/static/{name}?v={hashlib.blake2b(read_static(name), digest_size=6).hexdigest()}"


def _load(name: str) -> str | None:
    try:
        return PACKAGE.joinpath("templates", name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


@cache
def environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FunctionLoader(_load),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        static_url=static_url,
        t=language.say,
        tn=language.count,
        said=language.said,
        look=language.look,
        languages=language.LANGUAGES,
        day_text=language.day_text,
        kbd=_in("kbd"),
        code=_in("code"),
        bold=_in("b"),
        italic=_in("i"),
        link=lambda path, name: Markup('<a href="{}">{}</a>').format(path, name),
    )
    env.filters.update(
        moment=text.moment,
        web_url=text.web_url,
        size=text.size_text,
        thousands=language.thousands,
        seconds=text.seconds_text,
        percent=language.percent,
    )
    return env


def _in(tag: str) -> Callable[[str], Markup]:
    """Puts a value of a text into an element."""
    return lambda value: Markup(f"<{tag}>{{}}</{tag}>").format(value)


def render(name: str, status_code: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(environment().get_template(name).render(**values), status_code=status_code)


def error_page(status: int, message: str) -> HTMLResponse:
    return render("error.html", status, status=status, message=message)
