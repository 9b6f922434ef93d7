"""How often a list page (home, section, feed, sitemap) is looked at again. Pure.

A list is judged by what it shows that it did not show at its last visit, and by how much of that
nobody knew: the share of known links of the whole page would call every feed of 50 entries known as
soon as it has less than 17 new ones, and let it go to once a day. What it takes for that (the links
shown, the interval, when it was last fresh) travels with the URL's record in the frontier, so that
it is the same for every worker and survives all of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

import msgpack

from newscrawler.discovery.rhythm import Rhythm
from newscrawler.discovery.seeds import LONGEST_S, MANY_KNOWN, SHORTEST_S, next_interval
from newscrawler.discovery.sitefile import Site
from newscrawler.items import Kind, Link, Outcome

_SCHEMA = 1
#: Bytes kept of each link that was shown; three tell 300 links from a new one but for one
#: time in 50,000.
PRINT_BYTES = 3
#: Lists of more links keep no prints: what the worker does not know is taken for new there.
MOST_PRINTS = 1500
#: First interval of a list of which nothing is known yet, seconds. Leads: SHORTEST_S.
FIRST_S = {Kind.HOME: 300.0, Kind.FEED: 900.0, Kind.SITEMAP: 6 * 3600.0, Kind.SECTION: 900.0}
#: A lead is looked at at least this often, seconds, so that nothing of a site waits for longer than
#: twice the half of it: 95 % of the articles within ten minutes (docs/freshness.md has the figures
#: behind both numbers).
LEAD_LONGEST_S = 600.0
#: The same at hours at which little or nothing is to be expected of its site (rhythm.py). With 900
#: the night's p95 rose to 11 and 12 minutes; this costs a tenth of a list request a new article.
QUIET_LONGEST_S = 600.0
#: The same for a lead that had nothing for so long which another list had not shown in time. Half a
#: day was too soon: in the evening of the measured day p95 rose to a quarter of an hour
#: (docs/freshness.md).
SPARE_LEAD_LONGEST_S = 1800.0
SPARE_AFTER_S = 7 * 86_400
#: An article that nobody knew this long after its publication was missed by all other
#: lists, seconds.
MISSED_S = 900
#: A lead that has shown nothing new for a time may wait for a twentieth of it: nights, and sites
#: that fell asleep.
QUIET_SHARE = 20
#: What is not there (404, 410, no feed any more) is asked again after these, seconds, then once a
#: month: a tombstone.
MISSES_S = (3600.0, 6 * 3600.0, 86_400.0)
TOMBSTONE_S = 30 * 86_400.0
#: A redirect's target is a list of its own; the old address is asked this seldom whether it has
#: come back, seconds.
MOVED_S = 86_400.0
_MOST_NOTE = 120

_LEAD_FEED = re.compile(
    r"(?:^|[/_.-])(?:home|trang-?chu|tin-moi(?:-nhat)?|moi-nhat|tin-tuc-moi-nhat|"
    r"tin-?tuc-?24h|tintuctrongngay|latest|newest|all|index|main)"
    r"(?:[/_.-]|$)|/(?:rss|feed|atom)(?:\.xml|\.rss|\.atom)?/?$|/feed\.(?:xml|rss)$",
    re.I,
)
#: Feeds of a site that are leads where none of them is named as the feed of everything:
#: together they cover it.
_MOST_LEAD_FEEDS = 6


@dataclass(slots=True)
class Memory:
    """What a list page's record carries from visit to visit. All zero: never
    visited. Clock seconds."""

    digest: bytes = b""  # 8 bytes over the set of its links
    interval_s: int = 0  # that was planned at the last visit
    fresh_s: int = 0  # when it last showed something that it had not shown before
    missed_s: int = 0  # when it last had an article that no other list had shown in time
    misses: int = 0  # visits in a row without a list
    note: str = ""  # why there was none, or where it went
    lead: bool = False  # it led at the last visit that could be read
    prints: bytes = b""  # of the links that it showed
    articles: int = 0  # that were heard of here first, of all visits: its yield
    visits: int = 0  # at which there was a list
    doubles: int = 0  # links new to the list that were known from elsewhere

    def pack(self) -> bytes:
        values = [
            self.digest,
            self.interval_s,
            self.fresh_s,
            self.missed_s,
            self.misses,
            self.note,
            self.lead,
        ]
        return bytes(
            msgpack.packb([_SCHEMA, *values, self.prints, self.articles, self.visits, self.doubles])
        )

    @classmethod
    def read(cls, data: bytes) -> Memory:
        """Of another version or nothing: as if never visited."""
        try:
            schema, *values = msgpack.unpackb(data)
        except (ValueError, TypeError, msgpack.UnpackException):
            return cls()
        # 8: before the yield was counted, 9: before visits and doubles were
        is_ours = schema == _SCHEMA and len(values) in (8, 9, 11)
        return cls(*values) if is_ours else cls()

    @property
    def is_followed(self) -> bool:
        """The last visit found a list, so that the next one can be compared with it."""
        return self.interval_s > 0 and not self.misses and not self.note

    @property
    def is_dead(self) -> bool:
        return self.misses > len(MISSES_S)

    def shown(self) -> set[bytes]:
        return {
            self.prints[at : at + PRINT_BYTES] for at in range(0, len(self.prints), PRINT_BYTES)
        }


@dataclass(slots=True)
class ListVisit:
    """One visit of a list page that could be read."""

    kind: Kind
    now_s: int
    last_s: int  # of the visit before; 0 = none
    ids: Collection[bytes] = ()  # of all links on it
    new: Iterable[Link] = ()  # those that the worker did not know
    is_lead: bool = False
    newest_s: float | None = None  # publication or change of its newest entry, where it tells
    rhythm: Rhythm | None = None  # of its site; None = not known yet


def digest_of(ids: Iterable[bytes]) -> bytes:
    return blake2b(b"".join(sorted(ids)), digest_size=8).digest()


def plan(visit: ListVisit, memory: Memory) -> Memory:
    """The list's memory after the visit; its ``interval_s`` is the time until the next one."""
    digest = digest_of(visit.ids)
    is_first = not memory.is_followed
    if digest == memory.digest and not is_first:
        return unchanged(visit, memory)
    shown = memory.shown()  # empty: not known, as it is a first visit or a long list
    articles = (link for link in visit.new if link.kind is Kind.ARTICLE)
    found = [link for link in articles if link.url_id[:PRINT_BYTES] not in shown]
    after = replace(memory, digest=digest, misses=0, note="", lead=visit.is_lead)
    after.visits += 1
    after.prints = b""
    if len(visit.ids) <= MOST_PRINTS:
        after.prints = b"".join(sorted(uid[:PRINT_BYTES] for uid in visit.ids))
    after.articles = memory.articles + len(found)
    if is_first:
        after.fresh_s = visit.now_s
        if visit.newest_s is not None:
            after.fresh_s = min(visit.now_s, int(visit.newest_s))
        after.missed_s = visit.now_s  # on trial for SPARE_AFTER_S
        after.interval_s = round(_first(visit))
        return after
    if shown:
        fresh = sum(uid[:PRINT_BYTES] not in shown for uid in visit.ids)
    else:
        fresh = len(found)
    if fresh:
        after.fresh_s = visit.now_s
    if _missed(found, visit, memory):
        after.missed_s = visit.now_s
    after.doubles += max(0, fresh - len(found))
    known = 1 - len(found) / fresh if fresh else 1.0
    after.interval_s = round(_next(visit, after, known, len(found)))
    return after


def unchanged(visit: ListVisit, memory: Memory) -> Memory:
    """The list answered that it is as it was (304, an equal body or an equal set of links)."""
    after = replace(memory, misses=0, note="", visits=memory.visits + 1)
    after.interval_s = round(_next(visit, after, 1.0, 0) if memory.is_followed else _first(visit))
    return after


def missing(memory: Memory, reason: str, kind: Kind = Kind.FEED) -> Memory:
    """There was no list: not found, gone, no feed any more. A home page is
    asked once a day for ever."""
    after = replace(memory, misses=memory.misses + 1, note=reason[:_MOST_NOTE])
    step = memory.misses
    last = MISSES_S[-1] if kind is Kind.HOME else TOMBSTONE_S
    after.interval_s = round(MISSES_S[step] if step < len(MISSES_S) else last)
    return after


def moved(memory: Memory, target: str) -> Memory:
    """It sent us elsewhere."""
    return replace(memory, interval_s=round(MOVED_S), note=f"moved to {target}"[:_MOST_NOTE])


def _first(visit: ListVisit) -> float:
    first = SHORTEST_S if visit.is_lead else FIRST_S[visit.kind]
    if visit.newest_s is None:
        return first
    # An archive grows no more: once a day. What got an entry an hour ago may get one soon.
    soonest = SHORTEST_S if visit.is_lead else FIRST_S[Kind.SECTION]
    return min(LONGEST_S, max(soonest, (visit.now_s - visit.newest_s) / QUIET_SHARE))


def _next(visit: ListVisit, memory: Memory, known: float, found: int) -> float:
    interval = float(memory.interval_s)
    if visit.is_lead:
        is_spare = visit.kind is not Kind.HOME and visit.now_s - memory.missed_s > SPARE_AFTER_S
        longest = SPARE_LEAD_LONGEST_S if is_spare else LEAD_LONGEST_S
        quiet = max(0, visit.now_s - memory.fresh_s) / QUIET_SHARE
        if visit.rhythm is not None and not is_spare:
            return _by_rhythm(visit, visit.rhythm, next_interval(known, interval), quiet, found)
        if found and not is_spare:
            return SHORTEST_S  # it yields: what comes next is not to wait
        return min(next_interval(known, interval), max(longest, quiet))
    if found >= 2:
        # It has what nobody else shows: soon enough that about one article waits for each visit.
        elapsed = float(visit.now_s - visit.last_s) if visit.last_s else interval
        return max(SHORTEST_S, min(interval / 1.5, elapsed / found))
    if found == 1 and known > MANY_KNOWN:
        return interval
    return next_interval(known, interval)


def _by_rhythm(
    visit: ListVisit, rhythm: Rhythm, interval: float, quiet: float, found: int
) -> float:
    """Of a lead whose site's hours are known: as long as a part of an article is to be expected.
    After one that came at a quiet hour it is asked again soon, as more may follow. A site that has
    been silent for longer than its hours let expect may wait for a part of its silence."""
    usual = rhythm.wait_s(visit.now_s, SHORTEST_S, QUIET_LONGEST_S)
    if found:
        return min(usual, LEAD_LONGEST_S)
    return min(interval, max(usual, quiet) if usual >= QUIET_LONGEST_S else usual)


def _missed(found: list[Link], visit: ListVisit, memory: Memory) -> bool:
    """Whether an article that was out for long is heard of here first. After a stop
    everything is late: no sign."""
    if not visit.last_s or visit.now_s - visit.last_s > 2 * memory.interval_s + 60:
        return False
    limit = visit.now_s - MISSED_S
    return any(x.band == 0 and -x.score < limit and "published" in (x.hint or {}) for x in found)


class Leads:
    """Which lists show what is new of their whole site, and are looked at every few minutes."""

    def __init__(self) -> None:
        self._of_site: dict[str, frozenset[str]] = {}

    def has(self, site: Site, kind: Kind, url: str, hint: dict[str, Any] | None = None) -> bool:
        """:param hint: of the list's lease; one that the crawl found says there whether it leads"""
        if kind is Kind.HOME or (hint or {}).get("lead"):
            return True
        if kind not in (Kind.FEED, Kind.SITEMAP):
            return False
        leads = self._of_site.get(site.id)
        if leads is None:
            leads = self._of_site[site.id] = frozenset(_bare(lead) for lead in lead_urls(site))
        return _bare(url) in leads


def _bare(url: str) -> str:
    return url.partition("://")[2].partition("/")[2].rstrip("/")


def lead_feeds(feeds: list[str]) -> list[str]:
    """Of a site's feeds those of everything, by name; the first ones where none is."""
    named = [url for url in feeds if _LEAD_FEED.search(urlsplit(url).path)]
    return named or feeds[:_MOST_LEAD_FEEDS]


def lead_urls(site: Site) -> list[str]:
    """Of the seeds that the file names: feeds of everything (all feeds where none is), news
    and latest sitemaps."""
    alive = [feed.url for feed in site.feeds if feed.status != "dead"]
    return [
        *lead_feeds(alive),
        *(s.url for s in site.sitemaps if s.kind in ("news", "latest") and s.status != "dead"),
    ]


def newest_s(entries: Iterable[Any]) -> float | None:
    """Time of the newest of a feed's or sitemap's entries, seconds since the epoch;
    None = none tells."""
    times = [
        when.timestamp() for e in entries if (when := e.published or getattr(e, "lastmod", None))
    ]
    return max(times, default=None)


#: A list that has shown nothing new for so long is said to be asleep, seconds.
ASLEEP_S = 7 * 86_400


def state_of(
    memory: Memory, outcome: Outcome | None, now_s: int, *, is_dead_in_file: bool = False
) -> str:
    """One word for an operator. ``outcome``: of the last visit, None = never visited."""
    is_asleep = memory.fresh_s and now_s - memory.fresh_s > ASLEEP_S
    states = (
        ("dead", memory.is_dead),
        ("missing", memory.misses),
        ("dead", outcome is None and is_dead_in_file),
        ("new", outcome is None),
        ("challenge", outcome is Outcome.CHALLENGE),
        ("moved", memory.note),
        ("failing", outcome in (Outcome.RETRY, Outcome.FAILED, Outcome.GONE)),
        ("refused", outcome is Outcome.REFUSED),
        ("alive", is_dead_in_file),  # the file is wrong
        ("asleep", is_asleep),
    )
    return next((state for state, holds in states if holds), "live")
