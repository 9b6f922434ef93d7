"""Searches by words and by meaning: when meaning is asked, how the orders are joined, what
the answer says."""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from newscrawler.crawl.store_check import Check
from newscrawler.store.base import ArticleStore, Query, QueryError, SearchResult, StoreUnavailable
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.ladder import corrected
from newscrawler.store.query_language import parse
from newscrawler.store.semantic import fusion
from newscrawler.store.semantic.embedder import EmbedderError
from newscrawler.store.semantic.fusion import fused
from newscrawler.store.sqlite import LocalStore
from tests.semantic.small import Thesaurus, article, caught_up, open_with

COPY = "The storm came at night and took the roofs of forty houses near the river with it. " * 3


class Made:
    """A store with vectors and the embedder behind it."""

    def __init__(self, store: LocalStore | ElasticStore, embedder: Thesaurus) -> None:
        self.store, self.embedder = store, embedder

    async def search(self, text: str, **more: object) -> SearchResult:
        return await self.store.search(Query(text, **more))  # type: ignore[arg-type]

    async def titles(self, text: str, **more: object) -> list[str]:
        return [hit.article.title for hit in (await self.search(text, **more)).hits]


ARTICLES = [
    article(1, "Gold price at a record"),
    article(2, "Bullion cost climbs", site="b.vn"),
    article(3, "Giá vàng tăng", site="b.vn", keywords=["kinh tế"]),
    article(4, "Typhoon nears the coast", COPY),
    article(5, "Typhoon nears the coast, they say", COPY + " So they say.", site="b.vn"),
    article(6, "Flood after heavy rain"),
    article(7, "Club signs a keeper", published=datetime(2025, 1, 1, tzinfo=UTC)),
    article(8, "Storm warning for fishermen"),
    *(article(20 + i, f"Weather report {i}", "Cloudy with sun, all day long.") for i in range(12)),
]


async def fill(store: ArticleStore) -> None:
    await store.put(ARTICLES)
    await store.refresh()
    await store.follow()  # type: ignore[attr-defined]
    await caught_up(store, len(ARTICLES))


#: Server -> name of an index that has the articles and their vectors: filled once.
FILLED: dict[str, str] = {}


async def filled_index(server: str) -> str:
    if server not in FILLED:
        index = f"t{uuid.uuid4().hex[:12]}"
        store = ElasticStore(server, index=index, embedder=Thesaurus())
        try:
            await fill(store)
        finally:
            await store.close()
        FILLED[server] = index
    return FILLED[server]


@pytest.fixture(params=["sqlite", "elasticsearch"])
async def made(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Made]:
    embedder = Thesaurus()
    store: LocalStore | ElasticStore
    if request.param == "sqlite":
        store = open_with(tmp_path / "articles.db", embedder, deadline_s=5.0)
        await fill(store)
    else:
        url = request.getfixturevalue("elasticsearch_server")
        store = ElasticStore(url, index=await filled_index(url), embedder=embedder, query_s=30.0)
    try:
        yield Made(store, embedder)
    finally:
        await store.close()


# ------------------------------------------------------------------ pure
def test_words_count_by_what_they_weigh() -> None:
    near = [(9, 0.6), (2, 0.5), (1, 0.4)]
    order = [n for n, _ in fused([3, 1, 2], near, {1: 0.1, 2: 0.3, 3: 0.1})]
    assert order == [2, 9, 3, 1], "a third of the words outweighs a tenth of a cosine, not a rank"
    assert next(n for n, _ in fused([3], near, {3: 0.9})) == 3, (
        "most of the words, whatever is near"
    )
    assert fused([], [], {}) == [] and [n for n, _ in fused([4, 5], [], {5: 0.2})] == [5, 4]


def test_what_all_articles_of_a_small_store_share_is_no_nearness() -> None:
    assert fusion.apart([(1, 0.9), (2, 0.8), (3, 0.7)]) == [
        (1, pytest.approx(0.5)), (2, pytest.approx(0)), (3, pytest.approx(-0.5)),
    ]  # fmt: skip
    many = [(n, 0.9 - n / 1_000) for n in range(fusion.DEPTH)]
    assert fusion.apart(many) == many and fusion.apart([]) == []


def test_words_are_those_that_were_corrected() -> None:
    typed = parse(Query("giá vnàg giá covid-19"))
    settled = corrected(typed, {"vnag": "vang"})
    assert fusion.words_of(settled, typed) == ("gia", "vang", "covid", "19")


# ------------------------------------------------------------------ joined
async def test_few_hits_by_words_come_first_and_those_near_follow(made: Made) -> None:
    result = await made.search("typhoon")
    titles = [hit.article.title for hit in result.hits]
    assert {*titles[:2]} == {ARTICLES[3].title, ARTICLES[4].title}
    assert titles[2] == "Storm warning for fishermen"
    assert [hit.by_meaning for hit in result.hits[:3]] == [False, False, True]
    assert result.mode == "hybrid" and result.meaning is not None
    assert result.total == 2 + result.meaning.found
    assert (result.meaning.words, result.meaning.vectors) == (fusion.WORDS, fusion.VECTORS)
    assert "thesaurus 1" in result.meaning.model and not result.meaning.why_not


async def test_enough_hits_by_words_are_untouched(made: Made) -> None:
    by_words = await made.search("weather report", mode="keyword")
    both = await made.search("weather report")
    assert [h.article.id for h in both.hits] == [h.article.id for h in by_words.hits]
    assert both.total == by_words.total == 12 and both.mode == "keyword"
    assert not made.embedder.queries
    assert both.meaning is not None and "enough" in both.meaning.why_not


async def test_both_stores_weigh_the_words_alike(made: Made) -> None:
    """Of 20 articles two have "storm", one "roofs", none "zzzz"; fifteen are about something else."""
    result = await made.search("zzzz storm roofs", size=50)
    assert result.mode == "hybrid" and result.relaxed == "any"
    scores = {hit.article.title: hit.score for hit in result.hits}
    vector = (await made.search("zzzz storm roofs", size=50, mode="semantic")).hits
    cosines = {hit.article.title: hit.score for hit in vector}
    apart = dict(fusion.apart(list(cosines.items())))
    gained = {
        title: (scores[title] - fusion.VECTORS * apart[title]) / fusion.WORDS
        for title in scores
        if title in apart
    }
    weights = [math.log1p((20 - having + 0.5) / (having + 0.5)) for having in (0, 3, 2)]
    share = [round(weight / sum(weights), 2) for weight in weights]
    assert gained["Storm warning for fishermen"] == pytest.approx(share[1], abs=0.03)
    assert gained["Typhoon nears the coast"] == pytest.approx(share[1] + share[2], abs=0.03)
    assert gained["Flood after heavy rain"] == pytest.approx(0, abs=0.03)


async def test_where_words_had_to_be_given_up_both_orders_count(made: Made) -> None:
    text = "bullion price skyrocketing tomorrow"
    assert (await made.search(text, mode="keyword")).relaxed == "any"
    result = await made.search(text)
    assert result.mode == "hybrid" and result.relaxed == "any"
    top = {hit.article.title for hit in result.hits[:3]}
    assert top == {"Gold price at a record", "Bullion cost climbs", "Giá vàng tăng"}
    meaning = {hit.article.title: hit.by_meaning for hit in result.hits}
    assert meaning["Giá vàng tăng"] and not meaning["Bullion cost climbs"]


async def test_nothing_by_words_is_said_to_be_by_meaning(made: Made) -> None:
    # Words that no article has, of which one means something.
    result = await made.search("loan football")
    assert not (await made.search("loan football", mode="keyword")).total
    assert result.meaning is not None and result.meaning.found == result.total > 0
    assert all(hit.by_meaning for hit in result.hits)
    assert result.hits[0].article.title == "Club signs a keeper"


async def test_pages_go_to_their_total(made: Made) -> None:
    for text in ("typhoon", "bullion price skyrocketing tomorrow", "loan football"):
        whole = await made.search(text, size=100)
        ids = [hit.article.id for hit in whole.hits]
        assert len(ids) == len(set(ids)) == whole.total
        paged: list[str] = []
        for page in range(-(-whole.total // 3)):
            paged += [h.article.id for h in (await made.search(text, size=3, page=page)).hits]
        assert paged == ids


@pytest.mark.parametrize(
    ("text", "more", "why"),
    [
        ('"gold price"', {}, "a phrase"),
        ("title:typhoon", {}, "a field"),
        ("title:typhoon coast", {}, "a field"),
        ("-author:an typhoon", {}, "a field"),
        ("typhoon", {"sort": "date"}, "sorted by date"),
        ("", {}, "no words"),
        ("gia vang", {}, "without diacritics"),
    ],
)
async def test_words_alone_answer(made: Made, text: str, more: dict[str, str], why: str) -> None:
    result = await made.search(text, **more)
    by_words = await made.search(text, mode="keyword", **more)
    assert result.mode == "keyword" and result.total == by_words.total
    assert result.meaning is not None and why in result.meaning.why_not
    assert not made.embedder.queries


async def test_with_diacritics_meaning_is_asked(made: Made) -> None:
    result = await made.search("giá vàng")
    assert result.hits[0].article.title == "Giá vàng tăng" and result.mode == "hybrid"
    assert made.embedder.queries == ["giá vàng"]


# ------------------------------------------------------------------ filters
@pytest.mark.parametrize("few", [20_000, 0])
async def test_filters_hold_for_all(made: Made, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("newscrawler.store.semantic.hybrid._FILTERED", few)
    for mode in ("hybrid", "semantic"):
        titles = await made.titles("bullion price tomorrow", mode=mode, sites=("b.vn",))
        assert set(titles) <= {a.title for a in ARTICLES if a.site == "b.vn"}
        assert "Giá vàng tăng" in titles
        titles = await made.titles("bullion price tomorrow -site:b.vn", mode=mode)
        assert "Gold price at a record" in titles and "Bullion cost climbs" not in titles
        only = {"labels": (("keyword", "kinh tế"),), "mode": mode}
        assert await made.titles("bullion", **only) == ["Giá vàng tăng"]
        before = datetime(2025, 6, 1, tzinfo=UTC)
        assert await made.titles("football", mode=mode, before=before) == ["Club signs a keeper"]
        assert "Gold price at a record" not in await made.titles("bullion -record", mode=mode)


async def test_collapse_counts_a_copy_of_what_words_found_once(made: Made) -> None:
    # Words find one of the two copies, meaning the other one.
    result = await made.search("they say typhoon title:say OR title:nothing", collapse=True)
    assert result.total == len(result.hits)
    for text in ("typhoon nears", "storm", "say typhoon nears the coast they"):
        result = await made.search(text, collapse=True, size=100)
        assert result.total == len(result.hits), text
        assert sum(h.article.title.startswith("Typhoon") for h in result.hits) == 1, text


async def test_collapse_shows_copies_once(made: Made) -> None:
    for mode in ("semantic", "hybrid"):
        titles = await made.titles("storm", mode=mode, collapse=True)
        assert sum(title.startswith("Typhoon") for title in titles) == 1


# ------------------------------------------------------------------ by meaning alone
async def test_by_meaning_alone(made: Made) -> None:
    result = await made.search("bullion", mode="semantic", size=3)
    assert result.mode == "semantic"
    by_meaning = {hit.article.title: hit.by_meaning for hit in result.hits}
    assert by_meaning == {
        "Gold price at a record": True,
        "Bullion cost climbs": False,
        "Giá vàng tăng": True,
    }
    with pytest.raises(QueryError, match="words are needed"):
        await made.search("", mode="semantic")


async def test_a_store_without_vectors_refuses_meaning_alone(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "articles.db", meaning="this CPU has no avx2")
    try:
        await store.put(ARTICLES)
        await store.refresh()
        with pytest.raises(QueryError, match="no search by meaning: this CPU has no avx2"):
            await store.search(Query("gold", mode="semantic"))
        result = await store.search(Query("gold"))
        assert result.mode == "keyword" and result.meaning is None and result.total == 1
        assert await store.related(ARTICLES[0].id) == []
    finally:
        await store.close()


# ------------------------------------------------------------------ faults
async def test_a_slow_query_is_answered_by_words(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.embedder.delay_s = 60.0
    assert made.store._meaning is not None
    monkeypatch.setattr(made.store._meaning, "_deadline_s", 0.05)
    result = await made.search("typhoon")
    assert result.mode == "keyword" and result.total == 2
    assert result.meaning is not None and "within 50 ms" in result.meaning.why_not
    with pytest.raises(StoreUnavailable, match="within 50 ms"):
        await made.search("typhoon", mode="semantic")


async def test_an_embedder_that_fails_leaves_the_words(made: Made) -> None:
    for wrong in (EmbedderError("killed"), EmbedderError("away")):
        made.embedder.fails = wrong
        result = await made.search("typhoon")
        assert result.total == 2 and result.meaning is not None
        assert result.meaning.why_not == str(wrong)


async def test_an_answer_of_another_dimension_leaves_the_words(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made.embedder, "vector", lambda text: [1.0, 2.0])
    result = await made.search("typhoon")
    assert result.total == 2 and result.meaning is not None
    assert "2 numbers" in result.meaning.why_not


# ------------------------------------------------------------------ related
async def test_related_articles_are_near_and_no_copies(made: Made) -> None:
    near = await made.store.related(ARTICLES[3].id)
    titles = [one.title for one in near]
    assert titles[0] == "Storm warning for fishermen"
    assert ARTICLES[4].title not in titles, "its copy"
    to_storm = [one.title for one in await made.store.related(ARTICLES[7].id)]
    assert sum(title.startswith("Typhoon") for title in to_storm) == 1, "one of the copies"
    assert len(await made.store.related(ARTICLES[0].id, 1)) == 1
    assert await made.store.related("f" * 16) == []


async def test_the_depth_is_what_the_docs_say() -> None:
    assert (fusion.DEPTH, fusion.WORDS, fusion.VECTORS) == (100, 0.4, 1.0)


# ------------------------------------------------------------------ store check
@pytest.mark.parametrize("kind", ["sqlite", "elasticsearch"])
async def test_a_check_finds_articles_without_a_vector(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    store: LocalStore | ElasticStore
    if kind == "sqlite":
        store = open_with(tmp_path / "articles.db", Thesaurus())
    else:
        url = request.getfixturevalue("elasticsearch_server")
        store = ElasticStore(url, index=f"t{uuid.uuid4().hex[:12]}", embedder=Thesaurus())
    try:
        await store.put(ARTICLES[:3])
        assert (await Check(store, None, print).run()).faults == [
            "store: 3 of 3 articles have no vector yet"
        ]
        await store.follow()
        await caught_up(store, 3)
        assert (await Check(store, None, print).run()).faults == []
    finally:
        await store.close()
