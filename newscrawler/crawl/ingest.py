"""The one way of an article into the store: clean, deduplicate, store, announce, count.

The crawl's pipelines, ``scrapy reparse``, the repair after a drift and the articles that a model
read all use :class:`Ingest`. Whoever stores an article by another way leaves the followers of the
event stream without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar, cast

import xxhash
from itemadapter import ItemAdapter

from newscrawler import metrics
from newscrawler.crawl.announce import Announcer
from newscrawler.crawl.waits import ARTICLES, RAW_PAGES, Waits
from newscrawler.extraction import text as textrules
from newscrawler.frontier.errors import FrontierUnavailable
from newscrawler.frontier.taken import URL, Taken, text_field
from newscrawler.items import FIELDS, Article, Outcome, Visit
from newscrawler.rawstore import RawStore, RawStoreUnavailable
from newscrawler.rawstore.erasing import erase_named
from newscrawler.rawstore.errors import RawStoreGone
from newscrawler.store import canonical_duplicates
from newscrawler.store.base import (
    ArticleStore,
    PutResult,
    StoreGone,
    StoreRefused,
    StoreUnavailable,
    WholeStore,
)
from newscrawler.store.events import Kind
from newscrawler.web.urls import canonicalize, domain_of, url_id

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Fields whose presence is counted, for the coverage figures of monitors and dashboards.
COUNTED_FIELDS = tuple(f.name for f in FIELDS if f.counted)
_LISTS = tuple(f.name for f in FIELDS if f.type == "texts")
STORED_AS = {
    "new": metrics.ARTICLES_NEW,
    "updated": metrics.ARTICLES_UPDATED,
    "unchanged": metrics.ARTICLES_UNCHANGED,
    "duplicate": metrics.ARTICLES_DUPLICATE,
}
#: Redirects that say that the old address is not coming back.
_PERMANENT = frozenset({301, 308})
#: Why an article is refused that was taken down.
TAKEN_DOWN = "takedown"
#: ``(name of the stat, how many)``
Count = Callable[[str, int], Any]

_Waiting = tuple[Article, "asyncio.Future[PutResult]"]


@lru_cache(maxsize=64)
def _field_stat(field: str) -> str:
    return metrics.labelled(metrics.ARTICLE_FIELD, field)


@lru_cache(maxsize=4096)
def _origin_stat(field: str, origin: str) -> str:
    return metrics.labelled(metrics.ARTICLE_ORIGIN, f"{field}/{origin.partition(':')[0]}")


def _nothing(name: str, count: int) -> None:
    """For an ingest whose caller reads the results themselves."""


def clean(article: Article, count: Count = _nothing) -> bool:
    """Last checks on an article: what no store should have to see is corrected or
    taken out, and counted.

    False: nothing is left of its title or its text, so it is none.
    """
    article.title = textrules.one_line(article.title)
    if not textrules.is_clean(article.content):
        article.content = textrules.paragraphs(article.content)
    for name in _LISTS:
        setattr(article, name, _each_once(getattr(article, name)))
    if not article.title or not article.content:
        return False
    now = article.fetched or datetime.now(UTC)
    if article.published and article.published > now + timedelta(days=1):
        # a wrong date is worse than none: it would lead every list sorted by date
        article.published = None
        article.origins.pop("published", None)
        count(metrics.ARTICLE_DATE_DROPPED, 1)
    return True


def _each_once(texts: list[str]) -> list[str]:
    if not texts:
        return texts
    return list(dict.fromkeys(line for text in texts if (line := textrules.one_line(text))))


class Recent:
    """Addresses and texts of the articles that this worker stored last, to know a canonical
    duplicate at once.

    It only spares the store a question: the store knows all articles of the fleet, and its rule is
    the same (store.canonical_duplicates), also for texts that are alike and not equal.
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._by_address: OrderedDict[str, dict[str, tuple[str, int]]] = OrderedDict()

    def note(self, article: Article) -> None:
        known = (article.site, _text_digest(article))
        for address in _addresses(article):
            self._by_address.setdefault(address, {})[article.id] = known
        while len(self._by_address) > self._size:
            self._by_address.popitem(last=False)

    def duplicate_of(self, article: Article) -> str | None:
        """Id of the stored article that has the same text, where one of the two names the
        other as canonical."""
        digest = None
        for address in _addresses(article):
            for known_id, (site, known) in self._by_address.get(address, {}).items():
                if known_id == article.id or site != article.site:
                    continue
                digest = digest or _text_digest(article)
                if known == digest:
                    return known_id
        return None


def _addresses(article: Article) -> list[str]:
    if article.canonical_url in (None, article.url):
        return [article.url]
    other = canonical_duplicates.other_address(article)
    return [article.url, other] if other else [article.url]


def _text_digest(article: Article) -> int:
    return xxhash.xxh3_64_intdigest(article.content.encode("utf-8", "surrogatepass"))


class Patience:
    """Waits for a store that is away, and says so; without a crawl to wait for there is none."""

    def __init__(self, waits: Waits, is_over: Callable[[], bool]) -> None:
        self._waits = waits
        self._is_over = is_over

    async def put(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._waits.until_it_works(
            ARTICLES, work, StoreUnavailable, StoreGone, self._is_over
        )

    async def keep(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._waits.until_it_works(
            RAW_PAGES, work, RawStoreUnavailable, RawStoreGone, self._is_over
        )


class TakenDown(StoreRefused):
    """The article, its site or its text was taken down: it is stored nowhere."""


class Block:
    """What was taken down (``scrapy takedown``), asked before and after each batch: what is in
    flight when a take-down begins is dropped, or taken out again.

    Raises StoreUnavailable while it cannot be asked: nothing is stored unasked.
    """

    def __init__(self, taken: Taken) -> None:
        self._taken = taken

    async def which(self, articles: Sequence[Article]) -> set[str]:
        """:raises StoreUnavailable: Redis is away, so nothing may be stored"""
        asked: list[tuple[str, str]] = []
        owners: list[str] = []
        try:
            if not await self._taken.has_any():
                return set()
            for article in articles:
                domain = domain_of(article.url)
                for name in fields_of(article):
                    asked.append((name, domain))
                    owners.append(article.id)
            return {owners[place] for place in await self._taken.which(asked)}
        except FrontierUnavailable as exc:
            raise StoreUnavailable(f"what was taken down cannot be looked up: {exc}") from exc


def fields_of(article: Article) -> list[str]:
    """Under which names an article may have been taken down: its id, its addresses, its text."""
    addresses = {canonicalize(url) or url for url in (article.url, article.canonical_url) if url}
    ids = {article.id, *(url_id(address).hex() for address in addresses)}
    names = [URL + one for one in sorted(ids)]
    if article.content:
        names.append(text_field(article.site, f"{_text_digest(article):016x}"))
    return names


class Ingest:
    """Group commit: an article is handed on only when the batch that holds it is durable.

    A batch is closed at ``rows`` articles or ``wait_s`` after its first one. First the raw pages
    are flushed, then the articles are put: no article ever points to a page that is not there. Then
    they are counted, all in one step, and announced.

    :param raw: where pages are kept; None: the caller keeps them itself
    :param announcer: tells others of what changed; None: nobody is told by this process
    :param count: counts of what was stored go there
    :param patience: how a store that is away is waited for; None: it is an error at once
    :param block: what may not be stored; None: nothing was taken down
    """

    def __init__(
        self,
        store: ArticleStore,
        raw: RawStore | None = None,
        announcer: Announcer | None = None,
        count: Count = _nothing,
        *,
        patience: Patience | None = None,
        block: Block | None = None,
        rows: int = 200,
        wait_s: float = 0.4,
    ) -> None:
        self.store = store
        self._raw = raw
        self._announcer = announcer
        self._counted = count
        self._patience = patience
        self._block = block
        self._rows = rows
        self._wait_s = wait_s
        self._batch: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._commits: set[asyncio.Task[None]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._recent = Recent()

    # ------------------------------------------------------------------ one article
    def clean(self, article: Article) -> bool:
        """See :func:`clean`; what was taken out is counted."""
        return clean(article, self._counted)

    def duplicate_of(self, article: Article) -> str | None:
        """Id of the stored article that this one repeats under another address, as far as this
        worker knows. Only for an article that is not stored under its own id yet."""
        found = self._recent.duplicate_of(article)
        if found is not None:
            self._counted(metrics.ARTICLES_DUPLICATE, 1)
        return found

    async def put(self, article: Article) -> PutResult:
        """Returns when the batch that holds the article is durable; its ``version`` is set.

        :raises StoreUnavailable, RawStoreUnavailable: nothing of the batch is taken
        :raises StoreRefused: the store does not accept this article
        :raises TakenDown: it may not be stored any more; its raw page is taken out
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[PutResult] = loop.create_future()
        self._batch.append((article, future))
        if len(self._batch) >= self._rows:
            self._close_batch()
        elif self._timer is None:
            self._timer = loop.call_later(self._wait_s, self._time_is_up)
        return await future

    async def put_all(self, articles: Sequence[Article]) -> list[PutResult]:
        """A batch of the caller's own, stored at once. Raises as :meth:`put`; what is not
        refused is stored."""
        by_id, refused = await self._write(articles)
        await self._announce(articles, by_id)
        if refused:
            raise StoreRefused(list(refused), next(iter(refused.values())), list(by_id.values()))
        return [by_id[article.id] for article in articles]

    # ------------------------------------------------------------------ pages
    async def keep(self, visit: Visit) -> None:
        """Writes the page to the raw store if it is to be kept. Its body is not needed afterwards.

        :raises RawStoreUnavailable: the disk is full, the bucket away
        """
        raw, body = self._raw, visit.body
        if raw is not None and visit.keep_raw and body:
            fetched = visit.fetched or datetime.now(UTC)

            async def write() -> str:
                return raw.write(
                    visit.url, body, visit.response_headers, visit.status, fetched, visit.digest
                )

            visit.raw_ref = await (self._patience.keep(write) if self._patience else write())
            self._counted(metrics.RAW_RECORDS, 1)
            self._counted(metrics.RAW_BYTES, int(visit.raw_ref.rpartition(":")[2]))
        visit.body = None

    async def note_gone(self, visit: Visit) -> None:
        """An article that the site no longer has is told once, and nothing of what
        never was an article."""
        if visit.outcome is not Outcome.GONE or not visit.lease.digest:
            return
        await self._tell_gone(visit.lease.url_id.hex(), visit.url)

    async def note_moved(self, visit: Visit) -> None:
        """An article whose address leads to another of its site for ever, where the same text is
        stored: it is told as gone, as it has one address again. By the text: a redirect to the home
        page, or to what the site calls its successor, says nothing of the article. As long as the
        other one is not stored, the redirect is looked at again at the article's next visits."""
        is_moved = visit.outcome is Outcome.REDIRECTED and visit.status in _PERMANENT
        if not is_moved or not visit.lease.digest or not visit.links:
            return
        old = await self.store.get(visit.lease.url_id.hex())
        new = await self.store.get(visit.links[0].url_id.hex())
        if old is None or old.gone or new is None or new.gone or new.site != old.site:
            return
        if not canonical_duplicates.are_alike(old.content, new.content):
            return
        visit.next_visit_ms = None
        await self._tell_gone(old.id, old.url)
        logger.info("Article has another address url=%s stored_as=%s", old.url, new.url)

    async def _tell_gone(self, article_id: str, url: str) -> None:
        if self._announcer is not None:
            await self._announcer.begin()
        if await self.store.mark_gone([article_id]) and self._announcer is not None:
            await self._announcer.gone(article_id, url)

    # ------------------------------------------------------------------ batches
    async def drain(self) -> None:
        """Commits what waits."""
        self._close_batch()
        if self._commits:
            await asyncio.wait(self._commits)

    def _time_is_up(self) -> None:
        self._timer = None
        # else the batch that is being written closes this one when it ends
        if not self._one_at_a_time.locked():
            self._close_batch()

    def _close_batch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        task = asyncio.ensure_future(self._commit(batch))
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    async def _commit(self, batch: list[_Waiting]) -> None:
        articles = [article for article, _ in batch]
        try:
            by_id, refused = await self._write(articles)
        except Exception as exc:
            if not isinstance(exc, (StoreUnavailable, RawStoreUnavailable)):
                logger.exception("Store failed on a batch articles=%d", len(batch))
            for _, future in batch:
                if not future.done():
                    future.set_exception(exc)
            return
        for article, future in batch:
            if future.done():
                continue
            if article.id in by_id:
                future.set_result(by_id[article.id])
            else:
                why = refused.get(article.id, "no answer for it")
                error = TakenDown if why == TAKEN_DOWN else StoreRefused
                future.set_exception(error([article.id], why))
        await self._announce(articles, by_id)

    async def _write(
        self, articles: Sequence[Article]
    ) -> tuple[dict[str, PutResult], dict[str, str]]:
        """Results by id, and the reasons of those that the store refused."""
        refused: dict[str, str] = {}
        taken: set[str] = set()
        async with self._one_at_a_time:
            try:
                if self._raw is not None:
                    await asyncio.to_thread(self._raw.flush)  # waits for the disk
                taken = await self._taken_down(articles)
                results = await self._put([a for a in articles if a.id not in taken])
                if more := await self._taken_down(articles, besides=taken):
                    await self._purge(sorted(more))
                    results = [r for r in results if r.id not in more]
                refused = dict.fromkeys(taken | more, TAKEN_DOWN)
            except StoreRefused as exc:
                refused = dict.fromkeys(exc.ids, exc.reason) | dict.fromkeys(taken, TAKEN_DOWN)
                results = exc.results
            finally:
                if self._timer is None:  # the next batch has waited its time meanwhile
                    self._close_batch()
        by_id = {result.id: result for result in results}
        self._count(articles, by_id)
        return by_id, refused

    async def _taken_down(
        self, articles: Sequence[Article], besides: set[str] | frozenset[str] = frozenset()
    ) -> set[str]:
        """Ids of those that may not be stored; their pages are taken out of the raw store."""
        block = self._block
        if block is None or not articles:
            return set()

        async def ask() -> set[str]:
            return await block.which(articles)

        found = await (ask() if self._patience is None else self._patience.put(ask))
        found -= besides
        refs = [a.raw_ref for a in articles if a.id in found and a.raw_ref]
        if self._raw is not None and refs:
            await asyncio.to_thread(erase_named, self._raw, refs)
        return found

    async def _purge(self, ids: Sequence[str]) -> None:
        """Removes articles that were stored while their take-down began."""
        store = cast(WholeStore, self.store)
        await store.purge(ids)
        await store.scrub()

    async def _put(self, articles: Sequence[Article]) -> list[PutResult]:
        if not articles:
            return []

        async def put() -> list[PutResult]:
            if self._announcer is not None:
                await self._announcer.begin()
            return await self.store.put(articles)

        return await (put() if self._patience is None else self._patience.put(put))

    def _count(self, articles: Sequence[Article], by_id: dict[str, PutResult]) -> None:
        """All that is counted of a batch, in one step: who looks at the
        counters sees whole batches."""
        counts: Counter[str] = Counter()
        for article in articles:
            result = by_id.get(article.id)
            if result is None:
                continue
            counts[STORED_AS[result.status]] += 1
            if result.status == "duplicate":
                continue
            article.version = result.version
            self._recent.note(article)
            fields = ItemAdapter(article)
            counts.update([_field_stat(name) for name in COUNTED_FIELDS if fields.get(name)])
            counts.update([_origin_stat(name, o) for name, o in article.origins.items()])
        for name, number in counts.items():
            self._counted(name, number)

    async def _announce(self, articles: Sequence[Article], by_id: dict[str, PutResult]) -> None:
        """After the commit: the articles are safe, whatever becomes of the events."""
        if self._announcer is None:
            return
        changed: list[tuple[Article, Kind]] = []
        for article in articles:
            result = by_id.get(article.id)
            if result is not None and (result.status == "new" or result.status == "updated"):
                changed.append((article, result.status))
        if changed:
            await self._announcer.stored(changed)
