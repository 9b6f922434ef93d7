"""The ways in which sites print and declare dates. Input: seconds since the epoch; zone +07:00."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

HANOI = timezone(timedelta(hours=7))
_WEEK = ("hai", "ba", "tư", "năm", "sáu", "bảy")
_EN_DAY = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EN_MONTH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def local(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), HANOI)


def iso(seconds: float) -> str:
    """2026-11-21T10:00:00+07:00"""
    return local(seconds).isoformat()


def iso_utc(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def http_date(seconds: float) -> str:
    d = datetime.fromtimestamp(int(seconds), UTC)
    return f"{_EN_DAY[d.weekday()]}, {d.day:02d} {_EN_MONTH[d.month - 1]} {d:%Y %H:%M:%S} GMT"


def _weekday(d: datetime, upper: bool = False) -> str:
    if d.weekday() == 6:
        return "Chủ nhật"
    word = _WEEK[d.weekday()]
    return f"Thứ {word.capitalize() if upper else word}"


VISIBLE: dict[str, Callable[[datetime], str]] = {
    "vnexpress": lambda d: f"{_weekday(d)}, {d.day}/{d.month}/{d.year}, {d:%H:%M} (GMT+7)",
    "laodong": lambda d: f"{_weekday(d)}, {d:%d/%m/%Y %H:%M} (GMT+7)",
    "vietnamnet": lambda d: f"{_weekday(d, True)}, {d:%d/%m/%Y - %H:%M}",
    "vov": lambda d: f"{_weekday(d, True)}, {d:%H:%M, %d/%m/%Y}",
    "nhandan": lambda d: f"{_weekday(d, True)}, ngày {d:%d/%m/%Y - %H:%M}",
    "qdnd": lambda d: f"{_weekday(d)}, {d:%d/%m/%Y}",
    "no-zero": lambda d: f"{_weekday(d)}, {d.day}/{d.month}/{d.year} {d:%H:%M} (GMT+7)",
    "vtcnews": lambda d: f"{_weekday(d)}, {d:%d/%m/%Y %H:%M:%S} (GMT+7)",
    "gmt7": lambda d: f"{d:%d/%m/%Y %H:%M} GMT+7",
    "plain": lambda d: f"{d:%d/%m/%Y %H:%M}",
    "dash": lambda d: f"- {d:%d/%m/%Y %H:%M}",
    "time-comma": lambda d: f"{d:%H:%M, %d/%m/%Y}",
    "time-pipe": lambda d: f"{d:%H:%M} | {d:%d/%m/%Y}",
    "time-first": lambda d: f"{d:%H:%M %d/%m/%Y}",
    "time-first-bar": lambda d: f"{d:%H:%M %d/%m/%Y} |",
    # The clock has 24 hours and the label is wrong, as on the real site.
    "cafef": lambda d: f"{d:%d-%m-%Y - %H:%M} {'AM' if d.hour < 12 else 'PM'}",
    "caps-day": lambda d: f"{_weekday(d).upper()}, {d:%d/%m/%Y %H:%M}",
    "short-day": lambda d: (
        f"{'CN' if d.weekday() == 6 else f'T{d.weekday() + 2}'}, {d:%d/%m/%Y - %H:%M}"
    ),
    "dang-luc": lambda d: f"Đăng lúc {d:%H:%M} ngày {d:%d/%m/%Y}",
    "thang": lambda d: f"Ngày {d.day} tháng {d.month} năm {d.year}, {d:%H:%M}",
}
#: Visible forms without a time of day: only the day can be compared.
DAY_ONLY = frozenset({"qdnd"})


def visible(form: str, seconds: float) -> str:
    return VISIBLE[form](local(seconds))


def relative(seconds: float, now: float) -> str:
    """The form of list pages: "5 phút trước"."""
    age = max(0, int(now - seconds))
    for size, word in ((86400, "ngày"), (3600, "giờ"), (60, "phút")):
        if age >= size:
            return f"{age // size} {word} trước"
    return "Vừa xong"


def comment_date(seconds: float) -> str:
    """The date that an editor's script leaves in comments: never the date of the article."""
    d = local(seconds)
    return f"{_EN_DAY[d.weekday()]} {_EN_MONTH[d.month - 1]} {d:%d %Y %H:%M:%S} GMT+0700 (Giờ Đông Dương)"


def _rfc822(d: datetime, zone: str, year: str = "%Y") -> str:
    return f"{_EN_DAY[d.weekday()]}, {d:%d} {_EN_MONTH[d.month - 1]} {d.strftime(year)} {d:%H:%M:%S} {zone}"


def _us(d: datetime, gap: str) -> str:
    return f"{d.month}/{d.day}/{d.year} {d.hour % 12 or 12}:{d:%M:%S}{gap}{'AM' if d.hour < 12 else 'PM'}"


FEED: dict[str, Callable[[datetime], str]] = {
    "rfc822": lambda d: _rfc822(d, "+0700"),
    "us-nnbsp": lambda d: _us(d, "\u202f"),
    "us": lambda d: _us(d, " "),
    "short-zone": lambda d: _rfc822(d, "+07"),
    "two-digit-year": lambda d: _rfc822(d, "+0700", "%y"),
    "colon-zone": lambda d: _rfc822(d, "+07:00"),
    "gmt7": lambda d: _rfc822(d, "GMT+7"),
    "utc": lambda d: _rfc822(d.astimezone(UTC), "GMT"),
    "iso": lambda d: d.isoformat(),
    "none": lambda d: "",
}


def feed(form: str, seconds: float) -> str:
    return FEED[form](local(seconds))
