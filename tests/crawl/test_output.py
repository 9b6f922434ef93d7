"""What commands print of texts that a site has written: no escape reaches a terminal, no
formula a spreadsheet."""

from __future__ import annotations

import ast
import asyncio
import csv
import io
import json
import re
from pathlib import Path

import pytest

from newscrawler.crawl.output import ArticleCsvExporter
from newscrawler.store import open_store
from tests.crawl.harness import ROOT, Scrapy
from tests.fixtures_browser import article_id, make_article

#: Window title, clear screen, CSI in one character, a turned direction; each with
#: something to find it by.
HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202eevil\u2066\x08\x7f"
FORMULA = '=HYPERLINK("http://evil.example","x")'
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Scrapy:
    folder = tmp_path_factory.mktemp("hostile")
    scrapy = Scrapy(folder)

    async def fill() -> None:
        store = open_store("", scrapy.data)
        values = {
            "authors": [FORMULA, "@evil" + HOSTILE],
            "summary": "+1+cmd|' /C calc'!A0" + HOSTILE,
            "section": "-1+1" + HOSTILE,
            "credits": [HOSTILE],
            "url": "https://vnexpress.net/hostile.html",
        }
        for title in ("first", FORMULA):
            await store.put(
                [make_article("hostile", f"{title} bão {HOSTILE}", f"Bão lớn {HOSTILE}", **values)]
            )
        await store.close()

    scrapy.data.mkdir()
    asyncio.run(fill())
    return scrapy


COMMANDS = [
    ("search", "bão"),
    ("search", "bão", "--facets"),
    ("search", "bão", "--json"),
    ("search", "zz" + HOSTILE),
    ("article", article_id("hostile")),
    ("article", article_id("hostile"), "--versions"),
    ("article", article_id("hostile"), "--json"),
    ("export", "--format", "jsonl"),
    ("export", "--format", "csv"),
]


@pytest.mark.parametrize("args", COMMANDS, ids=lambda args: " ".join(args).split("\x1b")[0])
def test_no_escape_of_a_stored_text_is_printed(hostile: Scrapy, args: tuple[str, ...]) -> None:
    done = hostile.run(*args)
    assert done.returncode == 0, done.stderr
    if args[-1] == "bão" or args[0] == "article":
        assert "evil" in done.stdout, "the hostile text is not part of the output"
    text = done.stdout.replace("\r\n", "\n") + done.stderr  # csv ends its lines so
    assert not _FORBIDDEN.findall(text), text
    if "--json" in args or "jsonl" in args:
        (row,) = [json.loads(line) for line in done.stdout.splitlines()]
        assert HOSTILE in row["title"], "JSON keeps what was stored"


def test_no_cell_of_an_export_is_a_formula(hostile: Scrapy) -> None:
    done = hostile.run("export", "--format", "csv")
    head, row = csv.reader(io.StringIO(done.stdout))
    cells = dict(zip(head, row, strict=True))
    assert cells["title"].startswith("'=HYPERLINK(") and cells["authors"].startswith("'=")
    assert not [c for c in row if c.lstrip().startswith(("=", "+", "-", "@"))]


def test_log_lines_are_of_no_use_to_a_terminal(tmp_path: Path) -> None:
    """Any logger of the process, tracebacks included, on the way of a real command."""
    code = (
        "import logging, sys\n"
        "from scrapy.cmdline import execute\n"
        "from newscrawler.commands import doctor\n"
        "def run(self, args, opts):\n"
        "    logging.basicConfig(stream=sys.stderr, force=True)\n"
        "    log = logging.getLogger('some.library')\n"
        f"    log.warning('title=%s', {HOSTILE!r})\n"
        "    try:\n"
        f"        raise ValueError({HOSTILE!r} + ' redis://:sesame@h/0')\n"
        "    except ValueError:\n"
        "        log.exception('it broke')\n"
        "doctor.Command.run = run\n"
        "execute(['scrapy', 'doctor'])\n"
    )
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stderr.count("evil") >= 2 and "Traceback" in done.stderr, done.stderr
    assert not _FORBIDDEN.findall(done.stderr)
    assert "sesame" not in done.stderr


def test_commands_print_through_one_function() -> None:
    """``cli.show`` and what is built on it; a bare print is for texts of our own alone."""
    allowed = {("evaluate.py", "_progress")}  # a carriage return of ours
    found = []
    for path in [
        *(ROOT / "newscrawler" / "commands").glob("*.py"),
        ROOT / "evaluation" / "selector_bench.py",
    ]:
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            found += [
                f"{path.name}:{node.lineno}"
                for node in ast.walk(function)
                if isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
                and (path.name, function.name) not in allowed
            ]
    assert not found


def test_no_cell_of_a_feed_is_a_formula() -> None:
    """``-o out.csv``: the exporter that the settings name."""
    file = io.BytesIO()
    exporter = ArticleCsvExporter(file)
    article = make_article("a", FORMULA + HOSTILE, "+1+cmd", authors=["=1", "@b"], section="-5")
    exporter.start_exporting()
    exporter.export_item(article)
    exporter.finish_exporting()
    head, row = csv.reader(io.StringIO(file.getvalue().decode()))
    cells = dict(zip(head, row, strict=True))
    assert cells["title"].startswith("'=HYPERLINK(") and cells["authors"] == "'=1; @b"
    assert (cells["content"], cells["section"]) == ("'+1+cmd", "-5")
    assert not _FORBIDDEN.findall("".join(row))
