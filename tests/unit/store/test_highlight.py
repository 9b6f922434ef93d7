"""Which words are marked, and which piece of a text is shown."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from newscrawler.store import highlight
from newscrawler.store.base import Query
from newscrawler.store.query_language import Plan, parse
from newscrawler.store.spellings import spelt
from tests.contract.articles import filler

#: Words that no query of these tests has.
FILL = "lời người dân kể lại chuyện cũ ở làng bên sông "


def read(query: str) -> Plan:
    plan = parse(Query(query))
    return replace(plan, terms=spelt(plan.terms))


def shown(text: str, query: str, **plan: object) -> str:
    piece, marks = highlight.snippet(text, replace(read(query), **plan))  # type: ignore[arg-type]
    return highlight.mark(piece, marks, "[", "]")


def titled(text: str, query: str) -> str:
    return highlight.mark(text, highlight.title_marks(text, read(query)), "[", "]")


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Bão đổ bộ Hà Nội", "Hà Nội", "Bão đổ bộ [Hà Nội]"),
        ("Bão đổ bộ Hà Nội", "ha noi", "Bão đổ bộ [Hà Nội]"),
        ("Giá vàng trong nước tăng", "giá vàng tăng", "[Giá vàng] trong nước [tăng]"),
        ("Giá vàng giá", "giá vàng", "[Giá vàng] [giá]"),
        ("Vàng giá cao", "giá vàng", "[Vàng] [giá] cao"),  # the other way round it is no compound
        ("Giá, vàng", "giá vàng", "[Giá], [vàng]"),
        ("Giá\nvàng", "giá vàng", "[Giá]\n[vàng]"),
        ("Bão lũ", "bão OR lũ", "[Bão] [lũ]"),
        ("ma ma ma", "ma ma", "[ma ma ma]"),
        ("Giá vàng SJC", '"giá vàng" sjc', "[Giá vàng SJC]"),
        ("Tại TP.HCM sáng nay", "TP HCM", "Tại [TP].[HCM] sáng nay"),
        ("Ở thành phố Hồ Chí Minh", "TPHCM", "Ở [thành phố Hồ Chí Minh]"),
        ("中国经济增长", "中国 经济", "[中国经济]增长"),
    ],
)
def test_neighbours_of_the_query_are_one_mark(text: str, query: str, marked: str) -> None:
    assert titled(text, query) == marked


def test_each_word_is_marked_as_it_stands_where_it_does_not_stand_as_typed() -> None:
    """Of a relaxed query; what was typed with diacritics and stands so is marked alone."""
    assert shown("gia vàng, ma, mã", "giá vàng mã", is_exact=False) == "[gia vàng], ma, [mã]"
    assert shown("gia vàng", "giá vàng") == "gia [vàng]", "of an exact one as typed only"


def test_the_window_shows_the_most_different_words() -> None:
    many = "giá rồi giá rồi giá rồi giá rồi giá rồi giá. "
    text = f"{many}{FILL * 20}giá của vàng. {FILL * 20}"
    assert "[giá] của [vàng]" in shown(text, "giá vàng")
    assert "[giá] của [vàng]" in shown(text, "gia vang")


def test_of_as_many_different_words_those_that_stand_together_are_shown_then_the_most() -> None:
    apart, together = f"vàng tăng giá. {FILL * 20}", f"giá vàng. {FILL * 20}"
    assert shown(apart + together, "giá vàng").count("[giá vàng]") == 1
    few, more = f"giá của vàng. {FILL * 20}", f"giá của vàng và vàng. {FILL * 20}"
    assert shown(few + more, "giá vàng").count("[") == 3
    assert shown(few + few, "giá vàng").startswith("[giá] của [vàng]"), "else the first"


def test_all_that_counts_for_the_window_is_inside_of_it() -> None:
    """Words as far apart as a window is wide, at any place of the text."""
    gap = (FILL * 9)[: highlight.SNIPPET - 12]
    for before in (0, 30, 61, 300, 3_000):
        text = f"{(FILL * 90)[:before]} vàng {gap} rơm {FILL * 9}"
        assert {"[vàng]", "[rơm]"} <= set(shown(text, "vàng rơm").split()), before
    assert "[rơm]" in shown(f"{FILL * 30} rơm", "rơm")


def test_a_phrase_longer_than_the_window_is_marked_as_far_as_it_is_shown() -> None:
    phrase = (FILL * 8).strip()
    found = shown(f"tin tin tin {phrase} tin", f'"{phrase}"')
    assert found.count("[") == found.count("]") == 1 and len(found) > 200


@pytest.mark.parametrize("start", ["", "ฝนตกหนัก "], ids=["plain", "with a script of marks"])
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("vang rom", "[rơm]"),  # "vàng" and "vang" early are one word of this query
        ("vàng rơm", "[rơm]"),
        ("vang mua he", "[mùa hè]"),  # a compound
        ('vang "mùa hè"', "[mùa hè]"),  # a phrase
        ("vàng kim", "[kim]"),
    ],
)
def test_a_word_far_down_is_looked_for_where_it_is_not_early(
    query: str, wanted: str, start: str
) -> None:
    early = "vàng vang vẳng. "
    for far in (7_000, 30_000, 400_000):
        down = "kim trong đống rơm, mùa hè, vàng "
        text = f"{start}{early}{(FILL * 9_000)[:far]} {down}"
        assert wanted in shown(text, query), far


def test_as_it_was_typed_far_down_comes_before_without_diacritics_early() -> None:
    text = f"ma qua. {FILL * 700} má về. {FILL}"
    assert len(text) > highlight.LOOKED_AT
    assert "[má] về" in shown(text, "má", is_exact=False)


@pytest.mark.parametrize("far", [6_100, 30_000, 400_000])
def test_words_of_a_script_without_spaces_are_found_at_any_place(far: int) -> None:
    text = "经济" + "国" * far + "增长的经济" + "家" * 50
    assert "[增长]的[经济]" in shown(text, "经济 增长")
    for around in range(far - 3, far + 3):  # across the ends of the pieces that are read
        assert "[经济增长]" in shown("国" * around + "经济增长" + "家" * 50, "经济增长")


@pytest.mark.parametrize("text", ["FILL", "国"])
def test_half_a_million_characters_are_looked_through_in_time(text: str) -> None:
    content = (FILL if text == "FILL" else text) * 500_000
    content = content[:500_000]
    plan = read("vàng trong đống rơm 经济 增长")
    highlight.snippet(content[:1_000], plan)
    began = time.process_time()
    highlight.snippet(content, plan)
    assert time.process_time() - began < 1.0


def test_filler_has_no_word_that_is_looked_for() -> None:
    assert "vàng" not in FILL + filler(1, 50)
