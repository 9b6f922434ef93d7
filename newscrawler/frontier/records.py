"""How URLs, domains and leases are packed. Pure. The same formats stand in lua/_records.lua.

Packed because a hash with named fields costs 700 to 1,200 bytes a URL. All numbers are big-endian
without padding, which Python's struct and Redis' Lua struct write alike.

Schema number: the first byte (its upper half in FINISHED). A newer worker reads older schemas; a record
that cannot be read at all goes to quarantine.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import Any

import msgpack

from newscrawler.frontier import extras
from newscrawler.frontier.types import Lease, Record
from newscrawler.items import Kind, Link, Outcome

SCHEMA = 1
KINDS = list(Kind)
OUTCOMES = list(Outcome)  # packed as index + 1; 0 = never visited
KIND_INDEX = {kind: i for i, kind in enumerate(KINDS)}
OUTCOME_INDEX = {outcome: i + 1 for i, outcome in enumerate(OUTCOMES)}
NO_PARENT = bytes(16)

#: Queued, waiting, leased: schema, kind + 16 * scheme, band, tries, crashes, depth, score, discovered_s,
#: last outcome, last status, last visit_s, parent; then the rest as msgpack.
HEADER = struct.Struct(">BBBBBBiIBHI16s")
#: An offered link: url id, flags (1 revisit, 2 move), due ms, kind + 16 * scheme, band, depth, score, parent; rest.
LINK = struct.Struct(">16sBdBBBi16s")
#: schema * 16 + kind, outcome, depth * 16 + tries, flags (1 next, 2 digest, 4 raw, 8 robots version, 16 asked,
#: 32 parent), status, discovered_s, last_s; then next_s, digest, file number + offset + length, robots version, the first
#: three bytes of the parent's id (enough to know it among the lists of a site), when a link asked for it after it had gone
#: to the archive (s), as flagged; reason.
FINISHED = struct.Struct(">BBBBHII")
#: fence, granted ms (clock), queue score, state (1 fetched, + 2 on trial), is robots.txt, length of the domain.
LEASE = struct.Struct(">dddBBB")
#: schema, class, operator's class (9 none), enabled, paused, loopback, scheme, floor, operator's delay,
#: autothrottle's, crawl-delay, back-off step (all ms), gate, last fetch, back-off until, blocked until,
#: robots expiry or next try, queue not empty since, place in the ready set, next due (all ms since the epoch),
#: robots state (0 none, 1 rules, 2 free, 3 wait), robots tries, robots version, sequence, queued, due, fetched,
#: errors, dropped, added, url id being fetched, length of the site's name.
DOMAIN = struct.Struct(">BBBBBBBIIIIIddddddddBBIIIIIIII16sB")
#: when_s, length of domain, length of reason; domain, reason, record
QUARANTINE = struct.Struct(">IBB")
#: granted ms, ended ms (clock), delay that followed ms, status (65535: the worker never said)
LOG = struct.Struct(">ddIH")

_SCHEMES = ("", "https://", "http://")
#: What may follow the host where a URL is scheme + domain + path.
_TAIL = ("/", "?", "")


class BadRecord(ValueError):
    """Bytes in Redis that this version cannot read."""


def robots_id(domain: str) -> bytes:
    """The url id of a domain's robots.txt, which is leased without ever being queued."""
    return sha1(b"robots:" + domain.encode()).digest()[:16]


def split_url(url: str, domain: str) -> tuple[int, str]:
    """(scheme number, path) where the URL is scheme + domain + path, else (0, whole URL)."""
    number = 1 if url.startswith("https://") else 2
    at = len(_SCHEMES[number])
    end = at + len(domain)
    if url.startswith(domain, at) and url[end : end + 1] in _TAIL and url.startswith(_SCHEMES[number]):
        return number, url[end:]
    return 0, url


def join_url(scheme: int, tail: str, domain: str) -> str:
    return _SCHEMES[scheme] + domain + tail if scheme else tail


def pack_rest(tail: str, *fields: Any) -> bytes:
    """tail, hint, etag, last-modified, digest, links digest, raw reference; what is empty at the end is left off.

    ``use_bin_type=False``: Redis' cmsgpack cannot read msgpack's bin type.
    """
    values: list[Any] = [tail, *(field or None for field in fields)]
    while len(values) > 1 and values[-1] is None:
        values.pop()
    return msgpack.packb(values, use_bin_type=False)  # type: ignore[no-any-return]


def unpack_rest(data: bytes) -> list[Any]:
    """Seven values, of which the URL's tail, hint, etag, last-modified and raw reference are text."""
    try:
        values = msgpack.unpackb(data, raw=True, strict_map_key=False)
        if len(values) == 1:  # never visited
            return [values[0].decode(), None, None, None, None, None, None]
        values = list(values) + [None] * (7 - len(values))
        for i in (0, 2, 3, 6):
            values[i] = None if values[i] is None else values[i].decode()
        values[1] = _text(values[1])
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException) as exc:
        raise BadRecord(f"record cannot be decoded: {exc}") from exc
    if values[0] is None:
        raise BadRecord("record has no URL")
    return values


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_text(k): _text(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_text(v) for v in value]
    return value


def whole_score(score: float) -> int:
    """The score as the queue's order keeps it: whole numbers of 32 bits."""
    return max(-(2**31), min(2**31 - 1, round(score)))


def pack_links(domain: str, links: Sequence[Link], flags: int = 0) -> list[bytes]:
    """Links of one domain. ``flags``: 2 they replace URLs of the same id under another domain, 4 the archive was asked
    for them."""
    https = _SCHEMES[1] + domain
    size = len(https)
    pack, head = msgpack.Packer(use_bin_type=False).pack, LINK.pack
    found = []
    for link in links:
        url = link.url
        if url.startswith(https) and url[size : size + 1] in _TAIL:
            kind, tail = 16, url[size:]
        else:
            kind, tail = split_url(url, domain)
            kind *= 16
        band, depth, score = link.band, link.depth, link.score
        if score.__class__ is not int or not -(2**31) <= score < 2**31:
            score = whole_score(score)
        found.append(
            head(
                link.url_id,
                link.revisit + flags,
                link.due_ms,
                KIND_INDEX[link.kind] + kind,
                band if 0 <= band <= 2 else 2,
                depth if 0 <= depth <= 255 else 255,
                score,
                link.parent or NO_PARENT,
            )
            + pack((tail, link.hint) if link.hint else (tail,))
        )
    return found


def unpack_header(data: bytes) -> tuple[Any, ...]:
    if len(data) < HEADER.size + 1 or not 1 <= data[0] <= SCHEMA:
        raise BadRecord("unknown schema or too short")
    header = HEADER.unpack_from(data)
    if header[1] % 16 >= len(KINDS) or header[1] // 16 >= len(_SCHEMES) or header[8] > len(OUTCOMES):
        raise BadRecord("unknown kind, scheme or outcome")
    return header


def unpack_queued(url_id: bytes, domain: str, data: bytes) -> Record:
    """A record of the domain's hash, as a Record in state "queued"."""
    _, kind, band, tries, crashes, depth, score, discovered_s, outcome, status, last_s, parent = unpack_header(data)
    tail, hint, etag, modified, digest, links_digest, raw_ref = unpack_rest(data[HEADER.size :])
    return Record(
        url_id=url_id,
        domain=domain,
        state="queued",
        kind=KINDS[kind % 16],
        url=join_url(kind // 16, tail, domain),
        depth=depth,
        parent=None if parent == NO_PARENT else parent,
        tries=tries,
        crashes=crashes,
        band=band,
        score=score,
        discovered_ms=discovered_s * 1000,
        outcome=OUTCOMES[outcome - 1] if outcome else None,
        status=status,
        last_visit_ms=last_s * 1000,
        etag=etag,
        last_modified=modified,
        digest=digest or b"",
        links_digest=links_digest or b"",
        raw_ref=raw_ref,
        hint=hint,
    )


def unpack_lease_record(
    data: bytes, url_id: bytes, domain: str, site: str, fence: int, deadline_ms: int, robots_version: int
) -> Lease:
    """:raises BadRecord: the URL goes to quarantine"""
    _, kind, band, tries, crashes, depth, score, discovered_s, _, _, last_s, parent = unpack_header(data)
    tail, hint, etag, modified, digest, links_digest, raw_ref = unpack_rest(data[HEADER.size :])
    return Lease(  # by position: a name for each of so many would take a third longer
        join_url(kind // 16, tail, domain),
        url_id,
        domain,
        KINDS[kind % 16],
        depth,
        None if parent == NO_PARENT else parent,
        tries,
        fence,
        deadline_ms,
        etag,
        modified,
        digest or b"",
        links_digest or b"",
        hint,
        discovered_s * 1000,
        robots_version,
        site,
        band,
        score,
        last_s * 1000,
        raw_ref,
        crashes,
        data[: HEADER.size],
    )


def unpack_finished(url_id: bytes, domain: str, data: bytes) -> tuple[Record, tuple[int, int, int] | None]:
    """The record and, where a raw page was kept, (number of its file, offset, length)."""
    schema_kind, outcome, depth_tries, flags, status, discovered_s, last_s = FINISHED.unpack_from(data)
    at = FINISHED.size
    next_s, digest, raw = 0, b"", None
    if flags & 1:
        next_s = int.from_bytes(data[at : at + 4], "big")
        at += 4
    if flags & 2:
        digest = data[at : at + 16]
        at += 16
    if flags & 4:
        raw = struct.unpack_from(">HII", data, at)
        at += 10
    if flags & 8:
        at += 4
    parent_start = data[at : at + 3] if flags & 32 else b""
    at += len(parent_start) + (4 if flags & 16 else 0)
    if schema_kind // 16 != SCHEMA or not 0 < outcome <= len(OUTCOMES) or schema_kind % 16 >= len(KINDS):
        raise BadRecord("unknown schema, kind or outcome")
    record = Record(
        url_id=url_id,
        domain=domain,
        state="finished",
        kind=KINDS[schema_kind % 16],
        depth=depth_tries // 16,
        tries=depth_tries % 16,
        discovered_ms=discovered_s * 1000,
        outcome=OUTCOMES[outcome - 1],
        reason=data[at:].decode("utf-8", "replace"),
        status=status,
        last_visit_ms=last_s * 1000,
        next_visit_ms=next_s * 1000 or None,
        parent_start=parent_start,
        digest=digest,
    )
    return record, raw


def finished_age(data: bytes) -> int:
    """When the URL was last visited, or asked for after it had gone to the archive; seconds. Small = moved first."""
    if len(data) < FINISHED.size:
        return 0
    flags = data[3]
    if not flags & 16:
        return int.from_bytes(data[10:14], "big")
    sizes = ((1, 4), (2, 16), (4, 10), (8, 4), (32, 3))
    at = FINISHED.size + sum(size for flag, size in sizes if flags & flag)
    return int.from_bytes(data[at : at + 4], "big")


def split_raw_ref(ref: str | None) -> tuple[str, int, int]:
    """``file:offset:length`` -> its parts; ("", 0, 0) where there is none or it has another form."""
    if not ref:
        return "", 0, 0
    parts = ref.rsplit(":", 2)
    if len(parts) != 3 or not (parts[1].isdigit() and parts[2].isdigit()):
        return "", 0, 0
    offset, length = int(parts[1]), int(parts[2])
    return (parts[0], offset, length) if max(offset, length) < 2**32 else ("", 0, 0)


@dataclass(slots=True)
class LeaseEntry:
    fence: int
    granted_ms: int
    fetched: bool
    is_robots: bool
    domain: str
    worker: str
    on_trial: bool = False


def unpack_lease_entry(data: bytes) -> LeaseEntry:
    fence, granted, _, state, robots, size = LEASE.unpack_from(data)
    domain = data[LEASE.size : LEASE.size + size].decode()
    worker = data[LEASE.size + size :].decode()
    return LeaseEntry(int(fence), int(granted), state % 2 == 1, robots == 1, domain, worker, state > 1)


@dataclass(slots=True)
class DomainState:
    """One row of the frontier's report. Times in ms, delays in ms."""

    domain: str
    site: str
    cls: int
    operator_cls: int | None
    enabled: bool
    paused: bool
    loopback: bool
    floor: int
    operator_delay: int
    autothrottle: int
    crawl_delay: int
    backoff_step: int
    gate: int
    last_fetch: int
    backoff_until: int
    blocked_until: int
    robots_due: int
    ready_at: int
    next_due: int
    robots_state: int
    robots_version: int
    queued: int
    due: int
    fetched: int
    errors: int
    dropped: int
    added: int
    fetching: bytes | None
    extra: extras.DomainExtra  # quota, group, worked-out class

    @property
    def delay(self) -> int:
        return max(self.floor, self.operator_delay, self.autothrottle, self.crawl_delay)


def unpack_domain(domain: str, data: bytes) -> DomainState:
    v = DOMAIN.unpack_from(data)
    return DomainState(
        domain=domain,
        site=data[DOMAIN.size : DOMAIN.size + v[-1]].decode(),
        cls=v[1] if v[2] == 9 else v[2],
        operator_cls=None if v[2] == 9 else v[2],
        enabled=v[3] == 1,
        paused=v[4] == 1,
        loopback=v[5] == 1,
        floor=v[7],
        operator_delay=v[8],
        autothrottle=v[9],
        crawl_delay=v[10],
        backoff_step=v[11],
        gate=int(v[12]),
        last_fetch=int(v[13]),
        backoff_until=int(v[14]),
        blocked_until=int(v[15]),
        robots_due=int(v[16]),
        ready_at=int(v[18]),
        next_due=int(v[19]),
        robots_state=v[20],
        robots_version=v[22],
        queued=v[24],
        due=v[25],
        fetched=v[26],
        errors=v[27],
        dropped=v[28],
        added=v[29],
        fetching=None if v[30] == bytes(16) else v[30],
        extra=extras.unpack(data[DOMAIN.size + v[-1] :]),
    )
