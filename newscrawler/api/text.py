"""How values are shown: highlights, times, differences, in the reader's language. Everything that
leaves here is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from markupsafe import Markup, escape

from newscrawler.api import differences
from newscrawler.api.language import count, day_text, number_text, say
from newscrawler.fleet.freshness import span

_ZONE = re.compile(r"([+-])(\d{2}):?(\d{2})")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


def highlighted(text: str, marks: Iterable[tuple[int, int]]) -> Markup:
    """``text`` escaped, with ``<mark>`` around the marked parts. Marks may
    overlap or lie outside."""
    out: list[str] = []
    last = 0
    for start, end in sorted(marks):
        start, end = max(start, last), min(end, len(text))
        if start >= end:
            continue
        out += [
            escape(text[last:start]),
            Markup("<mark>"),
            escape(text[start:end]),
            Markup("</mark>"),
        ]
        last = end
    return Markup("").join([*out, escape(text[last:])])


def zone_of(name: str) -> tzinfo:
    """ "+07:00" or "Asia/Ho_Chi_Minh" -> that zone; UTC for anything else."""
    match = _ZONE.fullmatch(name)
    if match is None:
        try:
            return ZoneInfo(name)
        except (
            ZoneInfoNotFoundError,
            ValueError,
            OSError,
        ):  # no such zone, or a machine without the database
            return UTC
    delta = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-delta if match[1] == "-" else delta)


def moment(when: datetime | None, zone: tzinfo | None = UTC) -> str:
    """ "21 Nov 2026, 10:36 (+07:00)"; empty for None. ``zone`` None: the one that it has."""
    if when is None:
        return ""
    local = when.astimezone(zone or when.tzinfo)
    offset = f"{local:%z}"
    name = "UTC" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"
    return f"{day_text(local.date())}, {local:%H:%M} ({name})"


def ago(when: datetime | None, now: datetime) -> str:
    """ "3 min ago", "5 h ago", "2 days ago", else the day. Empty for None."""
    if when is None:
        return ""
    seconds = (now - when).total_seconds()
    if seconds < -60 or seconds >= 7 * 86_400:
        return day_text(when.date())
    if seconds < 60:
        return say("just now")
    if seconds < 3600:
        return say("{n} min ago", n=int(seconds // 60))
    if seconds < 86_400:
        return say("{n} h ago", n=int(seconds // 3600))
    return count(int(seconds // 86_400), "{n} day ago", "{n} days ago")


def span_text(seconds: float | None) -> str:
    """ "45 s", "3.4 min", "2.1 h"; empty for None."""
    number, _, unit = span(seconds).partition(" ")
    if unit == "h":
        return say("{n} h", n=number_text(number))
    if unit == "min":
        return say("{n} min", n=number_text(number))
    return say("{n} s", n=number_text(number)) if unit else ""


def seconds_text(seconds: float) -> str:
    """ "12 s", below ten "4.5 s"."""
    number = f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"
    return say("{n} s", n=number_text(number))


def from_ms(ms: int) -> datetime | None:
    """None for 0 (never)."""
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def size_text(count: int) -> str:
    number, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    digits = 0 if unit == "B" or number >= 100 else 1
    return f"{number_text(f'{number:.{digits}f}')} {unit}"


def web_url(url: str | None) -> str:
    """``url`` when it may stand in a link (http or https with a host), else "":
    javascript: never gets out."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in ("http", "https") and parts.netloc else ""


def is_right_to_left(language: str | None) -> bool:
    return (language or "").split("-")[0] in {"ar", "fa", "he", "ur", "ps", "yi", "ckb", "dv", "ug"}


# ---------------------------------------------------------------- versions


@dataclass(frozen=True, slots=True)
class Change:
    """One paragraph or field of a newer version beside the older one."""

    name: str  # "title", "content", ...
    html: Markup  # old parts in <del>, new ones in <ins>


def changed_words(old: str, new: str) -> Markup:
    """``new`` with what was taken out in ``<del>`` and what was put in in ``<ins>``, by words."""
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    out: list[Markup] = []
    for is_equal, a0, a1, b0, b1 in differences.steps(a, b):
        if is_equal:
            out.append(escape("".join(b[b0:b1])))
            continue
        if a1 > a0:
            out.append(Markup("<del>{}</del>").format("".join(a[a0:a1])))
        if b1 > b0:
            out.append(Markup("<ins>{}</ins>").format("".join(b[b0:b1])))
    return Markup("").join(out)


def changed_paragraphs(old: str, new: str) -> list[Markup]:
    """Only the paragraphs that differ, each as :func:`changed_words`."""
    a, b = old.split("\n\n"), new.split("\n\n")
    out: list[Markup] = []
    for is_equal, a0, a1, b0, b1 in differences.steps(a, b):
        if is_equal:
            continue
        paired = min(a1 - a0, b1 - b0)
        out += [changed_words(a[a0 + i], b[b0 + i]) for i in range(paired)]
        out += [Markup("<del>{}</del>").format(text) for text in a[a0 + paired : a1]]
        out += [Markup("<ins>{}</ins>").format(text) for text in b[b0 + paired : b1]]
    return out


def page_numbers(page: int, last: int) -> Sequence[int | None]:
    """Pages to link to, from 0; None is a gap. The first, the last, and two around
    the current one."""
    wanted = sorted({n for n in (0, *range(page - 2, page + 3), last) if 0 <= n <= last})
    out: list[int | None] = []
    for n in wanted:
        if out and out[-1] is not None and n - out[-1] > 1:
            out.append(None)
        out.append(n)
    return out
