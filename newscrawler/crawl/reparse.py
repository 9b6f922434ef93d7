"""Raw pages once more through extraction with the selector sets of today, into the
article store. No fetch."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from newscrawler.crawl.ingest import Ingest
from newscrawler.crawl.page_context import context_of
from newscrawler.discovery.sites import Site, Sites
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import Extraction, PageContext, article_values, extract
from newscrawler.extraction.metadata_rules import MetadataRule
from newscrawler.items import LIST_KINDS, VERSIONED, Article, Kind, Link
from newscrawler.rawstore import RawNotFound, RawPage, RawStore
from newscrawler.selectorsets.store import SelectorStore
from newscrawler.store import diff
from newscrawler.store.base import StoreRefused

log = logging.getLogger(__name__)

_BATCH = 50
#: Changed articles that a report names; the rest is in its counts.
MOST_NAMED = 1000


@dataclass
class ReparseReport:
    """Counts of pages. ``fields``: stored articles whose field changed, by field;
    ``refused`` by the store."""

    pages: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    not_article: int = 0
    lost: int = (
        0  # stored articles that today's extraction would not call one: they stay as they are
    )
    offsite: int = 0  # pages whose site is no longer configured
    refused: int = 0
    older: int = 0  # pages of an article that was meanwhile read from a newer one, which stays
    missing: int = 0  # pages that the raw store has no more
    fields: Counter[str] = field(default_factory=Counter)
    changes: dict[str, list[str]] = field(
        default_factory=dict
    )  # URL -> changed fields, of the first MOST_NAMED


@dataclass(frozen=True)
class Choice:
    """Which pages: of one site, fetched at or after a time, before another, at most so many."""

    site: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None


def newest(raw: RawStore, sites: Sites, choice: Choice) -> list[str]:
    """The last stored page of each URL: an older one would undo what a newer one said."""
    found: dict[str, tuple[datetime, str]] = {}
    for ref, page in raw.scan(choice.since):
        if choice.until is not None and page.fetched >= choice.until:
            continue
        known = found.get(page.url)
        if known is None or known[0] < page.fetched:
            found[page.url] = (page.fetched, ref)
    refs = []
    for url, (_, ref) in sorted(found.items(), key=lambda item: item[1]):
        if choice.site is not None:
            link = sites.identify(url, kind=Kind.ARTICLE)
            site = sites.by_host(link.domain) if isinstance(link, Link) else None
            if site is None or site.id != choice.site:
                continue
        refs.append(ref)
        if choice.limit is not None and len(refs) >= choice.limit:
            break
    return refs


class Reparser:
    """Joins raw store, extraction and the way into the article store. With ``dry_run``
    nothing is written."""

    def __init__(
        self,
        raw: RawStore,
        ingest: Ingest,
        selectors: SelectorStore,
        sites: Sites,
        rules: tuple[MetadataRule, ...] = (),
        *,
        dry_run: bool = False,
    ) -> None:
        self._raw, self._ingest, self._selectors, self._sites = raw, ingest, selectors, sites
        self._rules = rules
        self._dry_run = dry_run
        self._batch: list[Article] = []
        self.report = ReparseReport()

    async def run(self, choice: Choice) -> ReparseReport:
        """:raises StoreUnavailable, RawStoreUnavailable: what was put before that stays,
        and a new run goes on"""
        # a crawl may be running beside it
        return await self.run_refs(await asyncio.to_thread(newest, self._raw, self._sites, choice))

    async def run_refs(self, refs: Iterable[str]) -> ReparseReport:
        """These pages. Raises as :meth:`run`."""
        for ref in refs:
            self.report.pages += 1
            try:
                page = await asyncio.to_thread(self._raw.read, ref)
            except RawNotFound:
                self.report.missing += 1
                continue
            await self._page(page, ref)
            if len(self._batch) >= _BATCH:
                await self._flush()
        await self._flush()
        return self.report

    async def _page(self, page: RawPage, ref: str) -> None:
        link = self._sites.identify(page.url, kind=Kind.ARTICLE)
        site = self._sites.by_host(link.domain) if isinstance(link, Link) else None
        if not isinstance(link, Link) or site is None:
            self.report.offsite += 1
            return
        store = self._ingest.store
        old = await store.find_url(page.url) or await store.get(link.url_id.hex())
        if _is_newer(old, page.fetched):
            self.report.older += 1
            return
        if old is None and self._is_list(page.url):
            self.report.not_article += 1
            return
        context = context_of(
            site,
            fetched=page.fetched,
            hint=_hint(old),
            url_is_article=True if old is not None else None,
            rules=self._rules,
        )
        found = await asyncio.to_thread(self._read, page, site, context)
        article = self._article(found, page, ref, old, old.id if old else link.url_id.hex(), site)
        if article is None:
            self.report.not_article += 1
            self.report.lost += old is not None
            return
        self._count(old, article)
        if not self._dry_run:
            self._batch.append(article)

    def _is_list(self, url: str) -> bool:
        """A share of the lists is kept (RAW_LIST_SAMPLE); a crawl stores none as an article."""
        link = self._sites.identify(url)
        return isinstance(link, Link) and link.kind in LIST_KINDS

    def _read(self, page: RawPage, site: Site, context: PageContext) -> Extraction:
        doc = Document(page.body, page.url, page.content_type, language=site.language)
        return extract(doc, context, self._selectors.active(site.id))

    def _article(
        self,
        found: Extraction,
        page: RawPage,
        ref: str,
        old: Article | None,
        article_id: str,
        site: Site,
    ) -> Article | None:
        if not found.is_article:
            return None
        article = Article(
            id=article_id,
            url=old.url if old else page.url,
            site=site.id,
            discovered=old.discovered if old else page.fetched,
            fetched=page.fetched,
            raw_ref=ref,
            **article_values(found),
        )
        return article if self._ingest.clean(article) else None

    def _count(self, old: Article | None, article: Article) -> None:
        if old is None:
            self.report.new += 1
            return
        changed = diff.changed_fields(old, article)
        if any(name in VERSIONED for name in changed):  # else the store has nothing to write
            self.report.fields.update(changed)
            self.report.changed += 1
            if len(self.report.changes) < MOST_NAMED:
                self.report.changes[article.url] = changed
        else:
            self.report.unchanged += 1

    async def _flush(self) -> None:
        batch, self._batch = await self._not_older(self._batch), []
        if not batch:
            return
        try:
            await self._ingest.put_all(batch)
        except StoreRefused as exc:
            self.report.refused += len(exc.ids)
            log.error("Articles were refused by the store ids=%s error=%s", ",".join(exc.ids), exc)

    async def _not_older(self, batch: list[Article]) -> list[Article]:
        """Without those that a crawl has stored from a newer page since they were read."""
        kept = []
        for article in batch:
            now = await self._ingest.store.get(article.id)
            if _is_newer(now, article.fetched):
                self.report.older += 1
            else:
                kept.append(article)
        return kept


def _is_newer(stored: Article | None, fetched: datetime | None) -> bool:
    """Whether an article was read from a newer page than one of this time."""
    if stored is None or stored.fetched is None or fetched is None:
        return False
    return stored.fetched > fetched


def _hint(old: Article | None) -> dict[str, Any] | None:
    """What a feed once said is not in the page: it is taken from the article that it went into."""
    if old is None:
        return None
    hint: dict[str, Any] = {}
    for name in ("title", "published", "authors"):
        value = getattr(old, name)
        if value and old.origins.get(name, "").startswith("feed"):
            hint[name] = value.isoformat() if isinstance(value, datetime) else value
    return hint or None
