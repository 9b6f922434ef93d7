"""What every store finds, and in which order: the query language, diacritics, scripts without
spaces, the ladder."""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from newscrawler.items import Article
from newscrawler.store.base import (
    ArticleStore,
    Query,
    QueryError,
    QueryTooLarge,
    SearchTimeout,
)
from newscrawler.store.fold import folded_words
from newscrawler.store.highlight import mark
from newscrawler.store.ladder import UNQUOTED
from tests.contract.articles import CORPUS, START, article, article_id, filler
from tests.contract.conftest import StoreOf

NAMES = {
    article_id(n): n for n in ("bao", "vang", "ma", "ma-mới", "covid", "zh", "ja", "th", "ko", "de")
}


async def found(store: ArticleStore, text: str, **more: object) -> list[str]:
    result = await store.search(Query(text, **more))  # type: ignore[arg-type]
    return [NAMES.get(h.article.id, h.article.id) for h in result.hits]


@pytest.fixture(params=["sqlite", "elasticsearch"])
def kind(request: pytest.FixtureRequest) -> str:
    """A search is the same wherever articles are written: that is asked in test_articles.py."""
    return str(request.param)


@pytest.fixture
async def corpus(store_of: StoreOf) -> ArticleStore:
    """For tests that only read."""
    return await store_of(CORPUS)


# One store, many questions: the table is asked in one test, as an index of Elasticsearch
# costs half a second.
QUESTIONS = [
    ("Hà Nội", {"bao"}),
    ("ha noi", {"bao"}),
    ("HÀ NỘI", {"bao"}),
    ("Ha\u0300 No\u0323\u0302i", {"bao"}),
    ("duong pho", set()),
    ("tuyen duong", {"bao"}),
    ("giá vàng", {"vang"}),
    ('"giá vàng trong nước"', {"vang"}),
    ("“gia vang trong nuoc”", {"vang"}),
    ('"vàng giá"', set()),
    ("tp.hcm", {"vang"}),
    ("TP HCM", {"vang"}),
    ("chuyện kể", {"ma", "ma-mới"}),
    ('"chuyện kể"', {"ma"}),
    ("chuyện -nhà", {"ma-mới"}),
    ('kể -"con ma"', {"ma-mới"}),
    ("title:bão", {"bao"}),
    ("title:bao", {"bao"}),
    ('title:"giá vàng"', {"vang"}),
    ("title:triệu", set()),
    ("author:an", {"bao", "vang"}),
    ('author:"nguyen van an"', {"bao"}),
    ('author:"an tran"', set()),
    ('author:"Trần Thị Bình"', {"bao"}),
    ("nhà site:tuoitre.vn", {"ma"}),
    ("vàng OR mới OR 中国 site:tuoitre.vn site:news.cn", {"vang", "covid", "zh"}),
    ("SITE:TuoiTre.vn vàng", {"vang"}),
    ("chuyện -site:tuoitre.vn", {"ma-mới"}),
    ("kể -site:tuoitre.vn -site:vnexpress.net", set()),
    ("kể -site:tuoitre.vn site:tuoitre.vn", set()),
    ("kể -title:má", {"ma"}),
    ("kể -title:ma", set()),  # typed without diacritics: every spelling
    ('trong -title:"giá vàng" site:tuoitre.vn', {"ma"}),
    ("nội -author:an", set()),
    ("kể -author:an", {"ma", "ma-mới"}),
    ("trong -author:an", {"ma"}),
    # days: those from a day on, those before it, and the negations of both
    ("kể after:2026-08-05", {"ma-mới"}),
    ("kể -after:2026-08-05", {"ma"}),
    ("kể before:5/8/2026", {"ma"}),
    ("kể -before:5-8-2026", {"ma-mới"}),
    ("trong after:2026-08-03 before:2026-08-05", {"vang", "ma"}),
    ("vàng after:2027", set()),
    # operators
    ("bão OR vàng", {"bao", "vang"}),
    ("bao OR vang", {"bao", "vang"}),
    ("Hà Nội OR giá vàng", {"bao", "vang"}),
    ("kể AND nhà", {"ma"}),
    ("kể NOT nhà", {"ma-mới"}),
    ("kể AND NOT nhà", {"ma-mới"}),
    ("(bão OR vàng) (ngập OR lượng) -Nội", {"vang"}),
    ("bão OR (kể -nhà)", {"bao", "ma-mới"}),
    ("chuyện -(nhà OR cơm)", set()),
    ("-(-chuyện) nhà", {"ma"}),
    ("title:(bão OR vàng) author:an", {"bao", "vang"}),
    ("title:bão OR author:lê", {"bao", "vang"}),
    ('"con ma" OR "nấu cơm"', {"ma", "ma-mới"}),
    ("bão OR vàng site:tuoitre.vn", {"vang"}),  # what restricts the last one restricts both
    # section, language, keyword and their negations
    ('section:"the thao"', {"vang"}),
    ("section:Thể-thao OR section:xã-hội", {"vang", "bao"}),
    ("an section:xa-hoi", set()),
    ('(bão OR vàng) -section:"thể thao"', {"bao"}),
    ("in lang:de", {"de"}),
    ("in lang:en", set()),
    ("vaccine lang:EN", {"covid"}),
    ("vaccine lang:vi lang:en", {"covid"}),
    ("vaccine -lang:en", set()),
    ("(in OR vaccine) -lang:de", {"covid"}),
    ("(in OR vaccine) -lang:EN", {"de"}),
    ("(in OR vaccine) NOT (lang:de OR lang:en)", set()),
    ("(bão OR vàng) keyword:sjc", {"vang"}),
    ("(bão OR vàng) -keyword:sjc", {"bao"}),
    # what cannot be meant is a word
    ("OR bão", set()),
    ("kể AND", set()),
    ("(bão", {"bao"}),
    ("bão)", {"bao"}),
    ("covid-19", {"covid"}),
    ("isn't", {"covid"}),
    ("3.5", {"covid"}),
    ("trong -12 site:tuoitre.vn", set()),  # a minus before a digit is no exclusion
    ("muller munchen", {"de"}),
    ("Müller", {"de"}),
    ("中国经济", {"zh"}),
    ("第三季度增长百分之四点八", {"zh"}),
    ("関東地方で激しい雨が降る", {"ja"}),
    ("ฝนตกหนักในภาค", {"th"}),
    ("서울", {"ko"}),
    ("qqqqwxyz", set()),
    ('"qqqqwxyz zzzyx"', set()),
    ('foo"', set()),
    ("((*:AND NOT", set()),
]


async def test_questions_and_answers(corpus: ArticleStore) -> None:
    wrong = {}
    for text, expected in QUESTIONS:
        result = await corpus.search(Query(text, size=50))
        got = (
            {NAMES[h.article.id] for h in result.hits}
            if result.relaxed in ("", "folded")
            else set()
        )
        if got != expected or (not result.relaxed and result.total != len(expected)):
            wrong[text] = (got, expected, result.relaxed, result.total)
    assert not wrong


async def test_the_answer_says_how_the_query_was_read(corpus: ArticleStore) -> None:
    result = await corpus.search(Query("OR bão -lũ (ngập OR mưa) after:mai"))
    assert result.read_as == '"OR" bão NOT lũ (ngập OR mưa) "after:mai"'
    assert "after:mai: not a day" in result.notes[0] and "OR is read as a word" in result.notes[1]
    assert (await corpus.search(Query("Hà  Nội"))).read_as == "Hà Nội"


async def test_days_are_those_of_the_reader(store: ArticleStore) -> None:
    at = datetime(2026, 8, 2, 16, 59, tzinfo=UTC)
    await store.put(
        [article(str(m), "Tin", "x", published=at + timedelta(minutes=m)) for m in (0, 1, 2)]
    )
    await store.refresh()
    for zone, later in (("Asia/Ho_Chi_Minh", 2), ("UTC", 0), ("Europe/Berlin", 0)):
        asked = Query("tin after:3/8/2026", zone=ZoneInfo(zone), facets=True)
        assert (await store.search(asked)).total == later, zone
        days = (await store.search(replace(asked, text="tin"))).facets["day"]
        assert (
            days == {"2026-08-03": later, "2026-08-02": 3 - later}
            if later
            else days == {"2026-08-02": 3}
        ), zone


async def test_days_are_counted_in_summer_and_in_winter_time(store: ArticleStore) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    moments = [
        datetime(2026, month, day, hour, 30, tzinfo=berlin)
        for month, day in ((1, 10), (1, 11), (7, 10), (7, 11))
        for hour in (0, 23)
    ]
    await store.put([article(f"t{n}", "Tin", "x", published=m) for n, m in enumerate(moments)])
    await store.refresh()
    days = (await store.facets(Query("tin", zone=berlin)))["day"]
    assert days == {"2026-07-11": 2, "2026-07-10": 2, "2026-01-11": 2, "2026-01-10": 2}


async def test_typed_without_diacritics_finds_every_spelling(corpus: ArticleStore) -> None:
    assert set(await found(corpus, "ma")) == {"ma", "ma-mới"}


async def test_exact_comes_before_folded(corpus: ArticleStore) -> None:
    assert (await found(corpus, "má"))[0] == "ma-mới"
    assert (await found(corpus, "má kể"))[0] == "ma-mới"


async def test_one_exact_word_in_an_old_text_comes_before_folded_titles(
    store: ArticleStore,
) -> None:
    rivals = [
        article(f"r{i}", "Ma ma ma", "ma " * 20, published=START + timedelta(days=20 + i))
        for i in range(5)
    ]
    await store.put(
        [*rivals, article("exact", "Chuyện nhà", f"{filler(1, 200)} má {filler(2, 200)}")]
    )
    await store.refresh()
    assert (await found(store, "má"))[0] == article_id("exact")
    assert (await store.search(Query("má"))).total == 6


async def test_a_quotation_comes_before_the_same_words_in_a_title(store: ArticleStore) -> None:
    words = "công an tỉnh bắt giữ hai nghi phạm"
    mixed = "nghi phạm hai công an giữ tỉnh bắt"
    rivals = [
        article(f"r{i}", mixed, f"{mixed}. " * 9, published=START + timedelta(days=20 + i))
        for i in range(5)
    ]
    await store.put([*rivals, article("said", "Tin", f"{filler(1, 200)} {words} {filler(2, 200)}")])
    await store.refresh()
    for text in (words, _without_marks(words)):
        assert (await found(store, text))[0] == article_id("said")


async def test_enough_exact_answers_hide_the_folded_ones(store: ArticleStore) -> None:
    await store.put(
        [article(f"e{i}", f"Má {i}", "x") for i in range(12)] + [article("f", "Ma", "x")]
    )
    await store.refresh()
    assert (await store.search(Query("má"))).total == 12
    assert (await store.search(Query("ma"))).total == 13


async def test_a_whole_title_is_first(corpus: ArticleStore) -> None:
    for one in CORPUS:
        assert (await found(corpus, one.title))[0] == NAMES[one.id]


async def test_words_next_to_one_another_come_first(store: ArticleStore) -> None:
    # "ha noi" folded is in nearly every Vietnamese text as "hạ ... nói".
    apart = [article(f"x{i}", "Tin", f"hạ cánh {filler(i, 20)} người nói") for i in range(20)]
    await store.put(
        [*apart, article("hn", "Tin", f"{filler(99, 30)} tại Hà Nội hôm qua", published=START)]
    )
    await store.refresh()
    assert (await found(store, "ha noi"))[0] == article_id("hn")


async def test_without_diacritics_in_the_text_is_found_with_them(store: ArticleStore) -> None:
    await store.put([article("plain", "Thoi tiet", "Du bao thoi tiet hom nay")])
    await store.refresh()
    result = await store.search(Query("thời tiết"))
    assert (result.total, result.relaxed) == (1, "folded")


async def test_typing_errors_are_corrected(store: ArticleStore) -> None:
    await store.put(
        CORPUS + [article(f"n{i}", "Tin", "vaccine " + filler(i, 30)) for i in range(5)]
    )
    await store.refresh()
    for typed in (
        "vacine approved",
        "vaccin approved",
        "vaccnie approved",
        "vaccinee approved",
        "vakcine approved",
    ):
        result = await store.search(Query(typed))
        assert result.hits[0].article.id == article_id("covid"), typed
        assert (result.relaxed, list(result.corrections.values())) == ("corrected", ["vaccine"]), (
            typed
        )


async def test_a_slip_within_quotation_marks(store: ArticleStore) -> None:
    """What has the phrase is all that is found; only where nothing has it a word is corrected, also
    one that is a word of its own, or the quotation marks are given up. The answer says so."""
    said = article(
        "said", "Tin", f"{filler(1, 60)} thông xe cầu Rạch Miễu vào dịp lễ {filler(2, 60)}"
    )
    apart = article(
        "apart", "Tin", f"cầu {filler(3, 40)} Rạch {filler(4, 40)} Miễu {filler(5, 40)} lễ"
    )
    others = [
        article(f"o{i}", "Tin", f"cậu xa dịp lề lẻ {filler(9 + i, 60)} xe cân") for i in range(9)
    ]
    await store.put([said, apart, *others])
    await store.refresh()
    whole = "thông xe cầu Rạch Miễu vào dịp lễ"
    for typed in (whole, _without_marks(whole)):
        result = await store.search(Query(f'"{typed}"'))
        assert ([h.article.id for h in result.hits], result.notes) == ([said.id], ())
        assert result.relaxed in ("", "folded") and not result.corrections
    for wrong, word, right in (
        ("thông xe cầu Rạhc Miễu vào dịp lễ", "rahc", "rach"),
        ("thông xa cầu Rạch Miễu", "xa", "xe"),
        ("hông xe cầu", "hong", "thong"),
        ("Rạch Miễuu", "mieuu", "mieu"),
        ("thông xe câun", "caun", "cau"),
    ):
        result = await store.search(Query(f'"{wrong}"'))
        assert [h.article.id for h in result.hits] == [said.id], wrong
        assert (result.relaxed, result.corrections) == ("corrected", {word: right}), wrong
        strict = replace(Query(f'"{wrong}"', mode="keyword"), strict=True)
        assert (await store.search(strict)).total == 0, "feeds and alerts stay strict"
        assert (await store.search(Query(f'title:"{wrong}"'))).total == 0, "a field as well"
    result = await store.search(Query('"cầu lễ Rạch Miễu"'))
    assert {h.article.id for h in result.hits} == {said.id, apart.id}
    assert (result.relaxed, result.read_as) == ("unquoted", "cầu lễ Rạch Miễu")
    assert result.notes == (UNQUOTED,)
    result = await store.search(Query('"cầu Rạhc Miễu" lễ -"dịp lễ"'))
    assert [h.article.id for h in result.hits] == [apart.id], "what must not be there stays so"
    result = await store.search(Query('"thông xe cầu Rạhc Miễu" Rạchh'))
    assert [h.article.id for h in result.hits] == [said.id]
    assert result.corrections == {"rahc": "rach", "rachh": "rach"}
    assert (await store.search(Query('"qqqq wwww"'))).total == 0


async def test_a_strict_query_finds_only_what_has_all_of_it(corpus: ArticleStore) -> None:
    """For feeds and alerts, whose reader does not see how a query was relaxed."""
    for typed, loose, strict in (
        ("giá vàng", 1, 1), ("gia vang", 1, 1), ("giá vàngg", 1, 0),
        ("bão số 5 đổ bộ hà nội lần nữa", 1, 0), ("giá vảng", 1, 0),
    ):  # fmt: skip
        query = Query(typed, sort="date", mode="keyword")
        assert (await corpus.search(query)).total >= loose, typed
        result = await corpus.search(replace(query, strict=True))
        assert (result.total, result.relaxed) == (strict, ""), typed


async def test_one_word_too_many_still_finds_the_rest(corpus: ArticleStore) -> None:
    result = await corpus.search(Query("ngập tuyến zzzzqqq"))
    assert result.relaxed == "any"
    assert result.hits[0].article.id == article_id("bao")
    assert (await corpus.search(Query('"ngập tuyến zzzzqqq"'))).total == 0, (
        "a phrase is not given up"
    )
    assert (await corpus.search(Query("ngập zzzzqqq site:nhk.or.jp"))).total == 0, (
        "a filter is not given up"
    )


async def test_a_chinese_question_finds_its_parts(corpus: ArticleStore) -> None:
    result = await corpus.search(Query("中国市场经济"))
    assert result.relaxed == "any" and result.hits[0].article.id == article_id("zh")


async def test_matches_are_marked_in_the_original_text(corpus: ArticleStore) -> None:
    async def marked(text: str) -> tuple[str, str]:
        hit = (await corpus.search(Query(text))).hits[0]
        return mark(hit.article.title, hit.title_marks, "[", "]"), mark(
            hit.snippet, hit.snippet_marks, "[", "]"
        )

    assert await marked("ha noi") == (
        "Bão số 5 đổ bộ [Hà Nội]", "Mưa lớn gây ngập nhiều tuyến đường ở thủ đô [Hà Nội]."
    )  # fmt: skip
    assert (await marked('"Hà Nội"'))[0] == "Bão số 5 đổ bộ [Hà Nội]"
    assert (await marked("COVID"))[0] == "Vaccine [COVID]-19 mới"
    assert (await marked("经济"))[0] == "中国[经济]增长"
    assert (await marked("munchen"))[1].endswith("in [München].")


async def test_the_snippet_is_cut_around_the_match(store: ArticleStore) -> None:
    await store.put([article("a", "T", f"{filler(1, 400)} kim trong đống rơm {filler(2, 400)}")])
    await store.refresh()
    hit = (await store.search(Query('"đống rơm"'))).hits[0]
    assert "[đống rơm]" in mark(hit.snippet, hit.snippet_marks, "[", "]")
    assert len(hit.snippet) < 260 and hit.snippet.startswith("…") and hit.snippet.endswith("…")


async def test_facets_count_sites_and_days(corpus: ArticleStore) -> None:
    sites = ("tuoitre.vn", "vnexpress.net")
    result = await corpus.search(Query(sites=sites, facets=True, size=1))
    assert result.facets["site"] == {"tuoitre.vn": 3, "vnexpress.net": 2}
    assert list(result.facets["day"].items()) == [(f"2026-08-0{d}", 1) for d in (6, 5, 4, 3, 2)]
    assert await corpus.facets(Query("giá vàng")) == {
        "site": {"tuoitre.vn": 1},
        "day": {"2026-08-03": 1},
        "section": {"Thể thao": 1},
        "keyword": {"SJC": 1},
        "lang": {},
        "author": {"Lê An": 1},
        "without": {},
    }


async def test_restrictions_outside_the_text_are_added(corpus: ArticleStore) -> None:
    assert await found(corpus, "nhà", sites=("tuoitre.vn",)) == ["ma"]
    after, before = datetime(2026, 8, 3, tzinfo=UTC), datetime(2026, 8, 5, tzinfo=UTC)
    assert set(await found(corpus, "", after=after, before=before)) == {"vang", "ma"}
    assert set(await found(corpus, "nhà after:2026-08-04", after=after, before=before)) == {"ma"}


async def test_after_is_included_and_before_is_not(store: ArticleStore) -> None:
    at = datetime(2026, 8, 3, tzinfo=UTC)
    await store.put(
        [article(str(m), "Tin", "x", published=at + timedelta(minutes=m)) for m in (-1, 0, 1)]
    )
    await store.refresh()
    assert {h.article.id for h in (await store.search(Query("tin after:2026-08-03"))).hits} == {
        article_id("0"), article_id("1")
    }  # fmt: skip
    assert {h.article.id for h in (await store.search(Query("tin before:2026-08-03"))).hits} == {
        article_id("-1")
    }


@pytest.mark.parametrize("sort", ["date", "best", "relevance"])
async def test_pages_show_every_match_once(store: ArticleStore, sort: str) -> None:
    many = [
        article(f"n{i}", f"Tin số {i}", filler(i, 15), published=START + timedelta(minutes=i))
        for i in range(57)
    ]
    await store.put(many)
    await store.refresh()
    seen: list[Article] = []
    for page in range(7):
        result = await store.search(Query("tin số", page=page, size=10, sort=sort))  # type: ignore[arg-type]
        assert (result.total, result.total_is_capped) == (57, False)
        seen += [h.article for h in result.hits]
    assert len(seen) == 57 and len({a.id for a in seen}) == 57
    if sort == "date":
        assert [a.id for a in seen] == [a.id for a in reversed(many)]


async def test_relevance_leaves_age_out_of_the_order(store: ArticleStore) -> None:
    """The same texts with their days turned round come in the same order; by default the newest
    stands further in front than its words put it, and by date it is the first."""
    today = datetime.now(UTC)
    subject, whole = "lũ quét", "lũ quét cuốn trôi cầu"
    texts = [f"{whole}. {filler(n, int(20 * 1.3**n))}" for n in range(16)]  # the longer, the less
    order: dict[tuple[str, str, str], list[int]] = {}
    for name, age in (("rising", lambda n: 15 - n), ("falling", lambda n: n)):
        made = [
            article(f"{n}", f"Tin {n}", one, published=today - timedelta(days=age(n)))
            for n, one in enumerate(texts)
        ]
        numbers = {a.id: n for n, a in enumerate(made)}
        await store.put(made)
        await store.refresh()
        for text in (subject, whole):
            for sort in ("best", "relevance", "date"):
                result = await store.search(Query(text, sort=sort))  # type: ignore[arg-type]
                order[name, text, sort] = [numbers[h.article.id] for h in result.hits]
    for text in (subject, whole):
        assert order["rising", text, "relevance"] == list(range(16))
        assert order["falling", text, "relevance"] == list(range(16))
        assert order["rising", text, "date"] == list(reversed(range(16)))
    assert order["rising", subject, "best"].index(15) < 3


async def test_an_update_is_found_by_its_new_words_only(store: ArticleStore) -> None:
    await store.put([article("a", "Trước", "xanh")])
    await store.put([article("a", "Sau", "vàng", published=START - timedelta(days=9))])
    await store.refresh()
    assert (await store.search(Query("xanh"))).total == 0
    result = await store.search(Query("vàng"))
    assert [h.article.title for h in result.hits] == ["Sau"]
    assert (await store.search(Query("vàng before:2026-07-30"))).total == 1


@pytest.mark.parametrize(
    "text",
    ["-bão", '-"giá vàng" -ma', "!!! ???", '""', "😀", "-site:a.vn", "site:a.vn", "after:2026"],
)
async def test_a_query_without_a_word_is_refused_with_a_hint(
    corpus: ArticleStore, text: str
) -> None:
    with pytest.raises(QueryError, match="no word to look for"):
        await corpus.search(Query(text))


async def test_a_title_with_one_wrong_word_is_found_among_texts_that_have_them_all(
    store: ArticleStore,
) -> None:
    wanted = article("w", "Công an tỉnh bắt giữ hai nghi phạm", filler(1, 60))
    typed = "công an tỉnh bắt giữ hai nghi phàm"  # another real word
    words = [*typed.split(), "phàm"]
    rng = random.Random(1)
    rivals = []
    for i in range(15):
        text = filler(i, 200).split()
        for word in words:
            text.insert(rng.randrange(len(text)), word)
        rivals.append(article(f"r{i}", f"Tin {i}", " ".join(text)))
    await store.put([*rivals, wanted])
    await store.refresh()
    for text in (typed, typed.replace("nghi", "nghỉ thêm"), " ".join(typed.split()[1:])):
        assert (await found(store, text))[0] == wanted.id, text


async def test_a_sentence_with_one_wrong_word_is_found(store: ArticleStore) -> None:
    said = "chị kể rằng lúc ấy trời mưa rất to ngoài hiên"
    rivals = [
        article(f"r{i}", f"Tin {i}", f"chị kể {filler(i, 90)} trời mưa rất {filler(i + 50, 90)}")
        for i in range(20)
    ]
    await store.put([*rivals, article("w", "Tin", f"{filler(99, 90)} {said} {filler(98, 90)}")])
    await store.refresh()
    for wrong in ("rắng", "mùa", "thêm"):
        text = said.replace("rằng" if wrong == "rắng" else "mưa", wrong)
        result = await store.search(Query(text))
        assert result.hits[0].article.id == article_id("w"), text


async def test_words_far_down_in_a_long_text_are_marked(store: ArticleStore) -> None:
    await store.put(
        [
            article("a", "T", f"{filler(1, 8_000)} kim trong đống rơm {filler(2, 100)}"),
            article("c", "T", f"vàng vang {filler(1, 8_000)} đống rơm vàng"),
            article("d", "T", f"{'giá tốt ' * 9}{filler(1, 300)} giá của vàng {filler(2, 100)}"),
            article("b", "T", "国" * 9_000 + "经济增长" + "家" * 50),
        ]
    )
    await store.refresh()
    for text, marked in (
        ('"đống rơm"', "[đống rơm]"),
        ("rơm", "[rơm]"),
        ("经济", "[经济]"),
        ("trong dong rom", "[trong đống rơm]"),
        ("vang rom", "[rơm]"),  # "vàng" and "vang" stand early, "rơm" does not
        ("gia vang", "[giá] của [vàng]"),  # both, not the place with most of one
    ):
        hits = (await store.search(Query(text))).hits
        found = [mark(hit.snippet, hit.snippet_marks, "[", "]") for hit in hits]
        assert any(marked in one for one in found), (text, found)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (Query("x", page=-1), "page counts from 0"),
        (Query("x", size=0), "1 to 100"),
        (Query("x", size=101), "1 to 100"),
        (Query("x", page=100, size=100), "too deep"),
    ],
    ids=str,
)
async def test_what_cannot_be_answered_is_said(
    corpus: ArticleStore, query: Query, says: str
) -> None:
    with pytest.raises(QueryError, match=says):
        await corpus.search(query)


async def test_the_deepest_page_is_answered(corpus: ArticleStore) -> None:
    assert (await corpus.search(Query("x", page=99, size=100))).hits == []


def _without_marks(text: str) -> str:
    """As somebody would take the diacritics off, without this program's help."""
    plain = "".join(
        c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn"
    )
    return unicodedata.normalize("NFC", plain.replace("đ", "d").replace("Đ", "D"))


def _gold(folder: Path) -> list[tuple[Article, str]]:
    made = []
    for line in (folder / "gold.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
        gold = json.loads(line)
        if gold.get("content"):
            made.append(
                (
                    Article(
                        id=hashlib.md5(gold["url"].encode()).hexdigest(), url=gold["url"], site=gold["site"],
                        title=gold.get("title") or "", content=gold["content"],
                    ),
                    gold["lang"],
                )
            )  # fmt: skip
    return made


async def test_author_finds_who_is_credited_as_well(store: ArticleStore) -> None:
    by_agency = article("a", "Mưa lớn", "Nội dung một", credits=["Thông tấn xã Việt Nam"])
    beside = article("b", "Nắng to", "Nội dung hai", authors=["Lê An"], credits=["TTXVN"])
    await store.put([by_agency, beside])
    await store.refresh()

    async def found(text: str) -> set[str]:
        return {h.article.id for h in (await store.search(Query(text))).hits}

    assert await found('author:"thong tan xa"') == {by_agency.id}
    assert await found("author:ttxvn") == await found("author:an") == {beside.id}
    assert await found('author:"an ttxvn"') == set()  # two names are not one
    assert await found("ttxvn") == set()  # a credit is no text


_ORDER = re.compile(r"""["“”]|(?:^|\s)-\w|(?:title|author|site|after|before):\S""", re.IGNORECASE)


def _unique_phrases(pages: list[tuple[Article, str]], rng: random.Random) -> list[tuple[str, str]]:
    """Per page one phrase of 8 words (12 characters in scripts without spaces) that no
    other page has: id, phrase."""
    flat = [" " + " ".join(folded_words(a.content)) + " " for a, _ in pages]
    phrases = []
    for one, language in pages:
        for _ in range(20):
            if language in ("zh", "ja", "th"):
                text = one.content.replace("\n", " ")
                start = rng.randrange(max(1, len(text) - 12))
                phrase = text[start : start + 12]
            else:
                words = one.content.split()
                start = rng.randrange(max(1, len(words) - 8))
                phrase = " ".join(words[start : start + 8])
            wanted = " " + " ".join(folded_words(phrase)) + " "
            is_order = _ORDER.search(phrase)  # marks that mean something in the query language
            if len(wanted) > 12 and not is_order and sum(wanted in f for f in flat) == 1:
                phrases.append((one.id, phrase))
                break
    return phrases


async def test_a_phrase_of_one_real_page_finds_that_page_first(
    store: ArticleStore, shared_pages: Path
) -> None:
    pages = _gold(shared_pages)
    await store.put([a for a, _ in pages])
    await store.refresh()
    seed = random.randrange(1 << 30)
    phrases = _unique_phrases(pages, random.Random(seed))
    assert len(phrases) > 200
    wrong = []
    for wanted, phrase in phrases:
        for text in (phrase, f'"{phrase}"', _without_marks(phrase), f'"{_without_marks(phrase)}"'):
            hits = (await store.search(Query(text, size=1))).hits
            if not hits or hits[0].article.id != wanted:
                wrong.append(text)
    assert not wrong, f"seed={seed}"


async def test_a_search_keeps_to_its_time(corpus: ArticleStore) -> None:
    in_time = await corpus.search(Query("Hà Nội", facets=True, limit_s=60))
    assert in_time.total == 1
    for text in ("Hà Nội", "khongcogica", "hanoj noj", ""):
        with pytest.raises(SearchTimeout, match="longer than 1e-09 s"):
            await corpus.search(Query(text, facets=True, limit_s=1e-9))
    assert (await corpus.search(Query("Hà Nội"))).total == 1


async def test_words_of_any_length_are_searched_or_refused(corpus: ArticleStore) -> None:
    for length in (32, 33, 100):
        assert (await corpus.search(Query("x" * length))).total == 0
    for text in ("x" * 101, "x" * 2000, "title:" + "x" * 101, "site:" + "x" * 256):
        with pytest.raises(QueryTooLarge):
            await corpus.search(Query(text))


async def test_hundreds_of_words_are_searched(corpus: ArticleStore) -> None:
    words = [f"từ{n}" for n in range(400)]
    for joint in (" ", "-", " -", " title:", " author:"):
        result = await corpus.search(Query("Hà " + joint.join(words)[:1900]))
        assert result.total <= 10


#: What is typed, and what is written in the article that it must find; both ways.
SPELLINGS = [
    ("hoà bình", "hòa bình"),
    ("thuỷ điện", "thủy điện"),
    ("sức khoẻ", "sức khỏe"),
    ("hanoi", "Hà Nội"),
    ("saigon", "Sài Gòn"),
    ("TPHCM", "TP.HCM"),
    ("TPHCM", "Thành phố Hồ Chí Minh"),
    ("tp hcm", "thành phố Hồ Chí Minh"),
    ("ubnd", "Ủy ban nhân dân"),
    ("covid19", "Covid-19"),
    ("covid 19", "COVID19"),
    ("iphone15", "iPhone 15"),
    ("500000", "500.000"),
    ("1 200 000", "1.200.000"),
    ("oto", "ô tô"),
    ("nước Mỹ", "nước Mĩ"),
    ("bac sy", "bác sĩ"),
    ("quý ba", "quí ba"),
]


async def test_words_are_found_however_they_are_joined_split_or_abbreviated(
    store: ArticleStore,
) -> None:
    pairs = [*SPELLINGS, *((b, a) for a, b in SPELLINGS)]
    texts = list(dict.fromkeys(written for _, written in pairs))
    await store.put(
        [article(f"t{i}", f"Tin {i}", f"Hôm qua {text} nhé.") for i, text in enumerate(texts)]
    )
    await store.refresh()
    for typed, written in pairs:
        result = await store.search(Query(typed))
        wanted = {h.article.id: h for h in result.hits}.get(article_id(f"t{texts.index(written)}"))
        assert wanted and result.relaxed in ("", "folded"), (typed, written)
        marked = mark(wanted.snippet, wanted.snippet_marks, "[", "]")
        words = [w for w in marked.split() if w not in ("Hôm", "qua", "nhé.")]
        assert all("[" in w or "]" in w or w in marked.partition("[")[2] for w in words), marked
    for typed in ("2 9", "to a"):  # not 29, not toa
        assert (await store.search(Query(f'"{typed}"'))).total == 0


async def test_i_and_y_are_one_where_both_are_written(store: ArticleStore) -> None:
    await store.put(
        [
            article("y", "Kỹ sư Lý ở nước Mỹ", "Ông nói về công ty."),
            article("i", "Kĩ sư Lí ở nước Mĩ", "Ông nói về công ti."),
            article("noodles", "Quán mì", "Bát mì ở nước ta, của kỳ thủ."),
        ]
    )
    await store.refresh()
    both = {article_id("y"), article_id("i")}
    for typed in ("nước Mỹ", "nước Mĩ", '"kỹ sư lý"', '"kĩ sư lí"', "title:mĩ", "title:mỹ"):
        result = await store.search(Query(typed))
        hits = result.hits[:2]  # "mì" follows below, as of any query with few matches
        assert {h.article.id for h in hits} == both and not result.relaxed, typed
        assert all(h.title_marks for h in hits), typed
    assert (await store.search(Query("nước mĩ"))).in_a_row == 2
    for typed, name in (("Kĩ sư Lí ở nước Mĩ", "i"), ("Kỹ sư Lý ở nước Mỹ", "y")):
        hits = (await store.search(Query(typed))).hits
        assert hits[0].article.id == article_id(name), "as it was typed"
        assert {h.article.id for h in hits} == both
    assert (await store.search(Query("ông -mỹ"))).total == 0


async def test_another_word_is_no_spelling(store: ArticleStore) -> None:
    await store.put(
        [
            article("a", "Tin", "toa tàu số 29 có data"),
            article("b", "Tin", "để da ta đẹp hơn"),
            article("c", "Big data", "data và data"),
        ]
    )
    await store.refresh()
    for typed, names in (("data", "ac"), ("toa", "a"), ("29", "a")):
        hits = (await store.search(Query(typed))).hits
        assert {h.article.id for h in hits} == set(map(article_id, names)), typed
    for typed in ("to a", "2 9"):
        result = await store.search(Query(typed))
        assert not result.total or result.relaxed == "any", typed


@pytest.mark.parametrize("sort", ["best", "relevance", "date"])
async def test_a_compound_comes_first_and_is_counted_apart(store: ArticleStore, sort: str) -> None:
    apart = [
        article(f"x{i}", "vàng giá giá vàng giá".replace("giá vàng", "giá bạc vàng"), filler(i, 40),
                published=START + timedelta(days=30 + i))
        for i in range(25)
    ]  # fmt: skip
    together = [
        article(f"c{i}", "Tin", f"{filler(99 + i, 90)} giá vàng {filler(i, 30)}",
                published=START + timedelta(days=i))
        for i in range(12)
    ]  # fmt: skip
    await store.put([*apart, *together])
    await store.refresh()
    for text in ("giá vàng", "gia vang"):
        seen: list[str] = []
        for page in range(4):
            result = await store.search(Query(text, page=page, size=10, sort=sort))  # type: ignore[arg-type]
            assert (result.total, result.in_a_row) == (37, 12)
            seen += [h.article.id for h in result.hits]
        assert len(seen) == len(set(seen)) == 37
        assert set(seen[:12]) == {one.id for one in together}
        if sort == "date":
            assert seen == [one.id for one in [*reversed(together), *reversed(apart)]]
    assert (await store.search(Query("vàng"))).in_a_row is None


async def test_a_name_finds_its_author(store: ArticleStore) -> None:
    by = article("by", "Mưa lớn", "Nội dung một", authors=["Nguyễn Văn An"])
    about = article("about", "Gặp Nguyễn Văn An", "Nội dung hai", authors=["Lê Bình"])
    other = article("other", "Nắng to", "Nội dung ba", authors=["Trần An", "Nguyễn Văn Bình"])
    await store.put([by, about, other])
    await store.refresh()
    for text in ("Nguyễn Văn An", "nguyen van an"):
        assert set(await found(store, text)) == {by.id, about.id}, text
    assert await found(store, "an nguyễn văn") == [about.id]
    assert await found(store, '"Nguyễn Văn An"') == [about.id]


async def test_a_title_that_is_the_query_is_first(store: ArticleStore) -> None:
    rivals = [
        article(f"r{i}", f"Giá vàng hôm nay {i}", "giá vàng hôm nay " * 20,
                published=START + timedelta(days=9))
        for i in range(12)
    ]  # fmt: skip
    await store.put([*rivals, article("same", "Giá vàng hôm nay", filler(1, 200))])
    await store.refresh()
    for text in ("Giá vàng hôm nay", "gia vang hom nay"):
        assert (await found(store, text))[0] == article_id("same")


async def test_the_newest_about_a_subject_are_on_the_first_page(store: ArticleStore) -> None:
    strong = [
        article(f"s{i}", f"Giá vàng số {i}", "giá vàng " * 9, published=START + timedelta(days=i))
        for i in range(30)
    ]
    weak = [
        article(f"w{i}", "Tin", f"{filler(i, 300)} giá vàng {filler(i + 9, 90)}",
                published=START + timedelta(days=90 + i))
        for i in range(3)
    ]  # fmt: skip
    await store.put([*strong, *weak])
    await store.refresh()
    for text in ("giá vàng", "vang"):
        pages = [await found(store, text, page=page, size=5) for page in range(7)]
        assert [weak[i].id for i in (2, 1, 0)] == [pages[0][2], pages[1][0], pages[1][3]]
        every = [one for page in pages for one in page]
        assert len(every) == len(set(every)) == 33
        assert (await store.search(Query(text))).total == 33


async def test_a_word_is_corrected_in_its_context(store: ArticleStore) -> None:
    often = [article(f"o{i}", f"Tin {i}", f"bang {filler(i, 30)}") for i in range(20)]
    await store.put([*often, article("w", "Vàng", "hôm nay vang bóng một thời")])
    await store.refresh()
    for typed in ("xang bóng", "bóng một cang"):  # "bang" is as near, and in more articles
        result = await store.search(Query(typed))
        assert (list(result.corrections.values()), result.relaxed) == (["vang"], "corrected"), typed
        assert result.hits[0].article.id == article_id("w")


_LUCENE = 'title:/.*/ AND _exists_:content^5 OR [a TO z] {x} (+"b c"~3 && !d || e?f*) \\'
_SQL = """x'; DROP TABLE article; -- " OR 1=1 UNION SELECT * FROM version /* */"""
_HTML = "<script>alert('bão')</script> <img src=x onerror=alert(1)> &lt;b&gt;"
#: What is refused says so in one line; all else is answered.
BAD_INPUT = [
    "từ " * 33_000,
    "x" * 100_000,
    "OR " * 3_000,
    "AND NOT (" * 1_000,
    "(" * 9_000,
    "(" * 4_000 + "bão" + ")" * 4_000,
    "(bão OR " * 1_200,
    "-(" * 4_000 + "bão",
    "NOT " * 2_400 + "bão",
    '"' * 9_999,
    '"' + "bão lũ " * 1_400 + '"',
    "title:" * 1_600,
    "site:a.vn " * 900,
    "a-" * 4_900,
    "bão " + "x" * 2_000,
    "😀🇻🇳 bão 👩‍👩‍👧‍👦",
    "😀",
    "\x00\x01 bão \ud800 \u202e",
    _LUCENE,
    _SQL,
    _HTML,
]


async def test_bad_input_is_answered_or_refused_in_bounded_work(corpus: ArticleStore) -> None:
    for text in BAD_INPUT:
        for mode in (text, f"title:({text})"):
            started = time.process_time()
            try:
                result = await corpus.search(Query(mode, facets=True, limit_s=60))
            except QueryError as exc:
                assert len(str(exc)) < 300 and "\n" not in str(exc), text[:30]
            else:
                assert result.total <= len(CORPUS), text[:30]
            # An ordinary query costs some milliseconds; this is a fuse, no measurement.
            assert time.process_time() - started < 20, text[:30]
    assert (await corpus.search(Query("bão"))).total == 1
