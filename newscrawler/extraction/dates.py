"""Dates as news pages write them: ISO, RFC, words of many languages, Vietnamese forms, relative ones. Pure.

Never a guess dressed as a value: what cannot be read, or lies outside 1990..fetch time + 2 days, is None.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.months import MONTHS
from newscrawler.extraction.zones import (
    ABBREVIATIONS,
    DAY_FIRST_ENGLISH,
    LANGUAGE_ZONES,
    MONTH_FIRST_ENGLISH,
    NAMED_ZONES,
    ZONES,
)

EARLIEST_YEAR = 1990
#: A date is looked for in the first characters of a text only; longer ones are not bylines.
MAX_CHARS = 300


@dataclass(frozen=True, slots=True)
class When:
    """``value`` is aware. ``has_time`` False: only the day is known. ``has_zone`` False: the zone is assumed."""

    value: datetime
    has_time: bool = True
    has_zone: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """How to read what a text leaves open. ``fetched`` None: relative dates cannot be read."""

    zone: tzinfo = UTC
    day_first: bool = True
    fetched: datetime | None = None
    zone_known: bool = False


_ISO = re.compile(
    r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)"
    r"(?:(?:\s*T\s*|\s+(?:-\s+)?)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,:]\d{1,9})?)?(?:\s*([AaPp])\.?[Mm]\.?)?)?"
)
_COMPACT = re.compile(r"(?<!\d)(\d{4})(\d{2})(\d{2})(?:T?(\d{2})(\d{2})(\d{2})?)?(?!\d)")
_OFFSET = re.compile(r"(?:GMT|UTC|Z)?\s*([+-])\s?(\d{1,2})(?::?(\d{2}))?(?!\d)")
_TIME = re.compile(
    r"(?<![\d.:/-])([01]?\d|2[0-4])\s?(?::|h|H|：|giờ|時|시|ч)\s?([0-5]\d)(?:\s?(?::|m|phút|分|분|：)\s?([0-5]\d)?)?(?!\d)"
    r"(?:\s*([AaPp])\.?\s?[Mm](?![a-z])\.?)?"
)
_DOT_TIME = re.compile(
    r"(?<![\d.:/-])([01]?\d|2[0-3])\.([0-5]\d)(?![\d.])(?:\s*([AaPp])\.?\s?[Mm](?![a-z])\.?)?(?:\s*(?:Uhr|uhr|WIB"
    r"|h\b))?"
)
_HOUR = re.compile(r"(?<![\d.:/-])(\d{1,2})\s*(?:([AaPp])\.?\s?[Mm](?![a-z])\.?|Uhr\b|時|시(?!\w)|h\b(?!\w))")
_EAST = re.compile(r"(?<!\d)(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]?")
_YMD = re.compile(r"(?<!\d)(\d{4})\s?[./-]\s?(\d{1,2})\s?[./-]\s?(\d{1,2})(?!\d)")
_DMY = re.compile(r"(?<![\d:])(\d{1,2})\s?([./\-‐–−])\s?(\d{1,2})\s?[./\-‐–−]\s?(\d{4}|\d{2})(?![\d:])")
_VIET = re.compile(r"(?<!\d)(\d{1,2})\s*(?:tháng|thg\.?|th\.)\s*(\d{1,2})\s*(?:,|năm|-|/)?\s*(\d{4})(?!\d)", re.I)
_NAME = r"(?:(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0e7f]){3,24}|[\u0900-\u097f]{2})"
_DAY_MONTH = re.compile(
    rf"(?<![\d:.])(\d{{1,2}})(?:\.|st|nd|rd|th|er|re|º|°|ª|η|-го|ú)?\s*[,\-–/.]?\s*(?:de\s+|di\s+|of\s+|d['’]\s?|del\s+)?"
    rf"({_NAME})\.?(?:\s*/\s*{_NAME})?\s*[,\-–/.]?\s*(?:de\s+|del\s+|d['’]\s?|в\s+)?(?:(\d{{4}})(?!\d)|['’](\d{{2}})(?!\d)|(?<=-)(\d{{2}})(?!\d))",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"({_NAME})\.?\s*(\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])\s*,?\s*(?:\d{{1,2}}:\d{{2}}(?:\s*[ap]\.?m\.?)?\s*,?\s*)?"
    r"(?:(\d{4})(?!\d)|['’](\d{2})(?!\d))",
    re.IGNORECASE,
)
_RFC_SHORT_YEAR = re.compile(r"(?<!\d)(\d{1,2})[\s-]([A-Za-z]{3})[\s-](\d{2})\s+(?=\d{1,2}:\d{2})")
_DOTNET = re.compile(r"([1-9]|1[0-2])/([1-9]|[12]\d|3[01])/(\d{4}) (?:[1-9]|1[0-2]):\d{2}:\d{2} [AP]M$")
_JS = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{1,2}) (\d{2}:\d{2}:\d{2}) (?:([A-Z]{2,5}) )?(\d{4})")
# Vietnamese in words, as blogs and phones print it: months, halves of the day, "14g05", "14h:05".
# On lower-case text: patterns without flags are many times faster to say no.
_VIET_WORDS = tuple(
    map(
        re.compile,
        (
            r"tháng\s+[^\W\d_]",
            r" th\.?\s?\d",
            r"tháng\s+\d{1,2}\s+\d{1,2},",
            r"\d(?:g|h:)[0-5]\d",
            r"[0-5]\d(?:\s?phút)?\s{0,2},?\s{0,2}(?:sa|ch|sáng|trưa|chiều|tối|đêm)(?!\w)",
        ),
    )
)
_VIET_MONTHS = (
    "giêng", "hai", "ba", "tư", "năm", "sáu", "bảy", "tám", "chín", "mười(?! một| hai)", "mười một", "mười hai"
)  # fmt: skip
_VIET_MONTH = tuple(
    (
        re.compile(rf"\btháng {'(?:một|giêng)' if n == 1 else '(?:bốn|tư)' if n == 4 else word}(?!\w)", re.I),
        f"tháng {n}",
    )
    for n, word in reversed(tuple(enumerate(_VIET_MONTHS, 1)))
)
_VIET_HALF = re.compile(
    r"(?<!\d)(\d{1,2})(\s?(?::|h|giờ)\s?[0-5]\d(?::[0-5]\d)?)(?:\s?phút)?\s*,?\s*((?-i:SA|CH)|sáng|trưa|chiều|tối|đêm)(?!\w)",
    re.I,
)
_ARABIC_HALF = re.compile(r"(?<=\d)\s*(?:مساءً|مساءا|مساء|صباحًا|صباحاً|صباحا|صباح)")
_BUDDHIST = re.compile(r"(?<!\d)(25[4-9]\d)(?!\d)")
# "3 พ.ค. 67": short months of two letters with dots, and the last two digits of the year.
_THAI_MONTHS = ("มค", "กพ", "มีค", "เมย", "พค", "มิย", "กค", "สค", "กย", "ตค", "พย", "ธค")
_THAI_SHORT = re.compile(r"(?<!\d)(\d{1,2})\s*((?:มี?|มิ|เม|[กพสตธ])\.?[คพย])\.?\s*(25[4-9]\d|\d{2}(?!\d))(?!\d)")


def rules(context: PageContext | None = None, host: str = "", language: str | None = None, locale: str = "") -> Rules:
    """The rules for a page: zone of the site, else of the country domain or language; order of day and month.

    ``locale`` is what the page states ("en-GB"): only English that is not visibly from elsewhere puts
    the month first.
    """
    context = context or PageContext()
    top = host.rpartition(".")[2].lower()
    lang = (context.language or language or "")[:2].lower()
    zone, day_first = _habits(context.zone, top, lang, locale)
    return Rules(zone, day_first, context.fetched, zone is not UTC)


@lru_cache(maxsize=4096)
def _habits(stated: str | None, top: str, lang: str, locale: str) -> tuple[tzinfo, bool]:
    """Zone, and whether the day comes before the month."""
    zone: tzinfo = UTC
    offset = re.fullmatch(r"([+-])(\d{1,2}):?(\d{2})", stated or "")
    if offset:
        delta = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        zone = timezone(-delta if offset[1] == "-" else delta)
    name = None if offset else stated or ZONES.get(top) or ZONES.get(LANGUAGE_ZONES.get(lang, ""))
    if name:
        try:
            zone = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            zone = UTC
    region = locale.replace("_", "-").rpartition("-")[2].lower() if "-" in locale.replace("_", "-") else ""
    region = {"gb": "uk"}.get(region, region)
    english = lang in ("en", "") and (top not in ZONES or top in MONTH_FIRST_ENGLISH)
    return zone, not english or top in DAY_FIRST_ENGLISH or region in DAY_FIRST_ENGLISH


def parse(raw: str, given: Rules | PageContext | None = None) -> When | None:
    """The first date in ``raw``; None when there is none that can be read for certain."""
    how = given if isinstance(given, Rules) else rules(given, language=given.language if given else None)
    text = _normal(raw)
    if not text:
        return None
    if text.isdigit() and len(text) in (10, 13):
        return _epoch(int(text), how)
    text = _buddhist(text)
    js = _JS.search(text)
    if js:
        text = f"{js[2]} {js[1]} {js[5]} {js[3]} {js[4] or ''}{text[js.end() :]}"
    found = _machine(text, how) or _written(text, how)
    if found is None:
        found = _relative(text, how)
    return found if found and _in_bounds(found.value, how) else None


def _normal(raw: str) -> str:
    text = unicodedata.normalize("NFC", raw[: 4 * MAX_CHARS])
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() and c > "9" else c for c in text)
    if not text.isascii():
        text = _ARABIC_HALF.sub(lambda m: " PM" if "م" in m[0][:2] else " AM", text)
    if not text[:4].isdigit():
        lower = text.lower()
        if any(form.search(lower) for form in _VIET_WORDS):
            text = _vietnamese(text)
    text = re.sub("[\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]", "", text)
    return " ".join(text.split())[:MAX_CHARS]


def _vietnamese(text: str) -> str:
    """Months in words as numbers, the halves of the day as AM and PM."""
    for word, number in _VIET_MONTH:
        text = word.sub(number, text)
    text = re.sub(r"(?<=\d)\s+th\.?\s?(1[0-2]|0?[1-9])(?=,?\s+\d{4})", r" tháng \1", text, flags=re.I)
    text = re.sub(r"\btháng (\d{1,2}) (\d{1,2}),", r"\2 tháng \1", text, flags=re.I)
    text = re.sub(r"(?<!\d)(\d{1,2})(?:g|h:)([0-5]\d)(?!\d)", r"\1:\2", text)
    return _VIET_HALF.sub(_viet_half, text)


def _viet_half(match: re.Match[str]) -> str:
    hour, word = int(match[1]), match[3].casefold()
    late = word in ("ch", "chiều", "tối") or (word == "đêm" and 6 <= hour < 12)
    late = late or (word == "trưa" and (hour == 12 or hour < 4))
    return f"{match[1]}{match[2]} {'PM' if late else 'AM' if hour <= 12 and word != 'trưa' else ''} "


def _buddhist(text: str) -> str:
    """Thai years count from 543 BC."""
    if not re.search("[\u0e00-\u0e7f]", text):
        return text
    return _BUDDHIST.sub(lambda m: str(int(m[1]) - 543), _THAI_SHORT.sub(_thai_day, text))


def _thai_day(match: re.Match[str]) -> str:
    month = match[2].replace(".", "")
    if month not in _THAI_MONTHS:
        return match[0]
    year = int(match[3]) - 543 if len(match[3]) == 4 else int(match[3]) + 1957
    return f"{year:04d}-{_THAI_MONTHS.index(month) + 1:02d}-{int(match[1]):02d} "


def _epoch(number: int, how: Rules) -> When | None:
    seconds = number / 1000 if number > 10**11 else number
    value = datetime.fromtimestamp(seconds, UTC)
    return When(value) if _in_bounds(value, how) else None


def _in_bounds(value: datetime, how: Rules) -> bool:
    if value.year < EARLIEST_YEAR:
        return False
    latest = (how.fetched or datetime(2100, 1, 1, tzinfo=UTC)) + timedelta(days=2)
    return value <= latest


Clock = tuple[int, int, int]  # hour, minute, second


def _make(year: int, month: int, day: int, clock: Clock | None, zone: tzinfo | None, how: Rules) -> When | None:
    if year < 100:
        year += 2000 if year < 70 else 1900
    hour, minute, second = clock or (0, 0, 0)
    has_zone = zone is not None or how.zone_known
    try:
        if hour == 24 and minute == 0:
            return When(datetime(year, month, day, tzinfo=zone or how.zone) + timedelta(days=1), True, has_zone)
        return When(
            datetime(year, month, day, hour, minute, second, tzinfo=zone or how.zone), clock is not None, has_zone
        )
    except ValueError:
        return None


def _clock(hour: int, minute: int, second: int, half: str | None) -> tuple[int, int, int] | None:
    """A label is dropped beside an hour over 12: "17:09 PM" is a 24-hour clock with a wrong label."""
    if half and hour <= 12:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    if hour > 24 or minute > 59 or second > 59:
        return None
    return hour, minute, second


def _machine(text: str, how: Rules) -> When | None:
    match = _ISO.search(text)
    if match:
        clock = None
        if match[4]:
            clock = _clock(int(match[4]), int(match[5]), int(match[6] or 0), match[7])
        rest = text[match.end() :]
        if clock is None and not match[4]:
            clock, rest = _find_clock(text[: match.start()] + " " + rest)
        return _make(int(match[1]), int(match[2]), int(match[3]), clock, _zone(rest) if clock else None, how)
    match = _COMPACT.fullmatch(text.rstrip("Z").partition("+")[0])
    if match:
        clock = _clock(int(match[4]), int(match[5]), int(match[6] or 0), None) if match[4] else None
        return _make(int(match[1]), int(match[2]), int(match[3]), clock, UTC if text.endswith("Z") else None, how)
    return None


def _written(text: str, how: Rules) -> When | None:
    for finder in (_find_east, _find_viet, _find_year_first, _find_named, _find_numeric):
        found = finder(text, how)
        if found:
            year, month, day, start, end = found
            # The clock may stand on either side of the date, seldom far from it.
            rest = text[:start][-30:] + " \u0001 " + text[end : end + 45]
            clock, behind = _find_clock(rest)
            return _make(year, month, day, clock, _zone(behind) if clock else None, how)
    return None


Found = tuple[int, int, int, int, int]


def _find_east(text: str, how: Rules) -> Found | None:
    m = _EAST.search(text)
    return (int(m[1]), int(m[2]), int(m[3]), m.start(), m.end()) if m else None


def _find_viet(text: str, how: Rules) -> Found | None:
    m = _VIET.search(text)
    return (int(m[3]), int(m[2]), int(m[1]), m.start(), m.end()) if m else None


def _find_year_first(text: str, how: Rules) -> Found | None:
    m = _YMD.search(text)
    return (int(m[1]), int(m[2]), int(m[3]), m.start(), m.end()) if m else None


def _find_named(text: str, how: Rules) -> Found | None:
    m = _RFC_SHORT_YEAR.search(text)
    if m and m[2].lower() in MONTHS:
        return int(m[3]), MONTHS[m[2].lower()], int(m[1]), m.start(), m.end()
    best: Found | None = None
    for m in _DAY_MONTH.finditer(text):
        month = _month(m[2])
        if month:
            best = (int(m[3] or m[4] or m[5]), month, int(m[1]), m.start(), m.end())
            break
    for m in _MONTH_DAY.finditer(text):
        month = _month(m[1])
        if month and 1 <= int(m[2]) <= 31 and (best is None or m.start() < best[3]):
            # A clock between day and year stays in the rest of the text: end before it.
            return int(m[3] or m[4]), month, int(m[2]), m.start(), m.start(2) + len(m[2])
    return best


def _month(word: str) -> int | None:
    word = word.casefold().strip(".")
    for prefix in ("d'", "d’"):
        word = word.removeprefix(prefix)
    return MONTHS.get(word)


def _find_numeric(text: str, how: Rules) -> Found | None:
    # What .NET prints in its default culture; Vietnamese feeds have it too ("9/8/2026 10:17:00 AM").
    american = _DOTNET.match(text)
    if american and int(american[1]) <= 12:
        return int(american[3]), int(american[1]), int(american[2]), american.start(), american.end(3)
    for m in _DMY.finditer(text):
        a, b, year = int(m[1]), int(m[3]), int(m[4])
        if len(m[4]) == 2 and m[2] not in "/.":
            continue  # 12-10-20 is as likely a score or a range
        # A dot between numbers is never the American order.
        day, month = (a, b) if (how.day_first or m[2] == "." or a > 12) and b <= 12 else (b, a)
        if 1 <= month <= 12 and 1 <= day <= 31:
            return year, month, day, m.start(), m.end()
    return None


def _find_clock(text: str) -> tuple[tuple[int, int, int] | None, str]:
    """``(clock, text behind it)``."""
    m = _TIME.search(text)
    if m:
        return _clock(int(m[1]), int(m[2]), int(m[3] or 0), m[4]), text[m.end() :]
    m = _DOT_TIME.search(text)
    if m:
        return _clock(int(m[1]), int(m[2]), 0, m[3]), text[m.end() :]
    m = _HOUR.search(text)
    if m and int(m[1]) <= 24:
        return _clock(int(m[1]), 0, 0, m[2]), text[m.end() :]
    return None, ""


def _zone(text: str) -> tzinfo | None:
    """The zone that stands right behind a clock, or in brackets behind it."""
    text = text.lstrip(" ,-|(\u0001" if not re.match(r"\s*-\s?\d{2}:?\d{2}", text) else " ,|(\u0001")
    m = _OFFSET.match(text)
    if m:
        hours, minutes = int(m[2]), int(m[3] or 0)
        if hours <= 14 and minutes < 60:
            offset = timedelta(hours=hours, minutes=minutes)
            return timezone(-offset if m[1] == "-" else offset)
        return None
    m = re.match(r"([A-Za-z]{1,4})\b", text)
    if m:
        name = m[1].lower()
        if name in NAMED_ZONES and m[1].isupper():
            return ZoneInfo(NAMED_ZONES[name])
        if name in ABBREVIATIONS and (m[1].isupper() or name in ("utc", "gmt")):
            return timezone(timedelta(minutes=ABBREVIATIONS[name]))
    return None


# ---------------------------------------------------------------- relative
_UNITS: tuple[tuple[str, float], ...] = (
    (r"giây|seconds?|secs?|sekunden?|secondes?|segundos?", 1),
    (r"phút|p|'|minutes?|mins?|minuten?|minutos?|minuti", 60),
    (r"giờ|tiếng|h|hours?|hrs?|stunden?|heures?|horas?|ore", 3600),
    (r"ngày|days?|tage?n?|jours?|d[ií]as?|giorni", 86_400),
    (r"tuần|weeks?|wochen?|semaines?|semanas?", 7 * 86_400),
    (r"tháng|months?|monate?n?|mois|mes(?:es)?", 30 * 86_400),
    (r"năm|years?|jahre?n?|ans?|años?|anos?", 365 * 86_400),
)
_AGO_AFTER = r"(?:trước|ago|fa|atrás)"
_AGO_BEFORE = r"(?:vor|il y a|hace|há|cách đây)"
_NOW = re.compile(r"^(?:mới đây|vừa xong|vừa mới|just now|gerade eben|à l'instant)\b", re.I)
_DAYS = (
    (re.compile(r"\b(?:hôm nay|today|heute|aujourd'hui|hoy|hoje|oggi)\b", re.I), 0),
    (re.compile(r"\b(?:hôm qua|yesterday|gestern|hier|ayer|ontem|ieri)\b", re.I), 1),
    (re.compile(r"\b(?:hôm kia|vorgestern|avant-hier|anteayer)\b", re.I), 2),
)
_RELATIVE = tuple(
    (
        re.compile(
            rf"(?<!\d)(\d{{1,3}}|an?|một|eine?[rnm]?|une?)\s*(?:{unit})\s*{_AGO_AFTER}\b"
            rf"|\b{_AGO_BEFORE}\s+(?:etwa |rund |khoảng )?(\d{{1,3}}|eine?[rnm]?|une?)\s*(?:{unit})\b",
            re.I,
        ),
        seconds,
    )
    for unit, seconds in _UNITS
)


def _relative(text: str, how: Rules) -> When | None:
    """Against the fetch time; from a day on only the day is known."""
    if how.fetched is None or len(text) > 80:
        return None
    now = how.fetched.astimezone(how.zone).replace(microsecond=0)
    if _NOW.search(text):
        return When(now, True, False)
    for pattern, days_ago in _DAYS:
        if pattern.search(text):
            day = now - timedelta(days=days_ago)
            clock, behind = _find_clock(text)
            return _make(day.year, day.month, day.day, clock, _zone(behind) if clock else None, how)
    for pattern, seconds in _RELATIVE:
        match = pattern.search(text)
        if match:
            number = match[1] or match[2]
            value = now - timedelta(seconds=seconds * (int(number) if number.isdigit() else 1))
            if seconds >= 86_400:
                return When(value.replace(hour=0, minute=0, second=0), False, False)
            return When(value.replace(second=0), True, False)
    return None
