"""Vectors beside the articles: made, replaced, removed, made anew, and nothing lost when their
maker is killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from newscrawler.store.base import Query
from newscrawler.store.semantic import follower
from newscrawler.store.semantic import matrix as matrices
from newscrawler.store.semantic.matrix import Matrix
from newscrawler.store.semantic.meaning import Meaning
from newscrawler.store.sqlite import LocalStore
from tests.semantic.small import Refuses, Thesaurus, article, caught_up, open_with

ROOT = Path(__file__).resolve().parents[2]
TITLES = ["Gold price rises", "Storm hits the coast", "Club wins again", "Bank lowers interest"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in (("PERIOD_S", 0.02), ("BUSY_S", 0.05), ("RETRY_S", 0.05)):
        monkeypatch.setattr(follower, name, value)
    monkeypatch.setitem(follower.Follower.__init__.__kwdefaults__, "period_s", 0.02)
    monkeypatch.setitem(follower.Follower.__init__.__kwdefaults__, "retry_s", 0.05)
    yield


async def filled(store: LocalStore) -> None:
    await store.put([article(i, title) for i, title in enumerate(TITLES)])
    await store.refresh()
    await store.follow()
    await caught_up(store, len(TITLES))


def meaning_of(store: LocalStore) -> Meaning:
    assert store._meaning is not None
    return store._meaning


async def found(store: LocalStore, text: str) -> list[str]:
    result = await store.search(Query(text, mode="semantic"))
    return [hit.article.title for hit in result.hits]


async def test_articles_get_vectors_in_the_background(tmp_path: Path) -> None:
    made = Thesaurus()
    store = open_with(tmp_path / "articles.db", made)
    try:
        await filled(store)
        assert (await found(store, "bullion cost"))[0] == TITLES[0]
        assert len(made.passages) == len(TITLES)
        # A change replaces, "gone" removes.
        await store.put([article(0, "Typhoon and flood")])
        await store.mark_gone([article(1, "").id])
        await caught_up(store, len(TITLES) - 1)
        assert len(made.passages) == len(TITLES) + 1
        assert (await found(store, "storm water"))[0] == "Typhoon and flood"
        assert TITLES[1] not in await found(store, "storm")
        # It comes back with the page.
        await store.put([article(1, TITLES[1])])
        await caught_up(store, len(TITLES))
        await store.refresh()
        assert TITLES[1] in await found(store, "storm")
    finally:
        await store.close()


async def test_a_change_that_is_not_in_the_text_costs_no_vector(tmp_path: Path) -> None:
    made = Thesaurus()
    store = open_with(tmp_path / "articles.db", made)
    try:
        await filled(store)
        await store.put([replace(article(0, TITLES[0]), authors=["An"])])
        await caught_up(store, len(TITLES))
        assert len(made.passages) == len(TITLES)
    finally:
        await store.close()


async def test_on_a_second_day_vectors_follow_and_none_is_made_twice(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    store = open_with(path, Thesaurus())
    await filled(store)
    await store.close()
    made = Thesaurus()
    store = open_with(path, made)
    try:
        # What was stored is offered again, one has changed, one is new, one came while nobody made
        # vectors.
        await store.put([article(i, title) for i, title in enumerate(TITLES)])
        await store.put([article(1, "Flood at the coast"), article(7, "Loan")])
        await store.refresh()
        assert (await store.stats())["vectors_behind"]
        await store.follow()
        await store.put([article(8, "Typhoon")])
        await caught_up(store, len(TITLES) + 2)
        new = sorted(text.split("\n")[0] for text in made.passages)
        assert new == ["Flood at the coast", "Loan", "Typhoon"]
        assert "Typhoon" in (await found(store, "storm"))[:2]
    finally:
        await store.close()


async def test_another_model_is_never_compared_and_made_in_the_background(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    store = open_with(path, Thesaurus())
    await filled(store)
    await store.close()
    new = Thesaurus(version="2")
    store = open_with(path, new)
    try:
        result = await store.search(Query("typhoon"))
        assert result.mode == "keyword" and result.meaning is not None
        assert "no article has a vector of this model" in result.meaning.why_not
        assert not new.queries
        await store.follow()
        await caught_up(store, len(TITLES))
        assert len(new.passages) == len(TITLES)
        assert (await found(store, "typhoon"))[0] == TITLES[1]
        async with asyncio.timeout(20):
            while True:  # the old ones go when the new ones are complete
                rows = meaning_of(store)._file._db.execute("SELECT version FROM model").fetchall()  # type: ignore[union-attr]
                if rows == [("2",)]:
                    break
                await asyncio.sleep(0.02)
    finally:
        await store.close()


async def test_other_articles_under_the_same_path_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    store = open_with(path, Thesaurus())
    await filled(store)
    await store.close()
    for file in tmp_path.iterdir():
        if file.is_file() and not file.name.startswith("articles.vectors"):
            file.unlink()
    store = open_with(path, Thesaurus())
    try:
        await store.put([article(i, f"Loan number {i}") for i in range(9)])
        await store.refresh()
        await store.follow()
        await caught_up(store, 9)
        assert all(title.startswith("Loan") for title in await found(store, "bank"))
    finally:
        await store.close()


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b""])
async def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "articles.db"
    store = open_with(path, Thesaurus())
    await filled(store)
    await store.close()
    path.with_suffix(".vectors").write_bytes(damage)
    store = open_with(path, Thesaurus())
    try:
        assert (await store.search(Query("gold"))).total == 1, "words answer meanwhile"
        await store.follow()
        await caught_up(store, len(TITLES))
    finally:
        await store.close()


async def test_a_server_that_is_away_delays_vectors_only(tmp_path: Path) -> None:
    made = Refuses()
    store = open_with(tmp_path / "articles.db", made)
    try:
        await store.follow()
        results = await store.put([article(i, title) for i, title in enumerate(TITLES)])
        assert [r.status for r in results] == ["new"] * len(TITLES)
        await store.refresh()
        async with asyncio.timeout(20):
            while not (await store.stats())["vectors_problem"]:  # noqa: ASYNC110  # no event tells it
                await asyncio.sleep(0.02)
        assert (await store.stats())["vectors_problem"] == "the server is away"
        assert (await store.search(Query("gold"))).total == 1
        made.__class__ = Thesaurus  # it comes back
        stats = await caught_up(store, len(TITLES))
        async with asyncio.timeout(20):
            while stats["vectors_problem"]:
                stats = await store.stats()
                await asyncio.sleep(0.02)
    finally:
        made.__class__ = Refuses
        await store.close()


class WrongLength(Thesaurus):
    def vector(self, text: str) -> list[float]:
        return [1.0, 2.0]


async def test_vectors_of_another_length_are_refused_and_said(tmp_path: Path) -> None:
    made = WrongLength()
    store = open_with(tmp_path / "articles.db", made)
    try:
        await store.put([article(i, title) for i, title in enumerate(TITLES)])
        await store.refresh()
        await store.follow()
        async with asyncio.timeout(30):
            while not (await store.stats())["vectors_problem"]:  # noqa: ASYNC110  # no event tells it
                await asyncio.sleep(0.02)
        stats = await store.stats()
        assert "vectors of 2 numbers, 7 are declared" in str(stats["vectors_problem"])
        assert stats["vectors"] == 0 and stats["vectors_behind"]
        assert (await store.search(Query("gold"))).total == 1, "words answer"
        made.__class__ = Thesaurus  # the right model is there again
        await caught_up(store, len(TITLES))
        assert (await found(store, "bullion cost"))[0] == TITLES[0]
    finally:
        made.__class__ = WrongLength
        await store.close()


WORKER = """
import asyncio, sys
from pathlib import Path
from newscrawler.store.semantic import follower
from newscrawler.store.semantic import matrix as matrices
from tests.semantic.small import Thesaurus, open_with
follower.BATCH = 5
class Slow(Thesaurus):
    async def passage(self, text):
        await asyncio.sleep(0.002)
        return await super().passage(text)
async def main():
    store = open_with(Path(sys.argv[1]), Slow())
    await store.follow()
    print("at it", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_killed_at_any_moment_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "articles.db"
    store = open_with(path, Thesaurus())
    many = 300
    try:
        for start in range(0, many, 100):
            await store.put([article(i, f"{TITLES[i % 4]} {i}") for i in range(start, start + 100)])
        done = [0]
        for _ in range(4):
            worker = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                WORKER,
                str(path),
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            assert worker.stdout is not None and await worker.stdout.readline()
            async with asyncio.timeout(60):
                while int((await store.stats())["vectors"] or 0) < min(done[-1] + 15, many):  # noqa: ASYNC110  # no event tells it
                    await asyncio.sleep(0)
            worker.kill()
            await worker.wait()
            done.append(int((await store.stats())["vectors"] or 0))
        assert done == sorted(done), "what was written stays"
        assert 0 < done[1] < many, "killed in the middle"
        await store.follow()
        await caught_up(store, many)
        file = meaning_of(store)._file
        assert file is not None
        sizes = {len(data) for (data,) in file._db.execute("SELECT data FROM vector")}
        assert sizes == {2 * 7}
    finally:
        await store.close()


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    one, other = Thesaurus(), Thesaurus()
    first = open_with(tmp_path / "articles.db", one)
    second = open_with(tmp_path / "articles.db", other)
    try:
        await filled(first)
        await second.follow()
        await first.put([article(9, "Flood")])
        await caught_up(second, len(TITLES) + 1)
        assert not other.passages
        await first.close()
        await second.put([article(10, "Loan")])
        await caught_up(second, len(TITLES) + 2)
        assert len(other.passages) == 1
    finally:
        await second.close()


# ------------------------------------------------------------------ the matrix
@pytest.mark.parametrize("by_signs", [False, True])
def test_eight_bits_without_the_mean_find_what_the_full_vectors_find(
    by_signs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_signs:  # as of more than 300,000, here with a tenth of them as candidates
        monkeypatch.setattr(matrices, "EXACT", 0)
        monkeypatch.setattr(matrices, "CANDIDATES", 300)
        monkeypatch.setattr(matrices, "CANDIDATES_A_HIT", 6)
    rng = np.random.default_rng(3)
    common = rng.standard_normal(384) * 2.0
    subjects = rng.standard_normal((60, 384))[rng.integers(60, size=3_000)]
    vectors = common + (subjects if by_signs else 0.0) + rng.standard_normal((3_000, 384))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    matrix = Matrix.of(range(len(vectors)), vectors)
    centred = vectors - matrix.mean
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    right = 0
    for i in range(40):
        exact = set(np.argsort(-(centred @ centred[i]))[:50].tolist())
        right += len(exact & {n for n, _ in matrix.nearest(vectors[i], 50)})
    assert right / (40 * 50) >= 0.95


@pytest.mark.parametrize("by_signs", [False, True])
def test_numbers_are_replaced_dropped_and_restricted(
    by_signs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_signs:
        monkeypatch.setattr(matrices, "EXACT", 0)
    rng = np.random.default_rng(4)
    vectors = rng.standard_normal((5_000, 8)).astype(np.float32)
    matrix = Matrix.of(range(5_000), vectors)
    assert matrix.nearest(vectors[77], 1)[0][0] == 77
    matrix.drop(77)
    matrix.put([78], vectors[77:78])
    assert matrix.nearest(vectors[77], 1)[0][0] == 78 and len(matrix) == 4_999
    assert 77 not in {n for n, _ in matrix.nearest(vectors[77], 5_000)}
    few = matrix.nearest(vectors[77], 10, among=[3, 77, 4_000, 9_999])
    assert sorted(n for n, _ in few) == [3, 4_000]
    assert matrix.nearest(vectors[0], 5, among=[]) == []
