"""A way for more vectors than are compared one by one (docs/search.md), not built in: apsw loads
sqlite-vec on every Python, and bits with int8 rescoring find what the full vectors find."""

from __future__ import annotations

import apsw
import numpy as np
import sqlite_vec

DIMENSIONS, VECTORS = 256, 2_000


def test_bits_with_int8_rescoring_find_the_nearest_vectors() -> None:
    db = apsw.Connection(":memory:")
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.enable_load_extension(False)
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((50, DIMENSIONS))
    vectors = centres[rng.integers(50, size=VECTORS)] + 0.6 * rng.standard_normal(
        (VECTORS, DIMENSIONS)
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    db.execute(f"CREATE VIRTUAL TABLE vec USING vec0(bits bit[{DIMENSIONS}], +small blob)")
    small = np.clip(np.round(vectors * 127 / np.abs(vectors).max()), -127, 127).astype(np.int8)
    rows = [
        (i, np.packbits(v > 0).tobytes(), s.tobytes())
        for i, (v, s) in enumerate(zip(vectors, small, strict=True))
    ]
    db.executemany("INSERT INTO vec(rowid, bits, small) VALUES (?, vec_bit(?), ?)", rows)
    found = 0
    for query in range(20):
        near = db.execute(
            "SELECT rowid FROM (SELECT rowid, small FROM vec WHERE bits MATCH vec_bit(?) AND k = 100) "
            "ORDER BY vec_distance_cosine(vec_int8(small), vec_int8(?)) LIMIT 10",
            (rows[query][1], rows[query][2]),
        )
        true = np.argsort(-(vectors @ vectors[query]))[:10]
        found += len({r for (r,) in near} & set(true.tolist()))
    db.close()
    assert found / 200 >= 0.9
