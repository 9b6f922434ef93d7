"""Dates as news pages write them: ISO, RFC, words of many languages, Vietnamese forms,
relative ones. Pure.

Never a guess dressed as a value: what cannot be read, or lies outside 1990..fetch
time + 2 days, is None.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from newscrawler.extraction import lexicon
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.zones import (
    ABBREVIATIONS,
    DAY_FIRST_ENGLISH,
    LANGUAGE_ZONES,
    MONTH_FIRST_ENGLISH,
    NAMED_ZONES,
    ZONES,
)
from newscrawler.utils.numbers import is_digits

EARLIEST_YEAR = 1990
# Epochs of programs: 1970, 1980, 2000 and 2001 (Cocoa's).
LAST_PLACEHOLDER_YEAR = 2001
#: A date is looked for in the first characters of a text only; longer ones are not bylines.
MAX_CHARS = 300


@dataclass(frozen=True, slots=True)
class When:
    """``value`` is aware. ``has_time`` False: only the day is known. ``has_zone`` False:
    the zone is assumed."""

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
    r"(?:(?:\s*T\s*|\s+(?:-\s+)?)(\d{1,2}):(\d{2}|\d(?=:))(?::(\d{1,2})(?!\d)(?:[.,:]\d{1,9})?)?"
    r"(?:\s*([AaPp])\.?[Mm]\.?)?)?"
)
_COMPACT = re.compile(r"(?<!\d)(\d{4})(\d{2})(\d{2})(?:T?(\d{2})(\d{2})(\d{2})?)?(?!\d)")
_OFFSET = re.compile(r"(?:GMT|UTC|Z)?\s*([+-])\s?(\d{1,2})(?::?(\d{2}))?(?!\d)")
_TIME = lexicon.Pattern(
    r"(?<![\d./-])(?<!\d:)([01]?\d|2[0-4])\s?(?:[:：hH]|<clock.hour>)\s?([0-5]\d)"
    r"(?:\s?(?:[:：m]|<clock.minute>)\s?([0-5]\d)?)?(?!\d)"
    r"(?:\s*([AaPp])\.?\s?[Mm](?![a-z])\.?)?",
    flags=0,
)
_DOT_TIME = lexicon.Pattern(
    r"(?<![\d./-])(?<!\d:)([01]?\d|2[0-3])\.([0-5]\d)(?![\d.])(?:\s*([AaPp])\.?\s?[Mm](?![a-z])\.?)?"
    r"(?:\s*(?:<clock.behind>|h\b))?",
    flags=0,
)
_HOUR = lexicon.Pattern(
    r"(?<![\d./-])(?<!\d:)(\d{1,2})\s*(?:([AaPp])\.?\s?[Mm](?![a-z])\.?"
    r"|(?:<clock.whole_hour>|h)(?!\w)|<clock.whole_hour_sign>)",
    flags=0,
)
_EAST = lexicon.Pattern(
    r"(?<!\d)(\d{4})\s*(?:<date.year_sign>)\s*(\d{1,2})\s*(?:<date.month_sign>)\s*(\d{1,2})"
    r"\s*(?:<date.day_sign>)?"
)
_YMD = re.compile(r"(?<!\d)(\d{4})\s?[./-]\s?(\d{1,2})\s?[./-]\s?(\d{1,2})(?!\d)")
_DMY = re.compile(
    r"(?<!\d)(?<!\d:)(\d{1,2})\s?([./\-‐–−])\s?(\d{1,2})\s?[./\-‐–−]\s?(\d{4}|\d{2})(?![\d:])"
)
_MONTH_WORD = lexicon.Pattern(
    r"(?<!\d)(\d{1,2})\s*(?:<date.month_word>|<date.month_word_short>)\s*(\d{1,2})\s*+"
    r"(?:(?:[,/-]|<date.year_word>)\s*+)?(\d{4})(?!\d)"
)
_NAME = r"(?:(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0e7f]){3,24}|[\u0900-\u097f]{2})"
_DAY_MONTH = lexicon.Pattern(
    rf"(?<![\d.])(?<!\d:)(\d{{1,2}})(?:\.|<date.ordinal>)?\s*+(?:[,\-–/.]\s*+)?"
    rf"(?:(?:<date.of_month>)\s+|d['’]\s?)?"
    rf"({_NAME})\.?(?:\s*/\s*{_NAME})?\s*+(?:[,\-–/.]\s*+)?"
    rf"(?:(?:<date.of_year>)\s+|d['’]\s?)?"
    rf"(?:(\d{{4}})(?!\d)|['’](\d{{2}})(?!\d)|(?<=-)(\d{{2}})(?!\d))"
)
_MONTH_DAY = lexicon.Pattern(
    rf"({_NAME})\.?\s*(\d{{1,2}})(?:<date.ordinal_behind_month>)?(?![\d:])\s*,?\s*"
    rf"(?:\d{{1,2}}:\d{{2}}(?:\s*[ap]\.?m\.?)?\s*,?\s*)?"
    r"(?:(\d{4})(?!\d)|['’](\d{2})(?!\d))"
)
# Hungarian and the Baltic languages: "2026. január 26.", "2026 m. sausio 26 d.".
_YEAR_NAMED = lexicon.Pattern(
    r"(?<![\d./-])(?<!\d:)(\d{4})\.?(?:\s?(?:<date.behind_year>))?,?\s+"
    rf"(?:({_NAME})\.?\s(\d{{1,2}})|(\d{{1,2}})\.\s?({_NAME}))(?![\d:])"
)
_RFC_SHORT_YEAR = re.compile(r"(?<!\d)(\d{1,2})[\s-]([A-Za-z]{3})[\s-](\d{2})\s+(?=\d{1,2}:\d{2})")
_DOTNET = re.compile(
    r"([1-9]|1[0-2])/([1-9]|[12]\d|3[01])/(\d{4}) (?:[1-9]|1[0-2]):\d{2}:\d{2} [AP]M$"
)
_JS = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{1,2}) (\d{2}:\d{2}:\d{2}) (?:([A-Z]{2,5}) )?(\d{4})"
)
# Vietnamese in words, as blogs and phones print it: months, halves of the day, "14g05", "14h:05".
# On lower-case text: patterns without flags are many times faster to say no.
_HALVES = "<half.morning>|<half.noon>|<half.afternoon>|<half.night>"
_VIET_WORDS = tuple(
    lexicon.Pattern(pattern, flags=0)
    for pattern in (
        r"(?:<date.month_word>)\s+[^\W\d_]",
        r" th\.?\s?\d",
        r"(?:<date.month_word>)\s+\d{1,2}\s+\d{1,2},",
        r"\d(?:g|h:)[0-5]\d",
        r"(?:[0-5]\d(?:\s?phút)?|\d\s?giờ)\s{0,2},?\s{0,2}"
        rf"(?:<half.short_am>|<half.short_pm>|{_HALVES})(?!\w)",
    )
)
_VIET_MONTH = lexicon.Pattern(r"\b(?:<date.month_word>) (<date.month_counted>)(?!\w)")
_VIET_HALF = lexicon.Pattern(
    r"(?<!\d)(\d{1,2})(\s?(?::|h|giờ)\s?[0-5]\d(?::[0-5]\d)?|\s?giờ)(?:\s?phút)?\s*+(?:,\s*+)?"
    rf"((?-i:SA|CH)|{_HALVES})(?!\w)"
)
_AM = lexicon.Pattern(r"(?<=\d)\s*(?:<half.am>)")
_PM = lexicon.Pattern(r"(?<=\d)\s*(?:<half.pm>)")
_BUDDHIST = re.compile(r"(?<!\d)(25[4-9]\d)(?!\d)")
# "3 พ.ค. 67": short months of two letters with dots, and the last two digits of the year.
_THAI_SHORT = re.compile(
    r"(?<!\d)(\d{1,2})\s*((?:มี?|มิ|เม|[กพสตธ])\.?[คพย])\.?\s*(25[4-9]\d|\d{2}(?!\d))(?!\d)"
)


def rules(
    context: PageContext | None = None,
    host: str = "",
    language: str | None = None,
    locale: str = "",
) -> Rules:
    """The rules for a page: zone of the site, else of the country domain or language;
    order of day and month.

    ``locale`` is what the page states ("en-GB"): only English that is not visibly from elsewhere
    puts the month first.
    """
    context = context or PageContext()
    top = host.rpartition(".")[2].lower()
    lang = (context.language or language or "")[:2].lower()
    zone, day_first = _habits(context.zone, top, lang, locale)
    return Rules(zone, day_first, context.fetched, zone is not UTC)


@lru_cache(maxsize=4096)
def _habits(stated: str | None, top: str, lang: str, locale: str) -> tuple[tzinfo, bool]:
    """Zone, and whether the day comes before the month."""
    _, has_region, region = locale.replace("_", "-").lower().rpartition("-")
    if not has_region:
        region = ""
    elif region == "gb":
        region = "uk"
    is_english = lang in ("en", "") and (top not in ZONES or top in MONTH_FIRST_ENGLISH)
    day_first = not is_english or top in DAY_FIRST_ENGLISH or region in DAY_FIRST_ENGLISH
    return _zone_of_site(stated or "", top, lang), day_first


def _zone_of_site(stated: str, top: str, lang: str) -> tzinfo:
    """The offset or name that is stated, else the zone of the domain's country or the language."""
    offset = re.fullmatch(r"([+-])(\d{1,2}):?(\d{2})", stated)
    if offset:
        return _offset_zone(offset[1], int(offset[2]), int(offset[3]))
    name = stated or ZONES.get(top) or ZONES.get(LANGUAGE_ZONES.get(lang, ""))
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def _offset_zone(sign: str, hours: int, minutes: int) -> tzinfo:
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if sign == "-" else offset)


def parse(raw: str, given: Rules | PageContext | None = None) -> When | None:
    """The first date in ``raw``; None when there is none that can be read for certain."""
    if isinstance(given, Rules):
        how = given
    else:
        how = rules(given, language=given.language if given else None)
    text = _normal(raw)
    if not text:
        return None
    if is_digits(text) and len(text) in (10, 13):
        return _epoch(int(text), how)
    text = _buddhist(text)
    js = _JS.search(text)
    if js:
        text = f"{js[2]} {js[1]} {js[5]} {js[3]} {js[4] or ''}{text[js.end() :]}"
    found = _machine(text, how) or _written(text, how) or _relative(text, how)
    return found if found and _in_bounds(found.value, how) else None


def _normal(raw: str) -> str:
    text = unicodedata.normalize("NFC", raw[: 4 * MAX_CHARS])
    if not text.isascii():
        text = "".join(map(_ascii_digit, text))
        text = _AM.sub(" AM", _PM.sub(" PM", text))
    if not text[:4].isdigit():
        lower = text.lower()
        if any(form.search(lower) for form in _VIET_WORDS):
            text = _vietnamese(text)
    text = re.sub("[\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]", "", text)
    return " ".join(text.split())[:MAX_CHARS]


def _ascii_digit(sign: str) -> str:
    return str(unicodedata.decimal(sign)) if sign > "9" and sign.isdecimal() else sign


def _vietnamese(text: str) -> str:
    """Months in words as numbers, the halves of the day as AM and PM."""
    text = _VIET_MONTH.sub(_viet_month, text)
    text = re.sub(
        r"(?<=\d)\s+th\.?\s?(1[0-2]|0?[1-9])(?=,?\s+\d{4})", r" tháng \1", text, flags=re.I
    )
    text = re.sub(r"\btháng (\d{1,2}) (\d{1,2}),", r"\2 tháng \1", text, flags=re.I)
    text = re.sub(r"(?<!\d)(\d{1,2})(?:g|h:)([0-5]\d)(?!\d)", r"\1:\2", text)
    return _VIET_HALF.sub(_viet_half, text)


@cache
def _months_counted() -> dict[str, int]:
    counted = enumerate(lexicon.forms("date.month_counted"), 1)
    return {word: month for month, form in counted for word in lexicon.spellings(form)}


def _viet_month(match: re.Match[str]) -> str:
    return f"tháng {_months_counted()[match[1].casefold()]}"


def _viet_half(match: re.Match[str]) -> str:
    hour, word = int(match[1]), match[3].casefold()
    clock = match[2] if is_digits(match[2][-1]) else ":00"  # "1 giờ đêm"
    return f"{match[1]}{clock} {_half_of_day(hour, word)} "


def _half_of_day(hour: int, word: str) -> str:
    """AM, PM or "" for an hour and the part of the day that stands behind it."""
    if word in lexicon.words("half.noon"):
        return "PM" if hour == 12 or hour < 4 else ""
    is_evening = word in lexicon.words("half.night") and 6 <= hour < 12
    if word in lexicon.words("half.afternoon") | lexicon.words("half.short_pm") or is_evening:
        return "PM"
    return "AM" if hour <= 12 else ""


def _buddhist(text: str) -> str:
    """Thai years count from 543 BC."""
    if not re.search("[\u0e00-\u0e7f]", text):
        return text
    return _BUDDHIST.sub(lambda m: str(int(m[1]) - 543), _THAI_SHORT.sub(_thai_day, text))


def _thai_day(match: re.Match[str]) -> str:
    month = lexicon.months().get(match[2].replace(".", ""))
    if month is None:
        return match[0]
    year = int(match[3]) if len(match[3]) == 4 else 2500 + int(match[3])
    return f"{year - 543:04d}-{month:02d}-{int(match[1]):02d} "


def _epoch(number: int, how: Rules) -> When | None:
    seconds = number / 1000 if number > 10**11 else number
    value = datetime.fromtimestamp(seconds, UTC)
    return When(value) if _in_bounds(value, how) else None


def _in_bounds(value: datetime, how: Rules) -> bool:
    if value.year < EARLIEST_YEAR:
        return False
    latest = (how.fetched or datetime(2100, 1, 1, tzinfo=UTC)) + timedelta(days=2)
    return value <= latest


def is_placeholder(when: When) -> bool:
    """The first instant of a year before most of the web's news: what a template states when it has
    no date (2001-01-01)."""
    if when.value.year > LAST_PLACEHOLDER_YEAR + 1:
        return False
    return any(
        (v.month, v.day, v.hour, v.minute, v.second) == (1, 1, 0, 0, 0)
        and v.year <= LAST_PLACEHOLDER_YEAR
        for v in (when.value, when.value.astimezone(UTC))
    )


def is_year_alone(when: When) -> bool:
    """The first instant of any year: a whole year is meant as often as that day."""
    return (when.value.month, when.value.day, when.value.hour, when.value.minute) == (1, 1, 0, 0)


Clock = tuple[int, int, int]  # hour, minute, second


def _make(
    year: int, month: int, day: int, clock: Clock | None, zone: tzinfo | None, how: Rules
) -> When | None:
    if year < 100:
        year += 2000 if year < 70 else 1900
    hour, minute, second = clock or (0, 0, 0)
    is_midnight_behind = hour == 24 and minute == 0
    if is_midnight_behind:
        hour, second = 0, 0
    try:
        value = datetime(year, month, day, hour, minute, second, tzinfo=zone or how.zone)
        if is_midnight_behind:
            value += timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return When(value, clock is not None, zone is not None or how.zone_known)


def _clock(hour: int, minute: int, second: int, half: str | None) -> tuple[int, int, int] | None:
    """A label is dropped beside an hour over 12: "17:09 PM" is a 24-hour clock
    with a wrong label."""
    if half and hour <= 12:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    if hour > 24 or minute > 59 or second > 59:
        return None
    return hour, minute, second


def _machine(text: str, how: Rules) -> When | None:
    match = _ISO.search(text)
    if match:
        rest = text[match.end() :]
        if match[4]:
            clock = _clock(int(match[4]), int(match[5]), int(match[6] or 0), match[7])
        else:
            clock, rest = _find_clock(text[: match.start()] + " " + rest)
        return _make(*_numbers(match, 1, 2, 3), clock, _zone(rest) if clock else None, how)
    match = _COMPACT.fullmatch(text.rstrip("Z").partition("+")[0])
    if match is None:
        return None
    clock = None
    if match[4]:
        clock = _clock(int(match[4]), int(match[5]), int(match[6] or 0), None)
    return _make(*_numbers(match, 1, 2, 3), clock, UTC if text.endswith("Z") else None, how)


def _numbers(match: re.Match[str], year: int, month: int, day: int) -> tuple[int, int, int]:
    """Year, month and day by the groups that hold them."""
    return int(match[year]), int(match[month]), int(match[day])


def _written(text: str, how: Rules) -> When | None:
    for finder in _FINDERS:
        found = finder(text, how)
        if found:
            year, month, day, start, end = found
            # The clock may stand on either side of the date, seldom far from it.
            rest = text[:start][-30:] + " \u0001 " + text[end : end + 45]
            return _at_clock_in(rest, year, month, day, how)
    return None


def _at_clock_in(rest: str, year: int, month: int, day: int, how: Rules) -> When | None:
    """The day at the clock that the rest of a text has, if it has one."""
    clock, behind = _find_clock(rest)
    return _make(year, month, day, clock, _zone(behind) if clock else None, how)


Found = tuple[int, int, int, int, int]


def _find_east(text: str, how: Rules) -> Found | None:
    m = _EAST.search(text)
    return (*_numbers(m, 1, 2, 3), m.start(), m.end()) if m else None


def _find_viet(text: str, how: Rules) -> Found | None:
    m = _MONTH_WORD.search(text)
    return (*_numbers(m, 3, 2, 1), m.start(), m.end()) if m else None


def _find_year_first(text: str, how: Rules) -> Found | None:
    m = _YMD.search(text)
    return (*_numbers(m, 1, 2, 3), m.start(), m.end()) if m else None


def _find_named(text: str, how: Rules) -> Found | None:
    m = _RFC_SHORT_YEAR.search(text)
    if m and m[2].lower() in lexicon.months():
        return int(m[3]), lexicon.months()[m[2].lower()], int(m[1]), m.start(), m.end()
    first, second = _find_day_month(text), _find_month_day(text)
    if first is None or second is None:
        return first or second
    return second if second[3] < first[3] else first


def _find_day_month(text: str) -> Found | None:
    for m in _DAY_MONTH.finditer(text):
        month = _month(m[2])
        if month:
            return int(m[3] or m[4] or m[5]), month, int(m[1]), m.start(), m.end()
    return None


def _find_month_day(text: str) -> Found | None:
    for m in _MONTH_DAY.finditer(text):
        month = _month(m[1])
        if month and 1 <= int(m[2]) <= 31:
            # A clock between day and year stays in the rest of the text: end before it.
            return int(m[3] or m[4]), month, int(m[2]), m.start(), m.start(2) + len(m[2])
    return None


def _month(word: str) -> int | None:
    word = word.casefold().strip(".")
    for prefix in ("d'", "d’"):
        word = word.removeprefix(prefix)
    return lexicon.months().get(word)


def _find_american(text: str, how: Rules) -> Found | None:
    """What .NET prints in its default culture; Vietnamese feeds have it too
    ("9/8/2026 10:17:00 AM")."""
    m = _DOTNET.match(text)
    return (*_numbers(m, 3, 1, 2), m.start(), m.end(3)) if m else None


def _find_numeric(text: str, how: Rules) -> Found | None:
    for m in _DMY.finditer(text):
        a, b, year = int(m[1]), int(m[3]), int(m[4])
        if len(m[4]) == 2 and m[2] not in "/.":
            continue  # 12-10-20 is as likely a score or a range
        # A dot between numbers is never the American order.
        is_day_first = how.day_first or m[2] == "." or a > 12
        day, month = (a, b) if is_day_first and b <= 12 else (b, a)
        if 1 <= month <= 12 and 1 <= day <= 31:
            return year, month, day, m.start(), m.end()
    return None


def _find_year_named(text: str, how: Rules) -> Found | None:
    """Asked last: "2025 January 5, 2026" is a year and a whole date."""
    for m in _YEAR_NAMED.finditer(text):
        month = _month(m[2] or m[5])
        if month:
            return int(m[1]), month, int(m[3] or m[4]), m.start(), m.end()
    return None


#: In the order in which they are asked.
_FINDERS = (
    _find_east,
    _find_viet,
    _find_year_first,
    _find_named,
    _find_american,
    _find_numeric,
    _find_year_named,
)


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
    is_offset = re.match(r"\s*-\s?\d{2}:?\d{2}", text)  # else the sign may be a dash
    text = text.lstrip(" ,|(\u0001" if is_offset else " ,-|(\u0001")
    m = _OFFSET.match(text)
    if m:
        hours, minutes = int(m[2]), int(m[3] or 0)
        is_real = hours <= 14 and minutes < 60
        return _offset_zone(m[1], hours, minutes) if is_real else None
    m = re.match(r"([A-Za-z]{1,4})\b", text)
    return _named_zone(m[1]) if m else None


def _named_zone(name: str) -> tzinfo | None:
    lower = name.lower()
    if name.isupper() and lower in NAMED_ZONES:
        return ZoneInfo(NAMED_ZONES[lower])
    if lower in ABBREVIATIONS and (name.isupper() or lower in ("utc", "gmt")):
        return timezone(timedelta(minutes=ABBREVIATIONS[lower]))
    return None


# ---------------------------------------------------------------- relative
_DAY_S = 86_400
# A list of the lexicon and its seconds; longer ones than an hour leave the day alone.
_UNITS = (
    ("ago.second", 1),
    ("ago.minute", 60),
    ("ago.hour", 3600),
    ("ago.day", 86_400),
    ("ago.week", 7 * 86_400),
    ("ago.month", 30 * 86_400),
    ("ago.year", 365 * 86_400),
)
_NOW = lexicon.Pattern(r"^(?:<ago.now>)\b")
_DAYS = (
    (lexicon.Pattern(r"\b(?:<ago.today>)\b"), 0),
    (lexicon.Pattern(r"\b(?:<ago.yesterday>)\b"), 1),
    (lexicon.Pattern(r"\b(?:<ago.day_before>)\b"), 2),
)
_RELATIVE = tuple(
    (
        lexicon.Pattern(
            rf"(?<!\d)(\d{{1,3}}|<ago.one_behind>|<ago.one>)\s*(?:<{unit}>)\s*(?:<ago.behind>)\b"
            rf"|\b(?:<ago.before>)\s+(?:(?:<ago.about>) )?(\d{{1,3}}|<ago.one>)\s*(?:<{unit}>)\b"
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
            return _at_clock_in(text, day.year, day.month, day.day, how)
    for pattern, seconds in _RELATIVE:
        match = pattern.search(text)
        if match:
            return _ago(now, match[1] or match[2], seconds)
    return None


def _ago(now: datetime, number: str, seconds: int) -> When:
    """``number`` in digits, or a word for one."""
    count = int(number) if is_digits(number) else 1
    value = (now - timedelta(seconds=seconds * count)).replace(second=0)
    if seconds < _DAY_S:
        return When(value, True, False)
    return When(value.replace(hour=0, minute=0), False, False)
