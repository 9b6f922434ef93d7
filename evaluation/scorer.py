"""Scores of an extraction against gold data, per field. Pure.

Rules:

title     equal after normalising (NFC, case, quotes, dashes, white space, outer punctuation), or
          one is the other with up to three parts (site, section, author) cut off at a separator;
          a part is at most 5 words and shorter than what is kept (2 words or 4 characters).
day       same day in the gold's zone, in the prediction's zone, or as printed. Gold in UTC and a
          prediction without a zone: right when any zone from UTC-8 to UTC+9 makes it right.
minute    where the gold has a time: the same instant to the minute; without a zone read in the
          gold's.
authors   normalised names: exact sets; pooled precision and recall; ``ok``: every gold name found
          (one name's words contain the other's, two shared at least) and at most one extra per
          gold name.
content   multisets of 4-token shingles, CJK, Thai and Lao by character: precision, recall, F1 per
          page.
segments  share of wanted pieces of text found, and of unwanted ones absent.

The table of fields here is the scorer's own: gold data says title, day and minute where an article
has ``title`` and ``published``, and each of them has a rule of its own.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

Record = Mapping[str, Any]

_CUT = re.compile(r"(?<!\s)\s++[|\-–—:·•»«/~*]+\s+|(?:(?<!\s)\s++)?(?:[|»｜ㅣ：]|--)\s*|:\s+")
_SIGNS: dict[int, str | None] = {ord(c): "'" for c in "‘’‚`´"}
_SIGNS |= {ord(c): '"' for c in "“”„«»"} | {ord(c): "-" for c in "–—‐‑−"}
_SIGNS |= {ord("…"): "...", 0xAD: None, 0x200B: None, 0xFEFF: None}
_BY_CHARACTER = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_TOKEN = re.compile(rf"[{_BY_CHARACTER}]|[^\W{_BY_CHARACTER}]+")
_ISO = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:T(?P<time>\d\d:\d\d)(?::(?P<s>\d\d)(?:[.,]\d+)?)?\s*(?P<zone>[+-]\d\d:?\d\d)?)?"
)
_LEAD_WORD = re.compile(
    r"^(?:by|von|par|por|di|theo|bài|ảnh|tác giả|text|story|written by|posted by)\b[:\s]+",
    re.IGNORECASE,
)
_NAME_CUT = re.compile(
    r"\s{0,9}(?:[;|,，、&\n]|\s/\s|\s(?:and|und|et|và|-)\s)\s{0,9}",
    re.IGNORECASE,
)


# ---------------------------------------------------------------- title
def _unescape(value: Any) -> str:
    return unicodedata.normalize("NFC", html.unescape(str(value))).replace("\xa0", " ")


def normal(value: Any) -> str:
    return " ".join(re.split(r"\s+", _unescape(value).translate(_SIGNS))).strip()


def title_key(value: Any) -> str:
    key = normal(value).casefold().replace('"', "").replace("'", "")
    return re.sub(r"^\W+|(?<!\W)\W+$", "", key)


def _shortened(value: Any) -> set[str]:
    """Keys of the title with up to three outer parts cut off, each way that is allowed."""
    keys: set[str] = set()
    front = {_unescape(value)}
    for _ in range(3):
        behind: set[str] = set()
        for whole in front:
            for match in _CUT.finditer(whole):
                left, right = whole[: match.start()], whole[match.end() :]
                for keep, part in ((left, right), (right, left)):
                    long_enough = len(keep.split()) >= 2 or len(keep) >= 4
                    if len(part.split()) <= 5 and len(keep) > len(part) and long_enough:
                        behind.add(keep)
        keys |= {title_key(k) for k in behind}
        front = behind
    return keys


def title_is_right(gold: Any, predicted: Any) -> bool:
    if not predicted:
        return False
    g, p = title_key(gold), title_key(predicted)
    return g == p or g in _shortened(predicted) or p in _shortened(gold)


# ---------------------------------------------------------------- dates
def read_when(value: Any) -> tuple[date, datetime | None] | None:
    """``(day, time)`` of an ISO date; the time is naive when it carries no zone.
    None: not readable."""
    if not value:
        return None
    text = re.sub(r"^(\d{4}-\d\d-\d\d) (?=\d)", r"\1T", str(value).strip())
    text = re.sub(r"(?<!\s)\s+(?=[+-]\d\d:?\d\d$)", "", text)
    text = re.sub(r"(?:Z|UTC|GMT)$", "+00:00", text.strip()).replace(" +", "+")
    match = _ISO.match(text)
    if not match:
        return None
    try:
        day = date.fromisoformat(match["day"])
        if match["time"] is None:
            return day, None
        hour, minute = (int(x) for x in match["time"].split(":"))
        zone = None
        if match["zone"]:
            digits = match["zone"].replace(":", "")
            offset = timedelta(hours=int(digits[1:3]), minutes=int(digits[3:5]))
            zone = timezone(-offset if digits[0] == "-" else offset)
        return day, datetime(
            day.year, day.month, day.day, hour, minute, int(match["s"] or 0), tzinfo=zone
        )
    except ValueError:
        return None


def day_is_right(gold: Any, predicted: Any) -> bool:
    g, p = read_when(gold), read_when(predicted)
    if g is None or p is None:
        return False
    (day, time), (predicted_day, predicted_time) = g, p
    if day == predicted_day:
        return True
    if time is None or time.tzinfo is None:
        return False
    if predicted_time is not None and predicted_time.tzinfo is not None:
        in_golds_zone = predicted_time.astimezone(time.tzinfo).date() == day
        return in_golds_zone or time.astimezone(predicted_time.tzinfo).date() == predicted_day
    return time.utcoffset() == timedelta(0) and _is_day_somewhere(time, predicted_day)


def _is_day_somewhere(time: datetime, day: date) -> bool:
    """Whether the instant falls on the day in any zone from UTC-8 to UTC+9."""
    zones = (timezone(timedelta(hours=hours)) for hours in range(-8, 10))
    return any(time.astimezone(zone).date() == day for zone in zones)


def minute_is_right(gold: Any, predicted: Any) -> bool | None:
    """None when the gold has no time."""
    g, p = read_when(gold), read_when(predicted)
    if g is None or g[1] is None:
        return None
    if p is None or p[1] is None:
        return False
    a, b = g[1].replace(second=0), p[1].replace(second=0)
    # Read in the gold's zone: with a zone on one side only, the printed clock is
    # what is compared.
    if a.tzinfo is None:
        b = b.replace(tzinfo=None)
    elif b.tzinfo is None:
        b = b.replace(tzinfo=a.tzinfo)
    return a == b


# ---------------------------------------------------------------- authors
def name_key(name: Any) -> str:
    text = normal(name)
    text = re.sub(r"\([^)\n]{0,200}\)|\[[^\]\n]{0,200}\]", " ", text).strip() or text
    text = _LEAD_WORD.sub("", text.strip(" .,;:|-"))
    letters = (" " if unicodedata.category(c)[0] in "PSC" else c for c in text.casefold())
    return " ".join(re.split(r"\s+", "".join(letters))).strip()


def names_of(record: Record) -> list[str]:
    """Keys of ``authors`` (or ``author``), lists in one string split, without repeats."""
    value = record.get("authors") or record.get("author")
    if not value:
        return []
    parts = (
        part
        for item in (value if isinstance(value, list) else [value])
        for part in _NAME_CUT.split(str(item))
    )
    return list(dict.fromkeys(key for key in map(name_key, parts) if key))


def _equal(a: str, b: str) -> bool:
    return a == b or set(a.split()) == set(b.split())


def _near(a: str, b: str) -> bool:
    x, y = set(a.split()), set(b.split())
    return _equal(a, b) or (len(x & y) >= 2 and (x <= y or y <= x))


def score_authors(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, Any]:
    free, hits = list(predicted), 0
    for name in gold:
        for other in free:
            if _equal(name, other):
                free.remove(other)
                hits += 1
                break
    every = all(any(_near(g, p) for p in predicted) for g in gold)
    extra = sum(1 for p in predicted if not any(_near(g, p) for g in gold))
    return {
        "hits": hits,
        "extra": len(predicted) - hits,
        "missed": len(gold) - hits,
        "exact": hits == len(gold) == len(predicted),
        "ok": bool(every and extra <= len(gold)),
    }


# ---------------------------------------------------------------- content
def shingles(text: str | None, n: int = 4) -> Counter[tuple[str, ...]]:
    tokens = _TOKEN.findall(unicodedata.normalize("NFC", text or ""))
    if len(tokens) < n:
        return Counter([tuple(tokens)] if tokens else [])
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def score_content(
    gold: str | None, predicted: str | None
) -> tuple[float | None, float | None, float]:
    """``(precision, recall, F1)``; precision None when nothing was predicted."""
    g, p = shingles(gold), shingles(predicted)
    common, size_g, size_p = (g & p).total(), g.total(), p.total()
    f1 = 2 * common / (size_g + size_p) if size_g + size_p else 1.0
    return (common / size_p if size_p else None), (common / size_g if size_g else None), f1


def squash(text: Any) -> str:
    """Without white space and case: how pieces of text are looked for."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFC", html.unescape(text or ""))).casefold()


# ---------------------------------------------------------------- a page, a group
def score_page(gold: Record, predicted: Record) -> dict[str, Any]:
    """The figures of one page; a field that the gold lacks is not in the answer."""
    out: dict[str, Any] = {}
    if gold.get("title"):
        out["title"] = title_is_right(gold["title"], predicted.get("title"))
    if gold.get("published"):
        out["day"] = day_is_right(gold["published"], predicted.get("published"))
        minute = minute_is_right(gold["published"], predicted.get("published"))
        if minute is not None:
            out["minute"] = minute
    if gold.get("authors"):
        out["authors"] = score_authors(names_of(gold), names_of(predicted))
    if gold.get("content"):
        out["content"] = score_content(gold["content"], predicted.get("content"))
    out |= _score_segments(gold, predicted)
    if out.keys() >= {"title", "day", "authors", "content"}:
        is_right = out["title"] and out["day"] and out["authors"]["ok"]
        out["four"] = is_right and out["content"][2] >= 0.9
    return out


def _score_segments(gold: Record, predicted: Record) -> dict[str, float | None]:
    """Of the pieces of text that must and that must not be there."""
    wanted, unwanted = gold.get("content_with") or [], gold.get("content_without") or []
    if not wanted and not unwanted:
        return {}
    text = squash(predicted.get("content"))
    return {
        "with": _mean(squash(piece) in text for piece in wanted),
        "without": _mean(squash(piece) not in text for piece in unwanted),
    }


def _mean(values: Iterable[float | bool | None]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return sum(known) / len(known) if known else None


def summarise(scores: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """Shares over pages. ``content_f1`` is the harmonic mean of mean precision and mean recall,
    ``content_mean_f1`` the mean of the pages' F1; None where no page has the field."""

    def column(name: str) -> list[Any]:
        return [s[name] for s in scores if name in s]

    authors, content = column("authors"), column("content")
    precision, recall = _mean(c[0] for c in content), _mean(c[1] for c in content)
    return {
        "pages": len(scores),
        "title_n": len(column("title")),
        "title": _mean(column("title")),
        "day_n": len(column("day")),
        "day": _mean(column("day")),
        "minute_n": len(column("minute")),
        "minute": _mean(column("minute")),
        "authors_n": len(authors),
        "authors_ok": _mean(a["ok"] for a in authors),
        "authors_exact": _mean(a["exact"] for a in authors),
        "authors_f1": _pooled_f1(authors),
        "content_n": len(content),
        "content_precision": precision,
        "content_recall": recall,
        "content_f1": _harmonic(precision, recall) if content else None,
        "content_mean_f1": _mean(c[2] for c in content),
        "content_ge90": _mean(c[2] >= 0.9 for c in content),
        "with_n": len(column("with")),
        "with": _mean(column("with")),
        "without": _mean(column("without")),
        "four_n": len(column("four")),
        "four": _mean(column("four")),
    }


def _harmonic(a: float | None, b: float | None) -> float:
    return 2 * a * b / (a + b) if a and b else 0.0


def _pooled_f1(authors: Sequence[Mapping[str, Any]]) -> float | None:
    """Of the names of all pages together; None where there is none."""
    hits, extra, missed = (sum(a[k] for a in authors) for k in ("hits", "extra", "missed"))
    names = 2 * hits + extra + missed
    return 2 * hits / names if names else None
