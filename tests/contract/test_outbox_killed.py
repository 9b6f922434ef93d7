"""kill -9 between a commit and what is told of it: every event is told by whoever comes next."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from newscrawler.store.events import event_id
from tests.contract.articles import article_id
from tests.contract.teller import open_it


def teller(uri: str, file: Path, first: int, count: int, mode: str) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "tests.contract.teller", uri, str(file), str(first), str(count), mode,
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_after(process: subprocess.Popen[str], lines: int) -> None:
    """SIGKILL when so many batches are stored."""
    assert process.stdout is not None
    for _ in range(lines):
        assert process.stdout.readline(), "it ended too early"
    process.kill()
    process.wait(60)
    process.stdout.close()


def run(uri: str, file: Path, mode: str) -> None:
    with teller(uri, file, 0, 0, mode) as process:
        assert process.wait(180) == 0


async def due(uri: str) -> list[str]:
    """Ids of the events of all that is stored, by article in their order."""
    store = open_it(uri)
    ids = []
    for number in range(0, 600):
        article = await store.get(article_id(f"k{number}"))
        if article is None:
            continue
        ids += [event_id(article.id, n, "new") for n in range(1, article.version + 1)]
        ids += [event_id(article.id, article.version, "gone")] if article.gone else []
    await store.close()
    return ids


@pytest.mark.parametrize("kind", ["sqlite", "elasticsearch"])
async def test_nothing_is_lost_by_kill_9(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri = str(tmp_path / "articles.db")
    if kind == "elasticsearch":
        url = request.getfixturevalue("elasticsearch_server")
        uri = f"{url}#k{uuid.uuid4().hex[:12]}"
    file = tmp_path / "told"
    kill_after(teller(uri, file, 0, 200, "mute"), 10)
    assert file.read_text() == "", "all was stored and nothing told"
    kill_after(teller(uri, file, 200, 200, "slow"), 15)
    run(uri, file, "rest")

    told, expected = file.read_text().split(), await due(uri)
    assert len(expected) > 120
    assert set(told) == set(expected)
    again = {name: n for name, n in Counter(told).items() if n > 1}
    assert len(again) <= 5, f"at most the delivery that was at work is told twice: {again}"
    order = {name: place for place, name in reversed(list(enumerate(told)))}
    for one, other in pairwise(expected):
        if one.partition(".")[0] == other.partition(".")[0]:
            assert order[one] < order[other], "events of one article are told in their order"


@pytest.mark.long
async def test_another_process_takes_over_while_it_runs(tmp_path: Path) -> None:
    uri, file = str(tmp_path / "articles.db"), tmp_path / "told"
    first = teller(uri, file, 0, 200, "mute")
    assert first.stdout is not None and first.stdout.readline()
    run(uri, tmp_path / "theirs", "look")
    assert (tmp_path / "theirs").read_text() == "", "another one delivers, and is not waited for"
    kill_after(first, 5)
    run(uri, file, "rest")
    assert set(file.read_text().split()) == set(await due(uri))
