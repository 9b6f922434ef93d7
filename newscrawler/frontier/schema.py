"""Every packed record of the frontier, declared once: Python packs and reads with it, and
so do the Lua scripts, whose names of records, fields and numbers scripts.py replaces when
they are loaded. Pure.

Packed because a hash with named fields costs 700 to 1,200 bytes a URL. All numbers are big-endian
without padding, which Python's struct and Redis' Lua struct write alike. What stands in Redis
(HEADER, FINISHED, LEASE, DOMAIN, EXTRA, QUARANTINE, LOG, HOUR, CAPS, GATE_GROUP) may only grow at
its end; what goes between a worker and a script (LINK, FETCHED, ACK, GRANT) may change with both.
"""

from __future__ import annotations

import re
from collections import namedtuple
from dataclasses import dataclass
from struct import Struct, calcsize
from typing import Any

from newscrawler.items import Kind, Outcome

#: The first byte of HEADER and DOMAIN, the upper half of the first in FINISHED. A newer worker
#: reads older schemas; a record that cannot be read at all goes to quarantine.
SCHEMA = 1

#: struct's letters, and the same of Redis' Lua struct. A text stands behind its length.
_LUA = {"B": "B", "H": "I2", "I": "I4", "i": "i4", "d": "d"}
_TEXTS = {"text8": "B", "text16": "H"}


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    # B H I i d as struct's, 16s bytes; text8, text16: a length of one or two bytes, then the text.
    code: str

    @property
    def lua_zero(self) -> str:
        """The value that Lua packs for nothing."""
        return '""' if self.is_text or self.code.endswith("s") else "0"

    @property
    def is_text(self) -> bool:
        return self.code in _TEXTS

    @property
    def lua_format(self) -> str:
        if self.is_text:
            return _LUA[_TEXTS[self.code]] + "c0"
        return _LUA.get(self.code) or f"c{self.code.removesuffix('s')}"


class Record:
    """``declared``: a line for each field: its name, its code, and what it says.

    ``struct`` is of the fields up to the length of the first text; what follows is sliced
    by whoever reads it.
    """

    def __init__(self, name: str, declared: str) -> None:
        self.name = name
        self.fields = [
            Field(*line.split()[:2]) for line in declared.strip().splitlines() if line.strip()
        ]
        self.names = [field.name for field in self.fields]
        fixed = []
        for field in self.fields:
            fixed.append(_TEXTS.get(field.code, field.code))
            if field.is_text:
                break
        self.struct = Struct(">" + "".join(fixed))
        self.size = self.struct.size
        self.lua_format = ">" + "".join(field.lua_format for field in self.fields)
        self.pack = self.struct.pack
        self.unpack = self.struct.unpack
        self.unpack_from = self.struct.unpack_from
        # typed Any: mypy knows no named tuple whose fields are computed
        make_row: Any = namedtuple
        self._row = make_row(f"{name.title()}Row", self.names[: len(fixed)])

    def read(self, data: bytes) -> Any:
        """The fields by their names; of a text its length."""
        return self._row._make(self.struct.unpack_from(data))

    def at(self, name: str) -> int:
        """Where a field of the fixed part begins."""
        before = self.fields[: self.names.index(name)]
        return calcsize(">" + "".join(field.code for field in before))


#: Queued, waiting, leased; behind it the rest of the record as msgpack (records.pack_rest).
HEADER = Record(
    "HEADER",
    """
    schema      B    SCHEMA
    kind        B    index in items.Kind + 16 * scheme (0 the whole URL is kept, 1 https, 2 http)
    band        B    0 first, 2 last
    tries       B
    crashes     B    workers that died with it
    depth       B
    score       i
    discovered  I    s since the epoch
    outcome     B    index in items.Outcome + 1, 0 never visited
    status      H    of the last visit
    last        I    last visit, s
    parent      16s  url id, zeros = none
    """,
)
#: An offered link; behind it the rest of its record.
LINK = Record(
    "LINK",
    """
    url_id      16s
    flags       B    1 revisit, 2 replaces a URL of that id of another domain, 4 archive was asked
    due         d    ms, 0 = now
    kind        B    as in HEADER
    band        B
    depth       B
    score       i
    parent      16s
    """,
)
#: A finished URL. Behind it as flagged: FINISHED_PARTS in their order; then the reason.
FINISHED = Record(
    "FINISHED",
    """
    schema_kind B    16 * SCHEMA + kind
    outcome     B
    depth_tries B    16 * depth + tries
    flags       B    see FINISHED_PARTS
    status      H
    discovered  I    s
    last        I    s
    """,
)
#: A lease in Redis; behind it the worker's name.
LEASE = Record(
    "LEASE",
    """
    fence       d
    granted     d    ms, by the frontier's clock
    score       d    of the queue
    state       B    1 fetched, + 2 on trial
    robots      B    whether it is for robots.txt
    domain      text8
    """,
)
#: A domain; behind it EXTRA, where it has any of that.
DOMAIN = Record(
    "DOMAIN",
    """
    schema      B
    cls         B    0 high, 1 mid, 2 low
    own_cls     B    the operator's, 9 none
    enabled     B
    paused      B
    loopback    B
    scheme      B    of robots.txt
    floor       I    the site's delay, ms
    set_delay   I    the operator's, ms
    throttle    I    autothrottle's, ms
    crawl_delay I    of robots.txt, ms
    step        I    back-off's, ms
    gate        d    ms since the epoch, as all that follow
    last        d    end of the last fetch
    back_until  d
    blocked     d    until
    robots_due  d    expiry or next try
    since       d    the queue is not empty since
    ready       d    place in the ready set
    next_due    d
    robots      B    0 none, 1 rules, 2 free, 3 wait
    robots_tries B
    robots_version I
    seq         I    of the queue's order
    queued      I
    due         I
    fetched     I
    errors      I
    dropped     I
    added       I
    id          16s  url id that is being fetched, zeros = none
    site        text8
    """,
)
#: What only some domains have; behind it a byte where it is not 0: failures in a row.
EXTRA = Record(
    "EXTRA",
    """
    flags       B    1 class worked out, 2 quota, 4 the quota is the operator's, 8 in a group
    held        d    held back until, ms: the quota is spent
    quota       I    pages, 0 none
    quota_s     I    its window, 0 = since it was set
    quota_from  I    its beginning, s
    quota_base  I    fetches of the domain before it
    articles    I    new ones
    judged_articles I  articles, fetches and errors at the last judgement of the class
    judged_fetched I
    judged_errors I
    judged_at   I    time of the last change of class, s
    latency     I    mean, ms
    yield_share B    new articles of 100 fetches
    error_share B    errors of 100 fetches
    idle_h      H    left alone for so many hours
    group       text8
    """,
)
#: A URL in quarantine; behind it domain, reason and record.
QUARANTINE = Record(
    "QUARANTINE",
    """
    since       I    s
    domain_size B
    reason_size B
    """,
)
#: An ended fetch in a domain's log; behind it the first eight bytes of its url id, which the first
#: version did not write.
LOG = Record(
    "LOG",
    """
    granted     d    ms, by the frontier's clock
    ended       d
    delay       I    that followed, ms
    status      H    65535: the worker never said
    """,
)
#: Sum of the fetches of a domain that ended in one hour.
HOUR = Record(
    "HOUR",
    """
    hour        I    since the epoch
    fetches     I
    least_gap   i    ms between the end of one of them and the grant of the next
    delay       I    that was asked there, ms
    too_soon    I    gaps that were shorter than their delay
    """,
)
HOUR_MS = 3_600_000
#: Hours whose sums are kept: the present one, and 48 before it.
HOURS_KEPT = 49
#: What the caps of the fleet still allow.
CAPS = Record(
    "CAPS",
    """
    at          d    ms
    requests    d
    bytes       d
    size        d    likely bytes of a page
    most_requests d  both caps, this shard's part
    most_bytes  d
    """,
)
#: A group of domains that share one gate.
GATE_GROUP = Record(
    "GATE_GROUP",
    """
    gate        d    ms
    holder      text8  member that is being fetched, or ""
    front       text8  member that stands in the ready set, or ""
    """,
)
#: The end of a fetch, as a worker tells it. It begins as ACK does.
FETCHED = Record(
    "FETCHED",
    """
    url_id      16s
    fence       d
    latency     d    ms
    status      H    0 no answer
    retry_after d    ms, -1 none
    bytes       d    received
    """,
)
#: The end of a visit; behind it, where there are any, msgpack of (rest of the record,
#: robots or false, links).
ACK = Record(
    "ACK",
    """
    url_id      16s
    fence       d
    outcome     B
    status      H
    next        d    next visit ms, 0 never, -1 by its kind
    retry_after d    ms, -1 none
    moved       B    see MOVED
    scheme      B    of the address it moved to
    offset      I    of the raw page in its file
    length      I
    header      37s  of the record as it was granted, zeros: it is to be read
    digest      16s  zeros = none
    reason      text16
    file        text16  of the raw page
    """,
)
#: A lease as its worker gets it; behind it the record, nothing for robots.txt.
GRANT = Record(
    "GRANT",
    """
    url_id      16s
    fence       d
    robots_version I
    scheme      B
    domain      text8
    site        text8
    wanted      text8  by bounded crawls, see keys.py; "" by none
    """,
)
RECORDS = (
    HEADER, LINK, FINISHED, LEASE, DOMAIN, EXTRA, QUARANTINE, LOG, HOUR, CAPS, GATE_GROUP,
    FETCHED, ACK, GRANT,
)  # fmt: skip


class Part:
    """One of the things that a record has only where a flag says so."""

    def __init__(self, flag: int, codes: str) -> None:
        self.flag = flag
        self.struct = Struct(">" + codes)
        self.lua_format = ">" + "".join(
            Field("", code).lua_format for code in re.findall(r"\d+s|\w", codes)
        )


#: What a finished record may have behind FINISHED, in this order.
FINISHED_PARTS = {
    "NEXT": Part(1, "I"),  # next visit, s
    "DIGEST": Part(2, "16s"),
    "RAW": Part(4, "HII"),  # number of the file, offset, length
    "ROBOTS": Part(8, "I"),  # version of the robots.txt that refused it
    "PARENT": Part(32, "3s"),  # enough to know the parent among the lists of a site
    "ASKED": Part(16, "I"),  # when a link asked for it after it had gone to the archive, s
}

#: Numbers with a name, in Python and in the scripts.
NUMBERS: dict[str, dict[str, int]] = {
    "KIND": {kind.name: i for i, kind in enumerate(Kind)},
    "OUT": {outcome.name: i for i, outcome in enumerate(Outcome, start=1)},
    "ROBOTS": {"NONE": 0, "RULES": 1, "FREE": 2, "WAIT": 3},
    #: Where a URL went: its domain is the same; it is the last of the ack's links;
    #: another shard has it.
    "MOVED": {"IN_DOMAIN": 1, "HERE": 2, "AWAY": 3},
    "PART": {name: part.flag for name, part in FINISHED_PARTS.items()},
    "PART_SIZE": {name: part.struct.size for name, part in FINISHED_PARTS.items()},
    "HOURS": {"MS": HOUR_MS, "KEPT": HOURS_KEPT},
    "SCHEMA": {"NUMBER": SCHEMA},
}

#: Formats of the scripts' struct with a name.
FORMATS = {"PART_FORMAT": {name: part.lua_format for name, part in FINISHED_PARTS.items()}}
