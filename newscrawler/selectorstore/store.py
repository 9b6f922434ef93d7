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
from newscrawler.selectorstore import keys, schema, scripts

HISTORY_LENGTH = 200
SAMPLE_PAGES = 12
#: Shadow pages before a set on probation may become active, and the least Wilson bound of their agreement.
SHADOW_PAGES = 30
SHADOW_BOUND = 0.85


class SelectorsUnavailable(ConnectionError):
    """Redis does not answer."""


class UnknownSet(LookupError):
    """No such domain or version; the text says which there are."""


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


class SelectorStore:
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

    async def add_version(self, domain: str, doc: dict[str, Any], *, who: str, fence: int | None = None) -> int:
        """Stores a checked document under the next number; it is not used by that.

        :raises schema.SetError: the document is not valid
        :raises StaleFence: a later generation of the domain has begun
        """
        client = self._require()
        number = int(await client.hincrby(keys.domain(domain), "next", 1))
        doc = {**doc, "domain": domain, "version": number}
        schema.parse(doc, domain)
        text = json.dumps(doc, ensure_ascii=False, sort_keys=True)
        both = [keys.domain(domain), keys.versions(domain)]
        newest = int(await scripts.run(client, "add_version", both, [number, text, "" if fence is None else fence]))
        if newest:
            raise StaleFence(domain, fence or 0, newest)
        await self._event(domain, who, "added", number, str(doc["provenance"].get("source") or ""))
        return number

    async def _set_state(self, domain: str, version: int | str, state: str, *, who: str, reason: str) -> None:
        client = self._require()
        key = keys.domain(domain)
        fields: dict[str, str] = {"state": state, "reason": reason, "disabled": "0"}
        if state == "active":
            fields |= {"active": str(version), "active_by": who}
            if (await self._row(domain)).get("probation") == str(version):
                await client.hdel(key, "probation")
        elif state == "probation":
            fields["probation"] = str(version)
            await client.hdel(key, f"shadow:{version}")
        await client.hset(key, mapping=fields)
        doc = await self._doc(domain, version)
        if doc is not None:
            doc["state"] = state
            await client.hset(keys.versions(domain), str(version), json.dumps(doc, ensure_ascii=False, sort_keys=True))
        await self._event(domain, who, state, version, reason)
        await self._changed(domain)

    async def put_on_probation(self, domain: str, version: int, *, who: str, reason: str) -> None:
        await self._set_state(domain, version, "probation", who=who, reason=reason)

    async def approve(self, domain: str, version: int | str | None = None, *, who: str = "person") -> str:
        """Makes a version active: the one given, else the one on probation, else the newest."""
        row = await self._known_row(domain)
        chosen = str(version or row.get("probation") or row.get("next") or "")
        await self._need_version(domain, chosen)
        await self._set_state(domain, chosen, "active", who=who, reason="approved")
        return chosen

    async def rollback(self, domain: str, version: int | str | None = None, *, who: str = "person") -> str:
        """Goes back to a version, by default the one that was active before the present one."""
        row = await self._known_row(domain)
        if version is None:
            present = row.get("active")
            earlier = [str(e["version"]) for e in await self.history(domain) if e["what"] == "active"]
            version = next((v for v in earlier if v != present), None)
            if version is None:
                raise UnknownSet(f"{domain} has no earlier active version to go back to")
        await self._need_version(domain, str(version))
        await self._set_state(domain, version, "active", who=who, reason="rolled back")
        return str(version)

    async def pin(self, domain: str, pinned: bool = True, *, who: str = "person") -> None:
        """A pinned domain keeps its set: no file, no generation replaces it."""
        await self._known_row(domain)
        await self._require().hset(keys.domain(domain), "pinned", "1" if pinned else "0")
        await self._event(domain, who, "pinned" if pinned else "unpinned", None, "")
        await self._changed(domain)

    async def disable(self, domain: str, *, who: str = "person", reason: str = "disabled") -> None:
        """No set is used and none is made: the generic chain serves the domain until a version is approved."""
        fields = {"disabled": "1", "state": "disabled", "reason": reason}
        await self._require().hset(keys.domain(domain), mapping=fields)
        await self._require().zrem(keys.JOBS, domain)
        await self._event(domain, who, "disabled", None, reason)
        await self._changed(domain)

    async def await_admin(self, domain: str, reason: str) -> None:
        await self._require().hset(keys.domain(domain), mapping={"state": "await_admin", "reason": reason})
        await self._event(domain, "generator", "await_admin", None, reason)
        await self._changed(domain)

    # ------------------------------------------------------------ shadow
    async def note_shadow(self, domain: str, version: int | str, agreed: bool) -> bool:
        """One page of a set on probation; True when that made it active."""
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
        if seen < SHADOW_PAGES or row.get("pinned") == "1":
            return False
        if wilson_lower(good, seen) >= SHADOW_BOUND:
            await self._set_state(domain, version, "active", who="shadow", reason=f"{good} of {seen} pages agreed")
            return True
        if seen >= 2 * SHADOW_PAGES:
            await self.client.hdel(keys.domain(domain), "probation")
            await self.await_admin(domain, f"on probation only {good} of {seen} pages agreed")
        return False

    # ------------------------------------------------------------ samples and jobs
    async def report_missing(self, domain: str, ref: str, url: str) -> int:
        """Remembers a stored article page as a sample; how many there are now, 0 when it was not wanted.

        The last one that is needed queues the job.
        """
        if self.client is None or not self.is_missing(domain):
            return 0
        mine = self._reported.setdefault(domain, set())
        if url in mine or len(mine) >= SAMPLE_PAGES:
            return 0
        mine.add(url)
        key = keys.samples(domain)
        count, added = int(await self.client.hlen(key)), False
        if count < SAMPLE_PAGES:
            added = await self.client.hsetnx(key, url, json.dumps({"ref": ref, "at_ms": self.now_ms()}))
            count = int(await self.client.hlen(key))
        if count >= SAMPLE_PAGES:
            await self.client.zadd(keys.JOBS, {domain: self.now_ms()}, nx=True)
        return count if added else 0

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

    async def history(self, domain: str) -> list[dict[str, Any]]:
        """Newest first: at_ms, who, what, version, reason."""
        return [json.loads(e) for e in await self._require().lrange(keys.history(domain), 0, -1)]

    def now_ms(self) -> int:
        return round(self._clock() * 1000)

    # ------------------------------------------------------------ inner
    def _require(self) -> Any:
        if self.client is None:
            raise UnknownSet("this needs Redis: selector versions live there (REDIS_URL, or a running crawl)")
        return self.client

    async def _row(self, domain: str) -> dict[str, str]:
        rows = await self._require().hgetall(keys.domain(domain))
        return {_text(k): _text(v) for k, v in rows.items()}

    async def _known_row(self, domain: str) -> dict[str, str]:
        row = await self._row(domain)
        if not row.get("next"):
            raise UnknownSet(f"there is no selector set for {domain}; `scrapy selectors list` shows what there is")
        return row

    async def _need_version(self, domain: str, version: str) -> None:
        if not await self._require().hexists(keys.versions(domain), version):
            have = sorted(int(_text(v)) for v in await self._require().hkeys(keys.versions(domain)))
            raise UnknownSet(f"{domain} has no version {version}; it has {', '.join(map(str, have))}")

    async def _doc(self, domain: str, version: int | str | None) -> dict[str, Any] | None:
        raw = await self._require().hget(keys.versions(domain), str(version))
        return dict(json.loads(raw)) if raw else None

    async def _sample_count(self, domain: str) -> int:
        return int(await self.client.hlen(keys.samples(domain))) if self.client is not None else 0

    async def _event(self, domain: str, who: str, what: str, version: int | str | None, reason: str) -> None:
        event = {"at_ms": self.now_ms(), "who": who, "what": what, "version": version, "reason": reason}
        await self._require().lpush(keys.history(domain), json.dumps(event, ensure_ascii=False))
        await self._require().ltrim(keys.history(domain), 0, HISTORY_LENGTH - 1)

    async def _changed(self, domain: str) -> None:
        client = self._require()
        await scripts.run(client, "changed", [keys.CHANGED, f"{keys.CHANGED}:number"], [domain])
        await self._read_domain(domain)


class StaleFence(RuntimeError):
    """A generation that lost its lock wanted to write."""

    def __init__(self, domain: str, fence: int, newest: int) -> None:
        super().__init__(f"{domain}: a generation with fencing number {fence} wrote after {newest} had begun")


def _text(raw: bytes | str) -> str:
    return raw.decode() if isinstance(raw, bytes) else raw
