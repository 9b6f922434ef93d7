"""A page's own dates, moved: machine-readable ones and what readers see. Month names stay, so that
any language will do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache

#: A date so many days from the article's is the article's too: another zone, an update.
WINDOW = range(-1, 4)
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_COMPACT = re.compile(r"(?<!\d)(\d{4})(\d\d)(\d\d)(?!\d)")
_EPOCH = re.compile(r"(?<![\d.])(1\d{9})(\d{3})?(?!\d)")
_WORD = r"[^\W\d_]{3,}"
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Move:
    """From the day that a page was published on to another of the same month, in
    another year perhaps."""

    old: date
    new: date

    @property
    def by(self) -> timedelta:
        return self.new - self.old

    @cache  # noqa: B019 - as many as there are pages
    def days(self) -> dict[date, date]:
        """Old -> new of the days around, the article's own first; of other months none:
        their names would change."""
        near = sorted((self.old + timedelta(days=n) for n in WINDOW), key=lambda d: d != self.old)
        return {
            d: d + self.by
            for d in near
            if d.month == self.old.month and (d + self.by).month == d.month
        }

    def machine(self, text: str) -> str:
        """ISO dates, 20240131 and seconds since the epoch."""
        if not _DIGIT.search(text):
            return text
        near = {self.old + timedelta(days=n) for n in WINDOW}

        def moved(match: re.Match[str], form: str) -> str:
            try:
                day = date(int(match[1]), int(match[2]), int(match[3]))
            except ValueError:
                return match[0]
            return (day + self.by).strftime(form) if day in near else match[0]

        def seconds(match: re.Match[str]) -> str:
            if datetime.fromtimestamp(int(match[1]), UTC).date() not in near:
                return match[0]
            return f"{int(match[1]) + round(self.by.total_seconds())}{match[2] or ''}"

        text = _ISO.sub(lambda m: moved(m, "%Y-%m-%d"), text)
        text = _COMPACT.sub(lambda m: moved(m, "%Y%m%d"), text)
        return _EPOCH.sub(seconds, text)

    def seen(self, text: str) -> str:
        """What readers see: 31.01.2024, 1/31/24, 31 January 2024, Jan. 31, 2024,
        2024年1月31日, "31. Januar"."""
        if not _DIGIT.search(text):
            return text
        for old, new in self.days().items():
            for pattern, write in _forms(old, new):
                changed = pattern.sub(write, text)
                if changed != text:
                    return changed
        return text


_Form = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


@cache
def _forms(old: date, new: date) -> list[_Form]:
    y, short, m = rf"{old.year}", rf"{old.year % 100:02}", rf"0?{old.month}"
    d = rf"(?<!\d)(0?){old.day}(?!\d)"
    year = {y: str(new.year), short: f"{new.year % 100:02}"}

    def day(zero: str, was: int = old.day) -> str:
        return f"{new.day:02}" if zero or (was >= 10 and new.day < 10) else str(new.day)

    either = rf"({y}|{short})(?!\d)"
    cjk = rf"({y})(\s*年\s*|\s*년\s*)({m})(\s*月\s*|\s*월\s*){d}"
    return [
        (re.compile(cjk), lambda g: f"{year[g[1]]}{g[2]}{g[3]}{g[4]}{day(g[5])}"),
        (re.compile(rf"(?<!\d)({y})([-/. ]{{1,2}})({m})\2{d}"), lambda g: f"{year[g[1]]}{g[2]}{g[3]}{g[2]}{day(g[4])}"),
        (re.compile(rf"{d}(\s?[-/. ]\s?)({m})(\s?[-/. ]\s?){either}"), lambda g: f"{day(g[1])}{g[2]}{g[3]}{g[4]}{year[g[5]]}"),
        (re.compile(rf"(?<!\d)({m})([-/. ]){d}\2{either}"), lambda g: f"{g[1]}{g[2]}{day(g[3])}{g[2]}{year[g[4]]}"),
        (re.compile(rf"{d}([^\d\n]{{1,12}}?)({_WORD})([^\d\n]{{1,8}}?)({y})"), lambda g: f"{day(g[1])}{g[2]}{g[3]}{g[4]}{year[g[5]]}"),
        (re.compile(rf"({_WORD}\.?\s+){d}([^\d\n]{{1,6}}?)({y})"), lambda g: f"{g[1]}{day(g[2])}{g[3]}{year[g[4]]}"),
        (re.compile(rf"{d}(\.\s?)({m})(\.)(?!\d)"), lambda g: f"{day(g[1])}{g[2]}{g[3]}{g[4]}"),
    ]  # fmt: skip
