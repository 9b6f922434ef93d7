"""A new version on an old version's frontier: every kind of record is read, and nothing is
lost or fetched twice.

``frontier_schema1.json`` is what the first version (schema 1, before quotas, groups and worked-out
classes) left in Redis when its worker was killed: key -> [type, content in base64].
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from newscrawler.frontier import keys, records, schema, state_text
from newscrawler.frontier.queue import Frontier, RobotsAnswer
from newscrawler.items import Kind, Outcome
from newscrawler.web.urls import url_id
from tests.redis.helpers import FAST, advance, check, done, ended, frontier, link, run_out

OLD = json.loads((Path(__file__).parent / "frontier_schema1.json").read_text())
#: The same of the last version that declared each packed record twice (commit 6f82c76), with
#: quotas, groups, worked-out classes, a lease on trial; and what that version read in each record.
#: Attributes of a record that had another name when the file was made.
NOW_CALLED = {"links_digest": "content_state"}
BEFORE = json.loads((Path(__file__).parent / "frontier_before_schema.json").read_text())
HOUR = 3_600_000


async def load(r: Any, content_of: dict[str, Any] = OLD) -> None:
    """With a clock that goes on from the moment at which it was left."""
    raw = base64.b64decode
    left_ms = schema.LOG.read(raw(content_of["{f0}:log:a.vn"][1][-1])).ended
    seconds, micros = await r.time()
    await r.hset(
        keys.clock(0),
        mapping={"factor": "1", "offset": str(left_ms + 100 - seconds * 1000 - micros / 1000)},
    )
    for key, (kind, content) in content_of.items():
        if kind == "hash":
            await r.hset(key, mapping={raw(field): raw(value) for field, value in content})
        elif kind == "zset":
            await r.zadd(key, {raw(member): float(score) for member, score in content})
        elif kind == "set":
            await r.sadd(key, *map(raw, content))
        elif kind == "list":
            await r.rpush(key, *map(raw, content))
        else:
            await r.set(key, raw(content))


@pytest.fixture
async def f(r: Any) -> Any:
    await load(r)
    return await frontier(
        r, "new", domains=("a.vn", "b.vn"), obey_robots=True, max_tries=2, seen_buckets=16
    )


async def record(f: Any, path: str) -> Any:
    return await f.record(url_id(f"https://a.vn{path}"), "a.vn")


async def test_every_kind_of_record_is_read(f: Any, r: Any) -> None:
    await check(r)
    counts = await f.counts()
    assert (counts.queued, counts.waiting, counts.leased, counts.quarantined, counts.domains) == (
        2,
        1,
        1,
        1,
        2,
    )
    home, cho, lai, dang = [await record(f, path) for path in ("/", "/cho", "/lai", "/dang")]
    assert (home.state, home.kind, home.etag, home.content_state) == (
        "waiting",
        Kind.HOME,
        '"e"',
        b"L" * 16,
    )
    assert (cho.state, cho.hint, cho.parent, cho.score) == (
        "queued",
        {"title": "Tiêu đề"},
        home.url_id,
        5,
    )
    assert (lai.tries, lai.outcome, lai.status) == (1, Outcome.RETRY, 500)
    assert (dang.state, dang.worker) == ("leased", "old")
    xong, cam, hong = [await record(f, path) for path in ("/xong", "/cam", "/hong")]
    assert (xong.state, xong.outcome, xong.raw_ref, xong.digest) == (
        "finished",
        Outcome.DONE,
        "w.warc.gz:5:6",
        b"D" * 16,
    )
    assert (cam.outcome, cam.reason) == (Outcome.REFUSED, "robots")
    assert (hong.state, hong.reason, hong.status, hong.url) == (
        "quarantined",
        "redirect loop",
        418,
        "https://a.vn/hong",
    )


async def test_domains_keep_their_gate_and_the_operators_word(f: Any) -> None:
    b = await f.operator.state("b.vn")
    assert (b.paused, b.operator_cls, b.operator_delay, b.extra.quota, b.extra.group) == (
        True,
        0,
        9000,
        0,
        "",
    )
    a = await f.operator.state("a.vn")
    assert (a.crawl_delay, a.robots_state, a.fetched) == (3000, 1, 7 - 1)
    assert (await f.operator.audit("a.vn", 10**12)).fetches == 6
    entry = await f.robots("a.vn")
    assert entry is not None and entry.body.endswith(b"Disallow: /cam\n")


async def test_what_is_known_is_not_fetched_again(f: Any) -> None:
    paths = ["/", "/xong", "/cam", "/hong", "/lai", "/dang", "/cho"]
    result = await f.add([link(path) for path in paths])
    assert (result.added, result.seen) == (0, len(paths))


async def test_the_old_workers_lease_can_end_either_way(f: Any, r: Any) -> None:
    ((url, data),) = (await r.hgetall(keys.leases(0))).items()
    entry = records.unpack_lease_entry(data)
    (lease,) = await leases_of(f, r)
    assert lease.url_id == url and lease.fence > entry.fence
    assert not (await f.step(0, [done(lease)], [ended(lease)])).rejected
    await check(r)


async def leases_of(f: Any, r: Any) -> list[Any]:
    """The lease of the dead worker runs out, and its URL is handed out again."""
    dang = link("/dang")
    (old,) = [x for x in [await f.record(dang.url_id, "a.vn")] if x.state == "leased"]
    old.url_id = dang.url_id
    await run_out(r, old)
    await f.step(0)
    await advance(r, 4000)
    step = await f.step(1)
    return list(step.leases)


async def test_all_of_it_is_fetched_once_and_nothing_else(f: Any, r: Any) -> None:
    await run_out(r, link("/dang"))  # type: ignore[arg-type]
    got = []
    for _ in range(12):
        step = await f.step(1)
        for lease in step.leases:
            got.append(lease.url)
            robots = RobotsAnswer(404) if lease.kind == Kind.ROBOTS else None
            await f.step(0, [done(lease, robots=robots, next_visit_ms=0)], [ended(lease)])
        await advance(r, 20_000)
    left = [url for url in got if not url.endswith("robots.txt")]
    assert sorted(left) == [f"https://a.vn{path}" for path in ("/cho", "/dang", "/lai")]
    assert await f.operator.replay(await f.operator.quarantined()) == 1
    assert [x.url for x in (await f.step(1)).leases] == ["https://a.vn/hong"]
    await check(r)


async def test_the_new_records_can_be_written_into_it(f: Any, r: Any) -> None:
    await f.operator.resume("b.vn")
    await f.operator.set_quota("b.vn", 2, window_s=3600)
    await f.add([link(f"/{i}", "b.vn") for i in range(5)])
    taken = 0
    for _ in range(8):
        leases = [x for x in (await f.step(2)).leases if x.domain == "b.vn"]
        taken += len(leases)
        robots = [RobotsAnswer(404) if x.kind == Kind.ROBOTS else None for x in leases]
        acks = [done(x, robots=y) for x, y in zip(leases, robots, strict=True)]
        await f.step(0, acks, [ended(x) for x in leases])
        await advance(r, 10_000)
    assert taken == 2
    await check(r)


async def test_an_old_version_reads_what_the_new_one_wrote(f: Any, r: Any) -> None:
    """A rolled back or slower worker: what it does not know stands behind what it reads."""
    before = await r.hget(keys.domains(0), "b.vn")
    await f.operator.set_quota("b.vn", 2, window_s=3600)
    after = await r.hget(keys.domains(0), "b.vn")
    old_part = schema.DOMAIN.size + schema.DOMAIN.unpack_from(after)[-1]
    assert after[:old_part] == before[:old_part] and len(after) > old_part


@pytest.mark.parametrize(
    ("field", "byte"), [("schema", 9), ("schema", 0), ("kind", 15), ("outcome", 12)]
)
async def test_a_record_of_a_newer_version_goes_to_quarantine_with_its_bytes(
    f: Any, r: Any, field: str, byte: int
) -> None:
    """What this version has no word for is neither guessed nor lost, and the worker goes on."""
    key, bad = keys.records(0, "a.vn"), link("/cho").url_id
    data = bytearray(await r.hget(key, bad))
    data[{"schema": 0, "kind": 1, "outcome": schema.HEADER.size - 16 - 4 - 2 - 1}[field]] = byte
    await r.hset(key, bad, bytes(data))
    await f.add([link("/good", band=2)])
    await run_out(r, link("/dang"))  # type: ignore[arg-type]
    got = []
    for _ in range(4):
        leases = (await f.step(4)).leases
        await f.step(0, [done(x) for x in leases], [ended(x) for x in leases])
        got += [x.url for x in leases]
        await advance(r, 5000)
    assert got == ["https://a.vn/dang", "https://a.vn/good"]
    listed = {entry.url_id: entry for entry in await f.operator.quarantined()}
    assert listed[bad].reason == "poison" and listed[bad].url is None
    assert (await r.hget(keys.quarantine(0), bad)).endswith(bytes(data))
    assert await f.operator.replay([listed[bad]]) == 0, "it cannot be replayed, and stays"
    assert await f.operator.drop([listed[bad]]) == 1
    f.local.clear()
    assert (await f.add([link("/cho")])).added == 1, "its URL comes back when it is offered"


# ---------------------------------------------------------------- the last version that wrote each format twice
@pytest.mark.parametrize("place", sorted(BEFORE["read"]))
def test_each_record_says_what_it_said_before_the_schema(place: str) -> None:
    key, field = place.split(" ")
    data = next(
        base64.b64decode(value) for name, value in BEFORE["content"][key][1] if name == field
    )
    what, _, domain = key.removeprefix("{f0}:").partition(":")
    name = base64.b64decode(field)
    if what == "dom":
        read: dict[str, Any] = asdict(records.unpack_domain(name.decode(), data))
    elif what == "r":
        read = asdict(records.unpack_queued(name, domain, data))
    elif what == "lease":
        read = asdict(records.unpack_lease_entry(data))
    elif what == "grp":
        read = {"gate": state_text.group_gate(data)}
    else:
        record, raw = records.unpack_finished(name, "x", data)
        read = {**asdict(record), "raw": raw, "age": records.finished_age(data)}
    was = {NOW_CALLED.get(word, word): text for word, text in BEFORE["read"][place].items()}
    assert {word: repr(read[word]) for word in was} == was


async def test_a_queue_of_before_the_schema_is_fetched_to_its_end(r: Any) -> None:
    await load(r, BEFORE["content"])
    domains = ("a.vn", "b.vn", "c.vn", "d.vn")
    left = {
        base64.b64decode(field): key.rpartition(":")[2]
        for key, (_, content) in BEFORE["content"].items()
        if key.startswith("{f0}:r:")
        for field, _ in content
    }
    f = Frontier(r, replace(FAST, obey_robots=True, max_tries=2, seen_buckets=16), "new")
    await f.open()
    await check(r)
    states = {name: await f.operator.state(name) for name in domains}
    assert states["b.vn"].paused and states["b.vn"].extra.quota == 50
    assert {name for name in domains if states[name].extra.group == "g"} == {"c.vn", "d.vn"}
    known = await f.add([link(f"/{i}", name) for name in domains for i in range(6)])
    assert (known.added, known.seen) == (0, 24), "nothing is forgotten, nothing is queued twice"
    await f.operator.resume("b.vn")
    await r.zadd(keys.deadlines(0), dict.fromkeys(await r.hkeys(keys.leases(0)), 1))
    got: set[bytes] = set()
    for _ in range(60):
        for lease in (await f.step(4)).leases:
            robots = RobotsAnswer(404) if lease.kind == Kind.ROBOTS else None
            assert robots is not None or left[lease.url_id] == lease.domain
            got.add(lease.url_id)
            await f.step(0, [done(lease, robots=robots, next_visit_ms=0)], [ended(lease)])
        await advance(r, 3_600_000)
    planned = await f.counts()
    assert set(left) - got == {x for x, place in (await check(r)).items() if place == "waiting"}
    assert (planned.queued, planned.leased) == (0, 0)
