"""`scrapy takedown --copies`: which other addresses of a text go along."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from newscrawler import settings as project
from newscrawler.crawl import link_graph, takedown
from newscrawler.crawl.link_graph import LinkNotes
from newscrawler.store import open_store
from tests.contract.articles import article, filler


@pytest.fixture
def settings(tmp_path: Path, redis_server: str, r: Any) -> Settings:
    found = Settings()
    found.setmodule(project, priority="project")
    values = {"DATA_DIR": str(tmp_path), "REDIS_URL": redis_server, "SEMANTIC": "off"}
    found.update(values, priority="cmdline")
    return found


@pytest.mark.parametrize("with_copies", [False, True])
async def test_copies_of_the_site_go_along_where_that_is_asked(
    settings: Settings, tmp_path: Path, with_copies: bool
) -> None:
    text = filler(7)
    one = replace(article("one", "Giá vàng tăng mạnh hôm nay", text), raw_ref="")
    host = one.url.split("/")[2]
    same = replace(
        article("same", one.title, text), url=f"https://{host}/ban-sao.html", site=one.site
    )
    else_ = replace(article("else", one.title, text), url="https://b.vn/lai.html", site="b.vn")
    other = article("other", "Bão số 5 vào bờ", filler(9))
    store = open_store("", tmp_path)
    await store.put([one, same, else_, other])
    kept = await store.get(one.id)
    assert kept is not None and kept.cluster, "they are known as copies"
    await store.close()
    (tmp_path / "logs/json").mkdir(parents=True)
    log = tmp_path / "logs/json/w.jsonl"
    log.write_text("".join(json.dumps({"url": a.url}) + "\n" for a in (one, same, else_, other)))

    async with takedown.opened(settings, lambda text: None) as work:
        plan = await work.plan(one.url, "asked", "me", with_copies=with_copies)
        gone = {one.id, same.id} if with_copies else {one.id}
        assert set(plan.articles) == gone
        assert set(plan.copies) == {a.url for a in (one, same, else_) if a.id not in gone}
        report = await work.carry_out(plan)
        assert report.left == []
        assert await work.taken.has(one.url)
        assert await work.taken.has(same.url) == with_copies
        assert not await work.taken.has(other.url)
    store = open_store("", tmp_path)
    left = {a.id async for a in store.scan()}
    await store.close()
    assert left == {a.id for a in (one, same, else_, other)} - gone
    named = [json.loads(line)["url"] for line in log.read_text().splitlines()]
    assert len(named) == 4
    assert {url for url in named if url.startswith("http")} == {
        a.url for a in (one, same, else_, other) if a.id not in gone
    }


async def test_what_a_worker_notes_meanwhile_goes_too(
    settings: Settings, tmp_path: Path, r: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that read the page before it was blocked writes it into the link graph after that
    was emptied."""
    one = replace(article("one", "Giá vàng tăng mạnh hôm nay", filler(7)), raw_ref="")
    store = open_store("", tmp_path)
    await store.put([one])
    await store.close()
    said: list[str] = []
    async with takedown.opened(settings, said.append) as work:
        purge, written = work.store.purge, []

        async def late(ids: list[str]) -> int:
            if not written:
                written.append(1)
                notes = LinkNotes(r, 100)
                notes.note(one.site, bytes.fromhex(one.id), one.url, one.title, [], 1)
                await notes.flush(is_last=True)
            return await purge(ids)

        monkeypatch.setattr(work.store, "purge", late)
        report = await work.carry_out(await work.plan(one.url, "asked", "me", with_copies=False))
    assert written and report.left == []
    assert await link_graph.pages_of(r, one.site) == {}
    assert said.count("looking for what is left") == 2, "it is looked through once more"
