"""From which cosine on two articles are related: measured on pairs that are known.

    OMP_NUM_THREADS=1 python -m benchmarks.bench_related PAGES --limit 400

PAGES is a folder as of benchmarks.bench_meaning. A pair that belongs together is the beginning of an
article (title and first 300 characters, what its vector is made of) and another 300 characters of
the same article, from its middle on; a pair that does not is the same piece and the beginning of
another article. The mean of all vectors is subtracted, as in a search. The least cosine is chosen
on one half of the articles, so that one of a hundred strange pairs passes, and told for the other
half, which it was not chosen on.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_meaning import pages
from newscrawler.store.base import LEAST_RELATED
from newscrawler.store.semantic import nano
from newscrawler.store.semantic.embedder import BEGINNING, cleaned, passage_text
from newscrawler.store.semantic.matrix import centred, mean_of

#: Share of strange pairs that may pass.
STRANGE = 0.01


def shares(beginnings: Any, pieces: Any, least: float) -> tuple[float, float]:
    """Of pairs that belong together, and of strange ones, those that pass."""
    scores = pieces @ beginnings.T
    own = np.diag(scores)
    others = scores[~np.eye(len(scores), dtype=bool)]
    return float((own >= least).mean()), float((others >= least).mean())


def main(options: argparse.Namespace) -> None:
    texts = []
    for article, _ in pages(Path(options.pages), options.limit):
        middle = max(BEGINNING, len(article.content) // 2)
        piece = article.content[middle : middle + BEGINNING]
        if len(piece) >= BEGINNING // 2:
            texts.append((passage_text(article), cleaned(piece)))
    random.Random(7).shuffle(texts)
    made = [np.array([nano.passage(text) for text in pair], np.float32) for pair in texts]
    rows = np.stack(made)
    if options.save:
        np.save(options.save, rows)
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    mean = mean_of(rows[:, 0])
    beginnings, pieces = centred(rows[:, 0], mean), centred(rows[:, 1], mean)
    half = len(rows) // 2
    scores = pieces[:half] @ beginnings[:half].T
    others = np.sort(scores[~np.eye(half, dtype=bool)])
    least = float(others[int(len(others) * (1 - STRANGE))])
    print(f"{len(rows)} articles; chosen on {half} of them: {least:.3f}")
    for value in (least, LEAST_RELATED):
        own, strange = shares(beginnings[half:], pieces[half:], value)
        print(f"at {value:.3f}, the others: {own:.3f} of own pairs pass, {strange:.4f} of strange")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages")
    parser.add_argument("--limit", type=int, default=400)
    parser.add_argument("--save", default="", help="the vectors, as .npy")
    main(parser.parse_args())
