"""`python -m benchmarks.bench_link_classes`: does a crawl know articles, lists and the rest of a site
apart after its first 50 pages?

Sites of the simulated web of which only the home page is told (tests/newsweb/unknown.py), drawn by
seeds. The first pages of each are read as a crawl reads them, by the same parts without network and
Redis, and what they teach is noted; then every address that the site links to is judged, and
compared with what it is. Prints precision and recall of articles and lists, over all sites and of
the worst, for all addresses and for those that were not among the pages that taught; exit 1 when a
site is below the goal.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from newscrawler.crawl.decision import HtmlRead, ListRead
from newscrawler.crawl.link_learning import LinkLearning, split
from newscrawler.crawl.page_parser import read_if
from newscrawler.crawl.parse_process import Html, Task, read
from newscrawler.discovery import sitefile
from newscrawler.discovery.link_classes import LinkClass
from newscrawler.discovery.links import LinkFinder
from newscrawler.discovery.sites import Sites
from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.items import LIST_KINDS, Kind, Link
from newscrawler.spiders.news import NothingSeen
from newscrawler.web import urls
from tests.newsweb import judge
from tests.newsweb.app import SiteApp
from tests.newsweb.build import Plan, ip_world
from tests.newsweb.world import SimClock, WebSite

GOAL = 0.99


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default="101,102,103,104", help="a web each (101,102,103,104)")
    parser.add_argument("--sites", type=int, default=12, help="sites of each web (12)")
    parser.add_argument("--pages", type=int, default=50, help="pages that teach (50)")
    parser.add_argument("--articles", type=int, default=60, help="articles of each site (60)")
    parser.add_argument("--wrong", action="store_true", help="name the addresses that are wrong")
    return parser.parse_args()


@dataclass
class Score:
    """Of one site: (what it is, what it is taken for) -> how many addresses."""

    site: str
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def precision(self, name: str) -> float:
        taken = sum(n for (_, got), n in self.pairs.items() if got == name)
        return self.pairs[name, name] / taken if taken else 1.0

    def recall(self, name: str) -> float:
        there = sum(n for (is_, _), n in self.pairs.items() if is_ == name)
        return self.pairs[name, name] / there if there else 1.0

    def least(self) -> float:
        return min(f(name) for name in ("article", "list") for f in (self.precision, self.recall))


class Reader:
    """Reads pages of one site as a crawl does, and learns."""

    def __init__(self, app: SiteApp, site: WebSite) -> None:
        self.app, self.web = app, site
        entry = {"id": site.id, "home": site.base + site.home, "delay_s": 1}
        self.sites = Sites(sitefile.parse(json.dumps({"sites": [entry]}), "simulated")[0])
        self.site = next(iter(self.sites))
        self.learning = LinkLearning(None)
        self.finder = LinkFinder(self.sites, NothingSeen(), classes=self.learning)
        self.now_ms = int(app.world.clock.now() * 1000)

    def fetch(self, url: str) -> tuple[int, bytes]:
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        for _ in range(3):  # a page that fails is asked for again
            wire = self.app(self.web.host, target, {}, "127.0.0.1")
            if wire.status == 200 and not wire.end:
                return 200, wire.body
        return wire.status, b""

    def learn(self, first: Link, pages: int, rng: random.Random) -> set[str]:
        """Reads so many pages from the home page on; the addresses of those that taught."""
        waiting: dict[str, Link] = {first.url: first}
        done: set[str] = set()
        while waiting and len(done) < pages:
            link = min(waiting.values(), key=lambda x: (self.place(x), rng.random()))
            del waiting[link.url]
            status, body = self.fetch(link.url)
            done.add(link.url)
            if status == 200 and body:
                for found in self.read(link, body):
                    known = waiting.get(found.url)  # the frontier keeps what it has
                    if found.url not in done and (known is None or found.kind in LIST_KINDS):
                        waiting[found.url] = found
        return done

    def place(self, link: Link) -> int:
        """The frontier's order: what teaches comes in the band of sections, before articles."""
        return 1 if link.kind is Kind.PAGE and link.band == 1 else _ORDER[link.kind]

    def read(self, link: Link, body: bytes) -> list[Link]:
        self.finder.use(self.sites)
        lease = SimpleNamespace(url=link.url, hint=link.hint, content_state=b"", kind=link.kind)
        page: Any = SimpleNamespace(
            site=self.site, lease=lease, kind=link.kind, body=body, url=link.url,
            is_list=link.kind in LIST_KINDS,
        )  # fmt: skip
        task = Task(body, link.url, link.kind, language="vi")
        task.headlines = page.is_list and self.learning.wants_headlines(self.site)
        if not page.is_list:
            known = self.learning.class_of(self.site, link.url)
            task.read_if = read_if(link.kind, known, has_pattern=False)
            task.context = PageContext(
                site_name=self.web.name, language="vi", zone="Asia/Ho_Chi_Minh",
                url_is_article=link.kind is Kind.ARTICLE or None,
                needs_evidence=link.kind is not Kind.ARTICLE,
                others_are_articles=known is LinkClass.ARTICLE,
            )  # fmt: skip
        answer = read(task)
        parent, now_ms = link.url_id, self.now_ms
        if not isinstance(answer, Html):
            found = self.finder.entry_links(answer.entries, parent=parent, depth=1, now_ms=now_ms)
            self.learning.note_list(page, ListRead(found), ())
            return found.links
        self.learning.note_doubtful(self.site, answer.doubtful)
        self.finder.use(self.sites)
        found = self.finder.find(
            answer.hrefs, answer.base_url, parent=parent, depth=1, now_ms=now_ms, max_depth=9
        )
        if not page.is_list:
            self.learning.note_page(
                page, HtmlRead(found, answer.robots, answer.extraction, answer.form)
            )
            return found.links
        learning = self.learning
        menu = [*answer.menu, *(u for u in answer.doubtful if learning.is_list(self.site, u))]
        learning.note_menu(self.site.id, menu)
        base = urls.Base(answer.base_url)
        heads = [joined for href in answer.headlines if (joined := urls.join(base, href))]
        learning.note_list(page, ListRead(found), heads)
        named = [(u, Kind.SECTION) for u in menu] + [(u, Kind.FEED) for u in answer.feeds]
        lists = [self.sites.identify(url, kind=kind) for url, kind in named]
        return [*found.links, *(x for x in lists if isinstance(x, Link))]

    def addresses(self) -> set[str]:
        """All that the site's pages link to, the site's own."""
        waiting, seen = [self.web.base + "/"], {self.web.base + "/"}
        while waiting:
            url = waiting.pop()
            status, body = self.fetch(url)
            if status != 200 or url.endswith((".xml", ".rss")):
                continue
            doc = Document(body, url, "text/html; charset=utf-8")
            base = urls.Base(doc.base_url)
            for href, _ in doc.links():
                joined = urls.join(base, href)
                address = urls.canonicalize(joined) if joined else None
                if address and address not in seen and urls.domain_of(address) == self.web.host:
                    seen.add(address)
                    if not address.startswith(self.web.base + "/lich/"):
                        waiting.append(address)
        return seen - {self.web.base + "/"}


_ORDER = {
    Kind.HOME: 0,
    Kind.FEED: 1,
    Kind.SITEMAP: 3,
    Kind.SECTION: 1,
    Kind.ARTICLE: 2,
    Kind.PAGE: 3,
}


def measured(seed: int, args: argparse.Namespace) -> tuple[list[Score], list[Score], list[str]]:
    """Per site: of all addresses, of those that did not teach; and what is wrong."""
    plan = Plan(seed, args.articles, 0.0, 1000, 0, 1.0, "none", unknown=args.sites)
    world = ip_world(plan, SimClock(), 8080)
    app = SiteApp(world, gzip=False)
    all_, unseen, wrong = [], [], []
    for site in world.sites:
        reader = Reader(app, site)
        home = reader.sites.identify(site.base + "/", kind=Kind.HOME)
        assert isinstance(home, Link)
        taught = reader.learn(home, args.pages, random.Random(seed))
        classes, name = reader.learning.of(reader.site.id), f"{seed}/{site.key}"
        all_.append(Score(name))
        unseen.append(Score(name))
        truth = site.truth()
        films = {story.path for story in site.stories if story.optional}
        end = site.unknown.twin if site.unknown else ""
        stories = {path for x in site.stories for path in (x.path, x.path.rstrip("/") + end)}
        for url in sorted(reader.addresses()):
            path, query = split(url)
            if path in films:  # an article or none: either is right
                continue
            is_ = judge.link_class(truth, stories, path)
            verdict = classes.class_of(path, query)
            pair = (is_, str(verdict.class_))
            all_[-1].pairs[pair] += 1
            if url not in taught:
                unseen[-1].pairs[pair] += 1
            if is_ != verdict.class_:
                wrong.append(f"{name} {url} is {is_}, taken for {verdict.class_}: {verdict.why}")
    return all_, unseen, wrong


def main() -> int:
    args = options()
    rows = [measured(int(seed), args) for seed in args.seeds.split(",")]
    found = {
        "all addresses": [score for row in rows for score in row[0]],
        "unseen addresses": [score for row in rows for score in row[1]],
    }
    for label, scores in found.items():
        total = Score("all")
        for score in scores:
            total.pairs.update(score.pairs)
        below = [score for score in scores if score.least() < GOAL]
        print(
            f"{label}: {len(scores)} sites, {sum(total.pairs.values())} addresses; "
            + "; ".join(
                f"{name} precision {total.precision(name):.4f} recall {total.recall(name):.4f}"
                for name in LinkClass
            )
            + f"; sites below {GOAL}: {len(below)}"
        )
        for score in sorted(below, key=Score.least)[:8]:
            print(f"  {score.site} {score.least():.3f} {dict(score.pairs)}")
    if args.wrong:
        print(*(line for row in rows for line in row[2]), sep="\n")
    return int(any(score.least() < GOAL for row in rows for score in row[0]))


if __name__ == "__main__":
    raise SystemExit(main())
