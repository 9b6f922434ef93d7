"""From the hrefs of a page to links for the frontier: joined, admitted, classified, each one once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from newscrawler.discovery.sites import Refusal, Sites
from newscrawler.items import Link
from newscrawler.web import urls


@dataclass(slots=True)
class FoundLinks:
    """``links``: to be offered to the frontier; ``ids``: url ids of every admitted link of the page,
    known or new (the page's link set); ``refused``: reason -> count; ``known``: dropped here as seen."""

    links: list[Link] = field(default_factory=list)
    ids: set[bytes] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
    known: int = 0
    total: int = 0


class SeenFilter(Protocol):
    """What a worker knows of the frontier (frontier.queue.Frontier). ``link``, ``parent``, ``depth``: what would be
    offered; it may be kept, to be verified later."""

    def seen_local(
        self, url: str, link: Link | None = None, parent: bytes | None = None, depth: int = 0
    ) -> bool: ...


class LinkFinder:
    """Remembers what raw URLs turned out to be, so that the menu of a site is judged once.

    :param seen: knows canonical URLs that the frontier confirmed; asked for links only, never for revisits
    :param size: raw URLs remembered; about 200 bytes each
    :param max_children: links of one page that are offered at most; 0 = no limit
    """

    def __init__(
        self,
        sites: Sites,
        seen: SeenFilter,
        max_age_s: float | None = None,
        size: int = 100_000,
        max_children: int = 0,
    ) -> None:
        self.max_children = max_children
        self.sites = sites
        self.max_age_s = max_age_s
        self.seen = seen
        self.size = size
        self._judged: OrderedDict[str, Link | Refusal | None] = OrderedDict()

    def find(
        self,
        hrefs: Iterable[tuple[str, bool]],
        base_url: str,
        *,
        parent: bytes,
        depth: int,
        now_ms: int,
        max_depth: int,
    ) -> FoundLinks:
        """``hrefs``: (href, is nofollow) in the order of the page; links keep it."""
        found = FoundLinks()
        base = urls.Base(base_url)
        for href, nofollow in hrefs:
            found.total += 1
            url = None if nofollow else urls.join(base, href)
            if url is None:
                reason = "nofollow" if nofollow else "scheme"
                found.refused[reason] = found.refused.get(reason, 0) + 1
                continue
            self._take(found, url, parent, depth, now_ms, max_depth)
        return found

    def _take(self, found: FoundLinks, url: str, parent: bytes, depth: int, now_ms: int, max_depth: int) -> None:
        judged = self._judge(url, now_ms)
        if not isinstance(judged, Link):
            reason = judged.reason if judged is not None else "scheme"
            found.refused[reason] = found.refused.get(reason, 0) + 1
            return
        if judged.url_id in found.ids:
            return
        found.ids.add(judged.url_id)
        if self.seen.seen_local(judged.url, judged if depth < max_depth else None, parent, depth + 1):
            found.known += 1
        elif depth + 1 > max_depth:
            found.refused["depth"] = found.refused.get("depth", 0) + 1
        elif self.max_children and len(found.links) >= self.max_children:
            found.refused["children"] = found.refused.get("children", 0) + 1
        else:
            # the remembered one is a pattern: parent and depth are this page's
            found.links.append(
                Link(
                    url=judged.url,
                    url_id=judged.url_id,
                    domain=judged.domain,
                    kind=judged.kind,
                    depth=depth + 1,
                    parent=parent,
                    band=judged.band,
                    score=judged.score,
                )
            )

    def _judge(self, url: str, now_ms: int) -> Link | Refusal | None:
        known = self._judged.get(url)
        if known is None:
            known = self._judged[url] = self.sites.identify(url, now_ms=now_ms, max_age=self.max_age_s)
            if len(self._judged) > self.size:
                self._judged.popitem(last=False)
        return known

    def entry_links(self, entries: Iterable[Any], *, parent: bytes, depth: int, now_ms: int) -> FoundLinks:
        """Links of a feed or sitemap; each entry has url, title and published, which become the hint."""
        found = FoundLinks()
        for entry in entries:
            found.total += 1
            published = entry.published
            hint = {
                key: value
                for key, value in (
                    ("title", getattr(entry, "title", None)),
                    ("published", published.isoformat() if published else None),
                )
                if value
            }
            changed = published or getattr(entry, "lastmod", None)  # nothing is published after its last change
            if changed is not None and self.max_age_s and now_ms / 1000 - changed.timestamp() > self.max_age_s:
                found.refused["age"] = found.refused.get("age", 0) + 1
                continue
            judged = self.sites.identify(
                entry.url, parent=parent, depth=depth + 1, hint=hint or None, now_ms=now_ms, max_age=self.max_age_s
            )
            if not isinstance(judged, Link):
                found.refused[judged.reason] = found.refused.get(judged.reason, 0) + 1
            elif judged.url_id not in found.ids:
                found.ids.add(judged.url_id)
                if self.seen.seen_local(judged.url, judged):
                    found.known += 1
                else:
                    found.links.append(judged)
        return found
