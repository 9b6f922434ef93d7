"""How long things are kept: older versions, finished records, raw pages. ``scrapy store prune``.

In this order, so that the page of a version that went is not referred to any more. Every step may
be cut short anywhere: what was done stays done, and the next run goes on. A crawl may run
meanwhile; raw pages of the last day always stay, as their articles may still be on their way.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newscrawler.crawl import opening
from newscrawler.crawl.keeping import Held, alone_in_fleet
from newscrawler.fleet import identity
from newscrawler.frontier import connect
from newscrawler.frontier.errors import translated
from newscrawler.frontier.records import finished_age
from newscrawler.rawstore import RawStore, RawStoreUnavailable, compact
from newscrawler.rawstore.raw_store import RemoteRawStore
from newscrawler.rawstore.record import RawPage, RecordError
from newscrawler.store.base import WholeStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

Say = Callable[[str], None]
#: Raw pages of this long stay whatever the settings say.
_YOUNG = timedelta(days=1)
_SAY_S = 2.0
#: Keys whose values name raw pages: samples of selector sets, pages that are watched or waited for.
_SAMPLES = ("{selectors}:s:*", "{selectors}:wp:*", "{selectors}:direct")


@dataclass(frozen=True, slots=True)
class RetentionPeriods:
    """Days; 0 = for ever."""

    raw: int = 0
    raw_unreferenced: int = 0
    versions: int = 0
    finished: int = 0

    @property
    def any(self) -> bool:
        return any((self.raw, self.raw_unreferenced, self.versions, self.finished))

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> RetentionPeriods:
        """:raises ValueError: one is negative, or what is forgotten would be fetched again"""
        names = {
            "raw": "RAW_KEEP_DAYS",
            "raw_unreferenced": "RAW_UNREFERENCED_KEEP_DAYS",
            "versions": "VERSION_KEEP_DAYS",
            "finished": "FINISHED_KEEP_DAYS",
        }
        values = {}
        for name, setting in names.items():
            try:
                values[name] = int(settings.get(setting))
            except (TypeError, ValueError):
                values[name] = -1
            if values[name] < 0:
                raise ValueError(
                    f"{setting}={settings.get(setting)}: days are needed, 0 = for ever"
                )
        age = settings.getint("ARTICLE_MAX_AGE_DAYS")
        if values["finished"] and not 0 < age < values["finished"]:
            raise ValueError(
                f"FINISHED_KEEP_DAYS={values['finished']} must be more than ARTICLE_MAX_AGE_DAYS"
                f" ({age or 'no limit'}): what is forgotten and linked again would be fetched again"
            )
        return cls(**values)


@dataclass(slots=True)
class Pruned:
    versions: int = 0
    finished: int = 0
    raw_pages: int = 0
    raw_looked_at: int = 0
    raw_bytes: int = 0
    raw_current: int = 0  # over the limit, and kept for an article as it is now
    raw_damaged: int = 0  # files that stay as they are


@dataclass(slots=True)
class _References:
    current: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)


async def prune(
    settings: BaseSettings,
    store: WholeStore,
    limits: RetentionPeriods,
    say: Say,
    *,
    dry_run: bool,
    current_too: bool,
    now: datetime | None = None,
) -> Pruned:
    """:raises StoreError, RawStoreUnavailable, FrontierError, OSError: what was done stays done"""
    now = now or datetime.now(UTC)
    done = Pruned()
    with alone_in_fleet(settings, say) as held:
        if limits.versions:
            say("older versions")
            before = now - timedelta(days=limits.versions)
            done.versions = await store.prune_versions(before, dry_run=dry_run)
        if limits.finished:
            say("finished records")
            done.finished = await _prune_finished(settings, limits, now, dry_run)
        if limits.raw or limits.raw_unreferenced:
            say("references to raw pages")
            references = await _references(settings, store)
            raw = opening.open_raw_store(settings)
            try:
                keep = _Keep(limits, references, now, done, current_too)
                say("raw pages")
                await asyncio.to_thread(_prune_raw, raw, keep, done, say, dry_run, held)
            finally:
                raw.close()
    return done


async def _prune_finished(
    settings: BaseSettings, limits: RetentionPeriods, now: datetime, dry_run: bool
) -> int:
    finished = opening.open_finished_store(settings)
    if finished is None:
        return 0
    before_s = (now - timedelta(days=limits.finished)).timestamp()
    try:
        return await finished.prune(lambda data: finished_age(data) < before_s, dry_run=dry_run)
    finally:
        await finished.close()


async def _references(settings: BaseSettings, store: WholeStore) -> _References:
    found = _References()
    async for kept in store.walk():
        article = kept.article
        if article.raw_ref:
            found.current.add(article.raw_ref)
        if article.version > 1:
            versions = await store.versions(article.id)
            found.others |= {version.raw_ref for version in versions if version.raw_ref}
    client: Any = connect(opening.redis_url(settings), single=False)
    try:
        with translated():
            for pattern in _SAMPLES:
                async for key in client.scan_iter(match=pattern, count=1000):
                    async for _, value in client.hscan_iter(key, count=500):
                        found.others |= _refs_in(value)
    finally:
        await client.aclose()
    found.others -= found.current
    return found


def _refs_in(value: bytes) -> set[str]:
    try:
        told = json.loads(value)
    except ValueError:
        return set()
    ref = told.get("ref") if isinstance(told, dict) else None
    return {ref} if isinstance(ref, str) and ref else set()


class _Keep:
    """Whether a raw page stays."""

    def __init__(
        self,
        limits: RetentionPeriods,
        references: _References,
        now: datetime,
        done: Pruned,
        current_too: bool,
    ) -> None:
        self._references, self._done, self._current_too = references, done, current_too
        self._young = now - _YOUNG
        self._before = now - timedelta(days=limits.raw) if limits.raw else None
        unreferenced = limits.raw_unreferenced or limits.raw
        self._unreferenced = now - timedelta(days=max(1, unreferenced))

    def __call__(self, ref: str, page: RawPage) -> bool:
        self._done.raw_looked_at += 1
        if page.fetched >= self._young:
            return True
        is_old = self._before is not None and page.fetched < self._before
        if ref in self._references.current:
            if is_old and not self._current_too:
                self._done.raw_current += 1
            return not (is_old and self._current_too)
        if ref in self._references.others:
            return not is_old
        return not is_old and page.fetched >= self._unreferenced


def _prune_raw(
    raw: RawStore, keep: _Keep, done: Pruned, say: Say, dry_run: bool, held: Held
) -> None:
    said = time.monotonic()
    for number, path in enumerate(_complete(raw), 1):
        held.still()
        try:
            made = _compacted(raw, path, keep, dry_run)
        except RecordError as exc:
            done.raw_damaged += 1
            say(_damaged(path, exc))
            continue
        if made is not None:
            done.raw_pages += made.dropped
            done.raw_bytes += made.bytes_before - made.bytes_after
        if time.monotonic() - said >= _SAY_S:
            said = time.monotonic()
            say(f"{number:,} files of raw pages, {done.raw_pages:,} pages go")


def _compacted(raw: RawStore, path: Path, keep: _Keep, dry_run: bool) -> compact.Compacted | None:
    made = compact.compact(path, keep, raw.keys, dry_run=dry_run)
    if made is not None and not dry_run:
        _put_back(raw, path.name, made.path)
    return made


def _damaged(path: Path, exc: RecordError) -> str:
    return f"{path.name} is damaged and stays as it is: {exc}"


def _complete(raw: RawStore) -> Iterator[Path]:
    """Every complete file, in a folder or, as a copy, in an object store."""
    if not isinstance(raw, RemoteRawStore):
        compact.drop_parts(raw.folder)
        for path in raw.local_files():
            if not path.name.endswith(".open"):
                yield path
        return
    for name in raw.remote.names():
        with tempfile.TemporaryDirectory(prefix="newscrawler-raw-") as folder:
            copy = Path(folder) / name
            raw.remote.download(name, copy)
            yield copy


def _put_back(raw: RawStore, name: str, made: Path | None) -> None:
    """In the place of the file of that name; ``made`` None: nothing of it is left."""
    if not isinstance(raw, RemoteRawStore):
        return
    if made is not None:
        raw.remote.upload(made)  # the old one is read until it goes
    elif (shadow := compact.compact_of(name)) != name and raw.remote.exists(shadow):
        raw.remote.remove(shadow)  # of a run that was killed: it would be read in its place
    if made is None or made.name != name:
        raw.remote.remove(name)


def rekey(settings: BaseSettings, say: Say) -> tuple[int, int, int]:
    """Seals every page of complete files with the first key; files that were written anew, all,
    and those that stay as they are because they are damaged. Cut short, it goes on where it
    stopped.

    :raises RawStoreUnavailable: there is no key, or a page is sealed with one that is not here
    """
    with alone_in_fleet(settings, say) as held:
        raw = opening.open_raw_store(settings, identity.worker_id("rekey"))
        try:
            if not raw.keys:
                raise RawStoreUnavailable("there is no key: set RAW_KEY or RAW_KEY_FILE")
            changed = number = damaged = 0
            said = time.monotonic()
            for number, path in enumerate(_complete(raw), 1):
                held.still()
                try:
                    made = compact.rekey(path, raw.keys)
                except RecordError as exc:
                    damaged += 1
                    say(_damaged(path, exc))
                    continue
                if made is not None:
                    _put_back(raw, path.name, made)
                    changed += 1
                if time.monotonic() - said >= _SAY_S:
                    said = time.monotonic()
                    say(f"{number:,} files of raw pages, {changed:,} written anew")
            return changed, number, damaged
        finally:
            raw.close()
