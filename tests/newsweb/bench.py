"""The benchmark layout: many hosts of one template, pages of about 65 KB with about 100 links."""

from __future__ import annotations

from html import escape
from zlib import crc32

from tests.newsweb.dates import iso, visible
from tests.newsweb.language import language, rng_for, slugify
from tests.newsweb.wire import Wire, head

HOSTS, PAGES, PAGE_BYTES, LINKS, DISTINCT = 30, 161, 65_000, 100, 50
SENTENCES = 20_000
ARTICLE_PATTERN = r"^/tin/[\w-]+-(\d+)\.html$"
#: CSS of the one template, for spiders with fixed selectors.
CSS = {
    "title": "h1.title",
    "content": "div.content",
    "published": "time.published",
    "authors": "span.author",
}


def latency_factor(host: int, number: int) -> float:
    """Of a page's answer beside the mean: 0.5 to 1.5, drawn by the numbers of host and page, so that
    a run can be repeated."""
    return 0.5 + crc32(b"%d %d" % (host, number)) % 11 / 10


class BenchApp:
    """``hosts`` x ``pages`` (a home page and articles). Page n links to the next ones and back, so
    that every page is linked and a crawl from the home pages reaches all. Pages are made at first
    use and kept as bytes."""

    def __init__(
        self,
        seed: int,
        hosts: list[str],
        pages: int = PAGES,
        page_bytes: int = PAGE_BYTES,
        now: float = 0.0,
        latency_s: float = 0.0,
    ) -> None:
        self.language = language(seed)
        self.latency_s = latency_s
        self.seed, self.hosts, self.pages, self.page_bytes, self.now = (
            seed,
            hosts,
            pages,
            page_bytes,
            now,
        )
        self.paths: dict[str, list[str]] = {}
        self.titles: dict[str, list[str]] = {}
        self.escaped: dict[str, list[str]] = {}
        self.routes: dict[str, dict[str, int]] = {}
        self.kept: dict[tuple[str, int], Wire] = {}
        self.filler: dict[str, str] = {}
        # Sentences are drawn from a pool: a page then costs 0.3 ms to make, and two pages still
        # share next to nothing.
        rng = rng_for(seed, "bench-sentences")
        self.sentences = [self.language.sentence(rng) for _ in range(SENTENCES)]
        self.missing = Wire(404, head(404, 9, "text/plain"), b"not found")
        for host in hosts:
            rng = rng_for(seed, "bench", self._number(host))
            titles = [self.language.title(rng) for _ in range(pages)]
            self.titles[host], self.escaped[host] = titles, [escape(t) for t in titles]
            self.paths[host] = ["/"] + [
                f"/tin/{slugify(t, 60)}-{100_000 + i}.html" for i, t in enumerate(titles[1:], 1)
            ]
            self.routes[host] = {path: i for i, path in enumerate(self.paths[host])}

    def _number(self, host: str) -> int:
        return self.hosts.index(host)

    def __call__(self, host: str, target: str, headers: dict[str, str], local: str) -> Wire:
        number = self.routes.get(host, {}).get(target)
        if number is None:
            return self.missing
        found = self.kept.get((host, number))
        if found is None:
            body = self.render(host, number).encode()
            found = self.kept[host, number] = Wire(
                200,
                head(200, len(body), "text/html; charset=utf-8"),
                body,
                delay_s=self.latency(self._number(host), number),
            )
        return found

    def latency(self, host: int, number: int) -> float:
        """Half to one and a half of the mean, so that pages asked for together do not come back
        together: neither those of one host, nor the n-th of all hosts."""
        return self.latency_s * latency_factor(host, number)

    def warm(self) -> None:
        for host in self.hosts:
            for path in self.paths[host]:
                self(host, path, {}, "")

    def content(self, host: str, number: int) -> tuple[str, list[str]]:
        """(author, paragraphs) of a page."""
        rng = rng_for(self.seed, "bench-text", self._number(host), number)
        author = self.language.person(rng)
        return author, [" ".join(rng.choices(self.sentences, k=3)) for _ in range(12)]

    def published(self, number: int) -> float:
        return self.now - 600.0 * (number + 1)

    def links(self, host: str, number: int) -> list[int]:
        """DISTINCT pages that a page links to, each about twice."""
        return [
            (number + step) % self.pages
            for step in (*range(1, DISTINCT - 9), *(DISTINCT + 12 * k for k in range(1, 11)))
        ]

    def _filler(self, host: str) -> str:
        if host not in self.filler:
            rng = rng_for(self.seed, "bench-filler", self._number(host))
            self.filler[host] = "".join(
                f'<div class="widget w{i}" data-id="{rng.getrandbits(48):x}"><span class="ico"></span><b>{rng.randrange(999)}</b></div>'
                for i in range(800)
            )
        return self.filler[host]

    def render(self, host: str, number: int) -> str:
        title, paths, titles = self.titles[host][number], self.paths[host], self.escaped[host]
        anchors = [
            f'<li class="item"><a href="{paths[n]}" title="{t}">{t}</a></li>'
            for n in self.links(host, number)
            for t in (titles[n],)
        ]
        nav = f'<ul class="nav">{"".join(anchors[:20])}</ul>'
        side = f'<aside><ul>{"".join(anchors)}</ul></aside><ul class="more">{"".join(anchors[20:])}</ul>'
        main = f"<h2>{titles[number]}</h2>"
        if number:
            author, paragraphs = self.content(host, number)
            when = self.published(number)
            main = (
                f'<h1 class="title">{escape(title, quote=False)}</h1><time class="published" datetime="{iso(when)}">{visible("plain", when)}</time>'
                f'<span class="author">{author}</span><div class="content">'
                + "".join(f"<p>{escape(p, quote=False)}</p>" for p in paragraphs)
                + "</div>"
            )
        page = (
            f'<!DOCTYPE html><html lang="vi"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<meta property="og:title" content="{escape(title)}"></head><body>{nav}<article>{main}</article>{side}'
        )
        room = max(0, self.page_bytes - len(page.encode()) - 16)
        filler = self._filler(host)
        cut = filler.rfind("</div>", 0, room)
        return page + (filler[: cut + 6] if cut > 0 else "") + "</body></html>"
