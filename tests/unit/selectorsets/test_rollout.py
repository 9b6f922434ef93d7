"""Changes that are not over in one step: one field alone, one template of two, a slow roll-out, a
layout taken back.

Real Redis and raw store, no site. ``python -m tests.unit.selectorsets.test_rollout`` prints the
table of docs/selectors.md.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from newscrawler.crawl.ingest import Ingest
from newscrawler.crawl.reparse import Choice, Reparser
from newscrawler.discovery.sites import Sites
from newscrawler.rawstore import READER, RawStore
from newscrawler.selectorsets.repairs import Repairs
from newscrawler.selectorsets.store import SelectorStore
from newscrawler.store import open_store
from tests.semisynthetic.change import DOMAIN, _Crawl, _wrong
from tests.semisynthetic.life import live
from tests.semisynthetic.structure import Filled, Truth
from tests.unit.selectorsets.test_mutations import Site

#: Number of a page -> what is changed on it.
Schedule = Callable[[int, random.Random], set[str]]


class Changing(Site):
    """One layout whose changes come and go; ``magazine``: a share of the pages has a
    template of its own."""

    def __init__(self, magazine: float = 0.0) -> None:
        super().__init__()
        self.magazine = magazine
        self.touched = False  # the last page is one that the change is seen on

    def page(self) -> Filled:
        second = self._rng.random() < self.magazine
        self.touched = second == ("magazine" in self.changes) and bool(self.changes)
        mine, self.changes = self.changes, frozenset() if second else self.changes - {"magazine"}
        made = super().page()
        self.changes = mine
        text = made.body.decode()
        if second:
            text = _magazine(text)
            text = re.sub(r'class="(\w+)"', r'class="x-\1"', text) if "magazine" in mine else text
        elif "author" in mine:
            # no paragraph any more either, which a set has behind the byline's name
            text = re.sub(
                r'<p class="byline">(.*?)</p>', r'<div class="writer">\1</div>', text, flags=re.S
            )
        return Filled(text.encode(), made.truth)


def _magazine(text: str) -> str:
    """Other elements in another order, with other names; its text is in sections."""
    names = {
        "headline": "cover",
        "byline": "signed",
        "clock": "issued",
        "story": "longread",
        "related": "seealso",
    }
    for old, new in names.items():
        text = text.replace(f'class="{old}"', f'class="{new}"')
    text = re.sub(
        r"<main>(.*)</main>",
        r'<div class="mag"><div class="mag-in">\1</div></div>',
        text,
        flags=re.S,
    )
    return re.sub(
        r"<p>(.*?)</p>", r'<section class="chapter"><p>\1</p></section>', text, flags=re.S
    )


@dataclass
class Told:
    """``alarm``, ``live``: changed pages until then, 0 = never. ``damaged`` when stored, ``wrong``
    after the repairs."""

    pages: int = 0
    alarm: int = 0
    live: int = 0
    alarms: int = 0
    results: list[str] = field(default_factory=list)
    versions: int = 0
    active: str = ""
    damaged: int = 0
    wrong: list[str] = field(default_factory=list)


async def crawled(
    site: Changing, schedule: Schedule, pages: int, client: Any, folder: Path
) -> Told:
    """A set by rules for the layout as it was, then ``pages`` pages; each repair is done
    before the next page."""
    told, rng = Told(pages), random.Random(4)
    life = await asyncio.to_thread(live, site, 1)  # type: ignore[arg-type]
    assert life.state == "active" and life.doc is not None, life.reason
    raw, articles = RawStore.open(str(folder / "warc"), "w1"), open_store("", folder)
    await articles.open()
    sets = SelectorStore(client, folder / "none")
    version = await sets.add_version(DOMAIN, {**life.doc, "domain": DOMAIN}, who="generator")
    await sets.activate(DOMAIN, version, who="shadow", reason="test")
    crawl = _Crawl(site, client, sets, raw, articles)  # type: ignore[arg-type]
    truths: dict[str, Truth] = {}
    changed = 0
    for number in range(pages):
        site.changes = frozenset(schedule(number, rng))
        url, truth, damaged = await crawl.page(number)
        truths[url] = truth
        told.damaged += damaged
        changed += site.touched
        told.alarm = told.alarm or (changed if crawl.alarm_after else 0)
        told.live = told.live or (changed if crawl.live_after else 0)
        if crawl.reason:
            told.results.append(f"{number + 1}: {crawl.reason}")
            crawl.reason = ""
        await _repaired(client, sets, articles, truths, folder)
    raw.close()
    history = await sets.history(DOMAIN)
    told.alarms = sum(e["what"] == "alarm: drift" for e in history)
    told.versions, told.active = (
        len(await sets.version_numbers(DOMAIN)),
        (await sets.describe(DOMAIN)).active or "",
    )
    told.wrong = [
        f"{url}: {what}"
        for url, truth in truths.items()
        for what in await _wrong(articles, url, truth)
    ]
    await articles.close()
    return told


async def _repaired(
    client: Any, sets: SelectorStore, articles: Any, truths: dict[str, Truth], folder: Path
) -> None:
    repairs = Repairs(client)
    repair = await repairs.take()
    if repair is None:
        return
    await sets.refresh()
    reader = RawStore.open(str(folder / "warc"), READER)
    since = datetime.fromtimestamp(repair.since_ms / 1000, UTC)
    await Reparser(reader, Ingest(articles), sets, Sites().for_urls(list(truths))).run(
        Choice(DOMAIN, since)
    )
    reader.close()
    await repairs.done(repair, {})


def at(start: int, *what: str, until: int = 10**6) -> Schedule:
    return lambda number, rng: set(what) if start <= number < until else set()


def rolled_out(over: int, *what: str, start: int = 60) -> Schedule:
    """From one page in ten to all of them; nothing for a while before."""
    return lambda n, rng: (
        set(what) if n >= start and rng.random() < 0.1 + 0.9 * (n - start) / over else set()
    )


CASES: dict[str, tuple[float, Schedule, int]] = {
    "the author's box alone": (0.0, at(10, "author"), 40),
    "the form of dates alone": (0.0, at(10, "dated"), 40),
    "one template of two": (0.5, at(10, "magazine"), 70),
    "slow roll-out over 150 pages": (0.0, rolled_out(150, "renamed"), 250),
    "slow roll-out of the author's box": (0.0, rolled_out(150, "author"), 250),
    "two layouts at once, half and half": (
        0.0,
        lambda number, rng: {"renamed"} if rng.random() < 0.5 else set(),
        80,
    ),
    "taken back after 30 pages": (0.0, at(10, "renamed", until=40), 90),
    "to and fro, three times": (
        0.0,
        lambda number, rng: {"renamed"} if number // 30 % 2 else set(),
        180,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "the author's box alone",
        pytest.param("one template of two", marks=pytest.mark.long),
        pytest.param("slow roll-out of the author's box", marks=pytest.mark.long),
    ],
)
async def test_change_in_part_is_seen_and_mended(
    name: str, selector_redis: Any, tmp_path: Path
) -> None:
    share, schedule, pages = CASES[name]
    told = await crawled(Changing(share), schedule, pages, selector_redis, tmp_path)
    assert told.damaged > 0 and told.wrong == [], told
    assert 0 < told.live <= 30, told


@pytest.mark.slow
async def test_each_template_has_its_byline() -> None:
    """Names stand at another place in the other template: a place on half of the
    site's pages only."""
    life = await asyncio.to_thread(live, Changing(0.5), 15)  # type: ignore[arg-type]
    assert life.state == "active" and life.doc is not None, life.reason
    assert len(life.doc["variants"]) == 2  # type: ignore[arg-type]
    assert life.right["authors"] == life.fresh == 15, life.wrong


@pytest.mark.long
@pytest.mark.slow
async def test_layout_that_was_taken_back_finds_its_old_set_again(
    selector_redis: Any, tmp_path: Path
) -> None:
    """No third version is made of what the first one reads, and nobody is asked."""
    share, schedule, pages = CASES["taken back after 30 pages"]
    told = await crawled(Changing(share), schedule, pages, selector_redis, tmp_path)
    assert (told.versions, told.active) == (2, "1"), told
    assert any("version 1 fits again" in line for line in told.results), told
    assert told.wrong == [], told


async def main() -> None:
    import redis.asyncio

    from newscrawler.frontier import redis_server

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        client = redis.asyncio.Redis.from_url(redis_server.ensure(folder))
        for number, (case, (share, schedule, pages)) in enumerate(CASES.items()):
            if len(sys.argv) > 1 and sys.argv[1] not in case:
                continue
            await client.flushall()
            told = await crawled(Changing(share), schedule, pages, client, folder / str(number))
            print(case, told, sep="\n    ", flush=True)
        await client.aclose()
        redis_server.stop(folder)


if __name__ == "__main__":
    asyncio.run(main())
