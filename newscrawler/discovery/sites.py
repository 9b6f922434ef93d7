"""The sites that may be crawled, and what a link on them is: admission, id, kind, band, score.

Only hosts that an enabled site lists are ever queued. ``Sites`` is immutable; enabling, adding
seeds and ad-hoc sites make a new one.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newscrawler.discovery import articles, sitefile
from newscrawler.discovery.sitefile import SeedUrl, Site, SitesError
from newscrawler.items import Kind, Link
from newscrawler.utils.shipped import shipped
from newscrawler.web import urls

__all__ = ["Refusal", "SeedUrl", "Site", "Sites", "SitesError", "default_sites_text"]

_DAY_S = 86_400
#: An id tells the time of writing; a piece may lie in a drawer before it is published.
_DRAWER_S = 2 * _DAY_S
_PREFIXES = ("m.", "amp.", "mobile.", "www.")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a link is not offered: offsite | scheme | type | trap | age. The words of
    metrics.LINKS_REFUSED."""

    reason: str

    def __bool__(self) -> bool:
        return False


#: So many letters that are a part of a name are taken for it.
_PART = 4

_OFFSITE, _SCHEME, _TYPE, _TRAP, _AGE = (
    Refusal(r) for r in ("offsite", "scheme", "type", "trap", "age")
)
_REFUSALS = {r.reason: r for r in (_TYPE, _TRAP)}


class _SiteHost:
    """What identify needs for one host of one site, compiled."""

    __slots__ = (
        "article",
        "host",
        "id_group",
        "id_rule",
        "known",
        "offset_s",
        "rewrites",
        "scheme",
        "site",
    )

    def __init__(self, site: Site, host: str, known: Mapping[str, tuple[str, Kind, int]]) -> None:
        self.site, self.host, self.known = site, host, known
        self.scheme = "https:" if site.home.startswith("https:") else ""
        self.article = re.compile(site.article_pattern).search if site.article_pattern else None
        self.id_group, self.id_rule = site.id_group, site.id_time
        self.offset_s = sitefile.zone_offset_s(site.zone)
        self.rewrites = tuple((re.compile(p).sub, r) for p, r in site.path_rewrites)


class Sites:
    """A set of sites. ``errors`` lists what a file held that could not be used."""

    def __init__(
        self,
        sites: Iterable[Site] = (),
        errors: Iterable[SitesError] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sites = {site.id: site for site in sites}
        self.errors = list(errors)
        self._clock = clock
        self._places: dict[str, _SiteHost] = {}
        for site in self.enabled():
            self._add_places(site)
        for host, place in list(
            self._places.items()
        ):  # these last: a host that a site names is that site's
            bare = host.removeprefix("www.")
            for other in (bare, *(prefix + bare for prefix in _PREFIXES)):
                if not bare[0].isdigit() and bare[0] != "[":
                    self._places.setdefault(other, place)

    def _add_places(self, site: Site) -> None:
        known = _known_urls(site)
        by_host = {host: _SiteHost(site, host, known) for host in site.hosts}
        for host, place in by_host.items():
            self._places.setdefault(host, place)
        for alias, host in site.aliases.items():
            self._places.setdefault(alias, by_host[host])

    # ------------------------------------------------------------ making

    @classmethod
    def load(cls, path: str | Path = "", clock: Callable[[], float] = time.time) -> Sites:
        """The sites of a file; "" is ./sites.json, else the copy in the package. A file that cannot
        be read raises SitesError; a site that cannot be used is left out and named in ``errors``.
        """
        text, name = default_sites_text() if not path else (_read(Path(path)), str(path))
        sites, errors = sitefile.parse(text, name)
        return cls(sites, errors, clock)

    def replaced(self, sites: Iterable[Site]) -> Sites:
        """These sites added, or put in the place of those with the same id."""
        merged = {**self._sites, **{site.id: site for site in sites}}
        return Sites(merged.values(), self.errors, self._clock)

    def only(self, names: Iterable[str]) -> Sites:
        """Only the named sites (id, host or alias), enabled.

        :raises KeyError: with the first unknown name
        """
        chosen = []
        for name in names:
            site = self.find(name)
            if site is None:
                raise KeyError(name)
            chosen.append(replace(site, enabled=True))
        return Sites(chosen, self.errors, self._clock)

    def for_urls(self, offered: Iterable[str]) -> Sites:
        """With a site for each host of these URLs: the configured one, enabled, else one made for
        it, of which nothing but the host is known. URLs that are not http(s) are passed over."""
        hosts: dict[str, list[str]] = {}
        changed: dict[str, Site] = {}
        for url in offered:
            canonical = urls.canonicalize(url)
            if canonical is None:
                continue
            host = urls.domain_of(canonical)
            site = self.find(host)
            if site is not None:
                changed[site.id] = replace(site, enabled=True)
            else:
                hosts.setdefault(host, []).append(canonical)
        for host, found in hosts.items():
            # Plain http where one of the URLs is: only a site's own https home turns http
            # links into https.
            scheme = "http" if any(u.startswith("http:") for u in found) else "https"
            changed[host] = Site(
                id=host,
                name=host,
                home=f"{scheme}://{host}/",
                hosts=(host,),
                zone="+00:00",
                language="",
                source="ad hoc",
            )
        return self.replaced(changed.values())

    # ------------------------------------------------------------ looking up

    def __iter__(self) -> Iterator[Site]:
        return iter(self._sites.values())

    def __len__(self) -> int:
        return len(self._sites)

    def __contains__(self, site_id: object) -> bool:
        return site_id in self._sites

    def enabled(self) -> list[Site]:
        return [site for site in self if site.enabled]

    def get(self, site_id: str) -> Site | None:
        return self._sites.get(site_id)

    def by_host(self, host: str) -> Site | None:
        """The enabled site that a host[:port] belongs to, also by alias, m., amp., www."""
        place = self._places.get(host.lower())
        return place.site if place else None

    def find(self, name: str) -> Site | None:
        """By id, host or alias, enabled or not: what a person types."""
        name = name.strip().lower()
        site = self._sites.get(name) or self.by_host(name)
        return site or next((s for s in self if name in s.hosts or name in s.aliases), None)

    def near(self, name: str) -> list[str]:
        """Ids that a person may have meant: the same letters but for a slip in four,
        or a part of the name."""
        from rapidfuzz.distance import OSA  # for a slip only

        wanted = _stem(name)
        far = len(wanted) + 1
        found: dict[str, int] = {}
        for site in self:
            for alias in (site.id, *site.hosts, *site.aliases, site.name):
                stem = _stem(alias)
                slips = OSA.distance(wanted, stem)
                is_part = len(wanted) >= _PART and wanted in stem
                if is_part or slips <= max(1, len(wanted) // 4):
                    found[site.id] = min(slips, found.get(site.id, far))
        return sorted(found, key=lambda ident: found[ident])[:3]

    # ------------------------------------------------------------ links

    def is_pattern_article(self, url: str) -> bool:
        """Whether the site's own article_pattern names this canonical URL."""
        place = self._places.get(url.split("/", 3)[2])
        path = "/" + url.split("/", 3)[3].partition("?")[0]
        return place is not None and place.article is not None and bool(place.article(path))

    def identify(  # noqa: C901 - asked for every link of every page: a call more is felt
        self,
        url: str,
        *,
        kind: Kind | None = None,
        parent: bytes | None = None,
        depth: int = 0,
        hint: dict[str, Any] | None = None,
        max_age: float | None = None,
        now_ms: int | None = None,
    ) -> Link | Refusal:
        """The link that the frontier is offered for a URL, or the reason why none is.

        ``kind`` given (by a seed, an operator, a sitemap): it is believed, and only the host, the
        URL itself, asset types and the age are checked. ``hint["published"]`` is an ISO time.
        ``max_age``: seconds; older articles are refused, None = no limit. ``now_ms``: the
        frontier's clock, else this machine's.
        """
        canonical = urls.canonicalize(url)
        if canonical is None:
            return _TRAP if len(url) > urls.MAX_URL and urls.is_http(url) else _SCHEME
        scheme, _, host, rest = canonical.split("/", 3)
        place = self._places.get(host)
        if place is None:
            return _OFFSITE
        path, _, query = rest.partition("?")
        path = "/" + path
        for sub, replacement in place.rewrites:
            path = sub(replacement, path)
        bare = f"{place.scheme or scheme}//{place.host}{path}"
        canonical = f"{bare}?{query}" if query else bare
        now_s = self._clock() if now_ms is None else now_ms / 1000
        known = place.known.get(canonical)
        if known is not None and (kind is None or kind is known[1]):
            return _listed(known[0], known[1], known[2], now_s, depth, parent, hint)
        article_id = ""
        if (
            place.article is not None
            and (kind is None or kind is Kind.ARTICLE)
            and (match := place.article(path))
        ):
            kind = Kind.ARTICLE
            if place.id_group:
                article_id = match.group(place.id_group) or ""
                canonical = bare  # the id in the path says it all
        elif kind is None:
            reason = articles.refuse(path, query)
            if reason is not None:
                return _REFUSALS[reason]
            kind = _guess(path, query, place)
        elif articles.is_asset(path):
            return _TYPE
        if kind is not Kind.ARTICLE:
            return _listed(canonical, kind, _BANDS[kind], now_s, depth, parent, hint)
        uid = urls.url_id(f"{place.site.id}:{article_id}" if article_id else canonical)
        dated = _dated(place, article_id, hint, now_s, max_age)
        if dated is None:
            return _AGE
        band, score = dated
        if score == 0.0:
            # Undated: what a list shows is new; what hangs below an article is older by its depth.
            band, score = (1 if depth <= 1 else 2), depth * _DAY_S / 2 - now_s
        return Link(canonical, uid, place.host, kind, depth, parent, band, score, 0, hint)


def _listed(
    url: str,
    kind: Kind,
    band: int,
    now_s: float,
    depth: int,
    parent: bytes | None,
    hint: dict[str, Any] | None,
) -> Link:
    """A link that is no article. A day ahead of any article's time: a list that is due
    comes first in its band."""
    return Link(
        url,
        urls.url_id(url),
        url.split("/", 3)[2],
        kind,
        depth,
        parent,
        band,
        depth - now_s - _DAY_S,
        0,
        hint,
    )


def _dated(
    place: _SiteHost,
    article_id: str,
    hint: dict[str, Any] | None,
    now_s: float,
    limit: float | None,
) -> tuple[int, float] | None:
    """(band, score) by the time that the hint or the id tells, (2, 0.0) if neither
    does; None = too old."""
    born: float | None = published_s(hint, place.offset_s) if hint else None
    grace = 0
    if born is None and article_id and place.id_rule:
        born = articles.id_time(article_id, place.id_rule, place.offset_s)
        grace = _DRAWER_S
    if born is None:
        return 2, 0.0
    if limit is not None and now_s - born > limit + grace:
        return None
    return (0 if now_s - born < _DAY_S else 2), -float(min(born, now_s))


_BANDS = {
    Kind.ROBOTS: 0,
    Kind.HOME: 0,
    Kind.FEED: 1,  # a feed that no file names; those that are named are in band 0
    Kind.SITEMAP: 2,
    Kind.SECTION: 1,
    Kind.PAGE: 2,
}
_FEED_PATH = re.compile(r"(?:\.(?:rss|atom|rdf)|/(?:feed|rss|atom)(?:\.xml)?)/?$", re.I)


def _guess(path: str, query: str, place: _SiteHost) -> Kind:
    if path == "/" and not query:
        return Kind.SECTION  # the home of a host beside the main one
    if articles.is_sitemap_name(path) or (
        path.lower().endswith((".xml", ".xml.gz")) and articles.is_in_sitemap_folder(path)
    ):
        return Kind.SITEMAP
    if _FEED_PATH.search(path):
        return Kind.FEED
    score = articles.path_score(path, query)
    if place.article is not None:
        # The site's own rule did not match: only a very article-like path is read as one.
        score -= 0.25
    if score >= articles.ARTICLE_SCORE:
        return Kind.ARTICLE
    # A short path may be a section, a tag or an imprint: only what the file or the
    # navigation names is revisited.
    return Kind.PAGE


def _known_urls(site: Site) -> dict[str, tuple[str, Kind, int]]:
    """Canonical URL -> (URL to fetch, kind, band) of everything the file names, with and
    without a last slash."""
    known: dict[str, tuple[str, Kind, int]] = {}

    def put(url: str, kind: Kind, band: int) -> None:
        scheme, _, host, rest = url.split("/", 3)
        host = site.aliases.get(host, host)
        if site.home.startswith("https:"):
            scheme = "https:"
        url = f"{scheme}//{host}/{rest}"
        known.setdefault(url, (url, kind, band))
        if kind is Kind.SECTION and "?" not in url:
            known.setdefault(url[:-1] if url.endswith("/") else url + "/", (url, kind, band))

    put(site.home, Kind.HOME, 0)
    for feed in _living(site.feeds):
        put(feed.url, Kind.FEED, 0)
    for sitemap in _living(site.sitemaps):
        if "{" not in sitemap.url:
            put(sitemap.url, Kind.SITEMAP, 0 if sitemap.kind in ("news", "latest") else 2)
    for section in site.sections:
        put(section, Kind.SECTION, 1)
    return known


def _living(seeds: Iterable[SeedUrl]) -> list[SeedUrl]:
    return [seed for seed in seeds if seed.status != "dead"]


def published_s(hint: Mapping[str, Any], zone_offset_s: int = 0) -> float | None:
    """Seconds since the epoch of ``hint["published"]`` (ISO; without an offset: in the
    site's zone), else None."""
    value = hint.get("published")
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC).timestamp() - zone_offset_s
    return moment.timestamp()


def _stem(name: str) -> str:
    """The part of a host that names the site: neither its ending, which most sites
    share, nor www."""
    labels = _plain(name).split(".")
    if len(labels) > 1:
        labels.pop()
    if len(labels) > 1 and labels[-1] in ("com", "net", "org", "gov", "edu"):
        labels.pop()
    if len(labels) > 1 and labels[0] in ("www", "m", "amp"):
        del labels[0]
    return ".".join(labels)


def _plain(name: str) -> str:
    """Without case, diacritics and blanks: "Tuổi Trẻ" is near tuoitre."""
    folded = unicodedata.normalize("NFD", name.lower().replace("đ", "d"))
    return "".join(c for c in folded if not unicodedata.combining(c) and not c.isspace())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise SitesError(str(path), "", "", f"cannot be read: {exc}") from exc


def default_sites_text() -> tuple[str, str]:
    """Text and name of the sites.json that is used without SITES_FILE (utils.shipped).

    :raises SitesError: there is none
    """
    found = shipped("sites.json")
    if isinstance(found, Path) and found.is_file():
        return _read(found), str(found)
    try:
        return found.read_text(encoding="utf-8"), "newscrawler/_shipped/sites.json"
    except OSError as exc:
        raise SitesError(
            "sites.json", "", "", "is neither in this folder nor with the package; set SITES_FILE"
        ) from exc
