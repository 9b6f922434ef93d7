"""How the parts of the scripts are put together, and that each of them runs."""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest

from newscrawler.frontier import keys, packing, schema, scripts
from newscrawler.frontier.bounded import CrawlBook, Ended
from newscrawler.frontier.found import FoundSeed, FoundSeeds
from newscrawler.frontier.layout import Layout
from newscrawler.frontier.queue import RobotsAnswer
from newscrawler.frontier.reshard import Resharder
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.types import FrontierConfig, Wanted
from newscrawler.items import Kind, Outcome
from tests.redis.helpers import check, done, ended, frontier, link, links

#: Another Lua, other commands within.
REDIS_VERSIONS = ("6.2", "7")


class Archive:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.held: dict[bytes, bytes] = {}

    async def put(self, found: Any) -> None:
        self.held.update(found)

    async def get(self, url_ids: Any) -> dict[bytes, bytes]:
        return {i: self.held[i] for i in url_ids if i in self.held}


async def test_the_server_is_of_the_version_that_is_named(r: Any, redis_version: str) -> None:
    assert (await r.info("server"))["redis_version"].startswith(redis_version + ".")


async def test_every_script_runs(r: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: set[str] = set()
    real = Scripts.run

    async def run(self: Scripts, name: str, *args: Any) -> Any:
        found = await real(self, name, *args)
        ran.add(name)
        return found

    monkeypatch.setattr(Scripts, "run", run)
    domain, own = "127.0.0.9:80", {"archive": Archive(), "finished_limit": 1}
    f = await frontier(r, domains=(domain,), obey_robots=True, max_tries=1, **own)
    await f.set_clock(2.0)
    f.look_from = 0
    await f.add(links(9, domain))
    (robots,) = (await f.step(1)).leases
    await f.step(0, [done(robots, robots=RobotsAnswer(200, b"x"))], [ended(robots)])
    (lease,) = (await f.step(1)).leases
    assert await f.renew([lease]) == []
    assert await f.begin_isolated_retry(lease)
    assert await f.give_back([lease]) == 1
    for outcome in (Outcome.DONE, Outcome.RETRY):
        (lease,) = (await f.step(1)).leases
        await f.step(0, [done(lease, outcome, links=links(3, domain))], [ended(lease)])
    assert await f.operator.replay(await f.operator.quarantined()) == 1
    assert f.mover is not None
    f.mover._due = 0.0
    f.mover.note(0)
    await f.step(0)
    turn = await f.reserve(domain, link("/asked", domain).url)
    assert not isinstance(turn, int)
    await f.give_back([turn])
    await f.operator.pause(domain)
    await check(r)
    assert await f.operator.purge(domain) > 0
    await f.scripts.run("free", keys.prefix(0))
    wanted = link("/wanted", domain, revisit=True)
    await f.want([wanted], Wanted("aaaa1111", 0, 1))
    await f.unwant("aaaa1111", [wanted], drop_known=True)
    fetched = Ended("DONE", ("fetched",))
    book = CrawlBook(r, f.scripts)
    await book.page_ended("none", wanted.url_id, fetched, level=1, links=(), now_ms=1)
    feed = FoundSeed(f"https://{domain}/rss", Kind.FEED, 1)
    assert await FoundSeeds(r, lambda: Layout.of_count(1)).note(domain, [feed, feed]) == [feed]
    assert await f.taken.block([wanted.url_id], [domain]) == 0
    await check(r)
    resharder = Resharder(r)
    resharder.pause_s = 0
    assert (await resharder.run(2)).shards == 2
    await check(r, 2)
    assert ran == set(scripts.NAMES)


def test_a_script_gets_its_records_from_the_schema() -> None:
    text = """--@fields e raw @LEASE at
local e = { raw, LEASE.unpack(raw) }
if e.state == OUT.DONE and #raw > LEASE.size then return LEASE.pack(e) .. raw:sub(LEASE.at.state, e.at) end
return GATE_GROUP.pack{ gate = max(1, e.fence), holder = name, front = "" }, PART_FORMAT.RAW, { CAPS.zeros }
"""
    assert (
        scripts.with_schema(text)
        == """local e = { raw, struct.unpack(">dddBBBc0", raw) }
if e[5] == 1 and #raw > 27 then return struct.pack(">dddBBBc0", e[2], e[3], e[4], e[5], e[6], #e[7], e[7]) .. raw:sub(25, e[8]) end
return struct.pack(">dBc0Bc0", max(1, e[2]), #name, name, #"", ""), ">I2I4I4", { 0, 0, 0, 0, 0, 0 }
"""
    )


def test_a_list_has_each_name_once() -> None:
    with pytest.raises(ValueError, match="e has two fields state"):
        scripts.with_schema("--@fields e state @LEASE\n")


@pytest.mark.parametrize(
    "use",
    [
        "OUT.DOEN",
        "d.tial",
        "LEASE.sise",
        "LEASE.at.fense",
        "PART_FORMAT.RAWW",
        "HOUR.list{ hour = 1, fetches = 0 }",
        "HOUR.list{ fetches = 0, hour = 1, least_gap = 0, delay = 0, too_soon = 0 }",
    ],
)
def test_a_misspelt_name_is_no_nil_in_a_script(use: str) -> None:
    with pytest.raises(ValueError, match=re.escape(use.split("{")[0])):
        scripts.with_schema(f"--@fields d tail\nreturn {use}\n")


@pytest.mark.parametrize("name", scripts.NAMES)
def test_no_script_writes_a_format_or_a_place_by_hand(name: str) -> None:
    """Each record is declared in schema.py, and nowhere else."""
    text = re.sub(r"--(?!@).*", "", scripts._text(name))
    for part in re.findall(r"^--@include (\w+)", text, flags=re.MULTILINE):
        text += re.sub(r"--.*", "", scripts._text(part))
    formats = set(re.findall(r'"(>[^"]*)"', text))
    assert formats <= {">I4i4"}, "a url id as two numbers is no record"


@pytest.mark.parametrize("record", schema.RECORDS, ids=lambda record: record.name)
async def test_lua_and_python_write_each_record_alike(r: Any, record: schema.Record) -> None:
    """Different values in every field, at the edges of what its code holds."""
    samples = {"B": 200, "H": 50_000, "I": 4_000_000_000, "i": -2_000_000_000, "d": 1.5e12}
    values: list[Any] = []
    expected = b""
    for i, field in enumerate(record.fields):
        if field.is_text:
            value: Any = f"name{i}.vn"
            expected += (
                struct.pack(">H" if field.code == "text16" else ">B", len(value)) + value.encode()
            )
        elif field.code.endswith("s"):
            value = bytes([i + 1]) * int(field.code[:-1])
            expected += value
        else:
            value = samples[field.code] + i
            expected += struct.pack(">" + field.code, value)
        values.append(value)
    names = [
        f"ARGV[{i}]" if isinstance(v, (str, bytes)) else str(v)
        for i, v in enumerate(values, start=1)
    ]
    given = ", ".join(f"{name} = {value}" for name, value in zip(record.names, names, strict=True))
    made = scripts.with_schema(f"return {record.name}.pack{{ {given} }}")
    arguments = [v if isinstance(v, (str, bytes)) else "" for v in values]
    assert await r.eval(made, 0, *arguments) == expected
    again = scripts.with_schema(
        f"--@fields x @{record.name} behind\nlocal x = {{ {record.name}.unpack(ARGV[1]) }}\n"
        f"return {{ {record.name}.pack(x), x.behind }}"
    )
    assert await r.eval(again, 0, expected) == [expected, len(expected) + 1]
    row = record.read(expected)
    for name, value in zip(row._fields, values, strict=False):
        assert getattr(row, name) == (len(value) if isinstance(value, str) else value), name


def test_the_configuration_is_part_of_the_scripts() -> None:
    made = Scripts(None, packing.config(FrontierConfig(lease_ms=12_345, autothrottle=False)))  # type: ignore[arg-type]
    text = made.script("step").text
    assert (
        "lease_ms = 12345" in text and "autothrottle = false" in text and scripts.CONFIG not in text
    )
