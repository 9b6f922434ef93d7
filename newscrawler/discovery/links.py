"""From the hrefs of a page to links for the frontier: joined, admitted,
classified, each one once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from newscrawler.discovery.sitefile import Site
from newscrawler.discovery.sites import Refusal, Sites
from newscrawler.items import Kind, Link
from newscrawler.web import urls

#: Where pages stand that teach what others of their shape are: beside sections.
_EXPLORED_BAND = 1
_NO_PAGE = Refusal("scheme")


class Classes(Protocol):
    """What was learned of the links of sites (newscrawler.crawl.link_learning)."""

    version: int

    def version_of(self, site: str) -> int: ...

    def kind_of(self, site: Site, link: Link, *, is_named: bool = False) -> Kind: ...

    def original(self, site: Site, url: str) -> str | None: ...

    def explores(self, site: Site, link: Link) -> bool: ...


@dataclass(slots=True)
class FoundLinks:
    """``links``: to be offered to the frontier; ``admitted``: every link of the page that may be
    crawled, known or new, each once (shared: not to be changed); ``ids``: their url ids (the page's
    link set); ``refused``: reason -> count; ``known``: dropped here as seen."""

    links: list[Link] = field(default_factory=list)
    ids: set[bytes] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
    known: int = 0
    total: int = 0
    admitted: list[Link] = field(default_factory=list)


class SeenFilter(Protocol):
    """What a worker knows of the frontier (frontier.queue.Frontier). ``link``, ``parent``,
    ``depth``: what would be offered; it may be kept, to be verified later."""

    def seen_local(
        self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0
    ) -> bool: ...

    def unseen_local(
        self, links: Sequence[Link], parent: bytes, depth: int, *, verify: bool
    ) -> list[Link]:
        """The same for the links of a page. ``verify`` False: none of them will be offered."""


def _is_below(origin: str, judged: Link | Refusal) -> bool:
    return not isinstance(judged, Link) or judged.domain == origin.partition("://")[2]


class LinkFinder:
    """Remembers what raw URLs turned out to be, so that the menu of a site is judged once: by the
    origin of the page that has them, until its site has taught something else. Links to pages of
    other origins are judged each time, as what their sites teach is not looked at here.

    :param seen: knows canonical URLs that the frontier confirmed; asked for links only,
        never for revisits
    :param size: raw URLs remembered; about 200 bytes each
    :param max_children: links of one page that are offered at most; 0 = no limit
    :param classes: what was learned of a site's links; None: their addresses say what they are
    """

    def __init__(
        self,
        sites: Sites,
        seen: SeenFilter,
        max_age_s: float | None = None,
        size: int = 100_000,
        max_children: int = 0,
        classes: Classes | None = None,
    ) -> None:
        self.classes = classes
        self._learned = classes.version if classes else 0
        self._learned_of_origin: dict[str, int] = {}
        self.max_children = max_children
        self.sites = sites
        self.max_age_s = max_age_s
        self.seen = seen
        self.size = size
        self._known: dict[str, dict[str, Link | Refusal]] = {}
        self._remembered = 0

    def use(self, sites: Sites) -> None:
        """Further sites may have come, whose links were judged as of none; or links of a site may
        be of another class by now."""
        if sites is not self.sites:
            self.sites = sites
            self._known.clear()
            self._remembered = 0
        learned = self.classes.version if self.classes else 0
        if self.classes is not None and learned != self._learned:
            self._learned = learned
            for origin in [
                o for o in self._known if self._version(o) != self._learned_of_origin[o]
            ]:
                self._remembered -= len(self._known.pop(origin))

    def _version(self, origin: str) -> int:
        """Of what was learned of the site that an origin is of."""
        site = self.sites.by_host(origin.partition("://")[2]) if self.classes else None
        return self.classes.version_of(site.id) if self.classes and site is not None else 0

    def find(
        self,
        hrefs: Sequence[str],
        base_url: str,
        *,
        parent: bytes,
        depth: int,
        now_ms: int,
        max_depth: int,
        nofollow: int = 0,
    ) -> FoundLinks:
        """``hrefs`` in the order of the page, which links keep; ``nofollow``: so many more
        that may not be followed."""
        found = FoundLinks(total=len(hrefs) + nofollow)
        base = urls.Base(base_url)
        known = self._known_of(base.origin)
        ids, refused = found.ids, found.refused
        if nofollow:
            refused["nofollow"] = nofollow
        links = found.admitted
        for href in hrefs:
            judged = known.get(href) or self._judge(base, href, now_ms)
            if isinstance(judged, Refusal):
                refused[judged.reason] = refused.get(judged.reason, 0) + 1
            elif judged.url_id not in ids:
                ids.add(judged.url_id)
                links.append(judged)
        self._offer(found, links, parent, depth + 1, max_depth)
        return found

    def _offer(
        self, found: FoundLinks, links: list[Link], parent: bytes, depth: int, max_depth: int
    ) -> None:
        is_deep = depth > max_depth
        unseen = self.seen.unseen_local(links, parent, depth, verify=not is_deep)
        found.known = len(links) - len(unseen)
        most = 0 if is_deep else self.max_children or len(unseen)
        if len(unseen) > most:
            found.refused["depth" if is_deep else "children"] = len(unseen) - most
        # the remembered ones are patterns: parent and depth are this page's
        found.links = [
            Link(
                url=link.url,
                url_id=link.url_id,
                domain=link.domain,
                kind=link.kind,
                depth=depth,
                parent=parent,
                band=link.band,
                score=link.score,
            )
            for link in unseen[:most]
        ]

    def _known_of(self, origin: str) -> dict[str, Link | Refusal]:
        """What hrefs are that begin with one slash, and absolute ones, on pages of an origin."""
        if self._remembered > self.size:
            self._known.clear()
            self._remembered = 0
        known = self._known.get(origin)
        if known is None:
            known = self._known[origin] = {}
            self._learned_of_origin[origin] = self._version(origin)
        return known

    def _judge(self, base: urls.Base, href: str, now_ms: int) -> Link | Refusal:
        url = urls.join(base, href)
        if url is None:
            return _NO_PAGE
        is_rooted = href[:1] == "/" and href[1:2] not in ("/", "\\")
        known, name = self._known_of(base.origin), href if is_rooted else url
        judged = known.get(name)  # "bai.html" is not looked for before it is joined
        if judged is None:
            judged = self.sites.identify(url, now_ms=now_ms, max_age=self.max_age_s)
            if self.classes is not None and isinstance(judged, Link):
                judged = self._learned_of(self.classes, judged, now_ms=now_ms)
            if self.classes is None or _is_below(base.origin, judged):
                known[name] = judged
                self._remembered += 1
        return judged

    def _learned_of(self, classes: Classes, link: Link, **more: Any) -> Link | Refusal:
        """The link as what the site taught that it is."""
        site = self.sites.by_host(link.domain)
        if site is None or link.kind not in (Kind.ARTICLE, Kind.PAGE):
            return link
        hint = more.get("hint") or {}
        original = classes.original(site, link.url)
        if original is not None:
            again = self.sites.identify(original, max_age=self.max_age_s, **more)
            if isinstance(again, Link) and again.kind in (Kind.ARTICLE, Kind.PAGE):
                link = again
        kind = classes.kind_of(site, link, is_named="title" in hint and "published" in hint)
        found: Link | Refusal = link
        if kind is not link.kind:
            found = self.sites.identify(link.url, kind=kind, max_age=self.max_age_s, **more)
        if (
            isinstance(found, Link)
            and found.band > _EXPLORED_BAND
            and classes.explores(site, found)
        ):
            found.band = _EXPLORED_BAND
        return found

    def entry_links(
        self, entries: Iterable[Any], *, parent: bytes, depth: int, now_ms: int
    ) -> FoundLinks:
        """Links of a feed or sitemap; each entry has url, title and published,
        which become the hint."""
        found = FoundLinks()
        for entry in entries:
            found.total += 1
            hint = {}
            if title := getattr(entry, "title", None):
                hint["title"] = title
            if entry.published:
                hint["published"] = entry.published.isoformat()
            if self._is_too_old(entry, now_ms):
                found.refused["age"] = found.refused.get("age", 0) + 1
                continue
            judged = self.sites.identify(
                entry.url,
                parent=parent,
                depth=depth + 1,
                hint=hint or None,
                now_ms=now_ms,
                max_age=self.max_age_s,
            )
            if self.classes is not None and isinstance(judged, Link):
                judged = self._learned_of(
                    self.classes,
                    judged,
                    parent=parent,
                    depth=depth + 1,
                    hint=hint or None,
                    now_ms=now_ms,
                )
            if not isinstance(judged, Link):
                found.refused[judged.reason] = found.refused.get(judged.reason, 0) + 1
            elif judged.url_id not in found.ids:
                found.ids.add(judged.url_id)
                found.admitted.append(judged)
                if self.seen.seen_local(judged.url, judged):
                    found.known += 1
                else:
                    found.links.append(judged)
        return found

    def _is_too_old(self, entry: Any, now_ms: int) -> bool:
        """By its last change, where the list gives nothing else: it was not published later."""
        changed = entry.published or getattr(entry, "lastmod", None)
        if changed is None or not self.max_age_s:
            return False
        return bool(now_ms / 1000 - changed.timestamp() > self.max_age_s)
