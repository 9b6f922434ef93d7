"""When a set has stopped to fit, and what must not be taken for it: real Redis,
made observations."""

from __future__ import annotations

import json
import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from newscrawler.extraction.selectors import SelectorSet
from newscrawler.items import Article, Kind, Outcome, Visit
from newscrawler.selectorsets import keys
from newscrawler.selectorsets.drift import (
    AUTHORS,
    CONTENT,
    PUBLISHED,
    TITLE,
    WALL,
    Alarm,
    Drift,
    DriftWatch,
)
from tests.unit.selectorsets.cusum import Counter

NOON = datetime(2026, 11, 20, 5, 0, tzinfo=UTC)
ALL = TITLE | CONTENT | PUBLISHED | AUTHORS
FIELDS = {
    "title": [{"css": "h1.title"}],
    "published": [{"css": "time", "attr": "datetime"}],
    "authors": [{"css": ".author"}],
    "content": {"root": ["div.body"], "exclude": []},
}


def a_set(variants: list[dict[str, Any]] | None = None, version: int = 3) -> SelectorSet:
    return SelectorSet.from_dict(
        {
            "domain": "a.vn",
            "version": version,
            "state": "active",
            "variants": variants or [{"template": "article", "fields": FIELDS}],
            "provenance": {"made_by": "rule"},
        }
    )


def text_of(number: int, chars: int = 900) -> str:
    words = random.Random(number)
    return " ".join("".join(words.choices("abcdefghiklmnopq", k=6)) for _ in range(chars // 7))


def a_page(number: int, failing: tuple[str, ...] = (), **changes: Any) -> Visit:
    """An article as the spider makes it; ``failing``: fields that the generic chain had to find."""
    selected = {
        "title": "selector:h1.title",
        "published": "selector:time@datetime",
        "authors": "selector:.author",
        "content": changes.pop("content_origin", "selector:div.body"),
    }
    origins = {
        name: "generic:h1" if name in failing else origin for name, origin in selected.items()
    }
    fetched = NOON + timedelta(seconds=number)
    url = f"https://a.vn/bai-{number}.html"
    article = Article(
        id=f"{number:032x}",
        url=url,
        site="a.vn",
        title=f"Một tiêu đề của bài số {text_of(number, 40)}",
        content=changes.pop("content", text_of(number)),
        published=NOON,
        authors=["An"],
        origins=origins,
        confidence={**dict.fromkeys(origins, 0.95), **changes.pop("confidence", {})},
        selector_version=changes.pop("selector_version", "a.vn@3"),
        raw_ref=f"w-1.warc.gz:{number}:10",
        fetched=fetched,
    )
    return Visit(
        url=url,
        outcome=Outcome.DONE,
        kind=Kind.ARTICLE,
        site="a.vn",
        article=article,
        fetched=fetched,
    )


def a_wall(number: int, reason: str = "no content") -> Visit:
    fetched = NOON + timedelta(seconds=number)
    return Visit(
        url=f"https://a.vn/bai-{number}.html",
        outcome=Outcome.NOT_ARTICLE,
        reason=reason,
        kind=Kind.ARTICLE,
        site="a.vn",
        fetched=fetched,
        raw_ref=f"w-1.warc.gz:{number}:10",
    )


class Bench:
    def __init__(self, client: Any) -> None:
        self.drift, self.watch, self.selectors = Drift(client), DriftWatch(), a_set()
        self.alarms: list[Alarm] = []
        self.calls = 0

    async def tell(self, pages: list[Visit], at_once: int = 20) -> list[Alarm]:
        """Notes the pages, sending every ``at_once``; the alarms of these pages."""
        before = len(self.alarms)
        for start in range(0, len(pages), at_once):
            for page in pages[start : start + at_once]:
                self.watch.note(page, self.selectors)
            self.alarms += await self.drift.send(self.watch.take())
            self.calls += 1
        return self.alarms[before:]

    def what(self) -> list[str]:
        return [a.what for a in self.alarms]


@pytest.fixture
def bench(selector_redis: Any) -> Bench:
    return Bench(selector_redis)


@pytest.mark.parametrize("field", ["title", "content", "published", "authors"])
@pytest.mark.parametrize("at_once", [1, 20])
async def test_alarm_within_eight_failing_pages(bench: Bench, field: str, at_once: int) -> None:
    assert await bench.tell([a_page(i) for i in range(60)]) == []
    for number in range(60, 68):
        await bench.tell([a_page(number, (field,))], at_once)
        if bench.alarms:
            break
    assert [(a.what, a.field, a.template) for a in bench.alarms] == [("drift", field, "article")]
    assert number - 59 <= 8
    assert bench.alarms[0].onset_ms == round((NOON + timedelta(seconds=60)).timestamp() * 1000)


async def test_a_set_that_failed_from_its_first_page_is_seen_too(bench: Bench) -> None:
    await bench.tell(
        [a_page(i, ("title", "content"), selector_version=None) for i in range(0, 120, 10)]
    )
    assert "drift" in bench.what()


async def test_one_alarm_then_ready_then_nothing_until_it_is_handled(bench: Bench) -> None:
    await bench.tell([a_page(i) for i in range(40)])
    await bench.tell([a_page(i, ("title", "content")) for i in range(40, 100)])
    assert bench.what() == ["drift", "ready"]
    evidence = await bench.drift.evidence("a.vn")
    assert len(evidence.failing) == 24 and evidence.failing[0][0].endswith("bai-40.html")
    assert evidence.good == [], "what was good before the change says nothing of the new layout"
    await bench.drift.reset("a.vn", 4)
    assert await bench.tell([a_page(i, ("title",)) for i in range(100, 140)]) == [], (
        "pages of the old set do not count"
    )


@pytest.mark.long
async def test_ten_thousand_stable_pages_with_noise_raise_nothing(bench: Bench) -> None:
    """5 % of the pages fail in a random field, another 5 % in two."""
    seed = 20261121
    rng = random.Random(seed)

    def page(number: int) -> Visit:
        drawn = rng.random()
        failing = rng.sample(["title", "content", "published", "authors"], 2 if drawn < 0.05 else 1)
        return a_page(number, tuple(failing) if drawn < 0.10 else ())

    await bench.tell([page(i) for i in range(10_000)], at_once=50)
    assert bench.alarms == [], f"seed {seed}: {bench.alarms}"
    assert bench.calls == 200
    assert await bench.drift.client.hlen(keys.watched_pages("a.vn")) < 40, (
        "failures of long ago are kept"
    )


@pytest.mark.long
async def test_odd_template_of_a_tenth_of_the_pages_raises_nothing(bench: Bench) -> None:
    rng = random.Random(5)
    failing = ("title", "content", "published", "authors")
    await bench.tell([a_page(i, failing if rng.random() < 0.1 else ()) for i in range(5_000)])
    assert bench.alarms == []


async def test_storm_of_block_pages_is_an_alarm_of_its_own(bench: Bench) -> None:
    await bench.tell([a_page(i) for i in range(40)])
    await bench.tell([a_wall(i) for i in range(40, 90)])
    assert [(a.what, a.fails <= 8) for a in bench.alarms] == [("blocked", True)]
    await bench.tell([a_page(i) for i in range(90, 200)])
    assert bench.what() == ["blocked", "open"]
    assert (await bench.drift.report("a.vn"))["alarm"] is None


async def test_block_page_that_looks_like_an_article_is_known_by_its_sameness(bench: Bench) -> None:
    await bench.tell([a_page(i) for i in range(40)])
    for number in range(40, 90):
        page = a_page(number, ("title", "content", "published", "authors"))
        assert page.article
        page.article.title = "Your access is limited"
        page.article.content = (
            f"Please wait while we check your browser. Request {number:08x}. " * 5
        )
        await bench.tell([page])
    assert "drift" not in bench.what() and "blocked" in bench.what()


async def test_layout_change_behind_a_storm_waits_for_its_end(bench: Bench) -> None:
    await bench.tell([a_page(i) for i in range(40)])
    mixed = [a_wall(i) if i % 2 else a_page(i, ("title", "content")) for i in range(40, 90)]
    await bench.tell(mixed)
    assert bench.what() == ["blocked"]
    await bench.tell([a_page(i, ("title", "content")) for i in range(90, 130)])
    assert "drift" in bench.what()


@pytest.mark.parametrize(
    "wrong",
    [
        {"confidence": {"title": 0.5}},  # extraction lowered it: a witness says otherwise
        {"content": "Cùng một hộp chữ trên mọi trang. " * 40},
        {"content": "x" * 40_000},
        {"content": "Chỉ còn câu dẫn của bài mà thôi."},
    ],
    ids=["contradicted", "the same text everywhere", "far too long", "far too short"],
)
async def test_wrong_value_found_by_the_set_itself_is_a_failure(
    bench: Bench, wrong: dict[str, Any]
) -> None:
    await bench.tell([a_page(i) for i in range(60)])
    assert bench.alarms == []
    changed = [a_page(i, **{k: (f"{v} {i}" if len(v) < 60 or len(v) > 9000 else v) if isinstance(v, str) else v
                            for k, v in wrong.items()}) for i in range(60, 70)]  # fmt: skip
    await bench.tell(changed)
    assert bench.what() == ["drift"]


async def test_revisits_of_one_bad_page_are_one_failure(bench: Bench) -> None:
    await bench.tell([a_page(i) for i in range(40)])
    await bench.tell([a_page(40, ("title", "content")) for _ in range(30)], at_once=1)
    assert bench.alarms == []


async def test_pages_without_authors_are_learnt_as_usual(bench: Bench) -> None:
    rng = random.Random(3)
    await bench.tell([a_page(i, ("authors",) if rng.random() < 0.3 else ()) for i in range(3_000)])
    assert bench.alarms == []
    await bench.tell([a_page(i, ("authors",)) for i in range(3_000, 3_020)])
    assert bench.what()[0] == "drift", "and their total loss is still seen"


async def test_each_variant_has_sums_of_its_own(bench: Bench) -> None:
    second = {
        "template": "magazine",
        "fields": {**FIELDS, "content": {"root": ["div.long"], "exclude": []}},
    }
    bench.selectors = a_set([{"template": "article", "fields": FIELDS}, second])
    await bench.tell(
        [
            a_page(i, content_origin="selector:div.long" if i % 3 else "selector:div.body")
            for i in range(90)
        ]
    )
    await bench.tell(
        [a_page(i, ("title",) if i % 3 else (), content_origin="selector:div.long" if i % 3 else "selector:div.body")
         for i in range(90, 130)]
    )  # fmt: skip
    first = bench.alarms[0]
    assert (first.what, first.template, first.field) == ("drift", "magazine", "title")
    fields = {(f["template"], f["field"]): f for f in (await bench.drift.report("a.vn"))["fields"]}
    assert fields["article", "title"]["sum"] == 0


async def test_pages_that_no_variant_fits_count_against_the_whole_set(bench: Bench) -> None:
    second = {
        "template": "magazine",
        "fields": {**FIELDS, "content": {"root": ["div.long"], "exclude": []}},
    }
    bench.selectors = a_set([{"template": "article", "fields": FIELDS}, second])
    await bench.tell([a_page(i) for i in range(60)])
    await bench.tell([a_page(i, ("title", "content")) for i in range(60, 70)])
    assert [(a.what, a.template) for a in bench.alarms] == [("drift", "*")]


async def test_many_workers_add_up(selector_redis: Any) -> None:
    workers = [Bench(selector_redis) for _ in range(8)]
    for number in range(64):
        await workers[number % 8].tell([a_page(number)])
    for number in range(64, 72):
        await workers[number % 8].tell([a_page(number, ("content",))])
    assert [a.what for w in workers for a in w.alarms] == ["drift"]


async def failed_share(bench: Bench) -> float:
    """Of the field content, as a person is shown it."""
    (row,) = [f for f in (await bench.drift.report("a.vn"))["fields"] if f["field"] == "content"]
    return float(row["failed"] / row["pages"])


async def pages_until_the_alarm(bench: Bench, start: int) -> int:
    for number in range(start, start + 40):
        if await bench.tell([a_page(number, ("content",))]):
            return number - start + 1
    raise AssertionError("40 failing pages in a row raised no alarm")


@pytest.mark.parametrize("learn", [True, False])
async def test_kept_set_learns_its_odd_pages_and_a_failed_job_does_not(
    bench: Bench, learn: bool
) -> None:
    """Both need new failures for the next alarm; of a set that was kept the failures of
    before count as usual."""
    await bench.tell([a_page(i) for i in range(100)])
    first = await pages_until_the_alarm(bench, 100)
    await bench.tell([a_page(i, ("content",)) for i in range(140, 180)])
    await bench.drift.rearm("a.vn", learn=learn)
    assert (await bench.drift.report("a.vn"))["alarm"] is None
    assert await bench.drift.client.exists(keys.watched_pages("a.vn")) == 0
    learnt, again = await failed_share(bench), await pages_until_the_alarm(bench, 200)
    assert again >= first == 7
    assert learnt > 0.05 if learn else learnt < 0.01, learnt


async def test_python_and_lua_count_alike(selector_redis: Any) -> None:
    drift, rng = Drift(selector_redis), random.Random(11)
    mine = {name: Counter.of(name) for name in ("title", "content", "published", "authors")}
    shares = {"title": 0.02, "content": 0.1, "published": 0.25, "authors": 0.4}
    bits = {"title": TITLE, "content": CONTENT, "published": PUBLISHED, "authors": AUTHORS}
    for start in range(0, 600, 40):
        rows = []
        for number in range(start, start + 40):
            failed = {name for name, share in shares.items() if rng.random() < share}
            for name, counter in mine.items():
                counter.step(name in failed, number)
            good = sum(bit for name, bit in bits.items() if name not in failed)
            rows.append(["t", ALL, good, 1, f"u{number}", "", "", number])
        alarms = await drift.send({"b.vn": (1, rows)})
        if any(a.what == "drift" for a in alarms):
            await drift.client.hdel(
                keys.watch("b.vn"), "alarm"
            )  # counted on, as the Python sums are
    raw = json.loads(await selector_redis.hget(keys.watch("b.vn"), "c"))
    for name, counter in mine.items():
        theirs = raw[f"t|{name}"]
        assert theirs["s"] == pytest.approx(counter.s, abs=1e-6), name
        assert (theirs["n"], theirs["k"]) == pytest.approx((counter.n, counter.k)), name


async def test_a_run_of_good_pages_is_one_row(bench: Bench) -> None:
    for number in range(50):
        bench.watch.note(a_page(number), bench.selectors)
    ((version, rows),) = bench.watch.take().values()
    assert (version, len(rows), rows[0][3]) == (3, 1, 50)


def test_list_pages_and_pages_read_by_an_older_set_say_nothing() -> None:
    watch = DriftWatch()
    home = Visit(
        url="https://a.vn/", outcome=Outcome.DONE, kind=Kind.HOME, site="a.vn", fetched=NOON
    )
    watch.note(home, a_set())
    watch.note(a_page(1, ("title",), selector_version="a.vn@2"), a_set())
    other = a_wall(2, "video")
    watch.note(other, a_set())
    assert watch.take() == {}
    watch.note(a_wall(3), a_set())
    assert watch.take()["a.vn"][1][0][0] == WALL


def test_pages_on_their_way_when_a_set_becomes_active_do_not_count() -> None:
    watch = DriftWatch()
    watch.note(a_page(0, ("title", "content"), selector_version=None), a_set())
    watch.note(a_page(1, ("title", "content"), selector_version=None), a_set())
    assert watch.take() == {}
    watch.note(a_page(60, ("title", "content"), selector_version=None), a_set())
    assert watch.take()


def test_a_page_costs_less_than_twenty_microseconds() -> None:
    selectors, pages = a_set(), [a_page(i, ("title",) if i % 20 == 0 else ()) for i in range(2_000)]
    best = 1.0
    for _ in range(3):
        watch = DriftWatch()
        start = time.process_time()
        for page in pages:
            watch.note(page, selectors)
        best = min(best, (time.process_time() - start) / len(pages))
        assert watch.waiting
    assert best < 20e-6, f"{best * 1e6:.1f} us"
