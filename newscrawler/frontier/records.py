"""From packed records (schema.py) to the frontier's values and back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import Any

import msgpack

from newscrawler.frontier import schema
from newscrawler.frontier.schema import (
    DOMAIN,
    EXTRA,
    FINISHED,
    FINISHED_PARTS,
    HEADER,
    LEASE,
    LINK,
    SCHEMA,
)
from newscrawler.frontier.types import Lease, Record
from newscrawler.items import Kind, Link, Outcome
from newscrawler.utils.numbers import whole_number

KINDS = list(Kind)
OUTCOMES = list(Outcome)  # packed as index + 1; 0 = never visited
KIND_INDEX = {kind: schema.NUMBERS["KIND"][kind.name] for kind in KINDS}
OUTCOME_INDEX = {outcome: schema.NUMBERS["OUT"][outcome.name] for outcome in OUTCOMES}
NO_PARENT = bytes(16)
NO_CLASS = 9  # of the operator

#: ``held`` of a quota that was spent and has no window.
FOR_GOOD = 2**53 - 1

_SCHEMES = ("", "https://", "http://")
#: What may follow the host where a URL is scheme + domain + path.
_TAIL = ("/", "?", "")


_KIND, _OUTCOME = HEADER.names.index("kind"), HEADER.names.index("outcome")


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
    if (
        url.startswith(domain, at)
        and url[end : end + 1] in _TAIL
        and url.startswith(_SCHEMES[number])
    ):
        return number, url[end:]
    return 0, url


def join_url(scheme: int, tail: str, domain: str) -> str:
    return _SCHEMES[scheme] + domain + tail if scheme else tail


def pack_rest(tail: str, *fields: Any) -> bytes:
    """tail, hint, etag, last-modified, digest, links digest, raw reference; what is empty
    at the end is left off.

    ``use_bin_type=False``: Redis' cmsgpack cannot read msgpack's bin type.
    """
    values: list[Any] = [tail, *(field or None for field in fields)]
    while len(values) > 1 and values[-1] is None:
        values.pop()
    return bytes(msgpack.packb(values, use_bin_type=False))


def unpack_rest(data: bytes) -> list[Any]:
    """Seven values, of which the URL's tail, hint, etag, last-modified and raw
    reference are text.

    :raises BadRecord: it cannot be decoded, or has no URL
    """
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
    """Links of one domain. ``flags``: 2 they replace URLs of the same id under another domain, 4
    the archive was asked for them."""
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
    """:raises BadRecord: too short, of an unknown schema, or with an unknown kind, scheme or
    outcome
    """
    if len(data) < HEADER.size + 1 or not 1 <= data[0] <= SCHEMA:
        raise BadRecord("unknown schema or too short")
    header = HEADER.unpack_from(data)
    kind, outcome = header[_KIND], header[_OUTCOME]
    if kind % 16 >= len(KINDS) or kind // 16 >= len(_SCHEMES) or outcome > len(OUTCOMES):
        raise BadRecord("unknown kind, scheme or outcome")
    return header


def unpack_queued(url_id: bytes, domain: str, data: bytes) -> Record:
    """A record of the domain's hash, as a Record in state "queued"."""
    _, kind, band, tries, crashes, depth, score, discovered_s, outcome, status, last_s, parent = (
        unpack_header(data)
    )
    tail, hint, etag, modified, digest, content_state, raw_ref = unpack_rest(data[HEADER.size :])
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
        content_state=content_state or b"",
        raw_ref=raw_ref,
        hint=hint,
    )


def unpack_lease_record(
    data: bytes,
    url_id: bytes,
    domain: str,
    site: str,
    fence: int,
    deadline_ms: int,
    robots_version: int,
) -> Lease:
    """:raises BadRecord: the URL goes to quarantine"""
    _, kind, band, tries, crashes, depth, score, discovered_s, _, _, last_s, parent = unpack_header(
        data
    )
    tail, hint, etag, modified, digest, content_state, raw_ref = unpack_rest(data[HEADER.size :])
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
        content_state or b"",
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


def unpack_finished(
    url_id: bytes, domain: str, data: bytes
) -> tuple[Record, tuple[Any, ...] | None]:
    """The record and, where a raw page was kept, (number of its file, offset, length).

    :raises BadRecord: of an unknown schema, or with an unknown kind or outcome
    """
    row = FINISHED.read(data)
    parts, at = _finished_parts(data, row.flags)
    version, kind = divmod(row.schema_kind, 16)
    if version != SCHEMA or not 0 < row.outcome <= len(OUTCOMES) or kind >= len(KINDS):
        raise BadRecord("unknown schema, kind or outcome")
    record = Record(
        url_id=url_id,
        domain=domain,
        state="finished",
        kind=KINDS[kind],
        depth=row.depth_tries // 16,
        tries=row.depth_tries % 16,
        discovered_ms=row.discovered * 1000,
        outcome=OUTCOMES[row.outcome - 1],
        reason=data[at:].decode("utf-8", "replace"),
        status=row.status,
        last_visit_ms=row.last * 1000,
        next_visit_ms=parts.get("NEXT", (0,))[0] * 1000 or None,
        parent_start=parts.get("PARENT", (b"",))[0],
        digest=parts.get("DIGEST", (b"",))[0],
    )
    return record, parts.get("RAW")


def _finished_parts(data: bytes, flags: int) -> tuple[dict[str, tuple[Any, ...]], int]:
    """The parts behind FINISHED, and where they end."""
    parts: dict[str, tuple[Any, ...]] = {}
    at = FINISHED.size
    for name, part in FINISHED_PARTS.items():
        if flags & part.flag:
            if len(data) < at + part.struct.size:
                raise BadRecord("too short for its flags")
            parts[name] = part.struct.unpack_from(data, at)
            at += part.struct.size
    return parts, at


def without_file(data: bytes) -> bytes:
    """The record without where its raw page is: another shard numbers the files otherwise."""
    row = FINISHED.read(data)
    part = FINISHED_PARTS["RAW"]
    if not row.flags & part.flag:
        return data
    at = FINISHED.size
    for name, other in FINISHED_PARTS.items():
        if name == "RAW":
            break
        at += other.struct.size if row.flags & other.flag else 0
    flags_at = FINISHED.at("flags")
    flags = bytes((row.flags - part.flag,))
    head = data[:flags_at] + flags + data[flags_at + 1 : at]
    return head + data[at + part.struct.size :]


def finished_age(data: bytes) -> int:
    """When the URL was last visited, or asked for after it had gone to the archive;
    seconds. Small = moved first."""
    if len(data) < FINISHED.size:
        return 0
    row = FINISHED.read(data)
    if not row.flags & FINISHED_PARTS["ASKED"].flag:
        return int(row.last)
    try:
        return int(_finished_parts(data, row.flags)[0]["ASKED"][0])
    except BadRecord:
        return 0


def split_raw_ref(ref: str | None) -> tuple[str, int, int]:
    """``file:offset:length`` -> its parts; ("", 0, 0) where there is none or it
    has another form."""
    if not ref:
        return "", 0, 0
    parts = ref.rsplit(":", 2)
    if len(parts) != 3:
        return "", 0, 0
    offset, length = whole_number(parts[1], 2**32 - 1), whole_number(parts[2], 2**32 - 1)
    return ("", 0, 0) if offset is None or length is None else (parts[0], offset, length)


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
    row = LEASE.read(data)
    end = LEASE.size + row.domain
    return LeaseEntry(
        fence=int(row.fence),
        granted_ms=int(row.granted),
        fetched=row.state % 2 == 1,
        is_robots=row.robots == 1,
        domain=data[LEASE.size : end].decode(),
        worker=data[end:].decode(),
        on_trial=row.state > 1,
    )


@dataclass(slots=True)
class DomainExtra:
    """What only some domains have: quota, group, how a class was worked out, failures in a row.
    Defaults: none of it."""

    is_class_worked_out: bool = False
    is_quota_own: bool = False  # set by `scrapy frontier quota`, not by the policy
    held_until: int = 0  # ms; the quota is spent
    quota: int = 0  # pages, 0 = none
    quota_window_s: int = 0  # 0 = since it was set
    quota_from_s: int = 0
    quota_base: int = 0  # fetches of the domain before the window began
    articles: int = 0
    judged_fetches: int = 0  # 0 = not judged yet
    latency_ms: int = 0
    yield_percent: int = 0
    error_percent: int = 0
    idle_h: int = 0
    group: str = ""
    failures: int = (
        0  # fetches in a row, without a success between: 429, 503, no answer; at most 255
    )

    def quota_used(self, fetched: int, now_ms: int) -> int:
        """Of the window that runs now."""
        if self.quota_window_s and now_ms >= (self.quota_from_s + self.quota_window_s) * 1000:
            return 0
        return fetched - self.quota_base

    @property
    def class_reason(self) -> str:
        """The reason for the class that was worked out."""
        said = []
        if self.judged_fetches:
            said.append(f"{self.yield_percent} % new articles")
            said.append(f"answers in {self.latency_ms / 1000:.1f} s")
            said.append(f"{self.error_percent} % errors")
        if self.idle_h >= 24:
            said.append(f"left alone for {self.idle_h} h")
        return ", ".join(said) or "not judged yet"


NO_EXTRA = DomainExtra()


def unpack_extra(data: bytes) -> DomainExtra:
    """``data``: what stands behind the site's name."""
    if len(data) < EXTRA.size:
        return NO_EXTRA
    row = EXTRA.read(data)
    end = EXTRA.size + row.group
    return DomainExtra(
        is_class_worked_out=row.flags & 1 == 1,
        is_quota_own=row.flags & 4 == 4,
        held_until=int(row.held),
        quota=row.quota,
        quota_window_s=row.quota_s,
        quota_from_s=row.quota_from,
        quota_base=row.quota_base,
        articles=row.articles,
        judged_fetches=row.judged_fetched,
        latency_ms=row.latency,
        yield_percent=row.yield_share,
        error_percent=row.error_share,
        idle_h=row.idle_h,
        group=data[EXTRA.size : end].decode(),
        failures=data[end] if len(data) > end else 0,
    )


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
    extra: DomainExtra  # quota, group, worked-out class

    @property
    def delay(self) -> int:
        return max(self.floor, self.operator_delay, self.autothrottle, self.crawl_delay)


def unpack_domain(domain: str, data: bytes) -> DomainState:
    row = DOMAIN.read(data)
    end = DOMAIN.size + row.site
    return DomainState(
        domain=domain,
        site=data[DOMAIN.size : end].decode(),
        cls=row.cls if row.own_cls == NO_CLASS else row.own_cls,
        operator_cls=None if row.own_cls == NO_CLASS else row.own_cls,
        enabled=row.enabled == 1,
        paused=row.paused == 1,
        loopback=row.loopback == 1,
        floor=row.floor,
        operator_delay=row.set_delay,
        autothrottle=row.throttle,
        crawl_delay=row.crawl_delay,
        backoff_step=row.step,
        gate=int(row.gate),
        last_fetch=int(row.last),
        backoff_until=int(row.back_until),
        blocked_until=int(row.blocked),
        robots_due=int(row.robots_due),
        ready_at=int(row.ready),
        next_due=int(row.next_due),
        robots_state=row.robots,
        robots_version=row.robots_version,
        queued=row.queued,
        due=row.due,
        fetched=row.fetched,
        errors=row.errors,
        dropped=row.dropped,
        added=row.added,
        fetching=None if row.id == bytes(16) else row.id,
        extra=unpack_extra(data[end:]),
    )
