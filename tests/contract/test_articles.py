"""What every store does with articles: idempotent writes, versions, gone,
near-duplicates, scan, stats."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from newscrawler.items import Article
from newscrawler.store.base import ArticleStore, Query, StoreRefused
from newscrawler.store.labels import KEYS
from tests.contract.articles import CORPUS, START, article, article_id, filler


async def test_putting_twice_changes_nothing(store: ArticleStore) -> None:
    one = article("a", "Tiêu đề", "Nội dung", authors=["An"])
    assert [(r.status, r.version) for r in await store.put([one])] == [("new", 1)]
    again = replace(
        one,
        fetched=datetime(2026, 9, 1, tzinfo=UTC),
        raw_ref="other:1:2",
        section="Khác",
        credits=["TTXVN"],
    )
    assert [(r.status, r.version) for r in await store.put([again])] == [("unchanged", 1)]
    assert len(await store.versions(one.id)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Giá xăng tăng 121 đồng"},
        {"content": "Từ 15 giờ, giá là 20.001 đồng."},
        {"published": START + timedelta(minutes=1)},
        {"published": None},
        {"authors": ["An", "Bình"]},
        {"authors": []},
    ],
    ids=str,
)
async def test_one_changed_digit_is_a_new_version(
    store: ArticleStore, change: dict[str, object]
) -> None:
    one = article(
        "a",
        "Giá xăng tăng 120 đồng",
        "Từ 15 giờ, giá là 20.000 đồng.",
        authors=["An"],
        published=START,
    )
    await store.put([one])
    changed = replace(one, **change)  # type: ignore[arg-type]
    assert [(r.status, r.version) for r in await store.put([changed])] == [("updated", 2)]
    old, new = await store.versions(one.id)
    assert (old.version, new.version) == (1, 2)
    assert (old.title, old.content, old.authors, old.published) == (
        one.title,
        one.content,
        one.authors,
        START,
    )
    for name, value in change.items():
        assert getattr(new, name) == value


async def test_the_same_instant_in_another_zone_is_unchanged(store: ArticleStore) -> None:
    await store.put([article("a", "T", "C", published=START)])
    moved = article("a", "T", "C", published=START.astimezone(timezone(timedelta(hours=7))))
    assert (await store.put([moved]))[0].status == "unchanged"


async def test_composed_and_decomposed_letters_are_the_same_text(store: ArticleStore) -> None:
    await store.put([article("a", "Hà Nội", "Đường phố")])
    assert (await store.put([article("a", "Ha\u0300 No\u0323\u0302i", "Đường phố")]))[
        0
    ].status == "unchanged"


async def test_an_article_twice_in_a_batch_ends_as_its_last(store: ArticleStore) -> None:
    first, last = article("a", "Alpha", "Một"), article("a", "Omega", "Hai")
    results = await store.put([first, last, article("b", "Beta", "Ba")])
    assert len(results) == 3
    got = await store.get(first.id)
    assert got is not None and got.title == "Omega"
    await store.refresh()
    assert (await store.search(Query("alpha"))).total == 0
    assert [h.article.id for h in (await store.search(Query("omega"))).hits] == [first.id]


async def test_every_field_comes_back(store: ArticleStore) -> None:
    full = article(
        "a", "T", "C", authors=["An"], credits=["TTXVN"], published=START, modified=START + timedelta(hours=2), summary="Tóm tắt",
        section="Thời sự", keywords=["Mưa", "Huế"], image="https://x/i.jpg", language="vi", canonical_url="https://x/canonical",
        pictures=[{"url": "https://x/1.jpg", "caption": "Cầu Trường Tiền", "credit": "TTXVN"}],
        discovered=START, fetched=START + timedelta(minutes=3), origins={"title": "selector:h1"},
        confidence={"title": 0.9}, selector_version="x@1", raw_ref="f:1:2",
    )  # fmt: skip
    await store.put([full])
    assert await store.get(full.id) == full
    bare = article("b", "Chỉ có tiêu đề", published=None)
    await store.put([bare])
    assert await store.get(bare.id) == bare
    assert await store.get(article_id("nobody")) is None
    assert await store.versions(article_id("nobody")) == []


async def test_found_by_url_canonical_url_and_tracked_url(store: ArticleStore) -> None:
    one = article("a", "T", "C", canonical_url="https://vnexpress.net/khac.html")
    await store.put([one])
    await store.refresh()
    for url in (one.url, "https://vnexpress.net/khac.html", one.url + "?utm_source=fb#top"):
        found = await store.find_url(url)
        assert found is not None and found.id == one.id, url
    assert await store.find_url("https://vnexpress.net/none.html") is None


async def test_a_gone_article_is_kept_but_not_found_and_can_come_back(store: ArticleStore) -> None:
    one = article("a", "Tin biến mất", "Nội dung")
    await store.put([one, article("b", "Tin còn lại", "Nội dung")])
    assert await store.mark_gone([one.id, article_id("nobody")]) == 1
    assert await store.mark_gone([one.id]) == 0
    await store.refresh()
    assert (await store.search(Query("tin"))).total == 1
    assert (await store.search(Query("biến mất"))).total == 0 or (
        await store.search(Query("biến mất"))
    ).relaxed
    got = await store.get(one.id)
    assert got is not None and got.gone and got.content == "Nội dung"
    stats = await store.stats()
    assert (stats["articles"], stats["gone"]) == (1, 1)
    assert [a.id async for a in store.scan()] == [article_id("b")]

    assert [(r.status, r.version) for r in await store.put([one])] == [("updated", 2)]
    await store.refresh()
    assert (await store.search(Query('"biến mất"'))).total == 1
    got = await store.get(one.id)
    assert got is not None and not got.gone
    assert await store.mark_gone([one.id]) == 1, "goes a second time"


async def test_a_faulty_article_is_refused_and_the_rest_is_stored(store: ArticleStore) -> None:
    good, bad = article("good", "Tốt", "Nội dung"), article("bad", " ", "")
    with pytest.raises(StoreRefused) as caught:
        await store.put([good, bad])
    assert caught.value.ids == [bad.id]
    assert [r.id for r in caught.value.results] == [good.id]
    assert await store.get(good.id) is not None
    assert await store.get(bad.id) is None


@pytest.mark.filterwarnings(
    "ignore:Sending a large body:ResourceWarning"
)  # one article of 2 MB is one request
async def test_odd_text_is_stored(store: ArticleStore) -> None:
    odd = [
        article("surrogate", "Lone \ud800 surrogate", "x \udfff y"),
        article("nul", "With \x00 nul", "a\x00b \ufeff\u200b\ue000\ue001"),
        article("long-word", "W", "x" * 50_000 + " tail"),
        article("long-text", "L", filler(1, 60_000)),
        article("emoji", "😀 👩‍👩‍👧 Tin vui", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 🇻🇳"),
        article("punctuation", "!!! ??? …", "—"),
        article("future", "Tương lai", "x", published=datetime(9999, 12, 31, tzinfo=UTC)),
        article("past", "Quá khứ", "x", published=datetime(1, 1, 2, tzinfo=UTC)),
    ]
    assert {r.status for r in await store.put(odd)} == {"new"}
    assert {r.status for r in await store.put(odd)} == {"unchanged"}
    await store.refresh()
    assert (await store.search(Query("surrogate"))).hits[0].article.id == odd[0].id
    assert (await store.search(Query("tail"))).hits[0].article.id == odd[2].id
    assert (await store.search(Query(""))).total == len(odd)


async def test_two_workers_with_one_article_store_it_once(
    store: ArticleStore, twin: ArticleStore
) -> None:
    batch = [article(f"n{i}", f"Tin {i}", filler(i, 30)) for i in range(20)]
    results = await asyncio.gather(store.put(batch), twin.put(list(reversed(batch))))
    flat = [r for half in results for r in half]
    assert sum(r.status == "new" for r in flat) == 20
    assert sum(r.status == "unchanged" for r in flat) == 20
    await store.refresh()
    stats = await store.stats()
    assert (stats["articles"], stats["versions"]) == (20, 20)


async def test_two_workers_with_two_texts_make_two_versions(
    store: ArticleStore, twin: ArticleStore
) -> None:
    results = await asyncio.gather(
        *(s.put([article("a", t, "x")]) for s, t in ((store, "Một"), (twin, "Hai")))
    )
    assert sorted(r.version for half in results for r in half) == [1, 2]
    assert len({v.title for v in await store.versions(article_id("a"))}) == 2


async def test_near_duplicates_share_a_cluster_whose_first_publisher_is_canonical(
    store: ArticleStore,
) -> None:
    text = filler(7, 300).split()
    copy = list(text)
    for i in range(0, 300, 20):  # 5 % of the words
        copy[i] = "khác"
    late = article(
        "late", "Bản sao", " ".join(copy), site="b.vn", published=START + timedelta(hours=5)
    )
    early = article("early", "Bản gốc", " ".join(text), site="a.vn", published=START)
    other = article("other", "Tin khác", filler(8, 300))
    await store.put([late, other])
    await store.refresh()
    await store.put([early])
    await store.refresh()
    for name in ("late", "early"):
        got = await store.get(article_id(name))
        assert got is not None and got.cluster == early.id
    got = await store.get(other.id)
    assert got is not None and got.cluster is None
    assert [a.id for a in await store.cluster(early.id)] == [early.id, late.id]
    found = await store.search(Query("title:bản"))
    assert sorted(h.similar for h in found.hits) == [1, 1]
    collapsed = await store.search(Query("title:bản", collapse=True))
    assert (len(collapsed.hits), collapsed.total) == (1, 1)
    assert (await store.stats())["clusters"] == 1

    # A rewrite of one leaves the cluster, and nobody is alone in one.
    await store.put([replace(late, content=filler(9, 300))])
    await store.refresh()
    for name in ("late", "early"):
        got = await store.get(article_id(name))
        assert got is not None and got.cluster is None


async def test_collapsed_hits_are_first_publishers_with_their_copies_below(
    store: ArticleStore,
) -> None:
    stories = []
    for story in range(7):
        text = filler(50 + story, 120)
        for copy in range(3):
            name = f"s{story}c{copy}"
            extra = " bão bão bão" * copy  # later copies score higher
            at = START + timedelta(days=story, hours=copy)
            site = f"{'abc'[copy]}.vn"
            stories.append(article(name, f"Bão {name}", text + extra, site=site, published=at))
    await store.put(list(reversed(stories)))
    await store.put([article("alone", "Bão một mình", filler(99, 120))])
    await store.refresh()
    seen = []
    for page in range(4):
        result = await store.search(Query("bão", page=page, size=2, collapse=True))
        assert (result.total, result.total_is_capped) == (8, False)
        seen += result.hits
    names = {one.id: one.title for one in stories}
    firsts = {names.get(hit.article.id, "alone") for hit in seen}
    assert firsts == {"alone", *(f"Bão s{n}c0" for n in range(7))}
    for hit in seen:
        first = names.get(hit.article.id, "alone")
        below = [names[copy.id] for copy in hit.copies]
        assert below == ([] if first == "alone" else [first[:-1] + "1", first[:-1] + "2"])
    narrowed = await store.search(Query("bão", sites=("b.vn", "c.vn"), collapse=True))
    assert {h.article.site for h in narrowed.hits} == {"b.vn"}
    assert all([c.site for c in h.copies] == ["c.vn"] for h in narrowed.hits)


async def test_the_days_of_a_series_are_no_copies(store: ArticleStore) -> None:
    def prices(day: int, ounce: int, gold: int) -> str:
        return (
            f"Giá vàng hôm nay {day}/8 tại các cửa hàng lớn trong nước được niêm yết ở mức {gold} triệu đồng"
            f" một lượng chiều mua vào và {gold + 2} triệu đồng một lượng chiều bán ra. Trên thị trường quốc"
            f" tế giá vàng giao ngay đứng ở {ounce} đô la Mỹ một ounce, theo các nhà phân tích xu hướng tăng"
            " còn tiếp tục vì nhu cầu trú ẩn của nhà đầu tư trên toàn thế giới trong thời gian tới."
        )  # fmt: skip

    days = [
        article(f"d{d}", f"Giá vàng {d}/8", prices(d, 2400 + 7 * d, 77 + d),
                published=START + timedelta(days=d))
        for d in range(3)
    ]  # fmt: skip
    copy = article("copy", "Vàng", prices(1, 2407, 78) + " Theo báo A.", site="b.vn",
                   published=START + timedelta(days=1, hours=2))  # fmt: skip
    await store.put(days)
    await store.refresh()
    await store.put([copy])
    await store.refresh()
    clusters = {}
    for one in [*days, copy]:
        got = await store.get(one.id)
        assert got is not None
        clusters[one.id] = got.cluster
    assert clusters == {
        days[0].id: None,
        days[1].id: days[1].id,
        days[2].id: None,
        copy.id: days[1].id,
    }


async def test_an_excerpt_joins_its_original(store: ArticleStore) -> None:
    words = filler(31, 500).split()
    whole = article("whole", "Bài gốc", " ".join(words))
    excerpts = [
        article("lead", "Mở đầu", " ".join(words[:150]), site="b.vn"),
        article("middle", "Giữa bài", " ".join(words[200:380]) + " Xem tiếp ở báo.", site="c.vn"),
    ]
    other = article("other", "Khác", filler(32, 150))
    await store.put([whole, other])
    await store.refresh()
    await store.put(excerpts)
    await store.refresh()
    assert {a.id for a in await store.cluster(whole.id)} == {whole.id, *(e.id for e in excerpts)}
    got = await store.get(other.id)
    assert got is not None and got.cluster is None


async def test_near_duplicates_in_one_batch(store: ArticleStore) -> None:
    text = filler(7, 200)
    await store.put(
        [article("one", "A", text), article("two", "B", text + " thêm vài từ", site="b.vn")]
    )
    await store.refresh()
    clusters = {a.cluster for a in [await store.get(article_id(n)) for n in ("one", "two")] if a}
    assert len(clusters) == 1 and None not in clusters


async def test_short_texts_are_nobodys_duplicate(store: ArticleStore) -> None:
    await store.put([article("one", "A", "Đang cập nhật"), article("two", "B", "Đang cập nhật")])
    await store.refresh()
    got = await store.get(article_id("one"))
    assert got is not None and got.cluster is None


async def test_scan_gives_every_current_article_once(store: ArticleStore) -> None:
    many = [article(f"n{i}", f"Tin {i}", "x") for i in range(450)]
    await store.put(many)
    await store.put([replace(many[0], title="Tin 0 sửa")])
    found = [a async for a in store.scan()]
    assert len(found) == 450
    assert {a.id for a in found} == {a.id for a in many}
    assert {a.title for a in found if a.id == many[0].id} == {"Tin 0 sửa"}


async def test_scan_since_gives_what_was_stored_later(store: ArticleStore) -> None:
    await store.put([article("old", "Cũ", "x")])
    await asyncio.sleep(0.01)
    moment = datetime.now(UTC)
    await asyncio.sleep(0.01)
    await store.put([article("new", "Mới", "x"), article("old", "Cũ", "x")])
    assert [a.title async for a in store.scan(moment)] == ["Mới"]


async def test_an_empty_store_answers(store: ArticleStore) -> None:
    result = await store.search(Query("hà nội", facets=True))
    assert (result.hits, result.total) == ([], 0)
    assert result.facets == {name: {} for name in ("site", "day", *KEYS)}
    assert set(KEYS) == {"author", "section", "keyword", "lang", "without"}
    stats = await store.stats()
    assert (stats["articles"], stats["newest"]) == (0, None)
    assert [a async for a in store.scan()] == []
    assert await store.put([]) == []


async def test_stats_count_what_was_put(store: ArticleStore) -> None:
    await store.put(CORPUS)
    await store.put([replace(CORPUS[0], title="Khác")])
    await store.refresh()
    stats = await store.stats()
    assert (stats["articles"], stats["versions"], stats["gone"]) == (
        len(CORPUS),
        len(CORPUS) + 1,
        0,
    )
    assert stats["newest"] == (START + timedelta(days=5)).isoformat()
    assert isinstance(stats["bytes"], int) and stats["bytes"] > 1000


def _at(key: str, url: str, content: str, canonical: str | None = None) -> Article:
    return replace(article(key, f"Tiêu đề {key}", content), url=url, canonical_url=canonical)


@pytest.mark.parametrize("named_by", ["the second", "the first", "both, a third"])
async def test_an_article_at_two_addresses_is_stored_once(
    store: ArticleStore, named_by: str
) -> None:
    here, there, third = (
        f"https://{article('a', 'T', 'C').site}/{path}" for path in ("a-1.html", "b/a-1", "c")
    )
    names = {
        "the second": (None, here),
        "the first": (there, there),
        "both, a third": (third, third + "#top"),
    }[named_by]
    text = filler(1, 200)
    first, second = _at("a", here, text, names[0]), _at("b", there, text + " Cập nhật.", names[1])
    assert [r.status for r in await store.put([first])] == ["new"]
    await store.refresh()
    (result,) = await store.put([second])
    assert (result.status, result.duplicate_of) == ("duplicate", first.id)
    assert await store.get(second.id) is None and (await store.stats())["articles"] == 1
    assert [r.status for r in await store.put([second])] == ["duplicate"]
    if named_by != "both, a third":
        found = await store.find_url(there if names[0] else here)
        assert found is not None and found.id == first.id


async def test_twins_in_one_batch_are_stored_once(store: ArticleStore) -> None:
    here = f"https://{article('a', 'T', 'C').site}/a-1.html"
    text = filler(1, 200)
    first, second = _at("a", here, text), _at("b", here + "/amp", text, here)
    assert [r.status for r in await store.put([first, second])] == ["new", "duplicate"]


async def test_a_canonical_address_alone_proves_nothing(store: ArticleStore) -> None:
    """One address named by a whole template, a first page named by the second: other texts
    are other articles."""
    here = f"https://{article('a', 'T', 'C').site}/a-1.html"
    pages = [_at("a", here, filler(1, 200)), _at("b", here + "?trang=2", filler(2, 200), here)]
    pages.append(_at("c", "https://x.vn/c", "Ngắn.", here))
    for page in pages:
        assert [r.status for r in await store.put([page])] == ["new"]
        await store.refresh()
    elsewhere = replace(_at("d", "https://khac.vn/d", pages[0].content, here), site="khac.vn")
    assert [r.status for r in await store.put([elsewhere])] == [
        "new"
    ]  # another site's copy: a cluster, not a twin


async def test_a_twin_of_what_is_gone_is_stored(store: ArticleStore) -> None:
    here = f"https://{article('a', 'T', 'C').site}/a-1.html"
    first, second = _at("a", here, filler(1, 200)), _at("b", here + "/amp", filler(1, 200), here)
    await store.put([first])
    assert await store.mark_gone([first.id]) == 1
    await store.refresh()
    assert [r.status for r in await store.put([second])] == ["new"]
