"""`scrapy evaluate` and `scrapy extract` as a user runs them, and the scorer against
the reference one."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluation import score_tables, scorer
from tests import warm

ROOT = Path(__file__).resolve().parents[3]
TEXT = (
    "Đoạn văn này kể về một sự việc có thật, dài vừa đủ để một bài báo có nội dung cho người đọc. "
)


def scrapy(*args: str) -> subprocess.CompletedProcess[str]:
    return warm.run(args, text=True, timeout=120)


def page(title: str, author: str) -> bytes:
    body = "".join(f"<p>{TEXT}{i}.</p>" for i in range(5))
    return (
        f"<html lang=vi><title>{title}</title><h1>{title}</h1><p class=author>{author}</p>"
        f"<p class=date>15/08/2026 06:54</p><div>{body}</div></html>"
    ).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "html").mkdir()
    lines = []
    for i, author in enumerate(("Nguyễn Văn An", "Trần Minh Hà")):
        (tmp_path / "html" / f"p{i}.html.gz").write_bytes(
            gzip.compress(page(f"Giá vàng giảm mạnh lần {i}", author))
        )
        lines.append(
            {
                "id": f"p{i}",
                "url": f"https://example.vn/a-{i}.html",
                "lang": "vi",
                "source": "own",
                "html": f"html/p{i}.html.gz",
                "title": f"Giá vàng giảm mạnh lần {i}",
                "authors": ["Nguyễn Văn An"],
                "published": "2026-08-15T06:54:00+07:00",
                "content": "\n\n".join(f"{TEXT}{k}." for k in range(5)),
            }
        )
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines), "utf-8")
    return tmp_path


def test_figures_predictions_and_floors(folder: Path) -> None:
    floors = folder / "floors.json"
    floors.write_text('{"_": "note", "title": 1.0, "authors_ok": 0.9, "content_f1": 0.99}')
    done = scrapy(
        "evaluate",
        str(folder),
        "--json",
        "--out",
        str(folder / "out.jsonl"),
        "--floors",
        str(floors),
    )
    assert done.returncode == 1, done.stderr
    assert "authors_ok 0.5000 is under its floor 0.9000" in done.stderr
    assert "title" not in done.stderr and "content_f1" not in done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["group"] for r in rows] == ["all", "lang=vi", "source=own"]
    assert (rows[0]["title"], rows[0]["day"], rows[0]["minute"], rows[0]["authors_ok"]) == (
        1.0,
        1.0,
        1.0,
        0.5,
    )
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text("utf-8").splitlines()]
    known = {
        "id",
        "title",
        "content",
        "authors",
        "published",
        "people",
        "credits",
        "sure",
        "contested",
    }
    assert set(lines[0]) == known
    floors.write_text('{"title": 1.0}')
    assert scrapy("evaluate", str(folder), "--floors", str(floors)).returncode == 0
    floors.write_text('{"expected_error": 0.03}')
    unsure = scrapy("evaluate", str(folder), "--floors", str(floors))
    assert unsure.returncode == 1 and "expected_error 0." in unsure.stderr
    assert "is above 0.0300" in unsure.stderr, "one of two authors is right, and both seem sure"
    floors.write_text('{"expected_error": 0.9}')
    assert scrapy("evaluate", str(folder), "--floors", str(floors)).returncode == 0


def test_wrong_arguments_of_evaluate(folder: Path) -> None:
    assert scrapy("evaluate").returncode == 2
    missing = scrapy("evaluate", str(folder / "nope"))
    assert missing.returncode == 1 and "gold.jsonl" in missing.stderr
    (folder / "gold.jsonl").write_text('{"id": "a"}\nnot json\n')
    broken = scrapy("evaluate", str(folder))
    assert broken.returncode == 1 and "line 1" in broken.stderr
    (folder / "floors.json").write_text('{"tittle": 1}')
    wrong = scrapy("evaluate", str(folder), "--floors", str(folder / "floors.json"))
    assert wrong.returncode == 1 and "tittle" in wrong.stderr


def test_a_page_that_cannot_be_read_counts_as_nothing_found(folder: Path) -> None:
    (folder / "html" / "p0.html.gz").unlink()
    done = scrapy("evaluate", str(folder), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[0])["title"] == 0.5
    assert "1 pages could not be read" in done.stderr


def test_extract_a_file(folder: Path) -> None:
    path = folder / "html" / "p0.html.gz"
    done = scrapy("extract", str(path), "--url", "https://example.vn/a-0.html", "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["title"]["value"] == "Giá vàng giảm mạnh lần 0"
    assert found["authors"]["value"] == ["Nguyễn Văn An"]
    plain = folder / "latin.html"
    plain.write_bytes("<h1>Gebühren überall</h1><p>Größer</p>".encode("windows-1252"))
    done = scrapy("extract", str(plain), "--html-encoding", "windows-1252")
    assert "Gebühren überall" in done.stdout and "not an article" in done.stderr
    explained = scrapy("extract", str(path), "--explain")
    assert "generic:trafilatura" in explained.stdout and "*" in explained.stdout


def test_wrong_arguments_of_extract(folder: Path) -> None:
    assert scrapy("extract").returncode == 2
    assert scrapy("extract", "https://example.vn/", "--url", "x").returncode == 2
    path = str(folder / "html" / "p0.html.gz")
    assert scrapy("extract", path, "--html-encoding", "klingon").returncode == 2
    assert scrapy("extract", str(folder / "none.html")).returncode == 1
    bad = folder / "set.json"
    bad.write_text(
        '{"domain": "example.vn", "variants": [{"fields": {"title": [{"css": "a:has(b)"}], "content": {"root": ["p"]}}}]}'
    )
    refused = scrapy("extract", path, "--selectors", str(bad))
    assert refused.returncode == 1 and "variants[0].fields.title[0].css" in refused.stderr


CASES = [
    ("Giá vàng giảm", "Giá vàng giảm | Báo Dân trí", True), ("A b c d", "A b c e", False),
    ("Rain: what to do next", "What to do next", True), ("News today", "News", False), ("x", None, False),
    ("津波注意報 気象庁", "津波注意報 気象庁：朝日新聞", True),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "predicted", "right"), CASES)
def test_title_rule(gold: str, predicted: str | None, right: bool) -> None:
    assert scorer.title_is_right(gold, predicted) is right


def test_day_minute_author_and_content_rules() -> None:
    assert scorer.day_is_right("2026-03-07T00:05:00+07:00", "2026-03-06T17:05:00Z")
    assert not scorer.day_is_right("2026-03-07", "2026-03-08")
    assert scorer.day_is_right("2016-12-20T00:08:44.000Z", "2016-12-19")
    assert scorer.minute_is_right("2026-03-07T00:05:00+07:00", "2026-03-07T00:05") is True
    assert scorer.minute_is_right("2026-03-07", "2026-03-07") is None
    ok = scorer.score_authors(
        ["jane doe"], scorer.names_of({"authors": ["By Jane Doe", "Reuters"]})
    )
    assert ok["ok"] and not ok["exact"]
    assert round(scorer.score_content("a b c d e", "a b c d e f")[2], 3) == 0.8
    assert scorer.score_content("a b c d", "")[2] == 0.0


@pytest.mark.long
def test_own_scorer_and_the_reference_agree(shared_pages: Path, tmp_path: Path) -> None:
    """On a prediction that is right here, wrong there: every tenth page by extraction,
    others made from the gold."""
    gold = [
        json.loads(line) for line in (shared_pages / "gold.jsonl").read_text("utf-8").splitlines()
    ]
    lines: list[dict[str, Any]] = []
    for i, g in enumerate(gold):
        if i % 10 == 0:
            lines.append(
                score_tables.predict(
                    g["id"], gzip.decompress((shared_pages / g["html"]).read_bytes()), g["url"]
                )
            )
        elif i % 3:
            made = {
                "id": g["id"],
                "title": (g.get("title") or "x") + " | Site",
                "published": g.get("published", "")[: 10 if i % 2 else 30],
                "authors": [*g.get("authors", []), "Reuters"],
                "content": (g.get("content") or " ".join(g.get("content_with", [])))[
                    : -200 or None
                ],
            }
            lines.append(made)
    predictions = tmp_path / "pred.jsonl"
    predictions.write_text("".join(json.dumps(x) + "\n" for x in lines), "utf-8")
    answer = tmp_path / "reference.json"
    subprocess.run(
        [
            sys.executable,
            str(shared_pages / "score_extraction.py"),
            "--gold",
            str(shared_pages / "gold.jsonl"),
            "--pred",
            str(predictions),
            "--json",
            str(answer),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    reference = json.loads(answer.read_text())["all"]
    ours = score_tables.figures(gold, lines)["all"]
    names = {
        "title": "title",
        "day": "day",
        "minute": "minute",
        "authors_ok": "author_ok",
        "authors_exact": "author_exact",
        "authors_f1": "author_F1",
        "content_precision": "content_P",
        "content_recall": "content_R",
        "content_f1": "content_F1",
        "content_mean_f1": "content_meanF1",
        "content_ge90": "content_ge90",
        "with": "seg_with",
        "without": "seg_without",
        "four": "four",
    }
    for own, theirs in names.items():
        assert ours[own] == pytest.approx(reference[theirs], abs=0.002), own


def test_halves_comparison_worst_pages_and_intervals(folder: Path) -> None:
    run = folder / "run.jsonl"
    wrong = {
        "id": "p0",
        "title": "Something else entirely",
        "authors": ["Nguyễn Văn An"],
        "content": None,
        "published": None,
    }
    run.write_text(json.dumps(wrong) + "\n", "utf-8")
    done = scrapy(
        "evaluate",
        str(folder),
        "--compare",
        str(run),
        "--worst",
        "3",
        "--intervals",
        "--by",
        "split",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    low, high = rows[0]["interval95"]["authors_ok"]
    assert low <= 0.5 <= high
    changed = {row["field"]: row for row in rows if "field" in row}
    assert changed["title"]["pages_won"] == ["p0", "p1"] and changed["title"]["pages_lost"] == []
    worst = [row for row in rows if "why" in row]
    assert [row["id"] for row in worst] == ["p1"] and "'Trần Minh Hà' for 'Nguyễn Văn An'" in worst[
        0
    ]["why"]
    sizes = [scrapy("evaluate", str(folder), "--split", name, "--json") for name in ("dev", "held")]
    assert sorted(d.returncode for d in sizes) == [
        0,
        1,
    ]  # both pages are of one site: it is in one half


def test_tiers_say_what_they_lack(folder: Path) -> None:
    rules = scrapy("evaluate", str(folder), "--tier", "rules", "--json")
    assert rules.returncode == 0 and "0 of 2 pages have a set" in rules.stderr
    llm = scrapy("evaluate", str(folder), "--tier", "llm")
    assert llm.returncode == 1 and "LLM_BASE_URL" in llm.stderr


@pytest.mark.long
def test_a_set_is_never_made_of_the_page_it_reads(tmp_path: Path) -> None:
    """Fourteen pages of one template: each fold is read with a set of the others."""
    from evaluation import selector_tiers
    from newscrawler.selectorsets.propose import Proposer
    from tests.fixtures_selectors import made_pages

    pages = made_pages("vnexpress.net", 14)
    gold = [
        {"id": f"p{i}", "url": p.url, "site": "vnexpress.net", "html": str(i)}
        for i, p in enumerate(pages)
    ]
    proposer = Proposer(None, None, "rules", 90_000)  # type: ignore[arg-type]  # rules ask for no budget
    sets = asyncio.run(
        selector_tiers.make_sets(gold, lambda g: pages[int(g["html"])].body, proposer)
    )
    assert (
        len(sets.of_page) == 14
        and len({id(s) for s in sets.of_page.values()}) == selector_tiers.FOLDS
    )
    line = selector_tiers.predict(gold[0], pages[0].body, sets)
    assert line["set"] and line["title"]


def test_credits_count_where_the_gold_counts_them() -> None:
    """And are said apart: a run's columns for people alone, and the keys of a prediction."""
    gold = {
        "id": "a",
        "title": "T one two",
        "authors": ["dpa"],
        "published": "2026-01-02",
        "content": "a b c d e",
    }
    line = {"id": "a", "title": "T one two", "authors": ["dpa"], "people": [], "credits": ["dpa"]}
    line |= {"published": "2026-01-02", "content": "a b c d e"}
    row = score_tables.figures([gold], [line])["all"]
    assert (row["authors_ok"], row["people_ok"], row["four"], row["people_four"]) == (
        1.0,
        0.0,
        1.0,
        0.0,
    )
    text = "<p>" + "A sentence of an article that is long enough to be one. " * 6 + "</p>"
    page = (
        f"<h1>Rain floods the old town again</h1><p class=byline>dpa</p><article>{text}</article>"
    )
    made = score_tables.predict("a", page.encode(), "https://example.org/a")
    assert (made["authors"], made["people"], made["credits"]) == (["dpa"], [], ["dpa"])


def test_folds_part_the_sites_and_tell_what_each_has_won(folder: Path) -> None:
    gold = [
        {"id": f"g{i}", "site": f"site{i // 2}.example", "title": f"Title number {i} of a story"}
        for i in range(60)
    ]
    right = [{"id": g["id"], "title": g["title"]} for g in gold]
    wrong = [{"id": g["id"], "title": None if i < 30 else g["title"]} for i, g in enumerate(gold)]
    parts = score_tables.folds(gold, right, 3, wrong)
    assert [name for name in parts if name[0].isdigit()] == ["1/3", "2/3", "3/3"]
    assert sum(parts[f"{i}/3"]["pages"] for i in (1, 2, 3)) == 60 == parts["least"]["pages"]
    assert (
        parts["least"]["title"] == 1.0
        and score_tables.folds(gold, wrong, 3)["least"]["title"] < 0.6
    )
    gains = [parts[f"won {i}/3"]["title"] * parts[f"{i}/3"]["pages"] for i in (1, 2, 3)]
    assert sum(gains) == pytest.approx(30) and min(gains) > 0
    assert len({score_tables.fold(g["site"], 3) for g in gold if g["site"] == "site7.example"}) == 1
    run = folder / "before.jsonl"
    run.write_text('{"id": "p0"}\n', "utf-8")
    done = scrapy("evaluate", str(folder), "--folds", "2", "--compare", str(run), "--json")
    groups = [row["group"] for row in map(json.loads, done.stdout.splitlines()) if "group" in row]
    assert (
        groups[0] == "all"
        and "fold=least" in groups
        and any(g.startswith("fold=won ") for g in groups)
    )
    assert scrapy("evaluate", str(folder), "--folds", "1").returncode == 2


def test_calibration_counts_what_is_wrong_in_each_band_of_confidence(folder: Path) -> None:
    gold = [
        {"id": str(i), "title": f"Title number {i} of a story", "authors": ["Jane Roe"]}
        for i in range(4)
    ]
    lines: list[dict[str, Any]] = [
        {
            "id": "0",
            "title": gold[0]["title"],
            "authors": ["Jane Roe"],
            "sure": {"title": 0.95, "authors": 0.85},
        },
        {
            "id": "1",
            "title": "Another one",
            "authors": [],
            "sure": {"title": 0.4},
            "contested": ["title"],
        },
        {
            "id": "2",
            "title": gold[2]["title"],
            "authors": ["John Doe"],
            "sure": {"title": 0.3, "authors": 0.8},
        },
    ]
    rows = {
        (r["field"], r["band"]): (r["pages"], r["wrong"])
        for r in score_tables.calibration(gold, lines)
    }
    assert rows == {
        ("authors", "0.8"): (2, 1),
        ("authors", "nothing"): (2, 2),
        ("title", "0.3"): (2, 1),
        ("title", "0.9"): (1, 0),
        ("title", "nothing"): (1, 1),
        ("title", "contested"): (1, 1),
    }
    done = scrapy("evaluate", str(folder), "--calibration", "--json")
    bands = [row for row in map(json.loads, done.stdout.splitlines()) if "band" in row]
    assert {row["field"] for row in bands} == {"title", "published", "authors", "content"}
    assert all(row["wrong"] <= row["pages"] for row in bands)
