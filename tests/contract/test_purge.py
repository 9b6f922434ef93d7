"""Articles that are taken out of a store leave nothing behind, and nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from newscrawler.store.base import Query, WholeStore
from newscrawler.store.events import DeadLetter, Outbox
from newscrawler.store.sqlite import LocalStore
from tests.contract.articles import article, article_id, filler

TEXT = "Chuyện của riêng một người mà không ai được biết nữa. " + filler(60)
FIRST = article("a", "Chuyện riêng", TEXT)
SECOND = replace(FIRST, title="Chuyện riêng, sửa lại")
COPY = article("b", "Chuyện riêng chép lại", TEXT, site="tuoitre.vn")
OTHER = article("c", "Giá gạo", filler(7))
LAST = article("d", "Tin sau cùng", filler(9))


async def found(store: WholeStore, text: str) -> list[str]:
    await store.refresh()
    return sorted(hit.article.id for hit in (await store.search(Query(text, strict=True))).hits)


async def test_what_is_purged_is_gone_everywhere(store: WholeStore, tmp_path: Path) -> None:
    outbox: Outbox = store.outbox  # type: ignore[attr-defined]
    await outbox.begin(["one"])
    for batch in ([FIRST, OTHER], [SECOND, COPY], [LAST]):
        await store.put(batch)
    await outbox.keep([DeadLetter("one", FIRST.id, 1, "new", 1, "no", 2)])
    assert await found(store, "riêng") == sorted([FIRST.id, COPY.id])

    assert await store.purge([FIRST.id, LAST.id, article_id("never")]) == 2
    assert await store.scrub(rewrite=True) == []
    assert await store.get(FIRST.id) is None and await store.find_url(FIRST.url) is None
    assert await store.versions(FIRST.id) == []
    assert await found(store, "riêng") == [COPY.id]
    assert await outbox.dead_letters() == []
    stats = await store.stats()
    assert (stats["articles"], stats["versions"], stats["clusters"]) == (2, 2, 0)
    assert await store.inspect() == []
    assert await store.purge([FIRST.id]) == 0

    if isinstance(store, LocalStore):
        title = SECOND.title.encode()
        held = [p.name for p in tmp_path.rglob("*") if p.is_file() and title in p.read_bytes()]
        assert held == []


async def test_a_store_goes_on_after_its_last_article_was_purged(store: WholeStore) -> None:
    """Change numbers are not given out twice: what comes next is indexed and told."""
    outbox: Outbox = store.outbox  # type: ignore[attr-defined]
    await outbox.begin(["one"])
    await store.put([FIRST])
    await store.put([LAST])
    assert await found(store, "riêng") == [FIRST.id]
    position = (await outbox.after((await outbox.cursors())["one"], 100)).position
    await outbox.move("one", position)
    await store.purge([LAST.id])
    assert await found(store, "sau cùng") == []
    await store.purge([FIRST.id])
    assert await found(store, "riêng") == []
    await store.put([OTHER])
    assert await found(store, "gạo") == [OTHER.id]
    batch = await outbox.after((await outbox.cursors())["one"], 100)
    assert [event.article.id for event in batch.events] == [OTHER.id]
    if not isinstance(store, LocalStore):
        return  # Elasticsearch refuses a version that it had deleted for a minute
    await store.put([FIRST])  # it may come back when its take-down is lifted
    assert await found(store, "riêng") == [FIRST.id]
    assert [one.version for one in await store.versions(FIRST.id)] == [1]
