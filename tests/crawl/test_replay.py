"""`scrapy replay` over the stored real pages: all are stored or listed with a reason, and search
finds their phrases."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from newscrawler.store import open_store
from newscrawler.store.base import Query
from newscrawler.store.fold import folded
from tests import warm
from tests.crawl.harness import ROOT

WITHOUT_SPACES = {"zh", "ja", "th"}


def each_nth(pages: Path, n: int, folder: Path) -> Path:
    """A folder with every n-th of these pages, and the Vietnamese ones, which are few."""
    for name in ("html", "robots"):
        (folder / name).symlink_to(pages / name)
    lines = (pages / "gold.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for i, line in enumerate(lines) if i % n == 0 or json.loads(line)["lang"] == "vi"]
    (folder / "gold.jsonl").write_text("".join(kept), encoding="utf-8")
    return folder


@pytest.fixture(
    scope="module",
    params=[
        20,
        pytest.param(5, marks=pytest.mark.long),
        pytest.param(1, marks=pytest.mark.chaos),
    ],
    ids=["every twentieth page", "every fifth page", "all pages"],
)
def replayed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_pages: Path
) -> tuple[Path, list[dict[str, Any]], list[dict[str, Any]]]:
    """(data folder, rows of the command, gold rows)"""
    pages = each_nth(shared_pages, request.param, tmp_path_factory.mktemp("pages"))
    data = tmp_path_factory.mktemp("replay")
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "replay", str(pages), "--data", str(data), "--json", "-s", "PROGRESS=off"],
        cwd=ROOT, capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    gold = [
        json.loads(line)
        for line in (pages / "gold.jsonl").read_text(encoding="utf-8").splitlines()
        if line
    ]
    return data, rows, gold


@pytest.mark.timeout(900)
def test_every_page_is_stored_or_listed_with_its_reason(
    replayed: tuple[Path, list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    _, rows, gold = replayed
    assert {row["id"] for row in rows} >= {g["id"] for g in gold} or len(rows) >= len(
        {g["url"] for g in gold}
    )
    missing = [row for row in rows if not row["stored"]]
    assert len(missing) <= len(gold) // 20, Counter(row["outcome"] for row in missing)
    for row in missing:
        assert row["outcome"] in {"NOT_ARTICLE", "REFUSED", "CHALLENGE", "REDIRECTED"}, row
        assert row["reason"], row
    with_content = {g["url"] for g in gold if g.get("content")}
    stored = {row["url"] for row in rows if row["stored"]}
    assert len(with_content & stored) / len(with_content) > 0.97


def pieces(text: str, language: str) -> list[str]:
    """Runs of 8 words (12 characters where words are not spaced) of one paragraph."""
    found = []
    for paragraph in text.split("\n\n"):
        if language in WITHOUT_SPACES:
            runs = re.findall(
                r"[^\W\x00-\x7f]{12,}", paragraph
            )  # no Latin word is cut in the middle
            found += [run[at : at + 12] for run in runs for at in range(0, len(run) - 12, 9)]
        else:
            words = paragraph.split()
            found += [" ".join(words[at : at + 8]) for at in range(0, max(0, len(words) - 8), 7)]
    return found


#: Marks that mean something in the query language: quotes, "not", a field.
ORDER = re.compile(r"""["“”]|(?:^|\s)-\w|(?:title|author|site|after|before):\S""", re.IGNORECASE)


def bare(text: str) -> str:
    """As typed on a keyboard without the marks."""
    text = text.replace("đ", "d").replace("Đ", "D")
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def flat(text: str) -> str:
    return " ".join(re.findall(r"\w+", folded(text)))


@pytest.mark.timeout(900)
def test_a_phrase_of_one_page_is_found_first_with_and_without_diacritics(
    replayed: tuple[Path, list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    data, rows, gold = replayed
    ids = {row["url"]: row["article"] for row in rows if row["stored"]}
    rng = random.Random(7)

    async def ask() -> list[str]:
        store = open_store("", data)
        await store.open()
        try:
            texts = {a.id: flat(f"{a.title} {a.content}") for a in [a async for a in store.scan()]}
            asked = 0
            wrong = []
            for row in gold:
                if not row.get("content") or row["url"] not in ids:
                    continue
                own = ids[row["url"]]
                phrases = [p for p in pieces(row["content"], row["lang"]) if not ORDER.search(p)]
                rng.shuffle(phrases)
                unique = (
                    p
                    for p in phrases
                    if flat(p) in texts[own] and sum(flat(p) in t for t in texts.values()) == 1
                )
                for phrase in islice(unique, 2):
                    for query in (phrase, bare(phrase), f'"{phrase}"'):
                        asked += 1
                        result = await store.search(Query(text=query, size=3))
                        if not result.hits or result.hits[0].article.id != own:
                            wrong.append(f"{row['id']}: {query}")
            assert asked > len(gold), asked
            return wrong
        finally:
            await store.close()

    wrong = asyncio.run(ask())
    assert not wrong, f"{len(wrong)} not found first, e.g. {wrong[:5]}"


def test_the_command_finds_one_too(
    replayed: tuple[Path, list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    data, rows, gold = replayed
    page = next(
        g
        for g in gold
        if g["lang"] == "vi"
        and g.get("content")
        and any(r["url"] == g["url"] and r["stored"] for r in rows)
    )
    phrase = pieces(page["content"], "vi")[3]
    for query in (phrase, bare(phrase)):
        asked = ["search", query, "--json", "-s", f"DATA_DIR={data}"]
        done = warm.run(asked, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        first = json.loads(done.stdout.splitlines()[0])
        assert first["url"] == next(r["url"] for r in rows if r["url"] == page["url"])


def test_a_verdict_of_an_earlier_run_is_said_to_be_one(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    (pages / "html").mkdir(parents=True)
    row = {"id": "one", "url": "https://www.example.org/2026/11/20/no-story-here-at-all"}
    (pages / "gold.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with gzip.open(pages / "html" / "one.html.gz", "wt", encoding="utf-8") as file:
        file.write(
            "<html><head><title>Example</title></head><body><p>Nothing to read.</p></body></html>"
        )
    asked = ["replay", str(pages), "--data", str(tmp_path / "d"), "-s", "PROGRESS=off"]
    first = warm.run(asked, text=True, timeout=300)
    time.sleep(1.1)  # a record knows the second of its visit, and two starts may lie in one
    second = warm.run(asked, text=True, timeout=300)
    for done in (first, second):
        assert "1 page, 0 stored, 1 not stored" in done.stderr, done.stderr[-2000:]
    assert "earlier run" not in first.stderr
    assert "1 of the missing were read by an earlier run" in second.stderr, second.stderr[-2000:]
