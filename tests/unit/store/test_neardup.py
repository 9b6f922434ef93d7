"""Near-duplicates: edits that are found, coincidences that are not."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newscrawler.items import Article
from newscrawler.store import near_duplicates
from newscrawler.store.fold import index_words
from newscrawler.store.sqlite import LocalStore


def words(seed: int, n: int = 400) -> list[str]:
    rng = random.Random(seed)
    return [
        f"w{int(30 * rng.paretovariate(0.9)) % 20_000 if rng.random() < 0.6 else rng.randrange(120)}"
        for _ in range(n)
    ]


def folded(text: list[str]) -> str:
    return index_words(" ".join(text)).folded


def candidate(a: list[str], b: list[str]) -> bool:
    keys = [
        set(near_duplicates.candidate_keys(near_duplicates.shingles(folded(text))))
        for text in (a, b)
    ]
    return not keys[0].isdisjoint(keys[1])


def similarity(a: list[str], b: list[str]) -> float:
    return near_duplicates.jaccard(
        near_duplicates.shingles(folded(a)), near_duplicates.shingles(folded(b))
    )


@pytest.mark.parametrize(
    "kind", ["5 % scattered", "20 % in one block", "a lead before", "last third cut"]
)
def test_edited_copies_are_found(kind: str) -> None:
    missed = []
    for seed in range(60):
        text, rng = words(seed), random.Random(seed)
        copy = list(text)
        if kind == "5 % scattered":
            for i in rng.sample(range(len(copy)), len(copy) // 20):
                copy[i] = f"n{i}"
        elif kind == "20 % in one block":
            copy[100:180] = [f"n{i}" for i in range(80)]
        elif kind == "a lead before":
            copy = [f"n{i}" for i in range(60)] + copy
        else:
            copy = copy[: len(copy) * 2 // 3]
        if not candidate(text, copy) or similarity(text, copy) < near_duplicates.SAME:
            missed.append(seed)
    assert len(missed) <= 1, missed


def test_unrelated_texts_are_not_candidates() -> None:
    keys = [
        set(near_duplicates.candidate_keys(near_duplicates.shingles(folded(words(1000 + i)))))
        for i in range(120)
    ]
    shared = sum(not a.isdisjoint(b) for i, a in enumerate(keys) for b in keys[:i])
    assert shared == 0


def test_keys_are_the_same_in_every_process_and_fit_json() -> None:
    keys = near_duplicates.candidate_keys(
        near_duplicates.shingles(folded([f"w{i}" for i in range(50)]))
    )
    assert near_duplicates.BANDS <= len(keys) == len(set(keys))
    assert len(keys) <= near_duplicates.BANDS + near_duplicates.MOST_RUNS
    assert max(keys) < 2**53
    assert keys[:2] == PINNED, (
        "stored band keys would no longer match new ones: keep the function or write a migration"
    )


PINNED = [289708972552839, 4595473681916404]


@pytest.mark.parametrize(("n", "count"), [(0, 0), (19, 0), (20, 18), (21, 19)])
def test_short_texts_have_no_shingles(n: int, count: int) -> None:
    assert len(near_duplicates.shingles(folded([f"w{i}" for i in range(n)]))) == count
    assert len(
        near_duplicates.candidate_keys(
            near_duplicates.shingles(folded([f"w{i}" for i in range(n)]))
        )
    ) == (near_duplicates.BANDS if count else 0)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="abcxyz019đ日", min_size=1, max_size=5), max_size=30))
def test_words_hash_alike_when_they_are_alike(text: list[str]) -> None:
    before = "x" * 1000
    hashes = near_duplicates._word_hashes("  ".join([before, *text])).tolist()[1:]
    assert hashes == [near_duplicates._word_hashes(word)[0] for word in text]
    assert len(set(hashes)) == len(set(text))


async def test_a_text_that_a_site_repeats_hides_no_copy(store: LocalStore) -> None:
    """600 articles with the same sixty words at the end, then an edited copy and an excerpt of two
    of them. A key of those words comes before all others in the table."""
    notice = next(
        " ".join(text)
        for text in (words(seed, 60) for seed in range(10_000, 20_000))
        if min(near_duplicates.run_keys(near_duplicates.shingles(folded(text))), default=2**53)
        < 2**53 // 500
    )
    reports = [f"{' '.join(words(i, 150))} {notice}" for i in range(600)]
    await store.put([article(i, text) for i, text in enumerate(reports)])
    edited, excerpt = reports[598].replace("w3 ", "w4 ", 2), " ".join(reports[599].split()[:120])
    await store.put([article(1_000, edited), article(1_001, excerpt)])
    for number, original in ((1_000, 598), (1_001, 599)):
        copy, first = [await store.get(article(n).id) for n in (number, original)]
        assert copy is not None and first is not None
        assert copy.cluster is not None and copy.cluster == first.cluster
    strangers = [await store.get(article(n).id) for n in range(598)]
    assert {a.cluster for a in strangers if a} == {None}


def test_a_shared_sentence_is_no_reason_to_compare_two_long_texts() -> None:
    assert not near_duplicates.may_be_excerpt(2, runs=20, other_bytes=9_000)
    assert near_duplicates.may_be_excerpt(1, runs=1, other_bytes=9_000)  # we are the excerpt
    assert near_duplicates.may_be_excerpt(1, runs=20, other_bytes=800)  # the other one is
    assert near_duplicates.may_be_excerpt(8, runs=20, other_bytes=9_000)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalStore]:
    opened = LocalStore(tmp_path / "articles.db")
    yield opened
    await opened.close()


def article(number: int, text: str = "") -> Article:
    url = f"https://a.vn/{number}"
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Article(
        id=hashlib.sha1(url.encode()).hexdigest(), url=url, site="a.vn", title=f"Bài {number}",
        content=text, published=when, fetched=when,
    )  # fmt: skip
