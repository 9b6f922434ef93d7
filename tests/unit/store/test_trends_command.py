"""`scrapy trends`, run as a person would."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from newscrawler.store.sqlite import LocalStore
from tests import warm
from tests.contract.articles import article, filler
from tests.unit.store.test_over_time import STORM, usual

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
DAY = datetime(2026, 11, 21, 3, tzinfo=UTC)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trends")
    articles = [
        article(f"{back}-{n}", title, filler(100 * back + n, 20), published=DAY - timedelta(back))
        for back in range(8)
        for n, title in enumerate([*usual(back), *(STORM if not back else ())])
    ]

    async def fill() -> None:
        store = LocalStore(folder / "articles.db")
        await store.put(articles)
        await store.close()

    asyncio.run(fill())
    return folder


@pytest.fixture
def run(data: Path) -> Run:
    def scrapy(*args: str) -> subprocess.CompletedProcess[bytes]:
        env = {**os.environ, "DATA_DIR": str(data), "ARTICLE_STORE": "", "SEMANTIC": "off"}
        return warm.run(("trends", *args), env=env, timeout=120)

    return scrapy


def test_what_rises_is_told(run: Run) -> None:
    done = run("--day", "21/11/2026", "--json")
    assert done.returncode == 0, done.stderr.decode()
    (term,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (term["term"], term["titles"], len(term["articles"])) == ("Bão số 9", 5, 5)
    assert term["sites"] == 1 and term["reason"].startswith("5 titles of 1 site; ")
    table = run("--day", "2026-11-21", "--site", "vnexpress.net")
    assert b"EXPECTED" in table.stdout and "Bão số 9" in table.stdout.decode()


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--day", "2026-11-20"), 0, "nothing rises"),
        (("--day", "2020-01-01"), 0, "nothing to compare"),
        (("--day", "2026-11-21", "--site", "nobody.vn"), 0, "nothing to compare"),
        (("--day", "someday"), 2, "someday"),
        (("today",), 2, "unknown argument: today"),
    ],
)
def test_what_there_is_not_is_one_line(
    run: Run, args: tuple[str, ...], code: int, said: str
) -> None:
    done = run(*args)
    assert done.returncode == code and done.stdout == b""
    assert said in done.stderr.decode() and b"Traceback" not in done.stderr
