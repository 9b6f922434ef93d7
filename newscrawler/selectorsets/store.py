"""Live selector sets: versions in Redis, read from a local copy, with the shipped files beneath.

A worker never waits for Redis on a page: ``active()`` reads a dictionary that ``refresh()`` keeps
up to date every few seconds. What Redis does not have comes from the shipped files, so that a
worker of an egg on an empty Redis extracts by sets from its first page.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.selectorsets import keys, schema, scripts
from newscrawler.selectorsets.drift import Alarm, Drift
from newscrawler.selectorsets.repairs import Repairs
from newscrawler.utils.shipped import shipped

HISTORY_LENGTH = 200
SAMPLE_PAGES = 12
#: Shadow pages before a set on probation may become active, and the least Wilson bound of
#: their agreement.
SHADOW_PAGES = 30
SHADOW_BOUND = 0.85


class UnknownSet(LookupError):
    """No such domain or version; the text says which there are."""


class StaleFence(RuntimeError):
    """A generation that lost its lock wanted to write."""

    def __init__(self, domain: str, fence: int, newest: int) -> None:
        super().__init__(
            f"{domain}: a generation with fencing number {fence} wrote after {newest} had begun"
        )


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
    """SELECTORS_DIR, else the sets that come with the program (utils.shipped)."""
    return Path(setting) if setting else shipped("selectors")


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
        self,
        client: Any | None,
        folder: Path | Traversable,
        *,
        clock: Callable[[], float] = time.time,
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
        """No set in any state that an operator did not rule out: pages of it are
        wanted as samples."""
        return (
            self.active(domain) is None
            and self.probation(domain) is None
            and domain not in self._quiet
        )

    async def refresh(self) -> int:
        """Reads what changed since the last call; how many domains that were."""
        if self.client is None:
            return 0
        changed = await self.client.zrangebyscore(
            keys.CHANGED, f"({self._read_up_to}", "+inf", withscores=True
        )
        for raw, number in changed:
            domain = keys.text(raw)
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
    async def add_version(
        self, domain: str, doc: dict[str, Any], *, who: str, fence: int | None = None
    ) -> int:
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
        newest = int(
            await scripts.run(
                client, "add_version", both, [number, text, "" if fence is None else fence]
            )
        )
        if newest:
            raise StaleFence(domain, fence or 0, newest)
        await self._event(domain, who, "added", number, str(doc["provenance"].get("source") or ""))
        return number

    async def _set_state(
        self,
        domain: str,
        version: int | str,
        state: str,
        *,
        who: str,
        reason: str,
        since_ms: int | None = None,
    ) -> None:
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
        doc = await self._doc(domain, version) or {}
        if doc:
            doc["state"] = state
            text = json.dumps(doc, ensure_ascii=False, sort_keys=True)
            await client.hset(keys.versions(domain), str(version), text)
        await self._event(domain, who, state, version, reason)
        if state == "active":
            await client.hdel(key, "drifting", "attempts")
            await Drift(client).reset(domain, version)
            onset = since_ms or _onset_of_drift(doc)
            if onset:
                await Repairs(client).queue(domain, int(onset), version)
        await self._changed(domain)

    async def activate(
        self, domain: str, version: int, *, who: str, reason: str, since_ms: int | None = None
    ) -> None:
        """``since_ms``: what was stored from then on is parsed again; None: since the drift that
        the version was made for."""
        await self._set_state(domain, version, "active", who=who, reason=reason, since_ms=since_ms)

    async def put_on_probation(self, domain: str, version: int, *, who: str, reason: str) -> None:
        await self._set_state(domain, version, "probation", who=who, reason=reason)

    async def version_to_approve(self, domain: str, version: int | str | None = None) -> str:
        """The one given, else the one on probation, else the newest. :raises UnknownSet:"""
        row = await self._known_row(domain)
        chosen = str(version or row.get("probation") or row.get("next") or "")
        await self._need_version(domain, chosen)
        return chosen

    async def approve(
        self, domain: str, version: int | str | None = None, *, who: str = "person"
    ) -> str:
        """Makes a version active, without a look at any page: see
        newscrawler.crawl.selector_admin.approve."""
        chosen = await self.version_to_approve(domain, version)
        await self._set_state(domain, chosen, "active", who=who, reason="approved")
        return chosen

    async def rollback(
        self, domain: str, version: int | str | None = None, *, who: str = "person"
    ) -> str:
        """Goes back to a version, by default the one that was active before the present one.

        :raises UnknownSet: the domain has no set, no such version, or none that was active
            before
        """
        row = await self._known_row(domain)
        if version is None:
            present = row.get("active")
            earlier = [
                str(e["version"]) for e in await self.history(domain) if e["what"] == "active"
            ]
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
        """No set is used and none is made: the generic chain serves the domain until a
        version is approved."""
        fields = {"disabled": "1", "state": "disabled", "reason": reason}
        await self._require().hset(keys.domain(domain), mapping=fields)
        await self._require().zrem(keys.JOBS, domain)
        await Drift(self._require()).reset(domain, None)
        await self._event(domain, who, "disabled", None, reason)
        await self._changed(domain)

    async def note_alarm(self, alarm: Alarm) -> None:
        """What pages said about the active set (drift.py): a line of history, and for
        a drift the state."""
        where = (
            f"template {alarm.template}, field {alarm.field}"
            if alarm.what == "drift"
            else alarm.what
        )
        reason = f"{where}: {alarm.fails} pages failed"
        if alarm.what == "drift":
            mapping = {"state": "drifting", "reason": reason, "drifting": "1"}
            await self._require().hset(keys.domain(alarm.domain), mapping=mapping)
        row = await self._row(alarm.domain)
        await self._event(alarm.domain, "drift", f"alarm: {alarm.what}", row.get("active"), reason)
        await self._changed(alarm.domain)

    async def note_repair(self, domain: str, version: str, report: dict[str, Any]) -> None:
        fields = (
            ", ".join(f"{name} {count}" for name, count in report["fields"].items()) or "nothing"
        )
        reason = (
            f"{report['pages']} stored pages parsed again, {report['changed']} articles changed:"
            f" {fields}"
        )
        await self._event(domain, "repair", "repaired", version, reason)

    async def is_drifting(self, domain: str) -> bool:
        return (await self._row(domain)).get("drifting") == "1"

    async def drifting(self) -> dict[str, str]:
        """Domains whose set no longer reads them, and how that was seen."""
        client = self._require()
        domains = [keys.text(name) for name in await client.zrange(keys.CHANGED, 0, -1)]
        pipe = client.pipeline(transaction=False)
        for domain in domains:
            pipe.hmget(keys.domain(domain), "drifting", "reason")
        rows = await pipe.execute() if domains else []
        return {
            domain: keys.text(reason or b"its pages fail")
            for domain, (is_drifting, reason) in zip(domains, rows, strict=True)
            if is_drifting and keys.text(is_drifting) == "1"
        }

    async def keep(self, domain: str, reason: str) -> None:
        """A regeneration gave nothing better: the set stays in use."""
        client = self._require()
        await client.hset(keys.domain(domain), mapping={"state": "active", "reason": reason})
        await client.hdel(keys.domain(domain), "drifting")
        await self._event(
            domain, "generator", "kept", (await self._row(domain)).get("active"), reason
        )
        await self._changed(domain)

    async def note_failure(self, domain: str, state: str, reason: str) -> None:
        """An attempt that gave no set, for people: what failed is a line of history; what lacked
        pages is the reason alone."""
        row = await self._row(domain)
        if not (row.get("active") or row.get("probation")):
            await self._require().hset(keys.domain(domain), "reason", reason)
        if state == "failed":
            await self._event(domain, "generator", "failed", row.get("active"), reason)

    async def want_samples(self, domain: str, pages: int) -> None:
        """More pages than usual are needed: the site has several templates."""
        await self._require().hset(keys.domain(domain), "want", str(pages))
        await self._changed(domain)

    async def await_admin(self, domain: str, reason: str) -> None:
        await self._require().hset(
            keys.domain(domain), mapping={"state": "await_admin", "reason": reason}
        )
        await self._event(domain, "generator", "await_admin", None, reason)
        await self._changed(domain)

    async def version_numbers(self, domain: str) -> list[int]:
        """Newest first."""
        return sorted(
            (int(keys.text(v)) for v in await self._require().hkeys(keys.versions(domain))),
            reverse=True,
        )

    async def history(self, domain: str) -> list[dict[str, Any]]:
        """Newest first: at_ms, who, what, version, reason."""
        return [json.loads(e) for e in await self._require().lrange(keys.history(domain), 0, -1)]

    def now_ms(self) -> int:
        return int(self._clock() * 1000)  # rounded up, what is due now would be due in the future

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
                await self._event(
                    domain, "file", "loaded, not used", version, "the fleet has a set of its own"
                )
            else:
                await self._set_state(
                    domain, version, doc["state"], who="file", reason="shipped file"
                )
            done.new.append(domain)
        return done

    async def adopt(self, domain: str) -> None:
        """Gives a shipped set that is used without being in Redis a version there:
        the one to go back to."""
        doc = self._shipped.get(domain)
        if doc is None or doc["state"] != "active" or (await self._row(domain)).get("next"):
            return
        version = await self.add_version(domain, doc, who="file")
        fields = {
            "active": str(version),
            "active_by": "file",
            "shipped": schema.content_digest(doc) + doc["state"],
        }
        await self._require().hset(keys.domain(domain), mapping=fields)
        await self._require().hset(keys.watch(domain), "v", str(version))
        await self._event(domain, "file", "active", version, "the shipped file that was in use")

    # ------------------------------------------------------------ shadow
    async def note_shadow(
        self, domain: str, version: int | str, agreed: bool, page: tuple[str, str] | None = None
    ) -> bool:
        """One page of a set on probation; True when that made it active.

        ``page``: (url, raw ref) of a stored page, where generations run. After every SHADOW_PAGES a
        job is queued that judges all of them together (generate.py); without it a set that differs
        waits for a person.
        """
        if self.client is None:
            return False
        row = await self._row(domain)
        if row.get("probation") != str(version):
            return False
        good, seen = _shadow_counts(row)
        good, seen = good + agreed, seen + 1
        # Two workers at once may lose one count: that delays a promotion by a page, no more.
        await self.client.hset(keys.domain(domain), f"shadow:{version}", f"{good}/{seen}")
        if page and seen <= 2 * SHADOW_PAGES:
            await self._keep_sample(domain, *page)
        if seen < SHADOW_PAGES or row.get("pinned") == "1":
            return False
        if wilson_lower(good, seen) >= SHADOW_BOUND:
            await self._set_state(
                domain, version, "active", who="shadow", reason=f"{good} of {seen} pages agreed"
            )
            await self.forget_samples(domain)
            return True
        if page and seen % SHADOW_PAGES == 0:
            await self._queue_job(domain)
        elif not page and seen >= 2 * SHADOW_PAGES:
            await self.end_probation(domain, "")
        return False

    async def _queue_job(self, domain: str) -> None:
        await self._require().zadd(keys.JOBS, {domain: self.now_ms()}, nx=True)

    async def shadow_of(self, domain: str) -> tuple[SelectorSet, int, int] | None:
        """The set on probation, as Redis has it, with the pages that agreed and that were
        seen; None without one."""
        row = await self._row(domain)
        version = row.get("probation")
        doc = await self._doc(domain, version) if version else None
        if doc is None:
            return None
        return schema.parse(doc, domain), *_shadow_counts(row)

    async def end_probation(self, domain: str, fault: str) -> None:
        """A person decides: too many pages differed, and ``fault`` is what all of
        them together say."""
        good, seen = _shadow_counts(await self._row(domain))
        await self._require().hdel(keys.domain(domain), "probation")
        await self.forget_samples(domain)
        reasons = (f"on probation only {good} of {seen} pages agreed", fault)
        await self.await_admin(domain, "; ".join(filter(None, reasons)))

    # ------------------------------------------------------------ samples and jobs
    async def report_missing(self, domain: str, ref: str, url: str) -> int:
        """Remembers a stored article page as a sample; how many there are now, 0 when
        it was not wanted.

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
            await self._queue_job(domain)
        return count if added else 0

    async def _keep_sample(self, domain: str, url: str, ref: str) -> bool:
        """Whether it was new."""
        row = json.dumps({"ref": ref, "at_ms": self.now_ms()})
        return bool(await self._require().hsetnx(keys.samples(domain), url, row))

    async def samples(self, domain: str) -> list[tuple[str, str]]:
        """``(url, raw ref)``, oldest first."""
        rows = await self._require().hgetall(keys.samples(domain))
        found = [(json.loads(value), keys.text(url)) for url, value in rows.items()]
        return [(url, row["ref"]) for row, url in sorted(found, key=lambda f: f[0]["at_ms"])]

    async def forget_samples(self, domain: str) -> None:
        await self._require().delete(keys.samples(domain))
        self._reported.pop(domain, None)

    # ------------------------------------------------------------ views
    async def known(self) -> list[Known]:
        """Every domain that Redis or the shipped files know, by name."""
        domains = set(self._shipped)
        if self.client is not None:
            domains |= {keys.text(d) for d in await self.client.zrange(keys.CHANGED, 0, -1)}
            domains |= {keys.text(d) for d in await self.client.zrange(keys.JOBS, 0, -1)}
        return [await self.describe(domain) for domain in sorted(domains)]

    async def describe(self, domain: str) -> Known:
        row = await self._row(domain) if self.client is not None else {}
        if not row.get("next"):
            return await self._describe_file(domain, row)
        active, probation = row.get("active"), row.get("probation")
        doc = await self._doc(domain, probation or active or row["next"])
        return Known(
            domain=domain,
            state=row.get("state", "candidate"),
            active=active,
            probation=probation,
            pinned=row.get("pinned") == "1",
            made_by=doc["provenance"]["made_by"] if doc else "",
            versions=int(await self._require().hlen(keys.versions(domain))),
            shadow=row.get(f"shadow:{probation}", "") if probation else "",
            samples=await self._sample_count(domain),
            reason=row.get("reason", ""),
        )

    async def _describe_file(self, domain: str, row: dict[str, str]) -> Known:
        """A domain without a version in Redis: its shipped file, or samples that are collected."""
        known = Known(
            domain=domain,
            state=row.get("state") or "sampling",
            active=None,
            probation=None,
            pinned=False,
            made_by="",
            versions=0,
            shadow="",
            samples=await self._sample_count(domain),
            reason=row.get("reason") or "",
        )
        shipped = self._shipped.get(domain)
        if shipped is None:
            return known
        state, version = row.get("state") or shipped["state"], str(shipped["version"])
        return replace(
            known,
            state=state,
            active=version if state == "active" else None,
            probation=version if state == "probation" else None,
            made_by=shipped["provenance"]["made_by"],
            versions=1,
            reason=known.reason or "shipped file",
        )

    async def document(self, domain: str, version: int | str | None = None) -> dict[str, Any]:
        """The set as stored: the version given, else the active one, the one on probation,
        the newest, the file.

        :raises UnknownSet: there is none
        """
        doc = None
        if self.client is not None:
            row = await self._row(domain)
            chosen = version or row.get("active") or row.get("probation") or row.get("next")
            doc = await self._doc(domain, chosen) if chosen else None
        shipped = self._shipped.get(domain)
        if doc is None and shipped is not None and version in (None, shipped["version"]):
            doc = shipped
        if doc is None:
            what = f"version {version} of {domain}" if version else f"selector set for {domain}"
            raise UnknownSet(f"there is no {what}; `scrapy selectors list` shows what there is")
        return doc

    # ------------------------------------------------------------ inner
    def _require(self) -> Any:
        if self.client is None:
            raise UnknownSet(
                "this needs Redis: selector versions live there (REDIS_URL, or a running crawl)"
            )
        return self.client

    async def _row(self, domain: str) -> dict[str, str]:
        rows = await self._require().hgetall(keys.domain(domain))
        return {keys.text(k): keys.text(v) for k, v in rows.items()}

    async def _known_row(self, domain: str) -> dict[str, str]:
        row = await self._row(domain)
        if not row.get("next"):
            raise UnknownSet(
                f"there is no selector set for {domain}; `scrapy selectors list` shows what"
                " there is"
            )
        return row

    async def _need_version(self, domain: str, version: str) -> None:
        if not await self._require().hexists(keys.versions(domain), version):
            have = sorted(
                int(keys.text(v)) for v in await self._require().hkeys(keys.versions(domain))
            )
            raise UnknownSet(
                f"{domain} has no version {version}; it has {', '.join(map(str, have))}"
            )

    async def _doc(self, domain: str, version: int | str | None) -> dict[str, Any] | None:
        raw = await self._require().hget(keys.versions(domain), str(version))
        return dict(json.loads(raw)) if raw else None

    async def _sample_count(self, domain: str) -> int:
        return int(await self.client.hlen(keys.samples(domain))) if self.client is not None else 0

    async def _event(
        self, domain: str, who: str, what: str, version: int | str | None, reason: str
    ) -> None:
        event = {
            "at_ms": self.now_ms(),
            "who": who,
            "what": what,
            "version": version,
            "reason": reason,
        }
        await self._require().lpush(keys.history(domain), json.dumps(event, ensure_ascii=False))
        await self._require().ltrim(keys.history(domain), 0, HISTORY_LENGTH - 1)

    async def _changed(self, domain: str) -> None:
        client = self._require()
        await scripts.run(client, "changed", [keys.CHANGED, f"{keys.CHANGED}:number"], [domain])
        await self._read_domain(domain)


def _shadow_counts(row: dict[str, str]) -> tuple[int, int]:
    """Pages on which the set on probation agreed, and that were seen."""
    good, seen = row.get(f"shadow:{row.get('probation')}", "0/0").split("/")
    return int(good), int(seen)


def _onset_of_drift(doc: dict[str, Any]) -> int | None:
    """When the drift began that a set was made for, in ms; None for a set made otherwise."""
    drift = doc.get("provenance", {}).get("drift") or {}
    onset: int | None = drift.get("since_ms") or drift.get("onset_ms")
    return onset
