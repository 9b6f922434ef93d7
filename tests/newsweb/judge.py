"""Compare what a crawl did with the truth of the simulated web. Pure functions
over lists of rows."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.newsweb.faults import CANARY, TRAP_PREFIXES
from tests.newsweb.unknown import SECTION_SHAPES, TAG

HANOI = timezone(timedelta(hours=7))
FIELDS = ("title", "content", "published", "authors")
#: Content is right from this token F1 on.
CONTENT_F1 = 0.98
#: A host that answers 429 and drops connections makes a polite crawler back off, twice as long each
#: time: what is on it may be missing until the crawl has had this long (simulated seconds).
BUSY_S = 6 * 3600.0
#: Timers and clocks are not exact: a gap may be shorter than the delay by this share.
TOLERANCE = 0.02

Row = Mapping[str, Any]


# ---------------------------------------------------------------- politeness
def politeness(
    hits: Iterable[Row], truth: Iterable[Row], *, delay_s: float | None = None
) -> list[str]:
    """What a site could complain of, one line each: two requests sooner than its delay, a request
    before its robots.txt was answered, a request that robots.txt forbids. Delays are simulated
    seconds: the real least gap is delay / factor. ``delay_s`` demands at least that gap of every
    site (simulated seconds)."""
    rows = list(truth)
    factor = next((float(r.get("factor", 1.0)) for r in rows if r["type"] == "world"), 1.0)
    sites = [r for r in rows if r["type"] == "site"]
    by_host: dict[str, list[Row]] = defaultdict(list)
    for hit in sorted(hits, key=lambda h: h["time"]):
        by_host[hit["host"]].append(hit)
    found: list[str] = []
    for site in sites:
        gap = max(float(site["delay_s"]), delay_s or 0.0) / factor
        for host in site["hosts"]:
            found += _too_soon(host, by_host.get(host, []), gap)
            found += _against_robots(site, host, by_host.get(host, []))
    known = {host for site in sites for host in site["hosts"]}
    found += [
        f"host={host} requests={len(rows)} not a site of this web"
        for host, rows in by_host.items()
        if host not in known
    ]
    return found


def _too_soon(host: str, hits: list[Row], gap: float) -> list[str]:
    return [
        f"host={host} gap={b['time'] - a['time']:.4f} s, at least {gap:.4f} s asked path={b['path']} after={a['path']}"
        for a, b in pairwise(hits)
        if b["time"] - a["time"] < gap * (1 - TOLERANCE)
    ]


def _against_robots(site: Row, host: str, hits: list[Row]) -> list[str]:
    found = []
    if host != site["host"]:  # a twin host answers with redirects and has the same rules
        return [
            f"host={host} path={h['path']} forbidden by robots.txt"
            for h in hits
            if _forbidden(site, h["path"])
        ]
    answered = False
    for hit in hits:
        if hit["path"].startswith("/robots"):
            answered = answered or hit["status"] in (200, 404) or 400 <= hit["status"] < 500
        elif not answered:
            found.append(f"host={host} path={hit['path']} before robots.txt was answered")
            break
    if site["robots"] != "404":
        found += [
            f"host={host} path={h['path']} forbidden by robots.txt"
            for h in hits
            if _forbidden(site, h["path"])
        ]
    return found


def _forbidden(site: Row, path: str) -> bool:
    return site["robots"] != "404" and any(path.startswith(rule) for rule in site["disallow"])


def traps(hits: Iterable[Row], most: int = 60) -> list[str]:
    """Endless spaces that were entered more than ``most`` times, and XML entities
    that were fetched."""
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for hit in hits:
        for prefix in TRAP_PREFIXES:
            if hit["path"].startswith(prefix):
                counts[hit["host"], prefix] += 1
        if hit["path"] == CANARY:
            found.append(f"host={hit['host']} an external XML entity was fetched")
    return found + [
        f"host={host} trap={prefix} requests={n}"
        for (host, prefix), n in counts.items()
        if n > most
    ]


def least_gaps(hits: Iterable[Row]) -> dict[str, float]:
    """Host -> least seconds (real) between two of its requests; hosts with one
    request are left out."""
    last: dict[str, float] = {}
    gaps: dict[str, float] = {}
    for hit in sorted(hits, key=lambda h: h["time"]):
        host = hit["host"]
        if host in last:
            gaps[host] = min(gaps.get(host, float("inf")), hit["time"] - last[host])
        last[host] = hit["time"]
    return gaps


def discovery(hits: Iterable[Row], truth: Iterable[Row]) -> list[str]:
    """What a crawl that was told only the homes of sites did not find, or asked for
    in vain too often: announced feeds, sections of the menu, a sitemap where it
    usually stands, tag pages as lists."""
    counts = Counter((hit["host"], hit["path"]) for hit in hits)
    found = []
    for site in truth:
        unknown = site["unknown"] if site["type"] == "site" else None
        if unknown is None or site["challenge"]:
            continue
        host = site["host"]
        lists = [*site["feeds"], *unknown["sections"], *filter(None, [unknown["sitemap"]])]
        found += [f"host={host} list={x} never asked for" for x in lists if not counts[host, x]]
        in_vain = {"/sitemap.xml", "/news-sitemap.xml"} - {unknown["sitemap"]}
        if unknown["sitemap_is_named"]:
            found += [
                f"host={host} path={x} though one is named" for x in in_vain if counts[host, x]
            ]
        found += [
            f"host={host} path={x} looked for {counts[host, x]} times"
            for x in in_vain
            if counts[host, x] > 1
        ]
        found += [f"host={host} path={TAG} is no list"] * (counts[host, TAG] > 1)
    return found


@dataclass(frozen=True)
class Form:
    """Something that drawn sites may have. ``hosts``: those that have it; ``whole``: the web has
    all that there is of it."""

    name: str
    hosts: frozenset[str]
    whole: bool


def forms(truth: Iterable[Row]) -> list[Form]:
    """What the sites of which only the home is told have, so that nobody takes a web without it for
    a proof of it."""
    sites = {r["host"]: r for r in truth if r["type"] == "site" and r["unknown"] is not None}
    shapes = {shape for site in sites.values() for shape in site["unknown"]["section_shapes"]}

    def having(name: str) -> frozenset[str]:
        return frozenset(host for host, site in sites.items() if site["unknown"][name])

    of = {
        "only the home told": frozenset(sites),
        "feeds announced": frozenset(host for host, site in sites.items() if site["feeds"]),
        "one page in four fails": having("fails"),
        "lists with an article's tags": having("vendor_tag"),
        "signed at the end, an organisation stated": having("signature"),
        "articles that state nothing": having("is_plain"),
    }
    found = [Form(name, hosts, bool(hosts)) for name, hosts in of.items()]
    every = f"sections of {len(shapes)} of {len(SECTION_SHAPES)} shapes"
    return [*found, Form(every, frozenset(sites), shapes == set(SECTION_SHAPES))]


def link_class(site: Row, articles: Iterable[str], path: str) -> str:
    """What a path of a site is: article, list or other. ``articles``: the paths of its stories."""
    if path in articles:
        return "article"
    unknown = site["unknown"]
    lists = {"/", "/tin-moi", *site["feeds"], *unknown["sections"]}
    if (
        path in lists
        or path.startswith(("/tags/", "/chu-de/", unknown["topics"]))
        or path.startswith("/sitemap")
    ):
        return "list"
    return "list" if _is_later_page(path, unknown["sections"]) else "other"


def _is_later_page(path: str, sections: Iterable[str]) -> bool:
    """A section's address with a page number in it."""
    for section in sections:
        stem = re.sub(r"\.\w+$", "", section).rstrip("/")
        if path.startswith(stem) and re.match(r"\W*[a-z]*\W*\d{1,3}(\.\w+)?/?$", path[len(stem) :]):
            return True
    return False


# ---------------------------------------------------------------- coverage
@dataclass
class Coverage:
    """``found``: URLs of the truth that are stored; ``missed``: those that should be and are not;
    ``unexpected``: stored ones that should not be, with the reason; ``wrong``: field -> (url,
    wanted, got); ``stale``: stored in an older wording than the page now has; ``compared``: field
    -> how many were compared."""

    found: list[str] = field(default_factory=list)
    missed: list[dict[str, Any]] = field(default_factory=list)
    unexpected: list[dict[str, str]] = field(default_factory=list)
    optional: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    wrong: dict[str, list[tuple[str, Any, Any]]] = field(
        default_factory=lambda: {name: [] for name in FIELDS}
    )
    compared: Counter[str] = field(default_factory=Counter)

    def shares(self) -> dict[str, float]:
        """Field -> share that is right among the found; 0 where nothing was compared."""
        return {
            n: 1 - len(self.wrong[n]) / self.compared[n] if self.compared[n] else 0.0
            for n in FIELDS
        }


def coverage(
    truth: Iterable[Row],
    stored: Iterable[Any],
    *,
    at: float | None = None,
    grace_s: float = 600.0,
    age_limit: bool = True,
) -> Coverage:
    """``stored`` are items.Article or dicts with url, title, content, authors, published. ``at`` is
    the simulated time of the comparison (default: the truth's own); what came out less than
    ``grace_s`` before it may be missing, and what is not out yet must not be there. Any wording
    that the page has had counts as right.
    ``age_limit=False``: the crawl had none (ARTICLE_MAX_AGE_DAYS=0), old articles are
        to be found as well."""
    rows = list(truth)
    if not age_limit:
        rows = [
            {**r, "should_be_found": True} if r.get("why_not") == "too old" else r for r in rows
        ]
    if at is None:
        at = next((float(r["now"]) for r in rows if r["type"] == "world"), float("inf"))
    started = next((float(r.get("started", 0.0)) for r in rows if r["type"] == "world"), 0.0)
    busy = (
        {r["site"] for r in rows if r["type"] == "site" and r.get("busy")}
        if at - started < BUSY_S
        else set()
    )
    articles = [r for r in rows if r["type"] == "article"]
    index = _Index([r for r in rows if r["type"] == "site"], articles)
    result = Coverage()
    taken: dict[str, str] = {}
    for item in stored:
        url = str(_get(item, "url"))
        row = index.find(url)
        if row is None:
            result.unexpected.append({"url": url, "reason": "no such article"})
        elif row["url"] in taken:
            result.unexpected.append(
                {"url": url, "reason": f"stored twice, also as {taken[row['url']]}"}
            )
        else:
            taken[row["url"]] = url
            _judge(result, row, item, at)
    for row in articles:
        if (
            row["url"] in taken
            or row["site"] in busy
            or not row["should_be_found"]
            or row["optional"]
            or row["first_visible"] > at - grace_s
        ):
            continue
        result.missed.append(
            {
                "url": row["url"],
                "site": row["site"],
                "channels": row.get("channels"),
                "special": row["special"],
            }
        )
    return result


def _judge(result: Coverage, row: Row, item: Any, at: float) -> None:
    if row["optional"]:
        result.optional.append(row["url"])
        return
    if not row["should_be_found"]:
        result.unexpected.append({"url": row["url"], "reason": str(row["why_not"])})
        return
    result.found.append(row["url"])
    versions = versions_until(row, at)
    for name in FIELDS:
        result.compared[name] += 1
        if not any(field_right(name, row, version, _get(item, name)) for version in versions):
            wanted = versions[-1].get(name, row.get(name))
            result.wrong[name].append((row["url"], wanted, _get(item, name)))
    if _is_stale(versions, _get(item, "title"), _get(item, "content")):
        result.stale.append(row["url"])


def _is_stale(versions: list[dict[str, Any]], title: Any, content: Any) -> bool:
    """An older wording fits better than the current one; a single digit decides."""
    *older, current = versions
    got = str(content or "")
    now = token_f1(current["content"], got)
    right = plain(current["title"]) == plain(str(title or ""))
    return any(
        token_f1(v["content"], got) > now
        or (not right and plain(v["title"]) == plain(str(title or "")))
        for v in older
    )


def versions_until(row: Row, at: float) -> list[dict[str, Any]]:
    """The wordings (title, content) that a page has had until ``at``, oldest first; the
    last one is current."""
    first = {"title": row["title"], "content": row["content"]}
    return [first] + [
        {"title": e["title"], "content": e["content"]} for e in row["edits"] if e["at"] <= at
    ]


def field_right(name: str, row: Row, version: Row, got: Any) -> bool:
    if name == "title":
        return plain(str(version["title"])) == plain(str(got or ""))
    if name == "content":
        return token_f1(str(version["content"]), str(got or "")) >= CONTENT_F1
    if name == "published":
        return _same_time(str(row["published"]), got, row.get("precision", "minute"))
    return {plain(a).casefold() for a in row["authors"]} == {plain(a).casefold() for a in got or []}


def _same_time(wanted: str, got: Any, precision: str) -> bool:
    if got in (None, ""):
        return False
    when = got if isinstance(got, datetime) else datetime.fromisoformat(str(got))
    when = (when if when.tzinfo else when.replace(tzinfo=HANOI)).astimezone(HANOI)
    right = datetime.fromisoformat(wanted).astimezone(HANOI)
    form = "%Y-%m-%d" if precision == "day" else "%Y-%m-%d %H:%M"
    return when.strftime(form) == right.strftime(form)


def plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFC", text).casefold())


def token_f1(wanted: str, got: str) -> float:
    """F1 over the multisets of word tokens; 1.0 when both are empty."""
    a, b = Counter(tokens(wanted)), Counter(tokens(got))
    if not a and not b:
        return 1.0
    common = sum((a & b).values())
    return 2 * common / (sum(a.values()) + sum(b.values()))


def _get(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name)


class _Index:
    """Truth rows by every address that serves them, and by article id."""

    def __init__(self, sites: list[Row], articles: list[Row]) -> None:
        self.urls = {key(url): row for row in articles for url in (row["url"], *row["twins"])}
        self.ids = {(row["site"], row["id"]): row for row in articles}
        self.sites = {
            host: (s, re.compile(s["path_regex"]))
            for s in sites
            if s.get("path_regex")
            for host in s["hosts"]
        }

    def find(self, url: str) -> Row | None:
        found = self.urls.get(key(url))
        if found is None:
            parts = urlsplit(url)
            site, regex = self.sites.get(parts.netloc.lower(), (None, None))
            match = regex.match(parts.path) if regex else None
            if match and site:
                found = self.ids.get((site["site"], match[1]))
        return found


def key(url: str) -> str:
    """Address without fragment and tracking parameters."""
    parts = urlsplit(url)
    query = "&".join(
        p for p in parts.query.split("&") if p and not p.startswith(("utm_", "fbclid", "gclid"))
    )
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path, query, ""))
