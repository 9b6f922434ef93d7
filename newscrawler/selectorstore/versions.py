"""Versions of selector sets in Redis: stored under growing numbers, put on probation, made active, rolled back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from newscrawler.selectorstore import keys, schema, scripts
from newscrawler.selectorstore.drift import Alarm, Drift
from newscrawler.selectorstore.repairs import Repairs

HISTORY_LENGTH = 200


class UnknownSet(LookupError):
    """No such domain or version; the text says which there are."""


class StaleFence(RuntimeError):
    """A generation that lost its lock wanted to write."""

    def __init__(self, domain: str, fence: int, newest: int) -> None:
        super().__init__(f"{domain}: a generation with fencing number {fence} wrote after {newest} had begun")


class Versions:
    """The writing half of :class:`~newscrawler.selectorstore.store.SelectorStore`."""

    client: Any
    _clock: Callable[[], float]

    async def _read_domain(self, domain: str) -> None:
        raise NotImplementedError

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

    async def _set_state(
        self, domain: str, version: int | str, state: str, *, who: str, reason: str, since_ms: int | None = None
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
        doc = await self._doc(domain, version)
        if doc is not None:
            doc["state"] = state
            await client.hset(keys.versions(domain), str(version), json.dumps(doc, ensure_ascii=False, sort_keys=True))
        await self._event(domain, who, state, version, reason)
        if state == "active":
            await client.hdel(key, "drifting", "attempts")
            await Drift(client).reset(domain, version)
            drift = (doc or {}).get("provenance", {}).get("drift") or {}
            onset = since_ms or drift.get("since_ms") or drift.get("onset_ms")
            if onset:
                await Repairs(client).queue(domain, int(onset), version)
        await self._changed(domain)

    async def activate(self, domain: str, version: int, *, who: str, reason: str, since_ms: int | None = None) -> None:
        """``since_ms``: what was stored from then on is parsed again; None: since the drift that the version was made for."""
        await self._set_state(domain, version, "active", who=who, reason=reason, since_ms=since_ms)

    async def put_on_probation(self, domain: str, version: int, *, who: str, reason: str) -> None:
        await self._set_state(domain, version, "probation", who=who, reason=reason)

    async def version_to_approve(self, domain: str, version: int | str | None = None) -> str:
        """The one given, else the one on probation, else the newest. :raises UnknownSet:"""
        row = await self._known_row(domain)
        chosen = str(version or row.get("probation") or row.get("next") or "")
        await self._need_version(domain, chosen)
        return chosen

    async def approve(self, domain: str, version: int | str | None = None, *, who: str = "person") -> str:
        """Makes a version active, without a look at any page: see newscrawler.selecting.approve."""
        chosen = await self.version_to_approve(domain, version)
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
        await Drift(self._require()).reset(domain, None)
        await self._event(domain, who, "disabled", None, reason)
        await self._changed(domain)

    async def note_alarm(self, alarm: Alarm) -> None:
        """What pages said about the active set (drift.py): a line of history, and for a drift the state."""
        where = f"template {alarm.template}, field {alarm.field}" if alarm.what == "drift" else alarm.what
        reason = f"{where}: {alarm.fails} pages failed"
        if alarm.what == "drift":
            mapping = {"state": "drifting", "reason": reason, "drifting": "1"}
            await self._require().hset(keys.domain(alarm.domain), mapping=mapping)
        row = await self._row(alarm.domain)
        await self._event(alarm.domain, "drift", f"alarm: {alarm.what}", row.get("active"), reason)
        await self._changed(alarm.domain)

    async def note_repair(self, domain: str, version: str, report: dict[str, Any]) -> None:
        fields = ", ".join(f"{name} {count}" for name, count in report["fields"].items()) or "nothing"
        reason = f"{report['pages']} stored pages parsed again, {report['changed']} articles changed: {fields}"
        await self._event(domain, "repair", "repaired", version, reason)

    async def is_drifting(self, domain: str) -> bool:
        return (await self._row(domain)).get("drifting") == "1"

    async def keep(self, domain: str, reason: str) -> None:
        """A regeneration gave nothing better: the set stays in use."""
        client = self._require()
        await client.hset(keys.domain(domain), mapping={"state": "active", "reason": reason})
        await client.hdel(keys.domain(domain), "drifting")
        await self._event(domain, "generator", "kept", (await self._row(domain)).get("active"), reason)
        await self._changed(domain)

    async def note_failure(self, domain: str, state: str, reason: str) -> None:
        """An attempt that gave no set, for people: what failed is a line of history; what lacked pages is the reason alone."""
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
        await self._require().hset(keys.domain(domain), mapping={"state": "await_admin", "reason": reason})
        await self._event(domain, "generator", "await_admin", None, reason)
        await self._changed(domain)

    async def version_numbers(self, domain: str) -> list[int]:
        """Newest first."""
        return sorted((int(_text(v)) for v in await self._require().hkeys(keys.versions(domain))), reverse=True)

    async def history(self, domain: str) -> list[dict[str, Any]]:
        """Newest first: at_ms, who, what, version, reason."""
        return [json.loads(e) for e in await self._require().lrange(keys.history(domain), 0, -1)]

    def now_ms(self) -> int:
        return int(self._clock() * 1000)  # rounded up, what is due now would be due in the future

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


def _text(raw: bytes | str) -> str:
    return raw.decode() if isinstance(raw, bytes) else raw
