"""RSS 2.0, RSS 1.0 (RDF) and Atom to entries, with the odd dates that news sites write. Pure."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

from lxml import etree

from newscrawler.discovery import xmltext
from newscrawler.discovery.xmltext import child_text, local

#: Entries that are read of one feed; news feeds have 20 to 300.
MAX_ENTRIES = 2_000
#: Zone of a time without one: that of the sites this crawler is first of all for.
DEFAULT_ZONE = timezone(timedelta(hours=7))


@dataclass(slots=True)
class FeedEntry:
    url: str
    title: str | None = None
    published: datetime | None = None  # aware
    authors: list[str] = field(default_factory=list)
    summary: str | None = None


@dataclass(slots=True)
class Feed:
    """``error`` says why a feed could not be read, or that its end is missing ("cut off") while entries are there."""

    entries: list[FeedEntry] = field(default_factory=list)
    title: str | None = None
    error: str = ""


def parse_feed(body: bytes, url: str, content_type: str | None = None) -> Feed:
    """Never raises: what cannot be read is in ``Feed.error``."""
    try:
        parsed = xmltext.parse(body)
    except xmltext.XmlRefused as exc:
        return Feed(error=str(exc))
    root = parsed.root
    if local(root.tag) not in ("rss", "rdf", "feed", "channel"):
        return Feed(error=f"no feed: <{local(root.tag)[:40]}>")
    feed = Feed(title=_title(root), error="cut off" if parsed.cut_off else "")
    for node in root.iter():
        if local(node.tag) in ("item", "entry"):
            entry = _entry(node, url)
            if entry is not None:
                feed.entries.append(entry)
                if len(feed.entries) >= MAX_ENTRIES:
                    break
    if not feed.entries and not feed.error:
        feed.error = ""  # a feed may be empty; that is no fault of it
    return feed


def _title(root: etree._Element) -> str | None:
    channel = next((c for c in root if local(c.tag) == "channel"), root)
    return plain(child_text(channel, "title"))


def _entry(node: etree._Element, base: str) -> FeedEntry | None:
    link = _link(node)
    if not link:
        return None
    try:
        address = urljoin(base, link.strip())
    except ValueError:
        return None
    if not address.startswith(("http://", "https://")):
        return None
    return FeedEntry(
        url=address,
        title=plain(child_text(node, "title")),
        published=parse_date(
            child_text(node, "pubdate", "published", "date", "issued", "created", "updated", "modified")
        ),
        authors=_authors(node),
        summary=plain(child_text(node, "description", "summary")),
    )


def _link(node: etree._Element) -> str | None:
    """Atom: <link href> with rel alternate or none; RSS: the text of <link>, else a guid that is an address."""
    for child in node:
        if local(child.tag) == "link":
            href = child.get("href")
            if href and child.get("rel", "alternate") == "alternate":
                return href
            text = "".join(child.itertext()).strip()
            if text:
                return text
            if child.tail and child.tail.strip().startswith("http"):  # <link/>http://… of broken writers
                return child.tail.strip()
    guid = child_text(node, "guid", "id", "origlink")
    return guid if guid and guid.startswith(("http://", "https://")) else None


def _authors(node: etree._Element) -> list[str]:
    found = []
    for child in node:
        if local(child.tag) in ("author", "creator"):
            name = child_text(child, "name") or "".join(child.itertext()).strip()
            name = re.sub(r"^\S+@\S+\s*\((.*)\)$", r"\1", name)  # RSS: mail@host (Name)
            name = plain(name) or ""
            if name and "@" not in name and name not in found:
                found.append(name)
    return found


_TAGS = re.compile(r"<[^>]{0,2000}>")


def plain(text: str | None) -> str | None:
    """Text of a value that may be HTML, escaped once or twice; None when nothing is left."""
    if not text:
        return None
    for _ in range(2):
        if "&" in text:
            text = html.unescape(text)
    text = " ".join(_TAGS.sub(" ", text).split())
    return text or None


# ---------------------------------------------------------------------- dates
_SPACES = re.compile(r"[\s\u00a0\u202f\u2009]+")
_US = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d{2})(?::(\d{2}))? ?([AP]M)$", re.I)
_DAY_FIRST = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})(?:[ ,-]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?(?: ?(.*))?$")
_ZONE = re.compile(r"(?:GMT|UTC)? ?([+-])(\d{1,2}):?(\d{2})?$", re.I)
_SHORT_YEAR = re.compile(r"^((?:\w{3}, )?\d{1,2} \w{3}) (\d{2}) ")


def parse_date(text: str | None) -> datetime | None:
    """A feed's date as an aware time; None when it cannot be read for certain.

    RFC 822 and ISO 8601 first; then ``9/16/2026 10:17:00 AM`` (month first, as the writers that add
    AM/PM do), ``Mon, 14 Sep 26 08:00:00 +0700``, ends in ``+07``, ``GMT+7``, ``+07:00``, and day first.
    """
    if not text:
        return None
    text = _SPACES.sub(" ", text).strip()
    return _us(text) or _iso(text) or _rfc822(text) or _day_first(text)


def _zone(text: str) -> timezone | None:
    match = _ZONE.search(text)
    if match is None:
        return UTC if re.search(r"(?:\bGMT|\bUTC|Z)$", text) else None
    hours, minutes = int(match[2]), int(match[3] or 0)
    if hours > 14 or minutes > 59:
        return None
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if match[1] == "-" else offset)


def _us(text: str) -> datetime | None:
    match = _US.match(text)
    if match is None:
        return None
    month, day, year, hour, minute = (int(match[i]) for i in range(1, 6))
    if hour > 12:  # a 24-hour clock with a label
        half = 0
    else:
        half, hour = (12 if match[7].upper() == "PM" else 0), hour % 12
    if month > 12:
        month, day = day, month
    return _made(year, month, day, hour + half, minute, int(match[6] or 0), DEFAULT_ZONE)


def _iso(text: str) -> datetime | None:
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    text = re.sub(r"([+-]\d\d)$", r"\1:00", re.sub(r" ?(?:GMT|UTC)(?=[+-])", "", text))
    text = (
        re.sub(r"([+-])(\d):?(\d\d)?$", lambda m: f"{m[1]}0{m[2]}:{m[3] or '00'}", text)
        if "T" in text or ":" in text
        else text
    )
    try:
        when = datetime.fromisoformat(re.sub(r" (?=[+-]\d)", "", text))
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=DEFAULT_ZONE)


def _rfc822(text: str) -> datetime | None:
    zone = _zone(text)
    short = _SHORT_YEAR.match(text)
    if short:
        text = f"{short[1]} 20{short[2]} {text[short.end() :]}"
    bare = _ZONE.sub("", text).strip() if _ZONE.search(text) else text
    try:
        when = parsedate_to_datetime(bare if zone and bare != text else text)
    except (TypeError, ValueError, IndexError):
        return None
    if zone is not None and bare != text:
        return when.replace(tzinfo=zone)
    return when if when.tzinfo else when.replace(tzinfo=zone or DEFAULT_ZONE)


def _day_first(text: str) -> datetime | None:
    match = _DAY_FIRST.search(text)
    if match is None:
        return None
    day, month, year = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = (int(match[i] or 0) for i in (4, 5, 6))
    if re.search(r"\bPM\b", match[7] or "", re.I) and hour < 12:
        hour += 12
    return _made(year, month, day, hour, minute, second, _zone(match[7] or "") or DEFAULT_ZONE)


def _made(year: int, month: int, day: int, hour: int, minute: int, second: int, zone: timezone) -> datetime | None:
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=zone)
    except ValueError:
        return None
