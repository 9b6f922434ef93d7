"""RSS 2.0, RSS 1.0 (RDF), Atom and JSON Feed to entries, with the odd dates that news
sites write. Pure.

Our own reader takes a tenth of feedparser's time. feedparser reads what ours finds broken or
without addresses.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin

from lxml import etree

from newscrawler.discovery import xmltext
from newscrawler.discovery.xmltext import child_text, local

#: Entries that are read of one feed; news feeds have 20 to 300.
MAX_ENTRIES = 2_000
#: Bytes of a feed that is given to feedparser, which takes 0.3 s for a megabyte and up to 8 s where
#: it is all tags.
MAX_TOLERANT_BYTES = 1024 * 1024
_ITEM = re.compile(rb"<(?:\w+:)?(?:item|entry)\b", re.I)
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ROOTED = re.compile(r"/(?!/)")
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
    """``error`` says why a feed could not be read, or that its end is missing ("cut off") while
    entries are there. ``hub``, ``topic``: who tells of new entries at once, and the feed's name
    there (WebSub: rel=hub, rel=self); "" where it names none."""

    entries: list[FeedEntry] = field(default_factory=list)
    title: str | None = None
    error: str = ""
    hub: str = ""
    topic: str = ""


def parse_feed(body: bytes, url: str, content_type: str | None = None) -> Feed:
    """Never raises: what cannot be read is in ``Feed.error``."""
    try:
        body = xmltext.guarded(body)
    except xmltext.XmlRefused as exc:
        return Feed(error=str(exc))
    listed = _json_feed(body, url)
    if listed is not None:
        return listed
    try:
        parsed = xmltext.parse(body)
    except xmltext.XmlRefused as exc:
        feed, items = Feed(error=str(exc)), 0
    else:
        feed, items = _xml_feed(parsed, url, has_base=b"xml:base" in body)
    is_whole = not feed.error and len(feed.entries) >= min(items, MAX_ENTRIES)
    if is_whole or len(body) > MAX_TOLERANT_BYTES or not _ITEM.search(body):
        return feed
    tolerant = _by_feedparser(body, url)
    return tolerant if len(tolerant.entries) > len(feed.entries) else feed


def _xml_feed(parsed: xmltext.Parsed, url: str, *, has_base: bool) -> tuple[Feed, int]:
    """The feed, and how many items or entries stand in it, with or without an address."""
    root = parsed.root
    if local(root.tag) not in ("rss", "rdf", "feed", "channel"):
        return Feed(error=f"no feed: <{local(root.tag)[:40]}>"), 0
    feed = Feed(title=_title(root), error="cut off" if parsed.cut_off else "")
    feed.hub, feed.topic = (_named_link(root, url, rel) for rel in ("hub", "self"))
    items = 0
    for node in root.iter():
        if local(node.tag) not in ("item", "entry"):
            continue
        items += 1
        entry = _entry(node, _base_of(node, url) if has_base else url)
        if entry is not None:
            feed.entries.append(entry)
            if len(feed.entries) >= MAX_ENTRIES:
                break
    return feed, items


def _named_link(root: etree._Element, url: str, rel: str) -> str:
    """Address of the feed's own <link rel=…>, not of an entry's; "" where there is none."""
    channel = next((c for c in root if local(c.tag) == "channel"), root)
    for child in channel:
        if local(child.tag) == "link" and rel in child.get("rel", "").lower().split():
            return _absolute(url, child.get("href", ""))
    return ""


def _base_of(node: etree._Element, url: str) -> str:
    """What relative addresses of an entry refer to: xml:base of its link, itself and its
    parents (XML Base)."""
    inner = next((c for c in node if local(c.tag) == "link" and c.get(_XML_BASE)), node)
    try:
        return urljoin(url, inner.base or "")
    except ValueError:
        return url


# ---------------------------------------------------------------------- what our reader cannot read
def _by_feedparser(body: bytes, url: str) -> Feed:
    """The same by feedparser, which knows more of what writers get wrong. The body has
    passed our guard, and its text is decoded here: no document type, no declared encoding
    and no network reach feedparser."""
    import feedparser  # takes a tenth of a second, and few sites need it

    try:
        text = xmltext.decoded(body)
    except xmltext.XmlRefused as exc:
        return Feed(error=str(exc))
    found = feedparser.parse(
        io.BytesIO(text.encode("utf-8", "replace")),
        response_headers={
            "content-location": url,
            "content-type": "application/xml; charset=utf-8",
        },
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    feed = Feed(title=plain(found.feed.get("title")), error="cut off" if found.bozo else "")
    folder = url[: url.rfind("/") + 1]
    for row in found.entries[:MAX_ENTRIES]:
        # A guid without a slash is an id, whatever RSS says of guids that do not say what they are;
        # it comes joined.
        is_id = row.get("guidislink") and "/" not in str(row.get("id")).removeprefix(folder)
        address = "" if is_id else _absolute(url, row.get("link") or "")
        if address:
            feed.entries.append(_feedparser_entry(row, address))
    return feed


def _feedparser_entry(row: Any, address: str) -> FeedEntry:
    names = [plain(author.get("name")) for author in row.get("authors") or []]
    return FeedEntry(
        url=address,
        title=plain(row.get("title")),
        published=parse_date(row.get("published") or row.get("updated")),
        authors=[name for name in dict.fromkeys(names) if name and "@" not in name],
        summary=plain(row.get("summary")),
    )


def _json_feed(body: bytes, url: str) -> Feed | None:
    """jsonfeed.org, version 1 and 1.1; None when it is something else."""
    if body[:64].lstrip(b"\xef\xbb\xbf \r\n\t")[:1] != b"{":
        return None
    try:
        data = json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    items = data.get("items")
    if "jsonfeed.org" not in str(data.get("version")) or not isinstance(items, list):
        return Feed(error="no feed: JSON")
    feed = Feed(title=_text_of(data, "title"), hub=_json_hub(data, url))
    feed.topic = _absolute(url, _text_of(data, "feed_url") or "")
    for item in items[:MAX_ENTRIES]:
        if isinstance(item, dict) and (address := _absolute(url, _text_of(item, "url") or "")):
            feed.entries.append(_json_entry(item, address))
    return feed


def _json_hub(data: dict[str, Any], url: str) -> str:
    hubs = data.get("hubs")
    for hub in hubs if isinstance(hubs, list) else ():
        if isinstance(hub, dict) and str(hub.get("type")).lower() == "websub":
            return _absolute(url, _text_of(hub, "url") or "")
    return ""


_LINK = re.compile(r"<([^<>]{1,2000})>([^<]{0,500})")
_REL = re.compile(r";\s{0,9}rel\s{0,9}=\s{0,9}\"?([\w .:/-]{1,100})", re.I)


def header_links(values: Iterable[str], url: str) -> dict[str, str]:
    """``rel`` -> address of what Link headers name first (RFC 8288), as a hub may be named there
    as well (WebSub 4)."""
    found: dict[str, str] = {}
    for value in values:
        for address, parameters in _LINK.findall(value[:8_000]):
            rels = _REL.search(parameters)
            for rel in rels[1].lower().split() if rels else ():
                found.setdefault(rel, _absolute(url, address))
    return found


def _json_entry(item: dict[str, Any], address: str) -> FeedEntry:
    authors = [*(item.get("authors") or []), item.get("author")]  # version 1.1, version 1
    names = [_text_of(author, "name") for author in authors if isinstance(author, dict)]
    return FeedEntry(
        url=address,
        title=_text_of(item, "title"),
        published=parse_date(_text_of(item, "date_published") or _text_of(item, "date_modified")),
        authors=[name for name in dict.fromkeys(names) if name],
        summary=_text_of(item, "summary"),
    )


def _text_of(data: dict[str, object], name: str) -> str | None:
    value = data.get(name)
    return plain(value) if isinstance(value, str) else None


def _absolute(base: str, address: str) -> str:
    """ "" where it is no address of a page."""
    try:
        joined = urljoin(base, address.strip()) if address.strip() else ""
    except ValueError:
        return ""
    return joined if joined.startswith(("http://", "https://")) else ""


def _title(root: etree._Element) -> str | None:
    channel = next((c for c in root if local(c.tag) == "channel"), root)
    return plain(child_text(channel, "title"))


def _entry(node: etree._Element, base: str) -> FeedEntry | None:
    link = _link(node)
    if not link:
        return None
    address = _absolute(base, link)
    if not address:
        return None
    return FeedEntry(
        url=address,
        title=plain(child_text(node, "title")),
        published=parse_date(
            child_text(
                node, "pubdate", "published", "date", "issued", "created", "updated", "modified"
            )
        ),
        authors=_authors(node),
        summary=plain(child_text(node, "description", "summary")),
    )


def _link(node: etree._Element) -> str | None:
    """Atom: <link href> with rel alternate or none; RSS: the text of <link>, else a guid
    that is an address."""
    for child in node:
        if local(child.tag) == "link" and (address := _link_address(child)):
            return address
    guid = child_text(node, "guid", "id", "origlink") or ""
    is_id = any(c.get("isPermaLink") == "false" for c in node if local(c.tag) == "guid")
    if guid.startswith(("http://", "https://")) or (_ROOTED.match(guid) and not is_id):
        return guid
    return None


def _link_address(link: etree._Element) -> str:
    href = link.get("href")
    if href and link.get("rel", "alternate") == "alternate":
        return href
    text = "".join(link.itertext()).strip()
    behind = (link.tail or "").strip()  # <link/>http://… of broken writers
    if text or not behind.startswith("http"):
        return text
    return behind


def _authors(node: etree._Element) -> list[str]:
    found = []
    for child in node:
        if local(child.tag) in ("author", "creator"):
            name = child_text(child, "name") or "".join(child.itertext()).strip()
            name = re.sub(r"^\S{1,64}@\S{1,255}\s*+\((.*)\)$", r"\1", name)  # RSS: mail@host (Name)
            name = plain(name) or ""
            if name and "@" not in name and name not in found:
                found.append(name)
    return found


_TAGS = re.compile(r"<[^<>]{0,2000}>")


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
_DAY_FIRST = re.compile(
    r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})(?:[ ,-]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?(?: ?((?s:.*)))?$"
)
_ZONE = re.compile(r"(?:GMT|UTC)? ?([+-])(\d{1,2}):?(\d{2})?$", re.I)
_SHORT_YEAR = re.compile(r"^((?:\w{3}, )?\d{1,2} \w{3}) (\d{2}) ")


def parse_date(text: str | None) -> datetime | None:
    """A feed's date as an aware time; None when it cannot be read for certain.

    RFC 822 and ISO 8601 first; then ``9/16/2026 10:17:00 AM`` (month first, as the writers
    that add AM/PM do), ``Mon, 14 Sep 26 08:00:00 +0700``, ends in ``+07``, ``GMT+7``,
    ``+07:00``, and day first.
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


def _made(
    year: int, month: int, day: int, hour: int, minute: int, second: int, zone: timezone
) -> datetime | None:
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=zone)
    except ValueError:
        return None
