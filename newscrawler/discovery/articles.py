"""What a path says by itself: article or list, asset, trap, time of writing. No site
knowledge, no I/O.

Used where a site's own rule is silent. The verdict only orders the queue and picks the reading;
extraction decides whether a page is an article.
"""

from __future__ import annotations

import re
from calendar import timegm
from functools import lru_cache
from urllib.parse import urlsplit

from newscrawler.utils.numbers import is_digits

#: From this score on a link is queued as an article.
ARTICLE_SCORE = 0.5


def _set(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_ASSET_EXT = _set(
    "jpg jpeg png gif webp avif svg ico bmp tif tiff heic mp4 m4v webm mov avi mkv flv m3u8 mpd ts"
    " mp3 m4a wav ogg",
    "aac flac css js mjs json map woff woff2 ttf eot otf pdf doc docx xls xlsx ppt pptx odt ods"
    " epub zip rar 7z gz tar",
    "bz2 xz exe msi dmg apk ipa iso bin swf csv ics vcf wasm webmanifest torrent",
)
_VIDEO = _set(
    "video videos clip clips photo photos anh gallery galleries podcast podcasts tv-show shorts"
    " reels"
)
_NO_PAGE = _set(
    "login signin sign-in signup sign-up register logout account my-account profile password"
    " forgot-password dang-nhap",
    "dang-ky dang-xuat tai-khoan quen-mat-khau search tim-kiem timkiem tim print in-bai share"
    " chia-se cart checkout",
    "wp-admin wp-login wp-json xmlrpc cgi-bin comment comments binh-luan reply replies sso oauth"
    " auth subscribe",
    "unsubscribe newsletter adclick",
)
#: Parameters that show a page in another dress, or none; the first group is no page at all.
_NO_PAGE_QUERY = _set("print share replytocom q s search keyword tukhoa")
_DRESS_QUERY = _set("action sort order filter session")
_CALENDAR = _set(
    "calendar lich lich-su-kien archive archives luu-tru day date ngay by-date thoi-gian events"
)
_CALENDAR_QUERY = _set(
    "date day month year from to fromdate todate start end week cal ngay thang nam tu-ngay den-ngay"
    " time"
)
_PAGE_QUERY = _set("page pg trang paged pageindex offset vpage")
#: Segments that make a list of what stands below them, and those that do so only at the end.
_LISTS_ABOVE = _set(
    "tag tags tu-khoa tukhoa keyword keywords hashtag hashtags category categories author",
    "authors tac-gia chu-de chuyen-muc rss feed",
)
_LISTS_LAST = _set(
    "su-kien topic topics section sections archive page trang about contact lien-he gioi-thieu"
    " dieu-khoan terms",
    "privacy quang-cao default home trang-chu sitemap so-do-website event index",
)
_ARTICLE_WORDS = _set(
    "article articles news story stories artikel artikelen nachrichten noticia noticias tin tin-tuc"
    " bai-viet detail",
    "newsdetail post posts meldung meldungen",
)
_PAGE_EXT = _set(
    "html htm shtml xhtml php asp aspx jsp do tpo chn ldo vov vnp amp cms ece epi bbc story stm"
)

_WORDS = re.compile(r"[^\W\d_]{2,}")
_EXT = re.compile(r"\.([a-z0-9]{1,11})$")
_SITEMAP_EXT = (".xml", ".txt", ".xml.gz", ".txt.gz")
_DIGITS = re.compile(r"\d+")
_DATE = r"(?:199\d|20\d\d)[/-](?:0?[1-9]|1[0-2])(?:[/-](?:0?[1-9]|[12]\d|3[01]))?"
_DATE_PATH = re.compile(rf"/{_DATE}(?=/|-|$)")
_DATE_END = re.compile(rf"/{_DATE}/?$")
_PAGING = re.compile(r"(?:/(?:page|trang|p)[/-]?|-p|-trang-)(\d+)(?:\.\w+)?/?$")
_HEX_ID = re.compile(
    r"(?:^|[-_])(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{10,}(?:$|[-_.])|[0-9a-f]{8}-[0-9a-f]{4}-"
)
#: A number behind such a word is that of a topic page: "dai-hoi-dang-event1234".
_LIST_ID = re.compile(r"-(?:event|topic|tag|su-kien-|chu-de-)\d+$")
#: Lists are paged newest first; what is deeper is either known or older than the age limit.
MAX_PAGING = 20
MAX_SEGMENTS = 12
MAX_PARAMETERS = 6


@lru_cache(maxsize=4096)
def refuse(path: str, query: str) -> str | None:
    """Why a canonical path and query are not worth a fetch: "type" (an asset, a video page, no page
    at all), "trap" (calendar, endless parameters or paging, path that repeats itself), or None."""
    lower = path.lower()
    if is_asset(lower):
        return "type"
    segments = [s for s in lower.split("/") if s]
    stems = [s.partition(".")[0] for s in segments]
    if not _NO_PAGE.isdisjoint(stems) or (stems and stems[0] in _VIDEO):
        return "type"
    if len(segments) > MAX_SEGMENTS or _repeats(segments):
        return "trap"
    # "-p1234567" at the end of a long slug is an article's id, not a page number.
    has_slug = any(len(_WORDS.findall(s)) >= 4 for s in segments)
    if not has_slug and (_is_deep_page(lower) or _is_calendar(lower, stems)):
        return "trap"
    return _refuse_query(query) if query else None


def _is_deep_page(path: str) -> bool:
    paging = _PAGING.search(path)
    return paging is not None and _is_beyond_paging(paging.group(1))


def names_part(parameter: str) -> bool:
    """Whether a parameter of a query says which page of several is meant."""
    name = parameter.lower()
    return name in _PAGE_QUERY or name == "p"


def _is_beyond_paging(number: str) -> bool:
    return len(number) > 4 or int(number) > MAX_PAGING


def _is_calendar(path: str, stems: list[str]) -> bool:
    if _DATE_END.search(path):
        return True
    return not _CALENDAR.isdisjoint(stems) and _DATE_PATH.search(path) is not None


def _refuse_query(query: str) -> str | None:
    pairs = [pair.partition("=")[::2] for pair in query.lower().split("&")]
    pairs = [(name, value) for name, value in pairs if value]
    if len(pairs) > MAX_PARAMETERS:
        return "trap"
    if len(pairs) == 1 and pairs[0][0] == "sid":
        return "trap"
    reasons = (_refuse_parameter(name, value) for name, value in pairs)
    return next(filter(None, reasons), None)


def _refuse_parameter(name: str, value: str) -> str | None:
    if name in _NO_PAGE_QUERY:
        return "type"
    if name in _DRESS_QUERY or name in _CALENDAR_QUERY:
        return "trap"
    if value.startswith(("http:", "https:", "http%3a", "https%3a")):
        return "trap"  # return-to addresses: each page makes a new one
    if not is_digits(value):
        return None
    if name in _PAGE_QUERY and _is_beyond_paging(value):
        return "trap"
    if name == "p" and MAX_PAGING < int(value[:9]) < 100:
        return "trap"  # from 100 on ?p= is the id of a WordPress article
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
    return ext is not None and ext.group(1) in _ASSET_EXT


def is_below_list(path: str) -> bool:
    """Whether a folder makes a list of what stands below it: a tag, a category, an author."""
    segments = [s for s in path.lower().split("/") if s]
    return not _LISTS_ABOVE.isdisjoint(segments[:-1])


def is_sitemap_name(path: str) -> bool:
    """Whether the last part of the path is that of a sitemap: sitemap-2026.xml.gz."""
    lower = path.lower()
    return lower.endswith(_SITEMAP_EXT) and "sitemap" in lower.rpartition("/")[2]


def is_in_sitemap_folder(path: str) -> bool:
    lower = path.lower()
    return "/sitemap/" in lower or "/sitemaps/" in lower


def looks_like_article(url: str) -> float:
    """0 (a list, a service page) .. 1 (an article), from the shape of the URL alone;
    articles from ARTICLE_SCORE on."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return 0.0
    return path_score(parts.path, parts.query)


@lru_cache(maxsize=4096)
def path_score(path: str, query: str = "") -> float:
    """Evidence added up, 0 .. 1: a long slug, an id, a date, a page's ending, a word such as
    "article" above it."""
    segments = [s for s in path.lower().split("/") if s]
    if not segments:
        return 0.5 if re.search(r"(?:^|&)p=\d{3,}", query) else 0.0
    stems, paged = _stems(segments)
    last = stems[-1]
    words = max(_slug_words(s) for s in stems[-2:])
    digits = max((len(d) for s in stems for d in _DIGITS.findall(s)), default=0)
    is_list = not _LISTS_ABOVE.isdisjoint(stems) or (last in _LISTS_LAST and digits < 5)
    if is_list or _LIST_ID.search(last):
        return 0.0
    dated = bool(_DATE_PATH.search(path))
    id_in_query = any(len(v) >= 4 for v in _DIGITS.findall(query))
    evidence = (
        (_slug_score(words), True),
        (0.15, paged),
        (0.4, digits >= 5 or _HEX_ID.search(last)),
        (0.5, dated),
        (0.15, not _ARTICLE_WORDS.isdisjoint(stems[:-1])),
        (0.4, id_in_query),
        (-0.4, words <= 2 and digits < 5 and not dated and not id_in_query),
    )
    return max(0.0, min(1.0, sum(weight for weight, holds in evidence if holds)))


def _slug_score(words: int) -> float:
    if words >= 6:
        return 0.5
    if words >= 4:
        return 0.4
    return 0.2 if words == 3 else 0.0


def _stems(segments: list[str]) -> tuple[list[str], bool]:
    """Segments without a page's ending or a lone "index" at the end, and whether
    there was an ending."""
    ext = _EXT.search(segments[-1])
    paged = ext is not None and ext.group(1) in _PAGE_EXT
    last = (
        segments[-1][: ext.start()]
        if ext is not None and not ext.group(1).isdigit()
        else segments[-1]
    )
    stems = [*segments[:-1], last]
    if last in ("index", "artikel", "article", "story", "amp") and len(stems) > 1:
        stems.pop()
    return stems, paged


def _slug_words(stem: str) -> int:
    # Percent-encoded letters of other scripts: about nine bytes of escapes a word.
    return len(stem) // 18 if stem.count("%") > 3 else len(_WORDS.findall(stem))


#: Least and most of a stamp's year, month, day, hour, minute, second.
_STAMP = ((2000, 2099), (1, 12), (1, 31), (0, 23), (0, 59), (0, 60))


def id_time(article_id: str, rule: str, zone_offset_s: int) -> int | None:
    """Seconds since the epoch at which an article was begun, where the site's ids
    carry it, else None.

    ``rule``: "stamp" = yyyymmddHHMMSS and more; "prefix3" = three digits of the site, then
    yymmddHHMMSS and more. It is the time of writing: publication is never earlier, and
    seldom more than days later.
    """
    if rule == "stamp":
        stamp = article_id[:14]
    elif rule == "prefix3":
        stamp = "20" + article_id[3:15]
    else:
        return None
    if len(stamp) != 14 or not stamp.isascii() or not stamp.isdigit():
        return None
    parts = (int(stamp[:4]), *(int(stamp[at : at + 2]) for at in range(4, 14, 2)))
    if not all(least <= part <= most for part, (least, most) in zip(parts, _STAMP, strict=True)):
        return None
    return timegm(parts) - zone_offset_s
