"""What was taken down: URLs, domains and texts that no worker of the fleet may fetch or store.

One hash says what and why; the url ids are also a set in every shard, which the scripts ask for
each link that is new (``_offer.lua``). Who stores articles asks here before and after each batch
(``crawl.ingest``), so that a page which was in flight is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgpack

from newscrawler.frontier import keys
from newscrawler.frontier.errors import translated
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.types import DomainPolicy
from newscrawler.web.urls import canonicalize, domain_of, url_id

#: First letters of the fields of the hash: a url id (hex), a domain, a digest of a site's text.
URL, DOMAIN, TEXT = "u:", "d:", "t:"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """``target`` is what the operator named; one take-down has an entry for each address of it."""

    target: str
    at: str  # ISO
    who: str
    reason: str
    what: dict[str, int] = field(default_factory=dict)  # removed, by kind; of the target itself


def text_field(site: str, digest: str) -> str:
    return f"{TEXT}{site}:{digest}"


class Taken:
    """:param layout: of the frontier. Raises FrontierUnavailable."""

    def __init__(self, client: Any, layout: Layout | int, scripts: Scripts | None = None) -> None:
        self.client = client
        self.layout = Layout.of_count(layout) if isinstance(layout, int) else layout
        if scripts is None:
            scripts = Scripts(client)
            scripts.word = self.layout.word
        self.scripts = scripts

    # ------------------------------------------------------------------ asking
    async def all(self) -> dict[str, Entry]:
        """By field of the hash."""
        with translated():
            found = await self.client.hgetall(keys.TAKEN)
        return {name.decode(): Entry(**json.loads(value)) for name, value in found.items()}

    async def domains(self) -> frozenset[str]:
        with translated():
            return _names(await self.client.smembers(keys.TAKEN_DOMAINS))

    async def disabled(self, policies: Iterable[DomainPolicy]) -> list[DomainPolicy]:
        """The policies, those of domains that were taken down switched off."""
        taken = await self.domains()
        return [
            replace(policy, enabled=False) if is_within(policy.domain, taken) else policy
            for policy in policies
        ]

    async def has(self, url: str) -> bool:
        canonical = canonicalize(url) or url
        return bool(await self.which([(URL + url_id(canonical).hex(), domain_of(canonical))]))

    async def has_any(self) -> bool:
        """Whether anything was ever taken down and not lifted: most fleets have nothing, and then
        the names of what is stored need not be made and sent."""
        with translated():
            pipe = self.client.pipeline(transaction=False)
            pipe.hlen(keys.TAKEN)
            pipe.scard(keys.TAKEN_DOMAINS)
            return any(await pipe.execute())

    async def which(self, asked: Sequence[tuple[str, str]]) -> set[int]:
        """Places of those of which the field, or the domain or one above it, was taken down.

        :param asked: (field of the hash, domain)
        """
        if not asked:
            return set()
        with translated():
            pipe = self.client.pipeline(transaction=False)
            pipe.hmget(keys.TAKEN, [name for name, _ in asked])
            pipe.smembers(keys.TAKEN_DOMAINS)
            known, domains = await pipe.execute()
        taken = _names(domains)
        within = {domain for domain in {domain for _, domain in asked} if is_within(domain, taken)}
        return {
            place
            for place, (value, (_, domain)) in enumerate(zip(known, asked, strict=True))
            if value is not None or domain in within
        }

    # ------------------------------------------------------------------ changing
    async def put(self, entries: Mapping[str, Entry]) -> None:
        if not entries:
            return
        rows = {name: json.dumps(asdict(one), ensure_ascii=False) for name, one in entries.items()}
        domains = [name[2:] for name in entries if name.startswith(DOMAIN)]
        with translated():
            await self.client.hset(keys.TAKEN, mapping=rows)
            if domains:
                await self.client.sadd(keys.TAKEN_DOMAINS, *domains)

    async def block(self, ids: Sequence[bytes], domains: Iterable[str]) -> int:
        """Takes URLs out of the queues of these domains; how many were there."""
        return await self._run("block", ids, domains)

    async def lift(self, fields: Sequence[str]) -> None:
        """They may be fetched and stored again. Nothing comes back by that."""
        ids = [bytes.fromhex(name[2:]) for name in fields if name.startswith(URL)]
        await self._run("lift", ids, ())
        if fields:
            with translated():
                await self.client.hdel(keys.TAKEN, *fields)
                await self.client.srem(keys.TAKEN_DOMAINS, *[name[2:] for name in fields])

    async def _run(self, verb: str, ids: Sequence[bytes], domains: Iterable[str]) -> int:
        names = sorted(set(domains))
        done = 0
        for shard in range(self.layout.shards):
            own = [name for name in names if self.layout.of(name) == shard]
            packed = msgpack.packb(own, use_bin_type=False)
            for start in range(0, len(ids), _BATCH):
                batch = msgpack.packb(list(ids[start : start + _BATCH]), use_bin_type=False)
                with translated():
                    done += int(
                        await self.scripts.run("take_down", keys.prefix(shard), verb, packed, batch)
                    )
        return done


def _names(found: Iterable[bytes]) -> frozenset[str]:
    return frozenset(name.decode() for name in found)


def is_within(domain: str, taken: Iterable[str]) -> bool:
    """Whether a host is one of these or below one of them."""
    host = domain.partition(":")[0]
    return any(one in (domain, host) or host.endswith("." + one) for one in taken)
