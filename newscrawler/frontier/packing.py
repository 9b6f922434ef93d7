"""From the frontier's values to the arguments of its scripts and back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from struct import Struct
from typing import Any

import msgpack

from newscrawler.frontier import keys, records
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.schema import ACK, FETCHED, GRANT, NUMBERS
from newscrawler.frontier.types import (
    AUTO,
    CLASSES,
    Ack,
    DomainPolicy,
    Fetched,
    FrontierConfig,
    FrontierRefused,
    Lease,
    Wanted,
)
from newscrawler.items import LIST_KINDS, Kind, Link, Outcome
from newscrawler.web.robots import within_limit
from newscrawler.web.url_patterns import pattern_id
from newscrawler.web.urls import domain_of

#: Letters of add.lua -> AddResult.refused
REFUSALS = {"f": "queue_full", "d": "dropped", "o": "offsite", "x": "disabled", "t": "trap"}
#: A URL that wanders between the domains of a site under one id is given up after so many moves.
MAX_MOVES = 5
#: Length of a text of ACK, which follows.
TEXT = Struct(">H")
#: How many times as much the shape of an article may have as that of a page (_offer.lua).
ARTICLE_SHARE = 10


def config(conf: FrontierConfig) -> dict[str, Any]:
    """C of the scripts: numbers and truth values."""
    here_only = {
        "shards",
        "loopback_only",
        "local_links",
        "local_capacity",
        "local_reset_s",
        "finished_limit",
    }
    values: dict[str, Any] = {
        f.name: getattr(conf, f.name) for f in fields(conf) if f.name not in here_only
    }
    # Each shard is steered by itself, so each has its part of the fleet's caps.
    values["requests_per_minute"] = conf.requests_per_minute / conf.shards
    values["bytes_per_minute"] = conf.bytes_per_minute / conf.shards
    values["has_caps"] = conf.requests_per_minute + conf.bytes_per_minute > 0
    values["finished_per_bucket"] = finished_per_bucket(conf)
    # A URL that the filter knows and no record: another place is to be asked for it.
    values["asks_elsewhere"] = values["finished_per_bucket"] >= 0
    values["revisit_ms"] = [conf.revisit_ms.get(kind, 0) for kind in records.KINDS]
    return values


def finished_per_bucket(conf: FrontierConfig) -> int:
    """Records that a bucket may hold; -1 = any number. Url ids are hashes: all
    buckets fill alike."""
    return conf.finished_limit // conf.shards // keys.BUCKETS if conf.finished_limit > 0 else -1


def is_loopback(domain: str) -> bool:
    """By the name alone: an address of 127.0.0.0/8, ::1 or localhost."""
    host = domain.rsplit(":", 1)[0] if domain.count(":") == 1 else domain
    host = host.partition("]")[0].removeprefix("[")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def policy(row: DomainPolicy, *, loopback_only: bool) -> list[Any]:
    """:raises FrontierRefused: a delay of 0 where a host is not on this machine"""
    if row.floor_ms == 0 and not loopback_only:
        raise FrontierRefused(
            f"the delay of {row.domain} is 0: that is accepted only where every host of the crawl"
            " is in 127.0.0.0/8; set DOWNLOAD_DELAY above 0"
        )
    loopback = loopback_only or is_loopback(row.domain)
    cls = len(CLASSES) if row.cls == AUTO else CLASSES.index(row.cls)
    group: Any = False if row.group is None else row.group
    return [
        row.domain,
        row.site,
        cls,
        row.floor_ms,
        int(row.enabled),
        int(loopback),
        row.pages_per_day,
        group,
    ]


def check_groups(policies: Sequence[DomainPolicy], layout: Layout) -> None:
    """:raises FrontierRefused: a group whose domains lie in several shards: no script
    could keep its gate"""
    found: dict[str, tuple[str, int]] = {}
    for row in policies if layout.shards > 1 else ():
        shard = layout.of(row.domain)
        if row.group and found.setdefault(row.group, (row.domain, shard))[1] != shard:
            raise FrontierRefused(
                f"{found[row.group][0]} and {row.domain} share one gate (group {row.group!r}) but"
                f" lie in two of the {layout.shards} shards; groups need FRONTIER_SHARDS=1"
            )


def group_links(
    links: Sequence[Link],
    *,
    moved: bool = False,
    moved_last: Link | None = None,
    asked: bool = False,
    wanted: bool = False,
) -> tuple[list[list[Any]], list[Link]]:
    """Links by domain, as the scripts want them, and in the order of the statuses that come back.

    :param moved: all of them replace a URL of the same id under another domain
    :param moved_last: this one of them does, and must be the last
    :param asked: the archive of finished records was asked for them
    :param wanted: a bounded crawl wants them; each has ``revisit``
    """
    flags = 2 * moved + 4 * asked + 8 * wanted
    groups: dict[str, list[Link]] = {}
    for link in links:
        if link is not moved_last:
            groups.setdefault(link.domain, []).append(link)
    packed: list[list[Any]] = []
    for domain, group in groups.items():
        packed.append([domain, records.pack_links(domain, group, flags)])
        shapes = [shape_of(link) for link in group]
        if any(shapes):
            packed[-1].append(shapes)
    order = [link for group in groups.values() for link in group]
    if moved_last is not None and any(link is moved_last for link in links):
        packed.append([moved_last.domain, records.pack_links(moved_last.domain, [moved_last], 2)])
        order.append(moved_last)
    return packed, order


def look_ups(links: Sequence[Link]) -> tuple[list[Any], list[Link]]:
    """The url ids of links by domain, as look.lua wants them, and the links in the
    order of its statuses."""
    groups: dict[str, list[Link]] = {}
    for link in links:
        groups.setdefault(link.domain, []).append(link)
    packed: list[Any] = []
    order: list[Link] = []
    for domain, group in groups.items():
        packed += (domain, b"".join([link.url_id for link in group]))
        order += group
    return packed, order


def shape_of(link: Link) -> int:
    """What the budget of a URL's shape counts: pages that nobody named, and articles that
    differ by a parameter."""
    if link.kind is Kind.PAGE or (link.kind is Kind.ARTICLE and "?" in link.url):
        return pattern_id(link.url[link.url.find("/", 8) :])
    return 0


def fetched(end: Fetched) -> bytes:
    lease, latency_ms = end.lease, max(0.0, end.latency_ms)
    return FETCHED.pack(
        lease.url_id, lease.fence, latency_ms, end.status, _ms(end.retry_after_s), end.size
    )


def _ms(seconds: float | None) -> int:
    return -1 if seconds is None else max(0, round(seconds * 1000))


def resolve_move(ack: Ack) -> tuple[Ack, Link | None]:
    """A move to another domain becomes a link under the same url id, which is added
    before the old one goes."""
    lease = ack.lease
    if not ack.moved_to:
        return ack, None
    domain = domain_of(ack.moved_to)
    if domain == lease.domain:
        return ack, None
    moves = int((lease.hint or {}).get("moves", 0)) + 1
    if moves > MAX_MOVES or ack.outcome is not Outcome.RETRY:
        return replace(ack, outcome=Outcome.FAILED, reason="redirect loop", moved_to=None), None
    link = Link(
        url=ack.moved_to,
        url_id=lease.url_id,
        domain=domain,
        kind=Kind(lease.kind),
        depth=lease.depth,
        parent=lease.parent,
        band=lease.band,
        score=lease.score,
        hint={**(lease.hint or {}), "moves": moves},
    )
    return replace(ack), link


@dataclass(slots=True)
class PackedAck:
    """ACK, and what stands behind it."""

    head: bytes
    rest: bytes
    robots: Any
    groups: list[list[Any]]
    moved: int = 0

    def sent(self) -> bytes:
        if self.rest or self.groups or self.robots:
            more: bytes = msgpack.packb((self.rest, self.robots, self.groups), use_bin_type=False)
            return self.head + more
        return self.head

    def without_links(self) -> PackedAck:
        """Once its links are added; the target of a move is still to be queued with it."""
        return replace(self, groups=self.groups[-1:] if self.moved == MOVED_HERE else [])


#: Where a URL went, see resolve_move().
MOVED_IN_DOMAIN, MOVED_HERE, MOVED_AWAY = NUMBERS["MOVED"].values()


def ack(end: Ack, groups: list[list[Any]], *, moved_away: bool = False) -> PackedAck:
    """Packs an ack. What the visit did not tell stays as it was.

    :param moved_away: the URL went to a domain of another shard and was added there
    """
    lease, outcome = end.lease, end.outcome
    moved = scheme = 0
    rest = b""
    if end.moved_to and outcome is Outcome.RETRY:
        if domain_of(end.moved_to) == lease.domain:
            moved, url = MOVED_IN_DOMAIN, end.moved_to
        else:
            moved, url = MOVED_AWAY if moved_away else MOVED_HERE, lease.url
        scheme, rest = _rest(end, url)
    elif _is_kept(end):
        rest = _rest(end, lease.url)[1]
    robots: Any = False
    if end.robots is not None:
        answer = end.robots
        delay = max(0, _ms(answer.crawl_delay_s))
        robots = [answer.status, within_limit(answer.body), delay, _ms(answer.retry_after_s)]
    name, offset, length = records.split_raw_ref(end.raw_ref or lease.raw_ref)
    reason, file = end.reason[:100].encode(), name.encode()
    digest = end.digest or lease.digest
    head = ACK.pack(
        lease.url_id,
        lease.fence,
        records.OUTCOME_INDEX[outcome],
        end.status,
        -1 if end.next_visit_ms is None else max(0, end.next_visit_ms),
        _ms(end.retry_after_s),
        moved,
        scheme,
        offset,
        length,
        lease.header,
        digest if len(digest) == 16 else b"",
        len(reason),
    )
    return PackedAck(head + reason + TEXT.pack(len(file)) + file, rest, robots, groups, moved)


def _is_kept(end: Ack) -> bool:
    """Whether the record is needed after the visit, and is another one then."""
    if end.reason == "poison":  # the worker could not read it: the bytes stay as they are
        return False
    if end.outcome is Outcome.RETRY or end.outcome is Outcome.CHALLENGE:
        return end.raw_ref is not None
    return bool(end.next_visit_ms) or end.lease.kind in LIST_KINDS or end.outcome is Outcome.FAILED


def _rest(end: Ack, url: str) -> tuple[int, bytes]:
    """The URL's scheme, and what stands behind the header of its record."""
    lease, is_redone = end.lease, end.outcome in (Outcome.RETRY, Outcome.CHALLENGE)
    scheme, tail = records.split_url(url, lease.domain)
    return scheme, records.pack_rest(
        tail,
        lease.hint,
        lease.etag if is_redone else end.etag or lease.etag,
        lease.last_modified if is_redone else end.last_modified or lease.last_modified,
        lease.digest if is_redone else end.digest or lease.digest,
        lease.content_state if is_redone else end.content_state or lease.content_state,
        end.raw_ref or lease.raw_ref,
    )


@dataclass(slots=True)
class Share:
    """What one step() has for one shard."""

    fetched: list[bytes] = field(default_factory=list)
    acks: list[tuple[Ack, PackedAck, list[Link]]] = field(default_factory=list)

    def batches(self, acks: int, fetched: int) -> Iterator[Share]:
        """Pieces with at most so many of them, one at least. The end of a fetch goes with the ack
        of its URL, where both are told now: so the domain is read and written once."""
        if len(self.acks) <= acks and len(self.fetched) <= fetched:
            yield self
            return
        same = FETCHED.at("latency")  # url id and fence, with which both begin
        ended = {packed[:same]: packed for packed in self.fetched}
        pieces = []
        for start in range(0, len(self.acks), acks):
            piece = self.acks[start : start + acks]
            own = [
                ended.pop(packed.head[:same])
                for _, packed, _ in piece
                if packed.head[:same] in ended
            ]
            pieces.append(Share(own, piece))
        rest = list(ended.values())
        yield from (Share(rest[start : start + fetched]) for start in range(0, len(rest), fetched))
        yield from pieces


def fences(leases: Sequence[Lease]) -> bytes:
    values = [x for lease in leases for x in (lease.url_id, lease.fence)]
    return bytes(msgpack.packb(values, use_bin_type=False))


def wanted_by(text: str) -> tuple[Wanted, ...]:
    """Of a value of {f}:want: the crawls, without how the URL came into the queue."""
    found = []
    for tag in text.split()[1:]:
        crawl, level, levels = tag.split(":")
        found.append(Wanted(crawl, int(level), int(levels)))
    return tuple(found)


def lease(granted: bytes, deadline_ms: int) -> tuple[Lease, records.BadRecord | None]:
    """One of step.lua's leases; with an error where its record cannot be read (the lease
    can still be acked)."""
    url_id, number, robots_version, scheme, size = GRANT.unpack_from(granted)
    end = GRANT.size + size
    middle = end + 1 + granted[end]
    start = middle + 1 + granted[middle]
    domain, site, data = (
        granted[GRANT.size : end].decode(),
        granted[end + 1 : middle].decode(),
        granted[start:],
    )
    fence = int(number)
    error = None
    if data:
        try:
            lease = records.unpack_lease_record(
                data, url_id, domain, site, fence, deadline_ms, robots_version
            )
            if start > middle + 1:
                wanted = granted[middle + 1 : start].decode()
                lease.wanted, lease.was_known = wanted_by(wanted), wanted[0] != "n"
            return lease, None
        except records.BadRecord as exc:
            error = exc
    return (
        Lease(
            url=f"{'http' if scheme == 2 else 'https'}://{domain}/robots.txt",
            url_id=url_id,
            domain=domain,
            kind=Kind.ROBOTS,
            depth=0,
            parent=None,
            tries=0,
            site=site,
            fence=fence,
            deadline_ms=deadline_ms,
            robots_version=robots_version,
        ),
        error,
    )
