"""`python -m benchmarks.freshness_model`: when new articles are found by the rules for revisits, as
they are in the program, over some simulated days without a network.

The simulated web publishes; its lists are looked at when newscrawler.discovery.list_revisits says,
one fetch at a time and at the site's delay; an article is found when the first list shows it and
stored when it was fetched. The last day is measured. Once by the same rule at all hours, and once
by the hours that each site has shown (rhythm.py), on the same webs. What takes no part: failing
pages, robots.txt, the time that a machine needs. Takes some seconds a day and seed.
"""

from __future__ import annotations

import argparse
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from benchmarks.freshness import percentile
from newscrawler.discovery.list_revisits import ListVisit, Memory, lead_feeds, plan
from newscrawler.discovery.rhythm import Rhythm, rhythm_of
from newscrawler.items import Kind, Link
from tests.newsweb.build import Plan, ip_world, names_world
from tests.newsweb.lists import FEED_ITEMS, listed
from tests.newsweb.world import SimClock, Story, WebSite, World

HOUR, DAY = 3600, 86_400
_HOME_TOP, _HOME_BLOCK, _SECTION = 25, 8, 20
#: An article is looked at again after these, seconds; each takes a turn of its site.
_AGAIN = (900, 3600, 6 * 3600)


@dataclass
class Result:
    """Of the measured day. Lags in seconds, one an article."""

    lags: list[float] = field(default_factory=list)
    by_hour: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    lists: Counter[int] = field(default_factory=Counter)  # hour in Hanoi -> requests for lists

    def row(self, name: str) -> str:
        night = [lag for hour in range(1, 6) for lag in self.by_hour[hour]]
        day = [lag for hour in range(6, 23) for lag in self.by_hour[hour]]
        asked, at_night = sum(self.lists.values()), sum(self.lists[hour] for hour in range(1, 6))
        p = [f"{percentile(self.lags, q) / 60:5.1f}" for q in (50, 95, 99)]
        return (
            f"{name:22} articles {len(self.lags):5}  p50 {p[0]}  p95 {p[1]}  p99 {p[2]} min  p95"
            f" 6-22 h {percentile(day, 95) / 60:4.1f}  1-5 h {percentile(night, 95) / 60:4.1f}"
            f"  list requests a new article {asked / max(1, len(self.lags)):.1f} (1-5 h: {at_night})"
        )


def link_of(story: Story) -> Link:
    uid = blake2b(story.url.encode(), digest_size=16).digest()
    hint = {"published": "told"} if story.number % 2 else None
    score = -int(story.published)
    return Link(story.url, uid, story.site.host, Kind.ARTICLE, band=0, score=score, hint=hint)


class Site:
    """One site's lists and gate."""

    def __init__(self, site: WebSite, start: float, days: float, by_hour: bool) -> None:
        self.site, self.start, self.days, self.by_hour = site, start, days, by_hour
        self.links = {story.number: link_of(story) for story in site.stories}
        self.known: set[bytes] = set()
        self.stored: dict[bytes, float] = {}
        self.counts: Counter[int] = Counter()
        self.memories: dict[str, Memory] = defaultdict(Memory)
        self.last: dict[str, float] = {}
        self.rhythm: Rhythm | None = None
        self.rhythm_hour = 0
        self.lists = list(self._lists())

    def _lists(self) -> Iterator[tuple[str, Kind, bool, str, int | None]]:
        """Path, kind, whether it leads, channel, section."""
        site = self.site
        yield "/", Kind.HOME, True, "list", None
        leads = set(lead_feeds([site.base + path for path, _ in site.feeds]))
        for path, section in site.feeds:
            yield path, Kind.FEED, site.base + path in leads, "feed", section
        for path in site.sitemaps:
            kind = site.sitemap_kind(path)
            if kind in ("index", "news", "all", "month"):
                yield path, Kind.SITEMAP, kind == "news", f"sitemap {kind}", None
        for number, (path, _) in enumerate(site.sections):
            yield path, Kind.SECTION, False, "list", number

    def shown(self, kind: Kind, channel: str, section: int | None, now: float) -> list[Story]:
        name, _, form = channel.partition(" ")
        stories = listed(self.site, now, name, section)
        if kind is Kind.HOME:
            top = stories[:_HOME_TOP]
            blocks = range(len(self.site.sections))
            more = [s for at in blocks for s in listed(self.site, now, "list", at)[:_HOME_BLOCK]]
            return list({s.number: s for s in [*top, *more]}.values())
        if form == "news":
            return [s for s in stories if s.published > now - 2 * DAY]
        if form:
            return stories
        return stories[: FEED_ITEMS if kind is Kind.FEED else _SECTION]

    def visit(self, place: int, now: float) -> tuple[float, list[Link]]:
        """Seconds until the next one, and what was new."""
        path, kind, is_lead, channel, section = self.lists[place]
        stories = self.shown(kind, channel, section, now)
        links = [self.links[story.number] for story in stories]
        new = [link for link in links if link.url_id not in self.known]
        self.known.update(link.url_id for link in new)
        newest = max((s.published for s in stories), default=None)
        seen = ListVisit(
            kind, int(now), int(self.last.get(path, 0)), ids={x.url_id for x in links}, new=new,
            is_lead=is_lead, newest_s=None if kind is Kind.HOME else newest, rhythm=self.rhythm,
        )  # fmt: skip
        self.memories[path] = plan(seen, self.memories[path])
        self.last[path] = now
        return self.memories[path].interval_s, new

    def learn(self, now: float) -> None:
        hour = int(now // HOUR)
        if self.by_hour and hour != self.rhythm_hour:
            self.rhythm_hour = hour
            first = int(self.start // HOUR)
            self.rhythm = rhythm_of(self.counts, first, hour, lambda one: True)

    def run(self, result: Result) -> None:
        end, measured = self.start + self.days * DAY, self.start + (self.days - 1) * DAY
        delay = max(2.0, self.site.delay_s)
        events: list[tuple[float, int, int, Any]] = [
            (self.start, 1, place, None) for place in range(len(self.lists))
        ]
        free, number = self.start, len(events)
        heapq.heapify(events)
        while events and events[0][0] < end:
            due, what, place, link = heapq.heappop(events)
            if due < free:  # the gate is closed: what waits is sorted by its turn
                heapq.heappush(events, (free, what, place, link))
                continue
            free = due + delay
            self.learn(due)
            if link is not None:
                if what == 0 and link.url_id not in self.stored:
                    self.stored[link.url_id] = due
                    self.counts[int(due // HOUR)] += due > self.start + HOUR
                continue
            interval, new = self.visit(place, due)
            if due >= measured:
                result.lists[int(due + 7 * HOUR) // HOUR % 24] += 1
            for one in new:
                number += 1
                heapq.heappush(events, (free, 0, number, one))
                for later in _AGAIN:
                    heapq.heappush(events, (free + later, 2, number, one))
            heapq.heappush(events, (due + interval, 1, place, None))
        self.measure(result, measured, end - HOUR)

    def measure(self, result: Result, first: float, last: float) -> None:
        for story in self.site.stories:
            if not first <= story.published <= last or story.why_not or story.optional:
                continue
            lag = self.stored.get(self.links[story.number].url_id, float("inf")) - story.published
            result.lags.append(lag)
            result.by_hour[int(story.published + 7 * HOUR) // HOUR % 24].append(lag)


def made(args: argparse.Namespace, seed: int) -> World:
    # Midnight in Hanoi.
    clock = SimClock()
    clock.set(1.0, 1_763_571_600.0)
    options = Plan(
        seed, 10, args.rate, args.days * 24, 0, 1.0, "none", unknown=args.unknown, rhythm=True
    )
    return ip_world(options, clock, 80) if args.unknown else names_world(options, clock, args.file)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="1,2,3", help="a web each (1,2,3)")
    parser.add_argument("--days", type=float, default=4, help="the last is measured (4)")
    parser.add_argument("--rate", type=float, default=3.0, help="articles a site and hour (3)")
    parser.add_argument("--unknown", type=int, default=0, help="so many drawn sites, not the 33")
    parser.add_argument("--file", type=Path, default=Path("sites.json"), help="sites (sites.json)")
    args = parser.parse_args()
    totals = {"one rule at all hours": Result(), "by the site's hours": Result()}
    for seed in map(int, args.seeds.split(",")):
        world = made(args, seed)
        for by_hour, result in enumerate(totals.values()):
            for site in world.sites:
                if not site.challenge:
                    Site(site, world.started, args.days, bool(by_hour)).run(result)
    for name, result in totals.items():
        print(result.row(name))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
