"""`scrapy search`, `scrapy article`, `scrapy export`, run as a person would."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from newscrawler.items import Article
from newscrawler.rawstore import RawStore
from newscrawler.store.sqlite import LocalStore
from tests import warm

BODY = "<html><title>Bão</title>café</html>".encode("latin-1", "xmlcharrefreplace") + b"\xff\x00"
ARTICLE = Article(
    id="a" * 32, url="https://a.vn/bao.html", site="a.vn", title="Bão số 5 vào Hà Nội", content="Mưa lớn.\n\nNgập sâu.",
    authors=["An", "Bình"], credits=["TTXVN"],
    published=datetime(2026, 8, 3, 1, 0, tzinfo=UTC), fetched=datetime(2026, 8, 3, 2, 0, tzinfo=UTC),
    origins={"title": "selector:h1"}, confidence={"title": 0.9, "authors": 0.6, "section": 0.1},
)  # fmt: skip
OTHER = replace(
    ARTICLE,
    id="b" * 32,
    url="https://b.vn/vang.html",
    site="b.vn",
    title='Giá "vàng", hôm nay',
    authors=[],
)

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("data")
    raw = RawStore.open(str(folder / "warc"), "w1")
    ref = raw.write(ARTICLE.url, BODY, [(b"content-type", b"text/html")], 200, datetime.now(UTC))
    raw.flush()
    raw.close()

    async def fill() -> None:
        store = LocalStore(folder / "articles.db")
        await store.put([replace(ARTICLE, raw_ref=ref, content="Mưa vừa.\n\nNgập sâu."), OTHER])
        await store.put([replace(ARTICLE, raw_ref=ref)])
        await store.close()

    asyncio.run(fill())
    yield folder


@pytest.fixture
def run(data_dir: Path) -> Run:
    def scrapy(
        *args: str, data: Path = data_dir, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        env = {
            **os.environ,
            "DATA_DIR": str(data),
            "ARTICLE_STORE": "",
            "RAW_STORE": "",
            **environment,
        }
        return warm.run(args, env=env, timeout=60)

    return scrapy


def rows(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_search_prints_one_object_a_line(run: Run) -> None:
    hit, facets = rows(run("search", "ha", "noi", "--json", "--facets"))
    assert (hit["id"], hit["url"], hit["title"]) == (ARTICLE.id, ARTICLE.url, ARTICLE.title)
    assert (hit["relaxed"], hit["by_meaning"], hit["unsure"]) == ("", False, ["authors"])
    slips = rows(run("search", "ngập saau", "--json"))
    assert [one["relaxed"] for one in slips] == ["corrected"] * 2
    assert facets == {
        "facets": {
            "site": {"a.vn": 1},
            "day": {"2026-08-03": 1},
            "author": {"An": 1, "Bình": 1},
            "section": {},
            "keyword": {},
            "lang": {},
            "without": {},
        }
    }


def test_search_prints_a_table_and_says_how_many(run: Run) -> None:
    done = run("search", "ngập sâu", "--site", "a.vn,b.vn", "--sort", "date", "--limit", "1")
    assert done.stdout.decode().splitlines()[0].split() == ["PUBLISHED", "SITE", "TITLE", "URL"]
    assert len(done.stdout.splitlines()) == 2
    assert "1-1 of 2 articles" in done.stderr.decode()
    assert "nothing found" in run("search", "qqqqzzzz").stderr.decode()


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("search",), 2, "a query is needed"),
        (("search", "x", "--after", "yesterday"), 2, "after:yesterday: not a day"),
        (("search", "x", "--limit", "101"), 2, "1 to 100"),
        (("article", "https://a.vn/none.html"), 1, "not stored: https://a.vn/none.html"),
        (("article", OTHER.id, "--html"), 1, "no page is stored"),
        (("export", "--format", "parquet"), 2, "--out FILE"),
        (("export", "--since", "yesterday"), 2, "not a time"),
        (("export", "--out", "/nowhere/at/all.jsonl"), 1, "there is no folder"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(run: Run, args: tuple[str, ...], code: int, says: str) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (code, b"")
    assert says in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_without_a_store_nothing_is_created(run: Run, tmp_path: Path) -> None:
    done = run("search", "x", data=tmp_path / "none")
    assert (done.returncode, "no articles stored yet" in done.stderr.decode()) == (1, True)
    assert not (tmp_path / "none").exists()
    done = run("search", "x", ARTICLE_STORE="http://127.0.0.1:9")
    assert (done.returncode, "cannot be reached" in done.stderr.decode()) == (1, True)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=str)
def test_a_store_without_an_article_says_so_in_one_line(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    asyncio.run(LocalStore(tmp_path / "articles.db").open())
    done = run("search", "x", *options, data=tmp_path)
    said = b"No article is stored yet: crawl first (is DATA_DIR right?)\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", said)


def test_article_by_url_and_by_id(run: Run) -> None:
    shown = run("article", ARTICLE.url).stdout.decode()
    assert (
        shown.startswith(ARTICLE.title)
        and "An, Bình" in shown
        and "credits:          TTXVN" in shown
        and shown.endswith("Mưa lớn.\n\nNgập sâu.\n")
    )
    (fields,) = rows(run("article", ARTICLE.id, "--json"))
    assert (fields["title"], fields["version"], fields["origins"]) == (
        ARTICLE.title,
        2,
        {"title": "selector:h1"},
    )
    assert fields["unsure"] == ["authors"] and "An, Bình  (unsure)" in shown


def test_article_versions_show_what_changed(run: Run) -> None:
    shown = run("article", ARTICLE.id, "--versions").stdout.decode()
    assert "version 2" in shown and "changed: content" in shown
    assert "    -Mưa vừa.\n    +Mưa lớn.\n" in shown and "Ngập" not in shown
    first, second = rows(run("article", ARTICLE.id, "--versions", "--json"))
    assert (first["changed"], second["changed"]) == ([], ["content"])


def test_article_html_is_the_page_byte_for_byte(run: Run) -> None:
    assert run("article", ARTICLE.url, "--html").stdout == BODY


def test_export_in_every_format(run: Run, tmp_path: Path) -> None:
    exported = {row["id"]: row for row in rows(run("export"))}
    assert set(exported) == {ARTICLE.id, OTHER.id}
    assert (
        exported[ARTICLE.id]["authors"] == ["An", "Bình"]
        and exported[ARTICLE.id]["content"] == ARTICLE.content
    )
    table = {
        r["id"]: r
        for r in csv.DictReader(
            io.StringIO(run("export", "--format", "csv").stdout.decode(), newline="")
        )
    }
    assert (table[ARTICLE.id]["authors"], table[OTHER.id]["title"]) == ("An; Bình", OTHER.title)
    assert table[ARTICLE.id]["content"] == ARTICLE.content
    out = tmp_path / "articles.parquet"
    assert (
        rows(run("export", "--format", "parquet", "--out", str(out), "--json"))[0]["articles"] == 2
    )
    columns = {r["id"]: r for r in pq.read_table(out).to_pylist()}
    assert columns[ARTICLE.id]["published"] == ARTICLE.published
    assert columns[ARTICLE.id]["authors"] == ["An", "Bình"]
    assert columns[ARTICLE.id]["credits"] == ["TTXVN"] and table[ARTICLE.id]["credits"] == "TTXVN"
    assert list(tmp_path.iterdir()) == [out]


def test_export_since(run: Run) -> None:
    assert len(rows(run("export", "--since", "2020-01-01"))) == 2
    assert rows(run("export", "--since", "2100-01-01T00:00Z")) == []


def test_a_search_is_exported(run: Run, tmp_path: Path) -> None:
    (row,) = rows(run("export", "--query", '"bão số 5" author:an'))
    assert row["id"] == ARTICLE.id
    out = tmp_path / "gold.csv"
    done = run("export", "--query", "vàng", "--format", "csv", "--out", str(out), "--json")
    assert rows(done) == [{"articles": 1, "format": "csv", "out": str(out)}]
    assert [r["url"] for r in csv.DictReader(io.StringIO(out.read_text("utf-8")))] == [OTHER.url]
    both = run("export", "--query", "vàng", "--since", "2026-01-01")
    assert both.returncode == 2 and b"--since" in both.stderr
    wrong = run("export", "--query=-vàng")
    assert wrong.returncode == 2 and b"no word to look for" in wrong.stderr
