"""CPU of storing articles in a file that has the keys of many others: does it cost more in a large
one?

    python -m benchmarks.bench_put --others 1000000 --articles 3000

Seconds of one thread inside ``put``, which takes 50 articles at a time: without the index of words,
and without the other rows of the other articles.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from benchmarks.bench_search import BATCH, Language
from newscrawler.store import codec
from newscrawler.store.sqlite import schema
from newscrawler.store.sqlite.write import Writer

#: Keys of an article of bench_search.
KEYS = 30
_FILL = """
INSERT INTO band WITH RECURSIVE x(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM x WHERE i < :rows - 1)
SELECT i * :step + abs(random()) % :step, abs(random()) % 1000000000 FROM x
"""


def main(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-put-") as folder:
        path = Path(folder) / "articles.db"
        db = schema.connect(path, create=True)
        rows = options.others * KEYS
        if rows:
            db.execute(_FILL, {"rows": rows, "step": (1 << 53) // rows})
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer = Writer(db, lambda: time.time_ns() // 1_000_000)
        language = Language(11)
        articles = (language.article(i, options.articles) for i in range(options.articles))
        part, used, done = max(BATCH, options.articles // 3), 0.0, 0
        while batch := [codec.cleaned(one) for one in itertools.islice(articles, BATCH)]:
            started = time.thread_time()
            writer.put(batch)
            used += time.thread_time() - started
            done += len(batch)
            if done % part < BATCH:
                print(f"{options.others:,} others, {done:,} stored: {used / part * 1e3:.3f} ms")
                used = 0.0
        db.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--others", type=int, default=0, help="articles whose keys are there")
    parser.add_argument("--articles", type=int, default=3_000)
    main(parser.parse_args())
