"""Requests of the simulated sites to answers: routing, caching of rendered bytes,
conditional GET."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from zlib import crc32

from isal import igzip

from tests.newsweb import faults, lists, scripted
from tests.newsweb.dates import http_date
from tests.newsweb.faults import CHALLENGE, FAULTS, Answer
from tests.newsweb.render import Frame, article_page
from tests.newsweb.unknown import FAILS_ONE_IN
from tests.newsweb.wire import Wire, head
from tests.newsweb.world import Story, WebSite, World

#: Bytes of rendered pages that are kept.
CACHE_BYTES = 128 * 1024 * 1024
XML = "application/xml; charset=utf-8"
HTML = "text/html; charset=utf-8"


@dataclass(slots=True)
class Cached:
    plain: Wire
    packed: Wire
    etag: str
    modified: float  # 0 = not told


class SiteApp:
    """Callable as wire.App. ``gzip``: compress for clients that accept it."""

    def __init__(self, world: World, gzip: bool = True) -> None:
        self.world, self.gzip = world, gzip
        self.cache: OrderedDict[tuple[object, ...], Cached] = OrderedDict()
        self.cached_bytes = 0
        self.frames: dict[str, Frame] = {}
        self.seen: Counter[tuple[str, str]] = Counter()  # requests of addresses that answer by turn
        self.routes = {site.id: Routes(site) for site in world.sites}

    def __call__(self, host: str, target: str, headers: dict[str, str], local: str) -> Wire:
        site = (
            self.world.by_host.get(host)
            or self.world.by_host.get(host.partition(":")[0])
            or self.world.by_host.get(local)
        )
        if site is None:
            return self._wire(Answer(421, b"no such site here"))
        now = self.world.clock.now()
        path = target.partition("?")[0]
        if site.scheme == "https" and headers.get("x-newsweb-scheme") != "https":
            return self._wire(Answer(301, headers={"Location": site.base + target}))
        if path == "/robots.txt":
            return self._robots(site)
        if path == "/robots-moi.txt" and site.robots == "redirect":
            return self._wire(Answer(200, lists.robots_txt(site).encode(), "text/plain"))
        spoiled = faults.by_path(target)
        if spoiled is not None:
            return self._wire(spoiled)
        if site.challenge and "D1N=" not in headers.get("cookie", ""):
            return self._wire(Answer(200, CHALLENGE))
        if self._moved(site, host, path):
            return self._wire(Answer(301, headers={"Location": site.base + target}))
        if site.scripted:
            # whole and unpacked, whatever the client takes
            found = scripted.answer(
                target, lambda t: self._page(site, t, t.partition("?")[0], {}, now)
            )
            return found if isinstance(found, Wire) else self._wire(found)
        return self._page(site, target, path, headers, now)

    def _page(
        self, site: WebSite, target: str, path: str, headers: dict[str, str], now: float
    ) -> Wire:
        routes = self.routes[site.id]
        if path == site.home or path == "/":
            return self._list(site, ("home",), headers, now, HTML, lambda: self._home(site, now))
        if path in routes.feeds:
            return self._feed(site, path, routes.feeds[path], headers, now)
        kind = site.sitemap_kind(path)
        if kind:
            return self._sitemap(site, path, kind, headers, now)
        place = routes.page_of(target) or routes.page_of(path)
        story = None if place else self._story(site, path, now)
        if (place or story) and (failed := self._failed(site, target)):
            return self._wire(failed)
        if place:
            section, number, base = place
            if lists.has_page(site, section, number, now):
                what = ("section", base, number)
                return self._list(
                    site,
                    what,
                    headers,
                    now,
                    HTML,
                    lambda: lists.section_page(site, self.frame(site), section, number, now, base),
                )
        if path in site.redirects:
            return self._wire(Answer(301, headers={"Location": site.redirects[path]}))
        if story is not None:
            return self._article(site, story, path, headers, now)
        trap = faults.traps(target)
        if trap is not None:
            return self._wire(Answer(200, trap))
        html = lists.static_page(site, self.frame(site), path, now)
        if html is not None:
            return self._wire(Answer(200, html.encode()))
        return self._wire(
            Answer(
                404,
                "<html><head><title>404</title></head><body><h1>Không tìm thấy trang</h1></body></html>".encode(),
            )
        )

    def _failed(self, site: WebSite, target: str) -> Answer | None:
        """How a page of a site that fails is not there when it is first asked for."""
        number = crc32(target.encode())
        if site.unknown is None or not site.unknown.fails or number % FAILS_ONE_IN:
            return None
        self.seen[site.host, "failed " + target] += 1
        if self.seen[site.host, "failed " + target] > 1:
            return None
        return (Answer(503), Answer(500), Answer(end="drop"))[number // FAILS_ONE_IN % 3]

    def _moved(self, site: WebSite, host: str, path: str) -> bool:
        """m. hosts and former domains send readers on; feeds and sitemaps stay where they were.
        amp. hosts answer."""
        if site.template.twin == "amp" and host == site.twin_host:
            return False
        routes = self.routes[site.id]
        return (
            host in (site.twin_host, *site.aliases)
            and path not in routes.feeds
            and not site.sitemap_kind(path)
        )

    def frame(self, site: WebSite) -> Frame:
        if site.id not in self.frames:
            self.frames[site.id] = Frame(site)
        return self.frames[site.id]

    def _story(self, site: WebSite, path: str, now: float) -> Story | None:
        if site.template.twin == ".amp" and path.endswith(".amp"):
            path = path[:-4] + "." + site.template.shape.rpartition(".")[2]
        article = self.routes[site.id].article
        if site.unknown is not None and site.unknown.twin == "/amp" and path.endswith("/amp"):
            path = path.removesuffix("/amp")
            path = path if article.match(path) else path + "/"
        match = article.match(path)
        story = site.by_id.get(match[1]) if match else None
        return story if story is not None and story.published <= now else None

    def _robots(self, site: WebSite) -> Wire:
        self.seen[site.host, "robots"] += 1
        if site.robots == "404":
            return self._wire(Answer(404, b"not found", "text/plain"))
        if site.robots == "5xx" and self.seen[site.host, "robots"] <= site.robots_503:
            return self._wire(Answer(503, b"later", "text/plain", {"Retry-After": "1"}))
        if site.robots == "redirect":
            return self._wire(Answer(301, headers={"Location": "/robots-moi.txt"}))
        return self._wire(Answer(200, lists.robots_txt(site).encode(), "text/plain; charset=utf-8"))

    def _home(self, site: WebSite, now: float) -> str:
        html = lists.home_page(site, self.frame(site), now)
        if site.key.startswith("fault-"):
            links = "".join(
                f'<a href="{p}">Xem</a>'
                for p in ("/lich-mo/2026/11/1/", "/lap/tin/", "/phien?sid=1", "/loop")
            )
            html = html.replace("</main>", links + "</main>", 1)
        return html

    def _feed(
        self, site: WebSite, path: str, section: int | None, headers: dict[str, str], now: float
    ) -> Wire:
        quirk = next(
            (what for rule, what in site.template.feed_quirks.items() if re.search(rule, path)), ""
        )
        if quirk == "404":
            return self._wire(Answer(404, b"not found", "text/plain"))
        if quirk == "loop":
            return self._wire(Answer(302, headers={"Location": path}))
        bad = (
            faults.bad_xml(path, site.base, lists.feed_xml(site, path, None, now))
            if path in faults.BAD_FEEDS
            else None
        )
        if bad is not None:
            return self._wire(Answer(200, bad, "application/rss+xml; charset=utf-8"))
        if quirk == "gzip":  # packed whatever is asked
            headers = {**headers, "accept-encoding": "gzip"}
        kind = "text/xml; charset=utf-8" if len(path) % 2 else "application/rss+xml; charset=utf-8"
        return self._list(
            site,
            ("feed", path),
            headers,
            now,
            kind,
            lambda: lists.feed_xml(site, path, section, now, quirk),
        )

    def _sitemap(
        self, site: WebSite, path: str, kind: str, headers: dict[str, str], now: float
    ) -> Wire:
        bad = faults.bad_xml(path, site.base, "")
        if bad is not None:
            return self._wire(Answer(200, bad, "application/gzip" if path.endswith(".gz") else XML))
        numbers = [
            int(n) for n in re.findall(r"\d+", path)
        ]  # year, month and on some sites two days
        make: dict[str, Callable[[], str]] = {
            "index": lambda: lists.sitemap_index(site, now),
            "news": lambda: lists.news_sitemap(site, now),
            "sections": lambda: lists.categories_sitemap(site),
            "feed": lambda: lists.feed_xml(site, path, None, now),
            "month": lambda: lists.articles_sitemap(site, now, numbers),
            "all": lambda: lists.articles_sitemap(site, now),
        }
        return self._list(site, ("sitemap", path), headers, now, XML, make[kind])

    def _article(
        self, site: WebSite, story: Story, path: str, headers: dict[str, str], now: float
    ) -> Wire:
        if story.special in ("gone", "missing"):
            return self._wire(
                Answer(
                    410 if story.special == "gone" else 404,
                    b"<html><body><h1>Bai viet da bi go</h1></body></html>",
                )
            )
        version, template = story.current(now), site.template
        # Sites with an entity tag or a date hold the page still while the text is; the others'
        # sidebars move on.
        frozen = template.etag in ("strong", "date")
        side_at = max(version.at, self.world.started) if frozen else now // 3600 * 3600
        new_look = site.relayout_at is not None and now >= site.relayout_at

        def make() -> str:
            side = [
                s for s in reversed(site.visible(side_at)) if "list" in s.channels and not s.special
            ]
            return article_page(story, version, self.frame(site), now, side)

        key = ("article", site.id, story.number, version.at, new_look, side_at)
        name = site.faults.get(story.ident, "")
        if name:
            self.seen[site.host, name] += 1
            page = make().encode()
            return self._wire(FAULTS[name].make(page, self.seen[site.host, name] - 1, site.base))
        extra = {"X-Robots-Tag": "noindex"} if story.special == "xrobots" else {}
        cached = self._cached(key, HTML, make, template.etag, version.at, extra)
        if template.etag == "volatile":
            self.seen[site.host, "views"] += 1
            body = cached.plain.body.replace(
                b"</body>", b"<!-- luot xem %d --></body>" % self.seen[site.host, "views"]
            )
            return Wire(200, head(200, len(body), HTML, extra), body)
        return self._choose(cached, headers)

    def _list(
        self,
        site: WebSite,
        what: tuple[object, ...],
        headers: dict[str, str],
        now: float,
        kind: str,
        make: Callable[[], str],
    ) -> Wire:
        count = len(site.visible(now))
        edited = sum(1 for s in site.stories for at, _ in s.edits if at <= now)
        etag = "strong" if site.template.etag in ("strong", "weak") else "none"
        cached = self._cached(
            (site.id, *what, count, edited, now // 600), kind, make, etag, 0.0, {}
        )
        return self._choose(cached, headers)

    def _cached(
        self,
        key: tuple[object, ...],
        kind: str,
        make: Callable[[], str],
        etag_kind: str,
        modified: float,
        extra: dict[str, str],
    ) -> Cached:
        found = self.cache.get(key)
        if found is not None:
            self.cache.move_to_end(key)
            return found
        body = make().encode()
        etag = f'"{blake2b(body, digest_size=8).hexdigest()}"'
        tell = dict(extra)
        if etag_kind in ("strong", "weak"):
            tell["ETag"] = etag = etag if etag_kind == "strong" else "W/" + etag
        else:
            etag = ""
        if etag_kind in ("strong", "date") and modified:
            tell["Last-Modified"] = http_date(modified)
        elif etag_kind != "date":
            modified = 0.0
        packed = igzip.compress(body, 1) if self.gzip else b""
        found = Cached(
            Wire(200, head(200, len(body), kind, tell), body),
            Wire(
                200,
                head(
                    200,
                    len(packed),
                    kind,
                    {**tell, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"},
                ),
                packed,
            ),
            etag,
            modified,
        )
        self.cache[key] = found
        self.cached_bytes += len(body) + len(packed)
        while self.cached_bytes > CACHE_BYTES and len(self.cache) > 1:
            _, old = self.cache.popitem(last=False)
            self.cached_bytes -= len(old.plain.body) + len(old.packed.body)
        return found

    def _choose(self, cached: Cached, headers: dict[str, str]) -> Wire:
        asked = headers.get("if-none-match")
        if cached.etag and asked is not None:
            if cached.etag in asked:
                return Wire(304, head(304, 0, headers={"ETag": cached.etag}))
        elif cached.modified and headers.get("if-modified-since") == http_date(cached.modified):
            return Wire(304, head(304, 0, headers={"Last-Modified": http_date(cached.modified)}))
        return (
            cached.packed
            if self.gzip and "gzip" in headers.get("accept-encoding", "")
            else cached.plain
        )

    @staticmethod
    def _wire(answer: Answer) -> Wire:
        size = len(answer.chunks[0]) * answer.chunks[1] if answer.chunks else len(answer.body)
        headers = dict(answer.headers)
        if answer.encoding:
            headers["Content-Encoding"] = answer.encoding
        kind = answer.content_type if size else ""
        return Wire(
            answer.status,
            head(answer.status, size, kind, headers),
            answer.body,
            answer.end,
            answer.delay_s,
            answer.chunks,
        )


class Routes:
    """Addresses of one site that are no articles."""

    def __init__(self, site: WebSite) -> None:
        self.site = site
        self.feeds = dict(site.feeds)
        self.article = site.template.path_regex
        self.pages: dict[str, tuple[int | None, int, str]] = {}
        own = [(None if p in site.latest else i, p) for i, (p, _) in enumerate(site.sections)]
        for section, path in [*own, (None, "/tin-moi")]:
            for number in range(1, 40):
                self.pages.setdefault(lists.page_path(site, path, number), (section, number, path))

    def page_of(self, target: str) -> tuple[int | None, int, str] | None:
        return self.pages.get(target)
