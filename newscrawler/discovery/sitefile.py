"""sites.json -> Site objects, and what is wrong with it. Each error names file,
site, field and reason.

The schema in sites.schema.json says the same for editors; the checks here are by hand because a
reader has to be told the site and the field, and because patterns have to compile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from newscrawler.web import urls

#: auto: the frontier works it out from what the site's pages bring and cost.
CLASSES = ("high", "mid", "low", "auto")
CONFIDENCES = ("high", "medium", "low")
FEED_STATUS = ("live", "unchecked", "dead")
SITEMAP_KINDS = ("news", "latest", "articles", "index", "sections", "topics")
ID_TIMES = ("", "stamp", "prefix3")

#: Longest delay floor, s: above it a crawl of the site would not finish a day's articles.
MAX_DELAY_S = 3600.0


class SitesError(Exception):
    """The file, or one site in it, cannot be used."""

    def __init__(self, file: str, site: str, field_name: str, reason: str) -> None:
        place = [f"site {site}"] if site else []
        place += [f"field {field_name}"] if field_name else []
        super().__init__(": ".join([file, *place, reason]))
        self.file, self.site, self.field, self.reason = file, site, field_name, reason


@dataclass(frozen=True, slots=True)
class SeedUrl:
    """A feed or sitemap of a site. ``url`` may hold {year} {month} {month2} {day_from}
    {day_to} (sitemaps only)."""

    url: str
    status: str = (
        "unchecked"  # live | unchecked | dead (kept so that nobody adds it again; never fetched)
    )
    kind: str = ""  # sitemaps: one of SITEMAP_KINDS; "news" and "latest" are read every few minutes
    confidence: str = "medium"
    note: str = ""


@dataclass(frozen=True)
class Site:
    """One site. Defaults suit a site of which nothing but its address is known."""

    id: str  # a domain as a name, e.g. "vnexpress.net"; also the name of its selector set
    name: str
    home: str
    hosts: tuple[str, ...]  # host[:port], the main one first; only these are fetched
    aliases: Mapping[str, str] = field(
        default_factory=dict
    )  # other host -> the host of ``hosts`` to fetch instead
    cls: str = "auto"
    cls_reason: str = ""
    delay_s: float = (
        0.0  # least seconds between two fetches; DOWNLOAD_DELAY and robots.txt may raise it
    )
    group: str = ""  # sites of one group share one gate, as they are one host or CDN
    pages_per_day: int = 0  # fetches of each host in 24 h, whole fleet; 0 = FRONTIER_PAGES_PER_DAY
    sections: tuple[str, ...] = ()
    feeds: tuple[SeedUrl, ...] = ()
    sitemaps: tuple[SeedUrl, ...] = ()
    article_pattern: str = ""  # regular expression searched in the path
    id_group: int = 0  # group of article_pattern that alone names the article (free slug); 0 = none
    id_time: str = ""  # how the id carries the time of writing, see articles.id_time
    article_examples: tuple[str, ...] = ()
    path_rewrites: tuple[
        tuple[str, str], ...
    ] = ()  # (pattern, replacement) on the path: AMP and print forms
    render: bool | None = None  # whether pages are read with a browser; None = as is learnt
    zone: str = "+07:00"
    language: str = "vi"
    enabled: bool = True
    confidence: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def host(self) -> str:
        return self.hosts[0]


def parse(text: str, file: str) -> tuple[list[Site], list[SitesError]]:
    """The sites of a file and the errors of those left out.

    :raises SitesError: nothing of the file can be read
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as exc:
        raise SitesError(
            file, "", "", f"no JSON at line {exc.lineno} column {exc.colno}: {exc.msg}"
        ) from exc
    except RecursionError as exc:
        raise SitesError(file, "", "", "nested too deeply") from exc
    if not isinstance(data, dict) or not isinstance(data.get("sites"), list):
        raise SitesError(file, "", "sites", 'must be an object with a list "sites"')
    sites: list[Site] = []
    errors: list[SitesError] = []
    for number, entry in enumerate(data["sites"], 1):
        try:
            site = site_from_dict(entry, file, f"#{number}")
            _check_unique(site, sites, file)
        except SitesError as exc:
            errors.append(exc)
        else:
            sites.append(site)
    return sites, errors


def _check_unique(site: Site, earlier: Iterable[Site], file: str) -> None:
    names = {*site.hosts, *site.aliases}
    for other in earlier:
        if other.id == site.id:
            raise SitesError(file, site.id, "id", "used by an earlier site of the file")
        shared = names & {*other.hosts, *other.aliases}
        if shared:
            raise SitesError(
                file, site.id, "hosts", f"{sorted(shared)[0]} belongs to site {other.id} already"
            )


class _EntryReader:
    """Typed access to one entry; every complaint carries file, site and field."""

    def __init__(self, entry: Mapping[str, Any], file: str, site: str) -> None:
        self.entry, self.file, self.site = entry, file, site

    def fail(self, name: str, reason: str) -> SitesError:
        return SitesError(self.file, self.site, name, reason)

    def text(self, name: str, default: str | None = None) -> str:
        value = self.entry.get(name, default)
        if value is None:
            raise self.fail(name, "is missing")
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.fail(name, f"must be a text, not {value!r:.60}")
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self.text(name, default)
        if value not in allowed:
            raise self.fail(
                name, f"{value!r} is not one of {', '.join(a or 'empty' for a in allowed)}"
            )
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.entry.get(name, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise self.fail(name, "must be a list of texts")
        return tuple(value)

    def url(self, name: str, value: str) -> str:
        canonical = urls.canonicalize(value)
        if canonical is None:
            raise self.fail(name, f"{value!r} is not a usable http(s) URL")
        return canonical


_KNOWN = frozenset(
    [
        "id",
        "name",
        "home",
        "hosts",
        "aliases",
        "class",
        "class_reason",
        "delay_s",
        "group",
        "pages_per_day",
        "sections",
        "feeds",
        "sitemaps",
        "article_pattern",
        "id_group",
        "id_time",
        "article_examples",
        "path_rewrites",
        "render",
        "zone",
        "language",
        "enabled",
        "confidence",
        "source",
        "notes",
    ]
)


def site_from_dict(entry: Any, file: str = "sites", place: str = "") -> Site:
    """One entry of "sites".

    :raises SitesError: with the first thing that is wrong
    """
    if not isinstance(entry, dict):
        raise SitesError(file, place, "", "must be an object")
    name = entry.get("id")
    read = _EntryReader(entry, file, name if isinstance(name, str) and name else place)
    unknown = sorted(set(entry) - _KNOWN)
    if unknown:
        raise read.fail(unknown[0], "is not a known field")
    home = read.url("home", read.text("home"))
    hosts = _hosts(read, home)
    pattern, group = _pattern(read)
    site = Site(
        id=read.text("id"),
        name=read.text("name", "") or read.text("id"),
        home=home,
        hosts=hosts,
        aliases=_aliases(read, hosts),
        cls=read.choice("class", CLASSES, "auto"),
        cls_reason=read.text("class_reason", ""),
        delay_s=_delay(read),
        group=read.text("group", ""),
        pages_per_day=_pages_per_day(read),
        sections=tuple(read.url("sections", u) for u in read.texts("sections")),
        feeds=_seed_urls(read, "feeds", ("",)),
        sitemaps=_seed_urls(read, "sitemaps", SITEMAP_KINDS),
        article_pattern=pattern,
        id_group=group,
        id_time=read.choice("id_time", ID_TIMES, ""),
        article_examples=read.texts("article_examples"),
        path_rewrites=_rewrites(read),
        render=None if read.entry.get("render") is None else _flag(read, "render", False),
        zone=_zone(read),
        language=read.text("language", "vi"),
        enabled=_flag(read, "enabled", True),
        confidence=_confidence(read),
        source=read.text("source", ""),
        notes=read.texts("notes"),
    )
    _check_places(site, read)
    return site


def _check_places(site: Site, read: _EntryReader) -> None:
    """Every seed must lie on a host of its site, else it would be refused as offsite, silently."""
    allowed = {*site.hosts, *site.aliases}
    for name, seeds in (
        ("home", [site.home]),
        ("sections", list(site.sections)),
        ("feeds", [f.url for f in site.feeds]),
        ("sitemaps", [s.url for s in site.sitemaps]),
    ):
        for url in seeds:
            if urls.domain_of(url) not in allowed:
                raise read.fail(name, f"{url} is on no host of the site ({', '.join(site.hosts)})")


def _hosts(read: _EntryReader, home: str) -> tuple[str, ...]:
    hosts = read.texts("hosts") or (urls.domain_of(home),)
    for host in hosts:
        if urls.domain_of(f"http://{host}/") != host:
            raise read.fail("hosts", f"{host!r} is not a lower-case host[:port]")
    if len(set(hosts)) != len(hosts):
        raise read.fail("hosts", "names a host twice")
    return hosts


def _aliases(read: _EntryReader, hosts: tuple[str, ...]) -> dict[str, str]:
    value = read.entry.get("aliases", {})
    if not isinstance(value, dict):
        raise read.fail("aliases", "must be an object: other host -> host")
    for alias, host in value.items():
        if urls.domain_of(f"http://{alias}/") != alias:
            raise read.fail("aliases", f"{alias!r} is not a lower-case host[:port]")
        if host not in hosts or alias in hosts:
            raise read.fail(
                "aliases", f"{alias} -> {host}: the target must be one of hosts, the alias must not"
            )
    return dict(value)


def _delay(read: _EntryReader) -> float:
    value = read.entry.get("delay_s", 0)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= MAX_DELAY_S
    ):
        raise read.fail(
            "delay_s", f"must be seconds between 0 and {MAX_DELAY_S:.0f}, not {value!r:.40}"
        )
    return float(value)


def _pages_per_day(read: _EntryReader) -> int:
    value = read.entry.get("pages_per_day", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**32:
        raise read.fail("pages_per_day", f"must be a whole number, 0 = no quota, not {value!r:.40}")
    return value


def _flag(read: _EntryReader, name: str, default: bool) -> bool:
    value = read.entry.get(name, default)
    if not isinstance(value, bool):
        raise read.fail(name, f"must be true or false, not {value!r:.40}")
    return value


def _pattern(read: _EntryReader) -> tuple[str, int]:
    pattern = read.text("article_pattern", "")
    group = read.entry.get("id_group", 0)
    if isinstance(group, bool) or not isinstance(group, int) or group < 0:
        raise read.fail("id_group", f"must be a group number, 0 for none, not {group!r:.40}")
    try:
        compiled = re.compile(pattern)
    except re.error as exc:
        raise read.fail("article_pattern", f"{pattern!r}: {exc}") from exc
    if group > compiled.groups:
        raise read.fail("id_group", f"{group}, but article_pattern has {compiled.groups} groups")
    return pattern, group


def _rewrites(read: _EntryReader) -> tuple[tuple[str, str], ...]:
    value = read.entry.get("path_rewrites", [])
    if not isinstance(value, list):
        raise read.fail("path_rewrites", "must be a list of [pattern, replacement]")
    out = []
    for pair in value:
        if not (
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(p, str) for p in pair)
        ):
            raise read.fail("path_rewrites", "must be a list of [pattern, replacement]")
        try:
            re.compile(pair[0])
        except re.error as exc:
            raise read.fail("path_rewrites", f"{pair[0]!r}: {exc}") from exc
        out.append((pair[0], pair[1]))
    return tuple(out)


def _zone(read: _EntryReader) -> str:
    zone = read.text("zone", "+07:00")
    try:
        zone_offset_s(zone)
    except ValueError as exc:
        raise read.fail("zone", str(exc)) from exc
    return zone


def zone_offset_s(zone: str) -> int:
    """Seconds east of UTC of "+07:00" or, today, of a zone name.

    :raises ValueError: it is neither
    """
    match = re.fullmatch(r"([+-])(\d\d):(\d\d)", zone)
    if match:
        seconds = int(match.group(2)) * 3600 + int(match.group(3)) * 60
        return -seconds if match.group(1) == "-" else seconds
    try:
        offset = datetime.now(ZoneInfo(zone)).utcoffset()
    except (KeyError, ValueError, OSError) as exc:
        raise ValueError(f"{zone!r} is neither +hh:mm nor a known zone") from exc
    return int((offset or timedelta()).total_seconds())


def _confidence(read: _EntryReader) -> dict[str, str]:
    value = read.entry.get("confidence", {})
    if not isinstance(value, dict) or not all(v in CONFIDENCES for v in value.values()):
        raise read.fail("confidence", f"must be an object: field -> {', '.join(CONFIDENCES)}")
    return dict(value)


def _seed_urls(read: _EntryReader, name: str, kinds: tuple[str, ...]) -> tuple[SeedUrl, ...]:
    value = read.entry.get(name, [])
    if not isinstance(value, list):
        raise read.fail(name, "must be a list")
    out = []
    for item in value:
        if isinstance(item, str):
            item = {"url": item}
        if not isinstance(item, dict) or not isinstance(item.get("url"), str):
            raise read.fail(name, f'must hold URLs or objects with "url", not {item!r:.60}')
        inner = _EntryReader(item, read.file, read.site)
        unknown = sorted(set(item) - {"url", "status", "kind", "confidence", "note"})
        if unknown:
            raise read.fail(f"{name}.{unknown[0]}", "is not a known field")
        try:
            plain = expand(item["url"], datetime(2026, 1, 1))
        except (KeyError, IndexError, ValueError) as exc:
            raise read.fail(name, f"{item['url']!r}: unknown placeholder {exc}") from exc
        read.url(name, plain)
        out.append(
            SeedUrl(
                url=item["url"] if plain != item["url"] else read.url(name, item["url"]),
                status=inner.choice("status", FEED_STATUS, "unchecked"),
                kind=inner.choice("kind", kinds, kinds[0] if name == "feeds" else "index"),
                confidence=inner.choice("confidence", CONFIDENCES, "medium"),
                note=inner.text("note", ""),
            )
        )
    return tuple(out)


def expand(url: str, day: datetime) -> str:
    """A sitemap address with its placeholders for a day: {year} {month} {month2} {day_from}
    {day_to}; the last two are the shard of five days that the day lies in (the sixth runs to the
    end of the month)."""
    if "{" not in url:
        return url
    first = min((day.day - 1) // 5 * 5 + 1, 26)
    after = (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    last = first + 4 if first < 26 else (after - timedelta(days=1)).day
    return url.format(
        year=day.year, month=day.month, month2=f"{day.month:02d}", day_from=first, day_to=last
    )
