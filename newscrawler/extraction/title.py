"""The visible headline. Pure."""

from __future__ import annotations

import html

from newscrawler.extraction.text import clean_line


def clean(raw: str, site_name: str | None = None) -> str:
    return " ".join(clean_line(html.unescape(raw)).split())


def has_shape(value: str, site_name: str | None = None) -> bool:
    return 4 <= len(value) <= 400 and value.casefold() != (site_name or "").casefold()
