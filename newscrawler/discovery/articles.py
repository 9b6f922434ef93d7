"""What a path says by itself: article or list, asset, trap, time of writing. No site knowledge, no I/O.

Used where a site's own rule is silent. The verdict only orders the queue and picks the reading;
extraction decides whether a page is an article.
"""

from __future__ import annotations

import re
from calendar import timegm
from functools import lru_cache
from urllib.parse import urlsplit

#: From this score on a link is queued as an article.
ARTICLE_SCORE = 0.5

_ASSET_EXT = frozenset(
    [
        "jpg",
        "jpeg",
        "png",
        "gif",
        "webp",
        "avif",
        "svg",
        "ico",
        "bmp",
        "tif",
        "tiff",
        "heic",
        "mp4",
        "m4v",
        "webm",
        "mov",
        "avi",
        "mkv",
        "flv",
        "m3u8",
        "mpd",
        "ts",
        "mp3",
        "m4a",
        "wav",
        "ogg",
        "aac",
        "flac",
        "css",
        "js",
        "mjs",
        "json",
        "map",
        "woff",
        "woff2",
        "ttf",
        "eot",
        "otf",
        "pdf",
        "doc",
        "docx",
        "xls",
        "xlsx",
        "ppt",
        "pptx",
        "odt",
        "ods",
        "epub",
        "zip",
        "rar",
        "7z",
        "gz",
        "tar",
        "bz2",
        "xz",
        "exe",
        "msi",
        "dmg",
        "apk",
        "ipa",
        "iso",
        "bin",
        "swf",
        "csv",
        "ics",
        "vcf",
        "wasm",
        "webmanifest",
        "torrent",
    ]
)
_VIDEO = frozenset(
    [
        "video",
        "videos",
        "clip",
        "clips",
        "photo",
        "photos",
        "anh",
        "gallery",
        "galleries",
        "podcast",
        "podcasts",
        "tv-show",
        "shorts",
        "reels",
    ]
)
_NO_PAGE = frozenset(
    [
        "login",
        "signin",
        "sign-in",
        "signup",
        "sign-up",
        "register",
        "logout",
        "account",
        "my-account",
        "profile",
        "password",
        "forgot-password",
        "dang-nhap",
        "dang-ky",
        "dang-xuat",
        "tai-khoan",
        "quen-mat-khau",
        "search",
        "tim-kiem",
        "timkiem",
        "tim",
        "print",
        "in-bai",
        "share",
        "chia-se",
        "cart",
        "checkout",
        "wp-admin",
        "wp-login",
        "wp-json",
        "xmlrpc",
        "cgi-bin",
        "comment",
        "comments",
        "binh-luan",
        "reply",
        "replies",
        "sso",
        "oauth",
        "auth",
        "subscribe",
        "unsubscribe",
        "newsletter",
        "adclick",
    ]
)
_NO_PAGE_QUERY = frozenset(
    [
        "print",
        "replytocom",
        "share",
        "action",
        "sort",
        "order",
        "filter",
        "view",
        "session",
        "q",
        "s",
        "search",
        "keyword",
        "tukhoa",
    ]
)
_CALENDAR = frozenset(
    [
        "calendar",
        "lich",
        "lich-su-kien",
        "archive",
        "archives",
        "luu-tru",
        "day",
        "date",
        "ngay",
        "by-date",
        "thoi-gian",
        "events",
    ]
)
_CALENDAR_QUERY = frozenset(
    [
        "date",
        "day",
        "month",
        "year",
        "from",
        "to",
        "fromdate",
        "todate",
        "start",
        "end",
        "week",
        "cal",
        "ngay",
        "thang",
        "nam",
        "tu-ngay",
        "den-ngay",
        "time",
    ]
)
_PAGE_QUERY = frozenset(["page", "p", "pg", "trang", "paged", "pageindex", "offset", "start"])
_LISTS = frozenset(
    [
        "tag",
        "tags",
        "category",
        "categories",
        "chu-de",
        "su-kien",
        "topic",
        "topics",
        "author",
        "authors",
        "tac-gia",
        "section",
        "sections",
        "chuyen-muc",
        "archive",
        "page",
        "trang",
        "rss",
        "feed",
        "about",
        "contact",
        "lien-he",
        "gioi-thieu",
        "dieu-khoan",
        "terms",
        "privacy",
        "quang-cao",
        "index",
        "default",
        "home",
        "trang-chu",
        "sitemap",
        "so-do-website",
        "event",
    ]
)
_PAGE_EXT = frozenset(
    [
        "html",
        "htm",
        "shtml",
        "xhtml",
        "php",
        "asp",
        "aspx",
        "jsp",
        "tpo",
        "chn",
        "ldo",
        "vov",
        "vnp",
        "amp",
        "cms",
        "ece",
        "epi",
        "bbc",
        "story",
        "stm",
    ]
)

_WORDS = re.compile(r"[^\W\d_]{2,}")
_EXT = re.compile(r"\.([a-z0-9]{1,11})$")
_DIGITS = re.compile(r"\d+")
_DATE_PATH = re.compile(r"/(?:19|20)\d\d[/-](?:0?[1-9]|1[0-2])(?:[/-](?:0?[1-9]|[12]\d|3[01]))?(?=/|-|$)")
_DATE_END = re.compile(r"/(?:19|20)\d\d(?:[/-]\d{1,2}){0,2}/?$")
_PAGING = re.compile(r"(?:/(?:page|trang|p)[/-]?|-p|-trang-)(\d+)(?:\.\w+)?/?$")
_HEX_ID = re.compile(r"(?:^|[-_/])(?=[0-9a-f]*\d)[0-9a-f]{8,}(?:$|[-_.])|[0-9a-f]{8}-[0-9a-f]{4}-", re.I)
#: Lists are paged newest first; what is deeper is either known or older than the age limit.
MAX_PAGING = 20
MAX_SEGMENTS = 12
MAX_PARAMETERS = 4


@lru_cache(maxsize=4096)
def refuse(path: str, query: str) -> str | None:
    """Why a canonical path and query are not worth a fetch: "type" (an asset, a video page, no page at all),
    "trap" (calendar, endless parameters or paging, path that repeats itself), or None."""
    lower = path.lower()
    ext = _EXT.search(lower)
    if ext and ext.group(1) in _ASSET_EXT:
        return "type"
    segments = [s for s in lower.split("/") if s]
    stems = [s.partition(".")[0] for s in segments]
    if any(s in _NO_PAGE for s in stems) or (stems and stems[0] in _VIDEO):
        return "type"
    if len(segments) > MAX_SEGMENTS or _repeats(segments):
        return "trap"
    paging = _PAGING.search(lower)
    if paging and (len(paging.group(1)) > 4 or int(paging.group(1)) > MAX_PAGING) and len(segments) < 4:
        # "-p1234567" at the end of a long slug is an article's id, not a page number.
        if len(_WORDS.findall(segments[-1])) < 4:
            return "trap"
    if _DATE_END.search(lower) or (any(s in _CALENDAR for s in stems) and _DIGITS.search(lower)):
        return "trap"
    return _refuse_query(query) if query else None


def _refuse_query(query: str) -> str | None:
    pairs = [pair.partition("=")[::2] for pair in query.lower().split("&")]
    if len(pairs) > MAX_PARAMETERS:
        return "trap"
    for name, value in pairs:
        if name in _NO_PAGE_QUERY and not (name == "view" and value.isdigit()):
            return "type" if name in ("print", "share", "replytocom", "q", "s", "search") else "trap"
        if name in _CALENDAR_QUERY:
            return "trap"
        if name in _PAGE_QUERY and (len(value) > 4 or (value.isdigit() and int(value) > MAX_PAGING)):
            return "trap"
        if "http:" in value or "https:" in value or "http%3a" in value or "https%3a" in value:
            return "trap"  # return-to addresses: each page makes a new one
    return None


def _repeats(segments: list[str]) -> bool:
    """/a/b/a/b, or one segment three times: a relative link that is resolved against itself."""
    if len(segments) < 3:
        return False
    if any(segments.count(s) >= 3 for s in set(segments)):
        return True
    return any(segments[i : i + 2] == segments[i + 2 : i + 4] for i in range(len(segments) - 3))


def is_asset(path: str) -> bool:
    ext = _EXT.search(path.lower())
    return bool(ext) and ext.group(1) in _ASSET_EXT  # type: ignore[union-attr]


def looks_like_article(url: str) -> float:
    """0 (a list, a service page) .. 1 (an article), from the shape of the URL alone; articles from ARTICLE_SCORE on."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return 0.0
    return path_score(parts.path, parts.query)


@lru_cache(maxsize=4096)
def path_score(path: str, query: str = "") -> float:
    lower = path.lower().rstrip("/")
    if not lower:
        return 0.0
    segments = lower.split("/")[1:]
    last = segments[-1]
    ext = _EXT.search(last)
    stem = last[: ext.start()] if ext and not ext.group(1).isdigit() else last
    words = len(_WORDS.findall(stem)) if "%" not in stem else len(stem) // 9
    score = 0.0
    if words >= 6:
        score += 0.5
    elif words >= 4:
        score += 0.4
    elif words == 3:
        score += 0.2
    if ext and ext.group(1) in _PAGE_EXT:
        score += 0.15
    digits = max((len(d) for d in _DIGITS.findall(stem)), default=0)
    if digits >= 5 or _HEX_ID.search(stem):
        score += 0.35
    elif len(segments) > 1 and any(s.isdigit() and len(s) >= 5 for s in segments[:-1]):
        score += 0.3
    if _DATE_PATH.search(lower):
        score += 0.35
    if query and any(len(v) >= 4 for v in _DIGITS.findall(query)):
        score += 0.3
    if any(s.partition(".")[0] in _LISTS for s in segments) or (words <= 2 and digits < 5 and not query):
        score -= 0.4
    return max(0.0, min(1.0, score))


def id_time(article_id: str, rule: str, zone_offset_s: int) -> int | None:
    """Seconds since the epoch at which an article was begun, where the site's ids carry it, else None.

    ``rule``: "stamp" = yyyymmddHHMMSS and more; "prefix3" = three digits of the site, then yymmddHHMMSS
    and more. It is the time of writing: publication is never earlier, and seldom more than days later.
    """
    if rule == "stamp":
        stamp = article_id[:14]
    elif rule == "prefix3":
        stamp = "20" + article_id[3:15]
    else:
        return None
    if len(stamp) != 14 or not stamp.isascii() or not stamp.isdigit():
        return None
    year, month, day = int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8])
    hour, minute, second = int(stamp[8:10]), int(stamp[10:12]), int(stamp[12:14])
    if not (2000 <= year < 2100 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    return timegm((year, month, day, hour, minute, second)) - zone_offset_s
