"""A backup of everything that a crawl knows, made while it runs, and put back on an empty machine.

First what is in Redis, then the articles: whatever is fetched in between is fetched once more after
a restore and found to be stored. The other way round, a page could be finished in the queue and its
article be missing. Left out is what makes itself again: the index of words, vectors, logs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import apsw
from scrapy.settings import BaseSettings

from newscrawler.crawl import opening, services
from newscrawler.frontier import connect, snapshot
from newscrawler.frontier.operator import Operator, layout_of
from newscrawler.frontier.taken import URL, Entry, Taken
from newscrawler.rawstore import RawStoreUnavailable
from newscrawler.rawstore.raw_store import RemoteFolder
from newscrawler.rawstore.sealing import MARKER
from newscrawler.store import open_store
from newscrawler.store.base import ArticleStore, StoreError, WholeStore, whole
from newscrawler.store.copying import copy
from newscrawler.utils.display import url_shown

FORMAT = 1
MANIFEST, ARTICLES, FILES, RAW = "manifest.json", "articles.db", "files", "warc"
#: What an operator, or a command of his, keeps in DATA_DIR: sites, tokens, the audit log.
_KEPT = ("*.json", "*.jsonl")

Say = Callable[[str], None]


class BackupRefused(ValueError):
    """It cannot be made or put back; one clear line. Nothing was changed."""


@dataclass(slots=True)
class Manifest:
    made: str
    files: dict[str, dict[str, Any]]  # name -> bytes, sha256
    counts: dict[str, int]
    left_out: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        return {
            "format": FORMAT, "made": self.made, "counts": self.counts,
            "left_out": self.left_out, "files": self.files,
        }  # fmt: skip


# ---------------------------------------------------------------- making one


async def make(settings: BaseSettings, target: str, raw: bool, say: Say) -> Manifest:
    """Writes a backup to a folder that is not there yet, or to a URL of an object store.

    :raises BackupRefused: the target is there, or nothing is stored yet
    :raises newscrawler.frontier.queue.FrontierError, StoreError, RawStoreUnavailable, OSError:
    """
    remote = _remote(target)
    if remote is not None and remote.call("exists", remote.path):
        raise BackupRefused(f"{target} is there already; give each backup a name of its own")
    final = None if remote is not None else Path(target).absolute()
    if final is not None and final.exists():
        raise BackupRefused(f"{final} is there already; give each backup a name of its own")
    parent = final.parent if final is not None else Path(tempfile.gettempdir())
    if not parent.is_dir():
        raise BackupRefused(f"there is no folder {parent}")
    with tempfile.TemporaryDirectory(prefix=".newscrawler-backup-", dir=parent) as made:
        folder = Path(made) / "backup"
        folder.mkdir(mode=0o700)
        manifest = await _fill(settings, folder, raw, say)
        if final is not None:
            folder.rename(final)  # whole or not at all
        elif remote is not None:
            _upload(remote, folder, manifest, say)
    return manifest


async def _fill(settings: BaseSettings, folder: Path, raw: bool, say: Say) -> Manifest:
    say("Redis: queue, selector sets, sums of the fleet")
    snapshot.save(opening.redis_url(settings), folder)
    say("articles")
    counts = await _save_articles(settings, folder / ARTICLES)
    data = opening.data_dir(settings)
    (folder / FILES).mkdir()
    for path in sorted(p for pattern in _KEPT for p in data.glob(pattern) if p.is_file()):
        shutil.copy2(path, folder / FILES / path.name)
    for path in sorted(data.glob("*.db")):  # what the queue has moved out of Redis
        if path != _own_file(settings):
            _save_database(path, folder / FILES / path.name)
    left_out = ["index of words and vectors: made again from the articles", "logs"]
    left_out += _save_raw(settings, folder / RAW, raw, say)
    manifest = Manifest(datetime.now(UTC).isoformat(timespec="seconds"), {}, counts, left_out)
    say("checksums")
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            manifest.files[path.relative_to(folder).as_posix()] = _told(path)
    text = json.dumps(manifest.plain(), indent=1, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return manifest


async def _save_articles(settings: BaseSettings, path: Path) -> dict[str, int]:
    own = _own_file(settings)
    if own is not None and not own.is_file():
        raise BackupRefused(f"there are no articles yet: {own} is not there")
    if own is not None:
        _save_database(own, path)
    else:
        source = _walked(opening.open_article_store(settings, must_exist=True))
        target = cast(WholeStore, open_store(str(path), path.parent))
        try:
            await copy(source, target)
        finally:
            await source.close()
            await target.close()
        for beside in path.parent.glob("articles.*"):
            if beside != path:
                shutil.rmtree(beside) if beside.is_dir() else beside.unlink()
    return _counts(path)


def _save_database(path: Path, to: Path) -> None:
    """One moment of a SQLite file that is written meanwhile."""
    from newscrawler.store.sqlite import schema  # numpy: each command and each worker would pay it

    with schema.translated(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(schema.BUSY_MS)
            connection.execute("VACUUM INTO ?", (str(to),))
        finally:
            connection.close()


def _walked(store: ArticleStore) -> WholeStore:
    try:
        return whole(store)
    except StoreError as exc:
        raise BackupRefused(str(exc)) from exc


def _counts(path: Path) -> dict[str, int]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    asked = {
        "articles": "SELECT count(*) FROM article WHERE gone = 0",
        "gone": "SELECT count(*) FROM article WHERE gone = 1",
        "versions": "SELECT count(*) FROM version",
    }
    try:
        return {name: int(str(connection.execute(query).get)) for name, query in asked.items()}
    finally:
        connection.close()


def _save_raw(settings: BaseSettings, folder: Path, raw: bool, say: Say) -> list[str]:
    """Saves the raw pages and returns what is left out of them."""
    uri = str(settings.get("RAW_STORE") or opening.data_dir(settings) / "warc")
    if not raw:
        return [f"raw pages: {url_shown(uri)} (--raw takes those of a folder along)"]
    if "://" in uri:
        raise BackupRefused(
            f"--raw: {url_shown(uri)} is no folder; copy it with the tools of its store"
        )
    say("raw pages")
    folder.mkdir()
    kept = [*Path(uri).rglob("*.warc.gz"), *Path(uri).glob(MARKER)]
    for path in sorted(kept):
        to = folder / path.relative_to(uri)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
    return ["raw pages of files that are being written (*.open)"]


def _upload(remote: RemoteFolder, folder: Path, manifest: Manifest, say: Say) -> None:
    """The manifest last: a backup without one is not whole."""
    for name in [*manifest.files, MANIFEST]:
        say(f"upload of {name}")
        remote.call("put", str(folder / name), f"{remote.path.rstrip('/')}/{name}")


# ---------------------------------------------------------------- looking at one


def read_manifest(folder: Path) -> Manifest:
    """:raises BackupRefused: there is none, it cannot be read, or another program made it"""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise BackupRefused(f"{folder}: a backup of another program (format {told['format']})")
        return Manifest(told["made"], told["files"], told["counts"], told["left_out"])
    except FileNotFoundError as exc:
        raise BackupRefused(f"{folder} is no backup: it has no {MANIFEST}") from exc
    except (OSError, ValueError, KeyError, TypeError) as exc:
        if isinstance(exc, BackupRefused):
            raise
        raise BackupRefused(f"{folder}: its {MANIFEST} cannot be read: {exc}") from exc


def check(folder: Path) -> Manifest:
    """:raises BackupRefused: a file is missing or was changed"""
    manifest = read_manifest(folder)
    for name, told in manifest.files.items():
        path = folder / name
        if folder.resolve() not in path.resolve().parents:
            raise BackupRefused(f"{folder}: its {MANIFEST} names {name}, which is not in it")
        if not path.is_file():
            raise BackupRefused(f"{folder}: {name} is missing")
        if _told(path) != told:
            raise BackupRefused(f"{folder}: {name} was changed or cut off")
    return manifest


def _told(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


# ---------------------------------------------------------------- putting one back


async def restore(settings: BaseSettings, source: str, replace: bool, say: Say) -> Manifest:
    """Puts a backup into the Redis, the article store and the DATA_DIR of the settings.

    :param replace: what is there is deleted first, after the backup was found to be whole
    :raises BackupRefused: it is damaged, or something is there or at work
    """
    with _fetched(source, say) as folder:
        say("checksums")
        manifest = check(folder)
        url = opening.redis_url(settings)
        if services.others_at_work(url, ""):
            raise BackupRefused("workers are running; stop them first (scrapy fleet stop, Ctrl-C)")
        own = _own_file(settings)
        there = [] if snapshot.is_empty(url) else ["the queue in Redis"]
        if own is not None and own.exists():
            there.append(str(own))
        if there and not replace:
            raise BackupRefused(
                f"{' and '.join(there)} would be overwritten: use --replace, or another DATA_DIR,"
                " REDIS_URL and ARTICLE_STORE"
            )
        blocks = await _blocks(url)
        if there:
            snapshot.clear(url)
        say("articles")
        await _restore_articles(settings, folder / ARTICLES, own)
        _restore_files(folder, opening.data_dir(settings))
        # The queue last: workers that are begun too early find nothing to do and no harm.
        say("Redis")
        snapshot.load(
            sorted(folder.glob("redis-*.rdb")), url, settings.get("REDIS_SERVER_BIN") or "",
            lambda keys: say(f"Redis: {keys:,} keys") if keys % 10_000 == 0 else None,
        )  # fmt: skip
        await _block_again(url, blocks, say)
    return manifest


async def _blocks(url: str) -> dict[str, Entry]:
    client: Any = connect(url, single=False)
    try:
        return await Taken(client, 1).all()
    finally:
        await client.aclose()


async def _block_again(url: str, blocks: dict[str, Entry], say: Say) -> None:
    """What was taken down since the backup stays blocked, whatever the backup knows of it."""
    if not blocks:
        return
    client: Any = connect(url, single=False)
    try:
        taken = Taken(client, await layout_of(client))
        await taken.put(blocks)
        ids = [bytes.fromhex(name[2:]) for name in blocks if name.startswith(URL)]
        domains = [s.domain async for s in Operator(client, taken.layout).states()]
        await taken.block(ids, domains)
    finally:
        await client.aclose()
    say("what was taken down stays blocked; run `scrapy takedown` again for what came back")


async def _restore_articles(settings: BaseSettings, path: Path, own: Path | None) -> None:
    if own is None:
        with tempfile.TemporaryDirectory(prefix="newscrawler-restore-") as made:
            copied = shutil.copyfile(path, Path(made) / ARTICLES)
            source = cast(WholeStore, open_store(str(copied), Path(made), must_exist=True))
            target = _walked(opening.open_article_store(settings))
            try:
                done = await copy(source, target)
            finally:
                await source.close()
                await target.close()
        if not done.is_whole:
            raise StoreError(f"not all articles could be put back: {done.counts}")
        return
    own.parent.mkdir(parents=True, exist_ok=True)
    for beside in own.parent.glob(f"{own.stem}.*"):  # index, vectors, WAL of what was there
        shutil.rmtree(beside) if beside.is_dir() else beside.unlink()
    for tail in ("-wal", "-shm"):
        own.with_name(own.name + tail).unlink(missing_ok=True)
    partial = own.with_name(own.name + ".part")
    shutil.copyfile(path, partial)
    partial.rename(own)


def _restore_files(folder: Path, data: Path) -> None:
    data.mkdir(parents=True, exist_ok=True)
    for path in sorted((folder / FILES).glob("*")):
        shutil.copy2(path, data / path.name)
    raw = folder / RAW
    if raw.is_dir():
        shutil.copytree(raw, data / "warc", dirs_exist_ok=True)


@contextmanager
def _fetched(source: str, say: Say) -> Iterator[Path]:
    remote = _remote(source)
    if remote is None:
        yield Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="newscrawler-restore-") as made:
        say(f"download of {source}")
        base = remote.path.rstrip("/")
        folder = Path(made)
        for name in remote.call("find", base):
            to = folder / name[len(base) :].lstrip("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            remote.call("get", name, str(to))
        yield folder


# ---------------------------------------------------------------- where things are


def _remote(place: str) -> RemoteFolder | None:
    return RemoteFolder(place) if "://" in place else None


def _own_file(settings: BaseSettings) -> Path | None:
    """The file of the local store; None: articles are elsewhere."""
    uri = str(settings.get("ARTICLE_STORE") or opening.data_dir(settings) / ARTICLES)
    return None if "://" in uri else Path(uri).absolute()


__all__ = ["BackupRefused", "Manifest", "RawStoreUnavailable", "check", "make", "restore"]
