"""`python -m evaluation.train`: labels, folds, fit, calibration, pages without authors."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from evaluation import author_pages, train
from evaluation.author_pages import Page
from newscrawler.extraction.author_choice import model

ROOT = Path(__file__).resolve().parents[3]
TEXT = "".join(
    f"<p>Paragraph {i} tells what the council has said about the bridge and who will pay.</p>"
    for i in range(5)
)


def stored(site: int, name: str, byline: str) -> Page:
    url = f"https://site{site}.example/a-1.html"
    body = f"<html lang=en><title>A bridge</title><h1>A bridge is built</h1>{byline}{TEXT}"
    return Page(f"p{site}", f"site{site}.example", "gold", body.encode(), url, (name,))


def pages() -> list[Page]:
    names = [f"Jane {a}oe" for a in "BCDFGHJKLMNPRSTVWXYZ"]
    lines = ("<p>By {}</p>", '<p class="author">{}</p>', "<p>Written by {}</p>")
    return [stored(i, n, lines[i % 3].format(n)) for i, n in enumerate(names)]


def test_a_label_is_the_same_words_or_else_the_nearest() -> None:
    gold = ["jane roe"]
    assert train.labels(["Jane Roe", "More by Jane Roe"], gold) == [True, False]
    assert train.labels(["More by Jane Roe", "Roe"], gold) == [True, False]
    assert train.labels(["John Doe"], gold) == [False]


def test_folds_are_by_site_and_by_seed() -> None:
    sites = [f"s{i}.example" for i in range(300)]
    first = [train.fold_of(s, 1) for s in sites]
    assert first == [train.fold_of(s, 1) for s in sites]
    assert first != [train.fold_of(s, 2) for s in sites]
    assert set(first) == set(range(train.FOLDS))


def test_a_fit_tells_names_from_words_and_is_the_same_twice() -> None:
    rows = train.rows_of([*pages(), *filter(None, map(author_pages.without_authors, pages()))], 1)
    fitted = train.fitted(rows)
    assert fitted == train.fitted(rows)
    right = [
        (fitted.probability(names), label)
        for row in rows
        for (_, names), label in zip(row.described, row.labels, strict=True)
    ]
    good = [p for p, label in right if label]
    bad = [p for p, label in right if not label]
    assert len(good) == 20
    assert min(good) > 0.5 > max(bad, default=0.0)


def test_the_copy_without_authors_names_nobody() -> None:
    taken = author_pages.without_authors(pages()[0])
    assert taken is not None and taken.kind == "taken" and not taken.authors
    assert b"Jane Boe" not in taken.body
    other = Page("x", "x.example", "gold", pages()[0].body, "https://x.example/", ("Mary Doe",))
    assert author_pages.without_authors(other) is None, "the page does not spell it so"


def test_a_page_with_a_byline_is_not_one_without() -> None:
    assert not author_pages.names_nobody(pages()[0])
    assert author_pages.names_nobody(stored(1, "", ""))


def test_generated_pages_are_those_of_the_seed() -> None:
    made = list(author_pages.generated(3, 2))
    assert made == list(author_pages.generated(3, 2))
    assert len({page.site for page in made}) >= 30
    assert {page.kind for page in made} == {"vi", "vi-none"}
    signed = [p for p in made if p.kind == "vi" and b"Theo " in p.body]
    assert signed
    for page in made[:20]:
        for name in page.authors:
            assert name.encode() in page.body


def test_calibration_finds_the_curve_that_made_the_points() -> None:
    rng = np.random.default_rng(1)
    chances = rng.uniform(0.02, 0.98, 4000)
    points = [(float(p), bool(rng.random() < p)) for p in chances]
    curve = train.calibration(points)
    assert all(a[1] <= b[1] for a, b in pairwise(curve))
    sure = [model.on_curve(curve, p) for p, _ in points]
    assert train.expected_error(sure, [right for _, right in points]) < 0.03
    assert train.expected_error([0.9] * 100, [False] * 100) == pytest.approx(0.9)


@pytest.mark.long
def test_the_command_learns_and_writes_weights(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    with (tmp_path / "gold.jsonl").open("w", encoding="utf-8") as lines:
        for page in pages():
            (tmp_path / f"html/{page.id}.html.gz").write_bytes(gzip.compress(page.body))
            record = {"id": page.id, "url": page.url, "site": page.site, "authors": page.authors,
                      "html": f"html/{page.id}.html.gz"}  # fmt: skip
            lines.write(json.dumps(record) + "\n")
    out = tmp_path / "weights.json"
    command = [sys.executable, "-m", "evaluation.train", str(tmp_path), "--out", str(out)]
    done = subprocess.run(
        [*command, "--generated", "1", "--processes", "1"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for wanted in ("rules    gold", "learned  gold", "at the rules' coverage", "expected error"):
        assert wanted in done.stdout
    made = model.from_json(json.loads(out.read_text(encoding="utf-8")))
    assert made.plain and made.seeing and made.calibration


def test_a_folder_without_gold_is_told_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evaluation.train", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "gold.jsonl is missing" in done.stderr and "Traceback" not in done.stderr
