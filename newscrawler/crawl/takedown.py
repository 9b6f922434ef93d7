"""Takes an article or a whole domain down: out of every place that this crawl has, for good.

The order makes it safe to be killed anywhere. What is to go is written down first (a file beside
the data, readable by its owner alone), then blocked for the whole fleet, then taken out of Redis,
the raw pages and the article store, and at last looked for. The next run with the same target goes
on with what was written down. Workers that run meanwhile ask before and after each batch
(:class:`newscrawler.crawl.ingest.Block`), so that nothing of it is stored behind our back.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from redis.exceptions import RedisError

from newscrawler.crawl import bounded_crawls, link_graph, opening, site_choice
from newscrawler.crawl import takedown_logs as logs
from newscrawler.crawl import takedown_look as looking
from newscrawler.crawl.ingest import fields_of
from newscrawler.crawl.keeping import Held, alone_in_fleet
from newscrawler.crawl.saved_queries import SavedQueries
from newscrawler.discovery.sites import Sites
from newscrawler.frontier import connect
from newscrawler.frontier.errors import translated
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.operator import Operator, layout_of
from newscrawler.frontier.queue import Frontier
from newscrawler.frontier.taken import DOMAIN, URL, Entry, Taken, is_within
from newscrawler.items import Article, Link
from newscrawler.rawstore import RawStore, erasing
from newscrawler.rawstore.record import RawPage
from newscrawler.store import codec
from newscrawler.store.base import WholeStore
from newscrawler.store.events import STREAM
from newscrawler.utils import files
from newscrawler.web.urls import canonicalize, domain_of, is_http, url_id

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

Say = Callable[[str], None]
#: Of a domain: articles whose texts are looked for at the end. Their addresses are for all.
_LOOKED_FOR = 200
#: Families of keys whose entries are only remembered answers and references: they are taken out.
_REMOVABLE = (
    b"{selectors}:answer:", b"{selectors}:s:", b"{selectors}:wp:", b"{selectors}:direct",
    b"{links}:", STREAM.encode(),
)  # fmt: skip
#: Seconds that a server is waited for which writes its file anew.
_REWRITE_S = 300.0
#: Seconds between two words of progress.
_SAY_S = 2.0
#: Times that it is looked through, when a worker has written something meanwhile.
_ROUNDS = 3


#: No letter of a domain, but what :func:`canonicalize` takes for a part of another kind.
_NO_DOMAIN = re.compile(r"[\s@*/?#\\]")
#: Where workers write their logs, below DATA_DIR.
LOGS = "logs"


class TakeDownRefused(ValueError):
    """It cannot be taken down, or lifted, as asked; one clear line."""


@dataclass(slots=True)
class Plan:
    """What is to go. Kept in a file until all of it is gone, as it has the texts that are looked
    for."""

    target: str
    is_domain: bool
    reason: str
    who: str
    at: str
    with_copies: bool = False
    articles: dict[str, str] = field(default_factory=dict)  # id -> URL
    urls: list[str] = field(default_factory=list)  # other addresses of them
    hosts: list[str] = field(default_factory=list)  # of their sites
    fields: list[str] = field(default_factory=list)  # that are blocked
    texts: list[str] = field(default_factory=list)  # that must be nowhere
    versions: int = 0
    copies: dict[str, str] = field(default_factory=dict)  # URL -> title of copies that stay
    quoted: list[str] = field(default_factory=list)  # raw pages of other articles that name it
    erasing: list[str] = field(default_factory=list)  # references of raw records
    removed: dict[str, int] = field(default_factory=dict)

    @property
    def ids(self) -> set[str]:
        return {name[2:] for name in self.fields if name.startswith(URL)}


@dataclass(slots=True)
class TakeDownReport:
    plan: Plan
    left: list[str] = field(default_factory=list)  # where something still stands
    notes: list[str] = field(default_factory=list)
    looked_at: dict[str, int] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "target": plan.target, "reason": plan.reason, "who": plan.who, "at": plan.at,
            "removed": plan.removed, "articles": plan.articles, "copies": plan.copies,
            "quoted": plan.quoted,
            "looked_at": self.looked_at, "left": self.left, "notes": self.notes,
        }  # fmt: skip


def target_of(text: str) -> tuple[str, bool]:
    """In the form in which it is kept, and whether it is a domain.

    :raises TakeDownRefused: it is neither a URL nor a domain, or one below which many have theirs
    """
    text = text.strip()
    is_domain = not is_http(text)
    canonical = _domain(text) if is_domain else canonicalize(text)
    if not canonical:
        raise TakeDownRefused(
            f"{text!r} is neither a URL (http://...) nor a domain (example.vn: with all below it)"
        )
    if is_domain and _is_public_suffix(canonical):
        raise TakeDownRefused(
            f"{canonical} is a public suffix: it would block every domain below it; name them"
        )
    return canonical, is_domain


def _domain(text: str) -> str:
    """As the queue writes it (ASCII, lower case), or nothing would be within it; "" if it is none,
    as a mail address or a pattern, whose host is not all that was meant."""
    name = text.rstrip("/").strip(".")
    if _NO_DOMAIN.search(name):
        return ""
    canonical = domain_of(canonicalize(f"http://{name}") or "")
    return canonical if "." in canonical else ""


def _is_public_suffix(domain: str) -> bool:
    """By the list that comes with the package; nothing is fetched."""
    import tldextract  # only here: it costs a command 0.1 s of CPU

    suffixes = tldextract.TLDExtract(
        cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True
    )
    found = suffixes(domain.strip("."))
    return bool(found.suffix) and not found.domain


@asynccontextmanager
async def opened(settings: BaseSettings, say: Say) -> AsyncIterator[TakeDown]:
    """The parts that it works on, closed at the end.

    :raises TakeDownRefused: the article store is of another project and cannot purge
    """
    client: Any = connect(opening.redis_url(settings), single=False)
    store = opening.open_article_store(settings, must_exist=True)
    raw = opening.open_raw_store(settings)
    try:
        if not hasattr(store, "purge"):
            raise TakeDownRefused("this article store cannot purge: only those of this project can")
        layout = await layout_of(client)
        yield TakeDown(settings, client, layout, cast(WholeStore, store), raw, say)
    finally:
        raw.close()
        await store.close()
        await client.aclose()


class TakeDown:
    """Made by :func:`opened`."""

    def __init__(
        self,
        settings: BaseSettings,
        client: Any,
        layout: Layout,
        store: WholeStore,
        raw: RawStore,
        say: Say,
    ) -> None:
        self.settings, self.client, self.store, self.raw = settings, client, store, raw
        self.say = say
        self.data = opening.data_dir(settings)
        self.sites: Sites = site_choice.all_sites(settings)
        self.operator = Operator(client, layout)
        self.taken = Taken(client, layout)
        config = opening.frontier_config(settings, loopback_only=False)
        self._config = replace(config, shards=layout.shards)
        self.held = Held(None, [], "")  # of carry_out()

    # ------------------------------------------------------------------ what is to go
    async def plan(self, target: str, reason: str, who: str, *, with_copies: bool) -> Plan:
        """Plans what would go; an interrupted run of the same target is gone on with.

        :raises TakeDownRefused: the target is neither a URL nor a domain
        """
        canonical, is_domain = target_of(target)
        begun = self._begun(canonical)
        if begun is not None:
            begun.with_copies |= with_copies
        at = datetime.now(UTC).isoformat(timespec="seconds")
        plan = begun or Plan(canonical, is_domain, reason, who, at, with_copies)
        if is_domain:
            await self._plan_domain(plan)
        else:
            await self._plan_url(plan)
        return plan

    async def _plan_domain(self, plan: Plan) -> None:
        _add(plan.hosts, [plan.target])
        _add(plan.fields, [DOMAIN + plan.target])
        found = 0
        async for kept in self.store.walk():
            article = kept.article
            if is_within(domain_of(article.url), [plan.target]):
                found += 1
                self._add_article(plan, article, with_texts=found <= _LOOKED_FOR)
                if article.version > 1:
                    plan.versions += article.version - 1

    async def _plan_url(self, plan: Plan) -> None:
        article = await self.store.find_url(plan.target)
        link = self.sites.identify(plan.target)
        if article is None and isinstance(link, Link):
            article = await self.store.get(link.url_id.hex())
        ids = [url_id(plan.target).hex()]
        ids += [link.url_id.hex()] if isinstance(link, Link) else []
        _add(plan.fields, [URL + one for one in ids])
        _add(plan.urls, [plan.target])
        _add(plan.hosts, self._hosts(plan.target))
        if article is None:
            return
        for one in [article, *await self._copies(plan, article)]:
            versions = await self.store.versions(one.id)
            plan.versions += len(versions) - 1
            for version in versions or [one]:
                self._add_article(plan, version, with_texts=True)

    async def _copies(self, plan: Plan, article: Article) -> list[Article]:
        """Other articles with the same text: those of the site that go along. The others are
        named."""
        if not article.cluster:
            return []
        hosts = set(self._hosts(article.url))
        taken = []
        for other in await self.store.cluster(article.cluster):
            if other.id == article.id or other.id in plan.articles:
                continue
            if plan.with_copies and domain_of(other.url) in hosts:
                taken.append(other)
                plan.copies.pop(other.url, None)
            else:
                plan.copies[other.url] = other.site
        return taken

    def _add_article(self, plan: Plan, article: Article, *, with_texts: bool) -> None:
        plan.articles[article.id] = article.url
        if not plan.is_domain:
            _add(plan.fields, fields_of(article))
            _add(plan.urls, [u for u in (article.url, article.canonical_url) if u])
        if with_texts:
            pieces = looking.pieces_of(article)
            _add(plan.texts, pieces[:2] if plan.is_domain else pieces)
            if len(article.title) >= looking.SHORTEST_TITLE:
                _add(plan.texts, [article.title])

    def _hosts(self, url: str) -> list[str]:
        site = self.sites.by_host(domain_of(url))
        return sorted({domain_of(url), *(site.hosts if site else ())})

    # ------------------------------------------------------------------ the file of what is to go
    def _path(self, target: str) -> Path:
        name = hashlib.blake2b(target.encode(), digest_size=8).hexdigest()
        return self.data / f"takedown-{name}.pending"

    def _begun(self, target: str) -> Plan | None:
        try:
            return Plan(**json.loads(self._path(target).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as exc:
            raise TakeDownRefused(f"{self._path(target)} cannot be read: {exc}") from exc

    def _write_down(self, plan: Plan) -> None:
        data = json.dumps(asdict(plan), ensure_ascii=False).encode("utf-8", "replace")
        files.write_whole(self._path(plan.target), data, mode=0o600)

    def _wipe(self, plan: Plan) -> None:
        path = self._path(plan.target)
        if path.exists():
            with path.open("r+b") as file:
                file.write(b"\0" * path.stat().st_size)
                file.flush()
                os.fsync(file.fileno())
            path.unlink()

    # ------------------------------------------------------------------ the work
    async def carry_out(self, plan: Plan) -> TakeDownReport:
        """:raises FrontierError, StoreError, RawStoreUnavailable, OSError: what was done is kept,
        the next run goes on; RawStoreUnavailable also while raw pages are pruned or sealed anew"""
        with alone_in_fleet(self.settings, self.say) as self.held:
            return await self._carry_out(plan)

    async def _carry_out(self, plan: Plan) -> TakeDownReport:
        self._write_down(plan)
        report = TakeDownReport(plan)
        self.say("blocked for the whole fleet")
        await self._block(plan)
        for _ in range(_ROUNDS):
            self.say("Redis")
            await self._out_of_redis(plan)
            self.say("raw pages")
            await self._out_of_raw(plan)
            self.say("articles")
            self.held.still()
            purged = await self.store.purge(sorted(plan.ids | set(plan.articles)))
            self._count(plan, "articles", purged)
            self.say("files")
            report.left = await self._scrub(plan, report)
            self.say("looking for what is left")
            is_new = await self._look(plan, report)
            if not is_new:
                break
        await self._tell(plan)
        entry = self._entry(plan)
        await self.taken.put(dict.fromkeys(plan.fields, entry))
        if not report.left:
            self._wipe(plan)
        return report

    def _entry(self, plan: Plan) -> Entry:
        return Entry(plan.target, plan.at, plan.who, plan.reason, plan.removed)

    def _count(self, plan: Plan, what: str, number: int) -> None:
        if number:
            plan.removed[what] = plan.removed.get(what, 0) + number
            self._write_down(plan)

    async def _block(self, plan: Plan) -> None:
        await self.taken.put(dict.fromkeys(plan.fields, self._entry(plan)))
        if plan.is_domain:
            known = [s.domain async for s in self.operator.states()]
            for domain in known:
                if is_within(domain, [plan.target]):
                    await self.operator.pause(domain)
                    removed, _ = await bounded_crawls.purge(self.operator, domain)
                    self._count(plan, "queued", removed)
                    await self.operator.drop(await self.operator.quarantined(domain, 1_000_000))
            await self._put_policies(plan.target)
        ids = [bytes.fromhex(one) for one in plan.ids | set(plan.articles)]
        if not plan.is_domain:
            self._count(plan, "queued", await self.taken.block(ids, plan.hosts))

    async def _out_of_redis(self, plan: Plan) -> None:
        ids = plan.ids | set(plan.articles)
        pages = {bytes.fromhex(one) for one in ids}
        if plan.is_domain:
            pages |= await self._linked_pages(plan.target)
        self._count(plan, "pages of the link graph", await link_graph.forget(self.client, pages))
        with translated():
            self._count(plan, "alerts", await SavedQueries(self.client).forget(ids))
            gone = 0
            async for one, fields in looking.stream_entries(self.client, STREAM):
                if fields.get(b"id", b"").decode() in ids and fields.get(b"title"):
                    gone += await self.client.xdel(STREAM, one)
        self._count(plan, "events", gone)
        needles = looking.Needles([*plan.texts, *plan.urls, *plan.articles.values()])
        await self._remove_remembered(plan, await looking.search_redis(self.client, needles))

    async def _remove_remembered(
        self, plan: Plan, places: list[looking.RedisPlace]
    ) -> list[looking.RedisPlace]:
        """Remembered answers and references go; the other places."""
        left = []
        for place in places:
            if place.key.startswith(_REMOVABLE):
                await looking.remove(self.client, place)
            else:
                left.append(place)
        self._count(plan, "remembered answers and samples", len(places) - len(left))
        return left

    async def _linked_pages(self, domain: str) -> set[bytes]:
        found = set()
        for site in await link_graph.sites_of(self.client):
            for page_id, page in (await link_graph.pages_of(self.client, site)).items():
                if is_within(domain_of(page.url), [domain]):
                    found.add(page_id)
        return found

    # ------------------------------------------------------------------ raw pages
    async def _out_of_raw(self, plan: Plan) -> int:
        """How many records went."""
        done = erasing.erase_named(self.raw, plan.erasing)  # what a run that was killed left
        judge = _Judge(plan, self.sites)

        def about_to(refs: list[str]) -> None:
            self.held.still()
            plan.erasing = refs
            self._write_down(plan)

        said = time.monotonic()

        def say(text: str) -> None:
            nonlocal said
            if time.monotonic() - said >= _SAY_S:
                said = time.monotonic()
                self.say(text)

        def work() -> int:
            return len(erasing.erase(self.raw, judge, about_to, say))

        done += await asyncio.to_thread(work)
        plan.erasing = []
        doubtful = judge.doubtful
        stored = await self.store.states(sorted({one for one, _, _ in doubtful.values()}))
        lists = [ref for ref, (one, _, _) in doubtful.items() if one not in stored]
        plan.quoted = sorted({url for one, url, _ in doubtful.values() if one in stored})
        if lists:
            about_to(lists)
            done += erasing.erase_named(self.raw, lists)
            plan.erasing = []
        others = [
            (one, url) for one, url, has_all in doubtful.values() if has_all and one not in stored
        ]
        if others:  # other addresses of the text: the next visit would store it again
            names = [URL + one for one, _ in others]
            _add(plan.fields, names)
            _add(plan.urls, [url for _, url in others])
            await self.taken.put(dict.fromkeys(names, self._entry(plan)))
            await self.taken.block([bytes.fromhex(one) for one, _ in others], plan.hosts)
        self._count(plan, "raw pages", done)
        return done

    # ------------------------------------------------------------------ files
    async def _scrub(self, plan: Plan, report: TakeDownReport) -> list[str]:
        left = await self.store.scrub()
        report.notes = []
        if note := await self._rewrite_redis():
            report.notes.append(note)
        needles = looking.Needles(plan.texts)
        for path in await self._held(needles):
            gone = await asyncio.to_thread(looking.mend_export, path, needles)
            if gone is None:
                left.append(f"{path}: was written to meanwhile and stays; run it again")
            elif gone:
                self._count(plan, f"rows of {path.name}", gone)
        await self._mask_logs(plan)
        return left

    async def _mask_logs(self, plan: Plan) -> list[Path]:
        """Files that still have an address: a worker has just written it."""
        folder, addresses = self.data / LOGS, _addresses(plan)
        for _ in range(_ROUNDS):
            masked = await asyncio.to_thread(logs.mask, folder, addresses)
            self._count(plan, "addresses in logs", masked)
            left = await asyncio.to_thread(logs.left, folder, addresses)
            if not left:
                break
        return left

    async def _rewrite_redis(self) -> str:
        """Its file of commands has what was in the keys; "" or why it may still have."""
        try:
            await self.client.bgrewriteaof()
            for _ in range(round(_REWRITE_S / 0.1)):
                info = await self.client.info("persistence")
                nodes = [info] if "loading" in info else list(info.values())
                busy = any(
                    node.get("aof_rewrite_in_progress") or node.get("aof_rewrite_scheduled")
                    for node in nodes
                )
                if not busy:
                    break
                await asyncio.sleep(0.1)
        except (RedisError, AttributeError) as exc:
            return f"Redis did not write its append-only file anew (BGREWRITEAOF): {exc}"
        if self.settings.get("REDIS_URL"):
            return (
                "Redis was asked to write its append-only file anew; snapshots (RDB) and replicas"
                " are its owner's"
            )
        return ""

    async def _held(self, needles: looking.Needles) -> dict[Path, set[str]]:
        """Files of ours that have one of the texts."""
        pending = list(self.data.glob("takedown-*.p*"))
        uri = str(self.settings.get("ARTICLE_STORE") or "")
        elsewhere: list[Path] = []
        if uri and "://" not in uri and self.data not in Path(uri).resolve().parents:
            beside = Path(uri).resolve().parent.glob(f"{Path(uri).stem}.*")
            elsewhere = [path for path in beside if path.is_file()]
        return await looking.search_files(self.data, needles.texts, pending, elsewhere)

    # ------------------------------------------------------------------ looking
    async def _look(self, plan: Plan, report: TakeDownReport) -> bool:
        """Whether another round is worth it: a worker has written something meanwhile."""
        needles = looking.Needles(plan.texts)
        files = await self._held(needles)
        keys = await looking.search_redis(self.client, needles)
        if files or keys:
            needles = looking.Needles(await self._of_these_alone(plan))
            files = await self._held(needles)
            if any(path.suffix == ".db" or ".db-" in path.name for path in files):
                report.left += await self.store.scrub(rewrite=True)
                files = await self._held(needles)
            keys = await looking.search_redis(self.client, needles)
        left = await self._remove_remembered(plan, keys)
        ids = sorted(plan.ids | set(plan.articles))
        stored = await self.store.states(ids)
        again = await self._out_of_raw(plan)
        report.left += [f"{path}: still has some of the text" for path in files]
        report.left += [f"{path}: has an address of it" for path in await self._mask_logs(plan)]
        report.left += [f"Redis key {place.key.decode(errors='replace')}" for place in left]
        report.left += [f"article {one}: was stored again" for one in stored]
        report.looked_at = {
            "texts": len(plan.texts), "files": _number_of_files(self.data), "addresses": len(ids),
        }  # fmt: skip
        return bool(stored or again or len(left) < len(keys))

    async def _of_these_alone(self, plan: Plan) -> list[str]:
        """Of the texts those that no other stored article has: copies elsewhere, and sentences that
        a site repeats, are not what is looked for."""
        needles = looking.Needles(plan.texts)
        others: set[str] = set()
        async for kept in self.store.walk():
            article = kept.article
            others |= needles.in_bytes(codec.plain(article).encode("utf-8", "replace"))
        return [text for text in plan.texts if text not in others]

    async def _tell(self, plan: Plan) -> None:
        """Followers of the stream, so that they let go of their copies."""
        at = datetime.now(UTC).isoformat()
        with translated():
            for one, url in plan.articles.items():
                fields = {"event": f"{one}.takedown", "type": "article.takedown", "at": at}
                await self.client.xadd(
                    STREAM, fields | {"id": one, "url": url}, maxlen=100_000, approximate=True
                )

    # ------------------------------------------------------------------ lifting
    async def lift(self, target: str) -> list[str]:
        """Ends the block of a take-down; the fields that were lifted. Nothing comes back by it.

        :raises TakeDownRefused: nothing of that name was taken down
        """
        known = {target, target.lower(), canonicalize(target) or "", _domain(target)} - {""}
        entries = await self.taken.all()
        names = [name for name, entry in entries.items() if entry.target in known]
        if not names:
            raise TakeDownRefused(f"{target} was not taken down; scrapy takedown --list shows all")
        await self.taken.lift(names)
        for name in names:
            if name.startswith(DOMAIN):
                await self._open_domain(name[2:])
        return names

    async def _open_domain(self, domain: str) -> None:
        async for state in self.operator.states():
            if is_within(state.domain, [domain]):
                await self.operator.resume(state.domain)
        await self._put_policies(domain)

    async def _put_policies(self, domain: str) -> None:
        """Of the hosts of the sites file: switched off while the domain is taken down."""
        policies = [
            policy
            for policy in site_choice.domain_policies(self.sites, self.settings)
            if is_within(policy.domain, [domain])
        ]
        if policies:
            config = replace(
                self._config, loopback_only=site_choice.all_loopback(self.sites, self.settings)
            )
            await Frontier(self.client, config, "takedown").put_domains(policies)


class _Judge:
    """Which raw pages go at once, and which are doubtful: others of the site with some of the text,
    which are lists, feeds or another address of it unless they are articles that are stored."""

    def __init__(self, plan: Plan, sites: Sites) -> None:
        self._plan, self._sites = plan, sites
        self._ids, self._urls = plan.ids | set(plan.articles), set(plan.urls)
        paths = [url.split("/", 3)[3] for url in plan.urls if url.count("/") > 2]
        self._paths = {path for path in paths if len(path) >= looking.SHORTEST_TITLE}
        self._needles = looking.Needles([*plan.texts, *self._paths])
        #: Reference -> id, URL, whether it has the text as a whole.
        self.doubtful: dict[str, tuple[str, str, bool]] = {}

    def __call__(self, ref: str, page: RawPage) -> bool:
        url = canonicalize(page.url) or page.url
        domain = domain_of(url)
        if self._plan.is_domain:
            return is_within(domain, [self._plan.target])
        one = url_id(url).hex()
        link = self._sites.identify(url)
        if isinstance(link, Link):
            one = link.url_id.hex()
        if one in self._ids or url in self._urls or url_id(url).hex() in self._ids:
            return True
        if domain in self._plan.hosts and (found := self._needles.in_bytes(page.body)):
            pieces = len(found - self._paths)
            is_html = "html" in (page.content_type or "")
            whole = is_html and pieces > max(2, len(self._plan.texts) // 2)
            self.doubtful[ref] = (one, url, whole)
        return False


def _addresses(plan: Plan) -> logs.Addresses:
    if plan.is_domain:
        return logs.Addresses([], plan.target)
    return logs.Addresses([*plan.urls, *plan.articles.values()])


def _add(known: list[str], more: Iterable[str]) -> None:
    known += [one for one in dict.fromkeys(more) if one and one not in known]


def _number_of_files(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))


def listed(entries: dict[str, Entry]) -> list[dict[str, Any]]:
    """A row for each take-down, newest first."""
    blocked = Counter(entry.target for entry in entries.values())
    rows = {entry.target: entry for entry in entries.values()}
    return [
        {
            "target": target, "at": entry.at, "who": entry.who, "reason": entry.reason,
            "blocked": blocked[target], "removed": entry.what,
        }
        for target, entry in sorted(rows.items(), key=lambda row: row[1].at, reverse=True)
    ]  # fmt: skip
