"""Keys of near-duplicates on their way into their tree: always found, exactly as long as their
article has them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from newscrawler.store import codec
from newscrawler.store.near_duplicates import candidate_keys, shingles_of
from newscrawler.store.sqlite import schema
from newscrawler.store.sqlite.bands import Bands
from newscrawler.store.sqlite.write import Writer
from newscrawler.store.transaction import immediate
from tests.contract.articles import article

KEYS = 1 << 53
ROUND, GATHERED = 64, 8


class Undone(Exception):
    pass


class Model:
    """What should be found, and processes that write in turns."""

    def __init__(self, path: Path, seed: int, writers: int = 2, most: int = 24) -> None:
        self.path, self.rng = path, random.Random(seed)
        schema.connect(path, create=True).close()
        self.pool = [self.rng.randrange(KEYS) for _ in range(300)]  # several articles have some
        self.of: dict[int, list[int]] = {}
        self.next = 1
        self.most = most  # changes of a transaction
        self.writers = [self.opened() for _ in range(writers)]

    def opened(self) -> tuple[apsw.Connection, Bands]:
        db = schema.connect(self.path, create=False)
        db.execute("PRAGMA synchronous = OFF")
        return db, Bands(db, ROUND, GATHERED)

    def some_keys(self) -> list[int]:
        own = [self.rng.randrange(KEYS) for _ in range(self.rng.randrange(8))]
        return list(dict.fromkeys(own + self.rng.sample(self.pool, self.rng.randrange(6))))

    def transaction(self) -> None:
        turn = self.rng.randrange(len(self.writers))
        db, bands = self.writers[turn]
        kept, next_n = {n: list(keys) for n, keys in self.of.items()}, self.next
        end = self.rng.random()
        try:
            with immediate(db):
                bands.begin()
                for _ in range(self.rng.randrange(1, self.most + 1)):
                    self.change(bands)
                bands.end()
                if end < 0.15:
                    raise Undone
        except Undone:
            self.of, self.next = kept, next_n
            if end < 0.05:  # killed, and another starts
                db.close()
                self.writers[turn] = self.opened()
            else:
                bands.undone()
        else:
            if end < 0.2:  # the next one could not begin
                bands.undone()

    def change(self, bands: Bands) -> None:
        self.look(bands, self.some_keys())
        kind = self.rng.random()
        if kind < 0.8 or not self.of:
            keys, n = self.some_keys(), self.next
            self.next += 1
            bands.add(n, keys)
            self.of[n] = keys
            return
        recent = self.rng.random() < 0.5
        n = max(self.of) if recent else self.rng.choice(list(self.of))
        bands.forget(n, self.of[n])
        del self.of[n]
        if kind < 0.9:
            self.of[n] = self.some_keys()
            bands.write(n, self.of[n])

    def look(self, bands: Bands, keys: list[int]) -> None:
        found = bands.holders(keys)
        assert {key: sorted(having) for key, having in found.items()} == {
            key: sorted(n for n, of in self.of.items() if key in of) for key in keys
        }

    def look_at_all(self) -> None:
        another = self.opened()
        for db, bands in (*self.writers, another):
            with immediate(db):
                bands.begin()
                for start in range(0, len(self.pool), 50):
                    self.look(bands, self.pool[start : start + 50])
                for keys in self.of.values():
                    self.look(bands, keys)
        another[0].close()


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Callable[..., Model]]:
    made: list[Model] = []

    def make(seed: int, **options: int) -> Model:
        made.append(Model(tmp_path / "articles.db", seed, **options))
        return made[-1]

    yield make
    for db, _ in made[0].writers:
        db.close()


@pytest.mark.parametrize("seed", range(2))
def test_what_articles_have_is_found_whoever_wrote_it(
    model: Callable[..., Model], seed: int
) -> None:
    made = model(seed)
    for turn in range(30):
        made.transaction()
        if turn % 10 == 9:
            made.look_at_all()
    check_whole(made)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("writers", [2, 3, 4])
def test_small_batches_of_several_processes_lose_nothing(
    model: Callable[..., Model], writers: int, seed: int
) -> None:
    """A process that wrote long ago finds the position several borders on."""
    made = model(seed, writers=writers, most=3)
    while made.next <= 5 * ROUND:
        made.transaction()
    made.look_at_all()
    check_whole(made)


def check_whole(made: Model) -> None:
    assert made.next > 3 * ROUND, "the position has come round several times"
    db = made.writers[0][0]
    in_tree = set(db.execute("SELECT key, n FROM band").fetchall())
    assert in_tree <= {(key, n) for n, keys in made.of.items() for key in keys}, "nothing is left"
    waiting = db.execute("SELECT count(*) FROM band_fresh").get
    assert waiting <= ROUND + 2 * GATHERED + made.most, "what has been written is kept once"
    assert len(in_tree) > 0.7 * sum(map(len, made.of.values()))


def test_neighbours_are_written_together(tmp_path: Path) -> None:
    """What makes it cheap: at each border one segment of the space of keys is written."""
    db = schema.connect(tmp_path / "articles.db", create=True)
    db.execute("PRAGMA synchronous = OFF")
    bands, rng = Bands(db, ROUND, GATHERED), random.Random(1)
    tree: set[Any] = set()
    for n in range(1, 5 * ROUND + 1):
        with immediate(db):
            bands.begin()
            bands.add(n, [rng.randrange(KEYS) for _ in range(30)])
            bands.end()
        written = db.execute("SELECT count(*) FROM band").get - len(tree)
        if n % GATHERED:
            assert not written
            continue
        assert written
        before, tree = tree, {key for (key,) in db.execute("SELECT key FROM band")}
        segments = {key * (ROUND // GATHERED) // KEYS for key in tree - before}
        assert len(segments) == 1
    assert 150 <= written <= 350, "about as many as came"
    assert db.execute("SELECT count(*) FROM band").get > 30 * (5 * ROUND - 0.7 * ROUND)
    assert db.execute("SELECT count(*) FROM band_fresh").get <= ROUND + 2 * GATHERED
    db.close()


def test_a_change_by_another_process_costs_no_new_reading(tmp_path: Path) -> None:
    rng = random.Random(1)
    keys = {n: [rng.randrange(KEYS) for _ in range(30)] for n in range(1, 401)}
    dbs = [schema.connect(tmp_path / "articles.db", create=True) for _ in range(2)]
    first, second = (Bands(db) for db in dbs)
    steps = 0

    def stepped() -> bool:
        nonlocal steps
        steps += 1
        return False

    dbs[1].set_progress_handler(stepped, 1)
    with immediate(dbs[0]):
        first.begin()
        for n, of in keys.items():
            first.add(n, of)
        first.end()
    with immediate(dbs[1]):
        second.begin()
    reading, steps = steps, 0
    assert reading > 1_000
    for n in range(1, 4):
        with immediate(dbs[0]):
            first.begin()
            first.forget(n, keys[n])
            first.end()
        with immediate(dbs[1]):
            second.begin()
            assert steps < 100, "the rows are known"
            assert not any(second.holders(keys[n]).values())
            assert all(having == [n + 10] for having in second.holders(keys[n + 10]).values())
        steps = 0
    for db in dbs:
        db.close()


def test_a_program_of_schema_7_that_had_the_file_open_does_no_harm(tmp_path: Path) -> None:
    """What it writes: the keys of an article that it changes or purges, in ``band`` alone."""
    db = schema.connect(tmp_path / "articles.db", create=True)
    writer = Writer(db, lambda: 1)
    texts = [" ".join(f"w{i}x{at}" for at in range(120)) for i in range(4)]
    articles = [article(f"a{i}", f"Tin {i}", text) for i, text in enumerate(texts)]
    writer.put([codec.cleaned(one) for one in articles[:3]])
    with apsw.Connection(str(tmp_path / "articles.db")) as old:
        for n, statement in (
            (2, "UPDATE article SET digest = x'00' WHERE n = ?"),
            (3, "DELETE FROM article WHERE n = ?"),
        ):
            for key in candidate_keys(shingles_of(texts[n - 1])):
                old.execute("DELETE FROM band WHERE key = ? AND n = ?", (key, n))
            old.execute(statement, (n,))
    assert db.execute("SELECT n FROM band_fresh").fetchall() == [(1,)]
    copy = article("a9", "Tin 2", texts[2])
    results = writer.put([codec.cleaned(copy), codec.cleaned(articles[3])])
    assert [one.status for one in results] == ["new", "new"]
    assert db.execute("SELECT n, cluster FROM article WHERE n > 2").fetchall() == [
        (3, None),
        (4, None),
    ]
    db.close()
