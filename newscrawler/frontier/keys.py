"""The names of all Redis keys of the frontier, one line a key: no other module makes one.

Every key of a domain carries the tag of its shard, so that one script sees all of it and a Redis
Cluster can spread the shards. The scripts build theirs from the shard's prefix, here {f0}.
tests/unit/frontier/test_keys.py compares this list with the keys that Python and the scripts make.

    {f0}:state           hash    fence, turn, queued, waiting
    {f0}:clock           hash    factor, offset; only where a day is simulated
    {f0}:dom             hash    domain -> its policy, gate, robots state, counters (schema.DOMAIN)
    {f0}:public          set     domains that are not loopback; a simulated clock needs it empty
    {f0}:ready:<0|1|2>   zset    domain -> ms from which it may be fetched; 0 high, 1 mid, 2 low.
                                 Without domains that are being fetched, are paused, or are empty
    {f0}:later           zset    domain that gave way with its second looks -> since when it waits
    {f0}:q:<domain>      zset    url id -> band, score and age in one number, lower first
    {f0}:due:<domain>    zset    url id -> ms not before which it may be leased
    {f0}:r:<domain>      hash    url id -> record of what is queued, waiting or leased
                                 (schema.HEADER)
    {f0}:o:<domain>      hash    url id -> links to it that a full queue refused
    {f0}:f:<bucket>      hash    rest of the url id -> record of what is finished (schema.FINISHED)
    {f0}:full            set     buckets of finished records over their share (archive.py)
    {f0}:files           hash    name of a raw file <-> its number in the finished records
    {f0}:lease           hash    url id -> fence, worker, domain (schema.LEASE)
    {f0}:deadlines       zset    url id -> ms of the server's real time at which the lease ends
    {f0}:quar            hash    url id -> what is in quarantine (schema.QUARANTINE)
    {f0}:moved           hash    url id + domain that it left -> domain it went to,
                                 "" = in another shard
    {f0}:grp             hash    group of domains with one gate -> gate, the member being fetched,
                                 the front
    {f0}:grp:<group>     zset    members with URLs -> ms from which they themselves may be fetched
    {f0}:pat:<domain>    hash    shape of URL -> how many were queued today; expires
    {f0}:caps            string  what the fleet may still ask and read this minute (_gate.lua)
    {f0}:rb:<domain>     hash    status, body, fetched, version of its robots.txt
    {f0}:found:<domain>  hash    kind and address of a list that the site announced -> when, where
                                 (found.py)
    {f0}:log:<domain>    list    the last fetches (schema.LOG)
    {f0}:hours:<domain>  hash    hour modulo 49 -> sum of its fetches that the log has no more
                                 (schema.HOUR); from -> ms from which the sums are complete,
                                 0 = always
    {f0}:seen            string  generations of the seen filter (cmsgpack)
    {f0}:s:<gen>:<part>  set     32 bits of each seen url id, as integers
    {f0}:stat            hash    counters since the frontier was made
    {f0}:want            hash    url id -> how it came into the queue and which bounded crawls want
                                 it now: "n" or "o<band>:<score>", then
                                 " <crawl>:<level>:<levels>" for each
    {f0}:taken           set     url ids that were taken down, in every shard (taken.py)

    {frontier}:meta           hash    schema, and which shard a domain is in (layout.py)
    {frontier}:reshard        string  token of the `scrapy frontier reshard` at work; expires
    {frontier}:taken          hash    what was taken down -> JSON (taken.Entry)
    {frontier}:taken:domains  set     the domains among it

    {crawls}:all           zset    id of a bounded crawl -> ms at which it was begun (bounded.py)
    {crawls}:running       set     ids of those that run
    {crawls}:c:<crawl>     hash    what was asked for and how far it is (bounded.Crawl)
    {crawls}:u:<crawl>     hash    url id -> its link, level, tries and outcome (bounded.Entry)
    {crawls}:o:<crawl>     zset    url id that is still to be fetched -> ms of the next look at it
    {crawls}:turn:<crawl>  string  a worker looks after it; expires
"""

from __future__ import annotations

from zlib import crc32

META = "{frontier}:meta"
RESHARD = "{frontier}:reshard"
TAKEN = "{frontier}:taken"
TAKEN_DOMAINS = "{frontier}:taken:domains"


def shard_of(domain: str, shards: int) -> int:
    return crc32(domain.encode()) % shards if shards > 1 else 0


def prefix(shard: int) -> str:
    """KEYS[1] of every script."""
    return f"{{f{shard}}}"


def state(shard: int) -> str:
    return f"{prefix(shard)}:state"


def clock(shard: int) -> str:
    return f"{prefix(shard)}:clock"


def domains(shard: int) -> str:
    return f"{prefix(shard)}:dom"


def public(shard: int) -> str:
    return f"{prefix(shard)}:public"


def queue(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:q:{domain}"


def due(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:due:{domain}"


def records(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:r:{domain}"


#: Buckets of finished records in each shard.
BUCKETS = 2**14


def finished(shard: int, url_id: bytes) -> tuple[str, bytes]:
    """Key of the bucket, and the field in it. 14 bits choose the bucket."""
    return bucket(shard, int.from_bytes(url_id[:2], "big") // 4), url_id[1:]


def bucket(shard: int, number: int) -> str:
    return f"{prefix(shard)}:f:{number}"


def finished_id(number: int, field: bytes) -> bytes:
    """The url id of a field of a bucket: the field lacks its first byte, which the number has."""
    return bytes((number // 64,)) + field


def full(shard: int) -> str:
    return f"{prefix(shard)}:full"


def files(shard: int) -> str:
    return f"{prefix(shard)}:files"


def leases(shard: int) -> str:
    return f"{prefix(shard)}:lease"


def deadlines(shard: int) -> str:
    return f"{prefix(shard)}:deadlines"


def quarantine(shard: int) -> str:
    return f"{prefix(shard)}:quar"


def offers(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:o:{domain}"


def patterns(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:pat:{domain}"


def ready(shard: int, class_: int) -> str:
    return f"{prefix(shard)}:ready:{class_}"


def later(shard: int) -> str:
    return f"{prefix(shard)}:later"


def moved(shard: int) -> str:
    return f"{prefix(shard)}:moved"


def group_members(shard: int, group: str) -> str:
    return f"{prefix(shard)}:grp:{group}"


def groups(shard: int) -> str:
    return f"{prefix(shard)}:grp"


def caps(shard: int) -> str:
    return f"{prefix(shard)}:caps"


def robots(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:rb:{domain}"


def found(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:found:{domain}"


def log(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:log:{domain}"


def hours(shard: int, domain: str) -> str:
    return f"{prefix(shard)}:hours:{domain}"


def seen(shard: int) -> str:
    return f"{prefix(shard)}:seen"


def seen_part(shard: int, generation: int, part: int) -> str:
    return f"{prefix(shard)}:s:{generation}:{part}"


def taken(shard: int) -> str:
    return f"{prefix(shard)}:taken"


def want(shard: int) -> str:
    return f"{prefix(shard)}:want"


#: Prefix of what is known of bounded crawls: all of it in one slot of a cluster.
CRAWLS = "{crawls}"
CRAWL_INDEX = f"{CRAWLS}:all"
CRAWLS_RUNNING = f"{CRAWLS}:running"


def crawl_facts(crawl: str) -> str:
    return f"{CRAWLS}:c:{crawl}"


def crawl_urls(crawl: str) -> str:
    return f"{CRAWLS}:u:{crawl}"


def crawl_open(crawl: str) -> str:
    return f"{CRAWLS}:o:{crawl}"


def crawl_turn(crawl: str) -> str:
    return f"{CRAWLS}:turn:{crawl}"


def stat(shard: int) -> str:
    return f"{prefix(shard)}:stat"
