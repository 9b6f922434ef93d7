"""WARC files that the program of 21 November 2026 wrote (commit 63b6e23, before the modules were
moved) are read, mended, added to and compacted by the program of today.

``old/`` has a closed file, and one whose worker was killed within a record; ``pages.json`` says what
that program was handed, and the references that it gave.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from newscrawler.rawstore import READER, RawNotFound, RawPage, RawStore, compact, sealing

OLD = Path(__file__).parent / "old"
SAID = json.loads((OLD / "pages.json").read_text(encoding="utf-8"))


def page_of(row: dict[str, Any]) -> RawPage:
    return RawPage(
        url=quote(row["url"], safe=":/?=&[]"),  # as records have it
        body=bytes.fromhex(row["body"]),
        headers=[(k.encode("latin-1"), v.encode("latin-1")) for k, v in row["headers"]],
        status=row["status"],
        fetched=datetime.fromisoformat(row["fetched"]),
    )


PAGES = {row["ref"]: page_of(row) for row in SAID["pages"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(OLD, tmp_path / "warc")
    (tmp_path / "warc" / "pages.json").unlink()
    return tmp_path / "warc"


@pytest.mark.parametrize("ref", PAGES)
def test_a_reference_leads_to_the_page_that_was_stored(ref: str, folder: Path) -> None:
    assert RawStore.open(str(folder), READER).read(ref) == PAGES[ref]


def test_a_worker_mends_the_file_that_broke_off(folder: Path) -> None:
    store = RawStore.open(str(folder), "worker-2")
    added = store.write(
        "https://bao.example/moi.html", b"new", [], 200, datetime.now().astimezone()
    )
    store.flush()
    assert {ref for ref, _ in store.scan()} == {*PAGES, added}
    with pytest.raises(RawNotFound):
        store.read(SAID["lost"])
    store.close()
    assert set(dict(RawStore.open(str(folder), READER).verify()).values()) == {""}


def test_old_pages_are_compacted_under_their_references(folder: Path) -> None:
    kept, *others = list(PAGES)[:4]
    (path,) = folder.glob("*.warc.gz")
    done = compact.compact(path, lambda ref, page: ref == kept, sealing.Keys([]))
    assert done is not None and (done.kept, done.dropped) == (1, 3)
    store = RawStore.open(str(folder), READER)
    assert store.read(kept) == PAGES[kept]
    for ref in others:
        with pytest.raises(RawNotFound, match="pruned"):
            store.read(ref)
