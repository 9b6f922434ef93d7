"""Live selector sets: versions in Redis, read from a local copy, with the shipped files beneath.

A worker never waits for Redis on a page: ``active()`` reads a dictionary that ``refresh()`` keeps up to
date every few seconds. What Redis does not have comes from the shipped files, so that a worker of an
egg on an empty Redis extracts by sets from its first page.
"""

from __future__ import annotations

import importlib.resources
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorstore import keys, schema
from newscrawler.selectorstore.versions import StaleFence, UnknownSet, Versions

__all__ = ["SelectorStore", "SelectorsUnavailable", "StaleFence", "UnknownSet"]

SAMPLE_PAGES = 12
#: Shadow pages before a set on probation may become active, and the least Wilson bound of their agreement.
SHADOW_PAGES = 30
SHADOW_BOUND = 0.85


class SelectorsUnavailable(ConnectionError):
    """Redis does not answer."""


@dataclass
class Loaded:
    """What ``load_folder`` did: domains by what happened, errors as "file: field: reason"."""

    new: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass
class Known:
    """One domain as the commands and the API show it."""

    domain: str
    state: str
    active: str | None
    probation: str | None
    pinned: bool
    made_by: str
    versions: int
    shadow: str  # "agreed/seen" of the set on probation
    samples: int
    reason: str


def default_folder(setting: str) -> Path | Traversable:
    """SELECTORS_DIR, else ./selectors, else the copy that an egg carries."""
    if setting:
        return Path(setting)
    here = Path("selectors")
    if here.is_dir():
        return here
    return importlib.resources.files("newscrawler") / "_shipped" / "selectors"


def wilson_lower(agreed: int, seen: int) -> float:
    """One-sided 95 % lower bound of a share (Wilson 1927): 30 of 30 -> 0.917, 29 of 30 -> 0.864."""
    if seen == 0:
        return 0.0
    z = 1.645
    p = agreed / seen
    centre = p + z * z / (2 * seen)
    spread = z * math.sqrt(p * (1 - p) / seen + z * z / (4 * seen * seen))
    return (centre - spread) / (1 + z * z / seen)


class SelectorStore(Versions):
    """``client`` is a redis.asyncio client, or None: then the shipped files are all there is."""

    def __init__(
        self, client: Any | None, folder: Path | Traversable, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.client = client
        self.folder = folder
        self._clock = clock
        self._shipped: dict[str, dict[str, Any]] = {}
        self.shipped_errors: list[str] = []
        for _, doc in schema.read_folder(folder):
            if isinstance(doc, schema.SetError):
                self.shipped_errors.append(str(doc))
            else:
                self._shipped[doc["domain"]] = doc
        self._active: dict[str, SelectorSet | None] = {}
        self._probation: dict[str, SelectorSet | None] = {}
        self._quiet: dict[str, str] = {}  # domain -> disabled | await_admin: no generation
        self._want: dict[str, int] = {}  # domain -> samples that its generation asked for
        self._read_up_to = 0.0
        self._reported: dict[str, set[str]] = {}

    async def ping(self) -> None:
        """:raises SelectorsUnavailable:"""
        if self.client is not None:
            try:
                await self.client.ping()
            except RedisError as exc:
                raise SelectorsUnavailable(f"Redis does not answer: {exc}") from exc

    # ------------------------------------------------------------ what a worker asks on each page
    def active(self, domain: str) -> SelectorSet | None:
        if domain not in self._active:
            doc = self._shipped.get(domain)
            live = doc is not None and doc["state"] == "active"
            self._active[domain] = schema.parse(doc, domain) if live else None
        return self._active[domain]

    def probation(self, domain: str) -> SelectorSet | None:
        """The set whose output is compared with what was stored, without being used."""
        if domain not in self._probation:
            doc = self._shipped.get(domain)
            shadow = doc is not None and doc["state"] == "probation"
            self._probation[domain] = schema.parse(doc, domain) if shadow else None
        return self._probation[domain]

    def is_missing(self, domain: str) -> bool:
        """No set in any state that an operator did not rule out: pages of it are wanted as samples."""
        return self.active(domain) is None and self.probation(domain) is None and domain not in self._quiet

    async def refresh(self) -> int:
        """Reads what changed since the last call; how many domains that were."""
        if self.client is None:
            return 0
        changed = await self.client.zrangebyscore(keys.CHANGED, f"({self._read_up_to}", "+inf", withscores=True)
        for raw, number in changed:
            domain = _text(raw)
            await self._read_domain(domain)
            self._read_up_to = max(self._read_up_to, float(number))
        return len(changed)

    async def _read_domain(self, domain: str) -> None:
        row = await self._row(domain)
        self._quiet.pop(domain, None)
        self._want[domain] = int(row.get("want") or SAMPLE_PAGES)
        if row.get("disabled") == "1" or row.get("state") == "await_admin":
            self._quiet[domain] = row.get("state", "disabled")
        if row.get("disabled") == "1":
            self._active[domain] = self._probation[domain] = None
            return
        for name, cache in (("active", self._active), ("probation", self._probation)):
            version = row.get(name)
            doc = await self._doc(domain, version) if version else None
            try:
                cache[domain] = schema.parse(doc, domain) if doc else None
            except schema.SetError:  # written by a newer release: this worker goes on without it
                cache[domain] = None

    # ------------------------------------------------------------ versions
    async def load_folder(self) -> Loaded:
        """Shipped files into Redis. Idempotent: a file that was loaded before changes nothing."""
        done = Loaded(errors=list(self.shipped_errors))
        for domain, doc in self._shipped.items():
            digest = schema.content_digest(doc) + doc["state"]
            row = await self._row(domain)
            if row.get("shipped") == digest:
                done.unchanged.append(domain)
                continue
            version = await self.add_version(domain, doc, who="file")
            await self._require().hset(keys.domain(domain), "shipped", digest)
            # What a person chose, or what grew on this fleet and works, is not replaced by a file.
            own = row.get("active") and row.get("active_by") not in (None, "file")
            if row.get("pinned") == "1" or row.get("disabled") == "1" or own:
                await self._event(domain, "file", "loaded, not used", version, "the fleet has a set of its own")
            else:
                await self._set_state(domain, version, doc["state"], who="file", reason="shipped file")
            done.new.append(domain)
        return done

    async def adopt(self, domain: str) -> None:
        """Gives a shipped set that is used without being in Redis a version there: the one to go back to."""
        doc = self._shipped.get(domain)
        if doc is None or doc["state"] != "active" or (await self._row(domain)).get("next"):
            return
        version = await self.add_version(domain, doc, who="file")
        fields = {"active": str(version), "active_by": "file", "shipped": schema.content_digest(doc) + doc["state"]}
        await self._require().hset(keys.domain(domain), mapping=fields)
        await self._require().hset(keys.watch(domain), "v", str(version))
        await self._event(domain, "file", "active", version, "the shipped file that was in use")

    # ------------------------------------------------------------ shadow
    async def note_shadow(
        self, domain: str, version: int | str, agreed: bool, page: tuple[str, str] | None = None
    ) -> bool:
        """One page of a set on probation; True when that made it active.

        ``page``: (url, raw ref) of a stored page, where generations run. After every SHADOW_PAGES a job is queued that
        judges all of them together (generate.py); without it a set that differs waits for a person.
        """
        if self.client is None:
            return False
        row = await self._row(domain)
        if row.get("probation") != str(version):
            return False
        name = f"shadow:{version}"
        good, seen = (int(n) for n in row.get(name, "0/0").split("/"))
        good, seen = good + agreed, seen + 1
        # Two workers at once may lose one count: that delays a promotion by a page, no more.
        await self.client.hset(keys.domain(domain), name, f"{good}/{seen}")
        if page and seen <= 2 * SHADOW_PAGES:
            await self._keep_sample(domain, *page)
        if seen < SHADOW_PAGES or row.get("pinned") == "1":
            return False
        if wilson_lower(good, seen) >= SHADOW_BOUND:
            await self._set_state(domain, version, "active", who="shadow", reason=f"{good} of {seen} pages agreed")
            await self.forget_samples(domain)
            return True
        if page and seen % SHADOW_PAGES == 0:
            await self.client.zadd(keys.JOBS, {domain: self.now_ms()}, nx=True)
        elif not page and seen >= 2 * SHADOW_PAGES:
            await self.end_probation(domain, "")
        return False

    async def shadow_of(self, domain: str) -> tuple[SelectorSet, int, int] | None:
        """The set on probation, as Redis has it, with the pages that agreed and that were seen; None without one."""
        row = await self._row(domain)
        version = row.get("probation")
        doc = await self._doc(domain, version) if version else None
        if doc is None:
            return None
        good, seen = (int(n) for n in row.get(f"shadow:{version}", "0/0").split("/"))
        return schema.parse(doc, domain), good, seen

    async def end_probation(self, domain: str, fault: str) -> None:
        """A person decides: too many pages differed, and ``fault`` is what all of them together say."""
        row = await self._row(domain)
        good, seen = row.get(f"shadow:{row.get('probation')}", "0/0").split("/")
        await self.client.hdel(keys.domain(domain), "probation")  # type: ignore[union-attr]
        await self.forget_samples(domain)
        reason = f"on probation only {good} of {seen} pages agreed"
        await self.await_admin(domain, f"{reason}; {fault}" if fault else reason)

    # ------------------------------------------------------------ samples and jobs
    async def report_missing(self, domain: str, ref: str, url: str) -> int:
        """Remembers a stored article page as a sample; how many there are now, 0 when it was not wanted.

        The last one that is needed queues the job.
        """
        if self.client is None or not self.is_missing(domain):
            return 0
        mine = self._reported.setdefault(domain, set())
        most = self._want.get(domain, SAMPLE_PAGES)
        if url in mine or len(mine) >= most:
            return 0
        mine.add(url)
        key = keys.samples(domain)
        count, added = int(await self.client.hlen(key)), False
        if count < most:
            added = await self._keep_sample(domain, url, ref)
            count = int(await self.client.hlen(key))
        if count >= most:
            await self.client.zadd(keys.JOBS, {domain: self.now_ms()}, nx=True)
        return count if added else 0

    async def _keep_sample(self, domain: str, url: str, ref: str) -> bool:
        """Whether it was new."""
        row = json.dumps({"ref": ref, "at_ms": self.now_ms()})
        return bool(await self._require().hsetnx(keys.samples(domain), url, row))

    async def samples(self, domain: str) -> list[tuple[str, str]]:
        """``(url, raw ref)``, oldest first."""
        rows = await self._require().hgetall(keys.samples(domain))
        found = [(json.loads(value), _text(url)) for url, value in rows.items()]
        return [(url, row["ref"]) for row, url in sorted(found, key=lambda f: f[0]["at_ms"])]

    async def forget_samples(self, domain: str) -> None:
        await self._require().delete(keys.samples(domain))
        self._reported.pop(domain, None)

    # ------------------------------------------------------------ views
    async def known(self) -> list[Known]:
        """Every domain that Redis or the shipped files know, by name."""
        domains = set(self._shipped)
        if self.client is not None:
            domains |= {_text(d) for d in await self.client.zrange(keys.CHANGED, 0, -1)}
            domains |= {_text(d) for d in await self.client.zrange(keys.JOBS, 0, -1)}
        return [await self.describe(domain) for domain in sorted(domains)]

    async def describe(self, domain: str) -> Known:
        row = await self._row(domain) if self.client is not None else {}
        shipped = self._shipped.get(domain)
        if not row.get("next"):
            state = row.get("state") or (shipped["state"] if shipped else "sampling")
            version = str(shipped["version"]) if shipped else None
            return Known(
                domain, state, version if state == "active" else None, version if state == "probation" else None, False,
                shipped["provenance"]["made_by"] if shipped else "", 1 if shipped else 0, "",
                await self._sample_count(domain), row.get("reason") or ("shipped file" if shipped else ""),
            )  # fmt: skip
        active, probation = row.get("active"), row.get("probation")
        doc = await self._doc(domain, probation or active or row["next"])
        return Known(
            domain, row.get("state", "candidate"), active, probation, row.get("pinned") == "1",
            doc["provenance"]["made_by"] if doc else "", int(await self._require().hlen(keys.versions(domain))),
            row.get(f"shadow:{probation}", "") if probation else "", await self._sample_count(domain),
            row.get("reason", ""),
        )  # fmt: skip

    async def document(self, domain: str, version: int | str | None = None) -> dict[str, Any]:
        """The set as stored: the version given, else the active one, the one on probation, the newest, the file.

        :raises UnknownSet: there is none
        """
        row = await self._row(domain) if self.client is not None else {}
        chosen = version or row.get("active") or row.get("probation") or row.get("next")
        doc = await self._doc(domain, chosen) if chosen and self.client is not None else None
        if doc is None and domain in self._shipped and version in (None, self._shipped[domain]["version"]):
            doc = self._shipped[domain]
        if doc is None:
            what = f"version {version} of {domain}" if version else f"selector set for {domain}"
            raise UnknownSet(f"there is no {what}; `scrapy selectors list` shows what there is")
        return doc


def _text(raw: bytes | str) -> str:
    return raw.decode() if isinstance(raw, bytes) else raw
