"""Every way in which a request can end in Scrapy is acked exactly once: the contract of the
hook in scheduler.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: path -> outcome of its one ack (and the reason, where it says more)
EXPECTED = {
    "ok": "DONE",
    "generator": "DONE",
    "async-generator": "DONE",
    "slow-pipeline": "DONE",
    "two-items": "DONE",
    "returns-none": "RETRY nothing",
    "yields-nothing": "RETRY nothing",
    "raises": "RETRY parse",
    "raises-after-item": "RETRY parse",
    "raises-in-async": "RETRY parse",
    "mw-output-raises": "RETRY parse",
    "mw-output-drops": "REFUSED not stored",
    "pipeline-raises": "RETRY pipeline",
    "pipeline-drops": "REFUSED dropped",
    "pipeline-replaces": "REFUSED not stored",
    "no-article": "NOT_ARTICLE",
    "nothing-left": "NOT_ARTICLE empty after cleaning",
    "same-text": "REDIRECTED canonical",
    "timeout": "RETRY",
    "reset": "RETRY",
    "short": "RETRY",
    "closed-port": "RETRY",
    "dl-mw-raises": "RETRY ValueError",
    "spider-mw-raises": "RETRY ValueError",
    "errback-raises": "RETRY parse",
    "ignored": "RETRY IgnoreRequest",
    "robots-refused": "REFUSED robots",
    "status-404": "GONE status 404",
    "status-500": "RETRY status 500",
    "redirect": "REDIRECTED",
    "dl-mw-request": "REDIRECTED middleware",
    "empty": "NOT_ARTICLE",
    "type": "REFUSED type",
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("paths")
    done = subprocess.run(
        [sys.executable, "-m", "tests.crawl.paths_crawl", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    answer["stderr"] = done.stderr
    return answer


def test_there_are_33_paths(result: dict[str, Any]) -> None:
    assert len(result["paths"]) == 33 == len(EXPECTED)


@pytest.mark.parametrize("path", EXPECTED)
def test_acked_exactly_once_with_its_outcome(result: dict[str, Any], path: str) -> None:
    acks = result["acks"].get(path, [])
    assert len(acks) == 1, f"{path}: {acks}\n{result['stderr'][-1500:]}"
    outcome, reason, taken = acks[0]
    assert taken == "accepted"
    want, _, detail = EXPECTED[path].partition(" ")
    assert outcome == want, (outcome, reason)
    if detail:
        assert reason == detail


def test_nothing_is_left_leased(result: dict[str, Any]) -> None:
    assert result["left"]["leased"] == 0
    assert result["reason"] == "finished"
