"""The table "status or error -> outcome, tries, delay" of docs/frontier.md, row by
row on a real Redis."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from newscrawler.fetch.client import FetchFailed, FetchRefused
from newscrawler.frontier.queue import RobotsAnswer
from newscrawler.items import Kind, Outcome
from newscrawler.web.outcomes import judge_error, judge_status
from tests.redis.helpers import advance, check, done, ended, frontier, link

#: The contract of docs/frontier.md.
REDIS_VERSIONS = ("6.2", "7")

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
DELAY = 5 * SECOND
PAGE = Path(__file__).resolve().parents[2] / "docs" / "frontier.md"


class Visit:
    """One visit of one URL, and what came of it."""

    def __init__(self, r: Any, f: Any) -> None:
        self.r, self.f = r, f
        self.link = link("/x")

    @classmethod
    async def make(cls, r: Any, kind: Kind = Kind.ARTICLE, **changes: Any) -> Visit:
        await r.flushall()
        visit = cls(r, await frontier(r, floor_ms=DELAY, **changes))
        visit.link = link("/x", kind=kind)
        await visit.f.add([visit.link])
        return visit

    async def end(
        self,
        outcome: Outcome,
        *,
        fetched: int | None = 200,
        retry_after_s: float | None = None,
        **ack: Any,
    ) -> None:
        await advance(self.r, 30 * DAY)
        (lease,) = (await self.f.step(1)).leases
        ends = [] if fetched is None else [ended(lease, fetched, retry_after_s=retry_after_s)]
        ack.setdefault("retry_after_s", retry_after_s)
        assert not (await self.f.step(0, [done(lease, outcome, **ack)], ends)).rejected
        await check(self.r)

    async def record(self) -> Any:
        return await self.f.record(self.link.url_id, "a.vn")

    async def again_in(self) -> int | None:
        """Ms until the URL is fetched again; None = not by itself."""
        record = await self.record()
        if record is None or record.state not in ("queued", "waiting"):
            return None
        return max(0, (record.due_ms or 0) - await self.f.operator.now_ms())

    async def gate(self) -> tuple[int, str]:
        """Ms that the domain is closed, and why."""
        row = (await self.f.report())["domains"][0]
        return row["wait_ms"], row["note"]


def about(value: int | None, expected: int) -> bool:
    return value is not None and expected - 3 * SECOND < value <= expected * 1.1 + SECOND


async def delay_only(visit: Visit) -> None:
    wait, note = await visit.gate()
    assert about(wait, DELAY) and note == ""


async def backed_off(visit: Visit, least_ms: int = MINUTE) -> None:
    wait, note = await visit.gate()
    assert about(wait, least_ms) and note == "back-off"


async def ok(r: Any) -> None:
    for status in (200, 203, 206):
        assert judge_status(status) == (Outcome.DONE, "")
    for outcome in (Outcome.DONE, Outcome.UNCHANGED, Outcome.NOT_ARTICLE):
        visit = await Visit.make(r)
        await visit.end(outcome)
        record = await visit.record()
        assert (record.outcome, record.tries, await visit.again_in()) == (outcome, 0, None)
        await delay_only(visit)
    visit = await Visit.make(r, Kind.HOME)
    await visit.end(Outcome.DONE)
    assert about(await visit.again_in(), 15 * MINUTE), "list pages after their interval"
    visit = await Visit.make(r)
    await visit.end(Outcome.DONE, next_visit_ms=await visit.f.operator.now_ms() + 31 * DAY)
    assert about(await visit.again_in(), DAY)


async def no_content(r: Any) -> None:
    for status in (204, 205):
        outcome, reason = judge_status(status)
        assert outcome is Outcome.NOT_ARTICLE
        visit = await Visit.make(r)
        await visit.end(outcome, reason=reason, status=status, fetched=status)
        assert await visit.again_in() is None
        await delay_only(visit)


async def not_modified(r: Any) -> None:
    assert judge_status(304) == (Outcome.UNCHANGED, "")
    visit = await Visit.make(r, Kind.SECTION)
    await visit.end(Outcome.DONE, etag='"1"', digest=b"d" * 16, content_state=b"l" * 16)
    await visit.end(Outcome.UNCHANGED, status=304, fetched=304)
    record = await visit.record()
    assert (record.tries, record.etag, record.digest, record.content_state) == (
        0,
        '"1"',
        b"d" * 16,
        b"l" * 16,
    )
    assert about(await visit.again_in(), 30 * MINUTE)
    await delay_only(visit)


async def redirected(r: Any) -> None:
    for status in (301, 302, 303, 307, 308):
        assert judge_status(status) == (Outcome.REDIRECTED, "")
    visit = await Visit.make(r)
    await visit.end(Outcome.REDIRECTED, status=301, fetched=301, links=[link("/target")])
    record = await visit.record()
    assert (record.outcome, record.tries, await visit.again_in()) == (Outcome.REDIRECTED, 0, None)
    assert (await visit.f.record(link("/target").url_id, "a.vn")).state == "queued"
    await delay_only(visit)
    visit = await Visit.make(r, Kind.HOME)
    await visit.end(Outcome.REDIRECTED, status=301, fetched=301)
    assert about(await visit.again_in(), 15 * MINUTE)


async def moved(r: Any) -> None:
    visit = await Visit.make(r)
    await visit.end(Outcome.RETRY, reason="moved", fetched=301, moved_to="http://a.vn/y")
    record = await visit.record()
    assert (record.url, record.tries, await visit.again_in()) == ("http://a.vn/y", 1, 0)
    await delay_only(visit)


async def gone(r: Any) -> None:
    for status in (404, 410):
        outcome, _ = judge_status(status)
        visit = await Visit.make(r)
        await visit.end(outcome, status=status, fetched=status)
        record = await visit.record()
        assert (record.outcome, record.tries, await visit.again_in()) == (Outcome.GONE, 0, None)
        await delay_only(visit)
        visit = await Visit.make(r, Kind.FEED)
        await visit.end(outcome, status=status, fetched=status)
        assert about(await visit.again_in(), 30 * DAY)


async def server_error(r: Any) -> None:
    for status in (401, 403, 407, 408, 409, 421, 423, 425, 451, 500, 502, 504, 599):
        assert judge_status(status) == (Outcome.RETRY, f"status {status}")
    visit = await Visit.make(r, max_tries=15)
    for tries, minutes in enumerate((1, 4, 16, 64, 256, 360, 360), 1):
        await visit.end(Outcome.RETRY, reason="status 500", status=500, fetched=500)
        record = await visit.record()
        assert (record.outcome, record.tries) == (Outcome.RETRY, tries)
        assert about(await visit.again_in(), minutes * MINUTE)
        await delay_only(visit)


async def unavailable(r: Any) -> None:
    assert judge_status(503) == (Outcome.RETRY, "status 503")
    visit = await Visit.make(r, max_tries=15)
    for tries, minutes in ((1, 1), (2, 4)):
        await visit.end(Outcome.RETRY, reason="status 503", status=503, fetched=503)
        assert (await visit.record()).tries == tries
        assert about(await visit.again_in(), minutes * MINUTE)
        await delay_only(visit)
    await visit.end(Outcome.RETRY, reason="status 503", status=503, fetched=503)
    await backed_off(visit)


async def busy(r: Any) -> None:
    for status in (429, 503):
        assert judge_status(status) == (Outcome.RETRY, f"status {status}")
        visit = await Visit.make(r)
        await visit.end(
            Outcome.RETRY,
            reason=f"status {status}",
            status=status,
            fetched=status,
            retry_after_s=600,
        )
        assert (await visit.record()).tries == 1
        assert about(await visit.again_in(), 10 * MINUTE), "not before Retry-After"
        await backed_off(visit, 10 * MINUTE)
    visit = await Visit.make(r)
    await visit.end(Outcome.RETRY, reason="status 429", status=429, fetched=429)
    assert about(await visit.again_in(), MINUTE)
    await backed_off(visit)


async def no_answer(r: Any) -> None:
    for error in (
        TimeoutError(),
        ConnectionResetError(),
        FetchFailed("http://a.vn/", "no such name", "dns"),
        FetchFailed("http://a.vn/", "answer broke off", "truncated"),
    ):
        outcome, reason = judge_error(error)
        assert outcome is Outcome.RETRY and reason
        visit = await Visit.make(r, max_tries=15)
        for tries, minutes in ((1, 1), (2, 4)):
            await visit.end(outcome, reason=reason, status=0, fetched=0)
            assert (await visit.record()).tries == tries
            assert about(await visit.again_in(), minutes * MINUTE)
            await delay_only(visit)
        await visit.end(outcome, reason=reason, status=0, fetched=0)
        await backed_off(visit)


async def challenged(r: Any) -> None:
    visit = await Visit.make(r)
    await visit.end(Outcome.CHALLENGE, reason="cloudflare", status=403, fetched=403)
    record = await visit.record()
    assert (record.outcome, record.tries) == (Outcome.CHALLENGE, 1)
    assert about(await visit.again_in(), 6 * HOUR)
    await delay_only(visit)


async def refused_by_rule(r: Any) -> None:
    for word in ("type", "size", "ssrf", "trap", "noindex", "age", "scheme", "quota"):
        outcome, reason = judge_error(FetchRefused("http://a.vn/", "no", word))
        assert (outcome, reason) == (Outcome.REFUSED, word)
    visit = await Visit.make(r)
    await visit.end(Outcome.REFUSED, reason="size")
    record = await visit.record()
    assert (record.outcome, record.tries, await visit.again_in()) == (Outcome.REFUSED, 0, None)
    await delay_only(visit)
    visit = await Visit.make(r, Kind.SECTION)
    await visit.end(Outcome.REFUSED, reason="type")
    assert about(await visit.again_in(), DAY)


async def refused_by_robots(r: Any) -> None:
    visit = await Visit.make(r, obey_robots=True)

    async def read_rules(body: bytes) -> None:
        (robots,) = (await visit.f.step(1)).leases
        assert robots.kind == Kind.ROBOTS
        await visit.f.step(0, [done(robots, robots=RobotsAnswer(200, body))], [ended(robots)])
        await advance(r, DELAY + 1)

    await read_rules(b"Disallow: /x")
    (lease,) = (await visit.f.step(1)).leases
    await visit.f.step(
        0, [done(lease, Outcome.REFUSED, reason="robots", status=0)]
    )  # it was not asked for
    assert (await visit.record()).tries == 0
    assert (await visit.gate())[0] == 0, "nothing was asked of the site"
    assert (await visit.f.add([visit.link])).seen == 1
    await advance(r, DAY + MINUTE)
    await visit.f.add([link("/other")])
    await read_rules(b"Allow: /x")
    visit.f.local.clear()
    assert (await visit.f.add([visit.link])).added == 1, "offered again when robots.txt has changed"


async def failed(r: Any) -> None:
    for status in (400, 405, 406, 414, 418, 422):
        assert judge_status(status) == (Outcome.FAILED, f"status {status}")
    visit = await Visit.make(r)
    await visit.end(Outcome.FAILED, reason="status 418", status=418, fetched=418)
    assert (await visit.record()).state == "quarantined" and await visit.again_in() is None
    visit = await Visit.make(r, max_tries=3)
    for _ in range(3):
        await visit.end(Outcome.RETRY, reason="status 500", status=500, fetched=500)
    (entry,) = await visit.f.operator.quarantined()
    assert entry.url == visit.link.url and (await visit.record()).outcome is Outcome.FAILED
    await advance(r, 7 * DAY - HOUR)
    visit.f.local.clear()
    assert (await visit.f.add([visit.link])).added == 0
    await advance(r, HOUR + MINUTE)
    assert (await visit.f.add([visit.link])).added == 1, "or an offer after 7 days"
    visit = await Visit.make(r, Kind.HOME, max_tries=2)
    for _ in range(3):
        await visit.end(Outcome.RETRY, reason="status 500", status=500, fetched=500)
    assert about(await visit.again_in(), 6 * HOUR), "list pages never end there"


async def poison(r: Any) -> None:
    from newscrawler.frontier import keys

    visit = await Visit.make(r)
    await r.hset(keys.records(0, "a.vn"), visit.link.url_id, b"\x09" + bytes(60))
    await advance(r, DAY)
    assert (await visit.f.step(1)).leases == []
    (entry,) = await visit.f.operator.quarantined()
    assert (entry.reason, entry.url) == ("poison", None)


async def store_away(r: Any) -> None:
    visit = await Visit.make(r)
    (lease,) = (await visit.f.step(1)).leases
    await visit.f.give_back([lease], [ended(lease)])
    record = await visit.record()
    assert (record.state, record.tries, record.outcome, await visit.again_in()) == (
        "queued",
        0,
        None,
        0,
    )
    await delay_only(visit)


async def worker_dies(r: Any) -> None:
    from tests.redis.helpers import run_out

    visit = await Visit.make(r)
    (lease,) = (await visit.f.step(1)).leases
    await run_out(r, lease)
    await visit.f.step(0)
    record = await visit.record()
    assert (record.state, record.tries, record.crashes) == ("queued", 0, 1)
    await delay_only(visit)


Row = Callable[[Any], Awaitable[None]]
#: First cell of the table -> its test.
ROWS: dict[str, Row] = {
    "200, 203, 206": ok,
    "204, 205": no_content,
    "304": not_modified,
    "301, 302, 303, 307, 308": redirected,
    "the same to another spelling of the URL": moved,
    "404, 410": gone,
    "401, 403, 407, 408, 409, 421, 423, 425, 451, 5xx": server_error,
    "429, 503 with Retry-After": busy,
    "503 without Retry-After": unavailable,
    "timeout, reset, refused connection, no DNS, an answer that breaks off": no_answer,
    "challenge page, captcha": challenged,
    "refused by rule: type, size, ssrf, trap, noindex, age, scheme": refused_by_rule,
    "refused by robots.txt": refused_by_robots,
    "tries spent (`FRONTIER_MAX_TRIES`), other 4xx": failed,
    "a record that cannot be read": poison,
    "store away": store_away,
    "the worker dies": worker_dies,
}


@pytest.mark.parametrize("name", ROWS)
async def test_row(r: Any, name: str) -> None:
    await ROWS[name](r)


def test_every_row_of_the_table_has_its_test() -> None:
    section = (
        PAGE.read_text(encoding="utf-8").split("## Status or error", 1)[1].split("\n## ", 1)[0]
    )
    rows = re.findall(r"^\| ([^|]+?) \|", section, re.M)
    assert rows[0] == "answer" and set(rows[1:]) - {"---", "|---"} == set(ROWS)
