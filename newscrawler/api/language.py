"""The language and the looks of the pages: chosen by a reader, remembered in two cookies, and until
then those of the browser.

``texts.json`` is the one catalogue: every text of the pages in English, which is its key, and in
Vietnamese. tests/unit/api/test_language.py holds the templates to it.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from functools import cache
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LANGUAGES = {"vi": "Tiếng Việt", "en": "English"}
THEMES = ("system", "light", "dark")
LANGUAGE_COOKIE, THEME_COOKIE = "newscrawler_language", "newscrawler_theme"
#: Names of the languages of news, in both languages of the pages: those of the 33 sites and their
#: neighbours. Another one is shown by its code.
_LANGUAGES = {
    "vi": ("Vietnamese", "Tiếng Việt"),
    "en": ("English", "Tiếng Anh"),
    "fr": ("French", "Tiếng Pháp"),
    "de": ("German", "Tiếng Đức"),
    "zh": ("Chinese", "Tiếng Trung"),
    "ja": ("Japanese", "Tiếng Nhật"),
    "ko": ("Korean", "Tiếng Hàn"),
    "ru": ("Russian", "Tiếng Nga"),
    "es": ("Spanish", "Tiếng Tây Ban Nha"),
    "th": ("Thai", "Tiếng Thái"),
    "lo": ("Lao", "Tiếng Lào"),
    "km": ("Khmer", "Tiếng Khmer"),
}
_WEEKDAYS = ("Th 2", "Th 3", "Th 4", "Th 5", "Th 6", "Th 7", "CN")


@dataclass(frozen=True, slots=True)
class Look:
    """``path`` is the page that is shown, with its query: where a switch leads back to."""

    language: str = "en"
    theme: str = "system"
    path: str = "/"


_look: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039  # it cannot change


def look() -> Look:
    return _look.get()


@cache
def catalogue() -> dict[str, str]:
    """English -> Vietnamese."""
    package = importlib.resources.files("newscrawler.api")
    texts: dict[str, str] = json.loads(package.joinpath("texts.json").read_text(encoding="utf-8"))
    return texts


def _found(text: str) -> str:
    return catalogue().get(text, text) if look().language == "vi" else text


def say(text: str, **values: Any) -> Markup:
    """A text of the pages in the reader's language; ``values`` stand for its ``{names}`` and are
    escaped unless they are markup."""
    found = Markup(_found(text))  # our own words, not those of a page
    return found.format(**values) if values else found


def count(number: int, one: str, many: str, **values: Any) -> Markup:
    """As :func:`say` with ``{n}``; Vietnamese has one form, that of ``many``."""
    english_one = number == 1 and look().language == "en"
    return say(one if english_one else many, n=thousands(number), **values)


#: Names of values that are texts of ours as well.
_SENTENCES = ("reason", "forms")


def said(text: str) -> str:
    """A sentence that another part has made from a text of the catalogue and values: the text whose
    fixed parts it has is found, and its values are put into the other language."""
    if look().language == "en":
        return text
    if text in catalogue():
        return catalogue()[text]
    for pattern, english in _patterns():
        if match := pattern.fullmatch(text):
            values = {
                name: said(value) if name in _SENTENCES else value
                for name, value in match.groupdict().items()
            }
            return catalogue()[english].format(**values)
    return text


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Of the texts with values, those with the most fixed letters first."""
    made = []
    for english in sorted(catalogue(), key=len, reverse=True):
        parts = re.split(r"\{(\w+)\}", english)
        if len(parts) < 3 or len("".join(parts[::2]).strip()) < 8:
            continue
        written = re.escape(parts[0])
        for name, fixed in zip(parts[1::2], parts[2::2], strict=True):
            group = f"(?P={name})" if f"(?P<{name}>" in written else f"(?P<{name}>.+?)"
            written += group + re.escape(fixed)
        made.append((re.compile(written, re.DOTALL), english))
    return made


def thousands(number: float | None) -> str:
    """ "1,234", in Vietnamese "1.234"; a dash for None."""
    if number is None:
        return "–"
    return number_text(f"{number:,}")


def number_text(text: str) -> str:
    """A number as Python writes it, with the signs of the reader's language: "1,234.5" is
    "1.234,5" in Vietnamese, where a point would be read as that of a thousand."""
    return text.translate({44: ".", 46: ","}) if look().language == "vi" else text


def percent(share: float, digits: int = 1) -> str:
    """``share`` of 1 as "98.5 %"."""
    return number_text(f"{100 * share:.{digits}f} %")


def day_text(day: date, *, weekday: bool = False) -> str:
    """ "21 Nov 2026", in Vietnamese "21/11/2026"; with ``weekday`` "Sat 21 Nov 2026" and
    "Th 7 21/11/2026"."""
    if look().language == "vi":
        text = f"{day.day}/{day.month}/{day.year}"
        return f"{_WEEKDAYS[day.weekday()]} {text}" if weekday else text
    text = f"{day.day} {day:%b %Y}"
    return f"{day:%a} {text}" if weekday else text


def month_text(day: date) -> str:
    return f"{day.month}/{day.year}" if look().language == "vi" else f"{day:%b %Y}"


def language_name(code: str) -> str:
    english, vietnamese = _LANGUAGES.get(code, (code, code))
    return vietnamese if look().language == "vi" else english


# ---------------------------------------------------------------- whose look it is
def look_of(scope: Scope) -> Look:
    headers = Headers(scope=scope)
    chosen = _cookies(headers.get("cookie", ""))
    language = chosen.get(LANGUAGE_COOKIE, "")
    if language not in LANGUAGES:
        language = preferred(headers.get("accept-language", ""))
    theme = chosen.get(THEME_COOKIE, "")
    query = scope.get("query_string", b"").decode("latin-1")
    path = quote(scope["path"], safe="/") + (f"?{query}" if query else "")
    return Look(language, theme if theme in THEMES else "system", path)


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


def preferred(accepted: str) -> str:
    """The language of ours that an Accept-Language header likes best; English without any."""
    best, weight = "en", 0.0
    for part in accepted.split(",")[:20]:
        tag, _, parameter = part.strip().partition(";")
        language = tag.strip().lower().partition("-")[0]
        try:
            liked = float(parameter.partition("=")[2]) if parameter else 1.0
        except ValueError:
            continue
        if language in LANGUAGES and liked > weight:
            best, weight = language, liked
    return best


class Looks:
    """Remembers for the time of a request in which language and looks it is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_vary(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    for name in ("Cookie", "Accept-Language"):
                        headers.add_vary_header(name)
            await send(message)

        token = _look.set(look_of(scope))
        try:
            await self.app(scope, receive, send_with_vary)
        finally:
            _look.reset(token)
