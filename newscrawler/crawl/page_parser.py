"""Reads the body of a page: fields and links by a parse process, links joined and judged, lists
that it announces.

What comes out is a result for newscrawler.crawl.decision; what it means is decided there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from newscrawler.crawl.decision import (
    HtmlRead,
    ListRead,
    NoList,
    Redirect,
    Result,
    Unparsed,
    is_section,
)  # fmt: skip
from newscrawler.crawl.page import Page
from newscrawler.crawl.page_context import context_of
from newscrawler.crawl.parse_process import Html, ReadIf, Task, Unreadable
from newscrawler.crawl.services import Services
from newscrawler.crawl.websub import Subscriptions
from newscrawler.discovery.feeds import Feed, header_links
from newscrawler.discovery.link_classes import LinkClass
from newscrawler.discovery.links import FoundLinks, LinkFinder
from newscrawler.discovery.sitemaps import Sitemap, SitemapEntry
from newscrawler.extraction.context import PageContext
from newscrawler.frontier.types import FrontierUnavailable
from newscrawler.items import Kind, Link, Outcome
from newscrawler.web import urls

logger = logging.getLogger(__name__)


class PageParser:
    """:param max_depth: links of pages so far from a seed are not followed"""

    def __init__(self, services: Services, finder: LinkFinder, max_depth: int) -> None:
        self._services = services
        self._finder = finder
        self._max_depth = max_depth

    async def parse(self, page: Page) -> Result:
        """None where the status or an unchanged body says enough."""
        self._finder.use(self._services.sites)
        if page.outcome is Outcome.REDIRECTED:
            return self._redirect(page)
        if page.outcome is not Outcome.DONE or page.is_unchanged:
            return None
        try:
            read = await self._services.reader.read(self._task(page))
        except Unreadable as exc:
            return Unparsed(str(exc))
        if isinstance(read, Feed):
            return await self._feed(page, read)
        if isinstance(read, Sitemap):
            if (page.lease.hint or {}).get("probe") and not page.lease.last_visit_ms:
                await self._services.announced.note_probe(page.site, page.lease, page.now_ms)
            return self._sitemap(page, read)
        return await self._html(page, read)

    def _redirect(self, page: Page) -> Redirect:
        target = urls.join(urls.Base(page.url), page.location) if page.location else None
        if target is None:
            return Redirect()
        lease = page.lease
        found = self._services.sites.identify(
            target, parent=lease.url_id, depth=lease.depth, hint=lease.hint
        )
        return Redirect(target, found)

    def _task(self, page: Page) -> Task:
        services = self._services
        task = Task(
            body=page.body,
            url=page.url,
            kind=page.kind,
            content_type=page.content_type,
            language=page.site.language,
            robots=page.robots,
            headlines=page.is_list and services.link_learning.wants_headlines(page.site),
            may_be_section=services.link_learning.is_doubtful(page.site.id, page.lease.url),
        )
        if not page.is_list:
            known = services.link_learning.class_of(page.site, page.lease.url)
            task.context = self._context(page, known)
            kind = Kind.ARTICLE if _is_asked_for(page) else page.kind
            task.read_if = read_if(kind, known, has_pattern=bool(page.site.article_pattern))
            selectors = services.selectors.active(page.lease.site)
            task.selectors = services.reader.packed(selectors) if selectors else None
        return task

    def _context(self, page: Page, known: LinkClass | None) -> PageContext:
        is_article = page.kind is Kind.ARTICLE
        return context_of(
            page.site,
            fetched=page.fetched,
            hint=page.lease.hint or self._services.link_learning.named(page.lease.url),
            url_is_article=(is_article and not _is_asked_for(page)) or None,
            needs_evidence=not is_article and not _is_asked_for(page),
            others_are_articles=known is LinkClass.ARTICLE,
            rules=self._services.metadata_rules,
        )

    async def _feed(self, page: Page, feed: Feed) -> Result:
        if feed.error and not feed.entries:
            return NoList(f"feed: {feed.error}")
        if self._services.websub is not None and not page.is_pushed:
            await self._note_hub(self._services.websub, page, feed)
        result = ListRead(self._entry_links(page, feed.entries), feed.entries)
        self._services.link_learning.note_list(page, result, ())
        return result

    async def _note_hub(self, subscriptions: Subscriptions, page: Page, feed: Feed) -> None:
        """That the feed names a hub, or none any more. A name of another site is not believed."""
        named = header_links(
            (v.decode("latin-1") for k, v in page.headers if k.lower() == b"link"), page.url
        )
        hub, topic = named.get("hub") or feed.hub, named.get("self") or feed.topic
        owner = self._services.sites.by_host(urls.domain_of(topic) or "")
        if owner is None or owner.id != page.site.id:
            topic = page.lease.url
        try:
            await subscriptions.note(page.site.id, page.lease.url, hub, topic)
        except FrontierUnavailable as exc:
            logger.warning("A hub is noted at the next visit url=%s error=%s", page.lease.url, exc)

    def _sitemap(self, page: Page, sitemap: Sitemap) -> Result:
        if sitemap.error and not (sitemap.entries or sitemap.children):
            return NoList(f"sitemap: {sitemap.error}")
        found = self._entry_links(page, sitemap.entries)
        self._add_children(page, sitemap.children, found)
        result = ListRead(found, sitemap.entries or sitemap.children)
        self._services.link_learning.note_list(page, result, ())
        return result

    def _add_children(
        self, page: Page, children: Sequence[SitemapEntry], found: FoundLinks
    ) -> None:
        lease = page.lease
        if lease.depth >= self._max_depth:  # an index of indexes of indexes has no end
            if children:
                found.refused["depth"] = len(children)
            return
        for child in children:
            link = self._services.sites.identify(
                child.url, kind=Kind.SITEMAP, parent=lease.url_id, depth=lease.depth + 1
            )
            if isinstance(link, Link):
                link.revisit = True
                found.links.append(link)
                found.admitted.append(link)
                found.ids.add(link.url_id)

    def _entry_links(self, page: Page, entries: Sequence[Any]) -> FoundLinks:
        lease = page.lease
        return self._finder.entry_links(
            entries, parent=lease.url_id, depth=lease.depth, now_ms=page.now_ms
        )

    async def _html(self, page: Page, read: Html) -> Result:
        services, lease = self._services, page.lease
        if read.doubtful:
            services.link_learning.note_doubtful(page.site, read.doubtful)
            self._finder.use(services.sites)
        found = self._finder.find(
            read.hrefs,
            read.base_url,
            parent=lease.url_id,
            depth=lease.depth,
            now_ms=page.now_ms,
            max_depth=self._max_depth,
            nofollow=read.nofollow,
        )
        if not page.is_list:
            return await self._other(page, read, found)
        result = ListRead(found, may_keep="noarchive" not in read.robots)
        learning = services.link_learning
        menu = [*read.menu, *(url for url in read.doubtful if learning.is_list(page.site, url))]
        if services.has_frontier and (read.feeds or menu):
            result.announced = await services.announced.of_page(
                services.sites, page.site, lease, read.feeds, menu, page.now_ms
            )
        learning.note_menu(page.site.id, menu)
        base = urls.Base(read.base_url)
        headlines = (urls.join(base, href) for href in read.headlines)
        learning.note_list(page, result, [url for url in headlines if url])
        return result

    async def _other(self, page: Page, read: Html, found: FoundLinks) -> HtmlRead:
        """A page that was not queued as a list. Where it proves to be a section, its feeds are
        asked for, and it is one of its site's menu from now on."""
        services, lease = self._services, page.lease
        learning = services.link_learning
        in_menu = services.has_frontier and learning.is_doubtful(page.site.id, lease.url)
        is_open = (
            page.kind is Kind.PAGE
            and not page.site.article_pattern
            and learning.class_of(page.site, lease.url) is None
        )
        result = HtmlRead(
            found, read.robots, read.extraction, read.form, is_open=is_open, in_menu=in_menu
        )
        learning.note_page(page, result)
        if is_section(result):
            learning.note_menu(page.site.id, [lease.url])
            lists = await services.announced.of_page(
                services.sites, page.site, lease, read.feeds, [lease.url], page.now_ms
            )
            result.announced = [link for link in lists if link.url_id != lease.url_id]
        return result


def _is_asked_for(page: Page) -> bool:
    """A person named the address: it is read as an article whatever it looks like."""
    return bool((page.lease.hint or {}).get("asked"))


def read_if(kind: Kind, known: LinkClass | None, *, has_pattern: bool) -> ReadIf:
    """Where the site has taught that such an address is none of an article, or sites.json has a
    pattern of articles, the page's text is not looked at.

    :param known: what the site taught of such addresses
    """
    if kind is not Kind.PAGE:
        return ReadIf.ALWAYS
    is_open = not has_pattern and known in (None, LinkClass.ARTICLE)
    return ReadIf.TEXT if is_open else ReadIf.CLAIMED
