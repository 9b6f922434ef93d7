"""Cleaning of running text. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from newscrawler.extraction.blocks import Block

MIN_CONTENT_CHARS = 40
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff\ufffc]")
_SPACES = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u205f\u3000]+")


def clean_line(line: str) -> str:
    """NFC, invisible characters out, runs of space to one; line breaks stay."""
    line = unicodedata.normalize("NFC", _INVISIBLE.sub("", line))
    return "\n".join(_SPACES.sub(" ", part).strip() for part in line.split("\n")).strip()


def content_of(blocks: Iterable[Block], headline: str | None = None, site_name: str | None = None) -> str | None:
    """Paragraphs joined by a blank line, without what is not article text; None when nothing is left."""
    paragraphs = [clean_line(b.text) for b in blocks]
    text = "\n\n".join(p for p in paragraphs if p)
    return text if len(text) >= MIN_CONTENT_CHARS else None
