"""Stores of finished records: the file beside the local articles and the index beside
those in Elasticsearch."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from newscrawler.store.base import StoreUnavailable
from newscrawler.store.finished import ElasticFinished, FinishedStore, LocalFinished, open_finished


@pytest.fixture(params=["sqlite", "elasticsearch"])
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[list[FinishedStore]]:
    """Two workers' hands on one store."""
    made: list[FinishedStore]
    if request.param == "sqlite":
        made = [LocalFinished(tmp_path / "a" / "finished.db") for _ in range(2)]
    else:
        url = request.getfixturevalue("elasticsearch_server")
        index = f"t{uuid.uuid4().hex[:12]}"
        made = [ElasticFinished(url, index=index) for _ in range(2)]
    yield made
    for one in made:
        await one.close()


def rows(n: int, start: int = 0) -> list[tuple[bytes, bytes]]:
    return [(i.to_bytes(16, "big"), bytes((i % 256, 0, 255)) * 15) for i in range(start, start + n)]


async def test_what_one_worker_put_the_other_finds_at_once(pair: list[FinishedStore]) -> None:
    one, other = pair
    await one.put(rows(1200))
    found = await other.get([url_id for url_id, _ in rows(1300)])
    assert found == dict(rows(1200))


async def test_a_record_that_is_put_again_is_replaced(pair: list[FinishedStore]) -> None:
    one, other = pair
    (url_id, _), *_ = rows(1)
    await one.put([(url_id, b"first")])
    await other.put([(url_id, b"second")])
    assert await one.get([url_id]) == {url_id: b"second"}


async def test_nothing_asked_nothing_put(pair: list[FinishedStore]) -> None:
    await pair[0].put([])
    assert await pair[0].get([]) == {} == await pair[0].get([bytes(16)])


async def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    store = open_finished("", tmp_path / "file")
    with pytest.raises(StoreUnavailable, match=r"finished\.db"):
        await store.put(rows(1))
    await store.close()


async def test_a_server_that_is_away_says_so() -> None:
    store = open_finished("http://127.0.0.1:9", Path("unused"))
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await store.get([bytes(16)])
    await store.close()
