"""A set that nobody reads: the same draw for everybody, gold by agreement, totals only."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from evaluation import gold_by_agreement, score_tables, scorer, sealed
from evaluation.gold_by_agreement import Noted, Page

TEXT = "".join(f"<p>The river rose by {n} feet and the old mill was closed.</p>" for n in range(60))
PAGE = """<html lang="en"><head><title>{title} | The Mill Post</title>
<link rel="canonical" href="{url}">
<meta property="og:title" content="{title}">
<meta property="article:published_time" content="2024-03-05T10:20:00+01:00">
<script type="application/ld+json">{{"@type": "NewsArticle", "headline": "{title}",
"datePublished": "2024-03-05T10:20:00+01:00", "author": {{"name": "Jane Doe"}}}}</script></head>
<body><h1>{title}</h1><p>By Jane Doe, 5 March 2024, 10:20</p>{text}</body></html>"""
GO_TABLE = """package main
var comparisonData = map[string]ComparisonEntry{
\t"https://a.example.org/1": {
\t\tFile:    "a.html",
\t\tTitle:   "The \\"old\\" mill",
\t\tAuthors: []string{"Jane Doe", "John {Roe}"},
\t\tWith:    []string{`a "piece"`, "of } text"},
\t\tDate:    "2024-03-05",
\t},
}
var more = []comparisonEntry{
\t{
\t\tURL:  "https://b.example.org/2",
\t\tFile: "b.html",
\t\tDate: "2020-06-07",
\t},
}
"""


def page(url: str, title: str = "The mill on the river is closed") -> bytes:
    return PAGE.format(url=url, title=title, text=TEXT).encode()


def package(folder: Path, name: str, files: dict[str, bytes]) -> dict[str, str]:
    """An archive where the client would leave it, and its line in the data file."""
    path = folder / "packages" / "pip" / f"{name}-1.0.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for file, body in files.items():
            member = tarfile.TarInfo(f"{name}-1.0/tests/{file}")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    digest = sealed._digest(path)
    return {"kind": "pip", "name": name, "version": "1.0", "sha256": digest}


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Any]:
    one = package(
        tmp_path,
        "one",
        {
            "a.html": page("https://www.mill-post.com/a"),
            "again.html": page("https://www.mill-post.com/a"),
            "read.html": page("https://www.read-before.com/a", "A page that was read"),
            "stub.html": b"<html><h1>Nothing</h1></html>",
            "nowhere.html": page("", "No address"),
        },
    )
    two = package(tmp_path, "two", {"b.htm": page("https://news.second.co.uk/b", "Snow in May")})
    return {
        "packages": [one, two],
        "gold_sha256": "",
        "left_out_sites": ["read-before.com"],
        "left_out_pages": [],
    }


def test_everybody_draws_the_same_and_no_page_that_was_read(
    tmp_path: Path, data: dict[str, Any]
) -> None:
    records = sealed.draw(tmp_path, data)
    assert [r["site"] for r in records] == ["mill-post.com", "second.co.uk"]
    first = sealed.digest_of(tmp_path)
    sealed.draw(tmp_path, data)
    assert sealed.digest_of(tmp_path) == first
    sealed.prepare(tmp_path, False, {**data, "gold_sha256": first})
    with pytest.raises(sealed.SealedError, match="is pinned"):
        sealed.prepare(tmp_path, False, {**data, "gold_sha256": "0" * 64})


def test_another_package_than_the_pinned_one_is_refused(
    tmp_path: Path, data: dict[str, Any]
) -> None:
    data["packages"][0]["sha256"] = "0" * 64
    with pytest.raises(sealed.SealedError, match=r"pip one 1\.0: sha256 \w{64}, 0+ is pinned"):
        sealed.draw(tmp_path, data)


def test_a_client_that_is_missing_is_one_line(
    tmp_path: Path, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data["packages"] = [{"kind": "npm", "name": "x", "version": "1", "sha256": ""}]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sealed.SealedError, match="npm is missing"):
        sealed.draw(tmp_path, data)


def test_only_totals_are_shown(
    tmp_path: Path, data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = sealed.draw(tmp_path, data)
    few = sealed.totals(records, [], folds=2)
    assert few["all"]["title"] is None and not few["languages"]  # two pages are no figure
    monkeypatch.setattr(sealed, "LEAST_SITES", 2)
    lines = [score_tables.predict(r["id"], page(r["url"], r["title"]), r["url"]) for r in records]
    found = sealed.totals(records, lines, folds=2)
    assert found["all"]["title"] == 1.0 and found["sites"] == 2
    said = "\n".join(sealed.shown(found)) + json.dumps(found)
    assert "2 pages of 2 sites" in said
    for record in records:
        for secret in ("id", "url", "site", "title"):
            assert record[secret] not in said


@pytest.mark.long
def test_evaluate_names_no_page_of_a_sealed_set(tmp_path: Path, data: dict[str, Any]) -> None:
    sealed.draw(tmp_path, data)
    command = [sys.executable, "-m", "scrapy", "evaluate", str(tmp_path)]
    root = Path(__file__).parents[3]
    for option in (["--worst", "3"], ["--by", "site"], ["--out", str(tmp_path / "x.jsonl")]):
        done = subprocess.run(
            command + option, capture_output=True, text=True, check=False, cwd=root
        )
        assert done.returncode == 1 and "sealed set" in done.stderr, done.stderr
        assert not (tmp_path / "x.jsonl").exists()


def test_the_set_lies_outside_the_repository() -> None:
    inside = Path(sealed.__file__).parent / "set"
    command = [sys.executable, "-m", "evaluation.sealed", str(inside)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=inside.parents[1]
    )
    assert done.returncode == 1 and "inside the repository" in done.stderr
    assert not inside.exists()


def test_the_data_file_pins_what_it_names() -> None:
    pinned = json.loads(sealed.DATA.read_text("utf-8"))
    assert len(pinned["gold_sha256"]) == 64
    for one in pinned["packages"]:
        assert one["kind"] in sealed._FETCH and len(one["sha256"]) == 64 and one["version"]


def test_what_people_noted_is_read_from_go_source() -> None:
    found = sealed.noted_in(GO_TABLE)
    url, noted = found["a.html"]
    assert url == "https://a.example.org/1"
    assert noted == Noted(
        'The "old" mill', "2024-03-05", ("Jane Doe", "John {Roe}"), ('a "piece"', "of } text")
    )
    assert found["b.html"] == ("https://b.example.org/2", Noted(day="2020-06-07"))


# ---------------------------------------------------------------- gold by agreement
def gold(markup: str, url: str = "https://a.example.org/x", noted: Noted | None = None) -> Any:
    return gold_by_agreement.gold_of(Page.of(markup.encode(), url, noted or Noted()))


def test_three_places_decide_and_two_do_not() -> None:
    found = gold(page("https://a.example.org/x").decode())
    assert found["title"] == "The mill on the river is closed"
    assert found["published"] == "2024-03-05T10:20:00+01:00"
    assert "authors" not in found  # JSON-LD and the text: two places
    noted = Noted(authors=("Jane Doe",))
    assert gold(page("https://a.example.org/x").decode(), noted=noted)["authors"] == ["Jane Doe"]


def test_places_that_disagree_leave_the_field_open() -> None:
    markup = page("https://a.example.org/x").decode()
    other = markup.replace("<h1>The mill on the river is closed", "<h1>Another headline altogether")
    noted = Noted(title="Another headline altogether")
    assert gold(other, noted=noted)["title"] == "The mill on the river is closed"  # 3 against 2
    torn = other.replace(
        'og:title" content="The mill on the river is closed', 'og:title" content="'
    )
    assert "title" not in gold(torn, noted=noted)  # 2 against 2
    assert "published" not in gold(
        markup.replace('"datePublished": "2024-03-05', '"datePublished": "2024-04-09').replace(
            "5 March 2024, 10:20", "9 April 2024"
        )
    )


@pytest.mark.parametrize(
    ("shown", "is_shown"),
    [
        ("Published 5 March 2024", True), ("March 5, 2024", True), ("05.03.2024 10:20", True),
        ("2024年3月5日", True), ("5. März 2024", True), ("ngày 5/3/2024", True),
        ("25 March 2024", False), ("5 March 2023", False), ("15.03.2024", False), ("", False),
    ],
)  # fmt: skip
def test_a_day_counts_as_seen_in_any_way_to_write_it(shown: str, is_shown: bool) -> None:
    assert gold_by_agreement._is_shown(date(2024, 3, 5), shown) is is_shown


def test_the_shortest_of_equal_titles_is_the_gold() -> None:
    said = {"a": ["Snow in May | Post"], "b": ["Snow in May"], "c": ["Snow in May"], "d": ["Rain"]}
    assert gold_by_agreement.decide(said, scorer.title_is_right) == "Snow in May"
    tie = {"a": ["x"], "b": ["x", "y"], "c": ["x", "y"], "d": ["y"]}
    assert gold_by_agreement.decide(tie, str.__eq__) is None


def test_the_text_of_the_data_counts_where_the_page_bears_it_out() -> None:
    body = " ".join(f"The river rose by {n} feet and the old mill was closed." for n in range(60))
    data = json.dumps({"@type": "Article", "articleBody": body})
    head = f"<html><script type='application/ld+json'>{data}</script><body>"
    assert gold(f"{head}<article>{TEXT}</article>")["content"] == body
    assert "content" not in gold(f"{head}<div>{TEXT}</div>")  # nothing marks it
    wanted = Noted(wanted=("rose by 7 feet",))
    assert gold(f"{head}<div>{TEXT}</div>", noted=wanted)["content"] == body
    other = Noted(wanted=("rose by 7 feet",), unwanted=("rose by 8 feet",))
    assert "content" not in gold(f"{head}<div>{TEXT}</div>", noted=other)
    assert "content" not in gold(f"{head}<article><p>Short.</p></article>")
