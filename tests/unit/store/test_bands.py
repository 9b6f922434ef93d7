"""Keys of near-duplicates on their way into their tree: always found, exactly as long as their
article has them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from newscrawler.store.sqlite import schema
from newscrawler.store.sqlite.bands import Bands
from newscrawler.store.sqlite.schema import immediate

KEYS = 1 << 53
ROUND, GATHERED = 64, 8


class Undone(Exception):
    pass


class Model:
    """What should be found, and two processes that write in turns."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.rng = path, random.Random(seed)
        schema.connect(path, create=True).close()
        self.pool = [self.rng.randrange(KEYS) for _ in range(300)]  # several articles have some
        self.of: dict[int, list[int]] = {}
        self.next = 1
        self.writers = [self.opened(), self.opened()]

    def opened(self) -> tuple[apsw.Connection, Bands]:
        db = schema.connect(self.path, create=False)
        return db, Bands(db, ROUND, GATHERED)

    def some_keys(self) -> list[int]:
        own = [self.rng.randrange(KEYS) for _ in range(self.rng.randrange(8))]
        return list(dict.fromkeys(own + self.rng.sample(self.pool, self.rng.randrange(6))))

    def transaction(self) -> None:
        db, bands = self.rng.choice(self.writers)
        kept, next_n = {n: list(keys) for n, keys in self.of.items()}, self.next
        is_undone = self.rng.random() < 0.1
        try:
            with immediate(db):
                bands.begin()
                for _ in range(self.rng.randrange(1, 25)):
                    self.change(bands)
                bands.end()
                if is_undone:
                    raise Undone
        except Undone:
            bands.undone()
            self.of, self.next = kept, next_n

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


@pytest.fixture(params=range(2))
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Model]:
    made = Model(tmp_path / "articles.db", request.param)
    yield made
    for db, _ in made.writers:
        db.close()


def test_what_articles_have_is_found_whoever_wrote_it(model: Model) -> None:
    for turn in range(30):
        model.transaction()
        if turn % 10 == 9:
            model.look_at_all()
    assert model.next > 3 * ROUND, "the position has come round several times"
    db = model.writers[0][0]
    in_tree = set(db.execute("SELECT key, n FROM band").fetchall())
    assert in_tree <= {(key, n) for n, keys in model.of.items() for key in keys}, "nothing is left"
    waiting = db.execute("SELECT count(*) FROM band_fresh").get
    assert waiting <= ROUND + 2 * GATHERED + 25, "what has been written is kept once"
    model.writers[0][0].execute("DELETE FROM band_fresh")
    assert len(in_tree) > 0.7 * sum(map(len, model.of.values()))


def test_neighbours_are_written_together(tmp_path: Path) -> None:
    """What makes it cheap: a batch of new articles writes its share of the keys in their order."""
    db = schema.connect(tmp_path / "articles.db", create=True)
    bands, rng = Bands(db, ROUND, GATHERED), random.Random(1)
    for n in range(1, 5 * ROUND + 1):
        with immediate(db):
            bands.begin()
            before = db.execute("SELECT count(*) FROM band").get
            bands.add(n, [rng.randrange(KEYS) for _ in range(30)])
            bands.end()
    written = db.execute("SELECT count(*) FROM band").get - before
    assert 10 <= written <= 60, "about as many as came"
    assert db.execute("SELECT count(*) FROM band").get > 30 * (5 * ROUND - 0.7 * ROUND)
    assert db.execute("SELECT count(*) FROM band_fresh").get <= ROUND + 2 * GATHERED
    db.close()
