"""What one search may cost, and that walking once over all matches of a phrase finds the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from newscrawler.items import Article
from newscrawler.store.base import Query, QueryTooLarge
from newscrawler.store.fold import folded_words
from newscrawler.store.fulltext import search
from newscrawler.store.fulltext.folder import View
from newscrawler.store.sqlite import LocalStore

WORDS = [f"{onset}{rime}" for onset in "bcdghlmnrstvx" for rime in "aeiou"]
#: Walks over the matches of one search: 45 is the most that was seen.
MOST_WALKS = 64


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("work") / "articles.db"

    async def fill() -> None:
        rng = random.Random(7)
        made = LocalStore(path)
        await made.put([_article(i, rng) for i in range(120)])
        await made.refresh()
        await made.close()

    asyncio.run(fill())
    return path


@pytest.fixture
async def store(filled: Path) -> AsyncIterator[LocalStore]:
    store = LocalStore(filled)
    yield store
    await store.close()


def _article(number: int, rng: random.Random) -> Article:
    """Every word is in nearly every article, and half of the articles have three in a row."""
    words = rng.choices(WORDS, k=400)
    if number % 2:
        words[number : number + 3] = "ba", "ba", "be"
    return Article(
        id=f"{number:016x}",
        url=f"https://a.vn/{number}",
        site="a.vn",
        title=" ".join(rng.choices(WORDS, k=6)),
        content=" ".join(words),
    )


def nasty() -> Iterator[str]:
    pairs = [f'"{a} {b}"' for a, b in pairwise(WORDS)]
    yield " ".join(WORDS)
    yield " ".join([WORDS[0]] * 64)
    yield f'"{" ".join(WORDS)}"'
    yield " ".join(pairs)
    yield " OR ".join(WORDS)
    yield " OR ".join(pairs)
    yield WORDS[0] + "".join(f" -{pair}" for pair in pairs)
    yield " ".join(f"{word}q" for word in WORDS[:40])
    yield " ".join(f"{word}zzqx" for word in WORDS[:40])
    yield " ".join("".join(WORDS[i : i + 5]) for i in range(30))
    yield "(" * 40 + " OR ".join(WORDS[:9]) + ")" * 40


@pytest.mark.parametrize("extra", [{"facets": True}, {"collapse": True}, {"sort": "date"}])
async def test_no_query_walks_more_often_than_the_ceiling(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, extra: dict[str, object]
) -> None:
    walks = 0

    def counting(name: str) -> None:
        of_engine = getattr(View, name)

        def counted(*arguments: object, **named: object) -> object:
            nonlocal walks
            walks += 1
            return of_engine(*arguments, **named)

        monkeypatch.setattr(View, name, counted)

    for name in ("count", "best", "best_and_count", "aggregate"):
        counting(name)
    for text in nasty():
        walks = 0
        await store.search(Query(text, **extra))  # type: ignore[arg-type]
        assert 0 < walks <= MOST_WALKS, text[:60]


async def test_many_phrases_of_common_words_are_refused_by_name(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_POSITIONS", 800)
    phrases = [f'"{a} {b}"' for a, b in pairwise(WORDS)]
    for text in (
        " OR ".join(phrases[:20]),
        "ba -" + " -".join(phrases[:20]),
        " ".join(phrases[:20]),
    ):
        with pytest.raises(QueryTooLarge, match="20 phrases of words"):
            await store.search(Query(text))
    await store.search(Query(" OR ".join(phrases[:8])))
    rare = " OR ".join(f'"ba rare{i}"' for i in range(20))
    assert (await store.search(Query(rare))).total == 0


@pytest.mark.parametrize("text", ['"ba be"', "ba be", '"ba be" -"ba ba"', '"ba be" ca'])
async def test_pages_of_phrases_show_each_match_once(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    whole = await store.search(Query(text, size=100))
    expected = {h.article.id for h in whole.hits}
    if whole.total > 100:
        expected |= {h.article.id for h in (await store.search(Query(text, size=100, page=1))).hits}
    monkeypatch.setattr(search, "_KEPT", 5)
    shown: list[str] = []
    for page in range(-(-whole.total // 7)):
        found = await store.search(Query(text, size=7, page=page))
        assert found.total == whole.total and found.in_a_row == whole.in_a_row
        shown += [h.article.id for h in found.hits]
    assert len(shown) == whole.total and set(shown) == expected


async def test_what_is_counted_in_one_walk_is_what_the_texts_have(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        a.id: f" {' '.join(folded_words(a.title))} | {' '.join(folded_words(a.content))} "
        async for a in store.scan()
    }
    for kept in (5, 300):
        monkeypatch.setattr(search, "_KEPT", kept)
        for phrase in ("ba be", "ba ba be", "xu xu", "ca ce"):
            found = await store.search(Query(f'"{phrase}"', sort="date", size=100))
            assert found.total == sum(f" {phrase} " in text for text in texts.values())
            assert all(f" {phrase} " in texts[h.article.id] for h in found.hits)


async def test_the_values_of_many_matches_are_counted_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many matches only the best candidates of each part of the index are counted, each in all
    its spellings; of few every value is looked at. Both answer the same."""
    rng = random.Random(3)
    people = [f"Lê {a}{b}" for a in "BCDĐ" for b in ("an", "ơn", "ình")] * 9 + ["LE BAN", "Lê Đơn"]
    store = LocalStore(tmp_path / "articles.db")
    for start in range(0, 400, 100):  # several parts of the index
        await store.put(
            [
                Article(
                    id=f"{n:016x}",
                    url=f"https://a.vn/{n}",
                    site=f"s{n % 3}.vn",
                    title="Tin",
                    content=f"mưa {n}",
                    authors=rng.sample(people, 2),
                    section="Thời sự",
                )
                for n in range(start, start + 100)
            ]
        )
        await store.refresh()
    every = await store.facets(Query("mưa"))
    monkeypatch.setattr(search, "_FEW_MATCHES", 10)
    best = await store.facets(Query("mưa"))
    asked: list[int] = []
    aggregate = View.aggregate
    monkeypatch.setattr(View, "aggregate", lambda *args: (asked.append(1), aggregate(*args))[1])
    assert await store.facets(Query("mưa")) == best == every
    assert len(asked) == 2 and len(best["author"]) == 9 and best["section"] == {"Thời sự": 400}
    assert sum(every["site"].values()) == 400
    monkeypatch.setattr(search, "_CANDIDATES", {"size": 3, "segment_size": 3})
    few = (await store.facets(Query("mưa")))["author"]
    assert few.items() <= every["author"].items() and 3 <= len(few) < 9
    await store.close()
