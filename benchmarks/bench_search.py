"""Index rate and search times of an article store on synthetic Vietnamese news.

    python -m benchmarks.bench_search                          5,000 articles, SQLite in a temporary folder
    python -m benchmarks.bench_search --articles 100000
    python -m benchmarks.bench_search --store http://127.0.0.1:9200

Wall and CPU milliseconds (CPU of this process only: Elasticsearch's own is not in it). Articles have about 440
syllables; words follow Zipf's law, with 300 topics. A known-item figure (MRR@10) guards the speed: a search that
is quick because it does not find things is no gain.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import random
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np

from newscrawler.items import Article
from newscrawler.store.base import ArticleStore, Query, open_store
from newscrawler.store.fold import folded_words

SITES = [f"site{i:02}.vn" for i in range(33)]
FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
BATCH = 50
_ONSETS = "- b c ch d đ g gh gi h k kh l m n ng ngh nh ph qu r s t th tr v x"
_RIMES = (
    "a ac ai am an ang anh ao ap at au ay e ec em en eo ep et ê êch ên ênh êt êu i ich iên iêng iêt in inh it iu o oa "
    "oai oan oc oi om on ong op ot ô ôc ôi ôn ông ôt ơ ơi ơm ơn ơt u ua uc ui um un ung uôc uôi uôn uông ư ưa ưc ưng "
    "ươc ươi ươn ương y yêu"
)
_TONES = ["", "\u0300", "\u0301", "\u0303", "\u0309", "\u0323"]


class Language:
    """39,000 words of one or two syllables; the 200 most frequent are 42 % of every text."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        parts = itertools.product(_ONSETS.split(), _RIMES.split(), _TONES)
        syllables = [o.strip("-") + rime[:1] + tone + rime[1:] for o, rime, tone in parts]
        self.random.shuffle(syllables)
        second = self.random.choice(syllables, 39_000)
        first = self.random.choice(syllables[:6_000], 39_000)
        self.words = np.array(
            [a if i % 3 == 0 else f"{a} {b}" for i, (a, b) in enumerate(zip(first, second, strict=True))]
        )
        self.common = self._zipf(200)
        self.general = self._zipf(len(self.words) - 200)
        self.topics = self.random.integers(200, len(self.words), size=(300, 400))
        self.topic = self._zipf(400)

    @staticmethod
    def _zipf(n: int) -> np.ndarray:
        weights = 1.0 / np.arange(1, n + 1)
        return np.cumsum(weights / weights.sum())

    def _draw(self, table: np.ndarray, n: int) -> np.ndarray:
        return np.minimum(np.searchsorted(table, self.random.random(n)), len(table) - 1)

    def article(self, number: int, of: int) -> Article:
        topic = self.topics[self.random.integers(300)]
        n = int(self.random.lognormal(5.55, 0.4))
        kinds = self.random.random(n)
        picks = np.where(
            kinds < 0.42,
            self._draw(self.common, n),
            np.where(kinds < 0.8, topic[self._draw(self.topic, n)], 200 + self._draw(self.general, n)),
        )
        title = topic[self.random.choice(60, 5, replace=False)]
        name = f"https://{SITES[number % 33]}/bai-{number}.html"
        return Article(
            id=hashlib.md5(name.encode()).hexdigest(),
            url=name,
            site=SITES[int(self.random.integers(33))],
            title=" ".join(self.words[title]).capitalize(),
            content="\n\n".join(" ".join(self.words[part]) + "." for part in np.array_split(picks, 8)),
            published=FIRST_DAY + timedelta(minutes=int(number * 525_600 / of)),
            authors=[str(self.words[int(self.random.integers(39_000))]).title()],
            fetched=FIRST_DAY,
        )


async def fill(
    store: ArticleStore, articles: Iterator[Article], samples: list[Article], every: int
) -> tuple[float, float, list[float]]:
    """Wall and CPU seconds of the puts alone, and the ms of each."""
    wall = cpu = 0.0
    took: list[float] = []
    number = 0
    while batch := list(itertools.islice(articles, BATCH)):
        started, used = time.perf_counter(), time.process_time()
        await store.put(batch)
        wall += time.perf_counter() - started
        cpu += time.process_time() - used
        took.append((time.perf_counter() - started) * 1000)
        samples += [a for i, a in enumerate(batch, number) if i % every == 0]
        number += len(batch)
    return wall, cpu, took


def kinds_of_query(common: list[str]) -> dict[str, Callable[[random.Random, Article], Query]]:
    def words(text: str) -> list[str]:
        return folded_words(text)

    def some(rng: random.Random, text: str, n: int) -> str:
        found = words(text)
        return " ".join(rng.sample(found, min(n, len(found))))

    def run(rng: random.Random, text: str, n: int) -> str:
        found = text.replace(".", " ").split()
        start = rng.randrange(max(1, len(found) - n))
        return " ".join(found[start : start + n])

    def typo(rng: random.Random, text: str) -> str:
        found = words(text)
        i = max(range(len(found)), key=lambda k: len(found[k]))
        found[i] = found[i][:-1] + rng.choice("qzxw") + found[i][-1]
        return " ".join(found[:4])

    return {
        "one word, folded": lambda r, a: Query(some(r, a.content, 1)),
        "one word, exact": lambda r, a: Query(run(r, a.content, 1)),
        "common word": lambda r, a: Query(r.choice(common)),
        "three words, AND": lambda r, a: Query(some(r, a.content, 3)),
        "title, folded": lambda r, a: Query(" ".join(words(a.title))),
        "title, exact": lambda r, a: Query(a.title),
        "title, a typing error": lambda r, a: Query(typo(r, a.title)),
        "8 words of a text": lambda r, a: Query(" ".join(words(run(r, a.content, 8)))),
        '"phrase of 3"': lambda r, a: Query(f'"{" ".join(words(run(r, a.content, 3)))}"'),
        "one word, by date": lambda r, a: Query(some(r, a.content, 1), sort="date"),
        "word, site, month": lambda r, a: Query(
            f"{some(r, a.content, 1)} site:{a.site} after:{a.published:%Y-%m}" if a.published else ""
        ),
        "common word, facets": lambda r, a: Query(r.choice(common), facets=True),
    }


def _at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def ask(store: ArticleStore, samples: list[Article], common: list[str], count: int, seed: int) -> None:
    print(f"\n{'query':24}{'wall p50':>10}{'p95':>8}{'cpu p50':>10}{'p95':>8}{'hits p50':>10}   ms, {count} each")
    for name, make in kinds_of_query(common).items():
        rng = random.Random(seed)
        wall, cpu, totals, ranks = [], [], [], []
        for _ in range(count):
            sample = rng.choice(samples)
            query = make(rng, sample)
            started, used = time.perf_counter(), time.process_time()
            result = await store.search(query)
            wall.append((time.perf_counter() - started) * 1000)
            cpu.append((time.process_time() - used) * 1000)
            totals.append(float(result.total))
            place = next((i for i, h in enumerate(result.hits[:10], 1) if h.article.id == sample.id), 0)
            ranks.append(1 / place if place else 0.0)
        known = f"   MRR@10 {sum(ranks) / count:.3f}" if "title" in name or "8 words" in name else ""
        figures = f"{_at(wall, 0.5):10.1f}{_at(wall, 0.95):8.1f}{_at(cpu, 0.5):10.1f}{_at(cpu, 0.95):8.1f}"
        print(f"{name:24}{figures}{_at(totals, 0.5):10,.0f}{known}", flush=True)


async def main(options: argparse.Namespace) -> None:
    language = Language(options.seed)
    articles = (language.article(i, options.articles) for i in range(options.articles))
    samples: list[Article] = []
    common = [folded_words(str(w))[0] for w in language.words[:20]]
    with tempfile.TemporaryDirectory(prefix="bench-search-") as folder:
        store = open_store(options.store, folder, index=f"bench-{uuid.uuid4().hex[:8]}")
        try:
            await store.open()
            wall, cpu, took = await fill(store, articles, samples, max(1, options.articles // 500))
            await store.refresh()
            stats = await store.stats()
            print(f"{stats['kind']}: {options.articles:,} articles in batches of {BATCH}")
            rates = f"{options.articles / wall:,.0f}/s wall, {options.articles / cpu:,.0f}/s cpu"
            print(f"index: {rates}, {1000 * cpu / options.articles:.2f} ms cpu an article")
            print(f"batch: p50 {_at(took, 0.5):.0f} ms, p95 {_at(took, 0.95):.0f} ms, worst {max(took):.0f} ms")
            print(f"size: {int(stats['bytes'] or 0) / 1e6:,.0f} MB, clusters {stats['clusters']}")
            await store.search(Query("khởi động"))  # tables and sample are made at the first search
            await ask(store, samples, common, options.queries, options.seed)
        finally:
            await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=5_000)
    parser.add_argument("--queries", type=int, default=40, help="of each kind")
    parser.add_argument("--store", default="", help="as ARTICLE_STORE; its bench-* index stays behind in Elasticsearch")
    parser.add_argument("--seed", type=int, default=11)
    asyncio.run(main(parser.parse_args()))
