"""Index rate and search times of an article store on synthetic Vietnamese news.

    python -m benchmarks.bench_search                          5,000 articles, SQLite in a temporary
    folder python -m benchmarks.bench_search --articles 100000 python -m benchmarks.bench_search
    --store http://127.0.0.1:9200

Wall and CPU milliseconds (CPU of this process only: Elasticsearch's own is not in it). Articles
have about 440 syllables; words follow Zipf's law, with 300 topics. A known-item figure (MRR@10)
guards the speed: a search that is quick because it does not find things is no gain.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import random
import tempfile
import time
import unicodedata
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
from rapidfuzz.distance import OSA

from newscrawler.items import Article
from newscrawler.store import open_store
from newscrawler.store.base import ArticleStore, Query
from newscrawler.store.fold import folded, folded_words

SITES = [f"site{i:02}.vn" for i in range(33)]
FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
BATCH = 50
_ONSETS = "- b c ch d đ g gh gi h k kh l m n ng ngh nh ph qu r s t th tr v x"
_RIMES = (
    "a ac ai am an ang anh ao ap at au ay e ec em en eo ep et ê êch ên ênh êt êu i ich iên iêng iêt"
    " in inh it iu o oa oai oan oc oi om on ong op ot ô ôc ôi ôn ông ôt ơ ơi ơm ơn ơt u ua uc ui um"
    " un ung uôc uôi uôn uông ư ưa ưc ưng ươc ươi ươn ương y yêu"
)
_TONES = ["", "\u0300", "\u0301", "\u0303", "\u0309", "\u0323"]


class Language:
    """39,000 words of one or two syllables; the 200 most frequent are 42 % of every text."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        parts = itertools.product(_ONSETS.split(), _RIMES.split(), _TONES)
        syllables = [o.strip("-") + rime[:1] + tone + rime[1:] for o, rime, tone in parts]
        self.random.shuffle(syllables)
        self.syllables = sorted(set(map(folded, syllables)))
        second = self.random.choice(syllables, 39_000)
        first = self.random.choice(syllables[:6_000], 39_000)
        self.words = np.array(
            [
                a if i % 3 == 0 else f"{a} {b}"
                for i, (a, b) in enumerate(zip(first, second, strict=True))
            ]
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
            np.where(
                kinds < 0.8, topic[self._draw(self.topic, n)], 200 + self._draw(self.general, n)
            ),
        )
        title = topic[self.random.choice(60, 5, replace=False)]
        name = f"https://{SITES[number % 33]}/bai-{number}.html"
        return Article(
            id=hashlib.md5(name.encode()).hexdigest(),
            url=name,
            site=SITES[int(self.random.integers(33))],
            title=" ".join(self.words[title]).capitalize(),
            content="\n\n".join(
                " ".join(self.words[part]) + "." for part in np.array_split(picks, 8)
            ),
            published=FIRST_DAY + timedelta(minutes=int(number * 525_600 / of)),
            authors=[str(self.words[int(self.random.integers(39_000))]).title()],
            fetched=FIRST_DAY,
        )


async def fill(
    store: ArticleStore, articles: Iterator[Article], samples: list[Article], every: int
) -> tuple[float, float, list[float]]:
    """Wall and CPU seconds until all can be found, without making the articles, and
    the ms of each put."""
    took: list[float] = []
    number = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while True:
        started, used = time.perf_counter(), time.thread_time()
        batch = list(itertools.islice(articles, BATCH))
        wall += time.perf_counter() - started
        cpu += time.thread_time() - used
        if not batch:
            break
        started = time.perf_counter()
        await store.put(batch)
        took.append((time.perf_counter() - started) * 1000)
        samples += [a for i, a in enumerate(batch, number) if i % every == 0]
        number += len(batch)
    await store.refresh()
    return time.perf_counter() - wall, time.process_time() - cpu, took


_TONES_OF = {
    plain: [
        unicodedata.normalize("NFC", unicodedata.normalize("NFD", plain)[0] + marks)
        for marks in _TONES
    ]
    for plain in "aeiouy"
}


class Edits:
    """Typing errors as people make them: one letter of a random word is left out, doubled by
    another, replaced or swapped with its neighbour; a tone is wrong, or all diacritics of a word
    are missing. ``syllables``: every tenth edit makes another real one."""

    def __init__(self, rng: random.Random, syllables: list[str]) -> None:
        self._rng, self._syllables = rng, syllables

    def one(self, words: list[str]) -> list[str]:
        """The words with one of them edited, which is another word afterwards also when folded, or
        only typed with other diacritics (one in four)."""
        made = list(words)
        places = [i for i, word in enumerate(words) if len(word) > 1] or [0]
        at = self._rng.choice(places)
        for _ in range(20):
            made[at] = self._edited(words[at])
            if made[at] and made[at] != words[at]:
                return made
        return made

    def _edited(self, word: str) -> str:
        kind = self._rng.choice(("insert", "delete", "replace", "swap", "tone", "plain", "other"))
        i = self._rng.randrange(len(word))
        letter = self._rng.choice("abcdeghiklmnopqrstuvxy")
        if kind == "insert":
            return word[:i] + letter + word[i:]
        if kind == "delete":
            return word[:i] + word[i + 1 :]
        if kind == "replace":
            return word[:i] + letter + word[i + 1 :]
        if kind == "swap":
            return word[:i] + word[i + 1 : i + 2] + word[i] + word[i + 2 :]
        if kind == "plain":
            return folded(word)
        if kind == "tone":
            places = [k for k, c in enumerate(folded(word)) if c in _TONES_OF]
            if places:
                k = self._rng.choice(places)
                return word[:k] + self._rng.choice(_TONES_OF[folded(word)[k]]) + word[k + 1 :]
        near = [
            s for s in self._rng.sample(self._syllables, 400) if OSA.distance(s, folded(word)) == 1
        ]
        return self._rng.choice(near) if near else word[:i] + letter + word[i:]


def kinds_of_query(
    common: list[str], syllables: list[str]
) -> dict[str, Callable[[random.Random, Article], Query]]:
    """Known items are named with what must be found: a title, a sentence of the text."""

    def words(text: str) -> list[str]:
        return folded_words(text)

    def some(rng: random.Random, text: str, n: int) -> str:
        found = words(text)
        return " ".join(rng.sample(found, min(n, len(found))))

    def run(rng: random.Random, text: str, n: int) -> list[str]:
        found = text.replace(".", " ").lower().split()
        start = rng.randrange(max(1, len(found) - n))
        return found[start : start + n]

    def edited(rng: random.Random, some_words: list[str]) -> str:
        return " ".join(Edits(rng, syllables).one(some_words))

    def with_another(rng: random.Random, some_words: list[str]) -> str:
        at = rng.randrange(len(some_words) + 1)
        return " ".join([*some_words[:at], rng.choice(syllables), *some_words[at:]])

    def half(rng: random.Random, some_words: list[str]) -> str:
        n = (len(some_words) + 1) // 2
        start = rng.randrange(len(some_words) - n + 1)
        return " ".join(some_words[start : start + n])

    def title(a: Article) -> list[str]:
        return a.title.lower().split()

    return {
        "title": lambda r, a: Query(a.title),
        "title, folded": lambda r, a: Query(" ".join(words(a.title))),
        "title, facets": lambda r, a: Query(a.title, facets=True),
        "title, one edit": lambda r, a: Query(edited(r, title(a))),
        "title, one edit, folded": lambda r, a: Query(folded(edited(r, title(a)))),
        "title, two edits": lambda r, a: Query(edited(r, edited(r, title(a)).split())),
        "title, a word too many": lambda r, a: Query(with_another(r, title(a))),
        "half the title": lambda r, a: Query(half(r, title(a))),
        "sentence of a text": lambda r, a: Query(" ".join(run(r, a.content, 8))),
        "sentence, folded": lambda r, a: Query(" ".join(words(" ".join(run(r, a.content, 8))))),
        "sentence, one edit": lambda r, a: Query(edited(r, run(r, a.content, 8))),
        "8 unknown words": lambda r, a: Query(
            " ".join(w + r.choice("qzxw") + r.choice("qzxw") for w in run(r, a.content, 8))
        ),
        "one word, folded": lambda r, a: Query(some(r, a.content, 1)),
        "one word, exact": lambda r, a: Query(" ".join(run(r, a.content, 1))),
        "common word, facets": lambda r, a: Query(r.choice(common), facets=True),
        "three common words": lambda r, a: Query(" ".join(r.sample(common, 3)), facets=True),
        '"phrase of 3"': lambda r, a: Query(f'"{" ".join(run(r, a.content, 3))}"'),
        "one word, by date": lambda r, a: Query(some(r, a.content, 1), sort="date"),
        "word, site, month": lambda r, a: Query(
            f"{some(r, a.content, 1)} site:{a.site} after:{a.published:%Y-%m}"
            if a.published
            else ""
        ),
        "title, collapse": lambda r, a: Query(a.title, collapse=True),
    }


def is_known_item(name: str) -> bool:
    return "title" in name or "sentence" in name


async def newest_in_ten(
    store: ArticleStore, samples: list[Article], subjects: list[str], count: int, seed: int
) -> None:
    """Whether the newest article about a subject (a word of one or two syllables, in a row) is on
    the first page."""
    rng = random.Random(seed)
    pools: dict[str, list[bool]] = {"10-100": [], "100-1,000": [], "more": []}
    texts = [f" {' '.join(folded_words(a.content))} " for a in samples]
    for _ in range(count * 15):
        subject = rng.choice(subjects)
        if not any(f" {folded(subject)} " in text for text in texts):
            continue
        newest = await store.search(Query(f'"{subject}"', sort="date", size=1))
        small = "10-100" if newest.total < 100 else "100-1,000"
        pool = small if newest.total < 1_000 else "more"
        if newest.total < 10 or len(pools[pool]) >= count:
            continue
        best = await store.search(Query(subject, size=10))
        pools[pool].append(newest.hits[0].article.id in {h.article.id for h in best.hits})
    for pool, found in pools.items():
        print(f"subjects in {pool} articles: newest in the first ten: {sum(found)} of {len(found)}")


def _at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def ask(
    store: ArticleStore,
    samples: list[Article],
    kinds: dict[str, Callable[[random.Random, Article], Query]],
    count: int,
    seed: int,
) -> dict[str, float]:
    """MRR@10 of the known items."""
    quality: dict[str, float] = {}
    print(
        f"\n{'query':24}{'wall p50':>10}{'p95':>8}{'cpu p50':>10}{'p95':>8}{'hits p50':>10}   ms,"
        f" {count} each"
    )
    for name, make in kinds.items():
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
            place = next(
                (i for i, h in enumerate(result.hits[:10], 1) if h.article.id == sample.id), 0
            )
            ranks.append(1 / place if place else 0.0)
        quality[name] = sum(ranks) / count
        known = f"   MRR@10 {quality[name]:.3f}" if is_known_item(name) else ""
        figures = f"{_at(wall, 0.5):10.1f}{_at(wall, 0.95):8.1f}{_at(cpu, 0.5):10.1f}{_at(cpu, 0.95):8.1f}"
        print(f"{name:24}{figures}{_at(totals, 0.5):10,.0f}{known}", flush=True)
    return quality


async def main(options: argparse.Namespace) -> None:
    language = Language(options.seed)
    articles = (language.article(i, options.articles) for i in range(options.articles))
    samples: list[Article] = []
    common = [folded_words(str(w))[0] for w in language.words[:20]]
    kinds = kinds_of_query(common, language.syllables)
    if options.only:
        kinds = {name: make for name, make in kinds.items() if options.only in name}
    with tempfile.TemporaryDirectory(prefix="bench-search-") as scratch:
        folder = options.keep or scratch
        store = open_store(options.store, folder, index=f"bench-{uuid.uuid4().hex[:8]}")
        try:
            await store.open()
            stored = int((await store.stats())["articles"] or 0)
            every = max(1, (stored or options.articles) // 500)
            if stored:
                samples = [a async for a in store.scan() if int(a.id, 16) % every == 0]
            else:
                wall, cpu, took = await fill(store, articles, samples, every)
                print(f"{options.articles:,} articles in batches of {BATCH}, until all are found")
                rates = (
                    f"{options.articles / wall:,.0f}/s wall, {options.articles / cpu:,.0f}/s cpu"
                )
                print(f"index: {rates}, {1000 * cpu / options.articles:.2f} ms cpu an article")
                print(
                    f"batch: p50 {_at(took, 0.5):.0f} ms, p95 {_at(took, 0.95):.0f} ms, worst"
                    f" {max(took):.0f} ms"
                )
            stats = await store.stats()
            size, clusters = int(stats["bytes"] or 0) / 1e6, stats["clusters"]
            print(
                f"{stats['kind']}: {stats['articles']:,} articles, {size:,.0f} MB, clusters"
                f" {clusters}"
            )
            await store.search(Query("khởi động"))  # what is made at the first search
            await ask(store, samples, kinds, options.queries, options.query_seed)
            if not options.only:
                await newest_in_ten(
                    store,
                    samples,
                    [str(w) for w in language.words],
                    options.queries,
                    options.query_seed,
                )
        finally:
            await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=5_000)
    parser.add_argument("--queries", type=int, default=40, help="of each kind")
    parser.add_argument(
        "--store",
        default="",
        help="as ARTICLE_STORE; its bench-* index stays behind in Elasticsearch",
    )
    parser.add_argument("--seed", type=int, default=11, help="of the articles")
    parser.add_argument("--query-seed", type=int, default=11, help="of the queries")
    parser.add_argument("--only", default="", help="kinds of query with this in their name")
    parser.add_argument(
        "--keep", default="", help="a folder in which the store stays, and is found again"
    )
    asyncio.run(main(parser.parse_args()))
